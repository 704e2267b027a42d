//! Distinguishes damage of the log from the end that a crash has left.
//!
//! A scan stops at a *break*: the first block, number `X`, that is missing, is not whole, or does
//! not continue the block before. A crash leaves a break, and so does damage. There always is a
//! break, because the log is followed by zeroes or by blocks of other places and lives.
//!
//! # What is known for certain
//!
//! (D1) **Claims are true.** A block says which blocks were durable when it was built: all before
//! `durable_block`. It is built from `FlushState::durable_block`, which is raised only after the
//! disk has confirmed it (a write with sync, or the sync of all files with unsynced writes). At the
//! start of a life it is the break that the scan found; the scan syncs a segment before it reads
//! it. The checkpoint record carries the same claim.
//! (D2) **A durable block stays** until a later checkpoint is durable. A block is written once in a
//! life (I2 of the crate). A life begins at the break that the life before left. Segments are
//! recycled only before the checkpoint's block. So from the checkpoint's block on, no durable block
//! is ever overwritten.
//! (D3) **The segment of the next block exists**, durably and in full length. The first one is made
//! before the control file gets its name. A life writes its last prepared block only when it has
//! prepared one more (`Wal::has_prepared_block`). A start writes no record before it has the
//! segment. If a checkpoint says that the log was closed in order, no segment is needed.
//! (D4) **One block, one content.** Epoch and number identify what one life has written in one
//! place. A life writes a checkpoint with its epoch before its first block.
//!
//! # What is damage, and why no crash causes it
//!
//! * The segment of `X` is missing or short: against D3. If a crash leaves a half made or missing
//!   segment, it is a later one.
//! * The checkpoint says that `X` was durable: D1 and D2. A crash does not lose such an `X`.
//! * A whole block after `X`, in its place and not of an earlier life than the last block before
//!   `X`, says that `X` was durable: the same. A crash with several blocks in flight may lose `X`
//!   and keep later ones, and a recovery that crashes leaves them in place. None of them claims
//!   `X`: they were built when it was not durable. A later life's blocks come after its own start,
//!   which is a break before or at `X`. They do not claim it either, unless it was durable. Blocks
//!   of earlier lives do not count: an operator may have started a life in front of them in spite
//!   of damage (`--accept-log-loss`).
//! * The log before `X` ends before the checkpoint's LSN: it was durable when the checkpoint record
//!   was written.
//! * A block in the segment of `X` or in a later one is whole, not of an earlier life, and of a
//!   later place. A server renames a segment only to a higher number, when all its blocks are
//!   before the checkpoint's. So it leaves blocks of earlier places, but never of later ones.
//! * `X` is whole, in its place, not of an earlier life, and does not continue the block before it:
//!   D4. Stale blocks have another number or an earlier epoch.
//! * Blocks are whole and the mini-transaction in them is not: its bytes were written like this.
//!
//! # What is surely found
//!
//! A missing, emptied, cut or renamed segment from the checkpoint's on. Any harm to a block that
//! was durable when a later flush was built, or when the checkpoint record was written (each 5
//! seconds, if there was any log). Not found: harm to the very last blocks, about which neither
//! says anything. They look like a torn write. If pages were written that such blocks have changed,
//! their epoch shows it when they are read (`format::lives`).

use std::path::PathBuf;

use env::{Disk, DiskError};
use format::Lsn;
use format::control::CheckpointRecord;
use format::log::{claimed_block_no, open_log_block};
use thiserror::Error;

use crate::blocks::BlockReader;
use crate::segments::SegmentPlace;

/// Where the log is damaged, and what proves it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("log segment {path} is damaged at byte {offset}: {kind}; \
         what was logged before LSN {position} is whole",
        path = path.display())]
pub struct LogDamage {
    /// The segment.
    pub path: PathBuf,
    /// Offset of the first block that is lost.
    pub offset: u64,
    /// End of the last mini-transaction before it.
    pub position: Lsn,
    /// What is wrong.
    pub kind: LogDamageKind,
}

/// What is wrong with a log.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LogDamageKind {
    /// The file is missing, although the log continued in it.
    #[error("the file is missing")]
    Missing,
    /// The file is shorter than a segment.
    #[error("the file has {length} bytes, and a segment has {whole}")]
    Cut {
        /// Its length.
        length: u64,
        /// The length of a segment.
        whole: u64,
    },
    /// The block is missing or not whole, and the control file says that it was durable.
    #[error("the block there is lost, which was durable at the last checkpoint")]
    KnownToControl,
    /// The same, but a later block says so.
    #[error("the block there is lost, which was durable when the one at byte {offset} of {path} \
             was written",
            path = path.display())]
    KnownToBlock {
        /// Segment of the later block.
        path: PathBuf,
        /// Its offset there.
        offset: u64,
    },
    /// The log ends before the checkpoint's LSN, which was durable.
    #[error("the log ends there, before the last checkpoint at LSN {checkpoint}")]
    BeforeCheckpoint {
        /// The checkpoint.
        checkpoint: Lsn,
    },
    /// The block is missing or not whole, and a block of a later place lies in its segment or in a
    /// later one.
    #[error("the block there is lost, and block {number} lies at byte {offset} of {path}, which is \
             not its place: was a file of the log renamed or copied?",
            path = path.display())]
    Misplaced {
        /// The block's number.
        number: u64,
        /// The segment in which it lies.
        path: PathBuf,
        /// Its offset there.
        offset: u64,
    },
    /// The block is whole, and does not continue the one before.
    #[error("the block there does not continue the one before")]
    Unlinked,
    /// The blocks are whole, but their contents make no sense.
    #[error("the mini-transaction before it is not whole, though its blocks are")]
    Senseless,
    /// The disk cannot read the block.
    #[error("the block there cannot be read")]
    Unreadable,
}

/// Where a scan has stopped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Break {
    /// The first block that is not part of the log.
    pub(crate) block: u64,
    /// End of the last whole mini-transaction.
    pub(crate) position: Lsn,
    /// Epoch of the last block before.
    pub(crate) epoch: u32,
    /// Why, as far as the block itself shows it.
    pub(crate) cause: Cause,
}

/// Why a scan stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// There is no whole block of the log, as after its end.
    NoBlock,
    /// See [`LogDamageKind::Unlinked`].
    Unlinked,
    /// See [`LogDamageKind::Senseless`].
    Senseless,
    /// See [`LogDamageKind::Unreadable`].
    Unreadable,
}

/// What lies at a break and after it.
#[derive(Debug, Default)]
pub(crate) struct Behind {
    /// The first block that proves the break to be damage.
    pub(crate) witness: Option<Witness>,
    /// The highest end of a block there.
    pub(crate) end: Lsn,
    /// The highest epoch of a block there.
    pub(crate) epoch: u32,
    /// Blocks from the break on that were written in part: a crash in a write leaves such.
    torn_blocks: u64,
    /// Bytes in them up to the last one that is not zero.
    pub(crate) torn_bytes: u64,
}

/// A block that proves a break to be damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Witness {
    /// Where it lies.
    place: u64,
    /// Its number, which is `place` or larger.
    number: u64,
}

impl Break {
    /// Decides whether the break is damage, by what the scan's checkpoint says of the log, and by
    /// what lies behind the break.
    pub(crate) fn judge(
        &self,
        disk: &dyn Disk,
        place: &SegmentPlace,
        (checkpoint, behind): (&CheckpointRecord, &Behind),
    ) -> Result<Option<LogDamage>, DiskError> {
        let segment = place.segment_of(self.block);
        let whole = place.bytes();
        let length = match place.open(disk, segment)? {
            Some(file) => Some(disk.length(&file)?),
            None => None,
        };
        let kind = match (length, self.cause, behind.witness) {
            (None, _, _) => LogDamageKind::Missing,
            (Some(length), _, _) if length < whole => LogDamageKind::Cut { length, whole },
            (_, Cause::Unreadable, _) => LogDamageKind::Unreadable,
            (_, Cause::Unlinked, _) => LogDamageKind::Unlinked,
            (_, Cause::Senseless, _) => LogDamageKind::Senseless,
            _ if self.block < checkpoint.durable_block => LogDamageKind::KnownToControl,
            (_, Cause::NoBlock, Some(witness)) => witness.shows(place),
            (_, Cause::NoBlock, None) if self.position < checkpoint.lsn => {
                LogDamageKind::BeforeCheckpoint {
                    checkpoint: checkpoint.lsn,
                }
            }
            (_, Cause::NoBlock, None) => return Ok(None),
        };
        let (path, offset) = (place.path(segment), place.offset_of(self.block));
        Ok(Some(LogDamage {
            path,
            offset,
            position: self.position,
            kind,
        }))
    }

    /// Reads the segment of the break and all later ones that exist: one in between may be missing.
    /// Before the break, only blocks of later places tell something.
    pub(crate) async fn look_behind(
        &self,
        disk: &dyn Disk,
        reader: &mut BlockReader,
    ) -> Result<Behind, DiskError> {
        let mut behind = Behind {
            epoch: self.epoch,
            ..Behind::default()
        };
        let blocks = reader.place().blocks;
        let first = reader.place().segment_of(self.block);
        let segments = match reader.place().list(disk) {
            Ok(segments) => segments,
            // The directory of the log is gone as well.
            Err(error) if error.kind == env::DiskErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        for segment in segments.into_iter().filter(|number| first <= *number) {
            let Some(start) = segment.checked_mul(blocks) else {
                continue;
            };
            // A block number of the log is small enough to double.
            let end = start.saturating_add(blocks);
            for place in start..end {
                match reader.fetch(disk, place).await {
                    Ok(true) => self.look_at(reader.bytes(place), place, &mut behind),
                    Ok(false) => break,
                    Err(_) => {
                        if reader.fetch_singly(disk, place).await == Ok(true) {
                            self.look_at(reader.bytes(place), place, &mut behind);
                        }
                    }
                }
            }
        }
        Ok(behind)
    }

    fn look_at(&self, bytes: Option<&[u8]>, place: u64, behind: &mut Behind) {
        if self.block.checked_add(behind.torn_blocks) == Some(place) {
            behind.count_torn(bytes.unwrap_or_default());
        }
        let tells = |number| place < number || (place == number && self.block <= place);
        let Some(bytes) = bytes.filter(|bytes| claimed_block_no(bytes).is_some_and(tells)) else {
            return;
        };
        let Ok((header, _)) = open_log_block(bytes) else {
            return;
        };
        if header.epoch < self.epoch {
            return;
        }
        behind.end = behind.end.max(header.end());
        behind.epoch = behind.epoch.max(header.epoch);
        let number = header.block_no;
        let proves = place < number || self.block < header.durable_block();
        if proves && behind.witness.is_none() {
            behind.witness = Some(Witness { place, number });
        }
    }
}

impl Behind {
    /// Counts the next block if it is torn. Not torn are zeroes, and whole blocks of earlier places
    /// and lives.
    fn count_torn(&mut self, block: &[u8]) {
        let last = block.iter().rposition(|byte| *byte != 0);
        if let Some(last) = last
            && open_log_block(block).is_err()
        {
            self.torn_blocks += 1;
            self.torn_bytes += stdx::to_u64(last) + 1;
        }
    }
}

impl Witness {
    /// What it shows.
    fn shows(self, segments: &SegmentPlace) -> LogDamageKind {
        let path = segments.path(segments.segment_of(self.place));
        let offset = segments.offset_of(self.place);
        if self.place == self.number {
            return LogDamageKind::KnownToBlock { path, offset };
        }
        LogDamageKind::Misplaced {
            number: self.number,
            path,
            offset,
        }
    }
}
