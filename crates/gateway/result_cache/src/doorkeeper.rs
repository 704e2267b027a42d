//! [`Doorkeeper`]: which queries were asked for lately, though their replies are not kept.
//!
//! Once a cache is full, a reply is kept only if its query was asked for before. So queries that
//! are asked once push out nothing that is asked often, and most misses cost no copy. The name and
//! the idea are those of G. Einziger, R. Friedman and B. Manes, "TinyLFU: A Highly Efficient Cache
//! Admission Policy" (ACM Transactions on Storage 13, 2017). Theirs is a Bloom filter that is
//! emptied now and then. In this table each query takes the place of an older one.

/// Queries by hash. A query in the place of another is taken for that once in 65,536 times.
#[derive(Debug)]
pub(crate) struct Doorkeeper {
    /// The mark of the last query of each place; a power of two of them.
    marks: Box<[u16]>,
}

/// Fewest places.
const PLACES_MIN: usize = 8;

/// The place of a hash and its mark are taken from other bits than its shelf (the highest) and its
/// place on that (the lowest).
const PLACE_SHIFT: u32 = 20;
const MARK_SHIFT: u32 = 40;

impl Doorkeeper {
    /// With about so many places.
    pub(crate) fn new(places: usize) -> Doorkeeper {
        let count = 1 << places.max(PLACES_MIN).ilog2();
        Doorkeeper {
            marks: vec![0; count].into(),
        }
    }

    /// Memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.marks)
    }

    /// Notes that a query was asked for. Returns whether it was noted before, and no other one in
    /// its place since.
    pub(crate) fn note(&mut self, hash: u64) -> bool {
        let last = self.marks.len() - 1;
        let place = usize::try_from(hash >> PLACE_SHIFT).unwrap_or_default() & last;
        // Never 0, which is the mark of nothing.
        let [low, high, ..] = (hash >> MARK_SHIFT).to_le_bytes();
        let mark = u16::from_le_bytes([low, high]).max(1);
        self.marks
            .get_mut(place)
            .is_some_and(|it| std::mem::replace(it, mark) == mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_known_until_another_takes_its_place() {
        let mut keeper = Doorkeeper::new(10);
        assert_eq!(keeper.bytes(), 16, "a power of two");
        let (one, other) = (1 << MARK_SHIFT, 2 << MARK_SHIFT);
        let elsewhere = other | 1 << PLACE_SHIFT;
        assert!(!keeper.note(one) && keeper.note(one) && keeper.note(one));
        assert!(!keeper.note(elsewhere) && keeper.note(one));
        assert!(!keeper.note(other) && !keeper.note(one));
        assert!(!Doorkeeper::new(0).note(0));
    }
}
