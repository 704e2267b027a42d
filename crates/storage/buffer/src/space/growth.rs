//! How the file of a tablespace grows: by one call at a time, and by more than was asked for.
//!
//! If thousands of transactions want a page at the same moment, each would make room for its own.
//! For each such call a file system walks all extents of the file, and holds the file's lock
//! meanwhile. With 4,096 clients of single updates that took half of the processor's time.
//!
//! (G1) At most one turn to grow is taken. A caller that wants room meanwhile waits for its end. If
//!      the growth has failed, so have callers that wanted as much or more; the others check again.
//! (G2) A turn belongs to its disk call once that was made. The call ends even if no task waits any
//!      more. So statements that are killed over a slow disk leave one call behind, not one each
//!      (and a waker, to the turn's end).

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use env::DiskError;
use sync::Mutex;
use sync::atomic::{AtomicU32, Ordering};

/// The size of a file and the state of its growth. Shared by all workers.
#[derive(Debug, Default)]
pub(crate) struct Growth {
    /// Pages that the file has room for; only grows.
    room_pages: AtomicU32,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    is_under_way: bool,
    /// Turns that have ended.
    ended_count: u64,
    /// Tasks that wait for the end of the turn under way.
    waiting: Vec<Waker>,
    /// The last turn that failed: its number, how many pages it wanted at least, and why.
    failure: Option<(u64, u32, DiskError)>,
}

/// A turn to grow; ends when dropped.
pub(crate) struct Turn(Arc<Growth>);

impl Growth {
    /// Creates the state of a file with room for `room_pages` pages.
    pub(crate) fn new(room_pages: u32) -> Arc<Self> {
        let growth = Self::default();
        growth.room_pages.store(room_pages, Ordering::SeqCst);
        Arc::new(growth)
    }

    /// Pages that the file has room for.
    pub(crate) fn room_pages(&self) -> u32 {
        self.room_pages.load(Ordering::SeqCst)
    }

    /// Returns the turn, for a caller that wants `least` pages. If another caller has the turn,
    /// waits for its end. Then returns `None` (check again), or an error if it has failed and
    /// wanted no more.
    pub(crate) async fn turn(self: &Arc<Self>, least: u32) -> Result<Option<Turn>, DiskError> {
        match self.begin() {
            Ok(turn) => Ok(Some(turn)),
            Err(number) => self.end(number, least).await.map(|()| None),
        }
    }

    /// Takes the turn. If another caller has it, returns how many turns had ended before.
    fn begin(self: &Arc<Self>) -> Result<Turn, u64> {
        let mut state = self.state.lock();
        if state.is_under_way {
            return Err(state.ended_count);
        }
        state.is_under_way = true;
        Ok(Turn(Arc::clone(self)))
    }

    /// Waits for the end of the turn before which `number` turns had ended.
    async fn end(&self, number: u64, least: u32) -> Result<(), DiskError> {
        // The waker is noted once, so each of thousands of waiters compares only its own.
        let mut noted: Option<Waker> = None;
        poll_fn(|context| {
            let mut state = self.state.lock();
            if state.ended_count == number {
                let waker = context.waker();
                if !noted.as_ref().is_some_and(|own| own.will_wake(waker)) {
                    state.waiting.push(waker.clone());
                    noted = Some(waker.clone());
                }
                return Poll::Pending;
            }
            Poll::Ready(match &state.failure {
                Some((failed, wanted, error)) if *failed == number && *wanted <= least => {
                    Err(error.clone())
                }
                _ => Ok(()),
            })
        })
        .await
    }
}

impl Turn {
    /// Notes that the file has room for `room_pages` pages now.
    pub(crate) fn succeed(self, room_pages: u32) {
        let before = self.0.room_pages.swap(room_pages, Ordering::SeqCst);
        assert!(before < room_pages, "only its turn makes a file grow (G1)");
    }

    /// Notes that the growth has failed, for all that wait and want as much. Returns the error.
    pub(crate) fn fail(self, least: u32, error: DiskError) -> DiskError {
        assert!(
            self.0.room_pages() < least,
            "there is no room that the growth was for"
        );
        {
            let mut state = self.0.state.lock();
            state.failure = Some((state.ended_count, least, error.clone()));
        }
        error
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let waiting = {
            let mut state = self.0.state.lock();
            assert!(state.is_under_way, "a turn ends once (G1)");
            state.is_under_way = false;
            state.ended_count += 1;
            std::mem::take(&mut state.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Wake};

    use env::DiskErrorKind;

    use super::*;

    /// Notes whether it was woken.
    #[derive(Default)]
    struct Noting(Mutex<bool>);

    impl Wake for Noting {
        fn wake(self: Arc<Self>) {
            *self.0.lock() = true;
        }
    }

    fn full() -> DiskError {
        DiskError {
            kind: DiskErrorKind::Full,
            operation: "allocate",
            path: None,
            os_error: 28,
        }
    }

    /// (G1) and (G2): a waiter is woken by the end, even if another turn begins after it. It fails
    ///      if the growth has failed and it wanted as much.
    #[test]
    fn the_end_of_a_turn_is_its_waiters_end() {
        let growth = Growth::new(0);
        let turn = growth.begin().expect("none is under way");
        let number = growth.begin().err().expect("one is under way");
        let noting = Arc::new(Noting::default());
        let waker = Waker::from(Arc::clone(&noting));
        let mut context = Context::from_waker(&waker);
        let (mut small, mut large) = (pin!(growth.end(number, 9)), pin!(growth.end(number, 10)));
        for _ in 0..2 {
            assert!(small.as_mut().poll(&mut context).is_pending());
            assert!(large.as_mut().poll(&mut context).is_pending());
        }
        assert_eq!(growth.state.lock().waiting.len(), 2, "each is noted once");
        assert!(!*noting.0.lock());
        assert_eq!(turn.fail(10, full()), full());
        assert!(*noting.0.lock());
        let next = growth.begin().expect("it has ended");
        assert_eq!(small.as_mut().poll(&mut context), Poll::Ready(Ok(())));
        assert_eq!(large.as_mut().poll(&mut context), Poll::Ready(Err(full())));
        let number = growth.begin().err().expect("one is under way");
        next.succeed(7);
        assert_eq!(growth.room_pages(), 7);
        let mut later = pin!(growth.end(number, 10));
        assert_eq!(later.as_mut().poll(&mut context), Poll::Ready(Ok(())));
    }
}
