//! [`ClientExchange`]: the client's side of an authentication.

use std::fmt;

use crate::caching_sha2;
use crate::client_auth_error::ClientAuthError;
use crate::client_secret::ClientSecret;
use crate::method::{Method, Transport};
use crate::nonce::{NONCE_BYTES, SCRAMBLE_BYTES};
use crate::random::Random;
use crate::rsa_key;

/// Whether a server's RSA key may be requested over a connection without TLS, where an attacker in
/// the middle could replace it by another key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPolicy {
    /// Ask for it.
    Ask,
    /// Fail instead.
    Never,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientStep {
    /// Send these bytes as a packet.
    Send(Vec<u8>),
    /// Nothing: the server's verdict, or more data, comes next.
    Wait,
}

/// The client's side of an authentication.
pub struct ClientExchange {
    method: Method,
    secret: ClientSecret,
    /// The server's challenge without its final zero.
    nonce: Vec<u8>,
    transport: Transport,
    key_policy: KeyPolicy,
    /// Whether the key was asked for, so that it comes next.
    awaits_key: bool,
}

impl fmt::Debug for ClientExchange {
    /// Never shows the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientExchange")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

impl ClientExchange {
    /// An exchange that answers `challenge`, which came with the greeting or an auth switch.
    pub fn new(
        method: Method,
        secret: &ClientSecret,
        challenge: &[u8],
        transport: Transport,
        key_policy: KeyPolicy,
    ) -> ClientExchange {
        let nonce = match method {
            Method::Ed25519 => challenge.get(..NONCE_BYTES),
            Method::NativePassword | Method::CachingSha2 => challenge.get(..SCRAMBLE_BYTES),
        };
        let nonce = nonce.unwrap_or(challenge);
        ClientExchange {
            method,
            secret: secret.clone(),
            nonce: nonce.to_vec(),
            transport,
            key_policy,
            awaits_key: false,
        }
    }

    /// The first response, which goes into the login or answers an auth switch.
    pub fn first_response(&self) -> Result<Vec<u8>, ClientAuthError> {
        self.secret.respond(self.method, &self.nonce)
    }

    /// Handles data that the server sent.
    pub fn more_data(
        &mut self,
        data: &[u8],
        random: &mut Random<'_>,
    ) -> Result<ClientStep, ClientAuthError> {
        match (self.method, data, self.awaits_key) {
            (Method::CachingSha2, [caching_sha2::FAST_SUCCESS], false) => Ok(ClientStep::Wait),
            (Method::CachingSha2, [caching_sha2::FULL_EXCHANGE], false) => self.send_password(),
            (Method::CachingSha2, pem, true) => self.encrypt_password(pem, random),
            (_, _, _) => Err(ClientAuthError::Step),
        }
    }

    fn send_password(&mut self) -> Result<ClientStep, ClientAuthError> {
        self.password_with_zero()?;
        match (self.transport, self.key_policy) {
            (Transport::Secure, _) => self.password_with_zero().map(ClientStep::Send),
            (Transport::Plain, KeyPolicy::Ask) => {
                self.awaits_key = true;
                Ok(ClientStep::Send(vec![caching_sha2::REQUEST_KEY]))
            }
            (Transport::Plain, KeyPolicy::Never) => Err(ClientAuthError::KeyNotAllowed),
        }
    }

    fn encrypt_password(
        &mut self,
        pem: &[u8],
        random: &mut Random<'_>,
    ) -> Result<ClientStep, ClientAuthError> {
        self.awaits_key = false;
        let pem = std::str::from_utf8(pem).map_err(|_| ClientAuthError::BadKey)?;
        let mut text = self.password_with_zero()?;
        caching_sha2::mask(&mut text, &self.nonce);
        let encrypted = rsa_key::encrypt(pem, &text, random);
        encrypted
            .map(ClientStep::Send)
            .map_err(|_| ClientAuthError::BadKey)
    }

    fn password_with_zero(&self) -> Result<Vec<u8>, ClientAuthError> {
        match &self.secret {
            ClientSecret::Password(password) => Ok([password, &[0][..]].concat()),
            ClientSecret::Sha1(_) | ClientSecret::Sha256(_) => Err(ClientAuthError::PasswordNeeded),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::tests::test_random;
    use crate::rsa_key::tests::test_key;
    use crate::{Nonce, ServerExchange, ServerStep, StoredSecret};

    /// Plays both sides. Returns whether access was granted, what to cache, and the packets of the
    /// server.
    fn play(
        secret: &StoredSecret,
        password: &[u8],
        transport: Transport,
        cached: Option<[u8; 32]>,
    ) -> (bool, Option<[u8; 32]>, Vec<u8>) {
        let mut source = test_random();
        let mut random = Random(&mut source);
        let nonce = Nonce::from_random([77; 32]);
        let key = Some(test_key());
        let mut server = ServerExchange::new(secret.clone(), nonce, transport, cached, key);
        let challenge = server.challenge();
        let method = server.method();
        let password = ClientSecret::password(password);
        let mut client =
            ClientExchange::new(method, &password, &challenge, transport, KeyPolicy::Ask);
        let mut first_bytes = Vec::new();
        let mut step = server.receive(&client.first_response().unwrap());
        loop {
            step = match step {
                ServerStep::SendMoreData(data) => {
                    first_bytes.push(data[0]);
                    match client.more_data(&data, &mut random).unwrap() {
                        ClientStep::Send(answer) => server.receive(&answer),
                        ClientStep::Wait => panic!("the server waits too"),
                    }
                }
                ServerStep::Work(work) => server.worked(work.run(&mut random)),
                ServerStep::Granted {
                    farewell,
                    to_cache,
                    secret: found,
                } => {
                    assert_eq!(
                        found.is_some(),
                        method != Method::Ed25519 || secret.is_empty()
                    );
                    let answer = found.map(|found| found.respond(method, &client.nonce));
                    assert!(answer.is_none_or(|answer| answer == client.first_response()));
                    first_bytes.extend_from_slice(farewell);
                    if !farewell.is_empty() {
                        let step = client.more_data(farewell, &mut random);
                        assert_eq!(step, Ok(ClientStep::Wait));
                    }
                    return (true, to_cache, first_bytes);
                }
                ServerStep::Denied => return (false, None, first_bytes),
            };
        }
    }

    fn secret(method: Method, password: &[u8]) -> StoredSecret {
        let mut source = test_random();
        StoredSecret::from_password(method, password, &mut Random(&mut source)).unwrap()
    }

    #[test]
    fn both_sides_agree_on_right_and_wrong_passwords() {
        for method in Method::ALL {
            for transport in [Transport::Plain, Transport::Secure] {
                for (stored, given) in [
                    ("secret", "secret"),
                    ("secret", "wrong"),
                    ("secret", ""),
                    ("", ""),
                    ("", "x"),
                ] {
                    let secret = secret(method, stored.as_bytes());
                    let (is_granted, ..) = play(&secret, given.as_bytes(), transport, None);
                    let case = format!("{method:?} {transport:?} {stored:?} {given:?}");
                    assert_eq!(is_granted, stored == given, "{case}");
                }
            }
        }
    }

    #[test]
    fn sha2_cache_saves_the_full_exchange() {
        let secret = secret(Method::CachingSha2, b"secret");
        for transport in [Transport::Plain, Transport::Secure] {
            let (_, to_cache, packets) = play(&secret, b"secret", transport, None);
            assert!(to_cache.is_some());
            assert_eq!(packets[0], caching_sha2::FULL_EXCHANGE);
            let (is_granted, again, packets) = play(&secret, b"secret", transport, to_cache);
            assert!(is_granted && again.is_none());
            assert_eq!(packets, [caching_sha2::FAST_SUCCESS]);
            let (is_granted, ..) = play(&secret, b"wrong", transport, to_cache);
            assert!(!is_granted);
        }
    }

    #[test]
    fn account_that_does_not_exist_is_played_through() {
        let mut source = test_random();
        for method in Method::ALL {
            let secret = StoredSecret::impossible(method, &mut Random(&mut source));
            let (is_granted, _, packets) = play(&secret, b"x", Transport::Plain, None);
            assert!(!is_granted);
            assert_eq!(packets.is_empty(), method != Method::CachingSha2);
        }
    }

    #[test]
    fn password_is_not_sent_under_an_unknown_key() {
        let mut source = test_random();
        let mut random = Random(&mut source);
        let mut client = ClientExchange::new(
            Method::CachingSha2,
            &ClientSecret::password(b"secret"),
            &[7; 21],
            Transport::Plain,
            KeyPolicy::Never,
        );
        assert_eq!(
            client.more_data(&[4], &mut random),
            Err(ClientAuthError::KeyNotAllowed)
        );
        assert_eq!(
            client.more_data(b"x", &mut random),
            Err(ClientAuthError::Step)
        );
    }

    #[test]
    fn a_hash_cannot_stand_in_for_a_password_that_is_asked_for() {
        let mut source = test_random();
        let mut random = Random(&mut source);
        let digest = ClientSecret::Sha256(caching_sha2::digest(b"secret"));
        for transport in [Transport::Plain, Transport::Secure] {
            let method = Method::CachingSha2;
            let policy = KeyPolicy::Ask;
            let mut client = ClientExchange::new(method, &digest, &[7; 21], transport, policy);
            assert!(client.first_response().is_ok());
            let full = client.more_data(&[caching_sha2::FULL_EXCHANGE], &mut random);
            assert_eq!(full, Err(ClientAuthError::PasswordNeeded));
        }
    }

    #[test]
    fn server_denies_what_is_out_of_turn() {
        let nonce = Nonce::from_random([1; 32]);
        let secret = secret(Method::CachingSha2, b"secret");
        let mut server = ServerExchange::new(secret, nonce, Transport::Plain, None, None);
        assert!(matches!(
            server.receive(&[9; 32]),
            ServerStep::SendMoreData(_)
        ));
        assert!(matches!(server.receive(b"secret\0"), ServerStep::Denied));
        assert!(matches!(server.receive(b"secret\0"), ServerStep::Denied));
        assert!(server.has_used_password());
    }
}
