//! [`ProxyHeader`]: what a proxy sends before anything else, to say whom it speaks for: the PROXY
//! protocol of HAProxy, versions 1 and 2.
//!
//! Version 1 is a line of text, `\r\n` included in its length:
//!
//! ```text
//! PROXY TCP4 <source> <destination> <source port> <destination port>\r\n      TCP6 alike
//! PROXY UNKNOWN <anything>\r\n
//! ```
//!
//! Version 2, numbers with their highest byte first:
//!
//! | bytes | content |
//! |---|---|
//! | 12 | signature |
//! | 1 | version 2 in the upper half; 0 LOCAL, 1 PROXY in the lower half |
//! | 1 | 0x00 no address, 0x11 TCP over IPv4, 0x21 TCP over IPv6, 0x31 a unix socket |
//! | 2 | length of what follows |
//! | 12, 36, 216 | source and destination address, then their ports; two paths |
//! | n | further facts (TLVs), which nothing here reads |
//!
//! The client may begin with a header or not, so [`ProxyHeader::decode`] says what it has found in
//! the bytes that have come so far. No packet of a login begins as a header does: it would be
//! longer than half a megabyte.

use std::io::Write as _;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str;

use crate::cursor::{Cursor, Malformed};

/// Bytes of the longest header of version 1, by the specification.
pub const PROXY_V1_BYTES_MAX: usize = 107;

/// Bytes of the longest header of version 2 that is read: a unix socket's paths, and facts of a TLS
/// client with its names. The format would allow 64 KiB.
pub const PROXY_V2_BYTES_MAX: usize = 4096;

const V1_BEGIN: &[u8] = b"PROXY ";
const V1_END: &[u8] = b"\r\n";
const V2_SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// Bytes of version 2 before the addresses.
const V2_HEAD_BYTES: usize = 16;

const V2_LOCAL: u8 = 0x20;
const V2_PROXY: u8 = 0x21;
const UNSPECIFIED: u8 = 0x00;
const TCP_IPV4: u8 = 0x11;
const TCP_IPV6: u8 = 0x21;
const UNIX_STREAM: u8 = 0x31;

/// Bytes of the two paths of a unix socket.
const UNIX_PATH_BYTES: usize = 216;

/// Whom a proxy speaks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyHeader {
    /// Itself, or a client whose address it does not know.
    Local,
    /// A client of its unix socket.
    Unix,
    /// A client over TCP.
    Tcp {
        /// The client's address.
        source: SocketAddr,
        /// The address that the client has connected to.
        destination: SocketAddr,
    },
}

/// How a header is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyVersion {
    /// As text.
    V1,
    /// In binary.
    V2,
}

/// What the first bytes of a connection are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyBytes {
    /// No header.
    Other,
    /// Perhaps a header, of which more has to come.
    Incomplete,
    /// A header.
    Whole {
        /// What it says.
        header: ProxyHeader,
        /// How many bytes it has.
        used: usize,
    },
}

impl ProxyHeader {
    /// Looks for a header at the beginning of what a connection has received so far.
    pub fn decode(bytes: &[u8]) -> Result<ProxyBytes, Malformed> {
        if bytes.starts_with(V1_BEGIN) {
            decode_v1(bytes)
        } else if bytes.starts_with(V2_SIGNATURE) {
            decode_v2(bytes)
        } else if V1_BEGIN.starts_with(bytes) || V2_SIGNATURE.starts_with(bytes) {
            Ok(ProxyBytes::Incomplete)
        } else {
            Ok(ProxyBytes::Other)
        }
    }

    /// Appends the header. Version 1 has no word for a unix socket.
    pub fn encode(self, version: ProxyVersion, out: &mut Vec<u8>) {
        match version {
            ProxyVersion::V1 => self.encode_v1(out),
            ProxyVersion::V2 => self.encode_v2(out),
        }
    }

    fn encode_v1(self, out: &mut Vec<u8>) {
        let ProxyHeader::Tcp {
            source,
            destination,
        } = self
        else {
            out.extend_from_slice(b"PROXY UNKNOWN\r\n");
            return;
        };
        let (from, to) = alike(source.ip(), destination.ip());
        let family = if from.is_ipv4() { "TCP4" } else { "TCP6" };
        let (from_port, to_port) = (source.port(), destination.port());
        write!(out, "PROXY {family} {from} {to} {from_port} {to_port}\r\n")
            .expect("a vector takes all bytes");
    }

    fn encode_v2(self, out: &mut Vec<u8>) {
        out.extend_from_slice(V2_SIGNATURE);
        match self {
            ProxyHeader::Local => out.extend_from_slice(&[V2_LOCAL, UNSPECIFIED, 0, 0]),
            ProxyHeader::Unix => {
                out.extend_from_slice(&[V2_PROXY, UNIX_STREAM, 0, 216]);
                out.resize(out.len() + UNIX_PATH_BYTES, 0);
            }
            ProxyHeader::Tcp {
                source,
                destination,
            } => {
                match alike(source.ip(), destination.ip()) {
                    (IpAddr::V4(from), IpAddr::V4(to)) => {
                        out.extend_from_slice(&[V2_PROXY, TCP_IPV4, 0, 12]);
                        out.extend_from_slice(&from.octets());
                        out.extend_from_slice(&to.octets());
                    }
                    (from, to) => {
                        out.extend_from_slice(&[V2_PROXY, TCP_IPV6, 0, 36]);
                        out.extend_from_slice(&as_ipv6(from).octets());
                        out.extend_from_slice(&as_ipv6(to).octets());
                    }
                }
                out.extend_from_slice(&source.port().to_be_bytes());
                out.extend_from_slice(&destination.port().to_be_bytes());
            }
        }
    }
}

const _: () = assert!(UNIX_PATH_BYTES == 216 && V2_HEAD_BYTES == V2_SIGNATURE.len() + 4);

/// Both addresses in one family: IPv4 if both are.
fn alike(from: IpAddr, to: IpAddr) -> (IpAddr, IpAddr) {
    let (from, to) = (from.to_canonical(), to.to_canonical());
    if from.is_ipv4() == to.is_ipv4() {
        (from, to)
    } else {
        (as_ipv6(from).into(), as_ipv6(to).into())
    }
}

fn as_ipv6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

fn decode_v1(bytes: &[u8]) -> Result<ProxyBytes, Malformed> {
    let head = bytes.get(..PROXY_V1_BYTES_MAX).unwrap_or(bytes);
    let Some(end) = head.windows(V1_END.len()).position(|it| it == V1_END) else {
        return if head.len() < PROXY_V1_BYTES_MAX {
            Ok(ProxyBytes::Incomplete)
        } else {
            Err(Malformed::new("length of the PROXY header"))
        };
    };
    let line = head.get(V1_BEGIN.len()..end).unwrap_or_default();
    let line = str::from_utf8(line).map_err(|_| Malformed::new("PROXY header"))?;
    Ok(ProxyBytes::Whole {
        header: decode_line(line)?,
        used: end + V1_END.len(),
    })
}

/// What follows the word `PROXY`.
fn decode_line(line: &str) -> Result<ProxyHeader, Malformed> {
    let malformed = Malformed::new("PROXY header");
    let mut words = line.split(' ');
    let family = words.next().ok_or(malformed)?;
    if family == "UNKNOWN" {
        return Ok(ProxyHeader::Local);
    }
    let mut address = || -> Result<IpAddr, Malformed> {
        let address: IpAddr = words
            .next()
            .and_then(|word| word.parse().ok())
            .ok_or(malformed)?;
        match (family, address.is_ipv4()) {
            ("TCP4", true) | ("TCP6", false) => Ok(address),
            _ => Err(malformed),
        }
    };
    let (from, to) = (address()?, address()?);
    let mut port = || words.next().and_then(port).ok_or(malformed);
    let (from_port, to_port) = (port()?, port()?);
    if words.next().is_some() {
        return Err(malformed);
    }
    Ok(ProxyHeader::Tcp {
        source: SocketAddr::new(from.to_canonical(), from_port),
        destination: SocketAddr::new(to.to_canonical(), to_port),
    })
}

fn port(word: &str) -> Option<u16> {
    let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
    word.parse().ok().filter(|_| is_number)
}

fn decode_v2(bytes: &[u8]) -> Result<ProxyBytes, Malformed> {
    let Some((head, rest)) = bytes.split_first_chunk::<V2_HEAD_BYTES>() else {
        return Ok(ProxyBytes::Incomplete);
    };
    let [.., command, family, high, low] = *head;
    let length = usize::from(u16::from_be_bytes([high, low]));
    if PROXY_V2_BYTES_MAX < V2_HEAD_BYTES + length {
        return Err(Malformed::new("length of the PROXY header"));
    }
    if command != V2_LOCAL && command != V2_PROXY {
        return Err(Malformed::new("command of the PROXY header"));
    }
    let Some(body) = rest.get(..length) else {
        return Ok(ProxyBytes::Incomplete);
    };
    let header = match command {
        V2_LOCAL => ProxyHeader::Local,
        _ => decode_addresses(family, Cursor::new(body))?,
    };
    let used = V2_HEAD_BYTES + length;
    Ok(ProxyBytes::Whole { header, used })
}

/// The addresses of a client; what follows them is not looked at.
fn decode_addresses(family: u8, mut body: Cursor<'_>) -> Result<ProxyHeader, Malformed> {
    let what = "address of the PROXY header";
    let (from, to): (IpAddr, IpAddr) = match family {
        UNSPECIFIED => return Ok(ProxyHeader::Local),
        UNIX_STREAM => {
            body.bytes(UNIX_PATH_BYTES, what)?;
            return Ok(ProxyHeader::Unix);
        }
        TCP_IPV4 => (body.array::<4>(what)?.into(), body.array::<4>(what)?.into()),
        TCP_IPV6 => (
            body.array::<16>(what)?.into(),
            body.array::<16>(what)?.into(),
        ),
        _ => return Err(Malformed::new("family of the PROXY header")),
    };
    let mut port = || body.array(what).map(u16::from_be_bytes);
    let (from_port, to_port) = (port()?, port()?);
    Ok(ProxyHeader::Tcp {
        source: SocketAddr::new(from.to_canonical(), from_port),
        destination: SocketAddr::new(to.to_canonical(), to_port),
    })
}

#[cfg(test)]
mod tests;
