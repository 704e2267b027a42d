//! EXPLAIN ROUTE, of a client about its own session, and of an operator about one that begins.

use std::cell::Cell;
use std::rc::Rc;

use errcode::ER_QUERY_INTERRUPTED;
use monitor::{Published, ServerId as Place};
use router::{
    Balance, Choice, Decision, Goal, Judged, PassedOver, Pin, Pins, Plan, Ruling, Written,
};
use syntax::SqlMode;
use syntax::class::Facts;
use wire::StatusFlags;

use crate::end::End;
use crate::explain::{
    Asked, Cached, Condition, Course, Kind, Leaves, Property, Routed, What, check_own, is_asked,
    parse, properties, write,
};
use crate::guest::Ruled;
use crate::options::{CausalReads, ServiceId, SplitOptions};
use crate::worker::Worker;

use super::Pooled;
use super::answer::Chooser;
use super::causal::locator;
use super::guide::Guides;
use super::sharing::may_have_changed;
use super::way::Way;

mod cached;

/// What an explanation goes by.
struct View<'a> {
    guides: Guides<'a>,
    way: &'a Way,
    mode: SqlMode,
    multiplexes: bool,
    /// The version of the service's writes that the session has seen.
    seen: u64,
}

/// A choice of `read-write-split`, and what it depends on.
struct Outlook {
    choice: Choice,
    condition: Option<Condition>,
    written: Option<String>,
}

impl Pooled {
    /// EXPLAIN ROUTE. Nothing of the session is changed, and no server is asked.
    pub(super) async fn explain_route(&mut self, mode: SqlMode) -> Result<(), End> {
        let packet = self.guest.take_command().await?;
        let text = packet.get(1..).unwrap_or_default();
        let user = self.guest.client.info().user.clone();
        let database = self.database_now();
        let service = &self.guest.generation().service(self.guest.service);
        let service = &*service.options.name;
        let asked = parse(text, mode);
        let asked = asked.and_then(|it| {
            let checked = check_own(&it, &user, database.as_deref(), service);
            checked.map(|()| it.text)
        });
        match asked {
            Ok(text) => {
                let cached = self.cached_as(&text, mode);
                let rows = self.explained((&text, mode), (&user, database.as_deref()), cached);
                write(&mut self.guest.client, self.status, &rows);
            }
            Err(error) => self.guest.write_error(&error),
        }
        Ok(())
    }

    fn cached_as(&mut self, text: &[u8], mode: SqlMode) -> Cached {
        let judged = self.guest.ruled.judge(text, mode);
        let decisions = self.guest.ruled.explain(&judged);
        self.cached((text, mode), &judged, &decisions)
    }

    fn explained(
        &self,
        (text, mode): (&[u8], SqlMode),
        (user, database): (&str, Option<&str>),
        cached: Cached,
    ) -> Vec<Property> {
        let guest = &self.guest;
        let judged = guest.ruled.judge(text, mode);
        let decisions = guest.ruled.explain(&judged);
        let view = View {
            guides: Guides::of(&self.session, guest),
            way: &self.way,
            mode,
            multiplexes: self.multiplexes,
            seen: self.seen,
        };
        let course = match self.answers_itself(text, mode, &judged) {
            Some(reason) => Course::Here(reason),
            None => view.course(text, &judged, &decisions),
        };
        let asked = Asked {
            generation: guest.generation(),
            service: guest.service,
            user,
            database,
            text,
            mode,
            judged: &judged,
            decisions: &decisions,
            pins: self.session.pins(),
            cached,
            known: guest.worker.known_tables(),
        };
        let worker = &guest.worker;
        worker.with_map(guest.service, |it| properties(&asked, &course, it))
    }

    /// Why no server gets a statement.
    fn answers_itself(&self, text: &[u8], mode: SqlMode, judged: &Judged) -> Option<&'static str> {
        let is_alone = !judged.verdict.is_several;
        let reads_warnings = judged.verdict.facts.has(Facts::READS_WARNINGS);
        match () {
            () if is_asked(text, mode) => Some("it is EXPLAIN ROUTE"),
            () if self.guest.is_kill_of_client(text) => {
                Some("it ends a client of the gateway, on the server that this one uses")
            }
            () if self.multiplexes && is_alone && reads_warnings && self.warnings.is_some() => {
                Some("it has kept the warnings of the statement before")
            }
            () => None,
        }
    }

    /// The database that the session is in.
    fn database_now(&self) -> Option<String> {
        let told = self.database.as_deref().map(<[u8]>::to_vec);
        let named = told.or_else(|| self.history.database(self.mode()));
        let named = named.map(|it| String::from_utf8_lossy(&it).into_owned());
        let name = named.or_else(|| self.origin.database.clone());
        name.filter(|it| !it.is_empty())
    }
}

/// Whose session an operator asks about.
pub(crate) struct Newcomer<'a> {
    pub(crate) service: ServiceId,
    pub(crate) user: &'a str,
    pub(crate) database: Option<&'a str>,
    pub(crate) ruled: &'a Ruled,
}

/// Where the first statement of a session would go that begins on this worker.
pub(crate) fn explain_newcomer(
    worker: &Rc<Worker>,
    newcomer: &Newcomer<'_>,
    text: &[u8],
) -> Vec<Property> {
    let mode = SqlMode::default();
    let (service, ruled) = (newcomer.service, newcomer.ruled);
    let known = worker.generation.service(service);
    let mut session = router::Session::default();
    session.observe_login(StatusFlags::AUTOCOMMIT);
    let way = Way::of(known.options.router, ruled);
    let judged = ruled.judge(text, mode);
    let decisions = ruled.explain(&judged);
    let view = View {
        guides: Guides {
            session: &session,
            worker,
            service,
            ruled,
            said: &Cell::default(),
        },
        way: &way,
        mode,
        multiplexes: known.options.multiplexes,
        seen: 0,
    };
    let course = match is_asked(text, mode) {
        true => Course::Here("it is EXPLAIN ROUTE"),
        false => view.course(text, &judged, &decisions),
    };
    let said = (text, &judged, &*decisions);
    let asked = Asked {
        generation: &worker.generation,
        service,
        user: newcomer.user,
        database: newcomer.database,
        text,
        mode,
        judged: &judged,
        decisions: &decisions,
        pins: Pins::default(),
        cached: cached::of_newcomer((worker, newcomer), &view.guides, said),
        known: worker.known_tables(),
    };
    worker.with_map(service, |it| properties(&asked, &course, it))
}

impl View<'_> {
    fn course(&self, text: &[u8], judged: &Judged, decisions: &[Decision]) -> Course {
        let ruling = Decision::sum(decisions);
        if let Some(text) = ruling.refusal {
            return Course::Refused(text);
        }
        let ruling = (!decisions.is_empty()).then_some(ruling);
        Course::Routed(Box::new(self.routed(text, judged, ruling.as_ref())))
    }

    fn routed(&self, text: &[u8], judged: &Judged, ruling: Option<&Ruling>) -> Routed {
        let guidance = self.guides.guidance(text, ruling);
        let session = self.guides.session;
        let explanation = router::explain(session, (text, self.mode), judged, &guidance);
        let plan = &explanation.plan;
        let (worker, service) = (self.guides.worker, self.guides.service);
        let (outlook, kind) = match self.way {
            Way::Home(home) => {
                let (server, kind) = match plan.goal {
                    Goal::Held(place) => {
                        let server = worker.with_map(service, |it| {
                            let state = it.map.server(place)?;
                            state.is_reachable().then_some(place)
                        });
                        (server, Kind::Stays)
                    }
                    Goal::Primary | Goal::PrimaryFirst | Goal::Replica => {
                        match home.look(worker, service) {
                            (server, true) => (server, Kind::Stays),
                            (server, false) => (server, Kind::Moves),
                        }
                    }
                };
                (Outlook::alone(server), kind)
            }
            Way::Split(options) => {
                let options = SplitOptions {
                    lag_max: plan.lag_max.or(options.lag_max),
                    ..*options
                };
                let mut reader = session.clone();
                // As `learn_writes`: other statements do not look at what others have written.
                if plan.goal == Goal::Replica && options.causal_reads == CausalReads::Service {
                    let known = worker.generation.service(service);
                    known.written.show(&mut self.seen.clone(), &mut reader);
                }
                let chooser = Chooser {
                    worker,
                    service,
                    options: &options,
                    written: reader.written(),
                    failed: None,
                };
                let outlook = worker.with_map(service, |it| Outlook::of(chooser, it, plan.goal));
                (outlook, Kind::Split)
            }
        };
        Routed {
            leaves: self.leaves(plan),
            explanation,
            choice: outlook.choice,
            kind,
            written: outlook.written,
            condition: outlook.condition,
        }
    }

    fn leaves(&self, plan: &Plan) -> Leaves {
        let mut pins = plan.pins;
        if self.multiplexes && plan.facts.has(Facts::ADVANCES_SEQUENCE) {
            pins.add(Pin::Sequence);
        }
        let causal_reads = self.way.split().map(|it| it.causal_reads);
        let is_causal = causal_reads.is_some_and(|it| it != CausalReads::Off);
        Leaves {
            pins,
            resets: self.multiplexes && may_have_changed(plan, ER_QUERY_INTERRUPTED),
            shows_writes: is_causal && plan.may_write,
        }
    }
}

impl Outlook {
    fn alone(server: Option<Place>) -> Outlook {
        Outlook {
            choice: Choice {
                server,
                is_primary: false,
                others: Vec::new(),
            },
            condition: None,
            written: None,
        }
    }

    /// What `set_out` and `choose` will come to, as far as that is known here.
    fn of(chooser: Chooser<'_>, published: &Published, goal: Goal) -> Outlook {
        let mut chooser = chooser;
        let unlocated = chooser.choose(published, goal);
        let mut what = None;
        let located;
        let is_causal = chooser.options.causal_reads != CausalReads::Off;
        // The read asks the primary for its position first.
        if goal == Goal::Replica
            && is_causal
            && *chooser.written == Written::Somewhere
            && let Some((_, position)) = locator(&published.map)
        {
            located = Written::UpTo(position.clone());
            chooser.written = &located;
            what = chooser.choose_replica(published).map(|_| What::Position);
        }
        let written = match chooser.written {
            Written::UpTo(position) => Some(position.to_string()),
            Written::Nothing | Written::Somewhere => None,
        };
        // A replica is asked to wait if none is known to have what was written.
        if goal == Goal::Replica
            && let Some(limit) = chooser.options.causal_wait
            && written.is_some()
            && chooser.choose_replica(published).is_none()
        {
            let any = Chooser {
                written: &Written::Nothing,
                ..chooser
            };
            if any.choose_replica(published).is_some() {
                what = Some(What::Wait(limit));
                chooser = any;
            }
        }
        let choice = chooser.explain(published, goal);
        let is_busier = |why: &PassedOver| *why == PassedOver::Busier;
        let is_timed = chooser.options.balance == Balance::ResponseTime;
        if is_timed && choice.others.iter().any(|(_, why)| is_busier(why)) {
            what = what.or(Some(What::ResponseTime));
        }
        let others = |may_be: fn(&PassedOver) -> bool| -> Vec<Place> {
            let others = choice.others.iter().filter(|(_, why)| may_be(why));
            others.map(|(place, _)| *place).collect()
        };
        let otherwise = match what {
            None => Vec::new(),
            Some(What::Wait(_)) => unlocated.into_iter().collect(),
            Some(What::ResponseTime) => others(|why| *why == PassedOver::Busier),
            // By its position another replica may be the one that has it.
            Some(What::Position) => others(|why| {
                let may_read = [PassedOver::Busier, PassedOver::Behind, PassedOver::Primary];
                may_read.contains(why)
            }),
        };
        let condition = what.filter(|_| !otherwise.is_empty());
        Outlook {
            choice,
            condition: condition.map(|what| Condition { what, otherwise }),
            written,
        }
    }
}
