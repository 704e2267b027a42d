//! How a session's transaction ends, or a part of it.

use errcode::ER_XA_RBROLLBACK;
use store::WaitReason;

use crate::connection::reply::Stop;
use crate::connection::session::Session;
use crate::connection::transaction::{End, end_step, wait_for_end};
use crate::xa::branch::XaState;

impl Session {
    /// Commits the open transaction, if there is one: not if it is an XA transaction, which has
    /// statements of its own for that.
    pub(crate) async fn commit(&mut self) -> Result<(), Stop> {
        self.check_no_xa()?;
        let durability = self.state.worker.server.durability();
        self.end_transaction(End::Commit(durability)).await
    }

    /// Ends the open transaction, if there is one. KILL does not stop it: it must not stay unknown
    /// whether a commit happened.
    pub(crate) async fn end_transaction(&mut self, how: End) -> Result<(), Stop> {
        let Some(open) = self.transaction.opened() else {
            self.transaction.end();
            self.transaction.next = crate::connection::transaction::NextTransaction::default();
            return Ok(());
        };
        let is_active = open.is_active();
        if is_active {
            self.state.count_handler_call(how.handler_call());
        }
        // It may take minutes, and waits of its own are not shown.
        let is_shown = is_active && matches!(how, End::Rollback);
        if is_shown {
            self.state.handle.update(|line| line.state = "Rollback");
        }
        let mut outcome = end_step(&mut **open, how);
        while let Ok(Some(suspend)) = outcome {
            if suspend.reason() == WaitReason::Durability {
                self.transaction.leave_gate(how);
            }
            wait_for_end(suspend).await;
            let open = self.transaction.opened().expect("it ends below");
            outcome = end_step(&mut **open, how);
        }
        if is_shown {
            self.state.handle.update(|line| line.state = "");
        }
        if outcome.is_ok() {
            self.transaction.leave_gate(how);
        }
        self.transaction.end();
        self.transaction.next = crate::connection::transaction::NextTransaction::default();
        outcome.map(|_| ()).map_err(Stop::from)
    }

    /// Rolls back to the mark. If that fails, rolls back the whole transaction, in the background.
    pub(crate) async fn roll_back_to(&mut self, mark: store::UndoMark) -> Result<(), Stop> {
        self.go_back(End::RollbackTo(mark)).await
    }

    /// As [`roll_back_to`](Self::roll_back_to), or to the beginning. The transaction goes on.
    pub(crate) async fn go_back(&mut self, back: End) -> Result<(), Stop> {
        while let Some(open) = self.transaction.opened() {
            match end_step(&mut **open, back) {
                Ok(Some(suspend)) => suspend.await,
                Ok(None) => break,
                Err(error) => {
                    // A part of what had to be undone is left: the rest must not be committed with
                    // it.
                    let stop = Stop::from(error);
                    self.lose_transaction(&stop);
                    return Err(stop);
                }
            }
        }
        Ok(())
    }

    /// Drops the transaction, which an error has rolled back.
    pub(crate) fn lose_transaction(&mut self, stop: &Stop) {
        let error = match stop {
            Stop::Error(error) => error.code,
            Stop::Disconnect(_) => ER_XA_RBROLLBACK,
        };
        self.transaction.lost(error);
    }

    /// Rolls back the open transaction at the end of the session. A prepared XA transaction stays,
    /// and its worker has it.
    pub(crate) async fn abandon_transaction(&mut self) {
        if let Some(branch) = self.transaction.take_xa()
            && branch.state == XaState::Prepared
        {
            if !self.transaction.has_changes() {
                // Nothing of it would survive a crash: its name alone stays.
                self.abandon_open().await;
            }
            self.detach(branch);
            return;
        }
        self.abandon_open().await;
    }

    async fn abandon_open(&mut self) {
        if let Err(Stop::Error(error)) = self.end_transaction(End::Rollback).await {
            tracing::error!(%error, "an abandoned transaction was not rolled back");
        }
    }
}
