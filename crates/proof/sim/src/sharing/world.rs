//! [`World`]: servers, workers and sessions, and what happens to them.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use connection_state::Origin;
use env::{Instant, Random};
use monitor::{Rules, ServerId, ServerMap};
use pool::{Age, Front, Order, ServerId as PoolId, Slot, Wait};
use router::{History, Judge, Plan, Session};
use wire::StatusFlags;

use super::bell::Bell;
use super::cluster::{self, Cluster, Connection, Shared};
use super::program::{Line, Scene};
use super::{Mistake, SERVER_COUNT, SESSION_COUNT, SharingOptions, SharingTally};

/// A connection of one worker.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) worker: usize,
    pub(super) connection: Connection,
}

/// A connection at rest.
#[derive(Debug)]
pub(super) struct AtRest(pub(super) Connection);

/// A session's connection to a server.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) slot: Slot<AtRest>,
    pub(super) own: Own,
}

/// A unit of the clock. A step takes a few of them, so that some sessions are late for the pool,
/// and some are not.
pub(super) const TICK: Duration = Duration::from_micros(100);

/// How long a session waits for a connection or a server: some hundred steps.
pub(super) const WAIT_TIME: Duration = Duration::from_millis(60);

/// Statements of a client before it leaves.
pub(super) const PROGRAM_LINES: u32 = 40;

/// Statements of a client in the end, which everyone has to reach.
pub(super) const LAST_LINES: u32 = 6;

/// Rounds that a statement may take beside those of others: it asks for a connection, gets it when
/// that has moved, runs, and its connection comes back.
pub(super) const STATEMENT_ROUNDS: u32 = 6;

/// A session, and what its client does.
pub(super) struct Player<'f> {
    pub(super) worker: usize,
    pub(super) age: Age,
    pub(super) session: Session,
    /// What it has set, and the value of that.
    pub(super) history: History,
    pub(super) variable: Option<u64>,
    pub(super) lanes: BTreeMap<usize, Lane>,
    pub(super) phase: Phase<'f>,
    pub(super) bell: Arc<Bell>,
    pub(super) statement: Option<Statement>,
    pub(super) scene: Scene,
    pub(super) left: u32,
    /// The connections that its transaction was begun on, by their places.
    pub(super) begun: BTreeMap<usize, u64>,
    /// The last write that it was told of.
    pub(super) wrote: u64,
}

/// What a session does now.
pub(super) enum Phase<'f> {
    Idle,
    /// No server was there for its statement by the map of this version.
    Finds {
        since: Instant,
        version: u64,
    },
    Waits(Waiting<'f>),
    Runs {
        place: usize,
    },
    /// Its client has left for good.
    Done,
}

/// A session that waits for a connection.
pub(super) struct Waiting<'f> {
    pub(super) wait: Wait<'f, Own, AtRest>,
    pub(super) place: usize,
    pub(super) since: Instant,
    /// Whether it held a connection when it began to wait.
    pub(super) holds: bool,
    /// Another one should have been served before.
    pub(super) has_overtaken: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Statement {
    pub(super) line: Line,
    pub(super) plan: Plan,
    pub(super) failed: Option<ServerId>,
    /// The primary, when its server was chosen.
    pub(super) primary: Option<ServerId>,
}

/// See the module's head.
pub(super) struct World<'f> {
    pub(super) options: SharingOptions,
    pub(super) random: Random,
    pub(super) now: Instant,
    pub(super) fronts: &'f [Front<Own, AtRest>],
    pub(super) ids: Vec<PoolId>,
    pub(super) judges: Vec<Judge>,
    pub(super) cluster: Shared,
    /// Of all sessions.
    pub(super) origin: Arc<Origin>,
    pub(super) map: ServerMap,
    /// Rises with each change of the map.
    pub(super) version: u64,
    pub(super) players: Vec<Player<'f>>,
    /// What is to be carried out, and the place of its server.
    pub(super) orders: Vec<(usize, Order<Own, AtRest>)>,
    /// What never will be.
    pub(super) lost_orders: Vec<Order<Own, AtRest>>,
    pub(super) strays: Vec<Connection>,
    /// Connections that were on their way in the last step, by place.
    pub(super) flights: [usize; SERVER_COUNT],
    /// Sessions that wait, by place, in the order in which they came.
    pub(super) lines: [Vec<usize>; SERVER_COUNT],
    pub(super) fault: Option<String>,
    pub(super) tally: SharingTally,
}

impl<'f> World<'f> {
    pub(super) fn new(
        seed: u64,
        options: SharingOptions,
        fronts: &'f [Front<Own, AtRest>],
        ids: Vec<PoolId>,
    ) -> World<'f> {
        let cluster = Cluster::new(SERVER_COUNT);
        let entries = (0..SERVER_COUNT).map(cluster::entry).collect();
        let mut world = World {
            options,
            random: Random::new(seed),
            now: Instant::from_nanos(1),
            fronts,
            ids,
            judges: (0..options.worker_count)
                .map(|_| Judge::default())
                .collect(),
            cluster,
            origin: Arc::new(Origin {
                database: Some("shop".to_owned()),
                collation: 45,
            }),
            map: ServerMap::new(entries, &[]),
            version: 0,
            players: Vec::new(),
            orders: Vec::new(),
            lost_orders: Vec::new(),
            strays: Vec::new(),
            flights: [0; SERVER_COUNT],
            lines: Default::default(),
            fault: None,
            tally: SharingTally::default(),
        };
        world.check();
        world.players = (0..SESSION_COUNT).map(|it| world.player(it)).collect();
        world
    }

    pub(super) fn player(&self, number: usize) -> Player<'f> {
        let mut session = Session::default();
        session.observe_login(StatusFlags::AUTOCOMMIT);
        Player {
            worker: number % self.options.worker_count,
            age: Age {
                began_at: self.now,
                session: stdx::to_u64(number),
            },
            session,
            history: History::default(),
            variable: None,
            lanes: BTreeMap::new(),
            phase: Phase::Idle,
            bell: Arc::default(),
            statement: None,
            scene: Scene::Outside,
            left: PROGRAM_LINES,
            begun: BTreeMap::new(),
            wrote: 0,
        }
    }

    /// The servers, which outlive this.
    pub(super) fn cluster(&self) -> Shared {
        Rc::clone(&self.cluster)
    }

    /// Notes what is wrong.
    pub(super) fn fault(&mut self, text: impl Into<String>) {
        let text = text.into();
        self.fault.get_or_insert(text);
    }

    /// Fails if something was wrong.
    pub(super) fn sound(&mut self, at: impl FnOnce() -> String) -> Result<(), String> {
        match self.fault.take() {
            Some(fault) => Err(format!("{}: {fault}; {:?}", at(), self.options)),
            None => Ok(()),
        }
    }

    pub(super) fn has(&mut self, mistake: Mistake, permille: u32) -> bool {
        self.options.mistake == Some(mistake) && self.random.chance(permille)
    }

    pub(super) fn step(&mut self) {
        self.tick();
        let number = self.random.index(SESSION_COUNT);
        match self.random.below(100) {
            0..72 => self.advance(number),
            72..82 => self.carry_out_one(),
            82..90 => {
                self.answer_questions(number % self.options.worker_count);
            }
            90..93 => self.check(),
            93..96 => {
                let place = self.random.index(SERVER_COUNT);
                self.cluster.borrow_mut().replicate(place);
            }
            96 => self.give_up(number),
            97 => self.sweep(number % self.options.worker_count),
            98 if self.random.chance(300) => self.trouble(),
            _ => {}
        }
    }

    pub(super) fn tick(&mut self) {
        let ticks = u32::try_from(self.random.below(8)).unwrap_or_default();
        self.now = self.now + TICK * ticks;
    }

    /// A server stops, starts, or takes the writes.
    pub(super) fn trouble(&mut self) {
        let place = self.random.index(SERVER_COUNT);
        let mut cluster = self.cluster.borrow_mut();
        match self.random.below(5) {
            0 => cluster.stop(place),
            1 | 2 => cluster.fail_over(place),
            _ => cluster.start(place),
        }
    }

    /// The monitor checks all servers. What was opened before a restart is not used again.
    pub(super) fn check(&mut self) {
        let observations = self.cluster.borrow().observe(self.now);
        let judged = monitor::judge(&self.map, observations, &Rules::default(), self.now);
        let before = std::mem::replace(&mut self.map, judged.map);
        self.version += u64::from(!before.looks_like(&self.map));
        let id = |map: &ServerMap| map.primary().map(|it| it.id);
        let (was, is) = (id(&before), id(&self.map));
        self.tally.primaries += u64::from(is.is_some() && was != is);
        let pairs = before.servers().zip(self.map.servers());
        for ((before, after), id) in pairs.zip(&self.ids) {
            if before.epoch != after.epoch {
                let closing = self.fronts[0].pool().raise_version(*id);
                drop(closing.expect("it is one of the pool's"));
            }
        }
    }

    /// Closes what is to be closed. The rest is carried out later, in any order.
    pub(super) fn note_orders(&mut self, orders: Vec<(usize, Order<Own, AtRest>)>) {
        for (place, order) in orders {
            match order {
                Order::Close(closing) => drop(closing),
                Order::HandOver(..) if self.has(Mistake::LosesOrders, 100) => {
                    self.lost_orders.push(order);
                }
                Order::HandOver(..) => {
                    self.flights[place] += 1;
                    self.orders.push((place, order));
                }
            }
        }
    }

    pub(super) fn carry_out_one(&mut self) {
        if self.orders.is_empty() {
            return;
        }
        let at = self.random.index(self.orders.len());
        let (_, order) = self.orders.swap_remove(at);
        if let Order::HandOver(own, ticket) = order {
            self.tally.moved += 1;
            if self.random.chance(50) {
                drop(own);
                ticket.failed();
            } else {
                drop(ticket.deliver(AtRest(own.connection), self.now));
            }
        }
    }

    /// A worker offers what others want. Returns whether it was asked.
    pub(super) fn answer_questions(&mut self, worker: usize) -> bool {
        if worker == 0 && self.options.mistake == Some(Mistake::AnswersNobody) {
            return false;
        }
        let fronts = self.fronts;
        let asked = std::pin::pin!(fronts[worker].asked());
        let mut context = Context::from_waker(Waker::noop());
        if asked.poll(&mut context).is_pending() {
            return false;
        }
        let orders = fronts[worker].answer(self.now);
        self.place_orders(orders);
        true
    }

    pub(super) fn sweep(&mut self, worker: usize) {
        let fronts = self.fronts;
        let orders = fronts[worker].sweep(self.now);
        self.place_orders(orders);
        drop(fronts[worker].pool().sweep(self.now));
    }

    pub(super) fn place_orders(&mut self, orders: Vec<Order<Own, AtRest>>) {
        let placed = orders.into_iter().map(|order| {
            let number = match &order {
                Order::HandOver(own, _) => own.connection.number,
                Order::Close(closing) => closing.connection.connection.number,
            };
            (self.cluster.borrow().place_of(number), order)
        });
        let placed = placed.collect();
        self.note_orders(placed);
    }

    /// Servers run, clients finish what they do, and nobody gives up.
    pub(super) fn end(&mut self) -> Result<(), String> {
        for place in 0..SERVER_COUNT {
            self.cluster.borrow_mut().start(place);
        }
        for player in &mut self.players {
            player.left = match player.phase {
                Phase::Done => 0,
                _ => LAST_LINES,
            };
        }
        let lines = u32::try_from(SESSION_COUNT).unwrap_or(u32::MAX) * (LAST_LINES + 2);
        for round in 0..lines * STATEMENT_ROUNDS {
            self.now = self.now + TICK;
            for place in 0..SERVER_COUNT {
                self.cluster.borrow_mut().replicate(place);
            }
            self.check();
            for number in 0..SESSION_COUNT {
                self.advance(number);
                self.observe();
            }
            self.arrive();
            self.sound(|| format!("round {round} of the end"))?;
            if self
                .players
                .iter()
                .all(|it| matches!(it.phase, Phase::Done))
            {
                self.observe_end();
                return self.sound(|| "the end".to_owned());
            }
        }
        self.fault("a session starves (S6)");
        self.sound(|| "the end".to_owned())
    }
}
