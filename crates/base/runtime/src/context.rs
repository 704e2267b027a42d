//! What a task may ask of its worker. Each of these functions panics on a thread that is no worker.

use std::fmt;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::ptr::NonNull;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use env::{Disk, Instant};
use sync::oneshot;

use crate::coroutine::WayGiven;
use crate::hot_memory::{HotPlace, OWN_PLACE_MAX};
use crate::join_handle::JoinHandle;
use crate::run_queue::TaskClass;
use crate::shared::Message;
use crate::shared::task::Kind;
use crate::timer::TimerKey;
use crate::worker::{current, try_current};

/// Starts a task on this worker. The end of the runtime waits for it until `patience` is over.
pub fn spawn<T: 'static>(future: impl Future<Output = T> + 'static) -> JoinHandle<T> {
    JoinHandle::spawn(&current(), Kind::Foreground, future)
}

/// Starts a task on this worker. The end of the runtime does not wait for it: it is dropped when
/// the last task of [`spawn`] has ended on every worker.
pub fn spawn_background<T: 'static>(future: impl Future<Output = T> + 'static) -> JoinHandle<T> {
    JoinHandle::spawn(&current(), Kind::Background, future)
}

/// Goes to the back of the run queue.
pub async fn yield_now() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if has_yielded {
            return Poll::Ready(());
        }
        has_yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Lets the worker's other tasks run in the middle of a long computation, and returns when it is
/// this task's turn again. Call it every 10 to 100 us of work. Until the task has run for 200 us,
/// it only reads the clock. If no other task can run, as on a thread that is no worker, it does
/// nothing.
///
/// Others run before it returns. So the caller holds no latch, no lock, and no borrow of anything
/// that other tasks use.
pub fn give_way() -> WayGiven {
    try_current().map_or(WayGiven::Yes, |worker| worker.give_way())
}

/// Whether the calling task has computed long enough that others should run before it goes on. The
/// first call in a poll returns false. Call it every 10 to 100 us of work. Returns true on a thread
/// that is no worker.
pub fn is_slice_over() -> bool {
    try_current().is_none_or(|worker| worker.is_slice_over())
}

/// States what the calling task waits for if it suspends. Holds until its next poll.
pub fn set_task_class(class: TaskClass) {
    current().set_task_class(class);
}

/// Notes that the running task reads `value` at its next poll; a worker with many clients
/// prefetches it. A later value at the same `place` replaces the earlier one. The value may move or
/// be dropped at any time; the prefetch of its old address is then useless and harmless.
///
/// # Panics
/// If `place` is beyond 13.
pub fn note_hot<T: ?Sized>(place: usize, value: &T) {
    assert!(place <= OWN_PLACE_MAX, "a task has no such place");
    current().note_hot(HotPlace::Own(place), value);
}

/// When this turn of the loop began. The clock is read once a turn, so this costs nothing.
pub fn now() -> Instant {
    current().now()
}

/// Which worker this is, from 0.
pub fn worker_index() -> usize {
    current().index
}

/// Number of workers.
pub fn worker_count() -> usize {
    current().shared.mailboxes.len()
}

/// Keeps a value for this worker: one of each type; a later one replaces an earlier one.
pub fn set_local<T: 'static>(value: Rc<T>) {
    current().set_local(value);
}

/// Returns the value of this type that was kept for this worker.
pub fn local<T: 'static>() -> Option<Rc<T>> {
    current().local()
}

/// Returns the empty buffer of something that was posted on a stream of this worker and has been
/// sent. Returns `None` on a thread that is no worker.
pub fn spent_buffer() -> Option<Vec<u8>> {
    try_current()?.driver.take_spent()
}

/// Runs `job` on a worker, on its loop, soon. Jobs of one sender run in order.
///
/// # Panics
/// If there is no such worker.
pub fn send_to(worker_index: usize, job: Box<dyn FnOnce() + Send>) {
    current().shared.send(worker_index, Message::Run(job));
}

/// Runs `job` on a worker, on its loop, and returns its result.
///
/// # Panics
/// If there is no such worker.
pub async fn call_on<T: Send + 'static>(
    worker_index: usize,
    job: impl FnOnce() -> T + Send + 'static,
) -> T {
    let (reply, awaited) = oneshot();
    send_to(worker_index, Box::new(move || reply.deliver(job())));
    awaited.receive().await
}

/// Runs a call that blocks on a helper thread. Dropping the future does not stop the call.
pub async fn blocking<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> T {
    current().shared.helpers.calls.run(job).await
}

/// Calls `hook` at the end of every turn of this worker's loop, after the runnable tasks and before
/// the call to the kernel. What the hook starts is submitted with the turn. So is what tasks start
/// at once that it spawns or wakes.
pub fn on_tick_end(hook: Box<dyn FnMut()>) {
    current().add_hook(hook);
}

/// This worker's handle on files.
pub fn disk() -> Rc<dyn Disk> {
    current().disk.clone()
}

/// Whether the runtime was asked to stop.
pub fn shutdown_requested() -> bool {
    current().shared.stop_at().is_some()
}

/// Waits until the runtime is asked to stop.
pub async fn shutdown() {
    poll_fn(|context| match current().wait_for_stop(context.waker()) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await;
}

/// Waits for `duration`, and up to 131 us more.
pub fn sleep(duration: Duration) -> Sleep {
    sleep_until(env::Clock::now(&env::linux::SystemClock) + duration)
}

/// Waits until `deadline`, and up to 131 us more.
pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep {
        deadline,
        key: None,
        stays: PhantomData,
    }
}

/// The future of [`sleep`]. Dropping it costs a few instructions.
#[must_use = "a sleep does nothing until it is awaited"]
pub struct Sleep {
    deadline: Instant,
    /// The timer, once it is set.
    key: Option<TimerKey>,
    /// The timer is one of this worker's: `!Send`.
    stays: PhantomData<*const ()>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let worker = current();
        if self.deadline <= worker.now() {
            return Poll::Ready(());
        }
        let mut timers = worker.timers.borrow_mut();
        let is_set = self
            .key
            .is_some_and(|key| timers.replace_waker(key, context.waker()));
        if !is_set {
            self.key = Some(timers.set(self.deadline, context.waker().clone()));
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        // A worker that ends by a panic has nothing left to cancel.
        if let (Some(key), Some(worker)) = (self.key, try_current()) {
            worker.timers.borrow_mut().cancel(key);
        }
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep")
            .field("deadline", &self.deadline)
            .finish()
    }
}

/// A timer that one task keeps from one wait to the next. A task may wait every few microseconds,
/// each time with a limit of seconds; it then touches no timer. A timer that fires before the limit
/// of the present wait is left alone, and is set again if it fires.
///
/// It wakes the task that polled it last, so it may go from one task to another of its worker.
#[derive(Default)]
pub struct Alarm {
    /// The timer that was set last. It has not fired before its deadline.
    set: Option<SetTimer>,
    /// The timer is one of this worker's: `!Send`.
    stays: PhantomData<*const ()>,
}

/// A timer of an [`Alarm`].
#[derive(Debug, Clone, Copy)]
struct SetTimer {
    key: TimerKey,
    due: Instant,
    /// Whom it wakes. It keeps that task's memory, so no other task has the address.
    woken: WakerAddress,
}

/// By which a waker is known without reading the timer, whose memory is cold: all wakers with the
/// same data wake the same task. Not null, so that an unset timer needs no room of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WakerAddress(NonNull<()>);

impl WakerAddress {
    fn of(waker: &Waker) -> WakerAddress {
        let data = NonNull::new(waker.data().cast_mut());
        WakerAddress(data.unwrap_or(NonNull::dangling()))
    }
}

impl Alarm {
    /// Ready once `deadline` has come. Until then the task is woken at `deadline` at the latest,
    /// and perhaps earlier.
    pub fn poll_until(&mut self, deadline: Instant, context: &mut Context<'_>) -> Poll<()> {
        let worker = current();
        let now = worker.now();
        if deadline <= now {
            return Poll::Ready(());
        }
        let waker = context.waker();
        let woken = WakerAddress::of(waker);
        let mut timers = worker.timers.borrow_mut();
        if let Some(set) = &mut self.set {
            let is_early_enough = now < set.due && set.due <= deadline;
            if is_early_enough && (set.woken == woken || timers.replace_waker(set.key, waker)) {
                set.woken = woken;
                return Poll::Pending;
            }
            timers.cancel(set.key);
        }
        self.set = Some(SetTimer {
            key: timers.set(deadline, waker.clone()),
            due: deadline,
            woken,
        });
        Poll::Pending
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // A worker that ends by a panic has nothing left to cancel.
        if let (Some(set), Some(worker)) = (self.set, try_current()) {
            worker.timers.borrow_mut().cancel(set.key);
        }
    }
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let due = self.set.map(|set| set.due);
        f.debug_struct("Alarm").field("due", &due).finish()
    }
}

/// The time given to [`timeout`] has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the time given for it has passed")]
pub struct Elapsed;

/// Runs `future` for at most `duration`, and drops it when that time is over.
pub async fn timeout<T>(duration: Duration, future: impl Future<Output = T>) -> Result<T, Elapsed> {
    let mut future = pin!(future);
    let mut sleep = pin!(sleep(duration));
    poll_fn(|context| {
        if let Poll::Ready(value) = future.as_mut().poll(context) {
            return Poll::Ready(Ok(value));
        }
        sleep.as_mut().poll(context).map(|()| Err(Elapsed))
    })
    .await
}
