//! How a session of any kind waits: for one of two things, and never past KILL or its client's end.

use std::pin::{Pin, pin};
use std::task::Poll;

use front::Disconnect;

use crate::handle::{KillOrder, SessionHandle};

/// Why a wait ended before what was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interruption {
    /// The statement or the session was killed.
    Killed,
    /// The client has closed its connection.
    PeerGone,
}

/// One of two.
#[derive(Debug)]
pub enum Either<A, B> {
    /// The first.
    Left(A),
    /// The second.
    Right(B),
}

/// The result of whichever future is ready first; the first is asked first. The futures stay where
/// the caller has pinned them: taken by value they would be held twice.
pub fn first_of<A, B>(
    mut left: Pin<&mut impl Future<Output = A>>,
    mut right: Pin<&mut impl Future<Output = B>>,
) -> impl Future<Output = Either<A, B>> {
    std::future::poll_fn(move |context| {
        if let Poll::Ready(value) = left.as_mut().poll(context) {
            return Poll::Ready(Either::Left(value));
        }
        right.as_mut().poll(context).map(Either::Right)
    })
}

/// Waits for `wait`, for an order to be killed, and for the client to go away. The process list
/// shows `text` meanwhile.
///
/// # Errors
///
/// What has ended the wait early.
pub async fn interruptible<T>(
    session: &SessionHandle,
    text: &'static str,
    peer_gone: Pin<&mut impl Future<Output = ()>>,
    wait: Pin<&mut impl Future<Output = T>>,
) -> Result<T, Interruption> {
    session.update(|line| line.state = text);
    let waited = {
        let killed = pin!(session.ordered(KillOrder::Query));
        let interrupted = pin!(first_of(killed, peer_gone));
        first_of(wait, interrupted).await
    };
    session.update(|line| line.state = "");
    match waited {
        Either::Left(value) => Ok(value),
        Either::Right(Either::Left(())) => Err(Interruption::Killed),
        Either::Right(Either::Right(())) => Err(Interruption::PeerGone),
    }
}

/// Sends; KILL of the connection ends that.
///
/// # Errors
///
/// Those of `sending`, and [`Disconnect::Killed`].
pub async fn unless_killed(
    session: &SessionHandle,
    sending: impl Future<Output = Result<(), Disconnect>>,
) -> Result<(), Disconnect> {
    let killed = pin!(session.ordered(KillOrder::Connection));
    match first_of(pin!(sending), killed).await {
        Either::Left(sent) => sent,
        Either::Right(()) => Err(Disconnect::Killed),
    }
}

/// A task of its own frees what a statement has left behind, a part at each of its turns. If the
/// session freed it between two commands, it would also free what others have left. Its client
/// would wait for that: as many rounds of all tasks as there are pieces.
pub fn free_what_waits() {
    let Some(mut waiting) = stdx::deferred_drop::take_waiting() else {
        return;
    };
    runtime::spawn_background(async move {
        loop {
            while waiting.free_some() {
                runtime::yield_now().await;
            }
            match stdx::deferred_drop::take_waiting() {
                Some(more) => waiting = more,
                None => return,
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::{pending, poll_fn, ready};
    use std::task::{Context, Waker};

    use super::*;
    use crate::handle::ProcessLine;

    fn poll<T>(future: Pin<&mut impl Future<Output = T>>) -> Option<T> {
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    fn session() -> SessionHandle {
        SessionHandle::new(ProcessLine::idle(1, String::new(), String::new(), 0))
    }

    #[test]
    fn the_first_of_two_that_are_ready_counts() {
        let both = poll(pin!(first_of(pin!(ready(1)), pin!(ready(2)))));
        assert!(matches!(both, Some(Either::Left(1))));
        let second = poll(pin!(first_of(pin!(pending::<u8>()), pin!(ready(2)))));
        assert!(matches!(second, Some(Either::Right(2))));
        let none = poll(pin!(first_of(pin!(pending::<u8>()), pin!(pending::<u8>()))));
        assert!(none.is_none());
    }

    #[test]
    fn a_wait_is_shown_until_it_ends() {
        let session = session();
        let ends = Cell::new(false);
        let end = pin!(poll_fn(|_| match ends.get() {
            true => Poll::Ready(7),
            false => Poll::Pending,
        }));
        let stays = pin!(pending());
        let mut wait = pin!(interruptible(&session, "Sleeping", stays, end));
        assert_eq!(poll(wait.as_mut()), None);
        assert_eq!(session.line().state, "Sleeping");
        ends.set(true);
        assert_eq!(poll(wait.as_mut()), Some(Ok(7)));
        assert_eq!(session.line().state, "");
    }

    #[test]
    fn kill_and_a_gone_client_end_a_wait() {
        let session = session();
        let outcome = || {
            let (gone, never) = (pin!(ready(())), pin!(pending::<()>()));
            poll(pin!(interruptible(&session, "", gone, never)))
        };
        assert_eq!(outcome(), Some(Err(Interruption::PeerGone)));
        session.give_order(KillOrder::Query);
        assert_eq!(outcome(), Some(Err(Interruption::Killed)));
    }

    #[test]
    fn kill_query_does_not_end_sending() {
        let session = session();
        session.give_order(KillOrder::Query);
        assert!(poll(pin!(unless_killed(&session, pending()))).is_none());
        let sent = poll(pin!(unless_killed(&session, ready(Ok(())))));
        assert!(matches!(sent, Some(Ok(()))));
        session.give_order(KillOrder::Connection);
        let killed = poll(pin!(unless_killed(&session, pending())));
        assert!(matches!(killed, Some(Err(Disconnect::Killed))));
    }
}
