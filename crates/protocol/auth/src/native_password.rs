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

/// What a client needs of its password.
pub(crate) fn digest(password: &[u8]) -> [u8; DIGEST_BYTES] {
    sha1(&[password])
}

/// What a client answers to `scramble`.
pub(crate) fn respond(digest: [u8; DIGEST_BYTES], scramble: &[u8]) -> Vec<u8> {
    let mask = sha1(&[scramble, &sha1(&[&digest])]);
    xor(digest, mask).to_vec()
}

/// SHA1(password), if `response` to `scramble` proves the password behind `stored`.
pub(crate) fn recover(
    response: &[u8],
    scramble: &[u8],
    stored: &[u8; DIGEST_BYTES],
) -> Option<[u8; DIGEST_BYTES]> {
    let response = <[u8; DIGEST_BYTES]>::try_from(response).ok()?;
    let digest = xor(response, sha1(&[scramble, stored]));
    are_equal(&sha1(&[&digest]), stored).then_some(digest)
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
        let response = respond(digest(b"secret"), &scramble);
        assert_eq!(
            recover(&response, &scramble, &stored),
            Some(digest(b"secret"))
        );
        assert_eq!(recover(&response, &[8; 20], &stored), None);
        let other = respond(digest(b"Secret"), &scramble);
        assert_eq!(recover(&other, &scramble, &stored), None);
        assert_eq!(recover(&response[..19], &scramble, &stored), None);
        assert_eq!(recover(b"", &scramble, &stored), None);
    }
}
