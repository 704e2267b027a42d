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
    CacheId, CausalReads, ListenerOptions, MonitorId, MonitorOptions, Options, Role, Router,
    ServerId, ServerOptions, ServiceId, ServiceOptions, SplitOptions,
};
use monitor::{Kind, Rank, Rules};
use router::Balance;
use runtime::Address;
use settings::{Configuration, Entry, Settings, Value};

use crate::configuration::{self, Wrong};

use mistakes::Mistakes;

mod caches;
mod mistakes;
mod query_log;
mod rules;
mod tracing;

/// Sections that say nothing without servers.
const SECTIONS_OF_A_GATEWAY: [&str; 7] = [
    "service",
    "monitor",
    "rule",
    "cache",
    "query_log",
    "tracing",
    "admin",
];

/// The service of a gateway whose file declares none.
const ONLY_SERVICE: &str = "[[service]]\nname = \"default\"\n";

/// The gateway that a configuration describes; `None` if it names no server. Of sections in which
/// the reader has found mistakes, the rest is looked at all the same.
///
/// # Errors
/// All mistakes that more than one field shows. There may be none if the reader has found some.
pub(crate) fn options(configuration: &Configuration) -> Result<Option<Options>, Vec<Wrong>> {
    let sections = &configuration.sections;
    let settings = &configuration.settings;
    let mut mistakes = Mistakes::default();
    let servers: Vec<&Entry> = sections.all("server").collect();
    let Some(first) = servers.first() else {
        for name in SECTIONS_OF_A_GATEWAY {
            if let Some(entry) = sections.one(name) {
                let told = format!("section `{name}` needs servers: there is no section `server`");
                mistakes.add(entry, told);
            }
        }
        return match mistakes.is_empty() {
            true => Ok(None),
            false => Err(mistakes.into_wrong()),
        };
    };
    let names: Vec<&str> = servers
        .iter()
        .map(|it| it.name().unwrap_or_default())
        .collect();
    let monitors = monitors(configuration, &names, &mut mistakes);
    if monitors.is_empty() {
        mistakes.add(first, NO_MONITOR);
    }
    let has_place = |it: &Entry| it.text("address").or(it.text("socket")).is_some();
    let placed = servers.iter().zip(0..).filter(|(it, _)| has_place(it));
    let made = placed.filter_map(|(entry, place)| {
        let made = server(ServerId(place), entry, settings, &monitors);
        Some((*entry, mistakes.keep(entry, made)?))
    });
    let made: Vec<(&Entry, ServerOptions)> = made.collect();
    mistakes.find_shared_addresses(&made);
    let services = services(configuration, &names, &monitors, &mut mistakes);
    let declared: Vec<&Entry> = sections.all("service").collect();
    let listeners = mistakes
        .keep(first, listeners(configuration, &declared))
        .unwrap_or_default();
    mistakes.find_unreachable(&declared, &listeners);
    let caches = caches::read(configuration, &mut mistakes);
    if services.len() == declared.len() {
        caches::find_unseen((&declared, &services), &caches, &mut mistakes);
    }
    let rules = rules::read(configuration, &mut mistakes);
    let query_log = query_log::read(configuration, &mut mistakes);
    let tracing = tracing::read(configuration, &mut mistakes);
    let is_whole = made.len() == servers.len() && services.len() == declared.len().max(1);
    let Some(rules) = rules.filter(|_| is_whole && mistakes.is_empty()) else {
        return Err(mistakes.into_wrong());
    };
    let seconds = |name| Duration::from_secs(settings.unsigned(name));
    Ok(Some(Options {
        servers: made.into_iter().map(|(_, server)| server).collect(),
        listeners,
        monitors,
        services,
        rules: Arc::new(rules),
        caches,
        query_log,
        tracing,
        max_connections: usize::try_from(settings.unsigned("max_connections"))
            .unwrap_or(usize::MAX),
        login_rules: login_rules(settings),
        wait_timeout: seconds("wait_timeout"),
        read_timeout: seconds("net_read_timeout"),
    }))
}

/// The monitors, of which each server has one.
fn monitors(
    configuration: &Configuration,
    names: &[&str],
    mistakes: &mut Mistakes,
) -> Vec<MonitorOptions> {
    let mut monitors: Vec<MonitorOptions> = Vec::new();
    for entry in configuration.sections.all("monitor") {
        let it = monitor(entry, names);
        let is_watched = |server: &&ServerId| monitor_of(&monitors, **server).is_some();
        let twice: Vec<_> = it.servers.iter().filter(is_watched).collect();
        let twice = twice.into_iter().filter_map(|it| names.get(it.0));
        for name in twice {
            let told = format!("two sections `monitor` watch the server `{name}`");
            mistakes.add(entry, told);
        }
        monitors.push(it);
    }
    monitors
}

/// The services: one over all servers, if none is declared.
fn services(
    configuration: &Configuration,
    names: &[&str],
    monitors: &[MonitorOptions],
    mistakes: &mut Mistakes,
) -> Vec<ServiceOptions> {
    let mut usual = Configuration::default();
    let sections = match configuration.sections.one("service") {
        Some(_) => &configuration.sections,
        None => {
            let wrong = usual.read_file(ONLY_SERVICE);
            assert!(wrong.is_empty(), "{wrong:?}");
            &usual.sections
        }
    };
    let watched = configuration.sections.all("monitor");
    let mut watched = watched.flat_map(|it| it.values("servers"));
    let is_unknown = |name: &Value| place_of(name, names).is_none();
    // Then it is told that there is no monitor, or no such server.
    let is_told = monitors.is_empty() || watched.any(is_unknown);
    let mut services = Vec::new();
    for entry in sections.all("service") {
        mistakes.find_idle_fields(entry, router(entry));
        let cache = caches::of_service(entry, configuration);
        match service(entry, names, (monitors, cache)) {
            Err(_) if is_told => {}
            made => services.extend(mistakes.keep(entry, made)),
        }
    }
    services
}

/// Where clients connect. Who names no service gets the first.
fn listeners(configuration: &Configuration, services: &[&Entry]) -> Result<Vec<ListenerOptions>> {
    let places = configuration::client_places(configuration)?.into_iter();
    let listener = |place: configuration::Place| {
        let Some(name) = &place.service else {
            return Some((place.name, 0));
        };
        let is_named = |it: &&Entry| it.name().is_some_and(|it| it.eq_ignore_ascii_case(name));
        Some((place.name, services.iter().position(is_named)?))
    };
    let options = |(name, service): (String, usize)| ListenerOptions {
        name: name.into(),
        service: ServiceId(service),
    };
    Ok(places.filter_map(listener).map(options).collect())
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
        follower_number: count(entry, "server_id"),
    }
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

/// The servers that a section names: all, if it names none. The reader has told of names that it
/// does not know.
fn server_ids(entry: &Entry, names: &[&str]) -> Vec<ServerId> {
    let named = entry.values("servers");
    if named.is_empty() {
        return (0..names.len()).map(ServerId).collect();
    }
    let places = named.iter().filter_map(|it| place_of(it, names));
    places.map(ServerId).collect()
}

/// The place of a name among those of servers.
fn place_of(name: &Value, names: &[&str]) -> Option<usize> {
    let name = name.to_string();
    names.iter().position(|it| it.eq_ignore_ascii_case(&name))
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
    let told = || format!("server `{name}`");
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
        is_adaptive: entry.value("adaptive") == Some(&Value::Bool(true)),
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
            let pem = fs::read_to_string(path);
            let pem = pem.with_context(|| format!("cannot read `tls_authorities` {path}"))?;
            let place = entry.text("address").unwrap_or_default();
            let host = place.rsplit_once(':').map_or(place, |(host, _)| host);
            TlsClient::verified(&pem, host.trim_matches(['[', ']']))?
        }
        // Who names authorities wants them to be asked.
        _ if authorities.is_some() => bail!("`tls_authorities` needs `tls = \"verified\"`"),
        Some("required") => TlsClient::unverified()?,
        _ => return Ok(TlsMode::Off),
    };
    Ok(TlsMode::Required(client))
}

fn service(
    entry: &Entry,
    names: &[&str],
    (monitors, cache): (&[MonitorOptions], Option<CacheId>),
) -> Result<ServiceOptions> {
    let name = entry.name().unwrap_or_default();
    let servers = server_ids(entry, names);
    let watches_all =
        |it: &MonitorOptions| servers.iter().all(|server| it.servers.contains(server));
    let monitor = monitors.iter().position(watches_all).with_context(|| {
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
        cache,
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

    fn read(text: &str) -> Result<Option<Options>, Vec<Wrong>> {
        let mut configuration = Configuration::default();
        let mistakes = configuration.read_file(text);
        assert!(mistakes.is_empty(), "{mistakes:?}");
        options(&configuration)
    }

    /// The mistakes, each with its line.
    fn mistakes(text: &str) -> Vec<String> {
        let wrong = read(text).unwrap_err();
        let shown = wrong
            .iter()
            .map(|it| format!("{}: {}", it.line.unwrap_or(0), it.told));
        shown.collect()
    }

    fn mistake(text: &str) -> String {
        mistakes(text).join("\n")
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
            "1: section `monitor` needs servers: there is no section `server`"
        );
        let no_server = mistake("[[admin]]\nuser = \"ops\"\n");
        assert!(no_server.starts_with("1: section `admin` needs servers"));
        assert_eq!(mistake(TWO), format!("1: {NO_MONITOR}"));
        let twice = mistake(&format!("{TWO}{MONITOR}{MONITOR}"));
        assert_eq!(
            twice,
            "11: two sections `monitor` watch the server `a`\n\
             11: two sections `monitor` watch the server `b`"
        );
        let service = "[[service]]\nname = \"s\"\n";
        let of_b = "[[monitor]]\nuser = \"m\"\nservers = [\"b\"]\n";
        assert_eq!(
            mistake(&format!("{TWO}{of_b}{service}")),
            "10: no section `monitor` watches all servers of the service `s`: one has to name them \
             all"
        );
        let unwatched = mistake(&format!("{TWO}{of_b}"));
        assert!(
            unwatched.contains("of the service `default`"),
            "{unwatched}"
        );
        let tls = "tls = \"verified\"\n";
        let unchecked = mistake(&format!("{TWO}{tls}{MONITOR}"));
        assert_eq!(
            unchecked,
            "4: server `b`: `tls = \"verified\"` needs `tls_authorities`"
        );
        let unknown = TWO.replace("127.0.0.1", "no-such-host.invalid");
        let unknown = mistake(&format!("{unknown}{MONITOR}"));
        assert!(
            unknown.contains("cannot look up `no-such-host.invalid:1`"),
            "{unknown}"
        );
    }

    #[test]
    fn sections_that_do_not_fit_each_other_are_named_all_at_once() {
        let text = format!(
            "{TWO}{MONITOR}\
             [[server]]\nname = \"c\"\naddress = \"127.0.0.1:1\"\n\
             [[server]]\nname = \"d\"\naddress = \"127.0.0.1:2\"\ntls_authorities = \"x.pem\"\n\
             [[server]]\nname = \"e\"\naddress = \"127.0.0.1:3\"\ntls = \"verified\"\n\
             tls_authorities = \"/no/such.pem\"\n\
             [[service]]\nname = \"one\"\nservers = [\"a\"]\ncausal_reads = \"off\"\nlag_max = 1\n\
             [[service]]\nname = \"two\"\nrouter = \"read-write-split\"\nrole = \"replica\"\n\
             [[rule]]\nname = \"r\"\nservices = [\"ONE\", \"two\"]\nserver = \"b\"\n\
             [[rule]]\nname = \"s\"\n[[rule]]\nname = \"t\"\npattern = \"(\"\ndigests = [\"1\"]\n"
        );
        let told = mistakes(&text);
        let expected = [
            "14: server `d`: `tls_authorities` needs `tls = \"verified\"`",
            "18: server `e`: cannot read `tls_authorities` /no/such.pem: ",
            "11: the servers `a` and `c` have one address, 127.0.0.1:1",
            "23: service `one`: `lag_max` is for router = \"read-write-split\" alone, and",
            "23: service `one`: `causal_reads` is for",
            "28: service `two`: `role` is for router = \"read-connection\" alone, and",
            "28: no listener leads to the service `two`: add a section `listener` with service = ",
            "32: rule `r`: its server `b` is not one of the service `one`",
            "36: rule `s` says nothing",
            "38: rule `t` says nothing",
            "38: rule `t`: `1` is no digest",
            "38: rule `t`: `pattern` cannot be used: unclosed group",
        ];
        for (told, expected) in told.iter().zip(expected) {
            assert!(told.starts_with(expected), "{told}\n{expected}");
        }
        assert_eq!(told.len(), expected.len(), "{told:#?}");
    }

    #[test]
    fn a_rule_may_name_a_server_of_any_service_it_is_about() {
        let services = "[[service]]\nname = \"one\"\nservers = [\"a\"]\n\
                        [[service]]\nname = \"two\"\nservers = [\"a\", \"b\"]\n\
                        [[listener]]\nsocket = \"two\"\nservice = \"two\"\n";
        let base = format!("{TWO}{MONITOR}{services}");
        let rule = "[[rule]]\nname = \"r\"\nserver = \"B\"\n";
        assert!(read(&format!("{base}{rule}")).is_ok());
        assert!(read(&format!("{base}{rule}services = [\"two\"]\n")).is_ok());
        let foreign = base.replace(", \"b\"", "");
        assert_eq!(
            mistake(&format!("{foreign}{rule}")),
            "20: rule `r`: no service has its server `B`"
        );
    }

    #[test]
    fn a_service_is_left_out_by_listeners_that_name_others() {
        let services = "[[service]]\nname = \"one\"\n[[service]]\nname = \"two\"\n\
                        [[listener]]\nsocket = \"two\"\nservice = \"TWO\"\n";
        assert!(read(&format!("{TWO}{MONITOR}{services}")).is_ok());
        let nowhere = format!("listen = \"\"\nsocket = \"\"\n{TWO}{MONITOR}{services}");
        let told = mistake(&nowhere);
        assert!(
            told.starts_with("13: no listener leads to the service `one`"),
            "{told}"
        );
    }
}
