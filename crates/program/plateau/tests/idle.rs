//! An idle server sleeps: no timer runs unless something waits for it. The test counts wake-ups,
//! not CPU time.

#![forbid(unsafe_code)]

use std::io::Read;
use std::time::Duration;

use testkit::client::Client;
use testkit::process::sleep_count;
use testkit::{Launch, Server, wait_until};

/// How long wake-ups are counted, in seconds.
const SECONDS: u64 = 2;

/// The wake-ups of the whole server in a second.
const WAKE_UPS_PER_SECOND_MAX: u64 = 10;

fn start() -> Server {
    Launch::plateau(env!("CARGO_BIN_EXE_plateau"))
        .with_settings(["workers=4"])
        .start()
        .expect("the server starts")
}

/// Lets time pass: a client reads from a server that sends nothing.
fn listen(client: &mut Client) {
    let stream = client.stream();
    let length = Some(Duration::from_secs(SECONDS));
    stream.set_read_timeout(length).expect("a time-out");
    let heard = stream.read(&mut [0]);
    assert!(heard.is_err(), "nobody has asked anything");
    stream.set_read_timeout(None).expect("no time-out");
}

/// Whether the server sleeps while the client listens.
fn is_asleep(server: &mut Server, client: &mut Client) -> bool {
    let id = server.process().id();
    let count = || sleep_count(id).expect("the process runs");
    let before = count();
    listen(client);
    count() - before <= SECONDS * WAKE_UPS_PER_SECOND_MAX
}

#[test]
fn an_idle_server_sleeps() {
    let mut server = start();
    let mut listener = server.connect().expect("it serves");
    wait_until("a fresh server sleeps", || {
        is_asleep(&mut server, &mut listener)
    });
    let rows: Vec<String> = (0..1000).map(|row| format!("({row}, 0)")).collect();
    let insert = format!("insert into d.t values {}", rows.join(","));
    for statement in [
        "create database d",
        "create table d.t (i int primary key, v int)",
        &insert,
        "update d.t set v = v + 1",
        "delete from d.t where i < 500",
    ] {
        listener.run(statement).expect(statement);
    }
    wait_until("it sleeps when its work is done", || {
        is_asleep(&mut server, &mut listener)
    });
    let clients: Vec<_> = (0..200)
        .map(|_| server.connect().expect("it serves"))
        .collect();
    wait_until("idle clients need no wake-ups", || {
        is_asleep(&mut server, &mut listener)
    });
    drop(clients);
}

/// Nor do clients that stay idle in a transaction.
#[test]
fn open_transactions_need_no_wake_ups() {
    let mut server = start();
    let mut writer = server.connect().expect("it serves");
    let mut reader = server.connect().expect("it serves");
    let mut listener = server.connect().expect("it serves");
    for statement in [
        "create database d",
        "create table d.t (i int primary key, v int)",
        "insert into d.t values (1, 0), (2, 0)",
        "begin",
        "update d.t set v = 1 where i = 1",
    ] {
        writer.run(statement).expect(statement);
    }
    for statement in ["begin", "select * from d.t"] {
        reader.query(statement).expect(statement);
    }
    let update = "update d.t set v = v + 1 where i = 2";
    listener.run(update).expect(update);
    wait_until("open transactions need no wake-ups", || {
        is_asleep(&mut server, &mut listener)
    });
    // A session that waits for a lock causes no wake-ups either, and is served as soon as the lock
    // is free.
    let blocked = "update d.t set v = 5 where i = 1";
    reader.run("commit").expect("the end of a snapshot");
    reader.send_query(blocked.as_bytes()).expect("it reads");
    wait_until("a wait for a lock needs no wake-ups", || {
        is_asleep(&mut server, &mut listener)
    });
    writer.run("commit").expect("the lock is free");
    reader.read_outcomes().expect("the waiter has its lock");
    let value = listener.value("select v from d.t where i = 1");
    assert_eq!(value.expect("an answer").as_deref(), Some("5"));
}
