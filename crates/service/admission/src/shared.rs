//! [`Admission`]: what the gates of all workers share: the limit, and its parts.
//!
//! A worker's quota is one atomic number, which its gate reads at each entry. Gates report at their
//! ticks, under a small mutex. The first report after the end of a period takes a step of the
//! controller. Then the limit is divided among the workers, by how many transactions each had
//! inside and waiting. So a worker with all the clients has nearly all of the limit. What a worker
//! gets above its old quota it uses at its own next tick, within a period.
//!
//! No gate wakes another one's waiters: they belong to its worker.

use std::str::FromStr;
use std::sync::Arc;

use sync::atomic::{AtomicU32, Ordering};
use sync::{CachePadded, Mutex};

use crate::controller::PERIOD_US;
use crate::numbers::{AllNumbers, GateNumbers, Level};
use crate::{Bounds, Controller, Debt, Decision, Sample};

/// A quota without a limit.
pub(crate) const NO_LIMIT: u32 = u32::MAX;

/// The fewest transactions for each worker under `auto`: one that runs, and some that wait for
/// pages or clients.
pub const MIN_PER_WORKER: u32 = 4;
/// The first limit under `auto`, for each worker.
pub const START_PER_WORKER: u32 = 32;
/// The most under `auto`, for each worker: more clients than this a worker does not serve well.
pub const MAX_PER_WORKER: u32 = 8192;
/// The most that can be set.
pub const LIMIT_MAX: u32 = 100_000;

/// `max_concurrent_transactions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// There is none.
    Off,
    /// The controller finds it.
    Auto,
    /// As set, from 1 to [`LIMIT_MAX`].
    Fixed(u32),
}

/// A text that is no [`Limit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoLimitText;

impl FromStr for Limit {
    type Err = NoLimitText;

    fn from_str(text: &str) -> Result<Self, NoLimitText> {
        if text.eq_ignore_ascii_case("off") {
            return Ok(Limit::Off);
        }
        if text.eq_ignore_ascii_case("auto") {
            return Ok(Limit::Auto);
        }
        match text.parse() {
            Ok(count) if (1..=LIMIT_MAX).contains(&count) => Ok(Limit::Fixed(count)),
            _ => Err(NoLimitText),
        }
    }
}

/// What a gate reports at its tick.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Report {
    pub(crate) inside: u32,
    pub(crate) waiting: u32,
    pub(crate) blocked: u32,
    /// Most that were inside and waiting; 0 if the gate reports no more.
    pub(crate) demand: u32,
}

/// See the module's head.
#[derive(Debug)]
pub struct Admission {
    /// One for each worker.
    quotas: Box<[CachePadded<AtomicU32>]>,
    /// One for each worker.
    numbers: AllNumbers,
    /// What is shown of it: 0 for no limit.
    limit: AtomicU32,
    /// What is shown of the controller.
    decision: AtomicU32,
    control: Mutex<Control>,
}

#[derive(Debug)]
struct Control {
    limit: Limit,
    controller: Controller,
    /// The last of each worker.
    reports: Vec<Report>,
    /// When the period began; none while no gate reports.
    since_us: Option<u64>,
    /// Counts at that time.
    before: Totals,
    /// The worst that was reported since.
    debt: Debt,
}

#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    commits: u64,
    statements: u64,
    queued: u64,
}

impl Admission {
    /// Without a limit, for so many workers.
    pub fn new(worker_count: usize) -> Arc<Self> {
        let quotas = (0..worker_count).map(|_| CachePadded::new(AtomicU32::new(NO_LIMIT)));
        Arc::new(Self {
            quotas: quotas.collect(),
            numbers: (0..worker_count).map(|_| CachePadded::default()).collect(),
            limit: AtomicU32::new(0),
            decision: AtomicU32::new(0),
            control: Mutex::new(Control {
                limit: Limit::Off,
                controller: new_controller(worker_count),
                reports: vec![Report::default(); worker_count],
                since_us: None,
                before: Totals::default(),
                debt: Debt::default(),
            }),
        })
    }

    /// Sets the limit. Who is inside stays there; who waits is let in at the next tick of its gate,
    /// if there is room now.
    pub fn set_limit(&self, limit: Limit) {
        let mut control = self.control.lock();
        if control.limit == limit {
            return;
        }
        control.limit = limit;
        control.controller = new_controller(self.quotas.len());
        control.since_us = None;
        self.divide(&control);
    }

    /// The limit now, if there is one.
    pub fn limit(&self) -> Option<u32> {
        // Relaxed: a number to be shown.
        let limit = self.limit.load(Ordering::Relaxed);
        (limit != 0).then_some(limit)
    }

    pub(crate) fn decision_number(&self) -> u64 {
        // Relaxed: a number to be shown.
        self.decision.load(Ordering::Relaxed).into()
    }

    pub(crate) fn quota(&self, index: usize) -> u32 {
        // Relaxed: a gate may follow a new limit a moment later.
        self.quotas[index].load(Ordering::Relaxed)
    }

    pub(crate) fn numbers(&self) -> &AllNumbers {
        &self.numbers
    }

    pub(crate) fn numbers_of(&self, index: usize) -> &GateNumbers {
        &self.numbers[index]
    }

    pub(crate) fn sum(&self, pick: impl Fn(&GateNumbers) -> &Level) -> u64 {
        let levels = self.numbers.iter().map(|it| u64::from(pick(it).value()));
        levels.sum()
    }

    /// Takes a gate's report; ends the period if it is over.
    pub(crate) fn report(&self, index: usize, report: Report, debt: Debt, now_us: u64) {
        let mut control = self.control.lock();
        control.reports[index] = report;
        control.debt = Debt {
            log: control.debt.log.max(debt.log),
            dirty: control.debt.dirty.max(debt.dirty),
            purge: control.debt.purge.max(debt.purge),
        };
        let is_any = control.reports.iter().any(|it| it.demand != 0);
        let span_us = control.since_us.map(|since| now_us.saturating_sub(since));
        let is_over = span_us.is_some_and(|span_us| PERIOD_US <= span_us);
        if is_over && let Some(span_us) = span_us {
            let sample = self.end_period(&mut control, span_us);
            if control.limit == Limit::Auto {
                control.controller.step(&sample);
            }
            self.divide(&control);
        }
        if !is_any {
            control.since_us = None;
        } else if is_over || control.since_us.is_none() {
            control.since_us = Some(now_us);
            control.before = self.totals();
        }
    }

    fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for numbers in self.numbers.iter() {
            totals.commits += numbers.commits.value();
            totals.statements += numbers.statements.value();
            totals.queued += numbers.queued.value();
        }
        totals
    }

    fn end_period(&self, control: &mut Control, span_us: u64) -> Sample {
        let (now, before) = (self.totals(), control.before);
        let sum = |pick: fn(&Report) -> u32| control.reports.iter().map(pick).sum();
        Sample {
            span_us,
            commits: now.commits - before.commits,
            statements: now.statements - before.statements,
            admitted: sum(|it| it.inside),
            blocked: sum(|it| it.blocked),
            waiting: sum(|it| it.waiting),
            queued: now.queued - before.queued,
            debt: std::mem::take(&mut control.debt),
        }
    }

    /// Divides the limit among the workers.
    fn divide(&self, control: &Control) {
        let limit = match control.limit {
            Limit::Off => NO_LIMIT,
            Limit::Auto => control.controller.limit(),
            Limit::Fixed(count) => count,
        };
        let shown = if limit == NO_LIMIT { 0 } else { limit };
        // Relaxed, here and below: numbers that stand for themselves.
        self.limit.store(shown, Ordering::Relaxed);
        self.decision
            .store(decision_number(control), Ordering::Relaxed);
        let demands: Vec<u32> = control.reports.iter().map(|it| it.demand).collect();
        for (quota, part) in self.quotas.iter().zip(parts(limit, &demands)) {
            quota.store(part, Ordering::Relaxed);
        }
    }
}

fn new_controller(worker_count: usize) -> Controller {
    let workers = stdx::to_u32(worker_count).max(1);
    let bounds = Bounds {
        min: MIN_PER_WORKER * workers,
        max: MAX_PER_WORKER.saturating_mul(workers),
    };
    Controller::new(bounds, START_PER_WORKER * workers)
}

fn decision_number(control: &Control) -> u32 {
    match (control.limit, control.controller.decision()) {
        (Limit::Off, _) => 0,
        (Limit::Fixed(_), _) => 1,
        (Limit::Auto, Decision::Free) => 2,
        (Limit::Auto, Decision::Searching) => 3,
        (Limit::Auto, Decision::Resting) => 4,
        (Limit::Auto, Decision::Paying) => 5,
    }
}

/// A limit in parts after demands. Each part is at least 1; else they add up to the limit.
fn parts(limit: u32, demands: &[u32]) -> Vec<u32> {
    if limit == NO_LIMIT {
        return vec![NO_LIMIT; demands.len()];
    }
    // One more for each: a worker whose first client comes now has asked for nothing yet.
    let mut left: u64 = demands.iter().map(|it| u64::from(*it) + 1).sum();
    let mut limit = u64::from(limit);
    let mut parts = Vec::with_capacity(demands.len());
    for demand in demands {
        let weight = u64::from(*demand) + 1;
        let part = (limit * weight / left).max(1);
        left -= weight;
        limit = limit.saturating_sub(part);
        parts.push(u32::try_from(part).unwrap_or(NO_LIMIT - 1));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_off_auto_or_a_number() {
        assert_eq!("OFF".parse(), Ok(Limit::Off));
        assert_eq!("Auto".parse(), Ok(Limit::Auto));
        assert_eq!("1".parse(), Ok(Limit::Fixed(1)));
        assert_eq!("100000".parse(), Ok(Limit::Fixed(LIMIT_MAX)));
        for text in ["0", "100001", "", "-1", "on"] {
            assert_eq!(text.parse::<Limit>(), Err(NoLimitText), "{text}");
        }
    }

    #[test]
    fn parts_follow_the_demand_and_add_up() {
        assert_eq!(parts(64, &[0, 0]), [32, 32]);
        assert_eq!(parts(64, &[100, 100]), [32, 32]);
        assert_eq!(parts(64, &[1000, 0]), [63, 1]);
        assert_eq!(parts(64, &[0, 1000]), [1, 63]);
        assert_eq!(parts(10, &[30, 20, 0, 10]).iter().sum::<u32>(), 10);
        assert_eq!(parts(1, &[5, 5, 5]), [1, 1, 1]);
        assert_eq!(parts(NO_LIMIT, &[5, 5]), [NO_LIMIT, NO_LIMIT]);
    }
}
