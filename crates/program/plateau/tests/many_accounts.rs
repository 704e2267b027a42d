//! More accounts and stored procedures than the server reads at a time, before and after a start.

use testkit::{Client, Launch, Login, Server, ServerKind};

/// Accounts and procedures are read 64 at a time; some are there from the start.
const COUNTS: [usize; 2] = [63, 130];

fn start() -> Server {
    let mut launch = Launch::new(ServerKind::Plateau);
    launch.program = Some(env!("CARGO_BIN_EXE_plateau").into());
    launch.start().expect("the server starts")
}

fn check(server: &Server, count: usize) {
    let mut root = server.connect().expect("root logs in");
    let last = count - 1;
    root.run(&format!("call d.p{last}()")).expect("it runs");
    let value = root.value("select @p").expect("what it has set");
    assert_eq!(value, Some(last.to_string()));
    let login = Login {
        user: format!("u{last}"),
        password: "pw".to_owned(),
        ..Login::root(server.port())
    };
    let mut client = Client::connect(&login).expect("the last account logs in");
    assert_eq!(
        client.value("select 1").expect("a row").as_deref(),
        Some("1")
    );
}

#[test]
fn all_of_them_are_read() {
    let mut server = start();
    let mut root = server.connect().expect("root logs in");
    root.run("create database d").expect("a database");
    let mut made = 0;
    for count in COUNTS {
        for number in made..count {
            root.run(&format!(
                "create user u{number}@localhost identified by 'pw'"
            ))
            .expect("an account");
            root.run(&format!("create procedure d.p{number}() set @p = {number}"))
                .expect("a procedure");
        }
        made = count;
        check(&server, count);
    }
    drop(root);
    server.kill().expect("it ends");
    server.start_again().expect("and starts");
    check(&server, made);
    server.stop().expect("it ends in order");
}
