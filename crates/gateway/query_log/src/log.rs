//! [`Log`]: a bounded queue between the workers and the thread that writes.
//!
//! One lock guards all of it, for a few instructions at a time. Who writes takes the sink out, and
//! puts it back when the queue is empty, so no lock is held over a call of the system.

use std::collections::VecDeque;

use env::Disk;
use sync::Mutex;

use crate::chunk::Chunk;
use crate::sink::{Opened, Sink};

/// Most bytes that wait to be written. Lines beyond are dropped.
pub const QUEUE_BYTES_MAX: usize = 16 << 20;

/// Whether somebody has to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "what waits has to be written"]
pub enum Wake {
    /// [`Log::write`] has to be called, on a thread that may block.
    Writer,
    /// It is running, or there is nothing to write.
    Nobody,
}

/// What the log has done since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Numbers {
    /// Lines that were written.
    pub written: u64,
    /// Lines that were not: the disk was full or slow, or no file was open.
    pub dropped: u64,
    /// Bytes that wait to be written.
    pub waiting_bytes: usize,
}

#[derive(Debug)]
enum Item {
    Lines(Chunk),
    /// From here on this file is written, or none.
    File(Option<Opened>),
}

#[derive(Debug)]
struct State {
    queue: VecDeque<Item>,
    /// `None`: somebody is writing.
    sink: Option<Sink>,
    numbers: Numbers,
    /// Lines that were dropped because the queue was full, and that nobody was told of.
    overflowed: u64,
    /// Room of chunks that were written, for others: memory that was used just now costs less.
    spent: Vec<Vec<u8>>,
}

/// As many as a few workers fill while one is written.
const SPENT_MAX: usize = 8;

/// See the module's head.
#[derive(Debug)]
pub struct Log {
    state: Mutex<State>,
}

impl Default for Log {
    fn default() -> Log {
        Log {
            state: Mutex::new(State {
                queue: VecDeque::new(),
                sink: Some(Sink::default()),
                numbers: Numbers::default(),
                overflowed: 0,
                spent: Vec::new(),
            }),
        }
    }
}

impl Log {
    /// Takes lines. Returns room for the next ones, which is empty.
    pub(crate) fn push(&self, chunk: Chunk) -> (Wake, Vec<u8>) {
        let mut state = self.state.lock();
        let bytes = state.numbers.waiting_bytes + chunk.bytes.len();
        if QUEUE_BYTES_MAX < bytes {
            state.numbers.dropped += chunk.count;
            state.overflowed += chunk.count;
        } else {
            state.numbers.waiting_bytes = bytes;
            state.queue.push_back(Item::Lines(chunk));
        }
        (state.wake(), state.spent.pop().unwrap_or_default())
    }

    /// Has later lines written into this file, or nowhere.
    pub fn use_file(&self, file: Option<Opened>) -> Wake {
        let mut state = self.state.lock();
        state.queue.push_back(Item::File(file));
        state.wake()
    }

    /// Writes what waits. Blocks. Returns at once if somebody else is at it.
    pub fn write(&self, disk: &dyn Disk) {
        let Some(mut sink) = self.state.lock().sink.take() else {
            return;
        };
        let mut done = Numbers::default();
        let mut spent = Vec::new();
        loop {
            let (item, overflowed) = {
                let mut state = self.state.lock();
                if 0 < spent.capacity() && state.spent.len() < SPENT_MAX {
                    state.spent.push(std::mem::take(&mut spent));
                }
                state.numbers.written += done.written;
                state.numbers.dropped += done.dropped;
                let Some(item) = state.queue.pop_front() else {
                    state.sink = Some(sink);
                    return;
                };
                if let Item::Lines(chunk) = &item {
                    state.numbers.waiting_bytes -= chunk.bytes.len();
                }
                (item, std::mem::take(&mut state.overflowed))
            };
            done = Numbers::default();
            sink.note_overflow(overflowed);
            match item {
                Item::File(file) => sink.use_file(file),
                Item::Lines(mut chunk) => {
                    match sink.write(disk, &chunk) {
                        true => done.written = chunk.count,
                        false => done.dropped = chunk.count,
                    }
                    chunk.bytes.clear();
                    spent = chunk.bytes;
                }
            }
        }
    }

    /// What the log has done.
    pub fn numbers(&self) -> Numbers {
        self.state.lock().numbers
    }
}

impl State {
    fn wake(&self) -> Wake {
        match self.sink.is_some() && !self.queue.is_empty() {
            true => Wake::Writer,
            false => Wake::Nobody,
        }
    }
}

#[cfg(test)]
mod tests {
    use env::linux::BlockingDisk;

    use super::*;

    fn chunk(bytes: usize) -> Chunk {
        Chunk {
            bytes: vec![b'\n'; bytes],
            count: 3,
        }
    }

    #[test]
    fn lines_that_the_disk_is_too_slow_for_are_dropped() {
        for (last, dropped) in [(99, 0), (100, 0), (101, 3)] {
            let log = Log::default();
            assert_eq!(log.push(chunk(QUEUE_BYTES_MAX - 100)).0, Wake::Writer);
            assert_eq!(log.push(chunk(last)).0, Wake::Writer);
            let numbers = log.numbers();
            assert_eq!((numbers.dropped, numbers.written), (dropped, 0), "{last}");
            assert!(numbers.waiting_bytes <= QUEUE_BYTES_MAX);
            // Without a file they go nowhere, and there is room again.
            log.write(&BlockingDisk);
            assert_eq!(log.numbers().waiting_bytes, 0);
            assert_eq!(log.numbers().dropped, 6);
            assert_eq!(log.push(chunk(last)).0, Wake::Writer);
        }
    }

    #[test]
    fn room_of_chunks_that_were_written_is_used_again() {
        let log = Log::default();
        for _ in 0..=SPENT_MAX {
            let (_, room) = log.push(chunk(100));
            assert_eq!(room.capacity(), 0);
        }
        log.write(&BlockingDisk);
        for left in (0..=SPENT_MAX).rev() {
            let (_, room) = log.push(chunk(100));
            assert!(room.is_empty());
            assert_eq!(100 <= room.capacity(), 0 < left, "{left}");
        }
    }

    #[test]
    fn one_writes_at_a_time() {
        let log = Log::default();
        let sink = log.state.lock().sink.take();
        assert_eq!(log.push(chunk(1)).0, Wake::Nobody);
        log.write(&BlockingDisk);
        assert_eq!(log.numbers().waiting_bytes, 1);
        log.state.lock().sink = sink;
        log.write(&BlockingDisk);
        assert_eq!(log.numbers().waiting_bytes, 0);
    }
}
