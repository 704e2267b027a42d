//! Streams and listeners.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io::ErrorKind;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use super::{TestPath, on_each_driver, start};
use crate::*;

fn loopback() -> Address {
    Address::Tcp(([127, 0, 0, 1], 0).into())
}

/// Sends back what it receives until the peer ends.
async fn echo(mut stream: Stream) {
    let mut reply = Vec::new();
    loop {
        match stream.receive().await {
            Ok(bytes) if !bytes.is_empty() => reply.extend_from_slice(&bytes),
            _ => return,
        }
        match stream.send(reply).await {
            Ok(buffer) => reply = buffer,
            Err(_) => return,
        }
    }
}

/// The same as a session outside of a transaction.
async fn echo_free(mut stream: Stream) {
    loop {
        let received = poll_fn(|context| {
            let polled = stream.poll_receive(context);
            if polled.is_pending() {
                set_task_class(TaskClass::OutsideTransaction);
            }
            polled
        });
        let bytes = match received.await {
            Ok(bytes) if !bytes.is_empty() => bytes.to_vec(),
            _ => return,
        };
        if stream.send(bytes).await.is_err() {
            return;
        }
    }
}

/// Waits for its commit `count` times, for a while each time.
async fn commit(count: u32) {
    for _ in 0..count {
        let mut rest = pin!(sleep(Duration::from_millis(1)));
        poll_fn(|context| {
            set_task_class(TaskClass::Committing);
            rest.as_mut().poll(context)
        })
        .await;
    }
    // The class of the poll that ends the task must not matter.
    set_task_class(TaskClass::Committing);
}

fn echo_server(runtime: &Runtime, address: &Address) -> Address {
    let listener = Listener::bind(address).unwrap();
    let address = listener.address().clone();
    runtime.serve(listener, echo).unwrap();
    address
}

/// Receives exactly `count` bytes.
async fn receive_exactly(stream: &mut Stream, count: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(count);
    while bytes.len() < count {
        let received = stream.receive().await.unwrap();
        assert!(
            !received.is_empty(),
            "the peer ended after {} of {count}",
            bytes.len()
        );
        bytes.extend_from_slice(&received);
    }
    assert_eq!(bytes.len(), count);
    bytes
}

fn pattern(count: usize) -> Vec<u8> {
    let mut random = env::Random::new(1);
    (0..count)
        .map(|_| stdx::low_u8(random.next_u64()))
        .collect()
}

/// The ring registers four sockets in tests. One worker has the listener and both ends, so some
/// connections are registered and others are not, and slots are used again.
#[test]
fn sockets_that_the_ring_registers_and_others_are_served_and_closed() {
    on_each_driver(|io| {
        let runtime = start(io, 1);
        let address = echo_server(&runtime, &loopback());
        runtime.block_on_worker(0, move || async move {
            for count in [1, 2, 3, 8, 2] {
                let mut streams = Vec::new();
                for _ in 0..count {
                    streams.push(Stream::connect(&address).await.unwrap());
                }
                for (number, stream) in streams.iter_mut().enumerate() {
                    let sent = pattern(1 + number);
                    stream.send(sent.clone()).await.unwrap();
                    assert_eq!(receive_exactly(stream, 1 + number).await, sent);
                    stream
                        .send_many(vec![sent.clone(), sent.clone()])
                        .await
                        .unwrap();
                    receive_exactly(stream, 2 * sent.len()).await;
                }
                for stream in &mut streams {
                    stream.shut_down_sending().unwrap();
                    assert!(stream.receive().await.unwrap().is_empty());
                }
            }
        });
        runtime.handle().shutdown(Duration::from_secs(60));
    });
}

#[test]
fn echoes_over_tcp_and_unix_whatever_the_size() {
    on_each_driver(|io| {
        let runtime = start(io, 2);
        let path = TestPath::new("echo.sock");
        for address in [loopback(), Address::Unix(path.0.clone())] {
            let address = echo_server(&runtime, &address);
            runtime.block_on_worker(1, move || async move {
                let mut stream = Stream::connect(&address).await.unwrap();
                assert_eq!(
                    stream.peer_address().is_some(),
                    matches!(address, Address::Tcp(_))
                );
                stream.set_nodelay(false).unwrap();
                for count in [1, 100, 20_000] {
                    let sent = pattern(count);
                    let buffer = stream.send(sent.clone()).await.unwrap();
                    assert!(buffer.is_empty() && count <= buffer.capacity());
                    assert_eq!(receive_exactly(&mut stream, count).await, sent);
                }
                let many: Vec<Vec<u8>> = (0..200).map(pattern).collect();
                let all = many.concat();
                stream.send_many(many).await.unwrap();
                assert_eq!(receive_exactly(&mut stream, all.len()).await, all);
                stream.shut_down_sending().unwrap();
                assert!(stream.receive().await.unwrap().is_empty());
                assert!(stream.receive().await.unwrap().is_empty());
            });
        }
        runtime.handle().shutdown(Duration::from_secs(60));
        runtime.wait().unwrap();
        assert!(!path.0.exists(), "the socket's file goes with its runtime");
    });
}

/// Many tasks that commit, for ever or over and over, and messages to a worker that waits for it.
#[test]
fn many_commits_stop_no_other_task_and_are_counted_out() {
    on_each_driver(|io| {
        let runtime = start(io, 2);
        let listener = Listener::bind(&loopback()).unwrap();
        let address = listener.address().clone();
        runtime.serve(listener, echo_free).unwrap();
        for worker in 0..2 {
            runtime.block_on_worker(worker, || async {
                let cancelled: Vec<_> = (0..40).map(|_| spawn(commit(u32::MAX))).collect();
                for _ in 0..40 {
                    spawn_background(commit(u32::MAX));
                    spawn(commit(3));
                }
                spawn(async move {
                    sleep(Duration::from_millis(20)).await;
                    cancelled.iter().for_each(JoinHandle::cancel);
                });
            });
        }
        runtime.block_on_worker(0, move || async move {
            let clients: Vec<_> = (0..400)
                .map(|_| {
                    let address = address.clone();
                    spawn(async move {
                        let mut stream = Stream::connect(&address).await.unwrap();
                        for round in 0..20u8 {
                            stream.send(vec![round; 30]).await.unwrap();
                            assert_eq!(receive_exactly(&mut stream, 30).await, vec![round; 30]);
                        }
                    })
                })
                .collect();
            for client in clients {
                assert_eq!(call_on(1, worker_index).await, 1);
                client.await;
            }
        });
        runtime.handle().shutdown(Duration::from_secs(60));
        // A worker whose count is not nought at its end panics.
        runtime.wait().unwrap();
    });
}

#[test]
fn two_thousand_connections_at_once() {
    on_each_driver(|io| {
        const CONNECTION_COUNT: usize = 2000;
        let runtime = start(io, 2);
        let address = echo_server(&runtime, &loopback());
        let (load, other) = runtime.block_on_worker(0, move || async move {
            let mut streams = Vec::new();
            for _ in 0..CONNECTION_COUNT {
                streams.push(Stream::connect(&address).await.unwrap());
            }
            let tasks: Vec<_> = streams
                .into_iter()
                .map(|mut stream| {
                    spawn(async move {
                        for round in 0..3u8 {
                            stream.send(vec![round; 300]).await.unwrap();
                            assert_eq!(receive_exactly(&mut stream, 300).await, vec![round; 300]);
                        }
                        stream
                    })
                })
                .collect();
            let mut streams = Vec::new();
            for task in tasks {
                streams.push(task.await);
            }
            let shared = worker::current().shared.clone();
            (shared.connection_count(0), shared.connection_count(1))
        });
        assert_eq!(load + other, 2000);
        assert!(
            load.abs_diff(other) <= 2,
            "placement is even: {load} and {other}"
        );
    });
}

#[test]
fn what_is_posted_leaves_in_order_and_gives_its_buffers_back() {
    on_each_driver(|io| {
        let runtime = start(io, 1);
        let address = echo_server(&runtime, &loopback());
        runtime.block_on_worker(0, move || async move {
            let mut stream = Stream::connect(&address).await.unwrap();
            let mut sent = Vec::new();
            for count in [1, 300, 5000] {
                let bytes = pattern(count);
                sent.extend_from_slice(&bytes);
                let buffer = stream.send_by(bytes, SendMode::Post).await.unwrap();
                assert!(buffer.is_none_or(|buffer| buffer.is_empty()));
            }
            // Nothing to send, but it waits for what was posted.
            stream.send(Vec::new()).await.unwrap();
            assert!(!stream.is_posting());
            assert_eq!(receive_exactly(&mut stream, sent.len()).await, sent);
            let spent = spent_buffer();
            assert!(spent.is_some_and(|spent| spent.is_empty() && 0 < spent.capacity()));
        });
    });
}

#[test]
fn what_is_posted_to_a_peer_that_does_not_read_holds_the_next_send_back() {
    on_each_driver(|io| {
        let runtime = start(io, 1);
        let listener = Listener::bind(&loopback()).unwrap();
        let address = listener.address().clone();
        let serve = |mut stream: Stream| async move {
            let posted = Rc::new(Cell::new(0));
            set_local(posted.clone());
            loop {
                let sent = stream.send_by(vec![7; 60_000], SendMode::Post).await;
                if sent.is_err() {
                    return;
                }
                posted.set(posted.get() + 1);
            }
        };
        runtime.serve(listener, serve).unwrap();
        runtime.block_on_worker(0, move || async move {
            let mut slow = Stream::connect(&address).await.unwrap();
            let count = || local::<Cell<i32>>().map_or(0, |count| count.get());
            let mut before = -1;
            // Until the sockets are full.
            while before < count() {
                before = count();
                sleep(Duration::from_millis(20)).await;
            }
            // It goes on once the peer reads.
            let reading = async {
                while count() == before {
                    assert!(!slow.receive().await.unwrap().is_empty());
                    yield_now().await;
                }
            };
            timeout(Duration::from_secs(30), reading).await.unwrap();
        });
    });
}

#[test]
fn what_is_posted_to_a_peer_that_is_gone_fails_a_later_send() {
    on_each_driver(|io| {
        let runtime = start(io, 1);
        let listener = Listener::bind(&loopback()).unwrap();
        let address = listener.address().clone();
        let serve = |mut stream: Stream| async move {
            let failed = Rc::new(Cell::new(false));
            set_local(failed.clone());
            stream.hung_up().await;
            while stream.send_by(vec![7; 100], SendMode::Post).await.is_ok() {}
            assert!(stream.send_by(vec![7], SendMode::Post).await.is_err());
            failed.set(true);
        };
        runtime.serve(listener, serve).unwrap();
        runtime.block_on_worker(0, move || async move {
            drop(Stream::connect(&address).await.unwrap());
            let has_failed = || local::<Cell<bool>>().is_some_and(|failed| failed.get());
            while !has_failed() {
                yield_now().await;
            }
        });
    });
}

#[test]
fn a_cancelled_receive_loses_nothing() {
    on_each_driver(|io| {
        let runtime = start(io, 2);
        let listener = Listener::bind(&loopback()).unwrap();
        let address = listener.address().clone();
        let serve = |mut stream: Stream| async move {
            for chunk in pattern(5000).chunks(50) {
                stream.send(chunk.to_vec()).await.unwrap();
                if chunk[0].is_multiple_of(4) {
                    sleep(Duration::from_micros(500)).await;
                }
            }
        };
        runtime.serve(listener, serve).unwrap();
        runtime.block_on_worker(0, move || async move {
            let mut stream = Stream::connect(&address).await.unwrap();
            let mut bytes = Vec::new();
            while bytes.len() < 5000 {
                let received = timeout(Duration::from_micros(100), stream.receive()).await;
                if let Ok(received) = received {
                    bytes.extend_from_slice(&received.unwrap());
                }
            }
            assert_eq!(bytes, pattern(5000));
        });
    });
}

#[test]
fn a_slow_reader_holds_its_sender_back_and_nobody_else() {
    on_each_driver(|io| {
        let runtime = start(io, 1);
        let listener = Listener::bind(&loopback()).unwrap();
        let address = listener.address().clone();
        let serve = |mut stream: Stream| async move {
            let sent = Rc::new(Cell::new(0));
            set_local(sent.clone());
            for _ in 0..64 {
                stream.send(pattern(1 << 20)).await.unwrap();
                sent.set(sent.get() + 1);
            }
        };
        runtime.serve(listener, serve).unwrap();
        let fast = echo_server(&runtime, &loopback());
        runtime.block_on_worker(0, move || async move {
            let mut slow = Stream::connect(&address).await.unwrap();
            sleep(Duration::from_millis(20)).await;
            let mut other = Stream::connect(&fast).await.unwrap();
            other.send(vec![1]).await.unwrap();
            assert_eq!(receive_exactly(&mut other, 1).await, [1]);
            assert!(
                local::<Cell<i32>>().unwrap().get() < 64,
                "the sender is held back"
            );
            let expected = pattern(1 << 20).repeat(64);
            assert!(receive_exactly(&mut slow, 64 << 20).await == expected);
            assert!(slow.receive().await.unwrap().is_empty());
        });
    });
}

#[test]
fn a_send_tells_since_when_its_peer_takes_nothing() {
    on_each_driver(|io| {
        let runtime = start(io, 1);
        let listener = Listener::bind(&loopback()).unwrap();
        let address = listener.address().clone();
        let serve = |stream: Stream| async move {
            let stream = Rc::new(RefCell::new(stream));
            set_local(stream.clone());
            let mut unsent = Some(pattern(64 << 20));
            poll_fn(|context| {
                let mut stream = stream.borrow_mut();
                stream.poll_send_by(&mut unsent, SendMode::Wait, context)
            })
            .await
            .unwrap();
        };
        runtime.serve(listener, serve).unwrap();
        runtime.block_on_worker(0, move || async move {
            let mut slow = Stream::connect(&address).await.unwrap();
            let since = || local::<RefCell<Stream>>()?.borrow().stalled_since();
            // Until the sockets are full.
            let mut full = None;
            while full.is_none() || full != since() {
                full = since();
                sleep(Duration::from_millis(20)).await;
            }
            let mut taken = 0;
            while full == since() {
                taken += slow.receive().await.unwrap().len();
                assert!(taken < 64 << 20, "the sender sees that its peer takes some");
                yield_now().await;
            }
            receive_exactly(&mut slow, (64 << 20) - taken).await;
            while since().is_some() {
                yield_now().await;
            }
        });
    });
}

#[test]
fn more_receives_held_than_there_are_buffers() {
    on_each_driver(|io| {
        const CONNECTION_COUNT: usize = 1100;
        let runtime = start(io, 1);
        let listener = Listener::bind(&loopback()).unwrap();
        let address = listener.address().clone();
        // Holds what it received first until it receives the second, which all clients send later.
        let serve = |mut stream: Stream| async move {
            let first = stream.receive().await.unwrap();
            stream.send(vec![1]).await.unwrap();
            let second = stream.receive().await.unwrap();
            let reply = [&*first, &*second].concat();
            stream.send(reply).await.unwrap();
        };
        runtime.serve(listener, serve).unwrap();
        runtime.block_on_worker(0, move || async move {
            let mut streams = Vec::new();
            for _ in 0..CONNECTION_COUNT {
                let mut stream = Stream::connect(&address).await.unwrap();
                stream.send(b"first".to_vec()).await.unwrap();
                receive_exactly(&mut stream, 1).await;
                streams.push(stream);
            }
            for stream in &mut streams {
                stream.send(b"second".to_vec()).await.unwrap();
            }
            for mut stream in streams {
                assert_eq!(receive_exactly(&mut stream, 11).await, b"firstsecond");
            }
        });
    });
}

#[test]
fn a_client_ahead_of_its_session_is_held_back_and_loses_nothing() {
    on_each_driver(|io| {
        let runtime = start(io, 2);
        let listener = Listener::bind(&loopback()).unwrap();
        let address = listener.address().clone();
        let serve = |mut stream: Stream| async move {
            let mut bytes = stream.receive().await.unwrap().to_vec();
            while bytes.len() < 8 << 20 {
                if bytes.len().is_multiple_of(64) {
                    sleep(Duration::from_micros(200)).await;
                }
                bytes.extend_from_slice(&stream.receive().await.unwrap());
            }
            assert!(bytes == pattern(8 << 20));
            stream.send(vec![1]).await.unwrap();
        };
        runtime.serve(listener, serve).unwrap();
        runtime.block_on_worker(0, move || async move {
            let mut stream = Stream::connect(&address).await.unwrap();
            stream.send(pattern(8 << 20)).await.unwrap();
            receive_exactly(&mut stream, 1).await;
        });
    });
}

#[test]
fn a_flood_on_one_connection_does_not_starve_another() {
    on_each_driver(|io| {
        let runtime = start(io, 1);
        let address = echo_server(&runtime, &loopback());
        runtime.block_on_worker(0, move || async move {
            let mut flooding = Stream::connect(&address).await.unwrap();
            let flood = spawn_background(async move {
                loop {
                    flooding.send(vec![0; 1 << 16]).await.unwrap();
                    receive_exactly(&mut flooding, 1 << 16).await;
                }
            });
            let mut stream = Stream::connect(&address).await.unwrap();
            for _ in 0..20 {
                stream.send(vec![3]).await.unwrap();
                assert_eq!(receive_exactly(&mut stream, 1).await, [3]);
            }
            flood.cancel();
        });
    });
}

/// Bytes that a peer sent before do not hide its end, and are no end.
#[test]
fn a_watch_tells_an_end_of_sending_from_an_end() {
    on_each_driver(|io| {
        let path = TestPath::new("watch");
        for address in [loopback(), Address::Unix(path.0.clone())] {
            let is_local = matches!(address, Address::Unix(_));
            let runtime = start(io, 1);
            let listener = Listener::bind(&address).unwrap();
            let address = listener.address().clone();
            let serve = move |mut stream: Stream| async move {
                let watch = stream.watch();
                assert_eq!(&*receive_exactly(&mut stream, 2).await, b"ab");
                assert_eq!(watch.look(), PeerState::There, "more may come");
                stream.send(b"go".to_vec()).await.unwrap();
                stream.hung_up().await;
                let ended = if is_local {
                    PeerState::There
                } else {
                    PeerState::Ended
                };
                assert_eq!(watch.look(), ended);
                stream.send(b"end".to_vec()).await.unwrap();
                while watch.look() == ended {
                    // The peer answers what it does not read by a reset.
                    let _ = stream.send(b"more".to_vec()).await;
                    yield_now().await;
                }
                assert_eq!(watch.look(), PeerState::Gone);
                drop(stream);
                assert_eq!(watch.look(), PeerState::Gone, "it keeps nothing open");
            };
            runtime.serve(listener, serve).unwrap();
            runtime.block_on_worker(0, move || async move {
                let mut stream = Stream::connect(&address).await.unwrap();
                stream.send(b"ab".to_vec()).await.unwrap();
                assert_eq!(&*receive_exactly(&mut stream, 2).await, b"go");
                stream.send(b"unread".to_vec()).await.unwrap();
                stream.shut_down_sending().unwrap();
                stream.receive().await.unwrap();
            });
            runtime.handle().shutdown(Duration::from_secs(60));
            assert_eq!(runtime.wait().unwrap().cut_count, 0);
        }
    });
}

#[test]
fn a_peer_that_leaves_is_noticed_while_its_bytes_wait() {
    on_each_driver(|io| {
        let runtime = start(io, 2);
        let listener = Listener::bind(&loopback()).unwrap();
        let address = listener.address().clone();
        let serve = |stream: Stream| async move {
            let mut stream = stream;
            assert_eq!(&*receive_exactly(&mut stream, 2).await, b"ab");
            let gone = timeout(Duration::from_millis(2), stream.hung_up()).await;
            assert_eq!(gone, Err(Elapsed), "not yet");
            stream.send(b"go".to_vec()).await.unwrap();
            stream.hung_up().await;
            stream.hung_up().await;
            assert_eq!(&*receive_exactly(&mut stream, 2).await, b"cd");
            assert!(stream.receive().await.unwrap().is_empty());
        };
        runtime.serve(listener, serve).unwrap();
        runtime.block_on_worker(0, move || async move {
            let mut stream = Stream::connect(&address).await.unwrap();
            stream.send(b"ab".to_vec()).await.unwrap();
            assert_eq!(&*receive_exactly(&mut stream, 2).await, b"go");
            stream.send(b"cd".to_vec()).await.unwrap();
        });
        runtime.handle().shutdown(Duration::from_secs(60));
        assert_eq!(runtime.wait().unwrap().cut_count, 0);
    });
}

#[test]
fn a_send_given_up_half_way_breaks_the_stream() {
    on_each_driver(|io| {
        let runtime = start(io, 1);
        let listener = Listener::bind(&loopback()).unwrap();
        let address = listener.address().clone();
        let serve = |stream: Stream| async move {
            std::future::pending::<()>().await;
            drop(stream);
        };
        runtime.serve(listener, serve).unwrap();
        runtime.block_on_worker(0, move || async move {
            let mut stream = Stream::connect(&address).await.unwrap();
            let huge = vec![1; 64 << 20];
            assert!(
                timeout(Duration::from_millis(20), stream.send(huge))
                    .await
                    .is_err()
            );
            let error = stream.send(vec![1]).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::BrokenPipe);
            // It was not posted, so the next call waits for no posted send.
            assert!(!stream.is_posting());
            assert!(stream.send(Vec::new()).await.unwrap().is_empty());
        });
    });
}

#[test]
fn a_reset_is_an_error_or_the_end() {
    on_each_driver(|io| {
        let runtime = start(io, 1);
        let listener = Listener::bind(&loopback()).unwrap();
        let address = listener.address().clone();
        // Closed with unread bytes: the kernel sends a reset.
        runtime
            .serve(listener, |stream| async move {
                sleep(Duration::from_millis(2)).await;
                drop(stream);
            })
            .unwrap();
        runtime.block_on_worker(0, move || async move {
            let mut stream = Stream::connect(&address).await.unwrap();
            stream.send(vec![1; 100]).await.unwrap();
            stream.hung_up().await;
            match stream.receive().await {
                Ok(bytes) => assert!(bytes.is_empty()),
                Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
            }
            assert!(stream.send(vec![1; 100]).await.is_err());
        });
    });
}

#[test]
fn refusals_say_why() {
    on_each_driver(|io| {
        let runtime = start(io, 1);
        let listener = Listener::bind(&loopback()).unwrap();
        let address = listener.address().clone();
        let error = Listener::bind(&address).unwrap_err();
        assert_eq!(error.reason.kind(), ErrorKind::AddrInUse);
        assert!(
            error
                .to_string()
                .starts_with(&format!("cannot listen on {address}: "))
        );
        drop(listener);
        let absent = TestPath::new("absent.sock");
        let path = absent.0.clone();
        runtime.block_on_worker(0, move || async move {
            let error = Stream::connect(&address).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
            let error = Stream::connect(&Address::Unix(path)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound);
        });
    });
}

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "binding is done before there are workers"
)]
fn an_address_that_is_being_given_up_is_waited_for() {
    let dying = Listener::bind(&loopback()).unwrap();
    let address = dying.address().clone();
    let (tell, told) = std::sync::mpsc::channel();
    let waiting = std::thread::spawn(move || {
        tell.send(()).unwrap();
        Listener::bind(&address).map(|listener| listener.address().clone())
    });
    told.recv().unwrap();
    let address = dying.address().clone();
    drop(dying);
    assert_eq!(waiting.join().unwrap().unwrap(), address);
}

#[test]
fn a_unix_socket_left_behind_is_replaced_and_a_live_one_is_not() {
    let path = TestPath::new("stale.sock");
    let address = Address::Unix(path.0.clone());
    let first = Listener::bind(&address).unwrap();
    assert_eq!(
        Listener::bind(&address).unwrap_err().reason.kind(),
        ErrorKind::AddrInUse
    );
    drop(first);
    assert!(path.0.exists());
    Listener::bind(&address).unwrap();
    // A file that is no socket belongs to another program.
    std::fs::remove_file(&path.0).unwrap();
    std::fs::write(&path.0, "precious").unwrap();
    let refused = Listener::bind(&address).unwrap_err();
    assert_eq!(refused.reason.kind(), ErrorKind::AddrInUse);
    assert_eq!(std::fs::read(&path.0).unwrap(), b"precious");
}

#[test]
fn the_end_closes_listeners_and_lets_sessions_finish() {
    on_each_driver(|io| {
        let runtime = start(io, 2);
        let address = echo_server(&runtime, &loopback());
        let handle = runtime.handle().clone();
        runtime.block_on_worker(0, move || async move {
            let mut stream = Stream::connect(&address).await.unwrap();
            stream.send(vec![1]).await.unwrap();
            receive_exactly(&mut stream, 1).await;
            handle.shutdown(Duration::from_secs(60));
            shutdown().await;
            // The session lives on; the listeners close as soon as their tasks have run.
            stream.send(vec![2]).await.unwrap();
            assert_eq!(receive_exactly(&mut stream, 1).await, [2]);
            while Stream::connect(&address).await.is_ok() {
                sleep(Duration::from_millis(1)).await;
            }
        });
        assert_eq!(runtime.wait().unwrap().cut_count, 0);
    });
}

#[test]
fn a_listener_that_is_closed_keeps_its_clients() {
    on_each_driver(|io| {
        let runtime = start(io, 2);
        let path = TestPath::new("closed.sock");
        for address in [loopback(), Address::Unix(path.0.clone())] {
            let listener = Listener::bind(&address).unwrap();
            let address = listener.address().clone();
            let serving = runtime.handle().serve(listener, echo).unwrap();
            assert_eq!(serving.address(), &address);
            let bound = address.clone();
            runtime.block_on_worker(0, move || async move {
                let mut stream = Stream::connect(&address).await.unwrap();
                stream.send(vec![1]).await.unwrap();
                receive_exactly(&mut stream, 1).await;
                serving.close();
                while Stream::connect(&address).await.is_ok() {
                    sleep(Duration::from_millis(1)).await;
                }
                stream.send(vec![2]).await.unwrap();
                assert_eq!(receive_exactly(&mut stream, 1).await, [2]);
            });
            // The address is free.
            Listener::bind(&bound).unwrap();
        }
    });
}
