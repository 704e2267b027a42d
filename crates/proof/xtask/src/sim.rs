//! `cargo xtask sim`: random transactions on a simulated disk, seed after seed, optimized.

use anyhow::Result;

use crate::shell::Shell;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// How many seeds.
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0)]
    from: u64,
}

/// Runs the seeds; prints the first that fails.
pub(crate) fn run(shell: &Shell, arguments: &Arguments) -> Result<()> {
    let (seeds, from) = (arguments.seeds.to_string(), arguments.from.to_string());
    let command = [
        "run",
        "--release",
        "-p",
        "sim",
        "--",
        "--seeds",
        seeds.as_str(),
        "--from",
        from.as_str(),
    ];
    shell.run("cargo", &command)
}
