//! [`Trouble`]: a proxy that is slow and breaks connections in the middle of replies.
//!
//! (I1) One count of bytes is for all connections. So [`BYTES_MAX`] bytes of the server break a
//! connection, over however many connections they come.

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
    luck: Mutex<Luck>,
    broken: AtomicUsize,
    is_over: AtomicBool,
}

/// What decides when there is trouble.
#[derive(Debug)]
struct Luck {
    random: Random,
    /// Whether there is trouble again and again.
    is_on: bool,
    /// Bytes of the server until a connection breaks.
    left: u64,
}

impl Luck {
    /// When the next connection breaks.
    fn go_on(&mut self) {
        self.left = match self.is_on {
            true => self.random.below(BYTES_MAX),
            false => u64::MAX,
        };
    }
}

/// A connection breaks after so many bytes of the server at the most. Most programs get twice as
/// many and more.
const BYTES_MAX: u64 = 8_000;

/// The longest of its delays.
const DELAY_MS_MAX: u64 = 4;

/// Whose connections have no trouble: those of the monitor.
const SPARED: &[u8] = b"root\0";

impl Trouble {
    /// In front of a server. It makes no trouble yet.
    pub fn new(server_port: u16, seed: u64) -> Result<Trouble> {
        let luck = Luck {
            random: Random::new(seed),
            is_on: false,
            left: u64::MAX,
        };
        Ok(Trouble {
            listener: TcpListener::bind(("127.0.0.1", 0))?,
            server_port,
            luck: Mutex::new(luck),
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
        let mut luck = self.luck.lock();
        luck.is_on = true;
        luck.go_on();
    }

    /// Breaks the connection that has the server's next bytes.
    pub fn break_next(&self) {
        self.luck.lock().left = 0;
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
        self.luck.lock().is_on = false;
        self.luck.lock().go_on();
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
            copy(&mut from, &mut to, |bytes| {
                let is_spared = is_spared.load(Ordering::Relaxed);
                (!is_spared).then(|| self.trouble(bytes)).flatten()
            });
        });
        Ok(())
    }

    /// Waits, or says after how many of these bytes the connection breaks.
    fn trouble(&self, bytes: &[u8]) -> Option<usize> {
        let length = stdx::to_u64(bytes.len());
        let (delay_ms, kept) = {
            let mut luck = self.luck.lock();
            let delay_ms = 1 + luck.random.below(DELAY_MS_MAX);
            let is_slow = luck.random.chance(50) && luck.is_on;
            let left = luck.left;
            let kept = (left < length).then_some(left);
            match kept {
                Some(_) => luck.go_on(),
                None => luck.left -= length,
            }
            (is_slow.then_some(delay_ms), kept)
        };
        if let Some(delay_ms) = delay_ms {
            pause(Duration::from_millis(delay_ms));
        }
        let kept = kept?;
        self.broken.fetch_add(1, Ordering::Relaxed);
        Some(stdx::to_usize(kept))
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
