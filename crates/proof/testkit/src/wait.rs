//! Waits for what another process does in its own time.

use std::fmt;
use std::time::{Duration, Instant};

/// Only a hang exceeds both limits. Time alone would fail a test on a busy machine, where it has
/// asked few questions. Questions alone would fail a test whose answer comes by the clock.
const LIMIT: Duration = Duration::from_secs(60);
const QUESTIONS_MIN: u32 = 100;

/// Asks until the answer is true, at least for a minute and 100 times. The question itself takes
/// time: a statement, an attempt.
///
/// # Panics
/// When both limits are passed, with the text `awaited`.
#[track_caller]
pub fn wait_until(awaited: &str, is_so: impl FnMut() -> bool) {
    wait_for(awaited, is_so, |is_so| *is_so);
}

/// As [`wait_until`], for a question with a more detailed answer.
///
/// # Panics
/// When both limits are passed, with the text `awaited` and the last answer.
#[track_caller]
#[allow(
    clippy::disallowed_methods,
    reason = "a real process is awaited, in real time"
)]
pub fn wait_for<T: fmt::Debug>(
    awaited: &str,
    mut ask: impl FnMut() -> T,
    is_so: impl Fn(&T) -> bool,
) {
    let begun = Instant::now();
    for question in 1_u32.. {
        let answer = ask();
        if is_so(&answer) {
            return;
        }
        assert!(
            begun.elapsed() < LIMIT || question < QUESTIONS_MIN,
            "not after {LIMIT:?} and {question} questions: {awaited}; last seen: {answer:?}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_asked_until_it_is_so() {
        let mut asked = 0;
        wait_until("the third time", || {
            asked += 1;
            asked == 3
        });
        assert_eq!(asked, 3);
    }
}
