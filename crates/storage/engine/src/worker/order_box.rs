//! Orders to abort that are on their way to a worker; see `replication::orders`.

use format::TxnId;
use sync::{Mutex, Notify};

/// The orders that a worker has not looked at.
#[derive(Debug, Default)]
pub(crate) struct OrderBox {
    pub(crate) orders: Mutex<Vec<Order>>,
    pub(crate) due: Notify,
}

/// A transaction is in the way of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    /// The one that is in the way.
    pub(crate) victim: TxnId,
    /// The place of the other. One with an earlier place stays.
    pub(crate) seqno: u64,
}
