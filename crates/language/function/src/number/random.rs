//! RAND, UUID and RANDOM_BYTES. Without a seed the context provides the bits; with one, it is
//! MySQL's own sequence.

use value::collation::TextRule;
use value::{CollationId, SqlCondition, Value, ValueRef};

use crate::bind::{Binding, Bound};
use crate::context::Context;
use crate::infer::{Inferred, connection_text, double, text_type};
use crate::null::some;
use crate::random_state::RandomState;

pub(crate) fn infer(binding: &mut Binding<'_>) -> Inferred {
    binding.nullable = false;
    double(binding)
}

pub(crate) fn rand(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let Some(seed) = args.first() else {
        if let Some(state) = &mut context.session.random_state {
            return Ok(Value::Double(state.next_number()));
        }
        let bits = (context.random)() >> 11;
        return Ok(Value::Double(
            stdx::u64_to_f64(bits) / stdx::u64_to_f64(1 << 53),
        ));
    };
    let seed = seed.to_i64(context.warnings).unwrap_or(0).cast_unsigned();
    let call = std::ptr::from_ref(bound).addr();
    let states = &mut context.seeds.states;
    let known = states
        .iter()
        .position(|(of, with, _)| *of == call && *with == seed);
    let index = known.unwrap_or_else(|| {
        states.retain(|(of, _, _)| *of != call);
        states.push((call, seed, RandomState::new(seed)));
        states.len() - 1
    });
    Ok(Value::Double(states[index].2.next_number()))
}

pub(crate) fn infer_uuid(binding: &mut Binding<'_>) -> Inferred {
    binding.nullable = false;
    connection_text(binding, 36)
}

pub(crate) fn infer_guid(binding: &mut Binding<'_>) -> Inferred {
    binding.nullable = false;
    connection_text(binding, 32)
}

/// The most bytes of RANDOM_BYTES.
const RANDOM_BYTES_MAX: i64 = 1024;

/// RANDOM_BYTES(count): binary; a constant count determines the length.
pub(crate) fn infer_bytes(binding: &mut Binding<'_>) -> Inferred {
    binding.nullable = true;
    let count = binding.constant_integer(0).unwrap_or(RANDOM_BYTES_MAX);
    let count = count.clamp(0, RANDOM_BYTES_MAX).unsigned_abs();
    binding.rule = TextRule::column(CollationId::BINARY);
    binding.column = text_type(count, CollationId::BINARY);
    Ok(())
}

type Evaluated = Result<Value, SqlCondition>;

/// NULL for a count that is negative or too large.
pub(crate) fn random_bytes(
    _: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let count = some!(args[0].to_i64(context.warnings));
    if !(0..=RANDOM_BYTES_MAX).contains(&count) {
        return Ok(Value::Null);
    }
    let count = usize::try_from(count).expect("it is at most 1024");
    let mut bytes = Vec::with_capacity(count + size_of::<u64>());
    while bytes.len() < count {
        bytes.extend((context.random)().to_le_bytes());
    }
    bytes.truncate(count);
    Ok(Value::Bytes(bytes))
}

/// A random identifier of 32 digits.
pub(crate) fn guid(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let Value::Bytes(mut text) = uuid(bound, args, context)? else {
        return Ok(Value::Null);
    };
    text.retain(|byte| *byte != b'-');
    Ok(Value::Bytes(text))
}

/// A random (version 4) identifier.
pub(crate) fn uuid(_: &Bound, _: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let high = ((context.random)() & !0xF000) | 0x4000;
    let low = ((context.random)() & !(3 << 62)) | (1 << 63);
    let text = format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xFFFF,
        high & 0xFFFF,
        low >> 48,
        low & 0xFFFF_FFFF_FFFF
    );
    Ok(Value::Bytes(text.into_bytes()))
}
