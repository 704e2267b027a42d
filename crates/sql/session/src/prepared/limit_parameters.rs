//! Which parameters of a statement's text are numbers of its LIMITs.
//!
//! EXECUTE converts these to integers, whatever their types, and refuses negative ones.

use syntax::keyword::Keyword;
use syntax::token::{Kind, Lexer};
use value::number::Integer;
use value::{ColumnType, TypeKind, Value, Warnings};

/// The numbers of the parameters of LIMIT clauses, in order.
pub(crate) fn limit_parameters(text: &[u8], mode: settings::SqlMode) -> Vec<usize> {
    let mut lexer = Lexer::new(text, mode);
    let (mut found, mut count, mut is_limit) = (Vec::new(), 0, false);
    loop {
        let token = lexer.next_keyword();
        is_limit = match (token.kind, token.keyword) {
            (Kind::End, _) => return found,
            (Kind::Parameter, _) => {
                if is_limit {
                    found.push(count);
                }
                count += 1;
                is_limit
            }
            (Kind::Word, Some(Keyword::Limit)) => true,
            (Kind::Word, Some(Keyword::Offset)) | (Kind::Comma | Kind::Integer, _) => is_limit,
            _ => false,
        };
    }
}

/// Converts any value to a number of LIMIT. Returns `None` if it is negative; NULL stays NULL.
pub(crate) fn limit_value(value: &Value) -> Option<(Value, ColumnType)> {
    let number = match value.as_ref().to_integer(&mut Warnings::new(0)) {
        None => return Some((Value::Null, ColumnType::new(TypeKind::Null))),
        Some(Integer::Unsigned(number)) => number,
        Some(Integer::Signed(number)) => u64::try_from(number).ok()?,
    };
    let column_type = ColumnType::unsigned(TypeKind::BigInt);
    Some((Value::UInt(number), column_type))
}

#[cfg(test)]
mod tests {
    use value::Decimal;

    use super::*;

    #[test]
    fn parameters_of_a_limit_are_told_apart() {
        for (text, expected) in [
            ("SELECT ? FROM t WHERE a = ? LIMIT ?", &[2][..]),
            ("SELECT a FROM t LIMIT ?, ?", &[0, 1]),
            ("SELECT a FROM t LIMIT 5 OFFSET ?", &[0]),
            ("(SELECT a FROM t LIMIT ?) UNION SELECT ? LIMIT ?", &[0, 2]),
            (
                "INSERT INTO t SELECT a FROM t LIMIT 1 ON DUPLICATE KEY UPDATE a = ?",
                &[],
            ),
            ("UPDATE t SET a = ?, `limit` = ?", &[]),
        ] {
            let found = limit_parameters(text.as_bytes(), settings::SqlMode::default());
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn whatever_is_not_negative_is_a_number_of_rows() {
        let decimal = |text: &str| Value::Decimal(Decimal::parse_prefix(text.as_bytes()).value);
        for (value, expected) in [
            (Value::Int(2), Some(Value::UInt(2))),
            (Value::Int(-1), None),
            (Value::bytes("1.7"), Some(Value::UInt(1))),
            (Value::bytes("-1"), None),
            (Value::bytes("x"), Some(Value::UInt(0))),
            (decimal("1.5"), Some(Value::UInt(2))),
            (decimal("-0.4"), Some(Value::UInt(0))),
            (Value::Double(2.5), Some(Value::UInt(2))),
            (Value::UInt(u64::MAX), Some(Value::UInt(u64::MAX))),
            (Value::Null, Some(Value::Null)),
        ] {
            let found = limit_value(&value).map(|(value, _)| value);
            assert_eq!(found, expected, "{value:?}");
        }
    }
}
