//! From settings to the options of each subsystem. Only this file knows both.

use std::collections::HashSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use runtime::{Address, Io};
use settings::{Configuration, Mistake, Settings};
use tracing_subscriber::filter::{LevelFilter, Targets};

use crate::arguments::Arguments;
use crate::keys::{self, Keys};

/// The file that is read without `--config`.
const FILE: &str = "plateau.toml";

/// The errors of the configuration: a line for each mistake, with its place.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub(crate) struct Mistakes(Vec<String>);

/// A mistake, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// Of the settings file; `None` if it is not there.
    pub(crate) line: Option<usize>,
    pub(crate) told: String,
}

/// What is wrong with a configuration by which no client could ever connect.
const NO_PLACE: &str = "both `listen` and `socket` are empty, and there is no section `listener`: \
     no client could connect";

/// The defaults, overridden by the file and then by the command line, and the mistakes of both as
/// far as they show in one setting or field.
pub(crate) fn read(arguments: &Arguments) -> Result<(Configuration, Vec<Wrong>)> {
    let mut configuration = Configuration::default();
    let mut wrong = Vec::new();
    if let Some(path) = file(arguments) {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        for Mistake { line, error } in configuration.read_file(&text) {
            wrong.push(Wrong {
                line: Some(line),
                told: format!("{:#}", anyhow::Error::new(error)),
            });
        }
    }
    for assignment in &arguments.assignments {
        if let Err(error) = configuration.assign(assignment) {
            let told = anyhow::Error::new(error);
            wrong.push(Wrong {
                line: None,
                told: format!("--set {assignment}: {told:#}"),
            });
        }
    }
    for (setting, told) in meaningless(&mut configuration.settings) {
        let line = configuration.line_of(setting);
        wrong.push(Wrong { line, told });
    }
    wrong.extend(shared_addresses(&configuration)?);
    // A mistake in a section of a listener may have taken its place.
    if wrong.is_empty() && client_places(&configuration)?.is_empty() {
        wrong.push(Wrong {
            line: configuration.line_of("listen"),
            told: NO_PLACE.to_owned(),
        });
    }
    Ok((configuration, wrong))
}

/// Fails with all these mistakes, in the order of the file. Those of the command line come last.
pub(crate) fn refuse(arguments: &Arguments, mut wrong: Vec<Wrong>) -> Result<()> {
    if wrong.is_empty() {
        return Ok(());
    }
    wrong.sort_by_key(|it| it.line.unwrap_or(usize::MAX));
    let file = file(arguments);
    let shown = wrong.into_iter().map(|it| match (file, it.line) {
        (Some(path), Some(line)) => format!("{}:{line}: {}", path.display(), it.told),
        _ => it.told,
    });
    Err(Mistakes(shown.collect()).into())
}

/// A place where clients connect.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// What the file says. Of several with port 0, each has a number behind it.
    pub(crate) name: String,
    pub(crate) address: Address,
    /// The service that its section names.
    pub(crate) service: Option<String>,
    /// Of the file; `None` if that does not say it.
    pub(crate) line: Option<usize>,
}

/// The mistakes of listeners with an address of another one; `metrics_listen` counts as a listener.
/// The kernel chooses port 0, so any number of listeners may have it.
fn shared_addresses(configuration: &Configuration) -> Result<Vec<Wrong>> {
    let mut seen = HashSet::new();
    let clients = client_places(configuration)?.into_iter();
    let all = clients.chain(admin_places(configuration)?);
    let numbers = configuration.settings.text("metrics_listen").parse();
    let numbers = numbers.ok().map(Address::Tcp);
    let numbers = numbers.map(|address| (address, configuration.line_of("metrics_listen")));
    let placed = all.map(|it| (it.address, it.line)).chain(numbers);
    let fixed = placed.filter(|(it, _)| !matches!(it, Address::Tcp(it) if it.port() == 0));
    let shared = fixed.filter(|(address, _)| !seen.insert(address.to_string()));
    let wrong = shared.map(|(address, line)| Wrong {
        line,
        told: format!("two listeners have the address {address}"),
    });
    Ok(wrong.collect())
}

/// The settings file, if there is one.
pub(crate) fn file(arguments: &Arguments) -> Option<&Path> {
    match &arguments.config {
        Some(path) => Some(path.as_path()),
        None => Some(Path::new(FILE)).filter(|path| path.exists()),
    }
}

/// Settings with values of the right form but without a meaning, and why.
fn meaningless(settings: &mut Settings) -> Vec<(&'static str, String)> {
    let mut wrong = Vec::new();
    for error in session::variables::start_settings::settle(settings) {
        wrong.push((error.setting(), error.to_string()));
    }
    if let Err(error) = log_filter(settings) {
        wrong.push(("log", error.to_string()));
    }
    if let Err(error) = proxy_networks(settings) {
        let told = format!("setting `{PROXY_NETWORKS}`: {error}");
        wrong.push((PROXY_NETWORKS, told));
    }
    if settings.is_on("tls")
        && let Err(error) = keys::given_tls(settings)
    {
        wrong.push(("tls_certificate", format!("{error:#}")));
    }
    wrong
}

/// The log filter by modules; an error for words without a meaning.
pub(crate) fn log_filter(settings: &Settings) -> Result<Targets> {
    let mut filter = Targets::new();
    for directive in settings.text("log").split(',') {
        let (part, level) = match directive.split_once('=') {
            Some((part, level)) => (Some(part.trim()), level.trim()),
            None => (None, directive.trim()),
        };
        let is_level = |(word, _): &&(&str, LevelFilter)| level.eq_ignore_ascii_case(word);
        let known = LOG_LEVELS.iter().find(is_level);
        let known = known.filter(|_| part.is_none_or(|part| !part.is_empty()));
        let Some((_, level)) = known else {
            anyhow::bail!(
                "setting `log` cannot be `{directive}`: expected {}, or a level for one part, \
                 as in `front=debug`",
                LOG_LEVELS.map(|(word, _)| word).join(", ")
            );
        };
        filter = match part {
            Some(part) => filter.with_target(part, *level),
            None => filter.with_default(*level),
        };
    }
    Ok(filter)
}

/// The log levels, from nothing to everything.
const LOG_LEVELS: [(&str, LevelFilter); 6] = [
    ("off", LevelFilter::OFF),
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
    ("trace", LevelFilter::TRACE),
];

/// Fills in the settings that tell clients about the machine.
pub(crate) fn tell_machine(settings: &mut Settings, bound: &[Address]) {
    if let Ok(name) = fs::read_to_string("/proc/sys/kernel/hostname") {
        settings.tell("hostname", name.trim());
    }
    let port = bound.iter().find_map(|address| match address {
        Address::Tcp(address) => Some(address.port()),
        Address::Unix(_) => None,
    });
    settings.tell("port", &port.unwrap_or(0).to_string());
    settings.tell("skip_networking", if port.is_some() { "OFF" } else { "ON" });
    settings.tell("version_compile_machine", std::env::consts::ARCH);
    // As in a MariaDB that has TLS built in but disabled.
    let tls = if settings.is_on("tls") {
        "YES"
    } else {
        "DISABLED"
    };
    settings.tell("have_ssl", tls);
    settings.tell("have_openssl", tls);
}

/// The data directory.
pub(crate) fn data(settings: &Settings) -> PathBuf {
    PathBuf::from(settings.text("data"))
}

/// The places for clients: those for TCP, then the unix sockets.
pub(crate) fn client_places(configuration: &Configuration) -> Result<Vec<Place>> {
    let mut places = tcp_places(configuration)?;
    places.extend(socket_places(configuration));
    let mut seen: Vec<String> = Vec::new();
    for place in &mut places {
        let given = std::mem::take(&mut place.name);
        let before = seen.iter().filter(|it| **it == given).count();
        place.name = match before {
            0 => given.clone(),
            _ => format!("{given} {before}"),
        };
        seen.push(given);
    }
    Ok(places)
}

/// The places for TCP: `listen`, then those of the sections.
fn tcp_places(configuration: &Configuration) -> Result<Vec<Place>> {
    let places = places(configuration, "listen", "address");
    let addressed = |given: Given<'_>| {
        let address = given.text.parse::<SocketAddr>();
        let address = address.context("an address that was not checked")?;
        Ok(given.at(Address::Tcp(address)))
    };
    places.map(addressed).collect()
}

/// The unix sockets: `socket`, then those of the sections.
fn socket_places(configuration: &Configuration) -> Vec<Place> {
    let data = data(&configuration.settings);
    let addressed = |given: Given<'_>| given.at(Address::Unix(data.join(given.text)));
    places(configuration, "socket", "socket")
        .map(addressed)
        .collect()
}

/// Where operators connect: nowhere without a section `admin`.
pub(crate) fn admin_places(configuration: &Configuration) -> Result<Vec<Place>> {
    if configuration.sections.one("admin").is_none() {
        return Ok(Vec::new());
    }
    let settings = &configuration.settings;
    let given = |name| Some(settings.text(name)).filter(|text| !text.is_empty());
    let mut addresses = Vec::new();
    if let Some(text) = given("admin_listen") {
        let address: SocketAddr = text.parse().context("an address that was not checked")?;
        addresses.push((Address::Tcp(address), "admin_listen"));
    }
    if let Some(path) = given("admin_socket") {
        addresses.push((Address::Unix(data(settings).join(path)), "admin_socket"));
    }
    let place = |(address, setting): (Address, &str)| Place {
        name: address.to_string(),
        address,
        service: None,
        line: configuration.line_of(setting),
    };
    Ok(addresses.into_iter().map(place).collect())
}

/// A place as the settings have it.
struct Given<'c> {
    text: &'c str,
    service: Option<&'c str>,
    line: Option<usize>,
}

impl Given<'_> {
    fn at(&self, address: Address) -> Place {
        Place {
            name: self.text.to_owned(),
            address,
            service: self.service.map(str::to_owned),
            line: self.line,
        }
    }
}

/// The values of a setting and of a field of all listeners.
fn places<'c>(
    configuration: &'c Configuration,
    setting: &str,
    field: &'static str,
) -> impl Iterator<Item = Given<'c>> {
    let flat = Some(configuration.settings.text(setting)).filter(|text| !text.is_empty());
    let line = configuration.line_of(setting);
    let flat = flat.map(|text| Given {
        text,
        service: None,
        line,
    });
    let listeners = configuration.sections.all("listener");
    let named = listeners.filter_map(move |it| {
        Some(Given {
            text: it.text(field)?,
            service: it.text("service"),
            line: Some(it.line()),
        })
    });
    flat.into_iter().chain(named)
}

/// Options of the event loops.
pub(crate) fn runtime_options(settings: &Settings) -> Result<runtime::Options> {
    Ok(runtime::Options {
        worker_count: usize::try_from(settings.unsigned("workers"))?,
        io: match settings.text("io") {
            "uring" => Io::Uring,
            "epoll" => Io::Epoll,
            _ => Io::Auto,
        },
        ..runtime::Options::default()
    })
}

/// The setting of whose connections may begin with a header of the PROXY protocol.
const PROXY_NETWORKS: &str = "proxy_protocol_networks";

fn proxy_networks(settings: &Settings) -> Result<front::ProxyNetworks, front::NotANetwork> {
    settings.text(PROXY_NETWORKS).parse()
}

/// Options of client connections. Each login reads the ones that may change at run time.
pub(crate) fn front_options(settings: &Settings, keys: Keys) -> Result<front::Options> {
    let version = settings.text("version");
    Ok(front::Options {
        tls: keys.tls,
        rsa_key: Some(keys.rsa),
        proxy_networks: proxy_networks(settings)?,
        max_allowed_packet: usize::try_from(settings.unsigned("max_allowed_packet"))?,
        // Without MariaDB's old prefix 5.5.5-, like the greeting of MariaDB 11. MariaDB's clients
        // look for its name, and Connector/J takes the prefix for a server that frames logins
        // differently.
        ..front::Options::new(version, front::system_random())
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn configuration(arguments: &[&str]) -> Result<Configuration> {
        let arguments = Arguments::parse_from([&["plateau"], arguments].concat());
        let (configuration, wrong) = read(&arguments)?;
        refuse(&arguments, wrong)?;
        Ok(configuration)
    }

    fn settings(arguments: &[&str]) -> Result<Settings> {
        Ok(configuration(arguments)?.settings)
    }

    fn shown(places: &[Place]) -> Vec<String> {
        places.iter().map(|it| it.address.to_string()).collect()
    }

    #[test]
    fn nothing_configured_serves_on_loopback_and_a_socket() {
        let found = configuration(&[]).unwrap();
        let tcp = tcp_places(&found).unwrap();
        assert_eq!(shown(&tcp), ["127.0.0.1:4006"]);
        let sockets = socket_places(&found);
        assert_eq!(shown(&sockets), ["./plateau-data/plateau.sock"]);
        assert_eq!(runtime_options(&found.settings).unwrap().io, Io::Auto);
    }

    #[test]
    fn sections_add_listeners() {
        let folder = testkit::Folder::new("listeners").unwrap();
        let file = folder.path().join("my.toml");
        let text = "socket = \"\"\n[[listener]]\naddress = \"[::1]:1\"\n\
                    [[listener]]\nsocket = \"admin.sock\"\n";
        fs::write(&file, text).unwrap();
        let found = configuration(&["--config", file.to_str().unwrap()]).unwrap();
        let tcp = tcp_places(&found).unwrap();
        assert_eq!(shown(&tcp), ["127.0.0.1:4006", "[::1]:1"]);
        let sockets = socket_places(&found);
        assert_eq!(shown(&sockets), ["./plateau-data/admin.sock"]);
    }

    #[test]
    fn operators_connect_nowhere_unless_there_are_any() {
        let folder = testkit::Folder::new("admins").unwrap();
        let file = folder.path().join("my.toml");
        let places = |text: &str| {
            fs::write(&file, text).unwrap();
            let found = configuration(&["--config", file.to_str().unwrap()])?;
            Ok::<_, anyhow::Error>(shown(&admin_places(&found)?))
        };
        let listen = "admin_listen = \"127.0.0.1:4007\"\n";
        let admin = "[[admin]]\nuser = \"ops\"\n";
        assert_eq!(places(listen).unwrap(), [""; 0]);
        assert_eq!(places(admin).unwrap(), ["./plateau-data/admin.sock"]);
        assert_eq!(
            places(&(listen.to_owned() + admin)).unwrap(),
            ["127.0.0.1:4007", "./plateau-data/admin.sock"]
        );
        let none = "admin_socket = \"\"\n".to_owned() + admin;
        assert_eq!(places(&none).unwrap(), [""; 0]);
        let shared = "[[listener]]\nsocket = \"admin.sock\"\n".to_owned() + admin;
        let refused = places(&shared).unwrap_err().to_string();
        assert!(
            refused.contains("two listeners have the address"),
            "{refused}"
        );
        let numbers = "metrics_listen = \"127.0.0.1:4006\"\n";
        let refused = places(numbers).unwrap_err().to_string();
        let told = "my.toml:1: two listeners have the address 127.0.0.1:4006";
        assert!(refused.ends_with(told), "{refused}");
    }

    #[test]
    fn clients_are_told_what_the_start_has_found() {
        let mut found = settings(&["--set", "tls=OFF"]).unwrap();
        tell_machine(&mut found, &[]);
        let told = |name| found.text(name);
        assert_eq!(
            (told("have_ssl"), told("have_openssl")),
            ("DISABLED", "DISABLED")
        );
        assert_eq!(found.unsigned("port"), 0);
        assert!(found.is_on("skip_networking"));
        let mut found = settings(&[]).unwrap();
        tell_machine(&mut found, &[Address::Tcp(([127, 0, 0, 1], 4006).into())]);
        let told = |name| found.text(name);
        assert_eq!((told("have_ssl"), told("have_openssl")), ("YES", "YES"));
        assert_eq!(found.unsigned("port"), 4006);
        assert!(!found.is_on("skip_networking"));
        assert_eq!(told("version_compile_machine"), std::env::consts::ARCH);
    }

    #[test]
    fn a_worker_has_a_number_of_one_byte() {
        for (count, is_fine) in [("0", true), ("255", true), ("256", false)] {
            let found = settings(&["--set", &format!("workers={count}")]);
            assert_eq!(found.is_ok(), is_fine, "{count}");
        }
        assert_eq!(u8::try_from(runtime::WORKER_COUNT_MAX), Ok(u8::MAX));
    }

    #[test]
    fn command_line_goes_first_and_errors_name_their_place() {
        let folder = testkit::Folder::new("configuration").unwrap();
        let file = folder.path().join("my.toml");
        fs::write(&file, "io = \"uring\"\nworkers = 3\n").unwrap();
        let path = file.to_str().unwrap();
        let found = settings(&["--config", path, "--set", "io=epoll"]).unwrap();
        let options = runtime_options(&found).unwrap();
        assert_eq!((options.io, options.worker_count), (Io::Epoll, 3));
        let text = "wrokers = 3\ntime_zone = \"Nowhere\"\nlog = \"loud\"\n\
                    proxy_protocol_networks = \"10.0.0.0/8, 10.0.0.0/33\"\n";
        fs::write(&file, text).unwrap();
        let refused = settings(&["--config", path, "--set", "io=poll"]).unwrap_err();
        let told = refused.to_string();
        let expected = [
            format!("{path}:1: there is no setting `wrokers`; did you mean `workers`?"),
            format!("{path}:2: setting `time_zone` cannot be `Nowhere`: there is no such zone"),
            format!("{path}:3: setting `log` cannot be `loud`: expected off,"),
            format!("{path}:4: setting `proxy_protocol_networks`: `10.0.0.0/33` is no network: "),
            "--set io=poll: setting `io` cannot be `poll`: expected one of auto, uring, epoll"
                .to_owned(),
        ];
        let lines: Vec<_> = told.lines().collect();
        assert_eq!(lines.len(), expected.len(), "{told}");
        for (line, expected) in lines.iter().zip(&expected) {
            assert!(line.starts_with(expected), "{line}");
        }
        let error = settings(&["--config", "missing.toml"]).unwrap_err();
        assert!(
            format!("{error:#}").starts_with("missing.toml: "),
            "{error:#}"
        );
        assert!(settings(&["--set", "listen=nowhere"]).is_err());
    }
}
