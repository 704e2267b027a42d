//! KILL of a connection, as its two clients see it.

use testkit::{Launch, ServerKind};

fn start(io: &str) -> testkit::Server {
    let mut launch = Launch::new(ServerKind::Plateau);
    launch.program = Some(env!("CARGO_BIN_EXE_plateau").into());
    for setting in [format!("io={io}"), "workers=2".to_owned()] {
        launch = launch.with("--set").with(setting);
    }
    launch.start().expect("the server starts")
}

/// A client library that shall connect anew by itself looks, before it sends a command, whether its
/// connection has ended. Once KILL was answered it has.
#[test]
fn an_idle_connection_has_ended_once_kill_is_answered() {
    for io in ["epoll", "auto"] {
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
    }
}
