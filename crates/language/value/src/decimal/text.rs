//! DECIMAL from and to text, integers and floating point.

use std::fmt;
use std::str::FromStr;

use super::{
    BASE, Decimal, DecimalOverflow, POWERS, Rounding, WORD_DIGITS, WORDS_MAX, fraction_words,
};

/// The result of [`Decimal::parse_prefix`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParsedDecimal {
    /// The number; 0 if there was none, the greatest number on overflow.
    pub value: Decimal,
    /// Bytes used, leading blanks included; 0 if there was no number.
    pub used: usize,
    /// More than 81 digits before the point: the value is clamped.
    pub overflow: bool,
    /// Digits after the point were dropped for lack of room.
    pub truncated: bool,
}

/// The most digits that matter: those of all words, and one word of slack.
const DIGITS_MAX: usize = WORDS_MAX * WORD_DIGITS;

impl Decimal {
    /// Reads the longest number at the start of `text`: blanks, sign, digits, point, digits,
    /// exponent. The caller decides whether a rest is an error.
    pub fn parse_prefix(text: &[u8]) -> ParsedDecimal {
        let blanks = text
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace())
            .count();
        let rest = &text[blanks..];
        let (negative, signs) = match rest.first() {
            Some(b'-') => (true, 1),
            Some(b'+') => (false, 1),
            _ => (false, 0),
        };
        let rest = &rest[signs..];
        let integer = digit_prefix(rest);
        let after = &rest[integer.len()..];
        let fraction = match after.first() {
            Some(b'.') => digit_prefix(&after[1..]),
            _ => &[],
        };
        if integer.is_empty() && fraction.is_empty() {
            return ParsedDecimal {
                value: Self::ZERO,
                used: 0,
                overflow: false,
                truncated: false,
            };
        }
        let point = usize::from(after.first() == Some(&b'.'));
        let mut used = blanks + signs + integer.len() + point + fraction.len();
        let mut exponent = 0;
        if let Some((value, length)) = parse_exponent(&text[used..]) {
            exponent = value;
            used += length;
        }
        let (value, overflow, truncated) = assemble(negative, integer, fraction, exponent);
        ParsedDecimal {
            value,
            used,
            overflow,
            truncated,
        }
    }

    /// Appends the number with all digits of its scale: `-12.340`.
    pub fn append_text(&self, out: &mut Vec<u8>) {
        if self.negative {
            out.push(b'-');
        }
        let integer = usize::from(self.integer_words);
        if integer == 0 {
            out.push(b'0');
        }
        for (index, word) in self.words[..integer].iter().enumerate() {
            let digits = word_digits(*word);
            let skip = if index == 0 {
                WORD_DIGITS - super::digit_count(*word)
            } else {
                0
            };
            out.extend_from_slice(&digits[skip..]);
        }
        if self.scale == 0 {
            return;
        }
        out.push(b'.');
        let mut left = usize::from(self.scale);
        for word in &self.words[integer..self.word_count()] {
            let digits = word_digits(*word);
            let shown = left.min(WORD_DIGITS);
            out.extend_from_slice(&digits[..shown]);
            left -= shown;
        }
    }

    /// The nearest double.
    pub fn to_f64(&self) -> f64 {
        self.to_string().parse().unwrap_or(0.0)
    }

    /// The shortest decimal that reads back as the double. `None` for NaN and infinities; clamped
    /// on overflow.
    pub fn from_f64(number: f64) -> Option<ParsedDecimal> {
        number
            .is_finite()
            .then(|| Self::parse_prefix(format!("{number:e}").as_bytes()))
    }

    /// The integer nearest to the number, half away from zero; `Err` is the clamped bound.
    pub fn to_i64(&self) -> Result<i64, i64> {
        let bound = if self.negative { i64::MIN } else { i64::MAX };
        let magnitude = self.rounded_magnitude().ok_or(bound)?;
        let value = if self.negative {
            -i128::from(magnitude)
        } else {
            i128::from(magnitude)
        };
        i64::try_from(value).map_err(|_| bound)
    }

    /// The integer nearest to the number, half away from zero; `Err` is the clamped bound.
    pub fn to_u64(&self) -> Result<u64, u64> {
        let magnitude = self
            .rounded_magnitude()
            .ok_or(if self.negative { 0 } else { u64::MAX })?;
        if self.negative && magnitude > 0 {
            return Err(0);
        }
        Ok(magnitude)
    }

    fn rounded_magnitude(&self) -> Option<u64> {
        let rounded = self.abs().round(0, Rounding::HalfUp).ok()?;
        let mut magnitude = 0u64;
        for word in &rounded.words[..usize::from(rounded.integer_words)] {
            magnitude = magnitude
                .checked_mul(u64::from(BASE))?
                .checked_add(u64::from(*word))?;
        }
        Some(magnitude)
    }
}

impl From<u64> for Decimal {
    fn from(number: u64) -> Self {
        let base = u64::from(BASE);
        let words = [
            stdx::low_u32(number / base / base),
            stdx::low_u32(number / base % base),
            stdx::low_u32(number % base),
        ];
        Self::from_words(false, &words, &[], 0).expect("three words fit")
    }
}

impl From<i64> for Decimal {
    fn from(number: i64) -> Self {
        let magnitude = Self::from(number.unsigned_abs());
        if number < 0 {
            magnitude.negated()
        } else {
            magnitude
        }
    }
}

impl FromStr for Decimal {
    type Err = DecimalOverflow;

    /// The whole text must be a number that fits.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = Self::parse_prefix(text.as_bytes());
        if parsed.used == 0 || parsed.used != text.len() || parsed.overflow {
            return Err(DecimalOverflow);
        }
        Ok(parsed.value)
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(DIGITS_MAX + 3);
        self.append_text(&mut text);
        f.write_str(str::from_utf8(&text).expect("digits are ASCII"))
    }
}

fn digit_prefix(text: &[u8]) -> &[u8] {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    &text[..digits]
}

/// The exponent at the start of `text` and its length, or `None`.
fn parse_exponent(text: &[u8]) -> Option<(i64, usize)> {
    if !matches!(text.first(), Some(b'e' | b'E')) {
        return None;
    }
    let (negative, signs) = match text.get(1) {
        Some(b'-') => (true, 1),
        Some(b'+') => (false, 1),
        _ => (false, 0),
    };
    let digits = digit_prefix(&text[1 + signs..]);
    if digits.is_empty() {
        return None;
    }
    // Far beyond any usable exponent, and far from overflow.
    let magnitude = digits.iter().fold(0i64, |sum, digit| {
        (sum * 10 + i64::from(digit - b'0')).min(1_000_000)
    });
    Some((
        if negative { -magnitude } else { magnitude },
        1 + signs + digits.len(),
    ))
}

/// Puts the digits into words around the point, which the exponent moves.
fn assemble(
    negative: bool,
    integer: &[u8],
    fraction: &[u8],
    exponent: i64,
) -> (Decimal, bool, bool) {
    let digit = |index: i64| -> u8 {
        let Ok(index) = usize::try_from(index) else {
            return 0;
        };
        let found = integer
            .get(index)
            .or_else(|| fraction.get(index.wrapping_sub(integer.len())));
        found.map_or(0, |byte| byte - b'0')
    };
    let total = length(integer) + length(fraction);
    // The digit with index `point` is the first one after the point.
    let point = length(integer) + exponent;
    let Some(first) = (0..total).find(|index| digit(*index) != 0) else {
        let scale = (total - point).clamp(0, i64::from(Decimal::SCALE_MAX));
        let zero = Decimal::from_words(false, &[], &[], stdx::low_u8(scale.unsigned_abs()));
        return (zero.unwrap_or(Decimal::ZERO), false, false);
    };
    let integer_digits = usize::try_from((point - first).max(0)).unwrap_or(usize::MAX);
    if integer_digits > DIGITS_MAX {
        let greatest = Decimal::greatest(stdx::low_u8(DIGITS_MAX as u64), 0);
        return (
            if negative {
                greatest.negated()
            } else {
                greatest
            },
            true,
            false,
        );
    }
    let integer_words = integer_digits.div_ceil(WORD_DIGITS);
    let wanted = usize::try_from((total - point).max(0)).unwrap_or(usize::MAX);
    let scale = wanted.min((WORDS_MAX - integer_words) * WORD_DIGITS);
    let word_from = |start: i64| -> u32 {
        (start..start + length(&[0; WORD_DIGITS]))
            .fold(0, |word, at| word * 10 + u32::from(digit(at)))
    };
    let mut words = [0u32; WORDS_MAX];
    let start = point - length(&words[..integer_words]) * 9;
    let count = integer_words + fraction_words(stdx::low_u8(scale as u64));
    for (word, place) in words[..count].iter_mut().zip(0i64..) {
        *word = word_from(start + place * 9);
    }
    let scale = stdx::low_u8(scale as u64);
    let (integer, fraction) = words[..count].split_at(integer_words);
    let number = Decimal::from_words(negative, integer, fraction, scale).expect("counted above");
    (number, false, wanted > usize::from(scale))
}

fn length<T>(items: &[T]) -> i64 {
    i64::try_from(items.len()).expect("a slice is shorter than i64::MAX")
}

/// The nine digits of a word.
fn word_digits(mut word: u32) -> [u8; WORD_DIGITS] {
    let mut digits = [b'0'; WORD_DIGITS];
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + stdx::low_u8(u64::from(word % 10));
        word /= 10;
    }
    digits
}

const _: () = assert!(POWERS.len() == WORD_DIGITS + 1);
