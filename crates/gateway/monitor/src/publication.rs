//! How a map reaches the workers.
//!
//! A map is read for each statement and changes seldom. So each worker has a [`MapReader`], which
//! keeps the map and looks whether it is still the published one: a load of one word that only a
//! new map changes, and no write. Refused: to count references for each statement, which all
//! workers would write to; to send each worker a message, since a busy worker would go on with the
//! old map until its next turn, and threads without a loop would get none.
//!
//! A session that has to wait for another map ([`Publication::changed`]) names the version that it
//! has read.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use arc_swap::{ArcSwap, Cache};
use sync::Mutex;

use crate::map::ServerMap;

/// A map with its place in the order of all.
#[derive(Debug)]
pub struct Published {
    /// Rises by one with each map.
    pub version: u64,
    /// The map.
    pub map: ServerMap,
}

/// The present map, and who waits for the next.
#[derive(Debug)]
pub(crate) struct Publication {
    present: Arc<ArcSwap<Published>>,
    /// Waits for another map.
    waiters: Mutex<Waiters>,
}

#[derive(Debug, Default)]
struct Waiters {
    next_id: u64,
    wakers: BTreeMap<u64, Waker>,
}

/// Reads the present map on one worker.
#[derive(Debug, Clone)]
pub struct MapReader {
    cache: Cache<Arc<ArcSwap<Published>>, Arc<Published>>,
}

impl MapReader {
    /// The present map.
    pub fn map(&mut self) -> &Arc<Published> {
        self.cache.load()
    }
}

/// Takes a waiter off the list when it is dropped.
struct Place<'a> {
    publication: &'a Publication,
    id: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.publication.waiters.lock().wakers.remove(&self.id);
    }
}

impl Publication {
    pub(crate) fn new(map: ServerMap) -> Publication {
        let first = Published { version: 0, map };
        Publication {
            present: Arc::new(ArcSwap::from_pointee(first)),
            waiters: Mutex::default(),
        }
    }

    pub(crate) fn reader(&self) -> MapReader {
        MapReader {
            cache: Cache::new(Arc::clone(&self.present)),
        }
    }

    pub(crate) fn present(&self) -> Arc<Published> {
        self.present.load_full()
    }

    /// Publishes a map. One thread does so.
    pub(crate) fn publish(&self, map: ServerMap) {
        let version = self.present.load().version + 1;
        self.present.store(Arc::new(Published { version, map }));
        // A waiter registers before it looks at the version, so it has either seen this map or is
        // in the list.
        let wakers = std::mem::take(&mut self.waiters.lock().wakers);
        for waker in wakers.into_values() {
            waker.wake();
        }
    }

    /// Ready once the present map is another than that of `version`.
    pub(crate) async fn changed(&self, version: u64) {
        let place = {
            let mut waiters = self.waiters.lock();
            waiters.next_id += 1;
            Place {
                publication: self,
                id: waiters.next_id,
            }
        };
        poll_fn(|context| {
            let waker = context.waker().clone();
            self.waiters.lock().wakers.insert(place.id, waker);
            match self.present.load().version == version {
                true => Poll::Pending,
                false => Poll::Ready(()),
            }
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Context;

    use super::*;

    fn publication() -> Publication {
        Publication::new(ServerMap::new(Vec::new(), &[]))
    }

    fn waiting_count(publication: &Publication) -> usize {
        publication.waiters.lock().wakers.len()
    }

    #[test]
    fn a_reader_sees_each_map_once_it_is_published() {
        let publication = publication();
        let mut reader = publication.reader();
        assert_eq!(reader.map().version, 0);
        publication.publish(ServerMap::new(Vec::new(), &[]));
        assert_eq!(reader.map().version, 1);
        let mut other = reader.clone();
        std::thread::scope(|scope| {
            scope.spawn(move || assert_eq!(other.map().version, 1));
        });
        assert_eq!(publication.present().version, 1);
    }

    #[test]
    fn a_waiter_is_woken_by_the_next_map_or_leaves_the_list() {
        let publication = publication();
        let mut context = Context::from_waker(Waker::noop());
        {
            let mut changed = pin!(publication.changed(0));
            assert!(changed.as_mut().poll(&mut context).is_pending());
            assert!(changed.as_mut().poll(&mut context).is_pending());
            assert_eq!(waiting_count(&publication), 1);
        }
        assert_eq!(waiting_count(&publication), 0);
        let mut changed = pin!(publication.changed(0));
        assert!(changed.as_mut().poll(&mut context).is_pending());
        publication.publish(ServerMap::new(Vec::new(), &[]));
        assert_eq!(waiting_count(&publication), 0);
        assert!(changed.as_mut().poll(&mut context).is_ready());
        let mut late = pin!(publication.changed(0));
        assert!(late.as_mut().poll(&mut context).is_ready());
    }
}
