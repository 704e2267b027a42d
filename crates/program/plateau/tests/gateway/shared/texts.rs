//! Texts that come in pieces, and long ones: they are read as those that come at once.

use std::io::Write as _;
use std::process::{Command, Stdio};

use testkit::client::CAPABILITIES;

use crate::*;

/// For a statement that is not there, a session that shares connections answers by itself.
const COM_STMT_RESET: u8 = 26;
const COM_SET_OPTION: u8 = 27;
const COM_RESET_CONNECTION: u8 = 31;

const MULTI_STATEMENTS: u32 = 0x1_0000;

/// The longest text that the gateway reads.
const READ_BYTES_MAX: usize = 1 << 20;

/// A gateway whose sessions share one connection, and wait for it a second. It has one worker.
struct Shared {
    gateway: Gateway,
    /// It ends with this.
    _backend: Server,
}

impl Shared {
    fn start() -> Shared {
        let backend = backend();
        let mut root = backend.connect().expect("root gets in");
        root.run("CREATE TABLE shop.t (a INT, b LONGTEXT)")
            .expect("a table");
        let server = sections_with(&[&backend], "max_connections = 1\n");
        let service = "[[service]]\nname = \"shared\"\nrouter = \"read-write-split\"\nwait = 1\n";
        let gateway = Gateway::start(&format!("workers = 1\n{server}{service}"), "auto");
        Shared {
            gateway,
            _backend: backend,
        }
    }

    fn connect_able(&self, capabilities: u32) -> Client {
        let login = self.gateway.login("app", "secret");
        Client::connect_able(&login, capabilities).expect("app gets in")
    }

    /// A client whose texts have one statement.
    fn connect_single(&self) -> Client {
        self.connect_able(CAPABILITIES & !MULTI_STATEMENTS)
    }

    /// Whether another session has to wait for the connection. If not, it finds nothing on it.
    fn is_held(&self) -> bool {
        let login = self.gateway.login("app", "secret");
        let mut other = match Client::connect(&login) {
            Ok(other) => other,
            Err(error) => {
                let error: ServerError = error.downcast().expect("a server's error");
                assert_eq!(error.number, 1040, "{error:?}");
                return true;
            }
        };
        let released = other.value("SELECT RELEASE_LOCK('a')").expect("a row");
        assert_ne!(released.as_deref(), Some("1"), "it had the lock");
        other
            .run("UPDATE shop.t SET a = a")
            .expect("no table is locked");
        false
    }
}

/// A text of one statement or several that has `bytes`.
fn padded(text: &str, bytes: usize) -> Vec<u8> {
    let padding = bytes - text.len() - "/**/".len();
    format!("{text}/*{}*/", "x".repeat(padding)).into_bytes()
}

/// Sends a text in two pieces, of which the worker sees the first before the second comes.
pub(crate) fn query_in_two(client: &mut Client, pacer: &mut Client, text: &[u8]) -> Vec<Outcome> {
    let pause = || {
        pacer.send_command(COM_STMT_RESET, &[77, 0, 0, 0])?;
        pacer.next_packet().map(drop)
    };
    client
        .send_query_in_two(text, 40, pause)
        .expect("it is sent");
    client.read_outcomes().expect("an answer")
}

fn value_in_two(client: &mut Client, pacer: &mut Client, text: &str) -> String {
    match query_in_two(client, pacer, text.as_bytes()).remove(0) {
        Outcome::Rows(rows) => {
            let value = rows.rows.into_iter().flatten().flatten().next();
            String::from_utf8(value.expect("a value")).expect("a text")
        }
        other => panic!("no rows: {other:?}"),
    }
}

#[test]
fn what_follows_a_long_write_is_seen() {
    let shared = Shared::start();
    let mut pacer = shared.gateway.connect();
    let blank = " ".repeat(9000);
    for behind in [
        "LOCK TABLES shop.t WRITE",
        "DO GET_LOCK('a', 0)",
        "SET @x = 1",
    ] {
        let mut client = shared.gateway.connect();
        let text = format!("INSERT INTO shop.t VALUES (1, '{blank}'); {behind}");
        let outcomes = query_in_two(&mut client, &mut pacer, text.as_bytes());
        assert!(
            matches!(&outcomes[..], [Outcome::Done(_), Outcome::Done(_)]),
            "{outcomes:?}"
        );
        assert!(shared.is_held(), "{behind}");
    }
}

#[test]
fn what_a_long_write_asks_is_answered_for_its_own_session() {
    let shared = Shared::start();
    let mut pacer = shared.gateway.connect();
    let mut other = shared.gateway.connect();
    for mut client in [shared.gateway.connect(), shared.connect_single()] {
        for text in [
            "DELETE FROM shop.t",
            "INSERT INTO shop.t VALUES (5, ''), (6, '')",
        ] {
            client.run(text).unwrap();
        }
        other.run("DO 1").unwrap();
        let text = padded(
            "INSERT INTO shop.t VALUES (ROW_COUNT(), ''), (CONNECTION_ID(), '')",
            9000,
        );
        query_in_two(&mut client, &mut pacer, &text);
        let number = client.connection_id;
        let values = other.value("SELECT GROUP_CONCAT(a ORDER BY a) FROM shop.t");
        assert_eq!(values.unwrap().unwrap(), format!("2,5,6,{number}"));
        let text = padded("INSERT INTO shop.t VALUES (GET_LOCK('a', 0), '')", 9000);
        query_in_two(&mut client, &mut pacer, &text);
        assert!(shared.is_held());
    }
}

#[test]
fn a_lock_of_a_text_in_pieces_keeps_its_session() {
    let shared = Shared::start();
    let mut pacer = shared.gateway.connect();
    let mut client = shared.gateway.connect();
    let blank = " ".repeat(9000);
    let taken = value_in_two(
        &mut client,
        &mut pacer,
        &format!("SELECT GET_LOCK('a', 0){blank}"),
    );
    assert_eq!(taken, "1");
    client.query("SELECT GET_LOCK('b', 0)").unwrap();
    let freed = client.value("SELECT RELEASE_LOCK('b')").unwrap();
    assert_eq!(freed.as_deref(), Some("1"));
    assert!(shared.is_held(), "the first lock is left");
    let freed = value_in_two(
        &mut client,
        &mut pacer,
        &format!("SELECT RELEASE_LOCK('a'){blank}"),
    );
    assert_eq!(freed, "1");
    assert!(!shared.is_held());
}

#[test]
fn texts_of_a_mebibyte_are_read_and_longer_ones_are_not() {
    let shared = Shared::start();
    let released = "SELECT RELEASE_LOCK('a')";
    for bytes in [READ_BYTES_MAX - 1, READ_BYTES_MAX, READ_BYTES_MAX + 1] {
        let is_read = bytes <= READ_BYTES_MAX;
        for mut client in [shared.gateway.connect(), shared.connect_single()] {
            client
                .query_all(&padded("DO GET_LOCK('a', 0)", bytes))
                .unwrap();
            assert!(shared.is_held());
            assert_eq!(client.value(released).unwrap().as_deref(), Some("1"));
            assert_eq!(shared.is_held(), !is_read, "{bytes}");
            // What pins it is gone with a reset.
            client.send_command(COM_RESET_CONNECTION, b"").unwrap();
            assert_eq!(client.next_packet().unwrap()[0], 0);
            assert!(!shared.is_held());
        }
    }
}

#[test]
fn a_very_long_text_pins_unless_it_is_one_write() {
    let shared = Shared::start();
    let mut single = shared.connect_single();
    let bytes = READ_BYTES_MAX + 1;
    // Writes of clients that load much hold no connection, and leave nothing on it.
    for text in [
        "INSERT INTO shop.t VALUES (1, '')",
        "/* one */ REPLACE INTO shop.t VALUES (GET_LOCK('a', 0), '')",
        "\n update shop.t SET a = GET_LOCK('a', 0)",
        "DELETE FROM shop.t WHERE GET_LOCK('a', 0) = 1",
    ] {
        let outcomes = single.query_all(&padded(text, bytes)).unwrap();
        assert!(matches!(&outcomes[..], [Outcome::Done(_)]), "{outcomes:?}");
        assert!(!shared.is_held(), "{text}");
    }
    let failed = padded(
        "INSERT INTO shop.t VALUES (GET_LOCK('a', 0), ''), (1)",
        bytes,
    );
    error_of(single.query_all(&failed).unwrap().remove(0));
    assert!(!shared.is_held());
    for text in [
        "SELECT 1",
        "CREATE TEMPORARY TABLE shop.mine AS SELECT 1",
        "/*!50000 INSERT INTO shop.t VALUES (1, '') */",
        "SET STATEMENT max_statement_time = 9 FOR DELETE FROM shop.t",
    ] {
        let mut single = shared.connect_single();
        single.query_all(&padded(text, bytes)).unwrap();
        assert!(shared.is_held(), "{text}");
    }
    for behind in [
        "",
        "; LOCK TABLES shop.t WRITE",
        "; LOCK TABLES shop.t WRITE; SELEC",
    ] {
        let mut several = shared.gateway.connect();
        let text = padded(&format!("DELETE FROM shop.t{behind}"), bytes);
        several.query_all(&text).unwrap();
        assert!(shared.is_held(), "{behind}");
    }
}

#[test]
fn the_option_of_several_statements_is_followed() {
    let shared = Shared::start();
    let text = padded("DELETE FROM shop.t", READ_BYTES_MAX + 1);
    for (mut client, option, is_held) in [
        (shared.gateway.connect(), 1, false),
        (shared.connect_single(), 0, true),
    ] {
        client.send_command(COM_SET_OPTION, &[option, 0]).unwrap();
        assert_eq!(client.next_packet().unwrap()[0], 0xfe);
        client.query_all(&text).unwrap();
        assert_eq!(shared.is_held(), is_held);
    }
}

#[test]
fn texts_of_clients_that_compress_are_read_too() {
    let shared = Shared::start();
    // Letters of little pattern, so that the compressed text comes in pieces.
    let letter = |number: u32| b'a' + (number.wrapping_mul(2_654_435_761) >> 24) as u8 % 26;
    let letters: String = (0..400_000).map(|it| char::from(letter(it))).collect();
    let text = format!("INSERT INTO shop.t VALUES (CONNECTION_ID(), '{letters}');\n");
    let mut mariadb = Command::new("mariadb")
        .args([
            "--no-defaults",
            "-h127.0.0.1",
            "-uapp",
            "-psecret",
            "--compress",
        ])
        .arg(format!("-P{}", shared.gateway.server.port()))
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = mariadb.stdin.take().unwrap();
    input.write_all(text.as_bytes()).unwrap();
    drop(input);
    assert!(mariadb.wait().unwrap().success());
    let mut client = shared.gateway.connect();
    // The clients' numbers are high ones.
    let told = client.value("SELECT CONCAT(a >= 1 << 30, LENGTH(b)) FROM shop.t");
    assert_eq!(told.unwrap().unwrap(), "1400000");
}
