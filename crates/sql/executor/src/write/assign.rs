//! Assigns values to columns: conversion, NOT NULL, defaults, messages.

use errcode::{ClientError, ER_BAD_NULL_ERROR, ER_NO_DEFAULT_FOR_FIELD, ER_WARN_NULL_TO_NOTNULL};
use expression::{Expression, ExpressionKind, Rows, fits_as_is, store_value, zero_of};
use store::{ColumnDefinition, TableDefinition};
use value::{ColumnType, DateTime, Place, TypeKind, Value, ValueRef};

use crate::Outcome;
use crate::context::Context;

/// What happens to a NULL for a NOT NULL column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NullRule {
    /// Error 1048: single-row INSERT, and everything in strict mode.
    Refuse,
    /// The type's zero with warning 1048: many rows, UPDATE, IGNORE.
    Zero,
    /// The same with warning 1263: LOAD DATA.
    Load,
    /// NULL stays: the column takes the next number instead.
    Keep,
}

/// The value that a column gets.
#[derive(Debug)]
pub(super) enum Assigned<'a> {
    /// The value as it is.
    AsItIs(ValueRef<'a>),
    /// Converted to the column.
    Converted(Value),
}

impl Assigned<'_> {
    fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::AsItIs(value) => *value,
            Self::Converted(value) => value.as_ref(),
        }
    }

    /// The value, which borrows no row.
    pub(super) fn into_value(self) -> Value {
        match self {
            Self::AsItIs(value) => value.to_value(),
            Self::Converted(value) => value,
        }
    }
}

/// The target of an assignment: a column of a table, in a row of the statement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target<'d> {
    pub(super) definition: &'d TableDefinition,
    pub(super) column: usize,
    /// From 1; errors and warnings name it.
    pub(super) row_number: u64,
}

impl<'d> Target<'d> {
    fn column(self) -> &'d ColumnDefinition {
        &self.definition.columns[self.column]
    }
}

/// The value of `expression`, converted to the column's type.
pub(super) fn assigned<'a>(
    cx: &'a Context<'_>,
    target: Target<'_>,
    expression: &'a Expression,
    null_rule: NullRule,
) -> Outcome<Assigned<'a>> {
    if let Some(instant) = instant(cx, expression, target.column())? {
        return Ok(Assigned::AsItIs(instant));
    }
    let value = (cx.evaluate(expression)?, &expression.column_type);
    converted(cx, target, value, null_rule)
}

/// Converts a value of a type to the column's type.
fn converted<'a>(
    cx: &'a Context<'_>,
    target: Target<'_>,
    (value, column_type): (ValueRef<'a>, &ColumnType),
    null_rule: NullRule,
) -> Outcome<Assigned<'a>> {
    let column = target.column();
    if value.is_null() {
        return null_of(cx, target, null_rule);
    }
    if fits_as_is(value, column_type, &column.column_type) {
        return Ok(Assigned::AsItIs(value));
    }
    let stored = store_value(
        value,
        column_type,
        &column.column_type,
        Place {
            database: &target.definition.name.database,
            table: &target.definition.name.table,
            column: &column.name,
            row: target.row_number,
        },
        cx.statement,
    )?;
    if stored.is_null() {
        return null_of(cx, target, null_rule);
    }
    Ok(Assigned::Converted(stored))
}

/// A TIMESTAMP assigned to another keeps its instant. As local time it would be ambiguous when
/// clocks are set back.
fn instant<'a>(
    cx: &'a Context<'_>,
    expression: &'a Expression,
    target: &ColumnDefinition,
) -> Outcome<Option<ValueRef<'a>>> {
    let ExpressionKind::Local(stored) = &expression.kind else {
        return Ok(None);
    };
    if target.column_type.kind != TypeKind::Timestamp {
        return Ok(None);
    }
    Ok(match cx.evaluate(stored)? {
        // The mode decides whether a zero date is allowed.
        ValueRef::DateTime(time) if time != DateTime::default() => {
            let time = time.truncated(target.column_type.decimals);
            Some(ValueRef::DateTime(time))
        }
        _ => None,
    })
}

/// Assigns the value of `expression` to the first row, converted to the column's type.
pub(super) fn assign(
    cx: &Context<'_>,
    rows: &mut Rows,
    target: Target<'_>,
    expression: &Expression,
    null_rule: NullRule,
) -> Outcome<()> {
    let value = assigned(cx, target, expression, null_rule)?;
    rows.set(0, target.column, value.as_ref());
    Ok(())
}

/// Assigns a value of a type to the first row, converted to the column's type.
pub(super) fn assign_value(
    cx: &Context<'_>,
    rows: &mut Rows,
    target: Target<'_>,
    value: (ValueRef<'_>, &ColumnType),
    null_rule: NullRule,
) -> Outcome<()> {
    let value = converted(cx, target, value, null_rule)?;
    rows.set(0, target.column, value.as_ref());
    Ok(())
}

/// What a column gets if the value is NULL.
fn null_of<'a>(cx: &Context<'_>, target: Target<'_>, null_rule: NullRule) -> Outcome<Assigned<'a>> {
    let column = target.column();
    if column.nullable || null_rule == NullRule::Keep {
        return Ok(Assigned::AsItIs(ValueRef::Null));
    }
    let error = match null_rule {
        NullRule::Load => {
            ClientError::new(ER_WARN_NULL_TO_NOTNULL, &[&column.name, &target.row_number])
        }
        _ => ClientError::new(ER_BAD_NULL_ERROR, &[&column.name]),
    };
    if null_rule == NullRule::Refuse || cx.statement.is_strict {
        return Err(error.into());
    }
    cx.statement.warn(error);
    Ok(Assigned::Converted(zero_of(&column.column_type)))
}

/// Assigns a column's default to the first row.
pub(super) fn assign_default(
    cx: &Context<'_>,
    rows: &mut Rows,
    target: Target<'_>,
    default: Option<&Expression>,
) -> Outcome<()> {
    if !assign_own_default(cx, rows, target, default)? {
        tell_no_default(cx, target)?;
    }
    Ok(())
}

/// As [`assign_default`], of a column that the statement does not name. That it has no default is
/// told once, of the first row.
pub(super) fn assign_missing(
    cx: &Context<'_>,
    rows: &mut Rows,
    target: Target<'_>,
    default: Option<&Expression>,
) -> Outcome<()> {
    let has_default = assign_own_default(cx, rows, target, default)?;
    if !has_default && target.row_number <= 1 {
        tell_no_default(cx, target)?;
    }
    Ok(())
}

/// Assigns a column's default, or the zero of its type. Returns whether the column has a default.
fn assign_own_default(
    cx: &Context<'_>,
    rows: &mut Rows,
    target: Target<'_>,
    default: Option<&Expression>,
) -> Outcome<bool> {
    let column = target.column();
    if let Some(expression) = default.filter(|_| !column.auto_increment) {
        assign(cx, rows, target, expression, NullRule::Refuse)?;
        return Ok(true);
    }
    if column.auto_increment || column.nullable {
        rows.set(0, target.column, ValueRef::Null);
        return Ok(true);
    }
    rows.set(0, target.column, zero_of(&column.column_type).as_ref());
    // An ENUM without a default has its first member as default.
    Ok(column.column_type.kind == TypeKind::Enum)
}

/// Error 1364, or a warning if the statement is not strict.
fn tell_no_default(cx: &Context<'_>, target: Target<'_>) -> Outcome<()> {
    let error = ClientError::new(ER_NO_DEFAULT_FOR_FIELD, &[&target.column().name]);
    if cx.statement.is_strict {
        return Err(error.into());
    }
    cx.statement.warn(error);
    Ok(())
}

/// Error 1062, with the key of the new row in an index.
pub(super) fn duplicate_entry(
    rows: &Rows,
    definition: &TableDefinition,
    index: usize,
) -> ClientError {
    let index = &definition.indexes[index];
    let mut text = Vec::new();
    for (place, part) in index.parts.iter().enumerate() {
        if place > 0 {
            text.push(b'-');
        }
        let column_type = &definition.columns[part.column].column_type;
        match rows.get(0, part.column) {
            ValueRef::Null => text.extend_from_slice(b"NULL"),
            ValueRef::Bytes(bytes) if column_type.is_binary() => {
                for byte in bytes {
                    match byte {
                        b' '..=b'~' => text.push(*byte),
                        _ => text.extend_from_slice(format!("\\x{byte:02X}").as_bytes()),
                    }
                }
            }
            ValueRef::Bytes(bytes) => {
                let shown = column_type.charset().to_utf8_lossy(bytes);
                text.extend_from_slice(shown.as_bytes());
            }
            value => value.append_text(column_type, &mut text),
        }
    }
    let text = String::from_utf8_lossy(&text);
    // MySQL shows at most 64 characters of the key.
    let shown: String = text.chars().take(64).collect();
    ClientError::duplicate_entry(&shown, &index.name)
}

/// The row's values, borrowed, as the store takes them.
pub(super) fn row_refs(rows: &Rows) -> smallvec::SmallVec<[ValueRef<'_>; 16]> {
    rows.row(0).collect()
}

/// The number of an AUTO_INCREMENT value, if it is one.
pub(super) fn number_of(value: ValueRef<'_>) -> Option<u64> {
    match value {
        ValueRef::Int(number) => u64::try_from(number).ok(),
        ValueRef::UInt(number) => Some(number),
        _ => None,
    }
}

/// The number as a value of an AUTO_INCREMENT column, or `None` if it does not fit.
pub(super) fn value_of(number: u64, column: &ColumnDefinition) -> Option<Value> {
    let column_type = &column.column_type;
    if number > column_type.integer_max() {
        return None;
    }
    if column_type.unsigned {
        Some(Value::UInt(number))
    } else {
        i64::try_from(number).ok().map(Value::Int)
    }
}
