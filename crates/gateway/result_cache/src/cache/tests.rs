//! What is kept, for how long, and in how much memory.

use std::time::Duration;

use wire::{
    Capabilities, ColumnDefinition, ColumnType, CommandByte, OkPacket, PacketWriter, ResultHead,
    StatusFlags, TextRow, end_columns, end_rows,
};

use super::*;
use crate::names::Changes;
use crate::{Filling, KeptReply};

const OLD: Capabilities = Capabilities::PROTOCOL_41;

fn options(bytes_max: usize) -> CacheOptions {
    CacheOptions {
        bytes_max,
        reply_bytes_max: bytes_max / REPLY_PART,
        lifetime: Lifetime {
            hard: None,
            soft: None,
        },
    }
}

fn at(seconds: u64) -> Instant {
    Instant::default() + Duration::from_secs(seconds)
}

fn packets(capabilities: Capabilities, rows: &[&[u8]], ok: &OkPacket<'_>) -> Vec<u8> {
    let mut out = PacketWriter::new();
    out.set_sequence(1);
    ResultHead::encode(&mut out, capabilities, 1);
    ColumnDefinition::new(b"c", ColumnType::String).encode(&mut out, capabilities);
    end_columns(&mut out, capabilities, StatusFlags::AUTOCOMMIT, 0);
    for value in rows {
        let mut row = TextRow::begin(&mut out);
        row.bytes(value);
        row.finish();
    }
    end_rows(&mut out, capabilities, ok);
    out.take()
}

fn slots(names: &[&str]) -> Arc<[TableSlot]> {
    let slot = |name: &&str| TableSlot::of(name.as_bytes()).unwrap();
    names.iter().map(slot).collect()
}

/// Keeps a reply. Returns whether it was kept.
fn keep(
    cache: &Arc<Cache>,
    tables: &Tables,
    key: &[u8],
    (capabilities, bytes): (Capabilities, &[u8]),
) -> bool {
    let scope = Scope::of([]);
    let query = cache.query(&scope, key);
    let moment = tables.begin_query(&slots(&["t"]), at(0)).unwrap();
    let filling = cache
        .fill(&query, (slots(&["t"]), moment), Miss::Again)
        .unwrap();
    let mut onlooker = filling.onlooker();
    for piece in bytes.chunks(100_000) {
        onlooker.passed(piece);
    }
    filling.keep((CommandByte::QUERY, capabilities), (Some(tables), at(0)))
}

fn find(cache: &Cache, tables: &Tables, key: &[u8]) -> Option<Arc<KeptReply>> {
    let scope = Scope::of([]);
    let query = cache.query(&scope, key);
    let (seen, before) = (cache.glimpse(&query, Some(tables), at(0)), cache.counts());
    let found = match cache.find(&query, Some(tables), at(0)) {
        Lookup::Reply(reply) => Some(reply),
        Lookup::Miss(_) => None,
    };
    // A glimpse tells what is found, and counts nothing.
    assert_eq!(seen == Glimpse::Reply, found.is_some());
    let (hits, misses) = (before.hits + 1, before.misses + 1);
    let after = cache.counts();
    assert!(after.hits == hits || after.misses == misses);
    found
}

fn learned() -> Arc<Tables> {
    let tables = Arc::new(Tables::default());
    tables.learn(tables.doubts(), &[]);
    tables
}

#[test]
fn a_reply_is_told_again_until_its_table_changes() {
    let tables = learned();
    for cache in [
        Cache::of_worker(options(1 << 20)),
        Cache::shared(options(1 << 20)),
    ] {
        let cache = Arc::new(cache);
        let bytes = packets(OLD, &[b"a", b"b"], &OkPacket::default());
        assert!(keep(&cache, &tables, b"q", (OLD, &bytes)));
        let reply = find(&cache, &tables, b"q").unwrap();
        assert_eq!((reply.bytes(), reply.row_count()), (&*bytes, 2));
        assert!(find(&cache, &tables, b"r").is_none());
        tables.begin_change(Changes::of_tables([&b"u"[..]])).end();
        assert!(find(&cache, &tables, b"q").is_some());
        let changing = tables.begin_change(Changes::of_tables([&b"T"[..]]));
        assert!(find(&cache, &tables, b"q").is_none());
        assert!(cache.is_empty());
        changing.end();
    }
}

#[test]
fn a_change_while_the_query_runs_has_its_reply_not_kept() {
    let (tables, cache) = (learned(), Arc::new(Cache::of_worker(options(1 << 20))));
    let empty = cache.budget().used();
    let scope = Scope::of([]);
    let query = cache.query(&scope, b"q");
    let moment = tables.begin_query(&slots(&["t"]), at(0)).unwrap();
    let filling = cache
        .fill(&query, (slots(&["t"]), moment), Miss::First)
        .unwrap();
    filling
        .onlooker()
        .passed(&packets(OLD, &[b"a"], &OkPacket::default()));
    tables.begin_change(Changes::of_tables([&b"t"[..]])).end();
    let of = (CommandByte::QUERY, OLD);
    assert!(!filling.keep(of, (Some(&tables), at(0))));
    assert_eq!((cache.len(), cache.budget().used()), (0, empty));
}

#[test]
fn the_places_of_the_status_are_known() {
    let tables = learned();
    let new = OLD | Capabilities::DEPRECATE_EOF;
    for (capabilities, count) in [(OLD, 2), (new, 1)] {
        let cache = Arc::new(Cache::of_worker(options(1 << 20)));
        let ok = OkPacket {
            status: StatusFlags(0x1234 & !0x2000 & !0x1000),
            ..OkPacket::default()
        };
        let bytes = packets(capabilities, &[b"a"], &ok);
        assert!(keep(&cache, &tables, b"q", (capabilities, &bytes)));
        let reply = find(&cache, &tables, b"q").unwrap();
        let places: Vec<usize> = reply.status_places().collect();
        assert_eq!(places.len(), count);
        let last = *places.last().unwrap();
        assert_eq!(bytes[last..last + 2], ok.status.0.to_le_bytes());
        let autocommit = StatusFlags::AUTOCOMMIT.0.to_le_bytes();
        if let [columns, _] = *places {
            assert_eq!(bytes[columns..columns + 2], autocommit);
        }
        let packet_count = if capabilities == OLD { 5 } else { 4 };
        assert_eq!(reply.next_sequence(), packet_count + 1);
    }
}

#[test]
fn what_not_all_can_be_told_is_not_kept() {
    let (tables, cache) = (learned(), Arc::new(Cache::of_worker(options(1 << 20))));
    let with = |flags| {
        let ok = OkPacket {
            status: flags,
            ..OkPacket::default()
        };
        packets(OLD, &[b"a"], &ok)
    };
    let good = with(StatusFlags::AUTOCOMMIT);
    assert!(keep(&cache, &tables, b"good", (OLD, &good)));
    let mut twice = with(StatusFlags::MORE_RESULTS);
    twice.extend_from_slice(&good);
    let warnings = OkPacket {
        warnings: 1,
        ..OkPacket::default()
    };
    let new = OLD | Capabilities::DEPRECATE_EOF | Capabilities::SESSION_TRACK;
    let changed = OkPacket {
        session_changes: &[2, 2, 1, b'1'],
        ..OkPacket::default()
    };
    let changed = packets(new, &[b"a"], &changed);
    assert!(!keep(&cache, &tables, b"bad", (new, &changed)));
    assert!(!keep(
        &cache,
        &tables,
        b"bad",
        (new, &packets(new, &[b"a"], &warnings))
    ));
    let late = [&good[..3], &[7], &good[4..]].concat();
    for bytes in [
        with(StatusFlags::CURSOR_EXISTS),
        packets(OLD, &[b"a"], &warnings),
        twice,
        late,
        good[..good.len() - 1].to_vec(),
        [&good[..], b"\0"].concat(),
        b"\x07\0\0\x01\0\0\0\x02\0\0\0".to_vec(),
        b"\x09\0\0\x01\xFF\x48\x04#HY000".to_vec(),
        Vec::new(),
    ] {
        assert!(!keep(&cache, &tables, b"bad", (OLD, &bytes)), "{bytes:?}");
    }
    assert_eq!(cache.len(), 1);
}

#[test]
fn a_reply_is_kept_up_to_its_limit() {
    let tables = learned();
    let bytes = packets(OLD, &[&[7; 1000]], &OkPacket::default());
    for (limit, is_kept) in [
        (bytes.len() - 1, false),
        (bytes.len(), true),
        (bytes.len() + 1, true),
    ] {
        let cache = Arc::new(Cache::of_worker(CacheOptions {
            reply_bytes_max: limit,
            ..options(1 << 20)
        }));
        assert_eq!(keep(&cache, &tables, b"q", (OLD, &bytes)), is_kept);
        assert_eq!(cache.len(), usize::from(is_kept));
    }
}

/// Rows of more than a frame, too.
#[test]
fn long_rows_are_kept() {
    let (tables, cache) = (learned(), Arc::new(Cache::shared(options(400 << 20))));
    for length in [(1 << 24) - 6, (1 << 24) - 5, (1 << 24) + 7] {
        let row = vec![1; length];
        let bytes = packets(OLD, &[&row, b"b"], &OkPacket::default());
        assert!(keep(&cache, &tables, b"q", (OLD, &bytes)), "{length}");
        let reply = find(&cache, &tables, b"q").unwrap();
        assert!(reply.bytes() == bytes);
        assert_eq!(reply.row_count(), 2);
    }
}

#[test]
fn a_renewal_that_brings_nothing_is_tried_again() {
    let tables = learned();
    let cache = Arc::new(Cache::of_worker(CacheOptions {
        lifetime: Lifetime {
            hard: None,
            soft: Some(Duration::from_secs(1)),
        },
        ..options(1 << 20)
    }));
    let bytes = packets(OLD, &[b"a"], &OkPacket::default());
    assert!(keep(&cache, &tables, b"q", (OLD, &bytes)));
    let scope = Scope::of([]);
    let query = cache.query(&scope, b"q");
    let renewal = |second| match cache.find(&query, Some(&tables), at(second)) {
        Lookup::Miss(renewal) => Some(renewal),
        Lookup::Reply(_) => None,
    };
    let glimpse = || cache.glimpse(&query, Some(&tables), at(1));
    assert_eq!((glimpse(), glimpse()), (Glimpse::Old, Glimpse::Old));
    assert_eq!(renewal(1), Some(Miss::Renewal));
    assert_eq!(
        glimpse(),
        Glimpse::Reply,
        "another one has gone for a newer one"
    );
    let filling = cache.fill(&query, (slots(&["t"]), tables.now()), Miss::Renewal);
    assert!(filling.is_some());
    assert_eq!(renewal(1), None);
    drop(filling);
    assert_eq!(renewal(1), Some(Miss::Renewal));
}

/// However long the replies are, and while copies are made: no more than the cache may take.
#[test]
fn the_memory_of_a_full_cache_is_bounded() {
    let tables = learned();
    for cache in [
        Cache::of_worker(options(1 << 20)),
        Cache::shared(options(1 << 20)),
    ] {
        let cache = Arc::new(cache);
        let empty = cache.budget().used();
        let mut kept = 0;
        for number in 0..3000_usize {
            let length = number * number % 150_000;
            let bytes = packets(OLD, &[&vec![7; length]], &OkPacket::default());
            kept += u32::from(keep(&cache, &tables, &number.to_le_bytes(), (OLD, &bytes)));
            assert!(cache.budget().used() <= cache.budget().max());
        }
        assert!(2000 < kept, "{kept}");
        assert!(cache.budget().max() / 2 < cache.budget().used());
        let counts = cache.counts();
        assert_eq!(counts.kept, u64::from(kept));
        assert_eq!(counts.kept - counts.evictions, stdx::to_u64(cache.len()));
        cache.clear();
        assert_eq!(cache.budget().used(), empty);
    }
}

/// A text is as long as its client likes, and its server may take its time.
#[test]
fn the_keys_of_replies_under_way_count() {
    let (tables, cache) = (learned(), Arc::new(Cache::of_worker(options(1 << 20))));
    let empty = cache.budget().used();
    let scope = Scope::of([]);
    let key = vec![b'q'; 100_000];
    let query = cache.query(&scope, &key);
    let fill = || cache.fill(&query, (slots(&["t"]), tables.now()), Miss::Again);
    let under_way: Vec<_> = std::iter::from_fn(fill).collect();
    let taken = cache.budget().used() - empty;
    assert!(under_way.len() * key.len() <= taken && taken <= 1 << 20);
    assert!(5 < under_way.len(), "{}", under_way.len());
    drop(under_way);
    assert_eq!(cache.budget().used(), empty);
}

/// Queries that are asked once push out nothing. Those that are asked again do.
#[test]
fn a_full_cache_keeps_what_is_asked_again() {
    let tables = learned();
    for cache in [
        Cache::of_worker(options(1 << 20)),
        Cache::shared(options(1 << 20)),
    ] {
        let cache = Arc::new(cache);
        let bytes = packets(OLD, &[&[7; 300]], &OkPacket::default());
        let scope = Scope::of([]);
        let ask = |key: &[u8]| {
            let query = cache.query(&scope, key);
            let Lookup::Miss(miss) = cache.find(&query, Some(&tables), at(0)) else {
                return true;
            };
            if let Some(filling) = cache.fill(&query, (slots(&["t"]), tables.now()), miss) {
                filling.onlooker().passed(&bytes);
                let of = (CommandByte::QUERY, OLD);
                assert!(filling.keep(of, (Some(&tables), at(0))));
            }
            false
        };
        let free = || cache.budget().has(cache.options().reply_bytes_max);
        let mut number = 0_u32;
        while free() {
            assert!(!ask(&number.to_le_bytes()));
            number += 1;
        }
        let full = cache.len();
        for once in number..10 * number {
            assert!(!ask(&once.to_le_bytes()));
        }
        // One is taken for another now and then.
        assert!(cache.counts().evictions < 10, "{:?}", cache.counts());
        assert!(full <= cache.len() + 10);
        let mut twice = 0_u32;
        while cache.counts().evictions < 100 {
            let key = [&b"again"[..], &twice.to_le_bytes()].concat();
            let told = [(); 3].map(|()| ask(&key));
            assert!(!told[0] && told[2], "{told:?}");
            twice += 1;
        }
        assert!(!ask(b"again"));
        ask(b"again");
        assert!(ask(b"again"));
        // One that was void is kept again.
        tables.begin_change(Changes::of_tables([&b"t"[..]])).end();
        for asked in [false, true] {
            assert_eq!(ask(b"again"), asked);
        }
    }
}

/// Asks once, and has the reply shown and kept if the cache likes. Returns whether it was told a
/// kept one.
fn ask(cache: &Arc<Cache>, tables: &Tables, key: &[u8], reply: &[u8]) -> bool {
    let scope = Scope::of([]);
    let query = cache.query(&scope, key);
    let Lookup::Miss(miss) = cache.find(&query, Some(tables), at(0)) else {
        return true;
    };
    if let Some(filling) = cache.fill(&query, (slots(&["t"]), tables.now()), miss) {
        let mut onlooker = filling.onlooker();
        reply.chunks(16 << 10).for_each(|it| onlooker.passed(it));
        filling.keep((CommandByte::QUERY, OLD), (Some(tables), at(0)));
    }
    false
}

/// A reply whose packets have so many bytes.
fn packets_of(bytes: usize) -> Vec<u8> {
    let about = packets(OLD, &[&vec![7; bytes]], &OkPacket::default()).len();
    packets(OLD, &[&vec![7; 2 * bytes - about]], &OkPacket::default())
}

/// Fills a cache with replies of this length.
fn fill_up(cache: &Arc<Cache>, tables: &Tables, bytes: usize) {
    let reply = packets_of(bytes);
    let mut number = 0_u64;
    while cache.counts().evictions == 0 {
        for _ in 0..2 {
            ask(cache, tables, &number.to_le_bytes(), &reply);
        }
        number += 1;
    }
}

#[test]
fn a_cache_full_of_short_replies_keeps_the_longest() {
    let tables = learned();
    for cache in [
        Cache::of_worker(options(4 << 20)),
        Cache::shared(options(4 << 20)),
    ] {
        let cache = Arc::new(cache);
        fill_up(&cache, &tables, 200);
        let longest = packets_of(cache.options().reply_bytes_max);
        assert_eq!(longest.len(), cache.options().reply_bytes_max);
        for number in 0..20_u8 {
            let before = cache.len();
            let told = [(); 3].map(|()| ask(&cache, &tables, &[number], &longest));
            assert!(!told[0] && told[2], "{number}: {told:?}");
            let told = find(&cache, &tables, &[number]).unwrap();
            assert!(told.bytes() == longest);
            if number == 0 {
                assert!(before / 2 < cache.len(), "no more go than it needs");
            }
        }
    }
}

#[test]
fn a_cache_full_of_long_replies_keeps_short_ones() {
    let tables = learned();
    for cache in [
        Cache::of_worker(options(4 << 20)),
        Cache::shared(options(4 << 20)),
    ] {
        let cache = Arc::new(cache);
        fill_up(&cache, &tables, cache.options().reply_bytes_max);
        let short = packets_of(200);
        for number in 0..5000_u32 {
            let key = [&b"short"[..], &number.to_le_bytes()].concat();
            // It is kept at once if a long one has gone before.
            let told = [(); 3].map(|()| ask(&cache, &tables, &key, &short));
            assert!(!told[0] && told[2], "{number}: {told:?}");
        }
    }
}

/// The reply that all want was void. Each session has a copy, and one of them is enough.
#[test]
fn copies_of_one_reply_do_not_empty_a_cache() {
    let (tables, cache) = (learned(), Arc::new(Cache::shared(options(4 << 20))));
    fill_up(&cache, &tables, 200);
    let before = cache.len();
    let longest = packets_of(cache.options().reply_bytes_max);
    let scope = Scope::of([]);
    let query = cache.query(&scope, b"q");
    let fill = |_| cache.fill(&query, (slots(&["t"]), tables.now()), Miss::Again);
    let under_way: Vec<_> = (0..100).filter_map(fill).collect();
    for filling in &under_way {
        filling.onlooker().passed(&longest);
    }
    let of = (CommandByte::QUERY, OLD);
    let keep = |filling: Filling| filling.keep(of, (Some(&tables), at(0)));
    let kept = under_way.into_iter().map(keep).filter(|it| *it).count();
    assert!(0 < kept && find(&cache, &tables, b"q").is_some());
    assert!(before / 2 < cache.len(), "{} of {before}", cache.len());
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Begin,
    Keep,
    FlushBegins,
    ShelvesAreEmptied,
    FlushEnds,
}

/// A reply is kept if it began behind the last flush. The table that it was read from has not
/// changed.
#[test]
fn a_flush_ends_what_is_under_way_in_each_order() {
    use Step::{Begin, FlushBegins, FlushEnds, Keep, ShelvesAreEmptied};
    let flush = [FlushBegins, ShelvesAreEmptied, FlushEnds];
    // The reply begins before a step of the flush, and is kept before another.
    for begin in 0..=flush.len() {
        for keep in begin..=flush.len() {
            let mut steps = flush.to_vec();
            steps.insert(keep, Keep);
            steps.insert(begin, Begin);
            let is_last = begin == flush.len();
            for cache in [
                Cache::of_worker(options(1 << 20)),
                Cache::shared(options(1 << 20)),
            ] {
                let cache = Arc::new(cache);
                assert_eq!(is_found_after(&cache, &steps), is_last, "{steps:?}");
            }
        }
    }
    // Two of them at once.
    let both = [FlushBegins, FlushBegins, ShelvesAreEmptied, FlushEnds];
    let cache = Arc::new(Cache::of_worker(options(1 << 20)));
    let steps = [&both[..], &[Begin, Keep, FlushEnds]].concat();
    assert!(!is_found_after(&cache, &steps));
    let steps = [&both[..], &[FlushEnds, Begin, Keep]].concat();
    assert!(is_found_after(&cache, &steps));
}

/// Whether a reply that its operator vouches for is found behind these steps.
fn is_found_after(cache: &Arc<Cache>, steps: &[Step]) -> bool {
    let (scope, bytes) = (Scope::of([]), packets(OLD, &[b"a"], &OkPacket::default()));
    let query = cache.query(&scope, b"q");
    let mut filling = None;
    for step in steps {
        match step {
            Step::Begin => {
                filling = cache.fill(&query, (Arc::new([]), ChangeTime::default()), Miss::Again);
                if let Some(filling) = &filling {
                    filling.onlooker().passed(&bytes);
                }
            }
            Step::Keep => {
                let of = (CommandByte::QUERY, OLD);
                filling.take().map(|it| it.keep(of, (None, at(0))));
            }
            Step::FlushBegins => cache.flushes.begin(),
            Step::ShelvesAreEmptied => cache.shelves.iter().for_each(|it| it.lock().clear()),
            Step::FlushEnds => cache.flushes.end(),
        }
    }
    matches!(cache.find(&query, None, at(0)), Lookup::Reply(_))
}

#[test]
fn a_reply_does_not_take_the_place_of_one_that_came_meanwhile() {
    let cache = Arc::new(Cache::shared(options(1 << 20)));
    let scope = Scope::of([]);
    let query = cache.query(&scope, b"q");
    let moment = ChangeTime::default();
    let fill = || cache.fill(&query, (Arc::new([]), moment), Miss::First);
    let keep = |filling: Option<Filling>, value: &[u8]| {
        let filling = filling.unwrap();
        let bytes = packets(OLD, &[value], &OkPacket::default());
        filling.onlooker().passed(&bytes);
        filling.keep((CommandByte::QUERY, OLD), (None, at(0)))
    };
    let has = |value: &[u8]| {
        let bytes = packets(OLD, &[value], &OkPacket::default());
        matches!(cache.find(&query, None, at(0)), Lookup::Reply(it) if it.bytes() == bytes)
    };
    let (early, late) = (fill(), fill());
    assert!(keep(late, b"new") && has(b"new"));
    assert!(!keep(early, b"old") && has(b"new"));
    assert!(keep(fill(), b"newer") && has(b"newer"));
}
