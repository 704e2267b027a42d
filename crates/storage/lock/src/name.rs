//! What is locked: an index and a key in it.

use std::fmt;
use std::hash::{BuildHasher, Hash};

use foldhash::fast::FixedState;
use format::IndexId;

use crate::compact::Place;

/// Names an entry of an index, and the gap before it. The supremum (the place after the last key)
/// is the name without a key.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct LockName {
    /// The index. Ids are never reused, so a lock outlives its index harmlessly.
    index: IndexId,
    /// The encoded key; `None` is the supremum.
    key: Option<Box<[u8]>>,
}

impl LockName {
    /// The entry with this encoded key.
    pub fn key(index: IndexId, key: &[u8]) -> Self {
        Self {
            index,
            key: Some(key.into()),
        }
    }

    /// The place after the last key.
    pub fn supremum(index: IndexId) -> Self {
        Self { index, key: None }
    }

    /// The entry with this encoded key, or the place after the last one.
    pub fn of(index: IndexId, key: Option<&[u8]>) -> Self {
        key.map_or_else(|| Self::supremum(index), |key| Self::key(index, key))
    }

    /// The index that the name belongs to.
    pub fn index(&self) -> IndexId {
        self.index
    }

    /// The encoded key; `None` is the place after the last one.
    pub fn encoded_key(&self) -> Option<&[u8]> {
        self.key.as_deref()
    }

    /// Bytes of the key.
    pub(crate) fn key_len(&self) -> usize {
        self.key.as_ref().map_or(0, |key| key.len())
    }

    /// Its place among compact locks: the upper half of the hash, as far as `mask` has it. The lower
    /// half chooses the shard.
    pub(crate) fn place(&self, mask: u32) -> Place {
        let upper = u32::try_from(self.hash_code() >> u32::BITS).expect("half of 64 bits");
        Place {
            index: self.index,
            print: (upper & mask).max(1),
        }
    }

    /// The hash is the same in every run, so that a simulated run can be replayed.
    pub fn hash_code(&self) -> u64 {
        FixedState::default().hash_one(self)
    }
}

impl fmt::Debug for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}:", self.index)?;
        match &self.key {
            None => f.write_str("supremum"),
            Some(key) => key.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
        }
    }
}
