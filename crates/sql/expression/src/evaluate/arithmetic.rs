//! `+ - * / DIV %` and unary minus, in integers, decimals and doubles.

use errcode::{ClientError, ER_DATA_OUT_OF_RANGE};
use value::decimal::{DecimalOverflow, DecimalRef, Rounding};
use value::{ColumnType, Decimal, ValueRef};

use super::{Evaluated, Evaluator};
use crate::Failure;
use crate::tree::{Arithmetic, ArithmeticOperator, Class, Expression, ExpressionKind};
use settings::SqlMode;

impl<'a> Evaluator<'a> {
    pub(super) fn arithmetic(
        &self,
        arithmetic: &'a Arithmetic,
        result: &'a ColumnType,
    ) -> Evaluated<'a> {
        let left = self.evaluate_as(&arithmetic.left, arithmetic.class)?;
        if left.is_null() {
            return Ok(ValueRef::Null);
        }
        let right = self.evaluate_as(&arithmetic.right, arithmetic.class)?;
        match (left, right) {
            (_, ValueRef::Null) => Ok(ValueRef::Null),
            (ValueRef::Double(left), ValueRef::Double(right)) => {
                self.double(arithmetic, left, right, result)
            }
            (ValueRef::Decimal(left), ValueRef::Decimal(right)) => {
                self.decimal(arithmetic, &left.to_decimal(), &right.to_decimal(), result)
            }
            _ => self.integer(arithmetic, wide(left), wide(right), result),
        }
    }

    fn integer(
        &self,
        arithmetic: &'a Arithmetic,
        left: i128,
        right: i128,
        result: &'a ColumnType,
    ) -> Evaluated<'a> {
        let number = match arithmetic.operator {
            ArithmeticOperator::Add => left + right,
            ArithmeticOperator::Subtract => left - right,
            // The product of two 64-bit numbers fits into 128 bits with sign, except in one case.
            ArithmeticOperator::Multiply => left.checked_mul(right).unwrap_or(i128::MAX),
            ArithmeticOperator::IntegerDivide
            | ArithmeticOperator::Modulo
            | ArithmeticOperator::Divide
                if right == 0 =>
            {
                self.statement.division_by_zero()?;
                return Ok(ValueRef::Null);
            }
            ArithmeticOperator::Modulo => left % right,
            ArithmeticOperator::IntegerDivide | ArithmeticOperator::Divide => left / right,
        };
        let unsigned = result.unsigned
            && !(arithmetic.operator == ArithmeticOperator::Subtract
                && self
                    .statement
                    .options
                    .sql_mode
                    .has(SqlMode::NO_UNSIGNED_SUBTRACTION));
        fit(number, unsigned).ok_or_else(|| {
            let name = if unsigned {
                "BIGINT UNSIGNED"
            } else {
                "BIGINT"
            };
            out_of_range(name, &arithmetic.text)
        })
    }

    fn decimal(
        &self,
        arithmetic: &'a Arithmetic,
        left: &Decimal,
        right: &Decimal,
        result: &'a ColumnType,
    ) -> Evaluated<'a> {
        let calculated = match arithmetic.operator {
            ArithmeticOperator::Add => Some(left.add(right)),
            ArithmeticOperator::Subtract => Some(left.subtract(right)),
            ArithmeticOperator::Multiply => Some(left.multiply(right)),
            ArithmeticOperator::Divide => left.divide(right, self.statement.division_increment()),
            ArithmeticOperator::IntegerDivide => left.divide_integer(right),
            ArithmeticOperator::Modulo => left.remainder(right),
        };
        let Some(calculated) = calculated else {
            self.statement.division_by_zero()?;
            return Ok(ValueRef::Null);
        };
        let overflow = |_: DecimalOverflow| out_of_range("DECIMAL", &arithmetic.text);
        let number = calculated.map_err(overflow)?;
        if arithmetic.operator == ArithmeticOperator::IntegerDivide {
            let name = if result.unsigned {
                "BIGINT UNSIGNED"
            } else {
                "BIGINT"
            };
            let whole = if result.unsigned {
                number.to_u64().map(ValueRef::UInt).ok()
            } else {
                number.to_i64().map(ValueRef::Int).ok()
            };
            return whole.ok_or_else(|| out_of_range(name, &arithmetic.text));
        }
        let number = if number.scale() > result.decimals {
            number
                .round(i32::from(result.decimals), Rounding::HalfUp)
                .map_err(overflow)?
        } else {
            number
        };
        Ok(ValueRef::Decimal(DecimalRef::Whole(
            self.frame.arena().alloc(number),
        )))
    }

    fn double(
        &self,
        arithmetic: &'a Arithmetic,
        left: f64,
        right: f64,
        result: &'a ColumnType,
    ) -> Evaluated<'a> {
        let number = match arithmetic.operator {
            ArithmeticOperator::Add => left + right,
            ArithmeticOperator::Subtract => left - right,
            ArithmeticOperator::Multiply => left * right,
            ArithmeticOperator::Divide
            | ArithmeticOperator::IntegerDivide
            | ArithmeticOperator::Modulo
                if right == 0.0 =>
            {
                self.statement.division_by_zero()?;
                return Ok(ValueRef::Null);
            }
            ArithmeticOperator::Divide => left / right,
            ArithmeticOperator::IntegerDivide => {
                let whole = (left / right).trunc();
                return fit(stdx_i128(whole), result.unsigned)
                    .ok_or_else(|| out_of_range("BIGINT", &arithmetic.text));
            }
            ArithmeticOperator::Modulo => left % right,
        };
        if number.is_finite() {
            Ok(ValueRef::Double(number))
        } else {
            Err(out_of_range("DOUBLE", &arithmetic.text))
        }
    }

    pub(super) fn negate(&self, operand: &'a Expression, result: &'a ColumnType) -> Evaluated<'a> {
        let class = match result.kind {
            kind if kind.is_integer() => Class::Integer,
            value::TypeKind::Decimal => Class::Decimal,
            _ => Class::Double,
        };
        match self.evaluate_as(operand, class)? {
            ValueRef::Null => Ok(ValueRef::Null),
            ValueRef::Double(number) => Ok(ValueRef::Double(-number)),
            ValueRef::Decimal(number) => {
                let number = self.frame.arena().alloc(number.to_decimal().negated());
                Ok(ValueRef::Decimal(DecimalRef::Whole(number)))
            }
            number => fit(-wide(number), false).ok_or_else(|| {
                let text = match &operand.kind {
                    ExpressionKind::Constant(_) => format!("-{}", wide(number)),
                    _ => format!("-({})", wide(number)),
                };
                out_of_range("BIGINT", &text)
            }),
        }
    }
}

/// The integer of an integer value.
fn wide(value: ValueRef<'_>) -> i128 {
    match value {
        ValueRef::Int(number) => i128::from(number),
        ValueRef::UInt(number) => i128::from(number),
        _ => 0,
    }
}

/// The integer as a value of that sign, or `None` if it does not fit.
fn fit<'a>(number: i128, unsigned: bool) -> Option<ValueRef<'a>> {
    if unsigned {
        u64::try_from(number).ok().map(ValueRef::UInt)
    } else {
        i64::try_from(number).ok().map(ValueRef::Int)
    }
}

/// A whole double as an integer; one that is too large stays out of every range.
fn stdx_i128(number: f64) -> i128 {
    if number.abs() < 1e19 {
        let magnitude = i128::from(stdx::f64_to_u64(number.abs()));
        if number < 0.0 { -magnitude } else { magnitude }
    } else {
        i128::MAX
    }
}

fn out_of_range(type_name: &str, text: &str) -> Failure {
    Box::new(ClientError::new(ER_DATA_OUT_OF_RANGE, &[&type_name, &text]))
}
