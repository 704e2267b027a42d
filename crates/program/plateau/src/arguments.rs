//! The command line.

use std::path::PathBuf;

/// A MySQL-compatible database server. Started without arguments it serves on 127.0.0.1:4006.
#[derive(Debug, clap::Parser)]
#[command(name = "plateau", version, after_long_help = settings_help())]
pub(crate) struct Arguments {
    /// The settings file; without it `plateau.toml` is read where it exists.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Sets one setting; may be repeated, and goes before the file. `--help` lists all.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub(crate) assignments: Vec<String>,
    /// Names all mistakes of the settings file and of `--set`, and starts nothing.
    ///
    /// Each mistake is a line on standard error, with the file, the line and what was expected.
    /// Ends with 0 if there are none, and with 1 otherwise.
    #[arg(long, conflicts_with = "accept_log_loss")]
    pub(crate) check_config: bool,
    /// Starts although log is lost, with the commits that can be read.
    ///
    /// A server refuses to start where a part of its log is missing or damaged, or where pages are
    /// newer than the log. Put the lost file back, or restore the data directory from a copy. If
    /// there is none, copy the directory as it is, then start once with this option. What was
    /// logged before the damage is there; all commits behind it are lost. Pages that were written
    /// later stay as they are, and then rows, indexes and old versions may contradict each other:
    /// the server's log says how many there are and in which tables. Run `plateau check`, dump what
    /// can be read, and load it into a new data directory.
    #[arg(long)]
    pub(crate) accept_log_loss: bool,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Verifies every page, index, row and undo record of a data directory and names what is wrong.
    ///
    /// Recovers it first, as a start would, and writes nothing after that. Faults are named on
    /// standard output, at most 1,000 damaged pages and 1,000 others, with the number of the rest;
    /// its last line says what was looked at. While it takes long, a line on standard error says
    /// every 5 seconds how far it has come. Ends with 0 if all is whole, with 1 if something is
    /// wrong or nothing could be looked at, and with 2 if it was called wrongly.
    Check {
        /// The data directory of a server that does not run.
        directory: PathBuf,
        /// Threads that read and compare; 0 takes all cores.
        #[arg(long, value_name = "COUNT", default_value_t = 0,
            value_parser = clap::value_parser!(u8))]
        workers: u8,
    },
}

fn settings_help() -> String {
    format!(
        "Settings and their defaults:\n{}",
        settings::reference_lines()
    )
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn command_line_is_consistent_and_help_names_settings() {
        Arguments::command().debug_assert();
        let help = Arguments::command().render_long_help().to_string();
        assert!(help.contains("max_connections = 1040"));
    }
}
