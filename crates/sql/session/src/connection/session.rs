//! One client from its login to its end: commands in, replies out.
//!
//! ```text
//! serve: accept -> log in -> welcome -> { read command -> reply }* -> roll back -> close
//! ```
//!
//! The session is one task on one worker. Only here are suspensions of the store awaited. While it
//! waits it watches three things: the wait itself, an order to be killed, and the client's
//! disconnect. While it waits for a command it also watches for the server's shutdown.

use std::borrow::Cow;
use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use catalog::ComesFrom;
use catalog::information_schema::INFORMATION_SCHEMA;
use clients::wait::{Either, first_of, free_what_waits};
use clients::{ClientNumbers, Entrance, IDLE, KillOrder, LEAVING, SessionHandle, login_rules};
use errcode::{
    ClientError, ER_BAD_DB_ERROR, ER_CONNECTION_KILLED, ER_MALFORMED_PACKET, ER_SERVER_SHUTDOWN,
    ER_UNKNOWN_COM_ERROR,
};
use front::{Client, Disconnect, PacketBytes};
use runtime::{Stream, TaskClass};
use settings::{SqlMode, VariableScope};
use syntax::canonical::Canonical;
use value::{CollationId, Level, SqlCondition, Value};
use wire::{Capabilities, Command, ErrorPacket, OkKind, OkPacket, SessionChanges, StatusFlags};

use crate::connection::client_charset::login_collation;
use crate::connection::hot;
use crate::connection::prepared::PreparedStatements;
use crate::connection::programs::Programs;
use crate::connection::reply::{Done, Reply, Stop};
use crate::connection::sink::error_text;
use crate::connection::state::{Acting, State};
use crate::connection::tracker::Tracker;
use crate::connection::transaction::TransactionState;
use crate::lock::locked_tables::LockedTables;
use crate::system::accounts::AccountLookup;
use crate::variables::idle_times::IdleLimit;
use crate::variables::system::{LoginVariables, NewValue};
use crate::worker::Worker;

/// How much memory an idle session keeps for the text of its next statement.
const LISTED_TEXT_BYTES_KEPT: usize = 512;

/// How long the end of a session takes at most whose client was told of the shutdown. The error was
/// posted before, so only a client that is not there is waited for; the shutdown's grace is longer.
const TOLD_TIME_MAX: Duration = Duration::from_secs(1);

/// A logged-in client.
#[derive(Debug)]
pub struct Session {
    /// Its connection.
    pub(crate) client: Client,
    /// What it remembers between statements.
    pub(crate) state: Rc<State>,
    /// Its transaction.
    pub(crate) transaction: TransactionState,
    /// The tables that LOCK TABLES has taken.
    pub(crate) locked: LockedTables,
    /// Its prepared statements.
    pub(crate) prepared: PreparedStatements,
    /// The stored programs that are running.
    pub(crate) programs: Programs,
    /// Changes that have to be sent to the client.
    pub(crate) tracker: Tracker,
    /// Buffers for the next text.
    pub(crate) buffers: QueryBuffers,
}

/// Thousands of sessions are idle. The allocator has classes of sizes, and gives 1,280 bytes to the
/// next larger one.
const SESSION_BYTES_MAX: usize = 1024;

const _: () = assert!(size_of::<Session>() <= SESSION_BYTES_MAX);

/// Buffers that a session reuses for each statement.
#[derive(Debug, Default)]
pub(crate) struct QueryBuffers {
    pub(crate) canonical: Canonical,
    /// The key of a plan in the worker's cache.
    pub(crate) key: Vec<u8>,
    pub(crate) values: Vec<Value>,
}

/// Whether the session goes on after a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    Command,
    End,
}

/// Serves a connection to its end.
pub fn serve(worker: Rc<Worker>, stream: Stream) -> impl Future<Output = ()> {
    // Boxed, so that an idle client's task reserves no room for its login.
    let entering = Box::pin(enter(worker, stream));
    async move {
        if let Some(session) = entering.await {
            stay(session).await;
        }
    }
}

/// Serves a session to its end.
async fn stay(session: Box<Session>) {
    let handle = Arc::clone(&session.state.handle);
    let server = Arc::clone(&session.state.worker.server);
    session.run().await;
    // Rows that its client did not read.
    free_what_waits();
    server.clients.registry().leave(&handle);
}

/// Logs a client in and opens its session. Returns `None` if it may not enter.
async fn enter(worker: Rc<Worker>, stream: Stream) -> Option<Box<Session>> {
    let server = Arc::clone(&worker.server);
    let settings = server.settings();
    worker.front.set_rules(login_rules(&settings));
    let accounts = AccountLookup::new(&server);
    let limit = stdx::to_usize(settings.unsigned("max_connections"));
    let entrance = Entrance {
        front: &worker.front,
        limit,
        evictions: &worker.counters().logins_evicted,
        numbers: ClientNumbers::Low,
    };
    let logged_in = server.clients.log_in(stream, &accounts, entrance).await?;
    let limit = limit + usize::from(is_administrator(&accounts, &logged_in.client));
    let admitted = server.clients.admit(logged_in, limit, worker.steady_us());
    let (client, handle) = admitted.await?;
    worker.counters().connections.increment();
    match Session::open(worker, client, Arc::clone(&handle), &accounts) {
        Ok(session) => Some(session),
        Err(refused) => {
            let (client, error) = *refused;
            dismiss(client, &error).await;
            server.clients.registry().leave(&handle);
            None
        }
    }
}

/// Sends the reason why a session does not begin, in the login's character set: the text may
/// contain a name that the client has sent.
async fn dismiss(mut client: Client, error: &ClientError) {
    let collation = CollationId::from_id(client.info().collation);
    let text = error_text(&error.message, collation.map(CollationId::charset));
    ErrorPacket::encode_with_text(client.out(), error, &text);
    client.close().await;
}

fn is_administrator(accounts: &AccountLookup, client: &Client) -> bool {
    let (user, host) = client.info().account.clone();
    let account = accounts.lets_in(&catalog::AccountName { user, host });
    account.is_some_and(|account| {
        account
            .grants
            .global
            .privileges
            .has(catalog::Privilege::ConnectionAdmin)
    })
}

fn acting_as(account: Arc<catalog::Account>, client: &Client) -> Acting {
    Acting::new(account, ComesFrom::Client(client.info().peer))
}

impl Session {
    /// Opens the session of an authenticated client. Returns the client and the error if it may not
    /// stay.
    fn open(
        worker: Rc<Worker>,
        client: Client,
        handle: Arc<SessionHandle>,
        accounts: &AccountLookup,
    ) -> Result<Box<Self>, Box<(Client, ClientError)>> {
        let info = client.info();
        let (user, host) = info.account.clone();
        let name = catalog::AccountName { user, host };
        let user_text = format!("{}@{}", info.user, info.peer.host());
        let Some(account) = accounts.lets_in(&name) else {
            let denied = ClientError::access_denied(&info.user, &info.peer.host(), true);
            return Err(Box::new((client, denied)));
        };
        let acting = acting_as(account, &client);
        let state = Rc::new(State::new(worker, handle, user_text, acting));
        state.has_tls.set(client.info().has_tls);
        state.liveness_probe.watch(client.watch());
        let locked = LockedTables::new(Rc::clone(&state.locks_tables));
        let mut session = Box::new(Self {
            client,
            state,
            transaction: TransactionState::default(),
            locked,
            prepared: PreparedStatements::default(),
            programs: Programs::default(),
            tracker: Tracker::default(),
            buffers: QueryBuffers::default(),
        });
        match session.take_login_settings() {
            Ok(()) => Ok(session),
            Err(error) => Err(Box::new((session.client, error))),
        }
    }

    /// Applies the character set and the database of the login.
    fn take_login_settings(&mut self) -> Result<(), ClientError> {
        let info = self.client.info();
        let collation = login_collation(info.collation)?;
        let database = info.database.clone();
        if let Some(collation) = collation {
            self.take_login_names(collation)?;
        }
        let packet_bytes_max = self.packet_bytes_max();
        self.client.set_max_allowed_packet(packet_bytes_max);
        self.take_timeouts();
        if self
            .client
            .capabilities()
            .contains(Capabilities::INTERACTIVE)
        {
            let seconds = {
                let variables = self.state.variables.borrow();
                variables.settings().unsigned("interactive_timeout")
            };
            let value = NewValue::Number(seconds.into());
            self.set_variable(VariableScope::Session, "wait_timeout", &value)?;
        }
        match database.filter(|name| !name.is_empty()) {
            Some(name) => self.use_database(&name),
            None => Ok(()),
        }
    }

    /// As SET NAMES.
    fn take_login_names(&mut self, collation: CollationId) -> Result<(), ClientError> {
        self.derive_variables(
            |worker| &worker.login_variables,
            collation,
            |session| session.set_names(collation),
        )
    }

    /// Changes the variables to what follows from a collation. The next session that begins with
    /// the same variables and the same collation shares the result, until it sets a variable.
    pub(crate) fn derive_variables(
        &mut self,
        kept: impl FnOnce(&Worker) -> &RefCell<LoginVariables>,
        collation: CollationId,
        derive: impl FnOnce(&mut Self) -> Result<(), ClientError>,
    ) -> Result<(), ClientError> {
        let worker = Rc::clone(&self.state.worker);
        let kept = kept(&worker);
        let of = self.state.variables.borrow().clone();
        let found = kept.borrow().find(&of, collation);
        if let Some(made) = found {
            *self.state.variables.borrow_mut() = made;
            return Ok(());
        }
        derive(self)?;
        let made = self.state.variables.borrow().clone();
        kept.borrow_mut().keep(of, collation, made);
        Ok(())
    }

    /// `max_allowed_packet`.
    fn packet_bytes_max(&self) -> usize {
        let variables = self.state.variables.borrow();
        let bytes = variables.settings().unsigned("max_allowed_packet");
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// Makes a database the current one (`USE`, COM_INIT_DB, login).
    pub(crate) fn use_database(&mut self, name: &str) -> Result<(), ClientError> {
        let is_own = name.eq_ignore_ascii_case(INFORMATION_SCHEMA);
        if !is_own {
            self.check_database_used(name)?;
        }
        let absent = || ClientError::new(ER_BAD_DB_ERROR, &[&name]);
        let collation = self.database_collation(name).ok_or_else(absent)?;
        self.follow_database(collation)?;
        let canonical = if is_own { "information_schema" } else { name };
        self.state.set_database(Some(canonical.into()));
        self.state
            .handle
            .update(|line| line.database = Some(canonical.to_owned()));
        Ok(())
    }

    /// The collation of a database, if it exists.
    fn database_collation(&self, name: &str) -> Option<CollationId> {
        if name.eq_ignore_ascii_case(INFORMATION_SCHEMA) {
            return Some(CollationId::UTF8MB3_GENERAL_CI);
        }
        let names = self.state.worker.names();
        names.database(name).map(|database| database.collation)
    }

    async fn run(mut self: Box<Self>) {
        hot::note_session(&self);
        let mut end = self.welcome().await.err();
        while end.is_none() {
            end = match self.next_command().await {
                Ok(Next::Command) => None,
                Ok(Next::End) => break,
                Err(disconnect) => Some(disconnect),
            };
        }
        self.note_abort(end.as_ref());
        let is_told = matches!(end, Some(Disconnect::Killed)) && self.tell_of_shutdown().await;
        let is_refusing = matches!(end, Some(Disconnect::Killed | Disconnect::WriteTimeout));
        let is_cut_off = is_refusing && !is_told;
        if is_cut_off {
            self.client.cut_off();
        }
        free_what_waits();
        if self.transaction.is_open() {
            // A session that rolls back is not idle.
            let since_us = self.state.worker.steady_us();
            self.state.handle.update(|line| {
                line.command = LEAVING;
                line.since_us = since_us;
            });
        }
        self.abandon_transaction().await;
        self.state.release_named_locks();
        // If the client did not accept what was sent to it, it is not waited for a second time.
        if is_told {
            let _ = runtime::timeout(TOLD_TIME_MAX, self.client.close()).await;
        } else if !is_cut_off {
            self.client.close().await;
        }
    }

    /// Posts error 1053 to the client of a statement that the shutdown has ended. Returns false if
    /// that was something else, or if the client has not read what it was sent before.
    async fn tell_of_shutdown(&mut self) -> bool {
        let server = &self.state.worker.server;
        // Rows that the error would be sent behind may tell of commits that are not durable.
        let is_unsettled = server.has_strict_reads() && self.client.has_unsent();
        if !server.clients.registry().is_ending() || is_unsettled {
            return false;
        }
        let error = ClientError::new(ER_SERVER_SHUTDOWN, &[]);
        self.client.post_last(&error).await
    }

    /// Counts and logs the end of a session whose client did not ask for it, as MariaDB does.
    fn note_abort(&self, end: Option<&Disconnect>) {
        let clients = &self.state.worker.server.clients;
        let is_killed = self.state.handle.order() == KillOrder::Connection;
        let is_ending = clients.registry().is_ending();
        let reason: Cow<'_, str> = match end {
            Some(Disconnect::Killed) | None if is_ending => return,
            Some(Disconnect::Idle) => {
                let limit = self.idle_limit();
                format!("{} ({} s) is over", limit.variable, limit.seconds).into()
            }
            Some(disconnect) => disconnect.to_string().into(),
            None if is_killed => "it was killed".into(),
            None => return,
        };
        self.state.worker.counters().aborted_clients.increment();
        clients.log_aborted(&self.state.handle, &reason);
    }

    /// How long the client may be silent now.
    fn idle_limit(&self) -> IdleLimit {
        let times = self.state.variables.borrow().active().idle_times;
        match (self.transaction.is_open(), self.transaction.has_changes()) {
            (false, _) => times.outside(),
            (true, false) => times.reading(),
            (true, true) => times.writing(),
        }
    }

    /// Ends the login.
    async fn welcome(&mut self) -> Result<(), Disconnect> {
        let ok = OkPacket {
            status: self.status(),
            ..OkPacket::default()
        };
        self.tracker = Tracker::default();
        self.client.welcome(&ok).await
    }

    /// Waits for a command and answers it.
    async fn next_command(&mut self) -> Result<Next, Disconnect> {
        let Some(bytes) = self.read_command().await? else {
            return Ok(Next::End);
        };
        self.state.handle.clear_query_order();
        self.state.running.begin_time();
        self.begin_command(&bytes);
        let next = self.answer(&bytes).await;
        if next.is_ok() {
            self.settle_reads().await?;
        }
        self.end_command();
        next
    }

    /// Waits for a command. Returns `None` if the session ends without one: it was killed, or the
    /// server shuts down.
    async fn read_command(&mut self) -> Result<Option<PacketBytes>, Disconnect> {
        free_what_waits();
        if self.client.long_packet_bytes() != 0 {
            Box::pin(self.send_long_rows()).await?;
        }
        let timeout_s = self.idle_limit().seconds;
        // Others may wait for a transaction's locks and snapshot, and for locked tables.
        let class = if self.transaction.is_open() || self.locked.are_on() {
            TaskClass::InTransaction
        } else {
            TaskClass::OutsideTransaction
        };
        if let Some(pass) = self.transaction.pass() {
            pass.set_idle();
        }
        let killed = Rc::clone(&self.state);
        let bytes = {
            let read = pin!(
                self.client
                    .read_command(Duration::from_secs(timeout_s), class)
            );
            let registry = &killed.worker.server.clients.registry();
            let dismissed = pin!(registry.dismissed(&killed.handle));
            first_of(read, dismissed).await
        };
        if let Some(pass) = self.transaction.pass() {
            pass.set_busy();
        }
        // A command that arrives after KILL was acknowledged is not answered.
        let is_killed = self.state.handle.order() == KillOrder::Connection;
        let is_dismissed = is_killed || self.state.worker.server.clients.registry().is_ending();
        match bytes {
            Either::Left(bytes) if !is_dismissed => return bytes.map(Some),
            Either::Left(_) => {}
            Either::Right(()) => self.client.begin_unasked(),
        }
        // A client killed while idle gets no packet that it did not ask for.
        if !is_killed {
            let error = ClientError::new(ER_SERVER_SHUTDOWN, &[]);
            ErrorPacket::encode(self.client.out(), &error);
        }
        // Its transaction is rolled back later, so that the killer need not wait for that.
        Box::pin(self.client.hang_up()).await?;
        self.state.handle.hang_up();
        Ok(None)
    }

    fn begin_command(&self, bytes: &[u8]) {
        let worker = &self.state.worker;
        let since_us = worker.steady_us();
        self.state.liveness_probe.begin(since_us);
        // Until a statement begins its own list.
        self.state.running.leave_warnings();
        let command = match bytes.first() {
            Some(&wire::CommandByte::QUERY) => "Query",
            Some(&wire::CommandByte::STMT_EXECUTE) => "Execute",
            Some(&wire::CommandByte::STMT_PREPARE) => "Prepare",
            Some(&wire::CommandByte::STMT_FETCH) => "Fetch",
            _ => "Command",
        };
        worker.counters().questions.increment();
        self.state.handle.update(|line| {
            line.command = command;
            line.since_us = since_us;
        });
    }

    fn end_command(&self) {
        let since_us = self.state.worker.steady_us();
        self.state.handle.update(|line| {
            line.command = IDLE;
            line.since_us = since_us;
            if LISTED_TEXT_BYTES_KEPT < line.statement.capacity() {
                line.statement = String::new();
            }
            line.statement.clear();
        });
    }

    /// Each client's task has room for the largest command that is not boxed here. Frequent
    /// commands must not cost an allocation, and each idle client pays for their room.
    async fn answer(&mut self, bytes: &PacketBytes) -> Result<Next, Disconnect> {
        let capabilities = self.client.capabilities();
        let Ok(command) = Command::decode(bytes, capabilities) else {
            if !Command::is_silent_packet(bytes) {
                self.write_error(&ClientError::new(ER_MALFORMED_PACKET, &[]));
            }
            return Ok(Next::Command);
        };
        let reply = match command {
            Command::Quit => return Ok(Next::End),
            Command::Query(text) => return self.query(text).await,
            Command::Ping | Command::Debug => Ok(Reply::Ok(Done::default())),
            Command::InitDb(name) => self.init_db(name),
            Command::Statistics => {
                self.write_statistics();
                return Ok(Next::Command);
            }
            Command::ResetConnection => self.reset().await,
            Command::ChangeUser(change) => return self.change_user(&change).await,
            Command::SetMultiStatements(allowed) => {
                match allowed {
                    true => self.client.allow_multi_statements(),
                    false => self.client.forbid_multi_statements(),
                }
                Ok(Reply::Rows(Done::default()))
            }
            Command::ProcessKill { connection_id } => {
                Box::pin(self.kill(connection_id.into(), false)).await
            }
            Command::Prepare(text) => self.prepare_command(text).await,
            Command::Execute(execute) => self.execute_command(&execute).await,
            Command::SendLongData {
                statement_id,
                parameter,
                data,
            } => {
                self.long_data_command(statement_id, parameter, data);
                return Ok(Next::Command);
            }
            Command::CloseStatement { statement_id } => {
                self.prepared.close(statement_id);
                return Ok(Next::Command);
            }
            Command::ResetStatement { statement_id } => self.reset_statement(statement_id),
            Command::Fetch {
                statement_id,
                row_count,
            } => self.fetch_command(statement_id, row_count).await,
            Command::FieldList(list) => self.field_list(&list),
            Command::ProcessInfo => Box::pin(self.run_text("SHOW FULL PROCESSLIST")).await,
            Command::Refresh(_) => Box::pin(self.run_text("FLUSH STATUS")).await,
            Command::BulkExecute(bulk) => Box::pin(self.bulk_execute_command(&bulk)).await,
            // As MariaDB does: what ends the reply is an EOF packet.
            Command::Shutdown => self.shut_down().map(|_| Reply::Rows(Done::default())),
            Command::Unknown(_) => Err(ClientError::new(ER_UNKNOWN_COM_ERROR, &[]).into()),
        };
        self.write_reply(reply, false)
    }

    /// Writes the packet that ends a reply.
    pub(crate) fn write_reply(
        &mut self,
        reply: Result<Reply, Stop>,
        has_more: bool,
    ) -> Result<Next, Disconnect> {
        let capabilities = self.client.capabilities();
        let status = self.status().with(StatusFlags::MORE_RESULTS, has_more);
        match reply {
            Ok(Reply::Ok(done)) => {
                let changes = self.take_changes();
                let ok = self.ok_packet(&done, status, &changes);
                ok.encode(self.client.out(), capabilities, OkKind::Ok);
            }
            Ok(Reply::Rows(done)) => {
                // The packet that ends rows in older protocols cannot carry changes.
                let changes = if capabilities.contains(Capabilities::DEPRECATE_EOF) {
                    self.take_changes()
                } else {
                    SessionChanges::default()
                };
                let ok = self.ok_packet(&done, status.with(done.status, true), &changes);
                wire::end_rows(self.client.out(), capabilities, &ok);
            }
            Ok(Reply::Nothing) => {}
            Ok(Reply::End) => return Ok(Next::End),
            Err(Stop::Error(error)) => {
                let is_killed = self.state.handle.order() == KillOrder::Connection;
                // A session that kills itself gets the error; one killed by another sees the end of
                // the connection.
                if is_killed && error.code != ER_CONNECTION_KILLED {
                    return Err(Disconnect::Killed);
                }
                self.write_error(&error);
                if is_killed || error.code == ER_SERVER_SHUTDOWN {
                    return Ok(Next::End);
                }
            }
            Err(Stop::Disconnect(disconnect)) => return Err(*disconnect),
        }
        self.client.end_reply();
        Ok(Next::Command)
    }

    fn ok_packet<'d>(
        &self,
        done: &'d Done,
        status: StatusFlags,
        changes: &'d SessionChanges,
    ) -> OkPacket<'d> {
        OkPacket {
            affected_rows: done.affected_rows,
            last_insert_id: done.last_insert_id,
            status,
            warnings: if done.tells_warnings || self.programs.is_running() {
                0
            } else {
                self.warning_count()
            },
            info: done.info.as_bytes(),
            session_changes: changes.as_bytes(),
        }
    }

    pub(crate) fn write_error(&mut self, error: &ClientError) {
        self.state.worker.counters().count_error(error.origin);
        self.state.set_row_count(-1);
        // A statement that fails early has no list of its own yet: the list is an earlier
        // statement's.
        if self.state.running.has_old_warnings() {
            self.state.clear_diagnostics();
        }
        let diagnostics = Rc::clone(&self.state.diagnostics.borrow());
        let condition = SqlCondition::from(error.clone());
        diagnostics.warnings().push(Level::Error, condition);
        for place in self.programs.take_trace() {
            diagnostics.push(Level::Note, place);
        }
        let results = self.state.variables.borrow().active().results_charset;
        let text = error_text(&error.message, results);
        ErrorPacket::encode_with_text(self.client.out(), error, &text);
    }

    /// Warnings of the last statement, as far as the packets can count.
    pub(crate) fn warning_count(&self) -> u16 {
        if self.state.running.has_old_warnings() {
            return 0;
        }
        let count = self.state.diagnostics.borrow().warnings().count();
        u16::try_from(count).unwrap_or(u16::MAX)
    }

    /// The flags that each OK and EOF packet carries.
    pub(crate) fn status(&self) -> StatusFlags {
        let variables = self.state.variables.borrow();
        let active = variables.active();
        let is_open = self.transaction.is_open();
        let mode = active.options.sql_mode;
        self.state.in_transaction.set(is_open);
        StatusFlags::default()
            .with(StatusFlags::AUTOCOMMIT, active.autocommit)
            .with(StatusFlags::IN_TRANSACTION, is_open)
            .with(StatusFlags::MORE_RESULTS, self.programs.is_running())
            .with(
                StatusFlags::PS_OUT_PARAMS,
                self.programs.is_telling_outputs(),
            )
            .with(
                StatusFlags::IN_READ_ONLY_TRANSACTION,
                self.transaction.is_read_only,
            )
            .with(StatusFlags::ANSI_QUOTES, mode.has(SqlMode::ANSI_QUOTES))
            .with(
                StatusFlags::NO_BACKSLASH_ESCAPES,
                mode.has(SqlMode::NO_BACKSLASH_ESCAPES),
            )
    }

    fn init_db(&mut self, name: &[u8]) -> Result<Reply, Stop> {
        let name = self.text_of(name);
        self.use_database(&name)?;
        self.track_schema();
        Ok(Reply::Ok(Done::default()))
    }

    fn write_statistics(&mut self) {
        let server = &self.state.worker.server;
        let status = server.status(self.state.worker.steady_us());
        let uptime = status["Uptime"];
        let questions = status["Questions"];
        let average = questions.checked_div(uptime).unwrap_or(0);
        let text = format!(
            "Uptime: {uptime}  Threads: {}  Questions: {questions}  Slow queries: 0  Opens: 0  \
             Open tables: 0  Queries per second avg: {average}.000",
            status["Threads_connected"],
        );
        self.client.out().packet(text.as_bytes());
    }

    /// COM_RESET_CONNECTION: as after a login.
    async fn reset(&mut self) -> Result<Reply, Stop> {
        self.abandon_transaction().await;
        self.state.release_named_locks();
        self.locked.clear();
        self.prepared = PreparedStatements::default();
        self.tracker = Tracker::default();
        self.state.reset();
        if let Some(collation) = login_collation(self.client.info().collation)? {
            self.set_names(collation)?;
        }
        let database = self.state.database();
        if let Some(collation) = database.and_then(|name| self.database_collation(&name)) {
            self.follow_database(collation)?;
        }
        let packet_bytes_max = self.packet_bytes_max();
        self.client.set_max_allowed_packet(packet_bytes_max);
        self.take_timeouts();
        Ok(Reply::Ok(Done::default()))
    }

    async fn change_user(&mut self, change: &wire::ChangeUser<'_>) -> Result<Next, Disconnect> {
        self.abandon_transaction().await;
        self.state.release_named_locks();
        self.locked.clear();
        let worker = &self.state.worker;
        worker
            .front
            .set_rules(login_rules(&worker.server.settings()));
        let accounts = AccountLookup::new(&worker.server);
        if let Err(failure) = self.client.change_user(change, &accounts).await {
            let peer = self.client.info().peer;
            let clients = &self.state.worker.server.clients;
            clients.log_failed_login(self.state.handle.id(), peer, &failure);
            return Ok(Next::End);
        }
        let info = self.client.info();
        let (user, host) = info.account.clone();
        let user_text = format!("{}@{}", info.user, info.peer.host());
        let user_name = info.user.clone();
        let Some(account) = accounts.lets_in(&catalog::AccountName { user, host }) else {
            return Ok(Next::End);
        };
        self.prepared = PreparedStatements::default();
        self.tracker = Tracker::default();
        self.state.reset();
        let acting = acting_as(account, &self.client);
        self.state.set_account(user_text, acting);
        self.state.set_database(None);
        self.state.handle.update(|line| {
            line.user = user_name;
            line.database = None;
        });
        let taken = self.take_login_settings();
        let reply = taken
            .map(|()| Reply::Ok(Done::default()))
            .map_err(Stop::from);
        self.write_reply(reply, false)
    }
}
