//! Statements that define databases, tables and indexes.

mod alter;
pub(crate) mod create;
pub(crate) mod data_type;
mod index;
mod table_option;
