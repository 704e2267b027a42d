//! Texts as strings of JSON, whatever their bytes are.
//!
//! What is UTF-8 stays as it is, but for `"`, `\` and control characters. A byte that belongs to no
//! character of UTF-8 is shown as `\x` and two hexadecimal digits, which in JSON begins with two
//! backslashes. So each line is UTF-8, and each reader of JSON takes it.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Texts are looked through in pieces of so many bytes, which a processor compares at once.
const PIECE_BYTES: usize = 16;

/// Appends a text as a string, with its quotes.
pub(crate) fn append_string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let (pieces, _) = text.as_chunks::<PIECE_BYTES>();
    let is_plain = |piece: &&[u8; PIECE_BYTES]| {
        let is_special = |byte: &u8| !byte.is_ascii() | needs_escape(*byte);
        // Without an early end, so that the bytes are compared at once.
        !piece.iter().fold(false, |found, it| found | is_special(it))
    };
    let plain = PIECE_BYTES * pieces.iter().take_while(is_plain).count();
    let (run, rest) = text.split_at(plain);
    out.extend_from_slice(run);
    for chunk in rest.utf8_chunks() {
        append_valid(chunk.valid().as_bytes(), out);
        for byte in chunk.invalid() {
            out.extend_from_slice(b"\\\\x");
            append_hex(*byte, out);
        }
    }
    out.push(b'"');
}

/// Whether a byte of UTF-8 does not stand for itself in a string.
fn needs_escape(byte: u8) -> bool {
    (byte < b' ') | (byte == b'"') | (byte == b'\\') | (byte == 0x7f)
}

/// Appends a text of whole characters. What needs no escape is copied in runs.
fn append_valid(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    loop {
        let special = rest.iter().position(|byte| needs_escape(*byte));
        let plain = special.unwrap_or(rest.len());
        let (run, behind) = rest.split_at(plain);
        out.extend_from_slice(run);
        let Some((byte, behind)) = behind.split_first() else {
            return;
        };
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => {
                out.extend_from_slice(b"\\u00");
                append_hex(*byte, out);
            }
        }
        rest = behind;
    }
}

fn append_hex(byte: u8, out: &mut Vec<u8>) {
    for half in [byte >> 4, byte & 15] {
        out.extend(DIGITS.get(usize::from(half)));
    }
}

/// Appends a number as sixteen hexadecimal digits.
pub(crate) fn append_digest(number: u64, out: &mut Vec<u8>) {
    let mut digits = [b'0'; 2 * size_of::<u64>()];
    for (place, byte) in digits
        .as_chunks_mut::<2>()
        .0
        .iter_mut()
        .zip(number.to_be_bytes())
    {
        let digit = |half: u8| DIGITS.get(usize::from(half)).copied().unwrap_or_default();
        *place = [digit(byte >> 4), digit(byte & 15)];
    }
    out.extend_from_slice(&digits);
}

/// Appends a number.
pub(crate) fn append_number(number: u64, out: &mut Vec<u8>) {
    const DIGITS_MAX: usize = 20;
    let digits = digits::<DIGITS_MAX>(number);
    let zeros = digits.iter().take_while(|it| **it == b'0').count();
    let shown = digits.get(zeros.min(DIGITS_MAX - 1)..);
    out.extend_from_slice(shown.unwrap_or_default());
}

/// The last digits of a number.
pub(crate) fn digits<const COUNT: usize>(number: u64) -> [u8; COUNT] {
    let (mut digits, mut rest) = ([b'0'; COUNT], number);
    for digit in digits.iter_mut().rev() {
        if rest == 0 {
            break;
        }
        *digit += u8::try_from(rest % 10).unwrap_or_default();
        rest /= 10;
    }
    digits
}

/// The beginning of a text, of at most so many bytes, which does not end within a character.
pub(crate) fn head(text: &[u8], bytes_max: usize) -> &[u8] {
    let Some(cut) = text.get(..bytes_max) else {
        return text;
    };
    let Some(next) = text.get(bytes_max) else {
        return cut;
    };
    let continues = |byte: &u8| byte & 0xc0 == 0x80;
    if !continues(next) {
        return cut;
    }
    // A character has at most three bytes behind its first. What has more is none.
    let behind = cut.iter().rev().take_while(|it| continues(it)).count();
    match cut.len().checked_sub(behind + 1) {
        Some(first) if behind < 3 => cut.get(..first).unwrap_or_default(),
        _ => cut,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn string(text: &[u8]) -> String {
        let mut out = Vec::new();
        append_string(text, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// What a reader of JSON gets: the text, with `\xff` for each byte that is no character's.
    fn shown(text: &[u8]) -> String {
        let chunk = |chunk: std::str::Utf8Chunk<'_>| {
            let invalid = chunk.invalid().iter();
            let invalid: String = invalid.map(|byte| format!("\\x{byte:02x}")).collect();
            chunk.valid().to_owned() + &invalid
        };
        text.utf8_chunks().map(chunk).collect()
    }

    #[test]
    fn texts_are_strings_of_json() {
        for (text, expected) in [
            (&b""[..], r#""""#),
            (b"SELECT 'a'", r#""SELECT 'a'""#),
            (
                b"\"\\/\x08\n\r\t\0\x1f\x7f",
                r#""\"\\/\u0008\n\r\t\u0000\u001f\u007f""#,
            ),
            (
                "\u{e9}\u{20ac}\u{1f600}\u{2028}".as_bytes(),
                "\"\u{e9}\u{20ac}\u{1f600}\u{2028}\"",
            ),
            (b"a\xffb\xc3", r#""a\\xffb\\xc3""#),
            (b"\xed\xa0\x80", r#""\\xed\\xa0\\x80""#),
        ] {
            assert_eq!(string(text), expected);
        }
    }

    #[test]
    fn numbers_are_decimal_or_digests() {
        for number in [0, 9, 10, 1_000_000, u64::MAX] {
            let mut out = Vec::new();
            append_number(number, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
            let mut out = Vec::new();
            append_digest(number, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), format!("{number:016x}"));
        }
        assert_eq!((&digits::<3>(42), &digits::<3>(9_876)), (b"042", b"876"));
    }

    /// In whichever piece the first byte is that does not stand for itself.
    #[test]
    fn each_place_of_a_text_is_looked_at() {
        for length in 0..40 {
            for place in 0..length {
                for byte in [b'"', b'\n', b'\\', 0x1f, 0x7f, 0x80] {
                    let mut text = vec![b'~'; length];
                    text[place] = byte;
                    let read: String = serde_json::from_str(&string(&text)).unwrap();
                    assert_eq!(read, shown(&text));
                }
            }
        }
    }

    #[test]
    fn texts_are_cut_between_characters() {
        let text = "ab\u{20ac}c".as_bytes();
        for (bytes_max, expected) in [
            (0, 0),
            (1, 1),
            (2, 2),
            (3, 2),
            (4, 2),
            (5, 5),
            (6, 6),
            (7, 6),
        ] {
            assert_eq!(head(text, bytes_max).len(), expected, "{bytes_max}");
        }
        // What is no character may be cut anywhere.
        assert_eq!(head(&[0x80; 9], 8).len(), 8);
        assert_eq!(head(&[0x80; 3], 2).len(), 2);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_back(text in prop::collection::vec(any::<u8>(), 0..200)) {
            let string = string(&text);
            prop_assert!(!string.bytes().any(|byte| byte < b' '));
            let read: String = serde_json::from_str(&string).unwrap();
            prop_assert_eq!(read, shown(&text));
        }

        #[test]
        fn a_head_of_characters_has_characters(text in ".{0,40}", bytes_max in 0..80_usize) {
            let head = head(text.as_bytes(), bytes_max);
            prop_assert!(std::str::from_utf8(head).is_ok());
            let is_cut = head.len() <= bytes_max && bytes_max < head.len() + 4;
            prop_assert!(is_cut || head == text.as_bytes());
        }
    }
}
