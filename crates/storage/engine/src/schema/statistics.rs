//! Estimates for the planner.

use store::TableStatistics;

use crate::schema::table_shape::TableShape;

/// Assumed number of rows for a value of the first part of an index that is not unique.
const ROWS_PER_VALUE: u64 = 10;

impl TableShape {
    /// What is known without reading a page.
    pub(crate) fn statistics(&self) -> TableStatistics {
        let row_count = self.live.row_count();
        let distinct = self
            .entry
            .definition
            .indexes
            .iter()
            .map(|index| {
                let parts = u32::try_from(index.parts.len()).unwrap_or(u32::MAX);
                let is_unique = index.uniqueness != store::Uniqueness::None;
                (1..=parts)
                    .map(|part| {
                        if is_unique && part == parts {
                            return row_count;
                        }
                        let rows = ROWS_PER_VALUE.checked_shr(part - 1).unwrap_or(0).max(1);
                        row_count / rows
                    })
                    .collect()
            })
            .collect();
        TableStatistics {
            row_count,
            data_bytes: 0,
            index_bytes: 0,
            distinct,
        }
    }
}
