//! What LOCK TABLES has taken, and what a session may do until UNLOCK TABLES.
//!
//! Meanwhile only tables that are locked may be named, and only what was locked to be written may
//! be changed: its rows, its definition, its name. A table that is dropped takes its lock with it,
//! and the last one of them ends all of this. One that gets another name is not locked any more,
//! but what was said by LOCK TABLES goes on, if only to refuse all tables.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use errcode::{
    ClientError, ER_LOCK_OR_ACTIVE_TRANSACTION, ER_NO_SUCH_TABLE, ER_TABLE_NOT_LOCKED,
    ER_TABLE_NOT_LOCKED_FOR_WRITE,
};
use planner::Plan;
use store::{TableDefinition, TableId, TableName};
use syntax::ast::ObjectName;

use crate::connection::session::Session;
use crate::lock::metadata::StrongHold;

/// A table that LOCK TABLES has taken.
#[derive(Debug)]
pub(crate) struct LockedTable {
    /// Keeps others out.
    pub(crate) hold: StrongHold,
    /// WRITE was asked for.
    pub(crate) may_write: bool,
}

/// The tables of a session that LOCK TABLES has taken.
#[derive(Debug)]
pub(crate) struct LockedTables {
    tables: Vec<LockedTable>,
    /// LOCK TABLES was said, and not taken back. True where `tables` has any.
    is_on: Rc<Cell<bool>>,
}

impl LockedTables {
    /// None is locked. `is_on` is followed from now on, for those who have only the state.
    pub(crate) fn new(is_on: Rc<Cell<bool>>) -> Self {
        is_on.set(false);
        let tables = Vec::new();
        Self { tables, is_on }
    }

    /// True between LOCK TABLES and its end.
    pub(crate) fn are_on(&self) -> bool {
        self.is_on.get()
    }

    /// These are locked from now on.
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

    /// True if the session keeps others from the table.
    pub(crate) fn has(&self, table: TableId) -> bool {
        self.of(table).is_some()
    }

    /// The table is gone, and its lock with it.
    pub(crate) fn forget_dropped(&mut self, table: TableId) {
        let count = self.tables.len();
        self.tables.retain(|it| it.hold.table() != table);
        if self.tables.is_empty() && count != 0 {
            self.clear();
        }
    }

    /// The table has another name, by which it was not locked.
    pub(crate) fn forget_renamed(&mut self, table: TableId) {
        self.tables.retain(|it| it.hold.table() != table);
    }

    /// What took the place of the table `old` has its lock from now on, by `hold`.
    pub(crate) fn follow(&mut self, old: TableId, hold: &mut Option<StrongHold>) {
        let mut tables = self.tables.iter_mut();
        if let Some(locked) = tables.find(|it| it.hold.table() == old)
            && let Some(hold) = hold.take()
        {
            locked.hold = hold;
        }
    }

    /// Error 1100 unless a statement may name the table.
    pub(crate) fn check_use(&self, table: &TableDefinition) -> Result<(), ClientError> {
        let is_virtual = || catalog::information_schema::definition_by_id(table.id).is_some();
        if !self.are_on() || self.has(table.id) || is_virtual() {
            return Ok(());
        }
        Err(not_locked(&table.name.table))
    }

    /// Error 1100 or 1099 unless a statement may change the table.
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

impl Session {
    /// Error 1100 or 1099 unless LOCK TABLES lets the plan run.
    pub(crate) fn check_locked(&self, plan: &Plan) -> Result<(), ClientError> {
        if !self.locked.are_on() {
            return Ok(());
        }
        let others = |table: &&planner::TableUse| !self.state.is_filled(table.definition.id);
        for table in plan.tables.iter().filter(others) {
            self.locked.check_use(&table.definition)?;
        }
        let written = plan.written_tables();
        let written = written.iter().filter_map(|place| plan.tables.get(*place));
        for table in written.filter(others) {
            self.locked.check_change(&table.definition)?;
        }
        // An UPDATE locks the rows of all its tables, and changes some.
        let is_reading = !plan.is_write();
        for table in plan.tables.iter().filter(others) {
            if is_reading && table.is_for_update {
                self.locked.check_change(&table.definition)?;
            }
        }
        Ok(())
    }

    /// Error 1100 or 1099 unless LOCK TABLES lets the definition of this name be changed or made.
    pub(crate) fn check_may_define(&self, name: &TableName) -> Result<(), ClientError> {
        if !self.locked.are_on() {
            return Ok(());
        }
        match self.existing(name) {
            Some(table) => self.locked.check_change(&table),
            None => Err(not_locked(&name.table)),
        }
    }

    /// Error 1192 for what LOCK TABLES refuses, whichever tables it names.
    pub(crate) fn check_no_locks(&self) -> Result<(), ClientError> {
        if self.locked.are_on() {
            return Err(ClientError::new(ER_LOCK_OR_ACTIVE_TRANSACTION, &[]));
        }
        Ok(())
    }

    /// As [`Session::table_named`], where LOCK TABLES lets the table be used.
    pub(crate) fn usable_table(
        &self,
        name: &ObjectName,
    ) -> Result<Arc<TableDefinition>, ClientError> {
        match self.table_named(name) {
            Ok(table) => self.locked.check_use(&table).map(|()| table),
            Err(missing) if missing.code == ER_NO_SUCH_TABLE && self.locked.are_on() => {
                Err(not_locked(&name.name.text))
            }
            Err(error) => Err(error),
        }
    }
}
