//! Values as text, appended without allocation: for the text protocol and CAST AS CHAR.

use std::io::Write as _;

use crate::decimal::Rounding;
use crate::temporal::{append_date, append_datetime, append_time};
use crate::{ColumnType, Decimal, TypeKind, ValueRef};

/// Appends an integer.
#[inline]
pub fn append_int(number: i64, out: &mut Vec<u8>) {
    if number < 0 {
        out.push(b'-');
    }
    append_uint(number.unsigned_abs(), out);
}

/// Appends an unsigned integer.
#[inline]
pub fn append_uint(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    while number >= 100 {
        let pair = usize::from(stdx::low_u8(number % 100)) * 2;
        number /= 100;
        at -= 2;
        digits[at] = PAIRS[pair];
        digits[at + 1] = PAIRS[pair + 1];
    }
    let pair = usize::from(stdx::low_u8(number)) * 2;
    at -= 1;
    digits[at] = PAIRS[pair + 1];
    if number >= 10 {
        at -= 1;
        digits[at] = PAIRS[pair];
    }
    out.extend_from_slice(&digits[at..]);
}

/// The digits of 00 to 99.
static PAIRS: [u8; 200] = {
    let mut pairs = [0; 200];
    let mut number = 0u8;
    while number < 100 {
        pairs[number as usize * 2] = b'0' + number / 10;
        pairs[number as usize * 2 + 1] = b'0' + number % 10;
        number += 1;
    }
    pairs
};

/// Appends a double: the fewest digits that read back, plain from 1e-15 to below 1e15.
pub fn append_f64(number: f64, out: &mut Vec<u8>) {
    append_scientific(number, None, out);
}

/// Appends a float: six significant digits, as MySQL shows FLOAT.
pub fn append_f32(number: f32, out: &mut Vec<u8>) {
    append_scientific(f64::from(number), Some(5), out);
}

/// Appends a number with exactly `decimals` digits after the point: the fewest digits that read
/// back, then zeros. If those are too many, the number is rounded.
pub fn append_fixed(number: f64, decimals: u8, out: &mut Vec<u8>) {
    let decimals = usize::from(decimals);
    let start = out.len();
    write!(out, "{number}").expect("a Vec takes all bytes");
    let point = out[start..].iter().position(|byte| *byte == b'.');
    let shown = point.map_or(0, |point| out.len() - start - point - 1);
    if decimals < shown {
        out.truncate(start);
        write!(out, "{number:.decimals$}").expect("a Vec takes all bytes");
    } else {
        if shown == 0 && decimals > 0 {
            out.push(b'.');
        }
        out.extend(std::iter::repeat_n(b'0', decimals - shown));
    }
    // Zero never has a sign.
    let is_zero = out[start..].iter().all(|byte| b"-0.".contains(byte));
    if is_zero && out.get(start) == Some(&b'-') {
        out.remove(start);
    }
}

fn append_scientific(number: f64, precision: Option<usize>, out: &mut Vec<u8>) {
    if number == 0.0 {
        out.push(b'0');
        return;
    }
    let mut buffer = Scratch {
        bytes: [0; 32],
        used: 0,
    };
    match precision {
        Some(digits) => write!(buffer, "{number:.digits$e}"),
        None => write!(buffer, "{number:e}"),
    }
    .expect("a double in scientific form has at most 25 bytes");
    let text = &buffer.bytes[..buffer.used];
    let Some(mark) = text.iter().position(|byte| *byte == b'e') else {
        out.extend_from_slice(text);
        return;
    };
    let (mantissa, exponent) = text.split_at(mark);
    let exponent = crate::number::parse_integer(&exponent[1..]);
    let exponent = match exponent.value {
        crate::number::Integer::Signed(number) => number,
        crate::number::Integer::Unsigned(number) => number.cast_signed(),
    };
    let mantissa = match mantissa {
        [b'-', rest @ ..] => {
            out.push(b'-');
            rest
        }
        all => all,
    };
    let mut digits = [0u8; 20];
    let mut count = 0;
    for digit in mantissa.iter().filter(|byte| **byte != b'.') {
        digits[count] = *digit;
        count += 1;
    }
    while count > 1 && digits[count - 1] == b'0' {
        count -= 1;
    }
    append_digits(&digits[..count], exponent + 1, out);
}

/// Appends digits with the point after the first `point` of them (before all if negative).
fn append_digits(digits: &[u8], point: i64, out: &mut Vec<u8>) {
    let count = i64::try_from(digits.len()).expect("at most 17");
    if point > 0 && point < count {
        let (whole, fraction) = digits.split_at(usize::try_from(point).expect("positive"));
        out.extend_from_slice(whole);
        out.push(b'.');
        out.extend_from_slice(fraction);
    } else if (count..=15).contains(&point) {
        out.extend_from_slice(digits);
        out.extend((count..point).map(|_| b'0'));
    } else if (-14..=0).contains(&point) {
        out.extend_from_slice(b"0.");
        out.extend((point..0).map(|_| b'0'));
        out.extend_from_slice(digits);
    } else {
        out.push(digits[0]);
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        out.push(b'e');
        append_int(point - 1, out);
    }
}

/// A buffer on the stack for one number.
struct Scratch {
    bytes: [u8; 32],
    used: usize,
}

impl std::io::Write for Scratch {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        let mut room = &mut self.bytes[self.used..];
        let written = room.write(text)?;
        self.used += written;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

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
    fn integers() {
        for number in [0, 7, 10, 99, 100, 101, 12345, -1, i64::MIN, i64::MAX] {
            assert_eq!(shown(|out| append_int(number, out)), number.to_string());
        }
        assert_eq!(
            shown(|out| append_uint(u64::MAX, out)),
            u64::MAX.to_string()
        );
    }

    #[test]
    fn doubles_are_shown_as_mariadb_shows_them() {
        for (number, text) in [
            (1e14, "100000000000000"),
            (1e15, "1e15"),
            (1e-15, "0.000000000000001"),
            (1e-16, "1e-16"),
            (1.234_567_890_123_456_8e17, "1.2345678901234568e17"),
            (1_234_567_890_123_456.8, "1234567890123456.8"),
            (1_234_567_890_123_456.0, "1.234567890123456e15"),
            (-1.5e-15, "-0.0000000000000015"),
            (0.1, "0.1"),
            (0.0, "0"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e308"),
        ] {
            assert_eq!(shown(|out| append_f64(number, out)), text);
        }
        for (number, text) in [
            (1_234_567.0, "1234570"),
            (16_777_216.0, "16777200"),
            (0.1, "0.1"),
            (3.402_823_4e38, "3.40282e38"),
            (1e15, "1e15"),
        ] {
            assert_eq!(shown(|out| append_f32(number, out)), text);
        }
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
