//! The machine's time zone, `time_zone = SYSTEM`: the same results as MariaDB's.

use testkit::Server;
use testkit::server::{Launch, ServerKind};

/// A server on a machine with this variable TZ.
fn start(kind: ServerKind, variable: &str) -> Server {
    let launch = match kind {
        ServerKind::Plateau => Launch::plateau(env!("CARGO_BIN_EXE_plateau")),
        ServerKind::MariaDb => Launch::new(kind),
    };
    launch
        .with_variable("TZ", variable)
        .start()
        .expect("the server starts")
}

/// Each returns one value. In the hour that occurs twice, MariaDB uses the offset of its clock at
/// the time of asking. Here it is the first hour, as in every named zone.
const QUESTIONS: &[&str] = &[
    "SELECT @@system_time_zone",
    "SELECT @@time_zone",
    "SELECT @@global.time_zone",
    "SELECT FROM_UNIXTIME(1704844800)",
    "SELECT FROM_UNIXTIME(1720000000.25)",
    "SELECT UNIX_TIMESTAMP('2024-07-03 11:46:40')",
    "SELECT UNIX_TIMESTAMP('2024-03-31 02:30:00')",
    "SELECT CONVERT_TZ('2024-07-03 11:46:40', 'SYSTEM', '+00:00')",
    "SELECT CONVERT_TZ('2024-01-03 11:46:40', '+00:00', 'SYSTEM')",
    "SELECT at FROM z.t",
    "SELECT HOUR(TIMEDIFF(NOW(), UTC_TIMESTAMP())) BETWEEN 1 AND 6",
];

fn answers(server: &Server) -> Vec<Option<String>> {
    let mut client = server.connect().expect("the server takes connections");
    for statement in [
        "CREATE DATABASE z",
        "CREATE TABLE z.t (at TIMESTAMP NOT NULL)",
        "SET time_zone = '+00:00'",
        "INSERT INTO z.t VALUES ('2024-07-03 09:46:40')",
        "SET time_zone = SYSTEM",
    ] {
        client.run(statement).expect(statement);
    }
    let ask = |question: &&str| client.value(question).expect(question);
    QUESTIONS.iter().map(ask).collect()
}

#[test]
fn the_machines_zone_is_that_of_sessions() {
    for (zone, winter, summer) in [
        ("Europe/Berlin", "CET", "CEST"),
        ("America/New_York", "EST", "EDT"),
        ("IST-5:30", "IST", "IST"),
    ] {
        let server = start(ServerKind::Plateau, zone);
        let told = answers(&server);
        let name = told[0].clone().unwrap_or_default();
        assert!(name == winter || name == summer, "{zone}: {name}");
        assert_eq!(told, answers(&start(ServerKind::MariaDb, zone)), "{zone}");
        assert!(!server.log().contains("time zone"), "{}", server.log());
    }
}

#[test]
fn an_unknown_zone_is_utc_and_one_line_says_so() {
    let server = start(ServerKind::Plateau, "Nowhere/Land");
    let mut client = server.connect().expect("the server takes connections");
    let name = client.value("SELECT @@system_time_zone").expect("a name");
    assert_eq!(name.as_deref(), Some("UTC"));
    let clock = client.value("SELECT FROM_UNIXTIME(0)").expect("a time");
    assert_eq!(clock.as_deref(), Some("1970-01-01 00:00:00"));
    let log = server.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("zone")).collect();
    assert_eq!(lines.len(), 1, "{log}");
    let line = lines[0];
    assert!(
        line.contains("WARN") && line.contains("TZ=Nowhere/Land"),
        "{line}"
    );
}
