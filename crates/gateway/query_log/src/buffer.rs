//! [`Buffer`]: the lines of a worker that are on their way to the log.

use std::sync::Arc;

use crate::chunk::{CHUNK_BYTES, Chunk};
use crate::log::{Log, Wake};

/// See the module's head. What it has left when it is dropped goes to the log.
#[derive(Debug)]
pub struct Buffer {
    log: Arc<Log>,
    lines: Chunk,
}

/// What is to be done about a line that was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// It is the first one: [`Buffer::flush`] has to be called soon.
    First,
    /// There are others already.
    Behind,
    /// A chunk went to the log.
    Flushed(Wake),
}

impl Buffer {
    /// An empty one of this log.
    pub fn new(log: Arc<Log>) -> Buffer {
        Buffer {
            log,
            lines: Chunk::default(),
        }
    }

    /// Adds a line, which `append` appends.
    pub fn add(&mut self, append: impl FnOnce(&mut Vec<u8>)) -> Added {
        let is_first = self.lines.bytes.is_empty();
        append(&mut self.lines.bytes);
        self.lines.count += 1;
        if CHUNK_BYTES <= self.lines.bytes.len() {
            return Added::Flushed(self.flush());
        }
        match is_first {
            true => Added::First,
            false => Added::Behind,
        }
    }

    /// Hands the lines to the log.
    pub fn flush(&mut self) -> Wake {
        match self.lines.bytes.is_empty() {
            true => Wake::Nobody,
            false => {
                let (wake, spent) = self.log.push(std::mem::take(&mut self.lines));
                self.lines.bytes = spent;
                wake
            }
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // Who ends the program writes what is left (`Log::write`).
        let _ = self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_of_lines_goes_to_the_log_at_once() {
        let log = Arc::new(Log::default());
        let mut buffer = Buffer::new(Arc::clone(&log));
        let mut add = |bytes: usize| buffer.add(|out| out.resize(out.len() + bytes, b'\n'));
        assert_eq!(add(1), Added::First);
        assert_eq!(add(CHUNK_BYTES - 2), Added::Behind);
        assert_eq!(log.numbers().waiting_bytes, 0);
        assert_eq!(add(1), Added::Flushed(Wake::Writer));
        assert_eq!(log.numbers().waiting_bytes, CHUNK_BYTES);
        assert_eq!(add(CHUNK_BYTES + 1), Added::Flushed(Wake::Writer));
        assert_eq!(buffer.flush(), Wake::Nobody);
        assert_eq!(buffer.add(|out| out.push(b'\n')), Added::First);
        drop(buffer);
        assert_eq!(log.numbers().waiting_bytes, 2 * CHUNK_BYTES + 2);
    }
}
