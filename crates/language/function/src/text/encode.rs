//! Functions between text, bytes and number systems.

use base64ct::{Base64, Base64Unpadded, Encoding};
use value::collation::{BYTES_PER_SPEND, Coercibility, TextRule};
use value::{CollationId, ColumnType, SqlCondition, TypeKind, Value, ValueRef};

use crate::bind::{Binding, Bound};
use crate::context::Context;
use crate::infer::{Inferred, chars, connection_text, text_type};
use crate::null::some;
use crate::text::strings::spend_at;

type Evaluated = Result<Value, SqlCondition>;

/// Characters of a line of TO_BASE64.
const BASE64_LINE: usize = 76;
/// Bytes of text in such a line.
const BASE64_LINE_BYTES: usize = BASE64_LINE / 4 * 3;

/// The result is bytes without a character set.
fn binary(binding: &mut Binding<'_>, bytes: u64) {
    binding.rule = TextRule {
        collation: CollationId::BINARY,
        coercibility: Coercibility::Coercible,
        ascii_only: false,
    };
    binding.column = text_type(bytes, CollationId::BINARY);
}

pub(crate) fn ascii(bound: &Bound, args: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    let text = some!(args[0].to_text(&bound.args[0]));
    Ok(Value::Int(text.first().map_or(0, |byte| i64::from(*byte))))
}

/// The bytes of the first character as a number.
pub(crate) fn ord(bound: &Bound, args: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    let text = some!(args[0].to_text(&bound.args[0]));
    let length = bound.args[0]
        .charset()
        .decode(&text)
        .map_or(1, |(_, length)| length);
    let first = text.get(..length).unwrap_or(&[]);
    Ok(Value::Int(
        first
            .iter()
            .fold(0, |sum, byte| sum << 8 | i64::from(*byte)),
    ))
}

pub(crate) fn infer_char(binding: &mut Binding<'_>) -> Inferred {
    binding.nullable = true;
    binary(binding, 4 * binding.args.len() as u64);
    Ok(())
}

/// The bytes of numbers, without leading zero bytes; NULLs are skipped.
pub(crate) fn char(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let mut out = Vec::new();
    for arg in args {
        let Some(number) = arg.to_integer(context.warnings) else {
            continue;
        };
        let bytes = stdx::low_u32(number.bits()).to_be_bytes();
        let zeros = bytes.iter().take(3).take_while(|byte| **byte == 0).count();
        out.extend_from_slice(&bytes[zeros..]);
    }
    Ok(Value::Bytes(out))
}

pub(crate) fn infer_hex(binding: &mut Binding<'_>) -> Inferred {
    let arg = &binding.args[0];
    let length = if arg.is_text() {
        chars(arg) * 2 * arg.column.collation.char_bytes_max() as u64
    } else {
        16
    };
    connection_text(binding, length)?;
    binding.column.decimals = 0;
    Ok(())
}

pub(crate) fn hex(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let column = &bound.args[0];
    if column.kind.is_string() || column.kind.is_temporal() {
        let text = some!(args[0].to_text(column));
        return hex_upper(&text, context);
    }
    let number = some!(crate::number::bits::bits(args[0], context));
    Ok(Value::Bytes(format!("{number:X}").into_bytes()))
}

fn hex_upper(bytes: &[u8], context: &Context<'_>) -> Evaluated {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |nibble: u8| DIGITS[usize::from(nibble)];
    let mut out = Vec::with_capacity(bytes.len() * 2);
    for (index, byte) in bytes.iter().enumerate() {
        spend_at(index, context)?;
        out.extend_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
    }
    Ok(Value::Bytes(out))
}

pub(crate) fn infer_unhex(binding: &mut Binding<'_>) -> Inferred {
    let length = chars(&binding.args[0]);
    binding.nullable = true;
    binary(binding, length.div_ceil(2));
    binding.column.decimals = 0;
    Ok(())
}

pub(crate) fn unhex(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let text = some!(args[0].to_text(&bound.args[0]));
    let nibble = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .map(|digit| stdx::low_u8(u64::from(digit)))
    };
    let mut out = Vec::with_capacity(text.len().div_ceil(2));
    let mut rest = &text[..];
    if let (1, Some((first, after))) = (text.len() % 2, text.split_first()) {
        out.push(some!(nibble(*first)));
        rest = after;
    }
    for (index, pair) in rest.chunks_exact(2).enumerate() {
        spend_at(index, context)?;
        out.push(some!(nibble(pair[0])) << 4 | some!(nibble(pair[1])));
    }
    Ok(Value::Bytes(out))
}

pub(crate) fn infer_conv(binding: &mut Binding<'_>) -> Inferred {
    binding.nullable = true;
    connection_text(binding, 65)
}

/// CONV(number, from base, to base); negative bases are signed.
pub(crate) fn conv(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let from = some!(args[1].to_i64(context.warnings));
    let to = some!(args[2].to_i64(context.warnings));
    let text = some!(number_text(bound, args));
    converted(&text, from, to)
}

pub(crate) fn bin(bound: &Bound, args: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    converted(&some!(number_text(bound, args)), 10, 2)
}

pub(crate) fn oct(bound: &Bound, args: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    converted(&some!(number_text(bound, args)), 10, 8)
}

/// The first argument as text; a BIT as its number.
fn number_text<'v>(bound: &Bound, args: &[ValueRef<'v>]) -> Option<std::borrow::Cow<'v, [u8]>> {
    match bound.args[0].kind {
        TypeKind::Bit => args[0].to_text(&ColumnType::unsigned(TypeKind::BigInt)),
        _ => args[0].to_text(&bound.args[0]),
    }
}

fn converted(text: &[u8], from: i64, to: i64) -> Evaluated {
    let base = |base: i64| {
        u32::try_from(base.unsigned_abs())
            .ok()
            .filter(|b| (2..=36).contains(b))
    };
    let (Some(from_base), Some(to_base)) = (base(from), base(to)) else {
        return Ok(Value::Null);
    };
    if text.is_empty() {
        return Ok(Value::Null);
    }
    let text = text.trim_ascii_start();
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let mut magnitude = 0u64;
    for byte in digits {
        let Some(digit) = char::from(*byte).to_digit(from_base) else {
            break;
        };
        let next = magnitude.checked_mul(u64::from(from_base));
        match next.and_then(|next| next.checked_add(u64::from(digit))) {
            Some(next) => magnitude = next,
            None => {
                magnitude = u64::MAX;
                break;
            }
        }
    }
    let limit = i64::MAX.unsigned_abs();
    let bits = match (negative, from < 0) {
        (true, true) => magnitude.min(limit + 1).wrapping_neg(),
        (true, false) if magnitude == u64::MAX => magnitude,
        (true, false) => magnitude.wrapping_neg(),
        (false, true) => magnitude.min(limit),
        (false, false) => magnitude,
    };
    let (sign, magnitude) = if to < 0 && bits > limit {
        ("-", bits.wrapping_neg())
    } else {
        ("", bits)
    };
    let mut out = Vec::new();
    let mut rest = magnitude;
    while rest > 0 || out.is_empty() {
        let digit = stdx::low_u32(rest % u64::from(to_base));
        let shown = char::from_digit(digit, to_base)
            .unwrap_or('0')
            .to_ascii_uppercase();
        out.push(stdx::low_u8(u64::from(u32::from(shown))));
        rest /= u64::from(to_base);
    }
    out.extend(sign.bytes());
    out.reverse();
    Ok(Value::Bytes(out))
}

pub(crate) fn infer_to_base64(binding: &mut Binding<'_>) -> Inferred {
    let arg = &binding.args[0];
    let bytes = chars(arg) * arg.column.collation.char_bytes_max() as u64;
    let encoded = bytes.div_ceil(3) * 4;
    connection_text(binding, encoded + encoded / BASE64_LINE as u64)
}

pub(crate) fn to_base64(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let text = some!(args[0].to_text(&bound.args[0]));
    let mut out = Vec::with_capacity(text.len().div_ceil(3) * 4);
    let mut encoded = [0; BASE64_LINE];
    for (index, line) in text.chunks(BASE64_LINE_BYTES).enumerate() {
        context.spend(line.len())?;
        if index > 0 {
            out.push(b'\n');
        }
        let line = Base64::encode(line, &mut encoded).expect("a line takes 76 characters");
        out.extend_from_slice(line.as_bytes());
    }
    Ok(Value::Bytes(out))
}

pub(crate) fn infer_from_base64(binding: &mut Binding<'_>) -> Inferred {
    let length = chars(&binding.args[0]);
    binding.nullable = true;
    binary(binding, length.div_ceil(4) * 3);
    Ok(())
}

/// NULL for an invalid character; blanks and line ends are skipped.
pub(crate) fn from_base64(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let text = some!(args[0].to_text(&bound.args[0]));
    let mut code: Vec<u8> = text
        .iter()
        .copied()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    if !code.len().is_multiple_of(4) {
        return Ok(Value::Null);
    }
    let padding = code.iter().rev().take_while(|byte| **byte == b'=').count();
    if padding > 2 {
        return Ok(Value::Null);
    }
    code.truncate(code.len() - padding);
    const {
        assert!(
            BYTES_PER_SPEND.is_multiple_of(4),
            "a piece ends with a group"
        )
    };
    let mut out = Vec::with_capacity(code.len() / 4 * 3 + 2);
    for piece in code.chunks_mut(BYTES_PER_SPEND) {
        context.spend(piece.len())?;
        // Bits behind the last byte are not looked at, as in MariaDB.
        let bytes = some!(Base64Unpadded::decode_in_place(piece).ok());
        out.extend_from_slice(bytes);
    }
    Ok(Value::Bytes(out))
}

pub(crate) fn infer_weights(binding: &mut Binding<'_>) -> Inferred {
    let arg = &binding.args[0];
    binding.texts = arg.rule.collation;
    let bytes = chars(arg) * 8;
    binding.nullable = true;
    binary(binding, bytes);
    Ok(())
}

pub(crate) fn weight_string(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    if !bound.args[0].kind.is_string() {
        return Ok(Value::Null);
    }
    let text = some!(bound.text_arg(args, 0));
    let mut out = Vec::new();
    // In one piece: a character's weights may depend on its neighbours.
    context.spend(text.len())?;
    bound.texts.append_weights(&text, &mut out);
    Ok(Value::Bytes(out))
}
