//! The tables that LOCK TABLES has locked.
//!
//! Meanwhile a statement may name only locked tables, and change only what was locked for WRITE:
//! its rows, its definition, its name. A dropped table takes its lock with it, and after the last
//! one LOCK TABLES ends. A renamed table is not locked any more, but LOCK TABLES stays in effect,
//! even if it only refuses all tables.

use std::cell::Cell;
use std::rc::Rc;

use errcode::{ClientError, ER_TABLE_NOT_LOCKED, ER_TABLE_NOT_LOCKED_FOR_WRITE};
use store::{TableDefinition, TableId};

use crate::lock::metadata::ExclusiveHold;

/// A table that LOCK TABLES has taken.
#[derive(Debug)]
pub(crate) struct LockedTable {
    /// Keeps others out.
    pub(crate) hold: ExclusiveHold,
    /// WRITE was asked for.
    pub(crate) may_write: bool,
}

/// The tables of a session that LOCK TABLES has taken.
#[derive(Debug)]
pub(crate) struct LockedTables {
    tables: Vec<LockedTable>,
    /// LOCK TABLES is in effect. True if `tables` is not empty.
    is_on: Rc<Cell<bool>>,
}

impl LockedTables {
    /// No tables are locked. `is_on` is kept up to date for code that has only the state.
    pub(crate) fn new(is_on: Rc<Cell<bool>>) -> Self {
        is_on.set(false);
        let tables = Vec::new();
        Self { tables, is_on }
    }

    /// True between LOCK TABLES and its end.
    pub(crate) fn are_on(&self) -> bool {
        self.is_on.get()
    }

    /// Sets the tables that are locked from now on.
    pub(crate) fn set(&mut self, tables: Vec<LockedTable>) {
        self.is_on.set(!tables.is_empty());
        self.tables = tables;
    }

    /// UNLOCK TABLES.
    pub(crate) fn clear(&mut self) {
        self.set(Vec::new());
    }

    fn of(&self, table: TableId) -> Option<&LockedTable> {
        self.tables.iter().find(|it| it.hold.table() == table)
    }

    /// True if the session holds the table's lock.
    pub(crate) fn has(&self, table: TableId) -> bool {
        self.of(table).is_some()
    }

    /// The table was dropped, and its lock with it.
    pub(crate) fn forget_dropped(&mut self, table: TableId) {
        let count = self.tables.len();
        self.tables.retain(|it| it.hold.table() != table);
        if self.tables.is_empty() && count != 0 {
            self.clear();
        }
    }

    /// The table was renamed; it was not locked by its new name.
    pub(crate) fn forget_renamed(&mut self, table: TableId) {
        self.tables.retain(|it| it.hold.table() != table);
    }

    /// The table that replaced `old` takes over its lock, by `hold`.
    pub(crate) fn follow(&mut self, old: TableId, hold: &mut Option<ExclusiveHold>) {
        let mut tables = self.tables.iter_mut();
        if let Some(locked) = tables.find(|it| it.hold.table() == old)
            && let Some(hold) = hold.take()
        {
            locked.hold = hold;
        }
    }

    /// Error 1100 if a statement may not name the table.
    pub(crate) fn check_use(&self, table: &TableDefinition) -> Result<(), ClientError> {
        let is_virtual = || catalog::information_schema::definition_by_id(table.id).is_some();
        if !self.are_on() || self.has(table.id) || is_virtual() {
            return Ok(());
        }
        Err(not_locked(&table.name.table))
    }

    /// Error 1100 or 1099 if a statement may not change the table.
    pub(crate) fn check_change(&self, table: &TableDefinition) -> Result<(), ClientError> {
        self.check_use(table)?;
        match self.of(table.id) {
            Some(locked) if !locked.may_write => {
                let code = ER_TABLE_NOT_LOCKED_FOR_WRITE;
                Err(ClientError::new(code, &[&table.name.table]))
            }
            _ => Ok(()),
        }
    }
}

/// Error 1100.
pub(crate) fn not_locked(table: &str) -> ClientError {
    ClientError::new(ER_TABLE_NOT_LOCKED, &[&table])
}
