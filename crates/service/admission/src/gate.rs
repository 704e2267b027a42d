//! [`Gate`]: one worker's transactions, inside and waiting.
//!
//! A transaction enters at its first statement and gets a [`Pass`], which it gives back at its
//! end. While as many are inside as the worker's quota allows, it waits in a line, first come first
//! served. All of this belongs to one worker: no lock, and no other thread. What others read are
//! counters with one writer.
//!
//! ```text
//!               quota left                      no command for one or two periods
//!   enter ------------------------> inside ----------------------------------------> parked
//!      \                            ^    ^                                             |
//!       `--> line --leave, quota---'      `---------------next command-----------------'
//! ```
//!
//! (G1) Whoever is inside is never asked again. A parked transaction comes back at once, even above
//! the quota: it may hold locks.
//! (G2) A waiter that is dropped leaves the line. If it was let in meanwhile, its place goes to the
//! next.
//! (G3) While there is quota, the line is empty.
//! (G4) A waiter that is overdue is let in above the quota: see [`Gate::tick`].
//! (G5) Before a transaction waits, room of other workers is taken. Before a waiter is let in, its
//! place is given to another worker if someone has waited longer there. So is a place that no one
//! waits for here.
//! (G6) While anyone waits, there are ticks.
//!
//! Parked are transactions whose client has sent nothing for a while. Thousands of them would take
//! the quota, and do nothing inside. Time is counted in ticks, so that going idle costs no clock.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::numbers::GateNumbers;
use crate::shared::{Admission, MIN_PER_WORKER, NO_LIMIT};

/// Administrators that a worker lets in above its quota.
pub const ADMINISTRATORS_MAX: u32 = 2;
/// A waiter is overdue no sooner: a second.
const OVERDUE_TICKS_MIN: u64 = 10;
/// An overdue waiter has waited this many times as long as all who are there would take.
const OVERDUE_ROUNDS: u64 = 2;
/// Of the overdue waiters, one in so many goes in at a tick. So a stall does not end in a flood.
const OVERDUE_SHARE: usize = 8;
/// A rate is a number of transactions in so many ticks.
const RATE_TICKS: u64 = 64;
/// A rate has so many parts of a transaction: one may take hours.
const RATE_UNIT: u64 = 1 << 16;
/// Ticks over which rates are averaged: one second, and six. The first follows a server that slows
/// down, before its waiters seem overdue. The second is steady where few transactions leave.
const MEAN_TICKS: [u64; 2] = [8, 64];

/// Who wants to enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visitor {
    /// A client's transaction.
    Client,
    /// That of an administrator, who has to get in to find out what is wrong.
    Administrator,
}

/// One worker's gate. See the module's head.
#[derive(Debug)]
pub struct Gate {
    /// What all workers share. Constant.
    shared: Arc<Admission>,
    /// Which worker this is. Constant.
    index: usize,
    /// Waiters in the order in which they came; some have gone.
    line: RefCell<VecDeque<Rc<Waiter>>>,
    /// Those in `line` that have gone.
    gone: Cell<usize>,
    /// The worker whose quota was looked at last.
    looked_at: Cell<usize>,
    /// Administrators above the quota.
    administrators: Cell<u32>,
    /// Transactions without a command, by the tick in which their last one ended: this one, the
    /// last one, earlier.
    idle: [Cell<u32>; 3],
    /// Number of the tick. 2^32 of them take thirteen years.
    tick: Cell<NonZeroU32>,
    /// Most that were inside and waiting since the last tick.
    peak: Cell<u32>,
    /// Whether someone calls [`Gate::tick`].
    is_ticking: Cell<bool>,
    /// Transactions that have left since the last tick.
    left: Cell<u32>,
    /// Ticks since the last one in which any has left.
    still_ticks: Cell<u64>,
    /// How many leave, over each number of [`MEAN_TICKS`].
    rates: [Rate; MEAN_TICKS.len()],
}

/// Transactions that leave in [`RATE_TICKS`] ticks, in units of one through [`RATE_UNIT`]. It is as
/// of the last tick in which any has left.
#[derive(Debug, Default)]
struct Rate {
    /// 0 before the first has left.
    mean: Cell<u64>,
    /// The ticks that it is the mean of.
    ticks: Cell<u64>,
}

impl Rate {
    /// So many have left in the last one of so many ticks. The mean is over `ticks_max` at most.
    fn renew(&self, left: u64, ticks: u64, ticks_max: u64) {
        let averaged = (self.ticks.get() + ticks).min(ticks_max);
        self.ticks.set(averaged);
        let (before, now) = (self.mean.get(), left * RATE_TICKS * RATE_UNIT / ticks);
        let weight = ticks.min(averaged);
        let mean = (before * (averaged - weight) + now * weight) / averaged;
        self.mean.set(mean.max(1));
    }
}

/// Whether a waiter was let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Waiting,
    LetIn,
    Gone,
}

/// How many other workers are looked at for quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// The next one: at each end of a transaction, so it must not cost much.
    One,
    /// All of them.
    All,
}

#[derive(Debug)]
struct Waiter {
    standing: Cell<Standing>,
    waker: RefCell<Option<Waker>>,
    /// When it came, in microseconds.
    since_us: u64,
    /// The tick in which it came.
    since_tick: NonZeroU32,
    /// How many were inside or waited then, on all workers.
    count: u64,
}

/// What became of a transaction that wants to enter.
#[derive(Debug)]
pub enum Entry {
    /// There is no limit: it does not count.
    Free,
    /// It is inside.
    Inside(Pass),
    /// It has to wait.
    Queued(Queued),
}

/// A transaction that waits for entry, until this is dropped.
#[derive(Debug)]
pub struct Queued {
    gate: Rc<Gate>,
    waiter: Rc<Waiter>,
}

/// A transaction that is inside, until this is dropped. If that is not by [`Pass::commit`] or
/// [`Pass::roll_back`], the transaction is lost, and its last statements count for nothing.
#[derive(Debug)]
pub struct Pass {
    gate: Rc<Gate>,
    place: Place,
    /// Statements that it has ended in the tick `counted_in`. Those of before are of other periods.
    statement_count: u64,
    counted_in: NonZeroU32,
    /// The tick in which its last command ended, while there is none.
    idle_since: Option<NonZeroU32>,
}

/// What a pass counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Quota,
    Administrator,
}

/// A transaction that waits for a lock, until this is dropped.
#[derive(Debug)]
pub struct Blocked(Rc<Gate>);

/// Ticks that a waiter waits before it is overdue: twice as many as `count` transactions take. So
/// many are there, or were when it came. `rate` is that of those that have left last. Whoever comes
/// last needs once that, so only a stall makes a waiter overdue. All workers count, as they have
/// one line: few may leave by the gate of one. While the process stands still there are no ticks,
/// so that it makes no one overdue.
fn patience_ticks(count: u64, rate: u64) -> u64 {
    let round = count
        .saturating_mul(RATE_TICKS * RATE_UNIT)
        .checked_div(rate);
    round.map_or(OVERDUE_TICKS_MIN, |ticks| {
        ticks.saturating_mul(OVERDUE_ROUNDS).max(OVERDUE_TICKS_MIN)
    })
}

impl Gate {
    /// The gate of worker `index`.
    pub fn new(shared: Arc<Admission>, index: usize) -> Rc<Self> {
        Rc::new(Self {
            shared,
            index,
            line: RefCell::default(),
            gone: Cell::new(0),
            looked_at: Cell::new(index),
            administrators: Cell::new(0),
            idle: Default::default(),
            tick: Cell::new(NonZeroU32::MIN),
            peak: Cell::new(0),
            is_ticking: Cell::new(false),
            left: Cell::new(0),
            still_ticks: Cell::new(0),
            rates: Default::default(),
        })
    }

    fn numbers(&self) -> &GateNumbers {
        self.shared.numbers_of(self.index)
    }

    /// How many may be inside on this worker.
    fn quota(&self) -> u32 {
        self.shared.quota(self.index)
    }

    /// Whether there is a limit. If not, nothing needs a pass.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.quota() == NO_LIMIT
    }

    /// A transaction comes. Who it is, and the time on any steady clock, in microseconds, are
    /// asked only if there is no room: mostly there is.
    pub fn enter(
        self: &Rc<Self>,
        visitor: impl FnOnce() -> Visitor,
        now_us: impl FnOnce() -> u64,
    ) -> Entry {
        let quota = self.quota();
        if quota == NO_LIMIT {
            return Entry::Free;
        }
        let numbers = self.numbers();
        let is_first = numbers.waiting.value() == 0;
        if is_first && self.find_room(Look::All) {
            return Entry::Inside(self.let_in(Place::Quota));
        }
        let administrators = self.administrators.get();
        if administrators < ADMINISTRATORS_MAX && visitor() == Visitor::Administrator {
            self.administrators.set(administrators + 1);
            numbers.escapes.increment();
            return Entry::Inside(self.pass(Place::Administrator));
        }
        let waiter = Rc::new(Waiter {
            standing: Cell::new(Standing::Waiting),
            waker: RefCell::default(),
            since_us: now_us(),
            since_tick: self.tick.get(),
            count: self.shared.present() + 1,
        });
        if is_first {
            numbers.first_us.set(Some(waiter.since_us));
            self.shared.note_line();
        }
        self.line.borrow_mut().push_back(Rc::clone(&waiter));
        numbers.waiting.raise();
        numbers.queued.increment();
        self.note_peak();
        Entry::Queued(Queued {
            gate: Rc::clone(self),
            waiter,
        })
    }

    /// Counts a transaction that went past the gate while there was a limit.
    pub fn note_escape(&self) {
        self.numbers().escapes.increment();
    }

    fn let_in(self: &Rc<Self>, place: Place) -> Pass {
        self.numbers().inside.raise();
        self.note_peak();
        self.pass(place)
    }

    fn pass(self: &Rc<Self>, place: Place) -> Pass {
        self.numbers().admitted.increment();
        Pass {
            gate: Rc::clone(self),
            place,
            statement_count: 0,
            counted_in: self.tick.get(),
            idle_since: None,
        }
    }

    fn note_peak(&self) {
        let numbers = self.numbers();
        let now = numbers.inside.value() + numbers.waiting.value();
        self.peak.set(self.peak.get().max(now));
    }

    /// One less is inside.
    fn leave(&self) {
        let numbers = self.numbers();
        numbers.inside.lower();
        self.let_next_in(Look::One);
        let has_room = numbers.waiting.value() == 0 && numbers.inside.value() < self.quota();
        if has_room && self.shared.is_any_line() {
            self.give_place(u64::MAX);
        }
    }

    /// Lets waiters in while there is quota (G3, G5).
    fn let_next_in(&self, look: Look) {
        while let Some(first) = self.first() {
            if !self.find_room(look) {
                return;
            }
            if !self.give_place(first.since_us) {
                self.let_first_in();
            }
        }
    }

    /// Whether there is room for one more, which may be taken from other workers. A worker that has
    /// more inside than its quota takes some only if that is enough: else it would take all in
    /// vain.
    fn find_room(&self, look: Look) -> bool {
        loop {
            let (inside, quota) = (self.numbers().inside.value(), self.quota());
            if inside < quota {
                return true;
            }
            let is_enough =
                || look == Look::All && inside - quota < self.shared.room_beside(self.index);
            let is_above = quota < inside;
            if is_above && !is_enough() || !self.take_room(look) {
                return false;
            }
        }
    }

    /// Takes room of other workers. Returns false if they have none.
    fn take_room(&self, look: Look) -> bool {
        let others = self.shared.worker_count() - 1;
        let count = match look {
            Look::One => others.min(1),
            Look::All => others,
        };
        (0..count).any(|_| self.shared.take(self.next_other(), self.index))
    }

    /// Gives a place to another worker, if its first waiter came earlier than at this time.
    fn give_place(&self, since_us: u64) -> bool {
        let is_alone = self.shared.worker_count() == 1;
        !is_alone && self.shared.give(self.index, self.next_other(), since_us)
    }

    /// The other workers in turn.
    fn next_other(&self) -> usize {
        let worker_count = self.shared.worker_count();
        let mut next = (self.looked_at.get() + 1) % worker_count;
        if next == self.index {
            next = (next + 1) % worker_count;
        }
        self.looked_at.set(next);
        next
    }

    /// Ready once another worker has given a place to this one, or the limit has risen. Then
    /// [`Gate::follow`] has to be called. One task at a time.
    pub fn called(&self) -> impl Future<Output = ()> + use<'_> {
        self.shared.call(self.index).notified()
    }

    /// Lets waiters in if there is quota now.
    pub fn follow(&self) {
        self.let_next_in(Look::All);
    }

    /// Lets the first waiter in. Returns false if there is none.
    fn let_first_in(&self) -> bool {
        let Some(waiter) = self.first() else {
            return false;
        };
        self.line.borrow_mut().pop_front();
        let numbers = self.numbers();
        numbers.waiting.lower();
        numbers.inside.raise();
        waiter.standing.set(Standing::LetIn);
        self.show_first();
        if let Some(waker) = waiter.waker.take() {
            waker.wake();
        }
        true
    }

    /// The first waiter that has not gone; those before it are removed.
    fn first(&self) -> Option<Rc<Waiter>> {
        let mut line = self.line.borrow_mut();
        while let Some(first) = line.front() {
            if first.standing.get() == Standing::Waiting {
                return Some(Rc::clone(first));
            }
            line.pop_front();
            self.gone.set(self.gone.get() - 1);
        }
        None
    }

    /// Shows others when the first of the line came.
    fn show_first(&self) {
        let first_us = self.first().map(|it| it.since_us);
        self.numbers().first_us.set(first_us);
        if first_us.is_none() {
            self.shared.note_end_of_line();
        }
    }

    /// A waiter has gone. They are removed when half of the line has: one by one would cost the
    /// square of thousands of clients that go at once.
    fn note_gone(&self) {
        self.numbers().waiting.lower();
        self.gone.set(self.gone.get() + 1);
        {
            let mut line = self.line.borrow_mut();
            if line.len() < 2 * self.gone.get() {
                line.retain(|it| it.standing.get() == Standing::Waiting);
                self.gone.set(0);
            }
        }
        self.show_first();
    }

    /// True once if [`Gate::tick`] has to be called each [`crate::controller::PERIOD_US`] until it
    /// returns false: there are so many transactions that the limit could matter.
    pub fn begin_ticking(&self) -> bool {
        if self.is_ticking.get() || !self.is_busy() {
            return false;
        }
        self.is_ticking.set(true);
        // Those of before belong to no tick.
        self.left.set(0);
        self.still_ticks.set(0);
        self.numbers().rate.set(self.rate());
        true
    }

    /// Whether half of the quota is in use, some of those inside wait for locks, or anyone waits
    /// for entry (G6). A limit that rose for a crowd is far above those who fight for rows later.
    fn is_busy(&self) -> bool {
        let numbers = self.numbers();
        let (quota, waiting) = (self.quota(), numbers.waiting.value());
        let count = numbers.inside.value() + waiting;
        let is_used = quota.div_ceil(2) <= count.max(self.peak.get());
        let is_fought = MIN_PER_WORKER <= numbers.blocked.value();
        quota != NO_LIMIT && (is_used || is_fought) || waiting != 0
    }

    /// A period has passed. Parks transactions that were idle in all of it, lets in who is overdue,
    /// reports to the controller, and follows its limit. Returns false if no tick is needed.
    pub fn tick(&self, now_us: u64, debt: crate::Debt) -> bool {
        self.park();
        self.note_rate();
        self.let_overdue_in();
        let is_busy = self.is_busy() || self.idle[..2].iter().any(|it| it.get() != 0);
        let numbers = self.numbers();
        let peak = self
            .peak
            .replace(numbers.inside.value() + numbers.waiting.value());
        let is_limited = is_busy && !self.is_open();
        let demand = if is_limited { peak } else { 0 };
        self.shared.report(self.index, demand, debt, now_us);
        self.let_next_in(Look::All);
        let goes_on = numbers.waiting.value() != 0 || is_limited;
        self.is_ticking.set(goes_on);
        if !goes_on {
            numbers.rate.set(0);
        }
        goes_on
    }

    /// Those that were idle in all of the last tick do not count any more.
    fn park(&self) {
        let [fresh, recent, parked] = &self.idle;
        let inside = &self.numbers().inside;
        inside.lower_by(recent.get());
        parked.set(parked.get() + recent.get());
        recent.set(fresh.replace(0));
        self.tick.set(self.tick.get().saturating_add(1));
        self.let_next_in(Look::All);
    }

    /// How many leave: the least of the means. A rate that rises for a moment shortens no patience.
    fn rate(&self) -> u64 {
        let means = self.rates.iter().map(|it| it.mean.get());
        means.min().unwrap_or(0)
    }

    /// Renews the rates, if any has left. While none does, those of before tell a stall.
    fn note_rate(&self) {
        let left = u64::from(self.left.replace(0));
        let ticks = self.still_ticks.get().saturating_add(1);
        if left == 0 {
            self.still_ticks.set(ticks);
            return;
        }
        self.still_ticks.set(0);
        for (rate, ticks_max) in self.rates.iter().zip(MEAN_TICKS) {
            rate.renew(left, ticks, ticks_max);
        }
        self.numbers().rate.set(self.rate());
    }

    fn let_overdue_in(&self) {
        let (present, rate) = (self.shared.present(), self.shared.rate());
        let now = self.tick.get().get();
        let is_overdue = |it: &Rc<Waiter>| {
            let waited = u64::from(now - it.since_tick.get());
            patience_ticks(present.max(it.count), rate) < waited
        };
        let count = self
            .line
            .borrow()
            .iter()
            .filter(|it| is_overdue(it))
            .count();
        for _ in 0..count.div_ceil(OVERDUE_SHARE) {
            let is_first = self.first().is_some_and(|it| is_overdue(&it));
            if !is_first || !self.let_first_in() {
                return;
            }
            self.numbers().overdue.increment();
        }
    }

    /// The place among `idle` of what went idle in a tick.
    fn idle_place(&self, since: NonZeroU32) -> usize {
        let age = self.tick.get().get() - since.get();
        stdx::to_usize(age.min(2))
    }
}

impl Queued {
    /// Waits for entry. Returns the pass; `now_us` is asked for the time when it is there.
    pub async fn entered(self, now_us: impl FnOnce() -> u64) -> Pass {
        poll_fn(|context| self.poll(context)).await;
        let waited_us = now_us().saturating_sub(self.waiter.since_us);
        let numbers = self.gate.numbers();
        numbers.waited_us.record(waited_us);
        // The place is the pass's now.
        self.waiter.standing.set(Standing::Gone);
        self.gate.pass(Place::Quota)
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        if self.waiter.standing.get() == Standing::LetIn {
            return Poll::Ready(());
        }
        let mut waker = self.waiter.waker.borrow_mut();
        match &mut *waker {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Poll::Pending
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        match self.waiter.standing.replace(Standing::Gone) {
            Standing::Waiting => self.gate.note_gone(),
            Standing::LetIn => self.gate.leave(),
            Standing::Gone => {}
        }
    }
}

impl Pass {
    /// The transaction has no command any more.
    pub fn set_idle(&mut self) {
        if self.place == Place::Quota && self.idle_since.is_none() {
            let fresh = &self.gate.idle[0];
            fresh.set(fresh.get() + 1);
            self.idle_since = Some(self.gate.tick.get());
        }
    }

    /// A command has come (G1).
    pub fn set_busy(&mut self) {
        let Some(since) = self.idle_since.take() else {
            return;
        };
        let place = self.gate.idle_place(since);
        let idle = &self.gate.idle[place];
        idle.set(idle.get() - 1);
        if place == 2 {
            self.gate.numbers().inside.raise();
            self.gate.note_peak();
        }
    }

    /// A statement has ended without an error.
    pub fn count_statement(&mut self) {
        let tick = self.gate.tick.get();
        if self.counted_in != tick {
            self.counted_in = tick;
            self.statement_count = 0;
        }
        self.statement_count += 1;
        self.gate.numbers().statements.increment();
    }

    /// The transaction is committed: it leaves.
    pub fn commit(mut self) {
        self.statement_count = 0;
        self.gate.numbers().commits.increment();
    }

    /// The client has rolled the transaction back: it leaves. What it has read was of use.
    pub fn roll_back(mut self) {
        self.statement_count = 0;
    }

    /// The transaction waits for a lock of another, until what is returned is dropped.
    pub fn block(&self) -> Blocked {
        self.gate.numbers().blocked.raise();
        Blocked(Rc::clone(&self.gate))
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.set_busy();
        let gate = &self.gate;
        if self.counted_in == gate.tick.get() {
            gate.numbers().lost_statements.add(self.statement_count);
        }
        gate.left.set(gate.left.get().saturating_add(1));
        match self.place {
            Place::Quota => gate.leave(),
            Place::Administrator => gate.administrators.set(gate.administrators.get() - 1),
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        self.0.numbers().blocked.lower();
    }
}
