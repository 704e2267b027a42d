//! A worker's undo segment: where its transactions' older versions go.
//!
//! A segment is a tablespace of its own with a chain of undo pages. Its directory page says where
//! the chain begins and ends. Only its worker appends, so the place of the next record is known
//! before the page is latched.

use btree::space::{self, Reservation};
use btree::{Change, Latched, Pages, damaged};
use format::page_bytes::PageBytes;
use format::page_op::PageOp;
use format::{PAGE_HEADER_BYTES, PageId, PageNo, PageType, SpaceId, UndoPointer, undo};
use std::cell::Cell;
use store::{Outcome, StoreError};

/// Spaces of undo segments follow the system space.
pub(crate) const FIRST_SPACE: u32 = 1;
/// The first space that a table may have.
pub(crate) const TABLE_SPACES_START: u32 = 1024;

const _: () = assert!(
    FIRST_SPACE + u8::MAX as u32 <= TABLE_SPACES_START,
    "segments and tables have different tablespaces"
);
/// The directory page of a segment.
pub(crate) const DIRECTORY: PageNo = PageNo(2);
const TAIL_AT: usize = PAGE_HEADER_BYTES;
const LAST_AT: usize = PAGE_HEADER_BYTES + 4;

/// The tablespace of an undo segment.
pub(crate) fn space_of(segment: u8) -> SpaceId {
    SpaceId(FIRST_SPACE + u32::from(segment))
}

/// The place of a new record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UndoPlace {
    /// Its page, latched.
    pub(crate) page: Latched,
    /// Its pointer.
    pub(crate) pointer: UndoPointer,
}

/// The writer of a segment.
#[derive(Debug)]
pub(crate) struct UndoLog {
    /// Which segment. Constant.
    segment: u8,
    /// The last page of the chain.
    last: Cell<PageNo>,
}

impl UndoLog {
    /// Makes a new segment in an empty tablespace.
    pub(crate) fn create(pages: &Pages, segment: u8) -> Outcome<()> {
        let space = space_of(segment);
        let mut change = pages.change()?;
        let types = [PageType::UndoHeader, PageType::Undo];
        let Some(taken) = Reservation::make(&mut change, space, &types)? else {
            drop(change);
            space::grow(pages, space)?;
            return Self::create(pages, segment);
        };
        let (directory_no, directory) = taken.page(0);
        let (first_no, first) = taken.page(1);
        assert_eq!(
            directory_no, DIRECTORY,
            "a new space gives its pages in order"
        );
        taken.take(&mut change)?;
        let ends = [first_no.0.to_le_bytes(), first_no.0.to_le_bytes()].concat();
        apply(&mut change, directory, &PageOp::BodyFill { bytes: &ends })?;
        apply(
            &mut change,
            first,
            &PageOp::BodyFill {
                bytes: &undo::empty_body(),
            },
        )?;
        change.commit();
        Ok(())
    }

    /// The writer of an existing segment.
    pub(crate) fn open(pages: &Pages, segment: u8) -> Outcome<Self> {
        let (_, last) = ends(pages, segment)?;
        Ok(Self {
            segment,
            last: Cell::new(last),
        })
    }

    /// For a worker that only takes changes back, and whose segment may be lost: nothing is added.
    pub(crate) fn without_end(segment: u8) -> Self {
        Self {
            segment,
            last: Cell::new(DIRECTORY),
        }
    }

    /// Latches the page for a record of `length` bytes. Returns `None` if there is no room: the
    /// caller drops the change, calls [`UndoLog::make_room`], and begins again.
    ///
    /// # Panics
    /// If no page would have room for it.
    pub(crate) fn place(
        &self,
        change: &mut Change<'_>,
        length: usize,
    ) -> Outcome<Option<UndoPlace>> {
        let id = PageId::new(space_of(self.segment), self.last.get());
        assert!(id.page != DIRECTORY, "the segment's end was read");
        let room = change.page_bytes() - undo::UNDO_RECORDS_START;
        assert!(length <= room, "a record fits into an empty page");
        let page = change.latch(id)?;
        let used = undo::used(change.bytes(page))
            .ok_or_else(|| damaged(id, "an undo page's end is not in it"))?;
        if change.bytes(page).len() < used + length {
            return Ok(None);
        }
        let offset = u16::try_from(used).expect("an offset in a page");
        let pointer = UndoPointer::new(self.segment, id.page, offset);
        assert_eq!(
            page_of(pointer),
            id,
            "the pointer leads to the latched page"
        );
        Ok(Some(UndoPlace { page, pointer }))
    }

    /// Adds a page to the chain.
    pub(crate) fn make_room(&self, pages: &Pages) -> Outcome<()> {
        let space = space_of(self.segment);
        loop {
            let mut change = pages.change()?;
            let directory = change.latch(PageId::new(space, DIRECTORY))?;
            let old = change.latch(PageId::new(space, self.last.get()))?;
            let Some(taken) = Reservation::make(&mut change, space, &[PageType::Undo])? else {
                drop(change);
                space::grow(pages, space)?;
                continue;
            };
            let (no, page) = taken.page(0);
            assert!(
                no != DIRECTORY && no != self.last.get(),
                "the chain is no circle"
            );
            taken.take(&mut change)?;
            let number = no.0.to_le_bytes();
            apply(
                &mut change,
                page,
                &PageOp::BodyFill {
                    bytes: &undo::empty_body(),
                },
            )?;
            put(&mut change, old, undo::UNDO_NEXT, &number)?;
            put(&mut change, directory, LAST_AT, &number)?;
            change.commit();
            self.last.set(no);
            return Ok(());
        }
    }
}

/// First and last page of a segment's chain.
pub(crate) fn ends(pages: &Pages, segment: u8) -> Outcome<(PageNo, PageNo)> {
    let id = PageId::new(space_of(segment), DIRECTORY);
    let page = pages.shared(id)?;
    let read = || Some((page.bytes().u32_at(TAIL_AT)?, page.bytes().u32_at(LAST_AT)?));
    let (tail, last) = read().ok_or_else(|| damaged(id, "no undo directory"))?;
    Ok((PageNo(tail), PageNo(last)))
}

/// Gives back a page of the chain, which must not be the last. `before` is the page before it;
/// `None` if it is the first.
pub(crate) fn drop_page(
    pages: &Pages,
    segment: u8,
    before: Option<PageNo>,
    no: PageNo,
) -> Outcome<()> {
    let space = space_of(segment);
    let id = PageId::new(space, no);
    let (tail, last) = ends(pages, segment)?;
    if no == last {
        return Err(damaged(id, "the last undo page has a next one"));
    }
    assert_eq!(
        before.is_none(),
        no == tail,
        "the chain begins with its tail"
    );
    let mut change = pages.change()?;
    let directory = change.latch(PageId::new(space, DIRECTORY))?;
    let page = change.latch(id)?;
    let before = before.map(|before| change.latch(PageId::new(space, before)));
    let before = before.transpose()?;
    let next = undo::next_page(change.bytes(page))
        .ok_or_else(|| damaged(id, "the undo chain ends early"))?
        .to_le_bytes();
    let release = space::Release::make(&mut change, page)?;
    match before {
        None => put(&mut change, directory, TAIL_AT, &next)?,
        Some(before) => {
            let old = undo::next_page(change.bytes(before));
            assert_eq!(old, Some(no.0), "the pages stand behind each other");
            put(&mut change, before, undo::UNDO_NEXT, &next)?;
        }
    }
    release.give_back(&mut change)?;
    change.commit();
    Ok(())
}

/// Copies the record at `pointer` to `out`.
pub(crate) fn read_record(pages: &Pages, pointer: UndoPointer, out: &mut Vec<u8>) -> Outcome<()> {
    assert!(!pointer.is_null(), "the first record has none before it");
    let id = page_of(pointer);
    let offset = usize::from(pointer.offset());
    {
        let page = pages.optimistic(id)?;
        if undo::copy_record(&page, offset, out).is_some() && page.is_valid() {
            return Ok(());
        }
    }
    let page = pages.shared(id)?;
    undo::copy_record(page.bytes(), offset, out)
        .ok_or_else(|| damaged(id, "there is no undo record where one should be"))
}

/// Marks the record at `pointer` as settled. The caller has latched its page in `change`.
pub(crate) fn settle(change: &mut Change<'_>, page: Latched, pointer: UndoPointer) -> Outcome<()> {
    assert_eq!(
        change.id(page),
        page_of(pointer),
        "the record's page is latched"
    );
    let at = usize::from(pointer.offset()) + undo::UNDO_KIND_AT;
    let kind = change.bytes(page).u8_at(at).unwrap_or(0);
    put(change, page, at, &[kind | undo::SETTLED])
}

/// The page of a record.
pub(crate) fn page_of(pointer: UndoPointer) -> PageId {
    PageId::new(space_of(pointer.segment()), pointer.page())
}

/// Applies an operation that must succeed.
pub(crate) fn apply(change: &mut Change<'_>, page: Latched, op: &PageOp<'_>) -> Outcome<()> {
    let id = change.id(page);
    change
        .apply(page, op)
        .map_err(|error| StoreError::damaged_page(id, format!("page {id}: {error}")).into())
}

/// Overwrites bytes of a page.
pub(crate) fn put(change: &mut Change<'_>, page: Latched, at: usize, bytes: &[u8]) -> Outcome<()> {
    let offset = u16::try_from(at).expect("an offset in a page");
    apply(change, page, &PageOp::BytesPut { offset, bytes })
}
