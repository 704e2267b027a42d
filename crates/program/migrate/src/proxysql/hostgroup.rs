//! Hostgroups: which servers belong together, and what a hostgroup is.

use crate::known::{Known, known, same};
use crate::note::{Kind, Note};
use crate::output::{Block, Names, Output, seconds, texts};

use super::File;
use super::interface::Service;
use super::server::Server;
use super::user::User;
use super::variable::Variables;

/// Servers that a monitor watches, and that a service has.
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) name: String,
    /// The names of its servers.
    servers: Vec<String>,
    writer: Option<i64>,
    readers: Vec<i64>,
    kind: Relation,
    /// What each of its hostgroups with one server is.
    single: Vec<(i64, String)>,
    comment: Option<String>,
}

/// How servers belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    /// The monitor finds out.
    Unknown,
    Galera,
    /// All are alike: there is one hostgroup.
    Alike,
}

/// Where a hostgroup's statements go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    Primary,
    Replica,
    Server(String),
    /// Any server of a cluster whose servers are alike.
    Any,
}

/// The tables that pair hostgroups, with the columns of readers.
const TABLES: [(&str, Relation); 4] = [
    ("mysql_replication_hostgroups", Relation::Unknown),
    ("mysql_galera_hostgroups", Relation::Galera),
    ("mysql_group_replication_hostgroups", Relation::Unknown),
    ("mysql_aws_aurora_hostgroups", Relation::Unknown),
];

/// The clusters. Clients of `listen` get the first one.
pub(super) fn read(
    file: &File<'_>,
    servers: &[Server],
    users: &[User],
    notes: &mut Vec<Note>,
) -> Vec<Cluster> {
    let mut clusters = Vec::new();
    let mut names = Names::default();
    for (table, kind) in TABLES {
        for mut row in file.rows(table, notes) {
            let writer = row.number(&["writer_hostgroup"]);
            let readers = [
                row.number(&["reader_hostgroup"]),
                row.number(&["backup_writer_hostgroup"]),
            ];
            let comment = row.text(&["comment"]).map(str::to_owned);
            if let Some(writer) = writer {
                row.name_by(&writer.to_string());
            }
            if kind == Relation::Unknown && table != "mysql_replication_hostgroups" {
                let text = "the monitor sees what is writable and what replicates from what, as \
                            MariaDB tells it, and no other kind of cluster: try it before you \
                            move";
                row.note_all(Kind::ToDo, text);
            }
            row.judge_rest(KNOWN);
            notes.extend(row.notes);
            let wanted = match (&comment, writer) {
                (Some(comment), _) => comment.clone(),
                (None, writer) => format!("hostgroup-{}", writer.unwrap_or_default()),
            };
            clusters.push(Cluster {
                name: names.make(&wanted),
                servers: Vec::new(),
                writer,
                readers: readers.into_iter().flatten().collect(),
                kind,
                single: Vec::new(),
                comment: None,
            });
        }
    }
    if clusters.is_empty() {
        clusters.push(inferred(servers, users));
    }
    let home = users.first().map(|it| it.hostgroup);
    clusters.sort_by_key(|it| !home.is_some_and(|home| it.has(home)));
    fill(&mut clusters, servers);
    clusters.retain(|it| !it.servers.is_empty());
    clusters
}

/// A cluster of all servers, of a file that does not pair hostgroups.
fn inferred(servers: &[Server], users: &[User]) -> Cluster {
    let mut hostgroups: Vec<i64> = servers
        .iter()
        .flat_map(|it| it.hostgroups.iter().copied())
        .collect();
    hostgroups.sort_unstable();
    hostgroups.dedup();
    let is_there = |it: &i64| hostgroups.contains(it);
    let home = users.iter().map(|it| it.hostgroup).find(is_there);
    let writer = home.or(hostgroups.first().copied());
    let is_alone = hostgroups.len() < 2;
    let comment = match is_alone {
        true => {
            "differs: a client stays at its server; ProxySQL takes one for each statement, by \
             weights"
        }
        false => {
            "differs: no table pairs hostgroups. The one of most users is taken for the primary, \
             and the others for its replicas; the monitor finds out which server is what"
        }
    };
    Cluster {
        name: format!("hostgroup-{}", writer.unwrap_or_default()),
        servers: Vec::new(),
        writer: writer.filter(|_| !is_alone),
        readers: hostgroups
            .into_iter()
            .filter(|it| Some(*it) != writer || is_alone)
            .collect(),
        kind: match is_alone {
            true => Relation::Alike,
            false => Relation::Unknown,
        },
        single: Vec::new(),
        comment: Some(comment.to_owned()),
    }
}

/// Gives each server to the first cluster that has one of its hostgroups, else to the first.
fn fill(clusters: &mut [Cluster], servers: &[Server]) {
    for server in servers {
        let has = |it: &Cluster| server.hostgroups.iter().any(|group| it.has(*group));
        let place = clusters.iter().position(has).unwrap_or(0);
        let Some(cluster) = clusters.get_mut(place) else {
            return;
        };
        cluster.servers.push(server.name.clone());
        for group in &server.hostgroups {
            let members = servers.iter().filter(|it| it.hostgroups.contains(group));
            if members.count() == 1 {
                cluster.single.push((*group, server.name.clone()));
            }
        }
    }
}

impl Cluster {
    fn has(&self, hostgroup: i64) -> bool {
        self.writer == Some(hostgroup) || self.readers.contains(&hostgroup)
    }

    /// What its hostgroup is.
    pub(super) fn target(&self, hostgroup: i64) -> Option<Target> {
        if self.kind == Relation::Alike {
            return self.has(hostgroup).then_some(Target::Any);
        }
        if self.writer == Some(hostgroup) {
            return Some(Target::Primary);
        }
        let single = self.single.iter().find(|(group, _)| *group == hostgroup);
        // A paired hostgroup may get more servers than the file has.
        match single {
            Some((_, name)) if self.comment.is_some() || !self.has(hostgroup) => {
                Some(Target::Server(name.clone()))
            }
            _ => self.has(hostgroup).then_some(Target::Replica),
        }
    }
}

/// Writes a monitor for each cluster.
pub(super) fn write_monitors(
    clusters: &[Cluster],
    servers: &[Server],
    variables: &Variables<'_>,
    output: &mut Output,
) {
    for cluster in clusters {
        let mut block = Block::default();
        if cluster.servers.len() < servers.len() {
            block.set("servers", texts(cluster.servers.clone()));
        }
        variables.write_monitor(&mut block);
        if cluster.kind == Relation::Galera {
            block.set("kind", "galera");
        }
        output.add("monitor", block);
    }
}

/// Writes the services.
pub(super) fn write_services(
    clusters: &[Cluster],
    servers: &[Server],
    variables: &Variables<'_>,
    services: &[Service],
    output: &mut Output,
) {
    for service in services {
        let Some(cluster) = clusters.get(service.cluster) else {
            continue;
        };
        let mut block = Block::default();
        if let Some(comment) = &cluster.comment {
            block.comment(comment.as_str());
        }
        block.set("name", service.name.clone());
        if cluster.servers.len() < servers.len() {
            block.set("servers", texts(cluster.servers.clone()));
        }
        if cluster.kind != Relation::Alike {
            split(cluster, servers, &mut block);
        }
        variables.write_service(&mut block);
        output.add("service", block);
    }
}

fn split(cluster: &Cluster, servers: &[Server], block: &mut Block) {
    block.set("router", "read-write-split");
    let is_member = |it: &&Server| cluster.servers.contains(&it.name);
    let mut lags: Vec<u64> = servers
        .iter()
        .filter(is_member)
        .filter_map(|it| it.lag)
        .collect();
    lags.sort_unstable();
    lags.dedup();
    if let Some(lag) = lags.first() {
        if 1 < lags.len() {
            block.comment("differs: replicas have one limit of lag, the lowest of all");
        }
        block.set("lag_max", seconds(lag.saturating_mul(1000)));
    }
    block.explain(
        "causal_reads",
        "off",
        "As in ProxySQL. Without this line, sessions read what they wrote.",
    );
}

const KNOWN: &[Known] = &[
    known(
        "check_type",
        &["read_only", "innodb_read_only"],
        Kind::Differs,
        "a server is writable if `read_only` is OFF",
    ),
    same("active"),
    known(
        "max_writers",
        &["1", "true"],
        Kind::Differs,
        "one member takes writes",
    ),
    known(
        "writer_is_also_reader",
        &["0", "2", "false"],
        Kind::Differs,
        "the primary answers reads if no replica does",
    ),
    known(
        "max_transactions_behind",
        &["0", "false"],
        Kind::Differs,
        "a member serves as long as it is synced",
    ),
    same("offline_hostgroup"),
    known("*", &[], Kind::LeftOut, "the monitor has nothing like it"),
];
