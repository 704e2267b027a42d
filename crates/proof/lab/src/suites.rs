//! Third-party suites that test the protocol: Debian's `mysql_client_test`, the tests of
//! go-sql-driver/mysql, and those of mysqlclient.
//!
//! Each has a list `data/suites/NAME.txt` of the tests that fail, with a line `test: reason` each.
//! A failing test that is not listed is an error; a listed one that passes is reported, so that the
//! list shrinks. Tests whose reason begins with `MariaDB` fail there too. Tests that a suite skips
//! by itself are shown with the reason and not counted; `--server mariadb` shows what it skips
//! there. With `--gateway` each suite runs through the gateway and directly, and the two are
//! compared.

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

/// The result of a test.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Passed,
    /// With its output.
    Failed(String),
    /// By the suite itself, with the reason.
    Skipped(String),
}

/// By name of a test.
type Results = BTreeMap<String, Fate>;

struct Suite {
    /// Also the name of its list of failures.
    name: &'static str,
    run: fn(&Running) -> Result<Results>,
    /// The least number of tests that must pass: a suite of which half does not run is no success.
    wanted: usize,
}

const SUITES: &[Suite] = &[
    Suite {
        name: "mysql_client_test",
        run: mysql_client_test,
        wanted: 220,
    },
    Suite {
        name: "go_sql_driver",
        run: go_sql_driver,
        wanted: 395,
    },
    Suite {
        name: "mysqlclient",
        run: mysqlclient,
        wanted: 161,
    },
];

/// In addition to the server's own: 20,000 pairs of tables.
const TABLE_COUNT: usize = 150;

/// Runs the suites; fails if an unlisted test fails, or too few pass.
pub fn run(arguments: &Arguments) -> Result<()> {
    let running = arguments.target.start()?;
    if let Some(direct) = running.behind() {
        return beside_direct(arguments, &running, &direct);
    }
    let mut unlisted = Vec::new();
    let mut too_few = Vec::new();
    for Suite { name, run, wanted } in SUITES {
        if !arguments.only.is_empty() && !arguments.only.iter().any(|it| it == name) {
            continue;
        }
        let listed = listed_failures(name)?;
        let results = run(&running).with_context(|| (*name).to_owned())?;
        ensure!(!results.is_empty(), "{name} ran no test");
        for (test, fate) in &results {
            let is_listed = listed.contains_key(test);
            match fate {
                Fate::Failed(output) => {
                    if !is_listed || arguments.verbose {
                        println!("FAIL {name} {test}\n{output}");
                    }
                    if !is_listed {
                        unlisted.push(format!("{name} {test}"));
                    }
                }
                Fate::Passed if is_listed => println!("{name} {test} is listed and passes"),
                Fate::Passed => {}
                Fate::Skipped(reason) => println!("SKIP {name} {test}: {reason}"),
            }
        }
        let count = |is: fn(&Fate) -> bool| results.values().filter(|fate| is(fate)).count();
        let passed = count(|fate| *fate == Fate::Passed);
        let skipped = count(|fate| matches!(fate, Fate::Skipped(_)));
        println!(
            "== {name}: {passed} of {} pass, {wanted} must; the suite skips {skipped}",
            results.len() - skipped
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

/// Most tests of a hundred that may do otherwise through a gateway than directly.
const OTHERWISE_PERCENT_MAX: usize = 3;

/// Runs the suites through a gateway and then directly. A test that passes directly passes through
/// the gateway, or is listed in `data/suites/gateway/NAME.txt`.
fn beside_direct(arguments: &Arguments, gateway: &Running, direct: &Running) -> Result<()> {
    let mut unlisted = Vec::new();
    for Suite { name, run, .. } in SUITES {
        if !arguments.only.is_empty() && !arguments.only.iter().any(|it| it == name) {
            continue;
        }
        let listed = listed_failures(&format!("gateway/{name}"))?;
        let through = run(gateway).with_context(|| format!("{name} through the gateway"))?;
        let results = run(direct).with_context(|| format!("{name} directly"))?;
        let passes: Vec<_> = results
            .iter()
            .filter(|(_, fate)| **fate == Fate::Passed)
            .map(|(test, _)| test)
            .collect();
        ensure!(!passes.is_empty(), "{name}: no test passes directly");
        let mut otherwise = 0;
        for test in &passes {
            let is_listed = listed.contains_key(*test);
            let output = match through.get(*test) {
                Some(Fate::Passed) if is_listed => {
                    println!("{name} {test} is listed and passes");
                    continue;
                }
                Some(Fate::Passed) => continue,
                Some(Fate::Failed(output) | Fate::Skipped(output)) => output,
                None => "it was not run",
            };
            otherwise += 1;
            if !is_listed || arguments.verbose {
                println!("FAIL {name} {test}\n{output}");
            }
            if !is_listed {
                unlisted.push(format!("{name} {test}"));
            }
        }
        let all = passes.len();
        println!(
            "== {name}: {all} pass directly, {} through the gateway",
            all - otherwise
        );
        ensure!(
            otherwise * 100 <= all * OTHERWISE_PERCENT_MAX,
            "{name}: {otherwise} of {all} tests do otherwise"
        );
    }
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

/// One call for each test: a call of several stops at the first failure.
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
        // Leftovers of a test that stopped must not affect the next one.
        let leftovers = "DROP DATABASE IF EXISTS client_test_db";
        running.connect()?.run(leftovers)?;
        let output = call(&[name])?;
        let fate = if output.status.success() {
            Fate::Passed
        } else {
            Fate::Failed(tail(&output))
        };
        results.insert(name.to_owned(), fate);
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
    // TestConnectorReturnsTimeout needs an address that drops packets.
    let output = Command::new("go")
        .args([
            "test",
            "-v",
            "-vet=off",
            "-count=1",
            "-skip",
            "TestConnectorReturnsTimeout",
        ])
        .current_dir(client_path("go/driver")?)
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
            "PASS" => results.insert(name, Fate::Passed),
            "FAIL" => {
                let said = about(&text, &name);
                results.insert(name, Fate::Failed(said))
            }
            "SKIP" => {
                let said = about(&text, &name);
                results.insert(name, Fate::Skipped(said))
            }
            _ => None,
        };
    }
    let is_failure = |fate: &Fate| matches!(fate, Fate::Failed(_));
    if !output.status.success() && !results.values().any(is_failure) {
        results.insert("build".to_owned(), Fate::Failed(tail(&output)));
    }
    Ok(results)
}

fn mysqlclient(running: &Running) -> Result<Results> {
    let mut client = running.connect()?;
    client.run("CREATE DATABASE IF NOT EXISTS test_mysqldb")?;
    // In test_result_concurrent_use_raises one thread reads 20,000 rows of this server's tables
    // joined with themselves, and another uses the result meanwhile. MariaDB has 292 tables of its
    // own. With only a few hundred rows the first thread is done too early.
    client.run("CREATE DATABASE IF NOT EXISTS many_tables")?;
    for number in 0..TABLE_COUNT {
        client.run(&format!(
            "CREATE TABLE IF NOT EXISTS many_tables.t{number} (i INT)"
        ))?;
    }
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
            .current_dir(client_path("python/sdist")?),
    )?;
    let sources = client_path("python/sdist")?.join(sources.trim());
    let output = Command::new(client_path("python/bin/python")?)
        .args(["-m", "pytest", "-q", "-rA", "tests"])
        .current_dir(sources)
        .env("TESTDB", &file)
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut results = Results::new();
    for line in text.lines() {
        let (state, rest) = line.split_once(' ').unwrap_or_default();
        match state {
            "PASSED" => results.insert(rest.to_owned(), Fate::Passed),
            "FAILED" | "ERROR" => {
                let name = rest.split(" - ").next().unwrap_or(rest);
                results.insert(name.to_owned(), Fate::Failed(rest.to_owned()))
            }
            "SKIPPED" => {
                // `SKIPPED [1] file:line: why`: a test, or a file whose imports are missing.
                let (_, place) = rest.split_once("] ").unwrap_or(("", rest));
                let (name, reason) = place.split_once(": ").unwrap_or((place, ""));
                results.insert(name.to_owned(), Fate::Skipped(reason.to_owned()))
            }
            _ => None,
        };
    }
    ensure!(!results.is_empty(), "{}", tail(&output));
    Ok(results)
}

fn client_path(path: &str) -> Result<PathBuf> {
    let path = target_directory().join("clients").join(Path::new(path));
    ensure!(
        path.exists(),
        "{} is missing: run `cargo xtask setup`",
        path.display()
    );
    Ok(path)
}

/// The last lines of a test's output.
fn tail(output: &Output) -> String {
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}

/// The output of a Go test: the lines after `=== NAME  Test` and the like.
fn about(text: &str, name: &str) -> String {
    let mut is_its = false;
    let mut said = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("=== ") {
            is_its = rest.split_whitespace().nth(1) == Some(name);
        } else if line.trim_start().starts_with("--- ") {
            is_its = false;
        } else if is_its {
            said.push(line.trim());
        }
    }
    said.truncate(8);
    said.join("\n")
}
