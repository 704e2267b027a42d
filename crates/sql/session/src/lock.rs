//! Locks above the store: on a table's definition, by name, and those of LOCK TABLES.

pub(crate) mod locked_tables;
pub mod metadata;
pub mod named_locks;
