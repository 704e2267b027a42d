//! Statements of the binary protocol: each as the client has prepared it, wherever it runs.

use super::roles::replicated;
use super::shared::sharing;
use super::split::{mark, split_over};
use super::*;
use testkit::topology::Replicated;

/// A statement of the binary protocol.
pub(crate) struct Prepared {
    id: [u8; 4],
    has_parameter: bool,
}

const STMT_PREPARE: u8 = 22;
const STMT_EXECUTE: u8 = 23;
const STMT_SEND_LONG_DATA: u8 = 24;
const STMT_CLOSE: u8 = 25;
const STMT_RESET: u8 = 26;
const STMT_FETCH: u8 = 28;

pub(crate) fn prepare(client: &mut Client, text: &str) -> Prepared {
    client
        .send_command(STMT_PREPARE, text.as_bytes())
        .expect("sent");
    let ok = client.next_packet().expect("an answer");
    assert_eq!(ok[0], 0, "{text}: {:?}", String::from_utf8_lossy(&ok));
    let id = *ok[1..].first_chunk().expect("an id");
    let (columns, parameters) = (ok[5], ok[7]);
    for count in [parameters, columns] {
        // Definitions have an EOF packet behind them.
        for _ in 0..if count == 0 { 0 } else { count + 1 } {
            client.next_packet().expect("a definition");
        }
    }
    let has_parameter = parameters == 1;
    Prepared { id, has_parameter }
}

/// Executes with an INT parameter, whose type is told if `types` says so. Returns the first packet
/// of each row, or what came in its place.
pub(crate) fn execute(
    client: &mut Client,
    prepared: &Prepared,
    value: i32,
    types: Types,
) -> Vec<Vec<u8>> {
    let mut body = [&prepared.id[..], &[0, 1, 0, 0, 0]].concat();
    if prepared.has_parameter {
        body.push(0);
        match types {
            Types::Told => body.extend([1, 3, 0]),
            Types::Untold => body.push(0),
        }
        body.extend(value.to_le_bytes());
    }
    execute_body(client, &body)
}

/// Executes a statement without parameters. Its reply is the caller's to read.
pub(crate) fn send_execution(client: &mut Client, prepared: &Prepared) {
    let body = [&prepared.id[..], &[0, 1, 0, 0, 0]].concat();
    client.send_command(STMT_EXECUTE, &body).expect("sent");
}

/// The same of a command that is made already.
fn execute_body(client: &mut Client, body: &[u8]) -> Vec<Vec<u8>> {
    client.send_command(STMT_EXECUTE, body).expect("sent");
    let first = client.next_packet().expect("an answer");
    if first[0] == 0 || first[0] == 0xff {
        return vec![first];
    }
    for _ in 0..=first[0] {
        client.next_packet().expect("a definition");
    }
    let mut rows = Vec::new();
    loop {
        let row = client.next_packet().expect("a row");
        if row[0] == 0xfe {
            return rows;
        }
        rows.push(row);
    }
}

/// Whether an execution has the type of its parameter.
#[derive(Clone, Copy)]
pub(crate) enum Types {
    Told,
    Untold,
}

#[test]
fn prepared_statements_run_on_each_server() {
    let topology = replicated();
    mark(&topology);
    let gateway = split_over(&topology);
    let mut client = gateway.connect();
    client
        .run("CREATE TABLE shop.t (id INT PRIMARY KEY)")
        .unwrap();
    let read = prepare(&mut client, "SELECT place FROM shop.here WHERE place >= ?");
    let write = prepare(&mut client, "INSERT INTO shop.t VALUES (?)");
    assert_ne!(read.id, write.id);
    let mut places = Vec::new();
    for id in 0..6 {
        let types = if id == 0 { Types::Told } else { Types::Untold };
        let done = execute(&mut client, &write, id, types);
        assert_eq!(done[0][0], 0, "{done:?}");
        // A statement that was not told types elsewhere gets them there.
        let rows = execute(&mut client, &read, 0, types);
        places.push(*rows[0].last_chunk::<4>().expect("an INT"));
    }
    assert_eq!(places[0], [0; 4], "the table was just written to");
    wait_until("a replica is read from", || {
        let rows = execute(&mut client, &read, 0, Types::Untold);
        rows[0].last_chunk::<4>() != Some(&[0; 4])
    });
    client.run("BEGIN").unwrap();
    let rows = execute(&mut client, &read, 0, Types::Untold);
    assert_eq!(rows[0].last_chunk::<4>(), Some(&[0; 4]));
    client.run("COMMIT").unwrap();
    client.send_command(STMT_CLOSE, &read.id).unwrap();
    let gone = execute(&mut client, &read, 0, Types::Told);
    assert_eq!(gone[0][..3], [0xff, 0xdb, 0x04], "error 1243");
    let count = client.value("SELECT COUNT(*) FROM shop.t").unwrap();
    assert_eq!(count.as_deref(), Some("6"));
}

/// A client of the gateway, and one of the server itself that does the same.
struct Pair([Client; 2]);

impl Pair {
    fn run(&mut self, text: &str) {
        let [told, expected] = self.0.each_mut().map(|it| it.query(text).expect(text));
        match (told, expected) {
            (Outcome::Error(told), Outcome::Error(expected)) => {
                assert_eq!(told.number, expected.number, "{text}");
            }
            (Outcome::Error(error), _) | (_, Outcome::Error(error)) => panic!("{text}: {error:?}"),
            _ => {}
        }
    }

    fn prepare(&mut self, text: &str) -> [Prepared; 2] {
        self.0.each_mut().map(|it| prepare(it, text))
    }

    /// The rows of both, which are the same.
    fn execute(&mut self, prepared: &[Prepared; 2]) -> Vec<Vec<u8>> {
        let [through, alone] = &mut self.0;
        let told = execute(through, &prepared[0], 0, Types::Told);
        let expected = execute(alone, &prepared[1], 0, Types::Told);
        assert_eq!(told, expected);
        told
    }
}

/// Two databases, each with a table `t` that has its name.
fn create_twins(root: &mut Client) {
    for name in ["a", "b"] {
        let table = format!("CREATE TABLE {name}.t SELECT '{name}' name");
        root.run(&format!("CREATE DATABASE {name}"))
            .and_then(|_| root.run(&table))
            .expect("they are made");
    }
}

/// Has every connection of a gateway with two serve another client in turn.
fn take_turns(gateway: &Gateway) {
    let mut others: Vec<_> = (0..2).map(|_| gateway.connect()).collect();
    for other in &mut others {
        other.run("BEGIN").expect("a connection is free");
    }
    for other in &mut others {
        other.run("SET @other = 1").expect("it is theirs");
        other.run("COMMIT").expect("it is given back");
    }
}

#[test]
fn a_statement_is_read_as_when_it_was_prepared() {
    let backend = backend();
    let mut root = backend.connect().unwrap();
    create_twins(&mut root);
    root.run("CREATE TABLE a.own SELECT 'own' name").unwrap();
    let gateway = sharing(&backend, 2);
    let login = Login {
        port: backend.port(),
        ..gateway.login("app", "secret")
    };
    let mut pair = Pair([gateway.connect(), Client::connect(&login).unwrap()]);
    pair.run("USE a");
    let statements = [
        "SELECT name FROM t",
        "SELECT name FROM own",
        "SELECT \"name\" FROM t",
        "SELECT 'x' || 'y', DATABASE()",
    ]
    .map(|text| pair.prepare(text));
    for change in [
        "USE b",
        "SET sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT'",
        "SET NAMES latin1",
        "SET autocommit = 0",
        "SET @a = 1",
        "USE shop",
    ] {
        pair.run(change);
        pair.run("COMMIT");
        for _ in 0..2 {
            take_turns(&gateway);
            for statement in &statements {
                pair.execute(statement);
            }
            pair.run("COMMIT");
            // What was done for the statements is undone.
            let text = "SELECT DATABASE(), @@sql_mode, @@character_set_client, @@autocommit, \
                        @@character_set_results, @@collation_connection";
            let [told, expected] = pair.0.each_mut().map(|it| it.rows(text).unwrap());
            assert_eq!(told, expected, "after {change}");
            pair.run("COMMIT");
        }
    }
    // In the state of now it is another statement.
    let again = pair.prepare("SELECT \"name\", DATABASE() FROM b.t");
    take_turns(&gateway);
    assert!(pair.execute(&again)[0].ends_with(b"\x01b\x04shop"));
    pair.run("COMMIT");
}

#[test]
fn in_a_state_that_cannot_be_had_again_the_database_is_the_right_one() {
    let backend = backend();
    create_twins(&mut backend.connect().unwrap());
    let gateway = sharing(&backend, 2);
    let mut client = gateway.connect();
    client.run("USE a").unwrap();
    let statement = prepare(&mut client, "SELECT name FROM t");
    client
        .run("SET sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')")
        .unwrap();
    client.run("USE b").unwrap();
    take_turns(&gateway);
    let rows = execute(&mut client, &statement, 0, Types::Told);
    assert!(rows[0].ends_with(b"\x01a"), "{rows:?}");
    assert_eq!(
        client.value("SELECT name FROM t").unwrap().as_deref(),
        Some("b")
    );
}

#[test]
fn a_statement_whose_database_is_gone_leaves_the_session_where_it_is() {
    let backend = backend();
    let mut root = backend.connect().unwrap();
    root.run("CREATE DATABASE a").unwrap();
    root.run("CREATE TABLE a.t SELECT 'a' name").unwrap();
    root.run("CREATE TABLE shop.t SELECT 'shop' name").unwrap();
    let gateway = sharing(&backend, 2);
    let mut client = gateway.connect();
    client.run("USE a").unwrap();
    let statement = prepare(&mut client, "SELECT name FROM t");
    client.run("USE shop").unwrap();
    root.run("DROP DATABASE a").unwrap();
    take_turns(&gateway);
    client.run("BEGIN").unwrap();
    let refused = execute(&mut client, &statement, 0, Types::Told);
    assert_eq!(refused[0][..3], [0xff, 0x19, 0x04], "error 1049");
    let name = client.value("SELECT name FROM t").unwrap();
    assert_eq!(name.as_deref(), Some("shop"));
    client.run("COMMIT").unwrap();
}

/// Executes with a cursor.
fn open_cursor(client: &mut Client, prepared: &Prepared) {
    let body = [&prepared.id[..], &[1, 1, 0, 0, 0]].concat();
    client.send_command(STMT_EXECUTE, &body).expect("sent");
    let first = client.next_packet().expect("an answer");
    assert_eq!(first, [1], "one column");
    for _ in 0..2 {
        client.next_packet().expect("a definition, and their end");
    }
}

/// The next row of a cursor.
fn fetch(client: &mut Client, prepared: &Prepared) -> Vec<u8> {
    let body = [&prepared.id[..], &[1, 0, 0, 0]].concat();
    client.send_command(STMT_FETCH, &body).expect("sent");
    let row = client.next_packet().expect("a row");
    assert_eq!(row[0], 0, "{}", row.escape_ascii());
    client.next_packet().expect("the end of the rows");
    row
}

#[test]
fn statements_of_one_text_have_a_cursor_each() {
    let backend = backend();
    let gateway = sharing(&backend, 1);
    let mut client = gateway.connect();
    client.run("CREATE TABLE shop.t (id INT)").unwrap();
    client
        .run("INSERT INTO shop.t VALUES (1), (2), (3)")
        .unwrap();
    let text = "SELECT id FROM shop.t ORDER BY id";
    let (outer, inner) = (prepare(&mut client, text), prepare(&mut client, text));
    let last = |row: &[u8]| row.last_chunk().copied().map(i32::from_le_bytes);
    open_cursor(&mut client, &outer);
    for id in 1..=3 {
        assert_eq!(last(&fetch(&mut client, &outer)), Some(id));
        open_cursor(&mut client, &inner);
        assert_eq!(last(&fetch(&mut client, &inner)), Some(1));
        // More statements than a connection keeps leave a cursor alone.
        for number in 0..150 * i32::from(id == 1) {
            let other = prepare(&mut client, &format!("SELECT {number}"));
            execute(&mut client, &other, 0, Types::Told);
        }
    }
}

#[test]
fn texts_of_a_session_take_so_much_room() {
    const BYTES_MAX: usize = 32 << 20;
    let backend = backend();
    let gateway = sharing(&backend, 1);
    let mut client = gateway.connect();
    let text = format!("SELECT 1 -- {}", "x".repeat((4 << 20) - 12));
    let all: Vec<_> = (0..BYTES_MAX / text.len())
        .map(|_| prepare(&mut client, &text))
        .collect();
    let is_room = |client: &mut Client| {
        client.send_command(STMT_PREPARE, b"DO 1").unwrap();
        let answer = client.next_packet().unwrap();
        if answer[0] == 0 {
            return true;
        }
        assert_eq!(answer[1..3], 1461_u16.to_le_bytes());
        false
    };
    assert!(!is_room(&mut client));
    client.send_command(STMT_CLOSE, &all[0].id).unwrap();
    assert!(is_room(&mut client));
    assert_eq!(execute(&mut client, &all[1], 0, Types::Told).len(), 1);
}

#[test]
fn preparing_clears_warnings_as_on_a_server() {
    let backend = backend();
    let gateway = sharing(&backend, 1);
    let [mut one, mut other] = [gateway.connect(), gateway.connect()];
    one.run("CREATE TABLE shop.t (a INT)").unwrap();
    for turns in 0..16_u32 {
        let mut others_turn = |turn: u32| {
            if turns & (1 << turn) != 0 {
                other.error_number("SELECT none").unwrap();
                other.run("DO 1").unwrap();
            }
        };
        one.send_command(STMT_PREPARE, b"SELECT nothing").unwrap();
        assert_eq!(one.next_packet().unwrap()[0], 0xff);
        others_turn(0);
        one.send_command(STMT_CLOSE, &[0; 4]).unwrap();
        others_turn(1);
        prepare(&mut one, "SELECT a FROM shop.t");
        others_turn(2);
        let warnings = one.rows("SHOW WARNINGS").unwrap();
        assert!(warnings.is_empty(), "{turns:b}: {warnings:?}");
        others_turn(3);
    }
}

#[test]
fn a_trigger_of_a_statement_from_elsewhere_changes_no_other_session() {
    let backend = backend();
    let mut root = backend.connect().unwrap();
    for text in [
        "CREATE DATABASE far",
        "CREATE TABLE shop.t (a INT)",
        "CREATE TRIGGER shop.sets BEFORE INSERT ON shop.t FOR EACH ROW SET @x = 7",
    ] {
        root.run(text).expect(text);
    }
    let gateway = sharing(&backend, 1);
    for (text, keeps_own) in [("USE far", false), ("SET sql_mode = 'ANSI'", true)] {
        let [mut one, mut other] = [gateway.connect(), gateway.connect()];
        one.run("USE shop").unwrap();
        let write = prepare(&mut one, "INSERT INTO t VALUES (?)");
        one.run(text).unwrap();
        // The same session needs nothing else on the connection.
        other.run("USE shop").unwrap();
        other.run(text).unwrap();
        let done = execute(&mut one, &write, 1, Types::Told);
        assert_eq!(done[0][0], 0, "{done:?}");
        if keeps_own {
            assert_eq!(one.value("SELECT @x").unwrap().as_deref(), Some("7"));
            let held = error_of(other.query("SELECT @x").unwrap());
            assert_eq!(held.number, 1040, "{text}");
        } else {
            assert_eq!(other.value("SELECT @x").unwrap(), None, "{text}");
        }
    }
}

/// A client that can send bulks.
fn connect_for_bulks(gateway: &Gateway) -> Client {
    Client::connect_for_bulks(&gateway.login("app", "secret")).expect("app gets in")
}

/// Sends a bulk of one row, with an INT that the server may be told as such.
fn bulk(client: &mut Client, prepared: &Prepared, value: i32, types: Types) -> Vec<u8> {
    let told = match types {
        Types::Told => Some(&[3, 0][..]),
        Types::Untold => None,
    };
    let row = [&[0], &value.to_le_bytes()[..]].concat();
    client.send_bulk(prepared.id, told, &row).expect("sent");
    client.next_packet().expect("an answer")
}

/// Has the gateway's only connection prepare so many other statements that it keeps no others.
pub(crate) fn crowd_out(client: &mut Client) {
    for number in 0..128 {
        prepare(client, &format!("SELECT {number}"));
    }
}

#[test]
fn bulks_and_executions_know_the_types_that_either_was_told() {
    let backend = backend();
    let gateway = sharing(&backend, 1);
    let [mut one, mut other] = [0; 2].map(|_| connect_for_bulks(&gateway));
    one.run("CREATE TABLE shop.t (id INT)").unwrap();
    let text = "INSERT INTO shop.t VALUES (?)";
    let write = prepare(&mut one, text);
    let others = prepare(&mut other, text);
    assert_eq!(bulk(&mut one, &write, 1, Types::Told)[0], 0);
    assert_eq!(bulk(&mut one, &write, 2, Types::Untold)[0], 0);
    // The statement is prepared again, on a server that knows no types.
    crowd_out(&mut other);
    let told = bulk(&mut one, &write, 3, Types::Untold);
    assert_eq!(told[0], 0, "{}", told.escape_ascii());
    crowd_out(&mut other);
    let told = execute(&mut one, &write, 4, Types::Untold);
    assert_eq!(told[0][0], 0, "{}", told[0].escape_ascii());
    // Another client tells the server's statement other types: a BIGINT.
    let body = [
        &others.id[..],
        &[0, 1, 0, 0, 0, 0, 1, 8, 0],
        &5_i64.to_le_bytes(),
    ]
    .concat();
    other.send_command(STMT_EXECUTE, &body).unwrap();
    assert_eq!(other.next_packet().unwrap()[0], 0);
    for types in [Types::Untold, Types::Told, Types::Untold] {
        let told = bulk(&mut one, &write, 6, types);
        assert_eq!(told[0], 0, "{}", told.escape_ascii());
    }
    let rows = one.rows("SELECT id FROM shop.t ORDER BY id").unwrap();
    let ids: Vec<_> = rows.concat().into_iter().flatten().flatten().collect();
    assert_eq!(ids, b"12345666");
}

/// Sends long data for a parameter, which has no answer.
fn send_data(client: &mut Client, prepared: &Prepared, parameter: u16, data: &[u8]) {
    let body = [&prepared.id[..], &parameter.to_le_bytes(), data].concat();
    client
        .send_command(STMT_SEND_LONG_DATA, &body)
        .expect("sent");
}

/// Executes with a BLOB: this value, or the long data that was sent before.
fn execute_blob(client: &mut Client, prepared: &Prepared, value: Option<&str>) -> Vec<u8> {
    let mut body = [&prepared.id[..], &[0, 1, 0, 0, 0], &[0, 1, 252, 0]].concat();
    if let Some(value) = value {
        body.push(u8::try_from(value.len()).expect("a short value"));
        body.extend_from_slice(value.as_bytes());
    }
    execute_body(client, &body).concat()
}

const BLOB_TEXT: &str = "SELECT CONCAT(?, '.')";

#[track_caller]
fn assert_blob(row: &[u8], value: &str) {
    assert!(row.ends_with(value.as_bytes()), "{}", row.escape_ascii());
}

#[track_caller]
fn assert_error(packet: &[u8], number: u16) {
    let expected = [&[0xff], &number.to_le_bytes()[..]].concat();
    assert!(packet.starts_with(&expected), "{}", packet.escape_ascii());
}

/// A primary and one replica, and a gateway with one connection to each.
fn sharing_two() -> (Replicated, Gateway) {
    let topology = Replicated::start(1).expect("the servers start");
    create_accounts(&mut topology.connect(0).expect("root gets in"));
    mark(&topology);
    let servers: Vec<_> = topology.servers.iter().collect();
    let service = "[[service]]\nname = \"split\"\nrouter = \"read-write-split\"\nwait = 2\n";
    let sections = sections_with(&servers, "max_connections = 1\n") + service;
    let gateway = Gateway::start(&sections, "auto");
    (topology, gateway)
}

#[test]
fn long_data_of_an_execution_that_is_refused_is_gone() {
    let (_topology, gateway) = sharing_two();
    let [mut one, mut other] = [0; 2].map(|_| gateway.connect());
    let [others, read] = [&mut other, &mut one].map(|it| prepare(it, BLOB_TEXT));
    send_data(&mut one, &read, 0, b"secret");
    // The data is on the replica, where this transaction is not.
    one.run("BEGIN").unwrap();
    assert_error(&execute_blob(&mut one, &read, None), 1158);
    one.run("COMMIT").unwrap();
    assert_blob(&execute_blob(&mut other, &others, Some("own")), "own.");
}

#[test]
fn long_data_in_two_places_is_no_value() {
    let (_topology, gateway) = sharing_two();
    let mut client = gateway.connect();
    let read = prepare(&mut client, BLOB_TEXT);
    send_data(&mut client, &read, 0, b"on the replica, ");
    client.run("BEGIN").unwrap();
    send_data(&mut client, &read, 0, b"on the primary");
    assert_error(&execute_blob(&mut client, &read, None), 1158);
    send_data(&mut client, &read, 0, b"one ");
    send_data(&mut client, &read, 0, b"place");
    assert_blob(&execute_blob(&mut client, &read, None), "one place.");
    client.run("COMMIT").unwrap();
}

#[test]
fn long_data_that_a_server_refuses_is_gone() {
    let backend = backend();
    let gateway = sharing(&backend, 1);
    let [mut one, mut other] = [0; 2].map(|_| gateway.connect());
    let [others, read] = [&mut other, &mut one].map(|it| prepare(it, BLOB_TEXT));
    // There is no such parameter. The server tells it when the statement is executed.
    send_data(&mut one, &read, 9, b"secret");
    assert_error(&execute_blob(&mut one, &read, Some("own")), 1210);
    assert_blob(&execute_blob(&mut other, &others, Some("other")), "other.");
    send_data(&mut one, &read, 0, b"sent");
    assert_blob(&execute_blob(&mut one, &read, None), "sent.");
}

#[test]
fn without_its_long_data_nothing_is_executed() {
    let backend = backend();
    let mut root = backend.connect().unwrap();
    let gateway = sharing(&backend, 1);
    let mut client = gateway.connect();
    client.run("CREATE TABLE shop.t (name BLOB)").unwrap();
    let write = prepare(&mut client, "INSERT INTO shop.t VALUES (?)");
    send_data(&mut client, &write, 0, b"lost");
    let threads = "SELECT MIN(id) FROM information_schema.processlist WHERE user = 'app'";
    let thread = root.value(threads).unwrap().expect("it has a connection");
    root.run(&format!("KILL {thread}")).unwrap();
    // A connection that was used in the last second is not looked at.
    root.run("DO SLEEP(1.5)").unwrap();
    assert_error(&execute_blob(&mut client, &write, None), 1158);
    send_data(&mut client, &write, 0, b"kept");
    assert_eq!(execute_blob(&mut client, &write, None)[0], 0);
    let names = client.rows("SELECT name FROM shop.t").unwrap().concat();
    assert_eq!(names, [Some(b"kept".to_vec())]);
}

/// A table of three rows.
fn create_rows(client: &mut Client) {
    let rows = "INSERT INTO shop.t VALUES (1), (2), (3)";
    client
        .run("CREATE TABLE shop.t (id INT)")
        .and_then(|_| client.run(rows))
        .expect("it is made");
}

#[test]
fn statements_that_were_reset_make_room() {
    let backend = backend();
    let mut root = backend.connect().unwrap();
    let gateway = sharing(&backend, 1);
    let mut client = gateway.connect();
    create_rows(&mut client);
    let open = |client: &mut Client, number: i32| {
        let statement = prepare(client, &format!("SELECT id + {number} FROM shop.t"));
        open_cursor(client, &statement);
        statement
    };
    let reset = |client: &mut Client, statement: &Prepared| {
        client.send_command(STMT_RESET, &statement.id).unwrap();
        assert_eq!(client.next_packet().unwrap()[0], 0);
    };
    for number in 0..140 {
        let statement = open(&mut client, number);
        reset(&mut client, &statement);
        client.send_command(STMT_CLOSE, &statement.id).unwrap();
    }
    // COM_STMT_CLOSE has no answer to wait for.
    let mut wait_for = |count| {
        wait_until("the server has so many statements", || {
            root.status("Prepared_stmt_count").unwrap() == count
        });
    };
    wait_for(128);
    let many: Vec<_> = (200..340).map(|it| open(&mut client, it)).collect();
    // Those with a cursor stay.
    wait_for(140);
    many.iter().for_each(|it| reset(&mut client, it));
    prepare(&mut client, "SELECT 1");
    wait_for(128);
}

/// A server has some 16,000 statements at the most, on all connections together.
#[test]
fn the_more_connections_there_may_be_the_fewer_statements_are_prepared_on_each() {
    let backend = backend();
    let mut root = backend.connect().unwrap();
    let gateway = sharing(&backend, 4_000);
    let mut client = gateway.connect();
    let statements: Vec<_> = (0..5)
        .map(|it| prepare(&mut client, &format!("SELECT {it}")))
        .collect();
    wait_until("the server has three of them", || {
        for statement in &statements {
            let rows = execute(&mut client, statement, 0, Types::Told);
            assert_eq!(rows.len(), 1);
        }
        root.status("Prepared_stmt_count").unwrap() == 3
    });
}

#[test]
fn a_cursor_without_rows_keeps_no_connection() {
    let backend = backend();
    let gateway = sharing(&backend, 1);
    let [mut one, mut other] = [0; 2].map(|_| gateway.connect());
    create_rows(&mut one);
    let read = prepare(&mut one, "SELECT id FROM shop.t");
    open_cursor(&mut one, &read);
    let body = [&read.id[..], &[100, 0, 0, 0]].concat();
    one.send_command(STMT_FETCH, &body).unwrap();
    for _ in 0..3 {
        assert_eq!(one.next_packet().unwrap()[0], 0);
    }
    assert_eq!(one.next_packet().unwrap()[0], 0xfe);
    assert_eq!(other.value("SELECT 7").unwrap().as_deref(), Some("7"));
    one.send_command(STMT_FETCH, &body).unwrap();
    assert_error(&one.next_packet().unwrap(), 1421);
    open_cursor(&mut one, &read);
    assert_eq!(
        fetch(&mut one, &read).last_chunk(),
        Some(&1_i32.to_le_bytes())
    );
}

#[test]
fn a_bulk_that_is_refused_tells_a_server_no_types() {
    let backend = backend();
    let gateway = sharing(&backend, 1);
    let [mut one, mut other] = [0; 2].map(|_| connect_for_bulks(&gateway));
    let [own, others] = [&mut one, &mut other].map(|it| prepare(it, BLOB_TEXT));
    execute(&mut one, &own, 1, Types::Told);
    // The server's statement has a BIGINT now.
    let big = [&others.id[..], &[0, 1, 0, 0, 0, 0, 1, 8, 0], &[2; 8]].concat();
    execute_body(&mut other, &big);
    assert_error(&bulk(&mut other, &others, 3, Types::Told), 1295);
    let rows = execute(&mut one, &own, 4, Types::Untold);
    assert_blob(&rows.concat(), "4.");
}

#[test]
fn a_cursor_that_is_opened_elsewhere_leaves_nothing_behind() {
    let (topology, gateway) = sharing_two();
    let mut replica = topology.connect(1).unwrap();
    let mut count = || replica.status("Prepared_stmt_count").unwrap();
    let mut client = gateway.connect();
    let read = prepare(&mut client, "SELECT place FROM shop.here");
    let place = |row: &[u8]| row.last_chunk().copied().map(i32::from_le_bytes);
    open_cursor(&mut client, &read);
    assert_eq!(place(&fetch(&mut client, &read)), Some(1));
    assert_eq!(count(), 1);
    client.run("BEGIN").unwrap();
    open_cursor(&mut client, &read);
    wait_until("the replica has no cursor", || count() == 0);
    assert_eq!(place(&fetch(&mut client, &read)), Some(0));
}
