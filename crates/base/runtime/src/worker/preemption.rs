//! Whether a worker that wakes up takes its core from the program that runs there.
//!
//! It does by default, as every thread does. A worker that passes on small packets then wakes up
//! for each of them: it pays for two switches of the core to handle one, while the programs that
//! would have sent the next ones stand still. As `SCHED_BATCH` (sched(7)) a worker that wakes up
//! waits for the program on its core to sleep, or for the end of its time slice. It finds more to
//! do then. On a core of its own nothing changes.
//!
//! With few tasks there is little to be collected, and the time slice of another program is long:
//! one client of a gateway beside programs that only compute waits 4 ms a statement instead of
//! 0.1. So a worker does so only while it serves many tasks. `docs/bench/gateway.md` has the
//! measurements.

use std::io;
use std::time::Duration;

use env::Instant;

use crate::options::Preemption;

/// Tasks are counted over this time: ten statements of a busy client.
const WINDOW: Duration = Duration::from_millis(10);

/// So many tasks in a window make a worker wait for its core. Eight clients with two programs that
/// compute beside them lose nothing by it.
const TASKS_MANY: u32 = 6;

/// With fewer than these it takes its core again. The distance keeps it from changing each window.
const TASKS_FEW: u32 = 4;

/// What a worker does when it wakes up, as a pure decision.
#[derive(Debug)]
pub(crate) struct Wakeups {
    /// Constant.
    preemption: Preemption,
    /// When the window began.
    began: Instant,
    /// The slots of the tasks polled in the window, modulo 64.
    seen: u64,
    /// What the kernel was told last.
    policy: Policy,
}

/// How the kernel schedules a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    /// It takes its core when it wakes up (`SCHED_OTHER`).
    Takes,
    /// It waits for its core (`SCHED_BATCH`).
    Waits,
}

impl Wakeups {
    pub(crate) fn new(preemption: Preemption, now: Instant) -> Wakeups {
        Wakeups {
            preemption,
            began: now,
            seen: 0,
            policy: Policy::Takes,
        }
    }

    /// Notes that the task in this slot is polled.
    pub(crate) fn note(&mut self, slot: usize) {
        self.seen |= 1 << (slot % 64);
    }

    /// Called at the beginning of each turn. Returns what the kernel is to be told, if it changes.
    pub(crate) fn turn(&mut self, now: Instant) -> Option<Policy> {
        if self.preemption == Preemption::Always || now.since(self.began) < WINDOW {
            return None;
        }
        let count = self.seen.count_ones();
        (self.began, self.seen) = (now, 0);
        let policy = match self.policy {
            Policy::Takes if TASKS_MANY <= count => Policy::Waits,
            Policy::Waits if count < TASKS_FEW => Policy::Takes,
            _ => return None,
        };
        self.policy = policy;
        Some(policy)
    }
}

/// Tells the kernel how to schedule this thread.
pub(crate) fn tell(policy: Policy) -> io::Result<()> {
    let policy = match policy {
        Policy::Takes => libc::SCHED_OTHER,
        Policy::Waits => libc::SCHED_BATCH,
    };
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the pointer is to a local of the type that the call reads, and it writes nothing. 0
    // is the calling thread.
    let told = unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
    match told {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is decided at the end of a window with so many tasks.
    fn window(wakeups: &mut Wakeups, now: &mut Instant, tasks: usize) -> Option<Policy> {
        (0..tasks).for_each(|slot| wakeups.note(slot));
        *now = *now + WINDOW;
        wakeups.turn(*now)
    }

    #[test]
    fn many_tasks_make_a_worker_wait_and_few_end_that() {
        let mut now = Instant::from_nanos(0);
        let mut wakeups = Wakeups::new(Preemption::WhileFewAreServed, now);
        for (tasks, expected) in [
            (5, None),
            (6, Some(Policy::Waits)),
            (7, None),
            (4, None),
            (3, Some(Policy::Takes)),
            (5, None),
            (64, Some(Policy::Waits)),
            (0, Some(Policy::Takes)),
        ] {
            assert_eq!(window(&mut wakeups, &mut now, tasks), expected, "{tasks}");
        }
    }

    #[test]
    fn a_task_counts_once_and_only_in_its_window() {
        let mut now = Instant::from_nanos(0);
        let mut wakeups = Wakeups::new(Preemption::WhileFewAreServed, now);
        (0..100).for_each(|_| wakeups.note(3));
        assert_eq!(wakeups.turn(now + WINDOW / 2), None);
        assert_eq!(window(&mut wakeups, &mut now, 5), None);
        assert_eq!(window(&mut wakeups, &mut now, 5), None);
    }

    #[test]
    fn without_leave_a_worker_always_takes_its_core() {
        let mut now = Instant::from_nanos(0);
        let mut wakeups = Wakeups::new(Preemption::Always, now);
        assert_eq!(window(&mut wakeups, &mut now, 64), None);
    }

    #[test]
    fn the_kernel_takes_both() {
        // Of the test's own thread, which ends with it.
        tell(Policy::Waits).unwrap();
        tell(Policy::Takes).unwrap();
    }
}
