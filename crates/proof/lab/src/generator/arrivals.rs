//! When transactions begin in an open loop: at a rate of its own, however fast they end.
//!
//! A closed loop asks less of a slow server, since its clients wait for it. A stall of a second
//! costs each client one long wait, and the requests of that second are never sent. Here they are
//! sent, and wait.
//!
//! Arrivals are a Poisson process: gaps are exponential, and each arrival goes to a random client.
//! So the arrivals of several threads, each with its part of the rate, are together a Poisson
//! process of the whole rate. This file uses no clock and no socket; a seed repeats it.

use std::time::Duration;

use env::Instant;

use crate::random::Random;

/// A sequence of arrivals.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    random: Random,
    /// Mean time between two.
    gap_ns: f64,
    /// When the schedule began.
    from: Instant,
    /// When the next one is due, after `from`. Below 2^53 for a hundred days.
    next_ns: f64,
    client_count: usize,
}

/// A transaction that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    pub(super) at: Instant,
    pub(super) client: usize,
}

/// The parameters of arrivals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    /// Arrivals a second, more than 0.
    pub(super) per_second: f64,
    /// Not 0.
    pub(super) client_count: usize,
}

impl Arrivals {
    /// The schedule of `plan` from a moment on.
    pub(super) fn new(plan: Plan, from: Instant) -> Arrivals {
        assert!(0.0 < plan.per_second, "a rate is positive");
        assert!(0 < plan.client_count, "an arrival falls on a client");
        let mut arrivals = Arrivals {
            random: Random::new(plan.seed),
            gap_ns: 1e9 / plan.per_second,
            from,
            next_ns: 0.0,
            client_count: plan.client_count,
        };
        arrivals.next_ns = arrivals.gap();
        arrivals
    }

    /// When the next one is due.
    pub(super) fn next_at(&self) -> Instant {
        self.from + Duration::from_nanos(stdx::f64_to_u64(self.next_ns))
    }

    /// Takes the next one, if it is due.
    pub(super) fn take(&mut self, now: Instant) -> Option<Arrival> {
        let at = self.next_at();
        if now < at {
            return None;
        }
        self.next_ns += self.gap();
        let client = self.random.place(self.client_count);
        Some(Arrival { at, client })
    }

    /// An exponential time, by inversion.
    fn gap(&mut self) -> f64 {
        /// 2^53, up to which a double holds each whole number.
        const STEPS: f64 = 9_007_199_254_740_992.0;
        // Above 0 and at most 1, so that the logarithm is finite.
        let part = (stdx::u64_to_f64(self.random.next() >> 11) + 1.0) / STEPS;
        -part.ln() * self.gap_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: Plan = Plan {
        seed: 7,
        per_second: 10_000.0,
        client_count: 16,
    };

    /// Of ten seconds.
    fn all(plan: Plan) -> Vec<Arrival> {
        let from = Instant::from_nanos(5);
        let mut arrivals = Arrivals::new(plan, from);
        let end = from + Duration::from_secs(10);
        std::iter::from_fn(|| arrivals.take(end)).collect()
    }

    #[test]
    fn a_seed_repeats_its_arrivals() {
        assert_eq!(all(PLAN), all(PLAN));
        let other = Plan { seed: 8, ..PLAN };
        assert_ne!(all(PLAN)[..3], all(other)[..3]);
    }

    #[test]
    fn nothing_arrives_before_it_is_due() {
        let mut arrivals = Arrivals::new(PLAN, Instant::from_nanos(5));
        let due = arrivals.next_at();
        assert_eq!(arrivals.take(Instant::from_nanos(due.nanos() - 1)), None);
        assert_eq!(arrivals.take(due).map(|it| it.at), Some(due));
        assert!(due <= arrivals.next_at());
    }

    /// A hundred thousand arrivals are within four standard deviations of a Poisson process.
    #[test]
    fn arrivals_are_a_poisson_process() {
        let arrivals = all(PLAN);
        let count = stdx::u64_to_f64(stdx::to_u64(arrivals.len()));
        assert!((count - 1e5).abs() < 4.0 * 1e5_f64.sqrt(), "{count}");
        // The number in a millisecond has a mean of 10 and a variance of 10.
        let mut counts = vec![0_u32; 10_000];
        for arrival in &arrivals {
            let millisecond = arrival.at.nanos().saturating_sub(6) / 1_000_000;
            counts[stdx::to_usize(millisecond)] += 1;
        }
        let square = |count: &u32| (f64::from(*count) - 10.0).powi(2);
        let variance = counts.iter().map(square).sum::<f64>() / 1e4;
        // The standard deviation of a variance of so many values is 0.14.
        assert!((9.4..10.6).contains(&variance), "{variance}");
    }

    #[test]
    fn clients_are_met_alike() {
        let mut counts = [0_u32; 16];
        for arrival in all(PLAN) {
            counts[arrival.client] += 1;
        }
        // 6,250 each, with a standard deviation of 77.
        let is_alike = |count: &u32| (5_940..6_560).contains(count);
        assert!(counts.iter().all(is_alike), "{counts:?}");
    }
}
