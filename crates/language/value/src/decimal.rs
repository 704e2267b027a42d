//! DECIMAL(65,38): exact numbers in base 1,000,000,000, aligned at the decimal point.
//!
//! Words are stored most significant first: `integer_words` before the point, then as many as the
//! scale needs after it. The last fraction word is padded on its right to nine digits. So numbers
//! are added, compared and stored without shifting digits.
//!
//! Invariants: (I1) at most `WORDS_MAX` words are used, the others are 0; (I2) the first integer
//! word is not 0; (I3) digits after the scale are 0; (I4) zero is not negative.
//!
//! MySQL's storage form ([`append_binary`]) is used because its bytes compare in the order of the
//! numbers.

mod arithmetic;
mod binary;
mod text;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

pub use binary::{append_binary, binary_bytes, from_binary};
pub use text::ParsedDecimal;

/// Digits in a word.
const WORD_DIGITS: usize = 9;
/// One more than the greatest word.
const BASE: u32 = 1_000_000_000;
/// Words of a number: 81 digits, MySQL's precision for calculations.
const WORDS_MAX: usize = 9;

/// 10 to the power of the index.
const POWERS: [u32; WORD_DIGITS + 1] = [
    1,
    10,
    100,
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
    BASE,
];

/// An exact number.
#[derive(Debug, Clone, Copy)]
pub struct Decimal {
    /// Words, most significant first; unused ones are 0.
    words: [u32; WORDS_MAX],
    /// How many words are before the point.
    integer_words: u8,
    /// Digits after the point.
    scale: u8,
    /// True below zero.
    negative: bool,
}

/// A DECIMAL read from a row: by reference, or in its storage form.
#[derive(Debug, Clone, Copy)]
pub enum DecimalRef<'a> {
    /// A decoded number.
    Whole(&'a Decimal),
    /// The storage form; its length is [`binary_bytes`].
    Packed {
        /// Digits in all.
        precision: u8,
        /// Digits after the point.
        scale: u8,
        /// MySQL's storage form.
        bytes: &'a [u8],
    },
}

/// A result has more than 81 digits, or a number does not fit the requested type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecimalOverflow;

/// How digits are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest, half away from zero.
    HalfUp,
    /// Towards zero.
    Truncate,
    /// Towards minus infinity.
    Floor,
    /// Towards plus infinity.
    Ceiling,
}

impl Decimal {
    /// Most digits of a column.
    pub const PRECISION_MAX: u8 = 65;
    /// Most digits after the point of a column.
    pub const SCALE_MAX: u8 = 38;
    /// Zero, scale 0.
    pub const ZERO: Self = Self {
        words: [0; WORDS_MAX],
        integer_words: 0,
        scale: 0,
        negative: false,
    };
    /// One, scale 0.
    pub const ONE: Self = Self {
        words: [1, 0, 0, 0, 0, 0, 0, 0, 0],
        integer_words: 1,
        scale: 0,
        negative: false,
    };

    /// Digits after the point.
    pub const fn scale(&self) -> u8 {
        self.scale
    }

    /// True below zero.
    pub const fn is_negative(&self) -> bool {
        self.negative
    }

    /// True for zero of any scale.
    pub fn is_zero(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Digits before the point without leading zeros; 0 for numbers below one.
    pub fn integer_digits(&self) -> usize {
        match self.integer_words {
            0 => 0,
            words => (usize::from(words) - 1) * WORD_DIGITS + digit_count(self.words[0]),
        }
    }

    /// The greatest number of DECIMAL(precision, scale).
    pub fn greatest(precision: u8, scale: u8) -> Self {
        let precision = usize::from(precision).min(WORDS_MAX * WORD_DIGITS);
        let scale = usize::from(scale).min(precision);
        let integer = precision - scale;
        let mut text = Vec::with_capacity(precision + 1);
        text.resize(integer, b'9');
        text.push(b'.');
        text.resize(precision + 1, b'9');
        Self::parse_prefix(&text).value
    }

    /// The number with the opposite sign; zero stays zero.
    #[must_use]
    pub fn negated(mut self) -> Self {
        self.negative = !self.negative && !self.is_zero();
        self
    }

    /// The number without its sign.
    #[must_use]
    pub fn abs(mut self) -> Self {
        self.negative = false;
        self
    }

    /// Used words.
    fn word_count(&self) -> usize {
        usize::from(self.integer_words) + fraction_words(self.scale)
    }

    /// The word at `place`, counted from the point: 0 is the units word, 1 the next greater, -1 the
    /// first fraction word. 0 outside of the used words.
    #[inline]
    fn word_at(&self, place: isize) -> u32 {
        match isize::from(self.integer_words)
            .checked_sub(1 + place)
            .map(usize::try_from)
        {
            Some(Ok(index)) => self.words.get(index).copied().unwrap_or(0),
            _ => 0,
        }
    }

    /// Builds a number from the words before and after the point; leading zero words are dropped.
    /// Surplus fraction words are cut; surplus integer words are an overflow.
    fn from_words(
        negative: bool,
        integer: &[u32],
        fraction: &[u32],
        scale: u8,
    ) -> Result<Self, DecimalOverflow> {
        let skip = integer.iter().take_while(|word| **word == 0).count();
        let integer = &integer[skip..];
        if integer.len() > WORDS_MAX {
            return Err(DecimalOverflow);
        }
        let kept = fraction_words(scale).min(WORDS_MAX - integer.len());
        let scale = usize::from(scale).min(kept * WORD_DIGITS);
        let mut words = [0; WORDS_MAX];
        words[..integer.len()].copy_from_slice(integer);
        for (to, from) in words[integer.len()..]
            .iter_mut()
            .zip(&fraction[..kept.min(fraction.len())])
        {
            *to = *from;
        }
        let mut number = Self {
            words,
            integer_words: stdx::low_u8(integer.len() as u64),
            scale: stdx::low_u8(scale as u64),
            negative: false,
        };
        number.clear_after_scale();
        number.negative = negative && !number.is_zero();
        Ok(number)
    }

    /// Restores (I3).
    fn clear_after_scale(&mut self) {
        let used = self.word_count();
        let tail = usize::from(self.scale) % WORD_DIGITS;
        if tail > 0 {
            let unit = POWERS[WORD_DIGITS - tail];
            let last = &mut self.words[used - 1];
            *last -= *last % unit;
        }
        for word in &mut self.words[used..] {
            *word = 0;
        }
    }

    /// Compares without signs.
    fn cmp_magnitude(&self, other: &Self) -> Ordering {
        if self.integer_words != other.integer_words {
            return self.integer_words.cmp(&other.integer_words);
        }
        self.words.cmp(&other.words)
    }
}

impl<'a> DecimalRef<'a> {
    /// The number itself.
    pub fn to_decimal(self) -> Decimal {
        match self {
            Self::Whole(number) => *number,
            Self::Packed {
                precision,
                scale,
                bytes,
            } => from_binary(bytes, precision, scale).unwrap_or(Decimal::ZERO),
        }
    }
}

impl<'a> From<&'a Decimal> for DecimalRef<'a> {
    fn from(number: &'a Decimal) -> Self {
        Self::Whole(number)
    }
}

impl PartialEq for DecimalRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.to_decimal() == other.to_decimal()
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.cmp_magnitude(other),
            (true, true) => other.cmp_magnitude(self),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Equal numbers are equal whatever their scales.
impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

impl Hash for Decimal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.negative.hash(state);
        self.integer_words.hash(state);
        self.words.hash(state);
    }
}

impl Default for Decimal {
    fn default() -> Self {
        Self::ZERO
    }
}

/// Words that hold `scale` digits after the point.
const fn fraction_words(scale: u8) -> usize {
    (scale as usize).div_ceil(WORD_DIGITS)
}

/// Decimal digits of a word, without leading zeros.
fn digit_count(word: u32) -> usize {
    POWERS.iter().take_while(|power| **power <= word).count()
}

#[cfg(test)]
mod tests;
