//! One server as all threads see it: its state behind a mutex, and what workers keep of it.
//!
//! Each change of the state goes through [`Server::change`]. It publishes the demand before the
//! mutex is released, and wakes sessions and asks workers after that. The crate's head has the
//! protocol and its invariants.

use std::sync::Arc;
use std::task::Waker;

use metrics::Counter;
use smallvec::SmallVec;
use sync::atomic::{AtomicU64, Ordering};
use sync::{CachePadded, LocalStock, Mutex, MutexGuard, WakeFlag};

use crate::counts::{CloseReason, Numbers};
use crate::keys::{Fit, ServerId, Version};
use crate::mailbox::Mailboxes;
use crate::options::{Limits, Recycling};
use crate::state::{Closing, Facts, Found, Grant, Passed, Past, SlotKind, State};
use crate::waiter::{Place, Verdict, Waiter};

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Server<C> {
    /// Constant.
    pub(crate) id: ServerId,
    /// What errors call it. Constant.
    pub(crate) name: Arc<str>,
    recycling: RecyclingCell,
    /// What workers keep, and the demand word: see [`demand_of`].
    pub(crate) stock: LocalStock,
    /// One a worker.
    desks: Box<[CachePadded<Desk>]>,
    mailboxes: Arc<Mailboxes>,
    state: Mutex<State<C, Arc<Waiter<C>>>>,
    /// How often the mutex was taken: the common case takes it never.
    #[cfg(test)]
    lock_count: AtomicU64,
}

/// What one worker has to do with the server.
#[derive(Debug, Default)]
struct Desk {
    /// Whether a question is in the worker's mailbox that it has not read.
    asked: WakeFlag,
    /// Connections that sessions took from the worker's own stacks. Written by the worker.
    taken_own: Counter,
}

/// The state while the mutex is held, and who is to be woken afterwards.
pub(crate) struct Change<'a, C> {
    pub(crate) state: &'a mut State<C, Arc<Waiter<C>>>,
    wakes: SmallVec<[Waker; 2]>,
}

/// What is left to do after a change, with no mutex held.
#[must_use = "sessions wait for it"]
pub(crate) struct Aftermath {
    wakes: SmallVec<[Waker; 2]>,
    asked: SmallVec<[usize; 8]>,
}

/// Set while workers have to offer what they keep.
const HAS_DEMAND: u64 = 1;

/// Set when the server was removed.
const IS_REMOVED: u64 = 2;

/// The word of a server that is served and has no demand. A worker may keep and take connections
/// of that version without the mutex as long as it reads this word.
pub(crate) fn quiet(version: Version) -> u64 {
    u64::from(version.0) << 2
}

fn demand_of<C, W>(state: &State<C, W>) -> u64 {
    let mut word = quiet(state.version());
    if state.has_demand() {
        word |= HAS_DEMAND;
    }
    if state.is_removed() {
        word |= IS_REMOVED;
    }
    word
}

impl<C> Server<C> {
    pub(crate) fn new(
        id: ServerId,
        name: Arc<str>,
        limits: Limits,
        recycling: Recycling,
        mailboxes: Arc<Mailboxes>,
    ) -> Self {
        let state = State::new(limits);
        let worker_count = mailboxes.worker_count();
        Self {
            id,
            name,
            recycling: RecyclingCell::new(recycling),
            stock: LocalStock::new(worker_count, demand_of(&state)),
            desks: (0..worker_count).map(|_| CachePadded::default()).collect(),
            mailboxes,
            state: Mutex::new(state),
            #[cfg(test)]
            lock_count: AtomicU64::new(0),
        }
    }

    pub(crate) fn recycling(&self) -> Recycling {
        self.recycling.get()
    }

    pub(crate) fn set_recycling(&self, recycling: Recycling) {
        self.recycling.set(recycling);
    }

    /// Changes the state under the mutex. `change` runs a few instructions and calls nobody.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut Change<'_, C>) -> R) -> R {
        let (result, aftermath) = self.change_quietly(change);
        aftermath.carry_out(self);
        result
    }

    /// As [`Server::change`], for callers that hold a mutex of their own: they release it and then
    /// carry out what is left to do.
    pub(crate) fn change_quietly<R>(
        &self,
        change: impl FnOnce(&mut Change<'_, C>) -> R,
    ) -> (R, Aftermath) {
        let mut asked: SmallVec<[usize; 8]> = SmallVec::new();
        let mut state = self.lock();
        let before = demand_of(&state);
        let mut under = Change {
            state: &mut state,
            wakes: SmallVec::new(),
        };
        let result = change(&mut under);
        let wakes = under.wakes;
        let after = demand_of(&state);
        if before != after {
            self.stock.set_demand(after);
            // A demand is asked for when it begins. While it lasts, each worker that keeps
            // something was asked, or sees the demand itself (P3).
            if after != before & !HAS_DEMAND {
                let keepers = self.stock.keepers();
                asked.extend(keepers.filter(|it| self.desks[*it].asked.set()));
            }
        }
        (result, Aftermath { wakes, asked })
    }

    /// Asks one worker to offer what it keeps.
    pub(crate) fn ask(&self, worker: usize) {
        if self.desks[worker].asked.set() {
            self.mailboxes.post(worker, self.id);
        }
    }

    /// The worker has read the question and is about to answer it.
    pub(crate) fn clear_asked(&self, worker: usize) {
        self.desks[worker].asked.clear();
    }

    /// Counts a connection that a session took from its own worker.
    #[inline]
    pub(crate) fn count_taken_own(&self, worker: usize) {
        self.desks[worker].taken_own.increment();
    }

    /// The version of now.
    pub(crate) fn version(&self) -> Version {
        let version = u32::try_from(self.stock.demand() >> 2);
        Version(version.expect("the word has a version of 32 bits"))
    }

    pub(crate) fn is_removed(&self) -> bool {
        self.stock.demand() & IS_REMOVED != 0
    }

    pub(crate) fn numbers(&self) -> Numbers {
        let mut numbers = self.lock().numbers();
        numbers.idle += self.stock.kept_count();
        let desks = self.desks.iter();
        numbers.taken_own = desks.map(|it| it.taken_own.value()).sum();
        numbers
    }

    fn lock(&self) -> MutexGuard<'_, State<C, Arc<Waiter<C>>>> {
        #[cfg(test)]
        self.lock_count.fetch_add(1, Ordering::Relaxed);
        self.state.lock()
    }
}

#[cfg(test)]
impl<C> Server<C> {
    pub(crate) fn lock_count(&self) -> u64 {
        self.lock_count.load(Ordering::Relaxed)
    }

    pub(crate) fn check(&self) {
        self.state.lock().check();
    }
}

impl Aftermath {
    pub(crate) fn carry_out<C>(self, server: &Server<C>) {
        for waker in self.wakes {
            waker.wake();
        }
        for worker in self.asked {
            server.mailboxes.post(worker, server.id);
        }
    }
}

impl<C> Change<'_, C> {
    /// A slot comes back without a connection: it vanishes, or a waiter opens one.
    pub(crate) fn free(&mut self, kind: SlotKind, worker: usize) {
        let passed = self.state.freed(kind, worker);
        self.pass(passed);
    }

    /// Tells waiters that have left the queue that they may open a connection.
    pub(crate) fn pass(&mut self, passed: impl IntoIterator<Item = Passed<Arc<Waiter<C>>>>) {
        for Passed { waiter, kind } in passed {
            let granted = self.right_to_open(kind);
            self.decide(&waiter, granted);
        }
    }

    /// The connection that a waiter was promised is lost: the waiter opens another one in its slot,
    /// or the slot comes back if the waiter has given up.
    pub(crate) fn open_promised(&mut self, waiter: &Waiter<C>, kind: SlotKind) {
        let is_removed = self.state.is_removed();
        let verdict = if is_removed {
            Verdict::Removed
        } else {
            self.right_to_open(kind)
        };
        let has_given_up = self.try_decide(waiter, verdict).is_err();
        if is_removed || has_given_up {
            self.free(kind, waiter.worker);
        }
    }

    /// As [`Change::open_promised`], for a connection that may not be used any more.
    pub(crate) fn close_promised(
        &mut self,
        waiter: &Waiter<C>,
        facts: &Facts,
        connection: C,
        reason: CloseReason,
    ) -> Closing<C> {
        self.state.numbers.count_closed(reason);
        self.open_promised(waiter, facts.kind);
        Closing { connection, reason }
    }

    fn right_to_open(&self, kind: SlotKind) -> Verdict<C> {
        Verdict::Granted(Grant {
            kind,
            version: self.state.version(),
            past: None,
            found: Found::Open(None),
        })
    }

    /// Ends the wait of a session that was in the queue until now, so it has not given up (W1).
    pub(crate) fn decide(&mut self, waiter: &Waiter<C>, verdict: Verdict<C>) {
        let refused = self.try_decide(waiter, verdict).is_err();
        assert!(!refused, "who gives up has left the queue");
    }

    /// Ends the wait of a session that was promised a connection, unless it has given up.
    pub(crate) fn try_decide(
        &mut self,
        waiter: &Waiter<C>,
        verdict: Verdict<C>,
    ) -> Result<(), Verdict<C>> {
        self.wakes.extend(waiter.decide(verdict)?);
        Ok(())
    }
}

impl<C> Verdict<C> {
    /// A connection for a waiter, in a slot that stays.
    pub(crate) fn of_connection(facts: &Facts, fit: Fit, place: Place<C>) -> Verdict<C> {
        let found = match fit {
            Fit::Same => Found::Idle(place),
            Fit::Turn => Found::Turn(place),
            Fit::Replace => Found::Open(Some(place)),
        };
        Verdict::Granted(Grant {
            kind: facts.kind,
            version: facts.version,
            past: Some(Past {
                login: facts.login,
                opened_at: facts.opened_at,
            }),
            found,
        })
    }
}

/// [`Recycling`], read by all workers and changed at run time. The parts are hints of their own, so
/// that a reader may see some of a change and not yet the rest.
#[derive(Debug)]
struct RecyclingCell {
    age_max_nanos: AtomicU64,
    idle_max_nanos: AtomicU64,
    own_idle_max_nanos: AtomicU64,
}

impl RecyclingCell {
    fn new(recycling: Recycling) -> Self {
        let cell = Self {
            age_max_nanos: AtomicU64::new(0),
            idle_max_nanos: AtomicU64::new(0),
            own_idle_max_nanos: AtomicU64::new(0),
        };
        cell.set(recycling);
        cell
    }

    fn get(&self) -> Recycling {
        // Relaxed: each part stands for itself.
        let get = |it: &AtomicU64| std::time::Duration::from_nanos(it.load(Ordering::Relaxed));
        Recycling {
            age_max: get(&self.age_max_nanos),
            idle_max: get(&self.idle_max_nanos),
            own_idle_max: get(&self.own_idle_max_nanos),
        }
    }

    fn set(&self, recycling: Recycling) {
        let set = |it: &AtomicU64, value: std::time::Duration| {
            let nanos = u64::try_from(value.as_nanos()).unwrap_or(u64::MAX);
            // Relaxed: as in `get`.
            it.store(nanos, Ordering::Relaxed);
        };
        set(&self.age_max_nanos, recycling.age_max);
        set(&self.idle_max_nanos, recycling.idle_max);
        set(&self.own_idle_max_nanos, recycling.own_idle_max);
    }
}
