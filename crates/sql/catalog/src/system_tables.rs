//! The accounts as tables of the database `mysql`: `user`, `db`, `tables_priv` and their like.
//!
//! Administration tools, monitors and proxies read accounts there. The tables have MariaDB 10.11's
//! columns, and their rows are made of the published accounts when they are read. Nobody writes
//! them: CREATE USER, GRANT and their like are the way. `global_priv` is the stored table's own
//! name ([`crate::account_record`]); SQL sees the one that is made here, with MariaDB's numbers.
//!
//! What MariaDB keeps and Plateau does not is empty: who granted a privilege, and when a password
//! was changed. Privileges to columns, roles and proxies are never granted, so their tables have no
//! rows.

use std::sync::{Arc, OnceLock};

use serde::Serialize;
use store::{ColumnDefault, ColumnDefinition, TableDefinition, TableId, TableName};
use syntax::ast::RoutineKind;
use value::{CollationId, ColumnType, DateTime, Decimal, TypeKind, Value};

use crate::account::{Account, Accounts, Credential, Grant};
use crate::account_record::ACCOUNT_TABLE;
use crate::privilege::{Privilege, PrivilegeSet};
use crate::stored_table::SYSTEM_DATABASE;
use crate::virtual_table::{RowSource, VirtualTable};

/// Ids of the tables here: no store gives out numbers so high, nor does `information_schema`.
const TABLE_ID_MIN: u64 = crate::VIRTUAL_TABLE_ID_MIN | 1 << 62;

/// Of which version of MariaDB the numbers in `global_priv` are: 10.11.0.
const VERSION_ID: u32 = 101_100;

/// The columns of privileges in `user`; `None` is the privilege to give on.
const GLOBAL_PRIVILEGES: &[(&str, Option<Privilege>)] = &[
    ("Select_priv", Some(Privilege::Select)),
    ("Insert_priv", Some(Privilege::Insert)),
    ("Update_priv", Some(Privilege::Update)),
    ("Delete_priv", Some(Privilege::Delete)),
    ("Create_priv", Some(Privilege::Create)),
    ("Drop_priv", Some(Privilege::Drop)),
    ("Reload_priv", Some(Privilege::Reload)),
    ("Shutdown_priv", Some(Privilege::Shutdown)),
    ("Process_priv", Some(Privilege::Process)),
    ("File_priv", Some(Privilege::File)),
    ("Grant_priv", None),
    ("References_priv", Some(Privilege::References)),
    ("Index_priv", Some(Privilege::Index)),
    ("Alter_priv", Some(Privilege::Alter)),
    ("Show_db_priv", Some(Privilege::ShowDatabases)),
    ("Super_priv", Some(Privilege::Super)),
    (
        "Create_tmp_table_priv",
        Some(Privilege::CreateTemporaryTables),
    ),
    ("Lock_tables_priv", Some(Privilege::LockTables)),
    ("Execute_priv", Some(Privilege::Execute)),
    ("Repl_slave_priv", Some(Privilege::ReplicationSlave)),
    ("Repl_client_priv", Some(Privilege::BinlogMonitor)),
    ("Create_view_priv", Some(Privilege::CreateView)),
    ("Show_view_priv", Some(Privilege::ShowView)),
    ("Create_routine_priv", Some(Privilege::CreateRoutine)),
    ("Alter_routine_priv", Some(Privilege::AlterRoutine)),
    ("Create_user_priv", Some(Privilege::CreateUser)),
    ("Event_priv", Some(Privilege::Event)),
    ("Trigger_priv", Some(Privilege::Trigger)),
    ("Create_tablespace_priv", Some(Privilege::CreateTablespace)),
    ("Delete_history_priv", Some(Privilege::DeleteHistory)),
];

/// The same in `db`.
const DATABASE_PRIVILEGES: &[(&str, Option<Privilege>)] = &[
    ("Select_priv", Some(Privilege::Select)),
    ("Insert_priv", Some(Privilege::Insert)),
    ("Update_priv", Some(Privilege::Update)),
    ("Delete_priv", Some(Privilege::Delete)),
    ("Create_priv", Some(Privilege::Create)),
    ("Drop_priv", Some(Privilege::Drop)),
    ("Grant_priv", None),
    ("References_priv", Some(Privilege::References)),
    ("Index_priv", Some(Privilege::Index)),
    ("Alter_priv", Some(Privilege::Alter)),
    (
        "Create_tmp_table_priv",
        Some(Privilege::CreateTemporaryTables),
    ),
    ("Lock_tables_priv", Some(Privilege::LockTables)),
    ("Create_view_priv", Some(Privilege::CreateView)),
    ("Show_view_priv", Some(Privilege::ShowView)),
    ("Create_routine_priv", Some(Privilege::CreateRoutine)),
    ("Alter_routine_priv", Some(Privilege::AlterRoutine)),
    ("Execute_priv", Some(Privilege::Execute)),
    ("Event_priv", Some(Privilege::Event)),
    ("Trigger_priv", Some(Privilege::Trigger)),
    ("Delete_history_priv", Some(Privilege::DeleteHistory)),
];

/// The members of `tables_priv.Table_priv`, in their order.
const TABLE_PRIVILEGES: &[(&str, Option<Privilege>)] = &[
    ("Select", Some(Privilege::Select)),
    ("Insert", Some(Privilege::Insert)),
    ("Update", Some(Privilege::Update)),
    ("Delete", Some(Privilege::Delete)),
    ("Create", Some(Privilege::Create)),
    ("Drop", Some(Privilege::Drop)),
    ("Grant", None),
    ("References", Some(Privilege::References)),
    ("Index", Some(Privilege::Index)),
    ("Alter", Some(Privilege::Alter)),
    ("Create View", Some(Privilege::CreateView)),
    ("Show view", Some(Privilege::ShowView)),
    ("Trigger", Some(Privilege::Trigger)),
    ("Delete versioning rows", Some(Privilege::DeleteHistory)),
];

/// The members of `procs_priv.Proc_priv`.
const ROUTINE_PRIVILEGES: &[(&str, Option<Privilege>)] = &[
    ("Execute", Some(Privilege::Execute)),
    ("Alter Routine", Some(Privilege::AlterRoutine)),
    ("Grant", None),
];

/// The members of `Column_priv`.
const COLUMN_PRIVILEGES: [&str; 4] = ["Select", "Insert", "Update", "References"];

/// What may be stored programs, in the order of `procs_priv.Routine_type`.
const ROUTINE_TYPES: [&str; 4] = ["FUNCTION", "PROCEDURE", "PACKAGE", "PACKAGE BODY"];

/// A table's name, its comment, its columns and the rows that an account has in it.
struct Shape {
    name: &'static str,
    comment: &'static str,
    columns: fn() -> Vec<ColumnDefinition>,
    rows: fn(&Account) -> Vec<Row>,
}

type Row = Vec<Value>;

const SHAPES: &[Shape] = &[
    Shape {
        name: "columns_priv",
        comment: "Column privileges",
        columns: columns_priv,
        rows: |_| Vec::new(),
    },
    Shape {
        name: "db",
        comment: "Database privileges",
        columns: db,
        rows: db_rows,
    },
    Shape {
        name: ACCOUNT_TABLE,
        comment: "Users and global privileges",
        columns: global_priv,
        rows: |account| vec![global_priv_row(account)],
    },
    Shape {
        name: "procs_priv",
        comment: "Procedure privileges",
        columns: procs_priv,
        rows: procs_priv_rows,
    },
    Shape {
        name: "proxies_priv",
        comment: "User proxy privileges",
        columns: proxies_priv,
        rows: |_| Vec::new(),
    },
    Shape {
        name: "roles_mapping",
        comment: "Granted roles",
        columns: roles_mapping,
        rows: |_| Vec::new(),
    },
    Shape {
        name: "tables_priv",
        comment: "Table privileges",
        columns: tables_priv,
        rows: tables_priv_rows,
    },
    Shape {
        name: "user",
        comment: "",
        columns: user,
        rows: |account| vec![user_row(account)],
    },
];

/// All definitions, in order of name.
pub fn definitions() -> &'static [Arc<TableDefinition>] {
    static DEFINITIONS: OnceLock<Vec<Arc<TableDefinition>>> = OnceLock::new();
    DEFINITIONS.get_or_init(|| {
        let ids = (TABLE_ID_MIN..).map(TableId);
        let shapes = SHAPES.iter().zip(ids);
        shapes
            .map(|(shape, id)| Arc::new(definition_of(shape, id)))
            .collect()
    })
}

/// Whether a table is one of these.
pub fn is_system_table(name: &TableName) -> bool {
    name.database == SYSTEM_DATABASE && SHAPES.iter().any(|shape| shape.name == name.table)
}

/// The definition of that id, if it is one of these.
pub fn definition_by_id(id: TableId) -> Option<&'static Arc<TableDefinition>> {
    definitions().get(position(id)?)
}

/// The table of that id, with rows about these accounts.
pub fn open(id: TableId, accounts: Arc<Accounts>) -> Option<VirtualTable> {
    let shape = SHAPES.get(position(id)?)?;
    let definition = Arc::clone(definition_by_id(id)?);
    Some(VirtualTable::new(
        definition,
        Box::new(AccountRows { shape, accounts }),
    ))
}

fn position(id: TableId) -> Option<usize> {
    usize::try_from(id.0.checked_sub(TABLE_ID_MIN)?).ok()
}

fn definition_of(shape: &Shape, id: TableId) -> TableDefinition {
    TableDefinition {
        id,
        version: 0,
        name: TableName {
            database: SYSTEM_DATABASE.to_owned(),
            table: shape.name.to_owned(),
        },
        columns: (shape.columns)(),
        indexes: Vec::new(),
        collation: CollationId::UTF8MB3_BIN,
        auto_increment_start: 1,
        comment: shape.comment.to_owned(),
        options: Vec::new(),
        created_us: 0,
        view: None,
    }
}

/// The rows that accounts have in a table, in the order of their hosts and users.
struct AccountRows {
    shape: &'static Shape,
    accounts: Arc<Accounts>,
}

impl RowSource for AccountRows {
    fn tables(&self) -> Vec<Arc<TableDefinition>> {
        Vec::new()
    }

    fn rows(&self, _: Option<&[Arc<TableDefinition>]>) -> Vec<Row> {
        let mut accounts: Vec<_> = self.accounts.iter().collect();
        accounts.sort_by_key(|account| (&account.name.host, &account.name.user));
        let rows = accounts
            .into_iter()
            .flat_map(|account| (self.shape.rows)(account));
        rows.collect()
    }
}

fn columns_priv() -> Vec<ColumnDefinition> {
    let mut columns = place();
    columns.extend([
        name("Table_name", 64),
        name("Column_name", 64),
        stamp(),
        set("Column_priv", &COLUMN_PRIVILEGES),
    ]);
    columns
}

fn db() -> Vec<ColumnDefinition> {
    let mut columns = place();
    columns.extend(DATABASE_PRIVILEGES.iter().map(|(name, _)| no_or_yes(name)));
    columns
}

fn db_rows(account: &Account) -> Vec<Row> {
    let databases = account.grants.databases.iter();
    let row = |(database, grant): (&String, &Grant)| {
        let mut row = place_of(account, database);
        // The members of the ENUM count from 1.
        let privileges = DATABASE_PRIVILEGES.iter();
        row.extend(
            privileges.map(|(_, privilege)| Value::UInt(1 + u64::from(has(*grant, *privilege)))),
        );
        row
    };
    databases.map(row).collect()
}

fn global_priv() -> Vec<ColumnDefinition> {
    let mut json = long_text("Priv");
    json.default = text_default("{}");
    vec![name("Host", 255), name("User", 128), json]
}

/// `Priv` as MariaDB writes it.
#[derive(Serialize)]
struct Priv<'a> {
    access: u64,
    version_id: u32,
    plugin: &'a str,
    authentication_string: &'a str,
    #[serde(flatten)]
    tls: Option<RequiredTls>,
    #[serde(skip_serializing_if = "Option::is_none")]
    account_locked: Option<bool>,
}

/// `REQUIRE SSL`.
#[derive(Serialize)]
struct RequiredTls {
    ssl_type: u8,
    ssl_cipher: &'static str,
    x509_issuer: &'static str,
    x509_subject: &'static str,
}

fn global_priv_row(account: &Account) -> Row {
    let Credential { plugin, hash } = &account.credential;
    let tls = RequiredTls {
        ssl_type: 1,
        ssl_cipher: "",
        x509_issuer: "",
        x509_subject: "",
    };
    let json = Priv {
        access: account.grants.global.reference_bits(),
        version_id: VERSION_ID,
        plugin,
        authentication_string: hash,
        tls: account.requires_tls.then_some(tls),
        account_locked: account.locked.then_some(true),
    };
    let json = serde_json::to_string(&json).expect("texts and numbers have a JSON text");
    vec![
        text(&account.name.host),
        text(&account.name.user),
        text(&json),
    ]
}

fn procs_priv() -> Vec<ColumnDefinition> {
    let routine = ColumnType::text(TypeKind::Char, 64, CollationId::UTF8MB3_GENERAL_CI);
    let mut routine_type = named("Routine_type", TypeKind::Enum, &ROUTINE_TYPES);
    routine_type.column_type.collation = CollationId::UTF8MB3_BIN;
    let mut columns = place();
    columns.extend([
        with_default(ColumnDefinition::new("Routine_name", routine, false), ""),
        routine_type,
        grantor(),
        set("Proc_priv", &names_of(ROUTINE_PRIVILEGES)),
        stamp(),
    ]);
    columns
}

fn procs_priv_rows(account: &Account) -> Vec<Row> {
    let row = |(key, grant): (&crate::RoutineKey, &Grant)| {
        let mut row = place_of(account, key.database());
        let kind = match key.kind() {
            RoutineKind::Function => 1,
            RoutineKind::Procedure => 2,
        };
        row.extend([
            text(key.name()),
            Value::UInt(kind),
            text(""),
            members(*grant, ROUTINE_PRIVILEGES),
            never(),
        ]);
        row
    };
    account.grants.routines.iter().map(row).collect()
}

fn proxies_priv() -> Vec<ColumnDefinition> {
    let boolean = ColumnType {
        length: 1,
        ..ColumnType::new(TypeKind::TinyInt)
    };
    let mut with_grant = ColumnDefinition::new("With_grant", boolean, false);
    with_grant.default = ColumnDefault::Value(Value::Int(0));
    vec![
        name("Host", 255),
        name("User", 128),
        name("Proxied_host", 255),
        name("Proxied_user", 128),
        with_grant,
        grantor(),
        stamp(),
    ]
}

fn roles_mapping() -> Vec<ColumnDefinition> {
    vec![
        name("Host", 255),
        name("User", 128),
        name("Role", 128),
        no_or_yes("Admin_option"),
    ]
}

fn tables_priv() -> Vec<ColumnDefinition> {
    let mut columns = place();
    columns.extend([
        name("Table_name", 64),
        grantor(),
        stamp(),
        set("Table_priv", &names_of(TABLE_PRIVILEGES)),
        set("Column_priv", &COLUMN_PRIVILEGES),
    ]);
    columns
}

fn tables_priv_rows(account: &Account) -> Vec<Row> {
    let row = |((database, table), grant): (&(String, String), &Grant)| {
        let mut row = place_of(account, database);
        row.extend([
            text(table),
            text(""),
            never(),
            members(*grant, TABLE_PRIVILEGES),
            Value::UInt(0),
        ]);
        row
    };
    account.grants.tables.iter().map(row).collect()
}

fn user() -> Vec<ColumnDefinition> {
    let mut password = long_text("Password");
    (password.nullable, password.default) = (true, ColumnDefault::None);
    let latin = |name: &str, chars, nullable| {
        let column_type = ColumnType::varchar(chars, CollationId::LATIN1_SWEDISH_CI);
        ColumnDefinition::new(name, column_type, nullable)
    };
    let count = |name: &str| {
        let column_type = ColumnType::unsigned(TypeKind::BigInt);
        with_default(ColumnDefinition::new(name, column_type, false), "0")
    };
    let mut connections = count("max_user_connections");
    connections.column_type = ColumnType {
        length: 21,
        ..ColumnType::new(TypeKind::BigInt)
    };
    let seconds = ColumnType::decimal(12, 6);
    let mut columns = vec![name("Host", 255), name("User", 128), password];
    columns.extend(
        GLOBAL_PRIVILEGES
            .iter()
            .map(|(name, _)| latin(name, 1, true)),
    );
    columns.extend([
        latin("ssl_type", 9, true),
        long_text("ssl_cipher"),
        long_text("x509_issuer"),
        long_text("x509_subject"),
        count("max_questions"),
        count("max_updates"),
        count("max_connections"),
        connections,
        long_text("plugin"),
        long_text("authentication_string"),
        with_default(latin("password_expired", 1, false), ""),
        latin("is_role", 1, true),
        long_text("default_role"),
        with_default(
            ColumnDefinition::new("max_statement_time", seconds, false),
            "0.000000",
        ),
    ]);
    columns
}

fn user_row(account: &Account) -> Row {
    let Credential { plugin, hash } = &account.credential;
    let is_native = plugin == "mysql_native_password";
    let global = account.grants.global;
    let yes_or_no = |is_so| text(if is_so { "Y" } else { "N" });
    let mut row = vec![
        text(&account.name.host),
        text(&account.name.user),
        text(if is_native { hash } else { "" }),
    ];
    let privileges = GLOBAL_PRIVILEGES.iter();
    row.extend(privileges.map(|(_, privilege)| yes_or_no(has(global, *privilege))));
    row.extend([
        text(if account.requires_tls { "ANY" } else { "" }),
        text(""),
        text(""),
        text(""),
        Value::UInt(0),
        Value::UInt(0),
        Value::UInt(0),
        Value::Int(0),
        text(plugin),
        text(hash),
        text("N"),
        text("N"),
        text(""),
        Value::Decimal(Decimal::parse_prefix(b"0.000000").value),
    ]);
    row
}

/// The columns that say whose privilege it is and where.
fn place() -> Vec<ColumnDefinition> {
    vec![name("Host", 255), name("Db", 64), name("User", 128)]
}

fn place_of(account: &Account, database: &str) -> Row {
    let names = [&account.name.host, database, &account.name.user];
    names.map(text).to_vec()
}

fn name(name: &str, chars: u32) -> ColumnDefinition {
    let column_type = ColumnType::text(TypeKind::Char, chars, CollationId::UTF8MB3_BIN);
    with_default(ColumnDefinition::new(name, column_type, false), "")
}

fn grantor() -> ColumnDefinition {
    let column_type = ColumnType::varchar(384, CollationId::UTF8MB3_BIN);
    with_default(ColumnDefinition::new("Grantor", column_type, false), "")
}

fn stamp() -> ColumnDefinition {
    let column_type = ColumnType::new(TypeKind::Timestamp);
    let mut stamp = ColumnDefinition::new("Timestamp", column_type, false);
    stamp.default = ColumnDefault::Now;
    stamp.on_update_now = true;
    stamp
}

fn long_text(name: &str) -> ColumnDefinition {
    let column_type = ColumnType::text(TypeKind::LongText, u32::MAX, CollationId::UTF8MB4_BIN);
    with_default(ColumnDefinition::new(name, column_type, false), "")
}

fn named(name: &str, kind: TypeKind, members: &[&str]) -> ColumnDefinition {
    let members = members.iter().map(|it| Box::from(it.as_bytes())).collect();
    let column_type = ColumnType::named(kind, members, CollationId::UTF8MB3_GENERAL_CI);
    ColumnDefinition::new(name, column_type, false)
}

fn no_or_yes(name: &str) -> ColumnDefinition {
    let mut column = named(name, TypeKind::Enum, &["N", "Y"]);
    column.default = ColumnDefault::Value(Value::UInt(1));
    column
}

fn set(name: &str, members: &[&str]) -> ColumnDefinition {
    let mut column = named(name, TypeKind::Set, members);
    column.default = ColumnDefault::Value(Value::UInt(0));
    column
}

/// The default as a text; numbers are read from it.
fn with_default(mut column: ColumnDefinition, default: &str) -> ColumnDefinition {
    column.default = match column.column_type.kind {
        TypeKind::BigInt => ColumnDefault::Value(Value::UInt(0)),
        TypeKind::Decimal => {
            let number = Decimal::parse_prefix(default.as_bytes()).value;
            ColumnDefault::Value(Value::Decimal(number))
        }
        _ => text_default(default),
    };
    column
}

fn text_default(default: &str) -> ColumnDefault {
    ColumnDefault::Value(text(default))
}

fn names_of(privileges: &[(&'static str, Option<Privilege>)]) -> Vec<&'static str> {
    privileges.iter().map(|(name, _)| *name).collect()
}

fn has(grant: Grant, privilege: Option<Privilege>) -> bool {
    privilege.map_or(grant.grantable, |privilege| grant.privileges.has(privilege))
}

/// A grant as a SET.
fn members(grant: Grant, privileges: &[(&str, Option<Privilege>)]) -> Value {
    let bits = privileges.iter().enumerate();
    let bits = bits.filter(|(_, (_, privilege))| has(grant, *privilege));
    Value::UInt(bits.fold(0, |sum, (bit, _)| sum | 1 << bit))
}

fn text(text: &str) -> Value {
    Value::bytes(text.as_bytes())
}

/// MariaDB writes no time there either.
fn never() -> Value {
    Value::DateTime(DateTime::ZERO)
}

impl Grant {
    /// The grant as a number with MariaDB's bits.
    fn reference_bits(self) -> u64 {
        let grantable = u64::from(self.grantable) << PrivilegeSet::REFERENCE_GRANT_BIT;
        self.privileges.reference_bits() | grantable
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account_record::first_accounts;

    fn rows_of(name: &str, account: &Account) -> Vec<Row> {
        let shape = SHAPES.iter().find(|shape| shape.name == name).unwrap();
        (shape.rows)(account)
    }

    #[test]
    fn each_row_fits_its_table() {
        let mut account = first_accounts().remove(0);
        let all = account.grants.global;
        account.grants.databases.insert("shop".to_owned(), all);
        let table = ("shop".to_owned(), "orders".to_owned());
        account.grants.tables.insert(table, all);
        let key = crate::RoutineKey::new(RoutineKind::Function, "shop", "add");
        account.grants.routines.insert(key, all);
        let mut filled = Vec::new();
        for (shape, definition) in SHAPES.iter().zip(definitions()) {
            let types = definition.columns.iter().map(|column| &column.column_type);
            let layout = format::row::RowLayout::new(types);
            for row in (shape.rows)(&account) {
                let values: Vec<_> = row.iter().map(Value::as_ref).collect();
                assert!(layout.encode(&values, &mut Vec::new()).is_ok());
                assert_eq!(row.len(), definition.columns.len(), "{}", shape.name);
                filled.push(shape.name);
            }
        }
        assert_eq!(
            filled,
            ["db", "global_priv", "procs_priv", "tables_priv", "user"]
        );
    }

    #[test]
    fn names_and_ids_find_the_same_tables() {
        for definition in definitions() {
            assert!(is_system_table(&definition.name));
            assert_eq!(definition_by_id(definition.id), Some(definition));
        }
        assert!(definitions().is_sorted_by_key(|it| &it.name.table));
        let after = TableId(TABLE_ID_MIN + u64::try_from(SHAPES.len()).unwrap());
        assert_eq!(definition_by_id(after), None);
        assert!(open(after, Arc::default()).is_none());
        let other = TableName {
            database: "shop".to_owned(),
            table: "user".to_owned(),
        };
        assert!(!is_system_table(&other));
    }

    #[test]
    fn a_text_of_privileges_is_mariadbs() {
        let mut account = first_accounts().remove(0);
        let json = |account: &Account| rows_of("global_priv", account)[0][2].clone();
        assert_eq!(
            json(&account),
            text(
                "{\"access\":549755813887,\"version_id\":101100,\
                 \"plugin\":\"mysql_native_password\",\"authentication_string\":\"\"}"
            )
        );
        account.grants.global = Grant {
            privileges: PrivilegeSet::of(&[
                Privilege::Process,
                Privilege::Reload,
                Privilege::Super,
                Privilege::BinlogMonitor,
            ]),
            grantable: false,
        };
        (account.requires_tls, account.locked) = (true, true);
        assert_eq!(
            json(&account),
            text(
                "{\"access\":1081664,\"version_id\":101100,\
                 \"plugin\":\"mysql_native_password\",\"authentication_string\":\"\",\
                 \"ssl_type\":1,\"ssl_cipher\":\"\",\"x509_issuer\":\"\",\"x509_subject\":\"\",\
                 \"account_locked\":true}"
            )
        );
    }
}
