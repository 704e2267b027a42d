//! LIKE and regular expressions.
//!
//! Regular expressions are those of crate `regex` (`matcher.rs`): no look-around, no back
//! references, and time linear in the text. The collation decides whether case matters. Patterns
//! that the crate refuses are error 1139.

use errcode::ER_WRONG_ARGUMENTS;
use value::collation::mix_to_compare;
use value::{Charset, SqlCondition, TypeKind, Value, ValueRef};

use crate::bind::{Binding, Bound};
use crate::context::Context;
use crate::infer::{Inferred, boolean, chars, of_length};
use crate::matcher::Matcher;
use crate::null::some;

type Evaluated = Result<Value, SqlCondition>;

pub(crate) fn infer(binding: &mut Binding<'_>) -> Inferred {
    infer_texts(binding)?;
    boolean(binding)
}

fn infer_texts(binding: &mut Binding<'_>) -> Inferred {
    let rules = [binding.args[0].rule, binding.args[1].rule];
    binding.texts = mix_to_compare(&rules, &binding.name.to_lowercase())?.collation;
    Ok(())
}

pub(crate) fn like(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let text = some!(bound.text_arg(args, 0));
    let pattern = some!(bound.text_arg(args, 1));
    let escape = match args.get(2) {
        None => Some(u32::from(b'\\')),
        Some(_) => {
            let escape = some!(bound.text_arg(args, 2));
            let charset = bound.texts.charset();
            if charset.char_count(&escape) > 1 {
                return Err(SqlCondition::new(ER_WRONG_ARGUMENTS, &[&"ESCAPE"]));
            }
            charset.decode(&escape).map(|(code, _)| code)
        }
    };
    let spend = &mut |bytes| context.spend(bytes);
    let is_like = bound.texts.like_metered(&text, &pattern, escape, spend)?;
    Ok(Value::Int(i64::from(is_like)))
}

/// The text for `regex`: UTF-8, or bytes.
fn readable(bound: &Bound, text: &[u8]) -> Vec<u8> {
    match bound.texts.charset() {
        Charset::Binary => text.to_vec(),
        charset => charset.to_utf8_lossy(text).into_owned().into_bytes(),
    }
}

/// Uses a compiled expression, and restores the context afterwards.
fn search<T>(
    context: &mut Context<'_>,
    bound: &Bound,
    pattern: &[u8],
    run: impl FnOnce(&mut Matcher, &Context<'_>) -> Result<T, SqlCondition>,
) -> Result<T, SqlCondition> {
    let mut patterns = std::mem::take(&mut context.patterns);
    let ran = patterns
        .find(pattern, bound.texts)
        .and_then(|matcher| run(matcher, context));
    context.patterns = patterns;
    ran
}

pub(crate) fn regexp(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let text = some!(bound.text_arg(args, 0));
    let pattern = some!(bound.text_arg(args, 1));
    let text = readable(bound, &text);
    let found = search(context, bound, &pattern, |matcher, context| {
        matcher.find(&text, 0, context.meter)
    })?;
    Ok(Value::Int(i64::from(found.is_some())))
}

pub(crate) fn infer_instr(binding: &mut Binding<'_>) -> Inferred {
    infer_texts(binding)?;
    binding.column = of_length(TypeKind::Int, 11, false);
    Ok(())
}

pub(crate) fn regexp_instr(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let text = some!(bound.text_arg(args, 0));
    let pattern = some!(bound.text_arg(args, 1));
    let text = readable(bound, &text);
    let found = search(context, bound, &pattern, |matcher, context| {
        matcher.find(&text, 0, context.meter)
    })?;
    let position = found.map_or(0, |found| {
        let before = &text[..found.start];
        let count = if bound.texts.charset() == Charset::Binary {
            before.len()
        } else {
            Charset::Utf8mb4.char_count(before)
        };
        i64::try_from(count + 1).unwrap_or(i64::MAX)
    });
    Ok(Value::Int(position))
}

pub(crate) fn infer_replace(binding: &mut Binding<'_>) -> Inferred {
    let length = chars(&binding.args[0]) + chars(&binding.args[2]) * chars(&binding.args[0]).max(1);
    binding.text_of(0..3, length)
}

/// Replaces every match; in the replacement `\1` is the first group.
pub(crate) fn regexp_replace(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let text = some!(bound.text_arg(args, 0));
    let pattern = some!(bound.text_arg(args, 1));
    let replacement = some!(bound.text_arg(args, 2));
    let text = readable(bound, &text);
    let template = template(&readable(bound, &replacement));
    let out = search(context, bound, &pattern, |matcher, context| {
        replaced(matcher, &text, &template, context)
    })?;
    if !context.fits(out.len(), bound.name()) {
        return Ok(Value::Null);
    }
    Ok(Value::Bytes(written(bound, out)))
}

/// The text with every match replaced; cut short if it exceeds the longest result.
fn replaced(
    matcher: &mut Matcher,
    text: &[u8],
    template: &[u8],
    context: &Context<'_>,
) -> Result<Vec<u8>, SqlCondition> {
    let (mut out, mut copied, mut at) = (Vec::with_capacity(text.len()), 0, 0);
    let mut last_end = None;
    // A short text may have many matches, each with a long replacement.
    while at <= text.len() && out.len() <= context.result_bytes_max {
        let Some(found) = matcher.find(text, at, context.meter)? else {
            break;
        };
        if found.is_empty() && last_end == Some(found.end) {
            // An empty match right after another: continue after the next character.
            let rest = &text[found.end..];
            at = found.end
                + Charset::Utf8mb4
                    .decode(rest)
                    .map_or(1, |(_, length)| length);
            continue;
        }
        out.extend_from_slice(&text[copied..found.start]);
        matcher.append_filled(text, found, template, context.meter, &mut out)?;
        (copied, at, last_end) = (found.end, found.end, Some(found.end));
    }
    out.extend_from_slice(&text[copied..]);
    Ok(out)
}

/// The replacement in the form of `regex`: `${1}` for `\1`, `$$` for `$`.
fn template(replacement: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(replacement.len());
    let mut bytes = replacement.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match (byte, bytes.peek()) {
            (b'\\', Some(digit)) if digit.is_ascii_digit() => {
                out.extend_from_slice(&[b'$', b'{', *digit, b'}']);
                bytes.next();
            }
            (b'\\', Some(other)) => {
                out.push(*other);
                bytes.next();
            }
            (b'$', _) => out.extend_from_slice(b"$$"),
            _ => out.push(byte),
        }
    }
    out
}

/// Converts the output of `regex` to the character set of the call.
fn written(bound: &Bound, text: Vec<u8>) -> Vec<u8> {
    let charset = bound.texts.charset();
    let mut out = Vec::with_capacity(text.len());
    charset.append_converted(Charset::Utf8mb4, &text, &mut out);
    out
}

pub(crate) fn infer_substr(binding: &mut Binding<'_>) -> Inferred {
    let length = chars(&binding.args[0]);
    binding.text_of(0..2, length)
}

pub(crate) fn regexp_substr(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let text = some!(bound.text_arg(args, 0));
    let pattern = some!(bound.text_arg(args, 1));
    let text = readable(bound, &text);
    let found = search(context, bound, &pattern, |matcher, context| {
        matcher.find(&text, 0, context.meter)
    })?;
    let found = found.map_or(&[][..], |found| &text[found.range()]).to_vec();
    Ok(Value::Bytes(written(bound, found)))
}
