//! How an operation stops before it is done: with an error, or with something to wait for.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::StoreError;

/// The result of every operation below the session. See [`Interrupt`].
pub type Outcome<T> = Result<T, Interrupt>;

/// Why an operation is not done. `?` passes both cases up through operators that keep their own
/// place, so that only the session awaits.
#[derive(Debug)]
pub enum Interrupt {
    /// Await it, then call the same operation with the same arguments again.
    Suspend(Suspend),
    /// It cannot be done.
    Error(StoreError),
}

impl From<StoreError> for Interrupt {
    fn from(error: StoreError) -> Self {
        Self::Error(error)
    }
}

impl From<Suspend> for Interrupt {
    fn from(suspend: Suspend) -> Self {
        Self::Suspend(suspend)
    }
}

/// What a suspended operation waits for; feeds `SHOW PROCESSLIST` and the wait counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WaitReason {
    /// A page is on its way from disk.
    PageMiss,
    /// The file has no room for the page, and is being extended.
    Growth,
    /// Another worker has the page latched.
    LatchBusy,
    /// Another transaction has the row or gap locked.
    RowLock,
    /// A schema change and a use of the table exclude each other.
    MetadataLock,
    /// The log has no room until a checkpoint frees some.
    LogSpace,
    /// Each buffer frame is dirty or in use.
    NoFrame,
    /// Too many transactions are inside the engine.
    Admission,
    /// The commit record is not durable yet.
    Durability,
    /// Another transaction, on which visibility depends, is taking its commit number.
    CommitNumber,
    /// A group of nodes gives the transaction its place, or others come before it.
    Order,
    /// The statement has used up its turn and gives way to others.
    Turn,
    /// Rows of another server are on their way.
    Remote,
}

/// Something to wait for: a future that is ready when the operation is worth calling again. If it
/// is dropped before, it deregisters itself wherever it waits.
pub struct Suspend {
    /// Why, for people and counters. Constant.
    reason: WaitReason,
    /// Ready when the wait is over. It has no result; the repeated call finds out.
    future: Pin<Box<dyn Future<Output = ()>>>,
}

impl Suspend {
    /// Waits for `future` because of `reason`.
    pub fn new(reason: WaitReason, future: impl Future<Output = ()> + 'static) -> Self {
        Self {
            reason,
            future: Box::pin(future),
        }
    }

    /// Gives way once to the other runnable tasks of the worker.
    pub fn turn() -> Self {
        let mut yielded = false;
        let give_way = std::future::poll_fn(move |context: &mut Context<'_>| {
            if yielded {
                return Poll::Ready(());
            }
            yielded = true;
            context.waker().wake_by_ref();
            Poll::Pending
        });
        Self::new(WaitReason::Turn, give_way)
    }

    /// Why the operation waits.
    pub fn reason(&self) -> WaitReason {
        self.reason
    }
}

impl Future for Suspend {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.future.as_mut().poll(context)
    }
}

impl fmt::Debug for Suspend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Suspend")
            .field("reason", &self.reason)
            .finish_non_exhaustive()
    }
}

/// Calls `operation` again after each of its waits, until it is done. For callers that watch
/// nothing else meanwhile; a session does, and waits by itself.
pub async fn until_done<T>(mut operation: impl FnMut() -> Outcome<T>) -> Result<T, StoreError> {
    loop {
        match operation() {
            Ok(value) => return Ok(value),
            Err(Interrupt::Suspend(suspend)) => suspend.await,
            Err(Interrupt::Error(error)) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    #[test]
    fn a_turn_is_pending_once_and_then_ready() {
        let mut turn = Suspend::turn();
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(turn.reason(), WaitReason::Turn);
        assert!(Pin::new(&mut turn).poll(&mut context).is_pending());
        assert!(Pin::new(&mut turn).poll(&mut context).is_ready());
    }

    #[test]
    fn both_cases_travel_by_question_mark() {
        fn refuse() -> Outcome<()> {
            Err(StoreError::Deadlock)?;
            Ok(())
        }
        fn wait() -> Outcome<()> {
            Err(Suspend::turn())?;
            Ok(())
        }
        assert!(matches!(
            refuse(),
            Err(Interrupt::Error(StoreError::Deadlock))
        ));
        assert!(matches!(wait(), Err(Interrupt::Suspend(_))));
    }
}
