//! Weights of characters, by the rule of a collation.

use super::Charset;
use super::tables::{general, latin1, unicode};

/// The weight of a blank under `unicode_ci`.
pub(super) const UNICODE_BLANK: u16 = 0x0209;
/// The weight of a code point beyond the basic plane.
const SUPPLEMENTARY: u16 = 0xFFFD;
/// In a page: the code point has no entry and gets weights by rule.
const IMPLICIT: u16 = 0xFFFF;
/// In a page: the lowest number of an expansion.
const EXPANSION: u16 = 0xE000;

/// The weight of a code point under `general_ci`.
#[inline]
pub(super) fn general(code: u32) -> u16 {
    let Ok(code) = u16::try_from(code) else {
        return SUPPLEMENTARY;
    };
    let [page, low] = code.to_be_bytes();
    match general::PAGES.get(usize::from(general::INDEX[usize::from(page)])) {
        Some(words) => words[usize::from(low)],
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

/// Up to eight weights of a code point under `unicode_ci`.
#[derive(Clone, Copy)]
pub(super) enum Weights {
    One(u16),
    Two([u16; 2]),
    Many(&'static [u16]),
}

impl Weights {
    #[inline]
    pub(super) fn as_slice(&self) -> &[u16] {
        match self {
            // Weight 0 is none.
            Self::One(0) => &[],
            Self::One(weight) => std::slice::from_ref(weight),
            Self::Two(weights) => weights,
            Self::Many(weights) => weights,
        }
    }
}

/// The weights of a code point under `unicode_ci`.
#[inline]
pub(super) fn unicode(code: u32) -> Weights {
    let Ok(code) = u16::try_from(code) else {
        return Weights::One(SUPPLEMENTARY);
    };
    let [page, low] = code.to_be_bytes();
    let Some(words) = unicode::PAGES.get(usize::from(unicode::INDEX[usize::from(page)])) else {
        return Weights::Two(implicit(code));
    };
    match words[usize::from(low)] {
        IMPLICIT => Weights::Two(implicit(code)),
        word @ EXPANSION.. => Weights::Many(unicode::EXPANSIONS[usize::from(word - EXPANSION)]),
        word => Weights::One(word),
    }
}

/// The weights of a code point without an entry, by the rule of the algorithm's version 4.0.0.
fn implicit(code: u16) -> [u16; 2] {
    let base = match code {
        0x4E00..=0x9FA5 => 0xFB40,
        0x3400..=0x4DB5 => 0xFB80,
        _ => 0xFBC0,
    };
    [base + (code >> 15), code & 0x7FFF | 0x8000]
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

/// The weights of a text under `unicode_ci`.
pub(super) struct UnicodeWeights<'a> {
    pub(super) charset: Charset,
    pub(super) rest: &'a [u8],
    pub(super) pending: Weights,
    pub(super) used: usize,
}

impl<'a> UnicodeWeights<'a> {
    pub(super) fn new(charset: Charset, rest: &'a [u8]) -> Self {
        Self {
            charset,
            rest,
            pending: Weights::One(0),
            used: 0,
        }
    }
}

impl Iterator for UnicodeWeights<'_> {
    type Item = u16;

    #[inline]
    fn next(&mut self) -> Option<u16> {
        loop {
            if let Some(weight) = self.pending.as_slice().get(self.used) {
                self.used += 1;
                return Some(*weight);
            }
            if self.rest.is_empty() {
                return None;
            }
            self.used = 0;
            self.pending = match next_char(self.charset, &mut self.rest) {
                Ok(code) => unicode(code),
                Err(byte) => Weights::One(ill_formed(byte)),
            };
        }
    }
}

/// An ill-formed byte is after everything else.
fn ill_formed(byte: u8) -> u16 {
    0xFF00 | u16::from(byte)
}

/// Takes a character off `rest`, which is not empty, or an ill-formed byte.
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
