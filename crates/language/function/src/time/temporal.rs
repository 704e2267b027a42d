//! Functions of dates and times: the clock, parts, day numbers.

use builtin::Function;
use errcode::{ER_TOO_BIG_PRECISION, ER_WRONG_ARGUMENTS};
use value::convert::truncated;
use value::temporal::{DateRules, SECOND_MICROS, Time, day_number, days_in_month, is_timestamp};
use value::{ColumnType, Date, DateTime, Decimal, SqlCondition, TypeKind, Value, ValueRef, Zone};

use crate::bind::{Binding, Bound};
use crate::context::Context;
use crate::infer::{Inferred, connection_text, decimal_type, fsp, of_length};
use crate::null::some;

pub(crate) type Evaluated = Result<Value, SqlCondition>;

fn int(number: impl Into<i64>) -> Evaluated {
    Ok(Value::Int(number.into()))
}

/// The fractional digits that a constant argument requests.
fn asked_fsp(binding: &mut Binding<'_>, index: usize) -> Result<u8, SqlCondition> {
    let asked = binding.constant_integer(index).unwrap_or(0);
    let lower = binding.name.to_ascii_lowercase();
    // MariaDB's own name for NOW.
    let name = match lower.as_str() {
        "now" => "current_timestamp",
        name => name,
    };
    match u8::try_from(asked) {
        Ok(fsp) if fsp <= 6 => Ok(fsp),
        _ => Err(SqlCondition::new(ER_TOO_BIG_PRECISION, &[&name, &6])),
    }
}

pub(crate) fn infer_now(binding: &mut Binding<'_>) -> Inferred {
    let fsp = asked_fsp(binding, 0)?;
    binding.nullable = false;
    binding.column = ColumnType::temporal(TypeKind::DateTime, fsp);
    Ok(())
}

pub(crate) fn now(bound: &Bound, _: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    Ok(Value::DateTime(
        context.now.truncated(bound.column.decimals),
    ))
}

pub(crate) fn sysdate(bound: &Bound, _: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let now = (context.clock)();
    Ok(Value::DateTime(now.truncated(bound.column.decimals)))
}

pub(crate) fn utc_now(bound: &Bound, _: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    Ok(Value::DateTime(
        context.utc_now.truncated(bound.column.decimals),
    ))
}

pub(crate) fn infer_today(binding: &mut Binding<'_>) -> Inferred {
    binding.nullable = false;
    binding.column = ColumnType::new(TypeKind::Date);
    Ok(())
}

pub(crate) fn today(_: &Bound, _: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    Ok(Value::Date(context.now.date()))
}

pub(crate) fn utc_today(_: &Bound, _: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    Ok(Value::Date(context.utc_now.date()))
}

pub(crate) fn infer_clock(binding: &mut Binding<'_>) -> Inferred {
    let fsp = asked_fsp(binding, 0)?;
    binding.nullable = false;
    binding.column = ColumnType::temporal(TypeKind::Time, fsp);
    Ok(())
}

pub(crate) fn clock(bound: &Bound, _: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    Ok(Value::Time(
        context.now.time().truncated(bound.column.decimals),
    ))
}

pub(crate) fn utc_clock(bound: &Bound, _: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    Ok(Value::Time(
        context.utc_now.time().truncated(bound.column.decimals),
    ))
}

/// An argument as date and time; `None` for NULL and invalid values.
pub(crate) fn moment(value: ValueRef<'_>, context: &mut Context<'_>) -> Option<DateTime> {
    value.to_datetime(context.now.date(), context.warnings)
}

/// The same, only for a day that the calendar has.
pub(crate) fn whole_moment(value: ValueRef<'_>, context: &mut Context<'_>) -> Option<DateTime> {
    let moment = moment(value, context)?;
    if !moment.date().has_zero_part() {
        return Some(moment);
    }
    if let ValueRef::Bytes(text) = value {
        context.warnings.warn(truncated("datetime", text));
    }
    None
}

pub(crate) fn infer_date(binding: &mut Binding<'_>) -> Inferred {
    binding.nullable = true;
    binding.column = ColumnType::new(TypeKind::Date);
    Ok(())
}

pub(crate) fn date(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let moment = some!(moment(args[0], context));
    let refused = !moment.date().check(context.dates);
    Ok(if refused {
        Value::Null
    } else {
        Value::Date(moment.date())
    })
}

pub(crate) fn infer_time(binding: &mut Binding<'_>) -> Inferred {
    let arg = &binding.args[0];
    let seconds = binding.function == Function::SecToTime;
    let by_name = matches!(arg.column.kind, TypeKind::Enum | TypeKind::Set);
    let digits = if seconds && arg.is_text() && !by_name {
        6
    } else {
        fsp(arg)
    };
    binding.nullable = true;
    binding.column = ColumnType::temporal(TypeKind::Time, digits);
    Ok(())
}

pub(crate) fn time(bound: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let time = some!(args[0].to_time(context.warnings));
    Ok(Value::Time(time.truncated(bound.column.decimals)))
}

pub(crate) fn infer_timestamp(binding: &mut Binding<'_>) -> Inferred {
    let fsp = binding.args.iter().map(fsp).max().unwrap_or(0);
    binding.nullable = true;
    binding.column = ColumnType::temporal(TypeKind::DateTime, fsp);
    Ok(())
}

/// TIMESTAMP(moment), TIMESTAMP(moment, duration): their sum.
pub(crate) fn timestamp(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let mut moment = some!(moment(args[0], context));
    if let Some(duration) = args.get(1) {
        let duration = some!(duration.to_time(context.warnings));
        moment = some!(moment.plus_micros(duration.micros()));
    }
    if !moment.date().check(context.dates) {
        return Ok(Value::Null);
    }
    Ok(Value::DateTime(moment.truncated(bound.column.decimals)))
}

/// A function of the date's parts.
macro_rules! of_date {
    ($($name:ident: $moment:ident => $part:expr;)*) => {
        $(pub(crate) fn $name(
            _: &Bound,
            args: &[ValueRef<'_>],
            context: &mut Context<'_>,
        ) -> Evaluated {
            let date = some!($moment(args[0], context)).date();
            let part: fn(Date) -> i64 = $part;
            Ok(Value::Int(part(date)))
        })*
    };
}

of_date! {
    year: moment => |date| i64::from(date.year());
    quarter: moment => |date| (i64::from(date.month()) + 2) / 3;
    month: moment => |date| i64::from(date.month());
    day: moment => |date| i64::from(date.day());
    weekday: whole_moment => |date| i64::from(date.weekday());
    day_of_week: whole_moment => |date| i64::from(date.weekday() + 1) % 7 + 1;
    day_of_year: whole_moment => |date| i64::from(date.day_of_year());
    to_days: whole_moment => day_number;
    week_of_year: whole_moment => |date| i64::from(week_number(date, 3).1);
}

/// A function of the time's parts.
macro_rules! of_time {
    ($($name:ident: $part:ident;)*) => {
        $(pub(crate) fn $name(
            _: &Bound,
            args: &[ValueRef<'_>],
            context: &mut Context<'_>,
        ) -> Evaluated {
            int(some!(args[0].to_time(context.warnings)).$part())
        })*
    };
}

of_time! {
    hour: hour;
    minute: minute;
    second: second;
    microsecond: microsecond;
}

/// The year and week of a date by MySQL's modes 0 to 7.
///
/// Bit 0: weeks begin on Monday. Bit 1: the year is the week's own, so there is no week 0. Bit 2:
/// week 1 is the first one that contains its first weekday; otherwise the first with four days of
/// the year. (In the modes with Sunday the last bit is inverted.)
pub(crate) fn week_number(date: Date, mode: u8) -> (u16, u8) {
    let monday_first = mode & 1 != 0;
    let mut own_year = mode & 2 != 0;
    let first_weekday = (mode & 4 != 0) ^ !monday_first;
    let mut year = date.year();
    let day = day_number(date);
    let mut first_day = day_number(Date::new(year, 1, 1));
    let shift = if monday_first { 5 } else { 6 };
    let mut weekday = (first_day + shift).rem_euclid(7);
    let skips = |weekday: i64| {
        if first_weekday {
            weekday != 0
        } else {
            weekday >= 4
        }
    };
    if date.month() == 1 && i64::from(date.day()) <= 7 - weekday {
        if !own_year && skips(weekday) {
            return (year, 0);
        }
        if skips(weekday) {
            own_year = true;
            year = year.saturating_sub(1);
            let days = days_in_year(year);
            first_day -= days;
            weekday = (weekday + 53 * 7 - days) % 7;
        }
    }
    let begin = if skips(weekday) {
        first_day + 7 - weekday
    } else {
        first_day - weekday
    };
    let days = day - begin;
    if own_year && days >= 52 * 7 {
        let next = (weekday + days_in_year(year)) % 7;
        if !skips(next) {
            return (year + 1, 1);
        }
    }
    (year, stdx::low_u8((days / 7 + 1).unsigned_abs()))
}

fn days_in_year(year: u16) -> i64 {
    if value::temporal::is_leap_year(year) {
        366
    } else {
        365
    }
}

fn week_mode(args: &[ValueRef<'_>], default: u8, context: &mut Context<'_>) -> Option<u8> {
    match args.get(1) {
        None => Some(default),
        Some(mode) => {
            let mode = mode.to_i64(context.warnings).unwrap_or(0);
            Some(stdx::low_u8(mode.cast_unsigned() & 7))
        }
    }
}

pub(crate) fn week(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let date = some!(whole_moment(args[0], context)).date();
    let mode = some!(week_mode(args, context.default_week_format, context));
    int(week_number(date, mode).1)
}

pub(crate) fn year_week(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let date = some!(whole_moment(args[0], context)).date();
    let mode = some!(week_mode(args, 0, context));
    let (year, week) = week_number(date, mode | 2);
    int(i64::from(year) * 100 + i64::from(week))
}

pub(crate) fn infer_name(binding: &mut Binding<'_>) -> Inferred {
    connection_text(binding, 9)?;
    binding.nullable = true;
    Ok(())
}

/// English names, Monday first.
pub(crate) const DAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];
/// English names, January first.
pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

pub(crate) fn day_name(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let date = some!(whole_moment(args[0], context)).date();
    Ok(Value::bytes(DAYS[usize::from(date.weekday())]))
}

pub(crate) fn month_name(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let date = some!(moment(args[0], context)).date();
    let index = usize::from(date.month()).checked_sub(1);
    Ok(index
        .and_then(|index| MONTHS.get(index))
        .map_or(Value::Null, |name| Value::bytes(*name)))
}

pub(crate) fn last_day(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let date = some!(moment(args[0], context)).date();
    if date.month() == 0 {
        return Ok(Value::Null);
    }
    let last = days_in_month(date.year(), date.month());
    Ok(Value::Date(Date::new(date.year(), date.month(), last)))
}

pub(crate) fn from_days(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let days = some!(args[0].to_i64(context.warnings));
    Ok(Value::Date(
        Date::from_day_number(days).unwrap_or(Date::ZERO),
    ))
}

pub(crate) fn infer_to_seconds(binding: &mut Binding<'_>) -> Inferred {
    binding.nullable = true;
    binding.column = of_length(TypeKind::BigInt, 12, false);
    Ok(())
}

pub(crate) fn to_seconds(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    int(some!(whole_moment(args[0], context))
        .to_micros()
        .div_euclid(SECOND_MICROS))
}

pub(crate) fn infer_time_to_sec(binding: &mut Binding<'_>) -> Inferred {
    let fsp = fsp(&binding.args[0]);
    binding.nullable = true;
    binding.column = if fsp == 0 {
        of_length(TypeKind::BigInt, 10, false)
    } else {
        decimal_type(10, u32::from(fsp))
    };
    Ok(())
}

pub(crate) fn time_to_sec(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let time = some!(args[0].to_time(context.warnings));
    if bound.column.kind == TypeKind::Decimal {
        return Ok(Value::Decimal(seconds(time.micros())));
    }
    int(time.micros() / SECOND_MICROS)
}

/// Microseconds as exact seconds.
fn seconds(micros: i64) -> Decimal {
    let sign = if micros < 0 { "-" } else { "" };
    let micros = micros.unsigned_abs();
    let text = format!("{sign}{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    Decimal::parse_prefix(text.as_bytes()).value
}

/// Exact seconds as microseconds, truncated.
pub(crate) fn micros_of(number: &Decimal) -> Option<i64> {
    let scaled = number.multiply(&Decimal::from(1_000_000u64)).ok()?;
    let whole = scaled.round(0, value::decimal::Rounding::Truncate).ok()?;
    whole.to_i64().ok()
}

pub(crate) fn sec_to_time(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let number = some!(args[0].to_decimal(context.warnings));
    let micros = micros_of(&number);
    let time = micros.and_then(Time::from_micros_checked);
    if time.is_none() {
        context
            .warnings
            .warn(truncated("TIME", number.to_string().as_bytes()));
    }
    let bound_time = if number.is_negative() {
        Time::MIN
    } else {
        Time::MAX
    };
    Ok(Value::Time(
        time.unwrap_or(bound_time).truncated(bound.column.decimals),
    ))
}

pub(crate) fn make_date(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let year = some!(args[0].to_i64(context.warnings));
    let day = some!(args[1].to_i64(context.warnings));
    let year = match u16::try_from(year) {
        Ok(year @ 0..100) => value::temporal::full_year(year),
        Ok(year @ ..=9999) => year,
        _ => return Ok(Value::Null),
    };
    if day <= 0 {
        return Ok(Value::Null);
    }
    let first = day_number(Date::new(year, 1, 1));
    let date = Date::from_day_number(first.saturating_add(day - 1));
    Ok(date.map_or(Value::Null, Value::Date))
}

pub(crate) fn infer_make_time(binding: &mut Binding<'_>) -> Inferred {
    binding.nullable = true;
    binding.column = ColumnType::temporal(TypeKind::Time, {
        let seconds = &binding.args[2];
        if seconds.is_text() { 6 } else { fsp(seconds) }
    });
    Ok(())
}

pub(crate) fn make_time(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let hour = some!(args[0].to_i64(context.warnings));
    let minute = some!(args[1].to_i64(context.warnings));
    let second = some!(args[2].to_decimal(context.warnings));
    let micros = some!(micros_of(&second));
    if !(0..60).contains(&minute) || !(0..60 * SECOND_MICROS).contains(&micros) {
        return Ok(Value::Null);
    }
    let parts = (i128::from(hour.unsigned_abs()) * 60 + i128::from(minute)) * 60_000_000;
    let total = i64::try_from(parts + i128::from(micros)).unwrap_or(i64::MAX);
    let total = if hour < 0 { -total } else { total };
    if Time::from_micros_checked(total).is_none() {
        let shown = format!("{hour}:{minute:02}:{:02}", micros / SECOND_MICROS);
        context.warnings.warn(truncated("time", shown.as_bytes()));
    }
    Ok(Value::Time(
        Time::from_micros(total).truncated(bound.column.decimals),
    ))
}

/// YYMM or YYYYMM as a number of months.
fn months_of(period: i64) -> Option<i64> {
    if period <= 0 {
        return None;
    }
    let (year, month) = (period / 100, period % 100);
    let year = match year {
        0..70 => year + 2000,
        70..100 => year + 1900,
        _ => year,
    };
    (1..=12).contains(&month).then_some(year * 12 + month - 1)
}

fn bad_period(name: &str) -> SqlCondition {
    SqlCondition::new(ER_WRONG_ARGUMENTS, &[&name.to_lowercase()])
}

pub(crate) fn period_add(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let period = some!(args[0].to_i64(context.warnings));
    let added = some!(args[1].to_i64(context.warnings));
    let months = months_of(period).ok_or_else(|| bad_period(bound.name()))?;
    let months = months.saturating_add(added);
    let year = months.div_euclid(12);
    int(year
        .saturating_mul(100)
        .saturating_add(months.rem_euclid(12) + 1))
}

pub(crate) fn period_diff(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let left = some!(args[0].to_i64(context.warnings));
    let right = some!(args[1].to_i64(context.warnings));
    let months = |period| months_of(period).ok_or_else(|| bad_period(bound.name()));
    int(months(left)? - months(right)?)
}

pub(crate) fn infer_unix(binding: &mut Binding<'_>) -> Inferred {
    let moment = |arg: &crate::Arg| match &arg.constant {
        Some(Value::Bytes(text)) => value::temporal::parse_datetime(text)
            .is_some_and(|moment| moment.value.date().check(DateRules::default())),
        _ => true,
    };
    let fsp = binding
        .args
        .first()
        .map_or(0, |arg| if moment(arg) { fsp(arg) } else { 6 });
    binding.column = if fsp == 0 {
        of_length(TypeKind::BigInt, 17, false)
    } else {
        decimal_type(16, u32::from(fsp))
    };
    binding.nullable = !binding.args.is_empty();
    Ok(())
}

pub(crate) fn unix_timestamp(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let utc = match args.first() {
        None => context.utc_now,
        Some(arg) => {
            let moment = some!(whole_moment(*arg, context));
            match context.zone.to_utc(moment).filter(|utc| is_timestamp(*utc)) {
                Some(utc) => utc,
                None => DateTime::from_unix_micros(0).expect("the epoch is a date"),
            }
        }
    };
    let micros = utc.to_unix_micros();
    if bound.column.kind == TypeKind::Decimal {
        return Ok(Value::Decimal(seconds(micros)));
    }
    int(micros.div_euclid(SECOND_MICROS))
}

pub(crate) fn infer_convert_tz(binding: &mut Binding<'_>) -> Inferred {
    binding.nullable = true;
    binding.column = ColumnType::temporal(TypeKind::DateTime, fsp(&binding.args[0]));
    Ok(())
}

/// Converts local time from one zone to another; out of the range of TIMESTAMP it is unchanged.
pub(crate) fn convert_tz(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let moment = some!(whole_moment(args[0], context));
    let zone = |index: usize| {
        let name = args[index].to_text(&bound.args[index])?;
        Zone::from_name(str::from_utf8(&name).ok()?)
    };
    let (from, to) = (some!(zone(1)), some!(zone(2)));
    let utc = from.to_utc(moment).filter(|utc| is_timestamp(*utc));
    let converted = match utc {
        Some(utc) => some!(to.from_utc(utc)),
        None => moment,
    };
    Ok(Value::DateTime(converted.truncated(bound.column.decimals)))
}
