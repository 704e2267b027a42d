//! The gateway from its sections in the settings file to its end.
//!
//! It opens no database. Its data directory has its keys and its unix sockets alone.

use std::fs;
use std::io::Write;
use std::net::ToSocketAddrs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ::gateway::{
    CausalReads, Counters, Gateway, Inside, MonitorId, MonitorOptions, Options, Role, Router,
    ServerId, ServerOptions, ServiceId, ServiceOptions, SplitOptions, Worker,
};
use anyhow::{Context, Result, bail, ensure};
use backend::{ClientSecret, Target, TlsClient, TlsMode};
use clients::login_rules;
use metrics::Registry;
use monitor::{Kind, Monitor, Rank, Rules};
use router::Balance;
use runtime::{Address, Preemption, Runtime, Terminations};
use session::Server;
use settings::{Configuration, Entry, Settings, Value};

use crate::admin::{self, Admin};
use crate::configuration;
use crate::ending::{END_TIMES, wait_for_end};
use crate::keys::Keys;
use crate::listen::{self, Bound};
use crate::monitoring;

mod rules;

/// The service of a gateway whose file declares none.
const ONLY_SERVICE: &str = "default";

/// The gateway that a configuration describes; `None` if it names no server.
pub(crate) fn options(configuration: &Configuration) -> Result<Option<Options>> {
    let sections = &configuration.sections;
    let settings = &configuration.settings;
    let servers: Vec<&Entry> = sections.all("server").collect();
    if servers.is_empty() {
        for name in ["service", "monitor", "rule", "admin"] {
            if let Some(entry) = sections.one(name) {
                let line = entry.line();
                bail!("line {line}: section `{name}` needs servers: there is no section `server`");
            }
        }
        return Ok(None);
    }
    let names: Vec<&str> = servers.iter().filter_map(|it| it.name()).collect();
    let monitors: Vec<MonitorOptions> = sections
        .all("monitor")
        .map(|it| monitor(it, &names))
        .collect();
    if let Some(server) = watched_twice(&monitors) {
        let name = names.get(server.0).copied().unwrap_or_default();
        bail!("two sections `monitor` watch the server `{name}`");
    }
    let mut services: Vec<_> = sections
        .all("service")
        .map(|it| service(it, &names, &monitors))
        .collect::<Result<_>>()?;
    if services.is_empty() {
        let all = (0..names.len()).map(ServerId).collect();
        let router = Router::ReadConnection(Role::Any);
        services.push(service_over(ONLY_SERVICE, all, router, &monitors)?);
    }
    let seconds = |name| Duration::from_secs(settings.unsigned(name));
    Ok(Some(Options {
        servers: (0..)
            .map(ServerId)
            .zip(servers)
            .map(|(id, it)| server(id, it, settings, &monitors))
            .collect::<Result<_>>()?,
        monitors,
        services,
        rules: Arc::new(rules::read(configuration)?),
        max_connections: usize::try_from(settings.unsigned("max_connections"))?,
        login_rules: login_rules(settings),
        wait_timeout: seconds("wait_timeout"),
        read_timeout: seconds("net_read_timeout"),
    }))
}

fn monitor(entry: &Entry, names: &[&str]) -> MonitorOptions {
    let usual = Rules::default();
    let password = entry.text("password").unwrap_or_default();
    MonitorOptions {
        servers: server_ids(entry, names),
        user: entry.text("user").unwrap_or_default().to_owned(),
        secret: ClientSecret::password(password.as_bytes()),
        interval: seconds(entry, "interval").unwrap_or_default(),
        timeout: seconds(entry, "timeout").unwrap_or_default(),
        rules: Rules {
            kind: match entry.text("kind") {
                Some("replication") => Kind::Replication,
                Some("galera") => Kind::Galera,
                _ => Kind::Auto,
            },
            failures_max: count(entry, "failures").unwrap_or(usual.failures_max),
            lag_max: seconds(entry, "lag_max"),
            ..usual
        },
    }
}

/// A server that two monitors would judge, each in its own way.
fn watched_twice(monitors: &[MonitorOptions]) -> Option<ServerId> {
    let mut watched: Vec<_> = monitors.iter().flat_map(|it| it.servers.clone()).collect();
    watched.sort_unstable();
    let twice = watched.windows(2).find(|pair| pair.first() == pair.last());
    twice.and_then(|pair| pair.first().copied())
}

fn seconds(entry: &Entry, field: &str) -> Option<Duration> {
    match entry.value(field) {
        Some(Value::Micros(micros)) => Some(Duration::from_micros(*micros)),
        _ => None,
    }
}

/// The same; zero is no limit, as in the variables of that name of MariaDB.
fn limit(entry: &Entry, field: &str) -> Option<Duration> {
    seconds(entry, field).filter(|it| !it.is_zero())
}

fn count<N: TryFrom<u64>>(entry: &Entry, field: &str) -> Option<N> {
    match entry.value(field) {
        Some(Value::Unsigned(number)) => N::try_from(*number).ok(),
        _ => None,
    }
}

/// The servers that a section names: all, if it names none.
fn server_ids(entry: &Entry, names: &[&str]) -> Vec<ServerId> {
    let named = entry.values("servers");
    if named.is_empty() {
        return (0..names.len()).map(ServerId).collect();
    }
    let place = |name: &Value| {
        let name = name.to_string();
        let place = names.iter().position(|it| it.eq_ignore_ascii_case(&name));
        ServerId(place.expect("the reader has looked the name up"))
    };
    named.iter().map(place).collect()
}

/// The monitor that watches a server.
fn monitor_of(monitors: &[MonitorOptions], server: ServerId) -> Option<&MonitorOptions> {
    monitors.iter().find(|it| it.servers.contains(&server))
}

fn server(
    id: ServerId,
    entry: &Entry,
    settings: &Settings,
    monitors: &[MonitorOptions],
) -> Result<ServerOptions> {
    let name = entry.name().unwrap_or_default();
    let line = entry.line();
    let told = || format!("line {line}: server `{name}`");
    let address = address(entry).with_context(told)?;
    let timeout = monitor_of(monitors, id).map(|it| it.timeout);
    let seconds = |name| Duration::from_secs(settings.unsigned(name));
    Ok(ServerOptions {
        name: name.into(),
        target: Target {
            tls: tls(entry).with_context(told)?,
            address,
            connect_timeout: timeout.unwrap_or_else(|| seconds("connect_timeout")),
            io_timeout: seconds("net_write_timeout"),
        },
        rank: Rank(count(entry, "rank").unwrap_or_default()),
        connections_max: count(entry, "max_connections").unwrap_or_default(),
        overflow: count(entry, "overflow"),
    })
}

fn address(entry: &Entry) -> Result<Address> {
    if let Some(path) = entry.text("socket") {
        return Ok(Address::Unix(PathBuf::from(path)));
    }
    let text = entry.text("address").unwrap_or_default();
    let found = text.to_socket_addrs();
    let mut addresses = found.with_context(|| format!("cannot look up `{text}`"))?;
    let first = addresses
        .next()
        .with_context(|| format!("`{text}` has no address"))?;
    Ok(Address::Tcp(first))
}

fn tls(entry: &Entry) -> Result<TlsMode> {
    let authorities = entry.text("tls_authorities");
    let client = match entry.text("tls") {
        Some("verified") => {
            let path = authorities.context("`tls = \"verified\"` needs `tls_authorities`")?;
            let pem = fs::read_to_string(path).with_context(|| path.to_owned())?;
            let place = entry.text("address").unwrap_or_default();
            let host = place.rsplit_once(':').map_or(place, |(host, _)| host);
            TlsClient::verified(&pem, host.trim_matches(['[', ']']))?
        }
        Some("required") => TlsClient::unverified()?,
        _ => return Ok(TlsMode::Off),
    };
    Ok(TlsMode::Required(client))
}

fn service(entry: &Entry, names: &[&str], monitors: &[MonitorOptions]) -> Result<ServiceOptions> {
    let name = entry.name().unwrap_or_default();
    let router = router(entry);
    let made = service_over(name, server_ids(entry, names), router, monitors);
    Ok(ServiceOptions {
        statement_time_max: limit(entry, "max_statement_time"),
        idle_transaction_max: limit(entry, "idle_transaction_timeout"),
        ..made.with_context(|| format!("line {}", entry.line()))?
    })
}

fn router(entry: &Entry) -> Router {
    if entry.text("router") == Some("read-write-split") {
        return Router::ReadWriteSplit(SplitOptions {
            lag_max: seconds(entry, "lag_max"),
            wait: seconds(entry, "wait").unwrap_or_default(),
            causal_reads: match entry.text("causal_reads") {
                Some("off") => CausalReads::Off,
                Some("service") => CausalReads::Service,
                _ => CausalReads::Session,
            },
            balance: match entry.text("balance") {
                Some("response-time") => Balance::ResponseTime,
                _ => Balance::Operations,
            },
            causal_wait: limit(entry, "causal_reads_timeout"),
            multiplexes: entry.value("multiplex") == Some(&Value::Bool(true)),
        });
    }
    Router::ReadConnection(match entry.text("role") {
        Some("primary") => Role::Primary,
        Some("replica") => Role::Replica,
        _ => Role::Any,
    })
}

fn service_over(
    name: &str,
    servers: Vec<ServerId>,
    router: Router,
    monitors: &[MonitorOptions],
) -> Result<ServiceOptions> {
    let watches_all =
        |it: &MonitorOptions| servers.iter().all(|server| it.servers.contains(server));
    let monitor = monitors.iter().position(watches_all).with_context(|| {
        format!("no section `monitor` watches all servers of the service `{name}`")
    })?;
    Ok(ServiceOptions {
        name: name.into(),
        servers,
        monitor: MonitorId(monitor),
        router,
        statement_time_max: None,
        idle_transaction_max: None,
    })
}

/// Runs the gateway until it is shut down.
pub(crate) fn run(
    (options, admins): (Options, Vec<Admin>),
    settings: &Settings,
    Bound {
        mut ports,
        monitoring,
        admin: mut admin_ports,
    }: Bound,
    terminations: Terminations,
) -> Result<()> {
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
    let monitors = parts.monitors.clone();
    let inside = Inside::new(Arc::clone(&gateway), monitors, Arc::clone(&parts.counters));
    let operators = admin::Parts {
        admins,
        ports: admin_ports,
        front,
        packet_memory,
        inside,
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
    wait_for_end(terminations, runtime, move || {
        killed.clients().kill_all();
        operators.iter().for_each(|it| it.kill_sessions());
    })
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

fn shown(server: &ServerOptions) -> String {
    format!("{} ({})", server.name, server.target.address)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<Options>> {
        let mut configuration = Configuration::default();
        let mistakes = configuration.read_file(text);
        assert!(mistakes.is_empty(), "{mistakes:?}");
        options(&configuration)
    }

    fn mistake(text: &str) -> String {
        format!("{:#}", read(text).unwrap_err())
    }

    const TWO: &str = "[[server]]\nname = \"a\"\naddress = \"127.0.0.1:1\"\n\
                       [[server]]\nname = \"b\"\nsocket = \"/run/b\"\n";
    const MONITOR: &str = "[[monitor]]\nuser = \"m\"\npassword = \"p\"\ntimeout = 0.5\n";

    #[test]
    fn two_servers_and_an_account_are_a_gateway() {
        assert!(read("").unwrap().is_none());
        let options = read(&format!("{TWO}{MONITOR}")).unwrap().unwrap();
        let shown: Vec<_> = options.servers.iter().map(shown).collect();
        assert_eq!(shown, ["a (127.0.0.1:1)", "b (/run/b)"]);
        let [service] = options.services.as_slice() else {
            panic!("one service")
        };
        assert_eq!((&*service.name, service.monitor), ("default", MonitorId(0)));
        assert_eq!(service.router, Router::ReadConnection(Role::Any));
        assert_eq!(options.monitors[0].user, "m");
        assert_eq!(service.servers, [ServerId(0), ServerId(1)]);
        let timeout = Duration::from_millis(500);
        assert!(
            options
                .servers
                .iter()
                .all(|it| it.target.connect_timeout == timeout)
        );
    }

    #[test]
    fn services_have_their_servers_in_their_order() {
        let service = "[[service]]\nname = \"s\"\nservers = [\"B\", \"a\"]\n";
        let options = read(&format!("{TWO}{MONITOR}{service}")).unwrap().unwrap();
        let [service] = options.services.as_slice() else {
            panic!("one service")
        };
        assert_eq!(service.servers, [ServerId(1), ServerId(0)]);
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let no_server = mistake(MONITOR);
        assert_eq!(
            no_server,
            "line 1: section `monitor` needs servers: there is no section `server`"
        );
        let no_server = mistake("[[admin]]\nuser = \"ops\"\n");
        assert!(no_server.starts_with("line 1: section `admin` needs servers"));
        let unwatched = mistake(TWO);
        assert!(
            unwatched.contains("no section `monitor` watches"),
            "{unwatched}"
        );
        let twice = mistake(&format!("{TWO}{MONITOR}{MONITOR}"));
        assert_eq!(twice, "two sections `monitor` watch the server `a`");
        let service = "[[service]]\nname = \"s\"\n";
        let of_b = "[[monitor]]\nuser = \"m\"\nservers = [\"b\"]\n";
        let unwatched = mistake(&format!("{TWO}{of_b}{service}"));
        assert!(unwatched.starts_with("line 10: no section"), "{unwatched}");
        let tls = "tls = \"verified\"\n";
        let unchecked = mistake(&format!("{TWO}{tls}{MONITOR}"));
        assert_eq!(
            unchecked,
            "line 4: server `b`: `tls = \"verified\"` needs `tls_authorities`"
        );
        let unknown = TWO.replace("127.0.0.1", "no-such-host.invalid");
        let unknown = mistake(&format!("{unknown}{MONITOR}"));
        assert!(
            unknown.contains("cannot look up `no-such-host.invalid:1`"),
            "{unknown}"
        );
    }
}
