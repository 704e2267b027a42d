//! The servers under comparison, started alike.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use testkit::folder::target_directory;
use testkit::process::run;
use testkit::{Launch, Server};

use super::Arguments;
use crate::target::reference;

/// A server and how it is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Program {
    /// mariadbd with a thread for each client, its default.
    MariadbThreads,
    /// mariadbd with its thread pool.
    MariadbPool,
    /// Plateau over io_uring.
    PlateauUring,
    /// Plateau over epoll.
    PlateauEpoll,
}

/// A server under measurement.
#[derive(Debug)]
pub(super) struct Contestant {
    pub(super) name: &'static str,
    /// How many clients it is for.
    pub(super) clients: u32,
    pub(super) server: Server,
}

pub(super) const URING: &str = "plateau uring";
pub(super) const EPOLL: &str = "plateau epoll";

const CACHE: &str = "512M";
const LOG: &str = "512M";

/// Above 10,000 idle clients and the bench's own connections.
const CONNECTIONS: u32 = 11_000;

/// 38 statements on each of 4,096 connections are 155,648.
const PREPARED: u32 = 1_000_000;

impl Program {
    pub(super) const ALL: [Program; 4] = [
        Program::MariadbThreads,
        Program::MariadbPool,
        Program::PlateauUring,
        Program::PlateauEpoll,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Program::MariadbThreads => "mariadb threads",
            Program::MariadbPool => "mariadb pool",
            Program::PlateauUring => URING,
            Program::PlateauEpoll => EPOLL,
        }
    }
}

impl Contestant {
    pub(super) fn start(
        kind: Program,
        clients: u32,
        arguments: &Arguments,
        plateau: &Path,
    ) -> Result<Self> {
        let launch = match kind {
            Program::MariadbThreads => mariadb(arguments, "one-thread-per-connection"),
            Program::MariadbPool => mariadb(arguments, "pool-of-threads"),
            Program::PlateauUring => launch(arguments, plateau, "uring"),
            Program::PlateauEpoll => launch(arguments, plateau, "epoll"),
        };
        Ok(Contestant {
            name: kind.name(),
            clients,
            server: launch.start()?,
        })
    }
}

fn mariadb(arguments: &Arguments, threads: &str) -> Launch {
    reference()
        .with(format!("--thread-handling={threads}"))
        .with(format!("--innodb-buffer-pool-size={CACHE}"))
        .with(format!("--innodb-log-file-size={LOG}"))
        .with(format!(
            "--innodb-flush-log-at-trx-commit={}",
            arguments.flush
        ))
        .with("--skip-log-bin")
        .with(format!("--max-connections={CONNECTIONS}"))
        .with(format!("--max-prepared-stmt-count={PREPARED}"))
        .with("--open-files-limit=20000")
}

fn launch(arguments: &Arguments, program: &Path, io: &str) -> Launch {
    let own = [
        format!("io={io}"),
        format!("buffer_pool_size={CACHE}"),
        format!("log_size={LOG}"),
        format!("max_connections={CONNECTIONS}"),
        format!("max_prepared_stmt_count={PREPARED}"),
        format!("flush_log_at_trx_commit={}", arguments.flush),
    ];
    Launch::plateau(program).with_settings(own.iter().chain(&arguments.settings))
}

/// Builds the server as users get it.
pub(crate) fn build_release() -> Result<PathBuf> {
    run(Command::new("cargo").args(["build", "--release", "--quiet", "--package", "plateau"]))?;
    Ok(target_directory().join("release").join("plateau"))
}
