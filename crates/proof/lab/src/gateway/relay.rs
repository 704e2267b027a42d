//! [`Relay`]: stands between the gateway and a server, and spoils what the server says when it is
//! told to.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use anyhow::{Context, Result};
use runtime::{Address, Io, Listener, Runtime, SendMode, Stream};
use sync::atomic::{AtomicBool, Ordering};

/// See the module's head. Ended when dropped.
pub(super) struct Relay {
    runtime: Option<Runtime>,
    /// Where the gateway connects to.
    pub(super) port: u16,
    /// Relaxed: a change may take effect a piece later.
    is_mad: Arc<AtomicBool>,
}

impl Relay {
    /// In front of the server at this port of loopback.
    pub(super) fn start(server_port: u16) -> Result<Relay> {
        let options = runtime::Options {
            worker_count: 1,
            io: Io::Epoll,
            ..runtime::Options::default()
        };
        let runtime = Runtime::start(options, || {})?;
        let listener = Listener::bind(&Address::Tcp(([127, 0, 0, 1], 0).into()))?;
        let Address::Tcp(address) = listener.address().clone() else {
            unreachable!("it is bound to TCP");
        };
        let is_mad = Arc::new(AtomicBool::new(false));
        let server = Address::Tcp(([127, 0, 0, 1], server_port).into());
        let seen = Arc::clone(&is_mad);
        let serve = move |stream| {
            let (server, is_mad) = (server.clone(), Arc::clone(&seen));
            async move {
                // A connection that ends is no trouble of the relay.
                let _ = pass_on(stream, &server, &is_mad).await;
            }
        };
        runtime.serve(listener, serve).context("a listener")?;
        Ok(Relay {
            runtime: Some(runtime),
            port: address.port(),
            is_mad,
        })
    }

    /// What the server says is garbage from now on, and its connections can only be closed.
    pub(super) fn go_mad(&self) {
        self.is_mad.store(true, Ordering::Relaxed);
    }

    /// New connections are as those to the server.
    pub(super) fn recover(&self) {
        self.is_mad.store(false, Ordering::Relaxed);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.handle().shutdown(Duration::ZERO);
            // Nothing is left to be done if a worker has panicked.
            let _ = runtime.wait();
        }
    }
}

/// Copies what comes from either side to the other.
async fn pass_on(mut gateway: Stream, server: &Address, is_mad: &AtomicBool) -> io::Result<()> {
    let mut server = Stream::connect(server).await?;
    loop {
        let (bytes, is_request) = poll_fn(|context| {
            if let Poll::Ready(bytes) = gateway.poll_receive(context) {
                return Poll::Ready((bytes, true));
            }
            server.poll_receive(context).map(|bytes| (bytes, false))
        })
        .await;
        let bytes = bytes?;
        if bytes.is_empty() {
            return Ok(());
        }
        let mut buffer = bytes.to_vec();
        drop(bytes);
        if !is_request && is_mad.load(Ordering::Relaxed) {
            buffer.fill(b'J');
        }
        let to = if is_request {
            &mut server
        } else {
            &mut gateway
        };
        to.send_by(buffer, SendMode::Wait).await?;
    }
}
