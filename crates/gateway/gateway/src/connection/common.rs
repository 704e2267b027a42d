//! [`Common`]: one copy of what many sessions have alike.
//!
//! The clients of a program log in alike, set the same variables and prepare the same statements.
//! With one copy for all of them a client takes less memory, and what a statement needs of it is
//! still in the cache from the client before. Equal values mostly have equal addresses, so a
//! comparison reads neither. Each worker has its own copies.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use foldhash::fast::RandomState;

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Common<T> {
    known: HashSet<Arc<T>, RandomState>,
    /// With so many values, those that no session has are looked for.
    full_at: usize,
}

/// Few values are not worth a search.
const FULL_MIN: usize = 64;

impl<T: Eq + Hash> Default for Common<T> {
    fn default() -> Self {
        Common {
            known: HashSet::default(),
            full_at: FULL_MIN,
        }
    }
}

impl<T: Eq + Hash> Common<T> {
    /// The copy of a value that all share.
    pub(crate) fn share(&mut self, value: T) -> Arc<T> {
        if let Some(known) = self.known.get(&value) {
            return Arc::clone(known);
        }
        if self.full_at <= self.known.len() {
            self.known.retain(|it| 1 < Arc::strong_count(it));
            self.full_at = FULL_MIN.max(2 * self.known.len());
        }
        let shared = Arc::new(value);
        self.known.insert(Arc::clone(&shared));
        shared
    }
}

/// Longer texts are kept by their statements alone: those that no session has any more would keep
/// too much memory for a while.
pub(crate) const SHARED_TEXT_BYTES_MAX: usize = 4 << 10;

/// The text of a prepared statement, with its hash: who looks it up does not read it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StatementText {
    hash: u64,
    bytes: Box<[u8]>,
}

impl StatementText {
    /// With the hash that the gateway's workers have in common.
    pub(crate) fn new(bytes: &[u8], hasher: &RandomState) -> StatementText {
        StatementText {
            hash: hasher.hash_one(bytes),
            bytes: bytes.into(),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Hash for StatementText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_kept_once() {
        let hasher = RandomState::default();
        let mut common = Common::default();
        let one = common.share(StatementText::new(b"select 1", &hasher));
        let other = common.share(StatementText::new(b"select 2", &hasher));
        let again = common.share(StatementText::new(b"select 1", &hasher));
        assert!(Arc::ptr_eq(&one, &again) && !Arc::ptr_eq(&one, &other));
        assert_eq!(one.bytes(), b"select 1");
    }

    #[test]
    fn values_that_nobody_has_are_forgotten() {
        let mut common = Common::default();
        let kept: Vec<_> = (0..40).map(|it| common.share(it)).collect();
        for it in 40..10_000 {
            common.share(it);
            assert!(common.known.len() <= FULL_MIN.max(2 * kept.len()) + 1);
        }
        assert!(Arc::ptr_eq(&common.share(7), &kept[7]));
    }
}
