//! Bit operations on 64 bits, unsigned.

use value::number::Integer;
use value::{Trouble, TypeKind, Value, ValueRef};

use crate::bind::{Binding, Bound};
use crate::context::Context;
use crate::infer::{Inferred, of_length};

pub(crate) fn infer(binding: &mut Binding<'_>) -> Inferred {
    binding.column = of_length(TypeKind::BigInt, 21, true);
    Ok(())
}

type Evaluated = Result<Value, Trouble>;

fn operate(
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
    operation: impl Fn(u64, u64) -> u64,
) -> Evaluated {
    let left = args[0].to_integer(context.warnings).map(Integer::bits);
    let right = args[1].to_integer(context.warnings).map(Integer::bits);
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

pub(crate) fn shift_left(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    operate(args, context, |left, by| {
        u32::try_from(by)
            .ok()
            .and_then(|by| left.checked_shl(by))
            .unwrap_or(0)
    })
}

pub(crate) fn shift_right(
    _: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    operate(args, context, |left, by| {
        u32::try_from(by)
            .ok()
            .and_then(|by| left.checked_shr(by))
            .unwrap_or(0)
    })
}

pub(crate) fn not(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let number = args[0].to_integer(context.warnings).map(Integer::bits);
    Ok(number.map_or(Value::Null, |number| Value::UInt(!number)))
}

pub(crate) fn count(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let number = args[0].to_integer(context.warnings).map(Integer::bits);
    Ok(number.map_or(Value::Null, |number| {
        Value::Int(i64::from(number.count_ones()))
    }))
}
