//! Orders to abort that are on their way to a worker; see `replication::orders`.

use std::collections::BTreeSet;

use format::TxnId;
use sync::{Mutex, Notify};

/// The orders that a worker has not looked at.
#[derive(Debug, Default)]
pub(crate) struct OrderBox {
    /// Each order once: a waiter repeats its orders, also while the worker is busy for long.
    orders: Mutex<BTreeSet<Order>>,
    pub(crate) due: Notify,
}

/// A transaction is in the way of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Order {
    /// The one that is in the way.
    pub(crate) victim: TxnId,
    /// The place of the other. One with an earlier place stays.
    pub(crate) seqno: u64,
}

impl OrderBox {
    /// Puts an order in and wakes the worker, unless it is there already.
    pub(crate) fn put(&self, order: Order) {
        let is_new = self.orders.lock().insert(order);
        if is_new {
            self.due.notify();
        }
    }

    /// Takes all orders out.
    pub(crate) fn take(&self) -> BTreeSet<Order> {
        std::mem::take(&mut *self.orders.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_that_is_repeated_lies_there_once() {
        let orders = OrderBox::default();
        let order = |victim, seqno| Order {
            victim: TxnId::new(victim).unwrap(),
            seqno,
        };
        for _ in 0..3 {
            orders.put(order(7, 2));
            orders.put(order(7, 3));
        }
        let taken: Vec<_> = orders.take().into_iter().collect();
        assert_eq!(taken, [order(7, 2), order(7, 3)]);
        assert!(orders.take().is_empty());
    }
}
