//! Both sides of every authentication method, fed with input that no real peer sends.

use std::sync::{Arc, OnceLock};

use auth::{
    ClientExchange, ClientSecret, KeyPolicy, Method, NONCE_BYTES, Nonce, Random, RsaKey,
    ServerExchange, ServerStep, StoredSecret, Transport,
};

use crate::choices::Choices;

/// After this many steps an exchange counts as endless.
const STEPS_MAX: usize = 64;

pub(crate) fn run(input: &[u8]) {
    let mut choices = Choices::new(input);
    let kind = choices.u8();
    let method = [Method::NativePassword, Method::CachingSha2, Method::Ed25519][choices.below(3)];
    let transport = if kind & 4 == 0 {
        Transport::Plain
    } else {
        Transport::Secure
    };
    match kind % 3 {
        0 => secret(method, choices.rest()),
        1 => server(method, transport, kind, choices),
        _ => client(method, transport, kind, choices),
    }
}

/// A parsed secret is written back unchanged.
fn secret(method: Method, text: &[u8]) {
    let Ok(secret) = StoredSecret::parse(method, text) else {
        return;
    };
    let again = StoredSecret::parse(method, &secret.to_text());
    assert!(again.is_ok_and(|again| again == secret));
}

fn server(method: Method, transport: Transport, kind: u8, mut choices: Choices<'_>) {
    let password: &[u8] = if kind & 8 == 0 { b"secret" } else { b"" };
    let key = (kind & 16 != 0).then(key);
    let cached = (kind & 32 != 0).then(|| [choices.u8(); 32]);
    with_random(|random| {
        let nonce = Nonce::from_random([b'n'; NONCE_BYTES]);
        let secret = stored(method, password);
        let mut exchange = ServerExchange::new(secret, nonce, transport, cached, key);
        for _ in 0..STEPS_MAX {
            let data = choices.long();
            let mut step = exchange.receive(data);
            if let ServerStep::Work(work) = step {
                step = exchange.worked(work.run(random));
            }
            match step {
                ServerStep::SendMoreData(_) if !choices.is_empty() => {}
                ServerStep::Work(_) => panic!("work follows work"),
                ServerStep::Granted { .. } => {
                    let knows = password.is_empty() || cached.is_some() || data == b"secret\0";
                    assert!(knows, "nobody guesses a password");
                    return;
                }
                ServerStep::SendMoreData(_) | ServerStep::Denied => return,
            }
        }
    });
}

fn client(method: Method, transport: Transport, kind: u8, mut choices: Choices<'_>) {
    let policy = if kind & 8 == 0 {
        KeyPolicy::Ask
    } else {
        KeyPolicy::Never
    };
    let challenge = choices.short();
    let secret = ClientSecret::password(b"secret");
    let mut exchange = ClientExchange::new(method, &secret, challenge, transport, policy);
    let _ = exchange.first_response();
    with_random(|random| {
        for _ in 0..STEPS_MAX {
            if choices.is_empty() || exchange.more_data(choices.long(), random).is_err() {
                return;
            }
        }
    });
}

/// Making one takes thousands of rounds of SHA-256, so each is made once.
fn stored(method: Method, password: &[u8]) -> StoredSecret {
    static SHA2: OnceLock<StoredSecret> = OnceLock::new();
    let make = || {
        with_random(|random| {
            StoredSecret::from_password(method, password, random).expect("a short password")
        })
    };
    if method == Method::CachingSha2 && !password.is_empty() {
        SHA2.get_or_init(make).clone()
    } else {
        make()
    }
}

fn key() -> Arc<RsaKey> {
    static KEY: OnceLock<Arc<RsaKey>> = OnceLock::new();
    let make = || with_random(|random| Arc::new(RsaKey::generate(random).expect("a key")));
    Arc::clone(KEY.get_or_init(make))
}

/// The same numbers each time.
fn with_random<T>(run: impl FnOnce(&mut Random<'_>) -> T) -> T {
    let mut same = env::Random::new(1);
    let mut fill = |bytes: &mut [u8]| {
        for byte in bytes {
            let [low, ..] = same.next_u64().to_le_bytes();
            *byte = low;
        }
    };
    run(&mut Random(&mut fill))
}
