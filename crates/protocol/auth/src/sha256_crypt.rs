//! SHA-256-crypt: the slow hash that `caching_sha2_password` stores.
//!
//! The algorithm is Ulrich Drepper's "Unix crypt using SHA-256 and SHA-512". MySQL differs only in
//! the salt, which has 20 bytes where crypt has at most 16. Refused: the library `sha-crypt`, which
//! cuts a salt off after 16 bytes.
//!
//! Its cost grows with the square of the password's length, so the callers check
//! [`PASSWORD_BYTES_MAX`].

use base64ct::{Base64ShaCrypt, Encoding};
use sha2::{Digest, Sha256};

/// MySQL's limit on passwords.
pub(crate) const PASSWORD_BYTES_MAX: usize = 256;

/// Characters of a digest's text.
pub(crate) const TEXT_BYTES: usize = 43;

const DIGEST_BYTES: usize = 32;

/// The hash of `password` as text.
pub(crate) fn hash(password: &[u8], salt: &[u8], rounds: u32) -> [u8; TEXT_BYTES] {
    assert!(
        password.len() <= PASSWORD_BYTES_MAX,
        "callers check the length"
    );
    let mut digest = first_digest(password, salt);
    let password_bytes = repeat(digest_of(password, password.len()), password.len());
    let [salt_repeats, ..] = digest;
    let salt_bytes = repeat(digest_of(salt, 16 + usize::from(salt_repeats)), salt.len());
    for round in 0..rounds {
        let mut hash = Sha256::new();
        let is_odd = round % 2 == 1;
        hash.update(if is_odd { &password_bytes[..] } else { &digest });
        if round % 3 != 0 {
            hash.update(&salt_bytes);
        }
        if round % 7 != 0 {
            hash.update(&password_bytes);
        }
        hash.update(if is_odd { &digest[..] } else { &password_bytes });
        digest = hash.finalize().into();
    }
    to_text(&digest)
}

/// The digest that the rounds start with.
fn first_digest(password: &[u8], salt: &[u8]) -> [u8; DIGEST_BYTES] {
    let mut inner = Sha256::new();
    [password, salt, password]
        .iter()
        .for_each(|part| inner.update(part));
    let inner: [u8; DIGEST_BYTES] = inner.finalize().into();

    let mut hash = Sha256::new();
    hash.update(password);
    hash.update(salt);
    hash.update(repeat(inner, password.len()));
    let mut bits = password.len();
    while bits > 0 {
        hash.update(if bits & 1 == 1 { &inner[..] } else { password });
        bits >>= 1;
    }
    hash.finalize().into()
}

/// The digest of `text` written `count` times.
fn digest_of(text: &[u8], count: usize) -> [u8; DIGEST_BYTES] {
    let mut hash = Sha256::new();
    (0..count).for_each(|_| hash.update(text));
    hash.finalize().into()
}

/// `count` bytes of the digest over and over.
fn repeat(digest: [u8; DIGEST_BYTES], count: usize) -> Vec<u8> {
    digest.iter().copied().cycle().take(count).collect()
}

/// The digest's bytes in crypt's order, as text.
fn to_text(digest: &[u8; DIGEST_BYTES]) -> [u8; TEXT_BYTES] {
    let [first @ .., last_but_one, last] = digest;
    let mut ordered = [0; DIGEST_BYTES];
    for (place, byte) in ordered.iter_mut().enumerate() {
        // Groups of three are (20, 10, 0), (11, 1, 21), (2, 22, 12), (23, 13, 3), ...: each is the
        // one before plus 21, modulo 30, and its bytes are 20 apart.
        let index = (place / 3 * 21 + 20 + place % 3 * 20) % first.len();
        *byte = first.get(index).copied().unwrap_or(0);
    }
    let [.., before_end, end] = &mut ordered;
    (*before_end, *end) = (*last_but_one, *last);
    let mut text = [0; TEXT_BYTES];
    Base64ShaCrypt::encode(&ordered, &mut text).expect("32 bytes take 43 characters");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the specification.
    #[test]
    fn published_vectors() {
        let vectors: [(&str, &str, u32, &str); 4] = [
            (
                "Hello world!",
                "saltstring",
                5000,
                "5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5",
            ),
            (
                "Hello world!",
                "saltstringsaltst",
                10_000,
                "3xv.VbSHBb41AL9AvLeujZkZRBAwqFMz2.opqey6IcA",
            ),
            (
                "a very much longer text to encrypt.  This one even stretches over morethan one \
                 line.",
                "anotherlongsalts",
                1400,
                "Rx.j8H.h8HjEDGomFU8bDkXm3XIUnzyxf12oP84Bnq1",
            ),
            (
                "we have a short salt string but not a short password",
                "short",
                77_777,
                "JiO1O3ZpDAxGJeaDIuqCoEFysAe1mZNJRs3pw0KQRd/",
            ),
        ];
        for (password, salt, rounds, text) in vectors {
            assert_eq!(
                hash(password.as_bytes(), salt.as_bytes(), rounds),
                text.as_bytes()
            );
        }
    }
}
