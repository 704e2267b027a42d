//! A table as SQL sees it: values in, rows out.
//!
//! An operation of several steps keeps its place in the transaction's `Pending`. It may be called
//! again after each suspension, and continues with the unfinished step.

use std::rc::Rc;
use std::sync::Arc;

use format::row::{RowError, RowLayout};
use format::row_header::{LobReference, ROW_HEADER_BYTES, RowHeader};
use format::undo::PurgeItem;
use lock::{LockKind, LockMode};
use store::{
    AutoIncrement, Cursor, FETCH_BYTES_MAX, Inserted, Interrupt, KeyRange, LockWait, Mutation,
    Outcome, RowBatch, RowKey, RowLock, ScanOptions, StoreError, Suspend, Table, TableDefinition,
    TableStatistics, Transaction, Transactions,
};
use sync::MutexGuard;
use value::ValueRef;

use crate::lob_memo::LobMemo;
use crate::row::auto_increment::first_number;
use crate::row::claim::Claimed;
use crate::row::conflict::{WantedLock, lock_mode};
use crate::row::cursor::{EngineCursor, lock_and_read};
use crate::row::purge_list::PurgeList;
use crate::row::read::Version;
use crate::row::write::{NewBody, RowPlace, Written};
use crate::schema::table_shape::{AutoCounter, EntryKey, IndexShape, ROW_ID_BYTES, TableShape};
use crate::transaction::EngineTransaction;
use crate::transaction::pending::Duplicate;
use crate::worker::Worker;

/// Numbers of the AUTO_INCREMENT counter that one write of the header covers; a crash skips at most
/// this many.
const AUTO_PER_WRITE: u64 = 1024;

/// Keys that a call looks up before others have their turn: some 100 us of work, as much as other
/// operations do between two looks at the clock.
const LOOKUPS_PER_TURN: usize = 64;

/// The largest hidden row id.
const ROW_ID_MAX: u64 = (1 << 48) - 1;

const _: () = assert!(
    ROW_ID_MAX == (1 << (8 * ROW_ID_BYTES)) - 1,
    "a key has all bytes of a row id"
);

/// One worker's handle on a table.
#[derive(Debug)]
pub(crate) struct EngineTable {
    worker: Rc<Worker>,
    transactions: Rc<Transactions<EngineTransaction>>,
    shape: Arc<TableShape>,
}

/// Steps of an insert: checks, the row, then one for each entry.
const STEP_CHECKED: usize = 1;
const STEP_ROW_DONE: usize = 2;

const _: () = assert!(STEP_CHECKED < STEP_ROW_DONE);

/// The steps of the entry in the index at a position: the old entry is marked deleted, the index is
/// searched for a row that collides, the entry is put. Each needs few pages, and does not begin
/// again because a later one waits for its own.
fn entry_steps(number: usize) -> [usize; 3] {
    let first = STEP_ROW_DONE + 1 + 3 * number;
    [first, first + 1, first + 2]
}

impl EngineTable {
    pub(crate) fn new(
        worker: Rc<Worker>,
        transactions: Rc<Transactions<EngineTransaction>>,
        shape: Arc<TableShape>,
    ) -> Self {
        Self {
            worker,
            transactions,
            shape,
        }
    }

    fn place<'a>(&self, key: &'a [u8]) -> RowPlace<'a> {
        RowPlace {
            table: self.shape.id(),
            tree: self.shape.clustered,
            key,
        }
    }

    /// The key of a new row: that of its columns, or a new hidden id.
    fn new_key(&self, txn: &mut EngineTransaction, row: &[ValueRef<'_>]) -> Outcome<Vec<u8>> {
        let mut key = Vec::new();
        if self.shape.append_row_key(row, &mut key) {
            return Ok(key);
        }
        let id = match txn.pending.row_id {
            Some(id) => id,
            None => {
                let id = self.take_numbers(1, 1, 1)?;
                if ROW_ID_MAX < id {
                    return Err(StoreError::AutoIncrementExhausted.into());
                }
                *txn.pending.row_id.insert(id)
            }
        };
        key.extend_from_slice(&id.to_be_bytes()[8 - ROW_ID_BYTES..]);
        Ok(key)
    }

    /// Counts a change of the table's entries; the background renews what is due by it.
    fn count_change(&self) {
        if self.shape.live.count_change() {
            self.worker.shared.statistics_due.add(self.shape.id());
        }
    }

    fn insert_steps(
        &self,
        txn: &mut EngineTransaction,
        row: &[ValueRef<'_>],
        mode: LockMode,
    ) -> Outcome<Written> {
        txn.ensure_writer()?;
        txn.check_captured(&self.shape)?;
        txn.touch(self.shape.id(), LockMode::Exclusive);
        let key = self.new_key(txn, row)?;
        let body = encode(&self.shape.layout, row)?;
        if txn.pending.step < STEP_CHECKED {
            let can_be_taken = self.shape.row_key().is_some() && self.is_spilled(&body);
            if can_be_taken && self.lock_taken(txn, &key, mode)? {
                return Ok(refuse(txn, 0, key));
            }
            txn.pending.step = STEP_CHECKED;
        }
        if txn.pending.step < STEP_ROW_DONE {
            let reference = self.overflow(txn, &body)?;
            if self.insert_body(txn, &key, (&body, reference), mode)? == Written::Refused {
                return Ok(refuse(txn, 0, key));
            }
            txn.pending.step = STEP_ROW_DONE;
            self.shape.live.add_row();
            self.count_change();
        }
        let entries = self.shape.entries(row, &key);
        let old = std::mem::take(&mut txn.pending.old_entries);
        let done = self.put_entries(txn, (&entries, &old), mode);
        txn.pending.old_entries = old;
        done
    }

    /// Whether a body does not fit into a leaf.
    fn is_spilled(&self, body: &[u8]) -> bool {
        btree::payload_bytes_max(self.worker.pages.page_bytes()) < ROW_HEADER_BYTES + body.len()
    }

    /// Writes a body that does not fit into a leaf into pages of its own.
    fn overflow(&self, txn: &mut EngineTransaction, body: &[u8]) -> Outcome<Option<LobReference>> {
        if !self.is_spilled(body) {
            return Ok(None);
        }
        txn.spill_row(self.shape.space(), self.shape.id(), body)
            .map(Some)
    }

    fn insert_body(
        &self,
        txn: &mut EngineTransaction,
        key: &[u8],
        (body, reference): (&[u8], Option<LobReference>),
        mode: LockMode,
    ) -> Outcome<Written> {
        match reference.map(|reference| reference.encode()) {
            None => txn.insert_row(
                self.place(key),
                NewBody {
                    bytes: body,
                    is_spilled: false,
                },
                mode,
            ),
            Some(bytes) => txn.insert_row(
                self.place(key),
                NewBody {
                    bytes: &bytes,
                    is_spilled: true,
                },
                mode,
            ),
        }
    }

    /// Puts entries one by one, each after its index was searched for a row that collides. Such a
    /// row is locked in a mode, and refuses the change. `old` has the entries of the version
    /// before, which are marked deleted.
    ///
    /// The row comes before its entries, and an index is searched when those before it have theirs.
    /// InnoDB does it so, and others meet the same locks in the same order. It also has to be so:
    /// rollback and purge find entries by the versions of their row. Whatever ends the operation
    /// here, the undo of the row takes back the entries that were put, and leaves the others.
    /// A key that was found free stays locked until the operation ends, so it is still free when
    /// its entry is put.
    fn put_entries(
        &self,
        txn: &mut EngineTransaction,
        (entries, old): (&[EntryKey], &[EntryKey]),
        mode: LockMode,
    ) -> Outcome<Written> {
        assert!(
            STEP_ROW_DONE <= txn.pending.step,
            "entries follow the row that has them"
        );
        assert_eq!(
            entries.len(),
            self.shape.secondary.len(),
            "each index has an entry of the row"
        );
        assert!(
            old.is_empty() || old.len() == entries.len(),
            "each entry has its counterpart"
        );
        for (number, (index, entry)) in self.shape.secondary.iter().zip(entries).enumerate() {
            let [marked, searched, put] = entry_steps(number);
            let before = old.get(number);
            if put <= txn.pending.step || before == Some(entry) {
                continue;
            }
            if txn.pending.step < marked {
                if let Some(before) = before {
                    txn.delete_entry(index.tree, before)?;
                }
                txn.pending.step = marked;
            }
            if txn.pending.step < searched {
                if let Some(key) = txn.find_duplicate(index, entry, mode)? {
                    return Ok(refuse(txn, index.position, key));
                }
                txn.pending.step = searched;
            }
            txn.put_entry(self.shape.id(), index.tree, entry)?;
            txn.pending.step = put;
        }
        Ok(Written::Done)
    }

    /// Locks the row with a key in a mode, if there is one.
    fn lock_taken(&self, txn: &mut EngineTransaction, key: &[u8], mode: LockMode) -> Outcome<bool> {
        let extent = txn.record_extent();
        let wanted = WantedLock::all(LockKind { mode, extent }, LockWait::Wait);
        let version = &mut Version::default();
        Ok(self.is_taken(key)? && lock_and_read(txn, &self.shape, key, wanted, version)?)
    }

    /// Whether the clustered index has an entry, deleted or not.
    fn is_taken(&self, key: &[u8]) -> Outcome<bool> {
        self.shape
            .clustered
            .get(&self.worker.pages, key, &mut Vec::new())
    }

    /// Locks the row and reads it whole, once an operation, if its version is not claimed. Fails
    /// with the change's outcome if the row is gone or lost.
    fn read_old(
        &self,
        txn: &mut EngineTransaction,
        key: &[u8],
    ) -> Outcome<Result<OldRow, Written>> {
        let mut version = Version::default();
        match txn.claimed(self.place(key)) {
            Claimed::Lost => return Ok(Err(Written::Changed)),
            Claimed::Version(bytes) => version.bytes.extend_from_slice(bytes),
            Claimed::Nothing => {
                if !lock_and_read(txn, &self.shape, key, WantedLock::ROW, &mut version)? {
                    return Ok(Err(Written::Refused));
                }
            }
        }
        let header = version.header()?;
        let mut spilled = None;
        let is_captured = txn.is_captured();
        if header.is_spilled && (is_captured || !self.shape.secondary.is_empty()) {
            let (space, row) = (self.shape.space(), spilled.insert(Vec::new()));
            txn.pending
                .memo
                .read(&self.worker.pages, space, version.body(), row)?;
        }
        if is_captured {
            let row = spilled.as_deref().unwrap_or(version.body());
            txn.pending.before = Some(row.to_vec());
        }
        Ok(Ok(OldRow {
            header,
            version,
            spilled,
        }))
    }

    /// What only the present version needs: its large value, and its entries in the indexes at
    /// `dropped`.
    fn purge_list<'a>(
        &self,
        old: &OldRow,
        dropped: impl Iterator<Item = (&'a IndexShape, &'a EntryKey)>,
    ) -> PurgeList {
        let page_bytes = self.worker.pages.page_bytes();
        let mut purge_list = PurgeList::default();
        if old.header.is_spilled
            && let Ok(reference) = LobReference::decode(old.version.body())
        {
            let value = PurgeItem::Lob {
                space: self.shape.space().0,
                first_page: reference.first_page,
            };
            purge_list.push(&value, page_bytes);
        }
        for (index, entry) in dropped {
            let entry = PurgeItem::Entry {
                index: index.tree.index.0,
                key: &entry.bytes,
            };
            purge_list.push(&entry, page_bytes);
        }
        purge_list
    }

    fn update_steps(
        &self,
        txn: &mut EngineTransaction,
        key: &[u8],
        row: &[ValueRef<'_>],
        mode: LockMode,
    ) -> Outcome<Written> {
        txn.ensure_writer()?;
        txn.check_captured(&self.shape)?;
        txn.touch(self.shape.id(), LockMode::Exclusive);
        let mut new_key = Vec::new();
        if self.shape.append_row_key(row, &mut new_key) && new_key != key {
            return self.move_steps(txn, key, row, mode);
        }
        let body = encode(&self.shape.layout, row)?;
        let entries = self.shape.entries(row, key);
        let (old, purge_list) = if txn.pending.step < STEP_ROW_DONE {
            let old_row = match self.read_old(txn, key)? {
                Ok(old_row) => old_row,
                Err(written) => return Ok(written),
            };
            let old = self
                .shape
                .entries_of(old_row.row(), key)
                .map_err(Interrupt::Error)?;
            let pairs = self.shape.secondary.iter().zip(old.iter().zip(&entries));
            let dropped = pairs
                .filter(|(_, (old, new))| old != new)
                .map(|(index, (old, _))| (index, old));
            let purge_list = self.purge_list(&old_row, dropped);
            (old, purge_list)
        } else {
            let old = std::mem::take(&mut txn.pending.old_entries);
            (old, PurgeList::default())
        };
        if txn.pending.step < STEP_ROW_DONE {
            let reference = self
                .overflow(txn, &body)?
                .map(|reference| reference.encode());
            let new = match &reference {
                Some(bytes) => NewBody {
                    bytes,
                    is_spilled: true,
                },
                None => NewBody {
                    bytes: &body,
                    is_spilled: false,
                },
            };
            txn.note_purge_items(self.shape.id(), &purge_list)?;
            let written = txn.update_row(self.place(key), new, purge_list.own())?;
            if written != Written::Done {
                return Ok(written);
            }
            txn.pending.step = STEP_ROW_DONE;
            if entries != old {
                self.count_change();
            }
        }
        let done = self.put_entries(txn, (&entries, &old), mode);
        txn.pending.old_entries = old;
        done
    }

    /// A row that gets another row key is deleted and inserted. Its old entries are marked as
    /// the new ones are put.
    fn move_steps(
        &self,
        txn: &mut EngineTransaction,
        key: &[u8],
        row: &[ValueRef<'_>],
        mode: LockMode,
    ) -> Outcome<Written> {
        if !txn.pending.is_moved {
            let deleted = self.delete_version(txn, key)?;
            if deleted != Written::Done {
                return Ok(deleted);
            }
            let old_entries = std::mem::take(&mut txn.pending.old_entries);
            let before = txn.pending.before.take();
            txn.pending.reset_steps();
            txn.pending.is_moved = true;
            (txn.pending.old_entries, txn.pending.before) = (old_entries, before);
        }
        self.insert_steps(txn, row, mode)
    }

    /// Marks the newest version of a row deleted, and keeps the entries that it had.
    fn delete_version(&self, txn: &mut EngineTransaction, key: &[u8]) -> Outcome<Written> {
        let old_row = match self.read_old(txn, key)? {
            Ok(old_row) => old_row,
            Err(written) => return Ok(written),
        };
        let old = self
            .shape
            .entries_of(old_row.row(), key)
            .map_err(Interrupt::Error)?;
        let dropped = self.shape.secondary.iter().zip(&old);
        let purge_list = self.purge_list(&old_row, dropped);
        txn.note_purge_items(self.shape.id(), &purge_list)?;
        let deleted = txn.delete_row(self.place(key), purge_list.own())?;
        if deleted != Written::Done {
            return Ok(deleted);
        }
        assert_eq!(
            old.len(),
            self.shape.secondary.len(),
            "each index had an entry of the row"
        );
        txn.pending.old_entries = old;
        txn.pending.step = STEP_ROW_DONE;
        self.shape.live.drop_row();
        self.count_change();
        Ok(Written::Done)
    }

    fn delete_steps(&self, txn: &mut EngineTransaction, key: &[u8]) -> Outcome<Mutation> {
        txn.ensure_writer()?;
        txn.check_captured(&self.shape)?;
        txn.touch(self.shape.id(), LockMode::Exclusive);
        if txn.pending.step < STEP_ROW_DONE {
            match self.delete_version(txn, key)? {
                Written::Done => {}
                Written::Refused => return Ok(Mutation::Gone),
                Written::Changed => return Ok(Mutation::Changed),
            }
        }
        let old = std::mem::take(&mut txn.pending.old_entries);
        assert_eq!(
            old.len(),
            self.shape.secondary.len(),
            "each index had an entry of the row"
        );
        let mut delete = || {
            for (number, entry) in old.iter().enumerate() {
                let step = STEP_ROW_DONE + 1 + number;
                if txn.pending.step < step {
                    txn.delete_entry(self.shape.secondary[number].tree, entry)?;
                    txn.pending.step = step;
                }
            }
            Ok(())
        };
        let done: Outcome<()> = delete();
        txn.pending.old_entries = old;
        done.map(|()| Mutation::Done)
    }

    /// Inserts a row. Restartable.
    pub(crate) fn insert_by(
        &self,
        txn: &mut EngineTransaction,
        row: &[ValueRef<'_>],
        mode: LockMode,
    ) -> Outcome<Inserted> {
        txn.run_operation(
            |txn| {
                let written = match txn.pending.refusal {
                    None => self.insert_steps(txn, row, mode)?,
                    Some(_) => Written::Refused,
                };
                assert_eq!(
                    written == Written::Refused,
                    txn.pending.refusal.is_some(),
                    "another row refuses an insert"
                );
                if written == Written::Done && txn.is_captured() {
                    let after = encode(&self.shape.layout, row)?;
                    txn.capture(&self.shape, None, Some(after))?;
                }
                let refusal = txn.pending.refusal.clone();
                Ok(refusal.map_or(Inserted::Done, Duplicate::into_inserted))
            },
            |inserted| *inserted == Inserted::Done,
        )
    }

    /// Gives the row of a key other values. Restartable.
    pub(crate) fn update_by(
        &self,
        txn: &mut EngineTransaction,
        key: &[u8],
        row: &[ValueRef<'_>],
        mode: LockMode,
    ) -> Outcome<Mutation> {
        let outcome = txn.run_operation(
            |txn| {
                let written = match txn.pending.refusal {
                    None => self.update_steps(txn, key, row, mode)?,
                    Some(_) => Written::Refused,
                };
                if written == Written::Done && txn.is_captured() {
                    let after = encode(&self.shape.layout, row)?;
                    let before = txn.pending.before.take();
                    txn.capture(&self.shape, before, Some(after))?;
                }
                Ok(match (written, txn.pending.refusal.clone()) {
                    (Written::Done, _) => Mutation::Done,
                    (Written::Changed, _) => Mutation::Changed,
                    (Written::Refused, None) => Mutation::Gone,
                    (Written::Refused, Some(refusal)) => refusal.into_mutation(),
                })
            },
            |mutation| *mutation == Mutation::Done,
        );
        txn.end_claim(&outcome);
        outcome
    }

    /// Deletes the row of a key. Restartable.
    pub(crate) fn delete_by(&self, txn: &mut EngineTransaction, key: &[u8]) -> Outcome<Mutation> {
        let outcome = txn.run_operation(
            |txn| {
                let mutation = self.delete_steps(txn, key)?;
                if mutation == Mutation::Done && txn.is_captured() {
                    let before = txn.pending.before.take();
                    txn.capture(&self.shape, before, None)?;
                }
                Ok(mutation)
            },
            |mutation| *mutation == Mutation::Done,
        );
        txn.end_claim(&outcome);
        outcome
    }

    /// Appends the newest version of a row to the batch, if there is one.
    fn look_up(
        &self,
        txn: &mut EngineTransaction,
        key: &[u8],
        lock: RowLock,
        batch: &mut RowBatch,
    ) -> Outcome<()> {
        let mut version = Version::default();
        let found = if lock == RowLock::None {
            let tree = self.shape.clustered;
            tree.get(&self.worker.pages, key, &mut version.bytes)? && !version.header()?.is_deleted
        } else {
            let kind = LockKind {
                mode: lock_mode(lock),
                extent: txn.record_extent(),
            };
            let wanted = txn.wanted_lock(kind, LockWait::Wait);
            txn.touch(self.shape.id(), kind.mode);
            lock_and_read(txn, &self.shape, key, wanted, &mut version)?
        };
        if !found {
            return Ok(());
        }
        let mut row = Vec::new();
        if version.header()?.is_spilled {
            let space = self.shape.space();
            let pages = &txn.worker.pages;
            txn.pending
                .memo
                .read(pages, space, version.body(), &mut row)?;
        } else {
            row.extend_from_slice(version.body());
        }
        batch.push(key, |out| out.extend_from_slice(&row));
        // No operation ends here that would drop what was read for it.
        txn.pending.memo = LobMemo::default();
        Ok(())
    }

    /// Takes `count` numbers, `step` apart, the first congruent to `offset`.
    fn take_numbers(&self, count: u64, step: u64, offset: u64) -> Outcome<u64> {
        loop {
            let ceiling = {
                let mut auto = self.known_auto()?;
                let first = first_number(auto.next, step, offset);
                let last = count.checked_sub(1).and_then(|rest| rest.checked_mul(step));
                let end = last
                    .and_then(|rest| first?.checked_add(rest))
                    .and_then(|n| n.checked_add(1));
                let (Some(first), Some(end)) = (first, end) else {
                    return Err(StoreError::AutoIncrementExhausted.into());
                };
                if end <= auto.ceiling {
                    assert!(
                        auto.next <= first && first < end,
                        "a number is given out once"
                    );
                    auto.next = end;
                    return Ok(first);
                }
                end.saturating_add(AUTO_PER_WRITE)
            };
            self.worker.raise_auto(&self.shape, ceiling)?;
        }
    }

    /// The counter. Reads it if the start could not.
    fn known_auto(&self) -> Outcome<MutexGuard<'_, AutoCounter>> {
        let auto = self.shape.live.auto.lock();
        if auto.is_known() {
            return Ok(auto);
        }
        drop(auto);
        let read = self.worker.read_auto(&self.shape)?;
        let mut auto = self.shape.live.auto.lock();
        if !auto.is_known() {
            *auto = read;
        }
        assert!(auto.is_known(), "a counter that was read is known");
        Ok(auto)
    }

    fn pass_number(&self, number: u64) -> Outcome<u64> {
        loop {
            let next = number.saturating_add(1);
            {
                let mut auto = self.known_auto()?;
                if next <= auto.next || next <= auto.ceiling {
                    auto.next = auto.next.max(next);
                    assert!(
                        auto.next <= auto.ceiling,
                        "no number is given out that a crash would give out again"
                    );
                    return Ok(number);
                }
            }
            self.worker
                .raise_auto(&self.shape, next.saturating_add(AUTO_PER_WRITE))?;
        }
    }
}

/// The newest version of a row, before it is changed.
struct OldRow {
    header: RowHeader,
    /// The contents of the leaf.
    version: Version,
    /// The row, if it is not in the leaf and an index needs it.
    spilled: Option<Vec<u8>>,
}

impl OldRow {
    /// The row, or the contents of the leaf if no index needs more.
    fn row(&self) -> &[u8] {
        self.spilled.as_deref().unwrap_or(self.version.body())
    }
}

/// Notes the row that refuses a change.
fn refuse(txn: &mut EngineTransaction, index: usize, key: impl Into<Box<[u8]>>) -> Written {
    let key = key.into();
    assert!(txn.pending.refusal.is_none(), "a change is refused once");
    txn.pending.refusal = Some(Duplicate { index, key });
    Written::Refused
}

/// The bytes of a row.
fn encode(layout: &RowLayout, row: &[ValueRef<'_>]) -> Outcome<Vec<u8>> {
    let mut body = Vec::new();
    layout.encode(row, &mut body).map_err(|error| match error {
        RowError::TooLong => {
            let limit = format::row::VARIABLE_BYTES_MAX;
            StoreError::RowTooLarge {
                bytes: usize::MAX,
                limit,
            }
        }
        error => StoreError::damaged(format!("a row to be written: {error}")),
    })?;
    debug_assert!(layout.verify(&body), "what is written can be read");
    Ok(body)
}

impl Table for EngineTable {
    fn definition(&self) -> &Arc<TableDefinition> {
        &self.shape.entry.definition
    }

    fn layout(&self) -> &Arc<RowLayout> {
        &self.shape.layout
    }

    fn scan(&self, options: ScanOptions) -> Box<dyn Cursor> {
        assert!(options.pushed.is_none(), "the engine takes nothing");
        Box::new(EngineCursor::new(
            Rc::clone(&self.worker),
            Rc::clone(&self.transactions),
            Arc::clone(&self.shape),
            options,
        ))
    }

    fn insert(
        &self,
        txn: &mut dyn Transaction,
        row: &[ValueRef<'_>],
        lock: RowLock,
    ) -> Outcome<Inserted> {
        let mode = lock_mode(lock);
        self.transactions
            .with(txn, |txn| self.insert_by(txn, row, mode))
    }

    fn update(
        &self,
        txn: &mut dyn Transaction,
        key: RowKey<'_>,
        row: &[ValueRef<'_>],
        lock: RowLock,
    ) -> Outcome<Mutation> {
        let mode = lock_mode(lock);
        self.transactions
            .with(txn, |txn| self.update_by(txn, key.0, row, mode))
    }

    fn delete(&self, txn: &mut dyn Transaction, key: RowKey<'_>) -> Outcome<Mutation> {
        self.transactions
            .with(txn, |txn| self.delete_by(txn, key.0))
    }

    fn lookup(
        &self,
        txn: &mut dyn Transaction,
        keys: &[RowKey<'_>],
        lock: RowLock,
        batch: &mut RowBatch,
    ) -> Outcome<()> {
        let mut look_up = |txn: &mut EngineTransaction| {
            let first = batch.range_ends().len();
            while let Some(key) = keys.get(batch.range_ends().len()) {
                if FETCH_BYTES_MAX < batch.row_bytes() {
                    break;
                }
                if batch.range_ends().len() == first + LOOKUPS_PER_TURN {
                    return Err(Suspend::turn().into());
                }
                self.look_up(txn, key.0, lock, batch)?;
                batch.end_range();
            }
            Ok(())
        };
        self.transactions.with(txn, |txn| {
            txn.claim = None;
            txn.run(&mut look_up)
        })
    }

    fn take_auto_increment(&self, request: AutoIncrement) -> Outcome<u64> {
        match request {
            AutoIncrement::Take {
                count,
                step,
                offset,
            } => self.take_numbers(count, step, offset),
            AutoIncrement::Pass(number) => self.pass_number(number),
        }
    }

    fn next_auto_increment(&self) -> u64 {
        self.shape.live.auto.lock().next
    }

    fn covers(&self, index: usize, columns: &[usize]) -> bool {
        crate::row::covering::covers(&self.shape, index, columns)
    }

    fn statistics(&self) -> TableStatistics {
        self.shape.statistics(self.worker.pages.page_bytes())
    }

    fn measure(&self, index: usize, ranges: &[KeyRange]) -> Outcome<Option<Vec<u64>>> {
        let count = |range| self.shape.measure(&self.worker.pages, index, range);
        let counts: Outcome<_> = ranges.iter().map(count).collect();
        self.worker.reported(counts).map(Some)
    }
}
