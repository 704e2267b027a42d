//! Decisions about detached transactions: on the worker that has them (X2 of [`crate::xa`]).

use std::rc::Rc;

use errcode::{ClientError, ER_XA_RBROLLBACK};
use store::{LeftPrepared, StoreError, Xid};
use sync::oneshot;

use crate::connection::transaction::{End, end_step, wait_for_end};
use crate::worker::Worker;
use crate::xa::detached::Detached;

/// Why a decision has failed.
#[derive(Debug)]
pub(crate) enum Undecided {
    /// There is nothing to commit: it was rolled back.
    RolledBack,
    /// The store has failed, and somebody may decide again. A rollback may have undone a part: then
    /// a commit will roll back the rest.
    Store(StoreError),
}

impl From<Undecided> for ClientError {
    fn from(undecided: Undecided) -> Self {
        match undecided {
            Undecided::RolledBack => ClientError::new(ER_XA_RBROLLBACK, &[]),
            Undecided::Store(error) => executor::client_error(&error),
        }
    }
}

impl Worker {
    /// Takes what a former life of the server has left on this worker. Nobody uses tables yet.
    pub(crate) fn take_left_prepared(&self) {
        for left in self.store.take_left_prepared() {
            let LeftPrepared {
                xid,
                tables,
                transaction,
            } = left;
            let hold = |table| self.metadata.try_hold(&self.server.metadata, table);
            let holds: Option<Vec<_>> = tables.into_iter().map(hold).collect();
            let holds = holds.expect("nobody changes tables before the server serves");
            let detached = Detached::new(Some(transaction), holds);
            self.server.xa_names.note_left(&xid, self.index);
            self.detached.borrow_mut().insert(xid, detached);
        }
    }

    /// Ends a transaction that was taken for this decision, on the worker that has it.
    pub(crate) async fn decide(
        self: &Rc<Self>,
        owner: usize,
        xid: &Xid,
        how: End,
    ) -> Result<(), Undecided> {
        if owner == self.index {
            return self.decide_here(xid, how).await;
        }
        let (reply, decided) = oneshot();
        let xid = xid.clone();
        runtime::send_to(
            owner,
            Box::new(move || {
                let worker: Rc<Worker> = runtime::local().expect("each worker has its sessions");
                runtime::spawn(async move {
                    reply.deliver(worker.decide_here(&xid, how).await);
                });
            }),
        );
        decided.receive().await
    }

    async fn decide_here(&self, xid: &Xid, how: End) -> Result<(), Undecided> {
        let taken = self.detached.borrow_mut().remove(xid);
        let mut detached = taken.expect("who has taken the name finds the transaction");
        let names = &self.server.xa_names;
        match end(&mut detached, how).await {
            Err(Undecided::Store(error)) => {
                // (X3)
                self.detached.borrow_mut().insert(xid.clone(), detached);
                names.give_back(xid, self.index);
                Err(Undecided::Store(error))
            }
            ended => {
                drop(detached);
                names.remove(xid);
                ended
            }
        }
    }
}

async fn end(detached: &mut Detached, how: End) -> Result<(), Undecided> {
    let Some(open) = &mut detached.open else {
        return match how {
            End::Commit(_) => Err(Undecided::RolledBack),
            End::Rollback | End::RollbackTo(_) => Ok(()),
        };
    };
    loop {
        match end_step(&mut **open, how) {
            Ok(None) => return Ok(()),
            Ok(Some(suspend)) => wait_for_end(suspend).await,
            Err(StoreError::RolledBack) => return Err(Undecided::RolledBack),
            Err(error) => return Err(Undecided::Store(error)),
        }
    }
}
