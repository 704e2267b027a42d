//! Random programs of clients that share connections. `cargo xtask programs` plays more of them.

use testkit::programs::{Plant, Planted, Program, Stage, Trouble, server_options};
use testkit::topology::small;

use super::*;

/// Seeds that are played through the gateway. The first of them have found mistakes.
const SEEDS: std::ops::Range<u64> = 1..9;

/// Seeds within which each planted mistake is found.
const PLANTED_SEEDS: std::ops::Range<u64> = 1..13;

/// Seeds that are played while connections break.
const TROUBLED_SEEDS: std::ops::Range<u64> = 100..106;

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

#[test]
fn sessions_get_what_a_private_connection_gives() {
    let (behind, reference) = (server(), server());
    let gateway = Gateway::start(&settings(behind.port()), "auto");
    let mut stage = stage(&behind, &reference, gateway.server.port());
    for seed in SEEDS {
        let compared = stage
            .compare(&Program::draw(seed))
            .expect("all are answered");
        if let Some(difference) = compared {
            let reduced = stage.reduce(difference).expect("all are answered");
            panic!("cargo xtask programs --seeds 1 --seed {seed}\n{reduced}");
        }
    }
}

#[test]
fn planted_mistakes_are_found() {
    let (behind, reference) = (server(), server());
    let mut stage = stage(&behind, &reference, 0);
    let all = Plant::ALL.iter().copied();
    for (name, plant) in all.chain([("nothing", Plant::Nothing)]) {
        let planted = Planted::new(behind.port(), plant).expect("a port is free");
        std::thread::scope(|scope| {
            planted.serve(scope);
            stage.go_to(planted.port().expect("it has a port"));
            let mut found = PLANTED_SEEDS.map(|seed| stage.compare(&Program::draw(seed)));
            let is_found = found.any(|it| it.is_ok_and(|it| it.is_some()));
            planted.end().expect("it takes connections");
            assert_eq!(is_found, plant != Plant::Nothing, "{name}");
        });
    }
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
        let mut seeds = TROUBLED_SEEDS;
        let endured = seeds.try_for_each(|seed| stage.endure(&Program::draw(seed)));
        endured.expect("nothing is another one's");
        assert!(0 < trouble.broken());
    });
}
