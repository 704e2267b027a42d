//! KILL of a connection, as its two clients see it.

use std::io::Read;

use testkit::client::Client;
use testkit::{Launch, Outcome, on_each_driver, wait_until};

fn start(io: &str) -> testkit::Server {
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau"))
        .with_settings([format!("io={io}"), "workers=2".to_owned()]);
    launch.start().expect("the server starts")
}

/// A client library that reconnects by itself checks, before it sends a command, whether its
/// connection was closed. Once KILL was answered it is closed.
#[test]
fn an_idle_connection_has_ended_once_kill_is_answered() {
    on_each_driver(|io| {
        let server = start(io);
        let mut killer = server.connect().expect("it serves");
        killer.run("create database d").expect("a database");
        killer.run("create table d.t (i int)").expect("a table");
        for round in 0..200 {
            let mut victim = server.connect().expect("it serves");
            if round % 2 == 0 {
                victim.run("begin").expect("a transaction");
                victim.run("insert into d.t values (1)").expect("a row");
            }
            let kill = format!("kill {}", victim.connection_id);
            killer.run(&kill).expect("it is there");
            victim.stream().set_nonblocking(true).expect("a socket");
            let seen = victim.stream().peek(&mut [0]);
            assert!(seen.is_ok(), "{io}, round {round}: {seen:?}");
        }
    });
}

/// A client killed by another sees the end of its connection, and nothing before. An unrequested
/// error would be taken for the reply to its next command. A client that kills itself gets the
/// error.
#[test]
fn a_killed_client_is_told_nothing() {
    on_each_driver(|io| {
        let server = start(io);
        let mut killer = server.connect().expect("it serves");
        killer.run("create database d").expect("a database");
        killer.run("create table d.t (i int)").expect("a table");
        let rows = ["(1)"; 200].join(",");
        killer
            .run(&format!("insert into d.t values {rows}"))
            .expect("rows");
        let computes = "select count(*) from d.t a, d.t b, d.t c, d.t d, d.t e, d.t f";
        let in_handler = "begin not atomic declare continue handler for sqlexception \
                          select 'handled'; select sleep(60); select 'went on'; end";
        for statement in ["", computes, "do sleep(60)", in_handler] {
            let mut victim = server.connect().expect("it serves");
            if !statement.is_empty() {
                victim.send_query(statement.as_bytes()).expect("it reads");
                wait_until_running(&mut killer, victim.connection_id);
            }
            let kill = format!("kill {}", victim.connection_id);
            killer.run(&kill).expect("it is there");
            let mut read = Vec::new();
            victim.stream().read_to_end(&mut read).expect("an end");
            let last = read.windows(7).any(|it| it == b"went on");
            assert!(!last, "{io}, {statement}: {read:?}");
            if statement != in_handler {
                assert_eq!(read, b"", "{io}, {statement}");
            }
        }
        let mut own = server.connect().expect("it serves");
        own.send_query(b"kill connection_id()").expect("it reads");
        assert_eq!(error_number(&mut own), 1927, "{io}");
        let mut read = Vec::new();
        own.stream().read_to_end(&mut read).expect("an end");
        assert_eq!(read, b"", "{io}: told once");
    });
}

/// More than the sockets between server and client can hold.
const LARGE: &str = "select b from d.t";

fn with_large_rows(io: &str) -> (testkit::Server, Client) {
    let server = start(io);
    let mut root = server.connect().expect("it serves");
    root.run("create database d").expect("a database");
    root.run("create table d.t (a int primary key auto_increment, b longtext)")
        .expect("a table");
    root.run("insert into d.t (b) values (repeat('x', 4000))")
        .expect("a row");
    for _ in 0..13 {
        root.run("insert into d.t (b) select b from d.t")
            .expect("rows");
    }
    (server, root)
}

/// A few large rows fill the buffer. The statement waits until its client reads them, then checks
/// whether it was killed or its time is over.
#[test]
fn a_statement_that_sends_large_rows_ends() {
    on_each_driver(|io| {
        let (server, mut killer) = with_large_rows(io);
        let mut victim = server.connect().expect("it serves");
        victim.send_query(LARGE.as_bytes()).expect("it reads");
        wait_until_running(&mut killer, victim.connection_id);
        let kill = format!("kill query {}", victim.connection_id);
        killer.run(&kill).expect("it is there");
        let number = error_number(&mut victim);
        assert_eq!(number, 1317, "{io}");
        let timed = format!("set statement max_statement_time = 0.001 for {LARGE}");
        victim.send_query(timed.as_bytes()).expect("it goes on");
        assert_eq!(error_number(&mut victim), 1969, "{io}");
    });
}

/// A killed client that reads nothing does not keep others from the rows that it has locked.
#[test]
fn a_connection_that_takes_nothing_is_killed() {
    on_each_driver(|io| {
        let (server, mut killer) = with_large_rows(io);
        let mut victim = server.connect().expect("it serves");
        victim.run("begin").expect("a transaction");
        victim
            .run("update d.t set b = 'y' where a = 1")
            .expect("a locked row");
        victim.send_query(LARGE.as_bytes()).expect("it reads");
        wait_until_running(&mut killer, victim.connection_id);
        let kill = format!("kill {}", victim.connection_id);
        killer.run(&kill).expect("it is there");
        // The wait is shorter than the time that a client may read nothing.
        killer
            .run("update d.t set b = 'z' where a = 1")
            .expect("the row is free");
    });
}

fn wait_until_running(client: &mut Client, id: u32) {
    let runs = format!(
        "select count(*) from information_schema.processlist where id = {id} and command = 'Query'"
    );
    wait_until("it runs", || {
        client.value(&runs).expect("a count").as_deref() == Some("1")
    });
}

/// The number of the error at the end of the reply, 0 for none.
fn error_number(client: &mut Client) -> u16 {
    let outcomes = client.read_outcomes().expect("an answer");
    match outcomes.last() {
        Some(Outcome::Error(error)) => error.number,
        _ => 0,
    }
}
