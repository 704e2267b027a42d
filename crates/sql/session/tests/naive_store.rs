//! Statements do not depend on the storage engine: sessions over a naive store, each call of which
//! takes a millisecond, give the answers that `plateau/tests/statements` says.
//!
//! The naive store has no isolation, no locks, no statistics and no files. Files that ask for these
//! are named in [`OF_THE_ENGINE`], each with its reason.

#![forbid(unsafe_code)]

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use env::Clock;
use env::linux::SystemClock;
use runtime::{Address, Io, Listener, Runtime, Stream};
use session::{Server, Worker};
use settings::Settings;
use store::{StoreError, Suspend, WaitReason};
use testkit::client::{Client, Login};
use testkit::naive_store::{NaiveStore, RoundTrip};
use testkit::statement_file::{answer, difference};

/// What a call of the store takes.
const ROUND_TRIP: Duration = Duration::from_millis(1);

/// Files that need more than rows and tables, and what they need.
const OF_THE_ENGINE: &[(&str, &str)] = &[
    ("account_locks", "waits for row locks"),
    ("enum_key_plans", "SKIP LOCKED"),
    ("explain_plans", "kept statistics"),
    ("extreme_rows", "isolation"),
    ("functions", "a lock wait that ends by its time limit"),
    ("kept_tables", "kept statistics"),
    ("queues", "SKIP LOCKED"),
    ("set_reads", "row locks and deadlocks"),
];

/// A server in this process with one worker.
struct TestServer {
    /// Ends with it.
    _runtime: Runtime,
    address: SocketAddr,
}

fn start() -> TestServer {
    let options = runtime::Options {
        worker_count: 1,
        io: Io::Epoll,
        pin: false,
        helper_count: 1,
    };
    let runtime = Runtime::start(options, || {}).expect("a runtime");
    let mut settings = Settings::default();
    session::variables::start_settings::settle(&mut settings);
    let started_us = SystemClock.now().nanos() / 1000;
    let server = Server::new(settings, 1, started_us);
    let made = runtime.block_on_worker(0, move || make_worker(server));
    made.expect("the first accounts");
    let listener = Listener::bind(&Address::Tcp(([127, 0, 0, 1], 0).into())).expect("a free port");
    let Address::Tcp(address) = *listener.address() else {
        unreachable!("it listens for TCP");
    };
    runtime.serve(listener, serve).expect("a listener");
    TestServer {
        _runtime: runtime,
        address,
    }
}

/// Gives the worker its store, with the first accounts.
async fn make_worker(server: Arc<Server>) -> Result<(), StoreError> {
    let store = NaiveStore::new();
    let wait = || Suspend::new(WaitReason::Remote, runtime::sleep(ROUND_TRIP));
    store.be_remote(RoundTrip(Box::new(wait)));
    session::system::accounts::bootstrap(&store).await?;
    server.set_accounts(session::system::accounts::load(&store).await?);
    session::system::routines::bootstrap(&store).await?;
    server.set_routines(session::system::routines::load(&store).await?);
    session::system::time_zone_tables::bootstrap(&store).await?;
    let version = server.settings().text("version").to_owned();
    let counters = Arc::clone(&server.counters(0).front);
    let traffic = Arc::clone(&counters.traffic);
    let resources = front::Resources::new(front::PacketMemory::new(256 << 20), traffic);
    let options = front::Options::new(version, front::system_random());
    let front = front::Shared::new(options, resources, counters);
    let stores = (Rc::new(store.clone()) as _, Rc::new(store) as _);
    let worker = Worker::new(server, stores, front, Rc::new(SystemClock), 0);
    runtime::set_local(worker);
    Ok(())
}

async fn serve(stream: Stream) {
    let worker: Rc<Worker> = runtime::local().expect("the worker was given its part");
    session::serve(worker, stream).await;
}

#[test]
fn files_get_their_answers_from_a_store_that_is_far_away() {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../program/plateau/tests/statements");
    let entries = std::fs::read_dir(folder).expect("the statements");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    let only = std::env::var("ONLY").unwrap_or_default();
    let server = start();
    let connect = || Client::connect(&Login::root(server.address.port()));
    let mut failures = Vec::new();
    for file in files {
        let name = file
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let is_of_engine = OF_THE_ENGINE.iter().any(|(known, _)| *known == name);
        if is_of_engine || !name.contains(&only) {
            continue;
        }
        let expected = std::fs::read_to_string(&file).expect("a text");
        let answered = answer(&connect, &expected).expect("the server answers");
        if answered != expected {
            failures.push(format!("{name}:\n{}", difference(&expected, &answered)));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
