//! The value of a setting in SQL: its text, its type, and the value itself.

use value::{CollationId, ColumnType, TypeKind, Value};

/// A setting's value as SHOW VARIABLES shows it.
pub fn setting_text(name: &str, value: &settings::Value) -> String {
    match setting_value(name, value) {
        Value::Null => String::new(),
        _ => value.to_string(),
    }
}

/// Microseconds as seconds.
pub(crate) fn micros_value(micros: i64) -> Value {
    #[allow(
        clippy::cast_precision_loss,
        reason = "seconds since 1970 have room for a quarter of a microsecond in a double"
    )]
    Value::Double(micros as f64 / 1e6)
}

/// Counts that MariaDB has as signed numbers: of accounts that are locked out, the first is
/// negative.
const SIGNED: [&str; 2] = ["max_user_connections", "innodb_autoinc_lock_mode"];

/// The column type of a system variable with this value: a boolean is BIGINT(1), a count BIGINT(21)
/// UNSIGNED, a time in seconds DOUBLE(21,6).
pub fn system_variable_type(name: &str, value: &Value) -> ColumnType {
    let (mut column_type, length) = match value {
        Value::UInt(_) if SIGNED.iter().any(|it| name.eq_ignore_ascii_case(it)) => {
            (ColumnType::new(TypeKind::BigInt), 21)
        }
        Value::UInt(_) => (ColumnType::unsigned(TypeKind::BigInt), 21),
        Value::Int(_) => (ColumnType::new(TypeKind::BigInt), 1),
        Value::Double(_) => (ColumnType::new(TypeKind::Double), 21),
        Value::Bytes(text) => {
            let collation = CollationId::UTF8MB3_GENERAL_CI;
            let chars = stdx::to_u32(collation.charset().char_count(text));
            (ColumnType::varchar(chars, collation), chars)
        }
        _ => (ColumnType::varchar(0, CollationId::UTF8MB3_GENERAL_CI), 0),
    };
    column_type.length = length;
    column_type.decimals = match column_type.kind {
        TypeKind::Double => 6,
        TypeKind::VarChar => ColumnType::TEXT_DECIMALS,
        _ => 0,
    };
    column_type
}

/// A setting's value with its SQL type: booleans are 0 and 1.
pub fn setting_value(name: &str, value: &settings::Value) -> Value {
    match value {
        settings::Value::Text(text) if name == "character_set_results" && text == "NULL" => {
            Value::Null
        }
        settings::Value::Bool(is_on) => Value::Int(i64::from(*is_on)),
        settings::Value::Unsigned(number) => Value::UInt(*number),
        settings::Value::Micros(micros) => micros_value(i64::try_from(*micros).unwrap_or(i64::MAX)),
        settings::Value::Text(text) => Value::bytes(text.as_bytes()),
    }
}
