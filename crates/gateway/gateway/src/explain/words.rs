//! Explanations in English: the sentences of EXPLAIN ROUTE.

use std::time::Duration;

use monitor::ServerId as Place;
use router::{CacheUse, Cause, Decision, Goal, Heed, Judged, Nature, PassedOver, Pin, Pins, Step};
use syntax::class::{Class, Effect, Facts, Kind as StatementKind, find_hint};

use super::{Asked, Course, Kind, Routed, What, route_words};

/// What the sentences are about.
pub(super) struct Sentence<'a> {
    pub(super) asked: &'a Asked<'a>,
    /// How long a statement waits for a server.
    pub(super) wait: Duration,
    /// The name of a server.
    pub(super) name: &'a dyn Fn(Place) -> String,
}

/// What people read about a course.
#[derive(Default)]
pub(super) struct Told {
    pub(super) goal: Option<String>,
    pub(super) server: Option<String>,
    pub(super) why: String,
    pub(super) others: Option<String>,
    pub(super) condition: Option<String>,
    pub(super) otherwise: Option<String>,
    pub(super) leaves: Option<String>,
}

/// What a statement may read that only the primary has, and why a query may write.
pub(super) const FACTS: [(Facts, &str); 17] = [
    (Facts::READS_FOUND_ROWS, "FOUND_ROWS()"),
    (Facts::READS_ROW_COUNT, "ROW_COUNT()"),
    (Facts::READS_WARNINGS, "warnings"),
    (Facts::READS_SYSTEM_VARIABLES, "system variables"),
    (Facts::READS_LAST_INSERT_ID, "LAST_INSERT_ID()"),
    (Facts::READS_CONNECTION_ID, "CONNECTION_ID()"),
    (Facts::READS_LAST_VALUE, "the last value of a sequence"),
    (Facts::READS_SESSION_STATUS, "the status of the session"),
    (Facts::READS_HANDLER, "an open HANDLER"),
    (Facts::SETS_USER_VARIABLES, "it sets user variables"),
    (Facts::SETS_LAST_INSERT_ID, "it sets LAST_INSERT_ID()"),
    (
        Facts::CALLS_UNKNOWN,
        "it calls a function that is not known",
    ),
    (
        Facts::DEPENDS_ON_VERSION,
        "its meaning depends on the version",
    ),
    (Facts::WRITES_FILE, "it writes a file"),
    (Facts::ADVANCES_SEQUENCE, "it takes a value from a sequence"),
    (Facts::SETS_GLOBAL_VARIABLES, "it sets global variables"),
    (Facts::READS_USER_LOCK, "only the primary has user locks"),
];

/// The same for all that has to do with user locks.
const LOCKS: Facts = Facts::TAKES_USER_LOCK
    .with(Facts::FREES_USER_LOCK)
    .with(Facts::FREES_USER_LOCKS);

/// What a statement is by its first words.
pub(super) fn class(judged: &Judged) -> &'static str {
    match judged.class {
        Class::Empty => "empty",
        Class::Query => "query",
        Class::Write => "write",
        Class::Do => "do",
        Class::Call => "call",
        Class::Program => "compound statement",
        Class::Definition => "definition",
        Class::Transaction => "transaction",
        Class::Xa => "xa",
        Class::Set => "set",
        Class::Show => "show",
        Class::Use => "use",
        Class::Prepared => "prepared statement",
        Class::Diagnostics => "diagnostics",
        Class::Lock => "lock tables",
        Class::Handler => "handler",
        Class::Account => "accounts",
        Class::Kill => "kill",
        Class::Admin => "administration",
        Class::Unknown => "unknown",
    }
}

/// What it counts as.
pub(super) fn kind(judged: &Judged) -> &'static str {
    match judged.verdict.kind {
        StatementKind::Read => "read",
        StatementKind::Session => "session",
        StatementKind::Transaction => "transaction",
        StatementKind::LockingRead => "locking read",
        StatementKind::Write => "write",
    }
}

/// The rules that it meets, each with what it decides.
pub(super) fn rules(decisions: &[Decision]) -> Option<String> {
    let rule = |it: &Decision| {
        let says = says(it);
        match says.is_empty() {
            true => format!("{} (decides nothing)", it.name),
            false => format!("{} ({})", it.name, says.join(", ")),
        }
    };
    list(decisions.iter().map(rule))
}

fn says(decision: &Decision) -> Vec<String> {
    let says = &decision.decides;
    let mut words = Vec::new();
    words.extend(says.route.as_ref().map(route_words));
    let lag_max = says.lag_max.map(|it| format!("lag_max={}", seconds(it)));
    words.extend(lag_max);
    let time_max = says.time_max;
    words.extend(time_max.map(|it| format!("max_statement_time={}", seconds(it))));
    words.extend(says.multiplexes.map(|it| format!("multiplex={it}")));
    words.extend(says.refusal.as_ref().map(|it| format!("refuse=\"{it}\"")));
    words.extend(says.cache.as_ref().map(|it| match it {
        CacheUse::Off => "cache=off".to_owned(),
        CacheUse::In(name) => format!("cache={name}"),
    }));
    words.extend(says.logs.map(|it| format!("query_log={it}")));
    words
}

/// Why a session is pinned.
pub(crate) fn pins(pins: Pins) -> Option<String> {
    list(pins.iter().map(pin))
}

fn pin(pin: Pin) -> String {
    format!("{} ({}; {})", pin.name(), pin.reason(), pin.end())
}

fn seconds(time: Duration) -> String {
    time.as_secs_f64().to_string()
}

/// `None` if it is empty.
fn list(items: impl Iterator<Item = String>) -> Option<String> {
    let items: Vec<_> = items.collect();
    (!items.is_empty()).then(|| items.join("; "))
}

impl Sentence<'_> {
    pub(super) fn told(&self, course: &Course) -> Told {
        let why = |why: String| Told {
            why,
            ..Told::default()
        };
        match course {
            Course::Here(reason) => why(format!("the gateway answers it itself: {reason}")),
            Course::Refused(text) => {
                let refuses = |it: &&Decision| it.decides.refusal.is_some();
                let rule = self.asked.decisions.iter().find(refuses);
                let name = rule.map_or("", |it| &*it.name);
                why(format!("the rule `{name}` refuses it: {text}"))
            }
            Course::Lost(server) => Told {
                goal: Some(server.to_string()),
                ..why(format!("{server} is in maintenance: error 1158"))
            },
            Course::Own(server) => Told {
                goal: Some(server.to_string()),
                server: Some(server.to_string()),
                ..why("the client has a connection of its own (multiplex = false)".to_owned())
            },
            Course::Routed(routed) => self.routed(routed),
        }
    }

    fn routed(&self, routed: &Routed) -> Told {
        if routed.explanation.plan.step == Step::Refused {
            return Told {
                why: "a transaction over several servers is open, in which it cannot be carried \
                      out (error 1235)"
                    .to_owned(),
                ..Told::default()
            };
        }
        let name = |place| (self.name)(place);
        let others = routed.choice.others.iter();
        let other =
            |(place, why): &(Place, PassedOver)| format!("{}: {}", name(*place), passed_over(*why));
        Told {
            goal: Some(self.goal(routed)),
            server: routed.choice.server.map(name),
            why: self.why(routed),
            others: list(others.map(other)),
            condition: routed.condition.as_ref().map(|it| condition(it.what)),
            otherwise: routed.condition.as_ref().map(|it| {
                let names = it.otherwise.iter().map(|place| name(*place));
                names.collect::<Vec<_>>().join(", ")
            }),
            leaves: self.leaves(routed),
        }
    }

    fn goal(&self, routed: &Routed) -> String {
        let plan = &routed.explanation.plan;
        let lag = plan.lag_max.filter(|_| plan.goal == Goal::Replica);
        let lag = lag.map(|it| format!(" at most {} s behind", seconds(it)));
        match (plan.goal, routed.kind) {
            (Goal::Held(place), _) => format!("{} alone", (self.name)(place)),
            (_, Kind::Stays | Kind::Moves) => "the session's server".to_owned(),
            (Goal::Primary, Kind::Split) => "the primary".to_owned(),
            (Goal::PrimaryFirst, Kind::Split) => "the primary, else a replica".to_owned(),
            (Goal::Replica, Kind::Split) => {
                format!("a replica{}, else the primary", lag.unwrap_or_default())
            }
        }
    }

    fn why(&self, routed: &Routed) -> String {
        let explanation = &routed.explanation;
        let is_held = matches!(explanation.plan.goal, Goal::Held(_));
        let cause = match routed.kind {
            Kind::Stays | Kind::Moves if !is_held => {
                "read-connection sends all statements of a client to one server".to_owned()
            }
            _ => self.cause(routed),
        };
        let mut parts = vec![cause];
        parts.extend(self.taken(routed));
        if explanation.hint == Heed::Ignored {
            parts.push("its hint is not followed".to_owned());
        }
        if explanation.rule == Heed::Ignored {
            parts.push("the route of its rule is not followed".to_owned());
        }
        parts.join("; ")
    }

    fn cause(&self, routed: &Routed) -> String {
        let name = |place| (self.name)(place);
        match routed.explanation.cause {
            Cause::Transaction(at) => format!("the session's transaction is open on {}", name(at)),
            Cause::Pinned(at, pins) => {
                let reasons = pins.iter().map(Pin::reason).collect::<Vec<_>>();
                format!(
                    "the session is pinned to {}: {}",
                    name(at),
                    reasons.join(", ")
                )
            }
            Cause::LastStatement(at) => {
                format!(
                    "it reads of the statement before, which {} has answered",
                    name(at)
                )
            }
            Cause::NoAutocommit => {
                "autocommit is off: a read begins a transaction that may write".to_owned()
            }
            Cause::Statement(nature) => self.nature(nature),
            Cause::Hint => {
                let hint = find_hint(self.asked.text).and_then(Result::ok);
                let server = hint.and_then(|it| it.server);
                match (server, routed.explanation.plan.goal) {
                    (Some(server), _) => format!("a hint says server={server}"),
                    (None, Goal::Replica) => "a hint says route=replica".to_owned(),
                    (None, _) => "a hint says route=primary".to_owned(),
                }
            }
            Cause::Rule => {
                let mut decisions = self.asked.decisions.iter();
                let routes = |it: &Decision| it.decides.route.as_ref().map(route_words);
                let routing = decisions.clone().find_map(|it| Some((it, routes(it)?)));
                // A session that keeps its connection has one to the primary.
                let keeping = decisions.find(|it| it.decides.multiplexes == Some(false));
                let keeping = keeping.map(|it| (it, "multiplex=false".to_owned()));
                let (rule, words) = routing.or(keeping).expect("a rule has decided it");
                format!("the rule `{}` says {words}", rule.name)
            }
        }
    }

    fn nature(&self, nature: Nature) -> String {
        let facts = |facts: Facts| {
            let known = FACTS.iter().filter(|(fact, _)| facts.has(*fact));
            let mut words: Vec<_> = known.map(|(_, words)| *words).collect();
            if facts.has_any(LOCKS) {
                words.push("it takes or frees user locks");
            }
            words.join(", ")
        };
        let words = match nature {
            Nature::Read => "a read",
            Nature::ReadOnlyTransaction => "a transaction that may not write counts as a read",
            Nature::ReadOfServer => "a read of what each server has of its own",
            Nature::Session => "it changes the session alone, on each server alike",
            Nature::SessionOfOne => "it changes the session as another server would not",
            Nature::ReadOfPrimary(what) => {
                return format!("a read that replicas do not answer alike: {}", facts(what));
            }
            Nature::LockingRead => "it locks the rows that it reads",
            Nature::Transaction => match self.asked.judged.effect {
                Effect::Begin(_) => "it begins a transaction that may write",
                _ => "it is about a transaction",
            },
            Nature::Write(what) if what.is_empty() => "a write",
            Nature::Write(what) => {
                return format!("a query that counts as a write: {}", facts(what));
            }
            Nature::Several => "several statements in a text count as a write",
            Nature::NotUnderstood => "not understood: counts as a write",
        };
        words.to_owned()
    }

    /// Why the server of a goal is the one that it is.
    fn taken(&self, routed: &Routed) -> Option<String> {
        let plan = &routed.explanation.plan;
        let Some(server) = routed.choice.server else {
            return Some(self.nowhere(routed));
        };
        let server_name = (self.name)(server);
        let is_primary = routed.choice.is_primary;
        Some(match (plan.goal, routed.kind) {
            (Goal::Held(_), _) if plan.step == Step::Joins => {
                format!("the transaction gets a part on {server_name}")
            }
            (Goal::Held(_), _) => return None,
            (_, Kind::Stays) => format!("{server_name} is this session's"),
            (_, Kind::Moves) => {
                format!("{server_name} is preferred, or has the fewest sessions")
            }
            (Goal::Primary, Kind::Split) => format!("{server_name} is the primary"),
            (Goal::PrimaryFirst, Kind::Split) if is_primary => {
                format!("{server_name} is the primary")
            }
            (Goal::PrimaryFirst, Kind::Split) => {
                format!("there is no primary, so {server_name} answers")
            }
            (Goal::Replica, Kind::Split) => Self::reader(routed, &server_name),
        })
    }

    fn reader(routed: &Routed, server: &str) -> String {
        let others = &routed.choice.others;
        let is_behind = others.iter().any(|(_, it)| *it == PassedOver::Behind);
        let is_busier = others.iter().any(|(_, it)| *it == PassedOver::Busier);
        let written = routed.written.as_deref();
        let what = match written {
            Some(position) => format!("what it has to see ({position})"),
            None => "what it has to see".to_owned(),
        };
        match routed.condition.as_ref().map(|it| it.what) {
            Some(What::Wait(limit)) => {
                let limit = seconds(limit);
                return format!("{server} waits for {what} for at most {limit} s");
            }
            Some(What::Position) => {
                return format!(
                    "where its write is has not been told: the primary is asked first, and \
                     {server} is taken if it has that"
                );
            }
            Some(What::ResponseTime) | None => {}
        }
        match (routed.choice.is_primary, is_behind) {
            (true, true) => format!("no replica is known to have {what} yet, so {server} answers"),
            (true, false) => format!("no replica can be asked, so {server} answers"),
            (false, _) if is_busier => {
                format!("replicas serve reads, and {server} has the least to do")
            }
            (false, _) => {
                format!("replicas serve reads, and {server} is the one that can be asked")
            }
        }
    }

    /// What happens if no server can be asked.
    fn nowhere(&self, routed: &Routed) -> String {
        match routed.explanation.plan.goal {
            Goal::Held(place) => {
                format!("{} cannot be used: error 1158", (self.name)(place))
            }
            Goal::Primary | Goal::PrimaryFirst | Goal::Replica => {
                let wait = seconds(self.wait);
                format!("no server can be asked: it waits for up to {wait} s, then error 1429")
            }
        }
    }

    fn leaves(&self, routed: &Routed) -> Option<String> {
        let (plan, leaves) = (&routed.explanation.plan, &routed.leaves);
        let mut parts = Vec::new();
        match plan.step {
            Step::Commits => parts.push("commits the parts on other servers first".to_owned()),
            Step::RollsBack => parts.push("rolls the parts on other servers back".to_owned()),
            Step::Stays | Step::MayJoin | Step::Joins | Step::Refused => {}
        }
        match plan.effect {
            Effect::Begin(_) | Effect::XaStart => {
                parts.push("a transaction, open on that server until it ends".to_owned());
            }
            Effect::Commit(_) | Effect::Rollback(_) | Effect::XaFinish => {
                parts.push("no open transaction".to_owned());
            }
            _ => {}
        }
        let added = leaves.pins.without(self.asked.pins);
        parts.extend(added.iter().map(|it| format!("the pin {}", pin(it))));
        let lifted = plan.lifts.iter().filter(|it| self.asked.pins.has(*it));
        parts.extend(lifted.map(|it| format!("no pin {} any more", it.name())));
        if plan.is_kept {
            let words = "a command that each later connection of the session runs first";
            parts.push(words.to_owned());
        }
        if leaves.shows_writes {
            parts.push("reads that need a replica with its write".to_owned());
        }
        if leaves.resets {
            parts.push("if it fails, a connection that is reset before others use it".to_owned());
        }
        list(parts.into_iter())
    }
}

fn condition(what: What) -> String {
    match what {
        What::Position => "the position of the primary when the statement comes".to_owned(),
        What::Wait(limit) => {
            let limit = seconds(limit);
            format!("whether the replica gets the write within {limit} s")
        }
        What::ResponseTime => "how long replicas have taken to answer by then".to_owned(),
    }
}

fn passed_over(why: PassedOver) -> String {
    match why {
        PassedOver::Condition(condition) => condition.to_string(),
        PassedOver::Withheld(why) => format!("serves nothing: {why}"),
        PassedOver::NotPrimary => "a replica".to_owned(),
        PassedOver::Primary => "the primary".to_owned(),
        PassedOver::Lag(Some(lag)) => format!("{} s behind", seconds(lag)),
        PassedOver::Lag(None) => "its lag is not known".to_owned(),
        PassedOver::Rank => "of a higher rank".to_owned(),
        PassedOver::Behind => "not known to have what has to be seen".to_owned(),
        PassedOver::Busier => "has more to do, or has done more".to_owned(),
    }
}
