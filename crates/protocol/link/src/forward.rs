//! [`Exchange`]: a command on its way from a client's link to a server's, and the reply back.
//!
//! Received bytes become the bytes that are sent: the buffer of one link is handed to the other,
//! or, where it begins with what was dealt with, copied once. No packet is assembled or encoded
//! again, however long it is. Of each packet the header and the first bytes are looked at
//! ([`Reply`](crate::reply)), so the exchange knows the command, where the reply ends, and the
//! status flags of that end.
//!
//! The two sides may differ in DEPRECATE_EOF and SESSION_TRACK. Then the packets that end columns
//! and rows are left out, put in or encoded again, and the sequence ids behind them are shifted.
//! In all else that changes packets of a reply they have to agree.
//!
//! Flow control: what the reader of a reply does not take is not read from its sender. At most
//! [`HIGH_WATER_BYTES`](crate::HIGH_WATER_BYTES) and what one receive gives wait in a link while
//! another such buffer is on its way. Nothing more is received until that one is sent, which is the
//! low mark.
//!
//! An exchange that is dropped before its end leaves both links unusable: they refuse the next.

use errcode::{Origin, Retry};
use runtime::TaskClass;
use thiserror::Error;
use wire::{Capabilities, EofPacket, FrameError, Malformed, OkKind, OkPacket, StatusFlags};

use crate::channel::{Channel, ChannelError};
use crate::disconnect::Disconnect;
use crate::frame_walk::{FrameWalk, Stop, Verdict};
use crate::link::{Limit, Link, PacketUse};
use crate::packet_memory::UNCOUNTED_BYTES;
use crate::reply::{Part, Reply};

/// Longest packet that is encoded again: an OK packet with the changes of a session.
const REENCODED_BYTES_MAX: usize = UNCOUNTED_BYTES;

/// Why an exchange ended before its time. Both links are then unusable.
#[derive(Debug, Error)]
pub enum ForwardError {
    /// An earlier exchange on one of the links was not brought to its end.
    #[error("an earlier command on the connection was not brought to its end")]
    Unusable,
    /// The client's connection ended.
    #[error("the client's connection ended")]
    Client(#[source] Disconnect),
    /// The server's connection ended.
    #[error("the server's connection ended")]
    Server(#[source] Disconnect),
    /// The server closed the connection, and nothing of a reply has come.
    #[error("the server closed the connection and did not answer")]
    Unanswered(#[source] Disconnect),
    /// The server's reply is none.
    #[error("the server's reply cannot be read")]
    Reply(#[from] Malformed),
    /// A packet that had to be encoded again was too long for that.
    #[error("a packet of {length} bytes cannot be translated")]
    TooLong {
        /// Its length.
        length: usize,
    },
}

impl ForwardError {
    /// Who caused it.
    pub fn origin(&self) -> Origin {
        match self {
            ForwardError::Client(_) => Origin::Client,
            ForwardError::Server(_) | ForwardError::Unanswered(_) | ForwardError::Reply(_) => {
                Origin::Server
            }
            ForwardError::Unusable | ForwardError::TooLong { .. } => Origin::Ourselves,
        }
    }

    /// Whether the command may be sent again.
    pub fn retry(&self) -> Retry {
        match self {
            ForwardError::Unanswered(_) => Retry::IfReused,
            ForwardError::Client(_)
            | ForwardError::Server(_)
            | ForwardError::Reply(_)
            | ForwardError::Unusable
            | ForwardError::TooLong { .. } => Retry::Never,
        }
    }

    /// The server's connection ended before anything of its reply came.
    fn before_reply(disconnect: Disconnect) -> ForwardError {
        match disconnect.is_by_peer() {
            true => ForwardError::Unanswered(disconnect),
            false => ForwardError::Server(disconnect),
        }
    }
}

/// What was agreed with each side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreed {
    /// With the client.
    pub client: Capabilities,
    /// With the server.
    pub server: Capabilities,
}

/// Who has to send next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// The reply is over; its last packet had these flags. None: an error ended it, or the protocol
    /// has no answer to the command.
    Over(Option<StatusFlags>),
    /// The server waits for a file: [`Exchange::file`], then [`Exchange::reply`] again.
    File,
}

/// What a pass came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passed {
    /// What has come is passed on, as far as it can be.
    All,
    /// There is more, once what waits to be sent is sent.
    Full,
}

/// A command and its reply.
#[derive(Debug)]
pub struct Exchange {
    command: u8,
    agreed: Agreed,
    reply: Reply,
    /// The place in the packets of the server.
    walk: FrameWalk,
    /// Of the last packet that had some.
    status: Option<StatusFlags>,
    /// The server has asked for a file.
    awaits_file: bool,
    /// The client has to get an EOF packet before the next.
    owes_eof: bool,
    /// A packet of the reply has come.
    is_answered: bool,
}

/// How a packet that the client does not understand becomes one that it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Treatment {
    /// An EOF packet is put in before it.
    PutInEof,
    /// It is left out.
    LeaveOut,
    /// An EOF packet becomes the OK packet that ends rows.
    EofToOk,
    /// The other way round.
    OkToEof,
    /// The changes of the session are taken away.
    OkWithoutChanges(OkKind),
}

/// Why packets cannot be passed on.
#[derive(Debug)]
enum Fault {
    Channel(ChannelError),
    Forward(ForwardError),
}

impl From<FrameError> for Fault {
    fn from(error: FrameError) -> Fault {
        Fault::Channel(error.into())
    }
}

impl From<ChannelError> for Fault {
    fn from(error: ChannelError) -> Fault {
        Fault::Channel(error)
    }
}

impl From<Malformed> for Fault {
    fn from(error: Malformed) -> Fault {
        Fault::Forward(error.into())
    }
}

impl Fault {
    fn of_server(self) -> ForwardError {
        match self {
            Fault::Channel(error) => ForwardError::Server(error.into()),
            Fault::Forward(error) => error,
        }
    }
}

impl Exchange {
    /// Passes on the command whose first byte [`Link::peek_command`] has told. One that has no
    /// answer is sent with the next command if that is there already.
    pub async fn command(
        client: &mut Link,
        server: &mut Link,
        agreed: Agreed,
    ) -> Result<Exchange, ForwardError> {
        let peeked = client.channel.peek_command();
        let command = peeked.map_err(of_client)?.ok_or(ForwardError::Unusable)?;
        engage(client, server)?;
        client.channel.begin_reply().map_err(of_client)?;
        server.channel.begin_command().map_err(of_server)?;
        let mut walk = FrameWalk::new(0, 0);
        let mut has_begun = false;
        loop {
            let judge = |_: usize, _: &[u8]| -> Result<Verdict, ChannelError> {
                let verdict = if has_begun {
                    Verdict::Stop
                } else {
                    Verdict::Pass
                };
                has_begun = true;
                Ok(verdict)
            };
            let passed = client
                .channel
                .pass_on(&mut server.channel, &mut walk, judge);
            let stop = passed.map_err(of_client)?;
            if has_begun && walk.is_between_packets() {
                break;
            }
            let pumped = pump(client, server, stop).await;
            pumped.map_err(of_client_to_server)?;
        }
        let exchange = Exchange::new(command, agreed, walk.sequence);
        let goes_with_next = exchange.reply.is_over() && client.channel.has_command();
        if !goes_with_next {
            server.post().await.map_err(ForwardError::before_reply)?;
        }
        exchange.disengage_if_over(client, server);
        Ok(exchange)
    }

    /// The reply to a command that the caller has read from `client` and written to `server`, where
    /// it was sent.
    pub fn of_sent(
        command: u8,
        client: &mut Link,
        server: &mut Link,
        agreed: Agreed,
    ) -> Result<Exchange, ForwardError> {
        engage(client, server)?;
        let exchange = Exchange::new(command, agreed, server.channel.out().sequence());
        exchange.disengage_if_over(client, server);
        Ok(exchange)
    }

    /// The reply to a command, whose first frame has the id `sequence`.
    pub fn new(command: u8, agreed: Agreed, sequence: u8) -> Exchange {
        Exchange {
            command,
            agreed,
            reply: Reply::new(command, agreed.server),
            walk: FrameWalk::new(sequence, 0),
            status: None,
            awaits_file: false,
            owes_eof: false,
            is_answered: false,
        }
    }

    /// First byte of the command.
    pub fn command_byte(&self) -> u8 {
        self.command
    }

    /// Whether no packet of the reply is to come.
    pub fn is_over(&self) -> bool {
        self.reply.is_over() && self.walk.is_between_packets() && !self.owes_eof
    }

    /// Passes on packets of the reply until it is over or the client has to send. The
    /// reply has to be over by `limit`.
    pub async fn reply(
        &mut self,
        client: &mut Link,
        server: &mut Link,
        limit: Limit,
    ) -> Result<Turn, ForwardError> {
        loop {
            let passed = self.pass(&mut server.channel, &mut client.channel)?;
            if self.is_over() || self.awaits_file && self.walk.is_between_packets() {
                break;
            }
            if client.pending_bytes() > 0 {
                client.post().await.map_err(ForwardError::Client)?;
            }
            if passed == Passed::All {
                let received = server.receive_for(limit, TaskClass::Busy, PacketUse::PassOn);
                received.await.map_err(|error| match self.is_answered {
                    true => ForwardError::Server(error),
                    false => ForwardError::before_reply(error),
                })?;
            }
        }
        client.post().await.map_err(ForwardError::Client)?;
        if self.awaits_file {
            return Ok(Turn::File);
        }
        self.disengage_if_over(client, server);
        Ok(Turn::Over(self.status))
    }

    /// Passes on the file that the server has asked for.
    pub async fn file(&mut self, client: &mut Link, server: &mut Link) -> Result<(), ForwardError> {
        assert!(self.awaits_file, "the server has asked for a file");
        // The ids of compressed packets go on from those of the request, and of the file.
        server.channel.begin_reply().map_err(of_server)?;
        let sequence = self.walk.sequence.wrapping_add(self.walk.shift);
        let mut walk = FrameWalk::new(sequence, self.walk.shift.wrapping_neg());
        let mut is_last = false;
        loop {
            let judge = |length: usize, _: &[u8]| -> Result<Verdict, ChannelError> {
                if is_last {
                    return Ok(Verdict::Stop);
                }
                is_last = length == 0;
                Ok(Verdict::Pass)
            };
            let passed = client
                .channel
                .pass_on(&mut server.channel, &mut walk, judge);
            let stop = passed.map_err(of_client)?;
            if is_last && walk.is_between_packets() {
                break;
            }
            let pumped = pump(client, server, stop).await;
            pumped.map_err(of_client_to_server)?;
        }
        server.post().await.map_err(ForwardError::Server)?;
        client.channel.begin_reply().map_err(of_client)?;
        self.walk.sequence = walk.sequence.wrapping_add(walk.shift);
        self.awaits_file = false;
        Ok(())
    }

    fn disengage_if_over(&self, client: &mut Link, server: &mut Link) {
        if self.is_over() {
            client.is_engaged = false;
            server.is_engaged = false;
        }
    }

    /// Passes on what has come of the reply: what [`Exchange::reply`] does, without I/O.
    pub fn pass(&mut self, from: &mut Channel, to: &mut Channel) -> Result<Passed, ForwardError> {
        let stop = self.pass_packets(from, to).map_err(Fault::of_server)?;
        Ok(match stop {
            Stop::Full => Passed::Full,
            Stop::Starved | Stop::BeforePacket => Passed::All,
        })
    }

    fn pass_packets(&mut self, from: &mut Channel, to: &mut Channel) -> Result<Stop, Fault> {
        loop {
            let mut treatment = None;
            let (mut walk, exchange) = (self.walk, &mut *self);
            let judge = |length: usize, payload: &[u8]| -> Result<Verdict, Fault> {
                exchange.judge(length, payload, &mut treatment)
            };
            let stop = from.pass_on(to, &mut walk, judge)?;
            self.walk = walk;
            match treatment {
                Some(treatment) => self.treat(treatment, from, to)?,
                None if self.owes_eof && self.reply.is_over() && walk.is_between_packets() => {
                    self.put_in_eof(to);
                }
                None => return Ok(stop),
            }
        }
    }

    fn judge(
        &mut self,
        length: usize,
        payload: &[u8],
        treatment: &mut Option<Treatment>,
    ) -> Result<Verdict, Fault> {
        if self.awaits_file || self.reply.is_over() {
            return Ok(Verdict::Stop);
        }
        let before = self.reply.clone();
        let Some(part) = self.reply.take(length, payload)? else {
            return Ok(Verdict::More);
        };
        if self.agreed.client != self.agreed.server {
            if self.owes_eof && !is_cursor(part) {
                self.reply = before;
                *treatment = Some(Treatment::PutInEof);
                return Ok(Verdict::Stop);
            }
            self.owes_eof = false;
            *treatment = self.treatment(part);
            if treatment.is_some() {
                if REENCODED_BYTES_MAX < length {
                    return Err(Fault::Forward(ForwardError::TooLong { length }));
                }
                if payload.len() < length {
                    self.reply = before;
                    *treatment = None;
                    return Ok(Verdict::More);
                }
            }
            self.owes_eof = self.ends_definitions(&before, part);
        }
        self.note(part);
        Ok(treatment.map_or(Verdict::Pass, |_| Verdict::Stop))
    }

    fn note(&mut self, part: Part) {
        self.is_answered = true;
        match part {
            Part::Ok(status) | Part::RowsEnd(status) => self.status = Some(status),
            Part::Error => self.status = None,
            Part::FileRequest => self.awaits_file = true,
            Part::Head
            | Part::Column
            | Part::ColumnsEnd(_)
            | Part::Row
            | Part::Prepared
            | Part::Parameter
            | Part::Text
            | Part::Authentication => {}
        }
    }

    fn treatment(&self, part: Part) -> Option<Treatment> {
        let has = |side: Capabilities, capability| side.contains(capability);
        let has_ok = |side| has(side, Capabilities::DEPRECATE_EOF);
        let Agreed { client, server } = self.agreed;
        let loses_changes = |status: StatusFlags| {
            status.contains(StatusFlags::SESSION_STATE_CHANGED)
                && has(server, Capabilities::SESSION_TRACK)
                && !has(client, Capabilities::SESSION_TRACK)
        };
        match (part, has_ok(server), has_ok(client)) {
            (Part::ColumnsEnd(_), false, true) => Some(Treatment::LeaveOut),
            (Part::RowsEnd(_), false, true) => Some(Treatment::EofToOk),
            (Part::RowsEnd(_), true, false) => Some(Treatment::OkToEof),
            (Part::RowsEnd(status), true, true) if loses_changes(status) => {
                Some(Treatment::OkWithoutChanges(OkKind::EndOfRows))
            }
            (Part::Ok(status), _, _) if loses_changes(status) => {
                Some(Treatment::OkWithoutChanges(OkKind::Ok))
            }
            (_, _, _) => None,
        }
    }

    /// Whether the client waits for an EOF packet behind this one that the server does not send.
    fn ends_definitions(&self, before: &Reply, part: Part) -> bool {
        let is_definition = matches!(part, Part::Column | Part::Parameter);
        let is_old = |side: Capabilities| !side.contains(Capabilities::DEPRECATE_EOF);
        is_definition
            && is_old(self.agreed.client)
            && !is_old(self.agreed.server)
            && self.reply.has_left_list(before)
    }

    /// Deals with the packet that is next in `from`.
    fn treat(
        &mut self,
        treatment: Treatment,
        from: &mut Channel,
        to: &mut Channel,
    ) -> Result<(), Fault> {
        if treatment == Treatment::PutInEof {
            self.put_in_eof(to);
            return Ok(());
        }
        let client = self.agreed.client;
        let payload = from.front_payload();
        let out = to.out();
        out.set_sequence(self.walk.sequence.wrapping_add(self.walk.shift));
        match treatment {
            Treatment::LeaveOut | Treatment::PutInEof => {
                self.walk.shift = self.walk.shift.wrapping_sub(1);
            }
            Treatment::EofToOk => {
                let eof = EofPacket::decode(payload)?;
                let ok = OkPacket {
                    status: eof.status,
                    warnings: eof.warnings,
                    ..OkPacket::default()
                };
                ok.encode(out, client, OkKind::EndOfRows);
            }
            Treatment::OkToEof => {
                let ok = OkPacket::decode(payload, self.agreed.server)?;
                wire::end_rows(out, client, &ok);
            }
            Treatment::OkWithoutChanges(kind) => {
                let ok = OkPacket::decode(payload, self.agreed.server)?;
                ok.encode(out, client, kind);
            }
        }
        from.skip_front_packet();
        self.walk.skipped_packet();
        Ok(())
    }

    /// Gives the client the EOF packet that ends definitions.
    fn put_in_eof(&mut self, to: &mut Channel) {
        let out = to.out();
        out.set_sequence(self.walk.sequence.wrapping_add(self.walk.shift));
        let status = self.status.unwrap_or(StatusFlags::AUTOCOMMIT);
        // Those that tell of a reply's course are of the reply before.
        let passing = StatusFlags::SESSION_STATE_CHANGED.0
            | StatusFlags::MORE_RESULTS.0
            | StatusFlags::CURSOR_EXISTS.0
            | StatusFlags::LAST_ROW_SENT.0
            | StatusFlags::OUT_PARAMETERS.0;
        let status = StatusFlags(status.0 & !passing);
        let warnings = 0;
        EofPacket { warnings, status }.encode(out);
        self.walk.shift = self.walk.shift.wrapping_add(1);
        self.owes_eof = false;
    }
}

/// Whether a packet says that its rows wait in a cursor: it ends the columns, too.
fn is_cursor(part: Part) -> bool {
    let exists = |status: StatusFlags| status.contains(StatusFlags::CURSOR_EXISTS);
    matches!(part, Part::RowsEnd(status) if exists(status))
}

fn engage(client: &mut Link, server: &mut Link) -> Result<(), ForwardError> {
    if client.is_engaged || server.is_engaged {
        return Err(ForwardError::Unusable);
    }
    client.is_engaged = true;
    server.is_engaged = true;
    Ok(())
}

/// The side of a pass that failed.
enum Side {
    From,
    To,
}

/// Sends what was passed on, and receives more if there is nothing left to pass.
async fn pump(from: &mut Link, to: &mut Link, stop: Stop) -> Result<(), (Side, Disconnect)> {
    if to.pending_bytes() > 0 {
        to.post().await.map_err(|error| (Side::To, error))?;
    }
    if stop == Stop::Starved {
        let limit = Limit::after(from.read_timeout());
        let received = from.receive_for(limit, TaskClass::Busy, PacketUse::PassOn);
        received.await.map_err(|error| (Side::From, error))?;
    }
    Ok(())
}

/// The error of a side while bytes go from the client to the server.
fn of_client_to_server((side, error): (Side, Disconnect)) -> ForwardError {
    match side {
        Side::From => ForwardError::Client(error),
        Side::To => ForwardError::before_reply(error),
    }
}

fn of_client(error: ChannelError) -> ForwardError {
    ForwardError::Client(error.into())
}

fn of_server(error: ChannelError) -> ForwardError {
    ForwardError::Server(error.into())
}

#[cfg(test)]
mod tests;
