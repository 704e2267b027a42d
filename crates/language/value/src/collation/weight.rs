//! Weights of characters, by the rule of a collation.

use super::Charset;
use super::tables::{GENERAL, latin1};

/// The weight of a code point beyond the basic plane.
const SUPPLEMENTARY: u16 = 0xFFFD;

/// The weight of a code point under `general_ci`.
#[inline]
pub(super) fn general(code: u32) -> u16 {
    let Ok(code) = u16::try_from(code) else {
        return SUPPLEMENTARY;
    };
    let [page, low] = code.to_be_bytes();
    match GENERAL
        .pages
        .get(usize::from(GENERAL.index[usize::from(page)]))
    {
        Some(words) => u16::from_le_bytes(words[usize::from(low)]),
        None => code,
    }
}

/// The weight of an ASCII byte under `general_ci`; latin1 and ascii have the same.
#[inline]
pub(super) fn fold_ascii(byte: u8) -> u8 {
    byte.to_ascii_uppercase()
}

/// The weight of a byte under `latin1_swedish_ci`.
#[inline]
pub(super) fn latin1_swedish(byte: u8) -> u8 {
    latin1::WEIGHTS[usize::from(byte)]
}

/// The weights of a text under `general_ci`.
pub(super) struct GeneralWeights<'a> {
    pub(super) charset: Charset,
    pub(super) rest: &'a [u8],
}

impl Iterator for GeneralWeights<'_> {
    type Item = u16;

    #[inline]
    fn next(&mut self) -> Option<u16> {
        let first = *self.rest.first()?;
        if first < 0x80 {
            self.rest = &self.rest[1..];
            return Some(u16::from(fold_ascii(first)));
        }
        Some(match next_char(self.charset, &mut self.rest) {
            Ok(code) => general(code),
            Err(byte) => ill_formed(byte),
        })
    }
}

/// An ill-formed byte sorts after everything else.
pub(super) fn ill_formed(byte: u8) -> u16 {
    0xFF00 | u16::from(byte)
}

/// Removes a character, or an ill-formed byte, from `rest`, which is not empty.
#[inline]
pub(super) fn next_char(charset: Charset, rest: &mut &[u8]) -> Result<u32, u8> {
    match charset.decode(rest) {
        Some((code, length)) => {
            *rest = &rest[length..];
            Ok(code)
        }
        None => {
            let byte = rest[0];
            *rest = &rest[1..];
            Err(byte)
        }
    }
}
