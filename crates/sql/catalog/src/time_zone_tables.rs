//! The tables of time zones in `mysql`, with MariaDB's columns.
//!
//! `mariadb-tzinfo-to-sql` fills them, and administrators read them. Time zones themselves are read
//! from the system's database, so nothing here depends on their rows.

use store::{ColumnDefault, ColumnDefinition, TableDefinition};
use value::{CollationId, ColumnType, TypeKind, Value};

use crate::stored_table::StoredTable;

const COLLATION: CollationId = CollationId::UTF8MB3_GENERAL_CI;

/// The definitions of all five tables.
pub fn time_zone_tables() -> Vec<TableDefinition> {
    let unsigned = ColumnType::unsigned(TypeKind::Int);
    let zone = || column("Time_zone_id", unsigned.clone());
    let kind = || column("Transition_type_id", unsigned.clone());
    let time = || column("Transition_time", ColumnType::new(TypeKind::BigInt));
    let mut own_zone = zone();
    own_zone.auto_increment = true;
    let words = [b"Y", b"N"].map(|word| Box::from(&word[..]));
    let leaps = ColumnType::named(TypeKind::Enum, words.to_vec(), COLLATION);
    vec![
        table(
            "time_zone",
            "Time zones",
            vec![
                own_zone,
                with_default("Use_leap_seconds", leaps, Value::UInt(2)),
            ],
            1,
        ),
        table(
            "time_zone_name",
            "Time zone names",
            vec![column("Name", text(64)), zone()],
            1,
        ),
        table(
            "time_zone_transition",
            "Time zone transitions",
            vec![zone(), time(), kind()],
            2,
        ),
        table(
            "time_zone_transition_type",
            "Time zone transition types",
            vec![
                zone(),
                kind(),
                with_default("Offset", ColumnType::new(TypeKind::Int), Value::Int(0)),
                with_default(
                    "Is_DST",
                    ColumnType::unsigned(TypeKind::TinyInt),
                    Value::UInt(0),
                ),
                with_default("Abbreviation", text(8), Value::bytes(*b"")),
            ],
            2,
        ),
        table(
            "time_zone_leap_second",
            "Leap seconds information for time zones",
            vec![time(), column("Correction", ColumnType::new(TypeKind::Int))],
            1,
        ),
    ]
}

fn text(chars: u32) -> ColumnType {
    ColumnType::text(TypeKind::Char, chars, COLLATION)
}

fn column(name: &str, column_type: ColumnType) -> ColumnDefinition {
    ColumnDefinition::new(name, column_type, false)
}

fn with_default(name: &str, column_type: ColumnType, default: Value) -> ColumnDefinition {
    let mut column = column(name, column_type);
    column.default = ColumnDefault::Value(default);
    column
}

/// The primary key is that many of the first columns.
fn table(
    name: &str,
    comment: &str,
    columns: Vec<ColumnDefinition>,
    key_column_count: usize,
) -> TableDefinition {
    StoredTable {
        name,
        comment,
        columns,
        key_column_count,
        collation: COLLATION,
    }
    .definition()
}
