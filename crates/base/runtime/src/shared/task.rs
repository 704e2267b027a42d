//! Tasks: futures that stay on their worker, and the wakers that find them from anywhere.
//!
//! (I1) A task is in the run queue, or in its worker's inbox, at most once. Whoever puts it there
//!      sets `is_queued`; it is cleared just before the poll. A wake-up during the poll queues the
//!      task again.
//! (I2) The future is touched by its worker alone. Only the header crosses threads.
//! (I3) A task's place in the run queue is written and read by its worker alone. It lies in the
//!      header because a wake-up touches that anyway. Relaxed: no other thread reads it.
//! (I4) A header whose task is gone is ignored: slots are compared by header, not by index.

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use env::Instant;
use sync::WakeFlag;
use sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use crate::coroutine::{TaskCoroutine, TaskFuture};
use crate::hot_memory::HotMemory;
use crate::listener::Placed;
use crate::run_queue::{Last, Quantum, TaskClass};
use crate::shared::{Message, Shared};
use crate::worker::{self, Worker};

/// The part of a task that wakers hold.
pub(crate) struct Header {
    /// The worker's runtime. Constant.
    shared: Arc<Shared>,
    /// The task's worker. Constant.
    worker_index: usize,
    /// Index of its slot. Constant.
    slot: usize,
    /// (I1).
    is_queued: WakeFlag,
    /// A [`TaskClass`] (I3).
    class: AtomicU8,
    /// The run queue counts it as one that waits for its commit (I3).
    is_committing: AtomicBool,
    /// When it last waited for its client, it was in_transaction (I3).
    was_in_transaction: AtomicBool,
    /// Statements served in its quantum in the cohort (I3).
    quantum_served: AtomicU8,
    /// Statements that the quantum may have outside of transactions (I3).
    quantum_outside: AtomicU8,
    /// Quarters of a statement that the next quantum has in addition (I3).
    quantum_credit: AtomicU8,
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
            quantum_outside: AtomicU8::new(0),
            quantum_credit: AtomicU8::new(0),
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
            self.quantum_outside
                .store(quantum.outside_count, Ordering::Relaxed);
            self.quantum_credit
                .store(quantum.credit_quarters, Ordering::Relaxed);
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
                outside_count: self.quantum_outside.load(Ordering::Relaxed),
                credit_quarters: self.quantum_credit.load(Ordering::Relaxed),
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

impl Wake for Header {
    fn wake(self: Arc<Self>) {
        if self.is_queued.set() && !worker::queue_if_here(&self) {
            let (shared, worker_index) = (self.shared.clone(), self.worker_index);
            shared.send(worker_index, Message::Wake(self));
        }
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.is_queued.set() && !worker::queue_if_here(self) {
            self.shared
                .send(self.worker_index, Message::Wake(self.clone()));
        }
    }
}

/// The future result of a task. Dropping it lets the task run on by itself.
pub struct JoinHandle<T> {
    state: Rc<RefCell<JoinState<T>>>,
    header: Arc<Header>,
}

struct JoinState<T> {
    value: Option<T>,
    waiting: Option<Waker>,
    is_finished: bool,
}

impl<T: 'static> JoinHandle<T> {
    /// Spawns `future` on `worker`.
    pub(crate) fn spawn(
        worker: &Worker,
        kind: Kind,
        future: impl Future<Output = T> + 'static,
    ) -> Self {
        let waiting = JoinState {
            value: None,
            waiting: None,
            is_finished: false,
        };
        let state = Rc::new(RefCell::new(waiting));
        let inner = state.clone();
        // Boxed first: else the block would have room for it twice, as captured and as awaited.
        let future = Box::pin(future);
        let task = async move {
            let value = future.await;
            let mut state = inner.borrow_mut();
            state.is_finished = true;
            // Without a handle the value can have no reader; it is dropped here.
            state.value = Some(value);
            if let Some(waker) = state.waiting.take() {
                waker.wake();
            }
        };
        let header = worker.insert_task(kind, Box::pin(task), None);
        Self { state, header }
    }

    /// Whether the task has come to its end.
    pub fn is_finished(&self) -> bool {
        self.state.borrow().is_finished
    }

    /// Drops the task's future. If it has given way in the middle of a poll, that poll ends first.
    /// The handle must not be awaited afterwards.
    pub fn cancel(&self) {
        worker::current().cancel_task(&self.header);
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = T;

    /// # Panics
    /// If it is polled again after it returned the value.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut state = self.state.borrow_mut();
        if let Some(value) = state.value.take() {
            return Poll::Ready(value);
        }
        assert!(!state.is_finished, "a task's result is taken once");
        state.waiting = Some(context.waker().clone());
        Poll::Pending
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JoinHandle")
    }
}
