//! Temporal values as text, without allocation.

use super::{Date, DateTime, Time};

/// Appends `2024-02-29`.
pub fn append_date(date: Date, out: &mut Vec<u8>) {
    let year = date.year();
    let [century_high, century_low] = two_digits(stdx::low_u8(u64::from(year / 100)));
    let [year_high, year_low] = two_digits(stdx::low_u8(u64::from(year % 100)));
    let [month_high, month_low] = two_digits(date.month());
    let [day_high, day_low] = two_digits(date.day());
    out.extend_from_slice(&[
        century_high,
        century_low,
        year_high,
        year_low,
        b'-',
        month_high,
        month_low,
        b'-',
        day_high,
        day_low,
    ]);
}

/// Appends `2024-02-29 12:34:56`, and `fsp` digits after a point unless `fsp` is 0.
pub fn append_datetime(value: DateTime, fsp: u8, out: &mut Vec<u8>) {
    append_date(value.date(), out);
    out.push(b' ');
    out.extend_from_slice(&two_digits(value.hour()));
    append_rest(
        value.minute(),
        value.second(),
        value.microsecond(),
        fsp,
        out,
    );
}

/// Appends `-838:59:59`, and `fsp` digits after a point unless `fsp` is 0.
pub fn append_time(value: Time, fsp: u8, out: &mut Vec<u8>) {
    if value.is_negative() {
        out.push(b'-');
    }
    let hour = value.hour();
    if hour >= 100 {
        out.push(b'0' + stdx::low_u8(u64::from(hour / 100)));
    }
    out.extend_from_slice(&two_digits(stdx::low_u8(u64::from(hour % 100))));
    append_rest(
        value.minute(),
        value.second(),
        value.microsecond(),
        fsp,
        out,
    );
}

fn append_rest(minute: u8, second: u8, micros: u32, fsp: u8, out: &mut Vec<u8>) {
    out.push(b':');
    out.extend_from_slice(&two_digits(minute));
    out.push(b':');
    out.extend_from_slice(&two_digits(second));
    let shown = usize::from(fsp.min(6));
    if shown > 0 {
        let pair = |number: u32| two_digits(stdx::low_u8(u64::from(number % 100)));
        let ([a, b], [c, d], [e, f]) = (pair(micros / 10_000), pair(micros / 100), pair(micros));
        out.push(b'.');
        out.extend_from_slice(&[a, b, c, d, e, f][..shown]);
    }
}

pub(crate) fn two_digits(number: u8) -> [u8; 2] {
    [b'0' + number / 10 % 10, b'0' + number % 10]
}
