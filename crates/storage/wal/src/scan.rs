//! Reading the log back after a crash.
//!
//! From the block that the checkpoint names, block by block, to the first that is damaged or does
//! not continue the one before; mini-transactions out of their payloads, to the first that is not
//! whole. What is behind the break was never acknowledged.
//!
//! (I1) `position` is the end of the last whole mini-transaction; `pending` begins there.
//! (I2) A block of a later epoch that begins at `position` replaces `pending`: the life that wrote
//! it had found the log to end there.

use env::{Disk, File, IoBuffer};
use format::Lsn;
use format::control::CheckpointRecord;
use format::log::{
    LOG_BLOCK_BYTES, LogBlockHeader, LogMtr, MTR_BYTES_MAX, MtrParse, NO_FIRST_MTR, open_log_block,
    parse_mtr,
};

use crate::WalError;
use crate::segments::SegmentPlace;

/// Blocks of one read.
const READ_BLOCKS: u64 = 64;

/// Where the reading is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No mini-transaction has begun in a block yet.
    Seeking,
    /// Between mini-transactions, or in one.
    Reading,
    /// At the break.
    Ended,
}

/// Reads the mini-transactions behind a checkpoint, in order.
#[derive(Debug)]
pub struct LogScan {
    place: SegmentPlace,
    checkpoint: Lsn,
    /// The log must reach this far.
    log_end: Lsn,
    state: State,
    /// End of the last whole mini-transaction (I1).
    position: Lsn,
    /// Bytes from `position` on.
    pending: Vec<u8>,
    /// Bytes at the front of `pending` that were given out already.
    given: usize,
    epoch: u32,
    next_block: u64,
    /// The open segment.
    file: Option<(u64, File)>,
    /// Blocks read from `chunk_block` on.
    chunk: Option<IoBuffer>,
    chunk_block: u64,
    chunk_blocks: u64,
}

/// Where the log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogEnd {
    /// The next byte's LSN.
    pub(crate) lsn: Lsn,
    /// The next block to write.
    pub(crate) block: u64,
    /// The latest epoch seen.
    pub(crate) epoch: u32,
}

impl LogScan {
    pub(crate) fn new(place: SegmentPlace, checkpoint: &CheckpointRecord) -> Self {
        Self {
            place,
            checkpoint: checkpoint.lsn,
            log_end: checkpoint.log_end,
            state: State::Seeking,
            position: checkpoint.lsn,
            pending: Vec::new(),
            given: 0,
            epoch: checkpoint.block_epoch,
            next_block: checkpoint.block_no,
            file: None,
            chunk: None,
            chunk_block: 0,
            chunk_blocks: 0,
        }
    }

    /// The next whole mini-transaction that begins at the checkpoint or later; `None` at the end
    /// of the log.
    pub async fn next(&mut self, disk: &dyn Disk) -> Result<Option<LogMtr<'_>>, WalError> {
        loop {
            self.pending.drain(..self.given);
            self.given = 0;
            let parsed = match self.state {
                State::Ended => return self.finish(),
                State::Seeking => MtrParse::Partial,
                State::Reading => parse_mtr(&self.pending, self.position),
            };
            match parsed {
                MtrParse::Whole(mtr, length) => {
                    self.given = length;
                    self.position = mtr.end;
                    if self.checkpoint <= mtr.start {
                        break;
                    }
                }
                MtrParse::Partial if self.pending.len() <= MTR_BYTES_MAX => {
                    self.load_block(disk, true).await?;
                }
                MtrParse::Partial | MtrParse::Broken => self.load_block(disk, false).await?,
            }
        }
        // The borrow checker wants the mini-transaction parsed again to be given out.
        let start = self.start_of_given();
        match parse_mtr(self.pending.get(..self.given).unwrap_or(&[]), start) {
            MtrParse::Whole(mtr, _) => Ok(Some(mtr)),
            MtrParse::Partial | MtrParse::Broken => unreachable!("it was whole a moment ago"),
        }
    }

    fn start_of_given(&self) -> Lsn {
        let length = stdx::to_u64(self.given);
        Lsn(self
            .position
            .0
            .checked_sub(length)
            .expect("it begins before it ends"))
    }

    fn finish(&self) -> Result<Option<LogMtr<'_>>, WalError> {
        if self.position < self.checkpoint {
            return Err(WalError::CheckpointUnreachable {
                checkpoint: self.checkpoint,
            });
        }
        // What was durable may have ended inside a mini-transaction: its front counts.
        let found = self.position.advance(stdx::to_u64(self.pending.len()));
        if found < self.log_end {
            let durable = self.log_end;
            return Err(WalError::LogLost { found, durable });
        }
        Ok(None)
    }

    /// Where the log ends, once [`LogScan::next`] has given `None`.
    ///
    /// # Panics
    /// Before that.
    pub(crate) fn end(&self) -> LogEnd {
        assert_eq!(self.state, State::Ended);
        LogEnd {
            lsn: self.position,
            block: self.next_block,
            epoch: self.epoch,
        }
    }

    /// LSN behind the last whole mini-transaction given out or skipped.
    pub fn position(&self) -> Lsn {
        self.position
    }

    /// Takes the next block in; `continues` if it may go on with what is pending. At the break the
    /// scan ends.
    async fn load_block(&mut self, disk: &dyn Disk, continues: bool) -> Result<(), WalError> {
        let number = self.next_block;
        if !self.fetch(disk, number).await? {
            self.state = State::Ended;
            return Ok(());
        }
        let taken = self.take_block(number, continues);
        if taken.is_none() {
            self.state = State::Ended;
        }
        Ok(())
    }

    fn take_block(&mut self, number: u64, continues: bool) -> Option<()> {
        let at = usize::try_from(number.checked_sub(self.chunk_block)?).ok()?;
        let at = at.checked_mul(LOG_BLOCK_BYTES)?;
        let block = self
            .chunk
            .as_ref()?
            .get(at..at.checked_add(LOG_BLOCK_BYTES)?)?;
        let (header, payload) = open_log_block(block).ok()?;
        if header.block_no != number || header.epoch < self.epoch {
            return None;
        }
        if self.state == State::Seeking {
            let (position, payload) = begin(&header, payload, self.position)?;
            self.pending.clear();
            if let Some(position) = position {
                self.position = position;
                self.state = State::Reading;
            }
            self.pending.extend_from_slice(payload);
        } else {
            let pending_end = self
                .position
                .0
                .checked_add(stdx::to_u64(self.pending.len()))?;
            if self.epoch < header.epoch && header.start == self.position {
                self.pending.clear();
            } else if !continues || header.start.0 != pending_end {
                return None;
            }
            self.pending.extend_from_slice(payload);
        }
        self.epoch = header.epoch;
        self.next_block = number.checked_add(1)?;
        Some(())
    }

    /// Makes sure that block `number` is in the chunk; false if no file has it.
    async fn fetch(&mut self, disk: &dyn Disk, number: u64) -> Result<bool, WalError> {
        let chunk_end = self.chunk_block.saturating_add(self.chunk_blocks);
        if (self.chunk_block..chunk_end).contains(&number) {
            return Ok(true);
        }
        let segment = self.place.segment_of(number);
        if self.file.as_ref().is_none_or(|(open, _)| *open != segment) {
            self.file = self.place.open(disk, segment)?.map(|file| (segment, file));
            if let Some((_, file)) = &self.file {
                // The process may have died with the machine alive: what is read here must not
                // vanish later, when pages in the files depend on it.
                disk.sync(file).await?;
            }
        }
        let Some((_, file)) = &self.file else {
            return Ok(false);
        };
        let left = self.place.blocks - number % self.place.blocks;
        let count = left.min(READ_BLOCKS);
        let buffer = IoBuffer::zeroed(stdx::to_usize(count) * LOG_BLOCK_BYTES);
        let offset = self.place.offset_of(number);
        let (buffer, outcome) = disk.read(file, offset, buffer).await;
        let length = outcome?;
        self.chunk_block = number;
        self.chunk_blocks = stdx::to_u64(length / LOG_BLOCK_BYTES);
        self.chunk = Some(buffer);
        Ok(0 < self.chunk_blocks)
    }
}

/// Where to begin in the first blocks: at the first mini-transaction in one. `None` for a block
/// that cannot lead to the checkpoint.
fn begin<'a>(
    header: &LogBlockHeader,
    payload: &'a [u8],
    checkpoint: Lsn,
) -> Option<(Option<Lsn>, &'a [u8])> {
    if checkpoint < header.start {
        return None;
    }
    if header.first_mtr == NO_FIRST_MTR {
        return Some((None, &[]));
    }
    let position = header.start.0.checked_add(u64::from(header.first_mtr))?;
    // The checkpoint is where a mini-transaction begins, so the first one here is not behind it.
    if checkpoint.0 < position {
        return None;
    }
    Some((
        Some(Lsn(position)),
        payload.get(usize::from(header.first_mtr)..)?,
    ))
}
