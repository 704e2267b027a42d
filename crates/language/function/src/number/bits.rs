//! Bit operations on 64 bits, unsigned.

use value::number::Integer;
use value::{SqlCondition, TypeKind, Value, ValueRef};

use crate::bind::{Binding, Bound};
use crate::context::Context;
use crate::infer::{Inferred, of_length};

pub(crate) fn infer(binding: &mut Binding<'_>) -> Inferred {
    binding.column = of_length(TypeKind::BigInt, 21, true);
    Ok(())
}

type Evaluated = Result<Value, SqlCondition>;

/// An operand as 64 bits: a value that is not an integer is rounded as an exact number.
pub(crate) fn bits(value: ValueRef<'_>, context: &mut Context<'_>) -> Option<u64> {
    match value {
        ValueRef::Bytes(_) | ValueRef::Double(_) | ValueRef::Float(_) => {
            let number = value.to_decimal(context.warnings)?;
            Some(value::convert::decimal_to_integer(&number).bits())
        }
        _ => value.to_integer(context.warnings).map(Integer::bits),
    }
}

fn operate(
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
    operation: impl Fn(u64, u64) -> u64,
) -> Evaluated {
    let (left, right) = (bits(args[0], context), bits(args[1], context));
    Ok(match (left, right) {
        (Some(left), Some(right)) => Value::UInt(operation(left, right)),
        _ => Value::Null,
    })
}

pub(crate) fn and(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    operate(args, context, |left, right| left & right)
}

pub(crate) fn or(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    operate(args, context, |left, right| left | right)
}

pub(crate) fn xor(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    operate(args, context, |left, right| left ^ right)
}

/// The shift count is converted like other integers, not rounded like the operand.
fn shift(
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
    operation: fn(u64, u32) -> Option<u64>,
) -> Evaluated {
    let left = bits(args[0], context);
    let by = args[1].to_integer(context.warnings).map(Integer::bits);
    let (Some(left), Some(by)) = (left, by) else {
        return Ok(Value::Null);
    };
    let shifted = u32::try_from(by).ok().and_then(|by| operation(left, by));
    Ok(Value::UInt(shifted.unwrap_or(0)))
}

pub(crate) fn shift_left(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    shift(args, context, u64::checked_shl)
}

pub(crate) fn shift_right(
    _: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    shift(args, context, u64::checked_shr)
}

pub(crate) fn not(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let number = bits(args[0], context);
    Ok(number.map_or(Value::Null, |number| Value::UInt(!number)))
}

pub(crate) fn count(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let number = bits(args[0], context);
    Ok(number.map_or(Value::Null, |number| {
        Value::Int(i64::from(number.count_ones()))
    }))
}
