//! [`KeptSlots`]: copies of slots' current rows, to make them current again later.
//!
//! Hash joins and sorts read their whole input before they return a row. The copies have the shape
//! of their slots and stand in packs, so no large buffer is ever moved. To return a row, its pack
//! is exchanged with the slot's content. The former content stands in the pack's place until
//! filling begins again. A nested-loop join that looks up many left rows at once fills several
//! times, and its left side goes on in between.
//!
//! (I1) When filling begins again, a slot holds what it held when filling ended. So operators below
//! that exchange contents of the same slots find theirs.

use expression::{Failure, Frame, Rows, SlotContent, Statement};
use stdx::{ChunkedVec, DeferredDropVec};
use store::RowBatch;

#[derive(Debug, Default)]
pub(crate) struct KeptSlots {
    slots: Vec<KeptSlot>,
    /// For each kept row and slot, its place.
    places: ChunkedVec<Place>,
    row_count: usize,
    bytes: usize,
}

/// The kept rows of one slot.
#[derive(Debug)]
struct KeptSlot {
    slot: usize,
    packs: DeferredDropVec<SlotContent>,
    /// The pack that is currently the slot's content.
    shown: Option<usize>,
    /// The current row when filling ended, once another was set; for `resume`.
    own_row: Option<Option<usize>>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    pack: u32,
    /// The row in the pack; [`NO_ROW`] is a row of NULLs.
    row: u32,
}

const NO_ROW: u32 = u32::MAX;

/// A pack of table rows is full above this.
const PACK_BYTES: usize = 256 << 10;

impl KeptSlots {
    /// Keeps rows of these slots.
    pub(crate) fn new(slots: &[usize]) -> Self {
        let slots = slots.iter().map(|&slot| KeptSlot {
            slot,
            packs: DeferredDropVec::new(),
            shown: None,
            own_row: None,
        });
        Self {
            slots: slots.collect(),
            ..Self::default()
        }
    }

    /// Drops the kept rows and begins filling.
    pub(crate) fn start(&mut self, frame: &mut Frame) {
        self.places.clear();
        self.row_count = 0;
        self.bytes = 0;
        for kept in &mut self.slots {
            kept.hide(frame);
            kept.own_row = None;
            kept.packs.clear();
        }
    }

    /// As `start`, where the operators below go on: their current rows are current again, too.
    pub(crate) fn resume(&mut self, frame: &mut Frame) {
        for kept in &self.slots {
            if let Some(row) = kept.own_row {
                frame.slots[kept.slot].row = row;
            }
        }
        self.start(frame);
    }

    /// Copies the slots' current rows. Returns the number by which they are set again.
    pub(crate) fn keep(&mut self, frame: &Frame) -> usize {
        for kept in &mut self.slots {
            let (place, bytes) = kept.keep(frame);
            self.places.push(place);
            self.bytes += bytes;
        }
        self.row_count += 1;
        self.row_count - 1
    }

    /// Keeps these of the kept rows alone, in this order. None of them is current.
    ///
    /// # Errors
    /// Those of [`Statement::spend`], which is told of the bytes that are copied.
    pub(crate) fn retain(
        &mut self,
        rows: impl Iterator<Item = usize>,
        statement: &Statement<'_>,
    ) -> Result<(), Failure> {
        let width = self.slots.len();
        let places = std::mem::take(&mut self.places);
        let packs: Vec<_> = self
            .slots
            .iter_mut()
            .map(|kept| {
                assert!(kept.shown.is_none(), "no kept row is current");
                std::mem::take(&mut kept.packs)
            })
            .collect();
        (self.row_count, self.bytes) = (0, 0);
        for row in rows {
            for (index, kept) in self.slots.iter_mut().enumerate() {
                let place = places[row * width + index];
                let from = (place.row != NO_ROW).then(|| {
                    let pack = &packs[index][place.pack as usize];
                    (pack, place.row as usize)
                });
                let (place, bytes) = kept.copy(from);
                statement.spend(bytes)?;
                self.places.push(place);
                self.bytes += bytes;
            }
            self.row_count += 1;
        }
        Ok(())
    }

    /// True if no row is kept.
    pub(crate) fn is_empty(&self) -> bool {
        self.row_count == 0
    }

    /// Bytes of the kept rows.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes + self.places.memory_bytes()
    }

    /// Makes a kept row current, or rows of NULLs.
    pub(crate) fn set(&mut self, frame: &mut Frame, kept_row: Option<usize>) {
        let width = self.slots.len();
        for (index, kept) in self.slots.iter_mut().enumerate() {
            let place = kept_row.map(|row| self.places[row * width + index]);
            let place = place.filter(|place| place.row != NO_ROW);
            kept.own_row.get_or_insert(frame.slots[kept.slot].row);
            if let Some(place) = place {
                kept.show(place.pack as usize, frame);
            }
            frame.slots[kept.slot].row = place.map(|place| place.row as usize);
        }
    }
}

impl KeptSlot {
    /// Copies the slot's current row. Also returns its bytes.
    fn keep(&mut self, frame: &Frame) -> (Place, usize) {
        let slot = &frame.slots[self.slot];
        self.copy(slot.row.map(|row| (&slot.content, row)))
    }

    /// Copies a row, or one of NULLs. Also returns its bytes.
    fn copy(&mut self, from: Option<(&SlotContent, usize)>) -> (Place, usize) {
        let Some((content, row)) = from else {
            let (pack, row) = (0, NO_ROW);
            return (Place { pack, row }, 0);
        };
        if self.packs.last().is_none_or(is_full) {
            self.packs.push(empty_like(content));
        }
        let pack = self.packs.last_mut().expect("pushed above");
        let (kept_row, bytes) = match (content, pack) {
            (SlotContent::Batch(batch), SlotContent::Batch(pack)) => {
                let before = pack.memory_bytes();
                let bytes = batch.row(row);
                pack.push(batch.key(row).0, |buffer| buffer.extend_from_slice(bytes));
                (pack.len() - 1, pack.memory_bytes() - before)
            }
            (SlotContent::Rows(rows), SlotContent::Rows(pack)) => {
                let before = pack.memory_bytes();
                pack.push_row_of(rows, row);
                (pack.len() - 1, pack.memory_bytes() - before)
            }
            _ => unreachable!("kept contents have the slot's shape"),
        };
        let place = Place {
            pack: stdx::to_u32(self.packs.len() - 1),
            row: stdx::to_u32(kept_row),
        };
        (place, bytes)
    }

    /// Makes a pack the slot's content.
    fn show(&mut self, pack: usize, frame: &mut Frame) {
        if self.shown != Some(pack) {
            self.hide(frame);
            self.exchange(pack, frame);
            self.shown = Some(pack);
        }
    }

    /// Restores the slot's former content.
    fn hide(&mut self, frame: &mut Frame) {
        if let Some(pack) = self.shown.take() {
            self.exchange(pack, frame);
        }
    }

    fn exchange(&mut self, pack: usize, frame: &mut Frame) {
        std::mem::swap(&mut frame.slots[self.slot].content, &mut self.packs[pack]);
    }
}

/// Computed rows grow in chunks by themselves; table rows do not.
fn is_full(pack: &SlotContent) -> bool {
    match pack {
        SlotContent::Batch(batch) => PACK_BYTES <= batch.memory_bytes(),
        SlotContent::Rows(_) => false,
    }
}

fn empty_like(content: &SlotContent) -> SlotContent {
    match content {
        SlotContent::Batch(batch) => SlotContent::Batch(RowBatch::new(batch.layout().clone())),
        SlotContent::Rows(rows) => SlotContent::Rows(Rows::new(rows.width())),
    }
}
