//! More accounts and stored procedures than the server reads in one batch, before and after a
//! restart.

use testkit::{Client, Launch, Login, Outcome, Server};

/// Accounts and procedures are read in batches of 64; some exist from the start.
const COUNTS: [usize; 2] = [63, 130];

fn start() -> Server {
    Launch::plateau(env!("CARGO_BIN_EXE_plateau"))
        .start()
        .expect("the server starts")
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

/// Hashing a password takes milliseconds, and a statement may need hundreds. Other sessions of the
/// worker run meanwhile, and the statement can be killed.
#[test]
fn hashing_of_many_passwords_holds_nobody_up() {
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau"));
    let server = launch.with_settings(["workers=1"]).start();
    let server = server.expect("the server starts");
    let mut root = server.connect().expect("root logs in");
    let mut maker = server.connect().expect("root logs in");
    let user = |number| format!("s{number} identified with caching_sha2_password by 'p'");
    let users: Vec<_> = (0..2_000).map(user).collect();
    let create = format!("create user {}", users.join(", "));
    maker.send_query(create.as_bytes()).expect("it reads");
    let id = maker.connection_id;
    let command = format!("select command from information_schema.processlist where id = {id}");
    let mut look = || root.value(&command).expect("a command");
    let looks = (0..1_000).filter(|_| look().as_deref() == Some("Query"));
    assert_eq!(looks.take(5).count(), 5, "it runs, and others do");
    root.run(&format!("kill query {id}")).expect("it is there");
    match &maker.read_outcomes().expect("an answer")[..] {
        [Outcome::Error(error)] => assert_eq!(error.number, 1317),
        other => panic!("killed, not {other:?}"),
    }
    let count = "select count(*) from mysql.global_priv where user like 's%'";
    assert_eq!(root.value(count).expect("a count").as_deref(), Some("0"));
}
