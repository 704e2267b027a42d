//! `read-write-split`: where statements go, and that no client can tell.

use testkit::topology::{Galera, Replicated};

use super::prepared::{Types, execute, prepare};
use super::roles::replicated;
use super::*;

const RESET_CONNECTION: u8 = 31;

pub(crate) fn split_over(topology: &Replicated) -> Gateway {
    let servers: Vec<_> = topology.servers.iter().collect();
    let watch = "interval = 0.1\ntimeout = 0.5\n";
    let service = "[[service]]\nname = \"split\"\nrouter = \"read-write-split\"\nwait = 5\n";
    Gateway::start(&(sections(&servers) + watch + service), "auto")
}

/// The server that answers a read now: its place in the topology.
fn reader(client: &mut Client) -> usize {
    // No read of system variables, which are the primary's.
    let place = client.value("SELECT place FROM shop.here").expect("a read");
    place.expect("a value").parse().expect("a number")
}

/// Gives each server a row that tells which one it is.
pub(crate) fn mark(topology: &Replicated) {
    let mut primary = topology.connect(0).expect("root gets in");
    for statement in [
        "CREATE TABLE shop.here (place INT)",
        "INSERT INTO shop.here VALUES (0)",
    ] {
        primary.run(statement).expect(statement);
    }
    for replica in 1..topology.servers.len() {
        topology.wait_for_replica(replica, 0).expect("it follows");
        let mut client = topology.connect(replica).expect("root gets in");
        client
            .run("SET SESSION sql_log_bin = 0")
            .and_then(|_| client.run(&format!("UPDATE shop.here SET place = {replica}")))
            .expect("it is marked");
    }
}

#[test]
fn reads_go_to_replicas_and_writes_to_the_primary() {
    let topology = replicated();
    mark(&topology);
    let gateway = split_over(&topology);
    let mut client = gateway.connect();
    let mut readers: Vec<_> = (0..8).map(|_| reader(&mut client)).collect();
    readers.sort_unstable();
    assert_eq!(readers, [1, 1, 1, 1, 2, 2, 2, 2]);
    client
        .run("CREATE TABLE shop.t (id INT PRIMARY KEY, v INT)")
        .unwrap();
    client.run("INSERT INTO shop.t VALUES (1, 10)").unwrap();
    client.run("BEGIN").unwrap();
    assert_eq!(reader(&mut client), 0);
    client.run("UPDATE shop.t SET v = v + 1").unwrap();
    client.run("COMMIT").unwrap();
    client.run("START TRANSACTION READ ONLY").unwrap();
    let place = reader(&mut client);
    assert_eq!(reader(&mut client), place);
    assert_eq!(client.error_number("DELETE FROM shop.t").unwrap(), 1792);
    client.run("COMMIT").unwrap();
    client.run("SET autocommit = 0").unwrap();
    assert_eq!(reader(&mut client), 0);
    client.run("SET autocommit = 1").unwrap();
    client
        .run("CREATE TEMPORARY TABLE shop.own (id INT)")
        .unwrap();
    assert_eq!(reader(&mut client), 0);
}

#[test]
fn a_session_reads_what_it_wrote() {
    let topology = replicated();
    let gateway = split_over(&topology);
    let mut client = gateway.connect();
    client
        .run("CREATE TABLE shop.t (id INT PRIMARY KEY)")
        .unwrap();
    for id in 0..200 {
        client
            .run(&format!("INSERT INTO shop.t VALUES ({id})"))
            .unwrap();
        let count = client.value("SELECT COUNT(*) FROM shop.t").unwrap();
        assert_eq!(count, Some((id + 1).to_string()));
    }
    // Once the monitor has seen that the replicas have it all, they are read from again.
    let mut root: Vec<_> = (1..=2).map(|it| topology.connect(it).unwrap()).collect();
    let mut reads = |root: &mut Client| {
        let text = "SHOW GLOBAL STATUS LIKE 'Com_select'";
        let rows = root.rows(text).unwrap();
        let count = rows[0][1].clone().unwrap();
        String::from_utf8(count).unwrap().parse::<u64>().unwrap()
    };
    let before: u64 = root.iter_mut().map(&mut reads).sum();
    wait_until("replicas are read from", || {
        client.value("SELECT COUNT(*) FROM shop.t").unwrap();
        before + 20 < root.iter_mut().map(&mut reads).sum()
    });
}

#[test]
fn a_write_reads_of_what_a_replica_has_answered() {
    let topology = replicated();
    mark(&topology);
    let mut root = topology.connect(0).unwrap();
    root.run("CREATE TABLE shop.t (v INT)").unwrap();
    let gateway = split_over(&topology);
    let two = "shop.here, (SELECT 1 UNION SELECT 2) two";
    let texts = [
        (
            "FOUND_ROWS()",
            format!("SELECT SQL_CALC_FOUND_ROWS place FROM {two} LIMIT 1"),
            "2",
        ),
        ("FOUND_ROWS()", format!("SELECT place FROM {two}"), "2"),
        ("ROW_COUNT()", format!("SELECT place FROM {two}"), "-1"),
    ];
    for (call, read, wanted) in &texts {
        // One that has not written reads from replicas.
        let mut client = gateway.connect();
        let place = client.value(read).unwrap();
        assert!(place.is_some_and(|it| it != "0"), "{read}");
        client
            .run(&format!("INSERT INTO shop.t VALUES ({call})"))
            .unwrap();
        assert_eq!(&value(&mut root, "SELECT v FROM shop.t"), wanted, "{read}");
        root.run("TRUNCATE shop.t").unwrap();
    }
    // A prepared text is read as when it was prepared.
    let mut client = gateway.connect();
    client.run("SET sql_mode = 'NO_BACKSLASH_ESCAPES'").unwrap();
    let count = client.rows(&texts[1].1).unwrap().len();
    let text = r"INSERT INTO shop.t VALUES (LENGTH('a\') + 10 * FOUND_ROWS())";
    let write = prepare(&mut client, text);
    let answer = execute(&mut client, &write, 0, Types::Told);
    assert_eq!((count, answer[0][0]), (2, 0), "{answer:?}");
    assert_eq!(value(&mut root, "SELECT v FROM shop.t"), "22");
}

#[test]
fn a_session_reads_what_a_statement_wrote_that_failed() {
    let topology = replicated();
    let mut primary = topology.connect(0).unwrap();
    for text in [
        "CREATE TABLE shop.t (id INT PRIMARY KEY)",
        "CREATE TABLE shop.old (id INT PRIMARY KEY) ENGINE=MyISAM",
        "CREATE TABLE shop.dropped (id INT)",
        "CREATE PROCEDURE shop.fails() BEGIN INSERT INTO shop.t VALUES (1); \
         SIGNAL SQLSTATE '45000'; END",
    ] {
        primary.run(text).expect(text);
    }
    let mut replicas = Vec::new();
    for replica in 1..=2 {
        topology.wait_for_replica(replica, 0).unwrap();
        let mut root = topology.connect(replica).unwrap();
        root.run("FLUSH TABLES WITH READ LOCK").unwrap();
        replicas.push(root);
    }
    let gateway = split_over(&topology);
    let count = "SELECT COUNT(*) FROM shop.t";
    let reads_twice = |client: &mut Client, text: &str, expected: &str| {
        // The first goes to the primary if the statement may have left a transaction open.
        for _ in 0..2 {
            let value = client.value(text).unwrap();
            assert_eq!(value.as_deref(), Some(expected), "{text}");
        }
    };
    let mut client = gateway.connect();
    assert_eq!(client.error_number("CALL shop.fails()").unwrap(), 1644);
    reads_twice(&mut client, count, "1");

    let mut client = gateway.connect();
    let text = "INSERT INTO shop.old VALUES (1), (1)";
    assert_eq!(client.error_number(text).unwrap(), 1062);
    reads_twice(&mut client, "SELECT COUNT(*) FROM shop.old", "1");

    let mut client = gateway.connect();
    let text = "DROP TABLE shop.dropped, shop.missing";
    assert_eq!(client.error_number(text).unwrap(), 1051);
    for _ in 0..2 {
        let text = "SELECT id FROM shop.dropped";
        assert_eq!(client.error_number(text).unwrap(), 1146);
    }

    // What commits before it fails.
    for (id, text, number) in [
        (2, "CREATE TABLE shop.t (id INT)", 1050),
        (3, "LOCK TABLES shop.missing READ", 1146),
    ] {
        let mut client = gateway.connect();
        client.run("BEGIN").unwrap();
        client
            .run(&format!("INSERT INTO shop.t VALUES ({id})"))
            .unwrap();
        assert_eq!(client.error_number(text).unwrap(), number, "{text}");
        reads_twice(&mut client, count, &id.to_string());
    }
    for replica in &mut replicas {
        replica.run("UNLOCK TABLES").unwrap();
    }
}

#[test]
fn who_waits_for_no_writes_does_not_ask_for_them() {
    let topology = replicated();
    let mut primary = topology.connect(0).unwrap();
    primary
        .run("CREATE TABLE shop.t (id INT PRIMARY KEY)")
        .unwrap();
    for replica in 1..=2 {
        topology.wait_for_replica(replica, 0).unwrap();
    }
    let servers: Vec<_> = topology.servers.iter().collect();
    let service = "interval = 60\n[[service]]\nname = \"split\"\nrouter = \"read-write-split\"\n\
                   causal_reads = \"off\"\n";
    let gateway = Gateway::start(&(sections(&servers) + service), "auto");
    let mut client = gateway.connect();
    let mut reads = || primary.status("Com_select").unwrap();
    let before = reads();
    for _ in 0..5 {
        let text = "INSERT INTO shop.t VALUES (1), (1)";
        assert_eq!(client.error_number(text).unwrap(), 1062);
        let count = client.value("SELECT COUNT(*) FROM shop.t").unwrap();
        assert_eq!(count.as_deref(), Some("0"));
    }
    assert_eq!(reads(), before);
}

#[test]
fn a_session_reads_what_a_killed_connection_wrote() {
    let topology = replicated();
    let mut primary = topology.connect(0).unwrap();
    for text in [
        "CREATE TABLE shop.t (id INT PRIMARY KEY)",
        "CREATE PROCEDURE shop.waits() BEGIN INSERT INTO shop.t VALUES (1); DO SLEEP(60); END",
    ] {
        primary.run(text).expect(text);
    }
    let mut replicas = Vec::new();
    for replica in 1..=2 {
        topology.wait_for_replica(replica, 0).unwrap();
        let mut root = topology.connect(replica).unwrap();
        root.run("FLUSH TABLES WITH READ LOCK").unwrap();
        replicas.push(root);
    }
    let gateway = split_over(&topology);
    let mut client = gateway.connect();
    client.send_query(b"CALL shop.waits()").unwrap();
    let sleeper = "SELECT MAX(id) FROM information_schema.processlist WHERE state = 'User sleep'";
    let mut id = None;
    wait_until("the procedure sleeps", || {
        id = primary.value(sleeper).unwrap();
        id.is_some()
    });
    primary.run(&format!("KILL {}", id.unwrap())).unwrap();
    let outcome = client.read_outcomes().unwrap().remove(0);
    assert_eq!(error_of(outcome).number, 1158);
    let count = client.value("SELECT COUNT(*) FROM shop.t").unwrap();
    assert_eq!(count.as_deref(), Some("1"));
    for replica in &mut replicas {
        replica.run("UNLOCK TABLES").unwrap();
    }
}

#[test]
fn a_replica_waits_for_what_a_session_wrote() {
    let topology = replicated();
    mark(&topology);
    let servers: Vec<_> = topology.servers.iter().collect();
    // The monitor looks too seldom to know what replicas have just applied.
    let rest = "interval = 60\n[[service]]\nname = \"split\"\nrouter = \"read-write-split\"\n\
                causal_reads_timeout = 0.5\n";
    let gateway = Gateway::start(&(sections(&servers) + rest), "auto");
    let mut client = gateway.connect();
    client.run("CREATE TABLE shop.t (id INT)").unwrap();
    let text = "SELECT CONCAT((SELECT COUNT(*) FROM shop.t), ' ', place) FROM shop.here";
    for id in 1..=50 {
        client
            .run(&format!("INSERT INTO shop.t VALUES ({id})"))
            .unwrap();
        let told = client.value(text).unwrap().unwrap();
        let (count, place) = told.split_once(' ').unwrap();
        assert_eq!(count, id.to_string());
        assert_ne!(place, "0", "a replica has waited");
    }
    // Replicas that apply nothing are not waited for any longer than that.
    let mut blocked: Vec<_> = (1..=2).map(|it| topology.connect(it).unwrap()).collect();
    for replica in &mut blocked {
        replica.run("FLUSH TABLES WITH READ LOCK").unwrap();
    }
    client.run("INSERT INTO shop.t VALUES (51)").unwrap();
    assert_eq!(client.value(text).unwrap().unwrap(), "51 0");
    for replica in &mut blocked {
        replica.run("UNLOCK TABLES").unwrap();
    }
}

#[test]
fn reads_go_to_the_replica_that_answers_first() {
    let topology = replicated();
    mark(&topology);
    let servers: Vec<_> = topology.servers.iter().collect();
    let rest = "interval = 0.1\n[[service]]\nname = \"split\"\nrouter = \"read-write-split\"\n\
                balance = \"response-time\"\n";
    let gateway = Gateway::start(&(sections(&servers) + rest), "auto");
    let mut client = gateway.connect();
    let mut by_slow = 0;
    for _ in 0..40 {
        let text = "SELECT place + 0 * SLEEP(0.05 * (place = 1)) FROM shop.here";
        by_slow += u32::from(client.value(text).unwrap().unwrap() == "1");
    }
    assert!((1..10).contains(&by_slow), "{by_slow} of 40");
}

#[test]
fn the_session_is_the_same_on_each_server() {
    let topology = replicated();
    mark(&topology);
    let gateway = split_over(&topology);
    let mut client = gateway.connect();
    client.run("USE shop").unwrap();
    client.run("SET @a = 7, @b = 'x'").unwrap();
    client.run("SET NAMES latin1").unwrap();
    client.run("SET sql_mode = 'PIPES_AS_CONCAT'").unwrap();
    for _ in 0..4 {
        let row = client.rows("SELECT @a, @b || 'y', CHARSET('a'), DATABASE(), place FROM here");
        let row = row.unwrap().remove(0);
        let texts: Vec<_> = row
            .into_iter()
            .map(|value| String::from_utf8(value.unwrap()).unwrap())
            .collect();
        assert_eq!(texts[..4], ["7", "xy", "latin1", "shop"]);
        assert_ne!(texts[4], "0");
    }
    assert_eq!(client.error_number("SET nonsense = 1").unwrap(), 1193);
    assert_ne!(reader(&mut client), 0);
    client
        .run("SET @c = (SELECT MAX(place) FROM here)")
        .unwrap();
    assert_eq!(client.value("SELECT @c").unwrap().as_deref(), Some("0"));
    client.send_command(RESET_CONNECTION, b"").unwrap();
    assert_eq!(client.next_packet().unwrap()[0], 0);
    assert_ne!(reader(&mut client), 0);
    assert_eq!(client.value("SELECT @a").unwrap(), None);
}

#[test]
fn a_client_may_choose_what_it_is_told_of_its_session() {
    let topology = replicated();
    let gateway = split_over(&topology);
    let mut client = gateway.connect();
    client
        .run("CREATE TABLE shop.t (id INT PRIMARY KEY)")
        .unwrap();
    // As Connector/J of MariaDB does at its login.
    client
        .run("SET session_track_system_variables = 'autocommit', session_track_state_change = 0")
        .unwrap();
    for id in 0..100 {
        client
            .run(&format!("INSERT INTO shop.t VALUES ({id})"))
            .unwrap();
        let count = client.value("SELECT COUNT(*) FROM shop.t").unwrap();
        assert_eq!(count, Some((id + 1).to_string()));
    }
}

#[test]
fn a_service_may_read_what_any_session_wrote() {
    let topology = replicated();
    let servers: Vec<_> = topology.servers.iter().collect();
    let service = "interval = 0.1\n[[service]]\nname = \"split\"\nrouter = \"read-write-split\"\n\
                   causal_reads = \"service\"\n";
    let gateway = Gateway::start(&(sections(&servers) + service), "auto");
    let (mut writer, mut reader) = (gateway.connect(), gateway.connect());
    writer
        .run("CREATE TABLE shop.t (id INT PRIMARY KEY)")
        .unwrap();
    for id in 0..100 {
        writer
            .run(&format!("INSERT INTO shop.t VALUES ({id})"))
            .unwrap();
        let count = reader.value("SELECT COUNT(*) FROM shop.t").unwrap();
        assert_eq!(count, Some((id + 1).to_string()));
    }
}

#[test]
fn kill_with_the_number_that_the_primary_tells_ends_the_session() {
    let topology = replicated();
    let gateway = split_over(&topology);
    let (mut killer, mut victim) = (gateway.connect(), gateway.connect());
    let number = victim.value("SELECT CONNECTION_ID()").unwrap().unwrap();
    killer.run(&format!("KILL {number}")).unwrap();
    assert!(victim.query("SELECT 1").is_err());
}

#[test]
fn hints_send_statements_to_servers() {
    let topology = replicated();
    mark(&topology);
    let gateway = split_over(&topology);
    let mut client = gateway.connect();
    let mut place = |text: &str| client.value(text).unwrap().unwrap();
    for server in 0..3 {
        let text = format!("SELECT /* plateau: server=db{server} */ place FROM shop.here");
        assert_eq!(place(&text), server.to_string());
    }
    assert_eq!(
        place("/* plateau: route=primary */ SELECT place FROM shop.here"),
        "0"
    );
    // What cannot be understood changes nothing.
    assert_ne!(
        place("/* plateau: server=nowhere */ SELECT place FROM shop.here"),
        "0"
    );
    assert_ne!(
        place("/* plateau: left */ SELECT place FROM shop.here"),
        "0"
    );
    let pinned = place("/* plateau: pin, server=db2 */ SELECT place FROM shop.here");
    assert_eq!(pinned, "2");
    assert_eq!(reader(&mut client), 2);
}

#[test]
fn members_of_a_cluster_show_what_others_wrote() {
    let cluster = Galera::start(3).unwrap();
    create_accounts(&mut cluster.servers[0].connect().unwrap());
    let servers: Vec<_> = cluster.servers.iter().collect();
    let service = "[[service]]\nname = \"clients\"\nrouter = \"read-write-split\"\n";
    let gateway = Gateway::start(&(sections(&servers) + service), "auto");
    let mut client = gateway.connect();
    client
        .run("CREATE TABLE shop.t (id INT PRIMARY KEY)")
        .unwrap();
    for id in 0..100 {
        client
            .run(&format!("INSERT INTO shop.t VALUES ({id})"))
            .unwrap();
        let wait = "SELECT variable_value FROM information_schema.session_variables \
                    WHERE variable_name = 'wsrep_sync_wait'";
        assert_eq!(client.value(wait).unwrap().as_deref(), Some("1"));
        let count = client.value("SELECT COUNT(*) FROM shop.t").unwrap();
        assert_eq!(count, Some((id + 1).to_string()));
    }
    client
        .run("CREATE TABLE shop.large (id INT PRIMARY KEY, a LONGTEXT)")
        .unwrap();
    // What takes a while to be applied, by sessions that find each other's connections.
    let text = "x".repeat(4 << 20);
    for id in 0..8 {
        let mut client = gateway.connect();
        client.run("USE shop").unwrap();
        if id % 2 == 0 {
            client.run("SET sql_mode = ''").unwrap();
        }
        client
            .run(&format!("INSERT INTO large VALUES ({id}, '{text}')"))
            .unwrap();
        let count = format!("SELECT COUNT(*) FROM large WHERE id = {id}");
        assert_eq!(client.value(&count).unwrap().as_deref(), Some("1"), "{id}");
    }
}
