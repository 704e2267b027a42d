//! [`ChunkedVec`]: a vector that grows, and is freed, a chunk at a time. A full `Vec` of a gigabyte
//! is copied whole, which stalls its thread.

use std::ops::{Index, IndexMut};

use crate::DeferredDropVec;

/// Size of an allocation, if there is more than that. Copying this much takes some 20 us.
pub(crate) const CHUNK_BYTES: usize = 256 << 10;

/// Items in chunks. The first chunk grows as a `Vec` does; the others are of one length.
#[derive(Debug, Clone)]
pub struct ChunkedVec<T: 'static> {
    /// All but the last are full.
    chunks: DeferredDropVec<Vec<T>>,
    len: usize,
}

impl<T: 'static> Default for ChunkedVec<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: 'static> ChunkedVec<T> {
    /// Places are found by shifts.
    const CHUNK_LEN_LOG: u32 = {
        assert!(size_of::<T>() != 0, "items take room");
        (CHUNK_BYTES / size_of::<T>()).ilog2()
    };
    const CHUNK_LEN: usize = 1 << Self::CHUNK_LEN_LOG;

    /// An empty vector; allocates nothing.
    pub const fn new() -> Self {
        Self {
            chunks: DeferredDropVec::new(),
            len: 0,
        }
    }

    /// Number of items.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there is no item.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an item at the end.
    #[inline]
    pub fn push(&mut self, item: T) {
        match self.chunks.last_mut() {
            Some(last) if last.len() < Self::CHUNK_LEN => last.push(item),
            _ => self.push_chunk(item),
        }
        self.len += 1;
    }

    #[cold]
    fn push_chunk(&mut self, item: T) {
        let mut chunk = if self.chunks.is_empty() {
            Vec::new()
        } else {
            Vec::with_capacity(Self::CHUNK_LEN)
        };
        chunk.push(item);
        self.chunks.push(chunk);
    }

    /// Keeps the first `len` items at most, and the memory of one chunk.
    pub fn truncate(&mut self, len: usize) {
        if self.len <= len {
            return;
        }
        let whole = len >> Self::CHUNK_LEN_LOG;
        self.chunks.truncate(whole + 1);
        if let Some(last) = self.chunks.get_mut(whole) {
            last.truncate(len & (Self::CHUNK_LEN - 1));
        }
        // An empty chunk after full ones would hide that the last of them is full.
        if 0 < whole && self.chunks.get(whole).is_some_and(Vec::is_empty) {
            self.chunks.pop();
        }
        self.len = len;
    }

    /// Drops all items and keeps the memory of one chunk.
    #[inline]
    pub fn clear(&mut self) {
        match &mut *self.chunks {
            [] => {}
            [only] => only.clear(),
            _ => self.truncate(0),
        }
        self.len = 0;
    }

    /// Allocated bytes.
    pub fn memory_bytes(&self) -> usize {
        let Some(first) = self.chunks.first() else {
            return 0;
        };
        let items = first.capacity() + (self.chunks.len() - 1) * Self::CHUNK_LEN;
        items * size_of::<T>() + self.chunks.memory_bytes()
    }

    /// The items in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }
}

impl<T: 'static> Index<usize> for ChunkedVec<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: usize) -> &T {
        &self.chunks[index >> Self::CHUNK_LEN_LOG][index & (Self::CHUNK_LEN - 1)]
    }
}

impl<T: 'static> IndexMut<usize> for ChunkedVec<T> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self.chunks[index >> Self::CHUNK_LEN_LOG][index & (Self::CHUNK_LEN - 1)]
    }
}

impl<T: 'static> Extend<T> for ChunkedVec<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        for item in items {
            self.push(item);
        }
    }
}

impl<T: 'static> FromIterator<T> for ChunkedVec<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut vec = Self::new();
        vec.extend(items);
        vec
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_what_a_vec_holds() {
        let len = ChunkedVec::<u32>::CHUNK_LEN;
        let lengths = [0, 1, len - 1, len, len + 1, 2 * len + 7];
        for full in lengths {
            for kept in lengths {
                let all = numbers(full);
                let mut vec: ChunkedVec<u32> = all.iter().copied().collect();
                let mut model = all.clone();
                vec.truncate(kept);
                model.truncate(kept);
                assert_eq!(vec.len(), model.len());
                vec.extend(all.iter().copied());
                model.extend(all);
                assert!(vec.iter().eq(&model), "{full} cut to {kept}");
                if let Some(last) = model.len().checked_sub(1) {
                    assert_eq!(vec[last], model[last]);
                }
            }
        }
    }

    fn numbers(count: usize) -> Vec<u32> {
        (0..crate::to_u32(count)).collect()
    }

    #[test]
    fn no_chunk_is_larger_than_said() {
        let mut vec = ChunkedVec::new();
        vec.extend(numbers(1_000_000));
        for chunk in vec.chunks.iter() {
            assert!(chunk.capacity() * size_of::<u32>() <= CHUNK_BYTES);
        }
        let bytes = vec.memory_bytes();
        assert!((4_000_000..5_000_000).contains(&bytes), "{bytes}");
        vec.clear();
        assert!(vec.is_empty());
        assert!(vec.memory_bytes() < 2 * CHUNK_BYTES);
    }
}
