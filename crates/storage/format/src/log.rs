//! The log: 4 KiB blocks in segment files, and the mini-transactions in them.
//!
//! Layout: `docs/formats/log.md`. A block carries a run of the LSN space; a mini-transaction is a
//! run of that space and may begin and end anywhere in a block. A block is written once: each flush
//! starts a new one, and the rest of the last one of a flush is padding.

use thiserror::Error;

use crate::codec::{self, Reader, Truncated};
use crate::ids::{Lsn, PageId};

/// Bytes of a block.
pub const LOG_BLOCK_BYTES: usize = 4096;
/// Bytes of a block's header.
pub const LOG_BLOCK_HEADER_BYTES: usize = 32;
/// Bytes of log that a block carries at most.
pub const LOG_BLOCK_PAYLOAD_BYTES: usize = LOG_BLOCK_BYTES - LOG_BLOCK_HEADER_BYTES;
/// The largest block number, LSN or number of a record. No log gets that far, and the next values
/// still fit into 64 bits.
pub const LOG_COUNT_MAX: u64 = 1 << 62;
/// The largest epoch: there is room for another life after it.
pub const EPOCH_MAX: u32 = u32::MAX - 1;
/// `first_mtr` of a block in which no mini-transaction begins.
pub const NO_FIRST_MTR: u16 = u16::MAX;

const CHECKSUM_AT: usize = 28;

/// The header of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogBlockHeader {
    /// Counts the blocks of the log from its beginning; the place in the files is derived from it.
    pub block_no: u64,
    /// LSN of the block's first byte of payload.
    pub start: Lsn,
    /// The life of the server that wrote it; never falls along the log.
    pub epoch: u32,
    /// Bytes of payload.
    pub used: u16,
    /// Offset in the payload of the first mini-transaction that begins here, or [`NO_FIRST_MTR`].
    pub first_mtr: u16,
    /// Blocks from the first that was not durable yet when this one was built, to this one. At most
    /// `block_no`.
    pub durable_lag: u32,
}

impl LogBlockHeader {
    /// The blocks before this one were durable when this block was built.
    pub fn durable_block(&self) -> u64 {
        self.block_no.saturating_sub(u64::from(self.durable_lag))
    }

    /// LSN after the block's payload.
    pub fn end(&self) -> Lsn {
        self.start.advance(u64::from(self.used))
    }
}

/// Why bytes are not a block of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LogBlockError {
    /// Not 4096 bytes.
    #[error("a log block has {LOG_BLOCK_BYTES} bytes")]
    Length,
    /// Torn, never written, or damaged.
    #[error("the checksum of the log block is wrong")]
    Checksum,
    /// More payload than fits.
    #[error("the log block says that it carries {0} bytes")]
    Used(u16),
    /// Numbers that no log can reach.
    #[error("block number, LSN, epoch or durable lag of the log block is larger than any log's")]
    Count,
}

/// Writes header and checksum around the payload that is already in `block`, and zeroes the
/// padding.
///
/// # Panics
/// If `block` is not 4096 bytes or `used` does not fit.
pub fn seal_log_block(block: &mut [u8], header: &LogBlockHeader) {
    assert_eq!(block.len(), LOG_BLOCK_BYTES);
    let used = usize::from(header.used);
    assert!(used <= LOG_BLOCK_PAYLOAD_BYTES);
    block
        .get_mut(LOG_BLOCK_HEADER_BYTES + used..)
        .expect("asserted above")
        .fill(0);
    let fields: [&[u8]; 7] = [
        &header.block_no.to_le_bytes(),
        &header.start.0.to_le_bytes(),
        &header.epoch.to_le_bytes(),
        &header.used.to_le_bytes(),
        &header.first_mtr.to_le_bytes(),
        &header.durable_lag.to_le_bytes(),
        &[0; 4],
    ];
    let mut at = 0;
    for field in fields {
        codec::put_at(block, at, field).expect("a header is shorter than a block");
        at += field.len();
    }
    let sum = codec::checksum_short(block);
    codec::put_at(block, CHECKSUM_AT, &sum.to_le_bytes()).expect("asserted above");
}

/// Checks a block and returns its header and payload.
pub fn open_log_block(block: &[u8]) -> Result<(LogBlockHeader, &[u8]), LogBlockError> {
    let whole: &[u8; LOG_BLOCK_BYTES] = block.try_into().map_err(|_| LogBlockError::Length)?;
    let stored = codec::u32_at(whole, CHECKSUM_AT).ok_or(LogBlockError::Length)?;
    let mut blanked = *whole;
    codec::put_at(&mut blanked, CHECKSUM_AT, &[0; 4]).ok_or(LogBlockError::Length)?;
    if codec::checksum_short(&blanked) != stored {
        return Err(LogBlockError::Checksum);
    }
    let header = decode_log_block_header(whole).map_err(|_| LogBlockError::Length)?;
    let count = header.block_no.max(header.start.0);
    let lags_too_far = header.block_no < u64::from(header.durable_lag);
    if LOG_COUNT_MAX < count || EPOCH_MAX < header.epoch || lags_too_far {
        return Err(LogBlockError::Count);
    }
    let payload = block
        .get(LOG_BLOCK_HEADER_BYTES..)
        .ok_or(LogBlockError::Length)?;
    let payload = payload
        .get(..usize::from(header.used))
        .ok_or(LogBlockError::Used(header.used))?;
    Ok((header, payload))
}

fn decode_log_block_header(block: &[u8]) -> Result<LogBlockHeader, Truncated> {
    let mut reader = Reader::new(block);
    Ok(LogBlockHeader {
        block_no: reader.u64()?,
        start: reader.lsn()?,
        epoch: reader.u32()?,
        used: reader.u16()?,
        first_mtr: reader.u16()?,
        durable_lag: reader.u32()?,
    })
}

/// The number in a block, before anything in it is checked: to skip blocks of another place
/// quickly.
pub fn claimed_block_no(block: &[u8]) -> Option<u64> {
    codec::u64_at(block, 0)
}

/// Bytes of a mini-transaction's header.
pub const MTR_HEADER_BYTES: usize = 16;
/// Bytes of a mini-transaction at most; larger lengths are garbage.
pub const MTR_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What an operation does; the crate that registered the kind defines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpKind(pub u8);

/// Pages that one operation changes at most.
pub const OP_PAGES_MAX: usize = 2;
/// Bytes of payload of one operation at most.
pub const OP_PAYLOAD_BYTES_MAX: usize = 65_535;

/// One operation of a mini-transaction, borrowed from the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogOp<'a> {
    /// What it does.
    pub kind: OpKind,
    /// First and second page. An operation on no page is a note to the engine (a commit).
    pages: [PageId; OP_PAGES_MAX],
    page_count: usize,
    /// The data of the operation.
    pub payload: &'a [u8],
}

impl<'a> LogOp<'a> {
    /// An operation on at most two pages.
    ///
    /// # Panics
    /// If there are more pages or more bytes than an operation has.
    pub fn new(kind: OpKind, pages: &[PageId], payload: &'a [u8]) -> Self {
        assert!(payload.len() <= OP_PAYLOAD_BYTES_MAX);
        let mut slots = [PageId::default(); OP_PAGES_MAX];
        slots
            .get_mut(..pages.len())
            .expect("at most two pages")
            .copy_from_slice(pages);
        Self {
            kind,
            pages: slots,
            page_count: pages.len(),
            payload,
        }
    }

    /// The pages that it changes.
    pub fn pages(&self) -> &[PageId] {
        self.pages.get(..self.page_count).unwrap_or(&[])
    }

    /// Bytes of the encoded operation.
    pub fn encoded_bytes(&self) -> usize {
        4 + self.page_count * PageId::BYTES + self.payload.len()
    }

    /// Appends the operation to the body of a mini-transaction.
    pub fn encode(&self, body: &mut Vec<u8>) {
        let length = u16::try_from(self.payload.len()).expect("asserted in `new`");
        let count = u8::try_from(self.page_count).expect("at most two");
        body.extend_from_slice(&[self.kind.0, count]);
        body.extend_from_slice(&length.to_le_bytes());
        for page in self.pages() {
            body.extend_from_slice(&page.space.0.to_le_bytes());
            body.extend_from_slice(&page.page.0.to_le_bytes());
        }
        body.extend_from_slice(self.payload);
    }

    /// Takes the next operation off a body.
    pub fn decode(reader: &mut Reader<'a>) -> Result<Self, Truncated> {
        let kind = OpKind(reader.u8()?);
        let page_count = usize::from(reader.u8()?);
        let length = usize::from(reader.u16()?);
        let mut pages = [PageId::default(); OP_PAGES_MAX];
        for slot in pages.get_mut(..page_count).ok_or(Truncated)? {
            *slot = reader.page_id()?;
        }
        Ok(Self {
            kind,
            pages,
            page_count,
            payload: reader.bytes(length)?,
        })
    }
}

/// Writes the header of a mini-transaction whose body follows it.
///
/// # Panics
/// If `mtr` is shorter than a header or longer than [`MTR_BYTES_MAX`].
pub fn seal_mtr(mtr: &mut [u8], start: Lsn) {
    assert!(mtr.len() <= MTR_BYTES_MAX);
    let length = u32::try_from(mtr.len()).expect("asserted above");
    codec::put_at(mtr, 0, &length.to_le_bytes()).expect("room for the header");
    codec::put_at(mtr, 8, &start.0.to_le_bytes()).expect("room for the header");
    let sum = codec::checksum_short(mtr.get(8..).expect("room for the header"));
    codec::put_at(mtr, 4, &sum.to_le_bytes()).expect("room for the header");
}

/// A checked mini-transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogMtr<'a> {
    /// LSN of its first byte.
    pub start: Lsn,
    /// LSN after its last byte: the LSN of the pages it changed, and a commit's number.
    pub end: Lsn,
    body: &'a [u8],
}

impl<'a> LogMtr<'a> {
    /// Its operations, in order. An error ends the sequence.
    pub fn ops(&self) -> impl Iterator<Item = Result<LogOp<'a>, Truncated>> + use<'a> {
        let mut reader = Reader::new(self.body);
        let mut failed = false;
        std::iter::from_fn(move || {
            if failed || reader.is_empty() {
                return None;
            }
            let op = LogOp::decode(&mut reader);
            failed = op.is_err();
            Some(op)
        })
    }
}

/// What is at the front of a piece of log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MtrParse<'a> {
    /// A whole mini-transaction, and how many bytes it takes.
    Whole(LogMtr<'a>, usize),
    /// The front of one; more bytes may complete it.
    Partial,
    /// Nothing that was written at this LSN.
    Broken,
}

/// Reads the mini-transaction at the front of `bytes`, which stand at `start` in the log.
pub fn parse_mtr(bytes: &[u8], start: Lsn) -> MtrParse<'_> {
    let Some(length) = codec::u32_at(bytes, 0) else {
        return MtrParse::Partial;
    };
    let Ok(length) = usize::try_from(length) else {
        return MtrParse::Broken;
    };
    if !(MTR_HEADER_BYTES..=MTR_BYTES_MAX).contains(&length) {
        return MtrParse::Broken;
    }
    match codec::u64_at(bytes, 8) {
        Some(lsn) if lsn != start.0 => return MtrParse::Broken,
        None => return MtrParse::Partial,
        Some(_) => {}
    }
    let Some(mtr) = bytes.get(..length) else {
        return MtrParse::Partial;
    };
    let (Some(covered), Some(body)) = (mtr.get(8..), mtr.get(MTR_HEADER_BYTES..)) else {
        return MtrParse::Broken;
    };
    if codec::u32_at(mtr, 4) != Some(codec::checksum_short(covered)) {
        return MtrParse::Broken;
    }
    let end = u64::try_from(length)
        .ok()
        .and_then(|bytes| start.0.checked_add(bytes));
    let Some(end) = end.map(Lsn) else {
        return MtrParse::Broken;
    };
    MtrParse::Whole(LogMtr { start, end, body }, length)
}

#[cfg(test)]
mod tests;
