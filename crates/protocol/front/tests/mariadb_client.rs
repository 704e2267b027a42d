//! The `mariadb` command-line client, where it is installed, against the toy server: each method,
//! over TCP, TLS, compression and the unix socket.

#![forbid(unsafe_code)]

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use runtime::Address;
use support::{TestServer, options, password};

const CLIENT: &str = "/usr/bin/mariadb";

/// Runs a statement; `None` where there is no client.
fn run(user: &str, options: &[&str], statement: &str) -> Option<Output> {
    if !Path::new(CLIENT).exists() {
        return None;
    }
    let mut command = Command::new(CLIENT);
    command.args([
        "--no-defaults",
        "--batch",
        "--skip-column-names",
        "--user",
        user,
    ]);
    command.arg(format!("--password={}", password(user)));
    Some(
        command
            .args(options)
            .args(["--execute", statement])
            .output()
            .expect("a client"),
    )
}

fn assert_answers(user: &str, options: &[&str], statement: &str, expected: &str) {
    let Some(output) = run(user, options, statement) else {
        return;
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    let case = format!("{user} {options:?}: {errors}");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim_end(),
        expected,
        "{case}"
    );
}

#[test]
fn tcp_with_every_method_with_and_without_tls_and_compression() {
    let server = TestServer::start(options());
    let port = format!("--port={}", server.address.port());
    for user in ["native", "sha2", "ed25519", "empty", "trusted"] {
        for extra in [
            &[][..],
            &["--ssl"],
            &["--compress"],
            &["--ssl", "--compress"],
        ] {
            let tcp = [
                &["--host=127.0.0.1", "--protocol=tcp", port.as_str()],
                extra,
            ]
            .concat();
            assert_answers(user, &tcp, "LENGTH of it", "12");
        }
    }
    let tls = ["--host=127.0.0.1", "--protocol=tcp", port.as_str(), "--ssl"];
    assert_answers("tls", &tls, "LENGTH", "6");
    let large = "x".repeat(200_000);
    let rows = format!("{large}\n{large}");
    assert_answers("native", &tls, "ROWS 2 200000", &rows);
}

#[test]
fn unix_socket() {
    let folder = Folder::new();
    let path = folder.0.join("s");
    let _server = TestServer::start_at(options(), &[Address::Unix(path.clone())]);
    let socket = format!("--socket={}", path.display());
    for user in ["native", "sha2", "ed25519", "trusted"] {
        assert_answers(user, &["--protocol=socket", socket.as_str()], "LENGTH", "6");
    }
}

#[test]
fn errors_reach_the_person() {
    let server = TestServer::start(options());
    let port = format!("--port={}", server.address.port());
    let tcp = ["--host=127.0.0.1", "--protocol=tcp", port.as_str()];
    for (user, expected) in [
        (
            "nobody",
            "ERROR 1045 (28000): Access denied for user 'nobody'@'localhost'",
        ),
        (
            "locked",
            "ERROR 4151 (HY000): Access denied, this account is locked",
        ),
    ] {
        let Some(output) = run(user, &tcp, "SELECT 1") else {
            return;
        };
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.starts_with(expected), "{errors}");
    }
}

/// A folder of this test alone, gone when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        let path = std::env::temp_dir().join(format!("plateau-front-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left of it the system cleans.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
