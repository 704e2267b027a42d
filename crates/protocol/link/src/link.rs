//! [`Link`]: a stream and its packets; the place where this crate waits for the network.
//!
//! Every wait has a limit. The futures here are written to be small, because one of each lies in
//! the memory of every idle connection: nothing is wrapped that can be polled in place, and what
//! is rare is boxed by its caller.

use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use env::linux::SystemClock;
use env::{Clock as _, Instant};
use runtime::{Alarm, DetachedStream, PeerState, ReceivedBytes, SendMode, Stream, TaskClass};
use wire::{
    CompressionMethod, FRAME_BYTES_MAX, HEADER_BYTES, LongPacket, Malformed, PacketWriter,
    ProxyBytes,
};

pub use crate::channel::give_way;
use crate::channel::{Channel, ChannelError, DetachedChannel, Onlooker};
use crate::disconnect::Disconnect;
use crate::frame_walk::InnerIds;
use crate::packet_bytes::PacketBytes;
use crate::packet_memory::UNCOUNTED_BYTES;
use crate::resources::{Moved, PeerRole, Resources};
use crate::tls::TlsEnd;

/// Most that is read and dropped of a packet that is too large, so that its sender gets to read
/// why. MySQL's protocol knows no larger `max_allowed_packet`.
const DISCARD_BYTES_MAX: usize = 1 << 30;

/// A stream and its packets.
pub struct Link {
    stream: Stream,
    /// Ends waits that take too long; kept from one to the next.
    alarm: Alarm,
    pub(crate) channel: Channel,
    /// An exchange goes on; one that was dropped leaves this set for good.
    pub(crate) is_engaged: bool,
    /// A send goes on. One that was dropped leaves this set for good: it is unknown how much of it
    /// the peer has got.
    is_sending: bool,
    /// Who is at the other end. Constant.
    peer_role: PeerRole,
    /// Most time for the rest of a packet.
    read_timeout: Duration,
    /// Most time for a peer to make room for more of what is sent.
    write_timeout: Duration,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}

/// A link on its way from one worker to another; closed when dropped.
#[derive(Debug)]
pub struct DetachedLink {
    stream: DetachedStream,
    channel: DetachedChannel,
    peer_role: PeerRole,
    read_timeout: Duration,
    write_timeout: Duration,
}

impl DetachedLink {
    /// Makes it a link of this worker. What came meanwhile is received by it.
    pub fn attach(self, resources: &Rc<Resources>) -> Result<Link, Disconnect> {
        let (stream, received) = self.stream.attach()?;
        let mut channel = Channel::attach(self.channel, Rc::clone(resources));
        if !received.is_empty() {
            channel.receive(&received)?;
        }
        Ok(Link {
            stream,
            alarm: Alarm::default(),
            channel,
            is_engaged: false,
            is_sending: false,
            peer_role: self.peer_role,
            read_timeout: self.read_timeout,
            write_timeout: self.write_timeout,
        })
    }
}

/// What is to become of a packet that is being received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PacketUse {
    /// It is taken as a whole, so there has to be memory for it.
    Take,
    /// It is passed on as it comes: only a piece that comes compressed has to have memory.
    PassOn,
}

/// What came of bytes that were received.
#[derive(Debug)]
pub(crate) struct TakenIn(Result<(), Disconnect>);

/// A send that goes on while its link receives. Polled to its end, or the link is of no use.
#[derive(Debug, Default)]
pub(crate) struct Sending {
    /// What the stream has not yet taken over.
    unsent: Option<Vec<u8>>,
    is_under_way: bool,
}

/// Whether a link that sends is to receive meanwhile.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Receiving {
    /// No: what would come has no room.
    #[default]
    No,
    /// Yes, however long it takes.
    Anytime,
    /// Yes, and something has to come in time.
    Until(Limit),
}

/// What a link did that sends and receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// All that was written is sent.
    Sent,
    /// Bytes were taken in.
    Received,
}

/// Until when something is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Limit(Instant);

impl Limit {
    /// `duration` from now.
    pub fn after(duration: Duration) -> Limit {
        Limit(runtime::now() + duration)
    }

    /// `duration` from this very moment: the turn may have begun long before it.
    pub fn precisely_after(duration: Duration) -> Limit {
        Limit(SystemClock.now() + duration)
    }

    /// Later by `duration`.
    pub fn put_off(&mut self, duration: Duration) {
        self.0 = self.0 + duration;
    }
}

impl Link {
    /// A stream whose packets have at most `packet_bytes_max` bytes, without TLS and compression.
    /// Reads and writes wait at most `timeout`.
    pub fn new(
        stream: Stream,
        peer_role: PeerRole,
        resources: &Rc<Resources>,
        packet_bytes_max: usize,
        timeout: Duration,
    ) -> Link {
        Link {
            stream,
            alarm: Alarm::default(),
            channel: Channel::new(Rc::clone(resources), packet_bytes_max),
            is_engaged: false,
            is_sending: false,
            peer_role,
            read_timeout: timeout,
            write_timeout: timeout,
        }
    }

    /// The stream, to ask about the peer.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Whether a command or its reply may be passed on: no exchange goes on, and no exchange or
    /// send was dropped before its end.
    pub fn is_usable(&self) -> bool {
        !self.is_engaged && !self.is_sending
    }

    /// Whether the link is usable and nothing is under way: no byte to be sent or understood.
    pub fn is_at_rest(&self) -> bool {
        self.is_usable() && self.channel.is_empty()
    }

    /// Takes the link out of its worker, for another to [attach](DetachedLink::attach). One that is
    /// not at rest is closed.
    pub async fn detach(self) -> Result<DetachedLink, Disconnect> {
        if !self.is_at_rest() {
            return Err(Disconnect::Engaged);
        }
        Ok(DetachedLink {
            channel: self.channel.detach(),
            peer_role: self.peer_role,
            read_timeout: self.read_timeout,
            write_timeout: self.write_timeout,
            stream: self.stream.detach().await?,
        })
    }

    /// How long the rest of a packet may take to come.
    pub fn read_timeout(&self) -> Duration {
        self.read_timeout
    }

    /// How long the rest of a packet may take to come, and how long the peer to take what is sent.
    pub fn set_timeouts(&mut self, read: Duration, write: Duration) {
        self.read_timeout = read;
        self.write_timeout = write;
    }

    /// Changes the limit on received packets.
    pub fn set_packet_bytes_max(&mut self, packet_bytes_max: usize) {
        self.channel.set_packet_bytes_max(packet_bytes_max);
    }

    /// The packets that come from now on count as an account's.
    pub fn set_account(&mut self, account: &str) {
        self.channel.share.set_account(account);
    }

    /// Where packets are written.
    #[inline]
    pub fn out(&mut self) -> &mut PacketWriter {
        self.channel.out()
    }

    /// How many written bytes wait to be sent.
    #[inline]
    pub fn pending_bytes(&self) -> usize {
        self.channel.pending_bytes()
    }

    /// Lets what was written so far wait as long packets do.
    pub fn set_output_aside(&mut self) {
        self.channel.set_output_aside();
    }

    /// What long packets that wait to be sent take of memory.
    #[inline]
    pub fn long_packet_bytes(&self) -> usize {
        self.channel.long_packet_bytes()
    }

    /// Begins a packet that is too long for [`Link::out`]; [`Link::append_long_packet`] ends it.
    pub fn begin_long_packet(&mut self) -> LongPacket {
        self.channel.begin_long_packet()
    }

    /// Writes a long packet. Nothing was written since it was begun.
    pub fn append_long_packet(&mut self, packet: LongPacket) {
        self.channel.append_long_packet(packet);
    }

    /// As [`Link::pending_bytes`], of replies that are whole.
    pub fn pending_reply_bytes(&self) -> usize {
        self.channel.pending_reply_bytes()
    }

    /// What was written so far are whole replies.
    #[inline]
    pub fn end_reply(&mut self) {
        self.channel.end_reply();
    }

    /// The next received packet is a command: its sequence id is 0.
    pub fn expect_command(&mut self) {
        self.channel.expect_command();
    }

    /// The next received packet answers a command whose frames end before this id.
    pub fn expect_sequence(&mut self, id: u8) {
        self.channel.expect_sequence(id);
    }

    /// The next received packet goes on with the sequence ids of what was written.
    pub fn follow_sequence(&mut self) {
        self.channel.follow_sequence();
    }

    /// What is written next answers a packet of `frames` frames which could not be taken.
    pub fn begin_error_reply(&mut self, frames: u8) {
        self.channel.begin_error_reply(frames);
    }

    /// What is written next is a command.
    pub fn begin_command(&mut self) -> Result<(), ChannelError> {
        self.channel.begin_command()
    }

    /// Compresses from now on, in both directions.
    pub fn start_compression(&mut self, method: CompressionMethod, inner_ids: InnerIds) {
        self.channel.start_compression(method, inner_ids);
    }

    /// Takes the next packet, if it is whole, of what was received.
    pub fn next_packet(&mut self) -> Result<Option<PacketBytes>, ChannelError> {
        self.channel.next_packet()
    }

    /// Takes the next packet that is whole; [`Disconnect::Idle`] if there is none until `limit`.
    pub async fn receive_packet(&mut self, limit: Limit) -> Result<PacketBytes, Disconnect> {
        loop {
            if let Some(packet) = self.channel.next_packet()? {
                return Ok(packet);
            }
            self.receive(limit).await?;
        }
    }

    /// As [`Link::receive_packet`], where [`Link::next_packet`] has found none; but once the packet
    /// has begun, each further piece of it has the read timeout of its own.
    pub async fn receive_command(
        &mut self,
        limit: Limit,
        class: TaskClass,
    ) -> Result<PacketBytes, Disconnect> {
        self.receive_for(limit, class, PacketUse::Take).await?;
        loop {
            if let Some(packet) = self.channel.next_packet()? {
                return Ok(packet);
            }
            let limit = Limit::after(self.read_timeout);
            self.receive(limit).await?;
        }
    }

    /// Takes bytes; [`Disconnect::Idle`] if none come until `limit`.
    pub async fn receive(&mut self, limit: Limit) -> Result<(), Disconnect> {
        self.receive_for(limit, TaskClass::Busy, PacketUse::Take)
            .await
    }

    /// Takes the header of the PROXY protocol that the connection begins with, if it is whole. To
    /// be asked before the first packet and before TLS.
    pub fn take_proxy_header(&mut self) -> Result<ProxyBytes, Malformed> {
        self.channel.take_proxy_header()
    }

    /// As [`Link::receive`], of bytes that may be no packet: nothing is read out of them.
    pub async fn receive_bytes(&mut self, limit: Limit) -> Result<(), Disconnect> {
        self.receive_for(limit, TaskClass::Busy, PacketUse::PassOn)
            .await
    }

    /// Sends what was written and waits for a command, at most `wait_timeout`; `class` says what
    /// the caller holds meanwhile. Returns its first byte, and leaves it where it is.
    pub async fn peek_command(
        &mut self,
        wait_timeout: Duration,
        class: TaskClass,
    ) -> Result<u8, Disconnect> {
        self.channel.expect_command();
        if let Some(byte) = self.channel.peek_command()? {
            return Ok(byte);
        }
        if self.pending_bytes() > 0 {
            self.post().await?;
        }
        let limit = Limit::after(wait_timeout);
        loop {
            self.receive_for(limit, class, PacketUse::PassOn).await?;
            if let Some(byte) = self.channel.peek_command()? {
                return Ok(byte);
            }
        }
    }

    /// The command that [`Link::peek_command`] has told of, as far as it has come: the body behind
    /// its first byte, and whether that is all of it.
    pub fn peeked_body(&self) -> (&[u8], bool) {
        self.channel.peeked_body()
    }

    /// How long that command is; of one that has several frames, the first.
    pub fn peeked_bytes(&self) -> usize {
        self.channel.peeked_bytes()
    }

    /// Waits until so many bytes of that command have come, its first one included, or all of its
    /// first frame. Each further piece has the read timeout of its own.
    pub async fn receive_peeked(&mut self, bytes: usize) -> Result<(), Disconnect> {
        // Who waits for little waits for no memory for the rest.
        let packet_use = match bytes <= UNCOUNTED_BYTES {
            true => PacketUse::PassOn,
            false => PacketUse::Take,
        };
        while !self.channel.has_peeked(bytes)? {
            let limit = Limit::after(self.read_timeout);
            self.receive_for(limit, TaskClass::Busy, packet_use).await?;
        }
        Ok(())
    }

    /// Shows the replies that are passed on to the peer to this onlooker, or to none.
    pub fn set_onlooker(&mut self, onlooker: Option<Box<dyn Onlooker>>) {
        self.channel.set_onlooker(onlooker);
    }

    /// Writes over bytes of that body, before the command is passed on.
    ///
    /// # Panics
    /// If [`Link::peeked_body`] has not shown all of them.
    pub fn overwrite_peeked(&mut self, at: usize, bytes: &[u8]) {
        self.channel.overwrite_peeked(at, bytes);
    }

    pub(crate) async fn receive_for(
        &mut self,
        limit: Limit,
        class: TaskClass,
        packet_use: PacketUse,
    ) -> Result<(), Disconnect> {
        self.channel.rest();
        let needed = match packet_use {
            PacketUse::Take => self.channel.needed_bytes(),
            PacketUse::PassOn => self.channel.needed_piece_bytes(),
        };
        if UNCOUNTED_BYTES < needed && !self.channel.has_peer_ended() {
            Box::pin(self.hold(needed)).await?;
        }
        let received = poll_fn(|context| self.poll_receive(limit, class, context)).await;
        self.end_receive(received).await
    }

    /// Polls for bytes and takes them in; `end_receive` follows once it is ready.
    fn poll_receive(
        &mut self,
        limit: Limit,
        class: TaskClass,
        context: &mut Context<'_>,
    ) -> Poll<Result<TakenIn, Disconnect>> {
        if let Poll::Ready(taken) = self.poll_take_in(context) {
            return Poll::Ready(taken);
        }
        runtime::set_task_class(class);
        self.poll_limits(Some(limit), context).map(Err)
    }

    fn poll_take_in(&mut self, context: &mut Context<'_>) -> Poll<Result<TakenIn, Disconnect>> {
        if self.channel.has_peer_ended() {
            return Poll::Ready(Err(Disconnect::PeerClosed));
        }
        // Where they lie: they are not moved from hand to hand.
        self.stream.poll_receive(context).map(|bytes| match bytes {
            Ok(bytes) => Ok(TakenIn(self.take_in(&bytes))),
            Err(error) => Err(error.into()),
        })
    }

    /// Ready once nothing has come until `limit`, or the peer has not taken what it is sent.
    fn poll_limits(&mut self, limit: Option<Limit>, context: &mut Context<'_>) -> Poll<Disconnect> {
        let stalled_since = self.stream.stalled_since();
        let write_limit = stalled_since.map(|since| since + self.write_timeout);
        let limit = limit.map(|limit| limit.0);
        let is_earlier = |at: &Instant| limit.is_none_or(|limit| *at < limit);
        if let Some(write_limit) = write_limit.filter(is_earlier) {
            let waited = self.alarm.poll_until(write_limit, context);
            return waited.map(|()| Disconnect::WriteTimeout);
        }
        match limit {
            Some(limit) => {
                let waited = self.alarm.poll_until(limit, context);
                waited.map(|()| Disconnect::Idle)
            }
            None => Poll::Pending,
        }
    }

    /// Sends what was written, and receives meanwhile as `receiving` says.
    pub(crate) fn poll_both_ways(
        &mut self,
        sending: &mut Sending,
        receiving: Receiving,
        context: &mut Context<'_>,
    ) -> Poll<Result<Progress, Disconnect>> {
        if let Poll::Ready(sent) = self.poll_sending(sending, context) {
            return Poll::Ready(sent.map(|()| Progress::Sent));
        }
        let limit = match receiving {
            Receiving::No => return self.poll_limits(None, context).map(Err),
            Receiving::Anytime => None,
            Receiving::Until(limit) => Some(limit),
        };
        match self.poll_take_in(context) {
            Poll::Ready(Ok(TakenIn(outcome))) => Poll::Ready(outcome.map(|()| Progress::Received)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => self.poll_limits(limit, context).map(Err),
        }
    }

    /// Ready once a send has come to its end; pending, too, if there is nothing to send. What TLS
    /// has to say goes along.
    fn poll_sending(
        &mut self,
        sending: &mut Sending,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Disconnect>> {
        if !sending.is_under_way {
            let bytes = match self.pending_bytes() {
                0 => self.channel.take_tls_records(),
                _ => self.channel.seal()?,
            };
            if bytes.is_empty() {
                return Poll::Pending;
            }
            self.moved().sent_bytes.add(stdx::to_u64(bytes.len()));
            sending.unsent = Some(bytes);
            sending.is_under_way = true;
        }
        let sent = self
            .stream
            .poll_send_by(&mut sending.unsent, SendMode::Wait, context);
        sent.map(|sent| {
            sending.is_under_way = false;
            if let Some(buffer) = sent? {
                self.channel.resources.give_buffer(buffer);
            }
            Ok(())
        })
    }

    /// Whether all that was written is sent.
    pub(crate) fn is_sent(&self, sending: &Sending) -> bool {
        !sending.is_under_way && self.pending_bytes() == 0
    }

    /// Whether something of the next packet has come that was not taken.
    pub fn has_begun_packet(&self) -> bool {
        self.channel.has_begun_packet()
    }

    /// Looks, without waiting, whether the peer of a link at rest has closed the connection or has
    /// said something unasked, which is its last word mostly. One that is there now may be gone
    /// when the next command arrives.
    pub fn is_stale(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        let is_over = match self.poll_take_in(&mut context) {
            Poll::Ready(Ok(TakenIn(outcome))) => outcome.is_err(),
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        };
        // What the poll had no time for, or has only asked the kernel for, the kernel knows.
        is_over || self.has_begun_packet() || self.stream.watch().look() != PeerState::There
    }

    /// Sends what TLS answers to the bytes that were taken in.
    async fn end_receive(
        &mut self,
        received: Result<TakenIn, Disconnect>,
    ) -> Result<(), Disconnect> {
        let TakenIn(outcome) = received?;
        if self.channel.has_tls() && !self.channel.is_handshaking() {
            let records = self.channel.take_tls_records();
            self.send(records).await?;
        }
        outcome
    }

    fn take_in(&mut self, bytes: &ReceivedBytes) -> Result<(), Disconnect> {
        if bytes.is_empty() {
            return Err(Disconnect::PeerClosed);
        }
        self.moved().received_bytes.add(stdx::to_u64(bytes.len()));
        Ok(self.channel.receive(bytes)?)
    }

    /// Waits for memory for the packet that is being received. Meanwhile nothing more of it is
    /// read: [`Disconnect::NoMemory`] if there is none within the read timeout.
    async fn hold(&mut self, needed: usize) -> Result<(), Disconnect> {
        let limit = Limit::after(self.read_timeout);
        let (share, alarm) = (&mut self.channel.share, &mut self.alarm);
        let mut place = share.wait_place();
        poll_fn(|context| {
            if share.poll_hold(needed, &mut place, context).is_ready() {
                return Poll::Ready(Ok(()));
            }
            let waited = alarm.poll_until(limit.0, context);
            waited.map(|()| Err(Disconnect::NoMemory))
        })
        .await
    }

    fn moved(&self) -> &Moved {
        self.channel.resources.traffic().with(self.peer_role)
    }

    /// Sends what was written; [`Disconnect::WriteTimeout`] if the peer takes nothing of it for so
    /// long. A future of this or of another function that sends is polled to its end: if it is
    /// dropped before, later sends fail with [`Disconnect::Engaged`].
    pub async fn flush(&mut self) -> Result<(), Disconnect> {
        loop {
            let is_last = self.long_packet_bytes() == 0;
            self.flush_piece().await?;
            if is_last {
                return Ok(());
            }
        }
    }

    /// As [`Link::flush`], of one piece if there are long packets.
    pub async fn flush_piece(&mut self) -> Result<(), Disconnect> {
        let bytes = self.channel.seal()?;
        self.send(bytes).await
    }

    /// As [`Link::flush`], but a reply that fits into the socket is not waited for.
    pub async fn post(&mut self) -> Result<(), Disconnect> {
        if self.is_sending {
            return Err(Disconnect::Engaged);
        }
        let Some(bytes) = self.channel.seal_plain() else {
            while self.long_packet_bytes() != 0 {
                Box::pin(self.flush_piece()).await?;
            }
            let bytes = self.channel.seal()?;
            return self.send_by(bytes, SendMode::Post).await;
        };
        let count = stdx::to_u64(bytes.len());
        match self.stream.try_post(bytes) {
            Ok(()) => {
                self.moved().sent_bytes.add(count);
                Ok(())
            }
            Err(bytes) => self.send_by(bytes, SendMode::Post).await,
        }
    }

    /// As [`Link::post`], of the replies that are whole.
    pub async fn post_replies(&mut self) -> Result<(), Disconnect> {
        let bytes = self.channel.seal_replies()?;
        self.send_by(bytes, SendMode::Post).await
    }

    /// Sends bytes, if there are any, and gives their buffer back to the pool.
    pub async fn send(&mut self, bytes: Vec<u8>) -> Result<(), Disconnect> {
        self.send_by(bytes, SendMode::Wait).await
    }

    async fn send_by(&mut self, bytes: Vec<u8>, mode: SendMode) -> Result<(), Disconnect> {
        if self.is_sending {
            return Err(Disconnect::Engaged);
        }
        if bytes.is_empty() && (mode == SendMode::Post || !self.stream.is_posting()) {
            self.channel.resources.give_buffer(bytes);
            return Ok(());
        }
        self.moved().sent_bytes.add(stdx::to_u64(bytes.len()));
        self.is_sending = true;
        let mut unsent = Some(bytes);
        let (stream, alarm) = (&mut self.stream, &mut self.alarm);
        let write_timeout = self.write_timeout;
        let sent = poll_fn(|context| {
            if let Poll::Ready(sent) = stream.poll_send_by(&mut unsent, mode, context) {
                return Poll::Ready(sent.map_err(Disconnect::from));
            }
            // Its own send, or the posted one that it waits for.
            let Some(since) = stream.stalled_since() else {
                return Poll::Pending;
            };
            alarm
                .poll_until(since + write_timeout, context)
                .map(|()| Err(Disconnect::WriteTimeout))
        });
        let sent = sent.await;
        self.is_sending = false;
        if let Some(buffer) = sent? {
            self.channel.resources.give_buffer(buffer);
        }
        Ok(())
    }

    /// Puts TLS under the packets and shakes hands until `limit`, which stands still while
    /// something is sent. A failure's alert is sent to the peer.
    pub async fn start_tls(&mut self, end: TlsEnd, limit: &mut Limit) -> Result<(), Disconnect> {
        let mut outcome = self.channel.start_tls(end).map_err(Disconnect::from);
        loop {
            let records = self.channel.take_tls_records();
            let began = SystemClock.now();
            self.send(records).await?;
            limit.put_off(SystemClock.now().since(began));
            outcome?;
            if !self.channel.is_handshaking() {
                return Ok(());
            }
            outcome = self.receive(*limit).await;
        }
    }

    /// Reads and drops a packet that is too large, of which `frame_bytes` with the header are left
    /// in its present frame: a connection that is closed with bytes unread is reset, and the
    /// client would never see the error. Counts the frames.
    pub async fn discard_packet(
        &mut self,
        mut frame_bytes: usize,
        frames: &mut u8,
        limit: Limit,
    ) -> Result<(), Disconnect> {
        let mut total = 0;
        loop {
            let is_last = frame_bytes < FRAME_BYTES_MAX + HEADER_BYTES;
            total += frame_bytes;
            while frame_bytes > 0 {
                frame_bytes -= self.channel.discard(frame_bytes)?;
                if frame_bytes > 0 {
                    self.receive(limit).await?;
                }
            }
            if is_last || total > DISCARD_BYTES_MAX {
                return Ok(());
            }
            *frames = frames.wrapping_add(1);
            frame_bytes = loop {
                if let Some(length) = self.channel.peek_frame_bytes()? {
                    break length + HEADER_BYTES;
                }
                self.receive(limit).await?;
            };
        }
    }

    /// Sends the alert that TLS has for an error, if it has one.
    pub async fn send_alert(&mut self, error: ChannelError) -> Disconnect {
        let alert = self.channel.take_tls_records();
        // The connection is over whether the alert arrives or not.
        let _ = self.send(alert).await;
        Disconnect::Protocol(error)
    }

    /// Sends what was written and ends the connection in order. Harmless once it has been ended.
    pub async fn close(&mut self) -> Result<(), Disconnect> {
        self.flush().await?;
        // What cannot be sent any more does not matter any more.
        let farewell = self.channel.close();
        let _ = self.send(farewell).await;
        let _ = self.stream.shut_down_sending();
        Ok(())
    }
}
