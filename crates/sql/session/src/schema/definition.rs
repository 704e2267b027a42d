//! CREATE, ALTER, RENAME, TRUNCATE, and DROP of databases. Each commits the open transaction,
//! changes the schema under an exclusive metadata lock, and is durable when it is acknowledged.

use std::rc::Rc;
use std::sync::Arc;

use catalog::information_schema::INFORMATION_SCHEMA;
use catalog::{Privilege, table_options};
use errcode::{
    ClientError, ER_BAD_DB_ERROR, ER_DB_CREATE_EXISTS, ER_DB_DROP_EXISTS, ER_DUP_KEYNAME,
    ER_MULTIPLE_PRI_KEY, ER_NONUNIQ_TABLE, ER_TABLE_EXISTS_ERROR, ER_UNKNOWN_STORAGE_ENGINE,
    ER_WRONG_COLUMN_NAME, ER_WRONG_DB_NAME, ER_WRONG_TABLE_NAME, ErrorCode,
};
use store::{
    ColumnDefault, ColumnDefinition, SchemaStore, StoreError, TableDefinition, TableId, TableName,
    Uniqueness,
};
use syntax::ast::{self, CreateTable, ObjectName, StatementKind, TableConstraint, TableOption};
use value::{CollationId, Level, SqlCondition};

use crate::connection::reply::{Done, Reply, Stop};
use crate::connection::session::Session;
use crate::define::{self, checked_name, collation_of};
use crate::lock::metadata::{DatabaseHold, ExclusiveHold, Mode, database_lock};
use crate::schema::create_select::Replaced;
use crate::schema::create_select::with_selected;
use crate::worker::parsed::Parsed;

impl Session {
    /// Answers a statement that changes definitions.
    pub(crate) async fn definition_statement(&mut self, parsed: &Parsed) -> Result<Reply, Stop> {
        if let StatementKind::Drop(drop) = &parsed.statement.kind
            && drop.temporary
            && drop.what == ast::Dropped::Table
        {
            self.drop_temporary_tables(drop)?;
            return Ok(Reply::Ok(Done::default()));
        }
        self.check_may_write()?;
        self.commit().await?;
        if is_refused_under_locks(&parsed.statement.kind) {
            self.check_no_locks()?;
        }
        let mut affected_rows = 0;
        match &parsed.statement.kind {
            StatementKind::CreateDatabase(create) => {
                affected_rows = self.create_database(create).await?;
            }
            StatementKind::DropDatabase { name, if_exists } => {
                affected_rows = self.drop_database(&name.text, *if_exists).await?;
            }
            StatementKind::CreateTable(create) => return self.create_table(create, parsed).await,
            StatementKind::Drop(drop) => self.drop_named(drop).await?,
            StatementKind::RenameTables(renames) => self.rename_tables(renames).await?,
            StatementKind::Truncate(name) => self.truncate(name).await?,
            StatementKind::CreateIndex(create) => {
                let actions = creating(create);
                self.alter(&create.table, &actions, Privilege::Index, parsed)
                    .await?;
            }
            StatementKind::DropIndex(drop) => {
                let actions = dropping(drop);
                self.alter(&drop.table, &actions, Privilege::Index, parsed)
                    .await?;
            }
            StatementKind::AlterTable(alter) => {
                self.alter(&alter.name, &alter.actions, Privilege::Alter, parsed)
                    .await?;
            }
            StatementKind::AlterDatabase { .. } => {
                return Err(ClientError::not_supported(&"ALTER DATABASE").into());
            }
            StatementKind::CreateView(_) => {
                return Err(ClientError::not_supported(&"CREATE VIEW").into());
            }
            _ => return Err(ClientError::not_supported(&"this statement").into()),
        }
        let is_alter = matches!(
            parsed.statement.kind,
            StatementKind::AlterTable(_)
                | StatementKind::CreateIndex(_)
                | StatementKind::DropIndex(_)
        );
        let warning_count = self.warning_count();
        Ok(Reply::Ok(Done {
            info: if is_alter {
                format!("Records: 0  Duplicates: 0  Warnings: {warning_count}")
            } else {
                String::new()
            },
            affected_rows,
            ..Done::default()
        }))
    }

    /// The worker's store, owned, so that a change may outlive a borrow of the session.
    pub(crate) fn store(&self) -> Rc<dyn SchemaStore> {
        Rc::clone(&self.state.worker.schema)
    }

    /// Waits until no other session uses the table, and locks it.
    pub(crate) async fn change_table(
        &mut self,
        table: TableId,
    ) -> Result<Option<ExclusiveHold>, Stop> {
        if self.locked.has(table) {
            return Ok(None);
        }
        let worker = Rc::clone(&self.state.worker);
        let own = self.state.handle.id();
        let change = worker.metadata.change(&worker.server.metadata, table, own);
        let changed = self.wait_for_definition(table, Mode::Exclusive, change);
        changed.await.map(Some)
    }

    /// As [`Session::change_table`], by name. Returns the definition after the wait: meanwhile
    /// others may have changed the table or replaced it.
    pub(crate) async fn change_existing(
        &mut self,
        name: &TableName,
    ) -> Result<Option<(Arc<TableDefinition>, Option<ExclusiveHold>)>, Stop> {
        while let Some(table) = self.existing(name).map(|definition| definition.id) {
            let hold = self.change_table(table).await?;
            if let Some(definition) = self.existing(name)
                && definition.id == table
            {
                return Ok(Some((definition, hold)));
            }
        }
        Ok(None)
    }

    /// Keeps a database from being dropped while the statement puts a table into it.
    pub(crate) async fn hold_database(&mut self, name: &str) -> Result<DatabaseHold, Stop> {
        let id = database_lock(name);
        let worker = Rc::clone(&self.state.worker);
        let locks = &worker.server.metadata;
        let hold = match worker.metadata.try_hold(locks, id) {
            Some(hold) => hold,
            None => {
                let hold = worker.metadata.hold(locks, id);
                Box::pin(self.wait_for_definition(id, Mode::Shared, hold)).await?
            }
        };
        if self.state.worker.names().database(name).is_none() {
            return Err(ClientError::new(ER_BAD_DB_ERROR, &[&name]).into());
        }
        Ok(DatabaseHold::new(hold, locks, self.state.handle.id()))
    }

    /// Database and table of a name in a statement; the database exists.
    pub(crate) fn full_name(&self, name: &ObjectName) -> Result<TableName, ClientError> {
        let full = self.unchecked_name(name)?;
        if self.state.worker.names().database(&full.database).is_none() {
            return Err(ClientError::new(ER_BAD_DB_ERROR, &[&full.database]));
        }
        Ok(full)
    }

    /// Database and table of a name in a statement, whether the database exists or not.
    pub(crate) fn unchecked_name(&self, name: &ObjectName) -> Result<TableName, ClientError> {
        let database = match &name.schema {
            Some(schema) => schema.text.clone(),
            None => self.state.current_database()?.to_string(),
        };
        if database.eq_ignore_ascii_case(INFORMATION_SCHEMA) {
            return Err(self.state.database_denied(&database));
        }
        let table = checked_name(&name.name, ER_WRONG_TABLE_NAME)?;
        // Such tables are copies of an ALTER TABLE; the next start removes leftovers.
        if table.starts_with(store::COPY_NAME_PREFIX) {
            return Err(ClientError::new(ER_WRONG_TABLE_NAME, &[&table]));
        }
        Ok(TableName { database, table })
    }

    pub(crate) fn note(&self, code: ErrorCode, message: String) {
        let diagnostics = self.state.diagnostics.borrow();
        diagnostics
            .warnings()
            .push(Level::Note, SqlCondition::with_message(code, message));
    }

    pub(crate) fn tell(&self, level: Level, error: ClientError) {
        self.state.diagnostics.borrow().push(level, error);
    }

    /// Returns the affected rows to report: 1, or 2 if another database was replaced.
    async fn create_database(&mut self, create: &ast::CreateDatabase) -> Result<u64, Stop> {
        let name = checked_name(&create.name, ER_WRONG_DB_NAME)?;
        self.check_database_privilege(Privilege::Create, &name)?;
        let is_there = self.state.worker.names().database(&name).is_some()
            || name.eq_ignore_ascii_case("information_schema");
        let options = &create.options;
        let collation = collation_of(
            options.charset.as_ref(),
            options.collation.as_ref(),
            self.server_collation(),
        )?;
        let mut affected_rows = 1;
        if is_there && create.or_replace {
            self.drop_database(&name, false).await?;
            affected_rows = 2;
        } else if is_there {
            let error = ClientError::new(ER_DB_CREATE_EXISTS, &[&name]);
            if !create.if_not_exists {
                return Err(error.into());
            }
            self.note(ER_DB_CREATE_EXISTS, error.message);
            return Ok(0);
        }
        let store = self.store();
        store.create_database(&name, collation).await?;
        Ok(affected_rows)
    }

    fn server_collation(&self) -> CollationId {
        let variables = self.state.variables.borrow();
        CollationId::from_name(variables.settings().text("collation_server"))
            .unwrap_or(CollationId::UTF8MB4_GENERAL_CI)
    }

    /// Returns the affected rows to report: how many tables were dropped.
    async fn drop_database(&mut self, name: &str, if_exists: bool) -> Result<u64, Stop> {
        self.check_database_privilege(Privilege::Drop, name)?;
        let absent = || ClientError::new(ER_DB_DROP_EXISTS, &[&name]);
        if self.state.worker.names().database(name).is_none() {
            if !if_exists {
                return Err(absent().into());
            }
            self.note(ER_DB_DROP_EXISTS, absent().message);
            return Ok(0);
        }
        // Sessions that are putting a table into it finish first, and no other begins. Others may
        // drop tables meanwhile.
        let _database = self.change_table(database_lock(name)).await?;
        self.drop_routines_of(name).await?;
        let store = self.store();
        let mut dropped_count = 0;
        while let Some(id) = self.any_table_of(name) {
            let _hold = self.change_table(id).await?;
            match store.drop_table(id).await {
                Ok(()) => dropped_count += 1,
                Err(StoreError::NoSuchTable) => {}
                Err(error) => return Err(error.into()),
            }
        }
        match store.drop_database(name).await {
            Ok(()) => {}
            Err(StoreError::NoSuchTable) if if_exists => {}
            Err(StoreError::NoSuchTable) => return Err(absent().into()),
            Err(error) => return Err(error.into()),
        }
        let is_current = self.state.database().as_deref() == Some(name);
        if is_current {
            self.state.set_database(None);
            self.state.handle.update(|line| line.database = None);
            self.follow_database(self.server_collation())?;
            self.track_schema();
        }
        Ok(dropped_count)
    }

    /// Any one of the database's tables.
    fn any_table_of(&self, database: &str) -> Option<TableId> {
        let names = self.state.worker.names();
        let tables = &names.database(database)?.tables;
        tables.values().next().map(|table| table.id)
    }

    async fn create_table(&mut self, create: &CreateTable, parsed: &Parsed) -> Result<Reply, Stop> {
        if create.temporary {
            return Err(ClientError::not_supported(&"TEMPORARY table").into());
        }
        if let Some(refused) = create.period.as_ref().or(create.partitioning.as_ref()) {
            return Err(ClientError::not_supported(&refused.name).into());
        }
        let name = self.full_name(&create.name)?;
        self.check_table_privilege(Privilege::Create, &name)?;
        if create.query.is_some() {
            self.check_table_privilege(Privilege::Insert, &name)?;
        }
        self.check_may_define(&name)?;
        let _database = self.hold_database(&name.database).await?;
        let mut replaced = None;
        if create.or_replace {
            self.check_table_privilege(Privilege::Drop, &name)?;
            replaced = self.change_existing(&name).await?;
        } else if self.existing(&name).is_some() {
            self.tell_existing(create, &name)?;
            return Ok(Reply::Ok(Done::default()));
        }
        let selected = match &create.query {
            Some(query) => self.selected_columns(query, &name, parsed)?,
            None => Vec::new(),
        };
        let names: Vec<String> = selected.iter().map(|column| column.name.clone()).collect();
        let definition = match &create.like {
            Some(like) => self.like(like, name.clone())?,
            None => {
                let defined = self.defined_table(create, name.clone(), selected, parsed);
                defined.await?
            }
        };
        if create.query.is_some() {
            let filled = self.create_filled(create, definition, &names, replaced, parsed);
            return Box::pin(filled).await;
        }
        self.create_empty(create.or_replace, definition, replaced)
            .await?;
        Ok(Reply::Ok(Done::default()))
    }

    /// Creates an empty table, or puts it in the place of the one that it replaces.
    async fn create_empty(
        &mut self,
        or_replace: bool,
        definition: TableDefinition,
        mut replaced: Option<Replaced>,
    ) -> Result<(), Stop> {
        let store = self.store();
        loop {
            if let Some((existing, _hold)) = replaced {
                return self.replace_by_empty(&existing, definition).await;
            }
            match store.create_table(definition.clone()).await {
                // Another session has created a table of this name meanwhile.
                Err(StoreError::TableExists) if or_replace => {
                    replaced = self.change_existing(&definition.name).await?;
                }
                Err(StoreError::TableExists) => return Err(table_exists(&definition.name).into()),
                created => return Ok(created.map(drop)?),
            }
        }
    }

    /// Error 1050 for an existing table, or a note with IF NOT EXISTS.
    pub(crate) fn tell_existing(
        &self,
        create: &CreateTable,
        name: &TableName,
    ) -> Result<(), ClientError> {
        let error = table_exists(name);
        if !create.if_not_exists {
            return Err(error);
        }
        self.note(error.code, error.message);
        Ok(())
    }

    pub(crate) fn existing(&self, name: &TableName) -> Option<Arc<TableDefinition>> {
        self.state
            .worker
            .names()
            .table(&name.database, &name.table)
            .cloned()
    }

    fn like(&self, like: &ObjectName, name: TableName) -> Result<TableDefinition, Stop> {
        let other = self.usable_table(like)?;
        self.check_table_privilege(Privilege::Select, &other.name)?;
        if other.name == name {
            return Err(ClientError::new(ER_NONUNIQ_TABLE, &[&name.table]).into());
        }
        let definition = TableDefinition::clone(&other);
        let created_us = u64::try_from(self.state.worker.wall_us()).unwrap_or(0);
        let mut definition = TableDefinition {
            id: TableId::default(),
            name,
            auto_increment_start: 1,
            created_us,
            ..definition
        };
        definition.choose_clustered_key();
        Ok(definition)
    }

    /// The definition that `CREATE TABLE (..)` describes.
    async fn defined_table(
        &mut self,
        create: &CreateTable,
        name: TableName,
        selected: Vec<ColumnDefinition>,
        parsed: &Parsed,
    ) -> Result<TableDefinition, Stop> {
        let default = {
            let names = self.state.worker.names();
            names
                .database(&name.database)
                .map(|database| database.collation)
        };
        let default = default.unwrap_or_else(|| self.server_collation());
        let mut definition = TableDefinition {
            id: TableId::default(),
            version: 0,
            name,
            columns: Vec::new(),
            indexes: Vec::new(),
            collation: table_collation(&create.options, default)?,
            auto_increment_start: 1,
            comment: String::new(),
            options: Vec::new(),
            created_us: u64::try_from(self.state.worker.wall_us()).unwrap_or(0),
            view: None,
        };
        for option in &create.options {
            self.apply_option(option, &mut definition)?;
        }
        for column in &create.columns {
            let defined = self
                .defined_column(column, definition.collation, parsed)
                .await?;
            definition.columns.push(defined);
        }
        definition.columns = with_selected(definition.columns, selected)?;
        for column in &create.columns {
            for index in own_indexes(column) {
                add_index(&index, &mut definition)?;
            }
        }
        for constraint in &create.constraints {
            if let Some(note) = add_constraint(constraint, &mut definition)? {
                self.tell(Level::Note, note);
            }
        }
        self.finish(&mut definition)?;
        definition.choose_clustered_key();
        Ok(definition)
    }

    /// Checks and completes a whole definition, and notes what was changed.
    pub(crate) fn finish(&self, definition: &mut TableDefinition) -> Result<(), ClientError> {
        for note in define::finish(definition)? {
            self.note(note.code, note.message);
        }
        Ok(())
    }

    pub(crate) fn apply_option(
        &self,
        option: &TableOption,
        definition: &mut TableDefinition,
    ) -> Result<(), Stop> {
        match option {
            TableOption::Engine(engine) => {
                let is_known = [
                    "innodb", "plateau", "myisam", "aria", "memory", "csv", "archive",
                ]
                .contains(&engine.text.to_lowercase().as_str());
                if !is_known {
                    let error = ClientError::new(ER_UNKNOWN_STORAGE_ENGINE, &[&engine.text]);
                    return Err(error.into());
                }
                if !engine.is("innodb") && !engine.is("plateau") {
                    let code = errcode::ER_WARN_USING_OTHER_HANDLER;
                    let error = ClientError::new(code, &[&"InnoDB", &definition.name.table]);
                    self.note(code, error.message);
                }
            }
            TableOption::AutoIncrement(next) => definition.auto_increment_start = (*next).max(1),
            TableOption::Comment(text) => {
                definition.comment = String::from_utf8_lossy(text).into_owned();
            }
            TableOption::RowFormat(format) => {
                set_option(definition, "ROW_FORMAT".to_owned(), format);
            }
            TableOption::Refused(refused) => {
                return Err(ClientError::not_supported(&refused.name).into());
            }
            TableOption::Other { name, value } => {
                if let Some(name) = kept_name(name, value)? {
                    set_option(definition, name, value);
                }
            }
            TableOption::Charset(_) | TableOption::Collate(_) => {}
        }
        Ok(())
    }

    pub(crate) async fn defined_column(
        &mut self,
        column: &ast::ColumnDefinition,
        collation: CollationId,
        parsed: &Parsed,
    ) -> Result<ColumnDefinition, Stop> {
        let name = checked_name(&column.name, ER_WRONG_COLUMN_NAME)?;
        let unsupported = |what: &str| Stop::from(ClientError::not_supported(&what));
        if column.generated.is_some() {
            return Err(unsupported("generated column"));
        }
        if column.references.is_some() {
            return Err(unsupported("FOREIGN KEY"));
        }
        if let Some(refused) = &column.refused {
            return Err(unsupported(&refused.name));
        }
        define::no_engine_options(&column.others)?;
        let column_type = define::column_type(&name, &column.data_type, collation)?;
        if column_type.has_years_of_two_digits() {
            let code = errcode::ER_WARN_DEPRECATED_SYNTAX;
            let note = ClientError::new(code, &[&"YEAR(2)", &"YEAR(4)"]);
            self.note(code, note.message);
        }
        let is_json = define::is_json(column, column_type.kind)?;
        let is_key = column.primary_key;
        let nullable = column.nullable.unwrap_or(!is_key && !column.auto_increment);
        let mut defined = ColumnDefinition {
            name,
            column_type,
            nullable,
            default: ColumnDefault::None,
            on_update_now: column.on_update.is_some(),
            auto_increment: column.auto_increment,
            invisible: column.invisible,
            is_json,
            comment: String::from_utf8_lossy(column.comment.as_deref().unwrap_or_default())
                .into_owned(),
        };
        if defined.on_update_now && !has_clock(&defined) {
            let code = errcode::ER_INVALID_ON_UPDATE;
            return Err(ClientError::new(code, &[&defined.name]).into());
        }
        if let Some(default) = &column.default {
            defined.default = self.defined_default(default, &defined, parsed).await?;
        }
        Ok(defined)
    }

    async fn truncate(&mut self, name: &ObjectName) -> Result<(), Stop> {
        let name = self.usable_table(name)?.name.clone();
        let server = Arc::clone(&self.state.worker.server);
        if let Some(control) = server.control() {
            self.check_super()?;
            return self.order(control.empty_table(&name.table)).await;
        }
        self.check_table_privilege(Privilege::Drop, &name)?;
        self.check_may_define(&name)?;
        let Some((definition, _hold)) = self.change_existing(&name).await? else {
            return Err(no_such_table(&name).into());
        };
        let store = self.store();
        Ok(store.truncate_table(definition.id).await?)
    }
}

/// Statements that change more than the tables that LOCK TABLES may have locked.
fn is_refused_under_locks(kind: &StatementKind) -> bool {
    match kind {
        StatementKind::Drop(drop) => drop.what == ast::Dropped::View,
        kind => matches!(
            kind,
            StatementKind::CreateDatabase(_)
                | StatementKind::DropDatabase { .. }
                | StatementKind::AlterDatabase { .. }
                | StatementKind::CreateView(_)
                | StatementKind::RenameTables(_)
        ),
    }
}

/// Error 1050.
pub(crate) fn table_exists(name: &TableName) -> ClientError {
    ClientError::new(ER_TABLE_EXISTS_ERROR, &[&name.table])
}

/// CREATE INDEX as steps of ALTER TABLE.
fn creating(create: &ast::CreateIndex) -> Vec<ast::AlterAction> {
    let index = create.index.clone();
    let replaced = index.name.clone().filter(|_| create.or_replace);
    let mut actions = create.asked.clone();
    actions.extend(replaced.map(|index| ast::AlterAction::DropIndex {
        index,
        if_exists: true,
    }));
    let added = TableConstraint::Index(index);
    actions.push(ast::AlterAction::AddConstraint(added));
    actions
}

/// DROP INDEX as steps of ALTER TABLE.
fn dropping(drop: &ast::DropIndex) -> Vec<ast::AlterAction> {
    let index = drop.name.clone();
    let mut actions = drop.asked.clone();
    actions.push(if index.is("PRIMARY") {
        ast::AlterAction::DropPrimaryKey
    } else {
        ast::AlterAction::DropIndex {
            index,
            if_exists: drop.if_exists,
        }
    });
    actions
}

/// Error 1146.
pub(crate) fn no_such_table(name: &TableName) -> ClientError {
    ClientError::new(errcode::ER_NO_SUCH_TABLE, &[&name.database, &name.table])
}

/// The indexes that a column's attributes define.
pub(crate) fn own_indexes(column: &ast::ColumnDefinition) -> Vec<ast::IndexDefinition> {
    let index = |kind| ast::IndexDefinition {
        kind,
        name: None,
        if_not_exists: false,
        parts: vec![ast::IndexPart {
            column: column.name.clone(),
            length: None,
            descending: false,
        }],
        options: ast::IndexOptions::default(),
        refused: None,
    };
    let primary = column.primary_key.then(|| index(ast::IndexKind::Primary));
    let unique = column.unique.then(|| index(ast::IndexKind::Unique));
    primary.into_iter().chain(unique).collect()
}

/// Stores an option; it replaces an earlier one of the same name.
fn set_option(definition: &mut TableDefinition, name: String, value: &str) {
    let options = &mut definition.options;
    options.retain(|(known, _)| *known != name);
    // In CONNECTION, `default` may be the client's own text.
    if name == "CONNECTION" || !value.eq_ignore_ascii_case("default") {
        options.push((name, value.to_owned()));
    }
}

/// The name under which a table's option is stored, or `None` if it is ignored. Error 1235 for an
/// option that decides where rows are stored, or that encrypts them: ignoring it would be wrong.
/// Error 1911 for an unknown one.
fn kept_name(written: &str, value: &str) -> Result<Option<String>, ClientError> {
    let is_off = ["NO", "OFF", "N", "0"]
        .iter()
        .any(|off| off.eq_ignore_ascii_case(value));
    let name = written.to_ascii_uppercase();
    match name.as_str() {
        "ENCRYPTED" | "ENCRYPTION" if !is_off => Err(ClientError::not_supported(&name)),
        "DATA DIRECTORY" | "INDEX DIRECTORY" | "SEQUENCE" => Err(ClientError::not_supported(&name)),
        // As in MariaDB, these are parsed and ignored.
        "PASSWORD" | "STORAGE" | "TABLESPACE" => Ok(None),
        known if table_options::is_stored(known) => Ok(Some(name)),
        _ => Err(ClientError::new(errcode::ER_UNKNOWN_OPTION, &[&written])),
    }
}

/// Adds an index, or returns a note if it exists and IF NOT EXISTS was given.
pub(crate) fn add_index(
    index: &ast::IndexDefinition,
    definition: &mut TableDefinition,
) -> Result<Option<ClientError>, ClientError> {
    if index.if_not_exists
        && let Some(note) = index_is_there(index, definition)
    {
        return Ok(Some(note));
    }
    let defined = define::index(index, &definition.columns, &definition.indexes)?;
    definition.indexes.push(defined);
    Ok(None)
}

/// The note of ADD INDEX IF NOT EXISTS if the index exists.
fn index_is_there(
    index: &ast::IndexDefinition,
    definition: &TableDefinition,
) -> Option<ClientError> {
    let mut others = definition.indexes.iter();
    if index.kind == ast::IndexKind::Primary {
        others.find(|other| other.uniqueness == Uniqueness::Primary)?;
        // The number does not match the text, in MariaDB too.
        let mut note = ClientError::new(ER_MULTIPLE_PRI_KEY, &[]);
        note.code = ER_DUP_KEYNAME;
        return Some(note);
    }
    let name = index.name.as_ref()?;
    others.find(|other| name.is(&other.name))?;
    Some(ClientError::new(ER_DUP_KEYNAME, &[&name.text]))
}

/// The same for any constraint.
pub(crate) fn add_constraint(
    constraint: &TableConstraint,
    definition: &mut TableDefinition,
) -> Result<Option<ClientError>, ClientError> {
    match constraint {
        TableConstraint::Index(index) => add_index(index, definition),
        TableConstraint::ForeignKey(_) => Err(ClientError::not_supported(&"FOREIGN KEY")),
        TableConstraint::Check { .. } => Err(ClientError::not_supported(&"CHECK constraint")),
    }
}

/// The collation that the options set for the table.
pub(crate) fn table_collation(
    options: &[TableOption],
    default: CollationId,
) -> Result<CollationId, ClientError> {
    let (mut charset, mut collation) = (None, None);
    for option in options {
        match option {
            TableOption::Charset(name) => charset = name.as_ref(),
            TableOption::Collate(name) => collation = Some(name),
            _ => {}
        }
    }
    collation_of(charset, collation, default)
}

/// True if the current time can be the column's automatic value.
pub(crate) fn has_clock(column: &ColumnDefinition) -> bool {
    let kind = column.column_type.kind;
    matches!(kind, value::TypeKind::Timestamp | value::TypeKind::DateTime)
}
