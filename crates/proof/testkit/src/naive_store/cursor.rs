//! A scan of a naive table: it sorts all rows by the index, and looks at each for each range.

use std::rc::Rc;

use store::{
    ColumnRanges, Condition, Cursor, Direction, Fetched, IndexPart, KeyRange, Outcome, RowBatch,
    ScanOptions, Transaction,
};
use value::ValueRef;

use super::groups::groups_of;
use super::{IndexedRow, NaiveTable};

#[derive(Debug)]
pub(super) struct NaiveCursor {
    table: Rc<NaiveTable>,
    options: ScanOptions,
    ranges: Vec<KeyRange>,
    /// The rows to return, each with the range that it is in, once one was read.
    rows: Option<Vec<(usize, IndexedRow)>>,
    /// The range that is read, and the next row to return.
    range: usize,
    at: usize,
}

impl NaiveCursor {
    pub(super) fn new(table: Rc<NaiveTable>, options: ScanOptions) -> Self {
        Self {
            table,
            ranges: vec![options.range.clone()],
            options,
            rows: None,
            range: 0,
            at: 0,
        }
    }

    /// The rows of all ranges, or their groups, in their order.
    fn found(&self) -> Vec<(usize, IndexedRow)> {
        let mut rows = self.table.sorted(self.options.index);
        if self.options.direction == Direction::Backward {
            rows.reverse();
        }
        let mut found = Vec::new();
        for (place, range) in self.ranges.iter().enumerate() {
            let is_inside = (self.options.index).map(|index| self.table.is_inside(index, range));
            let is_wanted = |row: &&IndexedRow| {
                is_inside
                    .as_ref()
                    .is_none_or(|is_inside| is_inside(&row.sort_key))
            };
            found.extend(
                rows.iter()
                    .filter(is_wanted)
                    .map(|row| (place, row.clone())),
            );
        }
        let Some(pushed) = &self.options.pushed else {
            return found;
        };
        found.retain(|(_, row)| {
            let row = self.table.decoded(&row.row);
            pushed
                .conditions
                .iter()
                .all(|it| self.table.fulfils(it, &row))
        });
        if let Some(grouping) = &pushed.grouping {
            found = groups_of(&self.table, &found, grouping);
        }
        if let Some(most) = pushed.limit {
            found.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        }
        found
    }
}

impl NaiveTable {
    /// Whether a row fulfils a condition.
    fn fulfils(&self, condition: &Condition<ColumnRanges>, row: &[ValueRef<'_>]) -> bool {
        match condition {
            Condition::All(list) => list.iter().all(|it| self.fulfils(it, row)),
            Condition::Any(list) => list.iter().any(|it| self.fulfils(it, row)),
            Condition::Column { column, test } => {
                let parts = [IndexPart {
                    column: *column,
                    prefix_length: None,
                }];
                let key = self.key_of(&parts, row);
                test.iter()
                    .any(|range| self.is_inside_of(&parts, range)(&key))
            }
        }
    }
}

impl Cursor for NaiveCursor {
    fn seek(&mut self, ranges: &[KeyRange]) {
        self.ranges = ranges.to_vec();
        self.rows = None;
        (self.range, self.at) = (0, 0);
    }

    fn fetch(
        &mut self,
        _: &mut dyn Transaction,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Outcome<Fetched> {
        assert!(
            batch.len() < limit,
            "a batch is cleared before it is filled again"
        );
        self.table.inner.operate()?;
        let found = self.rows.take().unwrap_or_else(|| self.found());
        let rows = self.rows.insert(found);
        let rows_read = &self.table.inner.rows_read;
        while let Some((range, row)) = rows.get(self.at) {
            while self.range < *range {
                self.range += 1;
                batch.end_range();
            }
            if batch.len() == limit {
                return Ok(Fetched::More);
            }
            batch.push(&row.key, |buffer| buffer.extend_from_slice(&row.row));
            rows_read.set(rows_read.get() + 1);
            self.at += 1;
        }
        while self.range + 1 < self.ranges.len() {
            self.range += 1;
            batch.end_range();
        }
        Ok(Fetched::End)
    }
}
