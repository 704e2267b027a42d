//! [`Endpoint`]: where a collector takes spans.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Where collectors take spans over HTTP, by the protocol of OpenTelemetry.
const USUAL_PATH: &str = "/v1/traces";

/// See the module's head. Constant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// A name or an address; one of IPv6 without its brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Begins with a slash.
    pub(crate) path: String,
}

/// Why a text is no endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum EndpointError {
    /// It has another scheme, or none.
    #[error("it must begin with http://; TLS is not spoken to a collector")]
    Scheme,
    /// It has no port.
    #[error("it has no port; collectors take HTTP at port 4318")]
    NoPort,
    /// What stands before the path is no place.
    #[error("its host or its port is malformed")]
    Place,
    /// Its path has a byte that a request cannot have.
    #[error("its path has a character that must be escaped")]
    Path,
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Endpoint, EndpointError> {
        let rest = text.strip_prefix("http://").ok_or(EndpointError::Scheme)?;
        let end = rest.find('/').unwrap_or(rest.len());
        let (place, path) = rest.split_at(end);
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port),
            _ => return Err(EndpointError::NoPort),
        };
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        let bracketed = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        let is_host = match bracketed {
            Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
            None => !host.is_empty() && host.bytes().all(is_letter),
        };
        let port = port.parse::<u16>().ok().filter(|port| *port != 0);
        let port = port.filter(|_| is_host).ok_or(EndpointError::Place)?;
        if !path.bytes().all(|byte| byte.is_ascii_graphic()) || path.contains('#') {
            return Err(EndpointError::Path);
        }
        Ok(Endpoint {
            host: bracketed.unwrap_or(host).to_owned(),
            port,
            path: match path {
                "" | "/" => USUAL_PATH.to_owned(),
                _ => path.to_owned(),
            },
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Endpoint { port, path, .. } = self;
        write!(f, "http://{}:{port}{path}", self.shown_host())
    }
}

impl Endpoint {
    /// The host, as URLs have it.
    pub(crate) fn shown_host(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]", self.host),
            false => self.host.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_read_and_shown() {
        for text in [
            "http://127.0.0.1:4318/v1/traces",
            "http://otel-collector.example.org:80/a/b?key=c",
            "http://[::1]:4318/v1/traces",
        ] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
        }
        for text in ["http://c:1", "http://c:1/"] {
            let endpoint: Endpoint = text.parse().unwrap();
            assert_eq!(endpoint.to_string(), "http://c:1/v1/traces");
        }
        let endpoint: Endpoint = "http://[::1]:4318".parse().unwrap();
        assert_eq!(endpoint.host, "::1");
    }

    #[test]
    fn what_is_no_endpoint_is_refused() {
        for (text, expected) in [
            ("", EndpointError::Scheme),
            ("https://c:4318/", EndpointError::Scheme),
            ("127.0.0.1:4318", EndpointError::Scheme),
            ("http://c", EndpointError::NoPort),
            ("http://[::1]/", EndpointError::NoPort),
            ("http://:4318", EndpointError::Place),
            ("http://c:0", EndpointError::Place),
            ("http://c:65536", EndpointError::Place),
            ("http://c:port", EndpointError::Place),
            ("http://user@c:1", EndpointError::Place),
            ("http://::1:4318", EndpointError::Place),
            ("http://[c]:1", EndpointError::Place),
            ("http://c:1/a b", EndpointError::Path),
            ("http://c:1/a\r\nHost: b", EndpointError::Path),
            ("http://c:1/a#b", EndpointError::Path),
        ] {
            assert_eq!(text.parse::<Endpoint>(), Err(expected), "{text}");
        }
    }
}
