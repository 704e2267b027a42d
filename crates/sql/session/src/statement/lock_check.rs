//! What a session may do with tables between LOCK TABLES and UNLOCK TABLES.

use std::sync::Arc;

use errcode::{ClientError, ER_LOCK_OR_ACTIVE_TRANSACTION, ER_NO_SUCH_TABLE};
use planner::Plan;
use store::{TableDefinition, TableName};
use syntax::ast::ObjectName;

use crate::connection::session::Session;
use crate::lock::locked_tables::not_locked;
use crate::statement::statement_run::StatementRun;

impl Session {
    /// Error 1100 or 1099 if LOCK TABLES forbids the plan.
    pub(crate) fn check_locked(&self, plan: &Plan, run: &StatementRun) -> Result<(), ClientError> {
        if !self.locked.are_on() {
            return Ok(());
        }
        let others = |table: &&planner::TableUse| !run.is_filling(table.definition.id);
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

    /// Error 1100 or 1099 if LOCK TABLES forbids to create or alter a table of this name.
    pub(crate) fn check_may_define(&self, name: &TableName) -> Result<(), ClientError> {
        if !self.locked.are_on() {
            return Ok(());
        }
        match self.existing(name) {
            Some(table) => self.locked.check_change(&table),
            None => Err(not_locked(&name.table)),
        }
    }

    /// Error 1192 for statements that LOCK TABLES refuses whichever tables they name.
    pub(crate) fn check_no_locks(&self) -> Result<(), ClientError> {
        if self.locked.are_on() {
            return Err(ClientError::new(ER_LOCK_OR_ACTIVE_TRANSACTION, &[]));
        }
        Ok(())
    }

    /// As [`Session::table_named`], but only if LOCK TABLES lets the statement use the table.
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
