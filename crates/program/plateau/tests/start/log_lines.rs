//! What the log shows of texts that come from clients, and of limits of memory.

use testkit::{Client, Launch, Login, wait_until};

#[test]
fn a_text_of_a_client_is_no_line_of_its_own() {
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau"));
    let server = launch
        .with_settings(["log=info"])
        .start()
        .expect("it starts");
    let forged = Login {
        user: "a\n2026-01-01T00:00:00.000000Z ERROR forged\u{1b}[31m".to_owned(),
        ..Login::root(server.port())
    };
    assert!(Client::connect(&forged).is_err());
    wait_until("the log has it", || server.log().contains("ERROR forged"));
    let log = server.log();
    let is_forged = |line: &str| line.starts_with("2026-01-01T00:00:00.000000Z");
    assert!(!log.lines().any(is_forged), "{log}");
    assert!(!log.contains('\u{1b}'), "{log}");
    assert!(log.contains("\\u{1b}[31m"), "{log}");
}

#[test]
fn a_limit_beyond_the_memory_is_told() {
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau"));
    let limit = "server_memory_limit=16T";
    let server = launch.with_settings([limit]).start().expect("it starts");
    let told = "allows more memory than there is";
    let log = server.log();
    let of_limit = |line: &&str| line.contains(told) && line.contains("server_memory_limit");
    assert_eq!(log.lines().filter(of_limit).count(), 1, "{log}");
}
