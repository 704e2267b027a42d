//! [`AccountSource`]: who may log in, as the caller knows it.

use std::num::NonZeroU16;
use std::pin::Pin;

use auth::{Peer, StoredSecret};
use errcode::ClientError;
use runtime::Stream;

/// The other end of a stream, and its port over TCP. `None` if it is gone already: it must not pass
/// for a local one.
pub(crate) fn peer_of(stream: &Stream) -> Option<(Peer, Option<NonZeroU16>)> {
    match stream.peer_address() {
        Some(address) => Some((Peer::Tcp(address.ip()), NonZeroU16::new(address.port()))),
        None => stream.is_local().then_some((Peer::Unix, None)),
    }
}

/// What an account asks of who logs in.
#[derive(Debug, Clone)]
pub enum Credential {
    /// To prove a password.
    Secret(StoredSecret),
    /// Nothing: the caller trusts where the client comes from.
    Trusted,
    /// What nothing here can check; clients are told so.
    Refused(Box<ClientError>),
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

    /// Whether the accounts may be behind those of another server: before a login by an unknown
    /// name fails, [`AccountSource::renew`] is awaited.
    fn can_renew(&self) -> bool {
        false
    }

    /// Gets newer accounts, if there are any.
    fn renew(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(std::future::ready(()))
    }

    /// A name out of the character set of a collation, by its number; that of UTF-8 if the caller
    /// knows no other.
    fn name_text(&self, _collation: u16, name: &[u8]) -> String {
        String::from_utf8_lossy(name).into_owned()
    }
}
