//! Pages for monitors, over HTTP/1.1: a GET or HEAD, and the page of its path.
//!
//! ```text
//! let pages = Arc::new(Pages::new(|path| match path {
//!     "/health" => Some(Page::text(Status::Ok, "ok\n")),
//!     _ => None,
//! }));
//! runtime.serve(listener, move |stream| Arc::clone(&pages).serve(stream))?;
//! ```
//!
//! A connection has one request, at most [`HEAD_BYTES_MAX`] of it, and [`TIME_MAX`]. There are at
//! most [`CONNECTIONS_MAX`] at a time: whoever comes then is closed. So hostile peers take little
//! from the clients of the server.

#![forbid(unsafe_code)]

mod request;

use std::sync::Arc;
use std::time::Duration;

use runtime::Stream;
use sync::atomic::{AtomicUsize, Ordering};

pub use request::{Method, Request, request};

/// Bytes of a request: a path, and the headers of a browser.
pub const HEAD_BYTES_MAX: usize = 8 << 10;

/// From the accept to the end.
pub const TIME_MAX: Duration = Duration::from_secs(10);

/// Connections of all workers: more than monitors have at a time.
pub const CONNECTIONS_MAX: usize = 64;

/// The pages of a server, found by their path.
#[derive(Debug)]
pub struct Pages<F> {
    find: F,
    open: AtomicUsize,
}

/// What a path shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    status: Status,
    content_type: &'static str,
    body: String,
}

/// What a reply says of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Ok,
    BadRequest,
    NotFound,
    MethodNotAllowed,
    HeadTooLarge,
    Unavailable,
}

impl Status {
    fn line(self) -> &'static str {
        match self {
            Status::Ok => "200 OK",
            Status::BadRequest => "400 Bad Request",
            Status::NotFound => "404 Not Found",
            Status::MethodNotAllowed => "405 Method Not Allowed",
            Status::HeadTooLarge => "431 Request Header Fields Too Large",
            Status::Unavailable => "503 Service Unavailable",
        }
    }
}

impl Page {
    /// A page of this type.
    pub fn new(status: Status, content_type: &'static str, body: String) -> Page {
        Page {
            status,
            content_type,
            body,
        }
    }

    /// A page of plain text.
    pub fn text(status: Status, body: impl Into<String>) -> Page {
        Page::new(status, "text/plain; charset=utf-8", body.into())
    }

    /// The reply, with the body if it was asked for.
    fn encode(&self, method: Method) -> Vec<u8> {
        let Page {
            status,
            content_type,
            body,
        } = self;
        let (line, length) = (status.line(), body.len());
        let allow = match status {
            Status::MethodNotAllowed => "Allow: GET, HEAD\r\n",
            _ => "",
        };
        let mut reply = format!(
            "HTTP/1.1 {line}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
             {allow}Cache-Control: no-store\r\nConnection: close\r\n\r\n"
        );
        if method == Method::Get {
            reply.push_str(body);
        }
        reply.into_bytes()
    }
}

impl<F: Fn(&str) -> Option<Page>> Pages<F> {
    /// Those that `find` knows. It is called on workers, so it must not wait.
    pub fn new(find: F) -> Pages<F> {
        Pages {
            find,
            open: AtomicUsize::new(0),
        }
    }

    /// Serves a connection to its end.
    pub async fn serve(self: Arc<Self>, stream: Stream) {
        // Relaxed: it only counts.
        if self.open.fetch_add(1, Ordering::Relaxed) < CONNECTIONS_MAX {
            // A peer that is slow or goes away loses its own connection.
            let _ = runtime::timeout(TIME_MAX, self.exchange(stream)).await;
        }
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    async fn exchange(&self, mut stream: Stream) -> std::io::Result<()> {
        let mut head = Vec::new();
        let reply = loop {
            let received = stream.receive().await?;
            if received.is_empty() {
                return Ok(());
            }
            head.extend_from_slice(&received);
            if let Some(reply) = self.reply(&head) {
                break reply;
            }
        };
        stream.send(reply).await?;
        stream.shut_down_sending()?;
        // What it still sends would reset the connection, and the reply with it.
        while !stream.receive().await?.is_empty() {}
        Ok(())
    }

    /// The reply to a request; `None` if more of it has to come.
    fn reply(&self, head: &[u8]) -> Option<Vec<u8>> {
        let refusal = |status: Status| Page::text(status, format!("{}\n", status.line()));
        let (method, page) = match request(head)? {
            Ok(Request { method, path }) => {
                let page = (self.find)(path);
                (method, page.unwrap_or_else(|| refusal(Status::NotFound)))
            }
            Err(status) => (Method::Get, refusal(status)),
        };
        Some(page.encode(method))
    }
}
