//! [`RowFinder`]: finds the rows that UPDATE and DELETE change.
//!
//! If all rows are found before the first change, only their keys are kept. Each row is read again,
//! locked, before it is changed ([`KeyWindow`]). Rows of a join with a query in FROM come as they
//! are found, as that query's rows could not be read again; its caller keeps what it makes of them.

use expression::Share;
use planner::Finding;
use stdx::{ByteStore, ChunkedVec, Span};
use store::Hold;

use super::key_window::KeyWindow;
use crate::context::Context;
use crate::context::operator::Confirmed;
use crate::keys::Keys;
use crate::{Operator, Outcome, Rewind};

/// The rows that a statement changes, one after the other. They come as they are found. If a change
/// could hide or repeat a row, they come once all are found.
#[derive(Debug)]
pub(super) struct RowFinder {
    input: Box<dyn Operator>,
    finding: Finding,
    is_complete: bool,
    found: FoundRows,
}

impl RowFinder {
    /// `kept` are the (table, slot) pairs to read again, `targets` the slots to change.
    pub(super) fn new(
        input: Box<dyn Operator>,
        finding: Finding,
        kept: &[(usize, usize)],
        targets: &[usize],
    ) -> Self {
        Self {
            input,
            finding,
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
        match self.finding {
            Finding::OneByOne => return self.input.next(cx),
            Finding::Repeated => {
                let is_found = self.input.next(cx)?;
                if is_found {
                    self.found.note_first(cx)?;
                }
                return Ok(is_found);
            }
            Finding::AllFirst => {}
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

    /// Whether the row in a slot is the current one without a lock, by its version alone.
    pub(super) fn is_claimed(cx: &Context<'_>, slot: usize) -> bool {
        cx.frame.slots[slot].row == Some(0) && cx.frame.batch(slot).hold() == Hold::Claimed
    }

    /// Locks the current row, which is claimed, and reads it again. Returns false if it is gone.
    pub(super) fn confirm(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
        assert!(
            self.finding == Finding::OneByOne,
            "rows that are found first are locked"
        );
        Ok(self.input.confirm(cx)? != Confirmed::Gone)
    }

    /// False if an earlier row had the same target row.
    pub(super) fn is_first(&self, target: usize) -> bool {
        self.finding == Finding::OneByOne || self.found.is_first(target)
    }
}

/// The keys of found rows: for each row, one key per kept slot.
#[derive(Debug)]
struct FoundRows {
    /// (table, slot) of each key, with the rows that are read ahead.
    kept: Vec<(usize, usize, KeyWindow)>,
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
            kept: kept
                .iter()
                .map(|&(table, slot)| (table, slot, KeyWindow::default()))
                .collect(),
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
        for (_, _, window) in &mut self.kept {
            window.clear();
        }
        for (_, seen) in &mut self.targets {
            seen.clear();
        }
    }

    /// Keeps the keys of the current row.
    fn keep(&mut self, cx: &Context<'_>) -> Outcome<()> {
        for (_, slot, _) in &self.kept {
            let Some(row) = cx.frame.slots[*slot].row else {
                self.keys.push(None);
                continue;
            };
            let key = self.bytes.push(cx.frame.batch(*slot).key(row).0);
            self.keys.push(Some(key));
        }
        let bytes = self.bytes.memory_bytes() + self.keys.memory_bytes();
        cx.keep(&mut self.share, bytes)
    }

    /// Reads the next row again and makes it current. Returns false at the end. All its parts are
    /// locked, so only this statement can have removed some: a row without a target is skipped.
    fn next(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
        let width = self.kept.len();
        while width > 0 && self.at * width < self.keys.len() {
            while self.slot_at < width {
                cx.charge(1)?;
                self.look_up(cx)?;
                self.slot_at += 1;
            }
            self.slot_at = 0;
            self.at += 1;
            if self.is_there(cx) {
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

    /// Reads the row of the current slot again; a row of NULLs if it is gone, or was one.
    fn look_up(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        let width = self.kept.len();
        let first = self.at * width + self.slot_at;
        let (table, slot, window) = &mut self.kept[self.slot_at];
        if self.keys[first].is_none() {
            cx.frame.slots[*slot].row = None;
            return Ok(());
        }
        let (keys, bytes) = (&self.keys, &self.bytes);
        let places = (first..keys.len()).step_by(width);
        let keys = places.filter_map(|place| keys[place].map(|key| bytes.get(key)));
        window.next(cx, (*table, *slot), keys)?;
        Ok(())
    }
}
