//! Checksums and digests of text.

use std::borrow::Cow;

use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};
use value::collation::BYTES_PER_SPEND;
use value::{SqlCondition, TypeKind, Value, ValueRef};

use crate::bind::{Binding, Bound};
use crate::context::Context;
use crate::infer::{Inferred, connection_text, of_length};
use crate::null::some;

type Evaluated = Result<Value, SqlCondition>;

fn hex_lower(digest: &[u8]) -> Evaluated {
    let text: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Value::Bytes(text.into_bytes()))
}

pub(crate) fn infer_crc32(binding: &mut Binding<'_>) -> Inferred {
    binding.column = of_length(TypeKind::Int, 10, true);
    Ok(())
}

/// Bytes that are digested between two calls of the meter.
const PIECE_BYTES: usize = BYTES_PER_SPEND;

/// The digest of a text.
fn digest<D: Digest>(text: &[u8], context: &Context<'_>) -> Evaluated {
    let mut digest = D::new();
    for piece in text.chunks(PIECE_BYTES) {
        context.spend(piece.len())?;
        digest.update(piece);
    }
    hex_lower(&digest.finalize())
}

/// CRC32(text), CRC32(checksum of the preceding text, text).
pub(crate) fn crc32(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let (start, text) = some!(checked(bound, args, context));
    let mut hasher = crc32fast::Hasher::new_with_initial(start);
    for piece in text.chunks(PIECE_BYTES) {
        context.spend(piece.len())?;
        hasher.update(piece);
    }
    Ok(Value::UInt(u64::from(hasher.finalize())))
}

/// The same with Castagnoli's polynomial.
pub(crate) fn crc32c(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let (mut sum, text) = some!(checked(bound, args, context));
    for piece in text.chunks(PIECE_BYTES) {
        context.spend(piece.len())?;
        sum = crc32c::crc32c_append(sum, piece);
    }
    Ok(Value::UInt(u64::from(sum)))
}

/// The start value of a checksum and its text, or `None` if one is NULL.
fn checked<'v>(
    bound: &Bound,
    args: &[ValueRef<'v>],
    context: &mut Context<'_>,
) -> Option<(u32, Cow<'v, [u8]>)> {
    let last = args.len() - 1;
    let start = match last {
        0 => 0,
        _ => stdx::low_u32(args[0].to_i64(context.warnings)?.cast_unsigned()),
    };
    Some((start, args[last].to_text(&bound.args[last])?))
}

pub(crate) fn infer_md5(binding: &mut Binding<'_>) -> Inferred {
    connection_text(binding, 32)
}

pub(crate) fn md5(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    digest::<Md5>(&some!(args[0].to_text(&bound.args[0])), context)
}

pub(crate) fn infer_sha1(binding: &mut Binding<'_>) -> Inferred {
    connection_text(binding, 40)
}

pub(crate) fn sha1(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    digest::<Sha1>(&some!(args[0].to_text(&bound.args[0])), context)
}

pub(crate) fn infer_sha2(binding: &mut Binding<'_>) -> Inferred {
    let bits = match binding.constant_integer(1) {
        Some(bits @ (224 | 256 | 384 | 512)) => bits.unsigned_abs(),
        Some(0) => 256,
        _ => 512,
    };
    binding.nullable = true;
    connection_text(binding, bits / 4)?;
    if bits_of_no_digest(binding) {
        binding.rule.collation = value::CollationId::BINARY;
    }
    Ok(())
}

/// A constant length that no digest has: the result is NULL without a character set.
fn bits_of_no_digest(binding: &Binding<'_>) -> bool {
    let bits = binding.constant_integer(1);
    bits.is_some_and(|bits| !matches!(bits, 0 | 224 | 256 | 384 | 512))
}

pub(crate) fn sha2(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let text = some!(args[0].to_text(&bound.args[0]));
    match some!(args[1].to_i64(context.warnings)) {
        0 | 256 => digest::<Sha256>(&text, context),
        224 => digest::<Sha224>(&text, context),
        384 => digest::<Sha384>(&text, context),
        512 => digest::<Sha512>(&text, context),
        _ => Ok(Value::Null),
    }
}
