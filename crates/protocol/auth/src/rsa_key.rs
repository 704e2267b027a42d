//! [`RsaKey`]: the key pair by which clients of `caching_sha2_password` hide a password on a
//! connection without TLS.

use std::fmt;

use rsa::pkcs8::{
    DecodePrivateKey, DecodePublicKey, EncodePrivateKey, EncodePublicKey, LineEnding,
};
use rsa::{Oaep, RsaPrivateKey, RsaPublicKey};
use sha1::Sha1;
use thiserror::Error;

use crate::random::Random;

/// Bits of a generated key; the same as MySQL's.
const KEY_BITS: usize = 2048;

/// What is wrong with a key or with the text to encrypt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RsaKeyError {
    /// The PEM text holds no RSA key of the wanted kind.
    #[error("the text holds no RSA key in PEM")]
    NotAKey,
    /// The key could not be generated.
    #[error("an RSA key could not be made")]
    NotMade,
    /// The text is too long for the key.
    #[error("the password is too long for the key")]
    TooLong,
}

/// A key pair, and its public half as the text that is sent to clients.
pub struct RsaKey {
    private: RsaPrivateKey,
    public_pem: String,
}

impl fmt::Debug for RsaKey {
    /// Never shows the private half.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RsaKey")
            .field("public_pem", &self.public_pem)
            .finish_non_exhaustive()
    }
}

impl RsaKey {
    /// Generates a key. Takes up to about a second.
    pub fn generate(random: &mut Random<'_>) -> Result<RsaKey, RsaKeyError> {
        let private = RsaPrivateKey::new(random, KEY_BITS).map_err(|_| RsaKeyError::NotMade)?;
        RsaKey::from_private(private)
    }

    /// The key from a text of [`RsaKey::private_pem`].
    pub fn from_private_pem(pem: &str) -> Result<RsaKey, RsaKeyError> {
        let private = RsaPrivateKey::from_pkcs8_pem(pem).map_err(|_| RsaKeyError::NotAKey)?;
        RsaKey::from_private(private)
    }

    fn from_private(private: RsaPrivateKey) -> Result<RsaKey, RsaKeyError> {
        let public_pem = private
            .to_public_key()
            .to_public_key_pem(LineEnding::LF)
            .map_err(|_| RsaKeyError::NotAKey)?;
        Ok(RsaKey {
            private,
            public_pem,
        })
    }

    /// The private half as text (PKCS #8). Keep it where only the server can read it.
    pub fn private_pem(&self) -> Result<String, RsaKeyError> {
        let pem = self
            .private
            .to_pkcs8_pem(LineEnding::LF)
            .map_err(|_| RsaKeyError::NotMade)?;
        Ok(pem.as_str().to_owned())
    }

    /// The public half as text.
    pub fn public_pem(&self) -> &str {
        &self.public_pem
    }

    /// Decrypts what was encrypted for this key, or returns `None`. Takes a millisecond or two;
    /// random bytes hide the time that it takes.
    pub(crate) fn decrypt(&self, encrypted: &[u8], random: &mut Random<'_>) -> Option<Vec<u8>> {
        self.private
            .decrypt_blinded(random, Oaep::new::<Sha1>(), encrypted)
            .ok()
    }
}

/// Encrypts `text` for the owner of a public key.
pub(crate) fn encrypt(
    public_pem: &str,
    text: &[u8],
    random: &mut Random<'_>,
) -> Result<Vec<u8>, RsaKeyError> {
    let public = RsaPublicKey::from_public_key_pem(public_pem).map_err(|_| RsaKeyError::NotAKey)?;
    public
        .encrypt(random, Oaep::new::<Sha1>(), text)
        .map_err(|_| RsaKeyError::TooLong)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::{Arc, OnceLock};

    use super::*;
    use crate::random::tests::test_random;

    /// One key for all tests: making one is slow.
    pub(crate) fn test_key() -> Arc<RsaKey> {
        static KEY: OnceLock<Arc<RsaKey>> = OnceLock::new();
        let make = || RsaKey::generate(&mut Random(&mut test_random())).unwrap();
        Arc::clone(KEY.get_or_init(|| Arc::new(make())))
    }

    #[test]
    fn key_survives_its_file_and_decrypts() {
        let key = test_key();
        let again = RsaKey::from_private_pem(&key.private_pem().unwrap()).unwrap();
        assert_eq!(again.public_pem(), key.public_pem());
        assert!(key.public_pem().starts_with("-----BEGIN PUBLIC KEY-----\n"));
        let mut source = test_random();
        let mut random = Random(&mut source);
        let encrypted = encrypt(key.public_pem(), b"secret", &mut random).unwrap();
        assert_eq!(again.decrypt(&encrypted, &mut random).unwrap(), b"secret");
        assert_eq!(again.decrypt(&[1; 256], &mut random), None);
        assert_eq!(again.decrypt(b"", &mut random), None);
        let too_long = encrypt(key.public_pem(), &[0; 300], &mut random);
        assert_eq!(too_long, Err(RsaKeyError::TooLong));
        assert!(!format!("{key:?}").contains("PRIVATE"));
    }
}
