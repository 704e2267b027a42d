//! The `0900` collations: the Unicode collation algorithm, version 9.0.0, on one to three levels
//! (letters; accents; letter case), without padding.
//!
//! As in MySQL, blanks and punctuation are not ignored, contractions of the standard table are not
//! used, and nothing is normalized, except that Hangul syllables weigh as their parts. A key is the
//! weights of each level, each level ended by a zero, which is no weight.

use std::cmp::Ordering;

use super::Charset;
use super::compare::compare_padded;
use super::tables::UCA_900;
use super::weight::{ill_formed, next_char};

/// In a page: the code point has no entry and gets elements by rule.
const IMPLICIT: u32 = u32::MAX;
/// In a page: the lowest number of an expansion; its low half is the index.
const EXPANSION: u32 = 0xFFFF_0000;
/// The secondary and tertiary weights of elements by rule.
const COMMON: u32 = 0x20 << 5 | 0x02;
/// The levels' weights in an element: shift and width in bits.
const FIELDS: [(u32, u32); 3] = [(16, 0xFFFF), (5, 0x7FF), (0, 0x1F)];

/// The elements of a character: 16 bits of primary weight, 11 of secondary, 5 of tertiary.
#[derive(Clone, Copy)]
enum Elements {
    One(u32),
    Several([u32; 3], usize),
    Many(&'static [u32]),
}

impl Elements {
    fn as_slice(&self) -> &[u32] {
        match self {
            Self::One(element) => std::slice::from_ref(element),
            Self::Several(elements, count) => &elements[..*count],
            Self::Many(elements) => elements,
        }
    }
}

#[inline]
fn elements(code: u32) -> Elements {
    match entry(code) {
        IMPLICIT => by_rule(code),
        word @ EXPANSION.. => {
            let number = usize::try_from(word - EXPANSION).expect("16 bits");
            Elements::Many(UCA_900.expansion(number))
        }
        word => Elements::One(word),
    }
}

#[inline]
fn entry(code: u32) -> u32 {
    let [_, plane, page, low] = code.to_be_bytes();
    let page = usize::from(u16::from_be_bytes([plane, page]));
    match UCA_900.pages.get(usize::from(UCA_900.index[page])) {
        Some(words) => u32::from_le_bytes(words[usize::from(low)]),
        None => IMPLICIT,
    }
}

/// The elements of a code point without an entry.
fn by_rule(code: u32) -> Elements {
    if let Some((jamo, count)) = jamo(code) {
        return Elements::Several(jamo.map(entry), count);
    }
    let (first, second) = match code {
        // Tangut.
        0x17000..=0x18AFF => (0xFB00, code - 0x17000),
        0x3400..=0x4DB5
        | 0x20000..=0x2A6D6
        | 0x2A700..=0x2B734
        | 0x2B740..=0x2B81D
        | 0x2B820..=0x2CEA1 => (0xFB80 + (code >> 15), code & 0x7FFF),
        0x4E00..=0x9FD5 | 0xFA0E..=0xFA29 => (0xFB40 + (code >> 15), code & 0x7FFF),
        _ => (0xFBC0 + (code >> 15), code & 0x7FFF),
    };
    Elements::Several([first << 16 | COMMON, (second | 0x8000) << 16, 0], 2)
}

/// The parts of a Hangul syllable and their number. MySQL counts the last codes of the block, which
/// are no syllables, as some.
fn jamo(code: u32) -> Option<([u32; 3], usize)> {
    let index = code.checked_sub(0xAC00).filter(|index| *index < 0x2BB0)?;
    let (lead, vowel, tail) = (index / 588, index % 588 / 28, index % 28);
    let parts = [0x1100 + lead, 0x1161 + vowel, 0x11A7 + tail];
    Some((parts, if tail == 0 { 2 } else { 3 }))
}

/// The weights of a text on one level, without zeros.
struct LevelWeights<'a> {
    charset: Charset,
    rest: &'a [u8],
    level: usize,
    pending: Elements,
    used: usize,
}

impl<'a> LevelWeights<'a> {
    fn new(charset: Charset, rest: &'a [u8], level: usize) -> Self {
        Self {
            charset,
            rest,
            level,
            pending: Elements::One(0),
            used: 0,
        }
    }
}

impl Iterator for LevelWeights<'_> {
    type Item = u16;

    #[inline]
    fn next(&mut self) -> Option<u16> {
        let (shift, mask) = FIELDS[self.level];
        loop {
            while let Some(element) = self.pending.as_slice().get(self.used) {
                self.used += 1;
                let weight = element >> shift & mask;
                if weight != 0 {
                    return Some(stdx::low_u16(u64::from(weight)));
                }
            }
            if self.rest.is_empty() {
                return None;
            }
            self.used = 0;
            self.pending = match next_char(self.charset, &mut self.rest) {
                Ok(code) => elements(code),
                Err(byte) => Elements::One(u32::from(ill_formed(byte)) << 16 | COMMON),
            };
        }
    }
}

/// The order of two texts by that many levels.
pub(super) fn compare<E>(
    levels: usize,
    charset: Charset,
    left: &[u8],
    right: &[u8],
    spend: &mut impl FnMut(usize) -> Result<(), E>,
) -> Result<Ordering, E> {
    for level in 0..levels {
        let weights = |text| LevelWeights::new(charset, text, level);
        // No weight is zero, so the end is below all.
        let order = compare_padded(weights(left), weights(right), 0, spend)?;
        if order.is_ne() {
            return Ok(order);
        }
    }
    Ok(Ordering::Equal)
}

/// True if two characters have the same weights on the given levels.
pub(super) fn same_char(levels: usize, left: u32, right: u32) -> bool {
    let (left, right) = (elements(left), elements(right));
    (0..levels).all(|level| {
        let (shift, mask) = FIELDS[level];
        let weights = |elements: &[u32]| {
            let weights = elements.iter().map(|element| element >> shift & mask);
            weights.filter(|weight| *weight != 0).collect::<Vec<_>>()
        };
        weights(left.as_slice()) == weights(right.as_slice())
    })
}

/// Passes on each weight of each level in turn, and a zero between levels.
pub(super) fn for_each_weight(
    levels: usize,
    charset: Charset,
    text: &[u8],
    mut take: impl FnMut(u16),
) {
    for level in 0..levels {
        if level > 0 {
            take(0);
        }
        LevelWeights::new(charset, text, level).for_each(&mut take);
    }
}
