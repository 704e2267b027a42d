//! From rules of ProxySQL, as they were read, to sections of the settings file.

use crate::cache::CACHES_MAX;
use crate::note::{Kind, Note};
use crate::output::{Block, Names, seconds_of_year, texts};

use super::super::cache::Caches;
use super::super::hostgroup::{Cluster, Target};
use super::super::interface::Service;
use super::super::query_log::HasRules;
use super::super::user::{Link, User};
use super::{Actions, Conditions, End, Query};

/// Most rules of a settings file.
pub(super) const RULES_MAX: usize = 256;

/// How many chains may follow each other.
const CHAIN_MAX: usize = 8;

/// What rules are made of.
#[derive(Debug)]
pub(crate) struct Question<'a, 'b> {
    pub(crate) file: &'b str,
    pub(crate) rows: Vec<Query<'a>>,
    pub(crate) users: &'b [User],
    pub(crate) clusters: &'b [Cluster],
    pub(crate) services: &'b [Service],
}

/// Sections, and what is to be said of them.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) blocks: Vec<Block>,
    pub(crate) notes: Vec<Note>,
    /// The caches that they name.
    pub(crate) caches: Caches,
    /// Whether one of them logs statements.
    pub(crate) has_logging: HasRules,
}

/// A rule as a gateway has it: the first one that says a thing decides it.
#[derive(Debug, Clone)]
struct Decision {
    id: i64,
    conditions: Conditions,
    actions: Actions,
    end: End,
}

/// Writes the rules.
pub(crate) fn translate(question: Question<'_, '_>) -> Answer {
    let Question {
        file,
        mut rows,
        users,
        clusters,
        services,
    } = question;
    let mut decisions = Vec::new();
    expand(
        &mut rows,
        (0, None),
        &Conditions::default(),
        0,
        &mut decisions,
    );
    note_unreached(&mut rows, &decisions);
    end_without_hostgroup(&mut decisions, users);
    let mut writer = Writer {
        clusters,
        services,
        names: Names::default(),
        blocks: Vec::new(),
        caches: Caches::default(),
        has_logging: HasRules::No,
    };
    writer.write_forwards(users);
    let defaults = defaults(users);
    for decision in &decisions {
        let Some(query) = rows.iter_mut().find(|it| it.id == decision.id) else {
            continue;
        };
        if RULES_MAX <= writer.blocks.len() + defaults.len() {
            let text = format!("there is no rule for it: there may be {RULES_MAX}");
            query.row.note_all(Kind::ToDo, text);
            continue;
        }
        let earlier = decisions.iter().take_while(|it| it.id != decision.id);
        note_more(query, decision, earlier);
        writer.write(query, decision, kept_from(decision, &decisions));
    }
    let mut notes: Vec<Note> = rows.into_iter().flat_map(|it| it.row.notes).collect();
    for (hostgroup, named) in defaults {
        if writer.write_default(hostgroup, named).is_some() {
            continue;
        }
        for user in users.iter().filter(|it| it.hostgroup == hostgroup) {
            notes.push(Note {
                file: file.to_owned(),
                line: user.line,
                setting: format!("mysql_users {}: default_hostgroup", user.name),
                kind: Kind::ToDo,
                text: format!(
                    "hostgroup {hostgroup} is no primary, no replicas and no single server: the \
                     user gets what its service does, without a rule"
                ),
            });
        }
    }
    Answer {
        blocks: writer.blocks,
        notes,
        caches: writer.caches,
        has_logging: writer.has_logging,
    }
}

/// Adds the decisions of the rules of a chain, those that count most first. `chain` is its number,
/// and the place of the rule that leads to it.
fn expand(
    rows: &mut [Query<'_>],
    chain: (i64, Option<usize>),
    outer: &Conditions,
    depth: usize,
    decisions: &mut Vec<Decision>,
) {
    let (flag, from) = chain;
    let mut last = Vec::new();
    for place in from.map_or(0, |it| it + 1)..rows.len() {
        let Some(query) = rows.get_mut(place).filter(|it| it.flag_in == flag) else {
            continue;
        };
        let Some(inner) = &query.conditions else {
            continue;
        };
        let Some(conditions) = outer.and(inner) else {
            let text = "there is no rule for it behind one that leads to its chain: a rule has one \
                        value for each condition";
            query.row.note_all(Kind::ToDo, text);
            continue;
        };
        if RULES_MAX <= decisions.len() + last.len() {
            query
                .row
                .note_all(Kind::ToDo, "there are too many rules: this one is left out");
            return;
        }
        let decision = Decision {
            id: query.id,
            conditions: conditions.clone(),
            actions: query.actions.clone(),
            end: query.end,
        };
        let next = query
            .flag_out
            .filter(|it| *it != flag && query.end == End::GoOn);
        match next {
            Some(_) if CHAIN_MAX <= depth => {
                let text = format!("more than {CHAIN_MAX} chains follow each other");
                query.row.note_all(Kind::ToDo, text);
            }
            Some(next) => {
                expand(rows, (next, Some(place)), &conditions, depth + 1, decisions);
                // Rules of the own chain are not looked at any more.
                decisions.push(Decision {
                    end: End::Apply,
                    ..decision
                });
            }
            None if decision.end == End::Apply => decisions.push(decision),
            None => last.push(decision),
        }
    }
    decisions.extend(last.into_iter().rev());
}

/// Names rules of chains that no rule leads to.
fn note_unreached(rows: &mut [Query<'_>], decisions: &[Decision]) {
    for query in rows.iter_mut().filter(|it| it.conditions.is_some()) {
        let is_reached = decisions.iter().any(|it| it.id == query.id);
        if !is_reached && query.row.notes.is_empty() {
            query.row.note_all(
                Kind::LeftOut,
                "no rule that is translated leads to its chain",
            );
        }
    }
}

/// What ends the search without a hostgroup leaves a statement at the default one. Behind it, a
/// rule with a hostgroup would count.
fn end_without_hostgroup(decisions: &mut [Decision], users: &[User]) {
    let default = |user: Option<&str>| {
        let mut theirs = users
            .iter()
            .filter(|it| user.is_none_or(|user| it.name == user));
        let first = theirs.next()?.hostgroup;
        theirs.all(|it| it.hostgroup == first).then_some(first)
    };
    let is_moved = |it: &Decision| it.end == End::GoOn && it.actions.hostgroup.is_some();
    if decisions.iter().any(is_moved) {
        return;
    }
    for it in decisions.iter_mut().filter(|it| it.end == End::Apply) {
        if it.actions.hostgroup.is_none() && it.actions.refusal.is_none() {
            it.actions.hostgroup = default(it.conditions.user.as_deref());
        }
    }
}

/// The default hostgroups, with their users; `None` if all have one.
fn defaults(users: &[User]) -> Vec<(i64, Option<Vec<String>>)> {
    let mut groups: Vec<(i64, Vec<String>)> = Vec::new();
    for user in users {
        match groups
            .iter_mut()
            .find(|(group, _)| *group == user.hostgroup)
        {
            Some((_, names)) => names.push(user.name.clone()),
            None => groups.push((user.hostgroup, vec![user.name.clone()])),
        }
    }
    let is_one = groups.len() == 1;
    let named = groups
        .into_iter()
        .map(|(group, names)| (group, Some(names).filter(|_| !is_one)));
    named.collect()
}

/// What ProxySQL does not do for a statement, since a rule ends the search in front of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Later {
    /// It keeps the result. The rule has no `cache_ttl`.
    Caches,
    Nothing,
}

fn kept_from(decision: &Decision, all: &[Decision]) -> Later {
    let is_kept = |it: &Decision| {
        let is_later = decision.id < it.id;
        is_later && it.actions.cache_ttl.is_some() && it.conditions.may_meet(&decision.conditions)
    };
    let ends = decision.end == End::Apply && decision.actions.cache_ttl.is_none();
    match ends && all.iter().any(is_kept) {
        true => Later::Caches,
        false => Later::Nothing,
    }
}

/// Says what a rule adds here to what earlier ones have said. In ProxySQL these end the search.
fn note_more<'a>(
    query: &mut Query<'_>,
    decision: &Decision,
    earlier: impl Iterator<Item = &'a Decision>,
) {
    let adds = |it: &&Decision| {
        let (own, other) = (&decision.actions, &it.actions);
        let is_more = own.refusal.is_some() && other.refusal.is_none()
            || own.time_max.is_some() && other.time_max.is_none()
            || own.keeps_connection.is_some() && other.keeps_connection.is_none()
            || own.cache_ttl.is_some() && other.cache_ttl.is_none()
            || own.logs.is_some() && other.logs.is_none();
        is_more && it.end == End::Apply && it.conditions.may_meet(&decision.conditions)
    };
    let others: Vec<String> = earlier.filter(adds).map(|it| it.id.to_string()).collect();
    if !others.is_empty() {
        let others = others.join(", ");
        let text = format!(
            "it also holds for statements that it and a rule with `apply` in front of it \
             ({others}) are about: here, a later rule may add what earlier ones do not say"
        );
        query.row.note_all(Kind::Differs, text);
    }
}

impl Conditions {
    /// Those of both; `None` if one condition has two values.
    fn and(&self, inner: &Conditions) -> Option<Conditions> {
        fn one<T: Clone + PartialEq>(outer: &Option<T>, inner: &Option<T>) -> Option<Option<T>> {
            match (outer, inner) {
                (Some(outer), Some(inner)) if outer != inner => None,
                _ => Some(outer.clone().or(inner.clone())),
            }
        }
        Some(Conditions {
            user: one(&self.user, &inner.user)?,
            schema: one(&self.schema, &inner.schema)?,
            network: one(&self.network, &inner.network)?,
            port: one(&self.port, &inner.port)?,
            pattern: one(&self.pattern, &inner.pattern)?,
        })
    }

    /// Whether a statement may meet both, as far as that is easily seen.
    fn may_meet(&self, other: &Conditions) -> bool {
        fn may<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
            one.is_none() || other.is_none() || one == other
        }
        let word = |it: &Conditions| {
            let text = it.pattern.as_deref()?.strip_prefix('^')?;
            let end = text
                .find(|c: char| !c.is_ascii_alphabetic())
                .unwrap_or(text.len());
            let rest = text.get(end..)?;
            let is_whole =
                rest.starts_with(' ') || rest.starts_with("\\s") || rest.starts_with('.');
            Some(text.get(..end)?.to_ascii_lowercase()).filter(|it| is_whole || 5 < it.len())
        };
        may(&self.user, &other.user)
            && may(&self.schema, &other.schema)
            && may(&self.port, &other.port)
            && may(&word(self), &word(other))
    }
}

/// Writes sections.
#[derive(Debug)]
struct Writer<'a> {
    clusters: &'a [Cluster],
    services: &'a [Service],
    names: Names,
    blocks: Vec<Block>,
    caches: Caches,
    has_logging: HasRules,
}

impl Writer<'_> {
    /// Writes what becomes of users whose statements ProxySQL does not read.
    fn write_forwards(&mut self, users: &[User]) {
        for user in users.iter().filter(|it| it.link == Link::Own) {
            let mut block = Block::default();
            block.comment("fast_forward: what these users send is read all the same.");
            block.set_name(self.names.make(&format!("forward-{}", user.name)));
            block.set("users", texts([user.name.clone()]));
            block.set("multiplex", false);
            self.blocks.push(block);
        }
    }

    fn write(&mut self, query: &mut Query<'_>, decision: &Decision, later: Later) {
        let (conditions, actions) = (&decision.conditions, &decision.actions);
        let is_at = |it: &Service| conditions.port.is_none() || it.port == conditions.port;
        let mut services: Vec<&Service> = self.services.iter().filter(|it| is_at(it)).collect();
        if services.is_empty() {
            let text = "no place where clients connect has its proxy_port";
            query.row.note_all(Kind::LeftOut, text);
            return;
        }
        let mut route = None;
        if let Some(hostgroup) = actions.hostgroup {
            let Some((cluster, target)) = self.target(hostgroup) else {
                let text = format!(
                    "there is no rule for it: hostgroup {hostgroup} is no primary, no replicas and \
                     no single server"
                );
                query.row.note_all(Kind::ToDo, text);
                return;
            };
            services.retain(|it| it.cluster == cluster);
            route = Some(target);
        }
        let mut block = Block::default();
        if services.len() < self.services.len() {
            block.set("services", texts(services.iter().map(|it| it.name.clone())));
        }
        set_conditions(&mut block, conditions);
        let mut says = vec![
            set_route(&mut block, route),
            set_actions(&mut block, actions),
        ];
        if !services.is_empty() {
            says.push(match later {
                Later::Caches => {
                    block.set("cache", "off");
                    Says::Something
                }
                Later::Nothing => self.set_cache(&mut block, query, actions),
            });
            says.push(self.set_log(&mut block, actions));
        }
        if !says.contains(&Says::Something) || services.is_empty() {
            if query.row.notes.is_empty() {
                query
                    .row
                    .note_all(Kind::LeftOut, "it says nothing that a gateway could do");
            }
            return;
        }
        if let Some(words) = &actions.comment {
            block.comment(words.as_str());
        }
        for note in &query.row.notes {
            block.comment(note.comment());
        }
        block.set_name(self.names.make(&query.name));
        self.blocks.push(block);
    }

    /// Sets the cache of its results.
    fn set_cache(&mut self, block: &mut Block, query: &mut Query<'_>, actions: &Actions) -> Says {
        let Some(ttl) = actions.cache_ttl else {
            return Says::Nothing;
        };
        let Some(name) = self.caches.name(ttl) else {
            let text = format!("its results are not kept: there may be {CACHES_MAX} caches");
            query.row.note("cache_ttl", Kind::ToDo, text);
            return Says::Nothing;
        };
        block.set("cache", name);
        Says::Something
    }

    /// Sets whether its statements are logged.
    fn set_log(&mut self, block: &mut Block, actions: &Actions) -> Says {
        let Some(logs) = actions.logs else {
            return Says::Nothing;
        };
        if logs {
            self.has_logging = HasRules::Yes;
        }
        block.set("query_log", logs);
        Says::Something
    }

    /// Writes what becomes of statements that no rule sends anywhere; `None` if nothing can be
    /// said of the hostgroup.
    fn write_default(&mut self, hostgroup: i64, users: Option<Vec<String>>) -> Option<()> {
        let (cluster, target) = self.target(hostgroup)?;
        let mut block = Block::default();
        block.comment(format!(
            "As in ProxySQL, what no rule sends elsewhere goes to default_hostgroup {hostgroup}. \
             Without this rule, reads go to replicas by themselves."
        ));
        block.set_name(self.names.make(&format!("default-{hostgroup}")));
        let theirs: Vec<&Service> = self
            .services
            .iter()
            .filter(|it| it.cluster == cluster)
            .collect();
        if theirs.len() < self.services.len() {
            block.set("services", texts(theirs.iter().map(|it| it.name.clone())));
        }
        if let Some(users) = users {
            block.set("users", texts(users));
        }
        if set_route(&mut block, Some(target)) == Says::Something {
            self.blocks.push(block);
        }
        Some(())
    }

    /// The cluster that has a hostgroup, and what that is.
    fn target(&self, hostgroup: i64) -> Option<(usize, Target)> {
        let clusters = self.clusters.iter().enumerate();
        let mut found = clusters.filter_map(|(place, it)| Some((place, it.target(hostgroup)?)));
        found.next()
    }
}

/// Whether a section says anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    Something,
    Nothing,
}

fn set_conditions(block: &mut Block, conditions: &Conditions) {
    for (name, value) in [
        ("users", &conditions.user),
        ("schemas", &conditions.schema),
        ("addresses", &conditions.network),
    ] {
        if let Some(value) = value {
            block.set(name, texts([value.clone()]));
        }
    }
    if let Some(pattern) = &conditions.pattern {
        block.set("pattern", pattern.clone());
    }
}

/// Sets what it says beside its route.
fn set_actions(block: &mut Block, actions: &Actions) -> Says {
    let mut says = Says::Nothing;
    if let Some(refusal) = &actions.refusal {
        block.set("refuse", refusal.clone());
        says = Says::Something;
    }
    if let Some(time) = actions.time_max {
        block.set("max_statement_time", seconds_of_year(time));
        says = Says::Something;
    }
    if actions.keeps_connection.is_some() {
        block.set("multiplex", false);
        says = Says::Something;
    }
    says
}

fn set_route(block: &mut Block, target: Option<Target>) -> Says {
    match target {
        Some(Target::Primary) => block.set("route", "primary"),
        Some(Target::Replica) => block.set("route", "replica"),
        Some(Target::Server(name)) => block.set("server", name),
        Some(Target::Any) | None => return Says::Nothing,
    }
    Says::Something
}
