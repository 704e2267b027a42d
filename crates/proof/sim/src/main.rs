//! Runs seeds of the crash simulation: `sim --seeds N [--from M]`. Prints the first seed that fails
//! and what is wrong, and ends with status 1 then.

#![forbid(unsafe_code)]

use std::io::Write as _;
use std::process::ExitCode;

use sim::torture::{Tally, TortureOptions, run};

fn main() -> ExitCode {
    let Some((from, count)) = arguments() else {
        return say("usage: sim --seeds N [--from M]", ExitCode::from(2));
    };
    let mut sum = Tally::default();
    for seed in from..from.saturating_add(count) {
        match run(seed, TortureOptions::default()) {
            Ok(tally) => {
                sum.add(tally);
            }
            Err(fault) => return say(&format!("seed {seed}: {fault}"), ExitCode::FAILURE),
        }
    }
    say(&format!("{count} seeds hold: {sum:?}"), ExitCode::SUCCESS)
}

/// First seed and number of seeds.
fn arguments() -> Option<(u64, u64)> {
    let (mut from, mut count) = (0, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next()?.parse().ok()?;
        match name.as_str() {
            "--seeds" => count = Some(value),
            "--from" => from = value,
            _ => return None,
        }
    }
    Some((from, count?))
}

fn say(text: &str, code: ExitCode) -> ExitCode {
    // Nobody is left to be told if this fails.
    let _ = writeln!(std::io::stdout(), "{text}");
    code
}
