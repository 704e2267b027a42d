//! What a task may ask of its worker. Each of these functions panics on a thread that is none.

use std::fmt;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use env::{Disk, Instant};
use sync::parcel;

use crate::hot_memory::{HotPlace, OWN_PLACE_MAX};
use crate::run_queue::Standing;
use crate::shared::Message;
use crate::strand::WayGiven;
use crate::task::{JoinHandle, Kind};
use crate::timer::TimerKey;
use crate::worker::{current, try_current};

/// Starts a task on this worker. The end of the runtime waits for it, as long as patience lasts.
pub fn spawn<T: 'static>(future: impl Future<Output = T> + 'static) -> JoinHandle<T> {
    JoinHandle::spawn(&current(), Kind::Foreground, future)
}

/// Starts a task on this worker that the end of the runtime does not wait for: it is dropped when
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

/// Lets the worker's other tasks run in the middle of a call that computes for long: comes back
/// when it is this task's turn again. Call it every 10 to 100 us of work; until the task has had
/// 200 us it only reads the clock. Where nobody else can run - on a thread that is no worker - it
/// does nothing.
///
/// Others run before it returns: the caller holds no latch, no lock, and no borrow of anything
/// that other tasks use.
pub fn give_way() -> WayGiven {
    try_current().map_or(WayGiven::Yes, |worker| worker.give_way())
}

/// Whether the task that calls this has computed for so long that others are to run before it goes
/// on; asked for the first time in a poll, it is not. Call it every 10 to 100 us of work. True on a
/// thread that is no worker.
pub fn is_slice_over() -> bool {
    try_current().is_none_or(|worker| worker.is_slice_over())
}

/// Says what the task that calls this waits for, if it now comes to wait; until its next poll.
pub fn set_standing(standing: Standing) {
    current().set_standing(standing);
}

/// Says that the running task reads `value` at its next poll: a worker with many clients prefetches
/// it. A later value at the same `place` takes the earlier one's place. The value may move or go at
/// any time; its old address is then prefetched in vain.
///
/// # Panics
/// If `place` is beyond 13.
pub fn note_hot<T: ?Sized>(place: usize, value: &T) {
    assert!(place <= OWN_PLACE_MAX, "a task has no such place");
    current().note_hot(HotPlace::Own(place), value);
}

/// When this turn of the loop began: read once a turn, so it costs nothing.
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

/// Keeps a value for this worker; one of each type, the last one counts.
pub fn set_local<T: 'static>(value: Rc<T>) {
    current().set_local(value);
}

/// The value of this type that was kept for this worker.
pub fn local<T: 'static>() -> Option<Rc<T>> {
    current().local()
}

/// The empty buffer of something that was posted on a stream of this worker and has been sent. A
/// thread that is no worker has none.
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

/// Runs `job` on a worker, on its loop, and brings back what it gives.
///
/// # Panics
/// If there is no such worker.
pub async fn call_on<T: Send + 'static>(
    worker_index: usize,
    job: impl FnOnce() -> T + Send + 'static,
) -> T {
    let (reply, awaited) = parcel();
    send_to(worker_index, Box::new(move || reply.deliver(job())));
    awaited.receive().await
}

/// Runs a call that blocks on a helper thread. Dropping the future does not stop the call.
pub async fn blocking<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> T {
    current().shared.helpers.calls.run(job).await
}

/// Calls `hook` at the end of every turn of this worker's loop, after the runnable tasks and
/// before the kernel is asked: what it starts, and what tasks that it spawns or wakes start at
/// once, is submitted with the turn.
pub fn on_tick_end(hook: Box<dyn FnMut()>) {
    current().add_hook(hook);
}

/// This worker's handle on files.
pub fn disk() -> Rc<dyn Disk> {
    current().disk.clone()
}

/// Whether somebody has asked the runtime to stop.
pub fn shutdown_requested() -> bool {
    current().shared.stop_at().is_some()
}

/// Waits until somebody asks the runtime to stop.
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
        // On a worker that ends by a panic there is nothing to cancel any more.
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

/// A timer that one task keeps from one wait to the next. Waits that follow each other by
/// microseconds, each with a limit of seconds, then touch no timer at all: one that is set for a
/// moment before the limit of the present wait is left alone, and set anew should it go off.
///
/// It wakes the task that polled it first: a value of this type belongs to one task.
#[derive(Default)]
pub struct Alarm {
    /// The timer that was set last, and for when. It has not gone off before that moment.
    set: Option<(TimerKey, Instant)>,
    /// The timer is one of this worker's: `!Send`.
    stays: PhantomData<*const ()>,
}

impl Alarm {
    /// Ready once `deadline` has come; until then the task will be woken by then, and perhaps
    /// sooner.
    pub fn poll_until(&mut self, deadline: Instant, context: &mut Context<'_>) -> Poll<()> {
        let worker = current();
        let now = worker.now();
        if deadline <= now {
            return Poll::Ready(());
        }
        let is_set = |due: Instant| now < due && due <= deadline;
        if self.set.is_some_and(|(_, due)| is_set(due)) {
            return Poll::Pending;
        }
        let mut timers = worker.timers.borrow_mut();
        if let Some((key, _)) = self.set {
            timers.cancel(key);
        }
        self.set = Some((timers.set(deadline, context.waker().clone()), deadline));
        Poll::Pending
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // On a worker that ends by a panic there is nothing to cancel any more.
        if let (Some((key, _)), Some(worker)) = (self.set, try_current()) {
            worker.timers.borrow_mut().cancel(key);
        }
    }
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let due = self.set.map(|(_, due)| due);
        f.debug_struct("Alarm").field("due", &due).finish()
    }
}

/// The time given to [`timeout`] has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the time given for it has passed")]
pub struct Elapsed;

/// Runs `future` for at most `duration`; dropped where it stands when that is over.
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
