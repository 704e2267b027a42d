//! [`Stamp`]: points in time as text, in UTC.

use env::Instant;
use value::DateTime;
use value::temporal::append_datetime;

use crate::escape::digits;

/// The wall clock is looked at again after so many nanoseconds.
const TRUSTED_NANOS: u64 = 1_000_000_000;

const SECOND_MICROS: u64 = 1_000_000;

/// Turns points of monotonic time into text. It looks at the wall clock once a second, and keeps
/// the text of the present one.
#[derive(Debug, Default)]
pub struct Stamp {
    /// The same moment by both clocks, the second in microseconds since 1970.
    seen: Option<(Instant, u64)>,
    second: u64,
    /// Of that second, up to the point.
    text: Vec<u8>,
}

impl Stamp {
    /// Appends `2026-11-28T17:07:00.123456Z`. `look` tells the present moment by both clocks.
    pub fn append(
        &mut self,
        at: Instant,
        look: impl FnOnce() -> (Instant, u64),
        out: &mut Vec<u8>,
    ) {
        let is_fresh =
            |it: &(Instant, u64)| at.nanos() < it.0.nanos().saturating_add(TRUSTED_NANOS);
        let seen = self.seen.filter(is_fresh).unwrap_or_else(look);
        self.seen = Some(seen);
        let (now, wall) = seen;
        let micros = match now < at {
            true => wall.saturating_add(whole_micros(at, now)),
            false => wall.saturating_sub(whole_micros(now, at)),
        };
        let second = micros / SECOND_MICROS;
        if self.second != second || self.text.is_empty() {
            self.second = second;
            self.text.clear();
            let seconds = i64::try_from(second * SECOND_MICROS).ok();
            if let Some(time) = seconds.and_then(DateTime::from_unix_micros) {
                append_datetime(time, 0, &mut self.text);
            }
            self.text
                .iter_mut()
                .filter(|it| **it == b' ')
                .for_each(|it| *it = b'T');
            self.text.push(b'.');
        }
        out.extend_from_slice(&self.text);
        out.extend_from_slice(&digits::<6>(micros % SECOND_MICROS));
        out.push(b'Z');
    }
}

fn whole_micros(later: Instant, earlier: Instant) -> u64 {
    later.nanos().saturating_sub(earlier.nanos()) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_utc_and_follow_the_wall_clock() {
        let mut stamp = Stamp::default();
        let mut text = |at: u64, look: (u64, u64)| {
            let mut out = Vec::new();
            let at = Instant::from_nanos(at);
            stamp.append(at, || (Instant::from_nanos(look.0), look.1), &mut out);
            String::from_utf8(out).unwrap()
        };
        // Half a second past 2024-02-29 23:59:59.
        let wall = 1_709_251_199_500_000;
        let second = 1_000_000_000;
        assert_eq!(
            text(5 * second, (5 * second, wall)),
            "2024-02-29T23:59:59.500000Z"
        );
        let unasked = (0, 0);
        assert_eq!(
            text(5 * second - 1000, unasked),
            "2024-02-29T23:59:59.499999Z"
        );
        assert_eq!(
            text(5 * second + 500_000_000, unasked),
            "2024-03-01T00:00:00.000000Z"
        );
        assert_eq!(text(6 * second - 1, unasked), "2024-03-01T00:00:00.499999Z");
        // The clock was set meanwhile.
        assert_eq!(
            text(6 * second, (6 * second, 7)),
            "1970-01-01T00:00:00.000007Z"
        );
    }
}
