//! Changing rows in the clustered index, with their undo, in one mini-transaction each.
//!
//! A step reads the row under its leaf's exclusive latch, checks locks and room, then changes leaf
//! and undo page together. If something is missing (a lock, room, a page), the step ends without a
//! change and begins again. What an operation of several steps has done already stands in the
//! transaction's [`Pending`], so a repeated call continues where the last one stopped.

use btree::change::{fits, payload};
use btree::lob;
use btree::space::{self, Reservation};
use btree::{Change, Spot, Wanted, damaged};
use format::page_op::{PageOp, RowOp};
use format::row_header::{LOB_REFERENCE_BYTES, LobReference, ROW_HEADER_BYTES, RowHeader};
use format::slotted::{TreePage, common_prefix};
use format::undo::{PurgeItem, UNDO_RECORDS_START, UndoKind, UndoRecord};
use format::{PageNo, PageType, SpaceId, TableId, TxnId, UndoPointer};
use lock::{LockKind, LockMode};
use store::{Interrupt, Outcome, StoreError, Suspend};

use btree::Tree;

use crate::row::conflict::{Access, RowName};
use crate::row::read::restore_version;
use crate::transaction::EngineTransaction;
use crate::transaction::pending::Overflow;
use crate::undo_log::{UndoPlace, apply};

/// Where a row is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowPlace<'a> {
    /// The table.
    pub(crate) table: TableId,
    /// Its clustered index.
    pub(crate) tree: Tree,
    /// The row's key.
    pub(crate) key: &'a [u8],
}

/// The body of a new version.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewBody<'a> {
    /// The row or a reference.
    pub(crate) bytes: &'a [u8],
    /// It is a reference.
    pub(crate) is_spilled: bool,
}

/// The outcome of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// It is done.
    Done,
    /// An insert found a row, which is locked now, or a change found none.
    Refused,
    /// A change found another version than its transaction claims.
    Changed,
}

/// What to do with a row.
#[derive(Debug, Clone, Copy)]
enum Goal<'a> {
    Insert(NewBody<'a>, LockMode),
    Update(NewBody<'a>, &'a [u8]),
    Delete(&'a [u8]),
}

/// A version that takes the place of another.
#[derive(Debug, Clone, Copy)]
struct Replacement<'a> {
    writer: TxnId,
    /// The header of the version before.
    header: RowHeader,
    /// The version before, with its header.
    old: &'a [u8],
    kind: UndoKind,
    body: NewBody<'a>,
    /// What only the version before needs.
    purge_list: &'a [u8],
}

/// The outcome of one attempt.
enum Attempt {
    /// Begin again.
    Again,
    /// The leaf needs room first.
    Room { payload_bytes: usize, is_new: bool },
    /// The undo segment needs a page first.
    UndoRoom,
    /// Done, with this undo record.
    Done(UndoPointer),
    /// See [`Written::Refused`].
    Refused,
    /// See [`Written::Changed`].
    Changed,
}

impl EngineTransaction {
    /// Inserts a row, possibly in the place of a deleted one.
    /// If a row is there, it is locked in `mode`.
    pub(crate) fn insert_row(
        &mut self,
        place: RowPlace<'_>,
        body: NewBody<'_>,
        mode: LockMode,
    ) -> Outcome<Written> {
        self.write_row(place, Goal::Insert(body, mode))
    }

    /// Changes an existing row. `purge_list` is what only its present version needs.
    pub(crate) fn update_row(
        &mut self,
        place: RowPlace<'_>,
        body: NewBody<'_>,
        purge_list: &[u8],
    ) -> Outcome<Written> {
        self.write_row(place, Goal::Update(body, purge_list))
    }

    /// Marks a row deleted.
    pub(crate) fn delete_row(
        &mut self,
        place: RowPlace<'_>,
        purge_list: &[u8],
    ) -> Outcome<Written> {
        self.write_row(place, Goal::Delete(purge_list))
    }

    fn write_row(&mut self, place: RowPlace<'_>, goal: Goal<'_>) -> Outcome<Written> {
        let id = self.ensure_writer()?;
        let limit = btree::key_bytes_max(self.worker.pages.page_bytes());
        if limit < place.key.len() {
            return Err(StoreError::KeyTooLarge {
                bytes: place.key.len(),
                limit,
            }
            .into());
        }
        let worker = std::rc::Rc::clone(&self.worker);
        loop {
            let mut change = worker.pages.change()?;
            let Some(spot) = place.tree.latch(&worker.pages, &mut change, place.key)? else {
                continue;
            };
            match self.try_write(&mut change, spot, place, (id, goal))? {
                Attempt::Again => {}
                Attempt::Done(pointer) => {
                    change.commit();
                    self.note_undo(pointer);
                    return Ok(Written::Done);
                }
                Attempt::Refused => return Ok(Written::Refused),
                Attempt::Changed => {
                    self.lose_claim();
                    return Ok(Written::Changed);
                }
                Attempt::UndoRoom => {
                    drop(change);
                    worker.make_undo_room()?;
                }
                Attempt::Room {
                    payload_bytes,
                    is_new,
                } => {
                    drop(change);
                    let wanted = Wanted {
                        key: place.key,
                        payload_bytes,
                        is_new,
                    };
                    place.tree.make_room(&worker.pages, wanted)?;
                }
            }
        }
    }

    fn try_write(
        &mut self,
        change: &mut Change<'_>,
        spot: Spot,
        place: RowPlace<'_>,
        (id, goal): (TxnId, Goal<'_>),
    ) -> Outcome<Attempt> {
        if !spot.is_match {
            return match goal {
                Goal::Insert(body, _) => self.try_new(change, spot, place, (id, body)),
                Goal::Update(..) | Goal::Delete(_) => Ok(match self.has_lost(place, None) {
                    true => Attempt::Changed,
                    false => Attempt::Refused,
                }),
            };
        }
        let mut old = Vec::new();
        payload(change, spot, &mut old)?;
        let leaf = change.id(spot.leaf);
        assert_eq!(leaf.space, place.tree.space);
        let (header, old_body) =
            RowHeader::split(&old).ok_or_else(|| damaged(leaf, "a row without a header"))?;
        let name = RowName {
            index: place.tree.index,
            key: place.key,
            writer: header.txn,
        };
        let is_insert = matches!(goal, Goal::Insert(..));
        if let Goal::Insert(_, mode) = goal {
            // Also a deleted row, as InnoDB does: after the insert is undone its key stays locked.
            let extent = self.record_extent();
            let kind = LockKind { mode, extent };
            if self.lock_row(name, kind, store::LockWait::Wait)? == Access::Changed {
                return Ok(Attempt::Again);
            }
            if !header.is_deleted {
                return Ok(Attempt::Refused);
            }
        }
        // Before a wait: whoever confirms the row waits for the lock that its level asks for.
        if !is_insert && self.has_lost(place, Some(header)) {
            return Ok(Attempt::Changed);
        }
        if self.check_write(name)? == Access::Changed {
            return Ok(Attempt::Again);
        }
        if !is_insert && header.is_deleted {
            return Ok(Attempt::Refused);
        }
        let (kind, body, purge_list) = match goal {
            Goal::Insert(body, _) => (UndoKind::Update, body, &[][..]),
            Goal::Update(body, purge_list) => (UndoKind::Update, body, purge_list),
            Goal::Delete(purge_list) => {
                let body = NewBody {
                    bytes: old_body,
                    is_spilled: header.is_spilled,
                };
                (UndoKind::Delete, body, purge_list)
            }
        };
        let replacement = Replacement {
            writer: id,
            header,
            old: &old,
            kind,
            body,
            purge_list,
        };
        let attempt = self.try_replace(change, spot, place, replacement)?;
        if !is_insert && matches!(attempt, Attempt::Done(_)) {
            self.count_claim(place, header);
        }
        Ok(attempt)
    }

    fn try_replace(
        &mut self,
        change: &mut Change<'_>,
        spot: Spot,
        place: RowPlace<'_>,
        replacement: Replacement<'_>,
    ) -> Outcome<Attempt> {
        let Replacement {
            header, old, body, ..
        } = replacement;
        let (_, old_body) = old.split_at(ROW_HEADER_BYTES);
        debug_assert!(
            Some(header.txn) == self.id || !self.worker.shared.txns.is_active(header.txn),
            "a version is replaced by its writer, or after that has ended"
        );
        let difference = Difference::between(old_body, body.bytes);
        let grown = body.bytes.len().saturating_sub(old_body.len());
        let wanted = Wanted {
            key: place.key,
            payload_bytes: grown,
            is_new: false,
        };
        if !fits(change.bytes(spot.leaf), wanted) {
            return Ok(Attempt::Room {
                payload_bytes: grown,
                is_new: false,
            });
        }
        let record = UndoRecord {
            kind: replacement.kind,
            table: place.table,
            key: place.key,
            old_header: header,
            change_offset: narrow(difference.offset),
            inserted_length: narrow(difference.inserted.len()),
            removed: difference.removed,
            purge_list: replacement.purge_list,
            ..UndoRecord::end(UndoKind::Commit, replacement.writer, self.last_undo)
        };
        let attempt = self.write_pair(change, spot, &record, (body, difference.inserted))?;
        if matches!(attempt, Attempt::Done(_)) {
            debug_assert!(
                leads_back(change, spot, &record, old),
                "undo restores the row"
            );
        }
        Ok(attempt)
    }

    fn try_new(
        &mut self,
        change: &mut Change<'_>,
        spot: Spot,
        place: RowPlace<'_>,
        (id, body): (TxnId, NewBody<'_>),
    ) -> Outcome<Attempt> {
        // A transaction that has waited for a row, which purge has removed since, has its key
        // locked. It acts on what it finds there.
        let name = RowName {
            index: place.tree.index,
            key: place.key,
            writer: TxnId::NONE,
        };
        if self.check_write(name)? == Access::Changed {
            return Ok(Attempt::Again);
        }
        let gap = self.check_gap(place.tree, change, spot)?;
        let payload_bytes = ROW_HEADER_BYTES + body.bytes.len();
        let wanted = Wanted {
            key: place.key,
            payload_bytes,
            is_new: true,
        };
        if !fits(change.bytes(spot.leaf), wanted) {
            return Ok(Attempt::Room {
                payload_bytes,
                is_new: true,
            });
        }
        let record = UndoRecord {
            kind: UndoKind::Insert,
            table: place.table,
            key: place.key,
            ..UndoRecord::end(UndoKind::Commit, id, self.last_undo)
        };
        let attempt = self.write_pair(change, spot, &record, (body, body.bytes))?;
        if matches!(attempt, Attempt::Done(_)) {
            self.split_gap(place.tree, place.key, gap);
        }
        Ok(attempt)
    }

    /// Changes leaf and undo page.
    fn write_pair(
        &mut self,
        change: &mut Change<'_>,
        spot: Spot,
        record: &UndoRecord<'_>,
        (body, inserted): (NewBody<'_>, &[u8]),
    ) -> Outcome<Attempt> {
        assert_eq!(
            record.previous, self.last_undo,
            "undo goes back without a gap"
        );
        assert_eq!(Some(record.txn), self.id, "a row has the id of its writer");
        if body.is_spilled && body.bytes.len() != LOB_REFERENCE_BYTES {
            return Err(damaged(
                change.id(spot.leaf),
                "a large row without a reference in its place",
            ));
        }
        let undo = encode(change, record)?;
        let Some(UndoPlace { page, pointer }) = self.worker.undo.place(change, undo.len())? else {
            return Ok(Attempt::UndoRoom);
        };
        let header = RowHeader {
            txn: record.txn,
            undo: pointer,
            schema_version: 0,
            is_deleted: record.kind == UndoKind::Delete,
            is_spilled: body.is_spilled,
        };
        let op = PageOp::Row(RowOp {
            slot: spot.slot_number(),
            header,
            inserted,
            undo: &undo,
        });
        let leaf = change.id(spot.leaf);
        change
            .apply_pair(spot.leaf, page, &op)
            .map_err(|error| -> Interrupt { damaged(leaf, &error.to_string()) })?;
        assert_eq!(
            newest(change, spot),
            Some(header),
            "the row leads to its undo (E1)"
        );
        Ok(Attempt::Done(pointer))
    }

    /// Adds a record to the undo by itself, in a change that the caller has begun. Returns `None`
    /// if the undo needs room: the caller drops the change, makes room, and begins again.
    pub(crate) fn append_undo(
        &self,
        change: &mut Change<'_>,
        record: &UndoRecord<'_>,
    ) -> Outcome<Option<(UndoPlace, Vec<u8>)>> {
        let undo = encode(change, record)?;
        let place = self.worker.undo.place(change, undo.len())?;
        Ok(place.map(|place| (place, undo)))
    }

    /// Writes a row that is too large for a leaf into pages of its own; gives way if it is long.
    pub(crate) fn spill_row(
        &mut self,
        space: SpaceId,
        table: TableId,
        row: &[u8],
    ) -> Outcome<LobReference> {
        if let Some(overflowed) = self.pending.overflowed {
            return Ok(overflowed);
        }
        let Ok(length) = u32::try_from(row.len()) else {
            let limit = usize::try_from(u32::MAX).unwrap_or(usize::MAX);
            return Err(StoreError::RowTooLarge {
                bytes: row.len(),
                limit,
            }
            .into());
        };
        assert!(
            !row.is_empty(),
            "a row that does not fit into a leaf has bytes"
        );
        let id = self.ensure_writer()?;
        let chunk = lob::chunk_bytes(self.worker.pages.page_bytes());
        let mut overflow = self.pending.overflow.unwrap_or(Overflow {
            next: PageNo(0),
            rest: row.len(),
        });
        assert!(
            overflow.rest <= row.len(),
            "a repeated call writes the same row"
        );
        while 0 < overflow.rest {
            let start = (overflow.rest - 1) / chunk * chunk;
            let part = &row[start..overflow.rest];
            overflow.next = self.overflow_page((space, table, id), overflow.next, part)?;
            overflow.rest = start;
            self.pending.overflow = Some(overflow);
            if 0 < start && (start / chunk).is_multiple_of(lob::PAGES_PER_TURN) {
                return Err(Suspend::turn().into());
            }
        }
        assert_ne!(overflow.next, PageNo(0), "the value has a first page");
        let reference = LobReference {
            first_page: overflow.next.0,
            length,
        };
        self.pending.overflow = None;
        self.pending.overflowed = Some(reference);
        Ok(reference)
    }

    fn overflow_page(
        &mut self,
        (space, table, id): (SpaceId, TableId, TxnId),
        next: PageNo,
        part: &[u8],
    ) -> Outcome<PageNo> {
        let worker = std::rc::Rc::clone(&self.worker);
        loop {
            let mut change = worker.pages.change()?;
            let Some(taken) = Reservation::make(&mut change, space, &[PageType::Lob])? else {
                drop(change);
                space::grow(&worker.pages, space)?;
                continue;
            };
            let (no, page) = taken.page(0);
            assert_ne!(no, PageNo(0), "0 ends a chain of pages");
            let mut purge_list = Vec::new();
            PurgeItem::Lob {
                space: space.0,
                first_page: no.0,
            }
            .encode(&mut purge_list);
            let record = UndoRecord {
                kind: UndoKind::PageTaken,
                table,
                purge_list: &purge_list,
                ..UndoRecord::end(UndoKind::Commit, id, self.last_undo)
            };
            let Some((place, bytes)) = self.append_undo(&mut change, &record)? else {
                drop(change);
                worker.make_undo_room()?;
                continue;
            };
            taken.take(&mut change)?;
            lob::fill(&mut change, page, next, part)?;
            apply(
                &mut change,
                place.page,
                &PageOp::UndoAppend { record: &bytes },
            )?;
            change.commit();
            self.note_undo(place.pointer);
            return Ok(no);
        }
    }
}

/// The header of the row at a spot.
fn newest(change: &Change<'_>, spot: Spot) -> Option<RowHeader> {
    let page = change.bytes(spot.leaf);
    let extent = TreePage::new(page)?.payload(spot.slot)?;
    let version = page.get(extent.offset..extent.offset + extent.length)?;
    RowHeader::split(version).map(|(header, _)| header)
}

/// Whether an undo record turns the row at a spot into the version before.
fn leads_back(change: &Change<'_>, spot: Spot, record: &UndoRecord<'_>, old: &[u8]) -> bool {
    let mut version = Vec::new();
    let is_there = payload(change, spot, &mut version).is_ok();
    is_there && restore_version(record, &mut version).is_some() && version == old
}

/// The bytes of an undo record, which must fit into a page. Each does, because keys and rows are
/// limited and purge lists are split.
fn encode(change: &Change<'_>, record: &UndoRecord<'_>) -> Outcome<Vec<u8>> {
    let (bytes, limit) = (record.length(), change.page_bytes() - UNDO_RECORDS_START);
    if limit < bytes {
        return Err(StoreError::RowTooLarge { bytes, limit }.into());
    }
    let mut undo = Vec::with_capacity(bytes);
    record.encode(&mut undo);
    assert!(undo.len() == bytes, "a record is as long as it says");
    debug_assert_eq!(UndoRecord::decode(&undo).as_ref(), Some(record));
    Ok(undo)
}

/// The difference of two bodies: a common start, a common end, and the middle.
#[derive(Debug, PartialEq, Eq)]
struct Difference<'a> {
    offset: usize,
    removed: &'a [u8],
    inserted: &'a [u8],
}

impl<'a> Difference<'a> {
    fn between(old: &'a [u8], new: &'a [u8]) -> Self {
        let offset = common_prefix(old, new);
        let (old_rest, new_rest) = (&old[offset..], &new[offset..]);
        let same = old_rest.iter().rev().zip(new_rest.iter().rev());
        let tail = same.take_while(|(a, b)| a == b).count();
        let removed = &old_rest[..old_rest.len() - tail];
        let inserted = &new_rest[..new_rest.len() - tail];
        Self {
            offset,
            removed,
            inserted,
        }
    }
}

fn narrow(value: usize) -> u16 {
    u16::try_from(value).expect("a row in a leaf is shorter than 64 KiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_the_middle() {
        let check = |old: &[u8], new: &[u8], offset, removed: &[u8], inserted: &[u8]| {
            assert_eq!(
                Difference::between(old, new),
                Difference {
                    offset,
                    removed,
                    inserted
                }
            );
        };
        check(b"abcdef", b"abXdef", 2, b"c", b"X");
        check(b"same", b"same", 4, b"", b"");
        check(b"aa", b"aaa", 2, b"", b"a");
        check(b"", b"x", 0, b"", b"x");
    }
}
