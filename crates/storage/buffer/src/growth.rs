//! How the file of a tablespace grows: by one call at a time, and by more than was asked for.
//!
//! Where thousands of transactions want a page at the same moment, each would make room for its
//! own. A file system walks all that the file has for each such call, and holds the file's lock
//! over it: with 4,096 clients of single updates that came to take half of the processor's time.
//!
//! (G1) One growth is under way at most. Who wants room meanwhile waits for its end, and looks
//!      again.
//! (G2) A growth that is given up (its task is dropped) ends, too.

use std::future::poll_fn;
use std::task::{Poll, Waker};

use env::{Disk, DiskError, DiskErrorKind, DiskWork, File};
use sync::Mutex;

/// The state of a file's growth. Shared by all workers.
#[derive(Debug, Default)]
pub(crate) struct Growth {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    is_under_way: bool,
    /// Who waits for its end; empty otherwise.
    waiting: Vec<Waker>,
    /// Why the last one failed, for who asks again.
    error: Option<DiskError>,
}

/// A growth under way; ends with this.
struct Turn<'a>(&'a Growth);

impl Growth {
    /// Why the last growth failed, for the first who asks.
    pub(crate) fn take_error(&self) -> Option<DiskError> {
        self.state.lock().error.take()
    }

    /// Makes the file so long, in bytes: `most` if there is room for that, else `least`. Returns
    /// what it has come to; `None`: another growth has ended meanwhile, or made this one needless,
    /// or it has failed.
    pub(crate) async fn run(
        &self,
        (disk, file): (&dyn Disk, &File),
        (least, most): (u64, u64),
        is_needed: impl FnOnce() -> bool,
    ) -> Option<u64> {
        let Some(_turn) = self.begin() else {
            self.end().await;
            return None;
        };
        if !is_needed() {
            return None;
        }
        let allocate = |length| {
            let file = file.clone();
            disk.later(DiskWork::Allocate { file, length })
        };
        let mut length = most;
        let mut outcome = allocate(length).await;
        let is_full = |error: &DiskError| error.kind == DiskErrorKind::Full;
        if least < most && outcome.as_ref().is_err_and(is_full) {
            length = least;
            outcome = allocate(length).await;
        }
        // If it has worked, there is room on the disk again: a failure that nobody has asked for
        // is past.
        self.state.lock().error = outcome.as_ref().err().cloned();
        outcome.ok().map(|()| length)
    }

    fn begin(&self) -> Option<Turn<'_>> {
        let mut state = self.state.lock();
        if state.is_under_way {
            return None;
        }
        state.is_under_way = true;
        Some(Turn(self))
    }

    /// Waits for the end of the growth that is under way.
    async fn end(&self) {
        poll_fn(|context| {
            let mut state = self.state.lock();
            if !state.is_under_way {
                return Poll::Ready(());
            }
            state.waiting.push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let waiting = {
            let mut state = self.0.state.lock();
            state.is_under_way = false;
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

    use super::*;

    /// Is told once that it was woken.
    #[derive(Default)]
    struct Noting(Mutex<bool>);

    impl Wake for Noting {
        fn wake(self: Arc<Self>) {
            *self.0.lock() = true;
        }
    }

    /// (G1) and (G2).
    #[test]
    fn the_end_of_a_growth_wakes_who_waits() {
        let growth = Growth::default();
        let turn = growth.begin().expect("none is under way");
        assert!(growth.begin().is_none());
        let noting = Arc::new(Noting::default());
        let waker = Waker::from(Arc::clone(&noting));
        let mut context = Context::from_waker(&waker);
        let mut end = pin!(growth.end());
        assert!(end.as_mut().poll(&mut context).is_pending());
        assert!(!*noting.0.lock());
        drop(turn);
        assert!(*noting.0.lock());
        assert!(end.as_mut().poll(&mut context).is_ready());
        assert!(growth.begin().is_some());
    }
}
