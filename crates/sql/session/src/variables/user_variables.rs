//! The user variables of a session, each with its type.
//!
//! A value has one of five types: BIGINT, BIGINT UNSIGNED, DOUBLE, DECIMAL with the digits that it
//! has, or a text in some collation (LONGTEXT, LONGBLOB). Other types are converted when a variable
//! is set: a BIT or a YEAR to a number, a date or an ENUM to text. Plans take the types into
//! account (`planner::Plan::user_variables`).

use std::collections::HashMap;

use foldhash::fast::FixedState;
use value::{CollationId, ColumnType, TypeKind, Value, Warnings};

/// A session's user variables.
#[derive(Debug, Default)]
pub(crate) struct UserVariables {
    /// By name in lower case.
    by_name: HashMap<Box<str>, UserVariable, FixedState>,
    /// Their approximate memory.
    bytes: usize,
}

#[derive(Debug)]
struct UserVariable {
    value: Value,
    column_type: ColumnType,
}

impl UserVariables {
    /// The type of a variable; binary text for one that was never set.
    pub(crate) fn type_of(&self, name: &str) -> ColumnType {
        let variable = self.by_name.get(name);
        variable.map_or_else(unset_type, |variable| variable.column_type.clone())
    }

    /// True if a variable is of that type.
    pub(crate) fn is_of_type(&self, name: &str, column_type: &ColumnType) -> bool {
        match self.by_name.get(name) {
            Some(variable) => variable.column_type == *column_type,
            None => unset_type() == *column_type,
        }
    }

    /// The value of a variable in that type; NULL if it was never set.
    pub(crate) fn value(&self, name: &str, as_type: &ColumnType) -> Value {
        match self.by_name.get(name) {
            Some(UserVariable { value, column_type }) => {
                converted(value.clone(), column_type, as_type)
            }
            None => Value::Null,
        }
    }

    /// The memory of the variables once `name` has this value.
    pub(crate) fn bytes_with(&self, name: &str, value: &Value) -> usize {
        let old = self.by_name.get(name);
        let old = old.map_or(0, |old| variable_bytes(name, &old.value));
        self.bytes - old + variable_bytes(name, value)
    }

    /// Sets a variable to a value from [`kept`]; `bytes` is from [`Self::bytes_with`]. A bare NULL
    /// leaves the type unchanged.
    pub(crate) fn set(&mut self, name: &str, value: Value, column_type: ColumnType, bytes: usize) {
        self.bytes = bytes;
        match self.by_name.get_mut(name) {
            Some(variable) => {
                variable.value = value;
                if column_type.kind != TypeKind::Null {
                    variable.column_type = column_type;
                }
            }
            None => {
                let column_type = match column_type.kind {
                    TypeKind::Null => unset_type(),
                    _ => column_type,
                };
                let variable = UserVariable { value, column_type };
                self.by_name.insert(name.into(), variable);
            }
        }
    }
}

/// The type of a variable that was never set.
fn unset_type() -> ColumnType {
    ColumnType::any_text(CollationId::BINARY)
}

/// The approximate memory of a user variable.
fn variable_bytes(name: &str, value: &Value) -> usize {
    let text_bytes = match value {
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    name.len() + text_bytes + 2 * size_of::<UserVariable>()
}

/// MariaDB's collation of dates and times in variables.
const DATES: CollationId = CollationId::LATIN1_SWEDISH_CI;

/// A value of some type as a variable stores it. A bare NULL has the type of NULL.
pub(crate) fn kept(value: Value, from: &ColumnType) -> (Value, ColumnType) {
    let column_type = match from.kind {
        TypeKind::Null => type_of_value(&value),
        TypeKind::Float | TypeKind::Double => double(),
        TypeKind::Decimal => ColumnType::any_decimal(),
        kind if kind.is_number() && from.unsigned => ColumnType::unsigned(TypeKind::BigInt),
        kind if kind.is_number() => ColumnType::new(TypeKind::BigInt),
        kind if kind.is_temporal() => ColumnType::any_text(DATES),
        _ => ColumnType::any_text(from.collation),
    };
    (converted(value, from, &column_type), column_type)
}

/// The type of a value that came without one.
fn type_of_value(value: &Value) -> ColumnType {
    match value {
        Value::Null => ColumnType::new(TypeKind::Null),
        Value::Int(_) => ColumnType::new(TypeKind::BigInt),
        Value::UInt(_) => ColumnType::unsigned(TypeKind::BigInt),
        Value::Float(_) | Value::Double(_) => double(),
        Value::Decimal(_) => ColumnType::any_decimal(),
        Value::Bytes(_) => unset_type(),
        Value::Date(_) | Value::Time(_) | Value::DateTime(_) => ColumnType::any_text(DATES),
    }
}

fn double() -> ColumnType {
    let mut double = ColumnType::new(TypeKind::Double);
    double.length = 23;
    double
}

/// Converts the value to one of the five types, without warnings.
fn converted(value: Value, from: &ColumnType, to: &ColumnType) -> Value {
    let silent = &mut Warnings::new(0);
    match (to.kind, value) {
        (_, Value::Null) => Value::Null,
        (TypeKind::BigInt, value) => match value.as_ref().to_integer(silent) {
            Some(number) if to.unsigned => Value::UInt(number.bits()),
            Some(number) => Value::Int(number.bits().cast_signed()),
            None => Value::Null,
        },
        (TypeKind::Double, value) => {
            let number = value.as_ref().to_f64(silent);
            number.map_or(Value::Null, Value::Double)
        }
        (TypeKind::Decimal, value) => {
            let number = value.as_ref().to_decimal(silent);
            number.map_or(Value::Null, Value::Decimal)
        }
        (_, Value::Bytes(bytes)) => Value::Bytes(in_charset(bytes, from, to)),
        (_, value) => {
            let text = value.as_ref().to_text(from).map(Vec::from);
            text.map_or(Value::Null, |text| Value::Bytes(in_charset(text, from, to)))
        }
    }
}

/// A text in the character set of the other type.
fn in_charset(text: Vec<u8>, from: &ColumnType, to: &ColumnType) -> Vec<u8> {
    let is_text = from.kind.is_string() && !from.is_binary() && !to.is_binary();
    if !is_text || from.charset() == to.charset() || text.is_ascii() {
        return text;
    }
    let mut converted = Vec::with_capacity(text.len());
    to.charset()
        .append_converted(from.charset(), &text, &mut converted);
    converted
}

#[cfg(test)]
mod tests {
    use value::{Date, Decimal};

    use super::*;

    const TEXT: CollationId = CollationId::UTF8MB4_GENERAL_CI;

    fn decimal(text: &str) -> Value {
        Value::Decimal(Decimal::parse_prefix(text.as_bytes()).value)
    }

    fn set(variables: &mut UserVariables, name: &str, value: Value, from: &ColumnType) {
        let (value, column_type) = kept(value, from);
        let bytes = variables.bytes_with(name, &value);
        variables.set(name, value, column_type, bytes);
    }

    #[test]
    fn each_value_is_kept_in_one_of_five_types() {
        let latin = ColumnType::varchar(3, CollationId::LATIN1_SWEDISH_CI);
        let names = || vec![Box::from(&b"x"[..]), Box::from(&b"y"[..])];
        let of_enum = ColumnType::named(TypeKind::Enum, names(), CollationId::UTF8MB4_BIN);
        let bigint = || ColumnType::new(TypeKind::BigInt);
        let unsigned = || ColumnType::unsigned(TypeKind::BigInt);
        for (value, from, expected) in [
            (
                Value::Int(-1),
                ColumnType::new(TypeKind::TinyInt),
                (Value::Int(-1), bigint()),
            ),
            (
                Value::UInt(5),
                ColumnType::new(TypeKind::Bit),
                (Value::UInt(5), unsigned()),
            ),
            (
                Value::UInt(2024),
                ColumnType::new(TypeKind::Year),
                (Value::UInt(2024), unsigned()),
            ),
            (
                Value::Float(0.5),
                ColumnType::new(TypeKind::Float),
                (Value::Double(0.5), double()),
            ),
            (
                decimal("1.50"),
                ColumnType::decimal(5, 2),
                (decimal("1.50"), ColumnType::any_decimal()),
            ),
            (
                Value::bytes(b"\xe4"),
                latin.clone(),
                (Value::bytes(b"\xe4"), ColumnType::any_text(latin.collation)),
            ),
            (
                Value::UInt(2),
                of_enum,
                (
                    Value::bytes("y"),
                    ColumnType::any_text(CollationId::UTF8MB4_BIN),
                ),
            ),
            (
                Value::Date(Date::new(2024, 2, 29)),
                ColumnType::new(TypeKind::Date),
                (Value::bytes("2024-02-29"), ColumnType::any_text(DATES)),
            ),
            (
                Value::Null,
                ColumnType::decimal(5, 2),
                (Value::Null, ColumnType::any_decimal()),
            ),
            (
                Value::UInt(7),
                ColumnType::new(TypeKind::Null),
                (Value::UInt(7), unsigned()),
            ),
        ] {
            assert_eq!(kept(value, &from), expected, "{from:?}");
        }
    }

    #[test]
    fn a_bare_null_leaves_the_type() {
        let mut variables = UserVariables::default();
        assert_eq!(
            variables.type_of("a"),
            ColumnType::any_text(CollationId::BINARY)
        );
        let null = ColumnType::new(TypeKind::Null);
        set(&mut variables, "a", Value::Null, &null);
        assert!(variables.is_of_type("a", &unset_type()));
        set(
            &mut variables,
            "a",
            Value::Int(1),
            &ColumnType::new(TypeKind::Int),
        );
        set(&mut variables, "a", Value::Null, &null);
        assert!(variables.is_of_type("a", &ColumnType::new(TypeKind::BigInt)));
        assert!(!variables.is_of_type("a", &unset_type()));
        assert_eq!(variables.value("a", &unset_type()), Value::Null);
    }

    #[test]
    fn a_value_is_read_in_the_type_that_is_asked_for() {
        let mut variables = UserVariables::default();
        let text = ColumnType::varchar(9, CollationId::LATIN1_SWEDISH_CI);
        set(&mut variables, "a", Value::bytes(b"12\xe4"), &text);
        let bigint = ColumnType::new(TypeKind::BigInt);
        assert_eq!(variables.value("a", &bigint), Value::Int(12));
        assert_eq!(variables.value("a", &double()), Value::Double(12.0));
        let in_utf8 = ColumnType::any_text(TEXT);
        assert_eq!(variables.value("a", &in_utf8), Value::bytes("12\u{e4}"));
        set(
            &mut variables,
            "a",
            decimal("2.50"),
            &ColumnType::decimal(9, 2),
        );
        assert_eq!(variables.value("a", &in_utf8), Value::bytes("2.50"));
        assert_eq!(variables.value("b", &bigint), Value::Null);
    }

    #[test]
    fn what_they_take_follows_their_values() {
        let mut variables = UserVariables::default();
        let text = ColumnType::varchar(100, TEXT);
        set(&mut variables, "a", Value::bytes(vec![b'x'; 100]), &text);
        let one = variables.bytes;
        set(&mut variables, "b", Value::Int(1), &text);
        assert!(one < variables.bytes);
        set(&mut variables, "a", Value::bytes("x"), &text);
        set(&mut variables, "b", Value::Null, &text);
        assert!(variables.bytes < 2 * one);
    }
}
