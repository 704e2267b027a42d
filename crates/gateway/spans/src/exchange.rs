//! One request to a collector, and its reply. All of it blocks, for a limited time. The system
//! limits the look-up of its name.
//!
//! Each request has a connection of its own: there is at most one a second, unless there are many
//! spans. So there is no connection that the collector might close just then.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use env::{Clock, Instant};
use thiserror::Error;

use crate::endpoint::Endpoint;

/// Bytes of a reply: a head, and a message of a few words.
pub const REPLY_BYTES_MAX: usize = 64 << 10;

/// Headers of a reply. Collectors send three.
const HEADER_COUNT_MAX: usize = 64;

/// Bytes that are read at a time.
const PIECE_BYTES: usize = 4 << 10;

/// Whether more of a reply may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connection {
    /// It may.
    Open,
    /// The collector has closed the connection.
    Closed,
}

/// Why spans were not taken.
#[derive(Debug, Error)]
pub enum ExchangeError {
    /// Its name cannot be looked up.
    #[error("the name of the collector's host is not known")]
    Unknown(#[source] io::Error),
    /// Its name has no address.
    #[error("the name of the collector's host has no address")]
    NoAddress,
    /// No connection was made.
    #[error("the collector cannot be reached: {0}")]
    Unreachable(io::Error),
    /// The connection was lost.
    #[error("the connection to the collector has failed: {0}")]
    Failed(io::Error),
    /// Its time is over.
    #[error("the collector has not answered in time")]
    TooSlow,
    /// There was no whole reply.
    #[error("the collector has closed the connection")]
    Closed,
    /// The reply is none of HTTP, or too long.
    #[error("the collector does not speak HTTP, or at too great length")]
    Malformed,
    /// It has said no, with this status.
    #[error("the collector has answered with status {0}")]
    Refused(u16),
}

/// Sends a body of protobuf. Returns the body of the reply, which may be empty.
///
/// # Errors
/// The collector has not taken it, or it is not known whether it has.
pub(crate) fn post(
    endpoint: &Endpoint,
    body: &[u8],
    (clock, deadline): (&dyn Clock, Instant),
) -> Result<Vec<u8>, ExchangeError> {
    let left = || {
        let left = deadline.since(clock.now());
        match left.is_zero() {
            true => Err(ExchangeError::TooSlow),
            false => Ok(left),
        }
    };
    let mut stream = connect(endpoint, &left)?;
    let mut request = head(endpoint, body.len()).into_bytes();
    request.extend_from_slice(body);
    let mut rest = &*request;
    while !rest.is_empty() {
        stream.set_write_timeout(Some(left()?)).map_err(failed)?;
        let written = retried(|| stream.write(rest))?;
        rest = rest.get(written..).unwrap_or_default();
        if written == 0 {
            return Err(ExchangeError::Closed);
        }
    }
    let mut reply = Vec::new();
    loop {
        stream.set_read_timeout(Some(left()?)).map_err(failed)?;
        let mut piece = [0; PIECE_BYTES];
        let count = retried(|| stream.read(&mut piece))?;
        reply.extend_from_slice(piece.get(..count).unwrap_or_default());
        if REPLY_BYTES_MAX < reply.len() {
            return Err(ExchangeError::Malformed);
        }
        let connection = match count {
            0 => Connection::Closed,
            _ => Connection::Open,
        };
        if let Some(body) = read_reply(&reply, connection)? {
            return Ok(body);
        }
    }
}

fn connect(
    endpoint: &Endpoint,
    left: &dyn Fn() -> Result<Duration, ExchangeError>,
) -> Result<TcpStream, ExchangeError> {
    let place = (&*endpoint.host, endpoint.port);
    let addresses: Vec<SocketAddr> = place
        .to_socket_addrs()
        .map_err(ExchangeError::Unknown)?
        .collect();
    let mut refused = ExchangeError::NoAddress;
    for address in addresses {
        match TcpStream::connect_timeout(&address, left()?) {
            Ok(stream) => return Ok(stream),
            Err(error) => refused = ExchangeError::Unreachable(error),
        }
    }
    Err(refused)
}

fn head(endpoint: &Endpoint, body_bytes: usize) -> String {
    let (path, host, port) = (&endpoint.path, endpoint.shown_host(), endpoint.port);
    format!(
        "POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUser-Agent: plateau\r\n\
         Content-Type: application/x-protobuf\r\nContent-Length: {body_bytes}\r\n\
         Connection: close\r\n\r\n"
    )
}

fn retried(mut call: impl FnMut() -> io::Result<usize>) -> Result<usize, ExchangeError> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result.map_err(failed),
        }
    }
}

fn failed(error: io::Error) -> ExchangeError {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ExchangeError::TooSlow,
        _ => ExchangeError::Failed(error),
    }
}

/// The body of a reply that was received as far as this. `None`: there is more to come.
///
/// # Errors
/// The collector has said no, or what it has said cannot be understood.
pub fn read_reply(
    received: &[u8],
    connection: Connection,
) -> Result<Option<Vec<u8>>, ExchangeError> {
    let is_over = connection == Connection::Closed;
    let mut headers = [httparse::EMPTY_HEADER; HEADER_COUNT_MAX];
    let mut reply = httparse::Response::new(&mut headers);
    let parsed = reply.parse(received);
    let head_bytes = match parsed.map_err(|_| ExchangeError::Malformed)? {
        httparse::Status::Complete(bytes) => bytes,
        httparse::Status::Partial if is_over => return Err(ExchangeError::Closed),
        httparse::Status::Partial => return Ok(None),
    };
    let status = reply.code.unwrap_or_default();
    if !(200..300).contains(&status) {
        return Err(ExchangeError::Refused(status));
    }
    let find = |name: &str| {
        let mut headers = reply.headers.iter();
        headers.find(|it| it.name.eq_ignore_ascii_case(name))
    };
    let body = received.get(head_bytes..).unwrap_or_default();
    // What is in pieces has its lengths in between. It is not needed.
    if find("transfer-encoding").is_some() {
        return Ok(Some(Vec::new()));
    }
    let Some(header) = find("content-length") else {
        return Ok(is_over.then(|| body.to_vec()));
    };
    let told = str::from_utf8(header.value).ok();
    let length: Option<usize> = told.and_then(|it| it.trim().parse().ok());
    match body.get(..length.ok_or(ExchangeError::Malformed)?) {
        Some(whole) => Ok(Some(whole.to_vec())),
        None if is_over => Err(ExchangeError::Closed),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(received: &str, connection: Connection) -> Result<Option<Vec<u8>>, String> {
        read_reply(received.as_bytes(), connection).map_err(|it| it.to_string())
    }

    #[test]
    fn replies_are_read_as_they_come() {
        let whole = "HTTP/1.1 200 OK\r\nServer: a\r\nContent-Length: 2\r\n\r\nab";
        for end in 0..whole.len() {
            assert_eq!(read(&whole[..end], Connection::Open), Ok(None), "{end}");
            assert!(read(&whole[..end], Connection::Closed).is_err(), "{end}");
        }
        assert_eq!(read(whole, Connection::Open), Ok(Some(b"ab".to_vec())));
        let unbounded = "HTTP/1.0 202 Accepted\r\n\r\nab";
        assert_eq!(read(unbounded, Connection::Open), Ok(None));
        assert_eq!(
            read(unbounded, Connection::Closed),
            Ok(Some(b"ab".to_vec()))
        );
        let pieces = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab";
        assert_eq!(read(pieces, Connection::Open), Ok(Some(Vec::new())));
    }

    #[test]
    fn what_says_no_is_an_error() {
        for (received, expected) in [
            ("HTTP/1.1 503 No\r\n\r\n", "status 503"),
            ("HTTP/1.1 301 Elsewhere\r\n\r\n", "status 301"),
            ("SSH-2.0-OpenSSH\r\n", "does not speak HTTP"),
            ("\0\0\0\0", "does not speak HTTP"),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
                "does not speak HTTP",
            ),
        ] {
            let told = read(received, Connection::Open).expect_err(received);
            assert!(told.contains(expected), "{told}");
        }
        let headers = "a: b\r\n".repeat(HEADER_COUNT_MAX + 1);
        let told = read(
            &format!("HTTP/1.1 200 OK\r\n{headers}\r\n"),
            Connection::Open,
        );
        assert!(told.unwrap_err().contains("does not speak HTTP"));
    }
}
