//! The log's bytes in memory: a ring that all workers fill at once and one reader empties.
//!
//! A position counts bytes since the log began and stands at `position % capacity`. A worker takes
//! a run of positions by one `fetch_add` and copies into it. The reader asks up to where all copies
//! are complete, writes that to disk, and releases it.
//!
//! Rules (N writers, each reservation at most W bytes):
//! (R1) *Copying.* Before its `fetch_add` a writer stores a lower bound of its position into its
//! `inflight` word; afterwards the exact one; after the copy, `NONE` (release). The reader loads
//! `reserved` (acquire) and then the words (acquire). If it reads a `reserved` after a run, it
//! synchronises with that run's `fetch_add`. So it sees the bound of that run, or a later store of
//! that writer, which is released after the copy. So positions below `ready` = min(reserved, words)
//! are complete.
//! (R2) *Listing.* A second word, `closing`, works likewise and is cleared when the writer has put
//! the pages it changed on its dirty list. It bounds what a checkpoint may leave out.
//! (R3) *Room.* A permit is given if `reserved + N * W <= released + capacity`, and allows one
//! reservation. Of the reservations after the newest check, each writer has at most one. So
//! `reserved` never passes `released + capacity`. No writer waits for room while it holds anything,
//! and the check is two loads.
//! (R4) The reader reads only `released..ready`; writers write only `ready..released + capacity`.
//! The room of a writer's run comes from a `released` that reached the writer through its own check
//! or through the `fetch_add` chain (AcqRel) of others' checks.

use std::fmt;
use std::sync::Arc;

use crate::CachePadded;
use crate::atomic::{AtomicBool, AtomicU64, Ordering};

#[cfg(loom)]
use loom::cell::UnsafeCell;
#[cfg(not(loom))]
use std::cell::UnsafeCell;

/// "Nothing under way" in a writer's words.
const NONE: u64 = u64::MAX;

/// The words that one writer publishes.
struct WriterWords {
    /// Lower bound of the position that it is copying to (R1).
    inflight: AtomicU64,
    /// Lower bound of the run whose pages it has not listed yet (R2).
    closing: AtomicU64,
    /// Whether this writer's handle is in use.
    taken: AtomicBool,
}

/// The size of a ring.
#[derive(Debug, Clone, Copy)]
pub struct LogRingOptions {
    /// Position of the first byte.
    pub start: u64,
    /// Bytes in memory; a power of two, at least `(writers + 1) * reservation_bytes_max`.
    pub capacity: usize,
    /// Writers (N).
    pub writers: usize,
    /// Bytes of one reservation at most (W).
    pub reservation_bytes_max: usize,
}

/// The ring. Shared by the writers and the reader.
pub struct LogRing {
    /// Accessed by the rules above.
    bytes: Box<[UnsafeCell<u8>]>,
    /// The next position to be allocated.
    reserved: CachePadded<AtomicU64>,
    /// Positions below may be overwritten; stored by the reader alone.
    released: CachePadded<AtomicU64>,
    writers: Box<[CachePadded<WriterWords>]>,
    /// N * W (R3). Constant.
    headroom: u64,
    /// W. Constant.
    reservation_bytes_max: u64,
}

// SAFETY: `bytes` is accessed by `Reservation::copy` and `LogRingReader::read` alone, and rules R1,
// R3 and R4 keep their ranges apart or ordered; everything else is atomic or constant.
unsafe impl Sync for LogRing {}
// SAFETY: it owns plain bytes and words.
unsafe impl Send for LogRing {}

impl LogRing {
    /// A ring and its one reader.
    ///
    /// # Panics
    /// If the options contradict one another.
    pub fn new(options: LogRingOptions) -> (Arc<Self>, LogRingReader) {
        let headroom = options.writers * options.reservation_bytes_max;
        assert!(options.capacity.is_power_of_two());
        assert!(0 < headroom);
        assert!(headroom + options.reservation_bytes_max <= options.capacity);
        let ring = Arc::new(Self {
            bytes: cells(options.capacity),
            reserved: CachePadded::new(AtomicU64::new(options.start)),
            released: CachePadded::new(AtomicU64::new(options.start)),
            writers: (0..options.writers)
                .map(|_| CachePadded::new(idle_words()))
                .collect(),
            headroom: to_u64(headroom),
            reservation_bytes_max: to_u64(options.reservation_bytes_max),
        });
        let reader = LogRingReader {
            ring: Arc::clone(&ring),
            ready: options.start,
        };
        (ring, reader)
    }

    /// The handle of writer `index`, which exists once.
    ///
    /// # Panics
    /// If there is no such writer or its handle is in use.
    pub fn writer(self: &Arc<Self>, index: usize) -> LogRingWriter {
        let words = self
            .writers
            .get(index)
            .expect("a writer's number is below their count");
        // Acquire pairs with the release in the handle's drop.
        let taken = words.taken.swap(true, Ordering::Acquire);
        assert!(!taken, "each writer has one handle");
        LogRingWriter {
            ring: Arc::clone(self),
            index,
            permitted: false,
        }
    }

    /// The next position to be allocated.
    pub fn reserved(&self) -> u64 {
        // Acquire: a snapshot by this position sees what came before the reservations below it.
        self.reserved.load(Ordering::Acquire)
    }

    /// Positions below this are released.
    pub fn released(&self) -> u64 {
        self.released.load(Ordering::Acquire)
    }

    /// Every run below this is copied (R1).
    pub fn ready(&self) -> u64 {
        self.bound(|words| &words.inflight)
    }

    /// Every run below this has its pages listed (R2).
    pub fn closed(&self) -> u64 {
        self.bound(|words| &words.closing)
    }

    /// Bytes of one reservation at most (W).
    pub fn reservation_bytes_max(&self) -> u64 {
        self.reservation_bytes_max
    }

    /// Bytes that all writers together may still reserve without a new permit (N * W).
    pub fn headroom(&self) -> u64 {
        self.headroom
    }

    fn bound(&self, word: impl Fn(&WriterWords) -> &AtomicU64) -> u64 {
        let reserved = self.reserved.load(Ordering::Acquire);
        let words = self
            .writers
            .iter()
            .map(|words| word(words).load(Ordering::Acquire));
        words.fold(reserved, u64::min)
    }

    fn capacity(&self) -> u64 {
        to_u64(self.bytes.len())
    }

    fn words(&self, writer: usize) -> &WriterWords {
        self.writers
            .get(writer)
            .expect("a handle's number is valid")
    }

    /// Index of the byte at a position.
    fn index(&self, position: u64) -> usize {
        let index = position & (self.capacity() - 1);
        usize::try_from(index).expect("below the capacity, which is a usize")
    }

    /// The parts of the ring that `length` bytes at `position` fall into.
    fn parts(&self, position: u64, length: usize) -> [&[UnsafeCell<u8>]; 2] {
        let (before, from) = self.bytes.split_at(self.index(position));
        let first = length.min(from.len());
        let (first, _) = from.split_at(first);
        let (second, _) = before.split_at(length - first.len());
        [first, second]
    }
}

fn idle_words() -> WriterWords {
    let (inflight, closing) = (AtomicU64::new(NONE), AtomicU64::new(NONE));
    WriterWords {
        inflight,
        closing,
        taken: AtomicBool::new(false),
    }
}

fn to_u64(value: usize) -> u64 {
    u64::try_from(value).expect("usize has at most 64 bits")
}

#[cfg(not(loom))]
fn cells(count: usize) -> Box<[UnsafeCell<u8>]> {
    let bytes = vec![0u8; count].into_boxed_slice();
    let raw = Box::into_raw(bytes) as *mut [UnsafeCell<u8>];
    // SAFETY: `UnsafeCell<u8>` has the layout of `u8`, and the box is given up to this one. This
    // way the zeroed pages of a large ring stay untouched until they are used.
    unsafe { Box::from_raw(raw) }
}

#[cfg(loom)]
fn cells(count: usize) -> Box<[UnsafeCell<u8>]> {
    (0..count).map(|_| UnsafeCell::new(0)).collect()
}

#[cfg(not(loom))]
fn copy_in(cells: &[UnsafeCell<u8>], bytes: &[u8]) {
    assert_eq!(cells.len(), bytes.len());
    let target = UnsafeCell::raw_get(cells.as_ptr());
    // SAFETY: `target` is the start of `cells.len()` cells, which the caller alone may access now
    // (R4); the source is another allocation.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) }
}

#[cfg(not(loom))]
fn copy_out(cells: &[UnsafeCell<u8>], bytes: &mut [u8]) {
    assert_eq!(cells.len(), bytes.len());
    let source = UnsafeCell::raw_get(cells.as_ptr());
    // SAFETY: `source` is the start of `cells.len()` cells that no thread writes now (R4); the
    // target is another allocation.
    unsafe { std::ptr::copy_nonoverlapping(source, bytes.as_mut_ptr(), bytes.len()) }
}

#[cfg(loom)]
fn copy_in(cells: &[UnsafeCell<u8>], bytes: &[u8]) {
    for (cell, byte) in cells.iter().zip(bytes) {
        // SAFETY: loom itself checks that no other thread accesses the cell.
        cell.with_mut(|target| unsafe { *target = *byte });
    }
}

#[cfg(loom)]
fn copy_out(cells: &[UnsafeCell<u8>], bytes: &mut [u8]) {
    for (cell, byte) in cells.iter().zip(bytes) {
        // SAFETY: loom itself checks that no thread writes the cell.
        cell.with(|source| *byte = unsafe { *source });
    }
}

impl fmt::Debug for LogRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogRing")
            .field("reserved", &self.reserved())
            .finish_non_exhaustive()
    }
}

/// One worker's access to the ring.
#[derive(Debug)]
pub struct LogRingWriter {
    ring: Arc<LogRing>,
    index: usize,
    /// Whether `reserve` may be called. This worker's own.
    permitted: bool,
}

impl LogRingWriter {
    /// Asks for room for one reservation of any legal length (R3). Holding the permit holds up no
    /// other writer, and it need not be used.
    pub fn permit(&mut self) -> bool {
        let reserved = self.ring.reserved.load(Ordering::Acquire);
        let released = self.ring.released.load(Ordering::Acquire);
        self.permitted = reserved + self.ring.headroom <= released + self.ring.capacity();
        self.permitted
    }

    /// Takes the next `length` positions, using up the permit.
    ///
    /// # Panics
    /// Without a permit, or if `length` is 0 or more than a reservation may have.
    pub fn reserve(&mut self, length: usize) -> Reservation<'_> {
        assert!(self.permitted, "room is asked for before");
        assert!(0 < length);
        assert!(to_u64(length) <= self.ring.reservation_bytes_max);
        self.permitted = false;
        let ring = &*self.ring;
        let words = ring.words(self.index);
        // Release: also ends the copy before this one for a reader that sees only this store (R1).
        let bound = ring.reserved.load(Ordering::Relaxed);
        words.closing.store(bound, Ordering::Release);
        words.inflight.store(bound, Ordering::Release);
        let start = ring.reserved.fetch_add(to_u64(length), Ordering::AcqRel);
        words.inflight.store(start, Ordering::Release);
        Reservation {
            ring,
            words,
            start,
            length,
        }
    }
}

impl Drop for LogRingWriter {
    fn drop(&mut self) {
        // Release pairs with the acquire in `writer`.
        self.ring
            .words(self.index)
            .taken
            .store(false, Ordering::Release);
    }
}

/// A run of positions to fill.
#[derive(Debug)]
#[must_use = "the log waits for its bytes"]
pub struct Reservation<'a> {
    ring: &'a LogRing,
    words: &'a WriterWords,
    start: u64,
    length: usize,
}

impl<'a> Reservation<'a> {
    /// The first position.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Fills the whole run and publishes it.
    ///
    /// # Panics
    /// If `bytes` is not as long as the run.
    pub fn fill(self, bytes: &[u8]) -> Closing<'a> {
        assert_eq!(bytes.len(), self.length);
        let [first, second] = self.ring.parts(self.start, self.length);
        let (front, back) = bytes.split_at(first.len());
        copy_in(first, front);
        copy_in(second, back);
        // Release: a reader of this sees the finished copy (R1).
        self.words.inflight.store(NONE, Ordering::Release);
        Closing { words: self.words }
    }
}

/// A run that is copied and whose pages are not listed yet. It must be dropped when they are (R2).
#[derive(Debug)]
#[must_use = "dropping it says that the changed pages are listed"]
pub struct Closing<'a> {
    words: &'a WriterWords,
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        // Release: a reader of this sees the complete lists (R2).
        self.words.closing.store(NONE, Ordering::Release);
    }
}

impl fmt::Debug for WriterWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WriterWords")
    }
}

/// The reader, which empties the ring.
#[derive(Debug)]
pub struct LogRingReader {
    ring: Arc<LogRing>,
    /// The highest `ready` it has seen.
    ready: u64,
}

impl LogRingReader {
    /// Returns the position up to which runs are complete.
    pub fn ready(&mut self) -> u64 {
        self.ready = self.ready.max(self.ring.ready());
        self.ready
    }

    /// Copies complete bytes out.
    ///
    /// # Panics
    /// If a part of the range is released, or not yet seen to be ready.
    pub fn read(&self, position: u64, bytes: &mut [u8]) {
        assert!(self.ring.released.load(Ordering::Relaxed) <= position);
        assert!(position + to_u64(bytes.len()) <= self.ready);
        let [first, second] = self.ring.parts(position, bytes.len());
        let (front, back) = bytes.split_at_mut(first.len());
        copy_out(first, front);
        copy_out(second, back);
    }

    /// Lets writers overwrite everything below `position`.
    ///
    /// # Panics
    /// If it goes back, or past what was seen to be ready.
    pub fn release(&mut self, position: u64) {
        assert!(self.ring.released.load(Ordering::Relaxed) <= position);
        assert!(position <= self.ready);
        // Release: a writer that sees this and overwrites comes after the reads (R4).
        self.ring.released.store(position, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn ring(writers: usize) -> (Arc<LogRing>, LogRingReader) {
        let options = LogRingOptions {
            start: 5,
            capacity: 16,
            writers,
            reservation_bytes_max: 4,
        };
        LogRing::new(options)
    }

    #[test]
    fn wraps_and_refuses_when_full() {
        let (ring, mut reader) = ring(1);
        let mut writer = ring.writer(0);
        let mut position = 5;
        for round in 0..50u8 {
            while writer.permit() {
                let reservation = writer.reserve(3);
                assert_eq!(reservation.start(), position);
                drop(reservation.fill(&[round; 3]));
                position += 3;
            }
            let ready = reader.ready();
            assert_eq!(ready, position);
            let mut bytes = [0; 3];
            reader.read(ring.released(), &mut bytes);
            reader.release(ring.released() + 3);
            assert!(bytes.iter().all(|&byte| byte == bytes[0]));
        }
    }

    #[test]
    fn an_unfinished_copy_holds_the_rest_back() {
        let (ring, mut reader) = ring(2);
        let (mut first, mut second) = (ring.writer(0), ring.writer(1));
        assert!(first.permit() && second.permit());
        let slow = first.reserve(2);
        let listing = second.reserve(2).fill(b"cd");
        assert_eq!((reader.ready(), ring.closed(), ring.reserved()), (5, 5, 9));
        drop(slow.fill(b"ab"));
        assert_eq!(
            (reader.ready(), ring.closed()),
            (9, 7),
            "the second still lists"
        );
        drop(listing);
        assert_eq!(ring.closed(), 9);
        let mut bytes = [0; 4];
        reader.read(5, &mut bytes);
        assert_eq!(&bytes, b"abcd");
    }

    #[test]
    #[should_panic(expected = "each writer has one handle")]
    fn a_second_handle_is_refused() {
        let (ring, _reader) = ring(1);
        let _first = ring.writer(0);
        let _second = ring.writer(0);
    }
}

#[cfg(all(test, loom))]
mod tests {
    use loom::thread;

    use super::*;

    /// Two writers, one reader: what the reader takes as ready is complete and its own.
    #[test]
    fn ready_bytes_are_copied() {
        loom::model(|| {
            let options = LogRingOptions {
                start: 0,
                capacity: 4,
                writers: 2,
                reservation_bytes_max: 1,
            };
            let (ring, mut reader) = LogRing::new(options);
            let threads: Vec<_> = (0..2u8)
                .map(|index| {
                    let mut writer = ring.writer(usize::from(index));
                    thread::spawn(move || {
                        assert!(writer.permit());
                        let reservation = writer.reserve(1);
                        drop(reservation.fill(&[index + 1]));
                    })
                })
                .collect();
            let ready = reader.ready();
            let mut bytes = vec![0; usize::try_from(ready).unwrap()];
            reader.read(0, &mut bytes);
            assert!(bytes.iter().all(|&byte| byte != 0));
            reader.release(ready);
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(reader.ready(), 2);
        });
    }

    /// A writer that goes round the ring never writes where the reader reads.
    #[test]
    fn reuse_is_ordered() {
        loom::model(|| {
            let options = LogRingOptions {
                start: 0,
                capacity: 2,
                writers: 1,
                reservation_bytes_max: 1,
            };
            let (ring, mut reader) = LogRing::new(options);
            let mut writer = ring.writer(0);
            let thread = thread::spawn(move || {
                for byte in 1..=3u8 {
                    if writer.permit() {
                        drop(writer.reserve(1).fill(&[byte]));
                    }
                }
            });
            let ready = reader.ready();
            let mut bytes = vec![0; usize::try_from(ready).unwrap()];
            reader.read(0, &mut bytes);
            reader.release(ready);
            thread.join().unwrap();
        });
    }

    /// A checkpoint bound never passes a run whose pages are not listed.
    #[test]
    fn closed_runs_are_listed() {
        use crate::atomic::AtomicU64;
        loom::model(|| {
            let options = LogRingOptions {
                start: 0,
                capacity: 4,
                writers: 1,
                reservation_bytes_max: 1,
            };
            let (ring, _reader) = LogRing::new(options);
            let listed = Arc::new(AtomicU64::new(0));
            let mut writer = ring.writer(0);
            let list = Arc::clone(&listed);
            let thread = thread::spawn(move || {
                assert!(writer.permit());
                let closing = writer.reserve(1).fill(b"x");
                list.store(1, Ordering::Relaxed);
                drop(closing);
            });
            if ring.closed() == 1 {
                assert_eq!(listed.load(Ordering::Relaxed), 1);
            }
            thread.join().unwrap();
        });
    }
}
