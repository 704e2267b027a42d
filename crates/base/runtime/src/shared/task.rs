//! Tasks: futures that stay on their worker, and the wakers that find them from anywhere.
//!
//! (I1) A task is in the run queue, or in its worker's inbox, at most once. Whoever puts it there
//!      sets `is_queued`; it is cleared just before the poll. A wake-up during the poll queues the
//!      task again.
//! (I2) The future is touched by its worker alone. Only the header crosses threads.
//! (I3) A task's place in the run queue is written and read by its worker alone. It lies in the
//!      header because a wake-up touches that anyway. Relaxed: no other thread reads it.
//! (I4) A header whose task is gone is ignored: slots are compared by header, not by index.

use std::sync::Arc;

use env::Instant;
use sync::WakeFlag;
use sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use crate::coroutine::{TaskCoroutine, TaskFuture};
use crate::hot_memory::HotMemory;
use crate::run_queue::{Last, Quantum, TaskClass};
use crate::shared::{Placed, Shared};

/// The part of a task that wakers hold.
pub(crate) struct Header {
    /// The worker's runtime. Constant.
    shared: Arc<Shared>,
    /// The task's worker. Constant.
    worker_index: usize,
    /// Index of its slot. Constant.
    slot: usize,
    /// (I1).
    pub(crate) is_queued: WakeFlag,
    /// A [`TaskClass`] (I3).
    class: AtomicU8,
    /// The run queue counts it as one that waits for its commit (I3).
    is_committing: AtomicBool,
    /// When it last waited for its client, it was in_transaction (I3).
    was_in_transaction: AtomicBool,
    /// Statements served in its quantum in the cohort (I3).
    quantum_served: AtomicU8,
    /// When the quantum ends in any case, in nanoseconds (I3).
    quantum_until: AtomicU64,
    /// What its next poll reads (I3).
    hot: HotMemory,
}

/// Whether the end of the runtime waits for a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Foreground,
    Background,
}

/// A task on its worker.
pub(crate) struct Slot {
    pub(crate) header: Arc<Header>,
    pub(crate) kind: Kind,
    /// `None` while it is being polled.
    pub(crate) work: Option<Work>,
    /// Cancelled during a poll, or while its poll was left: drop it after the poll.
    pub(crate) is_cancelled: bool,
    /// Counts a connection's task out when the slot is dropped.
    pub(crate) _placed: Option<Placed>,
}

/// A task's work.
pub(crate) enum Work {
    /// To be polled.
    Future(TaskFuture),
    /// Its poll was left in the middle.
    Left(TaskCoroutine),
}

impl Header {
    pub(crate) fn new(shared: Arc<Shared>, worker_index: usize, slot: usize) -> Arc<Self> {
        Arc::new(Self {
            shared,
            worker_index,
            slot,
            is_queued: WakeFlag::new(),
            class: AtomicU8::new(TaskClass::Busy as u8),
            is_committing: AtomicBool::new(false),
            was_in_transaction: AtomicBool::new(false),
            quantum_served: AtomicU8::new(0),
            quantum_until: AtomicU64::new(0),
            hot: HotMemory::default(),
        })
    }

    pub(crate) fn slot(&self) -> usize {
        self.slot
    }

    /// Called just before the poll: from now on a wake-up queues the task again. `quantum` is the
    /// task's present quantum, if its client was readable.
    pub(crate) fn mark_polled(&self, quantum: Option<Quantum>) {
        self.is_queued.clear();
        if let Some(quantum) = quantum {
            self.quantum_served
                .store(quantum.served_count, Ordering::Relaxed);
            self.quantum_until
                .store(quantum.until.nanos(), Ordering::Relaxed);
        }
        match self.class() {
            TaskClass::Busy => return,
            TaskClass::Committing => {}
            TaskClass::InTransaction => self.was_in_transaction.store(true, Ordering::Relaxed),
            TaskClass::OutsideTransaction => {
                self.was_in_transaction.store(false, Ordering::Relaxed)
            }
        }
        self.set_task_class(TaskClass::Busy);
    }

    /// Called after a poll that has not ended the task. Returns true if it waits for its commit.
    pub(crate) fn begins_to_commit(&self) -> bool {
        let is_committing = self.class() == TaskClass::Committing;
        self.is_committing.store(is_committing, Ordering::Relaxed);
        is_committing
    }

    /// Returns true to the first caller after the task began to wait for its commit.
    pub(crate) fn ends_to_commit(&self) -> bool {
        let was_committing = self.is_committing.load(Ordering::Relaxed);
        self.is_committing.store(false, Ordering::Relaxed);
        was_committing
    }

    /// How the task came to wait.
    pub(crate) fn last(&self) -> Last {
        let class = self.class();
        let was_in_transaction = self.was_in_transaction.load(Ordering::Relaxed);
        Last {
            class,
            quantum: Quantum {
                served_count: self.quantum_served.load(Ordering::Relaxed),
                until: Instant::from_nanos(self.quantum_until.load(Ordering::Relaxed)),
            },
            has_left_transaction: was_in_transaction && class == TaskClass::OutsideTransaction,
        }
    }

    pub(crate) fn set_task_class(&self, class: TaskClass) {
        self.class.store(class as u8, Ordering::Relaxed);
    }

    fn class(&self) -> TaskClass {
        match self.class.load(Ordering::Relaxed) {
            outside if outside == TaskClass::OutsideTransaction as u8 => {
                TaskClass::OutsideTransaction
            }
            in_transaction if in_transaction == TaskClass::InTransaction as u8 => {
                TaskClass::InTransaction
            }
            committing if committing == TaskClass::Committing as u8 => TaskClass::Committing,
            _ => TaskClass::Busy,
        }
    }

    pub(crate) fn hot(&self) -> &HotMemory {
        &self.hot
    }

    pub(crate) fn worker_index(&self) -> usize {
        self.worker_index
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}
