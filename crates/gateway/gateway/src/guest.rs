//! [`Guest`]: a client that is logged in, and what a session of any router does for it.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use backend::Server;
use clients::wait::{Either, first_of};
use clients::{ClientNumbers, KillOrder, SessionHandle};
use digests::Who;
use errcode::{
    ClientError, ER_CONNECTION_KILLED, ER_MALFORMED_PACKET, ER_QUERY_INTERRUPTED,
    ER_SERVER_SHUTDOWN, ER_UNKNOWN_COM_ERROR, Origin, Retry,
};
use front::{Client, Disconnect, LoginFailure};
use link::{Agreed, Ending, Exchange, ForwardError, Limit, Turn};
use monitor::ServerState;
use router::{PATTERN_BYTES_MAX, Pin, Pins};
use runtime::TaskClass;
use syntax::{KillStatement, KillTarget, SqlMode};
use wire::{
    Command, CommandByte, ErrorPacket, OkKind, OkPacket, SessionChange, SessionChanges, StatusFlags,
};

use crate::connect::login_as;
use crate::end::End;
use crate::gateway::Gateway;
use crate::gateway::generation::Generation;
use crate::kill;
use crate::options::{ServerId, ServiceId};
use crate::running::{Running, Stay};
use crate::service::AccountLookup;
use crate::worker::Worker;

mod current;
mod overdue;
mod ruled;
mod traced;

pub(crate) use current::{Current, Form, Reply, Said};
use overdue::Overdue;
pub(crate) use ruled::{Ruled, is_read_alike, refusal};

/// A statement may take as long as its server lets it: a year is no limit.
const STATEMENT_TIME_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// A client that is silent for so long has its server's connection watched. Most are not, and cost
/// no look.
const SERVER_WATCH_DELAY: Duration = Duration::from_secs(1);

/// A primary that sends a binary log tells in this time that it is alive (MariaDB's
/// `slave_net_timeout`, whose default is a minute, doubled).
const STREAM_PATIENCE: Duration = Duration::from_secs(120);

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Guest {
    pub(crate) worker: Rc<Worker>,
    pub(crate) service: ServiceId,
    pub(crate) client: Client,
    pub(crate) handle: Arc<SessionHandle>,
    /// The server connection that is used, for KILL.
    pub(crate) running: Arc<Running>,
    /// What the client gets if a server that it cannot do without is lost.
    pub(crate) lost: Option<ClientError>,
    /// How often COM_CHANGE_USER was refused.
    pub(crate) failed_changes: u32,
    /// The rules that it has to do with.
    pub(crate) ruled: Ruled,
    /// How long the statement under way may run.
    pub(crate) time_max: Option<Duration>,
    /// That statement, to be counted.
    pub(crate) current: Box<Current>,
    /// For whom it is.
    who: Arc<Who>,
}

/// A pin's number in [`clients::ProcessLine::kept_by`].
pub(crate) fn number_of(pin: Pin) -> u8 {
    u8::try_from(pin.index()).expect("there are few pins")
}

/// Most times that a session may be refused another user: MariaDB's limit against guessing.
const CHANGE_USER_FAILURES_MAX: u32 = 3;

/// A command of no more bytes than these is looked at once all of it has come.
const SHORT_BYTES: usize = 1 << 10;

/// What became of a COM_CHANGE_USER.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangedUser {
    /// The client is another user.
    Yes,
    /// It was refused, and its client has the error.
    No,
}

/// A command that a server is to answer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Request<'a> {
    /// The one that the client was peeked at for.
    Peeked,
    /// A command byte and a body; the client's command was taken.
    Taken(u8, &'a [u8]),
}

/// A command was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    /// How the reply has ended.
    pub(crate) ending: Ending,
    /// What it has told beside that.
    pub(crate) exchange: Exchange,
}

/// A command was not answered, or not to its end.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The session is over.
    Session(End),
    /// The client gets this error; nothing was sent.
    Refused(ClientError),
    /// The server is lost; whether the command may be sent again is what its error says.
    Server(Retry),
}

impl Guest {
    /// A client that has logged in to a service.
    pub(crate) fn new(
        worker: &Rc<Worker>,
        service: ServiceId,
        client: Client,
        handle: &Arc<SessionHandle>,
    ) -> Guest {
        let generation = &worker.generation;
        let name = &generation.service(service).options.name;
        let running = Running::nowhere(generation.number, service);
        running.standing.run(runtime::now());
        let database = client.info().database.clone();
        handle.update(|line| line.database = database);
        Guest {
            worker: Rc::clone(worker),
            service,
            who: worker.share_who(service, client.info()),
            current: Box::new(Current::new(worker.tracer())),
            ruled: Ruled::new(worker.judge(), name, client.info()),
            client,
            handle: Arc::clone(handle),
            running: Arc::new(running),
            lost: None,
            failed_changes: 0,
            time_max: None,
        }
    }

    pub(crate) fn gateway(&self) -> &Arc<Gateway> {
        &self.worker.gateway
    }

    /// The configuration that it has.
    pub(crate) fn generation(&self) -> &Arc<Generation> {
        &self.worker.generation
    }

    /// Waits for a command. Returns its first byte.
    pub(crate) async fn peek_command(&mut self, status: StatusFlags) -> Result<u8, End> {
        self.peek_for(status, self.generation().limits.wait_timeout)
            .await
    }

    /// The same, of a client whose session ends with its server's connection. A server that closes
    /// it while the client is silent is noticed, since a client looks for that before it sends.
    pub(crate) async fn peek_beside(
        &mut self,
        status: StatusFlags,
        server: &link::Link,
    ) -> Result<u8, End> {
        let wait_timeout = self.generation().limits.wait_timeout;
        let soon = SERVER_WATCH_DELAY.min(wait_timeout);
        match self.peek_for(status, soon).await {
            Err(End::Idle) if soon < wait_timeout => {}
            peeked => return peeked,
        }
        let peek = pin!(self.peek_for(status, wait_timeout - soon));
        match first_of(peek, pin!(server.stream().hung_up())).await {
            Either::Left(peeked) => peeked,
            Either::Right(()) => Err(End::Server),
        }
    }

    /// The same, for so long.
    pub(crate) async fn peek_for(
        &mut self,
        status: StatusFlags,
        limit: Duration,
    ) -> Result<u8, End> {
        let worker = &self.worker;
        let (class, limit) = match status.contains(StatusFlags::IN_TRANSACTION) {
            true => {
                let service = &worker.generation.service(self.service).options;
                let idle_max = service.idle_transaction_max.unwrap_or(limit);
                (TaskClass::InTransaction, limit.min(idle_max))
            }
            false => (TaskClass::OutsideTransaction, limit),
        };
        let peeked = {
            let peek = pin!(self.client.peek_command(limit, class));
            let dismissed = pin!(worker.gateway.clients().registry().dismissed(&self.handle));
            first_of(peek, dismissed).await
        };
        match peeked {
            _ if self.is_dismissed() => Err(self.dismissal()),
            Either::Left(Ok(byte)) => {
                let (_, is_whole) = self.client.link().peeked_body();
                if !is_whole && self.client.link().peeked_bytes() <= SHORT_BYTES {
                    // It may be KILL, which is looked for in whole commands.
                    Box::pin(self.receive_text(SHORT_BYTES)).await?;
                }
                Ok(byte)
            }
            Either::Left(Err(Disconnect::Idle)) => Err(End::Idle),
            Either::Left(Err(_)) => Err(End::Client),
            Either::Right(()) => Err(self.dismissal()),
        }
    }

    fn is_dismissed(&self) -> bool {
        let is_killed = self.handle.order() == KillOrder::Connection;
        is_killed || self.gateway().clients().registry().is_ending()
    }

    fn dismissal(&self) -> End {
        match self.handle.order() {
            KillOrder::Connection => End::Killed,
            KillOrder::None | KillOrder::Query => End::Shutdown,
        }
    }

    /// The session is in this database now, for the rules and for what is counted.
    pub(crate) fn look_at_rules(&mut self, schema: &[u8]) {
        let name = String::from_utf8_lossy(schema);
        if self.who.database.as_deref().unwrap_or_default() != name {
            let database = (!name.is_empty()).then(|| name.into());
            self.who = self.worker.share_who_in(&self.who, database);
        }
        if self.ruled.looks_at_schema() {
            let service = &self.worker.generation.service(self.service).options.name;
            self.ruled.look(service, self.client.info(), Some(schema));
        }
    }

    /// A command has come.
    pub(crate) fn begin_command(&mut self) {
        // An order against the statement before.
        if self.handle.order() == KillOrder::Query {
            self.handle.clear_query_order();
            self.running.take_kill();
        }
        let now = runtime::now();
        self.running.standing.run(now);
        self.current
            .begin(now, self.worker.query_log().kept_bytes());
        self.current.may_be_traced = self.worker.tracer().looks_at(&self.who.service);
        let service = &self.generation().service(self.service).options;
        self.time_max = service.statement_time_max;
    }

    /// The session is in this database now, for operators.
    pub(crate) fn note_database(&self, name: &[u8]) {
        let name = String::from_utf8_lossy(name).into_owned();
        self.handle.update(|line| line.database = Some(name));
    }

    /// The session waits for a command.
    pub(crate) fn rest(&self, stay: Stay) {
        let added = self.running.standing.rest(stay, runtime::now());
        if !added.is_empty() {
            self.worker.counters.count_pins(added);
            self.note_pins(stay.pins, added);
        }
    }

    /// Notes for operators which statement has pinned the session. Pins are rare.
    fn note_pins(&self, all: Pins, added: Pins) {
        let text = self.current.shown().map(Arc::<str>::from);
        self.handle.update(|line| {
            let lasts = |pin: Pin, number| number_of(pin) == number && !added.has(pin);
            let kept_by = &mut line.kept_by;
            kept_by.retain(|(number, _)| all.iter().any(|pin| lasts(pin, *number)));
            let new = added.iter().zip(std::iter::repeat(text));
            kept_by.extend(new.filter_map(|(pin, text)| Some((number_of(pin), text?))));
        });
    }

    /// Passes a command on, and the reply back.
    pub(crate) async fn pass(
        &mut self,
        server: &mut Server,
        (id, agreed): (ServerId, Agreed),
        request: Request<'_>,
        statement_id: Option<u32>,
    ) -> Result<Answer, Failed> {
        self.worker.count_statement(id);
        let by = (&self.worker, &self.running);
        let time_max = self.time_max;
        let mut overdue = time_max.map(|it| Box::new(Overdue::new(by, it)));
        let mut begun = None;
        let passed = {
            // What is under way on a server that an operator takes out may end.
            let mut given_up = pin!(given_up(
                &self.worker,
                &self.handle,
                id,
                ServerState::answers
            ));
            let (client, info) = self.client.link_and_info();
            let server = server.link();
            let watched = pin!(poll_fn(|context| {
                // First, so that an order that comes now wakes the session.
                let given_up = given_up.as_mut().poll(context);
                if self.handle.order() == KillOrder::Query && self.running.take_kill() {
                    kill::end_statement_later(&self.worker, self.running.aim(), info);
                }
                if let Some(overdue) = &mut overdue {
                    overdue.poll(info, context);
                }
                given_up
            }));
            let passing = exchange(client, server, agreed, (request, statement_id), &mut begun);
            first_of(pin!(passing), watched).await
        };
        if let Some(overdue) = overdue {
            overdue.finish().await;
        }
        match (passed, begun) {
            (Either::Left(Ok(ending)), Some(exchange)) => {
                if let Ending::Status(status) = ending {
                    server.set_status(status);
                }
                Ok(Answer { ending, exchange })
            }
            (Either::Left(Ok(_)), None) => unreachable!("what has ended has begun"),
            (Either::Left(Err(error)), _) => Err(self.lost(id, &error)),
            (Either::Right(GivenUp::Killed), _) => Err(Failed::Session(End::Killed)),
            (Either::Right(GivenUp::ServerDown), begun) => {
                if let Some(exchange) = begun {
                    exchange.give_up(self.client.link());
                }
                Err(Failed::Server(Retry::IfRead))
            }
        }
    }

    /// What follows from an exchange that failed.
    pub(crate) fn lost(&self, server: ServerId, error: &ForwardError) -> Failed {
        let id = self.handle.id();
        match error.origin() {
            Origin::Client => {
                tracing::debug!(connection_id = id, %error, "a client is gone");
                Failed::Session(End::Client)
            }
            Origin::Server | Origin::Ourselves => {
                let name = &*self.generation().server(server).options.name;
                tracing::warn!(connection_id = id, server = name, %error, "a server was lost");
                self.worker.report_failure(server);
                Failed::Server(error.retry())
            }
        }
    }

    /// Waits for a text that has not come as a whole: for the rest of it if it has no more than
    /// `bytes_max`, else for the beginning that rules see.
    pub(crate) async fn receive_text(&mut self, bytes_max: usize) -> Result<(), End> {
        // A text stands behind the byte of its command.
        let packet_bytes = self.client.link().peeked_bytes();
        let wanted = match packet_bytes <= 1 + bytes_max {
            true => packet_bytes,
            false => 1 + PATTERN_BYTES_MAX,
        };
        let received = {
            let registry = self.worker.gateway.clients().registry();
            let receive = pin!(self.client.receive_peeked(wanted));
            first_of(receive, pin!(registry.dismissed(&self.handle))).await
        };
        match received {
            Either::Left(received) => received.map_err(|_| End::Client),
            Either::Right(()) => Err(self.dismissal()),
        }
    }

    /// Takes the command that was peeked at.
    pub(crate) async fn take_command(&mut self) -> Result<link::PacketBytes, End> {
        let wait_timeout = self.generation().limits.wait_timeout;
        let class = TaskClass::OutsideTransaction;
        let read = self.client.read_command(wait_timeout, class).await;
        read.map_err(|_| End::Client)
    }

    /// Answers a command that was taken with an error.
    pub(crate) fn write_error(&mut self, error: &ClientError) {
        self.current.note_error(error.code);
        ErrorPacket::encode(self.client.out(), error);
        self.client.end_reply();
    }

    /// Answers a command that was taken with an OK.
    pub(crate) fn write_ok(&mut self, status: StatusFlags) {
        let ok = OkPacket {
            status,
            ..OkPacket::default()
        };
        let capabilities = self.client.capabilities();
        ok.encode(self.client.out(), capabilities, OkKind::Ok);
        self.client.end_reply();
    }

    /// Whether the command that was peeked at is a KILL with a number that a client has.
    pub(crate) fn is_kill(&mut self, command_byte: u8) -> bool {
        let number = match command_byte {
            CommandByte::QUERY => {
                let (text, is_whole) = self.client.link().peeked_body();
                kill::find(text).filter(|_| is_whole).map(|it| it.number)
            }
            CommandByte::PROCESS_KILL => {
                let (body, _) = self.client.link().peeked_body();
                let number = body.first_chunk().map(|number| u32::from_le_bytes(*number));
                number.map(u64::from)
            }
            _ => None,
        };
        number.is_some_and(|number| self.is_client(number))
    }

    /// Whether a text is such a KILL.
    pub(crate) fn is_kill_of_client(&self, text: &[u8]) -> bool {
        kill::find(text).is_some_and(|kill| self.is_client(kill.number))
    }

    /// Whether KILL with this number is about a client of the gateway.
    fn is_client(&self, number: u64) -> bool {
        let is_known = || {
            let victim = self.gateway().victim(number, self.running.server());
            victim.is_some()
        };
        ClientNumbers::High.includes(number) || is_known()
    }

    /// Carries out a KILL.
    pub(crate) async fn kill(&mut self, status: StatusFlags) -> Result<(), End> {
        let bytes = self.take_command().await?;
        let text = match Command::decode(&bytes, self.client.capabilities()) {
            Ok(Command::Query(text)) => text.to_vec(),
            Ok(Command::ProcessKill { connection_id }) => {
                format!("KILL {connection_id}").into_bytes()
            }
            _ => unreachable!("it was peeked at"),
        };
        let statement = kill::find(&text).expect("it was peeked at");
        self.kill_by(statement, &text, status).await;
        Ok(())
    }

    /// Carries out a KILL that was taken.
    pub(crate) async fn kill_by(
        &mut self,
        statement: KillStatement,
        text: &[u8],
        status: StatusFlags,
    ) {
        let login = login_as(self.client.info());
        let victim = self
            .gateway()
            .victim(statement.number, self.running.server());
        let target = statement.target;
        let is_own = victim
            .as_ref()
            .is_some_and(|victim| Arc::ptr_eq(&victim.handle, &self.handle));
        let kill = (statement, victim);
        match kill::carry_out(&self.worker, self.service, login, kill, text).await {
            Ok(()) if is_own => {
                let number = match target {
                    KillTarget::Connection => ER_CONNECTION_KILLED,
                    KillTarget::Query => ER_QUERY_INTERRUPTED,
                };
                self.write_error(&ClientError::new(number, &[]));
            }
            Ok(()) => self.write_ok(status),
            Err(error) => self.write_error(&error),
        }
    }

    /// Lets the client log in anew, as COM_CHANGE_USER asks; servers are the caller's. A client
    /// that was refused goes on as who it was, as on MariaDB; another has no answer yet.
    pub(crate) async fn change_user(&mut self) -> Result<ChangedUser, End> {
        if CHANGE_USER_FAILURES_MAX <= self.failed_changes {
            self.take_command().await?;
            self.write_error(&ClientError::new(ER_UNKNOWN_COM_ERROR, &[]));
            return Err(End::Refused);
        }
        let bytes = self.take_command().await?;
        let Ok(Command::ChangeUser(change)) = Command::decode(&bytes, self.client.capabilities())
        else {
            let error = ClientError::new(ER_MALFORMED_PACKET, &[]);
            ErrorPacket::encode(self.client.out(), &error);
            return Err(End::Client);
        };
        let worker = Rc::clone(&self.worker);
        let readings = &worker.generation.service(self.service).readings;
        let known = readings.known().expect("a client has logged in by it");
        let accounts = AccountLookup::new(readings, known);
        if let Err(failure) = self.client.change_user(&change, &accounts).await {
            let peer = self.client.info().peer;
            let clients = worker.gateway.clients();
            clients.log_failed_login(self.handle.id(), peer, &failure);
            readings.wants_accounts.notify();
            self.failed_changes += 1;
            return match failure {
                LoginFailure::Refused(_) => Ok(ChangedUser::No),
                LoginFailure::Disconnected(_)
                | LoginFailure::Timeout
                | LoginFailure::ForeignHeader
                | LoginFailure::MalformedHeader(_)
                | LoginFailure::Malformed(_) => Err(End::Client),
            };
        }
        let info = self.client.info();
        let (user, database) = (info.user.clone(), info.database.clone());
        self.handle.update(|line| {
            line.user = user;
            line.database = database;
        });
        let name = &self.generation().service(self.service).options.name;
        self.ruled = Ruled::new(self.worker.judge(), name, self.client.info());
        self.who = self.worker.share_who(self.service, self.client.info());
        self.current.forget_session();
        Ok(ChangedUser::Yes)
    }

    /// Tells the client why its session ends, where an error says it, and closes its connection.
    pub(crate) async fn leave(mut self, end: End) {
        let reason = match end {
            End::Server => self.lost.take(),
            End::Shutdown => Some(ClientError::new(ER_SERVER_SHUTDOWN, &[])),
            // Who is killed while idle gets no packet that it has not asked for.
            End::Quit | End::Client | End::Idle | End::NoServer | End::Refused | End::Killed => {
                None
            }
        };
        if !self.client.link().is_usable() {
            // In the middle of a reply, nothing else can be said.
            self.client.cut_off();
            return;
        }
        if let Some(error) = reason {
            // A command that was passed on, or is not taken, has left another number.
            if matches!(end, End::Shutdown | End::Server) {
                self.client.begin_unasked();
            }
            ErrorPacket::encode(self.client.out(), &error);
        }
        self.client.close().await;
    }

    /// Ends a statement that is left running on a server.
    pub(crate) fn end_statement(&self, id: ServerId, server: &mut Server) {
        if server.link().is_usable() {
            return;
        }
        let Ok(login) = login_as(self.client.info()) else {
            return;
        };
        let target = self.generation().server(id).options.target.clone();
        let connection_id = server.info().connection_id;
        kill::end_later(&self.worker, target, login, connection_id);
    }
}

/// The database that a server says the session is in now. `None` if it is where it was.
pub(crate) fn database_in(changes: &[u8]) -> Option<Box<[u8]>> {
    let name = |change| match change {
        SessionChange::Schema(name) => Some(name.into()),
        _ => None,
    };
    SessionChanges::decode(changes).filter_map(name).last()
}

/// The character set that a server says texts of the session have now. `None` if it is the same.
pub(crate) fn charset_in(changes: &[u8]) -> Option<&[u8]> {
    let value = |change| match change {
        SessionChange::Variable { name, value } if name == b"character_set_client" => Some(value),
        _ => None,
    };
    SessionChanges::decode(changes).filter_map(value).last()
}

/// As servers with this status read a text.
pub(crate) fn mode_of(status: StatusFlags) -> SqlMode {
    let mut mode = SqlMode::default();
    if status.contains(StatusFlags::NO_BACKSLASH_ESCAPES) {
        mode = mode.with(SqlMode::NO_BACKSLASH_ESCAPES);
    }
    if status.contains(StatusFlags::ANSI_QUOTES) {
        mode = mode.with(SqlMode::ANSI_QUOTES);
    }
    mode
}

/// Passes a command and its reply on. `begun` is the exchange, once the command was sent.
fn exchange<'a>(
    client: &'a mut link::Link,
    server: &'a mut link::Link,
    agreed: Agreed,
    (request, statement_id): (Request<'a>, Option<u32>),
    begun: &'a mut Option<Exchange>,
) -> impl Future<Output = Result<Ending, ForwardError>> + 'a {
    let limit = || Limit::after(STATEMENT_TIME_MAX);
    // A block, since the arguments of an async function are kept twice.
    async move {
        let exchange = match request {
            Request::Peeked => Exchange::command(client, server, agreed).await?,
            Request::Taken(byte, body) => {
                post(server, byte, body).await?;
                Exchange::of_sent(byte, client, server, agreed)?
            }
        };
        let exchange = begun.insert(exchange);
        if let Some(id) = statement_id {
            exchange.number_statement(id);
        }
        if exchange.is_over() {
            return Ok(Ending::Silent);
        }
        if exchange.is_stream() {
            return exchange.stream(client, server, STREAM_PATIENCE).await;
        }
        loop {
            match exchange.reply(client, server, limit()).await? {
                Turn::File => exchange.file(client, server).await?,
                Turn::Authentication => exchange.authentication(client, server).await?,
                Turn::Over(ending) => return Ok(ending),
            }
        }
    }
}

/// Sends a command whose reply is passed on.
async fn post(server: &mut link::Link, byte: u8, body: &[u8]) -> Result<(), ForwardError> {
    if server.has_begun_packet() {
        return Err(ForwardError::Unasked);
    }
    let begun = server.begin_command();
    begun.map_err(|error| ForwardError::Server(error.into()))?;
    Command::encode(server.out(), byte, body);
    server.follow_sequence();
    server.flush().await.map_err(ForwardError::Unanswered)
}

/// Why a server is not waited for any longer.
pub(crate) enum GivenUp {
    Killed,
    ServerDown,
}

/// Ready once a server must not be waited for any longer: by KILL, or because it does not serve.
pub(crate) async fn given_up(
    worker: &Worker,
    handle: &SessionHandle,
    server: ServerId,
    serves: fn(&ServerState) -> bool,
) -> GivenUp {
    let mut killed = pin!(handle.ordered(KillOrder::Connection));
    // Who loses a server wakes all sessions, by their handles ([`crate::gateway::watch`]).
    poll_fn(|context| {
        if killed.as_mut().poll(context).is_ready() {
            return Poll::Ready(GivenUp::Killed);
        }
        match worker.with_state(server, serves) {
            true => Poll::Pending,
            false => Poll::Ready(GivenUp::ServerDown),
        }
    })
    .await
}
