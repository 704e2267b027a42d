//! [`Cluster`]: the servers as they are, beside what a monitor knows of them.
//!
//! A connection has what a session may leave on it: an open transaction, a variable, or state of
//! other kinds.
//! Writes are numbered; a replica has applied those up to a number.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use backend::ServerVersion;
use connection_state::{ConnectionState, Origin, Step};
use env::Instant;
use monitor::gtid::GtidPosition;
use monitor::gtid::mariadb::MariaDbPosition;
use monitor::{
    Access, DownReason, Facts, Failure, Observation, Rank, ServerEntry, SourceAddress, Stream,
    Streams, Thread,
};
use pool::Login;
use runtime::Address;

/// The servers, as all connections see them.
pub(super) type Shared = Rc<RefCell<Cluster>>;

/// See the module's head.
#[derive(Debug)]
pub(super) struct Cluster {
    servers: Vec<Server>,
    /// The one that may be written to.
    primary: usize,
    connections: BTreeMap<u64, State>,
    /// Connections that were ever opened.
    opened: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    Up,
    Down,
}

#[derive(Debug)]
struct Server {
    health: Health,
    /// How often it was started.
    starts: u64,
    /// The last write that it has.
    applied: u64,
}

/// What a server keeps for a connection.
#[derive(Debug)]
struct State {
    place: usize,
    /// The server was stopped meanwhile.
    health: Health,
    open: Option<Open>,
    /// A lock or a temporary table.
    has_more: bool,
    /// As whom it is logged in.
    login: Login,
    /// The variable `@a`.
    variable: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    session: usize,
    access: Access,
    has_written: bool,
}

/// What a statement does on its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    Read,
    Write,
    Begin,
    BeginReadOnly,
    Commit,
    RollBack,
    /// A change of a definition, which commits.
    Define,
    TakeLock,
    FreeLocks,
    /// SET @a.
    Set(u64),
}

/// What a server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Done {
        /// The number of what was committed.
        written: Option<u64>,
    },
    /// It may not be written to.
    Refused,
    /// The connection is lost.
    Lost,
}

/// A connection; closed when it is dropped.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) number: u64,
    pub(super) login: Login,
    /// What the gateway knows of it.
    pub(super) state: ConnectionState,
    cluster: Shared,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.cluster.borrow_mut().connections.remove(&self.number);
    }
}

impl Connection {
    /// Opens one; `None` if the server does not answer.
    pub(super) fn open(
        cluster: &Shared,
        place: usize,
        (login, origin): (Login, &Arc<Origin>),
    ) -> Option<Connection> {
        let mut inner = cluster.borrow_mut();
        if inner.servers[place].health == Health::Down {
            return None;
        }
        inner.opened += 1;
        let number = inner.opened;
        let state = State {
            place,
            health: Health::Up,
            open: None,
            has_more: false,
            login,
            variable: None,
        };
        inner.connections.insert(number, state);
        drop(inner);
        Some(Connection {
            number,
            login,
            state: ConnectionState::new(origin),
            cluster: Rc::clone(cluster),
        })
    }
}

impl Cluster {
    pub(super) fn new(server_count: usize) -> Shared {
        let server = |_| Server {
            health: Health::Up,
            starts: 1,
            applied: 0,
        };
        Rc::new(RefCell::new(Cluster {
            servers: (0..server_count).map(server).collect(),
            primary: 0,
            connections: BTreeMap::new(),
            opened: 0,
        }))
    }

    /// Carries a statement of a session out.
    pub(super) fn carry_out(&mut self, number: u64, session: usize, deed: Deed) -> Answer {
        let Some(state) = self.connections.get_mut(&number) else {
            return Answer::Lost;
        };
        if state.health == Health::Down {
            return Answer::Lost;
        }
        let is_primary = state.place == self.primary;
        let may_write = is_primary && state.open.is_none_or(|it| it.access == Access::Writable);
        if matches!(deed, Deed::Write | Deed::Define) && !may_write {
            return Answer::Refused;
        }
        let had_written = state.open.is_some_and(|it| it.has_written);
        let mut commits = had_written;
        match deed {
            Deed::Read => commits = false,
            Deed::Write => match &mut state.open {
                Some(open) => {
                    open.has_written = true;
                    commits = false;
                }
                None => commits = true,
            },
            Deed::Begin | Deed::BeginReadOnly => {
                let access = match deed {
                    Deed::Begin => Access::Writable,
                    _ => Access::ReadOnly,
                };
                state.open = Some(Open {
                    session,
                    access,
                    has_written: false,
                });
            }
            Deed::Commit => state.open = None,
            Deed::RollBack => {
                state.open = None;
                commits = false;
            }
            Deed::Define => {
                state.open = None;
                commits = true;
            }
            Deed::TakeLock | Deed::FreeLocks => {
                state.has_more = deed == Deed::TakeLock;
                commits = false;
            }
            Deed::Set(value) => {
                state.variable = Some(value);
                commits = false;
            }
        }
        let written = (commits && is_primary).then(|| {
            let server = &mut self.servers[self.primary];
            server.applied += 1;
            server.applied
        });
        Answer::Done { written }
    }

    /// Carries out a step that puts a connection right for a session of this login.
    pub(super) fn put_right(&mut self, number: u64, login: Login, step: &Step<'_>) {
        let Some(state) = self.connections.get_mut(&number) else {
            return;
        };
        match step {
            Step::LogIn => {
                state.login = login;
                state.variable = None;
            }
            Step::Reset => state.variable = None,
            Step::Run(_, text) => state.variable = variable_in(text),
            Step::Use(_)
            | Step::DefaultOption
            | Step::SetUp(_)
            | Step::InsertId(_)
            | Step::ClearWarnings => {}
        }
    }

    /// As whom a connection is logged in, and its variable; `None` if it is lost.
    pub(super) fn session_of(&self, number: u64) -> Option<(Login, Option<u64>)> {
        let state = self.connections.get(&number)?;
        (state.health == Health::Up).then_some((state.login, state.variable))
    }

    /// The session whose transaction is open on a connection.
    pub(super) fn open_for(&self, number: u64) -> Option<usize> {
        Some(self.connections.get(&number)?.open?.session)
    }

    /// Whether a connection has nothing that another session could meet.
    pub(super) fn is_clean(&self, number: u64) -> bool {
        let state = self.connections.get(&number);
        state.is_none_or(|it| it.open.is_none() && !it.has_more)
    }

    pub(super) fn is_lost(&self, number: u64) -> bool {
        let state = self.connections.get(&number);
        state.is_none_or(|it| it.health == Health::Down)
    }

    /// The server of a connection.
    pub(super) fn place_of(&self, number: u64) -> usize {
        self.connections[&number].place
    }

    /// Connections to a server that are not closed.
    pub(super) fn count(&self, place: usize) -> u64 {
        let of_it = self.connections.values().filter(|it| it.place == place);
        stdx::to_u64(of_it.count())
    }

    /// Transactions that are open.
    pub(super) fn open_count(&self) -> usize {
        let open = self.connections.values().filter(|it| it.open.is_some());
        open.count()
    }

    pub(super) fn applied(&self, place: usize) -> u64 {
        self.servers[place].applied
    }

    /// A server stops: what is open on it is rolled back.
    pub(super) fn stop(&mut self, place: usize) {
        self.servers[place].health = Health::Down;
        for state in self.connections.values_mut() {
            if state.place == place {
                state.health = Health::Down;
                state.open = None;
                state.has_more = false;
            }
        }
    }

    pub(super) fn start(&mut self, place: usize) {
        let server = &mut self.servers[place];
        if server.health == Health::Down {
            server.health = Health::Up;
            server.starts += 1;
        }
    }

    /// Another server takes the writes, once it has all of them. The one before rolls back what
    /// is open there, as one does that is made read-only.
    pub(super) fn fail_over(&mut self, place: usize) {
        if self.servers[place].health == Health::Up && place != self.primary {
            let before = self.primary;
            let is_up = self.servers[before].health == Health::Up;
            self.replicate(place);
            self.primary = place;
            self.stop(before);
            if is_up {
                self.start(before);
            }
        }
    }

    /// A replica applies what the primary has.
    pub(super) fn replicate(&mut self, place: usize) {
        self.servers[place].applied = self.servers[self.primary].applied;
    }

    /// What checks of all servers see.
    pub(super) fn observe(&self, now: Instant) -> Vec<Observation> {
        let places = 0..self.servers.len();
        places.map(|place| self.observe_one(place, now)).collect()
    }

    fn observe_one(&self, place: usize, now: Instant) -> Observation {
        let server = &self.servers[place];
        if server.health == Health::Down {
            return Observation::Failed(Failure {
                reason: DownReason::Unreachable,
                error: "it is stopped".to_owned(),
            });
        }
        let (access, streams) = match place == self.primary {
            true => (Access::Writable, Vec::new()),
            false => (Access::ReadOnly, vec![stream(self.primary)]),
        };
        Observation::Read(Box::new(Facts {
            read_at: now,
            version: ServerVersion::parse(b"10.11.6-MariaDB"),
            // Less after each start, so that each is seen.
            uptime_s: Some(UPTIME_S / server.starts),
            number: u32::from(index(place)) + 1,
            uid: None,
            access,
            position: Some(position(server.applied)),
            replicated: None,
            streams: Streams::Known(streams),
            galera: None,
        }))
    }
}

/// The value in a text of [`set`].
fn variable_in(text: &[u8]) -> Option<u64> {
    str::from_utf8(text).ok()?.strip_prefix(SET)?.parse().ok()
}

const SET: &str = "SET @a = ";

/// Sets the variable.
pub(super) fn set(value: u64) -> String {
    format!("{SET}{value}")
}

/// A simulation takes less than the slack that the judge of uptimes allows.
const UPTIME_S: u64 = 1 << 40;

/// The write of this number.
pub(super) fn gtid(written: u64) -> String {
    format!("0-1-{written}")
}

fn position(applied: u64) -> GtidPosition {
    let text = if applied == 0 {
        String::new()
    } else {
        gtid(applied)
    };
    GtidPosition::MariaDb(MariaDbPosition::parse(&text).expect("a position of one domain"))
}

fn stream(source: usize) -> Stream {
    Stream {
        source: SourceAddress {
            host: "127.0.0.1".to_owned(),
            port: port(source),
        },
        source_number: u32::from(index(source)) + 1,
        receiver: Thread::Running,
        applier: Thread::Running,
        lag_s: Some(0),
        error: String::new(),
    }
}

/// Its entry in a configuration.
pub(super) fn entry(place: usize) -> ServerEntry {
    ServerEntry {
        name: Arc::from(name(place)),
        address: Address::Tcp(([127, 0, 0, 1], port(place)).into()),
        rank: Rank(0),
    }
}

pub(super) fn name(place: usize) -> String {
    format!("db{place}")
}

fn port(place: usize) -> u16 {
    index(place) + 1
}

pub(super) fn index(place: usize) -> u16 {
    u16::try_from(place).expect("a few servers")
}
