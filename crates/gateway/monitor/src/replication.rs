//! Roles of servers that replicate one from another.
//!
//! The primary takes the writes. It is chosen among the servers that are up and writable
//! (`read_only` and its kin are off) and replicate from no listed server, or only in a circle.
//! A replica that somebody has made writable is so no candidate as long as a thread of its
//! replication works: two servers would take writes. To promote one, its replication is stopped.
//!
//! * The present primary keeps its place as long as it is a candidate. So does the last one that
//!   comes back before another has taken its place.
//! * Among others, the order is: not draining, rank, replicas that follow it, index.
//! * A candidate that is not chosen serves nothing, since its data may differ.
//!
//! A replica serves reads unless a thread of its replication has stopped, here or at a server
//! between it and the primary. Its lag is the largest on its way to the primary: a relay that is
//! behind passes on nothing that its replica could be behind of. A replica that cannot reach its
//! source tells no lag. Then the last one that it told grows with the time, but only while there
//! is a primary: without one no change is made that it could miss.
//!
//! A replica has what it was sent. What it has written itself does not count: the primary may not
//! have that. By MariaDB's sequence numbers alone it would hide that later writes are missing.

use std::time::Duration;

use env::Instant;

use crate::facts::{Access, Stream, Streams};
use crate::gtid::GtidPosition;
use crate::map::{Member, ServerMap};
use crate::notice::Notice;
use crate::rules::Rules;
use crate::state::{Order, Role, ServerId, Serves, Withheld};

/// A replica that was over the limit of lag returns at this part of it, so that one at the limit
/// does not come and go.
const LAG_RETURN_DIVISOR: u32 = 2;

/// Who replicates from whom, as last read. Each list is in the order of the servers.
struct Graph {
    sources: Vec<Vec<Source>>,
}

/// A source of a server.
struct Source {
    /// The server, if it is listed.
    listed: Option<ServerId>,
    /// Whether a thread of the stream works.
    is_active: bool,
}

/// How a server follows the primary.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Course {
    /// What keeps it from doing so.
    stop: Option<Withheld>,
    /// How far it is behind; `None` if that is not known.
    lag: Option<Duration>,
}

/// Gives each server its role.
pub(crate) fn assign(map: &mut ServerMap, rules: &Rules, now: Instant) {
    let graph = Graph::new(map);
    map.split_rounds = 0;
    map.primary = choose_primary(map, &graph);
    for member in &mut map.members {
        remember_lag(member, map.primary, now);
    }
    note_problems(map, &graph);
    let courses = courses(map, &graph, now);
    let primary = map.primary;
    let former = map.former_primary;
    let is_alone = map.members.len() == 1;
    for (member, course) in map.members.iter_mut().zip(courses) {
        if !member.memory.is_usable() {
            continue;
        }
        let id = member.state.id;
        member.state.galera = None;
        member.state.position = position(member, primary);
        if primary == Some(id) {
            member.state.role = Role::Primary;
            member.state.serves = Serves::ReadsAndWrites;
            member.state.lag = Some(Duration::ZERO);
            continue;
        }
        let is_last_hope = is_alone || (primary.is_none() && former == Some(id));
        member.state.lag = course.lag;
        member.state.role = role(member, &graph);
        member.state.complaint = complaint(member);
        member.state.serves = match (member.state.role, course.stop) {
            // Its data is the newest there is.
            (Role::Unknown, Some(Withheld::Standalone)) if is_last_hope => Serves::Reads,
            (_, Some(why)) => Serves::Nothing(why),
            (_, None) => replica_serves(member, primary, rules),
        };
    }
}

/// What a server has of the primary's transactions.
fn position(member: &Member, primary: Option<ServerId>) -> Option<GtidPosition> {
    let facts = member.memory.facts.as_deref()?;
    let follows = primary != Some(member.state.id) && !streams(member).is_empty();
    let replicated = facts.replicated.as_ref().filter(|_| follows);
    replicated.or(facts.position.as_ref()).cloned()
}

fn replica_serves(member: &Member, primary: Option<ServerId>, rules: &Rules) -> Serves {
    let Some(lag) = member.state.lag else {
        // Without a primary there is nothing newer to read.
        return match primary {
            Some(_) => Serves::Nothing(Withheld::LagUnknown),
            None => Serves::Reads,
        };
    };
    let was_lagging = member.state.serves == Serves::Nothing(Withheld::Lagging);
    let limit = match rules.lag_max {
        Some(max) if was_lagging => max / LAG_RETURN_DIVISOR,
        Some(max) => max,
        None => Duration::MAX,
    };
    match lag <= limit {
        true => Serves::Reads,
        false => Serves::Nothing(Withheld::Lagging),
    }
}

fn role(member: &Member, graph: &Graph) -> Role {
    match (streams(member), graph.is_source(member.state.id)) {
        ([], _) => Role::Unknown,
        (_, true) => Role::Relay,
        (_, false) => Role::Replica,
    }
}

fn complaint(member: &Member) -> Option<std::sync::Arc<str>> {
    let error = streams(member).iter().map(|it| it.error.as_str());
    error.filter(|it| !it.is_empty()).map(Into::into).next()
}

/// The streams of a server, as last read.
fn streams(member: &Member) -> &[Stream] {
    match member.memory.facts.as_deref().map(|facts| &facts.streams) {
        Some(Streams::Known(streams)) => streams,
        _ => &[],
    }
}

fn is_writable(member: &Member) -> bool {
    let facts = member.memory.facts.as_ref();
    facts.is_some_and(|facts| facts.access == Access::Writable)
}

fn is_denied(member: &Member) -> bool {
    let facts = member.memory.facts.as_ref();
    facts.is_some_and(|facts| facts.streams == Streams::Denied)
}

fn is_candidate(member: &Member, graph: &Graph) -> bool {
    let id = member.state.id;
    let is_bound = graph.active_sources(id).next().is_some() && !graph.is_in_circle(id);
    member.memory.is_usable() && is_writable(member) && !is_bound
}

fn choose_primary(map: &ServerMap, graph: &Graph) -> Option<ServerId> {
    let candidates = || map.members.iter().filter(|it| is_candidate(it, graph));
    let present = map.primary.or(map.former_primary);
    let keeps = candidates().find(|it| Some(it.state.id) == present);
    if let Some(kept) = keeps {
        return Some(kept.state.id);
    }
    let order = |it: &&Member| {
        let is_draining = it.memory.order == Order::Drain;
        let followers = graph.follower_count(it.state.id, map);
        let rank = it.state.entry.rank;
        (is_draining, rank, std::cmp::Reverse(followers), it.state.id)
    };
    let known = candidates()
        .filter(|it| knows_streams(it))
        .min_by_key(order);
    let chosen = known.or_else(|| {
        // Those that do not tell may be replicas, unless one alone takes writes.
        let mut others = candidates();
        others.next().filter(|_| others.next().is_none())
    });
    chosen.map(|it| it.state.id)
}

/// Whether a server has told its streams, at least once.
fn knows_streams(member: &Member) -> bool {
    let facts = member.memory.facts.as_deref();
    facts.is_some_and(|facts| matches!(facts.streams, Streams::Known(_)))
}

fn note_problems(map: &mut ServerMap, graph: &Graph) {
    for member in &map.members {
        let id = member.state.id;
        if member.memory.down.is_some() {
            continue;
        }
        if map.primary.is_some_and(|it| it != id) && is_candidate(member, graph) {
            // In a circle the second one is meant to be writable.
            if graph.active_sources(id).next().is_none() {
                map.notices.insert(Notice::SecondWritable(id));
            }
        }
        if is_denied(member) {
            map.notices.insert(Notice::Denied(id));
        }
        if graph.of(id).iter().any(|source| source.listed.is_none()) {
            map.notices.insert(Notice::SourceNotListed(id));
        }
    }
}

/// The lag that the server tells; `None` if it tells none, or did not answer.
fn told_lag(member: &Member) -> Option<Duration> {
    // A stream without a lag is the worst.
    let lags = streams(member).iter().map(|it| it.lag_s);
    let lag_s = lags.max_by_key(|lag| lag.unwrap_or(u64::MAX)).flatten()?;
    let is_told = member.memory.failures == 0;
    is_told.then_some(Duration::from_secs(lag_s))
}

/// Takes over the lag that the server tells. While it tells none, the last one stays true as long
/// as there is no primary.
fn remember_lag(member: &mut Member, primary: Option<ServerId>, now: Instant) {
    let told = told_lag(member);
    let read_at = member.memory.facts.as_ref().map(|facts| facts.read_at);
    match (told, read_at, &mut member.memory.lag) {
        (Some(lag), Some(read_at), remembered) => *remembered = Some((lag, read_at)),
        (None, _, Some((_, true_at))) if primary.is_none() => *true_at = now,
        _ => {}
    }
}

/// How each server follows the primary, what its sources lack included.
fn courses(map: &ServerMap, graph: &Graph, now: Instant) -> Vec<Course> {
    let own: Vec<Course> = map
        .members
        .iter()
        .map(|it| own_course(it, map.primary, now))
        .collect();
    let mut courses = own.clone();
    // What a source lacks has reached all behind it after as many passes as there are servers.
    for _ in 0..map.members.len() {
        let next: Vec<Course> = map
            .members
            .iter()
            .zip(&own)
            .map(|(member, own)| {
                let sources = graph.active_sources(member.state.id);
                sources.fold(*own, |course, source| {
                    course.behind(source_course(map, source, &courses))
                })
            })
            .collect();
        if next == courses {
            break;
        }
        courses = next;
    }
    courses
}

/// What a replica of `source` gets of the primary's changes.
fn source_course(map: &ServerMap, source: ServerId, courses: &[Course]) -> Option<Course> {
    let member = map.member(source)?;
    // If the source is down, the lag of its replica grows by itself. A circle ends at the primary.
    if member.memory.down.is_some() || map.primary == Some(source) {
        return None;
    }
    let course = *courses.get(usize::from(source.0))?;
    match course.stop {
        // Without a primary there is nothing that it could lack.
        Some(Withheld::Standalone | Withheld::SecondWritable) if map.primary.is_none() => None,
        _ => Some(course),
    }
}

fn own_course(member: &Member, primary: Option<ServerId>, now: Instant) -> Course {
    let streams = streams(member);
    let is_active = streams.iter().any(Stream::is_active);
    let stop = if primary == Some(member.state.id) {
        None
    } else if is_denied(member) {
        Some(Withheld::Denied)
    } else if is_writable(member) && !is_active {
        Some(Withheld::SecondWritable)
    } else if streams.is_empty() {
        Some(Withheld::Standalone)
    } else if streams.iter().any(Stream::is_broken) {
        Some(Withheld::Broken)
    } else {
        None
    };
    let lag = match primary == Some(member.state.id) {
        true => Some(Duration::ZERO),
        false => told_lag(member).or_else(|| grown_lag(member, now)),
    };
    Course { stop, lag }
}

/// The last lag that was told, and the time since then. Whole seconds: otherwise each round would
/// make another map.
fn grown_lag(member: &Member, now: Instant) -> Option<Duration> {
    let (lag, true_at) = member.memory.lag?;
    let grown = lag + (now - true_at);
    Some(Duration::from_secs(grown.as_secs()))
}

impl Course {
    /// The course of one that follows `source`.
    fn behind(self, source: Option<Course>) -> Course {
        let Some(source) = source else {
            return self;
        };
        Course {
            stop: self.stop.or(source.stop.map(|_| Withheld::BehindBroken)),
            lag: match (self.lag, source.lag) {
                (Some(own), Some(source)) => Some(own.max(source)),
                _ => None,
            },
        }
    }
}

impl Graph {
    fn new(map: &ServerMap) -> Graph {
        let sources = map.members.iter().map(|member| {
            let streams = streams(member).iter();
            streams
                .map(|stream| Source {
                    listed: find_source(map, member.state.id, stream),
                    is_active: stream.is_active(),
                })
                .collect()
        });
        Graph {
            sources: sources.collect(),
        }
    }

    fn of(&self, id: ServerId) -> &[Source] {
        let found = self.sources.get(usize::from(id.0));
        found.map_or(&[], Vec::as_slice)
    }

    fn active_sources(&self, id: ServerId) -> impl Iterator<Item = ServerId> {
        let active = self.of(id).iter().filter(|source| source.is_active);
        active.filter_map(|source| source.listed)
    }

    /// Whether a server replicates from itself, by others between.
    fn is_in_circle(&self, id: ServerId) -> bool {
        let mut is_seen = vec![false; self.sources.len()];
        let mut open: Vec<ServerId> = self.active_sources(id).collect();
        while let Some(next) = open.pop() {
            if next == id {
                return true;
            }
            if let Some(seen) = is_seen.get_mut(usize::from(next.0))
                && !std::mem::replace(seen, true)
            {
                open.extend(self.active_sources(next));
            }
        }
        false
    }

    /// Whether a listed server replicates from `id`.
    fn is_source(&self, id: ServerId) -> bool {
        let sources = self.sources.iter().flatten();
        sources
            .filter(|it| it.is_active)
            .any(|it| it.listed == Some(id))
    }

    /// How many servers that are up replicate from `id`.
    fn follower_count(&self, id: ServerId, map: &ServerMap) -> usize {
        let up = map.members.iter().filter(|it| it.memory.down.is_none());
        up.filter(|it| self.active_sources(it.state.id).any(|source| source == id))
            .count()
    }
}

/// The listed server that a stream comes from: by its number, if only one has it, else by its
/// address.
fn find_source(map: &ServerMap, replica: ServerId, stream: &Stream) -> Option<ServerId> {
    let others = || map.members.iter().filter(|it| it.state.id != replica);
    let mut numbered = others().filter(|it| {
        let number = it.memory.facts.as_ref().map_or(0, |facts| facts.number);
        number != 0 && number == stream.source_number
    });
    let by_number = match (numbered.next(), numbered.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    };
    let by_address = || others().find(|it| stream.source.is(&it.state.entry.address));
    by_number.or_else(by_address).map(|it| it.state.id)
}

#[cfg(test)]
mod tests;
