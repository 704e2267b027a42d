//! Keeps what is known of a service's accounts: reads them from its servers at the start, on time,
//! and after a login that newer ones might have let in.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use backend::{Login, Outcome, Product, QueryLimits, Rows, Server};
use clients::wait::first_of;
use errcode::ClientError;
use front::Greeting;
use link::Limit;
use wire::Capabilities;

use crate::account_list::{AccountList, AccountTable};
use crate::options::{ServerId, ServiceId};
use crate::service::{Known, Readings, Service};
use crate::worker::Worker;

/// Accounts are never older than this.
const REFRESH_EVERY: Duration = Duration::from_secs(60);

/// Logins that fail cause no more than one reading in this time.
const REFRESH_PAUSE: Duration = Duration::from_secs(1);

/// A server has to send its accounts in this time.
const READ_TIME_MAX: Duration = Duration::from_secs(10);

/// Most bytes of all accounts: a hundred thousand of them.
const ACCOUNT_BYTES_MAX: usize = 32 << 20;

/// Reads the accounts of those services of this worker's configuration that `before` does not have,
/// for as long as configurations have them. One worker does it, each time that it has adopted a
/// configuration.
pub fn keep_accounts(worker: &Worker, before: &Worker) {
    for service in worker.generation.services() {
        let is_it = |it: &Service| Arc::ptr_eq(&it.readings, &service.readings);
        let mut known = before.generation.services().iter();
        if !known.any(is_it) {
            runtime::spawn_background(keep(Arc::clone(&service.readings)));
        }
    }
}

async fn keep(readings: Arc<Readings>) {
    let mut failure: Option<String> = None;
    // Of the present configuration, and only as long as it takes.
    while let Some((worker, id)) = present(&readings) {
        let before = std::mem::replace(&mut failure, refresh(&worker, id).await.err());
        let service = &*worker.generation.service(id).options.name;
        match (&before, &failure) {
            (Some(_), None) => {
                tracing::info!(service, "the accounts of a service can be read again");
            }
            // The same reasons each second would hide all other lines.
            (before, Some(reasons)) if before.as_ref() != Some(reasons) => {
                tracing::warn!(service, %reasons, "the accounts of a service cannot be read");
            }
            _ => {}
        }
        drop(worker);
        runtime::sleep(REFRESH_PAUSE).await;
        if failure.is_none() {
            let asked = readings.wants_accounts.notified();
            let on_time = runtime::sleep(REFRESH_EVERY);
            first_of(std::pin::pin!(asked), std::pin::pin!(on_time)).await;
        }
    }
}

/// The service in the configuration that this worker has adopted, if it is there.
fn present(readings: &Arc<Readings>) -> Option<(Rc<Worker>, ServiceId)> {
    let worker: Rc<Worker> = runtime::local()?;
    let mut ids = worker.generation.service_ids();
    let is_it = |id: &ServiceId| Arc::ptr_eq(&worker.generation.service(*id).readings, readings);
    let id = ids.find(is_it)?;
    Some((worker, id))
}

/// Reads the accounts from the first server that has them.
///
/// # Errors
/// None has; the reasons of all.
async fn refresh(worker: &Worker, id: ServiceId) -> Result<(), String> {
    let service = worker.generation.service(id);
    let mut reasons = Vec::new();
    for server in &service.options.servers {
        match read(worker, id, *server).await {
            Ok(known) => {
                let was_ready = service.readings.known().is_some();
                service.readings.publish(known);
                if !was_ready && let Some(known) = service.readings.known() {
                    tell_first(&service.options.name, &known);
                }
                return Ok(());
            }
            Err(reason) => {
                let name = &worker.generation.server(*server).options.name;
                reasons.push(format!("{name}: {reason}"));
            }
        }
    }
    Err(reasons.join("; "))
}

fn tell_first(service: &str, known: &Known) {
    let (count, version) = (known.accounts.len(), &known.greeting.server_version);
    tracing::info!(service, accounts = count, %version, "a service is ready");
    if known.accounts.damaged() != 0 {
        let rows = known.accounts.damaged();
        tracing::warn!(service, rows, "some accounts of the servers cannot be read");
    }
}

/// Reads what a server tells of itself and its accounts.
async fn read(worker: &Worker, service: ServiceId, server: ServerId) -> Result<Known, String> {
    let options = worker.generation.monitor_options(service);
    let login = Login::new(options.user.clone(), options.secret.clone());
    let target = &worker.generation.server(server).options.target;
    let connected = worker.connect(target, &login).await;
    let mut server = connected.map_err(|error| error.with_causes())?;
    let table = match server.info().version.product {
        Product::MariaDb => AccountTable::GlobalPriv,
        Product::MySql => AccountTable::User,
    };
    let rows = rows_of(&mut server, table).await?;
    let accounts = AccountList::decode(table, &rows.rows);
    let info = server.info();
    let greeting = Greeting {
        // Clients judge by it what the server can do, down to the prefix of MariaDB before 11.
        server_version: info.version.text.clone(),
        capabilities: info.offered & (Capabilities::SERVER | Capabilities::MYSQL),
        collation: info.collation,
    };
    server.close().await;
    Ok(Known { accounts, greeting })
}

async fn rows_of(server: &mut Server, table: AccountTable) -> Result<Rows, String> {
    let limits = QueryLimits {
        until: Limit::after(READ_TIME_MAX),
        bytes_max: ACCOUNT_BYTES_MAX,
    };
    let outcomes = server.query(table.statement(), limits).await;
    let outcomes = outcomes.map_err(|error| error.to_string())?;
    match outcomes.into_iter().next() {
        Some(Outcome::Rows(rows)) => Ok(rows),
        Some(Outcome::Failed(error)) => Err(without_rights(&error)),
        Some(Outcome::Done { .. }) | None => Err("it sent no rows".to_owned()),
    }
}

/// What is to be done about an account that may not read the others.
fn without_rights(error: &ClientError) -> String {
    format!("{error}; the gateway's account needs GRANT SELECT ON mysql.* there")
}
