//! No client gets a value that is older than one that was acknowledged before it asked, and a
//! transaction is told the values of one snapshot.

use std::sync::Arc;

use env::Instant;
use result_cache::{ChangeTime, Changes, Changing, TableSlot, Tables};

use crate::Random;

/// What is done wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    Nothing,
    /// The moment of a query is taken once it was answered.
    LateMoment,
    /// A reply of a replica is kept, whatever that has.
    AnyReplica,
    /// A change is noted when it is over alone, and its client has the reply before.
    EndsOnly,
    /// A statement that writes two tables counts as a change of the first.
    FirstTable,
    /// A transaction is told a kept value before it has a snapshot.
    NoSnapshot,
    /// A transaction is told what was changed since it began.
    ChangedSince,
}

const TABLES: [&[u8]; 2] = [b"t", b"u"];

/// The value of each table: the number of the last write of it.
type Values = [u64; TABLES.len()];

#[derive(Debug)]
enum Reader {
    Idle,
    Asked {
        table: usize,
        moment: Option<ChangeTime>,
        from_replica: bool,
        /// The server had all that was acknowledged.
        is_current: bool,
    },
    Answered {
        table: usize,
        moment: Option<ChangeTime>,
        is_current: bool,
        value: u64,
    },
}

/// What a statement writes: a table, or both.
type Written = &'static [usize];

#[derive(Debug)]
enum Writer {
    Idle,
    Begun(Written, Option<Changing>),
    Applied(Written, Option<Changing>, u64),
    Told(Written, Option<Changing>),
}

/// A transaction of reads at the primary.
#[derive(Debug)]
struct Transaction {
    since: ChangeTime,
    /// The state that it reads once it has read.
    snapshot: Option<Values>,
    told: [Option<u64>; TABLES.len()],
    /// What its server has answered, and may be kept.
    answered: Option<(usize, u64)>,
}

struct World {
    mistake: Mistake,
    tables: Arc<Tables>,
    /// What the primary was behind each write, the first before any.
    states: Vec<Values>,
    /// The place of the replica's state.
    replica: usize,
    /// Of each table.
    acknowledged: Values,
    cache: [Option<(u64, ChangeTime)>; TABLES.len()],
    readers: [Reader; 3],
    writers: [Writer; 2],
    transaction: Option<Transaction>,
    random: Random,
    hits: u64,
    /// Kept values that transactions were told.
    inside_hits: u64,
}

fn name(table: usize) -> [TableSlot; 1] {
    [TableSlot::of(TABLES[table]).expect("a name of ASCII")]
}

fn changes_of(mistake: Mistake, written: Written) -> Changes {
    let noted = match mistake {
        Mistake::FirstTable => &written[..1],
        _ => written,
    };
    Changes::of_tables(noted.iter().map(|table| TABLES[*table]))
}

impl World {
    fn new(mistake: Mistake, seed: u64) -> World {
        let tables = Arc::new(Tables::default());
        tables.learn(tables.doubts(), &[]);
        World {
            mistake,
            tables,
            states: vec![Values::default()],
            replica: 0,
            acknowledged: Values::default(),
            cache: [None; TABLES.len()],
            readers: [Reader::Idle, Reader::Idle, Reader::Idle],
            writers: [Writer::Idle, Writer::Idle],
            transaction: None,
            random: Random::of(seed),
            hits: 0,
            inside_hits: 0,
        }
    }

    fn primary(&self) -> Values {
        *self.states.last().expect("there is the first")
    }

    /// One step of somebody. Returns `false` if a client got an old value.
    fn step(&mut self) -> bool {
        match self.random.below(24) {
            0 => self.replica = self.replica.max(self.random.index(self.states.len())),
            1 => self.replica = self.states.len() - 1,
            2..4 => {
                let place = self.random.index(self.writers.len());
                self.write(place);
            }
            4..16 => {
                let place = self.random.index(self.readers.len());
                return self.read(place);
            }
            _ => return self.transact(),
        }
        true
    }

    fn write(&mut self, place: usize) {
        let notes_begin = self.mistake != Mistake::EndsOnly;
        let before = std::mem::replace(&mut self.writers[place], Writer::Idle);
        self.writers[place] = match before {
            Writer::Idle => {
                let all: [Written; 3] = [&[0], &[1], &[0, 1]];
                let written = all[self.random.index(all.len())];
                let changes = changes_of(self.mistake, written);
                let changing = notes_begin.then(|| self.tables.begin_change(changes));
                Writer::Begun(written, changing)
            }
            Writer::Begun(written, changing) => {
                let number = u64::try_from(self.states.len()).expect("few");
                let mut state = self.primary();
                written.iter().for_each(|table| state[*table] = number);
                self.states.push(state);
                Writer::Applied(written, changing, number)
            }
            Writer::Applied(written, changing, number) => {
                for table in written {
                    self.acknowledged[*table] = self.acknowledged[*table].max(number);
                }
                Writer::Told(written, changing)
            }
            Writer::Told(written, changing) => {
                match changing {
                    Some(changing) => changing.end(),
                    None => self.tables.note_change(changes_of(self.mistake, written)),
                }
                Writer::Idle
            }
        };
    }

    /// The value that is kept of a table, if it is good.
    fn kept(&self, table: usize) -> Option<u64> {
        let (value, moment) = self.cache[table]?;
        let is_good = self.tables.are_unchanged(&name(table), moment);
        is_good.then_some(value)
    }

    fn moment(&self, table: usize) -> Option<ChangeTime> {
        let begun = self.tables.begin_query(&name(table), Instant::default());
        begun.ok()
    }

    fn keep(&mut self, table: usize, value: u64, moment: ChangeTime) {
        if self.tables.are_unchanged(&name(table), moment) {
            self.cache[table] = Some((value, moment));
        }
    }

    fn read(&mut self, place: usize) -> bool {
        let before = std::mem::replace(&mut self.readers[place], Reader::Idle);
        self.readers[place] = match before {
            Reader::Idle => {
                let table = self.random.index(TABLES.len());
                if let Some(value) = self.kept(table) {
                    self.hits += 1;
                    return self.acknowledged[table] <= value;
                }
                let from_replica = self.random.below(2) == 0;
                let all = self.acknowledged.iter().max().copied().unwrap_or_default();
                let has_all = all <= u64::try_from(self.replica).expect("few");
                Reader::Asked {
                    table,
                    moment: self.moment(table),
                    from_replica,
                    is_current: !from_replica || has_all || self.mistake == Mistake::AnyReplica,
                }
            }
            Reader::Asked {
                table,
                moment,
                from_replica,
                is_current,
            } => {
                let state = match from_replica {
                    true => self.states[self.replica],
                    false => self.primary(),
                };
                Reader::Answered {
                    table,
                    moment,
                    is_current,
                    value: state[table],
                }
            }
            Reader::Answered {
                table,
                moment: early,
                is_current,
                value,
            } => {
                let moment = match self.mistake {
                    Mistake::LateMoment => self.moment(table),
                    _ => early,
                };
                if let Some(moment) = moment.filter(|_| is_current) {
                    self.keep(table, value, moment);
                }
                Reader::Idle
            }
        };
        true
    }

    /// A step of the transaction. Returns `false` if it was told values of two states.
    fn transact(&mut self) -> bool {
        let Some(mut transaction) = self.transaction.take() else {
            self.transaction = Some(Transaction {
                since: self.tables.now(),
                snapshot: None,
                told: [None; TABLES.len()],
                answered: None,
            });
            return true;
        };
        let since = transaction.since;
        if let Some((table, value)) = transaction.answered.take() {
            self.keep(table, value, since);
        } else if self.random.below(4) == 0 {
            return true;
        } else {
            let table = self.random.index(TABLES.len());
            let is_same = self.mistake == Mistake::ChangedSince
                || self.tables.are_unchanged(&name(table), since);
            let may_tell = self.mistake == Mistake::NoSnapshot || transaction.snapshot.is_some();
            let kept = self.kept(table).filter(|_| is_same && may_tell);
            self.inside_hits += u64::from(kept.is_some());
            let value = kept.unwrap_or_else(|| {
                let may_keep = self.moment(table).is_some();
                let present = self.primary();
                let value = transaction.snapshot.get_or_insert(present)[table];
                transaction.answered = may_keep.then_some((table, value));
                value
            });
            transaction.told[table].get_or_insert(value);
            let told = transaction.told[table] == Some(value);
            let states = transaction.snapshot.iter();
            let mut wanted = states.flat_map(|state| state.iter().zip(&transaction.told));
            let is_one = told && wanted.all(|(value, told)| told.is_none_or(|it| it == *value));
            if !is_one {
                return false;
            }
        }
        self.transaction = Some(transaction);
        true
    }
}

/// Whether a client gets an old value in a run of this seed, and how often clients and
/// transactions were told kept values.
fn run(mistake: Mistake, seed: u64) -> (bool, u64, u64) {
    let mut world = World::new(mistake, seed);
    let is_right = (0..8000).all(|_| world.step());
    (!is_right, world.hits, world.inside_hits)
}

#[test]
fn no_client_is_told_an_old_value() {
    let (mut hits, mut inside_hits) = (0, 0);
    for seed in 0..100 {
        let (is_wrong, told, told_inside) = run(Mistake::Nothing, seed);
        assert!(!is_wrong, "seed {seed}");
        hits += told;
        inside_hits += told_inside;
    }
    assert!(1000 < hits && 1000 < inside_hits, "{hits} {inside_hits}");
}

#[test]
fn planted_mistakes_are_found() {
    for mistake in [
        Mistake::LateMoment,
        Mistake::AnyReplica,
        Mistake::EndsOnly,
        Mistake::FirstTable,
        Mistake::NoSnapshot,
        Mistake::ChangedSince,
    ] {
        let found = (0..20).find(|seed| run(mistake, *seed).0);
        assert!(found.is_some(), "{mistake:?}");
    }
}
