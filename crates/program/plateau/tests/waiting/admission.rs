//! Waits for admission: who waits, who does not, and how the wait ends.
//!
//! One transaction may be inside, and it sleeps there. A waiter is let in after some seconds as
//! overdue, so a check that comes too late on a busy machine is made again.

use testkit::{Client, Launch, Outcome, Server, wait_until};

/// Tries until a waiter was seen in the line.
const TRIES_MAX: u32 = 50;

/// A server with one place, and an account that is no administrator's.
fn start(limit: &str) -> Server {
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau")).with_settings([
        "workers=1".to_owned(),
        format!("max_concurrent_transactions={limit}"),
    ]);
    let server = launch.start().expect("the server starts");
    let mut root = server.connect().expect("it serves");
    for statement in [
        "create database d",
        "create table d.t (id int primary key, n int)",
        "insert into d.t values (1, 0), (2, 0), (3, 0)",
        "create user u",
        "grant all on d.* to u",
    ] {
        root.run(statement).expect(statement);
    }
    server
}

fn connect(server: &Server) -> Client {
    let login = testkit::Login {
        user: "u".to_owned(),
        database: "d".to_owned(),
        ..testkit::Login::root(server.port())
    };
    Client::connect(&login).expect("it serves")
}

/// A client that is inside, and whose statement lasts.
fn hold(server: &Server) -> Client {
    let mut holder = connect(server);
    holder.run("begin").expect("a transaction");
    holder
        .run("update t set n = n + 1 where id = 1")
        .expect("a row");
    holder.send_query(b"select sleep(600)").expect("it reads");
    holder
}

fn is_in_line(watcher: &mut Client, id: u32) -> bool {
    let state = format!("select state from information_schema.processlist where id = {id}");
    let state = watcher.value(&state).expect("a list").unwrap_or_default();
    state == "Waiting for admission"
}

/// The error number of the one reply, 0 for none.
fn error_number(client: &mut Client) -> u16 {
    match &client.read_outcomes().expect("an answer")[..] {
        [Outcome::Error(error)] => error.number,
        _ => 0,
    }
}

fn kill(watcher: &mut Client, client: &Client) {
    let id = client.connection_id;
    watcher.run(&format!("kill {id}")).expect("it is there");
}

/// Sends a changing statement until its client is seen to wait for admission. Returns that client.
fn wait_in_line(server: &Server, watcher: &mut Client, before: &str) -> Client {
    for _ in 0..TRIES_MAX {
        let mut waiter = connect(server);
        waiter.run(before).expect(before);
        waiter
            .send_query(b"update t set n = n + 1 where id = 2")
            .expect("it reads");
        let mut is_seen = false;
        wait_until("it waits or is through", || {
            is_seen = is_in_line(watcher, waiter.connection_id);
            is_seen
                || waiter
                    .has_answer(std::time::Duration::ZERO)
                    .expect("a server")
        });
        if is_seen {
            return waiter;
        }
    }
    panic!("none was seen to wait");
}

#[test]
fn a_wait_for_admission_is_shown_and_ends_by_kill() {
    let server = start("1");
    let _holder = hold(&server);
    let mut watcher = server.connect().expect("it serves");
    for order in ["kill query", "kill"] {
        let is_killed = (0..TRIES_MAX).any(|_| {
            let mut waiter = wait_in_line(&server, &mut watcher, "do 0");
            let kill = format!("{order} {}", waiter.connection_id);
            watcher.run(&kill).expect("it is there");
            match waiter.read_outcomes() {
                Ok(outcomes) => {
                    matches!(&outcomes[..], [Outcome::Error(error)] if error.number == 1317)
                }
                Err(_) => order == "kill",
            }
        });
        assert!(is_killed, "{order}");
    }
    let waits = watcher.status("Admission_waits").expect("a number");
    assert!(2 <= waits, "{waits}");
    assert_eq!(watcher.status("Admission_limit").expect("a number"), 1);
    assert_eq!(watcher.status("Admission_decision").expect("a number"), 1);
}

#[test]
fn a_wait_for_admission_ends_by_the_statements_time() {
    let server = start("1");
    let _holder = hold(&server);
    let is_timed = (0..TRIES_MAX).any(|_| {
        let mut waiter = connect(&server);
        waiter
            .run("set max_statement_time = 0.05")
            .expect("a limit");
        waiter
            .send_query(b"update t set n = n + 1 where id = 2")
            .expect("it reads");
        error_number(&mut waiter) == 1969
    });
    assert!(is_timed);
}

#[test]
fn a_client_that_goes_leaves_the_line_and_the_end_of_the_server_does_too() {
    let mut server = start("1");
    let holder = hold(&server);
    let mut watcher = server.connect().expect("it serves");
    drop(wait_in_line(&server, &mut watcher, "do 0"));
    wait_until("the line is empty", || {
        watcher.status("Admission_waiting").expect("a number") == 0
    });
    kill(&mut watcher, &holder);
    let mut next = connect(&server);
    next.run("update t set n = 9 where id = 1")
        .expect("a place");
    let _holder = hold(&server);
    let _waiter = wait_in_line(&server, &mut watcher, "do 0");
    server.stop().expect("an end in time");
}

#[test]
fn reads_holders_of_locks_and_administrators_do_not_wait() {
    let server = start("1");
    let _holder = hold(&server);
    let mut root = server.connect().expect("it serves");
    let before = root.status("Admission_waits").expect("a number");
    let mut reader = connect(&server);
    for _ in 0..5 {
        reader
            .query("select * from t where id = 1")
            .expect("a read");
    }
    let mut locker = connect(&server);
    locker.run("do get_lock('a', 0)").expect("a lock");
    locker
        .run("update t set n = 1 where id = 3")
        .expect("a row of its own");
    root.run("update d.t set n = 1 where id = 2")
        .expect("a row of its own");
    root.query("show processlist").expect("a list");
    let after = root.status("Admission_waits").expect("a number");
    assert_eq!(before, after);
    let escapes = root.status("Admission_escapes").expect("a number");
    assert!(7 <= escapes, "{escapes}");
}

/// A transaction that locks rows when it reads is no escape, nor is one after BEGIN.
#[test]
fn reads_that_lock_and_those_of_transactions_wait() {
    let server = start("1");
    let _holder = hold(&server);
    let mut watcher = server.connect().expect("it serves");
    for (begin, read) in [
        ("do 0", "select * from t where id = 2 for update"),
        ("do 0", "select * from t where id = 2 lock in share mode"),
        ("begin", "select * from t where id = 2"),
        ("set autocommit = 0", "select * from t where id = 2"),
        ("do 0", "start transaction with consistent snapshot"),
    ] {
        let before = watcher.status("Admission_waits").expect("a number");
        let mut waiter = connect(&server);
        waiter.run(begin).expect(begin);
        waiter.send_query(read.as_bytes()).expect("it reads");
        wait_until(read, || {
            before < watcher.status("Admission_waits").expect("a number")
        });
    }
}

#[test]
fn the_limit_changes_while_the_server_runs() {
    let server = start("off");
    let mut root = server.connect().expect("it serves");
    let value = |root: &mut Client| {
        root.value("select @@global.max_concurrent_transactions")
            .expect("a variable")
            .expect("a value")
    };
    assert_eq!(value(&mut root), "off");
    assert_eq!(root.status("Admission_limit").expect("a number"), 0);
    for (set, shown, limit) in [
        ("1", "1", 1),
        ("auto", "auto", 32),
        ("'AUTO'", "auto", 32),
        ("100000", "100000", 100_000),
        ("default", "auto", 32),
        ("OFF", "off", 0),
    ] {
        let statement = format!("set global max_concurrent_transactions = {set}");
        root.run(&statement).expect(&statement);
        assert_eq!(value(&mut root), shown);
        assert_eq!(root.status("Admission_limit").expect("a number"), limit);
    }
    for wrong in ["0", "100001", "'many'", "-1", "null"] {
        let statement = format!("set global max_concurrent_transactions = {wrong}");
        let number = root.error_number(&statement).expect("an answer");
        assert_eq!(number, 1231, "{wrong}");
        let Outcome::Error(error) = root.query(&statement).expect("an answer") else {
            panic!("{wrong} is refused");
        };
        let expected = "expected auto, off, or a number, 1 to 100000";
        assert!(error.message.ends_with(expected), "{}", error.message);
    }
    root.run("set global max_concurrent_transactions = 1")
        .expect("a limit");
    let holder = hold(&server);
    let mut waiter = wait_in_line(&server, &mut root, "do 0");
    root.run("set global max_concurrent_transactions = off")
        .expect("no limit");
    assert_eq!(error_number(&mut waiter), 0);
    kill(&mut root, &holder);
}

/// Open transactions that do nothing do not take the places of others.
#[test]
fn idle_transactions_take_no_place() {
    let server = start("4");
    let mut root = server.connect().expect("it serves");
    let idle: Vec<Client> = (0..40)
        .map(|_| {
            let mut client = connect(&server);
            client.run("begin").expect("a transaction");
            client.query("select * from t").expect("a snapshot");
            client
        })
        .collect();
    wait_until("they do not count", || {
        root.status("Admission_inside").expect("a number") == 0
    });
    let before = root.status("Admission_waits").expect("a number");
    for mut client in idle {
        client.run("update t set n = n + 1").expect("it was inside");
        client.run("commit").expect("an end");
    }
    let after = root.status("Admission_waits").expect("a number");
    assert_eq!(before, after, "they came back at once");
    assert_eq!(root.status("Admission_inside").expect("a number"), 0);
}

/// A statement that is refused before it begins holds neither a place nor its tables.
#[test]
fn a_refused_statement_holds_nothing() {
    let server = start("1");
    let mut root = server.connect().expect("it serves");
    let mut client = connect(&server);
    for select in [
        "select id, n into @a from t",
        "select id, n into @a from t where id = 1 for update",
    ] {
        assert_eq!(client.error_number(select).expect("an answer"), 1222);
        assert_eq!(root.status("Admission_inside").expect("a number"), 0);
        root.run("set lock_wait_timeout = 1").expect("a limit");
        root.run("alter table d.t comment 'not in use'")
            .expect(select);
    }
}
