//! `GET_LOCK`: locks by name, of all sessions of the server.
//!
//! One mutex guards everything: people and jobs take named locks, not rows. A waiter is woken when
//! the lock is released and tries again; the first to try gets it. Before a session waits, the
//! chain of owners and what they wait for is followed. If it returns to the session, waiting would
//! be a deadlock.

use std::collections::HashMap;
use std::future::poll_fn;
use std::task::{Poll, Waker};

use foldhash::fast::FixedState;
use sync::Mutex;

/// All named locks.
#[derive(Debug, Default)]
pub struct NamedLocks {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Those that are held, by name.
    held: HashMap<String, Held, FixedState>,
    /// Which lock a session waits for.
    wanted: HashMap<u64, String, FixedState>,
}

#[derive(Debug)]
struct Held {
    /// The connection's id.
    owner: u64,
    /// How often it was taken.
    count: u64,
    waiters: Vec<(u64, Waker)>,
}

impl Held {
    fn wake_all(self) {
        for (_, waker) in self.waiters {
            waker.wake();
        }
    }
}

/// A session that waits, until this is dropped.
struct Waiting<'l> {
    locks: &'l NamedLocks,
    session: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut inner = self.locks.inner.lock();
        let wanted = inner.wanted.remove(&self.session);
        if let Some(held) = wanted.and_then(|name| inner.held.get_mut(&name)) {
            held.waiters.retain(|(session, _)| *session != self.session);
        }
    }
}

impl NamedLocks {
    /// Takes a lock, or takes it once more. Returns false if another session holds it.
    pub fn try_lock(&self, name: &str, session: u64) -> bool {
        let mut inner = self.inner.lock();
        match inner.held.get_mut(name) {
            Some(held) if held.owner == session => held.count += 1,
            Some(_) => return false,
            None => {
                let held = Held {
                    owner: session,
                    count: 1,
                    waiters: Vec::new(),
                };
                inner.held.insert(name.to_owned(), held);
            }
        }
        true
    }

    /// Releases a lock once. Returns false if another session holds it, `None` if it is free.
    pub fn release(&self, name: &str, session: u64) -> Option<bool> {
        let freed = {
            let mut inner = self.inner.lock();
            let held = inner.held.get_mut(name)?;
            if held.owner != session {
                return Some(false);
            }
            held.count -= 1;
            if held.count != 0 {
                return Some(true);
            }
            inner.held.remove(name)
        };
        freed.into_iter().for_each(Held::wake_all);
        Some(true)
    }

    /// Releases all locks of a session. Returns how often it had taken any.
    pub fn release_all(&self, session: u64) -> u64 {
        let freed: Vec<(String, Held)> = {
            let mut inner = self.inner.lock();
            inner
                .held
                .extract_if(|_, held| held.owner == session)
                .collect()
        };
        freed
            .into_iter()
            .map(|(_, held)| {
                let count = held.count;
                held.wake_all();
                count
            })
            .sum()
    }

    /// The session that holds a lock.
    pub fn owner(&self, name: &str) -> Option<u64> {
        self.inner.lock().held.get(name).map(|held| held.owner)
    }

    /// True if the session would wait for itself when it waits for this lock.
    pub fn would_deadlock(&self, name: &str, session: u64) -> bool {
        let inner = self.inner.lock();
        let mut name = name;
        // A session waits for one lock at a time, so the chain is at most as long as there are
        // waiters.
        for _ in 0..=inner.wanted.len() {
            let Some(owner) = inner.held.get(name).map(|held| held.owner) else {
                return false;
            };
            if owner == session {
                return true;
            }
            match inner.wanted.get(&owner) {
                Some(next) => name = next,
                None => return false,
            }
        }
        false
    }

    /// Ready when the lock is free.
    pub async fn freed(&self, name: &str, session: u64) {
        let _waiting = Waiting {
            locks: self,
            session,
        };
        poll_fn(|context| {
            let mut inner = self.inner.lock();
            let Some(held) = inner.held.get_mut(name) else {
                return Poll::Ready(());
            };
            let waker = context.waker().clone();
            match held.waiters.iter_mut().find(|(of, _)| *of == session) {
                Some((_, known)) => *known = waker,
                None => held.waiters.push((session, waker)),
            }
            inner.wanted.insert(session, name.to_owned());
            Poll::Pending
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Context;

    use super::*;

    #[test]
    fn a_lock_is_taken_often_and_let_go_as_often() {
        let locks = NamedLocks::default();
        assert!(locks.try_lock("a", 1) && locks.try_lock("a", 1));
        assert!(!locks.try_lock("a", 2));
        assert_eq!(locks.release("a", 2), Some(false));
        assert_eq!(locks.release("a", 1), Some(true));
        assert_eq!(locks.owner("a"), Some(1));
        assert_eq!(locks.release("a", 1), Some(true));
        assert_eq!(locks.release("a", 1), None);
        assert!(locks.try_lock("a", 2) && locks.try_lock("b", 2) && locks.try_lock("b", 2));
        assert_eq!(locks.release_all(2), 3);
        assert_eq!(locks.owner("b"), None);
    }

    #[test]
    fn who_waits_is_seen_by_the_search_for_deadlocks() {
        let locks = NamedLocks::default();
        assert!(locks.try_lock("a", 1) && locks.try_lock("b", 2));
        assert!(!locks.would_deadlock("b", 1));
        let mut context = Context::from_waker(Waker::noop());
        {
            let mut waiting = pin!(locks.freed("b", 1));
            assert!(waiting.as_mut().poll(&mut context).is_pending());
            assert!(locks.would_deadlock("a", 2));
            assert_eq!(locks.release("b", 2), Some(true));
            assert!(waiting.as_mut().poll(&mut context).is_ready());
        }
        assert!(!locks.would_deadlock("a", 2), "nobody waits any more");
    }
}
