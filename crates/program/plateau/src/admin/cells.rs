//! Columns of the tables, and values of their rows.

use std::time::Duration;

use store::{ColumnDefinition, LocalFuture};
use value::{ColumnType, DateTime, TypeKind, Value};
use virtual_store::{COLLATION, Row};

/// Longer texts are cut: a GTID position of MySQL may have thousands of letters.
const TEXT_CHARS_MAX: usize = 1024;

/// The answer to a question.
pub(super) fn rows(
    asked: impl Future<Output = Vec<Row>> + 'static,
) -> LocalFuture<'static, Vec<Row>> {
    Box::pin(asked)
}

pub(super) fn text_column(name: &str) -> ColumnDefinition {
    let chars = u32::try_from(TEXT_CHARS_MAX).expect("a small number");
    ColumnDefinition::new(name, ColumnType::varchar(chars, COLLATION), true)
}

pub(super) fn number_column(name: &str) -> ColumnDefinition {
    ColumnDefinition::new(name, ColumnType::new(TypeKind::BigInt), true)
}

/// A column of points in time, with microseconds. Sessions see them in their time zone.
pub(super) fn time_column(name: &str) -> ColumnDefinition {
    let kind = ColumnType::temporal(TypeKind::Timestamp, 6);
    ColumnDefinition::new(name, kind, true)
}

pub(super) fn text(text: &str) -> Value {
    let end = text.char_indices().nth(TEXT_CHARS_MAX);
    let cut = end.and_then(|(at, _)| text.get(..at)).unwrap_or(text);
    Value::bytes(cut.as_bytes())
}

pub(super) fn maybe(text_or_none: Option<impl AsRef<str>>) -> Value {
    text_or_none.map_or(Value::Null, |it| text(it.as_ref()))
}

/// Values of a condition, of which any will do; NULL if there is no such condition.
pub(super) fn list(values: &[impl ToString]) -> Value {
    let values: Vec<_> = values.iter().map(ToString::to_string).collect();
    maybe((!values.is_empty()).then(|| values.join(", ")))
}

pub(super) fn number(number: impl Into<u64>) -> Value {
    Value::Int(i64::try_from(number.into()).unwrap_or(i64::MAX))
}

pub(super) fn count(count: usize) -> Value {
    number(stdx::to_u64(count))
}

pub(super) fn micros(time: Duration) -> Value {
    Value::Int(i64::try_from(time.as_micros()).unwrap_or(i64::MAX))
}

/// A point in time, by its microseconds since 1970.
pub(super) fn time(unix_micros: u64) -> Value {
    let micros = i64::try_from(unix_micros).ok();
    let time = micros.and_then(DateTime::from_unix_micros);
    time.map_or(Value::Null, Value::DateTime)
}

pub(super) fn millis(time: Duration) -> Value {
    Value::Int(i64::try_from(time.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_letters() {
        let long = "\u{e9}".repeat(TEXT_CHARS_MAX + 1);
        for length in [TEXT_CHARS_MAX - 1, TEXT_CHARS_MAX, TEXT_CHARS_MAX + 1] {
            let given = "\u{e9}".repeat(length);
            let kept = "\u{e9}".repeat(length.min(TEXT_CHARS_MAX));
            assert_eq!(text(&given), Value::bytes(kept.as_bytes()));
        }
        assert_eq!(maybe(None::<&str>), Value::Null);
        assert_eq!(number(u64::MAX), Value::Int(i64::MAX));
        assert!(TEXT_CHARS_MAX < long.len());
    }
}
