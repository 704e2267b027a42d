//! `cargo xtask ci`: everything that must pass, fastest failures first. The same locally and in CI.

use std::process::Command;

use anyhow::Result;
use testkit::folder::target_directory;

use crate::report::Report;
use crate::shell::{Shell, check};
use crate::tidy;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Runs only the steps of these names.
    #[arg(long)]
    only: Vec<String>,
    /// Names the steps and runs none.
    #[arg(long)]
    list: bool,
}

type Step = (&'static str, fn(&Shell) -> Result<()>);

const STEPS: &[Step] = &[
    ("fmt", |shell| {
        shell.run("cargo", &["fmt", "--all", "--", "--check"])
    }),
    ("tidy", |shell| {
        tidy::run(shell, &tidy::Arguments::default())
    }),
    ("locked", locked),
    ("clippy", clippy),
    ("test", |shell| {
        // Runs to the end: a load-dependent test must not hide those after it.
        cargo(
            shell,
            &["test", "--workspace", "--all-targets", "--no-fail-fast"],
        )
    }),
    ("doctest", |shell| {
        cargo(shell, &["test", "--workspace", "--doc"])
    }),
    ("doc", doc),
    ("loom", loom),
    ("server", |shell| {
        cargo(shell, &["build", "--package", "plateau"])
    }),
    ("smoke", |shell| xtask(shell, &["smoke"])),
    ("differential", |shell| xtask(shell, &["differential"])),
    ("drawn", |shell| {
        let drawn = ["--random", "--seed", "2000", "--statements", "900"];
        xtask(shell, &[&["differential"], &drawn[..]].concat())
    }),
    ("torture", |shell| {
        xtask(shell, &["torture", "--rounds", "10"])
    }),
    ("sysbench", |shell| {
        let short = ["--rows", "2000", "--clients", "16", "--seconds", "2"];
        xtask(shell, &[&["sysbench"], &short[..]].concat())
    }),
];

pub(crate) fn run(shell: &Shell, arguments: &Arguments) -> Result<()> {
    if arguments.list {
        for (name, _) in STEPS {
            println!("{name}");
        }
        return Ok(());
    }
    let known = |wanted: &String| STEPS.iter().any(|(name, _)| name == wanted);
    if let Some(unknown) = arguments.only.iter().find(|wanted| !known(wanted)) {
        anyhow::bail!("no step is called `{unknown}`; --list names them");
    }
    let mut report = Report::default();
    for (name, step) in STEPS {
        if arguments.only.is_empty() || arguments.only.iter().any(|wanted| wanted == name) {
            report.step(name, || step(shell));
        }
    }
    report.finish()
}

/// Both lock files match the manifests. That of the fuzz targets, which need another compiler and
/// so are not built here, would otherwise become stale unnoticed.
fn locked(shell: &Shell) -> Result<()> {
    let arguments = ["update", "--workspace", "--locked", "--quiet"];
    for manifest in ["Cargo.toml", "fuzz/Cargo.toml"] {
        let arguments = [&arguments[..], &["--manifest-path", manifest]].concat();
        cargo(shell, &arguments)?;
    }
    Ok(())
}

fn clippy(shell: &Shell) -> Result<()> {
    cargo(
        shell,
        &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--quiet",
            "--",
            "-D",
            "warnings",
        ],
    )
}

fn doc(shell: &Shell) -> Result<()> {
    let arguments = ["doc", "--workspace", "--no-deps", "--quiet"];
    let mut command = cargo_command(shell, &arguments);
    check(command.env("RUSTDOCFLAGS", "-D warnings"), "cargo doc")
}

/// The short models of every lock-free type; the long ones do not bound preemptions.
fn loom(shell: &Shell) -> Result<()> {
    let arguments = [
        "test",
        "--package",
        "sync",
        "--release",
        "--target-dir",
        "target/loom",
    ];
    let mut command = cargo_command(shell, &arguments);
    command
        .env("RUSTFLAGS", "--cfg loom")
        .env("LOOM_MAX_PREEMPTIONS", "2");
    check(&mut command, "loom models")
}

/// A suite, in a process of its own, against the server that was just built.
fn xtask(shell: &Shell, arguments: &[&str]) -> Result<()> {
    println!("$ cargo xtask {}", arguments.join(" "));
    let program = std::env::current_exe()?;
    let mut command = shell.command(&program.display().to_string(), arguments);
    command.env("PLATEAU", target_directory().join("debug/plateau"));
    check(
        &mut command,
        &format!("cargo xtask {}", arguments.join(" ")),
    )
}

fn cargo(shell: &Shell, arguments: &[&str]) -> Result<()> {
    println!("$ cargo {}", arguments.join(" "));
    check(
        &mut cargo_command(shell, arguments),
        &format!("cargo {}", arguments.join(" ")),
    )
}

fn cargo_command(shell: &Shell, arguments: &[&str]) -> Command {
    shell.command("cargo", arguments)
}
