//! What a statement's own comment and the operator's rules say about its way.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use errcode::ClientError;
use monitor::ServerId as Place;
use query_log::Route;
use router::{CacheUse, Guidance, Judged, Plan, Route as RuledRoute, Ruling};
use syntax::class::{Hint, find_hint};

use crate::guest::{Guest, Ruled, Said, refusal};
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
    /// Where it is noted what is said of the statement.
    pub(super) said: &'a Cell<Said>,
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
/// is what its client gets if a rule refuses it.
pub(super) fn guide(
    plan: &mut Plan,
    text: &[u8],
    judged: &Judged,
    guides: Guides<'_>,
) -> Result<Guided, Box<ClientError>> {
    let ruling = guides.ruled.ruling(judged);
    let ruling = ruling.as_deref();
    let mut said = Said {
        is_logged: ruling.and_then(|it| it.logs),
        led: None,
    };
    guides.said.set(said);
    if let Some(error) = ruling.and_then(refusal) {
        guides.worker.counters.refused.increment();
        return Err(Box::new(error));
    }
    let guidance = guides.guidance(text, ruling);
    let own = plan.goal;
    guides.session.lead(plan, judged, &guidance);
    if plan.goal != own {
        // What a hint says goes before rules.
        let says_way =
            |(hint, server): (Hint<'_>, _)| Option::is_some(&server) || hint.route.is_some();
        let is_hinted = guidance.hint.is_some_and(says_way);
        said.led = Some(if is_hinted { Route::Hint } else { Route::Rule });
        guides.said.set(said);
    }
    Ok(Guided {
        time_max: ruling.and_then(|it| it.time_max),
        cache: ruling.and_then(|it| it.cache.clone()),
        is_hinted: guidance.hint.is_some(),
    })
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
            said: &guest.current.said,
        }
    }

    /// Whether statements of the session have a choice among servers. All of `read-connection` go
    /// to one.
    fn are_routed(&self) -> bool {
        let options = &self.worker.generation.service(self.service).options;
        matches!(options.router, Router::ReadWriteSplit(_))
    }

    /// What a statement's hint says, and these rules.
    pub(super) fn guidance<'t>(&self, text: &'t [u8], ruling: Option<&'t Ruling>) -> Guidance<'t> {
        let is_routed = self.are_routed();
        let hint = hint_of(text).filter(|_| is_routed);
        let ruled_to = match ruling.and_then(|it| it.route.as_ref()) {
            Some(RuledRoute::Server(name)) if is_routed => self.place_of(name),
            _ => None,
        };
        Guidance {
            hint: hint.and_then(|it| Some((it, self.hinted_to(&it)?))),
            ruling,
            is_routed,
            ruled_to,
        }
    }

    /// The place of the server that a hint names, if it names one. `None` if that is none of the
    /// service: the hint says nothing then.
    fn hinted_to(&self, hint: &Hint<'_>) -> Option<Option<Place>> {
        let Some(name) = hint.server else {
            return Some(None);
        };
        let place = self.place_of(name);
        if place.is_none() {
            tracing::debug!(server = name, "a hint names no server of the service");
        }
        place.map(Some)
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
