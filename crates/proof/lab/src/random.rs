//! Random numbers that a seed repeats.

/// xorshift64*, Vigna 2016: enough for choosing moments and rows.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Any seed; nearby seeds give different sequences.
    pub(crate) fn new(seed: u64) -> Random {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        random.next();
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Below `limit`, which is not 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        assert!(0 < limit);
        (self.next() >> 16) % limit
    }

    /// An index into a list of that length, which is not 0.
    pub(crate) fn place(&mut self, length: usize) -> usize {
        usize::try_from(self.below(stdx::to_u64(length))).expect("below a usize")
    }

    /// An element of a list that is not empty.
    pub(crate) fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.place(list.len())]
    }

    /// A copy of an element of a list that is not empty.
    pub(crate) fn of<T: Copy>(&mut self, list: &[T]) -> T {
        *self.pick(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_repeat_and_differ() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            [random.below(1000), random.below(1000), random.below(1000)]
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }
}
