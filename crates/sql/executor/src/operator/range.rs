//! Computes the key ranges that a scan's cursor reads, from the scan's access.
//!
//! The ranges are computed when the scan starts, over the current frame ([`planner::key_ranges`]).
//! The buffers of a single range are reused at each start.

use expression::{Expression, KeyClock, Share};
use planner::{Access, KeySource, key_ranges, range_of, unique_range};
use store::{IndexDefinition, KeyBound, KeyRange, TableDefinition};
use value::{Value, ValueRef};

use crate::context::Context;
use crate::{Interrupt, Outcome};

/// The ranges of a scan, and which one is being read.
#[derive(Debug, Default)]
pub(crate) struct RangeSet {
    ranges: Vec<KeyRange>,
    /// How many of `ranges` are in use; the others are kept for their buffers.
    count: usize,
    share: Share,
}

/// Fewer ranges are not counted.
const COUNTED_RANGES_MIN: usize = 256;

/// The memory of a range in addition to its values.
const RANGE_BYTES: usize = size_of::<KeyRange>() + 2 * 16;

impl RangeSet {
    /// The ranges in use, in the index's order.
    pub(crate) fn ranges(&self) -> &[KeyRange] {
        &self.ranges[..self.count]
    }

    /// Turns their order around.
    pub(crate) fn reverse(&mut self) {
        self.ranges[..self.count].reverse();
    }

    /// Computes the ranges of `access` over the current frame.
    pub(crate) fn compute(
        &mut self,
        access: &Access,
        definition: &TableDefinition,
        index: Option<&IndexDefinition>,
        cx: &Context<'_>,
    ) -> Outcome<()> {
        self.count = 0;
        if self.ranges.is_empty() {
            self.ranges.push(KeyRange::all());
        }
        let range = &mut self.ranges[0];
        let has_range = match (access, index) {
            (Access::Unique(values), Some(index)) => {
                unique_range(values, definition, index, cx, range)?
            }
            (Access::Range(plan), Some(index)) => range_of(plan, definition, index, cx, range)?,
            (Access::Keys(plan), Some(index)) => {
                self.ranges = key_ranges(plan, definition, index, cx)?;
                self.count = self.ranges.len();
                return self.keep(cx);
            }
            (Access::All, _) => {
                range.lower = KeyBound::Open;
                range.upper = KeyBound::Open;
                true
            }
            (_, None) => unreachable!("an access that narrows names its index"),
        };
        self.count = usize::from(has_range);
        Ok(())
    }

    /// Frees many ranges once they have been read.
    pub(crate) fn finish(&mut self) {
        if COUNTED_RANGES_MIN <= self.ranges.len() {
            self.ranges = Vec::new();
            self.count = 0;
            self.share.clear();
        }
    }

    /// Counts the memory of many ranges.
    fn keep(&mut self, cx: &Context<'_>) -> Outcome<()> {
        if self.ranges.len() < COUNTED_RANGES_MIN {
            return Ok(());
        }
        let bytes = self.ranges.iter().map(range_bytes).sum();
        cx.keep(&mut self.share, bytes)
    }
}

/// The approximate memory of a range.
pub(super) fn range_bytes(range: &KeyRange) -> usize {
    let bound = |bound: &KeyBound| match bound {
        KeyBound::Open => 0,
        KeyBound::Inclusive(values) | KeyBound::Exclusive(values) => values
            .iter()
            .map(|value| match value {
                Value::Bytes(bytes) => size_of::<Value>() + bytes.len(),
                _ => size_of::<Value>(),
            })
            .sum(),
    };
    RANGE_BYTES + bound(&range.lower) + bound(&range.upper)
}

impl KeySource for Context<'_> {
    type Error = Interrupt;

    fn value<'v>(&'v self, expression: &'v Expression) -> Outcome<ValueRef<'v>> {
        self.evaluate(expression)
    }

    fn clock(&self) -> KeyClock<'_> {
        KeyClock {
            zone: &self.statement.options.zone,
            today: self.statement.today(),
        }
    }

    fn spend(&self, bytes: usize) -> Outcome<()> {
        Ok(self.statement.spend(bytes)?)
    }
}
