//! Asks one server, over a connection that is kept from check to check.
//!
//! A kept connection that was closed in the meantime says nothing of the server: somebody may have
//! killed it. So the check connects once more. One that gave no answer in time is not tried again.

use std::io;
use std::rc::Rc;

use auth::Random;
use backend::{ConnectError, Login, Outcome, QueryLimits, RequestError, Server, Target};
use errcode::{ER_CON_COUNT_ERROR, ER_TOO_MANY_USER_CONNECTIONS, ErrorCode};
use link::{Disconnect, Limit, Resources};

use crate::answer::{self, Pairs};
use crate::facts::{Facts, Failure, Observation, Streams};
use crate::options::RandomSource;
use crate::state::DownReason;

/// Most bytes of an answer. A GTID set of MySQL has the room of some ten thousand intervals.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Errors of a server that has no connection left.
const FULL: [ErrorCode; 2] = [ER_CON_COUNT_ERROR, ER_TOO_MANY_USER_CONNECTIONS];

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Probe {
    target: Target,
    login: Rc<Login>,
    connection: Option<Server>,
}

/// What a check has found, and what it took.
#[derive(Debug)]
pub(crate) struct Checked {
    /// The outcome.
    pub(crate) observation: Observation,
    /// Logins that were tried.
    pub(crate) login_count: u64,
}

/// Why a connection gave no facts.
enum Broken {
    /// The kept connection had ended before.
    WasClosed(Failure),
    /// The server is at fault.
    Failed(Failure),
}

impl Probe {
    pub(crate) fn new(target: Target, login: Rc<Login>) -> Probe {
        Probe {
            target,
            login,
            connection: None,
        }
    }

    /// Reads the facts of the server, within the limits of its target.
    pub(crate) async fn check(
        &mut self,
        resources: &Rc<Resources>,
        random: &RandomSource,
    ) -> Checked {
        let kept = self.connection.take();
        let mut login_count = 0;
        if let Some(mut server) = kept
            && !server.is_stale()
        {
            match self.ask(server).await {
                Ok(facts) => return Checked::read(facts, login_count),
                Err(Broken::Failed(failure)) => return Checked::failed(failure, login_count),
                Err(Broken::WasClosed(_)) => {}
            }
        }
        login_count += 1;
        let mut fill = |bytes: &mut [u8]| random(bytes);
        let random = &mut Random(&mut fill);
        let server = match Server::connect(&self.target, &self.login, resources, random).await {
            Ok(server) => server,
            Err(error) => return Checked::failed(connect_failure(&error), login_count),
        };
        match self.ask(server).await {
            Ok(facts) => Checked::read(facts, login_count),
            Err(Broken::Failed(failure) | Broken::WasClosed(failure)) => {
                Checked::failed(failure, login_count)
            }
        }
    }

    /// Asks all questions, and keeps the connection if it can be used again.
    async fn ask(&mut self, mut server: Server) -> Result<Facts, Broken> {
        let limits = QueryLimits {
            until: Limit::precisely_after(self.target.io_timeout),
            bytes_max: ANSWER_BYTES_MAX,
        };
        let variables = query(&mut server, answer::VARIABLES, limits).await?;
        let status = query(&mut server, answer::STATUS, limits).await?;
        let (variables, status) = (Pairs::read(&variables), Pairs::read(&status));
        if variables.is_empty() {
            return Err(Broken::Failed(Failure {
                reason: DownReason::Unreadable,
                error: "SHOW GLOBAL VARIABLES has no rows".to_owned(),
            }));
        }
        let version = server.info().version.clone();
        let question = answer::replication_question(&version);
        let streams = match server.query(question.as_bytes(), limits).await {
            Ok(outcomes) => {
                let streams = answer::streams(&outcomes);
                match streams {
                    // Privileges are those of the login: what is granted later needs another one.
                    Streams::Denied => server.close().await,
                    _ => self.connection = Some(server),
                }
                streams
            }
            Err(RequestError::Link(Disconnect::Idle)) => Streams::Unanswered,
            Err(error) => return Err(Broken::Failed(request_failure(&error))),
        };
        Ok(answer::facts(
            version,
            &variables,
            &status,
            streams,
            runtime::now(),
        ))
    }
}

impl Checked {
    fn read(facts: Facts, login_count: u64) -> Checked {
        Checked {
            observation: Observation::Read(Box::new(facts)),
            login_count,
        }
    }

    fn failed(failure: Failure, login_count: u64) -> Checked {
        Checked {
            observation: Observation::Failed(failure),
            login_count,
        }
    }
}

async fn query(
    server: &mut Server,
    text: &str,
    limits: QueryLimits,
) -> Result<Vec<Outcome>, Broken> {
    server
        .query(text.as_bytes(), limits)
        .await
        .map_err(|error| {
            let failure = request_failure(&error);
            match error {
                RequestError::Unanswered(_) | RequestError::Unasked => Broken::WasClosed(failure),
                _ => Broken::Failed(failure),
            }
        })
}

fn request_failure(error: &RequestError) -> Failure {
    let reason = match error {
        RequestError::Link(Disconnect::Idle) => DownReason::TimedOut,
        RequestError::Link(_)
        | RequestError::Unanswered(_)
        | RequestError::Unasked
        | RequestError::Engaged => DownReason::Lost,
        RequestError::Malformed(_) | RequestError::Refused(_) | RequestError::TooLarge { .. } => {
            DownReason::Unreadable
        }
    };
    Failure {
        reason,
        error: with_sources(error),
    }
}

fn connect_failure(error: &ConnectError) -> Failure {
    let reason = match error {
        ConnectError::Unreachable(error) if error.kind() == io::ErrorKind::TimedOut => {
            DownReason::TimedOut
        }
        ConnectError::Unreachable(_) => DownReason::Unreachable,
        ConnectError::Timeout => DownReason::TimedOut,
        ConnectError::Refused(error) if FULL.contains(&error.code) => DownReason::Full,
        ConnectError::Refused(_)
        | ConnectError::NoTls
        | ConnectError::UnknownPlugin { .. }
        | ConnectError::Authentication(_) => DownReason::LoginRefused,
        ConnectError::Link(_) | ConnectError::HeaderUnanswered(_) => DownReason::Lost,
        ConnectError::Malformed(_) | ConnectError::TooManyPackets => DownReason::Unreadable,
    };
    Failure {
        reason,
        error: with_sources(error),
    }
}

/// The error's text, and those of its causes.
fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}
