//! A session reads what it wrote: learns what that is, and has a replica wait for it.

use std::sync::Arc;
use std::time::Duration;

use connection_state::Reads;
use monitor::gtid::GtidPosition;
use monitor::{ServerId as Place, ServerMap};
use router::Written;

use crate::connection::{Connection, NotReady};
use crate::end::End;
use crate::options::{CausalReads, SplitOptions};

use super::Pooled;
use super::answer::{Chooser, Unready};
use super::way::Way;

impl Pooled {
    /// Learns what a read has to see.
    pub(super) async fn learn_writes(&mut self) -> Result<(), End> {
        match self.way.split().map(|it| it.causal_reads) {
            None | Some(CausalReads::Off) => return Ok(()),
            Some(CausalReads::Session) => {}
            Some(CausalReads::Service) => {
                let service = self.guest.generation().service(self.guest.service);
                service.written.show(&mut self.seen, &mut self.session);
            }
        }
        if *self.session.written() == Written::Somewhere {
            return Box::pin(self.locate_writes()).await;
        }
        Ok(())
    }

    /// Asks the primary up to where it has written, if that is all that is missing for a read on a
    /// replica.
    async fn locate_writes(&mut self) -> Result<(), End> {
        let (worker, service) = (&self.guest.worker, self.guest.service);
        let primary = worker.with_map(service, |it| Some(locator(&it.map)?.0));
        let Some(place) = primary else {
            return Ok(());
        };
        if !self.stands_ready(place).await? {
            return Ok(());
        }
        let generation = Arc::clone(self.guest.generation());
        let at_server = generation.written_at(self.guest.service, place);
        let unlocated = at_server.unlocated();
        match self.ask_server(place, async |it| it.position().await).await {
            Ok(Some(position)) => {
                let service = generation.service(self.guest.service);
                service.written.locate(self.seen, &position);
                if let Some(seen) = unlocated {
                    at_server.locate(seen, &position);
                }
                self.session.locate(position);
            }
            Ok(None) | Err(NotReady::Refused(_)) => {}
            Err(NotReady::Lost(_)) => self.survive(place)?,
        }
        // A session that waits for a connection must not hold another one.
        self.settle().await;
        Ok(())
    }

    /// Has a server stand ready for a question beside the session's statements. Returns `false` if
    /// it does not: the read finds out whether any server takes it.
    async fn stands_ready(&mut self, place: Place) -> Result<bool, End> {
        if let Some(kept) = self.lingers_at {
            // The question would take the place of what it is kept for.
            self.part_with(kept).await;
        }
        match self.make_ready(place, Reads::default()).await {
            Ok(()) => {}
            Err(Unready::Session(end)) => return Err(end),
            Err(
                Unready::Refused(_) | Unready::Failed(_) | Unready::NoDatabase(_) | Unready::Victim,
            ) => return Ok(false),
        }
        Ok(true)
    }

    /// Has a replica wait for what a read has to see, if none is known to have it. Returns the
    /// replica once it has. With `None` the read goes where it would go without.
    pub(super) async fn wait_for_writes(
        &mut self,
        lag_max: Option<Duration>,
    ) -> Result<Option<Place>, End> {
        let Way::Split(options) = self.way else {
            return Ok(None);
        };
        let Some(limit) = options.causal_wait else {
            return Ok(None);
        };
        let options = SplitOptions {
            lag_max: lag_max.or(options.lag_max),
            ..options
        };
        let Written::UpTo(position) = self.session.written() else {
            return Ok(None);
        };
        let position = position.clone();
        let (worker, service) = (&self.guest.worker, self.guest.service);
        let written = self.session.written();
        let chosen = |written: &Written| {
            let chooser = Chooser {
                worker,
                service,
                options: &options,
                written,
                failed: None,
            };
            worker.with_map(service, |it| chooser.choose_replica(it))
        };
        if chosen(written).is_some() {
            return Ok(None);
        }
        let Some(place) = chosen(&Written::Nothing) else {
            return Ok(None);
        };
        if !self.stands_ready(place).await? {
            return Ok(None);
        }
        let waiting = async |it: &mut Connection| it.wait_for(&position, limit).await;
        let waited = self.ask_server(place, waiting).await;
        let counters = &self.guest.worker.counters;
        match waited {
            Ok(true) => {
                counters.waited_reads.increment();
                return Ok(Some(place));
            }
            Ok(false) => counters.late_reads.increment(),
            Err(NotReady::Refused(error)) => {
                tracing::debug!(%error, "a replica does not wait for a write");
            }
            Err(NotReady::Lost(_)) => self.survive(place)?,
        }
        // A session that waits for a connection must not hold another one.
        self.settle().await;
        Ok(None)
    }
}

/// The primary, if its position is all that is missing for a read on a replica, and the position
/// that it had last.
pub(super) fn locator(map: &ServerMap) -> Option<(Place, &GtidPosition)> {
    let primary = map.primary()?;
    let position = primary.position.as_ref().filter(|it| !it.is_empty())?;
    let has_replicas = map.replicas(None).next().is_some();
    let can_be_told = has_replicas && primary.galera.is_none();
    can_be_told.then_some((primary.id, position))
}
