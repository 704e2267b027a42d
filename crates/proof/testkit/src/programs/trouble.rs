//! [`Trouble`]: a proxy that is slow and breaks connections in the middle of replies.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread::Scope;
use std::time::Duration;

use anyhow::Result;
use env::Random;
use sync::Mutex;
use sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The proxy. It serves until [`Trouble::end`].
#[derive(Debug)]
pub struct Trouble {
    listener: TcpListener,
    server_port: u16,
    random: Mutex<Random>,
    /// Whether it makes trouble.
    is_on: AtomicBool,
    broken: AtomicUsize,
    is_over: AtomicBool,
}

/// A connection breaks after so many bytes of the server at the most.
const BYTES_MAX: u64 = 40_000;

/// The longest of its delays.
const DELAY_MS_MAX: u64 = 4;

/// Whose connections have no trouble: those of the monitor.
const SPARED: &[u8] = b"root\0";

impl Trouble {
    /// In front of a server. It makes no trouble yet.
    pub fn new(server_port: u16, seed: u64) -> Result<Trouble> {
        Ok(Trouble {
            listener: TcpListener::bind(("127.0.0.1", 0))?,
            server_port,
            random: Mutex::new(Random::new(seed)),
            is_on: AtomicBool::new(false),
            broken: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        })
    }

    /// Where the gateway connects.
    pub fn port(&self) -> Result<u16> {
        Ok(self.listener.local_addr()?.port())
    }

    /// Makes trouble from now on.
    pub fn begin(&self) {
        self.is_on.store(true, Ordering::Relaxed);
    }

    /// How many connections it has broken.
    pub fn broken(&self) -> usize {
        self.broken.load(Ordering::Relaxed)
    }

    /// Serves connections, each in threads of the scope.
    pub fn serve<'s>(&'s self, scope: &'s Scope<'s, '_>) {
        scope.spawn(move || {
            for stream in self.listener.incoming() {
                if self.is_over.load(Ordering::Relaxed) {
                    return;
                }
                let connected = TcpStream::connect(("127.0.0.1", self.server_port));
                if let (Ok(client), Ok(server)) = (stream, connected) {
                    // Either side ends its connection; the other sees it.
                    drop(self.relay(scope, client, server));
                }
            }
        });
    }

    /// Accepts no more connections.
    pub fn end(&self) -> Result<()> {
        self.is_on.store(false, Ordering::Relaxed);
        self.is_over.store(true, Ordering::Relaxed);
        TcpStream::connect(("127.0.0.1", self.port()?))?;
        Ok(())
    }

    fn relay<'s>(
        &'s self,
        scope: &'s Scope<'s, '_>,
        client: TcpStream,
        server: TcpStream,
    ) -> Result<()> {
        let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
        let is_spared = std::sync::Arc::new(AtomicBool::new(true));
        let told = std::sync::Arc::clone(&is_spared);
        scope.spawn(move || {
            let mut is_first = true;
            copy(&mut from, &mut to, |bytes| {
                if std::mem::take(&mut is_first) {
                    let is_monitor = bytes.windows(SPARED.len()).any(|it| it == SPARED);
                    told.store(is_monitor, Ordering::Relaxed);
                }
                None
            });
        });
        let (mut from, mut to) = (server, client);
        scope.spawn(move || {
            let mut left = None;
            copy(&mut from, &mut to, |bytes| {
                if !self.is_on.load(Ordering::Relaxed) || is_spared.load(Ordering::Relaxed) {
                    return None;
                }
                self.trouble(&mut left, bytes)
            });
        });
        Ok(())
    }

    /// Waits, or says after how many of these bytes the connection breaks.
    fn trouble(&self, left: &mut Option<u64>, bytes: &[u8]) -> Option<usize> {
        let (delay_ms, is_slow, budget) = {
            let mut random = self.random.lock();
            let delay_ms = 1 + random.below(DELAY_MS_MAX);
            (delay_ms, random.chance(50), random.below(BYTES_MAX))
        };
        if is_slow {
            pause(Duration::from_millis(delay_ms));
        }
        let left = left.get_or_insert(budget);
        let length = stdx::to_u64(bytes.len());
        if length <= *left {
            *left -= length;
            return None;
        }
        self.broken.fetch_add(1, Ordering::Relaxed);
        Some(stdx::to_usize(*left))
    }
}

/// A server that is slow is slow in real time.
#[allow(
    clippy::disallowed_methods,
    reason = "a slow server is what this proxy stands for"
)]
fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// Copies until either side ends, or until `breaks` says after how many bytes.
fn copy(from: &mut TcpStream, to: &mut TcpStream, mut breaks: impl FnMut(&[u8]) -> Option<usize>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let bytes = &buffer[..count];
        let kept = breaks(bytes);
        let sent = to.write_all(&bytes[..kept.unwrap_or(count)]);
        if sent.is_err() || kept.is_some() {
            break;
        }
    }
    // Who has closed already has done so.
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
