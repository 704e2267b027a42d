//! CAST and CONVERT, and conversions between types in expressions.

use errcode::{ER_INVALID_CHARACTER_STRING, ER_WARN_DATA_OUT_OF_RANGE};
use value::collation::{Coercibility, TextRule};
use value::convert::truncated;
use value::decimal::Rounding;
use value::number::Integer;
use value::{
    Charset, CollationId, ColumnType, DateTime, Decimal, SqlCondition, TypeKind, Value, ValueRef,
};

use crate::bind::{Binding, Bound, resolve, text_in};
use crate::context::Context;
use crate::infer::Inferred;
use crate::number::arithmetic::of_integer;

type Evaluated = Result<Value, SqlCondition>;

/// The target is already in the binding.
pub(crate) fn infer(binding: &mut Binding<'_>) -> Inferred {
    let arg = &binding.args[0];
    if binding.column.kind.is_bytes() {
        let collation = binding.column.collation;
        binding.rule = TextRule {
            collation,
            coercibility: Coercibility::Implicit,
            ascii_only: arg.rule.ascii_only,
        };
        binding.nullable = arg.nullable || binding.column.charset() == Charset::Utf8mb4;
    } else {
        // Invalid dates become NULL.
        binding.nullable |= binding.column.kind.is_temporal() && !arg.column.kind.is_temporal();
    }
    Ok(())
}

/// `BINARY expr`
pub(crate) fn infer_binary(binding: &mut Binding<'_>) -> Inferred {
    let arg = &binding.args[0];
    let chars = crate::infer::text_chars(arg);
    let bytes = u64::from(chars) * arg.column.collation.char_bytes_max() as u64;
    binding.rule = TextRule {
        collation: CollationId::BINARY,
        coercibility: Coercibility::Implicit,
        ascii_only: arg.rule.ascii_only,
    };
    binding.column = crate::infer::text_type(bytes, CollationId::BINARY);
    Ok(())
}

pub(crate) fn eval(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    convert(args[0], &bound.args[0], &bound.column, context)
}

/// Converts a value of one type to another as CAST does.
pub(crate) fn convert(
    value: ValueRef<'_>,
    from: &ColumnType,
    to: &ColumnType,
    context: &mut Context<'_>,
) -> Evaluated {
    if value.is_null() {
        return Ok(Value::Null);
    }
    let (text, resolved);
    let mut value = value;
    if matches!(from.kind, TypeKind::Enum | TypeKind::Set) && !to.kind.is_number() {
        text = value.to_text(from).unwrap_or_default();
        value = ValueRef::Bytes(&text);
    } else if to.kind.is_temporal() && matches!(from.kind, TypeKind::Year | TypeKind::Bit) {
        resolved = resolve(value, from);
        value = resolved.as_ref();
    }
    match to.kind {
        kind if kind.is_integer() || kind == TypeKind::Year => Ok(to_integer(value, to, context)),
        TypeKind::Double => Ok(value
            .to_f64(context.warnings)
            .map_or(Value::Null, Value::Double)),
        TypeKind::Float => Ok(value
            .to_f64(context.warnings)
            .map_or(Value::Null, |number| Value::Float(stdx::f64_to_f32(number)))),
        TypeKind::Decimal => Ok(to_decimal(value, to, context)),
        TypeKind::Date => {
            let date = checked_datetime(value, context);
            Ok(date.map_or(Value::Null, |time| Value::Date(time.date())))
        }
        TypeKind::DateTime | TypeKind::Timestamp => {
            let time = checked_datetime(value, context);
            Ok(time.map_or(Value::Null, |time| {
                Value::DateTime(time.truncated(to.decimals))
            }))
        }
        TypeKind::Time => Ok(to_time(value, to.decimals, context)),
        _ => to_text(value, from, to, context),
    }
}

/// A date with time that sql_mode allows.
fn checked_datetime(value: ValueRef<'_>, context: &mut Context<'_>) -> Option<DateTime> {
    let time = value.to_datetime(context.now.date(), context.warnings)?;
    if time.date().check(context.dates) {
        return Some(time);
    }
    let shown = match value {
        ValueRef::Bytes(text) => text.to_vec(),
        _ => value
            .to_text(&ColumnType::new(TypeKind::Null))?
            .into_owned(),
    };
    context.warnings.warn(truncated("datetime", &shown));
    None
}

fn to_integer(value: ValueRef<'_>, to: &ColumnType, context: &mut Context<'_>) -> Value {
    let Some(number) = value.to_integer(context.warnings) else {
        return Value::Null;
    };
    if to.unsigned {
        let inexact = matches!(
            value,
            ValueRef::Decimal(_) | ValueRef::Double(_) | ValueRef::Time(_)
        );
        if matches!(number, Integer::Signed(..0)) && inexact {
            let text = value
                .to_text(&ColumnType::new(TypeKind::Null))
                .unwrap_or_default();
            context.warnings.warn(truncated("DECIMAL", &text));
            return Value::UInt(0);
        }
        return Value::UInt(number.bits());
    }
    match (number, value) {
        (Integer::Unsigned(large), ValueRef::Double(_) | ValueRef::Decimal(_)) => {
            Value::Int(i64::try_from(large).unwrap_or(i64::MAX))
        }
        (Integer::Unsigned(large), _) => Value::Int(large.cast_signed()),
        (signed, _) => of_integer(signed),
    }
}

fn to_decimal(value: ValueRef<'_>, to: &ColumnType, context: &mut Context<'_>) -> Value {
    let Some(number) = value.to_decimal(context.warnings) else {
        return Value::Null;
    };
    let precision = u8::try_from(to.length).unwrap_or(Decimal::PRECISION_MAX);
    let rounded = number
        .round(i32::from(to.decimals), Rounding::HalfUp)
        .unwrap_or(number);
    if rounded.integer_digits() <= usize::from(precision - to.decimals) {
        return Value::Decimal(rounded);
    }
    context
        .warnings
        .warn(SqlCondition::new(ER_WARN_DATA_OUT_OF_RANGE, &[&"", &1]));
    let bound = Decimal::greatest(precision, to.decimals);
    Value::Decimal(if number.is_negative() {
        bound.negated()
    } else {
        bound
    })
}

fn to_time(value: ValueRef<'_>, fsp: u8, context: &mut Context<'_>) -> Value {
    let time = value.to_time(context.warnings);
    time.map_or(Value::Null, |time| Value::Time(time.truncated(fsp)))
}

fn to_text(
    value: ValueRef<'_>,
    from: &ColumnType,
    to: &ColumnType,
    context: &mut Context<'_>,
) -> Evaluated {
    let charset = to.charset();
    let Some(text) = text_in(value, from, charset) else {
        return Ok(Value::Null);
    };
    let length = stdx::to_usize(to.length);
    let is_text = !matches!(
        to.kind,
        TypeKind::LongText | TypeKind::LongBlob | TypeKind::Null
    );
    let kept = if is_text {
        charset.prefix(&text, length)
    } else {
        &text
    };
    if kept.len() < text.len() {
        let kind = if charset == Charset::Binary {
            format!("BINARY({length})")
        } else {
            format!("CHAR({length})")
        };
        context.warnings.warn(truncated(&kind, &text));
    }
    let mut kept = kept.to_vec();
    if to.kind == TypeKind::Binary {
        kept.resize(length, 0);
    }
    if from.charset() == Charset::Binary && !charset.is_valid(&kept) {
        let bad = charset.valid_prefix(&kept);
        let shown: String = kept[bad..]
            .iter()
            .take(6)
            .map(|b| format!("\\x{b:02X}"))
            .collect();
        let name = charset.name();
        context.warnings.warn(SqlCondition::new(
            ER_INVALID_CHARACTER_STRING,
            &[&name, &shown],
        ));
        let mut replaced = Vec::with_capacity(kept.len());
        charset.append_converted(Charset::Binary, &kept, &mut replaced);
        kept = replaced;
    }
    Ok(Value::Bytes(kept))
}
