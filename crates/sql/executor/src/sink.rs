//! Where result rows go: a client's packets, a cursor, a variable, a test.

use expression::Expression;
use planner::OutputColumn;
use smallvec::SmallVec;
use value::ValueRef;

use crate::Outcome;
use crate::context::Context;

/// Takes a result. An execution calls `columns` once, before the first row, and only if the plan
/// has a result set.
pub trait RowSink {
    /// The columns of the result.
    fn columns(&mut self, columns: &[OutputColumn]) -> Outcome<()>;

    /// Takes a row, whatever it returns. After `Flow::Pause` the execution returns
    /// [`crate::Progress::Paused`] so that the caller can make room.
    fn row(&mut self, row: &[ValueRef<'_>]) -> Outcome<Flow>;
}

/// Whether a sink wants the next row immediately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Go on.
    More,
    /// Return to the caller first.
    Pause,
}

/// Sends the current row, column by column from its slots.
pub(crate) fn give_row(
    output: &[Expression],
    cx: &Context<'_>,
    sink: &mut dyn RowSink,
) -> Outcome<Flow> {
    let evaluator = cx.evaluator();
    let mut row: SmallVec<[ValueRef<'_>; 16]> = SmallVec::with_capacity(output.len());
    for expression in output {
        row.push(evaluator.evaluate(expression)?);
    }
    sink.row(&row)
}

/// A sink that keeps all rows: for tests, and for statements with small results.
#[derive(Debug, Default)]
pub struct KeptRows {
    /// The columns.
    pub columns: Vec<OutputColumn>,
    /// The rows.
    pub rows: Vec<Vec<value::Value>>,
}

impl RowSink for KeptRows {
    fn columns(&mut self, columns: &[OutputColumn]) -> Outcome<()> {
        self.columns = columns.to_vec();
        Ok(())
    }

    fn row(&mut self, row: &[ValueRef<'_>]) -> Outcome<Flow> {
        self.rows
            .push(row.iter().map(|value| value.to_value()).collect());
        Ok(Flow::More)
    }
}
