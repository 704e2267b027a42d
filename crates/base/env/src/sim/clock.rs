//! A clock that stands still until it is moved.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use sync::Mutex;

use crate::clock::{Clock, Instant};

/// Simulated time, shared by its clones. The executor moves it on when nothing can run.
#[derive(Debug, Clone, Default)]
pub struct SimClock {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// The present.
    now: Instant,
    /// Wakers by their time; the number keeps the order of equal times.
    timers: BTreeMap<(Instant, u64), Waker>,
    /// Numbers used so far.
    number: u64,
}

/// What wall clocks show at the start of each run: 2026-01-01 00:00 UTC.
const WALL_START_MICROS: u64 = 1_767_225_600_000_000;

impl SimClock {
    /// A clock at zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Wakes `waker` once the time has come to `due`.
    pub fn wake_at(&self, due: Instant, waker: Waker) {
        let mut state = self.state.lock();
        state.number += 1;
        let key = (due, state.number);
        state.timers.insert(key, waker);
    }

    /// Waits until `duration` from now.
    pub async fn sleep(&self, duration: Duration) {
        let due = self.now() + duration;
        let mut is_registered = false;
        poll_fn(|context| {
            if due <= self.now() {
                return Poll::Ready(());
            }
            if !is_registered {
                is_registered = true;
                self.wake_at(due, context.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }

    /// The process stands still for so long: what was due meanwhile is late.
    pub fn stall(&self, duration: Duration) {
        let mut state = self.state.lock();
        state.now = state.now + duration;
    }

    /// Moves on to the next timer and wakes it. Returns `false` if there is none.
    pub fn advance(&self) -> bool {
        let mut state = self.state.lock();
        let Some(((due, _), waker)) = state.timers.pop_first() else {
            return false;
        };
        state.now = state.now.max(due);
        drop(state);
        waker.wake();
        true
    }
}

impl Clock for SimClock {
    fn now(&self) -> Instant {
        self.state.lock().now
    }

    fn wall_micros(&self) -> u64 {
        WALL_START_MICROS + self.now().nanos() / 1000
    }
}
