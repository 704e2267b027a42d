//! Numbers as text, appended without allocation.

use std::io::Write as _;

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

pub(crate) fn append_scientific(number: f64, precision: Option<usize>, out: &mut Vec<u8>) {
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
}
