//! Logic with NULL as the third value.

use value::{SqlCondition, Value, ValueRef};

use crate::bind::Bound;
use crate::context::Context;

type Evaluated = Result<Value, SqlCondition>;

fn truth(known: Option<bool>) -> Evaluated {
    Ok(known.map_or(Value::Null, |known| Value::Int(i64::from(known))))
}

pub(crate) fn and(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let mut unknown = false;
    for arg in args {
        match arg.to_bool(context.warnings) {
            Some(false) => return Ok(Value::Int(0)),
            Some(true) => {}
            None => unknown = true,
        }
    }
    truth((!unknown).then_some(true))
}

pub(crate) fn or(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let mut unknown = false;
    for arg in args {
        match arg.to_bool(context.warnings) {
            Some(true) => return Ok(Value::Int(1)),
            Some(false) => {}
            None => unknown = true,
        }
    }
    truth((!unknown).then_some(false))
}

pub(crate) fn xor(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let left = args[0].to_bool(context.warnings);
    let right = args[1].to_bool(context.warnings);
    truth(left.zip(right).map(|(left, right)| left != right))
}

pub(crate) fn not(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    truth(args[0].to_bool(context.warnings).map(|known| !known))
}

pub(crate) fn is_null(_: &Bound, args: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    truth(Some(args[0].is_null()))
}

pub(crate) fn is_not_null(_: &Bound, args: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    truth(Some(!args[0].is_null()))
}

pub(crate) fn is_true(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    truth(Some(args[0].to_bool(context.warnings) == Some(true)))
}

pub(crate) fn is_not_true(
    _: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    truth(Some(args[0].to_bool(context.warnings) != Some(true)))
}

pub(crate) fn is_false(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    truth(Some(args[0].to_bool(context.warnings) == Some(false)))
}

pub(crate) fn is_not_false(
    _: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    truth(Some(args[0].to_bool(context.warnings) != Some(false)))
}
