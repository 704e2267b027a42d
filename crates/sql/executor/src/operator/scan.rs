//! Reads a table: all of it, ranges of an index, or one row by a unique key.
//!
//! The cursor is created once and kept: each start computes the ranges and seeks. A batch has at
//! most the rows of one turn, so that a scan can yield between two fetches. A table whose calls
//! cost a round trip is asked for more rows at a time, and for several ranges. As the right side of
//! a join, it is also asked for the ranges of several left rows (`collected.rs`). If its store does
//! a part of the work above, each execution opens a cursor with that work and its values
//! (`pushed.rs`).

use std::rc::Rc;

use expression::Share;
use planner::{Access, Scan};
use store::{
    Cursor, Direction, Fetched, Hold, KeyBound, KeyRange, Pushed, RowLock, ScanOptions, Table,
};

use super::collected::{CALL_ROWS_MAX, Collected, Next, fetch_limit, is_remote};
use super::pushed;
use super::range::RangeSet;
use crate::context::dependents::Dependents;
use crate::context::operator::{Collector, Confirmed};
use crate::context::{Context, ROWS_PER_TURN};
use crate::{HandlerCall, Operator, Outcome, Rewind};

pub(crate) struct ScanOperator {
    plan: Rc<Scan>,
    table: Rc<dyn Table>,
    cursor: Option<Box<dyn Cursor>>,
    ranges: RangeSet,
    dependents: Dependents,
    state: State,
    /// How many rows the last fetch has asked for; 0 at the start.
    fetch_rows: usize,
    /// The next row of the batch to return.
    at: usize,
    /// Ranges sought so far.
    ranges_sought: usize,
    /// Whether the next row follows another one.
    is_behind_row: bool,
    /// Rows that this start has read.
    rows_read: u64,
    /// What the store does in this execution.
    pushed: Option<Rc<Pushed>>,
    /// The ranges of several left rows of a join.
    collected: Collected,
    /// The memory share of a batch with large rows.
    share: Share,
    /// Each row is tested by the operator above.
    is_tested: bool,
}

/// A batch with fewer bytes of rows is not counted.
const LARGE_ROW_BYTES: usize = 128 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The ranges are not computed yet.
    Start,
    /// The batch's rows are being returned; more may follow them.
    Giving,
    /// A fetch was begun.
    Fetching,
    /// The range has no rows after the batch.
    RangeEnd,
}

impl std::fmt::Debug for ScanOperator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScanOperator")
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}

impl ScanOperator {
    pub(crate) fn new(plan: Rc<Scan>, tables: &[Rc<dyn Table>]) -> Self {
        Self {
            table: tables[plan.table].clone(),
            cursor: None,
            ranges: RangeSet::default(),
            dependents: Dependents::new(&plan.dependent),
            state: State::Start,
            fetch_rows: 0,
            at: 0,
            ranges_sought: 0,
            is_behind_row: false,
            rows_read: 0,
            pushed: None,
            collected: Collected::default(),
            share: Share::default(),
            is_tested: false,
            plan,
        }
    }

    /// Computes the ranges over the current frame, in the order in which they are read.
    fn compute_ranges(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        self.dependents.run(cx)?;
        let definition = self.table.definition();
        let index = self.plan.index.map(|index| &definition.indexes[index]);
        self.ranges
            .compute(&self.plan.access, definition, index, cx)?;
        if self.plan.direction == Direction::Backward {
            self.ranges.reverse();
        }
        if self.pushed.is_none()
            && let Some(work) = &self.plan.pushed
        {
            self.pushed = pushed::values(work, definition, cx)?;
            self.cursor = None;
        }
        cx.frame.recycle();
        Ok(())
    }

    fn start(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        self.compute_ranges(cx)?;
        if self.gives_groups() {
            self.cursor = None;
        }
        cx.frame.batch_mut(self.plan.slot).clear();
        self.at = 0;
        self.ranges_sought = 0;
        self.is_behind_row = false;
        self.rows_read = 0;
        self.state = State::RangeEnd;
        Ok(())
    }

    /// Seeks the next range, or several of a remote table. Returns false if there is none.
    fn seek_next(&mut self, cx: &mut Context<'_>) -> bool {
        let ranges = self.ranges.ranges();
        if self.gives_groups() {
            // There may be groups of no rows. The range that the cursor is opened with is not read.
            let is_first = self.cursor.is_none();
            if is_first {
                let options = self.options(&KeyRange::all());
                let mut cursor = self.table.scan(options);
                cursor.seek(ranges);
                self.cursor = Some(cursor);
            }
            return is_first;
        }
        if self.ranges_sought == ranges.len() {
            self.ranges.finish();
            self.ranges_sought = self.ranges.ranges().len();
            return false;
        }
        let left = &ranges[self.ranges_sought..];
        let count = if is_remote(&*self.table) {
            left.len().min(CALL_ROWS_MAX)
        } else {
            1
        };
        let next = &left[..count];
        self.cursor = seek(self.cursor.take(), &*self.table, next, |range| {
            self.options(range)
        });
        for call in next.iter().filter_map(|it| first_call(&self.plan, it)) {
            cx.handler.count(call);
        }
        self.is_behind_row = self.plan.index.is_none();
        self.ranges_sought += count;
        true
    }

    fn options(&self, range: &KeyRange) -> ScanOptions {
        let plan = &self.plan;
        ScanOptions {
            index: plan.index,
            range: range.clone(),
            direction: plan.direction,
            lock: plan.lock,
            columns: plan.columns.clone(),
            wait: plan.wait,
            pushed: self.pushed.clone(),
        }
    }

    /// True if the store returns groups of rows.
    fn gives_groups(&self) -> bool {
        self.pushed.as_ref().is_some_and(|it| it.grouping.is_some())
    }

    /// Counts the request for the row after the last one, if there was a row and the range may have
    /// another.
    #[inline]
    fn count_next(&mut self, cx: &mut Context<'_>) {
        if self.is_behind_row && !matches!(self.plan.access, Access::Unique(_)) {
            cx.handler.count(next_call(&self.plan));
        }
        self.is_behind_row = false;
    }

    /// Clears the batch for the next fetch.
    fn begin_fetch(&mut self, cx: &mut Context<'_>) {
        cx.frame.batch_mut(self.plan.slot).clear();
        self.at = 0;
        self.fetch_rows = match self.plan.access {
            Access::Unique(_) => 1,
            _ => fetch_limit(&*self.table, self.plan.fetch_rows_max, self.fetch_rows),
        };
        self.state = State::Fetching;
    }

    fn fetch(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        let cursor = self.cursor.as_mut().expect("a range was sought");
        let batch = cx.frame.batch_mut(self.plan.slot);
        let fetched = match cursor.fetch(cx.txn, self.fetch_rows, batch) {
            Ok(fetched) => fetched,
            Err(interrupt) => {
                let held_bytes = cursor.held_bytes();
                if LARGE_ROW_BYTES < held_bytes {
                    cx.keep(&mut self.share, held_bytes)?;
                }
                return Err(interrupt.into());
            }
        };
        let is_large = LARGE_ROW_BYTES < batch.row_bytes() || self.share.bytes() != 0;
        if let Some(most) = self.plan.rows_read_max {
            self.rows_read += stdx::to_u64(batch.len());
            *cx.is_off |= most < self.rows_read;
        }
        if is_large {
            let bytes = cx.frame.batch(self.plan.slot).memory_bytes();
            cx.keep(&mut self.share, bytes)?;
        }
        self.state = match (fetched, &self.plan.access) {
            (Fetched::End, _) | (_, Access::Unique(_)) => State::RangeEnd,
            (Fetched::More, _) => State::Giving,
        };
        Ok(())
    }
}

/// The request that finds the first row of a range; `None` if it counts like all others.
fn first_call(plan: &Scan, range: &KeyRange) -> Option<HandlerCall> {
    plan.index?;
    let (near, from_end) = match plan.direction {
        Direction::Forward => (&range.lower, HandlerCall::ReadFirst),
        Direction::Backward => (&range.upper, HandlerCall::ReadLast),
    };
    Some(match near {
        KeyBound::Open => from_end,
        KeyBound::Inclusive(_) | KeyBound::Exclusive(_) => HandlerCall::ReadKey,
    })
}

/// The request for the row after another.
fn next_call(plan: &Scan) -> HandlerCall {
    match (plan.index, plan.direction) {
        (None, _) => HandlerCall::ReadPlaceNext,
        (Some(_), Direction::Forward) => HandlerCall::ReadNext,
        (Some(_), Direction::Backward) => HandlerCall::ReadPrevious,
    }
}

/// Seeks the ranges with the cursor, which is opened if there is none.
fn seek(
    cursor: Option<Box<dyn Cursor>>,
    table: &dyn Table,
    ranges: &[KeyRange],
    options: impl FnOnce(&KeyRange) -> ScanOptions,
) -> Option<Box<dyn Cursor>> {
    match (cursor, ranges) {
        (None, []) => None,
        (None, [only]) => Some(table.scan(options(only))),
        (None, [first, ..]) => {
            let mut cursor = table.scan(options(first));
            cursor.seek(ranges);
            Some(cursor)
        }
        (Some(mut cursor), ranges) => {
            cursor.seek(ranges);
            Some(cursor)
        }
    }
}

impl Operator for ScanOperator {
    fn rewind(&mut self, how: Rewind) {
        if how == Rewind::Again && self.collected.is_filled() {
            if self.collected.next_left() {
                let (table, ranges) = (&*self.table, self.collected.ranges());
                self.cursor = seek(self.cursor.take(), table, ranges, |range| {
                    self.options(range)
                });
            }
            self.is_behind_row = false;
            return;
        }
        if self.collected.is_filled() {
            self.collected.begin();
        }
        self.fetch_rows = 0;
        self.state = State::Start;
        self.dependents.rewind();
        if how == Rewind::Fresh {
            self.ranges_sought = 0;
            self.pushed = None;
            self.share.clear();
        }
    }

    fn collector(&mut self) -> Option<&mut dyn Collector> {
        let looks_up = self.plan.index.is_some() && !matches!(self.plan.access, Access::All);
        // A statement that wants few rows would lock others in vain.
        let locks_few =
            self.plan.lock != RowLock::None && self.plan.fetch_rows_max < ROWS_PER_TURN as usize;
        match looks_up && !locks_few && is_remote(&*self.table) {
            true => Some(self),
            false => None,
        }
    }

    fn expect_tests(&mut self) {
        self.is_tested = true;
    }

    fn release(&mut self, cx: &mut Context<'_>) {
        let row = cx.frame.slots[self.plan.slot].row;
        if let (Some(cursor), Some(row)) = (&mut self.cursor, row)
            && self.plan.lock != RowLock::None
        {
            cursor.release(cx.txn, row);
        }
    }

    fn confirm(&mut self, cx: &mut Context<'_>) -> Outcome<Confirmed> {
        let slot = self.plan.slot;
        let is_first = cx.frame.slots[slot].row == Some(0);
        let batch = cx.frame.batch_mut(slot);
        if !is_first || batch.hold() == Hold::AsAsked {
            return Ok(Confirmed::AsTested);
        }
        let cursor = self.cursor.as_mut().expect("it has given the row");
        if !cursor.confirm(cx.txn, batch)? {
            return Ok(Confirmed::Gone);
        }
        cx.frame.slots[slot].row = Some(1);
        self.at = 2;
        Ok(Confirmed::Newer)
    }

    fn next(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
        if self.collected.is_filled() {
            return self.next_collected(cx);
        }
        if self.state == State::Start {
            self.start(cx)?;
        }
        loop {
            if self.state == State::Fetching {
                self.fetch(cx)?;
            }
            let row_count = cx.frame.batch(self.plan.slot).len();
            if self.at < row_count {
                cx.frame.slots[self.plan.slot].row = Some(self.at);
                // Without a test each row matches. A claimed one is changed as it is.
                let is_claimed = cx.frame.batch(self.plan.slot).hold() == Hold::Claimed;
                let confirmed = match self.is_tested || is_claimed {
                    true => Confirmed::AsTested,
                    false => self.confirm(cx)?,
                };
                if confirmed != Confirmed::Newer {
                    self.at += 1;
                }
                if confirmed == Confirmed::Gone {
                    continue;
                }
                self.count_next(cx);
                self.is_behind_row = true;
                return Ok(true);
            }
            let looked_at = u32::try_from(row_count).unwrap_or(ROWS_PER_TURN);
            cx.charge(looked_at.clamp(1, ROWS_PER_TURN))?;
            if self.state == State::RangeEnd {
                self.count_next(cx);
                if !self.seek_next(cx) {
                    return Ok(false);
                }
            }
            self.begin_fetch(cx);
        }
    }
}

impl ScanOperator {
    /// Returns the next row that was found for the current one of the collected left rows.
    fn next_collected(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
        loop {
            let slot = self.plan.slot;
            if self.state == State::Fetching {
                let cursor = self.cursor.as_mut().expect("the ranges were sought");
                let batch = cx.frame.batch_mut(slot);
                if cursor.fetch(cx.txn, CALL_ROWS_MAX, batch)? == Fetched::End {
                    self.collected.set_end();
                }
                self.state = State::Giving;
            }
            match self.collected.next(cx.frame.batch(slot)) {
                Next::Row(row) => {
                    cx.frame.slots[slot].row = Some(row);
                    self.count_next(cx);
                    self.is_behind_row = true;
                    return Ok(true);
                }
                Next::None => {
                    self.count_next(cx);
                    return Ok(false);
                }
                Next::Fetch => {
                    cx.charge(ROWS_PER_TURN)?;
                    cx.frame.batch_mut(slot).clear();
                    self.collected.start_batch();
                    self.state = State::Fetching;
                }
            }
        }
    }
}

impl Collector for ScanOperator {
    fn begin(&mut self) {
        self.collected.begin();
        self.dependents.rewind();
        self.state = State::Giving;
    }

    fn collect(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        self.compute_ranges(cx)?;
        let ranges = self.ranges.ranges();
        self.collected.add(ranges, cx)?;
        for call in ranges.iter().filter_map(|it| first_call(&self.plan, it)) {
            cx.handler.count(call);
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.collected.is_full()
    }
}
