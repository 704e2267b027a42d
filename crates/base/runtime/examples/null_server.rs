//! A MySQL server that knows nothing. It greets, takes any login and answers every command with the
//! same row of 120 bytes. So a query costs only what the event loop and the kernel cost.
//!
//! `cargo run --release -p runtime --example null_server -- uring 2 4100`, then for instance
//! `sysbench oltp_point_select --db-ps-mode=disable --mysql-host=127.0.0.1 --mysql-port=4100
//! --skip-trx --tables=1 --table-size=1000 --threads=64 --time=10 run`. The server ends when its
//! standard input ends. Then it prints the number of queries and the processor time of each.

use std::io::{Read as _, Write as _};
use std::rc::Rc;
use std::time::Duration;

use metrics::Counter;
use runtime::{Address, Io, Listener, Options, Runtime, Stream};

/// One column, one row of 120 characters, in the text protocol with EOF packets.
fn canned_reply() -> Vec<u8> {
    let mut reply = Vec::new();
    packet(&mut reply, 1, &[1]);
    let mut column = Vec::new();
    for text in ["def", "sbtest", "sbtest1", "sbtest1", "c", "c"] {
        lenenc(&mut column, text.as_bytes());
    }
    column.extend_from_slice(&[0x0C, 33, 0, 0x68, 1, 0, 0, 0xFE, 1, 0, 0, 0, 0]);
    packet(&mut reply, 2, &column);
    packet(&mut reply, 3, &[0xFE, 0, 0, 2, 0]);
    let mut row = Vec::new();
    lenenc(&mut row, &[b'7'; 120]);
    packet(&mut reply, 4, &row);
    packet(&mut reply, 5, &[0xFE, 0, 0, 2, 0]);
    reply
}

/// Protocol 4.1 with native passwords; nothing is checked.
fn greeting() -> Vec<u8> {
    let mut body = vec![10];
    body.extend_from_slice(b"5.7.0-null\0");
    body.extend_from_slice(&[1, 0, 0, 0]);
    body.extend_from_slice(b"abcdefgh\0");
    body.extend_from_slice(&[0x0F, 0xA2, 33, 2, 0, 0x08, 0, 21]);
    body.extend_from_slice(&[0; 10]);
    body.extend_from_slice(b"ijklmnopqrst\0mysql_native_password\0");
    let mut bytes = Vec::new();
    packet(&mut bytes, 0, &body);
    bytes
}

fn lenenc(into: &mut Vec<u8>, text: &[u8]) {
    into.push(u8::try_from(text.len()).expect("the texts here are short"));
    into.extend_from_slice(text);
}

fn packet(into: &mut Vec<u8>, sequence: u8, body: &[u8]) {
    let length = stdx::to_u32(body.len()).to_le_bytes();
    into.extend_from_slice(&[length[0], length[1], length[2], sequence]);
    into.extend_from_slice(body);
}

const OK: [u8; 11] = [7, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0];
const LOGIN_OK: [u8; 11] = [7, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0];
const QUIT: u8 = 1;
const QUERY: u8 = 3;

async fn serve(stream: Stream) {
    // A client that disconnects without a word is no error here.
    let _ = converse(stream).await;
}

async fn converse(mut stream: Stream) -> std::io::Result<()> {
    let queries = runtime::local::<Counter>().expect("set at start");
    let reply = canned_reply();
    let mut out = stream.send(greeting()).await?;
    let mut pending = Vec::new();
    let mut has_logged_in = false;
    loop {
        let received = stream.receive().await?;
        if received.is_empty() {
            return Ok(());
        }
        pending.extend_from_slice(&received);
        drop(received);
        while let Some(body) = next_packet(&mut pending) {
            match body.first() {
                _ if !has_logged_in => {
                    has_logged_in = true;
                    out.extend_from_slice(&LOGIN_OK);
                }
                Some(&QUIT) | None => return Ok(()),
                Some(&QUERY) if body.get(1..7).is_some_and(|it| it == b"SELECT") => {
                    queries.increment();
                    out.extend_from_slice(&reply);
                }
                Some(_) => out.extend_from_slice(&OK),
            }
        }
        out = stream.send(out).await?;
    }
}

/// Returns the body of one whole packet out of the received bytes.
fn next_packet(pending: &mut Vec<u8>) -> Option<Vec<u8>> {
    let header: [u8; 4] = pending.get(..4)?.try_into().ok()?;
    let length = stdx::to_usize(u32::from_le_bytes([header[0], header[1], header[2], 0]));
    let body = pending.get(4..4 + length)?.to_vec();
    pending.drain(..4 + length);
    Some(body)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [io, worker_count, port] = &arguments[..] else {
        return Err("usage: null_server auto|uring|epoll WORKERS PORT".into());
    };
    let io = match io.as_str() {
        "uring" => Io::Uring,
        "epoll" => Io::Epoll,
        _ => Io::Auto,
    };
    let options = Options {
        worker_count: worker_count.parse()?,
        io,
        ..Options::default()
    };
    let runtime = Runtime::start(options, || runtime::set_local(Rc::new(Counter::new())))?;
    let address = Address::Tcp(([127, 0, 0, 1], port.parse()?).into());
    runtime.serve(Listener::bind(&address)?, serve)?;
    let mut out = std::io::stdout();
    writeln!(out, "{address} over {}", runtime.handle().driver().kind)?;
    out.flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    let mut query_count = 0;
    for worker in 0..runtime.handle().worker_count() {
        query_count += runtime.block_on_worker(worker, || async {
            runtime::local::<Counter>().expect("set at start").value()
        });
    }
    let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let micros = cpu.tv_sec * 1_000_000 + cpu.tv_nsec / 1000;
    let nanos_each = u128::try_from(micros)? * 1000 / u128::from(query_count.max(1));
    writeln!(
        out,
        "{query_count} queries, {nanos_each} ns of processor time each"
    )?;
    runtime.handle().shutdown(Duration::ZERO);
    runtime.wait()?;
    Ok(())
}
