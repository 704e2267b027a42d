//! [`TaskCoroutine`]: a stack on which tasks are polled, so that a poll can be left in its middle.
//!
//! A future gives way between two polls. A long call in the middle of one (a text of 16 MiB
//! searched, a million keys compared) cannot, unless its whole stack can stay until its next turn.
//! So each poll runs on a stack of its own. [`give_way`] leaves that stack; the worker takes the
//! next task and another stack, and comes back in first-come-first-served order. The alternative
//! was to make every such call restartable. Each function of SQL and each comparison of a sort
//! would then carry a state that one call in a thousand needs.
//!
//! ```text
//! idle --run(task)--> polling --> idle: the poll came to its end, [`Outcome::Done`] or `Pending`
//!                     polling --give_way--> left --resume--> polling
//! idle --end--> gone
//! ```
//!
//! (I1) A coroutine belongs to its worker's thread: what it runs is `!Send` and never moves.
//! (I2) A caller of [`give_way`] holds no borrow of the worker's own cells, no latch and no lock,
//!      because other tasks run before it returns. (Invariant L0 of the storage, extended to calls
//!      in their middle.)
//! (I3) A wake-up that comes while a poll is left is answered by the resumption and not by a poll.
//!      So a task whose poll was left, and which then is pending, is polled once more.
//! (I4) `CURRENT` points to the yielder of the coroutine that runs, and is empty while none does.
//!
//! Cost: two switches of some nanoseconds a poll. A coroutine takes [`STACK_BYTES`] of addresses,
//! of which the system backs what was touched, and two of the process' mappings
//! ([`left_count_max`]).

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Waker};

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

/// As much as a thread has by default.
const STACK_BYTES: usize = 2 << 20;

/// Mappings of a coroutine: its stack, and the guard below that.
const MAPPINGS_A_COROUTINE: usize = 2;

/// Mappings that a process may have, by Linux' default for `vm.max_map_count`. At the limit the
/// kernel refuses not only coroutines, but any memory.
const MAPPINGS_MAX: usize = 65_530;

/// Polls of all workers that may be left in their middle at a time: half of the mappings.
const LEFT_COUNT_MAX: usize = 16_000;
const _: () = assert!(LEFT_COUNT_MAX * MAPPINGS_A_COROUTINE <= MAPPINGS_MAX / 2);

/// Such polls of one worker, even if there are few workers: more would only wait longer.
const WORKER_LEFT_COUNT_MAX: usize = 4096;

/// A task's future.
pub(crate) type TaskFuture = Pin<Box<dyn Future<Output = ()>>>;

/// What the worker orders a coroutine to do.
enum Order {
    /// Poll this.
    Poll(TaskFuture, Waker),
    /// Go on where the poll was left; [`give_way`](crate::give_way) returns the answer.
    Resume(WayGiven),
    /// Return: the coroutine is not needed any more.
    End,
}

/// What a coroutine reports when it stops running.
pub(crate) enum Outcome {
    /// The task has come to its end.
    Done,
    /// The task waits.
    Pending(TaskFuture),
    /// The poll was left in its middle: resume it.
    Left,
}

/// What [`give_way`](crate::give_way) returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WayGiven {
    /// Go on.
    Yes,
    /// The task is being dropped: return an error as soon as possible. This poll is not left again.
    Ending,
}

thread_local! {
    /// (I4).
    static CURRENT: Cell<Option<NonNull<Yielder<Order, Outcome>>>> = const { Cell::new(None) };
}

/// See the module's head.
pub(crate) struct TaskCoroutine(Coroutine<Order, Outcome, (), DefaultStack>);

impl TaskCoroutine {
    /// Creates an idle coroutine.
    ///
    /// # Errors
    /// If the system has no room for a stack.
    pub(crate) fn new() -> io::Result<Self> {
        let stack = DefaultStack::new(STACK_BYTES)?;
        Ok(Self(Coroutine::with_stack(stack, work)))
    }

    /// Polls a task.
    pub(crate) fn run(&mut self, future: TaskFuture, waker: Waker) -> Outcome {
        self.order(Order::Poll(future, waker))
            .expect("a coroutine ends when told to")
    }

    /// Goes on with a poll that was left.
    pub(crate) fn resume(&mut self, answer: WayGiven) -> Outcome {
        self.order(Order::Resume(answer))
            .expect("a coroutine ends when told to")
    }

    /// Ends an idle coroutine. If it were only dropped, it would have to be unwound.
    pub(crate) fn end(mut self) {
        let outcome = self.order(Order::End);
        assert!(outcome.is_none(), "an idle coroutine ends");
    }

    fn order(&mut self, order: Order) -> Option<Outcome> {
        // After this, no coroutine is current in any case: a panic passes through here.
        let guard = Clear;
        let outcome = match self.0.resume(order) {
            CoroutineResult::Yield(outcome) => Some(outcome),
            CoroutineResult::Return(()) => None,
        };
        drop(guard);
        outcome
    }
}

impl fmt::Debug for TaskCoroutine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TaskCoroutine")
    }
}

/// Empties `CURRENT` when control is back with the worker.
struct Clear;

impl Drop for Clear {
    fn drop(&mut self) {
        CURRENT.with(|current| current.set(None));
    }
}

/// What runs on a coroutine's stack: one poll after another.
fn work(yielder: &Yielder<Order, Outcome>, first: Order) {
    let mut order = first;
    loop {
        let (mut future, waker) = match order {
            Order::Poll(future, waker) => (future, waker),
            Order::Resume(_) => unreachable!("an idle coroutine has nothing to resume"),
            Order::End => return,
        };
        CURRENT.with(|current| current.set(Some(NonNull::from(yielder))));
        let is_done = future
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_ready();
        drop(waker);
        let outcome = if is_done {
            // Its destructor may run long too, and may wake or spawn.
            drop(future);
            Outcome::Done
        } else {
            Outcome::Pending(future)
        };
        order = yielder.suspend(outcome);
    }
}

/// Polls of a worker that may be left in their middle at a time, each with a stack of its own, if
/// there are `worker_count` workers. A task beyond them computes on until it suspends by itself.
/// That is slower for others, but nothing is refused.
pub(crate) fn left_count_max(worker_count: usize) -> usize {
    WORKER_LEFT_COUNT_MAX.min(LEFT_COUNT_MAX / worker_count.max(1))
}

/// Whether this is a coroutine, where [`leave`] works.
pub(crate) fn is_current() -> bool {
    CURRENT.with(|current| current.get().is_some())
}

/// Leaves the running poll, which the worker resumes later.
///
/// # Panics
/// If no coroutine runs.
pub(crate) fn leave() -> WayGiven {
    let yielder = CURRENT
        .with(Cell::get)
        .expect("somebody is being polled on a coroutine");
    // SAFETY: by (I4) `CURRENT` was set on this thread by the coroutine that runs now and not
    // emptied since, so this is its yielder. It lies at the root of the coroutine's stack, below
    // this frame, and lives until `work` returns; it is only ever used by shared reference.
    let yielder = unsafe { yielder.as_ref() };
    let answer = match yielder.suspend(Outcome::Left) {
        Order::Resume(answer) => answer,
        Order::Poll(..) | Order::End => unreachable!("a coroutine that was left is resumed"),
    };
    CURRENT.with(|current| current.set(Some(NonNull::from(yielder))));
    answer
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::rc::Rc;
    use std::task::Poll;

    use super::*;

    #[test]
    fn all_workers_together_leave_room_for_other_mappings() {
        for worker_count in 1..=1024 {
            let of_each = left_count_max(worker_count);
            assert!((1..=4096).contains(&of_each));
            assert!(worker_count * of_each * MAPPINGS_A_COROUTINE <= MAPPINGS_MAX / 2);
        }
    }

    #[test]
    fn a_poll_is_left_and_resumed_where_it_was() {
        let steps = Rc::new(Cell::new(0));
        let seen = Rc::clone(&steps);
        let mut coroutine = TaskCoroutine::new().unwrap();
        let future: TaskFuture = Box::pin(poll_fn(move |_| {
            for _ in 0..3 {
                seen.set(seen.get() + 1);
                assert_eq!(leave(), WayGiven::Yes);
            }
            Poll::Ready(())
        }));
        let outcome = coroutine.run(future, Waker::noop().clone());
        assert!(matches!(outcome, Outcome::Left));
        for expected in 1..3 {
            assert_eq!(steps.get(), expected);
            assert!(!is_current());
            assert!(matches!(coroutine.resume(WayGiven::Yes), Outcome::Left));
        }
        assert!(matches!(coroutine.resume(WayGiven::Yes), Outcome::Done));
        coroutine.end();
    }

    #[test]
    fn two_strands_interleave_and_are_used_again() {
        let order = Rc::new(std::cell::RefCell::new(Vec::new()));
        let task = |name: &'static str| -> TaskFuture {
            let order = Rc::clone(&order);
            Box::pin(async move {
                order.borrow_mut().push((name, 1));
                leave();
                order.borrow_mut().push((name, 2));
            })
        };
        let (mut a, mut b) = (TaskCoroutine::new().unwrap(), TaskCoroutine::new().unwrap());
        for _ in 0..2 {
            assert!(matches!(
                a.run(task("a"), Waker::noop().clone()),
                Outcome::Left
            ));
            assert!(matches!(
                b.run(task("b"), Waker::noop().clone()),
                Outcome::Left
            ));
            assert!(matches!(a.resume(WayGiven::Yes), Outcome::Done));
            assert!(matches!(b.resume(WayGiven::Yes), Outcome::Done));
        }
        let once = [("a", 1), ("b", 1), ("a", 2), ("b", 2)];
        assert_eq!(*order.borrow(), [once, once].concat());
        a.end();
        b.end();
    }

    #[test]
    fn a_panic_passes_through_and_leaves_nothing_current() {
        let mut coroutine = TaskCoroutine::new().unwrap();
        let future: TaskFuture = Box::pin(async { panic!("of the task") });
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            coroutine.run(future, Waker::noop().clone())
        }));
        assert!(caught.is_err());
        assert!(!is_current());
    }
}
