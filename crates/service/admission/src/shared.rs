//! [`Admission`]: what the gates of all workers share: the limit, and its parts.
//!
//! A worker's quota is one atomic number, which its gate reads at each entry. Gates report at their
//! ticks, under a small mutex. The first report after the end of a period takes a step of the
//! controller, and quotas are raised or lowered to the new limit.
//!
//! Between periods units of quota move to where they are needed:
//!
//! ```text
//!   a gate needs room, and another one has some and no waiters --take--> half of that room
//!   a place is free, and the first waiter of another came earlier --give--> one unit, and a call
//! ```
//!
//! So all lines together are nearly one, first come first served. While no one waits, each worker
//! writes memory of its own alone.
//!
//! (A1) The quotas add up to the limit, or to one for each worker if that is more. Between two
//! periods they may differ from it by those units that move at the moment.
//! (A2) A worker keeps one unit at least. So its line moves, whatever others do.
//! (A3) Before a gate lets a waiter in, it looks at one other worker, each time at the next one. If
//! that worker's first waiter came [`DRIFT_US`] earlier, the place is given to it, unless it has
//! `GIVEN_MAX` places that it has not used yet. What follows is measured in `tests/fairness.rs`.
//!
//! No gate lets another one's waiters in: they belong to its worker. It calls that worker's task
//! ([`Gate::called`](crate::Gate::called)). Refused: quotas after the number of clients alone. A
//! worker that is slow for a moment then has the same part, and does less with it, so its clients
//! wait some times as long as others. Refused, too: a gate that takes places at the ends of its own
//! transactions. One with a single transaction inside comes to that too seldom.

use std::str::FromStr;
use std::sync::Arc;

use sync::atomic::{AtomicU32, Ordering};
use sync::{CachePadded, Mutex, Notify};

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

/// A first waiter that came so much earlier than that of another worker is let in before it. With
/// less, units would move to and fro for differences that no client notices.
pub const DRIFT_US: u64 = 1_000;
/// Places that a worker is given before it has used them. A call takes some microseconds, or a turn
/// if the worker is busy.
const GIVEN_MAX: u32 = 2;

/// A period that lasted longer is no sample: the process stood still, or its ticks came late. What
/// was done in it says nothing about the limit.
const SPAN_US_MAX: u64 = 5 * PERIOD_US;

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
    /// How many workers have waiters. It is written when a line begins and when it ends, so while
    /// no one waits all workers have it in their caches.
    lines: CachePadded<AtomicU32>,
    /// One for each worker: it has got quota.
    calls: Box<[CachePadded<Notify>]>,
    control: Mutex<Control>,
}

#[derive(Debug)]
struct Control {
    limit: Limit,
    controller: Controller,
    /// The most that each worker had inside and waiting; 0 if it does not report.
    demands: Vec<u32>,
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
    lost_statements: u64,
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
            lines: CachePadded::new(AtomicU32::new(0)),
            calls: (0..worker_count).map(|_| CachePadded::default()).collect(),
            control: Mutex::new(Control {
                limit: Limit::Off,
                controller: new_controller(worker_count),
                demands: vec![0; worker_count],
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

    /// How many may be inside on a worker.
    pub(crate) fn quota(&self, index: usize) -> u32 {
        // Relaxed: a gate may follow a new limit a moment later.
        self.quotas[index].load(Ordering::Relaxed)
    }

    /// How many workers there are.
    pub(crate) fn worker_count(&self) -> usize {
        self.quotas.len()
    }

    /// A worker's line begins.
    pub(crate) fn note_line(&self) {
        // Relaxed, as the other two: who misses a line now sees it at its next look.
        self.lines.fetch_add(1, Ordering::Relaxed);
    }

    /// A worker's line is empty again.
    pub(crate) fn note_end_of_line(&self) {
        let before = self.lines.fetch_sub(1, Ordering::Relaxed);
        assert!(before != 0, "a line that ends has begun");
    }

    /// Whether any worker has waiters.
    pub(crate) fn is_any_line(&self) -> bool {
        self.lines.load(Ordering::Relaxed) != 0
    }

    /// Where a worker waits for quota.
    pub(crate) fn call(&self, index: usize) -> &Notify {
        &self.calls[index]
    }

    /// Takes half of the room of worker `from` for worker `to`. Returns false if there is none. The
    /// numbers may be old: then units move in vain, and come back in the same way.
    pub(crate) fn take(&self, from: usize, to: usize) -> bool {
        let numbers = self.numbers_of(from);
        let (quota, inside) = (self.quota(from), numbers.inside.value());
        if quota == NO_LIMIT || numbers.waiting.value() != 0 {
            return false;
        }
        let count = quota.saturating_sub(inside).div_ceil(2);
        self.move_units(from, to, count.min(quota.saturating_sub(1)))
    }

    /// The room that worker `index` could take of all others.
    pub(crate) fn room_beside(&self, index: usize) -> u32 {
        let room_of = |it: usize| {
            let (numbers, quota) = (self.numbers_of(it), self.quota(it));
            let is_none = quota == NO_LIMIT || numbers.waiting.value() != 0;
            let kept = numbers.inside.value().max(1);
            if is_none {
                0
            } else {
                quota.saturating_sub(kept)
            }
        };
        let others = (0..self.worker_count()).filter(|it| *it != index);
        others.map(room_of).fold(0, u32::saturating_add)
    }

    /// Gives a unit of worker `from`, whose first waiter came at `since_us`, to worker `to` if that
    /// one's first waiter came earlier (A3). Returns whether it did.
    pub(crate) fn give(&self, from: usize, to: usize, since_us: u64) -> bool {
        let numbers = self.numbers_of(to);
        let is_earlier = numbers
            .first_us
            .value()
            .is_some_and(|it| it + DRIFT_US < since_us);
        if !is_earlier || self.quota(from) <= 1 {
            return false;
        }
        let used = numbers.inside.value().saturating_add(GIVEN_MAX);
        let is_given = self.quota(to) < used && self.move_units(from, to, 1);
        if is_given {
            self.calls[to].notify();
        }
        is_given
    }

    fn move_units(&self, from: usize, to: usize, count: u32) -> bool {
        let fewer = |quota| match quota {
            NO_LIMIT => None,
            // (A2).
            quota => (count < quota).then(|| quota - count),
        };
        // Relaxed, as all of them.
        let (quotas, order) = (&self.quotas, Ordering::Relaxed);
        let is_taken = count != 0 && quotas[from].fetch_update(order, order, fewer).is_ok();
        if is_taken {
            change(&quotas[to], |quota| quota + count);
        }
        is_taken
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

    /// How many are inside or wait.
    pub(crate) fn present(&self) -> u64 {
        self.sum(|it| &it.inside) + self.sum(|it| &it.waiting)
    }

    /// How many leave, in the unit of the gates.
    pub(crate) fn rate(&self) -> u64 {
        self.numbers.iter().map(|it| it.rate.value()).sum()
    }

    /// Takes a gate's report: the most that it had inside and waiting, 0 if it reports no more.
    /// Ends the period if it is over.
    pub(crate) fn report(&self, index: usize, demand: u32, debt: Debt, now_us: u64) {
        let mut control = self.control.lock();
        control.demands[index] = demand;
        if control.since_us.is_none() {
            // What was reported before belongs to no period.
            control.debt = Debt::default();
        }
        control.debt = Debt {
            log: control.debt.log.max(debt.log),
            dirty: control.debt.dirty.max(debt.dirty),
            purge: control.debt.purge.max(debt.purge),
        };
        let is_any = control.demands.iter().any(|it| *it != 0);
        let span_us = control.since_us.map(|since| now_us.saturating_sub(since));
        let is_over = span_us.is_some_and(|span_us| PERIOD_US <= span_us);
        if is_over && let Some(span_us) = span_us {
            let sample = self.end_period(&mut control, span_us);
            if control.limit == Limit::Auto && span_us <= SPAN_US_MAX {
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
            totals.lost_statements += numbers.lost_statements.value();
            totals.queued += numbers.queued.value();
        }
        totals
    }

    fn end_period(&self, control: &mut Control, span_us: u64) -> Sample {
        let (now, before) = (self.totals(), control.before);
        let sum = |pick: fn(&GateNumbers) -> &Level| {
            let levels = self.numbers.iter().map(|it| pick(it).value());
            levels.fold(0, u32::saturating_add)
        };
        Sample {
            span_us,
            commits: now.commits - before.commits,
            statements: (now.statements - before.statements)
                .saturating_sub(now.lost_statements - before.lost_statements),
            admitted: sum(|it| &it.inside),
            blocked: Some(sum(|it| &it.blocked)),
            waiting: sum(|it| &it.waiting),
            queued: now.queued - before.queued,
            debt: std::mem::take(&mut control.debt),
        }
    }

    /// Divides the limit among the workers (A1, A2). What they have is kept where that is possible:
    /// it shows where transactions are inside. A rise goes to those who have waiters.
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
        let quotas: Vec<u32> = (0..self.worker_count()).map(|it| self.quota(it)).collect();
        let counts = |pick: fn(&GateNumbers) -> u32| -> Vec<u32> {
            self.numbers.iter().map(|it| pick(it)).collect()
        };
        let all = counts(|it| 1 + it.inside.value() + it.waiting.value());
        if limit == NO_LIMIT || quotas.contains(&NO_LIMIT) {
            for (quota, part) in self.quotas.iter().zip(first_parts(limit, &all)) {
                quota.store(part, Ordering::Relaxed);
            }
            self.calls.iter().for_each(|it| it.notify());
            return;
        }
        let waiting = counts(|it| it.waiting.value());
        let is_any = waiting.iter().any(|it| *it != 0);
        let parts = next_parts(limit, &quotas, if is_any { &waiting } else { &all });
        for (index, (before, part)) in quotas.into_iter().zip(parts).enumerate() {
            // Units that move at this moment are not lost.
            let changed = |quota: u32| (quota + part).saturating_sub(before).max(1);
            change(&self.quotas[index], changed);
            if before < part && waiting[index] != 0 {
                self.calls[index].notify();
            }
        }
    }
}

/// Changes a quota, if there is a limit.
fn change(quota: &AtomicU32, to: impl Fn(u32) -> u32) {
    let changed = |quota| (quota != NO_LIMIT).then(|| to(quota));
    // Relaxed: it stands for itself. It fails if there is no limit any more.
    let _ = quota.fetch_update(Ordering::Relaxed, Ordering::Relaxed, changed);
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

/// Quotas where there were none: one each, and the rest by how many each has.
fn first_parts(limit: u32, all: &[u32]) -> Vec<u32> {
    if limit == NO_LIMIT {
        return vec![NO_LIMIT; all.len()];
    }
    next_parts(limit, &vec![1; all.len()], all)
}

/// Quotas of at least 1 that add up to the limit, if that is possible. A rise is shared out by
/// weights, and a fall by what each has.
fn next_parts(limit: u32, quotas: &[u32], weights: &[u32]) -> Vec<u32> {
    let total = quotas.iter().copied().fold(0, u32::saturating_add);
    if total <= limit {
        let rises = shares(limit - total, weights);
        return quotas.iter().zip(rises).map(|(it, by)| it + by).collect();
    }
    let spare: Vec<u32> = quotas.iter().map(|it| it.saturating_sub(1)).collect();
    let spare_total = spare.iter().copied().fold(0, u32::saturating_add);
    let falls = shares((total - limit).min(spare_total), &spare);
    let fallen = quotas.iter().zip(falls);
    fallen
        .map(|(it, by)| it.saturating_sub(by).max(1))
        .collect()
}

/// A count in shares after weights. They add up to it, if there is any weight. No share is greater
/// than its weight if the count is not greater than all of them.
fn shares(count: u32, weights: &[u32]) -> Vec<u32> {
    let mut weights_left: u64 = weights.iter().map(|it| u64::from(*it)).sum();
    let mut left = u64::from(count);
    let mut shares = Vec::with_capacity(weights.len());
    for weight in weights {
        let weight = u64::from(*weight);
        let share = (left * weight).checked_div(weights_left).unwrap_or(0);
        weights_left -= weight;
        left -= share;
        shares.push(u32::try_from(share).unwrap_or(count));
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Entry, Gate, Visitor};

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
    fn first_parts_follow_the_clients_and_add_up() {
        assert_eq!(first_parts(64, &[1, 1]), [32, 32]);
        assert_eq!(first_parts(64, &[101, 101]), [32, 32]);
        assert_eq!(first_parts(64, &[1001, 1]), [62, 2]);
        assert_eq!(first_parts(64, &[1, 1001]), [1, 63]);
        assert_eq!(first_parts(10, &[31, 21, 1, 11]).iter().sum::<u32>(), 10);
        assert_eq!(first_parts(1, &[5, 5, 5]), [1, 1, 1]);
        assert_eq!(first_parts(NO_LIMIT, &[5, 5]), [NO_LIMIT, NO_LIMIT]);
    }

    #[test]
    fn a_rise_goes_to_those_who_wait_and_a_fall_is_shared() {
        assert_eq!(next_parts(64, &[48, 16], &[9, 9]), [48, 16]);
        assert_eq!(next_parts(84, &[48, 16], &[9, 9]), [58, 26]);
        assert_eq!(next_parts(84, &[48, 16], &[0, 9]), [48, 36]);
        assert_eq!(next_parts(32, &[49, 17], &[9, 9]), [24, 8]);
        assert_eq!(next_parts(2, &[49, 1, 1], &[9, 9, 9]), [1, 1, 1]);
        assert_eq!(next_parts(8, &[1, 1, 1], &[0, 0, 9]), [1, 1, 6]);
        for limit in 3..200 {
            let parts = next_parts(limit, &[40, 1, 23], &[5, 0, 7]);
            assert_eq!(parts.iter().sum::<u32>(), limit);
            assert!(parts.iter().all(|it| 1 <= *it), "{limit}: {parts:?}");
        }
    }

    /// Two workers with a limit; `inside` and `first_us` of both.
    fn two(limit: u32, inside: [u32; 2], first_us: [Option<u64>; 2]) -> Arc<Admission> {
        let shared = Admission::new(2);
        shared.set_limit(Limit::Fixed(limit));
        for index in 0..2 {
            let numbers = shared.numbers_of(index);
            (0..inside[index]).for_each(|_| numbers.inside.raise());
            numbers.first_us.set(first_us[index]);
            first_us[index].iter().for_each(|_| numbers.waiting.raise());
        }
        shared
    }

    fn quotas(shared: &Admission) -> [u32; 2] {
        [shared.quota(0), shared.quota(1)]
    }

    #[test]
    fn half_of_the_room_of_those_who_do_not_wait_is_taken() {
        let shared = two(64, [2, 32], [None, Some(0)]);
        assert!(shared.take(0, 1));
        assert_eq!(quotas(&shared), [17, 47]);
        while shared.take(0, 1) {}
        assert_eq!(quotas(&shared), [2, 62], "there is no room left");
        let shared = two(64, [0, 32], [None, Some(0)]);
        while shared.take(0, 1) {}
        assert_eq!(quotas(&shared), [1, 63], "one remains (A2)");
        assert!(!shared.take(1, 0), "those who wait need theirs");
    }

    #[test]
    fn places_are_given_to_those_who_came_earlier() {
        let late = DRIFT_US + 1;
        let shared = two(64, [31, 32], [Some(late), Some(0)]);
        assert!(!shared.give(1, 0, 0), "they came later");
        assert!(!shared.give(0, 1, DRIFT_US), "not by much");
        assert!(shared.give(0, 1, late) && shared.give(0, 1, late));
        assert_eq!(quotas(&shared), [30, 34]);
        assert!(!shared.give(0, 1, late), "none of them was used yet");
        shared.numbers_of(1).inside.raise();
        assert!(shared.give(0, 1, late));
        assert_eq!(quotas(&shared), [29, 35]);
        let shared = two(2, [0, 1], [Some(late), Some(0)]);
        assert!(!shared.give(0, 1, late), "one remains (A2)");
    }

    #[test]
    fn what_the_others_have_room_for_is_what_can_be_taken() {
        let shared = two(64, [2, 32], [None, Some(0)]);
        assert_eq!((shared.room_beside(0), shared.room_beside(1)), (0, 30));
        let shared = two(64, [0, 0], [None, None]);
        assert_eq!((shared.room_beside(0), shared.room_beside(1)), (31, 31));
        shared.set_limit(Limit::Off);
        assert_eq!(shared.room_beside(0), 0);
    }

    #[test]
    fn statements_of_lost_transactions_are_lost() {
        let shared = Admission::new(1);
        shared.set_limit(Limit::Fixed(4));
        let gate = Gate::new(Arc::clone(&shared), 0);
        let two_statements = || {
            let entry = gate.enter(|| Visitor::Client, || 0);
            let Entry::Inside(mut pass) = entry else {
                panic!("there is room: {entry:?}");
            };
            (0..2).for_each(|_| pass.count_statement());
            pass
        };
        let told = || {
            let totals = shared.totals();
            (totals.commits, totals.statements, totals.lost_statements)
        };
        two_statements().commit();
        two_statements().roll_back();
        assert_eq!(told(), (1, 4, 0));
        drop(two_statements());
        assert_eq!(told(), (1, 6, 2));
        let pass = two_statements();
        gate.tick(PERIOD_US, Debt::default());
        drop(pass);
        assert_eq!(told(), (1, 8, 2), "they are of another period");
    }

    #[test]
    fn a_debt_counts_in_its_own_period_alone() {
        let shared = Admission::new(2);
        shared.set_limit(Limit::Auto);
        let debt = Debt {
            log: 1.0,
            ..Debt::default()
        };
        shared.report(0, 0, debt, 0);
        shared.report(0, 40, Debt::default(), 5 * PERIOD_US);
        shared.report(0, 40, Debt::default(), 6 * PERIOD_US);
        assert_eq!(shared.limit(), Some(2 * START_PER_WORKER));
        shared.report(0, 40, debt, 7 * PERIOD_US);
        assert!(shared.limit() < Some(2 * START_PER_WORKER));
    }

    #[test]
    fn a_period_in_which_the_process_stood_still_is_no_sample() {
        let debt = Debt {
            log: 1.0,
            ..Debt::default()
        };
        for (span_us, counts) in [(SPAN_US_MAX, true), (SPAN_US_MAX + 1, false)] {
            let shared = Admission::new(2);
            shared.set_limit(Limit::Auto);
            shared.report(0, 40, Debt::default(), 0);
            shared.report(0, 40, debt, span_us);
            let has_fallen = shared.limit() < Some(2 * START_PER_WORKER);
            assert_eq!(has_fallen, counts, "{span_us} us");
        }
    }

    #[test]
    fn nothing_moves_without_a_limit() {
        let shared = two(64, [0, 32], [None, Some(0)]);
        shared.set_limit(Limit::Off);
        assert!(!shared.take(0, 1) && !shared.give(0, 1, u64::MAX));
        change(&shared.quotas[1], |quota| quota + 1);
        assert_eq!(quotas(&shared), [NO_LIMIT; 2]);
    }
}
