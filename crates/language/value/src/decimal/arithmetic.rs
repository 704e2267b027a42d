//! The four operations, remainder and rounding of DECIMAL.

use super::{
    BASE, Decimal, DecimalOverflow, POWERS, Rounding, WORD_DIGITS, WORDS_MAX, fraction_words,
};

/// Room for a product, or for a dividend with the places that a quotient needs.
const WIDE: usize = 4 * WORDS_MAX;

/// A result, or the overflow.
type Calculated = Result<Decimal, DecimalOverflow>;

impl Decimal {
    /// The sum, with the greater scale.
    ///
    /// # Errors
    /// [`DecimalOverflow`] above 81 digits before the point.
    pub fn add(&self, other: &Self) -> Calculated {
        if self.negative == other.negative {
            return add_magnitudes(self, other, self.negative);
        }
        match self.cmp_magnitude(other) {
            std::cmp::Ordering::Less => subtract_magnitudes(other, self, other.negative),
            _ => subtract_magnitudes(self, other, self.negative),
        }
    }

    /// The difference, with the greater scale.
    ///
    /// # Errors
    /// [`DecimalOverflow`] above 81 digits before the point.
    pub fn subtract(&self, other: &Self) -> Calculated {
        self.add(&other.negated())
    }

    /// The product; its scale is the sum of the scales, as far as there is room.
    ///
    /// # Errors
    /// [`DecimalOverflow`] above 81 digits before the point.
    pub fn multiply(&self, other: &Self) -> Calculated {
        let left = &self.words[..self.word_count()];
        let right = &other.words[..other.word_count()];
        let mut product = [0u32; 2 * WORDS_MAX];
        for (index, word) in left.iter().enumerate().rev() {
            let mut carry = 0u64;
            for (other_index, other_word) in right.iter().enumerate().rev() {
                let cell = &mut product[index + other_index + 1];
                let sum = u64::from(*word) * u64::from(*other_word) + u64::from(*cell) + carry;
                *cell = stdx::low_u32(sum % u64::from(BASE));
                carry = sum / u64::from(BASE);
            }
            product[index] = stdx::low_u32(carry);
        }
        let integer = usize::from(self.integer_words) + usize::from(other.integer_words);
        let count = left.len() + right.len();
        let scale = self.scale.saturating_add(other.scale);
        // The product of two half-filled fraction words may need one word less.
        let (integer, fraction) = product[..count].split_at(integer);
        Self::from_words(self.negative != other.negative, integer, fraction, scale)
    }

    /// The quotient with at least `scale_increment` more places than the dividend, cut after the
    /// word in which they end. `None` on division by zero.
    ///
    /// # Errors
    /// [`DecimalOverflow`] above 81 digits before the point.
    pub fn divide(&self, other: &Self, scale_increment: u8) -> Option<Calculated> {
        if other.is_zero() {
            return None;
        }
        let left_fraction = fraction_words(self.scale);
        let right_fraction = fraction_words(other.scale);
        let padding = left_fraction * WORD_DIGITS - usize::from(self.scale)
            + right_fraction * WORD_DIGITS
            - usize::from(other.scale);
        let increment = usize::from(scale_increment).saturating_sub(padding);
        let places = left_fraction + right_fraction + increment.div_ceil(WORD_DIGITS);
        Some(self.quotient(other, places.min(WORDS_MAX)))
    }

    /// The remainder, with the sign of the dividend and the greater scale. `None` on division by
    /// zero.
    ///
    /// # Errors
    /// [`DecimalOverflow`] if it has too many digits.
    pub fn remainder(&self, other: &Self) -> Option<Calculated> {
        if other.is_zero() {
            return None;
        }
        let scale = self.scale.max(other.scale);
        let places = fraction_words(scale);
        let (dividend, divisor) = (self.scaled_words(places), other.scaled_words(places));
        let (_, remainder) = divide_words(&dividend, &divisor);
        let split = remainder.len() - places.min(remainder.len());
        let mut fraction = vec![0; places - (remainder.len() - split)];
        fraction.extend_from_slice(&remainder[split..]);
        Some(Self::from_words(
            self.negative,
            &remainder[..split],
            &fraction,
            scale,
        ))
    }

    /// The integer quotient, truncated towards zero. `None` on division by zero.
    ///
    /// # Errors
    /// [`DecimalOverflow`] if it has too many digits.
    pub fn divide_integer(&self, other: &Self) -> Option<Calculated> {
        if other.is_zero() {
            return None;
        }
        Some(self.quotient(other, 0))
    }

    /// The number with `scale` digits after the point; a negative scale clears digits before it.
    ///
    /// # Errors
    /// [`DecimalOverflow`] if rounding up needs an 82nd digit.
    pub fn round(&self, scale: i32, rounding: Rounding) -> Calculated {
        let scale = scale.clamp(-81, 81);
        if scale >= i32::from(self.scale) {
            let widened = stdx::low_u8(u64::from(scale.unsigned_abs()));
            return self.widened(widened);
        }
        let away = match rounding {
            Rounding::HalfUp => self.digit_at(-scale - 1) >= 5,
            Rounding::Truncate => false,
            Rounding::Floor => self.negative && self.has_digits_below(-scale),
            Rounding::Ceiling => !self.negative && self.has_digits_below(-scale),
        };
        let mut kept = *self;
        kept.cut(scale);
        if away {
            let mut unit = Self::ZERO;
            unit.set_unit(scale);
            kept = add_magnitudes(&kept, &unit, self.negative)?;
            kept.scale = stdx::low_u8(u64::from(scale.max(0).unsigned_abs()));
        }
        kept.negative = self.negative && !kept.is_zero();
        Ok(kept)
    }

    fn widened(&self, scale: u8) -> Calculated {
        let integer = usize::from(self.integer_words);
        let (integer, fraction) = self.words[..self.word_count()].split_at(integer);
        Self::from_words(self.negative, integer, fraction, scale)
    }

    /// The digit of 10 to the power of `power`.
    fn digit_at(&self, power: i32) -> u32 {
        let word = self.word_at(power.div_euclid(9) as isize);
        let digit = usize::try_from(power.rem_euclid(9)).expect("a remainder of nine");
        word / POWERS[digit] % 10
    }

    /// True if a digit below 10 to the power of `power` is not 0.
    fn has_digits_below(&self, power: i32) -> bool {
        let mut cut = *self;
        cut.cut(-power);
        cut.cmp_magnitude(self) != std::cmp::Ordering::Equal
    }

    /// Clears digits after `scale`, which is below the number's own and may be negative.
    fn cut(&mut self, scale: i32) {
        let power = -scale;
        let (lowest, digit) = (power.div_euclid(9) as isize, power.rem_euclid(9));
        let unit = POWERS[usize::try_from(digit).expect("a remainder of nine")];
        let mut words = [0u32; 2 * WORDS_MAX];
        let integer = usize::from(self.integer_words);
        let used = self.word_count();
        words[..used].copy_from_slice(&self.words[..used]);
        for (index, word) in words[..used].iter_mut().enumerate() {
            let place =
                isize::from(self.integer_words) - 1 - isize::from(stdx::low_u8(index as u64));
            if place < lowest {
                *word = 0;
            } else if place == lowest {
                *word -= *word % unit;
            }
        }
        let scale = stdx::low_u8(u64::from(scale.max(0).unsigned_abs()));
        let (whole, fraction) = words[..used].split_at(integer);
        *self = Self::from_words(self.negative, whole, fraction, scale)
            .expect("clearing digits needs no more room");
    }

    /// Sets the number to 10 to the power of `-scale`.
    fn set_unit(&mut self, scale: i32) {
        let power = -scale;
        let unit = POWERS[usize::try_from(power.rem_euclid(9)).expect("a remainder of nine")];
        *self = Self::ZERO;
        if scale > 0 {
            self.scale = stdx::low_u8(u64::from(scale.unsigned_abs()));
            let index = fraction_words(self.scale) - 1;
            self.words[index] = unit;
        } else {
            let place = usize::try_from(power / 9).expect("not negative");
            self.integer_words = stdx::low_u8(place as u64 + 1);
            self.words[0] = unit;
        }
    }

    /// The words as one integer with `places` words after the point.
    fn scaled_words(&self, places: usize) -> Vec<u32> {
        let mut words = self.words[..self.word_count()].to_vec();
        words.resize(usize::from(self.integer_words) + places, 0);
        words
    }

    /// The quotient with this many words after the point, truncated.
    fn quotient(&self, other: &Self, places: usize) -> Calculated {
        let right_fraction = fraction_words(other.scale);
        let dividend = self.scaled_words((right_fraction + places).min(WIDE - WORDS_MAX));
        let divisor = other.scaled_words(right_fraction);
        let (quotient, _) = divide_words(&dividend, &divisor);
        let split = quotient.len() - places.min(quotient.len());
        let mut fraction = vec![0; places - (quotient.len() - split)];
        fraction.extend_from_slice(&quotient[split..]);
        let scale = stdx::low_u8((places * WORD_DIGITS) as u64);
        Self::from_words(
            self.negative != other.negative,
            &quotient[..split],
            &fraction,
            scale,
        )
    }
}

fn add_magnitudes(left: &Decimal, right: &Decimal, negative: bool) -> Calculated {
    let scale = left.scale.max(right.scale);
    let integer = usize::from(left.integer_words.max(right.integer_words)) + 1;
    let fraction = fraction_words(scale);
    let mut words = [0u32; 2 * WORDS_MAX + 1];
    let mut carry = 0;
    for (index, word) in words[..integer + fraction].iter_mut().enumerate().rev() {
        let place = signed(integer) - 1 - signed(index);
        let sum = left.word_at(place) + right.word_at(place) + carry;
        carry = u32::from(sum >= BASE);
        *word = if carry == 1 { sum - BASE } else { sum };
    }
    let (whole, fraction) = words[..integer + fraction].split_at(integer);
    Decimal::from_words(negative, whole, fraction, scale)
}

/// `left` must not be the smaller one.
fn subtract_magnitudes(left: &Decimal, right: &Decimal, negative: bool) -> Calculated {
    let scale = left.scale.max(right.scale);
    let integer = usize::from(left.integer_words);
    let fraction = fraction_words(scale);
    let mut words = [0u32; 2 * WORDS_MAX];
    let mut borrow = 0;
    for (index, word) in words[..integer + fraction].iter_mut().enumerate().rev() {
        let place = signed(integer) - 1 - signed(index);
        let (from, taken) = (left.word_at(place), right.word_at(place) + borrow);
        borrow = u32::from(from < taken);
        *word = if borrow == 1 {
            from + BASE - taken
        } else {
            from - taken
        };
    }
    assert!(borrow == 0, "the greater magnitude stands left");
    let (whole, fraction) = words[..integer + fraction].split_at(integer);
    Decimal::from_words(negative, whole, fraction, scale)
}

fn signed(index: usize) -> isize {
    isize::from(stdx::low_u8(index as u64))
}

/// Schoolbook division of integers in words, most significant first: (quotient, remainder), each
/// without leading zeros. Knuth, The Art of Computer Programming 2, 4.3.1, algorithm D.
fn divide_words(dividend: &[u32], divisor: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let divisor = trimmed(divisor);
    let dividend = trimmed(dividend);
    assert!(!divisor.is_empty(), "the caller refuses zero");
    if dividend.len() < divisor.len() {
        return (Vec::new(), dividend.to_vec());
    }
    let base = u64::from(BASE);
    if let [small] = divisor {
        let mut carry = 0u64;
        let mut quotient = Vec::with_capacity(dividend.len());
        for word in dividend {
            let part = carry * base + u64::from(*word);
            quotient.push(stdx::low_u32(part / u64::from(*small)));
            carry = part % u64::from(*small);
        }
        return (
            trimmed(&quotient).to_vec(),
            trimmed(&[stdx::low_u32(carry)]).to_vec(),
        );
    }
    let scaling = base / (u64::from(divisor[0]) + 1);
    let divisor: Vec<u64> = scaled(divisor, scaling);
    let divisor = &divisor[1..];
    let mut rest: Vec<u64> = scaled(dividend, scaling);
    let count = rest.len() - divisor.len();
    let mut quotient = Vec::with_capacity(count);
    for start in 0..count {
        quotient.push(stdx::low_u32(quotient_word(
            &mut rest[start..=start + divisor.len()],
            divisor,
        )));
    }
    let mut carry = 0;
    let mut remainder = Vec::with_capacity(divisor.len());
    for word in &rest[count..] {
        let part = carry * base + word;
        remainder.push(stdx::low_u32(part / scaling));
        carry = part % scaling;
    }
    (trimmed(&quotient).to_vec(), trimmed(&remainder).to_vec())
}

/// One step: estimates the next word from the leading ones, subtracts it from `rest`, and corrects
/// it.
fn quotient_word(rest: &mut [u64], divisor: &[u64]) -> u64 {
    let base = u64::from(BASE);
    let head = rest[0] * base + rest[1];
    let mut guess = (head / divisor[0]).min(base - 1);
    while (head - guess * divisor[0]) < base
        && guess * divisor[1] > (head - guess * divisor[0]) * base + rest[2]
    {
        guess -= 1;
    }
    let mut borrow = 0;
    for index in (0..divisor.len()).rev() {
        let taken = guess * divisor[index] + borrow;
        let cell = &mut rest[index + 1];
        let low = taken % base;
        borrow = taken / base + u64::from(*cell < low);
        *cell = if *cell < low {
            *cell + base - low
        } else {
            *cell - low
        };
    }
    if rest[0] >= borrow {
        rest[0] -= borrow;
        return guess;
    }
    let mut carry = 0;
    for index in (0..divisor.len()).rev() {
        let sum = rest[index + 1] + divisor[index] + carry;
        rest[index + 1] = sum % base;
        carry = sum / base;
    }
    rest[0] = 0;
    guess - 1
}

/// The number times a small factor, one word longer.
fn scaled(words: &[u32], factor: u64) -> Vec<u64> {
    let base = u64::from(BASE);
    let mut product = vec![0; words.len() + 1];
    let mut carry = 0;
    for (index, word) in words.iter().enumerate().rev() {
        let part = u64::from(*word) * factor + carry;
        product[index + 1] = part % base;
        carry = part / base;
    }
    product[0] = carry;
    product
}

fn trimmed(words: &[u32]) -> &[u32] {
    let zeros = words.iter().take_while(|word| **word == 0).count();
    &words[zeros..]
}
