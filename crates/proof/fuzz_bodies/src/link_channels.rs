//! Packets of a link in both roles, and replies that are forwarded: the same whatever the pieces
//! that bytes arrive in, with and without compression and TLS.

use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use link::{
    Agreed, Channel, Exchange, ForwardError, InnerIds, PacketMemory, Passed, Resources, TlsEnd,
};
use rustls::pki_types::ServerName;
use wire::{Capabilities, CompressionMethod, Deframer, Framed};

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
    match flavour >> 4 & 3 {
        0 => handshakes(choices.rest()),
        1 => replies(&mut choices, piece_bytes),
        2 => packets(
            compression,
            InnerIds::Checked,
            limit,
            piece_bytes,
            choices.rest(),
        ),
        _ => packets(
            compression,
            InnerIds::Followed,
            limit,
            piece_bytes,
            choices.rest(),
        ),
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

/// Either end of TLS may be told anything; what it wants to be sent is asked for, too.
fn handshakes(stream: &[u8]) {
    static SERVER: OnceLock<Arc<rustls::ServerConfig>> = OnceLock::new();
    static CLIENT: OnceLock<Arc<rustls::ClientConfig>> = OnceLock::new();
    let server = SERVER.get_or_init(|| {
        let pair = front::CertificatePair::generate(&["localhost"]).expect("a certificate");
        pair.to_tls_config().expect("a usable pair")
    });
    let client = CLIENT.get_or_init(|| {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions of the provider")
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        Arc::new(config)
    });
    let name = ServerName::try_from("localhost").expect("a host name");
    for end in [
        TlsEnd::Server(Arc::clone(server)),
        TlsEnd::Client(Arc::clone(client), name),
    ] {
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

/// What a client receives of a reply, and how the passing ended.
type Forwarded = (Vec<u8>, Option<std::mem::Discriminant<ForwardError>>, bool);

fn replies(choices: &mut Choices<'_>, piece_bytes: usize) {
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
    let agreed = Agreed {
        client: side(sides),
        server: side(sides >> 2),
    };
    let stream = choices.rest();
    let whole = forwarded(command, agreed, stream, stream.len().max(1));
    let pieces = forwarded(command, agreed, stream, piece_bytes);
    assert_eq!(whole.1, pieces.1);
    assert_eq!(whole.2, pieces.2);
    if whole.1.is_none() {
        assert_eq!(whole.0, pieces.0);
        assert_in_order(&whole.0);
    }
}

fn forwarded(command: u8, agreed: Agreed, stream: &[u8], piece_bytes: usize) -> Forwarded {
    let mut from = Channel::new(resources(), 1 << 24);
    let mut to = Channel::new(resources(), 1 << 24);
    let mut exchange = Exchange::new(command, agreed, 1);
    let mut sent = Vec::new();
    for piece in stream.chunks(piece_bytes) {
        from.receive(piece).expect("plain bytes are only kept");
        loop {
            let passed = exchange.pass(&mut from, &mut to);
            sent.extend(to.seal().expect("nothing to compress"));
            match passed {
                Ok(Passed::Full) => {}
                Ok(Passed::All) => break,
                Err(error) => {
                    return (
                        sent,
                        Some(std::mem::discriminant(&error)),
                        exchange.is_over(),
                    );
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
