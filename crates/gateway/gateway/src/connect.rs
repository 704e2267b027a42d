//! Connects a session to a server of its service.

use std::sync::Arc;
use std::time::Duration;

use backend::{ConnectError, Login, Server};
use errcode::{ClientError, Retry, WORDS_FOREIGN_PLUGIN, WORDS_NO_SERVER};
use front::ClientInfo;
use link::Agreed;
use monitor::{Condition, DownReason, Rank, ServerMap, ServerState};
use router::Route;
use wire::Capabilities;

use crate::gateway::generation::ServerPlace;
use crate::options::{Role, ServerId, ServiceId};
use crate::worker::Worker;

/// A connection to a server that one session has for itself.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) server: Server,
    pub(crate) agreed: Agreed,
    pub(crate) place: ServerPlace,
}

/// Beyond what a client can do, the gateway wants to see what replies change. It does not ask for
/// OK packets in place of EOF packets: the one behind columns has flags that a client of procedures
/// needs, and that no other packet has in time.
const OWN: Capabilities = Capabilities::SESSION_TRACK;

/// What is between a client and the gateway alone.
const OF_THE_CONNECTION: Capabilities =
    Capabilities(Capabilities::SSL.0 | Capabilities::COMPRESS.0 | Capabilities::ZSTD_COMPRESSION.0);

/// The monitor tells what each server is by its first round of checks, which a login waits for.
const FIRST_ROUND_TIME_MAX: Duration = Duration::from_secs(10);

/// Waits until each server of a service has been checked, or for too long.
pub(crate) async fn first_round(worker: &Worker, service: ServiceId) {
    let is_unknown = |map: &ServerMap| {
        let not_checked = Condition::Down(DownReason::NotChecked);
        map.servers().any(|it| it.condition == not_checked)
    };
    let (is_first, version) = worker.with_map(service, |it| (is_unknown(&it.map), it.version));
    if is_first {
        let told = worker.monitor(service).changed(version);
        // Without it the servers are those that are known.
        let _ = runtime::timeout(FIRST_ROUND_TIME_MAX, told).await;
    }
}

/// Which servers a client of `read-connection` may get.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) role: Role,
    /// None but the server of this name.
    only: Option<Arc<str>>,
}

impl Wanted {
    /// Those with the service's role, if a rule says nothing else.
    pub(crate) fn new(role: Role, route: Option<Route>) -> Wanted {
        let (role, only) = match route {
            None => (role, None),
            Some(Route::Primary) => (Role::Primary, None),
            Some(Route::Replica) => (Role::Replica, None),
            Some(Route::Server(name)) => (Role::Any, Some(name)),
        };
        Wanted { role, only }
    }

    /// How a server that was taken has the role now.
    pub(crate) fn fit_of(&self, server: &ServerState) -> Fit {
        match preference(server, self.role) {
            Some((is_last, _)) if is_last => Fit::LastResort,
            Some(_) => Fit::Met,
            None => Fit::Unmet,
        }
    }
}

/// How a server has the role that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    Met,
    /// It serves as long as no other server does.
    LastResort,
    Unmet,
}

/// The servers of a service that are wanted, in the order in which a client tries them: by rank,
/// and those with the fewest sessions first.
pub(crate) fn candidates(worker: &Worker, service: ServiceId, wanted: &Wanted) -> Vec<ServerId> {
    let generation = &worker.generation;
    let servers = &generation.service(service).options.servers;
    let is_meant = |id: &&ServerId| {
        let name = &generation.server(**id).options.name;
        let only = wanted.only.as_ref();
        only.is_none_or(|only| name.eq_ignore_ascii_case(only))
    };
    let mut ranked: Vec<_> = servers
        .iter()
        .filter(is_meant)
        .filter_map(|id| {
            let preference = worker.with_state(*id, |it| preference(it, wanted.role))?;
            Some((
                preference,
                generation.server(*id).known.session_count(),
                *id,
            ))
        })
        .collect();
    ranked.sort();
    ranked.into_iter().map(|(_, _, id)| id).collect()
}

/// How much a server is preferred by a client that wants this role: less is better. `None` if it
/// must not be used.
fn preference(server: &ServerState, role: Role) -> Option<(bool, Rank)> {
    let is_primary = server.serves_writes();
    let is_last = match role {
        Role::Any if server.condition == Condition::Up => false,
        Role::Primary if is_primary => false,
        Role::Replica if server.serves_reads() => is_primary,
        Role::Any | Role::Primary | Role::Replica => return None,
    };
    Some((is_last, server.entry.rank))
}

/// Why there is no connection to a server.
#[derive(Debug)]
pub(crate) enum NoConnection {
    /// The client gets this error: another server would say the same.
    Refused(ClientError),
    /// Another server may do.
    Failed(String),
}

/// Connects to a server with this login.
pub(crate) async fn connect_server(
    worker: &Worker,
    id: ServerId,
    login: &Login,
) -> Result<Server, NoConnection> {
    let options = &worker.generation.server(id).options;
    let error = match worker.connect(&options.target, login).await {
        Ok(server) => return Ok(server),
        Err(ConnectError::Refused(error)) if error.retry == Retry::Never => {
            return Err(NoConnection::Refused(error));
        }
        Err(error) => error.with_causes(),
    };
    let server = &*options.name;
    tracing::warn!(server, %error, "a client could not be connected to a server");
    worker.report_failure(id);
    Err(NoConnection::Failed(format!("{server}: {error}")))
}

/// Connects to a server as a client, for it alone.
async fn connect_to(
    worker: &Worker,
    id: ServerId,
    login: &Login,
    info: &ClientInfo,
) -> Result<Held, NoConnection> {
    let place = worker.generation.take_place(id);
    let server = connect_server(worker, id, login).await?;
    let agreed = server.agreed_with(info.capabilities);
    Ok(Held {
        agreed: agreed.map_err(|unlike| NoConnection::Failed(unlike.to_string()))?,
        server,
        place,
    })
}

/// Connects to the first server of a service that is wanted and can be reached. Returns the error
/// for the client if none can be reached.
pub(crate) async fn connect(
    worker: &Worker,
    service: ServiceId,
    wanted: &Wanted,
    info: &ClientInfo,
) -> Result<Held, ClientError> {
    let login = login_as(info)?;
    let mut reason = without(wanted.role).to_owned();
    for id in candidates(worker, service, wanted) {
        match connect_to(worker, id, &login, info).await {
            Ok(held) => return Ok(held),
            Err(NoConnection::Refused(error)) => return Err(error),
            Err(NoConnection::Failed(text)) => reason = text,
        }
    }
    Err(no_server(worker, service, &reason))
}

/// What a client gets whose service has no server for it.
pub(crate) fn no_server(worker: &Worker, service: ServiceId, reason: &str) -> ClientError {
    let name = &worker.generation.service(service).options.name;
    ClientError::worded(WORDS_NO_SERVER, &[name, &reason])
}

/// What a service lacks that has no server with a role.
pub(crate) fn without(role: Role) -> &'static str {
    match role {
        Role::Any => "none is up",
        Role::Primary => "there is no primary",
        Role::Replica => "none serves reads",
    }
}

/// What logs in to servers as a client.
pub(crate) fn login_as(info: &ClientInfo) -> Result<Login, ClientError> {
    let Some(secret) = &info.secret else {
        // The only method here whose proof says nothing about the password.
        let plugin = "ed25519";
        return Err(ClientError::worded(
            WORDS_FOREIGN_PLUGIN,
            &[&info.user, &plugin],
        ));
    };
    Ok(Login {
        database: info.database.clone(),
        capabilities: info.capabilities & !OF_THE_CONNECTION | OWN,
        collation: u8::try_from(info.collation & 0xff).expect("masked to eight bits"),
        // Not the client's limit on packets: many say 0, and mean that they take any.
        attributes: info.encoded_attributes().to_vec(),
        client: info.address(),
        ..Login::new(info.user.clone(), (**secret).clone())
    })
}
