//! From the sections of the settings file to the options of a gateway.

use std::fs;
use std::net::ToSocketAddrs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use backend::{ClientSecret, ProxyVersion, Target, TlsClient, TlsMode};
use clients::login_rules;
use gateway::{
    CausalReads, ListenerOptions, MonitorId, MonitorOptions, Options, Role, Router, ServerId,
    ServerOptions, ServiceId, ServiceOptions, SplitOptions,
};
use monitor::{Kind, Rank, Rules};
use router::Balance;
use runtime::Address;
use settings::{Configuration, Entry, Settings, Value};

use crate::configuration;

mod rules;

/// The service of a gateway whose file declares none.
const ONLY_SERVICE: &str = "[[service]]\nname = \"default\"\n";

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
        .map(|it| {
            let made = service(it, &names, &monitors);
            made.with_context(|| format!("line {}", it.line()))
        })
        .collect::<Result<_>>()?;
    if services.is_empty() {
        let mut usual = Configuration::default();
        let mistakes = usual.read_file(ONLY_SERVICE);
        assert!(mistakes.is_empty(), "{mistakes:?}");
        for it in usual.sections.all("service") {
            services.push(service(it, &names, &monitors)?);
        }
    }
    let seconds = |name| Duration::from_secs(settings.unsigned(name));
    Ok(Some(Options {
        servers: (0..)
            .map(ServerId)
            .zip(servers)
            .map(|(id, it)| server(id, it, settings, &monitors))
            .collect::<Result<_>>()?,
        listeners: listeners(configuration, &services)?,
        monitors,
        services,
        rules: Arc::new(rules::read(configuration)?),
        max_connections: usize::try_from(settings.unsigned("max_connections"))?,
        login_rules: login_rules(settings),
        wait_timeout: seconds("wait_timeout"),
        read_timeout: seconds("net_read_timeout"),
    }))
}

/// Where clients connect. Who names no service gets the first.
fn listeners(
    configuration: &Configuration,
    services: &[ServiceOptions],
) -> Result<Vec<ListenerOptions>> {
    let places = configuration::client_places(configuration)?.into_iter();
    let listener = |place: configuration::Place| {
        let is_named = |it: &ServiceOptions| {
            let name = place.service.as_deref();
            name.is_none_or(|name| name.eq_ignore_ascii_case(&it.name))
        };
        let service = services.iter().position(is_named);
        ListenerOptions {
            name: place.name.into(),
            service: ServiceId(service.expect("the reader has looked the name up")),
        }
    };
    Ok(places.map(listener).collect())
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
            proxy_header: match entry.text("proxy_protocol") {
                Some("v1") => Some(ProxyVersion::V1),
                Some("v2") => Some(ProxyVersion::V2),
                _ => None,
            },
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
    let servers = server_ids(entry, names);
    let watches_all =
        |it: &MonitorOptions| servers.iter().all(|server| it.servers.contains(server));
    let monitor = monitors.iter().position(watches_all).with_context(|| {
        if monitors.is_empty() {
            return NO_MONITOR.to_owned();
        }
        format!(
            "no section `monitor` watches all servers of the service `{name}`: one has to name \
             them all"
        )
    })?;
    Ok(ServiceOptions {
        name: name.into(),
        servers,
        monitor: MonitorId(monitor),
        router: router(entry),
        wait: seconds(entry, "wait").unwrap_or_default(),
        multiplexes: entry.value("multiplex") == Some(&Value::Bool(true)),
        statement_time_max: limit(entry, "max_statement_time"),
        idle_transaction_max: limit(entry, "idle_transaction_timeout"),
    })
}

fn router(entry: &Entry) -> Router {
    if entry.text("router") == Some("read-write-split") {
        return Router::ReadWriteSplit(SplitOptions {
            lag_max: seconds(entry, "lag_max"),
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
        });
    }
    Router::ReadConnection(match entry.text("role") {
        Some("primary") => Role::Primary,
        Some("replica") => Role::Replica,
        _ => Role::Any,
    })
}

/// The mistake of a gateway without an account of its own.
const NO_MONITOR: &str = "section [[monitor]] is missing: it has `user` and `password` of the \
                          account that watches the servers";

/// A server as the start names it.
pub(crate) fn shown(server: &ServerOptions) -> String {
    format!("{} ({})", server.name, server.target.address)
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
        assert_eq!(mistake(TWO), NO_MONITOR);
        let one = format!("{TWO}[[monitor]]\nuser = \"m\"\nservers = [\"b\"]\n");
        let unwatched = "no section `monitor` watches all servers of the service `default`: one \
                         has to name them all";
        assert_eq!(mistake(&one), unwatched);
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
