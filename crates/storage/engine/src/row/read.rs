//! Older versions: from the newest one back to the one that a transaction sees.

use btree::damaged;
use format::UndoPointer;
use format::row_header::{ROW_HEADER_BYTES, RowHeader};
use format::undo::{UndoKind, UndoRecord};
use store::{Interrupt, Outcome, StoreError, Suspend};
use txn::Snapshot;

use crate::transaction::EngineTransaction;
use crate::undo_log::{page_of, read_record};

/// Counts what a scan has read in vain since it last gave way. The caller counts the rows that it
/// gets, but a scan may pass millions of rows that it does not see.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    count: u32,
}

impl Looks {
    /// Reads without a row after which a scan gives way: some 50 us of entries in memory.
    const PER_TURN: u32 = 256;

    /// Counts one more; gives way if there were many.
    pub(crate) fn count(&mut self) -> Outcome<()> {
        self.count += 1;
        if self.count < Self::PER_TURN {
            return Ok(());
        }
        self.count = 0;
        Err(Suspend::turn().into())
    }
}

/// A version of a row: its header, followed by its body. Buffers are reused.
#[derive(Debug, Default)]
pub(crate) struct Version {
    /// As on the page: header and body.
    pub(crate) bytes: Vec<u8>,
    /// Buffer for undo records on the way.
    record: Vec<u8>,
}

impl Version {
    /// The header.
    pub(crate) fn header(&self) -> Outcome<RowHeader> {
        RowHeader::split(&self.bytes)
            .map(|(header, _)| header)
            .ok_or_else(no_header)
    }

    /// The body.
    pub(crate) fn body(&self) -> &[u8] {
        self.bytes.get(ROW_HEADER_BYTES..).unwrap_or_default()
    }

    /// Turns the newest version, which is in `bytes`, into the one that `txn` sees. Returns false
    /// if it sees none or a deleted one. A call that gives way on a long way back continues when it
    /// is repeated.
    pub(crate) fn go_back(
        &mut self,
        txn: &mut EngineTransaction,
        looks: &mut Looks,
    ) -> Outcome<bool> {
        loop {
            let header = self.header()?;
            if txn.sees_version(&header)? {
                return Ok(!header.is_deleted);
            }
            if header.undo.is_null() {
                return Ok(false);
            }
            looks.count()?;
            read_record(&txn.worker.pages, header.undo, &mut self.record)?;
            if !self.restore(header.undo)? {
                return Ok(false);
            }
        }
    }

    /// Turns the newest version, which is in `bytes`, into the one that was committed last before
    /// `snapshot`, which keeps the undo on the way back. Returns false if there is none, or a
    /// deleted one. A call that gives way on a long way back continues when it is repeated.
    pub(crate) fn go_to_committed(
        &mut self,
        txn: &EngineTransaction,
        snapshot: &Snapshot,
        looks: &mut Looks,
    ) -> Outcome<bool> {
        loop {
            let header = self.header()?;
            if txn.sees_in(snapshot, header.txn)? {
                return Ok(!header.is_deleted);
            }
            if header.undo.is_null() {
                return Ok(false);
            }
            looks.count()?;
            read_record(&txn.worker.pages, header.undo, &mut self.record)?;
            if !self.restore(header.undo)? {
                return Ok(false);
            }
        }
    }

    /// Applies the undo record at `pointer`, which was read. Returns false if there was nothing
    /// before.
    fn restore(&mut self, pointer: UndoPointer) -> Outcome<bool> {
        assert!(!pointer.is_null(), "there is a record to apply");
        let contradicts = || {
            damaged(
                page_of(pointer),
                "a row and its undo do not belong together",
            )
        };
        let record = UndoRecord::decode(&self.record).ok_or_else(contradicts)?;
        match record.kind {
            UndoKind::Insert => return Ok(false),
            UndoKind::Update | UndoKind::Delete => {}
            _ => return Err(contradicts()),
        }
        restore_version(&record, &mut self.bytes).ok_or_else(contradicts)?;
        Ok(true)
    }
}

/// Turns a version into the one before it.
pub(crate) fn restore_version(record: &UndoRecord<'_>, version: &mut Vec<u8>) -> Option<()> {
    let start = ROW_HEADER_BYTES + usize::from(record.change_offset);
    let end = start + usize::from(record.inserted_length);
    if version.len() < end {
        return None;
    }
    version.splice(start..end, record.removed.iter().copied());
    version
        .get_mut(..ROW_HEADER_BYTES)?
        .copy_from_slice(&record.old_header.encode());
    Some(())
}

fn no_header() -> Interrupt {
    StoreError::damaged("a row without a header").into()
}

#[cfg(test)]
mod tests {
    use format::{PageNo, TxnId};

    use super::*;

    /// An undo record that does not belong to the row: the error names the page that it is on.
    #[test]
    fn a_contradiction_names_the_undo_page() {
        let pointer = UndoPointer::new(1, PageNo(9), 100);
        let mut ends = Vec::new();
        UndoRecord::end(UndoKind::Commit, TxnId::MAX, UndoPointer::NULL).encode(&mut ends);
        for record in [vec![0; 3], ends] {
            let mut version = Version {
                bytes: vec![0; ROW_HEADER_BYTES],
                record,
            };
            let Err(Interrupt::Error(StoreError::Damaged { page, .. })) = version.restore(pointer)
            else {
                panic!("it does not belong to the row");
            };
            assert_eq!(page, Some(page_of(pointer)));
        }
    }
}
