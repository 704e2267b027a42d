//! Stores into numeric columns.

use errcode::{ER_TRUNCATED_WRONG_VALUE, ER_TRUNCATED_WRONG_VALUE_FOR_FIELD};

use super::Store;
use crate::convert::decimal_of;
use crate::decimal::Rounding;
use crate::number::{Integer, parse_double};
use crate::temporal::full_year;
use crate::{ColumnType, Decimal, SqlCondition, TypeKind, Value, ValueRef};

impl Store<'_> {
    pub(super) fn integer(&mut self, value: ValueRef<'_>) -> Result<Value, SqlCondition> {
        let number = match value {
            ValueRef::Int(number) => i128::from(number),
            ValueRef::UInt(number) => i128::from(number),
            ValueRef::Float(number) => double_to_integer(f64::from(number)),
            ValueRef::Double(number) => double_to_integer(number),
            ValueRef::Bytes(text) => return self.integer_of_text(text),
            _ => {
                let mut silent = crate::Warnings::new(0);
                let number = value.to_decimal(&mut silent).unwrap_or(Decimal::ZERO);
                let temporal = !matches!(value, ValueRef::Decimal(_));
                let rounding = if temporal {
                    Rounding::Truncate
                } else {
                    Rounding::HalfUp
                };
                decimal_to_integer(&number, rounding)
            }
        };
        self.ranged(number)
    }

    /// The integer in the column's range, or the nearest bound with an error or warning.
    fn ranged(&mut self, number: i128) -> Result<Value, SqlCondition> {
        let (least, greatest) = (
            i128::from(self.to.integer_min()),
            i128::from(self.to.integer_max()),
        );
        let clamped = number.clamp(least, greatest);
        if clamped != number {
            self.out_of_range()?;
        }
        Ok(if self.to.unsigned {
            Value::UInt(u64::try_from(clamped).expect("clamped to the range"))
        } else {
            Value::Int(i64::try_from(clamped).expect("clamped to the range"))
        })
    }

    fn integer_of_text(&mut self, text: &[u8]) -> Result<Value, SqlCondition> {
        let text = self.ascii(text);
        let parsed = Decimal::parse_prefix(&text);
        if parsed.used == 0 {
            self.incorrect(ER_TRUNCATED_WRONG_VALUE_FOR_FIELD, "integer", &text)?;
            return self.ranged(0);
        }
        let number = if parsed.overflow {
            if parsed.value.is_negative() {
                i128::MIN
            } else {
                i128::MAX
            }
        } else {
            decimal_to_integer(&parsed.value, Rounding::HalfUp)
        };
        let (least, greatest) = (
            i128::from(self.to.integer_min()),
            i128::from(self.to.integer_max()),
        );
        if (least..=greatest).contains(&number) {
            self.rest_of_text(&text, parsed.used)?;
        }
        self.ranged(number)
    }

    /// A note for blanks after a number, an error or warning for anything else.
    fn rest_of_text(&mut self, text: &[u8], used: usize) -> Result<(), SqlCondition> {
        let rest = text.get(used..).unwrap_or(&[]);
        if rest.is_empty() {
            return Ok(());
        }
        if rest.iter().all(u8::is_ascii_whitespace) {
            self.note_truncated();
            return Ok(());
        }
        self.data_truncated()
    }

    pub(super) fn floating(&mut self, value: ValueRef<'_>) -> Result<Value, SqlCondition> {
        let number = match value {
            ValueRef::Bytes(text) => {
                let text = self.ascii(text);
                let parsed = parse_double(&text);
                if parsed.empty {
                    self.incorrect(ER_TRUNCATED_WRONG_VALUE_FOR_FIELD, "double", &text)?;
                } else if parsed.overflow {
                    self.out_of_range()?;
                } else if !parsed.whole {
                    self.data_truncated()?;
                } else if text.last().is_some_and(u8::is_ascii_whitespace) {
                    self.note_truncated();
                }
                parsed.value
            }
            _ => value.to_f64(&mut crate::Warnings::new(0)).unwrap_or(0.0),
        };
        let number = self.floating_in_range(number)?;
        Ok(if self.to.kind == TypeKind::Float {
            Value::Float(stdx::f64_to_f32(number))
        } else {
            Value::Double(number)
        })
    }

    fn floating_in_range(&mut self, number: f64) -> Result<f64, SqlCondition> {
        if self.to.unsigned && number < 0.0 {
            self.out_of_range()?;
            return Ok(0.0);
        }
        let mut bound = if self.to.kind == TypeKind::Float {
            f64::from(f32::MAX)
        } else {
            f64::MAX
        };
        let mut number = number;
        if self.to.decimals < ColumnType::NOT_FIXED {
            let digits = i32::try_from(self.to.length).unwrap_or(255) - i32::from(self.to.decimals);
            let unit = 10f64.powi(-i32::from(self.to.decimals));
            bound = bound.min(10f64.powi(digits) - unit);
            number = round_to(number, self.to.decimals);
        }
        if number.abs() > bound {
            self.out_of_range()?;
            return Ok(bound.copysign(number));
        }
        Ok(number)
    }

    pub(super) fn decimal(&mut self, value: ValueRef<'_>) -> Result<Value, SqlCondition> {
        let number = match value {
            ValueRef::Bytes(text) => {
                let text = self.ascii(text);
                let parsed = Decimal::parse_prefix(&text);
                if parsed.used == 0 {
                    self.incorrect(ER_TRUNCATED_WRONG_VALUE_FOR_FIELD, "decimal", &text)?;
                } else {
                    self.rest_of_text(&text, parsed.used)?;
                }
                parsed.value
            }
            ValueRef::Float(number) => decimal_of(f64::from(number)),
            ValueRef::Double(number) => decimal_of(number),
            _ => value
                .to_decimal(&mut crate::Warnings::new(0))
                .unwrap_or(Decimal::ZERO),
        };
        let precision = u8::try_from(self.to.length).unwrap_or(Decimal::PRECISION_MAX);
        let scale = self.to.decimals;
        if self.to.unsigned && number.is_negative() {
            self.out_of_range()?;
            return Ok(Value::Decimal(Decimal::ZERO));
        }
        let rounded = number
            .round(i32::from(scale), Rounding::HalfUp)
            .unwrap_or(number);
        if rounded.integer_digits() > usize::from(precision - scale) {
            self.out_of_range()?;
            let bound = Decimal::greatest(precision, scale);
            return Ok(Value::Decimal(if number.is_negative() {
                bound.negated()
            } else {
                bound
            }));
        }
        if rounded != number {
            self.note_truncated();
        }
        Ok(Value::Decimal(rounded))
    }

    pub(super) fn bit(&mut self, value: ValueRef<'_>) -> Result<Value, SqlCondition> {
        let greatest = u64::MAX >> (64 - self.to.length.clamp(1, 64));
        let number = match value {
            ValueRef::Bytes(bytes) => {
                let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
                match &bytes[zeros..] {
                    significant if significant.len() > 8 => None,
                    significant => Some(
                        significant
                            .iter()
                            .fold(0u64, |sum, byte| sum << 8 | u64::from(*byte)),
                    ),
                }
            }
            ValueRef::Decimal(number) if number.to_decimal().is_negative() => {
                self.out_of_range()?;
                return Ok(Value::UInt(0));
            }
            ValueRef::Double(number) => Some(stdx::f64_to_i64(number).cast_unsigned()),
            _ => value
                .to_integer(&mut crate::Warnings::new(0))
                .map(Integer::bits),
        };
        match number {
            Some(number) if number <= greatest => Ok(Value::UInt(number)),
            _ => {
                if self.rules.strict {
                    self.too_long()?;
                }
                self.out_of_range()?;
                Ok(Value::UInt(greatest))
            }
        }
    }

    pub(super) fn year(&mut self, value: ValueRef<'_>) -> Result<Value, SqlCondition> {
        let (number, four_digits) = match value {
            ValueRef::Bytes(text) => {
                let text = self.ascii(text);
                let parsed = Decimal::parse_prefix(&text);
                if parsed.used == 0 {
                    self.incorrect(ER_TRUNCATED_WRONG_VALUE_FOR_FIELD, "integer", &text)?;
                    return Ok(Value::UInt(0));
                }
                let number = decimal_to_integer(&parsed.value, Rounding::HalfUp);
                if (0..100).contains(&number) || (1901..=2155).contains(&number) {
                    self.rest_of_text(&text, parsed.used)?;
                }
                (number, text.len() == 4)
            }
            ValueRef::Date(_) | ValueRef::DateTime(_) | ValueRef::Time(_) => {
                return self.year_of_temporal(value);
            }
            ValueRef::Double(number) => (i128::from(stdx::f64_to_i64(number)), false),
            _ => {
                let number = value.to_integer(&mut crate::Warnings::new(0));
                (number.map_or(0, Integer::to_i128), false)
            }
        };
        let is_text = matches!(value, ValueRef::Bytes(_));
        let to_year = |number| u16::try_from(number).expect("a year is short");
        let had_two_digits = self.from.has_years_of_two_digits();
        let year = match number {
            0 if !had_two_digits && (!is_text || four_digits) => 0,
            0..100 => full_year(to_year(number)),
            1901..=2155 => to_year(number),
            _ => {
                self.out_of_range()?;
                0
            }
        };
        Ok(Value::UInt(if self.to.has_years_of_two_digits() {
            u64::from(year % 100)
        } else {
            u64::from(year)
        }))
    }

    fn year_of_temporal(&mut self, value: ValueRef<'_>) -> Result<Value, SqlCondition> {
        let (kind, year) = match value {
            ValueRef::Date(date) => ("date", date.year()),
            ValueRef::DateTime(time) => ("datetime", time.date().year()),
            _ => ("time", 0),
        };
        if self.rules.strict {
            let mut shown = self.from.clone();
            if shown.decimals > 0 {
                shown.decimals = 6;
            }
            let text = value.to_text(&shown).unwrap_or_default();
            self.incorrect(ER_TRUNCATED_WRONG_VALUE, kind, &text)?;
        }
        self.data_truncated()?;
        self.year(ValueRef::UInt(u64::from(year)))
    }

    /// The text as ASCII for parsing numbers; character sets here all contain it.
    fn ascii<'t>(&self, text: &'t [u8]) -> std::borrow::Cow<'t, [u8]> {
        std::borrow::Cow::Borrowed(text)
    }
}

/// Rounded to this many digits after the point.
pub(crate) fn round_to(number: f64, decimals: u8) -> f64 {
    format!("{number:.*}", usize::from(decimals))
        .parse()
        .unwrap_or(number)
}

fn double_to_integer(number: f64) -> i128 {
    let rounded = number.round_ties_even();
    if rounded <= stdx::i64_to_f64(i64::MIN) {
        return if rounded < stdx::i64_to_f64(i64::MIN) {
            i128::MIN
        } else {
            i128::from(i64::MIN)
        };
    }
    if rounded >= stdx::u64_to_f64(u64::MAX) {
        return i128::MAX;
    }
    if rounded < 0.0 {
        i128::from(stdx::f64_to_i64(rounded))
    } else {
        i128::from(stdx::f64_to_u64(rounded))
    }
}

fn decimal_to_integer(number: &Decimal, rounding: Rounding) -> i128 {
    let rounded = number.round(0, rounding).unwrap_or(*number);
    let magnitude = rounded.abs().to_u64().map_or(i128::MAX, i128::from);
    if number.is_negative() {
        -magnitude
    } else {
        magnitude
    }
}
