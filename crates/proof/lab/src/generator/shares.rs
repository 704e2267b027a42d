//! Whether each client got its share: the fewest and the most transactions that one client
//! finished, compared with the mean.

use std::fmt;

/// The mean number of transactions per client from which shares are judged. With fewer, a client
/// that is one turn behind at the end looks starved.
pub(crate) const JUDGED_MEAN: f64 = 50.0;

/// The least and the most, relative to the mean, that a fair server gives each client.
pub(crate) const SHARE_LEAST: f64 = 0.7;
pub(crate) const SHARE_MOST: f64 = 1.3;

const _: () = assert!(SHARE_LEAST < 1.0 && 1.0 < SHARE_MOST);

/// How the transactions of a run were distributed among its clients.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Shares {
    /// The mean number of transactions per client.
    pub(crate) mean: f64,
    /// The fewest that one client finished.
    pub(crate) least: u64,
    /// The most that one client finished.
    pub(crate) most: u64,
}

impl Shares {
    /// From the numbers that the clients finished.
    pub(crate) fn of(counts: impl Iterator<Item = u64>) -> Shares {
        let (mut client_count, mut sum, mut least, mut most) = (0_u64, 0_u64, u64::MAX, 0);
        for count in counts {
            client_count += 1;
            sum += count;
            least = least.min(count);
            most = most.max(count);
        }
        Shares {
            mean: stdx::u64_to_f64(sum) / stdx::u64_to_f64(client_count.max(1)),
            least: least.min(most),
            most,
        }
    }

    /// The fewest, relative to the mean.
    pub(crate) fn least_share(&self) -> f64 {
        self.share(self.least)
    }

    /// The most, relative to the mean.
    pub(crate) fn most_share(&self) -> f64 {
        self.share(self.most)
    }

    /// A run in which no client finished anything counts as fair.
    fn share(&self, count: u64) -> f64 {
        if self.most == 0 {
            return 1.0;
        }
        stdx::u64_to_f64(count) / self.mean
    }

    /// Whether each client got its share; `None` if the run was too short to decide.
    pub(crate) fn is_fair(&self) -> Option<bool> {
        let is_fair = SHARE_LEAST <= self.least_share() && self.most_share() <= SHARE_MOST;
        (JUDGED_MEAN <= self.mean).then_some(is_fair)
    }

    /// The larger distance of the least and the most from the mean.
    pub(crate) fn spread(&self) -> f64 {
        (1.0 - self.least_share()).max(self.most_share() - 1.0)
    }
}

/// As `0.83 to 1.12 of the mean of 72`.
impl fmt::Display for Shares {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most) = (self.least_share(), self.most_share());
        write!(
            formatter,
            "{least:.2} to {most:.2} of the mean of {:.0}",
            self.mean
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_mean() {
        let shares = Shares::of([40, 50, 60].into_iter());
        assert_eq!((shares.least, shares.most), (40, 60));
        assert_eq!(shares.to_string(), "0.80 to 1.20 of the mean of 50");
        assert!((shares.spread() - 0.2).abs() < 1e-9);
        assert_eq!(Shares::of([].into_iter()), Shares::default());
        let silent = Shares::of([0, 0].into_iter());
        assert_eq!((silent.spread(), silent.is_fair()), (0.0, None));
    }

    #[test]
    fn shares_are_judged_at_their_limits() {
        let fair = |counts: [u64; 4]| Shares::of(counts.into_iter()).is_fair();
        // The mean is 50, of which 0.7 is 35 and 1.3 is 65.
        assert_eq!(fair([35, 65, 50, 50]), Some(true));
        assert_eq!(fair([34, 65, 51, 50]), Some(false));
        assert_eq!(fair([35, 66, 50, 49]), Some(false));
        assert_eq!(fair([0, 100, 50, 50]), Some(false));
        // The mean is a little below 50.
        assert_eq!(fair([0, 99, 50, 50]), None);
    }
}
