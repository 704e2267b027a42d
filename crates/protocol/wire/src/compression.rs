//! Compressed packets: [`Compressor`] and [`Decompressor`].
//!
//! Once both sides have agreed on compression, the stream of frames is cut into pieces, regardless
//! of where frames begin and end. Each piece is sent as:
//!
//! | bytes | content |
//! |---|---|
//! | 3 | bytes that follow this header |
//! | 1 | sequence id, of these packets alone, from 0 with each command |
//! | 3 | bytes when decompressed, or 0 if the piece travels as it is |
//! | n | the piece |
//!
//! Pieces are independent of each other, so one compressor serves all connections of a worker: idle
//! connections do not pay for its tables (some 300 KiB).
//!
//! A piece claims its decompressed size. It may not become larger than that. Memory is allocated as
//! it grows, not by the claim.

use std::io;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use thiserror::Error;
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use crate::cursor::Cursor;

/// Bytes of a compressed packet's header.
pub const COMPRESSED_HEADER_BYTES: usize = 7;

/// Pieces below this size are sent as they are, as MySQL and MariaDB do.
const COMPRESS_BYTES_MIN: usize = 50;

/// Largest piece. The format allows 16 MiB. A small one bounds what both sides hold at once, and
/// takes less than a millisecond to compress. zlib looks back no farther than half of it.
const PIECE_BYTES_MAX: usize = 64 << 10;

/// Step in which the buffer grows while a piece is decompressed.
const GROW_BYTES: usize = 64 << 10;

/// zlib's level. Replies are compressed once and read once, so speed counts more than the last
/// percent.
const ZLIB_LEVEL: u32 = 3;

/// Highest level of zstd, whatever a client asks for, because it costs the server's time. About as
/// slow as [`ZLIB_LEVEL`]; level 22 takes twenty times as long.
const ZSTD_LEVEL_MAX: u8 = 6;

/// How far back zstd may look in a piece, as a power of two: the size of the largest piece. A frame
/// may ask for more, and the decoder would allocate as much memory for it.
const ZSTD_WINDOW_LOG_MAX: u32 = 24;

/// How pieces are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressionMethod {
    /// zlib, agreed by COMPRESS.
    Zlib,
    /// zstd, agreed by ZSTD_COMPRESSION.
    Zstd {
        /// 1 to 6; other levels are clamped to that range.
        level: u8,
    },
}

/// A piece that cannot be decompressed (error 1157), or that is out of order (1156).
#[derive(Debug, Error)]
pub enum CompressionError {
    /// The sequence id is not the expected one.
    #[error("compressed packet with sequence id {found} where {expected} was due")]
    OutOfOrder {
        /// The expected id.
        expected: u8,
        /// The received id.
        found: u8,
    },
    /// zlib found no valid stream.
    #[error("zlib stream is broken")]
    Zlib(#[source] flate2::DecompressError),
    /// zstd found no valid frame.
    #[error("zstd frame is broken")]
    Zstd(#[source] io::Error),
    /// The piece is longer or shorter than it claims.
    #[error("decompressed piece does not have the claimed {claimed_bytes} bytes")]
    WrongLength {
        /// The length in the header.
        claimed_bytes: usize,
    },
}

/// The sending end; holds only tables, nothing of a connection.
pub struct Compressor {
    zlib: Compress,
    /// Created when the first client asks for zstd.
    zstd: Option<zstd::bulk::Compressor<'static>>,
    /// Where zstd writes a piece.
    scratch: Vec<u8>,
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor").finish_non_exhaustive()
    }
}

impl Default for Compressor {
    fn default() -> Compressor {
        Compressor::new()
    }
}

impl Compressor {
    /// A compressor.
    pub fn new() -> Compressor {
        let zlib = Compress::new(Compression::new(ZLIB_LEVEL), true);
        Compressor {
            zlib,
            zstd: None,
            scratch: Vec::new(),
        }
    }

    /// Appends `stream`, whole frames or parts of them, to `out` as compressed packets that are
    /// numbered from `sequence` on.
    ///
    /// # Errors
    /// Only if zlib or zstd cannot get memory.
    pub fn compress(
        &mut self,
        method: CompressionMethod,
        stream: &[u8],
        sequence: &mut u8,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let mut rest = stream;
        while !rest.is_empty() {
            let used = self.compress_piece(method, rest, sequence, out)?;
            rest = rest.get(used..).unwrap_or_default();
        }
        Ok(())
    }

    /// As [`Compressor::compress`], but only for the stream's first piece. Returns how many of its
    /// bytes that is. For callers that give way between pieces.
    ///
    /// # Errors
    /// Only if zlib or zstd cannot get memory.
    pub fn compress_piece(
        &mut self,
        method: CompressionMethod,
        stream: &[u8],
        sequence: &mut u8,
        out: &mut Vec<u8>,
    ) -> io::Result<usize> {
        let piece = stream.get(..PIECE_BYTES_MAX).unwrap_or(stream);
        let start = out.len();
        out.extend_from_slice(&[0; COMPRESSED_HEADER_BYTES]);
        let body = out.len();
        let mut plain_bytes = 0;
        if piece.len() >= COMPRESS_BYTES_MIN {
            match method {
                CompressionMethod::Zlib => self.zlib(piece, out)?,
                CompressionMethod::Zstd { level } => self.zstd(level, piece, out)?,
            }
            plain_bytes = piece.len();
        }
        if plain_bytes == 0 || out.len() - body >= piece.len() {
            out.truncate(body);
            out.extend_from_slice(piece);
            plain_bytes = 0;
        }
        let [a, b, c, ..] = (out.len() - body).to_le_bytes();
        let [d, e, f, ..] = plain_bytes.to_le_bytes();
        let header = out
            .get_mut(start..body)
            .expect("the header was just appended");
        header.copy_from_slice(&[a, b, c, *sequence, d, e, f]);
        *sequence = sequence.wrapping_add(1);
        Ok(piece.len())
    }

    fn zlib(&mut self, piece: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        self.zlib.reset();
        let mut rest = piece;
        loop {
            out.reserve(rest.len() / 2 + 1024);
            let before = self.zlib.total_in();
            let status = self.zlib.compress_vec(rest, out, FlushCompress::Finish)?;
            let taken = usize::try_from(self.zlib.total_in() - before).unwrap_or(0);
            rest = rest.get(taken..).unwrap_or_default();
            if status == Status::StreamEnd {
                return Ok(());
            }
        }
    }

    fn zstd(&mut self, level: u8, piece: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        let compressor = match &mut self.zstd {
            Some(compressor) => compressor,
            None => self.zstd.insert(zstd::bulk::Compressor::new(1)?),
        };
        compressor.set_compression_level(i32::from(level.clamp(1, ZSTD_LEVEL_MAX)))?;
        self.scratch.clear();
        self.scratch
            .reserve(zstd::zstd_safe::compress_bound(piece.len()));
        compressor.compress_to_buffer(piece, &mut self.scratch)?;
        out.extend_from_slice(&self.scratch);
        Ok(())
    }
}

/// The result of [`Decompressor::next`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecompressStep {
    /// At least `missing` more bytes have to be received.
    Incomplete {
        /// How many.
        missing: usize,
    },
    /// A piece was appended to the plain stream; `used` bytes of the input were consumed.
    Piece {
        /// How many bytes to drop from the front of the input.
        used: usize,
    },
}

/// The receiving end; holds only tables, nothing of a connection.
pub struct Decompressor {
    zlib: Decompress,
    /// Created when the first client asks for zstd.
    zstd: Option<Decoder<'static>>,
}

impl std::fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decompressor").finish_non_exhaustive()
    }
}

impl Default for Decompressor {
    fn default() -> Decompressor {
        Decompressor::new()
    }
}

impl Decompressor {
    /// A decompressor.
    pub fn new() -> Decompressor {
        Decompressor {
            zlib: Decompress::new(true),
            zstd: None,
        }
    }

    /// Looks for a compressed packet at the start of `input` and appends its piece of the plain
    /// stream to `plain`. `sequence` is the expected id, and is advanced.
    pub fn next(
        &mut self,
        method: CompressionMethod,
        input: &[u8],
        sequence: &mut u8,
        plain: &mut Vec<u8>,
    ) -> Result<DecompressStep, CompressionError> {
        let mut cursor = Cursor::new(input);
        let Ok(header) = cursor.array::<COMPRESSED_HEADER_BYTES>("header") else {
            return Ok(DecompressStep::Incomplete {
                missing: COMPRESSED_HEADER_BYTES - input.len(),
            });
        };
        let [a, b, c, found, d, e, f] = header;
        let length =
            |[a, b, c]: [u8; 3]| usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
        let (piece_bytes, plain_bytes) = (length([a, b, c]), length([d, e, f]));
        if found != *sequence {
            return Err(CompressionError::OutOfOrder {
                expected: *sequence,
                found,
            });
        }
        let rest_bytes = cursor.peek_rest().len();
        let Ok(piece) = cursor.bytes(piece_bytes, "piece") else {
            return Ok(DecompressStep::Incomplete {
                missing: piece_bytes - rest_bytes,
            });
        };
        match (plain_bytes, method) {
            (0, _) => plain.extend_from_slice(piece),
            (_, CompressionMethod::Zlib) => self.zlib(piece, plain_bytes, plain)?,
            (_, CompressionMethod::Zstd { .. }) => self.zstd(piece, plain_bytes, plain)?,
        }
        *sequence = sequence.wrapping_add(1);
        Ok(DecompressStep::Piece {
            used: COMPRESSED_HEADER_BYTES + piece_bytes,
        })
    }

    fn zlib(
        &mut self,
        piece: &[u8],
        claimed_bytes: usize,
        plain: &mut Vec<u8>,
    ) -> Result<(), CompressionError> {
        self.zlib.reset(true);
        let end = plain.len() + claimed_bytes;
        let mut rest = piece;
        loop {
            let room = GROW_BYTES.min(end - plain.len());
            let (filled, taken, status) = grow(plain, room, |space| {
                let (taken, filled) = (self.zlib.total_in(), self.zlib.total_out());
                let status = self.zlib.decompress(rest, space, FlushDecompress::None);
                let filled = self.zlib.total_out() - filled;
                let taken = self.zlib.total_in() - taken;
                (to_usize(filled), to_usize(taken), status)
            });
            rest = rest.get(taken..).unwrap_or_default();
            match status.map_err(CompressionError::Zlib)? {
                Status::StreamEnd if plain.len() == end && rest.is_empty() => return Ok(()),
                Status::Ok if filled + taken > 0 => {}
                Status::StreamEnd | Status::Ok | Status::BufError => {
                    return Err(CompressionError::WrongLength { claimed_bytes });
                }
            }
        }
    }

    fn zstd(
        &mut self,
        piece: &[u8],
        claimed_bytes: usize,
        plain: &mut Vec<u8>,
    ) -> Result<(), CompressionError> {
        let decoder = match &mut self.zstd {
            Some(decoder) => decoder,
            None => self
                .zstd
                .insert(zstd_decoder().map_err(CompressionError::Zstd)?),
        };
        decoder.reinit().map_err(CompressionError::Zstd)?;
        let end = plain.len() + claimed_bytes;
        let mut input = InBuffer::around(piece);
        loop {
            let room = GROW_BYTES.min(end - plain.len());
            let taken_before = input.pos();
            let (filled, hint) = grow_zstd(plain, room, |space| {
                let mut output = OutBuffer::around(space);
                let hint = decoder.run(&mut input, &mut output);
                (output.pos(), hint)
            });
            let is_frame_over = hint.map_err(CompressionError::Zstd)? == 0;
            if is_frame_over && plain.len() == end && input.pos() == piece.len() {
                return Ok(());
            }
            if is_frame_over || (filled == 0 && input.pos() == taken_before) {
                return Err(CompressionError::WrongLength { claimed_bytes });
            }
        }
    }
}

fn zstd_decoder() -> io::Result<Decoder<'static>> {
    let mut decoder = Decoder::new()?;
    decoder.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG_MAX))?;
    Ok(decoder)
}

/// Lets `fill` write up to `room` bytes after `plain`; keeps as many as it reports.
fn grow<T>(
    plain: &mut Vec<u8>,
    room: usize,
    fill: impl FnOnce(&mut [u8]) -> (usize, usize, T),
) -> (usize, usize, T) {
    let start = plain.len();
    plain.resize(start + room, 0);
    let space = plain.get_mut(start..).unwrap_or_default();
    let (filled, taken, status) = fill(space);
    plain.truncate(start + filled);
    (filled, taken, status)
}

/// [`grow`] without a count of consumed bytes.
fn grow_zstd<T>(
    plain: &mut Vec<u8>,
    room: usize,
    fill: impl FnOnce(&mut [u8]) -> (usize, T),
) -> (usize, T) {
    let (filled, _, status) = grow(plain, room, |space| {
        let (filled, status) = fill(space);
        (filled, 0, status)
    });
    (filled, status)
}

/// A count of bytes in memory, which fits.
fn to_usize(count: u64) -> usize {
    usize::try_from(count).expect("a count of bytes in memory")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const METHODS: [CompressionMethod; 2] = [
        CompressionMethod::Zlib,
        CompressionMethod::Zstd { level: 3 },
    ];

    fn decompress_all(
        method: CompressionMethod,
        mut input: &[u8],
    ) -> Result<Vec<u8>, CompressionError> {
        let mut decompressor = Decompressor::new();
        let mut sequence = 0;
        let mut plain = Vec::new();
        while !input.is_empty() {
            match decompressor.next(method, input, &mut sequence, &mut plain)? {
                DecompressStep::Incomplete { .. } => break,
                DecompressStep::Piece { used } => input = &input[used..],
            }
        }
        Ok(plain)
    }

    #[test]
    fn short_pieces_travel_as_they_are() {
        let mut out = Vec::new();
        let mut sequence = 0;
        Compressor::new()
            .compress(CompressionMethod::Zlib, b"short", &mut sequence, &mut out)
            .unwrap();
        assert_eq!(out, b"\x05\0\0\0\0\0\0short");
        assert_eq!(sequence, 1);
    }

    #[test]
    fn long_streams_are_cut_and_shrink() {
        let stream: Vec<u8> = b"abcdefgh".repeat(400_000);
        for method in METHODS {
            let mut out = Vec::new();
            let mut sequence = 0;
            let mut compressor = Compressor::new();
            compressor
                .compress(method, &stream, &mut sequence, &mut out)
                .unwrap();
            assert_eq!(sequence, 49);
            assert!(out.len() < stream.len() / 20);
            assert!(decompress_all(method, &out).unwrap() == stream);
        }
    }

    #[test]
    fn no_client_has_more_time_spent_on_it_than_the_highest_level_takes() {
        // Words in no order: each level compresses them better than the one before.
        let words = (0_u64..40_000).map(|index| index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50);
        let stream: Vec<u8> = words
            .flat_map(|word| format!("{word} ").into_bytes())
            .collect();
        let compressed = |level| {
            let mut out = Vec::new();
            Compressor::new()
                .compress(CompressionMethod::Zstd { level }, &stream, &mut 0, &mut out)
                .unwrap();
            out
        };
        assert_ne!(compressed(1), compressed(ZSTD_LEVEL_MAX));
        for level in [ZSTD_LEVEL_MAX + 1, 22, u8::MAX] {
            assert!(compressed(level) == compressed(ZSTD_LEVEL_MAX), "{level}");
        }
        assert!(compressed(0) == compressed(1));
    }

    #[test]
    fn wrong_claims_and_broken_streams_are_refused() {
        for method in METHODS {
            let mut out = Vec::new();
            Compressor::new()
                .compress(method, &[b'x'; 1000], &mut 0, &mut out)
                .unwrap();
            for claimed in [1_u8, 2, 4] {
                let mut wrong = out.clone();
                wrong[5] = claimed;
                assert!(
                    decompress_all(method, &wrong).is_err(),
                    "{method:?} {claimed}"
                );
            }
            let mut broken = out.clone();
            broken[9] ^= 0x55;
            assert!(decompress_all(method, &broken).is_err(), "{method:?}");
            let mut disordered = out;
            disordered[3] = 1;
            assert!(matches!(
                decompress_all(method, &disordered),
                Err(CompressionError::OutOfOrder {
                    expected: 0,
                    found: 1
                })
            ));
        }
    }

    #[test]
    fn a_zstd_frame_cannot_ask_for_more_memory_than_a_piece_has() {
        use zstd::stream::raw::{CParameter, Encoder};
        for (window_log, is_taken) in [(23, true), (24, true), (25, false), (27, false)] {
            let mut encoder = Encoder::new(1).unwrap();
            encoder
                .set_parameter(CParameter::WindowLog(window_log))
                .unwrap();
            let mut frame = [0; 300];
            let mut output = OutBuffer::around(&mut frame[..]);
            let mut input = InBuffer::around(&[b'x'; 200][..]);
            encoder.run(&mut input, &mut output).unwrap();
            assert_eq!(encoder.finish(&mut output, true).unwrap(), 0);
            let length = u8::try_from(output.pos()).unwrap();
            let mut packet = vec![length, 0, 0, 0, 200, 0, 0];
            packet.extend_from_slice(&frame[..usize::from(length)]);
            let plain = decompress_all(CompressionMethod::Zstd { level: 1 }, &packet);
            match plain {
                Ok(plain) => assert!(is_taken && plain == [b'x'; 200], "{window_log}"),
                Err(CompressionError::Zstd(_)) => assert!(!is_taken, "{window_log}"),
                Err(error) => panic!("{window_log}: {error}"),
            }
        }
    }

    #[test]
    fn incomplete_packets_say_what_is_missing() {
        let mut decompressor = Decompressor::new();
        let mut next = |input: &[u8]| {
            decompressor
                .next(CompressionMethod::Zlib, input, &mut 0, &mut Vec::new())
                .unwrap()
        };
        assert_eq!(next(b"\x05"), DecompressStep::Incomplete { missing: 6 });
        assert_eq!(
            next(b"\x05\0\0\0\0\0\0ab"),
            DecompressStep::Incomplete { missing: 3 }
        );
    }

    proptest! {
        #[test]
        fn round_trip(
            stream in prop::collection::vec(prop::collection::vec(0_u8..4, 0..300), 0..5),
        ) {
            for method in METHODS {
                let mut compressor = Compressor::new();
                let mut out = Vec::new();
                let mut sequence = 0;
                for part in &stream {
                    compressor.compress(method, part, &mut sequence, &mut out).unwrap();
                }
                prop_assert_eq!(decompress_all(method, &out).unwrap(), stream.concat());
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(mut bytes: Vec<u8>) {
            for method in METHODS {
                let _ = decompress_all(method, &bytes);
            }
            if let [_, b, c, sequence, _, e, f, ..] = bytes.as_mut_slice() {
                (*b, *c, *sequence, *e, *f) = (0, 0, 0, 0, 0);
            }
            for method in METHODS {
                let _ = decompress_all(method, &bytes);
            }
        }
    }
}
