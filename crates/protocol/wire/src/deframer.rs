//! [`Deframer`]: finds whole packets in received bytes.
//!
//! The caller keeps received bytes in one buffer and asks for the next packet. A packet of one
//! frame is lent in place, without a copy. One of several frames (16 MiB and more) is joined, a
//! frame at a time, as the frames become complete.
//!
//! Memory is bounded by what was received, never by what a header claims: an announced length
//! beyond the limit is refused when its header arrives.

use thiserror::Error;

use crate::packet_writer::{FRAME_BYTES_MAX, HEADER_BYTES};

/// Why the stream cannot continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The packet is larger than the limit (error 1153). `unread_bytes` of its present frame,
    /// including the header, are still in the input.
    #[error("packet of more than {limit} bytes")]
    TooLarge {
        /// The limit that was set.
        limit: usize,
        /// The rest of the frame that exceeded the limit.
        unread_bytes: usize,
    },
    /// The sequence id is not the expected one (error 1156).
    #[error("frame with sequence id {found} where {expected} was due")]
    OutOfOrder {
        /// The expected id.
        expected: u8,
        /// The received id.
        found: u8,
    },
}

/// The result of [`Deframer::next`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framed<'a> {
    /// No whole packet yet. At least `missing` more bytes have to be received; the first `used`
    /// bytes of the input have been taken.
    Incomplete {
        /// How many bytes to drop from the front of the input.
        used: usize,
        /// The least number of bytes needed to continue.
        missing: usize,
    },
    /// A packet; it and its frames have taken `used` bytes of the input.
    Packet {
        /// The payload, joined over its frames.
        payload: &'a [u8],
        /// Number of bytes to drop from the front of the input, after the payload was used.
        used: usize,
    },
}

/// The result of [`Deframer::locate`]: [`Framed`] without a borrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Located {
    /// As [`Framed::Incomplete`].
    Incomplete {
        /// How many bytes to drop from the front of the input.
        used: usize,
        /// The least number of bytes needed to continue.
        missing: usize,
    },
    /// The payload is in the input, from its header's end to `end`; `end` bytes of the input have
    /// been taken.
    InPlace {
        /// First byte of the payload.
        start: usize,
        /// First byte after the payload.
        end: usize,
    },
    /// The payload had several frames: [`Deframer::take_joined`] has it.
    Joined {
        /// How many bytes to drop from the front of the input.
        used: usize,
    },
}

/// The reading end of a packet stream.
#[derive(Debug)]
pub struct Deframer {
    /// The sequence id that the next frame must have.
    sequence: u8,
    /// Most payload bytes of a packet.
    payload_bytes_max: usize,
    /// The received frames of a large packet.
    joined: Vec<u8>,
    /// Whether `joined` belongs to an unfinished packet, which the next frame continues.
    is_joining: bool,
}

impl Deframer {
    /// A stream that refuses packets of more than `payload_bytes_max` bytes.
    pub fn new(payload_bytes_max: usize) -> Deframer {
        Deframer {
            sequence: 0,
            payload_bytes_max,
            joined: Vec::new(),
            is_joining: false,
        }
    }

    /// Changes the limit, from the next frame on.
    pub fn set_payload_bytes_max(&mut self, payload_bytes_max: usize) {
        self.payload_bytes_max = payload_bytes_max;
    }

    /// The next expected sequence id, which is also the one that a reply starts with.
    pub fn sequence(&self) -> u8 {
        self.sequence
    }

    /// Sets the next expected sequence id: 0 before a command.
    pub fn set_sequence(&mut self, sequence: u8) {
        self.sequence = sequence;
    }

    /// Bytes of the frames of an unfinished packet.
    pub fn joined_bytes(&self) -> usize {
        if self.is_joining {
            self.joined.len()
        } else {
            0
        }
    }

    /// Frees the memory of the last joined packet. Call it after its payload was used.
    pub fn release(&mut self) {
        if !self.is_joining {
            self.joined = Vec::new();
        }
    }

    /// Looks for a packet at the start of `input`.
    pub fn next<'a>(&'a mut self, input: &'a [u8]) -> Result<Framed<'a>, FrameError> {
        Ok(match self.locate(input)? {
            Located::Incomplete { used, missing } => Framed::Incomplete { used, missing },
            Located::InPlace { start, end } => {
                let payload = input.get(start..end).unwrap_or_default();
                Framed::Packet { payload, used: end }
            }
            Located::Joined { used } => Framed::Packet {
                payload: &self.joined,
                used,
            },
        })
    }

    /// Looks for a packet at the start of `input`, without lending it.
    pub fn locate(&mut self, input: &[u8]) -> Result<Located, FrameError> {
        let mut used = 0;
        if !self.is_joining {
            self.joined.clear();
        }
        loop {
            let rest = input.get(used..).unwrap_or_default();
            let Some((header, body)) = rest.split_first_chunk::<HEADER_BYTES>() else {
                return Ok(Located::Incomplete {
                    used,
                    missing: HEADER_BYTES - rest.len(),
                });
            };
            let frame_bytes = self.check(*header)?;
            let Some(frame) = body.get(..frame_bytes) else {
                return Ok(Located::Incomplete {
                    used,
                    missing: frame_bytes - body.len(),
                });
            };
            let start = used + HEADER_BYTES;
            used = start + frame_bytes;
            self.sequence = self.sequence.wrapping_add(1);
            let is_last = frame_bytes < FRAME_BYTES_MAX;
            if is_last && !self.is_joining {
                return Ok(Located::InPlace { start, end: used });
            }
            self.joined.extend_from_slice(frame);
            self.is_joining = !is_last;
            if is_last {
                return Ok(Located::Joined { used });
            }
        }
    }

    /// Takes the payload of several frames that [`Deframer::locate`] has just found.
    pub fn take_joined(&mut self) -> Vec<u8> {
        assert!(!self.is_joining, "a packet is taken when it is whole");
        std::mem::take(&mut self.joined)
    }

    /// The length of the frame that `header` announces, if it may follow.
    fn check(&self, header: [u8; HEADER_BYTES]) -> Result<usize, FrameError> {
        let [a, b, c, found] = header;
        let frame_bytes = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
        if found != self.sequence {
            return Err(FrameError::OutOfOrder {
                expected: self.sequence,
                found,
            });
        }
        if self.joined_bytes() + frame_bytes > self.payload_bytes_max {
            let unread_bytes = HEADER_BYTES + frame_bytes;
            return Err(FrameError::TooLarge {
                limit: self.payload_bytes_max,
                unread_bytes,
            });
        }
        Ok(frame_bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::PacketWriter;

    #[test]
    fn whole_packets_are_lent_in_place() {
        let mut deframer = Deframer::new(100);
        let input = b"\x02\0\0\0ab\x01\0\0\x01c\x05";
        let Ok(Framed::Packet {
            payload: b"ab",
            used: 6,
        }) = deframer.next(input)
        else {
            panic!()
        };
        let Ok(Framed::Packet {
            payload: b"c",
            used: 5,
        }) = deframer.next(&input[6..])
        else {
            panic!()
        };
        assert_eq!(
            deframer.next(&input[11..]),
            Ok(Framed::Incomplete {
                used: 0,
                missing: 3
            })
        );
    }

    #[test]
    fn limit_is_checked_when_the_header_arrives() {
        let mut deframer = Deframer::new(100);
        assert!(deframer.next(b"\x64\0\0\0").is_ok());
        assert_eq!(
            deframer.next(b"\x65\0\0\0"),
            Err(FrameError::TooLarge {
                limit: 100,
                unread_bytes: 105
            })
        );
    }

    #[test]
    fn sequence_is_checked() {
        let mut deframer = Deframer::new(100);
        assert_eq!(
            deframer.next(b"\x01\0\0\x02x"),
            Err(FrameError::OutOfOrder {
                expected: 0,
                found: 2
            })
        );
    }

    #[test]
    fn large_packets_are_joined_in_pieces_of_any_size() {
        let payload: Vec<u8> = (0..FRAME_BYTES_MAX + 5)
            .map(|i| i.to_le_bytes()[1])
            .collect();
        let mut out = PacketWriter::new();
        out.packet(&payload);
        let stream = out.as_bytes();
        let mut deframer = Deframer::new(FRAME_BYTES_MAX * 2);
        let mut buffer: Vec<u8> = Vec::new();
        let mut was_found = false;
        for piece in stream.chunks(1_000_003) {
            buffer.extend_from_slice(piece);
            match deframer.next(&buffer).unwrap() {
                Framed::Incomplete { used, .. } => drop(buffer.drain(..used)),
                Framed::Packet {
                    payload: found,
                    used,
                } => {
                    assert!(found == payload);
                    assert_eq!(used, buffer.len());
                    was_found = true;
                }
            }
        }
        assert!(was_found);
        deframer.release();
        assert_eq!(deframer.joined.capacity(), 0);
        assert_eq!(deframer.sequence(), 2);
    }

    #[test]
    fn joined_length_counts_against_the_limit() {
        let mut out = PacketWriter::new();
        out.packet(&vec![0; FRAME_BYTES_MAX + 5]);
        let mut deframer = Deframer::new(FRAME_BYTES_MAX + 4);
        assert_eq!(
            deframer.next(out.as_bytes()),
            Err(FrameError::TooLarge {
                limit: FRAME_BYTES_MAX + 4,
                unread_bytes: 9
            })
        );
    }

    proptest! {
        #[test]
        fn packets_come_out_as_they_went_in(
            packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 1..20),
            piece in 1_usize..40,
        ) {
            let mut out = PacketWriter::new();
            for packet in &packets {
                out.packet(packet);
            }
            let mut deframer = Deframer::new(1000);
            let mut buffer = Vec::new();
            let mut found = Vec::new();
            for bytes in out.as_bytes().chunks(piece) {
                buffer.extend_from_slice(bytes);
                loop {
                    let used = match deframer.next(&buffer).unwrap() {
                        Framed::Incomplete { used: 0, .. } => break,
                        Framed::Incomplete { used, .. } => used,
                        Framed::Packet { payload, used } => {
                            found.push(payload.to_vec());
                            used
                        }
                    };
                    buffer.drain(..used);
                }
            }
            prop_assert_eq!(found, packets);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let mut deframer = Deframer::new(10);
            let mut at = 0;
            while let Ok(Framed::Packet { used, .. }) = deframer.next(&bytes[at..]) {
                at += used;
            }
        }
    }
}
