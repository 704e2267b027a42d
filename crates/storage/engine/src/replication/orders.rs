//! Orders to abort: how they reach a transaction on whatever worker it is, and what it does.

use std::rc::Rc;

use format::TxnId;
use lock::OwnerLocks;
use store::{Outcome, StoreError, TransactionKey, Transactions, until_done};

use crate::transaction::EngineTransaction;
use crate::transaction::group::Stage;
use crate::worker::order_box::{Order, OrderBox};
use crate::worker::{Shared, Worker};

impl Shared {
    /// Orders a transaction to abort for the one with the place `seqno`. It is not known on which
    /// worker the transaction is, so each looks.
    pub(crate) fn order_abort(&self, victim: TxnId, seqno: u64) {
        assert!(seqno != 0, "who gives orders has a place");
        let order = Order { victim, seqno };
        for own in &*self.order_boxes {
            own.put(order);
        }
    }
}

/// Orders to abort that were obeyed since the start, by what the transaction did then.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OrderCounts {
    /// It was open: its session did something else, or nothing.
    pub idle: u64,
    /// It waited for a row lock.
    pub waiting: u64,
    /// Its write set was sent.
    pub sent: u64,
    /// Its write set had a later place.
    pub placed: u64,
    /// It applied a write set with a later place.
    pub applying: u64,
    /// Not an order: own write sets that were applied in the end, as another node's.
    pub replayed: u64,
}

impl Shared {
    /// What became of orders to abort.
    pub fn order_counts(&self) -> OrderCounts {
        OrderCounts {
            idle: self.sum(|it| &it.orders.idle),
            waiting: self.sum(|it| &it.orders.waiting),
            sent: self.sum(|it| &it.orders.sent),
            placed: self.sum(|it| &it.orders.placed),
            applying: self.sum(|it| &it.orders.applying),
            replayed: self.sum(|it| &it.orders.replayed),
        }
    }
}

impl Worker {
    /// Ready when orders have come.
    pub(crate) async fn orders_due(&self) {
        self.order_box().due.notified().await;
    }

    /// Wakes the task that looks for orders.
    pub(crate) fn wake_orders(&self) {
        self.order_box().due.notify();
    }

    /// Takes the orders that have come. Whoever must go is undone by a job of its own.
    pub(crate) fn obey_orders(self: &Rc<Self>, registry: &Rc<Transactions<EngineTransaction>>) {
        let orders = self.order_box().take();
        for order in orders {
            let obeys = |key, txn: &mut EngineTransaction| txn.obey(order).then_some(key);
            if let Some(key) = registry.find(obeys) {
                self.jobs
                    .add(undo_by_order(Rc::clone(registry), key, order));
            }
        }
    }

    fn order_box(&self) -> &OrderBox {
        let own = self.shared.order_boxes.get(usize::from(self.options.index));
        own.expect("each worker has its orders")
    }
}

/// Undoes a transaction in its session's place. The session may do a part of it, too.
async fn undo_by_order(
    registry: Rc<Transactions<EngineTransaction>>,
    key: TransactionKey,
    order: Order,
) {
    let undo = |txn: &mut EngineTransaction| match txn.has_rest_of(order.victim) {
        true => txn.undo_for_order(),
        false => Ok(()),
    };
    // `None` if it is gone.
    let undone = until_done(|| registry.at(key, undo).unwrap_or(Ok(()))).await;
    if let Err(failure) = undone {
        tracing::error!(%failure, "a transaction cannot be undone for another node's");
    }
}

impl EngineTransaction {
    /// Takes an order. Returns true if it is this transaction that must go.
    fn obey(&mut self, order: Order) -> bool {
        // A commit that has its record, and a prepared one, stay as they are.
        let stays = self.is_committing() || self.has_promise() || self.doom.is_some();
        if self.id != Some(order.victim) || stays {
            return false;
        }
        let worker = Rc::clone(&self.worker);
        let counters = &worker.counters().orders;
        let is_waiting = self.locks.as_ref().is_some_and(OwnerLocks::has_pending);
        let stage = self.replication.as_ref().map(|it| it.stage);
        match stage.unwrap_or_default() {
            Stage::Placed(position) | Stage::Applying(position)
                if position.seqno <= order.seqno =>
            {
                return false;
            }
            Stage::Displaced(_) => return false,
            Stage::Open => {
                self.set_doom(StoreError::Deadlock);
                match is_waiting {
                    true => counters.waiting.increment(),
                    false => counters.idle.increment(),
                }
            }
            Stage::Sent(ticket) => {
                self.set_stage(Stage::Displaced(ticket));
                counters.sent.increment();
            }
            // Its ticket is over when it leaves its place, and not before.
            Stage::Placed(position) => {
                self.set_doom(StoreError::Deadlock);
                self.set_stage(Stage::Applying(position));
                counters.placed.increment();
                counters.replayed.increment();
            }
            Stage::Applying(_) => {
                self.set_doom(StoreError::Deadlock);
                counters.applying.increment();
            }
        }
        // Its session wakes, if it waits for a lock.
        self.end_wait();
        true
    }

    /// Undoes what an order has doomed. The session is told by its next operation.
    fn undo_for_order(&mut self) -> Outcome<()> {
        match self.replication.as_ref().map(|it| it.stage) {
            Some(Stage::Displaced(_)) => self.undo_displaced(),
            _ => {
                let doom = self.doom.clone();
                if doom.is_some() {
                    self.roll_back()?;
                }
                self.doom = doom;
                Ok(())
            }
        }
    }

    /// Undoes a local transaction whose write set was sent.
    pub(crate) fn undo_displaced(&mut self) -> Outcome<()> {
        if self.id.is_some() || self.locks.is_some() {
            self.roll_back()?;
        }
        assert_eq!(self.undo_count, 0, "nothing of it stands");
        Ok(())
    }

    fn set_stage(&mut self, stage: Stage) {
        let replication = self.replication.as_mut();
        replication.expect("it has a part in a group").stage = stage;
    }
}
