//! The table of SQL's built-in functions and operators. It says all that is known of a function
//! before it is evaluated; `function` adds its result type and its evaluation.
//!
//! Each function has one row ([`Builtin`]), whatever its synonyms. Its users:
//!
//! * the parser asks how a call is written ([`Grammar`]), and the printer whether a plain call of
//!   that name is read back as one;
//! * the canonical form asks which literals a plan depends on;
//! * the classifier asks what a call reads and does beyond its arguments ([`Reach`]);
//! * the planner asks what a name means ([`Meaning`]) and how arguments are taken;
//! * `function` has an exhaustive `match` over [`Function`], so no row lacks its evaluation.
//!
//! To add a function: a variant of [`Function`], its row at the same place of the table, and its
//! arm in `function::binder::registry`. [`find`] costs one hash of the name and mostly one
//! comparison. The table is made at compile time. The crate has no dependencies, so a gateway can
//! parse without linking any evaluation.

#![forbid(unsafe_code)]

mod builtin;
mod function;
mod index;
mod interval;
mod reach;
mod table;

pub use builtin::{Builtin, Dated, Geometries, Grammar, Meaning, Name, Places};
pub use function::{AggregateFunction, Function, SessionFunction};
pub use index::{Found, find, is_of_missing_family};
pub use interval::IntervalUnit;
pub use reach::{Reach, is_called_bare, makes_time, reach};
pub use table::TABLE;
