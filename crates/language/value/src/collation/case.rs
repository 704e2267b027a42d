//! Upper and lower case, by character set.

use super::Charset;
use super::tables::case::{CaseRun, TO_LOWER, TO_UPPER};
use super::tables::latin1;
use super::weight::next_char;

impl Charset {
    /// Appends the text in upper case; binary text is unchanged.
    pub fn append_upper(self, text: &[u8], out: &mut Vec<u8>) {
        self.append_mapped(text, out, TO_UPPER, &latin1::UPPER, u8::to_ascii_uppercase);
    }

    /// Appends the text in lower case; binary text is unchanged.
    pub fn append_lower(self, text: &[u8], out: &mut Vec<u8>) {
        self.append_mapped(text, out, TO_LOWER, &latin1::LOWER, u8::to_ascii_lowercase);
    }

    fn append_mapped(
        self,
        text: &[u8],
        out: &mut Vec<u8>,
        runs: &[CaseRun],
        latin1: &[u8; 256],
        ascii: impl Fn(&u8) -> u8,
    ) {
        match self {
            Self::Binary => out.extend_from_slice(text),
            Self::Ascii => out.extend(text.iter().map(ascii)),
            Self::Latin1 => out.extend(text.iter().map(|byte| latin1[usize::from(*byte)])),
            Self::Utf8mb3 | Self::Utf8mb4 | Self::Client(_) => {
                let mut rest = text;
                while let Some(first) = rest.first() {
                    if *first < 0x80 {
                        out.push(ascii(first));
                        rest = &rest[1..];
                        continue;
                    }
                    let before = rest;
                    let mapped = next_char(self, &mut rest).map(|code| map_code(code, runs));
                    // A set of clients may lack the other case, and UTF-8 its ill-formed bytes.
                    if !mapped.is_ok_and(|code| self.encode(code, out)) {
                        let length = before.len() - rest.len();
                        out.extend_from_slice(before.get(..length).unwrap_or(before));
                    }
                }
            }
        }
    }
}

/// The other case of a code point, or itself.
fn map_code(code: u32, runs: &[CaseRun]) -> u32 {
    let index = runs.partition_point(|(_, last, _, _)| *last < code);
    match runs.get(index) {
        Some((first, _, step, delta)) if *first <= code && (code - first).is_multiple_of(*step) => {
            code.checked_add_signed(*delta).unwrap_or(code)
        }
        _ => code,
    }
}
