//! [`DateTime`] and [`Time`] in the binary protocol.
//!
//! | type | bytes after the length |
//! |---|---|
//! | date, datetime | none (all zero) |
//! | | 4: year (2), month, day |
//! | | 7: and hour, minute, second |
//! | | 11: and microseconds (4) |
//! | time | none (zero) |
//! | | 8: is negative, days (4), hours, minutes, seconds |
//! | | 12: and microseconds (4) |
//!
//! The fields are not checked here: the types of SQL decide whether there is a 31st of February.

use crate::cursor::{Cursor, Malformed};
use crate::packet_writer::Packet;

/// A date, with or without a time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DateTime {
    /// 0 to 9999.
    pub year: u16,
    /// 1 to 12; 0 in a zero or partial date.
    pub month: u8,
    /// 1 to 31; 0 in a zero or partial date.
    pub day: u8,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
    /// 0 to 999999.
    pub microsecond: u32,
}

/// A signed amount of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Time {
    /// Whether it is below zero.
    pub is_negative: bool,
    /// Whole days.
    pub days: u32,
    /// 0 to 23.
    pub hours: u8,
    /// 0 to 59.
    pub minutes: u8,
    /// 0 to 59.
    pub seconds: u8,
    /// 0 to 999999.
    pub microseconds: u32,
}

impl DateTime {
    pub(crate) fn encode(&self, packet: &mut Packet<'_>) {
        let [year_low, year_high] = self.year.to_le_bytes();
        let has_time = (self.hour, self.minute, self.second) != (0, 0, 0);
        let length = match (
            self.microsecond != 0,
            has_time,
            *self == DateTime::default(),
        ) {
            (true, _, _) => 11,
            (false, true, _) => 7,
            (false, false, false) => 4,
            (false, false, true) => 0,
        };
        packet.u8(length);
        if length >= 4 {
            packet.bytes(&[year_low, year_high, self.month, self.day]);
        }
        if length >= 7 {
            packet.bytes(&[self.hour, self.minute, self.second]);
        }
        if length == 11 {
            packet.u32(self.microsecond);
        }
    }

    pub(crate) fn decode(cursor: &mut Cursor<'_>) -> Result<DateTime, Malformed> {
        const WHAT: &str = "date";
        let length = cursor.u8(WHAT)?;
        let mut value = DateTime::default();
        if !matches!(length, 0 | 4 | 7 | 11) {
            return Err(Malformed::new(WHAT));
        }
        if length >= 4 {
            value.year = cursor.u16(WHAT)?;
            [value.month, value.day] = cursor.array(WHAT)?;
        }
        if length >= 7 {
            [value.hour, value.minute, value.second] = cursor.array(WHAT)?;
        }
        if length == 11 {
            value.microsecond = cursor.u32(WHAT)?;
        }
        Ok(value)
    }
}

impl Time {
    pub(crate) fn encode(&self, packet: &mut Packet<'_>) {
        if (Time {
            is_negative: false,
            ..*self
        }) == Time::default()
        {
            packet.u8(0);
            return;
        }
        packet.u8(if self.microseconds == 0 { 8 } else { 12 });
        packet.u8(u8::from(self.is_negative));
        packet.u32(self.days);
        packet.bytes(&[self.hours, self.minutes, self.seconds]);
        if self.microseconds != 0 {
            packet.u32(self.microseconds);
        }
    }

    pub(crate) fn decode(cursor: &mut Cursor<'_>) -> Result<Time, Malformed> {
        const WHAT: &str = "time";
        let length = cursor.u8(WHAT)?;
        let mut value = Time::default();
        if !matches!(length, 0 | 8 | 12) {
            return Err(Malformed::new(WHAT));
        }
        if length >= 8 {
            value.is_negative = cursor.u8(WHAT)? != 0;
            value.days = cursor.u32(WHAT)?;
            [value.hours, value.minutes, value.seconds] = cursor.array(WHAT)?;
        }
        if length == 12 {
            value.microseconds = cursor.u32(WHAT)?;
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PacketWriter;

    #[test]
    fn shortest_form_is_written_and_read_back() {
        let dates = [
            (DateTime::default(), 0),
            (
                DateTime {
                    year: 2024,
                    month: 2,
                    day: 29,
                    ..DateTime::default()
                },
                4,
            ),
            (
                DateTime {
                    second: 1,
                    ..DateTime::default()
                },
                7,
            ),
            (
                DateTime {
                    year: 1,
                    microsecond: 5,
                    ..DateTime::default()
                },
                11,
            ),
        ];
        for (date, length) in dates {
            let mut out = PacketWriter::new();
            let mut packet = out.begin();
            date.encode(&mut packet);
            packet.finish();
            let payload = &out.as_bytes()[4..];
            assert_eq!(payload.len(), length + 1);
            assert_eq!(DateTime::decode(&mut Cursor::new(payload)), Ok(date));
        }
        let times = [
            (Time::default(), 0),
            (
                Time {
                    is_negative: true,
                    days: 34,
                    hours: 22,
                    ..Time::default()
                },
                8,
            ),
            (
                Time {
                    microseconds: 1,
                    ..Time::default()
                },
                12,
            ),
        ];
        for (time, length) in times {
            let mut out = PacketWriter::new();
            let mut packet = out.begin();
            time.encode(&mut packet);
            packet.finish();
            let payload = &out.as_bytes()[4..];
            assert_eq!(payload.len(), length + 1);
            assert_eq!(Time::decode(&mut Cursor::new(payload)), Ok(time));
        }
    }

    #[test]
    fn odd_lengths_are_refused() {
        for length in [1_u8, 3, 5, 12, 255] {
            let bytes = [length; 20];
            assert!(DateTime::decode(&mut Cursor::new(&bytes)).is_err());
        }
        assert!(Time::decode(&mut Cursor::new(&[7; 20])).is_err());
        assert!(Time::decode(&mut Cursor::new(&[8, 0, 0])).is_err());
    }
}
