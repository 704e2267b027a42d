//! Implicit conversions of expressions to numbers and temporal values.

use std::borrow::Cow;

use errcode::{ER_TRUNCATED_WRONG_VALUE, ER_WRONG_VALUE};

use crate::decimal::Rounding;
use crate::number::{Integer, parse_double, parse_integer};
use crate::temporal::{Date, DateTime, Time, parse_datetime, parse_time};
use crate::{ColumnType, Decimal, SqlCondition, ValueRef, Warnings};

impl<'a> ValueRef<'a> {
    /// As a double; `None` for NULL. A text counts by its numeric prefix.
    #[inline]
    pub fn to_f64(self, warnings: &mut Warnings) -> Option<f64> {
        Some(match self {
            Self::Null => return None,
            Self::Int(number) => stdx::i64_to_f64(number),
            Self::UInt(number) => stdx::u64_to_f64(number),
            Self::Float(number) => f64::from(number),
            Self::Double(number) => number,
            Self::Decimal(number) => number.to_decimal().to_f64(),
            Self::Bytes(text) => {
                let parsed = parse_double(text);
                if !parsed.whole || parsed.overflow {
                    warnings.warn(truncated("DOUBLE", text));
                }
                parsed.value
            }
            Self::Date(date) => stdx::u64_to_f64(date.to_number()),
            Self::Time(time) => {
                fractional(time.to_number(), time.microsecond(), time.is_negative())
            }
            Self::DateTime(time) => {
                fractional(time.to_number().cast_signed(), time.microsecond(), false)
            }
        })
    }

    /// As an exact number; `None` for NULL.
    pub fn to_decimal(self, warnings: &mut Warnings) -> Option<Decimal> {
        Some(match self {
            Self::Null => return None,
            Self::Int(number) => Decimal::from(number),
            Self::UInt(number) => Decimal::from(number),
            Self::Float(number) => decimal_of(f64::from(number)),
            Self::Double(number) => decimal_of(number),
            Self::Decimal(number) => number.to_decimal(),
            Self::Bytes(text) => {
                let parsed = Decimal::parse_prefix(text);
                let rest = text.get(parsed.used..).unwrap_or(&[]);
                if parsed.used == 0 || parsed.overflow || !rest.iter().all(u8::is_ascii_whitespace)
                {
                    warnings.warn(truncated("DECIMAL", text));
                }
                parsed.value
            }
            Self::Date(date) => Decimal::from(date.to_number()),
            Self::Time(time) => {
                let sign = if time.is_negative() { "-" } else { "" };
                let number = time.to_number().unsigned_abs();
                decimal_text(&format!("{sign}{number}.{:06}", time.microsecond()))
            }
            Self::DateTime(time) => {
                decimal_text(&format!("{}.{:06}", time.to_number(), time.microsecond()))
            }
        })
    }

    /// As an integer; `None` for NULL. Fractions are rounded; a text is read up to its first other
    /// byte.
    pub fn to_integer(self, warnings: &mut Warnings) -> Option<Integer> {
        Some(match self {
            Self::Null => return None,
            Self::Int(number) => Integer::Signed(number),
            Self::UInt(number) => Integer::Unsigned(number),
            Self::Float(number) => integer_of(f64::from(number)),
            Self::Double(number) => integer_of(number),
            Self::Decimal(number) => decimal_to_integer(&number.to_decimal()),
            Self::Bytes(text) => {
                let parsed = parse_integer(text);
                if !parsed.whole || parsed.overflow {
                    warnings.warn(truncated("INTEGER", text));
                }
                parsed.value
            }
            Self::Date(date) => Integer::Unsigned(date.to_number()),
            Self::Time(time) => Integer::Signed(time.to_number()),
            Self::DateTime(time) => Integer::Unsigned(time.to_number()),
        })
    }

    /// As an integer, clamped to `i64`; `None` for NULL.
    pub fn to_i64(self, warnings: &mut Warnings) -> Option<i64> {
        self.to_integer(warnings).map(Integer::clamped)
    }

    /// As a truth value; `None` for NULL.
    #[inline]
    pub fn to_bool(self, warnings: &mut Warnings) -> Option<bool> {
        match self {
            Self::Null => None,
            Self::Int(number) => Some(number != 0),
            Self::UInt(number) => Some(number != 0),
            Self::Decimal(number) => Some(!number.to_decimal().is_zero()),
            _ => self.to_f64(warnings).map(|number| number != 0.0),
        }
    }

    /// As text in the type's character set; `None` for NULL. Bytes are borrowed.
    pub fn to_text(self, column: &ColumnType) -> Option<Cow<'a, [u8]>> {
        match self {
            Self::Null => None,
            Self::Bytes(bytes) => Some(Cow::Borrowed(bytes)),
            _ => {
                let mut text = Vec::with_capacity(24);
                self.append_text(column, &mut text);
                Some(Cow::Owned(text))
            }
        }
    }

    /// As date and time. `None` for NULL, and with a warning for an invalid value. A TIME is on
    /// `today`.
    pub fn to_datetime(self, today: Date, warnings: &mut Warnings) -> Option<DateTime> {
        match self {
            Self::Null => None,
            Self::Date(date) => Some(date.at_midnight()),
            Self::DateTime(time) => Some(time),
            Self::Time(time) => today.at_midnight().plus_micros(time.micros()),
            Self::Bytes(text) => {
                let parsed = parse_datetime(text);
                let found = parsed
                    .map(|parsed| parsed.value)
                    .filter(|value| date_exists(value.date()));
                if found.is_none() {
                    warnings.warn(truncated("datetime", text));
                } else if parsed.is_some_and(|parsed| parsed.truncated) {
                    warnings.warn(read_in_part("datetime", text));
                }
                found
            }
            Self::Int(_) | Self::UInt(_) | Self::Float(_) | Self::Double(_) | Self::Decimal(_) => {
                let number = self.to_decimal(warnings)?;
                let value = datetime_of_number(&number);
                if value.is_none() {
                    warnings.warn(truncated("datetime", number.to_string().as_bytes()));
                }
                value
            }
        }
    }

    /// As [`to_datetime`](Self::to_datetime), with the rule of comparisons: a day that its month
    /// lacks counts as written.
    pub fn to_compared_datetime(self, today: Date, warnings: &mut Warnings) -> Option<DateTime> {
        match self {
            Self::Bytes(text) => {
                let parsed = parse_datetime(text);
                if parsed.is_none_or(|parsed| parsed.truncated) {
                    warnings.warn(read_in_part("datetime", text));
                }
                parsed.map(|parsed| parsed.value)
            }
            Self::Int(_) | Self::UInt(_) | Self::Float(_) | Self::Double(_) | Self::Decimal(_) => {
                let number = self.to_decimal(warnings)?;
                let value = parts_of_number(&number);
                if value.is_none() {
                    warnings.warn(read_in_part("datetime", number.to_string().as_bytes()));
                }
                value
            }
            _ => self.to_datetime(today, warnings),
        }
    }

    /// As [`to_time`](Self::to_time), with the warnings of comparisons.
    pub fn to_compared_time(self, warnings: &mut Warnings) -> Option<Time> {
        if let Self::Bytes(text) = self
            && parse_time(text).is_none()
        {
            warnings.warn(read_in_part("time", text));
            return None;
        }
        self.to_time(warnings)
    }

    /// As a duration. `None` for NULL, and with a warning for an invalid value.
    pub fn to_time(self, warnings: &mut Warnings) -> Option<Time> {
        match self {
            Self::Null => None,
            Self::Time(time) => Some(time),
            Self::Date(_) => Some(Time::ZERO),
            Self::DateTime(time) => Some(time.time()),
            Self::Bytes(text) => {
                let parsed = parse_time(text);
                match parsed {
                    None => warnings.warn(truncated("time", text)),
                    Some(parsed) if parsed.truncated || parsed.out_of_range => {
                        warnings.warn(read_in_part("time", text));
                    }
                    Some(_) => {}
                }
                parsed.map(|parsed| parsed.value)
            }
            Self::Int(_) | Self::UInt(_) | Self::Float(_) | Self::Double(_) | Self::Decimal(_) => {
                let number = self.to_decimal(warnings)?;
                let found = time_of_number(&number);
                if found.is_none_or(|found| found.out_of_range) {
                    warnings.warn(truncated("time", number.to_string().as_bytes()));
                }
                found.map(|found| found.value)
            }
        }
    }
}

impl Integer {
    /// As `i64`, clamped.
    pub fn clamped(self) -> i64 {
        match self {
            Self::Signed(number) => number,
            Self::Unsigned(number) => i64::try_from(number).unwrap_or(i64::MAX),
        }
    }

    /// The 64 bits, two's complement.
    pub const fn bits(self) -> u64 {
        match self {
            Self::Signed(number) => number.cast_unsigned(),
            Self::Unsigned(number) => number,
        }
    }

    /// As a value: unsigned only if necessary.
    pub fn to_i128(self) -> i128 {
        match self {
            Self::Signed(number) => i128::from(number),
            Self::Unsigned(number) => i128::from(number),
        }
    }
}

/// A value as error messages show it: the well-formed text, other bytes as `\\xFF`.
pub fn shown_in_error(text: &[u8], charset: crate::Charset) -> String {
    let charset = match charset {
        crate::Charset::Binary => crate::Charset::Utf8mb4,
        named => named,
    };
    let mut shown = String::new();
    let mut rest = charset.prefix(text, 128);
    while let Some(first) = rest.first() {
        let length = match charset.decode(rest) {
            Some((code, length)) => {
                // The server's messages only contain the basic plane.
                shown.push(
                    char::from_u32(code)
                        .filter(|_| code <= 0xFFFF)
                        .unwrap_or('?'),
                );
                length
            }
            None => {
                shown.push_str(&format!("\\x{first:02X}"));
                1
            }
        };
        rest = rest.get(length..).unwrap_or(&[]);
    }
    shown
}

/// Warning 1292: `Truncated incorrect DOUBLE value: '12abc'`.
pub fn truncated(kind: &str, text: &[u8]) -> SqlCondition {
    let shown = shown_in_error(text, crate::Charset::Utf8mb4);
    let format_code = if kind.starts_with(|first: char| first.is_ascii_lowercase()) {
        ER_WRONG_VALUE
    } else {
        ER_TRUNCATED_WRONG_VALUE
    };
    SqlCondition::with_format_of(ER_TRUNCATED_WRONG_VALUE, format_code, &[&kind, &shown])
}

/// The same for a text of which a part was used: `Truncated incorrect time value: '839:00:00'`.
pub fn read_in_part(kind: &str, text: &[u8]) -> SqlCondition {
    let shown = shown_in_error(text, crate::Charset::Utf8mb4);
    SqlCondition::new(ER_TRUNCATED_WRONG_VALUE, &[&kind, &shown])
}

/// YYMMDD, YYYYMMDD, YYMMDDHHMMSS or YYYYMMDDHHMMSS as date and time.
pub fn datetime_of_number(number: &Decimal) -> Option<DateTime> {
    parts_of_number(number).filter(|value| date_exists(value.date()))
}

/// The same with parts in range, whether the day exists or not.
fn parts_of_number(number: &Decimal) -> Option<DateTime> {
    if number.is_negative() {
        return None;
    }
    let whole = number.round(0, Rounding::Truncate).ok()?;
    let micros = micros_of_fraction(number, &whole)?;
    let whole = whole.to_u64().ok()?;
    // The number of digits determines the century; numbers in between are no dates.
    let full = match whole {
        0 => {
            let time = Time::from_parts(false, 0, 0, 0, micros);
            return Some(DateTime::new(Date::ZERO, time));
        }
        101..=691_231 => (whole + 20_000_000) * 1_000_000,
        700_101..=991_231 => (whole + 19_000_000) * 1_000_000,
        10_000_101..=99_991_231 => whole * 1_000_000,
        101_000_000..=691_231_235_959 => whole + 20_000_000_000_000,
        700_101_000_000..=991_231_235_959 => whole + 19_000_000_000_000,
        10_000_101_000_000..=99_991_231_235_959 => whole,
        _ => return None,
    };
    let (date, time) = (full / 1_000_000, full % 1_000_000);
    let (year, month, day) = (date / 10_000, date / 100 % 100, date % 100);
    let (hour, minute, second) = (time / 10_000, time / 100 % 100, time % 100);
    if year > 9999 || month > 12 || day > 31 || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let date = Date::new(stdx::low_u16(year), stdx::low_u8(month), stdx::low_u8(day));
    let (minute, second) = (stdx::low_u8(minute), stdx::low_u8(second));
    let time = Time::from_parts(false, stdx::low_u32(hour), minute, second, micros);
    Some(DateTime::new(date, time))
}

fn micros_of_fraction(number: &Decimal, whole: &Decimal) -> Option<u32> {
    let fraction = number
        .subtract(whole)
        .ok()?
        .multiply(&Decimal::from(1_000_000u64))
        .ok()?;
    let micros = fraction
        .round(0, Rounding::Truncate)
        .ok()?
        .abs()
        .to_u64()
        .ok()?;
    u32::try_from(micros).ok()
}

/// The result of [`time_of_number`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeOfNumber {
    /// The value, clamped.
    pub value: Time,
    /// The hours were out of range.
    pub out_of_range: bool,
    /// The number was a date with time; the date is dropped.
    pub dated: bool,
}

/// HHMMSS as a duration; a number of more digits as the time of a DATETIME.
pub fn time_of_number(number: &Decimal) -> Option<TimeOfNumber> {
    let found = |value, out_of_range, dated| {
        Some(TimeOfNumber {
            value,
            out_of_range,
            dated,
        })
    };
    let whole = number.round(0, Rounding::Truncate).ok()?;
    let micros = micros_of_fraction(number, &whole)?;
    let magnitude = whole.abs().to_u64().unwrap_or_else(|bound| bound);
    // Numbers with this many digits are dates with time; the last one is 9999-12-31 23:59:59.
    if (10_000_000..99_991_231_235_959).contains(&magnitude) && !number.is_negative() {
        return found(parts_of_number(number)?.time(), false, true);
    }
    if magnitude / 10_000 > 838 {
        return found(
            if number.is_negative() {
                Time::MIN
            } else {
                Time::MAX
            },
            true,
            false,
        );
    }
    let (minute, second) = (magnitude / 100 % 100, magnitude % 100);
    if minute > 59 || second > 59 {
        return None;
    }
    let hour = stdx::low_u32(magnitude / 10_000);
    let (minute, second) = (stdx::low_u8(minute), stdx::low_u8(second));
    found(
        Time::from_parts(number.is_negative(), hour, minute, second, micros),
        false,
        false,
    )
}

/// True if the month has that day, or the date is partial.
pub fn date_exists(date: Date) -> bool {
    date.check(crate::temporal::DateRules::default())
}

/// The exact number nearest to a double, clamped.
pub fn decimal_of(number: f64) -> Decimal {
    Decimal::from_f64(number).map_or(Decimal::ZERO, |parsed| parsed.value)
}

/// The integer nearest to a double (half to even, as `rint`), clamped.
pub fn integer_of(number: f64) -> Integer {
    let rounded = number.round_ties_even();
    if rounded < 0.0 {
        Integer::Signed(stdx::f64_to_i64(rounded))
    } else {
        Integer::Unsigned(stdx::f64_to_u64(rounded))
    }
}

/// The integer nearest to an exact number, clamped.
pub fn decimal_to_integer(number: &Decimal) -> Integer {
    if number.is_negative() {
        Integer::Signed(number.to_i64().unwrap_or_else(|bound| bound))
    } else {
        Integer::Unsigned(number.to_u64().unwrap_or_else(|bound| bound))
    }
}

fn decimal_text(text: &str) -> Decimal {
    Decimal::parse_prefix(text.as_bytes()).value
}

fn fractional(whole: i64, micros: u32, negative: bool) -> f64 {
    let fraction = f64::from(micros) / 1e6;
    stdx::i64_to_f64(whole) + if negative { -fraction } else { fraction }
}
