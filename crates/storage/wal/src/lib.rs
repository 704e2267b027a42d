//! The write-ahead log.
//!
//! It is one sequence of bytes ([`format::log`]). All workers append to it concurrently, and one of
//! them at a time writes it to disk. There is no log thread: **flushing is a role**. A worker calls
//! [`Wal::try_lead`] at the end of each tick. If it gets a [`FlushJob`], it runs the job as a task
//! and goes on with its sessions. The job writes all that is ready in new 4 KiB blocks and wakes
//! the waiters. It continues while tasks wait.
//!
//! Life: [`Log::create`] or [`Log::open`], then [`Log::scan`] (recovery reads mini-transactions),
//! [`Wal::start`], [`Wal::writer`] for each worker.
//!
//! (I1) `written` and `durable` only grow; everything below `durable` survives a crash.
//! (I2) A block that was written is never written again before its segment is recycled, so no write
//! can harm acknowledged bytes.
//! (I3) After a failed write or sync nothing is acknowledged any more: the log is poisoned, waiters
//! get [`WalError::Poisoned`], and the callback ends the process.
//! (I4) Room is asked for before latches are taken ([`WalWriter::permit`]). With a permit a
//! mini-transaction always finds room in memory and in prepared blocks. If blocks run out, only
//! callers without a permit are refused.
//! (I5) At most one flush is under way, so the durable bytes are a prefix of the log.
//! (I6) Each block says how far the log was durable when it was built, and the segment of the next
//! block always exists. So damage can be distinguished from the end that a crash leaves
//! ([`LogDamage`]; the argument is in the head of `damage`).
//!
//! Known limit: bytes that are only `written` when a sync fails can be read by the next process and
//! still be lost if the power fails. Log is written durably unless a caller asks for less. So
//! commits that wait for `durable` do not depend on such bytes.

#![forbid(unsafe_code)]

mod blocks;
mod control;
mod counters;
mod damage;
mod error;
mod log;
mod metrics;
mod scan;
mod segments;
mod wal;

pub use crate::damage::{LogDamage, LogDamageKind};
pub use crate::error::WalError;
pub use crate::log::Log;
pub use crate::scan::{LogScan, OnLogLoss, Restart};
pub use crate::wal::flush::FlushJob;
pub use crate::wal::room::{NoRoom, Purpose, WaitRoom};
pub use crate::wal::waiters::{LogLevel, WaitLog};
pub use crate::wal::{Commit, OnPoison, Wal, WalWriter};

/// Options of a log.
#[derive(Debug, Clone)]
pub struct WalOptions {
    /// Bytes of the ring in memory, a power of two.
    pub ring_bytes: usize,
    /// Bytes of one mini-transaction at most. The ring holds at least one of these for each worker
    /// and one more.
    pub mtr_bytes_max: usize,
    /// Workers, each with one writer.
    pub worker_count: usize,
    /// Blocks of one segment file. If there is a control file, its value counts.
    pub segment_blocks: u32,
    /// Segments prepared ahead of the one being written.
    pub segments_ahead: usize,
    /// Bytes of log since the checkpoint, including padding on disk, after which no permit is
    /// given: a checkpoint must come first. It bounds the time of recovery.
    pub log_bytes_max: u64,
    /// Bytes of one disk write at most.
    pub flush_bytes_max: usize,
}

impl Default for WalOptions {
    fn default() -> Self {
        Self {
            ring_bytes: 64 << 20,
            // A mini-transaction changes at most 64 pages and logs rarely more than half of each.
            mtr_bytes_max: 512 << 10,
            worker_count: 1,
            segment_blocks: 8192,
            segments_ahead: 1,
            log_bytes_max: 1 << 30,
            flush_bytes_max: 1 << 20,
        }
    }
}

#[cfg(test)]
mod tests;
