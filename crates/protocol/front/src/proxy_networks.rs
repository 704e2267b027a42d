//! [`ProxyNetworks`]: which connections may begin with a header of the PROXY protocol. Whoever may
//! can name any client, so it is as trusted as the network that the clients come from.

use std::str::FromStr;
use std::sync::Arc;

use auth::Peer;
use stdx::Network;
use thiserror::Error;

/// Networks, as the setting `proxy_protocol_networks` lists them; none at first. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProxyNetworks(Arc<[Place]>);

/// Connections that may begin with a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Unix sockets, and loopback.
    Local,
    /// Addresses of a network.
    Network(Network),
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

impl ProxyNetworks {
    /// Whether a connection of this peer may begin with a header.
    pub(crate) fn admit(&self, peer: Peer) -> bool {
        self.0.iter().any(|place| place.contains(peer))
    }
}

impl FromStr for ProxyNetworks {
    type Err = NotANetwork;

    /// Reads a list whose parts are separated by commas or spaces.
    fn from_str(text: &str) -> Result<ProxyNetworks, NotANetwork> {
        let text = match text.trim() {
            "*" => "0.0.0.0/0,::/0,localhost",
            text => text,
        };
        let words = text.split([',', ' ']).filter(|word| !word.is_empty());
        let place = |word: &str| {
            Place::parse(word).ok_or_else(|| NotANetwork {
                word: word.to_owned(),
            })
        };
        words
            .map(place)
            .collect::<Result<_, _>>()
            .map(ProxyNetworks)
    }
}

impl Place {
    fn parse(word: &str) -> Option<Place> {
        if word.eq_ignore_ascii_case("localhost") {
            return Some(Place::Local);
        }
        word.parse().ok().map(Place::Network)
    }

    fn contains(self, peer: Peer) -> bool {
        match (self, peer) {
            (Place::Local, _) => peer.is_local(),
            (Place::Network(network), Peer::Tcp(address)) => network.contains(address),
            (Place::Network(_), Peer::Unix) => false,
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
