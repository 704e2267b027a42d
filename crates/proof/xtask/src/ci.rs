//! `cargo xtask ci`: what must pass before a change is merged, fastest failures first. The same
//! locally and in CI. `--fast` runs the part that finds most mistakes in the least time.

use std::process::Command;

use anyhow::Result;
use testkit::folder::target_directory;
use testkit::server::IO_VARIABLE;

use crate::libraries;
use crate::report::Report;
use crate::shell::{Shell, check};
use crate::tidy;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Runs the part that takes a few minutes: format, rules, lints, unit tests and `.test` files.
    #[arg(long)]
    fast: bool,
    /// Runs only the steps of these names.
    #[arg(long, conflicts_with = "fast")]
    only: Vec<String>,
    /// Lists the steps and runs none.
    #[arg(long)]
    list: bool,
}

/// One thing that must pass.
struct Step {
    name: &'static str,
    part: Part,
    work: fn(&Shell) -> Result<()>,
}

/// Which runs have a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Both,
    Fast,
    Full,
}

impl Step {
    const fn new(name: &'static str, part: Part, work: fn(&Shell) -> Result<()>) -> Step {
        Step { name, part, work }
    }

    fn is_in(&self, arguments: &Arguments) -> bool {
        if !arguments.only.is_empty() {
            return arguments.only.iter().any(|wanted| wanted == self.name);
        }
        let run = if arguments.fast {
            Part::Fast
        } else {
            Part::Full
        };
        self.part == Part::Both || self.part == run
    }
}

const STEPS: &[Step] = &[
    Step::new("fmt", Part::Both, |shell| {
        shell.run("cargo", &["fmt", "--all", "--", "--check"])
    }),
    Step::new("tidy", Part::Both, |shell| {
        tidy::run(shell, &tidy::Arguments::default())
    }),
    Step::new("locked", Part::Both, locked),
    Step::new("libraries", Part::Both, libraries::run),
    Step::new("clippy", Part::Both, clippy),
    Step::new("quick", Part::Fast, quick),
    Step::new("test", Part::Full, test),
    Step::new("epoll", Part::Full, epoll),
    Step::new("simulation", Part::Full, simulation),
    Step::new("doctest", Part::Full, |shell| {
        cargo(shell, &["test", "--workspace", "--doc"])
    }),
    Step::new("doc", Part::Full, doc),
    Step::new("loom", Part::Full, loom),
    Step::new("shuttle", Part::Full, shuttle),
    // With a test of it, and the features that the workspace's tests give to libraries: so it is
    // there once they have run.
    Step::new("server", Part::Full, |shell| {
        cargo(
            shell,
            &["test", "--workspace", "--test", "start", "--no-run"],
        )
    }),
    Step::new("smoke", Part::Full, |shell| on_both(shell, &["smoke"])),
    Step::new("gateway", Part::Full, gateway),
    Step::new("pages", Part::Full, |shell| xtask(shell, &["pages"])),
    Step::new("differential", Part::Full, |shell| {
        xtask(shell, &["differential"])
    }),
    Step::new("drawn", Part::Full, |shell| {
        let drawn = ["--random", "--seed", "2000", "--statements", "900"];
        xtask(shell, &[&["differential"], &drawn[..]].concat())
    }),
    Step::new("torture", Part::Full, |shell| {
        on_both(shell, &["torture", "--rounds", "5"])
    }),
    Step::new("history", Part::Full, |shell| {
        on_both(
            shell,
            &["history", "--seconds", "5", "--transactions", "2000"],
        )
    }),
    Step::new("sysbench", Part::Full, |shell| {
        let short = ["--rows", "2000", "--clients", "16", "--seconds", "1"];
        on_both(shell, &[&["sysbench"], &short[..]].concat())
    }),
];

pub(crate) fn run(shell: &Shell, arguments: &Arguments) -> Result<()> {
    let known = |wanted: &String| STEPS.iter().any(|step| step.name == wanted);
    if let Some(unknown) = arguments.only.iter().find(|wanted| !known(wanted)) {
        anyhow::bail!("no step is called `{unknown}`; --list names them");
    }
    let mut report = Report::default();
    for step in STEPS.iter().filter(|step| step.is_in(arguments)) {
        if arguments.list {
            println!("{}", step.name);
        } else {
            report.step(step.name, || (step.work)(shell));
        }
    }
    if arguments.list {
        return Ok(());
    }
    report.finish()
}

/// All connectors and the corpus of statements through the gateway, before the servers that each
/// router is for.
fn gateway(shell: &Shell) -> Result<()> {
    for (router, behind) in [
        ("read-connection", "one"),
        ("read-write-split", "replicas"),
        ("read-write-split", "galera"),
    ] {
        let through = ["--gateway", router, "--behind", behind];
        xtask(shell, &[&["smoke"], &through[..]].concat())?;
        xtask(shell, &[&["differential"], &through[..]].concat())?;
    }
    Ok(())
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

/// All unit tests, and the `.test` files. All in one call, so that each library is built once.
fn quick(shell: &Shell) -> Result<()> {
    let targets = ["--lib", "--bins", "--test", "statements"];
    let arguments = [&["test", "--workspace", "--no-fail-fast"], &targets[..]].concat();
    cargo(shell, &arguments)
}

/// Runs to the end: a load-dependent test must not hide those after it.
fn test(shell: &Shell) -> Result<()> {
    let arguments = ["test", "--workspace", "--all-targets", "--no-fail-fast"];
    println!("$ cargo {}", arguments.join(" "));
    let mut command = cargo_command(shell, &arguments);
    check(command.env(THREADS_VARIABLE, test_threads()), "the tests")
}

/// How many tests of a program run at once, for the harness of tests.
const THREADS_VARIABLE: &str = "RUST_TEST_THREADS";

/// Twice as many as there are cores: the gateway's tests wait for servers half of their time.
fn test_threads() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (2 * cores).to_string()
}

/// Tests of the gateway that say nothing about the driver: what they are about is decided above it.
const ABOVE_THE_DRIVER: [&str; 10] = [
    "admin::",
    "cache::",
    "moved::",
    "prepared::",
    "programs::",
    "remains::",
    "roles::",
    "rules::",
    "shared::",
    "statements::",
];

/// The server's tests that the driver may decide: of connections, files, waits, starts and ends.
const ON_EACH_DRIVER: [&str; 13] = [
    "backend",
    "full_disk",
    "gateway",
    "gone_clients",
    "hostile",
    "hostile_clients",
    "hostile_memory",
    "hostile_replies",
    "idle",
    "orderly_end",
    "standing_still",
    "start",
    "waiting",
];

/// Some of the server's tests again, on the other driver: the step `test` lets the server choose,
/// which is io_uring where the kernel allows it. As it names the workspace, libraries have the
/// features that they have in that step, and are not built again.
fn epoll(shell: &Shell) -> Result<()> {
    let mut arguments = vec!["test", "--workspace"];
    arguments.extend(ON_EACH_DRIVER.iter().flat_map(|it| ["--test", it]));
    arguments.extend(["--no-fail-fast", "--"]);
    arguments.extend(ABOVE_THE_DRIVER.iter().flat_map(|it| ["--skip", it]));
    println!("$ {IO_VARIABLE}=epoll cargo {}", arguments.join(" "));
    let mut command = cargo_command(shell, &arguments);
    check(
        command
            .env(IO_VARIABLE, "epoll")
            .env(THREADS_VARIABLE, test_threads()),
        "the server's tests on epoll",
    )
}

fn doc(shell: &Shell) -> Result<()> {
    let arguments = ["doc", "--workspace", "--no-deps", "--quiet"];
    let mut command = cargo_command(shell, &arguments);
    check(command.env("RUSTDOCFLAGS", "-D warnings"), "cargo doc")
}

/// The profile of programs that take millions of steps (`Cargo.toml`).
const MODEL: &str = "--profile=model";

/// Seeds of the simulation, and whether it finds mistakes that are planted in the storage crates,
/// which only this build of them has.
fn simulation(shell: &Shell) -> Result<()> {
    let of_sim = ["--package", "sim", "--features", "planted", MODEL];
    let seeds = ["--", "--seeds", "500"];
    cargo(shell, &[&["run"], &of_sim[..], &seeds[..]].concat())?;
    cargo(
        shell,
        &[&["test", "--test", "planted"], &of_sim[..]].concat(),
    )
}

/// The short models of every lock-free type; the long ones do not bound preemptions.
fn loom(shell: &Shell) -> Result<()> {
    let arguments = [
        "test",
        "--package",
        "sync",
        MODEL,
        "--target-dir",
        "target/loom",
    ];
    let mut command = cargo_command(shell, &arguments);
    command
        .env("RUSTFLAGS", "--cfg loom")
        .env("LOOM_MAX_PREEMPTIONS", "2");
    check(&mut command, "loom models")
}

/// The lock table, and the tree with its pool, between threads whose steps are drawn.
fn shuttle(shell: &Shell) -> Result<()> {
    let arguments = [
        "test",
        "--package",
        "interleaving",
        MODEL,
        "--target-dir",
        "target/shuttle",
    ];
    let mut command = cargo_command(shell, &arguments);
    command
        .env("RUSTFLAGS", "--cfg shuttle")
        .env("SHUTTLE_SILENCE_WARNINGS", "1");
    check(&mut command, "drawn interleavings")
}

/// A suite on each I/O driver in turn.
fn on_both(shell: &Shell, arguments: &[&str]) -> Result<()> {
    for driver in ["io=auto", "io=epoll"] {
        xtask(shell, &[arguments, &["--set", driver]].concat())?;
    }
    Ok(())
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
