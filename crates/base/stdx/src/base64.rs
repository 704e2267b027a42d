//! The digits of base64 (RFC 4648), a group of three bytes and four digits at a time. Padding, line
//! ends and lengths are the caller's.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// No digit.
const NONE: u8 = u8::MAX;

/// The value of each character.
static VALUES: [u8; 256] = values();

const fn values() -> [u8; 256] {
    let mut values = [NONE; 256];
    let mut value = 0_u8;
    while value < 64 {
        values[DIGITS[value as usize] as usize] = value;
        value += 1;
    }
    values
}

/// The digits of up to three bytes; missing bytes count as 0. Of n bytes the first n + 1 digits
/// count.
pub fn digits(bytes: &[u8]) -> [u8; 4] {
    let byte = |place: usize| u32::from(bytes.get(place).copied().unwrap_or(0));
    let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
    [18, 12, 6, 0].map(|shift| DIGITS[(bits >> shift & 63) as usize])
}

/// The bytes of up to four digits; missing digits count as 0. Of n digits the first n - 1 bytes
/// count, and the others hold the bits that are left. `None` if a character is no digit.
pub fn bytes(digits: &[u8]) -> Option<[u8; 3]> {
    let mut bits = 0_u32;
    for place in 0..4 {
        let value = match digits.get(place) {
            None => 0,
            Some(digit) => VALUES[usize::from(*digit)],
        };
        if value == NONE {
            return None;
        }
        bits = bits << 6 | u32::from(value);
    }
    let [_, first, second, third] = bits.to_be_bytes();
    Some([first, second, third])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_all_lengths_come_back() {
        for bytes_of in [&b"Man"[..], b"Ma", b"M", b"\xFF\x00\x80", b""] {
            let text = digits(bytes_of);
            let count = bytes_of.len() + usize::from(!bytes_of.is_empty());
            let again = bytes(&text[..count]).expect("digits");
            assert_eq!(&again[..bytes_of.len()], bytes_of);
            assert!(again[bytes_of.len()..].iter().all(|byte| *byte == 0));
        }
        assert_eq!(&digits(b"Man"), b"TWFu");
        assert_eq!(&digits(b"\xFB\xEF\xBF"), b"+++/");
    }

    #[test]
    fn other_characters_are_no_digits() {
        for character in [b'=', b'-', b'_', b' ', 0, 0xFF] {
            assert_eq!(bytes(&[b'A', character]), None);
        }
        assert_eq!(bytes(b"//8"), Some([0xFF, 0xFF, 0]));
        assert_eq!(bytes(b"//9"), Some([0xFF, 0xFF, 0x40]));
    }
}
