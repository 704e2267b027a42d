//! Reading the log back after a crash.
//!
//! It reads from the block that the checkpoint names, block by block, to the first that is damaged
//! or does not continue the one before. It takes mini-transactions from their payloads, to the
//! first that is not whole. [`crate::damage`] decides whether the log ends there or is damaged
//! there.
//!
//! (I1) `position` is the end of the last whole mini-transaction; `pending` begins there.
//! (I2) A block of a later epoch begins at `position` and replaces `pending`: for the life that
//! wrote it, the log ended there.

use env::{Disk, DiskError};
use format::Lsn;
use format::control::CheckpointRecord;
use format::log::{
    LogBlockHeader, LogMtr, MTR_BYTES_MAX, MtrParse, NO_FIRST_MTR, open_log_block, parse_mtr,
};
use stdx::planted::{Mistake, is_planted};

use crate::WalError;
use crate::blocks::BlockReader;
use crate::damage::{Behind, Break, Cause, LogDamage};
use crate::segments::SegmentPlace;

/// What a start does if the log is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnLogLoss {
    /// It fails.
    #[default]
    Refuse,
    /// It continues with what was logged before the damage. The operator has asked for it.
    Accept,
}

/// The state of the scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No mini-transaction has begun in a block yet.
    Seeking,
    /// Between mini-transactions, or in one.
    Reading,
    /// At the break, for this cause.
    Broken(Cause),
    /// At the break, after it was judged.
    Ended,
}

/// Reads the mini-transactions after a checkpoint, in order.
#[derive(Debug)]
pub struct LogScan {
    reader: BlockReader,
    /// The checkpoint at which it begins.
    checkpoint: CheckpointRecord,
    on_loss: OnLogLoss,
    state: State,
    /// End of the last whole mini-transaction (I1).
    position: Lsn,
    /// Bytes from `position` on.
    pending: Vec<u8>,
    /// Bytes at the front of `pending` that were returned already.
    given: usize,
    epoch: u32,
    next_block: u64,
    /// The blocks after the break, once it was judged.
    behind: Behind,
    /// The damage that was accepted.
    damage: Option<LogDamage>,
    /// Where the log continues, if not at `position`.
    restart: Option<Restart>,
}

/// How the log continues after a loss that was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restart {
    /// Its first LSN, after every known one.
    pub lsn: Lsn,
    /// Pages have changes of the lost part.
    pub has_newer_pages: bool,
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
    /// The log continues apart from its present blocks, because they are damaged.
    pub(crate) restart: Option<Restart>,
}

impl LogScan {
    pub(crate) fn new(
        place: SegmentPlace,
        checkpoint: &CheckpointRecord,
        on_loss: OnLogLoss,
    ) -> Self {
        Self {
            reader: BlockReader::new(place),
            checkpoint: checkpoint.clone(),
            on_loss,
            state: State::Seeking,
            position: checkpoint.lsn,
            pending: Vec::new(),
            given: 0,
            epoch: checkpoint.block_epoch,
            next_block: checkpoint.block_no,
            behind: Behind::default(),
            damage: None,
            restart: None,
        }
    }

    /// Returns the next whole mini-transaction that begins at the checkpoint or later, or `None` at
    /// the end of the log.
    pub async fn next(&mut self, disk: &dyn Disk) -> Result<Option<LogMtr<'_>>, WalError> {
        loop {
            self.pending.drain(..self.given);
            self.given = 0;
            let parsed = match self.state {
                State::Broken(cause) => {
                    self.judge(disk, cause).await?;
                    return Ok(None);
                }
                State::Ended => return Ok(None),
                State::Seeking => MtrParse::Partial,
                State::Reading => parse_mtr(&self.pending, self.position),
            };
            match parsed {
                MtrParse::Whole(mtr, length) => {
                    self.given = length;
                    self.position = mtr.end;
                    if self.checkpoint.lsn <= mtr.start {
                        break;
                    }
                }
                MtrParse::Partial if self.pending.len() <= MTR_BYTES_MAX => {
                    self.load_block(disk).await?;
                }
                MtrParse::Partial | MtrParse::Broken => {
                    self.state = State::Broken(Cause::Senseless);
                }
            }
        }
        // Parsed a second time, because of the borrow checker.
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

    /// Decides whether the break is the end of the log, or damage.
    async fn judge(&mut self, disk: &dyn Disk, cause: Cause) -> Result<(), WalError> {
        let is_unread = self.next_block == self.checkpoint.block_no;
        if self.checkpoint.is_closed && is_unread && cause == Cause::NoBlock {
            self.state = State::Ended;
            return Ok(());
        }
        let found = Break {
            block: self.next_block,
            position: self.position,
            epoch: self.epoch,
            cause,
        };
        self.behind = found.look_behind(disk, &mut self.reader).await?;
        if is_planted(Mistake::AcceptsLogHoles) {
            self.state = State::Ended;
            return Ok(());
        }
        let known = (&self.checkpoint, &self.behind);
        match found.judge(disk, self.reader.place(), known)? {
            Some(damage) if self.on_loss == OnLogLoss::Refuse => {
                return Err(WalError::Damaged(Box::new(damage)));
            }
            damage => self.damage = damage,
        }
        self.state = State::Ended;
        Ok(())
    }

    /// The damage that was accepted, once [`LogScan::next`] has returned `None`.
    pub fn damage(&self) -> Option<&LogDamage> {
        self.damage.as_ref()
    }

    /// The highest LSN of anything in the log, including the lost part.
    pub fn newest(&self) -> Lsn {
        let pending = stdx::to_u64(self.pending.len());
        let end = self.position.advance(pending).max(self.behind.end);
        end.max(self.checkpoint.lsn)
    }

    /// Bytes behind [`LogScan::position`] that are no whole mini-transaction: a process that was
    /// killed in a write leaves such. They are left out. 0 if the log is damaged.
    ///
    /// # Panics
    /// If [`LogScan::next`] has not returned `None`.
    pub fn torn_bytes(&self) -> u64 {
        assert_eq!(self.state, State::Ended);
        if self.damage.is_some() {
            return 0;
        }
        let pending = stdx::to_u64(self.pending.len());
        let end = self.position.advance(pending).max(self.behind.end);
        let whole_blocks = end.0.saturating_sub(self.position.0);
        whole_blocks.saturating_add(self.behind.torn_bytes)
    }

    /// Lets the log continue apart from its present blocks.
    ///
    /// # Panics
    /// If the loss of log was not accepted, the scan was not read to its end, or the LSN is before
    /// that end.
    pub fn restart(&mut self, restart: Restart) {
        assert_eq!(self.on_loss, OnLogLoss::Accept);
        assert_eq!(self.state, State::Ended);
        assert!(self.newest() <= restart.lsn);
        self.restart = Some(restart);
    }

    /// Where the log ends, once [`LogScan::next`] has returned `None`.
    ///
    /// # Panics
    /// If it has not.
    pub(crate) fn end(&self) -> LogEnd {
        assert_eq!(self.state, State::Ended);
        LogEnd {
            lsn: self.restart.map_or(self.position, |it| it.lsn),
            block: self.next_block,
            epoch: self.epoch.max(self.behind.epoch),
            restart: self.restart,
        }
    }

    /// LSN after the last whole mini-transaction that was returned or skipped.
    pub fn position(&self) -> Lsn {
        self.position
    }

    /// Reads the next block, or notes the break.
    async fn load_block(&mut self, disk: &dyn Disk) -> Result<(), WalError> {
        let number = self.next_block;
        let taken = match self.fetch(disk, number).await {
            Ok(true) => self.take_block(number),
            Ok(false) => Err(Cause::NoBlock),
            Err(error) if self.on_loss == OnLogLoss::Refuse => return Err(error.into()),
            Err(_) => Err(Cause::Unreadable),
        };
        if let Err(cause) = taken {
            self.state = State::Broken(cause);
        }
        Ok(())
    }

    async fn fetch(&mut self, disk: &dyn Disk, number: u64) -> Result<bool, DiskError> {
        match self.reader.fetch(disk, number).await {
            // One bad block of many is enough to fail the whole read.
            Err(_) => self.reader.fetch_singly(disk, number).await,
            fetched => fetched,
        }
    }

    fn take_block(&mut self, number: u64) -> Result<(), Cause> {
        let block = self.reader.bytes(number).ok_or(Cause::NoBlock)?;
        let (header, payload) = open_log_block(block).map_err(|_| Cause::NoBlock)?;
        if header.block_no != number || header.epoch < self.epoch {
            return Err(Cause::NoBlock);
        }
        if self.state == State::Seeking {
            let begun = begin(&header, payload, self.position).ok_or(Cause::Unlinked)?;
            let (position, payload) = begun;
            self.pending.clear();
            if let Some(position) = position {
                self.position = position;
                self.state = State::Reading;
            }
            self.pending.extend_from_slice(payload);
        } else if self.epoch < header.epoch {
            if header.start != self.position {
                return Err(Cause::Unlinked);
            }
            self.pending.clear();
            self.pending.extend_from_slice(payload);
        } else {
            let pending = stdx::to_u64(self.pending.len());
            if self.position.0.checked_add(pending) != Some(header.start.0) {
                return Err(Cause::Unlinked);
            }
            self.pending.extend_from_slice(payload);
        }
        self.epoch = header.epoch;
        self.next_block = number.checked_add(1).ok_or(Cause::Unlinked)?;
        Ok(())
    }
}

/// Where to begin in the first blocks: at the first mini-transaction in one. Returns `None` for a
/// block that cannot lead to the checkpoint.
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
    // A mini-transaction begins at the checkpoint, so the first one here is not after it.
    if checkpoint.0 < position {
        return None;
    }
    Some((
        Some(Lsn(position)),
        payload.get(usize::from(header.first_mtr)..)?,
    ))
}
