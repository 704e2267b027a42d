//! Workers that serve in bursts, and what their sessions wait: the queue in a model of a gateway.
//!
//! A server with two processors takes 100 us for a statement. A worker handles what was answered
//! meanwhile in one turn, 30 us for each. Each answer frees its connection for the next session;
//! to another worker it is on its way for 2 ms. A client asks again 100 us after its answer.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::*;
use crate::queue::{Newcomer, Queue, Standing};

const SERVICE: Duration = Duration::from_micros(100);
const SERVERS: usize = 2;
const TURN: Duration = Duration::from_micros(30);
const TRANSIT: Duration = Duration::from_millis(2);
const THINKING: Duration = Duration::from_micros(100);

/// What happens before this is not counted.
const WARM: Duration = Duration::from_millis(300);
const END: Duration = Duration::from_millis(1_500);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A client of a worker asks.
    Asks(usize),
    /// The server has answered on a connection of a worker.
    Answered(usize),
    /// A worker has handled so many answers.
    Handled(usize, usize),
    /// A connection has come to a worker.
    Arrived(usize),
}

struct Model {
    queue: Queue<Instant>,
    /// By worker: connections that no session uses.
    idle: Vec<usize>,
    /// By worker: answers that it has not seen, and whether it handles some.
    answers: Vec<(usize, bool)>,
    /// When each processor of the server is free.
    free_at: [Instant; SERVERS],
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    number: u64,
    waits_us: Vec<u128>,
    moved: usize,
}

/// What was observed.
struct Outcome {
    /// Statements per millisecond.
    throughput: f64,
    /// 95th percentile of the waits, as a part of the mean wait of a queue that serves in order.
    p95: f64,
    /// The part of the connections that changed their worker.
    moved: f64,
}

/// `sessions` and `connections` of each worker, at the beginning.
fn run(sessions: &[usize], connections: &[usize]) -> Outcome {
    let start = at(0);
    let mut model = Model {
        queue: Queue::default(),
        idle: connections.to_vec(),
        answers: vec![(0, false); sessions.len()],
        free_at: [start; SERVERS],
        events: BinaryHeap::new(),
        number: 0,
        waits_us: Vec::new(),
        moved: 0,
    };
    for (worker, count) in connections.iter().enumerate() {
        (0..*count).for_each(|_| model.queue.hold(worker));
    }
    for (worker, count) in sessions.iter().enumerate() {
        for number in 0..*count {
            let later = Duration::from_micros(u64::try_from(number).unwrap());
            model.push(start + later, Event::Asks(worker));
        }
    }
    while let Some(Reverse((now, _, event))) = model.events.pop() {
        if start + END < now {
            break;
        }
        model.happen(now, event);
    }
    model.waits_us.sort_unstable();
    let count = model.waits_us.len();
    let number = |count: usize| stdx::u64_to_f64(stdx::to_u64(count));
    let millis = stdx::u64_to_f64(u64::try_from((END - WARM).as_millis()).unwrap());
    let throughput = number(count) / millis;
    let mean_us = 1e3 * number(sessions.iter().sum()) / throughput;
    let p95_us = u64::try_from(model.waits_us[count * 95 / 100]).unwrap();
    Outcome {
        throughput,
        p95: stdx::u64_to_f64(p95_us) / mean_us,
        moved: number(model.moved) / number(count),
    }
}

impl Model {
    fn push(&mut self, when: Instant, event: Event) {
        self.number += 1;
        self.events.push(Reverse((when, self.number, event)));
    }

    fn happen(&mut self, now: Instant, event: Event) {
        match event {
            Event::Asks(worker) => {
                if let Some(rest) = self.idle[worker].checked_sub(1) {
                    self.idle[worker] = rest;
                    self.request(worker, now);
                } else {
                    let newcomer = Newcomer {
                        login: login(0, 0),
                        standing: Standing::HoldsNone,
                        worker,
                        since: now,
                    };
                    self.queue.join(newcomer, now);
                }
            }
            Event::Answered(worker) => {
                self.answers[worker].0 += 1;
                self.handle(worker, now);
            }
            Event::Handled(worker, count) => {
                self.answers[worker].1 = false;
                for _ in 0..count {
                    self.push(now + THINKING, Event::Asks(worker));
                    self.give_back(worker, now);
                }
                self.handle(worker, now);
            }
            Event::Arrived(worker) => {
                self.queue.arrives();
                self.request(worker, now);
            }
        }
    }

    /// A worker begins a turn, if it is idle and something was answered.
    fn handle(&mut self, worker: usize, now: Instant) {
        let (count, is_busy) = self.answers[worker];
        if 0 < count && !is_busy {
            self.answers[worker] = (0, true);
            let turn = TURN * u32::try_from(count).unwrap();
            self.push(now + turn, Event::Handled(worker, count));
        }
    }

    fn request(&mut self, worker: usize, now: Instant) {
        let free_at = self.free_at.iter_mut().min().unwrap();
        *free_at = now.max(*free_at) + SERVICE;
        let answered_at = *free_at;
        self.push(answered_at, Event::Answered(worker));
    }

    fn give_back(&mut self, worker: usize, now: Instant) {
        let Some(left) = self.queue.leave_next(worker, now) else {
            self.idle[worker] += 1;
            return;
        };
        if at(0) + WARM < now {
            self.waits_us.push(now.since(left.waiter).as_micros());
        }
        if left.worker == worker {
            self.request(worker, now);
            return;
        }
        self.moved += 1;
        self.queue.let_go(worker);
        self.queue.hold(left.worker);
        self.queue.departs();
        self.push(now + TRANSIT, Event::Arrived(left.worker));
    }
}

/// The server is never idle, waits are about as in one line, and few connections move.
#[track_caller]
fn is_fair(sessions: &[usize], connections: &[usize], (p95_max, moved_max): (f64, f64)) {
    let Outcome {
        throughput,
        p95,
        moved,
    } = run(sessions, connections);
    let told = format!("{throughput:.2} a millisecond, p95 {p95:.2}, {moved:.4} moved");
    assert!(
        19.5 < throughput && p95 < p95_max && moved < moved_max,
        "{told}"
    );
}

#[test]
fn connections_are_shared_by_two_workers() {
    let limits = (1.1, 0.002);
    is_fair(&[1024, 1024], &[16, 16], limits);
    is_fair(&[1024, 1024], &[32, 0], limits);
    is_fair(&[1400, 648], &[16, 16], limits);
    is_fair(&[1024, 1024], &[16, 17], limits);
}

#[test]
fn more_workers_than_connections_take_turns() {
    let limits = (1.5, 0.03);
    is_fair(&[128; 16], &[[1; 8], [0; 8]].concat(), limits);
    is_fair(
        &[64; 32],
        &[[1; 8], [0; 8], [0; 8], [0; 8]].concat(),
        limits,
    );
    is_fair(&[128; 16], &[2; 16], limits);
}
