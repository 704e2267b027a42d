//! STR_TO_DATE.

use std::fmt::Display;

use errcode::ER_WRONG_VALUE_FOR_TYPE;
use value::temporal::{DateRules, Time, day_number, full_year};
use value::{ColumnType, Date, DateTime, SqlCondition, TypeKind, Value, ValueRef};

use crate::bind::{Binding, Bound};
use crate::context::Context;
use crate::infer::Inferred;
use crate::null::some;
use crate::time::temporal::{DAYS, Evaluated, MONTHS};

/// A constant format determines the type: DATE, TIME or DATETIME.
pub(crate) fn infer(binding: &mut Binding<'_>) -> Inferred {
    let rules = [binding.args[0].rule, binding.args[1].rule];
    binding.texts = value::collation::mix(&rules, "str_to_date")?.collation;
    binding.nullable = true;
    let Some(Value::Bytes(format)) = &binding.args[1].constant else {
        binding.column = ColumnType::temporal(TypeKind::DateTime, 6);
        return Ok(());
    };
    let (mut date, mut time, mut micros) = (false, false, false);
    for pair in format.windows(2).filter(|pair| pair[0] == b'%') {
        match pair[1] {
            b'f' => (time, micros) = (true, true),
            b'H' | b'h' | b'I' | b'i' | b'k' | b'l' | b'p' | b'r' | b'S' | b's' | b'T' => {
                time = true;
            }
            b'%' => {}
            _ => date = true,
        }
    }
    let fsp = if micros { 6 } else { 0 };
    binding.column = match (date, time) {
        (false, true) => ColumnType::temporal(TypeKind::Time, fsp),
        (true, false) | (false, false) => ColumnType::new(TypeKind::Date),
        (true, true) => ColumnType::temporal(TypeKind::DateTime, fsp),
    };
    Ok(())
}

pub(crate) fn str_to_date(
    bound: &Bound,
    args: &[ValueRef<'_>],
    context: &mut Context<'_>,
) -> Evaluated {
    let text = some!(bound.text_arg(args, 0));
    let format = some!(bound.text_arg(args, 1));
    let mut scan = Scan {
        rest: &text,
        parts: Parts::default(),
    };
    let found = scan.run(&format).and_then(|()| scan.parts.finished());
    // Days up to 31 in every month, as MariaDB allows here; `sql_mode` decides on zero parts.
    let rules = DateRules {
        allow_invalid: true,
        ..context.dates
    };
    let refused =
        |(date, _): &(Date, Time)| bound.column.kind != TypeKind::Time && !date.check(rules);
    let Some((date, time)) = found.filter(|found| !refused(found)) else {
        let shown = value::convert::shown_in_error(&text, bound.texts.charset());
        // MariaDB uses this text for dates and times, too.
        let arguments: [&dyn Display; 3] = [&"datetime", &shown, &"str_to_date"];
        let refused = SqlCondition::new(ER_WRONG_VALUE_FOR_TYPE, &arguments);
        context.warnings.warn(refused);
        return Ok(Value::Null);
    };
    if !scan.rest.iter().all(u8::is_ascii_whitespace) {
        let kind = match bound.column.kind {
            TypeKind::Time => "time",
            TypeKind::Date => "date",
            _ => "datetime",
        };
        context
            .warnings
            .warn(value::convert::read_in_part(kind, &text));
    }
    Ok(match bound.column.kind {
        TypeKind::Time => Value::Time(time),
        TypeKind::Date => Value::Date(date),
        _ => Value::DateTime(DateTime::new(date, time)),
    })
}

#[derive(Debug, Default)]
struct Parts {
    year: u32,
    month: u32,
    day: u32,
    day_of_year: u32,
    hour: u32,
    minute: u32,
    second: u32,
    micros: u32,
    twelve_hours: bool,
    afternoon: Option<bool>,
    week: Option<(u32, u8)>,
    week_year: Option<u32>,
    weekday: Option<u32>,
}

struct Scan<'a> {
    rest: &'a [u8],
    parts: Parts,
}

impl Scan<'_> {
    fn run(&mut self, format: &[u8]) -> Option<()> {
        let mut format = format.iter().copied();
        while let Some(byte) = format.next() {
            if self.rest.is_empty() {
                // If a text ends early, the other parts are zero.
                return Some(());
            }
            if byte == b'%' {
                let specifier = format.next()?;
                if !matches!(specifier, b'%') {
                    self.skip_blanks();
                }
                self.specifier(specifier)?;
            } else if byte.is_ascii_whitespace() {
                self.skip_blanks();
            } else {
                self.skip_blanks();
                self.literal(byte)?;
            }
        }
        Some(())
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    fn literal(&mut self, byte: u8) -> Option<()> {
        let (first, after) = self.rest.split_first()?;
        if *first != byte {
            return None;
        }
        self.rest = after;
        Some(())
    }

    fn number(&mut self, digits: usize) -> Option<u32> {
        let count = self
            .rest
            .iter()
            .take(digits)
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if count == 0 {
            return None;
        }
        let (taken, after) = self.rest.split_at(count);
        self.rest = after;
        Some(
            taken
                .iter()
                .fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0')),
        )
    }

    fn name(&mut self, names: &[&str], short: bool) -> Option<u32> {
        for (index, name) in names.iter().enumerate() {
            let name = if short {
                &name.as_bytes()[..3]
            } else {
                name.as_bytes()
            };
            let found = self.rest.get(..name.len())?.eq_ignore_ascii_case(name);
            if found {
                self.rest = &self.rest[name.len()..];
                return u32::try_from(index + 1).ok();
            }
        }
        None
    }

    fn specifier(&mut self, specifier: u8) -> Option<()> {
        match specifier {
            b'Y' => self.parts.year = self.year()?,
            b'y' => {
                let year = self.number(2)?;
                self.parts.year = u32::from(full_year(u16::try_from(year).ok()?));
            }
            b'm' | b'c' => self.parts.month = self.number(2)?,
            b'M' => self.parts.month = self.name(&MONTHS, false)?,
            b'b' => self.parts.month = self.name(&MONTHS, true)?,
            b'd' | b'e' => self.parts.day = self.number(2)?,
            b'D' => {
                self.parts.day = self.number(2)?;
                self.rest = self.rest.get(2..).unwrap_or(&[]);
            }
            b'j' => self.parts.day_of_year = self.number(3)?,
            b'a' => self.parts.weekday = Some(self.name(&DAYS, true)?),
            b'W' => self.parts.weekday = Some(self.name(&DAYS, false)?),
            b'w' => {
                let day = self.number(1)?;
                self.parts.weekday = Some(if day == 0 { 7 } else { day });
            }
            b'U' | b'u' | b'V' | b'v' => {
                let week = self.number(2).filter(|week| *week <= 53)?;
                self.parts.week = Some((week, specifier));
            }
            b'X' | b'x' => self.parts.week_year = Some(self.number(4)?),
            _ => return self.time_specifier(specifier),
        }
        Some(())
    }

    fn time_specifier(&mut self, specifier: u8) -> Option<()> {
        match specifier {
            b'H' | b'k' => self.parts.hour = self.number(2)?,
            b'h' | b'I' | b'l' => {
                self.parts.hour = self.number(2)?;
                self.parts.twelve_hours = true;
            }
            b'i' => self.parts.minute = self.number(2)?,
            b'S' | b's' => self.parts.second = self.number(2)?,
            b'f' => {
                let before = self.rest.len();
                let micros = self.number(6)?;
                let digits = u32::try_from(before - self.rest.len()).ok()?;
                self.parts.micros = micros * 10u32.pow(6 - digits);
            }
            b'p' => {
                self.parts.afternoon = Some(
                    self.name(&["AM ", "PM "], false).or_else(|| {
                        let half = self.rest.get(..2)?;
                        let found = ["AM", "PM"]
                            .iter()
                            .position(|name| half.eq_ignore_ascii_case(name.as_bytes()))?;
                        self.rest = &self.rest[2..];
                        u32::try_from(found + 1).ok()
                    })? == 2,
                )
            }
            b'T' => self.run(b"%H:%i:%S")?,
            b'r' => self.run(b"%I:%i:%S %p")?,
            other => self.literal(other)?,
        }
        Some(())
    }

    /// A year of four digits; one of two is completed.
    fn year(&mut self) -> Option<u32> {
        let before = self.rest.len();
        let year = self.number(4)?;
        if before - self.rest.len() == 2 {
            return Some(u32::from(full_year(u16::try_from(year).ok()?)));
        }
        Some(year)
    }
}

impl Parts {
    fn finished(&self) -> Option<(Date, Time)> {
        let mut hour = self.hour;
        if self.twelve_hours {
            if !(1..=12).contains(&hour) {
                return None;
            }
            hour %= 12;
        }
        if self.afternoon == Some(true) {
            if !self.twelve_hours {
                return None;
            }
            hour += 12;
        }
        if hour > 23 || self.minute > 59 || self.second > 59 || self.month > 12 || self.day > 31 {
            return None;
        }
        let small = |number: u32| stdx::low_u8(u64::from(number));
        let date = match (self.day_of_year, self.week) {
            (1.., _) => {
                let first = Date::new(u16::try_from(self.year).ok()?, 1, 1);
                Date::from_day_number(day_number(first) + i64::from(self.day_of_year) - 1)?
            }
            (_, Some((week, rule))) if self.weekday.is_some() => self.of_week(week, rule)?,
            _ => Date::new(
                u16::try_from(self.year).ok()?,
                small(self.month),
                small(self.day),
            ),
        };
        let time = Time::from_parts(
            false,
            hour,
            small(self.minute),
            small(self.second),
            self.micros,
        );
        Some((date, time))
    }

    /// The date of a week and weekday: for `%U %u` in the calendar year, for `%V %v` in the week's.
    fn of_week(&self, week: u32, rule: u8) -> Option<Date> {
        let sunday_first = matches!(rule, b'U' | b'V');
        let strict = matches!(rule, b'V' | b'v');
        let year = if strict { self.week_year? } else { self.year };
        let first = day_number(Date::new(u16::try_from(year).ok()?, 1, 1));
        let weekday = i64::from(self.weekday?);
        let first_weekday = (first + if sunday_first { 6 } else { 5 }).rem_euclid(7);
        let (first_weekday, weekday) = if sunday_first {
            ((7 - first_weekday) % 7, weekday % 7)
        } else {
            (
                if first_weekday <= 3 { 0 } else { 7 } - first_weekday,
                weekday - 1,
            )
        };
        let days = first + first_weekday + (i64::from(week) - 1) * 7 + weekday;
        Date::from_day_number(days)
    }
}
