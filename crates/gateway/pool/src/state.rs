//! The state of one server, without I/O, threads and clock: events in, decisions out.
//!
//! A *slot* is the right to have one connection. It is taken before a connection is opened, and it
//! stays with the connection while that is used, moved or idle. So slots count connections:
//!
//! ```text
//!            ask: Open               keep              ask: Idle, Turn
//! (no slot) ----------> in use ------------> idle ----------------------> in use
//!     ^                   |  ^                 |
//!     |  freed            |  | Serve, Open     | sweep, set_limits, raise_version
//!     +-------------------+  +--- a waiter     +----------------------> (no slot)
//! ```
//!
//! Slots are *within* the limit or *above* it. A slot within the limit goes to the first of all
//! waiters, or nearly the first (`queue`). One above it goes to the first waiter that holds another
//! connection, or vanishes. With one count for both, a stream of sessions that hold one would keep
//! the server above its limit, and those that hold none would never be served.
//!
//! (C1) Each idle connection has a slot within the limit.
//! (C2) While a session waits, no connection is in the shared stacks, and there are at least as
//! many slots within as the limit says.
//! (C3) While a session waits that holds another connection, all slots above the limit are taken.
//! (C4) No event takes a slot beyond the limit, or beyond the overflow. If there are more, because
//! a limit was lowered, each slot that comes back vanishes.
//! (C5) All idle connections of the shared stacks have the server's version.
//!
//! Connections that are idle in the stacks of single workers are not here, only their slots. Each
//! worker offers them while there is a demand ([`State::has_demand`], and the crate's head).

use env::Instant;
use smallvec::SmallVec;

use crate::counts::{CloseReason, Numbers};
use crate::idle::{Idle, IdleStacks};
use crate::keys::{Fit, Login, Version};
use crate::options::{Limits, Recycling};
use crate::queue::{Left, Newcomer, Queue, Sequence, Standing};

/// See the module's head. `C` is a connection at rest, `W` a session that waits.
#[derive(Debug)]
pub(crate) struct State<C, W> {
    limits: Limits,
    version: Version,
    phase: Phase,
    /// Slots within the limit.
    within: u32,
    /// Slots above the limit.
    above: u32,
    queue: Queue<W>,
    idle: IdleStacks<Resting<C>>,
    /// Written by all decisions, and by what the caller reports.
    pub(crate) numbers: Numbers,
}

/// Whether the server is still one of the pool's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Serving,
    Removed,
}

/// Which limit a slot counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotKind {
    Within,
    Above,
}

/// A connection in the shared stacks.
#[derive(Debug)]
struct Resting<C> {
    opened_at: Instant,
    connection: C,
}

/// What a session gets besides its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found<T> {
    /// A connection of the right key.
    Idle(T),
    /// A connection of another account, to be turned by COM_CHANGE_USER.
    Turn(T),
    /// No connection: one has to be opened. The connection whose place it takes has to be closed.
    Open(Option<T>),
}

impl<T> Found<T> {
    /// The same with another kind of connection.
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Found<U> {
        match self {
            Found::Idle(connection) => Found::Idle(change(connection)),
            Found::Turn(connection) => Found::Turn(change(connection)),
            Found::Open(displaced) => Found::Open(displaced.map(change)),
        }
    }
}

/// A slot for a session, and what is in it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Grant<T> {
    pub(crate) kind: SlotKind,
    pub(crate) version: Version,
    /// The past of the connection that goes with it.
    pub(crate) past: Option<Past>,
    pub(crate) found: Found<T>,
}

/// What is to be known of an open connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Past {
    pub(crate) login: Login,
    pub(crate) opened_at: Instant,
}

/// A session asks for a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question {
    pub(crate) login: Login,
    pub(crate) standing: Standing,
    pub(crate) worker: usize,
    /// The longest idle connection of that worker, which has none of `login`.
    pub(crate) own_oldest: Option<Instant>,
    pub(crate) now: Instant,
    pub(crate) recycling: Recycling,
}

/// The answer to a [`Question`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked<C> {
    Granted(Grant<C>),
    /// The longest idle connection of the own worker is to be used; its slot goes with it.
    OwnOldest,
    /// There is none: the session has to wait.
    Full,
    /// The server was removed.
    Removed,
}

/// A connection that comes back, without the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) kind: SlotKind,
    /// The worker that has it.
    pub(crate) worker: usize,
    pub(crate) login: Login,
    pub(crate) version: Version,
    pub(crate) opened_at: Instant,
}

/// What becomes of a connection that comes back.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Returned<W> {
    /// It stays idle; its slot is within the limit.
    Keep,
    /// It goes to a waiter, as it is or to be turned.
    Serve { waiter: W, fit: Fit },
    /// It is to be closed; its slot may go to a waiter.
    Close {
        reason: CloseReason,
        next: Option<Passed<W>>,
    },
}

/// A slot without a connection that goes to a waiter, who opens one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Passed<W> {
    pub(crate) waiter: W,
    pub(crate) kind: SlotKind,
}

/// Effects of a change from outside.
#[derive(Debug)]
pub(crate) struct Effects<C, W> {
    /// Waiters that may open a connection.
    pub(crate) passed: SmallVec<[Passed<W>; 1]>,
    /// Connections to be closed.
    pub(crate) closing: Vec<Closing<C>>,
}

/// A connection that the caller has to close, and why.
#[derive(Debug, PartialEq, Eq)]
pub struct Closing<T> {
    /// The connection; its slot is gone.
    pub connection: T,
    /// Why; it is counted already.
    pub reason: CloseReason,
}

/// A session was refused because too many wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueFull;

impl<C, W> Default for Effects<C, W> {
    fn default() -> Self {
        Self {
            passed: SmallVec::new(),
            closing: Vec::new(),
        }
    }
}

impl<C, W> State<C, W> {
    /// A server without connections.
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            version: Version::default(),
            phase: Phase::Serving,
            within: 0,
            above: 0,
            queue: Queue::default(),
            idle: IdleStacks::default(),
            numbers: Numbers::default(),
        }
    }

    pub(crate) fn limit(&self) -> u32 {
        self.limits.limit
    }

    pub(crate) fn waiting_count(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn version(&self) -> Version {
        self.version
    }

    /// Whether workers have to offer what they keep for themselves: a session waits, or there are
    /// more connections than the limit says.
    pub(crate) fn has_demand(&self) -> bool {
        !self.queue.is_empty() || self.limits.limit < self.within
    }

    pub(crate) fn is_removed(&self) -> bool {
        self.phase == Phase::Removed
    }

    /// What the waiter wants that gets a connection of a worker.
    pub(crate) fn next_login(&self, worker: usize, now: Instant) -> Option<Login> {
        self.queue.next_login(worker, now)
    }

    /// A session asks. It takes nothing within the limit while others wait.
    pub(crate) fn ask(&mut self, question: &Question) -> Asked<C> {
        let asked = self.decide(question);
        if let Asked::Granted(_) = asked {
            self.queue.hold(question.worker);
        }
        asked
    }

    fn decide(&mut self, question: &Question) -> Asked<C> {
        if self.is_removed() {
            return Asked::Removed;
        }
        if !self.has_demand() {
            if let Some(idle) = self.idle.take_newest(question.login) {
                return Asked::Granted(self.use_idle(idle, question));
            }
            if self.within < self.limits.limit {
                self.within += 1;
                return Asked::Granted(self.open(SlotKind::Within));
            }
            match (question.own_oldest, self.idle.oldest_since()) {
                (Some(own), shared) if shared.is_none_or(|shared| own <= shared) => {
                    return Asked::OwnOldest;
                }
                _ => {}
            }
            if let Some(idle) = self.idle.take_oldest() {
                return Asked::Granted(self.use_idle(idle, question));
            }
        }
        let is_above_free = self.above < self.limits.overflow && !self.queue.has_holding();
        if question.standing == Standing::HoldsOne && is_above_free {
            self.above += 1;
            self.numbers.overflowed += 1;
            return Asked::Granted(self.open(SlotKind::Above));
        }
        Asked::Full
    }

    /// A session that was answered [`Asked::Full`] begins to wait.
    pub(crate) fn wait(&mut self, newcomer: Newcomer, waiter: W) -> Result<Sequence, QueueFull> {
        assert!(
            self.idle.is_empty(),
            "nobody waits beside what is idle (C2)"
        );
        let waiting_max = self.limits.waiting_max;
        if u32::try_from(self.queue.len()).is_ok_and(|waiting| waiting < waiting_max) {
            self.numbers.waited += 1;
            return Ok(self.queue.join(newcomer, waiter));
        }
        self.numbers.refused += 1;
        Err(QueueFull)
    }

    /// A waiter leaves the queue without a connection; `None` if it was served before.
    pub(crate) fn leave(&mut self, sequence: Sequence) -> Option<W> {
        self.queue.leave(sequence).map(|left| left.waiter)
    }

    /// A connection comes back that could be used again.
    pub(crate) fn returned(
        &mut self,
        facts: &Facts,
        now: Instant,
        recycling: &Recycling,
    ) -> Returned<W> {
        if let Some(reason) = self.spent(facts, now, recycling) {
            return self.close(facts, reason);
        }
        match facts.kind {
            SlotKind::Above if self.limits.overflow < self.above => {
                self.close(facts, CloseReason::Overflow)
            }
            SlotKind::Above => match self.queue.leave_first_holding() {
                Some(left) => self.serve(facts, left),
                None => self.returned_above(facts),
            },
            SlotKind::Within if self.limits.limit < self.within => {
                self.close(facts, CloseReason::Limit)
            }
            SlotKind::Within => match self.queue.leave_next(facts.worker, now) {
                Some(left) => self.serve(facts, left),
                None => Returned::Keep,
            },
        }
    }

    /// A connection is on its way to a session of another worker, which was told so.
    pub(crate) fn departs(&mut self) {
        self.queue.departs();
    }

    /// That connection has arrived, or is lost.
    pub(crate) fn arrives(&mut self) {
        self.queue.arrives();
    }

    /// Puts a connection into the shared stacks; `returned` has said so.
    pub(crate) fn rest(&mut self, facts: &Facts, since: Instant, connection: C) {
        assert!(facts.version == self.version, "idle ones are current (C5)");
        assert!(
            self.queue.is_empty(),
            "nobody waits beside what is idle (C2)"
        );
        self.queue.let_go(facts.worker);
        self.idle.push(Idle {
            login: facts.login,
            since,
            value: Resting {
                opened_at: facts.opened_at,
                connection,
            },
        });
    }

    /// A slot of a worker comes back without a connection.
    pub(crate) fn freed(&mut self, kind: SlotKind, worker: usize) -> Option<Passed<W>> {
        self.queue.let_go(worker);
        let next = match kind {
            SlotKind::Within if self.within <= self.limits.limit => self.queue.leave_first(),
            SlotKind::Above if self.above <= self.limits.overflow => {
                self.queue.leave_first_holding()
            }
            SlotKind::Within | SlotKind::Above => None,
        };
        if let Some(left) = next {
            let waiter = self.served(left);
            return Some(Passed { waiter, kind });
        }
        let count = match kind {
            SlotKind::Within => &mut self.within,
            SlotKind::Above => &mut self.above,
        };
        assert!(0 < *count, "a slot comes back once");
        *count -= 1;
        None
    }

    /// The limits change. More waiters are served, or idle connections are closed.
    pub(crate) fn set_limits(&mut self, limits: Limits) -> Effects<C, W> {
        self.limits = limits;
        if self.is_removed() {
            self.limits.limit = 0;
            self.limits.overflow = 0;
        }
        let mut effects = Effects::default();
        while self.within < self.limits.limit
            && let Some(left) = self.queue.leave_first()
        {
            self.within += 1;
            let kind = SlotKind::Within;
            let waiter = self.served(left);
            effects.passed.push(Passed { waiter, kind });
        }
        while self.above < self.limits.overflow
            && let Some(left) = self.queue.leave_first_holding()
        {
            self.above += 1;
            self.numbers.overflowed += 1;
            let kind = SlotKind::Above;
            let waiter = self.served(left);
            effects.passed.push(Passed { waiter, kind });
        }
        while self.limits.limit < self.within
            && let Some(idle) = self.idle.take_oldest()
        {
            effects
                .closing
                .push(self.close_idle(idle, CloseReason::Limit));
        }
        effects
    }

    /// All connections of now are void: idle ones are closed, those in use when they come back.
    pub(crate) fn raise_version(&mut self) -> Vec<Closing<C>> {
        self.version = Version(self.version.0.wrapping_add(1));
        self.close_all(CloseReason::Version)
    }

    /// The server is gone. Returns its waiters and idle connections.
    pub(crate) fn remove(&mut self) -> (Vec<W>, Vec<Closing<C>>) {
        self.phase = Phase::Removed;
        self.limits.limit = 0;
        self.limits.overflow = 0;
        let waiters = std::iter::from_fn(|| self.queue.leave_first());
        let waiters = waiters.map(|left| left.waiter).collect();
        (waiters, self.close_all(CloseReason::Removed))
    }

    /// Closes idle connections that are too old, or idle for too long.
    pub(crate) fn sweep(&mut self, now: Instant, recycling: &Recycling) -> Vec<Closing<C>> {
        let is_over = |idle: &Idle<Resting<C>>| {
            recycling.is_aged(idle.value.opened_at, now) || recycling.is_idled(idle.since, now)
        };
        let over = self.idle.take_each(is_over);
        let mut closing = Vec::with_capacity(over.len());
        for idle in over {
            let reason = if recycling.is_aged(idle.value.opened_at, now) {
                CloseReason::Age
            } else {
                CloseReason::Idle
            };
            closing.push(self.close_idle(idle, reason));
        }
        closing
    }

    /// The numbers, with those of now that are known here.
    pub(crate) fn numbers(&self) -> Numbers {
        let mut numbers = self.numbers;
        numbers.open = u64::from(self.within) + u64::from(self.above);
        numbers.open_above = u64::from(self.above);
        numbers.idle = stdx::to_u64(self.idle.len());
        numbers.waiting = stdx::to_u64(self.queue.len());
        numbers
    }

    fn open(&self, kind: SlotKind) -> Grant<C> {
        Grant {
            kind,
            version: self.version,
            past: None,
            found: Found::Open(None),
        }
    }

    /// Uses an idle connection of the shared stacks, or its slot.
    fn use_idle(&mut self, idle: Idle<Resting<C>>, question: &Question) -> Grant<C> {
        let Resting {
            opened_at,
            connection,
        } = idle.value;
        let login = idle.login;
        let past = Past { login, opened_at };
        let recycling = &question.recycling;
        let reason = if recycling.is_aged(opened_at, question.now) {
            Some(CloseReason::Age)
        } else if recycling.is_idled(idle.since, question.now) {
            Some(CloseReason::Idle)
        } else {
            let fit = idle.login.fit(question.login);
            (fit == Fit::Replace).then_some(CloseReason::Replaced)
        };
        let found = if let Some(reason) = reason {
            self.numbers.count_closed(reason);
            Found::Open(Some(connection))
        } else {
            self.numbers.taken_shared += 1;
            if idle.login == question.login {
                Found::Idle(connection)
            } else {
                Found::Turn(connection)
            }
        };
        Grant {
            kind: SlotKind::Within,
            version: self.version,
            past: Some(past).filter(|_| reason.is_none()),
            found,
        }
    }

    /// Why a connection may not be used again.
    pub(crate) fn spent(
        &self,
        facts: &Facts,
        now: Instant,
        recycling: &Recycling,
    ) -> Option<CloseReason> {
        if self.is_removed() {
            Some(CloseReason::Removed)
        } else if facts.version != self.version {
            Some(CloseReason::Version)
        } else {
            let is_aged = recycling.is_aged(facts.opened_at, now);
            is_aged.then_some(CloseReason::Age)
        }
    }

    fn close(&mut self, facts: &Facts, reason: CloseReason) -> Returned<W> {
        self.numbers.count_closed(reason);
        let next = self.freed(facts.kind, facts.worker);
        Returned::Close { reason, next }
    }

    /// A waiter gets a slot.
    fn served(&mut self, left: Left<W>) -> W {
        self.queue.hold(left.worker);
        left.waiter
    }

    fn serve(&mut self, facts: &Facts, left: Left<W>) -> Returned<W> {
        let fit = facts.login.fit(left.login);
        self.queue.let_go(facts.worker);
        let waiter = self.served(left);
        if fit == Fit::Replace {
            let reason = CloseReason::Replaced;
            self.numbers.count_closed(reason);
            let kind = facts.kind;
            let next = Some(Passed { waiter, kind });
            return Returned::Close { reason, next };
        }
        self.numbers.taken_waiting += 1;
        Returned::Serve { waiter, fit }
    }

    /// A connection above the limit, for which no session waits: there may be room within now.
    fn returned_above(&mut self, facts: &Facts) -> Returned<W> {
        if self.within < self.limits.limit {
            // Within the limit there is room only if nobody waits (C2).
            assert!(self.queue.is_empty(), "waiters leave no room within (C2)");
            self.above -= 1;
            self.within += 1;
            return Returned::Keep;
        }
        self.close(facts, CloseReason::Overflow)
    }

    fn close_all(&mut self, reason: CloseReason) -> Vec<Closing<C>> {
        let all = self.idle.take_each(|_| true);
        let all = all.into_iter();
        all.map(|idle| self.close_idle(idle, reason)).collect()
    }

    /// Frees the slot of an idle connection. Nobody waits for it (C2).
    fn close_idle(&mut self, idle: Idle<Resting<C>>, reason: CloseReason) -> Closing<C> {
        assert!(0 < self.within, "an idle connection has a slot (C1)");
        self.within -= 1;
        self.numbers.count_closed(reason);
        let connection = idle.value.connection;
        Closing { connection, reason }
    }
}

/// The invariants of the head, for tests.
#[cfg(test)]
impl<C, W> State<C, W> {
    pub(crate) fn check(&self) {
        let Limits {
            limit, overflow, ..
        } = self.limits;
        let idle_count = u32::try_from(self.idle.len()).unwrap();
        assert!(idle_count <= self.within, "C1");
        let held_count = self.within + self.above - idle_count;
        assert_eq!(self.queue.held_count(), held_count, "Q4");
        if !self.queue.is_empty() {
            assert!(self.idle.is_empty(), "C2: idle beside waiters");
            assert!(limit <= self.within, "C2: room beside waiters");
        }
        if self.queue.has_holding() {
            assert!(overflow <= self.above, "C3");
        }
        if limit < self.within {
            assert!(self.idle.is_empty(), "C4: idle beyond the limit");
        }
    }
}

#[cfg(test)]
mod tests;
