//! Whether the client of a statement that computes is still there.
//!
//! A statement that waits ends at once when its client goes. One that computes looks at the socket
//! at its turns, once a second from its second second on; most statements never do. A client that
//! is gone ends it as KILL does: it is rolled back, and nothing of a program goes on.
//!
//! A client that has only ended its sending side wants its result, and over TCP it looks like one
//! that has closed. Where rows are to come, their columns are sent to it: one that has closed
//! answers that by a reset, which the next look sees. Where nothing can be sent to it (a
//! statement without rows, one long call, or one whose rows so far have been sent and that makes
//! no more until the next look) it is taken for gone.
//!
//! ```text
//! None --look: it sends no more--> Asked --tell_peer: columns are sent--> Told
//! Asked --tell_peer: nothing to send; look: it still sends no more--> killed
//! Told --look: a reset--> killed
//! ```

use std::cell::{Cell, OnceCell};

use front::{PeerState, PeerWatch};
use planner::Plan;
use store::Suspend;

use crate::connection::registry::KillOrder;
use crate::connection::reply::Stop;
use crate::connection::session::Session;
use crate::connection::state::State;
use crate::statement::sink::Rows;

/// How often a socket is looked at, and how long a statement computes before: short enough that
/// little is computed for nobody, long enough that the call (1 us) is no cost.
const LOOK_INTERVAL_US: u64 = 1_000_000;

/// What is thought of a client while its statement computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Doubt {
    /// It is there.
    #[default]
    None,
    /// It sends no more: it is to be sent something.
    Asked,
    /// It was sent something.
    Told,
}

/// See the module's head.
#[derive(Debug, Default)]
pub(crate) struct PeerLook {
    /// The socket; set at login.
    watch: OnceCell<PeerWatch>,
    /// When it is looked at next, on the steady clock.
    next_us: Cell<u64>,
    /// Of the running statement.
    doubt: Cell<Doubt>,
}

impl PeerLook {
    /// This is the client's socket.
    pub(crate) fn watch(&self, watch: PeerWatch) {
        let earlier = self.watch.set(watch);
        assert!(earlier.is_ok(), "a session has one client");
    }

    /// A command begins.
    pub(crate) fn begin(&self, now_us: u64) {
        self.next_us.set(now_us.saturating_add(LOOK_INTERVAL_US));
        self.doubt.set(Doubt::None);
    }
}

impl State {
    /// Looks at the client's socket, if it is time to; the session is killed if nobody is there.
    pub(crate) fn look_at_peer(&self) {
        let look = &self.peer_look;
        let now_us = self.worker.steady_us();
        if now_us < look.next_us.get() {
            return;
        }
        look.next_us.set(now_us.saturating_add(LOOK_INTERVAL_US));
        let Some(watch) = look.watch.get() else {
            return;
        };
        match (watch.look(), look.doubt.get()) {
            (PeerState::There, _) | (PeerState::Ended, Doubt::Told) => {}
            (PeerState::Ended, Doubt::None) => look.doubt.set(Doubt::Asked),
            (PeerState::Ended, Doubt::Asked) | (PeerState::Gone, _) => {
                self.seat.give_order(KillOrder::Connection);
            }
        }
    }
}

impl Session {
    /// Waits for what the statement has suspended for, and learns whether its client is there if
    /// that is in doubt.
    pub(crate) async fn wait_and_tell(
        &mut self,
        suspend: Suspend,
        rows: &mut Rows<'_>,
        plan: &Plan,
        deadline: Option<u64>,
    ) -> Result<(), Stop> {
        self.wait_until(suspend, deadline).await?;
        if self.state.peer_look.doubt.get() == Doubt::Asked {
            self.tell_peer(rows, plan, deadline).await?;
        }
        Ok(())
    }

    /// Sends the client what its statement has for it, the columns at least, so that one that has
    /// closed its connection answers. Where nothing can be sent, it is gone.
    async fn tell_peer(
        &mut self,
        rows: &mut Rows<'_>,
        plan: &Plan,
        deadline: Option<u64>,
    ) -> Result<(), Stop> {
        let has_rows = !plan.columns.is_empty() && self.cursor.is_none();
        let has_begun = has_rows && rows.begin(&plan.columns, &mut self.client);
        if !has_begun {
            self.state.seat.give_order(KillOrder::Connection);
            return Err(self.interrupted());
        }
        if !self.client.has_unsent() {
            // All has been sent before: the next rows tell, if there are any before the next look;
            // if not, it is gone.
            return Ok(());
        }
        self.state.peer_look.doubt.set(Doubt::Told);
        self.send_rows(deadline).await
    }
}
