//! [`Exchange`]: a command on its way from a client's link to a server's, and the reply back.
//!
//! Received bytes become the bytes that are sent: the buffer of one link is handed to the other,
//! or, where it begins with what was dealt with, copied once. No packet is assembled or encoded
//! again, however long it is. Of each packet the header and the first bytes are looked at
//! ([`Reply`](crate::reply)), so the exchange knows the command, where the reply ends, and the
//! status flags of that end.
//!
//! The two sides may differ in DEPRECATE_EOF and SESSION_TRACK (`translate.rs`).
//!
//! Flow control: what the reader of a reply does not take is not read from its sender. At most
//! [`HIGH_WATER_BYTES`](crate::HIGH_WATER_BYTES) and what one receive gives wait in a link while
//! another such buffer is on its way. Nothing more is received until that one is sent, which is the
//! low mark.
//!
//! A replica asks for a dump of the binary log, which has no end ([`Exchange::stream`]). Its client
//! may acknowledge events meanwhile, so packets go both ways at once.
//!
//! An exchange that is dropped before its end leaves both links unusable: they refuse the next. One
//! whose server fails before anything of a reply was passed on leaves the client usable: the caller
//! may answer it, or have another server answer it ([`Exchange::of_sent`]).

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use errcode::{ErrorCode, Origin, Retry};
use runtime::TaskClass;
use thiserror::Error;
use wire::{Capabilities, Malformed, PrepareOk, StatusFlags};

use self::translate::{Awaited, Fault, Translator};
use crate::channel::{Channel, ChannelError, HIGH_WATER_BYTES};
use crate::disconnect::Disconnect;
use crate::frame_walk::{FrameWalk, Stop, Verdict};
use crate::link::{Limit, Link, PacketUse, Progress, Receiving, Sending};
use crate::reply;

mod translate;

pub use self::translate::Tally;

/// A reply that is not there after this time is awaited with an eye on the client. Most are there
/// sooner, and cost no look. Each busy client has one wake-up in this time, since its timer is not
/// set again for each statement: with 10,000 of them that is a hundredth of a core.
const CLIENT_WATCH_DELAY: Duration = Duration::from_secs(1);

/// Why an exchange ended before its time. The server's link is then unusable, but for
/// [`ForwardError::Unasked`]. [`Link::is_usable`] tells whether the client's is.
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
    /// The server has said something before the command was sent to it.
    #[error("the server sent something that it was not asked for")]
    Unasked,
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
            ForwardError::Server(_)
            | ForwardError::Unanswered(_)
            | ForwardError::Unasked
            | ForwardError::Reply(_) => Origin::Server,
            ForwardError::Unusable | ForwardError::TooLong { .. } => Origin::Ourselves,
        }
    }

    /// Whether the command may be sent again.
    pub fn retry(&self) -> Retry {
        match self {
            // It was not sent.
            ForwardError::Unasked => Retry::Now,
            ForwardError::Unanswered(_) => Retry::IfRead,
            ForwardError::Client(_)
            | ForwardError::Server(_)
            | ForwardError::Reply(_)
            | ForwardError::Unusable
            | ForwardError::TooLong { .. } => Retry::Never,
        }
    }

    /// The server's connection ended before a packet of its reply was taken.
    fn before_reply(disconnect: Disconnect, server: &Channel) -> ForwardError {
        match disconnect.is_peer_closing() && !server.has_begun_packet() {
            true => ForwardError::Unanswered(disconnect),
            false => ForwardError::Server(disconnect),
        }
    }
}

/// What was agreed with each side, which differs in nothing that cannot be translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreed {
    client: Capabilities,
    server: Capabilities,
}

/// A client and a server agreed on packets of unlike layouts, so none can be passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the client and the server differ in the capabilities {0:?}")]
pub struct UnlikeCapabilities(pub Capabilities);

impl Agreed {
    /// What changes the layout of packets and is not translated. Whoever logs in to a server for a
    /// client asks for as much of it as the client has.
    pub const LAYOUT: Capabilities = Capabilities(
        Capabilities::PROTOCOL_41.0
            | Capabilities::OPTIONAL_METADATA.0
            | Capabilities::QUERY_ATTRIBUTES.0
            | Capabilities::MARIADB_PROGRESS.0
            | Capabilities::MARIADB_EXTENDED_METADATA.0
            | Capabilities::MARIADB_CACHE_METADATA.0,
    );

    /// Fails if the two differ in [`Agreed::LAYOUT`].
    pub fn new(client: Capabilities, server: Capabilities) -> Result<Agreed, UnlikeCapabilities> {
        match Capabilities((client.0 ^ server.0) & Agreed::LAYOUT.0) {
            Capabilities(0) => Ok(Agreed { client, server }),
            unlike => Err(UnlikeCapabilities(unlike)),
        }
    }
}

/// How a reply has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Well: its last packet had these flags.
    Status(StatusFlags),
    /// With this error. What the session was in the middle of may be gone, which the flags of a
    /// later reply tell.
    Error(ErrorCode),
    /// The protocol has no answer to the command, or none with flags.
    Silent,
}

/// Who has to send next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// The reply is over.
    Over(Ending),
    /// The server waits for a file: [`Exchange::file`], then [`Exchange::reply`] again.
    File,
    /// The server waits for a packet of the client's login: [`Exchange::authentication`], then
    /// [`Exchange::reply`] again.
    Authentication,
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
    /// What becomes of the packets of the server.
    translator: Translator,
    /// The place in them.
    walk: FrameWalk,
}

impl Exchange {
    /// Passes on the command whose first byte [`Link::peek_command`] has told. One that has no
    /// answer is sent with the next command if that is there already. A caller that sends the next
    /// to another server posts what waits for this one ([`Link::post`]).
    pub async fn command(
        client: &mut Link,
        server: &mut Link,
        agreed: Agreed,
    ) -> Result<Exchange, ForwardError> {
        let peeked = client.channel.peek_command();
        let command = peeked.map_err(of_client)?.ok_or(ForwardError::Unusable)?;
        if server.has_begun_packet() {
            return Err(ForwardError::Unasked);
        }
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
            pumped.map_err(|ended| match ended {
                Ended::Client(error) => ForwardError::Client(error),
                Ended::Server(error) => ForwardError::before_reply(error, &server.channel),
            })?;
        }
        let exchange = Exchange::new(command, agreed, walk.sequence);
        let goes_with_next = exchange.translator.reply.is_over() && client.channel.has_command();
        if !goes_with_next && let Err(error) = server.post().await {
            exchange.give_up(client);
            return Err(ForwardError::before_reply(error, &server.channel));
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
            translator: Translator::new(command, agreed),
            walk: FrameWalk::new(sequence, 0),
        }
    }

    /// First byte of the command.
    pub fn command_byte(&self) -> u8 {
        self.command
    }

    /// Changes of the session that the reply has reported so far, if the server was asked to track
    /// it: what [`wire::SessionChanges::decode`] takes. `None` if they were too long to be kept:
    /// then any may have happened.
    pub fn session_changes(&self) -> Option<&[u8]> {
        self.translator.changes.as_deref()
    }

    /// Whether the reply's last packet can report changes of the session: not an EOF packet.
    pub fn reports_changes(&self) -> bool {
        self.translator.ends_in_ok
    }

    /// From now on, the client is told this id of the statement that the reply says is prepared.
    pub fn number_statement(&mut self, id: u32) {
        self.translator.statement_id = Some(id);
    }

    /// What the server has told of a statement that it prepared.
    pub fn prepared(&self) -> Option<PrepareOk> {
        self.translator.prepared
    }

    /// What the reply has told of its last result so far.
    pub fn tally(&self) -> Tally {
        self.translator.tally
    }

    /// Whether no packet of the reply is to come.
    pub fn is_over(&self) -> bool {
        let Translator {
            reply, owes_eof, ..
        } = &self.translator;
        reply.is_over() && self.walk.is_between_packets() && !owes_eof
    }

    /// Passes on packets of the reply until it is over or the client has to send. The reply has to
    /// be over by `limit`, which is put off while the client takes nothing. Ends with
    /// [`ForwardError::Client`] if the client goes while the server is slow.
    pub async fn reply(
        &mut self,
        client: &mut Link,
        server: &mut Link,
        mut limit: Limit,
    ) -> Result<Turn, ForwardError> {
        loop {
            let passed = self.pass(&mut server.channel, &mut client.channel);
            let passed = passed.inspect_err(|_| self.give_up(client))?;
            if let Some(turn) = self.turn() {
                client.post().await.map_err(ForwardError::Client)?;
                self.disengage_if_over(client, server);
                return Ok(turn);
            }
            if client.pending_bytes() > 0 {
                let began = runtime::now();
                client.post().await.map_err(ForwardError::Client)?;
                limit.put_off(runtime::now().since(began));
            }
            if passed == Passed::All {
                match receive_unless_gone(client, server, limit).await {
                    Ok(()) => {}
                    Err(Ended::Client(error)) => return Err(ForwardError::Client(error)),
                    Err(Ended::Server(error)) => {
                        self.give_up(client);
                        return Err(self.of_reply(error, &server.channel));
                    }
                }
            }
        }
    }

    /// As [`Exchange::reply`], of a dump of the binary log ([`Exchange::is_stream`]): what the
    /// client sends meanwhile goes to the server, whether the client takes events or not. The
    /// server has to send something, at least that it is alive, within `patience` each time, and
    /// may ask for nothing. Ends with [`ForwardError::Client`] when the client goes.
    pub async fn stream(
        &mut self,
        client: &mut Link,
        server: &mut Link,
        patience: Duration,
    ) -> Result<Ending, ForwardError> {
        let mut acknowledgements = FrameWalk::verbatim();
        let mut sending = Sides::<Sending>::default();
        let mut limit = Limit::after(patience);
        loop {
            let passed = self.pass(&mut server.channel, &mut client.channel)?;
            let mut receiving = Sides::default();
            if let Some(turn) = self.turn() {
                let Turn::Over(ending) = turn else {
                    let what = "question in a dump of the binary log";
                    return Err(ForwardError::Reply(Malformed { what }));
                };
                if client.is_sent(&sending.client) && server.is_sent(&sending.server) {
                    self.disengage_if_over(client, server);
                    return Ok(ending);
                }
            } else {
                let judge = |_: usize, _: &[u8]| Ok::<_, ChannelError>(Verdict::Pass);
                let to = &mut server.channel;
                let stop = client.channel.pass_on(to, &mut acknowledgements, judge);
                if stop.map_err(of_client)? == Stop::Starved && has_room(server) {
                    receiving.client = Receiving::Anytime;
                }
                if passed == Passed::All && has_room(client) {
                    receiving.server = Receiving::Until(limit);
                }
            }
            let moved = both_ways(client, server, &mut sending, receiving).await;
            let moved = moved.map_err(|ended| match ended {
                Ended::Client(error) => ForwardError::Client(error),
                Ended::Server(error) => self.of_reply(error, &server.channel),
            })?;
            // While the client takes nothing, nothing of the server's is waited for.
            if let Moved::Client(Progress::Sent) | Moved::Server(Progress::Received) = moved {
                limit = Limit::after(patience);
            }
        }
    }

    /// Whether the reply has no end of its own, so that [`Exchange::stream`] passes it on.
    pub fn is_stream(&self) -> bool {
        reply::is_dump(self.command)
    }

    /// Passes on the file that the server has asked for.
    pub async fn file(&mut self, client: &mut Link, server: &mut Link) -> Result<(), ForwardError> {
        let asked = Some(Awaited::File);
        assert!(self.translator.awaited == asked, "the server asks for it");
        self.answer(client, server, |length| length == 0).await
    }

    /// Passes on the packet of a login that the server has asked for.
    pub async fn authentication(
        &mut self,
        client: &mut Link,
        server: &mut Link,
    ) -> Result<(), ForwardError> {
        let asked = Some(Awaited::Authentication);
        assert!(self.translator.awaited == asked, "the server asks for it");
        self.answer(client, server, |_| true).await
    }

    /// Passes on packets of the client in the middle of the reply, up to the last one.
    async fn answer(
        &mut self,
        client: &mut Link,
        server: &mut Link,
        is_last: impl Fn(usize) -> bool,
    ) -> Result<(), ForwardError> {
        // The ids of compressed packets go on from those of the request, and of the answer.
        server.channel.begin_reply().map_err(of_server)?;
        let mut walk = FrameWalk::new(self.walk.outgoing(), self.walk.shift.wrapping_neg());
        let mut has_last = false;
        loop {
            let judge = |length: usize, _: &[u8]| -> Result<Verdict, ChannelError> {
                if has_last {
                    return Ok(Verdict::Stop);
                }
                has_last = is_last(length);
                Ok(Verdict::Pass)
            };
            let passed = client
                .channel
                .pass_on(&mut server.channel, &mut walk, judge);
            let stop = passed.map_err(of_client)?;
            if has_last && walk.is_between_packets() {
                break;
            }
            // The reply has begun.
            pump(client, server, stop)
                .await
                .map_err(|ended| match ended {
                    Ended::Client(error) => ForwardError::Client(error),
                    Ended::Server(error) => ForwardError::Server(error),
                })?;
        }
        server.post().await.map_err(ForwardError::Server)?;
        client.channel.begin_reply().map_err(of_client)?;
        self.walk.sequence = walk.outgoing();
        self.translator.awaited = None;
        Ok(())
    }

    /// Who has to send next, unless it is the server.
    fn turn(&self) -> Option<Turn> {
        if self.is_over() {
            return Some(Turn::Over(self.translator.ending));
        }
        let awaited = self
            .translator
            .awaited
            .filter(|_| self.walk.is_between_packets())?;
        Some(match awaited {
            Awaited::File => Turn::File,
            Awaited::Authentication => Turn::Authentication,
        })
    }

    /// The server's connection ended where it had to send.
    fn of_reply(&self, disconnect: Disconnect, server: &Channel) -> ForwardError {
        match self.translator.is_answered {
            true => ForwardError::Server(disconnect),
            false => ForwardError::before_reply(disconnect, server),
        }
    }

    /// Gives the reply up. If nothing of it was passed on, the client is usable again: the caller
    /// may answer it. The server's link is not.
    pub fn give_up(&self, client: &mut Link) {
        if !self.translator.is_answered {
            client.out().set_sequence(self.walk.outgoing());
            client.is_engaged = false;
        }
    }

    fn disengage_if_over(&self, client: &mut Link, server: &mut Link) {
        if self.is_over() {
            client.is_engaged = false;
            server.is_engaged = false;
        }
    }

    /// Passes on what has come of the reply: what [`Exchange::reply`] does, without I/O.
    pub fn pass(&mut self, from: &mut Channel, to: &mut Channel) -> Result<Passed, ForwardError> {
        let before = to.written_bytes();
        let stop = self.pass_packets(from, to).map_err(Fault::of_server)?;
        to.show_written(before);
        Ok(match stop {
            Stop::Full => Passed::Full,
            Stop::Starved | Stop::BeforePacket => Passed::All,
        })
    }

    fn pass_packets(&mut self, from: &mut Channel, to: &mut Channel) -> Result<Stop, Fault> {
        let Exchange {
            translator, walk, ..
        } = self;
        loop {
            let mut treatment = None;
            let judge = |length: usize, payload: &[u8]| -> Result<Verdict, Fault> {
                translator.judge(length, payload, &mut treatment)
            };
            let stop = from.pass_on(to, walk, judge)?;
            match treatment {
                Some(treatment) => {
                    translator.treat(treatment, walk, from, to)?;
                    if translator.reply.is_over() && !translator.owes_eof {
                        return Ok(Stop::BeforePacket);
                    }
                }
                None if translator.owes_eof
                    && translator.reply.is_over()
                    && walk.is_between_packets() =>
                {
                    translator.put_in_eof(walk, to);
                }
                None => return Ok(stop),
            }
        }
    }
}

fn engage(client: &mut Link, server: &mut Link) -> Result<(), ForwardError> {
    if !client.is_usable() || !server.is_usable() {
        return Err(ForwardError::Unusable);
    }
    client.is_engaged = true;
    server.is_engaged = true;
    Ok(())
}

/// Whose connection ended.
enum Ended {
    Client(Disconnect),
    Server(Disconnect),
}

/// Sends to the server what was passed on, and receives more if there is nothing left to pass.
async fn pump(client: &mut Link, server: &mut Link, stop: Stop) -> Result<(), Ended> {
    if server.pending_bytes() > 0 {
        server.post().await.map_err(Ended::Server)?;
    }
    if stop == Stop::Starved {
        let limit = Limit::after(client.read_timeout());
        let received = client.receive_for(limit, TaskClass::Busy, PacketUse::PassOn);
        received.await.map_err(Ended::Client)?;
    }
    Ok(())
}

/// Receives from the server until `limit`. Of a slow one it is not waited for once the client is
/// gone.
async fn receive_unless_gone(client: &Link, server: &mut Link, limit: Limit) -> Result<(), Ended> {
    let soon = Limit::after(CLIENT_WATCH_DELAY);
    if soon < limit {
        let received = server.receive_for(soon, TaskClass::Busy, PacketUse::PassOn);
        match received.await {
            Err(Disconnect::Idle) => {}
            received => return received.map_err(Ended::Server),
        }
    }
    let mut gone = pin!(client.stream().hung_up());
    let mut received = pin!(server.receive_for(limit, TaskClass::Busy, PacketUse::PassOn));
    poll_fn(|context| {
        if let Poll::Ready(received) = received.as_mut().poll(context) {
            return Poll::Ready(received.map_err(Ended::Server));
        }
        let gone = gone.as_mut().poll(context);
        gone.map(|()| Err(Ended::Client(Disconnect::PeerClosed)))
    })
    .await
}

/// Something for each side of an exchange.
#[derive(Debug, Default)]
struct Sides<T> {
    client: T,
    server: T,
}

/// Which side made progress.
enum Moved {
    Client(Progress),
    Server(Progress),
}

/// The low mark: so much may wait to be sent to a side that more is received for it.
fn has_room(to: &Link) -> bool {
    to.pending_bytes() < HIGH_WATER_BYTES
}

/// Sends to both sides what waits, and receives from each as `receiving` says, until one of these
/// comes to something.
async fn both_ways(
    client: &mut Link,
    server: &mut Link,
    sending: &mut Sides<Sending>,
    receiving: Sides<Receiving>,
) -> Result<Moved, Ended> {
    client.channel.rest();
    server.channel.rest();
    poll_fn(|context| {
        let polled = server.poll_both_ways(&mut sending.server, receiving.server, context);
        if let Poll::Ready(progress) = polled {
            return Poll::Ready(progress.map(Moved::Server).map_err(Ended::Server));
        }
        let polled = client.poll_both_ways(&mut sending.client, receiving.client, context);
        polled.map(|progress| progress.map(Moved::Client).map_err(Ended::Client))
    })
    .await
}

fn of_client(error: ChannelError) -> ForwardError {
    ForwardError::Client(error.into())
}

fn of_server(error: ChannelError) -> ForwardError {
    ForwardError::Server(error.into())
}

#[cfg(test)]
mod tests;
