//! Three engines of a group, under one seed, with a provider that is nothing but the group's order.
//!
//! On each node sessions run random transactions, and eight appliers apply what the other nodes
//! have written. Write sets reach their places and the nodes when the seed says so. Sessions wait
//! for locks of each other, are idle with locks held, roll back, leave, also in the middle of a
//! commit. Nodes are killed at any step and come back with what their disks have.
//!
//! * (G1) A node that starts has exactly the rows of the place that it says it has.
//! * (G2) At the end all nodes have the last place, and the same rows.
//! * (G3) What a client was told is committed has a place; what was rolled back has none.
//! * (G4) The row before each change, byte by byte, is the one that the places before have made.
//! * (G5) Each session ends, and each node passes each place.
//! * (G6) Indexes and rows of each node agree (`Database::check`).
//!
//! [`Mistake`] has what may be planted, to see that it is found.
//!
//! Modules: `group` (the provider), `player` (a session), `model` (what the rows must be).

mod group;
mod model;
mod player;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use engine::OrderCounts;
use env::Random;
use store::replication::Position;
use store::{Durability, Isolation, SchemaStore, Store};

use crate::rows::all;
use crate::{Database, World, WorldOptions};
use group::{Group, Node};
use model::Model;
use player::{Ledger, journal, things};

/// Nodes of the group.
const NODE_COUNT: usize = 3;

/// Appliers of a node, as `wsrep_slave_threads`.
const APPLIER_COUNT: usize = 8;

/// Sessions of a node.
const SESSION_COUNT: usize = 4;

/// Moves of the simulation without an end, at most.
const MOVES_MAX: u64 = 400_000;

/// A mistake of the provider that may be planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// Certification knows primary keys alone.
    ForgetsKeys,
    /// A transaction enters before its turn.
    EntersEarly,
}

impl Mistake {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::ForgetsKeys, Self::EntersEarly];
}

/// What a seed decides at its begin.
#[derive(Debug, Clone, Copy)]
pub struct GroupOptions {
    /// Transactions of each session.
    pub transaction_count: u32,
    /// Rows that all of them change.
    pub row_count: i64,
    /// Of a thousand moves, how many kill a node.
    pub kills: u32,
    /// What is planted.
    pub mistake: Option<Mistake>,
}

impl GroupOptions {
    /// The options of a seed.
    pub fn of_seed(seed: u64) -> Self {
        Self {
            transaction_count: 6,
            row_count: [4, 24, 200][stdx::to_usize(seed % 3)],
            kills: if seed.is_multiple_of(2) { 60 } else { 0 },
            mistake: None,
        }
    }
}

/// What has happened.
#[derive(Debug, Clone, Copy, Default)]
pub struct GroupTally {
    /// Transactions that were told to be committed.
    pub committed: u64,
    /// Transactions that failed as a deadlock's victim does, before their commit.
    pub aborted: u64,
    /// Commits that failed so.
    pub refused: u64,
    /// Transactions that failed when they came back after a pause.
    pub aborted_idle: u64,
    /// Sessions that left in the middle of a commit.
    pub left: u64,
    /// Places.
    pub places: u64,
    /// Places whose write set was refused.
    pub refused_places: u64,
    /// Kills.
    pub kills: u64,
    /// Orders to abort, by what the transaction did, in lives that were not killed.
    pub orders: OrderCounts,
}

impl GroupTally {
    /// Adds what another seed has seen.
    pub fn add(&mut self, other: Self) {
        self.committed += other.committed;
        self.aborted += other.aborted;
        self.refused += other.refused;
        self.aborted_idle += other.aborted_idle;
        self.left += other.left;
        self.places += other.places;
        self.refused_places += other.refused_places;
        self.kills += other.kills;
        let (sum, other) = (&mut self.orders, other.orders);
        sum.idle += other.idle;
        sum.waiting += other.waiting;
        sum.sent += other.sent;
        sum.placed += other.placed;
        sum.applying += other.applying;
        sum.replayed += other.replayed;
    }
}

/// A node that runs, or is about to be started.
struct Machine {
    world: Option<World>,
    database: Option<Database>,
    /// Sessions that are not done, with what they still have to do.
    players: Rc<Cell<usize>>,
    /// Where appliers report what they cannot apply.
    fault: Rc<RefCell<Option<String>>>,
}

/// Runs one seed.
pub fn run(seed: u64, options: GroupOptions) -> Result<GroupTally, String> {
    let mut random = Random::new(seed);
    let mut simulation = Simulation::new(seed, options)?;
    let mut moves = 0;
    while !simulation.is_over() {
        moves += 1;
        if MOVES_MAX < moves {
            return Err(format!("(G5) nobody ends: {}", simulation.picture()));
        }
        simulation.step(&mut random)?;
    }
    simulation.check()?;
    Ok(simulation.tally())
}

/// The group and its nodes.
struct Simulation {
    options: GroupOptions,
    group: Arc<Group>,
    machines: Vec<Machine>,
    ledger: Rc<RefCell<Ledger>>,
    kills: u64,
}

impl Simulation {
    fn new(seed: u64, options: GroupOptions) -> Result<Self, String> {
        let mut simulation = Self {
            options,
            group: Group::new(7, NODE_COUNT, options.mistake),
            machines: Vec::new(),
            ledger: Rc::default(),
            kills: 0,
        };
        for number in 0..NODE_COUNT {
            let world_options = WorldOptions {
                worker_count: 2,
                ..WorldOptions::default()
            };
            let world = World::new(seed * 31 + stdx::to_u64(number), world_options);
            let inner = world.clone();
            let database = world.run(async move {
                let database = inner.open().await.map_err(|it| it.to_string())?;
                for definition in [things(), journal()] {
                    let made = database.engine.create_table(definition).await;
                    made.map_err(|it| it.to_string())?;
                }
                Ok::<_, String>(database)
            })?;
            simulation.machines.push(Machine {
                world: Some(world),
                database: None,
                players: Rc::default(),
                fault: Rc::default(),
            });
            simulation.begin(number, database);
        }
        Ok(simulation)
    }

    /// The node joins, and its appliers and sessions begin.
    fn begin(&mut self, number: usize, database: Database) {
        let node = self.group.join(number, database.engine.position());
        let shared = database.engine.shared();
        shared.set_provider(Arc::new(node.clone()));
        let machine = &mut self.machines[number];
        let world = machine.world.as_ref().expect("the node runs");
        for applier in 0..APPLIER_COUNT {
            let fault = Rc::clone(&machine.fault);
            let applying = apply(node.clone(), database.on(applier), fault);
            world.executor.spawn(applying);
        }
        machine.players.set(SESSION_COUNT);
        for session in 0..SESSION_COUNT {
            let (players, ledger) = (Rc::clone(&machine.players), Rc::clone(&self.ledger));
            let seed = self.kills * 1_000 + stdx::to_u64(number * SESSION_COUNT + session);
            let playing = player::play(database.on(session), self.options, seed, ledger);
            world.executor.spawn(async move {
                playing.await;
                players.set(players.get() - 1);
            });
        }
        machine.database = Some(database);
    }

    fn is_over(&self) -> bool {
        let is_done = |machine: &Machine| machine.players.get() == 0;
        self.machines.iter().all(is_done) && self.group.is_still()
    }

    fn step(&mut self, random: &mut Random) -> Result<(), String> {
        let number = random.index(NODE_COUNT);
        match random.below(16) {
            0 => self.group.order(random.index(64)),
            1..=3 => {
                self.group.deliver(number);
            }
            4 if self.kills < 3 && random.chance(self.options.kills) => {
                self.kill(number, random)?
            }
            _ => {
                let world = self.machines[number].world.as_ref();
                let steps = 1 + random.below(40);
                world.expect("the node runs").executor.run_steps(steps);
            }
        }
        match self.machines[number].fault.borrow_mut().take() {
            Some(fault) => Err(format!("node {number}: {fault}")),
            None => Ok(()),
        }
    }

    /// Kills a node and starts it again.
    fn kill(&mut self, number: usize, random: &mut Random) -> Result<(), String> {
        self.kills += 1;
        let machine = &mut self.machines[number];
        machine.database = None;
        let world = machine.world.take().expect("the node runs").crash();
        let inner = world.clone();
        let opened = world.run(async move { inner.open().await });
        let database = opened.map_err(|failure| format!("the node does not start: {failure}"))?;
        machine.world = Some(world);
        self.is_at_its_place(number, &database)?;
        self.begin(number, database);
        if random.coin() {
            self.group.lose(number);
        }
        Ok(())
    }

    /// Checks that a node has the rows of its place, and no others (G1).
    fn is_at_its_place(&self, number: usize, database: &Database) -> Result<(), String> {
        let place = database.engine.position();
        let seqno = place.map_or(0, |place: Position| place.seqno);
        let expected = Model::at(&self.group.events(), seqno)?;
        let world = self.machines[number].world.as_ref().expect("the node runs");
        let found = rows(world, database)?;
        if found == expected.tables_of(&found) {
            return Ok(());
        }
        Err(format!(
            "(G1) node {number} has other rows than those of place {seqno}: {}",
            expected.difference(&found)
        ))
    }

    fn check(&self) -> Result<(), String> {
        let events = self.group.events();
        let last = stdx::to_u64(events.len());
        for (number, machine) in self.machines.iter().enumerate() {
            let database = machine.database.as_ref().expect("the node runs");
            let place = database.engine.position().map_or(0, |place| place.seqno);
            if place != last {
                return Err(format!(
                    "(G2) node {number} is at {place}, the group at {last}"
                ));
            }
            self.is_at_its_place(number, database)?;
            let world = machine.world.as_ref().expect("the node runs");
            let checked = database.clone();
            let report = world.run(async move { checked.check().await });
            let report = report.map_err(|failure| failure.to_string())?;
            if !report.faults.is_empty() {
                return Err(format!("(G6) node {number}: {:?}", report.faults));
            }
        }
        let model = Model::at(&events, last)?;
        self.ledger.borrow().agrees_with(&model)
    }

    fn tally(&self) -> GroupTally {
        let mut sum = GroupTally::default();
        let running = self.machines.iter().filter_map(|it| it.database.as_ref());
        for database in running {
            let orders = database.engine.shared().order_counts();
            sum.add(GroupTally {
                orders,
                ..GroupTally::default()
            });
        }
        let events = self.group.events();
        let refused = events.iter().filter(|event| event.is_refused);
        GroupTally {
            places: stdx::to_u64(events.len()),
            refused_places: stdx::to_u64(refused.count()),
            kills: self.kills,
            orders: sum.orders,
            ..self.ledger.borrow().tally
        }
    }

    fn picture(&self) -> String {
        let players: Vec<_> = self.machines.iter().map(|it| it.players.get()).collect();
        let running = self.machines.iter().filter_map(|it| it.database.as_ref());
        let activity: Vec<_> = running.map(|it| it.engine.activity()).collect();
        let group = self.group.picture();
        format!("sessions left {players:?}, {group}, {activity:#?}")
    }
}

/// An applier: what the group has ordered is applied, one after the other.
async fn apply(node: Node, database: Database, fault: Rc<RefCell<Option<String>>>) {
    loop {
        let event = node.next().await;
        let engine = &database.engine;
        let applied = match event.is_refused {
            true => engine.pass(event.position).await,
            false => {
                let writes = Arc::clone(&event.writes);
                engine.apply(event.position, writes, Durability::Lazy).await
            }
        };
        if let Err(failure) = applied {
            *fault.borrow_mut() = Some(format!("{}: {failure}", event.position));
            return;
        }
    }
}

/// The rows of all tables of a node, encoded.
fn rows(world: &World, database: &Database) -> Result<Model, String> {
    let database = database.clone();
    let read = world.run(async move {
        let mut tables = BTreeMap::new();
        for name in ["things", "journal"] {
            let table = database.table(name);
            let mut reader = database.begin(Isolation::RepeatableRead);
            let rows = reader.scan(&table, all()).await?;
            let encode = |row: &Vec<value::Value>| {
                let values: Vec<_> = row.iter().map(value::Value::as_ref).collect();
                let mut bytes = Vec::new();
                let encoded = table.layout().encode(&values, &mut bytes);
                encoded.map(|()| bytes)
            };
            let rows: Result<BTreeSet<_>, _> = rows.iter().map(|(_, row)| encode(row)).collect();
            let rows = rows.map_err(|error| store::StoreError::damaged(error.to_string()))?;
            tables.insert(name.to_owned(), rows);
        }
        Ok::<_, store::StoreError>(Model { tables })
    });
    read.map_err(|failure| failure.to_string())
}
