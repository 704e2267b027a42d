//! [`Cached`]: what a statement has to do with caches of results, and the tables that it names, in
//! words.

use std::sync::Arc;

use monitor::ServerId as Place;
use result_cache::{Changes, Hindrance, TableSlot};
use router::{CacheUse, Decision, NAMES_MAX, NamedTables, Unkept, named_tables};
use smallvec::SmallVec;
use syntax::class::{Facts, telling_calls};

use super::words::FACTS;
use super::{Asked, Course, Routed};

/// Why a cache is not asked for a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unasked {
    /// There is none for it.
    NoCache,
    /// It has a hint.
    Hint,
    /// What it is has its reply not kept.
    Unkept(Unkept),
    /// It reads no table.
    NoTable,
    /// Whether another text means the same is not known.
    NoMeaning,
    /// Its session has a connection of its own.
    OwnConnection,
    /// Its session is pinned.
    Pinned,
    /// A transaction over several servers is open.
    Parts,
    /// The transaction has characteristics of its own.
    OddTransaction,
    /// Which database the session is in, what it has set does not tell.
    Database,
    /// The session's database is one of the server itself.
    ServerDatabase,
    /// The session has set an isolation in which reads see or lock other rows.
    Isolation,
    /// The session may have set the dialect of Oracle.
    Oracle,
    /// The transaction has written.
    Written,
    /// The transaction is open on another server than the primary.
    NotAtPrimary,
    /// Its tables have changed since the transaction began.
    ChangedSince,
    /// The cache follows the primary's binary log, and that is not being read.
    LogUnread,
}

/// What a statement has to do with caches of results.
#[derive(Debug, Clone)]
pub(crate) enum Cached {
    /// No cache is asked.
    No(Unasked),
    /// This one would be.
    Asked {
        /// By which the settings name it.
        name: Arc<str>,
        /// What it has.
        has: Has,
        /// What becomes of the reply that its server sends.
        then: Then,
    },
}

/// What a cache has for a statement now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Has {
    /// That depends on the session, which has not begun.
    Unknown,
    /// The result that the statement gets.
    Result,
    /// One whose time is over, and that is renewed.
    Old,
    /// None.
    Nothing,
    /// The first query of a transaction gets none from a cache.
    First,
}

/// What becomes of the reply to a statement that got none from a cache.
#[derive(Debug, Clone)]
pub(crate) enum Then {
    /// It is kept.
    Kept,
    /// It is kept if it comes from one of these.
    From(SmallVec<[Place; 4]>),
    /// It is not, for this reason.
    Not(Hindrance),
    /// It never is, for this reason, though the operator vouches for it.
    Never(&'static str),
}

/// In words, beside a course. What goes to no server has nothing to do with caches.
pub(super) fn words(asked: &Asked<'_>, course: &Course) -> Option<String> {
    let routed = match course {
        Course::Here(_) | Course::Refused(_) | Course::Lost(_) => return None,
        Course::Own(_) => None,
        Course::Routed(routed) => Some(&**routed),
    };
    Some(match &asked.cached {
        Cached::No(why) => format!("not asked: {}", unasked(*why, asked)),
        Cached::Asked { name, has, then } => {
            let then = || then_words(then, asked, routed);
            match has {
                Has::Result => format!("told: the cache `{name}` has its result"),
                Has::Old => format!(
                    "asked: the cache `{name}` has an old result, and its server is asked for a \
                     newer one (soft_ttl); {}",
                    then()
                ),
                Has::Nothing => format!("asked: the cache `{name}` has no result; {}", then()),
                Has::First => format!(
                    "asked: the first query of a transaction goes to its server; in the cache \
                     `{name}` {}",
                    then()
                ),
                Has::Unknown => format!(
                    "asked: whether the cache `{name}` has a result depends on the session; {}",
                    then()
                ),
            }
        }
    })
}

fn then_words(then: &Then, asked: &Asked<'_>, routed: Option<&Routed>) -> String {
    let server = routed.and_then(|it| it.choice.server);
    let pins = |it: &Routed| !it.leaves.pins.is_empty();
    match then {
        Then::Kept | Then::From(_) if routed.is_some_and(pins) => {
            "none is kept: it pins its session".to_owned()
        }
        Then::Kept => "that of its server is kept".to_owned(),
        Then::From(places) if server.is_none_or(|it| places.contains(&it)) => {
            "that of its server is kept".to_owned()
        }
        Then::From(_) => "that of its server is not kept: it is not known to have all writes \
                          of the gateway's sessions"
            .to_owned(),
        Then::Never(why) => format!("none is kept: {why}"),
        Then::Not(Hindrance::Changing) => {
            "none is kept: a change of its tables is under way, or has ended unseen".to_owned()
        }
        Then::Not(Hindrance::Doubt) => {
            "none is kept: the definitions of tables are not known now. If that lasts, the log of \
             the gateway says why"
                .to_owned()
        }
        Then::Not(Hindrance::Unkept) => {
            let named = named(asked);
            let is_unkept = |name: &&String| {
                let slot = TableSlot::of(name.as_bytes());
                slot.is_some_and(|it| asked.known.is_some_and(|tables| tables.is_unkept(it)))
            };
            let names: Vec<_> = named.names.iter().filter(is_unkept).collect();
            let names: Vec<_> = names.iter().map(|it| format!("`{it}`")).collect();
            format!(
                "none is kept: {} is a view, a sequence, has a virtual column, is stored by \
                 another engine than InnoDB and RocksDB, or is a column of the type TIME",
                names.join(" or ")
            )
        }
    }
}

fn unasked(why: Unasked, asked: &Asked<'_>) -> String {
    let words = match why {
        Unasked::NoCache => {
            let off = |it: &&Decision| matches!(it.decides.cache, Some(CacheUse::Off));
            return match asked.decisions.iter().find(off) {
                Some(rule) => format!("the rule `{}` says cache = \"off\"", rule.name),
                None => "neither its service nor a rule names a cache".to_owned(),
            };
        }
        Unasked::Hint => "it has a hint",
        Unasked::Unkept(why) => return unkept(why, asked),
        Unasked::NoTable => "it reads no table",
        Unasked::NoMeaning => "its text is too long to be compared with others",
        Unasked::OwnConnection => "the session has a connection of its own (multiplex = false)",
        Unasked::Pinned => "the session is pinned",
        Unasked::Parts => "a transaction over several servers is open",
        Unasked::OddTransaction => "SET TRANSACTION has set what this transaction is like",
        Unasked::Database => "the session has come to its database by other means than USE",
        Unasked::ServerDatabase => "the session's database is one of the server itself",
        Unasked::Isolation => "the session has set READ UNCOMMITTED or SERIALIZABLE",
        Unasked::Oracle => "the session has set sql_mode to what is or may be ORACLE",
        Unasked::Written => "the transaction has written",
        Unasked::NotAtPrimary => "the transaction is open on another server than the primary",
        Unasked::LogUnread => "the binary log of the primary is not being followed",
        Unasked::ChangedSince => "its tables have changed since the transaction began",
    };
    words.to_owned()
}

fn unkept(why: Unkept, asked: &Asked<'_>) -> String {
    let words = match why {
        Unkept::NoQuery => "it is no SELECT",
        Unkept::Several => "several statements in a text",
        Unkept::Locks => "it locks the rows that it reads",
        Unkept::OddName => "a name has other letters than those of ASCII",
        Unkept::ManyNames => return format!("it has more than {NAMES_MAX} names"),
        Unkept::Facts(facts) => return of_facts(facts, asked),
    };
    words.to_owned()
}

/// What the answer depends on, or what the query does beyond reading.
const OF_CACHES: [(Facts, &str); 4] = [
    (Facts::NOT_UNDERSTOOD, "it is not understood"),
    (Facts::NO_CACHE, "SQL_NO_CACHE"),
    (Facts::CALCULATES_FOUND_ROWS, "SQL_CALC_FOUND_ROWS"),
    (Facts::READS_USER_VARIABLES, "it reads user variables"),
];

fn of_facts(facts: Facts, asked: &Asked<'_>) -> String {
    let calls = telling_calls(asked.text, asked.mode);
    let mut parts: Vec<String> = Vec::new();
    if !calls.is_empty() {
        let what = match facts.has(Facts::NOT_DETERMINISTIC) {
            true => "its answer depends on more than its tables:",
            false => "what it calls is not known:",
        };
        parts.push(format!("{what} {}", calls.join(", ")));
    }
    let known = OF_CACHES.iter().chain(&FACTS);
    let of_calls = [Facts::CALLS_UNKNOWN, Facts::READS_LAST_INSERT_ID];
    let is_told = |fact: Facts| !calls.is_empty() && of_calls.contains(&fact);
    let known = known.filter(|(fact, _)| facts.has(*fact) && !is_told(*fact));
    parts.extend(known.map(|(_, words)| (*words).to_owned()));
    if parts.is_empty() {
        parts.push("its answer depends on more than its tables".to_owned());
    }
    parts.join(", ")
}

fn named(asked: &Asked<'_>) -> NamedTables {
    named_tables(asked.text, asked.mode, asked.judged)
}

/// The names in a statement, any of which may be a table's, and what it may change. `None` if it
/// has nothing to do with tables.
pub(super) fn tables(asked: &Asked<'_>, course: &Course) -> Option<String> {
    if let Course::Here(_) = course {
        return None;
    }
    let named = named(asked);
    let mut parts = Vec::new();
    if !named.names.is_empty() {
        let shown: Vec<_> = named.names.iter().take(NAMES_MAX).cloned().collect();
        let more = match named.names.len().saturating_sub(NAMES_MAX) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        parts.push(format!("names {}{more}", shown.join(", ")));
    }
    let widened = asked.known.map(|it| it.widened(named.changes));
    parts.extend(match (named.changes, widened) {
        (Changes::Nothing, _) => None,
        (Changes::Tables(_), Some(Changes::AnyTable)) => Some(format!(
            "may change {}, and with it any table",
            named.changed.join(", ")
        )),
        (Changes::Tables(_), _) => Some(format!("may change {}", named.changed.join(", "))),
        (Changes::AnyTable, _) => Some("may change any table".to_owned()),
        (Changes::Anything, _) => Some("may change any table and definition".to_owned()),
    });
    (!parts.is_empty()).then(|| parts.join("; "))
}
