//! `strict_reads`: what a client was told is still there after the process was killed.

#![forbid(unsafe_code)]

use testkit::Launch;

/// Commits do not wait for the disk here. A reader does, so that what it has seen survives.
#[test]
fn what_was_read_survives_a_kill() {
    let launch =
        Launch::plateau(env!("CARGO_BIN_EXE_plateau")).with_settings(["flush_log_at_trx_commit=0"]);
    let mut server = launch.start().expect("it starts");
    let mut writer = server.connect().expect("a connection");
    for statement in [
        "set global strict_reads = on",
        "create database d",
        "create table d.t (id int primary key, v int)",
        "insert into d.t values (1, 0)",
    ] {
        writer.run(statement).expect(statement);
    }
    for round in 1..=5 {
        let mut reader = server.connect().expect("a connection");
        let mut writer = server.connect().expect("a connection");
        writer
            .run(&format!("update d.t set v = {round}"))
            .expect("the row is there");
        let seen = reader.value("select v from d.t").expect("a row");
        let expected = round.to_string();
        assert_eq!(seen.as_deref(), Some(expected.as_str()));
        server.kill().expect("it runs");
        server.start_again().expect("it starts");
        let mut client = server.connect().expect("a connection");
        let kept = client.value("select v from d.t").expect("a row");
        assert_eq!(kept, seen, "round {round}");
        client
            .run("set global strict_reads = on")
            .expect("it is a variable");
    }
}
