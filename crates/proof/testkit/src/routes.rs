//! Pairs of a statement and a session's state: the server that EXPLAIN ROUTE names is the one whose
//! general log has the statement.
//!
//! ```text
//! seed -- draw: sessions, statements, troubles --> Stage: EXPLAIN ROUTE, then the statement
//!                                                    |  general logs of all servers
//!                                                    +--> Tally, or the first pair that differs
//! ```
//!
//! * `draw`: what sessions do. Each statement also changes the state for the next one.
//! * `kept`: what is told of tables and of kept results, against what is so.
//! * `log`: which servers a statement came to, by their general logs.
//! * `stage`: servers, gateway, sessions; asks, sends and compares.
//!
//! (I1) Each statement has a number in a comment at its end, so that the logs show it alone.
//! (I2) In a service with a cache, each text is sent twice.
//! (I3) A pair that differs is tried again only if the monitor's map has changed between question
//! and statement (`map_version`). Such pairs are counted, and so is each that was not compared.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::Result;

use crate::free_port;
use crate::server::{Launch, Server};

mod draw;
mod kept;
mod log;
mod stage;

pub use stage::Stage;

/// What the sessions of a service are.
pub(crate) const SERVICES: [(&str, &str); 10] = [
    ("split", "router = \"read-write-split\"\n"),
    (
        "waits",
        "router = \"read-write-split\"\ncausal_reads_timeout = 0.05\n",
    ),
    (
        "all",
        "router = \"read-write-split\"\ncausal_reads = \"service\"\n",
    ),
    (
        "off",
        "router = \"read-write-split\"\ncausal_reads = \"off\"\n",
    ),
    (
        "timed",
        "router = \"read-write-split\"\nbalance = \"response-time\"\n",
    ),
    ("home", "router = \"read-connection\"\n"),
    (
        "reports",
        "router = \"read-connection\"\nrole = \"replica\"\n",
    ),
    (
        "private",
        "router = \"read-connection\"\nmultiplex = false\n",
    ),
    (
        "cached",
        "router = \"read-write-split\"\ncache = \"front\"\n",
    ),
    (
        "vouched",
        "router = \"read-connection\"\ncache = \"word\"\n",
    ),
];

/// The place of the one whose clients have connections of their own.
const PRIVATE: usize = 7;

/// The place of the first that has a cache.
pub(crate) const CACHED_FROM: usize = 8;

const CACHES: &str = "[[cache]]\nname = \"front\"\n\
    [[cache]]\nname = \"word\"\nassume_cacheable = true\nttl = 3600\n";

/// What an operator has said beyond that.
const RULES: &str = "[[rule]]\nname = \"boss\"\nusers = [\"boss\"]\npattern = 'from shop.t'\n\
    server = \"db2\"\n\
    [[rule]]\nname = \"stock\"\nschemas = [\"stock\"]\nroute = \"primary\"\n\
    [[rule]]\nname = \"names\"\npattern = '@@hostname'\nroute = \"replica\"\n\
    [[rule]]\nname = \"kept\"\npattern = 'shop.kept'\nmultiplex = false\n\
    [[rule]]\nname = \"secret\"\npattern = 'shop.secret'\nrefuse = \"no\"\n\
    [[rule]]\nname = \"late\"\npattern = 'shop.late'\nlag_max = 3600\n";

/// The clients' accounts, each with its name as password.
pub(crate) const USERS: [&str; 2] = ["app", "boss"];

/// Who watches the servers, and asks as an operator.
pub(crate) const OPERATOR: &str = "ops";

/// Whether services have caches of results. What clients with connections of their own change, no
/// cache sees, so there are either these or those.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caches {
    /// None has, and one has clients with connections of their own.
    None,
    /// Some have.
    Some,
}

/// Where the gateway listens.
#[derive(Debug)]
pub struct Ports {
    /// By the places of [`SERVICES`].
    pub(crate) services: Vec<u16>,
    pub(crate) operators: u16,
    caches: Caches,
}

impl Ports {
    /// Ports that are free.
    pub fn free(caches: Caches) -> Result<Ports> {
        let ports = SERVICES.iter().map(|_| free_port());
        Ok(Ports {
            services: ports.collect::<Result<_>>()?,
            operators: free_port()?,
            caches,
        })
    }

    /// Whether there is the service at this place.
    pub(crate) fn has(&self, place: usize) -> bool {
        match self.caches {
            Caches::None => place < CACHED_FROM,
            Caches::Some => place != PRIVATE,
        }
    }

    /// The settings of a gateway before these servers: the primary first. One worker serves all,
    /// since each counts for itself what servers have to do.
    pub fn settings(&self, servers: &[Server]) -> String {
        let mut text = format!(
            "workers = 1\nadmin_listen = \"127.0.0.1:{}\"\n",
            self.operators
        );
        for (place, server) in servers.iter().enumerate() {
            text += &format!(
                "[[server]]\nname = \"db{place}\"\naddress = \"127.0.0.1:{}\"\n",
                server.port()
            );
        }
        text += "[[monitor]]\nuser = \"root\"\ninterval = 0.1\ntimeout = 5\n";
        let services = SERVICES.iter().zip(&self.services).enumerate();
        for (_, ((name, fields), port)) in services.filter(|(place, _)| self.has(*place)) {
            // Statements that no server may take are told so soon.
            text += &format!(
                "[[service]]\nname = \"{name}\"\nwait = 0.3\n{fields}\
                 [[listener]]\naddress = \"127.0.0.1:{port}\"\nservice = \"{name}\"\n"
            );
        }
        text += &format!(
            "[[admin]]\nuser = \"{OPERATOR}\"\npassword = \"{OPERATOR}\"\nmay = \"change\"\n"
        );
        let caches = match self.caches {
            Caches::None => "",
            Caches::Some => CACHES,
        };
        text + caches + RULES
    }
}

/// A server that logs each statement.
pub fn logging(launch: Launch) -> Launch {
    let options = [
        "--general-log=ON",
        "--general-log-file=general.log",
        "--log-output=FILE",
        "--binlog-format=ROW",
        "--log-bin-trust-function-creators=1",
        "--innodb-flush-log-at-trx-commit=0",
        "--lock-wait-timeout=1",
        "--innodb-lock-wait-timeout=1",
    ];
    options.iter().fold(launch, |launch, it| launch.with(*it))
}

/// What became of the pairs.
#[derive(Debug, Default, Clone)]
pub struct Tally {
    /// Those whose statement came to the server that was named, or to none if none was.
    pub agreed: u64,
    /// Those of them in which no server was named.
    pub nowhere: u64,
    /// Those of them about which a server had to be asked first.
    pub conditional: u64,
    /// Of these, those whose statement went where it goes otherwise.
    pub otherwise: u64,
    /// Those of them in which a prepared statement was executed.
    pub prepared: u64,
    /// Executions that failed: servers log none of these, and were asked how many they have begun.
    pub counted: u64,
    /// Those of them that an operator has asked about before the session began.
    pub of_operator: u64,
    /// Those of them that got a kept result, as was told.
    pub kept: u64,
    /// Those of them whose result was kept for the next run, as was told.
    pub kept_later: u64,
    /// Pairs that were tried again, since the monitor's map had changed.
    pub repeated: u64,
    /// What was not compared: a statement could not be prepared, or a session could not begin.
    pub not_begun: u64,
    /// How often each reason was told.
    pub reasons: BTreeMap<String, u64>,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:>7}  pairs agree", self.agreed)?;
        writeln!(f, "{:>7}  of them to no server", self.nowhere)?;
        writeln!(
            f,
            "{:>7}  that depend on a server's answer",
            self.conditional
        )?;
        writeln!(
            f,
            "{:>7}  of these went where they go otherwise",
            self.otherwise
        )?;
        writeln!(f, "{:>7}  executions of prepared statements", self.prepared)?;
        writeln!(f, "{:>7}  of these failed, and by counters", self.counted)?;
        writeln!(f, "{:>7}  asked by an operator", self.of_operator)?;
        writeln!(f, "{:>7}  got a kept result", self.kept)?;
        writeln!(f, "{:>7}  had theirs kept for the next", self.kept_later)?;
        writeln!(f, "{:>7}  repeated: the map had changed", self.repeated)?;
        writeln!(f, "{:>7}  not begun, and not compared", self.not_begun)?;
        for (reason, count) in &self.reasons {
            writeln!(f, "{count:>7}  {reason}")?;
        }
        Ok(())
    }
}
