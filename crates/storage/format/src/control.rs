//! The control file: where recovery starts.
//!
//! Layout: `docs/formats/control.md`. Two blocks of 4 KiB; a checkpoint writes the one that does
//! not hold the latest record, so a torn write leaves the other. The valid record with the higher
//! sequence number counts.

use thiserror::Error;

use crate::codec::{self, Reader, Truncated};
use crate::ids::Lsn;
use crate::lives::{LIFE_BYTES, LIVES_MAX, LifeEnds};
use crate::log::{EPOCH_MAX, LOG_COUNT_MAX};

/// Bytes of one of the two blocks.
pub const CONTROL_BLOCK_BYTES: usize = 4096;
/// Bytes of the whole file.
pub const CONTROL_FILE_BYTES: usize = 2 * CONTROL_BLOCK_BYTES;
/// Bytes that the engine may keep in a record.
pub const CHECKPOINT_PAYLOAD_BYTES_MAX: usize =
    CONTROL_BLOCK_BYTES - HEADER_BYTES - LIVES_MAX * LIFE_BYTES;

/// Blocks of the largest log segment, 256 MiB. A record that names more is damaged, and following
/// it would fill the disk.
pub const SEGMENT_BLOCKS_MAX: u32 = 1 << 16;

const HEADER_BYTES: usize = 72;
const MAGIC: [u8; 8] = *b"PLATCTL2";

/// In the field of flags: the log was closed.
const IS_CLOSED: u32 = 1;
/// In the field of flags: pages are newer than the log.
const HAS_NEWER_PAGES: u32 = 2;

/// A checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointRecord {
    /// Counts the records; its parity says which block it is in.
    pub sequence: u64,
    /// Every change before this LSN is in the data files.
    pub lsn: Lsn,
    /// A log block from which the log must be read to meet `lsn`.
    pub block_no: u64,
    /// The epoch of that block at least: a block of an earlier life is a leftover.
    pub block_epoch: u32,
    /// The latest life of the server; the next one is one more.
    pub epoch: u32,
    /// Blocks of one log segment, 1 to [`SEGMENT_BLOCKS_MAX`]; constant for a data directory.
    pub segment_blocks: u32,
    /// The blocks before this one were durable: a log that ends earlier has lost acknowledged
    /// changes.
    pub durable_block: u64,
    /// The log was closed in order: nothing was written after the checkpoint, and no segment is
    /// needed.
    pub is_closed: bool,
    /// A loss of log was accepted while pages had changes of the lost part, and the engine has not
    /// put its own pages right yet.
    pub has_newer_pages: bool,
    /// Where the logs of earlier lives ended.
    pub lives: LifeEnds,
    /// The engine's payload (next ids).
    pub payload: Vec<u8>,
}

/// Why a control file has no checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ControlError {
    /// Neither block holds a valid record.
    #[error("the control file holds no valid checkpoint")]
    NoRecord,
}

impl CheckpointRecord {
    /// Offset in the file of the block for this record.
    pub fn file_offset(&self) -> u64 {
        (self.sequence % 2) * 4096
    }

    /// The record as a block.
    ///
    /// # Panics
    /// If the payload is longer than [`CHECKPOINT_PAYLOAD_BYTES_MAX`].
    pub fn encode(&self) -> [u8; CONTROL_BLOCK_BYTES] {
        assert!(self.payload.len() <= CHECKPOINT_PAYLOAD_BYTES_MAX);
        let length = u32::try_from(self.payload.len()).expect("asserted above");
        let lives = u32::try_from(self.lives.len()).expect("the list is bounded");
        let flag = |is_set: bool, bit: u32| if is_set { bit } else { 0 };
        let flags = flag(self.is_closed, IS_CLOSED) | flag(self.has_newer_pages, HAS_NEWER_PAGES);
        let fields: [&[u8]; 12] = [
            &[0; 8],
            &MAGIC,
            &self.sequence.to_le_bytes(),
            &self.lsn.0.to_le_bytes(),
            &self.block_no.to_le_bytes(),
            &self.epoch.to_le_bytes(),
            &self.segment_blocks.to_le_bytes(),
            &length.to_le_bytes(),
            &self.block_epoch.to_le_bytes(),
            &self.durable_block.to_le_bytes(),
            &flags.to_le_bytes(),
            &lives.to_le_bytes(),
        ];
        let mut bytes = fields.concat();
        assert_eq!(bytes.len(), HEADER_BYTES);
        self.lives.encode(&mut bytes);
        bytes.extend_from_slice(&self.payload);
        let mut block = [0; CONTROL_BLOCK_BYTES];
        codec::put_at(&mut block, 0, &bytes).expect("lives and payload are bounded");
        let sum = codec::checksum(block.get(8..).expect("the block is longer"));
        codec::put_at(&mut block, 0, &sum.to_le_bytes()).expect("the block is longer");
        block
    }

    /// The record in a block, or `None` if it holds none.
    pub fn decode(block: &[u8]) -> Option<Self> {
        let stored = codec::u64_at(block, 0)?;
        let covered = block.get(8..CONTROL_BLOCK_BYTES)?;
        if codec::checksum(covered) != stored {
            return None;
        }
        let mut reader = Reader::new(covered);
        if reader.array() != Ok(MAGIC) {
            return None;
        }
        Self::decode_fields(&mut reader).ok()
    }

    fn decode_fields(reader: &mut Reader<'_>) -> Result<Self, Truncated> {
        let sequence = reader.u64()?;
        let lsn = reader.lsn()?;
        let block_no = reader.u64()?;
        let epoch = reader.u32()?;
        let segment_blocks = reader.u32()?;
        let length = usize::try_from(reader.u32()?).map_err(|_| Truncated)?;
        let block_epoch = reader.u32()?;
        let durable_block = reader.u64()?;
        let flags = reader.u32()?;
        let life_count = reader.u32()?;
        let lives = LifeEnds::decode(reader, life_count)?;
        let payload = reader.bytes(length)?.to_vec();
        let is_known = flags & !(IS_CLOSED | HAS_NEWER_PAGES) == 0;
        if CHECKPOINT_PAYLOAD_BYTES_MAX < payload.len() || !is_known {
            return Err(Truncated);
        }
        let record = Self {
            sequence,
            lsn,
            block_no,
            block_epoch,
            epoch,
            segment_blocks,
            durable_block,
            is_closed: flags & IS_CLOSED != 0,
            has_newer_pages: flags & HAS_NEWER_PAGES != 0,
            lives,
            payload,
        };
        record.is_possible().then_some(record).ok_or(Truncated)
    }

    /// Whether a server can have written it: its segments have a valid size, its counts leave room
    /// for what follows, and redo begins in durable log.
    pub fn is_possible(&self) -> bool {
        let counts = [self.sequence, self.lsn.0, self.block_no, self.durable_block];
        (1..=SEGMENT_BLOCKS_MAX).contains(&self.segment_blocks)
            && counts.iter().all(|count| *count <= LOG_COUNT_MAX)
            && self.block_no <= self.durable_block
            && self.epoch.max(self.block_epoch) <= EPOCH_MAX
            && self.lives.is_possible()
    }

    /// The newest valid record of a control file.
    pub fn newest(file: &[u8]) -> Result<Self, ControlError> {
        let first = file.get(..CONTROL_BLOCK_BYTES).and_then(Self::decode);
        let second = file.get(CONTROL_BLOCK_BYTES..).and_then(Self::decode);
        let newest = [first, second]
            .into_iter()
            .flatten()
            .max_by_key(|record| record.sequence);
        newest.ok_or(ControlError::NoRecord)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample(sequence: u64) -> CheckpointRecord {
        CheckpointRecord {
            sequence,
            lsn: Lsn(0x1122),
            block_no: 0x3344,
            block_epoch: 0x54,
            epoch: 0x55,
            segment_blocks: 0x66,
            durable_block: 0x7777,
            is_closed: true,
            has_newer_pages: false,
            lives: lives(&[(0x88, 0x99), (0xAA, 0xBB)]),
            payload: b"next".to_vec(),
        }
    }

    fn lives(entries: &[(u32, u64)]) -> LifeEnds {
        let mut lives = LifeEnds::default();
        for &(epoch, end) in entries {
            lives.push(epoch, Lsn(end));
        }
        lives
    }

    #[test]
    fn layout_is_pinned() {
        let block = sample(3).encode();
        assert_eq!(&block[8..16], b"PLATCTL2");
        assert_eq!(codec::u64_at(&block, 16), Some(3));
        assert_eq!(codec::u64_at(&block, 24), Some(0x1122));
        assert_eq!(codec::u64_at(&block, 32), Some(0x3344));
        assert_eq!(codec::u32_at(&block, 40), Some(0x55));
        assert_eq!(codec::u32_at(&block, 44), Some(0x66));
        assert_eq!(codec::u32_at(&block, 48), Some(4));
        assert_eq!(codec::u32_at(&block, 52), Some(0x54));
        assert_eq!(codec::u64_at(&block, 56), Some(0x7777));
        assert_eq!(codec::u32_at(&block, 64), Some(1));
        assert_eq!(codec::u32_at(&block, 68), Some(2));
        assert_eq!(codec::u32_at(&block, 72), Some(0x88));
        assert_eq!(codec::u64_at(&block, 76), Some(0x99));
        assert_eq!(codec::u32_at(&block, 84), Some(0xAA));
        assert_eq!(codec::u64_at(&block, 88), Some(0xBB));
        assert_eq!(&block[96..100], b"next");
        assert_eq!(sample(3).file_offset(), 4096);
        assert_eq!(CheckpointRecord::decode(&block), Some(sample(3)));
    }

    #[test]
    fn the_newer_valid_block_counts() {
        let mut file = [sample(4).encode(), sample(3).encode()].concat();
        assert_eq!(CheckpointRecord::newest(&file), Ok(sample(4)));
        file[100] ^= 1;
        assert_eq!(CheckpointRecord::newest(&file), Ok(sample(3)));
        file[5000] ^= 1;
        assert_eq!(CheckpointRecord::newest(&file), Err(ControlError::NoRecord));
        assert_eq!(CheckpointRecord::newest(&[]), Err(ControlError::NoRecord));
    }

    #[test]
    fn each_flag_is_kept_and_an_unknown_one_is_refused() {
        for (is_closed, has_newer_pages) in
            [(false, false), (true, false), (false, true), (true, true)]
        {
            let record = CheckpointRecord {
                is_closed,
                has_newer_pages,
                ..sample(1)
            };
            assert_eq!(CheckpointRecord::decode(&record.encode()), Some(record));
        }
        let mut block = sample(1).encode();
        codec::put_at(&mut block, 64, &4_u32.to_le_bytes()).unwrap();
        let sum = codec::checksum(&block[8..]);
        codec::put_at(&mut block, 0, &sum.to_le_bytes()).unwrap();
        assert_eq!(CheckpointRecord::decode(&block), None);
    }

    #[test]
    fn segments_have_a_size_that_can_be() {
        let with = |segment_blocks| CheckpointRecord {
            segment_blocks,
            ..sample(1)
        };
        for segment_blocks in [1, SEGMENT_BLOCKS_MAX - 1, SEGMENT_BLOCKS_MAX] {
            let record = with(segment_blocks);
            assert_eq!(CheckpointRecord::decode(&record.encode()), Some(record));
        }
        for segment_blocks in [0, SEGMENT_BLOCKS_MAX + 1, u32::MAX] {
            let block = with(segment_blocks).encode();
            assert_eq!(CheckpointRecord::decode(&block), None);
        }
    }

    #[test]
    fn counts_leave_room_for_what_follows() {
        let changes: [fn(&mut CheckpointRecord, u64); 4] = [
            |record, count| record.sequence = count,
            |record, count| record.lsn = Lsn(count),
            |record, count| (record.block_no, record.durable_block) = (count, count),
            |record, count| record.durable_block = count,
        ];
        for change in changes {
            for (count, fits) in [(LOG_COUNT_MAX - 1, true), (LOG_COUNT_MAX, true)]
                .into_iter()
                .chain([LOG_COUNT_MAX + 1, u64::MAX].map(|count| (count, false)))
            {
                let mut record = sample(1);
                change(&mut record, count);
                assert_eq!(CheckpointRecord::decode(&record.encode()).is_some(), fits);
            }
        }
        for (epoch, fits) in [
            (EPOCH_MAX - 1, true),
            (EPOCH_MAX, true),
            (EPOCH_MAX + 1, false),
        ] {
            let latest = CheckpointRecord { epoch, ..sample(1) };
            assert_eq!(CheckpointRecord::decode(&latest.encode()).is_some(), fits);
            let block = CheckpointRecord {
                block_epoch: epoch,
                ..sample(1)
            };
            assert_eq!(CheckpointRecord::decode(&block.encode()).is_some(), fits);
        }
    }

    #[test]
    fn redo_begins_in_durable_log() {
        for (block_no, fits) in [(0x7776, true), (0x7777, true), (0x7778, false)] {
            let record = CheckpointRecord {
                block_no,
                ..sample(1)
            };
            assert_eq!(CheckpointRecord::decode(&record.encode()).is_some(), fits);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_or_refused(bytes: [u8; 32]) {
            prop_assert_eq!(CheckpointRecord::decode(&bytes), None);
        }
    }
}
