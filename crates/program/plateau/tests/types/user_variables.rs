//! The column types of user variables in results: MariaDB's column definitions.

use testkit::{Client, Launch, Outcome, Server};

const BIGINT: &str = "type 8 length 20 decimals 0 flags 128 collation 63";
const TEXT: &str = "type 251 length 67108860 decimals 39 flags 0 collation 45";
const BYTES: &str = "type 251 length 16777215 decimals 39 flags 128 collation 63";

/// A value, and the column definition of a variable with that value.
const CASES: &[(&str, &str)] = &[
    ("1", BIGINT),
    ("TRUE", BIGINT),
    ("-5", BIGINT),
    (
        "18446744073709551615",
        "type 8 length 20 decimals 0 flags 160 collation 63",
    ),
    (
        "1.50",
        "type 246 length 83 decimals 38 flags 128 collation 63",
    ),
    (
        "1.5e0",
        "type 5 length 23 decimals 31 flags 128 collation 63",
    ),
    ("'text'", TEXT),
    ("DATE'2024-02-29'", TEXT),
    ("NOW()", TEXT),
    ("NULL", TEXT),
    ("x'41'", BYTES),
    ("0x41", BYTES),
    ("NULL", BYTES),
    ("CAST(NULL AS SIGNED)", BIGINT),
    ("NULL", BIGINT),
];

fn start() -> Server {
    Launch::asked_for(env!("CARGO_BIN_EXE_plateau"))
        .start()
        .expect("a server")
}

/// The definition of the first column of a statement's rows.
fn definition(client: &mut Client, statement: &str) -> String {
    let Ok(Outcome::Rows(result)) = client.query(statement) else {
        panic!("no rows: {statement}");
    };
    let column = &result.columns[0];
    format!(
        "type {} length {} decimals {} flags {} collation {}",
        column.kind, column.length, column.decimals, column.flags, column.collation
    )
}

#[test]
fn clients_are_told_the_types_of_user_variables() {
    let server = start();
    let mut client = server.connect().expect("a connection");
    let mut wrong = Vec::new();
    client.run("SET NAMES utf8mb4").expect("it is known");
    for (value, expected) in CASES {
        client.run(&format!("SET @a = {value}")).expect("it is set");
        let got = definition(&mut client, "SELECT @a");
        if got != *expected {
            wrong.push(format!("{value}: {got}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_assignment_has_the_type_of_its_variable() {
    let server = start();
    let mut client = server.connect().expect("a connection");
    client.run("CREATE DATABASE d").expect("there is none yet");
    client.run("CREATE TABLE d.t (a INT)").expect("a table");
    client
        .run("SET @i = 5, @d = 1.5, @f = 1e0")
        .expect("they are set");
    for (value, expected) in [
        ("@i := @i", BIGINT),
        (
            "@i := a",
            "type 8 length 11 decimals 0 flags 128 collation 63",
        ),
        (
            "@d := @d",
            "type 246 length 83 decimals 38 flags 128 collation 63",
        ),
        (
            "@f := @f",
            "type 5 length 23 decimals 31 flags 128 collation 63",
        ),
    ] {
        let got = definition(&mut client, &format!("SELECT {value} FROM d.t"));
        assert_eq!(got, expected, "{value}");
    }
}

#[test]
fn one_text_serves_variables_of_different_types() {
    let server = start();
    let mut one = server.connect().expect("a connection");
    let mut two = server.connect().expect("a connection");
    one.run("SET @a = 1").expect("it is set");
    two.run("SET @a = 'one'").expect("it is set");
    for _ in 0..3 {
        for (client, kind, value) in [(&mut one, "type 8 ", "1"), (&mut two, "type 25", "one")] {
            assert!(definition(client, "SELECT @a").starts_with(kind));
            let found = client.value("SELECT @a").expect("a value");
            assert_eq!(found.as_deref(), Some(value));
        }
    }
}
