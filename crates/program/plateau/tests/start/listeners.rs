//! The listening addresses: the settings `listen` and `socket`, and the sections `listener`.

use std::fs;
use std::io::Read as _;
use std::os::unix::net::UnixStream;

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
