//! [`Following`]: what is known of the binary log of a cluster's primary, for caches that learn of
//! changes past the gateway from it.
//!
//! One task writes ([`crate::tasks`]), sessions of all workers read.
//!
//! (B1) While [`Following::is_current`], each change that the log tells of is noted on the clock of
//! changes ([`result_cache::Tables`]), as one of the gateway's own sessions is. Who keeps a reply
//! asks for it after he has taken the moment of its query: when the log is lost, that is noted as a
//! change of all tables, after this was unset.
//! (B2) The server logs a transaction a moment before others can see it. So its change counts as
//! under way from when the log tells of it until its server has said that it can be seen.
//! (B3) A replica may have less than the log has told of. [`Following::written`] is advanced before
//! a change is noted. So a query whose moment is behind the change finds that its replica lacks it.

use std::fmt;
use std::sync::Arc;

use binary_log::Place;
use metrics::Counter;
use sync::Mutex;
use sync::atomic::{AtomicBool, Ordering};

use crate::service::written::SharedWritten;

/// See the module's head.
#[derive(Debug, Default)]
pub(crate) struct Following {
    /// A task follows the log, or tries to. Relaxed: the tasks of one worker alone use it.
    has_task: AtomicBool,
    /// SeqCst, as the clock of changes (B1).
    is_current: AtomicBool,
    /// What the log has told that was written (B3).
    pub(crate) written: SharedWritten,
    /// How far it was read. Written by the task, read by operators.
    point: Mutex<Option<Point>>,
    /// Events that were read.
    pub(crate) events: Counter,
}

/// A place in a server's log.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    /// The server's name.
    pub(crate) server: Arc<str>,
    /// How far its log was read.
    pub(crate) place: Place,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.server, self.place)
    }
}

impl Following {
    /// A task begins to follow. Returns `false` if one does so already.
    pub(crate) fn begin_task(&self) -> bool {
        !self.has_task.swap(true, Ordering::Relaxed)
    }

    /// It does no longer.
    pub(crate) fn end_task(&self) {
        self.has_task.store(false, Ordering::Relaxed);
    }

    /// Whether the log is followed now (B1).
    pub(crate) fn is_current(&self) -> bool {
        self.is_current.load(Ordering::SeqCst)
    }

    /// From now on, each change is noted.
    pub(crate) fn begin(&self) {
        self.is_current.store(true, Ordering::SeqCst);
    }

    /// The log is lost. The caller then notes a change of all tables.
    pub(crate) fn lose(&self) {
        self.is_current.store(false, Ordering::SeqCst);
    }

    /// The log was read so far.
    pub(crate) fn reach(&self, point: Option<Point>) {
        *self.point.lock() = point;
    }

    /// How far the log was read; `None` while it is not followed.
    pub(crate) fn point(&self) -> Option<Point> {
        self.point.lock().clone().filter(|_| self.is_current())
    }
}
