//! Locks of transactions that have many, in four to six bytes each.
//!
//! A compact lock is a number of 32 bits (its print) in a set of its index, owner and kind. Each
//! shard of the table has such sets beside its queues. The shard takes other bits of a name's hash
//! than the print, so two names are taken for one if 42 bits agree.
//!
//! **What a print locks.** All names with that print in that shard are locked. So a name may be
//! locked that its owner never asked for: another then waits without need. With `n` compact locks
//! in an index a free name is taken for a locked one with a chance of `n / 2^42`: 1 in 440,000 for
//! ten million. The rules (L1) to (L4) in `table::compaction` make sure that no lock is lost.
//!
//! **The set.** Open addressing, where the place of a print is in proportion to its value. So the
//! room can grow by less than doubling: it takes the sizes that jemalloc has, which are four to
//! a doubling. At most seven eighths are used, and seven tenths are left after growth: 4.6 to 5.7
//! bytes a lock. Nothing is ever removed: a transaction keeps these locks until its end.
//!
//! **Cost.** A look-up visits some 30 neighbours in a set that is nearly full. A request visits
//! each part of its shard. A shard without compact locks costs a request one comparison.
//!
//! **What was weighed against it.** InnoDB has a bitmap for each page and kind: a bit for each row
//! of the page, some 100 bytes in all. That is less for a scan, and 100 bytes a lock for rows that
//! lie apart. Names here know no pages, so splits, merges and eviction move no locks, and a bitmap
//! would need them to. Sorted arrays in place of the set move half of it with each lock.

use format::{IndexId, TxnId};

use crate::LockKind;
use crate::name::Print;
use crate::queue::Grant;

/// The compact locks of a shard. A single word, so that a shard fits into a cache line.
#[derive(Debug, Default)]
pub(crate) struct CompactLocks {
    /// `None` if there are none.
    parts: Option<Box<Parts>>,
}

/// What stands behind the word. Never empty between two calls.
#[derive(Debug, Default)]
struct Parts {
    list: Vec<Part>,
}

const _: () = assert!(size_of::<CompactLocks>() == size_of::<usize>());

/// The locks of one kind of one owner in one index.
#[derive(Debug)]
struct Part {
    index: IndexId,
    owner: TxnId,
    kind: LockKind,
    prints: PrintSet,
}

/// Memory of a part beside its set, in bytes: its place in a list that has grown by doubling.
const PART_BYTES: u64 = 128;

/// What a lock has added to those of its shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Added {
    /// Memory, in bytes.
    pub(crate) bytes: u64,
    /// Whether a part was made for it.
    pub(crate) is_new_part: bool,
}

/// What the locks of an owner have left behind.
#[derive(Debug, Default)]
pub(crate) struct Removed {
    /// Memory, in bytes.
    pub(crate) bytes: u64,
    /// The index of each part.
    pub(crate) indexes: Vec<IndexId>,
}

impl CompactLocks {
    /// True if there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_none()
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        let list = self.parts.as_deref().map(|parts| &*parts.list);
        list.unwrap_or_default().iter()
    }

    /// The locks of a name.
    pub(crate) fn grants(&self, print: Print) -> impl Iterator<Item = Grant> {
        let is_locked = move |part: &&Part| part.index == print.index && part.has(print);
        self.parts().filter(is_locked).map(Part::grant)
    }

    /// The locks of others that a request must wait for.
    pub(crate) fn rivals(
        &self,
        owner: TxnId,
        print: Print,
        kind: LockKind,
    ) -> impl Iterator<Item = Grant> {
        let conflicts = move |part: &&Part| part.owner != owner && kind.conflicts_with(part.kind);
        let parts = self.parts().filter(conflicts);
        parts
            .filter(move |part| part.index == print.index && part.has(print))
            .map(Part::grant)
    }

    /// True if `owner` has this lock or one that includes it.
    pub(crate) fn is_held(&self, owner: TxnId, print: Print, kind: LockKind) -> bool {
        let includes = |part: &&Part| part.owner == owner && part.kind.includes(kind);
        let mut parts = self.parts().filter(includes);
        parts.any(|part| part.index == print.index && part.has(print))
    }

    /// Notes a lock.
    pub(crate) fn add(&mut self, print: Print, grant: Grant) -> Added {
        let is_it = |part: &Part| part.index == print.index && part.grant() == grant;
        let parts = &mut self.parts.get_or_insert_default().list;
        let found = parts.iter().position(is_it);
        let at = found.unwrap_or_else(|| {
            parts.push(Part {
                index: print.index,
                owner: grant.owner,
                kind: grant.kind,
                prints: PrintSet::default(),
            });
            parts.len() - 1
        });
        let part = &mut parts[at];
        let before = part.prints.bytes();
        part.prints.insert(print.bits);
        let grown = part.prints.bytes() - before;
        Added {
            bytes: grown + if found.is_none() { PART_BYTES } else { 0 },
            is_new_part: found.is_none(),
        }
    }

    /// Removes the locks of an owner.
    pub(crate) fn remove(&mut self, owner: TxnId) -> Removed {
        let mut removed = Removed::default();
        let Some(parts) = &mut self.parts else {
            return removed;
        };
        parts.list.retain(|part| {
            if part.owner == owner {
                removed.bytes += part.prints.bytes() + PART_BYTES;
                removed.indexes.push(part.index);
            }
            part.owner != owner
        });
        if parts.list.is_empty() {
            self.parts = None;
        }
        removed
    }
}

impl Part {
    fn has(&self, print: Print) -> bool {
        self.prints.contains(print.bits)
    }

    fn grant(&self) -> Grant {
        Grant {
            owner: self.owner,
            kind: self.kind,
        }
    }
}

/// A set of numbers other than 0.
#[derive(Debug, Default)]
struct PrintSet {
    /// The numbers, each at the first free place from its own on. 0 is a free place.
    slots: Box<[u32]>,
    /// Numbers in the set.
    count: usize,
}

/// A free place.
const FREE: u32 = 0;

/// The first room of a set, in numbers: half a cache line.
const SLOTS_MIN: usize = 8;

const _: () = assert!(SLOTS_MIN.is_power_of_two() && 4 <= SLOTS_MIN);

impl PrintSet {
    fn bytes(&self) -> u64 {
        stdx::to_u64(size_of_val(&*self.slots))
    }

    /// The position of a number, or of the place where it would stand.
    fn find(&self, print: u32) -> usize {
        assert!(print != FREE && self.count < self.slots.len());
        let scaled = u64::from(print) * stdx::to_u64(self.slots.len());
        let mut at = stdx::to_usize(scaled >> u32::BITS);
        while self.slots[at] != print && self.slots[at] != FREE {
            at = if at + 1 == self.slots.len() {
                0
            } else {
                at + 1
            };
        }
        at
    }

    fn contains(&self, print: u32) -> bool {
        !self.slots.is_empty() && self.slots[self.find(print)] == print
    }

    /// Adds a number, which may be there.
    fn insert(&mut self, print: u32) {
        if 7 * self.slots.len() < 8 * (self.count + 1) {
            self.grow();
        }
        let at = self.find(print);
        if self.slots[at] == FREE {
            self.slots[at] = print;
            self.count += 1;
        }
        debug_assert!(self.contains(print));
    }

    fn grow(&mut self) {
        let larger = vec![FREE; room_above(self.slots.len())].into_boxed_slice();
        let smaller = std::mem::replace(&mut self.slots, larger);
        let count = std::mem::take(&mut self.count);
        for print in smaller.into_iter().filter(|print| *print != FREE) {
            let at = self.find(print);
            assert_eq!(self.slots[at], FREE, "a number stands in a set once");
            self.slots[at] = print;
            self.count += 1;
        }
        assert_eq!(self.count, count, "all numbers have moved");
    }
}

/// The next room of a set: of four to a doubling, as jemalloc's sizes are.
fn room_above(slot_count: usize) -> usize {
    if slot_count < SLOTS_MIN {
        return SLOTS_MIN;
    }
    let step = 1 << (slot_count.ilog2() - 2);
    assert_eq!(slot_count % step, 0, "each room is one of these sizes");
    slot_count + step
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::{LockExtent, LockMode};

    #[test]
    fn rooms_are_four_to_a_doubling() {
        let larger = |room: &usize| Some(room_above(*room));
        let rooms: Vec<_> = std::iter::successors(Some(8), larger).take(10).collect();
        assert_eq!(rooms, [8, 10, 12, 14, 16, 20, 24, 28, 32, 40]);
    }

    #[test]
    fn a_lock_takes_less_than_six_bytes_in_a_set_of_any_size() {
        let mut prints = PrintSet::default();
        for number in 1..100_000_u32 {
            prints.insert(number.wrapping_mul(2_654_435_761));
            assert_eq!(prints.count, stdx::to_usize(u64::from(number)));
            let is_small = prints.bytes() <= 32 + 58 * u64::from(number) / 10;
            assert!(is_small, "{number} in {}", prints.bytes());
        }
    }

    proptest! {
        /// Small numbers and large ones meet at both ends, where the set wraps around.
        #[test]
        fn a_set_has_what_was_put_into_it(
            prints in proptest::collection::vec(
                prop_oneof![1..20_u32, u32::MAX - 20..u32::MAX, any::<u32>()],
                0..400,
            ),
        ) {
            let (mut set, mut naive) = (PrintSet::default(), BTreeSet::new());
            for print in prints.into_iter().filter(|print| *print != FREE) {
                prop_assert_eq!(set.contains(print), naive.contains(&print));
                set.insert(print);
                naive.insert(print);
                prop_assert_eq!(set.count, naive.len());
            }
            for print in &naive {
                prop_assert!(set.contains(*print));
            }
            for print in (1..25).chain(u32::MAX - 25..u32::MAX) {
                prop_assert_eq!(set.contains(print), naive.contains(&print));
            }
        }
    }

    #[test]
    fn owners_kinds_and_indexes_are_apart() {
        let kind = |mode, extent| LockKind { mode, extent };
        let own = TxnId::new(1).unwrap();
        let other = TxnId::new(2).unwrap();
        let print = |index, bits| Print {
            index: IndexId(index),
            bits,
        };
        let shared = kind(LockMode::Shared, LockExtent::NextKey);
        let mut locks = CompactLocks::default();
        assert!(locks.is_empty());
        let grant = Grant {
            owner: own,
            kind: shared,
        };
        let first = locks.add(print(1, 5), grant);
        assert!(first.is_new_part && PART_BYTES < first.bytes);
        let again = locks.add(print(1, 6), grant);
        assert_eq!((again.is_new_part, again.bytes), (false, 0));
        let record = kind(LockMode::Shared, LockExtent::Record);
        assert!(locks.is_held(own, print(1, 5), record));
        assert!(!locks.is_held(other, print(1, 5), record));
        assert!(!locks.is_held(own, print(2, 5), record));
        assert!(!locks.is_held(own, print(1, 5), LockKind::EXCLUSIVE_RECORD));
        let rival = |owner, print, kind| locks.rivals(owner, print, kind).next();
        let exclusive = LockKind::EXCLUSIVE_RECORD;
        assert_eq!(rival(other, print(1, 6), exclusive), Some(grant));
        assert_eq!(rival(other, print(1, 7), exclusive), None);
        assert_eq!(rival(other, print(1, 6), record), None);
        assert_eq!(rival(own, print(1, 6), exclusive), None);
        assert_eq!(locks.grants(print(1, 5)).collect::<Vec<_>>(), [grant]);
        let removed = locks.remove(own);
        assert_eq!(removed.indexes, [IndexId(1)]);
        assert_eq!(removed.bytes, first.bytes);
        assert!(locks.is_empty());
    }
}
