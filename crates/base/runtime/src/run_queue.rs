//! Which runnable task is polled next. Knows no task, no clock and no kernel.
//!
//! Thousands of clients that are served strictly in turn find everything cold: by the time one has
//! its turn again, the caches have forgotten its session, its sockets and its buffers, ours and the
//! kernel's, and a short statement costs half as much again. So an overloaded worker serves a
//! *cohort* of them over and over while they keep asking (cohort scheduling: Larus and Parkes,
//! 2002; and as thread pools do, those that are inside a transaction go before those that would
//! begin one). Each has a *stay* in it: so many statements, and then it goes to the back and
//! another is admitted. Where only few wait there is no cohort: all are served in turn.
//!
//! What the length of a stay decides is over how many statements the cold first one is spread, and
//! how long the others wait; what the number of a cohort decides is how warm it stays meanwhile,
//! and how many transactions are open. Both are small.
//!
//! ```text
//! ready ----------------------------------------------------> prompt ---+
//! heard, within its stay -----------------------------------> warm -----+--> polled
//! heard, its stay is over -----> engaged, free --admitted---> warm -----+
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
//!      `warm`, one of `yielded`. So none stops the others, however many it has. A turn serves
//!      none of `yielded` for the second time while others wait to be admitted.
//! (Q4) Each [`FREE_EVERY`]th admission is the oldest of `free`, the others are of `engaged` as
//!      long as there are any. So one that has `n` others before it in its queue is admitted
//!      within `(n + 1) * FREE_EVERY` admissions, whatever the others do; and a stay is over after
//!      [`STAY_COUNT`] statements or [`STAY_MAX`], if the client is heard within it at all.
//! (Q5) Nothing waits while there is nothing else to do: a turn that finds `warm` short, and
//!      `prompt` empty or `warm` short for the second time, admits. One that finds few admits all.
//! (Q6) While a crowd, [`CROWD_COUNT`] or more, wait for their commit, only a turn that finds
//!      `warm` and `prompt` empty admits, or the second that finds `warm` empty and nobody admitted
//!      for [`ADMISSION_GAP_MAX`]: a crowd comes back by itself. Before such a turn the worker may
//!      wait for it a moment, and again, but not more often than [`CROWD_WAITS_MAX`], nor than
//!      [`VAIN_WAITS_MAX`] in vain, until one of the crowd has come. Whoever has yielded waits
//!      with it, and is served in between.
//!
//! Who ends a transaction leaves the cohort if others wait to begin one.

use std::collections::VecDeque;
use std::time::Duration;

use env::Instant;

/// What a task would do next, seen from those who wait beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// In the middle of its work; so is every task that does not say otherwise.
    Busy,
    /// In the middle of its work, and all that it waits for is the disk that has its commit.
    Committing,
    /// Waits for its client, and holds what others may want: locks, a snapshot.
    Engaged,
    /// Waits for its client, and holds nothing.
    Free,
}

/// What is left of a task's stay in the cohort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stay {
    /// Statements.
    pub(crate) left_count: u8,
    /// When it is over at any rate.
    pub(crate) until: Instant,
}

/// How a task came to wait.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Last {
    pub(crate) standing: Standing,
    pub(crate) stay: Stay,
    /// It is free and was engaged before: what it had begun is over, and others may begin.
    pub(crate) has_disengaged: bool,
}

/// Statements of a stay. What is cold at the first is spread over so many: measured with 4,096
/// clients while a whole cohort came and went at once, 12 gave a twentieth more than 4 in
/// transactions and in single statements, and the slowest of point queries waited half as long
/// again; 16 gave no more. All of 4,096 clients of point queries have had a turn of two workers
/// after two fifths of a second.
const STAY_COUNT: u8 = 12;

/// The longest stay: of those whose statements are long, or who are silent in between. A commit
/// waits for the disk for some milliseconds, and a stay is to hold more than two or three of them:
/// with 4,096 clients of single updates 40 ms gave an eighth more than 10 ms.
const STAY_MAX: Duration = Duration::from_millis(40);

/// Warm tasks with which a turn begins if there are as many to admit; those whose clients are about
/// to ask again come on top. What they touch, a score of KiB each with both sides of a socket, fits
/// into the core's own cache; and fewer would make the call to the kernel, once a turn, a large
/// part of each. Measured with 4,096 clients against 64 in the same run, 20 gave point queries and
/// writes 2 to 6 of a hundred more than 12, and transactions that read no less. (As long as commits
/// were not waited for, 12 had been better than 16 and 24: each brought others in its place.)
const COHORT_COUNT: usize = 20;

/// So many that wait for their commit are as good as in the cohort. Were others admitted in the
/// place of each that waits, there would soon be hundreds, each would wait for all others, and a
/// stay would be over after three statements: with 4,096 clients of single updates it was. Far
/// fewer would have a flush of the log for each few: 24 gave a sixth less than 64 there, 128 no
/// more.
const CROWD_COUNT: usize = 64;

/// How often the worker waits before one of a crowd has come. A wait ends with the first client
/// that is heard, mostly one of the cohort that was answered just now.
const CROWD_WAITS_MAX: u8 = 16;

/// How often it waits in vain for that: the disk takes longer today than it is worth waiting for.
const VAIN_WAITS_MAX: u8 = 4;

/// However many commit, others are admitted after such a time: a crowd may be one of long programs
/// that commit over and over.
const ADMISSION_GAP_MAX: Duration = Duration::from_millis(10);

/// So many that wait have no cohort: all that they touch fits, and none need wait for the stays of
/// others.
const FEW_COUNT_MAX: usize = 48;

/// One of so many admissions is of `free` though some are engaged. The engaged hold up others, and
/// come first: so a transaction that was begun goes on stay after stay, and no more are begun than
/// a cohort can carry. One of twenty statements takes two stays; were it more than eight, in the
/// end all would be engaged.
const FREE_EVERY: usize = 8;

/// The most of `warm` in a round: a slice of a long statement to about a millisecond of short ones.
const ROUND_WARM_COUNT: usize = 128;

/// See the module's head.
#[derive(Debug)]
pub(crate) struct RunQueue<T> {
    prompt: VecDeque<T>,
    warm: VecDeque<(T, Stay)>,
    yielded: VecDeque<T>,
    /// How many of `prompt`, of `warm` and of `yielded` this round may still serve.
    prompt_left: usize,
    warm_left: usize,
    yielded_left: usize,
    /// How many of `yielded` were not served in this turn.
    yielded_unserved: usize,
    engaged: VecDeque<T>,
    free: VecDeque<T>,
    /// How many wait for their commit.
    committing_count: usize,
    /// How many were admitted so far.
    admitted_count: usize,
    /// When somebody was admitted last.
    admitted_at: Instant,
    /// When the last turn began.
    now: Instant,
    /// As it began, `warm` was short.
    was_short: bool,
    /// How often a crowd may be waited for until one of it has come; one in vain counts for more.
    waits_left: u8,
}

impl<T> RunQueue<T> {
    /// Nothing to do.
    pub(crate) fn new() -> Self {
        Self {
            prompt: VecDeque::new(),
            warm: VecDeque::new(),
            yielded: VecDeque::new(),
            prompt_left: 0,
            warm_left: 0,
            yielded_left: 0,
            yielded_unserved: 0,
            engaged: VecDeque::new(),
            free: VecDeque::new(),
            committing_count: 0,
            admitted_count: 0,
            admitted_at: Instant::default(),
            now: Instant::default(),
            was_short: false,
            waits_left: CROWD_WAITS_MAX,
        }
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
        let is_over = last.stay.left_count == 0 || last.stay.until <= self.now;
        let stay = if !self.has_cold() && self.waiting_count() < FEW_COUNT_MAX {
            Some(self.new_stay())
        } else {
            (!is_over && !has_ended).then_some(last.stay)
        };
        match (last.standing, stay) {
            (Standing::Busy | Standing::Committing, _) => self.prompt.push_back(task),
            (_, Some(stay)) => self.warm.push_back((task, stay)),
            (Standing::Engaged, None) => self.engaged.push_back(task),
            (Standing::Free, None) => self.free.push_back(task),
        }
    }

    /// Begins a turn: what [`RunQueue::pop`] gives until the next is chosen as of `now`.
    pub(crate) fn begin_turn(&mut self, now: Instant) {
        self.now = now;
        self.yielded_unserved = self.yielded.len();
        let is_short = self.is_short();
        let was_short = std::mem::replace(&mut self.was_short, is_short);
        let may_hold_up = self.is_crowded() && now.since(self.admitted_at) < ADMISSION_GAP_MAX;
        let admits = is_short && (self.prompt.is_empty() || was_short && !may_hold_up);
        if self.waiting_count() <= FEW_COUNT_MAX {
            while self.admit() {}
        } else if admits {
            while self.warm.len() < COHORT_COUNT && self.admit() {}
        }
    }

    /// A task waits for its commit.
    pub(crate) fn note_committing(&mut self) {
        self.committing_count += 1;
    }

    /// One that did is polled again, or gone.
    pub(crate) fn note_committed(&mut self) {
        self.committing_count -= 1;
        self.waits_left = CROWD_WAITS_MAX;
    }

    /// So many wait for their commit that others had better wait for them.
    fn is_crowded(&self) -> bool {
        CROWD_COUNT <= self.committing_count
    }

    /// Admits the next; false if there is none.
    fn admit(&mut self) -> bool {
        let is_free_first = self.admitted_count.is_multiple_of(FREE_EVERY);
        let (first, second) = if is_free_first {
            (&mut self.free, &mut self.engaged)
        } else {
            (&mut self.engaged, &mut self.free)
        };
        let Some(task) = first.pop_front().or_else(|| second.pop_front()) else {
            return false;
        };
        self.admitted_count = self.admitted_count.wrapping_add(1);
        self.admitted_at = self.now;
        self.warm.push_back((task, self.new_stay()));
        true
    }

    fn new_stay(&self) -> Stay {
        Stay {
            left_count: STAY_COUNT,
            until: self.now + STAY_MAX,
        }
    }

    /// The next task of this turn; if its client was heard, with what is left of its stay then.
    /// `None`: the turn is over.
    pub(crate) fn pop(&mut self) -> Option<(T, Option<Stay>)> {
        if let Some(popped) = self.pop_of_round() {
            return Some(popped);
        }
        let has_clients = !self.prompt.is_empty() || !self.warm.is_empty();
        if !has_clients && self.has_cold() && self.yielded_unserved == 0 {
            // The next turn admits; what has yielded is not served twice meanwhile.
            return None;
        }
        self.prompt_left = self.prompt.len();
        self.warm_left = ROUND_WARM_COUNT;
        self.yielded_left = 1;
        self.pop_of_round()
    }

    fn pop_of_round(&mut self) -> Option<(T, Option<Stay>)> {
        if let Some(left) = self.prompt_left.checked_sub(1) {
            self.prompt_left = left;
            return Some((self.prompt.pop_front()?, None));
        }
        if let Some(left) = self.warm_left.checked_sub(1)
            && let Some((task, mut stay)) = self.warm.pop_front()
        {
            self.warm_left = left;
            stay.left_count -= 1;
            return Some((task, Some(stay)));
        }
        let left = self.yielded_left.checked_sub(1)?;
        let task = self.yielded.pop_front()?;
        self.yielded_left = left;
        self.yielded_unserved = self.yielded_unserved.saturating_sub(1);
        Some((task, None))
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

    /// Whether the next turn will admit tasks: the moment to see whether those that were served
    /// just now have been heard again.
    pub(crate) fn is_about_to_admit(&self) -> bool {
        self.prompt.is_empty() && self.is_short() && self.has_cold()
    }

    /// Whether the worker is to wait for a crowd a moment before the next turn admits others:
    /// commits come in groups, and with the first most of a cohort is back. Even if some have
    /// yielded: the kernel's part of a flush is done on this core, and has it for itself meanwhile.
    /// Purge computes for as long as rows are changed, and with its slices in place of the wait
    /// 4,096 clients of single updates had a flush each 4 ms, where they have one each 1 ms.
    pub(crate) fn may_wait_for_crowd(&self) -> bool {
        let is_many = FEW_COUNT_MAX < self.waiting_count();
        is_many && self.is_about_to_admit() && self.is_crowded() && 0 < self.waits_left
    }

    /// It has waited; in vain, if others would still be admitted.
    pub(crate) fn note_waited(&mut self) {
        let cost = match self.is_about_to_admit() {
            true => CROWD_WAITS_MAX / VAIN_WAITS_MAX,
            false => 1,
        };
        self.waits_left = self.waits_left.saturating_sub(cost);
    }

    fn is_short(&self) -> bool {
        if self.is_crowded() {
            self.warm.is_empty()
        } else {
            self.warm.len() < COHORT_COUNT
        }
    }

    /// Of those whose clients were heard.
    fn waiting_count(&self) -> usize {
        self.warm.len() + self.engaged.len() + self.free.len()
    }

    /// The task that is served after `count` others of those whose clients were heard.
    pub(crate) fn warm_at(&self, count: usize) -> Option<&T> {
        self.warm.get(count).map(|(task, _)| task)
    }

    /// Whether some wait to be admitted: there are more clients than the caches hold.
    pub(crate) fn has_cold(&self) -> bool {
        !self.engaged.is_empty() || !self.free.is_empty()
    }

    /// Forgets all; the tasks are gone.
    pub(crate) fn clear(&mut self) {
        assert_eq!(
            self.committing_count, 0,
            "each that was counted is counted out"
        );
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
