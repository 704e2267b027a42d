//! Tasks that wait for log to be written or durable.
//!
//! Each worker has a queue, so a commit touches nothing that others touch, and one flush wakes
//! exactly the waiters whose log it wrote. A waiter that is dropped leaves its queue.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use format::Lsn;
use stdx::planted::{Mistake, is_planted};
use sync::{CachePadded, Mutex};

use crate::{Wal, WalError};

/// The levels that log can reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// It survives a crash of the machine.
    Durable,
    /// The kernel has it: it survives the end of the process.
    Written,
}

#[derive(Debug)]
struct Waiter {
    lsn: Lsn,
    id: u64,
    waker: Waker,
}

/// Waiters of one worker, ascending by LSN.
#[derive(Debug, Default)]
struct Queue {
    waiters: VecDeque<Waiter>,
    next_id: u64,
}

impl Queue {
    fn insert(&mut self, lsn: Lsn, waker: Waker) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        // Commits of a worker come in order, so the place is almost always the end.
        let later = self
            .waiters
            .iter()
            .rev()
            .take_while(|waiter| lsn < waiter.lsn)
            .count();
        let at = self.waiters.len() - later;
        let before = at.checked_sub(1).and_then(|at| self.waiters.get(at));
        assert!(
            before.is_none_or(|before| before.lsn <= lsn),
            "they stand in order"
        );
        self.waiters.insert(at, Waiter { lsn, id, waker });
        id
    }

    fn position(&self, lsn: Lsn, id: u64) -> Option<usize> {
        let from = self.waiters.partition_point(|waiter| waiter.lsn < lsn);
        let same = self
            .waiters
            .iter()
            .skip(from)
            // A waiter that was woken is gone: do not search for it among all that still wait.
            .take_while(|waiter| waiter.lsn == lsn)
            .position(|waiter| waiter.id == id)?;
        Some(from + same)
    }

    fn pop_reached(&mut self, reached: Lsn, into: &mut Vec<Waker>) {
        while let Some(waiter) = self.waiters.pop_front() {
            if reached < waiter.lsn {
                self.waiters.push_front(waiter);
                return;
            }
            into.push(waiter.waker);
        }
    }
}

/// The queues of one level, one for each worker.
#[derive(Debug)]
pub(crate) struct WaitQueues {
    queues: Box<[CachePadded<Mutex<Queue>>]>,
}

impl WaitQueues {
    pub(crate) fn new(worker_count: usize) -> Self {
        let queues = (0..worker_count)
            .map(|_| CachePadded::new(Mutex::default()))
            .collect();
        Self { queues }
    }

    fn queue(&self, worker: usize) -> &Mutex<Queue> {
        self.queues
            .get(worker)
            .expect("a worker's number is below their count")
    }

    /// Wakes the waiters for `reached` or less.
    pub(crate) fn wake(&self, reached: Lsn) {
        let mut wakers = Vec::new();
        for queue in &self.queues {
            queue.lock().pop_reached(reached, &mut wakers);
        }
        if 1 < wakers.len() && is_planted(Mistake::ForgetsLogWaiters) {
            wakers.pop();
        }
        for waker in wakers {
            waker.wake();
        }
    }
}

/// Waits until log has reached a level; see [`Wal::wait`].
#[must_use = "nothing is known before it is awaited"]
pub struct WaitLog {
    wal: Arc<Wal>,
    worker: usize,
    lsn: Lsn,
    level: LogLevel,
    /// In the queue under this id; the waker there may be outdated.
    queued: Option<u64>,
}

impl WaitLog {
    pub(crate) fn new(wal: Arc<Wal>, worker: usize, lsn: Lsn, level: LogLevel) -> Self {
        Self {
            wal,
            worker,
            lsn,
            level,
            queued: None,
        }
    }

    fn outcome(&self) -> Option<Result<(), WalError>> {
        if self.lsn <= self.wal.reached(self.level) {
            return Some(Ok(()));
        }
        self.wal.is_poisoned().then_some(Err(WalError::Poisoned))
    }

    fn enqueue(&mut self, waker: &Waker) {
        let mut queue = self.wal.queues(self.level).queue(self.worker).lock();
        if let Some(id) = self.queued
            && let Some(at) = queue.position(self.lsn, id)
            && let Some(waiter) = queue.waiters.get_mut(at)
        {
            waiter.waker.clone_from(waker);
            return;
        }
        self.queued = Some(queue.insert(self.lsn, waker.clone()));
    }

    fn leave(&mut self) {
        if let Some(id) = self.queued.take() {
            let mut queue = self.wal.queues(self.level).queue(self.worker).lock();
            if let Some(at) = queue.position(self.lsn, id) {
                queue.waiters.remove(at);
            }
        }
    }
}

impl Future for WaitLog {
    type Output = Result<(), WalError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.outcome().is_none() {
            self.enqueue(context.waker());
            // The level may have been reached before this waiter was in the queue.
            self.wal.request(self.lsn, self.level);
        }
        match self.outcome() {
            Some(outcome) => {
                self.leave();
                Poll::Ready(outcome)
            }
            None => Poll::Pending,
        }
    }
}

impl Drop for WaitLog {
    fn drop(&mut self) {
        self.leave();
    }
}

impl fmt::Debug for WaitLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitLog")
            .field("lsn", &self.lsn)
            .field("level", &self.level)
            .finish()
    }
}
