//! Stores into DATE, TIME, DATETIME and TIMESTAMP columns.

use errcode::{ER_TRUNCATED_WRONG_VALUE, ER_WARN_INVALID_TIMESTAMP};

use super::{Place, Store};
use crate::convert::{datetime_of_number, time_of_number};
use crate::temporal::{Date, DateTime, Time, is_timestamp, parse_datetime, parse_time};
use crate::{Decimal, SqlCondition, TypeKind, Value, ValueRef};

/// A date with time, and whether a part of the text or number was left over.
struct Found {
    value: DateTime,
    truncated: bool,
}

impl Store<'_> {
    pub(super) fn date(&mut self, value: ValueRef<'_>) -> Result<Value, SqlCondition> {
        let Some(found) = self.find_datetime(value) else {
            self.incorrect_temporal("date", value)?;
            return Ok(Value::Date(Date::ZERO));
        };
        if !found.value.date().check(self.rules.dates) {
            self.incorrect_temporal("date", value)?;
            return Ok(Value::Date(Date::ZERO));
        }
        if found.truncated {
            self.incorrect_temporal("date", value)?;
        } else if !(found.value.date() == Date::ZERO && value_is_number(value))
            && (found.value.time() != Time::ZERO || matches!(value, ValueRef::Time(_)))
        {
            self.note_truncated();
        }
        Ok(Value::Date(found.value.date()))
    }

    pub(super) fn datetime(&mut self, value: ValueRef<'_>) -> Result<Value, SqlCondition> {
        let Some(found) = self.find_datetime(value) else {
            self.incorrect_temporal("datetime", value)?;
            return Ok(Value::DateTime(DateTime::ZERO));
        };
        let time = found.value.truncated(self.to.decimals);
        if !time.date().check(self.rules.dates) {
            self.incorrect_temporal("datetime", value)?;
            return Ok(Value::DateTime(DateTime::ZERO));
        }
        if found.truncated {
            self.incorrect_temporal("datetime", value)?;
        }
        if self.to.kind == TypeKind::Timestamp && time != DateTime::ZERO {
            return self.timestamp(time, value);
        }
        Ok(Value::DateTime(time))
    }

    fn timestamp(&mut self, time: DateTime, value: ValueRef<'_>) -> Result<Value, SqlCondition> {
        if time.date().has_zero_part() {
            self.incorrect_temporal("datetime", value)?;
            return Ok(Value::DateTime(DateTime::ZERO));
        }
        let zone = self.rules.zone;
        let Some(utc) = zone.to_utc(time).filter(|utc| is_timestamp(*utc)) else {
            if self.rules.strict {
                self.incorrect_temporal("datetime", value)?;
            }
            self.out_of_range()?;
            return Ok(Value::DateTime(DateTime::ZERO));
        };
        if zone.from_utc(utc) != Some(time) {
            self.left_out(value)?;
        }
        Ok(Value::DateTime(utc))
    }

    /// A local time that does not exist because clocks were set forward over it.
    fn left_out(&mut self, value: ValueRef<'_>) -> Result<(), SqlCondition> {
        if self.rules.strict {
            return self.incorrect_temporal("datetime", value);
        }
        let Place { column, row, .. } = self.place;
        self.condition(SqlCondition::new(
            ER_WARN_INVALID_TIMESTAMP,
            &[&column, &row],
        ))
    }

    pub(super) fn time(&mut self, value: ValueRef<'_>) -> Result<Value, SqlCondition> {
        let time = match value {
            ValueRef::Time(time) => time,
            ValueRef::Date(_) => {
                self.note_truncated();
                Time::ZERO
            }
            ValueRef::DateTime(time) => {
                self.note_truncated();
                time.time()
            }
            ValueRef::Bytes(text) => return self.time_of_text(text),
            _ => match time_of_number(&number(value)) {
                Some(found) if !found.out_of_range => {
                    if found.dated {
                        self.note_truncated();
                    }
                    found.value
                }
                Some(found) => return self.time_beyond(value, found.value),
                None => {
                    self.incorrect_temporal("time", value)?;
                    Time::ZERO
                }
            },
        };
        Ok(Value::Time(time.truncated(self.to.decimals)))
    }

    fn time_of_text(&mut self, text: &[u8]) -> Result<Value, SqlCondition> {
        let Some(parsed) = parse_time(text) else {
            self.incorrect_temporal("time", ValueRef::Bytes(text))?;
            return Ok(Value::Time(Time::ZERO));
        };
        if parsed.out_of_range {
            return self.time_beyond(ValueRef::Bytes(text), parsed.value);
        }
        if parsed.truncated {
            self.incorrect_temporal("time", ValueRef::Bytes(text))?;
        } else if parsed.dated {
            self.note_truncated();
        }
        Ok(Value::Time(parsed.value.truncated(self.to.decimals)))
    }

    /// A number or text out of the range of TIME: stores the bound.
    fn time_beyond(&mut self, value: ValueRef<'_>, bound: Time) -> Result<Value, SqlCondition> {
        if self.rules.strict {
            self.incorrect_temporal("time", value)?;
        }
        self.out_of_range()?;
        Ok(Value::Time(bound.truncated(self.to.decimals)))
    }

    fn find_datetime(&self, value: ValueRef<'_>) -> Option<Found> {
        let (value, truncated) = match value {
            ValueRef::Date(date) => (date.at_midnight(), false),
            ValueRef::DateTime(time) => (time, false),
            ValueRef::Time(time) => (
                self.rules.today.at_midnight().plus_micros(time.micros())?,
                false,
            ),
            ValueRef::Bytes(text) => {
                let parsed = parse_datetime(text)?;
                (parsed.value, parsed.truncated)
            }
            _ => (datetime_of_number(&number(value))?, false),
        };
        Some(Found { value, truncated })
    }

    /// 1292 in strict mode, else warning 1265.
    fn incorrect_temporal(&mut self, kind: &str, value: ValueRef<'_>) -> Result<(), SqlCondition> {
        if !self.rules.strict {
            return self.data_truncated();
        }
        let text = value.to_text(self.from).unwrap_or_default();
        self.incorrect(ER_TRUNCATED_WRONG_VALUE, kind, &text)
    }
}

fn number(value: ValueRef<'_>) -> Decimal {
    value
        .to_decimal(&mut crate::Warnings::new(0))
        .unwrap_or(Decimal::ZERO)
}

/// The fraction of a number that is no date is dropped silently.
fn value_is_number(value: ValueRef<'_>) -> bool {
    !matches!(
        value,
        ValueRef::Bytes(_) | ValueRef::Date(_) | ValueRef::Time(_) | ValueRef::DateTime(_)
    )
}
