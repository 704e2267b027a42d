//! The server that a suite runs against.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use testkit::folder::{Folder, target_directory};
use testkit::process::run;
use testkit::server::plateau_program;
use testkit::topology::{Galera, Replicated};
use testkit::{Client, Launch, Login, Server, ServerKind, wait_for};

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
    /// Tests Plateau as a gateway with this router.
    #[arg(long, value_enum)]
    gateway: Option<Router>,
    /// The servers behind the gateway.
    #[arg(long, value_enum, default_value = "one", requires = "gateway")]
    behind: Topology,
}

/// A router of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Router {
    ReadConnection,
    ReadWriteSplit,
}

/// What stands behind a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Topology {
    /// A MariaDB.
    One,
    /// A primary and two replicas.
    Replicas,
    /// A Galera cluster of three.
    Galera,
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
    gateway: Option<Gateway>,
}

/// A gateway that was started by the suite, and its servers. It is dropped before them.
#[derive(Debug)]
struct Gateway {
    _gateway: Server,
    _settings: Folder,
    servers: Vec<Server>,
    behind: Topology,
}

impl Target {
    /// Starts the server under test, unless it is already running.
    pub(crate) fn start(&self) -> Result<Running> {
        if let Some(port) = self.port {
            return Ok(Running {
                port,
                server: None,
                gateway: None,
            });
        }
        if let Some(router) = self.gateway {
            return self.start_gateway(router, "", with_names);
        }
        Ok(Running::of(self.launch().start()?))
    }

    /// The same, and CONNECTION_ID() is the number by which the server knows a session: through a
    /// gateway each has its connections for itself. The servers behind it get these options.
    pub(crate) fn start_private(&self, options: &[&str]) -> Result<Running> {
        let prepare = |launch| with_options(with_names(launch), options);
        match self.gateway.filter(|_| self.port.is_none()) {
            Some(router) => self.start_gateway(router, "multiplex = false\n", prepare),
            None => self.start(),
        }
    }

    /// Starts the servers and a gateway to them, whose service has these settings, too.
    fn start_gateway(
        &self,
        router: Router,
        settings: &str,
        prepare: impl Fn(Launch) -> Launch,
    ) -> Result<Running> {
        let servers = match self.behind {
            Topology::One => vec![prepare(reference()).start()?],
            Topology::Replicas => Replicated::start_with(2, prepare)?.servers,
            Topology::Galera => Galera::start_with(3, prepare)?.servers,
        };
        let router = match (router, self.behind) {
            (Router::ReadConnection, Topology::One) => "read-connection",
            // A suite that writes needs the primary.
            (Router::ReadConnection, _) => "read-connection\"\nrole = \"primary",
            // Some suites write on one connection and read on another.
            (Router::ReadWriteSplit, _) => "read-write-split\"\ncausal_reads = \"service",
        };
        let mut text = format!("[[service]]\nname = \"suite\"\nrouter = \"{router}\"\n{settings}");
        for (index, server) in servers.iter().enumerate() {
            let port = server.port();
            text += &format!("[[server]]\nname = \"db{index}\"\naddress = \"127.0.0.1:{port}\"\n");
        }
        text += "[[monitor]]\nuser = \"root\"\ninterval = 0.2\ntimeout = 10\n";
        let folder = Folder::new("gateway")?;
        let file = folder.path().join("plateau.toml");
        fs::write(&file, text)?;
        let gateway = Launch::plateau(plateau_program()?)
            .with("--config")
            .with(file.display().to_string())
            .with_settings(&self.settings)
            .with_settings(["log=info", "max_connections=1000"])
            .start()?;
        wait_for(
            "the gateway is ready",
            || gateway.log().contains("a service is ready"),
            |is_ready| *is_ready,
        );
        Ok(Running {
            port: gateway.port(),
            server: None,
            gateway: Some(Gateway {
                _gateway: gateway,
                _settings: folder,
                servers,
                behind: self.behind,
            }),
        })
    }

    /// True if the suite starts it.
    pub(crate) fn is_own(&self) -> bool {
        self.port.is_none()
    }

    /// Whether it is Plateau's database, of which a suite may require what MariaDB lacks.
    pub(crate) fn is_plateau(&self) -> bool {
        self.server == Program::Plateau && !self.is_gateway()
    }

    /// Whether it is a gateway to a Galera cluster.
    pub(crate) fn is_before_galera(&self) -> bool {
        self.is_gateway() && self.behind == Topology::Galera
    }

    /// The MariaDB that answers as the target should.
    pub(crate) fn reference(&self) -> Launch {
        match self.is_gateway() {
            true => with_names(reference()),
            false => reference(),
        }
    }

    /// Whether it is a gateway, which cannot log in for accounts of each method.
    pub(crate) fn is_gateway(&self) -> bool {
        self.gateway.is_some()
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

/// What suites need of each server behind a gateway.
fn with_names(launch: Launch) -> Launch {
    let options = [
        "--character-set-server=utf8mb4",
        "--collation-server=utf8mb4_general_ci",
        "--max-connections=1040",
        "--max-allowed-packet=64M",
        "--innodb-log-file-size=96M",
        "--local-infile=1",
        "--plugin-load-add=auth_ed25519",
        // One member takes all writes, and is to count as a server alone does.
        "--loose-wsrep-auto-increment-control=OFF",
    ];
    with_options(launch, &options)
}

/// A launch with more arguments.
pub(crate) fn with_options(launch: Launch, options: &[&str]) -> Launch {
    options
        .iter()
        .fold(launch, |launch, option| launch.with(*option))
}

impl Running {
    pub(crate) fn of(server: Server) -> Running {
        Running {
            port: server.port(),
            server: Some(server),
            gateway: None,
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// True if it was started by the suite.
    pub(crate) fn is_own(&self) -> bool {
        self.server.is_some()
    }

    /// The first server behind a gateway, without the gateway.
    pub(crate) fn behind(&self) -> Option<Running> {
        let server = self.gateway.as_ref()?.servers.first()?;
        Some(Running {
            port: server.port(),
            server: None,
            gateway: None,
        })
    }

    /// Whether it is a gateway to a Galera cluster.
    pub(crate) fn is_before_galera(&self) -> bool {
        let gateway = self.gateway.as_ref();
        gateway.is_some_and(|it| it.behind == Topology::Galera)
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

/// The build of Plateau that a command measures.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct MeasuredBuild {
    /// The build of Plateau to measure; by default `cargo build --release` builds it.
    #[arg(long)]
    program: Option<PathBuf>,
    /// Settings for Plateau as `name=value`.
    #[arg(long = "set")]
    pub(crate) settings: Vec<String>,
}

impl MeasuredBuild {
    /// The program: the given one, or one of the current source, which is built now.
    pub(crate) fn program(&self) -> Result<PathBuf> {
        program_or_release(self.program.as_deref())
    }
}

/// The measured build: the given one, or one of the current source.
pub(crate) fn program_or_release(given: Option<&Path>) -> Result<PathBuf> {
    given.map_or_else(build_release, |path| Ok(path.to_path_buf()))
}

/// Builds the server as for users.
pub(crate) fn build_release() -> Result<PathBuf> {
    run(Command::new("cargo").args(["build", "--release", "--quiet", "--package", "plateau"]))?;
    Ok(target_directory().join("release").join("plateau"))
}
