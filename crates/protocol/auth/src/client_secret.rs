//! [`ClientSecret`]: what a client proves itself by: its password, or as much of it as a method
//! needs.
//!
//! A server that has seen a login knows enough to log in elsewhere as the same user: what a client
//! sends for `mysql_native_password` and `caching_sha2_password` is the hash of its password,
//! masked by what the server has. So the password itself need not be kept.

use std::fmt;

use crate::caching_sha2;
use crate::client_auth_error::ClientAuthError;
use crate::ed25519;
use crate::method::Method;
use crate::native_password;

/// See the module's head.
#[derive(Clone, PartialEq, Eq)]
pub enum ClientSecret {
    /// The password; empty for an account that has none.
    Password(Vec<u8>),
    /// SHA1(password), which is enough for `mysql_native_password`.
    Sha1([u8; native_password::DIGEST_BYTES]),
    /// SHA256(password), which is enough for `caching_sha2_password` as long as the server's cache
    /// knows the password.
    Sha256([u8; caching_sha2::DIGEST_BYTES]),
}

impl fmt::Debug for ClientSecret {
    /// Shows the kind alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ClientSecret::Password(_) => "Password",
            ClientSecret::Sha1(_) => "Sha1",
            ClientSecret::Sha256(_) => "Sha256",
        })
    }
}

impl ClientSecret {
    /// The secret of a password.
    pub fn password(password: &[u8]) -> ClientSecret {
        ClientSecret::Password(password.to_vec())
    }

    /// Whether it answers the first challenge of `method`.
    pub fn is_enough_for(&self, method: Method) -> bool {
        match self {
            ClientSecret::Password(_) => true,
            ClientSecret::Sha1(_) => method == Method::NativePassword,
            ClientSecret::Sha256(_) => method == Method::CachingSha2,
        }
    }

    /// What answers `nonce`; empty without a password, but for signatures.
    pub(crate) fn respond(&self, method: Method, nonce: &[u8]) -> Result<Vec<u8>, ClientAuthError> {
        match (method, self) {
            (Method::Ed25519, ClientSecret::Password(password)) => {
                Ok(ed25519::respond(password, nonce))
            }
            (_, ClientSecret::Password(password)) if password.is_empty() => Ok(Vec::new()),
            (Method::NativePassword, ClientSecret::Password(password)) => {
                let digest = native_password::digest(password);
                Ok(native_password::respond(digest, nonce))
            }
            (Method::NativePassword, ClientSecret::Sha1(digest)) => {
                Ok(native_password::respond(*digest, nonce))
            }
            (Method::CachingSha2, ClientSecret::Password(password)) => {
                let digest = caching_sha2::digest(password);
                Ok(caching_sha2::respond(digest, nonce))
            }
            (Method::CachingSha2, ClientSecret::Sha256(digest)) => {
                Ok(caching_sha2::respond(*digest, nonce))
            }
            (_, ClientSecret::Sha1(_) | ClientSecret::Sha256(_)) => {
                Err(ClientAuthError::NotEnough(method))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_answer_as_the_password_does_or_not_at_all() {
        let password = ClientSecret::password(b"secret");
        let digests = [
            (
                Method::NativePassword,
                ClientSecret::Sha1(native_password::digest(b"secret")),
            ),
            (
                Method::CachingSha2,
                ClientSecret::Sha256(caching_sha2::digest(b"secret")),
            ),
        ];
        for (own, digest) in digests {
            for method in Method::ALL {
                let answer = digest.respond(method, &[7; 20]);
                assert_eq!(digest.is_enough_for(method), method == own);
                if method == own {
                    assert_eq!(answer, password.respond(method, &[7; 20]));
                } else {
                    assert_eq!(answer, Err(ClientAuthError::NotEnough(method)));
                }
            }
            assert!(!format!("{digest:?}").contains('['));
        }
        assert_eq!(format!("{password:?}"), "Password");
    }
}
