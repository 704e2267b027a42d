//! [`Filling`]: a query whose reply may be kept, and the copy of that reply while it passes.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use env::Instant;
use link::Onlooker;
use sync::ChangeTime;
use wire::Capabilities;

use crate::budget::{Claim, allocated_bytes};
use crate::cache::Cache;
use crate::names::TableSlot;
use crate::reply::{KeptReply, REPLY_BYTES};
use crate::scope::Scope;
use crate::shelf::{Arrival, Beginning, Miss, Query, kept_bytes};
use crate::tables::Tables;

impl Cache {
    /// Begins to keep the reply to a query with these names, which is sent at `moment`. `None` if
    /// the cache is full and the query was not asked for before, if its key has no room, or if the
    /// cache is emptied just now.
    pub fn fill(
        self: &Arc<Self>,
        query: &Query<'_>,
        (names, moment): (Arc<[TableSlot]>, ChangeTime),
        miss: Miss,
    ) -> Option<Filling> {
        let bytes = kept_bytes(query.key, query.scope, &names);
        let longest = self.options().reply_bytes_max + bytes;
        if miss == Miss::First && !self.budget().has(longest) {
            return None;
        }
        let beginning = self.beginning();
        let claim = beginning.and_then(|_| self.claim(query.hash, bytes));
        let (Some(beginning), Some(claim)) = (beginning, claim) else {
            self.give_up_renewal(query, miss);
            return None;
        };
        let copy = ReplyCopy::new(Arc::clone(self), query.hash, miss);
        Some(Filling {
            cache: Arc::clone(self),
            scope: query.scope.clone(),
            key: query.key.into(),
            hash: query.hash,
            names,
            moment,
            miss,
            beginning,
            claim,
            copy: SharedCopy::new(copy),
        })
    }
}

/// A query whose reply may be kept. If it is dropped, another one may be sent for a newer reply.
#[derive(Debug)]
pub struct Filling {
    cache: Arc<Cache>,
    scope: Scope,
    key: Box<[u8]>,
    hash: u64,
    names: Arc<[TableSlot]>,
    moment: ChangeTime,
    miss: Miss,
    beginning: Beginning,
    /// What [`kept_bytes`] tells of it.
    claim: Claim,
    copy: SharedCopy,
}

impl Filling {
    /// Who is to be shown the reply as it passes.
    pub fn onlooker(&self) -> Box<dyn Onlooker> {
        Box::new(self.copy.clone())
    }

    /// Keeps the reply that has passed, to this command of a client with these capabilities.
    /// Returns `false` if it may not be kept. With `tables`, none of its tables may have changed.
    pub fn keep(
        mut self,
        of: (u8, Capabilities),
        (tables, now): (Option<&Tables>, Instant),
    ) -> bool {
        let Some(reply) = self.copy.finish(of) else {
            return false;
        };
        let is_unchanged = |it: &Tables| it.are_unchanged(&self.names, self.moment);
        if !tables.is_none_or(is_unchanged) {
            return false;
        }
        let budget = Arc::clone(self.cache.shared_budget());
        let arrival = Arrival {
            scope: self.scope.clone(),
            key: std::mem::take(&mut self.key),
            hash: self.hash,
            reply: Arc::new(reply),
            names: Arc::clone(&self.names),
            moment: self.moment,
            now,
            beginning: self.beginning,
            claim: std::mem::replace(&mut self.claim, Claim::none(budget)),
        };
        // What is kept is renewed.
        self.miss = Miss::Again;
        self.cache.keep(arrival)
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        let query = Query {
            scope: &self.scope,
            key: &self.key,
            hash: self.hash,
        };
        self.cache.give_up_renewal(&query, self.miss);
    }
}

/// The packets of a reply while they pass.
#[derive(Debug)]
struct ReplyCopy {
    bytes: Vec<u8>,
    cache: Arc<Cache>,
    hash: u64,
    /// The reply to a query that comes for the first time is kept if there is room.
    miss: Miss,
    /// The memory of `bytes`, and of what it will be. None as long as there is no byte.
    claim: Option<Claim>,
    /// If others were let go for it.
    copying: Option<Claim>,
    /// It is too long, or there was no room.
    is_given_up: bool,
}

impl ReplyCopy {
    fn new(cache: Arc<Cache>, hash: u64, miss: Miss) -> ReplyCopy {
        ReplyCopy {
            bytes: Vec::new(),
            cache,
            hash,
            miss,
            claim: None,
            copying: None,
            is_given_up: false,
        }
    }

    /// Adds what has passed.
    fn add(&mut self, bytes: &[u8]) {
        if self.is_given_up {
            return;
        }
        let wanted = self.bytes.len() + bytes.len();
        let bytes_max = self.cache.options().reply_bytes_max;
        if bytes_max < wanted || !self.make_room(wanted, bytes_max) {
            self.is_given_up = true;
            self.bytes = Vec::new();
            (self.claim, self.copying) = (None, None);
            return;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Makes room for so many bytes. Long ones grow by a quarter.
    fn make_room(&mut self, wanted: usize, bytes_max: usize) -> bool {
        let before = self.bytes.capacity();
        if wanted <= before {
            return true;
        }
        let longer = (before + before / 4).min(bytes_max);
        let capacity = allocated_bytes(wanted.max(longer));
        // Both are there while one is copied to the other.
        let Some(claim) = self.claim_for(capacity) else {
            return false;
        };
        self.bytes.reserve_exact(capacity - self.bytes.len());
        self.claim = Some(claim);
        true
    }

    fn claim_for(&mut self, capacity: usize) -> Option<Claim> {
        let bytes = REPLY_BYTES + capacity;
        let claim = Claim::take(self.cache.shared_budget(), bytes);
        if claim.is_some() || self.miss == Miss::First {
            return claim;
        }
        let (claim, copying) = self.cache.claim_for_copy(self.hash, bytes)?;
        self.copying = Some(copying);
        Some(claim)
    }

    /// The reply, if it is whole and all can be told it.
    fn finish(&mut self, of: (u8, Capabilities)) -> Option<KeptReply> {
        let claim = self.claim.take()?;
        let exact = allocated_bytes(self.bytes.len());
        let shorter = match REPLY_BYTES + exact < claim.bytes() {
            true => Some(self.claim_for(exact)?),
            false => None,
        };
        let bytes = std::mem::take(&mut self.bytes).into_boxed_slice();
        (self.copying, self.is_given_up) = (None, true);
        KeptReply::new(of, bytes, shorter.unwrap_or(claim))
    }
}

/// A copy that is made while the reply passes. Who is shown the reply and who gets the copy share
/// it.
#[derive(Debug, Clone)]
struct SharedCopy(Rc<RefCell<ReplyCopy>>);

impl SharedCopy {
    fn new(copy: ReplyCopy) -> SharedCopy {
        SharedCopy(Rc::new(RefCell::new(copy)))
    }

    /// The reply that has passed, if it is whole and all can be told it.
    fn finish(&self, of: (u8, Capabilities)) -> Option<KeptReply> {
        self.0.borrow_mut().finish(of)
    }
}

impl Onlooker for SharedCopy {
    fn passed(&mut self, bytes: &[u8]) {
        self.0.borrow_mut().add(bytes);
    }
}
