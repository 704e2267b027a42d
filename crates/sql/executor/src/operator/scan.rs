//! Reads a table: all of it, ranges of an index, or one row by a unique key.
//!
//! The cursor is created once and kept: each start computes the ranges and seeks. A batch has at
//! most the rows of one turn, so that a scan can yield between two fetches.

use std::rc::Rc;

use planner::{Access, Scan};
use store::{Cursor, Direction, Fetched, KeyBound, KeyRange, ScanOptions, Table};

use super::range::RangeSet;
use crate::context::{Context, Dependents, ROWS_PER_TURN};
use crate::{HandlerCall, Operator, Outcome, Rewind};

pub(crate) struct ScanOperator {
    plan: Rc<Scan>,
    table: Rc<dyn Table>,
    cursor: Option<Box<dyn Cursor>>,
    ranges: RangeSet,
    dependents: Dependents,
    state: State,
    /// The next row of the batch to return.
    at: usize,
    /// Ranges sought so far.
    ranges_sought: usize,
    /// Whether the next row follows another one.
    is_behind_row: bool,
    /// Rows that this start has read.
    rows_read: u64,
}

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
            at: 0,
            ranges_sought: 0,
            is_behind_row: false,
            rows_read: 0,
            plan,
        }
    }

    fn start(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        self.dependents.run(cx)?;
        let definition = self.table.definition();
        let index = self.plan.index.map(|index| &definition.indexes[index]);
        self.ranges
            .compute(&self.plan.access, definition, index, cx)?;
        cx.frame.recycle();
        cx.frame.batch_mut(self.plan.slot).clear();
        self.at = 0;
        self.ranges_sought = 0;
        self.is_behind_row = false;
        self.rows_read = 0;
        self.state = State::RangeEnd;
        Ok(())
    }

    /// Seeks the next range. Returns false if there is none.
    fn seek_next(&mut self, cx: &mut Context<'_>) -> bool {
        let ranges = self.ranges.ranges();
        if self.ranges_sought == ranges.len() {
            self.ranges.finish();
            self.ranges_sought = self.ranges.ranges().len();
            return false;
        }
        let place = match self.plan.direction {
            Direction::Forward => self.ranges_sought,
            Direction::Backward => ranges.len() - 1 - self.ranges_sought,
        };
        let range = &ranges[place];
        match &mut self.cursor {
            Some(cursor) => cursor.seek(range),
            None => self.cursor = Some(self.table.scan(options(&self.plan, range))),
        }
        if let Some(call) = first_call(&self.plan, range) {
            cx.handler.count(call);
        }
        self.is_behind_row = self.plan.index.is_none();
        self.ranges_sought += 1;
        true
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

    fn fetch(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        let cursor = self.cursor.as_mut().expect("a range was sought");
        let limit = match self.plan.access {
            Access::Unique(_) => 1,
            _ => self.plan.fetch_rows_max.min(ROWS_PER_TURN as usize),
        };
        let batch = cx.frame.batch_mut(self.plan.slot);
        let fetched = cursor.fetch(cx.txn, limit, batch)?;
        if let Some(most) = self.plan.rows_read_max {
            self.rows_read += stdx::to_u64(batch.len());
            *cx.is_off |= most < self.rows_read;
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

fn options(plan: &Scan, range: &KeyRange) -> ScanOptions {
    ScanOptions {
        index: plan.index,
        range: range.clone(),
        direction: plan.direction,
        lock: plan.lock,
        columns: plan.columns.clone(),
        wait: plan.wait,
    }
}

impl Operator for ScanOperator {
    fn rewind(&mut self, how: Rewind) {
        self.state = State::Start;
        self.dependents.rewind();
        if how == Rewind::Fresh {
            self.ranges_sought = 0;
        }
    }

    fn next(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
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
                self.at += 1;
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
            cx.frame.batch_mut(self.plan.slot).clear();
            self.at = 0;
            self.state = State::Fetching;
        }
    }
}
