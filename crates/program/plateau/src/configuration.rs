//! From settings to the options of each part. Only this file knows both.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use runtime::{Address, Io};
use settings::Settings;
use tracing_subscriber::filter::{LevelFilter, Targets};

use crate::arguments::Arguments;
use crate::keys::Keys;

/// Read where `--config` names no other.
const FILE: &str = "plateau.toml";

/// The defaults, changed by the file and then by the command line.
pub(crate) fn read(arguments: &Arguments) -> Result<Settings> {
    let mut settings = Settings::default();
    let file = match &arguments.config {
        Some(path) => Some(path.as_path()),
        None => Some(Path::new(FILE)).filter(|path| path.exists()),
    };
    if let Some(path) = file {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        settings
            .read_file(&text)
            .with_context(|| path.display().to_string())?;
    }
    for assignment in &arguments.assignments {
        settings
            .assign(assignment)
            .with_context(|| format!("--set {assignment}"))?;
    }
    session::variables::start_settings::settle(&mut settings)?;
    log_filter(&settings)?;
    Ok(settings)
}

/// What is logged, by the parts of the program; an error for words that mean nothing.
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
                "setting `log` cannot be `{directive}`: expected {}, or one of them by part, as \
                 `front=debug`",
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

/// What is logged, from nothing to everything.
const LOG_LEVELS: [(&str, LevelFilter); 6] = [
    ("off", LevelFilter::OFF),
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
    ("trace", LevelFilter::TRACE),
];

/// What clients may ask of the machine.
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
    // As MariaDB says of a TLS that was built in and is not on.
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

/// The address for TCP, unless there is none.
pub(crate) fn tcp_address(settings: &Settings) -> Result<Option<Address>> {
    let listen = settings.text("listen");
    if listen.is_empty() {
        return Ok(None);
    }
    let address: SocketAddr = listen.parse().with_context(|| {
        format!("setting `listen` is no address and port, as 127.0.0.1:4006: {listen}")
    })?;
    Ok(Some(Address::Tcp(address)))
}

/// The unix socket, unless there is none.
pub(crate) fn socket_address(settings: &Settings) -> Option<Address> {
    let socket = Some(settings.text("socket")).filter(|it| !it.is_empty())?;
    Some(Address::Unix(data(settings).join(socket)))
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

/// Options of client connections; what may change while the server runs each login asks for.
pub(crate) fn front_options(settings: &Settings, keys: Keys) -> Result<front::Options> {
    let version = settings.text("version");
    Ok(front::Options {
        tls: keys.tls,
        rsa_key: Some(keys.rsa),
        max_allowed_packet: usize::try_from(settings.unsigned("max_allowed_packet"))?,
        packet_memory: front::PacketMemory::new(usize::try_from(
            settings.unsigned("packet_memory_size"),
        )?),
        // Without MariaDB's old prefix 5.5.5-, as MariaDB 11 greets: clients of MariaDB look for
        // its name, and Connector/J takes the prefix for a server that frames logins otherwise.
        ..front::Options::new(version, front::system_random())
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn settings(arguments: &[&str]) -> Result<Settings> {
        read(&Arguments::parse_from([&["plateau"], arguments].concat()))
    }

    #[test]
    fn nothing_configured_serves_on_loopback_and_a_socket() {
        let settings = settings(&[]).unwrap();
        let tcp = tcp_address(&settings).unwrap().unwrap();
        assert_eq!(tcp.to_string(), "127.0.0.1:4006");
        let socket = socket_address(&settings).unwrap();
        assert_eq!(socket.to_string(), "./plateau-data/plateau.sock");
        assert_eq!(runtime_options(&settings).unwrap().io, Io::Auto);
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
        fs::write(&file, "wrokers = 3\n").unwrap();
        let error = format!("{:#}", settings(&["--config", path]).unwrap_err());
        assert!(error.starts_with(path), "{error}");
        assert!(error.ends_with("did you mean `workers`?"), "{error}");
        let error = settings(&["--config", "missing.toml"]).unwrap_err();
        assert!(
            format!("{error:#}").starts_with("missing.toml: "),
            "{error:#}"
        );
        let found = settings(&["--set", "listen=nowhere"]).unwrap();
        assert!(tcp_address(&found).is_err());
    }
}
