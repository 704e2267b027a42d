//! The gateway's own tables and orders, for operators: `admin_socket`, `admin_listen`, `[[admin]]`.
//!
//! ```text
//! operator -- session (SQL) -- virtual_store -- tables.rs -- gateway::Inside
//!                |                                              |
//!                +---- Control: orders, EXPLAIN ROUTE ----------+
//!                +---- RELOAD CONFIGURATION: reload.rs
//! ```
//!
//! It is the database's SQL over a store that has no engine. Its sessions run on the gateway's
//! workers. Its accounts are those of the sections `admin`; only a new settings file changes them.

mod cells;
mod statements;
mod tables;

use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context, Result};
use catalog::{Account, AccountName, Accounts, Credential, Grant, Grants, Privilege, PrivilegeSet};
use clients::KillOrder;
use env::Clock;
use env::linux::SystemClock;
use errcode::{
    ClientError, ER_NO_SUCH_THREAD, WORDS_NO_SUCH_SERVER, WORDS_NO_SUCH_SERVICE,
    WORDS_NOT_RELOADED, WORDS_WHICH_SERVICE,
};
use gateway::{ExplainRoute, Inside, KillTarget, Order, OrderError, Property};
use runtime::{Address, Runtime, Stream};
use session::{Control, Server, Wanted, Worker};
use settings::{Configuration, Settings};
use store::LocalFuture;
use virtual_store::VirtualStore;

use crate::configuration;
use crate::listen::{self, Ports};
use crate::reload::Reload;

/// The database that the tables are in.
const DATABASE: &str = "plateau";

/// How accounts prove themselves: each client has this method.
const PLUGIN: &str = "mysql_native_password";

/// An account of a section `admin`.
pub(crate) struct Admin {
    user: String,
    password: String,
    may: May,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum May {
    Read,
    Change,
}

/// The accounts of a configuration.
pub(crate) fn admins(configuration: &Configuration) -> Vec<Admin> {
    let entries = configuration.sections.all("admin");
    let admin = |entry: &settings::Entry| Admin {
        user: entry.name().unwrap_or_default().to_owned(),
        password: entry.text("password").unwrap_or_default().to_owned(),
        may: match entry.text("may") {
            Some("change") => May::Change,
            _ => May::Read,
        },
    };
    entries.map(admin).collect()
}

/// What the sessions of operators need.
pub(crate) struct Parts {
    pub(crate) admins: Vec<Admin>,
    pub(crate) ports: Ports,
    pub(crate) front: front::Options,
    pub(crate) packet_memory: front::PacketMemory,
    pub(crate) inside: Inside,
    pub(crate) reload: Arc<Reload>,
}

/// Lets operators in, if there are any. The server has their sessions.
pub(crate) fn serve(
    settings: &Settings,
    runtime: &Runtime,
    parts: Parts,
) -> Result<Option<Arc<Server>>> {
    if parts.admins.is_empty() {
        return Ok(None);
    }
    let addresses = parts.ports.addresses();
    let random = Arc::clone(&parts.front.random);
    let admins = parts.admins;
    let made = runtime.block_on_worker(0, move || accounts(admins, random));
    let accounts = made?;
    let server = start(settings, &addresses, runtime);
    server.set_accounts(accounts);
    server.set_control(Orders {
        inside: parts.inside.clone(),
        reload: parts.reload,
    });
    for index in 0..runtime.handle().worker_count() {
        let (server, front) = (Arc::clone(&server), parts.front.clone());
        let (packet_memory, inside) = (parts.packet_memory.clone(), parts.inside.clone());
        let handle = runtime.handle().clone();
        runtime.block_on_worker(index, move || async move {
            let tables = tables::declarations(&inside, &handle);
            let store = Rc::new(VirtualStore::new(DATABASE, tables));
            let counters = Arc::clone(&server.counters(index).front);
            let traffic = Arc::clone(&counters.traffic);
            let resources = front::Resources::new(packet_memory, traffic);
            let front = front::Shared::new(front, resources, counters);
            let stores = (Rc::clone(&store) as _, store as _);
            let worker = Worker::new(server, stores, front, Rc::new(SystemClock), index);
            runtime::set_local(worker);
        });
    }
    for (listener, _) in parts.ports.into_listeners() {
        runtime
            .serve(listener, serve_one)
            .map_err(listen::explain)?;
    }
    for address in addresses {
        tracing::info!("tables and orders for operators at {address}");
    }
    Ok(Some(server))
}

async fn serve_one(stream: Stream) {
    let worker: Rc<Worker> = runtime::local().expect("each worker was given its part");
    session::serve(worker, stream).await;
}

fn start(settings: &Settings, addresses: &[Address], runtime: &Runtime) -> Arc<Server> {
    let mut settings = settings.clone();
    configuration::tell_machine(&mut settings, addresses);
    let worker_count = runtime.handle().worker_count();
    let started_us = SystemClock.now().nanos() / 1000;
    // The page of the gateway's numbers does not have those of these sessions.
    let numbers = metrics::Registry::new();
    Server::over(
        crate::heap::heap(),
        numbers,
        settings,
        worker_count,
        started_us,
    )
}

/// The accounts of operators, made on a worker.
pub(crate) async fn accounts(admins: Vec<Admin>, random: front::RandomSource) -> Result<Accounts> {
    let mut accounts = Vec::new();
    for admin in admins {
        let hash = match admin.password.as_str() {
            "" => Ok(String::new()),
            password => {
                let password = password.as_bytes();
                session::system::accounts::hash_password(PLUGIN, password, &random).await
            }
        };
        let hash = hash.context("a password of a section `admin` cannot be used")?;
        accounts.push(account(admin, hash));
    }
    Ok(Accounts::new(accounts))
}

fn account(admin: Admin, hash: String) -> Account {
    // Without a password it gets in from this machine alone.
    let host = if hash.is_empty() { "localhost" } else { "%" };
    let global = match admin.may {
        May::Read => PrivilegeSet::default(),
        May::Change => PrivilegeSet::of(&[
            Privilege::Super,
            Privilege::ConnectionAdmin,
            Privilege::Process,
        ]),
    };
    let grant = |privileges| Grant {
        privileges,
        grantable: false,
    };
    let select = PrivilegeSet::of(&[Privilege::Select]);
    Account {
        name: AccountName {
            user: admin.user,
            host: host.to_owned(),
        },
        credential: Credential {
            plugin: PLUGIN.to_owned(),
            hash,
        },
        locked: false,
        requires_tls: false,
        grants: Grants {
            global: grant(global),
            databases: [(DATABASE.to_owned(), grant(select))].into(),
            ..Grants::default()
        },
    }
}

/// Carries out the orders of operators.
struct Orders {
    inside: Inside,
    reload: Arc<Reload>,
}

impl Control for Orders {
    fn set_server(
        &self,
        name: &str,
        wanted: Wanted,
    ) -> LocalFuture<'static, Result<(), ClientError>> {
        let (inside, name) = (self.inside.clone(), name.to_owned());
        let order = match wanted {
            Wanted::Up => Order::Up,
            Wanted::Drain => Order::Drain,
            Wanted::Maintenance => Order::Maintenance,
        };
        Box::pin(async move { inside.order(&name, order).await.map_err(|it| told(&it)) })
    }

    fn empty_table(&self, name: &str) -> LocalFuture<'static, Result<(), ClientError>> {
        let (inside, is_known) = (self.inside.clone(), name == statements::NAME);
        Box::pin(async move {
            if !is_known {
                return Err(ClientError::not_supported(&"TRUNCATE of this table"));
            }
            inside.forget_statements().await;
            Ok(())
        })
    }

    fn reload(&self) -> LocalFuture<'static, Result<String, ClientError>> {
        let reload = Arc::clone(&self.reload);
        Box::pin(async move {
            let read = runtime::blocking(move || reload.run()).await;
            read.map_err(|error| ClientError::worded(WORDS_NOT_RELOADED, &[&format!("{error:#}")]))
        })
    }

    fn flush_results(&self, tables: &[String]) {
        self.inside.flush_results(tables);
    }

    fn explain_route(&self, asked: &ExplainRoute) -> Result<Vec<Property>, ClientError> {
        self.inside.explain_route(asked).map_err(|it| told(&it))
    }

    fn explain_connection(&self, number: u64) -> Result<Vec<Property>, ClientError> {
        let told_of = self.inside.explain_connection(number);
        told_of.map_err(|it| told(&it))
    }

    fn kill(&self, number: u64, order: KillOrder) -> Result<(), ClientError> {
        let target = match order {
            KillOrder::None => return Ok(()),
            KillOrder::Query => KillTarget::Query,
            KillOrder::Connection => KillTarget::Connection,
        };
        self.inside.kill(number, target).map_err(|it| told(&it))
    }
}

fn told(error: &OrderError) -> ClientError {
    match error {
        OrderError::NoServer { name, known } => {
            ClientError::worded(WORDS_NO_SUCH_SERVER, &[name, known])
        }
        OrderError::NoService { name, known } => {
            ClientError::worded(WORDS_NO_SUCH_SERVICE, &[name, known])
        }
        OrderError::WhichService { known } => ClientError::worded(WORDS_WHICH_SERVICE, &[known]),
        OrderError::NoClient(number) => ClientError::new(ER_NO_SUCH_THREAD, &[number]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_account_may_do_is_what_its_section_says() {
        let mut configuration = Configuration::default();
        let text = "[[admin]]\nuser = \"eye\"\n\
                    [[admin]]\nuser = \"ops\"\npassword = \"p\"\nmay = \"change\"\n";
        assert!(configuration.read_file(text).is_empty());
        let made: Vec<Account> = admins(&configuration)
            .into_iter()
            .map(|admin| {
                let hash = admin.password.clone();
                account(admin, hash)
            })
            .collect();
        let shown: Vec<_> = made.iter().flat_map(Account::show_grants).collect();
        assert_eq!(
            shown,
            [
                "GRANT USAGE ON *.* TO `eye`@`localhost`",
                "GRANT SELECT ON `plateau`.* TO `eye`@`localhost`",
                "GRANT PROCESS, SUPER, CONNECTION ADMIN ON *.* TO `ops`@`%` \
                 IDENTIFIED BY PASSWORD 'p'",
                "GRANT SELECT ON `plateau`.* TO `ops`@`%`",
            ]
        );
    }
}
