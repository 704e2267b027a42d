//! What a statement's own comment and the operator's rules say about its way.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use errcode::ClientError;
use monitor::ServerId as Place;
use router::{CacheUse, Judged, Plan, Route};
use syntax::class::{Hint, find_hint};

use crate::guest::{Guest, Ruled, refusal};
use crate::options::{Router, ServiceId};
use crate::worker::Worker;

use super::Pooled;

/// What a session's statements are guided by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Guides<'a> {
    pub(super) session: &'a router::Session,
    pub(super) worker: &'a Rc<Worker>,
    pub(super) service: ServiceId,
    pub(super) ruled: &'a Ruled,
    /// Whether rules have the statement logged.
    pub(super) is_logged: &'a Cell<Option<bool>>,
}

/// What is said about a statement beside its way.
#[derive(Debug, Default)]
pub(super) struct Guided {
    /// How long it may run.
    pub(super) time_max: Option<Duration>,
    /// Whether its result is kept.
    pub(super) cache: Option<CacheUse>,
    /// Its text has a hint.
    pub(super) is_hinted: bool,
}

/// Has a plan do as a comment of the text asks, and as rules say where that says nothing. The error
/// is what its client is told if a rule refuses it.
pub(super) fn guide(
    plan: &mut Plan,
    text: &[u8],
    judged: &Judged,
    guides: Guides<'_>,
) -> Result<Guided, Box<ClientError>> {
    let mut guided = Guided::default();
    let mut is_guided = false;
    if let Some(hint) = hint_of(text)
        && guides.are_routed()
    {
        guided.is_hinted = true;
        is_guided = guides.follow_hint(plan, &hint, judged);
    }
    let Some(ruling) = guides.ruled.ruling(judged) else {
        return Ok(guided);
    };
    guides.is_logged.set(ruling.logs);
    if let Some(error) = refusal(&ruling) {
        guides.worker.counters.refused.increment();
        return Err(Box::new(error));
    }
    plan.obey(&ruling);
    if let Some(route) = &ruling.route
        && !is_guided
        && guides.are_routed()
    {
        let server = match route {
            Route::Server(name) => guides.place_of(name),
            Route::Primary | Route::Replica => None,
        };
        plan.follow(route, server, judged);
    }
    guided.time_max = ruling.time_max;
    guided.cache = ruling.cache.clone();
    Ok(guided)
}

fn hint_of(text: &[u8]) -> Option<Hint<'_>> {
    let found = find_hint(text)?;
    found
        .inspect_err(|error| tracing::debug!(%error, "a hint cannot be understood"))
        .ok()
}

impl Pooled {
    /// The same, for the session's next statement.
    pub(super) fn guide(
        &mut self,
        plan: &mut Plan,
        text: &[u8],
        judged: &Judged,
    ) -> Result<(), Box<ClientError>> {
        let guides = Guides::of(&self.session, &self.guest);
        let guided = guide(plan, text, judged, guides)?;
        self.guest.time_max = guided.time_max.or(self.guest.time_max);
        Ok(())
    }
}

impl<'a> Guides<'a> {
    /// Those of a client's session.
    pub(super) fn of(session: &'a router::Session, guest: &'a Guest) -> Guides<'a> {
        Guides {
            session,
            worker: &guest.worker,
            service: guest.service,
            ruled: &guest.ruled,
            is_logged: &guest.current.is_logged,
        }
    }

    /// Whether statements of the session have a choice among servers. All of `read-connection` go
    /// to one.
    fn are_routed(&self) -> bool {
        let options = &self.worker.generation.service(self.service).options;
        matches!(options.router, Router::ReadWriteSplit(_))
    }

    /// Returns whether the hint says where the statement goes.
    fn follow_hint(&self, plan: &mut Plan, hint: &Hint<'_>, judged: &Judged) -> bool {
        let server = hint.server.and_then(|name| self.place_of(name));
        if hint.server.is_some() && server.is_none() {
            let server = hint.server;
            tracing::debug!(server, "a hint names no server of the service");
            return false;
        }
        self.session.guide(plan, hint, server, judged);
        hint.server.is_some() || hint.route.is_some()
    }

    /// The place of the service's server of this name.
    fn place_of(&self, name: &str) -> Option<Place> {
        let place = self.worker.with_map(self.service, |it| {
            let mut servers = it.map.servers();
            let found = servers.find(|it| it.entry.name.eq_ignore_ascii_case(name));
            found.map(|it| it.id)
        })?;
        let is_ours = self.worker.load_of(self.service, place).is_some();
        is_ours.then_some(place)
    }
}
