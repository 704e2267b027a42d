//! Random programs of clients that share connections: beside the same programs over private
//! connections, and while connections break. `cargo xtask programs` plays more of them, and with
//! `--planted` it shows that mistakes are found.

use testkit::programs::{Program, Stage, Trouble, server_options};
use testkit::topology::small;

use super::*;

/// Seeds whose replies are compared. The last one once showed a defect.
const COMPARED_SEEDS: [u64; 6] = [9, 16, 19, 26, 31, 320];

/// The first of the seeds that are played while connections break.
const TROUBLED_SEED: u64 = 100;

/// Programs that are played until enough connections have broken.
const TROUBLED_PROGRAMS_MAX: u64 = 8;

/// So many connections have to break.
const BROKEN_MIN: usize = 8;

fn server() -> Server {
    let options = server_options();
    let launch = options.iter().fold(small(), |launch, it| launch.with(*it));
    launch.start().expect("MariaDB starts")
}

/// The settings of a gateway whose sessions share two connections to a server.
fn settings(port: u16) -> String {
    format!(
        "[[server]]\nname = \"db0\"\naddress = \"127.0.0.1:{port}\"\nmax_connections = 2\n\
         [[monitor]]\nuser = \"root\"\ninterval = 0.2\ntimeout = 30\n\
         [[service]]\nname = \"shared\"\nrouter = \"read-write-split\"\nwait = 60\n"
    )
}

fn stage(behind: &Server, reference: &Server, port: u16) -> Stage {
    let root = behind.connect().expect("root gets in");
    let other = reference.connect().expect("root gets in");
    Stage::new(root, (other, reference.port()), port).expect("accounts are made")
}

/// Ends the proxy, also if the test fails.
struct End<'t>(&'t Trouble);

impl Drop for End<'_> {
    fn drop(&mut self) {
        // One that takes no connection has ended.
        let _ = self.0.end();
    }
}

#[test]
fn in_trouble_sessions_get_nothing_of_others() {
    let (behind, reference) = (server(), server());
    let trouble = Trouble::new(behind.port(), 1).expect("a port is free");
    std::thread::scope(|scope| {
        let _end = End(&trouble);
        trouble.serve(scope);
        let gateway = Gateway::start(&settings(trouble.port().expect("it has a port")), "auto");
        let mut stage = stage(&behind, &reference, gateway.server.port());
        trouble.begin();
        let mut seeds = TROUBLED_SEED..TROUBLED_SEED + TROUBLED_PROGRAMS_MAX;
        while trouble.broken() < BROKEN_MIN {
            let seed = seeds.next().expect("programs break connections");
            let endured = stage.endure(&Program::draw(seed));
            endured.expect("nothing is another one's");
        }
    });
}

#[test]
fn sessions_get_what_private_connections_give() {
    let (behind, reference) = (server(), server());
    let gateway = Gateway::start(&settings(behind.port()), "auto");
    let mut stage = stage(&behind, &reference, gateway.server.port());
    for seed in COMPARED_SEEDS {
        let compared = stage.compare(&Program::draw(seed));
        if let Some(difference) = compared.expect("clients are answered") {
            panic!("seed {seed}:\n{difference}");
        }
    }
}

#[test]
fn a_server_is_asked_again_whose_connection_breaks() {
    let behind = backend();
    let trouble = Trouble::new(behind.port(), 1).expect("a port is free");
    std::thread::scope(|scope| {
        let _end = End(&trouble);
        trouble.serve(scope);
        let gateway = Gateway::start(&settings(trouble.port().expect("it has a port")), "auto");
        let mut client = gateway.connect();
        for broken in 1..=2 {
            trouble.break_next();
            // Without another try the read waits for another server, and there is none.
            assert_eq!(client.value("SELECT 7").unwrap().as_deref(), Some("7"));
            assert_eq!(trouble.broken(), broken);
        }
        // The idle connection breaks in another session's login.
        trouble.break_next();
        let mut other = gateway.connect();
        assert_eq!(other.value("SELECT 8").unwrap().as_deref(), Some("8"));
        assert_eq!(trouble.broken(), 3);
    });
}
