//! Servers that die under load: reads go on, and nothing runs more often than it may.

use std::collections::BTreeMap;

use sync::Mutex;
use sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use testkit::topology::Replicated;

use super::*;

mod ends;
mod hostile;
mod waits;

/// What clients are told of servers that are lost: `docs/gateway.md` lists these.
const LISTED: [u16; 2] = [1158, 1429];

/// Clients of the test.
const CLIENTS: usize = 64;

/// What all clients have seen.
#[derive(Default)]
struct Seen {
    /// Reads that were answered.
    reads: AtomicUsize,
    /// Writes that were answered.
    writes: AtomicUsize,
    is_over: AtomicBool,
    /// Errors by their numbers.
    errors: Mutex<BTreeMap<u16, usize>>,
    /// Tokens of writes that were answered.
    written: Mutex<Vec<String>>,
}

impl Seen {
    fn note_error(&self, number: u16) {
        *self.errors.lock().entry(number).or_default() += 1;
    }
}

/// Ends all clients, also if the test fails.
struct EndOnDrop<'s>(&'s AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A client that reads and writes until it is told to end. Each statement has a token of its own.
fn work(login: &Login, name: usize, seen: &Seen) {
    let mut client = None;
    for number in 0.. {
        if seen.is_over.load(Ordering::Relaxed) {
            return;
        }
        let token = format!("tok-{name}-{number}.");
        if client.is_none() {
            client = Client::connect(login).ok();
        }
        let Some(connected) = &mut client else {
            continue;
        };
        let is_write = number % 4 == 0;
        let text = match is_write {
            true => format!("INSERT INTO shop.t VALUES ('{token}')"),
            false => format!("SELECT COUNT(*), '{token}' FROM shop.t"),
        };
        match connected.query(&text) {
            Ok(Outcome::Error(error)) => seen.note_error(error.number),
            Ok(_) if is_write => {
                seen.writes.fetch_add(1, Ordering::Relaxed);
                seen.written.lock().push(token);
            }
            Ok(_) => {
                seen.reads.fetch_add(1, Ordering::Relaxed);
            }
            Err(_) => client = None,
        }
    }
}

/// How often each token stands in the log of all statements of a server.
fn tokens(server: &Server) -> BTreeMap<String, usize> {
    let log = fs::read(server.data().join("general.log")).expect("there is a log");
    let mut counts = BTreeMap::new();
    for line in String::from_utf8_lossy(&log).lines() {
        // What the server replicates is no client's statement.
        let begin = line.find("tok-").filter(|_| line.contains("Query"));
        if let Some(token) = begin.and_then(|at| line[at..].split_inclusive('.').next()) {
            *counts.entry(token.to_owned()).or_default() += 1;
        }
    }
    counts
}

#[test]
fn reads_go_on_and_no_write_runs_twice_while_servers_die() {
    let log = |launch: Launch| {
        launch
            .with("--general-log=1")
            .with("--general-log-file=general.log")
            .with("--max-connections=500")
            .with("--binlog-format=ROW")
    };
    let mut topology = Replicated::start_with(2, log).unwrap();
    let mut root = topology.connect(0).unwrap();
    create_accounts(&mut root);
    root.run("CREATE TABLE shop.t (token VARCHAR(60))").unwrap();
    for replica in 1..=2 {
        topology.wait_for_replica(replica, 0).unwrap();
    }
    let servers: Vec<_> = topology.servers.iter().collect();
    let service = "interval = 0.2\ntimeout = 2\n[[service]]\nname = \"split\"\n\
                   router = \"read-write-split\"\nwait = 1\n";
    let gateway = Gateway::start(&(sections(&servers) + service), "auto");
    let login = gateway.login("app", "secret");
    let seen = Seen::default();
    let more = |count: &AtomicUsize, by: usize, what: &str| {
        let before = count.load(Ordering::Relaxed);
        wait_until(what, || before + by <= count.load(Ordering::Relaxed));
    };
    std::thread::scope(|scope| {
        let end = EndOnDrop(&seen.is_over);
        for name in 0..CLIENTS {
            let (login, seen) = (&login, &seen);
            scope.spawn(move || work(login, name, seen));
        }
        more(&seen.writes, 10 * CLIENTS, "all write");
        topology.servers[1].kill().unwrap();
        more(&seen.writes, 10 * CLIENTS, "writes go on without a replica");
        more(&seen.reads, 10 * CLIENTS, "reads go on without a replica");
        topology.servers[0].kill().unwrap();
        more(&seen.reads, 5 * CLIENTS, "reads go on without a primary");
        drop(end);
    });

    let errors = seen.errors.lock().clone();
    assert!(errors.keys().all(|it| LISTED.contains(it)), "{errors:?}");
    let mut total: BTreeMap<String, usize> = BTreeMap::new();
    for server in &topology.servers {
        for (token, count) in tokens(server) {
            *total.entry(token).or_default() += count;
        }
    }
    let number_of = |token: &str| {
        let number = token.trim_end_matches('.').rsplit('-').next();
        number
            .and_then(|it| it.parse::<u64>().ok())
            .expect("a token")
    };
    for (token, count) in &total {
        let limit = if number_of(token) % 4 == 0 { 1 } else { 2 };
        assert!(*count <= limit, "{token} ran {count} times");
    }
    let written = seen.written.lock();
    assert!(written.iter().all(|token| total.contains_key(token)));
    assert!(20 * CLIENTS < written.len());
}
