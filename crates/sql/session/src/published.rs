//! The server's own tables of which all sessions share a snapshot: accounts and stored programs.
//!
//! ```text
//! change_turn --> the snapshot is read, a change decided --> rows written --> snapshot published
//! ```
//!
//! (I1) A snapshot is replaced within a turn alone, and after its rows are durable. So snapshots
//! follow each other as the changes do: none brings back what a later change has taken away.
//! (I2) Within a turn the snapshot that the server has is that of the rows, so that what is decided
//! by it is decided by all changes before.
//! (I3) What a change leaves alone is shared with the snapshot before: sessions, and what was made
//! of stored programs, know it again by its address.
//!
//! One turn serves both tables, for who drops a stored program takes rights to it away, too. It is
//! a metadata lock: it is waited for as long as `lock_wait_timeout` says, and KILL ends the wait.
//! Who holds a database, strongly or weakly, takes the turn after that.

use std::rc::Rc;

use crate::accounts::{self, AccountChange};
use crate::metadata::{PUBLISHED_LOCK, StrongHold};
use crate::reply::Stop;
use crate::routine::store::{self as routines, RoutineChange};
use crate::session::Session;

/// The turn to change what is published; the next one's begins when this is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    _hold: Option<StrongHold>,
}

impl Session {
    /// Waits for the turn. No transaction may be open that has written to the tables.
    pub(crate) async fn change_turn(&mut self) -> Result<Turn, Stop> {
        let hold = Box::pin(self.change_table(PUBLISHED_LOCK)).await?;
        Ok(Turn { _hold: hold })
    }

    /// Writes changes of accounts and publishes the accounts as they are then.
    pub(crate) async fn change_accounts(
        &mut self,
        _: &Turn,
        changes: &[AccountChange],
    ) -> Result<(), Stop> {
        let worker = Rc::clone(&self.state.worker);
        accounts::apply(&*worker.store, changes).await?;
        let after = accounts::after(&worker.server.accounts(), changes);
        worker.server.set_accounts(after);
        Ok(())
    }

    /// Writes changes of stored programs and publishes the programs as they are then.
    pub(crate) async fn change_routines(
        &mut self,
        _: &Turn,
        changes: &[RoutineChange],
    ) -> Result<(), Stop> {
        let worker = Rc::clone(&self.state.worker);
        routines::apply(&*worker.store, changes).await?;
        let after = routines::after(&worker.server.routines(), changes);
        worker.server.set_routines(after);
        Ok(())
    }

    /// Publishes what the tables hold, whoever has written to them: `FLUSH PRIVILEGES`.
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
