//! [`Direct`]: a session of the router `read-connection`, with one connection to one server.

use errcode::{ClientError, WORDS_SERVER_LOST};
use link::Limit;
use wire::{CommandByte, ErrorPacket, OkPacket};

use crate::connect::{Held, login_as};
use crate::end::End;
use crate::guest::{ChangedUser, Failed, Guest, Request};
use crate::hot;

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
            let server = self.held.server.link();
            let went = match self.guest.peek_beside(status, server).await {
                Ok(CommandByte::QUIT) => return End::Quit,
                Ok(CommandByte::CHANGE_USER) => Box::pin(self.change_user()).await,
                Ok(byte) if self.guest.is_kill(byte) => Box::pin(self.guest.kill(status)).await,
                Ok(_) => self.forward().await,
                Err(end) => Err(end),
            };
            if let Err(end) = went {
                return end;
            }
        }
    }

    async fn forward(&mut self) -> Result<(), End> {
        let Held {
            server,
            agreed,
            place,
        } = &mut self.held;
        let via = (place.id(), *agreed);
        let passed = self.guest.pass(server, via, Request::Peeked, None).await;
        passed.map(|_| ()).map_err(|failed| match failed {
            Failed::Session(end) => end,
            Failed::Server(_) | Failed::Refused(_) => {
                let name = &self.held.place.server().options.name;
                self.guest.lost = Some(ClientError::worded(WORDS_SERVER_LOST, &[name]));
                End::Server
            }
        })
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
