//! [`Connection`]: a connection to a server that sessions use in turn, and the state that it has.
//!
//! ```text
//! what the session before was given  --put_right-->  what the session needs that has it now
//!    the same                  nothing to do
//!    the first commands of it  the rest of the commands
//!    another, or unknown       COM_RESET_CONNECTION (or COM_CHANGE_USER), then all commands
//! ```
//!
//! All that it needs is sent at once, so being put right takes one round trip.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use auth::Random;
use backend::{
    Around, ConnectError, DetachedServer, Login, Outcome, Product, QueryLimits, RequestError,
    Server,
};
use env::Instant;
use errcode::ClientError;
use front::RandomSource;
use link::{Limit, Resources};
use monitor::gtid::GtidPosition;
use monitor::gtid::mariadb::MariaDbPosition;
use monitor::gtid::mysql::MySqlSet;
use monitor::{Epoch, ServerState};
use router::CommandList;
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

/// What a login decides of a session beside the account.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    /// The database that is in use before the session's commands.
    pub(crate) database: Option<String>,
    /// By which the server knows the character set.
    pub(crate) collation: u8,
}

/// What a session needs on a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Needs<'a> {
    pub(crate) origin: &'a Arc<Origin>,
    pub(crate) commands: &'a CommandList,
    /// The server has this role now.
    pub(crate) role: Role,
    /// What its next statement reads of earlier ones.
    pub(crate) reads: Reads,
}

/// What a server is, as far as its connections are set up for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A member of a Galera cluster that is read from: it waits for what others have written.
    GaleraReader,
    /// Any other.
    Other,
}

impl Role {
    /// Of a server as its monitor sees it.
    pub(crate) fn of(state: &ServerState) -> Role {
        match state.galera.is_some() && !state.serves_writes() {
            true => Role::GaleraReader,
            false => Role::Other,
        }
    }
}

/// What a statement reads that a connection may have of another session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Reads {
    /// Warnings, of which its session has none.
    pub(crate) warnings: bool,
    /// LAST_INSERT_ID(), which is this in its session.
    pub(crate) insert_id: Option<u64>,
}

/// See the module's head. Of one worker.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) server: Server,
    state: State,
}

/// A connection between two workers. Few are, so what a session is granted has no room for it.
#[derive(Debug)]
pub(crate) struct Resting(Box<(DetachedServer, State)>);

/// A worker's part of the pool.
pub(crate) type PoolFront = pool::Front<Box<Connection>, Resting>;

/// What is known of a connection. It goes with it from worker to worker.
#[derive(Debug)]
struct State {
    /// `None`: it has to be reset before it is used.
    given: Option<Given>,
    /// The collation that its login named.
    login_collation: u8,
    /// It is logged in as somebody else.
    is_foreign: bool,
    /// As what the server was asked to tell changes of the session; `None` if it was not.
    set_up: Option<Role>,
    /// It tells each transaction that the session writes.
    tells_writes: bool,
    /// The server's when the connection was set up.
    epoch: Epoch,
    /// When it was used last.
    used_at: Instant,
    /// LAST_INSERT_ID(); `None` if it is not known.
    insert_id: Option<u64>,
    /// Warnings may be left of any session.
    has_warnings: bool,
    /// COM_SET_OPTION has run. What it has set outlives COM_RESET_CONNECTION and COM_CHANGE_USER.
    has_option: bool,
    /// SET ROLE may have run, which outlives COM_RESET_CONNECTION.
    has_role: bool,
    /// Its prepared statements.
    shelf: Shelf,
}

/// What a connection has run since its login or its reset.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Given {
    origin: Arc<Origin>,
    commands: CommandList,
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
        let (server, state) = *self.0;
        let server = server.attach(resources)?;
        Ok(Box::new(Connection { server, state }))
    }
}

impl Connection {
    /// Of a server that has just let the session in, and has so many connections at the most.
    pub(crate) fn new(
        server: Server,
        origin: &Arc<Origin>,
        (epoch, connections_max): (Epoch, u32),
    ) -> Box<Connection> {
        let state = State {
            given: Some(Given {
                origin: Arc::clone(origin),
                commands: CommandList::default(),
            }),
            login_collation: origin.collation,
            is_foreign: false,
            set_up: None,
            tells_writes: false,
            epoch,
            used_at: runtime::now(),
            insert_id: Some(0),
            has_warnings: false,
            has_option: false,
            has_role: false,
            shelf: Shelf::new(prepared_max(connections_max)),
        };
        Box::new(Connection { server, state })
    }

    /// Takes it off its worker.
    pub(crate) async fn detach(self) -> Result<Resting, RequestError> {
        let server = self.server.detach().await?;
        Ok(Resting(Box::new((server, self.state))))
    }

    /// Whether it was made before the server was lost or changed its role.
    pub(crate) fn is_older(&self, epoch: Epoch) -> bool {
        self.state.epoch != epoch
    }

    /// Whether it was not used for so long that its server may have closed it.
    pub(crate) fn is_long_idle(&self) -> bool {
        STALE_AFTER <= runtime::now().since(self.state.used_at)
    }

    /// Whether its server has closed it, or has said something unasked. One that was used a moment
    /// ago is not looked at.
    pub(crate) fn is_stale(&mut self) -> bool {
        self.is_long_idle() && self.server.is_stale()
    }

    /// It was used just now.
    pub(crate) fn is_used(&mut self) {
        self.state.used_at = runtime::now();
    }

    /// Whether the server tells each transaction that the session writes.
    pub(crate) fn tells_writes(&self) -> bool {
        self.state.tells_writes
    }

    /// Nothing is known of its session any more.
    pub(crate) fn forget_state(&mut self) {
        self.state.given = None;
    }

    /// A statement may have set a role unseen.
    pub(crate) fn may_have_role(&mut self) {
        self.state.has_role = true;
    }

    /// It belongs to another account than the session that has it now.
    pub(crate) fn is_of_another(&mut self) {
        self.state.given = None;
        self.state.is_foreign = true;
    }

    /// The session's commands have run here as they came.
    pub(crate) fn has_run(&mut self, commands: &CommandList) {
        if let Some(given) = &mut self.state.given {
            given.commands = commands.clone();
        }
        self.state.has_option |= sets_option(commands);
        self.state.has_role |= commands.iter().any(|(_, text)| is_about_role(text));
    }

    /// The client has changed what the server tells of the session.
    pub(crate) fn tells_otherwise(&mut self) {
        self.state.set_up = None;
    }

    /// A statement has left warnings here.
    pub(crate) fn has_warnings(&mut self) {
        self.state.has_warnings = true;
    }

    /// Whether LAST_INSERT_ID() is known to be this.
    pub(crate) fn has_insert_id(&self, id: u64) -> bool {
        self.state.insert_id == Some(id)
    }

    /// LAST_INSERT_ID() may be another one now. Returns what it was, if that was known.
    pub(crate) fn forget_insert_id(&mut self) -> Option<u64> {
        self.state.insert_id.take()
    }

    /// Whether it can be used as it is.
    pub(crate) fn suits(&self, needs: &Needs<'_>) -> bool {
        let is_given =
            self.state.given.as_ref().is_some_and(|it| {
                it.commands == *needs.commands && is_same(&it.origin, needs.origin)
            });
        is_given && self.state.set_up == Some(needs.role) && !self.is_read_wrongly(needs.reads)
    }

    /// Whether what a statement reads of earlier ones is another session's here.
    pub(crate) fn is_read_wrongly(&self, reads: Reads) -> bool {
        let is_other = reads.insert_id.is_some() && reads.insert_id != self.state.insert_id;
        is_other || reads.warnings && self.state.has_warnings
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
        let set_id;
        let mut sent: Vec<(u8, &[u8])> = Vec::new();
        let given = self.known(&needs).cloned();
        let known = given
            .as_ref()
            .and_then(|given| needs.commands.behind(&given.commands));
        let must_log_in = known.is_none() && self.is_of_another_login(needs.origin);
        match known {
            Some(commands) => sent.extend(commands),
            None if must_log_in => {
                sent.extend(self.default_option());
                sent.extend(needs.commands.iter());
                self.begin_anew();
            }
            None => {
                sent.push((CommandByte::RESET_CONNECTION, b""));
                if let Some(name) = &needs.origin.database {
                    sent.push((CommandByte::INIT_DB, name.as_bytes()));
                }
                sent.extend(self.default_option());
                sent.extend(needs.commands.iter());
                self.begin_anew();
            }
        }
        if sent.iter().any(|(_, text)| is_about_tracking(text)) {
            self.state.set_up = None;
        }
        if self.state.set_up.is_none() {
            sent.push((CommandByte::QUERY, self.set_up_text(needs.role)));
            self.state.epoch = state.epoch;
            // Without a binary log there is no position, and no replica either.
            self.state.tells_writes = state.position.as_ref().is_some_and(|it| !it.is_empty());
        }
        if let Some(id) = needs.reads.insert_id
            && self.state.insert_id != Some(id)
        {
            set_id = format!("SET last_insert_id = {id}");
            sent.push((CommandByte::QUERY, set_id.as_bytes()));
            self.state.insert_id = Some(id);
        }
        if needs.reads.warnings && self.state.has_warnings {
            sent.push((CommandByte::QUERY, WASH));
            self.state.has_warnings = false;
        }
        let until = Limit::after(OWN_TIME_MAX);
        match must_log_in {
            true => self.log_in_anew(login, &sent, until).await?,
            false => self.server.send_all(&sent, until).await?,
        }
        self.state.has_option |= sets_option(needs.commands);
        self.state.has_role |= sent.iter().any(|(_, text)| is_about_role(text));
        self.state.set_up = Some(needs.role);
        self.state.given = Some(Given {
            origin: Arc::clone(needs.origin),
            commands: needs.commands.clone(),
        });
        Ok(())
    }

    /// What it has been given, if that is the beginning of what a session needs.
    fn known(&self, needs: &Needs<'_>) -> Option<&Given> {
        let is_of_role = self.state.set_up.is_none_or(|role| role == needs.role);
        let begins = |given: &&Given| {
            let commands = needs.commands.behind(&given.commands);
            is_same(&given.origin, needs.origin) && commands.is_some()
        };
        self.state
            .given
            .as_ref()
            .filter(|_| is_of_role)
            .filter(begins)
    }

    /// Whether it has to be reset for a session.
    pub(crate) fn must_begin_anew(&self, needs: &Needs<'_>) -> bool {
        self.known(needs).is_none()
    }

    /// Whether it has to log in anew for a session.
    pub(crate) fn must_log_in(&self, needs: &Needs<'_>) -> bool {
        self.must_begin_anew(needs) && self.is_of_another_login(needs.origin)
    }

    /// Whether only a login gives it this origin. COM_RESET_CONNECTION keeps the account, the role
    /// and the database, and brings back the character set of the login.
    fn is_of_another_login(&self, origin: &Origin) -> bool {
        self.state.is_foreign
            || self.state.has_role
            || origin.database.is_none()
            || self.state.login_collation != origin.collation
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
        })?;
        self.state.is_foreign = false;
        self.state.has_role = false;
        self.state.login_collation = login.collation;
        Ok(())
    }

    /// The option of the login, if it was changed.
    fn default_option(&mut self) -> Option<(u8, &'static [u8])> {
        let is_on = self
            .server
            .info()
            .capabilities
            .contains(Capabilities::MULTI_STATEMENTS);
        let option: &[u8] = if is_on { &[0, 0] } else { &[1, 0] };
        let is_changed = std::mem::take(&mut self.state.has_option);
        is_changed.then_some((CommandByte::SET_OPTION, option))
    }

    /// The connection is, or will be, as after a login.
    fn begin_anew(&mut self) {
        self.state.given = None;
        self.state.set_up = None;
        self.state.insert_id = Some(0);
        self.state.has_warnings = false;
        self.state.shelf.clear();
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
        let text: &[u8] = match product {
            Product::MariaDb => b"SELECT @@gtid_binlog_pos LIMIT 1",
            Product::MySql => b"SELECT @@global.gtid_executed LIMIT 1",
        };
        let value = self.ask_value(text).await?;
        let text = value.and_then(|it| String::from_utf8(it).ok());
        let position = text.and_then(|text| match product {
            Product::MariaDb => Some(GtidPosition::MariaDb(MariaDbPosition::parse(&text).ok()?)),
            Product::MySql => Some(GtidPosition::MySql(MySqlSet::parse(&text).ok()?)),
        });
        Ok(position.filter(|it| !it.is_empty()))
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
        self.state.insert_id = Some(id);
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

fn is_same(one: &Arc<Origin>, other: &Arc<Origin>) -> bool {
    Arc::ptr_eq(one, other) || one == other
}

fn sets_option(commands: &CommandList) -> bool {
    commands
        .iter()
        .any(|(byte, _)| byte == CommandByte::SET_OPTION)
}

/// Whether a text may change what the server tells of the session. Connector/J of MariaDB does.
pub(crate) fn is_about_tracking(text: &[u8]) -> bool {
    names(text, b"session_track")
}

/// Whether a text may set a role.
fn is_about_role(text: &[u8]) -> bool {
    names(text, b"role")
}

fn names(text: &[u8], name: &[u8]) -> bool {
    let mut places = text.windows(name.len());
    places.any(|place| place.eq_ignore_ascii_case(name))
}
