//! Every setting declared once: name, type, default, range, scope and text.
//!
//! [`TABLE`] declares the flat settings and [`SECTIONS`] the sections of `plateau.toml`. From the
//! two come the reader of the file and of `--set name=value` ([`Configuration`]), its errors with
//! their lines ([`Mistake`]), the page `docs/settings.md` ([`reference_page`]) and what
//! `SHOW VARIABLES` lists ([`Settings::variables`]). A subsystem never sees the values: the program
//! builds the subsystem's `Options` value and passes it in. Two types of this crate are used in
//! others, too: [`SqlMode`] and [`VariableScope`].
#![forbid(unsafe_code)]

mod configuration;
mod difference;
mod error;
mod kind;
mod lines;
mod page;
mod places;
mod reader;
mod registry;
mod section;
mod sections;
mod setting;
mod sql_mode;
mod suggest;
mod table;

pub use configuration::Configuration;
pub use difference::Changeable;
pub use error::{FileError, Mistake, SettingError};
pub use kind::{Kind, Problem, Value};
pub use page::{reference_lines, reference_page};
pub use places::find;
pub use registry::Settings;
pub use section::{Field, FieldKind, Presence, Repetition, SECTIONS, Section};
pub use sections::{Entry, Sections};
pub use setting::{Scope, Setting, VariableScope};
pub use sql_mode::SqlMode;
pub use table::TABLE;
