//! Snapshots: each client has a transaction open, and in its turn opens a view, looks at eight
//! writers, closes it, commits, and begins the next transaction.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use env::Random;
use format::{Lsn, TxnId};
use sync::Mutex;
use sync::atomic::{AtomicU64, Ordering};
use txn::{Snapshot, TransactionSystem, TransactionWorker};

use super::crowd::{self, Latch, Measured, Player, behind};
use super::{Stands, Wall};

/// Writers that a view is asked about.
const LOOKS: u32 = 8;

/// They are among so many of the last transactions.
const LOOKS_AMONG: u64 = 256;

/// Words of the ring of transactions.
const RING_LENGTH: usize = 1 << 20;

/// Bytes of a commit in the log.
const COMMIT_BYTES: u64 = 100;

/// What all threads share.
struct Stage {
    system: Arc<TransactionSystem>,
    /// The log's position.
    log: AtomicU64,
    /// The wall: a latch around opening and closing.
    latch: Option<Latch>,
    /// The wall: the numbers of active transactions in their order, which each view copies.
    active: Option<(Latch, Mutex<Vec<u64>>)>,
    copied: AtomicU64,
}

struct Viewer<'a> {
    stage: &'a Stage,
    worker: Rc<TransactionWorker>,
    random: Random,
    /// The open transaction of each client.
    open: Vec<Option<TxnId>>,
}

impl Viewer<'_> {
    fn position(&self) -> Lsn {
        Lsn(self.stage.log.load(Ordering::Acquire))
    }

    fn begin(&self) -> TxnId {
        loop {
            if let Some(id) = self.stage.system.allocate() {
                if let Some((latch, active)) = &self.stage.active {
                    latch.with(|| {
                        let mut active = active.lock();
                        let at = active.partition_point(|other| *other < id.get());
                        active.insert(at, id.get());
                    });
                }
                return id;
            }
            let _ = self.worker.maintain(|| self.position());
        }
    }

    fn commit(&self, id: TxnId) {
        let log = &self.stage.log;
        let reserve = || Lsn(log.fetch_add(COMMIT_BYTES, Ordering::AcqRel) + COMMIT_BYTES);
        self.stage.system.commit(id, reserve);
        if let Some((latch, active)) = &self.stage.active {
            latch.with(|| {
                let mut active = active.lock();
                if let Ok(at) = active.binary_search(&id.get()) {
                    active.remove(at);
                }
            });
        }
        self.worker.note_end();
    }

    /// A view as it was before: the active transactions at its begin, copied.
    fn look_in_copy(&mut self, latch: &Latch, active: &Mutex<Vec<u64>>) -> u32 {
        let copy = latch.with(|| active.lock().clone());
        let bytes = stdx::to_u64(size_of_val(copy.as_slice()));
        self.stage.copied.fetch_add(bytes, Ordering::Relaxed);
        let mut seen = 0;
        for _ in 0..LOOKS {
            let writer = self.writer();
            seen += u32::from(copy.binary_search(&writer.get()).is_err());
        }
        seen
    }

    fn look(&mut self) -> u32 {
        let latch = self.stage.latch.as_ref();
        let snapshot = behind(latch, || Snapshot::open(&self.worker, || self.position()));
        let mut seen = 0;
        for _ in 0..LOOKS {
            let writer = self.writer();
            seen += u32::from(snapshot.sees(writer, None).unwrap_or(false));
        }
        behind(latch, || drop(snapshot));
        seen
    }

    fn writer(&mut self) -> TxnId {
        let last = self.stage.system.next().get() - 1;
        let back = self.random.below(LOOKS_AMONG).min(last - 1);
        TxnId::new(last - back).expect("numbers of transactions are small")
    }
}

impl Player for Viewer<'_> {
    fn turn(&mut self, client: usize) {
        let stage = self.stage;
        let seen = match &stage.active {
            Some((latch, active)) => self.look_in_copy(latch, active),
            None => self.look(),
        };
        std::hint::black_box(seen);
        if let Some(id) = self.open[client].take() {
            self.commit(id);
        }
        self.open[client] = Some(self.begin());
    }

    fn end_round(&mut self) {
        let _ = self.worker.maintain(|| self.position());
    }
}

pub(super) fn measure(wall: Wall, clients: u32, stands: Stands, duration: Duration) -> Measured {
    let threads = crowd::thread_count(clients);
    let first = TxnId::new(LOOKS_AMONG * 2).expect("it is small");
    let is_here = |it: Wall| wall == it && stands == Stands::Yes;
    let stage = Stage {
        system: Arc::new(TransactionSystem::new(
            first,
            std::iter::empty(),
            threads,
            RING_LENGTH,
        )),
        log: AtomicU64::new(COMMIT_BYTES),
        latch: is_here(Wall::ViewLatch).then(Latch::default),
        active: is_here(Wall::CopiedViews).then(Default::default),
        copied: AtomicU64::new(0),
    };
    let measured = crowd::play(clients, duration, |thread, own| Viewer {
        stage: &stage,
        worker: TransactionWorker::new(Arc::clone(&stage.system), thread),
        random: Random::new(stdx::to_u64(thread)),
        open: vec![None; own],
    });
    let latches = stage
        .latch
        .iter()
        .chain(stage.active.iter().map(|it| &it.0));
    Measured {
        contended: latches.map(Latch::contended).sum(),
        copied: stdx::u64_to_f64(stage.copied.load(Ordering::Relaxed)),
        ..measured
    }
}
