//! One client, from its login to its end.
//!
//! ```text
//! serve: log in -> connect to a server -> welcome -> { peek at a command -> pass it on, and the
//!        reply back }* -> close both
//! ```
//!
//! Commands that concern the connection itself are carried out here: COM_QUIT, COM_CHANGE_USER, and
//! KILL with a number that a client was told. All others go to the server. While its reply is
//! awaited, KILL and the client's end are watched for: the statement is then ended on the server,
//! too.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use clients::wait::{Either, first_of};
use clients::{ClientNumbers, Entrance, KillOrder, SessionHandle};
use errcode::{
    ClientError, ER_MALFORMED_PACKET, ER_SERVER_SHUTDOWN, Origin, WORDS_NO_SERVER,
    WORDS_SERVER_LOST,
};
use front::{Client, Disconnect};
use link::{Ending, Exchange, ForwardError, Limit, Turn};
use monitor::ServerState;
use runtime::{Stream, TaskClass};
use wire::{Command, CommandByte, ErrorPacket, OkKind, OkPacket, StatusFlags};

use crate::connect::{Held, connect, login_as};
use crate::end::End;
use crate::gateway::{Gateway, Victim};
use crate::kill;
use crate::options::{ServerId, ServiceId};
use crate::service::AccountLookup;
use crate::worker::Worker;

/// A statement may take as long as its server lets it: a year is no limit.
const STATEMENT_TIME_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// A primary that sends a binary log tells in this time that it is alive (MariaDB's
/// `slave_net_timeout`, whose default is a minute, doubled).
const STREAM_PATIENCE: Duration = Duration::from_secs(120);

/// A client that is logged in, with its server.
#[derive(Debug)]
struct Session {
    worker: Rc<Worker>,
    service: ServiceId,
    client: Client,
    handle: Arc<SessionHandle>,
    held: Held,
}

/// Serves a connection to its end.
pub fn serve(worker: Rc<Worker>, service: ServiceId, stream: Stream) -> impl Future<Output = ()> {
    // Boxed, so that an idle client's task reserves no room for its login.
    let entering = Box::pin(enter(worker, service, stream));
    async move {
        let Some(mut session) = entering.await else {
            return;
        };
        let gateway = Arc::clone(&session.worker.gateway);
        let counters = Arc::clone(&session.worker.counters);
        let handle = Arc::clone(&session.handle);
        let number = session.client.info().connection_id;
        let end = session.run().await;
        gateway.leave(number);
        if let Some(count) = counters.ends.get(end.index()) {
            count.increment();
        }
        Box::pin(session.leave(end)).await;
        gateway.clients().registry().leave(&handle);
    }
}

/// Logs a client in and connects it to a server. Returns `None` if that fails; the client has been
/// told why.
async fn enter(worker: Rc<Worker>, id: ServiceId, stream: Stream) -> Option<Box<Session>> {
    let gateway = Arc::clone(&worker.gateway);
    let service = gateway.service(id);
    let front = worker.front(id);
    let Some(known) = service.known() else {
        let name = &service.options.name;
        let error = ClientError::worded(WORDS_NO_SERVER, &[name, &"none has answered yet"]);
        Client::refuse(stream, front, &error).await;
        return None;
    };
    front.set_rules(gateway.limits.login_rules);
    front.set_greeting(known.greeting.clone());
    let entrance = Entrance {
        front,
        limit: gateway.max_connections,
        evictions: &worker.counters.logins_evicted,
        numbers: ClientNumbers::High,
    };
    let accounts = AccountLookup::new(service, known);
    let logged_in = gateway.clients().log_in(stream, &accounts, entrance).await;
    if logged_in.is_none() {
        // Newer accounts might let it in the next time.
        service.wants_accounts.notify();
    }
    let since_us = runtime::now().nanos() / 1000;
    let admitted = gateway
        .clients()
        .admit(logged_in?, gateway.max_connections, since_us);
    let (mut client, handle) = admitted.await?;
    let limits = &gateway.limits;
    client.set_timeouts(limits.read_timeout, limits.login_rules.write_timeout);
    match connect(&worker, id, client.info()).await {
        Ok(held) => {
            worker.counters.sessions.increment();
            let victim = Victim {
                handle: Arc::clone(&handle),
                server: held.place.id(),
                connection_id: held.server.info().connection_id,
            };
            gateway.enter(client.info().connection_id, victim);
            Some(Box::new(Session {
                worker,
                service: id,
                client,
                handle,
                held,
            }))
        }
        Err(error) => {
            let end = match error.origin {
                Origin::Client => End::Refused,
                Origin::Server | Origin::Ourselves => End::NoServer,
            };
            if let Some(count) = worker.counters.ends.get(end.index()) {
                count.increment();
            }
            client.dismiss(&error).await;
            gateway.clients().registry().leave(&handle);
            None
        }
    }
}

impl Session {
    async fn run(&mut self) -> End {
        let ok = OkPacket {
            status: self.held.server.status(),
            ..OkPacket::default()
        };
        if self.client.welcome(&ok).await.is_err() {
            return End::Client;
        }
        loop {
            let went = match self.peek_command().await {
                Ok(CommandByte::QUIT) => return End::Quit,
                Ok(CommandByte::CHANGE_USER) => Box::pin(self.change_user()).await,
                Ok(byte) if self.is_kill(byte) => Box::pin(self.kill()).await,
                Ok(_) => self.forward().await,
                Err(end) => Err(end),
            };
            if let Err(end) = went {
                return end;
            }
        }
    }

    fn gateway(&self) -> &Arc<Gateway> {
        &self.worker.gateway
    }

    /// Waits for a command. Returns its first byte.
    async fn peek_command(&mut self) -> Result<u8, End> {
        let class = match self
            .held
            .server
            .status()
            .contains(StatusFlags::IN_TRANSACTION)
        {
            true => TaskClass::InTransaction,
            false => TaskClass::OutsideTransaction,
        };
        let gateway = Arc::clone(&self.worker.gateway);
        let peeked = {
            let wait_timeout = gateway.limits.wait_timeout;
            let peek = pin!(self.client.peek_command(wait_timeout, class));
            let dismissed = pin!(gateway.clients().registry().dismissed(&self.handle));
            first_of(peek, dismissed).await
        };
        match peeked {
            _ if self.is_dismissed() => Err(self.dismissal()),
            Either::Left(Ok(byte)) => Ok(byte),
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

    /// Passes a command on, and the reply back.
    async fn forward(&mut self) -> Result<(), End> {
        self.handle.clear_query_order();
        let mut begun = None;
        let passed = {
            let agreed = self.held.agreed;
            let given_up = given_up(&self.worker, &self.handle, self.held.place.id());
            let (client, server) = (self.client.link(), self.held.server.link());
            let passing = pin!(async {
                let exchange = begun.insert(Exchange::command(client, server, agreed).await?);
                if exchange.is_stream() {
                    return exchange.stream(client, server, STREAM_PATIENCE).await;
                }
                loop {
                    let limit = Limit::after(STATEMENT_TIME_MAX);
                    match exchange.reply(client, server, limit).await? {
                        Turn::File => exchange.file(client, server).await?,
                        Turn::Authentication => exchange.authentication(client, server).await?,
                        over @ Turn::Over(_) => return Ok(over),
                    }
                }
            });
            first_of(passing, pin!(given_up)).await
        };
        match passed {
            Either::Left(Ok(Turn::Over(Ending::Status(status)))) => {
                self.held.server.set_status(status);
                Ok(())
            }
            Either::Left(Ok(_)) => Ok(()),
            Either::Left(Err(error)) => Err(self.lost(&error)),
            Either::Right(end) => {
                if let Some(exchange) = begun
                    && end == End::Server
                {
                    exchange.give_up(self.client.link());
                }
                Err(end)
            }
        }
    }

    /// Why a command has no reply.
    fn lost(&self, error: &ForwardError) -> End {
        let id = self.handle.id();
        match error.origin() {
            Origin::Client => {
                tracing::debug!(connection_id = id, %error, "a client is gone");
                End::Client
            }
            Origin::Server | Origin::Ourselves => {
                let server = &*self.held.place.server().options.name;
                tracing::warn!(connection_id = id, server, %error, "a server was lost");
                self.worker.report_failure(self.held.place.id());
                End::Server
            }
        }
    }

    /// Whether the command that was peeked at is a KILL with a number that a client was told.
    fn is_kill(&mut self, command_byte: u8) -> bool {
        match command_byte {
            CommandByte::QUERY => {
                let (text, is_whole) = self.client.link().peeked_body();
                is_whole && kill::of_client(text).is_some()
            }
            CommandByte::PROCESS_KILL => {
                let (body, _) = self.client.link().peeked_body();
                let number = body.first_chunk().map(|number| u32::from_le_bytes(*number));
                number.is_some_and(|number| ClientNumbers::High.includes(number.into()))
            }
            _ => false,
        }
    }

    /// Carries out a KILL.
    async fn kill(&mut self) -> Result<(), End> {
        let wait_timeout = self.gateway().limits.wait_timeout;
        let class = TaskClass::OutsideTransaction;
        let read = self.client.read_command(wait_timeout, class).await;
        let bytes = read.map_err(|_| End::Client)?;
        let text = match Command::decode(&bytes, self.client.capabilities()) {
            Ok(Command::Query(text)) => text.to_vec(),
            Ok(Command::ProcessKill { connection_id }) => {
                format!("KILL {connection_id}").into_bytes()
            }
            _ => unreachable!("it was peeked at"),
        };
        let statement = kill::of_client(&text).expect("it was peeked at");
        let login = login_as(self.client.info());
        let done = kill::carry_out(&self.worker, login, statement, &text).await;
        match done {
            Ok(()) => self.write_ok(),
            Err(error) => {
                ErrorPacket::encode(self.client.out(), &error);
                self.client.end_reply();
            }
        }
        Ok(())
    }

    fn write_ok(&mut self) {
        let ok = OkPacket {
            status: self.held.server.status(),
            ..OkPacket::default()
        };
        let capabilities = self.client.capabilities();
        ok.encode(self.client.out(), capabilities, OkKind::Ok);
        self.client.end_reply();
    }

    /// Lets the client log in anew, here and at its server.
    async fn change_user(&mut self) -> Result<(), End> {
        let gateway = Arc::clone(self.gateway());
        let service = gateway.service(self.service);
        let wait_timeout = gateway.limits.wait_timeout;
        let class = TaskClass::OutsideTransaction;
        let read = self.client.read_command(wait_timeout, class).await;
        let bytes = read.map_err(|_| End::Client)?;
        let Ok(Command::ChangeUser(change)) = Command::decode(&bytes, self.client.capabilities())
        else {
            let error = ClientError::new(ER_MALFORMED_PACKET, &[]);
            ErrorPacket::encode(self.client.out(), &error);
            return Err(End::Client);
        };
        let known = service.known().expect("a client has logged in by it");
        let accounts = AccountLookup::new(service, known);
        if let Err(failure) = self.client.change_user(&change, &accounts).await {
            let peer = self.client.info().peer;
            let clients = gateway.clients();
            clients.log_failed_login(self.handle.id(), peer, &failure);
            service.wants_accounts.notify();
            return Err(End::Refused);
        }
        if let Err(error) = self.change_server_user().await {
            ErrorPacket::encode(self.client.out(), &error);
            return Err(End::Refused);
        }
        let user = self.client.info().user.clone();
        self.handle.update(|line| line.user = user);
        self.write_ok();
        Ok(())
    }

    async fn change_server_user(&mut self) -> Result<(), ClientError> {
        let login = login_as(self.client.info())?;
        let place = &self.held.place.server().options;
        let limit = Limit::after(place.target.connect_timeout);
        let server = &mut self.held.server;
        let changed = self.worker.change_user(server, &login, limit).await;
        changed.map_err(|error| match error {
            backend::ConnectError::Refused(error) => error,
            _ => ClientError::worded(WORDS_SERVER_LOST, &[&place.name]),
        })
    }

    /// Ends both connections.
    async fn leave(mut self: Box<Self>, end: End) {
        let reason = match end {
            End::Server => {
                let server = &self.held.place.server().options.name;
                Some(ClientError::worded(WORDS_SERVER_LOST, &[server]))
            }
            End::Shutdown => Some(ClientError::new(ER_SERVER_SHUTDOWN, &[])),
            // Who is killed while idle gets no packet that it has not asked for.
            End::Quit | End::Client | End::Idle | End::NoServer | End::Refused | End::Killed => {
                None
            }
        };
        self.end_statement();
        if !self.client.link().is_usable() {
            // In the middle of a reply, nothing else can be said.
            self.client.cut_off();
            return;
        }
        if let Some(error) = reason {
            if end == End::Shutdown {
                self.client.begin_unasked();
            }
            ErrorPacket::encode(self.client.out(), &error);
        }
        self.client.close().await;
        self.held.server.close().await;
    }

    /// Ends a statement that is left running on the server.
    fn end_statement(&mut self) {
        if self.held.server.link().is_usable() {
            return;
        }
        let Ok(login) = login_as(self.client.info()) else {
            return;
        };
        let target = self.held.place.server().options.target.clone();
        let connection_id = self.held.server.info().connection_id;
        kill::end_later(&self.worker, target, login, connection_id);
    }
}

/// Ready once the reply of a server must not be waited for any longer: by KILL, or because the
/// server counts as down.
async fn given_up(worker: &Worker, handle: &SessionHandle, server: ServerId) -> End {
    let mut killed = pin!(handle.ordered(KillOrder::Connection));
    // Who loses a server wakes all sessions, by their handles ([`crate::watch`]).
    poll_fn(|context| {
        if killed.as_mut().poll(context).is_ready() {
            return Poll::Ready(End::Killed);
        }
        match worker.with_state(server, ServerState::is_reachable) {
            true => Poll::Pending,
            false => Poll::Ready(End::Server),
        }
    })
    .await
}
