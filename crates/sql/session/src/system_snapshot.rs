//! The server's own tables of which all sessions share a snapshot: accounts and stored programs.
//!
//! ```text
//! change_turn --> the snapshot is read, a change decided --> rows written --> snapshot published
//! ```
//!
//! (I1) A snapshot is replaced only within a turn, and after its rows are durable. So snapshots are
//! published in the order of the changes; none brings back what a later change has removed.
//! (I2) Within a turn the published snapshot equals the rows. So a decision based on it takes all
//! earlier changes into account.
//! (I3) What a change does not touch is shared with the former snapshot. Sessions and compiled
//! programs recognize it by its address.
//!
//! One turn serves both tables, since dropping a stored program also revokes privileges to it. The
//! turn is a metadata lock: a session waits for it up to `lock_wait_timeout`, and KILL ends the
//! wait. A session that also holds a database's lock takes that one first.

use std::rc::Rc;

use ::store::{StoreError, WaitReason};
use catalog::account_record::ACCOUNT_TABLE;
use catalog::routine::ROUTINE_TABLE;

use crate::connection::reply::Stop;
use crate::connection::session::Session;
use crate::lock::metadata::{ExclusiveHold, SYSTEM_SNAPSHOT_LOCK};
use crate::system::accounts::{self, AccountChange};
use crate::system::routines::{self as routines, RoutineChange};
use crate::system::rows::{self, RowChange};

/// The turn to change the published tables; dropping it lets the next one begin.
#[derive(Debug)]
pub(crate) struct Turn {
    _hold: Option<ExclusiveHold>,
}

impl Session {
    /// Waits for the turn. The session must have no open transaction that has written to the
    /// tables.
    pub(crate) async fn change_turn(&mut self) -> Result<Turn, Stop> {
        let hold = Box::pin(self.change_table(SYSTEM_SNAPSHOT_LOCK)).await?;
        Ok(Turn { _hold: hold })
    }

    /// Writes changes of accounts and publishes the resulting accounts.
    pub(crate) async fn change_accounts(
        &mut self,
        turn: &Turn,
        changes: &[AccountChange],
    ) -> Result<(), Stop> {
        self.change_published(turn, changes, &[]).await
    }

    /// Writes changes of stored programs and publishes the resulting programs.
    pub(crate) async fn change_routines(
        &mut self,
        turn: &Turn,
        changes: &[RoutineChange],
    ) -> Result<(), Stop> {
        self.change_published(turn, &[], changes).await
    }

    /// Writes changes of both, all or none, and publishes the result.
    pub(crate) async fn change_published(
        &mut self,
        _: &Turn,
        accounts: &[AccountChange],
        routines: &[RoutineChange],
    ) -> Result<(), Stop> {
        let mut changes = Vec::new();
        if !accounts.is_empty() {
            changes.push((ACCOUNT_TABLE, accounts::row_changes(accounts)));
        }
        if !routines.is_empty() {
            changes.push((ROUTINE_TABLE, routines::row_changes(routines)));
        }
        self.write_system_rows(changes).await?;
        let server = &self.state.worker.server;
        if !accounts.is_empty() {
            server.set_accounts(accounts::after(&server.accounts(), accounts));
        }
        if !routines.is_empty() {
            server.set_routines(routines::after(&server.routines(), routines));
        }
        Ok(())
    }

    /// Writes rows of the server's own tables, durably. If another session has locked one, this
    /// waits as long as the session waits for locks. KILL and the end of the statement's time end
    /// the wait; then nothing is changed. Nothing interrupts the commit itself.
    async fn write_system_rows(
        &mut self,
        changes: Vec<(&'static str, Vec<RowChange>)>,
    ) -> Result<(), Stop> {
        let worker = Rc::clone(&self.state.worker);
        let mut txn = rows::begin(&*worker.store, self.system_lock_wait_s());
        let writing = async {
            for (name, changes) in changes {
                let table = rows::find(&*worker.store, name).await?;
                let table = table.ok_or(StoreError::NoSuchTable)?;
                rows::write(&*table, &mut *txn, changes).await?;
            }
            Ok::<_, StoreError>(())
        };
        let written = self.wait_in_time(WaitReason::RowLock, writing).await;
        let written = written.and_then(|written| Ok(written?));
        rows::end(&mut *txn, written).await
    }

    /// How long to wait for a row of the server's own tables. MariaDB locks these tables as a
    /// whole, up to `lock_wait_timeout`; here a row is locked, up to `innodb_lock_wait_timeout`. So
    /// a limit that the session has set in either counts.
    fn system_lock_wait_s(&self) -> u64 {
        let variables = self.state.variables.borrow();
        let active = variables.active();
        active
            .lock_wait_timeout_s
            .min(active.row_lock_wait_timeout_s)
    }

    /// Publishes what the tables hold, whichever session has written to them: `FLUSH PRIVILEGES`.
    pub(crate) async fn reload_published(&mut self, _: &Turn) -> Result<(), Stop> {
        let worker = Rc::clone(&self.state.worker);
        let (store, server) = (&*worker.store, &worker.server);
        let accounts = accounts::load(store).await?;
        server.set_accounts(accounts.sharing(&server.accounts()));
        let routines = routines::load(store).await?;
        server.set_routines(routines.sharing(&server.routines()));
        Ok(())
    }
}
