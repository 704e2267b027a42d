//! Calls that fail by an error of a remote server, as a client sees them.

use std::time::Duration;

use errcode::{ER_LOCK_DEADLOCK, ER_NET_READ_ERROR, ErrorCode};
use store::StoreError;
use testkit::client::{Client, Outcome, ServerError};

use super::server::TestServer;

/// After `count` more calls one fails with an error of a remote server.
fn fail_after(server: &TestServer, count: u64, code: ErrorCode) {
    server.with_naive(move |store| {
        let error = StoreError::Remote {
            server: "s1".into(),
            code,
            state: code.sqlstate(),
            text: "told by s1".into(),
        };
        store.fail_after(count, error);
    });
}

fn error(client: &mut Client, sql: &str) -> Option<ServerError> {
    match client.query(sql).expect("an answer") {
        Outcome::Error(error) => Some(error),
        _ => None,
    }
}

/// The rows of `t`, in one text.
fn rows(client: &mut Client) -> String {
    let sql = "SELECT GROUP_CONCAT(id, ':', k ORDER BY id) FROM t";
    client.value(sql).expect("a value").unwrap_or_default()
}

#[test]
fn a_client_gets_the_error_of_the_server_and_nothing_is_changed() {
    let server = TestServer::over_naive(Duration::ZERO);
    let mut client = server.connect().expect("a client");
    client.run("CREATE DATABASE d").expect("a database");
    client.run("USE d").expect("it is there");
    let create = "CREATE TABLE t (id INT PRIMARY KEY, k INT, KEY (k))";
    client.run(create).expect("a table");
    let insert = "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)";
    client.run(insert).expect("rows");
    let before = rows(&mut client);
    let statements = [
        "INSERT INTO t VALUES (4, 40)",
        "REPLACE INTO t VALUES (1, 11), (5, 50)",
        "UPDATE t SET id = id + 10",
        "UPDATE t a JOIN t b ON b.id = a.id SET a.k = b.k + 1",
        "DELETE FROM t WHERE k > 15",
        "SELECT * FROM t a JOIN t b ON b.id = a.id",
    ];
    for sql in statements {
        client.run("BEGIN").expect("a transaction");
        for call in 0.. {
            fail_after(&server, call, ER_NET_READ_ERROR);
            let failed = error(&mut client, sql);
            let has_happened = !server.with_naive(|store| store.withdraw_failure());
            if let Some(failed) = &failed {
                assert!(has_happened, "{sql}: {failed:?}");
                assert_eq!(failed.number, 1158, "{sql}");
                assert_eq!(failed.state, "08S01", "{sql}");
                assert_eq!(failed.message, "told by s1", "{sql}");
                assert_eq!(rows(&mut client), before, "{sql} at {call}");
                // The server's connection is gone, and the transaction with it.
                client.run("BEGIN").expect("a transaction");
            } else if !has_happened {
                break;
            } else {
                // An estimate has failed, and the plan was made without it.
                client.run("ROLLBACK").expect("an end");
                client.run("BEGIN").expect("a transaction");
            }
        }
        client.run("ROLLBACK").expect("an end");
        assert_eq!(rows(&mut client), before, "{sql}");
    }
}

#[test]
fn a_deadlock_on_the_server_ends_the_transaction_and_another_error_does_not() {
    let server = TestServer::over_naive(Duration::ZERO);
    let mut client = server.connect().expect("a client");
    client.run("CREATE DATABASE d").expect("a database");
    client.run("USE d").expect("it is there");
    let create = "CREATE TABLE t (id INT PRIMARY KEY, k INT)";
    client.run(create).expect("a table");
    for (code, kept) in [
        (errcode::ER_LOCK_WAIT_TIMEOUT, "1:1"),
        (ER_LOCK_DEADLOCK, ""),
    ] {
        client.run("BEGIN").expect("a transaction");
        client.run("INSERT INTO t VALUES (1, 1)").expect("a row");
        fail_after(&server, 0, code);
        let failed = error(&mut client, "INSERT INTO t VALUES (2, 2)").expect("an error");
        assert_eq!(failed.number, code.number());
        client.run("COMMIT").expect("an end");
        assert_eq!(rows(&mut client), kept, "{code:?}");
        client.run("DELETE FROM t").expect("no row is left");
    }
}

#[test]
fn a_commit_that_fails_leaves_nothing() {
    let server = TestServer::over_naive(Duration::ZERO);
    let mut client = server.connect().expect("a client");
    client.run("CREATE DATABASE d").expect("a database");
    client.run("USE d").expect("it is there");
    client
        .run("CREATE TABLE t (id INT PRIMARY KEY, k INT)")
        .expect("a table");
    client.run("BEGIN").expect("a transaction");
    client.run("INSERT INTO t VALUES (1, 1)").expect("a row");
    fail_after(&server, 0, ER_NET_READ_ERROR);
    let failed = error(&mut client, "COMMIT").expect("an error");
    assert_eq!(failed.number, 1158);
    assert_eq!(rows(&mut client), "");
}

/// The store says that the prepared transaction can only be rolled back, and has done that.
#[test]
fn a_prepared_transaction_that_cannot_be_committed_any_more_is_gone() {
    let server = TestServer::over_naive(Duration::ZERO);
    let mut client = server.connect().expect("a client");
    for sql in [
        "CREATE DATABASE d",
        "USE d",
        "CREATE TABLE t (id INT PRIMARY KEY, k INT)",
        "XA START 'x'",
        "INSERT INTO t VALUES (1, 1)",
        "XA END 'x'",
        "XA PREPARE 'x'",
    ] {
        client.run(sql).expect(sql);
    }
    server.with_naive(|store| store.fail_after(0, StoreError::RolledBack));
    let failed = error(&mut client, "XA COMMIT 'x'").expect("an error");
    assert_eq!((failed.number, &*failed.state), (1402, "XA100"));
    assert!(client.rows("XA RECOVER").expect("a list").is_empty());
    let failed = error(&mut client, "XA ROLLBACK 'x'").expect("an error");
    assert_eq!(failed.number, 1397);
}
