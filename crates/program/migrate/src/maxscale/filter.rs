//! `type=filter`: those that say where statements go become rules of the services that use them.
//! Caches and the query log are translated elsewhere.

use crate::condition::{self, Letters, Origin, Sees};
use crate::known::{Known, known, same};
use crate::note::{Kind, Note};
use crate::output::{Block, Names, texts};

use super::ini::Entry;
use super::service::{Router, Service};
use super::{Configuration, Draft, Renamed, cache, query_log, unit};

/// Most pairs of a pattern and a target that a filter has.
const PAIRS_MAX: usize = 25;

/// The rules of all filters that services use.
pub(super) fn translate(
    configuration: &Configuration<'_>,
    services: &[Service],
    servers: &Renamed,
    names: &mut Names,
    notes: &mut Vec<Note>,
) -> Vec<Block> {
    let mut rules = Vec::new();
    for section in configuration.all("filter") {
        let draft = configuration.draft(section);
        let uses = |it: &&Service| it.filters.contains(&section.name);
        let users: Vec<&Service> = services.iter().filter(uses).collect();
        let module = section.value("module");
        if users.is_empty() {
            notes.extend(draft.leave_out(Kind::LeftOut, "no service uses it"));
        } else if module == Some("namedserverfilter") {
            let named = NamedServer {
                users: &users,
                servers,
                names,
            };
            notes.extend(named.translate(draft, &mut rules));
        } else if ![cache::MODULE, query_log::MODULE]
            .map(Some)
            .contains(&module)
        {
            notes.extend(other(draft));
        }
    }
    for service in services {
        let is_there = |name: &&String| configuration.all("filter").any(|it| it.name == **name);
        for name in service.filters.iter().filter(|it| !is_there(it)) {
            let of_service = configuration
                .all("service")
                .find(|it| it.name == service.section);
            if let Some(section) = of_service {
                let mut draft = configuration.draft(section);
                draft.note_all(Kind::Unknown, format!("there is no filter `{name}`"));
                notes.extend(draft.notes);
            }
        }
    }
    rules
}

/// What becomes of a filter that is no `namedserverfilter`.
fn other(draft: Draft<'_>) -> Vec<Note> {
    let module = draft.section.value("module").unwrap_or_default();
    let (kind, text) = match module {
        "topfilter" => (
            Kind::Differs,
            "`plateau.statements` has what statements cost, by their text, user and database",
        ),
        "tpmfilter" => (
            Kind::LeftOut,
            "transactions are not recorded; `plateau.statements` counts statements, COMMIT among \
             them",
        ),
        "hintfilter" => (
            Kind::Differs,
            "hints are always on, with other words: `/* plateau: route=primary */`, \
             `route=replica`, `server=NAME`, `max_lag=MS` at the begin of a statement. Hints of \
             MaxScale are comments here",
        ),
        "ccrfilter" => (
            Kind::Differs,
            "sessions read what they wrote, without a time or a count: `causal_reads` of the \
             service. Comments `ccr=..` say nothing",
        ),
        "dbfwfilter" => (
            Kind::ToDo,
            "its rules are in a file of their own, which is not read. Write them as sections \
             `rule` with `refuse`; patterns see statements, and columns and functions have no \
             condition of their own",
        ),
        "regexfilter" | "rewritefilter" => (Kind::LeftOut, "statements are not rewritten"),
        "tee" | "mirror" => (Kind::LeftOut, "statements are not copied to other servers"),
        "masking" => (
            Kind::LeftOut,
            "results are not changed: revoke what must not be seen",
        ),
        "maxrows" => (
            Kind::LeftOut,
            "results have no limit; `max_statement_time` of a rule or service limits the time",
        ),
        "throttlefilter" => (
            Kind::LeftOut,
            "sessions have no limit of statements; `max_connections` of a server limits how many \
             run at a time",
        ),
        "optimistictrx" => (
            Kind::LeftOut,
            "a transaction that may write is on the primary; one of START TRANSACTION READ ONLY is \
             on a replica",
        ),
        "psreuse" => (
            Kind::Differs,
            "each PREPARE of a client is one, on each server it needs",
        ),
        "comment" => (Kind::LeftOut, "no comments are added to statements"),
        "luafilter" => (Kind::LeftOut, "no scripts are run"),
        "ldi" | "insertstream" => (Kind::LeftOut, "LOAD DATA goes to the servers as it is"),
        "wcar" | "capture" => (Kind::LeftOut, "statements are not recorded"),
        "binlogfilter" => (Kind::LeftOut, "binary logs are not changed"),
        "nullfilter" => (Kind::LeftOut, "it does nothing"),
        _ => (Kind::Unknown, "there is no filter like this"),
    };
    draft.leave_out(kind, format!("filter `{module}`: {text}"))
}

/// `namedserverfilter`: the first of its patterns that a statement meets says where it goes.
#[derive(Debug)]
struct NamedServer<'a> {
    users: &'a [&'a Service],
    servers: &'a Renamed,
    names: &'a mut Names,
}

/// What all rules of a filter have.
#[derive(Debug)]
pub(super) struct Common {
    services: Vec<String>,
    addresses: Vec<String>,
    users: Vec<String>,
    pub(super) letters: Letters,
}

impl Common {
    /// Whether clients of the services are not told apart.
    pub(super) fn is_of_anybody(&self) -> bool {
        self.users.is_empty() && self.addresses.is_empty()
    }

    pub(super) fn write(&self, block: &mut Block) {
        for (name, values) in [
            ("services", &self.services),
            ("users", &self.users),
            ("addresses", &self.addresses),
        ] {
            if !values.is_empty() {
                block.set(name, texts(values.clone()));
            }
        }
    }
}

/// A pattern, and where the statements go that meet it.
#[derive(Debug)]
struct Pair<'a> {
    matching: &'a Entry,
    target: &'a Entry,
}

impl NamedServer<'_> {
    fn translate(self, mut draft: Draft<'_>, rules: &mut Vec<Block>) -> Vec<Note> {
        let is_split = |it: &&&Service| it.router == Router::ReadWriteSplit;
        let split = self.users.iter().filter(is_split);
        let services: Vec<String> = split.map(|it| it.name.clone()).collect();
        let of_others = "`readconnroute` goes by no hints, so there are no rules for its services";
        if services.is_empty() {
            return draft.leave_out(Kind::Differs, of_others);
        }
        if services.len() < self.users.len() {
            draft.note_all(Kind::Differs, of_others);
        }
        let _ = draft.take(&["module"]);
        let mut made = Vec::new();
        if let Some(common) = common(&mut draft, services) {
            for (place, pair) in pairs(&mut draft).into_iter().enumerate() {
                let wanted = match place {
                    0 => draft.section.name.clone(),
                    _ => format!("{}-{}", draft.section.name, place + 1),
                };
                if let Some(mut block) = rule(&mut draft, self.servers, &common, &pair) {
                    block.set_name(self.names.make(&wanted));
                    made.push(block);
                }
            }
        }
        let mut nowhere = Block::default();
        let notes = draft.finish(&[OF_NAMED_SERVER], made.first_mut().unwrap_or(&mut nowhere));
        rules.extend(made);
        notes
    }
}

/// The conditions of all rules of a filter; `None` if rules cannot have them.
pub(super) fn common(draft: &mut Draft<'_>, services: Vec<String>) -> Option<Common> {
    let mut addresses = Vec::new();
    if let Some(entry) = draft.take(&["source"]) {
        for text in unit::list(&entry.value) {
            match condition::origin(text) {
                Some(Origin::Anywhere) => {}
                Some(Origin::Network(network)) => addresses.push(network),
                None => {
                    let text = "rules know clients by addresses and networks alone: there is no \
                                rule for this filter";
                    draft.note(entry, Kind::ToDo, text);
                    return None;
                }
            }
        }
    }
    let options = draft.text(&["options"]).unwrap_or_default();
    let is_cased = unit::list(options).contains(&"case");
    Some(Common {
        services,
        addresses,
        users: draft
            .text(&["user"])
            .map(str::to_owned)
            .into_iter()
            .collect(),
        letters: match is_cased {
            true => Letters::SameCase,
            false => Letters::AnyCase,
        },
    })
}

/// The pairs of a filter, in the order in which it tries them.
fn pairs<'a>(draft: &mut Draft<'a>) -> Vec<Pair<'a>> {
    let entries = &draft.section.entries;
    let named = |name: &str| entries.iter().find(|it| it.name == name);
    let numbers = (1..=PAIRS_MAX).map(|it| [format!("match{it:02}"), format!("target{it:02}")]);
    let old = ["match", "server"].map(str::to_owned);
    let all = std::iter::once(old).chain(numbers);
    let found = all.filter_map(|[matching, target]| {
        Some(Pair {
            matching: named(&matching)?,
            target: named(&target)?,
        })
    });
    let found: Vec<Pair<'a>> = found.collect();
    for pair in &found {
        draft.mark(pair.matching);
        draft.mark(pair.target);
    }
    found
}

/// A pattern without the slashes around it.
pub(super) fn bare_pattern(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix('/').and_then(|it| it.strip_suffix('/'));
    inner.unwrap_or(text)
}

/// The rule of a pair, without its name.
fn rule(
    draft: &mut Draft<'_>,
    servers: &Renamed,
    common: &Common,
    pair: &Pair<'_>,
) -> Option<Block> {
    let text = bare_pattern(&pair.matching.value);
    let pattern = match condition::pattern(text, Sees::Text, common.letters) {
        Ok(pattern) => pattern,
        Err(reason) => {
            draft.note(
                pair.matching,
                Kind::ToDo,
                format!("there is no rule: {reason}"),
            );
            return None;
        }
    };
    let targets = unit::list(&pair.target.value);
    let (field, value) = match targets.as_slice() {
        ["->master"] => ("route", "primary"),
        ["->slave"] => ("route", "replica"),
        [name] => match servers.get(name) {
            Some(server) => ("server", server),
            None => {
                let text = "there is no rule: it names no server, and rules know no more";
                draft.note(pair.target, Kind::ToDo, text);
                return None;
            }
        },
        _ => {
            let text = "there is no rule: a rule has one server, or `route`";
            draft.note(pair.target, Kind::ToDo, text);
            return None;
        }
    };
    if let Some(differs) = pattern.differs {
        draft.note(pair.matching, Kind::Differs, differs);
    }
    let mut block = Block::default();
    common.write(&mut block);
    block.set("pattern", pattern.text);
    block.set(field, value);
    Some(block)
}

const OF_NAMED_SERVER: &[Known] = &[
    same("options"),
    known("match*", &[], Kind::Unknown, "it has no target"),
    known("target*", &[], Kind::Unknown, "it has no pattern"),
    known("exclude*", &[], Kind::ToDo, "a rule has no exceptions"),
];
