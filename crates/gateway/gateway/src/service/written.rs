//! [`SharedWritten`]: what many sessions have written.
//!
//! Of a service it is what each of its sessions has to see. Of a server (`gateway/server.rs`) it is
//! what the sessions of all configurations have written there, so that a cache knows which replicas
//! have it. Of a binary log it is what the log has told of.

use monitor::gtid::GtidPosition;
use router::Written;
use sync::Mutex;
use sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// See the module's head. Who reads looks whether there is anything new, which is a load.
#[derive(Debug, Default)]
pub(crate) struct SharedWritten {
    /// Rises with each change; 0 as long as nothing was written. Release and Acquire: a write that
    /// was answered is seen by each read that begins later. The value itself is behind the lock.
    version: AtomicU64,
    value: Mutex<Written>,
    /// Of a server: sessions have written there that took it for the primary. SeqCst: rare.
    has_led: AtomicBool,
}

impl SharedWritten {
    /// A session has written.
    pub(crate) fn advance(&self, written: &Written) {
        let mut value = self.value.lock();
        value.merge(written);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// The primary has told its position after what was read as version `seen`.
    pub(crate) fn locate(&self, seen: u64, position: &GtidPosition) {
        let mut value = self.value.lock();
        if self.version.load(Ordering::Acquire) == seen && *value == Written::Somewhere {
            *value = Written::UpTo(position.clone());
            self.version.fetch_add(1, Ordering::Release);
        }
    }

    /// The version of what was written at a place that no one knows. `None` if there is nothing.
    pub(crate) fn unlocated(&self) -> Option<u64> {
        if self.version.load(Ordering::Acquire) == 0 {
            return None;
        }
        let value = self.value.lock();
        let seen = self.version.load(Ordering::Acquire);
        (*value == Written::Somewhere).then_some(seen)
    }

    /// The primary is at this position: what was written before is known from now on, whoever has
    /// written it.
    pub(crate) fn reach(&self, position: GtidPosition) {
        let mut value = self.value.lock();
        value.merge(&Written::UpTo(position));
        self.version.fetch_add(1, Ordering::Release);
    }

    /// What is written from now on comes behind this position, as far as it is known.
    pub(crate) fn restart(&self, position: Option<GtidPosition>) {
        let mut value = self.value.lock();
        *value = position.map_or(Written::Somewhere, Written::UpTo);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// One transaction more was written: this one, as far as it is known.
    pub(crate) fn follow(&self, gtid: Option<GtidPosition>) {
        self.value.lock().advance(gtid);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Whether nothing was written that is known.
    pub(crate) fn is_nothing(&self) -> bool {
        self.version.load(Ordering::Acquire) == 0 || *self.value.lock() == Written::Nothing
    }

    /// A session takes the server for the primary, and writes there.
    pub(crate) fn lead(&self) {
        self.has_led.store(true, Ordering::SeqCst);
    }

    /// Whether sessions have written there as to the primary.
    pub(crate) fn has_led(&self) -> bool {
        self.has_led.load(Ordering::SeqCst)
    }

    /// The server is not the primary any more. What the primary lacks of its writes is lost.
    pub(crate) fn forget(&self) {
        if self.version.load(Ordering::Acquire) == 0 {
            // Nothing was ever written there, and who reads needs no lock to see that.
            return;
        }
        let mut value = self.value.lock();
        *value = Written::Nothing;
        self.has_led.store(false, Ordering::SeqCst);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Whether a server that has what `has_applied` says has all that was written. `false` if it is
    /// not known what that is.
    pub(crate) fn is_applied(&self, has_applied: impl FnOnce(&GtidPosition) -> bool) -> bool {
        match &*self.value.lock() {
            Written::UpTo(position) => has_applied(position),
            Written::Nothing | Written::Somewhere => false,
        }
    }

    /// Adds to a session what is newer than the version that it has seen.
    pub(crate) fn show(&self, seen: &mut u64, session: &mut router::Session) {
        if self.version.load(Ordering::Acquire) == *seen {
            return;
        }
        let value = self.value.lock();
        session.see(&value);
        *seen = self.version.load(Ordering::Acquire);
    }
}
