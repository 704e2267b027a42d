//! The machine's clocks and its entropy.

use rustix::rand::GetRandomFlags;
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::clock::{Clock, Instant};

/// CLOCK_MONOTONIC and CLOCK_REALTIME.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::from_nanos(nanos(clock_gettime(ClockId::Monotonic)))
    }

    fn wall_micros(&self) -> u64 {
        nanos(clock_gettime(ClockId::Realtime)) / 1000
    }
}

/// Nanoseconds; 0 for a clock that is set before its epoch.
fn nanos(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let rest = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

/// Fills `bytes` from the kernel's generator: for salts, keys and seeds.
///
/// # Panics
/// If the kernel has no generator, which Linux has since 3.17.
pub fn fill_secret(bytes: &mut [u8]) {
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::rand::getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("the kernel gives random bytes: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_and_secrets_differ() {
        let first = SystemClock.now();
        assert!(first <= SystemClock.now());
        // After 2020, before 2100.
        assert!(
            (1_577_836_800_000_000..4_102_444_800_000_000).contains(&SystemClock.wall_micros())
        );
        let (mut one, mut two) = ([0u8; 32], [0u8; 32]);
        fill_secret(&mut one);
        fill_secret(&mut two);
        assert_ne!(one, two);
    }
}
