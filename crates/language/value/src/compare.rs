//! Comparison of values of two types, and the order of values of one type.
//!
//! A comparison is planned once from the types ([`Comparison::of`]) and done for each row, usually
//! without allocation ([`Comparison::compare`]).

use std::cmp::Ordering;

use crate::collation::CollationId;
use crate::number::Integer;
use crate::temporal::{Date, DateTime, Time};
use crate::{ColumnType, TypeKind, ValueRef, Warnings};

/// The domain in which two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// As integers, each with its own sign.
    Integer,
    /// As exact numbers.
    Decimal,
    /// As doubles.
    Double,
    /// As texts with that collation.
    Text(CollationId),
    /// As dates with time; a TIME is on that date.
    DateTime(Date),
    /// As durations.
    Time,
}

impl Comparison {
    /// The domain for values of these types. Texts are compared by `collation`, which the caller
    /// gets from [`crate::collation::mix_to_compare`].
    pub fn of(left: &ColumnType, right: &ColumnType, collation: CollationId, today: Date) -> Self {
        if left.kind == TypeKind::Null {
            return Self::of_one(right, collation, today);
        }
        if right.kind == TypeKind::Null {
            return Self::of_one(left, collation, today);
        }
        if left.kind.is_temporal() || right.kind.is_temporal() {
            return Self::of_temporal(left.kind, right.kind, today);
        }
        if left.kind.is_string() && right.kind.is_string() {
            return Self::Text(collation);
        }
        let integral =
            |kind: TypeKind| kind.is_integer() || matches!(kind, TypeKind::Year | TypeKind::Bit);
        if integral(left.kind) && integral(right.kind) {
            return Self::Integer;
        }
        let exact = |kind: TypeKind| integral(kind) || kind == TypeKind::Decimal;
        let is_text = |kind: TypeKind| kind.is_string() || kind.is_bytes();
        // An integer and a text are compared as exact numbers, other numbers and a text are not.
        let is_pair = |a: TypeKind, b: TypeKind| integral(a) && is_text(b);
        if exact(left.kind) && exact(right.kind)
            || is_pair(left.kind, right.kind)
            || is_pair(right.kind, left.kind)
        {
            Self::Decimal
        } else {
            Self::Double
        }
    }

    fn of_one(column: &ColumnType, collation: CollationId, today: Date) -> Self {
        match column.kind {
            TypeKind::Null => Self::Integer,
            _ => Self::of(column, column, collation, today),
        }
    }

    fn of_temporal(left: TypeKind, right: TypeKind, today: Date) -> Self {
        let time = |kind| kind == TypeKind::Time;
        let dated = |kind: TypeKind| kind.is_temporal() && !time(kind);
        if (time(left) && !dated(right)) || (time(right) && !dated(left)) {
            Self::Time
        } else {
            Self::DateTime(today)
        }
    }

    /// The order of two values, or `None` if one is NULL or cannot be converted.
    #[inline]
    pub fn compare(
        self,
        left: ValueRef<'_>,
        right: ValueRef<'_>,
        warnings: &mut Warnings,
    ) -> Option<Ordering> {
        match (self, left, right) {
            (_, ValueRef::Null, _) | (_, _, ValueRef::Null) => None,
            (Self::Integer, ValueRef::Int(left), ValueRef::Int(right)) => Some(left.cmp(&right)),
            (Self::Text(collation), ValueRef::Bytes(left), ValueRef::Bytes(right)) => {
                Some(collation.compare(left, right))
            }
            _ => self.compare_converted(left, right, warnings),
        }
    }

    fn compare_converted(
        self,
        left: ValueRef<'_>,
        right: ValueRef<'_>,
        warnings: &mut Warnings,
    ) -> Option<Ordering> {
        match self {
            Self::Integer => {
                let (left, right) = (left.to_integer(warnings)?, right.to_integer(warnings)?);
                Some(compare_integers(left, right))
            }
            Self::Decimal => Some(left.to_decimal(warnings)?.cmp(&right.to_decimal(warnings)?)),
            Self::Double => left.to_f64(warnings)?.partial_cmp(&right.to_f64(warnings)?),
            Self::Text(collation) => {
                let plain = ColumnType::new(TypeKind::Null);
                Some(collation.compare(&left.to_text(&plain)?, &right.to_text(&plain)?))
            }
            Self::DateTime(today) => {
                // An invalid date compares as the zero date; neither is NULL.
                let left = left.to_compared_datetime(today, warnings);
                let right = right.to_compared_datetime(today, warnings);
                Some(
                    left.unwrap_or(DateTime::ZERO)
                        .cmp(&right.unwrap_or(DateTime::ZERO)),
                )
            }
            Self::Time => {
                let left = left.to_compared_time(warnings).unwrap_or(Time::ZERO);
                Some(left.cmp(&right.to_compared_time(warnings).unwrap_or(Time::ZERO)))
            }
        }
    }
}

/// Compares integers of any signedness.
#[inline]
pub fn compare_integers(left: Integer, right: Integer) -> Ordering {
    match (left, right) {
        (Integer::Signed(left), Integer::Signed(right)) => left.cmp(&right),
        (Integer::Unsigned(left), Integer::Unsigned(right)) => left.cmp(&right),
        (Integer::Signed(left), Integer::Unsigned(right)) => match u64::try_from(left) {
            Ok(left) => left.cmp(&right),
            Err(_) => Ordering::Less,
        },
        (Integer::Unsigned(_), Integer::Signed(_)) => compare_integers(right, left).reverse(),
    }
}

/// The order of two values of one type, NULL first: what ORDER BY, GROUP BY and keys use.
#[inline]
pub fn compare_same(left: ValueRef<'_>, right: ValueRef<'_>, collation: CollationId) -> Ordering {
    match (left, right) {
        (ValueRef::Null, ValueRef::Null) => Ordering::Equal,
        (ValueRef::Null, _) => Ordering::Less,
        (_, ValueRef::Null) => Ordering::Greater,
        (ValueRef::Int(left), ValueRef::Int(right)) => left.cmp(&right),
        (ValueRef::UInt(left), ValueRef::UInt(right)) => left.cmp(&right),
        (ValueRef::Int(left), ValueRef::UInt(right)) => {
            compare_integers(Integer::Signed(left), Integer::Unsigned(right))
        }
        (ValueRef::UInt(left), ValueRef::Int(right)) => {
            compare_integers(Integer::Unsigned(left), Integer::Signed(right))
        }
        (ValueRef::Bytes(left), ValueRef::Bytes(right)) => collation.compare(left, right),
        (ValueRef::Decimal(left), ValueRef::Decimal(right)) => {
            left.to_decimal().cmp(&right.to_decimal())
        }
        (ValueRef::Float(left), ValueRef::Float(right)) => {
            left.partial_cmp(&right).unwrap_or(Ordering::Equal)
        }
        (ValueRef::Double(left), ValueRef::Double(right)) => {
            left.partial_cmp(&right).unwrap_or(Ordering::Equal)
        }
        (ValueRef::Date(left), ValueRef::Date(right)) => left.cmp(&right),
        (ValueRef::Time(left), ValueRef::Time(right)) => left.cmp(&right),
        (ValueRef::DateTime(left), ValueRef::DateTime(right)) => left.cmp(&right),
        _ => compare_mixed(left, right),
    }
}

/// Values of one type have one variant; otherwise they are compared as numbers.
fn compare_mixed(left: ValueRef<'_>, right: ValueRef<'_>) -> Ordering {
    let mut ignored = Warnings::new(0);
    let (left, right) = (left.to_f64(&mut ignored), right.to_f64(&mut ignored));
    left.partial_cmp(&right).unwrap_or(Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decimal, Value};

    fn compared(left: (&Value, TypeKind), right: (&Value, TypeKind)) -> (Option<Ordering>, u64) {
        let mut warnings = Warnings::default();
        let (left_type, right_type) = (ColumnType::new(left.1), ColumnType::new(right.1));
        let collation = CollationId::UTF8MB4_GENERAL_CI;
        let comparison = Comparison::of(&left_type, &right_type, collation, Date::new(2024, 1, 1));
        let order = comparison.compare(left.0.as_ref(), right.0.as_ref(), &mut warnings);
        (order, warnings.count())
    }

    #[test]
    fn types_meet_in_the_domain_that_mysql_chooses() {
        let text = |text: &str| Value::bytes(text);
        let equal = Some(Ordering::Equal);
        let cases = [
            (
                (Value::Int(-1), TypeKind::Int),
                (Value::UInt(u64::MAX), TypeKind::BigInt),
                (Some(Ordering::Less), 0),
            ),
            (
                (Value::Int(12), TypeKind::Int),
                (text("12abc"), TypeKind::VarChar),
                (equal, 1),
            ),
            (
                (text("a"), TypeKind::VarChar),
                (text("A "), TypeKind::Char),
                (equal, 0),
            ),
            (
                (Value::Decimal(Decimal::ONE), TypeKind::Decimal),
                (Value::Int(1), TypeKind::Int),
                (equal, 0),
            ),
            (
                (Value::Date(Date::new(2024, 2, 29)), TypeKind::Date),
                (text("2024-02-29 00:00:00"), TypeKind::VarChar),
                (equal, 0),
            ),
            (
                (Value::Date(Date::new(2024, 2, 29)), TypeKind::Date),
                (Value::Int(20_240_229), TypeKind::Int),
                (equal, 0),
            ),
            (
                (Value::Null, TypeKind::Int),
                (Value::Int(1), TypeKind::Int),
                (None, 0),
            ),
        ];
        for (left, right, expected) in cases {
            let found = compared((&left.0, left.1), (&right.0, right.1));
            assert_eq!(found, expected, "{left:?} {right:?}");
        }
    }
}
