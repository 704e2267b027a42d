//! [`Connection`]: a connection to a server that sessions use in turn.
//!
//! What it has of them, and what gives it the state of the next one, is [`ConnectionState`]'s to
//! say. Here that is sent, all at once, so being put right takes one round trip.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use auth::Random;
use backend::{
    Around, ConnectError, DetachedServer, Login, Outcome, Product, QueryLimits, RequestError,
    Server,
};
use connection_state::{ConnectionState, Needs, Origin, Role, Step};
use env::Instant;
use errcode::ClientError;
use front::RandomSource;
use link::{Limit, Resources};
use monitor::gtid::GtidPosition;
use monitor::gtid::mariadb::MariaDbPosition;
use monitor::gtid::mysql::MySqlSet;
use monitor::{Epoch, ServerState};
use wire::{Capabilities, CommandByte};

pub(crate) mod common;
mod prepared;
mod warnings;

pub(crate) use prepared::StatementKey;
use prepared::{Shelf, prepared_max};
pub(crate) use warnings::Warnings;

/// What the gateway asks on its own must be answered in this time.
const OWN_TIME_MAX: Duration = Duration::from_secs(60);

/// Answers to that are an OK, an error, or a few rows.
const OWN_BYTES_MAX: usize = 64 << 10;

/// A connection that was not used for so long is looked at before it is used.
const STALE_AFTER: Duration = Duration::from_secs(1);

/// Uses tables, and so clears the warnings of a connection.
const WASH: &[u8] = b"DO (SELECT 1 FROM (SELECT 1) t)";

/// The role of a server as its monitor sees it.
pub(crate) fn role_of(state: &ServerState) -> Role {
    match state.galera.is_some() && !state.serves_writes() {
        true => Role::GaleraReader,
        false => Role::Other,
    }
}

/// See the module's head. Of one worker.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) server: Server,
    known: Known,
}

/// A connection between two workers. Few are, so what a session is granted has no room for it.
#[derive(Debug)]
pub(crate) struct Resting(Box<(DetachedServer, Known)>);

/// A worker's part of the pool.
pub(crate) type PoolFront = pool::Front<Box<Connection>, Resting>;

/// What is known of a connection. It goes with it from worker to worker.
#[derive(Debug)]
struct Known {
    session: ConnectionState,
    /// It tells each transaction that the session writes.
    tells_writes: bool,
    /// The server's when the connection was set up.
    epoch: Epoch,
    /// When it was used last.
    used_at: Instant,
    /// Its prepared statements.
    shelf: Shelf,
}

/// Why a connection cannot be used.
#[derive(Debug)]
pub(crate) enum NotReady {
    /// The server is lost.
    Lost(String),
    /// It refuses what the session needs.
    Refused(ClientError),
}

impl From<RequestError> for NotReady {
    fn from(error: RequestError) -> NotReady {
        match error {
            RequestError::Refused(error) => NotReady::Refused(error),
            error => NotReady::Lost(error.to_string()),
        }
    }
}

fn limits() -> QueryLimits {
    QueryLimits {
        until: Limit::after(OWN_TIME_MAX),
        bytes_max: OWN_BYTES_MAX,
    }
}

impl Resting {
    /// Makes it a connection of this worker.
    pub(crate) fn attach(self, resources: &Rc<Resources>) -> Result<Box<Connection>, RequestError> {
        let (server, known) = *self.0;
        let server = server.attach(resources)?;
        Ok(Box::new(Connection { server, known }))
    }
}

impl Connection {
    /// Of a server that has just let the session in, and has so many connections at the most.
    pub(crate) fn new(
        server: Server,
        origin: &Arc<Origin>,
        (epoch, connections_max): (Epoch, u32),
    ) -> Box<Connection> {
        let known = Known {
            session: ConnectionState::new(origin),
            tells_writes: false,
            epoch,
            used_at: runtime::now(),
            shelf: Shelf::new(prepared_max(connections_max)),
        };
        Box::new(Connection { server, known })
    }

    /// Takes it off its worker.
    pub(crate) async fn detach(self) -> Result<Resting, RequestError> {
        let server = self.server.detach().await?;
        Ok(Resting(Box::new((server, self.known))))
    }

    /// Whether it was made before the server was lost or changed its role.
    pub(crate) fn is_older(&self, epoch: Epoch) -> bool {
        self.known.epoch != epoch
    }

    /// Whether it was not used for so long that its server may have closed it.
    pub(crate) fn is_long_idle(&self) -> bool {
        STALE_AFTER <= runtime::now().since(self.known.used_at)
    }

    /// Whether its server has closed it, or has said something unasked. One that was used a moment
    /// ago is not looked at.
    pub(crate) fn is_stale(&mut self) -> bool {
        self.is_long_idle() && self.server.is_stale()
    }

    /// It was used just now.
    pub(crate) fn is_used(&mut self) {
        self.known.used_at = runtime::now();
    }

    /// Whether the server tells each transaction that the session writes.
    pub(crate) fn tells_writes(&self) -> bool {
        self.known.tells_writes
    }

    /// What it has of the sessions that used it.
    pub(crate) fn state(&self) -> &ConnectionState {
        &self.known.session
    }

    /// The same, for a caller that has to know what happens.
    pub(crate) fn state_mut(&mut self) -> &mut ConnectionState {
        &mut self.known.session
    }

    /// Whether it can be used as it is.
    pub(crate) fn suits(&self, needs: &Needs<'_>) -> bool {
        self.known.session.suits(needs)
    }

    /// Gives it the state of a session. `login` is the session's, with random bytes for that.
    ///
    /// # Errors
    ///
    /// The connection can only be closed.
    pub(crate) async fn put_right(
        &mut self,
        login: (&Login, &RandomSource),
        needs: Needs<'_>,
        state: &ServerState,
    ) -> Result<(), NotReady> {
        let mut right = self.known.session.clone();
        let steps = right.put_right(&needs);
        // Until all is done.
        self.known.session.forget();
        let logs_in = steps.first() == Some(&Step::LogIn);
        if logs_in || steps.first() == Some(&Step::Reset) {
            self.known.shelf.clear();
        }
        if steps.iter().any(|it| matches!(it, Step::SetUp(_))) {
            self.known.epoch = state.epoch;
            // Without a binary log there is no position, and no replica either.
            self.known.tells_writes = state.position.as_ref().is_some_and(|it| !it.is_empty());
        }
        let set_id = needs
            .reads
            .insert_id
            .map(|id| format!("SET last_insert_id = {id}"));
        let set_id = set_id.as_deref().unwrap_or_default();
        let commands = steps.iter().filter_map(|step| self.said(*step, set_id));
        let sent: Vec<_> = commands.collect();
        let until = Limit::after(OWN_TIME_MAX);
        match logs_in {
            true => self.log_in_anew(login, &sent, until).await?,
            false => self.server.send_all(&sent, until).await?,
        }
        self.known.session = right;
        Ok(())
    }

    /// The command for a step. A login has none; `set_id` is what sets LAST_INSERT_ID().
    fn said<'a>(&self, step: Step<'a>, set_id: &'a str) -> Option<(u8, &'a [u8])> {
        let command: (u8, &[u8]) = match step {
            Step::LogIn => return None,
            Step::Reset => (CommandByte::RESET_CONNECTION, b""),
            Step::Use(name) => (CommandByte::INIT_DB, name.as_bytes()),
            Step::DefaultOption => (CommandByte::SET_OPTION, self.login_option()),
            Step::Run(byte, text) => (byte, text),
            Step::SetUp(role) => (CommandByte::QUERY, self.set_up_text(role)),
            Step::InsertId(_) => (CommandByte::QUERY, set_id.as_bytes()),
            Step::ClearWarnings => (CommandByte::QUERY, WASH),
        };
        Some(command)
    }

    /// Logs in anew, and runs commands behind that.
    async fn log_in_anew(
        &mut self,
        (login, random): (&Login, &RandomSource),
        behind: &[(u8, &[u8])],
        until: Limit,
    ) -> Result<(), NotReady> {
        // COM_CHANGE_USER leaves the role, a default one included, to the next user
        // (MariaDB 10.11).
        let no_role: &[(u8, &[u8])] = &[(CommandByte::QUERY, b"SET ROLE NONE")];
        let before = match self.server.info().version.product {
            Product::MariaDb => no_role,
            Product::MySql => &[],
        };
        let mut fill = |bytes: &mut [u8]| random(bytes);
        let mut random = Random(&mut fill);
        let around = Around { before, behind };
        let changed = self
            .server
            .change_user(login, around, until, &mut random)
            .await;
        changed.map_err(|error| match error {
            ConnectError::Refused(error) => NotReady::Refused(error),
            error => NotReady::Lost(error.with_causes()),
        })
    }

    /// The option that its login has set.
    fn login_option(&self) -> &'static [u8] {
        let capabilities = self.server.info().capabilities;
        match capabilities.contains(Capabilities::MULTI_STATEMENTS) {
            true => &[0, 0],
            false => &[1, 0],
        }
    }

    /// Has the server tell changes of the session, and a Galera member read what others wrote.
    fn set_up_text(&self, role: Role) -> &'static [u8] {
        match self.server.info().version.product {
            Product::MariaDb if role == Role::GaleraReader => {
                b"SET session_track_state_change = ON, wsrep_sync_wait = 1"
            }
            Product::MariaDb => {
                b"SET session_track_state_change = ON, session_track_system_variables = \
                  CONCAT_WS(',', NULLIF(@@session_track_system_variables, ''), \
                  'character_set_client', 'last_gtid')"
            }
            Product::MySql => {
                b"SET session_track_state_change = ON, session_track_gtids = 'OWN_GTID'"
            }
        }
    }

    /// The first row of the answer to a question of the gateway. Answers are ASCII. A session that
    /// gets its results as UCS-2 or the like has zeros between their letters, which are left out.
    async fn ask(&mut self, text: &[u8]) -> Result<Vec<Option<Vec<u8>>>, NotReady> {
        let outcomes = self.server.query(text, limits()).await?;
        match outcomes.into_iter().next() {
            Some(Outcome::Rows(rows)) => {
                let mut row = rows.rows.into_iter().next().unwrap_or_default();
                let values = row.iter_mut().flatten();
                values.for_each(|value| value.retain(|byte| *byte != 0));
                Ok(row)
            }
            Some(Outcome::Failed(error)) => Err(NotReady::Refused(error)),
            Some(Outcome::Done { .. }) | None => Ok(Vec::new()),
        }
    }

    /// The first value of that row.
    async fn ask_value(&mut self, text: &[u8]) -> Result<Option<Vec<u8>>, NotReady> {
        Ok(self.ask(text).await?.into_iter().flatten().next())
    }

    /// Runs a statement of the gateway's own, whose result is only whether it succeeds.
    pub(crate) async fn run(&mut self, text: &str) -> Result<(), NotReady> {
        self.ask(text.as_bytes()).await.map(|_| ())
    }

    /// Up to where the server has written. `None` if it keeps no such position.
    pub(crate) async fn position(&mut self) -> Result<Option<GtidPosition>, NotReady> {
        let product = self.server.info().version.product;
        let value = self
            .ask_value(position_question(product).as_bytes())
            .await?;
        let text = value.and_then(|it| String::from_utf8(it).ok());
        Ok(text.and_then(|it| position_of(product, &it)))
    }

    /// Whether the connection has a user lock, by a query that says 0 or 1.
    pub(crate) async fn holds_lock(&mut self, question: &[u8]) -> Result<bool, NotReady> {
        let value = self.ask_value(question).await?;
        Ok(value.is_none_or(|it| it != b"0"))
    }

    /// Waits until the server has applied what was written up to a position, for so long. Returns
    /// whether it has.
    pub(crate) async fn wait_for(
        &mut self,
        position: &GtidPosition,
        limit: Duration,
    ) -> Result<bool, NotReady> {
        let function = match position {
            GtidPosition::MariaDb(_) => "MASTER_GTID_WAIT",
            GtidPosition::MySql(_) => "WAIT_FOR_EXECUTED_GTID_SET",
        };
        let seconds = limit.as_secs_f64();
        let text = format!("SELECT {function}('{position}', {seconds}) LIMIT 1");
        let value = self.ask_value(text.as_bytes()).await?;
        Ok(value.is_some_and(|it| it == b"0"))
    }

    /// FOUND_ROWS() and LAST_INSERT_ID(). The LIMIT counts, whatever `sql_select_limit` is.
    pub(crate) async fn numbers(&mut self) -> Result<(u64, u64), NotReady> {
        let row = self
            .ask(b"SELECT FOUND_ROWS(), LAST_INSERT_ID() LIMIT 1")
            .await?;
        let number = |value: &Option<Vec<u8>>| str::from_utf8(value.as_ref()?).ok()?.parse().ok();
        let mut numbers = row.iter().filter_map(number);
        let (Some(found), Some(id)) = (numbers.next(), numbers.next()) else {
            return Err(NotReady::Lost("it does not tell two numbers".to_owned()));
        };
        self.known.session.learn_insert_id(id);
        Ok((found, id))
    }

    /// Whether the session has made temporary tables here, also such as are gone again. MySQL
    /// reports all of them.
    pub(crate) async fn has_made_tables(&mut self) -> Result<bool, NotReady> {
        if self.server.info().version.product == Product::MySql {
            return Ok(false);
        }
        let row = self
            .ask(b"SHOW SESSION STATUS LIKE 'Com_create_temporary_table'")
            .await?;
        // A session may have set `sql_select_limit` to 0: then there is no row.
        Ok(row.get(1) != Some(&Some(b"0".to_vec())))
    }

    /// The warnings of its last statement.
    pub(crate) async fn warnings(&mut self) -> Result<Warnings, NotReady> {
        let until = Limit::after(OWN_TIME_MAX);
        Ok(Warnings::ask(&mut self.server, until, OWN_BYTES_MAX).await?)
    }
}

/// What tells up to where a server has written.
pub(crate) fn position_question(product: Product) -> &'static str {
    match product {
        Product::MariaDb => "SELECT @@gtid_binlog_pos LIMIT 1",
        Product::MySql => "SELECT @@global.gtid_executed LIMIT 1",
    }
}

/// The position that a server of this kind names so. `None` if it names none.
pub(crate) fn position_of(product: Product, text: &str) -> Option<GtidPosition> {
    let position = match product {
        Product::MariaDb => GtidPosition::MariaDb(MariaDbPosition::parse(text).ok()?),
        Product::MySql => GtidPosition::MySql(MySqlSet::parse(text).ok()?),
    };
    Some(position).filter(|it| !it.is_empty())
}
