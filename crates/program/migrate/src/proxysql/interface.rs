//! `interfaces`: where clients connect, and what they get there.

use std::net::IpAddr;

use crate::note::{Kind, Note};
use crate::output::{Block, Names};
use crate::port;

use super::hostgroup::Cluster;
use super::variable::Variables;

/// Where ProxySQL listens if its file does not say it.
const INTERFACES: &str = "0.0.0.0:6033";

/// The port of that.
const PORT: &str = "6033";

/// A service: a cluster, at all places or at one that rules name.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) name: String,
    pub(super) cluster: usize,
    /// The port of its place, if rules name it.
    pub(super) port: Option<u16>,
}

/// Where clients connect.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) services: Vec<Service>,
    /// `listen`.
    pub(super) listen: String,
    pub(super) listeners: Vec<Block>,
    pub(super) notes: Vec<Note>,
}

/// The places, of which those with these ports have a service of their own.
pub(super) fn read(variables: &mut Variables<'_>, ports: &[u16], clusters: &[Cluster]) -> Places {
    let mut names = Names::default();
    let mut services: Vec<Service> = Vec::new();
    let mut listen = None;
    let mut listeners = Vec::new();
    let text = variables.mysql.text(&["interfaces"]).unwrap_or(INTERFACES);
    let parts = text
        .split([';', ','])
        .map(str::trim)
        .filter(|it| !it.is_empty());
    for place in parts {
        let port = port_of(place).filter(|it| ports.contains(it));
        let found = services.iter().position(|it| it.port == port);
        let service = found.unwrap_or_else(|| {
            let name = match port {
                Some(port) => format!("port-{port}"),
                None => clusters
                    .first()
                    .map(|it| it.name.clone())
                    .unwrap_or_default(),
            };
            services.push(Service {
                name: names.make(&name),
                cluster: 0,
                port,
            });
            services.len() - 1
        });
        let address = match place.starts_with('/') {
            true => None,
            false => address(variables, place),
        };
        if service == 0 && listen.is_none() && address.is_some() {
            listen = address;
            continue;
        }
        let mut block = Block::default();
        match address {
            Some(address) => block.set("address", address),
            None => block.set("socket", place),
        }
        let name = services.get(service).map(|it| it.name.clone());
        block.set("service", name.unwrap_or_default());
        listeners.push(block);
    }
    let notes = others(
        variables,
        clusters,
        &mut names,
        (&mut services, &mut listeners),
    );
    Places {
        services,
        listen: listen.unwrap_or_default(),
        listeners,
        notes,
    }
}

/// Services of the other clusters, at sockets: their users have to be led there.
fn others(
    variables: &Variables<'_>,
    clusters: &[Cluster],
    names: &mut Names,
    (services, listeners): (&mut Vec<Service>, &mut Vec<Block>),
) -> Vec<Note> {
    let mut row = variables.mysql_row();
    for (cluster, it) in clusters.iter().enumerate().skip(1) {
        let name = names.make(&it.name);
        let text = format!(
            "ProxySQL finds the hostgroup by the user, and a gateway by the place where a client \
             connects: give the service `{name}` an address, and let its users connect there"
        );
        row.note("interfaces", Kind::ToDo, text);
        let mut block = Block::default();
        if let Some(note) = row.notes.last() {
            block.comment(note.comment());
        }
        block.set("socket", format!("{name}.sock"));
        block.set("service", name.clone());
        listeners.push(block);
        services.push(Service {
            name,
            cluster,
            port: None,
        });
    }
    row.notes
}

fn port_of(place: &str) -> Option<u16> {
    place.rsplit_once(':')?.1.parse().ok()
}

/// An address and a port. A name is noted.
fn address(variables: &mut Variables<'_>, place: &str) -> Option<String> {
    let (host, port) = place.rsplit_once(':')?;
    let bare = host.trim_matches(['[', ']']);
    let address = match bare {
        "localhost" => "127.0.0.1",
        _ if bare.parse::<IpAddr>().is_ok() => bare,
        _ => {
            let text = "listeners have addresses and no names: write the address";
            variables.mysql.note("interfaces", Kind::ToDo, text);
            "127.0.0.1"
        }
    };
    let port = match port::port(port) {
        Some(_) => port,
        None => {
            let text = port::no_port(port, PORT);
            variables.mysql.note("interfaces", Kind::ToDo, text);
            PORT
        }
    };
    match address.contains(':') {
        true => Some(format!("[{address}]:{port}")),
        false => Some(format!("{address}:{port}")),
    }
}
