//! [`LateChanges`]: the values that an UPDATE of several tables, or of one that it also reads
//! elsewhere, will assign.
//!
//! All values are computed before any row is written. Otherwise `UPDATE t a JOIN t b ON .. SET a.v
//! = b.v` would read in `b` what it has just written through `a`. A subquery over `t` would do the
//! same.

use expression::{Rows, Share};
use planner::{Assignment, UpdateTarget};
use stdx::{ByteStore, ChunkedVec, Span};

use crate::Outcome;
use crate::context::Context;

/// Keys of rows with the values for their columns, by target.
#[derive(Debug, Default)]
pub(super) struct LateChanges {
    targets: Vec<TargetChanges>,
    share: Share,
    /// The target and row that are written next.
    target: usize,
    row: usize,
}

#[derive(Debug)]
struct TargetChanges {
    bytes: ByteStore,
    keys: ChunkedVec<Span>,
    /// A row for each key, a column for each assignment.
    values: Rows,
}

impl LateChanges {
    pub(super) fn new(targets: &[UpdateTarget]) -> Self {
        let changes = |target: &UpdateTarget| TargetChanges {
            bytes: ByteStore::default(),
            keys: ChunkedVec::new(),
            values: Rows::new(target.assignments.len()),
        };
        Self {
            targets: targets.iter().map(changes).collect(),
            ..Self::default()
        }
    }

    pub(super) fn clear(&mut self) {
        for target in &mut self.targets {
            target.bytes.clear();
            target.keys.clear();
            target.values.clear();
        }
        self.share.clear();
        (self.target, self.row) = (0, 0);
    }

    /// Keeps the values that the assignments computed for the row with that key.
    pub(super) fn keep(
        &mut self,
        cx: &Context<'_>,
        target: usize,
        key: &[u8],
        assignments: &[Assignment],
        new: &Rows,
    ) -> Outcome<()> {
        let changes = &mut self.targets[target];
        let key = changes.bytes.push(key);
        changes.keys.push(key);
        for assignment in assignments {
            changes.values.push(new.get(0, assignment.column));
        }
        let bytes = |of: &TargetChanges| {
            of.bytes.memory_bytes() + of.keys.memory_bytes() + of.values.memory_bytes()
        };
        cx.keep(&mut self.share, self.targets.iter().map(bytes).sum())
    }

    /// Goes to the next row to write. Returns its target, or `None` after the last.
    pub(super) fn next(&mut self) -> Option<usize> {
        while self.target < self.targets.len() && self.row == self.targets[self.target].keys.len() {
            self.target += 1;
            self.row = 0;
        }
        (self.target < self.targets.len()).then_some(self.target)
    }

    /// The keys of the rows to write in that target, from the present one on.
    pub(super) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        let changes = &self.targets[self.target];
        let rows = self.row..changes.keys.len();
        rows.map(|row| changes.bytes.get(changes.keys[row]))
    }

    /// The values of the present row: its number among the rows.
    pub(super) fn values(&self) -> (&Rows, usize) {
        (&self.targets[self.target].values, self.row)
    }

    /// That row is written.
    pub(super) fn pass(&mut self) {
        self.row += 1;
    }
}
