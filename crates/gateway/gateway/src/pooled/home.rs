//! [`Home`]: the server of a session of `read-connection`.

use monitor::ServerId as Place;
use router::Route;

use crate::connect::{Fit, Wanted, candidates, without};
use crate::gateway::generation::ServerPlace;
use crate::options::{Role, ServerId, ServiceId};
use crate::worker::Worker;

/// See the module's head. A session stays there as long as the server has the role that is wanted.
/// After that it moves with the next statement that needs nothing of the old one.
#[derive(Debug)]
pub(super) struct Home {
    wanted: Wanted,
    /// `None` before the session has begun.
    server: Option<ServerPlace>,
    /// The server's place in the monitor's map.
    place: Option<Place>,
}

impl Home {
    /// Of a session that begins. A rule may say another role than the service, or the server.
    pub(super) fn new(role: Role, route: Option<Route>) -> Home {
        Home {
            wanted: Wanted::new(role, route),
            server: None,
            place: None,
        }
    }

    /// Where it is.
    pub(super) fn place(&self) -> Option<Place> {
        self.place
    }

    /// What the service lacks if there is no home.
    pub(super) fn without(&self) -> &'static str {
        without(self.wanted.role)
    }

    /// The server for the next statement. `failed` has just failed: a session waits for what its
    /// monitor says of that before it moves, since a connection may fail and its server be well.
    pub(super) fn find(
        &mut self,
        worker: &Worker,
        service: ServiceId,
        failed: Option<Place>,
    ) -> Option<Place> {
        match self.stays(worker, service) {
            true => self.place.filter(|it| Some(*it) != failed),
            false => self.move_away(worker, service, failed),
        }
    }

    /// The same without moving there, and whether it is where it was.
    pub(super) fn look(&self, worker: &Worker, service: ServiceId) -> (Option<Place>, bool) {
        match self.stays(worker, service) {
            true => (self.place, true),
            false => {
                let next = self.next(worker, service, None);
                (next.map(|(_, place)| place), false)
            }
        }
    }

    fn stays(&self, worker: &Worker, service: ServiceId) -> bool {
        self.server.as_ref().is_some_and(|server| {
            let id = server.id();
            match worker.with_state(id, |it| self.wanted.fit_of(it)) {
                Fit::Met => true,
                Fit::LastResort => candidates(worker, service, &self.wanted).first() == Some(&id),
                Fit::Unmet => false,
            }
        })
    }

    /// The first server for a session that begins, or the next one after one has failed.
    pub(super) fn move_away(
        &mut self,
        worker: &Worker,
        service: ServiceId,
        failed: Option<Place>,
    ) -> Option<Place> {
        let (id, place) = self.next(worker, service, failed)?;
        self.server = Some(worker.generation.take_place(id));
        self.place = Some(place);
        self.place
    }

    fn next(
        &self,
        worker: &Worker,
        service: ServiceId,
        failed: Option<Place>,
    ) -> Option<(ServerId, Place)> {
        let found = candidates(worker, service, &self.wanted).into_iter();
        let mut placed = found.filter_map(|id| Some((id, worker.generation.server(id).watch?.1)));
        placed.find(|(_, place)| Some(*place) != failed)
    }
}
