//! Every expression of a corpus, evaluated here and by MariaDB. Value, NULL, error number and the
//! client's type must be equal. Differences on purpose, or not yet fixed, are listed in
//! `mariadb/known.txt`. That list must be exact: a line that no longer differs fails, too.
//!
//! Needs Debian's `mariadbd`; `cargo xtask setup` installs it.

#![forbid(unsafe_code)]

#[path = "mariadb/corpus.rs"]
mod corpus;
#[path = "mariadb/expression.rs"]
mod expression;

use std::collections::BTreeSet;

use function::{BindEnv, Context, DivisionByZero, Patterns, Seeds, SessionFacts};
use testkit::client::{Client, Outcome};
use testkit::server::Server;
use value::temporal::{DateRules, parse_datetime};
use value::{
    CollationId, ColumnType, Date, Place, SqlCondition, StoreRules, TypeKind, Value, Warnings,
    Zone, flag, store_value,
};

use expression::Table;

/// The clock of both sides.
const NOW: &str = "2024-03-01 12:34:56";

#[test]
fn expressions_give_what_mariadb_gives() {
    let (_server, mut client) = start();
    let empty = Table {
        columns: Vec::new(),
        row: Vec::new(),
    };
    let known = include_str!("mariadb/known.txt");
    compare(&mut client, &corpus::expressions(), &empty, "", known);
}

#[test]
fn columns_give_what_mariadb_gives() {
    let (_server, mut client) = start();
    let table = table();
    let columns = table.columns.iter().zip(VALUES);
    let ddl: Vec<String> = columns
        .clone()
        .map(|((name, ddl, _), _)| format!("{name} {ddl}"))
        .collect();
    let ddl = ddl.join(", ");
    client
        .run(&format!("CREATE TABLE test.t ({ddl}) CHARSET=utf8mb4"))
        .expect("a table");
    client
        .run(&format!(
            "INSERT INTO test.t VALUES ({})",
            VALUES.join(", ")
        ))
        .expect("a row");
    let known = include_str!("mariadb/known_columns.txt");
    compare(
        &mut client,
        &corpus::over_columns(),
        &table,
        " FROM test.t",
        known,
    );
}

/// The contents of [`table`], in SQL.
const VALUES: &[&str] = &[
    "-7",
    "12345",
    "4000000000",
    "-9000000000",
    "18000000000000000000",
    "1.25",
    "2.5",
    "-12.34",
    "5",
    "2024",
    "'2024-02-29'",
    "'10:11:12'",
    "'2024-02-29 10:11:12'",
    "'2024-02-29 10:11:12.345'",
    "'abc'",
    "'12x'",
    "'\u{e9}'",
    "'ab'",
    "'Text'",
    "'5'",
    "'b'",
    "'a,b'",
];

/// The types of the columns, in DDL and here.
fn types() -> [(&'static str, ColumnType); 22] {
    let new = ColumnType::new;
    let text = |kind, length, collation| ColumnType::text(kind, length, collation);
    let general = CollationId::UTF8MB4_GENERAL_CI;
    let names = || vec![Box::from(&b"a"[..]), Box::from(&b"b"[..])];
    let mut bit = new(TypeKind::Bit);
    bit.length = 5;
    [
        ("tinyint", new(TypeKind::TinyInt)),
        ("int", new(TypeKind::Int)),
        ("int unsigned", ColumnType::unsigned(TypeKind::Int)),
        ("bigint", new(TypeKind::BigInt)),
        ("bigint unsigned", ColumnType::unsigned(TypeKind::BigInt)),
        ("float", new(TypeKind::Float)),
        ("double", new(TypeKind::Double)),
        ("decimal(10,2)", ColumnType::decimal(10, 2)),
        ("bit(5)", bit),
        ("year", new(TypeKind::Year)),
        ("date", new(TypeKind::Date)),
        ("time", new(TypeKind::Time)),
        ("datetime", new(TypeKind::DateTime)),
        ("datetime(3)", ColumnType::temporal(TypeKind::DateTime, 3)),
        ("char(5)", text(TypeKind::Char, 5, general)),
        ("varchar(10)", text(TypeKind::VarChar, 10, general)),
        (
            "varchar(10) character set latin1",
            text(TypeKind::VarChar, 10, CollationId::LATIN1_SWEDISH_CI),
        ),
        (
            "varbinary(4)",
            text(TypeKind::VarBinary, 4, CollationId::BINARY),
        ),
        ("text", text(TypeKind::Text, 65_535, general)),
        ("blob", text(TypeKind::Blob, 65_535, CollationId::BINARY)),
        (
            "enum('a','b')",
            ColumnType::named(TypeKind::Enum, names(), general),
        ),
        (
            "set('a','b')",
            ColumnType::named(TypeKind::Set, names(), general),
        ),
    ]
}

fn table() -> Table {
    let general = CollationId::UTF8MB4_GENERAL_CI;
    let rules = StoreRules {
        strict: true,
        dates: DateRules::default(),
        today: Date::new(2024, 3, 1),
        zone: &Zone::Utc,
    };
    let place = Place {
        database: "test",
        table: "t",
        column: "",
        row: 1,
    };
    let mut row = Vec::new();
    let mut columns = Vec::new();
    for ((name, (ddl, column)), value) in corpus::COLUMNS.iter().zip(types()).zip(VALUES) {
        let given = match value.strip_prefix('\'') {
            Some(text) => Value::bytes(text.trim_end_matches('\'')),
            None if *value == "5" => Value::Int(5),
            None => Value::bytes(*value),
        };
        let from = match given {
            Value::Int(_) => ColumnType::new(TypeKind::BigInt),
            _ => ColumnType::varchar(40, general),
        };
        let mut warnings = Warnings::default();
        let stored = store_value(given.as_ref(), &from, &column, place, &rules, &mut warnings);
        row.push(stored.expect("a value of the column"));
        columns.push((*name, ddl, column));
    }
    Table { columns, row }
}

fn start() -> (Server, Client) {
    Server::reference(&[
        "SET NAMES utf8mb4",
        "SET time_zone = '+00:00', sql_mode = ''",
        "SET timestamp = 1709296496",
        "CREATE DATABASE IF NOT EXISTS test",
    ])
}

fn compare(client: &mut Client, all: &[String], table: &Table, from: &str, known: &str) {
    let known: BTreeSet<&str> = known
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    let expressions: BTreeSet<&String> = all.iter().collect();
    let mut report = Vec::new();
    let mut differing = BTreeSet::new();
    for text in &expressions {
        let (ours, theirs) = (ours(text, table), theirs(client, text, from));
        if !same(&ours, &theirs) {
            differing.insert(text.as_str());
            if !known.contains(text.as_str()) {
                report.push(format!("{text}\n    here    {ours}\n    MariaDB {theirs}"));
            }
        }
    }
    if let Ok(folder) = std::env::var("UPDATE_KNOWN") {
        let name = if from.is_empty() {
            "known.txt"
        } else {
            "known_columns.txt"
        };
        let lines: Vec<&str> = differing.iter().copied().collect();
        std::fs::write(format!("{folder}/{name}"), lines.join("\n") + "\n")
            .expect("the file is writable");
    }
    let healed: Vec<_> = known
        .difference(&differing)
        .filter(|line| !line.is_empty())
        .collect();
    assert!(
        report.is_empty() && healed.is_empty(),
        "{} of {} differ:\n{}\nno longer differing: {healed:#?}",
        report.len(),
        expressions.len(),
        report.join("\n")
    );
}

/// `value : type`, `NULL : type` or `error number`.
fn ours(text: &str, table: &Table) -> String {
    let mut warnings = Warnings::default();
    let mut session = SessionFacts::default();
    let now = parse_datetime(NOW.as_bytes()).expect("a moment").value;
    let mut bits = || 0;
    let mut context = Context {
        warnings: &mut warnings,
        now,
        utc_now: now,
        clock: &|| now,
        zone: &Zone::Utc,
        dates: DateRules::default(),
        division_by_zero: DivisionByZero::Silent,
        default_week_format: 0,
        result_bytes_max: 16 << 20,
        random: &mut bits,
        seeds: Seeds::default(),
        patterns: Patterns::default(),
        session: &mut session,
        meter: &|_| Ok(()),
    };
    let env = BindEnv {
        collation: CollationId::UTF8MB4_GENERAL_CI,
        div_precision_increment: 4,
        no_unsigned_subtraction: false,
        today: Date::new(2024, 3, 1),
    };
    match expression::parse(text, table).evaluate(table, &env, &mut context) {
        Err(SqlCondition { code, .. }) => format!("error {code}"),
        Ok(evaluated) => {
            let column = &evaluated.arg.column;
            let kind = kind_name(
                column.protocol_type(),
                column.protocol_flags_of_expression(),
                column.is_binary(),
            );
            match evaluated.value.as_ref().to_text(column) {
                None => format!("NULL : {kind}"),
                Some(text) if column.kind.is_string() && !column.is_binary() => {
                    let text = column.charset().to_utf8_lossy(&text).into_owned();
                    format!("{} : {kind}", shown(text.as_bytes()))
                }
                Some(text) => format!("{} : {kind}", shown(&text)),
            }
        }
    }
}

fn theirs(client: &mut Client, text: &str, from: &str) -> String {
    match client
        .query(&format!("SELECT {text}{from}"))
        .expect("the connection holds")
    {
        Outcome::Error(error) => format!("error {}", error.number),
        Outcome::Done(_) => "no rows".to_owned(),
        Outcome::Rows(set) => {
            let column = &set.columns[0];
            let kind = kind_name(column.kind, column.flags, column.collation == 63);
            match &set.rows[0][0] {
                None => format!("NULL : {kind}"),
                Some(text) => format!("{} : {kind}", shown(text)),
            }
        }
    }
}

fn shown(text: &[u8]) -> String {
    match std::str::from_utf8(text) {
        Ok(text) => text.escape_debug().to_string(),
        Err(_) => format!("{text:02x?}"),
    }
}

/// Types as clients distinguish them; sizes of one kind count as one.
fn kind_name(kind: u8, flags: u16, is_binary: bool) -> &'static str {
    match kind {
        1 | 2 | 3 | 8 | 9 if flags & flag::UNSIGNED != 0 => "unsigned",
        1 | 2 | 3 | 8 | 9 => "integer",
        4 | 5 => "double",
        6 => "null",
        246 => "decimal",
        10 => "date",
        11 => "time",
        12 | 7 => "datetime",
        _ if is_binary => "binary",
        _ => "text",
    }
}

/// The same text and type; doubles may differ in their last digits, as between mathematics
/// libraries.
fn same(ours: &str, theirs: &str) -> bool {
    if ours == theirs {
        return true;
    }
    let double = |text: &str| -> Option<f64> { text.strip_suffix(" : double")?.parse().ok() };
    match (double(ours), double(theirs)) {
        (Some(ours), Some(theirs)) => (ours - theirs).abs() <= theirs.abs() * 1e-14,
        _ => false,
    }
}
