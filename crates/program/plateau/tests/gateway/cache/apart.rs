//! What servers answer by more than tables: by a transaction's snapshot, an isolation, the day.

use super::*;

/// Only a row of a table shows that its transaction has a snapshot.
#[test]
fn a_row_of_no_table_is_no_snapshot() {
    let backend = cached_backend();
    let gateway = cached(&backend, POOLED[0], CACHE);
    let (mut client, mut writer) = (gateway.connect(), gateway.connect());
    let other = "SELECT v FROM shop.u WHERE id = 1";
    let firsts = [
        "SELECT * FROM (SELECT 1 AS x) d",
        "SELECT 1 UNION SELECT 2",
        "SELECT COUNT(*) FROM shop.t WHERE 1 = 0",
        "SELECT MAX(id) FROM shop.t WHERE 0",
        "SELECT * FROM shop.seq_1_to_3",
        "SELECT * FROM (VALUES (1)) q",
    ];
    for (was, first) in (10..).zip(firsts) {
        assert_eq!(read(&mut client), was.to_string());
        client.run("BEGIN").unwrap();
        client.run(first).expect(first);
        assert_eq!(read(&mut client), was.to_string(), "{first}");
        writer
            .run("UPDATE shop.t, shop.u SET t.v = t.v + 1, u.v = u.v + 1 WHERE t.id = 1")
            .unwrap();
        // The read before has made the snapshot on the server.
        assert_eq!(value(&mut client, other), was.to_string(), "{first}");
        assert_eq!(read(&mut client), was.to_string(), "{first}");
        client.run("COMMIT").unwrap();
    }
}

#[test]
fn sessions_that_lock_what_they_read_are_told_nothing() {
    let backend = cached_backend();
    let mut root = backend.connect().unwrap();
    let gateway = cached(&backend, POOLED[0], CACHE);
    for level in [
        "SET SESSION tx_isolation = 3, @x = 'repeatable'",
        "SET SESSION tx_isolation = CONCAT('READ-UN', 'COMMITTED') /* repeatable */",
        "SET SESSION tx_isolation = 'SERIALIZABLE' /* committed */",
    ] {
        let mut client = gateway.connect();
        client.run(level).expect(level);
        let before = read(&mut client);
        root.run(ASIDE).unwrap();
        assert_ne!(read(&mut client), before, "{level}");
    }
    let mut client = gateway.connect();
    client
        .run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        .unwrap();
    let before = read(&mut client);
    root.run(ASIDE).unwrap();
    assert_eq!(read(&mut client), before);
}

#[test]
fn what_depends_on_the_day_is_not_kept() {
    let backend = cached_backend();
    let mut root = backend.connect().unwrap();
    root.run("ALTER TABLE shop.t ADD opens TIME DEFAULT '10:00'")
        .unwrap();
    let gateway = cached(&backend, POOLED[0], CACHE);
    let mut client = gateway.connect();
    let on_days = ["Opens", "MAKETIME(1, v, v)", "CAST('10:00' AS TIME)"].map(|time| {
        format!("SELECT v FROM shop.t WHERE id = 1 AND CAST({time} AS DATETIME) > '2000-01-01'")
    });
    for on_day in &on_days {
        assert_eq!(value(&mut client, on_day), "10");
    }
    assert_eq!(read(&mut client), "10");
    root.run("UPDATE shop.t SET v = v + 1").unwrap();
    for on_day in &on_days {
        assert_eq!(value(&mut client, on_day), "11");
    }
    assert_eq!(read(&mut client), "10", "it does not name the column");
}

/// `WHERE id IS NULL` is the row that the session has inserted last.
#[test]
fn a_session_finds_its_last_row_by_null() {
    let backend = cached_backend();
    let mut root = backend.connect().unwrap();
    root.run("CREATE TABLE shop.a (id INT PRIMARY KEY AUTO_INCREMENT)")
        .unwrap();
    for kind in POOLED {
        let gateway = cached(&backend, kind, CACHE);
        let mut clients: Vec<_> = (0..3).map(|_| gateway.connect()).collect();
        for client in &mut clients {
            client.run("SET sql_auto_is_null = 1").unwrap();
        }
        for _ in 0..3 {
            let mut ids = Vec::new();
            for client in &mut clients {
                client.run("INSERT INTO shop.a VALUES ()").unwrap();
                ids.push(value(client, "SELECT MAX(id) FROM shop.a"));
            }
            for (client, id) in clients.iter_mut().zip(ids) {
                let found = client.value("SELECT id FROM shop.a WHERE id IS NULL");
                assert_eq!(found.unwrap(), Some(id));
            }
        }
    }
}

/// A write that fails tells no position, so nobody knows whether a replica has it.
#[test]
fn replicas_fill_the_cache_again_behind_a_failed_write() {
    let topology = cached_topology();
    let port = free_port().unwrap();
    let other = format!(
        "[[service]]\nname = \"one\"\nrouter = \"read-connection\"\nrole = \"primary\"\n\
         [[listener]]\naddress = \"127.0.0.1:{port}\"\nservice = \"one\"\n"
    );
    let gateway = split_over(&topology, &(other + CACHE));
    let mut reader = gateway.connect();
    let mut root = topology.connect(0).unwrap();
    let mut number = 0;
    let mut is_kept = || {
        number += 1;
        let query = format!("SELECT v FROM shop.t WHERE id = 1 AND {number} = {number}");
        let before = value(&mut reader, &query);
        root.run(ASIDE).unwrap();
        wait_for_replicas(&topology);
        value(&mut reader, &query) == before
    };
    wait_until("replicas are believed", &mut is_kept);
    let mut writer = Client::connect(&Login {
        user: "app".to_owned(),
        password: "secret".to_owned(),
        ..Login::root(port)
    })
    .unwrap();
    let twice = "INSERT INTO shop.t VALUES (1, 1)";
    assert_eq!(writer.error_number(twice).unwrap(), 1062);
    wait_until("they are believed again", is_kept);
}
