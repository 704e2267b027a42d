//! `mysql_native_password`.
//!
//! The client proves that it knows SHA1(password): it sends that XORed with SHA1(scramble,
//! SHA1(SHA1(password))). The server stores SHA1(SHA1(password)), so it can undo the XOR and hash
//! the result.

use sha1::{Digest, Sha1};

use crate::are_equal;

/// Bytes of SHA-1.
pub(crate) const DIGEST_BYTES: usize = 20;

/// The stored form of a password.
pub(crate) fn stored(password: &[u8]) -> [u8; DIGEST_BYTES] {
    sha1(&[&sha1(&[password])])
}

/// A client's answer to `scramble`; empty if it has no password.
pub(crate) fn respond(password: &[u8], scramble: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let stage_1 = sha1(&[password]);
    let mask = sha1(&[scramble, &sha1(&[&stage_1])]);
    xor(stage_1, mask).to_vec()
}

/// Whether `response` to `scramble` proves the password of `stored`.
pub(crate) fn verify(response: &[u8], scramble: &[u8], stored: &[u8; DIGEST_BYTES]) -> bool {
    let Ok(response) = <[u8; DIGEST_BYTES]>::try_from(response) else {
        return false;
    };
    let mask = sha1(&[scramble, stored]);
    are_equal(&sha1(&[&xor(response, mask)]), stored)
}

fn sha1(parts: &[&[u8]]) -> [u8; DIGEST_BYTES] {
    let mut hash = Sha1::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.finalize().into()
}

fn xor<const N: usize>(mut a: [u8; N], b: [u8; N]) -> [u8; N] {
    a.iter_mut().zip(b).for_each(|(a, b)| *a ^= b);
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn right_password_passes_and_others_do_not() {
        let scramble = [7; 20];
        let stored = stored(b"secret");
        let response = respond(b"secret", &scramble);
        assert!(verify(&response, &scramble, &stored));
        assert!(!verify(&response, &[8; 20], &stored));
        assert!(!verify(&respond(b"Secret", &scramble), &scramble, &stored));
        assert!(!verify(&response[..19], &scramble, &stored));
        assert!(!verify(b"", &scramble, &stored));
        assert!(respond(b"", &scramble).is_empty());
    }
}
