//! Functions that cut text.

use value::collation::mix;
use value::{SqlCondition, Value, ValueRef};

use crate::bind::{Binding, Bound};
use crate::context::Context;
use crate::infer::{Inferred, chars, text_type};
use crate::null::some;

type Evaluated = Result<Value, SqlCondition>;

fn text(bytes: &[u8]) -> Evaluated {
    Ok(Value::Bytes(bytes.to_vec()))
}

pub(crate) fn infer_side(binding: &mut Binding<'_>) -> Inferred {
    let own = chars(&binding.args[0]);
    let kept = binding
        .constant_integer(1)
        .map_or(own, |kept| u64::try_from(kept).unwrap_or(0));
    binding.text_of(0..1, own.min(kept))
}

pub(crate) fn left(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let bytes = some!(bound.text_arg(args, 0));
    let kept = some!(args[1].to_i64(context.warnings));
    let kept = usize::try_from(kept).unwrap_or(0);
    text(bound.texts.charset().prefix(&bytes, kept))
}

pub(crate) fn right(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let bytes = some!(bound.text_arg(args, 0));
    let kept = some!(args[1].to_i64(context.warnings));
    let kept = usize::try_from(kept).unwrap_or(0);
    let charset = bound.texts.charset();
    let count = charset.char_count(&bytes);
    let skipped = charset.prefix(&bytes, count.saturating_sub(kept)).len();
    text(&bytes[skipped..])
}

pub(crate) fn infer(binding: &mut Binding<'_>) -> Inferred {
    let own = chars(&binding.args[0]);
    let skipped = match binding.constant_integer(1) {
        Some(position @ 1..) => position.unsigned_abs() - 1,
        _ => 0,
    };
    let mut length = own.saturating_sub(skipped);
    if let Some(kept) = binding.constant_integer(2) {
        length = length.min(u64::try_from(kept).unwrap_or(0));
    }
    binding.text_of(0..1, length)
}

/// SUBSTRING(text, position, length): a negative position counts from the end.
pub(crate) fn substring(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let bytes = some!(bound.text_arg(args, 0));
    let position = some!(args[1].to_i64(context.warnings));
    let length = match args.get(2) {
        Some(length) => some!(length.to_i64(context.warnings)),
        None => i64::MAX,
    };
    let charset = bound.texts.charset();
    let count = i64::try_from(charset.char_count(&bytes)).unwrap_or(i64::MAX);
    let start = match position {
        0 => return text(b""),
        1.. => position - 1,
        _ => count.saturating_add(position),
    };
    if start < 0 || start >= count || length <= 0 {
        return text(b"");
    }
    let end = start.saturating_add(length).min(count);
    let at = |index: i64| {
        charset
            .prefix(&bytes, usize::try_from(index).unwrap_or(0))
            .len()
    };
    text(&bytes[at(start)..at(end)])
}

pub(crate) fn infer_index(binding: &mut Binding<'_>) -> Inferred {
    let length = chars(&binding.args[0]);
    binding.text_of(0..2, length)
}

/// The text before the n-th delimiter (from the end if negative).
pub(crate) fn substring_index(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let bytes = some!(bound.text_arg(args, 0));
    let delimiter = some!(bound.text_arg(args, 1));
    let count = some!(args[2].to_i64(context.warnings));
    if count == 0 || delimiter.is_empty() || bytes.is_empty() {
        return text(b"");
    }
    let found = occurrences(bound, &bytes, &delimiter, count < 0, context)?;
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if count > 0 {
        let end = found.get(wanted - 1).copied().unwrap_or(bytes.len());
        return text(&bytes[..end]);
    }
    match found.get(wanted - 1) {
        Some(at) => text(&bytes[at + delimiter.len()..]),
        None => text(&bytes),
    }
}

/// The positions of the delimiter without overlaps, from the front or from the end.
fn occurrences(
    bound: &Bound,
    bytes: &[u8],
    delimiter: &[u8],
    from_end: bool,
    context: &Context<'_>,
) -> Result<Vec<usize>, SqlCondition> {
    let mut starts: Vec<usize> = Vec::new();
    let mut at = 0;
    for length in bound.texts.charset().char_lengths(bytes) {
        context.spend(length + delimiter.len() / 16)?;
        if bytes[at..].starts_with(delimiter) {
            starts.push(at);
        }
        at += length;
    }
    let mut found: Vec<usize> = Vec::new();
    let apart = |last: Option<&usize>, start: usize| {
        last.is_none_or(|last| last.abs_diff(start) >= delimiter.len())
    };
    let mut keep = |start: usize| {
        if apart(found.last(), start) {
            found.push(start);
        }
    };
    if from_end {
        starts.into_iter().rev().for_each(&mut keep);
    } else {
        starts.into_iter().for_each(&mut keep);
    }
    Ok(found)
}

pub(crate) fn infer_trim(binding: &mut Binding<'_>) -> Inferred {
    let rules: Vec<_> = binding.args.iter().map(|arg| arg.rule).collect();
    binding.rule = mix(&rules, "trim")?;
    binding.texts = binding.rule.collation;
    binding.column = text_type(chars(&binding.args[0]), binding.rule.collation);
    Ok(())
}

/// TRIM(text), TRIM(text, removed): at both ends.
pub(crate) fn trim(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    trimmed(bound, args, context, (true, true))
}

pub(crate) fn trim_leading(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    trimmed(bound, args, context, (true, false))
}

pub(crate) fn trim_trailing(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    trimmed(bound, args, context, (false, true))
}

fn trimmed(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &Context<'_>,
    (leading, trailing): (bool, bool),
) -> Evaluated {
    let bytes = some!(bound.text_arg(args, 0));
    let removed = match args.get(1) {
        Some(_) => some!(bound.text_arg(args, 1)),
        None => std::borrow::Cow::Borrowed(&b" "[..]),
    };
    let mut rest = &bytes[..];
    if removed.is_empty() {
        return text(rest);
    }
    if leading {
        while let Some(after) = rest.strip_prefix(&removed[..]) {
            context.spend(removed.len())?;
            rest = after;
        }
    }
    if trailing {
        while let Some(before) = rest.strip_suffix(&removed[..]) {
            context.spend(removed.len())?;
            rest = before;
        }
    }
    text(rest)
}
