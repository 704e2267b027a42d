//! Functions that build text.

use std::borrow::Cow;

use builtin::Function;
use value::collation::BYTES_PER_SPEND;
use value::{Charset, SqlCondition, Value, ValueRef};

use crate::bind::{Binding, Bound};
use crate::context::Context;
use crate::infer::{Inferred, chars, connection_text, text_type};
use crate::null::some;

type Evaluated = Result<Value, SqlCondition>;

fn text(bytes: Vec<u8>) -> Evaluated {
    Ok(Value::Bytes(bytes))
}

pub(crate) fn infer_concat(binding: &mut Binding<'_>) -> Inferred {
    let sum = binding.args.iter().map(chars).sum();
    binding.text_of(0..binding.args.len(), sum)
}

pub(crate) fn concat(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let mut out = Vec::new();
    for index in 0..args.len() {
        let part = some!(bound.text_arg(args, index));
        if !context.fits(out.len() + part.len(), bound.name()) {
            return Ok(Value::Null);
        }
        out.extend_from_slice(&part);
    }
    text(out)
}

pub(crate) fn infer_concat_ws(binding: &mut Binding<'_>) -> Inferred {
    let sum: u64 = binding.args[1..].iter().map(chars).sum();
    let separators = (binding.args.len() as u64 - 2) * chars(&binding.args[0]);
    binding.nullable = binding.args[0].nullable;
    binding.text_of(0..binding.args.len(), sum + separators)
}

pub(crate) fn concat_ws(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let separator = some!(bound.text_arg(args, 0));
    let mut out = Vec::new();
    let mut first = true;
    for index in 1..args.len() {
        let Some(part) = bound.text_arg(args, index) else {
            continue;
        };
        if !first {
            out.extend_from_slice(&separator);
        }
        first = false;
        if !context.fits(out.len() + part.len(), bound.name()) {
            return Ok(Value::Null);
        }
        out.extend_from_slice(&part);
    }
    text(out)
}

/// The text of an argument in its own character set.
fn own_text<'v>(bound: &Bound, args: &[ValueRef<'v>], index: usize) -> Option<Cow<'v, [u8]>> {
    args[index].to_text(&bound.args[index])
}

fn count(number: usize) -> Evaluated {
    Ok(Value::Int(i64::try_from(number).unwrap_or(i64::MAX)))
}

pub(crate) fn length(bound: &Bound, args: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    count(some!(own_text(bound, args, 0)).len())
}

pub(crate) fn bit_length(bound: &Bound, args: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    count(some!(own_text(bound, args, 0)).len() * 8)
}

pub(crate) fn char_length(bound: &Bound, args: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    let bytes = some!(own_text(bound, args, 0));
    count(bound.args[0].charset().char_count(&bytes))
}

/// Text of the same length as the argument.
pub(crate) fn infer_same(binding: &mut Binding<'_>) -> Inferred {
    let length = chars(&binding.args[0]);
    let length = if binding.function == Function::Soundex {
        length.max(4)
    } else {
        length
    };
    binding.text_of(0..1, length)
}

pub(crate) fn upper(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    in_case(bound, args, context, Charset::append_upper)
}

pub(crate) fn lower(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    in_case(bound, args, context, Charset::append_lower)
}

fn in_case(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &Context<'_>,
    append: fn(Charset, &[u8], &mut Vec<u8>),
) -> Evaluated {
    let bytes = some!(bound.text_arg(args, 0));
    let charset = bound.texts.charset();
    let mut out = Vec::with_capacity(bytes.len());
    for piece in charset.pieces(&bytes) {
        context.spend(piece.len())?;
        append(charset, piece, &mut out);
    }
    text(out)
}

pub(crate) fn reverse(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let bytes = some!(bound.text_arg(args, 0));
    let mut out = vec![0; bytes.len()];
    let (mut from, mut to) = (0, bytes.len());
    for (index, length) in bound.texts.charset().char_lengths(&bytes).enumerate() {
        spend_at(index, context)?;
        out[to - length..to].copy_from_slice(&bytes[from..from + length]);
        from += length;
        to -= length;
    }
    text(out)
}

pub(crate) fn infer_repeat(binding: &mut Binding<'_>) -> Inferred {
    let times = binding
        .constant_integer(1)
        .map_or(u64::from(u32::MAX), |times| {
            u64::try_from(times).unwrap_or(0)
        });
    binding.nullable = true;
    binding.text_of(0..1, chars(&binding.args[0]).saturating_mul(times))
}

pub(crate) fn repeat(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let bytes = some!(bound.text_arg(args, 0));
    let times = some!(args[1].to_i64(context.warnings));
    let times = usize::try_from(times).unwrap_or(0);
    if !context.fits(bytes.len().saturating_mul(times), bound.name()) {
        return Ok(Value::Null);
    }
    text(bytes.repeat(times))
}

pub(crate) fn infer_space(binding: &mut Binding<'_>) -> Inferred {
    let count = binding.constant_integer(0).unwrap_or(i64::from(u32::MAX));
    connection_text(binding, u64::try_from(count).unwrap_or(0))?;
    binding.nullable = true;
    Ok(())
}

pub(crate) fn space(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let count = some!(args[0].to_i64(context.warnings));
    let count = usize::try_from(count).unwrap_or(0);
    if !context.fits(count, bound.name()) {
        return Ok(Value::Null);
    }
    text(vec![b' '; count])
}

pub(crate) fn infer_replace(binding: &mut Binding<'_>) -> Inferred {
    let [from, search, replacement] = binding.args else {
        return Ok(());
    };
    let growth = chars(replacement).saturating_sub(chars(search).min(chars(replacement)));
    let sum = chars(from) + chars(from) * growth;
    binding.text_of(0..3, sum)
}

/// The cost of testing one position of a text, in bytes.
const PLACE_COST: usize = 2;

/// Counts the work of a loop over characters, now and then.
pub(crate) fn spend_at(index: usize, context: &Context<'_>) -> Result<(), SqlCondition> {
    if (index + 1).is_multiple_of(BYTES_PER_SPEND) {
        context.spend(BYTES_PER_SPEND)?;
    }
    Ok(())
}

/// Every occurrence, byte for byte.
pub(crate) fn replace(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let bytes = some!(bound.text_arg(args, 0));
    let search = some!(bound.text_arg(args, 1));
    let replacement = some!(bound.text_arg(args, 2));
    if search.is_empty() {
        return text(bytes.into_owned());
    }
    let charset = bound.texts.charset();
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = &bytes[..];
    while let Some(first) = rest.first() {
        // A position that matches for long before it differs costs by the length.
        context.spend(PLACE_COST + search.len() / 16)?;
        if let Some(after) = rest.strip_prefix(&search[..]) {
            out.extend_from_slice(&replacement);
            rest = after;
            if !context.fits(out.len(), bound.name()) {
                return Ok(Value::Null);
            }
            continue;
        }
        let length = match *first {
            0..0x80 => 1,
            _ => charset.decode(rest).map_or(1, |(_, length)| length),
        };
        out.extend_from_slice(&rest[..length]);
        rest = &rest[length..];
    }
    text(out)
}

pub(crate) fn infer_insert(binding: &mut Binding<'_>) -> Inferred {
    let sum = chars(&binding.args[0]) + chars(&binding.args[3]);
    let rules = [binding.args[0].rule, binding.args[3].rule];
    binding.rule = value::collation::mix(&rules, "insert")?;
    binding.texts = binding.rule.collation;
    binding.column = text_type(sum, binding.rule.collation);
    Ok(())
}

/// INSERT(text, position, length, new): a position outside of the text changes nothing.
pub(crate) fn insert(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let bytes = some!(bound.text_arg(args, 0));
    let position = some!(args[1].to_i64(context.warnings));
    let length = some!(args[2].to_i64(context.warnings));
    let new = some!(bound.text_arg(args, 3));
    let charset = bound.texts.charset();
    let count = charset.char_count(&bytes);
    let start = match usize::try_from(position) {
        Ok(position) if (1..=count).contains(&position) => position - 1,
        _ => return text(bytes.into_owned()),
    };
    let length = usize::try_from(length)
        .unwrap_or(usize::MAX)
        .min(count - start);
    let from = charset.prefix(&bytes, start).len();
    let to = charset.prefix(&bytes, start + length).len();
    if !context.fits(bytes.len() + new.len(), bound.name()) {
        return Ok(Value::Null);
    }
    let mut out = bytes[..from].to_vec();
    out.extend_from_slice(&new);
    out.extend_from_slice(&bytes[to..]);
    text(out)
}

pub(crate) fn infer_pad(binding: &mut Binding<'_>) -> Inferred {
    let length = binding.constant_integer(1).unwrap_or(i64::from(u32::MAX));
    let mut rules = vec![binding.args[0].rule];
    rules.extend(binding.args.get(2).map(|pad| pad.rule));
    binding.rule = value::collation::mix(&rules, &binding.name.to_lowercase())?;
    binding.texts = binding.rule.collation;
    binding.nullable = true;
    binding.column = text_type(u64::try_from(length).unwrap_or(0), binding.rule.collation);
    Ok(())
}

pub(crate) fn lpad(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    pad(bound, args, context, true)
}

pub(crate) fn rpad(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    pad(bound, args, context, false)
}

fn pad(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>, left: bool) -> Evaluated {
    let bytes = some!(bound.text_arg(args, 0));
    let wanted = some!(args[1].to_i64(context.warnings));
    let with = match args.get(2) {
        Some(_) => some!(bound.text_arg(args, 2)),
        None => Cow::Borrowed(&b" "[..]),
    };
    let Ok(wanted) = usize::try_from(wanted) else {
        return Ok(Value::Null);
    };
    let charset = bound.texts.charset();
    let count = charset.char_count(&bytes);
    if count >= wanted {
        return text(charset.prefix(&bytes, wanted).to_vec());
    }
    if with.is_empty() {
        return text(Vec::new());
    }
    let missing = wanted - count;
    let width = charset.char_count(&with);
    let most = bytes
        .len()
        .saturating_add(missing.saturating_mul(charset.char_bytes_max()));
    if !context.fits(most, bound.name()) {
        return Ok(Value::Null);
    }
    let mut padding = with.repeat(missing / width);
    padding.extend_from_slice(charset.prefix(&with, missing % width));
    let mut out = Vec::with_capacity(bytes.len() + padding.len());
    let (first, second) = if left {
        (&padding[..], &bytes[..])
    } else {
        (&bytes[..], &padding[..])
    };
    out.extend_from_slice(first);
    out.extend_from_slice(second);
    text(out)
}

pub(crate) fn infer_quote(binding: &mut Binding<'_>) -> Inferred {
    binding.nullable = false;
    binding.text_of(0..1, chars(&binding.args[0]) * 2 + 2)
}

/// A literal that reads back as the text.
pub(crate) fn quote(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let Some(bytes) = bound.text_arg(args, 0) else {
        return text(b"NULL".to_vec());
    };
    let mut out = Vec::with_capacity(bytes.len() + 2);
    out.push(b'\'');
    for (index, byte) in bytes.iter().enumerate() {
        spend_at(index, context)?;
        match byte {
            0 => out.extend_from_slice(b"\\0"),
            0x1A => out.extend_from_slice(b"\\Z"),
            b'\'' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            _ => out.push(*byte),
        }
    }
    out.push(b'\'');
    text(out)
}

/// Codes of the letters A to Z; 0 for letters without one.
const SOUNDEX: &[u8; 26] = b"01230120022455012623010202";

/// A letter and at least three digits: how a name sounds in English. A code counts if it differs
/// from the last one, whatever is between them: neither vowels nor the end of a word separate equal
/// codes.
pub(crate) fn soundex(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let bytes = some!(bound.text_arg(args, 0));
    let charset = bound.texts.charset();
    let mut out = Vec::new();
    let mut last = 0;
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let length = charset.decode(rest).map_or(1, |(_, length)| length);
        spend_at(bytes.len() - rest.len(), context)?;
        let (letter, after) = rest.split_at(length);
        rest = after;
        // Letters beyond ASCII have no code; they only count as the first letter.
        let next = match letter {
            [ascii] if ascii.is_ascii_alphabetic() => {
                SOUNDEX[usize::from(ascii.to_ascii_uppercase() - b'A')]
            }
            [ascii] if ascii.is_ascii() => continue,
            _ => b'0',
        };
        if out.is_empty() {
            out.extend(letter.iter().map(u8::to_ascii_uppercase));
            last = next;
            continue;
        }
        if next != b'0' && next != last {
            out.push(next);
            last = next;
        }
    }
    let shown = charset.char_count(&out);
    if shown > 0 && shown < 4 {
        out.resize(out.len() + 4 - shown, b'0');
    }
    text(out)
}
