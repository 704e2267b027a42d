//! RENAME TABLE: the steps apply one after the other, each to the names that the former left. All
//! take effect in one atomic step at the end.

use std::collections::{BTreeMap, BTreeSet};

use catalog::{Privilege, PrivilegeSet};
use errcode::{ClientError, ER_TABLE_EXISTS_ERROR};
use store::{TableId, TableName};
use syntax::ast::ObjectName;

use crate::connection::reply::Stop;
use crate::connection::session::Session;
use crate::schema::definition::no_such_table;

impl Session {
    /// Answers RENAME TABLE.
    pub(crate) async fn rename_tables(
        &mut self,
        renames: &[(ObjectName, ObjectName)],
    ) -> Result<(), Stop> {
        let mut names = Vec::new();
        for (from, to) in renames {
            let (from, to) = (self.unchecked_name(from)?, self.unchecked_name(to)?);
            self.check_may_rename(&from, &to)?;
            names.push((from, to));
        }
        let targets: BTreeSet<&str> = names.iter().map(|(_, to)| &*to.database).collect();
        let mut databases = Vec::new();
        for database in targets {
            databases.push(self.hold_database(database).await?);
        }
        loop {
            let steps = self.rename_steps(&names)?;
            let tables: BTreeSet<TableId> = steps.iter().map(|(table, _)| *table).collect();
            let mut holds = Vec::new();
            for table in tables {
                holds.push(self.change_table(table).await?);
            }
            // During the wait the names may have changed their meaning.
            if self.rename_steps(&names)? == steps {
                return Ok(self.store().rename_tables(steps).await?);
            }
        }
    }

    /// Error 1142 without the privileges to give a table this name.
    pub(crate) fn check_may_rename(
        &self,
        from: &TableName,
        to: &TableName,
    ) -> Result<(), ClientError> {
        let away = PrivilegeSet::of(&[Privilege::Alter, Privilege::Drop]);
        let there = PrivilegeSet::of(&[Privilege::Create, Privilege::Insert]);
        self.state.check_table(away, from)?;
        self.state.check_table(there, to)
    }

    /// Which table gets which name, in order; error 1146 for a missing table, 1050 for a taken
    /// name.
    fn rename_steps(
        &self,
        names: &[(TableName, TableName)],
    ) -> Result<Vec<(TableId, TableName)>, ClientError> {
        let mut moved: BTreeMap<&TableName, Option<TableId>> = BTreeMap::new();
        let mut steps = Vec::new();
        for (from, to) in names {
            let [taken, free] = [from, to].map(|name| match moved.get(name) {
                Some(table) => *table,
                None => self.existing(name).map(|definition| definition.id),
            });
            let Some(table) = taken else {
                return Err(no_such_table(from));
            };
            if free.is_some() {
                return Err(ClientError::new(ER_TABLE_EXISTS_ERROR, &[&to.table]));
            }
            moved.insert(from, None);
            moved.insert(to, Some(table));
            steps.push((table, to.clone()));
        }
        Ok(steps)
    }
}
