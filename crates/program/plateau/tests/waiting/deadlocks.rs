//! Sessions that wait for each other's metadata locks: one of them fails.

use testkit::client::Client;
use testkit::{Launch, Outcome, Server, wait_until};

fn start() -> (Server, Client) {
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau"));
    let server = launch.start().expect("the server starts");
    let mut client = server.connect().expect("it serves");
    for statement in [
        "create database d",
        "create table d.a (i int primary key)",
        "create table d.b (i int primary key)",
        "insert into d.a values (1)",
        "insert into d.b values (1)",
    ] {
        client.run(statement).expect(statement);
    }
    (server, client)
}

/// Begins a statement that has to wait.
fn waits(server: &Server, watcher: &mut Client, statement: &str) -> Client {
    let mut client = server.connect().expect("it serves");
    begin(&mut client, watcher, statement);
    client
}

fn begin(client: &mut Client, watcher: &mut Client, statement: &str) {
    client.send_query(statement.as_bytes()).expect("it reads");
    let state = format!(
        "select state from information_schema.processlist where id = {}",
        client.connection_id
    );
    wait_until(statement, || {
        let shown = watcher.value(&state).expect("a state").unwrap_or_default();
        shown.contains("metadata")
    });
}

#[test]
fn users_of_two_tables_behind_their_changes_have_a_victim() {
    let (server, mut watcher) = start();
    let mut first = server.connect().expect("it serves");
    let mut second = server.connect().expect("it serves");
    for (client, table) in [(&mut first, "a"), (&mut second, "b")] {
        client.run("begin").expect("a transaction");
        let update = format!("update d.{table} set i = 2");
        client.run(&update).expect("an update");
    }
    let mut change_a = waits(&server, &mut watcher, "alter table d.a add x int");
    let mut change_b = waits(&server, &mut watcher, "alter table d.b add x int");
    begin(&mut first, &mut watcher, "select i from d.b");
    // Now each waits for the next. The one that closes the cycle gets the error, and its
    // transaction is rolled back.
    match second.query("select i from d.a").expect("an answer") {
        Outcome::Error(error) => assert_eq!((error.number, &*error.state), (1213, "40001")),
        other => panic!("a deadlock, not {other:?}"),
    }
    // Then the others continue: b can be changed, then read.
    assert!(matches!(
        change_b.read_outcomes().expect("an answer")[..],
        [Outcome::Done(_)]
    ));
    assert!(matches!(
        first.read_outcomes().expect("rows")[..],
        [Outcome::Rows(_)]
    ));
    first.run("commit").expect("its work is kept");
    assert!(matches!(
        change_a.read_outcomes().expect("an answer")[..],
        [Outcome::Done(_)]
    ));
    let value = |client: &mut Client, table: &str| {
        let select = format!("select i from d.{table}");
        client.value(&select).expect("a value")
    };
    assert_eq!(value(&mut watcher, "a").as_deref(), Some("2"));
    assert_eq!(value(&mut watcher, "b").as_deref(), Some("1"));
}

/// DROP DATABASE and CREATE TABLE in it exclude each other: in either order, no table is left in a
/// dropped database.
#[test]
fn no_table_outlives_its_database() {
    let (server, mut watcher) = start();
    let mut maker = server.connect().expect("it serves");
    for round in 0..40 {
        watcher.run("create database r").expect("a database");
        let statement = format!("create table r.t{round} (i int primary key, j int, key (j))");
        maker.send_query(statement.as_bytes()).expect("it reads");
        watcher.run("drop database r").expect("it goes");
        match &maker.read_outcomes().expect("an answer")[..] {
            [Outcome::Done(_)] => {}
            [Outcome::Error(error)] if error.number == 1049 => {}
            other => panic!("made or refused, not {other:?}"),
        }
        let count = "select count(*) from information_schema.tables where table_schema = 'r'";
        assert_eq!(watcher.value(count).expect("a count").as_deref(), Some("0"));
    }
}

/// Under LOCK TABLES no database can be dropped. So a session that creates a table in it while it
/// waits for such a lock is never waited for.
#[test]
fn a_dropper_of_the_database_waits_for_no_replacer_of_a_table_that_he_has_locked() {
    let (server, mut watcher) = start();
    let mut dropper = server.connect().expect("it serves");
    dropper.run("lock tables d.a write").expect("a lock");
    let replacing = "create or replace table d.a (j int)";
    let mut replacer = waits(&server, &mut watcher, replacing);
    match dropper.query("drop database d").expect("an answer") {
        Outcome::Error(error) => assert_eq!((error.number, &*error.state), (1192, "HY000")),
        other => panic!("refused, not {other:?}"),
    }
    dropper.run("unlock tables").expect("it is free");
    assert!(matches!(
        replacer.read_outcomes().expect("an answer")[..],
        [Outcome::Done(_)]
    ));
    dropper.run("drop database d").expect("it goes");
}

/// LOCK TABLES that waited for a change locks the tables that exist then.
#[test]
fn tables_that_change_before_they_are_locked_are_locked_as_they_are() {
    let (server, mut watcher) = start();
    for (change, lock_number, select_number) in [
        ("alter table d.a add x int, force", None, None),
        ("create or replace table d.a (i int)", None, None),
        ("truncate table d.a", None, None),
        ("rename table d.a to d.gone", Some(1146), None),
        ("drop table d.a", Some(1146), Some(1146)),
    ] {
        watcher
            .run("create or replace table d.a (i int primary key)")
            .expect("a table");
        let mut reader = server.connect().expect("it serves");
        reader.run("begin").expect("a transaction");
        reader.rows("select i from d.a").expect("no rows");
        let mut changer = waits(&server, &mut watcher, change);
        let mut locker = waits(&server, &mut watcher, "lock tables d.a write");
        reader.run("commit").expect("it lets go");
        assert!(
            matches!(
                changer.read_outcomes().expect("an answer")[..],
                [Outcome::Done(_)]
            ),
            "{change}"
        );
        let number = |outcome: &Outcome| match outcome {
            Outcome::Error(error) => Some(error.number),
            _ => None,
        };
        let answer = locker.read_outcomes().expect("an answer");
        assert_eq!(answer.iter().find_map(number), lock_number, "{change}");
        if lock_number.is_none() {
            let answer = locker.query("select i from d.a").expect("an answer");
            assert_eq!(number(&answer), select_number, "{change}");
            locker
                .run("insert into d.a (i) values (7)")
                .expect("it may write");
        }
    }
}

/// Three sessions; two use a database that the third drops: one fails.
#[test]
fn users_of_a_database_behind_its_end_have_a_victim() {
    let (server, mut watcher) = start();
    watcher.run("create database e").expect("a database");
    let mut reader = server.connect().expect("it serves");
    reader.run("begin").expect("a transaction");
    reader.rows("select i from d.a").expect("rows");
    let mut renamer = waits(&server, &mut watcher, "alter table d.a rename e.a");
    let mut maker = waits(&server, &mut watcher, "create table e.u select i from d.a");
    let mut dropper = waits(&server, &mut watcher, "drop database e");
    reader.run("commit").expect("it lets go");
    // All three end; the victim of the cycle gets the error.
    for client in [&mut renamer, &mut maker, &mut dropper] {
        for outcome in client.read_outcomes().expect("an answer") {
            if let Outcome::Error(error) = outcome {
                assert!([1213, 1146, 1049].contains(&error.number), "{error:?}");
            }
        }
    }
}
