//! Questions to workers: which servers' idle connections others want.
//!
//! A question is posted once until its worker has read it (`WakeFlag`, kept with the server), so a
//! mailbox has at most one entry a server.

use sync::{CachePadded, Inbox, Notify};

use crate::keys::ServerId;

/// The mailboxes of all workers.
#[derive(Debug)]
pub(crate) struct Mailboxes {
    boxes: Box<[CachePadded<Mailbox>]>,
}

/// Written by all threads, read by its worker.
#[derive(Debug, Default)]
struct Mailbox {
    servers: Inbox<ServerId>,
    notify: Notify,
}

impl Mailboxes {
    pub(crate) fn new(worker_count: usize) -> Self {
        let boxes = (0..worker_count).map(|_| CachePadded::default()).collect();
        Self { boxes }
    }

    pub(crate) fn worker_count(&self) -> usize {
        self.boxes.len()
    }

    /// Asks `worker` to offer what it keeps of `server`.
    pub(crate) fn post(&self, worker: usize, server: ServerId) {
        let mailbox = &self.boxes[worker];
        // The worker sleeps by `notify`, never by the inbox itself.
        let pushed = mailbox.servers.push(server);
        assert!(pushed == sync::Pushed::Seen, "the inbox does not sleep");
        mailbox.notify.notify();
    }

    /// Ready when there are questions to `worker`. One task at a time.
    pub(crate) async fn posted(&self, worker: usize) {
        self.boxes[worker].notify.notified().await;
    }

    /// Takes the questions to `worker`.
    pub(crate) fn take(&self, worker: usize) -> Vec<ServerId> {
        let mut servers = Vec::new();
        self.boxes[worker].servers.take(&mut servers);
        servers
    }
}
