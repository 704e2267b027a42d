//! [`explain`], [`explain_choice`] and [`named_tables`]: where a statement would go and why, and
//! what it reads from and changes, for people who ask.
//!
//! They call what a statement goes by ([`Session::plan`], [`Session::lead`], [`choose`]), and find
//! reasons in the difference that each step makes. So an explanation cannot drift from what
//! happens, and a statement that nobody asks about pays nothing.

use std::borrow::Cow;
use std::collections::HashSet;
use std::time::Duration;

use monitor::{Condition, ServerId, ServerMap, ServerState, Serves, Withheld};
use result_cache::Changes;
use settings::SqlMode;
use syntax::class::{Class, Facts, Hint, HintRoute, Kind, changed_tables, names};

use crate::choice::{Cost, choose, shows};
use crate::guidance::Guidance;
use crate::judge::Judged;
use crate::pins::Pins;
use crate::plan::{Goal, OF_LAST_STATEMENT, OF_PRIMARY, Plan};
use crate::rules::{Route, Ruling};
use crate::session::Session;
use crate::touched::{changes, of_effect};
use crate::written::Written;

/// Where a statement may go, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explanation {
    /// Its way, as it would be planned.
    pub plan: Plan,
    /// What has decided the goal.
    pub cause: Cause,
    /// What became of a hint's server or route.
    pub hint: Heed,
    /// What became of a rule's route.
    pub rule: Heed,
}

/// What decides where a statement may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The open transaction was begun there.
    Transaction(ServerId),
    /// The session is pinned there, for these reasons.
    Pinned(ServerId, Pins),
    /// It reads of the statement before, which was answered there.
    LastStatement(ServerId),
    /// Without autocommit a read begins a transaction, which may write.
    NoAutocommit,
    /// What it is.
    Statement(Nature),
    /// A comment in its text.
    Hint,
    /// A rule.
    Rule,
}

/// What a statement is, as far as its way is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nature {
    /// It only reads.
    Read,
    /// It begins a transaction that may not write.
    ReadOnlyTransaction,
    /// It reads what the primary and each replica have of their own: variables, status.
    ReadOfServer,
    /// It changes the session alone, on each server alike.
    Session,
    /// It changes the session in a way that other servers would not.
    SessionOfOne,
    /// It only reads, and these are what replicas do not have.
    ReadOfPrimary(Facts),
    /// It locks the rows that it reads.
    LockingRead,
    /// It begins, ends or marks a transaction that may write.
    Transaction,
    /// It writes or may write. If it is a query, because of these.
    Write(Facts),
    /// It is several statements.
    Several,
    /// It cannot be told what it does.
    NotUnderstood,
}

/// What became of a hint or a rule that says where a statement goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heed {
    /// There is none.
    Absent,
    /// The statement goes there.
    Followed,
    /// It does not: it is bound elsewhere, or is not known to be a read.
    Ignored,
}

/// The server that would be taken out of a map, and why none of the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// `None` if no server may be asked.
    pub server: Option<ServerId>,
    /// It is the primary.
    pub is_primary: bool,
    /// The other servers of the service, in the order of the map; none if the statement can only
    /// go to one.
    pub others: Vec<(ServerId, PassedOver)>,
}

/// Why a server is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassedOver {
    /// It is not up, or an operator has ordered something.
    Condition(Condition),
    /// It serves nothing.
    Withheld(Withheld),
    /// It is no primary.
    NotPrimary,
    /// It is the primary, and a replica serves the read.
    Primary,
    /// It is behind by this, and that is too much; `None` if it is not known by how much.
    Lag(Option<Duration>),
    /// Another one is preferred.
    Rank,
    /// It is not known to have what the session wrote.
    Behind,
    /// Another one has less to do, or has done less.
    Busier,
}

/// What makes a query count as a write.
const MAY_WRITE: Facts = Facts::CALLS_UNKNOWN
    .with(Facts::DEPENDS_ON_VERSION)
    .with(Facts::WRITES_FILE)
    .with(Facts::ADVANCES_SEQUENCE)
    .with(Facts::SETS_GLOBAL_VARIABLES)
    .with(Facts::TAKES_USER_LOCK)
    .with(Facts::FREES_USER_LOCK)
    .with(Facts::FREES_USER_LOCKS)
    .with(Facts::READS_USER_LOCK);

/// Where a statement of a session would go. It takes what [`Session::plan`] and [`Session::lead`]
/// take, and leaves the session as it is.
pub fn explain(
    session: &Session,
    (text, mode): (&[u8], SqlMode),
    judged: &Judged,
    guidance: &Guidance<'_>,
) -> Explanation {
    let free = session.plan_freely(text, mode, judged);
    let own = session.plan(text, mode, judged);
    let mut hinted = own;
    let hint_alone = Guidance {
        ruling: None,
        ..*guidance
    };
    session.lead(&mut hinted, judged, &hint_alone);
    let mut plan = own;
    session.lead(&mut plan, judged, guidance);
    let cause = if plan.goal != hinted.goal {
        Cause::Rule
    } else if hinted.goal != own.goal {
        Cause::Hint
    } else if let Some(at) = session.open_at() {
        Cause::Transaction(at)
    } else if let Some(at) = session.held_for(&free) {
        Cause::Pinned(at, session.pins())
    } else if own.goal != free.goal {
        Cause::NoAutocommit
    } else if let Goal::Held(at) = own.goal {
        Cause::LastStatement(at)
    } else {
        Cause::Statement(nature(&own, judged))
    };
    let heed = |wanted: Option<Goal>| match wanted {
        None => Heed::Absent,
        Some(goal) if goal == plan.goal => Heed::Followed,
        Some(_) => Heed::Ignored,
    };
    let hint = guidance.hint.and_then(|(hint, at)| hinted_goal(&hint, at));
    let ruling = guidance.ruling.filter(|_| guidance.is_routed);
    let rule = ruling.and_then(|it| ruled_goal(it, guidance.ruled_to));
    Explanation {
        plan,
        cause,
        hint: heed(hint),
        rule: heed(rule),
    }
}

fn hinted_goal(hint: &Hint<'_>, server: Option<ServerId>) -> Option<Goal> {
    match (server, hint.route) {
        (Some(server), _) => Some(Goal::Held(server)),
        (None, Some(HintRoute::Primary)) => Some(Goal::Primary),
        (None, Some(HintRoute::Replica)) => Some(Goal::Replica),
        (None, None) => None,
    }
}

fn ruled_goal(ruling: &Ruling, server: Option<ServerId>) -> Option<Goal> {
    match ruling.route.as_ref()? {
        Route::Primary => Some(Goal::Primary),
        Route::Replica => Some(Goal::Replica),
        Route::Server(_) => server.map(Goal::Held),
    }
}

/// What a statement is whose goal nothing else has decided.
fn nature(plan: &Plan, judged: &Judged) -> Nature {
    let facts = judged.verdict.facts;
    let is_query = matches!(judged.class, Class::Query | Class::Do);
    match (plan.goal, judged.verdict.kind) {
        _ if plan.is_several => Nature::Several,
        (Goal::Replica, Kind::Transaction) => Nature::ReadOnlyTransaction,
        (Goal::Replica, _) => Nature::Read,
        (Goal::PrimaryFirst, Kind::Read) => Nature::ReadOfServer,
        (Goal::PrimaryFirst, _) => Nature::Session,
        (_, Kind::Read) => Nature::ReadOfPrimary(within(facts, OF_PRIMARY.with(OF_LAST_STATEMENT))),
        (_, Kind::Session) => Nature::SessionOfOne,
        (_, Kind::Transaction) => Nature::Transaction,
        (_, Kind::LockingRead) => Nature::LockingRead,
        (_, Kind::Write) if facts.has(Facts::NOT_UNDERSTOOD) => Nature::NotUnderstood,
        (_, Kind::Write) if is_query => Nature::Write(within(facts, MAY_WRITE)),
        (_, Kind::Write) => Nature::Write(Facts::NONE),
    }
}

/// The facts that are in both.
fn within(facts: Facts, others: Facts) -> Facts {
    facts.without(facts.without(others))
}

/// The server for a goal, out of a map, and why none of the others. It takes what [`choose`] takes;
/// no server has just failed.
pub fn explain_choice(
    goal: Goal,
    map: &ServerMap,
    written: &Written,
    lag_max: Option<Duration>,
    cost: impl Fn(ServerId) -> Option<Cost>,
) -> Choice {
    let server = choose(goal, map, written, lag_max, None, &cost);
    let primary = map.primary().map(|it| it.id);
    let is_primary = server.is_some() && server == primary;
    if let Goal::Held(_) = goal {
        return Choice {
            server,
            is_primary,
            others: Vec::new(),
        };
    }
    let is_read = goal == Goal::Replica || goal == Goal::PrimaryFirst && primary.is_none();
    let passed_over = |it: &ServerState| match it.serves {
        _ if it.condition != Condition::Up => PassedOver::Condition(it.condition),
        Serves::Nothing(why) => PassedOver::Withheld(why),
        Serves::ReadsAndWrites => PassedOver::Primary,
        Serves::Reads if !is_read => PassedOver::NotPrimary,
        Serves::Reads if lag_max.is_some_and(|max| it.lag.is_none_or(|lag| max < lag)) => {
            PassedOver::Lag(it.lag)
        }
        Serves::Reads if map.replicas(lag_max).all(|other| other.id != it.id) => PassedOver::Rank,
        Serves::Reads if !shows(map, it.id, written) => PassedOver::Behind,
        Serves::Reads => PassedOver::Busier,
    };
    let all = map.servers();
    let others = all.filter(|it| Some(it.id) != server && cost(it.id).is_some());
    Choice {
        server,
        is_primary,
        others: others.map(|it| (it.id, passed_over(it))).collect(),
    }
}

/// What [`crate::Touched`] says of a text, by the names that stand there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedTables {
    /// All names in the text, each once, of which any may be a table's. None of a text that is not
    /// about tables.
    pub names: Vec<String>,
    /// What it changes.
    pub changes: Changes,
    /// The names of the tables that it changes, if just these are known.
    pub changed: Vec<String>,
}

/// Which tables a text names and may change, for people who ask.
pub fn named_tables(text: &[u8], mode: SqlMode, judged: &Judged) -> NamedTables {
    let changes = changes(text, mode, judged.class, &judged.verdict);
    let changed = match changes {
        Changes::Tables(_) => changed_tables(text, mode).unwrap_or_default(),
        Changes::Nothing | Changes::AnyTable | Changes::Anything => Vec::new(),
    };
    let has_tables = match judged.class {
        Class::Query | Class::Write | Class::Do | Class::Call | Class::Definition => true,
        Class::Program | Class::Lock | Class::Handler => true,
        Class::Empty
        | Class::Transaction
        | Class::Xa
        | Class::Set
        | Class::Show
        | Class::Use
        | Class::Prepared
        | Class::Diagnostics
        | Class::Account
        | Class::Kill
        | Class::Admin
        | Class::Unknown => false,
    };
    NamedTables {
        names: match has_tables {
            true => distinct(names(text, mode)),
            false => Vec::new(),
        },
        changes: changes.and(of_effect(judged.effect)),
        changed: distinct(changed.into_iter()),
    }
}

/// The names, each once, in the order of the text.
fn distinct<'a>(names: impl Iterator<Item = Cow<'a, [u8]>>) -> Vec<String> {
    let mut known = HashSet::new();
    names
        .filter(|it| known.insert(it.clone()))
        .map(|it| String::from_utf8_lossy(&it).into_owned())
        .collect()
}

#[cfg(test)]
mod tests;
