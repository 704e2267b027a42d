//! The memory of a cache as the allocator counts it, under replies of all sizes.

#![forbid(unsafe_code)]

use std::sync::Arc;

use env::Instant;
use result_cache::{Cache, CacheOptions, Lifetime, Miss, Scope, TableSlot, Tables};
use tikv_jemalloc_ctl::{epoch, stats};
use tikv_jemallocator::Jemalloc;
use wire::{
    Capabilities, ColumnDefinition, ColumnType, CommandByte, OkPacket, PacketWriter, ResultHead,
    TextRow, end_columns, end_rows,
};

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

const CAPABILITIES: Capabilities = Capabilities::PROTOCOL_41;

const CACHE_BYTES: usize = 256 << 20;

/// The largest reply: 16 MiB.
const REPLY_BITS_MAX: u32 = 24;

/// What the allocator has given out.
fn allocated() -> usize {
    epoch::advance().expect("it counts");
    stats::allocated::read().expect("it counts")
}

fn packets(length: usize) -> Vec<u8> {
    let mut out = PacketWriter::new();
    out.set_sequence(1);
    ResultHead::encode(&mut out, CAPABILITIES, 1);
    ColumnDefinition::new(b"c", ColumnType::String).encode(&mut out, CAPABILITIES);
    let ok = OkPacket::default();
    end_columns(&mut out, CAPABILITIES, ok.status, 0);
    let mut row = TextRow::begin(&mut out);
    row.bytes(&vec![7; length]);
    row.finish();
    end_rows(&mut out, CAPABILITIES, &ok);
    out.take()
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

#[test]
fn a_cache_takes_no_more_than_its_size() {
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
        let cache = Arc::new(Cache::shared(CacheOptions {
            bytes_max,
            reply_bytes_max: bytes_max / result_cache::REPLY_PART,
            lifetime: Lifetime {
                hard: None,
                soft: None,
            },
        }));
        let mut random = 0x9e37_79b9_7f4a_7c15;
        let mut kept = 0;
        for number in 0_u32..count {
            {
                let reply = packets(size(&mut random, bits_max));
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
