//! A proxy of two links between peers that end the connection in each way, or that send and take
//! nothing: what may be retried, and what must not stand still. Over real sockets, on each driver.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    reason = "the helpers of these tests fail as the tests do"
)]

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use errcode::Retry;
use link::{
    Agreed, Disconnect, Exchange, ForwardError, Limit, Link, PacketMemory, PeerRole, Resources,
    Turn, UNCOUNTED_BYTES,
};
use runtime::{Address, Io, Listener, Runtime, Stream, TaskClass};
use wire::{
    AuthSwitch, Capabilities, ColumnDefinition, ColumnType, CommandByte, HEADER_BYTES, LocalInfile,
    PacketWriter, ResultHead,
};

const PACKET_BYTES_MAX: usize = 1 << 24;

/// Longer than a loaded machine needs; a hang is found by it.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes of a command that may be on its way when its server goes.
const LONG_COMMAND_BYTES: usize = PACKET_BYTES_MAX - 100;

/// How long the proxy waits for a reply in the test of that limit.
const SHORT: Duration = Duration::from_millis(50);

/// More than the sockets between two peers can hold, by Linux' own limits (4 MiB to be sent and 6
/// MiB received, twice).
const LONG_BYTES: usize = 40 << 20;

const BINLOG_DUMP: u8 = 18;

/// What the proxy tells a client whose command failed.
const FAILED: &[u8] = b"\xfffailed";

const CAPABILITIES: Capabilities = Capabilities::PROTOCOL_41;

/// What came of a command that was passed on.
type Outcome = Result<(), ForwardError>;

fn resources() -> Rc<Resources> {
    runtime::local().expect("each worker has them")
}

/// A proxy to the server at `server`, its address, and what comes of its commands.
fn start(
    io: Io,
    server: SocketAddr,
    patience: Duration,
) -> (Runtime, SocketAddr, Receiver<Outcome>) {
    let options = runtime::Options {
        worker_count: 1,
        io,
        pin: false,
        helper_count: 1,
        ..runtime::Options::default()
    };
    let runtime = Runtime::start(options, || {
        let memory = PacketMemory::new(64 << 20);
        runtime::set_local(Resources::new(memory, Arc::default()));
    });
    let runtime = runtime.unwrap();
    let listener = Listener::bind(&Address::Tcp(([127, 0, 0, 1], 0).into())).unwrap();
    let Address::Tcp(address) = *listener.address() else {
        unreachable!("it was bound to such an address")
    };
    let (outcome, outcomes): (Sender<Outcome>, _) = channel();
    let serve = move |stream| {
        let outcome = outcome.clone();
        async move {
            let forwarded = forward(stream, server, patience).await;
            outcome.send(forwarded).unwrap();
        }
    };
    runtime.serve(listener, serve).unwrap();
    (runtime, address, outcomes)
}

fn end(runtime: Runtime) {
    runtime.handle().shutdown(Duration::ZERO);
    runtime.wait().unwrap();
}

fn link_of(stream: Stream, role: PeerRole) -> Link {
    Link::new(stream, role, &resources(), PACKET_BYTES_MAX, TIMEOUT)
}

/// Passes one command on, and its reply back. Tells the client if it failed, where it may.
async fn forward(stream: Stream, server: SocketAddr, patience: Duration) -> Outcome {
    let mut client = link_of(stream, PeerRole::Client);
    let stream = Stream::connect(&Address::Tcp(server)).await.unwrap();
    let mut server = link_of(stream, PeerRole::Server);
    let outcome = exchange(&mut client, &mut server, patience).await;
    if outcome.is_err() && client.is_usable() {
        client.out().packet(FAILED);
        // A client that is gone need not know.
        let _ = client.flush().await;
    }
    outcome
}

async fn exchange(client: &mut Link, server: &mut Link, patience: Duration) -> Outcome {
    let class = TaskClass::OutsideTransaction;
    let peeked = client.peek_command(TIMEOUT, class).await;
    peeked.map_err(ForwardError::Client)?;
    let agreed = Agreed::new(CAPABILITIES, CAPABILITIES).unwrap();
    let mut exchange = Exchange::command(client, server, agreed).await?;
    if exchange.is_stream() {
        exchange.stream(client, server, TIMEOUT).await?;
        assert!(client.is_at_rest() && server.is_at_rest());
        return Ok(());
    }
    loop {
        let limit = Limit::after(patience);
        match exchange.reply(client, server, limit).await? {
            Turn::Over(_) => return Ok(()),
            Turn::File => exchange.file(client, server).await?,
            Turn::Authentication => {
                exchange.authentication(client, server).await?;
            }
        }
    }
}

fn query(bytes: usize) -> Vec<u8> {
    let mut payload = vec![b' '; 1 + bytes];
    payload[0] = CommandByte::QUERY;
    packets(0, |out| out.packet(&payload))
}

fn packets(sequence: u8, write: impl FnOnce(&mut PacketWriter)) -> Vec<u8> {
    let mut out = PacketWriter::new();
    out.set_sequence(sequence);
    write(&mut out);
    out.take()
}

/// Takes a whole packet.
fn take_packet(peer: &mut TcpStream) -> Vec<u8> {
    let mut header = [0; 4];
    peer.read_exact(&mut header).unwrap();
    let mut payload = vec![0; usize::from(header[0]) | usize::from(header[1]) << 8];
    peer.read_exact(&mut payload).unwrap();
    payload
}

/// Waits for bytes and leaves them. Closed then, a socket is reset.
fn wait_for_bytes(peer: &mut TcpStream) {
    assert_eq!(peer.peek(&mut [0]).unwrap(), 1);
}

/// Waits until the other end closes.
fn wait_for_end(peer: &mut TcpStream) {
    read_to_end(peer);
}

/// As [`wait_for_end`]; returns what comes before.
fn read_to_end(peer: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A reset also counts as an end.
    let _ = peer.read_to_end(&mut bytes);
    bytes
}

fn ask_for_file(server: &mut TcpStream) {
    take_packet(server);
    let request = LocalInfile { file_name: b"f" };
    let request = packets(1, |out| request.encode(out));
    server.write_all(&request).unwrap();
}

fn ask_for_password(server: &mut TcpStream) {
    take_packet(server);
    let switch = AuthSwitch {
        plugin: b"mysql_native_password",
        data: &[1; 21],
    };
    let switch = packets(1, |out| switch.encode(out));
    server.write_all(&switch).unwrap();
}

/// A row of 300 bytes of which ten come.
fn half_a_row(server: &mut TcpStream) {
    take_packet(server);
    let mut reply = packets(1, |out| {
        ResultHead::encode(out, CAPABILITIES, 1);
        ColumnDefinition::new(b"c", ColumnType::String).encode(out, CAPABILITIES);
        wire::end_columns(out, CAPABILITIES, wire::StatusFlags::AUTOCOMMIT, 0);
        out.packet(&[b'r'; 300]);
    });
    reply.truncate(reply.len() - 290);
    server.write_all(&reply).unwrap();
}

/// How a server ends, and what the proxy makes of it.
struct Case {
    name: &'static str,
    command: Vec<u8>,
    /// What the client sends once something of a reply has come.
    answer: Vec<u8>,
    server: fn(&mut TcpStream),
    is_retried: bool,
}

impl Case {
    fn new(name: &'static str, is_retried: bool, server: fn(&mut TcpStream)) -> Case {
        Case {
            name,
            command: query(10),
            answer: Vec::new(),
            server,
            is_retried,
        }
    }
}

fn change_user() -> Vec<u8> {
    packets(0, |out| {
        out.packet(&[CommandByte::CHANGE_USER, b'u', 0, 0, 0])
    })
}

fn cases() -> Vec<Case> {
    let closed = |server: &mut TcpStream| drop(take_packet(server));
    vec![
        Case::new("closed before a reply", true, closed),
        Case::new("reset before a reply", true, wait_for_bytes),
        Case {
            command: query(LONG_COMMAND_BYTES),
            ..Case::new("reset before a long command has come", true, wait_for_bytes)
        },
        Case::new("closed in a header", false, |server| {
            take_packet(server);
            server.write_all(&[1, 0]).unwrap();
        }),
        Case::new("closed behind a header", false, |server| {
            take_packet(server);
            server.write_all(&[1, 0, 0, 1]).unwrap();
        }),
        Case::new("closed in a row", false, half_a_row),
        Case::new("nothing in time", false, wait_for_end),
        Case::new("a row that does not end in time", false, |server| {
            half_a_row(server);
            wait_for_end(server);
        }),
        Case {
            answer: packets(2, |out| out.packet(&vec![b'f'; 8 << 20])),
            ..Case::new("reset in a file", false, |server| {
                ask_for_file(server);
                wait_for_bytes(server);
            })
        },
        Case {
            answer: packets(2, |out| {
                out.packet(b"a line");
                out.packet(b"");
            }),
            ..Case::new("closed behind a file", false, |server| {
                ask_for_file(server);
                take_packet(server);
                take_packet(server);
            })
        },
        Case {
            command: change_user(),
            answer: packets(2, |out| out.packet(&[2; 20])),
            ..Case::new("closed in a login", false, ask_for_password)
        },
        Case {
            command: change_user(),
            answer: packets(2, |out| out.packet(&[2; 20])),
            ..Case::new("reset in a login", false, |server| {
                ask_for_password(server);
                wait_for_bytes(server);
            })
        },
    ]
}

/// Sends a command, and what the server asks for. Returns what comes then.
fn ask(client: &mut TcpStream, case: &Case) -> Vec<u8> {
    // A server that is reset takes not all of it.
    let _ = client.write_all(&case.command);
    if !case.answer.is_empty() {
        take_packet(client);
        let _ = client.write_all(&case.answer);
    }
    read_to_end(client)
}

#[test]
fn only_a_command_without_any_reply_may_be_retried_or_answered() {
    for io in [Io::Epoll, Io::Auto] {
        for case in cases() {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let patience = match case.name.contains("in time") {
                true => SHORT,
                false => TIMEOUT,
            };
            let server = listener.local_addr().unwrap();
            let (runtime, proxy, outcomes) = start(io, server, patience);
            let (outcome, answer) = thread::scope(|scope| {
                scope.spawn(|| (case.server)(&mut listener.accept().unwrap().0));
                let mut client = TcpStream::connect(proxy).unwrap();
                let case = &case;
                let answer = scope.spawn(move || ask(&mut client, case));
                let outcome = outcomes.recv_timeout(TIMEOUT).unwrap();
                (outcome, answer.join().unwrap())
            });
            let failed = packets(1, |out| out.packet(FAILED));
            let is_untouched = case.answer.is_empty() && !case.name.contains("row");
            if case.command.len() < LONG_COMMAND_BYTES {
                assert_eq!(answer == failed, is_untouched, "{}: {answer:?}", case.name);
            }
            assert!(is_untouched || !answer.ends_with(FAILED), "{}", case.name);
            let error = outcome.expect_err(case.name);
            let expected = match case.is_retried {
                true => Retry::IfRead,
                false => Retry::Never,
            };
            assert_eq!(error.retry(), expected, "{}: {error:?}", case.name);
            let is_of_server = match &error {
                ForwardError::Unanswered(_) => case.is_retried,
                ForwardError::Server(Disconnect::Idle) => patience == SHORT,
                ForwardError::Server(_) => patience != SHORT,
                _ => false,
            };
            assert!(is_of_server, "{}: {error:?}", case.name);
            end(runtime);
        }
    }
}

/// A server that has gone, or has said why it goes, is found before a command is sent to it.
#[test]
fn a_server_that_ended_is_found_before_a_command() {
    for io in [Io::Epoll, Io::Auto] {
        for last_word in [&b""[..], b"\x03\0\0\0bye", b"\x03\0"] {
            let (runtime, _, _outcomes) = start(io, ([127, 0, 0, 1], 0).into(), TIMEOUT);
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = Address::Tcp(listener.local_addr().unwrap());
            thread::scope(|scope| {
                let (go, gone) = channel();
                scope.spawn(move || {
                    let (mut peer, _) = listener.accept().unwrap();
                    gone.recv_timeout(TIMEOUT).unwrap();
                    peer.write_all(last_word).unwrap();
                });
                runtime.block_on_worker(0, move || async move {
                    let stream = Stream::connect(&address).await.unwrap();
                    let mut server = link_of(stream, PeerRole::Server);
                    assert!(!server.is_stale(), "it is there");
                    go.send(()).unwrap();
                    while !server.is_stale() {
                        runtime::yield_now().await;
                    }
                    assert!(server.is_stale(), "it stays gone");
                    while server.has_begun_packet() == last_word.is_empty() {
                        assert!(server.is_stale());
                        runtime::yield_now().await;
                    }
                });
            });
            end(runtime);
        }
    }
}

/// A command is waited for as far as is asked. It takes memory if that is much.
#[test]
fn a_peeked_command_is_waited_for_as_far_as_is_asked() {
    const BYTES: usize = 100_000;
    let packet = query(BYTES - 1);
    for io in [Io::Epoll, Io::Auto] {
        let (runtime, _, _outcomes) = start(io, ([127, 0, 0, 1], 0).into(), TIMEOUT);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap());
        let packet = &packet;
        thread::scope(|scope| {
            let (ask, asked) = channel();
            scope.spawn(move || {
                let (mut peer, _) = listener.accept().unwrap();
                let mut sent = 0;
                for bytes in asked {
                    peer.write_all(&packet[sent..bytes]).unwrap();
                    sent = bytes;
                }
            });
            runtime.block_on_worker(0, move || async move {
                let memory = PacketMemory::new(64 << 20);
                let resources = Resources::new(memory.clone(), Arc::default());
                let stream = Stream::connect(&address).await.unwrap();
                let (role, max) = (PeerRole::Client, PACKET_BYTES_MAX);
                let mut link = Link::new(stream, role, &resources, max, TIMEOUT);
                ask.send(HEADER_BYTES + 1).unwrap();
                let class = TaskClass::OutsideTransaction;
                link.peek_command(TIMEOUT, class).await.unwrap();
                let most = UNCOUNTED_BYTES;
                for bytes in [1, 40, most - 1, most, most + 1, BYTES] {
                    ask.send(HEADER_BYTES + bytes).unwrap();
                    link.receive_peeked(bytes).await.unwrap();
                    let (body, is_whole) = link.peeked_body();
                    assert_eq!((1 + body.len(), is_whole), (bytes, bytes == BYTES));
                    assert_eq!(memory.used() != 0, most < bytes, "{bytes}");
                }
                link.receive_peeked(BYTES + 1).await.unwrap();
            });
        });
        end(runtime);
    }
}

/// A peer that has not even accepted the connection. Whoever gives up in the middle of a send finds
/// the link unusable.
#[test]
fn a_send_that_was_given_up_is_the_last() {
    for io in [Io::Epoll, Io::Auto] {
        let (runtime, _, _outcomes) = start(io, ([127, 0, 0, 1], 0).into(), TIMEOUT);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap());
        runtime.block_on_worker(0, move || async move {
            let stream = Stream::connect(&address).await.unwrap();
            let mut link = link_of(stream, PeerRole::Server);
            loop {
                assert!(link.is_usable(), "what was posted is sent meanwhile");
                link.out().packet(&[0; 60_000]);
                if runtime::timeout(SHORT, link.post()).await.is_err() {
                    break;
                }
            }
            assert!(!link.is_usable());
            link.out().packet(b"next");
            let refused = [link.post().await, link.flush().await];
            for refused in refused {
                assert!(matches!(refused, Err(Disconnect::Engaged)), "{refused:?}");
            }
        });
        end(runtime);
        drop(listener);
    }
}

/// Packets of a dump, of which the first has the id `sequence`, so many that the sockets do not
/// hold them.
fn long_stream(sequence: u8) -> Vec<u8> {
    let event = [0; 60_000];
    packets(sequence, |out| {
        for _ in 0..LONG_BYTES / event.len() {
            out.packet(&event);
        }
    })
}

/// The last packet of a dump, behind `count` others.
fn end_of_stream(count: usize) -> Vec<u8> {
    let sequence = u8::try_from((1 + count) % 256).unwrap();
    packets(sequence, |out| out.packet(&[0xFE, 0, 0, 2, 0]))
}

/// What one side of a dump does first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// It sends all it has before it reads.
    SendThenRead,
    /// It does both at once.
    Both,
}

/// Sends `bytes` and reads as many as `expected` has; what it reads is that.
fn exchange_all(peer: &TcpStream, order: Order, bytes: &[u8], expected: &[u8]) {
    let send = || (&*peer).write_all(bytes).unwrap();
    let read = || {
        let mut found = vec![0; expected.len()];
        (&*peer).read_exact(&mut found).unwrap();
        assert!(found == expected);
    };
    match order {
        Order::SendThenRead => {
            send();
            read();
        }
        Order::Both => {
            thread::scope(|scope| {
                scope.spawn(send);
                read();
            });
        }
    }
}

/// A replica that does not read while it acknowledges, and a server that does not read
/// acknowledgements while it sends events: neither keeps the other direction from going on.
#[test]
fn a_dump_goes_both_ways_at_once() {
    let orders = [
        (Order::SendThenRead, Order::Both),
        (Order::Both, Order::SendThenRead),
    ];
    let (events, acknowledgements) = (long_stream(1), long_stream(0));
    let end_of_events = end_of_stream(LONG_BYTES / 60_000);
    for io in [Io::Epoll, Io::Auto] {
        for (client_order, server_order) in orders {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let (runtime, proxy, outcomes) = start(io, listener.local_addr().unwrap(), TIMEOUT);
            thread::scope(|scope| {
                scope.spawn(|| {
                    let (mut server, _) = listener.accept().unwrap();
                    assert_eq!(take_packet(&mut server), [BINLOG_DUMP]);
                    exchange_all(&server, server_order, &events, &acknowledgements);
                    server.write_all(&end_of_events).unwrap();
                    wait_for_end(&mut server);
                });
                let mut client = TcpStream::connect(proxy).unwrap();
                client
                    .write_all(&packets(0, |out| out.packet(&[BINLOG_DUMP])))
                    .unwrap();
                exchange_all(&client, client_order, &acknowledgements, &events);
                assert_eq!(take_packet(&mut client)[0], 0xFE);
                client.shutdown(Shutdown::Write).unwrap();
                outcomes.recv_timeout(TIMEOUT).unwrap().unwrap();
            });
            end(runtime);
        }
    }
}
