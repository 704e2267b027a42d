//! Framing and compression: the same packets, in whatever pieces the bytes arrive.

use wire::{
    CompressionMethod, Compressor, DecompressStep, Decompressor, Deframer, FrameError, Framed,
};

use crate::choices::Choices;

pub(crate) fn run(input: &[u8]) {
    let mut choices = Choices::new(input);
    let flavour = choices.u8();
    let limit = [16, 300, 5_000, 1 << 24][usize::from(flavour & 3)];
    let piece_bytes = 1 + choices.below(256);
    let stream = choices.rest();
    let method = if flavour & 4 == 0 {
        CompressionMethod::Zlib
    } else {
        CompressionMethod::Zstd { level: 3 }
    };
    frames(stream, limit, piece_bytes);
    inflate(method, stream);
    if flavour & 8 != 0 {
        round_trip(method, stream);
    }
}

fn frames(stream: &[u8], limit: usize, piece_bytes: usize) {
    let whole = packets(std::iter::once(stream), limit);
    let pieces = packets(stream.chunks(piece_bytes), limit);
    assert_eq!(whole, pieces);
}

/// All packets, and how the stream ended.
type Packets = (Vec<Vec<u8>>, Option<FrameError>);

fn packets<'a>(pieces: impl Iterator<Item = &'a [u8]>, limit: usize) -> Packets {
    let mut deframer = Deframer::new(limit);
    let mut received = Vec::new();
    let mut found = Vec::new();
    for piece in pieces {
        received.extend_from_slice(piece);
        loop {
            let used = match deframer.next(&received) {
                Ok(Framed::Incomplete { used, missing }) => {
                    assert!(0 < missing);
                    received.drain(..used);
                    break;
                }
                Ok(Framed::Packet { payload, used }) => {
                    assert!(payload.len() <= limit);
                    found.push(payload.to_vec());
                    used
                }
                Err(error) => return (found, Some(error)),
            };
            received.drain(..used);
            deframer.release();
        }
    }
    (found, None)
}

fn inflate(method: CompressionMethod, stream: &[u8]) {
    /// The most that a header can announce.
    const PIECE_BYTES_MAX: usize = (1 << 24) - 1;
    let mut decompressor = Decompressor::new();
    let (mut sequence, mut rest) = (0, stream);
    loop {
        let mut plain = Vec::new();
        match decompressor.next(method, rest, &mut sequence, &mut plain) {
            Ok(DecompressStep::Piece { used }) => {
                assert!(plain.len() <= PIECE_BYTES_MAX);
                rest = rest.get(used..).expect("taken from what is there");
            }
            Ok(DecompressStep::Incomplete { missing }) => {
                assert!(0 < missing && plain.is_empty());
                return;
            }
            Err(_) => return,
        }
    }
}

fn round_trip(method: CompressionMethod, stream: &[u8]) {
    let (mut sent, mut out) = (7, Vec::new());
    Compressor::new()
        .compress(method, stream, &mut sent, &mut out)
        .expect("memory is a good sink");
    let (mut received, mut plain, mut rest) = (7, Vec::new(), out.as_slice());
    let mut decompressor = Decompressor::new();
    while !rest.is_empty() {
        let step = decompressor.next(method, rest, &mut received, &mut plain);
        let Ok(DecompressStep::Piece { used }) = step else {
            panic!("{step:?} where a piece was written");
        };
        rest = rest.get(used..).expect("taken from what is there");
    }
    assert_eq!((plain.as_slice(), received), (stream, sent));
}
