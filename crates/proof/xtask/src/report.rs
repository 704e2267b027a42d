//! Steps with a name and a time, and the summary at the end of a run.

use std::time::{Duration, Instant};

use anyhow::Result;

/// The steps that ran, in order. Owned by the command that runs them.
#[derive(Debug, Default)]
pub(crate) struct Report {
    steps: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    name: &'static str,
    time: Duration,
    error: Option<anyhow::Error>,
}

impl Report {
    /// Runs one step. A failure is kept for the summary, so that later steps still run and one run
    /// shows all failures.
    pub(crate) fn step(&mut self, name: &'static str, work: impl FnOnce() -> Result<()>) {
        println!("\n== {name}");
        let start = now();
        let error = work().err();
        let time = start.elapsed();
        match &error {
            None => println!("== {name}: ok, {:.1} s", time.as_secs_f64()),
            Some(error) => println!("== {name}: FAILED, {:.1} s: {error:#}", time.as_secs_f64()),
        }
        self.steps.push(Step { name, time, error });
    }

    /// Prints the table of times and a last line in the form of `cargo test`'s.
    pub(crate) fn finish(self) -> Result<()> {
        println!("\n== summary");
        for step in &self.steps {
            let state = if step.error.is_none() { "ok" } else { "FAILED" };
            println!(
                "{:<14} {:>8.1} s  {state}",
                step.name,
                step.time.as_secs_f64()
            );
        }
        let failed = self
            .steps
            .iter()
            .filter(|step| step.error.is_some())
            .count();
        let passed = self.steps.len() - failed;
        let total: Duration = self.steps.iter().map(|step| step.time).sum();
        let result = if failed == 0 { "ok" } else { "FAILED" };
        println!(
            "\ntest result: {result}. {passed} passed; {failed} failed; 0 ignored; 0 measured; \
             0 filtered out; finished in {:.2}s",
            total.as_secs_f64()
        );
        anyhow::ensure!(failed == 0, "{failed} of {} steps failed", self.steps.len());
        Ok(())
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "the build tool times real programs"
)]
fn now() -> Instant {
    Instant::now()
}
