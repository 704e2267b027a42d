//! `cargo xtask sim`: random transactions on a simulated disk, sessions that share connections to
//! servers that fail, or nodes of a group, seed after seed, optimized. With `--planted` each
//! planted mistake must be found within the seeds.

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
    /// Simulates the gateway's pool and router, and no crashes of the storage engine.
    #[arg(long)]
    sharing: bool,
    /// Simulates the nodes of a group, whose provider is a stub.
    #[arg(long, conflicts_with = "sharing")]
    replication: bool,
    /// Plants mistakes of each class in the storage crates, one after the other, until each is
    /// found. The simulation is built apart then, with the feature `planted`.
    #[arg(long, conflicts_with_all = ["sharing", "replication"])]
    planted: bool,
}

/// Runs the seeds; prints the first that fails.
pub(crate) fn run(shell: &Shell, arguments: &Arguments) -> Result<()> {
    let (seeds, from) = (arguments.seeds.to_string(), arguments.from.to_string());
    let mut command = vec!["run", "--release", "-p", "sim"];
    if arguments.planted {
        command.extend(["--features", "planted"]);
    }
    command.extend(["--", "--seeds", seeds.as_str(), "--from", from.as_str()]);
    if arguments.sharing {
        command.push("--sharing");
    }
    if arguments.replication {
        command.push("--replication");
    }
    if arguments.planted {
        command.push("--planted");
    }
    shell.run("cargo", &command)
}
