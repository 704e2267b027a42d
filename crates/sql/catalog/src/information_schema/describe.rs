//! Texts that describe a column or table, shared by COLUMNS and `SHOW CREATE TABLE`.

use std::fmt::Write;

use store::{ColumnDefault, ColumnDefinition, IndexDefinition, TableDefinition, Uniqueness};
use syntax::print::{quoted_name, quoted_string};
use value::{CollationId, ColumnType, TypeKind, Value};

use super::definition_by_id;
use crate::table_options;

/// The indexes that users see. Those of this schema's own tables are hidden: they only serve to
/// find rows without making the others.
pub(super) fn shown_indexes(table: &TableDefinition) -> &[IndexDefinition] {
    match definition_by_id(table.id) {
        Some(_) => &[],
        None => &table.indexes,
    }
}

/// `PRI`, `UNI`, `MUL` or nothing, by MariaDB's rule: the column begins an index.
pub fn column_key(table: &TableDefinition, column: usize) -> &'static str {
    // Without a primary key, the first unique key without nullable columns takes its place.
    let is_candidate = |index: &&IndexDefinition| {
        let is_there = |column: usize| !table.columns[column].nullable;
        index.uniqueness == Uniqueness::Unique
            && index
                .parts
                .iter()
                .all(|part| part.prefix_length.is_none() && is_there(part.column))
    };
    let in_primary = table
        .clustered_key()
        .or_else(|| shown_indexes(table).iter().find(is_candidate))
        .is_some_and(|primary| primary.parts.iter().any(|part| part.column == column));
    if in_primary {
        return "PRI";
    }
    let begins = |index: &&IndexDefinition| {
        index
            .parts
            .first()
            .is_some_and(|part| part.column == column)
    };
    let is_alone =
        |index: &IndexDefinition| index.uniqueness == Uniqueness::Unique && index.parts.len() == 1;
    let shown = shown_indexes(table).iter();
    match shown.filter(begins).map(is_alone).max() {
        Some(true) => "UNI",
        Some(false) => "MUL",
        None => "",
    }
}

/// The `EXTRA` of a column.
pub fn extra_text(column: &ColumnDefinition) -> String {
    let mut words = Vec::new();
    if column.auto_increment {
        words.push("auto_increment".to_owned());
    }
    if column.on_update_now {
        words.push(format!("on update {}", now_text(&column.column_type)));
    }
    if column.invisible {
        words.push("INVISIBLE".to_owned());
    }
    words.join(", ")
}

/// The default as an expression for `CREATE TABLE`, or `None` if there is none. A nullable column
/// without a default has `NULL`.
pub fn default_text(column: &ColumnDefinition) -> Option<String> {
    match &column.default {
        ColumnDefault::None if column.nullable => Some("NULL".to_owned()),
        ColumnDefault::None => None,
        ColumnDefault::Value(Value::Null) => Some("NULL".to_owned()),
        ColumnDefault::Value(value) => Some(literal(value, &column.column_type)),
        ColumnDefault::Now => Some(now_text(&column.column_type)),
        ColumnDefault::Expression(text) => Some(text.clone()),
    }
}

fn now_text(column_type: &ColumnType) -> String {
    match column_type.decimals {
        0 => "current_timestamp()".to_owned(),
        decimals => format!("current_timestamp({decimals})"),
    }
}

/// A value as a literal: numbers bare, everything else quoted.
fn literal(value: &Value, column_type: &ColumnType) -> String {
    if let (TypeKind::Bit, Value::UInt(bits)) = (column_type.kind, value) {
        return format!("b'{bits:b}'");
    }
    let mut bytes = Vec::new();
    value.as_ref().append_text(column_type, &mut bytes);
    let text = column_type.charset().to_utf8_lossy(&bytes);
    let is_bare = column_type.kind.is_number() && column_type.kind != TypeKind::Bit;
    if is_bare {
        text.into_owned()
    } else {
        quoted_string(&text)
    }
}

/// The statement that creates the table, as `SHOW CREATE TABLE` returns it. `next_auto_increment`
/// is shown if it is greater than 1.
pub fn show_create_table(table: &TableDefinition, next_auto_increment: u64) -> String {
    let mut lines: Vec<String> = table
        .columns
        .iter()
        .map(|column| column_line(column, table.collation))
        .collect();
    let shown = shown_indexes(table).iter();
    lines.extend(shown.map(|index| index_line(index, table)));
    let name = quoted_name(&table.name.table);
    let mut text = format!(
        "CREATE TABLE {name} (\n{}\n) ENGINE=InnoDB",
        lines.join(",\n")
    );
    if 1 < next_auto_increment && table.auto_increment_column().is_some() {
        push(
            &mut text,
            format_args!(" AUTO_INCREMENT={next_auto_increment}"),
        );
    }
    let (charset, collation) = (table.collation.charset().name(), table.collation.name());
    push(
        &mut text,
        format_args!(" DEFAULT CHARSET={charset} COLLATE={collation}"),
    );
    for (option, value) in table_options::in_order(table) {
        let shown = option_value(option, value);
        push(&mut text, format_args!(" {option}={shown}"));
    }
    if !table.comment.is_empty() {
        push(
            &mut text,
            format_args!(" COMMENT={}", quoted_string(&table.comment)),
        );
    }
    text
}

/// The options of a table, as `information_schema.tables` shows them.
pub(super) fn create_options(table: &TableDefinition) -> String {
    let options = table_options::in_order(table).into_iter();
    let shown: Vec<_> = options
        .filter(|(name, _)| name != "CONNECTION")
        .map(|(name, value)| {
            let shown = option_value(name, value);
            format!("{}={shown}", name.to_ascii_lowercase())
        })
        .collect();
    shown.join(" ")
}

/// The value of a table's option: words and numbers bare, texts quoted.
fn option_value(option: &str, value: &str) -> String {
    let is_text = option == "CONNECTION";
    let is_word = |value: &str| {
        let mut bytes = value.bytes();
        !value.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    match !is_text && is_word(value) {
        true => value.to_owned(),
        false => quoted_string(value),
    }
}

fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments)
        .expect("writing to a String cannot fail");
}

fn column_line(column: &ColumnDefinition, table_collation: CollationId) -> String {
    let column_type = &column.column_type;
    let mut line = format!("  {} {}", quoted_name(&column.name), column_type.sql_text());
    let has_collation =
        column_type.kind.is_string() || matches!(column_type.kind, TypeKind::Enum | TypeKind::Set);
    let collation = column_type.collation;
    if has_collation && collation != CollationId::BINARY && collation != table_collation {
        let (charset, collation) = (collation.charset().name(), collation.name());
        push(
            &mut line,
            format_args!(" CHARACTER SET {charset} COLLATE {collation}"),
        );
    }
    if !column.nullable {
        line.push_str(" NOT NULL");
    } else if column_type.kind == TypeKind::Timestamp {
        line.push_str(" NULL");
    }
    if column.invisible {
        line.push_str(" INVISIBLE");
    }
    if !column.auto_increment
        && let Some(default) = default_text(column)
    {
        push(&mut line, format_args!(" DEFAULT {default}"));
    }
    if column.on_update_now {
        push(
            &mut line,
            format_args!(" ON UPDATE {}", now_text(column_type)),
        );
    }
    if column.auto_increment {
        line.push_str(" AUTO_INCREMENT");
    }
    if !column.comment.is_empty() {
        push(
            &mut line,
            format_args!(" COMMENT {}", quoted_string(&column.comment)),
        );
    }
    if column.is_json {
        push(&mut line, format_args!(" CHECK ({})", check_text(column)));
    }
    line
}

/// The condition of a column that is JSON.
pub(super) fn check_text(column: &ColumnDefinition) -> String {
    format!("json_valid({})", quoted_name(&column.name))
}

fn index_line(index: &IndexDefinition, table: &TableDefinition) -> String {
    let parts: Vec<_> = index
        .parts
        .iter()
        .map(|part| {
            let name = quoted_name(&table.columns[part.column].name);
            part.prefix_length
                .map_or(name.clone(), |length| format!("{name}({length})"))
        })
        .collect();
    let head = match index.uniqueness {
        Uniqueness::Primary => "PRIMARY KEY".to_owned(),
        Uniqueness::Unique | Uniqueness::Clustered => {
            format!("UNIQUE KEY {}", quoted_name(&index.name))
        }
        Uniqueness::None => format!("KEY {}", quoted_name(&index.name)),
    };
    let mut line = format!("  {head} ({})", parts.join(","));
    if !index.comment.is_empty() {
        push(
            &mut line,
            format_args!(" COMMENT {}", quoted_string(&index.comment)),
        );
    }
    line
}
