//! The running log: positions, permits, checkpoints.
//!
//! [`Wal`] is one structure with three parts: who writes it to disk ([`flush`]), when a
//! mini-transaction may begin ([`room`]), and who waits for a position ([`waiters`]).

pub(crate) mod flush;
pub(crate) mod room;
pub(crate) mod waiters;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use env::{Disk, DiskError, DiskErrorKind};
use format::Lsn;
use format::control::CheckpointRecord;
use format::lives::LifeEnds;
use format::log::{LOG_BLOCK_BYTES, LOG_BLOCK_PAYLOAD_BYTES, MTR_HEADER_BYTES, seal_mtr};
use sync::atomic::{AtomicBool, AtomicU64, Ordering};
use sync::{Closing, LogRing, LogRingOptions, LogRingWriter, Mutex};

use crate::control::{self, Control};
use crate::counters::FlushCounters;
use crate::scan::{LogEnd, LogScan};
use crate::segments::Segments;
use crate::wal::flush::{BlockStart, FlushJob, FlushState};
use crate::wal::room::{NoRoom, Purpose, RoomWaiters, WaitRoom};
use crate::wal::waiters::{LogLevel, WaitLog, WaitQueues};
use crate::{Log, WalError, WalOptions};

/// Called once when the log is poisoned; the program ends the process there.
pub type OnPoison = Box<dyn Fn(&WalError) + Send + Sync>;

/// The log. Shared by all workers.
pub struct Wal {
    /// Constant.
    options: WalOptions,
    ring: Arc<LogRing>,
    /// Everything below is written; stored by the leader.
    written: AtomicU64,
    /// Everything below is durable; stored by the leader.
    durable: AtomicU64,
    /// The highest LSN that a caller wants written; only grows.
    wanted_written: AtomicU64,
    /// The highest LSN that a caller wants durable; only grows.
    wanted_durable: AtomicU64,
    /// The block that is written next; stored by the leader.
    next_block: AtomicU64,
    /// Blocks below this are prepared; stored under `flush`.
    prepared_end: AtomicU64,
    /// The checkpoint's LSN; stored by the writer of one, after it is durable.
    checkpoint: AtomicU64,
    /// The block that the checkpoint needs; stored with it.
    checkpoint_block: AtomicU64,
    /// Whether the role of the flusher is taken.
    has_leader: AtomicBool,
    is_poisoned: AtomicBool,
    /// Whether pages are newer than the log, and nothing has put that right. Stored while a start
    /// is under way.
    has_newer_pages: AtomicBool,
    /// Whether the last attempt to prepare segments failed, with no obsolete one left. Stored under
    /// `flush`.
    lacks_segments: AtomicBool,
    /// Attempts to prepare segments that have begun.
    attempts: AtomicU64,
    /// How the last attempt failed; `None` after one that did not. Stored by the attempt.
    segment_failure: Mutex<Option<SegmentFailure>>,
    flush: Mutex<FlushState>,
    /// Written by the leader.
    flush_counters: FlushCounters,
    control: Mutex<Control>,
    /// This life of the server. Constant.
    epoch: u32,
    /// Where the logs of earlier lives ended. Constant.
    lives: LifeEnds,
    /// Whether preparing segments is under way.
    is_preparing: AtomicBool,
    durable_waiters: WaitQueues,
    written_waiters: WaitQueues,
    room_waiters: RoomWaiters,
    on_poison: OnPoison,
}

/// What opening has found and made.
struct Found {
    end: LogEnd,
    flush: FlushState,
    /// Blocks below this are prepared.
    prepared_end: u64,
    control: Control,
    checkpoint: Lsn,
    /// The block that the checkpoint needs.
    checkpoint_block: u64,
}

impl Wal {
    /// Starts to write at the end that a finished scan has found. Blocks. If the scan restarts the
    /// log, the record written here is a checkpoint there; only then the loss is accepted.
    ///
    /// Before the first commit the caller makes the scan's results durable, and writes a checkpoint
    /// there. Otherwise a torn write of this life could complete a torn block of the life before,
    /// in the same place, and the next scan would take that for the log.
    ///
    /// # Panics
    /// If the scan was not read to its end.
    pub async fn start(
        disk: &dyn Disk,
        log: Log,
        scan: &LogScan,
        options: WalOptions,
        on_poison: OnPoison,
    ) -> Result<Arc<Self>, WalError> {
        let Log { mut control, place } = log;
        let end = scan.end();
        let epoch = end.epoch.max(control.latest().epoch) + 1;
        let mut record = control.latest().clone();
        record.sequence += 1;
        record.epoch = epoch;
        record.is_closed = false;
        // The next block begins at the end of the log: a checkpoint there needs nothing before it.
        let next_block = BlockStart {
            block: if end.restart.is_some() {
                place.fresh_block(disk, end.block)?
            } else {
                end.block
            },
            start: end.lsn,
            epoch,
        };
        if let Some(restart) = end.restart {
            record.has_newer_pages |= restart.has_newer_pages;
            record.lsn = next_block.start;
            record.block_no = next_block.block;
            record.block_epoch = epoch;
            record.durable_block = next_block.block;
            record.lives = LifeEnds::default();
        }
        record.lives.push(control.latest().epoch, end.lsn);
        let checkpoint = record.lsn;
        let first_block = BlockStart {
            block: record.block_no,
            start: record.lsn,
            epoch: record.block_epoch,
        };
        let block_starts = VecDeque::from([first_block, next_block]);
        let (ring, reader) = LogRing::new(LogRingOptions {
            start: end.lsn.0,
            capacity: options.ring_bytes,
            writers: options.worker_count,
            reservation_bytes_max: options.mtr_bytes_max,
        });
        let first = place.segment_of(first_block.block);
        let mut flush = FlushState {
            reader,
            written: end.lsn,
            next_block: next_block.block,
            durable_block: next_block.block,
            next_mtr: end.lsn,
            epoch,
            unsynced: Vec::new(),
            segments: Segments::default(),
            place,
            block_starts,
        };
        let prepared_end = adopt_segments(disk, &mut flush, first).await?;
        // After the segment of the next block (D3 of `damage`), and before anything is written.
        control::write(disk, &control.file(), &record).await?;
        control.advance(record);
        let found = Found {
            end,
            flush,
            prepared_end,
            control,
            checkpoint,
            checkpoint_block: first_block.block,
        };
        let wal = Arc::new(Self::assemble(options, ring, found, on_poison));
        wal.prepare_segments(disk).await?;
        Ok(wal)
    }

    fn assemble(
        options: WalOptions,
        ring: Arc<LogRing>,
        found: Found,
        on_poison: OnPoison,
    ) -> Self {
        let position = || AtomicU64::new(found.end.lsn.0);
        let record = found.control.latest();
        let (epoch, lives) = (record.epoch, record.lives.clone());
        let has_newer_pages = record.has_newer_pages;
        Self {
            ring,
            epoch,
            lives,
            written: position(),
            durable: position(),
            wanted_written: position(),
            wanted_durable: position(),
            next_block: AtomicU64::new(found.flush.next_block),
            prepared_end: AtomicU64::new(found.prepared_end),
            checkpoint: AtomicU64::new(found.checkpoint.0),
            checkpoint_block: AtomicU64::new(found.checkpoint_block),
            has_leader: AtomicBool::new(false),
            is_poisoned: AtomicBool::new(false),
            has_newer_pages: AtomicBool::new(has_newer_pages),
            lacks_segments: AtomicBool::new(false),
            attempts: AtomicU64::new(0),
            segment_failure: Mutex::default(),
            flush: Mutex::new(found.flush),
            flush_counters: FlushCounters::default(),
            control: Mutex::new(found.control),
            is_preparing: AtomicBool::new(false),
            durable_waiters: WaitQueues::new(options.worker_count),
            written_waiters: WaitQueues::new(options.worker_count),
            room_waiters: RoomWaiters::default(),
            on_poison,
            options,
        }
    }

    /// The writer of a worker, which exists once.
    ///
    /// # Panics
    /// If the worker has one already.
    pub fn writer(self: &Arc<Self>, worker: usize) -> WalWriter {
        WalWriter {
            ring: self.ring.writer(worker),
            wal: Arc::clone(self),
        }
    }

    /// The options of the log.
    pub fn options(&self) -> &WalOptions {
        &self.options
    }

    /// The next LSN to be allocated: a snapshot's number.
    pub fn reserved(&self) -> Lsn {
        Lsn(self.ring.reserved())
    }

    /// Pages with changes below this are on their workers' dirty lists.
    pub fn closed(&self) -> Lsn {
        Lsn(self.ring.closed())
    }

    /// Everything below this survives a crash.
    pub fn durable(&self) -> Lsn {
        self.reached(LogLevel::Durable)
    }

    /// The epoch of this life of the server, which it puts into pages that it writes.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The highest LSN that a page written by the life `epoch` may have. A page with a higher one
    /// has changes of lost log.
    pub fn newest_lsn(&self, epoch: u32) -> Lsn {
        match self.lives.newest_lsn(epoch) {
            Some(end) => end,
            None if epoch == self.epoch => self.reserved(),
            None => Lsn::ZERO,
        }
    }

    /// The newest checkpoint.
    pub fn checkpoint(&self) -> Lsn {
        Lsn(self.checkpoint.load(Ordering::SeqCst))
    }

    /// How far the log has got.
    pub fn reached(&self, level: LogLevel) -> Lsn {
        Lsn(match level {
            LogLevel::Durable => self.durable.load(Ordering::SeqCst),
            LogLevel::Written => self.written.load(Ordering::SeqCst),
        })
    }

    /// Whether a write has failed.
    pub fn is_poisoned(&self) -> bool {
        self.is_poisoned.load(Ordering::SeqCst)
    }

    /// Waits until everything below `lsn` has reached a level. `worker` is the worker of the
    /// waiting task.
    pub fn wait(self: &Arc<Self>, worker: usize, lsn: Lsn, level: LogLevel) -> WaitLog {
        assert!(lsn <= self.reserved());
        WaitLog::new(Arc::clone(self), worker, lsn, level)
    }

    /// Waits until it is worth asking for a permit again. The error is that no segment can be made:
    /// an attempt has failed that began after this call. Somebody must call
    /// [`prepare_segments`](Self::prepare_segments) meanwhile.
    pub fn wait_room(self: &Arc<Self>, purpose: Purpose) -> WaitRoom {
        WaitRoom::new(Arc::clone(self), purpose)
    }

    /// Asks that everything below `lsn` reaches a level, without waiting: the next leader does it.
    pub fn request(&self, lsn: Lsn, level: LogLevel) {
        let word = match level {
            LogLevel::Durable => &self.wanted_durable,
            LogLevel::Written => &self.wanted_written,
        };
        word.fetch_max(lsn.0, Ordering::SeqCst);
    }

    /// Asks that all log so far becomes durable. To be called once a second if commits do not wait
    /// for it.
    pub fn request_all(&self) {
        self.request(self.reserved(), LogLevel::Durable);
    }

    /// What a leader would do now.
    pub(crate) fn wanted(&self) -> Option<LogLevel> {
        if self.is_poisoned() {
            return None;
        }
        let (durable, written) = (self.durable().0, self.reached(LogLevel::Written).0);
        let has_ready = written < self.ring.ready() && self.has_prepared_block();
        let wants = |word: &AtomicU64, above: u64| above < word.load(Ordering::SeqCst);
        if wants(&self.wanted_durable, durable) && (has_ready || durable < written) {
            return Some(LogLevel::Durable);
        }
        if !has_ready {
            return None;
        }
        // A ring that is a quarter full is written before it blocks anyone.
        let unwritten = self.ring.reserved().saturating_sub(written);
        let fills_up = stdx::to_u64(self.options.ring_bytes / 4) < unwritten;
        if fills_up && durable == written {
            return Some(LogLevel::Durable);
        }
        (fills_up || wants(&self.wanted_written, written)).then_some(LogLevel::Written)
    }

    /// Whether there is a block to write, and one prepared after it. The segment of the next block
    /// must exist whenever the server dies (D3 of `damage`).
    fn has_prepared_block(&self) -> bool {
        let next = self.next_block.load(Ordering::SeqCst);
        next + 1 < self.prepared_end()
    }

    pub(crate) fn prepared_end(&self) -> u64 {
        self.prepared_end.load(Ordering::SeqCst)
    }

    /// Takes the role of the flusher if there is something to flush and the role is free. Called at
    /// the end of each tick; the worker then spawns the job as a task.
    pub fn try_lead(self: &Arc<Self>) -> Option<FlushJob> {
        self.wanted()?;
        let taken = self.has_leader.swap(true, Ordering::SeqCst);
        (!taken).then(|| FlushJob::new(Arc::clone(self)))
    }

    pub(crate) fn release_lead(&self) {
        let had_leader = self.has_leader.swap(false, Ordering::SeqCst);
        assert!(had_leader, "the role is given back by the one who has it");
    }

    pub(crate) fn flush_state(&self) -> &Mutex<FlushState> {
        &self.flush
    }

    pub(crate) fn flush_counters(&self) -> &FlushCounters {
        &self.flush_counters
    }

    pub(crate) fn queues(&self, level: LogLevel) -> &WaitQueues {
        match level {
            LogLevel::Durable => &self.durable_waiters,
            LogLevel::Written => &self.written_waiters,
        }
    }

    pub(crate) fn room_waiters(&self) -> &RoomWaiters {
        &self.room_waiters
    }

    pub(crate) fn publish_written(&self, end: Lsn, blocks: u64) {
        self.next_block.fetch_add(blocks, Ordering::SeqCst);
        let before = self.written.swap(end.0, Ordering::SeqCst);
        assert!(before <= end.0);
        self.written_waiters.wake(end);
        self.room_waiters.wake_all();
    }

    pub(crate) fn publish_durable(&self, end: Lsn) {
        assert!(
            end.0 <= self.written.load(Ordering::SeqCst),
            "durable log is written"
        );
        let before = self.durable.swap(end.0, Ordering::SeqCst);
        assert!(before <= end.0);
        self.durable_waiters.wake(end);
    }

    /// Closes the log because a file that belongs to it, or to the pages that it protects, is in an
    /// unknown state. Nothing is acknowledged any more (I3). The first cause is reported.
    pub fn fail(&self, error: WalError) {
        if self.is_poisoned.swap(true, Ordering::SeqCst) {
            return;
        }
        (self.on_poison)(&error);
        self.durable_waiters.wake(Lsn::MAX);
        self.written_waiters.wake(Lsn::MAX);
        self.room_waiters.wake_all();
    }

    /// Bytes of log since the checkpoint: of payload, or on disk if small flushes leave much
    /// padding, whichever is more.
    fn age(&self) -> u64 {
        let payload = self.ring.reserved().saturating_sub(self.checkpoint().0);
        let next = self.next_block.load(Ordering::SeqCst);
        let blocks = next.saturating_sub(self.checkpoint_block.load(Ordering::SeqCst));
        payload.max(blocks * stdx::to_u64(LOG_BLOCK_BYTES))
    }

    /// Whether a checkpoint now would free a whole segment.
    fn can_recycle(&self) -> bool {
        let blocks = u64::from(self.options.segment_blocks);
        let first = self.checkpoint_block.load(Ordering::SeqCst) / blocks;
        first < self.next_block.load(Ordering::SeqCst) / blocks
    }

    /// Bytes of log since the checkpoint, in percent of the maximum: how urgent a checkpoint is. If
    /// no new segment can be made, the existing log is the maximum.
    pub fn age_percent(&self) -> u64 {
        let lacks = self.lacks_segments.load(Ordering::SeqCst);
        if lacks && self.needs_segments() && self.can_recycle() {
            return 100;
        }
        self.age().saturating_mul(100) / self.options.log_bytes_max.max(1)
    }

    /// Whether the last segment could not be made for this reason.
    pub fn is_stopped_by(&self, reason: DiskErrorKind) -> bool {
        let failure = self.segment_failure.lock();
        let failure = failure.as_ref();
        failure.is_some_and(|failure| failure.error.kind == reason)
    }

    /// Whether [`Wal::prepare_segments`] should be called.
    pub fn needs_segments(&self) -> bool {
        let next = self.next_block.load(Ordering::SeqCst);
        let blocks = u64::from(self.options.segment_blocks);
        // For any size of segments: after the one being written there is room for all permits with
        // nothing unwritten, and for one more write. So the segments that were made while the disk
        // had room are enough for ever. When the checkpoint is at the end of the log, they are all
        // ahead of the writing.
        let permits = 2 * self.blocks_for(self.ring.headroom());
        let write = stdx::to_u64(self.options.flush_bytes_max / LOG_BLOCK_BYTES);
        let least = (permits + write + 1).div_ceil(blocks);
        let ahead = least.max(stdx::to_u64(self.options.segments_ahead));
        let segments = next / blocks + 1 + ahead;
        self.prepared_end() < segments * blocks
    }

    /// Blocks that may be needed to write `bytes` of log: each outstanding permit may cost one
    /// flush, and each flush one block of padding.
    fn blocks_for(&self, bytes: u64) -> u64 {
        let workers = stdx::to_u64(self.options.worker_count);
        bytes.div_ceil(stdx::to_u64(LOG_BLOCK_PAYLOAD_BYTES)) + workers + 3
    }

    /// Prepares segments ahead of the writing, from obsolete ones if there are any. A full disk, or
    /// no free file descriptor, is no error here: it passes, and callers that wait for room get it.
    /// If it is dropped in the middle, the next call continues it.
    pub async fn prepare_segments(&self, disk: &dyn Disk) -> Result<(), WalError> {
        if self.is_preparing.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        let _preparing = Preparing { wal: self };
        let attempt = self.attempts.fetch_add(1, Ordering::SeqCst) + 1;
        let outcome = self.prepare_while_needed(disk).await;
        let failure = outcome.clone().err();
        *self.segment_failure.lock() = failure.map(|error| SegmentFailure { attempt, error });
        {
            // Under the mutex, so that a checkpoint frees segments before this or after it.
            let state = self.flush.lock();
            let lacks = outcome.is_err() && state.segments.obsolete.is_empty();
            self.lacks_segments.store(lacks, Ordering::SeqCst);
        }
        match outcome {
            Err(error) if !error.kind.may_pass() => Err(error.into()),
            _ => Ok(()),
        }
    }

    async fn prepare_while_needed(&self, disk: &dyn Disk) -> Result<(), DiskError> {
        while self.needs_segments() {
            let (place, segment, obsolete) = {
                let state = self.flush.lock();
                let next = state.place.segment_of(state.next_block);
                let segment = state.segments.last().map_or(next, |last| last + 1);
                let obsolete = state.segments.obsolete.front().copied();
                (state.place.clone(), segment, obsolete)
            };
            let mut renamed = None;
            if let Some(old) = obsolete {
                renamed = place.rename(disk, old, segment).await?;
                let taken = self.flush.lock().segments.obsolete.pop_front();
                assert!(taken == Some(old), "others are put behind it");
            }
            let file = match renamed {
                Some(file) => file,
                None => place.create(disk, segment).await?,
            };
            let mut state = self.flush.lock();
            state.segments.push(segment, file);
            let end = (segment + 1) * place.blocks;
            let before = self.prepared_end.swap(end, Ordering::SeqCst);
            assert!(before < end, "segments are prepared in order");
        }
        Ok(())
    }

    /// Notes durably that every change before `lsn` is in the data files, with the engine's
    /// `payload`. The log before may be recycled then. Refused once the log is closed.
    ///
    /// # Panics
    /// If `lsn` is not durable or before the last checkpoint.
    pub async fn write_checkpoint(
        &self,
        disk: &dyn Disk,
        lsn: Lsn,
        payload: Vec<u8>,
    ) -> Result<(), WalError> {
        // Pages whose write failed are on no dirty list, but they are not durable.
        if self.is_poisoned() {
            return Err(WalError::Poisoned);
        }
        self.write_record(disk, (lsn, false), payload).await
    }

    /// Whether pages are newer than the log, by a loss that this life or an earlier one was made to
    /// accept, and nothing has put that right yet. Each checkpoint says so.
    pub fn has_newer_pages(&self) -> bool {
        self.has_newer_pages.load(Ordering::SeqCst)
    }

    /// Lets the checkpoints from the next one on say that all is put right.
    pub fn forget_newer_pages(&self) {
        self.has_newer_pages.store(false, Ordering::SeqCst);
    }

    /// The last checkpoint of an orderly end, when all pages are in their files and no worker
    /// works. It says that nothing is written after it, so the next start needs no log. From then
    /// on the log is closed. If something was logged meanwhile, nothing is done: the next start
    /// recovers.
    pub async fn close(&self, disk: &dyn Disk, payload: Vec<u8>) -> Result<(), WalError> {
        // From here on no permit is given, and nothing is flushed.
        if self.is_poisoned.swap(true, Ordering::SeqCst) {
            return Err(WalError::Poisoned);
        }
        let lsn = self.durable();
        if self.reserved() != lsn || self.checkpoint() != lsn {
            return Ok(());
        }
        self.write_record(disk, (lsn, true), payload).await
    }

    async fn write_record(
        &self,
        disk: &dyn Disk,
        (lsn, is_closed): (Lsn, bool),
        payload: Vec<u8>,
    ) -> Result<(), WalError> {
        assert!(lsn <= self.durable());
        assert!(self.checkpoint() <= lsn);
        let (first, durable_block) = {
            let mut state = self.flush.lock();
            (state.checkpoint_block(lsn), state.durable_block)
        };
        assert!(first.block <= durable_block);
        let (file, mut record) = {
            let control = self.control.lock();
            let latest = control.latest();
            let record = CheckpointRecord {
                lsn,
                block_no: first.block,
                block_epoch: first.epoch,
                durable_block,
                is_closed,
                has_newer_pages: self.has_newer_pages(),
                payload,
                ..latest.clone()
            };
            if record == *latest {
                return Ok(());
            }
            (control.file(), record)
        };
        record.sequence += 1;
        if let Err(error) = control::write(disk, &file, &record).await {
            self.fail(error.clone());
            return Err(error);
        }
        self.control.lock().advance(record);
        {
            let mut state = self.flush.lock();
            state.forget_before(first.block);
            let oldest = state.block_starts.front();
            assert_eq!(oldest.map(|oldest| oldest.block), Some(first.block));
            if !state.segments.obsolete.is_empty() {
                self.lacks_segments.store(false, Ordering::SeqCst);
            }
            self.checkpoint.store(lsn.0, Ordering::SeqCst);
            self.checkpoint_block.store(first.block, Ordering::SeqCst);
        }
        self.room_waiters.wake_all();
        Ok(())
    }
}

/// Why segments could not be prepared.
struct SegmentFailure {
    /// The number of the attempt, from 1.
    attempt: u64,
    error: DiskError,
}

/// Preparing segments; it ends when this is dropped, also in the middle.
struct Preparing<'a> {
    wal: &'a Wal,
}

impl Drop for Preparing<'_> {
    fn drop(&mut self) {
        self.wal.is_preparing.store(false, Ordering::SeqCst);
        self.wal.room_waiters.wake_all();
    }
}

impl FlushState {
    /// The latest known block that does not begin after `lsn`. If `lsn` is where the next block
    /// begins, that is the next block, written or not: then nothing before it is needed.
    fn checkpoint_block(&mut self, lsn: Lsn) -> BlockStart {
        if lsn == self.written {
            self.note_block(0);
        }
        let after = self
            .block_starts
            .partition_point(|first| first.start <= lsn);
        let index = after
            .checked_sub(1)
            .expect("the first entry is the last checkpoint's");
        let found = self.block_starts.get(index).copied();
        let found = found.expect("an index below the partition point");
        assert!(
            found.start <= lsn,
            "recovery meets the checkpoint behind the block's start"
        );
        found
    }

    fn forget_before(&mut self, block: u64) {
        while self
            .block_starts
            .front()
            .is_some_and(|first| first.block < block)
        {
            self.block_starts.pop_front();
        }
        let segment = self.place.segment_of(block);
        self.segments.retire_before(segment);
    }
}

/// Opens the segments from the checkpoint's to the one being written, and the prepared ones after
/// it; removes half made ones. Returns the end of the prepared blocks.
async fn adopt_segments(
    disk: &dyn Disk,
    flush: &mut FlushState,
    first: u64,
) -> Result<u64, WalError> {
    let place = flush.place.clone();
    disk.create_directory(&place.directory)?;
    let writing = place.segment_of(flush.next_block);
    let mut numbers = place.list(disk)?;
    // After an orderly end the one being written may have been removed, because it is not needed.
    // Then it is made again, and the later ones are removed.
    if !place.is_whole(disk, writing)? {
        numbers.retain(|number| *number != writing);
        place.create(disk, writing).await?;
        numbers.push(writing);
        numbers.sort_unstable();
    }
    let is_begun = !flush.next_block.is_multiple_of(place.blocks);
    let mut end = writing + u64::from(is_begun);
    for number in numbers {
        if number < first {
            flush.segments.obsolete.push_back(number);
            continue;
        }
        let Some(file) = place.open(disk, number)? else {
            continue;
        };
        if number < end {
            flush.segments.push(number, file);
        } else if number == end && disk.length(&file)? == place.bytes() {
            // Its blocks hold contents of another place or life, and it has its room.
            disk.sync(&file).await?;
            flush.segments.push(number, file);
            end += 1;
        } else {
            drop(file);
            disk.remove(&place.path(number))?;
        }
    }
    disk.sync_directory(&place.directory)?;
    let prepared_end = end * place.blocks;
    assert!(flush.next_block < prepared_end, "its segment is there");
    Ok(prepared_end)
}

impl fmt::Debug for Wal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wal")
            .field("durable", &self.durable())
            .finish_non_exhaustive()
    }
}

/// A worker's access to the log.
#[derive(Debug)]
pub struct WalWriter {
    wal: Arc<Wal>,
    ring: LogRingWriter,
}

/// A mini-transaction that is in the log. It must be dropped when the pages that it changed are on
/// the worker's dirty list.
#[derive(Debug)]
#[must_use = "dropping it says that the changed pages are listed"]
pub struct Commit<'a> {
    /// Its first byte.
    pub start: Lsn,
    /// The LSN after its last byte.
    pub end: Lsn,
    /// Holds the checkpoint back; dropped with this value.
    _closing: Closing<'a>,
}

impl WalWriter {
    /// Asks for room for one mini-transaction, before any latch is taken (I4).
    pub fn permit(&mut self, purpose: Purpose) -> Result<(), NoRoom> {
        self.wal.room(purpose)?;
        if self.ring.permit() {
            Ok(())
        } else {
            Err(NoRoom::Wait)
        }
    }

    /// Puts a mini-transaction into the log: room for its header, then its operations.
    ///
    /// # Panics
    /// Without a permit, or if it is longer than the options allow.
    pub fn commit(&mut self, mtr: &mut [u8]) -> Commit<'_> {
        assert!(
            MTR_HEADER_BYTES < mtr.len(),
            "a mini-transaction does something"
        );
        let reservation = self.ring.reserve(mtr.len());
        let start = Lsn(reservation.start());
        seal_mtr(mtr, start);
        let closing = reservation.fill(mtr);
        Commit {
            start,
            end: start.advance(stdx::to_u64(mtr.len())),
            _closing: closing,
        }
    }

    /// The log.
    pub fn wal(&self) -> &Arc<Wal> {
        &self.wal
    }
}
