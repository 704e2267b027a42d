//! `cargo xtask fuzz`: runs the targets of crate `harness` under libFuzzer.
//!
//! The flags are those of cargo-fuzz without a sanitizer. All code except crates `sync`, `env`,
//! `buffer` and `runtime` is safe Rust. So a sanitizer could add little to panics, overflow checks,
//! time and memory limits, and would halve the speed. Findings go to `fuzz/findings/TARGET`, where
//! `cargo test -p fuzz_bodies` runs them from then on. Inputs that cover new code go to
//! `target/fuzz/corpus/TARGET`. `--keep` copies the smallest set with the same coverage to
//! `fuzz/corpus/TARGET`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::shell::{Shell, check};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Runs only the targets of these names.
    #[arg(long)]
    target: Vec<String>,
    /// How long each target runs.
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// How many run at the same time.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Reduces each corpus to the smallest set of inputs with the same coverage.
    #[arg(long)]
    keep: bool,
}

/// Compiler flags that libFuzzer needs.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing";

/// An input of a few KiB that takes longer is a finding.
const TIMEOUT: &str = "-timeout=60";
/// So is one that takes more memory than this.
const MEMORY: &str = "-rss_limit_mb=2048";

pub(crate) fn run(shell: &Shell, arguments: &Arguments) -> Result<()> {
    let targets = wanted(&arguments.target)?;
    ensure!(0 < arguments.jobs, "--jobs is at least 1");
    let programs = build(shell)?;
    let mut failed = Vec::new();
    for batch in targets.chunks(arguments.jobs) {
        let mut running = Vec::new();
        for target in batch {
            running.push((target, start(shell, &programs, target, arguments.seconds)?));
        }
        for (target, mut child) in running {
            let status = child.wait()?;
            println!("{target}: {}", last_line(&log(shell, target)));
            if !status.success() {
                failed.push(target.as_str());
            }
        }
    }
    if arguments.keep {
        for target in &targets {
            keep(shell, &programs, target)?;
        }
    }
    ensure!(
        failed.is_empty(),
        "found something: {}; see target/fuzz/TARGET.log and fuzz/findings",
        failed.join(" ")
    );
    Ok(())
}

fn wanted(names: &[String]) -> Result<Vec<String>> {
    let known: Vec<&str> = fuzz_bodies::TARGETS.iter().map(|(name, _)| *name).collect();
    for name in names {
        let list = known.join(" ");
        ensure!(
            known.contains(&name.as_str()),
            "no target `{name}`; there are {list}"
        );
    }
    let all = known.into_iter().map(str::to_owned);
    Ok(if names.is_empty() {
        all.collect()
    } else {
        names.to_vec()
    })
}

/// Builds all targets with nightly. Returns the folder of the programs.
fn build(shell: &Shell) -> Result<PathBuf> {
    ensure!(
        shell.succeeds("cargo", &["+nightly", "--version"]),
        "libFuzzer needs nightly: run `rustup toolchain install nightly --profile minimal`"
    );
    let told = shell.read("rustc", &["+nightly", "-vV"])?;
    let host = host_of(&told)?;
    // Given even for the host's own target, so that build scripts are not instrumented.
    let arguments = ["+nightly", "build", "--release", "--target", host];
    let mut command = shell.command("cargo", &arguments);
    command
        .args(["--manifest-path", "fuzz/Cargo.toml"])
        // Where they are started from, also if the caller's builds go elsewhere.
        .args(["--target-dir", "fuzz/target"])
        .env("RUSTFLAGS", FLAGS);
    check(&mut command, "building the fuzz targets")?;
    let programs = shell.root().join("fuzz/target").join(host).join("release");
    Ok(programs)
}

/// The machine's own target, from `rustc -vV`.
fn host_of(told: &str) -> Result<&str> {
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    host.context("`rustc -vV` names no host")
}

fn start(shell: &Shell, programs: &Path, target: &str, seconds: u32) -> Result<Child> {
    let root = shell.root();
    let found = root.join("fuzz/findings").join(target);
    let fresh = fresh(shell, target);
    let kept = root.join("fuzz/corpus").join(target);
    for folder in [&found, &fresh, &kept] {
        fs::create_dir_all(folder)?;
    }
    let output = File::create(log(shell, target))?;
    println!(
        "{target}: {seconds} s, log in {}",
        log(shell, target).display()
    );
    let mut command = Command::new(programs.join(target));
    command
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-artifact_prefix={}/", found.display()))
        .args([TIMEOUT, MEMORY, "-print_final_stats=1"])
        .args([fresh, kept])
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output);
    let dictionary = root.join("fuzz/dictionaries").join(target);
    if dictionary.exists() {
        command.arg(format!("-dict={}", dictionary.display()));
    }
    command
        .spawn()
        .with_context(|| format!("starting {target}"))
}

/// Merges the findings into an empty folder, which then replaces the corpus.
fn keep(shell: &Shell, programs: &Path, target: &str) -> Result<()> {
    let kept = shell.root().join("fuzz/corpus").join(target);
    let least = shell.root().join("target/fuzz/least").join(target);
    if least.exists() {
        fs::remove_dir_all(&least)?;
    }
    fs::create_dir_all(&least)?;
    let mut command = Command::new(programs.join(target));
    command.arg("-merge=1").args([&least, &kept]);
    command.arg(fresh(shell, target));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    check(&mut command, "merging the corpus")?;
    fs::remove_dir_all(&kept)?;
    fs::create_dir_all(&kept)?;
    for entry in fs::read_dir(&least)? {
        let path = entry?.path();
        let name = path.file_name().context("a file has a name")?;
        fs::copy(&path, kept.join(name))?;
    }
    println!("{target}: {} inputs kept", fs::read_dir(&kept)?.count());
    Ok(())
}

fn fresh(shell: &Shell, target: &str) -> PathBuf {
    shell.root().join("target/fuzz/corpus").join(target)
}

fn log(shell: &Shell, target: &str) -> PathBuf {
    shell.root().join(format!("target/fuzz/{target}.log"))
}

/// The last line with counts of inputs: runs, coverage, corpus, speed.
fn last_line(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().rfind(|line| line.contains(" cov: "));
    line.unwrap_or("no input was run").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_is_what_the_compiler_says() {
        let told = "rustc 1.90.0-nightly\nbinary: rustc\nhost: aarch64-unknown-linux-gnu\n";
        assert_eq!(host_of(told).unwrap(), "aarch64-unknown-linux-gnu");
        assert!(host_of("rustc 1.90.0-nightly\n").is_err());
    }

    #[test]
    fn unknown_target_is_refused_with_the_known_ones() {
        let error = wanted(&["pages".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("no target `pages`"), "{error}");
        assert!(error.contains(" page "), "{error}");
        assert_eq!(wanted(&[]).unwrap().len(), fuzz_bodies::TARGETS.len());
    }
}
