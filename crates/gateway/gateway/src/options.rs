//! [`Options`]: what a gateway is set to.

use std::sync::Arc;
use std::time::Duration;

use auth::ClientSecret;
use backend::Target;
use front::LoginRules;

/// A server, by its place in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId(pub usize);

/// A service, by its place in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceId(pub usize);

/// What a gateway is set to. Constant while it runs.
#[derive(Debug)]
pub struct Options {
    /// All servers.
    pub servers: Vec<ServerOptions>,
    /// All services.
    pub services: Vec<ServiceOptions>,
    /// Most clients with a session, of all services.
    pub max_connections: usize,
    /// What logins of clients go by.
    pub login_rules: LoginRules,
    /// How long a client may be silent.
    pub wait_timeout: Duration,
    /// How long the rest of a command may take to come.
    pub read_timeout: Duration,
}

/// A server.
#[derive(Debug)]
pub struct ServerOptions {
    /// By which messages name it.
    pub name: Arc<str>,
    /// Where it is.
    pub target: Target,
}

/// A service.
#[derive(Debug)]
pub struct ServiceOptions {
    /// By which messages name it.
    pub name: Arc<str>,
    /// Its servers, in the order in which equal ones are preferred.
    pub servers: Vec<ServerId>,
    /// The account that reads the servers' accounts.
    pub user: String,
    /// Its password.
    pub secret: ClientSecret,
}
