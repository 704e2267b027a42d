//! [`Split`]: a session of the router `read-write-split`, with a connection to each server that it
//! uses.
//!
//! ```text
//! command -> Plan (router) -> answer: find a server -> its lane, put right -> pass on -> note what
//!            the reply tells
//! ```
//!
//! A [`Lane`] is opened when it is needed first. Before each use it runs the commands of the
//! session that it has not run ([`router::History`]). Statements that clients prepare have numbers
//! of the gateway's own, and are prepared on each server that executes them (`prepared.rs`).

use std::time::Duration;

use errcode::{ClientError, ER_MALFORMED_PACKET};
use front::ClientInfo;
use link::Ending;
use monitor::ServerId as Place;
use router::{Command, Goal, History, Judged, Pin, Plan, Report, Written};
use syntax::SqlMode;
use syntax::class::find_hint;
use wire::{CommandByte, OkPacket, StatusFlags};

use crate::connect::{Held, NoConnection, connect_to, login_as, no_server};
use crate::end::End;
use crate::guest::{Answer, ChangedUser, Guest, Request};
use crate::options::{CausalReads, ServiceId, SplitOptions};
use crate::worker::Worker;

mod answer;
mod lane;
mod prepared;

use answer::{Chooser, Job};
use lane::Lane;
use prepared::Statements;

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Split {
    guest: Guest,
    options: SplitOptions,
    session: router::Session,
    history: History,
    /// By the servers' places in the map.
    lanes: Vec<Option<Box<Lane>>>,
    statements: Statements,
    /// The status that the client was told last.
    status: StatusFlags,
    /// Room for a command that may have to be sent again.
    spare: Vec<u8>,
    /// The version of the service's writes that it has seen.
    seen: u64,
}

/// Longer texts are not read, and count as writes.
const READ_BYTES_MAX: usize = 1 << 20;

/// More of the room for a command is given back.
const SPARE_BYTES_MAX: usize = 4 << 10;

/// Connects a client to its first server: to the primary, or to a replica if there is none.
pub(crate) async fn connect_first(
    worker: &Worker,
    service: ServiceId,
    options: SplitOptions,
    info: &ClientInfo,
) -> Result<Held, ClientError> {
    let login = login_as(info)?;
    let until = runtime::now() + options.wait;
    let mut failed = None;
    let mut reason = "no server is up".to_owned();
    loop {
        let chooser = Chooser {
            worker,
            service,
            options: &options,
            written: &Written::Nothing,
            failed,
        };
        let (chosen, version) = worker.with_map(service, |it| {
            let primary = chooser.choose(it, Goal::Primary);
            let chosen = primary.or_else(|| chooser.choose(it, Goal::Replica));
            (chosen, it.version)
        });
        if let Some(place) = chosen {
            let id = worker.gateway.server_at(service, place);
            match connect_to(worker, id, &login, info).await {
                Ok(held) => return Ok(held),
                Err(NoConnection::Refused(error)) => return Err(error),
                Err(NoConnection::Failed(text)) => reason = text,
            }
            // Each server is tried once before the map changes.
            if failed.replace(place).is_none() {
                continue;
            }
        }
        let left = until - runtime::now();
        let changed = worker.monitor(service).changed(version);
        if left.is_zero() || runtime::timeout(left, changed).await.is_err() {
            return Err(no_server(worker, service, &reason));
        }
        failed = None;
    }
}

impl Split {
    pub(crate) fn new(guest: Guest, options: SplitOptions, first: Held) -> Split {
        let place = first.place.watched_at();
        let mut session = router::Session::default();
        let status = first.server.status();
        session.observe_login(status);
        let mut split = Split {
            guest,
            options,
            session,
            history: History::default(),
            lanes: Vec::new(),
            statements: Statements::default(),
            status,
            spare: Vec::new(),
            seen: 0,
        };
        split.put_lane(place, Lane::new(first));
        split
    }

    fn put_lane(&mut self, place: Place, lane: Lane) {
        let index = usize::from(place.0);
        if self.lanes.len() <= index {
            self.lanes.resize_with(index + 1, || None);
        }
        if let Some(slot) = self.lanes.get_mut(index) {
            *slot = Some(Box::new(lane));
        }
    }

    fn lane(&mut self, place: Place) -> Option<&mut Lane> {
        self.lanes.get_mut(usize::from(place.0))?.as_deref_mut()
    }

    /// As the session's servers read a text.
    fn mode(&self) -> SqlMode {
        let mut mode = SqlMode::default();
        if self.status.contains(StatusFlags::NO_BACKSLASH_ESCAPES) {
            mode = mode.with(SqlMode::NO_BACKSLASH_ESCAPES);
        }
        if self.status.contains(StatusFlags::ANSI_QUOTES) {
            mode = mode.with(SqlMode::ANSI_QUOTES);
        }
        mode
    }

    pub(crate) async fn run(&mut self) -> End {
        let ok = OkPacket {
            status: self.status,
            ..OkPacket::default()
        };
        if self.guest.client.welcome(&ok).await.is_err() {
            return End::Client;
        }
        loop {
            let went = match self.guest.peek_command(self.status).await {
                Ok(CommandByte::QUIT) => return End::Quit,
                Ok(byte) => self.command(byte).await,
                Err(end) => Err(end),
            };
            if let Err(end) = went {
                return end;
            }
        }
    }

    async fn command(&mut self, byte: u8) -> Result<(), End> {
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
        let (text, is_whole) = self.guest.client.link().peeked_body();
        if !is_whole {
            return Box::pin(self.long_query(mode)).await;
        }
        let judged = self.guest.worker.judge(text, mode);
        let mut plan = self.session.plan(text, mode, &judged);
        guide(
            &mut plan,
            text,
            &judged,
            (&self.guest.worker, self.guest.service),
        );
        if plan.is_kept {
            return Box::pin(self.kept_query(plan, mode)).await;
        }
        if plan.may_repeat {
            let mut spare = std::mem::take(&mut self.spare);
            spare.extend_from_slice(text);
            let repeat = Some((CommandByte::QUERY, &*spare));
            let answered = self
                .answer(&plan, Job::Plain, Request::Peeked, repeat)
                .await;
            spare.clear();
            spare.shrink_to(SPARE_BYTES_MAX);
            self.spare = spare;
            return answered.map(|_| ());
        }
        if plan.changes_session && lane::is_about_tracking(text) {
            return Box::pin(self.tracking_query(plan)).await;
        }
        let answered = self.answer(&plan, Job::Plain, Request::Peeked, None).await;
        answered.map(|_| ())
    }

    /// A text that changes what the server tells of the session, and is kept for no other one.
    async fn tracking_query(&mut self, plan: Plan) -> Result<(), End> {
        let answered = self
            .answer(&plan, Job::Plain, Request::Peeked, None)
            .await?;
        let lane = answered.and_then(|(place, _)| self.lane(place));
        lane.into_iter().for_each(Lane::tells_otherwise);
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
            self.keep(Command::Query(text), place, &answer, mode);
        }
        Ok(())
    }

    /// The gateway has to see what it needs, whatever the client has chosen to see.
    fn note_tracking(&mut self, place: Place, text: &[u8]) {
        if lane::is_about_tracking(text)
            && let Some(lane) = self.lane(place)
        {
            lane.tells_otherwise();
        }
    }

    /// A text that has not come as a whole. One that is known to be a write, or very long, is
    /// passed on as it comes.
    async fn long_query(&mut self, mode: SqlMode) -> Result<(), End> {
        let is_very_long = READ_BYTES_MAX < self.guest.client.link().peeked_bytes();
        let (text, _) = self.guest.client.link().peeked_body();
        let judged = Judged::unread(text, mode);
        if is_very_long || judged.class == syntax::class::Class::Write {
            let plan = self.session.plan(b"", mode, &judged);
            let answered = self.answer(&plan, Job::Plain, Request::Peeked, None).await;
            return answered.map(|_| ());
        }
        let packet = self.guest.take_command().await?;
        let text = packet.get(1..).unwrap_or_default();
        let judged = self.guest.worker.judge(text, mode);
        let mut plan = self.session.plan(text, mode, &judged);
        guide(
            &mut plan,
            text,
            &judged,
            (&self.guest.worker, self.guest.service),
        );
        let request = Request::Taken(CommandByte::QUERY, text);
        let answered = {
            let repeat = Some((CommandByte::QUERY, text));
            self.answer(&plan, Job::Plain, request, repeat).await?
        };
        if let Some((place, answer)) = answered
            && plan.changes_session
        {
            self.note_tracking(place, text);
            if plan.is_kept {
                self.keep(Command::Query(text.into()), place, &answer, mode);
            }
        }
        Ok(())
    }

    /// Keeps a command that has succeeded for the other connections.
    fn keep(&mut self, command: Command, place: Place, answer: &Answer, mode: SqlMode) {
        if !matches!(answer.ending, Ending::Status(_)) {
            return;
        }
        if self.history.keep(command, mode).is_err() {
            self.session.pin(Pin::LongHistory, place);
        }
        let last = self.history.last();
        if let Some(lane) = self.lane(place) {
            lane.applied = last;
        }
    }

    /// COM_INIT_DB, COM_SET_OPTION.
    async fn session_command(&mut self, byte: u8) -> Result<(), End> {
        let packet = self.guest.take_command().await?;
        let body = packet.get(1..).unwrap_or_default();
        let command = match byte {
            CommandByte::INIT_DB => Command::InitDb(body.into()),
            _ => {
                let option = body.first_chunk().map(|it| u16::from_le_bytes(*it));
                Command::SetOption(option.unwrap_or(u16::MAX))
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

    /// COM_RESET_CONNECTION. Other connections are opened anew when they are needed.
    async fn reset(&mut self) -> Result<(), End> {
        let plan = self.session.plan_session_command();
        let answered = self
            .answer(&plan, Job::Plain, Request::Peeked, None)
            .await?;
        if let Some((place, answer)) = answered
            && matches!(answer.ending, Ending::Status(_))
        {
            self.begin_anew(place).await;
        }
        Ok(())
    }

    /// The session is as after its login, with the connection to this server.
    async fn begin_anew(&mut self, place: Place) {
        for other in 0..self.lanes.len() {
            if other != usize::from(place.0)
                && let Some(lane) = self.lanes.get_mut(other).and_then(Option::take)
            {
                lane.held.server.close().await;
            }
        }
        self.history.clear();
        self.statements = Statements::default();
        let last = self.history.last();
        let status = self.lane(place).map(|lane| {
            lane.begin_anew(last);
            lane.held.server.status()
        });
        self.status = status.unwrap_or(self.status);
        self.session.reset(self.status);
    }

    /// COM_CHANGE_USER: the client logs in anew, and so does its connection to the primary.
    async fn change_user(&mut self) -> Result<(), End> {
        if self.guest.change_user().await? == ChangedUser::No {
            return Ok(());
        }
        let (worker, service) = (&self.guest.worker, self.guest.service);
        let info = self.guest.client.info();
        let connected = connect_first(worker, service, self.options, info).await;
        match connected {
            Ok(held) => {
                let place = held.place.watched_at();
                let before = std::mem::take(&mut self.lanes);
                self.put_lane(place, Lane::new(held));
                self.begin_anew(place).await;
                for lane in before.into_iter().flatten() {
                    lane.held.server.close().await;
                }
                self.guest.write_ok(self.status);
                Ok(())
            }
            Err(error) => {
                self.guest.write_error(&error);
                Err(End::Refused)
            }
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
        let plan = self.session.plan_command(Goal::Primary);
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

    /// Notes what a reply tells of the session.
    fn note(&mut self, plan: &Plan, place: Place, answer: &Answer) {
        let status = match answer.ending {
            Ending::Status(status) => Some(status),
            Ending::Error(_) => None,
            // Nothing that the session knows of has changed.
            Ending::Silent => return,
        };
        self.status = status.unwrap_or(self.status);
        // MariaDB names no transaction in the reply to a bulk.
        let exchange = &answer.exchange;
        let is_bulk = exchange.command_byte() == CommandByte::STMT_BULK_EXECUTE;
        let is_told = exchange.reports_changes() && !is_bulk;
        let tells_writes = is_told && self.lane(place).is_some_and(|lane| lane.tells_writes);
        let report = Report {
            status,
            changes: exchange.session_changes(),
            tells_writes,
        };
        let has_written = self.session.answered(plan, place, report);
        if has_written && self.options.causal_reads == CausalReads::Service {
            let service = self.guest.gateway().service(self.guest.service);
            service.written.advance(self.session.written());
        }
    }

    /// A packet that says nothing that can be understood.
    async fn malformed(&mut self, request: Request<'_>) -> Result<(), End> {
        let error = ClientError::new(ER_MALFORMED_PACKET, &[]);
        self.refuse(Job::Plain, request, &error).await?;
        Ok(())
    }

    /// Ends all connections.
    pub(crate) async fn leave(mut self, end: End) {
        let mut usable = Vec::new();
        for mut lane in std::mem::take(&mut self.lanes).into_iter().flatten() {
            if lane.held.server.link().is_usable() {
                usable.push(lane);
            } else {
                self.guest.end_statement(&mut lane.held);
            }
        }
        self.guest.leave(end).await;
        for lane in usable {
            lane.held.server.close().await;
        }
    }
}

/// Does as a comment of the text asks.
fn guide(plan: &mut Plan, text: &[u8], judged: &Judged, (worker, service): (&Worker, ServiceId)) {
    let hint = match find_hint(text) {
        None => return,
        Some(Ok(hint)) => hint,
        Some(Err(error)) => {
            tracing::debug!(%error, "a hint cannot be understood");
            return;
        }
    };
    let named = |name: &str| {
        worker.with_map(service, |it| {
            let mut servers = it.map.servers();
            let found = servers.find(|it| it.entry.name.eq_ignore_ascii_case(name));
            found.map(|it| it.id)
        })
    };
    let server = hint.server.and_then(named);
    let is_ours = |place: &Place| worker.load_of(service, *place).is_some();
    if hint.server.is_some() && server.is_none_or(|place| !is_ours(&place)) {
        let server = hint.server;
        tracing::debug!(server, "a hint names no server of the service");
        return;
    }
    plan.guide(&hint, server, judged);
}

/// A connection that was not used for so long is looked at before it is used: its server may have
/// closed it.
const STALE_AFTER: Duration = Duration::from_secs(1);
