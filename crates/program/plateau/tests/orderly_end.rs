//! The shutdown by SIGTERM or SHUTDOWN, as clients and the log see it.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    reason = "the helpers of these tests fail as the tests do"
)]

use testkit::client::{Client, Login};
use testkit::{Launch, Outcome, Signal, on_each_driver, wait_for, wait_until};

/// Clients of a pool are mostly idle: they must not delay the shutdown.
#[test]
fn idle_clients_are_dismissed_and_running_statements_are_not() {
    on_each_driver(|io| {
        let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau")).with_settings([
            &format!("io={io}"),
            "workers=2",
            "log=info",
        ]);
        let mut server = launch.start().expect("the server starts");
        let mut idle: Vec<_> = (0..5).map(|_| server.connect().unwrap()).collect();
        let mut silent = std::net::TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        idle[0].run("create database d").unwrap();
        idle[0].run("create table d.t (i int)").unwrap();
        for client in &mut idle {
            client.run("begin").unwrap();
            client.run("insert into d.t values (1)").unwrap();
        }
        let mut busy = server.connect().unwrap();
        let get = "do get_lock('busy', 0)";
        busy.run(get).unwrap();
        let mut waiting = server.connect().unwrap();
        // The session with the lock, as idle as the others, ends first and releases it.
        waiting.send_query(b"select get_lock('busy', 60)").unwrap();
        let listed = "select count(*) from information_schema.processlist \
                      where info like 'select get_lock%' and state = 'User lock'";
        wait_until("one waits for the lock", || {
            busy.value(listed).unwrap().as_deref() == Some("1")
        });
        server.stop().unwrap();
        let log = server.log();
        assert!(!log.contains("cut off"), "{io}: {log}");
        assert!(log.contains("asked to stop termination=SIGTERM"), "{log}");
        assert!(log.contains("stopped in order"), "{io}: {log}");
        let outcomes = waiting.read_outcomes().unwrap();
        match &outcomes[..] {
            [Outcome::Rows(got)] => assert_eq!(got.rows, [[Some(b"1".to_vec())]], "{io}"),
            other => panic!("{io}: {other:?}"),
        }
        for client in &mut idle {
            // The error was sent meanwhile; the client reads it as the reply to its next command.
            client.send_query(b"select 1").unwrap();
            match &client.read_outcomes().unwrap()[..] {
                [Outcome::Error(error)] => assert_eq!(error.number, 1053, "{io}"),
                other => panic!("{io}: {other:?}"),
            }
        }
        let mut greeting = Vec::new();
        std::io::Read::read_to_end(&mut silent, &mut greeting).unwrap();
        server.start_again().unwrap();
        let mut client = server.connect().unwrap();
        let count = client.value("select count(*) from d.t").unwrap();
        assert_eq!(count.as_deref(), Some("0"));
    });
}

/// What ends the sessions that do not end by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KilledBy {
    SecondSignal,
    /// The server's patience is over.
    Patience,
}

#[test]
fn what_never_ends_is_killed_at_a_second_signal() {
    on_each_driver(|io| what_never_ends_is_killed(io, KilledBy::SecondSignal));
}

#[test]
fn what_never_ends_is_killed_after_a_while() {
    on_each_driver(|io| what_never_ends_is_killed(io, KilledBy::Patience));
}

/// A procedure that commits for ever keeps a write of the log running at nearly every moment. Cut
/// off within it, the server would end as by a crash. So sessions are killed first.
fn what_never_ends_is_killed(io: &str, cause: KilledBy) {
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau"))
        .with_settings([format!("io={io}"), "workers=2".to_owned()]);
    let mut server = launch.start().expect("the server starts");
    let mut idle = server.connect().unwrap();
    idle.run("create database d").unwrap();
    idle.run("create table d.t (i int primary key auto_increment)")
        .unwrap();
    idle.run("create procedure d.p() loop insert into d.t values (); end loop")
        .unwrap();
    let mut busy: Vec<_> = (0..8).map(|_| server.connect().unwrap()).collect();
    for client in &mut busy {
        client.send_query(b"call d.p()").unwrap();
    }
    let mut waiting = server.connect().unwrap();
    waiting.send_query(b"select sleep(1000)").unwrap();
    let mut unread = server.connect().unwrap();
    let endless = b"with recursive c as (select 0 as n union all select n + 1 from c \
                    where n < 1000000) select repeat('x', 60000) from c";
    unread.send_query(endless).unwrap();
    // Shows what they wait for, if they do not end.
    let listed = "select concat(if(100 < (select count(*) from d.t), 'enough', 'more'), ': ', \
                  group_concat(command, ' ', time_ms, ' ', ifnull(state, ''))) \
                  from information_schema.processlist";
    wait_for(
        "they insert",
        || idle.value(listed).unwrap(),
        |seen| seen.as_ref().is_some_and(|it| it.starts_with("enough")),
    );
    server.process().signal(Signal::TERM).unwrap();
    wait_until("the end has begun", || {
        match idle.query("select 1").unwrap() {
            Outcome::Rows(_) => false,
            Outcome::Error(error) => error.number == 1053,
            other => panic!("{io}: {other:?}"),
        }
    });
    if cause == KilledBy::SecondSignal {
        server.process().signal(Signal::TERM).unwrap();
    }
    let status = server.process().wait().unwrap();
    let log = server.log();
    assert!(status.success(), "{io}, {cause:?}: {status}: {log}");
    assert!(!log.contains("cut off"), "{io}, {cause:?}: {log}");
    let is_told = log.contains("the end waits for running statements");
    // A second signal may come before there is anything to tell.
    assert!(is_told || cause == KilledBy::SecondSignal, "{io}: {log}");
    let killed = "running statements were ended by the shutdown statements=10";
    assert_eq!(log.matches(killed).count(), 1, "{io}, {cause:?}: {log}");
    // One that reads nothing has no room for an error.
    for client in busy.iter_mut().chain([&mut waiting]) {
        match &client.read_outcomes().unwrap()[..] {
            [Outcome::Error(error)] => assert_eq!(error.number, 1053, "{io}, {cause:?}"),
            other => panic!("{io}, {cause:?}: {other:?}"),
        }
    }
    server.start_again().unwrap();
    let mut client = server.connect().unwrap();
    let whole = client.value("select count(*) > 100 from d.t").unwrap();
    assert_eq!(whole.as_deref(), Some("1"));
}

#[test]
fn shutdown_in_sql_is_in_the_log() {
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau")).with_settings(["log=info"]);
    let mut server = launch.start().expect("the server starts");
    let mut client = server.connect().unwrap();
    client.run("shutdown").unwrap();
    let status = server.process().wait().unwrap();
    let log = server.log();
    assert!(status.success(), "{status}: {log}");
    assert!(log.contains("asked to stop termination=SHUTDOWN"), "{log}");
    assert!(log.contains("stopped in order"), "{log}");
}

/// `mariadb-admin shutdown` sends COM_SHUTDOWN. It needs the same privilege.
#[test]
fn the_command_shuts_down() {
    const SHUTDOWN: u8 = 8;
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau")).with_settings(["log=info"]);
    let mut server = launch.start().expect("the server starts");
    let mut root = server.connect().unwrap();
    root.run("create user plain").unwrap();
    let login = Login {
        user: "plain".to_owned(),
        ..Login::root(server.port())
    };
    let mut plain = Client::connect(&login).unwrap();
    plain.send_command(SHUTDOWN, b"\0").unwrap();
    let refusal = plain.next_packet().unwrap();
    assert_eq!(refusal[..3], [0xff, 0xcb, 0x04], "1227: {refusal:?}");
    root.send_command(SHUTDOWN, b"\0").unwrap();
    let reply = root.next_packet().unwrap();
    assert_eq!(reply[0], 0xfe, "{reply:?}");
    let status = server.process().wait().unwrap();
    let log = server.log();
    assert!(status.success(), "{status}: {log}");
    assert!(log.contains("asked to stop termination=SHUTDOWN"), "{log}");
}
