//! What a query costs in a full cache of short replies: one that is kept, one that comes once, and
//! one whose reply is kept in the place of another.
//!
//! `cargo bench -p result_cache` prints nanoseconds of CPU for each, the best of several rounds.

#![forbid(unsafe_code)]

#[path = "../tests/shared/reply.rs"]
mod reply;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant as Clock;

use env::Instant;
use result_cache::{Cache, CacheOptions, Lifetime, Lookup, Miss, Scope, TableSlot, Tables};
use tikv_jemallocator::Jemalloc;
use wire::CommandByte;

use reply::{CAPABILITIES, packets};

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

const ROUNDS: usize = 15;
const LOOPS: u32 = 100_000;

/// Bytes of a cache, and of the value in a reply.
const CACHE_BYTES: usize = 64 << 20;
const VALUE_BYTES: usize = 100;

struct Bench {
    cache: Arc<Cache>,
    tables: Arc<Tables>,
    scope: Scope,
    names: Arc<[TableSlot]>,
    reply: Vec<u8>,
    /// Queries that have come so far.
    count: u32,
}

#[allow(clippy::print_stdout, reason = "a bench tells its figures")]
fn main() {
    // When run as a test, it only needs to build.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let mut bench = Bench::new();
    let kept_count = bench.cache.len();
    println!("kept replies {kept_count}");
    let last = bench.count;
    // Of the newer half, so that what the other measures push out matters to none.
    let half = u32::try_from(kept_count / 2).expect("a small cache");
    let mut place = 0_u32;
    let hit = measure(|| {
        place = place.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
        let key = last - 1 - place % half;
        assert!(bench.find(key).is_none());
    });
    println!("hit          {hit:7.1} ns");
    let miss = measure(|| {
        let number = bench.next();
        let miss = bench.find(number).expect("it is a new one");
        black_box(bench.keep(number, miss));
    });
    println!("miss         {miss:7.1} ns");
    let keep = measure(|| {
        let number = bench.next();
        bench.find(number).expect("it is a new one");
        assert!(bench.keep(number, Miss::Again));
    });
    println!("keep         {keep:7.1} ns");
}

impl Bench {
    /// With a cache that is full.
    fn new() -> Bench {
        let tables = Arc::new(Tables::default());
        tables.learn(tables.doubts(), &[]);
        let options = CacheOptions {
            bytes_max: CACHE_BYTES,
            reply_bytes_max: 1 << 20,
            lifetime: Lifetime {
                hard: None,
                soft: None,
            },
        };
        let mut bench = Bench {
            cache: Arc::new(Cache::shared(options)),
            tables,
            scope: Scope::of([]),
            names: Arc::new([TableSlot::of(b"t").expect("a name")]),
            reply: packets(&[7; VALUE_BYTES]),
            count: 0,
        };
        while bench.cache.counts().evictions < 10_000 {
            let number = bench.next();
            assert!(bench.keep(number, Miss::Again));
        }
        bench
    }

    fn next(&mut self) -> u32 {
        self.count += 1;
        self.count - 1
    }

    fn find(&self, number: u32) -> Option<Miss> {
        let key = key_of(number);
        let query = self.cache.query(&self.scope, &key);
        match self
            .cache
            .find(&query, Some(&self.tables), Instant::default())
        {
            Lookup::Reply(reply) => {
                black_box(reply.bytes());
                None
            }
            Lookup::Miss(miss) => Some(miss),
        }
    }

    fn keep(&self, number: u32, miss: Miss) -> bool {
        let key = key_of(number);
        let query = self.cache.query(&self.scope, &key);
        let now = Instant::default();
        let moment = self.tables.begin_query(&self.names, now);
        let of = (Arc::clone(&self.names), moment.expect("nothing changes"));
        let Some(filling) = self.cache.fill(&query, of, miss) else {
            return false;
        };
        filling.onlooker().passed(&self.reply);
        filling.keep(
            (CommandByte::QUERY, CAPABILITIES),
            (Some(&self.tables), now),
        )
    }
}

/// As long as a short query.
fn key_of(number: u32) -> [u8; 40] {
    let mut key = [b' '; 40];
    key[..4].copy_from_slice(&number.to_le_bytes());
    key
}

/// Nanoseconds a call, in the best round.
fn measure(mut work: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        #[allow(clippy::disallowed_methods, reason = "a bench reads the clock")]
        let start = Clock::now();
        for _ in 0..LOOPS {
            work();
        }
        best = best.min(start.elapsed().as_secs_f64());
    }
    best * 1e9 / f64::from(LOOPS)
}
