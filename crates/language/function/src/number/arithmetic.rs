//! `+ - * / DIV %` over integers, exact numbers and doubles.

use errcode::ER_DATA_OUT_OF_RANGE;
use value::decimal::DecimalOverflow;
use value::number::Integer;
use value::{ColumnType, Decimal, SqlCondition, TypeKind, Value, ValueRef};

use crate::bind::{Binding, Bound};
use crate::context::Context;
use crate::infer::{
    Inferred, Numeric, decimal_type, digits, double_type, integer_type, meet, numeric,
};

/// `choice` of a bound call: the domain of the calculation.
const INTEGER: u32 = 0;
const DECIMAL: u32 = 1;
const DOUBLE: u32 = 2;

/// Both arguments' types and their common domain; for unary minus the argument counts twice.
fn sides<'a>(binding: &Binding<'a>) -> (&'a ColumnType, &'a ColumnType, Numeric) {
    let left = &binding.args[0].column;
    let right = &binding.args[binding.args.len() - 1].column;
    (left, right, meet(numeric(left), numeric(right)))
}

fn choose(binding: &mut Binding<'_>, domain: Numeric) {
    binding.choice = match domain {
        Numeric::Integer => INTEGER,
        Numeric::Decimal => DECIMAL,
        Numeric::Double => DOUBLE,
    };
}

/// A double with the fractional digits of two sides, if both fix them.
pub(crate) fn fixed_double(left: &ColumnType, right: &ColumnType) -> ColumnType {
    let mut column = double_type();
    if left.has_fixed_digits() && right.has_fixed_digits() {
        column.fix_digits(left.decimals.max(right.decimals));
    }
    column
}

/// Integers are unsigned if one of them is; with a date they are signed.
fn is_unsigned(left: &ColumnType, right: &ColumnType) -> bool {
    let temporal = left.kind.is_temporal() || right.kind.is_temporal();
    !temporal && (left.unsigned || right.unsigned)
}

pub(crate) fn infer_add(binding: &mut Binding<'_>) -> Inferred {
    let (left, right, domain) = sides(binding);
    let ((left_whole, left_scale), (right_whole, right_scale)) = (digits(left), digits(right));
    let whole = left_whole.max(right_whole) + 1;
    binding.column = match domain {
        Numeric::Double => fixed_double(left, right),
        Numeric::Decimal => decimal_type(whole, left_scale.max(right_scale)),
        Numeric::Integer => {
            let unsigned = is_unsigned(left, right);
            integer_type(whole + u32::from(!unsigned), unsigned)
        }
    };
    choose(binding, domain);
    Ok(())
}

pub(crate) fn infer_subtract(binding: &mut Binding<'_>) -> Inferred {
    if let [only] = binding.args {
        let domain = numeric(&only.column);
        let (whole, scale) = digits(&only.column);
        binding.column = match domain {
            Numeric::Double => fixed_double(&only.column, &only.column),
            Numeric::Decimal => decimal_type(whole + 1, scale),
            Numeric::Integer => integer_type(whole + 2, false),
        };
        choose(binding, domain);
        // A constant whose negative is out of range, and dates, become exact numbers.
        let beyond = match only.constant {
            Some(Value::Int(number)) => number == i64::MIN,
            Some(Value::UInt(number)) => number > i64::MIN.unsigned_abs(),
            _ => false,
        };
        if beyond || only.column.kind.is_temporal() {
            binding.column = decimal_type(whole + 1, scale);
            choose(binding, Numeric::Decimal);
        }
        return Ok(());
    }
    infer_add(binding)?;
    if binding.env.no_unsigned_subtraction && binding.choice == INTEGER {
        binding.column.unsigned = false;
    }
    Ok(())
}

pub(crate) fn infer_multiply(binding: &mut Binding<'_>) -> Inferred {
    let (left, right, domain) = sides(binding);
    let ((left_whole, left_scale), (right_whole, right_scale)) = (digits(left), digits(right));
    let whole = left_whole + right_whole;
    binding.column = match domain {
        Numeric::Double => fixed_double(left, right),
        Numeric::Decimal => decimal_type(whole, left_scale + right_scale),
        Numeric::Integer => {
            let unsigned = is_unsigned(left, right);
            integer_type(whole + u32::from(!unsigned), unsigned)
        }
    };
    choose(binding, domain);
    Ok(())
}

pub(crate) fn infer_divide(binding: &mut Binding<'_>) -> Inferred {
    let (left, right, domain) = sides(binding);
    binding.nullable = true;
    if domain == Numeric::Double {
        binding.column = fixed_double(left, right);
        if binding.column.has_fixed_digits() {
            let increment = binding.env.div_precision_increment;
            let digits = binding.column.decimals.saturating_add(increment);
            binding.column.fix_digits(digits.min(ColumnType::NOT_FIXED));
        }
        choose(binding, domain);
        return Ok(());
    }
    let increment = u32::from(binding.env.div_precision_increment);
    let ((whole, scale), (_, right_scale)) = (digits(left), digits(right));
    let result_scale = (scale + increment).min(u32::from(Decimal::SCALE_MAX));
    let precision = whole + scale + right_scale + increment;
    binding.column = decimal_type(precision.saturating_sub(result_scale), result_scale);
    choose(binding, Numeric::Decimal);
    // The division needs the increment again.
    binding.choice |= increment << 8;
    Ok(())
}

pub(crate) fn infer_div(binding: &mut Binding<'_>) -> Inferred {
    let (left, right, domain) = sides(binding);
    binding.nullable = true;
    let unsigned = left.unsigned || right.unsigned;
    let (whole, _) = digits(left);
    binding.column = integer_type(whole + digits(right).1 + u32::from(!unsigned), unsigned);
    binding.column.kind = TypeKind::BigInt;
    choose(binding, domain);
    Ok(())
}

pub(crate) fn infer_modulo(binding: &mut Binding<'_>) -> Inferred {
    let (left, right, domain) = sides(binding);
    binding.nullable = true;
    let ((left_whole, left_scale), (right_whole, right_scale)) = (digits(left), digits(right));
    binding.column = match domain {
        Numeric::Double => fixed_double(left, right),
        Numeric::Decimal => decimal_type(left_whole.max(right_whole), left_scale.max(right_scale)),
        Numeric::Integer => integer_type(left.length.max(right.length), left.unsigned),
    };
    choose(binding, domain);
    Ok(())
}

type Evaluated = Result<Value, SqlCondition>;

pub(crate) fn out_of_range(bound: &Bound, kind: &str) -> SqlCondition {
    SqlCondition::new(ER_DATA_OUT_OF_RANGE, &[&kind, &bound.text])
}

/// An integer result in the bound type's range.
fn ranged(bound: &Bound, number: i128) -> Evaluated {
    if bound.column.unsigned {
        u64::try_from(number)
            .map(Value::UInt)
            .map_err(|_| out_of_range(bound, "BIGINT UNSIGNED"))
    } else {
        i64::try_from(number)
            .map(Value::Int)
            .map_err(|_| out_of_range(bound, "BIGINT"))
    }
}

fn finite(bound: &Bound, number: f64) -> Evaluated {
    if number.is_finite() {
        Ok(Value::Double(number))
    } else {
        Err(out_of_range(bound, "DOUBLE"))
    }
}

fn exact(bound: &Bound, number: Result<Decimal, DecimalOverflow>) -> Evaluated {
    number
        .map(Value::Decimal)
        .map_err(|_| out_of_range(bound, "DECIMAL"))
}

/// Both arguments in one domain, or NULL.
macro_rules! pair {
    ($args:expr, $context:expr, $method:ident) => {{
        let (Some(left), Some(right)) = (
            $args[0].$method($context.warnings),
            $args[1].$method($context.warnings),
        ) else {
            return Ok(Value::Null);
        };
        (left, right)
    }};
}

pub(crate) fn add(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    match bound.choice {
        INTEGER => {
            if let (ValueRef::Int(left), ValueRef::Int(right)) = (args[0], args[1])
                && !bound.column.unsigned
                && let Some(sum) = left.checked_add(right)
            {
                return Ok(Value::Int(sum));
            }
            let (left, right) = pair!(args, context, to_integer);
            ranged(bound, left.to_i128() + right.to_i128())
        }
        DECIMAL => {
            let (left, right) = pair!(args, context, to_decimal);
            exact(bound, left.add(&right))
        }
        _ => {
            let (left, right) = pair!(args, context, to_f64);
            finite(bound, left + right)
        }
    }
}

pub(crate) fn subtract(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    if let [only] = args {
        return negate(bound, *only, context);
    }
    match bound.choice {
        INTEGER => {
            let (left, right) = pair!(args, context, to_integer);
            ranged(bound, left.to_i128() - right.to_i128())
        }
        DECIMAL => {
            let (left, right) = pair!(args, context, to_decimal);
            exact(bound, left.subtract(&right))
        }
        _ => {
            let (left, right) = pair!(args, context, to_f64);
            finite(bound, left - right)
        }
    }
}

fn negate(bound: &Bound, value: ValueRef<'_>, context: &mut Context<'_>) -> Evaluated {
    match bound.choice {
        INTEGER => match value.to_integer(context.warnings) {
            None => Ok(Value::Null),
            Some(number) => ranged(bound, -number.to_i128()),
        },
        DECIMAL => Ok(value
            .to_decimal(context.warnings)
            .map_or(Value::Null, |number| Value::Decimal(number.negated()))),
        _ => Ok(value
            .to_f64(context.warnings)
            .map_or(Value::Null, |number| Value::Double(-number))),
    }
}

pub(crate) fn multiply(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    match bound.choice {
        INTEGER => {
            let (left, right) = pair!(args, context, to_integer);
            ranged(bound, left.to_i128().saturating_mul(right.to_i128()))
        }
        DECIMAL => {
            let (left, right) = pair!(args, context, to_decimal);
            exact(bound, left.multiply(&right))
        }
        _ => {
            let (left, right) = pair!(args, context, to_f64);
            finite(bound, left * right)
        }
    }
}

pub(crate) fn divide(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    if bound.choice & 0xFF == DOUBLE {
        let (left, right) = pair!(args, context, to_f64);
        if right == 0.0 {
            context.divided_by_zero()?;
            return Ok(Value::Null);
        }
        return finite(bound, left / right);
    }
    let (left, right) = pair!(args, context, to_decimal);
    let increment = stdx::low_u8(u64::from(bound.choice >> 8));
    match left.divide(&right, increment) {
        Some(quotient) => exact(bound, quotient),
        None => {
            context.divided_by_zero()?;
            Ok(Value::Null)
        }
    }
}

pub(crate) fn div(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    if bound.choice == INTEGER {
        let (left, right) = pair!(args, context, to_integer);
        let (left, right) = (left.to_i128(), right.to_i128());
        return match left.checked_div(right) {
            Some(quotient) => ranged(bound, quotient),
            None => {
                context.divided_by_zero()?;
                Ok(Value::Null)
            }
        };
    }
    let (left, right) = pair!(args, context, to_decimal);
    match left.divide_integer(&right) {
        Some(Ok(quotient)) => {
            let wide = quotient.abs().to_u64().map_or(i128::MAX, i128::from);
            ranged(bound, if quotient.is_negative() { -wide } else { wide })
        }
        Some(Err(_)) => Err(out_of_range(bound, "BIGINT")),
        None => {
            context.divided_by_zero()?;
            Ok(Value::Null)
        }
    }
}

pub(crate) fn modulo(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    match bound.choice {
        INTEGER => {
            let (left, right) = pair!(args, context, to_integer);
            match left.to_i128().checked_rem(right.to_i128()) {
                Some(rest) => return Ok(integer_value(rest)),
                None => context.divided_by_zero()?,
            }
        }
        DECIMAL => {
            let (left, right) = pair!(args, context, to_decimal);
            match left.remainder(&right) {
                Some(rest) => return exact(bound, rest),
                None => context.divided_by_zero()?,
            }
        }
        _ => {
            let (left, right) = pair!(args, context, to_f64);
            if right != 0.0 {
                return finite(bound, left % right);
            }
            context.divided_by_zero()?;
        }
    }
    Ok(Value::Null)
}

/// An integer as the value that holds it.
pub(crate) fn integer_value(number: i128) -> Value {
    match i64::try_from(number) {
        Ok(number) => Value::Int(number),
        Err(_) => Value::UInt(u64::try_from(number).unwrap_or(u64::MAX)),
    }
}

/// A number of either signedness as a value.
pub(crate) fn of_integer(number: Integer) -> Value {
    match number {
        Integer::Signed(number) => Value::Int(number),
        Integer::Unsigned(number) => Value::UInt(number),
    }
}
