//! [`Channel`]: packets of one connection, through TLS and compression; no I/O.
//!
//! ```text
//! received bytes --TLS--> [compressed] --decompress--> [plain] --deframe--> packet
//! written packets ------------------> compress --TLS--> bytes to send
//! ```
//!
//! Layers that a connection does not have are skipped without a copy. Received bytes are copied
//! once, out of the worker's ring of receive buffers into `plain`; a packet that lies there whole
//! is handed out with the buffer itself. The buffers come from the worker's pool and go back when
//! they are empty and the client is waited for ([`Channel::rest`]).
//!
//! Compression and encryption give way between pieces: a row of many MiB is the others' time, too.
//! One received piece, of 16 MiB at the most, is decompressed in one go.
//!
//! Bounds: `plain` holds at most one packet of the allowed size and one piece (without compression:
//! one receive buffer), `compressed` at most one piece and one receive buffer; nothing is received
//! before the packets that are there have been taken.

use std::rc::Rc;

use runtime::WayGiven;
use thiserror::Error;
use wire::{
    COMPRESSED_HEADER_BYTES, CompressionError, CompressionMethod, DecompressStep, Deframer,
    FRAME_BYTES_MAX, FrameError, HEADER_BYTES, Located, LongPacket, Malformed, PacketWriter,
    ProxyBytes, ProxyHeader,
};

use crate::frame_walk::{FrameWalk, InnerIds, Stop, Verdict};
use crate::input::Input;
use crate::packet_bytes::PacketBytes;
use crate::packet_memory::{PacketShare, UNCOUNTED_BYTES};
use crate::pieces::Pieces;
use crate::resources::Resources;
use crate::tls::{Tls, TlsEnd};

mod detached;
mod onlooker;

pub(crate) use detached::DetachedChannel;
pub use onlooker::Onlooker;

/// Why a connection cannot go on.
#[derive(Debug, Error)]
pub enum ChannelError {
    /// Frames are out of order, or too much for `max_allowed_packet`.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// Compressed packets are broken.
    #[error(transparent)]
    Compression(#[from] CompressionError),
    /// TLS failed.
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    /// Memory for compression is not to be had.
    #[error("a reply could not be compressed")]
    Compress(#[source] std::io::Error),
    /// The server stops while it compresses or encrypts.
    #[error("the server stops")]
    Stopping,
}

/// What is passed on is posted at the latest when so much of it waits to be sent.
pub const HIGH_WATER_BYTES: usize = 64 << 10;

/// What is encrypted before others may go on: some 100 us of work, and whole records.
const ENCRYPTED_BYTES_MAX: usize = 128 << 10;

/// Where a packet's header has its sequence id, compressed or not.
const SEQUENCE_AT: usize = 3;

/// The length that a frame's header announces, behind it; 0 while that is not there.
fn announced_bytes(input: &[u8]) -> usize {
    match *input {
        [a, b, c, _, ..] => usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16,
        _ => 0,
    }
}

/// Agreed compression and the ids of its packets.
#[derive(Debug)]
struct Compression {
    method: CompressionMethod,
    inner_ids: InnerIds,
    /// Id of the next compressed packet of the client. It is followed, not checked: clients differ
    /// in when they start again at 0, and TCP keeps the order.
    in_sequence: u8,
    /// Id of the next compressed packet to the client.
    out_sequence: u8,
    /// Received and not decompressed.
    compressed: Input,
    /// Compressed replies to earlier commands, which are sent with the next.
    staged: Vec<u8>,
}

/// Packets of one connection.
#[derive(Debug)]
pub struct Channel {
    pub(crate) resources: Rc<Resources>,
    tls: Option<Box<Tls>>,
    compression: Option<Box<Compression>>,
    plain: Input,
    deframer: Deframer,
    /// Long packets, and what was written before the last of them.
    pieces: Pieces,
    /// What was written after them.
    out: PacketWriter,
    /// How many bytes at the front of `out` belong to replies that are whole: never more than it
    /// has, so whoever takes from the front sets this to zero first.
    reply_bytes: usize,
    /// Memory for the packet that is being received.
    pub(crate) share: PacketShare,
    onlooker: Option<Box<dyn Onlooker>>,
}

impl Channel {
    /// Packets of at most `packet_bytes_max` bytes, without TLS and compression.
    pub fn new(resources: Rc<Resources>, packet_bytes_max: usize) -> Channel {
        Channel {
            share: resources.packet_memory().share(),
            resources,
            tls: None,
            compression: None,
            plain: Input::default(),
            deframer: Deframer::new(packet_bytes_max),
            pieces: Pieces::default(),
            out: PacketWriter::new(),
            reply_bytes: 0,
            onlooker: None,
        }
    }

    /// Whether neither a byte to be sent nor one to be understood waits here.
    pub(crate) fn is_empty(&self) -> bool {
        !self.has_input() && self.pending_bytes() == 0 && !self.is_handshaking()
    }

    /// Whether decrypted bytes wait to be understood.
    fn has_input(&self) -> bool {
        let compression = self.compression.as_ref();
        compression.is_some_and(|it| !it.compressed.bytes.is_empty())
            || !self.plain.bytes.is_empty()
            || self.deframer.joined_bytes() != 0
    }

    /// Whether the peer has begun to send a packet that nothing has taken yet.
    pub(crate) fn has_begun_packet(&self) -> bool {
        self.has_input() || self.tls.as_ref().is_some_and(|tls| tls.has_begun_record())
    }

    /// Where replies are written.
    #[inline]
    pub fn out(&mut self) -> &mut PacketWriter {
        if !self.out.has_buffer() {
            self.out.reuse(self.resources.take_buffer());
        }
        &mut self.out
    }

    /// How much of replies waits to be sent.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.out.pending_bytes() + self.staged_bytes() + self.pieces.bytes()
    }

    /// As [`Channel::pending_bytes`], of replies that are whole and are not behind a long packet.
    pub(crate) fn pending_reply_bytes(&self) -> usize {
        match self.pieces.is_empty() {
            true => self.reply_bytes + self.staged_bytes(),
            false => 0,
        }
    }

    /// What long packets that wait to be sent take of memory.
    pub(crate) fn long_packet_bytes(&self) -> usize {
        self.pieces.bytes()
    }

    /// Begins a packet that is too long for `out`.
    pub(crate) fn begin_long_packet(&mut self) -> LongPacket {
        LongPacket::new(self.out.sequence())
    }

    /// Writes a long packet behind what was written. Nothing was written since it was begun.
    pub(crate) fn append_long_packet(&mut self, packet: LongPacket) {
        let packet = packet.finish();
        self.set_output_aside();
        self.pieces.append(packet.pieces);
        self.out.set_sequence(packet.sequence);
    }

    /// Lets what was written so far wait as long packets do.
    pub(crate) fn set_output_aside(&mut self) {
        if self.out.pending_bytes() != 0 {
            self.pieces.push(self.out.take());
        }
        self.reply_bytes = 0;
    }

    fn staged_bytes(&self) -> usize {
        let compression = self.compression.as_ref();
        compression.map_or(0, |compression| compression.staged.len())
    }

    /// What was written so far are whole replies.
    #[inline]
    pub(crate) fn end_reply(&mut self) {
        self.reply_bytes = self.out.pending_bytes();
    }

    pub(crate) fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether the TLS handshake goes on.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// Whether nothing more can be received: the peer has ended TLS, though not the connection.
    pub(crate) fn has_peer_ended(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.has_peer_ended())
    }

    pub(crate) fn set_packet_bytes_max(&mut self, packet_bytes_max: usize) {
        self.deframer.set_payload_bytes_max(packet_bytes_max);
    }

    /// Puts TLS under the packets; what has been received and not taken belongs to it.
    pub fn start_tls(&mut self, end: TlsEnd) -> Result<(), ChannelError> {
        let mut tls = Box::new(Tls::new(end)?);
        let received = self.plain.rest().to_vec();
        self.plain.consume(received.len());
        let fed = tls.receive(&received, self.plain.appendable(&self.resources));
        self.tls = Some(tls);
        Ok(fed?)
    }

    /// Takes the header of the PROXY protocol that the connection begins with, if it is whole.
    pub(crate) fn take_proxy_header(&mut self) -> Result<ProxyBytes, Malformed> {
        let found = ProxyHeader::decode(self.plain.rest())?;
        if let ProxyBytes::Whole { used, .. } = found {
            self.plain.consume(used);
        }
        Ok(found)
    }

    /// Compresses from now on, in both directions.
    pub fn start_compression(&mut self, method: CompressionMethod, inner_ids: InnerIds) {
        self.compression = Some(Box::new(Compression {
            method,
            inner_ids,
            in_sequence: 0,
            out_sequence: 0,
            compressed: std::mem::take(&mut self.plain),
            staged: Vec::new(),
        }));
    }

    /// Starts the sequence ids again: the next packet is a command.
    pub fn expect_command(&mut self) {
        self.deframer.set_sequence(0);
    }

    /// The next packet has this sequence id.
    pub fn expect_sequence(&mut self, id: u8) {
        self.deframer.set_sequence(id);
    }

    /// The client's next packet goes on with the ids of what was written.
    pub fn follow_sequence(&mut self) {
        self.deframer.set_sequence(self.out.sequence());
    }

    /// An error that answers a packet of `frames` frames which could not be taken.
    pub(crate) fn begin_error_reply(&mut self, frames: u8) {
        self.out
            .set_sequence(self.deframer.sequence().wrapping_add(frames));
        if let Some(compression) = &mut self.compression {
            compression.out_sequence = compression.in_sequence;
        }
    }

    /// Gives buffers back to the worker while the client is waited for.
    pub(crate) fn rest(&mut self) {
        if self.plain.bytes.is_empty() && self.deframer.joined_bytes() == 0 {
            let compression = self.compression.as_ref();
            if compression.is_none_or(|it| it.compressed.bytes.is_empty()) {
                self.share.clear();
            }
        }
        self.plain.rest_if_empty(&self.resources);
        if let Some(compression) = &mut self.compression {
            compression.compressed.rest_if_empty(&self.resources);
        }
        if self.out.pending_bytes() == 0 {
            self.resources.give_buffer(self.out.take());
        }
        self.deframer.release();
    }

    /// How much memory the packet needs that is being received, as far as it has been announced.
    pub(crate) fn needed_bytes(&self) -> usize {
        let compressed = self.compression.as_ref();
        let compressed = compressed.map_or(0, |compression| {
            let rest = compression.compressed.rest();
            let announced = announced_bytes(rest) + COMPRESSED_HEADER_BYTES;
            announced.max(rest.len())
        });
        let plain = self.plain.rest();
        let plain_bytes = (announced_bytes(plain) + HEADER_BYTES).max(plain.len());
        compressed + plain_bytes + self.deframer.joined_bytes()
    }

    /// As [`Channel::needed_bytes`], of a packet that is passed on: a piece that comes compressed
    /// is collected, and then decompressed.
    pub(crate) fn needed_piece_bytes(&self) -> usize {
        let Some(compression) = &self.compression else {
            return 0;
        };
        let rest = compression.compressed.rest();
        let plain = rest.get(HEADER_BYTES..).map_or(0, announced_bytes);
        announced_bytes(rest).max(rest.len()) + plain + COMPRESSED_HEADER_BYTES
    }

    /// Takes received bytes.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        let input = match &mut self.compression {
            Some(compression) => &mut compression.compressed,
            None => &mut self.plain,
        };
        let announced = announced_bytes(input.rest());
        let buffer = input.appendable(&self.resources);
        if UNCOUNTED_BYTES < buffer.len() {
            // By a quarter: a buffer that doubles would take twice the packet.
            let wanted = (buffer.len() / 4).min(announced);
            if buffer.capacity() - buffer.len() < bytes.len() {
                buffer.reserve_exact(wanted.max(bytes.len()));
            }
        }
        match &mut self.tls {
            Some(tls) => tls.receive(bytes, buffer)?,
            None => buffer.extend_from_slice(bytes),
        }
        Ok(())
    }

    /// Takes the next packet, if it is whole.
    pub fn next_packet(&mut self) -> Result<Option<PacketBytes>, ChannelError> {
        loop {
            self.follow_inner_id();
            match self.deframer.locate(self.plain.rest())? {
                Located::InPlace { start, end } => {
                    self.begin_reply()?;
                    return Ok(Some(self.take_in_place(start, end)));
                }
                Located::Joined { used } => {
                    self.begin_reply()?;
                    self.plain.consume(used);
                    let buffer = self.deframer.take_joined();
                    let payload = 0..buffer.len();
                    let resources = Rc::clone(&self.resources);
                    return Ok(Some(PacketBytes {
                        resources,
                        buffer,
                        payload,
                        _share: self.share.split(),
                    }));
                }
                Located::Incomplete { used, .. } => {
                    self.plain.consume(used);
                    if !self.decompress_piece()? {
                        return Ok(None);
                    }
                    give_way()?;
                }
            }
        }
    }

    /// Expects the id that the packet at the front has, if ids are followed.
    fn follow_inner_id(&mut self) {
        if self.inner_ids() == InnerIds::Followed
            && self.deframer.joined_bytes() == 0
            && let Some(id) = self.plain.rest().get(SEQUENCE_AT)
        {
            self.deframer.set_sequence(*id);
        }
    }

    fn inner_ids(&self) -> InnerIds {
        let compression = self.compression.as_ref();
        compression.map_or(InnerIds::Checked, |compression| compression.inner_ids)
    }

    /// What is written next is a command: its ids start at 0.
    pub fn begin_command(&mut self) -> Result<(), ChannelError> {
        self.stage(self.out.pending_bytes())?;
        self.out.set_sequence(0);
        if let Some(compression) = &mut self.compression {
            compression.out_sequence = 0;
        }
        Ok(())
    }

    /// A reply goes on with the sequence ids of the packet that it answers.
    pub(crate) fn begin_reply(&mut self) -> Result<(), ChannelError> {
        self.stage(self.out.pending_bytes())?;
        self.end_reply();
        self.out.set_sequence(self.deframer.sequence());
        if let Some(compression) = &mut self.compression {
            compression.out_sequence = compression.in_sequence;
        }
        Ok(())
    }

    /// If there is compression, compresses long packets and then the first `count` bytes that were
    /// written. These hold all whole replies, because the ids of the next reply start again at 0.
    fn stage(&mut self, count: usize) -> Result<(), ChannelError> {
        if self.compression.is_none() {
            self.reply_bytes = 0;
            return Ok(());
        }
        while let Some(piece) = self.pieces.take_first() {
            self.compress(&piece)?;
        }
        self.reply_bytes = 0;
        if count == 0 {
            return Ok(());
        }
        let mut out = std::mem::take(&mut self.out);
        let outcome = self.compress(out.as_bytes().get(..count).unwrap_or_default());
        out.forget_front(count);
        self.out = out;
        outcome
    }

    /// Compresses bytes behind those that were compressed before. There is compression.
    fn compress(&mut self, mut rest: &[u8]) -> Result<(), ChannelError> {
        let Some(compression) = &mut self.compression else {
            unreachable!("asked for by those that have it")
        };
        if compression.staged.capacity() == 0 {
            compression.staged = self.resources.take_buffer();
        }
        let (method, staged) = (compression.method, &mut compression.staged);
        let ids = &mut compression.out_sequence;
        while !rest.is_empty() {
            // Borrowed for a piece at a time: others compress while this one gives way.
            let mut compressor = self.resources.compressor().borrow_mut();
            let used = compressor.compress_piece(method, rest, ids, staged);
            drop(compressor);
            rest = rest
                .get(used.map_err(ChannelError::Compress)?..)
                .unwrap_or_default();
            give_way()?;
        }
        Ok(())
    }

    /// First byte of the command at the front, if that much of it has come; 0 if it is empty.
    pub(crate) fn peek_command(&mut self) -> Result<Option<u8>, ChannelError> {
        if !self.has_peeked(1)? {
            return Ok(None);
        }
        let rest = self.plain.rest();
        let is_empty = announced_bytes(rest) == 0;
        let first = rest.get(HEADER_BYTES).filter(|_| !is_empty);
        Ok(Some(first.copied().unwrap_or(0)))
    }

    /// What has come of the body of the command at the front, and whether that is all of it.
    pub(crate) fn peeked_body(&self) -> (&[u8], bool) {
        let rest = self.plain.rest();
        let length = announced_bytes(rest);
        let payload = rest.get(HEADER_BYTES..).unwrap_or_default();
        let is_whole = length <= payload.len() && length < FRAME_BYTES_MAX;
        let payload = payload.get(..length).unwrap_or(payload);
        (payload.get(1..).unwrap_or_default(), is_whole)
    }

    /// Whether so many bytes of the command at the front have come, or all of its first frame.
    pub(crate) fn has_peeked(&mut self, bytes: usize) -> Result<bool, ChannelError> {
        loop {
            let rest = self.plain.rest();
            if HEADER_BYTES + bytes.min(announced_bytes(rest)) <= rest.len() {
                return Ok(true);
            }
            if !self.decompress_piece()? {
                return Ok(false);
            }
            give_way()?;
        }
    }

    /// Bytes of the command at the front, or of its first frame.
    pub(crate) fn peeked_bytes(&self) -> usize {
        announced_bytes(self.plain.rest())
    }

    /// Writes over bytes of the body that [`Channel::peeked_body`] has shown.
    pub(crate) fn overwrite_peeked(&mut self, at: usize, bytes: &[u8]) {
        let begin = HEADER_BYTES + 1 + at;
        let shown = self.plain.rest_mut().get_mut(begin..begin + bytes.len());
        shown.expect("it was shown").copy_from_slice(bytes);
    }

    /// Whether the beginning of a command is at the front.
    pub(crate) fn has_command(&self) -> bool {
        let rest = self.plain.rest();
        HEADER_BYTES < rest.len() || HEADER_BYTES == rest.len() && announced_bytes(rest) == 0
    }

    /// Passes received bytes on to `to` as far as `walk` and `judge` let them, until `to` holds
    /// enough to be sent.
    pub(crate) fn pass_on<E: From<FrameError> + From<ChannelError>>(
        &mut self,
        to: &mut Channel,
        walk: &mut FrameWalk,
        mut judge: impl FnMut(usize, &[u8]) -> Result<Verdict, E>,
    ) -> Result<Stop, E> {
        walk.inner_ids = self.inner_ids();
        loop {
            let (count, stop) = walk.pass(self.plain.rest_mut(), &mut judge)?;
            self.hand_over(count, to);
            if stop != Stop::Starved {
                return Ok(stop);
            }
            if HIGH_WATER_BYTES <= to.pending_bytes() {
                return Ok(Stop::Full);
            }
            if self.compression.is_none() || !self.decompress_piece()? {
                return Ok(Stop::Starved);
            }
            give_way()?;
        }
    }

    /// Moves the first `count` plain bytes behind what `to` is to send: their whole buffer if that
    /// can be, else as a copy.
    #[inline]
    fn hand_over(&mut self, count: usize, to: &mut Channel) {
        if count != 0 {
            self.hand_over_some(count, to);
        }
    }

    fn hand_over_some(&mut self, count: usize, to: &mut Channel) {
        let rest = self.plain.rest();
        let behind = rest.len() - count;
        if self.plain.used != 0 || count < behind || to.out.pending_bytes() != 0 {
            let passed = rest.get(..count).unwrap_or_default();
            to.out().append_frames(passed);
            self.plain.consume(count);
            return;
        }
        let mut others = Vec::new();
        if behind != 0 {
            others = self.resources.take_buffer();
            others.extend_from_slice(rest.get(count..).unwrap_or_default());
        }
        let mut buffer = std::mem::replace(&mut self.plain.bytes, others);
        buffer.truncate(count);
        self.resources.give_buffer(to.out.replace_frames(buffer));
    }

    /// Payload of the packet at the front, as far as it is there.
    pub(crate) fn front_payload(&self) -> &[u8] {
        let rest = self.plain.rest();
        let end = HEADER_BYTES + announced_bytes(rest);
        rest.get(HEADER_BYTES..end.min(rest.len()))
            .unwrap_or_default()
    }

    /// Drops the packet at the front, which is there as a whole.
    pub(crate) fn skip_front_packet(&mut self) {
        let count = HEADER_BYTES + announced_bytes(self.plain.rest());
        self.plain.consume(count);
    }

    /// Hands out the packet at `start..end` of the plain bytes: with their buffer if little else
    /// is in it, else as a copy, whichever moves fewer bytes.
    fn take_in_place(&mut self, start: usize, end: usize) -> PacketBytes {
        let resources = Rc::clone(&self.resources);
        let rest = self.plain.rest();
        let behind = rest.len() - end;
        if behind > end - start {
            let mut buffer = resources.take_buffer();
            buffer.extend_from_slice(rest.get(start..end).unwrap_or_default());
            self.plain.consume(end);
            return PacketBytes {
                resources,
                payload: 0..end - start,
                buffer,
                _share: self.share.split(),
            };
        }
        let mut others = if behind == 0 {
            Vec::new()
        } else {
            resources.take_buffer()
        };
        others.extend_from_slice(rest.get(end..).unwrap_or_default());
        let payload = self.plain.used + start..self.plain.used + end;
        let buffer = std::mem::replace(&mut self.plain.bytes, others);
        self.plain.used = 0;
        PacketBytes {
            resources,
            buffer,
            payload,
            _share: self.share.split(),
        }
    }

    /// Decompresses one piece into the plain bytes, if there is compression and a whole piece.
    fn decompress_piece(&mut self) -> Result<bool, ChannelError> {
        let Some(compression) = &mut self.compression else {
            return Ok(false);
        };
        let rest = compression.compressed.rest();
        let Some(sequence) = rest.get(SEQUENCE_AT) else {
            return Ok(false);
        };
        compression.in_sequence = *sequence;
        let step = self.resources.decompressor().borrow_mut().next(
            compression.method,
            compression.compressed.rest(),
            &mut compression.in_sequence,
            self.plain.appendable(&self.resources),
        )?;
        match step {
            DecompressStep::Incomplete { .. } => Ok(false),
            DecompressStep::Piece { used } => {
                compression.compressed.consume(used);
                Ok(true)
            }
        }
    }

    /// As [`Channel::seal`], if there is no TLS, no compression and no long packet: then it cannot
    /// fail, and is all.
    #[inline]
    pub(crate) fn seal_plain(&mut self) -> Option<Vec<u8>> {
        if self.tls.is_some() || self.compression.is_some() || !self.pieces.is_empty() {
            return None;
        }
        self.reply_bytes = 0;
        Some(self.out.take())
    }

    /// The bytes to send for what was written so far; empty if there is nothing. Of long packets
    /// it is one piece at a time. Give the buffer to the pool when it is sent.
    pub fn seal(&mut self) -> Result<Vec<u8>, ChannelError> {
        match self.pieces.take_first() {
            Some(piece) => self.seal_piece(piece),
            None => self.seal_front(self.out.pending_bytes()),
        }
    }

    fn seal_piece(&mut self, piece: Vec<u8>) -> Result<Vec<u8>, ChannelError> {
        if self.compression.is_none() {
            return self.seal_bytes(piece);
        }
        self.compress(&piece)?;
        drop(piece);
        let staged = self.compression.as_mut().map(|it| &mut it.staged);
        let bytes = staged.map(std::mem::take).unwrap_or_default();
        self.seal_bytes(bytes)
    }

    /// As [`Channel::seal`], of the replies that are whole: what has been written of one that is
    /// not waits on.
    pub(crate) fn seal_replies(&mut self) -> Result<Vec<u8>, ChannelError> {
        self.seal_front(self.reply_bytes)
    }

    /// The bytes to send for the first `count` that were written.
    fn seal_front(&mut self, count: usize) -> Result<Vec<u8>, ChannelError> {
        self.stage(count)?;
        let bytes = match &mut self.compression {
            Some(compression) => std::mem::take(&mut compression.staged),
            None => self.take_front(count),
        };
        self.seal_bytes(bytes)
    }

    /// Encrypts bytes that are to be sent, if there is TLS.
    fn seal_bytes(&mut self, bytes: Vec<u8>) -> Result<Vec<u8>, ChannelError> {
        let Some(tls) = &mut self.tls else {
            return Ok(bytes);
        };
        let input = match &mut self.compression {
            Some(compression) => &mut compression.compressed,
            None => &mut self.plain,
        };
        for piece in bytes.chunks(ENCRYPTED_BYTES_MAX) {
            tls.send(piece, input.appendable(&self.resources))?;
            give_way()?;
        }
        self.resources.give_buffer(bytes);
        Ok(tls.take_outgoing())
    }

    /// Takes the first `count` bytes that were written: with their buffer if they are all, else
    /// in one of the pool, since the rest may be much and keeps its room.
    fn take_front(&mut self, count: usize) -> Vec<u8> {
        if count == self.out.pending_bytes() {
            return self.out.take();
        }
        let mut front = self.resources.take_buffer();
        front.extend_from_slice(self.out.as_bytes().get(..count).unwrap_or_default());
        self.out.forget_front(count);
        front
    }

    /// Takes up to `count` bytes that are of no interest off the plain bytes; answers how many.
    pub(crate) fn discard(&mut self, count: usize) -> Result<usize, ChannelError> {
        let mut discarded = 0;
        loop {
            let step = self.plain.rest().len().min(count - discarded);
            self.plain.consume(step);
            discarded += step;
            if discarded == count || !self.decompress_piece()? {
                return Ok(discarded);
            }
            give_way()?;
        }
    }

    /// The length that the frame at the front announces, if its header is there.
    pub(crate) fn peek_frame_bytes(&mut self) -> Result<Option<usize>, ChannelError> {
        loop {
            if HEADER_BYTES <= self.plain.rest().len() {
                return Ok(Some(announced_bytes(self.plain.rest())));
            }
            if !self.decompress_piece()? {
                return Ok(None);
            }
            give_way()?;
        }
    }

    /// What TLS wants to be sent by itself: handshake records and alerts.
    pub fn take_tls_records(&mut self) -> Vec<u8> {
        self.tls
            .as_mut()
            .map(|tls| tls.take_outgoing())
            .unwrap_or_default()
    }

    /// The last bytes of a connection: TLS' word that it ends.
    pub(crate) fn close(&mut self) -> Vec<u8> {
        let Some(tls) = self.tls.as_mut().filter(|tls| !tls.is_handshaking()) else {
            return Vec::new();
        };
        // A failure leaves nothing to say; the connection ends either way.
        let _ = tls.close();
        tls.take_outgoing()
    }
}

/// Lets other tasks run, if this one has run long. Nothing of the worker's is borrowed.
pub fn give_way() -> Result<(), ChannelError> {
    match runtime::give_way() {
        WayGiven::Yes => Ok(()),
        WayGiven::Ending => Err(ChannelError::Stopping),
    }
}
