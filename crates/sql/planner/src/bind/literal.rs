//! Literals and parameters.

use errcode::{
    ER_UNKNOWN_CHARACTER_SET, ER_WRONG_ARGUMENTS, ER_WRONG_PARAMCOUNT_TO_NATIVE_FCT, ER_WRONG_VALUE,
};
use expression::{Expression, ExpressionKind};
use settings::SqlMode;
use syntax::ast::{Expr, ExprKind, Function, Literal, TemporalKind};
use value::temporal::{DateRules, ParsedDateTime, parse_datetime, parse_time};
use value::{Charset, CollationId, ColumnType, Decimal, TypeKind, Value};

use super::dated::{as_double, as_moment};
use super::{Binder, error};
use crate::PlanError;

impl Binder<'_> {
    pub(super) fn literal(&self, literal: &Literal) -> Result<Expression, PlanError> {
        Ok(match literal {
            Literal::Null => Expression::null(),
            Literal::Bool(truth) => Expression::boolean(*truth),
            Literal::Integer(number) => integer(*number),
            Literal::Decimal(text) => decimal(text),
            Literal::Float(text) => {
                let parsed = value::number::parse_double(text.as_bytes());
                let double = ColumnType::new(TypeKind::Double);
                Expression::constant(Value::Double(parsed.value), double)
            }
            Literal::String { value, charset } => self.string(value, charset.as_deref())?,
            Literal::Hex {
                value,
                is_number: true,
                charset: None,
            }
            | Literal::Bit {
                value,
                charset: None,
            } => number_or_text(value),
            Literal::Hex { value, charset, .. } | Literal::Bit { value, charset } => {
                let charset = charset_named(charset.as_deref().unwrap_or("binary"))?;
                text_constant(value, charset.default_collation())
            }
            Literal::Temporal { kind, text } => temporal(*kind, text, self.date_rules())?,
        })
    }

    fn date_rules(&self) -> DateRules {
        let mode = self.settings.sql_mode;
        DateRules {
            no_zero_date: mode.has(SqlMode::NO_ZERO_DATE),
            no_zero_in_date: mode.has(SqlMode::NO_ZERO_IN_DATE),
            allow_invalid: mode.has(SqlMode::ALLOW_INVALID_DATES),
        }
    }

    fn string(&self, text: &[u8], charset: Option<&str>) -> Result<Expression, PlanError> {
        let rules = self.settings.strings;
        Ok(match charset {
            None => text_constant(&rules.value(text), rules.collation),
            Some(name) => {
                let collation = charset_named(name)?.default_collation();
                text_constant(&rules.sent(text), collation)
            }
        })
    }

    /// `NAME_CONST('name', literal)`: the literal; its name becomes the column's name.
    pub(super) fn name_const(
        &mut self,
        function: &str,
        call: &Function,
    ) -> Result<Expression, PlanError> {
        let [name, value] = call.arguments.as_slice() else {
            let code = ER_WRONG_PARAMCOUNT_TO_NATIVE_FCT;
            return Err(error(code, &[&call.name.text]));
        };
        if !is_literal(name) || !is_literal(value) {
            return Err(error(ER_WRONG_ARGUMENTS, &[&function]));
        }
        let mut literal = self.term(value)?;
        literal.nullable = true;
        Ok(literal)
    }

    pub(super) fn parameter(&self, number: u32) -> Expression {
        let number = stdx::to_usize(number);
        let known = self.settings.parameter_types.get(number);
        let column_type = known
            .cloned()
            .unwrap_or_else(|| ColumnType::new(TypeKind::Null));
        Expression::new(ExpressionKind::Parameter(number), column_type)
    }
}

/// True of a literal, also with a sign or a collation.
fn is_literal(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Literal(_) => true,
        ExprKind::Unary { operand, .. } => is_literal(operand),
        ExprKind::Collate { value, .. } => is_literal(value),
        _ => false,
    }
}

/// The character set with this name.
pub(super) fn charset_named(name: &str) -> Result<Charset, PlanError> {
    Charset::from_name(name).ok_or_else(|| error(ER_UNKNOWN_CHARACTER_SET, &[&name]))
}

/// A string.
pub(crate) fn text_constant(bytes: &[u8], collation: CollationId) -> Expression {
    let chars = stdx::to_u32(collation.charset().char_count(bytes));
    let column_type = ColumnType::varchar(chars, collation);
    Expression::constant(Value::Bytes(bytes.to_vec()), column_type)
}

/// `0x41` and `b'101'`: bytes, but a number where one is needed ([`as_number`]). Clients and stored
/// types see the difference as the type's missing sign.
fn number_or_text(bytes: &[u8]) -> Expression {
    let mut text = text_constant(bytes, CollationId::BINARY);
    text.column_type.unsigned = true;
    text
}

/// The expression as an operand of arithmetic: `0x41` is 65 there, a dated text its digits.
pub(crate) fn as_number(expression: Expression) -> Expression {
    as_double(literal_as_number(expression))
}

/// The expression compared with a number: as above, with every digit of a dated text.
pub(crate) fn as_compared(expression: Expression) -> Expression {
    as_moment(literal_as_number(expression))
}

/// `0x41` as 65.
pub(super) fn literal_as_number(expression: Expression) -> Expression {
    let column_type = &expression.column_type;
    match &expression.kind {
        ExpressionKind::Constant(Value::Bytes(bytes))
            if column_type.unsigned && column_type.kind == TypeKind::VarChar =>
        {
            let kept = &bytes[bytes.len().saturating_sub(8)..];
            let number = kept
                .iter()
                .fold(0u64, |number, byte| number << 8 | u64::from(*byte));
            integer(number)
        }
        _ => expression,
    }
}

/// An integer literal: INT if it surely fits, signed if possible.
fn integer(number: u64) -> Expression {
    let length = stdx::to_u32(number.to_string().len());
    let mut column_type = match i64::try_from(number) {
        Ok(_) if length < 10 => ColumnType::new(TypeKind::Int),
        Ok(_) => ColumnType::new(TypeKind::BigInt),
        Err(_) => ColumnType::unsigned(TypeKind::BigInt),
    };
    column_type.length = length;
    let value = i64::try_from(number).map_or(Value::UInt(number), Value::Int);
    Expression::constant(value, column_type)
}

fn decimal(text: &str) -> Expression {
    let number = Decimal::parse_prefix(text.as_bytes()).value;
    let scale = usize::from(number.scale());
    let digits = (number.integer_digits().max(1) + scale).min(usize::from(u8::MAX));
    let precision = u8::try_from(digits).unwrap_or(Decimal::PRECISION_MAX);
    let column_type = ColumnType::decimal(precision, number.scale());
    Expression::constant(Value::Decimal(number), column_type)
}

fn temporal(kind: TemporalKind, text: &str, dates: DateRules) -> Result<Expression, PlanError> {
    let is_whole_date = |parsed: &ParsedDateTime| is_whole_date(parsed, dates);
    let fsp = text
        .rsplit_once('.')
        .map_or(0, |(_, digits)| digits.len().min(6));
    let fsp = u8::try_from(fsp).unwrap_or(0);
    let (found, name) = match kind {
        TemporalKind::Time => {
            let time = parse_time(text.as_bytes()).filter(|parsed| !parsed.truncated);
            let column_type = ColumnType::temporal(TypeKind::Time, fsp);
            (
                time.map(|parsed| (Value::Time(parsed.value), column_type)),
                "TIME",
            )
        }
        TemporalKind::Date => {
            let date = parse_datetime(text.as_bytes()).filter(is_whole_date);
            let column_type = ColumnType::new(TypeKind::Date);
            (
                date.map(|parsed| (Value::Date(parsed.value.date()), column_type)),
                "DATE",
            )
        }
        TemporalKind::Timestamp => {
            let time = parse_datetime(text.as_bytes()).filter(is_whole_date);
            let column_type = ColumnType::temporal(TypeKind::DateTime, fsp);
            (
                time.map(|parsed| (Value::DateTime(parsed.value), column_type)),
                "DATETIME",
            )
        }
    };
    match found {
        Some((value, column_type)) => Ok(Expression::constant(value, column_type)),
        None => Err(error(ER_WRONG_VALUE, &[&name, &text])),
    }
}

/// True if the text is a date up to its end, and its month has that day.
fn is_whole_date(parsed: &ParsedDateTime, dates: DateRules) -> bool {
    !parsed.truncated && parsed.value.date().check(dates)
}
