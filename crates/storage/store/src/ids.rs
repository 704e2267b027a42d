//! Names of store handles, of their transactions, and of those that these run for.

use sync::atomic::{AtomicU32, Ordering};

/// Names a store handle within the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreId(u32);

impl StoreId {
    /// An id that no other store has.
    pub fn unique() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // Relaxed: only the number matters; no other memory depends on it.
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Names an open transaction within its store handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionKey(pub(crate) usize);

/// Names the client that a transaction runs for. It means nothing to a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ClientId(pub u64);

impl ClientId {
    /// Of the server's own transactions.
    pub const NONE: Self = Self(0);
}
