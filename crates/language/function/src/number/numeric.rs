//! Functions of numbers.

use errcode::ER_UNKNOWN_LOCALE;
use value::decimal::Rounding;
use value::digits::append_fixed;
use value::number::Integer;
use value::{ColumnType, Decimal, SqlCondition, TypeKind, Value, ValueRef};

use crate::bind::{Binding, Bound};
use crate::context::{Context, moment_overflow};
use crate::infer::{
    Inferred, Numeric, connection_text, decimal_type, digits, double_type, integer_type, numeric,
    of_length,
};
use crate::number::arithmetic::{fixed_double, integer_value, of_integer, out_of_range};

type Evaluated = Result<Value, SqlCondition>;

/// The most decimals that FORMAT shows.
const FORMAT_DECIMALS_MAX: i64 = 38;

pub(crate) fn infer_abs(binding: &mut Binding<'_>) -> Inferred {
    let column = &binding.args[0].column;
    binding.column = match numeric(column) {
        Numeric::Integer => integer_type(column.length, column.unsigned),
        Numeric::Decimal => column.clone(),
        Numeric::Double => fixed_double(column, column),
    };
    if column.kind.is_temporal() {
        let (whole, scale) = digits(column);
        binding.column = decimal_type(whole, scale);
    }
    Ok(())
}

pub(crate) fn abs(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    Ok(match bound.column.kind {
        TypeKind::Decimal => {
            let number = args[0].to_decimal(context.warnings);
            number.map_or(Value::Null, |number| Value::Decimal(number.abs()))
        }
        TypeKind::Double => {
            let number = args[0].to_f64(context.warnings);
            number.map_or(Value::Null, |number| Value::Double(number.abs()))
        }
        _ => match args[0].to_integer(context.warnings) {
            Some(Integer::Signed(i64::MIN)) => {
                return Err(out_of_range(bound, "BIGINT"));
            }
            Some(Integer::Signed(number)) => Value::Int(number.abs()),
            Some(unsigned @ Integer::Unsigned(_)) => of_integer(unsigned),
            None => Value::Null,
        },
    })
}

/// CEILING, FLOOR: an integer if it surely fits.
pub(crate) fn infer_whole(binding: &mut Binding<'_>) -> Inferred {
    if infer_clock(binding, Some(0)) {
        return Ok(());
    }
    let column = &binding.args[0].column;
    let (whole, _) = digits(column);
    binding.column = match numeric(column) {
        Numeric::Integer if column.kind.is_integer() => column.clone(),
        Numeric::Integer => integer_type(column.length, is_unsigned(column)),
        Numeric::Decimal if whole < 18 => {
            let kind = if whole < 9 {
                TypeKind::Int
            } else {
                TypeKind::BigInt
            };
            of_length(
                kind,
                whole + 1 + u32::from(!column.unsigned),
                column.unsigned,
            )
        }
        Numeric::Decimal => decimal_type(whole + 1, 0),
        Numeric::Double => {
            let mut double = double_type();
            double.decimals = 0;
            double.length = 17;
            double
        }
    };
    Ok(())
}

/// Dates, and numbers of members, are never negative.
fn is_unsigned(column: &ColumnType) -> bool {
    column.unsigned || matches!(column.kind, TypeKind::Date | TypeKind::Enum | TypeKind::Set)
}

/// TIME and DATETIME keep their type and are rounded to fewer fractional digits.
fn infer_clock(binding: &mut Binding<'_>, places: Option<i64>) -> bool {
    let kind = match binding.args[0].column.kind {
        TypeKind::Time => TypeKind::Time,
        TypeKind::DateTime | TypeKind::Timestamp => TypeKind::DateTime,
        _ => return false,
    };
    let digits = places.map_or(6, |places| places.clamp(0, 6));
    binding.column = ColumnType::temporal(kind, stdx::low_u8(digits.unsigned_abs()));
    true
}

/// A rounded TIME or DATETIME; `None` for other results.
fn clock(
    bound: &Bound,
    value: ValueRef<'_>,
    context: &mut Context<'_>,
    rounding: Rounding,
) -> Option<Value> {
    if !bound.column.kind.is_temporal() {
        return None;
    }
    let micros = match value {
        ValueRef::Time(time) => time.micros(),
        ValueRef::DateTime(moment) => moment.time().micros(),
        _ => return Some(Value::Null),
    };
    let unit = 10i64.pow(6 - u32::from(bound.column.decimals.min(6)));
    let below = micros.div_euclid(unit) * unit;
    let rest = micros - below;
    let rounded = match rounding {
        Rounding::Floor => below,
        Rounding::Truncate => micros - micros % unit,
        Rounding::Ceiling if rest > 0 => below + unit,
        Rounding::HalfUp if rest * 2 > unit || (rest * 2 == unit && micros >= 0) => below + unit,
        _ => below,
    };
    Some(match value {
        ValueRef::DateTime(moment) if rounded != micros => {
            let Some(moment) = moment.plus_micros(rounded - micros) else {
                context.warnings.warn(moment_overflow());
                return Some(Value::Null);
            };
            Value::DateTime(moment)
        }
        ValueRef::DateTime(moment) => Value::DateTime(moment),
        _ => Value::Time(value::Time::from_micros(rounded)),
    })
}

fn whole(
    bound: &Bound,
    value: ValueRef<'_>,
    context: &mut Context<'_>,
    rounding: Rounding,
) -> Evaluated {
    if let Some(rounded) = clock(bound, value, context, rounding) {
        return Ok(rounded);
    }
    if bound.column.kind == TypeKind::Double {
        let round = if rounding == Rounding::Floor {
            f64::floor
        } else {
            f64::ceil
        };
        let number = value.to_f64(context.warnings);
        return Ok(number.map_or(Value::Null, |number| Value::Double(round(number))));
    }
    if numeric(&bound.args[0]) == Numeric::Integer {
        return Ok(value
            .to_integer(context.warnings)
            .map_or(Value::Null, of_integer));
    }
    let Some(number) = value.to_decimal(context.warnings) else {
        return Ok(Value::Null);
    };
    let rounded = number.round(0, rounding).unwrap_or(number);
    if bound.column.kind == TypeKind::Decimal {
        return Ok(Value::Decimal(rounded));
    }
    Ok(of_integer(value::convert::decimal_to_integer(&rounded)))
}

pub(crate) fn ceiling(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    whole(bound, args[0], context, Rounding::Ceiling)
}

pub(crate) fn floor(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    whole(bound, args[0], context, Rounding::Floor)
}

pub(crate) fn infer_round(binding: &mut Binding<'_>) -> Inferred {
    infer_rounded(binding, 1)
}

pub(crate) fn infer_truncate(binding: &mut Binding<'_>) -> Inferred {
    infer_rounded(binding, 0)
}

/// ROUND may carry into one more digit; TRUNCATE cannot.
fn infer_rounded(binding: &mut Binding<'_>, carry: u32) -> Inferred {
    let places = if binding.args.len() == 1 {
        Some(0)
    } else {
        binding.constant_integer(1)
    };
    if infer_clock(binding, places) {
        return Ok(());
    }
    let column = &binding.args[0].column;
    let (whole, scale) = digits(column);
    binding.column = match numeric(column) {
        Numeric::Integer => match places {
            Some(0..) if column.kind.is_integer() => column.clone(),
            _ => integer_type(column.length + carry, is_unsigned(column)),
        },
        Numeric::Decimal => {
            let most = i64::from(Decimal::SCALE_MAX);
            let kept = places.map_or(scale, |places| {
                u32::try_from(places.clamp(0, most)).unwrap_or(0)
            });
            decimal_type(whole + if kept < scale { carry } else { 0 }, kept)
        }
        Numeric::Double => {
            let mut double = double_type();
            if let Some(places) = places {
                let places = stdx::low_u8(places.clamp(0, 31).unsigned_abs());
                if places < ColumnType::NOT_FIXED {
                    double.fix_digits(places);
                }
            }
            double
        }
    };
    Ok(())
}

pub(crate) fn round(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    rounded(bound, args, context, Rounding::HalfUp)
}

pub(crate) fn truncate(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    rounded(bound, args, context, Rounding::Truncate)
}

fn rounded(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
    rounding: Rounding,
) -> Evaluated {
    if let Some(rounded) = clock(bound, args[0], context, rounding) {
        return Ok(rounded);
    }
    let places = match args.get(1) {
        None => 0,
        Some(places) => match places.to_i64(context.warnings) {
            Some(places) => places,
            None => return Ok(Value::Null),
        },
    };
    let places = i32::try_from(places.clamp(-400, 400)).expect("clamped");
    match numeric(&bound.args[0]) {
        Numeric::Double => {
            let number = args[0].to_f64(context.warnings);
            Ok(number.map_or(Value::Null, |number| {
                Value::Double(round_double(number, places, rounding))
            }))
        }
        Numeric::Decimal => {
            let Some(number) = args[0].to_decimal(context.warnings) else {
                return Ok(Value::Null);
            };
            let places = places.min(i32::from(bound.column.decimals));
            Ok(Value::Decimal(
                number.round(places, rounding).unwrap_or(number),
            ))
        }
        Numeric::Integer => {
            let Some(number) = args[0].to_integer(context.warnings) else {
                return Ok(Value::Null);
            };
            if places >= 0 {
                return Ok(of_integer(number));
            }
            let exact = match number {
                Integer::Signed(number) => Decimal::from(number),
                Integer::Unsigned(number) => Decimal::from(number),
            };
            let exact = exact.round(places, rounding).unwrap_or(exact);
            let magnitude = exact.abs().to_u64().map_or(i128::MAX, i128::from);
            let signed = if exact.is_negative() {
                -magnitude
            } else {
                magnitude
            };
            if signed
                > i128::from(if bound.column.unsigned {
                    u64::MAX
                } else {
                    i64::MAX as u64
                })
            {
                return Err(out_of_range(bound, "BIGINT"));
            }
            Ok(integer_value(signed))
        }
    }
}

/// The double with this many places, scaled and rounded by the machine (half to even).
fn round_double(number: f64, places: i32, rounding: Rounding) -> f64 {
    let unit = 10f64.powi(places.abs());
    if places < 0 && unit.is_infinite() {
        return 0.0;
    }
    let scaled = if places < 0 {
        number / unit
    } else {
        number * unit
    };
    if places >= 0 && !scaled.is_finite() {
        return number;
    }
    let whole = if rounding == Rounding::Truncate {
        scaled.trunc()
    } else {
        scaled.round_ties_even()
    };
    if places < 0 {
        whole * unit
    } else {
        whole / unit
    }
}

pub(crate) fn sign(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let number = args[0].to_f64(context.warnings);
    Ok(number.map_or(Value::Null, |number| {
        Value::Int(if number > 0.0 {
            1
        } else if number < 0.0 {
            -1
        } else {
            0
        })
    }))
}

/// A function of one double; NULL if the result is not a number.
macro_rules! of_double {
    ($($name:ident: $function:expr;)*) => {
        $(pub(crate) fn $name(
            bound: &Bound,
            args: &[ValueRef<'_>],
            context: &mut Context<'_>,
        ) -> Evaluated {
            let Some(number) = args[0].to_f64(context.warnings) else { return Ok(Value::Null) };
            let function: fn(f64) -> f64 = $function;
            result(bound, function(number))
        })*
    };
}

of_double! {
    sqrt: f64::sqrt;
    exp: f64::exp;
    sin: f64::sin;
    cos: f64::cos;
    tan: f64::tan;
    cot: |number| 1.0 / number.tan();
    asin: f64::asin;
    acos: f64::acos;
    degrees: |number| number * (180.0 / std::f64::consts::PI);
    radians: |number| number * (std::f64::consts::PI / 180.0);
}

/// NaN is NULL, an infinity is out of range.
fn result(bound: &Bound, number: f64) -> Evaluated {
    if number.is_nan() {
        return Ok(Value::Null);
    }
    if number.is_infinite() {
        return Err(out_of_range(bound, "DOUBLE"));
    }
    Ok(Value::Double(number))
}

/// A logarithm; NULL (as for a division by zero) if the value is not positive.
fn logarithm(
    value: ValueRef<'_>,
    context: &mut Context<'_>,
    function: impl Fn(f64) -> f64,
) -> Evaluated {
    match value.to_f64(context.warnings) {
        Some(number) if number > 0.0 => Ok(Value::Double(function(number))),
        Some(_) => {
            context.divided_by_zero()?;
            Ok(Value::Null)
        }
        None => Ok(Value::Null),
    }
}

pub(crate) fn ln(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    logarithm(args[0], context, f64::ln)
}

pub(crate) fn log2(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    logarithm(args[0], context, |number| {
        number.ln() / std::f64::consts::LN_2
    })
}

pub(crate) fn log10(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    logarithm(args[0], context, f64::log10)
}

/// LOG(x), LOG(base, x).
pub(crate) fn log(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let [base, number] = args else {
        return ln(bound, args, context);
    };
    let Some(base) = base.to_f64(context.warnings) else {
        return Ok(Value::Null);
    };
    if base <= 0.0 || base == 1.0 {
        context.divided_by_zero()?;
        return Ok(Value::Null);
    }
    logarithm(*number, context, |number| number.ln() / base.ln())
}

pub(crate) fn power(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let base = args[0].to_f64(context.warnings);
    let exponent = args[1].to_f64(context.warnings);
    let (Some(base), Some(exponent)) = (base, exponent) else {
        return Ok(Value::Null);
    };
    let power = base.powf(exponent);
    result(bound, if power.is_nan() { f64::INFINITY } else { power })
}

pub(crate) fn atan(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let Some(first) = args[0].to_f64(context.warnings) else {
        return Ok(Value::Null);
    };
    match args.get(1) {
        None => result(bound, first.atan()),
        Some(second) => match second.to_f64(context.warnings) {
            Some(second) => result(bound, first.atan2(second)),
            None => Ok(Value::Null),
        },
    }
}

pub(crate) fn infer_pi(binding: &mut Binding<'_>) -> Inferred {
    let mut column = double_type();
    column.length = 8;
    column.decimals = 6;
    binding.column = column;
    Ok(())
}

pub(crate) fn pi(_: &Bound, _: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    Ok(Value::Double(std::f64::consts::PI))
}

pub(crate) fn infer_format(binding: &mut Binding<'_>) -> Inferred {
    let (whole, _) = digits(&binding.args[0].column);
    let groups = u64::from(whole) / 3;
    connection_text(binding, u64::from(whole) + groups + 40)?;
    binding.nullable = true;
    Ok(())
}

/// `1,234.50`: groups of three digits and this many decimals.
pub(crate) fn format(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let Some(places) = args[1].to_i64(context.warnings) else {
        return Ok(Value::Null);
    };
    let places = stdx::low_u8(places.clamp(0, FORMAT_DECIMALS_MAX).unsigned_abs());
    if let Some(locale) = args
        .get(2)
        .and_then(|locale| locale.to_text(&bound.args[2]))
    {
        let known = locale.len() >= 3 && locale[..3].eq_ignore_ascii_case(b"en_");
        if !known {
            let shown = String::from_utf8_lossy(&locale).into_owned();
            context
                .warnings
                .warn(SqlCondition::new(ER_UNKNOWN_LOCALE, &[&shown]));
        }
    }
    let mut digits = Vec::new();
    if numeric(&bound.args[0]) == Numeric::Double {
        let Some(number) = args[0].to_f64(context.warnings) else {
            return Ok(Value::Null);
        };
        let number = round_double(number, i32::from(places), Rounding::HalfUp);
        append_fixed(number, places, &mut digits);
    } else {
        let Some(number) = args[0].to_decimal(context.warnings) else {
            return Ok(Value::Null);
        };
        let number = number
            .round(i32::from(places), Rounding::HalfUp)
            .unwrap_or(number);
        number.append_text(&mut digits);
    }
    Ok(Value::Bytes(grouped(&digits)))
}

fn grouped(digits: &[u8]) -> Vec<u8> {
    let sign = usize::from(digits.first() == Some(&b'-'));
    let point = digits
        .iter()
        .position(|byte| *byte == b'.')
        .unwrap_or(digits.len());
    let mut out = digits[..sign].to_vec();
    for (index, digit) in digits[sign..point].iter().enumerate() {
        if index > 0 && (point - sign - index).is_multiple_of(3) {
            out.push(b',');
        }
        out.push(*digit);
    }
    out.extend_from_slice(&digits[point..]);
    out
}
