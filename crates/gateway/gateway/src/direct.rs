//! [`Direct`]: a session of the router `read-connection` that does not multiplex: it has one
//! connection to one server for itself, and what is said there is not read, unless rules are about
//! it.

use std::rc::Rc;
use std::sync::Arc;

use errcode::{ClientError, WORDS_SERVER_LOST};
use link::Limit;
use monitor::Order;
use router::{Decision, Pins};
use syntax::canonical;
use wire::{CommandByte, ErrorPacket, OkPacket, StatusFlags};

use crate::connect::{Held, login_as};
use crate::end::End;
use crate::explain::{
    Asked, Cached, Course, Unasked, check_own, is_asked, parse, properties, write,
};
use crate::guest::{ChangedUser, Failed, Guest, Request, database_in, mode_of, refusal};
use crate::hot;
use crate::running::Stay;

/// Longer texts have no canonical form, and rules see their beginning as it was sent.
const RULED_BYTES_MAX: usize = canonical::TEXT_BYTES_MAX;

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Direct {
    guest: Guest,
    held: Held,
}

impl Direct {
    pub(crate) fn new(guest: Guest, held: Held) -> Direct {
        Direct { guest, held }
    }

    pub(crate) async fn run(&mut self) -> End {
        let ok = OkPacket {
            status: self.held.server.status(),
            ..OkPacket::default()
        };
        if self.guest.client.welcome(&ok).await.is_err() {
            return End::Client;
        }
        hot::note_session(self, &self.guest);
        loop {
            let status = self.held.server.status();
            self.guest.rest(self.stay(status));
            let server = self.held.server.link();
            let peeked = self.guest.peek_beside(status, server).await;
            if peeked.is_ok() {
                self.guest.begin_command();
            }
            let went = match peeked {
                Ok(CommandByte::QUIT) => return End::Quit,
                Ok(CommandByte::CHANGE_USER) => Box::pin(self.change_user()).await,
                Ok(byte) if self.guest.is_kill(byte) => Box::pin(self.guest.kill(status)).await,
                Ok(CommandByte::QUERY) if self.is_explain_route() => {
                    Box::pin(self.explain_route()).await
                }
                Ok(byte) if self.guest.ruled.is_ruled() => Box::pin(self.forward_ruled(byte)).await,
                Ok(_) => self.forward().await,
                Err(end) => Err(end),
            };
            if let Err(end) = went {
                return end;
            }
        }
    }

    fn is_explain_route(&mut self) -> bool {
        let mode = mode_of(self.held.server.status());
        let (text, is_whole) = self.guest.client.link().peeked_body();
        is_whole && is_asked(text, mode)
    }

    /// EXPLAIN ROUTE. All that the client says goes to its server, as far as rules let it.
    async fn explain_route(&mut self) -> Result<(), End> {
        let status = self.held.server.status();
        let packet = self.guest.take_command().await?;
        let asked = parse(packet.get(1..).unwrap_or_default(), mode_of(status));
        let guest = &mut self.guest;
        let worker = Rc::clone(&guest.worker);
        let service = &worker.generation.service(guest.service).options.name;
        let user = guest.client.info().user.clone();
        let asked = asked.and_then(|it| {
            check_own(&it, &user, None, service)?;
            Ok(it.text)
        });
        let text = match asked {
            Ok(text) => text,
            Err(error) => {
                guest.write_error(&error);
                return Ok(());
            }
        };
        let judged = guest.ruled.judge(&text, mode_of(status));
        let decisions = guest.ruled.explain(&judged);
        let course = match Decision::sum(&decisions).refusal {
            _ if is_asked(&text, mode_of(status)) => Course::Here("it is EXPLAIN ROUTE"),
            Some(refusal) => Course::Refused(refusal),
            None => {
                let name = Arc::clone(&self.held.place.server().options.name);
                let order = worker.with_state(self.held.place.id(), |it| it.order);
                match order == Order::Maintenance {
                    true => Course::Lost(name),
                    false => Course::Own(name),
                }
            }
        };
        let asked = Asked {
            generation: &worker.generation,
            service: guest.service,
            user: &user,
            database: None,
            text: &text,
            mode: mode_of(status),
            judged: &judged,
            decisions: &decisions,
            pins: Pins::default(),
            cached: Cached::No(Unasked::OwnConnection),
            known: worker.known_tables(),
        };
        let rows = worker.with_map(guest.service, |it| properties(&asked, &course, it));
        write(&mut guest.client, status, &rows);
        Ok(())
    }

    /// What operators see of the session between two commands: it stays at its server, whatever it
    /// does there.
    fn stay(&self, status: StatusFlags) -> Stay {
        Stay {
            is_in_transaction: status.contains(StatusFlags::IN_TRANSACTION),
            ..Stay::default()
        }
    }

    /// Tells the client at its end that its server is lost.
    fn lose(&mut self) -> End {
        let name = &self.held.place.server().options.name;
        self.guest.lost = Some(ClientError::worded(WORDS_SERVER_LOST, &[name]));
        End::Server
    }

    /// Passes a command on that rules may be about.
    async fn forward_ruled(&mut self, byte: u8) -> Result<(), End> {
        let guest = &mut self.guest;
        let mode = mode_of(self.held.server.status());
        let ruling = match byte {
            CommandByte::QUERY | CommandByte::STMT_PREPARE => {
                let has_text = guest.client.link().peeked_body().1;
                if !has_text && guest.ruled.looks_at_texts() {
                    Box::pin(guest.receive_text(RULED_BYTES_MAX)).await?;
                }
                let (text, is_whole) = guest.client.link().peeked_body();
                let judged = match is_whole {
                    true => guest.ruled.judge(text, mode),
                    false => guest.ruled.judge_unread(text, mode),
                };
                guest.ruled.ruling(&judged)
            }
            CommandByte::STMT_EXECUTE | CommandByte::STMT_BULK_EXECUTE => {
                Some(Rc::new(guest.ruled.general_ruling()))
            }
            _ => None,
        };
        if let Some(ruling) = ruling {
            if let Some(error) = refusal(&ruling) {
                guest.take_command().await?;
                guest.worker.counters.refused.increment();
                guest.write_error(&error);
                return Ok(());
            }
            guest.time_max = ruling.time_max.or(guest.time_max);
        }
        self.forward().await
    }

    async fn forward(&mut self) -> Result<(), End> {
        let id = self.held.place.id();
        let order = self.guest.worker.with_state(id, |it| it.order);
        if order == Order::Maintenance {
            self.guest.take_command().await?;
            return Err(self.lose());
        }
        let Held {
            server,
            agreed,
            place,
        } = &mut self.held;
        let via = (place.id(), *agreed);
        let passed = self.guest.pass(server, via, Request::Peeked, None).await;
        let answer = passed.map_err(|failed| match failed {
            Failed::Session(end) => end,
            Failed::Server(_) | Failed::Refused(_) => self.lose(),
        })?;
        if self.guest.ruled.looks_at_schema()
            && let Some(name) = answer.exchange.session_changes().and_then(database_in)
        {
            self.guest.look_at_rules(&name);
        }
        Ok(())
    }

    /// Lets the client log in anew, here and at its server.
    async fn change_user(&mut self) -> Result<(), End> {
        if self.guest.change_user().await? == ChangedUser::No {
            return Ok(());
        }
        if let Err(error) = self.change_server_user().await {
            ErrorPacket::encode(self.guest.client.out(), &error);
            return Err(End::Refused);
        }
        self.guest.write_ok(self.held.server.status());
        Ok(())
    }

    async fn change_server_user(&mut self) -> Result<(), ClientError> {
        let login = login_as(self.guest.client.info())?;
        let place = &self.held.place.server().options;
        let limit = Limit::after(place.target.connect_timeout);
        let server = &mut self.held.server;
        // A command without an answer may still wait to be sent.
        let posted = server.link().post().await;
        posted.map_err(|_| ClientError::worded(WORDS_SERVER_LOST, &[&place.name]))?;
        let changed = self.guest.worker.change_user(server, &login, limit).await;
        changed.map_err(|error| match error {
            backend::ConnectError::Refused(error) => error,
            _ => ClientError::worded(WORDS_SERVER_LOST, &[&place.name]),
        })
    }

    /// Ends both connections.
    pub(crate) async fn leave(mut self, end: End) {
        let id = self.held.place.id();
        self.guest.end_statement(id, &mut self.held.server);
        self.guest.leave(end).await;
        if self.held.server.link().is_usable() {
            self.held.server.close().await;
        }
    }
}
