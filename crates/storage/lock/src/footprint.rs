//! How much a transaction has locked, counted as InnoDB counts it: for the choice of a deadlock's
//! victim, and for `INNODB_TRX`.
//!
//! InnoDB has one lock object for all locks of one kind on one page. Names here know no pages, so
//! their number is estimated from the number of locks. InnoDB's object stays until the
//! transaction's end, also once its last lock was released early. A lock that was waited for is an
//! object of its own. Measured with MariaDB 10.11 (`trx_weight` and `trx_lock_structs`).
//!
//! Cost: a transaction seldom has more than four kinds of locks and indexes, and the last one is
//! looked at first. The sum of all is kept up to date, since it is shown after each lock.

use format::IndexId;
use smallvec::SmallVec;

use crate::{LockExtent, LockKind, LockName};

/// Locks of one kind that one lock object of InnoDB stands for: about as many rows as a page has.
const LOCKS_PER_OBJECT: u64 = 128;

/// More parts are not told apart: each further lock of a new kind or index counts as an object.
/// So the search for a part stays short.
const PARTS_MAX: usize = 32;

/// The locks of one transaction, by index and kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Footprint {
    parts: SmallVec<[Part; 4]>,
    /// Objects of all parts, and those beside them.
    object_count: u64,
}

/// The locks of one kind in one index.
#[derive(Debug, Clone, Copy)]
struct Part {
    index: IndexId,
    kind: LockKind,
    /// Locks that are held. May be 0, after early releases.
    count: u64,
}

/// Objects for so many locks of a part, which has one also without a lock.
fn objects(count: u64) -> u64 {
    count.div_ceil(LOCKS_PER_OBJECT).max(1)
}

impl Footprint {
    /// A lock was granted without a wait.
    pub(crate) fn add(&mut self, name: &LockName, kind: LockKind) {
        self.count(name.index(), shared_kind(name, kind));
    }

    /// A record was locked by its writer's id, without a lock in the table.
    pub(crate) fn add_implicit(&mut self, index: IndexId) {
        self.count(index, LockKind::EXCLUSIVE_RECORD);
    }

    fn count(&mut self, index: IndexId, kind: LockKind) {
        if let Some(part) = self.part(index, kind) {
            part.count += 1;
            let added = objects(part.count) - objects(part.count - 1);
            self.object_count += added;
            return;
        }
        if self.parts.len() < PARTS_MAX {
            self.parts.push(Part {
                index,
                kind,
                count: 1,
            });
        }
        self.object_count += 1;
    }

    /// A lock was granted after a wait.
    pub(crate) fn add_awaited(&mut self, name: &LockName, kind: LockKind) {
        match self.part(name.index(), shared_kind(name, kind)) {
            Some(_) => self.object_count += 1,
            None => self.add(name, kind),
        }
    }

    /// A lock was released before the transaction's end.
    pub(crate) fn release(&mut self, name: &LockName, kind: LockKind) {
        if let Some(part) = self.part(name.index(), shared_kind(name, kind))
            && 0 < part.count
        {
            part.count -= 1;
            let removed = objects(part.count + 1) - objects(part.count);
            self.object_count -= removed;
        }
    }

    /// Lock objects that InnoDB would have for them.
    pub(crate) fn object_count(&self) -> u64 {
        assert!(self.parts.len() <= PARTS_MAX, "the search stays short");
        self.object_count
    }

    fn part(&mut self, index: IndexId, kind: LockKind) -> Option<&mut Part> {
        let is_it = |part: &&mut Part| part.kind == kind && part.index == index;
        self.parts.iter_mut().rev().find(is_it)
    }
}

/// The kind that InnoDB's object has. It has no bare records, and a lock behind the last entry is
/// one of the entries of its page.
fn shared_kind(name: &LockName, kind: LockKind) -> LockKind {
    let extent = match kind.extent {
        LockExtent::BareRecord => LockExtent::Record,
        LockExtent::Gap if name.encoded_key().is_none() => LockExtent::NextKey,
        extent => extent,
    };
    LockKind { extent, ..kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(index: u64, key: &str) -> LockName {
        LockName::key(IndexId(index), key.as_bytes())
    }

    const GAP: LockKind = LockKind {
        extent: LockExtent::Gap,
        ..LockKind::EXCLUSIVE_RECORD
    };

    /// As MariaDB counts: many rows of a page are one object, and each index and kind has its own.
    #[test]
    fn objects_are_counted_by_index_and_kind() {
        let mut footprint = Footprint::default();
        assert_eq!(footprint.object_count(), 0);
        for row in 0..100 {
            footprint.add(&name(1, &row.to_string()), LockKind::EXCLUSIVE_RECORD);
        }
        assert_eq!(footprint.object_count(), 1);
        footprint.add(&name(1, "a"), GAP);
        footprint.add(&name(2, "a"), GAP);
        assert_eq!(footprint.object_count(), 3);
        for row in 0..100 {
            footprint.add(&name(1, &row.to_string()), LockKind::EXCLUSIVE_RECORD);
        }
        assert_eq!(
            footprint.object_count(),
            4,
            "200 rows are more than a page has"
        );
    }

    /// The sum is what the parts make up.
    #[test]
    fn locks_that_come_and_go_change_the_objects_of_their_part() {
        let mut footprint = Footprint::default();
        let row = name(1, "a");
        for count in 1..=1000 {
            footprint.add(&row, GAP);
            assert_eq!(footprint.object_count(), objects(count));
        }
        for count in (0..1000).rev() {
            footprint.release(&row, GAP);
            assert_eq!(footprint.object_count(), objects(count));
        }
        footprint.release(&row, GAP);
        assert_eq!(footprint.object_count(), 1, "it keeps one");
        footprint.add(&row, GAP);
        assert_eq!(footprint.object_count(), 1);
    }

    #[test]
    fn an_awaited_lock_and_a_released_one_keep_their_objects() {
        let mut footprint = Footprint::default();
        footprint.add_awaited(&name(1, "a"), LockKind::EXCLUSIVE_RECORD);
        assert_eq!(footprint.object_count(), 1);
        footprint.add_awaited(&name(1, "b"), LockKind::EXCLUSIVE_RECORD);
        assert_eq!(footprint.object_count(), 2);
        footprint.release(&name(1, "a"), LockKind::EXCLUSIVE_RECORD);
        footprint.release(&name(3, "never held"), GAP);
        assert_eq!(footprint.object_count(), 2);
    }

    #[test]
    fn the_end_of_an_index_is_locked_like_its_last_entries() {
        let mut footprint = Footprint::default();
        let next_key = LockKind {
            extent: LockExtent::NextKey,
            ..GAP
        };
        footprint.add(&name(1, "a"), next_key);
        footprint.add(&LockName::supremum(IndexId(1)), GAP);
        assert_eq!(footprint.object_count(), 1);
    }

    #[test]
    fn parts_beyond_the_limit_are_counted_one_by_one() {
        let mut footprint = Footprint::default();
        for index in 0..100 {
            footprint.add(&name(index, "a"), GAP);
        }
        assert_eq!(footprint.object_count(), 100);
        assert_eq!(footprint.parts.len(), PARTS_MAX);
    }
}
