//! The command line.

use std::path::PathBuf;
use std::sync::LazyLock;

use format::version_file::DATA_FORMAT_VERSION;

/// A directory is opened by the builds that name its format.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let version = env!("CARGO_PKG_VERSION");
    format!("{version} (data format {DATA_FORMAT_VERSION})")
});

/// A MySQL-compatible database server, and a gateway for MariaDB and MySQL servers.
///
/// Without arguments it is a database that listens on 127.0.0.1:4006. With servers in its settings
/// file it is a gateway: `plateau init gateway` writes such a file.
#[derive(Debug, Clone, clap::Parser)]
#[command(name = "plateau", version = VERSION.as_str(), after_long_help = settings_help())]
pub(crate) struct Arguments {
    /// The settings file. The default is `plateau.toml`, if that exists.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Sets one setting and overrides the file. May be repeated. `--help` lists all settings.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub(crate) assignments: Vec<String>,
    /// Reports all mistakes in the settings file and in `--set`, and does not start the server.
    ///
    /// Each mistake is a line on standard error, with the file, the line and what was expected.
    /// Exits with 0 if there are none, and with 1 otherwise.
    #[arg(long, conflicts_with = "accept_log_loss")]
    pub(crate) check_config: bool,
    /// Starts even if a part of the redo log is lost, with the commits that can be read.
    ///
    /// Without this option, a server does not start if a part of its redo log is missing or
    /// damaged, or if pages are newer than the log. Put the lost file back, or restore the data
    /// directory from a backup. If there is no backup, copy the directory as it is, then start once
    /// with this option. Commits before the damage are kept. All commits after it are lost. Pages
    /// that were written later stay as they are, so rows and indexes may contradict each other.
    /// Transactions that had not committed are rolled back as far as possible. The server's log
    /// says how many such pages and changes there are, and in which tables. Run `plateau check`,
    /// dump what can be read, and load it into a new data directory.
    ///
    /// The option also lets a server start if a page that the log has changes for cannot be read,
    /// if a table's file is missing while the log has changes for it, or if undo is damaged. If an
    /// undo file is lost, changes in it that had not committed stay, and its prepared XA
    /// transactions count as committed. Those of other undo files are rolled back, or stay
    /// prepared. If pages are newer than the log, all prepared XA transactions count as committed.
    /// If a page of the dictionary is lost then, so are the tables it named, and their files are
    /// renamed.
    ///
    /// It does not help if the control file (control.pdc) or the file of the dictionary
    /// (space_0.pdb) is missing, nor if pages of the dictionary are damaged while the log is whole.
    #[arg(long)]
    pub(crate) accept_log_loss: bool,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Clone, clap::Subcommand)]
pub(crate) enum Command {
    /// Checks every page, index, row and undo record of a data directory, and reports all faults.
    ///
    /// First recovers the directory, as the server does at its start. Writes nothing after that.
    /// Faults are printed on standard output: at most 1,000 damaged pages and 1,000 others, then
    /// the number of the rest. The last line says what was checked. During a long check, a line on
    /// standard error reports the progress every 5 seconds. Exits with 0 if there are no faults,
    /// with 1 if there are some or nothing could be checked, and with 2 for wrong arguments.
    Check {
        /// The data directory of a server that is not running.
        directory: PathBuf,
        /// Number of threads; 0 means one for each core.
        #[arg(long, value_name = "COUNT", default_value_t = 0,
            value_parser = clap::value_parser!(u8))]
        workers: u8,
    },
    /// Shows the digest of a statement, by which a `[[rule]]` of a gateway may name it.
    ///
    /// The digest is that of the statement's canonical text, which has `?` in place of literals and
    /// no comments. Both are printed.
    Digest {
        /// The statement.
        statement: String,
    },
    /// Writes a settings file to begin with.
    Init {
        #[command(subcommand)]
        what: Init,
    },
}

#[derive(Debug, Clone, clap::Subcommand)]
pub(crate) enum Init {
    /// Of a gateway in front of MariaDB, MySQL or Galera servers, with a comment for each setting.
    Gateway {
        /// Address of a server. May be repeated; without any, two examples are written.
        #[arg(long = "server", value_name = "HOST:PORT")]
        servers: Vec<String>,
        /// A settings file of MaxScale or ProxySQL to translate. What cannot be kept is named.
        ///
        /// It is told by its text whose file it is. With `maxscale.cnf`, all `*.cnf` of the folder
        /// `maxscale.cnf.d` beside it are read, too. What was not simply translated is a line on
        /// standard error and a comment in the written file: what is to do, different, left out,
        /// or not known. ProxySQL reads its file at the first start alone; what was changed since
        /// is written by `SELECT CONFIG INTO OUTFILE` of its admin interface.
        #[arg(long, value_name = "FILE", conflicts_with_all = ["servers", "user", "password"])]
        from: Option<PathBuf>,
        /// Account that watches the servers.
        #[arg(long, default_value = "plateau")]
        user: String,
        /// Its password.
        #[arg(long, default_value = "change-me")]
        password: String,
        /// The file to write. It must not exist.
        #[arg(long, value_name = "FILE", default_value = "plateau.toml")]
        file: PathBuf,
    },
}

fn settings_help() -> String {
    format!(
        "Settings and their defaults:\n{}\nSections of the settings file, as [[server]] of a \
         gateway: `plateau init gateway` writes them with comments.",
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
        assert!(help.contains("\nSections of the settings file"));
    }
}
