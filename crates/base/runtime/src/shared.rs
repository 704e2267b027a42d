//! What the workers of a runtime share: mailboxes, counts, the stop time. Also the part of a
//! [`task`] that wakers on any thread hold.

pub(crate) mod task;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use env::Instant;
use rustix::event::{EventfdFlags, eventfd};
use sync::atomic::{AtomicU64, Ordering};
use sync::{CachePadded, Inbox, Pushed};

use crate::blocking::Helpers;
use crate::counters::LoopCounters;
use crate::reserve::Reserve;
use crate::shared::task::Header;

/// There is one for the whole runtime.
pub(crate) struct Shared {
    /// One for each worker. Constant.
    pub(crate) mailboxes: Box<[CachePadded<Mailbox>]>,
    /// Nanoseconds of monotonic time at which tasks are cut; 0 means that the runtime runs on.
    stop_at_nanos: AtomicU64,
    pub(crate) helpers: HelperSets,
    /// For clients that come when there is no descriptor.
    pub(crate) reserve: Reserve,
}

/// Threads for calls that block. There are three sets, so that none holds up another. Hashing many
/// passwords must not keep a file from growing, and a growing file must not hold up the log.
pub(crate) struct HelperSets {
    /// For calls of any length.
    pub(crate) calls: Helpers,
    /// For calls on files that may take long: room for pages, names.
    pub(crate) file_calls: Helpers,
    /// For reads, writes and syncs of files if the loop cannot drive them itself; otherwise it has
    /// no threads.
    pub(crate) transfers: Helpers,
}

impl HelperSets {
    /// Lets the threads finish what is queued and waits for their end.
    pub(crate) fn stop(&self) {
        self.calls.stop();
        self.file_calls.stop();
        self.transfers.stop();
    }
}

/// Where other threads leave messages for a worker.
pub(crate) struct Mailbox {
    inbox: Inbox<Message>,
    /// An eventfd that wakes the worker's loop.
    pub(crate) poke: OwnedFd,
    /// Connections placed on this worker; changed by every acceptor. Relaxed: placement is decided
    /// by this statistic, and nothing is published through it.
    connection_count: AtomicU64,
    /// Foreground tasks that live on this worker; written by it alone.
    foreground_count: AtomicU64,
    /// Written by this worker alone; others write to the line of the inbox.
    pub(crate) counters: CachePadded<LoopCounters>,
}

/// Counts a connection out when its session is dropped, for whatever reason.
pub(crate) struct Placed {
    shared: Arc<Shared>,
    worker_index: usize,
}

impl Placed {
    /// Of a connection that was counted in for this worker.
    pub(crate) fn new(shared: Arc<Shared>, worker_index: usize) -> Self {
        Self {
            shared,
            worker_index,
        }
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        self.shared.unplace(self.worker_index);
    }
}

/// What can come through an inbox.
pub(crate) enum Message {
    /// A task of this worker was woken on another thread.
    Wake(Arc<Header>),
    /// Something to do on this worker.
    Run(Box<dyn FnOnce() + Send>),
}

impl Mailbox {
    /// Connections placed on this worker.
    pub(crate) fn connection_count(&self) -> u64 {
        self.connection_count.load(Ordering::Relaxed)
    }
}

impl Shared {
    pub(crate) fn new(worker_count: usize, helpers: HelperSets) -> rustix::io::Result<Self> {
        let mailbox = |_| {
            Ok(CachePadded::new(Mailbox {
                inbox: Inbox::new(),
                poke: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
                connection_count: AtomicU64::new(0),
                foreground_count: AtomicU64::new(0),
                counters: CachePadded::default(),
            }))
        };
        Ok(Self {
            mailboxes: (0..worker_count)
                .map(mailbox)
                .collect::<rustix::io::Result<_>>()?,
            stop_at_nanos: AtomicU64::new(0),
            helpers,
            reserve: Reserve::default(),
        })
    }

    /// Leaves a message for a worker and wakes it if it sleeps. Any thread.
    pub(crate) fn send(&self, worker_index: usize, message: Message) {
        let mailbox = &self.mailboxes[worker_index];
        if mailbox.inbox.push(message) == Pushed::MustPoke {
            // The counter of an eventfd overflows at 2^64 pokes without a read: never.
            let written = rustix::io::write(&mailbox.poke, &1u64.to_ne_bytes());
            assert!(written.is_ok(), "an eventfd takes a poke: {written:?}");
        }
    }

    /// Asks all workers to stop; what still runs after `patience` is cut.
    pub(crate) fn stop(&self, now: Instant, patience: Duration) {
        let stop_at = (now + patience).nanos().max(1);
        // Release: pairs with the Acquire of `stop_at`. The first stop time stands unless a later
        // one is earlier.
        let mut seen = self.stop_at_nanos.load(Ordering::Relaxed);
        while seen == 0 || stop_at < seen {
            match self.stop_at_nanos.compare_exchange(
                seen,
                stop_at,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        self.poke_all();
    }

    /// Makes every worker take a turn.
    pub(crate) fn poke_all(&self) {
        for index in 0..self.mailboxes.len() {
            self.send(index, Message::Run(Box::new(|| {})));
        }
    }

    /// When tasks are cut, if the runtime was asked to stop.
    pub(crate) fn stop_at(&self) -> Option<Instant> {
        match self.stop_at_nanos.load(Ordering::Acquire) {
            0 => None,
            nanos => Some(Instant::from_nanos(nanos)),
        }
    }

    /// Foreground tasks of all workers.
    pub(crate) fn foreground_count(&self) -> u64 {
        let counts = self
            .mailboxes
            .iter()
            .map(|mailbox| &mailbox.foreground_count);
        counts.map(|count| count.load(Ordering::Acquire)).sum()
    }

    /// Chooses the worker for a connection that `acceptor` has accepted, and counts it there.
    pub(crate) fn place(&self, acceptor: usize) -> usize {
        let load = |index: usize| {
            self.mailboxes[index]
                .connection_count
                .load(Ordering::Relaxed)
        };
        let fewest = (0..self.mailboxes.len()).min_by_key(|&index| load(index));
        let fewest = fewest.expect("a runtime has workers");
        // A handover costs a wake-up, so a tie stays with the acceptor.
        let chosen = if load(fewest) < load(acceptor) {
            fewest
        } else {
            acceptor
        };
        self.mailboxes[chosen]
            .connection_count
            .fetch_add(1, Ordering::Relaxed);
        chosen
    }

    /// A connection that was placed has ended.
    pub(crate) fn unplace(&self, worker_index: usize) {
        let count = &self.mailboxes[worker_index].connection_count;
        let before = count.fetch_sub(1, Ordering::Relaxed);
        assert!(0 < before, "a connection ends once");
    }

    /// Counts clients that a worker has refused. Called on that worker.
    pub(crate) fn count_refused(&self, worker_index: usize, count: u64) {
        self.mailboxes[worker_index].counters.refused.add(count);
    }

    /// Connections placed on a worker.
    pub(crate) fn connection_count(&self, worker_index: usize) -> u64 {
        self.mailboxes[worker_index]
            .connection_count
            .load(Ordering::Relaxed)
    }
}

impl Mailbox {
    /// See [`Inbox::take`]. For the worker alone.
    pub(crate) fn take(&self, into: &mut Vec<Message>) {
        self.inbox.take(into);
    }

    /// See [`Inbox::try_sleep`]. For the worker alone.
    pub(crate) fn try_sleep(&self) -> bool {
        self.inbox.try_sleep()
    }

    /// For the worker alone.
    pub(crate) fn set_foreground_count(&self, count: u64) {
        // Release: pairs with the Acquire of `foreground_count`; a task counted on another worker
        // is counted before this worker's count falls.
        self.foreground_count.store(count, Ordering::Release);
    }
}
