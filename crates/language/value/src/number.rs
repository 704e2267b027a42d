//! Numbers at the start of a text: `12abc` is 12, and the rest is reported.

/// A number at the start of a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prefix<N> {
    /// The number; 0 if there was none, the nearest bound on overflow.
    pub value: N,
    /// The text is only a number with blanks around it.
    pub whole: bool,
    /// No digit was found.
    pub empty: bool,
    /// The number is out of range and `value` is the bound.
    pub overflow: bool,
}

/// A 64-bit integer of either signedness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Integer {
    /// Below zero, or of a text with a sign.
    Signed(i64),
    /// Not below zero.
    Unsigned(u64),
}

/// Reads an integer: blanks, sign, digits.
pub fn parse_integer(text: &[u8]) -> Prefix<Integer> {
    let (negative, start) = sign_after_blanks(text);
    let rest = text.get(start..).unwrap_or(&[]);
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut overflow = false;
    let mut magnitude = 0u64;
    for digit in &rest[..digits] {
        let next = magnitude
            .checked_mul(10)
            .and_then(|m| m.checked_add(u64::from(digit - b'0')));
        if let Some(next) = next {
            magnitude = next;
        } else {
            overflow = true;
            magnitude = u64::MAX;
            break;
        }
    }
    let value = if negative {
        match 0i64.checked_sub_unsigned(magnitude) {
            Some(value) => Integer::Signed(value),
            None => {
                overflow = true;
                Integer::Signed(i64::MIN)
            }
        }
    } else {
        Integer::Unsigned(magnitude)
    };
    let whole = digits > 0 && rest[digits..].iter().all(u8::is_ascii_whitespace);
    Prefix {
        value,
        whole,
        empty: digits == 0,
        overflow,
    }
}

/// Reads a double: blanks, sign, digits with a point, exponent.
pub fn parse_double(text: &[u8]) -> Prefix<f64> {
    let (_, start) = sign_after_blanks(text);
    let rest = text.get(start..).unwrap_or(&[]);
    let digits = |from: usize| {
        rest.get(from..)
            .unwrap_or(&[])
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    };
    let integer = digits(0);
    let mut end = integer;
    let mut fraction = 0;
    if rest.get(integer) == Some(&b'.') {
        fraction = digits(integer + 1);
        end += 1 + fraction;
    }
    if integer + fraction == 0 {
        return Prefix {
            value: 0.0,
            whole: false,
            empty: true,
            overflow: false,
        };
    }
    if matches!(rest.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(rest.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    let signed = start - usize::from(start > 0 && matches!(text[start - 1], b'+' | b'-'));
    let number = str::from_utf8(&text[signed..start + end]).expect("ASCII digits");
    let value: f64 = number.parse().expect("the form was checked");
    let whole = rest[end..].iter().all(u8::is_ascii_whitespace);
    let overflow = value.is_infinite();
    Prefix {
        value: value.clamp(f64::MIN, f64::MAX),
        whole,
        empty: false,
        overflow,
    }
}

/// Whether a minus precedes the number, and where its digits begin.
fn sign_after_blanks(text: &[u8]) -> (bool, usize) {
    let blanks = text
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace())
        .count();
    match text.get(blanks) {
        Some(b'-') => (true, blanks + 1),
        Some(b'+') => (false, blanks + 1),
        _ => (false, blanks),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_stop_at_the_first_other_byte() {
        let parsed = parse_integer(b" -12abc");
        assert_eq!((parsed.value, parsed.whole), (Integer::Signed(-12), false));
        assert!(parse_integer(b"12 ").whole);
        assert!(parse_integer(b"abc").empty);
        assert_eq!(
            parse_integer(b"18446744073709551615").value,
            Integer::Unsigned(u64::MAX)
        );
        assert!(parse_integer(b"18446744073709551616").overflow);
        assert_eq!(
            parse_integer(b"-9223372036854775809").value,
            Integer::Signed(i64::MIN)
        );
    }

    #[test]
    fn doubles_stop_at_the_first_other_byte() {
        for (text, value, whole) in [
            (&b"1.5e3"[..], 1500.0, true),
            (b"-.5", -0.5, true),
            (b"1e", 1.0, false),
            (b"1e+x", 1.0, false),
            (b"5.", 5.0, true),
            (b"+7 ", 7.0, true),
            (b"x", 0.0, false),
            (b"", 0.0, false),
            (b".", 0.0, false),
        ] {
            let parsed = parse_double(text);
            assert_eq!((parsed.value, parsed.whole), (value, whole), "{text:?}");
        }
        assert_eq!(parse_double(b"-1e999").value, f64::MIN);
    }
}
