//! Scans.
//!
//! A scan reads runs of entries from leaves and goes through them row by row. Its place is the next
//! run and the position in the present one; a suspension leaves both unchanged. It gives way when
//! it has passed many entries that it does not see.
//!
//! A consistent read takes each row back to the version that its transaction sees. If the entries
//! of a secondary index are enough ([`Covering`]), it reads only these.
//!
//! A locking read locks each row and reads the newest version under the same latch. It goes from
//! entry to entry of the index in its present state. If the leaf has changed since the run was
//! copied, it finds its place again by key and reads another run. Its place is the entry that it
//! works on, or, between two entries, the gap after the last one. So after a wait for a lock it
//! sees all that was committed meanwhile, from the awaited entry on. The module [`locking`] has the
//! locks of gaps; a scan that locks them goes back to the last finished entry. The module [`ahead`]
//! reads the leaves that come next while the scan waits for one.

mod ahead;
mod locking;

use std::rc::Rc;
use std::sync::Arc;

use btree::{From, Place, Run, Tree, damaged};
use format::PageId;
use format::row_header::EntryHeader;
use lock::LockKind;
use stdx::planted::{Mistake, is_planted};
use store::{
    Cursor, Direction, FETCH_BYTES_MAX, Fetched, Hold, Interrupt, KeyRange, LockWait, Outcome,
    RowBatch, RowLock, ScanOptions, StoreError, Transaction, Transactions,
};

use crate::lob_memo::LobMemo;
use crate::row::conflict::{Stored, WantedLock, lock_mode};
use crate::row::covering::Covering;
use crate::row::cursor::ahead::Ahead;
use crate::row::cursor::locking::{ScanLocks, Seen, start};
use crate::row::entries;
use crate::row::read::{Looks, Version};
use crate::schema::table_shape::{IndexShape, Interval, TableShape};
use crate::transaction::EngineTransaction;
use crate::worker::Worker;

/// Entries copied out of a leaf at a time.
const RUN_LIMIT: usize = 64;

/// A scan of a table by one of its indexes.
#[derive(Debug)]
pub(crate) struct EngineCursor {
    worker: Rc<Worker>,
    transactions: Rc<Transactions<EngineTransaction>>,
    table: Arc<TableShape>,
    options: ScanOptions,
    /// Position in `table.secondary`; `None`: the clustered index.
    secondary: Option<usize>,
    /// Set if the columns to be read can be taken from the entries of `secondary`.
    covering: Option<Covering>,
    interval: Interval,
    /// The intervals to read after it, the next one last.
    following: Vec<Interval>,
    /// Where the next run begins.
    place: Place,
    run: Run,
    /// The next entry of the run.
    position: usize,
    /// The present row, on its way back to the version that is seen.
    version: Version,
    /// Rows of the batch before the fetch that is under way, which may have waited.
    fetch_began: Option<usize>,
    /// A locking read works on the present entry: it may have waited for the row's lock.
    is_begun: bool,
    /// `version` and `row_key` belong to the present entry: a repeated call continues there.
    is_loaded: bool,
    /// The present entry is locked and enough: there is no version of its row.
    is_covered: bool,
    /// Whether its only row may be claimed.
    claiming: Claiming,
    /// The present row is claimed, and not locked.
    is_claimed: bool,
    /// The key of the present row.
    row_key: Vec<u8>,
    memo: LobMemo,
    /// The gaps and ends that a locking read has locked.
    locks: ScanLocks,
    /// Counts what was read without returning a row.
    looks: Looks,
    /// How many leaves the scan has read in a row.
    ahead: Ahead,
}

impl EngineCursor {
    pub(crate) fn new(
        worker: Rc<Worker>,
        transactions: Rc<Transactions<EngineTransaction>>,
        table: Arc<TableShape>,
        mut options: ScanOptions,
    ) -> Self {
        let has_key = table.row_key().is_some();
        let index_count = table.entry.definition.indexes.len();
        assert!(
            options.index.is_none_or(|index| index < index_count),
            "the table has the index that is scanned"
        );
        let secondary = match options.index {
            Some(0) if has_key => None,
            Some(index) => Some(index - usize::from(has_key)),
            None => None,
        };
        let claiming = match (options.lock, secondary) {
            (RowLock::Claim, None) => Claiming::Wanted,
            _ => Claiming::Never,
        };
        if options.lock == RowLock::Claim {
            options.lock = RowLock::Change;
        }
        let range = options.range.clone();
        let covering = match (secondary, options.lock) {
            (None, _) | (_, RowLock::Change) => None,
            (Some(at), _) => Covering::of(&table, &table.secondary[at], options.columns.as_deref()),
        };
        let mut cursor = Self {
            worker,
            transactions,
            table,
            options,
            secondary,
            covering,
            interval: Interval::default(),
            following: Vec::new(),
            place: Place::default(),
            run: Run::new(),
            position: 0,
            fetch_began: None,
            is_begun: false,
            version: Version::default(),
            is_loaded: false,
            is_covered: false,
            claiming,
            is_claimed: false,
            row_key: Vec::new(),
            memo: LobMemo::default(),
            locks: ScanLocks::default(),
            looks: Looks::default(),
            ahead: Ahead::default(),
        };
        cursor.seek(std::slice::from_ref(&range));
        cursor
    }

    fn index(&self) -> Option<&IndexShape> {
        self.secondary.map(|at| &self.table.secondary[at])
    }

    /// The tree that is scanned.
    fn tree(&self) -> Tree {
        let clustered = self.table.clustered;
        self.index().map_or(clustered, |index| index.tree)
    }

    /// Reads the next run. Returns false at the end of the range.
    fn next_run(&mut self) -> Outcome<bool> {
        assert_eq!(
            self.position,
            self.run.len(),
            "a run is used up before the next is read"
        );
        assert!(!self.is_loaded, "a row that was read is returned first");
        self.pass_run();
        if self.place.from == From::Nothing {
            return Ok(false);
        }
        let limit = if self.names_one_live_entry() {
            1
        } else {
            RUN_LIMIT
        };
        let tree = self.tree();
        let read = tree.read_run(&self.worker.pages, &self.place, limit, &mut self.run);
        read.map_err(|interrupt| self.read_ahead(interrupt))?;
        self.ahead.note(&self.run);
        assert!(
            self.run.len() <= limit,
            "a run has no more than was asked for"
        );
        std::mem::swap(&mut self.place, &mut self.run.next);
        Ok(true)
    }

    /// Goes to the beginning of an interval.
    fn enter(&mut self, interval: Interval) {
        self.interval = interval;
        self.run.clear();
        self.ahead = Ahead::default();
        self.position = 0;
        self.is_begun = false;
        self.is_loaded = false;
        self.is_claimed = false;
        self.place.key.clear();
        self.place.from = start(self.options.direction, &self.interval, &mut self.place.key);
        self.locks.start(&self.interval);
    }

    /// Goes on to the next interval, and ends the present one in the batch. Returns false if there
    /// is none.
    fn next_interval(&mut self, batch: &mut RowBatch) -> bool {
        let Some(next) = self.following.pop() else {
            return false;
        };
        batch.end_range();
        self.enter(next);
        true
    }

    /// The lock that rows are read with.
    fn lock(&self, txn: &EngineTransaction) -> RowLock {
        txn.row_lock(self.options.lock)
    }

    /// Whether a locking read holds entries that may be out of date. The first entry of a run is
    /// used as soon as the run is read.
    fn is_outdated(&self) -> bool {
        let is_used = 0 < self.position || self.is_begun;
        let is_current = || self.tree().is_current(&self.worker.pages, &self.run);
        is_used && !is_current() && !is_planted(Mistake::LooksOnce)
    }

    /// Drops the run. The next one begins at the scan's place: at the entry that it works on, or
    /// after the last finished one.
    fn leave_run(&mut self, txn: &EngineTransaction) {
        assert!(
            !self.is_loaded,
            "a row that is locked and read is used first"
        );
        if txn.locks_gaps() {
            self.return_to_finished();
            return;
        }
        assert!(
            self.is_begun || 0 < self.position,
            "a scan that leaves a run has a place in it"
        );
        let (at, from) = match (self.is_begun, self.options.direction) {
            (true, Direction::Forward) => (self.position, From::AtLeast),
            (true, Direction::Backward) => (self.position, From::AtMost),
            (false, Direction::Forward) => (self.position - 1, From::Above),
            (false, Direction::Backward) => (self.position - 1, From::Below),
        };
        self.place.from = from;
        self.place.key.clear();
        self.place.key.extend_from_slice(self.run.entry(at).0);
        self.drop_run();
    }

    /// Drops the run, whose place is noted, and keeps the key of the entry that was begun in it.
    fn drop_run(&mut self) {
        let key = || self.run.entry(self.position).0.to_vec();
        self.locks.begun = self.is_begun.then(key);
        self.run.clear();
        self.position = 0;
        self.is_begun = false;
    }

    /// Whether a key is still in the range, in the direction of the scan.
    fn is_inside(&self, key: &[u8]) -> bool {
        match self.options.direction {
            Direction::Forward => self.interval.upper.as_ref().is_none_or(|upper| key < upper),
            Direction::Backward => self.interval.lower.as_slice() <= key,
        }
    }

    /// Reads the row at the present entry into `version`.
    fn read_row(&mut self, txn: &mut EngineTransaction, lock: RowLock) -> Outcome<Sight> {
        if !self.is_loaded {
            match self.load_row(txn, lock)? {
                Sight::Seen => self.is_loaded = true,
                other => return Ok(other),
            }
        }
        if lock == RowLock::None && !self.version.go_back(txn, &mut self.looks)? {
            return Ok(Sight::Unseen);
        }
        if self.is_covered {
            return Ok(Sight::Seen);
        }
        Ok(Sight::of(self.has_entry()?))
    }

    /// Appends the row at the present entry, if the entry is enough. Returns false if the row must
    /// be read.
    fn push_covered(&mut self, txn: &mut EngineTransaction, batch: &mut RowBatch) -> Outcome<bool> {
        if self.covering.is_none() || self.locks.is_on {
            return Ok(false);
        }
        let header = self.entry_header()?;
        let is_own = txn.id == Some(header.txn);
        if header.is_deleted || is_own || !txn.sees(header.txn)? {
            return Ok(false);
        }
        self.push_entry(header, batch)?;
        Ok(true)
    }

    /// The header of the present entry of a secondary index.
    fn entry_header(&self) -> Outcome<EntryHeader> {
        let (_, payload) = self.run.entry(self.position);
        let tree = self.tree();
        entries::decode(payload, PageId::new(tree.space, tree.root))
    }

    /// Appends what the present entry has of its row.
    fn push_entry(&mut self, header: EntryHeader, batch: &mut RowBatch) -> Outcome<()> {
        let at = self.secondary.expect("an entry covers its row");
        let covering = self.covering.as_mut().expect("an entry covers its row");
        let (key, _) = self.run.entry(self.position);
        let index = &self.table.secondary[at];
        let root = PageId::new(index.tree.space, index.tree.root);
        let no_key = || damaged(root, "an entry is shorter than its key");
        let own_length = usize::from(header.own_length);
        let (own, row_key) = key.split_at_checked(own_length).ok_or_else(no_key)?;
        let mut is_whole = true;
        batch.push(row_key, |out| {
            let row = covering.append_row(&self.table, index, (own, row_key), out);
            is_whole = row.is_some();
        });
        if is_whole { Ok(()) } else { Err(no_key()) }
    }

    /// Finds the newest version of the row at the present entry.
    fn load_row(&mut self, txn: &mut EngineTransaction, lock: RowLock) -> Outcome<Sight> {
        let (key, payload) = self.run.entry(self.position);
        self.row_key.clear();
        if self.secondary.is_none() {
            self.row_key.extend_from_slice(key);
            self.version.bytes.clear();
            self.version.bytes.extend_from_slice(payload);
        } else {
            let header = self.entry_header()?;
            let own = usize::from(header.own_length);
            self.row_key
                .extend_from_slice(key.get(own..).unwrap_or_default());
            if lock == RowLock::None && !self.is_entry_worth(txn, header)? {
                return Ok(Sight::Unseen);
            }
        }
        if self.claiming == Claiming::Wanted && self.names_one_live_entry() {
            let tree = self.table.clustered;
            self.is_claimed = txn.claim(tree.index, &self.row_key, &self.version.bytes);
            if self.is_claimed {
                return Ok(Sight::Seen);
            }
        }
        if lock != RowLock::None {
            return self.lock_present(txn, lock);
        }
        if self.secondary.is_none() {
            return Ok(Sight::Seen);
        }
        let (rows, pages) = (self.table.clustered, &self.worker.pages);
        rows.get(pages, &self.row_key, &mut self.version.bytes)
            .map(Sight::of)
    }

    /// Locks the present entry and its row, and reads the newest version.
    fn lock_present(&mut self, txn: &mut EngineTransaction, lock: RowLock) -> Outcome<Sight> {
        let mut wanted = self.entry_lock(txn, lock);
        if self.secondary.is_some() {
            let is_deleted = self.lock_entry(txn, wanted)?;
            if self.after_lock(txn) == Seen::Changed {
                return Ok(Sight::Changed);
            }
            if is_deleted.is_none() {
                Self::leave_gone(txn)?;
            }
            if is_deleted != Some(false) {
                return Ok(Sight::Unseen);
            }
            if lock == RowLock::Shared && self.covering.is_some() {
                self.is_covered = true;
                return Ok(Sight::Seen);
            }
            let extent = txn.record_extent();
            let kind = LockKind {
                extent,
                ..wanted.live
            };
            wanted = WantedLock::all(kind, wanted.wait);
        }
        let (row_key, version) = (&self.row_key, &mut self.version);
        let is_there = lock_and_read(txn, &self.table, row_key, wanted, version);
        let is_busy = matches!(
            is_there,
            Err(Interrupt::Error(StoreError::LockNotAvailable))
        );
        if is_busy && self.secondary.is_some() && !txn.locks_gaps() {
            // When the scan returns to the entry, its lock would count as one from before, and be
            // kept although the row does not match.
            self.note_locks(txn, Sight::Unseen, 0);
        }
        let is_there = is_there?;
        if !is_there {
            Self::leave_gone(txn)?;
        }
        if self.secondary.is_none() && self.after_lock(txn) == Seen::Changed {
            return Ok(Sight::Changed);
        }
        Ok(Sight::of(is_there))
    }

    /// Returns false for an entry that leads to no version that the transaction sees. An entry that
    /// it deleted itself may have been another's to delete. It put the entry back and returned to a
    /// savepoint, and its snapshot is older than the other's commit. Then the row decides.
    fn is_entry_worth(&self, txn: &mut EngineTransaction, header: EntryHeader) -> Outcome<bool> {
        let is_own = txn.id == Some(header.txn);
        Ok(!header.is_deleted || is_own || !txn.sees(header.txn)?)
    }

    /// Whether the present version has the entry that led to it.
    fn has_entry(&mut self) -> Outcome<bool> {
        let Some(at) = self.secondary else {
            return Ok(true);
        };
        let index = &self.table.secondary[at];
        let (key, _) = self.run.entry(self.position);
        let header = self.version.header()?;
        let body = if header.is_spilled {
            let space = self.table.space();
            self.memo
                .row(&self.worker.pages, space, self.version.body())?
        } else {
            self.version.body()
        };
        let entry = self
            .table
            .entry_of(index, body, &self.row_key)
            .map_err(Interrupt::Error)?;
        Ok(entry.bytes == key)
    }

    /// Appends the present row to the batch.
    fn push(&mut self, batch: &mut RowBatch) -> Outcome<()> {
        assert!(self.is_loaded, "a row is read before it is returned");
        if self.is_covered {
            return self.push_entry(self.entry_header()?, batch);
        }
        let header = self.version.header()?;
        let is_unread = matches!(self.options.columns.as_deref(), Some([]));
        let body = if !header.is_spilled {
            self.version.body()
        } else if is_unread {
            // A caller that only counts rows need not read them from their pages.
            &[]
        } else {
            let space = self.table.space();
            self.memo
                .row(&self.worker.pages, space, self.version.body())?
        };
        batch.push(&self.row_key, |out| out.extend_from_slice(body));
        if self.is_claimed {
            batch.set_hold(Hold::Claimed);
        }
        Ok(())
    }

    fn fetch_rows(
        &mut self,
        txn: &mut EngineTransaction,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Outcome<Fetched> {
        // A repeated call goes on with the rows that it has found before its wait.
        let count_before = *self.fetch_began.get_or_insert(batch.len());
        let fetched = self.fetch_behind(txn, (limit, count_before), batch);
        if !matches!(fetched, Err(Interrupt::Suspend(_))) {
            self.fetch_began = None;
            self.locks.way_back = None;
        }
        fetched
    }

    /// As `fetch_rows`, for a fetch that began behind some rows of the batch.
    fn fetch_behind(
        &mut self,
        txn: &mut EngineTransaction,
        (limit, count_before): (usize, usize),
        batch: &mut RowBatch,
    ) -> Outcome<Fetched> {
        let lock = self.lock(txn);
        if lock != RowLock::None {
            txn.touch(self.table.id(), lock_mode(lock));
        }
        self.begin_locks(txn, lock, batch);
        // A caller that reads without locks asks for more rows than it may use. Where the isolation
        // level locks them, the others stay free.
        let is_raised = lock != self.options.lock && self.options.lock == RowLock::None;
        let limit = if is_raised { count_before + 1 } else { limit };
        while batch.len() < limit && batch.row_bytes() < FETCH_BYTES_MAX {
            let found = batch.len().saturating_sub(count_before);
            self.locks.wait = self.wait_mode(txn, found);
            match self.step(txn, lock, batch) {
                Ok(Step::Next) => {}
                Ok(Step::End) => return Ok(Fetched::End),
                // The caller may let the rows go that it gets before the wait or the error.
                Err(Interrupt::Error(StoreError::LockNotAvailable)) if 0 < found => {
                    self.is_begun = false;
                    return Ok(Fetched::More);
                }
                Err(Interrupt::Error(StoreError::LockNotAvailable)) if self.can_wait() => {
                    if self.push_committed(txn, batch)? {
                        return Ok(Fetched::More);
                    }
                }
                Err(interrupt) => return Err(interrupt),
            }
        }
        Ok(Fetched::More)
    }

    /// Goes on by one entry, or to the next run, or to the next interval.
    fn step(
        &mut self,
        txn: &mut EngineTransaction,
        lock: RowLock,
        batch: &mut RowBatch,
    ) -> Outcome<Step> {
        let is_locking = lock != RowLock::None;
        if is_locking {
            self.lock_head(txn, lock)?;
            if !self.is_loaded && self.is_outdated() {
                self.leave_run(txn);
            }
        }
        if self.position == self.run.len() {
            if self.next_run()? {
                if self.run.is_empty() {
                    self.looks.count()?;
                }
                return Ok(Step::Next);
            }
            self.leave_begun(txn)?;
            if is_locking && self.lock_supremum(txn, lock)? == Seen::Changed {
                return Ok(Step::Next);
            }
            if !self.next_interval(batch) {
                return Ok(Step::End);
            }
            self.looks.count()?;
            return Ok(Step::Next);
        }
        if !self.is_inside(self.run.entry(self.position).0) {
            let seen = if is_locking {
                self.lock_end(txn, lock)?
            } else {
                Seen::Current
            };
            match seen {
                Seen::Changed => return Ok(Step::Next),
                Seen::Passed => {
                    self.position += 1;
                    self.is_begun = false;
                    self.looks.count()?;
                    return Ok(Step::Next);
                }
                Seen::Current => {}
            }
            self.locks.has_tail = true;
            self.is_begun = false;
            self.place.from = From::Nothing;
            self.run.clear();
            self.position = 0;
            return Ok(Step::Next);
        }
        if !self.is_loaded && self.push_covered(txn, batch)? {
            self.position += 1;
            return Ok(Step::Next);
        }
        self.begin_entry(txn)?;
        let sight = self.read_row(txn, lock)?;
        if sight == Sight::Seen {
            self.push(batch)?;
        }
        self.finish_entry(txn, sight, batch.len());
        if sight != Sight::Seen {
            self.looks.count()?;
        }
        Ok(Step::Next)
    }

    /// Goes on to the next entry, unless the present one has to be read again.
    fn finish_entry(&mut self, txn: &mut EngineTransaction, sight: Sight, row_count: usize) {
        let is_locking = self.locks.is_on;
        assert!(
            sight != Sight::Changed || is_locking,
            "a consistent read reads an entry once"
        );
        if sight == Sight::Changed {
            return;
        }
        self.position += 1;
        self.is_begun = false;
        self.is_loaded = false;
        self.is_covered = false;
        self.is_claimed = false;
        self.memo = LobMemo::default();
        if is_locking {
            self.note_locks(txn, sight, row_count);
        }
        // What is left out was not locked.
        let is_found = match sight {
            Sight::Seen => self.names_one_live_entry(),
            Sight::Unseen => self.names_one_entry() && self.options.wait != LockWait::SkipLocked,
            Sight::Changed => false,
        };
        if is_locking && is_found {
            self.locks.has_tail = true;
            self.place.from = From::Nothing;
        }
    }
}

/// Whether a scan claims its row, if it is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Claiming {
    /// It locks all rows.
    Never,
    /// It does.
    Wanted,
    /// It locks all rows: a claim was not enough, or there are several.
    Over,
}

/// How a scan came on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// It goes on.
    Next,
    /// All intervals are read.
    End,
}

/// What a scan finds at an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sight {
    /// A row.
    Seen,
    /// No row, or none that the transaction sees.
    Unseen,
    /// The entry may have changed: read it again.
    Changed,
}

impl Sight {
    fn of(is_seen: bool) -> Self {
        if is_seen { Self::Seen } else { Self::Unseen }
    }
}

/// Locks a row and reads its newest version under the same latch. Returns false if there is none,
/// or it is to be skipped.
pub(crate) fn lock_and_read(
    txn: &mut EngineTransaction,
    table: &TableShape,
    row_key: &[u8],
    wanted: WantedLock,
    version: &mut Version,
) -> Outcome<bool> {
    let rows = (table.clustered, Stored::Row);
    let is_deleted = txn.lock_and_see(rows, row_key, wanted, |payload| {
        version.bytes.clear();
        version.bytes.extend_from_slice(payload);
    })?;
    Ok(is_deleted == Some(false))
}

impl Cursor for EngineCursor {
    fn held_bytes(&self) -> usize {
        self.memo.held_bytes()
    }

    fn seek(&mut self, ranges: &[KeyRange]) {
        let key = match self.secondary {
            Some(at) => Some(&self.table.secondary[at].key),
            None => self.table.row_key(),
        };
        let interval = |range| key.map(|key| key.interval(range)).unwrap_or_default();
        self.claiming = match (self.claiming, ranges) {
            (Claiming::Never, _) => Claiming::Never,
            (_, [_]) => Claiming::Wanted,
            (_, _) => Claiming::Over,
        };
        self.fetch_began = None;
        self.following.clear();
        let first = match ranges {
            [] => Interval::nothing(),
            [first, rest @ ..] => {
                self.following.extend(rest.iter().rev().map(interval));
                interval(first)
            }
        };
        self.enter(first);
    }

    fn release(&mut self, txn: &mut dyn Transaction, row: usize) {
        let transactions = Rc::clone(&self.transactions);
        transactions.with(txn, |txn| self.release_row(txn, row));
    }

    fn confirm(&mut self, txn: &mut dyn Transaction, batch: &mut RowBatch) -> Outcome<bool> {
        let transactions = Rc::clone(&self.transactions);
        transactions.with(txn, |txn| {
            txn.run(|txn| match self.claiming {
                Claiming::Never => self.lock_committed(txn, batch),
                Claiming::Wanted | Claiming::Over => self.lock_claimed(txn, batch),
            })
        })
    }

    fn fetch(
        &mut self,
        txn: &mut dyn Transaction,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Outcome<Fetched> {
        let has_room = batch.len() < limit && batch.row_bytes() < FETCH_BYTES_MAX;
        assert!(has_room, "a batch is cleared before it is filled again");
        let transactions = Rc::clone(&self.transactions);
        transactions.with(txn, |txn| self.fetch_for(txn, limit, batch))
    }
}

impl EngineCursor {
    fn fetch_for(
        &mut self,
        txn: &mut EngineTransaction,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Outcome<Fetched> {
        txn.claim = None;
        if self.lock(txn) == RowLock::None {
            // A scan that finds nothing has read nevertheless.
            txn.open_view();
            let rows = self.table.clustered;
            let trees = [rows, self.index().map_or(rows, |index| index.tree)];
            let live = &self.table.live;
            if txn.view().is_some_and(|view| !live.serves(trees, view)) {
                return Err(StoreError::SnapshotTooOld.into());
            }
        }
        let outcome = txn.run(|txn| self.fetch_rows(txn, limit, batch));
        if matches!(&outcome, Err(Interrupt::Error(error)) if error.ends_transaction()) {
            self.place.from = From::Nothing;
            self.following.clear();
        }
        outcome
    }
}
