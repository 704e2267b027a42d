//! CREATE, ALTER, DROP and SHOW CREATE of stored programs.
//!
//! A definition is checked by compiling the program, then kept as text. Each change commits the
//! open transaction and is durable when it is acknowledged.

use std::sync::Arc;

use builtin::Meaning;
use catalog::{AccountName, Privilege, PrivilegeSet, Routine, RoutineKey};
use errcode::{
    ClientError, ER_BAD_DB_ERROR, ER_NATIVE_FCT_NAME_COLLISION, ER_SP_ALREADY_EXISTS,
    ER_SP_DOES_NOT_EXIST, ER_SP_WRONG_NAME, ER_SPECIFIC_ACCESS_DENIED_ERROR,
};
use syntax::ast::{
    self, AlterRoutine, Characteristics, CreateRoutine, DropRoutine, ObjectName, RoutineKind,
};
use value::{Level, Value};

use super::compile::compile_routine;
use crate::connection::reply::{Done, Reply, Stop};
use crate::connection::session::Session;
use crate::connection::sink::text_column;
use crate::define::checked_name;
use crate::statement::statement_run::StatementRun;
use crate::system::routines::RoutineChange;
use crate::worker::parsed::Parsed;
use crate::worker::program::Instruction;

impl Session {
    /// Answers CREATE PROCEDURE and CREATE FUNCTION.
    pub(crate) async fn create_routine(
        &mut self,
        create: &CreateRoutine,
        parsed: &Parsed,
    ) -> Result<Reply, Stop> {
        self.begin_routine_change().await?;
        let database = self.routine_database(&create.name)?;
        self.check_database_privilege(Privilege::CreateRoutine, &database)?;
        let _database = self.hold_database(&database).await?;
        let turn = self.change_turn().await?;
        let names = self.state.worker.names();
        let Some(of) = names.database(&database) else {
            return Err(ClientError::new(ER_BAD_DB_ERROR, &[&database]).into());
        };
        let name = checked_name(&create.name.name, ER_SP_WRONG_NAME)?;
        let key = RoutineKey::new(create.kind, &database, &name);
        let known = self.state.worker.server.routines().find(&key).cloned();
        if known.is_some() && !create.or_replace {
            let code = ER_SP_ALREADY_EXISTS;
            let error = ClientError::new(code, &[&create.kind.text(), &name]);
            if !create.if_not_exists {
                return Err(error.into());
            }
            self.note_error(error);
            return Ok(Reply::Ok(Done::default()));
        }
        if known.is_some() {
            self.check_routine_privilege(Privilege::AlterRoutine, &key, &database, &name)?;
        }
        let compiled = compile_routine(create, &parsed.text, of.collation)?;
        check_variables(&compiled.code)?;
        let is_native = builtin::find(name.as_bytes())
            .is_some_and(|found| matches!(found.builtin.meaning, Meaning::Library(_)));
        if create.kind == RoutineKind::Function && is_native {
            self.note_error(ClientError::new(ER_NATIVE_FCT_NAME_COLLISION, &[&name]));
        }
        let mut routine = self.new_routine(create, parsed, (database, name), of.collation)?;
        let result = compiled.result.map(|result| &compiled.variables[result]);
        if let Some(declared) = result.and_then(|result| result.declared.as_ref()) {
            routine.returns = type_text(declared);
        }
        let change = RoutineChange::Put(Box::new(routine));
        let granted: Vec<_> = self.own_routine_grant(&key).into_iter().collect();
        self.change_published(&turn, &granted, &[change]).await?;
        Ok(Reply::Ok(Done::default()))
    }

    fn new_routine(
        &self,
        create: &CreateRoutine,
        parsed: &Parsed,
        (database, name): (String, String),
        collation: value::CollationId,
    ) -> Result<Routine, ClientError> {
        let text = |span| String::from_utf8_lossy(parsed.source(span)).into_owned();
        let now = self.state.wall_now().truncated(0);
        let variables = self.state.variables.borrow();
        let settings = variables.settings();
        let mut routine = Routine {
            database,
            name,
            kind: create.kind,
            data_access: ast::DataAccess::default(),
            is_deterministic: false,
            is_invoker: false,
            parameters: text(create.parameters_span),
            returns: text(create.returns_span),
            body: text(create.body_span),
            definer: self.definer_of(create)?,
            created: now,
            modified: now,
            sql_mode: settings.text("sql_mode").to_owned(),
            comment: String::new(),
            client_charset: settings.text("character_set_client").to_owned(),
            connection_collation: settings.text("collation_connection").to_owned(),
            database_collation: collation.name().to_owned(),
        };
        characterize(&mut routine, &create.characteristics);
        Ok(routine)
    }

    /// The account whose privileges the routine gets. Naming another account needs a privilege.
    fn definer_of(&self, create: &CreateRoutine) -> Result<AccountName, ClientError> {
        let own = self.state.account_name();
        let Some(named) = &create.definer else {
            return Ok(own);
        };
        let named = self.account_name_of(named);
        if named == own {
            return Ok(own);
        }
        let global = self.state.privileges().global();
        if !global.has(Privilege::SetUser) && !global.has(Privilege::Super) {
            let code = ER_SPECIFIC_ACCESS_DENIED_ERROR;
            return Err(ClientError::new(code, &[&"SUPER, SET USER"]));
        }
        let accounts = self.state.worker.server.accounts();
        if accounts.by_name(&named).is_none() {
            let code = errcode::ER_NO_SUCH_USER;
            self.note_error(ClientError::new(code, &[&named.user, &named.host]));
        }
        Ok(named)
    }

    /// Answers ALTER PROCEDURE.
    pub(crate) async fn alter_routine(&mut self, alter: &AlterRoutine) -> Result<Reply, Stop> {
        self.begin_routine_change().await?;
        let turn = self.change_turn().await?;
        let (database, key) = self.routine_key(alter.kind, &alter.name)?;
        let name = &alter.name.name.text;
        self.check_routine_privilege(Privilege::AlterRoutine, &key, &database, name)?;
        let routine = self.existing_routine(alter.kind, &key, &database, name)?;
        let mut changed = Routine::clone(&routine);
        characterize(&mut changed, &alter.characteristics);
        changed.modified = self.state.wall_now().truncated(0);
        let change = RoutineChange::Put(Box::new(changed));
        self.change_routines(&turn, &[change]).await?;
        Ok(Reply::Ok(Done::default()))
    }

    /// Answers DROP PROCEDURE.
    pub(crate) async fn drop_routine(&mut self, drop: &DropRoutine) -> Result<Reply, Stop> {
        self.begin_routine_change().await?;
        let turn = self.change_turn().await?;
        let (database, key) = self.routine_key(drop.kind, &drop.name)?;
        let name = &drop.name.name.text;
        self.check_routine_privilege(Privilege::AlterRoutine, &key, &database, name)?;
        match self.existing_routine(drop.kind, &key, &database, name) {
            Ok(routine) => {
                let revoked = self.routine_revocations(&key);
                let change = RoutineChange::Remove(routine);
                self.change_published(&turn, &revoked, &[change]).await?;
            }
            Err(error) if drop.if_exists => self.note_error(error),
            Err(error) => return Err(error.into()),
        }
        Ok(Reply::Ok(Done::default()))
    }

    /// Drops the routines of a dropped database.
    pub(crate) async fn drop_routines_of(&mut self, database: &str) -> Result<(), Stop> {
        let turn = self.change_turn().await?;
        let routines = self.state.worker.server.routines();
        let own = routines.of_database(database);
        let gone: Vec<_> = own
            .map(|routine| RoutineChange::Remove(Arc::clone(routine)))
            .collect();
        if gone.is_empty() {
            return Ok(());
        }
        self.change_routines(&turn, &gone).await
    }

    /// Answers SHOW CREATE PROCEDURE. A session that may not see the body gets NULL for it.
    pub(crate) fn show_create_routine(
        &mut self,
        kind: RoutineKind,
        name: &ObjectName,
        run: &mut StatementRun,
    ) -> Result<Reply, Stop> {
        let (_, key) = self.routine_key(kind, name)?;
        let routines = self.state.worker.server.routines();
        let missing = || {
            let code = ER_SP_DOES_NOT_EXIST;
            ClientError::new(code, &[&kind.text(), &name.name.text])
        };
        let privileges = self.routine_privileges(&key) & PrivilegeSet::ALL_ROUTINE;
        let routine = routines.find(&key).ok_or_else(missing)?;
        let is_own = routine.definer == self.state.account_name();
        let sees_body = is_own || self.sees_routine_bodies();
        if privileges.is_empty() && !sees_body {
            return Err(missing().into());
        }
        let text = |text: &str| Value::bytes(text.as_bytes());
        let row = vec![
            text(&routine.name),
            text(&routine.sql_mode),
            match sees_body {
                true => text(&routine.show_create()),
                false => Value::Null,
            },
            text(&routine.client_charset),
            text(&routine.connection_collation),
            text(&routine.database_collation),
        ];
        let (of, create) = match kind {
            RoutineKind::Procedure => ("Procedure", "Create Procedure"),
            RoutineKind::Function => ("Function", "Create Function"),
        };
        let columns = [
            text_column(of, 64),
            text_column("sql_mode", 8192),
            text_column(create, 1024),
            text_column("character_set_client", 32),
            text_column("collation_connection", 64),
            text_column("Database Collation", 64),
        ];
        self.write_rows(&columns, vec![row], run)
    }

    /// A session that may read the table of routines sees all bodies.
    fn sees_routine_bodies(&self) -> bool {
        self.state.sees_routine_bodies()
    }

    async fn begin_routine_change(&mut self) -> Result<(), Stop> {
        self.check_may_write()?;
        self.commit().await?;
        Ok(self.check_no_locks()?)
    }

    fn routine_key(
        &self,
        kind: RoutineKind,
        name: &ObjectName,
    ) -> Result<(String, RoutineKey), ClientError> {
        let database = self.routine_database(name)?;
        let key = RoutineKey::new(kind, &database, &name.name.text);
        Ok((database, key))
    }

    fn existing_routine(
        &self,
        kind: RoutineKind,
        key: &RoutineKey,
        database: &str,
        name: &str,
    ) -> Result<Arc<Routine>, ClientError> {
        let routines = self.state.worker.server.routines();
        routines.find(key).cloned().ok_or_else(|| {
            let full = format!("{database}.{name}");
            ClientError::new(ER_SP_DOES_NOT_EXIST, &[&kind.text(), &full])
        })
    }

    /// Error 1370 without a privilege on a routine.
    fn check_routine_privilege(
        &self,
        privilege: Privilege,
        key: &RoutineKey,
        database: &str,
        name: &str,
    ) -> Result<(), ClientError> {
        if self.routine_privileges(key).has(privilege) {
            return Ok(());
        }
        let command = privilege.name().to_lowercase();
        Err(self.routine_denied(&command, database, name))
    }

    fn note_error(&self, error: ClientError) {
        let diagnostics = self.state.diagnostics.borrow();
        diagnostics.push(Level::Note, error);
    }
}

/// A function's type as it is stored and shown: a text type names its character set.
fn type_text(column_type: &value::ColumnType) -> String {
    let mut text = column_type.sql_text();
    if column_type.kind.is_string() && column_type.charset() != value::Charset::Binary {
        let collation = column_type.collation;
        let charset = collation.charset().name();
        text.push_str(&format!(" CHARSET {charset} COLLATE {}", collation.name()));
    }
    text
}

/// Applies the characteristics of a definition to a routine.
fn characterize(routine: &mut Routine, says: &Characteristics) {
    if let Some(comment) = &says.comment {
        routine.comment = String::from_utf8_lossy(comment).into_owned();
    }
    routine.is_deterministic = says.deterministic.unwrap_or(routine.is_deterministic);
    routine.data_access = says.data_access.unwrap_or(routine.data_access);
    routine.is_invoker = says.invoker.unwrap_or(routine.is_invoker);
}

/// Error 1193 for a SET of a name that is neither the routine's nor a system variable.
fn check_variables(code: &[Instruction]) -> Result<(), ClientError> {
    for instruction in code {
        if let Instruction::SetSystem { variable, .. } = instruction {
            let name = &variable.name.text;
            if !crate::variables::system::is_known(name) {
                let code = errcode::ER_UNKNOWN_SYSTEM_VARIABLE;
                return Err(ClientError::new(code, &[name]));
            }
        }
    }
    Ok(())
}
