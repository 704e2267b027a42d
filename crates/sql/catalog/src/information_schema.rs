//! `information_schema`: tables that describe all other tables.
//!
//! `tables` has their definitions. `rows` makes their rows from a [`Facts`] value: what the account
//! may see of the name space, and what only the session knows. A table is built for each statement
//! that names it.

use std::sync::{Arc, OnceLock};

use store::{TableDefinition, TableId};
use value::Value;

use crate::account::Accounts;
use crate::names::NameSpace;
use crate::routine::{Routine, Routines};
use crate::session_privileges::SessionPrivileges;

mod code;
mod describe;
mod locks;
mod rows;
mod tables;

pub use code::ParameterFacts;
pub use describe::{column_key, default_text, extra_text, show_create_table};

/// Ids of the tables here: no store assigns numbers this high.
const TABLE_ID_MIN: u64 = crate::VIRTUAL_TABLE_ID_MIN;

/// The schema's name.
pub const INFORMATION_SCHEMA: &str = "information_schema";

/// What the rows are made from.
pub struct Facts<'a> {
    /// All databases and tables.
    pub names: &'a NameSpace,
    /// All accounts.
    pub accounts: &'a Accounts,
    /// The privileges of the asking session.
    pub privileges: &'a SessionPrivileges,
    /// The tables about which rows are made; `None`: all that are [`described`].
    pub about: Option<&'a [Arc<TableDefinition>]>,
    /// All stored programs.
    pub routines: &'a Routines,
    /// The account may read the bodies of all of them.
    pub sees_bodies: bool,
    /// A program's parameters, preceded by a function's result.
    pub parameters: &'a dyn Fn(&Routine) -> Vec<ParameterFacts>,
    /// Rows, sizes and counters of a table.
    pub table_facts: &'a dyn Fn(&TableDefinition) -> TableFacts,
    /// The session's variables, as (name, value).
    pub session_variables: &'a dyn Fn() -> Vec<(String, String)>,
    /// The global variables, as (name, value).
    pub global_variables: &'a dyn Fn() -> Vec<(String, String)>,
    /// Everything about the variables.
    pub system_variables: &'a dyn Fn() -> Vec<SystemVariable>,
    /// The status counters, as (name, value).
    pub status: &'a dyn Fn() -> Vec<(String, String)>,
    /// The sessions that the account may see.
    pub processes: &'a dyn Fn() -> Vec<Process>,
    /// Open transactions and who waits for whom.
    pub activity: &'a dyn Fn() -> store::Activity,
}

impl std::fmt::Debug for Facts<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Facts").finish_non_exhaustive()
    }
}

/// The store's estimates of a table.
#[derive(Debug, Clone, Default)]
pub struct TableFacts {
    /// Rows and bytes.
    pub statistics: store::TableStatistics,
    /// The next AUTO_INCREMENT value, 0 without such a column.
    pub next_auto_increment: u64,
}

/// A variable, as SYSTEM_VARIABLES shows it.
#[derive(Debug, Clone)]
pub struct SystemVariable {
    /// Its name.
    pub name: &'static str,
    /// The session's value, if a session has one of its own.
    pub session_value: Option<String>,
    /// The server's value.
    pub global_value: String,
    /// Where that comes from.
    pub origin: &'static str,
    /// Its default.
    pub default: String,
    /// Its type in SQL.
    pub kind: &'static str,
    /// What it does.
    pub comment: &'static str,
    /// The least and the greatest value of a number.
    pub range: Option<(u64, u64)>,
    /// The possible words.
    pub words: Option<&'static [&'static str]>,
    /// No statement changes it.
    pub is_read_only: bool,
    /// The command line can set it.
    pub is_argument: bool,
}

/// A session, as PROCESSLIST shows it.
#[derive(Debug, Clone)]
pub struct Process {
    /// Connection id.
    pub id: u64,
    /// The user.
    pub user: String,
    /// The client's host.
    pub host: String,
    /// Current database.
    pub database: Option<String>,
    /// Kind of command.
    pub command: String,
    /// For how long, in milliseconds.
    pub time_ms: u64,
    /// What it waits for.
    pub state: String,
    /// Statement text.
    pub info: Option<String>,
}

/// All definitions, sorted by name.
pub fn definitions() -> &'static [Arc<TableDefinition>] {
    static DEFINITIONS: OnceLock<Vec<Arc<TableDefinition>>> = OnceLock::new();
    DEFINITIONS.get_or_init(tables::all)
}

/// The definition of that name, in any case.
pub fn definition(name: &str) -> Option<&'static Arc<TableDefinition>> {
    definitions()
        .iter()
        .find(|definition| definition.name.table.eq_ignore_ascii_case(name))
}

/// The definition with that id, if it belongs to this schema.
pub fn definition_by_id(id: TableId) -> Option<&'static Arc<TableDefinition>> {
    let position = usize::try_from(id.0.checked_sub(TABLE_ID_MIN)?).ok()?;
    definitions().get(position)
}

/// Whether only accounts with the PROCESS privilege may read the table of that id.
pub fn needs_process(id: TableId) -> bool {
    let name = definition_by_id(id).map(|definition| &*definition.name.table);
    name.is_some_and(|name| locks::TABLES.contains(&name))
}

/// The tables that the account may know of, those of this schema first. Tables that are being
/// filled under a temporary name are never shown.
pub fn described(names: &NameSpace, privileges: &SessionPrivileges) -> Vec<Arc<TableDefinition>> {
    let own = definitions().iter().cloned();
    let others = names
        .databases()
        .flat_map(|(_, database)| database.tables.values())
        .filter(|table| {
            let name = &table.name;
            !privileges.on_table(&name.database, &name.table).is_empty()
                && !name.table.starts_with(store::COPY_NAME_PREFIX)
        });
    own.chain(others.cloned()).collect()
}

/// The rows of a table of this schema.
pub fn rows(definition: &TableDefinition, facts: &Facts<'_>) -> Vec<Vec<Value>> {
    let rows = rows::of(&definition.name.table, facts);
    debug_assert!(rows.iter().all(|row| row.len() == definition.columns.len()));
    rows
}

#[cfg(test)]
mod tests;
