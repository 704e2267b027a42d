//! What a scan locks beside its rows: InnoDB's rules for gaps and for the ends of a range.
//!
//! Under REPEATABLE READ and SERIALIZABLE a scan locks each entry and the gap before it. Except:
//! an entry that a unique key names alone, and one of the clustered index that a range begins with
//! exactly, are locked without their gap. Then the end: an equality locks the gap before the next
//! entry. A range also locks that entry, as MariaDB does, which looks at it before it sees that the
//! range ends. Behind the last entry the supremum's gap is locked. A scan that goes backward locks
//! the gap where it begins, and an equality then needs nothing at the entry that it ends at. A
//! deleted entry counts as a live one. But if a unique key of a secondary index names it, it is
//! locked with its gap, and the search goes on.
//!
//! With an entry of a secondary index its row is locked, but not if a shared lock of the entry is
//! all that a reader of the index needs. Behind a range the row is locked by a change, by FOR
//! UPDATE if the index has all that is read, and by a backward scan that reads rows. Other readers
//! of a range see by the entry alone that it has ended (MariaDB's index condition pushdown, which
//! it does not use backward).
//!
//! Under READ COMMITTED and READ UNCOMMITTED only entries are locked. A range waits for the entry
//! behind it, too. A forward scan of the clustered index lets that one go, a backward one keeps it.
//! An entry whose deletion is committed is not locked.
//!
//! (S1) A gap lock counts once the scan has found, after the lock was entered, that no leaf between
//! its last finished entry and the locked one has changed. If one has, the scan reads on from the
//! finished entry again, and may find another entry in between (`row::gaps` has the other side).
//! (S2) So its place is the gap behind the last finished entry, also while it waits for a lock.

use btree::LeafStamp;
use lock::{LockExtent, LockKind, LockName, Term};
use txn::Snapshot;

use super::*;
use crate::row::conflict::{Stored, WantedLock, lock_mode};
use crate::schema::table_shape::Equality;
use crate::worker::scan_count::ScanNumber;

/// What a locking scan has done in its present interval.
#[derive(Debug, Default)]
pub(super) struct ScanLocks {
    /// The scan locks what it reads.
    pub(super) is_on: bool,
    /// The last finished entry, if it is not in the present run.
    behind: Option<Vec<u8>>,
    /// The leaves between it and the present run, whose ends the gap extends over.
    passed: Vec<LeafStamp>,
    /// The gap where a backward scan begins is locked.
    has_head: bool,
    /// The end of the interval is locked.
    pub(super) has_tail: bool,
    /// What to do now if another has a lock.
    pub(super) wait: LockWait,
    /// Locks that the transaction kept before the present entry.
    kept_before: usize,
    /// The key of the entry that was begun in a run that the scan has left.
    pub(super) begun: Option<Vec<u8>>,
    /// `kept_before` of the row that is confirmed.
    confirming: Option<usize>,
    /// The way to the committed version of a row that another has locked, during a fetch.
    pub(super) way_back: Option<Box<WayBack>>,
    /// Its number, once it has locked a row that may be released.
    scan: Option<ScanNumber>,
}

/// The way from the newest version of a row to the one that was committed last. It lasts over
/// waits, and over other changes of the leaf. The undo may not fit into the pool: if the way began
/// again after each wait, it would never end.
#[derive(Debug)]
pub(super) struct WayBack {
    /// Whose it is.
    row_key: Vec<u8>,
    /// How far it has come.
    version: Version,
    /// What was committed when it began. It keeps the undo, and the pages of large rows.
    snapshot: Snapshot,
}

/// Whether a lock holds what the scan has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// It does.
    Current,
    /// A leaf has changed; the scan's place is set to read again.
    Changed,
    /// The entry is deleted or left out, and does not end a range: the next one is looked at, too.
    Passed,
}

impl ScanLocks {
    /// The state before an interval is read.
    pub(super) fn start(&mut self, interval: &Interval) {
        self.behind = None;
        self.begun = None;
        self.way_back = None;
        self.passed.clear();
        self.has_head = false;
        self.has_tail = interval.is_empty;
    }
}

impl EngineCursor {
    /// Before a fetch into a batch that has some rows of this fetch, if it goes on after a wait.
    pub(super) fn begin_locks(
        &mut self,
        txn: &mut EngineTransaction,
        lock: RowLock,
        batch: &RowBatch,
    ) {
        self.locks.is_on = lock != RowLock::None;
        if batch.is_empty()
            && let Some(scan) = self.locks.scan
        {
            txn.releasable.keep_all_of(scan);
        }
    }

    /// Whether a lock that another has is waited for, after all that was found is returned.
    pub(super) fn can_wait(&self) -> bool {
        matches!(self.options.wait, LockWait::Wait | LockWait::SemiConsistent)
    }

    /// What to do about a lock that another has. A caller that gets rows before the wait can let
    /// those go that do not match, and changes the others, as MariaDB does row by row.
    pub(super) fn wait_mode(&self, txn: &EngineTransaction, found: usize) -> LockWait {
        match self.options.wait {
            LockWait::Wait | LockWait::SemiConsistent if 0 < found => LockWait::NoWait,
            LockWait::SemiConsistent if self.reads_committed(txn) => LockWait::NoWait,
            wait => wait,
        }
    }

    /// Whether a row that another has locked is first tested as it was committed last: in InnoDB
    /// only by scans of the clustered index that look for more than one row and have time to wait.
    fn reads_committed(&self, txn: &EngineTransaction) -> bool {
        self.options.wait == LockWait::SemiConsistent
            && !txn.locks_gaps()
            && self.secondary.is_none()
            && !self.names_one_live_entry()
            && 0 < txn.options.lock_wait_timeout_s
    }

    /// Begins the present entry, unless it was begun before a wait, in this run or another one. A
    /// wait of another operation is over: its lock, if it was granted, does not count as this
    /// entry's. This transaction may have inserted what it locks.
    pub(super) fn begin_entry(&mut self, txn: &mut EngineTransaction) -> Outcome<()> {
        if !self.locks.is_on || self.is_begun {
            return Ok(());
        }
        let (key, _) = self.run.entry(self.position);
        if self.locks.begun.as_deref() == Some(key) {
            self.locks.begun = None;
        } else {
            self.leave_begun(txn)?;
            txn.leave_wait()?;
            self.locks.kept_before = txn.kept_lock_count();
        }
        self.is_begun = true;
        Ok(())
    }

    /// Releases what was locked for an entry that was begun in a run that the scan has left, if it
    /// is gone behind the wait. The transaction has done nothing since, so it cannot rely on that.
    pub(super) fn leave_begun(&mut self, txn: &mut EngineTransaction) -> Outcome<()> {
        if self.locks.begun.take().is_some() && !txn.locks_gaps() {
            txn.leave_wait()?;
            self.note_locks(txn, Sight::Unseen, 0);
        }
        Ok(())
    }

    /// An entry that was waited for is gone. Its lock, if it was granted, was not fetched, and is
    /// released with the entry's others.
    pub(super) fn leave_gone(txn: &mut EngineTransaction) -> Outcome<()> {
        match txn.locks_gaps() {
            true => Ok(()),
            false => Ok(txn.leave_wait()?),
        }
    }

    /// Notes which locks the present entry has added, and releases them if it gave no row.
    pub(super) fn note_locks(
        &mut self,
        txn: &mut EngineTransaction,
        sight: Sight,
        row_count: usize,
    ) {
        self.locks.passed.clear();
        let Some(locks) = txn.locks.as_ref().filter(|_| !txn.locks_gaps()) else {
            return;
        };
        let row = row_count.saturating_sub(1);
        let added = locks.since(self.locks.kept_before);
        let added: Vec<_> = added.map(|(name, kind)| (name.clone(), kind)).collect();
        assert!(
            self.locks.is_on || added.is_empty(),
            "a scan without locks locks nothing"
        );
        if sight == Sight::Seen {
            let begin = || txn.worker.scan_count.begin();
            let scan = *self.locks.scan.get_or_insert_with(begin);
            txn.releasable.add((scan, row), added.into_iter());
            return;
        }
        for (name, kind) in &added {
            txn.release_lock(name, *kind);
        }
    }

    /// Releases what was locked for a row of the batch.
    pub(super) fn release_row(&mut self, txn: &mut EngineTransaction, row: usize) {
        let Some(scan) = self.locks.scan else {
            return;
        };
        for (name, kind) in txn.releasable.take(scan, row) {
            txn.release_lock(&name, kind);
        }
    }

    /// Appends the version of the present row that was committed last, if there is one, because
    /// another transaction has the row locked. Returns false if the scan waits, or goes on.
    pub(super) fn push_committed(
        &mut self,
        txn: &mut EngineTransaction,
        batch: &mut RowBatch,
    ) -> Outcome<bool> {
        assert!(self.reads_committed(txn), "other scans wait");
        let (key, _) = self.run.entry(self.position);
        assert!(self.is_inside(key), "the end is waited for");
        let is_row = self.find_committed(txn)?;
        if is_row {
            self.push_found(batch)?;
            batch.set_hold(Hold::Committed);
        }
        self.finish_entry(txn, Sight::Unseen, batch.len());
        Ok(is_row)
    }

    /// Goes back to the version of the present row that was committed last. Returns false if there
    /// is none.
    fn find_committed(&mut self, txn: &EngineTransaction) -> Outcome<bool> {
        let is_of_other = |way: &WayBack| way.row_key != self.row_key;
        if self.locks.way_back.as_deref().is_none_or(is_of_other) {
            let (rows, mut version) = (self.table.clustered, Version::default());
            if !rows.get(&self.worker.pages, &self.row_key, &mut version.bytes)? {
                return Ok(false);
            }
            let worker = &txn.worker;
            self.locks.way_back = Some(Box::new(WayBack {
                row_key: self.row_key.clone(),
                version,
                snapshot: Snapshot::open(&worker.txns, || worker.pages.reserved()),
            }));
        }
        let way = self.locks.way_back.as_mut().expect("it has begun");
        way.version
            .go_to_committed(txn, &way.snapshot, &mut self.looks)
    }

    /// Appends the version at the end of the way back.
    fn push_found(&mut self, batch: &mut RowBatch) -> Outcome<()> {
        let mut way = self.locks.way_back.take().expect("a version was found");
        assert!(way.row_key == self.row_key, "it is the present row's");
        std::mem::swap(&mut self.version, &mut way.version);
        self.is_loaded = true;
        let pushed = self.push(batch);
        // It may wait for the pages of a large row. The repeated call must not take the version for
        // one that is locked.
        self.is_loaded = false;
        std::mem::swap(&mut self.version, &mut way.version);
        self.locks.way_back = Some(way);
        pushed
    }

    /// Locks the row of such a version, and appends its newest one. Returns false if it is gone.
    pub(super) fn lock_committed(
        &mut self,
        txn: &mut EngineTransaction,
        batch: &mut RowBatch,
    ) -> Outcome<bool> {
        assert!(
            batch.hold() == Hold::Committed && batch.len() == 1,
            "the row is confirmed once"
        );
        let locked = self.try_lock_committed(txn, batch);
        if !matches!(locked, Err(Interrupt::Suspend(_))) {
            self.locks.confirming = None;
        }
        locked
    }

    fn try_lock_committed(
        &mut self,
        txn: &mut EngineTransaction,
        batch: &mut RowBatch,
    ) -> Outcome<bool> {
        let kind = LockKind {
            mode: lock_mode(self.options.lock),
            extent: txn.record_extent(),
        };
        let wanted = WantedLock::all(kind, LockWait::Wait);
        self.row_key.clear();
        self.row_key.extend_from_slice(batch.key(0).0);
        let (table, version) = (&self.table, &mut self.version);
        let kept_before = match self.locks.confirming {
            Some(count) => count,
            None => {
                // A wait from before is for another row, whose lock must not count as this one's.
                txn.leave_wait()?;
                txn.kept_lock_count()
            }
        };
        self.locks.confirming = Some(kept_before);
        let is_there = lock_and_read(txn, table, &self.row_key, wanted, version)?;
        self.locks.kept_before = kept_before;
        if !is_there {
            // Purge may have removed the row, and left its lock to be fetched.
            txn.leave_wait()?;
            self.note_locks(txn, Sight::Unseen, batch.len());
            return Ok(false);
        }
        self.is_loaded = true;
        let pushed = self.push(batch);
        self.is_loaded = false;
        pushed?;
        self.note_locks(txn, Sight::Seen, batch.len());
        Ok(true)
    }

    /// Reads the interval of a claimed row again, with locks, and appends the row. Returns false if
    /// there is none.
    pub(super) fn lock_claimed(
        &mut self,
        txn: &mut EngineTransaction,
        batch: &mut RowBatch,
    ) -> Outcome<bool> {
        if self.claiming == Claiming::Wanted {
            assert_eq!(batch.hold(), Hold::Claimed, "other rows are locked");
            txn.claim = None;
            self.claiming = Claiming::Over;
            let interval = std::mem::take(&mut self.interval);
            self.enter(interval);
        }
        self.fetch_rows(txn, 2, batch)?;
        Ok(batch.len() == 2)
    }

    /// Notes the place behind the run, which is used up.
    pub(super) fn pass_run(&mut self) {
        if self.locks.is_on {
            self.note_finished();
            let is_leaf_end = matches!(self.place.from, From::AtLeast | From::Nothing);
            if is_leaf_end && self.options.direction == Direction::Forward {
                self.locks.passed.extend(self.run.leaf());
            }
        }
        self.run.clear();
        self.position = 0;
    }

    /// Keeps the key of the last finished entry, before the run that it is in is dropped.
    fn note_finished(&mut self) {
        if let Some(last) = self.position.checked_sub(1) {
            let behind = self.locks.behind.get_or_insert_default();
            behind.clear();
            behind.extend_from_slice(self.run.entry(last).0);
            self.locks.passed.clear();
        }
    }

    /// Whether no leaf has changed since the gap before the present entry was read. If one has, the
    /// scan goes back to the last finished entry (S1).
    fn look_again(&mut self) -> Seen {
        let (tree, pages) = (self.tree(), &self.worker.pages);
        let is_run_current = self.run.is_empty() || tree.is_current(pages, &self.run);
        let is_current = is_run_current && tree.are_current(pages, &self.locks.passed);
        if is_current || is_planted(Mistake::LooksOnce) {
            return Seen::Current;
        }
        self.return_to_finished();
        Seen::Changed
    }

    /// Drops the run. The next one begins behind the last finished entry (S2).
    pub(super) fn return_to_finished(&mut self) {
        assert!(self.locks.is_on, "a consistent read never looks back");
        assert!(!self.is_loaded, "a row that is locked is used first");
        self.note_finished();
        self.place.key.clear();
        self.place.from = match (self.options.direction, self.locks.behind.as_deref()) {
            (Direction::Forward, Some(key)) => {
                self.place.key.extend_from_slice(key);
                From::Above
            }
            (Direction::Backward, Some(key)) => {
                self.place.key.extend_from_slice(key);
                From::Below
            }
            (direction, None) => start(direction, &self.interval, &mut self.place.key),
        };
        self.locks.passed.clear();
        self.drop_run();
    }

    /// The lock of the present entry in the index that is scanned.
    pub(super) fn entry_lock(&self, txn: &EngineTransaction, lock: RowLock) -> WantedLock {
        let kind = |extent| LockKind {
            mode: lock_mode(lock),
            extent,
        };
        let wait = self.locks.wait;
        if !txn.locks_gaps() {
            return WantedLock::without_gaps(kind(LockExtent::BareRecord), wait);
        }
        let (key, _) = self.run.entry(self.position);
        assert!(
            self.is_inside(key),
            "what is behind the end is locked otherwise"
        );
        let is_first = self.position == 0 && self.locks.behind.is_none();
        let begins_range = self.secondary.is_none()
            && self.options.direction == Direction::Forward
            && is_first
            && self.interval.starts_at_lower
            && key == self.interval.lower;
        let record = kind(LockExtent::Record);
        if begins_range && self.interval.equality != Equality::Whole {
            return WantedLock::all(record, wait);
        }
        let next_key = kind(LockExtent::NextKey);
        let live = if self.names_one_live_entry() {
            record
        } else {
            next_key
        };
        let deleted = if self.names_one_entry() {
            record
        } else {
            next_key
        };
        WantedLock {
            live,
            deleted: Some(deleted),
            wait,
            term: Term::Transaction,
        }
    }

    /// Whether the interval can have one entry at the most, deleted or not. The lock of a deleted
    /// one keeps its key free: an insert of that key puts the row there again.
    pub(super) fn names_one_entry(&self) -> bool {
        self.secondary.is_none() && self.names_one_live_entry()
    }

    /// Whether the interval can have one live entry at the most.
    pub(super) fn names_one_live_entry(&self) -> bool {
        let is_unique = self.index().is_none_or(|index| index.is_unique);
        is_unique && self.interval.equality == Equality::Whole
    }

    /// After the lock of the present entry was entered: whether its gap is as it was read. A scan
    /// that locks no gaps asks for the newest version alone.
    pub(super) fn after_lock(&mut self, txn: &EngineTransaction) -> Seen {
        if txn.locks_gaps() {
            self.look_again()
        } else {
            Seen::Current
        }
    }

    /// Locks the present entry. Returns whether it is deleted, or `None` if it is gone or to be
    /// left out.
    pub(super) fn lock_entry(
        &mut self,
        txn: &mut EngineTransaction,
        wanted: WantedLock,
    ) -> Outcome<Option<bool>> {
        let stored = match self.secondary {
            None => Stored::Row,
            Some(_) => Stored::Entry,
        };
        let (key, _) = self.run.entry(self.position);
        txn.lock_entry((self.tree(), stored), key, wanted)
    }

    /// Locks the gap where a backward scan begins.
    pub(super) fn lock_head(&mut self, txn: &mut EngineTransaction, lock: RowLock) -> Outcome<()> {
        let is_backward = self.options.direction == Direction::Backward;
        if self.locks.has_head || !is_backward || self.interval.is_empty || !txn.locks_gaps() {
            return Ok(());
        }
        txn.ensure_id()?;
        let (tree, worker) = (self.tree(), Rc::clone(&self.worker));
        loop {
            let found = match &self.interval.upper {
                Some(upper) => tree.first_from(&worker.pages, upper)?,
                None => Default::default(),
            };
            let gap = LockName::of(tree.index, found.key.as_deref());
            txn.acquire(&gap, gap_lock(lock), self.locks.wait)?;
            if tree.are_current(&worker.pages, &found.leaves) {
                self.locks.has_head = true;
                return Ok(());
            }
        }
    }

    /// Locks what follows the interval, whose end the present entry is behind.
    pub(super) fn lock_end(&mut self, txn: &mut EngineTransaction, lock: RowLock) -> Outcome<Seen> {
        if self.locks.has_tail {
            return Ok(Seen::Current);
        }
        assert!(
            !self.is_inside(self.run.entry(self.position).0),
            "the range has ended"
        );
        self.begin_entry(txn)?;
        let is_range = self.interval.equality == Equality::None;
        let is_forward = self.options.direction == Direction::Forward;
        let is_tested = self.reads_committed(txn);
        txn.ensure_id()?;
        let (key, _) = self.run.entry(self.position);
        let extent = match (is_range, txn.locks_gaps()) {
            (true, true) => LockExtent::NextKey,
            (true, false) if is_tested && is_forward => return Ok(Seen::Current),
            (true, false) => LockExtent::BareRecord,
            (false, true) if is_forward => LockExtent::Gap,
            (false, _) => return Ok(Seen::Current),
        };
        let kind = LockKind {
            mode: lock_mode(lock),
            extent,
        };
        let mut is_passed = false;
        if is_range {
            let wanted = WantedLock {
                term: match (extent, self.secondary) {
                    (LockExtent::BareRecord, None) if is_forward => Term::Operation,
                    _ => Term::Transaction,
                },
                wait: match is_tested {
                    true => LockWait::SkipLocked,
                    false => self.locks.wait,
                },
                ..txn.wanted_lock(kind, self.locks.wait)
            };
            let locked = self.lock_entry(txn, wanted)?;
            if locked.is_none() {
                Self::leave_gone(txn)?;
            }
            // SKIP LOCKED passes a locked entry before it sees that the range has ended.
            is_passed = match locked {
                Some(is_deleted) => is_deleted,
                None => self.options.wait == LockWait::SkipLocked,
            };
            let needs_row = match lock {
                RowLock::Change | RowLock::Claim => true,
                RowLock::Exclusive => self.covering.is_some() || !is_forward,
                RowLock::Shared | RowLock::Source => self.covering.is_none() && !is_forward,
                RowLock::None => false,
            };
            if locked == Some(false) && self.secondary.is_some() && needs_row {
                self.lock_row_behind(txn, kind)?;
            }
            txn.release_brief();
        } else {
            let gap = LockName::key(self.tree().index, key);
            txn.acquire(&gap, kind, self.locks.wait)?;
        }
        let seen = self.after_lock(txn);
        if seen == Seen::Current && is_passed {
            self.locks.passed.clear();
            return Ok(Seen::Passed);
        }
        Ok(seen)
    }

    /// Locks the row of the entry that a range of a secondary index ends before.
    fn lock_row_behind(&mut self, txn: &mut EngineTransaction, kind: LockKind) -> Outcome<()> {
        let own_length = usize::from(self.entry_header()?.own_length);
        let (key, _) = self.run.entry(self.position);
        let row_key = key.get(own_length..).unwrap_or_default();
        let extent = txn.record_extent();
        let wanted = WantedLock::all(LockKind { extent, ..kind }, self.locks.wait);
        let rows = (self.table.clustered, Stored::Row);
        txn.lock_entry(rows, row_key, wanted).map(|_| ())
    }

    /// Locks the gap behind the last entry of the index, which the scan has reached.
    pub(super) fn lock_supremum(
        &mut self,
        txn: &mut EngineTransaction,
        lock: RowLock,
    ) -> Outcome<Seen> {
        let is_forward = self.options.direction == Direction::Forward;
        if self.locks.has_tail || !is_forward || !txn.locks_gaps() {
            return Ok(Seen::Current);
        }
        assert!(self.run.is_empty(), "the last entry is finished");
        txn.ensure_id()?;
        let gap = LockName::supremum(self.tree().index);
        txn.acquire(&gap, gap_lock(lock), self.locks.wait)?;
        let seen = self.look_again();
        self.locks.has_tail = seen == Seen::Current;
        Ok(seen)
    }
}

/// Where the reading of an interval starts. Its key goes into `key`, which is empty.
pub(super) fn start(direction: Direction, interval: &Interval, key: &mut Vec<u8>) -> From {
    match (direction, &interval.upper) {
        _ if interval.is_empty => From::Nothing,
        (Direction::Forward, _) => {
            key.extend_from_slice(&interval.lower);
            From::AtLeast
        }
        (Direction::Backward, None) => From::Last,
        (Direction::Backward, Some(upper)) => {
            key.extend_from_slice(upper);
            From::Below
        }
    }
}

fn gap_lock(lock: RowLock) -> LockKind {
    LockKind {
        mode: lock_mode(lock),
        extent: LockExtent::Gap,
    }
}
