//! JSON texts.

use value::{SqlCondition, Value, ValueRef, json};

use crate::bind::{Binding, Bound};
use crate::context::Context;
use crate::infer::{Inferred, boolean};

/// 0 or 1; its type is nullable, as in MariaDB.
pub(crate) fn infer_valid(binding: &mut Binding<'_>) -> Inferred {
    binding.nullable = true;
    boolean(binding)
}

/// Whether the text is JSON; if not, a note says why.
pub(crate) fn json_valid(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Result<Value, SqlCondition> {
    let Some(text) = args[0].to_text(&bound.args[0]) else {
        return Ok(Value::Null);
    };
    let charset = bound.args[0].charset();
    let fault = json::fault_of(&text, charset, &|bytes| context.spend(bytes))?;
    if let Some(fault) = fault {
        context.warnings.note(fault.note(1, "json_valid"));
    }
    Ok(Value::Int(i64::from(fault.is_none())))
}
