//! [`Filling`]: a query whose reply may be kept, and the copy of that reply while it passes.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use env::Instant;
use link::Onlooker;
use sync::ChangeTime;
use wire::Capabilities;

use crate::budget::{Budget, allocated_bytes};
use crate::cache::Cache;
use crate::names::TableSlot;
use crate::reply::KeptReply;
use crate::scope::Scope;
use crate::shelf::{Arrival, Miss, Query};
use crate::tables::Tables;

impl Cache {
    /// Begins to keep the reply to a query with these names, which is sent at `moment`. `None` if
    /// the cache is full, and the query was not asked for before.
    pub fn fill(
        self: &Arc<Self>,
        query: &Query<'_>,
        (names, moment): (Arc<[TableSlot]>, ChangeTime),
        miss: Miss,
    ) -> Option<Filling> {
        // Room for a copy of a reply, which is made while it passes.
        if !self.shared_budget().has(self.options().reply_bytes_max) {
            if miss == Miss::First {
                return None;
            }
            self.make_room(query.hash);
        }
        let budget = Arc::clone(self.shared_budget());
        let copy = ReplyCopy::new(self.options().reply_bytes_max, budget);
        Some(Filling {
            cache: Arc::clone(self),
            scope: query.scope.clone(),
            key: query.key.into(),
            hash: query.hash,
            names,
            moment,
            miss,
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
        let arrival = Arrival {
            scope: self.scope.clone(),
            key: std::mem::take(&mut self.key),
            hash: self.hash,
            reply: Arc::new(reply),
            names: Arc::clone(&self.names),
            moment: self.moment,
            now,
        };
        // What is kept is renewed.
        self.miss = Miss::Again;
        self.cache.shelf(self.hash).lock().keep(arrival)
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
pub(crate) struct ReplyCopy {
    bytes: Vec<u8>,
    /// Longer replies are not kept.
    bytes_max: usize,
    budget: Arc<Budget>,
    counted_bytes: usize,
    /// It is too long, or there was no room.
    is_given_up: bool,
}

impl ReplyCopy {
    pub(crate) fn new(bytes_max: usize, budget: Arc<Budget>) -> ReplyCopy {
        ReplyCopy {
            bytes: Vec::new(),
            bytes_max,
            budget,
            counted_bytes: 0,
            is_given_up: false,
        }
    }

    /// Adds what has passed.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        if self.is_given_up {
            return;
        }
        let wanted = self.bytes.len() + bytes.len();
        if self.bytes_max < wanted || !self.make_room(wanted) {
            self.give_up();
            return;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Makes room for so many bytes. Long ones grow by a quarter.
    fn make_room(&mut self, wanted: usize) -> bool {
        let before = self.bytes.capacity();
        if wanted <= before {
            return true;
        }
        let capacity = allocated_bytes(wanted.max(before + before / 4));
        // Both are there while one is copied to the other.
        if !self.budget.take(capacity) {
            return false;
        }
        self.bytes.reserve_exact(capacity - self.bytes.len());
        self.budget.give(self.counted_bytes);
        self.counted_bytes = capacity;
        true
    }

    fn give_up(&mut self) {
        self.is_given_up = true;
        self.bytes = Vec::new();
        self.budget.give(self.counted_bytes);
        self.counted_bytes = 0;
    }

    /// The reply, if it is whole and all can be told it.
    pub(crate) fn finish(mut self, of: (u8, Capabilities)) -> Option<KeptReply> {
        if self.is_given_up {
            return None;
        }
        let exact = allocated_bytes(self.bytes.len());
        if exact < self.counted_bytes && !self.budget.take(exact) {
            return None;
        }
        let bytes = std::mem::take(&mut self.bytes).into_boxed_slice();
        if exact < self.counted_bytes {
            self.budget.give(self.counted_bytes);
        }
        self.counted_bytes = 0;
        KeptReply::new(of, bytes, (Arc::clone(&self.budget), exact))
    }
}

/// A copy that is made while the reply passes. Who is shown the reply and who gets the copy share
/// it.
#[derive(Debug, Clone)]
pub(crate) struct SharedCopy(Rc<RefCell<ReplyCopy>>);

impl SharedCopy {
    pub(crate) fn new(copy: ReplyCopy) -> SharedCopy {
        SharedCopy(Rc::new(RefCell::new(copy)))
    }

    /// The reply that has passed, if it is whole and all can be told it.
    pub(crate) fn finish(&self, of: (u8, Capabilities)) -> Option<KeptReply> {
        let budget = Arc::clone(&self.0.borrow().budget);
        self.0.replace(ReplyCopy::new(0, budget)).finish(of)
    }
}

impl Onlooker for SharedCopy {
    fn passed(&mut self, bytes: &[u8]) {
        self.0.borrow_mut().add(bytes);
    }
}

impl Drop for ReplyCopy {
    fn drop(&mut self) {
        self.budget.give(self.counted_bytes);
    }
}
