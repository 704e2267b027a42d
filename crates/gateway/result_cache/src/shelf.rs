//! [`Shelf`]: replies by their queries. The one that was not used for the longest time goes first.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::time::Duration;

use env::Instant;
use sync::ChangeTime;

use crate::budget::{Budget, allocated_bytes};
use crate::doorkeeper::Doorkeeper;
use crate::names::TableSlot;
use crate::reply::KeptReply;
use crate::scope::Scope;

/// How long replies are good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    /// An older one is not found any more.
    pub hard: Option<Duration>,
    /// Once it is older, one query is sent for a newer one, and others get it meanwhile.
    pub soft: Option<Duration>,
}

/// A query, as a cache knows it.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// What decides the answer beside the text.
    pub scope: &'a Scope,
    /// The text, in one form for all texts that mean the same, and its parameters.
    pub key: &'a [u8],
    /// Of both, as the cache hashes them.
    pub(crate) hash: u64,
}

/// A reply that is to be kept.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) scope: Scope,
    pub(crate) key: Box<[u8]>,
    pub(crate) hash: u64,
    pub(crate) reply: Arc<KeptReply>,
    /// Of its query.
    pub(crate) names: Arc<[TableSlot]>,
    /// When its query was sent.
    pub(crate) moment: ChangeTime,
    pub(crate) now: Instant,
}

/// What a cache has for a query.
#[derive(Debug)]
pub enum Lookup {
    /// This reply.
    Reply(Arc<KeptReply>),
    /// Nothing that is good. Who sends the query may keep its reply. One that was void is gone.
    Miss(Miss),
}

/// What a cache knows of a query that has to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Miss {
    /// Nothing, of late. A full cache does not keep its reply.
    First,
    /// It was asked for before.
    Again,
    /// Others get an old reply, until it has brought a newer one.
    Renewal,
}

/// What a query would find, for people who ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Glimpse {
    /// A reply that it would get.
    Reply,
    /// An old one: the query would be sent for a newer one.
    Old,
    /// None.
    Nothing,
}

#[derive(Debug)]
struct Node {
    scope: Scope,
    key: Box<[u8]>,
    hash: u64,
    reply: Arc<KeptReply>,
    names: Arc<[TableSlot]>,
    moment: ChangeTime,
    kept_at: Instant,
    /// A query for a newer one is under way.
    is_renewed: bool,
    newer: u32,
    older: u32,
    /// The next one with this hash.
    twin: u32,
}

/// Stands for no node.
const NONE: u32 = u32::MAX;

/// Memory of a node beside its key and its reply: its places in the list and in the table of
/// hashes, which may both be half empty.
const NODE_BYTES: usize = 2 * (size_of::<Node>() + size_of::<(u64, u32)>() + 1);

/// Memory of a reply beside its bytes.
const REPLY_BYTES: usize = size_of::<KeptReply>() + 2 * size_of::<usize>();

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Shelf {
    nodes: Vec<Node>,
    by_hash: HashMap<u64, u32, BuildHasherDefault<Ready>>,
    newest: u32,
    oldest: u32,
    budget: Arc<Budget>,
    doorkeeper: Doorkeeper,
    pub(crate) counts: Counts,
}

/// What has happened to a cache since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Queries that got a kept reply.
    pub hits: u64,
    /// Queries that found none, or one that was void.
    pub misses: u64,
    /// Of these, those whose reply was void since a table has changed or its time was over.
    pub voids: u64,
    /// Queries that were sent for a newer reply, while others got the old one.
    pub renewals: u64,
    /// Replies that were kept.
    pub kept: u64,
    /// Replies that had to go for others.
    pub evictions: u64,
}

impl Counts {
    /// Adds those of another part.
    pub fn add(&mut self, other: &Counts) {
        self.hits += other.hits;
        self.misses += other.misses;
        self.voids += other.voids;
        self.renewals += other.renewals;
        self.kept += other.kept;
        self.evictions += other.evictions;
    }
}

/// Takes hashes as they are.
#[derive(Debug, Default)]
struct Ready(u64);

impl Hasher for Ready {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only hashes are written")
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

impl Node {
    /// What it is for a query.
    fn glimpse(
        &self,
        lifetime: Lifetime,
        now: Instant,
        is_good: impl FnOnce(&[TableSlot], ChangeTime) -> bool,
    ) -> Glimpse {
        let age = now.since(self.kept_at);
        let is_over = lifetime.hard.is_some_and(|hard| hard <= age);
        if is_over || !is_good(&self.names, self.moment) {
            return Glimpse::Nothing;
        }
        let is_old = lifetime.soft.is_some_and(|soft| soft <= age);
        match is_old && !self.is_renewed {
            true => Glimpse::Old,
            false => Glimpse::Reply,
        }
    }
}

impl Shelf {
    /// A shelf whose doorkeeper has about so many places. Those count against the budget.
    pub(crate) fn new(budget: Arc<Budget>, doorkeeper_places: usize) -> Shelf {
        let doorkeeper = Doorkeeper::new(doorkeeper_places);
        budget.count(doorkeeper.bytes());
        Shelf {
            doorkeeper,
            nodes: Vec::new(),
            by_hash: HashMap::default(),
            newest: NONE,
            oldest: NONE,
            budget,
            counts: Counts::default(),
        }
    }

    /// How many replies are kept.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    fn node(&mut self, place: u32) -> Option<&mut Node> {
        self.nodes.get_mut(usize::try_from(place).ok()?)
    }

    fn place_of(&self, query: &Query<'_>) -> Option<u32> {
        let mut place = *self.by_hash.get(&query.hash)?;
        loop {
            let node = self.nodes.get(usize::try_from(place).ok()?)?;
            if node.scope == *query.scope && *node.key == *query.key {
                return Some(place);
            }
            place = node.twin;
        }
    }

    /// The reply to a query. `is_good` says whether one of these names is good that was read at
    /// that moment.
    pub(crate) fn find(
        &mut self,
        query: &Query<'_>,
        lifetime: Lifetime,
        now: Instant,
        is_good: impl FnOnce(&[TableSlot], ChangeTime) -> bool,
    ) -> Lookup {
        let Some(place) = self.place_of(query) else {
            self.counts.misses += 1;
            return Lookup::Miss(match self.doorkeeper.note(query.hash) {
                true => Miss::Again,
                false => Miss::First,
            });
        };
        let node = self.node(place).expect("it was found there");
        match node.glimpse(lifetime, now, is_good) {
            Glimpse::Nothing => {
                self.remove(place);
                self.counts.misses += 1;
                self.counts.voids += 1;
                self.doorkeeper.note(query.hash);
                Lookup::Miss(Miss::Again)
            }
            Glimpse::Old => {
                node.is_renewed = true;
                self.counts.misses += 1;
                self.counts.renewals += 1;
                Lookup::Miss(Miss::Renewal)
            }
            Glimpse::Reply => {
                let reply = Arc::clone(&node.reply);
                self.counts.hits += 1;
                self.touch(place);
                Lookup::Reply(reply)
            }
        }
    }

    /// What [`Shelf::find`] would find.
    pub(crate) fn glimpse(
        &self,
        query: &Query<'_>,
        lifetime: Lifetime,
        now: Instant,
        is_good: impl FnOnce(&[TableSlot], ChangeTime) -> bool,
    ) -> Glimpse {
        let place = self.place_of(query).and_then(|it| usize::try_from(it).ok());
        let node = place.and_then(|place| self.nodes.get(place));
        node.map_or(Glimpse::Nothing, |it| it.glimpse(lifetime, now, is_good))
    }

    /// The query for a newer reply has brought none: another one may be sent.
    pub(crate) fn give_up_renewal(&mut self, query: &Query<'_>) {
        if let Some(place) = self.place_of(query)
            && let Some(node) = self.node(place)
        {
            node.is_renewed = false;
        }
    }

    /// Keeps a reply in the place of an older one. Returns `false` if there is no room.
    pub(crate) fn keep(&mut self, arrival: Arrival) -> bool {
        let query = Query {
            scope: &arrival.scope,
            key: &arrival.key,
            hash: arrival.hash,
        };
        if let Some(old) = self.place_of(&query) {
            self.remove(old);
        }
        let bytes = kept_bytes(&arrival.key, &arrival.scope, &arrival.names);
        if !self.make_room(bytes) || !self.budget.take(bytes) {
            return false;
        }
        let place = stdx::to_u32(self.nodes.len());
        let twin = self.by_hash.insert(arrival.hash, place).unwrap_or(NONE);
        self.nodes.push(Node {
            scope: arrival.scope,
            key: arrival.key,
            hash: arrival.hash,
            reply: arrival.reply,
            names: arrival.names,
            moment: arrival.moment,
            kept_at: arrival.now,
            is_renewed: false,
            newer: NONE,
            older: NONE,
            twin,
        });
        self.link(place);
        self.counts.kept += 1;
        true
    }

    /// Lets the oldest go until so many bytes are free. Returns `false` if that does not help.
    pub(crate) fn make_room(&mut self, bytes: usize) -> bool {
        while !self.budget.has(bytes) {
            if self.oldest == NONE {
                return false;
            }
            self.remove(self.oldest);
            self.counts.evictions += 1;
        }
        true
    }

    /// Lets all go.
    pub(crate) fn clear(&mut self) {
        while self.oldest != NONE {
            self.remove(self.oldest);
        }
        self.nodes = Vec::new();
        self.by_hash = HashMap::default();
    }

    fn touch(&mut self, place: u32) {
        if self.newest != place {
            self.unlink(place);
            self.link(place);
        }
    }

    /// Makes one the newest.
    fn link(&mut self, place: u32) {
        let before = std::mem::replace(&mut self.newest, place);
        if let Some(node) = self.node(place) {
            (node.newer, node.older) = (NONE, before);
        }
        match self.node(before) {
            Some(node) => node.newer = place,
            None => self.oldest = place,
        }
    }

    fn unlink(&mut self, place: u32) {
        let Some(node) = self.node(place) else {
            return;
        };
        let (newer, older) = (node.newer, node.older);
        match self.node(newer) {
            Some(node) => node.older = older,
            None => self.newest = older,
        }
        match self.node(older) {
            Some(node) => node.newer = newer,
            None => self.oldest = newer,
        }
    }

    fn remove(&mut self, place: u32) {
        self.unlink(place);
        self.forget_hash(place);
        let Ok(index) = usize::try_from(place) else {
            return;
        };
        let node = self.nodes.swap_remove(index);
        let bytes = kept_bytes(&node.key, &node.scope, &node.names);
        self.budget.give(bytes);
        // The last one has taken its place.
        let last = stdx::to_u32(self.nodes.len());
        if last != place {
            self.rename(last, place);
        }
    }

    /// Takes one out of the table of hashes.
    fn forget_hash(&mut self, place: u32) {
        let Some(node) = self.node(place) else {
            return;
        };
        let (hash, twin) = (node.hash, node.twin);
        self.repoint(hash, place, twin);
    }

    /// The node that was at `from` is at `to` now.
    fn rename(&mut self, from: u32, to: u32) {
        let Some(node) = self.node(to) else {
            return;
        };
        let (hash, newer, older) = (node.hash, node.newer, node.older);
        self.repoint(hash, from, to);
        match self.node(newer) {
            Some(node) => node.older = to,
            None => self.newest = to,
        }
        match self.node(older) {
            Some(node) => node.newer = to,
            None => self.oldest = to,
        }
    }

    /// Who pointed to `from` among those of a hash points to `to`.
    fn repoint(&mut self, hash: u64, from: u32, to: u32) {
        let Some(first) = self.by_hash.get(&hash).copied() else {
            return;
        };
        if first == from {
            match to {
                NONE => self.by_hash.remove(&hash),
                to => self.by_hash.insert(hash, to),
            };
            return;
        }
        let mut place = first;
        while let Some(node) = self.node(place) {
            if node.twin == from {
                node.twin = to;
                return;
            }
            place = node.twin;
        }
    }
}

/// What a reply takes of memory beside its bytes, which count for themselves.
fn kept_bytes(key: &[u8], scope: &Scope, names: &[TableSlot]) -> usize {
    // Others may share its scope. Then that counts more than once.
    let shared = scope.bytes() + size_of_val(names);
    NODE_BYTES + REPLY_BYTES + allocated_bytes(key.len()) + shared
}

#[cfg(test)]
mod tests;
