//! [`Workers`]: gives the workers of the gateway a configuration.

use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use anyhow::{Context, Result};
use env::linux::BlockingDisk;
use front::{PacketMemory, RandomSource};
use gateway::{Gateway, Options, Worker};
use query_log::Opened;
use runtime::Handle;

/// See the module's head.
pub(crate) struct Workers {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) handle: Handle,
    /// For the connections of monitors.
    pub(crate) packet_memory: PacketMemory,
    pub(crate) random: RandomSource,
}

/// A worker is asked between two turns of its loop, which are short. One that does not answer for
/// so long has ended, since the gateway stops.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

impl Workers {
    /// Has sessions that begin go by these options. Blocks until all of them do. One caller at a
    /// time.
    ///
    /// # Errors
    /// The gateway stops, the file of the query log cannot be opened, or there is no thread for
    /// spans; then nothing has changed.
    pub(crate) fn apply(&self, options: Options) -> Result<()> {
        // Opened again each time: its name may have been moved away.
        let files = options.query_log.as_ref().map(|it| &it.files);
        let opened = files.map(|it| Opened::open(&BlockingDisk, it)).transpose();
        let opened = opened.context("the query log")?;
        let target = options.tracing.as_ref().map(|it| it.target.clone());
        if target.is_some() {
            let started = self.gateway.spans().start();
            started.context("the thread that sends spans")?;
        }
        let (gateway, random) = (Arc::clone(&self.gateway), Arc::clone(&self.random));
        let packet_memory = self.packet_memory.clone();
        let generation = self.ask(0, move || {
            // What monitors send and receive is no traffic of clients.
            let resources = front::Resources::new(packet_memory, Arc::default());
            gateway.log_into(opened);
            gateway.trace_to(target);
            gateway.take(options, &resources, &random)
        })?;
        for index in 0..self.handle.worker_count() {
            let generation = Arc::clone(&generation);
            self.ask(index, move || {
                let before: Rc<Worker> = runtime::local().expect("each worker has its part");
                let adopted = before.adopt(generation);
                runtime::set_local(Rc::clone(&adopted));
                if index == 0 {
                    gateway::keep_accounts(&adopted, &before);
                    gateway::keep_definitions(&adopted);
                    gateway::keep_followers(&adopted);
                }
            })?;
        }
        Ok(())
    }

    /// Runs a future on a worker. Blocks until it is done.
    ///
    /// # Errors
    /// The gateway stops.
    pub(crate) fn run<F: Future<Output: Send + 'static> + 'static>(
        &self,
        make: impl FnOnce() -> F + Send + 'static,
    ) -> Result<F::Output> {
        let (told, answer) = mpsc::channel();
        let job = move || {
            let future = make();
            runtime::spawn_background(async move {
                // The other side waits for exactly this.
                let _ = told.send(future.await);
            });
        };
        self.handle.send_to(0, Box::new(job));
        let answered = answer.recv_timeout(ANSWER_TIME_MAX);
        answered.context("a worker does not answer")
    }

    fn ask<T: Send + 'static>(
        &self,
        worker: usize,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let (told, answer) = mpsc::channel();
        let job = move || {
            // The other side waits for exactly this.
            let _ = told.send(job());
        };
        self.handle.send_to(worker, Box::new(job));
        let answered = answer.recv_timeout(ANSWER_TIME_MAX);
        answered.context("a worker does not answer")
    }
}
