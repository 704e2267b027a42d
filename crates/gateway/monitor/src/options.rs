//! What a monitor is started with.

use std::sync::Arc;
use std::time::Duration;

use auth::ClientSecret;
use backend::{ProxyVersion, TlsMode};

use crate::rules::Rules;
use crate::state::ServerEntry;

/// Fills its argument with unpredictable bytes: a login needs them.
pub type RandomSource = Arc<dyn Fn(&mut [u8]) + Send + Sync>;

/// See the module's head.
#[derive(Clone)]
pub struct Options {
    /// The servers, at most [`crate::SERVERS_MAX`], and how each is spoken to.
    pub servers: Vec<(ServerEntry, TlsMode, Option<ProxyVersion>)>,
    /// The account's name, the same on each server.
    pub user: String,
    /// By which it proves itself.
    pub secret: ClientSecret,
    /// From the start of a round to that of the next.
    pub interval: Duration,
    /// Most time for connecting and logging in.
    pub connect_timeout: Duration,
    /// Most time for all replies of a check.
    pub reply_timeout: Duration,
    /// The thresholds.
    pub rules: Rules,
    /// For logins.
    pub random: RandomSource,
}

/// From the start of a round to that of the next, unless an option says otherwise.
const INTERVAL: Duration = Duration::from_secs(2);

/// Limit of a login, and of the replies, unless an option says otherwise. A frozen server is out
/// after the interval and one of them.
const TIMEOUT: Duration = Duration::from_secs(1);

impl Options {
    /// The usual times and thresholds.
    pub fn new(user: impl Into<String>, secret: ClientSecret, random: RandomSource) -> Options {
        Options {
            servers: Vec::new(),
            user: user.into(),
            secret,
            interval: INTERVAL,
            connect_timeout: TIMEOUT,
            reply_timeout: TIMEOUT,
            rules: Rules::default(),
            random,
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("servers", &self.servers)
            .field("user", &self.user)
            .field("interval", &self.interval)
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}
