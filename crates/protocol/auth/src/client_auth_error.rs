//! [`ClientAuthError`]: why a client cannot answer its server.

use thiserror::Error;

use crate::method::Method;

/// Why a client cannot answer its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ClientAuthError {
    /// The secret is a hash of another method.
    #[error("{} needs the password or another hash of it", .0.account_plugin())]
    NotEnough(Method),
    /// The server's cache does not know the password any more, and only its hash is at hand.
    #[error("the server asks for the password itself, of which only a hash is known")]
    PasswordNeeded,
    /// The server sent what the method does not foresee.
    #[error("the server sent what the authentication method does not foresee")]
    Step,
    /// The password would be encrypted with an unverified key.
    #[error("the server wants a password without TLS and its key is not to be asked for")]
    KeyNotAllowed,
    /// The server's key is no valid key, or too small for the password.
    #[error("the server's public key cannot be used")]
    BadKey,
}
