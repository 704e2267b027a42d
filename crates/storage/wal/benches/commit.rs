//! What a commit costs: the log's own part with one and two writers, and on a real disk at several
//! group sizes. It measures the thread's CPU time, because wall time says little on a busy machine,
//! and also prints the latency of a flush. `cargo bench -p wal`.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench measures real time, prints, and may fail loudly"
)]

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use env::Disk;
use env::linux::BlockingDisk;
use env::sim::SimDisk;
use format::Lsn;
use format::log::{LogOp, MTR_HEADER_BYTES, OpKind};
use wal::{Log, LogLevel, Wal, WalOptions, WalWriter};

/// Payload of a small row's change with its undo.
const PAYLOAD_BYTES: usize = 120;

/// Polls a future whose disk never waits.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        let polled = future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(value) = polled {
            return value;
        }
        std::thread::yield_now();
    }
}

/// Nanoseconds that this thread was on a CPU.
fn cpu_nanos() -> u128 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    stat.split(' ').next().unwrap().parse().unwrap()
}

fn open(disk: &dyn Disk, directory: &Path, worker_count: usize) -> Arc<Wal> {
    let options = WalOptions {
        worker_count,
        log_bytes_max: 1 << 40,
        segments_ahead: 3,
        ..WalOptions::default()
    };
    disk.create_directory(directory).unwrap();
    now(async {
        let log = Log::create(disk, directory, &options).await.unwrap();
        let mut scan = log.scan(wal::OnLogLoss::Refuse);
        assert!(scan.next(disk).await.unwrap().is_none());
        Wal::start(disk, log, &scan, options, Box::new(|_| {}))
            .await
            .unwrap()
    })
}

fn commit(writer: &mut WalWriter, mtr: &mut Vec<u8>) -> Option<Lsn> {
    writer.permit(wal::Purpose::Work).ok()?;
    mtr.clear();
    mtr.resize(MTR_HEADER_BYTES, 0);
    LogOp::new(OpKind(99), &[], &[7; PAYLOAD_BYTES]).encode(mtr);
    Some(writer.commit(mtr).end)
}

fn flush(wal: &Arc<Wal>, disk: &dyn Disk) {
    if let Some(job) = wal.try_lead() {
        now(job.run(disk));
    }
    if wal.needs_segments() {
        now(wal.prepare_segments(disk)).unwrap();
    }
}

fn real_disk() {
    let directory = std::env::temp_dir().join(format!("plateau-wal-{}", std::process::id()));
    let wal = open(&BlockingDisk, &directory, 1);
    let (mut writer, mut mtr) = (wal.writer(0), Vec::new());
    for group in [1u32, 8, 64, 512] {
        let flush_count = 1000;
        let (start, cpu) = (Instant::now(), cpu_nanos());
        for _ in 0..flush_count {
            let mut last = Lsn::ZERO;
            for _ in 0..group {
                last = commit(&mut writer, &mut mtr).unwrap();
            }
            wal.request(last, LogLevel::Durable);
            flush(&wal, &BlockingDisk);
            assert!(last <= wal.durable());
        }
        let micros = start.elapsed().as_micros();
        let (per_flush, count) = (micros / flush_count, flush_count * u128::from(group));
        let per_commit = (cpu_nanos() - cpu) / count;
        println!(
            "{group:>4} commits a flush: {per_flush} us a flush, {per_commit} ns of CPU a commit"
        );
    }
    std::fs::remove_dir_all(directory).unwrap();
}

/// Commits that fit into the ring, so that nothing is flushed while the time is measured.
fn memory(worker_count: usize) {
    let disk = SimDisk::with_seed(1);
    let wal = open(&disk, Path::new("bench"), worker_count);
    let count = 50_000u32;
    let rounds = 10;
    let mut nanos = 0;
    for _ in 0..rounds {
        nanos += std::thread::scope(|scope| {
            let writers: Vec<_> = (0..worker_count)
                .map(|worker| {
                    let wal = &wal;
                    scope.spawn(move || {
                        let (mut writer, mut mtr) = (wal.writer(worker), Vec::new());
                        let start = cpu_nanos();
                        for _ in 0..count {
                            commit(&mut writer, &mut mtr).expect("the ring has room");
                        }
                        cpu_nanos() - start
                    })
                })
                .collect();
            writers
                .into_iter()
                .map(|writer| writer.join().unwrap())
                .sum::<u128>()
        });
        wal.request_all();
        while wal.durable() < wal.reserved() {
            flush(&wal, &disk);
        }
    }
    let commits = u128::from(count) * rounds * u128::try_from(worker_count).unwrap();
    let per_commit = nanos / commits;
    println!("{worker_count} writers in memory: {per_commit} ns of CPU a commit");
}

fn main() {
    memory(1);
    memory(2);
    real_disk();
}
