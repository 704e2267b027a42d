//! [`Controller`]: from the sample of a period to the limit of the next.
//!
//! ```text
//!   Free      --the limit keeps transactions out, and some are blocked--> Climbing
//!   Climbing  --it keeps none out for some windows, or another load has hardly any blocked--> Free
//!   any       --debt above DEBT_HIGH--> Paying --debt below DEBT_LOW--> Climbing or Free
//! ```
//!
//! Free: there are fewer transactions than the limit, so throughput says nothing about it; it
//! stays. If many of them are blocked, the limit goes down to where it keeps some out. If it keeps
//! some out and hardly any are blocked, it doubles each period (R1).
//! Climbing: see `climb`.
//! Paying: too much work was put off (log, dirty pages, old versions). The limit falls by a fifth
//! each period, so that what does that work gets the processors. If that does not help within
//! `PAYING_PERIODS_MAX`, something else is the cause, as a disk or an old snapshot. Then the debt
//! is left alone until it was paid once.
//!
//! (R1) Most loads have few conflicts. Then a limit does not help, and a search for a better one
//! keeps clients waiting. So a climb begins only where some are blocked, or where that is unknown.
//! Throughput that is lost without blocked transactions is not looked for.
//!
//! It has no clock and does no I/O: the same samples make the same limits. So a gateway can steer
//! the limit of a pool by it, as well as an engine its transactions.

use crate::Bounds;
use crate::climb::{CROWDED, Climb, STEP_MAX};
use crate::sample::Sample;
use crate::window::Window;

/// How long a period should be. Ten make a second; a busy server commits hundreds in each.
pub const PERIOD_US: u64 = 100_000;

/// Debt at which the limit falls.
const DEBT_HIGH: f64 = 0.95;
/// Debt at which it may rise again.
const DEBT_LOW: f64 = 0.85;
/// Of the limit, after a period in debt.
const DEBT_FALL: f64 = 0.8;
/// Periods in which a lower limit has to help: three seconds.
const PAYING_PERIODS_MAX: u32 = 30;
/// Windows that found the limit in no one's way, before it is free.
const LOOSE_WINDOWS: u32 = 2;
/// Of the transactions of a free period whose blocked share is too large: some are kept out.
const BLOCKED_FALL: f64 = 0.7;
/// Periods, one after the other, with too many blocked ones before a free limit falls.
const BLOCKED_PERIODS: u32 = 3;
/// Of blocked transactions: with more, a limit that keeps some out does not rise (R1). A third of
/// `climb::BLOCKED_MAX`, so that a rise ends before many are blocked.
const RISE_BLOCKED_MAX: f64 = 0.1;
/// A limit that rises grows by this factor each period: ten thousand are in within a second.
const RISE: f64 = 2.0;
/// After a debt was paid, the search goes on with this step, in octaves.
const STEP_AFTER_DEBT: f64 = 0.5;

/// What the controller does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The limit keeps none out and stays, or it rises until it does.
    Free,
    /// It is searched for a better limit.
    Searching,
    /// The limit was found, and is checked from time to time.
    Resting,
    /// The limit is lowered because too much work was put off.
    Paying,
}

/// See the module's head.
#[derive(Debug, Clone)]
pub struct Controller {
    bounds: Bounds,
    /// A whole number.
    limit: f64,
    decision: Decision,
    climb: Climb,
    window: Window,
    /// Windows, or periods, that found nothing in their way, one after the other.
    loose: u32,
    /// Free periods with too many blocked ones, one after the other, in which the limit keeps none
    /// out.
    blocked: u32,
    /// The limit before the last rise, if that was in the last period (R1).
    risen_from: Option<f64>,
    /// Periods in debt, one after the other.
    in_debt: u32,
}

/// Whether it is known that hardly any are blocked (R1): `share` of those inside.
fn needs_no_limit(sample: &Sample, share: f64) -> bool {
    sample.blocked.is_some() && share <= RISE_BLOCKED_MAX
}

impl Controller {
    /// A controller that begins with `limit`.
    pub fn new(bounds: Bounds, limit: u32) -> Self {
        let climb = Climb::new(bounds);
        Self {
            bounds,
            limit: bounds.clamp(f64::from(limit)),
            decision: Decision::Free,
            window: Window::after_change(climb.precision()),
            climb,
            loose: 0,
            blocked: 0,
            risen_from: None,
            in_debt: 0,
        }
    }

    /// The present limit.
    pub fn limit(&self) -> u32 {
        u32::try_from(stdx::f64_to_u64(self.limit)).unwrap_or(u32::MAX)
    }

    /// What it does now.
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// Takes the sample of a period, and returns the limit of the next.
    pub fn step(&mut self, sample: &Sample) -> u32 {
        if self.is_in_debt(sample.debt.worst()) {
            self.pay();
        } else if self.decision == Decision::Paying {
            self.end_debt(sample);
        } else if self.decision == Decision::Free {
            self.step_free(sample);
        } else {
            self.step_climb(sample);
        }
        self.limit()
    }

    /// A debt was paid.
    fn end_debt(&mut self, sample: &Sample) {
        if needs_no_limit(sample, sample.blocked_share()) {
            self.be_free();
        } else {
            self.climb.restart(STEP_AFTER_DEBT);
            self.begin_climb();
        }
    }

    /// Whether there is a debt that a lower limit may pay.
    fn is_in_debt(&mut self, debt: f64) -> bool {
        let is_known = self.in_debt != 0;
        let least = if is_known { DEBT_LOW } else { DEBT_HIGH };
        self.in_debt = if least < debt {
            self.in_debt.saturating_add(1)
        } else {
            0
        };
        (1..=PAYING_PERIODS_MAX).contains(&self.in_debt)
    }

    /// Sets the decision, and begins all counts of periods again.
    fn turn_to(&mut self, decision: Decision) {
        self.decision = decision;
        self.loose = 0;
        self.blocked = 0;
        self.risen_from = None;
    }

    fn pay(&mut self) {
        self.turn_to(Decision::Paying);
        self.limit = self.bounds.clamp((self.limit * DEBT_FALL).floor());
    }

    fn be_free(&mut self) {
        self.turn_to(Decision::Free);
        self.climb.restart(STEP_MAX);
    }

    fn begin_climb(&mut self) {
        self.turn_to(Decision::Searching);
        self.window = Window::after_change(self.climb.precision());
    }

    /// A period in which a free limit has kept some out (R1).
    fn step_binding(&mut self, sample: &Sample) {
        if needs_no_limit(sample, sample.blocked_share()) {
            self.blocked = 0;
            self.risen_from = Some(self.limit);
            self.limit = self.bounds.clamp(self.limit * RISE);
            return;
        }
        self.limit = self.risen_from.unwrap_or(self.limit);
        self.begin_climb();
    }

    fn step_free(&mut self, sample: &Sample) {
        if sample.is_binding() {
            self.step_binding(sample);
            return;
        }
        self.risen_from = None;
        let is_blocked = CROWDED < sample.blocked_share();
        self.blocked = if is_blocked { self.blocked + 1 } else { 0 };
        // Those that come back from a pause may be more than the limit.
        let fewer = (f64::from(sample.admitted) * BLOCKED_FALL)
            .floor()
            .min(self.limit);
        if BLOCKED_PERIODS <= self.blocked && self.bounds.clamp(fewer) <= fewer {
            self.blocked = 0;
            self.limit = fewer;
        }
    }

    fn step_climb(&mut self, sample: &Sample) {
        let Some(point) = self
            .window
            .add(sample, self.limit, self.climb.hopeless_rate())
        else {
            return;
        };
        self.loose = if self.window.is_binding() {
            0
        } else {
            self.loose + 1
        };
        if LOOSE_WINDOWS <= self.loose {
            self.be_free();
            return;
        }
        let before = self.limit;
        if self.climb.note_rested(&point) {
            if needs_no_limit(sample, point.blocked) {
                self.be_free();
                return;
            }
            self.climb.restart(STEP_MAX);
        }
        self.limit = self.climb.next(point);
        self.decision = if self.climb.is_searching() {
            Decision::Searching
        } else {
            Decision::Resting
        };
        let precision = self.climb.precision();
        self.window = if (before - self.limit).abs() < 0.5 {
            Window::going_on(precision)
        } else {
            Window::after_change(precision)
        };
    }
}
