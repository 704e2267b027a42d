//! [`Collected`]: the ranges of many left rows of a join, read by one seek.
//!
//! The rows come in the order of the ranges, and the batch says where each range ends. So the rows
//! of a left row are those up to the end of its last range.
//!
//! ```text
//!   Collecting --next_left--> Reading --the last row--> End
//!        ^---------------------- begin ------------------+
//! ```

use expression::Share;
use store::{CallCost, KeyRange, RowBatch, Table};

use super::range::range_bytes;
use crate::Outcome;
use crate::context::{Context, ROWS_PER_TURN};

/// The most rows or keys that a call asks for. At 100 us a round trip, a thousand rows pay 0.1 us
/// each for it; more would only take memory.
pub(crate) const CALL_ROWS_MAX: usize = 1024;

/// The fewest left rows that are looked up at once. Each time there are four times as many. So a
/// statement that stops after its first rows has looked up few in vain.
const LEFT_ROWS_MIN: usize = 16;

/// True if each call of the table costs a round trip.
pub(crate) fn is_remote(table: &dyn Table) -> bool {
    table.call_cost() == CallCost::RoundTrip
}

/// How many rows to ask a remote table for, after `before` rows: few at first, then many.
pub(crate) fn rows_after(before: usize) -> usize {
    (before * 4).clamp(LEFT_ROWS_MIN, CALL_ROWS_MAX)
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    /// The ranges of all left rows, in their order.
    ranges: Vec<KeyRange>,
    /// For each left row, how many ranges precede the next one's.
    ends: Vec<usize>,
    /// The left rows whose turn has come; the last of them is the current one.
    left_count: usize,
    /// The range of the next row.
    range: usize,
    /// The batch has rows of these ranges.
    has_batch: bool,
    /// The next row of the batch, and the next of its ranges' ends.
    at: usize,
    mark: usize,
    /// Nothing follows the rows of the batch.
    is_end: bool,
    bytes: usize,
    share: Share,
}

/// What follows in the rows that were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// The row at this place of the batch belongs to the current left row.
    Row(usize),
    /// The current left row has no more.
    None,
    /// The batch has been used up.
    Fetch,
}

impl Collected {
    /// True between the first collected row and the next `begin`.
    pub(super) fn is_filled(&self) -> bool {
        !self.ends.is_empty()
    }

    /// Drops everything.
    pub(super) fn begin(&mut self) {
        let ranges = std::mem::take(&mut self.ranges);
        let ends = std::mem::take(&mut self.ends);
        let share = std::mem::take(&mut self.share);
        *self = Self {
            ranges,
            ends,
            share,
            ..Self::default()
        };
        self.ranges.clear();
        self.ends.clear();
        self.share.clear();
    }

    /// Adds the ranges of a left row.
    pub(super) fn add(&mut self, ranges: &[KeyRange], cx: &Context<'_>) -> Outcome<()> {
        let bytes: usize = ranges.iter().map(range_bytes).sum();
        cx.keep(&mut self.share, self.bytes + bytes)?;
        self.bytes += bytes;
        self.ranges.extend_from_slice(ranges);
        self.ends.push(self.ranges.len());
        Ok(())
    }

    /// True once one call should ask for no more.
    pub(super) fn is_full(&self) -> bool {
        CALL_ROWS_MAX <= self.ranges.len()
    }

    /// All ranges.
    pub(super) fn ranges(&self) -> &[KeyRange] {
        &self.ranges
    }

    /// Goes to the next left row. Returns true at the first: nothing was read yet.
    pub(super) fn next_left(&mut self) -> bool {
        assert!(
            self.left_count < self.ends.len(),
            "each collected row has its turn once"
        );
        self.left_count += 1;
        self.left_count == 1
    }

    /// What follows for the current left row. Rows that were left over for former ones are passed.
    pub(super) fn next(&mut self, batch: &RowBatch) -> Next {
        assert!(0 < self.left_count, "a left row is current");
        let (first, end) = match self.left_count {
            1 => (0, self.ends[0]),
            count => (self.ends[count - 2], self.ends[count - 1]),
        };
        while self.range < end {
            if !self.has_batch {
                return Next::Fetch;
            }
            if batch.range_ends().get(self.mark) == Some(&self.at) {
                self.mark += 1;
                self.range += 1;
            } else if self.at < batch.len() {
                self.at += 1;
                if first <= self.range {
                    return Next::Row(self.at - 1);
                }
            } else if self.is_end {
                self.range = self.ranges.len();
            } else {
                return Next::Fetch;
            }
        }
        Next::None
    }

    /// The batch was cleared, and is going to be filled.
    pub(super) fn start_batch(&mut self) {
        self.has_batch = true;
        (self.at, self.mark) = (0, 0);
    }

    /// The batch was filled for the last time.
    pub(super) fn set_end(&mut self) {
        self.is_end = true;
    }
}

/// How many rows a scan of a table asks for. `most` is the plan's.
pub(super) fn fetch_limit(table: &dyn Table, most: usize, before: usize) -> usize {
    let per_turn = ROWS_PER_TURN as usize;
    if per_turn <= most && is_remote(table) {
        rows_after(before).max(per_turn)
    } else {
        most.min(per_turn)
    }
}
