//! DATE_FORMAT, TIME_FORMAT and FROM_UNIXTIME.

use value::digits::append_uint;
use value::temporal::is_timestamp;
use value::{ColumnType, DateTime, Time, TypeKind, Value, ValueRef};

use crate::bind::{Binding, Bound};
use crate::context::Context;
use crate::infer::{Inferred, chars, connection_text, fsp_of_seconds};
use crate::null::some;
use crate::time::temporal::{DAYS, Evaluated, MONTHS, micros_of, moment, week_number};

pub(crate) fn infer(binding: &mut Binding<'_>) -> Inferred {
    let length = chars(&binding.args[1]) * 10;
    connection_text(binding, length)?;
    binding.nullable = true;
    Ok(())
}

pub(crate) fn date_format(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    // A TIME has no date here, not even today's.
    if let ValueRef::Time(time) = args[0] {
        let format = some!(bound.text_arg(args, 1));
        return Ok(formatted_time(time, &format).map_or(Value::Null, Value::Bytes));
    }
    let moment = some!(moment(args[0], context));
    let format = some!(bound.text_arg(args, 1));
    Ok(formatted(moment, &format).map_or(Value::Null, Value::Bytes))
}

pub(crate) fn time_format(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let time = some!(args[0].to_time(context.warnings));
    let format = some!(bound.text_arg(args, 1));
    Ok(formatted_time(time, &format).map_or(Value::Null, Value::Bytes))
}

pub(crate) fn infer_from_unixtime(binding: &mut Binding<'_>) -> Inferred {
    binding.nullable = true;
    if binding.args.len() == 2 {
        return infer(binding);
    }
    binding.column = ColumnType::temporal(TypeKind::DateTime, fsp_of_seconds(&binding.args[0]));
    Ok(())
}

pub(crate) fn from_unixtime(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let seconds = some!(args[0].to_decimal(context.warnings));
    if seconds.is_negative() {
        return Ok(Value::Null);
    }
    let micros = some!(micros_of(&seconds));
    let utc = some!(DateTime::from_unix_micros(micros));
    if micros >= 1_000_000 && !is_timestamp(utc) {
        return Ok(Value::Null);
    }
    let local = some!(context.zone.from_utc(utc));
    if args.len() == 2 {
        let format = some!(bound.text_arg(args, 1));
        return Ok(formatted(local, &format).map_or(Value::Null, Value::Bytes));
    }
    Ok(Value::DateTime(local.truncated(bound.column.decimals)))
}

/// A number with leading zeros.
fn padded(number: impl Into<u64>, width: usize, out: &mut Vec<u8>) {
    let start = out.len();
    append_uint(number.into(), out);
    let missing = width.saturating_sub(out.len() - start);
    out.splice(start..start, std::iter::repeat_n(b'0', missing));
}

/// The date and time in a format, or `None` if the name of a zero part is requested.
fn formatted(moment: DateTime, format: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(format.len() * 2);
    let mut bytes = format.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let Some(specifier) = bytes.next() else {
            out.push(b'%');
            break;
        };
        if !append_of_time(moment.time(), specifier, &mut out) {
            append_of_date(moment, specifier, &mut out)?;
        }
    }
    Some(out)
}

/// The time in a format; parts of a date are zero.
fn formatted_time(time: Time, format: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(format.len() * 2);
    let mut bytes = format.iter().copied();
    if time.is_negative() {
        out.push(b'-');
    }
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let Some(specifier) = bytes.next() else {
            out.push(b'%');
            break;
        };
        if !append_of_time(time, specifier, &mut out) {
            append_of_date(DateTime::ZERO, specifier, &mut out)?;
        }
    }
    Some(out)
}

/// Appends a specifier of the time of day. Returns false for any other.
fn append_of_time(time: Time, specifier: u8, out: &mut Vec<u8>) -> bool {
    let twelve = (time.hour() % 24 + 11) % 12 + 1;
    let half = if time.hour() % 24 < 12 { b"AM" } else { b"PM" };
    match specifier {
        b'f' => padded(time.microsecond(), 6, out),
        b'H' => padded(time.hour(), 2, out),
        b'h' | b'I' => padded(twelve, 2, out),
        b'i' => padded(time.minute(), 2, out),
        b'k' => padded(time.hour(), 1, out),
        b'l' => padded(twelve, 1, out),
        b'p' => out.extend_from_slice(half),
        b'r' | b'T' => {
            padded(
                if specifier == b'r' {
                    twelve
                } else {
                    time.hour()
                },
                2,
                out,
            );
            out.push(b':');
            padded(time.minute(), 2, out);
            out.push(b':');
            padded(time.second(), 2, out);
            if specifier == b'r' {
                out.push(b' ');
                out.extend_from_slice(half);
            }
        }
        b'S' | b's' => padded(time.second(), 2, out),
        _ => return false,
    }
    true
}

/// One specifier of a date; any other character stands for itself.
fn append_of_date(moment: DateTime, specifier: u8, out: &mut Vec<u8>) -> Option<()> {
    let date = moment.date();
    let month = || {
        MONTHS
            .get(usize::from(date.month()).checked_sub(1)?)
            .copied()
    };
    // Weekdays and weeks exist only for days that the calendar has.
    let weekday = || (!date.is_zero()).then(|| date.weekday());
    match specifier {
        b'a' => out.extend_from_slice(&DAYS[usize::from(weekday()?)].as_bytes()[..3]),
        b'W' => out.extend_from_slice(DAYS[usize::from(weekday()?)].as_bytes()),
        b'b' => out.extend_from_slice(&month()?.as_bytes()[..3]),
        b'M' => out.extend_from_slice(month()?.as_bytes()),
        b'c' => padded(date.month(), 1, out),
        b'm' => padded(date.month(), 2, out),
        b'D' => {
            padded(date.day(), 1, out);
            out.extend_from_slice(match (date.day() / 10, date.day() % 10) {
                (1, _) => b"th",
                (_, 1) => b"st",
                (_, 2) => b"nd",
                (_, 3) => b"rd",
                _ => b"th",
            });
        }
        b'd' => padded(date.day(), 2, out),
        b'e' => padded(date.day(), 1, out),
        b'j' => {
            if date.is_zero() {
                return None;
            }
            padded(date.day_of_year(), 3, out);
        }
        b'U' | b'u' | b'V' | b'v' | b'X' | b'x' => {
            weekday()?;
            let mode = match specifier {
                b'U' => 0,
                b'u' => 1,
                b'V' | b'X' => 2,
                _ => 3,
            };
            let (year, week) = week_number(date, mode);
            if matches!(specifier, b'X' | b'x') {
                padded(year, 4, out);
            } else {
                padded(week, 2, out);
            }
        }
        b'w' => padded((weekday()? + 1) % 7, 1, out),
        b'Y' => padded(date.year(), 4, out),
        b'y' => padded(date.year() % 100, 2, out),
        other => out.push(other),
    }
    Some(())
}
