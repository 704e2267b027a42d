//! [`Reload`]: reads the settings file again while the gateway runs (SIGHUP, RELOAD CONFIGURATION).
//!
//! Sessions that begin go by the new file, and older ones keep what they began with (see
//! [`gateway::Generation`]). No client is disconnected. Some settings need a restart; what has
//! changed of these is named, and stays as it was.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use settings::{Changeable, Configuration};
use sync::atomic::{AtomicBool, Ordering};

use crate::arguments::Arguments;
use crate::{configuration, gateway_options};

mod workers;

pub(crate) use workers::Workers;

/// See the module's head.
pub(crate) struct Reload {
    /// They go before the file again.
    arguments: Arguments,
    /// What the gateway was started with.
    started: Configuration,
    workers: Workers,
    /// Somebody reads the file, and gives the workers what it says.
    is_busy: AtomicBool,
}

/// What takes effect without a restart.
const CHANGEABLE: Changeable = Changeable {
    settings: &[
        "max_connections",
        "connect_timeout",
        "local_infile",
        "require_secure_transport",
        "wait_timeout",
        "net_read_timeout",
        "net_write_timeout",
    ],
    sections: &["rule", "server", "monitor", "service"],
};

impl Reload {
    pub(crate) fn new(
        arguments: Arguments,
        started: Configuration,
        workers: Workers,
    ) -> Arc<Reload> {
        Arc::new(Reload {
            arguments,
            started,
            workers,
            is_busy: AtomicBool::new(false),
        })
    }

    /// Reads the file and takes what may change. Blocks. Returns what has come of it, in words.
    ///
    /// # Errors
    /// The file has mistakes, or somebody else is at it; nothing was changed.
    pub(crate) fn run(&self) -> Result<String> {
        // Acquire and Release: the next one sees what this one has done.
        let is_busy = self.is_busy.swap(true, Ordering::Acquire);
        ensure!(!is_busy, "the file is being read at this moment; try again");
        let told = self.run_alone();
        self.is_busy.store(false, Ordering::Release);
        told
    }

    fn run_alone(&self) -> Result<String> {
        let changed = configuration::read(&self.arguments)?;
        let options = gateway_options::options(&changed)?;
        let options = options.context("there is no section `server`")?;
        let (servers, services) = (options.servers.len(), options.services.len());
        self.workers.apply(options)?;
        let rules = changed.sections.all("rule").count();
        let mut told = format!("Servers: {servers}  Services: {services}  Rules: {rules}");
        let rest = self.started.differences(&changed, CHANGEABLE);
        if !rest.is_empty() {
            told += &format!("  Changes that need a restart: {}", rest.join(", "));
        }
        tracing::info!(
            servers,
            services,
            rules,
            needs_restart = rest.join(", "),
            "read the settings file again"
        );
        Ok(told)
    }

    /// The same, for a signal: the log says what has come of it.
    pub(crate) fn run_by_signal(&self) {
        if let Err(error) = self.run() {
            tracing::error!("the settings file was not taken: {error:#}");
        }
    }
}
