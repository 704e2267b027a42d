//! What SHOW STATUS counts of the buffer pool, the log, locks, transactions and sessions.

use testkit::{Client, Launch, Outcome, Server, wait_until};

fn start() -> (Server, Client) {
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau"));
    let server = launch.start().expect("the server starts");
    let mut root = server.connect().expect("it serves");
    for statement in [
        "create database d",
        "create table d.t (id int primary key, n int)",
        "insert into d.t values (1, 0), (2, 0)",
    ] {
        root.run(statement).expect(statement);
    }
    (server, root)
}

fn status(client: &mut Client, name: &str) -> u64 {
    client.status(name).expect(name)
}

#[test]
fn pages_and_log_are_counted() {
    let (_server, mut root) = start();
    let names = [
        "Innodb_buffer_pool_read_requests",
        "Innodb_os_log_written",
        "Innodb_log_writes",
        "Innodb_lsn_current",
        "Worker_polls",
    ];
    let before = names.map(|name| status(&mut root, name));
    root.run("update d.t set n = n + 1").expect("two rows");
    let after = names.map(|name| status(&mut root, name));
    for ((name, before), after) in names.iter().zip(before).zip(after) {
        assert!(before < after, "{name}: {before}, then {after}");
    }
    let pages = ["total", "free", "data", "dirty"]
        .map(|part| status(&mut root, &format!("Innodb_buffer_pool_pages_{part}")));
    let [total, free, data, dirty] = pages;
    assert_eq!(total, 8192, "128 MiB of 16 KiB");
    assert_eq!(free + data, total);
    assert!(0 < dirty && dirty <= data, "{dirty} of {data}");
    assert_eq!(status(&mut root, "Innodb_log_waits"), 0);
}

#[test]
fn waits_for_locks_are_counted() {
    let (server, mut holder) = start();
    let mut waiter = server.connect().expect("it serves");
    for client in [&mut holder, &mut waiter] {
        client.run("begin").expect("a transaction");
    }
    holder
        .run("update d.t set n = 1 where id = 1")
        .expect("free");
    waiter
        .run("update d.t set n = 2 where id = 2")
        .expect("free");
    let wait = b"update d.t set n = 3 where id = 1";
    waiter.send_query(wait).expect("it reads");
    wait_until("the waiter waits", || {
        status(&mut holder, "Innodb_row_lock_current_waits") == 1
    });
    assert_eq!(status(&mut holder, "Threads_running"), 2);
    // Closes the cycle, and one of the two is rolled back.
    let closed = holder.query_all(b"update d.t set n = 4 where id = 2");
    let outcomes = [
        closed.expect("an answer"),
        waiter.read_outcomes().expect("an answer"),
    ];
    let failed = outcomes.concat();
    let failed = failed.iter().filter(|it| matches!(it, Outcome::Error(_)));
    assert_eq!(failed.count(), 1);
    assert_eq!(status(&mut holder, "Innodb_deadlocks"), 1);
    assert_eq!(status(&mut holder, "Innodb_row_lock_current_waits"), 0);
    let waits = status(&mut holder, "Innodb_row_lock_waits");
    assert!((1..=2).contains(&waits), "{waits}");
    let (count, sum) = ("Row_lock_wait_us_count", "Row_lock_wait_us_sum");
    assert!(status(&mut holder, count) <= waits);
    let time_ms = status(&mut holder, "Innodb_row_lock_time");
    assert_eq!(time_ms, status(&mut holder, sum) / 1000);
}

#[test]
fn the_history_grows_while_a_snapshot_is_open() {
    let (server, mut writer) = start();
    let mut reader = server.connect().expect("it serves");
    let length = "Innodb_history_list_length";
    wait_until("purge is through", || status(&mut writer, length) == 0);
    reader
        .run("start transaction with consistent snapshot")
        .expect("a snapshot");
    for _ in 0..50 {
        writer.run("update d.t set n = n + 1").expect("two rows");
    }
    assert_eq!(status(&mut writer, length), 50);
    reader.run("commit").expect("it ends");
    wait_until("purge is through", || status(&mut writer, length) == 0);
    assert!(0 < status(&mut writer, "Purged_undo_records"));
}
