//! Commands of the protocol that are not SQL: what they accept, and their effects.

#![forbid(unsafe_code)]

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use testkit::client::Client;
use testkit::{Launch, Outcome, Server, wait_until};

/// LONG_PASSWORD, PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH.
const PLAIN: u32 = 0x1 | 0x200 | 0x8000 | 0x8_0000;

const QUERY: u8 = 3;
const PING: u8 = 0x0e;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
const RESET_CONNECTION: u8 = 0x1f;
const SET_OPTION: u8 = 0x1b;
const BULK_EXECUTE: u8 = 0xfa;

const DATE: u8 = 10;
const DECIMAL: u8 = 0xf6;
const TEXT: u8 = 0xfd;

fn start() -> (Server, Client) {
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau"));
    let server = launch.start().expect("the server starts");
    let mut root = server.connect().expect("it serves");
    root.run("create database d").expect("a database");
    (server, root)
}

#[test]
fn status_has_what_monitors_ask_for() {
    let (_server, mut root) = start();
    for statement in [
        "xa start 'a'",
        "xa end 'a'",
        "xa prepare 'a'",
        "xa rollback 'a'",
        "xa recover",
        "xa begin 'b'",
        "xa end 'b'",
        "xa commit 'b' one phase",
        "prepare s from 'select 1'",
    ] {
        root.query(statement).expect(statement);
    }
    for (name, expected) in [
        ("Com_xa_start", 2),
        ("Com_xa_end", 2),
        ("Com_xa_prepare", 1),
        ("Com_xa_rollback", 1),
        ("Com_xa_commit", 1),
        ("Com_xa_recover", 1),
        ("Prepared_stmt_count", 1),
    ] {
        assert_eq!(root.status(name).expect(name), expected, "{name}");
    }
    root.run("deallocate prepare s").expect("it was prepared");
    assert_eq!(root.status("Prepared_stmt_count").expect("a count"), 0);
    let uptime = root.status("Uptime").expect("a time");
    assert!(uptime <= root.status("Uptime_since_flush_status").expect("a time"));
}

/// A session whose packets are built and parsed here.
struct Raw {
    stream: TcpStream,
}

impl Raw {
    fn new(server: &Server) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", server.port())).expect("it listens");
        let limit = Some(Duration::from_secs(60));
        stream.set_read_timeout(limit).expect("a time limit");
        let mut raw = Self { stream };
        raw.packet();
        // MariaDB's own capabilities, valid if MySQL's first bit is clear: COM_STMT_BULK_EXECUTE.
        let mut login = (PLAIN & !1).to_le_bytes().to_vec();
        login.extend_from_slice(&(1_u32 << 24).to_le_bytes());
        login.push(45);
        login.extend_from_slice(&[0; 19]);
        login.extend_from_slice(&4_u32.to_le_bytes());
        login.extend_from_slice(b"root\0\0mysql_native_password\0");
        raw.send(1, &login);
        assert_eq!(raw.packet().first(), Some(&0), "logged in");
        raw
    }

    fn send(&mut self, sequence: u8, payload: &[u8]) {
        let length = u32::try_from(payload.len()).expect("a short one");
        let [a, b, c, _] = length.to_le_bytes();
        let frame = [&[a, b, c, sequence], payload].concat();
        self.stream.write_all(&frame).expect("it reads");
    }

    fn packet(&mut self) -> Vec<u8> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header).expect("a packet");
        let [a, b, c, _] = header;
        let length = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload).expect("its payload");
        payload
    }

    /// The first packet of the answer.
    fn command(&mut self, command: u8, payload: &[u8]) -> Vec<u8> {
        self.send(0, &[&[command], payload].concat());
        self.packet()
    }

    /// The only value of a query.
    fn value(&mut self, query: &str) -> Option<String> {
        let head = self.command(QUERY, query.as_bytes());
        assert_eq!(head, [1], "{query}: one column");
        let [_, _, row, end] = [(); 4].map(|()| self.packet());
        assert_eq!(end.first(), Some(&0xfe), "{query}: one row");
        match row.split_first()? {
            (0xfb, _) => None,
            (_, text) => Some(String::from_utf8_lossy(text).into_owned()),
        }
    }

    fn run(&mut self, statement: &str) {
        let answer = self.command(QUERY, statement.as_bytes());
        assert_eq!(answer.first(), Some(&0), "{statement}: {answer:?}");
    }

    /// The number of a statement with parameters and without a result.
    fn prepare(&mut self, statement: &str) -> Vec<u8> {
        let answer = self.command(PREPARE, statement.as_bytes());
        assert_eq!(answer.first(), Some(&0), "{statement}: {answer:?}");
        let parameter_count = answer.get(7).copied().expect("a count");
        (0..=parameter_count).for_each(|_| drop(self.packet()));
        answer.get(1..5).expect("a number").to_vec()
    }

    /// Runs it with one parameter.
    fn execute(&mut self, statement: &[u8], kind: u8, value: &[u8]) {
        let head = [statement, &[0, 1, 0, 0, 0, 0, 1, kind, 0]].concat();
        let answer = self.command(EXECUTE, &[&head, value].concat());
        assert_eq!(answer.first(), Some(&0), "{answer:?}");
    }
}

/// The message of an answer that is an error.
fn message(answer: &[u8]) -> (u16, String) {
    match answer {
        [0xff, low, high, b'#', rest @ ..] => (
            u16::from_le_bytes([*low, *high]),
            String::from_utf8_lossy(rest.get(5..).unwrap_or_default()).into_owned(),
        ),
        _ => panic!("an error, not {answer:?}"),
    }
}

/// The warnings of an answer that is OK.
fn warning_count(answer: &[u8]) -> u16 {
    match answer {
        [0, _, _, _, _, low, high, ..] => u16::from_le_bytes([*low, *high]),
        _ => panic!("OK, not {answer:?}"),
    }
}

/// If a later statement has to wait, the replies to earlier ones are sent meanwhile, as in MariaDB.
#[test]
fn replies_do_not_wait_for_a_later_statement() {
    let (server, mut holder) = start();
    let sql = "create table d.t (i int primary key, j int); insert into d.t values (1, 1)";
    holder.query_all(sql.as_bytes()).expect("a table");
    for (hold, waits, release) in [
        (
            "do get_lock('l', 0)",
            "do get_lock('l', 50)",
            "do release_lock('l')",
        ),
        (
            "begin; update d.t set j = 2",
            "update d.t set j = 3",
            "commit",
        ),
        (
            "begin; select * from d.t",
            "alter table d.t comment 'x'",
            "commit",
        ),
    ] {
        for in_one_text in [true, false] {
            holder.query_all(hold.as_bytes()).expect("it is free");
            let mut client = server.connect().expect("it serves");
            let limit = Some(Duration::from_secs(30));
            client
                .stream()
                .set_read_timeout(limit)
                .expect("a time limit");
            if in_one_text {
                let both = format!("select 1; {waits}");
                client.send_query(both.as_bytes()).expect("it reads");
            } else {
                client.send_query(b"select 1").expect("it reads");
                client.send_query(waits.as_bytes()).expect("it reads");
            }
            let first = client.stream().peek(&mut [0; 1]);
            assert!(
                first.is_ok_and(|count| count == 1),
                "{waits}, {in_one_text}"
            );
            holder.query_all(release.as_bytes()).expect("it is its own");
            let mut outcomes = client.read_outcomes().expect("the replies");
            if !in_one_text {
                outcomes.extend(client.read_outcomes().expect("the second reply"));
            }
            assert_eq!(outcomes.len(), 2);
            let failed = outcomes.iter().any(|it| matches!(it, Outcome::Error(_)));
            assert!(!failed, "{waits}: {outcomes:?}");
        }
    }
}

/// Rows that a statement has written are sent only after its wait, as in MariaDB: a client may rely
/// on a row that it has received. Earlier replies are sent first.
#[test]
fn rows_of_a_statement_that_waits_are_sent_behind_its_wait() {
    let (server, mut holder) = start();
    let sql = "create table d.t (i int primary key); insert into d.t values (1); \
               begin; select * from d.t where i = 1 for update";
    holder.query_all(sql.as_bytes()).expect("a locked row");
    for (waits, state) in [
        (
            "insert into d.t values (2), (1) returning i",
            "Waiting for row lock",
        ),
        ("select sleep(600) from d.t", "User sleep"),
        (
            "insert into d.t values (3) returning i, sleep(600)",
            "User sleep",
        ),
    ] {
        let mut raw = Raw::new(&server);
        let id = raw.value("select connection_id()").expect("a number");
        raw.send(0, &[&[QUERY], b"select 1".as_slice()].concat());
        raw.send(0, &[&[QUERY], waits.as_bytes()].concat());
        let shown = format!("select state from information_schema.processlist where id = {id}");
        wait_until(waits, || {
            holder.value(&shown).expect("a state").as_deref() == Some(state)
        });
        let ends: Vec<_> = (0..5).map(|_| raw.packet().first().copied()).collect();
        assert_eq!(ends, [1, 3, 0xfe, 1, 0xfe].map(Some), "{waits}");
        raw.stream.set_nonblocking(true).expect("a socket");
        let more = raw.stream.peek(&mut [0; 1]);
        let kind = more.map_err(|error| error.kind());
        assert_eq!(kind, Err(ErrorKind::WouldBlock), "{waits}");
        raw.stream.set_nonblocking(false).expect("a socket");
        holder.run(&format!("kill query {id}")).expect("it waits");
        while raw.packet().first() != Some(&0xff) {}
    }
    holder.run("rollback").expect("its lock");
    let stored = holder.value("select count(*) from d.t");
    assert_eq!(stored.expect("a count").as_deref(), Some("1"));
}

#[test]
fn a_reset_connection_keeps_its_database_with_its_collation() {
    let (server, mut root) = start();
    root.run("create database l character set latin1")
        .expect("a database");
    let mut raw = Raw::new(&server);
    raw.run("use l");
    raw.run("set collation_connection = utf8mb4_bin, @kept = 1");
    raw.command(RESET_CONNECTION, b"");
    let mut value = |query| raw.value(query);
    assert_eq!(value("select database()").as_deref(), Some("l"));
    let collation = value("select @@collation_database");
    assert_eq!(collation.as_deref(), Some("latin1_swedish_ci"));
    assert_eq!(value("select @kept"), None);
}

#[test]
fn warnings_of_a_statement_are_not_those_of_the_next_command() {
    let (server, _root) = start();
    let mut raw = Raw::new(&server);
    let warned = "set @number = cast('x' as signed)";
    let answer = raw.command(QUERY, warned.as_bytes());
    assert_eq!(warning_count(&answer), 1);
    for command in [PING, RESET_CONNECTION] {
        raw.run(warned);
        assert_eq!(warning_count(&raw.command(command, b"")), 0);
    }
    raw.run(warned);
    let answer = raw.command(EXECUTE, &[99, 0, 0, 0, 0, 1, 0, 0, 0]);
    let (number, text) = message(&answer);
    assert_eq!(number, 1243);
    assert!(text.ends_with("given to mysqld_stmt_execute"), "{text}");
    assert_eq!(
        raw.value("select @@warning_count").as_deref(),
        Some("1"),
        "the error's only"
    );
}

#[test]
fn parameters_are_of_the_types_that_they_are_sent_as() {
    let (server, mut root) = start();
    root.run("create table d.t (id int primary key auto_increment, s varchar(40))")
        .expect("a table");
    let mut raw = Raw::new(&server);
    let insert = raw.prepare("insert into d.t (s) values (?)");
    raw.execute(&insert, DATE, &[4, 0xe4, 7, 1, 2]);
    raw.execute(&insert, DECIMAL, b"\x041.50");
    raw.execute(&insert, DECIMAL, b"\x031.5");
    let sum = raw.prepare("insert into d.t (s) values (? + 1)");
    raw.execute(&sum, DECIMAL, b"\x041.50");
    let all = "select group_concat(s order by id separator ' ') from d.t";
    let found = root.value(all).expect("texts");
    assert_eq!(found.as_deref(), Some("2020-01-02 1.50 1.5 2.50"));
}

/// A TIME beside a date counts as of the day on which the statement is executed.
#[test]
fn a_prepared_statement_knows_what_day_it_is() {
    let (server, mut root) = start();
    root.run("create table d.t (at datetime, n int)")
        .expect("a table");
    root.run("insert into d.t values ('2021-05-05 10:00:00', 0)")
        .expect("a row");
    let mut raw = Raw::new(&server);
    let count = raw.prepare("update d.t set n = n + (at = time(?))");
    for (day, counted) in [(4, "0"), (5, "1"), (5, "2"), (6, "2"), (5, "3")] {
        raw.run(&format!(
            "set timestamp = unix_timestamp('2021-05-0{day} 12:00:00')"
        ));
        raw.execute(&count, TEXT, b"\x0810:00:00");
        let found = root.value("select n from d.t").expect("a number");
        assert_eq!(found.as_deref(), Some(counted), "on the {day}th");
    }
}

/// The reply to a PREPARE has as many columns as the result will have.
#[test]
fn prepared_statements_tell_their_columns() {
    let (server, mut root) = start();
    root.run("create table d.t (a int)").expect("a table");
    let mut raw = Raw::new(&server);
    for (statement, column_count) in [
        ("analyze table d.t", 4),
        ("check table d.t", 4),
        ("optimize table d.t", 4),
        ("repair table d.t", 4),
        ("checksum table d.t", 2),
        ("select a, 1 from d.t", 2),
        ("delete from d.t", 0),
    ] {
        let answer = raw.command(PREPARE, statement.as_bytes());
        assert_eq!(answer.first(), Some(&0), "{statement}: {answer:?}");
        assert_eq!(answer.get(5), Some(&column_count), "{statement}");
        if column_count > 0 {
            (0..=column_count).for_each(|_| drop(raw.packet()));
        }
    }
}

/// A text that a column's character set lacks is refused in each row of a bulk as it is alone.
#[test]
fn a_bulk_compares_what_its_rows_would_compare_alone() {
    let (server, mut root) = start();
    root.run("create table d.t (s varchar(9) character set latin1, n int)")
        .expect("a table");
    root.run("insert into d.t values ('?', 0), ('x', 0)")
        .expect("rows");
    let mut raw = Raw::new(&server);
    let update = raw.prepare("update d.t set n = n + 1 where s = ?");
    // With types; each row is an indicator and a text.
    let head = [&update[..], &[128, 0, TEXT, 0]].concat();
    let mut bulk = |rows: &str| raw.command(BULK_EXECUTE, &[&head, rows.as_bytes()].concat());
    let (number, _) = message(&bulk("\0\u{2}\u{416}"));
    assert_eq!(number, 1267);
    let (number, _) = message(&bulk("\0\u{1}x\0\u{2}\u{416}"));
    assert_eq!(number, 1267);
    assert_eq!(bulk("\0\u{1}x\0\u{1}y").first(), Some(&0));
    let all = "select group_concat(s, n order by s) from d.t where s = '?'";
    assert_eq!(root.value(all).expect("rows").as_deref(), Some("?0"));
}

/// A comment after it is not a second statement.
#[test]
fn a_client_of_single_statements_may_end_them_with_comments() {
    let (server, _root) = start();
    let mut raw = Raw::new(&server);
    for ending in ["", ";", "; ", "; -- all", "; # all", "; /* all */ "] {
        raw.run(&format!("set @a = 1{ending}"));
        let found = raw.value(&format!("select @a{ending}"));
        assert_eq!(found.as_deref(), Some("1"), "{ending}");
    }
    let (number, _) = message(&raw.command(QUERY, b"set @a = 2; set @a = 3"));
    assert_eq!(number, 1064);
}

#[test]
fn a_client_may_ask_for_several_statements_later() {
    const ON: &[u8] = &[0, 0];
    const OFF: &[u8] = &[1, 0];
    let (server, _root) = start();
    let mut raw = Raw::new(&server);
    for (option, is_allowed) in [(ON, true), (OFF, false), (ON, true)] {
        let answer = raw.command(SET_OPTION, option);
        assert_eq!(answer.first(), Some(&0xfe), "{answer:?}");
        raw.run("set @a = 0");
        let answer = raw.command(QUERY, b"set @a = 2; set @a = 3");
        if is_allowed {
            assert_eq!(answer.first(), Some(&0), "{answer:?}");
            assert_eq!(raw.packet().first(), Some(&0), "the second statement's");
        } else {
            assert_eq!(message(&answer).0, 1064);
        }
        let expected = if is_allowed { "3" } else { "0" };
        assert_eq!(raw.value("select @a").as_deref(), Some(expected));
    }
    let (number, _) = message(&raw.command(SET_OPTION, &[2, 0]));
    assert_eq!(number, 1047);
}

/// COM_STMT_SEND_LONG_DATA and COM_STMT_CLOSE have no reply, also if they are too short. A reply
/// would be taken for the one to the next command.
#[test]
fn a_command_without_a_reply_has_none_if_it_is_malformed() {
    let (server, _root) = start();
    let mut raw = Raw::new(&server);
    for command in [0x18, 0x19] {
        for length in 0..4 {
            raw.send(0, &[command, 1, 0, 0][..=length]);
            let found = raw.value("select 7");
            assert_eq!(found.as_deref(), Some("7"), "{command}, {length}");
        }
    }
}
