//! [`KeyTable`]: numbers byte keys in the order in which they first come, and finds them again.
//!
//! A table of millions of keys grows a part at a time (extendible hashing: Fagin and others, 1979).
//! So no call takes longer than moving `PART_SLOTS_MAX` slots, some 100 us, and the table is freed
//! in few large pieces. The keys stand side by side, without an allocation each.
//!
//! (I1) A key is in the part that the directory names at the first `depth` bits of its hash.
//! (I2) The directory entries of a part are those that begin with the common hash bits of its keys,
//! as many as the part's own depth; they are neighbours.

use std::hash::BuildHasher;

use foldhash::quality::RandomState;

use crate::byte_store::{ByteStore, Span};
use crate::{ChunkedVec, DeferredDropVec, low_u32, to_u32};

/// Slots of a part before it is divided.
const PART_SLOTS_MAX: usize = 8192;

/// Slots that a part begins with.
const PART_SLOTS_MIN: usize = 8;

/// Parts are not divided beyond this: the hash has no more bits to spare. They grow instead.
const DEPTH_MAX: u32 = 18;

/// Keys and their numbers.
#[derive(Debug, Default)]
pub struct KeyTable {
    hasher: RandomState,
    /// Parts by the first bits of the hash; empty while there is one part at most.
    directory: Vec<u32>,
    /// Number of hash bits that index the directory.
    depth: u32,
    parts: DeferredDropVec<Part>,
    /// Slots of all parts.
    slot_count: usize,
    /// The place of each key, by number.
    spans: ChunkedVec<Span>,
    keys: ByteStore,
}

/// Keys whose hashes begin with the same bits: a table with open addressing.
#[derive(Debug, Default)]
struct Part {
    /// A power of two, at most three quarters full.
    slots: Vec<Slot>,
    count: usize,
    /// Number of hash bits that all its keys share.
    depth: u32,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    hash: u32,
    /// The key's number; [`NONE`] in an empty slot.
    number: u32,
}

const NONE: u32 = u32::MAX;
const EMPTY: Slot = Slot {
    hash: 0,
    number: NONE,
};

impl KeyTable {
    /// Number of keys.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// True if there is no key.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The number of a key.
    pub fn find(&self, key: &[u8]) -> Option<usize> {
        self.find_hashed(self.hash(key), key)
    }

    /// Returns the number of a key, which is added if it is new, and whether it is new.
    ///
    /// # Panics
    /// If there would be 2^32 keys.
    pub fn insert(&mut self, key: &[u8]) -> (usize, bool) {
        let hash = self.hash(key);
        if let Some(number) = self.find_hashed(hash, key) {
            return (number, false);
        }
        if self.parts.is_empty() {
            self.parts.push(Part::default());
        }
        let mut part = self.part_of(hash);
        while self.parts[part].is_full() {
            self.grow(part, hash);
            part = self.part_of(hash);
        }
        let number = self.spans.len();
        let span = self.keys.push(key);
        self.spans.push(span);
        let slot = Slot {
            hash,
            number: to_u32(number),
        };
        assert_ne!(slot.number, NONE, "fewer keys than numbers");
        self.parts[part].put(slot);
        (number, true)
    }

    /// A key, by its number.
    ///
    /// # Panics
    /// If there is no such key.
    pub fn key(&self, number: usize) -> &[u8] {
        self.keys.get(self.spans[number])
    }

    /// Removes all keys; a small table keeps its memory.
    pub fn clear(&mut self) {
        if 1 < self.parts.len() {
            self.parts.clear();
            self.directory = Vec::new();
            self.depth = 0;
            self.slot_count = 0;
        }
        for part in self.parts.iter_mut() {
            part.slots.fill(EMPTY);
            part.count = 0;
        }
        self.spans.clear();
        self.keys.clear();
    }

    /// Allocated bytes.
    pub fn memory_bytes(&self) -> usize {
        self.slot_count * size_of::<Slot>()
            + self.parts.memory_bytes()
            + self.directory.capacity() * size_of::<u32>()
            + self.spans.memory_bytes()
            + self.keys.memory_bytes()
    }

    /// The upper half: a part uses its lower bits, the directory its upper ones.
    fn hash(&self, key: &[u8]) -> u32 {
        low_u32(self.hasher.hash_one(key) >> 32)
    }

    fn part_of(&self, hash: u32) -> usize {
        if self.depth == 0 {
            return 0;
        }
        self.directory[(hash >> (u32::BITS - self.depth)) as usize] as usize
    }

    fn find_hashed(&self, hash: u32, key: &[u8]) -> Option<usize> {
        let part = self.parts.get(self.part_of(hash))?;
        part.find(hash, |number| self.key(number) == key)
    }

    /// Makes room in a full part, for a key of this hash.
    fn grow(&mut self, part: usize, hash: u32) {
        let full = &mut self.parts[part];
        let slot_count = full.slots.len();
        if slot_count < PART_SLOTS_MAX || full.depth == DEPTH_MAX {
            full.resize((2 * slot_count).max(PART_SLOTS_MIN));
            self.slot_count += full.slots.len() - slot_count;
        } else {
            self.divide(part, hash);
        }
    }

    /// Divides a part by the next bit of the hash.
    fn divide(&mut self, part: usize, hash: u32) {
        let depth = self.parts[part].depth + 1;
        if self.depth < depth {
            self.directory = if self.depth == 0 {
                vec![0, 0]
            } else {
                let twice = |&part: &u32| [part, part];
                self.directory.iter().flat_map(twice).collect()
            };
            self.depth = depth;
        }
        let other = self.parts.len();
        // The part's entries begin at its prefix; their second half belongs to the new part.
        let spread = 1_usize << (self.depth - depth);
        let prefix = (hash >> (u32::BITS - depth)) as usize | 1;
        self.directory[prefix * spread..(prefix + 1) * spread].fill(to_u32(other));
        let old = &mut self.parts[part];
        let slots = std::mem::take(&mut old.slots);
        let mut low = Part::of_size(slots.len(), depth);
        let mut high = Part::of_size(slots.len(), depth);
        for slot in slots.into_iter().filter(|slot| slot.number != NONE) {
            let is_high = slot.hash >> (u32::BITS - depth) & 1 == 1;
            if is_high { &mut high } else { &mut low }.put(slot);
        }
        self.slot_count += high.slots.len();
        *old = low;
        self.parts.push(high);
    }
}

impl Part {
    fn of_size(slot_count: usize, depth: u32) -> Self {
        Self {
            slots: vec![EMPTY; slot_count],
            count: 0,
            depth,
        }
    }

    fn is_full(&self) -> bool {
        self.slots.len() / 4 * 3 <= self.count
    }

    fn find(&self, hash: u32, is_it: impl Fn(usize) -> bool) -> Option<usize> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut place = hash as usize & mask;
        loop {
            let slot = self.slots[place];
            if slot.number == NONE {
                return None;
            }
            if slot.hash == hash && is_it(slot.number as usize) {
                return Some(slot.number as usize);
            }
            place = (place + 1) & mask;
        }
    }

    /// Adds a new key's slot; there is room.
    fn put(&mut self, slot: Slot) {
        let mask = self.slots.len() - 1;
        let mut place = slot.hash as usize & mask;
        while self.slots[place].number != NONE {
            place = (place + 1) & mask;
        }
        self.slots[place] = slot;
        self.count += 1;
    }

    fn resize(&mut self, slot_count: usize) {
        let mut larger = Self::of_size(slot_count, self.depth);
        for slot in &self.slots {
            if slot.number != NONE {
                larger.put(*slot);
            }
        }
        *self = larger;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn it_numbers_keys_as_a_map_does() {
        let mut table = KeyTable::default();
        for round in 0..3 {
            let mut model: HashMap<Vec<u8>, usize> = HashMap::new();
            let mut state = 7_u64 + round;
            for _ in 0..60_000 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let key = (state >> 40 & 0x7FFF).to_string().into_bytes();
                let next = model.len();
                let is_new = !model.contains_key(&key);
                assert_eq!(table.find(&key).is_none(), is_new);
                let number = *model.entry(key.clone()).or_insert(next);
                assert_eq!(table.insert(&key), (number, is_new));
                assert_eq!(table.key(number), key);
            }
            assert_eq!(table.len(), model.len());
            for (key, number) in &model {
                assert_eq!(table.find(key), Some(*number));
            }
            assert_eq!(table.find(b"none"), None);
            table.clear();
            assert!(table.is_empty() && table.find(b"1").is_none());
        }
    }

    #[test]
    fn a_large_table_has_small_parts_and_takes_little_more_than_its_keys() {
        let mut table = KeyTable::default();
        assert_eq!(table.memory_bytes(), 0);
        assert_eq!(table.insert(b""), (0, true));
        assert!(table.memory_bytes() < 512, "{}", table.memory_bytes());
        let count = 300_000_usize;
        for number in 1..count {
            table.insert(&number.to_be_bytes());
        }
        for part in table.parts.iter() {
            assert!(part.slots.len() <= PART_SLOTS_MAX);
        }
        assert!(40 < table.parts.len());
        let each = table.memory_bytes() / count;
        assert!((8 + 16 + 8..8 + 16 + 32).contains(&each), "{each}");
        table.clear();
        assert!(table.memory_bytes() < 1 << 20, "{}", table.memory_bytes());
    }

    #[test]
    fn parts_that_cannot_be_divided_grow() {
        let mut part = Part::of_size(PART_SLOTS_MIN, DEPTH_MAX);
        for number in 0..1_000 {
            if part.is_full() {
                part.resize(2 * part.slots.len());
            }
            part.put(Slot { hash: 5, number });
        }
        assert_eq!(part.find(5, |number| number == 999), Some(999));
        assert_eq!(part.find(6, |_| true), None);
    }
}
