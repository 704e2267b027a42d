//! Where clients connect: the ports and sockets, and what the start says of them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anyhow::Result;
use errcode::{ClientError, ER_CON_COUNT_ERROR};
use runtime::{Address, ListenError, Listener, Refusal, Shortage};
use settings::Configuration;

use crate::configuration::{self, Place};

/// The longest path in the kernel's address of a unix socket, without its final zero.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// What is bound before anything else is done.
pub(crate) struct Bound {
    /// For clients.
    pub(crate) ports: Ports,
    /// For monitors.
    pub(crate) monitoring: Option<Listener>,
    /// For operators.
    pub(crate) admin: Ports,
}

/// Where clients connect.
pub(crate) struct Ports {
    /// What is bound, with its name.
    places: Vec<(Listener, String)>,
    /// Unix sockets, which are created once the data directory is open.
    sockets: Vec<Place>,
}

impl Ports {
    /// Binds the TCP ports of a configuration.
    pub(crate) fn open(configuration: &Configuration) -> Result<Ports> {
        Ports::of(configuration::client_places(configuration)?)
    }

    /// Binds the TCP port for operators, if there is one.
    pub(crate) fn open_for_admins(configuration: &Configuration) -> Result<Ports> {
        Ports::of(configuration::admin_places(configuration)?)
    }

    fn of(places: Vec<Place>) -> Result<Ports> {
        let is_socket = |place: &Place| matches!(place.address, Address::Unix(_));
        let (sockets, tcp) = places.into_iter().partition(is_socket);
        let mut ports = Ports {
            places: Vec::new(),
            sockets,
        };
        Vec::into_iter(tcp).try_for_each(|place| ports.bind(place))?;
        Ok(ports)
    }

    fn bind(&mut self, place: Place) -> Result<()> {
        let listener = Listener::bind(&place.address).map_err(explain)?;
        self.places.push((listener, place.name));
        Ok(())
    }

    /// Creates the unix sockets, now that the data directory is there.
    pub(crate) fn bind_sockets(&mut self) -> Result<()> {
        std::mem::take(&mut self.sockets)
            .into_iter()
            .try_for_each(|place| self.bind(place))
    }

    /// The addresses that are bound.
    pub(crate) fn addresses(&self) -> Vec<Address> {
        let listeners = self.places.iter();
        listeners.map(|(it, _)| it.address().clone()).collect()
    }

    /// What is bound, with its name.
    pub(crate) fn into_listeners(self) -> Vec<(Listener, String)> {
        self.places
    }
}

/// What happens to clients that come when there is no file descriptor left.
pub(crate) fn refusal() -> Refusal {
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

/// The kernel's reason, and what to do about it.
pub(crate) fn explain(error: ListenError) -> anyhow::Error {
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

/// The first line of a start: who listens where.
pub(crate) fn listening(bound: &[Address]) -> String {
    let names: Vec<_> = bound.iter().map(ToString::to_string).collect();
    let version = env!("CARGO_PKG_VERSION");
    format!("plateau {version} listening on {}", names.join(" and "))
}

/// How a client connects: without a user.
pub(crate) fn client(bound: &[Address]) -> String {
    match bound.first() {
        Some(Address::Tcp(tcp)) => format!("mariadb -h{} -P{}", reachable(tcp.ip()), tcp.port()),
        Some(Address::Unix(path)) => format!("mariadb -S{}", path.display()),
        None => String::new(),
    }
}

/// An address of this machine at which a listener of `ip` answers.
fn reachable(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    }
}
