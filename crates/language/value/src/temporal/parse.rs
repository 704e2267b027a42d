//! Temporal values from text, as lenient as MySQL: any punctuation between the parts, compact
//! digits, two-digit years, trailing rubbish with a warning.

use super::{Date, DateTime, Time};

/// The result of [`parse_datetime`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParsedDateTime {
    /// The value; its parts are in range, but the date may not exist.
    pub value: DateTime,
    /// The text had a time part.
    pub has_time: bool,
    /// Text was left over.
    pub truncated: bool,
    /// The first fractional digit beyond microseconds, which was cut: 0 to 9.
    pub next_digit: u8,
}

/// The result of [`parse_time`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParsedTime {
    /// The value, clamped to the range of TIME.
    pub value: Time,
    /// Text was left over.
    pub truncated: bool,
    /// The time was out of range.
    pub out_of_range: bool,
    /// The text was a date with time; the date is dropped.
    pub dated: bool,
    /// The first fractional digit beyond microseconds, which was cut: 0 to 9.
    pub next_digit: u8,
}

/// The year of two digits: 70 to 99 belong to the last century.
pub const fn full_year(two_digits: u16) -> u16 {
    if two_digits < 70 {
        2000 + two_digits
    } else {
        1900 + two_digits
    }
}

/// Reads a date with or without time. `None` if the text is invalid, or a part is out of range.
pub fn parse_datetime(text: &[u8]) -> Option<ParsedDateTime> {
    let mut scan = Scan { text, at: 0 };
    scan.skip_blanks();
    let run = scan.digits_ahead();
    if run == 0 {
        return None;
    }
    let after = text.get(scan.at + run).copied();
    let compact = run > 4 || matches!(after, None | Some(b'.' | b'T' | b't'));
    let (parsed, is_short_year) = if compact && !(run <= 4 && after == Some(b'.')) {
        (scan.compact_datetime(run)?, !has_long_year(run))
    } else {
        (scan.delimited_datetime()?, run <= 2)
    };
    let (date, [hour, minute, second], (micros, next_digit), has_time) = parsed;
    scan.skip_blanks();
    let [year, month, day] = date;
    // If everything is zero, the year is zero, too.
    let is_zero = date == [0; 3] && [hour, minute, second, micros] == [0; 4];
    let year = match is_short_year && !is_zero {
        true => two_digit_year(year),
        false => year,
    };
    if year > 9999 || month > 12 || day > 31 || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let date = Date::new(
        stdx::low_u16(u64::from(year)),
        stdx::low_u8(u64::from(month)),
        stdx::low_u8(u64::from(day)),
    );
    let (minute, second) = (
        stdx::low_u8(u64::from(minute)),
        stdx::low_u8(u64::from(second)),
    );
    let time = Time::from_parts(false, hour, minute, second, micros);
    let truncated = scan.at < text.len();
    Some(ParsedDateTime {
        value: DateTime::new(date, time),
        has_time,
        truncated,
        next_digit,
    })
}

/// Reads a duration: `[-][D ]HH:MM:SS.ffffff`, `HHMMSS.ffffff`; `MM:SS` is read as `HH:MM`. Of a
/// full DATETIME, reads the time of day. `None` if the text is invalid.
pub fn parse_time(text: &[u8]) -> Option<ParsedTime> {
    let mut scan = Scan { text, at: 0 };
    scan.skip_blanks();
    let negative = scan.take(b'-');
    if scan.digits_ahead() == 0 && scan.peek() != Some(b'.') {
        return None;
    }
    if !negative && scan.has_date_and_time() && parse_datetime(text).is_none() {
        return None;
    }
    if !negative
        && scan.looks_like_datetime()
        && let Some(parsed) = parse_datetime(text).filter(|parsed| parsed.has_time)
    {
        return Some(ParsedTime {
            value: parsed.value.time(),
            truncated: parsed.truncated,
            out_of_range: false,
            dated: true,
            next_digit: parsed.next_digit,
        });
    }
    if scan.is_scientific() {
        return None;
    }
    let (parts, day) = scan.time_parts();
    let [hour, minute, second] = parts;
    if minute > 59 || second > 59 {
        return None;
    }
    let (micros, next_digit) = scan.fraction();
    scan.skip_blanks();
    let total =
        (day * 24 + hour) * 3_600_000_000 + (minute * 60 + second) * 1_000_000 + u64::from(micros);
    let total = i64::try_from(total).unwrap_or(i64::MAX);
    let total = if negative { -total } else { total };
    Some(ParsedTime {
        value: Time::from_micros(total),
        truncated: scan.at < text.len(),
        out_of_range: Time::from_micros_checked(total).is_none(),
        dated: false,
        next_digit,
    })
}

type Parts = ([u32; 3], [u32; 3], (u32, u8), bool);

struct Scan<'a> {
    text: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn digits_ahead(&self) -> usize {
        let rest = self.text.get(self.at..).unwrap_or(&[]);
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    }

    /// A number of at most `digits` digits, or `None`.
    fn number(&mut self, digits: usize) -> Option<u32> {
        let count = self.digits_ahead().min(digits);
        if count == 0 {
            return None;
        }
        let taken = self.text.get(self.at..self.at + count)?;
        self.at += count;
        Some(
            taken
                .iter()
                .fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0')),
        )
    }

    /// `.ffffff`: microseconds, and the first digit beyond.
    fn fraction(&mut self) -> (u32, u8) {
        if self.peek() != Some(b'.') {
            return (0, 0);
        }
        self.at += 1;
        let (mut micros, mut unit, mut next, mut count) = (0, 100_000, 0, 0);
        while let Some(digit) = self.peek().filter(u8::is_ascii_digit) {
            micros += u32::from(digit - b'0') * unit;
            if count == 6 {
                next = digit - b'0';
            }
            unit /= 10;
            count += 1;
            self.at += 1;
        }
        (micros, next)
    }

    /// YYMMDD, YYYYMMDD, YYMMDDHHMMSS, YYYYMMDDHHMMSS and lengths in between.
    fn compact_datetime(&mut self, run: usize) -> Option<Parts> {
        let year = self.number(if has_long_year(run) { 4 } else { 2 })?;
        let month = self.number(2)?;
        let day = self.number(2)?;
        if matches!(self.peek(), Some(b'T' | b't')) {
            self.at += 1;
        }
        let hour = self.number(2);
        let minute = self.number(2).unwrap_or(0);
        let second = self.number(2).unwrap_or(0);
        let fraction = if hour.is_some() {
            self.fraction()
        } else {
            (0, 0)
        };
        Some((
            [year, month, day],
            [hour.unwrap_or(0), minute, second],
            fraction,
            hour.is_some(),
        ))
    }

    fn delimited_datetime(&mut self) -> Option<Parts> {
        let year = self.number(4)?;
        let mut date = [year, 0, 0];
        for part in &mut date[1..] {
            if !self.peek().is_some_and(|byte| byte.is_ascii_punctuation()) {
                return None;
            }
            self.skip_punctuation();
            *part = self.number(2)?;
        }
        let mut time = [0; 3];
        let start = self.at;
        if matches!(self.peek(), Some(b'T' | b't')) {
            self.at += 1;
        } else {
            self.skip_blanks();
            if self.at == start {
                self.skip_punctuation();
            }
        }
        let Some(hour) = self.number(2) else {
            self.at = start;
            return Some((date, time, (0, 0), false));
        };
        time[0] = hour;
        for part in &mut time[1..] {
            if !self
                .peek()
                .is_some_and(|byte| byte.is_ascii_punctuation() && byte != b'.')
            {
                break;
            }
            self.skip_punctuation();
            *part = self.number(2).unwrap_or(0);
        }
        let fraction = self.fraction();
        Some((date, time, fraction, true))
    }

    fn skip_punctuation(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_punctuation()) {
            self.at += 1;
        }
    }

    /// Three parts with two equal separators and a time, or at least 12 digits.
    fn looks_like_datetime(&self) -> bool {
        let run = self.digits_ahead();
        if run >= 12 {
            return true;
        }
        let rest = self.text.get(self.at + run..).unwrap_or(&[]);
        matches!(rest.first(), Some(b'-' | b'/')) && (run == 4 || run == 2) && rest.len() >= 4
    }

    /// A date with hyphens, a blank or T, and digits after it.
    fn has_date_and_time(&self) -> bool {
        let rest = self.text.get(self.at..).unwrap_or(&[]);
        let Some(end) = rest.iter().position(|byte| matches!(byte, b' ' | b'T')) else {
            return false;
        };
        let hyphens = rest[..end].iter().filter(|byte| **byte == b'-').count();
        hyphens == 2 && rest.get(end + 1).is_some_and(u8::is_ascii_digit)
    }

    /// Digits with an exponent are a number, not a time.
    fn is_scientific(&self) -> bool {
        let rest = self
            .text
            .get(self.at + self.digits_ahead()..)
            .unwrap_or(&[]);
        matches!(rest, [b'e' | b'E', digit, ..] if digit.is_ascii_digit())
    }

    /// Hours, minutes, seconds; and days if a blank followed the first number.
    fn time_parts(&mut self) -> ([u64; 3], u64) {
        let run = self.digits_ahead();
        let first = self.number(9).map_or(0, u64::from);
        if run <= 9 && self.peek() == Some(b' ') {
            let mark = self.at;
            self.skip_blanks();
            if self.digits_ahead() > 0 {
                let hour = self.number(9).map_or(0, u64::from);
                return (self.colon_parts(hour), first);
            }
            self.at = mark;
        }
        if self.peek() == Some(b':') && self.text.get(self.at + 1).is_some_and(u8::is_ascii_digit) {
            return (self.colon_parts(first), 0);
        }
        ([first / 10_000, first / 100 % 100, first % 100], 0)
    }

    fn colon_parts(&mut self, hour: u64) -> [u64; 3] {
        let mut parts = [hour, 0, 0];
        for part in &mut parts[1..] {
            if !self.take(b':') {
                break;
            }
            *part = self.number(9).map_or(0, u64::from);
        }
        parts
    }
}

/// True if a run of this many digits has a year of four digits.
const fn has_long_year(run: usize) -> bool {
    run == 4 || run == 8 || run >= 14
}

fn two_digit_year(year: u32) -> u32 {
    u32::from(full_year(stdx::low_u16(u64::from(year))))
}
