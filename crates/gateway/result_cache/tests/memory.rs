//! The memory of a cache as the allocator counts it, under replies of all sizes.

#![forbid(unsafe_code)]

#[path = "shared/reply.rs"]
mod reply;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use env::Instant;
use result_cache::{Cache, CacheOptions, Filling, Lifetime, Miss, Scope, TableSlot, Tables};
use sync::Mutex;
use tikv_jemalloc_ctl::{epoch, stats};
use tikv_jemallocator::Jemalloc;
use wire::CommandByte;

use reply::{CAPABILITIES, packets};

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

const CACHE_BYTES: usize = 256 << 20;

/// The largest reply: 16 MiB.
const REPLY_BITS_MAX: u32 = 24;

/// What the allocator has given out.
fn allocated() -> usize {
    epoch::advance().expect("it counts");
    stats::allocated::read().expect("it counts")
}

fn cache(bytes_max: usize) -> Arc<Cache> {
    Arc::new(Cache::shared(CacheOptions {
        bytes_max,
        reply_bytes_max: bytes_max / result_cache::REPLY_PART,
        lifetime: Lifetime {
            hard: None,
            soft: None,
        },
    }))
}

/// xorshift64* (Vigna 2016).
fn next(random: &mut u64) -> u64 {
    *random ^= *random >> 12;
    *random ^= *random << 25;
    *random ^= *random >> 27;
    random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
}

/// A size from 1 byte to 16 MiB, all magnitudes alike; or from a narrower range, so that there are
/// many replies.
fn size(random: &mut u64, bits_max: u32) -> usize {
    let bits = next(random) % u64::from(bits_max);
    let top = 1_u64 << bits;
    usize::try_from(top + next(random) % top).expect("at most 16 MiB")
}

/// The tests of this program share an allocator, which counts for all of them.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn a_cache_takes_no_more_than_its_size() {
    let _alone = ALONE.lock();
    let tables = Arc::new(Tables::default());
    tables.learn(tables.doubts(), &[]);
    let scope = Scope::of([]);
    let slot = TableSlot::of(b"t").expect("a name");
    for (bits_max, count) in [(REPLY_BITS_MAX, 600), (10, 60_000)] {
        let names: Arc<[TableSlot]> = Arc::new([slot]);
        let bytes_max = if bits_max == REPLY_BITS_MAX {
            CACHE_BYTES
        } else {
            8 << 20
        };
        let before = allocated();
        let cache = cache(bytes_max);
        let mut random = 0x9e37_79b9_7f4a_7c15;
        let mut kept = 0;
        for number in 0_u32..count {
            {
                let reply = packets(&vec![7; size(&mut random, bits_max)]);
                let key = number.to_le_bytes();
                let query = cache.query(&scope, &key);
                let now = Instant::default();
                let moment = tables.begin_query(&names, now).expect("nothing changes");
                let filling = cache
                    .fill(&query, (Arc::clone(&names), moment), Miss::Again)
                    .expect("it was asked for before");
                let mut onlooker = filling.onlooker();
                reply.chunks(64 << 10).for_each(|it| onlooker.passed(it));
                drop((reply, onlooker));
                let of = (CommandByte::QUERY, CAPABILITIES);
                kept += u32::from(filling.keep(of, (Some(&tables), now)));
            }
            if number % 50 == 0 || bits_max == REPLY_BITS_MAX {
                let taken = allocated().saturating_sub(before);
                let limit = bytes_max + bytes_max / 20;
                assert!(taken <= limit, "{taken} of {bytes_max} after {number}");
            }
        }
        assert!(count * 9 / 10 < kept, "{kept} of {count}");
        let used = cache.budget().used();
        assert!(bytes_max / 2 < used, "{used}");
        println!("{kept} kept, {} in {used} bytes", cache.len());
        drop(cache);
    }
}

/// A stretch of time in which replies and keys have such lengths.
struct Stretch {
    count: u32,
    reply_bits: Range<u32>,
    key_bits: Range<u32>,
    /// Replies under way at once.
    under_way: usize,
}

/// A length of so many bits.
fn length(random: &mut u64, bits: &Range<u32>) -> usize {
    let span = u64::from(bits.end - bits.start);
    let top = 1_u64 << (u64::from(bits.start) + next(random) % span);
    usize::try_from(top + next(random) % top).expect("at most 16 MiB")
}

/// Many short replies, few long ones, short ones again, long keys: what the first have left is not
/// lost to the others.
#[test]
fn a_cache_takes_no_more_than_its_size_when_replies_change() {
    let _alone = ALONE.lock();
    let bytes_max = CACHE_BYTES / 2;
    let stretch = |count, reply_bits, key_bits, under_way| Stretch {
        count,
        reply_bits,
        key_bits,
        under_way,
    };
    let stretches = [
        stretch(300_000, 0..2, 2..4, 1),
        stretch(60, 22..24, 2..4, 1),
        stretch(100_000, 0..8, 2..4, 50),
        stretch(6_000, 0..8, 14..17, 1_000),
        stretch(60, 22..24, 2..4, 2),
        stretch(3_000, 0..24, 0..17, 4),
        stretch(100_000, 0..2, 2..4, 1),
    ];
    let tables = Arc::new(Tables::default());
    tables.learn(tables.doubts(), &[]);
    let (scope, now) = (Scope::of([&b"an account"[..]]), Instant::default());
    let before = allocated();
    let cache = cache(bytes_max);
    let check = |place: usize, number: u32| {
        let taken = allocated().saturating_sub(before);
        let limit = bytes_max + bytes_max / 20;
        assert!(
            taken <= limit,
            "{taken} of {bytes_max} in stretch {place} after {number}"
        );
    };
    let mut random = 0x9e37_79b9_7f4a_7c15;
    for (place, stretch) in stretches.iter().enumerate() {
        let mut under_way: VecDeque<Filling> = VecDeque::new();
        let mut kept = 0;
        for number in 0..stretch.count {
            let mut key = vec![b' '; length(&mut random, &stretch.key_bits).max(8)];
            key[..8].copy_from_slice(&next(&mut random).to_le_bytes());
            let names: Arc<[TableSlot]> = Arc::new([TableSlot::of(b"t").expect("a name")]);
            let moment = tables.begin_query(&names, now).expect("nothing changes");
            let query = cache.query(&scope, &key);
            let filling = cache.fill(&query, (names, moment), Miss::Again);
            drop(key);
            if let Some(filling) = filling {
                let reply = packets(&vec![7; length(&mut random, &stretch.reply_bits)]);
                let mut onlooker = filling.onlooker();
                reply.chunks(64 << 10).for_each(|it| onlooker.passed(it));
                drop((reply, onlooker));
                under_way.push_back(filling);
            }
            if stretch.under_way <= under_way.len()
                && let Some(filling) = under_way.pop_front()
            {
                let of = (CommandByte::QUERY, CAPABILITIES);
                kept += u32::from(filling.keep(of, (Some(&tables), now)));
            }
            if number % 500 == 0 || stretch.count < 10_000 {
                check(place, number);
            }
        }
        let used = cache.budget().used();
        assert!(bytes_max / 2 < used, "{used} in stretch {place}");
        let finished = stretch.count - u32::try_from(under_way.len()).expect("few");
        assert!(finished * 9 / 10 < kept, "{kept} in stretch {place}");
    }
}
