//! The sum that CHECKSUM TABLE returns: one CRC-32 a row, added up.

use executor::{Flow, Outcome, RowSink};
use planner::OutputColumn;
use value::{ColumnType, ValueRef};

/// Takes rows and keeps their sum.
#[derive(Debug)]
pub(crate) struct ChecksumSink {
    /// The columns' types, which decide how a value is written as text.
    types: Vec<ColumnType>,
    /// A row's text, reused.
    text: Vec<u8>,
    /// The sum so far.
    sum: u32,
}

impl ChecksumSink {
    /// A sum of no rows.
    pub(crate) fn new(types: Vec<ColumnType>) -> Self {
        Self {
            types,
            text: Vec::new(),
            sum: 0,
        }
    }

    /// The sum of all rows so far.
    pub(crate) fn checksum(&self) -> u32 {
        self.sum
    }
}

impl RowSink for ChecksumSink {
    fn columns(&mut self, _: &[OutputColumn]) -> Outcome<()> {
        Ok(())
    }

    fn row(&mut self, row: &[ValueRef<'_>]) -> Outcome<Flow> {
        self.text.clear();
        for (value, column_type) in row.iter().zip(&self.types) {
            // NULL and the empty text differ, and so do ("ab", "c") and ("a", "bc").
            self.text.push(u8::from(value.is_null()));
            value.append_text(column_type, &mut self.text);
            self.text.push(0xff);
        }
        self.sum = self.sum.wrapping_add(crc32fast::hash(&self.text));
        Ok(Flow::More)
    }
}
