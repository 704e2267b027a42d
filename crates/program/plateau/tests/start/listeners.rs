//! The listening addresses: the settings `listen` and `socket`, and the sections `listener`.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use testkit::{Client, Folder, Launch, Login, free_port};

#[test]
fn each_listener_of_the_file_takes_clients() {
    let folder = Folder::new("listeners").expect("a folder");
    let file = folder.path().join("my.toml");
    let port = free_port().expect("a port");
    let text = format!(
        "[[listener]]\naddress = \"127.0.0.1:{port}\"\n\n[[listener]]\nsocket = \"second.sock\"\n"
    );
    fs::write(&file, text).expect("a file");
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau"));
    let launch = launch.with(format!("--config={}", file.display()));
    let server = launch.start().expect("the server starts");
    for port in [server.port(), port] {
        let mut client = Client::connect(&Login::root(port)).expect("it serves");
        let one = client.value("select 1").expect("a row");
        assert_eq!(one.as_deref(), Some("1"));
    }
    let socket = server.data().join("second.sock");
    for path in [server.socket(), socket] {
        let mut stream = UnixStream::connect(path).expect("it listens");
        let mut header = [0; 5];
        stream.read_exact(&mut header).expect("a greeting");
        assert_eq!(header.last(), Some(&10), "the protocol's version");
    }
}

/// The line of the greeting that says how to log in.
#[test]
fn the_greeting_names_an_address_that_can_be_connected_to() {
    for (listen, host) in [
        ("0.0.0.0:0", "127.0.0.1"),
        ("[::]:0", "::1"),
        ("[::1]:0", "::1"),
    ] {
        let folder = Folder::new("greeting").expect("a folder");
        let data = format!("data={}", folder.path().join("data").display());
        let mut command = Command::new(env!("CARGO_BIN_EXE_plateau"));
        command.args(["--set", &data, "--set", &format!("listen={listen}")]);
        let mut server = command
            .stdout(Stdio::piped())
            .spawn()
            .expect("it can be run");
        let lines = BufReader::new(server.stdout.take().expect("it was piped")).lines();
        let lines = lines.map(|line| line.expect("text"));
        let line = lines.into_iter().find(|line| line.starts_with("log in: "));
        server.kill().expect("it runs");
        server.wait().expect("it ends");
        let line = line.expect("a greeting");
        assert!(line.contains(&format!(" -h{host} -P")), "{line}");
    }
}
