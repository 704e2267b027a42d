//! Sessions on the workers: what they share, created at the start, and a client from accept to end.

use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context, Result};
use engine::Engine;
use env::Clock;
use env::linux::SystemClock;
use runtime::{Runtime, Stream};
use session::{Server, Worker};
use settings::Settings;
use store::StoreError;

use crate::configuration;
use crate::database::Sessions;
use crate::ending::{EndTimes, tell_killed, wait_patiently};
use crate::keys::Keys;

/// Creates what sessions share, reads the accounts (a new data directory gets its first ones), and
/// gives each worker its part. Returns what they share. Afterwards `serve` may be called on any
/// worker.
pub(crate) fn start(
    settings: &Settings,
    keys: Keys,
    runtime: &Runtime,
    metrics: metrics::Registry,
    end: EndTimes,
) -> Result<Arc<Server>> {
    let worker_count = runtime.handle().worker_count();
    let started_us = SystemClock.now().nanos() / 1000;
    let server = Server::over(
        crate::heap::heap(),
        metrics,
        settings.clone(),
        worker_count,
        started_us,
    );
    let handle = runtime.handle().clone();
    server.on_shutdown(move || {
        tracing::info!(termination = %"SHUTDOWN", "asked to stop");
        handle.shutdown(end.total());
    });
    let front = configuration::front_options(settings, keys)?;
    let packet_memory_bytes = usize::try_from(settings.unsigned("packet_memory_size"))?;
    let packet_memory = front::PacketMemory::new(packet_memory_bytes);
    let loading = Arc::clone(&server);
    runtime
        .block_on_worker(0, move || load_system_tables(loading))
        .context("cannot read the accounts")?;
    for index in 0..worker_count {
        let (server, front) = (Arc::clone(&server), front.clone());
        let packet_memory = packet_memory.clone();
        runtime.block_on_worker(index, move || async move {
            let engine = engine();
            engine.shared().set_witness(server.witness());
            let (store, schema) = (Rc::clone(&engine), engine);
            let counters = Arc::clone(&server.counters(index).front);
            let traffic = Arc::clone(&counters.traffic);
            let resources = front::Resources::new(packet_memory, traffic);
            let front = front::Shared::new(front, resources, counters);
            let worker = Worker::new(server, (store, schema), front, Rc::new(SystemClock), index);
            runtime::set_local(worker);
        });
    }
    let ending = Arc::clone(&server);
    runtime.block_on_worker(0, move || async move {
        runtime::spawn_background(async move {
            runtime::shutdown().await;
            ending.dismiss_sessions();
            wait_patiently(end, || ending.busy()).await;
            tell_killed(ending.kill_sessions());
        });
    });
    Ok(server)
}

/// Serves one client to its end.
pub(crate) async fn serve(stream: Stream) {
    let sessions: Rc<Sessions> = runtime::local().expect("each worker was given its sessions");
    let _mark = sessions.begin();
    let worker: Rc<Worker> = runtime::local().expect("each worker was given its part");
    session::serve(worker, stream).await;
}

async fn load_system_tables(server: Arc<Server>) -> Result<(), StoreError> {
    let engine = engine();
    session::system::accounts::bootstrap(&*engine).await?;
    server.set_accounts(session::system::accounts::load(&*engine).await?);
    session::system::routines::bootstrap(&*engine).await?;
    server.set_routines(session::system::routines::load(&*engine).await?);
    session::system::time_zone_tables::bootstrap(&*engine).await
}

fn engine() -> Rc<Engine> {
    runtime::local().expect("the database was opened on each worker")
}
