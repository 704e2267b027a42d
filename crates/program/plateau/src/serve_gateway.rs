//! The gateway from its start to its end.
//!
//! It opens no database. Its data directory has its keys and its unix sockets alone.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use ::gateway::{Counters, Gateway, Inside, Options, Worker};
use anyhow::{Context, Result, ensure};
use env::linux::BlockingDisk;
use metrics::Registry;
use runtime::{Address, Preemption, Runtime, Terminations};
use session::Server;
use settings::Configuration;

use crate::admin;
use crate::arguments::Arguments;
use crate::configuration;
use crate::ending::{END_TIMES, tell_killed, wait_for_end, wait_patiently};
use crate::gateway_options::shown;
use crate::keys::Keys;
use crate::listen::{self, Bound};
use crate::monitoring;
use crate::reload::{Listeners, Reload, Workers};

/// What a gateway is started with.
pub(crate) struct Begun {
    pub(crate) options: Options,
    pub(crate) arguments: Arguments,
    /// That the options are of.
    pub(crate) configuration: Configuration,
}

/// Runs the gateway until it is shut down.
pub(crate) fn run(
    Begun {
        options,
        arguments,
        configuration: begun,
    }: Begun,
    Bound {
        mut ports,
        monitoring,
        admin: mut admin_ports,
    }: Bound,
    terminations: Terminations,
) -> Result<()> {
    let admins = admin::admins(&begun);
    let settings = &begun.settings.clone();
    let data = configuration::data(settings);
    make_directory(&data)?;
    let keys = Keys::open(settings, &data)?;
    ports.bind_sockets()?;
    admin_ports.bind_sockets()?;
    let bound = ports.addresses();
    let servers: Vec<String> = options.servers.iter().map(shown).collect();
    let runtime_options = runtime::Options {
        // A statement costs the gateway so little that a wake-up for each would double it.
        preemption: Preemption::WhileFewAreServed,
        ..configuration::runtime_options(settings)?
    };
    let runtime = Runtime::start(runtime_options, || {})?;
    let gateway = Gateway::new(runtime.handle().worker_count());
    let front = configuration::front_options(settings, keys)?;
    let packet_memory_bytes = usize::try_from(settings.unsigned("packet_memory_size"))?;
    let packet_memory = front::PacketMemory::new(packet_memory_bytes);
    let counters = start_workers(&gateway, (&front, &packet_memory), &runtime);
    let workers = Workers {
        gateway: Arc::clone(&gateway),
        handle: runtime.handle().clone(),
        packet_memory: packet_memory.clone(),
        random: Arc::clone(&front.random),
    };
    workers.apply(options)?;
    runtime.handle().set_refusal(listen::refusal());
    let mut listeners = Listeners::new(runtime.handle().clone());
    listeners.open(ports.into_listeners())?;
    let reload = Reload::new(arguments, begun, (workers, listeners));
    let inside = Inside::new(Arc::clone(&gateway), Arc::clone(&counters));
    let operators = admin::Parts {
        admins,
        ports: admin_ports,
        front,
        packet_memory,
        inside,
        reload: Arc::clone(&reload),
    };
    let operators = admin::serve(settings, &runtime, operators)?;
    if let Some(server) = operators.clone() {
        renew_admins(&reload, server);
    }
    end_with(&gateway, operators.clone(), &runtime);
    let (shown, handle) = (Arc::clone(&gateway), runtime.handle().clone());
    // Made for each answer, since servers come and go.
    let numbers = move || {
        let mut registry = Registry::new();
        handle.register_metrics(&mut registry);
        shown.register_metrics(&mut registry, &counters);
        registry.exposition()
    };
    let asked = Arc::clone(&gateway);
    let ailing = move || {
        let service = asked.ailing_service()?;
        Some(format!("no server of the service `{service}` answers"))
    };
    monitoring::serve(&runtime, monitoring, numbers, ailing)?;
    greet(&bound, &servers, &runtime)?;
    let killed = Arc::clone(&gateway);
    let kill = move || kill_all(&killed, operators.as_deref());
    let reload = Box::new(move || reload.run_by_signal());
    wait_for_end(terminations, runtime, kill, Some(reload))?;
    gateway.query_log().write(&BlockingDisk);
    gateway.spans().finish();
    Ok(())
}

/// Has a new settings file change the accounts of operators.
fn renew_admins(reload: &Reload, server: Arc<Server>) {
    reload.set_operators(Box::new(move |configuration, workers| {
        let admins = admin::admins(configuration);
        let random = Arc::clone(&workers.random);
        let accounts = workers.run(move || admin::accounts(admins, random))??;
        let server = Arc::clone(&server);
        Ok(Box::new(move || server.set_accounts(accounts)))
    }));
}

/// Creates the directory for keys and sockets.
fn make_directory(data: &Path) -> Result<()> {
    fs::create_dir_all(data).with_context(|| format!("cannot create {}", data.display()))?;
    ensure!(
        data.is_dir(),
        "`data` is {}, which is no directory",
        data.display()
    );
    Ok(())
}

/// Gives each worker its part. Returns the counters of each.
fn start_workers(
    gateway: &Arc<Gateway>,
    (front, packet_memory): (&front::Options, &front::PacketMemory),
    runtime: &Runtime,
) -> Arc<[Arc<Counters>]> {
    let front = front::Options {
        secret_use: front::SecretUse::Keep,
        ..front.clone()
    };
    let worker_count = runtime.handle().worker_count();
    let counters: Arc<[Arc<Counters>]> = (0..worker_count).map(|_| Arc::default()).collect();
    for (index, counters) in counters.iter().enumerate() {
        let counters = Arc::clone(counters);
        let (gateway, front) = (Arc::clone(gateway), front.clone());
        let packet_memory = packet_memory.clone();
        runtime.block_on_worker(index, move || async move {
            let traffic = Arc::clone(&counters.front.traffic);
            let resources = front::Resources::new(packet_memory, traffic);
            let worker = Worker::new(gateway, front, resources, counters);
            runtime::spawn_background(::gateway::keep_pool(Rc::clone(&worker)));
            runtime::set_local(worker);
        });
    }
    counters
}

/// Ends all sessions in time once the gateway stops.
fn end_with(gateway: &Arc<Gateway>, operators: Option<Arc<Server>>, runtime: &Runtime) {
    let gateway = Arc::clone(gateway);
    runtime.block_on_worker(0, move || async move {
        runtime::spawn_background(async move {
            runtime::shutdown().await;
            gateway.clients().dismiss();
            operators.iter().for_each(|it| it.dismiss_sessions());
            let of_operators = || operators.as_deref().map(Server::busy).unwrap_or_default();
            let of_clients = || gateway.clients().registry().busy();
            wait_patiently(END_TIMES, || of_clients() + of_operators()).await;
            tell_killed(kill_all(&gateway, operators.as_deref()));
        });
    });
}

/// Kills all sessions. Returns how many were in a command.
fn kill_all(gateway: &Gateway, operators: Option<&Server>) -> usize {
    let of_operators = operators.map_or(0, Server::kill_sessions);
    gateway.clients().kill_all() + of_operators
}

/// Prints four lines that show how to log in.
fn greet(bound: &[Address], servers: &[String], runtime: &Runtime) -> Result<()> {
    let handle = runtime.handle();
    let (workers, driver) = (handle.worker_count(), handle.driver().kind);
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", listen::listening(bound))?;
    writeln!(
        out,
        "gateway to {}; {workers} workers, {driver}",
        servers.join(", ")
    )?;
    writeln!(
        out,
        "log in: {} -u.. -p, with an account of the servers",
        listen::client(bound)
    )?;
    writeln!(out, "to stop the gateway: Ctrl-C or SIGTERM")?;
    out.flush()?;
    Ok(())
}
