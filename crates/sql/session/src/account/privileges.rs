//! Checks of what an account may do, and the errors if it may not.
//!
//! The errors are MariaDB's: 1044 for a database, 1142 for a table, 1143 for a column, 1227 for the
//! whole server. An account without a privilege on a table does not learn whether it exists.
//!
//! No account can drop, rename or alter the table of accounts, that of stored programs, or their
//! database. A server that starts without these tables creates the first account, root without a
//! password.
//!
//! No account writes rows of accounts, either: they are read as tables, and changed by CREATE USER,
//! GRANT and their like.

use catalog::SYSTEM_DATABASE;
use catalog::information_schema::{self, INFORMATION_SCHEMA};
use catalog::routine::ROUTINE_TABLE;
use catalog::{AccountName, Privilege, PrivilegeSet, system_tables};
use errcode::{
    ClientError, ER_COLUMNACCESS_DENIED_ERROR, ER_DBACCESS_DENIED_ERROR,
    ER_PASSWORD_ANONYMOUS_USER, ER_SPECIFIC_ACCESS_DENIED_ERROR, ER_TABLEACCESS_DENIED_ERROR,
};
use planner::{Plan, TablePrivileges};
use store::TableName;

use crate::connection::session::Session;
use crate::connection::state::State;

/// The privileges on rows that a plan can need.
const ROWS: PrivilegeSet = PrivilegeSet::of(&[
    Privilege::Select,
    Privilege::Insert,
    Privilege::Update,
    Privilege::Delete,
]);

/// What no account may do to rows of accounts.
const CHANGES: PrivilegeSet =
    PrivilegeSet::of(&[Privilege::Insert, Privilege::Update, Privilege::Delete]);

/// What no account may do to the tables of accounts and of stored programs.
const DEFINITION: PrivilegeSet = PrivilegeSet::of(&[
    Privilege::Create,
    Privilege::Drop,
    Privilege::Alter,
    Privilege::Index,
]);

impl Session {
    /// Error 1227 without the privilege to change accounts.
    pub(crate) fn check_may_change_accounts(&self) -> Result<(), ClientError> {
        if self.may_change_accounts() {
            return Ok(());
        }
        Err(ClientError::new(
            ER_SPECIFIC_ACCESS_DENIED_ERROR,
            &[&"CREATE USER"],
        ))
    }

    /// Error 1044 if it is another account's and the session may not change accounts. How others
    /// log in is independent of what the session may grant to them.
    pub(crate) fn check_may_touch_account(&self, name: &AccountName) -> Result<(), ClientError> {
        if *name == self.state.account_name() || self.may_change_accounts() {
            return Ok(());
        }
        Err(self.state.database_denied(SYSTEM_DATABASE))
    }

    /// Error 1131 for an anonymous account, since all anonymous clients share it: the first to set
    /// a password would lock the others out. Else as for any other change of an account.
    pub(crate) fn check_may_set_password(&self, name: &AccountName) -> Result<(), ClientError> {
        if self.state.account_name().user.is_empty() {
            return Err(ClientError::new(ER_PASSWORD_ANONYMOUS_USER, &[]));
        }
        self.check_may_touch_account(name)
    }

    /// Error 1044 if it is another account and the session may not read the accounts: what is shown
    /// contains the hash of its password.
    pub(crate) fn check_may_see_account(&self, name: &AccountName) -> Result<(), ClientError> {
        if *name == self.state.account_name() {
            return Ok(());
        }
        self.check_database_privilege(Privilege::Select, SYSTEM_DATABASE)
    }

    fn may_change_accounts(&self) -> bool {
        let privileges = self.state.privileges();
        let on_system = privileges.in_database(SYSTEM_DATABASE);
        privileges.global().has(Privilege::CreateUser) || on_system.has(Privilege::Update)
    }

    /// Error 1227 without a privilege on everything.
    pub(crate) fn check_global_privilege(&self, privilege: Privilege) -> Result<(), ClientError> {
        if self.state.privileges().global().has(privilege) {
            return Ok(());
        }
        Err(ClientError::new(
            ER_SPECIFIC_ACCESS_DENIED_ERROR,
            &[&privilege],
        ))
    }

    /// Error 1227 without the privilege to set global variables.
    pub(crate) fn check_super(&self) -> Result<(), ClientError> {
        self.check_global_privilege(Privilege::Super)
    }

    /// Error 1044 without a privilege on a database.
    pub(crate) fn check_database_privilege(
        &self,
        privilege: Privilege,
        database: &str,
    ) -> Result<(), ClientError> {
        // No account creates, drops or locks anything there.
        let is_own = database.eq_ignore_ascii_case(INFORMATION_SCHEMA);
        let is_refused = is_own || database == SYSTEM_DATABASE && privilege == Privilege::Drop;
        if self.state.privileges().in_database(database).has(privilege) && !is_refused {
            return Ok(());
        }
        Err(self.state.database_denied(database))
    }

    /// Error 1044 if the account has no privilege in the database. The privilege of SHOW DATABASES
    /// shows its name alone.
    pub(crate) fn check_database_used(&self, database: &str) -> Result<(), ClientError> {
        if self.state.privileges().can_use_database(database) {
            return Ok(());
        }
        Err(self.state.database_denied(database))
    }

    /// Error 1142 without a privilege on a table.
    pub(crate) fn check_table_privilege(
        &self,
        privilege: Privilege,
        table: &TableName,
    ) -> Result<(), ClientError> {
        self.state
            .check_table(PrivilegeSet::of(&[privilege]), table)
    }

    /// Error 1142 for `command` without any privilege on a table.
    pub(crate) fn check_table_known(
        &self,
        command: &str,
        table: &TableName,
    ) -> Result<(), ClientError> {
        let TableName { database, table } = table;
        if self.state.privileges().on_table(database, table).is_empty() {
            return Err(self.state.table_denied(command, database, table));
        }
        Ok(())
    }

    /// Error 1142 or 1143 if the account may not do what the plan does.
    pub(crate) fn check_privileges(&self, plan: &Plan) -> Result<(), ClientError> {
        let has_all = self.state.privileges().global().includes(ROWS);
        for table in &plan.privileges {
            let definition = &table.definition;
            if information_schema::definition_by_id(definition.id).is_some() {
                if !(needed(table) & CHANGES).is_empty() {
                    return Err(self.state.database_denied(INFORMATION_SCHEMA));
                }
                if information_schema::needs_process(definition.id) {
                    self.check_global_privilege(Privilege::Process)?;
                }
            } else if !has_all || catalog::is_virtual(definition.id) {
                self.state.check_table(needed(table), &definition.name)?;
                self.check_reads(table)?;
            }
        }
        Ok(())
    }

    /// Error 1143 if the plan reads a column and the account may not.
    fn check_reads(&self, table: &TablePrivileges) -> Result<(), ClientError> {
        let name = &table.definition.name;
        let privileges = self.state.privileges();
        let on_table = privileges.on_table(&name.database, &name.table);
        let Some(column) = table.reads else {
            return Ok(());
        };
        if on_table.has(Privilege::Select) {
            return Ok(());
        }
        let column = table.definition.columns.get(column);
        let column = column.map_or("", |column| &column.name);
        Err(ClientError::new(
            ER_COLUMNACCESS_DENIED_ERROR,
            &[
                &Privilege::Select,
                &privileges.account().name.user,
                &self.state.client_host(),
                &column,
                &name.table,
            ],
        ))
    }
}

impl State {
    /// Error 1142 without one of these privileges on a table; it names those that are missing, and
    /// those that nobody can use there.
    pub(crate) fn check_table(
        &self,
        wanted: PrivilegeSet,
        table: &TableName,
    ) -> Result<(), ClientError> {
        self.check_table_without(refused(table), wanted, table)
    }

    /// The same of what changes nothing, whatever privileges it asks for.
    pub(crate) fn check_table_granted(
        &self,
        wanted: PrivilegeSet,
        table: &TableName,
    ) -> Result<(), ClientError> {
        self.check_table_without(PrivilegeSet::NONE, wanted, table)
    }

    fn check_table_without(
        &self,
        refused: PrivilegeSet,
        wanted: PrivilegeSet,
        table: &TableName,
    ) -> Result<(), ClientError> {
        let privileges = self.privileges().on_table(&table.database, &table.table);
        let missing = wanted & (!privileges | refused);
        if missing.is_empty() {
            return Ok(());
        }
        let missing = missing.text(PrivilegeSet::ALL_GLOBAL);
        Err(self.table_denied(&missing, &table.database, &table.table))
    }

    /// Whether the session may read the bodies of all stored programs, that is, their table.
    pub(crate) fn sees_routine_bodies(&self) -> bool {
        let privileges = self.privileges().on_table(SYSTEM_DATABASE, ROUTINE_TABLE);
        privileges.has(Privilege::Select)
    }

    /// Error 1142: `command` on a table is not allowed.
    pub(crate) fn table_denied(&self, command: &str, database: &str, table: &str) -> ClientError {
        let user = self.account_name().user;
        ClientError::new(
            ER_TABLEACCESS_DENIED_ERROR,
            &[&command, &user, &self.client_host(), &database, &table],
        )
    }

    /// Error 1044.
    pub(crate) fn database_denied(&self, database: &str) -> ClientError {
        let name = self.account_name();
        ClientError::new(
            ER_DBACCESS_DENIED_ERROR,
            &[&name.user, &name.host, &database],
        )
    }

    /// The client's host, as `USER()` shows it.
    fn client_host(&self) -> String {
        let facts = self.facts();
        let host = facts.user.rsplit_once('@').map_or("", |(_, host)| host);
        host.to_owned()
    }
}

/// What no account may do to a table of the server's own.
fn refused(table: &TableName) -> PrivilegeSet {
    if system_tables::is_system_table(table) {
        return DEFINITION | CHANGES;
    }
    match (&*table.database, &*table.table) {
        (SYSTEM_DATABASE, ROUTINE_TABLE) => DEFINITION,
        _ => PrivilegeSet::NONE,
    }
}

/// The privileges that a plan needs on one of its tables.
fn needed(table: &TablePrivileges) -> PrivilegeSet {
    let needs = [
        (table.selects, Privilege::Select),
        (table.inserts, Privilege::Insert),
        (table.updates, Privilege::Update),
        (table.deletes, Privilege::Delete),
    ];
    let needs = needs.into_iter().filter(|(is_needed, _)| *is_needed);
    needs.fold(PrivilegeSet::NONE, |sum, (_, privilege)| {
        sum | PrivilegeSet::of(&[privilege])
    })
}
