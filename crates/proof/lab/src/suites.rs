//! Suites of others that drive the protocol: Debian's `mysql_client_test`, the tests of
//! go-sql-driver/mysql, and those of mysqlclient.
//!
//! Each has a list `data/suites/NAME.txt` of the tests that fail, a line `test: reason` each. A
//! test that fails and is not listed is an error; one that is listed and passes is said, so that
//! the list shrinks. Tests whose reason begins with `MariaDB` fail there too.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, ensure};
use testkit::folder::{Folder, repository_root, target_directory};
use testkit::process::run as run_program;

use crate::target::{Running, Target};

#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    target: Target,
    /// Only suites of these names: mysql_client_test, go_sql_driver, mysqlclient.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Shows what failing tests say.
    #[arg(long)]
    verbose: bool,
}

/// Name of a test to what it said, or none if it passed.
type Results = BTreeMap<String, Option<String>>;

struct Suite {
    /// Names the list of failures too.
    name: &'static str,
    run: fn(&Running) -> Result<Results>,
    /// Tests that must pass at least: a suite of which half is not run is no success.
    wanted: usize,
}

const SUITES: &[Suite] = &[
    Suite {
        name: "mysql_client_test",
        run: mysql_client_test,
        wanted: 200,
    },
    Suite {
        name: "go_sql_driver",
        run: go_sql_driver,
        wanted: 380,
    },
    Suite {
        name: "mysqlclient",
        run: mysqlclient,
        wanted: 154,
    },
];

/// Runs the suites; an error if a test fails that is not listed, or too few pass.
pub fn run(arguments: &Arguments) -> Result<()> {
    let running = arguments.target.start()?;
    let mut unlisted = Vec::new();
    let mut too_few = Vec::new();
    for Suite { name, run, wanted } in SUITES {
        if !arguments.only.is_empty() && !arguments.only.iter().any(|it| it == name) {
            continue;
        }
        let listed = listed_failures(name)?;
        let results = run(&running).with_context(|| (*name).to_owned())?;
        ensure!(!results.is_empty(), "{name} ran no test");
        for (test, output) in &results {
            let is_listed = listed.contains_key(test);
            match output {
                Some(output) if !is_listed || arguments.verbose => {
                    println!("FAIL {name} {test}\n{output}");
                }
                None if is_listed => println!("{name} {test} is listed and passes"),
                Some(_) | None => {}
            }
            if output.is_some() && !is_listed {
                unlisted.push(format!("{name} {test}"));
            }
        }
        let passed = results.values().filter(|output| output.is_none()).count();
        println!(
            "== {name}: {passed} of {} pass, {wanted} must",
            results.len()
        );
        for test in listed.keys().filter(|test| !results.contains_key(*test)) {
            println!("{name} {test} is listed and was not run");
        }
        if passed < *wanted {
            too_few.push(format!("{name} {passed}"));
        }
    }
    ensure!(too_few.is_empty(), "too few pass: {}", too_few.join(", "));
    ensure!(
        unlisted.is_empty(),
        "failed and not listed: {}",
        unlisted.join(", ")
    );
    Ok(())
}

pub(crate) fn listed_failures(suite: &str) -> Result<BTreeMap<String, String>> {
    let path = repository_root().join(format!("crates/proof/lab/data/suites/{suite}.txt"));
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut listed = BTreeMap::new();
    for line in text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let (test, reason) = line
            .split_once(": ")
            .with_context(|| format!("no reason: {line}"))?;
        listed.insert(test.to_owned(), reason.to_owned());
    }
    Ok(listed)
}

/// One call a test: a call of several stops at the first that fails.
fn mysql_client_test(running: &Running) -> Result<Results> {
    running
        .connect()?
        .run("CREATE DATABASE IF NOT EXISTS test")?;
    let folder = Folder::new("mysql_client_test")?;
    for sub in ["log", "tmp"] {
        fs::create_dir_all(folder.path().join(sub))?;
    }
    let call = |arguments: &[&str]| -> Result<Output> {
        Ok(Command::new("timeout")
            .args([
                "60",
                "mysql_client_test",
                "--no-defaults",
                "-h127.0.0.1",
                "-uroot",
                "-c",
            ])
            .arg(format!("-P{}", running.port()))
            .arg(format!("--vardir={}", folder.path().display()))
            .args(arguments)
            .stdin(Stdio::null())
            .output()?)
    };
    let names = call(&["--show-tests"])?;
    let names = String::from_utf8_lossy(&names.stdout).into_owned();
    let mut results = Results::new();
    for name in names.lines().map(str::trim).filter(|name| is_name(name)) {
        // What a test that stopped has left is not the next one's.
        let leftovers = "DROP DATABASE IF EXISTS client_test_db";
        running.connect()?.run(leftovers)?;
        let output = call(&[name])?;
        let said = (!output.status.success()).then(|| tail(&output));
        results.insert(name.to_owned(), said);
    }
    Ok(results)
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|it| it.is_ascii_alphanumeric() || it == '_')
}

fn go_sql_driver(running: &Running) -> Result<Results> {
    running
        .connect()?
        .run("CREATE DATABASE IF NOT EXISTS gotest")?;
    // TestConnectorReturnsTimeout needs an address that swallows packets.
    let output = Command::new("go")
        .args([
            "test",
            "-v",
            "-vet=off",
            "-count=1",
            "-skip",
            "TestConnectorReturnsTimeout",
        ])
        .current_dir(client("go/driver")?)
        .env("MYSQL_TEST_USER", "root")
        .env("MYSQL_TEST_PASS", "")
        .env("MYSQL_TEST_ADDR", format!("127.0.0.1:{}", running.port()))
        .env("MYSQL_TEST_DBNAME", "gotest")
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut results = Results::new();
    for line in text.lines() {
        let Some(rest) = line.trim_start().strip_prefix("--- ") else {
            continue;
        };
        let Some((state, name)) = rest.split_once(": ") else {
            continue;
        };
        let name = name.split(" (").next().unwrap_or(name).to_owned();
        match state {
            "PASS" => results.insert(name, None),
            "FAIL" => results.insert(name, Some(about(&text, line))),
            _ => None,
        };
    }
    if !output.status.success() && results.values().all(Option::is_none) {
        results.insert("build".to_owned(), Some(tail(&output)));
    }
    Ok(results)
}

fn mysqlclient(running: &Running) -> Result<Results> {
    running
        .connect()?
        .run("CREATE DATABASE IF NOT EXISTS test_mysqldb")?;
    let folder = Folder::new("mysqlclient")?;
    let file = folder.path().join("test.cnf");
    fs::write(
        &file,
        format!(
            "[MySQLdb-tests]\nhost = 127.0.0.1\nport = {}\nuser = root\n\
             database = test_mysqldb\ndefault-character-set = utf8mb4\n",
            running.port()
        ),
    )?;
    let sources = run_program(
        Command::new("sh")
            .args(["-c", "ls -d mysqlclient-*/"])
            .current_dir(client("python/sdist")?),
    )?;
    let sources = client("python/sdist")?.join(sources.trim());
    let output = Command::new(client("python/bin/python")?)
        .args(["-m", "pytest", "-q", "-rA", "tests"])
        .current_dir(sources)
        .env("TESTDB", &file)
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut results = Results::new();
    for line in text.lines() {
        let (state, rest) = line.split_once(' ').unwrap_or_default();
        let name = rest.split(" - ").next().unwrap_or(rest).to_owned();
        match state {
            "PASSED" => results.insert(name, None),
            "FAILED" | "ERROR" => results.insert(name, Some(rest.to_owned())),
            _ => None,
        };
    }
    ensure!(!results.is_empty(), "{}", tail(&output));
    Ok(results)
}

fn client(path: &str) -> Result<PathBuf> {
    let path = target_directory().join("clients").join(Path::new(path));
    ensure!(
        path.exists(),
        "{} is missing: run `cargo xtask setup`",
        path.display()
    );
    Ok(path)
}

/// The last lines of what a test said.
fn tail(output: &Output) -> String {
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}

/// The lines after the one that says that a test of Go failed.
fn about(text: &str, failed: &str) -> String {
    let after = text.lines().skip_while(|line| *line != failed).skip(1);
    after
        .take_while(|line| line.starts_with("    "))
        .take(8)
        .collect::<Vec<_>>()
        .join("\n")
}
