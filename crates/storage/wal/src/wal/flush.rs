//! Flushing: the role of the worker that writes log at present.
//!
//! There is no timer and no delay knob. The worker that takes the role writes all that is ready,
//! and again while a task waits for more. What is committed during a write goes out with the next
//! one, so the batch grows with the load by itself.

use std::sync::Arc;

use env::{Disk, File, IoBuffer, WriteDurability};
use format::Lsn;
use format::log::{
    LOG_BLOCK_BYTES, LOG_BLOCK_HEADER_BYTES, LOG_BLOCK_PAYLOAD_BYTES, LogBlockHeader, NO_FIRST_MTR,
    seal_log_block,
};
use stdx::planted::{Mistake, is_planted};
use sync::LogRingReader;

use crate::segments::{SegmentPlace, Segments};
use crate::wal::waiters::LogLevel;
use crate::{Wal, WalError};

/// The leader's state; between two flushes other workers may read it.
#[derive(Debug)]
pub(crate) struct FlushState {
    /// Reads from the ring.
    pub(crate) reader: LogRingReader,
    /// End of what is written; the ring is released up to here.
    pub(crate) written: Lsn,
    /// The block that is written next.
    pub(crate) next_block: u64,
    /// The blocks before this one are durable (D1 of `damage`).
    pub(crate) durable_block: u64,
    /// Start of the next mini-transaction that no block header has named yet.
    pub(crate) next_mtr: Lsn,
    /// The epoch in each block header of this life.
    pub(crate) epoch: u32,
    /// Files with writes that are not durable yet.
    pub(crate) unsynced: Vec<(u64, File)>,
    pub(crate) segments: Segments,
    pub(crate) place: SegmentPlace,
    /// First LSN of every few blocks, to find the block of a checkpoint.
    pub(crate) block_starts: std::collections::VecDeque<BlockStart>,
}

/// Where a block begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockStart {
    pub(crate) block: u64,
    pub(crate) start: Lsn,
    /// The epoch of the life that wrote or will write it.
    pub(crate) epoch: u32,
}

/// Blocks between two entries of `block_starts`: a checkpoint may make recovery skip this much.
const BLOCK_START_DISTANCE: usize = 16;

/// One disk write of log.
struct Write {
    file: File,
    segment: u64,
    offset: u64,
    bytes: IoBuffer,
    blocks: u64,
    end: Lsn,
}

impl FlushState {
    /// Puts what is ready into new blocks: as much as one write may have and the segment holds.
    fn prepare(&mut self, bytes_max: usize, prepared_end: u64) -> Option<Write> {
        let ready = Lsn(self.reader.ready());
        assert!(self.written <= ready, "what is written was ready");
        let length = ready.since(self.written);
        let segment = self.place.segment_of(self.next_block);
        let blocks_left = self.place.blocks - self.next_block % self.place.blocks;
        // The last prepared block is written only when there is one after it (D3 of `damage`).
        let blocks_left = blocks_left.min(prepared_end.saturating_sub(self.next_block + 1));
        let blocks_max = stdx::to_u64(bytes_max / LOG_BLOCK_BYTES).max(1);
        let payload = stdx::to_u64(LOG_BLOCK_PAYLOAD_BYTES);
        let blocks = length.div_ceil(payload).min(blocks_max).min(blocks_left);
        if blocks == 0 {
            return None;
        }
        let file = self.segments.file(segment)?;
        let mut bytes = IoBuffer::zeroed(stdx::to_usize(blocks) * LOG_BLOCK_BYTES);
        let mut at = self.written;
        for (number, block) in (self.next_block..).zip(bytes.chunks_exact_mut(LOG_BLOCK_BYTES)) {
            let used = ready.since(at).min(payload);
            self.fill_block(block, number, (at, used));
            at = at.advance(used);
        }
        assert!(at <= ready);
        if 1 < blocks && is_planted(Mistake::LeavesLogHoles) {
            bytes[..LOG_BLOCK_BYTES].fill(0);
        }
        let offset = self.place.offset_of(self.next_block);
        Some(Write {
            file,
            segment,
            offset,
            bytes,
            blocks,
            end: at,
        })
    }

    fn fill_block(&mut self, block: &mut [u8], block_no: u64, (start, used): (Lsn, u64)) {
        assert!(start <= self.next_mtr, "each mini-transaction is met once");
        assert!(
            self.durable_block <= block_no,
            "durable blocks are not written again"
        );
        let length = stdx::to_usize(used);
        let range = LOG_BLOCK_HEADER_BYTES..LOG_BLOCK_HEADER_BYTES + length;
        let payload = block.get_mut(range).expect("a block holds its payload");
        self.reader.read(start.0, payload);
        let end = start.advance(used);
        let mut first_mtr = NO_FIRST_MTR;
        while self.next_mtr < end {
            if first_mtr == NO_FIRST_MTR {
                let offset = self.next_mtr.since(start);
                first_mtr = u16::try_from(offset).expect("an offset in a block is small");
            }
            // What is ready ends between mini-transactions, so the length is readable.
            let mut length = [0; 4];
            self.reader.read(self.next_mtr.0, &mut length);
            let length = u64::from(u32::from_le_bytes(length));
            assert!(0 < length);
            self.next_mtr = self.next_mtr.advance(length);
        }
        let used = u16::try_from(used).expect("a payload has less than 4096 bytes");
        let header = LogBlockHeader {
            block_no,
            start,
            epoch: self.epoch,
            used,
            first_mtr,
            durable_lag: u32::try_from(block_no - self.durable_block)
                .expect("log that nobody waits for is made durable each second"),
        };
        seal_log_block(block, &header);
    }

    /// Notes where the block that is `number` blocks after the next one begins, if all between are
    /// full and it is not noted yet.
    pub(crate) fn note_block(&mut self, number: u64) {
        let block = self.next_block + number;
        let last = self.block_starts.back();
        if last.is_some_and(|last| last.block == block) {
            return;
        }
        assert!(last.is_none_or(|last| last.block < block));
        let payload = stdx::to_u64(LOG_BLOCK_PAYLOAD_BYTES);
        self.block_starts.push_back(BlockStart {
            block,
            start: self.written.advance(number * payload),
            epoch: self.epoch,
        });
    }

    /// Notes that a write has been done.
    fn advance(&mut self, write: &Write, durability: WriteDurability) {
        assert!(self.written < write.end, "a write has log in it");
        assert_eq!(self.place.segment_of(self.next_block), write.segment);
        let last = self.block_starts.back();
        let due = last.map_or(0, |last| last.block + stdx::to_u64(BLOCK_START_DISTANCE));
        let first = due.saturating_sub(self.next_block);
        for number in (first..write.blocks).step_by(BLOCK_START_DISTANCE) {
            self.note_block(number);
        }
        if durability == WriteDurability::Volatile
            && self
                .unsynced
                .iter()
                .all(|(segment, _)| *segment != write.segment)
        {
            self.unsynced.push((write.segment, write.file.clone()));
        }
        self.next_block += write.blocks;
        if durability == WriteDurability::Sync {
            assert!(self.unsynced.is_empty(), "all before is durable, too");
            self.durable_block = self.next_block;
        }
        self.written = write.end;
        self.reader.release(write.end.0);
    }
}

/// The right to write log. If it is dropped before or during its run, it returns the role.
#[derive(Debug)]
#[must_use = "nobody else writes log while this exists"]
pub struct FlushJob {
    wal: Arc<Wal>,
    /// Whether a write is under way whose outcome is unknown.
    in_doubt: bool,
}

impl FlushJob {
    pub(crate) fn new(wal: Arc<Wal>) -> Self {
        Self {
            wal,
            in_doubt: false,
        }
    }

    /// Writes while a task waits for log. A failure poisons the log, which wakes the waiters.
    pub async fn run(mut self, disk: &dyn Disk) {
        loop {
            while let Some(level) = self.wal.wanted() {
                if !self.flush(disk, level).await {
                    return;
                }
            }
            let wal = Arc::clone(&self.wal);
            drop(self);
            // A worker that asked between the last check and the return of the role was refused it.
            match wal.try_lead() {
                Some(next) => self = next,
                None => return,
            }
        }
    }

    /// One write and what belongs to it. Returns false if nothing can be done.
    async fn flush(&mut self, disk: &dyn Disk, level: LogLevel) -> bool {
        let wal = Arc::clone(&self.wal);
        let (write, has_unsynced) = {
            let mut state = wal.flush_state().lock();
            (
                state.prepare(wal.options().flush_bytes_max, wal.prepared_end()),
                !state.unsynced.is_empty(),
            )
        };
        let durability = match level {
            LogLevel::Durable if !has_unsynced => WriteDurability::Sync,
            LogLevel::Durable | LogLevel::Written => WriteDurability::Volatile,
        };
        if write.is_none() && (level == LogLevel::Written || !has_unsynced) {
            return false;
        }
        self.in_doubt = true;
        let outcome = match write {
            Some(write) => self.write(disk, write, durability).await,
            None => Ok(()),
        };
        let outcome = match (outcome, level) {
            (Ok(()), LogLevel::Durable) if has_unsynced => self.sync(disk).await,
            (outcome, _) => outcome,
        };
        self.in_doubt = false;
        if let Err(error) = outcome {
            wal.fail(error);
            return false;
        }
        true
    }

    async fn write(
        &self,
        disk: &dyn Disk,
        mut write: Write,
        durability: WriteDurability,
    ) -> Result<(), WalError> {
        let bytes = std::mem::replace(&mut write.bytes, IoBuffer::zeroed(1));
        let (_, outcome) = disk
            .write(&write.file, write.offset, bytes, durability)
            .await;
        outcome?;
        self.wal.flush_state().lock().advance(&write, durability);
        self.wal.publish_written(write.end, write.blocks);
        let counters = self.wal.flush_counters();
        counters.writes.increment();
        counters
            .written_bytes
            .add(write.blocks * stdx::to_u64(LOG_BLOCK_BYTES));
        if durability == WriteDurability::Sync {
            counters.syncs.increment();
            self.wal.publish_durable(write.end);
        }
        Ok(())
    }

    async fn sync(&self, disk: &dyn Disk) -> Result<(), WalError> {
        let (files, end, blocks) = {
            let mut state = self.wal.flush_state().lock();
            let files = std::mem::take(&mut state.unsynced);
            (files, state.written, state.next_block)
        };
        for (_, file) in &files {
            disk.sync(file).await?;
            self.wal.flush_counters().syncs.increment();
        }
        {
            let mut state = self.wal.flush_state().lock();
            assert!(state.durable_block <= blocks && blocks <= state.next_block);
            state.durable_block = blocks;
        }
        self.wal.publish_durable(end);
        Ok(())
    }
}

impl Drop for FlushJob {
    fn drop(&mut self) {
        if self.in_doubt {
            // The task was dropped in the middle of a write. The blocks may be there or not, and
            // must not be written a second time.
            self.wal.fail(WalError::Poisoned);
        }
        self.wal.release_lead();
    }
}
