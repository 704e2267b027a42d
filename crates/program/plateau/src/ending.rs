//! The orderly shutdown: signals, and how long sessions have.

use std::time::Duration;

use anyhow::{Context, Result};
use clients::Busy;
use runtime::{Runtime, Termination, Terminations};

/// How long the shutdown may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndTimes {
    /// For sessions to finish their commands; then the rest are killed.
    pub(crate) patience: Duration,
    /// For killed sessions to roll back; then the rest are cut off.
    pub(crate) grace: Duration,
}

impl EndTimes {
    /// The time until the rest are cut off.
    pub(crate) fn total(self) -> Duration {
        self.patience + self.grace
    }
}

/// Statements get that long to finish, and killed ones to roll back. Together it is less than a
/// service manager waits by default (90 s).
pub(crate) const END_TIMES: EndTimes = EndTimes {
    patience: Duration::from_secs(10),
    grace: Duration::from_secs(5),
};

/// Statements that end this soon are not worth a line in the log.
const TELL_AFTER: Duration = Duration::from_millis(500);

const _: () = assert!(TELL_AFTER.as_millis() < END_TIMES.patience.as_millis());

/// Waits until the patience with running statements is over, and tells the operator what is waited
/// for. `busy` says what is still running.
pub(crate) async fn wait_patiently(end: EndTimes, busy: impl Fn() -> Busy) {
    runtime::sleep(TELL_AFTER).await;
    let rest = end.patience.saturating_sub(TELL_AFTER);
    let Busy {
        statements,
        rollbacks,
    } = busy();
    if statements != 0 {
        tracing::warn!(
            statements,
            seconds = rest.as_secs_f32(),
            "the end waits for running statements; a second signal ends them at once"
        );
    }
    if rollbacks != 0 {
        tracing::warn!(
            sessions = rollbacks,
            seconds = (rest + end.grace).as_secs_f32(),
            "the end waits for sessions that roll back; what is left goes to the next start"
        );
    }
    runtime::sleep(rest).await;
}

/// Logs that so many statements were ended, if there were any.
pub(crate) fn tell_killed(statements: usize) {
    if statements != 0 {
        tracing::warn!(statements, "running statements were ended by the shutdown");
    }
}

/// Waits for a signal, and then for all sessions. A second signal calls `kill`, which returns how
/// many statements it has ended. With `reload`, SIGHUP calls that and ends nothing.
pub(crate) fn wait_for_end(
    mut terminations: Terminations,
    runtime: Runtime,
    kill: impl Fn() -> usize + Send + 'static,
    reload: Option<Box<dyn Fn() + Send>>,
) -> Result<()> {
    let handle = runtime.handle().clone();
    // It ends with the process: later signals must be noticed until the last moment.
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            let mut next = || loop {
                match (terminations.wait(), &reload) {
                    (Termination::HangUp, Some(reload)) => reload(),
                    (termination, _) => return termination,
                }
            };
            for asked_before in 0u32.. {
                let termination = next();
                tracing::info!(%termination, "asked to stop");
                handle.shutdown(match asked_before {
                    0 => END_TIMES.total(),
                    1 => END_TIMES.grace,
                    _ => Duration::ZERO,
                });
                if asked_before == 1 {
                    tell_killed(kill());
                }
            }
        })?;
    let outcome = runtime.wait().context("a worker failed")?;
    if 0 < outcome.cut_count {
        tracing::warn!(
            count = outcome.cut_count,
            "sessions were cut off at shutdown"
        );
    }
    Ok(())
}
