//! [`Operator`]: a producer of rows that can be stopped and called again.
//!
//! (O1) `next` puts a row into the slots below the operator and returns true, or returns false at
//! the end. Called after the end, it returns false again.
//! (O2) After `Interrupt::Suspend` the same call is made again. So an operator that holds a row of
//!      its input notes that before anything that may suspend, and never fetches a row twice.
//! (O3) `rewind` only resets the operator's own place. It neither reads nor evaluates, since the
//! rows that its expressions read may not be there yet.

use std::fmt::Debug;

use crate::Outcome;
use crate::context::Context;

/// A producer of rows.
pub(crate) trait Operator: Debug {
    /// Starts over: the next row is the first again.
    fn rewind(&mut self, how: Rewind);

    /// Puts the next row into the slots. Returns false at the end.
    fn next(&mut self, cx: &mut Context<'_>) -> Outcome<bool>;

    /// Itself, if it can find the rows for many left rows of a join by one call, and such calls
    /// cost a round trip. `None`: it is started again for each left row.
    fn collector(&mut self) -> Option<&mut dyn Collector> {
        None
    }

    /// Tells a scan, before it begins, that each of its rows is tested: the caller answers by
    /// `confirm` or `release`.
    fn expect_tests(&mut self) {}

    /// The row does not match: it need not stay locked.
    fn release(&mut self, _cx: &mut Context<'_>) {}

    /// The row matches. If it is not locked yet, it is now, and may have changed.
    fn confirm(&mut self, _cx: &mut Context<'_>) -> Outcome<Confirmed> {
        Ok(Confirmed::AsTested)
    }

    /// The number of rows without LIMIT, if the plan asked for it; known at the end.
    fn found_rows(&self) -> Option<u64> {
        None
    }
}

/// The outcome of [`Operator::confirm`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Confirmed {
    /// The row is the one that was tested.
    AsTested,
    /// Its newest version is current now, and has to be tested.
    Newer,
    /// It is gone.
    Gone,
}

/// An operator at the right side of a join that looks up the rows for many left rows at once.
/// After `begin` come calls of `collect`. Then each `rewind` by [`Rewind::Again`] goes to the next
/// of the collected rows, and `next` returns what was found for it.
pub(crate) trait Collector {
    /// Drops what was collected.
    fn begin(&mut self);

    /// Notes what the current left row needs.
    fn collect(&mut self, cx: &mut Context<'_>) -> Outcome<()>;

    /// True once as much was collected as one call should ask for.
    fn is_full(&self) -> bool;
}

/// Why an operator starts over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rewind {
    /// For another row of the left side of a join: what does not depend on that row may be kept.
    Again,
    /// For another row of an outer query: what does not read that row may be kept.
    Outer,
    /// For another execution: nothing may be kept.
    Fresh,
}
