//! `read-connection` over shared connections: each client stays at one server.

use super::admin::Watched;
use super::roles::replicated;
use super::*;

/// A service whose clients go to servers with this role.
fn service(role: &str) -> String {
    format!("[[service]]\nname = \"home\"\nrole = \"{role}\"\nwait = 5\n")
}

/// The server that the gateway's table says a client is at.
fn shown_at(operator: &mut Client, client: &Client) -> String {
    let number = client.connection_id;
    let text = format!("SELECT stays_at FROM plateau.sessions WHERE id = {number}");
    value(operator, &text)
}

#[test]
fn many_clients_of_one_server_use_few_connections() {
    let backend = backend();
    let limit = sections_with(&[&backend], "max_connections = 2\n");
    let gateway = Gateway::start(&(limit + &service("any")), "auto");
    let mut clients: Vec<_> = (0..20).map(|_| gateway.connect()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.run(&format!("SET @number = {number}")).unwrap();
        client.run("USE shop").unwrap();
    }
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(value(client, "SELECT @number"), number.to_string());
        assert_eq!(value(client, "SELECT DATABASE()"), "shop");
        let id = value(client, "SELECT CONNECTION_ID()");
        assert_eq!(id, client.connection_id.to_string());
    }
    let open = "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'app'";
    let count = value(&mut backend.connect().unwrap(), open);
    assert!(count == "1" || count == "2", "{count}");
}

#[test]
fn clients_are_spread_and_stay_where_they_are() {
    let topology = replicated();
    let servers: Vec<_> = topology.servers.iter().collect();
    let watched = Watched::start(&servers, &service("any"));
    let mut operator = watched.operator();
    let mut clients: Vec<_> = (0..6).map(|_| watched.connect()).collect();
    let homes: Vec<_> = clients.iter_mut().map(port_of).collect();
    for (place, server) in topology.servers.iter().enumerate() {
        let of_it = homes.iter().filter(|port| **port == server.port());
        assert_eq!(of_it.count(), 2, "{homes:?}");
        let text = format!("SELECT sessions FROM plateau.servers WHERE name = 'db{place}'");
        assert_eq!(value(&mut operator, &text), "2");
    }
    // Neither a hint nor what a statement does moves them.
    for (client, home) in clients.iter_mut().zip(&homes) {
        for text in [
            "SELECT /* plateau: server=db0 */ @@port",
            "SELECT /* plateau: server=db1 */ @@port",
            "SELECT /* plateau: route=replica */ @@port",
            "SELECT @@port FROM mysql.global_priv LIMIT 1",
            "SELECT @@port FOR UPDATE",
        ] {
            assert_eq!(value(client, text), home.to_string(), "{text}");
        }
        client.run("BEGIN").unwrap();
        assert_eq!(port_of(client), *home);
        client.run("COMMIT").unwrap();
        client.run("SET @a = 1").unwrap();
        assert_eq!(port_of(client), *home);
        let place = servers.iter().position(|it| it.port() == *home).unwrap();
        assert_eq!(shown_at(&mut operator, client), format!("db{place}"));
    }
}

#[test]
fn a_client_that_needs_nothing_of_a_lost_server_moves() {
    let (mut one, other) = (backend(), backend());
    let watched = Watched::start(&[&one, &other], &service("any"));
    let mut clients: Vec<_> = (0..6).map(|_| watched.connect()).collect();
    clients.retain_mut(|it| port_of(it) == one.port());
    let [quiet, open, running] = &mut clients[..] else {
        panic!("they are spread")
    };
    quiet.run("SET @kept = 7").unwrap();
    open.run("BEGIN").unwrap();
    running.send_query(b"SELECT SLEEP(30), 'lost'").unwrap();
    let mut root = one.connect().unwrap();
    wait_until("the statement runs", || runs(&mut root, "lost"));
    one.kill().unwrap();
    let mut operator = watched.operator();
    let state = "SELECT state FROM plateau.servers WHERE name = 'db0'";
    wait_until("the server is down", || {
        value(&mut operator, state) == "down"
    });
    assert_eq!(port_of(quiet), other.port());
    assert_eq!(value(quiet, "SELECT @kept"), "7");
    assert_eq!(shown_at(&mut operator, quiet), "db1");
    // A transaction is lost with its server, and a client is told so.
    let error = error_of(open.query("SELECT 1").unwrap());
    assert_eq!((error.number, error.state.as_str()), (1158, "08S01"));
    // A read whose reply has not begun is sent once more.
    let slept = running.read_outcomes().unwrap();
    assert!(matches!(slept[..], [Outcome::Rows(_)]), "{slept:?}");
    assert_eq!(port_of(running), other.port());
}

#[test]
fn a_killed_connection_moves_no_client() {
    let (one, other) = (backend(), backend());
    let gateway = Gateway::start(&(sections(&[&one, &other]) + &service("any")), "auto");
    let mut clients: Vec<_> = (0..2).map(|_| gateway.connect()).collect();
    clients.retain_mut(|it| port_of(it) == one.port());
    let client = &mut clients[0];
    client.run("SET @kept = 7").unwrap();
    let number = "SELECT id FROM information_schema.processlist WHERE user = 'app'";
    let mut root = one.connect().unwrap();
    let number = value(&mut root, number);
    root.run(&format!("KILL {number}")).unwrap();
    // A read is sent once more.
    assert_eq!(value(client, "SELECT 5"), "5");
    assert_eq!(port_of(client), one.port());
    assert_eq!(value(client, "SELECT @kept"), "7");
}

#[test]
fn clients_follow_the_primary() {
    let topology = replicated();
    let servers: Vec<_> = topology.servers.iter().collect();
    let watched = Watched::start(&servers, &service("primary"));
    let mut operator = watched.operator();
    let (mut client, mut held) = (watched.connect(), watched.connect());
    let [old, new, _] = [0, 1, 2].map(|it| topology.servers[it].port());
    assert_eq!(port_of(&mut client), old);
    held.run("BEGIN").unwrap();
    assert_eq!(port_of(&mut held), old);
    let mut first = topology.servers[0].connect().unwrap();
    first.run("SET GLOBAL read_only = 1").unwrap();
    let mut second = topology.servers[1].connect().unwrap();
    second.run("STOP SLAVE").unwrap();
    second.run("RESET SLAVE ALL").unwrap();
    second.run("SET GLOBAL read_only = 0").unwrap();
    let role = "SELECT role FROM plateau.servers WHERE name = 'db1'";
    wait_until("there is a new primary", || {
        value(&mut operator, role) == "primary"
    });
    assert_eq!(port_of(&mut client), new);
    assert_eq!(port_of(&mut held), old, "its transaction is open");
    held.run("COMMIT").unwrap();
    assert_eq!(port_of(&mut held), new);
}

#[test]
fn a_server_in_drain_is_left_by_whom_it_does_not_hold() {
    let (one, other) = (backend(), backend());
    let watched = Watched::start(&[&one, &other], &service("any"));
    let mut operator = watched.operator();
    let mut clients: Vec<_> = (0..4).map(|_| watched.connect()).collect();
    clients.retain_mut(|it| port_of(it) == one.port());
    let [free, locks] = &mut clients[..] else {
        panic!("they are spread")
    };
    assert_eq!(value(locks, "SELECT GET_LOCK('l', 0)"), "1");
    operator.run("SET SERVER db0 = 'drain'").unwrap();
    assert_eq!(port_of(free), other.port());
    assert_eq!(port_of(locks), one.port());
    let sessions = "SELECT sessions FROM plateau.servers WHERE name = 'db0'";
    assert_eq!(value(&mut operator, sessions), "1");
    assert_eq!(value(locks, "SELECT RELEASE_LOCK('l')"), "1");
    assert_eq!(port_of(locks), other.port());
    assert_eq!(value(&mut operator, sessions), "0");
    // With no other server a statement waits, and its client is told why.
    operator.run("SET SERVER db1 = 'maintenance'").unwrap();
    let error = error_of(free.query("SELECT 1").unwrap());
    assert_eq!(error.number, 1429);
    assert!(error.message.contains("none is up"), "{error:?}");
    operator.run("SET SERVER db0 = 'up'").unwrap();
    assert_eq!(port_of(free), one.port());
}

#[test]
fn a_rule_names_the_home() {
    let (one, other) = (backend(), backend());
    let rule = "[[rule]]\nname = \"r\"\nusers = [\"app\"]\nserver = \"db1\"\n\
                [[rule]]\nname = \"no\"\npattern = 'select 8'\nrefuse = \"not now\"\n";
    let text = sections(&[&one, &other]) + &service("any") + rule;
    let gateway = Gateway::start(&text, "auto");
    for mut client in (0..3).map(|_| gateway.connect()) {
        assert_eq!(port_of(&mut client), other.port());
        assert_eq!(client.error_number("SELECT 8").unwrap(), 1148);
    }
}
