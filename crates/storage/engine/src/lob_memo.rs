//! [`LobMemo`]: large rows that were read by an operation of many calls.

use btree::lob::LobCursor;
use btree::{Pages, damaged};
use format::row_header::LobReference;
use format::{PageId, SpaceId};
use store::Outcome;

/// Large rows that an operation of many calls has read, so that it reads each only once.
#[derive(Debug, Default)]
pub(crate) struct LobMemo {
    /// Complete rows, by first page.
    done: Vec<(u32, Vec<u8>)>,
    /// The row that is being read.
    current: Option<(u32, LobCursor, Vec<u8>)>,
}

impl LobMemo {
    /// What the rows take of memory.
    pub(crate) fn held_bytes(&self) -> usize {
        let done = self.done.iter().map(|(_, bytes)| bytes.capacity());
        let current = self.current.as_ref();
        done.sum::<usize>() + current.map_or(0, |(_, _, bytes)| bytes.capacity())
    }

    /// Appends the row at `reference`.
    pub(crate) fn read(
        &mut self,
        pages: &Pages,
        space: SpaceId,
        reference: &[u8],
        out: &mut Vec<u8>,
    ) -> Outcome<()> {
        out.extend_from_slice(self.row(pages, space, reference)?);
        Ok(())
    }

    /// Returns the row at `reference`.
    pub(crate) fn row(
        &mut self,
        pages: &Pages,
        space: SpaceId,
        reference: &[u8],
    ) -> Outcome<&[u8]> {
        let id = PageId::new(space, format::PageNo(0));
        let reference = LobReference::decode(reference)
            .map_err(|_| damaged(id, "no reference to a large row"))?;
        let first = reference.first_page;
        let place = match self.done.iter().position(|(page, _)| *page == first) {
            Some(place) => place,
            None => {
                let (_, cursor, bytes) = match &mut self.current {
                    Some(current) if current.0 == first => current,
                    current => {
                        let cursor = LobCursor::new(first, reference.length);
                        current.insert((first, cursor, Vec::new()))
                    }
                };
                cursor.read(pages, space, bytes)?;
                assert_eq!(
                    stdx::to_u32(bytes.len()),
                    reference.length,
                    "what was read in several calls is the row"
                );
                let bytes = std::mem::take(bytes);
                self.current = None;
                self.done.push((first, bytes));
                self.done.len() - 1
            }
        };
        Ok(&self.done[place].1)
    }
}
