//! One worker: its tasks, its timers and its loop.
//!
//! A turn of the loop: take the inbox, fire timers, poll runnable tasks (see `run_queue.rs`), call
//! the hooks of the turn's end, poll the tasks that these woke. Then ask the kernel: submit what
//! the turn wanted and wait for the next events. That is one call, except while the worker waits
//! for commits under way ([`Worker::ask_kernel`]), and before timers
//! ([`Worker::ask_kernel_before_timers`]). The worker sleeps only if its inbox agrees
//! (`Inbox::try_sleep`), and no longer than to its next timer.
//!
//! A task that is always ready is stopped by its budget of completed operations (see
//! [`Worker::spend`]). A task that computes for long gives way in the middle (`coroutine.rs`). A
//! turn that never ends is stopped by [`TURN_POLLS_MAX`] and [`TURN_TIME_MAX`].

mod preemption;

use std::any::{Any, TypeId};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use env::linux::SystemClock;
use env::{Clock as _, Disk, Instant};
use stdx::Slab;

use crate::coroutine::{self, Outcome, TaskCoroutine, TaskFuture, WayGiven};
use crate::driver::Driver;
use crate::hot_memory::{self, HotMemory, HotPlace};
use crate::options::Preemption;
use crate::run_queue::{Quantum, RunQueue, TaskClass};
use crate::shared::task::{Header, Kind, Slot, Work};
use crate::shared::{Message, Placed, Shared};
use crate::timer::Wheel;
use preemption::Wakeups;

/// Polls in one turn, after which the kernel is asked even if tasks are runnable: a few
/// milliseconds at the most, at 10 us a statement.
const TURN_POLLS_MAX: usize = 256;

/// Time after which a turn ends even if tasks are runnable: five slices. So soon the worker sees
/// what the kernel has for other clients.
const TURN_TIME_MAX: Duration = Duration::from_millis(1);

/// Polls between two looks at the clock: a look costs some 25 ns, a poll of a point query 5 us.
const POLLS_A_LOOK: usize = 4;

/// How long a task computes before it gives way in the middle of it.
const SLICE: Duration = Duration::from_micros(200);

/// The longest wait for many commits before others are admitted: a part of what a flush
/// takes. `docs/bench` has what it gains.
const COMMITS_WAIT: Duration = Duration::from_micros(250);

/// The least time between two moments in which a worker yields its core. Since Linux 6.18 a thread
/// that yields forfeits the rest of its time slice (`yield_task_fair`). One that yields more often
/// than a slice ends (1.4 ms with two cores) falls behind all others: it ran once in 2 to 8 ms,
/// while 512 clients waited. `docs/bench/quanta.md` has the measurement.
const YIELD_EVERY: Duration = Duration::from_millis(1);

/// How many polls ahead a task's header is prefetched, and then the memory that it names. A poll
/// takes 5 us, a read of memory a tenth of that. What comes too early is evicted again.
const HEADER_AHEAD_COUNT: usize = 3;
const MEMORY_AHEAD_COUNT: usize = 1;

const _: () = assert!(MEMORY_AHEAD_COUNT < HEADER_AHEAD_COUNT);

/// Fewer tasks stay in the cache by themselves: a client takes some 20 KiB with its sockets.
const TASKS_MANY: usize = 128;

/// Idle coroutines that a worker keeps: the next task that computes for long finds one.
const STRANDS_IDLE_MAX: usize = 8;

/// Completed socket operations in one poll of a task, after which it gives way.
const POLL_OPERATIONS_MAX: u32 = 64;

thread_local! {
    /// The worker that this thread is.
    static CURRENT: OnceCell<Rc<Worker>> = const { OnceCell::new() };
}

/// See the module's head.
pub(crate) struct Worker {
    /// Constant.
    pub(crate) index: usize,
    /// Constant.
    pub(crate) shared: Arc<Shared>,
    /// The kernel. Constant.
    pub(crate) driver: Rc<dyn Driver>,
    /// This worker's handle on files. Constant.
    pub(crate) disk: Rc<dyn Disk>,
    pub(crate) timers: RefCell<Wheel>,
    /// Runnable tasks.
    run_queue: RefCell<RunQueue<Arc<Header>>>,
    /// The task being polled.
    running: RefCell<Option<Arc<Header>>>,
    /// The kernel is being asked: the client of a task that is woken now is readable.
    asks_kernel: Cell<bool>,
    tasks: RefCell<Slab<Slot>>,
    /// Stacks for polls; the one that was used last is at the end.
    coroutines: RefCell<Vec<TaskCoroutine>>,
    /// Number of polls that were left in their middle.
    left_count: Cell<usize>,
    /// When the task being polled was first seen to compute for long.
    slice_began: Cell<Option<Instant>>,
    /// The task being polled is being dropped: it does not give way again.
    hurries: Cell<bool>,
    /// All tasks are being dropped.
    is_clearing: Cell<bool>,
    /// Foreground tasks in `tasks`.
    foreground_count: Cell<u64>,
    hooks: RefCell<Vec<Box<dyn FnMut()>>>,
    locals: RefCell<HashMap<TypeId, Rc<dyn Any>>>,
    /// When this turn began.
    now: Cell<Instant>,
    /// When this worker last yielded its core.
    yielded_at: Cell<Instant>,
    /// Whether it takes its core when it wakes up.
    wakeups: RefCell<Wakeups>,
    /// Operations that the task being polled may still complete.
    budget: Cell<u32>,
    /// Tasks to wake when the runtime is asked to stop.
    stop_waiters: RefCell<Vec<Waker>>,
    /// They have been woken.
    has_told_of_stop: Cell<bool>,
}

/// The worker that this thread is.
///
/// # Panics
/// If the thread is no worker.
pub(crate) fn current() -> Rc<Worker> {
    CURRENT.with(|current| {
        current
            .get()
            .expect("this function is called on a worker of the runtime")
            .clone()
    })
}

/// The worker that this thread is, or `None` if it is no worker or its worker ends.
pub(crate) fn try_current() -> Option<Rc<Worker>> {
    CURRENT
        .try_with(|current| current.get().cloned())
        .ok()
        .flatten()
}

impl Wake for Header {
    fn wake(self: Arc<Self>) {
        if self.is_queued.set() && !queue_if_here(&self) {
            let (shared, worker_index) = (self.shared().clone(), self.worker_index());
            shared.send(worker_index, Message::Wake(self));
        }
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.is_queued.set() && !queue_if_here(self) {
            self.shared()
                .send(self.worker_index(), Message::Wake(self.clone()));
        }
    }
}

/// Queues a woken task if this thread is its worker.
fn queue_if_here(header: &Arc<Header>) -> bool {
    let is_here = CURRENT.try_with(|current| {
        let Some(worker) = current.get() else {
            return false;
        };
        let is_own =
            worker.index == header.worker_index() && Arc::ptr_eq(&worker.shared, header.shared());
        if is_own {
            worker.queue(header.clone());
        }
        is_own
    });
    is_here.unwrap_or(false)
}

fn prefetch_header(header: Option<&Arc<Header>>) {
    if let Some(header) = header {
        hot_memory::prefetch(&**header);
    }
}

impl Worker {
    pub(crate) fn new(
        index: usize,
        shared: Arc<Shared>,
        driver: Rc<dyn Driver>,
        preemption: Preemption,
    ) -> Self {
        let now = SystemClock.now();
        Self {
            index,
            disk: driver.clone().disk(&shared),
            shared,
            driver,
            timers: RefCell::new(Wheel::new(now)),
            run_queue: RefCell::new(RunQueue::new()),
            running: RefCell::default(),
            asks_kernel: Cell::new(false),
            tasks: RefCell::default(),
            coroutines: RefCell::default(),
            left_count: Cell::new(0),
            slice_began: Cell::new(None),
            hurries: Cell::new(false),
            is_clearing: Cell::new(false),
            foreground_count: Cell::new(0),
            hooks: RefCell::default(),
            locals: RefCell::default(),
            now: Cell::new(now),
            yielded_at: Cell::new(now),
            wakeups: RefCell::new(Wakeups::new(preemption, now)),
            budget: Cell::new(POLL_OPERATIONS_MAX),
            stop_waiters: RefCell::default(),
            has_told_of_stop: Cell::new(false),
        }
    }

    /// Makes this thread the worker; called once a thread.
    pub(crate) fn enter(self: &Rc<Self>) {
        let entered = CURRENT.with(|current| current.set(self.clone()));
        assert!(entered.is_ok(), "a thread is a worker once");
    }

    /// The loop; ends when the runtime does. Returns the number of foreground tasks that were cut.
    pub(crate) fn run(&self) -> io::Result<u64> {
        let mut messages = Vec::new();
        let mut due = Vec::new();
        loop {
            self.now.set(SystemClock.now());
            self.choose_policy();
            self.mailbox().take(&mut messages);
            for message in messages.drain(..) {
                match message {
                    Message::Wake(header) => self.run_queue.borrow_mut().push_ready(header),
                    Message::Run(job) => job(),
                }
            }
            self.ask_kernel_before_timers()?;
            self.timers.borrow_mut().expire(self.now.get(), &mut due);
            due.drain(..).for_each(Waker::wake);
            self.run_tasks();
            self.run_hooks();
            if self.is_over() {
                break;
            }
            self.ask_kernel()?;
        }
        let cut_count = self.foreground_count.get();
        self.clear();
        Ok(cut_count)
    }

    /// Asks the kernel. Before clients are admitted that would find everything cold, it yields this
    /// core to other programs, and waits for tasks whose commits are under way.
    fn ask_kernel(&self) -> io::Result<()> {
        if !self.run_queue.borrow().is_about_to_admit() {
            return self.ask_kernel_for(self.patience());
        }
        self.yield_core();
        self.ask_kernel_for(Some(Duration::ZERO))?;
        if self.run_queue.borrow().may_wait_for_commits() && self.mailbox().try_sleep() {
            self.ask_kernel_for(Some(COMMITS_WAIT))?;
            self.run_queue.borrow_mut().note_waited();
        }
        Ok(())
    }

    /// Yields this core to other programs, if the last time is [`YIELD_EVERY`] ago. Clients that
    /// were answered a turn ago may then send their next requests. (This turn's answers go out
    /// after that. Sent before it, they would cost 4,096 writers over epoll a twentieth of their
    /// throughput.) If no other program wants the core, this costs a moment.
    fn yield_core(&self) {
        if SystemClock.now().since(self.yielded_at.get()) >= YIELD_EVERY {
            rustix::thread::sched_yield();
            self.yielded_at.set(SystemClock.now());
        }
    }

    /// Tells the kernel whether this thread takes its core when it wakes up, if that changes. A
    /// kernel that refuses leaves it as it is: it costs time, and nothing else.
    fn choose_policy(&self) {
        if let Some(policy) = self.wakeups.borrow_mut().turn(self.now.get()) {
            let _ = preemption::tell(policy);
        }
    }

    /// Asks the kernel once more before timers fire. This thread may have stood still since the
    /// last call (SIGSTOP, a debugger, a machine without a free processor). What came in time must
    /// be seen before the timers. It costs a call of a microsecond, or mostly none over io_uring,
    /// some hundred times a second.
    fn ask_kernel_before_timers(&self) -> io::Result<()> {
        let next = self.timers.borrow().next_expiry();
        if next.is_some_and(|next| next <= self.now.get()) {
            self.ask_kernel_for(Some(Duration::ZERO))?;
        }
        Ok(())
    }

    /// Waits for the kernel, for `patience` at most. The tasks that this wakes have readable
    /// clients.
    fn ask_kernel_for(&self, patience: Option<Duration>) -> io::Result<()> {
        self.asks_kernel.set(true);
        let waited = self.driver.wait(patience);
        self.asks_kernel.set(false);
        waited
    }

    /// Queues a task of this worker that was woken here.
    fn queue(&self, header: Arc<Header>) {
        let mut run_queue = self.run_queue.borrow_mut();
        if self.asks_kernel.get() {
            let last = header.last();
            run_queue.push_readable(header, last);
        } else if self.is_running(&header) {
            run_queue.push_yielded(header);
        } else {
            run_queue.push_ready(header);
        }
    }

    fn is_running(&self, header: &Arc<Header>) -> bool {
        let running = self.running.borrow();
        running.as_ref().is_some_and(|it| Arc::ptr_eq(it, header))
    }

    /// See [`crate::note_hot`].
    pub(crate) fn note_hot<T: ?Sized>(&self, place: HotPlace, value: &T) {
        if let Some(header) = &*self.running.borrow() {
            header.hot().note(place, value);
        }
    }

    /// Calls `act` with the hot memory of the task being polled.
    pub(crate) fn with_hot<T>(&self, act: impl FnOnce(Option<&HotMemory>) -> T) -> T {
        let running = self.running.borrow();
        act(running.as_ref().map(|header| header.hot()))
    }

    /// Prefetches what the tasks that are polled soon will read. A header says where the rest is,
    /// so it comes first. Few clients stay in the cache by themselves.
    fn prefetch_ahead(&self) {
        let run_queue = self.run_queue.borrow();
        if self.has_many_tasks() {
            prefetch_header(run_queue.cold_at(HEADER_AHEAD_COUNT));
            self.prefetch_memory(run_queue.cold_at(MEMORY_AHEAD_COUNT));
        }
    }

    /// Prefetches for the first polls of a turn, which no poll goes before.
    fn prefetch_first(&self) {
        let run_queue = self.run_queue.borrow();
        if self.has_many_tasks() {
            (0..=HEADER_AHEAD_COUNT).for_each(|at| prefetch_header(run_queue.cold_at(at)));
            (0..=MEMORY_AHEAD_COUNT).for_each(|at| self.prefetch_memory(run_queue.cold_at(at)));
        }
    }

    /// Whether tasks find their memory cold.
    fn has_many_tasks(&self) -> bool {
        TASKS_MANY <= self.tasks.borrow().len()
    }

    fn prefetch_memory(&self, header: Option<&Arc<Header>>) {
        let Some(header) = header else { return };
        if let Some(slot) = self.tasks.borrow().place(header.slot()) {
            hot_memory::prefetch(slot);
        }
        header.hot().prefetch();
    }

    /// See [`crate::set_task_class`].
    pub(crate) fn set_task_class(&self, class: TaskClass) {
        if let Some(header) = &*self.running.borrow() {
            header.set_task_class(class);
        }
    }

    fn mailbox(&self) -> &crate::shared::Mailbox {
        &self.shared.mailboxes[self.index]
    }

    fn run_tasks(&self) {
        let until = self.now.get() + TURN_TIME_MAX;
        self.run_queue.borrow_mut().begin_turn(self.now.get());
        let counters = &self.mailbox().counters;
        counters.turns.increment();
        self.prefetch_first();
        for poll in 1..=TURN_POLLS_MAX {
            let Some((header, quantum)) = self.run_queue.borrow_mut().pop() else {
                return;
            };
            counters.polls.increment();
            self.wakeups.borrow_mut().note(header.slot());
            self.prefetch_ahead();
            self.run_task(header, quantum);
            if poll.is_multiple_of(POLLS_A_LOOK) && until <= SystemClock.now() {
                return;
            }
        }
    }

    /// `quantum` is the task's present quantum, if its client was readable.
    fn run_task(&self, header: Arc<Header>, quantum: Option<Quantum>) {
        let taken = self.with_slot(&header, |slot| (slot.work.take(), slot.is_cancelled));
        // The task is gone already, or cancelled.
        let Some((Some(work), is_cancelled)) = taken else {
            return;
        };
        header.mark_polled(quantum);
        self.count_commit_out(&header);
        self.running.replace(Some(header.clone()));
        self.budget.set(POLL_OPERATIONS_MAX);
        self.slice_began.set(None);
        let hurries = is_cancelled || self.is_clearing.get();
        self.hurries.set(hurries);
        let was_left = matches!(work, Work::Left(_));
        let (outcome, coroutine) = match work {
            Work::Future(future) => self.poll(future, Waker::from(header.clone())),
            Work::Left(mut coroutine) => {
                self.left_count.set(self.left_count.get() - 1);
                let answer = if hurries {
                    WayGiven::Ending
                } else {
                    WayGiven::Yes
                };
                (coroutine.resume(answer), Some(coroutine))
            }
        };
        self.hurries.set(false);
        match (outcome, coroutine) {
            (Outcome::Left, Some(coroutine)) => {
                self.left_count.set(self.left_count.get() + 1);
                self.with_slot(&header, |slot| slot.work = Some(Work::Left(coroutine)));
                Waker::from(header).wake();
            }
            (Outcome::Left, None) => unreachable!("a poll is left on a coroutine"),
            (outcome, coroutine) => {
                coroutine
                    .into_iter()
                    .for_each(|idle| self.keep_coroutine(idle));
                self.end_poll(&header, outcome, was_left);
            }
        }
        self.running.take();
    }

    /// Handles the end of a poll.
    fn end_poll(&self, header: &Arc<Header>, outcome: Outcome, was_left: bool) {
        let is_cancelled = self
            .with_slot(header, |slot| slot.is_cancelled)
            .unwrap_or(true);
        match outcome {
            Outcome::Pending(future) if !is_cancelled => {
                self.with_slot(header, |slot| slot.work = Some(Work::Future(future)));
                if header.begins_to_commit() {
                    self.run_queue.borrow_mut().note_committing();
                }
                if was_left {
                    // (I3) of `coroutine.rs`.
                    Waker::from(header.clone()).wake();
                }
            }
            _ => self.remove_task(header),
        }
    }

    /// Polls a task on a coroutine; on this thread's own stack if there is no memory for one.
    fn poll(&self, mut future: TaskFuture, waker: Waker) -> (Outcome, Option<TaskCoroutine>) {
        let kept = self.coroutines.borrow_mut().pop();
        let Some(mut coroutine) = kept.or_else(|| TaskCoroutine::new().ok()) else {
            let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
            let outcome = match polled {
                Poll::Ready(()) => Outcome::Done,
                Poll::Pending => Outcome::Pending(future),
            };
            return (outcome, None);
        };
        (coroutine.run(future, waker), Some(coroutine))
    }

    fn keep_coroutine(&self, coroutine: TaskCoroutine) {
        let mut coroutines = self.coroutines.borrow_mut();
        if coroutines.len() < STRANDS_IDLE_MAX {
            coroutines.push(coroutine);
        } else {
            coroutine.end();
        }
    }

    /// See [`crate::give_way`].
    pub(crate) fn give_way(&self) -> WayGiven {
        if self.hurries.get() {
            return WayGiven::Ending;
        }
        if !self.is_slice_over() {
            return WayGiven::Yes;
        }
        let left_count_max = coroutine::left_count_max(self.shared.mailboxes.len());
        if !coroutine::is_current() || left_count_max <= self.left_count.get() {
            return WayGiven::Yes;
        }
        coroutine::leave()
    }

    /// See [`crate::is_slice_over`].
    pub(crate) fn is_slice_over(&self) -> bool {
        let now = SystemClock.now();
        match self.slice_began.get() {
            Some(began) => SLICE <= now.since(began),
            None => {
                self.slice_began.set(Some(now));
                false
            }
        }
    }

    fn with_slot<T>(&self, header: &Arc<Header>, act: impl FnOnce(&mut Slot) -> T) -> Option<T> {
        let mut tasks = self.tasks.borrow_mut();
        let slot = tasks.get_mut(header.slot())?;
        Arc::ptr_eq(&slot.header, header).then(|| act(slot))
    }

    /// Adds a task and makes it runnable.
    pub(crate) fn insert_task(
        &self,
        kind: Kind,
        future: TaskFuture,
        placed: Option<Placed>,
    ) -> Arc<Header> {
        let mut tasks = self.tasks.borrow_mut();
        // The slot's index is known once something is in it.
        let placeholder = Header::new(self.shared.clone(), self.index, usize::MAX);
        let slot = Slot {
            header: placeholder,
            kind,
            work: Some(Work::Future(future)),
            is_cancelled: false,
            _placed: placed,
        };
        let index = tasks.insert(slot);
        let header = Header::new(self.shared.clone(), self.index, index);
        let slot = tasks.get_mut(index).expect("just inserted");
        if let Some(Work::Future(future)) = &slot.work {
            header.hot().note(HotPlace::Future, &**future);
        }
        slot.header = header.clone();
        drop(tasks);
        self.count_foreground(kind, 1);
        Waker::from(header.clone()).wake();
        header
    }

    /// Drops a task's future, now or at the end of the poll that it is in.
    pub(crate) fn cancel_task(&self, header: &Arc<Header>) {
        let is_between_polls = self.with_slot(header, |slot| {
            slot.is_cancelled = true;
            matches!(slot.work, Some(Work::Future(_)))
        });
        if is_between_polls == Some(true) {
            self.remove_task(header);
        }
    }

    fn remove_task(&self, header: &Arc<Header>) {
        if self.with_slot(header, |_| ()).is_none() {
            return;
        }
        let slot = self.tasks.borrow_mut().remove(header.slot());
        let slot = slot.expect("just seen");
        self.count_commit_out(header);
        self.count_foreground(slot.kind, -1);
        // The future is dropped here, outside the borrow: its destructor may wake or spawn.
        drop(slot);
    }

    fn count_commit_out(&self, header: &Header) {
        if header.ends_to_commit() {
            self.run_queue.borrow_mut().note_committed();
        }
    }

    fn count_foreground(&self, kind: Kind, change: i64) {
        if kind == Kind::Background {
            return;
        }
        let count = self.foreground_count.get().checked_add_signed(change);
        let count = count.expect("a task ends once");
        self.foreground_count.set(count);
        self.mailbox().set_foreground_count(count);
        if count == 0 && self.has_told_of_stop.get() {
            // The other workers wait for the last of us.
            self.shared.poke_all();
        }
    }

    /// Calls the hooks of the turn's end, and polls once the tasks that they made runnable. What
    /// these start is submitted with this turn: the log's write goes out with the turn's replies.
    fn run_hooks(&self) {
        if self.hooks.borrow().is_empty() {
            return;
        }
        let was_idle = self.run_queue.borrow().ready_count() == 0;
        // Out of the cell while they run: a hook may add another.
        let mut hooks = std::mem::take(&mut *self.hooks.borrow_mut());
        for hook in &mut hooks {
            hook();
        }
        let mut added = self.hooks.borrow_mut();
        hooks.append(&mut added);
        *added = hooks;
        drop(added);
        let woken_count = if was_idle {
            self.run_queue.borrow().ready_count()
        } else {
            0
        };
        for _ in 0..woken_count {
            let header = self.run_queue.borrow_mut().pop_ready();
            self.run_task(header.expect("tasks leave the queue here alone"), None);
        }
    }

    /// Wakes the tasks that wait for the stop, once. Returns whether the loop must end.
    fn is_over(&self) -> bool {
        let Some(stop_at) = self.shared.stop_at() else {
            return false;
        };
        if !self.has_told_of_stop.replace(true) {
            let waiters = std::mem::take(&mut *self.stop_waiters.borrow_mut());
            waiters.into_iter().for_each(Waker::wake);
            self.shared.poke_all();
        }
        self.shared.foreground_count() == 0 || stop_at <= self.now.get()
    }

    /// How long the kernel may let this worker sleep; `None` means until an event comes.
    fn patience(&self) -> Option<Duration> {
        if !self.run_queue.borrow().is_empty() || !self.mailbox().try_sleep() {
            return Some(Duration::ZERO);
        }
        let next_timer = self.timers.borrow().next_expiry();
        let next = match (next_timer, self.shared.stop_at()) {
            (Some(timer), Some(stop)) => Some(timer.min(stop)),
            (timer, stop) => timer.or(stop),
        };
        next.map(|next| next.since(SystemClock.now()))
    }

    /// Drops tasks, hooks and locals while this thread is still the worker.
    fn clear(&self) {
        self.is_clearing.set(true);
        // In rounds, because a task that is dropped may spawn another.
        while !self.tasks.borrow().is_empty() {
            let all = self.tasks.borrow();
            let headers: Vec<_> = all.iter().map(|(_, slot)| slot.header.clone()).collect();
            drop(all);
            for header in headers {
                let is_left = |slot: &mut Slot| matches!(slot.work, Some(Work::Left(_)));
                if self.with_slot(&header, is_left) == Some(true) {
                    // What lies on its stack is dropped when the poll goes on to its end.
                    self.run_task(header.clone(), None);
                }
                self.remove_task(&header);
            }
        }
        self.coroutines
            .take()
            .into_iter()
            .for_each(TaskCoroutine::end);
        self.run_queue.borrow_mut().clear();
        let hooks = std::mem::take(&mut *self.hooks.borrow_mut());
        drop(hooks);
        let locals = std::mem::take(&mut *self.locals.borrow_mut());
        drop(locals);
        let mut rest = Vec::new();
        self.mailbox().take(&mut rest);
    }

    /// Returns whether the task being polled may complete one more operation. If not, it has been
    /// queued again and must give way.
    pub(crate) fn spend(&self, waker: &Waker) -> bool {
        match self.budget.get().checked_sub(1) {
            Some(rest) => {
                self.budget.set(rest);
                true
            }
            None => {
                waker.wake_by_ref();
                false
            }
        }
    }

    pub(crate) fn now(&self) -> Instant {
        self.now.get()
    }

    pub(crate) fn add_hook(&self, hook: Box<dyn FnMut()>) {
        self.hooks.borrow_mut().push(hook);
    }

    pub(crate) fn set_local<T: 'static>(&self, value: Rc<T>) {
        // The old value is dropped outside the borrow.
        let old = self.locals.borrow_mut().insert(TypeId::of::<T>(), value);
        drop(old);
    }

    pub(crate) fn local<T: 'static>(&self) -> Option<Rc<T>> {
        let value = self.locals.borrow().get(&TypeId::of::<T>()).cloned()?;
        value.downcast().ok()
    }

    pub(crate) fn wait_for_stop(&self, waker: &Waker) -> bool {
        if self.has_told_of_stop.get() || self.shared.stop_at().is_some() {
            return true;
        }
        let mut waiters = self.stop_waiters.borrow_mut();
        if !waiters.iter().any(|waiter| waiter.will_wake(waker)) {
            waiters.push(waker.clone());
        }
        false
    }
}
