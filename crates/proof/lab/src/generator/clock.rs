//! A clock that stops while its loop does, so that a pause counts as no client's latency.

use std::time::Duration;

use env::linux::SystemClock;
use env::{Clock as _, Instant};

/// Runs between [`StoppingClock::start`] and [`StoppingClock::stop`].
#[derive(Debug, Default)]
pub(super) struct StoppingClock {
    /// Its value when it was last started or stopped.
    base: Instant,
    /// When it was started; `None` while it is stopped.
    started_at: Option<Instant>,
}

impl StoppingClock {
    pub(super) fn start(&mut self) {
        self.started_at = Some(SystemClock.now());
    }

    pub(super) fn now(&self) -> Instant {
        let ran = |started_at| SystemClock.now().since(started_at);
        self.base + self.started_at.map_or(Duration::ZERO, ran)
    }

    pub(super) fn stop(&mut self) {
        self.base = self.now();
        self.started_at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(length: Duration) {
        let began = SystemClock.now();
        while SystemClock.now().since(began) < length {}
    }

    /// A measurement ends with a stop, so the stopped clock shows the time of a run.
    #[test]
    fn a_stopped_clock_shows_when_it_was_stopped() {
        let mut clock = StoppingClock::default();
        for _ in 0..2 {
            let (outside, inside) = (SystemClock.now(), clock.now());
            clock.start();
            pass(Duration::from_millis(2));
            clock.stop();
            let shown = clock.now();
            let ran = shown.since(inside);
            assert!(Duration::from_millis(2) <= ran && ran <= SystemClock.now().since(outside));
            pass(Duration::from_millis(2));
            assert_eq!(clock.now(), shown);
        }
    }
}
