//! Checksums and digests of text.

use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};
use value::{Trouble, TypeKind, Value, ValueRef};

use crate::bind::{Binding, Bound};
use crate::context::Context;
use crate::infer::{Inferred, connection_text, of_length};
use crate::strings::some;

type Evaluated = Result<Value, Trouble>;

fn hex_lower(digest: &[u8]) -> Evaluated {
    let text: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Value::Bytes(text.into_bytes()))
}

pub(crate) fn infer_crc32(binding: &mut Binding<'_>) -> Inferred {
    binding.column = of_length(TypeKind::Int, 10, true);
    Ok(())
}

pub(crate) fn crc32(bound: &Bound, args: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    let text = some!(args[0].to_text(&bound.args[0]));
    Ok(Value::UInt(u64::from(crc32fast::hash(&text))))
}

pub(crate) fn infer_md5(binding: &mut Binding<'_>) -> Inferred {
    connection_text(binding, 32)
}

pub(crate) fn md5(bound: &Bound, args: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    hex_lower(&Md5::digest(&some!(args[0].to_text(&bound.args[0]))[..]))
}

pub(crate) fn infer_sha1(binding: &mut Binding<'_>) -> Inferred {
    connection_text(binding, 40)
}

pub(crate) fn sha1(bound: &Bound, args: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    hex_lower(&Sha1::digest(&some!(args[0].to_text(&bound.args[0]))[..]))
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

/// A constant length that no digest has: NULL without a character set.
fn bits_of_no_digest(binding: &Binding<'_>) -> bool {
    let bits = binding.constant_integer(1);
    bits.is_some_and(|bits| !matches!(bits, 0 | 224 | 256 | 384 | 512))
}

pub(crate) fn sha2(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let text = some!(args[0].to_text(&bound.args[0]));
    match some!(args[1].to_i64(context.warnings)) {
        0 | 256 => hex_lower(&Sha256::digest(&text[..])),
        224 => hex_lower(&Sha224::digest(&text[..])),
        384 => hex_lower(&Sha384::digest(&text[..])),
        512 => hex_lower(&Sha512::digest(&text[..])),
        _ => Ok(Value::Null),
    }
}
