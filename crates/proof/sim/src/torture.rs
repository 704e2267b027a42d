//! Random transactions, crashes at random moments, and a model of what must exist.
//!
//! Each transaction changes rows of a table with two secondary indexes and, as its last change,
//! writes its number into a ledger. The visible part of the ledger names the transactions in a
//! snapshot. Replaying them in the order of their numbers gives each row: locks order the numbers
//! of transactions that share a row. So a snapshot can be checked while others work, and a
//! recovered store whatever it lost. Acknowledged transactions must be in the ledger. Some commit
//! in two phases (module `prepared`). Another session changes the schema (module `schema`).
//!
//! In a mix with ranges there are more sessions. They read ranges with locks and at all levels
//! (module `ranges`), keep snapshots open and look at them again, and are killed in the middle of a
//! call. The process stands still until locks time out, or dies while the machine lives on. At the
//! end of some rounds the sessions begin nothing more, and each must come to its end (module
//! `closing`): whoever does not was forgotten by somebody who should have woken it.
//!
//! A seed determines the number of workers, and whether there are few frames and more indexes. For
//! each round it determines the disk's behaviour ([`crate::fault_profile`]), and whether the crash
//! comes just when a file is created or removed. It also decides whether the recovered store
//! continues with the next round. Then the next crash meets what recovery left undone (pages that
//! are not in their files, log that no checkpoint has passed); opening the store again would have
//! done that work. A statement that meets a full or failing disk is rolled back. When the log
//! fails, the sessions end as a process would, and nothing is acknowledged any more.

mod changes;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use env::Random;
use env::sim::poll_at_most;
use store::{
    Inserted, Isolation, KeyRange, LeftPrepared, LockWait, Mutation, RowLock, ScanOptions, Store,
    StoreError, Table,
};
use value::Value;

use crate::closing::{self, Running};
use crate::fault_profile::FaultProfile;
use crate::log_harm::{self, Harm};
use crate::model::{Compared, History, Round, Tried, compare};
use crate::prepared::{self, Decision, Rest};
use crate::ranges::{Found, GROUP_COUNT, RangeRead};
use crate::rows::{self, Row, Session, Writes, all, data_of, integer};
use crate::schema;
use crate::tables::set_up;
pub use crate::tally::Tally;
use crate::world::{Database, World, WorldOptions};

/// The most secondary indexes of the data table in addition to the other two, and the fewest frames
/// of a seed's machine. Together there are more leaves than frames, so that a rollback waits for
/// pages between its entries, and a crash can happen there.
const MORE_INDEX_COUNT_MAX: u64 = 16;
const FRAME_COUNT_MIN: u32 = 24;

/// The memory for row locks is below this if it is to be short: a lock of a number takes some 350
/// bytes.
const LOCK_BYTES_MAX: u64 = 6_000;

/// Possible values of purge's patience: none, a few transactions long, and a server's.
const PURGE_PATIENCES: [Duration; 3] = [
    Duration::ZERO,
    Duration::from_millis(1),
    engine::PURGE_PATIENCE,
];

/// The longest pause of a client between two transactions, in microseconds. Without it, a client
/// that is refused immediately (full disk) would retry for ever without time passing.
const THINK_US_MAX: u64 = 100;

/// The most workers and sessions of a mix with ranges.
const WORKER_COUNT_MAX: u64 = 4;
const SESSION_COUNT_MAX: u64 = 10;

/// The longest time for which a session keeps its snapshot before it looks at it again, in
/// microseconds: some tens of transactions.
const HOLD_US_MAX: u64 = 4_000;

/// The most polls of a call before its session is killed.
const POLLS_TO_KILL_MAX: u64 = 40;

/// A process that stands still for so long finds that all lock waits have timed out.
const STALL: Duration = Duration::from_secs(6);

/// The longest time before it does so, in microseconds.
const STALL_AFTER_US_MAX: u64 = 30_000;

/// What sessions do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// They change single rows, and compare snapshots.
    Rows,
    /// They also read ranges, and are killed.
    Ranges,
}

/// The work of one seed.
#[derive(Debug, Clone, Copy)]
pub struct TortureOptions {
    /// Concurrent sessions.
    pub session_count: u64,
    /// Rows that they compete for.
    pub key_count: u64,
    /// The number of crashes.
    pub crash_count: u64,
    /// The most steps of the executor between two crashes.
    pub steps_max: u64,
    /// The configuration of the machine.
    pub world: WorldOptions,
    /// What sessions do.
    pub mix: Mix,
    /// Flushes that the disk only confirms, in a thousand. No store can hold then.
    pub lost_flush_permille: u32,
}

impl Default for TortureOptions {
    fn default() -> Self {
        Self {
            session_count: 4,
            key_count: 24,
            crash_count: 3,
            steps_max: 6000,
            world: WorldOptions::default(),
            mix: Mix::Rows,
            lost_flush_permille: 0,
        }
    }
}

impl TortureOptions {
    /// Two of three seeds have ranges.
    pub fn of_seed(seed: u64) -> Self {
        if seed.is_multiple_of(3) {
            return Self::default();
        }
        let mut random = Random::new(seed.rotate_left(32));
        Self {
            session_count: 4 + random.below(SESSION_COUNT_MAX - 3),
            mix: Mix::Ranges,
            ..Self::default()
        }
    }

    /// The same on a machine of few frames.
    fn narrow(mut self, random: &mut Random) -> Self {
        self.world.frame_count = FRAME_COUNT_MIN + stdx::low_u32(random.below(8));
        self
    }
}

/// Runs one seed. The error describes the fault.
pub fn run(seed: u64, options: TortureOptions) -> Result<Tally, String> {
    let mut random = Random::new(seed);
    let history = Rc::new(RefCell::new(History::default()));
    let worker_count = u8::try_from(1 + random.below(3)).unwrap_or(1);
    let mut machine = Random::new(!seed);
    let (options, working, more_index_count) = configure(options, worker_count, &mut machine);
    let mut world = World::new(seed, options.world);
    world.disk.lose_flushes(options.lost_flush_permille);
    set_up(&world, more_index_count)?;
    let mut recovered = None;
    for _ in 0..options.crash_count {
        let worker = Torture {
            options,
            history: Rc::clone(&history),
        };
        world = world.with_options(working);
        spawn_round(&world, worker, recovered, &mut random);
        run_round(&world, &options, &mut random);
        FaultProfile::end(&world.disk);
        if options.mix == Mix::Ranges && machine.coin() {
            closing::close(&world, &history)?;
        }
        history.borrow_mut().round.database = None;
        if let Some(fault) = history.borrow_mut().fault.take() {
            return Err(fault);
        }
        let is_killed = options.mix == Mix::Ranges && machine.below(4) == 0;
        history.borrow_mut().tally.process_deaths += u64::from(is_killed);
        world = if is_killed {
            world.kill()
        } else {
            world.crash()
        };
        world = world.with_options(options.world);
        // Sometimes the machine crashes again during recovery.
        if random.below(3) == 0 {
            world = world.crash_in_start(1 + random.below(400));
        }
        if machine.below(2) == 0 {
            harm_log(&world, &history, machine.next_u64())?;
        }
        let goes_on = random.coin();
        if goes_on {
            world = world.with_options(working);
        }
        let (database, left) = verify(&world, &history)?;
        let rest = if goes_on { Rest::None } else { Rest::Left };
        decide(&world, &history, (left, rest), &mut random)?;
        if goes_on {
            recovered = Some(database);
        } else {
            recovered = None;
            drop(database);
            world.executor.clear();
        }
    }
    drop(recovered);
    world.executor.clear();
    let mut tally = history.borrow().tally;
    tally.schema_changes = history.borrow().schema.borrow().step_count;
    tally.disk = world.disk.fault_counts();
    Ok(tally)
}

/// What the machine of a seed is: the work, its options while it works, and the number of indexes.
fn configure(
    options: TortureOptions,
    worker_count: u8,
    machine: &mut Random,
) -> (TortureOptions, WorldOptions, u64) {
    let is_narrow = machine.coin();
    let options = if is_narrow {
        options.narrow(machine)
    } else {
        options
    };
    let more_index_count = if is_narrow {
        machine.below(MORE_INDEX_COUNT_MAX + 1)
    } else {
        0
    };
    let mut working = WorldOptions {
        worker_count,
        ..options.world
    };
    if machine.below(4) == 0 {
        working.lock_bytes_max = machine.below(LOCK_BYTES_MAX);
    }
    // Purge passes open transactions immediately, soon or hardly ever.
    working.purge_patience = PURGE_PATIENCES[stdx::to_usize(machine.below(3))];
    if options.mix == Mix::Ranges {
        working.worker_count = u8::try_from(1 + machine.below(WORKER_COUNT_MAX)).unwrap_or(1);
    }
    (options, working, more_index_count)
}

/// Decides about what a start has found prepared.
fn decide(
    world: &World,
    history: &Rc<RefCell<History>>,
    (left, rest): (Vec<LeftPrepared>, Rest),
    random: &mut Random,
) -> Result<(), String> {
    let mut history = history.borrow_mut();
    history.tally.left_prepared += stdx::to_u64(left.len());
    let committed = prepared::decide(world, left, &mut history.prepared, rest, random)?;
    history.acknowledged.extend(committed);
    Ok(())
}

/// Damages the log of a copy of the machine, and opens it: either the damage is reported, or
/// nothing is lost.
fn harm_log(world: &World, history: &Rc<RefCell<History>>, seed: u64) -> Result<(), String> {
    let mut random = Random::new(seed);
    let copy = world.copy(seed);
    let Some(harm) = Harm::draw(&copy, &mut random) else {
        return Ok(());
    };
    harm.strike(&copy);
    let turned = copy.disk.fault_counts().bits_turned - world.disk.fault_counts().bits_turned;
    history.borrow_mut().tally.bits_turned += turned;
    let opened = verify(&copy, history);
    copy.executor.clear();
    let is_told = opened.as_ref().is_err_and(|told| log_harm::is_told(told));
    if is_told {
        history.borrow_mut().tally.harms_refused += 1;
    } else if harm.must_be_told() {
        let opened = opened.map(drop);
        return Err(format!("{harm:?} was not told: {opened:?}"));
    } else {
        opened.map_err(|error| format!("{harm:?}: {error}"))?;
        history.borrow_mut().tally.harms_survived += 1;
    }
    if is_told && random.coin() {
        let accepted = log_harm::accept_loss(copy, &mut random);
        accepted.map_err(|error| format!("{harm:?}, accepted: {error}"))?;
        history.borrow_mut().tally.losses_accepted += 1;
    }
    Ok(())
}

/// Runs up to the moment of the crash.
fn run_round(world: &World, options: &TortureOptions, random: &mut Random) {
    let steps = 1 + random.below(options.steps_max);
    if random.below(4) != 0 {
        world.executor.run_steps(steps);
        return;
    }
    // In the second half when a file is created or removed, else at its end.
    world.executor.run_steps(steps / 2);
    let files = world.files();
    for _ in 0..steps - steps / 2 {
        world.executor.run_steps(1);
        if world.files() != files {
            // So that the crash does not always interrupt what happens immediately afterwards.
            world.executor.run_steps(random.below(8));
            return;
        }
    }
}

/// Starts the sessions of a round, in the open store or in one opened now.
fn spawn_round(world: &World, torture: Torture, recovered: Option<Database>, random: &mut Random) {
    {
        let mut history = torture.history.borrow_mut();
        let may_hang = !history.prepared.is_settled();
        history.round = Round {
            may_hang,
            ..Round::default()
        };
        history.schema.borrow_mut().is_over = false;
    }
    let (opening, seed) = (world.clone(), random.next_u64());
    world.executor.spawn(async move {
        let opened = match recovered {
            Some(database) => Ok(database),
            None => opening.open().await,
        };
        let database = match opened {
            Ok(database) => database,
            Err(error) => {
                torture.fail(format!("opening: {error}"));
                return;
            }
        };
        let mut random = Random::new(seed);
        let mut fault_profile = FaultProfile::draw(&mut random);
        if !torture.goes_on() {
            // The disk was put in order for the end of the round.
            fault_profile = FaultProfile::Fair;
        }
        fault_profile.begin(&opening.disk);
        if let FaultProfile::Full { until, .. } = fault_profile {
            let clear = opening.clone();
            opening.executor.spawn(async move {
                clear.executor.clock().sleep(until).await;
                FaultProfile::end(&clear.disk);
            });
        }
        for number in 0..torture.options.session_count {
            let database = database.on(stdx::to_usize(number));
            spawn_session(&opening, &torture, database, Random::new(random.next_u64()));
        }
        let running = Running::new(&torture.history);
        torture.history.borrow_mut().round.database = Some(database.clone());
        let mut random = Random::new(random.next_u64());
        if torture.options.mix == Mix::Ranges && random.below(6) == 0 {
            stall(&opening, &torture, random.below(STALL_AFTER_US_MAX));
        }
        let schema = Rc::clone(&torture.history.borrow().schema);
        let database = database.on(stdx::to_usize(random.below(8)));
        let changed = schema::change_schema(&database, &schema, &mut random).await;
        if let Err(error) = changed {
            match torture.meet(error) {
                End::Fault(fault) => torture.fail(format!("a schema change: {fault}")),
                // What the change has locked stays so until the next start.
                End::GiveUp | End::LogFailed => torture.history.borrow_mut().round.may_hang = true,
            }
        }
        drop(running);
    });
}

/// Starts a session, which works until the round ends.
fn spawn_session(world: &World, torture: &Torture, database: Database, mut random: Random) {
    let (torture, clock) = (torture.clone(), world.executor.clock().clone());
    let running = Running::new(&torture.history);
    world.executor.spawn(async move {
        let _running = running;
        while torture.goes_on() {
            let think = 1 + random.below(THINK_US_MAX);
            clock.sleep(Duration::from_micros(think)).await;
            match torture.transaction(&database, &mut random).await {
                Ok(()) | Err(End::GiveUp) => {}
                Err(End::LogFailed) => {
                    torture.history.borrow_mut().round.may_hang = true;
                    return;
                }
                Err(End::Fault(fault)) => torture.fail(fault),
            }
        }
    });
}

/// Lets the process stand still at some time of the round.
fn stall(world: &World, torture: &Torture, after_us: u64) {
    let (clock, torture) = (world.executor.clock().clone(), torture.clone());
    world.executor.spawn(async move {
        clock.sleep(Duration::from_micros(after_us)).await;
        if torture.goes_on() {
            clock.stall(STALL);
            torture.history.borrow_mut().tally.stalls += 1;
        }
    });
}

/// After a crash: the store is sound and has what it must have. It is open afterwards, without
/// running work.
fn verify(
    world: &World,
    history: &Rc<RefCell<History>>,
) -> Result<(Database, Vec<LeftPrepared>), String> {
    let (opening, history) = (world.clone(), Rc::clone(history));
    // Nothing is pending, so what is not in the ledger now never will be.
    world.run(async move {
        let database = opening
            .open()
            .await
            .map_err(|error| format!("recovery: {error}"))?;
        let mut session = database.begin(Isolation::RepeatableRead);
        let seen =
            compare(&database, &mut session, &history)
                .await
                .map_err(|error| match error {
                    Compared::Unread(error) => format!("a consistent read: {error}"),
                    Compared::Differs(what) => what,
                })?;
        if let Some(lost) = history.borrow().acknowledged.difference(&seen).next() {
            return Err(format!("transaction {lost} was acknowledged and is lost"));
        }
        let worker_count = usize::from(opening.options().worker_count);
        let left = (0..worker_count).flat_map(|it| database.on(it).engine.take_left_prepared());
        let left: Vec<_> = left.collect();
        let found = prepared::numbers_of(&left);
        history.borrow().prepared.check(&found, &seen)?;
        session.commit().await.map_err(|error| error.to_string())?;
        let schema = Rc::clone(&history.borrow().schema);
        schema::verify_schema(&database, &schema).await?;
        let report = database
            .check()
            .await
            .map_err(|error| format!("check: {error}"))?;
        match report.faults.first() {
            Some(fault) => Err(format!("check: {fault} ({} faults)", report.faults.len())),
            None => Ok((database, left)),
        }
    })
}

/// One round's sessions.
#[derive(Debug, Clone)]
struct Torture {
    options: TortureOptions,
    history: Rc<RefCell<History>>,
}

/// Why a transaction of the torture ends early.
enum End {
    /// It is over already, or has to be rolled back.
    GiveUp,
    /// The log accepts nothing any more: the process ends.
    LogFailed,
    /// The store has a fault.
    Fault(String),
}

impl Torture {
    /// Whether a session begins another transaction.
    fn goes_on(&self) -> bool {
        let history = self.history.borrow();
        history.fault.is_none() && !history.round.is_closing
    }

    fn fail(&self, fault: String) {
        self.history.borrow_mut().fault.get_or_insert(fault);
    }

    /// The consequence of a store error.
    fn meet(&self, error: StoreError) -> End {
        let tally = &mut self.history.borrow_mut().tally;
        match error {
            StoreError::Deadlock => tally.deadlocks += 1,
            StoreError::LockWaitTimeout => tally.timeouts += 1,
            StoreError::LockTableFull => tally.unlocked += 1,
            StoreError::DiskFull => tally.full += 1,
            StoreError::Disk { .. } => tally.unread += 1,
            StoreError::LogFailed => {
                tally.log_failures += 1;
                return End::LogFailed;
            }
            other => return End::Fault(other.to_string()),
        }
        End::GiveUp
    }

    async fn transaction(&self, database: &Database, random: &mut Random) -> Result<(), End> {
        let has_ranges = self.options.mix == Mix::Ranges;
        let isolation = match random.below(4) {
            0 => Isolation::ReadCommitted,
            1 if has_ranges => Isolation::Serializable,
            _ => Isolation::RepeatableRead,
        };
        let mut session = database.begin(isolation);
        if has_ranges && random.below(10) == 0 {
            session.txn.set_lock_wait_timeout(0);
        }
        if isolation == Isolation::RepeatableRead && random.below(4) == 0 {
            self.look(database, &mut session, random).await?;
        }
        let polls_max = if has_ranges && random.below(12) == 0 {
            1 + random.below(POLLS_TO_KILL_MAX)
        } else {
            u64::MAX
        };
        let work = self.work(database, (&mut session, isolation), random);
        let Some(outcome) = poll_at_most(stdx::to_usize(polls_max), work).await else {
            // The store ends what was dropped.
            self.history.borrow_mut().tally.killed += 1;
            return Err(End::GiveUp);
        };
        let ended = match outcome {
            Ok(Some(number)) if random.below(4) == 0 => {
                self.two_phases(database, &mut session, number, random)
                    .await
            }
            Ok(Some(number)) => {
                let done = session.commit().await;
                if done.is_ok() {
                    self.note_committed(number);
                }
                done
            }
            Ok(None) | Err(End::GiveUp) => {
                self.history.borrow_mut().tally.rolled_back += 1;
                session.rollback().await
            }
            Err(other) => return Err(other),
        };
        // If it could not end now, it ends in the background: the transaction is dropped.
        ended.map_err(|error| self.meet(error))
    }

    /// Looks at a snapshot, and again after a while.
    async fn look(
        &self,
        database: &Database,
        session: &mut Session,
        random: &mut Random,
    ) -> Result<(), End> {
        let end = |compared| match compared {
            Compared::Unread(error) => self.meet(error),
            Compared::Differs(what) => End::Fault(what),
        };
        let seen = compare(database, session, &self.history).await;
        let seen = seen.map_err(end)?;
        if self.options.mix == Mix::Rows || random.coin() {
            return Ok(());
        }
        let pause = Duration::from_micros(random.below(HOLD_US_MAX));
        database.sleep(pause).await;
        let again = compare(database, session, &self.history).await;
        expect(again.map_err(end)? == seen, "a snapshot stays the same")?;
        self.history.borrow_mut().tally.held_snapshots += 1;
        Ok(())
    }

    /// A commit in two phases, or a rollback behind the first.
    async fn two_phases(
        &self,
        database: &Database,
        session: &mut Session,
        number: i64,
        random: &mut Random,
    ) -> Result<(), StoreError> {
        prepared::prepare(session, number).await?;
        {
            let mut history = self.history.borrow_mut();
            history.prepared.keep(number);
            history.tally.prepared += 1;
        }
        let pause = Duration::from_micros(random.below(THINK_US_MAX));
        database.sleep(pause).await;
        let decision = Decision::draw(random);
        self.history.borrow_mut().prepared.begin(number, decision);
        // If that fails, the rows stay locked until the next start.
        let ended = prepared::end(&mut *session.txn, decision).await;
        self.history.borrow_mut().round.may_hang |= ended.is_err();
        ended?;
        self.history.borrow_mut().prepared.done(number, decision);
        if decision == Decision::Commit {
            self.note_committed(number);
        }
        Ok(())
    }

    fn note_committed(&self, number: i64) {
        let mut history = self.history.borrow_mut();
        history.acknowledged.insert(number);
        history.tally.committed += 1;
    }

    /// The changes of a transaction. Returns its number if it is to commit.
    async fn work(
        &self,
        database: &Database,
        (session, isolation): (&mut Session, Isolation),
        random: &mut Random,
    ) -> Result<Option<i64>, End> {
        let data = database.table("data");
        let mut tried = Tried::default();
        for _ in 0..=random.below(5) {
            if self.options.mix == Mix::Ranges && random.below(3) == 0 {
                self.read_range(&data, (session, isolation), random, &mut tried)
                    .await?;
            }
            let writes = &mut tried.writes;
            if random.below(8) == 0 {
                let (mark, before) = (session.txn.mark(), writes.clone());
                self.change(&data, session, random, writes).await?;
                rows::until_done(|| session.txn.rollback_to(mark))
                    .await
                    .map_err(|error| self.meet(error))?;
                *writes = before;
            } else {
                self.change(&data, session, random, writes).await?;
            }
        }
        if random.below(6) == 0 {
            return Ok(None);
        }
        let number = {
            let mut history = self.history.borrow_mut();
            history.next += 1;
            history.next
        };
        self.history.borrow_mut().tried.insert(number, tried);
        session
            .insert(&database.table("ledger"), &[Value::Int(number)])
            .await
            .map_err(|error| self.meet(error))?;
        Ok(Some(number))
    }

    /// A locking read of a range. Sometimes its first row is removed.
    async fn read_range(
        &self,
        data: &Rc<dyn Table>,
        (session, isolation): (&mut Session, Isolation),
        random: &mut Random,
        tried: &mut Tried,
    ) -> Result<(), End> {
        let range = RangeRead::draw(isolation, self.options.key_count, random);
        let rows = session.scan(data, range.scan()).await;
        let rows = rows.map_err(|error| self.meet(error))?;
        self.history.borrow_mut().tally.range_reads += 1;
        if isolation != Isolation::ReadCommitted {
            tried.reads.push(Found::new(range, &rows, &tried.writes));
        }
        match rows.first() {
            Some(row) if range.lock == RowLock::Exclusive && random.below(4) == 0 => {
                let deleted = self.delete(data, session, row, &mut tried.writes).await?;
                expect(deleted == Mutation::Done, "a locked row stays as it is")
            }
            _ => Ok(()),
        }
    }

    fn random_key(&self, random: &mut Random) -> i64 {
        i64::try_from(random.below(self.options.key_count)).unwrap_or(0)
    }

    fn random_row(&self, key: i64, random: &mut Random) -> Vec<Value> {
        let small = |random: &mut Random, limit| i64::try_from(random.below(limit)).unwrap_or(0);
        let unique = match random.below(3) {
            0 => Value::Null,
            _ => Value::Int(small(random, self.options.key_count * 2)),
        };
        let length = match random.below(8) {
            0 if random.below(6) == 0 => 60_000 + random.below(200_000),
            0 => 900 + random.below(20_000),
            1 => 200 + random.below(700),
            _ => random.below(40),
        };
        let byte = u8::try_from(random.below(256)).unwrap_or(0);
        let note = vec![byte; usize::try_from(length).unwrap_or(0)];
        vec![
            Value::Int(key),
            Value::Int(small(random, GROUP_COUNT)),
            unique,
            Value::Bytes(note),
        ]
    }
}

fn expect(holds: bool, what: &str) -> Result<(), End> {
    if holds {
        Ok(())
    } else {
        Err(End::Fault(format!("it does not hold that {what}")))
    }
}
