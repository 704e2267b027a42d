//! Clients, servers and a cache under one seed: no client gets a value that is older than one
//! that was acknowledged before it asked. Planted mistakes are found.

#![forbid(unsafe_code)]

use std::sync::Arc;

use env::Instant;
use result_cache::{ChangeTime, Changes, Changing, TableSlot, Tables};

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
}

#[derive(Debug)]
enum Reader {
    Idle,
    Asked {
        moment: Option<ChangeTime>,
        from_replica: bool,
        /// The server had all that was acknowledged.
        is_current: bool,
    },
    Answered {
        moment: Option<ChangeTime>,
        is_current: bool,
        value: u64,
    },
}

#[derive(Debug)]
enum Writer {
    Idle,
    Begun(Option<Changing>),
    Applied(Option<Changing>, u64),
    Told(Option<Changing>),
}

struct World {
    mistake: Mistake,
    tables: Arc<Tables>,
    primary: u64,
    replica: u64,
    acknowledged: u64,
    cache: Option<(u64, ChangeTime)>,
    readers: [Reader; 3],
    writers: [Writer; 2],
    random: u64,
    hits: u64,
}

impl World {
    fn new(mistake: Mistake, seed: u64) -> World {
        let tables = Arc::new(Tables::default());
        tables.learn(tables.doubts(), &[]);
        World {
            mistake,
            tables,
            primary: 0,
            replica: 0,
            acknowledged: 0,
            cache: None,
            readers: [Reader::Idle, Reader::Idle, Reader::Idle],
            writers: [Writer::Idle, Writer::Idle],
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            hits: 0,
        }
    }

    /// xorshift64* (Vigna 2016).
    fn below(&mut self, limit: u64) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % limit
    }

    fn names() -> [TableSlot; 1] {
        [TableSlot::of(b"t").expect("a name of ASCII")]
    }

    /// One step of somebody. Returns `false` if a client got an old value.
    fn step(&mut self) -> bool {
        match self.below(16) {
            0 => self.replica = self.replica.max(self.below(self.primary + 1)),
            1 => self.replica = self.primary,
            place @ 2..4 => self.write(usize::try_from(place - 2).expect("small")),
            place => {
                let place = usize::try_from(place).expect("small") % self.readers.len();
                return self.read(place);
            }
        }
        true
    }

    fn write(&mut self, place: usize) {
        let changes = Changes::of_tables([&b"t"[..]]);
        let notes_begin = self.mistake != Mistake::EndsOnly;
        let before = std::mem::replace(&mut self.writers[place], Writer::Idle);
        self.writers[place] = match before {
            Writer::Idle => Writer::Begun(notes_begin.then(|| self.tables.begin_change(changes))),
            Writer::Begun(changing) => {
                self.primary += 1;
                Writer::Applied(changing, self.primary)
            }
            Writer::Applied(changing, value) => {
                self.acknowledged = self.acknowledged.max(value);
                Writer::Told(changing)
            }
            Writer::Told(changing) => {
                match changing {
                    Some(changing) => changing.end(),
                    None => self.tables.note_change(changes),
                }
                Writer::Idle
            }
        };
    }

    fn read(&mut self, place: usize) -> bool {
        let names = World::names();
        let moment = |tables: &Tables| tables.begin_query(&names, Instant::default()).ok();
        let before = std::mem::replace(&mut self.readers[place], Reader::Idle);
        self.readers[place] = match before {
            Reader::Idle => {
                if let Some((value, moment)) = self.cache
                    && self.tables.are_unchanged(&names, moment)
                {
                    self.hits += 1;
                    return self.acknowledged <= value;
                }
                let from_replica = self.below(2) == 0;
                let has_all = !from_replica || self.acknowledged <= self.replica;
                Reader::Asked {
                    moment: moment(&self.tables),
                    from_replica,
                    is_current: has_all || self.mistake == Mistake::AnyReplica,
                }
            }
            Reader::Asked {
                moment,
                from_replica,
                is_current,
            } => Reader::Answered {
                moment,
                is_current,
                value: if from_replica {
                    self.replica
                } else {
                    self.primary
                },
            },
            Reader::Answered {
                moment: early,
                is_current,
                value,
            } => {
                let moment = match self.mistake {
                    Mistake::LateMoment => moment(&self.tables),
                    _ => early,
                };
                if let Some(moment) = moment.filter(|_| is_current)
                    && self.tables.are_unchanged(&names, moment)
                {
                    self.cache = Some((value, moment));
                }
                Reader::Idle
            }
        };
        true
    }
}

/// Whether a client gets an old value in a run of this seed, and how often one got a kept value.
fn run(mistake: Mistake, seed: u64) -> (bool, u64) {
    let mut world = World::new(mistake, seed);
    let is_right = (0..8000).all(|_| world.step());
    (!is_right, world.hits)
}

#[test]
fn no_client_is_told_an_old_value() {
    let mut hits = 0;
    for seed in 0..100 {
        let (is_wrong, told) = run(Mistake::Nothing, seed);
        assert!(!is_wrong, "seed {seed}");
        hits += told;
    }
    assert!(1000 < hits, "{hits}");
}

#[test]
fn planted_mistakes_are_found() {
    for mistake in [Mistake::LateMoment, Mistake::AnyReplica, Mistake::EndsOnly] {
        let found = (0..20).find(|seed| run(mistake, *seed).0);
        assert!(found.is_some(), "{mistake:?}");
    }
}
