//! `mysql_servers`: the servers. One that has rows of several hostgroups is one server.

use crate::known::{Known, boolean, known, left_out};
use crate::note::{Kind, Note};
use crate::output::{Block, Names, Output};
use crate::port::{no_port, port};

use super::File;
use super::row::Row;

/// Most connections that a settings file takes.
const CONNECTIONS_MAX: u64 = 100_000;

/// The port of servers that name none.
const PORT: &str = "3306";

/// A server.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) name: String,
    /// Its address or socket.
    place: (&'static str, String),
    pub(super) hostgroups: Vec<i64>,
    /// Seconds that it may be behind.
    pub(super) lag: Option<u64>,
    connections: u64,
    comments: Vec<String>,
    is_encrypted: bool,
}

/// All servers, in the order of their rows.
pub(super) fn read(file: &File<'_>, notes: &mut Vec<Note>) -> Vec<Server> {
    let mut servers: Vec<Server> = Vec::new();
    let mut names = Names::default();
    for mut row in file.rows("mysql_servers", notes) {
        let Some(host) = row.text(&["hostname", "address"]) else {
            row.note_all(Kind::Unknown, "it has no address");
            notes.extend(row.notes);
            continue;
        };
        row.name_by(host);
        let hostgroup = row.number(&["hostgroup_id", "hostgroup"]).unwrap_or(0);
        let place = place(&mut row, host);
        let lag = row.count(&["max_replication_lag"]);
        let connections = row.count(&["max_connections"]).unwrap_or(0);
        let is_encrypted = row.text(&["use_ssl"]).and_then(boolean) == Some(true);
        status(&mut row);
        let comment = row.text(&["comment"]).map(str::to_owned);
        let mut block = Block::default();
        row.judge_rest(KNOWN);
        let told = row.notes.iter().map(Note::comment);
        let comments = comment.into_iter().chain(told);
        match servers.iter_mut().find(|it| it.place == place) {
            Some(server) => {
                server.hostgroups.push(hostgroup);
                server.lag = server.lag.into_iter().chain(lag).min();
                server.connections = server.connections.saturating_add(connections);
                server.comments.extend(comments);
                server.is_encrypted |= is_encrypted;
            }
            None => servers.push(Server {
                name: names.make(host.rsplit('/').next().unwrap_or(host)),
                place,
                hostgroups: vec![hostgroup],
                lag,
                connections,
                comments: comments.collect(),
                is_encrypted,
            }),
        }
        notes.extend(row.finish(KNOWN, &mut block));
    }
    servers
}

fn place(row: &mut Row<'_>, host: &str) -> (&'static str, String) {
    let text = row.text(&["port"]).unwrap_or(PORT);
    if text == "0" || host.starts_with('/') {
        return ("socket", host.to_owned());
    }
    let found = port(text);
    if found.is_none() {
        row.note("port", Kind::ToDo, no_port(text, PORT));
    }
    let port = found.map_or(PORT.to_owned(), |it| it.to_string());
    let address = match host.contains(':') && !host.starts_with('[') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    };
    ("address", address)
}

fn status(row: &mut Row<'_>) {
    let Some(status) = row.text(&["status"]) else {
        return;
    };
    let order = match status.to_ascii_uppercase().as_str() {
        "ONLINE" | "0" | "SHUNNED" | "1" => return,
        "OFFLINE_SOFT" | "2" => "drain",
        _ => "maintenance",
    };
    let text = format!(
        "the file has no state: an operator says SET SERVER .. = '{order}', or the section is \
         removed"
    );
    row.note("status", Kind::ToDo, text);
}

/// Writes the servers.
pub(super) fn write(servers: &[Server], output: &mut Output) {
    for server in servers {
        let mut block = Block::default();
        for comment in &server.comments {
            block.comment(comment.as_str());
        }
        block.set("name", server.name.clone());
        block.set(server.place.0, server.place.1.clone());
        if server.is_encrypted {
            block.set("tls", "required");
        }
        if server.connections != 0 {
            let count = server.connections.min(CONNECTIONS_MAX);
            block.set("max_connections", i64::try_from(count).unwrap_or_default());
        }
        output.add("server", block);
    }
}

const KNOWN: &[Known] = &[
    known(
        "weight",
        &["1"],
        Kind::LeftOut,
        "servers have no weight: a read goes to the replica with the fewest statements under way",
    ),
    known(
        "compression",
        &["0", "false"],
        Kind::LeftOut,
        "connections are not compressed",
    ),
    known(
        "gtid_port",
        &["0", "false"],
        Kind::Differs,
        "the monitor asks each server for its GTID, so no `proxysql_binlog_reader` is needed: \
         `causal_reads = \"session\"` of the service",
    ),
    known(
        "max_latency_ms",
        &["0", "false"],
        Kind::LeftOut,
        "`balance = \"response-time\"` of the service prefers servers that answer soon",
    ),
    left_out("attributes", "servers have no attributes here"),
];
