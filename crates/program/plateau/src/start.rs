//! The server from its start to its orderly shutdown: a database, or a gateway if servers are
//! configured (`serve_gateway.rs`).
//!
//! Order of the start: settings, ports, workers, engine (which locks the data directory and
//! recovers it), keys, socket, listeners, the four lines. A port in use is found before the data
//! directory is touched; clients that connect during recovery wait. SIGTERM, SIGINT, SIGQUIT or
//! SIGHUP begins the shutdown. No new clients are accepted; sessions finish their current command
//! (idle ones end at once), then the workers stop. Sessions that are not done after ten seconds, or
//! at a second signal, are killed and roll back. What has not ended five seconds later, or at a
//! third signal, is cut off: tasks are dropped where they are. That may be in the middle of a write
//! of the log, which ends the process as a crash does, so it is the last resort.

use std::io::{IsTerminal, Write};
use std::sync::Arc;

use anyhow::{Context, Result};
use runtime::{Address, Runtime, Terminations};
use session::Server;
use settings::Settings;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::format::debug_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use wal::OnLogLoss;

use crate::advice::advised;
use crate::arguments::Arguments;
use crate::configuration;
use crate::database::{Database, Engines, Opening};
use crate::ending::{END_TIMES, wait_for_end};
use crate::heap;
use crate::keys::Keys;
use crate::listen::{self, Bound, Ports};
use crate::monitoring;
use crate::reading::{self, Reading};
use crate::serve;
use crate::serve_gateway;
use crate::time_zone;

/// Runs the server until it is shut down.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let Reading {
        mut configuration,
        gateway,
    } = reading::read(arguments)?;
    start_log(&configuration.settings)?;
    // Before the first session, and before anything uses `SYSTEM`.
    time_zone::tell(&mut configuration.settings);
    if let Err(error) = env::linux::raise_descriptor_limit() {
        tracing::info!(%error, "the limit of open files stays as it is");
    }
    // From here on a signal begins the shutdown instead of killing the process.
    let terminations = Terminations::install().context("cannot wait for signals")?;
    let ports = Ports::open(&configuration)?;
    let bound = Bound {
        ports,
        monitoring: monitoring::bind(&configuration.settings)?,
        admin: Ports::open_for_admins(&configuration)?,
    };
    match gateway {
        Some(options) => {
            let begun = serve_gateway::Begun {
                options,
                arguments: arguments.clone(),
                configuration,
            };
            serve_gateway::run(begun, bound, terminations)?;
        }
        None => run_database(arguments, configuration.settings, bound, terminations)?,
    }
    tracing::info!("stopped in order");
    Ok(())
}

/// Reports that the configuration is valid, or fails with its mistakes. Starts nothing.
pub(crate) fn check(arguments: &Arguments) -> Result<()> {
    reading::read(arguments)?;
    match configuration::file(arguments) {
        Some(path) => println!("{}: no mistakes", path.display()),
        None => println!("no settings file, and no mistakes"),
    }
    Ok(())
}

/// Runs the database until it is shut down.
fn run_database(
    arguments: &Arguments,
    settings: Settings,
    bound: Bound,
    terminations: Terminations,
) -> Result<()> {
    heap::tell_excess(&settings);
    let runtime = Runtime::start(configuration::runtime_options(&settings)?, || {})?;
    let on_loss = if arguments.accept_log_loss {
        OnLogLoss::Accept
    } else {
        OnLogLoss::Refuse
    };
    let opening = Opening {
        on_loss,
        engines: Engines::Each,
    };
    let opened = Database::open(&settings, &runtime, opening);
    let mut database = opened.map_err(|error| advised(error, on_loss))?;
    let served = serve(settings, bound, &runtime, &mut database);
    if served.is_err() {
        // The database is open, so it is closed as at any other shutdown.
        runtime.handle().shutdown(END_TIMES.total());
    }
    let server = served.as_ref().ok().map(Arc::clone);
    wait_for_end(
        terminations,
        runtime,
        move || server.as_ref().map_or(0, |server| server.kill_sessions()),
        None,
    )?;
    drop(database);
    served.map(drop)
}

/// Accepts clients.
fn serve(
    mut settings: Settings,
    Bound {
        mut ports,
        monitoring,
        // A database has no section `admin`.
        admin: _,
    }: Bound,
    runtime: &Runtime,
    database: &mut Database,
) -> Result<Arc<Server>> {
    let keys = Keys::open(&settings, &configuration::data(&settings))?;
    // Sockets are in the data directory, which is locked only now.
    ports.bind_sockets()?;
    let bound = ports.addresses();
    configuration::tell_machine(&mut settings, &bound);
    let metrics = std::mem::take(&mut database.metrics);
    let server = serve::start(&settings, keys, runtime, metrics, END_TIMES)?;
    runtime.handle().set_refusal(listen::refusal());
    for (listener, _) in ports.into_listeners() {
        runtime
            .serve(listener, serve::serve)
            .map_err(listen::explain)?;
    }
    let numbers = Arc::clone(&server);
    // It serves clients, or it has not come here.
    monitoring::serve(runtime, monitoring, move || numbers.exposition(), || None)?;
    let state = if database.is_new { " (new)" } else { "" };
    let is_open = session::system::accounts::has_open_root(&server.accounts());
    greet(&bound, &settings, state, is_open, runtime)?;
    Ok(server)
}

/// The log goes to standard error; the four lines of the start go to standard output.
pub(crate) fn start_log(settings: &Settings) -> Result<()> {
    let filter = configuration::log_filter(settings)?;
    let fields = debug_fn(|out, field, value| match field.name() {
        "message" => write!(out, "{}", tame(&format!("{value:?}"))),
        name => write!(out, "{name}={}", tame(&format!("{value:?}"))),
    });
    let lines = tracing_subscriber::fmt::layer()
        .fmt_fields(fields.delimited(" "))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .init();
    Ok(())
}

/// A text for the log, which may come from a client: it cannot look like another line of the log,
/// nor steer a terminal. Lines after its first are indented.
fn tame(text: &str) -> String {
    let mut tamed = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => tamed.push_str("\n    "),
            '\t' => tamed.push('\t'),
            it if it.is_control() => tamed.extend(it.escape_default()),
            it => tamed.push(it),
        }
    }
    tamed
}

/// Prints four lines that show how to log in.
fn greet(
    bound: &[Address],
    settings: &Settings,
    state: &str,
    is_open: bool,
    runtime: &Runtime,
) -> Result<()> {
    let driver = runtime.handle().driver();
    let password = if is_open { "" } else { " -p" };
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", listen::listening(bound))?;
    writeln!(
        out,
        "data in {}{state}, {} workers, {}",
        settings.text("data"),
        runtime.handle().worker_count(),
        driver.kind
    )?;
    writeln!(out, "log in: {} -uroot{password}", listen::client(bound))?;
    let last = if is_open {
        "root needs no password from this machine; to change that: SET PASSWORD = PASSWORD('...')"
    } else {
        "root logs in with its password; to stop the server: Ctrl-C, SIGTERM, or SHUTDOWN in SQL"
    };
    writeln!(out, "{last}")?;
    out.flush()?;
    Ok(())
}
