//! [`ServerMap`]: all servers of a service at one moment, and the questions that routers ask.
//!
//! A map is immutable. The judge makes the next one out of it, so it also carries what the judge
//! has to remember of each server. What is remembered is no part of a comparison: a map is
//! published if something has changed that others can see.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use env::Instant;

use crate::facts::Facts;
use crate::gtid::GtidPosition;
use crate::notice::Notice;
use crate::state::{
    Condition, DownReason, Epoch, Order, Role, ServerEntry, ServerId, ServerState, Serves, Withheld,
};

/// See the module's head.
#[derive(Debug, Clone)]
pub struct ServerMap {
    /// In the order of the configuration.
    pub(crate) members: Vec<Member>,
    /// Takes the writes, and may be draining.
    pub(crate) primary: Option<ServerId>,
    /// Took the writes last: it keeps its place if it comes back before another one takes it.
    pub(crate) former_primary: Option<ServerId>,
    /// What is wrong with the servers together.
    pub(crate) notices: BTreeSet<Notice>,
    /// Rounds in succession in which members of one Galera cluster told different memberships.
    pub(crate) split_rounds: u32,
}

/// A server with what is remembered of it.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    /// What others see.
    pub(crate) state: ServerState,
    /// What the next judgement needs.
    pub(crate) memory: Memory,
}

/// What the judge remembers of a server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    /// Why it is down, if it is.
    pub(crate) down: Option<DownReason>,
    /// What an operator has ordered.
    pub(crate) order: Order,
    /// Failed checks in succession.
    pub(crate) failures: u32,
    /// What it said last.
    pub(crate) facts: Option<Arc<Facts>>,
    /// The last lag that it told, and when that was true.
    pub(crate) lag: Option<(Duration, Instant)>,
    /// Share of the last interval in which Galera's flow control held it, in thousandths.
    pub(crate) paused_permille: u16,
}

impl Memory {
    /// Whether it answers and an operator has not taken it out.
    pub(crate) fn is_usable(&self) -> bool {
        self.down.is_none() && self.order != Order::Maintenance
    }

    pub(crate) fn condition(&self) -> Condition {
        match (self.order, self.down) {
            (Order::Maintenance, _) => Condition::Maintenance,
            (_, Some(reason)) => Condition::Down(reason),
            (Order::Drain, None) => Condition::Draining,
            (Order::Up, None) => Condition::Up,
        }
    }
}

/// Most servers of a map; [`ServerId`] has room for more.
pub const SERVERS_MAX: usize = 1024;

impl ServerMap {
    /// The map before the first check. What `before`, the maps of an older configuration, know of
    /// servers of the same name is kept; the epoch of one with another address rises.
    ///
    /// # Panics
    /// If there are more than [`SERVERS_MAX`] servers: the configuration refuses them.
    pub fn new(entries: Vec<ServerEntry>, before: &[&ServerMap]) -> ServerMap {
        assert!(
            entries.len() <= SERVERS_MAX,
            "the configuration has checked it"
        );
        let known = |name: &str| {
            let member = before.iter().find_map(|map| map.member_named(name));
            member.cloned()
        };
        let number = (0..).map(ServerId);
        let members: Vec<Member> = number
            .zip(entries)
            .map(|(id, entry)| match known(&entry.name) {
                Some(known) => known.in_place(id, entry),
                None => Member::new(id, entry),
            })
            .collect();
        let mut map = ServerMap {
            members,
            primary: None,
            former_primary: None,
            notices: BTreeSet::new(),
            split_rounds: 0,
        };
        let moved = |before: &ServerMap, id: Option<ServerId>| {
            let name = &before.server(id?)?.entry.name;
            map.member_named(name).map(|member| member.state.id)
        };
        let primary = before.iter().find_map(|it| moved(it, it.primary));
        let former = before.iter().find_map(|it| moved(it, it.former_primary));
        (map.primary, map.former_primary) = (primary, former);
        map
    }

    /// All servers, in the order of the configuration.
    pub fn servers(&self) -> impl Iterator<Item = &ServerState> {
        self.members.iter().map(|member| &member.state)
    }

    /// A server.
    pub fn server(&self, id: ServerId) -> Option<&ServerState> {
        self.members.get(usize::from(id.0)).map(|it| &it.state)
    }

    /// What is wrong with the servers together.
    pub fn notices(&self) -> impl Iterator<Item = &Notice> {
        self.notices.iter()
    }

    /// Where writes may begin.
    pub fn primary(&self) -> Option<&ServerState> {
        let found = self.server(self.primary?)?;
        found.serves_writes().then_some(found)
    }

    /// Where reads may begin: all but the primary that are up, known to be behind by `lag_max` at
    /// most, and of the best rank among these.
    pub fn replicas(&self, lag_max: Option<Duration>) -> impl Iterator<Item = &ServerState> {
        let may_read = move |it: &&ServerState| {
            let is_near = lag_max.is_none_or(|max| it.lag.is_some_and(|lag| lag <= max));
            it.serves == Serves::Reads && it.serves_reads() && is_near
        };
        let best = self
            .servers()
            .filter(may_read)
            .map(|it| it.entry.rank)
            .min();
        let is_best = move |it: &&ServerState| Some(it.entry.rank) == best;
        self.servers().filter(may_read).filter(is_best)
    }

    /// Whether a server is known to have applied `wanted`. What it has applied since the last check
    /// is not known.
    pub fn has_applied(&self, id: ServerId, wanted: &GtidPosition) -> bool {
        let position = self.server(id).and_then(|it| it.position.as_ref());
        position.is_some_and(|position| position.covers(wanted))
    }

    /// Whether others would see no difference.
    pub fn looks_like(&self, other: &ServerMap) -> bool {
        self.primary == other.primary
            && self.notices == other.notices
            && self.servers().eq(other.servers())
    }

    pub(crate) fn member_mut(&mut self, id: ServerId) -> Option<&mut Member> {
        self.members.get_mut(usize::from(id.0))
    }

    pub(crate) fn member(&self, id: ServerId) -> Option<&Member> {
        self.members.get(usize::from(id.0))
    }

    pub(crate) fn member_named(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|it| &*it.state.entry.name == name)
    }
}

impl Member {
    fn new(id: ServerId, entry: ServerEntry) -> Member {
        let memory = Memory {
            down: Some(DownReason::NotChecked),
            ..Memory::default()
        };
        let state = ServerState {
            id,
            entry,
            role: Role::Unknown,
            order: memory.order,
            down: memory.down,
            condition: memory.condition(),
            serves: Serves::Nothing(Withheld::Down),
            lag: None,
            position: None,
            version: None,
            epoch: Epoch::default(),
            galera: None,
            complaint: None,
        };
        Member { state, memory }
    }

    /// Shows what is remembered of its condition.
    pub(crate) fn note_memory(&mut self) {
        self.state.order = self.memory.order;
        self.state.down = self.memory.down;
        self.state.condition = self.memory.condition();
    }

    /// The same server in another configuration.
    fn in_place(self, id: ServerId, entry: ServerEntry) -> Member {
        if self.state.entry.address == entry.address {
            let state = ServerState {
                id,
                entry,
                ..self.state
            };
            return Member { state, ..self };
        }
        let mut fresh = Member::new(id, entry);
        fresh.memory.order = self.memory.order;
        fresh.note_memory();
        fresh.state.epoch = Epoch(self.state.epoch.0 + 1);
        fresh
    }
}
