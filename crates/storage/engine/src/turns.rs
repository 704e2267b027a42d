//! [`Turns`]: one piece of work at a time, first come, first served.
//!
//! Schema changes of the server take turns, and so do purges of a worker: its background and a
//! check may want one at the same moment. A schema change and the transaction that rewrites its
//! rows of the dictionary share the turn. It passes on when both are over. That also holds if the
//! change failed or was dropped, and the transaction is rolled back in the background.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use sync::Mutex;

/// The work under way, and those that wait.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    is_taken: bool,
    next_ticket: u64,
    /// Those that wait, in order.
    waiting: VecDeque<(u64, Waker)>,
}

/// The right to do the work. It passes on when this is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Arc<Turns>,
}

/// A place in the queue; removed when dropped.
struct Ticket<'t> {
    turns: &'t Turns,
    number: u64,
}

impl Turns {
    /// Waits for the turn.
    pub(crate) async fn take(self: &Arc<Self>) -> Rc<Turn> {
        let number = {
            let mut queue = self.queue.lock();
            queue.next_ticket += 1;
            queue.next_ticket
        };
        let ticket = Ticket {
            turns: self,
            number,
        };
        poll_fn(|context| ticket.poll(context)).await;
        Rc::new(Turn {
            turns: Arc::clone(self),
        })
    }

    /// Wakes the first waiter, if the turn is free.
    fn pass_on(&self) {
        let first = {
            let queue = self.queue.lock();
            let first = queue.waiting.front().filter(|_| !queue.is_taken);
            first.map(|(_, waker)| waker.clone())
        };
        if let Some(waker) = first {
            waker.wake();
        }
    }
}

impl Ticket<'_> {
    fn poll(&self, context: &Context<'_>) -> Poll<()> {
        let queue = &mut *self.turns.queue.lock();
        let is_first = match queue.waiting.front() {
            None => true,
            Some((number, _)) => *number == self.number,
        };
        if is_first && !queue.is_taken {
            queue.is_taken = true;
            queue.waiting.pop_front();
            return Poll::Ready(());
        }
        let own = queue.waiting.iter_mut().find(|(of, _)| *of == self.number);
        match own {
            Some((_, waker)) => waker.clone_from(context.waker()),
            None => queue
                .waiting
                .push_back((self.number, context.waker().clone())),
        }
        Poll::Pending
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut queue = self.turns.queue.lock();
        queue.waiting.retain(|(number, _)| *number != self.number);
        drop(queue);
        // It may have been the waiter that was woken.
        self.turns.pass_on();
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let was_taken = std::mem::take(&mut self.turns.queue.lock().is_taken);
        assert!(was_taken, "a turn ends once");
        self.turns.pass_on();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Wake;

    use sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[derive(Default)]
    struct Counting(AtomicU32);

    impl Wake for Counting {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn turns_are_taken_in_order_and_may_be_given_up() {
        let turns: Arc<Turns> = Arc::default();
        let mut context = Context::from_waker(Waker::noop());
        let mut first = Box::pin(turns.take());
        let Poll::Ready(turn) = first.as_mut().poll(&mut context) else {
            panic!("nobody has it");
        };
        let mut second = Box::pin(turns.take());
        let mut third = pin!(turns.take());
        assert!(second.as_mut().poll(&mut context).is_pending());
        assert!(third.as_mut().poll(&mut context).is_pending());
        drop(turn);
        assert!(third.as_mut().poll(&mut context).is_pending());
        drop(second);
        assert!(third.as_mut().poll(&mut context).is_ready());
    }

    /// The end wakes the first that waits. A waiter that is polled again is still woken once.
    #[test]
    fn the_end_of_a_turn_wakes_the_next() {
        let turns: Arc<Turns> = Arc::default();
        let counting = Arc::new(Counting::default());
        let waker = Waker::from(Arc::clone(&counting));
        let mut context = Context::from_waker(&waker);
        let mut first = Box::pin(turns.take());
        let Poll::Ready(turn) = first.as_mut().poll(&mut context) else {
            panic!("no turn is taken");
        };
        let (mut second, mut third) = (pin!(turns.take()), pin!(turns.take()));
        for _ in 0..2 {
            assert!(second.as_mut().poll(&mut context).is_pending());
            assert!(third.as_mut().poll(&mut context).is_pending());
        }
        assert_eq!(counting.0.load(Ordering::Relaxed), 0);
        drop(turn);
        assert_eq!(counting.0.load(Ordering::Relaxed), 1);
        let Poll::Ready(turn) = second.as_mut().poll(&mut context) else {
            panic!("the turn is free");
        };
        assert!(third.as_mut().poll(&mut context).is_pending());
        drop(turn);
        assert_eq!(counting.0.load(Ordering::Relaxed), 2);
        assert!(third.as_mut().poll(&mut context).is_ready());
    }
}
