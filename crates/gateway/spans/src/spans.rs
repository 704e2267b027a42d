//! [`Spans`]: a bounded queue between the workers and the thread that sends.
//!
//! One lock guards all of it, for a few instructions at a time. A worker that adds a span wakes the
//! thread for the first one, and for as many as go into a request, and else makes no system call.
//!
//! The thread is started once there is a collector. It collects spans for a moment, takes them out,
//! and sends them without the lock. It sends no span twice: what a collector does not take is
//! dropped. The program's log says so once, and once more when spans are taken again.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use env::Clock as _;
use env::linux::SystemClock;

use crate::endpoint::Endpoint;
use crate::exchange::{ExchangeError, post};
use crate::message;
use crate::span::Span;

/// Most spans that wait to be sent. Later ones are dropped. A span takes some 300 bytes.
pub const SPANS_MAX: usize = 8 << 10;

const _: () = assert!(size_of::<Span>() <= 300);

/// Most spans in a request: as OpenTelemetry's own exporters send.
const BATCH_SPANS: usize = 512;

/// Spans wait so long for others, though they are few.
const DELAY: Duration = Duration::from_secs(1);

/// From the beginning of a request to the end of its reply: as OpenTelemetry's own exporters wait.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(10);

/// After a request that has failed, none is sent for so long.
const PAUSE: Duration = Duration::from_secs(1);

/// The program's end waits so long for the last spans.
const END_TIME_MAX: Duration = Duration::from_secs(2);

/// Where spans go. Constant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The collector.
    pub endpoint: Endpoint,
    /// By which the collector names this program.
    pub service_name: String,
}

/// What has become of spans since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Numbers {
    /// Spans that a collector has taken.
    pub sent: u64,
    /// Spans that were dropped: the collector is down, slow, or does not want them.
    pub dropped: u64,
    /// Spans that wait.
    pub waiting: usize,
}

/// See the module's head.
#[derive(Debug, Default)]
pub struct Spans {
    state: Mutex<State>,
    /// What the thread waits for, or who waits for the thread's end.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Span>,
    /// `None`: spans are dropped.
    target: Option<Arc<Target>>,
    numbers: Numbers,
    /// Spans that were dropped because the queue was full, and that the thread has not seen.
    overflowed: u64,
    thread: Thread,
    wanted: Wanted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Thread {
    /// There was no collector yet.
    #[default]
    Unborn,
    Running,
    /// It is to send what waits, and to end.
    Ending,
    Ended,
}

/// For what the thread has to be woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Wanted {
    #[default]
    Nothing,
    /// A span.
    One,
    /// As many as go into a request.
    Batch,
}

/// What the thread has taken out.
struct Batch {
    spans: Vec<Span>,
    target: Option<Arc<Target>>,
    /// Spans that there was no room for meanwhile.
    overflowed: u64,
}

impl Spans {
    /// Starts the thread, unless it runs.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub fn start(self: &Arc<Self>) -> io::Result<()> {
        let mut state = self.lock();
        if state.thread == Thread::Unborn {
            let this = Arc::clone(self);
            std::thread::Builder::new()
                .name("spans".to_owned())
                .spawn(move || this.serve())?;
            state.thread = Thread::Running;
        }
        Ok(())
    }

    /// Has spans sent there from now on, or dropped. Who calls it has called [`Spans::start`].
    pub fn use_target(&self, target: Option<Target>) {
        self.lock().target = target.map(Arc::new);
    }

    /// Has the last spans sent, and waits for it, but not for long.
    pub fn finish(&self) {
        let mut state = self.lock();
        if state.thread == Thread::Running {
            state.thread = Thread::Ending;
            self.changed.notify_all();
            let is_ending = |state: &mut State| state.thread == Thread::Ending;
            // What is late ends with the process.
            let waited = self
                .changed
                .wait_timeout_while(state, END_TIME_MAX, is_ending);
            drop(waited);
        }
    }

    /// What has become of spans.
    pub fn numbers(&self) -> Numbers {
        let state = self.lock();
        Numbers {
            waiting: state.queue.len(),
            ..state.numbers
        }
    }

    /// Takes a span.
    pub(crate) fn push(&self, span: Span) {
        let wakes = {
            let mut state = self.lock();
            if state.target.is_none() || SPANS_MAX <= state.queue.len() {
                state.numbers.dropped += 1;
                state.overflowed += u64::from(state.target.is_some());
                return;
            }
            state.queue.push_back(span);
            let wakes = match state.wanted {
                Wanted::Nothing => false,
                Wanted::One => true,
                Wanted::Batch => BATCH_SPANS <= state.queue.len(),
            };
            if wakes {
                state.wanted = Wanted::Nothing;
            }
            wakes
        };
        if wakes {
            self.changed.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the thread does.
    fn serve(&self) {
        let mut told = Told::default();
        while let Some(batch) = self.next_batch() {
            let count = stdx::to_u64(batch.spans.len());
            let dropped = match &batch.target {
                Some(target) => send(target, &batch, &mut told),
                // The section is gone.
                None => count,
            };
            let mut state = self.lock();
            state.numbers.sent += count - dropped;
            state.numbers.dropped += dropped;
            if dropped == count {
                self.pause(state);
            }
        }
        self.lock().thread = Thread::Ended;
        self.changed.notify_all();
    }

    /// Waits for spans. `None` if there will be none.
    fn next_batch(&self) -> Option<Batch> {
        let mut state = self.lock();
        if state.queue.is_empty() {
            let is_idle = |state: &mut State| {
                let is_idle = state.queue.is_empty() && state.thread == Thread::Running;
                state.wanted = if is_idle {
                    Wanted::One
                } else {
                    Wanted::Nothing
                };
                is_idle
            };
            let waited = self.changed.wait_while(state, is_idle);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        let are_few = |state: &mut State| {
            let are_few = state.queue.len() < BATCH_SPANS && state.thread == Thread::Running;
            state.wanted = if are_few {
                Wanted::Batch
            } else {
                Wanted::Nothing
            };
            are_few
        };
        let waited = self.changed.wait_timeout_while(state, DELAY, are_few);
        (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.wanted = Wanted::Nothing;
        let count = state.queue.len().min(BATCH_SPANS);
        (0 < count).then(|| Batch {
            spans: state.queue.drain(..count).collect(),
            target: state.target.clone(),
            overflowed: std::mem::take(&mut state.overflowed),
        })
    }

    /// A request has failed. At the end of the program it is the last one.
    fn pause(&self, state: MutexGuard<'_, State>) {
        let is_running = |state: &mut State| state.thread == Thread::Running;
        let waited = self.changed.wait_timeout_while(state, PAUSE, is_running);
        let (mut state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if !waited.timed_out() {
            let rest = state.queue.drain(..).count();
            state.numbers.dropped += stdx::to_u64(rest);
        }
    }
}

/// Sends spans. Returns how many of them the collector has not taken.
fn send(target: &Target, batch: &Batch, told: &mut Told) -> u64 {
    let count = stdx::to_u64(batch.spans.len());
    told.note_overflow(batch.overflowed);
    let body = message::request(&batch.spans, &target.service_name);
    let deadline = SystemClock.now() + REQUEST_TIME_MAX;
    match post(&target.endpoint, &body, (&SystemClock, deadline)) {
        Err(error) => {
            told.note_failure(count, &error);
            count
        }
        Ok(reply) => match message::refused(&reply) {
            Some((refused, why)) => {
                let refused = refused.min(count);
                told.note_refusal(refused, &why);
                refused
            }
            None => {
                if batch.overflowed == 0 {
                    told.note_success();
                }
                0
            }
        },
    }
}

/// What the program's log was told.
#[derive(Debug, Default)]
struct Told {
    /// Spans that were dropped since all were taken. The log was told, unless there are none.
    lost: u64,
}

impl Told {
    fn note_overflow(&mut self, count: u64) {
        if 0 < count && self.lost == 0 {
            tracing::warn!("the collector is too slow: spans are dropped until it is not");
        }
        self.lost += count;
    }

    fn note_refusal(&mut self, count: u64, why: &str) {
        if self.lost == 0 {
            tracing::warn!(count, why, "the collector refuses spans: they are dropped");
        }
        self.lost += count;
    }

    fn note_failure(&mut self, count: u64, error: &ExchangeError) {
        if self.lost == 0 {
            tracing::warn!(%error, "the collector takes no spans: they are dropped until it does");
        }
        self.lost += count;
    }

    fn note_success(&mut self) {
        if 0 < self.lost {
            let dropped = std::mem::take(&mut self.lost);
            tracing::info!(dropped, "the collector takes spans again");
        }
    }
}

#[cfg(test)]
mod tests;
