//! The rows of each table.

use std::sync::Arc;

use store::{ColumnDefinition, IndexDefinition, TableDefinition, Uniqueness};
use value::{Charset, CollationId, ColumnType, DateTime, Decimal, TypeKind, Value};

use super::describe::{
    check_text, column_key, create_options, default_text, extra_text, shown_indexes,
};
use super::{Facts, INFORMATION_SCHEMA, SystemVariable, code, described, locks};
use crate::account::{Account, Grant};
use crate::names::Database;
use crate::privilege::PrivilegeSet;

pub(super) type Row = Vec<Value>;

/// The rows of the table of this name. Tables about what does not exist here have none (triggers,
/// events, partitions, foreign keys).
pub(super) fn of(table: &str, facts: &Facts<'_>) -> Vec<Row> {
    match table {
        "CHARACTER_SETS" => character_sets(),
        "CHECK_CONSTRAINTS" => each_table(facts, |table, _| checks(table)),
        "COLLATIONS" => CollationId::all().map(collation).collect(),
        "COLLATION_CHARACTER_SET_APPLICABILITY" => CollationId::all().map(applicability).collect(),
        "COLUMNS" => each_table(facts, columns),
        "ENGINES" => engines(),
        "GLOBAL_STATUS" | "SESSION_STATUS" => pairs((facts.status)()),
        "GLOBAL_VARIABLES" => pairs((facts.global_variables)()),
        "SESSION_VARIABLES" => pairs((facts.session_variables)()),
        "KEY_COLUMN_USAGE" => each_table(facts, |table, _| key_columns(table)),
        "INNODB_LOCKS" => locks::locks(facts),
        "INNODB_LOCK_WAITS" => locks::waits(facts),
        "INNODB_TRX" => locks::transactions(facts),
        "PARAMETERS" => code::parameters(facts),
        "PLUGINS" => plugins(),
        "PROCESSLIST" => (facts.processes)().iter().map(process).collect(),
        "ROUTINES" => code::routines(facts),
        "SCHEMATA" => schemata(facts),
        "SCHEMA_PRIVILEGES" => visible_accounts(facts)
            .flat_map(schema_privileges)
            .collect(),
        "STATISTICS" => each_table(facts, statistics),
        "SYSTEM_VARIABLES" => (facts.system_variables)().iter().map(variable).collect(),
        "TABLES" => each_table(facts, |table, facts| vec![table_row(table, facts)]),
        "TABLE_CONSTRAINTS" => each_table(facts, |table, _| constraints(table)),
        "TABLE_PRIVILEGES" => visible_accounts(facts).flat_map(table_privileges).collect(),
        "USER_PRIVILEGES" => visible_accounts(facts).flat_map(user_privileges).collect(),
        _ => Vec::new(),
    }
}

pub(super) fn text(text: impl AsRef<str>) -> Value {
    Value::bytes(text.as_ref().as_bytes())
}

pub(super) fn optional(text_or_null: Option<impl AsRef<str>>) -> Value {
    text_or_null.map_or(Value::Null, text)
}

pub(super) fn int(number: u64) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

pub(super) fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

fn yes_no(is_so: bool) -> Value {
    text(if is_so { "YES" } else { "NO" })
}

pub(super) fn def() -> Value {
    text("def")
}

pub(super) fn time(micros: u64) -> Value {
    let time = i64::try_from(micros)
        .ok()
        .and_then(DateTime::from_unix_micros);
    time.filter(|_| 0 < micros)
        .map_or(Value::Null, |time| Value::DateTime(time.truncated(0)))
}

fn decimal(thousandths: u64) -> Value {
    let text = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
    Value::Decimal(Decimal::parse_prefix(text.as_bytes()).value)
}

fn pairs(pairs: Vec<(String, String)>) -> Vec<Row> {
    pairs
        .into_iter()
        .map(|(name, value)| vec![text(name.to_uppercase()), text(value)])
        .collect()
}

fn variable(variable: &SystemVariable) -> Row {
    let (least, greatest) = variable.range.unzip();
    let number = |number: Option<u64>| optional(number.map(|number| number.to_string()));
    let is_of_session = variable.session_value.is_some();
    vec![
        text(variable.name.to_uppercase()),
        optional(variable.session_value.as_ref()),
        text(&variable.global_value),
        text(variable.origin),
        text(&variable.default),
        text(if is_of_session { "SESSION" } else { "GLOBAL" }),
        text(variable.kind),
        text(variable.comment),
        number(least),
        number(greatest),
        number(variable.range.map(|_| 1)),
        optional(variable.words.map(|words| words.join(","))),
        yes_no(variable.is_read_only),
        optional(variable.is_argument.then_some("REQUIRED")),
        // The file is not remembered.
        Value::Null,
    ]
}

/// The rows that `make` returns for each requested table.
fn each_table(
    facts: &Facts<'_>,
    make: impl Fn(&TableDefinition, &Facts<'_>) -> Vec<Row>,
) -> Vec<Row> {
    let rows_of = |tables: &[Arc<TableDefinition>]| {
        let rows = tables.iter().flat_map(|table| make(table, facts));
        rows.collect()
    };
    match facts.about {
        Some(tables) => rows_of(tables),
        None => rows_of(&described(facts.names, facts.privileges)),
    }
}

fn character_sets() -> Vec<Row> {
    let sets = [
        (Charset::Ascii, "US ASCII"),
        (Charset::Binary, "Binary pseudo charset"),
        (Charset::Latin1, "cp1252 West European"),
        (Charset::Utf8mb3, "UTF-8 Unicode"),
        (Charset::Utf8mb4, "UTF-8 Unicode"),
    ];
    let row = |(charset, description): (Charset, &str)| {
        let collation = charset.default_collation();
        vec![
            text(charset.name()),
            text(collation.name()),
            text(description),
            int(count(collation.char_bytes_max())),
        ]
    };
    sets.into_iter().map(row).collect()
}

fn default_mark(collation: CollationId) -> Value {
    text(if collation.is_default() { "Yes" } else { "" })
}

fn collation(collation: CollationId) -> Row {
    vec![
        text(collation.name()),
        text(collation.charset().name()),
        Value::Int(i64::from(collation.id())),
        default_mark(collation),
        text("Yes"),
        Value::Int(1),
    ]
}

fn applicability(collation: CollationId) -> Row {
    vec![
        text(collation.name()),
        text(collation.charset().name()),
        text(collation.name()),
        Value::Int(i64::from(collation.id())),
        default_mark(collation),
    ]
}

fn engines() -> Vec<Row> {
    vec![vec![
        text("InnoDB"),
        text("DEFAULT"),
        text("Plateau's engine: transactions, row-level locking, snapshots, crash recovery"),
        text("YES"),
        text("NO"),
        text("YES"),
    ]]
}

fn plugins() -> Vec<Row> {
    let plugin = |name: &str, kind: &str, description: &str| {
        vec![
            text(name),
            text("1.0"),
            text("ACTIVE"),
            text(kind),
            text("1.0"),
            Value::Null,
            Value::Null,
            text("Plateau"),
            text(description),
            text("MIT OR Apache-2.0"),
            text("FORCE"),
            text("Stable"),
            text("1.0"),
        ]
    };
    vec![
        plugin("InnoDB", "STORAGE ENGINE", "Plateau's engine"),
        plugin(
            "caching_sha2_password",
            "AUTHENTICATION",
            "SHA-256 with a cache",
        ),
        plugin("ed25519", "AUTHENTICATION", "Elliptic curve ED25519"),
        plugin("mysql_native_password", "AUTHENTICATION", "SHA-1"),
    ]
}

fn process(process: &super::Process) -> Row {
    vec![
        int(process.id),
        text(&process.user),
        text(&process.host),
        optional(process.database.as_ref()),
        text(&process.command),
        int(process.time_ms / 1000),
        text(&process.state),
        optional(process.info.as_ref()),
        decimal(process.time_ms),
        Value::Int(0),
        Value::Int(0),
        decimal(0),
        Value::Int(0),
        Value::Int(0),
        Value::Int(0),
        Value::Int(0),
        optional(process.info.as_ref()),
        Value::Int(0),
    ]
}

fn schemata(facts: &Facts<'_>) -> Vec<Row> {
    let row = |name: &str, collation: CollationId| {
        vec![
            def(),
            text(name),
            text(collation.charset().name()),
            text(collation.name()),
            Value::Null,
            text(""),
        ]
    };
    let visible = facts
        .names
        .databases()
        .filter(|(name, _)| facts.privileges.can_see_database(name))
        .map(|(name, database): (&str, &Database)| row(name, database.collation));
    std::iter::once(row(INFORMATION_SCHEMA, CollationId::UTF8MB3_GENERAL_CI))
        .chain(visible)
        .collect()
}

fn table_row(table: &TableDefinition, facts: &Facts<'_>) -> Row {
    if table.name.database == INFORMATION_SCHEMA || table.view.is_some() {
        return rowless_table(table);
    }
    let found = (facts.table_facts)(table);
    let statistics = found.statistics;
    let average = statistics
        .data_bytes
        .checked_div(statistics.row_count)
        .unwrap_or(0);
    let next = table
        .auto_increment_column()
        .map(|_| Value::UInt(found.next_auto_increment));
    vec![
        def(),
        text(&table.name.database),
        text(&table.name.table),
        text("BASE TABLE"),
        text("InnoDB"),
        Value::UInt(10),
        text(row_format(table)),
        Value::UInt(statistics.row_count),
        Value::UInt(average),
        Value::UInt(statistics.data_bytes),
        Value::UInt(0),
        Value::UInt(statistics.index_bytes),
        Value::UInt(0),
        next.unwrap_or_default(),
        time(table.created_us),
        Value::Null,
        Value::Null,
        text(table.collation.name()),
        Value::Null,
        text(create_options(table)),
        text(&table.comment),
        Value::UInt(0),
        text("N"),
    ]
}

/// The row format of the table's definition, as a word; rows are always stored in one way here.
fn row_format(table: &TableDefinition) -> String {
    let options = &mut table.options.iter();
    let format = options.find(|(name, _)| name == "ROW_FORMAT");
    let letters = format.and_then(|(_, format)| format.split_at_checked(1));
    let (first, rest) = letters.unwrap_or(("D", "ynamic"));
    first.to_ascii_uppercase() + &rest.to_ascii_lowercase()
}

/// A view, or a table of this schema: nothing is known of its rows.
fn rowless_table(table: &TableDefinition) -> Row {
    let is_view = table.view.is_some();
    let mut row = vec![
        def(),
        text(&table.name.database),
        text(&table.name.table),
        text(if is_view { "VIEW" } else { "SYSTEM VIEW" }),
    ];
    row.push(if is_view { Value::Null } else { text("MEMORY") });
    row.resize(20, Value::Null);
    row.push(text(if is_view { "VIEW" } else { "" }));
    row.extend([Value::Null, Value::Null]);
    row
}

fn columns(table: &TableDefinition, facts: &Facts<'_>) -> Vec<Row> {
    let privileges = facts
        .privileges
        .on_table(&table.name.database, &table.name.table)
        & PrivilegeSet::from_bits(0b111 | 1 << 10);
    let shown: Vec<_> = privileges
        .iter()
        .map(|privilege| privilege.name().to_lowercase())
        .collect();
    let is_own = table.name.database == INFORMATION_SCHEMA;
    // The privileges to alter, drop or empty a table reveal only its name.
    if privileges.is_empty() && !is_own {
        return Vec::new();
    }
    let shown = if is_own {
        "select".to_owned()
    } else {
        shown.join(",")
    };
    let row = |(position, column): (usize, &ColumnDefinition)| {
        let mut row = vec![
            def(),
            text(&table.name.database),
            text(&table.name.table),
            text(&column.name),
            Value::UInt(count(position) + 1),
            optional(default_text(column)),
            yes_no(column.nullable),
            text(column.column_type.type_name()),
        ];
        row.extend(type_facts(&column.column_type));
        row.extend([
            text(column.column_type.sql_text()),
            text(column_key(table, position)),
            text(extra_text(column)),
            text(&shown),
            text(&column.comment),
            text("NEVER"),
            Value::Null,
        ]);
        row
    };
    table.columns.iter().enumerate().map(row).collect()
}

/// Length in characters and bytes, precision, scale, fraction, character set, collation.
pub(super) fn type_facts(column: &ColumnType) -> [Value; 7] {
    let mut facts = [const { Value::Null }; 7];
    let uint = |number: u32| Value::UInt(u64::from(number));
    match column.kind {
        TypeKind::TinyInt => facts[2..4].clone_from_slice(&[Value::UInt(3), Value::UInt(0)]),
        TypeKind::SmallInt => facts[2..4].clone_from_slice(&[Value::UInt(5), Value::UInt(0)]),
        TypeKind::MediumInt => facts[2..4].clone_from_slice(&[Value::UInt(7), Value::UInt(0)]),
        TypeKind::Int => facts[2..4].clone_from_slice(&[Value::UInt(10), Value::UInt(0)]),
        TypeKind::BigInt => {
            let digits = if column.unsigned { 20 } else { 19 };
            facts[2..4].clone_from_slice(&[Value::UInt(digits), Value::UInt(0)]);
        }
        TypeKind::Decimal => {
            facts[2..4].clone_from_slice(&[uint(column.length), uint(column.decimals.into())]);
        }
        TypeKind::Float | TypeKind::Double => {
            facts[2] = uint(column.length);
            if column.decimals != ColumnType::NOT_FIXED {
                facts[3] = uint(column.decimals.into());
            }
        }
        TypeKind::Bit => facts[2] = uint(column.length),
        TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp => {
            facts[4] = uint(column.decimals.into());
        }
        TypeKind::Geometry => {}
        kind if kind.is_bytes() || matches!(kind, TypeKind::Enum | TypeKind::Set) => {
            let char_bytes = count(column.collation.char_bytes_max());
            let length = u64::from(column.length);
            let (chars, bytes) = if kind.is_blob() {
                (length, length)
            } else {
                (length, length * char_bytes)
            };
            facts[..2].clone_from_slice(&[Value::UInt(chars), Value::UInt(bytes)]);
            if column.collation != CollationId::BINARY {
                facts[5] = text(column.charset().name());
                facts[6] = text(column.collation.name());
            }
        }
        _ => {}
    }
    facts
}

fn statistics(table: &TableDefinition, facts: &Facts<'_>) -> Vec<Row> {
    let found = (facts.table_facts)(table).statistics;
    let row = |(index_position, index): (usize, &IndexDefinition)| -> Vec<Row> {
        let distinct = found.distinct.get(index_position);
        let part = |(position, part): (usize, &store::IndexPart)| {
            let column = &table.columns[part.column];
            let cardinality = distinct.and_then(|counts| counts.get(position)).copied();
            vec![
                def(),
                text(&table.name.database),
                text(&table.name.table),
                int(u64::from(index.uniqueness == Uniqueness::None)),
                text(&table.name.database),
                text(&index.name),
                int(count(position) + 1),
                text(&column.name),
                text("A"),
                int(cardinality.unwrap_or(found.row_count)),
                part.prefix_length
                    .map_or(Value::Null, |length| int(length.into())),
                Value::Null,
                text(if column.nullable { "YES" } else { "" }),
                text("BTREE"),
                text(""),
                text(&index.comment),
                text("NO"),
            ]
        };
        index.parts.iter().enumerate().map(part).collect()
    };
    let shown = shown_indexes(table).iter();
    shown.enumerate().flat_map(row).collect()
}

fn unique_indexes(table: &TableDefinition) -> impl Iterator<Item = &IndexDefinition> {
    table
        .indexes
        .iter()
        .filter(|index| index.uniqueness != Uniqueness::None)
}

fn key_columns(table: &TableDefinition) -> Vec<Row> {
    let row = |index: &IndexDefinition| -> Vec<Row> {
        let part = |(position, part): (usize, &store::IndexPart)| {
            vec![
                def(),
                text(&table.name.database),
                text(&index.name),
                def(),
                text(&table.name.database),
                text(&table.name.table),
                text(&table.columns[part.column].name),
                int(count(position) + 1),
                Value::Null,
                Value::Null,
                Value::Null,
                Value::Null,
            ]
        };
        index.parts.iter().enumerate().map(part).collect()
    };
    unique_indexes(table).flat_map(row).collect()
}

fn constraints(table: &TableDefinition) -> Vec<Row> {
    let row = |index: &IndexDefinition| {
        let is_primary = index.uniqueness == Uniqueness::Primary;
        vec![
            def(),
            text(&table.name.database),
            text(&index.name),
            text(&table.name.database),
            text(&table.name.table),
            text(if is_primary { "PRIMARY KEY" } else { "UNIQUE" }),
        ]
    };
    let check = |column: &ColumnDefinition| {
        vec![
            def(),
            text(&table.name.database),
            text(&column.name),
            text(&table.name.database),
            text(&table.name.table),
            text("CHECK"),
        ]
    };
    let checks = json_columns(table).map(check);
    unique_indexes(table).map(row).chain(checks).collect()
}

/// The columns with a condition, which has the column's name.
fn json_columns(table: &TableDefinition) -> impl Iterator<Item = &ColumnDefinition> {
    table.columns.iter().filter(|column| column.is_json)
}

fn checks(table: &TableDefinition) -> Vec<Row> {
    let row = |column: &ColumnDefinition| {
        vec![
            def(),
            text(&table.name.database),
            text(&table.name.table),
            text(&column.name),
            text("Column"),
            text(check_text(column)),
        ]
    };
    json_columns(table).map(row).collect()
}

/// An account that may read the table of accounts sees all, others only themselves.
fn visible_accounts<'a>(facts: &Facts<'a>) -> impl Iterator<Item = &'a Account> {
    let may_see = facts
        .privileges
        .on_table(
            crate::stored_table::SYSTEM_DATABASE,
            crate::account_record::ACCOUNT_TABLE,
        )
        .has(crate::Privilege::Select);
    let own = &facts.privileges.account().name;
    let accounts = facts.accounts.iter().map(|account| &**account);
    accounts.filter(move |account| may_see || account.name == *own)
}

fn grantee(account: &Account) -> Value {
    text(format!("'{}'@'{}'", account.name.user, account.name.host))
}

/// A row for each privilege of a grant, or one row of USAGE.
fn privilege_rows(grant: Grant, head: &[Value]) -> Vec<Row> {
    let row = |name: &str| {
        let mut row = head.to_vec();
        row.extend([text(name), yes_no(grant.grantable)]);
        row
    };
    if grant.privileges.is_empty() {
        return vec![row("USAGE")];
    }
    grant
        .privileges
        .iter()
        .map(|privilege| row(privilege.name()))
        .collect()
}

fn user_privileges(account: &Account) -> Vec<Row> {
    privilege_rows(account.grants.global, &[grantee(account), def()])
}

fn schema_privileges(account: &Account) -> Vec<Row> {
    let databases = account.grants.databases.iter();
    databases
        .flat_map(|(name, grant)| privilege_rows(*grant, &[grantee(account), def(), text(name)]))
        .collect()
}

fn table_privileges(account: &Account) -> Vec<Row> {
    let tables = account.grants.tables.iter();
    tables
        .flat_map(|((database, table), grant)| {
            let head = [grantee(account), def(), text(database), text(table)];
            privilege_rows(*grant, &head)
        })
        .collect()
}
