//! Several sessions change accounts, stored programs and definitions of tables at the same time: no
//! change is lost.

use testkit::client::Client;
use testkit::{Launch, Outcome, Server, wait_until};

const ROUNDS: usize = 60;

fn start() -> (Server, Client) {
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau"));
    let server = launch.start().expect("the server starts");
    let mut root = server.connect().expect("it serves");
    root.run("create database d").expect("a database");
    (server, root)
}

/// Sends a statement to each at the same time. Returns their error numbers, 0 for none, in order.
fn at_once(clients: &mut [Client], statements: &[String]) -> Vec<u16> {
    for (client, statement) in clients.iter_mut().zip(statements) {
        client.send_query(statement.as_bytes()).expect("it reads");
    }
    let answers =
        clients.iter_mut().map(
            |client| match &client.read_outcomes().expect("an answer")[..] {
                [Outcome::Error(error)] => error.number,
                _ => 0,
            },
        );
    answers.collect()
}

fn clients(server: &Server, count: usize) -> Vec<Client> {
    let connect = |_| server.connect().expect("it serves");
    (0..count).map(connect).collect()
}

#[test]
fn grants_at_the_same_time_are_all_kept() {
    let (mut server, mut root) = start();
    let mut clients = clients(&server, 4);
    let grant = |number| format!("grant select on `g{number}`.* to u@localhost");
    let grants: Vec<_> = (0..clients.len()).map(grant).collect();
    root.run("create user u@localhost").expect("an account");
    for _ in 0..ROUNDS {
        root.run("revoke all privileges, grant option from u@localhost")
            .expect("no privileges");
        assert_eq!(at_once(&mut clients, &grants), [0; 4]);
        let shown = root.rows("show grants for u@localhost").expect("grants");
        assert_eq!(shown.len(), 1 + clients.len(), "{shown:?}");
    }
    drop((root, clients));
    server.kill().expect("it ends");
    server.start_again().expect("and starts");
    let mut root = server.connect().expect("it serves");
    let shown = root.rows("show grants for u@localhost").expect("grants");
    assert_eq!(shown.len(), 5, "{shown:?}");
}

#[test]
fn procedures_made_at_the_same_time_are_all_there_and_once() {
    let (server, mut root) = start();
    let mut clients = clients(&server, 4);
    let make = |name: usize| format!("create procedure d.p{name}() set @p = {name}");
    let different: Vec<_> = (0..clients.len()).map(make).collect();
    let same = vec![make(9); clients.len()];
    for _ in 0..ROUNDS {
        assert_eq!(at_once(&mut clients, &different), [0; 4]);
        for name in 0..clients.len() {
            root.run(&format!("call d.p{name}()")).expect("it is there");
            root.run(&format!("drop procedure d.p{name}"))
                .expect("it goes");
        }
        let mut answers = at_once(&mut clients, &same);
        answers.sort_unstable();
        assert_eq!(answers, [0, 1304, 1304, 1304]);
        root.run("drop procedure d.p9").expect("it goes");
    }
}

/// No procedure is left in a dropped database.
#[test]
fn no_procedure_outlives_its_database() {
    let (server, mut root) = start();
    let mut clients = clients(&server, 2);
    let statements = ["create procedure r.p() set @p = 1", "drop database r"].map(str::to_owned);
    for _ in 0..ROUNDS {
        root.run("create database r").expect("a database");
        let answers = at_once(&mut clients, &statements);
        assert!(answers == [0, 0] || answers == [1049, 0], "{answers:?}");
        let count = "select count(*) from information_schema.routines where routine_schema = 'r'";
        assert_eq!(root.value(count).expect("a count").as_deref(), Some("0"));
    }
}

/// An ALTER TABLE that waited for others starts from their result.
#[test]
fn alters_of_a_table_at_the_same_time_are_all_kept() {
    let (server, mut root) = start();
    let mut clients = clients(&server, 6);
    for round in 0..ROUNDS {
        root.run("drop table if exists d.t").expect("no table");
        root.run("create table d.t (a int primary key, b int)")
            .expect("a table");
        root.run("insert into d.t values (1, 2)").expect("a row");
        // Some in place, some by a copy, in turns.
        let alter = |number: usize| match (number + round) % 3 {
            0 => format!("alter table d.t add key x{number} (b)"),
            1 => format!("alter table d.t add column x{number} int"),
            _ => format!("alter table d.t add column x{number} int first, modify b bigint"),
        };
        let alters: Vec<_> = (0..clients.len()).map(alter).collect();
        assert_eq!(at_once(&mut clients, &alters), [0; 6]);
        let rows = root.rows("show create table d.t").expect("a definition");
        let text = String::from_utf8_lossy(rows[0][1].as_ref().expect("a text")).into_owned();
        for number in 0..clients.len() {
            assert!(text.contains(&format!("`x{number}`")), "{number}: {text}");
        }
        let tables = root.rows("show tables from d").expect("names");
        assert_eq!(tables.len(), 1, "copies are gone");
    }
}

/// Begins a statement, and returns when it waits for a named lock that `watcher` holds.
fn begin(client: &mut Client, watcher: &mut Client, statement: &str) {
    client.send_query(statement.as_bytes()).expect("it reads");
    let state = format!(
        "select state from information_schema.processlist where id = {}",
        client.connection_id
    );
    while watcher.value(&state).expect("a state").as_deref() != Some("User lock") {}
}

/// While CREATE TABLE .. SELECT fills its table, no other session sees, drops or alters it. A
/// session that creates a table of that name meanwhile gets the name.
#[test]
fn a_table_is_nobodys_until_it_is_filled() {
    let (server, mut root) = start();
    let mut maker = server.connect().expect("it serves");
    root.run("create table d.s (a int primary key)")
        .expect("a table");
    root.run("insert into d.s values (1), (2), (3)")
        .expect("rows");
    let refused = |client: &mut Client, statement: &str| match client.query(statement) {
        Ok(Outcome::Error(error)) => error.number,
        other => panic!("{statement}: refused, not {other:?}"),
    };
    let lock = "select get_lock('filling', 5)";
    let fill = "table d.t as select a, get_lock('filling', 60) as g from d.s";
    root.run(lock).expect("a lock");
    begin(&mut maker, &mut root, &format!("create {fill}"));
    for (statement, number) in [
        ("drop table d.t", 1051),
        ("alter table d.t add x int", 1146),
        ("select * from d.t", 1146),
        ("insert into d.t values (9, 9)", 1146),
    ] {
        assert_eq!(refused(&mut root, statement), number, "{statement}");
    }
    let shown = root.rows("show tables from d").expect("names");
    assert_eq!(shown.len(), 1, "{shown:?}");
    root.run("do release_lock('filling')").expect("it is free");
    let made = maker.read_outcomes().expect("an answer");
    assert!(matches!(made[..], [Outcome::Done(_)]), "{made:?}");
    let count = "select count(*) from d.t";
    assert_eq!(root.value(count).expect("rows").as_deref(), Some("3"));

    // The replaced table exists until the new one has its rows, and stays if it gets none.
    maker.run("do release_all_locks()").expect("it is free");
    root.run(lock).expect("a lock");
    begin(&mut maker, &mut root, &format!("create or replace {fill}"));
    let kill = format!("kill query {}", maker.connection_id);
    root.run(&kill).expect("it is there");
    let made = maker.read_outcomes().expect("an answer");
    assert!(matches!(&made[..], [Outcome::Error(error)] if error.number == 1317));
    assert_eq!(root.value(count).expect("rows").as_deref(), Some("3"));

    // Another of the same name.
    root.run("drop table d.t").expect("it goes");
    for (condition, number) in [("", 1050), ("if not exists", 0)] {
        let create = fill.replace("table", &format!("create table {condition}"));
        begin(&mut maker, &mut root, &create);
        root.run("create table d.t (z int)").expect("a table");
        root.run("do release_lock('filling')").expect("it is free");
        match (&maker.read_outcomes().expect("an answer")[..], number) {
            ([Outcome::Done(_)], 0) => {}
            ([Outcome::Error(error)], number) => assert_eq!(error.number, number),
            (other, _) => panic!("{other:?}"),
        }
        assert_eq!(root.value(count).expect("rows").as_deref(), Some("0"));
        maker.run("do release_all_locks()").expect("it is free");
        root.run(lock).expect("a lock");
        root.run("drop table d.t").expect("it goes");
    }
    let shown = root.rows("show tables from d").expect("names");
    assert_eq!(shown.len(), 1, "{shown:?}");
}

/// If another table takes the new name while the rows are copied, the table is unchanged.
#[test]
fn an_alter_that_loses_its_new_name_has_changed_nothing() {
    let (server, mut root) = start();
    root.run("create table d.t (a int primary key)")
        .expect("a table");
    root.run("insert into d.t values (1), (2)").expect("rows");
    let mut other = server.connect().expect("it serves");
    let alter = "alter table d.t add s int default (sleep(2)) first, modify a bigint, rename d.u";
    other.send_query(alter.as_bytes()).expect("it reads");
    let runs = format!(
        "select count(*) from information_schema.processlist where id = {} and command = 'Query'",
        other.connection_id
    );
    wait_until("it copies", || {
        root.value(&runs).expect("a count").as_deref() == Some("1")
    });
    root.run("do sleep(0.5)").expect("a while");
    root.run("create table d.u (x int)")
        .expect("the name is free");
    match &other.read_outcomes().expect("an answer")[..] {
        [Outcome::Error(error)] => {
            assert_eq!(
                (error.number, &*error.message),
                (1050, "Table 'u' already exists")
            );
        }
        answer => panic!("refused, not {answer:?}"),
    }
    let columns = root.rows("show columns from d.t").expect("columns");
    assert_eq!(columns.len(), 1, "{columns:?}");
    assert_eq!(
        root.value("select sum(a) from d.t")
            .expect("a sum")
            .as_deref(),
        Some("3")
    );
    assert!(root.rows("select x from d.u").expect("no rows").is_empty());
}

/// Each finds no table of the name, or another than the one it waited for.
#[test]
fn a_table_is_replaced_by_several_at_the_same_time() {
    let (server, mut root) = start();
    let mut clients = clients(&server, 3);
    let plain = |number| format!("create or replace table d.t (c{number} int)");
    let filled = |number| format!("create or replace table d.t as select {number} as c{number}");
    for round in 0..ROUNDS {
        let is_mixed = round % 2 == 1;
        let make = |number| {
            if is_mixed && number == 0 {
                filled(number)
            } else {
                plain(number)
            }
        };
        let statements: Vec<_> = (0..clients.len()).map(make).collect();
        assert_eq!(at_once(&mut clients, &statements), [0; 3], "{round}");
        if round % 3 == 0 {
            root.run("drop table d.t").expect("one of them made it");
        }
    }
    let tables = root.rows("show tables from d").expect("names");
    assert!(tables.len() <= 1, "{tables:?}");
}
