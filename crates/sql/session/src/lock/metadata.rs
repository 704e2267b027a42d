//! Metadata locks: a table's definition does not change while a transaction uses the table.
//!
//! A session that uses a table holds its lock in shared mode until the transaction's end; one that
//! changes the definition holds it exclusively. A shared hold writes one counter that belongs to
//! the worker ([`sync::ShardedRwLock`]), so statements of different workers share nothing. The
//! locks live in a map by table, in front of which each worker has a cache. A session that has to
//! wait registers the wait first (`waits.rs`). If sessions would wait for each other for ever, the
//! last of them fails.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::task::Poll;

use foldhash::fast::FixedState;
use store::TableId;
use sync::{Mutex, ShardedRwLock, WaitKey};

mod waits;

use waits::Waits;
pub(crate) use waits::{Deadlock, Noted};

/// The lock id of a database. Sessions that create tables in it or move tables there hold it
/// shared; one that drops it holds it exclusively. Two databases with the same hash occasionally
/// wait for each other.
pub(crate) fn database_lock(name: &str) -> TableId {
    TableId(DATABASE_LOCK_MIN | FixedState::with_seed(0).hash_one(name) >> 2)
}

/// The lock id of the tables of which all sessions share snapshots. A session that changes one of
/// them holds it exclusively.
pub(crate) const SYSTEM_SNAPSHOT_LOCK: TableId = TableId(DATABASE_LOCK_MIN - 1);

/// Above all ids of stored tables (they count from 1) and below those of virtual ones.
const DATABASE_LOCK_MIN: u64 = 1 << 62;

/// The mode of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Shared: to use the table.
    Shared,
    /// Exclusive: to change the table.
    Exclusive,
}

/// The locks of all tables. Shared by all workers.
pub struct MetadataLocks {
    /// Slots of each lock.
    worker_count: usize,
    /// Created at a table's first use, swept when there are many.
    locks: Mutex<Locks>,
    /// Which session waits for which.
    waits: Arc<Waits>,
}

/// Locks by table. A lock that only the map references is held by no session and may be removed.
/// The next session that wants it must come here, under the mutex, and gets another.
struct Locks {
    by_table: HashMap<TableId, Arc<ShardedRwLock>, FixedState>,
    /// At this many locks, those of tables that are gone or unused are looked for.
    sweep_at: usize,
}

/// Fewer locks are not worth a sweep: each has a few KiB if there are many workers.
const SWEEP_AT_MIN: usize = 1024;

/// Locks that a worker caches; at the limit it clears the cache. Tables are dropped and created, so
/// it must forget some time. A worker that uses more tables than this asks the map now and then.
const CACHE_COUNT_MAX: usize = 1024;

impl fmt::Debug for MetadataLocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetadataLocks")
            .field("table_count", &self.locks.lock().by_table.len())
            .finish()
    }
}

impl MetadataLocks {
    /// No lock is held.
    pub fn new(worker_count: usize) -> Self {
        Self {
            worker_count,
            locks: Mutex::new(Locks {
                by_table: HashMap::default(),
                sweep_at: SWEEP_AT_MIN,
            }),
            waits: Arc::default(),
        }
    }

    /// Registers that a session is about to wait for a table, and which tables it holds shared
    /// meanwhile.
    ///
    /// # Errors
    /// [`Deadlock`] if it would wait for itself.
    pub(crate) fn note_wait(
        &self,
        session: u64,
        table: TableId,
        mode: Mode,
        shared: Vec<TableId>,
    ) -> Result<Noted<'_>, Deadlock> {
        self.waits.note(session, table, mode, shared)
    }

    fn lock_of(&self, table: TableId) -> Arc<ShardedRwLock> {
        let mut locks = self.locks.lock();
        let Locks { by_table, sweep_at } = &mut *locks;
        if *sweep_at <= by_table.len() {
            by_table.retain(|_, lock| 1 < Arc::strong_count(lock));
            *sweep_at = SWEEP_AT_MIN.max(2 * by_table.len());
        }
        let lock = by_table
            .entry(table)
            .or_insert_with(|| Arc::new(ShardedRwLock::new(self.worker_count)));
        Arc::clone(lock)
    }
}

/// A worker's access to the locks.
#[derive(Debug)]
pub struct MetadataWorker {
    /// Which slot is this worker's. Constant.
    slot: usize,
    /// Locks that this worker has asked for before.
    cache: RefCell<HashMap<TableId, Arc<ShardedRwLock>, FixedState>>,
}

impl MetadataWorker {
    /// The access of worker `slot`.
    pub fn new(slot: usize) -> Self {
        Self {
            slot,
            cache: RefCell::new(HashMap::default()),
        }
    }

    fn lock_of(&self, locks: &MetadataLocks, table: TableId) -> Arc<ShardedRwLock> {
        let mut cache = self.cache.borrow_mut();
        if CACHE_COUNT_MAX <= cache.len() && !cache.contains_key(&table) {
            cache.clear();
        }
        Arc::clone(cache.entry(table).or_insert_with(|| locks.lock_of(table)))
    }

    /// Holds a table's lock shared. Returns `None` if a session holds it exclusively or waits to.
    pub fn try_hold(&self, locks: &MetadataLocks, table: TableId) -> Option<SharedHold> {
        let lock = self.lock_of(locks, table);
        lock.try_shared(self.slot).then(|| SharedHold {
            lock,
            slot: self.slot,
            table,
        })
    }

    /// Holds a table's lock shared until the hold is dropped.
    pub async fn hold(&self, locks: &MetadataLocks, table: TableId) -> SharedHold {
        let lock = self.lock_of(locks, table);
        if !lock.try_shared(self.slot) {
            let mut waiting = Waiting {
                lock: &lock,
                key: WaitKey::default(),
            };
            poll_fn(|context| {
                let is_held = lock.poll_shared(self.slot, &mut waiting.key, context.waker());
                if is_held {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })
            .await;
        }
        SharedHold {
            lock,
            slot: self.slot,
            table,
        }
    }

    /// Holds a table's lock exclusively until the hold is dropped. Waits for the sessions that use
    /// the table; those that come later wait for this one.
    pub async fn change(
        &self,
        locks: &MetadataLocks,
        table: TableId,
        session: u64,
    ) -> ExclusiveHold {
        let lock = self.lock_of(locks, table);
        {
            let mut waiting = Waiting {
                lock: &lock,
                key: WaitKey::default(),
            };
            poll_fn(|context| {
                let is_ours = lock.poll_announce_exclusive(&mut waiting.key, context.waker());
                if is_ours {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })
            .await;
        }
        // From here on, dropping the hold withdraws the announcement.
        let hold = ExclusiveHold {
            lock: Arc::clone(&lock),
            table,
            session,
            waits: Arc::clone(&locks.waits),
        };
        locks.waits.own(table, session);
        let mut waiting = Waiting {
            lock: &lock,
            key: WaitKey::default(),
        };
        poll_fn(|context| {
            let is_ready = lock.poll_exclusive(&mut waiting.key, context.waker());
            if is_ready {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
        drop(waiting);
        hold
    }
}

/// A registered waker, removed when the wait is over or cancelled.
struct Waiting<'l> {
    lock: &'l ShardedRwLock,
    key: WaitKey,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.lock.cancel_wait(&mut self.key);
    }
}

/// A table in use.
pub struct SharedHold {
    lock: Arc<ShardedRwLock>,
    slot: usize,
    table: TableId,
}

impl SharedHold {
    /// Which table.
    pub fn table(&self) -> TableId {
        self.table
    }
}

impl Drop for SharedHold {
    fn drop(&mut self) {
        self.lock.unlock_shared(self.slot);
    }
}

impl fmt::Debug for SharedHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedHold")
            .field("table", &self.table)
            .finish_non_exhaustive()
    }
}

/// A database used by a session that may wait for tables meanwhile.
pub(crate) struct DatabaseHold {
    hold: SharedHold,
    session: u64,
    waits: Arc<Waits>,
}

impl DatabaseHold {
    /// Registers that this session holds the database's lock.
    pub(crate) fn new(hold: SharedHold, locks: &MetadataLocks, session: u64) -> Self {
        let waits = Arc::clone(&locks.waits);
        waits.begin_use(hold.table, session);
        Self {
            hold,
            session,
            waits,
        }
    }
}

impl Drop for DatabaseHold {
    fn drop(&mut self) {
        self.waits.end_use(self.hold.table, self.session);
    }
}

impl fmt::Debug for DatabaseHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseHold")
            .field("hold", &self.hold)
            .finish_non_exhaustive()
    }
}

/// A table being changed.
pub struct ExclusiveHold {
    lock: Arc<ShardedRwLock>,
    table: TableId,
    /// The session that holds it.
    session: u64,
    waits: Arc<Waits>,
}

impl ExclusiveHold {
    /// Which table.
    pub fn table(&self) -> TableId {
        self.table
    }
}

impl Drop for ExclusiveHold {
    fn drop(&mut self) {
        self.waits.disown(self.table, self.session);
        self.lock.unlock_exclusive();
    }
}

impl fmt::Debug for ExclusiveHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExclusiveHold")
            .field("table", &self.table)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
        let mut future = pin!(future);
        match future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    #[test]
    fn users_share_and_a_change_excludes_them() {
        let locks = MetadataLocks::new(2);
        let (a, b) = (MetadataWorker::new(0), MetadataWorker::new(1));
        let (table, other) = (TableId(5), TableId(6));
        let first = ready(a.hold(&locks, table)).unwrap();
        let second = ready(b.hold(&locks, table)).unwrap();
        assert!(ready(a.change(&locks, table, 1)).is_none());
        assert!(ready(a.change(&locks, other, 1)).is_some());
        assert!(
            ready(b.hold(&locks, table)).is_some(),
            "a change that was given up is gone"
        );
        drop((first, second));
        let change = ready(b.change(&locks, table, 2)).unwrap();
        assert!(ready(a.hold(&locks, table)).is_none());
        drop(change);
        assert!(ready(a.hold(&locks, table)).is_some());
    }

    #[test]
    fn who_comes_after_a_waiting_change_waits_behind_it() {
        let locks = MetadataLocks::new(1);
        let worker = MetadataWorker::new(0);
        let user = ready(worker.hold(&locks, TableId(5))).unwrap();
        let mut change = pin!(worker.change(&locks, TableId(5), 1));
        let mut context = Context::from_waker(Waker::noop());
        assert!(change.as_mut().poll(&mut context).is_pending());
        assert!(ready(worker.hold(&locks, TableId(5))).is_none());
        drop(user);
        assert!(change.as_mut().poll(&mut context).is_ready());
    }

    #[test]
    fn locks_of_tables_that_are_gone_are_forgotten() {
        let locks = MetadataLocks::new(1);
        let (worker, other) = (MetadataWorker::new(0), MetadataWorker::new(0));
        let kept = ready(worker.hold(&locks, TableId(0))).unwrap();
        for id in 1..20_000 {
            drop(ready(worker.change(&locks, TableId(id), 1)).unwrap());
        }
        assert!(locks.locks.lock().by_table.len() <= 4 * SWEEP_AT_MIN);
        assert!(
            ready(other.change(&locks, TableId(0), 2)).is_none(),
            "it is held"
        );
        drop(kept);
        assert!(ready(other.change(&locks, TableId(0), 2)).is_some());
    }
}
