//! Which runnable task is polled next. Knows no task, no clock and no kernel.
//!
//! Thousands of clients that are served strictly in turn find everything cold: by the time one has
//! its turn again, the caches have forgotten its session, its sockets and its buffers, ours and the
//! kernel's, and a short statement costs half as much again. So an overloaded worker serves a
//! *cohort* of them for a *shift*, over and over while they keep asking, and then the next (cohort
//! scheduling: Larus and Parkes, 2002; and as thread pools do, those that are inside a transaction
//! go before those that would begin one). A worker that keeps up with its clients never comes to
//! that: its cohort is all that are there, first come first served.
//!
//! What the length of a shift decides is how often a client is served before it has to wait, and
//! how long it then waits; what the number of a cohort decides is how warm it stays meanwhile, and
//! how many transactions are open. Both are small: measured with 4,096 clients, 24 of them for
//! 2.5 ms read a third more in transactions than 128 for 10 ms, and point queries a tenth more.
//!
//! ```text
//! ready ----------------------------------------------------> prompt ---+
//! heard, served in this shift ------------------------------> warm -----+--> polled
//! heard, not yet served in it --> engaged, free --admitted--> warm -----+
//! yielded --------------------------------------------------> yielded --+
//! ```
//!
//! What is *ready* goes on with work that has begun: a row lock was granted, a page was read, time
//! is up. It never waits for a cohort. What was *heard* is a client's next request. What has
//! *yielded* computes for long and gave way in the middle of it.
//!
//! (Q1) Every task that was put in comes out once.
//! (Q2) Within `prompt`, `warm`, `engaged`, `free` and `yielded`, first come first served.
//! (Q3) They are served in rounds: those that are in `prompt` as the round begins, so many of
//!      `warm`, one of `yielded`. So none stops the others, however many it has.
//! (Q4) A shift begins by admitting a cohort; the oldest of `free` have a part of it of their own.
//!      So one that has `n` others before it in `free` is admitted within `n / FREE_COUNT + 1`
//!      shifts, in `engaged` within `n / ENGAGED_COUNT + 1`, whatever the others do.
//! (Q5) Nothing waits while there is nothing else to do: a turn that finds `warm` short, and
//!      `prompt` empty or `warm` short for the second time, admits in the middle of a shift.
//!
//! A shift begins when a turn finds the last one over. Who came again in the last one goes to the
//! back: it had its time. Who was admitted and not served goes to the front. Who ends a transaction
//! goes to the back at once if others wait to begin one.

use std::collections::VecDeque;
use std::time::Duration;

use env::Instant;

/// What a task would do next, seen from those who wait beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// In the middle of its work; so is every task that does not say otherwise.
    Busy,
    /// Waits for its client, and holds what others may want: locks, a snapshot.
    Engaged,
    /// Waits for its client, and holds nothing.
    Free,
}

/// Names a shift.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ShiftId(pub(crate) u32);

/// How a task came to wait.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Last {
    pub(crate) standing: Standing,
    /// The shift in which it was served last.
    pub(crate) served: ShiftId,
    /// It is free and was engaged before: what it had begun is over, and others may begin.
    pub(crate) has_disengaged: bool,
}

/// The least time that a cohort has the worker: what small cohorts have that would be served
/// [`SERVED_COUNT`] times in less.
const SHIFT_MIN: Duration = Duration::from_micros(2500);

/// After [`SHIFT_MIN`], a shift is over once those whom it admitted were served this often, taken
/// together. Where each statement waits for the log the cohort has grown meanwhile (Q5), and would
/// be sent away when it comes back. What is cold at the first time is spread over so many: measured
/// with 4,096 clients, 12 gave a twentieth more than 4 in transactions and in single statements,
/// and the slowest of point queries waited half as long again; 16 gave no more. All of 4,096
/// clients of point queries have had a turn of two workers after two fifths of a second.
const SERVED_COUNT: usize = 12;

/// The most time that a cohort has the worker.
pub(crate) const SHIFT_MAX: Duration = Duration::from_millis(10);

/// Tasks admitted as a shift begins: what they touch, a score of KiB each with both sides of a
/// socket, fits into the core's own cache.
const COHORT_COUNT: usize = 24;

/// Places of a cohort that the free have to themselves. The engaged hold up others, and have the
/// rest as far as they fill it: so a transaction that was begun goes on shift after shift, and no
/// more are begun than a cohort can carry. One of twenty statements is in some five cohorts; were
/// more than a fifth of the places the free's own, in the end all would be engaged.
const FREE_COUNT: usize = COHORT_COUNT / 8;

/// Places of a cohort that the engaged have to themselves.
const ENGAGED_COUNT: usize = COHORT_COUNT - FREE_COUNT;

/// Warm tasks with which a turn begins if there are as many to admit: fewer would make the call to
/// the kernel, once a turn, a large part of each. What is admitted for it joins the cohort, so the
/// cohort grows until its clients keep the worker busy.
const WARM_COUNT_MIN: usize = 12;

/// The most of `warm` in a round: a slice of a long statement to about a millisecond of short ones.
const ROUND_WARM_COUNT: usize = 128;

const _: () = assert!(WARM_COUNT_MIN < COHORT_COUNT, "a cohort fills a turn");
const _: () = assert!(0 < FREE_COUNT && 0 < ENGAGED_COUNT, "both are admitted");

/// See the module's head.
#[derive(Debug)]
pub(crate) struct RunQueue<T> {
    prompt: VecDeque<T>,
    warm: VecDeque<Warm<T>>,
    yielded: VecDeque<T>,
    /// How many of `prompt`, of `warm` and of `yielded` this round may still serve.
    prompt_left: usize,
    warm_left: usize,
    yielded_left: usize,
    engaged: VecDeque<T>,
    free: VecDeque<T>,
    shift: ShiftId,
    /// `None`: there was none yet.
    shift_began: Option<Instant>,
    /// How many were admitted in this shift, and how often `warm` was served in it.
    admitted_count: usize,
    served_count: usize,
    /// As the last turn began, `warm` was short.
    was_short: bool,
}

#[derive(Debug)]
struct Warm<T> {
    standing: Standing,
    /// It was admitted, and is not served yet.
    is_first: bool,
    task: T,
}

impl<T> RunQueue<T> {
    /// Nothing to do. The first turn begins a shift.
    pub(crate) fn new() -> Self {
        Self {
            prompt: VecDeque::new(),
            warm: VecDeque::new(),
            yielded: VecDeque::new(),
            prompt_left: 0,
            warm_left: 0,
            yielded_left: 0,
            engaged: VecDeque::new(),
            free: VecDeque::new(),
            shift: ShiftId(0),
            shift_began: None,
            admitted_count: 0,
            served_count: 0,
            was_short: false,
        }
    }

    /// The present shift: for noting in which one a task was served.
    pub(crate) fn shift(&self) -> ShiftId {
        self.shift
    }

    /// Takes a task in that can go on with its work.
    pub(crate) fn push_ready(&mut self, task: T) {
        self.prompt.push_back(task);
    }

    /// Takes a task in that gave way to others.
    pub(crate) fn push_yielded(&mut self, task: T) {
        self.yielded.push_back(task);
    }

    /// Takes a task in whose client was heard.
    pub(crate) fn push_heard(&mut self, task: T, last: Last) {
        let has_ended = last.has_disengaged && !self.free.is_empty();
        let is_warm = last.served == self.shift && !has_ended;
        let standing = last.standing;
        match standing {
            Standing::Busy => self.prompt.push_back(task),
            _ if is_warm => self.warm.push_back(Warm {
                standing,
                is_first: false,
                task,
            }),
            Standing::Engaged => self.engaged.push_back(task),
            Standing::Free => self.free.push_back(task),
        }
    }

    /// Begins a turn: what [`RunQueue::pop`] gives until the next is chosen as of `now`.
    pub(crate) fn begin_turn(&mut self, now: Instant) {
        let is_short = self.is_short();
        let was_short = std::mem::replace(&mut self.was_short, is_short);
        if self.is_shift_over(now) {
            self.begin_shift(now);
        } else if is_short && (was_short || self.prompt.is_empty()) {
            self.admit(WARM_COUNT_MIN - self.warm.len());
        }
    }

    fn is_shift_over(&self, now: Instant) -> bool {
        let Some(began) = self.shift_began else {
            return true;
        };
        let elapsed = now.since(began);
        let had_its_part = self.admitted_count * SERVED_COUNT <= self.served_count;
        SHIFT_MIN <= elapsed && (had_its_part || SHIFT_MAX <= elapsed)
    }

    fn begin_shift(&mut self, now: Instant) {
        self.shift = ShiftId(self.shift.0.wrapping_add(1));
        self.shift_began = Some(now);
        self.admitted_count = 0;
        self.served_count = 0;
        let mut again = Vec::new();
        for warm in self.warm.drain(..).rev() {
            match (warm.is_first, warm.standing) {
                (false, _) => again.push(warm),
                (true, Standing::Engaged) => self.engaged.push_front(warm.task),
                (true, _) => self.free.push_front(warm.task),
            }
        }
        for warm in again.into_iter().rev() {
            match warm.standing {
                Standing::Engaged => self.engaged.push_back(warm.task),
                Standing::Busy | Standing::Free => self.free.push_back(warm.task),
            }
        }
        self.admit(COHORT_COUNT);
    }

    /// Admits up to `count`; of a whole cohort, the parts of (Q4).
    fn admit(&mut self, count: usize) {
        let kept_free = (count * FREE_COUNT / COHORT_COUNT).min(self.free.len());
        let engaged_count = self.engaged.len().min(count - kept_free);
        let free_count = self.free.len().min(count - engaged_count);
        self.admitted_count += engaged_count + free_count;
        let admitted = |standing| {
            move |task| Warm {
                standing,
                is_first: true,
                task,
            }
        };
        let engaged = self.engaged.drain(..engaged_count);
        self.warm.extend(engaged.map(admitted(Standing::Engaged)));
        let free = self.free.drain(..free_count);
        self.warm.extend(free.map(admitted(Standing::Free)));
    }

    /// The next task of this turn.
    pub(crate) fn pop(&mut self) -> Option<T> {
        if let Some(task) = self.pop_of_round() {
            return Some(task);
        }
        self.prompt_left = self.prompt.len();
        self.warm_left = ROUND_WARM_COUNT;
        self.yielded_left = 1;
        self.pop_of_round()
    }

    fn pop_of_round(&mut self) -> Option<T> {
        if let Some(left) = self.prompt_left.checked_sub(1) {
            self.prompt_left = left;
            return self.prompt.pop_front();
        }
        if let Some(left) = self.warm_left.checked_sub(1)
            && let Some(warm) = self.warm.pop_front()
        {
            self.warm_left = left;
            self.served_count += 1;
            return Some(warm.task);
        }
        let left = self.yielded_left.checked_sub(1)?;
        let task = self.yielded.pop_front()?;
        self.yielded_left = left;
        Some(task)
    }

    /// The oldest of those that can go on with their work.
    pub(crate) fn pop_ready(&mut self) -> Option<T> {
        self.prompt_left = self.prompt_left.saturating_sub(1);
        self.prompt.pop_front()
    }

    /// How many can go on with their work.
    pub(crate) fn ready_count(&self) -> usize {
        self.prompt.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.prompt.is_empty()
            && self.warm.is_empty()
            && self.yielded.is_empty()
            && !self.has_cold()
    }

    /// Whether the next turn will admit tasks in the middle of a shift: the moment to see whether
    /// those that were served in it have been heard again.
    pub(crate) fn is_about_to_admit(&self) -> bool {
        let has_others = !self.prompt.is_empty() || !self.yielded.is_empty();
        !has_others && self.is_short() && self.has_cold()
    }

    fn is_short(&self) -> bool {
        self.warm.len() < WARM_COUNT_MIN
    }

    fn has_cold(&self) -> bool {
        !self.engaged.is_empty() || !self.free.is_empty()
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.prompt.clear();
        self.prompt_left = 0;
        self.warm.clear();
        self.yielded.clear();
        self.engaged.clear();
        self.free.clear();
    }
}

#[cfg(test)]
mod tests;
