//! The connected clients: what `SHOW PROCESSLIST` shows and `KILL` finds.
//!
//! Sessions are found by id in a map that only connect, KILL and listings touch. When the server
//! shuts down, sessions finish their current command and accept no other.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use sync::Mutex;
use sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::handle::{Activity, KillOrder, ProcessLine, SessionHandle};

/// How many sessions are not idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Busy {
    /// Those in a command.
    pub statements: usize,
    /// Those whose client is gone and whose transaction is rolled back. KILL does not end that.
    pub rollbacks: usize,
}

impl std::ops::Add for Busy {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            statements: self.statements + other.statements,
            rollbacks: self.rollbacks + other.rollbacks,
        }
    }
}

/// All sessions.
#[derive(Debug)]
pub struct Registry {
    /// The id of the next connection.
    next_id: AtomicU64,
    /// Sessions by id.
    sessions: Mutex<BTreeMap<u64, Arc<SessionHandle>>>,
    /// The most sessions that there were at a time; written under `sessions`.
    count_max: AtomicU64,
    /// The server is shutting down.
    is_ending: AtomicBool,
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            next_id: AtomicU64::new(1),
            sessions: Mutex::default(),
            count_max: AtomicU64::new(0),
            is_ending: AtomicBool::new(false),
        }
    }
}

impl Registry {
    /// Returns an id for a connection that has not logged in yet.
    pub fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Enters a session. Returns `None` if there are `limit` already.
    pub fn enter(&self, line: ProcessLine, limit: usize) -> Option<Arc<SessionHandle>> {
        let handle = Arc::new(SessionHandle::new(line));
        let mut sessions = self.sessions.lock();
        if limit <= sessions.len() {
            return None;
        }
        let before = sessions.insert(handle.id(), Arc::clone(&handle));
        assert!(before.is_none(), "connection ids are given out once");
        let count = stdx::to_u64(sessions.len());
        // Relaxed: only the number matters; the lock orders its writers.
        self.count_max.fetch_max(count, Ordering::Relaxed);
        Some(handle)
    }

    /// Removes a session.
    pub fn leave(&self, handle: &SessionHandle) {
        handle.hang_up();
        let removed = self.sessions.lock().remove(&handle.id());
        assert!(removed.is_some(), "a session leaves once");
    }

    /// From now on no session takes a command.
    pub fn end(&self) {
        self.is_ending.store(true, Ordering::Release);
        self.wake_all();
    }

    /// Wakes each session that waits, so that it looks again at what it waits for.
    pub fn wake_all(&self) {
        for handle in self.all() {
            handle.wake();
        }
    }

    /// Whether the server is shutting down.
    pub fn is_ending(&self) -> bool {
        // Acquire: pairs with the Release of `end`. A session that stored its waker after `end` had
        // passed its handle locked that handle later, and so sees this.
        self.is_ending.load(Ordering::Acquire)
    }

    /// Ready once the session has to stop accepting commands.
    pub async fn dismissed(&self, handle: &SessionHandle) {
        poll_fn(|context| {
            let ordered = handle.poll_ordered(KillOrder::Connection, context);
            if self.is_ending() {
                return Poll::Ready(());
            }
            ordered
        })
        .await;
    }

    /// The session with this id.
    pub fn find(&self, id: u64) -> Option<Arc<SessionHandle>> {
        self.sessions.lock().get(&id).cloned()
    }

    /// How many sessions there are.
    pub fn count(&self) -> usize {
        self.sessions.lock().len()
    }

    /// How many sessions there were at most at a time.
    pub fn count_max(&self) -> u64 {
        self.count_max.load(Ordering::Relaxed)
    }

    /// How many sessions are not idle.
    pub fn running_count(&self) -> usize {
        let busy = self.busy();
        busy.statements + busy.rollbacks
    }

    /// What the sessions do that are not idle.
    pub fn busy(&self) -> Busy {
        let mut busy = Busy::default();
        for session in self.all() {
            match session.activity() {
                Activity::Idle => {}
                Activity::Statement => busy.statements += 1,
                Activity::Rollback => busy.rollbacks += 1,
            }
        }
        busy
    }

    /// All sessions, by id.
    pub fn all(&self) -> Vec<Arc<SessionHandle>> {
        self.sessions.lock().values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Wake, Waker};

    use super::*;
    use crate::handle::LEAVING;

    /// Whether it was woken.
    #[derive(Debug, Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    fn line(id: u64) -> ProcessLine {
        ProcessLine::idle(id, "root".to_owned(), "localhost".to_owned(), 0)
    }

    #[test]
    fn sessions_are_found_listed_and_gone() {
        let registry = Registry::default();
        let (a, b) = (registry.next_id(), registry.next_id());
        let handle = registry.enter(line(b), 2).unwrap();
        assert!(registry.enter(line(a), 1).is_none(), "all places are taken");
        registry.enter(line(a), 2).unwrap();
        handle.update(|line| line.command = "Query");
        let ids: Vec<_> = registry.all().iter().map(|handle| handle.id()).collect();
        assert_eq!(ids, [a, b]);
        assert_eq!(registry.find(b).unwrap().line().command, "Query");
        assert_eq!((registry.count(), registry.running_count()), (2, 1));
        registry
            .find(a)
            .unwrap()
            .update(|line| line.command = LEAVING);
        let busy = Busy {
            statements: 1,
            rollbacks: 1,
        };
        assert_eq!((registry.busy(), registry.running_count()), (busy, 2));
        registry.leave(&handle);
        assert!(registry.find(b).is_none());
        assert_eq!((registry.count(), registry.count_max()), (1, 2));
    }

    #[test]
    fn who_kills_learns_that_the_session_has_hung_up() {
        let registry = Registry::default();
        let handle = registry.enter(line(1), 1).unwrap();
        let mut context = Context::from_waker(Waker::noop());
        let mut told = pin!(handle.hung_up());
        assert!(told.as_mut().poll(&mut context).is_pending());
        registry.leave(&handle);
        assert!(told.as_mut().poll(&mut context).is_ready());
    }

    #[test]
    fn the_end_dismisses_all_and_stops_no_statement() {
        let registry = Registry::default();
        let handle = registry.enter(line(1), 1).unwrap();
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        let mut dismissed = pin!(registry.dismissed(&handle));
        assert!(dismissed.as_mut().poll(&mut context).is_pending());
        registry.end();
        assert!(woken.0.load(Ordering::Relaxed));
        assert!(dismissed.as_mut().poll(&mut context).is_ready());
        assert_eq!(handle.order(), KillOrder::None);
        assert!(
            pin!(registry.dismissed(&handle))
                .poll(&mut context)
                .is_ready()
        );
    }
}
