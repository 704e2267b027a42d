//! [`ServerExchange`]: the server's side of an authentication.
//!
//! States, and what moves them:
//!
//! ```text
//!                      native, ed25519: verified, or sha2: cache knew it  [receive]
//! FirstResponse ------------------------------------------------------------> verdict
//!      | sha2: cache did not                              [receive]              ^
//!      v                                                                         |
//! Password --- plain: client asks for the key, which is sent ---> Password       |
//!      | secure: password in clear; plain: password under RSA  [receive]         |
//!      v                                                                         |
//! Working ------------------------------------------------------ [worked] -------+
//! ```

use std::fmt;
use std::sync::Arc;

use crate::caching_sha2;
use crate::client_secret::ClientSecret;
use crate::ed25519;
use crate::method::{Method, Transport};
use crate::native_password;
use crate::nonce::Nonce;
use crate::random::Random;
use crate::rsa_key::RsaKey;
use crate::stored_secret::{Kind, StoredSecret};

/// What to do next.
#[derive(Debug)]
pub enum ServerStep {
    /// Send these bytes in a packet of more authentication data, then pass the client's next packet
    /// to [`ServerExchange::receive`].
    SendMoreData(Vec<u8>),
    /// Run this, perhaps on another thread, and pass its result to [`ServerExchange::worked`].
    Work(Work),
    /// The client has proved its identity.
    Granted {
        /// Send this as more data before the OK packet, if not empty.
        farewell: &'static [u8],
        /// Keep this for the account, and pass it to [`ServerExchange::new`] next time.
        to_cache: Option<[u8; 32]>,
        /// By which one can log in elsewhere as the same user; `None` if the exchange does not
        /// tell (`ed25519`).
        secret: Option<ClientSecret>,
    },
    /// The client has not proved its identity.
    Denied,
}

/// The server's side of an authentication.
#[derive(Debug)]
pub struct ServerExchange {
    secret: StoredSecret,
    nonce: Nonce,
    transport: Transport,
    /// The password's entry in the caller's cache.
    cached: Option<[u8; 32]>,
    /// For passwords that come encrypted.
    rsa_key: Option<Arc<RsaKey>>,
    state: State,
    /// Whether the client sent anything as a password.
    has_used_password: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    FirstResponse,
    Password,
    Working,
    Over,
}

impl ServerExchange {
    /// An exchange for an account's `secret`. `cached` is what an earlier exchange returned for the
    /// cache; only `caching_sha2_password` uses it and `rsa_key`.
    pub fn new(
        secret: StoredSecret,
        nonce: Nonce,
        transport: Transport,
        cached: Option<[u8; 32]>,
        rsa_key: Option<Arc<RsaKey>>,
    ) -> ServerExchange {
        let state = State::FirstResponse;
        let has_used_password = false;
        ServerExchange {
            secret,
            nonce,
            transport,
            cached,
            rsa_key,
            state,
            has_used_password,
        }
    }

    /// The method.
    pub fn method(&self) -> Method {
        self.secret.method()
    }

    /// The data of an auth switch packet, after the plugin's name.
    pub fn challenge(&self) -> Vec<u8> {
        match self.method() {
            Method::Ed25519 => self.nonce.bytes().to_vec(),
            Method::NativePassword | Method::CachingSha2 => {
                let mut challenge = self.nonce.scramble().to_vec();
                challenge.push(0);
                challenge
            }
        }
    }

    /// Whether the account has no password.
    pub fn is_without_password(&self) -> bool {
        matches!(self.secret.kind(), Kind::Empty)
    }

    /// Whether the client sent a password, for the text of error 1045.
    pub fn has_used_password(&self) -> bool {
        self.has_used_password
    }

    /// Handles a packet of the client: its first response, which may have come with its login, or
    /// an answer to more data.
    pub fn receive(&mut self, data: &[u8]) -> ServerStep {
        match self.state {
            State::FirstResponse => self.first_response(data),
            State::Password => self.password(data),
            State::Working | State::Over => self.deny(),
        }
    }

    fn first_response(&mut self, data: &[u8]) -> ServerStep {
        let is_empty = match self.method() {
            Method::CachingSha2 => matches!(data, [] | [0]),
            Method::NativePassword | Method::Ed25519 => data.is_empty(),
        };
        self.has_used_password = !is_empty;
        let scramble = self.nonce.scramble();
        match self.secret.kind() {
            Kind::Empty if is_empty || self.method() == Method::Ed25519 => self.empty(data),
            Kind::Native(stored) => match native_password::recover(data, &scramble, stored) {
                Some(digest) => self.grant(&[], None, Some(ClientSecret::Sha1(digest))),
                None => self.deny(),
            },
            Kind::Ed25519(key) if ed25519::verify(data, &self.nonce, key) => {
                self.grant(&[], None, None)
            }
            Kind::Sha2(_) if !is_empty => self.sha2_response(data),
            Kind::Empty | Kind::Ed25519(_) | Kind::Sha2(_) => self.deny(),
        }
    }

    fn sha2_response(&mut self, data: &[u8]) -> ServerStep {
        let scramble = self.nonce.scramble();
        let recover = |known| caching_sha2::recover(data, &scramble, known);
        if let Some(digest) = self.cached.as_ref().and_then(recover) {
            let secret = Some(ClientSecret::Sha256(digest));
            return self.grant(&[caching_sha2::FAST_SUCCESS], None, secret);
        }
        self.state = State::Password;
        ServerStep::SendMoreData(vec![caching_sha2::FULL_EXCHANGE])
    }

    /// An account without password. Clients of `ed25519` sign with the empty password.
    fn empty(&mut self, data: &[u8]) -> ServerStep {
        let is_signed = || ed25519::verify(data, &self.nonce, &ed25519::public_key(b""));
        let is_granted = data.is_empty() || self.method() != Method::Ed25519 || is_signed();
        if is_granted {
            self.grant(&[], None, Some(ClientSecret::password(b"")))
        } else {
            self.deny()
        }
    }

    /// A password in clear or encrypted, or a request for the key to encrypt it with.
    fn password(&mut self, data: &[u8]) -> ServerStep {
        let Kind::Sha2(stored) = self.secret.kind() else {
            return self.deny();
        };
        let stored = stored.clone();
        let password = match (self.transport, &self.rsa_key, data) {
            (Transport::Secure, _, [password @ .., 0]) => Password::Clear(password.to_vec()),
            (Transport::Plain, Some(key), [caching_sha2::REQUEST_KEY]) => {
                return ServerStep::SendMoreData(key.public_pem().as_bytes().to_vec());
            }
            (Transport::Plain, Some(key), encrypted) => {
                Password::Encrypted(encrypted.to_vec(), Arc::clone(key), self.nonce)
            }
            (Transport::Secure | Transport::Plain, _, _) => return self.deny(),
        };
        self.state = State::Working;
        ServerStep::Work(Work { stored, password })
    }

    /// Takes the result of [`Work::run`].
    pub fn worked(&mut self, worked: Worked) -> ServerStep {
        match (self.state, worked.digest) {
            (State::Working, Some(digest)) => {
                let to_cache = Some(caching_sha2::cached(&digest));
                self.grant(&[], to_cache, Some(ClientSecret::Sha256(digest)))
            }
            (_, _) => self.deny(),
        }
    }

    fn grant(
        &mut self,
        farewell: &'static [u8],
        to_cache: Option<[u8; 32]>,
        secret: Option<ClientSecret>,
    ) -> ServerStep {
        self.state = State::Over;
        ServerStep::Granted {
            farewell,
            to_cache,
            secret,
        }
    }

    fn deny(&mut self) -> ServerStep {
        self.state = State::Over;
        ServerStep::Denied
    }
}

/// A check of a password that takes milliseconds.
pub struct Work {
    stored: Box<caching_sha2::Stored>,
    password: Password,
}

enum Password {
    Clear(Vec<u8>),
    Encrypted(Vec<u8>, Arc<RsaKey>, Nonce),
}

/// What a [`Work`] found.
#[derive(Clone, Copy)]
pub struct Worked {
    /// SHA256(password), if the password is the right one.
    digest: Option<[u8; 32]>,
}

impl fmt::Debug for Worked {
    /// Never shows the digest.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worked")
            .field("is_right", &self.digest.is_some())
            .finish()
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Work")
    }
}

impl Work {
    /// Does the work; a pure computation that can run on any thread.
    pub fn run(self, random: &mut Random<'_>) -> Worked {
        let password = match self.password {
            Password::Clear(password) => Some(password),
            Password::Encrypted(encrypted, key, nonce) => {
                key.decrypt(&encrypted, random).and_then(|mut text| {
                    caching_sha2::mask(&mut text, &nonce.scramble());
                    (text.pop() == Some(0)).then_some(text)
                })
            }
        };
        let right = password.filter(|password| self.stored.verify(password));
        Worked {
            digest: right.map(|password| caching_sha2::digest(&password)),
        }
    }
}
