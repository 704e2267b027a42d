//! Statements that define databases and tables.
//!
//! [`definition`] is how each of them runs; [`define`] makes a definition from its tree;
//! [`altered`] takes one step of ALTER TABLE after another.

mod alter;
mod altered;
mod column_default;
mod create_select;
pub(crate) mod define;
pub(crate) mod definition;
mod drop;
mod key_length;
mod rename;
