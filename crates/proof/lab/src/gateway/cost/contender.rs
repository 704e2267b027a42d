//! What stands between the load and the server: no proxy, another proxy, or a gateway with some
//! settings.

use std::fmt;
use std::fs;
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use testkit::process::Process;
use testkit::server::plateau_program;
use testkit::{Folder, free_port, wait_for};

/// Rules of the gateway that has many.
const RULE_COUNT: u32 = 200;

/// A proxy that is not ready by then will not be.
const READY_LIMIT: Duration = Duration::from_secs(30);

/// Who stands between the load and the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Direct,
    HaProxy,
    /// One worker over io_uring.
    Link,
    /// `read-connection` over io_uring, whose clients share connections.
    Uring,
    /// The same, but a client has a connection of its own.
    Private,
    Epoll,
    /// `read-write-split` over io_uring, before the one server.
    Split,
    /// The same with one rule whose pattern matches nothing.
    OneRule,
    /// The same with [`RULE_COUNT`] of them.
    ManyRules,
    /// The split with a query log of each statement.
    Logged,
}

pub(super) const KINDS: [Kind; 10] = [
    Kind::Direct,
    Kind::HaProxy,
    Kind::Link,
    Kind::Uring,
    Kind::Private,
    Kind::Epoll,
    Kind::Split,
    Kind::OneRule,
    Kind::ManyRules,
    Kind::Logged,
];

impl Kind {
    /// As tables and `docs/bench/gateway.csv` call it: a value of CSV, so without a comma.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Direct => "direct",
            Kind::HaProxy => "haproxy",
            Kind::Link => "link",
            Kind::Uring => "gateway uring",
            Kind::Private => "private uring",
            Kind::Epoll => "gateway epoll",
            Kind::Split => "split uring",
            Kind::OneRule => "split with 1 rule",
            Kind::ManyRules => "split with 200 rules",
            Kind::Logged => "split with query log",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One of them, running.
pub(super) struct Contender {
    pub(super) kind: Kind,
    pub(super) port: u16,
    /// `None` for no proxy.
    pub(super) process: Option<Process>,
    /// Its files lie there.
    _folder: Folder,
}

impl Contender {
    pub(super) fn start(kind: Kind, server_port: u16) -> Result<Contender> {
        let folder = Folder::new("contender")?;
        let port = match kind {
            Kind::Direct => server_port,
            _ => free_port()?,
        };
        let command = command(kind, &folder, port, server_port)?;
        let process = command.map(|mut command| {
            Process::start(
                &mut command,
                &folder.path().join("log"),
                "a service is ready",
            )
        });
        let mut process = process.transpose()?;
        if let Some(process) = &mut process
            && !matches!(kind, Kind::HaProxy | Kind::Link)
        {
            process.wait_ready(READY_LIMIT)?;
        }
        wait_for(
            &format!("{kind} accepts clients"),
            || TcpStream::connect(("127.0.0.1", port)).is_ok(),
            |accepts| *accepts,
        );
        Ok(Contender {
            kind,
            port,
            process,
            _folder: folder,
        })
    }
}

/// What starts it.
fn command(kind: Kind, folder: &Folder, port: u16, server_port: u16) -> Result<Option<Command>> {
    let file = folder.path().join("settings");
    match kind {
        Kind::Direct => return Ok(None),
        Kind::HaProxy => {
            let text = format!(
                "global\n  maxconn 9000\ndefaults\n  mode tcp\n  timeout connect 5s\n  \
                 timeout client 1h\n  timeout server 1h\nlisten all\n  bind 127.0.0.1:{port}\n  \
                 server one 127.0.0.1:{server_port}\n"
            );
            fs::write(&file, text)?;
            let mut command = Command::new("haproxy");
            command.arg("-f").arg(&file);
            return Ok(Some(command));
        }
        Kind::Link => {
            let mut command = Command::new(std::env::current_exe()?);
            command
                .args(["proxy", "link", "uring"])
                .args([port.to_string(), server_port.to_string()]);
            return Ok(Some(command));
        }
        _ => {}
    }
    let head = format!(
        "listen = \"127.0.0.1:{port}\"\nsocket = \"\"\ndata = {:?}\nlog = \"info\"\n\
         max_connections = 9000\n",
        folder.path().join("data")
    );
    let server = format!("[[server]]\nname = \"one\"\naddress = \"127.0.0.1:{server_port}\"\n");
    let log = query_log(kind, folder);
    fs::write(&file, head + &io(kind) + &server + &service(kind) + &log)?;
    let mut command = Command::new(plateau_program()?);
    command.arg("--config").arg(&file);
    Ok(Some(command))
}

/// The setting of how a gateway talks to the kernel.
fn io(kind: Kind) -> String {
    let io = match kind {
        Kind::Epoll => "epoll",
        _ => "uring",
    };
    format!("io = \"{io}\"\n")
}

/// The query log of a gateway that has one.
fn query_log(kind: Kind, folder: &Folder) -> String {
    let path = folder.path().join("queries.json");
    match kind {
        Kind::Logged => {
            format!("[query_log]\npath = {path:?}\nall = true\n")
        }
        _ => String::new(),
    }
}

/// The monitor, the service and the rules of a gateway.
fn service(kind: Kind) -> String {
    let router = match kind {
        Kind::Split | Kind::OneRule | Kind::ManyRules | Kind::Logged => "read-write-split",
        _ => "read-connection",
    };
    let multiplex = match kind {
        Kind::Private => "multiplex = false\n",
        _ => "",
    };
    let rule_count = match kind {
        Kind::OneRule => 1,
        Kind::ManyRules => RULE_COUNT,
        _ => 0,
    };
    let service = format!(
        "[[monitor]]\nuser = \"root\"\ntimeout = 10\n[[service]]\nname = \"all\"\n\
         router = \"{router}\"\n{multiplex}"
    );
    service + &(0..rule_count).map(rule).collect::<String>()
}

/// A rule that no statement of the load meets.
fn rule(number: u32) -> String {
    format!(
        "[[rule]]\nname = \"r{number}\"\nusers = [\"root\", \"app\"]\n\
         pattern = '^select .* from orders_{number} where'\nroute = \"replica\"\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateways_differ_in_what_their_names_say() {
        let has = |kind, part: &str| service(kind).contains(part);
        for kind in [Kind::Uring, Kind::Private, Kind::Epoll] {
            assert!(has(kind, "router = \"read-connection\"\n"), "{kind}");
        }
        for kind in [Kind::Split, Kind::OneRule, Kind::ManyRules, Kind::Logged] {
            assert!(has(kind, "router = \"read-write-split\"\n"), "{kind}");
        }
        for kind in KINDS {
            let is_private = kind == Kind::Private;
            assert_eq!(has(kind, "multiplex = false\n"), is_private, "{kind}");
            assert_eq!(io(kind).contains("epoll"), kind == Kind::Epoll, "{kind}");
        }
        let folder = Folder::new("contender").unwrap();
        for kind in KINDS {
            let is_logged = query_log(kind, &folder).contains("all = true\n");
            assert_eq!(is_logged, kind == Kind::Logged, "{kind}");
        }
        let rules = |kind| service(kind).matches("[[rule]]").count();
        let counts = [Kind::Split, Kind::OneRule, Kind::ManyRules].map(rules);
        assert_eq!(counts, [0, 1, 200]);
    }

    #[test]
    fn names_differ_and_are_values_of_csv() {
        let names: std::collections::BTreeSet<&str> = KINDS.iter().map(|it| it.name()).collect();
        assert_eq!(names.len(), KINDS.len());
        assert!(names.iter().all(|it| !it.contains([',', '"', '\n'])));
    }
}
