//! Idle connections of one server that one worker keeps for itself.

use std::sync::Arc;

use env::Instant;

use crate::idle::{Idle, IdleStacks};
use crate::keys::{Login, Version};
use crate::options::Recycling;
use crate::server::{Server, quiet};
use crate::slot::Slot;

/// See the module's head. Each change of the stacks publishes their number of entries.
#[derive(Debug)]
pub(super) struct OwnStacks<L, C> {
    server: Arc<Server<C>>,
    stacks: IdleStacks<Kept<L, C>>,
}

/// A connection with its slot.
#[derive(Debug)]
pub(super) struct Kept<L, C> {
    pub(super) slot: Slot<C>,
    pub(super) connection: L,
}

impl<L, C> OwnStacks<L, C> {
    pub(super) fn new(server: Arc<Server<C>>) -> Self {
        Self {
            server,
            stacks: IdleStacks::default(),
        }
    }

    pub(super) fn server(&self) -> &Arc<Server<C>> {
        &self.server
    }

    pub(super) fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// The longest idle.
    pub(super) fn oldest(&self) -> Option<&Idle<Kept<L, C>>> {
        self.stacks.oldest()
    }

    /// Adds one; the caller publishes it.
    pub(super) fn push(&mut self, since: Instant, kept: Kept<L, C>) {
        self.stacks.push(Idle {
            login: kept.slot.login(),
            since,
            value: kept,
        });
    }

    /// Publishes what was added, and returns the server's demand word.
    pub(super) fn publish_kept(&self, worker: usize) -> u64 {
        self.server.stock.keep(worker, self.count())
    }

    /// Takes the last used of a login.
    pub(super) fn take_newest(&mut self, login: Login, worker: usize) -> Option<Idle<Kept<L, C>>> {
        let kept = self.stacks.take_newest(login)?;
        self.publish_taken(worker);
        Some(kept)
    }

    /// Takes the last used of a login if the server has no demand and still that version. The
    /// word is read first (P1).
    #[inline]
    pub(super) fn take_quiet(&mut self, login: Login, worker: usize) -> Option<Idle<Kept<L, C>>> {
        let word = self.server.stock.demand();
        let is_quiet = |kept: &Kept<L, C>| quiet(kept.slot.version()) == word;
        let kept = self.stacks.take_newest_if(login, is_quiet)?;
        self.publish_taken(worker);
        Some(kept)
    }

    /// Takes the longest idle.
    pub(super) fn take_oldest(&mut self, worker: usize) -> Option<Idle<Kept<L, C>>> {
        let kept = self.stacks.take_oldest()?;
        self.publish_taken(worker);
        Some(kept)
    }

    /// The last used of a login.
    pub(super) fn newest(&self, login: Login) -> Option<&Kept<L, C>> {
        self.stacks.newest(login).map(|it| &it.value)
    }

    /// Takes those of another version.
    pub(super) fn take_void(&mut self, version: Version, worker: usize) -> Vec<Idle<Kept<L, C>>> {
        let void = self
            .stacks
            .take_each(|it| it.value.slot.version() != version);
        self.publish_taken(worker);
        void
    }

    /// Takes those that are too old, and those that are idle for so long that others may have them.
    pub(super) fn take_resting(
        &mut self,
        now: Instant,
        recycling: &Recycling,
        worker: usize,
    ) -> Vec<Idle<Kept<L, C>>> {
        let taken = self.stacks.take_each(|it| {
            it.value.slot.is_aged(now)
                || recycling.is_idled(it.since, now)
                || recycling.own_idle_max <= now.since(it.since)
        });
        self.publish_taken(worker);
        taken
    }

    /// Takes all.
    pub(super) fn take_all(&mut self, worker: usize) -> Vec<Idle<Kept<L, C>>> {
        let all = self.stacks.take_each(|_| true);
        self.publish_taken(worker);
        all
    }

    fn publish_taken(&self, worker: usize) {
        self.server.stock.take(worker, self.count());
    }

    fn count(&self) -> u32 {
        u32::try_from(self.stacks.len()).expect("no server has 2^32 connections")
    }
}
