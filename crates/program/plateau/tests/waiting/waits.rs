//! Every wait of a statement for others: the process list shows it, and it ends by its limit and by
//! KILL.

use testkit::client::Client;
use testkit::{Launch, Login, Outcome, Server, wait_for};

/// A wait: the holder's statements, the waiting statement, and the state in the process list.
struct Wait {
    hold: &'static [&'static str],
    wait: &'static str,
    state: &'static str,
    limit: Limit,
}

/// How the wait ends by itself after a second.
enum Limit {
    /// This variable is its limit, and it fails with 1205.
    Variable(&'static str),
    /// Its own argument; it succeeds.
    Own,
}

const ROW_LIMIT: Limit = Limit::Variable("innodb_lock_wait_timeout");
const TABLE_LIMIT: Limit = Limit::Variable("lock_wait_timeout");

const fn row(hold: &'static [&'static str], wait: &'static str) -> Wait {
    Wait {
        hold,
        wait,
        state: "Waiting for row lock",
        limit: ROW_LIMIT,
    }
}

const fn table(hold: &'static [&'static str], wait: &'static str) -> Wait {
    Wait {
        hold,
        wait,
        state: "Waiting for table metadata lock",
        limit: TABLE_LIMIT,
    }
}

const DELETED: &[&str] = &["begin", "delete from t where id = 1"];
const MOVED: &[&str] = &["begin", "update t set u = 15 where id = 1"];
const ADDED: &[&str] = &["begin", "insert into t values (9, 10 + 80, 90)"];
const READ: &[&str] = &["begin", "select count(*) from t"];
const LOCKED: &[&str] = &["lock tables t write"];

const WAITS: &[Wait] = &[
    row(DELETED, "select * from t where id = 1 for update"),
    row(DELETED, "select * from t where u = 10 for update"),
    row(MOVED, "select * from t where p = 10 lock in share mode"),
    row(DELETED, "update t set p = 0 where u = 10"),
    row(MOVED, "delete from t where p < 20"),
    row(DELETED, "insert into t values (1, 70, 0)"),
    row(DELETED, "insert into t values (3, 10, 0)"),
    row(DELETED, "insert ignore into t values (3, 10, 0)"),
    row(DELETED, "replace into t values (3, 10, 0)"),
    row(
        DELETED,
        "insert into t values (3, 10, 0) on duplicate key update p = 1",
    ),
    row(MOVED, "insert into t values (4, 40, 0), (3, 10, 0)"),
    row(MOVED, "insert into t select 3, 10, 0"),
    row(MOVED, "update t set u = 10 where id = 2"),
    row(MOVED, "update ignore t set u = 10 where id = 2"),
    row(ADDED, "insert into t values (3, 90, 0)"),
    row(ADDED, "update t set u = 90 where id = 2"),
    table(READ, "alter table t add x int"),
    table(READ, "drop table t"),
    table(READ, "truncate table t"),
    table(READ, "lock tables t write"),
    table(READ, "rename table t to r"),
    table(LOCKED, "select * from t"),
    table(LOCKED, "insert into t values (3, 30, 30)"),
    Wait {
        hold: &["do get_lock('name', 0)"],
        wait: "do get_lock('name', 1)",
        state: "User lock",
        limit: Limit::Own,
    },
    Wait {
        hold: &[],
        wait: "do sleep(1)",
        state: "User sleep",
        limit: Limit::Own,
    },
];

/// A server with a database for each wait, so that all of them go on at once.
fn start() -> Server {
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau"));
    let server = launch.start().expect("the server starts");
    let mut client = server.connect().expect("it serves");
    for number in 0..WAITS.len() {
        for statement in [
            format!("create database d{number}").as_str(),
            format!("use d{number}").as_str(),
            "create table t (id int primary key, u int unique, p int, key (p))",
            "insert into t values (1, 10, 10), (2, 20, 20)",
        ] {
            client.run(statement).expect(statement);
        }
    }
    server
}

/// Runs a check of each wait, all at once: connections to the wait's own database, and the wait.
fn with_each_wait(check: impl Fn(&dyn Fn() -> Client, &Wait) + Sync) {
    let server = start();
    let (login, check) = (&Login::root(server.port()), &check);
    std::thread::scope(|scope| {
        for (number, wait) in WAITS.iter().enumerate() {
            scope.spawn(move || {
                let connect = || {
                    let mut client = Client::connect(login).expect("it serves");
                    client.run(&format!("use d{number}")).expect("a database");
                    client
                };
                check(&connect, wait);
            });
        }
    });
}

/// Makes a session hold what is waited for.
fn hold(holder: &mut Client, wait: &Wait) {
    for statement in wait.hold {
        holder.query(statement).expect(statement);
    }
}

/// The error number of the one reply, 0 for none.
fn error_number(client: &mut Client) -> u16 {
    match &client.read_outcomes().expect("an answer")[..] {
        [Outcome::Error(error)] => error.number,
        _ => 0,
    }
}

#[test]
fn every_wait_has_a_limit() {
    with_each_wait(|connect, wait| {
        let mut holder = connect();
        hold(&mut holder, wait);
        let mut waiter = connect();
        let expected = match wait.limit {
            Limit::Variable(name) => {
                waiter.run(&format!("set {name} = 1")).expect("a limit");
                1205
            }
            Limit::Own => 0,
        };
        waiter.send_query(wait.wait.as_bytes()).expect("it reads");
        assert_eq!(error_number(&mut waiter), expected, "{}", wait.wait);
        // The time limit of the statement also ends it.
        let timed = format!("set statement max_statement_time = 0.1 for {}", wait.wait);
        waiter.send_query(timed.as_bytes()).expect("it reads");
        let number = error_number(&mut waiter);
        let is_lock_tables = wait.wait.starts_with("lock tables");
        assert!(number == 1969 || is_lock_tables, "{}: {number}", wait.wait);
        holder.query("rollback").expect("an end");
    });
}

/// What is set while a transaction is open holds from its next wait, as in MariaDB.
#[test]
fn a_transaction_waits_as_long_as_is_set_last() {
    let server = start();
    let connect = || Client::connect(&Login::root(server.port())).expect("it serves");
    let (mut holder, mut waiter) = (connect(), connect());
    holder.run("begin").expect("it begins");
    holder.run("delete from d0.t where id = 1").expect("locked");
    waiter.run("create table d0.o (id int)").expect("a table");
    waiter.run("set max_statement_time = 30").expect("a limit");
    for (before, statement) in [
        (
            "set innodb_lock_wait_timeout = 1",
            "delete from d0.t where id = 1",
        ),
        (
            "set innodb_lock_wait_timeout = 50",
            "set statement innodb_lock_wait_timeout = 1 for delete from d0.t where id = 1",
        ),
    ] {
        waiter.run("begin").expect("it begins");
        waiter.run("insert into d0.o values (1)").expect("a change");
        waiter.run(before).expect("a limit");
        waiter.send_query(statement.as_bytes()).expect("it reads");
        assert_eq!(error_number(&mut waiter), 1205, "{statement}");
        waiter.run("rollback").expect("an end");
    }
}

/// A scan that waits looks again when other rows of the leaf change. Its time goes on.
#[test]
fn changes_beside_a_wait_do_not_lengthen_it() {
    let server = start();
    let connect = || Client::connect(&Login::root(server.port())).expect("it serves");
    let (mut holder, mut neighbour, mut waiter) = (connect(), connect(), connect());
    holder.run("begin").expect("it begins");
    let change = "update d0.t set p = p + 1 where id = 1";
    holder.run(change).expect("locked");
    waiter
        .run("set innodb_lock_wait_timeout = 1")
        .expect("a limit");
    for statement in [
        "update d0.t set p = 0 where id = 1",
        "update d0.t set p = 0 where id < 2",
        "delete from d0.t",
        "select * from d0.t where id = 1 for update",
        "select * from d0.t lock in share mode",
        "select min(id) from d0.t for update",
        "insert into d1.t select id + 5, u, p from d0.t",
    ] {
        waiter.send_query(statement.as_bytes()).expect("it reads");
        let id = waiter.connection_id;
        let waits = format!(
            "select count(*) from information_schema.processlist
             where id = {id} and state = 'Waiting for row lock'"
        );
        let mut count = 0;
        while count == 0 || neighbour.value(&waits).expect("a count").as_deref() == Some("1") {
            assert!(count < 400, "{statement} waits on");
            let change = "update d0.t set p = p + 1 where id = 2";
            neighbour.run(change).expect("it is free");
            neighbour.run("do sleep(0.05)").expect("a moment");
            count += 1;
        }
        assert_eq!(error_number(&mut waiter), 1205, "{statement}");
    }
}

#[test]
fn every_wait_is_named_and_ends_by_kill() {
    with_each_wait(|connect, wait| {
        let mut holder = connect();
        hold(&mut holder, wait);
        let mut waiter = connect();
        let statement = wait.wait.replace("(1)", "(100)").replace(", 1)", ", 100)");
        waiter.send_query(statement.as_bytes()).expect("it reads");
        let id = waiter.connection_id;
        let mut client = connect();
        let state = format!("select state from information_schema.processlist where id = {id}");
        let mut shown = || client.value(&state).expect("a state").unwrap_or_default();
        wait_for(wait.wait, &mut shown, |shown| shown == wait.state);
        client
            .run(&format!("kill query {id}"))
            .expect("it is there");
        assert_eq!(error_number(&mut waiter), 1317, "{}", wait.wait);
        holder.query("rollback").expect("an end");
    });
}

/// The scan of a statement that sleeps has come to a page that is not in memory. Others get it.
#[test]
fn a_sleeper_keeps_no_page_from_others() {
    let mut server = Launch::plateau(env!("CARGO_BIN_EXE_plateau"))
        .start()
        .expect("the server starts");
    let mut client = server.connect().expect("it serves");
    let rows: Vec<String> = (0..1000)
        .map(|id| format!("({id}, repeat('x', 1500))"))
        .collect();
    for statement in [
        "create database d",
        "create table d.t (id int primary key, pad varchar(8000))",
        &format!("insert into d.t values {}", rows.join(", ")),
    ] {
        client.run(statement).expect("it is done");
    }
    server.stop().expect("an orderly end");
    server.start_again().expect("it starts again");
    let mut sleeper = server.connect().expect("it serves");
    sleeper
        .send_query(b"select count(*) from d.t where sleep(600 + id) = 0")
        .expect("it reads");
    let mut client = server.connect().expect("it serves");
    let id = sleeper.connection_id;
    let state = format!("select state from information_schema.processlist where id = {id}");
    let mut shown = || client.value(&state).expect("a state").unwrap_or_default();
    wait_for("a sleep", &mut shown, |shown| shown == "User sleep");
    let count = "set statement max_statement_time = 60 for select count(*) from d.t";
    assert_eq!(
        client.value(count).expect("it ends").as_deref(),
        Some("1000")
    );
    client.run(&format!("kill {id}")).expect("it is there");
}

/// Limits of silent clients in transactions.
const LIMITS: [&str; 3] = [
    "idle_transaction_timeout",
    "idle_readonly_transaction_timeout",
    "idle_write_transaction_timeout",
];

/// What a client does, and the limits that close it. Rows that are changed are its own.
const SILENT: [(&[&str], [bool; 3]); 8] = [
    (&["select * from d.t"], [false, false, false]),
    (&["begin"], [true, true, false]),
    (&["begin", "select * from d.t"], [true, true, false]),
    (
        &["begin", "update d.t set n = 1 where id = 0"],
        [true, true, false],
    ),
    (
        &["begin", "insert into d.t values (1, 1)"],
        [true, true, false],
    ),
    (
        &["begin", "insert into d.t (n) values (1)"],
        [true, false, true],
    ),
    (
        &["begin", "insert into d.t (n) values (1)", "rollback"],
        [false, false, false],
    ),
    (
        &["begin", "insert into d.t (n) values (1)", "commit"],
        [false, false, false],
    ),
];

/// A client that is silent in a transaction is closed, and its changes are gone. Each limit counts
/// for its kind of transaction; here and in MariaDB.
#[test]
fn silent_clients_leave_their_transactions() {
    let tables = [
        "create database d",
        "create table d.t (id int primary key auto_increment, n int) engine = innodb",
        "insert into d.t values (1, 1)",
    ];
    let (mariadb, mut of_mariadb) = Server::reference(&tables);
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau"));
    let plateau = launch.start().expect("the server starts");
    let mut of_plateau = plateau.connect().expect("it serves");
    for statement in &tables {
        of_plateau.run(statement).expect(statement);
    }
    for (server, admin) in [(&mariadb, &mut of_mariadb), (&plateau, &mut of_plateau)] {
        let mut clients = Vec::new();
        // Those that stay are silent for the longest time.
        for is_closed in [false, true] {
            for (statements, closes) in SILENT {
                for (limit, closes) in LIMITS.into_iter().zip(closes) {
                    if closes == is_closed {
                        let client = silent(server, limit, statements);
                        clients.push((client, is_closed, limit, statements));
                    }
                }
            }
        }
        let closed = clients.iter().filter(|it| it.1);
        let ids: Vec<_> = closed.map(|it| it.0.connection_id.to_string()).collect();
        let still = format!(
            "select count(*) from information_schema.processlist where id in ({})",
            ids.join(", ")
        );
        wait_for(
            "an end of the silent ones",
            &mut || admin.value(&still).expect("a number").unwrap_or_default(),
            |count| count == "0",
        );
        for (mut client, is_closed, limit, statements) in clients {
            let alive = client.value("select 1");
            assert_eq!(
                alive.is_err(),
                is_closed,
                "{limit}, {statements:?}: {alive:?}"
            );
        }
    }
}

/// A client that has a limit of a second, and is silent behind its statements.
fn silent(server: &Server, limit: &str, statements: &[&str]) -> Client {
    let mut client = server.connect().expect("it serves");
    let limit = format!("set session {limit} = 1");
    client.query(&limit).expect("a variable");
    for statement in statements {
        // One of them fails.
        client.query(statement).expect("an answer");
    }
    client
}
