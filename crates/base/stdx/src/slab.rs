//! A vector of slots that keep their index while other slots come and go.

/// Values at small stable indices; a freed index is reused, last freed first.
#[derive(Debug)]
pub struct Slab<T> {
    slots: Vec<Slot<T>>,
    /// The free slot to use next, or `NONE`.
    first_free: usize,
    /// Occupied slots.
    count: usize,
}

#[derive(Debug)]
enum Slot<T> {
    Occupied(T),
    /// The next free slot, or `NONE`.
    Free(usize),
}

const NONE: usize = usize::MAX;

impl<T> Slab<T> {
    /// An empty slab.
    pub const fn new() -> Self {
        Self {
            slots: Vec::new(),
            first_free: NONE,
            count: 0,
        }
    }

    /// Stores `value` and returns its index.
    pub fn insert(&mut self, value: T) -> usize {
        self.count += 1;
        let index = self.first_free;
        if index == NONE {
            self.slots.push(Slot::Occupied(value));
            return self.slots.len() - 1;
        }
        match std::mem::replace(&mut self.slots[index], Slot::Occupied(value)) {
            Slot::Free(next) => self.first_free = next,
            Slot::Occupied(_) => unreachable!("the free list names free slots"),
        }
        index
    }

    /// The value at `index`, or `None` if the slot is free.
    pub fn get(&self, index: usize) -> Option<&T> {
        match self.slots.get(index) {
            Some(Slot::Occupied(value)) => Some(value),
            _ => None,
        }
    }

    /// The value at `index`, or `None` if the slot is free.
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        match self.slots.get_mut(index) {
            Some(Slot::Occupied(value)) => Some(value),
            _ => None,
        }
    }

    /// The slot at `index`, whose address is of interest and whose memory is not read.
    pub fn place(&self, index: usize) -> Option<&impl Sized> {
        self.slots.get(index)
    }

    /// Takes the value out and frees its slot; `None` if it was free.
    pub fn remove(&mut self, index: usize) -> Option<T> {
        let slot = self.slots.get_mut(index)?;
        if matches!(slot, Slot::Free(_)) {
            return None;
        }
        self.count -= 1;
        match std::mem::replace(slot, Slot::Free(self.first_free)) {
            Slot::Occupied(value) => {
                self.first_free = index;
                Some(value)
            }
            Slot::Free(_) => unreachable!("checked above"),
        }
    }

    /// Number of values.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there is no value.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// All values with their indices, in the order of the indices.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.slots
            .iter()
            .enumerate()
            .filter_map(|(index, slot)| match slot {
                Slot::Occupied(value) => Some((index, value)),
                Slot::Free(_) => None,
            })
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_stable_and_used_again() {
        let mut slab = Slab::new();
        let (a, b, c) = (slab.insert('a'), slab.insert('b'), slab.insert('c'));
        assert_eq!((a, b, c, slab.len()), (0, 1, 2, 3));
        assert_eq!(slab.remove(b), Some('b'));
        assert_eq!(slab.remove(b), None);
        assert_eq!(slab.remove(9), None);
        assert_eq!(slab.get(b), None);
        assert_eq!(slab.remove(a), Some('a'));
        assert_eq!(
            (slab.insert('d'), slab.insert('e'), slab.insert('f')),
            (0, 1, 3)
        );
        *slab.get_mut(1).unwrap() = 'x';
        let all: Vec<_> = slab.iter().map(|(index, value)| (index, *value)).collect();
        assert_eq!(all, [(0, 'd'), (1, 'x'), (2, 'c'), (3, 'f')]);
        assert!(!slab.is_empty());
        assert!(slab.place(3).is_some() && slab.place(4).is_none());
    }
}
