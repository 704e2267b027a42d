//! The server that a suite runs against.

use std::path::PathBuf;

use anyhow::Result;
use testkit::{Client, Launch, Login, Server, ServerKind};

/// The server under test, as command-line arguments.
#[derive(Clone, Debug, clap::Args)]
pub struct Target {
    /// The server to start, or the kind that runs on `--port`; `mariadb` tests the suite itself.
    #[arg(long, value_enum, default_value = "plateau")]
    server: Program,
    /// Uses a server that is already running on this loopback port; root has no password.
    #[arg(long)]
    port: Option<u16>,
    /// Settings for Plateau as `name=value`, or arguments for MariaDB without the dashes.
    #[arg(long = "set")]
    settings: Vec<String>,
}

/// A program that a suite can start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Program {
    Plateau,
    Mariadb,
}

/// A running server: started by the suite and ended with it, or already there.
#[derive(Debug)]
pub(crate) struct Running {
    port: u16,
    /// Ended with the suite.
    server: Option<Server>,
}

impl Target {
    /// Starts the server under test, unless it is already running.
    pub(crate) fn start(&self) -> Result<Running> {
        if let Some(port) = self.port {
            return Ok(Running { port, server: None });
        }
        Ok(Running::of(self.launch().start()?))
    }

    /// True if the suite starts it.
    pub(crate) fn is_own(&self) -> bool {
        self.port.is_none()
    }

    /// Whether it is Plateau, of which a suite may require what MariaDB lacks.
    pub(crate) fn is_plateau(&self) -> bool {
        self.server == Program::Plateau
    }

    /// The launch of the server, for suites that start it repeatedly.
    pub(crate) fn launch(&self) -> Launch {
        match self.server {
            Program::Plateau => Launch::new(ServerKind::Plateau).with_settings(&self.settings),
            Program::Mariadb => {
                let launch = reference();
                self.settings
                    .iter()
                    .fold(launch, |launch, it| launch.with(format!("--{it}")))
            }
        }
    }
}

/// Debian's MariaDB with the character set that Plateau has by default.
pub(crate) fn reference() -> Launch {
    Launch::new(ServerKind::MariaDb)
        .with("--character-set-server=utf8mb4")
        .with("--collation-server=utf8mb4_general_ci")
        .with("--max-connections=1040")
}

impl Running {
    pub(crate) fn of(server: Server) -> Running {
        Running {
            port: server.port(),
            server: Some(server),
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// True if it was started by the suite.
    pub(crate) fn is_own(&self) -> bool {
        self.server.is_some()
    }

    /// The unix socket; unknown for a server that was already running.
    pub(crate) fn socket(&self) -> Option<PathBuf> {
        self.server.as_ref().map(Server::socket)
    }

    /// A new connection as root.
    pub(crate) fn connect(&self) -> Result<Client> {
        Client::connect(&Login::root(self.port))
    }
}
