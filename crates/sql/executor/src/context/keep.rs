//! Keeps rows: computes expressions over the current rows and appends the results to a slot.

use expression::{Expression, Rows};

use crate::Outcome;
use crate::context::Context;

/// Appends a row to a slot of computed rows: the values of `expressions` over the current frame.
/// The expressions do not read that slot.
pub(crate) fn push_row(
    cx: &mut Context<'_>,
    slot: usize,
    expressions: &[Expression],
) -> Outcome<()> {
    // The rows are moved out of the frame meanwhile: values borrow the frame while they are pushed.
    let mut rows = std::mem::take(cx.frame.rows_mut(slot));
    let outcome = push_values(cx, &mut rows, expressions);
    *cx.frame.rows_mut(slot) = rows;
    cx.frame.recycle();
    outcome
}

/// Appends the values of `expressions` to `rows`, or nothing if one of them fails.
pub(crate) fn push_values(
    cx: &Context<'_>,
    rows: &mut Rows,
    expressions: &[Expression],
) -> Outcome<()> {
    let evaluator = cx.evaluator();
    cx.statement.spend(ROW_COST)?;
    for expression in expressions {
        match evaluator.evaluate(expression) {
            Ok(value) => {
                if let Err(failure) = evaluator.spend_on(value) {
                    rows.drop_unfinished();
                    return Err(failure.into());
                }
                rows.push(value);
            }
            Err(failure) => {
                rows.drop_unfinished();
                return Err(failure.into());
            }
        }
    }
    Ok(())
}

/// The cost of keeping a row in addition to its values, in bytes read.
const ROW_COST: usize = 64;
