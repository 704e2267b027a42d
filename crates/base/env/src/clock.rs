//! Clocks, as an argument.

use std::ops::{Add, Sub};
use std::time::Duration;

/// A source of the time.
pub trait Clock {
    /// Time that never goes back.
    fn now(&self) -> Instant;

    /// Microseconds since 1970-01-01 00:00 UTC. May jump when the machine's clock is set.
    fn wall_micros(&self) -> u64;
}

/// A point of monotonic time: nanoseconds since a moment that differs from boot to boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The point `nanos` nanoseconds after the clock's start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's start.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Time since `earlier`; zero if that is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    /// Stops at the end of time, 584 years on.
    fn add(self, duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

impl Sub for Instant {
    type Output = Duration;

    /// As [`Instant::since`].
    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_stays_in_range() {
        let start = Instant::from_nanos(5);
        let later = start + Duration::from_micros(2);
        assert_eq!(later.nanos(), 2005);
        assert_eq!(later - start, Duration::from_micros(2));
        assert_eq!(start - later, Duration::ZERO);
        assert_eq!((start + Duration::MAX).nanos(), u64::MAX);
    }
}
