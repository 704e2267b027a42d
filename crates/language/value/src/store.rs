//! Converts a value to a column's type, as INSERT, UPDATE and LOAD DATA store it, with MySQL's
//! errors and warnings.
//!
//! In strict `sql_mode` the first problem refuses the row. Otherwise the nearest value is stored
//! and the problem is a warning. Notes (a lost fraction of a decimal, lost blanks) never refuse.

mod fitted;
mod geometry;
mod number;
mod temporal;
mod text;

use std::fmt::Display;

use errcode::{
    ER_DATA_TOO_LONG, ER_TRUNCATED_WRONG_VALUE_FOR_FIELD, ER_WARN_DATA_OUT_OF_RANGE, ErrorCode,
    WARN_DATA_TRUNCATED,
};

use crate::temporal::{Date, DateRules, Zone};
use crate::{ColumnType, SqlCondition, TypeKind, Value, ValueRef, Warnings};

/// How a statement stores values.
#[derive(Debug, Clone)]
pub struct StoreRules<'a> {
    /// Problems refuse the row.
    pub strict: bool,
    /// Which dates are refused.
    pub dates: DateRules,
    /// The current date; a TIME that becomes a DATETIME gets it.
    pub today: Date,
    /// The session's time zone, for a TIMESTAMP.
    pub zone: &'a Zone,
}

/// The column and row that an error names.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The table's database.
    pub database: &'a str,
    /// The table.
    pub table: &'a str,
    /// The column.
    pub column: &'a str,
    /// The row of the statement, from 1.
    pub row: u64,
}

/// Converts `value` of type `from` to what the column `to` stores. NULL stays NULL; the caller
/// checks whether the column allows it. A TIMESTAMP becomes UTC.
///
/// # Errors
/// In strict mode the client's error: 1264, 1265, 1292, 1366 or 1406. In any mode 1366, 1416 and
/// 4078 for geometries.
pub fn store_value(
    value: ValueRef<'_>,
    from: &ColumnType,
    to: &ColumnType,
    place: Place<'_>,
    rules: &StoreRules<'_>,
    warnings: &mut Warnings,
) -> Result<Value, SqlCondition> {
    // The hot cases: values that the column can hold unchanged.
    match value {
        ValueRef::Null => return Ok(Value::Null),
        ValueRef::Int(number)
            if to.kind.is_integer()
                && number >= to.integer_min()
                && (number < 0 || number.unsigned_abs() <= to.integer_max()) =>
        {
            return Ok(if to.unsigned {
                Value::UInt(number.cast_unsigned())
            } else {
                Value::Int(number)
            });
        }
        _ => {}
    }
    if (from.kind == TypeKind::Geometry || to.kind == TypeKind::Geometry)
        && let Some(condition) = geometry::cannot_cast(from, to, place)
    {
        return Err(condition);
    }
    let mut store = Store {
        from,
        to,
        place,
        rules,
        warnings,
    };
    let named = matches!(from.kind, TypeKind::Enum | TypeKind::Set);
    if named && from == to {
        // A copy, even if it is the empty text that was stored in place of a wrong one.
        return Ok(value.to_value());
    }
    if named && !to.kind.is_number() {
        let text = value.to_text(from).unwrap_or_default();
        return store.dispatch(ValueRef::Bytes(&text));
    }
    store.dispatch(value)
}

/// The year of a value that is compared with a YEAR of `digits` digits: what storing it there
/// would keep, also if only in part. Beside four digits `'20'`, `20`, `'20x'` and a date of 2020
/// are 2020.
pub fn compared_year(value: ValueRef<'_>, from: &ColumnType, digits: u32) -> Option<u64> {
    let place = Place {
        database: "",
        table: "",
        column: "",
        row: 0,
    };
    let rules = StoreRules {
        strict: false,
        dates: DateRules::default(),
        today: Date::ZERO,
        zone: &Zone::Utc,
    };
    let mut warnings = Warnings::default();
    let year = ColumnType::year(digits);
    let stored = store_value(value, from, &year, place, &rules, &mut warnings).ok()?;
    let is_cut = |(_, condition): &(crate::Level, SqlCondition)| condition.code == CUT;
    match stored {
        Value::UInt(year) if warnings.entries().iter().all(is_cut) => Some(year),
        _ => None,
    }
}

/// Data truncated: a part of the value was used.
const CUT: ErrorCode = WARN_DATA_TRUNCATED;

/// A conversion.
struct Store<'a> {
    from: &'a ColumnType,
    to: &'a ColumnType,
    place: Place<'a>,
    rules: &'a StoreRules<'a>,
    warnings: &'a mut Warnings,
}

impl Store<'_> {
    fn dispatch(&mut self, value: ValueRef<'_>) -> Result<Value, SqlCondition> {
        match self.to.kind {
            TypeKind::Null => Ok(Value::Null),
            kind if kind.is_integer() => self.integer(value),
            TypeKind::Float | TypeKind::Double => self.floating(value),
            TypeKind::Decimal => self.decimal(value),
            TypeKind::Bit => self.bit(value),
            TypeKind::Year => self.year(value),
            TypeKind::Date => self.date(value),
            TypeKind::Time => self.time(value),
            TypeKind::DateTime | TypeKind::Timestamp => self.datetime(value),
            TypeKind::Enum => self.member(value),
            TypeKind::Set => self.members(value),
            TypeKind::Geometry => self.geometry(value),
            _ => self.text(value),
        }
    }

    /// Refuses the row or adds a warning.
    fn condition(&mut self, condition: SqlCondition) -> Result<(), SqlCondition> {
        if self.rules.strict {
            return Err(condition);
        }
        self.warnings.warn(condition);
        Ok(())
    }

    fn out_of_range(&mut self) -> Result<(), SqlCondition> {
        let Place { column, row, .. } = self.place;
        self.condition(SqlCondition::new(
            ER_WARN_DATA_OUT_OF_RANGE,
            &[&column, &row],
        ))
    }

    fn data_truncated(&mut self) -> Result<(), SqlCondition> {
        let condition = self.truncation();
        self.condition(condition)
    }

    fn note_truncated(&mut self) {
        let condition = self.truncation();
        self.warnings.note(condition);
    }

    fn truncation(&self) -> SqlCondition {
        let Place { column, row, .. } = self.place;
        SqlCondition::new(WARN_DATA_TRUNCATED, &[&column, &row])
    }

    /// 1406 in strict mode, else warning 1265.
    fn too_long(&mut self) -> Result<(), SqlCondition> {
        if !self.rules.strict {
            return self.data_truncated();
        }
        let Place { column, row, .. } = self.place;
        Err(SqlCondition::new(ER_DATA_TOO_LONG, &[&column, &row]))
    }

    /// `Incorrect integer value: 'abc' for column ...`
    fn incorrect(&mut self, code: ErrorCode, kind: &str, text: &[u8]) -> Result<(), SqlCondition> {
        let Place {
            database,
            table,
            column,
            row,
        } = self.place;
        let shown = crate::convert::shown_in_error(text, self.from.charset());
        let arguments: [&dyn Display; 6] = [&kind, &shown, &database, &table, &column, &row];
        self.condition(SqlCondition::with_format_of(
            code,
            ER_TRUNCATED_WRONG_VALUE_FOR_FIELD,
            &arguments,
        ))
    }
}

#[cfg(test)]
mod tests;
