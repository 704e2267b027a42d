//! [`StoredSecret`]: what an account stores in place of its password.

use std::fmt;

use thiserror::Error;

use crate::caching_sha2;
use crate::ed25519;
use crate::method::Method;
use crate::native_password;
use crate::nonce::to_text_byte;
use crate::random::Random;
use crate::sha256_crypt;

/// Why a text or a password is no valid secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BadSecret {
    /// The text is not what the method stores (error 1372 or 1827).
    #[error("not a stored secret of {}", .0.account_plugin())]
    Format(Method),
    /// The password is longer than the method takes.
    #[error("password of more than {} bytes", sha256_crypt::PASSWORD_BYTES_MAX)]
    TooLong,
}

/// What an account stores in place of its password. Its text is what `SHOW CREATE USER` shows.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredSecret {
    method: Method,
    kind: Kind,
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The account has no password.
    Empty,
    Native([u8; native_password::DIGEST_BYTES]),
    Sha2(Box<caching_sha2::Stored>),
    Ed25519([u8; ed25519::PUBLIC_KEY_BYTES]),
}

impl fmt::Debug for StoredSecret {
    /// Shows only the method.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredSecret")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

impl StoredSecret {
    /// The secret of a password; an empty one makes an account without password.
    pub fn from_password(
        method: Method,
        password: &[u8],
        random: &mut Random<'_>,
    ) -> Result<StoredSecret, BadSecret> {
        if password.len() > sha256_crypt::PASSWORD_BYTES_MAX {
            return Err(BadSecret::TooLong);
        }
        let kind = match method {
            _ if password.is_empty() => Kind::Empty,
            Method::NativePassword => Kind::Native(native_password::stored(password)),
            Method::CachingSha2 => {
                let salt = random.bytes().map(to_text_byte);
                Kind::Sha2(Box::new(caching_sha2::Stored::from_password(
                    password, salt,
                )))
            }
            Method::Ed25519 => Kind::Ed25519(ed25519::public_key(password)),
        };
        Ok(StoredSecret { method, kind })
    }

    /// Parses the text of a secret; an empty one is an account without password.
    pub fn parse(method: Method, text: &[u8]) -> Result<StoredSecret, BadSecret> {
        let kind = match method {
            _ if text.is_empty() => Some(Kind::Empty),
            Method::NativePassword => parse_native(text).map(Kind::Native),
            Method::CachingSha2 => {
                caching_sha2::Stored::parse(text).map(|stored| Kind::Sha2(Box::new(stored)))
            }
            Method::Ed25519 => ed25519::parse_key(text).map(Kind::Ed25519),
        };
        kind.map(|kind| StoredSecret { method, kind })
            .ok_or(BadSecret::Format(method))
    }

    /// A secret that no password matches, for accounts that do not exist. `random` makes each one
    /// different.
    pub fn impossible(method: Method, random: &mut Random<'_>) -> StoredSecret {
        let kind = match method {
            Method::NativePassword => Kind::Native(random.bytes()),
            Method::CachingSha2 => Kind::Sha2(Box::new(caching_sha2::Stored {
                kilorounds: 5,
                salt: random.bytes(),
                digest: [0; sha256_crypt::TEXT_BYTES],
            })),
            Method::Ed25519 => Kind::Ed25519(ed25519::public_key(&random.bytes::<32>())),
        };
        StoredSecret { method, kind }
    }

    /// The method that it belongs to.
    pub fn method(&self) -> Method {
        self.method
    }

    /// Whether the account has no password.
    pub fn is_empty(&self) -> bool {
        matches!(self.kind, Kind::Empty)
    }

    /// The text that is stored. That of `caching_sha2_password` is ASCII, but not all printable.
    pub fn to_text(&self) -> Vec<u8> {
        match &self.kind {
            Kind::Empty => Vec::new(),
            Kind::Native(digest) => native_text(digest).into_bytes(),
            Kind::Sha2(stored) => stored.to_text(),
            Kind::Ed25519(key) => ed25519::key_text(key).into_bytes(),
        }
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.kind
    }
}

/// `*` and 40 hexadecimal digits.
fn native_text(digest: &[u8; native_password::DIGEST_BYTES]) -> String {
    digest.iter().fold(String::from("*"), |text, byte| {
        text + &format!("{byte:02X}")
    })
}

fn parse_native(text: &[u8]) -> Option<[u8; native_password::DIGEST_BYTES]> {
    let digits = text.strip_prefix(b"*")?;
    let mut digest = [0; native_password::DIGEST_BYTES];
    if digits.len() != digest.len() * 2 {
        return None;
    }
    for (place, pair) in digest.iter_mut().zip(digits.chunks(2)) {
        let nibble = |byte: u8| char::from(byte).to_digit(16);
        let [high, low] = pair.try_into().ok()?;
        *place = u8::try_from(nibble(high)? << 4 | nibble(low)?).ok()?;
    }
    Some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::tests::test_random;

    #[test]
    fn text_leads_back_to_the_secret() {
        let mut source = test_random();
        let mut random = Random(&mut source);
        for method in Method::ALL {
            for password in [&b""[..], b"secret"] {
                let secret = StoredSecret::from_password(method, password, &mut random).unwrap();
                assert_eq!(secret.is_empty(), password.is_empty());
                assert_eq!(StoredSecret::parse(method, &secret.to_text()), Ok(secret));
            }
            let impossible = StoredSecret::impossible(method, &mut random);
            assert_eq!(
                StoredSecret::parse(method, &impossible.to_text()),
                Ok(impossible)
            );
            assert_eq!(
                StoredSecret::parse(method, b"*12"),
                Err(BadSecret::Format(method))
            );
        }
    }

    /// `SELECT PASSWORD('secret')`.
    #[test]
    fn native_text_is_the_reference_s() {
        let mut source = test_random();
        let secret = StoredSecret::from_password(
            Method::NativePassword,
            b"secret",
            &mut Random(&mut source),
        );
        assert_eq!(
            secret.unwrap().to_text(),
            b"*14E65567ABDB5135D0CFD9A70B3032C179A49EE7"
        );
    }

    #[test]
    fn long_passwords_are_refused() {
        let mut source = test_random();
        let mut random = Random(&mut source);
        for method in Method::ALL {
            let secret = StoredSecret::from_password(method, &[b'x'; 257], &mut random);
            assert_eq!(secret, Err(BadSecret::TooLong));
        }
    }
}
