//! Statements that define databases and tables.
//!
//! [`definition`] runs each of them; [`define`] turns a tree into a definition; [`altered`] applies
//! the steps of ALTER TABLE one after another.

mod alter;
mod alter_plan;
mod column_default;
mod create_select;
pub(crate) mod definition;
mod drop;
mod rename;
