//! [`Pieces`]: a vector that grows and shrinks by pieces of one size.
//!
//! A `Vec` that doubles has up to half of its memory idle, and old and new memory at once while it
//! is copied; one that shrinks has to be copied, too. A shelf counts its memory, so it would have
//! to let replies go for that. Here one more value takes a piece at most, and no value is copied.

use crate::budget::allocated_bytes;

/// Places in the list of pieces that count for each: the list may be a quarter full.
const PLACES_BY_PIECE: usize = 4;

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Pieces<T> {
    /// All but the last one are full, and that is not empty.
    pieces: Vec<Vec<T>>,
    /// How many values there are.
    len: usize,
    /// A piece has room for two to this power. Constant.
    shift: u32,
}

impl<T> Pieces<T> {
    /// In pieces of two to the power of `shift` values.
    pub(crate) fn new(shift: u32) -> Pieces<T> {
        Pieces {
            pieces: Vec::new(),
            len: 0,
            shift,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.pieces.len() * self.piece_bytes()
    }

    /// Memory that one more value takes.
    pub(crate) fn growth_bytes(&self) -> usize {
        match self.len == self.pieces.len() << self.shift {
            true => self.piece_bytes(),
            false => 0,
        }
    }

    fn piece_bytes(&self) -> usize {
        allocated_bytes(size_of::<T>() << self.shift) + PLACES_BY_PIECE * size_of::<Vec<T>>()
    }

    fn split(&self, index: usize) -> (usize, usize) {
        let inside = (1 << self.shift) - 1;
        (index >> self.shift, index & inside)
    }

    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        let (piece, place) = self.split(index);
        self.pieces.get(piece)?.get(place)
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let (piece, place) = self.split(index);
        self.pieces.get_mut(piece)?.get_mut(place)
    }

    pub(crate) fn push(&mut self, value: T) {
        if self.growth_bytes() != 0 {
            self.pieces.push(Vec::with_capacity(1 << self.shift));
        }
        if let Some(last) = self.pieces.last_mut() {
            last.push(value);
            self.len += 1;
        }
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        let last = self.pieces.last_mut()?;
        let value = last.pop();
        self.len -= usize::from(value.is_some());
        if last.is_empty() {
            self.pieces.pop();
            if PLACES_BY_PIECE * self.pieces.len() < self.pieces.capacity() {
                self.pieces.shrink_to(2 * self.pieces.len());
            }
        }
        value
    }

    /// Takes a value out. The last one takes its place.
    pub(crate) fn swap_remove(&mut self, index: usize) -> Option<T> {
        if self.len <= index {
            return None;
        }
        let last = self.pop()?;
        match self.get_mut(index) {
            Some(place) => Some(std::mem::replace(place, last)),
            None => Some(last),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_list_of_pieces_shrinks() {
        let mut pieces = Pieces::new(1);
        (0..1000_u32).for_each(|value| pieces.push(value));
        while pieces.pop().is_some() {
            let (used, room) = (pieces.pieces.len(), pieces.pieces.capacity());
            assert!(room <= PLACES_BY_PIECE * used, "{used} of {room}");
        }
        assert_eq!((pieces.bytes(), pieces.len()), (0, 0));
    }

    proptest! {
        /// They are what a vector is, and take what they say.
        #[test]
        fn pieces_are_a_vector(
            shift in 0_u32..4,
            steps in prop::collection::vec((0_u8..5, 0_usize..40, any::<u32>()), 0..300),
        ) {
            let mut pieces = Pieces::new(shift);
            let mut naive = Vec::new();
            for (step, index, value) in steps {
                let (bytes, growth) = (pieces.bytes(), pieces.growth_bytes());
                match step {
                    0..3 => {
                        pieces.push(value);
                        naive.push(value);
                        prop_assert_eq!(pieces.bytes(), bytes + growth);
                    }
                    3 => prop_assert_eq!(pieces.pop(), naive.pop()),
                    _ => {
                        let expected = (index < naive.len()).then(|| naive.swap_remove(index));
                        prop_assert_eq!(pieces.swap_remove(index), expected);
                    }
                }
                prop_assert_eq!(pieces.len(), naive.len());
                prop_assert_eq!(pieces.get(index), naive.get(index));
                prop_assert_eq!(pieces.get_mut(index), naive.get_mut(index));
                let room = naive.len().next_multiple_of(1 << shift);
                let held: usize = pieces.pieces.iter().map(Vec::capacity).sum();
                prop_assert_eq!(held, room);
                prop_assert!(size_of::<u32>() * room <= pieces.bytes());
            }
        }
    }
}
