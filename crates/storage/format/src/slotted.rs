//! The slotted page of a B+tree: sorted keys with payloads between two fences.
//!
//! Layout and reasons: `docs/formats/tree_page.md`. Everything here is bytes in, bytes out.
//!
//! (I1) Slots are strictly ascending by key; each key is at or above the lower fence and below the
//! upper one. An absent upper fence is plus infinity; an empty lower fence is minus infinity.
//! (I2) The first `prefix_length` bytes, which both fences share, are stored in the lower fence
//! alone: a cell holds the bytes after them.
//! (I3) `heap_start` is the lowest byte of any cell or fence, `garbage` counts the bytes between it
//! and the page's end that no cell or fence owns.
//! (I4) A mutation that fails has changed nothing.
//!
//! Reads are generic over [`PageBytes`], so the optimistic reader and the latched one run the same
//! code. Mutations take the slice of an exclusively latched page, at run time and at redo alike.

use std::cmp::Ordering;

use crate::page::{PAGE_HEADER_BYTES, PAGE_LSN_AT, PAGE_NO_AT};
use crate::page_bytes::{PageBytes, PageBytesMut};
use crate::{Lsn, PageNo};

mod verify;

pub use verify::verify;

/// First byte of the body of every tree page.
pub const TREE_PAGE_KIND: u8 = 0xB7;
/// Bytes of a slot: the key's head and the cell's offset.
pub const SLOT_BYTES: usize = 6;
/// Bytes of a cell before its key: two lengths.
pub const CELL_HEADER_BYTES: usize = 4;
/// Where the slot directory starts.
pub const SLOTS_START: usize = PAGE_HEADER_BYTES + 24;

const KIND: usize = PAGE_HEADER_BYTES;
const LEVEL: usize = PAGE_HEADER_BYTES + 1;
const FLAGS: usize = PAGE_HEADER_BYTES + 2;
const RUN_LENGTH: usize = PAGE_HEADER_BYTES + 3;
const SLOT_COUNT: usize = PAGE_HEADER_BYTES + 4;
const HEAP_START: usize = PAGE_HEADER_BYTES + 6;
const GARBAGE: usize = PAGE_HEADER_BYTES + 8;
const PREFIX_LENGTH: usize = PAGE_HEADER_BYTES + 10;
const LOWER_LENGTH: usize = PAGE_HEADER_BYTES + 12;
const UPPER_LENGTH: usize = PAGE_HEADER_BYTES + 14;
const INDEX_ID: usize = PAGE_HEADER_BYTES + 16;

const FLAG_HAS_UPPER: u8 = 1;

/// Why a page could not be changed, or is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// The change does not fit even after compaction: split and try again.
    #[error("the page is full")]
    Full,
    /// The bytes contradict themselves.
    #[error("the page is damaged: {what}")]
    Damaged {
        /// Which rule is broken.
        what: &'static str,
    },
}

const fn damaged(what: &'static str) -> ChangeError {
    ChangeError::Damaged { what }
}

/// The place of a key, or where it would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Index of the first slot whose key is not below the wanted one.
    pub slot: usize,
    /// Whether that slot has exactly the key.
    pub is_match: bool,
}

/// A run of bytes in the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// First byte.
    pub offset: usize,
    /// Number of bytes.
    pub length: usize,
}

/// A read view of a tree page. All methods return `None` if the bytes point outside the page.
#[derive(Debug)]
pub struct TreePage<'a, P: PageBytes + ?Sized> {
    /// The page, borrowed from a latch or an optimistic read.
    page: &'a P,
}

impl<P: PageBytes + ?Sized> Clone for TreePage<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: PageBytes + ?Sized> Copy for TreePage<'_, P> {}

impl<'a, P: PageBytes + ?Sized> TreePage<'a, P> {
    /// Views `page` as a tree page; `None` if it is of another kind.
    pub fn new(page: &'a P) -> Option<Self> {
        (page.u8_at(KIND)? == TREE_PAGE_KIND).then_some(Self { page })
    }

    /// 0 for a leaf.
    pub fn level(self) -> Option<u8> {
        self.page.u8_at(LEVEL)
    }

    /// Entries in the page.
    #[inline]
    pub fn slot_count(self) -> Option<usize> {
        self.page.u16_at(SLOT_COUNT).map(usize::from)
    }

    /// The index that the page belongs to.
    pub fn index_id(self) -> Option<u64> {
        self.page.u64_at(INDEX_ID)
    }

    /// The page's number within its tablespace.
    pub fn number(self) -> Option<PageNo> {
        self.page.u32_at(PAGE_NO_AT).map(PageNo)
    }

    /// The LSN of the last change of the page.
    pub fn lsn(self) -> Option<Lsn> {
        self.page.u64_at(PAGE_LSN_AT).map(Lsn)
    }

    /// Bytes that all keys share.
    #[inline]
    pub fn prefix_length(self) -> Option<usize> {
        self.page.u16_at(PREFIX_LENGTH).map(usize::from)
    }

    /// Whether there is an upper fence.
    pub fn has_upper(self) -> Option<bool> {
        Some(self.page.u8_at(FLAGS)? & FLAG_HAS_UPPER != 0)
    }

    /// How many entries were put into the page one behind the other, of which the last stands
    /// before `slot`: 0 if the last entry that was put there is another one. At most 256.
    pub fn run_before(self, slot: usize) -> Option<usize> {
        let Some(last) = slot.checked_sub(1) else {
            return Some(0);
        };
        // The cell that was written last is the lowest one.
        let is_last = self.cell(last)?.0 == usize::from(self.page.u16_at(HEAP_START)?);
        let run = usize::from(self.page.u8_at(RUN_LENGTH)?) + 1;
        Some(if is_last { run } else { 0 })
    }

    /// Where the lower fence is: the last bytes of the page.
    fn lower(self) -> Option<Extent> {
        let length = usize::from(self.page.u16_at(LOWER_LENGTH)?);
        Some(Extent {
            offset: self.page.length().checked_sub(length)?,
            length,
        })
    }

    /// Where the upper fence is: before the lower one.
    fn upper(self) -> Option<Extent> {
        let length = usize::from(self.page.u16_at(UPPER_LENGTH)?);
        Some(Extent {
            offset: self.lower()?.offset.checked_sub(length)?,
            length,
        })
    }

    /// Appends the lower fence to `out`.
    pub fn append_lower(self, out: &mut Vec<u8>) -> Option<()> {
        let lower = self.lower()?;
        self.page.append_to(lower.offset, lower.length, out)
    }

    /// Appends the upper fence to `out`. Returns whether there is one.
    pub fn append_upper(self, out: &mut Vec<u8>) -> Option<bool> {
        if !self.has_upper()? {
            return Some(false);
        }
        let upper = self.upper()?;
        self.page.append_to(upper.offset, upper.length, out)?;
        Some(true)
    }

    /// Whether `key` lies between the fences.
    pub fn covers(self, key: &[u8]) -> Option<bool> {
        let lower = self.lower()?;
        if self.page.compare(lower.offset, lower.length, key)? == Ordering::Greater {
            return Some(false);
        }
        if !self.has_upper()? {
            return Some(true);
        }
        let upper = self.upper()?;
        Some(self.page.compare(upper.offset, upper.length, key)? == Ordering::Greater)
    }

    /// Whether the place just below `key` lies between the fences.
    pub fn covers_below(self, key: &[u8]) -> Option<bool> {
        let lower = self.lower()?;
        if self.page.compare(lower.offset, lower.length, key)? != Ordering::Less {
            return Some(false);
        }
        if !self.has_upper()? {
            return Some(true);
        }
        let upper = self.upper()?;
        Some(self.page.compare(upper.offset, upper.length, key)? != Ordering::Less)
    }

    #[inline]
    fn slot_offset(slot: usize) -> usize {
        SLOTS_START + slot * SLOT_BYTES
    }

    /// Offset, key suffix length and payload length of a slot's cell.
    #[inline]
    fn cell(self, slot: usize) -> Option<(usize, usize, usize)> {
        let offset = usize::from(self.page.u16_at(Self::slot_offset(slot) + 4)?);
        let key_length = usize::from(self.page.u16_at(offset)?);
        let payload_length = usize::from(self.page.u16_at(offset + 2)?);
        Some((offset, key_length, payload_length))
    }

    /// Where the payload of `slot` is. The slot must be below `slot_count`.
    #[inline]
    pub fn payload(self, slot: usize) -> Option<Extent> {
        let (offset, key_length, length) = self.cell(slot)?;
        let offset = offset + CELL_HEADER_BYTES + key_length;
        (offset + length <= self.page.length()).then_some(Extent { offset, length })
    }

    /// Appends the payload of `slot` to `out`.
    #[inline]
    pub fn append_payload(self, slot: usize, out: &mut Vec<u8>) -> Option<()> {
        let extent = self.payload(slot)?;
        self.page.append_to(extent.offset, extent.length, out)
    }

    /// Appends the whole key of `slot` to `out`.
    pub fn append_key(self, slot: usize, out: &mut Vec<u8>) -> Option<()> {
        let lower = self.lower()?;
        let prefix_length = self.prefix_length()?;
        if lower.length < prefix_length {
            return None;
        }
        self.page.append_to(lower.offset, prefix_length, out)?;
        let (offset, key_length, _) = self.cell(slot)?;
        self.page
            .append_to(offset + CELL_HEADER_BYTES, key_length, out)
    }

    /// The child page of `slot` in an inner page.
    #[inline]
    pub fn child(self, slot: usize) -> Option<u32> {
        let extent = self.payload(slot)?;
        if extent.length != 4 {
            None
        } else {
            self.page.u32_at(extent.offset)
        }
    }

    /// Binary search for a key that lies between the fences.
    #[inline]
    pub fn search(self, key: &[u8]) -> Option<Position> {
        let suffix = key.get(self.prefix_length()?..)?;
        let head = key_head(suffix);
        let (mut low, mut high) = (0, self.slot_count()?);
        while low < high {
            let middle = low.midpoint(high);
            match self.compare_slot(middle, head, suffix)? {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => {
                    return Some(Position {
                        slot: middle,
                        is_match: true,
                    });
                }
            }
        }
        Some(Position {
            slot: low,
            is_match: false,
        })
    }

    #[inline]
    fn compare_slot(self, slot: usize, head: u32, suffix: &[u8]) -> Option<Ordering> {
        let offset = Self::slot_offset(slot);
        let order = self.page.u32_at(offset)?.cmp(&head);
        if order != Ordering::Equal {
            return Some(order);
        }
        let cell = usize::from(self.page.u16_at(offset + 4)?);
        let key_length = usize::from(self.page.u16_at(cell)?);
        self.page
            .compare(cell + CELL_HEADER_BYTES, key_length, suffix)
    }

    /// In an inner page, the slot of the child that covers `key`.
    #[inline]
    pub fn search_child(self, key: &[u8]) -> Option<usize> {
        let position = self.search(key)?;
        if position.is_match {
            Some(position.slot)
        } else {
            position.slot.checked_sub(1)
        }
    }

    /// Bytes that an insertion may take, including slots, after compaction.
    pub fn free_bytes(self) -> Option<usize> {
        let heap_start = usize::from(self.page.u16_at(HEAP_START)?);
        let garbage = usize::from(self.page.u16_at(GARBAGE)?);
        Some(heap_start.checked_sub(Self::slot_offset(self.slot_count()?))? + garbage)
    }

    /// Bytes that the entries take, including slots: those that are neither free nor part of a
    /// fence.
    pub fn live_bytes(self) -> Option<usize> {
        let room = self.upper()?.offset.checked_sub(SLOTS_START)?;
        room.checked_sub(self.free_bytes()?)
    }

    /// Bytes that a cell with this whole key and payload takes here, including its slot.
    pub fn cell_cost(self, key_length: usize, payload_length: usize) -> Option<usize> {
        let suffix = key_length.checked_sub(self.prefix_length()?)?;
        Some(SLOT_BYTES + CELL_HEADER_BYTES + suffix + payload_length)
    }

    /// Bytes of the cell of `slot`, including its slot.
    pub fn slot_cost(self, slot: usize) -> Option<usize> {
        let (_, key_length, payload_length) = self.cell(slot)?;
        Some(SLOT_BYTES + CELL_HEADER_BYTES + key_length + payload_length)
    }
}

/// First four bytes of a key suffix as a number with the same order; short suffixes are padded with
/// 0.
#[inline]
pub fn key_head(suffix: &[u8]) -> u32 {
    if let Some(chunk) = suffix.first_chunk::<4>() {
        return u32::from_be_bytes(*chunk);
    }
    let mut bytes = [0; 4];
    for (to, from) in bytes.iter_mut().zip(suffix) {
        *to = *from;
    }
    u32::from_be_bytes(bytes)
}

/// Length of the longest common start of two byte strings.
pub fn common_prefix(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(a, b)| a == b).count()
}

/// The shortest key that is above `left` and at most `right`, for `left < right`.
pub fn separator<'a>(left: &[u8], right: &'a [u8]) -> &'a [u8] {
    assert!(left < right, "separators stand between ascending keys");
    let length = common_prefix(left, right) + 1;
    right.get(..length).unwrap_or(right)
}

/// The parameters of an empty tree page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreePageShape<'a> {
    /// 0 for a leaf.
    pub level: u8,
    /// The index that the page belongs to.
    pub index_id: u64,
    /// Lowest possible key; empty for minus infinity.
    pub lower: &'a [u8],
    /// First key above the page; `None` for plus infinity.
    pub upper: Option<&'a [u8]>,
}

/// Makes the body of `page` an empty tree page; the common page header is unchanged.
pub fn init<P: PageBytesMut + ?Sized>(
    page: &mut P,
    shape: TreePageShape<'_>,
) -> Result<(), ChangeError> {
    let upper = shape.upper.unwrap_or_default();
    let prefix_length = shape
        .upper
        .map_or(0, |upper| common_prefix(shape.lower, upper));
    let fences = shape.lower.len() + upper.len();
    let length = page.bytes().len();
    let heap_start = length.checked_sub(fences).ok_or(ChangeError::Full)?;
    if heap_start < SLOTS_START {
        return Err(ChangeError::Full);
    }
    let flags = if shape.upper.is_some() {
        FLAG_HAS_UPPER
    } else {
        0
    };
    let mut fill = || -> Option<()> {
        page.clear(PAGE_HEADER_BYTES, length - PAGE_HEADER_BYTES)?;
        page.put(KIND, &[TREE_PAGE_KIND, shape.level, flags, 0])?;
        page.put_u16(HEAP_START, u16::try_from(heap_start).ok()?)?;
        page.put_u16(PREFIX_LENGTH, u16::try_from(prefix_length).ok()?)?;
        page.put_u16(LOWER_LENGTH, u16::try_from(shape.lower.len()).ok()?)?;
        page.put_u16(UPPER_LENGTH, u16::try_from(upper.len()).ok()?)?;
        page.put(INDEX_ID, &shape.index_id.to_le_bytes())?;
        page.put(heap_start, upper)?;
        page.put(heap_start + upper.len(), shape.lower)
    };
    fill().ok_or(damaged(
        "a page is shorter than its header or longer than 64 KiB",
    ))
}

/// Inserts a whole key with its payload as slot number `slot`.
pub fn insert<P: PageBytesMut + ?Sized>(
    page: &mut P,
    slot: usize,
    key: &[u8],
    payload: &[u8],
) -> Result<(), ChangeError> {
    let view = view(page.bytes())?;
    let count = view.slot_count().ok_or(damaged("header"))?;
    let prefix_length = view.prefix_length().ok_or(damaged("header"))?;
    let suffix = key
        .get(prefix_length..)
        .ok_or(damaged("a key lacks the page's prefix"))?;
    if count < slot {
        return Err(damaged("an insertion past the last slot"));
    }
    let cell_bytes = CELL_HEADER_BYTES + suffix.len() + payload.len();
    if view.free_bytes().ok_or(damaged("free space"))? < cell_bytes + SLOT_BYTES {
        return Err(ChangeError::Full);
    }
    let run = view.run_before(slot).ok_or(damaged("cell"))?;
    if contiguous(page.bytes()).ok_or(damaged("free space"))? < cell_bytes + SLOT_BYTES {
        compact(page, None)?;
    }
    let mut write = || -> Option<()> {
        let offset = write_cell(page, suffix, payload)?;
        let at = SLOTS_START + slot * SLOT_BYTES;
        let end = SLOTS_START + count * SLOT_BYTES;
        page.move_within(at..end, at + SLOT_BYTES)?;
        page.put(at, &key_head(suffix).to_le_bytes())?;
        page.put_u16(at + 4, offset)?;
        page.put(RUN_LENGTH, &[u8::try_from(run).unwrap_or(u8::MAX)])?;
        page.put_u16(SLOT_COUNT, u16::try_from(count + 1).ok()?)
    };
    write().ok_or(damaged("an insertion leaves the page"))
}

/// Removes slot number `slot`.
pub fn remove<P: PageBytesMut + ?Sized>(page: &mut P, slot: usize) -> Result<(), ChangeError> {
    let view = view(page.bytes())?;
    let count = view.slot_count().ok_or(damaged("header"))?;
    if count <= slot {
        return Err(damaged("a removal past the last slot"));
    }
    let cost = view.slot_cost(slot).ok_or(damaged("cell"))?;
    let mut write = || -> Option<()> {
        let at = SLOTS_START + slot * SLOT_BYTES;
        let end = SLOTS_START + count * SLOT_BYTES;
        page.move_within(at + SLOT_BYTES..end, at)?;
        add_garbage(page, cost - SLOT_BYTES)?;
        page.put_u16(SLOT_COUNT, u16::try_from(count - 1).ok()?)
    };
    write().ok_or(damaged("a removal leaves the page"))
}

/// Replaced bytes of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Splice<'a> {
    /// Offset in the payload of the first removed byte.
    pub offset: usize,
    /// Number of removed bytes.
    pub removed: usize,
    /// The bytes in their place.
    pub inserted: &'a [u8],
}

/// Replaces bytes in the payload of `slot`; the payload may grow or shrink.
pub fn splice<P: PageBytesMut + ?Sized>(
    page: &mut P,
    slot: usize,
    change: Splice<'_>,
) -> Result<(), ChangeError> {
    let view = view(page.bytes())?;
    if view.slot_count().ok_or(damaged("header"))? <= slot {
        return Err(damaged("a change past the last slot"));
    }
    let payload = view.payload(slot).ok_or(damaged("cell"))?;
    let removed_end = change.offset.checked_add(change.removed);
    if removed_end.is_none_or(|end| payload.length < end) {
        return Err(damaged("a change past the end of a payload"));
    }
    if change.inserted.len() <= change.removed {
        return splice_in_place(page, slot, payload, change)
            .ok_or(damaged("a change leaves the page"));
    }
    splice_moving(page, slot, payload, change)
}

fn splice_in_place<P: PageBytesMut + ?Sized>(
    page: &mut P,
    slot: usize,
    payload: Extent,
    change: Splice<'_>,
) -> Option<()> {
    let at = payload.offset + change.offset;
    page.put(at, change.inserted)?;
    let shrink = change.removed - change.inserted.len();
    if shrink == 0 {
        return Some(());
    }
    page.move_within(
        at + change.removed..payload.offset + payload.length,
        at + change.inserted.len(),
    )?;
    let (cell, _, _) = TreePage::new(page.bytes())?.cell(slot)?;
    page.put_u16(cell + 2, u16::try_from(payload.length - shrink).ok()?)?;
    add_garbage(page, shrink)
}

fn splice_moving<P: PageBytesMut + ?Sized>(
    page: &mut P,
    slot: usize,
    payload: Extent,
    change: Splice<'_>,
) -> Result<(), ChangeError> {
    let view = view(page.bytes())?;
    let cost = view.slot_cost(slot).ok_or(damaged("cell"))?;
    let grown = change.inserted.len() - change.removed;
    if view.free_bytes().ok_or(damaged("free space"))? < grown {
        return Err(ChangeError::Full);
    }
    let old_bytes = cost - SLOT_BYTES;
    let mut moved = Vec::with_capacity(old_bytes + grown);
    let (_, key_length, _) = view.cell(slot).ok_or(damaged("cell"))?;
    let start = payload.offset - key_length;
    let cut = payload.offset + change.offset;
    let tail = cut + change.removed;
    let end = payload.offset + payload.length;
    moved.extend_from_slice(page.bytes().get(start..cut).ok_or(damaged("cell"))?);
    moved.extend_from_slice(change.inserted);
    moved.extend_from_slice(page.bytes().get(tail..end).ok_or(damaged("cell"))?);
    if contiguous(page.bytes()).ok_or(damaged("free space"))? < old_bytes + grown {
        compact(page, Some(slot))?;
    } else {
        add_garbage(page, old_bytes).ok_or(damaged("garbage"))?;
    }
    let (suffix, payload) = moved.split_at(key_length);
    write_cell(page, suffix, payload)
        .and_then(|offset| page.put_u16(SLOTS_START + slot * SLOT_BYTES + 4, offset))
        .ok_or(damaged("a change leaves the page"))
}

/// Keeps the slots below `from` and makes `upper` the upper fence.
pub fn cut<P: PageBytesMut + ?Sized>(
    page: &mut P,
    from: usize,
    upper: &[u8],
) -> Result<(), ChangeError> {
    let old = page.bytes().to_vec();
    let view = view(&old)?;
    if view.slot_count().ok_or(damaged("header"))? < from {
        return Err(damaged("a cut past the last slot"));
    }
    let done = rebuild(page, view, Some(Some(upper)), 0..from);
    if done.is_err() {
        page.put(0, &old).expect("a copy is as long as its page");
    }
    done
}

/// Appends the cells of these slots to `out`, as [`extend`] reads them.
pub fn append_cells<P: PageBytes + ?Sized>(
    view: TreePage<'_, P>,
    slots: std::ops::Range<usize>,
    out: &mut Vec<u8>,
) -> Option<()> {
    for slot in slots {
        let (_, suffix_length, payload_length) = view.cell(slot)?;
        let key_length = suffix_length + view.prefix_length()?;
        out.extend_from_slice(&u16::try_from(key_length).ok()?.to_le_bytes());
        out.extend_from_slice(&u16::try_from(payload_length).ok()?.to_le_bytes());
        view.append_key(slot, out)?;
        view.append_payload(slot, out)?;
    }
    Some(())
}

/// Appends cells, as [`append_cells`] wrote them, after the last slot.
pub fn extend<P: PageBytesMut + ?Sized>(page: &mut P, cells: &[u8]) -> Result<(), ChangeError> {
    let old = page.bytes().to_vec();
    let done = push_cells(page, cells);
    if done.is_err() {
        page.put(0, &old).expect("a copy is as long as its page");
    }
    done
}

/// As [`extend`]; after an error some of the cells are there.
fn push_cells<P: PageBytesMut + ?Sized>(page: &mut P, mut cells: &[u8]) -> Result<(), ChangeError> {
    while !cells.is_empty() {
        let (key, payload, rest) = next_cell(cells).ok_or(damaged("a run of cells"))?;
        let count = view(page.bytes())?.slot_count().ok_or(damaged("header"))?;
        insert(page, count, key, payload)?;
        cells = rest;
    }
    page.put(RUN_LENGTH, &[0]).ok_or(damaged("header"))
}

/// The first cell of a run: key, payload and what follows.
pub fn next_cell(cells: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let key_length = usize::from(cells.u16_at(0)?);
    let payload_length = usize::from(cells.u16_at(2)?);
    let (key, rest) = cells
        .get(CELL_HEADER_BYTES..)?
        .split_at_checked(key_length)?;
    let (payload, rest) = rest.split_at_checked(payload_length)?;
    Some((key, payload, rest))
}

/// Widens the page up to `upper` (`None`: plus infinity) and appends `cells` after the last slot.
pub fn absorb<P: PageBytesMut + ?Sized>(
    page: &mut P,
    upper: Option<&[u8]>,
    cells: &[u8],
) -> Result<(), ChangeError> {
    let old = page.bytes().to_vec();
    let view = view(&old)?;
    let count = view.slot_count().ok_or(damaged("header"))?;
    let done = rebuild(page, view, Some(upper), 0..count).and_then(|()| push_cells(page, cells));
    if done.is_err() {
        page.put(0, &old).expect("a copy is as long as its page");
    }
    done
}

/// Rewrites `page` from `old` without gaps; `upper` replaces the upper fence if given. After an
/// error the page is neither.
#[expect(
    clippy::option_option,
    reason = "the outer one says whether, the inner one to what"
)]
fn rebuild<P: PageBytesMut + ?Sized>(
    page: &mut P,
    old: TreePage<'_, [u8]>,
    upper: Option<Option<&[u8]>>,
    slots: std::ops::Range<usize>,
) -> Result<(), ChangeError> {
    let mut lower = Vec::new();
    let mut kept = Vec::new();
    let mut cells = Vec::new();
    let read = || -> Option<(u8, u64, bool)> {
        old.append_lower(&mut lower)?;
        let has_upper = old.append_upper(&mut kept)?;
        append_cells(old, slots, &mut cells)?;
        Some((old.level()?, old.index_id()?, has_upper))
    };
    let (level, index_id, has_upper) = read().ok_or(damaged("cells"))?;
    let kept = has_upper.then_some(kept.as_slice());
    let shape = TreePageShape {
        level,
        index_id,
        lower: &lower,
        upper: upper.unwrap_or(kept),
    };
    init(page, shape)?;
    push_cells(page, &cells)
}

/// Closes the gaps between cells. The cell of `except`, if given, is dropped; its slot dangles
/// until the caller sets it.
fn compact<P: PageBytesMut + ?Sized>(
    page: &mut P,
    except: Option<usize>,
) -> Result<(), ChangeError> {
    let old = page.bytes().to_vec();
    let view = view(&old)?;
    let mut write = || -> Option<()> {
        let count = view.slot_count()?;
        page.put_u16(HEAP_START, u16::try_from(view.upper()?.offset).ok()?)?;
        page.put_u16(GARBAGE, 0)?;
        for slot in (0..count).filter(|&slot| Some(slot) != except) {
            let (offset, key_length, payload_length) = view.cell(slot)?;
            let start = offset + CELL_HEADER_BYTES;
            let suffix = old.get(start..start + key_length)?;
            let payload = old.get(start + key_length..start + key_length + payload_length)?;
            let moved = write_cell(page, suffix, payload)?;
            page.put_u16(SLOTS_START + slot * SLOT_BYTES + 4, moved)?;
        }
        Some(())
    };
    let done = write();
    if done.is_none() {
        page.put(0, &old).expect("a copy is as long as its page");
    }
    done.ok_or(damaged("cells overlap"))
}

fn view(page: &[u8]) -> Result<TreePage<'_, [u8]>, ChangeError> {
    TreePage::new(page).ok_or(damaged("not a tree page"))
}

fn contiguous(page: &[u8]) -> Option<usize> {
    let slots_end = SLOTS_START + usize::from(page.u16_at(SLOT_COUNT)?) * SLOT_BYTES;
    usize::from(page.u16_at(HEAP_START)?).checked_sub(slots_end)
}

fn add_garbage<P: PageBytesMut + ?Sized>(page: &mut P, bytes: usize) -> Option<()> {
    let garbage = usize::from(page.bytes().u16_at(GARBAGE)?) + bytes;
    page.put_u16(GARBAGE, u16::try_from(garbage).ok()?)
}

/// Writes a cell below the heap and returns its offset.
fn write_cell<P: PageBytesMut + ?Sized>(
    page: &mut P,
    suffix: &[u8],
    payload: &[u8],
) -> Option<u16> {
    let length = CELL_HEADER_BYTES + suffix.len() + payload.len();
    let offset = usize::from(page.bytes().u16_at(HEAP_START)?).checked_sub(length)?;
    if offset < SLOTS_START {
        return None;
    }
    page.put_u16(offset, u16::try_from(suffix.len()).ok()?)?;
    page.put_u16(offset + 2, u16::try_from(payload.len()).ok()?)?;
    page.put(offset + CELL_HEADER_BYTES, suffix)?;
    page.put(offset + CELL_HEADER_BYTES + suffix.len(), payload)?;
    let offset = u16::try_from(offset).ok()?;
    page.put_u16(HEAP_START, offset)?;
    Some(offset)
}

#[cfg(test)]
mod tests;
