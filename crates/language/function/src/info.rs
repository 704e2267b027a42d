//! Functions that describe the session.

use builtin::Function;
use value::collation::{Coercibility, TextRule};
use value::{CollationId, SqlCondition, TypeKind, Value, ValueRef};

use crate::bind::{Binding, Bound};
use crate::context::Context;
use crate::infer::{Inferred, of_length, text_type};

type Evaluated = Result<Value, SqlCondition>;

/// Characters of a name.
const NAME_CHARS: u64 = 64;
/// Characters of an account: name, `@`, host.
const ACCOUNT_CHARS: u64 = 80 + 1 + 60;
/// Characters of a role, as in MariaDB.
const ROLE_CHARS: u64 = 128;

fn system_text(binding: &mut Binding<'_>, chars: u64) -> Inferred {
    let collation = CollationId::UTF8MB3_GENERAL_CI;
    let coercibility = Coercibility::SystemConstant;
    binding.rule = TextRule {
        collation,
        coercibility,
        ascii_only: false,
    };
    binding.column = text_type(chars, collation);
    Ok(())
}

pub(crate) fn infer_name(binding: &mut Binding<'_>) -> Inferred {
    binding.nullable = binding.args.is_empty();
    if let Some(arg) = binding.args.first() {
        let collation = if arg.is_text() {
            arg.rule.collation
        } else {
            CollationId::BINARY
        };
        binding.choice = u32::from(collation.id());
    }
    system_text(binding, NAME_CHARS)
}

fn optional(text: Option<&str>) -> Evaluated {
    Ok(text.map_or(Value::Null, Value::bytes))
}

pub(crate) fn database(_: &Bound, _: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    optional(context.session.database.as_deref())
}

pub(crate) fn infer_user(binding: &mut Binding<'_>) -> Inferred {
    system_text(binding, ACCOUNT_CHARS)
}

pub(crate) fn user(_: &Bound, _: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    optional(Some(&context.session.user))
}

pub(crate) fn current_user(_: &Bound, _: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    optional(Some(&context.session.current_user))
}

pub(crate) fn infer_role(binding: &mut Binding<'_>) -> Inferred {
    binding.nullable = true;
    system_text(binding, ROLE_CHARS)
}

/// There are no roles, so none is the current one.
pub(crate) fn current_role(_: &Bound, _: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    Ok(Value::Null)
}

pub(crate) fn infer_version(binding: &mut Binding<'_>) -> Inferred {
    system_text(binding, NAME_CHARS)
}

pub(crate) fn version(_: &Bound, _: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    optional(Some(&context.session.version))
}

pub(crate) fn infer_connection(binding: &mut Binding<'_>) -> Inferred {
    binding.column = of_length(TypeKind::BigInt, 10, true);
    Ok(())
}

pub(crate) fn connection_id(_: &Bound, _: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    Ok(Value::UInt(context.session.connection_id))
}

pub(crate) fn infer_big(binding: &mut Binding<'_>) -> Inferred {
    let unsigned = binding.function != Function::RowCount;
    binding.column = of_length(TypeKind::BigInt, 21, unsigned);
    Ok(())
}

/// LAST_INSERT_ID(); with an argument it sets the number and returns it.
pub(crate) fn last_insert_id(
    _: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let Some(given) = args.first() else {
        return Ok(Value::UInt(context.session.last_insert_id));
    };
    let given = given
        .to_integer(context.warnings)
        .map(value::number::Integer::bits);
    context.session.last_insert_id = given.unwrap_or(0);
    context.session.is_last_insert_id_given = true;
    Ok(given.map_or(Value::Null, Value::UInt))
}

pub(crate) fn row_count(_: &Bound, _: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    Ok(Value::Int(context.session.row_count))
}

pub(crate) fn found_rows(_: &Bound, _: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    Ok(Value::UInt(context.session.found_rows))
}

fn of_argument(bound: &Bound) -> CollationId {
    u16::try_from(bound.choice)
        .ok()
        .and_then(CollationId::from_id)
        .unwrap_or(CollationId::BINARY)
}

/// The character set of the argument: for numbers the connection's, for NULL `binary`.
pub(crate) fn charset(bound: &Bound, _: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    optional(Some(of_argument(bound).charset().name()))
}

pub(crate) fn collation(bound: &Bound, _: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    optional(Some(of_argument(bound).name()))
}

pub(crate) fn infer_coercibility(binding: &mut Binding<'_>) -> Inferred {
    binding.choice = u32::from(binding.args[0].rule.coercibility as u8);
    binding.nullable = false;
    binding.column = of_length(TypeKind::Int, 10, false);
    Ok(())
}

pub(crate) fn coercibility(bound: &Bound, _: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    Ok(Value::Int(i64::from(bound.choice)))
}
