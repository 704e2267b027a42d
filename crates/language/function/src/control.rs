//! IF, CASE, COALESCE and the like: one of several values, in their common type.

use std::cmp::Ordering;

use value::{ColumnType, Date, DateTime, Decimal, SqlCondition, TypeKind, Value, ValueRef};

use crate::bind::{Binding, Bound, resolve, text_in};
use crate::cast::convert;
use crate::comparison::plan;
use crate::context::Context;
use crate::infer::{Inferred, union_type};

type Evaluated = Result<Value, SqlCondition>;

pub(crate) fn infer_if(binding: &mut Binding<'_>) -> Inferred {
    binding.nullable = binding.args[1].nullable || binding.args[2].nullable;
    union_type(binding, &[1, 2])
}

pub(crate) fn infer_ifnull(binding: &mut Binding<'_>) -> Inferred {
    binding.nullable = binding.args.iter().all(|arg| arg.nullable);
    union_type(binding, &[0, 1])
}

pub(crate) fn infer_coalesce(binding: &mut Binding<'_>) -> Inferred {
    binding.nullable = binding.args.iter().all(|arg| arg.nullable);
    let all: Vec<usize> = (0..binding.args.len()).collect();
    union_type(binding, &all)
}

/// NULLIF(a, b): has a's type; a is compared with b.
pub(crate) fn infer_nullif(binding: &mut Binding<'_>) -> Inferred {
    binding.nullable = true;
    plan(binding, binding.args)?;
    binding.column = binding.args[0].column.clone();
    if binding.column.kind == TypeKind::Bit {
        binding.column = crate::infer::of_length(TypeKind::BigInt, 21, true);
    }
    binding.rule = binding.args[0].rule;
    Ok(())
}

/// CASE: condition, value, condition, value, .., else.
pub(crate) fn infer_case(binding: &mut Binding<'_>) -> Inferred {
    let count = binding.args.len();
    let mut values: Vec<usize> = (1..count).step_by(2).collect();
    if count % 2 == 1 {
        values.push(count - 1);
    }
    binding.nullable =
        count.is_multiple_of(2) || values.iter().any(|index| binding.args[*index].nullable);
    union_type(binding, &values)
}

pub(crate) fn infer_extreme(binding: &mut Binding<'_>) -> Inferred {
    let all: Vec<usize> = (0..binding.args.len()).collect();
    union_type(binding, &all)?;
    plan(binding, binding.args)?;
    let kinds = || binding.args.iter().map(|arg| arg.column.kind);
    // A mix with dates is compared and returned as a date, a mix of texts and numbers as a double.
    if let (true, Some(kind)) = (
        kinds().any(TypeKind::is_temporal),
        extreme_temporal(binding.args),
    ) {
        let digits = binding
            .args
            .iter()
            .map(crate::infer::fsp)
            .max()
            .unwrap_or(0);
        let digits = if kind == TypeKind::Date { 0 } else { digits };
        binding.column = ColumnType::temporal(kind, digits);
        binding.nullable = true;
    } else if kinds().any(TypeKind::is_number)
        && kinds().any(|kind| kind.is_string() || kind == TypeKind::Null)
    {
        binding.column = crate::infer::double_type();
        binding.comparison = value::Comparison::Double;
    } else if binding.column.kind == TypeKind::Double
        && binding.args.iter().all(|arg| arg.column.has_fixed_digits())
    {
        let digits = binding.args.iter().map(|arg| arg.column.decimals).max();
        binding.column.fix_digits(digits.unwrap_or(0));
    }
    if binding.column.kind.is_temporal() || binding.column.kind.is_string() {
        binding.texts = binding.rule.collation;
    }
    Ok(())
}

/// The temporal type of a mix with dates: the widest one.
fn extreme_temporal(args: &[crate::Arg]) -> Option<TypeKind> {
    let has = |kind| args.iter().any(|arg| arg.column.kind == kind);
    let (date, time) = (has(TypeKind::Date), has(TypeKind::Time));
    let both = has(TypeKind::DateTime) || has(TypeKind::Timestamp) || (date && time);
    [
        (both, TypeKind::DateTime),
        (date, TypeKind::Date),
        (time, TypeKind::Time),
    ]
    .into_iter()
    .find_map(|(found, kind)| found.then_some(kind))
}

/// An argument in the result's type.
fn chosen(
    bound: &Bound,
    args: &[ValueRef<'_>],
    index: usize,
    context: &mut Context<'_>,
) -> Evaluated {
    in_type(args[index], &bound.args[index], &bound.column, context)
}

/// Converts a value to another type that can hold it.
fn in_type(
    value: ValueRef<'_>,
    from: &ColumnType,
    to: &ColumnType,
    context: &mut Context<'_>,
) -> Evaluated {
    if value.is_null() {
        return Ok(Value::Null);
    }
    if to.kind.is_bytes() {
        let text = text_in(value, from, to.charset());
        return Ok(text.map_or(Value::Null, |text| Value::Bytes(text.into_owned())));
    }
    Ok(match to.kind {
        TypeKind::Decimal => {
            let number = value.to_decimal(context.warnings).unwrap_or(Decimal::ZERO);
            Value::Decimal(number)
        }
        TypeKind::Float | TypeKind::Double => {
            if let ValueRef::Float(number) = value
                && to.kind == TypeKind::Float
            {
                return Ok(Value::Float(number));
            }
            Value::Double(value.to_f64(context.warnings).unwrap_or(0.0))
        }
        TypeKind::Date | TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp => {
            return convert(value, from, to, context);
        }
        _ => value.to_value(),
    })
}

pub(crate) fn if_else(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let index = if args[0].to_bool(context.warnings) == Some(true) {
        1
    } else {
        2
    };
    chosen(bound, args, index, context)
}

pub(crate) fn nvl2(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    chosen(bound, args, if args[0].is_null() { 2 } else { 1 }, context)
}

pub(crate) fn coalesce(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    match args.iter().position(|arg| !arg.is_null()) {
        Some(index) => chosen(bound, args, index, context),
        None => Ok(Value::Null),
    }
}

pub(crate) fn nullif(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let same = bound.order(args, 0, 1, context) == Some(Ordering::Equal);
    Ok(if same {
        Value::Null
    } else {
        args[0].to_value()
    })
}

pub(crate) fn case(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    for index in (0..args.len() - 1).step_by(2) {
        if args[index].to_bool(context.warnings) == Some(true) {
            return chosen(bound, args, index + 1, context);
        }
    }
    if args.len() % 2 == 1 {
        return chosen(bound, args, args.len() - 1, context);
    }
    Ok(Value::Null)
}

pub(crate) fn greatest(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    extreme(bound, args, context, Ordering::Greater)
}

pub(crate) fn least(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    extreme(bound, args, context, Ordering::Less)
}

fn extreme(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
    wanted: Ordering,
) -> Evaluated {
    let mut best = 0;
    for index in 0..args.len() {
        if args[index].is_null() {
            return Ok(Value::Null);
        }
        // An invalid time makes the result NULL; an invalid date is the zero date.
        if bound.column.kind == TypeKind::Time {
            let value = resolve(args[index], &bound.args[index]);
            if value.as_ref().to_time(context.warnings).is_none() {
                return Ok(Value::Null);
            }
        }
        match bound.order(args, index, best, context) {
            Some(order) if order == wanted => best = index,
            Some(_) => {}
            None => return Ok(Value::Null),
        }
    }
    let value = chosen(bound, args, best, context)?;
    Ok(match (value, bound.column.kind) {
        (Value::Null, TypeKind::Date) => Value::Date(Date::ZERO),
        (Value::Null, TypeKind::DateTime) => Value::DateTime(DateTime::ZERO),
        (value, _) => value,
    })
}

/// INTERVAL(n, a, b, ..): how many of the ascending numbers are at most n.
pub(crate) fn interval(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let Some(number) = args[0].to_f64(context.warnings) else {
        return Ok(Value::Int(-1));
    };
    let mut below = 0;
    for arg in &args[1..] {
        match arg.to_f64(context.warnings) {
            Some(bound) if bound > number => break,
            _ => below += 1,
        }
    }
    Ok(Value::Int(below))
}
