//! [`ByteStore`]: many byte strings side by side, in chunks, found by their [`Span`]s.

use crate::chunked_vec::CHUNK_BYTES;
use crate::{DeferredDropVec, to_u32};

/// Longer strings get a chunk of their own, so that no more than this is wasted in a chunk.
const SHARED_BYTES_MAX: usize = CHUNK_BYTES / 4;

/// Byte strings. They are added and read, and dropped all at once.
#[derive(Debug, Clone, Default)]
pub struct ByteStore {
    chunks: DeferredDropVec<Vec<u8>>,
    /// The chunk that is being filled, once there is one.
    open: usize,
    /// Capacity of all chunks.
    allocated: usize,
}

/// Where a string stands in its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    chunk: u32,
    start: u32,
    length: usize,
}

impl ByteStore {
    /// Adds a string.
    pub fn push(&mut self, bytes: &[u8]) -> Span {
        let has_room = |chunk: &Vec<u8>| chunk.len() + bytes.len() <= CHUNK_BYTES;
        let place = if self.chunks.get(self.open).is_some_and(has_room) {
            self.open
        } else if self.chunks.is_empty() || SHARED_BYTES_MAX < bytes.len() {
            self.push_chunk(bytes.len())
        } else {
            self.open = self.push_chunk(CHUNK_BYTES);
            self.open
        };
        let chunk = &mut self.chunks[place];
        let (start, before) = (chunk.len(), chunk.capacity());
        chunk.extend_from_slice(bytes);
        self.allocated += chunk.capacity() - before;
        Span {
            chunk: to_u32(place),
            start: to_u32(start),
            length: bytes.len(),
        }
    }

    fn push_chunk(&mut self, capacity: usize) -> usize {
        let chunk = Vec::with_capacity(capacity);
        self.allocated += chunk.capacity();
        self.chunks.push(chunk);
        self.chunks.len() - 1
    }

    /// The string.
    ///
    /// # Panics
    /// May panic if the span is of another store, or older than a `clear`.
    #[inline]
    pub fn get(&self, span: Span) -> &[u8] {
        let start = span.start as usize;
        &self.chunks[span.chunk as usize][start..start + span.length]
    }

    /// Drops all strings and keeps the memory of one chunk.
    pub fn clear(&mut self) {
        let is_small = |chunk: &Vec<u8>| chunk.capacity() <= CHUNK_BYTES;
        let keeps_first = self.chunks.first().is_some_and(is_small);
        self.chunks.truncate(usize::from(keeps_first));
        (self.open, self.allocated) = (0, 0);
        if let Some(first) = self.chunks.first_mut() {
            first.clear();
            self.allocated = first.capacity();
        }
    }

    /// Allocated bytes.
    pub fn memory_bytes(&self) -> usize {
        self.allocated + self.chunks.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_come_back_as_they_went_in() {
        let mut store = ByteStore::default();
        for _ in 0..2 {
            let lengths = [0, 1, 300_000, 5, 100_000, 70_000, 0, 200_000, 9, 60_000, 3];
            let text = |length: usize| vec![crate::low_u8(crate::to_u64(length)); length];
            let spans: Vec<Span> = lengths
                .iter()
                .cycle()
                .take(500)
                .map(|&length| store.push(&text(length)))
                .collect();
            for (span, &length) in spans.iter().zip(lengths.iter().cycle()) {
                assert_eq!(store.get(*span), text(length));
            }
            let held: usize = lengths.iter().cycle().take(500).sum();
            let taken = store.memory_bytes();
            assert!(held <= taken && taken < held + held / 2, "{held} {taken}");
            store.clear();
            assert!(store.memory_bytes() < CHUNK_BYTES + 4096);
        }
    }
}
