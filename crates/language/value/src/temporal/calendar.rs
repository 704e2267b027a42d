//! Days and dates of the proleptic Gregorian calendar, as MySQL counts them.

use super::{DAY_MICROS, Date, DateTime, Time};

/// The day number of 9999-12-31, the last one.
pub(super) const DAY_NUMBER_MAX: i64 = 3_652_424;

/// Days of the month; 31 for months out of range.
pub const fn days_in_month(year: u16, month: u8) -> u8 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap_year(year) => 29,
        2 => 28,
        _ => 31,
    }
}

/// True if February has 29 days. The year 0 has 28, as in MySQL.
pub const fn is_leap_year(year: u16) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || (year.is_multiple_of(400) && year != 0))
}

/// Days since the (fictitious) 0000-00-00: 0000-01-01 is 1, 1970-01-01 is 719,528. For a partial
/// date, what `TO_DAYS` returns.
pub fn day_number(date: Date) -> i64 {
    if date.is_zero() {
        return 0;
    }
    let (mut year, month, day) = (
        i64::from(date.year()),
        i64::from(date.month()),
        i64::from(date.day()),
    );
    if year == 0 && month == 0 {
        return day;
    }
    let mut days = 365 * year + 31 * (month - 1) + day;
    if month <= 2 {
        year -= 1;
    } else {
        days -= (month * 4 + 23) / 10;
    }
    days + year / 4 - (year / 100 + 1) * 3 / 4
}

impl Date {
    /// The date of a day number, or `None` outside of 0001-01-01 (366) to 9999-12-31.
    pub fn from_day_number(days: i64) -> Option<Self> {
        if !(366..=DAY_NUMBER_MAX).contains(&days) {
            return None;
        }
        // Years are counted from March, so that the leap day is the last of its year.
        let shifted = days - 60;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 {
            shifted_month + 3
        } else {
            shifted_month - 9
        };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        Some(Self::new(
            stdx::low_u16(year.unsigned_abs()),
            stdx::low_u8(month.unsigned_abs()),
            stdx::low_u8(day.unsigned_abs()),
        ))
    }

    /// 0 for Monday to 6 for Sunday.
    pub fn weekday(self) -> u8 {
        stdx::low_u8((day_number(self) + 5).rem_euclid(7).unsigned_abs())
    }

    /// 1 for the first of January.
    pub fn day_of_year(self) -> u16 {
        let first = day_number(Self::new(self.year(), 1, 1));
        stdx::low_u16((day_number(self) - first + 1).max(0).unsigned_abs())
    }
}

impl DateTime {
    /// Microseconds since day number 0.
    pub fn to_micros(self) -> i64 {
        day_number(self.date()) * DAY_MICROS + self.time().micros()
    }

    /// The value of microseconds since day number 0, or `None` outside of 0001 to 9999.
    pub fn from_micros(micros: i64) -> Option<Self> {
        let date = Date::from_day_number(micros.div_euclid(DAY_MICROS))?;
        Some(Self::new(date, Time(micros.rem_euclid(DAY_MICROS))))
    }

    /// Moved by this many microseconds, or `None` for partial dates and outside of 0001 to 9999.
    pub fn plus_micros(self, micros: i64) -> Option<Self> {
        if self.date().has_zero_part() {
            return None;
        }
        Self::from_micros(self.to_micros().checked_add(micros)?)
    }

    /// Microseconds since 1970-01-01 00:00:00.
    pub fn to_unix_micros(self) -> i64 {
        self.to_micros() - UNIX_EPOCH_DAYS * DAY_MICROS
    }

    /// The value of microseconds since 1970-01-01 00:00:00, or `None` outside of 0001 to 9999.
    pub fn from_unix_micros(micros: i64) -> Option<Self> {
        Self::from_micros(micros.checked_add(UNIX_EPOCH_DAYS * DAY_MICROS)?)
    }
}

/// The day number of 1970-01-01.
const UNIX_EPOCH_DAYS: i64 = 719_528;
