//! Detects that links form a circle, without a list of the visited places.
//!
//! One place is kept and compared with those that follow. After 1, 2, 4, 8 ... steps it is replaced
//! by the present one. So sooner or later a place of the circle is kept long enough to be met again
//! (R. P. Brent, An improved Monte Carlo factorization algorithm, 1980).

/// Watches a walk from place to place.
#[derive(Debug, Clone, Default)]
pub struct CircleCheck<T> {
    /// The place for comparison.
    kept: Option<T>,
    /// Number of places met.
    met_count: u64,
    /// Number of places met at which another one is kept.
    keep_at: u64,
}

impl<T: Copy + Eq> CircleCheck<T> {
    /// Before the first place.
    pub const fn new() -> Self {
        Self {
            kept: None,
            met_count: 0,
            keep_at: 0,
        }
    }

    /// Takes the next place. Returns `true` if it was met before. If the way to a circle and once
    /// around it are `n` places, it returns `true` after at most `3 * n`.
    pub fn comes_back(&mut self, place: T) -> bool {
        if self.kept == Some(place) {
            return true;
        }
        if self.met_count == self.keep_at {
            self.kept = Some(place);
            self.keep_at = self.keep_at.saturating_mul(2).max(1);
        }
        self.met_count += 1;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_way_is_none() {
        let mut check = CircleCheck::new();
        assert!((0..10_000).all(|place| !check.comes_back(place)));
    }

    #[test]
    fn every_circle_is_noticed_soon() {
        for way in 0..40_u32 {
            for around in 1..40 {
                let mut check = CircleCheck::new();
                let place = |step: u32| step.min(way) + step.saturating_sub(way) % around;
                let told = (0..=3 * (way + around)).find(|&step| check.comes_back(place(step)));
                assert!(
                    told.is_some_and(|step| way + around <= step),
                    "{way} {around}"
                );
            }
        }
    }
}
