//! [`Watch`]: a monitor over servers, which runs for as long as a generation has it, and makes
//! sessions look again at a server that fails.

use std::fmt;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use clients::Clients;
use clients::wait::{Either, first_of};
use front::RandomSource;
use link::Resources;
use monitor::{Monitor, Order, Published, Rank, ServerEntry};
use pool::Pool;
use sync::Notify;

use crate::connection::Resting;
use crate::options::MonitorOptions;

use super::following::Following;
use super::server::KnownServer;

/// See the module's head. Dropping it ends it.
pub(crate) struct Watch {
    pub(crate) monitor: Monitor,
    /// How far the binary log of its primary is followed.
    pub(crate) following: Arc<Following>,
    /// What it was started with. The servers are in the order of the map.
    options: MonitorOptions,
    servers: Vec<(Arc<KnownServer>, Rank)>,
    /// Ends the task that wakes sessions.
    ended: Arc<Notify>,
}

/// What a watch is to be over, and how.
pub(crate) struct Surroundings<'a> {
    pub(crate) options: &'a MonitorOptions,
    /// In the order of the options.
    pub(crate) servers: Vec<(Arc<KnownServer>, Rank)>,
}

/// What all watches of a gateway share.
pub(crate) struct Ground<'a> {
    pub(crate) clients: &'a Arc<Clients>,
    pub(crate) pool: &'a Arc<Pool<Resting>>,
    pub(crate) resources: &'a Rc<Resources>,
    pub(crate) random: &'a RandomSource,
    pub(crate) worker_count: usize,
}

impl Watch {
    /// Starts a watch on this worker. `before` are the maps of the older configuration.
    pub(crate) fn start(
        Surroundings { options, servers }: Surroundings<'_>,
        before: &[Arc<Published>],
        ground: &Ground<'_>,
    ) -> Watch {
        let started = monitor_options(options, &servers, ground);
        let resources = Rc::clone(ground.resources);
        let before: Vec<_> = before.iter().map(|it| &it.map).collect();
        let monitor = Monitor::start(started, resources, &before);
        let ended = Arc::new(Notify::default());
        let pool_ids = servers.iter().map(|(it, _)| it.pool_id).collect();
        let waker = Waker {
            clients: Arc::clone(ground.clients),
            pool: Arc::clone(ground.pool),
            pool_ids,
        };
        runtime::spawn_background(waker.run(monitor.clone(), Arc::clone(&ended)));
        Watch {
            monitor,
            following: Arc::default(),
            options: options.clone(),
            servers,
            ended,
        }
    }

    /// Whether it is the watch that these options ask for.
    pub(crate) fn is_over(&self, other: &Surroundings<'_>) -> bool {
        let MonitorOptions {
            // Places in one configuration.
            servers: _,
            user,
            secret,
            interval,
            timeout,
            rules,
            follower_number,
        } = &self.options;
        let same = |((one, rank), (other, other_rank)): (&(Arc<_>, Rank), &(Arc<_>, Rank))| {
            Arc::ptr_eq(one, other) && rank == other_rank
        };
        *user == other.options.user
            && *secret == other.options.secret
            && *interval == other.options.interval
            && *timeout == other.options.timeout
            && *rules == other.options.rules
            && *follower_number == other.options.follower_number
            && self.servers.len() == other.servers.len()
            && self.servers.iter().zip(&other.servers).all(same)
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.monitor.stop();
        self.ended.notify();
    }
}

fn monitor_options(
    options: &MonitorOptions,
    servers: &[(Arc<KnownServer>, Rank)],
    ground: &Ground<'_>,
) -> monitor::Options {
    let servers = servers.iter().map(|(server, rank)| {
        let target = &server.target;
        let entry = ServerEntry {
            name: Arc::clone(&server.name),
            address: target.address.clone(),
            rank: *rank,
        };
        (entry, target.tls.clone(), target.proxy_header)
    });
    let servers = servers.collect();
    let (secret, random) = (options.secret.clone(), Arc::clone(ground.random));
    monitor::Options {
        servers,
        interval: options.interval,
        connect_timeout: options.timeout,
        reply_timeout: options.timeout,
        rules: options.rules.clone(),
        ..monitor::Options::new(options.user.clone(), secret, random)
    }
}

/// Wakes all sessions each time that a server is lost, so that those which wait for it give it up.
/// Connections that were made before a server was lost or changed its role, or was taken out by an
/// operator, are not used again.
struct Waker {
    clients: Arc<Clients>,
    pool: Arc<Pool<Resting>>,
    /// By the servers' places in the map.
    pool_ids: Vec<pool::ServerId>,
}

impl Waker {
    async fn run(self, monitor: Monitor, ended: Arc<Notify>) {
        let mut before = monitor.present();
        loop {
            let changed = pin!(monitor.changed(before.version));
            if let Either::Right(()) = first_of(changed, pin!(ended.notified())).await {
                return;
            }
            let present = monitor.present();
            self.compare(&before, &present);
            before = present;
        }
    }

    fn compare(&self, before: &Published, present: &Published) {
        let pairs = before.map.servers().zip(present.map.servers());
        let mut is_lost = false;
        for ((before, after), pool_id) in pairs.zip(&self.pool_ids) {
            let is_changed = before.epoch != after.epoch;
            is_lost |= before.is_reachable() && (!after.is_reachable() || is_changed);
            // Statements on a server that was taken out are waited for as long as it answers.
            is_lost |= before.answers() && !after.answers();
            let is_taken_out = before.order != after.order && after.order == Order::Maintenance;
            if is_changed || is_taken_out {
                drop(self.pool.raise_version(*pool_id));
            }
        }
        if is_lost {
            self.clients.registry().wake_all();
        }
    }
}
