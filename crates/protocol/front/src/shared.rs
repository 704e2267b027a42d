//! [`Shared`]: what the connections of a worker have in common: options, keys, and the resources of
//! their links. One value a worker, behind an `Rc`.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use auth::RsaKey;
use link::{Resources, Traffic};
use metrics::{Counter, Metric, Unit};
use sync::Mutex;
use wire::Capabilities;

use crate::failure::LoginFailure;
use crate::proxy_networks::ProxyNetworks;

/// A source of random bytes that nobody can guess; fills its whole argument.
pub type RandomSource = Arc<dyn Fn(&mut [u8]) + Send + Sync>;

/// What a greeting tells of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Greeting {
    /// Its version.
    pub server_version: String,
    /// What it can do, but for TLS, compression and local files, which the options add.
    pub capabilities: Capabilities,
    /// Its collation, lower byte.
    pub collation: u8,
}

/// What a listener is set to. Cheap to clone.
#[derive(Clone)]
pub struct Options {
    /// What clients are greeted with until [`Shared::set_greeting`].
    pub greeting: Greeting,
    /// Whether a login yields what is needed to log in elsewhere as the same user.
    pub secret_use: SecretUse,
    /// TLS, if clients shall be able to ask for it.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// The key for `caching_sha2_password` without TLS; without it such logins need TLS.
    pub rsa_key: Option<Arc<RsaKey>>,
    /// Whether compression is offered.
    pub offers_compression: bool,
    /// What logins go by until [`Shared::set_rules`].
    pub rules: LoginRules,
    /// Largest packet of a client that is logged in.
    pub max_allowed_packet: usize,
    /// Whose connections may begin with a header of the PROXY protocol.
    pub proxy_networks: ProxyNetworks,
    /// Random bytes for challenges.
    pub random: RandomSource,
    /// Passwords that were proven before. One for all clones, and so for all workers: whether a
    /// client must show its password again does not depend on where its connection lands.
    pub proven: ProvenPasswords,
}

/// What becomes of the secret that a login has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretUse {
    /// Nothing.
    Forget,
    /// [`ClientInfo::secret`](crate::ClientInfo) has it, never as a password in clear.
    Keep,
}

/// What a login goes by, which may change while the server runs.
#[derive(Debug, Clone, Copy)]
pub struct LoginRules {
    /// Whether TCP connections without TLS are refused.
    pub requires_secure_transport: bool,
    /// Whether `LOAD DATA LOCAL` is offered.
    pub offers_local_infile: bool,
    /// Most time for a client to log in.
    pub connect_timeout: Duration,
    /// Most time for sending a reply to a client that does not read.
    pub write_timeout: Duration,
}

impl Default for LoginRules {
    /// MariaDB's: 10 s to log in, 60 s to take a reply.
    fn default() -> LoginRules {
        LoginRules {
            requires_secure_transport: false,
            offers_local_infile: true,
            connect_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(60),
        }
    }
}

/// Account and stored secret to what `caching_sha2_password` caches of the password. The stored
/// secret is part of the key, so a changed password is not found. Its mutex is taken at logins.
#[derive(Clone, Default)]
pub struct ProvenPasswords(Arc<Mutex<BTreeMap<Vec<u8>, [u8; 32]>>>);

impl std::fmt::Debug for ProvenPasswords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProvenPasswords").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("greeting", &self.greeting)
            .field("has_tls", &self.tls.is_some())
            .field("rules", &self.rules)
            .field("max_allowed_packet", &self.max_allowed_packet)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// MariaDB's defaults: packets of up to 16 MiB; no TLS.
    pub fn new(server_version: impl Into<String>, random: RandomSource) -> Options {
        Options {
            greeting: Greeting {
                server_version: server_version.into(),
                capabilities: Capabilities::SERVER,
                collation: 45,
            },
            secret_use: SecretUse::Forget,
            tls: None,
            rsa_key: None,
            offers_compression: true,
            rules: LoginRules::default(),
            max_allowed_packet: 16 << 20,
            proxy_networks: ProxyNetworks::default(),
            random,
            proven: ProvenPasswords::default(),
        }
    }
}

/// Random bytes from the operating system.
pub fn system_random() -> RandomSource {
    let source = rustls::crypto::ring::default_provider().secure_random;
    Arc::new(move |bytes| source.fill(bytes).expect("the system has random bytes"))
}

/// Most proven passwords that are remembered; at the limit all are forgotten.
const PROVEN_MAX: usize = 4096;

/// What the connections of a worker have in common.
pub struct Shared {
    options: Options,
    /// What the next login goes by.
    rules: Cell<LoginRules>,
    /// What the next client is greeted with.
    greeting: RefCell<Rc<Greeting>>,
    resources: Rc<Resources>,
    counters: Arc<Counters>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// What happened on a worker's connections, since its start. The worker writes, anybody reads.
#[derive(Debug, Default)]
pub struct Counters {
    /// Bytes received and sent, of whoever makes the worker's [`Resources`].
    pub traffic: Arc<Traffic>,
    /// Logins that failed, for whatever reason (`Aborted_connects`).
    pub failed_logins: Counter,
    /// Of them, those that were refused: a wrong password, an account that may not come in so.
    pub refused_logins: Counter,
    /// Of them, those that took too long.
    pub late_logins: Counter,
    /// Times that the memory of proven passwords was full and was cleared.
    pub proven_evictions: Counter,
}

/// A counter, and where it is.
type Number = (Metric, fn(&Counters) -> &Counter);

const fn count(name: &'static str, help: &'static str) -> Metric {
    Metric::counter(name, Unit::Count, help)
}

impl Counters {
    /// The numbers of logins; their owner adds those of all workers.
    pub const LOGIN_NUMBERS: [Number; 3] = [
        (count("Aborted_connects", "Logins that failed."), |it| {
            &it.failed_logins
        }),
        (count("Logins_refused", "Logins that were refused."), |it| {
            &it.refused_logins
        }),
        (
            count(
                "Logins_timed_out",
                "Logins that took longer than `connect_timeout`.",
            ),
            |it| &it.late_logins,
        ),
    ];

    /// Counts a login that has failed.
    pub(crate) fn count_failure(&self, failure: &LoginFailure) {
        self.failed_logins.increment();
        match failure {
            LoginFailure::Refused(_) => self.refused_logins.increment(),
            LoginFailure::Timeout => self.late_logins.increment(),
            LoginFailure::Disconnected(_)
            | LoginFailure::Malformed(_)
            | LoginFailure::MalformedHeader(_)
            | LoginFailure::ForeignHeader => {}
        }
    }
}

impl Shared {
    /// What the connections of a worker share; `resources` may be shared with its other links.
    pub fn new(options: Options, resources: Rc<Resources>, counters: Arc<Counters>) -> Rc<Shared> {
        Rc::new(Shared {
            rules: Cell::new(options.rules),
            greeting: RefCell::new(Rc::new(options.greeting.clone())),
            resources,
            options,
            counters,
        })
    }

    /// The options.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// What a login goes by that begins now.
    pub fn rules(&self) -> LoginRules {
        self.rules.get()
    }

    /// Changes what logins go by from now on.
    pub fn set_rules(&self, rules: LoginRules) {
        self.rules.set(rules);
    }

    /// What a client is greeted with that connects now.
    pub fn greeting(&self) -> Rc<Greeting> {
        Rc::clone(&self.greeting.borrow())
    }

    /// Changes what clients are greeted with from now on.
    pub fn set_greeting(&self, greeting: Greeting) {
        if **self.greeting.borrow() != greeting {
            *self.greeting.borrow_mut() = Rc::new(greeting);
        }
    }

    /// What happened so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What the links of the worker share.
    pub fn resources(&self) -> &Rc<Resources> {
        &self.resources
    }

    /// `N` random bytes.
    pub(crate) fn random<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        (self.options.random)(&mut bytes);
        bytes
    }

    pub(crate) fn proven(&self, key: &[u8]) -> Option<[u8; 32]> {
        self.options.proven.0.lock().get(key).copied()
    }

    pub(crate) fn remember_proven(&self, key: Vec<u8>, digest: [u8; 32]) {
        let mut proven = self.options.proven.0.lock();
        if proven.len() >= PROVEN_MAX {
            proven.clear();
            self.counters.proven_evictions.increment();
        }
        proven.insert(key, digest);
    }

    /// Forgets all proven passwords, as FLUSH PRIVILEGES does.
    pub fn forget_proven(&self) {
        self.options.proven.0.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use link::PacketMemory;

    use super::*;

    fn shared_of(options: Options) -> Rc<Shared> {
        let resources = Resources::new(PacketMemory::new(1 << 20), Arc::default());
        Shared::new(options, resources, Arc::default())
    }

    fn shared() -> Rc<Shared> {
        shared_of(Options::new("test", system_random()))
    }

    #[test]
    fn workers_remember_proven_passwords_together() {
        let options = Options::new("test", system_random());
        let worker = || shared_of(options.clone());
        let (one, other) = (worker(), worker());
        one.remember_proven(b"key".to_vec(), [7; 32]);
        assert_eq!(other.proven(b"key"), Some([7; 32]));
        other.forget_proven();
        assert_eq!(one.proven(b"key"), None);
    }

    #[test]
    fn memory_of_passwords_is_bounded() {
        let shared = shared();
        for index in 0..=PROVEN_MAX {
            shared.remember_proven(index.to_le_bytes().to_vec(), [1; 32]);
        }
        assert_eq!(shared.counters().proven_evictions.value(), 1);
        assert_eq!(shared.proven(&PROVEN_MAX.to_le_bytes()), Some([1; 32]));
        assert_eq!(shared.proven(&0_usize.to_le_bytes()), None);
        shared.forget_proven();
        assert_eq!(shared.proven(&PROVEN_MAX.to_le_bytes()), None);
    }

    #[test]
    fn random_bytes_differ() {
        let shared = shared();
        assert_ne!(shared.random::<32>(), shared.random::<32>());
    }
}
