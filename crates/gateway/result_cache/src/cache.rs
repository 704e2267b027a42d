//! [`Cache`]: replies of all sessions of a worker, or of all workers.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use env::Instant;
use foldhash::fast::RandomState;
use sync::atomic::{AtomicU64, Ordering};
use sync::{ChangeTime, Mutex};

use crate::budget::{Budget, Claim};
use crate::flushes::Flushes;
use crate::names::TableSlot;
use crate::scope::Scope;
use crate::shelf::{Arrival, Beginning, Counts, Glimpse, Lifetime, Lookup, Miss, Query, Shelf};
use crate::tables::Tables;

/// Shelves of a cache that several workers use. Each has a lock of its own.
const SHARED_SHELVES: usize = 16;

/// The doorkeepers have a place for so many bytes of the cache: more places than it has replies.
const BYTES_BY_PLACE: usize = 512;

/// A reply may take this part of a cache. So there is room for copies of those that pass, and no
/// single one empties the cache.
pub const REPLY_PART: usize = 8;

/// Replies are let go for copies that have no more than this many of the longest together, or than
/// a [`REPLY_PART`]th of the cache. A copy has a quarter more than its reply, and becomes one of
/// exact length: that is less than three. Others have to do with what is free. So many sessions
/// that ask for one long reply at once, which was void, do not empty the cache for their copies.
const COPIED_REPLIES: usize = 3;

/// What a cache is set to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheOptions {
    /// Most bytes of memory.
    pub bytes_max: usize,
    /// Longer replies are not kept. At most a [`REPLY_PART`]th of `bytes_max`.
    pub reply_bytes_max: usize,
    /// How long replies are good.
    pub lifetime: Lifetime,
}

/// See the module's head. Any worker may use it.
#[derive(Debug)]
pub struct Cache {
    options: CacheOptions,
    shelves: Box<[Mutex<Shelf>]>,
    budget: Arc<Budget>,
    /// Bytes of copies that others were let go for.
    copying: Arc<Budget>,
    flushes: Flushes,
    /// How many replies were kept.
    kept_count: AtomicU64,
    hasher: RandomState,
}

impl Cache {
    /// A cache that one worker uses.
    pub fn of_worker(options: CacheOptions) -> Cache {
        Cache::new(options, 1)
    }

    /// A cache that all workers use.
    pub fn shared(options: CacheOptions) -> Cache {
        Cache::new(options, SHARED_SHELVES)
    }

    fn new(options: CacheOptions, shelf_count: usize) -> Cache {
        let budget = Arc::new(Budget::new(options.bytes_max));
        let places = options.bytes_max / BYTES_BY_PLACE / shelf_count;
        let longest = COPIED_REPLIES.saturating_mul(options.reply_bytes_max);
        let copying_bytes = longest.max(options.bytes_max / REPLY_PART);
        let shelf = |_| Mutex::new(Shelf::new(Arc::clone(&budget), places));
        Cache {
            shelves: (0..shelf_count).map(shelf).collect(),
            options,
            budget,
            copying: Arc::new(Budget::new(copying_bytes)),
            flushes: Flushes::default(),
            kept_count: AtomicU64::new(0),
            hasher: RandomState::default(),
        }
    }

    /// What it is set to.
    pub fn options(&self) -> &CacheOptions {
        &self.options
    }

    /// Its memory.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    pub(crate) fn shared_budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// A query that may be found in it.
    pub fn query<'a>(&self, scope: &'a Scope, key: &'a [u8]) -> Query<'a> {
        let mut hasher = self.hasher.build_hasher();
        scope.hash(&mut hasher);
        hasher.write(key);
        Query {
            scope,
            key,
            hash: hasher.finish(),
        }
    }

    /// The hash of a query picks the shelf by other bits than the place on it.
    fn shelf_index(&self, hash: u64) -> usize {
        let top = usize::try_from(hash >> (u64::BITS - 8)).unwrap_or_default();
        top % self.shelves.len()
    }

    fn shelf(&self, hash: u64) -> &Mutex<Shelf> {
        &self.shelves[self.shelf_index(hash)]
    }

    /// The reply to a query. With `tables`, only one whose tables have not changed.
    pub fn find(&self, query: &Query<'_>, tables: Option<&Tables>, now: Instant) -> Lookup {
        let mut shelf = self.shelf(query.hash).lock();
        shelf.find(query, self.options.lifetime, now, is_good(tables))
    }

    /// What [`Cache::find`] would find. Nothing is counted, and nothing goes.
    pub fn glimpse(&self, query: &Query<'_>, tables: Option<&Tables>, now: Instant) -> Glimpse {
        let shelf = self.shelf(query.hash).lock();
        shelf.glimpse(query, self.options.lifetime, now, is_good(tables))
    }

    /// The query for a newer reply is not sent, or brings none that may be kept.
    pub fn give_up_renewal(&self, query: &Query<'_>, miss: Miss) {
        if miss == Miss::Renewal {
            self.shelf(query.hash).lock().give_up_renewal(query);
        }
    }

    /// Lets replies go until so many bytes are free. Returns `false` if that does not help.
    fn make_room(&self, hash: u64, wanted: usize) -> bool {
        if self.budget.max() < wanted {
            return false;
        }
        // Each shelf in turn, so that none loses what others would have let go later.
        let share = wanted.div_ceil(self.shelves.len());
        let (before, from) = self.shelves.split_at(self.shelf_index(hash));
        loop {
            let mut gone = 0;
            for shelf in from.iter().chain(before) {
                if self.budget.has(wanted) {
                    return true;
                }
                gone += shelf.lock().make_room(wanted, share);
            }
            if gone == 0 {
                return self.budget.has(wanted);
            }
        }
    }

    /// Takes memory, and lets replies go for it.
    pub(crate) fn claim(&self, hash: u64, bytes: usize) -> Option<Claim> {
        let claim = || Claim::take(&self.budget, bytes);
        claim().or_else(|| self.make_room(hash, bytes).then(claim)?)
    }

    /// Takes memory for the copy of a reply, and lets replies go for it. Returns it, and a claim
    /// for as long as the copy is made.
    pub(crate) fn claim_for_copy(&self, hash: u64, bytes: usize) -> Option<(Claim, Claim)> {
        let copying = Claim::take(&self.copying, bytes)?;
        Some((self.claim(hash, bytes)?, copying))
    }

    /// What a reply has to know that begins now. `None` while the cache is emptied.
    pub(crate) fn beginning(&self) -> Option<Beginning> {
        Some(Beginning {
            flushes: self.flushes.count()?,
            kept_count: self.kept_count.load(Ordering::SeqCst),
        })
    }

    /// Keeps a reply. Returns `false` if it may not be kept, or if there is no room.
    pub(crate) fn keep(&self, arrival: Arrival) -> bool {
        let hash = arrival.hash;
        let arrival = match self.keep_at_once(arrival) {
            Ok(is_kept) => return is_kept,
            Err(arrival) => arrival,
        };
        // Others have it all.
        let wanted = self.shelf(hash).lock().growth_bytes();
        self.make_room(hash, wanted) && self.keep_at_once(arrival).unwrap_or(false)
    }

    fn keep_at_once(&self, arrival: Arrival) -> Result<bool, Arrival> {
        let mut shelf = self.shelf(arrival.hash).lock();
        if !self.flushes.are_still(arrival.beginning.flushes) {
            return Ok(false);
        }
        let number = self.kept_count.fetch_add(1, Ordering::SeqCst);
        shelf.keep(arrival, number)
    }

    /// What has happened to it.
    pub fn counts(&self) -> Counts {
        let mut all = Counts::default();
        let shelves = self.shelves.iter();
        shelves.for_each(|shelf| all.add(&shelf.lock().counts));
        all
    }

    /// How many replies it has.
    pub fn len(&self) -> usize {
        self.shelves.iter().map(|it| it.lock().len()).sum()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Lets all replies go. Those under way are not kept.
    pub fn clear(&self) {
        self.flushes.begin();
        self.shelves.iter().for_each(|it| it.lock().clear());
        self.flushes.end();
    }
}

/// Whether a reply of these names is good that was read at that moment.
fn is_good(tables: Option<&Tables>) -> impl FnOnce(&[TableSlot], ChangeTime) -> bool {
    move |names, moment| {
        let is_good = |it: &Tables| it.may_keep(names) && it.are_unchanged(names, moment);
        tables.is_none_or(is_good)
    }
}

#[cfg(test)]
mod tests;
