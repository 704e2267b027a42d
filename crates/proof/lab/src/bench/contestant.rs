//! The compared servers, started in the same way.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use testkit::folder::target_directory;
use testkit::process::run;
use testkit::{Client, Launch, Login, Server};

use crate::generator::{TPCC, create_accounts};
use crate::load::Load;
use crate::sample::LoadArguments;
use crate::target::reference;
use crate::tpcc::{Call, conditions, go_tpc};

/// What all measurements of a run share.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) load: LoadArguments,
    /// What is measured.
    pub(super) workloads: Vec<String>,
    /// When the log is flushed: 1 at each commit, 2 and 0 each second.
    pub(super) flush: u32,
    /// Settings for Plateau as `name=value`.
    pub(super) settings: Vec<String>,
    /// The build of Plateau that is measured.
    pub(super) program: PathBuf,
    /// An earlier build of it, to compare with.
    pub(super) base: Option<PathBuf>,
}

impl Setup {
    fn is_tpcc(&self) -> bool {
        self.workloads.iter().any(|it| it == TPCC)
    }

    fn cache(&self) -> &'static str {
        match self.is_tpcc() {
            true => TPCC_CACHE,
            false => CACHE,
        }
    }
}

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
    /// The server that knows nothing, over io_uring.
    NullUring,
    /// The server that knows nothing, over epoll.
    NullEpoll,
    /// An earlier build of Plateau over io_uring.
    #[value(skip)]
    BaseUring,
    /// An earlier build of Plateau over epoll.
    #[value(skip)]
    BaseEpoll,
}

/// A server under measurement.
#[derive(Debug)]
pub(super) struct Contestant {
    pub(super) name: &'static str,
    /// The number of clients it is started for.
    pub(super) clients: u32,
    pub(super) server: Server,
}

pub(super) const URING: &str = "plateau uring";
pub(super) const EPOLL: &str = "plateau epoll";

/// An earlier build, with the same I/O.
pub(super) const BASE_URING: &str = "base uring";
pub(super) const BASE_EPOLL: &str = "base epoll";

/// The runtime and the protocol alone, with the same I/O (`bin/null_server.rs`).
const NULL_URING: &str = "null uring";
const NULL_EPOLL: &str = "null epoll";

const REFERENCES: [&str; 2] = ["mariadb threads", "mariadb pool"];

pub(super) fn is_plateau(server: &str) -> bool {
    [URING, EPOLL].contains(&server)
}

/// Whether it is one of MariaDB's two configurations.
pub(super) fn is_reference(server: &str) -> bool {
    REFERENCES.contains(&server)
}

/// Whether it is the server that knows nothing.
pub(super) fn is_null(server: &str) -> bool {
    [NULL_URING, NULL_EPOLL].contains(&server)
}

/// The server that knows nothing, with the same I/O as that one.
pub(super) fn null_of(server: &str) -> Option<&'static str> {
    match server {
        URING => Some(NULL_URING),
        EPOLL => Some(NULL_EPOLL),
        _ => None,
    }
}

/// The name of the earlier build of that server.
pub(super) fn base_of(server: &str) -> Option<&'static str> {
    match server {
        URING => Some(BASE_URING),
        EPOLL => Some(BASE_EPOLL),
        _ => None,
    }
}

/// Of a pool for sysbench's tables.
const CACHE: &str = "512M";

/// Of a pool for ten warehouses of TPC-C.
const TPCC_CACHE: &str = "1536M";
const LOG: &str = "512M";

/// Accounts that clients log in as in turn.
pub(super) const ACCOUNTS: u32 = 1;

/// Clients that load a server's warehouses.
const FILLERS: u32 = 4;

/// More than 10,000 clients and the bench's own connections.
const CONNECTIONS: u32 = 11_000;

/// 38 statements on each of 10,000 connections are 380,000.
const PREPARED: u32 = 1_000_000;

impl Program {
    /// Those that are databases.
    pub(super) const ALL: [Program; 4] = [
        Program::MariadbThreads,
        Program::MariadbPool,
        Program::PlateauUring,
        Program::PlateauEpoll,
    ];

    /// The same, and what the machine allows.
    pub(super) const WITH_NULL: [Program; 6] = [
        Program::MariadbThreads,
        Program::MariadbPool,
        Program::PlateauUring,
        Program::PlateauEpoll,
        Program::NullUring,
        Program::NullEpoll,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Program::MariadbThreads => REFERENCES[0],
            Program::MariadbPool => REFERENCES[1],
            Program::PlateauUring => URING,
            Program::PlateauEpoll => EPOLL,
            Program::NullUring => NULL_URING,
            Program::NullEpoll => NULL_EPOLL,
            Program::BaseUring => BASE_URING,
            Program::BaseEpoll => BASE_EPOLL,
        }
    }

    /// The earlier build of it.
    pub(super) fn base(self) -> Option<Program> {
        match self {
            Program::PlateauUring => Some(Program::BaseUring),
            Program::PlateauEpoll => Some(Program::BaseEpoll),
            _ => None,
        }
    }
}

impl Contestant {
    pub(super) fn start(kind: Program, clients: u32, setup: &Setup) -> Result<Self> {
        let base = || {
            setup
                .base
                .as_deref()
                .context("the path of an earlier build")
        };
        let launch = match kind {
            Program::MariadbThreads => mariadb(setup, "one-thread-per-connection"),
            Program::MariadbPool => mariadb(setup, "pool-of-threads"),
            Program::PlateauUring => launch(setup, &setup.program, "uring"),
            Program::PlateauEpoll => launch(setup, &setup.program, "epoll"),
            Program::NullUring => null("uring")?,
            Program::NullEpoll => null("epoll")?,
            Program::BaseUring => launch(setup, base()?, "uring"),
            Program::BaseEpoll => launch(setup, base()?, "epoll"),
        };
        Ok(Contestant {
            name: kind.name(),
            clients,
            server: launch.start()?,
        })
    }

    /// Fills the tables of the workloads, and pauses the server.
    pub(super) fn fill(&mut self, setup: &Setup) -> Result<()> {
        if !is_null(self.name) {
            if setup.is_tpcc() {
                self.fill_tpcc(setup.load.tables)?;
            }
            if setup.workloads.iter().any(|it| it != TPCC) {
                self.fill_sysbench(&setup.load)?;
            }
        }
        self.server.process().pause()
    }

    fn fill_tpcc(&self, warehouses: u32) -> Result<()> {
        let mut client = self.server.connect()?;
        client.run("CREATE DATABASE tpcc")?;
        create_accounts(&mut client, ACCOUNTS, TPCC)?;
        let call = Call {
            action: "prepare",
            user: "root",
            port: self.server.port(),
            warehouses,
            threads: FILLERS,
        };
        let mut command = Command::new(go_tpc()?);
        call.arguments(&mut command);
        run(command.arg("--no-check")).map(drop)
    }

    /// Checks the conditions of TPC-C's standard, between two pauses.
    pub(super) fn check_tpcc(&mut self) -> Result<()> {
        if is_null(self.name) {
            return Ok(());
        }
        self.server.process().resume()?;
        let mut client = Client::connect(&Login {
            database: TPCC.to_owned(),
            ..Login::root(self.server.port())
        })?;
        conditions::check(&mut client, "after the load").context(self.name)?;
        self.server.process().pause()
    }

    fn fill_sysbench(&self, load: &LoadArguments) -> Result<()> {
        let mut client = self.server.connect()?;
        client.run("CREATE DATABASE sbtest")?;
        create_accounts(&mut client, ACCOUNTS, "sbtest")?;
        let preparation = Load {
            script: "oltp_read_write".to_owned(),
            port: self.server.port(),
            tables: load.tables,
            rows: load.rows,
            clients: 1,
            seconds: 1,
            is_prepared: false,
        };
        preparation.prepare()
    }
}

/// One server of each kind for each number of clients.
pub(super) fn start_all(
    kinds: &[Program],
    clients: &[u32],
    setup: &Setup,
) -> Result<Vec<Contestant>> {
    let all = kinds
        .iter()
        .flat_map(|kind| clients.iter().map(move |clients| (*kind, *clients)));
    all.map(|(kind, clients)| Contestant::start(kind, clients, setup))
        .collect()
}

fn mariadb(setup: &Setup, threads: &str) -> Launch {
    reference()
        .with(format!("--thread-handling={threads}"))
        .with(format!("--innodb-buffer-pool-size={}", setup.cache()))
        .with(format!("--innodb-log-file-size={LOG}"))
        .with(format!("--innodb-flush-log-at-trx-commit={}", setup.flush))
        .with("--skip-log-bin")
        .with(format!("--max-connections={CONNECTIONS}"))
        .with(format!("--max-prepared-stmt-count={PREPARED}"))
        .with("--open-files-limit=20000")
}

fn launch(setup: &Setup, program: &Path, io: &str) -> Launch {
    let own = [
        format!("io={io}"),
        format!("buffer_pool_size={}", setup.cache()),
        format!("log_size={LOG}"),
        format!("max_connections={CONNECTIONS}"),
        format!("max_prepared_stmt_count={PREPARED}"),
        format!("flush_log_at_trx_commit={}", setup.flush),
    ];
    Launch::plateau(program).with_settings(own.iter().chain(&setup.settings))
}

fn null(io: &str) -> Result<Launch> {
    let arguments = "build --release --quiet --package lab --bin null_server".split(' ');
    run(Command::new("cargo").args(arguments))?;
    let program = target_directory().join("release").join("null_server");
    Ok(Launch::plateau(program).with_settings([format!("io={io}")]))
}
