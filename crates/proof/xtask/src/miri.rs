//! `cargo xtask miri`: the tests of what readers without a latch load beside their writer, under
//! Miri. It finds data races and other undefined behaviour that no processor shows.

use anyhow::{Result, ensure};

use crate::shell::{Shell, check};

/// Schedules of the threads, each drawn from its seed.
const SEEDS: &str = "0..8";

/// Runs the tests.
pub(crate) fn run(shell: &Shell) -> Result<()> {
    ensure!(
        shell.succeeds("cargo", &["+nightly", "miri", "--version"]),
        "Miri needs nightly: run `rustup toolchain install nightly --profile minimal --component \
         miri,rust-src`"
    );
    let arguments = [
        "+nightly",
        "miri",
        "test",
        "--package",
        "sync",
        "--lib",
        "observed",
    ];
    let mut command = shell.command("cargo", &arguments);
    command.env("MIRIFLAGS", format!("-Zmiri-many-seeds={SEEDS}"));
    check(&mut command, "cargo miri")
}
