//! A monitor on a worker of its own, and questions about its map.

use std::sync::Arc;
use std::time::Duration;

use backend::{ClientSecret, TlsMode};
use link::{PacketMemory, Resources};
use monitor::{
    Condition, Monitor, Notice, Options, Published, Rank, Role, ServerEntry, ServerId, Serves,
};
use runtime::{Address, Io, Runtime};
use testkit::topology::MONITOR;
use testkit::{Server, wait_for, wait_until};

/// Short, so that tests need not wait.
const INTERVAL: Duration = Duration::from_millis(100);

/// Longer than a busy machine takes to answer; a frozen server costs each round as much.
const TIMEOUT: Duration = Duration::from_secs(2);

/// A monitor and its worker.
pub(crate) struct Watch {
    pub(crate) monitor: Monitor,
    runtime: Option<Runtime>,
}

/// Options for these servers, by the account [`MONITOR`].
pub(crate) fn options(servers: &[Server]) -> Options {
    let entry = |(index, server): (usize, &Server)| {
        let entry = ServerEntry {
            name: Arc::from(format!("s{index}")),
            address: Address::Tcp(([127, 0, 0, 1], server.port()).into()),
            rank: Rank(0),
        };
        (entry, TlsMode::Off, None)
    };
    let secret = ClientSecret::password(MONITOR.as_bytes());
    let mut options = Options::new(MONITOR, secret, front::system_random());
    options.servers = servers.iter().enumerate().map(entry).collect();
    options.interval = INTERVAL;
    options.connect_timeout = TIMEOUT;
    options.reply_timeout = TIMEOUT;
    options
}

impl Watch {
    pub(crate) fn start(options: Options) -> Watch {
        let runtime_options = runtime::Options {
            worker_count: 1,
            io: Io::Auto,
            pin: false,
            helper_count: 1,
            preemption: runtime::Preemption::Always,
        };
        let runtime = Runtime::start(runtime_options, || {}).unwrap();
        let monitor = runtime.block_on_worker(0, || async move {
            let resources = Resources::new(PacketMemory::new(64 << 20), Arc::default());
            Monitor::start(options, resources, &[])
        });
        Watch {
            monitor,
            runtime: Some(runtime),
        }
    }

    pub(crate) fn present(&self) -> Arc<Published> {
        self.monitor.present()
    }

    /// Role, and what is served, of each server: `primary:rw replica:r`.
    pub(crate) fn roles(&self) -> String {
        let present = self.present();
        let of = |server: &monitor::ServerState| {
            let served = match (server.condition, server.serves) {
                (Condition::Up, Serves::ReadsAndWrites) => "rw",
                (Condition::Up, Serves::Reads) => "r",
                _ => "-",
            };
            let role = match server.role {
                Role::Unknown => "unknown",
                Role::Primary => "primary",
                Role::Replica => "replica",
                Role::Relay => "relay",
                Role::GaleraWriter => "writer",
                Role::GaleraMember => "member",
            };
            format!("{role}:{served}")
        };
        let all: Vec<String> = present.map.servers().map(of).collect();
        all.join(" ")
    }

    #[track_caller]
    pub(crate) fn wait_for_roles(&self, roles: &str) {
        wait_for(roles, || self.roles(), |it| it == roles);
    }

    #[track_caller]
    pub(crate) fn wait_for_notice(&self, notice: Notice) {
        let awaited = format!("{notice:?}");
        wait_until(&awaited, || {
            self.present().map.notices().any(|it| *it == notice)
        });
    }

    /// Waits until two more rounds have ended: the second one began after this call.
    #[track_caller]
    pub(crate) fn wait_for_whole_round(&self) {
        let rounds = || self.monitor.counters().rounds.value();
        let before = rounds();
        wait_until("a whole round", || before + 2 <= rounds());
    }

    pub(crate) fn condition(&self, server: u16) -> Condition {
        self.present()
            .map
            .server(ServerId(server))
            .unwrap()
            .condition
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.monitor.stop();
        let runtime = self.runtime.take().unwrap();
        runtime.handle().shutdown(Duration::ZERO);
        drop(runtime.wait());
    }
}
