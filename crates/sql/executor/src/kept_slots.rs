//! [`KeptSlots`]: copies of slots' current rows, to make them current again later.
//!
//! Hash joins and sorts read their input to its end before they give a row. The copies have the
//! shape of the slots they come from. Once all rows are kept, the copies *become* the slots'
//! contents by an exchange, and giving a row only says which one is current; the working contents
//! stand aside until the next run.

use expression::{Frame, Rows, SlotContent};
use store::RowBatch;

#[derive(Debug, Default)]
pub(crate) struct KeptSlots {
    slots: Vec<usize>,
    /// Of each kept row, for each slot, the row in its contents; `None` is a row of NULLs.
    places: Vec<Option<usize>>,
    /// Kept rows while filling, working contents after the exchange.
    other_contents: Vec<SlotContent>,
    row_count: usize,
    bytes: usize,
}

impl KeptSlots {
    /// For these slots.
    pub(crate) fn new(slots: &[usize]) -> Self {
        Self {
            slots: slots.to_vec(),
            ..Self::default()
        }
    }

    /// Forgets the kept rows; filling begins.
    pub(crate) fn start(&mut self, frame: &Frame) {
        self.places.clear();
        self.row_count = 0;
        self.bytes = 0;
        self.other_contents.clear();
        for &slot in &self.slots {
            self.other_contents.push(match &frame.slots[slot].content {
                SlotContent::Batch(batch) => {
                    SlotContent::Batch(RowBatch::new(batch.layout().clone()))
                }
                SlotContent::Rows(rows) => SlotContent::Rows(Rows::new(rows.width())),
            });
        }
    }

    /// Copies the slots' current rows; gives the number by which they are set again.
    pub(crate) fn keep(&mut self, frame: &Frame) -> usize {
        for (&slot, kept) in self.slots.iter().zip(&mut self.other_contents) {
            let slot = &frame.slots[slot];
            let Some(row) = slot.row else {
                self.places.push(None);
                continue;
            };
            match (&slot.content, kept) {
                (SlotContent::Batch(batch), SlotContent::Batch(kept)) => {
                    let (bytes, key) = (batch.row(row), batch.key(row));
                    self.bytes += bytes.len() + key.0.len() + 32;
                    self.places.push(Some(kept.len()));
                    kept.push(key.0, |buffer| buffer.extend_from_slice(bytes));
                }
                (SlotContent::Rows(rows), SlotContent::Rows(kept)) => {
                    self.bytes += rows.width() * 32;
                    self.places.push(Some(kept.len()));
                    kept.push_row_of(rows, row);
                }
                _ => unreachable!("kept contents have the slot's shape"),
            }
        }
        self.row_count += 1;
        self.row_count - 1
    }

    /// Bytes of the kept rows.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// Filling is over: the kept rows become the slots' contents.
    pub(crate) fn exchange(&mut self, frame: &mut Frame) {
        for (&slot, other) in self.slots.iter().zip(&mut self.other_contents) {
            std::mem::swap(&mut frame.slots[slot].content, other);
            frame.slots[slot].row = None;
        }
    }

    /// Makes a kept row current, or rows of NULLs.
    pub(crate) fn set(&self, frame: &mut Frame, kept_row: Option<usize>) {
        let width = self.slots.len();
        for (place, &slot) in self.slots.iter().enumerate() {
            frame.slots[slot].row = kept_row.and_then(|row| self.places[row * width + place]);
        }
    }
}
