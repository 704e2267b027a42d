//! [`RowFinder`]: finds the rows that UPDATE and DELETE change.
//!
//! If all rows are found before the first change, only their keys are kept. Each row is read again,
//! locked, before it is changed.

use expression::Share;
use stdx::{ByteStore, ChunkedVec, Span};
use store::{RowKey, RowLock};

use crate::context::Context;
use crate::keys::Keys;
use crate::{HandlerCall, Operator, Outcome, Rewind};

/// The rows that a statement changes, one after the other. They come as they are found. If a change
/// could hide or repeat a row, they come once all are found.
#[derive(Debug)]
pub(super) struct RowFinder {
    input: Box<dyn Operator>,
    /// All are found first.
    is_kept: bool,
    is_complete: bool,
    found: FoundRows,
}

impl RowFinder {
    /// `kept` are the (table, slot) pairs to read again, `targets` the slots to change.
    pub(super) fn new(
        input: Box<dyn Operator>,
        is_kept: bool,
        kept: &[(usize, usize)],
        targets: &[usize],
    ) -> Self {
        Self {
            input,
            is_kept,
            is_complete: false,
            found: FoundRows::new(kept, targets),
        }
    }

    pub(super) fn rewind(&mut self) {
        self.input.rewind(Rewind::Fresh);
        self.is_complete = false;
        self.found.clear();
    }

    /// Makes the next row current; false at the end.
    pub(super) fn next(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
        if !self.is_kept {
            return self.input.next(cx);
        }
        while !self.is_complete {
            if self.input.next(cx)? {
                self.found.keep(cx)?;
            } else {
                self.is_complete = true;
            }
        }
        self.found.next(cx)
    }

    /// False if an earlier row had the same target row.
    pub(super) fn is_first(&self, target: usize) -> bool {
        !self.is_kept || self.found.is_first(target)
    }
}

/// The keys of found rows: for each row, one key per kept slot.
#[derive(Debug)]
struct FoundRows {
    /// (table, slot) of each key.
    kept: Vec<(usize, usize)>,
    /// Slots that are changed, each with the keys of the rows changed so far.
    targets: Vec<(usize, Keys)>,
    /// For each target of the current row: whether it comes for the first time.
    first: Vec<bool>,
    bytes: ByteStore,
    share: Share,
    /// The place of each key; `None` is a row of NULLs.
    keys: ChunkedVec<Option<Span>>,
    /// The next row to return.
    at: usize,
    /// The next slot of that row to look up.
    slot_at: usize,
}

impl FoundRows {
    fn new(kept: &[(usize, usize)], targets: &[usize]) -> Self {
        Self {
            kept: kept.to_vec(),
            targets: targets
                .iter()
                .map(|&slot| (slot, Keys::default()))
                .collect(),
            first: vec![true; targets.len()],
            bytes: ByteStore::default(),
            share: Share::default(),
            keys: ChunkedVec::new(),
            at: 0,
            slot_at: 0,
        }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.keys.clear();
        self.share.clear();
        self.at = 0;
        self.slot_at = 0;
        for (_, seen) in &mut self.targets {
            seen.clear();
        }
    }

    /// Keeps the keys of the current row.
    fn keep(&mut self, cx: &Context<'_>) -> Outcome<()> {
        for &(_, slot) in &self.kept {
            let Some(row) = cx.frame.slots[slot].row else {
                self.keys.push(None);
                continue;
            };
            let key = self.bytes.push(cx.frame.batch(slot).key(row).0);
            self.keys.push(Some(key));
        }
        let bytes = self.bytes.memory_bytes() + self.keys.memory_bytes();
        cx.keep(&mut self.share, bytes)
    }

    /// Reads the next row again and makes it current. Returns false at the end. Rows that are gone
    /// meanwhile are skipped.
    fn next(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
        let width = self.kept.len();
        while width > 0 && self.at * width < self.keys.len() {
            while self.slot_at < width {
                cx.charge(1)?;
                let (table, slot) = self.kept[self.slot_at];
                let key = self.key(self.at * width + self.slot_at);
                let has_key = key.is_some();
                let is_there = look_up(cx, table, slot, key)?;
                self.slot_at += 1;
                if !is_there && has_key {
                    break;
                }
            }
            let is_whole = self.slot_at == width && self.is_there(cx);
            self.slot_at = 0;
            self.at += 1;
            if is_whole {
                self.note_first(cx)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// True if the target's current row was not returned before.
    fn is_first(&self, target: usize) -> bool {
        self.first[target]
    }

    /// Whether at least one target row exists.
    fn is_there(&self, cx: &Context<'_>) -> bool {
        self.targets
            .iter()
            .any(|(slot, _)| cx.frame.slots[*slot].row.is_some())
    }

    fn note_first(&mut self, cx: &Context<'_>) -> Outcome<()> {
        for ((slot, seen), first) in self.targets.iter_mut().zip(&mut self.first) {
            *first = match cx.frame.slots[*slot].row {
                Some(row) => {
                    seen.set(cx.frame.batch(*slot).key(row).0);
                    let (_, is_new) = seen.insert(cx)?;
                    is_new
                }
                None => false,
            };
        }
        Ok(())
    }

    fn key(&self, place: usize) -> Option<&[u8]> {
        self.keys[place].map(|key| self.bytes.get(key))
    }
}

/// Reads a row by its key into the slot; without a key, a row of NULLs.
pub(super) fn look_up(
    cx: &mut Context<'_>,
    table: usize,
    slot: usize,
    key: Option<&[u8]>,
) -> Outcome<bool> {
    let Some(key) = key else {
        cx.frame.slots[slot].row = None;
        return Ok(false);
    };
    let table = cx.tables[table].clone();
    let batch = cx.frame.batch_mut(slot);
    batch.clear();
    table.lookup(cx.txn, &[RowKey(key)], RowLock::Exclusive, batch)?;
    let is_there = !batch.is_empty();
    cx.handler.count(HandlerCall::ReadPlace);
    cx.frame.slots[slot].row = is_there.then_some(0);
    Ok(is_there)
}
