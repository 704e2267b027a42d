//! Time zones: conversion between the session's local time and UTC, in which a TIMESTAMP is stored.

use std::sync::OnceLock;

use jiff::civil;
use jiff::tz::TimeZone;

use super::{DateTime, SECOND_MICROS};

/// The last second of a TIMESTAMP, 2038-01-19 03:14:07.
const TIMESTAMP_MAX_SECONDS: i64 = 0x7FFF_FFFF;

/// The meaning of `SYSTEM`: the machine's zone, set once at the server's start; UTC in a program
/// that never sets it.
static SYSTEM: OnceLock<Zone> = OnceLock::new();

/// A session's time zone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Zone {
    /// UTC itself.
    #[default]
    Utc,
    /// This many seconds east of UTC.
    Fixed(i32),
    /// A zone with rules, such as `Europe/Helsinki`.
    Named(Box<TimeZone>),
}

impl Zone {
    /// The zone with a name: `SYSTEM`, `UTC`, `+02:00` or one of the zone database. `None` if it is
    /// unknown.
    pub fn from_name(name: &str) -> Option<Self> {
        if name.eq_ignore_ascii_case("UTC") {
            return Some(Self::Utc);
        }
        if name.eq_ignore_ascii_case("SYSTEM") {
            return Some(SYSTEM.get().cloned().unwrap_or_default());
        }
        if name.starts_with(['+', '-']) {
            return offset(name).map(Self::Fixed);
        }
        TimeZone::get(name)
            .ok()
            .map(|zone| Self::Named(Box::new(zone)))
    }

    /// The zone of a POSIX rule: `CET-1CEST,M3.5.0,M10.5.0/3`.
    pub fn from_posix(rule: &str) -> Option<Self> {
        let zone = TimeZone::posix(rule).ok()?;
        Some(Self::Named(Box::new(zone)))
    }

    /// The zone that a file of the zone database describes.
    pub fn from_file(bytes: &[u8]) -> Option<Self> {
        let zone = TimeZone::tzif("", bytes).ok()?;
        Some(Self::Named(Box::new(zone)))
    }

    /// Makes this zone the meaning of `SYSTEM`. Returns false if it was set before.
    pub fn set_system(self) -> bool {
        SYSTEM.set(self).is_ok()
    }

    /// The name under which the zone is shown, if `given` was the requested one.
    pub fn name_of(&self, given: &str) -> String {
        if given.eq_ignore_ascii_case("SYSTEM") {
            return "SYSTEM".to_owned();
        }
        match self {
            Self::Utc => "UTC".to_owned(),
            Self::Fixed(seconds) => shown_offset(*seconds),
            Self::Named(zone) => zone.iana_name().unwrap_or(given).to_owned(),
        }
    }

    /// The zone's abbreviation at a point in time: `CET`, and in summer `CEST`.
    pub fn abbreviation(&self, utc: DateTime) -> String {
        match self {
            Self::Named(zone) => match jiff::Timestamp::from_microsecond(utc.to_unix_micros()) {
                Ok(point) => zone.to_offset_info(point).abbreviation().to_owned(),
                Err(_) => "UTC".to_owned(),
            },
            Self::Utc => "UTC".to_owned(),
            Self::Fixed(seconds) => shown_offset(*seconds),
        }
    }

    /// The local time of a point in time, or `None` outside of the calendar.
    pub fn from_utc(&self, utc: DateTime) -> Option<DateTime> {
        // The zero date does not depend on the zone.
        if utc == DateTime::ZERO {
            return Some(utc);
        }
        match self {
            Self::Utc => Some(utc),
            Self::Fixed(seconds) => utc.plus_micros(i64::from(*seconds) * SECOND_MICROS),
            Self::Named(zone) => {
                let micros = utc.to_unix_micros();
                let point = jiff::Timestamp::from_microsecond(micros).ok()?;
                let seconds = i64::from(zone.to_offset(point).seconds());
                utc.plus_micros(seconds * SECOND_MICROS)
            }
        }
    }

    /// The point in time of a local time. A time that a change of clocks skips becomes the end of
    /// the skipped hour; of a time that occurs twice the first is used.
    pub fn to_utc(&self, wall: DateTime) -> Option<DateTime> {
        match self {
            Self::Utc => Some(wall),
            Self::Fixed(seconds) => wall.plus_micros(-i64::from(*seconds) * SECOND_MICROS),
            Self::Named(zone) => {
                let date = wall.date();
                let signed = |byte: u8| i8::try_from(byte).ok();
                let civil = civil::DateTime::new(
                    i16::try_from(date.year()).ok()?,
                    signed(date.month())?,
                    signed(date.day())?,
                    signed(wall.hour())?,
                    signed(wall.minute())?,
                    signed(wall.second())?,
                    i32::try_from(wall.microsecond()).ok()? * 1000,
                )
                .ok()?;
                let ambiguous = zone.to_ambiguous_timestamp(civil);
                let point =
                    if let jiff::tz::AmbiguousOffset::Gap { before, after } = ambiguous.offset() {
                        let width = after.seconds() - before.seconds();
                        let inside = after.to_timestamp(civil).ok()?;
                        let end = inside.as_second() + i64::from(width);
                        let start_of_hour = end - end.rem_euclid(i64::from(width.max(1)));
                        jiff::Timestamp::from_second(start_of_hour).ok()?
                    } else {
                        ambiguous.earlier().ok()?
                    };
                DateTime::from_unix_micros(point.as_microsecond())
            }
        }
    }
}

/// True if a TIMESTAMP can hold the point in time: from 1970-01-01 00:00:01, since second 0 is the
/// zero value, to 2038-01-19 03:14:07.
pub fn is_timestamp(utc: DateTime) -> bool {
    let seconds = utc.to_unix_micros().div_euclid(SECOND_MICROS);
    (1..=TIMESTAMP_MAX_SECONDS).contains(&seconds) || (seconds == 0 && utc.to_unix_micros() > 0)
}

/// `+HH:MM`.
fn shown_offset(seconds: i32) -> String {
    let sign = if seconds < 0 { '-' } else { '+' };
    let minutes = seconds.unsigned_abs() / 60;
    format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

/// `+HH:MM` from -12:59 to +13:00, in seconds.
fn offset(name: &str) -> Option<i32> {
    let (sign, rest) = name.split_at_checked(1)?;
    let (hours, minutes) = rest.split_once(':')?;
    let number = |text: &str| -> Option<i32> {
        let digits =
            !text.is_empty() && text.len() <= 2 && text.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| text.parse().ok()).flatten()
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let seconds = (hours * 60 + minutes) * 60;
    let seconds = if sign == "-" { -seconds } else { seconds };
    (minutes < 60 && (-46_740..=46_800).contains(&seconds)).then_some(seconds)
}
