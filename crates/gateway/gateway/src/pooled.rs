//! [`Pooled`]: a session whose connections come from the pool, one to each server that it uses.
//!
//! ```text
//! command -> Plan (router) -> answer: find a server -> its lane, put right -> pass on -> note what
//!            the reply tells
//! ```
//!
//! It is of the router `read-write-split`, or of a `read-connection` that multiplexes: that one has
//! a [`Home`], where all its statements go. A [`Lane`] is a connection of the pool. Before each use
//! it is given the state of the session (`connection.rs`), and between transactions it is given
//! back, if the service multiplexes (`sharing.rs`). What a statement reads of the one before comes
//! from the session then (`recall.rs`). Statements that clients prepare have numbers of the
//! gateway's own, and are prepared on each connection that executes them (`prepared.rs`). EXPLAIN
//! ROUTE tells all this for a statement that is not sent (`explain.rs`).

use std::sync::Arc;
use std::time::Duration;

use connection_state::{Origin, is_about_tracking};
use errcode::{ClientError, ER_MALFORMED_PACKET};
use front::Client;
use link::Ending;
use monitor::ServerId as Place;
use pool::{Age, CloseReason};
use query_log::Route;
use result_cache::Changes;
use router::{Command, Goal, History, PATTERN_BYTES_MAX, Pin, Plan, Report, Told};
use runtime::Alarm;
use syntax::SqlMode;
use syntax::class::Facts;
use wire::{Capabilities, CommandByte, OkPacket, StatusFlags};

use crate::connection::Warnings;
use crate::end::End;
use crate::explain::is_asked;
use crate::guest::{Answer, Form, Guest, Reply, Request, charset_in, database_in, mode_of};
use crate::hot::{self, HotPlace};
use crate::options::{CausalReads, SplitOptions};
use crate::running::Stay;

mod answer;
mod begin;
mod caching;
mod causal;
mod explain;
mod guide;
mod home;
mod lane;
mod locks;
mod parts;
mod prepared;
mod recall;
mod sharing;
mod wait;
mod way;

use answer::Job;
use begin::{identify, login_of};
use caching::{Caching, Kept};
pub(crate) use explain::{Newcomer, explain_newcomer};
use guide::{Guides, guide};
use lane::Lane;
use locks::{Locks, OF_LOCKS};
use prepared::Statements;
use way::Way;

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Pooled {
    guest: Guest,
    way: Way,
    /// It gives its connections back between transactions.
    multiplexes: bool,
    session: router::Session,
    /// What it has set.
    history: Arc<History>,
    /// The same with its database, while a statement runs without that.
    missing: Option<Arc<History>>,
    /// The database that a server has told last, unless `history` has a later one. It is empty if
    /// the session is in none, as after DROP DATABASE. COM_RESET_CONNECTION keeps it, also if the
    /// session has come there by what is not kept.
    database: Option<Box<[u8]>>,
    /// As which it logs in to servers, by the pool's names.
    pool_login: pool::Login,
    /// What its login decides of its state.
    origin: Arc<Origin>,
    /// Decides between sessions that wait for each other's connections.
    age: Age,
    /// By the servers' places in the map.
    lanes: Vec<Option<Lane>>,
    /// The connection that it keeps for what only that knows ([`router::Residue`]).
    lingers_at: Option<Place>,
    /// Warnings of its last statement, whose connection is given away.
    warnings: Option<Box<Warnings>>,
    /// `None` unless it may have some.
    locks: Option<Box<Locks>>,
    statements: Statements,
    /// The status that the client got last.
    status: StatusFlags,
    /// Ends its waits for connections.
    patience: Alarm,
    /// Room for a command that may have to be sent again.
    spare: Vec<u8>,
    /// The version of the service's writes that it has seen.
    seen: u64,
    /// `None` if there is no cache of results.
    caching: Option<Box<Caching>>,
}

/// Longer texts are not read, and count as writes. Programs that load data send less at a time
/// (`net_buffer_length` of mysqldump), or one INSERT.
const READ_BYTES_MAX: usize = 1 << 20;

/// More of the room for a command is given back.
const SPARE_BYTES_MAX: usize = 4 << 10;

/// What a status tells of a session, and not of one reply.
const OF_SESSION: StatusFlags = StatusFlags(
    OF_LOGIN.0
        | StatusFlags::IN_TRANSACTION.0
        | StatusFlags::IN_READ_ONLY_TRANSACTION.0
        | StatusFlags::DATABASE_DROPPED.0,
);

/// What of that the login says.
const OF_LOGIN: StatusFlags = StatusFlags(StatusFlags::AUTOCOMMIT.0 | MODES.0);

/// How texts are read.
const MODES: StatusFlags =
    StatusFlags(StatusFlags::NO_BACKSLASH_ESCAPES.0 | StatusFlags::ANSI_QUOTES.0);

impl Pooled {
    /// Connects a client to its first server. An error is what the client gets.
    pub(crate) async fn enter(guest: Guest) -> Result<Pooled, Box<(Client, ClientError)>> {
        let options = &guest.generation().service(guest.service).options;
        let multiplexes = options.multiplexes;
        let way = Way::of(options.router, &guest.ruled);
        let identified = identify(&guest);
        let (origin, pool_login) = match identified {
            Ok(identified) => identified,
            Err(error) => return Err(Box::new((guest.client, error))),
        };
        let caching = Caching::of(guest.generation());
        let age = Age {
            began_at: runtime::now(),
            session: guest.handle.id(),
        };
        let mut pooled = Pooled {
            guest,
            way,
            multiplexes,
            session: router::Session::default(),
            history: Arc::default(),
            missing: None,
            database: None,
            origin,
            pool_login,
            age,
            lanes: Vec::new(),
            lingers_at: None,
            warnings: None,
            locks: None,
            statements: Statements::default(),
            status: StatusFlags::AUTOCOMMIT,
            patience: Alarm::default(),
            spare: Vec::new(),
            seen: 0,
            caching,
        };
        match pooled.begin().await {
            Ok(()) => Ok(pooled),
            Err(error) => Err(Box::new((pooled.guest.client, error))),
        }
    }

    /// How long a statement waits for a server and for a connection.
    fn wait(&self) -> Duration {
        let service = self.guest.generation().service(self.guest.service);
        service.options.wait
    }

    /// The version of the map that the service's monitor has published last.
    fn map_version(&self) -> u64 {
        let (worker, service) = (&self.guest.worker, self.guest.service);
        worker.with_map(service, |it| it.version)
    }

    fn put_lane(&mut self, place: Place, lane: Lane) {
        let index = usize::from(place.0);
        if self.lanes.len() <= index {
            self.lanes.resize_with(index + 1, || None);
            HotPlace::Lanes.note(&*self.lanes);
        }
        if let Some(slot) = self.lanes.get_mut(index) {
            *slot = Some(lane);
            self.guest.running.standing.hold(place);
        }
    }

    /// The places of all servers that it has had a connection to.
    fn places(&self) -> impl Iterator<Item = Place> + use<> {
        (0..).map(Place).take(self.lanes.len())
    }

    fn lane(&mut self, place: Place) -> Option<&mut Lane> {
        self.lanes.get_mut(usize::from(place.0))?.as_mut()
    }

    /// As the session's servers read a text.
    fn mode(&self) -> SqlMode {
        mode_of(self.status)
    }

    pub(crate) async fn run(&mut self) -> End {
        let ok = OkPacket {
            status: self.status,
            ..OkPacket::default()
        };
        if self.guest.client.welcome(&ok).await.is_err() {
            return End::Client;
        }
        self.settle().await;
        hot::note_session(self, &self.guest);
        loop {
            self.rest();
            let went = match self.peek_command().await {
                Ok(CommandByte::QUIT) => return End::Quit,
                Ok(byte) => {
                    let went = self.command(byte).await;
                    self.guest.finish_command(went, self.status);
                    // A connection that the session has to keep stays as it is: put right, it would
                    // be refused and lost.
                    if self.session.is_at_rest() {
                        self.return_to_database();
                    }
                    if self.session.is_closed() {
                        // COMMIT RELEASE: the server has closed the connection behind its reply.
                        self.places()
                            .for_each(|place| self.drop_lane(place, CloseReason::Dropped));
                        return End::Quit;
                    }
                    if went.is_ok() {
                        self.settle().await;
                    }
                    went
                }
                Err(end) => Err(end),
            };
            if let Err(end) = went {
                return end;
            }
        }
    }

    /// Notes for operators what the session is like between two commands.
    fn rest(&self) {
        let home = match &self.way {
            Way::Home(home) => home.place(),
            Way::Split(_) => None,
        };
        self.guest.rest(Stay {
            pins: self.session.pins(),
            at: self.session.held_at().or(home),
            is_in_transaction: self.session.open_at().is_some(),
        });
    }

    async fn command(&mut self, byte: u8) -> Result<(), End> {
        self.guest.begin_command();
        match byte {
            CommandByte::QUERY if self.guest.is_kill(byte) => {
                Box::pin(self.guest.kill(self.status)).await
            }
            CommandByte::PROCESS_KILL if self.guest.is_kill(byte) => {
                Box::pin(self.guest.kill(self.status)).await
            }
            CommandByte::QUERY => self.query().await,
            CommandByte::STMT_EXECUTE | CommandByte::STMT_BULK_EXECUTE => self.execute(byte).await,
            CommandByte::STMT_PREPARE => Box::pin(self.prepare()).await,
            CommandByte::STMT_CLOSE => Box::pin(self.close_statement()).await,
            CommandByte::STMT_SEND_LONG_DATA => Box::pin(self.send_long_data()).await,
            CommandByte::STMT_FETCH | CommandByte::STMT_RESET => {
                Box::pin(self.continue_statement(byte)).await
            }
            CommandByte::INIT_DB | CommandByte::SET_OPTION => {
                Box::pin(self.session_command(byte)).await
            }
            CommandByte::RESET_CONNECTION => Box::pin(self.reset()).await,
            CommandByte::CHANGE_USER => Box::pin(self.change_user()).await,
            _ => Box::pin(self.other(byte)).await,
        }
    }

    /// A text.
    async fn query(&mut self) -> Result<(), End> {
        let mode = self.mode();
        let (_, is_whole) = self.guest.client.link().peeked_body();
        if !is_whole {
            Box::pin(self.guest.receive_text(READ_BYTES_MAX)).await?;
            let (_, is_whole) = self.guest.client.link().peeked_body();
            if !is_whole {
                return Box::pin(self.unread_query(mode)).await;
            }
        }
        let (text, _) = self.guest.client.link().peeked_body();
        if is_asked(text, mode) {
            return Box::pin(self.explain_route(mode)).await;
        }
        let mut wanted = None;
        match self.kept_unread(mode) {
            Kept::Reply(reply) => return self.tell_kept(reply, Request::Peeked).await,
            Kept::Wanted(reply) => wanted = Some(reply),
            Kept::Nothing => {}
        }
        let (text, _) = self.guest.client.link().peeked_body();
        let judged = self.guest.ruled.judge(text, mode);
        let current = &mut self.guest.current;
        current.begin_statement(Form::Text, text, &judged);
        let mut plan = self.session.plan(text, mode, &judged);
        let guides = Guides {
            said: &current.said,
            session: &self.session,
            worker: &self.guest.worker,
            service: self.guest.service,
            ruled: &self.guest.ruled,
        };
        let guided = match guide(&mut plan, text, &judged, guides) {
            Ok(guided) => guided,
            Err(error) => {
                let refusing = self.refuse(Job::Plain, Request::Peeked, &error);
                return Box::pin(refusing).await.map(|_| ());
            }
        };
        self.guest.time_max = guided.time_max.or(self.guest.time_max);
        if wanted.is_none() {
            match self.kept_text(&judged, mode, &guided) {
                Kept::Reply(reply) => return self.tell_kept(reply, Request::Peeked).await,
                Kept::Wanted(reply) => wanted = Some(reply),
                Kept::Nothing => {}
            }
        }
        if plan.facts.has_any(OF_LOCKS) {
            return Box::pin(self.locking_query(plan, mode)).await;
        }
        if self.multiplexes && recall::is_asked(&plan) {
            return Box::pin(self.recalling_query(plan, mode)).await;
        }
        if plan.is_kept {
            return Box::pin(self.kept_query(plan, mode)).await;
        }
        if let Some(wanted) = wanted {
            return Box::pin(self.wanted_query(plan, wanted)).await;
        }
        let (text, _) = self.guest.client.link().peeked_body();
        if plan.may_repeat {
            return self.repeatable_query(&plan).await;
        }
        if plan.changes_session && is_about_tracking(text) {
            return Box::pin(self.tracking_query(plan)).await;
        }
        let answered = self.answer(&plan, Job::Plain, Request::Peeked, None).await;
        answered.map(|_| ())
    }

    /// A text that may be sent to another server if the first one fails.
    async fn repeatable_query(&mut self, plan: &Plan) -> Result<(), End> {
        let mut spare = std::mem::take(&mut self.spare);
        spare.extend_from_slice(self.guest.client.link().peeked_body().0);
        let repeat = Some((CommandByte::QUERY, &*spare));
        let answered = self.answer(plan, Job::Plain, Request::Peeked, repeat).await;
        spare.clear();
        spare.shrink_to(SPARE_BYTES_MAX);
        self.spare = spare;
        answered.map(|_| ())
    }

    /// A text that changes what the server tells of the session, and is kept for no other one.
    async fn tracking_query(&mut self, plan: Plan) -> Result<(), End> {
        let answered = self
            .answer(&plan, Job::Plain, Request::Peeked, None)
            .await?;
        let lane = answered.and_then(|(place, _)| self.lane(place));
        lane.into_iter()
            .for_each(|lane| lane.connection.state_mut().tells_otherwise());
        Ok(())
    }

    /// A text that the session's other connections need, too.
    async fn kept_query(&mut self, plan: Plan, mode: SqlMode) -> Result<(), End> {
        let text: Box<[u8]> = self.guest.client.link().peeked_body().0.into();
        let answered = self
            .answer(&plan, Job::Plain, Request::Peeked, None)
            .await?;
        if let Some((place, answer)) = answered {
            self.note_tracking(place, &text);
            if plan.facts.has(Facts::PREPARES) {
                self.pin_text_reader(&text, mode, place);
            }
            self.keep(Command::Query(text), place, &answer, mode);
        }
        Ok(())
    }

    /// The gateway has to see what it needs, whatever the client has chosen to see.
    fn note_tracking(&mut self, place: Place, text: &[u8]) {
        if is_about_tracking(text)
            && let Some(lane) = self.lane(place)
        {
            lane.connection.state_mut().tells_otherwise();
        }
    }

    /// A text that is too long to be read. It is passed on as it comes.
    async fn unread_query(&mut self, mode: SqlMode) -> Result<(), End> {
        let may_be_several = self.may_send_several();
        let (text, _) = self.guest.client.link().peeked_body();
        let text: Box<[u8]> = text.get(..PATTERN_BYTES_MAX).unwrap_or(text).into();
        let judged = self.guest.ruled.judge_unread(&text, mode);
        let text_bytes = self.guest.client.link().peeked_bytes().saturating_sub(1);
        let current = &mut self.guest.current;
        current.begin_statement(Form::Text, &text, &judged);
        current.note_length(text_bytes);
        let judged = match may_be_several {
            true => judged.several(),
            false => judged,
        };
        let mut plan = self.session.plan(b"", mode, &judged);
        if let Err(error) = self.guide(&mut plan, &text, &judged) {
            let refused = self.refuse(Job::Plain, Request::Peeked, &error).await;
            return refused.map(|_| ());
        }
        let answered = self
            .answer(&plan, Job::Plain, Request::Peeked, None)
            .await?;
        if let Some(lane) = answered.and_then(|(place, _)| self.lane(place)) {
            // Those who load much write so. A connection of its own for each would cost them more
            // than a reset, which also ends the lock that one of them may have taken.
            lane.is_dirty = true;
            lane.connection.state_mut().tells_otherwise();
        }
        Ok(())
    }

    /// Whether a text of the client may have several statements.
    fn may_send_several(&self) -> bool {
        let capabilities = self.guest.client.capabilities();
        let chosen = self.history.allows_several();
        chosen.unwrap_or(capabilities.contains(Capabilities::MULTI_STATEMENTS))
    }

    /// Keeps a command that has succeeded for the other connections.
    fn keep(&mut self, command: Command, place: Place, answer: &Answer, mode: SqlMode) {
        if !matches!(answer.ending, Ending::Status(_)) {
            return;
        }
        if let Some(name) = command.database(mode) {
            self.guest.note_database(&name);
            self.database = None;
            self.missing = None;
        }
        if let Some(missing) = self.missing.take() {
            let mut missing = History::clone(&missing);
            // If there are too many, that is seen below.
            let _ = missing.keep(command.clone(), mode);
            self.missing = Some(self.guest.worker.share_history(missing));
        }
        let mut history = History::clone(&self.history);
        if history.keep(command, mode).is_err() {
            self.session.pin(Pin::LongHistory, place);
        }
        self.history = self.guest.worker.share_history(history);
        let commands = self.history.list().clone();
        if let Some(lane) = self.lane(place) {
            lane.connection.state_mut().has_run(&commands);
        }
    }

    /// COM_INIT_DB, COM_SET_OPTION.
    async fn session_command(&mut self, byte: u8) -> Result<(), End> {
        let packet = self.guest.take_command().await?;
        let body = packet.get(1..).unwrap_or_default();
        let command = match byte {
            CommandByte::INIT_DB => Command::InitDb(body.into()),
            _ => {
                let option = body.first_chunk().copied();
                Command::SetOption(option.unwrap_or([u8::MAX; 2]))
            }
        };
        let plan = self.session.plan_session_command();
        let request = Request::Taken(byte, body);
        let answered = self.answer(&plan, Job::Plain, request, None).await?;
        if let Some((place, answer)) = answered {
            self.keep(command, place, &answer, SqlMode::default());
        }
        Ok(())
    }

    /// Has the statement under way run without the session's database, which the server does not
    /// have, and what follows it in a transaction. Later ones find it again, if it is there.
    /// Returns `false` if that was done already.
    fn leave_database(&mut self) -> bool {
        if self.missing.is_some() {
            return false;
        }
        let mode = self.mode();
        let mut history = History::clone(&self.history);
        let of_login = self.origin.database.clone();
        if let Some(name) = of_login.filter(|_| history.database(mode).is_none()) {
            let command = Command::InitDb(name.into_bytes().into());
            if history.keep(command, mode).is_err() {
                return false;
            }
        }
        if history.database(mode).is_none() {
            return false;
        }
        let worker = &self.guest.worker;
        self.origin = worker.share_origin(Origin {
            database: None,
            ..*self.origin
        });
        self.missing = Some(worker.share_history(history.clone()));
        history.forget_database(mode);
        self.history = worker.share_history(history);
        true
    }

    /// What ran without the session's database has ended.
    fn return_to_database(&mut self) {
        if let Some(history) = self.missing.take() {
            self.history = history;
        }
    }

    /// Any other command goes to the primary. One that is not known here keeps the session there.
    async fn other(&mut self, byte: u8) -> Result<(), End> {
        let is_known = matches!(
            byte,
            CommandByte::PING
                | CommandByte::STATISTICS
                | CommandByte::PROCESS_INFO
                | CommandByte::PROCESS_KILL
                | CommandByte::FIELD_LIST
                | CommandByte::DEBUG
                | CommandByte::REFRESH
                | CommandByte::SHUTDOWN
        );
        let goal = match byte {
            // A pool of connections asks whether they live.
            CommandByte::PING | CommandByte::STATISTICS => Goal::PrimaryFirst,
            _ => Goal::Primary,
        };
        let mut plan = self.session.plan_command(goal);
        if !is_known {
            plan.changes = Changes::Anything;
        }
        let answered = self
            .answer(&plan, Job::Plain, Request::Peeked, None)
            .await?;
        if let Some((place, _)) = answered
            && !is_known
        {
            self.session.pin(Pin::Command, place);
        }
        Ok(())
    }

    /// Notes what a reply tells of the session, and that what it changes is done.
    fn note(&mut self, plan: &Plan, place: Place, answer: &Answer) {
        if let Ending::Error(_) = answer.ending {
            self.forget_snapshot();
        }
        self.note_reply(plan, place, answer);
        self.end_change();
    }

    /// Why a statement has gone where it went. The session is as it was before that.
    fn route(&self, plan: &Plan) -> Route {
        let led = self.guest.current.said.get().led;
        match plan.goal {
            _ if let Some(led) = led => led,
            Goal::Held(place) if self.session.open_at() == Some(place) => Route::Transaction,
            Goal::Held(place) if self.session.held_at() == Some(place) => Route::Pin,
            Goal::Held(_) => Route::LastStatement,
            _ if self.way.split().is_none() => Route::Home,
            Goal::Replica => Route::Read,
            Goal::PrimaryFirst => Route::Session,
            Goal::Primary => Route::Primary,
        }
    }

    fn note_reply(&mut self, plan: &Plan, place: Place, answer: &Answer) {
        let status = match answer.ending {
            Ending::Status(status) => Some(status),
            Ending::Error(_) => None,
            // Nothing that the session knows of has changed.
            Ending::Silent => return,
        };
        if let Some(status) = status {
            // MariaDB tells the modes of SET STATEMENT, which are gone with that statement.
            let is_for_itself = plan.facts.has(Facts::HAS_SET_STATEMENT);
            let kept = if is_for_itself { MODES.0 } else { 0 };
            let told = status.0 & OF_SESSION.0 & !kept;
            self.status = StatusFlags(told | self.status.0 & kept);
        }
        // MariaDB names no transaction in the reply to a bulk.
        let exchange = &answer.exchange;
        let byte = exchange.command_byte();
        let is_told = exchange.reports_changes() && byte != CommandByte::STMT_BULK_EXECUTE;
        let lane = self.lane(place);
        let tells_writes = is_told && lane.is_some_and(|lane| lane.connection.tells_writes());
        let tally = exchange.tally();
        let id = self
            .guest
            .worker
            .generation
            .server_at(self.guest.service, place);
        self.guest.current.note(Reply {
            server: Some(id),
            rows_sent: tally.row_count,
            rows_affected: tally.affected_rows,
            error: match answer.ending {
                Ending::Error(code) => Some(code),
                Ending::Status(_) | Ending::Silent => None,
            },
            is_kept: false,
            route: self.route(plan),
        });
        // An EOF packet ends their replies.
        let tells_count = !matches!(byte, CommandByte::SET_OPTION | CommandByte::FIELD_LIST);
        let report = Report {
            status,
            changes: exchange.session_changes(),
            tells_writes,
            told: Told {
                row_count: (tally.has_rows && tells_count).then_some(tally.row_count),
                affected_rows: tells_count.then_some(tally.affected_rows),
                last_insert_id: tally.last_insert_id,
                warnings: tally.warnings,
                leaves_numbers: byte == CommandByte::STMT_PREPARE,
            },
        };
        let surprises = self.session.surprises();
        let has_written = self.session.answered(plan, place, report);
        if surprises != self.session.surprises() {
            self.guest.worker.counters.surprises.increment();
        }
        if let Some(name) = report.changes.and_then(charset_in) {
            self.guest.ruled.note_charset(name);
        }
        if let Some(name) = report.changes.and_then(database_in) {
            self.guest.look_at_rules(&name);
            self.database = Some(name);
        }
        let is_flagged = status.is_some_and(|it| it.contains(StatusFlags::SESSION_STATE_CHANGED));
        // The GTID of a write is reported as a change of the session.
        let is_unseen = is_flagged && !plan.changes_session && !plan.may_write;
        if tally.has_rows
            && !exchange.reports_changes()
            && (is_unseen || plan.facts.has_any(router::UNSEEN))
        {
            // To a client without DEPRECATE_EOF the server tells behind rows that something has
            // changed, and not what.
            self.session.pin(Pin::Unknown, place);
        }
        self.note_sharing(plan, place, answer);
        if has_written {
            self.share_writes(place);
        }
    }

    /// Others have to see what the session has written at a server, if the service says so, or
    /// results are kept.
    fn share_writes(&self, place: Place) {
        let (generation, service) = (self.guest.generation(), self.guest.service);
        let written = self.session.written();
        let shares_writes = |it: &SplitOptions| it.causal_reads == CausalReads::Service;
        if self.way.split().is_some_and(shares_writes) {
            generation.service(service).written.advance(written);
        }
        if self.caching.is_some() {
            let at_server = generation.written_at(service, place);
            let worker = &self.guest.worker;
            if worker.with_map(service, |it| {
                it.map.primary().is_some_and(|it| it.id == place)
            }) {
                at_server.lead();
            }
            at_server.advance(written);
        }
    }

    /// A packet that says nothing that can be understood.
    async fn malformed(&mut self, request: Request<'_>) -> Result<(), End> {
        let error = ClientError::new(ER_MALFORMED_PACKET, &[]);
        self.refuse(Job::Plain, request, &error).await?;
        Ok(())
    }

    /// Ends the session, and what it holds.
    pub(crate) async fn leave(mut self, end: End) {
        self.part_with_all();
        self.guest.leave(end).await;
    }
}
