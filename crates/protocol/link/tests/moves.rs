//! Links go from one worker to another and back, after every reply, while their clients ask without
//! pause: 10,000 moves on each driver, plain, over TLS, and compressed. No byte is lost, and each
//! comes in its order.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    reason = "the helpers of these tests fail as the tests do"
)]

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use link::{
    DetachedLink, Disconnect, InnerIds, Limit, Link, PacketMemory, PeerRole, Resources, TlsEnd,
};
use runtime::{Address, Io, Listener, Runtime, Stream};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use wire::CompressionMethod;

/// Links of each kind.
const LINK_COUNT: u64 = 4;

/// Moves of each link.
const MOVE_COUNT: u64 = 625;

const MOVES_IN_ALL: u64 = LINK_COUNT * MOVE_COUNT * FLAVOURS.len() as u64;
const _: () = assert!(MOVES_IN_ALL == 10_000);

const PACKET_BYTES_MAX: usize = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(60);

/// What lies under the packets.
#[derive(Debug, Clone, Copy)]
struct Flavour {
    has_tls: bool,
    compression: Option<CompressionMethod>,
}

const FLAVOURS: [Flavour; 4] = [
    Flavour {
        has_tls: false,
        compression: None,
    },
    Flavour {
        has_tls: true,
        compression: None,
    },
    Flavour {
        has_tls: false,
        compression: Some(CompressionMethod::Zlib),
    },
    Flavour {
        has_tls: true,
        compression: Some(CompressionMethod::Zstd { level: 1 }),
    },
];

/// A server's and a client's configuration that trust each other.
fn tls() -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let pair = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = PrivateKeyDer::try_from(pair.signing_key.serialize_der()).unwrap();
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![pair.cert.der().clone()], key)
        .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(pair.cert.der().clone()).unwrap();
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (Arc::new(server), Arc::new(client))
}

fn start(io: Io, worker_count: usize) -> Runtime {
    let options = runtime::Options {
        worker_count,
        io,
        pin: false,
        helper_count: 1,
        ..runtime::Options::default()
    };
    Runtime::start(options, || {
        let memory = PacketMemory::new(64 << 20);
        runtime::set_local(Resources::new(memory, Arc::default()));
    })
    .unwrap()
}

fn resources() -> Rc<Resources> {
    runtime::local().expect("each worker has them")
}

/// A link of the flavour, from either end.
async fn open(stream: Stream, flavour: Flavour, end: TlsEnd) -> Link {
    let role = match end {
        TlsEnd::Client(..) => PeerRole::Server,
        TlsEnd::Server(_) => PeerRole::Client,
    };
    let mut link = Link::new(stream, role, &resources(), PACKET_BYTES_MAX, TIMEOUT);
    if flavour.has_tls {
        let mut limit = Limit::precisely_after(TIMEOUT);
        link.start_tls(end, &mut limit).await.unwrap();
    }
    if let Some(method) = flavour.compression {
        link.start_compression(method, InnerIds::Checked);
    }
    link
}

/// Sends one packet back, if the client is not gone.
async fn answer(link: &mut Link) -> Result<(), Disconnect> {
    link.expect_command();
    let packet = link.receive_packet(Limit::after(TIMEOUT)).await?;
    match packet.len() % 4 {
        0 => write_in_pieces(link, &packet),
        _ => link.out().packet(&packet),
    }
    link.post().await
}

fn write_in_pieces(link: &mut Link, mut payload: &[u8]) {
    let mut packet = link.begin_long_packet();
    while !payload.is_empty() {
        match packet.append(payload) {
            0 => packet.add_piece(500),
            count => payload = &payload[count..],
        }
    }
    link.append_long_packet(packet);
}

/// Answers, and moves to the other worker.
async fn serve(mut link: Link) {
    // The client goes when it has had all its answers.
    if answer(&mut link).await.is_err() {
        return;
    }
    let detached = link.detach().await.unwrap();
    let other = 1 - runtime::worker_index();
    runtime::send_to(other, Box::new(move || arrive(detached)));
}

fn arrive(detached: DetachedLink) {
    let link = detached.attach(&resources()).unwrap();
    runtime::spawn(Box::pin(serve(link)) as std::pin::Pin<Box<dyn Future<Output = ()>>>);
}

/// Asks without pause; each question is another, of another length.
async fn ask(address: Address, flavour: Flavour, end: TlsEnd, number: u64) -> u64 {
    let stream = Stream::connect(&address).await.unwrap();
    let mut link = open(stream, flavour, end).await;
    let mut random = env::Random::new(number);
    for move_index in 0..MOVE_COUNT {
        let length = usize::try_from(random.next_u64() % 3000).unwrap() + 8;
        let mut question = move_index.to_le_bytes().to_vec();
        question.resize_with(length, || random.next_u64().to_le_bytes()[0] & 15);
        link.begin_command().unwrap();
        link.out().packet(&question);
        link.follow_sequence();
        link.flush().await.unwrap();
        let answer = link.receive_packet(Limit::after(TIMEOUT)).await.unwrap();
        assert!(*answer == question, "{flavour:?} {number} {move_index}");
    }
    MOVE_COUNT
}

fn moves(io: Io) {
    let (server_tls, client_tls) = tls();
    let name = ServerName::try_from("localhost").unwrap();
    let (servers, clients) = (start(io, 2), start(io, 1));
    let mut addresses = Vec::new();
    for flavour in FLAVOURS {
        let listener = Listener::bind(&Address::Tcp(([127, 0, 0, 1], 0).into())).unwrap();
        addresses.push((flavour, listener.address().clone()));
        let config = Arc::clone(&server_tls);
        let accept = move |stream| {
            let end = TlsEnd::Server(Arc::clone(&config));
            async move { serve(open(stream, flavour, end).await).await }
        };
        servers.serve(listener, accept).unwrap();
    }
    let moved = clients.block_on_worker(0, move || async move {
        let mut asking = Vec::new();
        for (flavour, address) in addresses {
            for number in 0..LINK_COUNT {
                let end = TlsEnd::Client(Arc::clone(&client_tls), name.clone());
                let (address, flavour) = (address.clone(), flavour);
                asking.push(runtime::spawn(ask(address, flavour, end, number)));
            }
        }
        let mut moved = 0;
        for client in asking {
            moved += client.await;
        }
        moved
    });
    assert_eq!(moved, MOVES_IN_ALL);
    for runtime in [clients, servers] {
        runtime.handle().shutdown(Duration::ZERO);
        runtime.wait().unwrap();
    }
}

#[test]
fn ten_thousand_moves_over_epoll_lose_no_byte() {
    moves(Io::Epoll);
}

/// Where a container refuses io_uring, this is epoll again.
#[test]
fn ten_thousand_moves_over_io_uring_lose_no_byte() {
    moves(Io::Auto);
}

/// A link in the middle of a packet, or with something unsent, does not move.
#[test]
fn only_links_at_rest_move() {
    let runtime = start(Io::Epoll, 1);
    let listener = Listener::bind(&Address::Tcp(([127, 0, 0, 1], 0).into())).unwrap();
    let address = listener.address().clone();
    runtime.serve(listener, half_a_packet).unwrap();
    runtime.block_on_worker(0, move || async move {
        let connect = || async {
            let stream = Stream::connect(&address).await.unwrap();
            let resources = resources();
            Link::new(
                stream,
                PeerRole::Server,
                &resources,
                PACKET_BYTES_MAX,
                TIMEOUT,
            )
        };
        let mut unsent = connect().await;
        unsent.out().packet(b"unsent");
        let moved = unsent.detach().await;
        assert!(matches!(moved, Err(Disconnect::Engaged)));

        let mut unread = connect().await;
        let limit = Limit::after(Duration::from_millis(50));
        let packet = unread.receive_packet(limit).await;
        assert!(matches!(packet, Err(Disconnect::Idle)));
        assert!(!unread.is_at_rest());
        let moved = unread.detach().await;
        assert!(matches!(moved, Err(Disconnect::Engaged)));
    });
    runtime.handle().shutdown(Duration::ZERO);
    runtime.wait().unwrap();
}

async fn half_a_packet(mut stream: Stream) {
    // The peer is there until it has had it.
    let _ = stream.send(b"\x09\0\0\0half".to_vec()).await;
    runtime::shutdown().await;
}
