//! A single-threaded executor that draws the next task from its seed and owns the clock.
//!
//! If no task can run, the clock moves on to the next timer. It also does so after many polls, for
//! tasks that wake each other until a disk has answered. If there is no timer either, the run is
//! stuck, which is reported at once. It is also stuck if only timers are left that renew themselves
//! for ever, as those of background work do: then simulated time passes and nothing else happens.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use sync::Mutex;

use super::clock::SimClock;
use crate::Random;
use crate::clock::Clock;

type TaskId = u64;
type LocalFuture = Pin<Box<dyn Future<Output = ()>>>;

/// Runs tasks in an order that its seed decides. Clones are handles on the same executor, so that
/// tasks can spawn tasks.
#[derive(Clone)]
pub struct SimExecutor {
    state: Rc<RefCell<State>>,
    ready: Arc<Mutex<Vec<TaskId>>>,
    clock: SimClock,
}

struct State {
    random: Random,
    tasks: BTreeMap<TaskId, LocalFuture>,
    next_id: TaskId,
    /// Polls since the clock has moved.
    poll_count: u32,
}

/// Polls after which the clock moves though tasks can run: some hundred microseconds of a
/// processor, as long as a disk takes for an answer.
const POLLS_AT_ONCE_MAX: u32 = 1000;

/// How long [`SimExecutor::block_on`] lets simulated time pass. The longest waits of a server that
/// end are some minutes (purge gives up a page that cannot be read after one).
const BLOCK_MAX: Duration = Duration::from_secs(3600);

/// Nothing can run and no timer is set, yet the awaited future is not done; or only timers have run
/// for an hour of simulated time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stuck;

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no task can run, or the limit of simulated time is over")
    }
}

impl std::error::Error for Stuck {}

struct Waking {
    id: TaskId,
    ready: Arc<Mutex<Vec<TaskId>>>,
}

impl Wake for Waking {
    fn wake(self: Arc<Self>) {
        let mut ready = self.ready.lock();
        if !ready.contains(&self.id) {
            ready.push(self.id);
        }
    }
}

impl SimExecutor {
    /// Creates an executor with no tasks, that moves `clock`.
    pub fn new(seed: u64, clock: SimClock) -> Self {
        let random = Random::new(seed);
        let state = State {
            random,
            tasks: BTreeMap::new(),
            next_id: 0,
            poll_count: 0,
        };
        Self {
            state: Rc::new(RefCell::new(state)),
            ready: Arc::default(),
            clock,
        }
    }

    /// Adds a task; it runs when the executor does.
    pub fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        let mut state = self.state.borrow_mut();
        let id = state.next_id;
        state.next_id += 1;
        state.tasks.insert(id, Box::pin(future));
        self.ready.lock().push(id);
    }

    /// Polls one task, or moves the clock to the next timer. Returns `false` if there is neither.
    pub fn step(&self) -> bool {
        let is_overdue = POLLS_AT_ONCE_MAX <= self.state.borrow().poll_count;
        if is_overdue {
            self.state.borrow_mut().poll_count = 0;
            self.clock.advance();
        }
        let mut ready = self.ready.lock();
        if ready.is_empty() {
            drop(ready);
            self.state.borrow_mut().poll_count = 0;
            return self.clock.advance();
        }
        self.state.borrow_mut().poll_count += 1;
        let drawn = self.state.borrow_mut().random.index(ready.len());
        let id = ready.remove(drawn);
        drop(ready);
        // Out of the map while it runs, so that it may spawn; finished tasks may still be woken.
        let Some(mut task) = self.state.borrow_mut().tasks.remove(&id) else {
            return true;
        };
        let waker = Waker::from(Arc::new(Waking {
            id,
            ready: self.ready.clone(),
        }));
        if task
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
        {
            self.state.borrow_mut().tasks.insert(id, task);
        }
        true
    }

    /// Runs until nothing more can happen. Returns the number of tasks that are left, waiting for
    /// something that will not come.
    pub fn run(&self) -> usize {
        while self.step() {}
        self.state.borrow().tasks.len()
    }

    /// Runs at most `step_count` steps: for a crash at any moment. Drop the executor's clones and
    /// tasks with [`SimExecutor::clear`] after it.
    pub fn run_steps(&self, step_count: u64) {
        for _ in 0..step_count {
            if !self.step() {
                return;
            }
        }
    }

    /// Runs until `future` is done, for at most an hour of simulated time.
    pub fn block_on<T: 'static>(
        &self,
        future: impl Future<Output = T> + 'static,
    ) -> Result<T, Stuck> {
        let outbox = Rc::new(RefCell::new(None));
        let inner = outbox.clone();
        self.spawn(async move {
            let value = future.await;
            *inner.borrow_mut() = Some(value);
        });
        let began = self.clock.now();
        loop {
            if let Some(value) = outbox.borrow_mut().take() {
                return Ok(value);
            }
            if !self.step() || BLOCK_MAX < self.clock.now().since(began) {
                return Err(Stuck);
            }
        }
    }

    /// Drops all tasks, whatever their state.
    pub fn clear(&self) {
        // Dropped outside the borrow: a task's destructor may spawn or wake.
        let tasks = std::mem::take(&mut self.state.borrow_mut().tasks);
        drop(tasks);
        self.ready.lock().clear();
    }

    /// The clock that this executor moves.
    pub fn clock(&self) -> &SimClock {
        &self.clock
    }

    /// Lets the other tasks go first.
    pub async fn yield_now(&self) {
        let mut has_yielded = false;
        std::future::poll_fn(|context| {
            if has_yielded {
                return Poll::Ready(());
            }
            has_yielded = true;
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}

/// Polls a future at most `poll_count` times, then drops it. Returns `None` if it was not done by
/// then. For tests of work that is dropped in the middle.
pub async fn poll_at_most<T>(poll_count: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = Box::pin(future);
    let mut polled_count = 0;
    std::future::poll_fn(|context| {
        polled_count += 1;
        match future.as_mut().poll(context) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending if poll_count <= polled_count => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

impl fmt::Debug for SimExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SimExecutor")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two tasks that wake each other until a timer has come, as those that wait for a frame do.
    #[test]
    fn time_passes_while_tasks_run() {
        let executor = SimExecutor::new(1, SimClock::new());
        let turning = executor.clone();
        let clock = executor.clock().clone();
        let late = clock.now() + Duration::from_micros(60);
        clock.wake_at(late, Waker::noop().clone());
        let turned = executor.block_on(async move {
            while turning.clock().now() < late {
                turning.yield_now().await;
            }
        });
        assert_eq!(turned, Ok(()));
    }
}
