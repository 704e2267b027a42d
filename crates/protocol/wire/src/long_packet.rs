//! [`LongPacket`]: a packet that is too long for one buffer, written in pieces.
//!
//! Each piece is a buffer of its own of at most [`PIECE_BYTES`]. The caller reserves its memory
//! before it adds one, lets others run between two, and sends and frees one after the other. So no
//! buffer grows by being copied, and nothing takes long in one go.
//!
//! The headers of the frames are among the pieces' bytes. A header is not split over two pieces. It
//! is written when its frame ends, so no piece leaves before the packet is whole. A packet that is
//! dropped unfinished leaves no trace.

use stdx::DeferredDropVec;

use crate::packet_writer::{FRAME_BYTES_MAX, HEADER_BYTES};

/// The largest piece. To copy one takes some 100 us. Buffers of this size are not pooled.
pub const PIECE_BYTES: usize = 512 << 10;

/// A packet that is being written.
#[derive(Debug)]
pub struct LongPacket {
    pieces: DeferredDropVec<Vec<u8>>,
    /// What the pieces may hold, in sum.
    reserved_bytes: usize,
    /// The frame that is being written: the piece of its header, and the place in it.
    frame: Option<(usize, usize)>,
    /// Payload bytes of that frame.
    frame_bytes: usize,
    /// The sequence id of the next frame that ends.
    sequence: u8,
}

/// A packet that is whole.
#[derive(Debug)]
pub struct LongPacketBytes {
    /// What has to be sent, in order.
    pub pieces: DeferredDropVec<Vec<u8>>,
    /// The sequence id of the packet after it.
    pub sequence: u8,
}

impl LongPacket {
    /// A packet whose first frame has this sequence id; it has no piece yet.
    pub fn new(sequence: u8) -> Self {
        Self {
            pieces: DeferredDropVec::new(),
            reserved_bytes: 0,
            frame: None,
            frame_bytes: 0,
            sequence,
        }
    }

    /// What the pieces may hold, in sum.
    pub fn reserved_bytes(&self) -> usize {
        self.reserved_bytes
    }

    /// The size of the piece that comes next if so many bytes are left to write.
    pub fn next_piece_bytes(left_bytes: usize) -> usize {
        left_bytes
            .saturating_add(HEADER_BYTES)
            .clamp(PIECE_BYTES_MIN, PIECE_BYTES)
    }

    /// Adds a piece of so many bytes.
    pub fn add_piece(&mut self, bytes: usize) {
        self.pieces.push(Vec::with_capacity(bytes));
        self.reserved_bytes += bytes;
    }

    /// Appends as much of the payload as the last piece has room for, and returns how much that is:
    /// 0 if a piece has to be added.
    pub fn append(&mut self, payload: &[u8]) -> usize {
        if self.frame_bytes == FRAME_BYTES_MAX {
            self.end_frame();
        }
        let place = self.pieces.len();
        let Some(piece) = self.pieces.last_mut() else {
            return 0;
        };
        let room = piece.capacity() - piece.len();
        let header_bytes = if self.frame.is_none() {
            HEADER_BYTES
        } else {
            0
        };
        let frame_room = FRAME_BYTES_MAX - self.frame_bytes;
        let count = payload
            .len()
            .min(room.saturating_sub(header_bytes))
            .min(frame_room);
        if count == 0 {
            return 0;
        }
        if self.frame.is_none() {
            self.frame = Some((place - 1, piece.len()));
            piece.extend_from_slice(&[0; HEADER_BYTES]);
        }
        piece.extend_from_slice(payload.get(..count).unwrap_or_default());
        self.frame_bytes += count;
        count
    }

    /// Ends the packet.
    pub fn finish(mut self) -> LongPacketBytes {
        if self.frame_bytes == FRAME_BYTES_MAX {
            self.end_frame();
        }
        if self.frame.is_none() {
            // The frame that ends the packet is empty.
            self.frame = Some((self.pieces.len(), 0));
            self.pieces.push(vec![0; HEADER_BYTES]);
        }
        self.end_frame();
        LongPacketBytes {
            pieces: self.pieces,
            sequence: self.sequence,
        }
    }

    fn end_frame(&mut self) {
        let (piece, at) = self.frame.take().expect("a frame with bytes has begun");
        let [a, b, c, ..] = self.frame_bytes.to_le_bytes();
        let header = self.pieces.get_mut(piece);
        header
            .and_then(|piece| piece.get_mut(at..at + HEADER_BYTES))
            .expect("append left room")
            .copy_from_slice(&[a, b, c, self.sequence]);
        self.sequence = self.sequence.wrapping_add(1);
        self.frame_bytes = 0;
    }
}

/// The smallest piece: it has room for a header and any value that is no text.
const PIECE_BYTES_MIN: usize = 4 << 10;
const _: () = assert!(PIECE_BYTES_MIN < PIECE_BYTES);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PacketWriter;

    /// Writes the payload, given in parts of this size.
    fn written(payload: &[u8], part_bytes: usize) -> LongPacketBytes {
        let mut packet = LongPacket::new(7);
        for mut part in payload.chunks(part_bytes) {
            while !part.is_empty() {
                match packet.append(part) {
                    0 => packet.add_piece(LongPacket::next_piece_bytes(part.len())),
                    count => part = &part[count..],
                }
            }
        }
        packet.finish()
    }

    #[test]
    fn a_long_packet_has_the_bytes_of_a_packet() {
        for count in [
            0,
            1,
            PIECE_BYTES - HEADER_BYTES,
            PIECE_BYTES - HEADER_BYTES + 1,
            3 * PIECE_BYTES,
            FRAME_BYTES_MAX - 1,
            FRAME_BYTES_MAX,
            FRAME_BYTES_MAX + 1,
            2 * FRAME_BYTES_MAX,
        ] {
            let payload: Vec<u8> = (0..=u8::MAX).cycle().take(count).collect();
            let mut out = PacketWriter::new();
            out.set_sequence(7);
            out.packet(&payload);
            for part_bytes in [1 << 10, 100_003, 1 << 26] {
                let long = written(&payload, part_bytes);
                assert!(long.pieces.concat() == out.as_bytes(), "{count} bytes");
                assert_eq!(long.sequence, out.sequence());
                let is_small = |piece: &Vec<u8>| piece.capacity() <= PIECE_BYTES;
                assert!(long.pieces.iter().all(is_small));
            }
        }
    }

    #[test]
    fn what_the_pieces_may_hold_is_known() {
        let mut packet = LongPacket::new(0);
        assert_eq!(packet.append(b"a"), 0, "there is no piece");
        packet.add_piece(LongPacket::next_piece_bytes(1));
        packet.add_piece(LongPacket::next_piece_bytes(usize::MAX));
        assert_eq!(packet.reserved_bytes(), PIECE_BYTES_MIN + PIECE_BYTES);
    }
}
