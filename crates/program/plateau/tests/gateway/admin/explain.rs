//! EXPLAIN ROUTE: of clients about their sessions, and of operators about sessions that begin.

use std::collections::HashMap;

use testkit::routes::{Caches, Ports, Stage, Tally, logging};
use testkit::topology::Replicated;

use super::Watched;
use crate::roles::replicated;
use crate::split::{mark, split_over};
use crate::*;

mod cached;

/// The properties that EXPLAIN ROUTE tells, without those that are NULL.
fn explain(client: &mut Client, text: &str, whose: &str) -> HashMap<String, String> {
    let quoted = text.replace('\\', "\\\\").replace('\'', "''");
    let rows = client.rows(&format!("EXPLAIN ROUTE FOR '{quoted}' {whose}"));
    let text = |value: Vec<u8>| String::from_utf8(value).expect("a text");
    let pair = |row: Vec<Option<Vec<u8>>>| {
        let mut values = row.into_iter();
        let property = values.next().flatten().expect("a property");
        Some((text(property), text(values.next().flatten()?)))
    };
    let rows = rows.expect("an explanation");
    rows.into_iter().filter_map(pair).collect()
}

/// Checks the server that a statement would go to, and why. NULL is no server.
fn check(client: &mut Client, text: &str, server: &str, why: &str) {
    let told = explain(client, text, "");
    let goes_to = told.get("server").map_or("NULL", String::as_str);
    assert_eq!(goes_to, server, "{text}: {told:?}");
    assert!(told["why"].contains(why), "{text}: {told:?}");
}

/// Lets replicas have all, and the monitor know it.
fn catch_up(topology: &Replicated, client: &mut Client) {
    for replica in 1..topology.servers.len() {
        topology.wait_for_replica(replica, 0).expect("it follows");
    }
    wait_until("a replica is known to have it", || {
        let told = explain(client, "SELECT a FROM shop.t", "");
        told["server"] != "db0" && !told.contains_key("depends_on")
    });
}

#[test]
fn a_client_is_told_where_its_statement_would_go() {
    let topology = replicated();
    mark(&topology);
    let gateway = split_over(&topology);
    let mut client = gateway.connect();
    let read = "SELECT place FROM shop.here WHERE place < 7";
    let told = explain(&mut client, read, "AS app SERVICE split");
    let expected = [
        ("statement", "SELECT place FROM shop.here WHERE place < ?"),
        ("class", "query"),
        ("kind", "read"),
        ("user", "app"),
        ("service", "split"),
        ("router", "read-write-split"),
        ("goal", "a replica, else the primary"),
        ("server", "db1"),
        (
            "why",
            "a read; replicas serve reads, and db1 has the least to do",
        ),
        (
            "other_servers",
            "db0: the primary; db2: has more to do, or has done more",
        ),
    ];
    for (property, value) in expected {
        assert_eq!(
            told.get(property).map(String::as_str),
            Some(value),
            "{told:?}"
        );
    }
    assert!(
        !told.contains_key("database") && !told.contains_key("pins"),
        "{told:?}"
    );
    // What it says comes true, also if it is asked often.
    for expected in ["1", "2", "1"] {
        check(&mut client, read, &format!("db{expected}"), "a read");
        assert_eq!(value(&mut client, "SELECT place FROM shop.here"), expected);
    }
    let primary = "db0";
    check(
        &mut client,
        "CREATE TABLE shop.t (a INT)",
        primary,
        "a write",
    );
    check(
        &mut client,
        "FROB",
        primary,
        "not understood: counts as a write",
    );
    check(&mut client, "SELECT f(1)", primary, "it calls a function");
    check(&mut client, "SELECT @@port", primary, "db0 is the primary");
    check(
        &mut client,
        "EXPLAIN ROUTE FOR ''",
        "NULL",
        "answers it itself",
    );
    let hinted = format!("/* plateau: server=db2 */ {read}");
    check(&mut client, &hinted, "db2", "a hint says server=db2");
}

#[test]
fn a_client_is_told_that_replicas_do_not_have_its_write() {
    let topology = replicated();
    let gateway = split_over(&topology);
    let mut client = gateway.connect();
    client.run("USE shop").unwrap();
    client.run("CREATE TABLE t (a INT PRIMARY KEY)").unwrap();
    let told = explain(&mut client, "SELECT a FROM t", "IN shop");
    assert_eq!(told["database"], "shop");
    assert_eq!(told["server"], "db0", "{told:?}");
    let why = "a read; no replica is known to have what it has to see (0-1-";
    assert!(told["why"].starts_with(why), "{told:?}");
    assert!(!told.contains_key("depends_on"), "{told:?}");
    catch_up(&topology, &mut client);
}

#[test]
fn what_a_server_will_tell_is_a_condition() {
    let topology = replicated();
    let servers: Vec<_> = topology.servers.iter().collect();
    let watch = "interval = 0.1\ntimeout = 0.5\n";
    let service = "[[service]]\nname = \"split\"\nrouter = \"read-write-split\"\nwait = 5\n\
                   causal_reads_timeout = 0.4\n";
    let gateway = Gateway::start(&(sections(&servers) + watch + service), "auto");
    let mut client = gateway.connect();
    client.run("CREATE TABLE shop.t (a INT)").unwrap();
    catch_up(&topology, &mut client);
    let mut replicas = Vec::new();
    for replica in 1..=2 {
        let mut root = topology.connect(replica).unwrap();
        root.run("FLUSH TABLES WITH READ LOCK").unwrap();
        replicas.push(root);
    }
    client.run("INSERT INTO shop.t VALUES (1)").unwrap();
    let read = "SELECT a FROM shop.t";
    let told = explain(&mut client, read, "");
    assert!(
        told["why"].contains("waits for what it has to see"),
        "{told:?}"
    );
    assert!(told["depends_on"].contains("within 0.4 s"), "{told:?}");
    assert_ne!(told["server"], "db0");
    assert_eq!(told["otherwise"], "db0");
    assert_eq!(value(&mut client, read), "1");
    drop(replicas);
    catch_up(&topology, &mut client);
    // No GTID is told of a write that fails.
    assert_ne!(
        client
            .error_number("INSERT INTO shop.t VALUES (1, 2)")
            .unwrap(),
        0
    );
    let told = explain(&mut client, read, "");
    assert!(
        told["why"].contains("the primary is asked first"),
        "{told:?}"
    );
    assert!(told["otherwise"].starts_with("db0, db"), "{told:?}");
    let server = told["server"].clone();
    assert_eq!(value(&mut client, read), "1");
    // It was located there: the other one is the next.
    let next = if server == "db1" { "db2" } else { "db1" };
    check(&mut client, read, next, "replicas serve reads");
}

#[test]
fn what_holds_a_session_is_told() {
    let topology = replicated();
    mark(&topology);
    let gateway = split_over(&topology);
    let mut client = gateway.connect();
    let read = "SELECT place FROM shop.here";
    client.run("START TRANSACTION READ ONLY").unwrap();
    let place = value(&mut client, read);
    let server = format!("db{place}");
    let open = format!("the session's transaction is open on {server}");
    check(&mut client, read, &server, &open);
    check(&mut client, "DELETE FROM shop.here", &server, &open);
    client.run("COMMIT").unwrap();
    client.run("SELECT GET_LOCK('a', 1)").unwrap();
    let why = "the session is pinned to db0: GET_LOCK: the lock is that connection's";
    check(&mut client, read, "db0", why);
    let told = explain(&mut client, "DO RELEASE_ALL_LOCKS()", "");
    let pins = "user lock (GET_LOCK: the lock is that connection's; until the session has no \
                lock any more)";
    assert_eq!(told["pins"], pins);
    assert!(
        told["leaves"].contains("no pin user lock any more"),
        "{told:?}"
    );
    client.run("DO RELEASE_ALL_LOCKS()").unwrap();
    let told = explain(&mut client, "CREATE TEMPORARY TABLE shop.own (a INT)", "");
    assert!(
        told["leaves"].contains("the pin temporary table"),
        "{told:?}"
    );
    let told = explain(&mut client, "SET @a = 1", "");
    assert!(told["leaves"].contains("runs first"), "{told:?}");
    client.run("SET autocommit = 0").unwrap();
    check(&mut client, read, "db0", "autocommit is off");
    client.run("SET autocommit = 1").unwrap();
    // The statement before is what it was, however often somebody asks.
    client.run("SELECT place FROM shop.here LIMIT 1").unwrap();
    let last = explain(&mut client, "SELECT FOUND_ROWS()", "");
    assert!(
        last["why"].contains("it reads of the statement before"),
        "{last:?}"
    );
    let outcome = client
        .query("DELETE FROM shop.here WHERE place = 9")
        .unwrap();
    assert!(matches!(outcome, Outcome::Done(_)));
    check(
        &mut client,
        "SELECT ROW_COUNT()",
        "db0",
        "which db0 has answered",
    );
    assert_eq!(value(&mut client, "SELECT ROW_COUNT()"), "0");
    assert!(client.query("SELECT 1 FROM shop.nothing").is_ok());
    check(&mut client, "SELECT 1", "db0", "");
    let rows = client.rows("SHOW WARNINGS").unwrap();
    assert_eq!(rows.len(), 1, "asking leaves the warnings");
}

#[test]
fn no_server_sees_the_question() {
    for kind in KINDS {
        let backend = backend();
        let service = format!("[[service]]\nname = \"shop\"\n{kind}");
        let rules = "[[rule]]\nname = \"stop\"\npattern = '^drop'\nrefuse = \"ask first\"\n";
        let gateway = Gateway::start(&(sections(&[&backend]) + &service + rules), "auto");
        let mut root = backend.connect().unwrap();
        root.run("SET GLOBAL log_output = 'TABLE'").unwrap();
        root.run("SET GLOBAL general_log = ON").unwrap();
        let mut client = gateway.connect();
        let told = explain(&mut client, "SELECT a FROM shop.t", "");
        assert_eq!(told["server"], "db0", "{told:?}");
        assert_eq!(told.get("rules"), None);
        let told = explain(&mut client, "DROP TABLE shop.t", "");
        assert_eq!(told["rules"], "stop (refuse=\"ask first\")");
        assert_eq!(told["why"], "the rule `stop` refuses it: ask first");
        assert_eq!(told.get("server"), None);
        for (text, number) in [
            ("EXPLAIN ROUTE FOR 'SELECT 1' AS root", 1210),
            ("EXPLAIN ROUTE FOR 'SELECT 1' IN shop", 1210),
            ("EXPLAIN ROUTE FOR 'SELECT 1' SERVICE other", 1210),
            ("EXPLAIN ROUTE FOR SELECT 1", 1064),
            ("EXPLAIN ROUTE FOR 'SELECT 1' BY root", 1064),
        ] {
            assert_eq!(client.error_number(text).unwrap(), number, "{text}");
        }
        let count = "SELECT COUNT(*) FROM mysql.general_log \
                     WHERE argument LIKE '%ROUTE FOR%' AND thread_id <> CONNECTION_ID()";
        assert_eq!(value(&mut root, count), "0", "{kind}");
        // That of a table with this name is the server's.
        client.run("CREATE TABLE shop.route (a INT)").unwrap();
        client.run("USE shop").unwrap();
        assert_eq!(client.rows("EXPLAIN route").unwrap().len(), 1);
        // It is answered as text alone: a server knows no such statement.
        let prepared = client.send_command(22, b"EXPLAIN ROUTE FOR 'SELECT 1'");
        prepared.expect("it is sent");
        let refused = client.next_packet().expect("an answer");
        assert_eq!(
            refused.get(..3),
            Some(&[0xff, 0x28, 0x04][..]),
            "error 1064"
        );
    }
}

#[test]
fn operators_ask_about_sessions_that_begin() {
    let topology = replicated();
    let servers: Vec<_> = topology.servers.iter().collect();
    let services = "[[service]]\nname = \"shop\"\nrouter = \"read-write-split\"\n\
                    [[rule]]\nname = \"fresh\"\nusers = [\"boss\"]\nserver = \"db2\"\n\
                    [[rule]]\nname = \"stock\"\nschemas = [\"stock\"]\nroute = \"primary\"\n";
    let mut watched = Watched::start(&servers, services);
    let mut operator = watched.operator();
    let read = "SELECT a FROM t";
    wait_until("replicas serve reads", || {
        let told = explain(&mut operator, read, "");
        told.get("server").is_some_and(|it| it == "db1")
    });
    let of_boss = explain(&mut operator, read, "AS boss");
    assert_eq!(of_boss["server"], "db2");
    assert!(
        of_boss["why"].starts_with("the rule `fresh` says server=db2"),
        "{of_boss:?}"
    );
    assert_eq!(of_boss["rules"], "fresh (server=db2)");
    let both = explain(&mut operator, read, "AS boss IN stock");
    assert_eq!(both["rules"], "fresh (server=db2); stock (decides nothing)");
    let of_stock = explain(&mut operator, read, "IN stock SERVICE shop");
    assert_eq!(of_stock["server"], "db0");
    assert_eq!(of_stock["database"], "stock");
    operator.run("SET SERVER db1 = 'drain'").unwrap();
    check(&mut operator, read, "db2", "replicas serve reads");
    operator.run("SET SERVER db2 = 'maintenance'").unwrap();
    let told = explain(&mut operator, read, "");
    assert!(
        told["why"].contains("no replica can be asked, so db0 answers"),
        "{told:?}"
    );
    assert_eq!(told["other_servers"], "db1: draining; db2: maintenance");
    operator.run("SET SERVER db0 = 'drain'").unwrap();
    check(&mut operator, "DELETE FROM t", "NULL", "then error 1429");
    for (text, number) in [
        ("EXPLAIN ROUTE FOR 'SELECT 1' SERVICE other", 1210),
        ("EXPLAIN ROUTE FOR SELECT 1", 1064),
    ] {
        assert_eq!(operator.error_number(text).unwrap(), number, "{text}");
    }
    watched.stop();
    let services = "[[service]]\nname = \"all\"\n[[service]]\nname = \"reports\"\n\
                    role = \"replica\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
                    service = \"reports\"\n";
    let watched = Watched::start(&servers, services);
    let mut operator = watched.operator();
    let unclear = operator.query("EXPLAIN ROUTE FOR 'SELECT 1'").unwrap();
    let unclear = error_of(unclear);
    assert_eq!(unclear.number, 1210);
    assert!(unclear.message.contains("all, reports"), "{unclear}");
    wait_until("a replica is the home of clients", || {
        let told = explain(&mut operator, "DELETE FROM t", "SERVICE reports");
        assert!(told["why"].starts_with("read-connection"), "{told:?}");
        told.get("server").is_some_and(|it| it == "db1")
    });
    // It tells what happens: the first server of the fewest clients.
    let told = explain(&mut operator, "DELETE FROM t", "SERVICE all");
    let mut client = watched.connect();
    let port = port_of(&mut client).to_string();
    let server = servers.iter().position(|it| it.port().to_string() == port);
    assert_eq!(told["server"], format!("db{}", server.unwrap()));
    check(
        &mut client,
        "DELETE FROM t",
        &told["server"],
        "is this session's",
    );
}

fn compare(caches: Caches) -> Tally {
    let topology = Replicated::start_with(2, logging).expect("the servers start");
    Stage::prepare(&topology).expect("tables are made");
    let ports = Ports::free(caches).expect("ports are free");
    let _gateway = Gateway::start(&ports.settings(&topology.servers), "auto");
    let mut stage = Stage::new(topology, ports, 7).expect("sessions can begin");
    stage.compare(400).expect("all agree")
}

/// `cargo xtask gateway-explain` compares more pairs.
#[test]
fn statements_come_where_explain_says() {
    let tally = compare(Caches::None);
    // Each kind of pair was among them.
    assert!(
        0 < tally.nowhere && 0 < tally.prepared && 0 < tally.of_operator,
        "{tally}"
    );
    assert!(tally.not_begun < tally.agreed / 5, "{tally}");
    for reason in [
        "a read",
        "a write",
        "the session is pinned to a server",
        "the session's transaction is open on a server",
        "read-connection sends all statements of a client to one server",
    ] {
        assert!(tally.reasons.contains_key(reason), "{reason}:\n{tally}");
    }
}

#[test]
fn results_are_kept_as_explain_says() {
    let tally = compare(Caches::Some);
    assert!(0 < tally.kept && 0 < tally.kept_later, "{tally}");
}
