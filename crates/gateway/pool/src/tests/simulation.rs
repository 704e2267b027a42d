//! Sessions of several workers in an order that a seed decides, with drops, time-outs, failures,
//! and changes of limits and versions.
//!
//! After each step: the limits hold, each connection that was opened and not counted as closed is
//! open, and the waiters of a worker were served first come, first served. Whenever all that is
//! under way has arrived: no session waits beside an idle connection or a free place. At the end
//! all sessions were served, and nothing is left.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use super::*;
use crate::{AcquireError, Age, CloseReason, Wait};

const SESSION_COUNT: usize = 12;
const STEP_COUNT: usize = 600;
const SEED_COUNT: u64 = 40;

/// The unit of the simulated clock. A step takes a few of them, so that some sessions are late, and
/// some are not.
const TICK: Duration = Duration::from_micros(100);

/// What differs between the simulations.
#[derive(Debug, Clone, Copy)]
struct Setup {
    worker_count: usize,
    limits: Limits,
    seed: u64,
}

struct Session<'f> {
    worker: usize,
    age: Age,
    held: Vec<InUse>,
    wait: Option<Waiting<'f>>,
    bell: Arc<Bell>,
}

struct Waiting<'f> {
    wait: Wait<'f, Own, AtRest>,
    server: ServerId,
    worker: usize,
    /// Whether it held a connection when it began to wait.
    holds: bool,
    /// Another one was first in line when this one left it.
    must_be_victim: bool,
}

/// The line of a server as an observer sees it: sessions by their number.
#[derive(Default)]
struct Line {
    waiting: Vec<usize>,
    limits: Option<Limits>,
    /// Slots within and above the limit after the last step.
    slots: (u64, u64),
}

struct Simulation<'f> {
    setup: Setup,
    random: Random,
    now: Instant,
    fronts: &'f [TestedFront],
    servers: Vec<ServerId>,
    world: World,
    sessions: Vec<Session<'f>>,
    orders: Vec<Order<Own, AtRest>>,
    lines: BTreeMap<ServerId, Line>,
    victim_count: u64,
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        stdx::to_usize(self.next() % stdx::to_u64(bound))
    }

    fn is_one_of(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

#[test]
fn no_order_of_events_loses_a_wake_up_or_a_slot() {
    let mut victim_count = 0;
    let mut moved_count = 0;
    for worker_count in [2, 4] {
        for limit in [1, 2, 5] {
            for overflow in [0, limit] {
                for seed in 0..SEED_COUNT {
                    let setup = Setup {
                        worker_count,
                        limits: limits(limit, overflow),
                        seed,
                    };
                    let numbers = simulate(setup);
                    victim_count += numbers.victims;
                    moved_count += numbers.taken_waiting;
                }
            }
        }
    }
    // The rare branches were reached.
    assert!(100 < victim_count, "{victim_count}");
    assert!(5_000 < moved_count, "{moved_count}");
}

/// Runs one simulation, and returns the sum of what its servers count.
fn simulate(setup: Setup) -> crate::Numbers {
    let (fronts, first) = pool_of(setup.worker_count, setup.limits);
    let pool = Arc::clone(fronts[0].pool());
    let recycling = Recycling {
        age_max: 3_000 * TICK,
        idle_max: 300 * TICK,
        own_idle_max: 30 * TICK,
    };
    pool.set_recycling(first, recycling).unwrap();
    // Three, so that more than two sessions can close a cycle.
    let others = ["db2", "db3"].map(|it| pool.add_server(it, setup.limits, recycling));
    let servers = vec![first, others[0], others[1]];
    let mut simulation = Simulation::new(setup, &fronts, servers);
    for _ in 0..STEP_COUNT {
        simulation.step();
        simulation.observe();
        if simulation.random.is_one_of(40) {
            simulation.arrive();
        }
    }
    simulation.end();
    let live = Rc::clone(&simulation.world.live);
    let mut numbers = pool.numbers(first).unwrap();
    for other in others {
        let other = pool.numbers(other).unwrap();
        numbers.victims += other.victims;
        numbers.taken_waiting += other.taken_waiting;
    }
    // A victim may drop its wait before it knows.
    assert!(simulation.victim_count <= numbers.victims);
    assert!(fronts.iter().all(TestedFront::handed_is_empty));
    drop(simulation);
    drop(fronts);
    drop(pool);
    assert!(live.borrow().is_empty(), "{setup:?}");
    numbers
}

impl<'f> Simulation<'f> {
    fn new(setup: Setup, fronts: &'f [TestedFront], servers: Vec<ServerId>) -> Self {
        let session = |number| Session {
            worker: number % setup.worker_count,
            age: Age {
                began_at: at(0),
                session: stdx::to_u64(number),
            },
            held: Vec::new(),
            wait: None,
            bell: Arc::default(),
        };
        let line = || Line {
            limits: Some(setup.limits),
            ..Line::default()
        };
        Self {
            setup,
            random: Random(setup.seed),
            now: at(0),
            fronts,
            lines: servers.iter().map(|it| (*it, line())).collect(),
            servers,
            world: World::default(),
            sessions: (0..SESSION_COUNT).map(session).collect(),
            orders: Vec::new(),
            victim_count: 0,
        }
    }

    fn step(&mut self) {
        self.now = self.now + TICK * u32::try_from(self.random.next() % 8).unwrap();
        let number = self.random.below(SESSION_COUNT);
        match self.random.below(40) {
            0..16 => self.go_on(number),
            16..22 => self.give_back(number),
            22..28 => self.poll(number),
            28..31 => self.carry_out_one(),
            31..34 => self.answer(number % self.setup.worker_count),
            34 => self.give_up(number),
            35 => self.fail(number),
            36 => self.sweep(number),
            37 if self.random.is_one_of(4) => self.set_limits(),
            38 if self.random.is_one_of(8) => {
                let server = self.any_server();
                drop(self.fronts[0].pool().raise_version(server).unwrap());
            }
            _ => {}
        }
    }

    fn any_server(&mut self) -> ServerId {
        let place = self.random.below(self.servers.len());
        self.servers[place]
    }

    /// A session that does not wait asks for one more connection.
    fn go_on(&mut self, number: usize) {
        let server = self.any_server();
        let account = u32::try_from(self.random.below(2)).unwrap();
        let class = u32::from(self.random.is_one_of(6));
        let is_told = self.random.is_one_of(6);
        let client = is_told.then_some(IpAddr::from([10, 0, 0, 1]));
        let session = &self.sessions[number];
        let holds_it = |it: &InUse| it.slot.server_id() == server;
        if session.wait.is_some() || session.held.iter().any(holds_it) {
            return;
        }
        let slots: Vec<_> = session.held.iter().map(|it| &it.slot).collect();
        let holds = Holds::Slots {
            age: session.age,
            slots: &slots,
        };
        let request = Ask {
            login: Login {
                client,
                ..login(account, class)
            },
            holds,
            now: self.now,
        };
        match self.fronts[session.worker].ask(server, request) {
            Ok(Answer::Granted(acquired)) => {
                if session.held.is_empty() {
                    let others = &self.lines[&server].waiting;
                    assert!(others.is_empty(), "a newcomer overtook: {:?}", self.setup);
                }
                self.granted(number, acquired);
            }
            Ok(Answer::Waits(wait)) => {
                self.lines.get_mut(&server).unwrap().waiting.push(number);
                self.sessions[number].wait = Some(Waiting {
                    wait,
                    server,
                    worker: self.sessions[number].worker,
                    holds: !self.sessions[number].held.is_empty(),
                    must_be_victim: false,
                });
                // A task is polled once before it sleeps.
                self.sessions[number].bell.0.store(true, Ordering::Relaxed);
                self.observe();
                self.poll(number);
            }
            Err(AcquireError::Victim { .. }) => {
                self.victim_count += 1;
                self.roll_back(number);
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn granted(&mut self, number: usize, acquired: Acquired<Own, AtRest>) {
        let worker = self.sessions[number].worker;
        if self.random.is_one_of(20) {
            // The session ends before it has used what it got.
            return;
        }
        let in_use = self.world.prepare(worker, acquired, self.now);
        self.sessions[number].held.push(in_use);
    }

    fn give_back(&mut self, number: usize) {
        let session = &mut self.sessions[number];
        if session.wait.is_none()
            && let Some(InUse { slot, own }) = session.held.pop()
        {
            let order = self.fronts[session.worker].release(slot, own, self.now);
            self.note(order);
        }
    }

    /// Closes what is to be closed. The rest is carried out later, in any order.
    fn note(&mut self, orders: impl IntoIterator<Item = Order<Own, AtRest>>) {
        let orders = orders.into_iter();
        let is_open = |it: &Order<Own, AtRest>| matches!(it, Order::HandOver(..));
        self.orders.extend(orders.filter(is_open));
    }

    fn roll_back(&mut self, number: usize) {
        while !self.sessions[number].held.is_empty() {
            self.give_back(number);
        }
    }

    /// Polls a session if it was woken.
    fn poll(&mut self, number: usize) {
        let session = &mut self.sessions[number];
        let Some(waiting) = &mut session.wait else {
            return;
        };
        if !session.bell.take() {
            return;
        }
        let waker = Waker::from(Arc::clone(&session.bell));
        let poll = Pin::new(&mut waiting.wait).poll(&mut Context::from_waker(&waker));
        let Poll::Ready(result) = poll else {
            return;
        };
        let must_be_victim = waiting.must_be_victim;
        session.wait = None;
        self.ended(number, result, must_be_victim);
    }

    fn ended(
        &mut self,
        number: usize,
        result: Result<Acquired<Own, AtRest>, AcquireError>,
        must_be_victim: bool,
    ) {
        match result {
            Ok(acquired) => {
                assert!(!must_be_victim, "a waiter overtook: {:?}", self.setup);
                self.granted(number, acquired);
            }
            Err(AcquireError::Victim { .. }) => {
                self.victim_count += 1;
                self.roll_back(number);
            }
            Err(AcquireError::TimedOut { .. }) => self.roll_back(number),
            Err(error) => panic!("{error}"),
        }
    }

    /// A session drops its wait, or its time is over.
    fn give_up(&mut self, number: usize) {
        let Some(mut waiting) = self.sessions[number].wait.take() else {
            return;
        };
        let line = self.lines.get_mut(&waiting.server).unwrap();
        line.waiting.retain(|it| *it != number);
        if self.random.is_one_of(2) {
            drop(waiting);
        } else {
            let result = waiting.wait.time_out();
            self.ended(number, result, waiting.must_be_victim);
        }
    }

    /// A connection fails in use: the session opens another one, closes it, or dies.
    fn fail(&mut self, number: usize) {
        let session = &mut self.sessions[number];
        let Some(InUse { mut slot, own }) = session.held.pop() else {
            return;
        };
        drop(own);
        match self.random.below(3) {
            0 => {
                slot.closed(CloseReason::Stale);
                // The new one is of the slot's version, which may be void by now.
                let own = self.world.open(session.worker, &mut slot, self.now);
                session.held.push(InUse { slot, own });
            }
            1 => slot.close(CloseReason::Failed),
            _ => drop(slot),
        }
    }

    fn carry_out_one(&mut self) {
        if self.orders.is_empty() {
            return;
        }
        let place = self.random.below(self.orders.len());
        let order = self.orders.swap_remove(place);
        if let Order::HandOver(own, ticket) = order {
            match self.random.below(12) {
                0 => {
                    drop(own);
                    ticket.failed();
                }
                1 => drop((own, ticket)),
                _ => drop(ticket.deliver(AtRest(own.connection), self.now)),
            }
        }
    }

    fn answer(&mut self, worker: usize) {
        if is_asked(&self.fronts[worker]) {
            let orders = self.fronts[worker].answer(self.now);
            self.note(orders);
        }
    }

    fn sweep(&mut self, number: usize) {
        let worker = number % self.setup.worker_count;
        self.note(self.fronts[worker].sweep(self.now));
        drop(self.fronts[worker].pool().sweep(self.now));
    }

    fn set_limits(&mut self) {
        let server = self.any_server();
        let limit = u32::try_from(self.random.below(5)).unwrap();
        let overflow = u32::try_from(self.random.below(3)).unwrap();
        self.limit(server, limits(limit, overflow));
    }

    fn limit(&mut self, server: ServerId, limits: Limits) {
        drop(self.fronts[0].pool().set_limits(server, limits).unwrap());
        self.lines.get_mut(&server).unwrap().limits = Some(limits);
    }

    /// What holds after each step.
    fn observe(&mut self) {
        for (server, line) in &mut self.lines {
            let pool = self.fronts[0].pool();
            pool.server(*server).unwrap().check();
            let numbers = pool.numbers(*server).unwrap();
            let Limits {
                limit, overflow, ..
            } = line.limits.unwrap();
            let slots = (numbers.open - numbers.open_above, numbers.open_above);
            assert!(
                slots.0 <= line.slots.0.max(u64::from(limit)),
                "{:?}",
                self.setup
            );
            assert!(
                slots.1 <= line.slots.1.max(u64::from(overflow)),
                "{:?}",
                self.setup
            );
            line.slots = slots;
            let live = self.world.live_count(*server);
            assert_eq!(
                numbers.opened - numbers.closed_count(),
                live,
                "{:?}",
                self.setup
            );
            observe_line(line, &mut self.sessions);
        }
    }

    /// All that is under way arrives; then nobody waits for what is there.
    fn arrive(&mut self) {
        loop {
            let mut is_done = self.orders.is_empty();
            while !self.orders.is_empty() {
                carry_out(self.orders.remove(0), self.now);
                self.observe();
            }
            for worker in 0..self.setup.worker_count {
                is_done &= !is_asked(&self.fronts[worker]);
                self.note(self.fronts[worker].answer(self.now));
                self.observe();
            }
            for number in 0..SESSION_COUNT {
                let was_waiting = self.sessions[number].wait.is_some();
                self.poll(number);
                is_done &= was_waiting == self.sessions[number].wait.is_some();
                self.observe();
            }
            if is_done && self.orders.is_empty() {
                break;
            }
        }
        for waiting in self.sessions.iter().filter_map(|it| it.wait.as_ref()) {
            assert!(
                waiting.wait.is_waiting(),
                "a lost wake-up: {:?}",
                self.setup
            );
            let numbers = self.fronts[0].pool().numbers(waiting.server).unwrap();
            assert_eq!(numbers.idle, 0, "{:?}", self.setup);
            let limits = self.lines[&waiting.server].limits.unwrap();
            let within = numbers.open - numbers.open_above;
            assert!(u64::from(limits.limit) <= within, "{:?}", self.setup);
        }
    }

    /// Sessions finish what they do; all are served in as many rounds as there are sessions.
    fn end(&mut self) {
        for server in self.servers.clone() {
            let overflow = self.setup.limits.overflow;
            self.limit(server, limits(1, overflow));
            self.observe();
        }
        for _ in 0..=SESSION_COUNT {
            self.arrive();
            for number in 0..SESSION_COUNT {
                if self.sessions[number].wait.is_none() {
                    self.roll_back(number);
                }
                self.observe();
            }
        }
        self.arrive();
        for session in &self.sessions {
            let is_idle = session.wait.is_none() && session.held.is_empty();
            assert!(is_idle, "a session starves: {:?}", self.setup);
        }
        for server in &self.servers {
            let numbers = self.fronts[0].pool().numbers(*server).unwrap();
            assert_eq!(numbers.waiting, 0);
            assert_eq!(
                numbers.open, numbers.idle,
                "a slot is lost: {:?}",
                self.setup
            );
        }
    }
}

/// Who has left the line was the first of its worker, or the first of those that hold a connection.
fn observe_line(line: &mut Line, sessions: &mut [Session<'_>]) {
    let mut ahead_holding = false;
    let mut ahead = Vec::new();
    let mut remaining = Vec::new();
    for number in std::mem::take(&mut line.waiting) {
        let waiting = sessions[number].wait.as_mut();
        // A verdict is seen here before the session is polled.
        let waiting = waiting.expect("who has left the line has a verdict");
        if waiting.wait.is_waiting() {
            ahead.push(waiting.worker);
            ahead_holding |= waiting.holds;
            remaining.push(number);
        } else if ahead.contains(&waiting.worker) {
            assert!(waiting.holds, "a waiter overtook");
            waiting.must_be_victim |= ahead_holding;
        }
    }
    line.waiting = remaining;
}
