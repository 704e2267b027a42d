//! [`TestServer`]: a server in this process with one worker, over stores of the test's choice.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use env::Clock;
use env::linux::SystemClock;
use runtime::{Address, Io, Listener, Runtime, Stream};
use session::{Server, Worker};
use settings::Settings;
use store::{SchemaStore, Store, StoreError, Suspend, WaitReason};
use testkit::client::{Client, Login};
use testkit::naive_store::{NaiveStore, RoundTrip};

/// A running server.
pub(crate) struct TestServer {
    /// Ends with it.
    runtime: Runtime,
    address: SocketAddr,
}

impl TestServer {
    /// A server over the store that `make` makes on its worker.
    pub(crate) fn start<F, S>(make: impl FnOnce() -> F + Send + 'static) -> Self
    where
        F: Future<Output = Rc<S>> + 'static,
        S: Store + SchemaStore + 'static,
    {
        let options = runtime::Options {
            worker_count: 1,
            io: Io::Epoll,
            pin: false,
            helper_count: 1,
            ..runtime::Options::default()
        };
        let runtime = Runtime::start(options, || {}).expect("a runtime");
        let mut settings = Settings::default();
        session::variables::start_settings::settle(&mut settings);
        let started_us = SystemClock.now().nanos() / 1000;
        let server = Server::new(settings, 1, started_us);
        let made = runtime.block_on_worker(0, move || async move {
            let store = make().await;
            make_worker(server, store).await
        });
        made.expect("the first accounts");
        let listener =
            Listener::bind(&Address::Tcp(([127, 0, 0, 1], 0).into())).expect("a free port");
        let Address::Tcp(address) = *listener.address() else {
            unreachable!("it listens for TCP");
        };
        runtime.serve(listener, serve).expect("a listener");
        Self { runtime, address }
    }

    /// A server over a naive store, each call of which takes this long.
    pub(crate) fn over_naive(round_trip: Duration) -> Self {
        Self::start(move || async move {
            let store = NaiveStore::new();
            be_remote(&store, round_trip);
            let store = Rc::new(store);
            runtime::set_local(Rc::clone(&store));
            store
        })
    }

    /// A new connection.
    pub(crate) fn connect(&self) -> anyhow::Result<Client> {
        Client::connect(&Login::root(self.address.port()))
    }

    /// Asks the worker's naive store, or tells it something.
    pub(crate) fn with_naive<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&NaiveStore) -> T + Send + 'static,
    ) -> T {
        self.runtime.block_on_worker(0, move || async move {
            let store: Rc<NaiveStore> = runtime::local().expect("the stores were made");
            ask(&store)
        })
    }
}

/// From now on each call of the store takes this long.
pub(crate) fn be_remote(store: &NaiveStore, round_trip: Duration) {
    let wait = move || Suspend::new(WaitReason::Remote, runtime::sleep(round_trip));
    store.be_remote(RoundTrip(Box::new(wait)));
}

/// Gives the worker its store, with the first accounts.
async fn make_worker<S: Store + SchemaStore + 'static>(
    server: Arc<Server>,
    store: Rc<S>,
) -> Result<(), StoreError> {
    session::system::accounts::bootstrap(&*store).await?;
    server.set_accounts(session::system::accounts::load(&*store).await?);
    session::system::routines::bootstrap(&*store).await?;
    server.set_routines(session::system::routines::load(&*store).await?);
    session::system::time_zone_tables::bootstrap(&*store).await?;
    let version = server.settings().text("version").to_owned();
    let counters = Arc::clone(&server.counters(0).front);
    let traffic = Arc::clone(&counters.traffic);
    let resources = front::Resources::new(front::PacketMemory::new(256 << 20), traffic);
    let options = front::Options::new(version, front::system_random());
    let front = front::Shared::new(options, resources, counters);
    let stores = (Rc::clone(&store) as _, store as _);
    let worker = Worker::new(server, stores, front, Rc::new(SystemClock), 0);
    runtime::set_local(worker);
    Ok(())
}

async fn serve(stream: Stream) {
    let worker: Rc<Worker> = runtime::local().expect("the worker was given its part");
    session::serve(worker, stream).await;
}
