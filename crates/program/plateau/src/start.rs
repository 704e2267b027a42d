//! The server from its start to its orderly shutdown.
//!
//! Order of the start: settings, ports, workers, engine (which locks the data directory and
//! recovers it), keys, socket, listeners, the four lines. A port in use is found before the data
//! directory is touched; clients that connect during recovery wait. SIGTERM, SIGINT or SIGHUP
//! begins the shutdown. No new clients are accepted; sessions finish their current command (idle
//! ones end at once), then the workers stop. Sessions that are not done after ten seconds, or at a
//! second signal, are killed and roll back. What has not ended five seconds later, or at a third
//! signal, is cut off: tasks are dropped where they are. That may be in the middle of a write of
//! the log, which ends the process as a crash does, so it is the last resort.

use std::io::{IsTerminal, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use engine::OnDamage;
use errcode::{ClientError, ER_CON_COUNT_ERROR};
use runtime::{Address, ListenError, Listener, Refusal, Runtime, Shortage, Terminations};
use session::Server;
use settings::Settings;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use wal::OnLogLoss;

use crate::advice::advised;
use crate::arguments::Arguments;
use crate::configuration;
use crate::database::{Database, Engines, Opening};
use crate::keys::Keys;
use crate::serve::{self, EndTimes};
use crate::time_zone;

/// The longest path in the kernel's address of a unix socket, without its final zero.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// Statements get that long to finish, and killed ones to roll back. Together it is less than a
/// service manager waits by default (90 s).
const END_TIMES: EndTimes = EndTimes {
    patience: Duration::from_secs(10),
    grace: Duration::from_secs(5),
};

/// Runs the server until it is shut down.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut configuration = configuration::read(arguments)?;
    start_log(&configuration.settings)?;
    // Before the first session, and before anything uses `SYSTEM`.
    time_zone::tell(&mut configuration.settings);
    // From here on a signal begins the shutdown instead of killing the process.
    let terminations = Terminations::install().context("cannot wait for signals")?;
    let mut listeners = Vec::new();
    for address in configuration::tcp_addresses(&configuration)? {
        listeners.push(Listener::bind(&address).map_err(explain)?);
    }
    let sockets = configuration::socket_addresses(&configuration);
    anyhow::ensure!(
        !listeners.is_empty() || !sockets.is_empty(),
        "both `listen` and `socket` are empty, and there is no section `listener`"
    );
    let settings = configuration.settings;
    let runtime = Runtime::start(configuration::runtime_options(&settings)?, || {})?;
    let on_loss = if arguments.accept_log_loss {
        OnLogLoss::Accept
    } else {
        OnLogLoss::Refuse
    };
    let opening = Opening {
        on_damage: OnDamage::Refuse,
        on_loss,
        engines: Engines::Each,
    };
    let mut database = Database::open(&settings, &runtime, opening).map_err(advised)?;
    let served = serve(
        settings,
        Ports { listeners, sockets },
        &runtime,
        &mut database,
    );
    if served.is_err() {
        // The database is open, so it is closed as at any other shutdown.
        runtime.handle().shutdown(END_TIMES.total());
    }
    let server = served.as_ref().ok().map(Arc::clone);
    wait_for_end(terminations, runtime, server)?;
    drop(database);
    served.map(drop)
}

/// Where clients connect.
struct Ports {
    /// TCP ports, already bound.
    listeners: Vec<Listener>,
    /// Unix sockets, which are created once the data directory is open.
    sockets: Vec<Address>,
}

/// Accepts clients.
fn serve(
    mut settings: Settings,
    ports: Ports,
    runtime: &Runtime,
    database: &mut Database,
) -> Result<Arc<Server>> {
    let keys = Keys::open(&settings, &configuration::data(&settings))?;
    // Sockets are in the data directory, which is locked only now.
    let mut listeners = ports.listeners;
    for address in ports.sockets {
        listeners.push(Listener::bind(&address).map_err(explain)?);
    }
    let bound: Vec<Address> = listeners.iter().map(|it| it.address().clone()).collect();
    configuration::tell_machine(&mut settings, &bound);
    let metrics = std::mem::take(&mut database.metrics);
    let server = serve::start(&settings, keys, runtime, metrics, END_TIMES)?;
    runtime.handle().set_refusal(refusal());
    for listener in listeners {
        runtime.serve(listener, serve::serve).map_err(explain)?;
    }
    let state = if database.is_new { " (new)" } else { "" };
    let is_open = session::system::accounts::has_open_root(&server.accounts());
    greet(&bound, &settings, state, is_open, runtime)?;
    Ok(server)
}

/// What happens to clients that come when there is no file descriptor left.
fn refusal() -> Refusal {
    let too_many = ClientError::new(ER_CON_COUNT_ERROR, &[]);
    Refusal {
        reply: front::Client::refusal(&too_many),
        report: Box::new(|shortage| {
            let Shortage {
                limit,
                refused_count,
            } = shortage;
            tracing::error!(
                limit,
                refused_count,
                "out of file descriptors: clients are refused (error 1040); raise the limit of \
                 open files (ulimit -n, LimitNOFILE), or lower max_connections"
            );
        }),
    }
}

/// The log goes to standard error; the four lines of the start go to standard output.
fn start_log(settings: &Settings) -> Result<()> {
    let filter = configuration::log_filter(settings)?;
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .init();
    Ok(())
}

/// The kernel's reason, and what to do about it.
fn explain(error: ListenError) -> anyhow::Error {
    let hint = match error.reason.kind() {
        std::io::ErrorKind::AddrInUse => match error.address {
            Address::Tcp(_) => {
                "; another server uses it: choose another address with --set listen=127.0.0.1:PORT"
            }
            Address::Unix(_) => {
                "; another server uses it, or it is not a socket: choose another path with \
                 --set socket=PATH"
            }
        },
        _ if is_too_long(&error.address) => "; the path of a socket has at most 107 bytes",
        std::io::ErrorKind::PermissionDenied => match error.address {
            Address::Tcp(_) => "; only root may use ports below 1024",
            Address::Unix(_) => "; its directory must be open to the server's user",
        },
        _ => "",
    };
    anyhow::anyhow!("{error}{hint}")
}

fn is_too_long(address: &Address) -> bool {
    matches!(address, Address::Unix(path) if SOCKET_PATH_BYTES_MAX < path.as_os_str().len())
}

/// Prints four lines that show how to log in.
fn greet(
    bound: &[Address],
    settings: &Settings,
    state: &str,
    is_open: bool,
    runtime: &Runtime,
) -> Result<()> {
    let names: Vec<_> = bound.iter().map(ToString::to_string).collect();
    let driver = runtime.handle().driver();
    let password = if is_open { "" } else { " -p" };
    let login = bound.first().map(|address| match address {
        Address::Tcp(tcp) => {
            let host = reachable(tcp.ip());
            format!("mariadb -h{host} -P{} -uroot{password}", tcp.port())
        }
        Address::Unix(path) => format!("mariadb -S{} -uroot{password}", path.display()),
    });
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "plateau {} listening on {}",
        env!("CARGO_PKG_VERSION"),
        names.join(" and ")
    )?;
    writeln!(
        out,
        "data in {}{state}, {} workers, {}",
        settings.text("data"),
        runtime.handle().worker_count(),
        driver.kind
    )?;
    writeln!(out, "log in: {}", login.as_deref().unwrap_or_default())?;
    let last = if is_open {
        "root needs no password from this machine; to change that: SET PASSWORD = PASSWORD('...')"
    } else {
        "root logs in with its password; to stop the server: Ctrl-C, SIGTERM, or SHUTDOWN in SQL"
    };
    writeln!(out, "{last}")?;
    out.flush()?;
    Ok(())
}

/// An address of this machine at which a listener of `ip` answers.
fn reachable(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    }
}

fn wait_for_end(
    mut terminations: Terminations,
    runtime: Runtime,
    server: Option<Arc<Server>>,
) -> Result<()> {
    let handle = runtime.handle().clone();
    // It ends with the process: later signals must be noticed until the last moment.
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for asked_before in 0u32.. {
                let termination = terminations.wait();
                tracing::info!(%termination, "asked to stop");
                handle.shutdown(match asked_before {
                    0 => END_TIMES.total(),
                    1 => END_TIMES.grace,
                    _ => Duration::ZERO,
                });
                if let (1, Some(server)) = (asked_before, &server) {
                    server.kill_sessions();
                }
            }
        })?;
    let outcome = runtime.wait().context("a worker failed")?;
    if 0 < outcome.cut_count {
        tracing::warn!(
            count = outcome.cut_count,
            "sessions were cut off at shutdown"
        );
    }
    Ok(())
}
