//! [`Logins`]: connections that have not logged in yet.
//!
//! They are not clients yet, so they take no place of `max_connections`. A peer that opens
//! thousands of them and stays silent keeps no client out. There are at most as many of them as
//! there may be clients: one more evicts the oldest. A login takes milliseconds and silence lasts
//! until `connect_timeout`, so the evicted are the silent ones.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use sync::Mutex;

/// All connections that are logging in, of all workers.
#[derive(Debug, Default)]
pub(crate) struct Logins {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By id, which grows, so the first is the oldest. The value is the waker of the connection. A
    /// connection evicts another by removing its entry.
    waiting: BTreeMap<u64, Option<Waker>>,
    /// The server stops: who enters now is evicted at once.
    is_ended: bool,
}

/// A connection's place in the list; dropped when the login is over.
#[derive(Debug)]
pub(crate) struct LoginPlace {
    logins: Arc<Logins>,
    id: u64,
}

impl Logins {
    /// Enters a connection. If there are more than `limit` now, evicts the oldest and returns its
    /// number.
    pub(crate) fn enter(self: &Arc<Self>, id: u64, limit: usize) -> (LoginPlace, Option<u64>) {
        let evicted = {
            let State { waiting, is_ended } = &mut *self.state.lock();
            if !*is_ended {
                waiting.insert(id, None);
            }
            let is_crowded = limit < waiting.len();
            is_crowded.then(|| waiting.pop_first()).flatten()
        };
        let evicted = evicted.map(|(id, waker)| {
            if let Some(waker) = waker {
                waker.wake();
            }
            id
        });
        let logins = Arc::clone(self);
        (LoginPlace { logins, id }, evicted)
    }

    /// Evicts all of them, and those that enter later.
    pub(crate) fn end(&self) {
        let ended = State {
            waiting: BTreeMap::new(),
            is_ended: true,
        };
        let State { waiting, .. } = std::mem::replace(&mut *self.state.lock(), ended);
        waiting.into_values().flatten().for_each(Waker::wake);
    }

    /// How many connections are logging in.
    pub(crate) fn count(&self) -> usize {
        self.state.lock().waiting.len()
    }
}

impl LoginPlace {
    /// Ready once the connection has been evicted.
    pub(crate) async fn evicted(&self) {
        poll_fn(|context| {
            let mut state = self.logins.state.lock();
            match state.waiting.get_mut(&self.id) {
                Some(waker) => {
                    *waker = Some(context.waker().clone());
                    Poll::Pending
                }
                None => Poll::Ready(()),
            }
        })
        .await;
    }
}

impl Drop for LoginPlace {
    fn drop(&mut self) {
        self.logins.state.lock().waiting.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Context;

    use super::*;

    #[test]
    fn the_oldest_goes_and_the_others_stay() {
        let logins = Arc::new(Logins::default());
        let (first, none) = logins.enter(1, 2);
        let (second, also_none) = logins.enter(2, 2);
        assert_eq!((none, also_none), (None, None));
        let (third, evicted) = logins.enter(3, 2);
        assert_eq!(evicted, Some(1));
        let mut context = Context::from_waker(Waker::noop());
        assert!(pin!(first.evicted()).poll(&mut context).is_ready());
        assert!(pin!(second.evicted()).poll(&mut context).is_pending());
        // An evicted connection no longer counts, whether it is gone or not.
        drop(second);
        let (_fourth, evicted) = logins.enter(4, 2);
        assert_eq!((evicted, logins.count()), (None, 2));
        assert!(pin!(third.evicted()).poll(&mut context).is_pending());
        logins.end();
        assert!(pin!(third.evicted()).poll(&mut context).is_ready());
        let (late, evicted) = logins.enter(5, 2);
        assert!(pin!(late.evicted()).poll(&mut context).is_ready());
        assert_eq!((evicted, logins.count()), (None, 0));
    }
}
