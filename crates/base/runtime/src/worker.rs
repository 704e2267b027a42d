//! One worker: its tasks, its timers and its loop.
//!
//! A turn of the loop: take the inbox, fire timers, poll runnable tasks first come first served,
//! call the hooks of the turn's end and the tasks that they woke, then ask the kernel, once: submit
//! what the turn wanted and wait for what comes next. The worker sleeps only if its inbox agrees
//! (`Inbox::try_sleep`), and then not beyond its next timer.
//!
//! A task that is always ready is stopped by its budget of completed operations (see
//! [`Worker::spend`]); a turn that never ends, by [`TURN_POLLS_MAX`].

use std::any::{Any, TypeId};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use env::linux::SystemClock;
use env::{Clock as _, Disk, Instant};
use stdx::Slab;

use crate::driver::Driver;
use crate::listener::Placed;
use crate::shared::{Message, Shared};
use crate::task::{Header, Kind, Slot};
use crate::timer::Wheel;

/// Polls in one turn, after which the kernel is asked even if tasks are runnable: a few
/// milliseconds at the most, at 10 us a statement.
const TURN_POLLS_MAX: usize = 256;

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
    /// Runnable tasks, first come first.
    run_queue: RefCell<VecDeque<Arc<Header>>>,
    tasks: RefCell<Slab<Slot>>,
    /// Foreground tasks in `tasks`.
    foreground_count: Cell<u64>,
    hooks: RefCell<Vec<Box<dyn FnMut()>>>,
    locals: RefCell<HashMap<TypeId, Rc<dyn Any>>>,
    /// When this turn began.
    now: Cell<Instant>,
    /// Operations that the task being polled may still complete.
    budget: Cell<u32>,
    /// Tasks to wake when somebody asks to stop.
    stop_waiters: RefCell<Vec<Waker>>,
    /// They have been woken.
    has_told_of_stop: Cell<bool>,
}

/// The worker that this thread is.
///
/// # Panics
/// On a thread that is none.
pub(crate) fn current() -> Rc<Worker> {
    CURRENT.with(|current| {
        current
            .get()
            .expect("this function is called on a worker of the runtime")
            .clone()
    })
}

/// The worker that this thread is, or `None` where it is none or ends.
pub(crate) fn try_current() -> Option<Rc<Worker>> {
    CURRENT
        .try_with(|current| current.get().cloned())
        .ok()
        .flatten()
}

/// Queues a woken task if this thread is its worker.
pub(crate) fn queue_if_here(header: &Arc<Header>) -> bool {
    let is_here = CURRENT.try_with(|current| {
        let Some(worker) = current.get() else {
            return false;
        };
        let is_own =
            worker.index == header.worker_index() && Arc::ptr_eq(&worker.shared, header.shared());
        if is_own {
            worker.run_queue.borrow_mut().push_back(header.clone());
        }
        is_own
    });
    is_here.unwrap_or(false)
}

impl Worker {
    pub(crate) fn new(index: usize, shared: Arc<Shared>, driver: Rc<dyn Driver>) -> Self {
        let now = SystemClock.now();
        Self {
            index,
            disk: driver.clone().disk(&shared),
            shared,
            driver,
            timers: RefCell::new(Wheel::new(now)),
            run_queue: RefCell::default(),
            tasks: RefCell::default(),
            foreground_count: Cell::new(0),
            hooks: RefCell::default(),
            locals: RefCell::default(),
            now: Cell::new(now),
            budget: Cell::new(POLL_OPERATIONS_MAX),
            stop_waiters: RefCell::default(),
            has_told_of_stop: Cell::new(false),
        }
    }

    /// Makes this thread the worker; once a thread.
    pub(crate) fn enter(self: &Rc<Self>) {
        let entered = CURRENT.with(|current| current.set(self.clone()));
        assert!(entered.is_ok(), "a thread is a worker once");
    }

    /// The loop; ends when the runtime does. Gives the number of foreground tasks that were cut.
    pub(crate) fn run(&self) -> io::Result<u64> {
        let mut messages = Vec::new();
        let mut due = Vec::new();
        loop {
            self.now.set(SystemClock.now());
            self.mailbox().take(&mut messages);
            for message in messages.drain(..) {
                match message {
                    Message::Wake(header) => self.run_queue.borrow_mut().push_back(header),
                    Message::Run(job) => job(),
                }
            }
            self.timers.borrow_mut().expire(self.now.get(), &mut due);
            due.drain(..).for_each(Waker::wake);
            self.run_tasks();
            self.run_hooks();
            if self.is_over() {
                break;
            }
            self.driver.wait(self.patience())?;
        }
        let cut_count = self.foreground_count.get();
        self.clear();
        Ok(cut_count)
    }

    fn mailbox(&self) -> &crate::shared::Mailbox {
        &self.shared.mailboxes[self.index]
    }

    fn run_tasks(&self) {
        for _ in 0..TURN_POLLS_MAX {
            let Some(header) = self.run_queue.borrow_mut().pop_front() else {
                return;
            };
            self.run_task(header);
        }
    }

    fn run_task(&self, header: Arc<Header>) {
        let taken = self.with_slot(&header, |slot| slot.future.take());
        // Gone already, or cancelled.
        let Some(Some(mut future)) = taken else {
            return;
        };
        header.mark_polled();
        self.budget.set(POLL_OPERATIONS_MAX);
        let waker = Waker::from(header.clone());
        let is_done = future
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_ready();
        let is_cancelled = self
            .with_slot(&header, |slot| slot.is_cancelled)
            .unwrap_or(true);
        if is_done || is_cancelled {
            self.remove_task(&header);
        } else {
            self.with_slot(&header, |slot| slot.future = Some(future));
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
        future: Pin<Box<dyn Future<Output = ()>>>,
        placed: Option<Placed>,
    ) -> Arc<Header> {
        let mut tasks = self.tasks.borrow_mut();
        // The slot's index is known once something is in it.
        let placeholder = Header::new(self.shared.clone(), self.index, usize::MAX);
        let slot = Slot {
            header: placeholder,
            kind,
            future: Some(future),
            is_cancelled: false,
            _placed: placed,
        };
        let index = tasks.insert(slot);
        let header = Header::new(self.shared.clone(), self.index, index);
        tasks.get_mut(index).expect("just inserted").header = header.clone();
        drop(tasks);
        self.count_foreground(kind, 1);
        Waker::from(header.clone()).wake();
        header
    }

    /// Drops a task's future, now or at the end of the poll that it is in.
    pub(crate) fn cancel_task(&self, header: &Arc<Header>) {
        let is_being_polled = self.with_slot(header, |slot| {
            slot.is_cancelled = true;
            slot.future.is_none()
        });
        if is_being_polled == Some(false) {
            self.remove_task(header);
        }
    }

    fn remove_task(&self, header: &Arc<Header>) {
        if self.with_slot(header, |_| ()).is_none() {
            return;
        }
        let slot = self.tasks.borrow_mut().remove(header.slot());
        let slot = slot.expect("just seen");
        self.count_foreground(slot.kind, -1);
        // Here the future goes, outside the borrow: its destructor may wake or spawn.
        drop(slot);
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
            // The others wait for the last of us.
            self.shared.poke_all();
        }
    }

    /// Calls the hooks of the turn's end, and polls once what they made runnable, so that it is
    /// submitted with this turn: the log's write goes out together with the turn's replies.
    fn run_hooks(&self) {
        if self.hooks.borrow().is_empty() {
            return;
        }
        let was_idle = self.run_queue.borrow().is_empty();
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
            self.run_queue.borrow().len()
        } else {
            0
        };
        for _ in 0..woken_count {
            let header = self.run_queue.borrow_mut().pop_front();
            self.run_task(header.expect("tasks leave the queue here alone"));
        }
    }

    /// Tells tasks of the wish to stop, once, and says whether the loop is to end.
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

    /// How long the kernel may let this worker sleep; `None`: until something comes.
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
        loop {
            let first = self
                .tasks
                .borrow()
                .iter()
                .next()
                .map(|(_, slot)| slot.header.clone());
            let Some(header) = first else { break };
            self.remove_task(&header);
        }
        self.run_queue.borrow_mut().clear();
        let hooks = std::mem::take(&mut *self.hooks.borrow_mut());
        drop(hooks);
        let locals = std::mem::take(&mut *self.locals.borrow_mut());
        drop(locals);
        let mut rest = Vec::new();
        self.mailbox().take(&mut rest);
    }

    /// Says whether the task being polled may complete one more operation; if not, it has been
    /// queued again and has to give way.
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
        // The old value goes outside the borrow.
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
