//! Authentication methods as pure step machines, for the server's side and the client's.
//!
//! | [`Method`] | who uses it | what is stored |
//! |---|---|---|
//! | `mysql_native_password` | everybody | `*` and SHA1(SHA1(password)) in hexadecimal |
//! | `caching_sha2_password` | MySQL 8 | `$A$005$`, salt, SHA-256-crypt of the password |
//! | `ed25519` | MariaDB | a public key in base64 |
//!
//! A [`ServerExchange`] is fed what the client sends and returns [`ServerStep`]s: what to send,
//! that it needs more, a piece of [`Work`] that takes long, or the verdict. It does no I/O and
//! reads no clock; random bytes come from the caller. [`ClientExchange`] is its counterpart.
//!
//! Rules:
//!
//! (R1) Secrets are compared in a time that does not depend on where they differ.
//! (R2) For an account that does not exist, the exchange runs as for one that does, with
//!      [`StoredSecret::impossible`]. So it does not reveal which names exist.
//! (R3) A password in clear is accepted only over TLS and unix sockets; elsewhere it comes
//!      encrypted by the server's RSA key.

#![forbid(unsafe_code)]

pub mod pattern;
mod peer;

mod account_name;

mod method;
mod nonce;
mod random;
mod stored_secret;

mod native_password;

mod caching_sha2;
mod rsa_key;
mod sha256_crypt;

mod ed25519;

mod client_auth_error;
mod client_exchange;
mod client_secret;
mod server_exchange;

pub use account_name::{AccountName, HOST_BYTES_MAX, USER_NAME_CHARS_MAX};
pub use client_auth_error::ClientAuthError;
pub use client_exchange::{ClientExchange, ClientStep, KeyPolicy};
pub use client_secret::ClientSecret;
pub use method::{Method, Transport};
pub use nonce::{NONCE_BYTES, Nonce, SCRAMBLE_BYTES};
pub use peer::Peer;
pub use random::Random;
pub use rsa_key::{RsaKey, RsaKeyError};
pub use server_exchange::{ServerExchange, ServerStep, Work, Worked};
pub use stored_secret::{BadSecret, StoredSecret};

/// Whether two secrets are equal (R1).
pub(crate) fn are_equal(a: &[u8], b: &[u8]) -> bool {
    let difference = a
        .iter()
        .zip(b)
        .fold(0, |sum, (a, b)| std::hint::black_box(sum | (a ^ b)));
    difference == 0 && a.len() == b.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equality_looks_at_every_byte_and_the_length() {
        assert!(are_equal(b"", b""));
        assert!(are_equal(b"ab", b"ab"));
        assert!(!are_equal(b"ab", b"cb"));
        assert!(!are_equal(b"ab", b"ac"));
        assert!(!are_equal(b"ab", b"abc"));
    }
}
