//! [`Context`]: what every operator gets while the execution runs.
//!
//! An [`operator`] reads rows within a context, and a context has the subqueries ([`dependents`]),
//! which are operators again. So both are here. [`keep`] appends rows to the frame.

pub(crate) mod dependents;
pub(crate) mod keep;
pub(crate) mod operator;

use std::rc::Rc;

use expression::{Evaluator, Expression, Frame, Memory, Share, Statement};
use store::{Suspend, Table, Transaction};
use value::{Value, ValueRef};

use crate::context::dependents::SubqueryRun;
use crate::{HandlerCounts, Outcome};

/// After this many rows a statement looks at the clock, and yields if its time slice is used up. A
/// count of rows alone would be worse: a range of a hundred rows takes a quarter of a slice, and a
/// task that yields waits behind others and returns to cold caches. (With 4,096 clients such a
/// range cost half as much again.)
pub const ROWS_PER_TURN: u32 = 64;

/// The environment of a running execution, borrowed for one step.
pub(crate) struct Context<'e> {
    /// The transaction.
    pub(crate) txn: &'e mut dyn Transaction,
    /// The session around the statement.
    pub(crate) statement: &'e Statement<'e>,
    /// The current rows.
    pub(crate) frame: &'e mut Frame,
    /// The plan's tables, opened.
    pub(crate) tables: &'e [Rc<dyn Table>],
    /// The plan's subqueries; `None` while one is running.
    pub(crate) subqueries: &'e mut [Option<SubqueryRun>],
    /// Rows left before the next look at the clock.
    pub(crate) turn_rows: u32,
    /// The memory account of the statement.
    pub(crate) memory: &'e Rc<Memory>,
    /// The result of the stored function for which the execution stopped.
    pub(crate) answer: &'e mut Option<Value>,
    /// Counts of calls to tables.
    pub(crate) handler: &'e mut HandlerCounts,
    /// Set where the plan turns out to be made for other values.
    pub(crate) is_off: &'e mut bool,
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("turn_rows", &self.turn_rows)
            .finish_non_exhaustive()
    }
}

impl Context<'_> {
    /// The evaluator of expressions over the current frame.
    #[inline]
    pub(crate) fn evaluator(&self) -> Evaluator<'_> {
        Evaluator::new(self.frame, self.statement)
    }

    /// The value of an expression over the current frame.
    #[inline]
    pub(crate) fn evaluate<'a>(&'a self, expression: &'a Expression) -> Outcome<ValueRef<'a>> {
        Ok(self.evaluator().evaluate(expression)?)
    }

    /// True if the condition is true (neither false nor NULL).
    #[inline]
    pub(crate) fn is_true(&self, condition: &Expression) -> Outcome<bool> {
        Ok(self.evaluator().is_true(condition)?)
    }

    /// Counts the work of reading a value; others may run before it returns.
    #[inline]
    pub(crate) fn spend_on(&self, value: ValueRef<'_>) -> Outcome<()> {
        Ok(self.evaluator().spend_on(value)?)
    }

    /// Counts rows that were read. After enough of them it looks at the clock, and yields if the
    /// time slice is used up. Call it where the operator's place is saved, before the next piece of
    /// work.
    #[inline]
    pub(crate) fn charge(&mut self, rows: u32) -> Outcome<()> {
        if rows <= self.turn_rows {
            self.turn_rows -= rows;
            return Ok(());
        }
        self.turn_rows = ROWS_PER_TURN;
        self.statement.check_killed()?;
        if !self.statement.session.is_slice_over() {
            return Ok(());
        }
        Err(Suspend::turn().into())
    }

    /// Reports how much a part of the statement keeps; fails if it is more than allowed.
    pub(crate) fn keep(&self, share: &mut Share, bytes: usize) -> Outcome<()> {
        let limit = self.statement.options.kept_bytes_max;
        let pool = || self.statement.session.memory_pool();
        Ok(share.set(bytes, self.memory, limit, pool)?)
    }
}
