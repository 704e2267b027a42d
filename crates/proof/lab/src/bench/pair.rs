//! A server and its clients, measured in turns with all others of a run.
//!
//! If there are enough descriptors, the clients of all pairs are connected and warmed once, and are
//! paused except in their turns. Otherwise ([`connections_max`]) each pair connects for its part of
//! a round, is warmed and measured, and disconnects. So the connections of one server at a time
//! suffice. Rounds go through all pairs either way, so compared values are measured within minutes.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use env::Clock as _;
use env::linux::SystemClock;
use testkit::process::ThreadTimes;

use super::contestant::{ACCOUNTS, Contestant, Setup};
use super::point::Point;
use crate::generator::{Address, Generator, Shape, TPCC, connections_max};
use crate::sample::{Count, Sample};

/// How long and how often to measure.
#[derive(Clone, Debug)]
pub(super) struct Timing {
    /// Measurements of each point.
    pub(super) rounds: u32,
    /// Turns of a measurement.
    pub(super) turns: u64,
    /// Counted part of a turn.
    pub(super) turn: Duration,
    /// The uncounted beginning of a turn.
    pub(super) settle: Duration,
    /// The least uncounted time of connected clients, before all turns.
    pub(super) ramp: Duration,
    pub(super) processor: Processor,
    pub(super) order: Order,
}

/// How the processor time of a server is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Processor {
    /// In hundredths of a second, too coarse for short turns.
    Ticks,
    /// To the nanosecond, from each thread: for short turns, and servers with few threads.
    Threads,
}

/// The order in which pairs have their turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The same in each turn.
    Same,
    /// Every second turn in reverse, so that no pair always follows the same other.
    Mirrored,
}

/// After its clients have disconnected a server shows at most this many sessions: ours, and its
/// own.
const SESSIONS_LEFT: usize = 16;

/// How long a server may take to close its clients' sessions.
const LEAVE_TIME_MAX: Duration = Duration::from_secs(60);

/// The rates of an open loop, as percentages of a best throughput.
#[derive(Clone, Debug)]
pub(super) struct Rates {
    /// In percent.
    pub(super) percents: Vec<u32>,
    /// The best throughput of each server, in transactions a second.
    pub(super) best: Vec<(&'static str, f64)>,
}

/// The points of a workload, in a closed loop. Behind TPC-C the conditions of its standard hold.
pub(super) fn measure(
    setup: &Setup,
    timing: &Timing,
    contestants: &mut [&mut Contestant],
    workload: &str,
) -> Result<Vec<Point>> {
    let is_crowded = is_crowded(contestants);
    let mut pairs: Vec<Pair<'_>> = contestants
        .iter_mut()
        .map(|contestant| Pair::new(setup, timing, contestant, workload))
        .collect();
    if !is_crowded {
        for pair in &mut pairs {
            pair.connect().with_context(|| pair.told())?;
        }
    }
    for round in 0..timing.rounds {
        if is_crowded {
            for pair in &mut pairs {
                pair.round_alone().with_context(|| pair.told())?;
            }
        } else {
            for turn in 0..timing.turns {
                let is_back = timing.order == Order::Mirrored && (u64::from(round) + turn) % 2 == 1;
                take_turns(&mut pairs, is_back)?;
            }
        }
        pairs.iter_mut().for_each(Pair::end_round);
    }
    let points = pairs.into_iter().map(Pair::end).collect::<Result<_>>()?;
    if workload == TPCC {
        for contestant in contestants {
            contestant.check_tpcc()?;
        }
    }
    Ok(points)
}

/// The points of a workload in an open loop: all pairs for each rate, each with its own turns.
pub(super) fn measure_open(
    setup: &Setup,
    timing: &Timing,
    contestants: &mut [&mut Contestant],
    (workload, rates): (&str, &Rates),
) -> Result<Vec<Point>> {
    let mut pairs: Vec<Pair<'_>> = contestants
        .iter_mut()
        .map(|contestant| Pair::new(setup, timing, contestant, workload))
        .collect();
    let mut points: Vec<Point> = Vec::new();
    for _ in 0..timing.rounds {
        for pair in &mut pairs {
            let measured = pair.round_open(rates).with_context(|| pair.told())?;
            for point in measured {
                match points.iter_mut().find(|it| it.is_same(&point)) {
                    None => points.push(point),
                    // Rounds of one generation.
                    Some(known) => {
                        let samples = known.generations.iter_mut().zip(point.generations);
                        samples.for_each(|(known, more)| known.extend(more));
                    }
                }
            }
        }
    }
    Ok(points)
}

/// Whether there are too many clients to connect them all at once.
fn is_crowded(contestants: &[&mut Contestant]) -> bool {
    let all: u64 = contestants.iter().map(|it| u64::from(it.clients)).sum();
    let max = connections_max();
    if max < all {
        println!(
            "{all} clients are more than the {max} that fit into the limit of descriptors: the \
             connections of one server at a time"
        );
    }
    max < all
}

fn take_turns(pairs: &mut [Pair<'_>], is_back: bool) -> Result<()> {
    let one = |pair: &mut Pair<'_>| pair.take_turn().with_context(|| pair.told());
    match is_back {
        false => pairs.iter_mut().try_for_each(one),
        true => pairs.iter_mut().rev().try_for_each(one),
    }
}

struct Pair<'a> {
    setup: &'a Setup,
    timing: &'a Timing,
    contestant: &'a mut Contestant,
    /// The clients, while they are connected.
    generator: Option<Generator>,
    point: Point,
    /// Of the finished rounds.
    samples: Vec<Sample>,
    /// Of the current round.
    count: Count,
    /// Processor time of the server in the counted time.
    server_us: f64,
}

impl<'a> Pair<'a> {
    fn new(
        setup: &'a Setup,
        timing: &'a Timing,
        contestant: &'a mut Contestant,
        workload: &str,
    ) -> Self {
        let point = Point {
            workload: workload.to_owned(),
            clients: contestant.clients,
            server: contestant.name,
            percent: None,
            step_count: 1.0,
            generations: Vec::new(),
            shares: Vec::new(),
        };
        Self {
            setup,
            timing,
            contestant,
            generator: None,
            point,
            samples: Vec::new(),
            count: Count::default(),
            server_us: 0.0,
        }
    }

    fn told(&self) -> String {
        let Point {
            workload,
            clients,
            server,
            ..
        } = &self.point;
        format!("{workload}, {clients} clients, {server}")
    }

    /// Connects and warms the clients of a paused server.
    fn connect(&mut self) -> Result<()> {
        self.contestant.server.process().resume()?;
        let address = Address::Tcp(self.contestant.server.port());
        let Point {
            workload, clients, ..
        } = &self.point;
        let shape = Shape {
            account_count: ACCOUNTS,
            ..self.setup.load.shape(address, workload, *clients)
        };
        let mut generator = Generator::connect(&shape)?;
        self.point.step_count = generator.step_count();
        generator.warm(self.timing.ramp)?;
        self.generator = Some(generator);
        self.contestant.server.process().pause()
    }

    /// Lets server and clients run, at first uncounted.
    fn take_turn(&mut self) -> Result<()> {
        let generator = self.generator.as_mut().context("clients are connected")?;
        let process = self.contestant.server.process();
        process.resume()?;
        generator.run_uncounted(self.timing.settle)?;
        match self.timing.processor {
            Processor::Ticks => {
                let before_us = process.cpu_us()?;
                self.count.run(generator, self.timing.turn)?;
                self.server_us += stdx::u64_to_f64(process.cpu_us()?.saturating_sub(before_us));
                process.pause()
            }
            Processor::Threads => {
                // The times of a running thread lag by a tick of the kernel; those of a paused one
                // do not.
                process.pause()?;
                let before = ThreadTimes::of(process.id())?;
                process.resume()?;
                self.count.run(generator, self.timing.turn)?;
                process.pause()?;
                let used_ns = ThreadTimes::of(process.id())?.since_ns(&before);
                self.server_us += stdx::u64_to_f64(used_ns) / 1e3;
                Ok(())
            }
        }
    }

    /// Makes a sample of the turns of a round.
    fn end_round(&mut self) {
        let server_us = std::mem::take(&mut self.server_us);
        let sample = std::mem::take(&mut self.count).sample(server_us);
        if sample.per_second == 0.0 {
            println!("{}: no statement was answered in this round", self.told());
        }
        self.samples.push(sample);
    }

    /// The turns of a round whose clients connect and disconnect.
    fn round_alone(&mut self) -> Result<()> {
        self.connect()?;
        for _ in 0..self.timing.turns {
            self.take_turn()?;
        }
        self.disconnect()
    }

    /// Each rate of an open loop once, with clients that connect and disconnect.
    fn round_open(&mut self, rates: &Rates) -> Result<Vec<Point>> {
        let best = rates
            .best
            .iter()
            .find(|(name, _)| *name == self.point.server);
        let (_, best) = best.context("the best throughput of each server is known")?;
        self.connect()?;
        let mut points = Vec::new();
        for &percent in &rates.percents {
            let generator = self.generator.as_mut().context("clients are connected")?;
            generator.open(best * f64::from(percent) / 100.0);
            for _ in 0..self.timing.turns {
                self.take_turn()?;
            }
            self.end_round();
            points.push(Point {
                percent: Some(percent),
                generations: vec![std::mem::take(&mut self.samples)],
                ..self.point.clone()
            });
        }
        self.disconnect()?;
        points.iter_mut().for_each(|it| it.shares.clear());
        Ok(points)
    }

    /// Disconnects the clients, and waits until the server has noticed: it has room for the next
    /// ones.
    fn disconnect(&mut self) -> Result<()> {
        self.contestant.server.process().resume()?;
        if let Some(generator) = self.generator.take() {
            self.point.shares.push(generator.shares());
        }
        let mut client = self.contestant.server.connect()?;
        let begun_at = SystemClock.now();
        while SESSIONS_LEFT < client.rows("SHOW PROCESSLIST")?.len() {
            let took = SystemClock.now().since(begun_at);
            ensure!(took < LEAVE_TIME_MAX, "sessions stay when their clients go");
        }
        drop(client);
        self.contestant.server.process().pause()
    }

    /// Disconnects the clients that are still there.
    fn end(mut self) -> Result<Point> {
        if self.generator.is_some() {
            self.disconnect().with_context(|| self.told())?;
        }
        self.point.generations.push(self.samples);
        Ok(self.point)
    }
}
