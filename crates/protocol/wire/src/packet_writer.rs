//! [`PacketWriter`]: appends whole packets to one output buffer.
//!
//! A packet consists of frames, each with a four-byte header (length in three bytes, sequence id in
//! one) and up to 2^24 - 1 bytes of payload. A payload of 2^24 - 1 bytes or more continues in the
//! next frame, and ends with the first frame that is shorter, which may be empty.
//!
//! [`PacketWriter::begin`] leaves room for a header, the [`Packet`] appends its payload after it,
//! [`Packet::finish`] writes the header. A packet that is dropped unfinished leaves no trace, so an
//! error in the middle of a row needs no care. Payloads of 16 MiB and more are split in place when
//! they are finished, which moves their bytes once; all others are written in place.
//!
//! Invariant (I1): unless a [`Packet`] is live, the buffer holds whole frames only.

/// Bytes of a frame's header.
pub const HEADER_BYTES: usize = 4;

/// Most payload bytes of one frame.
pub const FRAME_BYTES_MAX: usize = 0xFF_FFFF;

/// Packets that wait to be sent, and the sequence id of the next one.
#[derive(Debug, Default)]
pub struct PacketWriter {
    /// Whole frames, oldest first (I1).
    bytes: Vec<u8>,
    /// Sequence id of the next frame; wraps at 256.
    sequence: u8,
}

impl PacketWriter {
    /// A writer with an empty buffer.
    pub fn new() -> PacketWriter {
        PacketWriter::default()
    }

    /// A writer that appends to `buffer`, which must be empty: only its capacity is reused.
    pub fn with_buffer(buffer: Vec<u8>) -> PacketWriter {
        assert!(buffer.is_empty(), "a reused buffer starts empty");
        PacketWriter {
            bytes: buffer,
            sequence: 0,
        }
    }

    /// Sets the sequence id of the next frame: one more than that of the last frame received.
    pub fn set_sequence(&mut self, sequence: u8) {
        self.sequence = sequence;
    }

    /// The sequence id of the next frame.
    pub fn sequence(&self) -> u8 {
        self.sequence
    }

    /// The bytes that wait to be sent.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many bytes wait to be sent.
    pub fn pending_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is a buffer, even an empty one, so that writing need not allocate one.
    pub fn has_buffer(&self) -> bool {
        self.bytes.capacity() > 0
    }

    /// Takes the buffer with the waiting bytes, for sending; return it with
    /// [`PacketWriter::reuse`].
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Returns a buffer after it was sent, so that its memory is reused. It is dropped if packets
    /// were written meanwhile.
    pub fn reuse(&mut self, mut buffer: Vec<u8>) {
        if self.bytes.is_empty() && buffer.capacity() > self.bytes.capacity() {
            buffer.clear();
            self.bytes = buffer;
        }
    }

    /// Appends frames, or parts of frames, that another has written. What is written next has to
    /// wait until their last packet is whole (I1).
    pub fn append_frames(&mut self, frames: &[u8]) {
        self.bytes.extend_from_slice(frames);
    }

    /// As [`PacketWriter::append_frames`] where nothing waits: takes their buffer in place of its
    /// own, which it returns.
    pub fn replace_frames(&mut self, frames: Vec<u8>) -> Vec<u8> {
        assert!(self.bytes.is_empty(), "no packet that waits is lost");
        std::mem::replace(&mut self.bytes, frames)
    }

    /// Drops the first `count` waiting bytes, which must be whole packets, or all if there are
    /// fewer. The bytes after them move to the front.
    pub fn forget_front(&mut self, count: usize) {
        self.bytes.drain(..count.min(self.bytes.len()));
    }

    /// Drops all waiting bytes.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Starts a packet.
    #[inline]
    pub fn begin(&mut self) -> Packet<'_> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; HEADER_BYTES]);
        Packet {
            writer: self,
            start,
            finished: false,
        }
    }

    /// Appends a packet whose payload is `payload`.
    pub fn packet(&mut self, payload: &[u8]) {
        let mut packet = self.begin();
        packet.bytes(payload);
        packet.finish();
    }

    #[inline]
    fn finish_packet(&mut self, start: usize) {
        let payload_bytes = self.bytes.len() - start - HEADER_BYTES;
        if payload_bytes < FRAME_BYTES_MAX {
            self.write_header(start, payload_bytes);
        } else {
            self.split_large(start, payload_bytes);
        }
    }

    #[inline]
    fn write_header(&mut self, at: usize, payload_bytes: usize) {
        assert!(
            payload_bytes <= FRAME_BYTES_MAX,
            "a frame's length has three bytes"
        );
        let [a, b, c, ..] = payload_bytes.to_le_bytes();
        let header = self.bytes.get_mut(at..at + HEADER_BYTES);
        header
            .expect("begin left room")
            .copy_from_slice(&[a, b, c, self.sequence]);
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// Moves the payload apart, last frame first, to make room for the headers in between.
    fn split_large(&mut self, start: usize, payload_bytes: usize) {
        let full_frames = payload_bytes / FRAME_BYTES_MAX;
        self.bytes
            .resize(self.bytes.len() + full_frames * HEADER_BYTES, 0);
        let payload_start = start + HEADER_BYTES;
        for frame in (1..=full_frames).rev() {
            let from = payload_start + frame * FRAME_BYTES_MAX;
            let count = FRAME_BYTES_MAX.min(payload_bytes - frame * FRAME_BYTES_MAX);
            self.bytes
                .copy_within(from..from + count, from + frame * HEADER_BYTES);
        }
        for frame in 0..=full_frames {
            let at = start + frame * (FRAME_BYTES_MAX + HEADER_BYTES);
            let count = FRAME_BYTES_MAX.min(payload_bytes - frame * FRAME_BYTES_MAX);
            self.write_header(at, count);
        }
    }
}

/// A packet that is being written. If it is dropped unfinished, it leaves no trace.
#[derive(Debug)]
pub struct Packet<'a> {
    writer: &'a mut PacketWriter,
    /// Where its header is.
    start: usize,
    finished: bool,
}

impl Packet<'_> {
    /// Writes the header; the packet is then among the waiting bytes.
    #[inline]
    pub fn finish(mut self) {
        self.writer.finish_packet(self.start);
        self.finished = true;
    }

    /// How many payload bytes there are so far.
    #[inline]
    pub fn payload_bytes(&self) -> usize {
        self.writer.bytes.len() - self.start - HEADER_BYTES
    }

    /// Appends bytes as they are.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.writer.bytes.extend_from_slice(bytes);
    }

    /// Appends one byte.
    #[inline]
    pub fn u8(&mut self, value: u8) {
        self.writer.bytes.push(value);
    }

    /// Appends two bytes.
    #[inline]
    pub fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    /// Appends the lower three bytes.
    #[inline]
    pub fn u24(&mut self, value: u32) {
        let [a, b, c, _] = value.to_le_bytes();
        self.bytes(&[a, b, c]);
    }

    /// Appends four bytes.
    #[inline]
    pub fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    /// Appends eight bytes.
    #[inline]
    pub fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    /// Appends a length-encoded integer.
    #[inline]
    pub fn lenenc(&mut self, value: u64) {
        let (array, count) = lenenc_array(value);
        self.bytes(array.get(..count).expect("at most nine bytes"));
    }

    /// Appends bytes after their length-encoded length.
    #[inline]
    pub fn lenenc_bytes(&mut self, bytes: &[u8]) {
        match u8::try_from(bytes.len()) {
            Ok(short @ 0..0xFB) => self.u8(short),
            Ok(_) | Err(_) => self.lenenc(len_u64(bytes.len())),
        }
        self.bytes(bytes);
    }

    /// Appends bytes and a zero byte. A zero byte inside ends what the receiver sees.
    pub fn nul_bytes(&mut self, bytes: &[u8]) {
        self.bytes(bytes);
        self.u8(0);
    }

    /// Appends `count` zero bytes.
    pub fn zeros(&mut self, count: usize) {
        let length = self.writer.bytes.len() + count;
        self.writer.bytes.resize(length, 0);
    }

    /// Appends what `write` appends to the buffer, after its length-encoded length. `write` may
    /// only append. Text of 251 bytes and more is moved once, to make room for a longer length.
    #[inline]
    pub fn lenenc_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let buffer = &mut self.writer.bytes;
        let at = buffer.len();
        buffer.push(0);
        write(buffer);
        let count = buffer
            .len()
            .checked_sub(at + 1)
            .expect("the closure only appends");
        match (u8::try_from(count), buffer.get_mut(at)) {
            (Ok(short @ 0..0xFB), Some(length)) => *length = short,
            _ => self.lengthen(at, count),
        }
    }

    /// Replaces the one length byte at `at` by a longer length-encoded `count`.
    #[cold]
    fn lengthen(&mut self, at: usize, count: usize) {
        let buffer = &mut self.writer.bytes;
        let (prefix, prefix_bytes) = lenenc_array(len_u64(count));
        buffer.resize(buffer.len() + prefix_bytes - 1, 0);
        buffer.copy_within(at + 1..at + 1 + count, at + prefix_bytes);
        let place = buffer
            .get_mut(at..at + prefix_bytes)
            .expect("the buffer has just grown");
        place.copy_from_slice(prefix.get(..prefix_bytes).expect("at most nine bytes"));
    }

    /// Overwrites the payload byte at `index`, which has been written before.
    #[inline]
    pub(crate) fn patch(&mut self, index: usize, update: impl FnOnce(u8) -> u8) {
        let at = self.start + HEADER_BYTES + index;
        let byte = self
            .writer
            .bytes
            .get_mut(at)
            .expect("only written bytes are patched");
        *byte = update(*byte);
    }
}

impl Drop for Packet<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.writer.bytes.truncate(self.start);
        }
    }
}

/// The length-encoded form of `value` and how many bytes of it count.
#[inline]
pub(crate) fn lenenc_array(value: u64) -> ([u8; 9], usize) {
    let [a, b, c, d, e, f, g, h] = value.to_le_bytes();
    match value {
        0..0xFB => ([a, 0, 0, 0, 0, 0, 0, 0, 0], 1),
        0xFB..0x1_0000 => ([0xFC, a, b, 0, 0, 0, 0, 0, 0], 3),
        0x1_0000..0x100_0000 => ([0xFD, a, b, c, 0, 0, 0, 0, 0], 4),
        0x100_0000.. => ([0xFE, a, b, c, d, e, f, g, h], 9),
    }
}

/// A length as it is written: lengths fit eight bytes on every machine of Plateau.
#[inline]
pub(crate) fn len_u64(length: usize) -> u64 {
    const { assert!(usize::BITS <= u64::BITS) };
    length as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_carry_length_and_sequence() {
        let mut out = PacketWriter::new();
        out.set_sequence(255);
        out.packet(b"abc");
        out.packet(b"");
        assert_eq!(out.as_bytes(), b"\x03\0\0\xFFabc\0\0\0\0");
        assert_eq!(out.sequence(), 1);
    }

    #[test]
    fn what_is_behind_a_forgotten_front_stays() {
        let mut out = PacketWriter::new();
        out.packet(b"a");
        let count = out.pending_bytes();
        out.packet(b"b");
        out.forget_front(count);
        out.packet(b"c");
        assert_eq!(out.as_bytes(), b"\x01\0\0\x01b\x01\0\0\x02c");
        out.forget_front(usize::MAX);
        assert_eq!(out.pending_bytes(), 0);
    }

    #[test]
    fn unfinished_packet_leaves_no_trace() {
        let mut out = PacketWriter::new();
        out.packet(b"x");
        let mut packet = out.begin();
        packet.lenenc_bytes(b"lost");
        drop(packet);
        assert_eq!(out.pending_bytes(), 5);
        assert_eq!(out.sequence(), 1);
    }

    #[test]
    fn large_payloads_are_split_and_end_with_a_short_frame() {
        for extra in [0, 1, FRAME_BYTES_MAX] {
            let payload: Vec<u8> = (0..FRAME_BYTES_MAX + extra)
                .map(|i| i.to_le_bytes()[0])
                .collect();
            let mut out = PacketWriter::new();
            out.packet(&payload);
            let mut joined = Vec::new();
            let mut rest = out.as_bytes();
            let mut frames = 0_u8;
            loop {
                let (header, after) = rest.split_at(HEADER_BYTES);
                let count = u32::from_le_bytes([header[0], header[1], header[2], 0]);
                assert_eq!(header[3], frames);
                frames += 1;
                let (body, after) = after.split_at(usize::try_from(count).unwrap());
                joined.extend_from_slice(body);
                rest = after;
                if body.len() < FRAME_BYTES_MAX {
                    break;
                }
            }
            assert!(rest.is_empty());
            assert!(joined == payload);
            assert_eq!(out.sequence(), frames);
        }
    }

    #[test]
    fn text_in_place_gets_a_length_of_any_size() {
        for count in [0, 1, 250, 251, 65_535, 65_536, 0x100_0000] {
            let text = vec![b'x'; count];
            let mut direct = PacketWriter::new();
            let mut packet = direct.begin();
            packet.lenenc_bytes(&text);
            packet.u8(7);
            packet.finish();
            let mut in_place = PacketWriter::new();
            let mut packet = in_place.begin();
            packet.lenenc_with(|buffer| buffer.extend_from_slice(&text));
            packet.u8(7);
            packet.finish();
            assert!(direct.as_bytes() == in_place.as_bytes(), "{count} bytes");
        }
    }

    #[test]
    fn sent_buffer_is_used_again() {
        let mut out = PacketWriter::new();
        out.packet(&[0; 1000]);
        let buffer = out.take();
        let capacity = buffer.capacity();
        out.reuse(buffer);
        assert_eq!(out.pending_bytes(), 0);
        assert_eq!(out.take().capacity(), capacity);
    }
}
