//! ELT, FIELD and the functions of comma-separated sets.

use value::collation::mix;
use value::{SqlCondition, TypeKind, Value, ValueRef};

use crate::bind::{Binding, Bound};
use crate::comparison::plan;
use crate::context::Context;
use crate::infer::{Inferred, chars, of_length};
use crate::null::some;

type Evaluated = Result<Value, SqlCondition>;

pub(crate) fn infer_elt(binding: &mut Binding<'_>) -> Inferred {
    let longest = binding.args[1..].iter().map(chars).max().unwrap_or(0);
    binding.nullable = true;
    binding.text_of(1..binding.args.len(), longest)
}

pub(crate) fn elt(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let index = some!(args[0].to_i64(context.warnings));
    match usize::try_from(index) {
        Ok(index) if index >= 1 && index < args.len() => Ok(Value::Bytes(
            some!(bound.text_arg(args, index)).into_owned(),
        )),
        _ => Ok(Value::Null),
    }
}

pub(crate) fn infer_field(binding: &mut Binding<'_>) -> Inferred {
    plan(binding, binding.args)?;
    let all = |is: fn(TypeKind) -> bool| binding.args.iter().all(|arg| is(arg.column.kind));
    if !all(TypeKind::is_string) && !all(TypeKind::is_integer) && !all(is_exact) {
        binding.comparison = value::Comparison::Double;
    }
    binding.nullable = false;
    binding.column = of_length(TypeKind::Int, 3, false);
    Ok(())
}

fn is_exact(kind: TypeKind) -> bool {
    kind.is_integer() || kind == TypeKind::Decimal
}

pub(crate) fn field(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let found = (1..args.len()).find(|index| {
        bound
            .order(args, 0, *index, context)
            .is_some_and(std::cmp::Ordering::is_eq)
    });
    Ok(Value::Int(found.map_or(0, |index| {
        i64::try_from(index).unwrap_or(i64::MAX)
    })))
}

pub(crate) fn find_in_set(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let wanted = some!(bound.text_arg(args, 0));
    let set = some!(bound.text_arg(args, 1));
    if set.is_empty() || wanted.contains(&b',') {
        return Ok(Value::Int(0));
    }
    let spend = &mut |bytes| context.spend(bytes);
    for (part, number) in set.split(|byte| *byte == b',').zip(1..) {
        spend(part.len() + 8)?;
        if part == &wanted[..] || bound.texts.compare_metered(part, &wanted, spend)?.is_eq() {
            return Ok(Value::Int(number));
        }
    }
    Ok(Value::Int(0))
}

pub(crate) fn infer_make_set(binding: &mut Binding<'_>) -> Inferred {
    let sum: u64 = binding.args[1..].iter().map(chars).sum();
    binding.nullable = binding.args[0].nullable;
    binding.text_of(1..binding.args.len(), sum + binding.args.len() as u64 - 2)
}

pub(crate) fn make_set(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let mask = some!(args[0].to_integer(context.warnings)).bits();
    let mut out = Vec::new();
    let mut first = true;
    for index in (1..args.len()).take(64) {
        if mask >> (index - 1) & 1 == 0 {
            continue;
        }
        let Some(part) = bound.text_arg(args, index) else {
            continue;
        };
        if !first {
            out.push(b',');
        }
        first = false;
        out.extend_from_slice(&part);
    }
    Ok(Value::Bytes(out))
}

pub(crate) fn infer_export_set(binding: &mut Binding<'_>) -> Inferred {
    let last = binding.args.len().min(4);
    let rules: Vec<_> = binding.args[1..last].iter().map(|arg| arg.rule).collect();
    let longest = chars(&binding.args[1]).max(chars(&binding.args[2]));
    let separator = binding.args.get(3).map_or(1, chars);
    let rule = mix(&rules, "export_set")?;
    binding.rule = rule;
    binding.texts = rule.collation;
    binding.column = crate::infer::text_type(64 * longest + 63 * separator, binding.rule.collation);
    Ok(())
}

/// EXPORT_SET(bits, on, off, separator, count), lowest bit first.
pub(crate) fn export_set(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let bits = some!(args[0].to_integer(context.warnings)).bits();
    let on = some!(bound.text_arg(args, 1));
    let off = some!(bound.text_arg(args, 2));
    let separator = match args.get(3) {
        Some(_) => some!(bound.text_arg(args, 3)).into_owned(),
        None => b",".to_vec(),
    };
    let count = match args.get(4) {
        Some(count) => some!(count.to_i64(context.warnings)),
        None => 64,
    };
    let count = u32::try_from(count).map_or(64, |count| count.min(64));
    let mut out = Vec::new();
    for bit in 0..count {
        if bit > 0 {
            out.extend_from_slice(&separator);
        }
        out.extend_from_slice(if bits >> bit & 1 == 1 { &on } else { &off });
    }
    Ok(Value::Bytes(out))
}
