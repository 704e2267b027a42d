//! Packets of a link in both roles, and replies that are forwarded: the same whatever the pieces
//! that bytes arrive in, with and without compression and TLS. Bytes of the input stand for what a
//! peer sends, or for what two ends say to each other.

use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use backend::TlsClient;
use link::{
    Agreed, Channel, Exchange, ForwardError, InnerIds, PacketMemory, Passed, Resources, TlsEnd,
};
use wire::{
    Capabilities, CompressionMethod, Compressor, DecompressStep, Decompressor, Deframer,
    FRAME_BYTES_MAX, Framed,
};

use crate::choices::Choices;

/// More than an input can become.
const MEMORY_BYTES: usize = 1 << 30;

pub(crate) fn run(input: &[u8]) {
    let mut choices = Choices::new(input);
    let flavour = choices.u8();
    let piece_bytes = 1 + choices.below(256);
    let compression = match flavour & 3 {
        0 => Some(CompressionMethod::Zlib),
        1 => Some(CompressionMethod::Zstd { level: 1 }),
        _ => None,
    };
    let limit = [16, 300, 5_000, 1 << 24][usize::from(flavour >> 2 & 3)];
    let take = |inner_ids, stream: &[u8]| {
        packets(compression, inner_ids, limit, piece_bytes, stream);
    };
    match flavour >> 4 & 7 {
        0 => handshakes(choices.rest()),
        1 => replies(&mut choices, None, piece_bytes),
        2 => take(InnerIds::Checked, choices.rest()),
        3 => take(InnerIds::Followed, choices.rest()),
        4 => replies(&mut choices, compression, piece_bytes),
        5 => conversation(&mut choices, ends_with_tls(), compression, piece_bytes),
        _ => conversation(&mut choices, ends(), compression, piece_bytes),
    }
}

fn resources() -> Rc<Resources> {
    Resources::new(PacketMemory::new(MEMORY_BYTES), Arc::default())
}

/// What a channel makes of a stream: packets, and whether it ended in an error.
type Taken = (Vec<Vec<u8>>, bool);

fn packets(
    compression: Option<CompressionMethod>,
    inner_ids: InnerIds,
    limit: usize,
    piece_bytes: usize,
    stream: &[u8],
) {
    let take = |piece_bytes: usize| -> Taken {
        let mut channel = Channel::new(resources(), limit);
        if let Some(method) = compression {
            channel.start_compression(method, inner_ids);
        }
        let mut found = Vec::new();
        for piece in stream.chunks(piece_bytes) {
            if channel.receive(piece).is_err() {
                return (found, true);
            }
            loop {
                match channel.next_packet() {
                    Ok(Some(packet)) => {
                        assert!(packet.len() <= limit);
                        found.push(packet.to_vec());
                    }
                    Ok(None) => break,
                    Err(_) => return (found, true),
                }
            }
        }
        (found, false)
    };
    assert_eq!(take(stream.len().max(1)), take(piece_bytes));
}

/// The two ends of TLS: a server, and a client that trusts whoever it is.
fn tls_ends() -> [TlsEnd; 2] {
    static SERVER: OnceLock<Arc<rustls::ServerConfig>> = OnceLock::new();
    static CLIENT: OnceLock<TlsClient> = OnceLock::new();
    let server = SERVER.get_or_init(|| {
        let pair = front::CertificatePair::generate(&["localhost"]).expect("a certificate");
        pair.to_tls_config().expect("a usable pair")
    });
    let client = CLIENT.get_or_init(|| TlsClient::unverified().expect("versions of the provider"));
    [TlsEnd::Server(Arc::clone(server)), client.end()]
}

/// Gives either end of TLS any bytes, and takes what the end wants to send.
fn handshakes(stream: &[u8]) {
    for end in tls_ends() {
        let mut channel = Channel::new(resources(), 1 << 16);
        channel.start_tls(end).expect("nothing was received yet");
        let received = channel.receive(stream);
        let _ = channel.take_tls_records();
        if received.is_ok() {
            // Without the other end's key there is no packet.
            assert!(channel.next_packet().is_ok_and(|packet| packet.is_none()));
        }
    }
}

/// Both ends of a connection.
struct Ends {
    client: Channel,
    server: Channel,
}

/// A packet of a conversation is at most so long.
const PACKET_BYTES_MAX: usize = FRAME_BYTES_MAX * 2;

/// Turns of a conversation, and packets of a turn.
const TURNS_MAX: usize = 8;

fn ends() -> Ends {
    Ends {
        client: Channel::new(resources(), PACKET_BYTES_MAX),
        server: Channel::new(resources(), PACKET_BYTES_MAX),
    }
}

fn ends_with_tls() -> Ends {
    let Ends {
        mut client,
        mut server,
    } = ends();
    let [server_end, client_end] = tls_ends();
    server.start_tls(server_end).expect("nothing was received");
    client.start_tls(client_end).expect("nothing was received");
    loop {
        let (asked, told) = (client.take_tls_records(), server.take_tls_records());
        if asked.is_empty() && told.is_empty() {
            return Ends { client, server };
        }
        server.receive(&asked).expect("a client's handshake");
        client.receive(&told).expect("a server's handshake");
    }
}

/// The ends send packets to each other, which arrive in pieces: each takes what the other sent.
fn conversation(
    choices: &mut Choices<'_>,
    Ends {
        mut client,
        mut server,
    }: Ends,
    compression: Option<CompressionMethod>,
    piece_bytes: usize,
) {
    if let Some(method) = compression {
        server.start_compression(method, InnerIds::Checked);
        client.start_compression(method, InnerIds::Followed);
    }
    // One packet of more than a frame is enough: it takes milliseconds.
    let mut may_be_long = true;
    for _ in 0..TURNS_MAX {
        if choices.is_empty() {
            return;
        }
        let mut payloads = || {
            let count = 1 + choices.below(4);
            let payload = |_| payload(choices, &mut may_be_long);
            (0..count).map(payload).collect::<Vec<_>>()
        };
        let command = payloads().remove(0);
        client.begin_command().expect("compression works");
        client.out().packet(&command);
        client.follow_sequence();
        server.expect_command();
        carry(&mut client, &mut server, &[command], piece_bytes);
        let reply = payloads();
        for payload in &reply {
            server.out().packet(payload);
        }
        carry(&mut server, &mut client, &reply, piece_bytes);
    }
}

fn payload(choices: &mut Choices<'_>, may_be_long: &mut bool) -> Vec<u8> {
    let bytes = choices.short();
    let frame_or_so = match choices.u8() {
        0xFF => FRAME_BYTES_MAX + 1,
        0xFE => FRAME_BYTES_MAX,
        0xFD => FRAME_BYTES_MAX - 1,
        times => return bytes.repeat(1 + usize::from(times)),
    };
    let mut payload = bytes.to_vec();
    if std::mem::take(may_be_long) {
        payload.resize(frame_or_so, b'x');
    }
    payload
}

/// Takes what `from` has written to `to`, which finds these packets in it and no more.
fn carry(from: &mut Channel, to: &mut Channel, payloads: &[Vec<u8>], piece_bytes: usize) {
    let bytes = from.seal().expect("compression and encryption work");
    let mut left = payloads.iter();
    // A long packet in pieces of a byte would be copied as often.
    for piece in bytes.chunks(piece_bytes.max(bytes.len() >> 9)) {
        to.receive(piece).expect("what an end has made");
        while let Some(packet) = to.next_packet().expect("what an end has made") {
            let sent = left.next().expect("no packet that was not sent");
            assert!(*packet == **sent);
        }
    }
    assert_eq!(left.len(), 0, "all packets have come");
}

/// What a client receives of a reply, and how the passing ended.
type Forwarded = (Vec<u8>, Option<std::mem::Discriminant<ForwardError>>, bool);

fn replies(choices: &mut Choices<'_>, compression: Option<CompressionMethod>, piece_bytes: usize) {
    let command = choices.u8();
    let sides = choices.u8();
    let side = |bits: u8| {
        let mut capabilities = Capabilities::PROTOCOL_41;
        if bits & 1 != 0 {
            capabilities = capabilities | Capabilities::DEPRECATE_EOF;
        }
        if bits & 2 != 0 {
            capabilities = capabilities | Capabilities::SESSION_TRACK;
        }
        capabilities
    };
    let agreed = Agreed::new(side(sides), side(sides >> 2)).expect("neither changes the layout");
    let stream = choices.rest();
    let exchange = || Exchange::new(command, agreed, 1);
    let whole = forwarded(exchange(), stream, stream.len().max(1), None);
    let mut pieces = match compression {
        None => forwarded(exchange(), stream, piece_bytes, None),
        Some(method) => {
            let stream = compressed(method, stream);
            forwarded(exchange(), &stream, piece_bytes, compression)
        }
    };
    if let Some(method) = compression {
        pieces.0 = decompressed(method, &pieces.0);
    }
    assert_eq!(whole.1, pieces.1);
    assert_eq!(whole.2, pieces.2);
    if whole.1.is_none() {
        assert!(whole.0 == pieces.0);
        assert_in_order(&whole.0);
    }
}

fn compressed(method: CompressionMethod, mut stream: &[u8]) -> Vec<u8> {
    let (mut compressor, mut ids, mut compressed) = (Compressor::new(), 0, Vec::new());
    while !stream.is_empty() {
        let used = compressor.compress_piece(method, stream, &mut ids, &mut compressed);
        stream = stream.get(used.expect("memory")..).unwrap_or_default();
    }
    compressed
}

fn decompressed(method: CompressionMethod, mut stream: &[u8]) -> Vec<u8> {
    let (mut decompressor, mut ids, mut plain) = (Decompressor::new(), 0, Vec::new());
    while !stream.is_empty() {
        match decompressor.next(method, stream, &mut ids, &mut plain) {
            Ok(DecompressStep::Piece { used }) => {
                stream = stream.get(used..).unwrap_or_default();
            }
            other => panic!("what a channel has compressed is whole: {other:?}"),
        }
    }
    plain
}

fn forwarded(
    mut exchange: Exchange,
    stream: &[u8],
    piece_bytes: usize,
    compression: Option<CompressionMethod>,
) -> Forwarded {
    let mut from = Channel::new(resources(), 1 << 24);
    let mut to = Channel::new(resources(), 1 << 24);
    if let Some(method) = compression {
        from.start_compression(method, InnerIds::Checked);
        to.start_compression(method, InnerIds::Checked);
    }
    let mut sent = Vec::new();
    for piece in stream.chunks(piece_bytes) {
        from.receive(piece).expect("what is received is only kept");
        loop {
            let passed = exchange.pass(&mut from, &mut to);
            sent.extend(to.seal().expect("compression works"));
            match passed {
                Ok(Passed::Full) => {}
                Ok(Passed::All) => break,
                Err(error) => {
                    let kind = std::mem::discriminant(&error);
                    return (sent, Some(kind), exchange.is_over());
                }
            }
        }
    }
    (sent, None, exchange.is_over())
}

/// A client finds whole packets whose ids follow each other. Of the last there may be a part.
fn assert_in_order(mut stream: &[u8]) {
    let mut deframer = Deframer::new(1 << 25);
    deframer.set_sequence(1);
    loop {
        match deframer.next(stream).expect("ids in order") {
            Framed::Incomplete { .. } => return,
            Framed::Packet { used, .. } => stream = stream.get(used..).unwrap_or_default(),
        }
    }
}
