//! [`RandomState`]: MySQL's own sequence of random numbers.

/// Modulus of MySQL's generator.
const MODULUS: u64 = 0x3FFF_FFFF;
/// The seed's factors, from the manual's description of RAND(N).
const FIRST_FACTOR: u64 = 0x1_0001;
const FIRST_OFFSET: u64 = 55_555_555;
const SECOND_FACTOR: u64 = 0x1000_0001;

/// The sequences of RAND(seed), by call and seed.
#[derive(Debug, Default)]
pub struct Seeds {
    pub(crate) states: Vec<(usize, u64, RandomState)>,
}

/// MySQL's generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RandomState {
    /// `rand_seed1`.
    pub first: u64,
    /// `rand_seed2`.
    pub second: u64,
}

impl RandomState {
    /// The state that a seed begins with.
    pub(crate) fn new(seed: u64) -> Self {
        let seed = u64::from(stdx::low_u32(seed));
        let first = u64::from(stdx::low_u32(seed * FIRST_FACTOR + FIRST_OFFSET));
        let second = u64::from(stdx::low_u32(seed * SECOND_FACTOR));
        Self {
            first: first % MODULUS,
            second: second % MODULUS,
        }
    }

    /// The next number from 0 to below 1.
    pub fn next_number(&mut self) -> f64 {
        self.first = (self.first * 3 + self.second) % MODULUS;
        self.second = (self.first + self.second + 33) % MODULUS;
        stdx::u64_to_f64(self.first) / stdx::u64_to_f64(MODULUS)
    }
}
