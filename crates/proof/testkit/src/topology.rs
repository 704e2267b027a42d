//! Several MariaDB servers that belong together: a primary with replicas, a Galera cluster, many
//! small ones.
//!
//! All are small, and each topology is started one server after the other. Each has the account
//! [`MONITOR`], which may see replication, and [`POOR`], which has no rights.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::client::Client;
use crate::free_port;
use crate::server::{Launch, Server, ServerKind};

/// Name and password of an account that may see how replication does.
pub const MONITOR: &str = "monitor";

/// Name and password of an account without rights.
pub const POOR: &str = "poor";

/// Name and password of the account by which replicas log in.
const REPLICATION: &str = "repl";

/// Ports are tried again when another process has taken one.
const TRIES: u32 = 3;

/// A member that is not synced by then will not be.
const SYNC_LIMIT: Duration = Duration::from_secs(60);

/// Members need their processors while they are waited for.
const SYNC_PAUSE: Duration = Duration::from_millis(20);

/// `wsrep_local_state` of a member that has the state of the cluster.
const SYNCED: &str = "4";

/// Galera's library, of Debian's package galera-4.
const PROVIDER: &str = "/usr/lib/galera/libgalera_smm.so";

/// A MariaDB that takes little memory.
pub fn small() -> Launch {
    let options = [
        "innodb-buffer-pool-size=8M",
        "innodb-log-file-size=4M",
        "innodb-log-buffer-size=1M",
        "aria-pagecache-buffer-size=1M",
        "key-buffer-size=64K",
        "table-open-cache=100",
        "performance-schema=OFF",
    ];
    let launch = Launch::new(ServerKind::MariaDb);
    options
        .iter()
        .fold(launch, |launch, option| launch.with(format!("--{option}")))
}

/// Small servers that know nothing of each other.
pub fn many(count: usize) -> Result<Vec<Server>> {
    (0..count)
        .map(|_| {
            let server = small().start()?;
            create_accounts(&mut server.connect()?)?;
            Ok(server)
        })
        .collect()
}

/// A primary and its replicas, by GTID.
#[derive(Debug)]
pub struct Replicated {
    /// The primary first.
    pub servers: Vec<Server>,
}

impl Replicated {
    /// Starts a primary and `replica_count` replicas, and waits until all have its accounts.
    pub fn start(replica_count: usize) -> Result<Replicated> {
        Replicated::start_with(replica_count, |launch| launch)
    }

    /// The same, each with more options.
    pub fn start_with(
        replica_count: usize,
        prepare: impl Fn(Launch) -> Launch,
    ) -> Result<Replicated> {
        let mut servers = Vec::new();
        for number in 1..=replica_count + 1 {
            let access = if number == 1 { "OFF" } else { "ON" };
            let launch = small()
                .with(format!("--server-id={number}"))
                .with("--log-bin=binlog")
                .with("--log-slave-updates")
                .with(format!("--read-only={access}"));
            servers.push(prepare(launch).start()?);
        }
        let topology = Replicated { servers };
        let mut primary = topology.connect(0)?;
        create_accounts(&mut primary)?;
        for replica in 1..=replica_count {
            topology.replicate(replica, 0)?;
            topology.wait_for_replica(replica, 0)?;
        }
        Ok(topology)
    }

    /// A session of root.
    pub fn connect(&self, server: usize) -> Result<Client> {
        self.servers[server].connect()
    }

    /// Makes a server a replica of another, from its position on.
    pub fn replicate(&self, replica: usize, source: usize) -> Result<()> {
        let port = self.servers[source].port();
        let mut client = self.connect(replica)?;
        client.run(&format!(
            "change master to master_host='127.0.0.1', master_port={port}, \
             master_user='{REPLICATION}', master_password='{REPLICATION}', \
             master_use_gtid=slave_pos, master_connect_retry=1"
        ))?;
        client.run("start slave")?;
        Ok(())
    }

    /// Waits until a replica has all that its source has now.
    pub fn wait_for_replica(&self, replica: usize, source: usize) -> Result<()> {
        let position = self.connect(source)?.value("select @@gtid_binlog_pos")?;
        let position = position.context("a binary log has a position")?;
        let mut client = self.connect(replica)?;
        let waited = client.value(&format!("select master_gtid_wait('{position}', 60)"))?;
        if waited.as_deref() != Some("0") {
            bail!("replica {replica} does not reach {position}");
        }
        Ok(())
    }
}

/// A Galera cluster. Its members start from the same data, so that none has to copy it. A copy by
/// rsync fails if the tests run as root.
#[derive(Debug)]
pub struct Galera {
    /// The first is the one that the cluster was begun with.
    pub servers: Vec<Server>,
}

impl Galera {
    /// Starts a cluster and waits until all members are synced.
    pub fn start(count: usize) -> Result<Galera> {
        Galera::start_with(count, |launch| launch)
    }

    /// The same, each member with more options.
    pub fn start_with(count: usize, prepare: impl Fn(Launch) -> Launch) -> Result<Galera> {
        let begin = |launch: Launch| Ok(prepare(launch.with("--wsrep-new-cluster")));
        let (first, port) = start_member(&[], begin, 0)?;
        let mut servers = vec![first];
        let mut client = servers[0].connect()?;
        let state = status(&mut client, "wsrep_cluster_state_uuid")?;
        let mut ports = vec![port];
        for _ in 1..count {
            let seed = |launch: Launch| {
                // So far only members have come, which changes no data.
                let committed = status(&mut client, "wsrep_last_committed")?;
                let saved = format!(
                    "# GALERA saved state\nversion: 2.1\nuuid:    {state}\nseqno:   \
                     {committed}\nsafe_to_bootstrap: 0\n"
                );
                Ok(prepare(launch.with_data_file("grastate.dat", saved)))
            };
            let (member, port) = start_member(&ports, seed, servers.len())?;
            ports.push(port);
            servers.push(member);
            for server in &servers {
                wait_until_synced(server)?;
            }
        }
        create_accounts(&mut client)?;
        Ok(Galera { servers })
    }
}

/// Waits until a member has the state of the cluster. One whose ports were taken by others never
/// has it.
#[allow(
    clippy::disallowed_methods,
    reason = "a real process is awaited, in real time"
)]
fn wait_until_synced(member: &Server) -> Result<()> {
    let begun = Instant::now();
    let mut client = member.connect()?;
    loop {
        let state = status(&mut client, "wsrep_local_state");
        if state.as_deref().is_ok_and(|it| it == SYNCED) {
            return Ok(());
        }
        if SYNC_LIMIT < begun.elapsed() {
            bail!("a member is in state {state:?}:\n{}", member.log());
        }
        std::thread::sleep(SYNC_PAUSE);
    }
}

/// A member that is synced, and the port by which others find it.
fn start_member(
    others: &[u16],
    mut prepare: impl FnMut(Launch) -> Result<Launch>,
    number: usize,
) -> Result<(Server, u16)> {
    let mut tries = TRIES;
    loop {
        let port = free_port()?;
        let launch = prepare(member_launch(others, port, number)?)?;
        tries -= 1;
        let started = launch.start().and_then(|server| {
            wait_until_synced(&server)?;
            Ok(server)
        });
        match started {
            Ok(server) => return Ok((server, port)),
            Err(error) if tries == 0 => return Err(error),
            Err(_) => {}
        }
    }
}

fn member_launch(others: &[u16], port: u16, number: usize) -> Result<Launch> {
    let address = |port: &u16| format!("127.0.0.1:{port}");
    let others: Vec<String> = others.iter().map(address).collect();
    let transfer = free_port()?;
    Ok(small()
        .with("--wsrep-on=ON")
        .with(format!("--wsrep-provider={PROVIDER}"))
        .with("--binlog-format=ROW")
        .with("--innodb-autoinc-lock-mode=2")
        .with("--wsrep-sst-method=skip")
        .with("--wsrep-node-address=127.0.0.1")
        .with(format!("--wsrep-node-name=n{number}"))
        .with(format!(
            "--wsrep-cluster-address=gcomm://{}",
            others.join(",")
        ))
        .with(format!(
            "--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:{port};\
             ist.recv_addr=127.0.0.1:{transfer};gcache.size=8M"
        )))
}

/// A value of SHOW STATUS.
fn status(client: &mut Client, name: &str) -> Result<String> {
    let rows = client.rows(&format!(
        "show global status where variable_name = '{name}'"
    ))?;
    let value = rows.into_iter().flatten().nth(1).flatten();
    let value = value.with_context(|| format!("the server has {name}"))?;
    Ok(String::from_utf8(value)?)
}

fn create_accounts(client: &mut Client) -> Result<()> {
    for name in [MONITOR, POOR, REPLICATION] {
        client.run(&format!("create user {name}@'%' identified by '{name}'"))?;
    }
    client.run(&format!("grant slave monitor on *.* to {MONITOR}@'%'"))?;
    client.run(&format!(
        "grant replication slave on *.* to {REPLICATION}@'%'"
    ))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait_until;

    #[test]
    fn sixteen_small_servers() {
        let mut servers = many(16).unwrap();
        for server in &mut servers {
            assert!(server.connect().is_ok());
            let resident_bytes = server.process().resident_bytes().unwrap();
            assert!(resident_bytes < 128 << 20, "{resident_bytes}");
        }
    }

    #[test]
    fn replicas_have_what_the_primary_has() {
        let topology = Replicated::start(2).unwrap();
        let mut primary = topology.connect(0).unwrap();
        primary.run("create database d").unwrap();
        primary.run("create table d.t (a int)").unwrap();
        primary.run("insert into d.t values (7)").unwrap();
        for replica in [1, 2] {
            topology.wait_for_replica(replica, 0).unwrap();
            let value = topology
                .connect(replica)
                .unwrap()
                .value("select a from d.t");
            assert_eq!(value.unwrap().as_deref(), Some("7"));
        }
    }

    #[test]
    fn members_have_what_each_writes() {
        let cluster = Galera::start(3).unwrap();
        for (number, server) in cluster.servers.iter().enumerate() {
            let mut client = server.connect().unwrap();
            client.run(&format!("create database d{number}")).unwrap();
        }
        for server in &cluster.servers {
            let mut client = server.connect().unwrap();
            wait_until("all three are there", || {
                let count = "select count(*) from information_schema.schemata \
                             where schema_name in ('d0', 'd1', 'd2')";
                client.value(count).unwrap().as_deref() == Some("3")
            });
        }
    }
}
