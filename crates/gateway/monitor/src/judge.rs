//! The judgement of a round: a map and what the checks have read become the next map.
//!
//! It does no I/O and reads no clock. Each observation is first taken into what is remembered of
//! its server: whether it is down, whether it was restarted. Then [`crate::replication`] or
//! [`crate::galera`] gives each server its role, and the difference of both maps is the list of
//! events.
//!
//! A server was restarted if its uptime has fallen, or has grown by much less than the time that
//! passed. It is another one if its unique id has changed. Its epoch rises in each case.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use env::Instant;

use crate::event::{self, Event};
use crate::facts::{Facts, Failure, Observation, Streams};
use crate::galera;
use crate::map::{Member, ServerMap};
use crate::notice::Notice;
use crate::replication;
use crate::rules::{Kind, Rules};
use crate::state::{DownReason, Epoch, Order, Role, ServerId, Serves, Withheld};

/// The next map, and what changed.
#[derive(Debug)]
pub struct Verdict {
    /// The next map.
    pub map: ServerMap,
    /// What changed, in the order of the servers.
    pub events: Vec<Event>,
}

/// How far an uptime may lag behind the time that passed. It has whole seconds, and a machine's
/// clock may be corrected by a few.
const UPTIME_SLACK: Duration = Duration::from_secs(5);

/// Judges a round. `observations` are in the order of the servers.
pub fn judge(
    before: &ServerMap,
    observations: Vec<Observation>,
    rules: &Rules,
    now: Instant,
) -> Verdict {
    let mut map = before.clone();
    for (member, observation) in map.members.iter_mut().zip(observations) {
        match observation {
            Observation::Read(facts) => take_facts(member, *facts),
            Observation::Failed(failure) => take_failure(member, failure, rules),
        }
    }
    assign(&mut map, rules, now);
    let events = event::between(before, &map);
    Verdict { map, events }
}

/// Carries out what an operator asks for. The servers are judged by what was last read.
pub fn order(
    before: &ServerMap,
    orders: &[(ServerId, Order)],
    rules: &Rules,
    now: Instant,
) -> Verdict {
    let mut map = before.clone();
    for (id, order) in orders {
        if let Some(member) = map.member_mut(*id) {
            member.memory.order = *order;
        }
    }
    assign(&mut map, rules, now);
    let events = event::between(before, &map);
    Verdict { map, events }
}

fn take_failure(member: &mut Member, failure: Failure, rules: &Rules) {
    let memory = &mut member.memory;
    memory.failures = memory.failures.saturating_add(1);
    let counts_at_once = failure.reason == DownReason::Unreachable;
    let is_down = counts_at_once || rules.failures_max <= memory.failures;
    if is_down || memory.down.is_some() {
        memory.down = Some(failure.reason);
        member.state.complaint = Some(failure.error.into());
    }
}

fn take_facts(member: &mut Member, mut facts: Facts) {
    let memory = &mut member.memory;
    if let Some(old) = &memory.facts {
        if facts.streams == Streams::Unanswered {
            facts.streams = old.streams.clone();
        }
        memory.paused_permille = galera::paused_permille(old, &facts);
        if is_another(old, &facts) {
            raise_epoch(member);
        }
    }
    let memory = &mut member.memory;
    memory.down = None;
    memory.failures = 0;
    member.state.complaint = None;
    member.state.version = Some(facts.version.clone());
    member.state.position.clone_from(&facts.position);
    memory.facts = Some(Arc::new(facts));
}

/// Whether it is another server than before, or was restarted in the meantime.
fn is_another(old: &Facts, new: &Facts) -> bool {
    let is_other_server = match (&old.uid, &new.uid) {
        (Some(old), Some(new)) => old != new,
        _ => false,
    };
    let passed = new.read_at - old.read_at;
    let was_restarted = match (old.uptime_s, new.uptime_s) {
        (Some(old), Some(new)) => {
            let at_least = Duration::from_secs(old) + passed;
            new < old || Duration::from_secs(new) + UPTIME_SLACK < at_least
        }
        _ => false,
    };
    is_other_server || was_restarted
}

fn raise_epoch(member: &mut Member) {
    member.state.epoch = Epoch(member.state.epoch.0 + 1);
}

/// Gives each server its role, by what is remembered of it.
fn assign(map: &mut ServerMap, rules: &Rules, now: Instant) {
    if let Some(primary) = map.primary {
        map.former_primary = Some(primary);
    }
    map.notices = same_numbers(map);
    for member in &mut map.members {
        member.note_memory();
        if !member.memory.is_usable() {
            member.state.serves = Serves::Nothing(match member.state.order {
                Order::Maintenance => Withheld::Maintenance,
                Order::Up | Order::Drain => Withheld::Down,
            });
            member.state.lag = None;
            member.state.galera = None;
        }
    }
    match is_galera(map, rules.kind) {
        true => galera::assign(map, rules),
        false => replication::assign(map, rules, now),
    }
    if map.primary.is_none() {
        map.notices.insert(Notice::NoPrimary);
    }
    forget_taken_places(map);
}

/// A server that is down keeps its role, since it may come back, but not one that another server
/// has taken.
fn forget_taken_places(map: &mut ServerMap) {
    let Some(primary) = map.primary else {
        return;
    };
    for member in &mut map.members {
        let is_writer = matches!(member.state.role, Role::Primary | Role::GaleraWriter);
        if is_writer && member.state.id != primary {
            member.state.role = Role::Unknown;
        }
    }
}

/// Whether the servers are a Galera cluster. What those that are down said last counts if none is
/// up.
fn is_galera(map: &ServerMap, kind: Kind) -> bool {
    let has_wsrep = |member: &Member| {
        let facts = member.memory.facts.as_ref();
        facts.is_some_and(|facts| facts.galera.is_some())
    };
    match kind {
        Kind::Galera => true,
        Kind::Replication => false,
        Kind::Auto => {
            let is_up = |member: &&Member| member.memory.down.is_none();
            match map.members.iter().any(|member| is_up(&member)) {
                true => map.members.iter().filter(is_up).any(has_wsrep),
                false => map.members.iter().any(has_wsrep),
            }
        }
    }
}

fn same_numbers(map: &ServerMap) -> BTreeSet<Notice> {
    let numbered: Vec<_> = map
        .members
        .iter()
        .filter(|member| member.memory.down.is_none())
        .filter_map(|member| Some((member.state.id, member.memory.facts.as_ref()?)))
        // Members of a Galera cluster may share one.
        .filter(|(_, facts)| facts.galera.is_none() && facts.number != 0)
        .map(|(id, facts)| (id, facts.number))
        .collect();
    let mut notices = BTreeSet::new();
    for (place, (one, number)) in numbered.iter().enumerate() {
        let others = numbered.iter().skip(place + 1);
        let same = others.filter(|(_, other)| other == number);
        notices.extend(same.map(|(other, _)| Notice::SameNumber(*one, *other)));
    }
    notices
}

#[cfg(test)]
mod tests;
