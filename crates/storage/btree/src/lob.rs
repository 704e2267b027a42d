//! Values too large for a leaf: chains of pages, written once.
//!
//! A chain is written from its end to its start, so each page is complete when it is made and is
//! never changed. The page made last is the first of the chain. Each page is a mini-transaction of
//! the caller, which notes in its undo that the page is taken. Reading and giving back go page by
//! page, and the caller keeps their place.
//!
//! Layout: `docs/formats/row_header.md`.

use format::page::PageHeader;
use format::page_bytes::PageBytes;
use format::page_op::PageOp;
use format::{PAGE_HEADER_BYTES, PageId, PageNo, PageType, SpaceId};
use store::{Outcome, Suspend};

use crate::error::damaged;
use crate::pages::{Change, Latched, Pages, apply, narrow};
use crate::space::Release;
use crate::take_steps;

const NEXT_AT: usize = PAGE_HEADER_BYTES;
const LENGTH_AT: usize = PAGE_HEADER_BYTES + 4;
const BYTES_AT: usize = PAGE_HEADER_BYTES + 8;

/// Pages after which an operation on a value in memory gives way: some 100 to 200 us of copying.
pub const PAGES_PER_TURN: usize = 64;

/// Bytes of a value that a page holds.
pub fn chunk_bytes(page_bytes: usize) -> usize {
    page_bytes - BYTES_AT
}

/// Fills a new page with a part of a value. `next` is the page with the following part, 0 if there
/// is none.
pub fn fill(change: &mut Change<'_>, page: Latched, next: PageNo, chunk: &[u8]) -> Outcome<()> {
    assert!(
        chunk.len() <= chunk_bytes(change.page_bytes()),
        "a chunk fits into a page"
    );
    assert!(!chunk.is_empty(), "a part of a value has bytes");
    assert!(next != change.id(page).page, "a chain is no circle");
    let length = u32::try_from(chunk.len()).expect("a page is shorter than 4 GiB");
    let mut body = Vec::with_capacity(8 + chunk.len());
    body.extend_from_slice(&next.0.to_le_bytes());
    body.extend_from_slice(&length.to_le_bytes());
    body.extend_from_slice(chunk);
    apply(change, page, &PageOp::BodyFill { bytes: &body })
}

/// How far a value has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LobCursor {
    /// The page to be read next; 0 when all is read.
    next: u32,
    /// Bytes still to come.
    rest: u32,
}

impl LobCursor {
    /// A cursor at the start of a value.
    pub fn new(first_page: u32, length: u32) -> Self {
        Self {
            next: first_page,
            rest: length,
        }
    }

    /// The page to be read next; `None` when all is read.
    pub fn page(&self) -> Option<PageNo> {
        (self.rest != 0).then_some(PageNo(self.next))
    }

    /// Appends the rest of the value to `out`. What was read before a suspension stays read.
    /// Reading a long value suspends to give way.
    pub fn read(&mut self, pages: &Pages, space: SpaceId, out: &mut Vec<u8>) -> Outcome<()> {
        for _ in 0..PAGES_PER_TURN {
            if self.rest == 0 {
                return Ok(());
            }
            self.step(pages, space, out)?;
        }
        if self.rest == 0 {
            Ok(())
        } else {
            Err(Suspend::turn().into())
        }
    }

    /// Appends the contents of the next page.
    pub fn step(&mut self, pages: &Pages, space: SpaceId, out: &mut Vec<u8>) -> Outcome<()> {
        let id = PageId::new(space, PageNo(self.next));
        let page = pages.shared(id)?;
        let step = copy_chunk(page.bytes(), self.rest, out);
        let (next, length) = step.ok_or_else(|| damaged(id, "no part of a large value"))?;
        self.next = next;
        self.rest -= length;
        assert!(
            (next == 0) == (self.rest == 0),
            "the last part ends the value"
        );
        Ok(())
    }
}

fn copy_chunk(page: &[u8], rest: u32, out: &mut Vec<u8>) -> Option<(u32, u32)> {
    let next = page.u32_at(NEXT_AT)?;
    let length = page.u32_at(LENGTH_AT)?;
    let is_whole = length <= rest && length != 0 && (next != 0) == (length < rest);
    if !is_whole {
        return None;
    }
    page.append_to(BYTES_AT, usize::try_from(length).ok()?, out)?;
    Some((next, length))
}

/// Gives back all pages of a value except the first. The caller gives that back together with the
/// last reference to the value. A long value suspends to give way, and goes on when it is called
/// again.
pub fn give_back_rest(pages: &Pages, space: SpaceId, first: PageNo) -> Outcome<()> {
    take_steps(PAGES_PER_TURN, || give_back_second(pages, space, first))
}

/// Refuses a page that is no part of a large value. What leads to it may be older than the page, if
/// a loss of log was accepted.
pub fn check_part(change: &Change<'_>, page: Latched) -> Outcome<()> {
    let header = PageHeader::decode(change.bytes(page));
    if header.is_ok_and(|header| header.page_type == PageType::Lob) {
        return Ok(());
    }
    Err(damaged(change.id(page), "no part of a large value"))
}

/// Gives back the second page of a value. Returns false if it has one page only, which the caller
/// gives back together with the last reference to the value.
fn give_back_second(pages: &Pages, space: SpaceId, first: PageNo) -> Outcome<bool> {
    let first_id = PageId::new(space, first);
    let mut change = pages.change()?;
    let head = change.latch(first_id)?;
    check_part(&change, head)?;
    let no_part = || damaged(first_id, "no part of a large value");
    let second = change.bytes(head).u32_at(NEXT_AT).ok_or_else(no_part)?;
    if second == 0 {
        return Ok(false);
    }
    let page = change.latch(PageId::new(space, PageNo(second)))?;
    check_part(&change, page)?;
    let third = change.bytes(page).u32_at(NEXT_AT).ok_or_else(no_part)?;
    let release = Release::make(&mut change, page)?;
    let offset = narrow(NEXT_AT);
    apply(
        &mut change,
        head,
        &PageOp::BytesPut {
            offset,
            bytes: &third.to_le_bytes(),
        },
    )?;
    release.give_back(&mut change)?;
    change.commit();
    Ok(true)
}
