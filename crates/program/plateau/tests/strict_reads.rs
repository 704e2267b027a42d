//! `strict_reads`: what a client was told is still there after the process was killed.

#![forbid(unsafe_code)]

use testkit::{Launch, Server};

/// A server with two rows, whose commits do not wait for the disk.
fn start() -> Server {
    let launch =
        Launch::plateau(env!("CARGO_BIN_EXE_plateau")).with_settings(["flush_log_at_trx_commit=0"]);
    let server = launch.start().expect("it starts");
    let mut writer = server.connect().expect("a connection");
    for statement in [
        "set global strict_reads = on",
        "create database d",
        "create table d.t (id int primary key, v int)",
        "insert into d.t values (1, 0), (2, 0)",
    ] {
        writer.run(statement).expect(statement);
    }
    server
}

/// Kills the server and starts it again; returns the first row's value.
fn kept(server: &mut Server) -> Option<String> {
    server.kill().expect("it runs");
    server.start_again().expect("it starts");
    let mut client = server.connect().expect("a connection");
    let kept = client.value("select v from d.t where id = 1");
    client
        .run("set global strict_reads = on")
        .expect("it is a variable");
    kept.expect("a row")
}

/// A reader waits for the disk, so that what it has seen survives.
#[test]
fn what_was_read_survives_a_kill() {
    let mut server = start();
    for round in 1..=5 {
        let mut reader = server.connect().expect("a connection");
        let mut writer = server.connect().expect("a connection");
        writer
            .run(&format!("update d.t set v = {round} where id = 1"))
            .expect("the row is there");
        let seen = reader.value("select v from d.t where id = 1");
        let seen = seen.expect("a row");
        let expected = round.to_string();
        assert_eq!(seen.as_deref(), Some(expected.as_str()));
        assert_eq!(kept(&mut server), seen, "round {round}");
    }
}

/// A reply that is sent early, because the statement behind it waits for a lock, waits as well.
#[test]
fn what_was_told_before_a_wait_survives_a_kill() {
    let mut server = start();
    for round in 1..=5 {
        let mut holder = server.connect().expect("a connection");
        let mut reader = server.connect().expect("a connection");
        for statement in ["begin", "update d.t set v = 7 where id = 2"] {
            holder.run(statement).expect(statement);
        }
        // The reply to a statement of its own would make the change durable.
        let text = format!(
            "update d.t set v = {round} where id = 1; select v from d.t where id = 1;
             update d.t set v = 8 where id = 2"
        );
        reader.send_query(text.as_bytes()).expect("it is sent");
        for what in ["OK", "the number of columns", "the column", "their end"] {
            reader.next_packet().expect(what);
        }
        let row = reader.next_packet().expect("the row");
        let (length, seen) = row.split_first().expect("a row with a value");
        assert_eq!(usize::from(*length), seen.len());
        let seen = String::from_utf8_lossy(seen).into_owned();
        assert_eq!(seen, round.to_string());
        assert_eq!(kept(&mut server), Some(seen), "round {round}");
    }
}
