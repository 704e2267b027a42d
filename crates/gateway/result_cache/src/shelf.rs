//! [`Shelf`]: replies by their queries. The one that was not used for the longest time goes first.
//!
//! Nodes lie in [`Pieces`], and so do their buckets. There are as many buckets as
//! nodes or up to twice as many. One more splits one, and one less joins two (W. Litwin, "Linear
//! Hashing", VLDB 1980). So no lock is held while all nodes are sorted again, and memory that
//! replies have left goes to others at once.
//!
//! (S1) The budget has counted the pieces, and of each node what [`kept_bytes`] tells.
//! (S2) A node is in the chain of the bucket that [`bucket_of`] tells, and in the list of uses.

use std::sync::Arc;
use std::time::Duration;

use env::Instant;
use sync::ChangeTime;

use crate::budget::{Budget, COUNTS_BYTES, Claim, allocated_bytes};
use crate::doorkeeper::Doorkeeper;
use crate::flushes::FlushCount;
use crate::names::TableSlot;
use crate::pieces::Pieces;
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
    /// When it was begun.
    pub(crate) beginning: Beginning,
    /// What [`kept_bytes`] tells of it.
    pub(crate) claim: Claim,
}

/// What the cache was when a reply began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Beginning {
    pub(crate) flushes: FlushCount,
    /// How many replies had been kept.
    pub(crate) kept_count: u64,
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
    /// How many replies of the cache were kept before.
    number: u64,
    /// A query for a newer one is under way.
    is_renewed: bool,
    newer: u32,
    older: u32,
    /// The next one in its bucket.
    twin: u32,
}

/// Stands for no node.
const NONE: u32 = u32::MAX;

/// Nodes in a piece are as many as this, or a part of the doorkeeper's places: so an empty piece is
/// little beside what the shelf may take.
const PIECE_NODES_MAX: usize = 64;
const PLACES_BY_PIECE_NODE: usize = 16;

/// Buckets are so small that more of them make a piece: two to this power for each node.
const BUCKETS_SHIFT: u32 = 3;

/// Nodes whose hashes have the low bits in common.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    first: u32,
    /// [`mark`]s of them all. So who looks for another one mostly need not look at any.
    marks: u32,
}

impl Bucket {
    const EMPTY: Bucket = Bucket {
        first: NONE,
        marks: 0,
    };
}

/// Where a hash has the number of its mark: above the bits of its bucket.
const MARK_SHIFT: u32 = 40;

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Shelf {
    nodes: Pieces<Node>,
    buckets: Pieces<Bucket>,
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
        let piece = (doorkeeper_places / PLACES_BY_PIECE_NODE).clamp(1, PIECE_NODES_MAX);
        Shelf {
            doorkeeper,
            nodes: Pieces::new(piece.ilog2()),
            buckets: Pieces::new(piece.ilog2() + BUCKETS_SHIFT),
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
        let bucket = bucket_of(query.hash, self.buckets.len());
        let bucket = self.buckets.get(bucket)?;
        if bucket.marks & mark(query.hash) == 0 {
            return None;
        }
        let mut place = bucket.first;
        loop {
            let node = self.nodes.get(usize::try_from(place).ok()?)?;
            let has_hash = node.hash == query.hash;
            if has_hash && node.scope == *query.scope && *node.key == *query.key {
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

    /// Keeps a reply in the place of an older one. So many others of the cache were kept before.
    /// Returns `false` if the one that is there was kept after this one had begun: that may be
    /// newer.
    ///
    /// # Errors
    /// There is no room on this shelf.
    pub(crate) fn keep(&mut self, arrival: Arrival, number: u64) -> Result<bool, Arrival> {
        let query = Query {
            scope: &arrival.scope,
            key: &arrival.key,
            hash: arrival.hash,
        };
        if let Some(old) = self.place_of(&query) {
            let begun_at = arrival.beginning.kept_count;
            if self.node(old).is_some_and(|old| begun_at <= old.number) {
                return Ok(false);
            }
            self.remove(old);
        }
        // What it needs is another number once a piece has gone with the oldest.
        while !self.budget.take(self.growth_bytes()) {
            if self.let_go() == 0 {
                return Err(arrival);
            }
        }
        if self.buckets.len() == self.nodes.len() {
            self.split();
        }
        let place = stdx::to_u32(self.nodes.len());
        self.nodes.push(Node {
            scope: arrival.scope,
            key: arrival.key,
            hash: arrival.hash,
            reply: arrival.reply,
            names: arrival.names,
            moment: arrival.moment,
            kept_at: arrival.now,
            number,
            is_renewed: false,
            newer: NONE,
            older: NONE,
            twin: NONE,
        });
        arrival.claim.leave();
        self.hang(place);
        self.link(place);
        self.counts.kept += 1;
        Ok(true)
    }

    /// Memory of pieces that one more node takes.
    pub(crate) fn growth_bytes(&self) -> usize {
        let of_buckets = match self.nodes.len() < self.buckets.len() {
            true => 0,
            false => self.buckets.growth_bytes(),
        };
        self.nodes.growth_bytes() + of_buckets
    }

    /// Lets the oldest go until `wanted` bytes are free, or until `share` bytes have gone. Returns
    /// how many have.
    pub(crate) fn make_room(&mut self, wanted: usize, share: usize) -> usize {
        let mut gone = 0;
        while gone < share && !self.budget.has(wanted) && self.oldest != NONE {
            gone += self.let_go();
        }
        gone
    }

    /// Lets the oldest go, for others. Returns the bytes that are free by that, unless a client is
    /// being sent it; 0 if there is none.
    fn let_go(&mut self) -> usize {
        let bytes = self.remove(self.oldest);
        self.counts.evictions += u64::from(bytes != 0);
        bytes
    }

    /// Lets all go.
    pub(crate) fn clear(&mut self) {
        while self.oldest != NONE {
            self.remove(self.oldest);
        }
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

    /// Takes one out. Returns its bytes, 0 if there is none.
    fn remove(&mut self, place: u32) -> usize {
        let before = self.nodes.bytes() + self.buckets.bytes();
        self.unlink(place);
        self.unhang(place);
        let index = usize::try_from(place).ok();
        let Some(node) = index.and_then(|index| self.nodes.swap_remove(index)) else {
            return 0;
        };
        // The last one has taken its place.
        let last = stdx::to_u32(self.nodes.len());
        if last != place {
            self.rename(last, place);
        }
        while 2 * self.nodes.len() < self.buckets.len() {
            self.join();
        }
        let pieces = before - self.nodes.bytes() - self.buckets.bytes();
        let bytes = kept_bytes(&node.key, &node.scope, &node.names) + pieces;
        self.budget.give(bytes);
        bytes + node.reply.memory_bytes()
    }

    /// One more bucket takes its nodes from the one that has them.
    fn split(&mut self) {
        let added = self.buckets.len();
        self.buckets.push(Bucket::EMPTY);
        let Some(bits) = added.checked_ilog2() else {
            return;
        };
        let from = added ^ (1 << bits);
        let from = self.buckets.get_mut(from);
        let nodes = from.map(|from| std::mem::replace(from, Bucket::EMPTY));
        self.hang_all(nodes);
    }

    /// The nodes of the last bucket go to the one that they would be in without it.
    fn join(&mut self) {
        let nodes = self.buckets.pop();
        self.hang_all(nodes);
    }

    /// Puts all nodes that were in a bucket into theirs.
    fn hang_all(&mut self, from: Option<Bucket>) {
        let mut place = from.map_or(NONE, |from| from.first);
        while let Some(node) = self.node(place) {
            let next = node.twin;
            self.hang(place);
            place = next;
        }
    }

    /// Puts a node into its bucket.
    fn hang(&mut self, place: u32) {
        let Some(hash) = self.node(place).map(|node| node.hash) else {
            return;
        };
        let bucket = bucket_of(hash, self.buckets.len());
        let Some(bucket) = self.buckets.get_mut(bucket) else {
            return;
        };
        let twin = std::mem::replace(&mut bucket.first, place);
        bucket.marks |= mark(hash);
        if let Some(node) = self.node(place) {
            node.twin = twin;
        }
    }

    /// Takes a node out of its bucket.
    fn unhang(&mut self, place: u32) {
        if let Some(node) = self.node(place) {
            let (hash, twin) = (node.hash, node.twin);
            self.repoint(hash, place, twin);
            self.mark_again(hash);
        }
    }

    /// A node has left the bucket of this hash.
    fn mark_again(&mut self, hash: u64) {
        let index = bucket_of(hash, self.buckets.len());
        let Some(mut bucket) = self.buckets.get(index).copied() else {
            return;
        };
        bucket.marks = 0;
        let mut place = bucket.first;
        while let Some(node) = self.node(place) {
            bucket.marks |= mark(node.hash);
            place = node.twin;
        }
        if let Some(place) = self.buckets.get_mut(index) {
            *place = bucket;
        }
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

    /// Who pointed to `from` in the bucket of a hash points to `to`.
    fn repoint(&mut self, hash: u64, from: u32, to: u32) {
        let bucket = bucket_of(hash, self.buckets.len());
        let Some(bucket) = self.buckets.get_mut(bucket) else {
            return;
        };
        if bucket.first == from {
            bucket.first = to;
            return;
        }
        let mut place = bucket.first;
        while let Some(node) = self.node(place) {
            if node.twin == from {
                node.twin = to;
                return;
            }
            place = node.twin;
        }
    }
}

/// The bucket of a hash among so many. Its low bits tell it. If there is none of that number yet,
/// its nodes are in the one without the highest bit.
fn bucket_of(hash: u64, count: usize) -> usize {
    let top = count.next_power_of_two();
    let low = usize::try_from(hash & stdx::to_u64(top - 1)).unwrap_or_default();
    match low < count {
        true => low,
        false => low & (top / 2).saturating_sub(1),
    }
}

/// The bit of a hash among the marks of a bucket. Other bits tell its bucket and its shelf.
fn mark(hash: u64) -> u32 {
    1 << ((hash >> MARK_SHIFT) % u64::from(u32::BITS))
}

/// What a kept reply takes of memory beside its node and the reply, which count for themselves.
pub(crate) fn kept_bytes(key: &[u8], scope: &Scope, names: &[TableSlot]) -> usize {
    // Others may share its scope and its names. Then those count more than once.
    let names = allocated_bytes(COUNTS_BYTES + size_of_val(names));
    allocated_bytes(key.len()) + scope.bytes() + names
}

#[cfg(test)]
mod tests;
