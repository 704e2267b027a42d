//! CREATE USER, GRANT and their like.
//!
//! Each part of a statement sees the changes of the parts before it ([`Draft`]). So an account
//! named twice is treated as by two statements. A statement is applied as a whole or not at all.

use std::collections::BTreeMap;
use std::sync::Arc;

use auth::{HOST_BYTES_MAX, USER_NAME_CHARS_MAX};
use catalog::{
    Account, AccountName, Accounts, Credential, Grant, Grants, Privilege, PrivilegeSet, RoutineKey,
};
use errcode::{
    ClientError, ER_CANNOT_USER, ER_DBACCESS_DENIED_ERROR, ER_NONEXISTING_GRANT,
    ER_NONEXISTING_PROC_GRANT, ER_NONEXISTING_TABLE_GRANT, ER_PLUGIN_IS_NOT_LOADED,
    ER_SP_DOES_NOT_EXIST, ER_USER_CREATE_EXISTS, ER_USER_DROP_EXISTS, ER_WRONG_STRING_LENGTH,
    ErrorCode,
};
use settings::SqlMode;
use syntax::ast::{self, AccountOptions, GrantTarget, RoutineKind, UserName, UserSpec};
use syntax::print::{quoted_name, quoted_string};

use crate::connection::reply::{Done, Reply, Stop};
use crate::connection::session::Session;
use crate::connection::sink::text_column;
use crate::statement::statement_run::StatementRun;
use crate::system::accounts::{AccountChange, hash_password};
use crate::worker::parsed::Parsed;

/// The plugin of an account that names none.
const DEFAULT_PLUGIN: &str = "mysql_native_password";

/// The accounts as the statement leaves them so far.
struct Draft {
    before: Arc<Accounts>,
    /// New contents of the accounts that the statement named; `None` for a dropped one.
    changed: BTreeMap<AccountName, Option<Account>>,
    /// What IF EXISTS and IF NOT EXISTS skipped.
    notes: Vec<ClientError>,
}

impl Draft {
    /// The account of that name as it is now.
    fn find(&self, name: &AccountName) -> Option<Account> {
        match self.changed.get(name) {
            Some(changed) => changed.clone(),
            None => self.before.by_name(name).map(|it| Account::clone(it)),
        }
    }

    fn put(&mut self, account: Account) {
        self.changed.insert(account.name.clone(), Some(account));
    }

    fn remove(&mut self, name: AccountName) {
        self.changed.insert(name, None);
    }

    fn note(&mut self, code: ErrorCode, name: &AccountName) {
        let note = ClientError::new(code, &[&name.user, &name.host]);
        self.notes.push(note);
    }

    fn changes(self) -> Vec<AccountChange> {
        let changed = self.changed.into_iter();
        let change = |(name, account): (AccountName, Option<Account>)| match account {
            Some(account) => AccountChange::Put(account),
            None => AccountChange::Remove(name),
        };
        changed.map(change).collect()
    }
}

impl Session {
    /// Answers a statement about accounts.
    pub(crate) async fn account_statement(
        &mut self,
        statement: &ast::Account,
        _: &Parsed,
    ) -> Result<Reply, Stop> {
        self.check_may_write()?;
        self.commit().await?;
        let turn = self.change_turn().await?;
        let mut draft = Draft {
            before: self.state.worker.server.accounts(),
            changed: BTreeMap::new(),
            notes: Vec::new(),
        };
        self.draft(statement, &mut draft).await?;
        let notes = std::mem::take(&mut draft.notes);
        self.change_accounts(&turn, &draft.changes()).await?;
        for note in notes {
            self.tell(value::Level::Note, note);
        }
        Ok(Reply::Ok(Done::default()))
    }

    async fn draft(&self, statement: &ast::Account, draft: &mut Draft) -> Result<(), Stop> {
        match statement {
            ast::Account::CreateUser {
                or_replace,
                if_not_exists,
                users,
                options,
            } => {
                self.check_may_change_accounts()?;
                let how = (*or_replace, *if_not_exists);
                self.create_users(users, options, how, draft).await
            }
            ast::Account::AlterUser {
                if_exists,
                users,
                options,
            } => {
                self.check_may_change_accounts()?;
                self.alter_users(users, options, *if_exists, draft).await
            }
            ast::Account::DropUser { if_exists, users } => {
                self.check_may_change_accounts()?;
                self.drop_users(users, *if_exists, draft)
            }
            ast::Account::RenameUser(renames) => {
                self.check_may_change_accounts()?;
                self.rename_users(renames, draft)
            }
            ast::Account::Grant {
                privileges,
                on,
                users,
                options,
                grant_option,
            } => {
                let what = (privileges.as_slice(), *grant_option);
                let grant = self.grant_to_users(what, on, (users, options), draft);
                grant.await
            }
            ast::Account::Revoke {
                privileges,
                on,
                users,
            } => self.revoke_from_users(privileges, on, users, draft),
            ast::Account::RevokeAll(users) => {
                self.check_may_change_accounts()?;
                self.strip_users(users, draft)
            }
            ast::Account::Role(refused) => Err(ClientError::not_supported(&refused.name).into()),
        }
    }

    /// The account that a statement names.
    pub(crate) fn account_name_of(&self, user: &UserName) -> AccountName {
        match user {
            UserName::Current => self.state.account_name(),
            UserName::Named { user, host } => AccountName {
                user: user.clone(),
                host: host.as_deref().unwrap_or("%").to_lowercase(),
            },
        }
    }

    fn existing_account(&self, name: &AccountName) -> Option<Account> {
        let accounts = self.state.worker.server.accounts();
        accounts
            .by_name(name)
            .map(|account| Account::clone(account))
    }

    async fn create_users(
        &self,
        users: &[UserSpec],
        options: &AccountOptions,
        (or_replace, if_not_exists): (bool, bool),
        draft: &mut Draft,
    ) -> Result<(), Stop> {
        for user in users {
            let name = self.account_name_of(&user.name);
            check_name(&name)?;
            if draft.find(&name).is_some() && !or_replace {
                if if_not_exists {
                    draft.note(ER_USER_CREATE_EXISTS, &name);
                    continue;
                }
                return Err(cannot("CREATE USER", &name));
            }
            let mut account = fresh_account(name);
            self.apply_authentication(user, &mut account).await?;
            apply_options(options, &mut account)?;
            draft.put(account);
        }
        Ok(())
    }

    async fn alter_users(
        &self,
        users: &[UserSpec],
        options: &AccountOptions,
        if_exists: bool,
        draft: &mut Draft,
    ) -> Result<(), Stop> {
        for user in users {
            let name = self.account_name_of(&user.name);
            let Some(mut account) = draft.find(&name) else {
                if if_exists {
                    draft.notes.push(cannot_error("ALTER USER", &name));
                    continue;
                }
                return Err(cannot("ALTER USER", &name));
            };
            self.apply_authentication(user, &mut account).await?;
            apply_options(options, &mut account)?;
            draft.put(account);
        }
        Ok(())
    }

    fn drop_users(
        &self,
        users: &[UserName],
        if_exists: bool,
        draft: &mut Draft,
    ) -> Result<(), Stop> {
        for user in users {
            let name = self.account_name_of(user);
            if draft.find(&name).is_some() {
                draft.remove(name);
            } else if if_exists {
                draft.note(ER_USER_DROP_EXISTS, &name);
            } else {
                return Err(cannot("DROP USER", &name));
            }
        }
        Ok(())
    }

    fn rename_users(
        &self,
        renames: &[(UserName, UserName)],
        draft: &mut Draft,
    ) -> Result<(), Stop> {
        for (from, to) in renames {
            let (from, to) = (self.account_name_of(from), self.account_name_of(to));
            check_name(&to)?;
            let account = draft.find(&from);
            let Some(mut account) = account.filter(|_| draft.find(&to).is_none()) else {
                return Err(cannot("RENAME USER", &from));
            };
            account.name = to;
            draft.remove(from);
            draft.put(account);
        }
        Ok(())
    }

    async fn grant_to_users(
        &self,
        (privileges, grant_option): (&[ast::Privilege], bool),
        on: &GrantTarget,
        (users, options): (&[UserSpec], &AccountOptions),
        draft: &mut Draft,
    ) -> Result<(), Stop> {
        let level = self.level(on)?;
        let wanted = Grant {
            privileges: set_of(privileges, &level)?,
            grantable: grant_option,
        };
        self.check_may_grant(&level, wanted.privileges)?;
        self.check_is_there(&level, wanted.privileges)?;
        for user in users {
            let name = self.account_name_of(&user.name);
            let mut account = match draft.find(&name) {
                Some(account) => {
                    if !user.authentication.is_empty() || has_any(options) {
                        self.check_may_set_password(&name)?;
                    }
                    account
                }
                // Without the mode, an account without a password is created.
                None if user.authentication.is_empty() && self.has_no_auto_create_user() => {
                    let code = errcode::ER_PASSWORD_NO_MATCH;
                    return Err(ClientError::new(code, &[]).into());
                }
                None => {
                    self.check_may_change_accounts()?;
                    check_name(&name)?;
                    fresh_account(name)
                }
            };
            self.apply_authentication(user, &mut account).await?;
            apply_options(options, &mut account)?;
            let grant = level.grant_of(&mut account.grants);
            grant.privileges |= wanted.privileges;
            grant.grantable |= wanted.grantable;
            account.grants.prune();
            draft.put(account);
        }
        Ok(())
    }

    fn revoke_from_users(
        &self,
        privileges: &[ast::Privilege],
        on: &GrantTarget,
        users: &[UserName],
        draft: &mut Draft,
    ) -> Result<(), Stop> {
        let level = self.level(on)?;
        let takes_option = privileges
            .iter()
            .any(|privilege| privilege.name == "GRANT OPTION");
        let unwanted = set_of(privileges, &level)?;
        self.check_may_grant(&level, unwanted)?;
        for user in users {
            let name = self.account_name_of(user);
            let Some(mut account) = draft.find(&name) else {
                let code = ER_NONEXISTING_GRANT;
                return Err(ClientError::new(code, &[&name.user, &name.host]).into());
            };
            level.check_granted(&name, &account.grants)?;
            let grant = level.grant_of(&mut account.grants);
            grant.privileges = grant.privileges & !unwanted;
            grant.grantable &= !takes_option;
            account.grants.prune();
            draft.put(account);
        }
        Ok(())
    }

    fn strip_users(&self, users: &[UserName], draft: &mut Draft) -> Result<(), Stop> {
        for user in users {
            let name = self.account_name_of(user);
            let Some(mut account) = draft.find(&name) else {
                let code = ER_NONEXISTING_GRANT;
                return Err(ClientError::new(code, &[&name.user, &name.host]).into());
            };
            account.grants = Grants::default();
            draft.put(account);
        }
        Ok(())
    }

    async fn apply_authentication(
        &self,
        user: &UserSpec,
        account: &mut Account,
    ) -> Result<(), Stop> {
        let Some(authentication) = user.authentication.first() else {
            return Ok(());
        };
        if 1 < user.authentication.len() {
            return Err(ClientError::not_supported(&"IDENTIFIED .. OR ..").into());
        }
        let plugin = authentication
            .plugin
            .as_ref()
            .map_or(DEFAULT_PLUGIN, |plugin| &plugin.text);
        let method = auth::Method::from_account_plugin(plugin)
            .ok_or_else(|| ClientError::new(ER_PLUGIN_IS_NOT_LOADED, &[&plugin]))?;
        let hash = match &authentication.secret {
            None => String::new(),
            Some(ast::Secret::Password(password)) if password.is_empty() => String::new(),
            Some(ast::Secret::Password(password)) => {
                // Each may take milliseconds, and a statement may have thousands.
                self.check_in_time(self.statement_deadline())?;
                let random = &self.state.worker.front.options().random;
                // A client logs in with the password's bytes as it sends them.
                let password = self.strings().sent(password);
                hash_password(plugin, &password, random).await?
            }
            Some(ast::Secret::Hash(hash)) => {
                if auth::StoredSecret::parse(method, hash).is_err() {
                    return Err(ClientError::new(errcode::ER_PASSWD_LENGTH, &[&41]).into());
                }
                String::from_utf8_lossy(hash).into_owned()
            }
        };
        account.credential = Credential {
            plugin: method.account_plugin().to_owned(),
            hash,
        };
        Ok(())
    }

    fn level(&self, on: &GrantTarget) -> Result<GrantLevel, Stop> {
        Ok(match on {
            GrantTarget::Global => GrantLevel::Global,
            GrantTarget::CurrentSchema => {
                GrantLevel::Database(self.state.current_database()?.to_string())
            }
            GrantTarget::Schema(name) => GrantLevel::Database(name.text.clone()),
            GrantTarget::Table(name) => {
                let database = match &name.schema {
                    Some(schema) => schema.text.clone(),
                    None => self.state.current_database()?.to_string(),
                };
                GrantLevel::Table(database, name.name.text.clone())
            }
            GrantTarget::Routine(kind, name) => {
                let kinds = [RoutineKind::Procedure, RoutineKind::Function];
                let Some(kind) = kinds.into_iter().find(|it| it.text() == kind) else {
                    return Err(ClientError::not_supported(&format!("GRANT ON {kind}")).into());
                };
                let database = self.routine_database(name)?;
                GrantLevel::Routine(RoutineKey::new(kind, &database, &name.name.text))
            }
        })
    }

    /// Error 1146 or 1305 for a table or a stored program that does not exist. Privileges to it
    /// cannot be granted, except that to create a table; they can be revoked.
    fn check_is_there(&self, level: &GrantLevel, wanted: PrivilegeSet) -> Result<(), ClientError> {
        let worker = &self.state.worker;
        match level {
            GrantLevel::Table(database, table)
                if worker.names().table(database, table).is_none()
                    && !wanted.has(Privilege::Create) =>
            {
                let code = errcode::ER_NO_SUCH_TABLE;
                Err(ClientError::new(code, &[database, table]))
            }
            GrantLevel::Routine(key) if worker.server.routines().find(key).is_none() => {
                let code = ER_SP_DOES_NOT_EXIST;
                let facts: [&dyn std::fmt::Display; 2] = [&"FUNCTION or PROCEDURE", &key.name()];
                Err(ClientError::new(code, &facts))
            }
            _ => Ok(()),
        }
    }

    /// The creator of a stored program may run, change and drop it. Returns the change of its
    /// account, or `None` if it has these privileges already.
    pub(crate) fn own_routine_grant(&self, key: &RoutineKey) -> Option<AccountChange> {
        let own = self.state.account();
        let on_routine = self.state.privileges().on_routine(key);
        if on_routine.includes(PrivilegeSet::ALL_ROUTINE) {
            return None;
        }
        let mut account = self.existing_account(&own.name)?;
        let grant = account.grants.routines.entry(key.clone()).or_default();
        grant.privileges |= PrivilegeSet::ALL_ROUTINE;
        Some(AccountChange::Put(account))
    }

    /// A dropped stored program takes all privileges to it along, since another may get its name.
    /// Returns the changes of the accounts.
    pub(crate) fn routine_revocations(&self, key: &RoutineKey) -> Vec<AccountChange> {
        let accounts = self.state.worker.server.accounts();
        let with_privileges = accounts
            .iter()
            .filter(|it| it.grants.routines.contains_key(key));
        let without = with_privileges.map(|account| {
            let mut account = Account::clone(account);
            account.grants.routines.remove(key);
            AccountChange::Put(account)
        });
        without.collect()
    }

    /// SHOW CREATE USER.
    pub(crate) fn show_create_user(
        &mut self,
        user: Option<&UserName>,
        run: &mut StatementRun,
    ) -> Result<Reply, Stop> {
        let name = self.account_name_of(user.unwrap_or(&UserName::Current));
        self.check_may_see_account(&name)?;
        let Some(account) = self.existing_account(&name) else {
            return Err(cannot("SHOW CREATE USER", &name));
        };
        let Credential { plugin, hash } = &account.credential;
        let (user, host) = (quoted_name(&name.user), quoted_name(&name.host));
        let mut text = format!("CREATE USER {user}@{host}");
        if plugin == DEFAULT_PLUGIN {
            if !hash.is_empty() {
                text.push_str(&format!(" IDENTIFIED BY PASSWORD '{hash}'"));
            }
        } else {
            let hash = quoted_string(hash);
            text.push_str(&format!(" IDENTIFIED VIA {plugin} USING {hash}"));
        }
        if account.requires_tls {
            text.push_str(" REQUIRE SSL");
        }
        if account.locked {
            text.push_str(" ACCOUNT LOCK");
        }
        let column = text_column(
            &format!("CREATE USER for {}@{}", name.user, name.host),
            1024,
        );
        self.write_rows(
            &[column],
            vec![vec![value::Value::bytes(text.as_bytes())]],
            run,
        )
    }

    /// A session can grant only what it holds with the grant option.
    fn check_may_grant(&self, level: &GrantLevel, wanted: PrivilegeSet) -> Result<(), ClientError> {
        let privileges = self.state.privileges();
        let account = privileges.account();
        let (around, own) = match level {
            GrantLevel::Global => (None, None),
            GrantLevel::Database(pattern) => (privileges.database_pattern_grant(pattern), None),
            GrantLevel::Table(database, table) => {
                let own = privileges.table_grant(database, table);
                (privileges.database_grant(database), own)
            }
            GrantLevel::Routine(key) => {
                let own = privileges.routine_grant(key);
                (privileges.database_grant(key.database()), own)
            }
        };
        let levels = [Some(account.grants.global), around, own];
        let levels: Vec<_> = levels.into_iter().flatten().collect();
        let grantable = levels.iter().filter(|grant| grant.grantable);
        let given = grantable.fold(PrivilegeSet::NONE, |sum, grant| sum | grant.privileges);
        if levels.iter().any(|grant| grant.grantable) && given.includes(wanted) {
            return Ok(());
        }
        if let GrantLevel::Routine(key) = level {
            let command = match wanted {
                wanted if wanted.has(Privilege::Execute) => "execute",
                wanted if wanted.has(Privilege::AlterRoutine) => "alter routine",
                _ => "grant",
            };
            return Err(self.routine_denied(command, key.database(), key.name()));
        }
        if let GrantLevel::Table(database, table) = level {
            let missing = wanted & !privileges.on_table(database, table);
            let has_option = levels.iter().any(|grant| grant.grantable);
            let is_option_missing = !has_option || missing.is_empty();
            let missing = names_with_option(missing, is_option_missing);
            return Err(self.state.table_denied(&missing, database, table));
        }
        let name = &account.name;
        if matches!(level, GrantLevel::Global) {
            let has_password = !account.credential.hash.is_empty();
            let denied = ClientError::access_denied(&name.user, &name.host, has_password);
            return Err(denied);
        }
        Err(ClientError::new(
            ER_DBACCESS_DENIED_ERROR,
            &[&name.user, &name.host, &level.database()],
        ))
    }

    /// `NO_AUTO_CREATE_USER` in `sql_mode`: GRANT makes no account without authentication.
    fn has_no_auto_create_user(&self) -> bool {
        let variables = self.state.variables.borrow();
        let mode = variables.active().options.sql_mode;
        mode.has(SqlMode::NO_AUTO_CREATE_USER)
    }
}

/// The privileges missing for a GRANT on a table, in MariaDB's order.
fn names_with_option(missing: PrivilegeSet, is_option_missing: bool) -> String {
    let comes_before = |it: &Privilege| *it < Privilege::References;
    let (before, behind): (Vec<_>, Vec<_>) = missing.iter().partition(comes_before);
    let names = |of: Vec<Privilege>| of.into_iter().map(Privilege::name);
    let option = is_option_missing.then_some("GRANT");
    let all = names(before).chain(option).chain(names(behind));
    all.collect::<Vec<_>>().join(", ")
}

/// Where a grant is kept.
enum GrantLevel {
    Global,
    Database(String),
    Table(String, String),
    Routine(RoutineKey),
}

impl GrantLevel {
    /// The database; `*` for all.
    fn database(&self) -> &str {
        match self {
            Self::Global => "*",
            Self::Database(database) | Self::Table(database, _) => database,
            Self::Routine(key) => key.database(),
        }
    }

    fn grant_of<'g>(&self, grants: &'g mut Grants) -> &'g mut Grant {
        match self {
            Self::Global => &mut grants.global,
            Self::Database(database) => grants.databases.entry(database.clone()).or_default(),
            Self::Table(database, table) => grants
                .tables
                .entry((database.clone(), table.clone()))
                .or_default(),
            Self::Routine(key) => grants.routines.entry(key.clone()).or_default(),
        }
    }

    /// Error 1141, 1147 or 1403 if nothing at all was granted at this level.
    fn check_granted(&self, name: &AccountName, grants: &Grants) -> Result<(), ClientError> {
        let (user, host) = (&name.user, &name.host);
        match self {
            Self::Database(database) if !grants.databases.contains_key(database) => {
                Err(ClientError::new(ER_NONEXISTING_GRANT, &[user, host]))
            }
            Self::Table(database, table) => {
                let key = (database.clone(), table.clone());
                if grants.tables.contains_key(&key) {
                    return Ok(());
                }
                let code = ER_NONEXISTING_TABLE_GRANT;
                Err(ClientError::new(code, &[user, host, table]))
            }
            Self::Routine(key) if !grants.routines.contains_key(key) => {
                let code = ER_NONEXISTING_PROC_GRANT;
                Err(ClientError::new(code, &[user, host, &key.name()]))
            }
            Self::Global | Self::Database(_) | Self::Routine(_) => Ok(()),
        }
    }

    fn all(&self) -> PrivilegeSet {
        match self {
            Self::Global => PrivilegeSet::ALL_GLOBAL,
            Self::Database(_) => PrivilegeSet::ALL_DATABASE,
            Self::Table(..) => PrivilegeSet::ALL_TABLE,
            Self::Routine(_) => PrivilegeSet::ALL_ROUTINE,
        }
    }
}

/// The privileges that a statement names at a level.
fn set_of(privileges: &[ast::Privilege], level: &GrantLevel) -> Result<PrivilegeSet, Stop> {
    let mut set = PrivilegeSet::NONE;
    for privilege in privileges {
        if !privilege.columns.is_empty() {
            return Err(ClientError::not_supported(&"column privileges").into());
        }
        match privilege.name.as_str() {
            "ALL" | "ALL PRIVILEGES" => set |= level.all(),
            "USAGE" | "GRANT OPTION" => {}
            name => {
                let one = Privilege::from_name(name)
                    .ok_or_else(|| ClientError::not_supported(&format!("GRANT {name}")))?;
                let one = PrivilegeSet::of(&[one]);
                if !level.all().includes(one) {
                    return Err(illegal_grant(level).into());
                }
                set |= one;
            }
        }
    }
    Ok(set)
}

/// The error for a privilege that does not exist at the level.
fn illegal_grant(level: &GrantLevel) -> ClientError {
    match level {
        GrantLevel::Table(..) | GrantLevel::Routine(_) => {
            ClientError::new(errcode::ER_ILLEGAL_GRANT_FOR_TABLE, &[])
        }
        GrantLevel::Global | GrantLevel::Database(_) => {
            let code = errcode::ER_WRONG_USAGE;
            ClientError::new(code, &[&"DB GRANT", &"GLOBAL PRIVILEGES"])
        }
    }
}

fn fresh_account(name: AccountName) -> Account {
    let credential = Credential {
        plugin: DEFAULT_PLUGIN.to_owned(),
        hash: String::new(),
    };
    Account {
        name,
        credential,
        locked: false,
        requires_tls: false,
        grants: Grants::default(),
    }
}

/// Whether the options set anything of an account.
fn has_any(options: &AccountOptions) -> bool {
    !options.require.is_empty()
        || !options.limits.is_empty()
        || options.password_expire.is_some()
        || options.locked.is_some()
}

fn apply_options(options: &AccountOptions, account: &mut Account) -> Result<(), Stop> {
    for (requirement, _) in &options.require {
        match requirement.as_str() {
            "NONE" => account.requires_tls = false,
            "SSL" => account.requires_tls = true,
            other => return Err(ClientError::not_supported(&format!("REQUIRE {other}")).into()),
        }
    }
    if let Some((limit, _)) = options.limits.first() {
        return Err(ClientError::not_supported(limit).into());
    }
    if let Some(refused) = &options.password_expire {
        return Err(ClientError::not_supported(&refused.name).into());
    }
    if let Some(locked) = options.locked {
        account.locked = locked;
    }
    Ok(())
}

fn check_name(name: &AccountName) -> Result<(), ClientError> {
    if USER_NAME_CHARS_MAX < name.user.chars().count() {
        let limit = USER_NAME_CHARS_MAX;
        return Err(ClientError::new(
            ER_WRONG_STRING_LENGTH,
            &[&name.user, &"user name", &limit],
        ));
    }
    if HOST_BYTES_MAX < name.host.len() {
        let limit = HOST_BYTES_MAX;
        return Err(ClientError::new(
            ER_WRONG_STRING_LENGTH,
            &[&name.host, &"host name", &limit],
        ));
    }
    Ok(())
}

fn cannot(what: &str, name: &AccountName) -> Stop {
    cannot_error(what, name).into()
}

fn cannot_error(what: &str, name: &AccountName) -> ClientError {
    let quoted = format!("'{}'@'{}'", name.user, name.host);
    ClientError::new(ER_CANNOT_USER, &[&what, &quoted])
}
