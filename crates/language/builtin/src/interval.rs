//! Units of intervals.

/// A unit of INTERVAL and EXTRACT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IntervalUnit {
    /// `MICROSECOND`.
    Microsecond,
    /// `SECOND`.
    Second,
    /// `MINUTE`.
    Minute,
    /// `HOUR`.
    Hour,
    /// `DAY`.
    Day,
    /// `WEEK`.
    Week,
    /// `MONTH`.
    Month,
    /// `QUARTER`.
    Quarter,
    /// `YEAR`.
    Year,
    /// `SECOND_MICROSECOND`.
    SecondMicrosecond,
    /// `MINUTE_MICROSECOND`.
    MinuteMicrosecond,
    /// `MINUTE_SECOND`.
    MinuteSecond,
    /// `HOUR_MICROSECOND`.
    HourMicrosecond,
    /// `HOUR_SECOND`.
    HourSecond,
    /// `HOUR_MINUTE`.
    HourMinute,
    /// `DAY_MICROSECOND`.
    DayMicrosecond,
    /// `DAY_SECOND`.
    DaySecond,
    /// `DAY_MINUTE`.
    DayMinute,
    /// `DAY_HOUR`.
    DayHour,
    /// `YEAR_MONTH`.
    YearMonth,
}

impl IntervalUnit {
    /// All of them, in order.
    pub const ALL: [Self; 20] = [
        Self::Microsecond,
        Self::Second,
        Self::Minute,
        Self::Hour,
        Self::Day,
        Self::Week,
        Self::Month,
        Self::Quarter,
        Self::Year,
        Self::SecondMicrosecond,
        Self::MinuteMicrosecond,
        Self::MinuteSecond,
        Self::HourMicrosecond,
        Self::HourSecond,
        Self::HourMinute,
        Self::DayMicrosecond,
        Self::DaySecond,
        Self::DayMinute,
        Self::DayHour,
        Self::YearMonth,
    ];

    /// Its word.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Microsecond => "MICROSECOND",
            Self::Second => "SECOND",
            Self::Minute => "MINUTE",
            Self::Hour => "HOUR",
            Self::Day => "DAY",
            Self::Week => "WEEK",
            Self::Month => "MONTH",
            Self::Quarter => "QUARTER",
            Self::Year => "YEAR",
            Self::SecondMicrosecond => "SECOND_MICROSECOND",
            Self::MinuteMicrosecond => "MINUTE_MICROSECOND",
            Self::MinuteSecond => "MINUTE_SECOND",
            Self::HourMicrosecond => "HOUR_MICROSECOND",
            Self::HourSecond => "HOUR_SECOND",
            Self::HourMinute => "HOUR_MINUTE",
            Self::DayMicrosecond => "DAY_MICROSECOND",
            Self::DaySecond => "DAY_SECOND",
            Self::DayMinute => "DAY_MINUTE",
            Self::DayHour => "DAY_HOUR",
            Self::YearMonth => "YEAR_MONTH",
        }
    }

    /// The unit of a word in any case.
    #[must_use]
    pub fn named(word: &[u8]) -> Option<Self> {
        let is_it = |unit: &Self| unit.text().as_bytes().eq_ignore_ascii_case(word);
        Self::ALL.into_iter().find(is_it)
    }

    /// Whether it leaves the time of day alone.
    #[must_use]
    pub const fn is_date(self) -> bool {
        matches!(
            self,
            Self::Year | Self::Quarter | Self::Month | Self::Week | Self::Day | Self::YearMonth
        )
    }

    /// Whether it counts microseconds.
    #[must_use]
    pub const fn has_micros(self) -> bool {
        matches!(
            self,
            Self::Microsecond
                | Self::DayMicrosecond
                | Self::HourMicrosecond
                | Self::MinuteMicrosecond
                | Self::SecondMicrosecond
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unit_is_found_by_its_word_and_its_place() {
        for (place, unit) in IntervalUnit::ALL.into_iter().enumerate() {
            assert_eq!(unit as usize, place);
            let word = unit.text().to_ascii_lowercase();
            assert_eq!(IntervalUnit::named(word.as_bytes()), Some(unit));
        }
        assert_eq!(IntervalUnit::named(b"CENTURY"), None);
    }
}
