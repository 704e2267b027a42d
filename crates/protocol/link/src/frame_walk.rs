//! [`FrameWalk`]: goes over the frames of packets that are passed on. No I/O.
//!
//! Nothing of a packet but the header and, where the caller asks for them, the first bytes of its
//! payload has to be there: what is passed on need not be whole. A run of packets is gone over in
//! one call; only the sequence ids are written to, where they differ on the other side.

use wire::{FRAME_BYTES_MAX, FrameError, HEADER_BYTES};

/// What the sequence ids of packets say that come compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InnerIds {
    /// They have to be in order: clients count them from their command on.
    Checked,
    /// Nothing: MariaDB goes on with the ids of its compressed packets whenever it sends.
    Followed,
}

/// A place in a stream of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameWalk {
    /// The sequence id that the next frame has to have.
    pub(crate) sequence: u8,
    /// What is added to sequence ids.
    pub(crate) shift: u8,
    /// Whether the ids of packets are looked at.
    pub(crate) inner_ids: InnerIds,
    /// Payload bytes of the present frame that are still to be passed.
    left: usize,
    /// Whether the next frame goes on with the present packet.
    continues: bool,
}

/// Where a walk stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// At the end of the bytes, or where more are needed to go on.
    Starved,
    /// Before a packet, as the caller wanted it.
    BeforePacket,
    /// The receiver has got enough to be sent first.
    Full,
}

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is passed on.
    Pass,
    /// The walk stops before it.
    Stop,
    /// More of its first bytes are needed.
    More,
}

impl FrameWalk {
    /// A walk that starts with a packet's first frame.
    pub(crate) fn new(sequence: u8, shift: u8) -> FrameWalk {
        FrameWalk {
            sequence,
            shift,
            inner_ids: InnerIds::Checked,
            left: 0,
            continues: false,
        }
    }

    /// Whether the walk is between two packets.
    pub(crate) fn is_between_packets(&self) -> bool {
        self.left == 0 && !self.continues
    }

    /// Skips a packet of one frame that was dealt with.
    pub(crate) fn skipped_packet(&mut self) {
        assert!(self.is_between_packets(), "a packet is skipped as a whole");
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// Goes on with the id `found`, and on the other side with the one that is due there.
    fn follow(&mut self, found: u8) {
        let due = self.sequence.wrapping_add(self.shift);
        self.sequence = found;
        self.shift = due.wrapping_sub(found);
    }

    /// Goes over `bytes` from where the last walk ended. Returns how many of them can be passed on,
    /// and why not more. `judge` gets the length of a packet's first frame and as much of the bytes
    /// behind its header as is there.
    pub(crate) fn pass<E: From<FrameError>>(
        &mut self,
        bytes: &mut [u8],
        mut judge: impl FnMut(usize, &[u8]) -> Result<Verdict, E>,
    ) -> Result<(usize, Stop), E> {
        let mut passed = 0;
        loop {
            let step = self.left.min(bytes.len() - passed);
            passed += step;
            self.left -= step;
            let rest = bytes.get_mut(passed..).unwrap_or_default();
            let Some((header, payload)) = rest.split_first_chunk_mut::<HEADER_BYTES>() else {
                return Ok((passed, Stop::Starved));
            };
            let [a, b, c, id] = header;
            let length = usize::from(*a) | usize::from(*b) << 8 | usize::from(*c) << 16;
            if !self.continues {
                // Before its id is looked at: behind a command that has no answer comes another,
                // which starts at 0.
                match judge(length, payload)? {
                    Verdict::Pass => {}
                    Verdict::Stop => return Ok((passed, Stop::BeforePacket)),
                    Verdict::More => return Ok((passed, Stop::Starved)),
                }
                if self.inner_ids == InnerIds::Followed {
                    self.follow(*id);
                }
            }
            if *id != self.sequence {
                let (expected, found) = (self.sequence, *id);
                return Err(FrameError::OutOfOrder { expected, found }.into());
            }
            *id = id.wrapping_add(self.shift);
            self.sequence = self.sequence.wrapping_add(1);
            self.continues = length == FRAME_BYTES_MAX;
            self.left = length;
            passed += HEADER_BYTES;
        }
    }
}

#[cfg(test)]
mod tests {
    use wire::PacketWriter;

    use super::*;

    /// Passes a stream in pieces of `piece` bytes; returns what came out and how many packets were
    /// judged.
    fn walked(stream: &[u8], piece: usize, shift: u8) -> (Vec<u8>, usize) {
        let mut walk = FrameWalk::new(0, shift);
        let (mut input, mut output, mut packets) = (Vec::new(), Vec::new(), 0);
        for bytes in stream.chunks(piece) {
            input.extend_from_slice(bytes);
            let judge = |length: usize, payload: &[u8]| {
                if payload.len() < length.min(2) {
                    return Ok::<_, FrameError>(Verdict::More);
                }
                packets += 1;
                Ok(Verdict::Pass)
            };
            let (passed, stop) = walk.pass(&mut input, judge).unwrap();
            assert_eq!(stop, Stop::Starved);
            output.extend(input.drain(..passed));
        }
        assert!(input.is_empty() && walk.is_between_packets());
        (output, packets)
    }

    #[test]
    fn pieces_of_any_size_make_the_same_stream() {
        let mut out = PacketWriter::new();
        for payload in [&b"abc"[..], b"", b"d", &[7; 300]] {
            out.packet(payload);
        }
        let mut shifted = PacketWriter::new();
        shifted.set_sequence(255);
        for payload in [&b"abc"[..], b"", b"d", &[7; 300]] {
            shifted.packet(payload);
        }
        for piece in 1..out.pending_bytes() {
            assert_eq!(
                walked(out.as_bytes(), piece, 0),
                (out.as_bytes().to_vec(), 4)
            );
            let moved = walked(out.as_bytes(), piece, 255).0;
            assert_eq!(moved, shifted.as_bytes());
        }
    }

    #[test]
    fn a_packet_of_many_frames_is_judged_once() {
        let mut out = PacketWriter::new();
        out.packet(&vec![1; FRAME_BYTES_MAX * 2]);
        out.packet(b"next");
        let (output, packets) = walked(out.as_bytes(), 1 << 20, 0);
        assert!(output == out.as_bytes());
        assert_eq!(packets, 2);
    }

    #[test]
    fn ids_that_are_followed_come_out_in_order() {
        let mut bytes = *b"\x01\0\0\x05a\x01\0\0\x41b";
        let judge = |_: usize, _: &[u8]| Ok::<_, FrameError>(Verdict::Pass);
        let mut walk = FrameWalk::new(2, 1);
        walk.inner_ids = InnerIds::Followed;
        walk.pass(&mut bytes, judge).unwrap();
        assert_eq!(&bytes, b"\x01\0\0\x03a\x01\0\0\x04b");
    }

    #[test]
    fn the_packet_that_is_stopped_before_may_have_any_id() {
        let mut bytes = *b"\x01\0\0\0a\x01\0\0\0b";
        let mut judged = 0;
        let judge = |_: usize, _: &[u8]| {
            judged += 1;
            let is_first = judged == 1;
            Ok::<_, FrameError>(if is_first {
                Verdict::Pass
            } else {
                Verdict::Stop
            })
        };
        let walked = FrameWalk::new(0, 0).pass(&mut bytes, judge);
        assert_eq!(walked, Ok((5, Stop::BeforePacket)));
    }

    #[test]
    fn disorder_is_found() {
        let mut bytes = *b"\x01\0\0\x05a";
        let judge = |_: usize, _: &[u8]| Ok::<_, FrameError>(Verdict::Pass);
        let found = FrameWalk::new(0, 0).pass(&mut bytes, judge);
        let (expected, found_id) = (0, 5);
        assert_eq!(
            found,
            Err(FrameError::OutOfOrder {
                expected,
                found: found_id
            })
        );
    }
}
