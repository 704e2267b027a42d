//! A MariaDB with the engine Spider before other servers: each of its tables is one of theirs, and
//! all its clients share few connections to each server.
//!
//! Debian's package `mariadb-plugin-spider` has the engine, and a file of settings by which each
//! server loads it that reads Debian's settings. Servers of tests read no settings, so this is the
//! only one that has it. The engine makes its tables in `mysql` when it is loaded.
//!
//! Its settings spare a SELECT what it can do without:
//!
//! * `spider_conn_recycle_mode=1`: who ends a transaction gives its connections to others.
//! * `spider_semi_trx=OFF`: a statement outside of transactions is sent as it is. By default START
//!   TRANSACTION and COMMIT go around it, which are two round trips more.
//! * No threads that keep the statistics of tables fresh. Such a thread keeps one of the
//!   connections to its server. Instead the first statement on a table asks for them.

use anyhow::Result;

use crate::server::Server;
use crate::topology::small;

/// The server's error if a statement has waited for a connection to the end of its time.
pub const NO_CONNECTION: u16 = 12713;

/// See the module's head. An interval is in seconds, and this is the longest.
const SETTINGS: &[&str] = &[
    "conn-recycle-mode=1",
    "semi-trx=OFF",
    "sts-bg-mode=0",
    "crd-bg-mode=0",
    "sts-interval=2147483647",
    "crd-interval=2147483647",
];

/// How it stands before the servers.
#[derive(Clone, Copy, Debug)]
pub struct Spider<'a> {
    /// Who it logs in to them as, without a password.
    pub user: &'a str,
    /// The database of the tables, here and there.
    pub database: &'a str,
    /// The tables' name, to which the number of the server is appended, from 1. It is the same here
    /// and there.
    pub table: &'a str,
    /// The columns of each, in brackets.
    pub columns: &'a str,
    /// The most connections to a server.
    pub connections: u32,
    /// How long a statement waits for one.
    pub wait_seconds: u32,
    /// The most clients at a time.
    pub clients: u32,
}

impl Spider<'_> {
    /// Starts it. It connects to a server when a statement asks for a row.
    pub fn start(&self, servers: &[Server]) -> Result<Server> {
        let Spider {
            user,
            database,
            table,
            columns,
            ..
        } = self;
        let mut launch = small()
            .with("--plugin-load-add=ha_spider")
            .with(format!("--spider-max-connections={}", self.connections))
            .with(format!("--spider-conn-wait-timeout={}", self.wait_seconds))
            .with(format!("--max-connections={}", self.clients + SPARE))
            // A statement opens its table again if that is not there.
            .with(format!("--table-open-cache={TABLES_OPEN}"));
        for setting in SETTINGS {
            launch = launch.with(format!("--spider-{setting}"));
        }
        let server = launch.start()?;
        let mut root = server.connect()?;
        root.run(&format!("create database {database}"))?;
        for (number, remote) in (1..).zip(servers) {
            let port = remote.port();
            root.run(&format!(
                "create server s{number} foreign data wrapper mysql options \
                 (host '127.0.0.1', port {port}, user '{user}', database '{database}')"
            ))?;
            root.run(&format!(
                "create table {database}.{table}{number} {columns} engine=spider \
                 comment='wrapper \"mysql\", server \"s{number}\", table \"{table}{number}\"'"
            ))?;
        }
        Ok(server)
    }
}

/// Connections for who sets the server up and looks at it.
const SPARE: u32 = 10;

/// MariaDB's default, which [`small`] lowers.
const TABLES_OPEN: u32 = 2000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::many;

    /// Connections to a server, but that of who asks.
    fn connection_count(server: &Server) -> String {
        let mut root = server.connect().unwrap();
        let count = "select count(*) from information_schema.processlist \
                     where id <> connection_id()";
        root.value(count).unwrap().unwrap()
    }

    #[test]
    fn statements_wait_for_a_connection_and_give_up() {
        let servers = many(2).unwrap();
        for (number, server) in (1..).zip(&servers) {
            let mut root = server.connect().unwrap();
            root.run("create database d").unwrap();
            let definition = format!("create table d.t{number} (id int primary key, a int)");
            root.run(&definition).unwrap();
            root.run(&format!("insert into d.t{number} values (7, {number})"))
                .unwrap();
        }
        let spider = Spider {
            user: "root",
            database: "d",
            table: "t",
            columns: "(id int primary key, a int)",
            connections: 1,
            wait_seconds: 1,
            clients: 2,
        };
        let front = spider.start(&servers).unwrap();
        let [mut one, mut other] = [(); 2].map(|()| front.connect().unwrap());
        let of_server = |number: u32| format!("select a from d.t{number} where id = 7");
        for number in [1, 2] {
            let value = one.value(&of_server(number)).unwrap();
            assert_eq!(value, Some(number.to_string()));
        }
        // A transaction keeps its connection, and no other one is opened.
        one.run("begin").unwrap();
        one.run(&of_server(1)).unwrap();
        let waited = other.error_number(&of_server(1)).unwrap();
        assert_eq!(waited, NO_CONNECTION);
        assert_eq!(other.error_number(&of_server(2)).unwrap(), 0);
        one.run("commit").unwrap();
        assert_eq!(other.error_number(&of_server(1)).unwrap(), 0);
        for server in &servers {
            assert_eq!(connection_count(server), "1");
        }
    }

    #[test]
    fn other_servers_know_nothing_of_it() {
        let server = small().start().unwrap();
        let engine = "select count(*) from information_schema.engines where engine = 'SPIDER'";
        let count = server.connect().unwrap().value(engine).unwrap();
        assert_eq!(count.as_deref(), Some("0"));
    }
}
