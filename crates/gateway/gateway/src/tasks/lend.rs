//! Connections of the pool on their way between sessions, workers and servers.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use admission::controller::PERIOD_US;
use pool::{Closing, Order, Slot};

use crate::connection::{Connection, Resting};
use crate::gateway::Gateway;
use crate::worker::Worker;

/// How often idle connections are looked through.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// A connection that does not leave its worker in this time is closed: what it has posted is not
/// taken by its server, and sessions wait for it.
const MOVE_TIME_MAX: Duration = Duration::from_secs(10);

impl Worker {
    /// Gives a connection back that is at rest.
    pub(crate) fn give_back(self: &Rc<Self>, slot: Slot<Resting>, connection: Box<Connection>) {
        if let Some(order) = self.pool.release(slot, connection, runtime::now()) {
            carry_out(order);
        }
    }

    /// Closes a connection that is not used any longer.
    pub(crate) fn dismiss(&self, connection: Box<Connection>) {
        close(connection);
    }
}

/// Offers idle connections of a worker to other workers that want them, and closes those that are
/// too old, for as long as the gateway runs. Each worker does it.
pub async fn keep_pool(worker: Rc<Worker>) {
    let (pool, sweeper) = (Rc::clone(&worker.pool), Rc::clone(&worker.pool));
    if worker.index == 0 {
        runtime::spawn_background(steer(Arc::clone(&worker.gateway)));
    }
    // It is of one configuration, and this task is not.
    drop(worker);
    runtime::spawn_background(async move {
        loop {
            runtime::sleep(SWEEP_EVERY).await;
            let now = runtime::now();
            for order in sweeper.sweep(now) {
                carry_out(order);
            }
            if runtime::worker_index() == 0 {
                drop(sweeper.pool().sweep(now));
            }
        }
    });
    loop {
        pool.asked().await;
        for order in pool.answer(runtime::now()) {
            carry_out(order);
        }
    }
}

/// Searches the best limits of servers where that is wanted, for as long as the gateway runs.
async fn steer(gateway: Arc<Gateway>) {
    loop {
        let pause = if gateway.servers.steer(runtime::now()) {
            Duration::from_micros(PERIOD_US)
        } else {
            SWEEP_EVERY
        };
        runtime::sleep(pause).await;
    }
}

fn carry_out(order: Order<Box<Connection>, Resting>) {
    match order {
        Order::Close(Closing { connection, .. }) => close(connection),
        Order::HandOver(connection, ticket) => {
            runtime::spawn_background(async move {
                match runtime::timeout(MOVE_TIME_MAX, connection.detach()).await {
                    // One that is returned is void, and closed as it is dropped.
                    Ok(Ok(resting)) => drop(ticket.deliver(resting, runtime::now())),
                    Ok(Err(error)) => {
                        tracing::debug!(%error, "a connection cannot change its worker");
                        ticket.failed();
                    }
                    Err(error) => {
                        tracing::debug!(%error, "a connection does not leave its worker");
                        ticket.failed();
                    }
                }
            });
        }
    }
}

fn close(connection: Box<Connection>) {
    runtime::spawn_background(async move { connection.server.close().await });
}
