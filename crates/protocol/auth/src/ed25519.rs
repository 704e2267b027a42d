//! MariaDB's `ed25519`.
//!
//! The client signs a challenge of 32 bytes. The signature is Ed25519 except for one step. The
//! secret key is expanded from the password itself, SHA512(password); the standard expands a seed
//! of 32 bytes. The stored public key verifies it in the standard way.

use base64ct::{Base64Unpadded, Encoding};
use ed25519_dalek::hazmat::{ExpandedSecretKey, raw_sign};
use ed25519_dalek::{Signature, VerifyingKey};
use sha2::{Digest, Sha512};

use crate::nonce::Nonce;

/// Bytes of a public key.
pub(crate) const PUBLIC_KEY_BYTES: usize = 32;

/// The public key of a password.
pub(crate) fn public_key(password: &[u8]) -> [u8; PUBLIC_KEY_BYTES] {
    VerifyingKey::from(&expand(password)).to_bytes()
}

/// A client's answer to `nonce`.
pub(crate) fn respond(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    let secret = expand(password);
    let public = VerifyingKey::from(&secret);
    raw_sign::<Sha512>(&secret, nonce, &public)
        .to_bytes()
        .to_vec()
}

/// Whether `response` is `nonce` signed with the password of `public_key`.
pub(crate) fn verify(response: &[u8], nonce: &Nonce, public_key: &[u8; PUBLIC_KEY_BYTES]) -> bool {
    let Ok(signature) = Signature::from_slice(response) else {
        return false;
    };
    let Ok(key) = VerifyingKey::from_bytes(public_key) else {
        return false;
    };
    key.verify_strict(nonce.bytes(), &signature).is_ok()
}

fn expand(password: &[u8]) -> ExpandedSecretKey {
    let expanded: [u8; 64] = Sha512::digest(password).into();
    ExpandedSecretKey::from_bytes(&expanded)
}

/// How MariaDB stores a public key: in base64 without padding.
pub(crate) fn key_text(key: &[u8; PUBLIC_KEY_BYTES]) -> String {
    Base64Unpadded::encode_string(key)
}

/// The public key of a stored text; `None` for any other text.
pub(crate) fn parse_key(text: &[u8]) -> Option<[u8; PUBLIC_KEY_BYTES]> {
    let mut key = [0; PUBLIC_KEY_BYTES];
    let read = Base64Unpadded::decode(text, &mut key).ok()?;
    (read.len() == PUBLIC_KEY_BYTES).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `SELECT ed25519_password('secret')` of MariaDB 10.11 and its documentation.
    #[test]
    fn public_key_is_the_reference_s() {
        assert_eq!(
            key_text(&public_key(b"secret")),
            "ZIgUREUg5PVgQ6LskhXmO+eZLS0nC8be6HPjYWR4YJY"
        );
    }

    #[test]
    fn texts_of_other_lengths_and_bits_are_no_keys() {
        let text = key_text(&[0; PUBLIC_KEY_BYTES]);
        assert_eq!(text, "A".repeat(43));
        assert_eq!(parse_key(text.as_bytes()), Some([0; PUBLIC_KEY_BYTES]));
        let parse = |text: &str| parse_key(text.as_bytes());
        assert_eq!(parse(&text[1..]), None);
        assert_eq!(parse(&format!("{text}A")), None);
        assert_eq!(parse(&format!("{text}=")), None);
        assert_eq!(parse(&text.replace('A', "=")), None);
        assert_eq!(parse(&format!("{}B", &text[1..])), None);
    }

    #[test]
    fn right_password_passes_and_others_do_not() {
        let nonce = Nonce::from_random([5; 32]);
        let key = public_key(b"secret");
        let response = respond(b"secret", nonce.bytes());
        assert!(verify(&response, &nonce, &key));
        assert!(!verify(&response, &Nonce::from_random([6; 32]), &key));
        assert!(!verify(&respond(b"Secret", nonce.bytes()), &nonce, &key));
        assert!(!verify(&response[1..], &nonce, &key));
        assert!(!verify(&[0; 64], &nonce, &[0; 32]));
    }
}
