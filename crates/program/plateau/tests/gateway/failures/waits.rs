//! What ends the waits of sessions, and what becomes of a database that is gone.

use crate::admin::Watched;
use crate::roles::replicated;

use super::*;

const SPLIT: &str = "[[service]]\nname = \"shop\"\nrouter = \"read-write-split\"\nwait = 3600\n";

/// The state that the gateway's table shows of a client; nothing if that is gone.
fn state(operator: &mut Client, number: u32) -> String {
    let text = format!("SELECT state FROM plateau.sessions WHERE id = {number}");
    let rows = operator.rows(&text).expect("rows");
    let state = rows.into_iter().flatten().flatten().next();
    String::from_utf8(state.unwrap_or_default()).expect("a text")
}

#[test]
fn kill_and_the_shutdown_end_the_wait_for_a_server() {
    let backend = backend();
    for service in [SPLIT, "[[service]]\nname = \"one\"\nwait = 3600\n"] {
        let mut watched = Watched::start(&[&backend], service);
        let mut operator = watched.operator();
        let mut clients: Vec<_> = (0..4).map(|_| watched.connect()).collect();
        for client in &mut clients {
            client.run("DO 1").unwrap();
        }
        operator.run("SET SERVER db0 = 'maintenance'").unwrap();
        for client in &mut clients {
            client.send_query(b"SELECT 1").unwrap();
        }
        let numbers: Vec<_> = clients.iter().map(|it| it.connection_id).collect();
        for number in &numbers {
            wait_until("it waits", || {
                state(&mut operator, *number) == "waits for a server"
            });
        }
        operator.run(&format!("KILL QUERY {}", numbers[0])).unwrap();
        let told = clients[0].read_outcomes().unwrap().remove(0);
        assert_eq!(error_of(told).number, 1317);
        operator.run(&format!("KILL {}", numbers[1])).unwrap();
        assert!(clients[1].read_outcomes().is_err());
        // A client that has gone waits no longer.
        drop(clients.remove(2));
        wait_until("its session is gone", || {
            state(&mut operator, numbers[2]).is_empty()
        });
        assert_eq!(state(&mut operator, numbers[3]), "waits for a server");
        watched.stop();
        assert!(clients[2].read_outcomes().is_err());
    }
}

#[test]
fn a_connection_is_not_put_right_for_ever() {
    let mut backend = backend();
    let limit = "max_connections = 1\n";
    let service = SPLIT.replace("wait = 3600", "wait = 1");
    let watch = "interval = 0.2\ntimeout = 0.5\n";
    let text = sections_with(&[&backend], limit) + watch + &service;
    let gateway = Gateway::start(&text, "auto");
    let (mut one, mut other) = (gateway.connect(), gateway.connect());
    one.run("SET @a = 1").unwrap();
    other.run("SET @a = 2").unwrap();
    backend.process().pause().unwrap();
    // Its connection has the state of the other.
    let error = error_of(one.query("SELECT @a").unwrap());
    backend.process().resume().unwrap();
    assert!(matches!(error.number, 1158 | 1429), "{error:?}");
    wait_until("the server is up", || {
        one.value("SELECT @a")
            .is_ok_and(|it| it.as_deref() == Some("1"))
    });
    assert_eq!(value(&mut other, "SELECT @a"), "2");
}

/// A gateway whose sessions take turns on one connection.
fn over_one_connection(backend: &Server) -> Gateway {
    let service = SPLIT.replace("wait = 3600", "wait = 2");
    let text = sections_with(&[backend], "max_connections = 1\n") + &service;
    Gateway::start(&text, "auto")
}

#[test]
fn a_session_goes_on_without_a_database_that_is_gone() {
    let backend = backend();
    let gateway = over_one_connection(&backend);
    let of_login = || {
        Client::connect(&Login {
            database: "gone".to_owned(),
            ..gateway.login("app", "secret")
        })
    };
    let mut root = gateway.connect();
    root.run("CREATE DATABASE gone").unwrap();
    root.run("CREATE TABLE gone.t SELECT 7 AS a").unwrap();
    let mut chosen = gateway.connect();
    chosen.run("USE gone").unwrap();
    let mut logged_in = of_login().unwrap();
    for client in [&mut chosen, &mut logged_in] {
        client.run("SET @kept = 5").unwrap();
        assert_eq!(value(client, "SELECT a FROM t"), "7");
    }
    root.run("DROP DATABASE gone").unwrap();
    for client in [&mut chosen, &mut logged_in] {
        root.run("DO 1").unwrap();
        assert_eq!(value(client, "SELECT @kept"), "5");
        assert_eq!(value(client, "SELECT DATABASE()"), "NULL");
        assert_eq!(client.error_number("SELECT a FROM t").unwrap(), 1046);
        client.ping().unwrap();
    }
    let refused = of_login().unwrap_err().to_string();
    assert!(refused.contains("1049"), "{refused}");
    // Another one can be chosen.
    chosen.run("USE shop").unwrap();
    root.run("DO 1").unwrap();
    assert_eq!(value(&mut chosen, "SELECT DATABASE()"), "shop");
    // If it comes again, it is found.
    logged_in.run("CREATE DATABASE gone").unwrap();
    root.run("DO 1").unwrap();
    assert_eq!(value(&mut logged_in, "SELECT DATABASE()"), "gone");
    logged_in.run("CREATE TABLE t SELECT 8 AS a").unwrap();
    root.run("DO 1").unwrap();
    assert_eq!(value(&mut logged_in, "SELECT a FROM gone.t"), "8");
}

/// What a session has begun without its database goes on without it.
#[test]
fn a_transaction_of_a_session_whose_database_is_gone_is_one() {
    let backend = backend();
    let gateway = over_one_connection(&backend);
    let mut root = gateway.connect();
    root.run("CREATE TABLE shop.kept (a INT)").unwrap();
    root.run("CREATE DATABASE gone").unwrap();
    let mut client = gateway.connect();
    client.run("USE gone").unwrap();
    client.run("SET @kept = 5").unwrap();
    root.run("DROP DATABASE gone").unwrap();
    let count = |client: &mut Client| value(client, "SELECT COUNT(*) FROM shop.kept");
    client.run("BEGIN").unwrap();
    client.run("INSERT INTO shop.kept VALUES (1)").unwrap();
    client.run("SET @kept = 6").unwrap();
    assert_eq!(count(&mut client), "1");
    client.run("ROLLBACK").unwrap();
    assert_eq!(count(&mut client), "0");
    client.run("SET autocommit = 0").unwrap();
    client.run("INSERT INTO shop.kept VALUES (2)").unwrap();
    client.run("INSERT INTO shop.kept VALUES (3)").unwrap();
    client.run("COMMIT").unwrap();
    client.run("SET autocommit = 1").unwrap();
    assert_eq!(count(&mut client), "2");
    // A lock is kept, and so is what was set.
    assert_eq!(value(&mut client, "SELECT GET_LOCK('a', 0)"), "1");
    client.run("INSERT INTO shop.kept VALUES (4)").unwrap();
    assert_eq!(value(&mut client, "SELECT IS_USED_LOCK('a') IS NULL"), "0");
    assert_eq!(value(&mut client, "SELECT RELEASE_ALL_LOCKS()"), "1");
    assert_eq!(value(&mut client, "SELECT @kept"), "6");
    // It is found again, on a connection that has run commands without it.
    client.run("CREATE DATABASE gone").unwrap();
    assert_eq!(value(&mut client, "SELECT DATABASE()"), "gone");
    root.run("DO 1").unwrap();
    assert_eq!(
        value(&mut client, "SELECT CONCAT(DATABASE(), @kept)"),
        "gone6"
    );
}

#[test]
fn a_database_that_has_not_come_to_a_replica_is_read_on_the_primary() {
    let topology = replicated();
    let servers: Vec<_> = topology.servers.iter().collect();
    let watch = "interval = 0.2\ntimeout = 0.5\n";
    let service = SPLIT.replace("wait = 3600", "wait = 2");
    let gateway = Gateway::start(&(sections(&servers) + watch + &service), "auto");
    let mut client = gateway.connect();
    wait_until("replicas are read", || {
        port_of_read(&mut client) != servers[0].port()
    });
    for replica in &servers[1..] {
        let mut root = replica.connect().unwrap();
        root.run("STOP SLAVE SQL_THREAD").unwrap();
        root.run("SET GLOBAL read_only = 0").unwrap();
        root.run("DROP DATABASE shop").unwrap();
        root.run("SET GLOBAL read_only = 1").unwrap();
        root.run("START SLAVE SQL_THREAD").unwrap();
    }
    client.run("USE shop").unwrap();
    assert_eq!(value(&mut client, "SELECT DATABASE()"), "shop");
    assert_eq!(port_of_read(&mut client), servers[0].port());
}

/// Where a plain read goes.
fn port_of_read(client: &mut Client) -> u16 {
    let text = "SELECT variable_value FROM information_schema.global_variables \
                WHERE variable_name = 'port'";
    value(client, text).parse().expect("a port")
}

#[test]
fn clients_of_replicas_leave_the_primary_again() {
    let topology = replicated();
    let servers: Vec<_> = topology.servers.iter().collect();
    let service = "[[service]]\nname = \"home\"\nrole = \"replica\"\nwait = 5\n";
    let watched = Watched::start(&servers, service);
    let mut operator = watched.operator();
    let mut client = watched.connect();
    let primary = servers[0].port();
    assert_ne!(port_of(&mut client), primary);
    for name in ["db1", "db2"] {
        operator
            .run(&format!("SET SERVER {name} = 'drain'"))
            .unwrap();
    }
    assert_eq!(port_of(&mut client), primary);
    client.run("BEGIN").unwrap();
    operator.run("SET SERVER db2 = 'up'").unwrap();
    assert_eq!(port_of(&mut client), primary, "its transaction is open");
    client.run("COMMIT").unwrap();
    assert_eq!(port_of(&mut client), servers[2].port());
}
