//! The node's place in the group's order: when it is passed, and how it is kept.
//!
//! The place stands in the directory page of each undo segment, written by the commit itself. All
//! segments together have the newest one: it has the highest seqno. A node may leave a group and
//! join another, whose seqnos are lower; a generation tells that the other group came later.

use btree::{Change, Latched, Pages};
use format::page_bytes::PageBytes;
use format::{Lsn, PAGE_HEADER_BYTES, PageId};
use std::sync::Arc;
use store::Outcome;
use store::replication::{GroupId, Position, Provider};

use crate::undo_log::{DIRECTORY, put, space_of};
use crate::worker::{Shared, Worker};

/// Where it stands in a directory page: generation, seqno, group.
const NOTE_AT: usize = PAGE_HEADER_BYTES + 8;
const NOTE_BYTES: usize = 32;

/// A place as the log keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Note {
    /// Counts groups, from 1.
    generation: u64,
    position: Position,
}

impl Note {
    /// The note of the place that follows `before`.
    fn next(before: Option<Self>, position: Position) -> Self {
        let generation = match before {
            None => 1,
            Some(before) if before.position.group == position.group => {
                assert!(
                    before.position.seqno < position.seqno,
                    "places are passed in their order (P1)"
                );
                before.generation
            }
            Some(before) => before.generation + 1,
        };
        Self {
            generation,
            position,
        }
    }

    fn encode(self) -> [u8; NOTE_BYTES] {
        assert!(self.generation != 0, "0 is for pages without a note");
        let mut bytes = [0; NOTE_BYTES];
        let (numbers, group) = bytes.split_at_mut(16);
        let (generation, seqno) = numbers.split_at_mut(8);
        generation.copy_from_slice(&self.generation.to_le_bytes());
        seqno.copy_from_slice(&self.position.seqno.to_le_bytes());
        group.copy_from_slice(&self.position.group.0);
        bytes
    }

    /// The note of a directory page; `None` if there is none.
    fn decode<P: PageBytes + ?Sized>(page: &P) -> Option<Self> {
        let generation = page.u64_at(NOTE_AT)?;
        let seqno = page.u64_at(NOTE_AT + 8)?;
        let mut group = [0; 16];
        for (half, at) in group.chunks_mut(8).zip([NOTE_AT + 16, NOTE_AT + 24]) {
            half.copy_from_slice(&page.u64_at(at)?.to_le_bytes());
        }
        (generation != 0).then_some(Self {
            generation,
            position: Position {
                group: GroupId(group),
                seqno,
            },
        })
    }
}

/// The place of all segments.
pub(crate) fn read_note(pages: &Pages, segments: u32) -> Outcome<Option<Note>> {
    let mut newest: Option<Note> = None;
    for segment in 0..segments {
        let segment = u8::try_from(segment).expect("there are at most 255 segments");
        let page = pages.shared(PageId::new(space_of(segment), DIRECTORY))?;
        let age = |note: &Note| (note.generation, note.position.seqno);
        newest = newest
            .into_iter()
            .chain(Note::decode(page.bytes()))
            .max_by_key(age);
    }
    Ok(newest)
}

/// Forgets the place that a segment keeps. Without those of all segments it may be too old.
pub(crate) fn forget_note(pages: &Pages, segment: u8) -> Outcome<()> {
    let mut change = pages.change()?;
    let page = change.latch(PageId::new(space_of(segment), DIRECTORY))?;
    if Note::decode(change.bytes(page)).is_none() {
        return Ok(());
    }
    put(&mut change, page, NOTE_AT, &[0; NOTE_BYTES])?;
    assert_eq!(Note::decode(change.bytes(page)), None, "it is forgotten");
    change.commit();
    Ok(())
}

impl Shared {
    /// Sets who orders the transactions of a group. Only the first call counts, and it comes before
    /// any session's transaction.
    pub fn set_provider(&self, provider: Arc<dyn Provider>) {
        let _first_wins = self.provider.set(provider);
    }

    /// Who orders the transactions, if the node has a part in a group.
    pub(crate) fn provider(&self) -> Option<&Arc<dyn Provider>> {
        self.provider.get()
    }

    /// The last place that was passed.
    pub(crate) fn position(&self) -> Option<Position> {
        self.note.lock().map(|note| note.position)
    }
}

/// A place, with the page that will keep it latched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlaceToPass {
    position: Position,
    page: Latched,
}

impl Worker {
    /// Latches what is needed to pass a place.
    pub(crate) fn latch_place(
        &self,
        change: &mut Change<'_>,
        position: Position,
    ) -> Outcome<PlaceToPass> {
        let page = change.latch(PageId::new(space_of(self.options.index), DIRECTORY))?;
        assert!(
            NOTE_AT + NOTE_BYTES <= change.bytes(page).len(),
            "a page has room for the note"
        );
        Ok(PlaceToPass { position, page })
    }

    /// Ready when it is the place's turn. The caller passes it without a wait (P2).
    pub(crate) fn enter(&self, position: Position) -> Outcome<()> {
        let provider = self.shared.provider().expect("a provider gave the place");
        provider.enter(position)
    }

    /// Passes a place: notes it in a change, which `commit` commits, and leaves.
    pub(crate) fn pass<T>(
        &self,
        mut change: Change<'_>,
        place: PlaceToPass,
        commit: impl FnOnce(Change<'_>) -> T,
    ) -> T {
        let mut present = self.shared.note.lock();
        let note = Note::next(*present, place.position);
        assert_eq!(
            change.id(place.page).page,
            DIRECTORY,
            "the note has its page"
        );
        put(&mut change, place.page, NOTE_AT, &note.encode()).expect("the page has room for it");
        let committed = commit(change);
        *present = Some(note);
        drop(present);
        let provider = self.shared.provider().expect("a provider gave the place");
        provider.leave(place.position);
        committed
    }

    /// Passes a place without an outcome. Returns the end of its note in the log.
    pub(crate) fn pass_place(&self, position: Position) -> Outcome<Lsn> {
        let mut change = self.pages.change()?;
        let place = self.latch_place(&mut change, position)?;
        self.enter(position)?;
        Ok(self.pass(change, place, |change| change.commit()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(group: u8, seqno: u64) -> Position {
        Position {
            group: GroupId([group; 16]),
            seqno,
        }
    }

    #[test]
    fn a_note_survives_its_page() {
        let note = Note::next(None, position(7, 0x0102_0304_0506_0708));
        let mut page = vec![0; NOTE_AT];
        page.extend_from_slice(&note.encode());
        assert_eq!(Note::decode(page.as_slice()), Some(note));
        assert_eq!(Note::decode([0; 4096].as_slice()), None);
        assert_eq!(Note::decode(&page[..NOTE_AT + 31]), None);
    }

    #[test]
    fn a_later_group_has_a_higher_generation() {
        let first = Note::next(None, position(1, 900));
        let same = Note::next(Some(first), position(1, 901));
        let other = Note::next(Some(same), position(2, 3));
        assert_eq!(
            (first.generation, same.generation, other.generation),
            (1, 1, 2)
        );
    }

    #[test]
    #[should_panic(expected = "in their order")]
    fn a_place_is_passed_once() {
        let note = Note::next(None, position(1, 5));
        Note::next(Some(note), position(1, 5));
    }
}
