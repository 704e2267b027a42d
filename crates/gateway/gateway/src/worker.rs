//! [`Worker`]: a worker's part of the gateway.

use std::rc::Rc;
use std::sync::Arc;

use auth::Random;
use backend::{ConnectError, Login, Server, Target};
use front::RandomSource;
use link::{Limit, Resources};
use metrics::Counter;

use crate::end::End;
use crate::gateway::Gateway;
use crate::options::ServiceId;

/// What the sessions of a worker share.
#[derive(Debug)]
pub struct Worker {
    /// What all workers share.
    pub(crate) gateway: Arc<Gateway>,
    /// What the connections of each service's clients share, by the service's id.
    fronts: Vec<Rc<front::Shared>>,
    /// What all links of the worker share.
    pub(crate) resources: Rc<Resources>,
    /// What happened on this worker.
    pub(crate) counters: Arc<Counters>,
}

/// What happened on a worker, since its start. The worker writes, anybody reads.
#[derive(Debug, Default)]
pub struct Counters {
    /// What happened on the connections of its clients.
    pub front: Arc<front::Counters>,
    /// Logins that were ended because too many were waiting.
    pub logins_evicted: Counter,
    /// Clients that got a session.
    pub sessions: Counter,
    /// Sessions that ended, by why.
    pub ends: [Counter; End::COUNT],
    /// Connections to servers that could not be made.
    pub failed_connects: Counter,
    /// Statements that were ended on their server because their client had gone, or by KILL.
    pub kills: Counter,
}

impl Worker {
    /// A worker's part. `front` is what clients are let in by.
    pub fn new(
        gateway: Arc<Gateway>,
        front: &front::Options,
        resources: Rc<Resources>,
        counters: Arc<Counters>,
    ) -> Rc<Worker> {
        let shared = |_| {
            let (resources, counters) = (Rc::clone(&resources), Arc::clone(&counters.front));
            front::Shared::new(front.clone(), resources, counters)
        };
        let fronts = gateway.service_ids().map(shared).collect();
        Rc::new(Worker {
            gateway,
            fronts,
            resources,
            counters,
        })
    }

    /// What the connections of a service's clients share.
    pub(crate) fn front(&self, service: ServiceId) -> &Rc<front::Shared> {
        self.fronts.get(service.0).expect("one a service")
    }

    /// Connects to a server and logs in.
    pub(crate) async fn connect(
        &self,
        target: &Target,
        login: &Login,
    ) -> Result<Server, ConnectError> {
        let mut fill = |bytes: &mut [u8]| (self.random())(bytes);
        let mut random = Random(&mut fill);
        let connected = Server::connect(target, login, &self.resources, &mut random).await;
        if connected.is_err() {
            self.counters.failed_connects.increment();
        }
        connected
    }

    /// Logs in as another user on the same connection.
    pub(crate) async fn change_user(
        &self,
        server: &mut Server,
        login: &Login,
        limit: Limit,
    ) -> Result<(), ConnectError> {
        let mut fill = |bytes: &mut [u8]| (self.random())(bytes);
        server
            .change_user(login, limit, &mut Random(&mut fill))
            .await
    }

    /// Random bytes for logins.
    fn random(&self) -> &RandomSource {
        let any = self.fronts.first().expect("a gateway has a service");
        &any.options().random
    }
}
