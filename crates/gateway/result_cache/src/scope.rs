//! [`Scope`]: what decides the answer to a query beside its text.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use foldhash::fast::FixedState;

use crate::budget::{COUNTS_BYTES, allocated_bytes};

/// What sessions must have in common for one to get the reply to another: account, kind of
/// client, database, and all that they have set. Shared by sessions and replies.
#[derive(Debug, Clone)]
pub struct Scope {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    hash: u64,
    /// All of it, encoded.
    parts: Box<[u8]>,
}

impl Scope {
    /// The scope of these parts. Its length parts each from the next.
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Scope {
        let mut encoded = Vec::new();
        for part in parts {
            encoded.extend_from_slice(&stdx::to_u64(part.len()).to_le_bytes());
            encoded.extend_from_slice(part);
        }
        // Fixed, so that all workers find the same reply. Who compares looks at the parts, too.
        let hash = FixedState::default().hash_one(&encoded);
        Scope {
            inner: Arc::new(Inner {
                hash,
                parts: encoded.into(),
            }),
        }
    }
}

impl Scope {
    /// Memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        allocated_bytes(COUNTS_BYTES + size_of::<Inner>()) + allocated_bytes(self.inner.parts.len())
    }
}

impl PartialEq for Scope {
    fn eq(&self, other: &Scope) -> bool {
        let (one, other) = (&self.inner, &other.inner);
        Arc::ptr_eq(one, other) || one.hash == other.hash && one.parts == other.parts
    }
}

impl Eq for Scope {}

impl Hash for Scope {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.inner.hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_into_each_other() {
        let of = |parts: &[&'static str]| Scope::of(parts.iter().map(|it| it.as_bytes()));
        assert_eq!(of(&["ab", "c"]), of(&["ab", "c"]));
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(of(&["ab", ""]), of(&["ab"]));
    }
}
