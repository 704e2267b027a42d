//! SHOW and DESCRIBE.
//!
//! Most of it is read from `information_schema`: the statement becomes a SELECT whose columns have
//! SHOW's names, so LIKE and WHERE work everywhere. What only the session knows is written
//! directly.

mod privileges;

use std::fmt::Display;

use catalog::information_schema::{self, show_create_table};
use catalog::{Privilege, PrivilegeSet};
use errcode::{
    ClientError, ER_BAD_DB_ERROR, ER_NO_BINARY_LOGGING, ER_NO_SUCH_TABLE,
    ER_UNKNOWN_STORAGE_ENGINE, ER_WRONG_OBJECT,
};
use planner::OutputColumn;
use store::TableName;
use syntax::ast::{
    self, Explain, ObjectName, RoutineKind, Show, ShowFilter, ShowKind, VariableScope,
};
use syntax::print::{quoted_name, quoted_string};
use value::{Level, Value};
use wire::StatusFlags;

use crate::connection::reply::{Done, Reply, Stop};
use crate::connection::session::Session;
use crate::connection::sink::{ResultState, number_column, text_column};
use crate::server::control::{Control, Properties};
use crate::server::engine_status;
use crate::statement::statement_run::StatementRun;
use crate::statement::virtual_store::{processes, table_facts};
use crate::worker::parsed::Parsed;

/// The default of a column as SHOW COLUMNS shows it: a text without its quotes, except for the
/// types whose defaults are expressions.
const BARE_DEFAULT: &str = "CASE WHEN COLUMN_DEFAULT = 'NULL' THEN NULL \
    WHEN DATA_TYPE LIKE '%text' OR DATA_TYPE LIKE '%blob' THEN COLUMN_DEFAULT \
    WHEN LEFT(COLUMN_DEFAULT, 1) = '''' THEN REPLACE(SUBSTRING(COLUMN_DEFAULT, 2, \
    CHAR_LENGTH(COLUMN_DEFAULT) - 2), '''''', '''') ELSE COLUMN_DEFAULT END";

/// Any of these privileges on a table lets an account see its definition.
const DEFINITION_SHOWN_TO: PrivilegeSet = PrivilegeSet::of(&[
    Privilege::Select,
    Privilege::Insert,
    Privilege::Update,
    Privilege::Delete,
    Privilege::Create,
    Privilege::Drop,
    Privilege::References,
    Privilege::Index,
    Privilege::Alter,
    Privilege::CreateView,
    Privilege::ShowView,
    Privilege::Trigger,
]);

/// The engines that SHOW ENGINE knows. The first is the server's own, by MariaDB's name.
const ENGINES: [&str; 7] = [
    "InnoDB",
    "ALL",
    "Aria",
    "CSV",
    "MEMORY",
    "MRG_MyISAM",
    "MyISAM",
];

/// A SHOW statement as a SELECT over `information_schema`.
struct Asked {
    /// `SELECT .. FROM .. [WHERE ..]`, without ORDER BY.
    select: String,
    /// The column that LIKE applies to, and its collation.
    like: String,
    collate: &'static str,
    /// ORDER BY, or nothing.
    order: &'static str,
}

/// The name of a column followed by the pattern of LIKE, the heading of MySQL's lists of names.
fn headed(column: &str, filter: Option<&ShowFilter>) -> String {
    match filter {
        Some(ShowFilter::Like(pattern)) => {
            format!("{column} ({})", String::from_utf8_lossy(pattern))
        }
        Some(ShowFilter::Where(_)) | None => column.to_owned(),
    }
}

fn asked_databases(filter: Option<&ShowFilter>) -> Asked {
    let column = headed("Database", filter);
    let shown = quoted_name(&column);
    let select = format!("SELECT SCHEMA_NAME AS {shown} FROM information_schema.SCHEMATA");
    Asked::new(select, column, " ORDER BY 1").by_case()
}

/// A text as a literal that every `sql_mode` reads alike.
fn text_in_any_mode(text: &str) -> String {
    let quoted = quoted_string(text);
    if !quoted.contains('\\') {
        return quoted;
    }
    let bytes = text.bytes().map(|byte| format!("{byte:02x}"));
    format!("_utf8mb4 x'{}'", bytes.collect::<String>())
}

impl Asked {
    fn new(select: impl Into<String>, like: impl Into<String>, order: &'static str) -> Self {
        Self {
            select: select.into(),
            like: like.into(),
            collate: "",
            order,
        }
    }

    /// Compares by case, as names of databases and tables are compared.
    fn by_case(self) -> Self {
        let collate = " COLLATE utf8mb3_bin";
        Self { collate, ..self }
    }

    /// The whole statement with the filter of the SHOW.
    fn text(&self, filter: Option<&ShowFilter>, parsed: &Parsed) -> String {
        let Self {
            select,
            like,
            collate,
            order,
        } = self;
        let condition = match filter {
            None => String::new(),
            Some(ShowFilter::Like(pattern)) => {
                let (name, pattern) = (quoted_name(like), String::from_utf8_lossy(pattern));
                // A backslash escapes in it, whatever `sql_mode` says.
                let pattern = text_in_any_mode(&pattern);
                format!(" WHERE {name}{collate} LIKE {pattern} ESCAPE x'5c'")
            }
            Some(ShowFilter::Where(condition)) => {
                let source = String::from_utf8_lossy(parsed.source(condition.span));
                format!(" WHERE {source}")
            }
        };
        format!("SELECT * FROM ({select}) AS shown{condition}{order}")
    }
}

impl Session {
    /// Answers SHOW.
    pub(crate) async fn show_statement(
        &mut self,
        show: &Show,
        parsed: &Parsed,
        run: &mut StatementRun,
    ) -> Result<Reply, Stop> {
        if let Some(asked) = self.asked(&show.kind, show.filter.as_ref())? {
            let text = asked.text(show.filter.as_ref(), parsed);
            let select = self.parse_as(text.as_bytes(), parsed.text.strings)?;
            return self.planned(&select, (&[], &[]), run).await;
        }
        match &show.kind {
            ShowKind::CreateRoutine(kind, name) => self.show_create_routine(*kind, name, run),
            ShowKind::CreateTable(name) => self.show_create_table(name, run),
            ShowKind::CreateView(name) => {
                let TableName { database, table } = &self.table_named(name)?.name;
                let facts: [&dyn Display; 3] = [database, table, &"VIEW"];
                Err(ClientError::new(ER_WRONG_OBJECT, &facts).into())
            }
            ShowKind::CreateDatabase {
                name,
                if_not_exists,
            } => self.show_create_database(&name.text, *if_not_exists, run),
            ShowKind::Warnings(limit) => self.show_warnings(limit.as_ref(), Level::Note, run),
            ShowKind::Errors(limit) => self.show_warnings(limit.as_ref(), Level::Error, run),
            ShowKind::CountWarnings => {
                let count = self.state.diagnostics.borrow().warnings().count();
                self.write_number("@@session.warning_count", count, run)
            }
            ShowKind::CountErrors => {
                let count = self.state.error_count();
                self.write_number("@@session.error_count", count, run)
            }
            ShowKind::Grants(user) => self.show_grants(user.as_ref(), run),
            ShowKind::CreateUser(user) => self.show_create_user(user.as_ref(), run),
            ShowKind::MasterStatus => self.write_empty(
                &["File", "Position", "Binlog_Do_DB", "Binlog_Ignore_DB"],
                run,
            ),
            ShowKind::BinaryLogs => Err(ClientError::new(ER_NO_BINARY_LOGGING, &[]).into()),
            ShowKind::ReplicaStatus => self.write_empty(&["Slave_IO_State", "Master_Host"], run),
            ShowKind::OpenTables(_) => {
                self.write_empty(&["Database", "Table", "In_use", "Name_locked"], run)
            }
            ShowKind::Profiles => self.write_empty(&["Query_ID", "Duration", "Query"], run),
            ShowKind::Refused(refused) => Err(ClientError::not_supported(&refused.name).into()),
            ShowKind::Engine { name, what } => self.show_engine(&name.text, what, run),
            ShowKind::Privileges => self.show_privileges(run),
            _ => Err(ClientError::not_supported(&"this SHOW statement").into()),
        }
    }

    /// The SELECT that answers the statement, if `information_schema` has the data.
    fn asked(&self, kind: &ShowKind, filter: Option<&ShowFilter>) -> Result<Option<Asked>, Stop> {
        Ok(Some(match kind {
            ShowKind::Databases => asked_databases(filter),
            ShowKind::Tables { full, schema } => {
                self.asked_tables(*full, schema.as_ref(), filter)?
            }
            ShowKind::TableStatus(schema) => self.asked_table_status(schema.as_ref())?,
            ShowKind::Columns { full, table } => self.asked_columns(*full, table)?,
            ShowKind::Index(table) => self.asked_index(table)?,
            ShowKind::Variables(scope) => Asked::new(
                format!(
                    "SELECT LOWER(VARIABLE_NAME) AS Variable_name, VARIABLE_VALUE AS `Value` \
                     FROM information_schema.{}_VARIABLES",
                    scope_word(*scope)
                ),
                "Variable_name",
                " ORDER BY BINARY Variable_name",
            ),
            ShowKind::Status(scope) => Asked::new(
                format!(
                    "SELECT CONCAT(LEFT(VARIABLE_NAME, 1), LOWER(SUBSTRING(VARIABLE_NAME, 2))) \
                     AS Variable_name, VARIABLE_VALUE AS `Value` \
                     FROM information_schema.{}_STATUS",
                    scope_word(*scope)
                ),
                "Variable_name",
                " ORDER BY BINARY Variable_name",
            ),
            ShowKind::Processlist { full } => Asked::new(
                format!(
                    "SELECT ID AS Id, USER AS User, HOST AS Host, DB AS db, COMMAND AS Command, \
                     TIME AS Time, STATE AS State, {} AS Info, PROGRESS AS Progress \
                     FROM information_schema.PROCESSLIST",
                    if *full { "INFO" } else { "LEFT(INFO, 100)" }
                ),
                "Id",
                "",
            ),
            ShowKind::Engines => Asked::new(
                "SELECT ENGINE AS Engine, SUPPORT AS Support, COMMENT AS Comment, \
                 TRANSACTIONS AS Transactions, XA, SAVEPOINTS AS Savepoints \
                 FROM information_schema.ENGINES",
                "Engine",
                "",
            ),
            ShowKind::CharacterSets => Asked::new(
                "SELECT CHARACTER_SET_NAME AS Charset, DESCRIPTION AS Description, \
                 DEFAULT_COLLATE_NAME AS `Default collation`, MAXLEN AS Maxlen \
                 FROM information_schema.CHARACTER_SETS",
                "Charset",
                "",
            ),
            ShowKind::Collations => Asked::new(
                "SELECT COLLATION_NAME AS Collation, CHARACTER_SET_NAME AS Charset, ID AS Id, \
                 IS_DEFAULT AS `Default`, IS_COMPILED AS Compiled, SORTLEN AS Sortlen \
                 FROM information_schema.COLLATIONS",
                "Collation",
                "",
            ),
            ShowKind::Plugins => Asked::new(
                "SELECT PLUGIN_NAME AS Name, PLUGIN_STATUS AS Status, PLUGIN_TYPE AS Type, \
                 PLUGIN_LIBRARY AS Library, PLUGIN_LICENSE AS License \
                 FROM information_schema.PLUGINS",
                "Name",
                "",
            ),
            kind => {
                self.check_may_ask_about_code(kind)?;
                return Ok(asked_about_code(kind));
            }
        }))
    }

    /// Error 1046 without a database. Error 1044 where the account may not know of events.
    fn check_may_ask_about_code(&self, kind: &ShowKind) -> Result<(), ClientError> {
        match kind {
            ShowKind::Triggers(schema) => self.database_of(schema.as_ref()).map(drop),
            ShowKind::Events(schema) => {
                let database = self.database_of(schema.as_ref())?;
                if database.eq_ignore_ascii_case(information_schema::INFORMATION_SCHEMA) {
                    return Ok(());
                }
                self.check_database_privilege(Privilege::Event, &database)
            }
            _ => Ok(()),
        }
    }

    /// The database that a statement names, or else the current one.
    fn database_of(&self, schema: Option<&ast::Ident>) -> Result<String, ClientError> {
        let name = match schema {
            Some(schema) => schema.text.clone(),
            None => self.state.current_database()?.to_string(),
        };
        let is_own = name.eq_ignore_ascii_case(information_schema::INFORMATION_SCHEMA);
        if !is_own && self.state.worker.names().database(&name).is_none() {
            return Err(ClientError::new(ER_BAD_DB_ERROR, &[&name]));
        }
        Ok(if is_own {
            information_schema::INFORMATION_SCHEMA.to_owned()
        } else {
            name
        })
    }

    fn asked_tables(
        &self,
        full: bool,
        schema: Option<&ast::Ident>,
        filter: Option<&ShowFilter>,
    ) -> Result<Asked, ClientError> {
        let database = self.database_of(schema)?;
        let column = headed(&format!("Tables_in_{database}"), filter);
        let shown = quoted_name(&column);
        let type_column = if full {
            ", TABLE_TYPE AS Table_type"
        } else {
            ""
        };
        let of = text_in_any_mode(&database);
        let select = format!(
            "SELECT TABLE_NAME AS {shown}{type_column} FROM information_schema.TABLES \
             WHERE TABLE_SCHEMA = {of}"
        );
        Ok(Asked::new(select, column, " ORDER BY 1").by_case())
    }

    fn asked_table_status(&self, schema: Option<&ast::Ident>) -> Result<Asked, ClientError> {
        let of = text_in_any_mode(&self.database_of(schema)?);
        let select = format!(
            "SELECT TABLE_NAME AS Name, ENGINE AS Engine, VERSION AS Version, \
             ROW_FORMAT AS Row_format, TABLE_ROWS AS `Rows`, AVG_ROW_LENGTH AS Avg_row_length, \
             DATA_LENGTH AS Data_length, MAX_DATA_LENGTH AS Max_data_length, \
             INDEX_LENGTH AS Index_length, DATA_FREE AS Data_free, \
             AUTO_INCREMENT AS Auto_increment, CREATE_TIME AS Create_time, \
             UPDATE_TIME AS Update_time, CHECK_TIME AS Check_time, \
             TABLE_COLLATION AS Collation, CHECKSUM AS Checksum, \
             CREATE_OPTIONS AS Create_options, TABLE_COMMENT AS Comment, \
             MAX_INDEX_LENGTH AS Max_index_length, TEMPORARY AS Temporary \
             FROM information_schema.TABLES WHERE TABLE_SCHEMA = {of}"
        );
        Ok(Asked::new(select, "Name", " ORDER BY 1").by_case())
    }

    fn asked_columns(&self, full: bool, table: &ObjectName) -> Result<Asked, ClientError> {
        let definition = self.described_table(table)?;
        let (collation, tail) = if full {
            (
                ", COLLATION_NAME AS Collation",
                ", PRIVILEGES AS Privileges, COLUMN_COMMENT AS Comment",
            )
        } else {
            ("", "")
        };
        let select = format!(
            "SELECT COLUMN_NAME AS Field, COLUMN_TYPE AS Type{collation}, IS_NULLABLE AS `Null`, \
             COLUMN_KEY AS `Key`, {BARE_DEFAULT} AS `Default`, EXTRA AS Extra{tail} \
             FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {}",
            text_in_any_mode(&definition.name.database),
            text_in_any_mode(&definition.name.table)
        );
        Ok(Asked::new(select, "Field", ""))
    }

    fn asked_index(&self, table: &ObjectName) -> Result<Asked, ClientError> {
        let definition = self.described_table(table)?;
        let select = format!(
            "SELECT TABLE_NAME AS `Table`, NON_UNIQUE AS Non_unique, INDEX_NAME AS Key_name, \
             SEQ_IN_INDEX AS Seq_in_index, COLUMN_NAME AS Column_name, COLLATION AS Collation, \
             CARDINALITY AS Cardinality, SUB_PART AS Sub_part, PACKED AS Packed, \
             NULLABLE AS `Null`, INDEX_TYPE AS Index_type, COMMENT AS Comment, \
             INDEX_COMMENT AS Index_comment, IGNORED AS Ignored \
             FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {}",
            text_in_any_mode(&definition.name.database),
            text_in_any_mode(&definition.name.table)
        );
        Ok(Asked::new(select, "Key_name", ""))
    }

    /// The definition of a named table, or error 1146.
    pub(crate) fn table_named(
        &self,
        name: &ObjectName,
    ) -> Result<std::sync::Arc<store::TableDefinition>, ClientError> {
        let TableName { database, table } = &self.named_table(name)?;
        if database.eq_ignore_ascii_case(information_schema::INFORMATION_SCHEMA)
            && let Some(definition) = information_schema::definition(table)
        {
            return Ok(std::sync::Arc::clone(definition));
        }
        let names = self.state.worker.names();
        let visible = self.state.privileges().on_table(database, table);
        if visible.is_empty() {
            return Err(self.state.table_denied("SELECT", database, table));
        }
        names
            .table(database, table)
            .cloned()
            .ok_or_else(|| ClientError::new(ER_NO_SUCH_TABLE, &[database, table]))
    }

    /// The definition of a table whose columns and indexes are asked for. Error 1142 if the account
    /// may only know that the table exists.
    fn described_table(
        &self,
        name: &ObjectName,
    ) -> Result<std::sync::Arc<store::TableDefinition>, ClientError> {
        let TableName { database, table } = &self.named_table(name)?;
        let is_own = database.eq_ignore_ascii_case(information_schema::INFORMATION_SCHEMA);
        if !is_own && !self.state.privileges().describes_table(database, table) {
            return Err(self.state.table_denied("SELECT", database, table));
        }
        self.table_named(name)
    }

    /// Database and table as a statement names them, there or not.
    fn named_table(&self, name: &ObjectName) -> Result<TableName, ClientError> {
        let database = match &name.schema {
            Some(schema) => schema.text.clone(),
            None => self.state.current_database()?.to_string(),
        };
        let table = name.name.text.clone();
        Ok(TableName { database, table })
    }

    fn show_create_table(
        &mut self,
        name: &ObjectName,
        run: &mut StatementRun,
    ) -> Result<Reply, Stop> {
        let TableName { database, table } = &self.named_table(name)?;
        let is_own = database.eq_ignore_ascii_case(information_schema::INFORMATION_SCHEMA);
        let privileges = self.state.privileges().on_table(database, table);
        if !is_own && (privileges & DEFINITION_SHOWN_TO).is_empty() {
            return Err(self.state.table_denied("SHOW", database, table).into());
        }
        let definition = self.usable_table(name)?;
        let facts = table_facts(&*self.state.worker.store, &definition);
        let text = show_create_table(&definition, facts.next_auto_increment);
        let columns = [text_column("Table", 64), text_column("Create Table", 1024)];
        self.write_rows(
            &columns,
            vec![vec![text_value(&definition.name.table), text_value(&text)]],
            run,
        )
    }

    fn show_create_database(
        &mut self,
        name: &str,
        is_quiet: bool,
        run: &mut StatementRun,
    ) -> Result<Reply, Stop> {
        self.check_database_used(name)?;
        let names = self.state.worker.names();
        let Some(database) = names.database(name) else {
            return Err(ClientError::new(ER_BAD_DB_ERROR, &[&name]).into());
        };
        let quiet = if is_quiet {
            "/*!32312 IF NOT EXISTS*/ "
        } else {
            ""
        };
        let text = format!(
            "CREATE DATABASE {quiet}{} /*!40100 DEFAULT CHARACTER SET {} COLLATE {} */",
            quoted_name(name),
            database.collation.charset().name(),
            database.collation.name()
        );
        let columns = [
            text_column("Database", 64),
            text_column("Create Database", 1024),
        ];
        self.write_rows(
            &columns,
            vec![vec![text_value(name), text_value(&text)]],
            run,
        )
    }

    fn show_warnings(
        &mut self,
        limit: Option<&ast::Limit>,
        least: Level,
        run: &mut StatementRun,
    ) -> Result<Reply, Stop> {
        let diagnostics = std::rc::Rc::clone(&self.state.diagnostics.borrow());
        let (offset, count) = limit_of(limit)?;
        let rows = {
            let warnings = diagnostics.warnings();
            let entries = warnings.entries().iter();
            let wanted = entries.filter(|(level, _)| least != Level::Error || *level == least);
            wanted
                .skip(offset)
                .take(count)
                .map(|(level, noted)| {
                    let level = match level {
                        Level::Note => "Note",
                        Level::Warning => "Warning",
                        Level::Error => "Error",
                    };
                    let code = Value::Int(noted.code.number().into());
                    vec![text_value(level), code, text_value(&noted.message)]
                })
                .collect()
        };
        let columns = [
            text_column("Level", 7),
            number_column("Code"),
            text_column("Message", 512),
        ];
        Ok(match self.write_rows(&columns, rows, run)? {
            Reply::Rows(done) => Reply::Rows(Done {
                tells_warnings: true,
                ..done
            }),
            other => other,
        })
    }

    fn show_grants(
        &mut self,
        user: Option<&ast::UserName>,
        run: &mut StatementRun,
    ) -> Result<Reply, Stop> {
        let account = match user {
            None | Some(ast::UserName::Current) => self.state.account(),
            Some(user) => {
                let name = self.account_name_of(user);
                self.check_may_see_account(&name)?;
                let accounts = self.state.worker.server.accounts();
                let found = accounts.by_name(&name).cloned();
                found.ok_or_else(|| {
                    ClientError::new(errcode::ER_NONEXISTING_GRANT, &[&name.user, &name.host])
                })?
            }
        };
        let name = format!("Grants for {}@{}", account.name.user, account.name.host);
        let rows = account
            .show_grants()
            .iter()
            .map(|grant| vec![text_value(grant)])
            .collect();
        self.write_rows(&[text_column(&name, 1024)], rows, run)
    }

    /// EXPLAIN and DESCRIBE.
    pub(crate) async fn explain_statement(
        &mut self,
        explain: &Explain,
        parsed: &Parsed,
        run: &mut StatementRun,
    ) -> Result<Reply, Stop> {
        match explain {
            Explain::Table { table, column } => {
                let filter = column.clone().map(ShowFilter::Like);
                let kind = ShowKind::Columns {
                    full: false,
                    table: table.clone(),
                };
                let show = Show { kind, filter };
                self.show_statement(&show, parsed, run).await
            }
            Explain::Statement {
                analyze: false,
                json: false,
                ..
            } => self.planned(parsed, (&[], &[]), run).await,
            Explain::Statement { analyze: true, .. } => {
                Err(ClientError::not_supported(&"ANALYZE statement").into())
            }
            Explain::Statement { .. } => {
                Err(ClientError::not_supported(&"EXPLAIN FORMAT=JSON").into())
            }
            Explain::Connection(_) => {
                Err(ClientError::not_supported(&"EXPLAIN FOR CONNECTION").into())
            }
            Explain::Route(asked) => {
                self.explain_route(|control| control.explain_route(asked), run)
            }
            Explain::RouteOf(number) => {
                self.explain_route(|control| control.explain_connection(*number), run)
            }
        }
    }

    /// EXPLAIN ROUTE.
    fn explain_route(
        &mut self,
        ask: impl FnOnce(&dyn Control) -> Result<Properties, ClientError>,
        run: &mut StatementRun,
    ) -> Result<Reply, Stop> {
        let Some(control) = self.state.worker.server.control() else {
            return Err(ClientError::not_supported(&"EXPLAIN ROUTE").into());
        };
        let properties = ask(control)?.into_iter();
        let value = |it: Option<String>| it.map_or(Value::Null, |it| text_value(&it));
        let rows = properties.map(|(name, it)| vec![text_value(name), value(it)]);
        let columns = [text_column("property", 64), text_column("value", 1024)];
        self.write_rows(&columns, rows.collect(), run)
    }

    /// COM_FIELD_LIST: definitions without rows.
    pub(crate) fn field_list(&mut self, list: &wire::FieldList<'_>) -> Result<Reply, Stop> {
        let name = ObjectName {
            schema: None,
            name: ast::Ident::new(self.text_of(list.table)),
        };
        let definition = self.table_named(&name)?;
        let text = format!(
            "SELECT * FROM {}.{}",
            quoted_name(&definition.name.database),
            quoted_name(&definition.name.table)
        );
        let plan = self.plan(&self.parse(text.as_bytes())?, &[])?;
        let pattern = self.text_of(list.pattern);
        let like = |name: &str| {
            let collation = value::CollationId::UTF8MB4_GENERAL_CI;
            pattern.is_empty() || collation.like(name.as_bytes(), pattern.as_bytes(), None)
        };
        let columns: Vec<OutputColumn> = plan
            .columns
            .iter()
            .filter(|column| like(&column.name))
            .cloned()
            .collect();
        let charset = self.state.variables.borrow().active().results_charset;
        crate::connection::sink::write_field_list(&mut self.client, &columns, charset);
        Ok(Reply::Rows(Done::default()))
    }

    /// Writes a result that the server composes itself.
    pub(crate) fn write_rows(
        &mut self,
        columns: &[OutputColumn],
        rows: Vec<Vec<Value>>,
        run: &mut StatementRun,
    ) -> Result<Reply, Stop> {
        if run.described.is_some() {
            run.described = Some(columns.into());
            return Ok(Reply::Nothing);
        }
        let charset = self.state.variables.borrow().active().results_charset;
        let mut result = ResultState::new(run.protocol, charset, self.status());
        let written = result.write_all(columns, &rows, &mut self.client, &self.state);
        run.has_partial_rows = written.is_err();
        written.map_err(|failure| *failure)?;
        self.state.set_found_rows(rows.len() as u64);
        Ok(Reply::Rows(Done {
            status: StatusFlags::default(),
            ..Done::default()
        }))
    }

    /// SHOW ENGINE: InnoDB's status. Other engines of MariaDB have nothing to show.
    fn show_engine(
        &mut self,
        name: &str,
        what: &str,
        run: &mut StatementRun,
    ) -> Result<Reply, Stop> {
        let is_known = |known: &&str| known.eq_ignore_ascii_case(name);
        if !ENGINES.iter().any(is_known) {
            return Err(ClientError::new(ER_UNKNOWN_STORAGE_ENGINE, &[&name]).into());
        }
        self.check_global_privilege(Privilege::Process)?;
        let columns = [
            text_column("Type", 10),
            text_column("Name", 512),
            text_column("Status", 10),
        ];
        if !name.eq_ignore_ascii_case(ENGINES[0]) || what != "STATUS" {
            return self.write_rows(&columns, Vec::new(), run);
        }
        let worker = &self.state.worker;
        let processes = processes(&self.state);
        let numbers = worker.server.status(worker.steady_us());
        let history_length = numbers.get("Innodb_history_list_length");
        let status = engine_status::status(&engine_status::Shown {
            now_us: u64::try_from(worker.wall_us()).unwrap_or(0),
            activity: &worker.store.activity(),
            deadlock: self.last_deadlock_report(),
            history_length: history_length.copied().unwrap_or(0),
            processes: &processes,
        });
        let row = [ENGINES[0], "", &status].map(|text| Value::bytes(text.as_bytes()));
        self.write_rows(&columns, vec![row.to_vec()], run)
    }

    fn write_empty(&mut self, names: &[&str], run: &mut StatementRun) -> Result<Reply, Stop> {
        let columns: Vec<_> = names.iter().map(|name| text_column(name, 64)).collect();
        self.write_rows(&columns, Vec::new(), run)
    }

    fn write_number(
        &mut self,
        name: &str,
        number: u64,
        run: &mut StatementRun,
    ) -> Result<Reply, Stop> {
        let number = Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
        self.write_rows(&[number_column(name)], vec![vec![number]], run)
    }
}

/// Stored code and events: there are none, so the reply has only the columns.
fn asked_about_code(kind: &ShowKind) -> Option<Asked> {
    Some(match kind {
        ShowKind::Triggers(_) => Asked::new(
            "SELECT TRIGGER_NAME AS `Trigger`, EVENT_MANIPULATION AS Event, \
             EVENT_OBJECT_TABLE AS `Table`, ACTION_STATEMENT AS Statement, \
             ACTION_TIMING AS Timing, CREATED AS Created, SQL_MODE AS sql_mode, \
             DEFINER AS Definer, CHARACTER_SET_CLIENT AS character_set_client, \
             COLLATION_CONNECTION AS collation_connection, \
             DATABASE_COLLATION AS `Database Collation` FROM information_schema.TRIGGERS",
            "Table",
            "",
        ),
        ShowKind::Events(_) => Asked::new(
            "SELECT EVENT_SCHEMA AS Db, EVENT_NAME AS Name, DEFINER AS Definer, \
             TIME_ZONE AS `Time zone`, EVENT_TYPE AS Type, EXECUTE_AT AS `Execute at`, \
             INTERVAL_VALUE AS `Interval value`, INTERVAL_FIELD AS `Interval field`, \
             STARTS AS Starts, ENDS AS Ends, STATUS AS Status, ORIGINATOR AS Originator, \
             CHARACTER_SET_CLIENT AS character_set_client, \
             COLLATION_CONNECTION AS collation_connection, \
             DATABASE_COLLATION AS `Database Collation` FROM information_schema.EVENTS",
            "Name",
            "",
        ),
        ShowKind::RoutineStatus(kind) => {
            let of = kind.map_or("PACKAGE", RoutineKind::text);
            Asked::new(
                format!(
                    "SELECT ROUTINE_SCHEMA AS Db, ROUTINE_NAME AS Name, ROUTINE_TYPE AS Type, \
                     DEFINER AS Definer, LAST_ALTERED AS Modified, CREATED AS Created, \
                     SECURITY_TYPE AS Security_type, ROUTINE_COMMENT AS Comment, \
                     CHARACTER_SET_CLIENT AS character_set_client, \
                     COLLATION_CONNECTION AS collation_connection, \
                     DATABASE_COLLATION AS `Database Collation` \
                     FROM information_schema.ROUTINES WHERE ROUTINE_TYPE = '{of}'"
                ),
                "Name",
                "",
            )
        }
        _ => return None,
    })
}

fn scope_word(scope: Option<VariableScope>) -> &'static str {
    if scope == Some(VariableScope::Global) {
        "GLOBAL"
    } else {
        "SESSION"
    }
}

fn text_value(text: &str) -> Value {
    Value::bytes(text.as_bytes())
}

/// Offset and count of a LIMIT with plain numbers.
fn limit_of(limit: Option<&ast::Limit>) -> Result<(usize, usize), ClientError> {
    let Some(limit) = limit else {
        return Ok((0, usize::MAX));
    };
    let number = |bound: &ast::Expr| match &bound.kind {
        ast::ExprKind::Literal(ast::Literal::Integer(number)) => Some(*number),
        _ => None,
    };
    let wrong = || ClientError::not_supported(&"LIMIT with an expression here");
    let place = |number: Option<u64>| {
        number
            .and_then(|number| usize::try_from(number).ok())
            .ok_or_else(wrong)
    };
    let offset = limit
        .offset
        .as_ref()
        .map_or(Ok(0), |offset| place(number(offset)))?;
    let count = limit
        .count
        .as_ref()
        .map_or(Ok(usize::MAX), |count| place(number(count)))?;
    Ok((offset, count))
}
