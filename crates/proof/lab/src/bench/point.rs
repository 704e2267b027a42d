//! All measurements of one server with one number of clients.

use crate::generator::Shares;
use crate::sample::Sample;

/// All samples of one server at one point.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub(super) workload: String,
    pub(super) clients: u32,
    pub(super) server: &'static str,
    /// For an open loop: the rate, in percent of the server's best throughput. `None` for a closed
    /// one, in which each client begins the next transaction when one ends.
    pub(super) percent: Option<u32>,
    /// Statements of a transaction.
    pub(super) step_count: f64,
    /// One list for each generation.
    pub(super) generations: Vec<Vec<Sample>>,
    /// How transactions were distributed among clients while these were connected: for a
    /// generation, or for a round if descriptors are short.
    pub(super) shares: Vec<Shares>,
}

impl Point {
    /// Whether it is the same point, of any generation.
    pub(super) fn is_same(&self, other: &Point) -> bool {
        let key = |it: &Point| (it.clients, it.server, it.percent);
        self.workload == other.workload && key(self) == key(other)
    }

    /// The fewest transactions of one client while it was connected.
    pub(super) fn least(&self) -> u64 {
        self.shares.iter().map(|it| it.least).min().unwrap_or(0)
    }

    /// The most transactions, likewise.
    pub(super) fn most(&self) -> u64 {
        self.shares.iter().map(|it| it.most).max().unwrap_or(0)
    }

    /// The most uneven shares; only among runs that were long enough to judge, if there are any.
    pub(super) fn worst_shares(&self) -> Shares {
        let rank = |it: &Shares| (it.is_fair().is_some(), it.spread());
        let by_rank = |one: &&Shares, other: &&Shares| {
            let ((one_long, one), (other_long, other)) = (rank(one), rank(other));
            one_long.cmp(&other_long).then(one.total_cmp(&other))
        };
        self.shares
            .iter()
            .max_by(by_rank)
            .copied()
            .unwrap_or_default()
    }

    /// The longest wait of all samples; a median would hide it.
    pub(super) fn longest_ms(&self) -> f64 {
        let samples = self.generations.iter().flatten();
        samples.map(|it| it.longest_ms).fold(0.0, f64::max)
    }

    /// Transactions a second.
    pub(super) fn transactions_per_second(&self) -> f64 {
        self.per_second() / self.step_count
    }
    /// The median of the generations' medians.
    pub(super) fn median(&self, of: impl Fn(&Sample) -> f64) -> f64 {
        let of_generation = |samples: &Vec<Sample>| median(samples.iter().map(&of));
        median(self.generations.iter().map(of_generation))
    }

    pub(super) fn per_second(&self) -> f64 {
        self.median(|it| it.per_second)
    }

    /// Throughput as a share of another point's.
    pub(super) fn share_of(&self, other: &Point) -> f64 {
        self.ratio_to(other, |it| it.per_second)
    }

    /// A value relative to another point's. The ratio is taken between measurements within seconds
    /// of each other, then the median of each generation, then the median of these. Shared machines
    /// have good and bad minutes, which differ by more than points do.
    pub(super) fn ratio_to(&self, other: &Point, of: impl Fn(&Sample) -> f64) -> f64 {
        let of_generation = |(own, other): (&Vec<Sample>, &Vec<Sample>)| {
            let pairs = own.iter().zip(other);
            median(pairs.map(|(own, other)| of(own) / of(other)))
        };
        median(
            self.generations
                .iter()
                .zip(&other.generations)
                .map(of_generation),
        )
    }

    pub(super) fn cpu_us(&self) -> f64 {
        self.median(|it| it.cpu_us)
    }

    pub(super) fn restarts(&self) -> u64 {
        self.generations
            .iter()
            .flatten()
            .map(|it| it.restarts)
            .sum()
    }
}

/// One line for the terminal.
pub(super) fn line(point: &Point) -> String {
    let open = point
        .percent
        .map_or(String::new(), |it| format!("open {it:>2}%  "));
    format!(
        "{:<16} {:>5} clients  {:<15} {open}{:>8.0} statements/s  p95 {:>6} p99 {:>6} longest \
         {:>6} ms  {:>6.1} us",
        point.workload,
        point.clients,
        point.server,
        point.per_second(),
        milliseconds(point.median(|it| it.p95_ms)),
        milliseconds(point.median(|it| it.p99_ms)),
        milliseconds(point.longest_ms()),
        point.cpu_us()
    )
}

/// A time with three significant digits.
pub(super) fn milliseconds(value: f64) -> String {
    match value {
        small if small < 1.0 => format!("{small:.3}"),
        medium if medium < 100.0 => format!("{medium:.1}"),
        large => format!("{large:.0}"),
    }
}

/// The median; NaN without values.
pub(super) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_of_the_middle() {
        assert!((median([3.0, 1.0, 2.0].into_iter()) - 2.0).abs() < 1e-9);
        assert!(median([].into_iter()).is_nan());
    }

    #[test]
    fn the_worst_shares_are_of_a_run_that_can_be_judged() {
        let shares = |counts: [u64; 2]| Shares::of(counts.into_iter());
        let mut point = Point {
            workload: "point_select".to_owned(),
            clients: 2,
            server: "mariadb pool",
            percent: None,
            step_count: 1.0,
            generations: Vec::new(),
            shares: vec![shares([2, 4]), shares([1, 9])],
        };
        assert_eq!(point.worst_shares(), shares([1, 9]));
        point.shares.extend([shares([90, 110]), shares([80, 120])]);
        assert_eq!(point.worst_shares(), shares([80, 120]));
        assert_eq!((point.least(), point.most()), (1, 120));
    }
}
