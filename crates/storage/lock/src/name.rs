//! What is locked: an index and a key in it.

use std::fmt;
use std::hash::{BuildHasher, Hash};

use foldhash::fast::FixedState;
use format::IndexId;
use smallvec::SmallVec;

/// Names an entry of an index, and the gap before it. The supremum (the place after the last key)
/// is the name without a key.
#[derive(PartialEq, Eq, Hash)]
pub struct LockName {
    /// The index. Ids are never reused, so a lock outlives its index harmlessly.
    index: IndexId,
    /// The encoded key; `None` is the supremum.
    key: Option<SmallVec<[u8; KEY_BYTES_INSIDE]>>,
}

/// What compact locks keep of a name: its index, and a part of its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Print {
    /// The index.
    pub(crate) index: IndexId,
    /// The upper half of the name's hash. Never 0.
    pub(crate) bits: u32,
}

/// Keys up to this length take no memory of their own: a primary key of up to three numbers, or an
/// entry of an index of numbers with its row's.
const KEY_BYTES_INSIDE: usize = 16;

impl LockName {
    /// The entry with this encoded key.
    pub fn key(index: IndexId, key: &[u8]) -> Self {
        Self {
            index,
            key: Some(SmallVec::from_slice(key)),
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

    /// Memory of the key beside the name itself, in bytes.
    pub(crate) fn key_memory(&self) -> usize {
        let key = self.key.as_ref().filter(|key| key.spilled());
        key.map_or(0, SmallVec::len)
    }

    /// Its print among compact locks: the upper half of the hash, as far as `mask` has it. The
    /// lower half chooses the shard.
    pub(crate) fn print(&self, mask: u32) -> Print {
        let upper = u32::try_from(self.hash_code() >> u32::BITS).expect("half of 64 bits");
        Print {
            index: self.index,
            bits: (upper & mask).max(1),
        }
    }

    /// The hash is the same in every run, so that a simulated run can be replayed.
    pub fn hash_code(&self) -> u64 {
        FixedState::default().hash_one(self)
    }
}

impl Clone for LockName {
    /// By hand, since a list of bytes that is not known to be one is cloned byte by byte.
    fn clone(&self) -> Self {
        Self::of(self.index, self.encoded_key())
    }
}

impl fmt::Debug for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}:", self.index)?;
        match self.encoded_key() {
            None => f.write_str("supremum"),
            Some(key) => key.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
        }
    }
}
