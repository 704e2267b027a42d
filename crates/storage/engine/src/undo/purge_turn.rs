//! One purge of a worker at a time: its background and a check may want one at the same moment. A
//! purge that is dropped in the middle ends as well; the next one does its last step again.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// Who purges now, and who waits. Belongs to a worker.
#[derive(Debug, Default)]
pub(crate) struct PurgeTurn {
    is_taken: Cell<bool>,
    /// Tasks that wait for the end. Those that were given up may be among them.
    waiting: RefCell<Vec<Waker>>,
    /// Purges that have ended.
    ended_count: Cell<u64>,
}

/// The right to purge; ends when dropped, also in the middle of a purge.
#[derive(Debug)]
pub(crate) struct Purging<'t> {
    turn: &'t PurgeTurn,
}

impl PurgeTurn {
    /// Waits until no purge runs.
    pub(crate) async fn take(&self) -> Purging<'_> {
        // Others may poll this task often while it waits. It stands in the list once, until the
        // purge that empties the list has ended.
        let mut noted_at = None;
        poll_fn(|context| {
            if !self.is_taken.replace(true) {
                return Poll::Ready(Purging { turn: self });
            }
            let ended_count = self.ended_count.get();
            if noted_at.replace(ended_count) != Some(ended_count) {
                self.waiting.borrow_mut().push(context.waker().clone());
            }
            Poll::Pending
        })
        .await
    }
}

impl Drop for Purging<'_> {
    fn drop(&mut self) {
        let was_taken = self.turn.is_taken.replace(false);
        assert!(was_taken, "a purge ends once");
        self.turn.ended_count.set(self.turn.ended_count.get() + 1);
        let waiting = self.turn.waiting.take();
        waiting.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Wake};

    use sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[derive(Default)]
    struct Counting(AtomicU32);

    impl Wake for Counting {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The end wakes all that wait; one of them begins, and the others wait for its end.
    #[test]
    fn the_end_of_a_purge_wakes_those_that_wait() {
        let turn = PurgeTurn::default();
        let counting = Arc::new(Counting::default());
        let waker = Waker::from(Arc::clone(&counting));
        let mut context = Context::from_waker(&waker);
        let mut first = Box::pin(turn.take());
        let Poll::Ready(purging) = first.as_mut().poll(&mut context) else {
            panic!("no purge runs");
        };
        let (mut second, mut third) = (pin!(turn.take()), pin!(turn.take()));
        assert!(second.as_mut().poll(&mut context).is_pending());
        assert!(third.as_mut().poll(&mut context).is_pending());
        assert_eq!(counting.0.load(Ordering::Relaxed), 0);
        drop(purging);
        assert_eq!(counting.0.load(Ordering::Relaxed), 2);
        let Poll::Ready(purging) = third.as_mut().poll(&mut context) else {
            panic!("no purge runs");
        };
        assert!(second.as_mut().poll(&mut context).is_pending());
        drop(purging);
        assert_eq!(counting.0.load(Ordering::Relaxed), 3);
        assert!(second.as_mut().poll(&mut context).is_ready());
    }
}
