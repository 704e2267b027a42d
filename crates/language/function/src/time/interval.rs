//! Intervals: added to a date or time, and as the difference of two.

use builtin::IntervalUnit as Unit;
use errcode::ER_WRONG_ARGUMENTS;
use value::temporal::{DAY_MICROS, SECOND_MICROS, Time, append_date, append_datetime, append_time};
use value::temporal::{day_number, days_in_month, parse_datetime, parse_time};
use value::{ColumnType, Date, DateTime, SqlCondition, TypeKind, Value, ValueRef};

use crate::bind::{Arg, Binding, Bound};
use crate::context::{Context, moment_overflow};
use crate::infer::{Inferred, connection_text, fsp, of_length};
use crate::null::some;
use crate::time::temporal::{Evaluated, micros_of, moment, week_number, whole_moment};

/// The unit of a constant argument, which the parser passes as text.
fn unit_of(arg: &Arg) -> Result<Unit, SqlCondition> {
    let name = match &arg.constant {
        Some(Value::Bytes(name)) => name.as_slice(),
        _ => &[],
    };
    let name = name.strip_prefix(b"SQL_TSI_").unwrap_or(name);
    Unit::named(name).ok_or_else(|| SqlCondition::new(ER_WRONG_ARGUMENTS, &[&"INTERVAL"]))
}

/// The unit that a bound call keeps as its choice ([`choice_of`]).
fn chosen(choice: u32) -> Unit {
    Unit::ALL[stdx::to_usize(choice)]
}

fn choice_of(unit: Unit) -> u32 {
    unit as u32
}

/// Microseconds of each number of a compound unit, in order.
const fn compound(unit: Unit) -> &'static [i64] {
    const DAY: i64 = DAY_MICROS;
    const HOUR: i64 = 3600 * SECOND_MICROS;
    const MINUTE: i64 = 60 * SECOND_MICROS;
    match unit {
        Unit::DayHour => &[DAY, HOUR],
        Unit::DayMinute => &[DAY, HOUR, MINUTE],
        Unit::DaySecond => &[DAY, HOUR, MINUTE, SECOND_MICROS],
        Unit::HourMinute => &[HOUR, MINUTE],
        Unit::HourSecond => &[HOUR, MINUTE, SECOND_MICROS],
        Unit::MinuteSecond => &[MINUTE, SECOND_MICROS],
        Unit::DayMicrosecond => &[DAY, HOUR, MINUTE, SECOND_MICROS, 1],
        Unit::HourMicrosecond => &[HOUR, MINUTE, SECOND_MICROS, 1],
        Unit::MinuteMicrosecond => &[MINUTE, SECOND_MICROS, 1],
        Unit::SecondMicrosecond => &[SECOND_MICROS, 1],
        _ => &[],
    }
}

/// What is added: months move the calendar, microseconds the clock.
#[derive(Debug, Clone, Copy)]
struct Step {
    months: i64,
    micros: i64,
}

/// DATE_ADD(moment, amount, unit); ADDDATE(moment, days) without a unit.
pub(crate) fn infer_add(binding: &mut Binding<'_>) -> Inferred {
    binding.choice = match binding.args.get(2) {
        Some(unit) => choice_of(unit_of(unit)?),
        None => choice_of(Unit::Day),
    };
    infer_moved(binding, 0, 1)
}

/// ADD_MONTHS(moment, months).
pub(crate) fn infer_add_months(binding: &mut Binding<'_>) -> Inferred {
    binding.choice = choice_of(Unit::Month);
    infer_moved(binding, 0, 1)
}

/// TIMESTAMPADD(unit, amount, moment).
pub(crate) fn infer_timestamp_add(binding: &mut Binding<'_>) -> Inferred {
    binding.choice = choice_of(unit_of(&binding.args[0])?);
    infer_moved(binding, 2, 1)
}

fn infer_moved(binding: &mut Binding<'_>, moment: usize, amount: usize) -> Inferred {
    let unit = chosen(binding.choice);
    let arg = &binding.args[moment];
    binding.nullable = true;
    let of_amount = match unit {
        Unit::Second if binding.args[amount].is_text() => 6,
        Unit::Second => fsp(&binding.args[amount]),
        unit if unit.has_micros() => 6,
        _ => 0,
    };
    let digits = fsp(arg).max(of_amount);
    match arg.column.kind {
        TypeKind::Date if unit.is_date() => binding.column = ColumnType::new(TypeKind::Date),
        TypeKind::Time if !(unit.is_date() && unit != Unit::Day) => {
            binding.column = ColumnType::temporal(TypeKind::Time, digits);
        }
        TypeKind::Date | TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp => {
            binding.column = ColumnType::temporal(TypeKind::DateTime, digits);
        }
        _ => {
            let fraction = if digits > 0 { 1 + u64::from(digits) } else { 0 };
            connection_text(binding, 19 + fraction)?;
            binding.column.kind = TypeKind::Char;
            binding.column.decimals = digits;
        }
    }
    Ok(())
}

pub(crate) fn date_add(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    moved(bound, args[0], args[1], &bound.args[1], context, 1)
}

pub(crate) fn date_sub(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    moved(bound, args[0], args[1], &bound.args[1], context, -1)
}

pub(crate) fn timestamp_add(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    moved(bound, args[2], args[1], &bound.args[1], context, 1)
}

fn moved(
    bound: &Bound,
    start: ValueRef<'_>,
    amount: ValueRef<'_>,
    amount_type: &ColumnType,
    context: &mut Context<'_>,
    sign: i64,
) -> Evaluated {
    let unit = chosen(bound.choice);
    let step = some!(step_of(amount, amount_type, unit, context));
    let step = Step {
        months: step.months * sign,
        micros: step.micros.saturating_mul(sign),
    };
    if let (ValueRef::Time(time), TypeKind::Time) = (start, bound.column.kind) {
        let moved = time
            .micros()
            .checked_add(step.micros)
            .filter(|_| step.months == 0);
        return Ok(match moved.and_then(Time::from_micros_checked) {
            Some(time) => Value::Time(time.truncated(bound.column.decimals)),
            None => overflow(context),
        });
    }
    if matches!(start, ValueRef::Time(_)) {
        // A duration has no months and weeks.
        return Ok(Value::Null);
    }
    let has_time = match start {
        ValueRef::Bytes(text) => parse_datetime(text).is_some_and(|parsed| parsed.has_time),
        ValueRef::Date(_) => false,
        ValueRef::DateTime(_) | ValueRef::Time(_) => true,
        _ => start
            .to_i64(context.warnings)
            .is_some_and(|number| number > 99_999_999),
    };
    let start = some!(whole_moment(start, context));
    let Some(end) = stepped(start, step) else {
        return Ok(overflow(context));
    };
    let column = &bound.column;
    Ok(match column.kind {
        TypeKind::Date => Value::Date(end.date()),
        TypeKind::DateTime => Value::DateTime(end.truncated(column.decimals)),
        _ if has_time || !unit.is_date() => {
            let end = end.truncated(column.decimals);
            as_text_of(bound, Value::DateTime(end), column.decimals)
        }
        _ => as_text_of(bound, Value::Date(end.date()), 0),
    })
}

/// A date or time as the text of a text-typed call, or itself if that is wanted.
fn as_text_of(bound: &Bound, moment: Value, digits: u8) -> Value {
    if bound.gives_moments() {
        return moment;
    }
    let mut text = Vec::new();
    match moment {
        Value::Date(date) => append_date(date, &mut text),
        Value::DateTime(moment) => append_datetime(moment, digits, &mut text),
        Value::Time(time) => append_time(time, digits, &mut text),
        other => return other,
    }
    Value::Bytes(text)
}

fn overflow(context: &mut Context<'_>) -> Value {
    context.warnings.warn(moment_overflow());
    Value::Null
}

/// The result of a step; a day that its month lacks becomes the month's last.
fn stepped(start: DateTime, step: Step) -> Option<DateTime> {
    if step.months == 0 {
        return start.plus_micros(step.micros);
    }
    let date = start.date();
    let months = i64::from(date.year()) * 12 + i64::from(date.month()) - 1;
    let months = months.checked_add(step.months)?;
    let year = u16::try_from(months.div_euclid(12))
        .ok()
        .filter(|year| *year <= 9999)?;
    let month = stdx::low_u8(months.rem_euclid(12).unsigned_abs()) + 1;
    let day = date.day().min(days_in_month(year, month));
    let moved = DateTime::new(Date::new(year, month, day), start.time());
    if step.micros == 0 {
        Some(moved)
    } else {
        moved.plus_micros(step.micros)
    }
}

/// An amount of a unit as a step; `None` for NULL.
fn step_of(
    amount: ValueRef<'_>,
    column: &ColumnType,
    unit: Unit,
    context: &mut Context<'_>,
) -> Option<Step> {
    let micros_each = match unit {
        Unit::Week => 7 * DAY_MICROS,
        Unit::Day => DAY_MICROS,
        Unit::Hour => 3600 * SECOND_MICROS,
        Unit::Minute => 60 * SECOND_MICROS,
        Unit::Microsecond => 1,
        _ => 0,
    };
    let months_each = match unit {
        Unit::Year => 12,
        Unit::Quarter => 3,
        Unit::Month => 1,
        _ => 0,
    };
    if unit == Unit::Second {
        let number = amount.to_decimal(context.warnings)?;
        let micros = micros_of(&number).unwrap_or(i64::MAX);
        return Some(Step { months: 0, micros });
    }
    if unit == Unit::YearMonth {
        let (negative, parts) = numbers(&amount.to_text(column)?, 2)?;
        let months = parts[0].0.saturating_mul(12).saturating_add(parts[1].0);
        return Some(Step {
            months: if negative { -months } else { months },
            micros: 0,
        });
    }
    if !compound(unit).is_empty() {
        let text = amount.to_text(column)?;
        return Some(Step {
            months: 0,
            micros: compound_micros(&text, unit)?,
        });
    }
    let number = amount.to_i64(context.warnings)?;
    Some(Step {
        months: number.saturating_mul(months_each),
        micros: number.saturating_mul(micros_each),
    })
}

fn compound_micros(text: &[u8], unit: Unit) -> Option<i64> {
    let weights = compound(unit);
    let (negative, parts) = numbers(text, weights.len())?;
    let mut total = 0i64;
    for (index, ((number, digits), weight)) in parts.iter().zip(weights).enumerate() {
        let mut number = *number;
        // A last part in microseconds is read as digits after the point.
        if unit.has_micros() && index + 1 == weights.len() && *digits < 6 {
            number *= 10i64.pow(6 - stdx::to_u32(*digits));
        }
        total = total.saturating_add(number.saturating_mul(*weight));
    }
    Some(if negative { -total } else { total })
}

/// The sign and the numbers of a text, with the digits of each; if some are missing, they are the
/// first ones. `None` if there are too many.
fn numbers(text: &[u8], wanted: usize) -> Option<(bool, Vec<(i64, usize)>)> {
    let negative = text.trim_ascii_start().starts_with(b"-");
    let mut found: Vec<(i64, usize)> = Vec::new();
    for run in text
        .split(|byte| !byte.is_ascii_digit())
        .filter(|run| !run.is_empty())
    {
        if found.len() == wanted {
            return None;
        }
        let number = run.iter().fold(0i64, |sum, digit| {
            sum.saturating_mul(10)
                .saturating_add(i64::from(digit - b'0'))
        });
        found.push((number, run.len()));
    }
    while found.len() < wanted {
        found.insert(0, (0, 6));
    }
    Some((negative, found))
}

pub(crate) fn date_diff(_: &Bound, args: &[ValueRef<'_>], context: &mut Context<'_>) -> Evaluated {
    let left = some!(whole_moment(args[0], context));
    let right = some!(whole_moment(args[1], context));
    Ok(Value::Int(
        day_number(left.date()) - day_number(right.date()),
    ))
}

pub(crate) fn infer_time_diff(binding: &mut Binding<'_>) -> Inferred {
    let digits = binding.args.iter().map(fsp).max().unwrap_or(0);
    binding.nullable = true;
    binding.column = ColumnType::temporal(TypeKind::Time, digits);
    Ok(())
}

/// A date with time, or a duration, by the argument.
enum Clock {
    Moment(DateTime),
    Duration(Time),
}

fn clock(value: ValueRef<'_>, context: &mut Context<'_>) -> Option<Clock> {
    match value {
        ValueRef::Date(date) => Some(Clock::Moment(date.at_midnight())),
        ValueRef::DateTime(moment) => Some(Clock::Moment(moment)),
        ValueRef::Bytes(text) if parse_time(text).is_some_and(|parsed| parsed.dated) => {
            moment(value, context).map(Clock::Moment)
        }
        _ => value.to_time(context.warnings).map(Clock::Duration),
    }
}

pub(crate) fn time_diff(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let left = some!(clock(args[0], context));
    let right = some!(clock(args[1], context));
    let micros = match (left, right) {
        (Clock::Moment(left), Clock::Moment(right)) => left.to_micros() - right.to_micros(),
        (Clock::Duration(left), Clock::Duration(right)) => left.micros() - right.micros(),
        _ => return Ok(Value::Null),
    };
    if Time::from_micros_checked(micros).is_none() {
        let mut shown = Vec::new();
        append_time(Time::from_micros(micros), 0, &mut shown);
        context
            .warnings
            .warn(value::convert::truncated("time", &shown));
    }
    Ok(Value::Time(
        Time::from_micros(micros).truncated(bound.column.decimals),
    ))
}

pub(crate) fn infer_timestamp_diff(binding: &mut Binding<'_>) -> Inferred {
    binding.choice = choice_of(unit_of(&binding.args[0])?);
    binding.nullable = true;
    binding.column = of_length(TypeKind::BigInt, 21, false);
    Ok(())
}

/// Whole units from the second argument to the third.
pub(crate) fn timestamp_diff(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let from = some!(whole_moment(args[1], context));
    let to = some!(whole_moment(args[2], context));
    let micros = to.to_micros() - from.to_micros();
    let count = match chosen(bound.choice) {
        Unit::Year => months_between(from, to) / 12,
        Unit::Quarter => months_between(from, to) / 3,
        Unit::Month => months_between(from, to),
        Unit::Week => micros / (7 * DAY_MICROS),
        Unit::Day => micros / DAY_MICROS,
        Unit::Hour => micros / (3600 * SECOND_MICROS),
        Unit::Minute => micros / (60 * SECOND_MICROS),
        Unit::Second => micros / SECOND_MICROS,
        _ => micros,
    };
    Ok(Value::Int(count))
}

fn months_between(from: DateTime, to: DateTime) -> i64 {
    if to < from {
        return -months_between(to, from);
    }
    let months =
        |moment: DateTime| i64::from(moment.date().year()) * 12 + i64::from(moment.date().month());
    let rest = |moment: DateTime| (moment.date().day(), moment.time());
    months(to) - months(from) - i64::from(rest(to) < rest(from))
}

pub(crate) fn infer_add_time(binding: &mut Binding<'_>) -> Inferred {
    let digits = binding.args.iter().map(fsp).max().unwrap_or(0);
    binding.nullable = true;
    binding.choice = u32::from(digits);
    match binding.args[0].column.kind {
        TypeKind::Time => binding.column = ColumnType::temporal(TypeKind::Time, digits),
        TypeKind::Date | TypeKind::DateTime | TypeKind::Timestamp => {
            binding.column = ColumnType::temporal(TypeKind::DateTime, digits);
        }
        _ => {
            connection_text(binding, 26)?;
            binding.column.kind = TypeKind::Char;
        }
    }
    Ok(())
}

pub(crate) fn add_time(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    shifted(bound, args, context, 1)
}

pub(crate) fn sub_time(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    shifted(bound, args, context, -1)
}

fn shifted(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
    sign: i64,
) -> Evaluated {
    let start = some!(clock(args[0], context));
    let beyond =
        |number: value::Decimal| number.abs() >= value::Decimal::from(99_991_231_235_959u64);
    if bound.args[1].kind.is_number() && args[1].to_decimal(context.warnings).is_some_and(beyond) {
        return Ok(Value::Null);
    }
    let Clock::Duration(by) = some!(clock(args[1], context)) else {
        return Ok(Value::Null);
    };
    let by = by.micros() * sign;
    let column = &bound.column;
    // A number's digits are known; a text shows six or none.
    let numeric = bound.args[0].kind.is_number();
    let digits = stdx::low_u8(u64::from(bound.choice));
    let text_fsp = |micros: u32| match micros {
        _ if numeric => digits,
        0 => 0,
        _ => 6,
    };
    match start {
        Clock::Moment(start) => {
            let Some(end) = start.plus_micros(by) else {
                return Ok(overflow(context));
            };
            if column.kind == TypeKind::DateTime {
                return Ok(Value::DateTime(end.truncated(column.decimals)));
            }
            let fsp = text_fsp(end.microsecond());
            Ok(as_text_of(bound, Value::DateTime(end), fsp))
        }
        Clock::Duration(start) => {
            let end = Time::from_micros(start.micros() + by);
            if column.kind == TypeKind::Time {
                return Ok(Value::Time(end.truncated(column.decimals)));
            }
            let fsp = text_fsp(end.microsecond());
            Ok(as_text_of(bound, Value::Time(end), fsp))
        }
    }
}

/// EXTRACT(unit, moment).
pub(crate) fn infer_extract(binding: &mut Binding<'_>) -> Inferred {
    binding.choice = choice_of(unit_of(&binding.args[0])?);
    let (kind, length) = match chosen(binding.choice) {
        Unit::Year => (TypeKind::Int, 5),
        Unit::YearMonth => (TypeKind::Int, 7),
        Unit::Quarter | Unit::Month | Unit::Week | Unit::Day | Unit::Minute | Unit::Second => {
            (TypeKind::Int, 3)
        }
        Unit::Hour => (TypeKind::Int, 4),
        Unit::DayHour | Unit::HourMinute | Unit::MinuteSecond => (TypeKind::Int, 6),
        Unit::Microsecond | Unit::DayMinute | Unit::HourSecond => (TypeKind::Int, 8),
        Unit::DaySecond | Unit::SecondMicrosecond => (TypeKind::BigInt, 10),
        Unit::MinuteMicrosecond => (TypeKind::BigInt, 12),
        Unit::HourMicrosecond => (TypeKind::BigInt, 14),
        Unit::DayMicrosecond => (TypeKind::BigInt, 16),
    };
    binding.nullable = true;
    binding.column = of_length(kind, length, false);
    Ok(())
}

pub(crate) fn extract(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let unit = chosen(bound.choice);
    if unit.is_date() && unit != Unit::Day {
        // A duration has none of them. (MariaDB counts negative weeks there, without a sign.)
        if matches!(args[1], ValueRef::Time(_)) {
            return Ok(Value::Int(0));
        }
        let date = some!(moment(args[1], context)).date();
        let (year, month) = (i64::from(date.year()), i64::from(date.month()));
        return Ok(Value::Int(match unit {
            Unit::Year => year,
            Unit::Quarter => (month + 2) / 3,
            Unit::Month => month,
            Unit::Week => i64::from(week_number(date, 0).1),
            _ => year * 100 + month,
        }));
    }
    let (day, time) = some!(day_and_time(args[1], unit, context));
    let hour = i64::from(time.hour() % 24);
    let number = joined(unit, day.abs(), hour, time);
    Ok(Value::Int(if time.is_negative() || day < 0 {
        -number
    } else {
        number
    }))
}

/// The day of a date with its time, or the days of a duration with its rest.
fn day_and_time(value: ValueRef<'_>, unit: Unit, context: &mut Context<'_>) -> Option<(i64, Time)> {
    let found = match value {
        ValueRef::Bytes(text) if is_dated(text) => moment(value, context).map(Clock::Moment)?,
        // A bare number is no duration with days.
        ValueRef::Bytes(text) if unit == Unit::Day && !text.contains(&b':') => return None,
        ValueRef::Int(_) | ValueRef::UInt(_) | ValueRef::Double(_) | ValueRef::Decimal(_) => {
            let number = value.to_decimal(context.warnings)?;
            if number >= value::Decimal::from(DATED_NUMBER) {
                moment(value, context).map(Clock::Moment)?
            } else {
                return days_of_number(&number);
            }
        }
        _ => clock(value, context)?,
    };
    Some(match found {
        Clock::Moment(moment) => (i64::from(moment.date().day()), moment.time()),
        Clock::Duration(time) => (i64::from(time.hour() / 24), time),
    })
}

/// Numbers with this many digits are dates with time.
const DATED_NUMBER: u64 = 100_000_000_000;

/// HHMMSS with any number of hours, as days and the rest, both with its sign.
fn days_of_number(number: &value::Decimal) -> Option<(i64, Time)> {
    let micros = micros_of(&number.abs())?;
    let whole = micros / SECOND_MICROS;
    let (hours, minute, second) = (whole / 10_000, whole / 100 % 100, whole % 100);
    if minute > 59 || second > 59 {
        return None;
    }
    let seconds = (hours % 24 * 60 + minute) * 60 + second;
    let rest = seconds * SECOND_MICROS + micros % SECOND_MICROS;
    let (days, rest) = if number.is_negative() {
        (-(hours / 24), -rest)
    } else {
        (hours / 24, rest)
    };
    Some((days, Time::from_micros(rest)))
}

/// True if a text begins as a date with hyphens.
fn is_dated(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && text.get(digits) == Some(&b'-')
}

/// The parts of a unit as one number, with two digits each.
fn joined(unit: Unit, day: i64, hour: i64, time: Time) -> i64 {
    let (minute, second) = (i64::from(time.minute()), i64::from(time.second()));
    let micros = i64::from(time.microsecond());
    match unit {
        Unit::Day => day,
        Unit::Hour => hour,
        Unit::Minute => minute,
        Unit::Second => second,
        Unit::Microsecond => micros,
        Unit::DayHour => day * 100 + hour,
        Unit::DayMinute => day * 10_000 + hour * 100 + minute,
        Unit::DaySecond => day * 1_000_000 + hour * 10_000 + minute * 100 + second,
        Unit::HourMinute => hour * 100 + minute,
        Unit::HourSecond => hour * 10_000 + minute * 100 + second,
        Unit::MinuteSecond => minute * 100 + second,
        Unit::DayMicrosecond => {
            (day * 1_000_000 + hour * 10_000 + minute * 100 + second) * SECOND_MICROS + micros
        }
        Unit::HourMicrosecond => (hour * 10_000 + minute * 100 + second) * SECOND_MICROS + micros,
        Unit::MinuteMicrosecond => (minute * 100 + second) * SECOND_MICROS + micros,
        _ => second * SECOND_MICROS + micros,
    }
}
