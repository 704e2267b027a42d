//! [`Window`]: some periods at one limit, and [`Point`], what was measured in them.
//!
//! The first period after a change is not counted: transactions that were admitted under the old
//! limit end in it. A window is long enough when chance is small beside the difference that is
//! looked for, or when it has lasted [`Window::LONG`] periods.

use crate::sample::Sample;

/// What a limit was worth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    /// The limit.
    pub(crate) limit: f64,
    /// Work a second.
    pub(crate) rate: f64,
    /// How far off the rate may be by chance, as a share of it (one standard error).
    pub(crate) error: f64,
    /// The mean share of blocked transactions.
    pub(crate) blocked: f64,
    /// The mean number of transactions, inside or waiting.
    pub(crate) population: f64,
}

impl Point {
    /// The difference between two points that is no chance, as a share.
    pub(crate) fn margin(&self, other: &Point) -> f64 {
        let error = (self.error.powi(2) + other.error.powi(2)).sqrt();
        (MARGIN_ERRORS * error).clamp(MARGIN_MIN, MARGIN_MAX)
    }

    /// The place of the limit on a scale of octaves.
    pub(crate) fn octave(&self) -> f64 {
        self.limit.log2()
    }
}

/// Standard errors between two points that are told apart. With 1.5 one comparison of seven equal
/// points goes wrong; the next corrects it.
const MARGIN_ERRORS: f64 = 1.0;
/// Smaller differences are not worth a move.
const MARGIN_MIN: f64 = 0.01;
/// Larger differences are believed whatever the noise: else a noisy load would never be steered.
const MARGIN_MAX: f64 = 0.1;

/// Of the limit: with so many inside it holds.
const DRAINED: f64 = 1.1;

/// How exact a window has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precision {
    /// For steps of half an octave and more.
    Coarse,
    /// For smaller steps.
    Fine,
    /// For the limit that is kept.
    Resting,
}

/// Periods at one limit.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    /// Periods still to be left out.
    skipped: u32,
    /// Periods that may be left out because too many are still inside.
    drains: u32,
    /// How exact it has to be.
    precision: Precision,
    /// The rates of the counted periods.
    rates: Vec<f64>,
    /// Sums over the counted periods.
    events: u64,
    blocked: f64,
    population: f64,
    /// Whether the limit has kept transactions out in any of them.
    is_binding: bool,
}

impl Window {
    /// Periods left out after a change of the limit.
    const SKIPPED: u32 = 1;
    /// The most periods left out while more are inside than the limit says. Transactions of people
    /// last longer, and do not end by waiting.
    const DRAINS: u32 = 20;
    /// The fewest periods that say anything about their spread.
    const SHORT: usize = 2;
    /// The most counted periods, for each precision.
    const LONG: [usize; 3] = [4, 8, 8];
    /// The standard error that is small enough, for each precision.
    const ERROR: [f64; 3] = [0.03, 0.012, 0.006];

    /// A window behind a change of the limit.
    pub(crate) fn after_change(precision: Precision) -> Self {
        Self::new(precision, Self::SKIPPED)
    }

    /// A window at the limit of the last one.
    pub(crate) fn going_on(precision: Precision) -> Self {
        Self::new(precision, 0)
    }

    fn new(precision: Precision, skipped: u32) -> Self {
        let most = Self::LONG[precision as usize];
        Self {
            skipped,
            drains: if skipped == 0 { 0 } else { Self::DRAINS },
            precision,
            rates: Vec::with_capacity(most),
            events: 0,
            blocked: 0.0,
            population: 0.0,
            is_binding: false,
        }
    }

    /// Whether any period found the limit in its way.
    pub(crate) fn is_binding(&self) -> bool {
        self.is_binding
    }

    /// Adds a period. Returns the point when there are enough.
    pub(crate) fn add(&mut self, sample: &Sample, limit: f64, hopeless: f64) -> Option<Point> {
        let seconds = stdx::u64_to_f64(sample.span_us.max(1)) / 1e6;
        let rate = stdx::u64_to_f64(sample.work()) / seconds;
        let chance = 4.0 / stdx::u64_to_f64(sample.events().max(1)).sqrt();
        let is_hopeless = rate * (1.0 + chance) < hopeless && self.is_full(sample, limit);
        if self.is_unsettled(sample, limit) && !is_hopeless {
            return None;
        }
        self.rates.push(rate);
        self.events += sample.events();
        self.blocked += sample.blocked_share();
        self.population += f64::from(sample.admitted) + f64::from(sample.waiting);
        self.is_binding |= sample.is_binding();
        let count = self.rates.len();
        let point = self.point(limit);
        let most = Self::LONG[self.precision as usize];
        let is_exact = point.error <= Self::ERROR[self.precision as usize];
        (is_hopeless || most <= count || (Self::SHORT <= count && is_exact)).then_some(point)
    }

    /// Whether about as many are inside as the limit allows.
    fn is_full(&self, sample: &Sample, limit: f64) -> bool {
        let inside = f64::from(sample.admitted);
        (limit / DRAINED..=limit * DRAINED).contains(&inside)
    }

    /// Whether a period is left out: those inside are still more than the limit, or were just now.
    fn is_unsettled(&mut self, sample: &Sample, limit: f64) -> bool {
        if self.rates.is_empty() && self.drains != 0 && limit * DRAINED < f64::from(sample.admitted)
        {
            self.drains -= 1;
            return true;
        }
        if self.skipped != 0 {
            self.skipped -= 1;
            return true;
        }
        false
    }

    /// What the periods so far say.
    fn point(&self, limit: f64) -> Point {
        let count = stdx::u64_to_f64(stdx::to_u64(self.rates.len()));
        let rate = self.rates.iter().sum::<f64>() / count;
        let spread = self.rates.iter().map(|it| (it - rate).powi(2)).sum::<f64>();
        // With few periods the spread is itself chance; the number of events bounds it from below.
        let of_spread = (spread / (count - 1.0).max(1.0) / count).sqrt() / rate.max(1.0);
        let of_events = 1.0 / stdx::u64_to_f64(self.events.max(1)).sqrt();
        Point {
            limit,
            rate,
            error: of_spread.max(of_events),
            blocked: self.blocked / count,
            population: self.population / count,
        }
    }
}
