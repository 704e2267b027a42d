//! Comparison, hash and sort key of text by collation.
//!
//! Most collations pad: the shorter text is compared as if blanks followed it. A sort key must
//! compare bytewise in the same order and end by itself. So each blank is followed by a mark: it
//! tells whether what comes after the run of blanks is less than a blank (0), nothing (1), or
//! greater (2). Trailing blanks are replaced by one blank with mark 1. So `a` (`a 1`) is between
//! `a<tab>` (`a<tab> 1`) and `ab`, and equals `a  `.
//!
//! `binary` and `utf8mb4_0900_bin` do not pad; in a key their zero bytes become `00 FF` and it ends
//! with `00 00`. Nor do the other `0900` collations; their weights are never zero, and two zero
//! bytes end each level.

use std::cmp::Ordering;
use std::hash::Hasher;

use super::levels;
use super::unicode::UnicodeWeights;
use super::weight::{GeneralWeights, fold_ascii, latin1_swedish};
use super::{BYTES_PER_SPEND, CollationId, Rule, free};

const BLANK: u8 = b' ';
/// Marks after a blank in a sort key; see the head of the file.
const BEFORE: u8 = 0;
const END: u8 = 1;
const AFTER: u8 = 2;

impl CollationId {
    /// The order of two texts.
    #[inline]
    pub fn compare(self, left: &[u8], right: &[u8]) -> Ordering {
        let Ok(order) = self.compare_metered(left, right, &mut free);
        order
    }

    /// The same. While characters are weighed, `spend` is called with the work about every
    /// [`BYTES_PER_SPEND`], and may end it. A comparison of bytes is done in one go.
    ///
    /// # Errors
    /// The error of `spend`.
    #[inline]
    pub fn compare_metered<E>(
        self,
        left: &[u8],
        right: &[u8],
        spend: &mut impl FnMut(usize) -> Result<(), E>,
    ) -> Result<Ordering, E> {
        Ok(match self.rule() {
            Rule::Binary => left.cmp(right),
            Rule::CodePoint | Rule::PaddedBytes => compare_padded_bytes(left, right, |byte| byte),
            Rule::AsciiFold => compare_padded_bytes(left, right, fold_ascii),
            Rule::Latin1Swedish => compare_padded_bytes(left, right, latin1_swedish),
            Rule::General => {
                let (left, right) = self.without_common_prefix(left, right);
                let weights = |rest| GeneralWeights {
                    charset: self.charset(),
                    rest,
                };
                let blank = u16::from(BLANK);
                compare_padded(weights(left), weights(right), blank, spend)?
            }
            Rule::Unicode(language) => {
                // The end of the common prefix may be the beginning of a contraction.
                let (left, right) = if language.contractions.is_empty() {
                    self.without_common_prefix(left, right)
                } else {
                    (left, right)
                };
                let weights = |rest| UnicodeWeights::new(language, self.charset(), rest);
                compare_padded(weights(left), weights(right), language.base.blank, spend)?
            }
            Rule::Levels(levels) => {
                let (left, right) = self.without_common_prefix(left, right);
                levels::compare(levels, self.charset(), left, right, spend)?
            }
        })
    }

    /// True if the texts compare as equal.
    #[inline]
    pub fn equal(self, left: &[u8], right: &[u8]) -> bool {
        left == right || (!matches!(self.rule(), Rule::Binary) && self.compare(left, right).is_eq())
    }

    /// Feeds a hash so that equal texts have equal hashes.
    pub fn hash<H: Hasher>(self, text: &[u8], state: &mut H) {
        match self.rule() {
            Rule::Binary => state.write(text),
            Rule::CodePoint | Rule::PaddedBytes => state.write(text.trim_ascii_end_blanks()),
            Rule::AsciiFold => hash_weights(text.iter().copied().map(fold_ascii), BLANK, |byte| {
                state.write_u8(byte);
            }),
            Rule::Latin1Swedish => {
                hash_weights(text.iter().copied().map(latin1_swedish), BLANK, |byte| {
                    state.write_u8(byte);
                });
            }
            Rule::General => hash_weights(
                GeneralWeights {
                    charset: self.charset(),
                    rest: text,
                },
                u16::from(BLANK),
                |weight| state.write_u16(weight),
            ),
            Rule::Unicode(language) => hash_weights(
                UnicodeWeights::new(language, self.charset(), text),
                language.base.blank,
                |weight| state.write_u16(weight),
            ),
            Rule::Levels(levels) => {
                levels::for_each_weight(levels, self.charset(), text, |weight| {
                    state.write_u16(weight);
                });
            }
        }
        state.write_u8(0xFF);
    }

    /// Appends the sort key of a text: bytes that compare in the order of [`Self::compare`]. No key
    /// is a prefix of another, so keys can be concatenated.
    pub fn append_key(self, text: &[u8], out: &mut Vec<u8>) {
        match self.rule() {
            Rule::Binary => append_binary_key(text, out),
            Rule::CodePoint | Rule::PaddedBytes => {
                append_padded_key(text.iter().copied(), BLANK, out, |byte, out| out.push(byte));
            }
            Rule::AsciiFold => append_ascii_key(text, out),
            // Weights of ASCII take one byte, the one of `ascii_general_ci`.
            Rule::General if text.is_ascii() => append_ascii_key(text, out),
            Rule::Latin1Swedish => {
                let weights = text.iter().copied().map(latin1_swedish);
                append_padded_key(weights, BLANK, out, |byte, out| out.push(byte));
            }
            Rule::General => {
                let weights = GeneralWeights {
                    charset: self.charset(),
                    rest: text,
                };
                append_padded_key(weights, u16::from(BLANK), out, append_short_weight);
            }
            Rule::Unicode(language) => {
                let weights = UnicodeWeights::new(language, self.charset(), text);
                append_padded_key(weights, language.base.blank, out, |weight, out| {
                    out.extend_from_slice(&weight.to_be_bytes());
                });
            }
            Rule::Levels(levels) => {
                levels::for_each_weight(levels, self.charset(), text, |weight| {
                    out.extend_from_slice(&weight.to_be_bytes());
                });
                out.extend_from_slice(&[0, 0]);
            }
        }
    }

    /// The length of the key of a text that `bytes` begin with; `None` where they are no whole key.
    pub fn key_length(self, bytes: &[u8]) -> Option<usize> {
        match self.rule() {
            Rule::Binary => {
                let mut at = 0;
                loop {
                    let zero = bytes.get(at..)?.iter().position(|byte| *byte == 0)?;
                    at += zero + 2;
                    if *bytes.get(at - 1)? == 0 {
                        return Some(at);
                    }
                }
            }
            Rule::CodePoint
            | Rule::PaddedBytes
            | Rule::AsciiFold
            | Rule::General
            | Rule::Latin1Swedish => padded_key_length(bytes, &[BLANK]),
            Rule::Unicode(language) => padded_key_length(bytes, &language.base.blank.to_be_bytes()),
            // A zero stands between two levels, and at the end.
            Rule::Levels(levels) => {
                let weights = bytes.chunks_exact(2).enumerate();
                let mut zeros = weights.filter(|(_, weight)| *weight == [0, 0]);
                let (end, _) = zeros.nth(levels.checked_sub(1)?)?;
                Some(end * 2 + 2)
            }
        }
    }

    /// Appends the result of `WEIGHT_STRING`.
    pub fn append_weights(self, text: &[u8], out: &mut Vec<u8>) {
        match self.rule() {
            Rule::Binary | Rule::PaddedBytes => out.extend_from_slice(text),
            Rule::AsciiFold => out.extend(text.iter().copied().map(fold_ascii)),
            Rule::Latin1Swedish => out.extend(text.iter().copied().map(latin1_swedish)),
            Rule::CodePoint => {
                let mut rest = text;
                while !rest.is_empty() {
                    let code = super::weight::next_char(self.charset(), &mut rest);
                    let code = code.unwrap_or_else(u32::from);
                    let skip = if self.charset().char_bytes_max() == 4 {
                        1
                    } else {
                        2
                    };
                    out.extend_from_slice(&code.to_be_bytes()[skip..]);
                }
            }
            Rule::General => {
                let weights = GeneralWeights {
                    charset: self.charset(),
                    rest: text,
                };
                out.extend(weights.flat_map(u16::to_be_bytes));
            }
            Rule::Unicode(language) => {
                let weights = UnicodeWeights::new(language, self.charset(), text);
                out.extend(weights.flat_map(u16::to_be_bytes));
            }
            Rule::Levels(levels) => {
                levels::for_each_weight(levels, self.charset(), text, |weight| {
                    out.extend_from_slice(&weight.to_be_bytes());
                });
            }
        }
    }

    /// Both texts from the first character with different bytes on.
    #[inline]
    fn without_common_prefix<'a>(self, left: &'a [u8], right: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        let mut same = common_prefix(left, right);
        // Back to the first byte of a character; in UTF-8 the others begin with the bits 10.
        let inside = |text: &[u8], at: usize| text.get(at).is_some_and(|byte| byte & 0xC0 == 0x80);
        while same > 0 && (inside(left, same) || inside(right, same)) {
            same -= 1;
        }
        (&left[same..], &right[same..])
    }
}

/// How many leading bytes are equal. Long texts are compared in pieces first, then byte by byte.
#[inline]
fn common_prefix(left: &[u8], right: &[u8]) -> usize {
    const PIECE: usize = 64;
    let pieces = left.chunks_exact(PIECE).zip(right.chunks_exact(PIECE));
    let same = pieces.take_while(|(left, right)| left == right).count() * PIECE;
    let rest = left[same..].iter().zip(&right[same..]);
    same + rest.take_while(|(left, right)| left == right).count()
}

/// Only blanks at the end: no tabs or line ends.
trait TrimBlanks {
    fn trim_ascii_end_blanks(&self) -> &Self;
}

impl TrimBlanks for [u8] {
    fn trim_ascii_end_blanks(&self) -> &Self {
        let blanks = self.iter().rev().take_while(|byte| **byte == BLANK).count();
        &self[..self.len() - blanks]
    }
}

#[inline]
fn compare_padded_bytes(left: &[u8], right: &[u8], weight: impl Fn(u8) -> u8) -> Ordering {
    let same = common_prefix(left, right);
    let (left, right) = (&left[same..], &right[same..]);
    for (left, right) in left.iter().zip(right) {
        if left != right {
            let order = weight(*left).cmp(&weight(*right));
            if order.is_ne() {
                return order;
            }
        }
    }
    let common = left.len().min(right.len());
    let against_blank = |rest: &[u8]| {
        let found = rest
            .iter()
            .map(|byte| weight(*byte))
            .find(|weight| *weight != BLANK);
        found.map_or(Ordering::Equal, |weight| weight.cmp(&BLANK))
    };
    match against_blank(&left[common..]) {
        Ordering::Equal => against_blank(&right[common..]).reverse(),
        order => order,
    }
}

#[inline]
pub(super) fn compare_padded<I: Iterator<Item = u16>, E>(
    mut left: I,
    mut right: I,
    blank: u16,
    spend: &mut impl FnMut(usize) -> Result<(), E>,
) -> Result<Ordering, E> {
    loop {
        for _ in 0..BYTES_PER_SPEND {
            let (from_left, from_right) = (left.next(), right.next());
            if from_left.is_none() && from_right.is_none() {
                return Ok(Ordering::Equal);
            }
            let order = from_left.unwrap_or(blank).cmp(&from_right.unwrap_or(blank));
            if order.is_ne() {
                return Ok(order);
            }
        }
        spend(BYTES_PER_SPEND)?;
    }
}

fn hash_weights<W: Copy + PartialEq>(
    weights: impl Iterator<Item = W>,
    blank: W,
    mut write: impl FnMut(W),
) {
    let mut blanks = 0;
    for weight in weights {
        if weight == blank {
            blanks += 1;
            continue;
        }
        for _ in 0..std::mem::take(&mut blanks) {
            write(blank);
        }
        write(weight);
    }
}

fn append_ascii_key(text: &[u8], out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    let weights = text.iter().copied().map(fold_ascii);
    append_padded_key(weights, BLANK, out, |byte, out| out.push(byte));
}

fn append_padded_key<W: Copy + PartialOrd>(
    weights: impl Iterator<Item = W>,
    blank: W,
    out: &mut Vec<u8>,
    append: impl Fn(W, &mut Vec<u8>),
) {
    let mut blanks = 0;
    for weight in weights {
        if weight == blank {
            blanks += 1;
            continue;
        }
        let mark = if weight < blank { BEFORE } else { AFTER };
        for _ in 0..std::mem::take(&mut blanks) {
            append(blank, out);
            out.push(mark);
        }
        append(weight, out);
    }
    append(blank, out);
    out.push(END);
}

/// The length of a key that `append_padded_key` has made, of weights as long as that of a blank:
/// behind each blank is a mark, and the last one is the end.
fn padded_key_length(bytes: &[u8], blank: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let behind = at + blank.len();
        if bytes.get(at..behind)? != blank {
            at = behind;
            continue;
        }
        at = behind + 1;
        if *bytes.get(behind)? == END {
            return Some(at);
        }
    }
}

/// A weight of `general_ci` in one to three bytes, in order: the form of UTF-8, so that ASCII
/// takes one byte.
fn append_short_weight(weight: u16, out: &mut Vec<u8>) {
    let low = |shift: u32| 0x80 | stdx::low_u8(u64::from(weight >> shift & 0x3F));
    match weight {
        0..0x80 => out.push(stdx::low_u8(u64::from(weight))),
        0x80..0x800 => {
            out.extend_from_slice(&[0xC0 | stdx::low_u8(u64::from(weight >> 6)), low(0)])
        }
        _ => {
            let first = 0xE0 | stdx::low_u8(u64::from(weight >> 12));
            out.extend_from_slice(&[first, low(6), low(0)]);
        }
    }
}

fn append_binary_key(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        out.push(*byte);
        if *byte == 0 {
            out.push(0xFF);
        }
    }
    out.extend_from_slice(&[0, 0]);
}
