//! `follow = "binary-log"`: changes past the gateway end results, too.

use super::*;

const FOLLOWING: &str = "[[cache]]\nname = \"c\"\nfollow = \"binary-log\"\n";

/// What the log says whenever results may be kept.
const FOLLOWED: &str = "a binary log is followed";

const GRANT: &str = "GRANT REPLICATION SLAVE ON *.* TO plateau@'%'";

/// A server with a binary log that the gateway's account may read.
fn logging_backend(options: &[&str]) -> Server {
    let launch = Launch::new(ServerKind::MariaDb)
        .with("--log-bin=log")
        .with("--server-id=1");
    let launch = options.iter().fold(launch, |it, option| it.with(*option));
    let server = launch.start().expect("MariaDB starts");
    let mut root = server.connect().expect("root gets in");
    create_accounts(&mut root);
    prepare(&mut root);
    root.run(GRANT).expect(GRANT);
    server
}

fn following(backend: &Server) -> Gateway {
    let gateway = cached(backend, POOLED[0], FOLLOWING);
    wait_until("it follows", || gateway.log().contains(FOLLOWED));
    gateway
}

/// How often it has begun to follow a log.
fn begun(gateway: &Gateway) -> usize {
    gateway.log().matches(FOLLOWED).count()
}

/// A change that no log tells of: a result that is told again does not show it.
fn hide_change(root: &mut Client, table: &str) {
    root.run("SET sql_log_bin = 0").expect("it is root");
    root.run(&format!("UPDATE shop.{table} SET v = v + 1000"))
        .expect("it is changed");
    root.run("SET sql_log_bin = 1").expect("it is root");
}

fn of(table: &str) -> String {
    format!("SELECT CONCAT_WS('-', COUNT(*), MIN(v)) FROM shop.{table}")
}

/// Waits until results of a table are kept: the last one does not show a hidden change.
fn wait_until_hidden(client: &mut Client, root: &mut Client, table: &str) {
    wait_until("results are kept", || {
        let before = value(client, &of(table));
        hide_change(root, table);
        before == value(client, &of(table))
    });
}

/// Waits until a kept result is void.
fn wait_until_seen(client: &mut Client, root: &mut Client, table: &str, why: &str) {
    wait_until(why, || value(client, &of(table)) == value(root, &of(table)));
}

#[test]
fn each_kind_of_change_past_the_gateway_ends_a_result() {
    let backend = logging_backend(&[]);
    let mut root = backend.connect().unwrap();
    for statement in [
        "CREATE PROCEDURE shop.p() UPDATE shop.t SET v = v + 1",
        "CREATE TABLE shop.watched (id INT)",
        "CREATE TRIGGER shop.r AFTER INSERT ON shop.watched FOR EACH ROW \
         UPDATE shop.t SET v = v + 1",
        "CREATE TABLE shop.parent (id INT PRIMARY KEY)",
        "CREATE TABLE shop.many (v INT)",
    ] {
        root.run(statement).expect(statement);
    }
    let gateway = following(&backend);
    let mut client = gateway.connect();
    for set in [
        "SET binlog_format = ROW",
        "SET binlog_format = STATEMENT",
        "SET binlog_format = MIXED",
        "SET GLOBAL log_bin_compress = ON",
        "SET binlog_format = STATEMENT",
        "SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'",
    ] {
        root.run(set).unwrap();
        for change in [
            "UPDATE shop.t SET v = v + 1",
            "UPDATE shop.u JOIN shop.t USING (id) SET t.v = t.v + 1",
            "REPLACE INTO shop.t VALUES (1, 77)",
            "INSERT INTO shop.t VALUES (1, 1) ON DUPLICATE KEY UPDATE v = v + 1",
            "CALL shop.p()",
            "INSERT INTO shop.watched VALUES (1)",
            "UPDATE shop.t SET v = v + 1 + (SELECT COUNT(*) FROM shop.many \
             WHERE v < 100000000 AND v < 100000001 AND v < 100000002 AND v < 100000003 \
             AND v < 100000004 AND v < 100000005 AND v < 100000006 AND v < 100000007)",
            "FLUSH BINARY LOGS",
            "UPDATE shop.t SET v = v + 1 WHERE id = 1",
            "ALTER TABLE shop.t MODIFY v BIGINT",
            "TRUNCATE shop.t",
            "INSERT INTO shop.t VALUES (1, 11), (2, 22)",
        ] {
            wait_until_hidden(&mut client, &mut root, "t");
            root.run(change).expect(change);
            if change != "FLUSH BINARY LOGS" {
                wait_until_seen(&mut client, &mut root, "t", &format!("{set}: {change}"));
            }
        }
    }
    assert_eq!(begun(&gateway), 1, "{}", gateway.log());
}

#[test]
fn a_transaction_past_the_gateway_ends_the_results_of_its_tables_alone() {
    let backend = logging_backend(&["--binlog-format=ROW"]);
    let mut root = backend.connect().unwrap();
    for statement in [
        "CREATE TABLE shop.other (id INT PRIMARY KEY, v INT)",
        "INSERT INTO shop.other VALUES (1, 30)",
    ] {
        root.run(statement).expect(statement);
    }
    let gateway = following(&backend);
    let mut client = gateway.connect();
    for end in ["COMMIT", "XA"] {
        for table in ["t", "u", "other"] {
            wait_until_hidden(&mut client, &mut root, table);
        }
        let begin = if end == "XA" { "XA START 'x'" } else { "BEGIN" };
        for statement in [
            begin,
            "UPDATE shop.t SET v = v + 1",
            "UPDATE shop.u SET v = v + 1",
        ] {
            root.run(statement).unwrap();
        }
        let before: Vec<_> = ["t", "u", "other"]
            .map(|table| value(&mut client, &of(table)))
            .into();
        let finish: &[&str] = match end {
            "XA" => &["XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'"],
            _ => &["COMMIT"],
        };
        for statement in finish {
            root.run(statement).unwrap();
        }
        for (table, before) in ["t", "u"].iter().zip(&before) {
            wait_until_seen(&mut client, &mut root, table, end);
            assert_ne!(value(&mut client, &of(table)), *before);
        }
        if end == "COMMIT" {
            assert_eq!(value(&mut client, &of("other")), before[2]);
        }
    }
}

/// A cascade stands in no row event, and a transaction of many tables in many.
#[test]
fn what_a_log_does_not_name_ends_all_results() {
    let backend = logging_backend(&["--binlog-format=ROW"]);
    let mut root = backend.connect().unwrap();
    for statement in [
        "CREATE TABLE shop.parent (id INT PRIMARY KEY)",
        "INSERT INTO shop.parent VALUES (1), (2), (3)",
        "CREATE TABLE shop.child (id INT, v INT, \
         FOREIGN KEY (id) REFERENCES shop.parent (id) ON DELETE CASCADE)",
        "INSERT INTO shop.child SELECT id, 5 FROM shop.parent",
    ] {
        root.run(statement).expect(statement);
    }
    let gateway = following(&backend);
    let mut client = gateway.connect();
    let count = "SELECT COUNT(*) FROM shop.child";
    for id in 1..=3 {
        wait_until_hidden(&mut client, &mut root, "t");
        assert_eq!(value(&mut client, count), (4 - id).to_string());
        root.run(&format!("DELETE FROM shop.parent WHERE id = {id}"))
            .unwrap();
        wait_until("the child is gone", || {
            value(&mut client, count) == (3 - id).to_string()
        });
    }
}

#[test]
fn a_log_that_is_lost_ends_all_results_and_is_followed_again() {
    let backend = logging_backend(&[]);
    let mut root = backend.connect().unwrap();
    let gateway = following(&backend);
    let mut client = gateway.connect();
    for (round, kill) in ["Binlog Dump", "Sleep"].into_iter().enumerate() {
        wait_until_hidden(&mut client, &mut root, "t");
        let ids = format!(
            "SELECT GROUP_CONCAT(id) FROM information_schema.processlist \
             WHERE user = 'plateau' AND command = '{kill}'"
        );
        for id in value(&mut root, &ids).split(',') {
            root.run(&format!("KILL {id}")).unwrap();
        }
        wait_until_seen(&mut client, &mut root, "t", kill);
        wait_until("it is followed again", || begun(&gateway) == round + 2);
        wait_until_hidden(&mut client, &mut root, "t");
        root.run("UPDATE shop.t SET v = v + 1").unwrap();
        wait_until_seen(&mut client, &mut root, "t", "UPDATE");
    }
    // The files begin again.
    wait_until_hidden(&mut client, &mut root, "t");
    root.run("RESET MASTER").unwrap();
    root.run("UPDATE shop.t SET v = v + 1").unwrap();
    wait_until_seen(&mut client, &mut root, "t", "RESET MASTER");
}

#[test]
fn a_log_that_begins_again_may_be_as_long() {
    let backend = logging_backend(&[]);
    let mut root = backend.connect().unwrap();
    let gateway = following(&backend);
    let mut client = gateway.connect();
    let reset = |root: &mut Client| {
        root.run("RESET MASTER").unwrap();
        root.run("UPDATE shop.t SET v = v + 1").unwrap();
        root.rows("SHOW MASTER STATUS").unwrap()
    };
    let before = reset(&mut root);
    wait_until_seen(&mut client, &mut root, "t", "RESET MASTER");
    wait_until_hidden(&mut client, &mut root, "t");
    // Within the pause between two questions that the log does not answer.
    assert_eq!(reset(&mut root), before);
    wait_until_seen(&mut client, &mut root, "t", "the same place again");
}

/// What was read of a log that is lost counts no longer than until it is followed again.
#[test]
fn a_lost_log_leaves_no_change_under_way() {
    let backend = logging_backend(&[]);
    let mut root = backend.connect().unwrap();
    let gateway = following(&backend);
    let mut client = gateway.connect();
    for _ in 0..3 {
        let before = begun(&gateway);
        let dump = "SELECT id FROM information_schema.processlist WHERE command = 'Binlog Dump'";
        let id = root.value(dump).unwrap().expect("it follows");
        root.run("UPDATE shop.t SET v = v + 1").unwrap();
        root.run(&format!("KILL {id}")).unwrap();
        wait_until("it follows again", || before < begun(&gateway));
    }
    wait_until_hidden(&mut client, &mut root, "t");
}

#[test]
fn events_have_a_longest_size() {
    const EVENT_BYTES_MAX: usize = 64 << 20;
    /// More than all else in an event of one row has.
    const HEAD_BYTES_MAX: usize = 200;
    let backend = logging_backend(&[
        "--binlog-format=ROW",
        "--max-allowed-packet=256M",
        "--innodb-log-file-size=800M",
    ]);
    let mut root = backend.connect().unwrap();
    root.run("CREATE TABLE shop.long (b LONGBLOB)").unwrap();
    let gateway = following(&backend);
    let mut client = gateway.connect();
    for (length, is_taken) in [
        (EVENT_BYTES_MAX - HEAD_BYTES_MAX, true),
        (EVENT_BYTES_MAX + 1, false),
    ] {
        let before = begun(&gateway);
        let insert = format!("INSERT INTO shop.long VALUES (REPEAT('a', {length}))");
        root.run(&insert).unwrap();
        root.run("UPDATE shop.t SET v = v + 1").unwrap();
        let why = "the log behind it is read, or all is void";
        wait_until_seen(&mut client, &mut root, "t", why);
        wait_until("it is followed", || is_taken || before < begun(&gateway));
        assert_eq!(begun(&gateway) == before, is_taken, "{length} bytes");
        wait_until_hidden(&mut client, &mut root, "t");
    }
}

/// A server that waits for its replicas has logged a transaction long before others can see it.
#[test]
fn what_is_read_before_a_logged_change_can_be_seen_is_not_kept() {
    let backend = logging_backend(&[]);
    let mut root = backend.connect().unwrap();
    for set in [
        "SET GLOBAL rpl_semi_sync_master_wait_point = AFTER_SYNC",
        "SET GLOBAL rpl_semi_sync_master_timeout = 1500",
        "SET GLOBAL rpl_semi_sync_master_wait_no_slave = ON",
    ] {
        root.run(set).unwrap();
    }
    let gateway = following(&backend);
    let mut client = gateway.connect();
    wait_until_hidden(&mut client, &mut root, "t");
    let before = value(&mut root, &of("t"));
    root.run("SET GLOBAL rpl_semi_sync_master_enabled = ON")
        .unwrap();
    let mut writer = backend.connect().unwrap();
    writer.send_query(b"UPDATE shop.t SET v = v + 1").unwrap();
    // The log has told of it, since what was kept is void; and nobody can see it yet.
    wait_until("the result is void", || {
        value(&mut client, &of("t")) == before
    });
    let seen = value(&mut root, &of("t"));
    assert_eq!(seen, before, "the server waits for replicas");
    for _ in 0..20 {
        value(&mut client, &of("t"));
    }
    writer.read_outcomes().unwrap();
    assert_ne!(value(&mut root, &of("t")), before);
    wait_until_seen(&mut client, &mut root, "t", "the commit");
}

#[test]
fn nothing_is_kept_without_a_log_that_may_be_read() {
    let unlogged = cached_backend();
    let backend = logging_backend(&[]);
    let mut root = backend.connect().unwrap();
    root.run("REVOKE REPLICATION SLAVE ON *.* FROM plateau@'%'")
        .unwrap();
    for (backend, reason) in [
        (&unlogged, "its binary log is off"),
        (&backend, "needs GRANT REPLICATION SLAVE ON *.*"),
    ] {
        let mut root = backend.connect().unwrap();
        let gateway = cached(backend, POOLED[0], FOLLOWING);
        wait_until("it says why", || gateway.log().contains(reason));
        let mut client = gateway.connect();
        for _ in 0..2 {
            assert_eq!(read(&mut client), read(&mut root));
            root.run(ASIDE).unwrap();
        }
        assert_eq!(gateway.log().matches(reason).count(), 1);
    }
    let gateway = cached(&backend, POOLED[0], FOLLOWING);
    root.run(GRANT).expect(GRANT);
    wait_until("it follows", || gateway.log().contains(FOLLOWED));
    wait_until_hidden(&mut gateway.connect(), &mut root, "t");
}

fn followed_topology() -> Replicated {
    let topology = cached_topology();
    let mut root = topology.connect(0).expect("root gets in");
    root.run(GRANT).expect(GRANT);
    wait_for_replicas(&topology);
    topology
}

/// A replica that does not have what the log has told of fills no cache.
#[test]
fn a_replica_that_lacks_a_change_past_the_gateway_is_not_believed() {
    let topology = followed_topology();
    let gateway = split_over(&topology, FOLLOWING);
    let mut reader = gateway.connect();
    let mut root = topology.connect(0).unwrap();
    let mut replicas: Vec<_> = (1..=2).map(|it| topology.connect(it).unwrap()).collect();
    wait_until("it follows", || begun(&gateway) == 1);
    wait_until("results of replicas are kept", || {
        let before = value(&mut reader, &of("u"));
        for replica in &mut replicas {
            hide_change(replica, "u");
        }
        before == value(&mut reader, &of("u"))
    });
    // They follow, and wait for the lock.
    for replica in &mut replicas {
        replica.run("LOCK TABLES shop.t READ").unwrap();
    }
    root.run("UPDATE shop.t SET v = 11 WHERE id = 1").unwrap();
    for _ in 0..500 {
        assert_eq!(read(&mut reader), "10");
    }
    for replica in &mut replicas {
        replica.run("UNLOCK TABLES").unwrap();
    }
    wait_until("the replicas follow", || read(&mut reader) == "11");
}

#[test]
fn the_log_of_the_present_primary_is_followed() {
    let topology = followed_topology();
    let gateway = split_over(&topology, FOLLOWING);
    let mut client = gateway.connect();
    let mut old = topology.connect(0).unwrap();
    let mut new = topology.connect(1).unwrap();
    wait_until("it follows", || begun(&gateway) == 1);
    old.run("SET GLOBAL read_only = ON").unwrap();
    topology.wait_for_replica(1, 0).unwrap();
    new.run("STOP SLAVE").unwrap();
    new.run("RESET SLAVE ALL").unwrap();
    new.run("SET GLOBAL read_only = OFF").unwrap();
    old.run("SET GLOBAL gtid_slave_pos = @@gtid_binlog_pos")
        .unwrap();
    topology.replicate(0, 1).unwrap();
    wait_until("the new one is followed", || {
        let log = gateway.log();
        let mut lines = log.lines().filter(|it| it.contains(FOLLOWED));
        lines
            .next_back()
            .is_some_and(|it| it.contains("server=\"db1\""))
    });
    let in_transaction = |client: &mut Client| {
        client.run("BEGIN").unwrap();
        let told = read(client);
        client.run("COMMIT").unwrap();
        told
    };
    for round in 1..4 {
        let before = in_transaction(&mut client);
        new.run("UPDATE shop.t SET v = v + 1 WHERE id = 1").unwrap();
        wait_until("it is seen", || in_transaction(&mut client) != before);
        let now = read(&mut new);
        assert_eq!(in_transaction(&mut client), now, "{round}");
    }
}

#[test]
fn operators_see_how_far_a_log_was_read() {
    let backend = logging_backend(&[]);
    let mut root = backend.connect().unwrap();
    let service = format!("[[service]]\nname = \"shop\"\n{}cache = \"c\"\n", POOLED[0]);
    let other = "[[cache]]\nname = \"d\"\nfollow = \"binary-log\"\n\
                 [[cache]]\nname = \"e\"\n";
    let watched = Watched::start(&[&backend], &(service + FOLLOWING + other));
    let mut operator = watched.operator();
    let caches = "SELECT GROUP_CONCAT(CONCAT_WS('=', name, keeps, follows)) FROM plateau.cache";
    root.run("UPDATE shop.t SET v = v + 1").unwrap();
    let at = "SELECT CONCAT(variable_value, ':', (SELECT variable_value \
              FROM information_schema.global_status \
              WHERE variable_name = 'binlog_snapshot_position')) \
              FROM information_schema.global_status WHERE variable_name = 'binlog_snapshot_file'";
    let at = value(&mut root, at);
    let expected = format!("c=1=db0 {at},d=1=db0 {at},e=1");
    wait_until(&expected, || value(&mut operator, caches) == expected);
    let dumps = "SELECT COUNT(*) FROM information_schema.processlist \
                 WHERE command = 'Binlog Dump'";
    assert_eq!(value(&mut root, dumps), "1");
}
