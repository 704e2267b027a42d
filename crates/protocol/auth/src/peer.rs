//! [`Peer`]: where a client comes from, and the hosts of accounts that match it.

use std::net::IpAddr;

use crate::pattern::is_like;

/// Where a client comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// The unix socket.
    Unix,
    /// TCP.
    Tcp(IpAddr),
}

impl Peer {
    /// The host that `CURRENT_USER()` and error messages show. Loopback is `localhost`, as name
    /// resolution would have it; other addresses stay numbers.
    pub fn host(self) -> String {
        match self {
            Peer::Unix => "localhost".to_owned(),
            Peer::Tcp(address) if address.to_canonical().is_loopback() => "localhost".to_owned(),
            Peer::Tcp(address) => address.to_canonical().to_string(),
        }
    }

    /// Whether the client is on this machine.
    pub fn is_local(self) -> bool {
        match self {
            Peer::Unix => true,
            Peer::Tcp(address) => address.to_canonical().is_loopback(),
        }
    }

    /// Whether an account with this host pattern admits clients from here. Names are never looked
    /// up, so names other than `localhost` match no client, as with MariaDB's `skip_name_resolve`.
    pub fn matches(self, host: &str) -> bool {
        if host.is_empty() || host == "%" {
            return true;
        }
        let Peer::Tcp(address) = self else {
            return is_like(host, "localhost");
        };
        let address = address.to_canonical();
        if address.is_loopback() && is_like(host, "localhost") {
            return true;
        }
        is_in_network(host, address) || is_like(host, &address.to_string())
    }
}

/// Whether `host` is `address/netmask`, both IPv4, and contains the address.
fn is_in_network(host: &str, address: IpAddr) -> bool {
    let Some((network, mask)) = host.split_once('/') else {
        return false;
    };
    let (Ok(IpAddr::V4(network)), Ok(IpAddr::V4(mask)), IpAddr::V4(address)) =
        (network.parse(), mask.parse(), address)
    else {
        return false;
    };
    address.to_bits() & mask.to_bits() == network.to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(text: &str) -> Peer {
        Peer::Tcp(text.parse().unwrap())
    }

    #[test]
    fn loopback_is_localhost() {
        assert_eq!(Peer::Unix.host(), "localhost");
        assert_eq!(tcp("127.0.0.1").host(), "localhost");
        assert_eq!(tcp("::1").host(), "localhost");
        assert_eq!(tcp("::ffff:10.0.0.7").host(), "10.0.0.7");
        assert!(tcp("127.1.2.3").is_local() && !tcp("10.0.0.7").is_local());
        assert!(tcp("127.1.2.3").matches("localhost") && !tcp("10.0.0.7").matches("localhost"));
        assert!(Peer::Unix.matches("localhost") && !Peer::Unix.matches("127.0.0.1"));
    }

    #[test]
    fn a_network_is_matched_by_its_mask() {
        let network = "192.168.4.0/255.255.252.0";
        assert!(tcp("192.168.7.9").matches(network));
        assert!(!tcp("192.168.8.1").matches(network));
        assert!(!tcp("::1").matches(network));
        assert!(!tcp("::1").matches("192.168.4.0/"));
    }
}
