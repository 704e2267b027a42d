//! MySQL's storage form of DECIMAL; its bytes compare in the order of the numbers.
//!
//! Digits are grouped by nine away from the point. A whole group takes four bytes; the groups at
//! both ends take only the bytes that their digits need. All is big-endian. For a negative number
//! every byte is inverted. Finally the first bit is inverted, so that positive numbers are greater.

use super::{BASE, Decimal, DecimalOverflow, POWERS, Rounding, WORD_DIGITS, WORDS_MAX};

/// Bytes of a group with this many digits.
const GROUP_BYTES: [usize; WORD_DIGITS + 1] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];

/// The length of the storage form of DECIMAL(precision, scale).
pub const fn binary_bytes(precision: u8, scale: u8) -> usize {
    let integer = precision.saturating_sub(scale) as usize;
    let scale = scale as usize;
    integer / WORD_DIGITS * 4
        + GROUP_BYTES[integer % WORD_DIGITS]
        + scale / WORD_DIGITS * 4
        + GROUP_BYTES[scale % WORD_DIGITS]
}

/// Appends the storage form in DECIMAL(precision, scale), rounded half up to the scale.
///
/// # Errors
/// [`DecimalOverflow`] if the digits before the point do not fit; nothing is appended.
pub fn append_binary(
    number: &Decimal,
    precision: u8,
    scale: u8,
    out: &mut Vec<u8>,
) -> Result<(), DecimalOverflow> {
    let number = number.round(i32::from(scale), Rounding::HalfUp)?;
    let integer_digits = usize::from(precision.saturating_sub(scale));
    if number.integer_digits() > integer_digits {
        return Err(DecimalOverflow);
    }
    let start = out.len();
    let flip = if number.negative { u32::MAX } else { 0 };
    let mut push = |word: u32, bytes: usize| {
        out.extend_from_slice(&(word ^ flip).to_be_bytes()[4 - bytes..]);
    };
    let whole = integer_digits / WORD_DIGITS;
    let head = GROUP_BYTES[integer_digits % WORD_DIGITS];
    push(number.word_at(place(whole)), head);
    for index in (0..whole).rev() {
        push(number.word_at(place(index)), 4);
    }
    let scale = usize::from(scale);
    for index in 0..scale / WORD_DIGITS {
        push(number.word_at(-1 - place(index)), 4);
    }
    let tail = scale % WORD_DIGITS;
    let last = number.word_at(-1 - place(scale / WORD_DIGITS)) / POWERS[WORD_DIGITS - tail];
    push(last, GROUP_BYTES[tail]);
    if let Some(first) = out.get_mut(start) {
        *first ^= 0x80;
    }
    Ok(())
}

/// Reads the storage form of DECIMAL(precision, scale). `None` if there are too few bytes or they
/// are invalid.
pub fn from_binary(bytes: &[u8], precision: u8, scale: u8) -> Option<Decimal> {
    if scale > precision || usize::from(precision) > WORDS_MAX * WORD_DIGITS {
        return None;
    }
    let bytes = bytes.get(..binary_bytes(precision, scale))?;
    let negative = bytes.first()? & 0x80 == 0;
    let mut reader = Reader {
        rest: bytes,
        flip: if negative { 0xFF } else { 0 },
        first: 0x80,
    };
    let integer_digits = usize::from(precision - scale);
    let mut words = [0u32; 2 * WORDS_MAX];
    let mut count = 0;
    let mut push = |word: u32| {
        words[count] = word;
        count += 1;
    };
    if integer_digits % WORD_DIGITS > 0 {
        push(reader.group(integer_digits % WORD_DIGITS)?);
    }
    for _ in 0..integer_digits / WORD_DIGITS {
        push(reader.group(WORD_DIGITS)?);
    }
    for _ in 0..usize::from(scale) / WORD_DIGITS {
        push(reader.group(WORD_DIGITS)?);
    }
    let tail = usize::from(scale) % WORD_DIGITS;
    if tail > 0 {
        push(reader.group(tail)? * POWERS[WORD_DIGITS - tail]);
    }
    let (integer, fraction) = words[..count].split_at(integer_digits.div_ceil(WORD_DIGITS));
    Decimal::from_words(negative, integer, fraction, scale).ok()
}

struct Reader<'a> {
    rest: &'a [u8],
    flip: u8,
    /// Inverts only the first bit of the first byte.
    first: u8,
}

impl Reader<'_> {
    fn group(&mut self, digits: usize) -> Option<u32> {
        let (bytes, rest) = self.rest.split_at_checked(GROUP_BYTES[digits])?;
        self.rest = rest;
        let mut word = 0u32;
        for byte in bytes {
            word = word << 8 | u32::from(byte ^ self.flip ^ self.first);
            self.first = 0;
        }
        (word < POWERS[digits]).then_some(word)
    }
}

fn place(index: usize) -> isize {
    isize::from(stdx::low_u8(index as u64))
}

const _: () = assert!(BASE == POWERS[WORD_DIGITS]);
