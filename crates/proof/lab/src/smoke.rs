//! Smoke suites of real clients: creates accounts, runs every program of `suites/`, and counts its
//! lines.
//!
//! `mariadb` and `mariadb-dump` are driven from here (`command_line`, `dump`).

mod command_line;
mod dump;
mod types;

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use testkit::folder::{repository_root, target_directory};
use testkit::{Client, Outcome};

use crate::suites::listed_failures;
use crate::target::{Running, Target};

#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    target: Target,
    /// Only suites of these names: cli, dump, python, node, go, java, rust.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Skips suites whose clients are not installed, and reports them.
    #[arg(long)]
    installed_only: bool,
}

/// A program of `suites/`: what must exist, and the command line before the port.
struct Suite {
    name: &'static str,
    /// Below `target/clients`.
    needs: &'static str,
    /// `{clients}` is `target/clients`, `{root}` the repository.
    command: &'static [&'static str],
}

const SUITES: &[Suite] = &[
    Suite {
        name: "python",
        needs: "python/bin/python",
        command: &[
            "{clients}/python/bin/python",
            "{root}/suites/python/smoke.py",
        ],
    },
    Suite {
        name: "node",
        needs: "node/node_modules",
        command: &["node", "{root}/suites/node/smoke.mjs"],
    },
    Suite {
        name: "go",
        needs: "go/smoke",
        command: &["{clients}/go/smoke"],
    },
    Suite {
        name: "java",
        needs: "java/Smoke.class",
        command: &[
            "java",
            "-cp",
            "{clients}/java:{clients}/java/jars/*",
            "Smoke",
        ],
    },
    Suite {
        name: "rust",
        needs: "rust/debug/plateau-smoke",
        command: &["{clients}/rust/debug/plateau-smoke"],
    },
];

/// What the server under test supports, found by asking it.
struct Abilities {
    methods: Vec<&'static str>,
    has_tls: bool,
}

impl Abilities {
    /// Plateau must support everything; otherwise the suites would silently be shorter.
    fn must_be_all(&self) -> Result<()> {
        for method in METHODS {
            ensure!(
                self.methods.contains(&method),
                "no accounts of method {method}"
            );
        }
        ensure!(self.has_tls, "no TLS");
        Ok(())
    }
}

/// Runs all suites; fails if a check of one failed.
pub fn run(arguments: &Arguments) -> Result<()> {
    let running = arguments.target.start()?;
    let abilities = prepare(&mut running.connect()?, &arguments.target)?;
    if arguments.target.is_plateau() {
        abilities.must_be_all()?;
    }
    let is_wanted =
        |name: &str| arguments.only.is_empty() || arguments.only.iter().any(|it| it == name);
    let mut failed = Vec::new();
    let mut note = |name: &str, result: Result<()>| match result {
        Ok(()) => println!("== {name}: ok"),
        Err(error) => {
            println!("== {name}: FAILED: {error:#}");
            failed.push(name.to_owned());
        }
    };
    if is_wanted("cli") {
        note("cli", command_line::command_line(&running, &abilities));
        if running.is_own() {
            note(
                "cli restart",
                command_line::restarted(arguments.target.launch()),
            );
        }
    }
    if is_wanted("dump") {
        note("dump", dump::dumps(&running));
    }
    for suite in SUITES.iter().filter(|suite| is_wanted(suite.name)) {
        if !clients().join(suite.needs).exists() && arguments.installed_only {
            println!("== {}: left out, its clients are not installed", suite.name);
            continue;
        }
        note(suite.name, run_suite(suite, &running, &abilities));
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

fn clients() -> PathBuf {
    target_directory().join("clients")
}

/// The methods of password logins.
const METHODS: [&str; 3] = ["native", "ed25519", "sha2"];

/// The statement that creates an account of a method with the password `pw`.
fn account_statement(method: &str, user: &str) -> Option<String> {
    let identified = match method {
        "native" => "BY 'pw'",
        "ed25519" => "VIA ed25519 USING PASSWORD('pw')",
        "sha2" => "WITH caching_sha2_password BY 'pw'",
        _ => return None,
    };
    Some(format!("CREATE USER {user}@'%' IDENTIFIED {identified}"))
}

/// Creates the database and the accounts of the suites.
fn prepare(client: &mut Client, target: &Target) -> Result<Abilities> {
    client.run("CREATE DATABASE IF NOT EXISTS smoke CHARACTER SET utf8mb4")?;
    client.run("SET GLOBAL max_allowed_packet = 67108864")?;
    // In MariaDB the method is a plugin that must be loaded; Plateau has it built in.
    drop(client.query("INSTALL SONAME 'auth_ed25519'")?);
    let mut methods = Vec::new();
    for method in METHODS {
        if target.is_gateway() && method == "ed25519" {
            // Its proof says nothing by which the gateway could log in at a server.
            continue;
        }
        let statement = account_statement(method, method).context("a known method")?;
        match client.query(&statement)? {
            Outcome::Error(error) => println!("no accounts of method {method}: {error}"),
            Outcome::Done(_) | Outcome::Rows(_) => methods.push(method),
        }
    }
    ensure!(methods.contains(&"native"), "the oldest method is missing");
    for method in &methods {
        client.run(&format!("GRANT ALL ON smoke.* TO {method}@'%'"))?;
    }
    let has_tls = client.value("SELECT @@have_ssl")?.as_deref() == Some("YES");
    println!("methods: {}; TLS: {has_tls}", methods.join(" "));
    Ok(Abilities { methods, has_tls })
}

fn run_suite(suite: &Suite, running: &Running, abilities: &Abilities) -> Result<()> {
    let clients = clients();
    ensure!(
        clients.join(suite.needs).exists(),
        "not installed: run `cargo xtask setup`"
    );
    let fill = |part: &&str| {
        part.replace("{clients}", &clients.display().to_string())
            .replace("{root}", &repository_root().display().to_string())
    };
    let parts: Vec<String> = suite.command.iter().map(fill).collect();
    let (program, rest) = parts.split_first().context("a suite has a program")?;
    let output = Command::new(program)
        .args(rest)
        .arg(running.port().to_string())
        .env("SMOKE_METHODS", abilities.methods.join(" "))
        .env("SMOKE_TLS", if abilities.has_tls { "1" } else { "0" })
        .env("SMOKE_NODE_MODULES", clients.join("node/package.json"))
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {program}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    let listed = listed_failures("smoke")?;
    let is_listed = |line: &&str| listed.keys().any(|check| is_check(line, check));
    let failures = text.lines().filter(|line| line.starts_with("FAIL"));
    let unlisted: Vec<_> = failures.filter(|line| !is_listed(line)).collect();
    let passed = text.lines().filter(|line| line.starts_with("ok ")).count();
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(
        unlisted.is_empty(),
        "{} failed, {passed} passed\n{stderr}",
        unlisted.len()
    );
    // A program that exits without output has failed, too.
    ensure!(output.status.success() || text.contains("FAIL"), "{stderr}");
    ensure!(0 < passed, "no check ran");
    Ok(())
}

/// Whether a line of a suite is about this check: `FAIL client check reason`.
fn is_check(line: &str, check: &str) -> bool {
    let rest = line.trim_start_matches("FAIL").trim_start();
    // The reason begins with the name of an error, so that no check is a prefix of another.
    rest.strip_prefix(check)
        .is_some_and(|rest| !rest.starts_with(" over "))
}

fn mariadb(port: u16, database: &str) -> Command {
    let mut command = Command::new("mariadb");
    command
        .args([
            "--no-defaults",
            "-h127.0.0.1",
            "-uroot",
            "--skip-ssl",
            "-D",
            database,
        ])
        .arg(format!("-P{port}"));
    command
}
