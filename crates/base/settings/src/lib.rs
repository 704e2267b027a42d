//! Every setting declared once: name, type, default, range, scope and text.
//!
//! [`TABLE`] is the one declaration. From it come the reader of `plateau.toml` and of
//! `--set name=value` ([`Settings`]), the page `docs/settings.md` ([`reference_page`]) and what
//! `SHOW VARIABLES` lists ([`Settings::variables`]). A subsystem never sees this crate: the program
//! builds the subsystem's `Options` value and passes it in.
#![forbid(unsafe_code)]

mod kind;
mod page;
mod places;
mod registry;
mod suggest;
mod table;

pub use kind::{Kind, Problem, Value};
pub use page::{reference_lines, reference_page};
pub use places::find;
pub use registry::{FileError, SettingError, Settings};
pub use table::{Scope, Setting, TABLE};
