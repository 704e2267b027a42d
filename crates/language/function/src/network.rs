//! Functions of network addresses, and the password hash of `mysql_native_password`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use sha1::{Digest, Sha1};
use value::{SqlCondition, TypeKind, Value, ValueRef};

use crate::bind::{Binding, Bound};
use crate::context::Context;
use crate::infer::{Inferred, connection_text, of_length};
use crate::null::some;

type Evaluated = Result<Value, SqlCondition>;

/// Characters of the longest address.
const ADDRESS_CHARS: u64 = 39;

pub(crate) fn infer_number(binding: &mut Binding<'_>) -> Inferred {
    binding.nullable = true;
    binding.column = of_length(TypeKind::BigInt, 21, true);
    Ok(())
}

pub(crate) fn infer_address(binding: &mut Binding<'_>) -> Inferred {
    connection_text(binding, ADDRESS_CHARS)?;
    binding.nullable = true;
    Ok(())
}

/// `10.0.5.9` as a number; missing parts are in the middle, as in `127.1`.
pub(crate) fn inet_aton(bound: &Bound, args: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    let text = some!(args[0].to_text(&bound.args[0]));
    let parts: Vec<&[u8]> = text.split(|byte| *byte == b'.').collect();
    if parts.len() > 4 {
        return Ok(Value::Null);
    }
    let mut number = 0u64;
    for (index, part) in parts.iter().enumerate() {
        let digits = str::from_utf8(part)
            .ok()
            .filter(|part| part.bytes().all(|b| b.is_ascii_digit()));
        let octet: u64 = some!(digits.and_then(|part| part.parse::<u8>().ok())).into();
        if index > 0 && index + 1 == parts.len() {
            number <<= 8 * (4 - parts.len());
        }
        number = number << 8 | octet;
    }
    Ok(Value::UInt(number))
}

pub(crate) fn inet_ntoa(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let number = some!(args[0].to_integer(context.warnings));
    let address = u32::try_from(number.bits()).map(Ipv4Addr::from);
    Ok(address.map_or(Value::Null, |address| Value::bytes(address.to_string())))
}

pub(crate) fn infer_bytes(binding: &mut Binding<'_>) -> Inferred {
    binding.nullable = true;
    binding.rule = value::collation::TextRule {
        collation: value::CollationId::BINARY,
        coercibility: value::collation::Coercibility::Coercible,
        ascii_only: false,
    };
    binding.column = crate::infer::text_type(16, value::CollationId::BINARY);
    Ok(())
}

fn address(bound: &Bound, args: &[ValueRef<'_>]) -> Option<IpAddr> {
    let text = args[0].to_text(&bound.args[0])?;
    str::from_utf8(&text).ok()?.parse().ok()
}

/// The four or sixteen bytes of an address.
pub(crate) fn inet6_aton(bound: &Bound, args: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    Ok(match some!(address(bound, args)) {
        IpAddr::V4(address) => Value::bytes(address.octets()),
        IpAddr::V6(address) => Value::bytes(address.octets()),
    })
}

pub(crate) fn inet6_ntoa(bound: &Bound, args: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    let bytes = some!(args[0].to_text(&bound.args[0]));
    let text = match <[u8; 4]>::try_from(&bytes[..]) {
        Ok(octets) => Ipv4Addr::from(octets).to_string(),
        Err(_) => match <[u8; 16]>::try_from(&bytes[..]) {
            Ok(octets) => Ipv6Addr::from(octets).to_string(),
            Err(_) => return Ok(Value::Null),
        },
    };
    Ok(Value::bytes(text))
}

pub(crate) fn is_ipv4(bound: &Bound, args: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    let found = matches!(address(bound, args), Some(IpAddr::V4(_)));
    Ok(Value::Int(i64::from(found)))
}

pub(crate) fn is_ipv6(bound: &Bound, args: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    let found = matches!(address(bound, args), Some(IpAddr::V6(_)));
    Ok(Value::Int(i64::from(found)))
}

pub(crate) fn infer_password(binding: &mut Binding<'_>) -> Inferred {
    connection_text(binding, 41)
}

/// `*` and the SHA-1 of the SHA-1 in upper case hexadecimal digits; empty for an empty password.
pub(crate) fn password(bound: &Bound, args: &[ValueRef<'_>], _: &mut Context<'_>) -> Evaluated {
    let text = args[0].to_text(&bound.args[0]).unwrap_or_default();
    if text.is_empty() {
        return Ok(Value::bytes(""));
    }
    let digest = Sha1::digest(Sha1::digest(&text[..]));
    let hex: String = digest.iter().map(|byte| format!("{byte:02X}")).collect();
    Ok(Value::bytes(format!("*{hex}")))
}
