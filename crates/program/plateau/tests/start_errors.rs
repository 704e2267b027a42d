//! A server that cannot start says why in a line, ends with 1, and leaves its data directory whole.

use std::process::{Command, Output};

use testkit::Folder;

/// Runs the server with these settings until it ends by itself.
fn start(settings: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plateau"));
    for setting in settings {
        command.args(["--set", setting]);
    }
    command.output().expect("the program can be run")
}

fn check(settings: &[&str], expected: &str) {
    let output = start(settings);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{settings:?}: {told}");
    assert!(told.starts_with("plateau: "), "{settings:?}: {told}");
    assert!(told.contains(expected), "{settings:?}: {told}");
    assert_eq!(told.trim_end().lines().count(), 1, "{settings:?}: {told}");
}

#[test]
fn what_hinders_the_start_is_told_in_a_line() {
    let folder = Folder::new("start-errors").unwrap();
    let data = format!("data={}", folder.path().join("data").display());
    let tcp = "listen=127.0.0.1:0";
    check(&[tcp, "data=/proc/nothing/here"], "create directory");
    check(
        &["listen=", "socket=", &data],
        "both `listen` and `socket` are empty",
    );
    assert!(!folder.path().join("data").exists(), "nothing was made yet");
    check(
        &[
            tcp,
            &data,
            "tls_certificate=/nothing.pem",
            "tls_key=/nothing.key",
        ],
        "/nothing.pem",
    );
    check(
        &[tcp, &data, "socket=/nothing/here.sock"],
        "/nothing/here.sock",
    );
    // The data directory, made by the failed starts, is whole.
    let mut checked = Command::new(env!("CARGO_BIN_EXE_plateau"));
    let checked = checked
        .arg("check")
        .arg(folder.path().join("data"))
        .output();
    assert!(checked.unwrap().status.success());
}
