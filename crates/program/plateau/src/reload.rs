//! [`Reload`]: reads the settings file again while the gateway runs (SIGHUP, RELOAD CONFIGURATION).
//!
//! Sessions that begin go by the new file, and older ones keep what they began with (see
//! [`gateway::Generation`]). No client is disconnected. Some settings need a restart; what has
//! changed of these is named, and stays as it was.

use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result};
use settings::{Changeable, Configuration};
use sync::Mutex;

use crate::arguments::Arguments;
use crate::configuration;
use crate::reading::{self, Reading};

mod listeners;
mod workers;

pub(crate) use listeners::Listeners;
pub(crate) use workers::Workers;

/// See the module's head.
pub(crate) struct Reload {
    /// They go before the file again.
    arguments: Arguments,
    /// What the gateway was started with.
    started: Configuration,
    workers: Workers,
    /// `None`: somebody reads the file, and gives the workers what it says.
    listeners: Mutex<Option<Listeners>>,
    /// Makes the accounts of operators. Empty if none can log in.
    operators: OnceLock<MakeAdmins>,
}

/// Makes the accounts of operators that a configuration has, and returns what publishes them.
/// Blocks.
type MakeAdmins = Box<dyn Fn(&Configuration, &Workers) -> Result<Box<dyn FnOnce()>> + Send + Sync>;

/// What takes effect without a restart.
const CHANGEABLE: Changeable = Changeable {
    settings: &[
        "listen",
        "socket",
        "max_connections",
        "connect_timeout",
        "local_infile",
        "require_secure_transport",
        "wait_timeout",
        "net_read_timeout",
        "net_write_timeout",
    ],
    sections: &[
        "rule",
        "server",
        "monitor",
        "service",
        "listener",
        "cache",
        "query_log",
        "tracing",
    ],
};

/// The same, if operators can log in.
const CHANGEABLE_WITH_ADMINS: Changeable = Changeable {
    settings: CHANGEABLE.settings,
    sections: &[
        "rule",
        "server",
        "monitor",
        "service",
        "listener",
        "cache",
        "query_log",
        "tracing",
        "admin",
    ],
};

impl Reload {
    pub(crate) fn new(
        arguments: Arguments,
        started: Configuration,
        (workers, listeners): (Workers, Listeners),
    ) -> Arc<Reload> {
        Arc::new(Reload {
            arguments,
            started,
            workers,
            listeners: Mutex::new(Some(listeners)),
            operators: OnceLock::new(),
        })
    }

    /// Operators can log in, and get their accounts by this. To be called once.
    pub(crate) fn set_operators(&self, make: MakeAdmins) {
        let is_first = self.operators.set(make).is_ok();
        assert!(is_first, "operators are served once");
    }

    /// Reads the file and takes what may change. Blocks. Returns what has come of it, in words.
    ///
    /// # Errors
    /// The file has mistakes, or somebody else is at it; nothing was changed.
    pub(crate) fn run(&self) -> Result<String> {
        let taken = self.listeners.lock().take();
        let mut listeners = taken.context("the file is being read at this moment; try again")?;
        let told = self.run_alone(&mut listeners);
        *self.listeners.lock() = Some(listeners);
        told
    }

    fn run_alone(&self, listeners: &mut Listeners) -> Result<String> {
        let Reading {
            configuration: changed,
            gateway,
        } = reading::read(&self.arguments)?;
        let options = gateway.context("there is no section `server`")?;
        let (servers, services) = (options.servers.len(), options.services.len());
        let places = configuration::client_places(&changed)?;
        let names: Vec<String> = places.iter().map(|it| it.name.clone()).collect();
        let admins = self.operators.get();
        let publish_admins = admins.map(|make| make(&changed, &self.workers));
        let publish_admins = publish_admins.transpose()?;
        let bound = listeners.bind(places)?;
        self.workers.apply(options)?;
        // Now that the workers have the services, each client that is accepted finds its own.
        let opened = listeners.open(bound);
        listeners.close_others(&names);
        let rules = changed.sections.all("rule").count();
        let mut told = format!("Servers: {servers}  Services: {services}  Rules: {rules}");
        if let Err(error) = opened {
            told += &format!("  Listeners that failed: {error}");
            tracing::error!(%error, "clients cannot be accepted");
        }
        let changeable = match publish_admins {
            None => CHANGEABLE,
            Some(publish) => {
                publish();
                CHANGEABLE_WITH_ADMINS
            }
        };
        let rest = self.started.differences(&changed, changeable);
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
