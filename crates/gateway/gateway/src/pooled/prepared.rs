//! Statements that the client has prepared, on whichever server they run.
//!
//! A client's number of a statement is the gateway's. A server that has not prepared it does so
//! when it is needed there, in the database and with the variables by which the client prepared it.
//! A client tells the types of parameters once, in an execution or in a bulk of them; a server that
//! lacks them gets them with the values.

use std::collections::HashMap;
use std::sync::Arc;

use connection_state::CommandList;
use errcode::{
    ClientError, ER_MAX_PREPARED_STMT_COUNT_REACHED, ER_STMT_HAS_NO_OPEN_CURSOR,
    ER_UNKNOWN_STMT_HANDLER, Retry, WORDS_SERVER_LOST,
};
use foldhash::fast::RandomState;
use link::Ending;
use monitor::ServerId as Place;
use router::{Goal, Judged};
use smallvec::SmallVec;
use syntax::SqlMode;
use syntax::class::Facts;
use wire::{CommandByte, StatusFlags};

use crate::connection::common::StatementText;
use crate::connection::{NotReady, StatementKey};
use crate::end::End;
use crate::guest::{Answer, Failed, Form, Request};
use crate::hot::HotPlace;

use super::Pooled;
use super::answer::Job;
use super::caching::Kept;
use super::guide::{Guides, guide};
use super::lane::Lane;
use super::locks::OF_LOCKS;
use super::wait::{Waiter, while_up};

/// MariaDB: stands for the statement that was prepared last.
const LAST_PREPARED: u32 = u32::MAX;

/// Most statements that a session has at a time: as many as a server lets all sessions have by
/// default (`max_prepared_stmt_count`).
pub(super) const STATEMENTS_MAX: usize = 16_382;

/// Most bytes of their texts.
pub(super) const STATEMENT_BYTES_MAX: usize = 32 << 20;

/// Bytes of COM_STMT_EXECUTE before the NULL bits: number, cursor, iterations.
const EXECUTE_HEAD_BYTES: usize = 9;

/// Where COM_STMT_EXECUTE has the byte that asks for a cursor.
const CURSOR_FLAGS_AT: usize = 4;

/// Where COM_STMT_BULK_EXECUTE has its flags, behind the number. The types are behind both.
const BULK_FLAGS_AT: usize = 4;

/// Bytes of COM_STMT_BULK_EXECUTE before the types: number, flags.
const BULK_HEAD_BYTES: usize = 6;

/// The flag that says that the types follow, in the first byte of the flags.
const BULK_HAS_TYPES: u8 = 128;

/// Statements of a session.
#[derive(Debug, Default)]
pub(super) struct Statements {
    by_number: HashMap<u32, Statement, RandomState>,
    last: u32,
    /// Of all texts.
    total_bytes: usize,
    /// One has had a cursor or long data.
    needs_places: bool,
}

#[derive(Debug)]
struct Statement {
    /// As servers get it.
    key: StatementKey,
    judged: Judged,
    /// How servers have read its text.
    mode: SqlMode,
    parameter_count: usize,
    /// Two bytes for each parameter, as the client has told last.
    types: SmallVec<[u8; 16]>,
    /// Where long data was sent to that the next execution needs.
    data_at: Option<Place>,
    /// Long data was lost.
    has_lost_data: bool,
    /// Where its open cursor is.
    cursor_at: Option<Place>,
}

/// A command for a statement cannot be made for a server.
pub(super) enum Unaddressed {
    Refused(ClientError),
    Lost,
}

impl From<Unaddressed> for Failed {
    fn from(error: Unaddressed) -> Failed {
        match error {
            Unaddressed::Refused(error) => Failed::Refused(error),
            // The command itself was not sent.
            Unaddressed::Lost => Failed::Server(Retry::Now),
        }
    }
}

impl Statements {
    /// The statement's number, of the one that the client has sent.
    fn resolve(&self, number: u32) -> u32 {
        match number {
            LAST_PREPARED => self.last,
            number => number,
        }
    }

    /// Whether the beginning of an execution has all but the values.
    fn shows_head(&self, body: &[u8]) -> bool {
        let number = number_of(body).map(|number| self.resolve(number));
        let statement = number.and_then(|number| self.by_number.get(&number));
        statement.is_some_and(|it| {
            let count = it.parameter_count;
            EXECUTE_HEAD_BYTES + count.div_ceil(8) + 1 + 2 * count <= body.len()
        })
    }

    /// Whether there is room for a text.
    fn has_room(&self, text: &[u8]) -> bool {
        let bytes = self.total_bytes + text.len();
        self.by_number.len() < STATEMENTS_MAX && bytes <= STATEMENT_BYTES_MAX
    }

    /// Adds a statement that is prepared in this state, and returns its number.
    fn add(
        &mut self,
        text: Arc<StatementText>,
        (reading, mode): (&CommandList, SqlMode),
        judged: Judged,
    ) -> u32 {
        self.last = match self.last + 1 {
            LAST_PREPARED => 1,
            next => next,
        };
        self.total_bytes += text.bytes().len();
        let others = self.by_number.values().map(|it| &it.key);
        let twins = others.filter(|it| it.text == text && it.reading == *reading);
        let mut copies: Vec<_> = twins.map(|it| it.copy).collect();
        copies.sort_unstable();
        let copy = (0..).zip(&copies).find(|(copy, used)| copy != *used);
        let copy = copy.map_or(stdx::to_u32(copies.len()), |(copy, _)| copy);
        let reading = reading.clone();
        let statement = Statement {
            key: StatementKey {
                text,
                reading,
                copy,
            },
            judged,
            mode,
            parameter_count: 0,
            types: SmallVec::new(),
            data_at: None,
            has_lost_data: false,
            cursor_at: None,
        };
        self.by_number.insert(self.last, statement);
        self.last
    }

    fn remove(&mut self, number: u32) -> Option<Statement> {
        let statement = self.by_number.remove(&number)?;
        self.total_bytes -= statement.key.text.bytes().len();
        Some(statement)
    }

    /// Whether a cursor is open on the connection to a server, or long data waits there.
    pub(super) fn need(&self, place: Place) -> bool {
        let is_there = |it: &Statement| it.cursor_at == Some(place) || it.data_at == Some(place);
        self.needs_places && self.by_number.values().any(is_there)
    }

    /// The connection to a server is gone.
    pub(super) fn lose(&mut self, place: Place) {
        for statement in self.by_number.values_mut() {
            if statement.data_at == Some(place) {
                statement.data_at = None;
                statement.has_lost_data = true;
            }
            if statement.cursor_at == Some(place) {
                statement.cursor_at = None;
            }
        }
    }

    /// Long data of a statement could not be sent.
    pub(super) fn lose_data(&mut self, number: u32) {
        if let Some(statement) = self.by_number.get_mut(&number) {
            statement.has_lost_data = true;
        }
    }

    /// Has a server prepare a statement, unless it has, and returns what a command for it needs
    /// there. `now` has the commands by which the connection reads texts, and `sent` is the body
    /// of the command.
    pub(super) async fn address(
        &mut self,
        number: u32,
        (lane, now, waiter): (&mut Lane, &CommandList, Waiter<'_>),
        (kind, sent): (Kind, &[u8]),
    ) -> Result<Address, Unaddressed> {
        let Some(statement) = self.by_number.get_mut(&number) else {
            let byte = CommandByte::STMT_EXECUTE;
            return Err(Unaddressed::Refused(unknown(number, byte)));
        };
        if statement.has_lost_data && kind.takes_data() {
            return Err(Unaddressed::Refused(lost_data()));
        }
        let told = statement.note_types(kind, sent);
        if let Some(prepared) = lane.connection.prepared(&statement.key) {
            return Ok(statement.address(kind, told, prepared));
        }
        if statement.data_at.is_some() && kind.takes_data() {
            // It went with the statement that it was sent for.
            return Err(Unaddressed::Refused(lost_data()));
        }
        let preparing = lane.connection.prepare(&statement.key, now);
        // Boxed, so that a client's task reserves no room for what is rare.
        let preparing = Box::pin(while_up(waiter, lane.id, preparing));
        preparing.await.map_err(|error| match error {
            NotReady::Refused(error) => Unaddressed::Refused(error),
            NotReady::Lost(_) => Unaddressed::Lost,
        })?;
        lane.is_own = false;
        let prepared = lane.connection.prepared(&statement.key);
        Ok(statement.address(kind, told, prepared.expect("it is prepared")))
    }
}

/// What a command for a statement needs on a server.
pub(super) struct Address {
    /// The server's number of the statement.
    id: u32,
    /// The types that the server does not have, and where they belong in the body.
    types: Option<(TypePlace, SmallVec<[u8; 16]>)>,
}

impl Address {
    /// Whether the body is as the client has sent it, but for the number.
    pub(super) fn only_renumbers(&self) -> bool {
        self.types.is_none()
    }

    /// The number, as it begins the body.
    pub(super) fn number(&self) -> [u8; 4] {
        self.id.to_le_bytes()
    }

    /// The body for the server.
    pub(super) fn body(&self, sent: &[u8]) -> Vec<u8> {
        let mut body = sent.to_vec();
        let number = self.number();
        if let Some(start) = body.get_mut(..number.len()) {
            start.copy_from_slice(&number);
        }
        if let Some((place, types)) = &self.types
            && let Some(flags) = body.get_mut(place.flags_at)
        {
            *flags |= place.flag;
            body.splice(place.at..place.at, types.iter().copied());
        }
        body
    }
}

/// What a command does with a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// COM_STMT_EXECUTE.
    Execute,
    /// COM_STMT_BULK_EXECUTE.
    Bulk,
    /// COM_STMT_SEND_LONG_DATA.
    Data,
    /// Anything else. It has no types and no values.
    Other,
}

impl Kind {
    /// Whether what it means depends on long data that was sent before.
    fn takes_data(self) -> bool {
        self != Kind::Other
    }
}

/// What an execution says of the types of its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Types {
    /// It has them.
    Told,
    /// They are those of the execution before, and left out here.
    Untold(TypePlace),
    /// There are no parameters, or the body is too short to have any.
    None,
}

/// Where a body has the types, or would have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TypePlace {
    /// The byte that says whether they are there.
    flags_at: usize,
    /// The bit that says so.
    flag: u8,
    at: usize,
}

impl TypePlace {
    /// Of a command for a statement with so many parameters. `None` if it has no types.
    fn of(kind: Kind, parameter_count: usize) -> Option<TypePlace> {
        let behind_nulls = EXECUTE_HEAD_BYTES + parameter_count.div_ceil(8);
        match kind {
            _ if parameter_count == 0 => None,
            Kind::Execute => Some(TypePlace {
                flags_at: behind_nulls,
                flag: 1,
                at: behind_nulls + 1,
            }),
            Kind::Bulk => Some(TypePlace {
                flags_at: BULK_FLAGS_AT,
                flag: BULK_HAS_TYPES,
                at: BULK_HEAD_BYTES,
            }),
            Kind::Data | Kind::Other => None,
        }
    }
}

impl Statement {
    /// Keeps the types that an execution tells.
    fn note_types(&mut self, kind: Kind, body: &[u8]) -> Types {
        let count = self.parameter_count;
        let Some(place) = TypePlace::of(kind, count) else {
            return Types::None;
        };
        match body.get(place.flags_at) {
            Some(flags) if flags & place.flag != 0 => {
                let types = body.get(place.at..place.at + 2 * count);
                if let Some(types) = types
                    && *self.types != *types
                {
                    self.types = SmallVec::from_slice(types);
                }
                Types::Told
            }
            Some(_) => Types::Untold(place),
            None => Types::None,
        }
    }

    /// What a command for it needs on a server that has this number for it, and got these types
    /// last.
    fn address(&self, kind: Kind, told: Types, (id, here): (u32, &mut Box<[u8]>)) -> Address {
        let is_new = **here != *self.types;
        let types = match told {
            Types::Untold(place) if is_new => Some((place, self.types.clone())),
            Types::Told | Types::Untold(_) | Types::None => None,
        };
        if kind == Kind::Bulk {
            // A server that refuses bulks of the statement has not looked at their types.
            *here = Box::default();
        } else if told != Types::None && is_new {
            *here = (&*self.types).into();
        }
        Address { id, types }
    }
}

/// No statement has this number. The text calls a command as servers do.
fn unknown(number: u32, byte: u8) -> ClientError {
    let command = match byte {
        CommandByte::STMT_FETCH => "mysqld_stmt_fetch",
        CommandByte::STMT_RESET => "mysqld_stmt_reset",
        CommandByte::STMT_BULK_EXECUTE => "mysqld_stmt_bulk_execute",
        _ => "mysqld_stmt_execute",
    };
    ClientError::new(ER_UNKNOWN_STMT_HANDLER, &[&number, &command])
}

/// Long data of a statement is lost, and the statement cannot be executed without it.
fn lost_data() -> ClientError {
    ClientError::worded(WORDS_SERVER_LOST, &[&"of the long data"])
}

/// The first byte of an execution. Only a plain one is peeked at.
fn byte_of(request: Request<'_>) -> u8 {
    match request {
        Request::Peeked => CommandByte::STMT_EXECUTE,
        Request::Taken(byte, _) => byte,
    }
}

/// What an execution is about.
fn job_of(request: Request<'_>, number: u32) -> Job {
    match byte_of(request) {
        CommandByte::STMT_EXECUTE => Job::Execute(number),
        _ => Job::Bulk(number),
    }
}

/// Whether a statement has to go elsewhere than its long data.
fn is_elsewhere_than(goal: Goal, data_at: Option<Place>) -> bool {
    match (data_at, goal) {
        (Some(data), Goal::Held(place)) => data != place,
        _ => false,
    }
}

/// Where an execution has left a cursor, and which server has taken the statement's long data.
fn left_by(answered: Option<(Place, Answer)>) -> (Option<Place>, Option<Place>) {
    match answered.map(|(place, answer)| (place, answer.ending)) {
        Some((place, Ending::Status(status))) => {
            let has_cursor = status.contains(StatusFlags::CURSOR_EXISTS);
            (has_cursor.then_some(place), Some(place))
        }
        Some((_, Ending::Error(_) | Ending::Silent)) | None => (None, None),
    }
}

/// The number at the beginning of a body.
fn number_of(body: &[u8]) -> Option<u32> {
    body.first_chunk().map(|number| u32::from_le_bytes(*number))
}

impl Pooled {
    /// COM_STMT_PREPARE.
    pub(super) async fn prepare(&mut self) -> Result<(), End> {
        let mode = self.mode();
        let packet = self.guest.take_command().await?;
        let text = packet.get(1..).unwrap_or_default();
        let judged = self.guest.ruled.judge(text, mode);
        let mut hinted = self.session.plan(text, mode, &judged);
        if let Err(error) = self.guide(&mut hinted, text, &judged) {
            self.guest.write_error(&error);
            return Ok(());
        }
        let mut plan = self.session.plan_command(hinted.goal);
        plan.may_repeat = true;
        let facts = judged.verdict.facts;
        let words;
        let text = match facts.has(Facts::READS_CONNECTION_ID) && self.multiplexes {
            true => {
                words = self.with_own_number(text, mode);
                &*words
            }
            false => text,
        };
        if !self.statements.has_room(text) {
            let number = ER_MAX_PREPARED_STMT_COUNT_REACHED;
            let error = ClientError::new(number, &[&self.statements.by_number.len()]);
            self.guest.write_error(&error);
            return Ok(());
        }
        let shared = self.guest.worker.share_text(text);
        let reading = (self.history.reading(), mode);
        let number = self.statements.add(shared, reading, judged);
        let byte = CommandByte::STMT_PREPARE;
        let request = Request::Taken(byte, text);
        let repeat = Some((byte, text));
        let answered = self
            .answer(&plan, Job::Prepare(number), request, repeat)
            .await?;
        let told = answered.and_then(|(place, it)| Some((place, it.exchange.prepared()?)));
        let Some((place, prepared)) = told else {
            self.statements.remove(number);
            return Ok(());
        };
        let lane = self.lanes.get_mut(usize::from(place.0));
        if let Some(statement) = self.statements.by_number.get_mut(&number)
            && let Some(Some(lane)) = lane
        {
            statement.parameter_count = usize::from(prepared.parameter_count);
            let id = prepared.statement_id;
            lane.connection.note_prepared(&statement.key, id).await;
        }
        if hinted.clears_warnings {
            self.session.recall_mut().drop_warnings();
            self.warnings = None;
        }
        self.pin_reader(facts, place);
        Ok(())
    }

    /// COM_STMT_EXECUTE, COM_STMT_BULK_EXECUTE.
    pub(super) async fn execute(&mut self, byte: u8) -> Result<(), End> {
        let (body, is_whole) = self.guest.client.link().peeked_body();
        let is_plain = byte == CommandByte::STMT_EXECUTE;
        if !is_plain || !is_whole && !self.statements.shows_head(body) {
            let packet = self.guest.take_command().await?;
            let body = packet.get(1..).unwrap_or_default();
            let command = (byte, body);
            return self
                .execute_body(Request::Taken(byte, body), body, Some(command))
                .await;
        }
        let mut spare = std::mem::take(&mut self.spare);
        spare.extend_from_slice(body);
        let repeat = is_whole.then_some((byte, &*spare));
        let executed = self.execute_body(Request::Peeked, &spare, repeat).await;
        spare.clear();
        spare.shrink_to(super::SPARE_BYTES_MAX);
        self.spare = spare;
        executed
    }

    /// `body` is the command's, or its beginning; `repeat` the whole, to be sent again.
    async fn execute_body(
        &mut self,
        request: Request<'_>,
        body: &[u8],
        repeat: Option<(u8, &[u8])>,
    ) -> Result<(), End> {
        let Some(number) = number_of(body) else {
            return Box::pin(self.malformed(request)).await;
        };
        let number = self.statements.resolve(number);
        let Some(statement) = self.statements.by_number.get_mut(&number) else {
            let error = unknown(number, byte_of(request));
            return Box::pin(self.refuse_statement(number, request, &error)).await;
        };
        HotPlace::Statement.note(statement);
        let text = statement.key.text.bytes();
        let current = &mut self.guest.current;
        current.begin_statement(Form::Prepared, text, &statement.judged);
        let judged = &statement.judged;
        let mut plan = self.session.plan_execution(text, statement.mode, judged);
        // The server is in the database of then meanwhile, and reports that as a change.
        let is_elsewhere = statement.key.reading != *self.history.reading()
            && !plan.changes_session
            && !plan.may_change_unseen();
        plan.changes_session |= is_elsewhere;
        let guides = Guides::of(&self.session, &self.guest);
        let guided = match guide(&mut plan, text, &statement.judged, guides) {
            Ok(guided) => guided,
            Err(error) => {
                return Box::pin(self.refuse_statement(number, request, &error)).await;
            }
        };
        self.guest.time_max = guided.time_max.or(self.guest.time_max);
        let is_whole = repeat.is_some() && !is_elsewhere;
        match self.kept_execution(number, body, (&guided, is_whole)) {
            Kept::Reply(reply) => return self.tell_kept(reply, request).await,
            Kept::Wanted(reply) => {
                let sent = (number, request, repeat);
                return Box::pin(self.wanted_execution(plan, sent, reply)).await;
            }
            Kept::Nothing => {}
        }
        let Some(statement) = self.statements.by_number.get(&number) else {
            return Ok(());
        };
        let data_at = statement.data_at;
        let is_held = data_at.is_some() || statement.cursor_at.is_some();
        if statement.has_lost_data || is_elsewhere_than(plan.goal, data_at) {
            Box::pin(self.let_go(number, (None, None))).await;
            return Box::pin(self.refuse_statement(number, request, &lost_data())).await;
        }
        if let Some(place) = data_at {
            plan.goal = Goal::Held(place);
            plan.may_repeat = false;
        }
        let job = job_of(request, number);
        // A block, since what was borrowed is kept in the client's task to the end of its scope.
        let (cursor_at, cleared_at) = {
            let answered = match self.is_out_of_reach(&plan, request) {
                true => Box::pin(self.execute_apart(&plan, number, (request, body))).await?,
                false => self.answer(&plan, job, request, repeat).await?,
            };
            if is_elsewhere && let Some((place, answer)) = &answered {
                self.note_elsewhere(*place, answer);
            }
            left_by(answered)
        };
        if plan.facts.has_any(OF_LOCKS) {
            Box::pin(self.look_at_locks_of(number, plan.facts)).await?;
        }
        if is_held || cursor_at.is_some() {
            Box::pin(self.let_go(number, (cursor_at, cleared_at))).await;
        }
        Ok(())
    }

    /// Answers a command for a statement with an error.
    async fn refuse_statement(
        &mut self,
        number: u32,
        request: Request<'_>,
        error: &ClientError,
    ) -> Result<(), End> {
        let refused = self.refuse(Job::Statement(number), request, error).await;
        refused.map(|_| ())
    }

    /// Learns which locks an execution has left.
    async fn look_at_locks_of(&mut self, number: u32, facts: Facts) -> Result<(), End> {
        let Some(statement) = self.statements.by_number.get(&number) else {
            return Ok(());
        };
        let (text, mode) = (Arc::clone(&statement.key.text), statement.mode);
        self.look_at_locks(facts, text.bytes(), mode).await
    }

    /// A statement has no long data any more, and no cursor but for one at `cursor_at`. The server
    /// at `cleared_at` has seen to that itself. Elsewhere its statement is closed, since the next
    /// session with this text would find what is left there.
    async fn let_go(
        &mut self,
        number: u32,
        (cursor_at, cleared_at): (Option<Place>, Option<Place>),
    ) {
        let Some(statement) = self.statements.by_number.get_mut(&number) else {
            return;
        };
        let before = [statement.cursor_at.take(), statement.data_at.take()];
        statement.has_lost_data = false;
        statement.cursor_at = cursor_at;
        self.statements.needs_places |= cursor_at.is_some();
        for place in before.into_iter().chain([cursor_at]).flatten() {
            let Some(Some(lane)) = self.lanes.get_mut(usize::from(place.0)) else {
                continue;
            };
            let (connection, key) = (&mut lane.connection, &statement.key);
            if cursor_at == Some(place) {
                connection.hold_statement(key);
            } else if cleared_at == Some(place) {
                connection.release_statement(key);
            } else {
                connection.close_statement(key).await;
            }
        }
    }

    /// COM_STMT_SEND_LONG_DATA, which has no answer.
    pub(super) async fn send_long_data(&mut self) -> Result<(), End> {
        let (body, _) = self.guest.client.link().peeked_body();
        let found = number_of(body).map(|number| self.statements.resolve(number));
        let Some((number, statement)) = found.and_then(|number| {
            let statement = self.statements.by_number.get_mut(&number)?;
            Some((number, statement))
        }) else {
            // It is none, or it comes in pieces too small to be looked at.
            self.guest.take_command().await?;
            return Ok(());
        };
        let mode = statement.mode;
        let data_at = statement.data_at;
        let goal = match data_at {
            Some(place) => Goal::Held(place),
            None => {
                let (text, judged) = (statement.key.text.bytes(), &statement.judged);
                let mut plan = self.session.plan(text, mode, judged);
                let guides = Guides::of(&self.session, &self.guest);
                // Its execution is what a rule refuses.
                let _ = guide(&mut plan, text, judged, guides);
                plan.goal
            }
        };
        let plan = self.session.plan_command(goal);
        let job = Job::Data(number);
        let answered = match is_elsewhere_than(plan.goal, data_at) {
            true => {
                self.guest.take_command().await?;
                None
            }
            false => self.answer(&plan, job, Request::Peeked, None).await?,
        };
        if answered.is_none() {
            // What was sent before is not all of it.
            self.let_go(number, (None, None)).await;
            self.statements.lose_data(number);
        } else if let Some(statement) = self.statements.by_number.get_mut(&number) {
            statement.data_at = answered.map(|(place, _)| place);
            self.statements.needs_places = true;
            let lane = statement
                .data_at
                .and_then(|it| self.lanes.get_mut(usize::from(it.0)));
            if let Some(Some(lane)) = lane {
                lane.connection.hold_statement(&statement.key);
            }
        }
        Ok(())
    }

    /// COM_STMT_FETCH, COM_STMT_RESET.
    pub(super) async fn continue_statement(&mut self, byte: u8) -> Result<(), End> {
        let packet = self.guest.take_command().await?;
        let body = packet.get(1..).unwrap_or_default();
        let request = Request::Taken(byte, body);
        let Some(number) = number_of(body).map(|number| self.statements.resolve(number)) else {
            return self.malformed(request).await;
        };
        let job = Job::Statement(number);
        let Some(statement) = self.statements.by_number.get_mut(&number) else {
            let error = unknown(number, byte);
            Box::pin(self.refuse(job, request, &error)).await?;
            return Ok(());
        };
        let is_reset = byte == CommandByte::STMT_RESET;
        let data_at = statement.data_at.filter(|_| is_reset);
        match statement.cursor_at.or(data_at) {
            Some(place) => {
                let plan = self.session.plan_command(Goal::Held(place));
                let answered = self.answer(&plan, job, request, None).await?;
                let status = answered.and_then(|(_, answer)| match answer.ending {
                    Ending::Status(status) => Some(status),
                    Ending::Error(_) | Ending::Silent => None,
                });
                // The server closes a cursor behind its last row.
                let is_last = |it: StatusFlags| it.contains(StatusFlags::LAST_ROW_SENT);
                if is_reset || status.is_some_and(is_last) {
                    let cleared_at = status.map(|_| place);
                    self.let_go(number, (None, cleared_at)).await;
                }
            }
            None if is_reset => {
                statement.has_lost_data = false;
                if self.session.knows_transaction() {
                    self.guest.write_ok(self.status);
                    return Ok(());
                }
                // Only the server knows the status that the reply has: an error has told none.
                let plan = self.session.plan_command(Goal::PrimaryFirst);
                let ping = Request::Taken(CommandByte::PING, &[]);
                self.answer(&plan, Job::Plain, ping, None).await?;
            }
            None => {
                let error = ClientError::new(ER_STMT_HAS_NO_OPEN_CURSOR, &[&number]);
                self.refuse(job, request, &error).await?;
            }
        }
        Ok(())
    }

    /// COM_STMT_CLOSE, which has no answer.
    pub(super) async fn close_statement(&mut self) -> Result<(), End> {
        let packet = self.guest.take_command().await?;
        let Some(number) = number_of(packet.get(1..).unwrap_or_default()) else {
            return Ok(());
        };
        let number = self.statements.resolve(number);
        let Some(statement) = self.statements.remove(number) else {
            return Ok(());
        };
        // Where others may use it, it stays until there is no room for it.
        let is_used = |place: usize| {
            let at = |it: Option<Place>| it.is_some_and(|it| usize::from(it.0) == place);
            at(statement.cursor_at) || at(statement.data_at)
        };
        let is_closed = !self.multiplexes;
        for (place, lane) in self.lanes.iter_mut().enumerate() {
            if let Some(lane) = lane.as_mut().filter(|_| is_closed || is_used(place)) {
                lane.connection.close_statement(&statement.key).await;
            }
        }
        Ok(())
    }
}

mod kept;
mod words;

#[cfg(test)]
mod tests;
