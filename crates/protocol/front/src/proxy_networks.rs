//! [`ProxyNetworks`]: which connections may begin with a header of the PROXY protocol. Whoever may
//! can name any client, so it is as trusted as the network that the clients come from.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::sync::Arc;

use auth::Peer;
use thiserror::Error;

/// Networks, as the setting `proxy_protocol_networks` lists them; none at first. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProxyNetworks(Arc<[Network]>);

/// Connections that may begin with a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Network {
    /// Unix sockets, and loopback.
    Local,
    /// Addresses that agree with this one in its first `bits`; the address is canonical.
    Range { address: IpAddr, bits: u32 },
}

/// A part of the list that is no network.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "`{word}` is no network: expected an address, as 10.0.0.1 or ::1, a network, as 10.0.0.0/8, \
     `localhost`, or `*` alone"
)]
pub struct NotANetwork {
    /// The part.
    pub word: String,
}

/// Bits of an IPv6 address before the IPv4 address that it stands for.
const MAPPED_BITS: u32 = 96;

impl ProxyNetworks {
    /// Whether a connection of this peer may begin with a header.
    pub(crate) fn admit(&self, peer: Peer) -> bool {
        self.0.iter().any(|network| network.contains(peer))
    }
}

impl FromStr for ProxyNetworks {
    type Err = NotANetwork;

    /// Reads a list whose parts are separated by commas or spaces.
    fn from_str(text: &str) -> Result<ProxyNetworks, NotANetwork> {
        if text.trim() == "*" {
            let all = |address| Network::Range { address, bits: 0 };
            return Ok(ProxyNetworks(Arc::new([
                all(Ipv4Addr::UNSPECIFIED.into()),
                all(Ipv6Addr::UNSPECIFIED.into()),
                Network::Local,
            ])));
        }
        let words = text.split([',', ' ']).filter(|word| !word.is_empty());
        let network = |word: &str| {
            Network::parse(word).ok_or_else(|| NotANetwork {
                word: word.to_owned(),
            })
        };
        words
            .map(network)
            .collect::<Result<_, _>>()
            .map(ProxyNetworks)
    }
}

impl Network {
    fn parse(word: &str) -> Option<Network> {
        if word.eq_ignore_ascii_case("localhost") {
            return Some(Network::Local);
        }
        let (address, bits) = match word.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (word, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let bits_max: u32 = if address.is_ipv4() { 32 } else { 128 };
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let bits: u32 = match bits {
            Some(bits) => bits.parse().ok().filter(|_| is_number(bits))?,
            None => bits_max,
        };
        let canonical = address.to_canonical();
        let bits = if canonical.is_ipv4() && address.is_ipv6() {
            bits.checked_sub(MAPPED_BITS)?
        } else {
            bits
        };
        let bits_max = if canonical.is_ipv4() { 32 } else { 128 };
        (bits <= bits_max).then_some(Network::Range {
            address: canonical,
            bits,
        })
    }

    fn contains(self, peer: Peer) -> bool {
        let (address, bits) = match self {
            Network::Local => return peer.is_local(),
            Network::Range { address, bits } => (address, bits),
        };
        let Peer::Tcp(client) = peer else {
            return false;
        };
        // Bits that have to agree are at the front; a shift by the full width leaves none.
        match (address, client.to_canonical()) {
            (IpAddr::V4(address), IpAddr::V4(client)) => {
                let unlike = address.to_bits() ^ client.to_bits();
                unlike.checked_shr(32 - bits).unwrap_or(0) == 0
            }
            (IpAddr::V6(address), IpAddr::V6(client)) => {
                let unlike = address.to_bits() ^ client.to_bits();
                unlike.checked_shr(128 - bits).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(text: &str) -> Peer {
        Peer::Tcp(text.parse().unwrap())
    }

    fn networks(text: &str) -> ProxyNetworks {
        text.parse().unwrap()
    }

    #[test]
    fn a_list_admits_what_it_names() {
        let some = networks("10.0.0.0/8, 192.168.7.9 2001:db8::/33,,::ffff:172.16.0.0/108");
        for inside in [
            "10.0.0.0",
            "10.255.255.255",
            "::ffff:10.1.2.3",
            "192.168.7.9",
            "2001:db8::1",
            "2001:db8:7fff::1",
            "172.16.0.0",
            "172.31.255.255",
        ] {
            assert!(some.admit(tcp(inside)), "{inside}");
        }
        for outside in [
            "9.255.255.255",
            "11.0.0.0",
            "192.168.7.8",
            "2001:db8:8000::1",
            "172.32.0.0",
            "127.0.0.1",
            "::1",
        ] {
            assert!(!some.admit(tcp(outside)), "{outside}");
        }
        assert!(!some.admit(Peer::Unix));
    }

    #[test]
    fn two_words_stand_for_networks() {
        let local = networks("localhost");
        assert!(
            local.admit(Peer::Unix) && local.admit(tcp("127.0.0.1")) && local.admit(tcp("::1"))
        );
        assert!(!local.admit(tcp("10.0.0.1")));
        for all in ["*", " * ", "0.0.0.0/0,::/0,localhost"] {
            let all = networks(all);
            assert!(all.admit(Peer::Unix) && all.admit(tcp("10.0.0.1")) && all.admit(tcp("::2")));
        }
        for none in ["", " , "] {
            let none = networks(none);
            assert!(!none.admit(Peer::Unix) && !none.admit(tcp("127.0.0.1")));
        }
        let ipv4 = networks("0.0.0.0/0");
        assert!(ipv4.admit(tcp("1.2.3.4")) && !ipv4.admit(tcp("::2")) && !ipv4.admit(Peer::Unix));
    }

    #[test]
    fn what_is_no_network_is_named() {
        for word in [
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "10.0.0.0/255.0.0.0",
            "10.0.0",
            "host",
            "::ffff:10.0.0.0/95",
            "*",
        ] {
            let read: Result<ProxyNetworks, _> = format!("127.0.0.1,{word}").parse();
            assert_eq!(read.unwrap_err().word, word);
        }
    }
}
