//! Reads the settings, and looks at them as a whole: all mistakes are found in one go.

use anyhow::Result;
use settings::Configuration;

use crate::arguments::Arguments;
use crate::configuration;
use crate::gateway_options;

/// What the settings say. They have no mistakes.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) configuration: Configuration,
    /// `None` if they name no server: it is a database.
    pub(crate) gateway: Option<gateway::Options>,
}

/// Reads the settings file and the command line.
///
/// # Errors
/// All mistakes of both, each in a line.
pub(crate) fn read(arguments: &Arguments) -> Result<Reading> {
    let (configuration, mut wrong) = configuration::read(arguments)?;
    let gateway = match gateway_options::options(&configuration) {
        Ok(gateway) => gateway,
        Err(more) => {
            wrong.extend(more);
            assert!(!wrong.is_empty(), "a gateway fails with a reason");
            None
        }
    };
    configuration::refuse(arguments, wrong)?;
    Ok(Reading {
        configuration,
        gateway,
    })
}
