//! [`Climb`]: the search for the limit with the most throughput.
//!
//! It works on a scale of octaves. There is a centre, the best limit so far, and a trial beside it:
//!
//! ```text
//!              better: the trial is the centre; go on, after two of them in longer steps
//!   trial --<
//!              worse: try the other side; if that is worse too, halve the step (with a parabola
//!                     through the three points), down to STEP_MIN; then rest before the next trial
//! ```
//!
//! (C1) Throughput has the last word. The parabola and the blocked share choose the next trial, and
//! never a limit with less throughput.
//! (C2) Among equals the centre stays. But if many are blocked there, fewer transactions are
//! better: they hold fewer locks for the same throughput. Equal means equal to the best since the
//! load has changed, so that many small losses do not add up; for short steps it means within
//! [`EQUAL_MAX`], since what they lose is lost in noise.
//! (C3) A trial is at most [`RISE_MAX`] octaves above the centre and [`FALL_MAX`] below it.
//!
//! (C4) Once a search has ended, each rest is followed by one trial on each side, with one step;
//! the next ones have half of it, or a longer one where nothing was seen. A trial that seems better
//! is tried once more, with the centre measured between: chance seldom favours it twice.
//!
//! The centre is measured again while the climb rests. If its rate or the number of transactions
//! has changed by much, in two windows one after the other, the load is another: the steps are
//! long again.
//!
//! After Heiss and Wagner, "Adaptive Load Control in Transaction Processing Systems" (VLDB 1991):
//! they compare incremental steps with a parabola. This takes steps first and the parabola last.

use crate::Bounds;
use crate::memory::Memory;
use crate::window::{Point, Precision};

/// Of blocked transactions: beyond it fewer are tried first. It stands for the ratio of locks held
/// by all to locks held by those that run, which is critical at some 1.3 (Moenkeberg and Weikum,
/// VLDB 1992). To count all locks would cost more, and most rows are locked without an entry.
const BLOCKED_MAX: f64 = 0.3;
/// Of blocked transactions: beyond it fewer are better for the same throughput (C2), and a limit
/// that none has reached falls. Where fewer are blocked, more of them often give some per cent of
/// throughput, which noise hides: TPC-C on ten warehouses has its best with 320 inside, of which
/// 0.93 are blocked, 0.97 of it with 160 (0.86), and 0.89 of it with 96 (0.78).
pub(crate) const CROWDED: f64 = 0.8;
/// A short step may lose so much throughput for fewer blocked transactions (C2).
const EQUAL_MAX: f64 = 0.01;
/// A search begins with this step.
pub(crate) const STEP_MAX: f64 = 1.0;
/// Below it differences vanish in noise: the limit is off by 5 % or so.
const STEP_MIN: f64 = 0.125;
/// Windows that an undecided trial may have in addition.
const EXTENSIONS_MAX: u32 = 2;
/// If both sides are as good as the centre, the step grows by this factor.
const WIDEN: f64 = 4.0;
/// The longest jump upward, in octaves (C3). Transactions that came in too many leave slowly.
const RISE_MAX: f64 = 1.0;
/// The longest jump downward. While transactions are in no one's way, a quarter of the limit gives
/// a quarter of the throughput at least. So those who wait during the trial wait four rounds at
/// most.
const FALL_MAX: f64 = 2.0;
/// A parabola's top that is nearer to the centre needs no trial.
const TOP_NEAR: f64 = 0.1;
/// A trial with less than this share of the centre's rate need not be measured exactly.
const HOPELESS: f64 = 0.75;
/// Windows at rest between two trials, at first and at last.
const RESTS: std::ops::RangeInclusive<u32> = 2..=32;
/// A rate or a number of transactions that differs by this factor is another load.
const CHANGE: f64 = 1.25;
/// The same of numbers of transactions, which vary more.
const POPULATION_CHANGE: f64 = 2.0;
/// So much less of a share of blocked transactions is another load: twice what chance makes.
const BLOCKED_CHANGE: f64 = 0.15;

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Down,
    Up,
}

impl Side {
    fn other(self) -> Self {
        match self {
            Side::Down => Side::Up,
            Side::Up => Side::Down,
        }
    }

    fn octaves(self, step: f64) -> f64 {
        match self {
            Side::Down => -step,
            Side::Up => step,
        }
    }
}

/// How often a limit beside the centre was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trial {
    First,
    /// It seemed better at first (C4).
    Second,
}

/// See the module's head.
#[derive(Debug, Clone)]
pub(crate) struct Climb {
    bounds: Bounds,
    /// What all limits were worth.
    memory: Memory,
    /// The best limit so far, once it was measured.
    center: Option<Point>,
    /// The best rate since the load has changed (C2).
    best_rate: f64,
    /// What is measured now, if it is not the centre.
    trial: Option<Trial>,
    /// Windows that were added to the trial because it was undecided.
    extensions: u32,
    /// In octaves.
    step: f64,
    side: Side,
    /// The last trial on this and that side, if it was worse.
    worse: [Option<Point>; 2],
    /// Trials that were better, one after the other.
    streak: u32,
    /// True once a search has ended since the load has changed (C4).
    is_settled: bool,
    /// A trial that seemed better, to be tried once more (C4).
    again: Option<f64>,
    /// Windows until the next trial.
    rest: u32,
    /// Windows at rest after the next two trials that are worse.
    next_rest: u32,
    /// Windows at rest, one after the other, whose rate was another load's.
    changed: u32,
    /// A share of blocked transactions that was tried to lower without gain.
    harmless: f64,
}

impl Climb {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            memory: Memory::default(),
            center: None,
            best_rate: 0.0,
            trial: None,
            extensions: 0,
            step: STEP_MAX,
            side: Side::Up,
            worse: [None; 2],
            streak: 0,
            is_settled: false,
            again: None,
            rest: 0,
            next_rest: *RESTS.start(),
            changed: 0,
            harmless: BLOCKED_MAX,
        }
    }

    /// Begins again, because the load is another one.
    pub(crate) fn restart(&mut self, step: f64) {
        *self = Self {
            step,
            ..Self::new(self.bounds)
        };
    }

    /// True while the limit is searched.
    pub(crate) fn is_searching(&self) -> bool {
        self.trial.is_some() || self.again.is_some() || self.rest == 0
    }

    /// A trial with less than this is over at once: work a second.
    pub(crate) fn hopeless_rate(&self) -> f64 {
        match (self.trial, &self.center) {
            (Some(_), Some(center)) => center.rate * HOPELESS,
            _ => 0.0,
        }
    }

    /// How exact the next window has to be.
    pub(crate) fn precision(&self) -> Precision {
        if self.trial.is_none() && self.center.is_some() {
            Precision::Resting
        } else if self.is_coarse() {
            Precision::Coarse
        } else {
            Precision::Fine
        }
    }

    /// Whether steps are long, so that limits differ by much.
    fn is_coarse(&self) -> bool {
        STEP_MAX / 2.0 <= self.step
    }

    /// Takes what a window has measured. Returns the limit of the next one.
    pub(crate) fn next(&mut self, measured: Point) -> f64 {
        let Some(center) = self.center else {
            return self.begin(measured);
        };
        let Some(trial) = self.trial.take() else {
            return self.rested(center, measured);
        };
        let measured = self.memory.merge(measured);
        if self.is_better(&center, &measured) {
            if self.is_settled && trial == Trial::First {
                // (C4).
                self.again = Some(measured.limit);
                return center.limit;
            }
            return self.accept(measured);
        }
        if center.rate < measured.rate && self.extensions < EXTENSIONS_MAX {
            // It may be better: another window decides.
            self.extensions += 1;
            self.trial = Some(trial);
            return measured.limit;
        }
        self.reject(center, measured)
    }

    /// The first point of a search.
    fn begin(&mut self, measured: Point) -> f64 {
        let measured = self.memory.merge(measured);
        self.center = Some(measured);
        self.best_rate = measured.rate;
        self.side = if self.harmless < measured.blocked {
            Side::Down
        } else {
            Side::Up
        };
        self.try_next(&measured)
    }

    fn is_better(&self, center: &Point, measured: &Point) -> bool {
        let margin = center.margin(measured);
        if center.rate * (1.0 + margin) < measured.rate {
            return true;
        }
        // (C2).
        let margin = if self.is_coarse() {
            margin
        } else {
            margin.min(EQUAL_MAX)
        };
        let is_equal = self.best_rate.max(center.rate) * (1.0 - margin) <= measured.rate;
        is_equal && measured.limit < center.limit && CROWDED < center.blocked
    }

    fn accept(&mut self, measured: Point) -> f64 {
        self.center = Some(measured);
        self.best_rate = self.best_rate.max(measured.rate);
        self.worse = [None; 2];
        self.streak += 1;
        if 2 <= self.streak {
            self.step = (self.step * 2.0).min(STEP_MAX);
        }
        self.next_rest = (self.next_rest / 2).max(*RESTS.start());
        self.try_next(&measured)
    }

    fn reject(&mut self, center: Point, measured: Point) -> f64 {
        if measured.limit < center.limit {
            self.harmless = self.harmless.max(center.blocked + 0.1);
        }
        self.streak = 0;
        self.worse[usize::from(center.limit < measured.limit)] = Some(measured);
        self.side = if measured.limit < center.limit {
            Side::Up
        } else {
            Side::Down
        };
        if self.worse.iter().any(Option::is_none) {
            return self.try_next(&center);
        }
        let top = self.top(&center);
        let is_equal = |side: &Option<Point>| {
            side.is_some_and(|it| center.rate * (1.0 - center.margin(&it)) <= it.rate)
        };
        let is_flat = self.worse.iter().all(is_equal);
        self.worse = [None; 2];
        let is_last = self.is_settled || self.step <= STEP_MIN;
        if is_flat {
            // Chance hides what there is: from further away more is seen.
            let most = if self.is_settled { STEP_MAX } else { FALL_MAX };
            self.step = (self.step * WIDEN).min(most);
            return self.rest_at(&center);
        }
        self.step = (self.step / 2.0).max(STEP_MIN);
        if is_last {
            self.is_settled = true;
            return self.rest_at(&center);
        }
        match top {
            Some(octave) => self.try_at(&center, octave),
            None => self.try_next(&center),
        }
    }

    /// Both sides are worse: the limit is kept for a while.
    fn rest_at(&mut self, center: &Point) -> f64 {
        self.rest = self.next_rest;
        self.next_rest = (self.next_rest * 2).min(*RESTS.end());
        center.limit
    }

    /// The top of the parabola through the centre and both sides, if it is worth a trial.
    fn top(&self, center: &Point) -> Option<f64> {
        let [Some(lower), Some(upper)] = self.worse else {
            return None;
        };
        let (left, right) = (
            lower.octave() - center.octave(),
            upper.octave() - center.octave(),
        );
        if -f64::EPSILON <= left || right <= f64::EPSILON {
            return None;
        }
        let fall_left = (lower.rate - center.rate) / left;
        let fall_right = (upper.rate - center.rate) / right;
        let bend = (fall_right - fall_left) / (right - left);
        if 0.0 <= bend {
            return None;
        }
        let slope = fall_left - bend * left;
        let top = (-slope / (2.0 * bend)).clamp(left / 2.0, right / 2.0);
        (TOP_NEAR < top.abs()).then_some(center.octave() + top)
    }

    /// Notes a window. Returns whether it and the one before, both at rest, have measured another
    /// load. Then the climb has to be restarted.
    pub(crate) fn note_rested(&mut self, measured: &Point) -> bool {
        let (Some(center), None) = (&self.center, self.trial) else {
            return false;
        };
        self.changed = if is_of_another_load(center, measured) {
            self.changed + 1
        } else {
            0
        };
        2 <= self.changed
    }

    /// A window at the centre has ended.
    fn rested(&mut self, center: Point, measured: Point) -> f64 {
        if self.changed != 0 {
            return center.limit;
        }
        let merged = self.memory.merge(measured);
        let drift = measured.rate / center.rate.max(1.0);
        // The load itself drifts: what is known of other limits drifts with it, by half.
        self.memory.scale(drift.midpoint(1.0), center.limit);
        self.best_rate *= merged.rate / center.rate.max(1.0);
        let center = merged;
        self.center = Some(center);
        if let Some(limit) = self.again.take() {
            self.trial = Some(Trial::Second);
            self.extensions = 0;
            return limit;
        }
        self.rest = self.rest.saturating_sub(1);
        if self.rest != 0 {
            return center.limit;
        }
        self.try_next(&center)
    }

    /// Begins the next trial; returns its limit.
    fn try_next(&mut self, center: &Point) -> f64 {
        // Many are blocked: as many as are not, and a third more.
        if self.side == Side::Down && self.harmless < center.blocked {
            let free = (1.0 - center.blocked) * 4.0 / 3.0;
            let jump = free.max(f64::MIN_POSITIVE).log2().min(-self.step);
            return self.try_at(center, center.octave() + jump);
        }
        self.try_at(center, center.octave() + self.side.octaves(self.step))
    }

    fn try_at(&mut self, center: &Point, octave: f64) -> f64 {
        let (least, most) = (center.octave() - FALL_MAX, center.octave() + RISE_MAX);
        let octave = octave.clamp(least, most);
        let mut limit = self.bounds.clamp(octave.exp2().round());
        if is_same(limit, center.limit) {
            // At a bound, or too near: the other side.
            self.side = self.side.other();
            let other = center.octave() + self.side.octaves(self.step).min(RISE_MAX);
            limit = self.bounds.clamp(other.exp2().round());
        }
        if is_same(limit, center.limit) {
            self.rest = *RESTS.end();
            return center.limit;
        }
        self.trial = Some(Trial::First);
        self.extensions = 0;
        limit
    }
}

/// Whether the rate or the number of transactions has changed by much, or far fewer are blocked.
fn is_of_another_load(center: &Point, measured: &Point) -> bool {
    let is_other = |now: f64, then: f64, factor: f64| {
        now.max(1.0) * factor < then.max(1.0) || then.max(1.0) * factor < now.max(1.0)
    };
    measured.blocked + BLOCKED_CHANGE < center.blocked
        || is_other(measured.rate, center.rate, CHANGE)
        || is_other(measured.population, center.population, POPULATION_CHANGE)
}

/// Limits are whole numbers.
fn is_same(one: f64, other: f64) -> bool {
    (one - other).abs() < 0.5
}
