//! A cache whose operator vouches for all queries: nobody gets a value from before a flush, and
//! kept values do not go back.

use std::sync::Arc;

use env::Instant;
use result_cache::{Cache, CacheOptions, ChangeTime, Filling, Lifetime, Lookup, Miss, Scope};
use wire::CommandByte;

use crate::Random;
use crate::reply::{CAPABILITIES, packets};

/// What is done wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    Nothing,
    /// A reply begins once its query was answered.
    LateBegin,
}

enum Reader {
    Idle,
    Asked(Option<Filling>),
    Answered(Option<Filling>, u64),
}

struct World {
    mistake: Mistake,
    cache: Arc<Cache>,
    scope: Scope,
    readers: [Reader; 4],
    /// The value at the server.
    value: u64,
    /// What it was at the last flush, and the greatest that was told since.
    least: u64,
    hits: u64,
    random: Random,
}

impl World {
    fn new(mistake: Mistake, seed: u64) -> World {
        World {
            mistake,
            cache: Arc::new(Cache::of_worker(CacheOptions {
                bytes_max: 1 << 20,
                reply_bytes_max: 1 << 10,
                lifetime: Lifetime {
                    hard: None,
                    soft: None,
                },
            })),
            scope: Scope::of([]),
            readers: [const { Reader::Idle }; 4],
            value: 0,
            least: 0,
            hits: 0,
            random: Random::of(seed),
        }
    }

    fn fill(&self) -> Option<Filling> {
        let query = self.cache.query(&self.scope, b"q");
        let of = (Arc::from([]), ChangeTime::default());
        self.cache.fill(&query, of, Miss::Again)
    }

    /// One step of somebody. Returns `false` if a client got an old value.
    fn step(&mut self) -> bool {
        match self.random.below(16) {
            0..3 => self.value += 1,
            3 => {
                self.cache.clear();
                self.least = self.value;
            }
            _ => {
                let place = self.random.index(self.readers.len());
                return self.read(place);
            }
        }
        true
    }

    fn read(&mut self, place: usize) -> bool {
        let before = std::mem::replace(&mut self.readers[place], Reader::Idle);
        self.readers[place] = match before {
            Reader::Idle => {
                let query = self.cache.query(&self.scope, b"q");
                if let Lookup::Reply(reply) = self.cache.find(&query, None, Instant::default()) {
                    let told = value_of(reply.bytes());
                    let is_right = self.least <= told;
                    self.least = told;
                    self.hits += 1;
                    return is_right;
                }
                Reader::Asked(self.fill())
            }
            Reader::Asked(filling) => Reader::Answered(filling, self.value),
            Reader::Answered(early, value) => {
                let filling = match self.mistake {
                    Mistake::Nothing => early,
                    Mistake::LateBegin => self.fill(),
                };
                if let Some(filling) = filling {
                    filling
                        .onlooker()
                        .passed(&packets(format!("{value:0DIGITS$}").as_bytes()));
                    let of = (CommandByte::QUERY, CAPABILITIES);
                    filling.keep(of, (None, Instant::default()));
                }
                Reader::Idle
            }
        };
        true
    }
}

/// Digits of a value, before the packet that ends the rows.
const DIGITS: usize = 8;
const END_BYTES: usize = 9;

fn value_of(packets: &[u8]) -> u64 {
    let end = packets.len() - END_BYTES;
    let digits = std::str::from_utf8(&packets[end - DIGITS..end]).expect("digits");
    digits.parse().expect("digits")
}

/// Whether a client gets an old value in a run of this seed, and how often one got a kept
/// value.
fn run(mistake: Mistake, seed: u64) -> (bool, u64) {
    let mut world = World::new(mistake, seed);
    let is_right = (0..4000).all(|_| world.step());
    (!is_right, world.hits)
}

#[test]
fn no_client_is_told_a_value_from_before_a_flush() {
    let mut hits = 0;
    for seed in 0..50 {
        let (is_wrong, told) = run(Mistake::Nothing, seed);
        assert!(!is_wrong, "seed {seed}");
        hits += told;
    }
    assert!(1000 < hits, "{hits}");
}

#[test]
fn planted_mistakes_are_found() {
    let found = (0..20).find(|seed| run(Mistake::LateBegin, *seed).0);
    assert!(found.is_some());
}
