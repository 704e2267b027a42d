//! Write sets whose transactions nobody ends any more (R1).

use std::rc::Rc;
use std::sync::Arc;

use store::replication::{Certified, Position};
use store::{Durability, until_done};

use crate::replication::applying::begin_applying;
use crate::transaction::group::{Replication, Stage};
use crate::worker::Worker;

impl Worker {
    /// Takes over a write set that may get a place, or has one.
    pub(crate) fn finish_later(self: &Rc<Self>, replication: Replication) {
        let worker = Rc::clone(self);
        match replication.stage {
            Stage::Open => {}
            Stage::Sent(ticket) | Stage::Displaced(ticket) => self.jobs.add(async move {
                let (provider, writes) = (&replication.provider, &replication.writes);
                let certified = until_done(|| provider.certify(ticket, writes)).await;
                if let Ok(Certified::At(position)) = certified {
                    worker.apply_left(position, &replication).await;
                }
            }),
            Stage::Placed(position) | Stage::Applying(position) => self.jobs.add(async move {
                worker.apply_left(position, &replication).await;
            }),
        }
    }

    async fn apply_left(self: Rc<Self>, position: Position, left: &Replication) {
        let applying = left.next().applying(position, Arc::clone(&left.writes));
        let mut txn = begin_applying(&self, applying);
        self.counters().orders.replayed.increment();
        if let Err(failure) = until_done(|| txn.commit(Durability::Lazy)).await {
            tracing::error!(%failure, %position, "a write set cannot be applied");
        }
    }
}
