//! The log: each client commits a small change in its turn, and waits until it is durable. A thread
//! plays the next round when all its clients' commits are.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context as TaskContext, Poll, Waker};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use env::Disk;
use env::linux::BlockingDisk;
use format::Lsn;
use format::log::{LogOp, MTR_HEADER_BYTES, OpKind};
use wal::{Log, LogLevel, OnLogLoss, Purpose, Wal, WalOptions, WalWriter};

use super::crowd::{self, Latch, Measured, Player, behind};
use super::{Stands, Wall};

/// A small row's change with its undo.
const PAYLOAD_BYTES: usize = 120;

/// Polls a future whose disk never waits.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = TaskContext::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        thread::yield_now();
    }
}

fn open(directory: &Path, worker_count: usize) -> Result<Arc<Wal>> {
    let disk = &BlockingDisk;
    let options = WalOptions {
        worker_count,
        log_bytes_max: 1 << 40,
        segments_ahead: 3,
        ..WalOptions::default()
    };
    disk.create_directory(directory)?;
    now(async {
        let log = Log::create(disk, directory, &options).await?;
        let mut scan = log.scan(OnLogLoss::Refuse);
        while scan.next(disk).await?.is_some() {}
        let started = Wal::start(disk, log, &scan, options, Box::new(|_| {})).await;
        started.context("a new log starts")
    })
}

/// Writes what there is, unless another thread does.
fn flush(wal: &Arc<Wal>) {
    if let Some(job) = wal.try_lead() {
        now(job.run(&BlockingDisk));
    } else {
        thread::yield_now();
    }
    if wal.needs_segments() {
        // Without room the next permit is refused, and this is tried again.
        let _ = now(wal.prepare_segments(&BlockingDisk));
    }
}

fn wait_durable(wal: &Arc<Wal>, lsn: Lsn) {
    wal.request(lsn, LogLevel::Durable);
    while wal.durable() < lsn {
        flush(wal);
    }
}

/// A commit that a thread is to wait for, and where to say that it is durable.
type HandedOff = (Lsn, Sender<()>);

/// A thread's way to the one that wakes its clients.
struct HandOff {
    to: Sender<HandedOff>,
    reply: Sender<()>,
    back: Receiver<()>,
}

struct Committer<'a> {
    wal: &'a Arc<Wal>,
    latch: Option<&'a Latch>,
    hand_off: Option<HandOff>,
    writer: WalWriter,
    mtr: Vec<u8>,
    last: Lsn,
    /// Commits of this round that were handed off.
    handed_count: usize,
}

impl Player for Committer<'_> {
    fn turn(&mut self, _: usize) {
        while self.writer.permit(Purpose::Work).is_err() {
            flush(self.wal);
        }
        self.mtr.clear();
        self.mtr.resize(MTR_HEADER_BYTES, 0);
        LogOp::new(OpKind(99), &[], &[7; PAYLOAD_BYTES]).encode(&mut self.mtr);
        let (writer, mtr) = (&mut self.writer, &mut self.mtr);
        self.last = behind(self.latch, || writer.commit(mtr).end);
        if let Some(hand_off) = &self.hand_off {
            let sent = hand_off.to.send((self.last, hand_off.reply.clone()));
            self.handed_count += usize::from(sent.is_ok());
        }
    }

    fn end_round(&mut self) {
        match &self.hand_off {
            None => wait_durable(self.wal, self.last),
            Some(hand_off) => {
                for _ in 0..std::mem::take(&mut self.handed_count) {
                    // The other thread lives as long as somebody may send to it.
                    let _ = hand_off.back.recv();
                }
            }
        }
    }
}

/// Wakes each waiter whose commit is durable, one after the other.
fn notify(wal: &Arc<Wal>, waiters: &Receiver<HandedOff>) {
    while let Ok((lsn, reply)) = waiters.recv() {
        wait_durable(wal, lsn);
        // A waiter that is gone needs nothing.
        let _ = reply.send(());
    }
}

pub(super) fn measure(
    wall: Wall,
    clients: u32,
    stands: Stands,
    duration: Duration,
) -> Result<Measured> {
    let is_here = |it: Wall| wall == it && stands == Stands::Yes;
    let directory = directory();
    let wal = open(&directory, crowd::thread_count(clients))?;
    let latch = is_here(Wall::OneLogLatch).then(Latch::default);
    let measured = thread::scope(|scope| {
        let notifier = is_here(Wall::HandOffAtCommit).then(|| {
            let (to, waiters) = channel::<HandedOff>();
            let wal = &wal;
            scope.spawn(move || notify(wal, &waiters));
            sync::Mutex::new(to)
        });
        crowd::play(clients, duration, |thread, _| {
            let hand_off = notifier.as_ref().map(|to| {
                let (reply, back) = channel();
                let to = to.lock().clone();
                HandOff { to, reply, back }
            });
            Committer {
                wal: &wal,
                latch: latch.as_ref(),
                hand_off,
                writer: wal.writer(thread),
                mtr: Vec::new(),
                last: Lsn::ZERO,
                handed_count: 0,
            }
        })
    });
    drop(wal);
    std::fs::remove_dir_all(&directory).context("the log of a measurement is removed")?;
    Ok(Measured {
        contended: latch.as_ref().map_or(0.0, Latch::contended),
        ..measured
    })
}

fn directory() -> PathBuf {
    std::env::temp_dir().join(format!("plateau-walls-{}", std::process::id()))
}
