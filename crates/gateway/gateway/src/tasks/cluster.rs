//! [`Cluster`]: servers under one monitor, as a configuration has them that sessions go by.

use std::sync::Arc;

use backend::{Login, Server};
use monitor::Epoch;

use crate::gateway::Gateway;
use crate::gateway::generation::{Generation, ServerShare};
use crate::gateway::watch::Watch;
use crate::options::{MonitorId, MonitorOptions, ServerId};
use crate::worker::Worker;

/// See the module's head. Not to be kept: it holds its configuration.
#[derive(Debug, Clone)]
pub(super) struct Cluster {
    generation: Arc<Generation>,
    monitor: MonitorId,
}

/// A server that takes writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Primary {
    pub(super) server: ServerId,
    pub(super) identity: Identity,
}

/// Names in the pool are never given again, and a server's epoch rises whenever it was down.
pub(super) type Identity = (pool::ServerId, Epoch);

impl Cluster {
    pub(super) fn new(generation: &Arc<Generation>, monitor: MonitorId) -> Cluster {
        Cluster {
            generation: Arc::clone(generation),
            monitor,
        }
    }

    /// The clusters of all configurations that sessions have, those of the present one first.
    /// Clusters with the same watch are one.
    pub(super) fn all(gateway: &Gateway) -> Vec<Cluster> {
        let mut all: Vec<Cluster> = Vec::new();
        for generation in gateway.generations().iter().rev() {
            for (monitor, watch) in (0..).map(MonitorId).zip(generation.watches()) {
                if !all.iter().any(|it| Arc::ptr_eq(it.watch(), watch)) {
                    all.push(Cluster::new(generation, monitor));
                }
            }
        }
        all
    }

    /// Whether two of them have a server in common, and different primaries.
    pub(super) fn disagree(clusters: &[Cluster]) -> bool {
        // Servers of one address share it.
        let address = |it: &ServerShare| Arc::as_ptr(&it.known.written);
        let view = |cluster: &Cluster| {
            let primary = address(cluster.server(cluster.primary()?.server));
            let all: Vec<_> = cluster.servers().map(address).collect();
            Some((primary, all))
        };
        let views: Vec<_> = clusters.iter().filter_map(view).collect();
        views.iter().enumerate().any(|(at, (primary, all))| {
            let mut others = views.iter().take(at);
            others
                .any(|(other, theirs)| other != primary && theirs.iter().any(|it| all.contains(it)))
        })
    }

    pub(super) fn watch(&self) -> &Arc<Watch> {
        self.generation.watch(self.monitor)
    }

    pub(super) fn options(&self) -> &MonitorOptions {
        self.generation.watched_by(self.monitor)
    }

    pub(super) fn server(&self, id: ServerId) -> &ServerShare {
        self.generation.server(id)
    }

    /// Its servers.
    pub(super) fn servers(&self) -> impl Iterator<Item = &ServerShare> {
        let servers = self.options().servers.iter();
        servers.map(|id| self.generation.server(*id))
    }

    /// The primary, as its monitor sees it now.
    pub(super) fn primary(&self) -> Option<Primary> {
        let present = self.watch().monitor.present();
        let found = present.map.primary()?;
        let servers = &self.options().servers;
        let server = *servers.get(usize::from(found.id.0))?;
        let name = self.server(server).known.pool_id;
        Some(Primary {
            server,
            identity: (name, found.epoch),
        })
    }

    /// Connects to a server with the monitor's account.
    ///
    /// # Errors
    /// It cannot be connected to; for people.
    pub(super) async fn connect(&self, worker: &Worker, id: ServerId) -> Result<Server, String> {
        let options = self.options();
        let login = Login::new(options.user.clone(), options.secret.clone());
        let target = &self.server(id).options.target;
        let connected = worker.connect(target, &login).await;
        connected.map_err(|error| error.with_causes())
    }
}
