//! [`RowFinder`]: the rows that UPDATE and DELETE change.
//!
//! Of rows that are found before any is changed only the keys are kept; each row is read again,
//! locked, before it is changed.

use expression::Share;
use stdx::{ByteStore, ChunkedVec, Span};
use store::{RowKey, RowLock};

use crate::context::Context;
use crate::keys::Keys;
use crate::operator::Operator;
use crate::{HandlerCall, Outcome, Rewind};

/// The rows that a statement changes, one after the other: as they are found, or, where changing
/// one could hide or repeat another, once all are found.
#[derive(Debug)]
pub(super) struct RowFinder {
    input: Box<dyn Operator>,
    /// All are found first.
    is_kept: bool,
    is_complete: bool,
    found: FoundRows,
}

impl RowFinder {
    /// `kept` are the (table, slot) pairs to be read again, `targets` the slots to be changed.
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

    /// False of a target that an earlier row had.
    pub(super) fn is_first(&self, target: usize) -> bool {
        !self.is_kept || self.found.is_first(target)
    }
}

/// The keys of found rows: for each, one key for each of the kept slots.
#[derive(Debug)]
struct FoundRows {
    /// (table, slot) of each key.
    kept: Vec<(usize, usize)>,
    /// Slots that are changed, each with the keys that were changed already.
    targets: Vec<(usize, Keys)>,
    /// Whether each target of the row at hand is there for the first time.
    first: Vec<bool>,
    bytes: ByteStore,
    share: Share,
    /// Where each key stands; `None` is a row of NULLs.
    keys: ChunkedVec<Option<Span>>,
    /// The next row to give.
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

    /// Keeps the keys of the row at hand.
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

    /// Makes the next row current, read again; false at the end. Rows that are gone meanwhile are
    /// left out.
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

    /// True if the target's row at hand was not given before.
    fn is_first(&self, target: usize) -> bool {
        self.first[target]
    }

    /// Whether at least one target row is there.
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

/// Reads a row by its key into the slot; a row of NULLs without one.
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
    let is_there = table.lookup(cx.txn, RowKey(key), RowLock::Exclusive, batch)?;
    cx.handler.count(HandlerCall::ReadPlace);
    cx.frame.slots[slot].row = is_there.then_some(0);
    Ok(is_there)
}
