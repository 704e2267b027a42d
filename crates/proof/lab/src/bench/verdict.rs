//! A limit, the measured value, and whether it holds.

use anyhow::{Result, ensure};

/// Whether a missed limit fails the run.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Limits {
    /// Reports the numbers, and fails only on errors.
    #[arg(long)]
    pub(super) no_limits: bool,
}

impl Limits {
    /// Prints what was measured. Fails if a limit is missed, unless that was asked not to count.
    pub(super) fn judge(self, verdicts: &[Verdict]) -> Result<()> {
        println!("\n{}", table(verdicts));
        let missed = missed(verdicts);
        ensure!(
            missed.is_empty() || self.no_limits,
            "missed:\n{}",
            missed.join("\n")
        );
        Ok(())
    }
}

/// How a limit was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Pass,
    Fail,
    /// The run cannot decide, or there is no limit: the number is only shown.
    Shown,
}

/// A limit and the measured value.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    pub(super) what: String,
    pub(super) measured: String,
    /// What is required; for a number that is only shown, why.
    pub(super) limit: String,
    pub(super) outcome: Outcome,
}

impl Outcome {
    pub(super) fn of(passes: bool) -> Outcome {
        if passes { Outcome::Pass } else { Outcome::Fail }
    }
}

/// All of them as a table.
pub(super) fn table(verdicts: &[Verdict]) -> String {
    let mut text = String::from("| limit | measured | wanted | |\n|---|---|---|---|\n");
    for verdict in verdicts {
        let Verdict {
            what,
            measured,
            limit,
            outcome,
        } = verdict;
        let sign = match outcome {
            Outcome::Pass => "pass",
            Outcome::Fail => "**FAIL**",
            Outcome::Shown => "not judged",
        };
        text.push_str(&format!("| {what} | {measured} | {limit} | {sign} |\n"));
    }
    text
}

/// The missed limits, a line for each.
pub(super) fn missed(verdicts: &[Verdict]) -> Vec<String> {
    let missed = verdicts.iter().filter(|it| it.outcome == Outcome::Fail);
    missed
        .map(|it| format!("{}: {}, wanted {}", it.what, it.measured, it.limit))
        .collect()
}
