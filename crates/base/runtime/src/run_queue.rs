//! Which runnable task is polled next. Knows no task, no clock and no kernel.
//!
//! Thousands of clients that are served strictly in turn find everything cold. When a client's turn
//! comes again, the caches have lost its session, its sockets and its buffers, in the server and in
//! the kernel. A short statement then costs half as much again. So an overloaded worker serves a
//! *cohort* (cohort scheduling: Larus and Parkes, 2002). It admits some clients, and serves each
//! for some statements while the client keeps asking. That is the client's *quantum*. After its
//! quantum the client goes to the back of the queue, and the next client is admitted. If there are
//! few clients there is no cohort, and all are served in turn.
//!
//! Three numbers decide. The length of a quantum spreads the cost of its cold first statement, and
//! it lengthens the wait of all others. So it is short outside of transactions. It is longer inside
//! of them, because an open transaction holds locks and snapshots. The size of a cohort decides how
//! warm the cohort stays, and how many transactions are open.
//!
//! ```text
//! ready -------------------------------------------------------------> prompt ---+
//! readable, within its quantum --------------------------------------> warm -----+--> polled
//! readable, its quantum is over --> in_transaction, outside --admitted-> warm ---+
//! yielded -----------------------------------------------------------> yielded --+
//! ```
//!
//! A *ready* task goes on with work that it has begun: its row lock was granted, its page was read,
//! or its timer fired. It never waits for a cohort. A task is *readable* if its client has sent the
//! next request. A task that *yielded* computes for long and gave way in the middle of its work.
//!
//! (Q1) Every task that is put in comes out once.
//! (Q2) Each of `prompt`, `warm`, `in_transaction`, `outside` and `yielded` is first come, first
//!      served.
//! (Q3) A turn has rounds. A round serves the tasks that `prompt` had when the round began, then
//!      at most [`ROUND_WARM_COUNT`] of `warm`, then one of `yielded`. So no queue starves another.
//!      While tasks wait to be admitted, a turn serves each yielded task at most once.
//! (Q4) Each [`OUTSIDE_EVERY`]th admission takes the oldest of `outside`. The others take the
//!      oldest of `in_transaction`, if there is one. So a task with `n` others before it in its
//!      queue is admitted within `(n + 1) * OUTSIDE_EVERY` admissions. A quantum ends after
//!      [`OUTSIDE_QUANTUM_COUNT`] statements outside of transactions, after [`QUANTUM_COUNT`]
//!      inside of them, and always after [`QUANTUM_MAX`].
//! (Q5) No task waits while the worker has nothing else to do. A turn admits if it finds `warm`
//!      short and `prompt` empty, or `warm` short for the second time. If few tasks wait, the turn
//!      admits all of them.
//! (Q6) Tasks that wait for their commits come back by themselves. So while
//!      [`COMMIT_WAITERS_COUNT`] or more of them wait, a turn admits others only in two cases:
//!      `warm` and `prompt` are empty; or `warm` is empty for the second time, and the last
//!      admission was [`ADMISSION_GAP_MAX`] ago.
//! (Q7) Before a turn that admits, the worker may wait a moment for such commits. Until one of them
//!      comes back, it waits at most [`COMMIT_WAITS_MAX`] times, and at most [`VAIN_WAITS_MAX`]
//!      times in vain. Tasks that yielded wait with it, and are served in between.
//!
//! A task that ends a transaction leaves the cohort if others wait to begin one.

use std::collections::VecDeque;
use std::time::Duration;

use env::Instant;

/// What kind of wait a task is in, as far as it matters to the tasks beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskClass {
    /// In the middle of its work. The default.
    Busy,
    /// In the middle of its work, and waits only for its commit to be durable.
    Committing,
    /// Waits for its client, inside a transaction: it holds locks or a snapshot.
    InTransaction,
    /// Waits for its client, and holds neither locks nor a snapshot.
    OutsideTransaction,
}

/// A task's quantum in the cohort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Quantum {
    /// Statements that were served in it.
    pub(crate) served_count: u8,
    /// When it ends, even after few statements.
    pub(crate) until: Instant,
}

impl Quantum {
    /// A quantum that begins now.
    fn begin(now: Instant) -> Self {
        Self {
            served_count: 0,
            until: now + QUANTUM_MAX,
        }
    }

    /// Whether it began so lately that the caches still hold what its task touched.
    fn is_fresh(self, now: Instant) -> bool {
        now + QUANTUM_MAX < self.until + WARM_MAX
    }

    /// Whether the client must wait for its next admission before another statement.
    fn is_over(self, class: TaskClass, now: Instant) -> bool {
        let count = match class {
            TaskClass::OutsideTransaction => OUTSIDE_QUANTUM_COUNT,
            TaskClass::InTransaction | TaskClass::Busy | TaskClass::Committing => QUANTUM_COUNT,
        };
        count <= self.served_count || self.until <= now
    }
}

/// How a task came to wait.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Last {
    pub(crate) class: TaskClass,
    pub(crate) quantum: Quantum,
    /// Its transaction has ended since it last waited for its client.
    pub(crate) has_left_transaction: bool,
}

/// Statements of a quantum inside a transaction. With 4,096 clients, 12 gave a twentieth more
/// statements than 4, and 16 gave no more.
const QUANTUM_COUNT: u8 = 12;

/// Statements of a quantum outside of transactions. With quanta of k statements, one statement of k
/// waits for a round of all clients, and a round is k times as long as with k = 1. So k = 12 made a
/// 95th percentile of 360 ms with 4,096 clients, twelve times that of a fair queue. With 7/4 on
/// average, point queries had 1.05 of the throughput of k = 1, single updates had less, and both
/// had a 95th percentile longer by a half and more. `docs/bench/quanta.md` shows what quanta of 1
/// to 12 cost and give.
const OUTSIDE_QUANTUM_COUNT: u8 = 1;

/// Each admission serves one statement at least.
const _: () = assert!(1 <= OUTSIDE_QUANTUM_COUNT && OUTSIDE_QUANTUM_COUNT < QUANTUM_COUNT);

/// The longest quantum: for long statements, and for clients that pause between theirs. A commit
/// waits for the disk for some milliseconds, and a quantum should hold more than two or three of
/// them. With 4,096 clients of single updates, 40 ms gave an eighth more than 10 ms.
const QUANTUM_MAX: Duration = Duration::from_millis(40);

/// Warm tasks with which a turn begins, if there are as many to admit. Those whose clients ask
/// again come on top. Each task touches some 20 KiB with both sides of a socket, so this many fit
/// into the core's own cache. Fewer would make the call to the kernel, once a turn, a large part of
/// the turn. With 4,096 clients, 20 gave point queries and writes 2 to 6 % more than 12; 40 and 80
/// gave less than 20.
const COHORT_COUNT: usize = 20;

/// From this many tasks that wait for their commits on, others wait for them (Q6). If others were
/// admitted in the place of each, hundreds would soon wait, and a quantum would be over after three
/// statements. With far fewer the log would be flushed for each few commits. With 4,096 clients of
/// single updates, 24 gave a sixth less than 64, and 128 gave no more.
const COMMIT_WAITERS_COUNT: usize = 64;

/// How many times the worker waits for commits until one of them comes back. A wait ends with the
/// first readable client, which is mostly one that was answered just before.
const COMMIT_WAITS_MAX: u8 = 16;

/// How many of these waits may be in vain: the disk is then slower than it is worth waiting for.
const VAIN_WAITS_MAX: u8 = 4;

/// The longest time without an admission while many wait for commits: some clients commit over and
/// over.
const ADMISSION_GAP_MAX: Duration = Duration::from_millis(10);

/// Up to this many clients there is no cohort: all that they touch fits into the caches.
const FEW_COUNT_MAX: usize = 48;

/// A task that was served so lately is still in the core's own cache. In this time a worker serves
/// some [`FEW_COUNT_MAX`] tasks.
const WARM_MAX: Duration = Duration::from_millis(2);

/// One of this many admissions is of `outside` while `in_transaction` has tasks. Those hold up
/// others and come first. So a transaction goes on quantum after quantum, and no more are begun
/// than a cohort can carry. A transaction of twenty statements takes two quanta. With more than
/// eight quanta for each, all clients would be in_transaction in the end.
const OUTSIDE_EVERY: usize = 8;

/// The most of `warm` in a round: about a millisecond of short statements for one slice of a long
/// statement.
const ROUND_WARM_COUNT: usize = 128;

/// A task of the cohort.
#[derive(Debug)]
struct Member<T> {
    task: T,
    quantum: Quantum,
    cache: Cache,
}

/// Where the memory of a task is likely to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cache {
    Warm,
    Cold,
}

/// See the module's head.
#[derive(Debug)]
pub(crate) struct RunQueue<T> {
    prompt: VecDeque<T>,
    warm: VecDeque<Member<T>>,
    yielded: VecDeque<T>,
    /// How many of `prompt`, of `warm` and of `yielded` this round may still serve.
    prompt_left: usize,
    warm_left: usize,
    yielded_left: usize,
    /// How many of `yielded` were not served in this turn.
    yielded_unserved: usize,
    /// Those that wait to be admitted.
    in_transaction: VecDeque<T>,
    outside: VecDeque<T>,
    /// How many wait for their commit.
    committing_count: usize,
    /// How many were admitted so far.
    admitted_count: usize,
    /// When a task was admitted last.
    admitted_at: Instant,
    /// When the last turn began.
    now: Instant,
    /// `warm` was short when the last turn began.
    was_short: bool,
    /// How often the worker may still wait for commits until one of them comes back. A wait in vain
    /// counts for more.
    waits_left: u8,
}

impl<T> RunQueue<T> {
    /// An empty queue.
    pub(crate) fn new() -> Self {
        Self {
            prompt: VecDeque::new(),
            warm: VecDeque::new(),
            yielded: VecDeque::new(),
            prompt_left: 0,
            warm_left: 0,
            yielded_left: 0,
            yielded_unserved: 0,
            in_transaction: VecDeque::new(),
            outside: VecDeque::new(),
            committing_count: 0,
            admitted_count: 0,
            admitted_at: Instant::default(),
            now: Instant::default(),
            was_short: false,
            waits_left: COMMIT_WAITS_MAX,
        }
    }

    /// Adds a task that can go on with its work.
    pub(crate) fn push_ready(&mut self, task: T) {
        self.prompt.push_back(task);
    }

    /// Adds a task that gave way to others.
    pub(crate) fn push_yielded(&mut self, task: T) {
        self.yielded.push_back(task);
    }

    /// Adds a task whose client has sent a request.
    pub(crate) fn push_readable(&mut self, task: T, last: Last) {
        let has_ended = last.has_left_transaction && !self.outside.is_empty();
        let is_over = last.quantum.is_over(last.class, self.now);
        let member = if !self.has_cold() && self.waiting_count() < FEW_COUNT_MAX {
            let is_fresh = last.quantum.is_fresh(self.now);
            let cache = if is_fresh { Cache::Warm } else { Cache::Cold };
            Some((Quantum::begin(self.now), cache))
        } else {
            (!is_over && !has_ended).then_some((last.quantum, Cache::Warm))
        };
        match (last.class, member) {
            (TaskClass::Busy | TaskClass::Committing, _) => self.prompt.push_back(task),
            (_, Some((quantum, cache))) => self.warm.push_back(Member {
                task,
                quantum,
                cache,
            }),
            (TaskClass::InTransaction, None) => self.in_transaction.push_back(task),
            (TaskClass::OutsideTransaction, None) => self.outside.push_back(task),
        }
    }

    /// Begins a turn: until the next one, [`RunQueue::pop`] chooses as of `now`.
    pub(crate) fn begin_turn(&mut self, now: Instant) {
        self.now = now;
        self.yielded_unserved = self.yielded.len();
        let is_short = self.is_short();
        let was_short = std::mem::replace(&mut self.was_short, is_short);
        let may_hold_up =
            self.has_many_commit_waiters() && now.since(self.admitted_at) < ADMISSION_GAP_MAX;
        let admits = is_short && (self.prompt.is_empty() || was_short && !may_hold_up);
        if self.waiting_count() <= FEW_COUNT_MAX {
            while self.admit() {}
        } else if admits {
            while self.warm.len() < COHORT_COUNT && self.admit() {}
        }
    }

    /// Notes that a task waits for its commit.
    pub(crate) fn note_committing(&mut self) {
        self.committing_count += 1;
    }

    /// Notes that such a task is polled again, or gone.
    pub(crate) fn note_committed(&mut self) {
        self.committing_count -= 1;
        self.waits_left = COMMIT_WAITS_MAX;
    }

    /// Whether so many tasks wait for their commit that others should wait for them.
    fn has_many_commit_waiters(&self) -> bool {
        COMMIT_WAITERS_COUNT <= self.committing_count
    }

    /// Admits the next task. Returns false if no task waits to be admitted.
    fn admit(&mut self) -> bool {
        let takes_outside_first = self.admitted_count.is_multiple_of(OUTSIDE_EVERY);
        let (first, second) = if takes_outside_first {
            (&mut self.outside, &mut self.in_transaction)
        } else {
            (&mut self.in_transaction, &mut self.outside)
        };
        let Some(task) = first.pop_front().or_else(|| second.pop_front()) else {
            return false;
        };
        self.admitted_count = self.admitted_count.wrapping_add(1);
        self.admitted_at = self.now;
        self.warm.push_back(Member {
            task,
            quantum: Quantum::begin(self.now),
            cache: Cache::Cold,
        });
        true
    }

    /// Returns the next task of this turn, or `None` if the turn is over. A task whose client was
    /// heard comes with its quantum, in which this statement is counted.
    pub(crate) fn pop(&mut self) -> Option<(T, Option<Quantum>)> {
        if let Some(popped) = self.pop_of_round() {
            return Some(popped);
        }
        let has_clients = !self.prompt.is_empty() || !self.warm.is_empty();
        if !has_clients && self.has_cold() && self.yielded_unserved == 0 {
            // The next turn admits; meanwhile no yielded task is served twice.
            return None;
        }
        self.prompt_left = self.prompt.len();
        self.warm_left = ROUND_WARM_COUNT;
        self.yielded_left = 1;
        self.pop_of_round()
    }

    fn pop_of_round(&mut self) -> Option<(T, Option<Quantum>)> {
        if let Some(left) = self.prompt_left.checked_sub(1) {
            self.prompt_left = left;
            return Some((self.prompt.pop_front()?, None));
        }
        if let Some(left) = self.warm_left.checked_sub(1)
            && let Some(Member {
                task, mut quantum, ..
            }) = self.warm.pop_front()
        {
            self.warm_left = left;
            quantum.served_count += 1;
            return Some((task, Some(quantum)));
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

    /// Whether the next turn will admit tasks. The worker then first looks whether those that were
    /// served just now are readable again.
    pub(crate) fn is_about_to_admit(&self) -> bool {
        self.prompt.is_empty() && self.is_short() && self.has_cold()
    }

    /// Whether the worker should wait for commits for a moment before the next turn admits others.
    /// Commits come in groups: with the first, most of a cohort is back. It also waits while some
    /// tasks have yielded, because the kernel's part of a flush runs on this core. Purge computes
    /// for as long as rows are changed. With its slices in place of the wait, 4,096 clients of
    /// single updates had a flush each 4 ms instead of each 1 ms.
    pub(crate) fn may_wait_for_commits(&self) -> bool {
        let is_many = FEW_COUNT_MAX < self.waiting_count();
        is_many && self.is_about_to_admit() && self.has_many_commit_waiters() && 0 < self.waits_left
    }

    /// Notes that the worker has waited; in vain, if others would still be admitted.
    pub(crate) fn note_waited(&mut self) {
        let cost = match self.is_about_to_admit() {
            true => COMMIT_WAITS_MAX / VAIN_WAITS_MAX,
            false => 1,
        };
        self.waits_left = self.waits_left.saturating_sub(cost);
    }

    fn is_short(&self) -> bool {
        if self.has_many_commit_waiters() {
            self.warm.is_empty()
        } else {
            self.warm.len() < COHORT_COUNT
        }
    }

    /// Number of tasks with readable clients.
    fn waiting_count(&self) -> usize {
        self.warm.len() + self.in_transaction.len() + self.outside.len()
    }

    /// The task that is served after `count` others, if its memory may be cold, and as far as it is
    /// known: tasks that yielded, and all rounds but this one and the next, are left out.
    pub(crate) fn cold_at(&self, count: usize) -> Option<&T> {
        let warm_left = self.warm_left.min(self.warm.len());
        let warm_at = |at: usize| {
            let cold = self.warm.get(at).filter(|it| it.cache == Cache::Cold);
            cold.map(|it| &it.task)
        };
        // This round.
        let Some(after_prompt) = count.checked_sub(self.prompt_left) else {
            return self.prompt.get(count);
        };
        let Some(after_round) = after_prompt.checked_sub(warm_left) else {
            return warm_at(after_prompt);
        };
        // The next one.
        let prompt_next = self.prompt.len() - self.prompt_left;
        match after_round.checked_sub(prompt_next) {
            None => self.prompt.get(self.prompt_left + after_round),
            Some(after_next) => warm_at(warm_left + after_next),
        }
    }

    /// Whether tasks wait to be admitted: there are more clients than the caches hold.
    pub(crate) fn has_cold(&self) -> bool {
        !self.in_transaction.is_empty() || !self.outside.is_empty()
    }

    /// Empties the queue; the tasks are gone.
    pub(crate) fn clear(&mut self) {
        assert_eq!(
            self.committing_count, 0,
            "each that was counted is counted out"
        );
        self.prompt.clear();
        self.prompt_left = 0;
        self.warm.clear();
        self.yielded.clear();
        self.in_transaction.clear();
        self.outside.clear();
    }
}

#[cfg(test)]
mod tests;
