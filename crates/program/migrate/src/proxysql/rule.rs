//! `mysql_query_rules`: what becomes of statements.
//!
//! ProxySQL goes through its rules in their order. A later one replaces what an earlier one has
//! said, and `apply` ends that. A gateway takes what the first of its rules says. So rules with
//! `apply` stay in their order in front, and the others follow in reverse. A rule with `flagOUT`
//! hands over to a chain: its conditions and those of each rule of the chain are one rule.

use crate::condition::{self, Letters, Origin, Sees};
use crate::known::{Known, differs, known, left_out, same};
use crate::note::{Kind, Note};

use super::File;
use super::row::Row;

mod write;

pub(super) use write::{Question, translate};

/// A rule that is active.
#[derive(Debug)]
pub(super) struct Query<'a> {
    row: Row<'a>,
    /// Its order among all.
    id: i64,
    /// By which the settings file names it.
    name: String,
    flag_in: i64,
    flag_out: Option<i64>,
    end: End,
    /// `None` if a rule of a gateway cannot have them.
    conditions: Option<Conditions>,
    actions: Actions,
}

/// Whether later rules are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Apply,
    GoOn,
}

/// Which statements a rule is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Conditions {
    user: Option<String>,
    schema: Option<String>,
    network: Option<String>,
    port: Option<u16>,
    pattern: Option<String>,
}

/// What a rule says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Actions {
    hostgroup: Option<i64>,
    refusal: Option<String>,
    /// Milliseconds.
    time_max: Option<u64>,
    keeps_connection: Option<()>,
    /// Milliseconds that its result is kept.
    cache_ttl: Option<u64>,
    /// Whether it is logged.
    logs: Option<bool>,
    comment: Option<String>,
}

/// All rules that are active, in their order.
pub(super) fn rows<'a>(file: &File<'a>, notes: &mut Vec<Note>) -> Vec<Query<'a>> {
    let mut queries = Vec::new();
    for (place, mut row) in (0..).zip(file.rows("mysql_query_rules", notes)) {
        let id = row.number(&["rule_id"]).unwrap_or(place);
        row.name_by(&id.to_string());
        if row.boolean("active") == Some(false) {
            row.note_all(Kind::LeftOut, "it is not active");
            notes.extend(row.notes);
            continue;
        }
        let end = match row.boolean("apply") {
            Some(true) => End::Apply,
            _ => End::GoOn,
        };
        let flag_in = row.number(&["flagIN"]).unwrap_or(0);
        let flag_out = row.number(&["flagOUT"]);
        let conditions = conditions(&mut row);
        let actions = actions(&mut row);
        row.judge_rest(KNOWN);
        queries.push(Query {
            row,
            id,
            name: format!("rule-{id}"),
            flag_in,
            flag_out,
            end,
            conditions,
            actions,
        });
    }
    queries.sort_by_key(|it| it.id);
    let last = queries.last().map_or(0, |it| it.id);
    queries.extend(fast_routes(file, last, notes));
    queries
}

/// `mysql_query_rules_fast_routing`. ProxySQL looks there if no rule has ended the search, so they
/// are like rules with `apply` behind all others.
fn fast_routes<'a>(file: &File<'a>, last: i64, notes: &mut Vec<Note>) -> Vec<Query<'a>> {
    let mut routes = Vec::new();
    for (place, mut row) in (1..).zip(file.rows("mysql_query_rules_fast_routing", notes)) {
        let name = format!("fast-{place}");
        row.name_by(&place.to_string());
        let conditions = Conditions {
            user: row.text(&["username"]).map(str::to_owned),
            schema: row.text(&["schemaname"]).map(str::to_owned),
            ..Conditions::default()
        };
        let actions = Actions {
            hostgroup: row.number(&["destination_hostgroup"]),
            comment: row.text(&["comment"]).map(str::to_owned),
            ..Actions::default()
        };
        let flag_in = row.number(&["flagIN"]).unwrap_or(0);
        row.judge_rest(&[]);
        routes.push(Query {
            row,
            id: last.saturating_add(place),
            name,
            flag_in,
            flag_out: None,
            end: End::Apply,
            conditions: Some(conditions),
            actions,
        });
    }
    routes
}

/// Has no rule log anything, because there is no file.
pub(super) fn log_nothing(queries: &mut [Query<'_>]) {
    for query in queries {
        if query.actions.logs.take() == Some(true) {
            let text = "nothing is logged without `eventslog_filename`";
            query.row.note("log", Kind::LeftOut, text);
        }
    }
}

/// The ports that rules name.
pub(super) fn ports(queries: &[Query<'_>]) -> Vec<u16> {
    let all = queries.iter().filter_map(|it| it.conditions.as_ref()?.port);
    all.collect()
}

fn conditions(row: &mut Row<'_>) -> Option<Conditions> {
    let mut conditions = Conditions {
        user: row.text(&["username"]).map(str::to_owned),
        schema: row.text(&["schemaname"]).map(str::to_owned),
        ..Conditions::default()
    };
    let mut reason = None;
    if let Some(address) = row.text(&["client_addr"]) {
        match condition::origin(address) {
            Some(Origin::Anywhere) => {}
            Some(Origin::Network(network)) => conditions.network = Some(network),
            None => reason = Some("its client_addr is no address and no network".to_owned()),
        }
    }
    if let Some(port) = row.number(&["proxy_port"]) {
        conditions.port = u16::try_from(port).ok();
        // Without it the rule would be about all places.
        if conditions.port.is_none() && 0 < port {
            reason = Some(format!("its proxy_port {port} is no port"));
        }
    }
    if row.text(&["proxy_addr"]).is_some() {
        reason = Some("a rule cannot ask for proxy_addr: give a listener its own service".into());
    }
    if row.text(&["digest"]).is_some() {
        let text = "digests are computed in another way: `plateau digest \"SELECT ..\"` shows what \
                    `digests` of a rule takes";
        reason = Some(text.to_owned());
    }
    if row.boolean("negate_match_pattern") == Some(true) {
        reason = Some("a rule cannot have a pattern that statements must not meet".to_owned());
    }
    let letters = match row.text(&["re_modifiers"]) {
        None => Letters::AnyCase,
        Some(modifiers) if modifiers.to_ascii_uppercase().contains("CASELESS") => Letters::AnyCase,
        Some(_) => Letters::SameCase,
    };
    let digest = row.text(&["match_digest"]);
    let text = row.text(&["match_pattern"]);
    let pattern = match (digest, text) {
        (None, None) => None,
        (Some(pattern), None) => Some(("match_digest", pattern, Sees::Digest)),
        (None, Some(pattern)) => Some(("match_pattern", pattern, Sees::Text)),
        (Some(_), Some(_)) => {
            reason = Some("a rule has one pattern".to_owned());
            None
        }
    };
    if let Some((name, pattern, sees)) = pattern {
        match condition::pattern(pattern, sees, letters) {
            Ok(pattern) => {
                if let Some(differs) = pattern.differs {
                    row.note(name, Kind::Differs, differs);
                }
                conditions.pattern = Some(pattern.text);
            }
            Err(error) => reason = reason.or(Some(error)),
        }
    }
    match reason {
        None => Some(conditions),
        Some(reason) => {
            row.note_all(Kind::ToDo, format!("there is no rule for it: {reason}"));
            None
        }
    }
}

fn actions(row: &mut Row<'_>) -> Actions {
    let multiplex = row.number(&["multiplex"]);
    if let Some(1..) = multiplex {
        let text = "what pins a session is seen in its statements and in what servers report: a \
                    rule cannot allow more";
        row.note("multiplex", Kind::Differs, text);
    }
    let actions = Actions {
        hostgroup: row.number(&["destination_hostgroup"]).filter(|it| 0 <= *it),
        refusal: row.text(&["error_msg"]).map(str::to_owned),
        time_max: row.count(&["timeout"]),
        keeps_connection: (multiplex == Some(0)).then_some(()),
        cache_ttl: row.count(&["cache_ttl"]),
        logs: row.boolean("log"),
        comment: row.text(&["comment"]).map(str::to_owned),
    };
    if row.text(&["OK_msg"]).is_some() {
        let text = "statements are not answered by the gateway itself: this one reaches a server";
        row.note("OK_msg", Kind::ToDo, text);
    }
    if row.text(&["replace_pattern"]).is_some() {
        let text = "statements are not rewritten: this one reaches a server as it was sent";
        row.note("replace_pattern", Kind::ToDo, text);
    }
    actions
}

const KNOWN: &[Known] = &[
    known(
        "cache_empty_result",
        &["true"],
        Kind::Differs,
        "results without rows are kept, too",
    ),
    left_out("cache_timeout", "queries that miss at once are all sent"),
    same("reconnect"),
    differs(
        "retries",
        "a read whose reply has not begun is sent once more",
    ),
    left_out("delay", "statements are not delayed"),
    left_out(
        "next_query_flagIN",
        "what follows a statement has no rules of its own",
    ),
    left_out("mirror_*", "statements are not copied to other servers"),
    left_out(
        "sticky_conn",
        "`multiplex = false` of a rule keeps the connection",
    ),
    left_out(
        "gtid_from_hostgroup",
        "`causal_reads = \"session\"` of the service does it for all",
    ),
    left_out("attributes", "rules have no attributes here"),
];
