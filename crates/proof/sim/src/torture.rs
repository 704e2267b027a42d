//! Random transactions, crashes at random moments, and a model of what must exist.
//!
//! Each transaction changes rows of a table with two secondary indexes and, as its last change,
//! writes its number into a ledger. The visible part of the ledger names the transactions in a
//! snapshot. Replaying them in the order of their numbers gives each row: locks order the numbers
//! of transactions that share a row. So a snapshot can be checked while others work, and a
//! recovered store whatever it lost. Acknowledged transactions must be in the ledger. Some commit
//! in two phases (module `prepared`). Another session changes the schema (module `schema`).
//!
//! A seed determines the number of workers, and whether there are few frames and more indexes. For
//! each round it determines the disk's behaviour ([`crate::fault_profile`]), and whether the crash
//! comes just when a file is created or removed. It also decides whether the recovered store
//! continues with the next round. Then the next crash meets what recovery left undone (pages that
//! are not in their files, log that no checkpoint has passed); opening the store again would have
//! done that work. A statement that meets a full or failing disk is rolled back. When the log
//! fails, the sessions end as a process would, and nothing is acknowledged any more.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use env::Random;
use store::{
    Direction, Inserted, Isolation, KeyRange, LeftPrepared, LockWait, Mutation, RowLock,
    ScanOptions, SchemaStore, Store, StoreError, Table, Uniqueness,
};
use value::{ColumnType, TypeKind, Value};

use crate::fault_profile::FaultProfile;
use crate::log_harm::{self, Harm};
use crate::prepared::{self, Decision, Promises, Rest};
use crate::rows::{self, Row, Session, all, big, blob, index, integer};
use crate::schema::{self, SchemaHistory};
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
}

impl Default for TortureOptions {
    fn default() -> Self {
        Self {
            session_count: 4,
            key_count: 24,
            crash_count: 3,
            steps_max: 6000,
            world: WorldOptions::default(),
        }
    }
}

impl TortureOptions {
    /// The same on a machine of few frames.
    fn narrow(mut self, random: &mut Random) -> Self {
        self.world.frame_count = FRAME_COUNT_MIN + stdx::low_u32(random.below(8));
        self
    }
}

/// A row of the data table, without its key.
type Data = (i64, Option<i64>, Vec<u8>);

/// The writes of a transaction: for each key the row or its absence.
type Writes = BTreeMap<i64, Option<Data>>;

/// What is known from outside.
#[derive(Debug, Default)]
struct History {
    /// All transactions that tried to commit, by number.
    tried: BTreeMap<i64, Writes>,
    /// Those that were acknowledged.
    acknowledged: BTreeSet<i64>,
    /// What was told of those that commit in two phases.
    prepared: Promises,
    next: i64,
    schema: Rc<RefCell<SchemaHistory>>,
    tally: Tally,
    fault: Option<String>,
}

/// Runs one seed. The error describes the fault.
pub fn run(seed: u64, options: TortureOptions) -> Result<Tally, String> {
    let mut random = Random::new(seed);
    let history = Rc::new(RefCell::new(History::default()));
    let worker_count = u8::try_from(1 + random.below(3)).unwrap_or(1);
    let mut machine = Random::new(!seed);
    let is_narrow = machine.coin();
    let options = if is_narrow {
        options.narrow(&mut machine)
    } else {
        options
    };
    let mut world = World::new(seed, options.world);
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
        if let Some(fault) = history.borrow_mut().fault.take() {
            return Err(fault);
        }
        world = world.crash().with_options(options.world);
        // Sometimes the machine crashes again during recovery.
        if random.below(3) == 0 {
            let opening = world.clone();
            world.executor.spawn(async move {
                let _ = opening.open().await;
            });
            world.executor.run_steps(1 + random.below(400));
            world = world.crash();
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
    Ok(tally)
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
        let accepted = log_harm::accept_loss(&copy);
        let accepted = accepted.map_err(|error| format!("{harm:?}, accepted: {error}"))?;
        history.borrow_mut().tally.losses_accepted += u64::from(accepted);
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

fn set_up(world: &World, more_index_count: u64) -> Result<(), String> {
    let opening = world.clone();
    let made = world.run(async move {
        let database = opening.open().await?;
        let ledger = vec![index("PRIMARY", Uniqueness::Primary, &[0])];
        database
            .engine
            .create_table(rows::table("ledger", vec![big("id")], ledger))
            .await?;
        let unique = rows::column("u", ColumnType::new(TypeKind::BigInt), true);
        let columns = vec![big("id"), big("a"), unique, blob("note")];
        let mut indexes = vec![
            index("PRIMARY", Uniqueness::Primary, &[0]),
            index("by_a", Uniqueness::None, &[1]),
            index("by_u", Uniqueness::Unique, &[2]),
        ];
        indexes.extend((0..more_index_count).map(|number| {
            let columns: &[usize] = if number % 2 == 0 { &[1, 2] } else { &[2, 1] };
            index(&format!("more_{number}"), Uniqueness::None, columns)
        }));
        database
            .engine
            .create_table(rows::table("data", columns, indexes))
            .await?;
        database.close().await
    });
    world.executor.clear();
    made.map_err(|error| format!("set-up: {error}"))
}

/// Starts the sessions of a round, in the open store or in one opened now.
fn spawn_round(world: &World, torture: Torture, recovered: Option<Database>, random: &mut Random) {
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
        let fault_profile = FaultProfile::draw(&mut random);
        fault_profile.begin(&opening.disk);
        if let FaultProfile::Full { until, .. } = fault_profile {
            let clear = opening.clone();
            opening.executor.spawn(async move {
                clear.executor.clock().sleep(until).await;
                FaultProfile::end(&clear.disk);
            });
        }
        for number in 0..torture.options.session_count {
            let number = stdx::to_usize(number);
            let (torture, database) = (torture.clone(), database.on(number));
            let mut random = Random::new(random.next_u64());
            let clock = opening.executor.clock().clone();
            opening.executor.spawn(async move {
                while torture.history.borrow().fault.is_none() {
                    let think = 1 + random.below(THINK_US_MAX);
                    clock.sleep(Duration::from_micros(think)).await;
                    match torture.transaction(&database, &mut random).await {
                        Ok(()) | Err(End::GiveUp) => {}
                        Err(End::LogFailed) => return,
                        Err(End::Fault(fault)) => torture.fail(fault),
                    }
                }
            });
        }
        let mut random = Random::new(random.next_u64());
        let schema = Rc::clone(&torture.history.borrow().schema);
        let database = database.on(stdx::to_usize(random.below(8)));
        let error = schema::change_schema(&database, &schema, &mut random).await;
        if let End::Fault(fault) = torture.meet(error) {
            torture.fail(format!("a schema change: {fault}"));
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

/// Why a comparison did not complete.
enum Compared {
    /// Something could not be read.
    Unread(StoreError),
    /// The contents differ from the expected ones.
    Differs(String),
}

/// Compares a session's view with the model. Returns the transactions that it sees.
async fn compare(
    database: &Database,
    session: &mut Session,
    history: &Rc<RefCell<History>>,
) -> Result<BTreeSet<i64>, Compared> {
    let text = Compared::Unread;
    let ledger = session
        .scan(&database.table("ledger"), all())
        .await
        .map_err(text)?;
    let seen: BTreeSet<i64> = ledger.iter().map(|(_, row)| integer(&row[0])).collect();
    let data = database.table("data");
    let expected = replay(&history.borrow(), &seen).map_err(Compared::Differs)?;
    let scans = [
        all(),
        ScanOptions {
            direction: Direction::Backward,
            ..all()
        },
        ScanOptions {
            index: Some(1),
            ..all()
        },
        ScanOptions {
            index: Some(2),
            direction: Direction::Backward,
            ..all()
        },
    ];
    for (number, scan) in scans.into_iter().enumerate() {
        let found = session.scan(&data, scan).await.map_err(text)?;
        let count = found.len();
        let found: BTreeMap<i64, Data> = found.into_iter().map(|(_, row)| data_of(&row)).collect();
        if found != expected || count != expected.len() {
            let differing = expected
                .keys()
                .copied()
                .chain(found.keys().copied())
                .find(|key| found.get(key) != expected.get(key));
            let describe = |data: Option<&Data>| match data {
                Some((a, unique, note)) => {
                    format!("({a}, {unique:?}, {} of {:?})", note.len(), note.first())
                }
                None => "not there".to_owned(),
            };
            return Err(Compared::Differs(format!(
                "scan {number} of {} transactions, the last {:?}: key {differing:?} is {}, not {}",
                seen.len(),
                seen.last(),
                describe(differing.and_then(|key| found.get(&key))),
                describe(differing.and_then(|key| expected.get(&key))),
            )));
        }
    }
    compare_entries(session, &data, &expected).await?;
    history.borrow_mut().tally.snapshots += 1;
    Ok(seen)
}

/// The same for a scan that reads only index entries if they suffice.
async fn compare_entries(
    session: &mut Session,
    data: &Rc<dyn Table>,
    expected: &BTreeMap<i64, Data>,
) -> Result<(), Compared> {
    let covered = ScanOptions {
        index: Some(1),
        columns: Some(Rc::from([0, 1])),
        ..all()
    };
    let found = session.scan(data, covered).await;
    let found = found.map_err(Compared::Unread)?;
    let pair = |row: &[Value]| (integer(&row[1]), integer(&row[0]));
    let found: Vec<_> = found.iter().map(|(_, row)| pair(row)).collect();
    let mut expected: Vec<_> = expected.iter().map(|(key, row)| (row.0, *key)).collect();
    expected.sort_unstable();
    if found == expected {
        return Ok(());
    }
    let what = format!("entries alone tell {found:?}, not {expected:?}");
    Err(Compared::Differs(what))
}

/// The rows after these transactions.
fn replay(history: &History, seen: &BTreeSet<i64>) -> Result<BTreeMap<i64, Data>, String> {
    let mut rows = BTreeMap::new();
    for number in seen {
        let Some(writes) = history.tried.get(number) else {
            return Err(format!("the ledger has {number}, which never committed"));
        };
        for (key, row) in writes {
            match row {
                Some(row) => rows.insert(*key, row.clone()),
                None => rows.remove(key),
            };
        }
    }
    Ok(rows)
}

fn data_of(row: &[Value]) -> (i64, Data) {
    let unique = if row[2].is_null() {
        None
    } else {
        Some(integer(&row[2]))
    };
    let note = match &row[3] {
        Value::Bytes(bytes) => bytes.clone(),
        _ => Vec::new(),
    };
    (integer(&row[0]), (integer(&row[1]), unique, note))
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
    fn fail(&self, fault: String) {
        self.history.borrow_mut().fault.get_or_insert(fault);
    }

    /// The consequence of a store error.
    fn meet(&self, error: StoreError) -> End {
        let tally = &mut self.history.borrow_mut().tally;
        match error {
            StoreError::Deadlock | StoreError::LockWaitTimeout => {}
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
        let isolation = match random.below(4) {
            0 => Isolation::ReadCommitted,
            _ => Isolation::RepeatableRead,
        };
        let mut session = database.begin(isolation);
        if isolation == Isolation::RepeatableRead && random.below(4) == 0 {
            match compare(database, &mut session, &self.history).await {
                Ok(_) => {}
                Err(Compared::Unread(error)) => return Err(self.meet(error)),
                Err(Compared::Differs(what)) => return Err(End::Fault(what)),
            }
        }
        let outcome = self.work(database, &mut session, random).await;
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
        prepared::end(&mut *session.txn, decision).await?;
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
        session: &mut Session,
        random: &mut Random,
    ) -> Result<Option<i64>, End> {
        let data = database.table("data");
        let mut writes = Writes::new();
        for _ in 0..=random.below(5) {
            if random.below(8) == 0 {
                let (mark, before) = (session.txn.mark(), writes.clone());
                self.change(&data, session, random, &mut writes).await?;
                rows::until_done(|| session.txn.rollback_to(mark))
                    .await
                    .map_err(|error| self.meet(error))?;
                writes = before;
            } else {
                self.change(&data, session, random, &mut writes).await?;
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
        self.history.borrow_mut().tried.insert(number, writes);
        session
            .insert(&database.table("ledger"), &[Value::Int(number)])
            .await
            .map_err(|error| self.meet(error))?;
        Ok(Some(number))
    }

    /// One statement: a row is looked up with a lock, then inserted, changed, moved or removed.
    async fn change(
        &self,
        data: &Rc<dyn Table>,
        session: &mut Session,
        random: &mut Random,
        writes: &mut Writes,
    ) -> Result<(), End> {
        let key = self.random_key(random);
        let range = KeyRange::equal(vec![Value::Int(key)]);
        let locked = ScanOptions {
            index: Some(0),
            range,
            lock: RowLock::Exclusive,
            wait: LockWait::Wait,
            pushed: None,
            ..all()
        };
        let found = session
            .scan(data, locked)
            .await
            .map_err(|error| self.meet(error))?;
        let new = self.random_row(key, random);
        match found.first() {
            None => self.insert(data, session, &new, writes).await,
            Some(row) if random.below(3) == 0 => {
                let done = session.delete(data, &row.0).await;
                let done = done.map_err(|error| self.meet(error))?;
                expect(
                    done == Mutation::Done,
                    "a locked row is there to be deleted",
                )?;
                writes.insert(key, None);
                Ok(())
            }
            Some(row) => self.update(data, session, (row, new, random), writes).await,
        }
    }

    async fn insert(
        &self,
        data: &Rc<dyn Table>,
        session: &mut Session,
        new: &[Value],
        writes: &mut Writes,
    ) -> Result<(), End> {
        let inserted = session.insert(data, new).await;
        if inserted.map_err(|error| self.meet(error))? == Inserted::Done {
            let (key, row) = data_of(new);
            writes.insert(key, Some(row));
        }
        Ok(())
    }

    async fn update(
        &self,
        data: &Rc<dyn Table>,
        session: &mut Session,
        (row, mut new, random): (&Row, Vec<Value>, &mut Random),
        writes: &mut Writes,
    ) -> Result<(), End> {
        let old_key = integer(&row.1[0]);
        if random.below(6) == 0 {
            new[0] = Value::Int(self.random_key(random));
        }
        if random.below(2) == 0 {
            new[2] = row.1[2].clone();
        }
        let updated = session.update(data, &row.0, &new).await;
        match updated.map_err(|error| self.meet(error))? {
            Mutation::Done => {
                let (key, row) = data_of(&new);
                writes.insert(old_key, None);
                writes.insert(key, Some(row));
                Ok(())
            }
            Mutation::Duplicate { .. } => Ok(()),
            Mutation::Gone => expect(false, "a locked row is there to be changed"),
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
            Value::Int(small(random, 6)),
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
