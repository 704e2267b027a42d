//! [`Reload`]: reads the settings file again while the gateway runs (SIGHUP, RELOAD CONFIGURATION).
//!
//! Rules and the limits of servers' connections change at once, and no client is disconnected.
//! Everything else needs a restart; what has changed of that is named, and stays as it was.

use std::sync::Arc;

use anyhow::{Context, Result};
use gateway::Gateway;
use settings::{Changeable, Configuration};

use crate::arguments::Arguments;
use crate::{configuration, gateway_options};

/// See the module's head.
pub(crate) struct Reload {
    /// They go before the file again.
    arguments: Arguments,
    /// What the gateway was started with.
    started: Configuration,
    gateway: Arc<Gateway>,
}

/// What takes effect without a restart.
const CHANGEABLE: Changeable = Changeable {
    sections: &["rule"],
    fields: &[("server", "max_connections"), ("server", "overflow")],
};

impl Reload {
    pub(crate) fn new(
        arguments: Arguments,
        started: Configuration,
        gateway: Arc<Gateway>,
    ) -> Arc<Reload> {
        Arc::new(Reload {
            arguments,
            started,
            gateway,
        })
    }

    /// Reads the file and takes what may change. Blocks. Returns what has come of it, in words.
    ///
    /// # Errors
    /// The file has mistakes; nothing was changed.
    pub(crate) fn run(&self) -> Result<String> {
        let changed = configuration::read(&self.arguments)?;
        let options = gateway_options::options(&changed)?;
        let options = options.context("there is no section `server`")?;
        self.gateway.take_changes(&options);
        let rules = changed.sections.all("rule").count();
        let mut told = format!("Rules: {rules}");
        let rest = self.started.differences(&changed, CHANGEABLE);
        if !rest.is_empty() {
            told += &format!("  Changes that need a restart: {}", rest.join(", "));
        }
        tracing::info!(
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
