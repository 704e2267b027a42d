//! `caching_sha2_password`.
//!
//! ```text
//! client: XOR(SHA256(password), SHA256(SHA256(SHA256(password)), scramble))
//! server, if it has SHA256(SHA256(password)) in its cache and that fits:  3, then OK
//! server, else:                                                          4
//!   over TLS or a unix socket:
//!     client: password, zero byte
//!   else:
//!     client: 2                              the public key, please; left out if it has the key
//!     server: the key as PEM
//!     client: RSA-OAEP of (password, zero byte) XOR scramble over and over
//!   server: checks against the stored hash, puts SHA256(SHA256(password)) into its cache, OK
//! ```
//!
//! The stored text is `$A$`, thousands of rounds in three hexadecimal digits, `$`, 20 bytes of
//! salt, 43 characters of SHA-256-crypt.

use sha2::{Digest, Sha256};

use crate::are_equal;
use crate::sha256_crypt;

/// Server to client: the cache has the password.
pub(crate) const FAST_SUCCESS: u8 = 3;
/// Server to client: send the password.
pub(crate) const FULL_EXCHANGE: u8 = 4;
/// Client to server: send the public key.
pub(crate) const REQUEST_KEY: u8 = 2;

/// Bytes of SHA-256.
pub(crate) const DIGEST_BYTES: usize = 32;
/// Bytes of salt.
pub(crate) const SALT_BYTES: usize = 20;

/// A parsed stored text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    /// Thousands of rounds, 1 to 0xFFF.
    pub(crate) kilorounds: u16,
    pub(crate) salt: [u8; SALT_BYTES],
    pub(crate) digest: [u8; sha256_crypt::TEXT_BYTES],
}

/// MySQL's number of rounds, in thousands.
const KILOROUNDS: u16 = 5;

impl Stored {
    /// The stored form of a password of at most 256 bytes.
    pub(crate) fn from_password(password: &[u8], salt: [u8; SALT_BYTES]) -> Stored {
        let digest = sha256_crypt::hash(password, &salt, u32::from(KILOROUNDS) * 1000);
        Stored {
            kilorounds: KILOROUNDS,
            salt,
            digest,
        }
    }

    /// Reads a stored text.
    pub(crate) fn parse(text: &[u8]) -> Option<Stored> {
        let rest = text.strip_prefix(b"$A$")?;
        let (kilorounds, rest) = rest.split_first_chunk::<3>()?;
        let kilorounds = std::str::from_utf8(kilorounds).ok()?;
        let kilorounds = u16::from_str_radix(kilorounds, 16)
            .ok()
            .filter(|count| *count > 0)?;
        let (salt, digest) = rest.strip_prefix(b"$")?.split_first_chunk::<SALT_BYTES>()?;
        Some(Stored {
            kilorounds,
            salt: *salt,
            digest: digest.try_into().ok()?,
        })
    }

    /// The text.
    pub(crate) fn to_text(&self) -> Vec<u8> {
        let mut text = format!("$A${:03X}$", self.kilorounds).into_bytes();
        text.extend_from_slice(&self.salt);
        text.extend_from_slice(&self.digest);
        text
    }

    /// Whether `password` is right. Takes milliseconds.
    pub(crate) fn verify(&self, password: &[u8]) -> bool {
        if password.len() > sha256_crypt::PASSWORD_BYTES_MAX {
            return false;
        }
        let rounds = u32::from(self.kilorounds) * 1000;
        are_equal(
            &sha256_crypt::hash(password, &self.salt, rounds),
            &self.digest,
        )
    }
}

/// What a client needs of its password as long as the server's cache knows it.
pub(crate) fn digest(password: &[u8]) -> [u8; DIGEST_BYTES] {
    sha256(&[password])
}

/// What a cache holds of a password.
pub(crate) fn cached(digest: &[u8; DIGEST_BYTES]) -> [u8; DIGEST_BYTES] {
    sha256(&[digest])
}

/// What a client answers to `scramble`.
pub(crate) fn respond(digest: [u8; DIGEST_BYTES], scramble: &[u8]) -> Vec<u8> {
    let masking = sha256(&[&cached(&digest), scramble]);
    let mut response = digest;
    mask(&mut response, &masking);
    response.to_vec()
}

/// SHA256(password), if `response` to `scramble` proves the password behind `known`.
pub(crate) fn recover(
    response: &[u8],
    scramble: &[u8],
    known: &[u8; DIGEST_BYTES],
) -> Option<[u8; DIGEST_BYTES]> {
    let mut digest = <[u8; DIGEST_BYTES]>::try_from(response).ok()?;
    mask(&mut digest, &sha256(&[known, scramble]));
    are_equal(&cached(&digest), known).then_some(digest)
}

/// Masks or unmasks a password that is sent under RSA.
pub(crate) fn mask(text: &mut [u8], scramble: &[u8]) {
    text.iter_mut()
        .zip(scramble.iter().cycle())
        .for_each(|(byte, mask)| *byte ^= mask);
}

fn sha256(parts: &[&[u8]]) -> [u8; DIGEST_BYTES] {
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stored text of MySQL 8 for `foobar`.
    const MYSQL_STORED: &[u8] = b"$A$005$\x03\x1Ai%\x1C4)\\K5\x16|\x7F\x1EZ{c\x09\x13\
        IP9tbM4PKZBFy5HV3hhhoRHZsnJs3hxnBuuQlsDdiIe7";

    #[test]
    fn hash_of_a_real_server_is_understood() {
        let stored = Stored::parse(MYSQL_STORED).unwrap();
        assert_eq!(stored.to_text(), MYSQL_STORED);
        assert!(stored.verify(b"foobar"));
        assert!(!stored.verify(b"fooba"));
        assert!(!stored.verify(&[b'x'; 257]));
    }

    #[test]
    fn damaged_texts_are_refused() {
        let parse = |text: &[u8]| Stored::parse(text).is_some();
        let (head, tail) = (&b"$A$005$"[..], &MYSQL_STORED[7..]);
        assert!(parse(&[head, tail].concat()));
        assert!(!parse(&[head, &tail[1..]].concat()));
        assert!(!parse(&[head, tail, b"x"].concat()));
        assert!(!parse(&[b"$B$005$", tail].concat()));
        assert!(!parse(&[b"$A$000$", tail].concat()));
        assert!(!parse(&[b"$A$0x5$", tail].concat()));
        assert!(!parse(b""));
    }

    #[test]
    fn cache_knows_the_password_by_its_proof() {
        let scramble = [9; 20];
        let secret = digest(b"foobar");
        let response = respond(secret, &scramble);
        let known = cached(&secret);
        assert_eq!(recover(&response, &scramble, &known), Some(secret));
        let other = cached(&digest(b"foobaz"));
        assert_eq!(recover(&response, &scramble, &other), None);
        assert_eq!(recover(&response, &[8; 20], &known), None);
        assert_eq!(recover(&response[1..], &scramble, &known), None);
    }
}
