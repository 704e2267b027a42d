//! The client's half of `wire` and `auth` against a real MariaDB, where one is installed: what the
//! toy server and the toy client agree on must be what the world speaks.

#![forbid(unsafe_code)]

mod support;

use std::net::SocketAddr;

use errcode::ER_ACCESS_DENIED_ERROR;
use support::{LoginAs, TestClient, error_of};
use testkit::{Launch, Server, ServerKind};
use wire::{
    BinaryRowReader, BinaryValue, BulkExecute, BulkValue, Capabilities, ColumnDefinition,
    ColumnFlags, ColumnType, CommandByte, CursorKind, DateTime, Execute, OkPacket, PacketWriter,
    ParameterType, PrepareOk, ResultHead, StatusFlags, TextRowReader, Time,
};

/// A MariaDB with an account for each method. (What it does with a packet over its limit is not
/// asked: it resets the connection or tells the error, as the bytes happen to arrive.)
fn reference() -> (Server, SocketAddr) {
    let server = Launch::new(ServerKind::MariaDb)
        .with("--plugin-load-add=auth_ed25519")
        .with("--max-allowed-packet=33554432")
        .start()
        .expect("a MariaDB; cargo xtask setup installs it");
    let mut root = server.connect().expect("a login");
    for statement in [
        "CREATE USER native@'%' IDENTIFIED BY 'secret'",
        "CREATE USER ed25519@'%' IDENTIFIED VIA ed25519 USING PASSWORD('secret')",
        "CREATE USER empty@'%'",
        "GRANT ALL ON *.* TO native@'%'",
        "CREATE DATABASE IF NOT EXISTS test",
    ] {
        root.run(statement).expect(statement);
    }
    let address = ([127, 0, 0, 1], server.port()).into();
    (server, address)
}

#[test]
fn reference_is_understood() {
    let (_server, address) = reference();
    logins_compression_and_large_rows(address);
    changes_of_the_session_are_told(address);
    binary_rows_say_what_text_rows_say(address);
    parameters_are_understood(address);
    bulks_are_understood(address);
}

fn logins_compression_and_large_rows(address: SocketAddr) {
    for capabilities in [Capabilities::default(), Capabilities::COMPRESS] {
        for user in ["native", "ed25519", "empty"] {
            let login = LoginAs {
                capabilities,
                ..LoginAs::user(user)
            };
            let mut client = TestClient::log_in(address, &login).expect("well-formed");
            assert!(client.ping(), "{user} {capabilities:?}");
            assert_eq!(
                client
                    .query("SELECT REPEAT('ab', 5000)")
                    .expect("well-formed"),
                [b"ab".repeat(5000)]
            );
        }
        let login = LoginAs {
            capabilities,
            ..LoginAs::user("native")
        };
        let mut client = TestClient::log_in(address, &login).expect("well-formed");
        let rows = client
            .query("SELECT REPEAT('x', 17 << 20)")
            .expect("well-formed");
        assert_eq!(rows[0].len(), 17 << 20);
        let statement = format!("SELECT LENGTH('{}')", "y".repeat(17 << 20));
        assert_eq!(
            client.query(&statement).expect("well-formed"),
            [b"17825792"]
        );
        client
            .change_user("ed25519", "secret")
            .expect("well-formed");
        client.change_user("native", "secret").expect("well-formed");
    }
    for user in ["native", "ed25519", "nobody"] {
        let login = LoginAs {
            password: "wrong",
            ..LoginAs::user(user)
        };
        let error = TestClient::log_in(address, &login)
            .err()
            .expect("a refusal");
        assert_eq!(error.code, ER_ACCESS_DENIED_ERROR, "{user}");
        assert!(error.message.ends_with("(using password: YES)"), "{error}");
    }
}

fn changes_of_the_session_are_told(address: SocketAddr) {
    let mut client = log_in(address);
    client.command(CommandByte::INIT_DB, b"test");
    let packet = client.read().expect("well-formed");
    let ok = OkPacket::decode(&packet, client.capabilities).expect("well-formed");
    assert!(ok.status.contains(StatusFlags::SESSION_STATE_CHANGED));
    let told: Vec<_> = wire::SessionChanges::decode(ok.session_changes).collect();
    assert_eq!(told, [wire::SessionChange::Schema(b"test")]);
}

const TYPES: &str = "SELECT CAST(-5 AS SIGNED), CAST(5 AS UNSIGNED), 1.50, 2.5e0, 'text', NULL, \
    CAST('2024-02-29' AS DATE), CAST('2024-02-29 12:34:56.789' AS DATETIME(3)), \
    CAST('-34:22:59' AS TIME), CAST('00:00:00.5' AS TIME(1)), \
    CAST('2024-02-29 00:00:00' AS DATETIME)";

fn binary_rows_say_what_text_rows_say(address: SocketAddr) {
    let mut client = log_in(address);
    let (statement_id, columns) = prepare(&mut client, TYPES);
    assert_eq!(columns, 11);
    let mut out = PacketWriter::new();
    Execute::encode(&mut out, statement_id, CursorKind::None, &[]);
    client.send_command(out.as_bytes());
    let (types, rows) = read_result(&mut client);
    let mut row = BinaryRowReader::new(&rows[0], &types).expect("well-formed");
    let mut values = Vec::new();
    while let Some(value) = row.next_value().expect("well-formed") {
        values.push(value);
    }
    let date = DateTime {
        year: 2024,
        month: 2,
        day: 29,
        ..DateTime::default()
    };
    let noon = DateTime {
        hour: 12,
        minute: 34,
        second: 56,
        microsecond: 789_000,
        ..date
    };
    let hours = Time {
        is_negative: true,
        days: 1,
        hours: 10,
        minutes: 22,
        seconds: 59,
        microseconds: 0,
    };
    let half = Time {
        microseconds: 500_000,
        ..Time::default()
    };
    assert_eq!(
        values,
        [
            BinaryValue::Int(-5),
            BinaryValue::Unsigned(5),
            BinaryValue::Bytes(b"1.50"),
            BinaryValue::Double(2.5),
            BinaryValue::Bytes(b"text"),
            BinaryValue::Null,
            BinaryValue::DateTime(date),
            BinaryValue::DateTime(noon),
            BinaryValue::Time(hours),
            BinaryValue::Time(half),
            BinaryValue::DateTime(date),
        ]
    );
    client.command(CommandByte::QUERY, TYPES.as_bytes());
    let (_, rows) = read_result(&mut client);
    let mut row = TextRowReader::new(&rows[0]);
    let mut texts = Vec::new();
    while !row.is_done() {
        texts.push(row.next_value().expect("well-formed"));
    }
    assert_eq!(texts[2], Some(&b"1.50"[..]));
    assert_eq!(texts[5], None);
}

fn parameters_are_understood(address: SocketAddr) {
    let mut client = log_in(address);
    let (statement_id, _) = prepare(&mut client, "SELECT CONCAT_WS('|', ?, ?, ?, ?, ?)");
    let mut out = PacketWriter::new();
    let date = DateTime {
        year: 2024,
        month: 2,
        day: 29,
        hour: 1,
        ..DateTime::default()
    };
    let time = Time {
        is_negative: true,
        days: 1,
        hours: 1,
        ..Time::default()
    };
    let parameters = [
        (ParameterType::new(ColumnType::Tiny), BinaryValue::Int(-1)),
        (
            ParameterType::new(ColumnType::VarString),
            BinaryValue::Bytes(b"a"),
        ),
        (
            ParameterType::new(ColumnType::DateTime),
            BinaryValue::DateTime(date),
        ),
        (
            ParameterType::new(ColumnType::Time),
            BinaryValue::Time(time),
        ),
        (ParameterType::new(ColumnType::Long), BinaryValue::Null),
    ];
    Execute::encode(&mut out, statement_id, CursorKind::None, &parameters);
    client.send_command(out.as_bytes());
    let (types, rows) = read_result(&mut client);
    let mut row = BinaryRowReader::new(&rows[0], &types).expect("well-formed");
    let text = BinaryValue::Bytes(b"-1|a|2024-02-29 01:00:00|-25:00:00");
    assert_eq!(row.next_value(), Ok(Some(text)));
}

fn bulks_are_understood(address: SocketAddr) {
    let login = LoginAs {
        capabilities: Capabilities::MARIADB_BULK_OPERATIONS,
        ..LoginAs::user("native")
    };
    let mut client = TestClient::log_in(address, &login).expect("a login");
    for statement in [
        "USE test",
        "CREATE TABLE bulk (a INT, b VARCHAR(9) DEFAULT 'd')",
    ] {
        client.command(CommandByte::QUERY, statement.as_bytes());
        assert_eq!(client.read().expect("well-formed").first(), Some(&0));
    }
    let (statement_id, _) = prepare(&mut client, "INSERT INTO bulk VALUES (?, ?)");
    let types = [
        ParameterType::new(ColumnType::Long),
        ParameterType::new(ColumnType::VarString),
    ];
    let value = |number| BulkValue::Value(BinaryValue::Int(number));
    let rows = [
        vec![value(1), BulkValue::Value(BinaryValue::Bytes(b"x"))],
        vec![value(2), BulkValue::Default],
        vec![
            BulkValue::Value(BinaryValue::Null),
            BulkValue::Value(BinaryValue::Null),
        ],
    ];
    let mut out = PacketWriter::new();
    BulkExecute::encode(&mut out, statement_id, &types, &rows);
    client.send_command(out.as_bytes());
    let packet = client.read().expect("well-formed");
    let ok = OkPacket::decode(&packet, client.capabilities);
    assert_eq!(
        ok.map(|ok| ok.affected_rows),
        Ok(3),
        "{}",
        packet.escape_ascii()
    );
    let rows = client
        .query("SELECT CONCAT_WS('|', a, b) FROM bulk ORDER BY a")
        .expect("well-formed");
    assert_eq!(rows, [&b""[..], b"1|x", b"2|d"]);
}

fn log_in(address: SocketAddr) -> TestClient {
    TestClient::log_in(address, &LoginAs::user("native")).expect("a login")
}

/// Prepares a statement; answers its id and how many columns it has.
fn prepare(client: &mut TestClient, statement: &str) -> (u32, u16) {
    client.command(CommandByte::STMT_PREPARE, statement.as_bytes());
    let packet = client.read().expect("an answer");
    let prepared = PrepareOk::decode(&packet).expect("a prepared statement");
    for _ in 0..prepared.parameter_count + prepared.column_count {
        let packet = client.read().expect("a definition");
        ColumnDefinition::decode(&packet, client.capabilities).expect("a definition");
    }
    (prepared.statement_id, prepared.column_count)
}

/// Reads a result set; answers the types of its columns and its rows.
fn read_result(client: &mut TestClient) -> (Vec<ParameterType>, Vec<Vec<u8>>) {
    let packet = client.read().expect("an answer");
    assert_ne!(packet.first(), Some(&0xFF), "{}", error_of(&packet));
    let head = ResultHead::decode(&packet, client.capabilities).expect("a head");
    let mut types = Vec::new();
    for _ in 0..head.column_count {
        let packet = client.read().expect("a definition");
        let column = ColumnDefinition::decode(&packet, client.capabilities).expect("a definition");
        types.push(ParameterType {
            column_type: column.column_type,
            is_unsigned: column.flags.contains(ColumnFlags::UNSIGNED),
        });
    }
    let mut rows = Vec::new();
    loop {
        let packet = client.read().expect("a row");
        if packet.first() == Some(&0xFE) {
            return (types, rows);
        }
        rows.push(packet);
    }
}
