//! The PROXY protocol: from proxies before the gateway, and to the servers behind it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use testkit::process::Process;
use testkit::{free_port, wait_for};

use super::*;

const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x0a\x01\x02\x03\x7f\0\0\x01\x04\x57\x0c\xea";
const V2_LOCAL: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";
const V2_HUGE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\xff\xff\x0a\x01\x02\x03";

const ROUTERS: [&str; 2] = ["read-connection", "read-write-split"];

/// A header of version 1 for a client of this host.
fn header(host: &str) -> Vec<u8> {
    format!("PROXY TCP4 {host} 127.0.0.1 1111 3306\r\n").into_bytes()
}

/// A server that takes headers, with the account `far` for clients of 10.1.2.0/24 alone.
fn backend_of_far() -> Server {
    let launch = Launch::new(ServerKind::MariaDb).with("--proxy-protocol-networks=*");
    let server = launch.start().expect("MariaDB starts");
    let mut root = server.connect().expect("root gets in");
    create_accounts(&mut root);
    for statement in [
        "CREATE USER far@'10.1.2.%' IDENTIFIED BY 'secret'",
        "GRANT PROCESS ON *.* TO far@'10.1.2.%'",
    ] {
        root.run(statement).expect(statement);
    }
    server
}

/// A gateway that takes headers from loopback and sends them in this version, with a limit of
/// connections.
fn gateway_to(backend: &Server, router: &str, version: &str, count: usize) -> Gateway {
    let told = format!("max_connections = {count}\nproxy_protocol = \"{version}\"\n[[monitor]]");
    let servers = sections(&[backend]).replacen("[[monitor]]", &told, 1);
    let service = format!("[[service]]\nname = \"all\"\nrouter = \"{router}\"\nwait = 10\n");
    let service = match router {
        "read-connection" => service.replace("wait = 10\n", ""),
        _ => service,
    };
    let networks = "proxy_protocol_networks = \"localhost\"\n";
    Gateway::start(&(networks.to_owned() + &servers + &service), "auto")
}

impl Gateway {
    fn far(&self, host: &str) -> Client {
        let login = self.login("far", "secret");
        Client::connect_behind(&header(host), &login).expect("far gets in")
    }
}

#[test]
fn servers_see_the_address_of_the_client() {
    let backend = backend_of_far();
    for (router, version) in [
        (ROUTERS[0], "v1"),
        (ROUTERS[0], "v2"),
        (ROUTERS[1], "v1"),
        (ROUTERS[1], "v2"),
    ] {
        let gateway = gateway_to(&backend, router, version, 100);
        let user = "SELECT CONCAT(USER(), ' ', CURRENT_USER())";
        let mut far = gateway.far("10.1.2.3");
        assert_eq!(value(&mut far, user), "far@10.1.2.3 far@10.1.2.%");
        let host = "SELECT host FROM information_schema.processlist WHERE user = 'far'";
        assert_eq!(value(&mut far, host), "10.1.2.3:1111", "{router} {version}");
        // Neither the gateway nor the server lets it in from here.
        let refused = gateway.refusal("far", "secret");
        assert_eq!(refused.number, 1045);
        assert!(refused.message.contains("'far'@'localhost'"), "{refused:?}");

        let mut near = gateway.connect();
        let port = near.stream().local_addr().unwrap().port();
        let host = "SELECT host FROM information_schema.processlist WHERE user = 'app'";
        assert_eq!(value(&mut near, host), format!("localhost:{port}"));
    }
}

#[test]
fn clients_share_connections_with_those_of_their_address_alone() {
    let backend = backend_of_far();
    let mut root = backend.connect().unwrap();
    let opened = |root: &mut Client| root.status("Connections").unwrap();
    for count in [1, 3] {
        let gateway = gateway_to(&backend, "read-write-split", "v2", count);
        let hosts = ["10.1.2.3", "10.1.2.4", "10.1.2.3"];
        let mut clients = hosts.map(|host| (host, gateway.far(host)));
        for _ in 0..4 {
            for (host, client) in &mut clients {
                assert_eq!(value(client, "SELECT USER()"), format!("far@{host}"));
            }
        }
        let open = "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'far'";
        // The server may take a moment to end one that was closed.
        wait_until("the rest is closed", || {
            let open: usize = value(&mut root, open).parse().unwrap();
            open <= count
        });
        // Two of one host need one connection.
        let [(_, first), _, (_, last)] = &mut clients;
        value(first, "SELECT USER()");
        let before = opened(&mut root);
        for _ in 0..10 {
            value(first, "SELECT USER()");
            value(last, "SELECT USER()");
        }
        // The monitor has a connection of its own, and keeps it.
        assert!(opened(&mut root) - before < 10);
    }
}

#[test]
fn statements_are_ended_as_their_client() {
    let backend = backend_of_far();
    let mut root = backend.connect().unwrap();
    for router in ROUTERS {
        let gateway = gateway_to(&backend, router, "v2", 100);
        let sleep = |client: &mut Client, root: &mut Client, mark: &str| {
            let text = format!("SELECT SLEEP(1000), '{mark}'");
            client.send_query(text.as_bytes()).unwrap();
            wait_until("it runs", || runs(root, mark));
        };
        let mut victim = gateway.far("10.1.2.3");
        sleep(&mut victim, &mut root, "killed");
        let mut killer = gateway.far("10.1.2.4");
        let number = victim.connection_id;
        killer.run(&format!("KILL {number}")).unwrap();
        wait_until("it is ended", || !runs(&mut root, "killed"));

        let mut gone = gateway.far("10.1.2.3");
        sleep(&mut gone, &mut root, "left");
        drop(gone);
        wait_until("it is ended", || !runs(&mut root, "left"));
    }
}

#[test]
fn a_server_that_expects_no_header_says_so() {
    let backend = backend();
    let told = "proxy_protocol = \"v1\"\n[[monitor]]";
    let servers = sections(&[&backend]).replacen("[[monitor]]", told, 1);
    let gateway = Gateway::unready(&servers, "auto");
    // The server's word may be lost, because it closes the connection without reading the login.
    let told = ["the server may not take from here", "is not accepted"];
    wait_until("the log has the reason", || {
        let log = gateway.log();
        told.iter().any(|it| log.contains(it))
    });
}

/// HAProxy before a gateway, for clients of 10.1.2.3 as it says.
struct HaProxy {
    _process: Process,
    _folder: Folder,
    port: u16,
}

impl HaProxy {
    fn start(gateway: &Gateway, send: &str) -> HaProxy {
        let folder = Folder::new("haproxy").expect("a folder");
        let port = free_port().expect("a port");
        let server_port = gateway.server.port();
        let text = format!(
            "defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 1h\n  \
             timeout server 1h\nlisten all\n  bind 127.0.0.1:{port}\n  \
             tcp-request connection set-src ipv4(10.1.2.3)\n  \
             server one 127.0.0.1:{server_port} {send}\n"
        );
        let file = folder.path().join("settings");
        fs::write(&file, text).expect("the folder is there");
        let mut command = Command::new("haproxy");
        command.arg("-f").arg(&file);
        let log = folder.path().join("log");
        let process = Process::start(&mut command, &log, "\n").expect("haproxy starts");
        let connects = || TcpStream::connect(("127.0.0.1", port)).is_ok();
        wait_for("haproxy listens", connects, |it| *it);
        HaProxy {
            _process: process,
            _folder: folder,
            port,
        }
    }

    fn connect(&self, gateway: &Gateway) -> anyhow::Result<Client> {
        Client::connect(&Login {
            port: self.port,
            ..gateway.login("far", "secret")
        })
    }
}

#[test]
fn haproxy_names_the_client() {
    let backend = backend_of_far();
    for router in ROUTERS {
        let gateway = gateway_to(&backend, router, "v2", 100);
        for send in [
            "send-proxy",
            "send-proxy-v2",
            "send-proxy-v2 proxy-v2-options unique-id,crc32c",
        ] {
            let proxy = HaProxy::start(&gateway, send);
            let mut client = proxy.connect(&gateway).expect(send);
            assert_eq!(value(&mut client, "SELECT USER()"), "far@10.1.2.3");
        }
        // Without a header the client is HAProxy.
        let proxy = HaProxy::start(&gateway, "");
        let refused = proxy.connect(&gateway).unwrap_err();
        let refused: ServerError = refused.downcast().unwrap();
        assert!(refused.message.contains("'far'@'localhost'"), "{refused:?}");
    }
}

/// What a connection gets behind the greeting that begins so, until it is closed.
fn answer(gateway: &Gateway, begin: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(("127.0.0.1", gateway.server.port()))?;
    let mut header = [0; 4];
    stream.read_exact(&mut header)?;
    let mut greeting = vec![0; usize::from(header[0])];
    stream.read_exact(&mut greeting)?;
    stream.write_all(begin)?;
    let mut answer = Vec::new();
    // A connection that is closed with bytes unread is reset.
    let _ = stream.read_to_end(&mut answer);
    Ok(answer)
}

#[test]
fn headers_that_are_not_taken_end_the_connection() {
    let backend = backend_of_far();
    let sections = sections(&[&backend]);
    let begins = [header("10.1.2.3"), V2.to_vec(), V2_LOCAL.to_vec()];
    on_each_driver(|driver| {
        for networks in ["", "10.0.0.0/8, ::1"] {
            let networks = format!("proxy_protocol_networks = \"{networks}\"\n");
            let gateway = Gateway::start(&(networks + &sections), driver);
            for begin in &begins {
                assert_eq!(answer(&gateway, begin).unwrap(), b"");
            }
            wait_until("the log says why", || {
                let told = "it began with a PROXY header, and is not in `proxy_protocol_networks`";
                gateway.log().contains(told)
            });
            gateway.connect().run("DO 1").unwrap();
        }

        let networks = "proxy_protocol_networks = \"localhost\"\nconnect_timeout = 2\n";
        let gateway = Gateway::start(&(networks.to_owned() + &sections), driver);
        for begin in [
            b"PROXY nonsense\r\n".as_slice(),
            b"PROXY TCP4 10.1.2.3 10.1.2.4 1 99999\r\n",
            V2_HUGE,
            &[b"PROXY UNKNOWN ".as_slice(), &[b'x'; 200]].concat(),
            // Half of one waits for the time limit of logins.
            b"PROXY TCP4 10.1",
        ] {
            assert_eq!(answer(&gateway, begin).unwrap(), b"", "{begin:?}");
        }
        let told = "its PROXY header could not be read";
        wait_until("the log says why", || gateway.log().contains(told));
        // A header is optional, and one of the proxy itself names nobody.
        for begin in [b"".as_slice(), V2_LOCAL, b"PROXY UNKNOWN\r\n", V2] {
            let login = gateway.login("app", "secret");
            let mut client = Client::connect_behind(begin, &login).unwrap();
            // To its server it is the gateway, which sends no header here.
            assert_eq!(value(&mut client, "SELECT USER()"), "app@localhost");
        }
    });
}
