//! [`AccountSource`]: who may log in, as the caller knows it.

use std::net::IpAddr;

use auth::StoredSecret;
use runtime::Stream;

/// Where a client comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// The unix socket.
    Unix,
    /// TCP.
    Tcp(IpAddr),
}

impl Peer {
    /// The other end of a stream. `None` if it is gone already: it must not pass for a local one.
    pub fn of(stream: &Stream) -> Option<Peer> {
        match stream.peer_address() {
            Some(address) => Some(Peer::Tcp(address.ip())),
            None => stream.is_local().then_some(Peer::Unix),
        }
    }

    /// The host that accounts are matched with, and that error messages show. Loopback is
    /// `localhost`, as name resolution would have it; other addresses stay numbers.
    pub fn host(&self) -> String {
        match self {
            Peer::Unix => "localhost".to_owned(),
            Peer::Tcp(address) if address.to_canonical().is_loopback() => "localhost".to_owned(),
            Peer::Tcp(address) => address.to_canonical().to_string(),
        }
    }

    /// Whether the client is on this machine.
    pub fn is_local(&self) -> bool {
        match self {
            Peer::Unix => true,
            Peer::Tcp(address) => address.to_canonical().is_loopback(),
        }
    }
}

/// What an account asks of who logs in.
#[derive(Debug, Clone)]
pub enum Credential {
    /// To prove a password.
    Secret(StoredSecret),
    /// Nothing: the caller trusts where the client comes from.
    Trusted,
}

/// An account that fits a client.
#[derive(Debug, Clone)]
pub struct Account {
    /// User name of the account; empty for an anonymous one.
    pub user: String,
    /// Host pattern of the account.
    pub host: String,
    /// What it asks for.
    pub credential: Credential,
    /// Whether it is locked.
    pub is_locked: bool,
    /// Whether it asks for TLS.
    pub requires_tls: bool,
}

/// Who may log in.
pub trait AccountSource {
    /// The account for `user` from `peer`. `None` is played through with a password that no one
    /// has, so that the client does not learn that there is no such account.
    fn find(&self, user: &str, peer: Peer) -> Option<Account>;

    /// A name out of the character set of a collation, by its number; that of UTF-8 if the caller
    /// knows no other.
    fn name_text(&self, _collation: u16, name: &[u8]) -> String {
        String::from_utf8_lossy(name).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_localhost() {
        let tcp = |text: &str| Peer::Tcp(text.parse().unwrap());
        assert_eq!(Peer::Unix.host(), "localhost");
        assert_eq!(tcp("127.0.0.1").host(), "localhost");
        assert_eq!(tcp("::1").host(), "localhost");
        assert_eq!(tcp("::ffff:10.0.0.7").host(), "10.0.0.7");
        assert!(tcp("127.1.2.3").is_local() && !tcp("10.0.0.7").is_local());
    }
}
