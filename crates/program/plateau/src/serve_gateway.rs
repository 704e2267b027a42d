//! The gateway from its start to its end.
//!
//! It opens no database. Its data directory has its keys and its unix sockets alone.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use ::gateway::{Counters, Gateway, Inside, Options, ServiceId, Worker};
use anyhow::{Context, Result, ensure};
use metrics::Registry;
use monitor::Monitor;
use runtime::{Address, Preemption, Runtime, Terminations};
use session::Server;
use settings::Configuration;

use crate::admin;
use crate::arguments::Arguments;
use crate::configuration;
use crate::ending::{END_TIMES, wait_for_end};
use crate::gateway_options::shown;
use crate::keys::Keys;
use crate::listen::{self, Bound, Ports};
use crate::monitoring;
use crate::reload::Reload;

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
    let names: Vec<Arc<str>> = options
        .services
        .iter()
        .map(|it| Arc::clone(&it.name))
        .collect();
    let servers: Vec<String> = options.servers.iter().map(shown).collect();
    let runtime_options = runtime::Options {
        // A statement costs the gateway so little that a wake-up for each would double it.
        preemption: Preemption::WhileFewAreServed,
        ..configuration::runtime_options(settings)?
    };
    let runtime = Runtime::start(runtime_options, || {})?;
    let gateway = Gateway::new(options, runtime.handle().worker_count());
    let front = configuration::front_options(settings, keys)?;
    let packet_memory_bytes = usize::try_from(settings.unsigned("packet_memory_size"))?;
    let packet_memory = front::PacketMemory::new(packet_memory_bytes);
    let parts = start_workers(&gateway, (&front, &packet_memory), &runtime);
    runtime.handle().set_refusal(listen::refusal());
    serve_clients(ports, &names, &runtime)?;
    let reload = Reload::new(arguments, begun, Arc::clone(&gateway));
    let monitors = parts.monitors.clone();
    let inside = Inside::new(Arc::clone(&gateway), monitors, Arc::clone(&parts.counters));
    let operators = admin::Parts {
        admins,
        ports: admin_ports,
        front,
        packet_memory,
        inside,
        reload: Arc::clone(&reload),
    };
    let operators = admin::serve(settings, &runtime, operators)?;
    end_with(&gateway, operators.clone(), &runtime);
    let mut registry = Registry::new();
    runtime.handle().register_metrics(&mut registry);
    gateway.register_metrics(&mut registry, &parts.counters, &parts.monitors);
    let (asked, monitors) = (Arc::clone(&gateway), parts.monitors);
    let ailing = move || {
        let service = asked.ailing_service(&monitors)?;
        Some(format!("no server of the service `{service}` answers"))
    };
    monitoring::serve(&runtime, monitoring, move || registry.exposition(), ailing)?;
    greet(&bound, &servers, &runtime)?;
    let killed = Arc::clone(&gateway);
    let kill = move || {
        killed.clients().kill_all();
        operators.iter().for_each(|it| it.kill_sessions());
    };
    let reload = Box::new(move || reload.run_by_signal());
    wait_for_end(terminations, runtime, kill, Some(reload))
}

/// Lets clients in to the services of these names.
fn serve_clients(ports: Ports, names: &[Arc<str>], runtime: &Runtime) -> Result<()> {
    for (listener, service) in ports.into_listeners() {
        let is_named = |name: &Arc<str>| {
            let service = service.as_deref();
            service.is_none_or(|it| it.eq_ignore_ascii_case(name))
        };
        let place = names.iter().position(is_named);
        let id = ServiceId(place.expect("the reader has looked the name up"));
        let serve = move |stream| {
            let worker: Rc<Worker> = runtime::local().expect("each worker was given its part");
            ::gateway::serve(worker, id, stream)
        };
        runtime.serve(listener, serve).map_err(listen::explain)?;
    }
    Ok(())
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

/// What was started that tells how the gateway is.
struct Parts {
    /// Of each worker.
    counters: Arc<[Arc<Counters>]>,
    monitors: Vec<Monitor>,
}

/// Gives each worker its part, and the first one the tasks of the whole gateway.
fn start_workers(
    gateway: &Arc<Gateway>,
    (front, packet_memory): (&front::Options, &front::PacketMemory),
    runtime: &Runtime,
) -> Parts {
    let front = front::Options {
        secret_use: front::SecretUse::Keep,
        ..front.clone()
    };
    let monitors = {
        let (gateway, random) = (Arc::clone(gateway), Arc::clone(&front.random));
        let packet_memory = packet_memory.clone();
        runtime.block_on_worker(0, move || async move {
            let resources = front::Resources::new(packet_memory, Arc::default());
            ::gateway::watch_servers(&gateway, &resources, &random)
        })
    };
    let worker_count = runtime.handle().worker_count();
    let counters: Arc<[Arc<Counters>]> = (0..worker_count)
        .map(|_| Arc::new(Counters::new(gateway)))
        .collect();
    for (index, counters) in counters.iter().enumerate() {
        let counters = Arc::clone(counters);
        let (gateway, front) = (Arc::clone(gateway), front.clone());
        let (monitors, packet_memory) = (monitors.clone(), packet_memory.clone());
        runtime.block_on_worker(index, move || async move {
            let traffic = Arc::clone(&counters.front.traffic);
            let resources = front::Resources::new(packet_memory, traffic);
            let worker = Worker::new(gateway, &monitors, &front, resources, counters);
            runtime::spawn_background(::gateway::keep_pool(Rc::clone(&worker)));
            runtime::set_local(worker);
        });
    }
    let gateway = Arc::clone(gateway);
    runtime.block_on_worker(0, move || async move {
        let worker: Rc<Worker> = runtime::local().expect("set above");
        for id in gateway.service_ids() {
            runtime::spawn_background(::gateway::keep_accounts(Rc::clone(&worker), id));
        }
    });
    Parts { counters, monitors }
}

/// Ends all sessions in time once the gateway stops.
fn end_with(gateway: &Arc<Gateway>, operators: Option<Arc<Server>>, runtime: &Runtime) {
    let gateway = Arc::clone(gateway);
    runtime.block_on_worker(0, move || async move {
        runtime::spawn_background(async move {
            runtime::shutdown().await;
            gateway.clients().dismiss();
            operators.iter().for_each(|it| it.dismiss_sessions());
            runtime::sleep(END_TIMES.patience).await;
            gateway.clients().kill_all();
            operators.iter().for_each(|it| it.kill_sessions());
        });
    });
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
