//! [`Clients`]: from a connection to a session, or to the reason why there is none.

use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use errcode::{ClientError, ER_CON_COUNT_ERROR, ER_SERVER_SHUTDOWN};
use front::{AccountSource, Client, LoginFailure, LoginRules, Peer};
use metrics::{Counter, Metric, Number, Unit};
use runtime::Stream;
use settings::Settings;
use sync::atomic::{AtomicU64, Ordering};

use crate::handle::{Activity, KillOrder, ProcessLine, SessionHandle};
use crate::login_log::{AbortLog, LoginLog};
use crate::logins::Logins;
use crate::registry::Registry;
use crate::wait::{Either, first_of};

/// All clients of a server: those with a session, and those that are logging in.
#[derive(Debug, Default)]
pub struct Clients {
    registry: Registry,
    logins: Arc<Logins>,
    login_log: LoginLog,
    abort_log: AbortLog,
    /// Connections that were refused because there were too many sessions.
    refused_count: AtomicU64,
}

/// What a login needs of the worker that it runs on.
#[derive(Debug, Clone, Copy)]
pub struct Entrance<'w> {
    /// What the worker's connections share.
    pub front: &'w Rc<front::Shared>,
    /// `max_connections`: more sessions than this, and more logins than this, there may not be.
    pub limit: usize,
    /// Counts logins that were ended because too many were waiting.
    pub evictions: &'w Counter,
    /// The numbers that clients are told.
    pub numbers: ClientNumbers,
}

/// The numbers of 32 bits that clients are told, for KILL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientNumbers {
    /// From 1 on.
    Low,
    /// From 2^30 on: servers that are spoken to on behalf of clients count from 1 on, and a number
    /// shows whose it is. Below 2^31, since some clients take it for a signed one.
    High,
}

/// The bit that high numbers have.
const HIGH_BIT: u32 = 1 << 30;

impl ClientNumbers {
    /// The number that the client with this id is told.
    pub fn of(self, id: u64) -> u32 {
        let low = u32::try_from(id & 0xffff_ffff).expect("masked to 32 bits");
        match self {
            ClientNumbers::Low => low,
            ClientNumbers::High => (low % HIGH_BIT) | HIGH_BIT,
        }
    }

    /// Whether a client may have been told this number.
    pub fn includes(self, number: u64) -> bool {
        match self {
            ClientNumbers::Low => true,
            ClientNumbers::High => (HIGH_BIT.into()..u64::from(2 * HIGH_BIT)).contains(&number),
        }
    }
}

/// A client that has proved who it is, and has no session yet.
#[derive(Debug)]
pub struct LoggedIn {
    /// Its connection.
    pub client: Client,
    /// The connection's id.
    pub id: u64,
}

const MAX_USED_CONNECTIONS: Metric = Metric::gauge(
    "Max_used_connections",
    Unit::Count,
    "The most sessions that there were at a time.",
);
const CONNECTION_ERRORS_MAX: Metric = Metric::counter(
    "Connection_errors_max_connections",
    Unit::Count,
    "Connections that were refused because there were too many sessions.",
);

impl Clients {
    /// The sessions.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// What is counted here of all workers' clients.
    pub const NUMBERS: [Number<Clients>; 2] = [
        (MAX_USED_CONNECTIONS, |it| it.registry.count_max()),
        (CONNECTION_ERRORS_MAX, |it| {
            // Relaxed: only the number matters.
            it.refused_count.load(Ordering::Relaxed)
        }),
    ];

    /// How many connections are logging in.
    pub fn login_count(&self) -> usize {
        self.logins.count()
    }

    /// Lets a client log in. Returns `None` if it may not, or fails to.
    ///
    /// One session beyond the limit is for an administrator, who is known only after the login.
    /// Clients that log in at the same time are counted again by [`Clients::admit`].
    pub async fn log_in(
        &self,
        stream: Stream,
        accounts: &dyn AccountSource,
        entrance: Entrance<'_>,
    ) -> Option<LoggedIn> {
        if let Some(refusal) = self.refusal(entrance.limit) {
            Client::refuse(stream, entrance.front, &refusal).await;
            return None;
        }
        let id = self.registry.next_id();
        let wire_id = entrance.numbers.of(id);
        let (place, evicted) = self.logins.enter(id, entrance.limit);
        if evicted.is_some() {
            entrance.evictions.increment();
        }
        let accept = pin!(Client::accept(stream, entrance.front, accounts, wire_id));
        match first_of(accept, pin!(place.evicted())).await {
            Either::Left(Ok(client)) => Some(LoggedIn { client, id }),
            Either::Left(Err(failed)) => {
                self.log_failed_login(id, failed.peer?, &failed.failure);
                None
            }
            // Evicted as the oldest of too many, or by the shutdown: it gets no packet.
            Either::Right(()) => None,
        }
    }

    /// Notes in the server's log that a login failed; of many in a second only some.
    pub fn log_failed_login(&self, connection_id: u64, peer: Peer, failure: &LoginFailure) {
        let now_ns = runtime::now().nanos();
        self.login_log.note(connection_id, peer, failure, now_ns);
    }

    /// Notes in the server's log that a session has ended without its client's asking; of many in a
    /// second only some.
    pub fn log_aborted(&self, session: &SessionHandle, reason: &str) {
        let now_ns = runtime::now().nanos();
        self.abort_log.note(session, reason, now_ns);
    }

    /// Why no connection may begin to log in now.
    fn refusal(&self, limit: usize) -> Option<ClientError> {
        if self.registry.is_ending() {
            Some(ClientError::new(ER_SERVER_SHUTDOWN, &[]))
        } else if limit < self.registry.count() {
            Some(self.too_many())
        } else {
            None
        }
    }

    /// Counts a connection that is refused because there are too many sessions.
    fn too_many(&self) -> ClientError {
        // Relaxed: only the number matters.
        self.refused_count.fetch_add(1, Ordering::Relaxed);
        ClientError::new(ER_CON_COUNT_ERROR, &[])
    }

    /// Makes a client that has logged in one of at most `limit` sessions, from `since_us` on the
    /// server's steady clock. If there are as many already, tells the client and returns `None`.
    pub async fn admit(
        &self,
        logged_in: LoggedIn,
        limit: usize,
        since_us: u64,
    ) -> Option<(Client, Arc<SessionHandle>)> {
        let line = process_line(&logged_in, since_us);
        let Some(session) = self.registry.enter(line, limit) else {
            let is_full = self.too_many();
            logged_in.client.dismiss(&is_full).await;
            return None;
        };
        Some((logged_in.client, session))
    }

    /// The server shuts down: sessions finish their current command and accept no other, and
    /// connections that are logging in are closed.
    pub fn dismiss(&self) {
        self.registry.end();
        self.logins.end();
    }

    /// Orders all sessions to end, in the middle of their commands. Returns how many of them were
    /// in one, and were not killed before. Any thread.
    pub fn kill_all(&self) -> usize {
        let mut running_count = 0;
        for session in self.registry.all() {
            let is_killed = session.order() == KillOrder::Connection;
            if !is_killed && session.activity() == Activity::Statement {
                running_count += 1;
            }
            session.give_order(KillOrder::Connection);
        }
        running_count
    }
}

/// The rules for logins that the global variables set now.
pub fn login_rules(settings: &Settings) -> LoginRules {
    let seconds = |name| Duration::from_secs(settings.unsigned(name));
    LoginRules {
        requires_secure_transport: settings.is_on("require_secure_transport"),
        offers_local_infile: settings.is_on("local_infile"),
        connect_timeout: seconds("connect_timeout"),
        write_timeout: seconds("net_write_timeout"),
    }
}

fn process_line(logged_in: &LoggedIn, since_us: u64) -> ProcessLine {
    let info = logged_in.client.info();
    let host = info.peer.host();
    let host = match info.port {
        Some(port) => format!("{host}:{port}"),
        None => host,
    };
    ProcessLine::idle(logged_in.id, info.user.clone(), host, since_us)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::LEAVING;

    fn line(id: u64) -> ProcessLine {
        ProcessLine::idle(id, "root".to_owned(), "localhost".to_owned(), 0)
    }

    #[test]
    fn one_session_beyond_the_limit_may_log_in() {
        let clients = Clients::default();
        let code = |limit| clients.refusal(limit).map(|error| error.code);
        clients.registry().enter(line(1), 9).unwrap();
        assert_eq!(code(2), None);
        assert_eq!(code(1), None);
        assert_eq!(code(0), Some(ER_CON_COUNT_ERROR));
    }

    #[test]
    fn high_numbers_are_never_those_of_servers() {
        let high = ClientNumbers::High;
        for id in [1, 7, u64::from(HIGH_BIT) + 7, (1 << 31) + 7, (1 << 32) + 7] {
            assert!(high.includes(high.of(id).into()), "{id}");
            assert!(ClientNumbers::Low.includes(ClientNumbers::Low.of(id).into()));
        }
        assert_eq!(ClientNumbers::Low.of((1 << 32) + 7), 7);
        let server = u64::from(HIGH_BIT) - 1;
        assert!(!high.includes(7) && !high.includes(server) && !high.includes(1 << 31));
    }

    #[test]
    fn none_logs_in_once_the_server_shuts_down() {
        let clients = Clients::default();
        let session = clients.registry().enter(line(1), 1).unwrap();
        clients.dismiss();
        let code = clients.refusal(9).map(|error| error.code);
        assert_eq!(code, Some(ER_SERVER_SHUTDOWN));
        assert_eq!(session.order(), KillOrder::None);
        session.update(|line| line.command = "Query");
        assert_eq!(clients.kill_all(), 1);
        assert_eq!(session.order(), KillOrder::Connection);
        assert_eq!(clients.kill_all(), 0, "it was killed before");
        let leaving = clients.registry().enter(line(2), 2).unwrap();
        leaving.update(|line| line.command = LEAVING);
        assert_eq!(clients.kill_all(), 0, "it runs no statement");
    }
}
