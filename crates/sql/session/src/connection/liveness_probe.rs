//! Checks whether the client of a computing statement is still connected.
//!
//! A statement that waits ends at once when its client disconnects. One that computes looks at the
//! socket at its turns, once a second, first after a second; most statements never do. If the
//! client is gone, the statement ends as by KILL: it is rolled back, and a stored program does not
//! continue.
//!
//! A client that has only shut down its sending side wants its result, and over TCP it looks like
//! one that has closed. If the statement has rows, their columns are sent to it: a closed peer
//! answers with a reset, which the next look sees. If nothing can be sent, the client counts as
//! gone. That is so for a statement without rows, for one long call, and for one whose rows have
//! all been sent and that makes no more until the next look.
//!
//! ```text
//! None --look: it sends no more--> Asked --tell_peer: columns are sent--> Told
//! Asked --tell_peer: nothing to send; look: it still sends no more--> killed
//! Told --look: a reset--> killed
//! ```

use std::cell::{Cell, OnceCell};

use clients::KillOrder;
use front::{PeerState, PeerWatch};
use planner::Plan;
use store::Suspend;

use crate::connection::reply::Stop;
use crate::connection::session::Session;
use crate::connection::sink::Rows;
use crate::connection::state::State;

/// How often a socket is looked at, and how long a statement computes before the first look. It is
/// short enough that little is computed in vain, and long enough that the call (1 us) costs
/// nothing.
const LOOK_INTERVAL_US: u64 = 1_000_000;

/// What is known of a client while its statement computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Doubt {
    /// It is connected.
    #[default]
    None,
    /// It has ended its sending side; something has to be sent to it.
    Asked,
    /// Something was sent to it.
    Told,
}

/// See the module's head.
#[derive(Debug, Default)]
pub(crate) struct LivenessProbe {
    /// The socket; set at login.
    watch: OnceCell<PeerWatch>,
    /// When it is looked at next, on the steady clock.
    next_us: Cell<u64>,
    /// Of the running statement.
    doubt: Cell<Doubt>,
}

impl LivenessProbe {
    /// Sets the client's socket.
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
    /// Looks at the client's socket if it is time to, and kills the session if the client is gone.
    pub(crate) fn look_at_peer(&self) {
        let look = &self.liveness_probe;
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
                self.handle.give_order(KillOrder::Connection);
            }
        }
    }
}

impl Session {
    /// Waits until the statement can go on, and sends something to the client if it is in doubt.
    pub(crate) async fn wait_and_tell(
        &mut self,
        suspend: Suspend,
        rows: &mut Rows<'_>,
        plan: &Plan,
        deadline: Option<u64>,
    ) -> Result<(), Stop> {
        self.wait_until(suspend, deadline).await?;
        if self.state.liveness_probe.doubt.get() == Doubt::Asked {
            self.tell_peer(rows, plan, deadline).await?;
        }
        Ok(())
    }

    /// Sends the statement's pending output to the client, at least the columns, so that a closed
    /// connection answers. If nothing can be sent, the client counts as gone.
    async fn tell_peer(
        &mut self,
        rows: &mut Rows<'_>,
        plan: &Plan,
        deadline: Option<u64>,
    ) -> Result<(), Stop> {
        let has_rows = !plan.columns.is_empty();
        let has_begun = has_rows
            && rows
                .begin(&plan.columns, &mut self.client, &self.state)
                .map_err(|failure| *failure)?;
        if !has_begun {
            self.state.handle.give_order(KillOrder::Connection);
            return Err(self.interrupted());
        }
        if !self.client.has_unsent() {
            // All has been sent already. Rows that follow before the next look will show it;
            // without any, the client counts as gone.
            return Ok(());
        }
        self.state.liveness_probe.doubt.set(Doubt::Told);
        self.send_rows(deadline).await
    }
}
