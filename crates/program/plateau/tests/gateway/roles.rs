//! Where clients go by what their servers are, and what they are told once these fail.

use testkit::topology::Replicated;

use super::*;

/// COM_RESET_CONNECTION.
const RESET_CONNECTION: u8 = 31;

/// A primary and two replicas with the accounts of these tests.
pub(crate) fn replicated() -> Replicated {
    let topology = Replicated::start(2).expect("the servers start");
    create_accounts(&mut topology.connect(0).expect("root gets in"));
    for replica in 1..=2 {
        topology.wait_for_replica(replica, 0).expect("it follows");
    }
    topology
}

/// A gateway to servers of this role.
fn gateway_to(topology: &Replicated, role: &str) -> Gateway {
    let servers: Vec<_> = topology.servers.iter().collect();
    let watch = "interval = 0.2\ntimeout = 0.5\n";
    let service = format!("{PRIVATE}role = \"{role}\"\n");
    Gateway::start(&(sections(&servers) + watch + &service), "auto")
}

#[test]
fn clients_go_to_servers_of_the_role_of_their_service() {
    let mut topology = replicated();
    let ports: Vec<_> = topology.servers.iter().map(Server::port).collect();
    let ports_of = |role: &str| {
        let gateway = gateway_to(&topology, role);
        let mut clients: Vec<_> = (0..6).map(|_| gateway.connect()).collect();
        let mut taken: Vec<_> = clients.iter_mut().map(port_of).collect();
        taken.sort_unstable();
        taken
    };
    let twice = |ports: &[u16]| {
        let mut all: Vec<_> = ports.iter().chain(ports).copied().collect();
        all.sort_unstable();
        all
    };
    assert_eq!(ports_of("any"), twice(&ports));
    assert_eq!(ports_of("primary"), [ports[0]; 6]);
    let mut of_replicas = ports_of("replica");
    of_replicas.dedup();
    let mut replicas = ports[1..].to_vec();
    replicas.sort_unstable();
    assert_eq!(of_replicas, replicas);

    let gateway = gateway_to(&topology, "replica");
    for replica in &mut topology.servers[1..] {
        replica.kill().unwrap();
    }
    // The primary serves reads that nobody else does.
    assert_eq!(port_of(&mut gateway.connect()), ports[0]);
}

#[test]
fn a_service_without_a_primary_says_so() {
    let mut topology = replicated();
    let gateway = gateway_to(&topology, "primary");
    let mut client = gateway.connect();
    assert_eq!(port_of(&mut client), topology.servers[0].port());
    topology.servers[0].kill().unwrap();
    assert_eq!(error_of(client.query("SELECT 1").unwrap()).number, 1158);
    wait_until("the primary is out", || {
        let refused = gateway.refusal("app", "secret");
        assert_eq!(refused.number, 1429);
        refused.message.contains("there is no primary")
    });
}

#[test]
fn clients_connect_and_read_without_a_primary() {
    let mut topology = replicated();
    let gateway = split::split_over(&topology);
    topology.servers[0].kill().unwrap();
    wait_until("the primary is out", || {
        gateway.log().contains("no server takes writes")
    });
    // What drivers and pools send before the first statement of their program.
    let mut client = gateway.connect();
    for text in ["SET NAMES utf8mb4", "SET autocommit = 1", "USE shop"] {
        client.run(text).expect(text);
    }
    client.ping().unwrap();
    let is_read_only = client.value("SELECT @@read_only").unwrap();
    assert_eq!(is_read_only.as_deref(), Some("1"), "it was a replica");
    assert_eq!(client.value("SELECT 1").unwrap().as_deref(), Some("1"));
    assert_eq!(
        client.error_number("CREATE TABLE t (id INT)").unwrap(),
        1429
    );
    assert_eq!(client.value("SELECT 2").unwrap().as_deref(), Some("2"));
}

#[test]
fn what_a_session_holds_on_a_server_that_is_down_ends_with_it() {
    let mut topology = replicated();
    let gateway = split::split_over(&topology);
    let mut clients = [0; 4].map(|_| gateway.connect());
    let mut probes = [0; 4].map(|_| gateway.connect());
    let port = topology.servers[0].port().to_string();
    let temporary = "CREATE TEMPORARY TABLE shop.own (id INT)";
    let holds = [temporary, temporary, "BEGIN", "SELECT GET_LOCK('a', 1)"];
    for (client, text) in clients.iter_mut().zip(holds) {
        client.run(text).expect(text);
    }
    topology.servers[0].kill().unwrap();
    // On each of the gateway's workers.
    for probe in &mut probes {
        wait_until("the primary is out", || {
            let at = probe.value("SELECT @@port").ok().flatten();
            at.is_some_and(|at| at != port)
        });
    }
    let [mut reset, mut others @ ..] = clients;
    for client in &mut others {
        let lost = error_of(client.query("SELECT 1").unwrap());
        assert_eq!((lost.number, lost.state.as_str()), (1158, "08S01"));
        assert!(lost.message.contains("db0"), "{lost}");
        assert!(client.query("SELECT 1").is_err(), "its session has ended");
    }
    // A session that is reset holds nothing.
    reset.send_command(RESET_CONNECTION, b"").unwrap();
    assert_eq!(reset.next_packet().unwrap()[0], 0);
    assert_eq!(reset.value("SELECT 1").unwrap().as_deref(), Some("1"));
}

#[test]
fn a_statement_is_not_waited_for_on_a_frozen_server() {
    let mut topology = replicated();
    let gateway = gateway_to(&topology, "primary");
    let mut client = gateway.connect();
    client.run("DO 1").unwrap();
    topology.servers[0].process().pause().unwrap();
    let error = error_of(client.query("SELECT 1").unwrap());
    topology.servers[0].process().resume().unwrap();
    assert_eq!((error.number, error.state.as_str()), (1158, "08S01"));
}
