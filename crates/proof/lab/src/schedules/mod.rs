//! Schedules: steps of several sessions, one after the other, played on the server under test and
//! on MariaDB.
//!
//! For each step both servers must agree whether it blocks, and otherwise on its result; then on
//! the result of each blocked step, and when it comes. A play ends with the contents of the table.
//!
//! * `script`: a schedule, and the text in which schedules are written;
//! * `record`: what happened in a play;
//! * `stage`: a server, and who waits for a lock there;
//! * `play`: plays a script on a stage;
//! * `written`: compares the schedules of `data/schedules.txt` and `data/hermitage.txt`;
//! * `fuzz`: draws schedules from a seed, and sorts their differences into classes.

mod fuzz;
mod play;
mod record;
mod script;
mod stage;
mod written;

use anyhow::Result;

use crate::target::Target;

pub(crate) use written::{Wanted, run};

/// `cargo xtask schedules`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    target: Target,
    /// Plays the anomalies of the Hermitage matrix at four levels, and draws nothing.
    #[arg(long)]
    hermitage: bool,
    #[command(flatten)]
    options: fuzz::Options,
}

/// Draws schedules and compares them, or plays the Hermitage matrix.
pub fn run_command(arguments: &Arguments) -> Result<()> {
    match arguments.hermitage {
        true => run(&Wanted {
            target: &arguments.target,
            name: written::HERMITAGE,
            is_thorough: false,
            show: arguments.options.show,
            write: arguments.options.write.as_deref(),
        }),
        false => fuzz::run(&arguments.options, &arguments.target),
    }
}
