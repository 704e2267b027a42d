//! What the transactions show of themselves.

use std::sync::Arc;

use metrics::{Metric, Registry, Unit};

use crate::TransactionSystem;

const STARTED: Metric = Metric::counter(
    "Transaction_ids",
    Unit::Count,
    "Ids given to transactions that change or lock rows, also before this start.",
);
const UNSETTLED: Metric = Metric::gauge(
    "Transactions_unsettled",
    Unit::Count,
    "Transactions from the oldest on that is open or that an open snapshot may not see.",
);

impl TransactionSystem {
    /// Adds the numbers of all transactions.
    pub fn register_metrics(self: &Arc<Self>, registry: &mut Registry) {
        registry.add_each(
            self,
            &[
                (STARTED, |system| system.next().get()),
                (UNSETTLED, |system| {
                    system.next().get().saturating_sub(system.settled().get())
                }),
            ],
        );
    }
}
