//! Sorts in memory.
//!
//! Rows are computed into the slot, their numbers are sorted, and the rows are returned in that
//! order. With a limit, at most twice the wanted rows are kept: the surplus is cut off after a
//! partial sort.

use std::cmp::Ordering;
use std::rc::Rc;

use expression::{Failure, Rows, Share, Statement, compare_values_metered};
use planner::Sort;
use stdx::{ChunkedVec, merge_sort};

use super::LimitCounts;
use crate::context::Context;
use crate::context::dependents::Dependents;
use crate::context::keep;
use crate::kept_slots::KeptSlots;
use crate::{Operator, Outcome, Rewind};

/// Below this a limit causes no cut: the memory is small anyway.
const CUT_ROWS_MIN: usize = 1024;

/// The sort's memory for a row: its number, twice while runs are merged, and the runs' ends.
const ORDER_BYTES: usize = 3 * size_of::<u32>();

/// The cost of numbering a row, in bytes read.
const ORDER_COST: usize = 8;

#[derive(Debug)]
pub(crate) struct SortOperator {
    input: Box<dyn Operator>,
    plan: Rc<Sort>,
    dependents: Dependents,
    state: State,
    /// The input's row is not kept yet.
    holds_row: bool,
    limit: LimitCounts,
    /// Table rows that are kept in addition; they have the numbers of the slot's rows.
    kept_slots: KeptSlots,
    /// Row numbers in the order of return.
    order: ChunkedVec<u32>,
    share: Share,
    at: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    Filling,
    Giving,
}

impl SortOperator {
    pub(crate) fn new(input: Box<dyn Operator>, plan: Rc<Sort>) -> Self {
        Self {
            input,
            dependents: Dependents::new(&plan.dependent),
            kept_slots: KeptSlots::new(&plan.kept_slots),
            plan,
            state: State::Start,
            holds_row: false,
            limit: LimitCounts {
                count: u64::MAX,
                offset: 0,
            },
            order: ChunkedVec::new(),
            share: Share::default(),
            at: 0,
        }
    }

    fn start(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        if let Some(limit) = &self.plan.limit {
            self.limit = LimitCounts::of(limit, cx)?;
        }
        cx.frame.rows_mut(self.plan.slot).clear();
        self.kept_slots.start(cx.frame);
        self.order.clear();
        self.state = State::Filling;
        Ok(())
    }

    fn fill(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        let wanted = usize::try_from(self.limit.total()).unwrap_or(usize::MAX);
        let cut_rows = wanted.saturating_mul(2).max(CUT_ROWS_MIN);
        loop {
            if !self.holds_row {
                if wanted == 0 || !self.input.next(cx)? {
                    break;
                }
                self.holds_row = true;
            }
            self.dependents.run(cx)?;
            self.holds_row = false;
            keep::push_row(cx, self.plan.slot, &self.plan.kept)?;
            self.kept_slots.keep(cx.frame);
            let rows = cx.frame.rows(self.plan.slot);
            if rows.len() >= cut_rows {
                self.cut(cx, wanted)?;
            } else {
                let bytes = rows.memory_bytes() + self.kept_slots.memory_bytes();
                cx.keep(&mut self.share, bytes + rows.len() * ORDER_BYTES)?;
            }
        }
        let rows = cx.frame.rows(self.plan.slot);
        self.sort(rows, cx.statement)?;
        let offset = usize::try_from(self.limit.offset).unwrap_or(usize::MAX);
        self.order.truncate(wanted);
        self.at = offset.min(self.order.len());
        self.state = State::Giving;
        Ok(())
    }

    /// Keeps only the first `wanted` rows.
    fn cut(&mut self, cx: &mut Context<'_>, wanted: usize) -> Outcome<()> {
        let rows = cx.frame.rows(self.plan.slot);
        self.sort(rows, cx.statement)?;
        let mut kept = Rows::new(rows.width());
        for &row in self.order.iter().take(wanted) {
            cx.statement.spend(rows.row_bytes(row as usize))?;
            kept.push_row_of(rows, row as usize);
        }
        let wanted = self.order.iter().take(wanted).map(|row| *row as usize);
        self.kept_slots.retain(wanted, cx.statement)?;
        *cx.frame.rows_mut(self.plan.slot) = kept;
        Ok(())
    }

    /// Sorts the numbers of all rows; the sort is stable. Others run between comparisons.
    fn sort(&mut self, rows: &Rows, statement: &Statement<'_>) -> Outcome<()> {
        let count = u32::try_from(rows.len()).expect("kept rows are bounded by their bytes");
        self.order.clear();
        for row in 0..count {
            statement.spend(ORDER_COST)?;
            self.order.push(row);
        }
        let plan = &self.plan;
        merge_sort(
            &mut self.order,
            |a, b| compare_rows(plan, rows, a as usize, b as usize, statement),
            |count| statement.spend(count * ORDER_COST),
        )?;
        Ok(())
    }
}

fn compare_rows(
    plan: &Sort,
    rows: &Rows,
    a: usize,
    b: usize,
    statement: &Statement<'_>,
) -> Result<Ordering, Failure> {
    for key in &plan.keys {
        let column_type = &plan.kept[key.kept].column_type;
        let (a, b) = (rows.get(a, key.kept), rows.get(b, key.kept));
        let order = compare_values_metered(a, b, column_type, statement)?;
        if order.is_ne() {
            return Ok(if key.descending {
                order.reverse()
            } else {
                order
            });
        }
    }
    Ok(Ordering::Equal)
}

impl Operator for SortOperator {
    fn rewind(&mut self, how: Rewind) {
        self.input.rewind(how);
        self.dependents.rewind();
        self.state = State::Start;
        self.holds_row = false;
    }

    fn next(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
        if self.state == State::Start {
            self.start(cx)?;
        }
        if self.state == State::Filling {
            self.fill(cx)?;
        }
        if self.at >= self.order.len() {
            return Ok(false);
        }
        cx.charge(1)?;
        let row = self.order[self.at];
        self.at += 1;
        cx.frame.slots[self.plan.slot].row = Some(row as usize);
        self.kept_slots.set(cx.frame, Some(row as usize));
        Ok(true)
    }
}
