//! The number of seeds of a simulation test.

use std::ops::Range;

/// The environment variable that replaces the number of seeds of every simulation test.
pub const SEED_COUNT_VARIABLE: &str = "PLATEAU_SIM_SEEDS";

/// The seeds of one test: `count` of them from `first` on, or as many as the environment variable
/// [`SEED_COUNT_VARIABLE`] says.
///
/// # Panics
/// If the variable is set, but not to a number.
pub fn seeds(first: u64, count: u64) -> Range<u64> {
    let given = std::env::var(SEED_COUNT_VARIABLE).ok();
    let count = given.map_or(count, |text| text.parse().expect("a number of seeds"));
    first..first + count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_begin_where_asked() {
        let range = seeds(1000, 5);
        assert_eq!(range.start, 1000);
        assert!(!range.is_empty());
    }
}
