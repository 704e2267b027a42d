//! DATE, TIME and DATETIME as packed integers that compare in the order of time.
//!
//! ```text
//! Date      u32: year << 9 | month << 5 | day
//! DateTime  u64: Date << 37 | hour << 32 | minute << 26 | second << 20 | microsecond
//! Time      i64: microseconds, negative before zero
//! ```
//!
//! Zero and partial dates (`0000-00-00`, `2024-00-15`) are ordinary values; `sql_mode` decides what
//! a statement may store ([`Date::check`]).

mod calendar;
mod format;
mod parse;
mod zone;

pub use calendar::{day_number, days_in_month, is_leap_year};
pub use format::{append_date, append_datetime, append_time};
pub use parse::{ParsedDateTime, ParsedTime, full_year, parse_datetime, parse_time};
pub use zone::{Zone, is_timestamp};

/// Microseconds of a second.
pub const SECOND_MICROS: i64 = 1_000_000;
/// Microseconds of a day.
pub const DAY_MICROS: i64 = 86_400 * SECOND_MICROS;

/// A calendar date; parts may be zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Date(u32);

/// A date with time of day, to microseconds, without a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DateTime(u64);

/// A duration of at most 838:59:59.999999 to either side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(i64);

/// Rules for dates, by `sql_mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DateRules {
    /// NO_ZERO_DATE: `0000-00-00` is refused.
    pub no_zero_date: bool,
    /// NO_ZERO_IN_DATE: a zero month or day is refused.
    pub no_zero_in_date: bool,
    /// ALLOW_INVALID_DATES: days up to 31 in every month.
    pub allow_invalid: bool,
}

impl Date {
    /// `0000-00-00`.
    pub const ZERO: Self = Self(0);
    /// `9999-12-31`.
    pub const MAX: Self = Self(9999 << 9 | 12 << 5 | 31);

    /// A date with these parts, which must fit their fields (up to 9999, 15, 31).
    pub const fn new(year: u16, month: u8, day: u8) -> Self {
        assert!(year <= 9999 && month <= 15 && day <= 31);
        Self((year as u32) << 9 | (month as u32) << 5 | day as u32)
    }

    /// The packed integer, below 2^23.
    pub const fn packed(self) -> u32 {
        self.0
    }

    /// The date of a packed integer, or `None` if it is invalid.
    pub const fn from_packed(packed: u32) -> Option<Self> {
        let date = Self(packed);
        if packed >> 9 <= 9999 && date.month() <= 12 {
            Some(date)
        } else {
            None
        }
    }

    /// 0 to 9999.
    pub const fn year(self) -> u16 {
        stdx::low_u16((self.0 >> 9) as u64)
    }

    /// 0 to 12.
    pub const fn month(self) -> u8 {
        stdx::low_u8((self.0 >> 5 & 15) as u64)
    }

    /// 0 to 31.
    pub const fn day(self) -> u8 {
        stdx::low_u8((self.0 & 31) as u64)
    }

    /// True for `0000-00-00`.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// True if month or day is zero.
    pub const fn has_zero_part(self) -> bool {
        self.month() == 0 || self.day() == 0
    }

    /// True if the date obeys the rules.
    pub fn check(self, rules: DateRules) -> bool {
        if self.is_zero() {
            return !rules.no_zero_date;
        }
        if self.has_zero_part() {
            return !rules.no_zero_in_date && self.month() <= 12;
        }
        let limit = if rules.allow_invalid {
            31
        } else {
            days_in_month(self.year(), self.month())
        };
        self.month() <= 12 && self.day() <= limit
    }

    /// As YYYYMMDD.
    pub fn to_number(self) -> u64 {
        u64::from(self.year()) * 10_000 + u64::from(self.month()) * 100 + u64::from(self.day())
    }

    /// Midnight of the date.
    pub const fn at_midnight(self) -> DateTime {
        DateTime((self.0 as u64) << 37)
    }
}

impl DateTime {
    /// `0000-00-00 00:00:00`.
    pub const ZERO: Self = Self(0);

    /// That time of day on that date; `time` must be below 24 hours and not negative.
    pub fn new(date: Date, time: Time) -> Self {
        assert!(0 <= time.0 && time.0 < DAY_MICROS);
        let seconds = time.0.unsigned_abs() / 1_000_000;
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let packed = (hour << 32) | (minute << 26) | (second << 20);
        Self((u64::from(date.0) << 37) | packed | (time.0.unsigned_abs() % 1_000_000))
    }

    /// The packed integer, below 2^60.
    pub const fn packed(self) -> u64 {
        self.0
    }

    /// The value of a packed integer, or `None` if it is invalid.
    pub fn from_packed(packed: u64) -> Option<Self> {
        let value = Self(packed);
        let valid = packed >> 60 == 0
            && Date::from_packed(stdx::low_u32(packed >> 37)).is_some()
            && value.hour() < 24
            && value.minute() < 60
            && value.second() < 60
            && value.microsecond() < 1_000_000;
        valid.then_some(value)
    }

    /// The date part.
    pub const fn date(self) -> Date {
        Date(stdx::low_u32(self.0 >> 37))
    }

    /// The time of day.
    pub fn time(self) -> Time {
        let seconds = i64::from(self.hour()) * 3600
            + i64::from(self.minute()) * 60
            + i64::from(self.second());
        Time(seconds * SECOND_MICROS + i64::from(self.microsecond()))
    }

    /// 0 to 23.
    pub const fn hour(self) -> u8 {
        stdx::low_u8(self.0 >> 32 & 31)
    }

    /// 0 to 59.
    pub const fn minute(self) -> u8 {
        stdx::low_u8(self.0 >> 26 & 63)
    }

    /// 0 to 59.
    pub const fn second(self) -> u8 {
        stdx::low_u8(self.0 >> 20 & 63)
    }

    /// 0 to 999,999.
    pub const fn microsecond(self) -> u32 {
        stdx::low_u32(self.0 & 0xF_FFFF)
    }

    /// As YYYYMMDDHHMMSS.
    pub fn to_number(self) -> u64 {
        self.date().to_number() * 1_000_000
            + u64::from(self.hour()) * 10_000
            + u64::from(self.minute()) * 100
            + u64::from(self.second())
    }

    /// Truncated to `fsp` fractional digits.
    #[must_use]
    pub fn truncated(self, fsp: u8) -> Self {
        Self(self.0 - u64::from(self.microsecond() % micros_unit(fsp)))
    }

    /// Rounded to `fsp` fractional digits, half up. `None` past the year 9999, or if a partial date
    /// would have to change.
    pub fn rounded(self, fsp: u8) -> Option<Self> {
        let unit = micros_unit(fsp);
        if self.microsecond() % unit < unit.div_ceil(2) || unit == 1 {
            return Some(self.truncated(fsp));
        }
        self.truncated(fsp).plus_micros(i64::from(unit))
    }
}

impl Time {
    /// 00:00:00.
    pub const ZERO: Self = Self(0);
    /// 838:59:59.999999.
    pub const MAX: Self = Self((838 * 3600 + 59 * 60 + 59) * SECOND_MICROS + 999_999);
    /// -838:59:59.999999.
    pub const MIN: Self = Self(-Self::MAX.0);

    /// This many microseconds, clamped to the range of TIME.
    pub fn from_micros(micros: i64) -> Self {
        Self(micros.clamp(Self::MIN.0, Self::MAX.0))
    }

    /// This many microseconds, or `None` out of the range of TIME.
    pub fn from_micros_checked(micros: i64) -> Option<Self> {
        (Self::MIN.0..=Self::MAX.0)
            .contains(&micros)
            .then_some(Self(micros))
    }

    /// A time with these parts, clamped.
    pub fn from_parts(negative: bool, hour: u32, minute: u8, second: u8, micros: u32) -> Self {
        let seconds = i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second);
        let total = seconds * SECOND_MICROS + i64::from(micros);
        Self::from_micros(if negative { -total } else { total })
    }

    /// Microseconds, negative before zero.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// True before zero.
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// Whole hours without sign, 0 to 838.
    pub fn hour(self) -> u16 {
        stdx::low_u16(self.0.unsigned_abs() / 3_600_000_000)
    }

    /// 0 to 59.
    pub fn minute(self) -> u8 {
        stdx::low_u8(self.0.unsigned_abs() / 60_000_000 % 60)
    }

    /// 0 to 59.
    pub fn second(self) -> u8 {
        stdx::low_u8(self.0.unsigned_abs() / 1_000_000 % 60)
    }

    /// 0 to 999,999.
    pub fn microsecond(self) -> u32 {
        stdx::low_u32(self.0.unsigned_abs() % 1_000_000)
    }

    /// As HHMMSS, negative before zero.
    pub fn to_number(self) -> i64 {
        let number = i64::from(self.hour()) * 10_000
            + i64::from(self.minute()) * 100
            + i64::from(self.second());
        if self.is_negative() { -number } else { number }
    }

    /// Truncated to `fsp` fractional digits, towards zero.
    #[must_use]
    pub fn truncated(self, fsp: u8) -> Self {
        Self(self.0 - self.0 % i64::from(micros_unit(fsp)))
    }

    /// The time one unit of `fsp` fractional digits earlier, clamped.
    #[must_use]
    pub fn before(self, fsp: u8) -> Self {
        Self::from_micros(self.0 - i64::from(micros_unit(fsp)))
    }

    /// Rounded to `fsp` fractional digits, half away from zero, clamped.
    #[must_use]
    pub fn rounded(self, fsp: u8) -> Self {
        let unit = i64::from(micros_unit(fsp));
        let half = unit / 2 * self.0.signum();
        Self::from_micros(self.0 + half).truncated(fsp)
    }
}

/// Microseconds of the last shown digit; `fsp` above 6 counts as 6.
pub(crate) fn micros_unit(fsp: u8) -> u32 {
    10u32.pow(6 - u32::from(fsp.min(6)))
}

#[cfg(test)]
mod tests;
