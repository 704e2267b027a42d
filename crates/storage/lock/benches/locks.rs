//! What locks cost: `cargo bench -p lock`. With an argument `ordinary N` it runs N transactions of
//! 20 locks and nothing else, for a count of instructions (`valgrind --tool=cachegrind`).
//!
//! The bench fails if ten million locks of a transaction take 64 MB or more. `cargo test` runs it
//! with a tenth of them.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench measures real time, prints, and may fail loudly"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use format::{IndexId, TxnId};
use lock::{Acquired, Ask, LockKind, LockName, LockTable, OwnerLocks, Term};
use store::ClientId;
use tikv_jemalloc_ctl::{epoch, stats};
use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// Locks of an ordinary transaction.
const FEW: u64 = 20;

/// Locks of a large one.
const MANY: u64 = 10_000_000;
/// The bytes that they may take.
const MANY_BYTES: u64 = 64_000_000;

/// How much is run.
#[derive(Clone, Copy)]
struct Size {
    /// Locks of the large transaction.
    many: u64,
    /// Bytes that they may take. The newest ones are not compact yet.
    bytes: u64,
    /// Ordinary transactions of a round.
    ordinary: u64,
}

fn allocated() -> u64 {
    epoch::advance().unwrap();
    u64::try_from(stats::allocated::read().unwrap()).unwrap()
}

fn name(row: u64) -> LockName {
    LockName::key(IndexId(7), &row.to_be_bytes())
}

fn owner(table: &Arc<LockTable>, id: u64) -> OwnerLocks {
    OwnerLocks::new(Arc::clone(table), TxnId::new(id).unwrap(), ClientId::NONE)
}

fn lock(locks: &mut OwnerLocks, row: u64) -> bool {
    let ask = Ask {
        name: &name(row),
        kind: LockKind::EXCLUSIVE_RECORD,
        term: Term::Transaction,
        patience: Duration::ZERO,
        work: 0,
    };
    matches!(locks.acquire(ask, 0), Ok(Acquired::Granted))
}

/// Runs transactions of a few locks, one after the other. Returns the number of locks that were not
/// granted, for compact ones of another.
fn ordinary(table: &Arc<LockTable>, count: u64) -> usize {
    let mut refused_count = 0;
    for id in 0..count {
        let mut locks = owner(table, 100 + id);
        let first = id.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 << 63;
        refused_count += (0..FEW)
            .filter(|row| !lock(&mut locks, first ^ row))
            .count();
        locks.release_all();
    }
    refused_count
}

/// Nanoseconds a lock of ordinary transactions: the median of some rounds.
fn ordinary_ns(table: &Arc<LockTable>, count: u64) -> f64 {
    let mut rounds: Vec<_> = (0..9)
        .map(|_| {
            let start = Instant::now();
            let refused_count = ordinary(table, count);
            assert!(refused_count < 20, "one in 440,000 is expected");
            start.elapsed().as_secs_f64() * 1e9 / (count * FEW) as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[rounds.len() / 2]
}

fn many(size: Size) {
    let table = Arc::new(LockTable::new(1 << 40));
    let alone_ns = ordinary_ns(&table, size.ordinary);
    println!("a lock alone: {alone_ns:.0} ns");
    let before = allocated();
    let mut locks = owner(&table, 1);
    let start = Instant::now();
    let granted_count = (0..size.many).filter(|row| lock(&mut locks, *row)).count();
    let ns = start.elapsed().as_secs_f64() * 1e9 / size.many as f64;
    let (taken, counted) = (allocated() - before, locks.held_bytes());
    println!(
        "{granted_count} of {} locks granted, {ns:.0} ns each",
        size.many
    );
    println!("{taken} bytes taken, {counted} counted");
    let beside_ns = ordinary_ns(&table, size.ordinary);
    println!("a lock beside them: {beside_ns:.0} ns");
    let start = Instant::now();
    let mut longest = Duration::ZERO;
    let mut more = true;
    while more {
        let step = Instant::now();
        more = locks.release_some(512);
        longest = longest.max(step.elapsed());
    }
    let whole = start.elapsed();
    println!("released in {whole:?}, no step longer than {longest:?}");
    assert!(table.is_empty());
    assert!(taken < size.bytes && counted < size.bytes, "too many bytes");
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().position(|it| it == "ordinary") {
        Some(at) => {
            let count = arguments[at + 1].parse().unwrap();
            let refused_count = ordinary(&Arc::new(LockTable::new(1 << 40)), count);
            assert_eq!(refused_count, 0, "nobody else has locks");
        }
        None if arguments.iter().any(|it| it == "--bench") => many(Size {
            many: MANY,
            bytes: MANY_BYTES,
            ordinary: 20_000,
        }),
        None => many(Size {
            many: MANY / 10,
            bytes: MANY_BYTES / 8,
            ordinary: 1_000,
        }),
    }
}
