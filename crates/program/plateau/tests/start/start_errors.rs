//! A server that cannot start prints the reason on one line, exits with 1, and leaves its data
//! directory whole.

#![allow(
    clippy::unwrap_used,
    reason = "the helpers of these tests fail as the tests do"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use testkit::server::Launch;
use testkit::{Folder, Server};

use crate::remove_copies;

/// Runs the server with these settings until it exits by itself.
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
    let zone = "setting `time_zone` cannot be `Europe/Nowhere`";
    check(&[tcp, &data, "time_zone=Europe/Nowhere"], zone);
    let collation = "setting `collation_server` cannot be `foo`: there is no such collation";
    check(&[tcp, &data, "collation_server=foo"], collation);
    let modes = "sql_mode=strict_trans_tables, oracle";
    let refused = "--set sql_mode=strict_trans_tables, oracle: setting `sql_mode` cannot be \
                   `strict_trans_tables, oracle`: `ORACLE` is not supported";
    check(&[tcp, &data, modes], refused);
    let file = format!("data={}", env!("CARGO_BIN_EXE_plateau"));
    check(&[tcp, &file], "which is no directory");
    check(&[&data, "listen=nowhere"], "expected an address and port");
    check(&[tcp, &data, "log=loud"], "setting `log` cannot be `loud`");
    check(&[tcp, &data, "log=info,front=loud"], "`front=loud`");
    check(&[tcp, &data, "log=warn,=debug"], "`=debug`");
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
    // The data directory that the failed starts created is whole.
    let mut checked = Command::new(env!("CARGO_BIN_EXE_plateau"));
    let checked = checked
        .arg("check")
        .arg(folder.path().join("data"))
        .output();
    assert!(checked.unwrap().status.success());
}

/// Runs `plateau --check-config` on this file. Returns its exit code and output.
fn check_config(folder: &Folder, text: &str) -> (Option<i32>, String) {
    let file = folder.path().join("my.toml");
    fs::write(&file, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_plateau"));
    let command = command.arg("--check-config").arg("--config").arg(&file);
    let output = command.current_dir(folder.path()).output().unwrap();
    let told = [output.stdout, output.stderr].concat();
    let told = String::from_utf8_lossy(&told).into_owned();
    (
        output.status.code(),
        told.replace(file.to_str().unwrap(), "my.toml"),
    )
}

#[test]
fn a_check_of_the_configuration_names_each_mistake() {
    let folder = Folder::new("check-config").unwrap();
    let good = "workers = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n";
    let told = check_config(&folder, good);
    assert_eq!(told, (Some(0), "my.toml: no mistakes\n".to_owned()));
    let bad = "wrokers = 1\nlisten = 127.0.0.1:0\ntime_zone = \"Nowhere\"\n\
               [[listener]]\nadress = \"127.0.0.1:0\"\n[[listener]]\nsocket = \"\"\n";
    let (code, told) = check_config(&folder, bad);
    assert_eq!(code, Some(1));
    let expected = ["1: there", "2: inval", "3: setti", "5: secti", "7: field"];
    let expected = expected.map(|start| format!("plateau: my.toml:{start}"));
    for (line, expected) in told.lines().zip(&expected) {
        assert!(line.starts_with(expected), "{line}");
    }
    assert_eq!(told.lines().count(), expected.len(), "{told}");
    assert!(
        !folder.path().join("plateau-data").exists(),
        "nothing was made"
    );
}

#[test]
fn a_check_of_the_configuration_finds_what_a_start_would_refuse() {
    let folder = Folder::new("check-config-start").unwrap();
    let alone = "tls_certificate = \"cert.pem\"\n";
    let missing = "workers = 1\ntls_certificate = \"/no/c.pem\"\ntls_key = \"/no/k.pem\"\n";
    let twice = "listen = \"127.0.0.1:1\"\n[[listener]]\naddress = \"127.0.0.1:1\"\n";
    let deaf = "socket = \"\"\nlisten = \"\"\n";
    for (text, expected) in [
        (deaf, "my.toml:2: both `listen` and `socket` are empty"),
        (alone, "my.toml:1: `tls_certificate` and `tls_key` belong"),
        (missing, "my.toml:2: cannot read /no/c.pem"),
        (
            twice,
            "my.toml:2: two listeners have the address 127.0.0.1:1",
        ),
    ] {
        let (code, told) = check_config(&folder, text);
        assert_eq!(code, Some(1), "{told}");
        assert!(told.starts_with(&format!("plateau: {expected}")), "{told}");
    }
    // Mistakes of single fields and of whole sections, in the order of the file.
    let gateway = "lisen = \"127.0.0.1:1\"\n[[server]]\nname = \"a\"\naddress = \"127.0.0.1:1\"\n\
                   [[server]]\nname = \"b\"\naddress = \"127.0.0.1:1\"\nrnak = 1\n\
                   [[server]]\nname = \"c\"\naddress = \"127.0.0.1\"\n\
                   [[monitor]]\nuser = \"m\"\nservers = [\"a\", \"d\"]\n\
                   [[rule]]\nname = \"r\"\nserver = \"d\"\n";
    let (code, told) = check_config(&folder, gateway);
    assert_eq!(code, Some(1), "{told}");
    let expected = [
        "1: there",
        "5: the s",
        "8: secti",
        "11: field",
        "14: field",
        "17: field",
    ];
    let places: Vec<_> = told
        .lines()
        .zip(expected)
        .map(|(line, expected)| line.starts_with(&format!("plateau: my.toml:{expected}")))
        .collect();
    assert_eq!(places, [true; 6], "{told}");
    let follows = "[[server]]\nname = \"a\"\naddress = \"127.0.0.1:1\"\n\
                   [[monitor]]\nuser = \"m\"\nserver_id = 0\n\
                   [[cache]]\nname = \"c\"\nfollow = \"log\"\n\
                   [[cache]]\nname = \"d\"\nfollow = \"binary-log\"\nttl = 1\n\
                   assume_cacheable = true\n";
    let (code, told) = check_config(&folder, follows);
    assert_eq!(code, Some(1), "{told}");
    for expected in ["`server_id`", "`follow`", "cannot `follow` a binary log"] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    let any_port = "listen = \"127.0.0.1:0\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n";
    assert_eq!(check_config(&folder, any_port).0, Some(0));
}

/// Runs `plateau check` on something that is not a data directory: one line says so.
fn check_refuses(folder: &Path, expected: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plateau"));
    let output = command.arg("check").arg(folder).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.trim_end().ends_with(expected), "{told}");
    assert_eq!(told.trim_end().lines().count(), 1, "{told}");
}

#[test]
fn a_check_makes_no_directory_its_own() {
    let folder = Folder::new("nothing-to-check").unwrap();
    check_refuses(folder.path(), "is not a data directory of plateau");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    check_refuses(&folder.path().join("missing"), "is not a directory");
    let server = serve();
    check_refuses(&server.data(), "stop its server first");
}

/// A server in a folder of its own, stopped or running.
fn serve() -> Server {
    Launch::plateau(env!("CARGO_BIN_EXE_plateau"))
        .start()
        .expect("a server with nothing in its way starts")
}

#[test]
fn a_foreign_directory_is_left_alone() {
    let folder = Folder::new("foreign").unwrap();
    let data = format!("data={}", folder.path().display());
    fs::write(folder.path().join("letter.txt"), "dear").unwrap();
    let settings = ["listen=127.0.0.1:0", data.as_str()];
    check(&settings, "is not a data directory of plateau");
    check(&settings, "choose an empty or a new directory");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    fs::write(folder.path().join("PLATEAU_FORMAT"), "something else").unwrap();
    check(&settings, "is not a version file");
    let newer = "plateau data directory, format 999\n";
    fs::write(folder.path().join("PLATEAU_FORMAT"), newer).unwrap();
    check(&settings, "data format 999 is newer");
    check(
        &settings,
        "use a build whose `plateau --version` names that format",
    );
}

#[test]
fn a_directory_and_a_port_have_one_server() {
    let mut server = serve();
    let data = format!("data={}", server.data().display());
    check(
        &["listen=127.0.0.1:0", &data],
        "is in use by another process",
    );
    check(&["listen=127.0.0.1:0", &data], "stop the other server");
    let folder = Folder::new("port").unwrap();
    let own = format!("data={}", folder.path().join("data").display());
    let port = format!("listen=127.0.0.1:{}", server.port());
    check(&[&port, &own], "choose another address with --set listen=");
    // Clients of the first server are not affected.
    let one = server.connect().unwrap().value("select 1").unwrap();
    assert_eq!(one.as_deref(), Some("1"));
    server.stop().unwrap();
}

/// Overwrites a part of a file.
fn damage(path: &Path, from: usize, to: usize) {
    let mut bytes = fs::read(path).unwrap();
    let end = to.min(bytes.len());
    bytes[from..end].fill(0xEE);
    fs::write(path, bytes).unwrap();
}

#[test]
fn damage_is_named() {
    let mut server = serve();
    server.stop().unwrap();
    let data = format!("data={}", server.data().display());
    let settings = ["listen=127.0.0.1:0", data.as_str()];
    let system = server.data().join("space_0.pdb");
    remove_copies(&server.data());
    let whole = fs::read(&system).unwrap();
    damage(&system, 3 * (16 << 10) + 100, 3 * (16 << 10) + 200);
    check(&settings, "space_0.pdb page 3");
    check(&settings, "; `plateau check` lists all damage");
    fs::write(&system, whole).unwrap();
    let control = server.data().join("control.pdc");
    damage(&control, 0, 8192);
    check(&settings, "control file");
    check(&settings, "restore the directory from a backup");
}

#[test]
fn a_directory_that_may_not_be_written_is_told() {
    let folder = Folder::new("denied").unwrap();
    let closed = folder.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
    let data = format!("data={}", closed.join("data").display());
    // Root may write everywhere except here.
    let data = if fs::write(closed.join("probe"), "").is_ok() {
        "data=/sys/data".to_owned()
    } else {
        data
    };
    let settings = ["listen=127.0.0.1:0", data.as_str()];
    check(&settings, "create directory");
    check(&settings, "; give the server's user write permission there");
}

#[test]
fn a_socket_path_that_is_too_long_is_told() {
    let folder = Folder::new("long-socket").unwrap();
    let data = format!("data={}", folder.path().join("data").display());
    let socket = format!("socket=/tmp/{}", "s".repeat(200));
    check(&["listen=127.0.0.1:0", &data, &socket], "at most 107 bytes");
}
