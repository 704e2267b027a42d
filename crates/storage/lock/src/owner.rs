//! One transaction's locks: what it holds, and the one that it waits for.
//!
//! Belongs to the transaction's worker. [`OwnerLocks::acquire`] is restartable. If it returns
//! [`Acquired::Wait`], the caller repeats the request once the future is ready, and then gets the
//! outcome.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use format::{IndexId, TxnId};
use store::ClientId;

use crate::footprint::Footprint;
use crate::table::{Compaction, LockTable, Requested};
use crate::waiter::{Request, Verdict, Waiter};
use crate::{LockKind, LockName};

/// The locks of one transaction. Dropping it releases them.
#[derive(Debug)]
pub struct OwnerLocks {
    /// The table they are in. Constant.
    table: Arc<LockTable>,
    /// The transaction. Constant.
    owner: TxnId,
    /// Whose it is. Constant.
    client: ClientId,
    /// Granted locks that are kept until the transaction's end, in the order of granting.
    held: Vec<Held>,
    /// Older ones, which are compact.
    compact: Compacted,
    /// Granted locks that are kept until an operation ends or is given up.
    brief: Vec<Held>,
    /// Memory of these, in bytes.
    held_bytes: u64,
    /// What it has been granted until the transaction's end, counted as InnoDB does.
    footprint: Footprint,
    /// Rows that it has locked by its id in them, and not here.
    implicit_count: usize,
    /// The last request that returned `Wait`.
    pending: Option<Pending>,
    /// How long the last wait took that is over; fetched by [`OwnerLocks::take_waited`].
    waited: Option<Duration>,
}

/// The compact locks of an owner.
#[derive(Debug)]
struct Compacted {
    /// Their number.
    count: usize,
    /// Objects from which on older ones become compact.
    due_count: usize,
    /// The first shard of the table that may have some.
    next_shard: usize,
}

impl Compacted {
    fn new(compaction: Compaction) -> Self {
        Self {
            count: 0,
            due_count: compaction.newest_count + compaction.step_count,
            next_shard: 0,
        }
    }
}

/// Locks that take as long to release as a shard of compact ones: it has some 10 KiB to free for a
/// million locks.
const LOCKS_PER_SHARD: usize = 8;

/// A granted lock.
#[derive(Debug)]
struct Held {
    name: LockName,
    kind: LockKind,
}

/// A request for a lock.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// The lock's name.
    pub name: &'a LockName,
    /// Mode and extent.
    pub kind: LockKind,
    /// How long it is kept.
    pub term: Term,
    /// How long the owner may wait, counted from its first request. If it is zero, the request
    /// fails at once (`NOWAIT`, `SKIP LOCKED`, a lock wait timeout of 0).
    pub patience: Duration,
    /// What a rollback of the owner would undo beside its locks: changes, and locked tables.
    pub work: u64,
}

/// How long a lock is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Term {
    /// Until the transaction ends.
    Transaction,
    /// Until the operation has ended, or was given up and undone. The owner then calls
    /// [`OwnerLocks::release_brief`], also in the middle of a scan: a later request would be
    /// answered by this lock, and lose it. The transaction's end releases what is left.
    Operation,
}

/// A request that waits, or whose verdict has not been fetched.
#[derive(Debug)]
struct Pending {
    waiter: Arc<Waiter>,
    term: Term,
    /// When the wait began, by the caller's clock.
    since_ns: u64,
}

/// The answer to a request that has not failed.
#[derive(Debug)]
pub enum Acquired {
    /// The owner already has the lock, or one that includes it.
    Held,
    /// The owner has the lock now. For an insert intention: nothing blocks it any more.
    Granted,
    /// Await it for `patience` at most, then ask again.
    Wait(LockFuture),
}

/// Why a lock was not granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockError {
    /// The wait took longer than `patience` (1205).
    Timeout,
    /// The transaction is the victim of a deadlock and must roll back (1213).
    Deadlock,
    /// Another owner has it, and `patience` is zero.
    Busy,
    /// There is no memory for one more lock, and the transaction must roll back (1206).
    Full,
}

impl OwnerLocks {
    /// Creates the empty list of locks of `owner`, which is a transaction of `client`.
    pub fn new(table: Arc<LockTable>, owner: TxnId, client: ClientId) -> Self {
        let compact = Compacted::new(table.compaction);
        Self {
            table,
            owner,
            client,
            held: Vec::new(),
            compact,
            brief: Vec::new(),
            held_bytes: 0,
            footprint: Footprint::default(),
            implicit_count: 0,
            pending: None,
            waited: None,
        }
    }

    /// The transaction that they belong to.
    pub fn owner(&self) -> TxnId {
        self.owner
    }

    /// Asks for a lock. `now_ns` is any steady clock.
    pub fn acquire(&mut self, ask: Ask<'_>, now_ns: u64) -> Result<Acquired, LockError> {
        if let Some(answer) = self.answer_pending(ask, now_ns)? {
            return Ok(answer);
        }
        assert!(self.pending.is_none(), "a wait was answered or goes on");
        let request = Request {
            owner: self.owner,
            client: self.client,
            name: ask.name,
            kind: ask.kind,
            work: ask.work,
            footprint: &self.footprint,
            may_wait: !ask.patience.is_zero(),
            held_bytes: self.held_bytes,
            now_ns,
        };
        match self.table.request(request) {
            Requested::Held => Ok(Acquired::Held),
            Requested::Granted(kind) => {
                if ask.term == Term::Transaction && leaves_lock(kind) {
                    self.footprint.add(ask.name, kind);
                }
                self.note_granted(ask.name, kind, ask.term);
                Ok(Acquired::Granted)
            }
            Requested::Waiting(waiter) => {
                let future = LockFuture {
                    waiter: Arc::clone(&waiter),
                };
                self.pending = Some(Pending {
                    waiter,
                    term: ask.term,
                    since_ns: now_ns,
                });
                Ok(Acquired::Wait(future))
            }
            Requested::Busy => Err(LockError::Busy),
            Requested::Full => Err(LockError::Full),
            Requested::Deadlock => Err(LockError::Deadlock),
        }
    }

    /// Returns the answer of a pending request of this kind, or `None` if there is no such request.
    ///
    /// A repeated operation asks again for all the locks that it needs, in order. Requests for
    /// locks that it holds leave the pending request alone: it keeps its place in the queue and its
    /// time. A request for any other lock cancels it: the operation was restarted and another row
    /// blocks it now.
    fn answer_pending(&mut self, ask: Ask<'_>, now_ns: u64) -> Result<Option<Acquired>, LockError> {
        let Ask { name, kind, .. } = ask;
        let Some(pending) = self.pending.take() else {
            return Ok(None);
        };
        assert_eq!(pending.waiter.owner, self.owner);
        let is_same = pending.waiter.name == *name && pending.waiter.kind == kind;
        if !is_same && self.table.is_held(self.owner, name, kind) {
            self.pending = Some(pending);
            return Ok(Some(Acquired::Held));
        }
        if !is_same {
            self.note_waited(&pending, now_ns);
            return self.settle(&pending).map(|()| None);
        }
        if pending.waiter.verdict().is_none() && !is_over(&pending, ask.patience, now_ns) {
            let future = LockFuture {
                waiter: Arc::clone(&pending.waiter),
            };
            self.pending = Some(pending);
            return Ok(Some(Acquired::Wait(future)));
        }
        self.note_waited(&pending, now_ns);
        match self.verdict_of(&pending) {
            Verdict::Granted => Ok(Some(Acquired::Granted)),
            Verdict::Deadlock => Err(LockError::Deadlock),
            Verdict::Cancelled => Err(LockError::Timeout),
        }
    }

    /// How long a wait took that has ended since this was asked last.
    pub fn take_waited(&mut self) -> Option<Duration> {
        self.waited.take()
    }

    fn note_waited(&mut self, pending: &Pending, now_ns: u64) {
        let waited_ns = now_ns.saturating_sub(pending.since_ns);
        self.waited = Some(Duration::from_nanos(waited_ns));
    }

    /// Ends a wait, whatever its state, and notes the lock if it was granted.
    fn verdict_of(&mut self, pending: &Pending) -> Verdict {
        let waiter = &pending.waiter;
        let verdict = self.table.cancel(waiter);
        if verdict == Verdict::Granted {
            if pending.term == Term::Transaction {
                self.footprint.add_awaited(&waiter.name, waiter.kind);
            }
            self.note_granted(&waiter.name, waiter.kind, pending.term);
        }
        verdict
    }

    fn settle(&mut self, pending: &Pending) -> Result<(), LockError> {
        match self.verdict_of(pending) {
            Verdict::Granted | Verdict::Cancelled => Ok(()),
            Verdict::Deadlock => Err(LockError::Deadlock),
        }
    }

    fn note_granted(&mut self, name: &LockName, kind: LockKind, term: Term) {
        if leaves_lock(kind) {
            self.held_bytes += self.table.charge(name);
            let held = Held {
                name: name.clone(),
                kind,
            };
            match term {
                Term::Transaction => self.held.push(held),
                Term::Operation => self.brief.push(held),
            }
            if self.compact.due_count <= self.held.len() {
                self.compact_oldest();
            }
        }
    }

    /// Makes the oldest locks compact, as far as they can be.
    fn compact_oldest(&mut self) {
        let Compaction {
            newest_count,
            step_count,
            ..
        } = self.table.compaction;
        let oldest_count = self.held.len().saturating_sub(newest_count);
        let mut freed = 0;
        let mut staying = Vec::new();
        for held in self.held.drain(..oldest_count) {
            match self.table.compact(self.owner, &held.name, held.kind) {
                Some(bytes) => {
                    freed += self.table.discharge(std::iter::once(&held.name));
                    self.held_bytes += bytes;
                    self.compact.count += 1;
                }
                None => staying.push(held),
            }
        }
        assert!(freed <= self.held_bytes, "each held lock was counted");
        self.held_bytes -= freed;
        self.held.splice(..0, staying);
        // What stays is tried again after a step, and not with each lock.
        self.compact.due_count = self.held.len().max(newest_count) + step_count;
    }

    /// An insert of this owner has put `new_key` before `successor`. Each owner that has locked the
    /// gap before the successor has both halves locked from now on. Call it with the leaf latched
    /// exclusively.
    pub fn split_gap(&mut self, new_key: &LockName, successor: &LockName) {
        let own = self.table.split_gap(self.owner, new_key, successor);
        for kind in own {
            assert!(kind.covers_gap(), "half of a gap is a gap");
            self.footprint.add(new_key, kind);
            self.note_granted(new_key, kind, Term::Transaction);
        }
    }

    /// Cancels a wait, for an owner that is killed or whose statement ends otherwise. A deadlock
    /// verdict that came meanwhile is dropped with it: the cycle is open once the wait is over.
    pub fn cancel_wait(&mut self, now_ns: u64) {
        if let Some(pending) = self.pending.take() {
            self.note_waited(&pending, now_ns);
            self.verdict_of(&pending);
        }
    }

    /// The owners that block its wait: those that have the lock, and those that wait before it.
    pub fn blockers(&self) -> Vec<TxnId> {
        let blockers = self.pending.as_ref().map(|pending| {
            assert_eq!(pending.waiter.owner, self.owner);
            self.table.blockers(&pending.waiter)
        });
        blockers.unwrap_or_default()
    }

    /// Cancels a wait, for an owner whose statement goes on and asks for another lock. The owner
    /// learns that it was the victim of a deadlock, which others were told.
    pub fn leave_wait(&mut self, now_ns: u64) -> Result<(), LockError> {
        let Some(pending) = self.pending.take() else {
            return Ok(());
        };
        assert_eq!(pending.waiter.owner, self.owner, "a wait is its owner's");
        self.note_waited(&pending, now_ns);
        self.settle(&pending)
    }

    /// True if it waits for a lock, or has not fetched the verdict.
    pub fn has_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// True if it waits for this lock, or has not fetched the verdict.
    pub fn is_pending(&self, name: &LockName, kind: LockKind) -> bool {
        let is_it = |pending: &Pending| pending.waiter.name == *name && pending.waiter.kind == kind;
        self.pending.as_ref().is_some_and(is_it)
    }

    /// Releases one lock before the transaction's end, for a row that did not match under READ
    /// COMMITTED. Must not be used for a row that the owner has changed, nor for a lock that has
    /// answered another of its requests ([`Acquired::Held`]), before or since.
    pub fn release_one(&mut self, name: &LockName, kind: LockKind) {
        let is_it = |held: &Held| held.kind == kind && held.name == *name;
        if let Some(position) = self.held.iter().rposition(is_it) {
            let held = self.held.swap_remove(position);
            self.footprint.release(&held.name, held.kind);
            self.give_back(&held);
        }
    }

    /// Releases the locks of the operation that ends or is given up.
    pub fn release_brief(&mut self) {
        while let Some(held) = self.brief.pop() {
            self.give_back(&held);
        }
    }

    fn give_back(&mut self, held: &Held) {
        let freed = self.table.discharge(std::iter::once(&held.name));
        assert!(freed <= self.held_bytes, "each held lock was counted");
        self.held_bytes -= freed;
        self.table.release_kind(self.owner, &held.name, held.kind);
    }

    /// The locks that it was granted since it kept `count`, to be released one by one. Those that
    /// are compact by now are left out.
    pub fn since(&self, count: usize) -> impl Iterator<Item = (&LockName, LockKind)> {
        let first = count.saturating_sub(self.compact.count);
        let newest = self.held.get(first..).unwrap_or_default();
        newest.iter().map(|held| (&held.name, held.kind))
    }

    /// The owner has changed a row that it had no lock of: its id in the row is the lock.
    pub fn count_implicit(&mut self, index: IndexId) {
        self.implicit_count += 1;
        self.footprint.add_implicit(index);
    }

    /// Number of locked rows, for `INNODB_TRX`: locks that are kept, and rows that are locked by
    /// the owner's id in them.
    pub fn row_count(&self) -> usize {
        self.kept_count() + self.implicit_count
    }

    /// Number of locks that are kept until the transaction's end. A name counts once for each kind.
    pub fn kept_count(&self) -> usize {
        self.held.len() + self.compact.count
    }

    /// Lock objects that InnoDB would have for the locks that are kept.
    pub fn object_count(&self) -> u64 {
        self.footprint.object_count()
    }

    /// Memory of its locks, in bytes.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Number of granted locks. A name counts once for each kind.
    pub fn held_count(&self) -> usize {
        self.kept_count() + self.brief.len()
    }

    /// Releases everything. The owner must have been marked as ended for `convert_implicit`.
    pub fn release_all(&mut self) {
        while self.release_some(usize::MAX) {}
    }

    /// Releases at most `count` of the locks that it has asked for, the newest first, as InnoDB
    /// does: of two that wait, the one that waits for the newer lock goes first. Compact ones come
    /// last, in no order. Returns true if there are more.
    pub fn release_some(&mut self, count: usize) -> bool {
        if let Some(pending) = self.pending.take() {
            self.verdict_of(&pending);
        }
        self.release_brief();
        let rest = self.held.len().saturating_sub(count);
        let (_, released) = self.held.split_at(rest);
        let names = || released.iter().rev().map(|held| &held.name);
        self.table.release(self.owner, names());
        let freed = self.table.discharge(names());
        assert!(freed <= self.held_bytes, "each held lock was counted");
        self.held_bytes -= freed;
        let is_done = self.held.is_empty();
        self.held.truncate(rest);
        if rest != 0 || (0 < self.compact.count && !(is_done && self.release_shards(count))) {
            return true;
        }
        assert_eq!(self.held_bytes, 0, "who holds nothing has no memory");
        self.table.finish(self.owner);
        false
    }

    /// Releases compact locks, in shards that take as long as `count` objects. Returns true if none
    /// are left.
    fn release_shards(&mut self, count: usize) -> bool {
        let shard_count = (count / LOCKS_PER_SHARD).max(1);
        let first = self.compact.next_shard;
        let (next, freed) = self.table.release_compact(self.owner, first, shard_count);
        assert!(freed <= self.held_bytes, "each held lock was counted");
        self.held_bytes -= freed;
        match next {
            Some(next) => self.compact.next_shard = next,
            None => self.compact = Compacted::new(self.table.compaction),
        }
        next.is_none()
    }
}

impl Drop for OwnerLocks {
    fn drop(&mut self) {
        self.release_all();
    }
}

/// False for an insert intention, which is over once it is granted.
fn leaves_lock(kind: LockKind) -> bool {
    kind.covers_record() || kind.covers_gap()
}

fn is_over(pending: &Pending, patience: Duration, now_ns: u64) -> bool {
    patience <= Duration::from_nanos(now_ns.saturating_sub(pending.since_ns))
}

/// Ready when the wait has its verdict. Dropping it does not cancel the wait: that is up to the
/// owner.
pub struct LockFuture {
    waiter: Arc<Waiter>,
}

impl Future for LockFuture {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match self.waiter.verdict_or_wake(context.waker()) {
            Some(_) => Poll::Ready(()),
            None => Poll::Pending,
        }
    }
}

impl fmt::Debug for LockFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockFuture")
            .field("name", &self.waiter.name)
            .finish_non_exhaustive()
    }
}
