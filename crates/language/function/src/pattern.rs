//! LIKE and regular expressions.
//!
//! Regular expressions are those of crate `regex`: no look-around, no back references, and time
//! linear in the text. Letter case follows the collation. A pattern that `regex` refuses is error
//! 1139.

use regex::bytes::{Regex, RegexBuilder};
use value::collation::mix_to_compare;
use value::{Charset, CollationId, Trouble, TypeKind, Value, ValueRef};

use crate::bind::{Binding, Bound};
use crate::context::Context;
use crate::infer::{Inferred, boolean, chars, of_length};
use crate::strings::some;

type Evaluated = Result<Value, Trouble>;

/// Largest program of one expression in memory.
const REGEX_BYTES_MAX: usize = 1 << 20;

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
                return Err(Trouble::new(1210, "Incorrect arguments to ESCAPE"));
            }
            charset.decode(&escape).map(|(code, _)| code)
        }
    };
    let spend = &mut |bytes| context.spend(bytes);
    let is_like = bound.texts.like_metered(&text, &pattern, escape, spend)?;
    Ok(Value::Int(i64::from(is_like)))
}

fn compiled(pattern: &[u8], collation: CollationId) -> Result<Regex, Trouble> {
    let folds = collation.equal(b"a", b"A");
    let binary = collation.charset() == Charset::Binary;
    let refuse = |reason: String| Trouble::new(1139, format!("Regex error '{reason}'"));
    let pattern = collation.charset().to_utf8_lossy(pattern);
    RegexBuilder::new(&pattern)
        .case_insensitive(folds)
        .unicode(!binary)
        .size_limit(REGEX_BYTES_MAX)
        .build()
        .map_err(|error| {
            let text = error.to_string();
            refuse(
                text.lines()
                    .last()
                    .unwrap_or("syntax")
                    .trim_start_matches("error: ")
                    .to_owned(),
            )
        })
}

/// Compiled expressions of a statement, so that a constant pattern is compiled once.
#[derive(Debug, Default)]
pub struct Patterns {
    known: Vec<(Vec<u8>, CollationId, Regex)>,
}

/// Expressions kept for a statement; the oldest goes first.
const PATTERNS_MAX: usize = 16;

impl Patterns {
    fn find(&mut self, pattern: &[u8], collation: CollationId) -> Result<&Regex, Trouble> {
        let known = self
            .known
            .iter()
            .position(|(text, of, _)| text == pattern && *of == collation);
        let index = match known {
            Some(index) => index,
            None => {
                let regex = compiled(pattern, collation)?;
                if self.known.len() == PATTERNS_MAX {
                    self.known.remove(0);
                }
                self.known.push((pattern.to_vec(), collation, regex));
                self.known.len() - 1
            }
        };
        Ok(&self.known[index].2)
    }
}

/// The text as `regex` reads it: UTF-8, or bytes.
fn readable(bound: &Bound, text: &[u8]) -> Vec<u8> {
    match bound.texts.charset() {
        Charset::Binary => text.to_vec(),
        charset => charset.to_utf8_lossy(text).into_owned().into_bytes(),
    }
}

pub(crate) fn regexp(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let text = some!(bound.text_arg(args, 0));
    let pattern = some!(bound.text_arg(args, 1));
    let text = readable(bound, &text);
    let found = context
        .patterns
        .find(&pattern, bound.texts)?
        .is_match(&text);
    Ok(Value::Int(i64::from(found)))
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
    let found = context.patterns.find(&pattern, bound.texts)?.find(&text);
    let position = found.map_or(0, |found| {
        let before = &text[..found.start()];
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

/// Every match by the replacement, in which `\1` is the first group.
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
    let limit = context.result_bytes_max;
    let regex = context.patterns.find(&pattern, bound.texts)?;
    let (mut out, mut end) = (Vec::with_capacity(text.len()), 0);
    for found in regex.captures_iter(&text) {
        let whole = found.get_match();
        out.extend_from_slice(&text[end..whole.start()]);
        found.expand(&template, &mut out);
        end = whole.end();
        // A short text may have many matches, and each may bring a long replacement.
        if limit < out.len() {
            break;
        }
    }
    out.extend_from_slice(&text[end..]);
    if !context.fits(out.len(), bound.name()) {
        return Ok(Value::Null);
    }
    Ok(Value::Bytes(written(bound, out)))
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

/// What `regex` gave in the character set of the call.
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
    let regex = context.patterns.find(&pattern, bound.texts)?;
    let found = regex
        .find(&text)
        .map_or(&[][..], |found| found.as_bytes())
        .to_vec();
    Ok(Value::Bytes(written(bound, found)))
}
