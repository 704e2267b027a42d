//! `[[cache]]`: results that are told again, and never an old one.

mod apart;
mod reloaded;

use testkit::free_port;
use testkit::topology::Replicated;

use super::admin::Watched;
use super::prepared::{self, Types, execute};
use super::roles::replicated;
use super::*;

mod followed;

const CACHE: &str = "[[cache]]\nname = \"c\"\n";

/// A change past the gateway, which shows whether a result is told again.
const ASIDE: &str = "UPDATE shop.t SET v = v + 1000";

const POOLED: [&str; 2] = [
    "router = \"read-write-split\"\n",
    "router = \"read-connection\"\n",
];

/// A server whose account of the gateway may read definitions, with a table.
pub(crate) fn cached_backend() -> Server {
    let server = backend();
    let mut root = server.connect().expect("root gets in");
    prepare(&mut root);
    server
}

/// The same with replicas, which have the table.
fn cached_topology() -> Replicated {
    let topology = replicated();
    prepare(&mut topology.connect(0).expect("root gets in"));
    wait_for_replicas(&topology);
    topology
}

fn wait_for_replicas(topology: &Replicated) {
    for replica in 1..topology.servers.len() {
        let followed = topology.wait_for_replica(replica, 0);
        followed.expect("it follows");
    }
}

/// A gateway that reads from replicas without waiting for them. `rest` are sections, a cache's
/// among them.
fn split_over(topology: &Replicated, rest: &str) -> Gateway {
    let servers: Vec<_> = topology.servers.iter().collect();
    let service = "[[service]]\nname = \"split\"\nrouter = \"read-write-split\"\n\
                   causal_reads = \"off\"\ncache = \"c\"\n";
    let watch = "interval = 0.1\ntimeout = 0.5\n";
    started(&(sections(&servers) + watch + service + rest))
}

fn prepare(root: &mut Client) {
    for statement in [
        "GRANT SELECT, TRIGGER ON *.* TO plateau@'%'",
        "CREATE TABLE shop.t (id INT PRIMARY KEY, v INT)",
        "INSERT INTO shop.t VALUES (1, 10), (2, 20)",
        "CREATE TABLE shop.u (id INT PRIMARY KEY, v INT)",
        "INSERT INTO shop.u VALUES (1, 10)",
    ] {
        root.run(statement).expect(statement);
    }
}

/// A gateway with a service of this kind that uses the cache, once it keeps results.
fn cached(backend: &Server, kind: &str, cache: &str) -> Gateway {
    let service = format!("[[service]]\nname = \"shop\"\n{kind}cache = \"c\"\n");
    started(&(sections(&[backend]) + &service + cache))
}

pub(crate) fn started(sections: &str) -> Gateway {
    let gateway = Gateway::start(sections, "auto");
    wait_until("results are kept", || {
        gateway.log().contains("results are kept")
    });
    gateway
}

fn read(client: &mut Client) -> String {
    value(client, "SELECT v FROM shop.t WHERE id = 1")
}

/// Waits until the definitions are known again: what is read twice is kept then.
fn wait_until_kept(client: &mut Client, root: &mut Client) {
    wait_until("results are kept again", || {
        let before = value(client, "SELECT v FROM shop.u WHERE id = 1");
        root.run("UPDATE shop.u SET v = v + 1")
            .expect("it is changed");
        before == value(client, "SELECT v FROM shop.u WHERE id = 1")
    });
}

#[test]
fn a_result_is_told_again_until_its_table_is_changed() {
    let backend = cached_backend();
    let mut root = backend.connect().unwrap();
    for kind in POOLED {
        for sharing in ["all", "worker"] {
            root.run("UPDATE shop.t SET v = 10 * id").unwrap();
            let cache = format!("{CACHE}sharing = \"{sharing}\"\n");
            let gateway = cached(&backend, kind, &cache);
            let mut client = gateway.connect();
            assert_eq!(read(&mut client), "10");
            root.run(ASIDE).unwrap();
            assert_eq!(read(&mut client), "10", "{kind}{sharing}");
            // Comments and blanks at the ends do not matter, values do.
            let other = "  SELECT v FROM shop.t WHERE id = 1 /* 7 */";
            assert_eq!(value(&mut client, other), "10");
            assert_eq!(
                value(&mut client, "SELECT v FROM shop.t WHERE id = 2"),
                "1020"
            );
            client.run("UPDATE shop.u SET v = 5").unwrap();
            assert_eq!(read(&mut client), "10");
            client.run("UPDATE shop.t SET v = 7 WHERE id = 2").unwrap();
            assert_eq!(read(&mut client), "1010");
        }
    }
}

#[test]
fn each_kind_of_change_ends_a_result() {
    let backend = cached_backend();
    let mut root = backend.connect().unwrap();
    for statement in [
        "CREATE PROCEDURE shop.p() UPDATE shop.t SET v = v + 1",
        "CREATE FUNCTION shop.f() RETURNS INT MODIFIES SQL DATA \
         BEGIN UPDATE shop.t SET v = v + 1; RETURN 1; END",
        "CREATE TABLE shop.watched (id INT)",
        "CREATE TRIGGER shop.r AFTER INSERT ON shop.watched FOR EACH ROW \
         UPDATE shop.t SET v = v + 1",
        "CREATE TABLE shop.parent (id INT PRIMARY KEY)",
        "INSERT INTO shop.parent VALUES (1), (2)",
        "CREATE TABLE shop.child (id INT, FOREIGN KEY (id) REFERENCES shop.parent (id) \
         ON DELETE CASCADE)",
        "INSERT INTO shop.child VALUES (1), (1), (2)",
        "CREATE VIEW shop.w AS SELECT * FROM shop.t",
    ] {
        root.run(statement).expect(statement);
    }
    let gateway = cached(&backend, POOLED[0], CACHE);
    let mut client = gateway.connect();
    for change in [
        "UPDATE shop.t SET v = v + 1",
        "UPDATE shop.u JOIN shop.t USING (id) SET t.v = t.v + 1",
        "REPLACE INTO shop.t VALUES (1, 77)",
        "INSERT INTO shop.t VALUES (1, 1) ON DUPLICATE KEY UPDATE v = v + 1",
        "CALL shop.p()",
        "SELECT shop.f()",
        "INSERT INTO shop.watched VALUES (1)",
        "UPDATE shop.w SET v = v + 1",
        "EXECUTE IMMEDIATE 'UPDATE shop.t SET v = v + 1'",
        "BEGIN NOT ATOMIC UPDATE shop.t SET v = v + 1; END",
        "SET STATEMENT max_statement_time = 5 FOR UPDATE shop.t SET v = v + 1",
    ] {
        wait_until_kept(&mut client, &mut root);
        let before = read(&mut client);
        // Some of them pin their session.
        gateway.connect().query(change).expect(change);
        assert_ne!(read(&mut client), before, "{change}");
    }
    wait_until_kept(&mut client, &mut root);
    let children = "SELECT COUNT(*) FROM shop.child";
    assert_eq!(value(&mut client, children), "3");
    client.run("DELETE FROM shop.parent WHERE id = 1").unwrap();
    assert_eq!(value(&mut client, children), "1");
    let count = "SELECT COUNT(*) FROM shop.t";
    assert_eq!(value(&mut client, count), "2");
    client.run("TRUNCATE shop.t").unwrap();
    assert_eq!(value(&mut client, count), "0");
}

#[test]
fn a_change_ends_results_when_its_transaction_does() {
    let backend = cached_backend();
    let mut root = backend.connect().unwrap();
    let gateway = cached(&backend, POOLED[0], CACHE);
    let (mut writer, mut reader) = (gateway.connect(), gateway.connect());
    for end in [
        "COMMIT",
        "BEGIN",
        "SET autocommit = 1",
        "CREATE TABLE shop.x (id INT)",
    ] {
        wait_until_kept(&mut reader, &mut root);
        if end.starts_with("SET") {
            writer.run("SET autocommit = 0").unwrap();
        } else {
            writer.run("BEGIN").unwrap();
        }
        writer
            .run("UPDATE shop.t SET v = v + 1 WHERE id = 1")
            .unwrap();
        let before = read(&mut reader);
        assert_eq!(read(&mut reader), before);
        assert_ne!(read(&mut writer), before, "it sees its own change");
        assert_eq!(read(&mut reader), before);
        writer.run(end).expect(end);
        assert_ne!(read(&mut reader), before, "{end}");
        writer.run("COMMIT").unwrap();
    }
}

/// A transaction reads from one snapshot.
#[test]
fn a_transaction_is_told_what_it_would_read() {
    let backend = cached_backend();
    let mut root = backend.connect().unwrap();
    let gateway = cached(&backend, POOLED[0], CACHE);
    let (mut client, mut other) = (gateway.connect(), gateway.connect());
    let second = "SELECT v FROM shop.u WHERE id = 1";
    assert_eq!(
        (read(&mut client), value(&mut client, second)),
        ("10".into(), "10".into())
    );
    client.run("BEGIN").unwrap();
    assert_eq!(read(&mut client), "10");
    // It has a snapshot now, and nothing was changed since.
    root.run("UPDATE shop.u SET v = 11").unwrap();
    assert_eq!(value(&mut client, second), "10");
    other.run("UPDATE shop.t SET v = 15 WHERE id = 1").unwrap();
    assert_eq!(read(&mut other), "15");
    assert_eq!(read(&mut client), "10");
    client.run("COMMIT").unwrap();
    assert_eq!(read(&mut client), "15");
    // A result that was read from an old snapshot is not kept.
    client.run("BEGIN").unwrap();
    assert_eq!(read(&mut client), "15");
    other.run("UPDATE shop.u SET v = 20").unwrap();
    assert_eq!(value(&mut client, second), "11");
    assert_eq!(value(&mut other, second), "20");
    client.run("COMMIT").unwrap();
    assert_eq!(value(&mut client, second), "20");
}

/// COM_RESET_CONNECTION ends a transaction, and the next one has a snapshot of its own.
#[test]
fn a_transaction_after_a_reset_has_another_snapshot() {
    const RESET_CONNECTION: u8 = 31;
    let backend = cached_backend();
    let mut root = backend.connect().unwrap();
    root.run("SET GLOBAL autocommit = 0").unwrap();
    let gateway = cached(&backend, POOLED[0], CACHE);
    let (mut client, mut other) = (gateway.connect(), gateway.connect());
    let second = "SELECT v FROM shop.u WHERE id = 1";
    let change = |other: &mut Client, v: u32| {
        for table in ["t", "u"] {
            let update = format!("UPDATE shop.{table} SET v = {v} WHERE id = 1");
            other.run(&update).unwrap();
        }
        other.run("COMMIT").unwrap();
    };
    change(&mut other, 11);
    client.run("COMMIT").unwrap();
    assert_eq!(
        (read(&mut client), value(&mut client, second)),
        ("11".into(), "11".into())
    );
    client.send_command(RESET_CONNECTION, b"").unwrap();
    client.next_packet().unwrap();
    let before = value(&mut client, second);
    change(&mut other, 12);
    assert_eq!((before, read(&mut client)), ("11".into(), "11".into()));
}

#[test]
fn sessions_that_differ_are_not_told_each_others_results() {
    let backend = cached_backend();
    let mut root = backend.connect().unwrap();
    for statement in [
        "CREATE USER other@'%' IDENTIFIED BY 'secret'",
        "GRANT SELECT ON shop.u TO other@'%'",
        "CREATE DATABASE mine",
        "CREATE TABLE mine.t (id INT PRIMARY KEY, v INT)",
        "INSERT INTO mine.t VALUES (1, 99)",
    ] {
        root.run(statement).expect(statement);
    }
    let gateway = cached(&backend, POOLED[0], CACHE);
    let mut client = gateway.connect();
    assert_eq!(read(&mut client), "10");
    let mut other = Client::connect(&gateway.login("other", "secret")).unwrap();
    assert_eq!(
        other
            .error_number("SELECT v FROM shop.t WHERE id = 1")
            .unwrap(),
        1142
    );
    let here = "SELECT v FROM t WHERE id = 1";
    client.run("USE shop").unwrap();
    assert_eq!(value(&mut client, here), "10");
    client.run("USE mine").unwrap();
    assert_eq!(value(&mut client, here), "99");
    let words = "SELECT 'a' || v FROM shop.t WHERE id = 1";
    assert_eq!(value(&mut client, words), "1");
    client.run("SET sql_mode = 'PIPES_AS_CONCAT'").unwrap();
    assert_eq!(value(&mut client, words), "a10");
    // A pinned session has what others do not know of.
    let mut pinned = gateway.connect();
    pinned
        .run("CREATE TEMPORARY TABLE shop.t (id INT PRIMARY KEY, v INT)")
        .unwrap();
    pinned.run("INSERT INTO shop.t VALUES (1, -1)").unwrap();
    assert_eq!(read(&mut pinned), "-1");
    assert_eq!(read(&mut gateway.connect()), "10");
}

#[test]
fn what_depends_on_more_than_tables_is_not_kept() {
    let backend = cached_backend();
    let mut root = backend.connect().unwrap();
    for statement in [
        "CREATE VIEW shop.w AS SELECT v, NOW(6) AS at FROM shop.t WHERE id = 1",
        "CREATE TABLE shop.memory (v INT) ENGINE = MEMORY",
        "INSERT INTO shop.memory VALUES (10)",
        "CREATE TABLE shop.computed (v INT, id CHAR(36) DEFAULT (UUID()))",
        "INSERT INTO shop.computed (v) VALUES (1)",
    ] {
        root.run(statement).expect(statement);
    }
    let gateway = cached(&backend, POOLED[0], CACHE);
    for text in [
        "SELECT DEFAULT(id) FROM shop.computed",
        "SELECT CONCAT(v, NOW(6)) FROM shop.t WHERE id = 1",
        "SELECT CONCAT(v, RAND()) FROM shop.t WHERE id = 1",
        "SELECT CONCAT(v, at) FROM shop.w",
        "SELECT SQL_NO_CACHE CONCAT(v, 'a', COUNT(*)) FROM shop.t",
        "SELECT v FROM shop.t WHERE id = 1 FOR UPDATE",
        "SELECT * FROM shop.memory",
    ] {
        // Some of them pin their session.
        let mut client = gateway.connect();
        let before = value(&mut client, text);
        root.run(ASIDE).unwrap();
        root.run("UPDATE shop.memory SET v = v + 1").unwrap();
        assert_ne!(value(&mut client, text), before, "{text}");
    }
    // `sql%rowcount` is of two columns in other modes.
    let mut client = gateway.connect();
    client.run("SET sql_mode = 'ORACLE'").unwrap();
    let before = read(&mut client);
    root.run(ASIDE).unwrap();
    assert_ne!(read(&mut client), before);
    client.run("SET sql_mode = DEFAULT").unwrap();
    let before = read(&mut client);
    root.run(ASIDE).unwrap();
    assert_eq!(read(&mut client), before);
}

#[test]
fn a_vouched_result_is_told_until_its_time_is_over() {
    let backend = cached_backend();
    let mut root = backend.connect().unwrap();
    let cache = format!("{CACHE}assume_cacheable = true\nttl = 2\n");
    let service = format!("[[service]]\nname = \"shop\"\n{}cache = \"c\"\n", POOLED[0]);
    let gateway = Gateway::start(&(sections(&[&backend]) + &service + &cache), "auto");
    let mut client = gateway.connect();
    let now = "SELECT NOW(6)";
    let (first, before) = (read(&mut client), value(&mut client, now));
    client.run("UPDATE shop.t SET v = 11 WHERE id = 1").unwrap();
    assert_eq!(
        (read(&mut client), value(&mut client, now)),
        (first, before.clone())
    );
    root.run(ASIDE).unwrap();
    // It came last.
    wait_until("its time is over", || value(&mut client, now) != before);
    assert_eq!(read(&mut client), "1011");
}

#[test]
fn rules_say_what_is_kept() {
    let backend = cached_backend();
    let mut root = backend.connect().unwrap();
    let service = format!("[[service]]\nname = \"shop\"\n{}", POOLED[0]);
    let rules = "[[rule]]\nname = \"not\"\nusers = [\"root\"]\ncache = \"off\"\n\
                 [[rule]]\nname = \"u\"\ntables = [\"shop.u\"]\ncache = \"C\"\n";
    let gateway = started(&(sections(&[&backend]) + &service + CACHE + rules));
    let mut client = gateway.connect();
    let (kept, not) = ("SELECT v FROM shop.u", "SELECT v FROM shop.t WHERE id = 1");
    let before = (value(&mut client, kept), value(&mut client, not));
    root.run(ASIDE).unwrap();
    root.run("UPDATE shop.u SET v = v + 1").unwrap();
    assert_eq!(value(&mut client, kept), before.0);
    assert_ne!(value(&mut client, not), before.1);
    assert_ne!(
        value(&mut client, &format!("{kept} /* plateau: route=primary */")),
        ""
    );
}

/// The numbers that later statements read are those of the query, whoever has answered it.
#[test]
fn a_told_result_counts_as_a_statement() {
    let backend = cached_backend();
    let gateway = cached(&backend, POOLED[0], CACHE);
    let mut client = gateway.connect();
    let all = "SELECT * FROM shop.t";
    let warn = "SELECT CAST('a' AS INT)";
    let mut ask = |text| client.rows(text).expect(text).len();
    for text in [all, "SELECT 1 FROM shop.t WHERE id = 1", warn] {
        ask(text);
    }
    assert_eq!(ask(all), 2);
    assert_eq!(ask("SHOW WARNINGS"), 0);
    ask("SELECT 1 FROM shop.t WHERE id = 1");
    ask(all);
    assert_eq!(value(&mut client, "SELECT FOUND_ROWS()"), "2");
    client.rows(all).unwrap();
    assert_eq!(value(&mut client, "SELECT ROW_COUNT()"), "-1");
}

#[test]
fn nothing_is_kept_without_the_privileges_to_read_definitions() {
    let backend = cached_backend();
    let mut root = backend.connect().unwrap();
    root.run("REVOKE TRIGGER ON *.* FROM plateau@'%'").unwrap();
    let service = format!("[[service]]\nname = \"shop\"\n{}cache = \"c\"\n", POOLED[0]);
    let gateway = Gateway::start(&(sections(&[&backend]) + &service + CACHE), "auto");
    wait_until("it says why", || {
        gateway.log().contains("needs GRANT SELECT, TRIGGER ON *.*")
    });
    let mut client = gateway.connect();
    assert_eq!(read(&mut client), "10");
    root.run(ASIDE).unwrap();
    assert_eq!(read(&mut client), "1010");
    root.run("GRANT TRIGGER ON *.* TO plateau@'%'").unwrap();
    wait_until("results are kept", || {
        gateway.log().contains("results are kept")
    });
    assert_eq!(read(&mut client), "1010");
    root.run(ASIDE).unwrap();
    assert_eq!(read(&mut client), "1010");
}

/// A replica that does not have the last write yet fills no cache.
#[test]
fn a_late_replica_is_not_believed() {
    let topology = cached_topology();
    let gateway = split_over(&topology, CACHE);
    let (mut writer, mut reader) = (gateway.connect(), gateway.connect());
    let mut replicas: Vec<_> = (1..=2).map(|it| topology.connect(it).unwrap()).collect();
    // Each is late, and nothing that it tells of itself is out of order.
    for replica in &mut replicas {
        replica.run("LOCK TABLES shop.t READ").unwrap();
    }
    writer.run("UPDATE shop.t SET v = 11 WHERE id = 1").unwrap();
    // The replicas still have the old value: the session has not asked to see the new one.
    assert_eq!(read(&mut reader), "10");
    for replica in &mut replicas {
        replica.run("UNLOCK TABLES").unwrap();
    }
    wait_until("the replicas follow", || read(&mut reader) == "11");
}

#[test]
fn results_of_prepared_statements_are_told_again() {
    let backend = cached_backend();
    let mut root = backend.connect().unwrap();
    let gateway = cached(&backend, POOLED[1], CACHE);
    let (mut client, mut other) = (gateway.connect(), gateway.connect());
    let text = "SELECT v FROM shop.t WHERE id = ?";
    let (mine, theirs) = (
        prepared::prepare(&mut client, text),
        prepared::prepare(&mut other, text),
    );
    let first = execute(&mut client, &mine, 1, Types::Told);
    let second = execute(&mut client, &mine, 2, Types::Untold);
    assert_ne!(first, second);
    root.run(ASIDE).unwrap();
    assert_eq!(execute(&mut other, &theirs, 1, Types::Told), first);
    assert_eq!(execute(&mut client, &mine, 2, Types::Untold), second);
    // The text protocol has other packets.
    assert_eq!(
        value(&mut other, "SELECT v FROM shop.t WHERE id = 1"),
        "1010"
    );
    let change = prepared::prepare(&mut other, "UPDATE shop.t SET v = 5 WHERE id = ?");
    execute(&mut other, &change, 1, Types::Told);
    assert_ne!(execute(&mut client, &mine, 1, Types::Untold), first);
    assert_ne!(execute(&mut client, &mine, 2, Types::Untold), second);
}

#[test]
fn operators_look_into_the_cache_and_flush_it() {
    let backend = cached_backend();
    let mut root = backend.connect().unwrap();
    let service = format!("[[service]]\nname = \"shop\"\n{}cache = \"c\"\n", POOLED[0]);
    let watched = Watched::start(&[&backend], &(service + CACHE));
    let mut operator = watched.operator();
    let keeps = "SELECT keeps FROM plateau.cache";
    wait_until("results are kept", || value(&mut operator, keeps) == "1");
    let mut client = watched.connect();
    let other = "SELECT v FROM shop.u WHERE id = 1";
    let before = (read(&mut client), value(&mut client, other));
    for (flush, are_told) in [
        ("FLUSH QUERY CACHE TABLE shop.x", (true, true)),
        ("FLUSH QUERY CACHE TABLE shop.t", (false, true)),
        ("FLUSH QUERY CACHE", (false, false)),
    ] {
        wait_until_kept(&mut client, &mut root);
        let before = (read(&mut client), value(&mut client, other));
        root.run(ASIDE).unwrap();
        root.run("UPDATE shop.u SET v = v + 1").unwrap();
        operator.run(flush).expect(flush);
        let after = (read(&mut client), value(&mut client, other));
        assert_eq!(
            (before.0 == after.0, before.1 == after.1),
            are_told,
            "{flush}"
        );
    }
    let told = "SELECT CONCAT_WS(' ', name, sharing, mode, size, results > 0, used > 0, hits > 0, \
                misses > 1, kept > 1) FROM plateau.cache";
    assert_eq!(
        value(&mut operator, told),
        "c all verified 67108864 1 1 1 1 1"
    );
    assert_ne!(before, (read(&mut client), value(&mut client, other)));
}

const COM_QUERY: u8 = 3;

/// All packets of a reply with rows.
fn reply(client: &mut Client) -> Vec<Vec<u8>> {
    let is_end = |packet: &[u8]| packet[0] == 0xfe && packet.len() < 9;
    let mut packets = Vec::new();
    let mut ends = 0;
    while ends < 2 {
        let packet = client.next_packet().expect("a packet");
        assert_ne!(packet[0], 0xff, "{}", String::from_utf8_lossy(&packet));
        ends += u32::from(is_end(&packet));
        packets.push(packet);
    }
    packets
}

/// What is told again is what the server tells, byte for byte.
#[test]
fn each_type_is_told_again_as_the_server_tells_it() {
    let backend = cached_backend();
    let mut root = backend.connect().unwrap();
    for statement in [
        "CREATE TABLE shop.types (id INT PRIMARY KEY, a TINYINT, b SMALLINT UNSIGNED, c MEDIUMINT, \
         d BIGINT UNSIGNED ZEROFILL, e DECIMAL(65,30), f FLOAT, g DOUBLE, h BIT(13), i DATE, \
         j DATETIME(6), k TIMESTAMP(3) NULL, l TIME(6), m YEAR, n CHAR(7), o VARCHAR(300), \
         p BINARY(3), q VARBINARY(9), r TINYBLOB, s BLOB, t TEXT, u LONGTEXT, v ENUM('x', 'y'), \
         w SET('p', 'q'), x JSON, y POINT, z INET6, aa UUID, bb BOOLEAN)",
        "INSERT INTO shop.types VALUES (1, -5, 65535, -7, 42, -1.5, 1.25, -2e300, b'101', \
         '2024-02-29', '2024-02-29 23:59:59.123456', '2024-01-01 00:00:00.5', '-838:59:59', 2024, \
         'a', REPEAT('b', 300), 'c', X'00FF', X'01', REPEAT('d', 300), 'e', REPEAT('f', 70000), \
         'y', 'p,q', '{\"a\": 1}', POINT(1, 2), '::1', \
         '123e4567-e89b-12d3-a456-426655440000', TRUE)",
        "INSERT INTO shop.types (id) VALUES (2)",
    ] {
        root.run(statement).expect(statement);
    }
    let gateway = cached(&backend, POOLED[1], CACHE);
    let mut direct = Client::connect(&Login {
        user: "app".to_owned(),
        password: "secret".to_owned(),
        ..Login::root(backend.port())
    })
    .unwrap();
    let (mut one, mut other) = (gateway.connect(), gateway.connect());
    let text = "SELECT * FROM shop.types ORDER BY id";
    let query = |client: &mut Client| {
        client.send_command(COM_QUERY, text.as_bytes()).unwrap();
        reply(client)
    };
    let expected = query(&mut direct);
    assert_eq!(query(&mut one), expected);
    let execute_on = |client: &mut Client| {
        let prepared = prepared::prepare(client, text);
        prepared::send_execution(client, &prepared);
        reply(client)
    };
    let binary = execute_on(&mut direct);
    assert_ne!(binary, expected);
    assert_eq!(execute_on(&mut one), binary);
    root.run("DELETE FROM shop.types").unwrap();
    assert_eq!(query(&mut other), expected);
    assert_eq!(execute_on(&mut other), binary);
}

/// An error tells no status, so a transaction may be open that nobody has seen begin.
#[test]
fn a_transaction_of_a_failed_routine_ends_results_too() {
    let backend = cached_backend();
    let mut root = backend.connect().unwrap();
    root.run(
        "CREATE PROCEDURE shop.leaves() BEGIN START TRANSACTION; UPDATE shop.t SET v = v + 1; \
         SIGNAL SQLSTATE '45000'; END",
    )
    .unwrap();
    let gateway = cached(&backend, POOLED[0], CACHE);
    let (mut writer, mut reader) = (gateway.connect(), gateway.connect());
    wait_until_kept(&mut reader, &mut root);
    writer.error_number("CALL shop.leaves()").unwrap();
    wait_until_kept(&mut reader, &mut root);
    let before = read(&mut reader);
    writer.run("COMMIT").unwrap();
    let now = value(&mut root, "SELECT v FROM shop.t WHERE id = 1");
    assert_eq!(read(&mut reader), now, "it was {before}");
}

/// Rows that are not committed are for those alone who ask for them.
#[test]
fn what_is_read_in_another_isolation_is_not_kept() {
    let backend = cached_backend();
    let gateway = cached(&backend, POOLED[0], CACHE);
    let (mut writer, mut dirty, mut reader) =
        (gateway.connect(), gateway.connect(), gateway.connect());
    writer.run("BEGIN").unwrap();
    writer.run("UPDATE shop.t SET v = 99 WHERE id = 1").unwrap();
    for (set, begin) in [
        (
            "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
            "START TRANSACTION",
        ),
        (
            "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
            "DO 1",
        ),
    ] {
        dirty.run(set).unwrap();
        dirty.run(begin).unwrap();
        assert_eq!(read(&mut dirty), "99");
        dirty.run("COMMIT").unwrap();
        assert_eq!(read(&mut reader), "10", "{set}");
    }
    writer.run("ROLLBACK").unwrap();
    assert_eq!(read(&mut dirty), "10");
}
