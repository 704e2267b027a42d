//! A client from accept to its end.
//!
//! The SQL session does not stand behind the connection yet: login and the commands without SQL
//! are served, statements are refused by name.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use auth::{Method, StoredSecret};
use errcode::{ClientError, ER_MALFORMED_PACKET};
use front::{Account, AccountSource, Client, Credential, Disconnect, Peer, Shared};
use runtime::Stream;
use wire::{Command, ErrorPacket, OkKind, OkPacket, StatusFlags};

/// What each worker has; made on it before it serves.
pub(crate) struct WorkerState {
    front: Rc<Shared>,
    /// Connections that this worker gave a number to.
    accepted: Cell<u32>,
    wait_timeout: Duration,
}

impl WorkerState {
    pub(crate) fn new(options: front::Options, wait_timeout: Duration) -> Rc<WorkerState> {
        Rc::new(WorkerState {
            front: Shared::new(options),
            accepted: Cell::new(0),
            wait_timeout,
        })
    }

    /// Numbers of different workers never meet: each counts in steps of the number of workers.
    fn next_connection_id(&self) -> u32 {
        let count = self.accepted.get();
        self.accepted.set(count.wrapping_add(1));
        let workers = u32::try_from(runtime::worker_count()).unwrap_or(1);
        let worker = u32::try_from(runtime::worker_index()).unwrap_or(0);
        count
            .wrapping_mul(workers)
            .wrapping_add(worker)
            .wrapping_add(1)
    }
}

/// root without password, from this machine alone: what a fresh server has.
struct FreshAccounts;

impl AccountSource for FreshAccounts {
    fn find(&self, user: &str, peer: Peer) -> Option<Account> {
        if user != "root" || !peer.is_local() {
            return None;
        }
        let secret = StoredSecret::parse(Method::NativePassword, b"").ok()?;
        Some(Account {
            user: "root".to_owned(),
            host: "localhost".to_owned(),
            credential: Credential::Secret(secret),
            is_locked: false,
            requires_tls: false,
        })
    }
}

/// Serves one client to its end.
pub(crate) async fn serve(stream: Stream) {
    let worker: Rc<WorkerState> = runtime::local().expect("each worker was set up");
    let id = worker.next_connection_id();
    match Client::accept(stream, &worker.front, &FreshAccounts, id).await {
        Err(failure) => tracing::debug!(connection_id = id, %failure, "login failed"),
        Ok(client) => {
            if let Err(disconnect) = commands(client, worker.wait_timeout).await {
                tracing::debug!(connection_id = id, %disconnect, "connection ended");
            }
        }
    }
}

async fn commands(mut client: Client, wait_timeout: Duration) -> Result<(), Disconnect> {
    let ok = OkPacket {
        status: StatusFlags::AUTOCOMMIT,
        ..OkPacket::default()
    };
    client.welcome(&ok).await?;
    let capabilities = client.capabilities();
    loop {
        let bytes = client.read_command(wait_timeout).await?;
        match Command::decode(&bytes, capabilities) {
            Ok(Command::Quit) => {
                client.close().await;
                return Ok(());
            }
            Ok(Command::Ping) => ok.encode(client.out(), capabilities, OkKind::Ok),
            Ok(command) if command.is_silent() => {}
            Ok(_) => {
                let error = ClientError::not_supported(&"SQL");
                ErrorPacket::encode(client.out(), &error);
            }
            Err(_) => {
                ErrorPacket::encode(client.out(), &ClientError::new(ER_MALFORMED_PACKET, &[]));
            }
        }
    }
}
