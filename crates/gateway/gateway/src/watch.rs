//! The monitors of a gateway: starts them, and makes sessions look again at a server that fails.

use std::rc::Rc;
use std::sync::Arc;

use front::RandomSource;
use link::Resources;
use monitor::{Monitor, Order, ServerEntry};

use crate::gateway::Gateway;
use crate::options::{MonitorOptions, ServerId};

/// Starts all monitors, on this worker. Each runs for as long as the gateway does.
pub fn watch_servers(
    gateway: &Arc<Gateway>,
    resources: &Rc<Resources>,
    random: &RandomSource,
) -> Vec<Monitor> {
    let started = gateway.monitors().iter().map(|options| {
        let servers = options.servers.clone();
        let options = options_of(gateway, options, random);
        let monitor = Monitor::start(options, Rc::clone(resources), None);
        let (gateway, watched) = (Arc::clone(gateway), monitor.clone());
        runtime::spawn_background(wake_sessions(gateway, watched, servers));
        monitor
    });
    started.collect()
}

fn options_of(
    gateway: &Gateway,
    options: &MonitorOptions,
    random: &RandomSource,
) -> monitor::Options {
    let servers = options.servers.iter().map(|id| {
        let server = &gateway.server(*id).options;
        let entry = ServerEntry {
            name: Arc::clone(&server.name),
            address: server.target.address.clone(),
            rank: server.rank,
        };
        let target = &server.target;
        (entry, target.tls.clone(), target.proxy_header)
    });
    let servers = servers.collect();
    let (secret, random) = (options.secret.clone(), Arc::clone(random));
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
async fn wake_sessions(gateway: Arc<Gateway>, monitor: Monitor, servers: Vec<ServerId>) {
    let mut before = monitor.present();
    loop {
        monitor.changed(before.version).await;
        let present = monitor.present();
        let pairs = before.map.servers().zip(present.map.servers());
        let mut is_lost = false;
        for ((before, after), id) in pairs.zip(&servers) {
            let is_changed = before.epoch != after.epoch;
            is_lost |= before.is_reachable() && (!after.is_reachable() || is_changed);
            // Statements on a server that was taken out are waited for as long as it answers.
            is_lost |= before.answers() && !after.answers();
            let is_taken_out = before.order != after.order && after.order == Order::Maintenance;
            if is_changed || is_taken_out {
                let pool_id = gateway.server(*id).pool_id;
                drop(gateway.pool.raise_version(pool_id));
            }
        }
        if is_lost {
            gateway.clients().registry().wake_all();
        }
        before = present;
    }
}
