//! XA transactions: each statement answers as MariaDB does, in all states. What is prepared
//! survives the end of its session, a shutdown and kill -9. Another session finishes it.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    reason = "the helpers of these tests fail as the tests do"
)]

use testkit::client::{Client, Login, Outcome};
use testkit::{Launch, Server, ServerKind, wait_until};

/// Statements of sessions A and B. `close` ends a session. Each text is run on both servers, and
/// the answers are compared.
const SCRIPT: &str = include_str!("xa/script.txt");

/// Rows, or the error, or the flags of the session behind the statement.
fn answer(client: &mut Client, statement: &str) -> String {
    match client.query(statement).unwrap() {
        Outcome::Done(done) => {
            // In a transaction, autocommit.
            format!("ok, {} rows, flags {}", done.affected_rows, done.status & 3)
        }
        Outcome::Rows(found) => {
            let value = |value: &Option<Vec<u8>>| match value {
                Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                None => "NULL".to_owned(),
            };
            let row = |row: &Vec<Option<Vec<u8>>>| row.iter().map(value).collect::<Vec<_>>();
            let names: Vec<_> = found.columns.iter().map(|it| it.name.as_str()).collect();
            let rows: Vec<_> = found.rows.iter().map(row).collect();
            format!("{names:?} {rows:?}")
        }
        Outcome::Error(error) => error.to_string(),
    }
}

/// Runs the script. Returns each statement with its answer.
fn play(server: &Server) -> Vec<String> {
    let mut sessions: [Option<Client>; 2] = [None, None];
    let mut answers = Vec::new();
    let lines = SCRIPT.lines().filter(|line| !line.is_empty());
    for line in lines.filter(|line| !line.starts_with('#')) {
        let (name, statement) = line.split_once(' ').unwrap();
        let session = &mut sessions[usize::from(name == "B")];
        if statement == "close" {
            end_session(server, session.take().unwrap());
            continue;
        }
        let client = session.get_or_insert_with(|| server.connect().unwrap());
        let answer = answer(client, statement);
        answers.push(format!("{line}\n    {answer}"));
    }
    answers
}

/// Ends a session, and waits until the server has noticed.
fn end_session(server: &Server, mut client: Client) {
    let id = client.value("select connection_id()").unwrap().unwrap();
    client.quit().unwrap();
    let mut other = server.connect().unwrap();
    let listed = format!("select count(*) from information_schema.processlist where id = {id}");
    while other.value(&listed).unwrap().as_deref() != Some("0") {
        other.run("do sleep(0.02)").unwrap();
    }
}

#[test]
fn statements_answer_as_in_mariadb() {
    let reference = Launch::new(ServerKind::MariaDb).start().unwrap();
    let tested = Launch::plateau(env!("CARGO_BIN_EXE_plateau"));
    // Sessions of both workers: a decision may have to go to the other one.
    let tested = tested.with_settings(["workers=2"]).start().unwrap();
    let (expected, found) = (play(&reference), play(&tested));
    assert_eq!(found.len(), expected.len());
    let differ = |(found, expected): &(&String, &String)| found != expected;
    let pairs = found.iter().zip(&expected).filter(differ);
    let differing: Vec<_> = pairs
        .map(|(found, expected)| format!("{found}\n -> {expected}"))
        .collect();
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

fn plateau() -> Server {
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau"));
    launch.with_settings(["workers=2"]).start().unwrap()
}

fn fill(server: &Server) {
    let mut client = server.connect().unwrap();
    for statement in [
        "create database d",
        "create table d.t (id int primary key, v int, key (v))",
        "create table d.u (id int primary key)",
        "insert into d.t values (1, 1), (2, 2), (3, 3), (4, 4)",
    ] {
        client.run(statement).unwrap();
    }
}

/// Prepares a change of the row of each name, with the name's number as its value.
fn prepare(server: &Server, numbers: std::ops::Range<u32>) -> Vec<Client> {
    let prepare = |number: u32| {
        let mut client = server.connect().unwrap();
        for statement in [
            format!("xa start 'x{number}'"),
            format!("update d.t set v = {number} where id = {}", number % 10),
            format!("insert into d.u values ({number})"),
            format!("xa end 'x{number}'"),
            format!("xa prepare 'x{number}'"),
        ] {
            client.run(&statement).unwrap();
        }
        client
    };
    numbers.map(prepare).collect()
}

fn recovered(client: &mut Client) -> Vec<String> {
    let rows = client.rows("xa recover").unwrap();
    let name = |row: &Vec<Option<Vec<u8>>>| String::from_utf8(row[3].clone().unwrap()).unwrap();
    rows.iter().map(name).collect()
}

/// Prepared before kill -9, before a shutdown, and by sessions that end: all can be finished.
#[test]
fn what_is_prepared_survives_the_server() {
    let mut server = plateau();
    fill(&server);
    // Neither prepared nor kept.
    let mut open = server.connect().unwrap();
    open.run("xa start 'open'").unwrap();
    open.run("insert into d.u values (99)").unwrap();
    let sessions = prepare(&server, 11..13);
    let modified = "select group_concat(trx_rows_modified order by trx_id desc) \
                    from information_schema.innodb_trx";
    let seen = server.connect().unwrap().value(modified).unwrap();
    assert!(
        seen.as_deref().is_some_and(|it| it.starts_with("2,2")),
        "{seen:?}"
    );
    server.kill().unwrap();
    drop(sessions);
    server.start_again().unwrap();
    let log = server.log();
    let expected = [
        "WARN engine::recovery: rolling back the transactions that had not committed",
        "WARN engine::recovery: rolled back the transactions that had not committed",
        "WARN engine::recovery: XA transactions are prepared: XA RECOVER lists them",
    ];
    for line in expected {
        assert!(log.contains(line), "{line}: {log}");
    }
    let more = prepare(&server, 13..15);
    more.into_iter().for_each(|it| end_session(&server, it));
    let mut client = server.connect().unwrap();
    assert_eq!(recovered(&mut client), ["x11", "x12", "x13", "x14"]);
    server.stop().unwrap();
    server.start_again().unwrap();
    let mut client = server.connect().unwrap();
    assert_eq!(recovered(&mut client), ["x11", "x12", "x13", "x14"]);
    let modified = "select group_concat(trx_rows_modified) from information_schema.innodb_trx";
    assert_eq!(client.value(modified).unwrap().as_deref(), Some("2,2,2,2"));
    let values = "select v from d.t order by id";
    let seen = |client: &mut Client| {
        let rows = client.rows(values).unwrap();
        let text = |row: &Vec<Option<Vec<u8>>>| String::from_utf8(row[0].clone().unwrap()).unwrap();
        rows.iter().map(text).collect::<Vec<_>>()
    };
    assert_eq!(seen(&mut client), ["1", "2", "3", "4"]);
    // Rows and definitions are locked.
    client
        .run("set innodb_lock_wait_timeout = 1, lock_wait_timeout = 1")
        .unwrap();
    let locked = "update d.t set v = 0 where id = 1";
    assert_eq!(client.error_number(locked).unwrap(), 1205);
    let alter = "alter table d.t add column w int";
    assert_eq!(client.error_number(alter).unwrap(), 1205);
    assert_eq!(client.error_number("drop table d.u").unwrap(), 1205);
    assert_eq!(client.error_number("xa start 'x11'").unwrap(), 1440);
    for statement in ["xa commit 'x11'", "xa rollback 'x12'", "xa commit 'x13'"] {
        client.run(statement).unwrap();
    }
    assert_eq!(recovered(&mut client), ["x14"]);
    // A decision is durable when it is told.
    server.kill().unwrap();
    server.start_again().unwrap();
    let mut client = server.connect().unwrap();
    assert_eq!(recovered(&mut client), ["x14"]);
    assert_eq!(seen(&mut client), ["11", "2", "13", "4"]);
    client.run("xa rollback 'x14'").unwrap();
    client.run(alter).unwrap();
    client.run("update d.t set v = 0").unwrap();
    let kept = client.value("select group_concat(id order by id) from d.u");
    assert_eq!(kept.unwrap().as_deref(), Some("11,13"));
    server.stop().unwrap();
}

/// A session that is reset or changes its user leaves what it has prepared to others.
#[test]
fn a_reset_leaves_what_is_prepared() {
    const COM_RESET_CONNECTION: u8 = 31;
    let server = plateau();
    fill(&server);
    let mut session = prepare(&server, 11..12).remove(0);
    session.send_command(COM_RESET_CONNECTION, &[]).unwrap();
    session.next_packet().unwrap();
    assert_eq!(recovered(&mut session), ["x11"]);
    assert_eq!(
        session
            .value("select count(*) from d.u")
            .unwrap()
            .as_deref(),
        Some("0")
    );
    session.run("xa commit 'x11'").unwrap();
    assert_eq!(
        session
            .value("select count(*) from d.u")
            .unwrap()
            .as_deref(),
        Some("1")
    );
}

/// Of many sessions that finish the same transactions, one finishes each.
#[test]
fn one_of_many_finishes_a_transaction() {
    const COUNT: u32 = 24;
    let server = plateau();
    fill(&server);
    for number in 0..COUNT {
        let mut client = server.connect().unwrap();
        for statement in [
            format!("xa start 'y{number}'"),
            format!("insert into d.u values ({number})"),
            format!("xa end 'y{number}'"),
            format!("xa prepare 'y{number}'"),
        ] {
            client.run(&statement).unwrap();
        }
        end_session(&server, client);
    }
    let login = Login::root(server.port());
    let finish = || {
        let mut client = Client::connect(&login).unwrap();
        let mut finished = 0;
        for number in 0..COUNT {
            match client.query(&format!("xa commit 'y{number}'")).unwrap() {
                Outcome::Done(_) => finished += 1,
                Outcome::Error(error) => assert_eq!(error.number, 1397, "{error}"),
                Outcome::Rows(_) => panic!("it returns no rows"),
            }
        }
        finished
    };
    let finished: u32 = std::thread::scope(|scope| {
        let others: Vec<_> = (0..4).map(|_| scope.spawn(finish)).collect();
        others.into_iter().map(|it| it.join().unwrap()).sum()
    });
    assert_eq!(finished, COUNT);
    let mut client = server.connect().unwrap();
    assert_eq!(recovered(&mut client), Vec::<String>::new());
    let count = client.value("select count(*) from d.u").unwrap();
    assert_eq!(count, Some(COUNT.to_string()));
}

/// The victim of a deadlock can only be rolled back, and COMMIT says why.
#[test]
fn a_victim_of_a_deadlock_is_rolled_back() {
    let server = plateau();
    fill(&server);
    let mut victim = server.connect().unwrap();
    let mut other = server.connect().unwrap();
    other.run("begin").unwrap();
    other.run("update d.t set v = 9 where id >= 2").unwrap();
    victim.run("xa start 'v'").unwrap();
    victim.run("update d.t set v = 8 where id = 1").unwrap();
    other
        .send_query(b"update d.t set v = 9 where id = 1")
        .unwrap();
    let mut seen = server.connect().unwrap();
    let waits = "select count(*) from information_schema.processlist where info like 'update%'";
    while seen.value(waits).unwrap().as_deref() != Some("1") {}
    let closing = "update d.t set v = 8 where id = 2";
    assert_eq!(victim.error_number(closing).unwrap(), 1213);
    assert_eq!(other.read_outcomes().unwrap().len(), 1);
    other.run("rollback").unwrap();
    for (statement, number) in [
        ("select * from d.t", 1399),
        ("commit", 1399),
        ("xa end 'v'", 1399),
        ("xa prepare 'v'", 1399),
        ("xa commit 'v' one phase", 1614),
        ("xa rollback 'v'", 1397),
    ] {
        assert_eq!(
            victim.error_number(statement).unwrap(),
            number,
            "{statement}"
        );
    }
    victim.run("xa start 'v'").unwrap();
    let rows = victim.rows("select * from d.t where v > 4").unwrap();
    assert!(rows.is_empty());
}

/// Begins a statement that has to wait for a table.
fn begin_wait(server: &Server, client: &mut Client, statement: &str) {
    client.send_query(statement.as_bytes()).unwrap();
    let id = client.connection_id;
    let state = format!("select state from information_schema.processlist where id = {id}");
    let mut watcher = server.connect().unwrap();
    wait_until(statement, || {
        let shown = watcher.value(&state).unwrap().unwrap_or_default();
        shown.contains("metadata")
    });
}

/// Two transactions wait behind changes of each other's table. The XA transaction closes the
/// circle. Returns the answers to its statements from there on, and the rows that are left.
fn lose_to_changed_tables(server: &Server) -> Vec<String> {
    fill(server);
    let [mut victim, mut other, mut change_t, mut change_u] =
        [(); 4].map(|()| server.connect().unwrap());
    victim.run("xa start 'v'").unwrap();
    victim.run("insert into d.t values (5, 5)").unwrap();
    other.run("begin").unwrap();
    other.rows("select id from d.u").unwrap();
    begin_wait(server, &mut change_t, "alter table d.t add x int");
    begin_wait(server, &mut change_u, "alter table d.u add x int");
    begin_wait(server, &mut other, "select id from d.t");
    let answers = [
        "select id from d.u",
        "xa end 'v'",
        "xa prepare 'v'",
        "xa commit 'v' one phase",
        "xa rollback 'v'",
        "xa recover",
    ]
    .map(|statement| answer(&mut victim, statement));
    change_t.read_outcomes().unwrap();
    other.read_outcomes().unwrap();
    other.run("commit").unwrap();
    change_u.read_outcomes().unwrap();
    let rows = answer(&mut other, "select id from d.t order by id");
    answers.into_iter().chain([rows]).collect()
}

/// Also if the deadlock is one of waits for tables: nothing is left to prepare or to commit.
#[test]
fn a_victim_of_waits_for_tables_is_rolled_back() {
    let reference = Launch::new(ServerKind::MariaDb).start().unwrap();
    let expected = lose_to_changed_tables(&reference);
    assert!(expected[0].contains("1213"), "{expected:?}");
    assert_eq!(lose_to_changed_tables(&plateau()), expected);
}
