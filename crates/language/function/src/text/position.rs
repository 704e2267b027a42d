//! Functions that search a text in another, by collation.

use std::cmp::Ordering;

use value::{CollationId, SqlCondition, TypeKind, Value, ValueRef};

use crate::bind::{Binding, Bound};
use crate::context::Context;
use crate::infer::{Inferred, of_length};
use crate::null::some;

type Evaluated = Result<Value, SqlCondition>;

/// LOCATE(needle, text, start); the start has no collation.
pub(crate) fn infer_locate(binding: &mut Binding<'_>) -> Inferred {
    binding.texts = binding.mixed(0..2)?.collation;
    binding.column = of_length(TypeKind::Int, 11, false);
    Ok(())
}

pub(crate) fn instr(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let text = some!(bound.text_arg(args, 0));
    let needle = some!(bound.text_arg(args, 1));
    find(bound.texts, &text, &needle, 1, context)
}

pub(crate) fn locate(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let needle = some!(bound.text_arg(args, 0));
    let text = some!(bound.text_arg(args, 1));
    let start = match args.get(2) {
        Some(start) => some!(start.to_i64(context.warnings)),
        None => 1,
    };
    find(bound.texts, &text, &needle, start, context)
}

/// The cost of testing one position, in bytes.
const CANDIDATE_COST: usize = 8;

/// The number of the character, from 1, at which the needle occurs, searching from `start`; 0 if
/// nowhere.
fn find(
    collation: CollationId,
    text: &[u8],
    needle: &[u8],
    start: i64,
    context: &Context<'_>,
) -> Evaluated {
    let nowhere = Ok(Value::Int(0));
    let charset = collation.charset();
    let Ok(skipped) = usize::try_from(start.saturating_sub(1)) else {
        return nowhere;
    };
    let count = charset.char_count(text);
    if skipped > count {
        return nowhere;
    }
    if needle.is_empty() {
        return Ok(Value::Int(start));
    }
    let spend = &mut |bytes| context.spend(bytes);
    let mut at = charset.prefix(text, skipped).len();
    for (length, position) in charset.char_lengths(&text[at..]).zip(start..) {
        let Some(candidate) = text.get(at..at + needle.len()) else {
            return nowhere;
        };
        // Most candidates differ within a few bytes; the others cost by their length.
        spend(CANDIDATE_COST + needle.len() / 16)?;
        if candidate == needle || collation.compare_metered(candidate, needle, spend)?.is_eq() {
            return Ok(Value::Int(position));
        }
        at += length;
    }
    nowhere
}

pub(crate) fn strcmp(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let left = some!(bound.text_arg(args, 0));
    let right = some!(bound.text_arg(args, 1));
    let spend = &mut |bytes| context.spend(bytes);
    let order = bound.texts.compare_metered(&left, &right, spend)?;
    Ok(Value::Int(match order {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }))
}
