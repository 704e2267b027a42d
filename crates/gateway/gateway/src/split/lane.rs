//! [`Lane`]: a session's connection to one server, and what it needs to be used.

use std::collections::BTreeMap;
use std::time::Duration;

use backend::{Message, Outcome, Product, QueryLimits, Server};
use env::Instant;
use errcode::ClientError;
use link::Limit;
use monitor::gtid::GtidPosition;
use monitor::gtid::mariadb::MariaDbPosition;
use monitor::gtid::mysql::MySqlSet;
use monitor::{Epoch, ServerState};
use router::{Command, History};
use wire::CommandByte;

use crate::connect::Held;

/// What the gateway asks on its own must be answered in this time.
const OWN_TIME_MAX: Duration = Duration::from_secs(60);

/// Answers to that are an OK or an error.
const OWN_BYTES_MAX: usize = 64 << 10;

/// See the module's head.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) held: Held,
    /// The server's when the connection was made.
    pub(super) epoch: Epoch,
    /// Number of the last command of the session that it has run.
    pub(super) applied: u64,
    /// The server was asked to tell changes of the session.
    is_set_up: bool,
    /// It tells each transaction that the session writes.
    pub(super) tells_writes: bool,
    /// When it was used last.
    pub(super) used_at: Instant,
    /// Statements that are prepared here, by the client's numbers.
    pub(super) prepared: BTreeMap<u32, Prepared>,
}

/// A statement on one server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prepared {
    /// The server's number.
    pub(super) id: u32,
    /// The server has been told the types of its parameters.
    pub(super) has_types: bool,
}

/// Why a lane cannot be used.
#[derive(Debug)]
pub(super) enum NotReady {
    /// The server is lost.
    Lost(String),
    /// It refuses what the session needs.
    Refused(ClientError),
}

const LIMITS: fn() -> QueryLimits = || QueryLimits {
    until: Limit::after(OWN_TIME_MAX),
    bytes_max: OWN_BYTES_MAX,
};

impl Lane {
    pub(super) fn new(held: Held) -> Lane {
        Lane {
            held,
            epoch: Epoch::default(),
            applied: 0,
            is_set_up: false,
            tells_writes: false,
            used_at: runtime::now(),
            prepared: BTreeMap::new(),
        }
    }

    /// The connection is as after its login; commands up to `applied` are not wanted.
    pub(super) fn begin_anew(&mut self, applied: u64) {
        self.applied = applied;
        self.is_set_up = false;
        self.prepared.clear();
    }

    /// Whether the server has closed it, or has said something unasked.
    pub(super) fn is_stale(&mut self) -> bool {
        self.held.server.is_stale()
    }

    /// Whether it can be used as it is.
    pub(super) fn is_right(&self, history: &History) -> bool {
        self.is_set_up && history.after(self.applied).is_none()
    }

    /// Puts it right: it tells changes, and has run the session's commands.
    pub(super) async fn put_right(
        &mut self,
        state: &ServerState,
        history: &History,
    ) -> Result<(), NotReady> {
        while let Some((number, command)) = history.after(self.applied) {
            self.run(command).await?;
            self.applied = number;
            if let Command::Query(text) = command
                && is_about_tracking(text)
            {
                self.is_set_up = false;
            }
        }
        if !self.is_set_up {
            self.epoch = state.epoch;
            self.set_up(state).await?;
            self.is_set_up = true;
        }
        Ok(())
    }

    /// The client has changed what the server tells of the session.
    pub(super) fn tells_otherwise(&mut self) {
        self.is_set_up = false;
    }

    /// Has the server tell changes of the session, and a Galera member read what others wrote.
    async fn set_up(&mut self, state: &ServerState) -> Result<(), NotReady> {
        let is_reader = state.galera.is_some() && !state.serves_writes();
        let text: &[u8] = match self.held.server.info().version.product {
            Product::MariaDb if is_reader => {
                b"SET session_track_state_change = ON, wsrep_sync_wait = 1"
            }
            Product::MariaDb => {
                b"SET session_track_state_change = ON, session_track_system_variables = \
                  CONCAT_WS(',', NULLIF(@@session_track_system_variables, ''), 'last_gtid')"
            }
            Product::MySql => {
                b"SET session_track_state_change = ON, session_track_gtids = 'OWN_GTID'"
            }
        };
        self.query(text).await?;
        // Without a binary log there is no position, and no replica either.
        self.tells_writes = state.position.as_ref().is_some_and(|it| !it.is_empty());
        Ok(())
    }

    async fn run(&mut self, command: &Command) -> Result<(), NotReady> {
        match command {
            Command::Query(text) => self.query(text).await,
            Command::InitDb(name) => self.send(CommandByte::INIT_DB, name).await,
            Command::SetOption(option) => {
                self.send(CommandByte::SET_OPTION, &option.to_le_bytes())
                    .await
            }
        }
    }

    async fn query(&mut self, text: &[u8]) -> Result<(), NotReady> {
        let outcomes = self.held.server.query(text, LIMITS()).await;
        for outcome in outcomes.map_err(lost)? {
            if let Outcome::Failed(error) = outcome {
                return Err(NotReady::Refused(error));
            }
        }
        Ok(())
    }

    async fn send(&mut self, byte: u8, body: &[u8]) -> Result<(), NotReady> {
        let server = &mut self.held.server;
        server.send(byte, body).await.map_err(lost)?;
        let verdict = server.receive_verdict(Limit::after(OWN_TIME_MAX)).await;
        verdict.map_err(|error| match error {
            backend::RequestError::Refused(error) => NotReady::Refused(error),
            error => lost(error),
        })
    }

    /// Up to where the server has written. `None` if it keeps no such position.
    pub(super) async fn position(&mut self) -> Result<Option<GtidPosition>, NotReady> {
        let product = self.held.server.info().version.product;
        let text: &[u8] = match product {
            Product::MariaDb => b"SELECT @@gtid_binlog_pos",
            Product::MySql => b"SELECT @@global.gtid_executed",
        };
        let outcomes = self.held.server.query(text, LIMITS()).await;
        let value = match outcomes.map_err(lost)?.into_iter().next() {
            Some(Outcome::Rows(rows)) => rows.rows.into_iter().flatten().flatten().next(),
            Some(Outcome::Failed(error)) => return Err(NotReady::Refused(error)),
            Some(Outcome::Done { .. }) | None => None,
        };
        let text = value.and_then(|it| String::from_utf8(it).ok());
        let position = text.and_then(|text| match product {
            Product::MariaDb => Some(GtidPosition::MariaDb(MariaDbPosition::parse(&text).ok()?)),
            Product::MySql => Some(GtidPosition::MySql(MySqlSet::parse(&text).ok()?)),
        });
        Ok(position.filter(|it| !it.is_empty()))
    }

    /// A statement was prepared here that the client has asked for.
    pub(super) fn note_prepared(&mut self, number: u32, id: u32) {
        let has_types = false;
        self.prepared.insert(number, Prepared { id, has_types });
    }

    /// Closes a statement, if it is prepared here.
    pub(super) async fn close_statement(&mut self, number: u32) {
        if let Some(prepared) = self.prepared.remove(&number) {
            let id = prepared.id.to_le_bytes();
            // Who is lost has closed it; the next use of the lane finds out.
            let _ = self.held.server.send(CommandByte::STMT_CLOSE, &id).await;
        }
    }

    /// Prepares a statement of the session here.
    pub(super) async fn prepare(&mut self, number: u32, text: &[u8]) -> Result<(), NotReady> {
        let id = prepare_on(&mut self.held.server, text).await?;
        let has_types = false;
        self.prepared.insert(number, Prepared { id, has_types });
        Ok(())
    }
}

/// Whether a text may change what the server tells of the session. Connector/J of MariaDB does.
pub(super) fn is_about_tracking(text: &[u8]) -> bool {
    let name = b"session_track";
    let mut places = text.windows(name.len());
    places.any(|place| place.eq_ignore_ascii_case(name))
}

/// Prepares a statement, and returns the server's number of it.
async fn prepare_on(server: &mut Server, text: &[u8]) -> Result<u32, NotReady> {
    let sent = server.send(CommandByte::STMT_PREPARE, text).await;
    sent.map_err(lost)?;
    let mut outcome = Err(NotReady::Lost("it did not answer".to_owned()));
    while let Some(received) = server
        .receive(Limit::after(OWN_TIME_MAX))
        .await
        .map_err(lost)?
    {
        match received.message() {
            Ok(Message::Prepared(prepared)) => outcome = Ok(prepared.statement_id),
            Ok(Message::Error(error)) => {
                outcome = Err(NotReady::Refused(error.to_client_error()));
            }
            Ok(_) => {}
            Err(error) => return Err(NotReady::Lost(error.to_string())),
        }
    }
    outcome
}

fn lost(error: backend::RequestError) -> NotReady {
    NotReady::Lost(error.to_string())
}
