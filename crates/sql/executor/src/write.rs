//! The statements that change tables: INSERT, REPLACE, UPDATE, DELETE.
//!
//! Each runner keeps its place as operators do. A computed row is kept until the store has taken
//! it, so a lock wait repeats only the store's operation, never the expressions.

mod assign;
mod check;
mod delete;
mod found_rows;
mod insert;
mod key_window;
mod late_changes;
mod row_change;
mod update;

pub(crate) use delete::DeleteRunner;
pub(crate) use insert::InsertRunner;
pub(crate) use update::UpdateRunner;
