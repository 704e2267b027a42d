//! The bytes of a simulated file: sparse, so that large preallocated files cost nothing.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

const CHUNK_BYTES: u64 = 4096;

/// Shared by copies of a disk until one of them writes.
type Chunk = Arc<[u8; 4096]>;

/// A chunk of a hole.
static ZEROES: [u8; 4096] = [0; 4096];

/// Bytes from 0 to a length; what was never written is 0.
#[derive(Debug, Clone, Default)]
pub(super) struct Content {
    /// Length of the file in bytes.
    length: u64,
    /// Chunks by their index; a missing one is all zero.
    chunks: BTreeMap<u64, Chunk>,
}

impl Content {
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Cuts or extends; what is cut off reads as zero if the file grows again.
    pub(super) fn set_length(&mut self, length: u64) {
        if length < self.length {
            self.chunks.split_off(&length.div_ceil(CHUNK_BYTES));
            let kept = stdx::to_usize(length % CHUNK_BYTES);
            if let Some(chunk) = self.chunks.get_mut(&(length / CHUNK_BYTES)) {
                Arc::make_mut(chunk)[kept..].fill(0);
            }
        }
        self.length = length;
    }

    /// Writes at `offset`, and extends the file if it is too short.
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        for (at, piece) in pieces(offset, bytes.len()) {
            let source = &bytes[piece];
            let first = stdx::to_usize(at % CHUNK_BYTES);
            let entry = self.chunks.entry(at / CHUNK_BYTES);
            // Zeroes on an empty chunk stay a hole: files are large and mostly prepared.
            if matches!(entry, Entry::Vacant(_)) && source == &ZEROES[..source.len()] {
                continue;
            }
            let chunk = Arc::make_mut(entry.or_insert_with(|| Arc::new(ZEROES)));
            chunk[first..first + source.len()].copy_from_slice(source);
        }
        self.length = self.length.max(offset + stdx::to_u64(bytes.len()));
    }

    /// Reads from `offset`. Returns the number of bytes before the end of the file.
    pub(super) fn read(&self, offset: u64, bytes: &mut [u8]) -> usize {
        let available = stdx::to_usize(self.length.saturating_sub(offset)).min(bytes.len());
        for (at, piece) in pieces(offset, available) {
            let first = stdx::to_usize(at % CHUNK_BYTES);
            let target = &mut bytes[piece];
            match self.chunks.get(&(at / CHUNK_BYTES)) {
                Some(chunk) => target.copy_from_slice(&chunk[first..first + target.len()]),
                None => target.fill(0),
            }
        }
        available
    }
}

/// Cuts `length` bytes at `offset` at the borders of chunks. Returns where each piece lies in the
/// file, and its range in the buffer.
fn pieces(offset: u64, length: usize) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> {
    units(offset, length, CHUNK_BYTES)
}

/// As [`pieces`], for units of any size.
pub(super) fn units(
    offset: u64,
    length: usize,
    unit_bytes: u64,
) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == length {
            return None;
        }
        let at = offset + stdx::to_u64(done);
        let room = stdx::to_usize(unit_bytes - at % unit_bytes);
        let range = done..done + room.min(length - done);
        done = range.end;
        Some((at, range))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_zero_and_cuts_stay_cut() {
        let mut content = Content::default();
        content.write(4090, &[7; 10]);
        assert_eq!(content.length(), 4100);
        let mut bytes = [1; 20];
        assert_eq!(content.read(4085, &mut bytes), 15);
        assert_eq!(bytes[..15], [0, 0, 0, 0, 0, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7]);
        content.set_length(4092);
        content.set_length(9000);
        let mut bytes = [1; 20];
        assert_eq!(content.read(4085, &mut bytes), 20);
        assert_eq!(bytes[..8], [0, 0, 0, 0, 0, 7, 7, 0]);
        assert!(bytes[8..].iter().all(|&byte| byte == 0));
        assert_eq!(content.read(9000, &mut bytes), 0);
    }
}
