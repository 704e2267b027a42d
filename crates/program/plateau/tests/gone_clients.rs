//! Clients that are gone. If their statements compute, these are ended; and the log and
//! `Aborted_clients` tell of those that did not say that they go. The process list shows
//! what is rolled back.

#![forbid(unsafe_code)]

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use testkit::client::Client;
use testkit::{Launch, Outcome, Server, on_each_driver, wait_until};

/// It practically never ends.
const ENDLESS: &str = "select count(*) from d.t a, d.t b, d.t c, d.t d, d.t e, d.t f, d.t g, d.t h";

/// It computes until a fixed time, after the second look at its client.
const TIMED: &str = "select 'done' from d.t a, d.t b, d.t c, d.t d, d.t e, d.t f, d.t g, d.t h \
                     where sysdate(6) > now(6) + interval 2500000 microsecond limit 1";

/// How often a transaction doubles its rows: to undo that many takes long enough to be seen.
const DOUBLINGS: u32 = 14;

fn start(io: &str) -> (Server, Client) {
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau"))
        .with_settings([format!("io={io}"), "workers=1".to_owned()]);
    let server = launch.start().expect("the server starts");
    let mut root = server.connect().expect("it serves");
    for statement in [
        "create database d",
        "create table d.t (a int)",
        "create table d.copy (a int)",
        "create procedure d.count_on() begin declare i bigint default 0; loop set i = i + 1; \
         end loop; end",
        "insert into d.t values (1), (2), (3), (4)",
        "insert into d.t select a.a from d.t a, d.t b, d.t c",
    ] {
        root.run(statement).expect("it works");
    }
    (server, root)
}

fn is_listed(root: &mut Client, condition: &str) -> bool {
    let count = format!("select count(*) from information_schema.processlist where {condition}");
    root.value(&count).expect("a count").as_deref() != Some("0")
}

fn wait_until_running(root: &mut Client, id: u32) {
    let runs = format!("id = {id} and command = 'Query'");
    wait_until("it runs", || is_listed(root, &runs));
}

fn wait_until_gone(root: &mut Client, id: u32) {
    wait_until("it has ended", || !is_listed(root, &format!("id = {id}")));
}

#[test]
fn a_statement_that_computes_ends_when_its_client_is_gone() {
    on_each_driver(|io| {
        let (server, mut root) = start(io);
        let copy = ENDLESS
            .replace("count(*)", "a.a")
            .replace("select", "insert into d.copy select");
        let one_call = "select regexp_replace(repeat('a', 4000000), 'a+b', '')";
        let looks = format!("{ENDLESS} where ({one_call}) is null");
        for statement in [ENDLESS, &copy, "call d.count_on()", &looks] {
            let mut client = server.connect().expect("it serves");
            client.send_query(statement.as_bytes()).expect("it reads");
            let id = client.connection_id;
            wait_until_running(&mut root, id);
            // Commands sent ahead do not count as its end, and do not hide it.
            client.send_query(b"select 1").expect("it reads");
            drop(client);
            wait_until_gone(&mut root, id);
        }
        let copied = root.value("select count(*) from d.copy");
        assert_eq!(copied.expect("a count").as_deref(), Some("0"), "{io}");
    });
}

#[test]
fn a_client_that_has_only_ended_its_sending_side_gets_its_rows() {
    on_each_driver(|io| {
        let (server, _root) = start(io);
        let mut client = server.connect().expect("it serves");
        client.send_query(TIMED.as_bytes()).expect("it reads");
        client.stream().shutdown(Shutdown::Write).expect("a socket");
        let outcomes = client.read_outcomes().expect("an answer");
        let [Outcome::Rows(rows)] = outcomes.as_slice() else {
            panic!("{io}: one result: {outcomes:?}");
        };
        assert_eq!(rows.rows, [[Some(b"done".to_vec())]], "{io}");
    });
}

/// Before its end the statement sends nothing that would show whether the client reads.
#[test]
fn a_change_of_a_client_that_has_ended_its_sending_side_is_rolled_back() {
    on_each_driver(|io| {
        let (server, mut root) = start(io);
        let mut client = server.connect().expect("it serves");
        let copy = ENDLESS
            .replace("count(*)", "a.a")
            .replace("select", "insert into d.copy select");
        client.send_query(copy.as_bytes()).expect("it reads");
        wait_until_running(&mut root, client.connection_id);
        client.stream().shutdown(Shutdown::Write).expect("a socket");
        wait_until_gone(&mut root, client.connection_id);
        assert!(client.read_outcomes().is_err(), "it was cut off");
    });
}

/// Its only row fills the buffer and was sent before the client was in doubt: no more output shows
/// it.
#[test]
fn a_client_that_has_ended_its_sending_side_is_cut_off_where_no_more_rows_come() {
    on_each_driver(|io| {
        let (server, mut root) = start(io);
        let mut client = server.connect().expect("it serves");
        let first_alone = "where if(@seen is null, (@seen := 1), 0)";
        let one_row = ENDLESS.replace("count(*)", "repeat('x', 40000)");
        let text = format!("{one_row} {first_alone}");
        client.send_query(text.as_bytes()).expect("it reads");
        wait_until_running(&mut root, client.connection_id);
        client.stream().shutdown(Shutdown::Write).expect("a socket");
        wait_until_gone(&mut root, client.connection_id);
        assert!(client.read_outcomes().is_err(), "{io}: it was cut off");
    });
}

/// On a unix socket, shutdown of the sending side and close can be distinguished.
#[test]
fn a_client_of_the_unix_socket_is_seen_to_close() {
    on_each_driver(|io| {
        let (server, mut root) = start(io);
        let of_program = "info like '%done%' and id <> connection_id()";
        for ends in [true, false] {
            let mut stream = logged_in(&server);
            let statement = if ends { TIMED } else { ENDLESS };
            let text = statement.replace("'done'", "'done', 1");
            let text = text.replace("count(*)", "count('done')");
            let query = [b"\x03", text.as_bytes()].concat();
            stream.write_all(&frame(0, &query)).expect("it reads");
            wait_until("it runs", || is_listed(&mut root, of_program));
            if ends {
                stream.shutdown(Shutdown::Write).expect("a socket");
                let mut answer = Vec::new();
                stream.read_to_end(&mut answer).expect("an answer");
                let is_there = answer.windows(5).any(|it| it == b"\x04done");
                assert!(is_there, "{io}: {answer:?}");
            } else {
                drop(stream);
                wait_until("it has ended", || !is_listed(&mut root, of_program));
            }
        }
    });
}

fn frame(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short one");
    let [a, b, c, _] = length.to_le_bytes();
    [&[a, b, c, sequence], payload].concat()
}

/// Logged in as root, over the unix socket.
fn logged_in(server: &Server) -> UnixStream {
    let mut stream = UnixStream::connect(server.socket()).expect("it listens");
    // LONG_PASSWORD, PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH.
    let mut payload = 0x8_8201_u32.to_le_bytes().to_vec();
    payload.extend_from_slice(&(1_u32 << 24).to_le_bytes());
    payload.push(45);
    payload.extend_from_slice(&[0; 23]);
    payload.extend_from_slice(b"root\0\0mysql_native_password\0");
    packet(&mut stream);
    stream.write_all(&frame(1, &payload)).expect("it reads");
    let answer = packet(&mut stream);
    assert_eq!(answer.first(), Some(&0), "{answer:?}");
    stream
}

fn packet(stream: &mut UnixStream) -> Vec<u8> {
    let mut header = [0; 4];
    stream.read_exact(&mut header).expect("a packet");
    let [a, b, c, _] = header.map(usize::from);
    let mut payload = vec![0; a | b << 8 | c << 16];
    stream.read_exact(&mut payload).expect("a whole one");
    payload
}

/// Lost, silent for too long, killed. One that says that it goes is not counted.
#[test]
fn aborted_clients_are_counted_and_logged() {
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau")).with_settings(["log=info"]);
    let mut server = launch.start().expect("the server starts");
    let mut root = server.connect().expect("it serves");
    for statement in ["create database d", "create table d.t (a int)"] {
        root.run(statement).expect(statement);
    }
    let mut aborted = || root.status("Aborted_clients").expect("a number");
    let polite = server.connect().expect("it serves");
    polite.quit().expect("it says that it goes");
    let mut lost = server.connect().expect("it serves");
    lost.run("use d").expect("the database is there");
    drop(lost);
    wait_until("the lost one is counted", || aborted() == 1);
    let mut silent = server.connect().expect("it serves");
    silent.run("set wait_timeout = 1").expect("a variable");
    wait_until("so is the silent one", || aborted() == 2);
    let mut holder = server.connect().expect("it serves");
    for statement in [
        "set idle_transaction_timeout = 1",
        "begin",
        "insert into d.t values (1)",
    ] {
        holder.run(statement).expect(statement);
    }
    wait_until("and a silent transaction", || aborted() == 3);
    let mut victim = server.connect().expect("it serves");
    let id = victim.value("select connection_id()").expect("a number");
    let kill = format!("kill {}", id.expect("it has one"));
    let mut killer = server.connect().expect("it serves");
    killer.run(&kill).expect("it is connected");
    wait_until("and a victim of KILL", || aborted() == 4);
    server.stop().expect("it stops");
    let log = server.log();
    for expected in [
        "user=root host=",
        "database=d reason=\"the peer closed the connection\"",
        "reason=\"wait_timeout (1 s) is over\"",
        "reason=\"idle_transaction_timeout (1 s) is over\"",
        "reason=\"it was killed\"",
    ] {
        assert!(log.contains(expected), "{expected}: {log}");
    }
}

/// A client with a long transaction, and its id.
fn begin(server: &Server) -> (Client, String) {
    let mut client = server.connect().expect("it serves");
    client.run("begin").expect("a transaction");
    client.run("insert into d.copy values (1)").expect("a row");
    for _ in 0..DOUBLINGS {
        client
            .run("insert into d.copy select a from d.copy")
            .expect("there is room");
    }
    let id = client.value("select connection_id()").expect("a number");
    (client, id.expect("it has one"))
}

#[test]
fn a_rollback_is_listed_as_one() {
    let (server, mut root) = start("auto");
    let (mut client, id) = begin(&server);
    client.send_query(b"rollback").expect("it reads");
    let of = |condition: &str| format!("id = {id} and {condition}");
    let listed = "command = 'Query' and state = 'Rollback'";
    wait_until("it rolls back", || is_listed(&mut root, &of(listed)));
    client.read_outcomes().expect("it has rolled back");
    let listed = "command = 'Sleep' and state = ''";
    wait_until("it is idle", || is_listed(&mut root, &of(listed)));
}

#[test]
fn a_killed_session_is_not_idle_while_it_rolls_back() {
    let (server, mut root) = start("auto");
    let (_client, id) = begin(&server);
    root.run(&format!("kill {id}")).expect("it is connected");
    let of = |condition: &str| format!("id = {id} and {condition}");
    let listed = "command = 'Killed' and state = 'Rollback'";
    wait_until("it rolls back", || is_listed(&mut root, &of(listed)));
    wait_until("it has ended", || !is_listed(&mut root, &of("true")));
}
