//! Values as text, appended without allocation: for the text protocol and CAST AS CHAR.

use crate::decimal::Rounding;
use crate::digits::{append_f64, append_fixed, append_int, append_scientific, append_uint};
use crate::temporal::{append_date, append_datetime, append_time};
use crate::{ColumnType, Decimal, TypeKind, ValueRef};

impl ValueRef<'_> {
    /// Appends the value of a column or expression of that type as text; nothing for NULL. ENUM and
    /// SET are shown by name, BIT as its bytes, decimals with the type's scale.
    pub fn append_text(self, column: &ColumnType, out: &mut Vec<u8>) {
        match self {
            Self::Null => {}
            Self::Bytes(bytes) => out.extend_from_slice(bytes),
            Self::Int(number) if column.kind.is_integer() || column.kind == TypeKind::Null => {
                append_int(number, out);
            }
            Self::Int(number) => append_number_of(number.cast_unsigned(), true, column, out),
            Self::UInt(number) if column.kind.is_integer() && !column.zerofill => {
                append_uint(number, out);
            }
            Self::UInt(number) => append_number_of(number, false, column, out),
            Self::Float(number) => append_float(f64::from(number), true, column, out),
            Self::Double(number) => append_float(number, false, column, out),
            Self::Decimal(number) => append_decimal(&number.to_decimal(), column, out),
            Self::Date(date) => append_date(date, out),
            Self::Time(time) => append_time(time, column.decimals, out),
            Self::DateTime(time) if column.kind == TypeKind::Date => append_date(time.date(), out),
            Self::DateTime(time) => append_datetime(time, column.decimals, out),
        }
    }
}

/// An integer in a type whose text is not just its digits.
fn append_number_of(number: u64, signed: bool, column: &ColumnType, out: &mut Vec<u8>) {
    match column.kind {
        TypeKind::Bit => {
            let bytes = stdx::to_usize(column.length.div_ceil(8).min(8));
            out.extend_from_slice(&number.to_be_bytes()[8 - bytes..]);
        }
        TypeKind::Enum => out.extend_from_slice(member(column, number)),
        TypeKind::Set => append_set(column, number, out),
        _ if signed => append_int(number.cast_signed(), out),
        _ => {
            let start = out.len();
            append_uint(number, out);
            if column.zerofill {
                pad_with_zeros(start, column, out);
            }
        }
    }
}

/// The name of an ENUM's index; empty for 0 and for numbers beyond the last.
pub fn member(column: &ColumnType, index: u64) -> &[u8] {
    let position = usize::try_from(index)
        .ok()
        .and_then(|index| index.checked_sub(1));
    position
        .and_then(|position| column.members().get(position))
        .map_or(&[], |name| name)
}

fn append_set(column: &ColumnType, mask: u64, out: &mut Vec<u8>) {
    let mut first = true;
    for (bit, name) in column.members().iter().take(64).enumerate() {
        if mask >> bit & 1 == 1 {
            if !first {
                out.push(b',');
            }
            first = false;
            out.extend_from_slice(name);
        }
    }
}

fn append_float(number: f64, single: bool, column: &ColumnType, out: &mut Vec<u8>) {
    let start = out.len();
    let floating = matches!(column.kind, TypeKind::Float | TypeKind::Double);
    if floating && column.decimals < ColumnType::NOT_FIXED {
        append_fixed(number, column.decimals, out);
    } else if single && column.kind == TypeKind::Float {
        append_scientific(number, Some(5), out);
    } else {
        append_f64(number, out);
    }
    if column.zerofill {
        pad_with_zeros(start, column, out);
    }
}

fn append_decimal(number: &Decimal, column: &ColumnType, out: &mut Vec<u8>) {
    let start = out.len();
    let has_scale = column.kind == TypeKind::Decimal && !column.has_own_scale();
    if has_scale && number.scale() != column.decimals {
        let rounded = number.round(i32::from(column.decimals), Rounding::HalfUp);
        rounded.unwrap_or(*number).append_text(out);
    } else {
        number.append_text(out);
    }
    if column.zerofill {
        pad_with_zeros(start, column, out);
    }
}

/// Inserts zeros before what was appended from `start` on, up to the display width.
fn pad_with_zeros(start: usize, column: &ColumnType, out: &mut Vec<u8>) {
    let point = u32::from(column.kind == TypeKind::Decimal && column.decimals > 0);
    let width = stdx::to_usize(column.length + point);
    let missing = width.saturating_sub(out.len() - start).min(255);
    out.splice(start..start, std::iter::repeat_n(b'0', missing));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(append: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        append(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn types_decide_the_form() {
        let text =
            |value: ValueRef<'_>, column: &ColumnType| shown(|out| value.append_text(column, out));
        let mut padded = ColumnType::unsigned(TypeKind::Int);
        padded.zerofill = true;
        assert_eq!(text(ValueRef::UInt(42), &padded), "0000000042");
        assert_eq!(
            text(ValueRef::UInt(0), &ColumnType::new(TypeKind::Year)),
            "0000"
        );
        let third: Decimal = "0.333333333".parse().unwrap();
        let column = ColumnType::decimal(5, 4);
        assert_eq!(text(ValueRef::Decimal((&third).into()), &column), "0.3333");
        let any = ColumnType::any_decimal();
        assert_eq!(
            text(ValueRef::Decimal((&third).into()), &any),
            "0.333333333"
        );
        let names = || vec![Box::from(&b"x"[..]), Box::from(&b"y"[..])];
        let set = ColumnType::named(TypeKind::Set, names(), crate::CollationId::UTF8MB4_BIN);
        assert_eq!(text(ValueRef::UInt(3), &set), "x,y");
        let of_enum = ColumnType::named(TypeKind::Enum, names(), crate::CollationId::UTF8MB4_BIN);
        assert_eq!(text(ValueRef::UInt(2), &of_enum), "y");
        assert_eq!(text(ValueRef::UInt(0), &of_enum), "");
        let mut fixed = ColumnType::new(TypeKind::Double);
        fixed.decimals = 2;
        assert_eq!(text(ValueRef::Double(1.005), &fixed), "1.00");
    }
}
