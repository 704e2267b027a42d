//! [`Server`]: a connection that is logged in.

use std::rc::Rc;

use link::{
    Agreed, DetachedLink, Limit, Link, PacketBytes, Part, Reply, Resources, UnlikeCapabilities,
};
use wire::{
    Capabilities, Command, CommandByte, FRAME_BYTES_MAX, Malformed, PacketWriter, StatusFlags,
};

use crate::error::RequestError;
use crate::login::ServerInfo;
use crate::message::{Message, RowForm};

/// Pieces of a file are sent when so much waits.
const FLUSH_BYTES: usize = 64 << 10;

/// A connection to a server. Dropped, it is closed without a word.
#[derive(Debug)]
pub struct Server {
    pub(crate) link: Link,
    pub(crate) info: Box<ServerInfo>,
    pub(crate) status: StatusFlags,
    /// The reply that is being read; over while the server is at rest.
    pub(crate) reply: Reply,
    row_form: RowForm,
    /// The server waits for a file.
    awaits_file: bool,
    /// A packet of the reply has come.
    is_answered: bool,
}

/// A packet of a reply.
#[derive(Debug)]
pub struct Received {
    part: Part,
    bytes: PacketBytes,
    capabilities: Capabilities,
    row_form: RowForm,
}

impl Received {
    /// What it is.
    pub fn part(&self) -> Part {
        self.part
    }

    /// Its payload.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its values.
    pub fn message(&self) -> Result<Message<'_>, Malformed> {
        Message::decode(self.part, &self.bytes, self.capabilities, self.row_form)
    }
}

/// A server on its way from one worker to another; closed when dropped.
#[derive(Debug)]
pub struct DetachedServer {
    link: DetachedLink,
    info: Box<ServerInfo>,
    status: StatusFlags,
}

impl DetachedServer {
    /// Makes it a server of this worker.
    pub fn attach(self, resources: &Rc<Resources>) -> Result<Server, RequestError> {
        let link = self.link.attach(resources)?;
        Ok(Server::new(link, self.info, self.status))
    }
}

impl Server {
    pub(crate) fn new(link: Link, info: Box<ServerInfo>, status: StatusFlags) -> Server {
        let reply = Reply::new(CommandByte::QUIT, info.capabilities);
        let mut server = Server {
            link,
            info,
            status,
            reply,
            row_form: RowForm::Text,
            awaits_file: false,
            is_answered: false,
        };
        server.set_status(status);
        server
    }

    /// What is known of the server.
    pub fn info(&self) -> &ServerInfo {
        &self.info
    }

    /// The session's status at the end of the last reply.
    pub fn status(&self) -> StatusFlags {
        self.status
    }

    /// The link under the server, for packets that are passed on ([`link::Exchange`]).
    pub fn link(&mut self) -> &mut Link {
        &mut self.link
    }

    /// Notes the status that a reply has ended with that was passed on.
    pub fn set_status(&mut self, status: StatusFlags) {
        // That flag is of the packet, not of the session.
        self.status = status.with(StatusFlags::SESSION_STATE_CHANGED, false);
    }

    /// What an exchange with a client has to know. Fails if the client's packets cannot be passed
    /// on to this server.
    pub fn agreed_with(&self, client: Capabilities) -> Result<Agreed, UnlikeCapabilities> {
        Agreed::new(client, self.info.capabilities)
    }

    /// Whether no reply is under way, and nothing has come unasked.
    pub fn is_at_rest(&self) -> bool {
        self.reply.is_over() && self.link.is_at_rest()
    }

    /// Looks, without waiting, whether a server at rest has closed the connection or has said
    /// something unasked: then another is to be taken. A pool asks before it lends a server.
    pub fn is_stale(&mut self) -> bool {
        !self.is_at_rest() || self.link.is_stale()
    }

    /// Sends a command of a byte and a body.
    pub async fn send(&mut self, command_byte: u8, body: &[u8]) -> Result<(), RequestError> {
        let write = |out: &mut PacketWriter| Command::encode(out, command_byte, body);
        self.send_packet(command_byte, write).await
    }

    /// Sends the command that `write` writes, which is one packet that starts with `command_byte`.
    pub async fn send_packet(
        &mut self,
        command_byte: u8,
        write: impl FnOnce(&mut PacketWriter),
    ) -> Result<(), RequestError> {
        if !self.reply.is_over() {
            return Err(RequestError::Engaged);
        }
        if !self.link.is_usable() {
            return Err(RequestError::Engaged);
        }
        if self.link.has_begun_packet() {
            return Err(RequestError::Unasked);
        }
        self.link.begin_command().map_err(link::Disconnect::from)?;
        write(self.link.out());
        self.link.follow_sequence();
        self.reply = Reply::new(command_byte, self.info.capabilities);
        self.row_form = RowForm::of_command(command_byte);
        self.is_answered = false;
        let sent = self.link.flush().await;
        sent.map_err(|error| RequestError::before_reply(error, &self.link))
    }

    /// The next packet of the reply; `None` behind its end.
    pub async fn receive(&mut self, limit: Limit) -> Result<Option<Received>, RequestError> {
        if self.reply.is_over() {
            return Ok(None);
        }
        if self.awaits_file {
            return Err(RequestError::Engaged);
        }
        let received = self.link.receive_packet(limit).await;
        let bytes = received.map_err(|error| match self.is_answered {
            true => RequestError::Link(error),
            false => RequestError::before_reply(error, &self.link),
        })?;
        self.is_answered = true;
        let first_frame_bytes = bytes.len().min(FRAME_BYTES_MAX);
        let part = self.reply.take(first_frame_bytes, &bytes)?;
        let part = part.ok_or(Malformed {
            what: "short packet of a reply",
        })?;
        match part {
            Part::Ok(status) | Part::RowsEnd(status) | Part::ColumnsEnd(status) => {
                self.set_status(status);
            }
            Part::FileRequest => self.awaits_file = true,
            _ => {}
        }
        Ok(Some(Received {
            part,
            bytes,
            capabilities: self.info.capabilities,
            row_form: self.row_form,
        }))
    }

    /// Sends a piece of the file that the server has asked for; an empty piece ends it.
    pub async fn send_file(&mut self, piece: &[u8]) -> Result<(), RequestError> {
        if !self.awaits_file {
            return Err(RequestError::Unasked);
        }
        self.link.out().packet(piece);
        if piece.is_empty() {
            self.awaits_file = false;
            self.link.follow_sequence();
        }
        if piece.is_empty() || FLUSH_BYTES <= self.link.pending_bytes() {
            self.link.flush().await?;
        }
        Ok(())
    }

    /// Reads a reply that says only whether the command went well.
    pub async fn receive_verdict(&mut self, limit: Limit) -> Result<(), RequestError> {
        let mut verdict = Ok(());
        while let Some(received) = self.receive(limit).await? {
            if let Message::Error(error) = received.message()? {
                verdict = Err(RequestError::Refused(error.to_client_error()));
            }
        }
        verdict
    }

    /// Sends commands at once and reads their replies, of which each says only whether the command
    /// went well. All of them are carried out, whatever becomes of the ones before.
    ///
    /// # Errors
    ///
    /// The first refusal, if the connection is sound.
    pub async fn send_all(
        &mut self,
        commands: &[(u8, &[u8])],
        limit: Limit,
    ) -> Result<(), RequestError> {
        if !self.reply.is_over() || !self.link.is_usable() {
            return Err(RequestError::Engaged);
        }
        if self.link.has_begun_packet() {
            return Err(RequestError::Unasked);
        }
        write_all(&mut self.link, commands)?;
        let sent = self.link.flush().await;
        sent.map_err(|error| RequestError::before_reply(error, &self.link))?;
        self.receive_verdicts(commands, limit).await
    }

    /// Reads the replies to commands that were sent at once.
    pub(crate) async fn receive_verdicts(
        &mut self,
        commands: &[(u8, &[u8])],
        limit: Limit,
    ) -> Result<(), RequestError> {
        let mut verdict = Ok(());
        for (byte, body) in commands {
            // The ids of a reply go on from those of its own command.
            let frame_count = 1 + (1 + body.len()) / FRAME_BYTES_MAX;
            let last = u8::try_from(frame_count % 256).expect("a remainder");
            self.link.expect_sequence(last);
            self.reply = Reply::new(*byte, self.info.capabilities);
            self.row_form = RowForm::of_command(*byte);
            self.is_answered = false;
            match self.receive_verdict(limit).await {
                Err(RequestError::Refused(error)) if verdict.is_ok() => {
                    verdict = Err(RequestError::Refused(error));
                }
                Ok(()) | Err(RequestError::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        verdict
    }

    /// Makes the session as new, without a login.
    pub async fn reset(&mut self, limit: Limit) -> Result<(), RequestError> {
        self.send(CommandByte::RESET_CONNECTION, b"").await?;
        self.receive_verdict(limit).await
    }

    /// Asks whether the server is there.
    pub async fn ping(&mut self, limit: Limit) -> Result<(), RequestError> {
        self.send(CommandByte::PING, b"").await?;
        self.receive_verdict(limit).await
    }

    /// Takes the server out of its worker, for another to [attach](DetachedServer::attach). One
    /// that is not at rest is closed.
    pub async fn detach(self) -> Result<DetachedServer, RequestError> {
        if !self.reply.is_over() {
            return Err(RequestError::Engaged);
        }
        Ok(DetachedServer {
            link: self.link.detach().await?,
            info: self.info,
            status: self.status,
        })
    }

    /// Says that the client goes, and ends the connection.
    pub async fn close(mut self) {
        // A server that is gone, or in the middle of a reply, need not know.
        let _ = self.send(CommandByte::QUIT, b"").await;
        let _ = self.link.close().await;
    }
}

/// Writes commands one behind the other; they are not flushed.
pub(crate) fn write_all(link: &mut Link, commands: &[(u8, &[u8])]) -> Result<(), link::Disconnect> {
    for (byte, body) in commands {
        link.begin_command()?;
        Command::encode(link.out(), *byte, body);
    }
    Ok(())
}
