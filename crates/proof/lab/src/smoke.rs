//! Smoke suites of real clients: accounts made, every program of `suites/` run, its lines counted.
//!
//! `mariadb` and `mariadb-dump` are driven from here: a dump of sysbench's tables made from the
//! server under test must load into a real MariaDB and give the same sums, and the reverse.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use testkit::folder::{Folder, repository_root, target_directory};
use testkit::process::run as run_program;
use testkit::{Client, Outcome};

use crate::load::Load;
use crate::suites::listed_failures;
use crate::target::{Running, Target, reference};

#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    target: Target,
    /// Only suites of these names: cli, dump, python, node, go, java, rust.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Leaves suites out whose clients are not installed, and says so.
    #[arg(long)]
    installed_only: bool,
}

/// A program of `suites/`: what must exist, and how it is called before the port.
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

/// What the server under test can do, found out by asking it.
struct Abilities {
    methods: Vec<&'static str>,
    has_tls: bool,
}

/// Runs all suites; an error if a check of one failed.
pub fn run(arguments: &Arguments) -> Result<()> {
    let running = arguments.target.start()?;
    let abilities = prepare(&mut running.connect()?)?;
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
        note("cli", command_line(&running));
    }
    if is_wanted("dump") {
        note("dump", dumps(&running));
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

/// Makes the database and the accounts that the suites use.
fn prepare(client: &mut Client) -> Result<Abilities> {
    client.run("CREATE DATABASE IF NOT EXISTS smoke CHARACTER SET utf8mb4")?;
    client.run("SET GLOBAL max_allowed_packet = 67108864")?;
    client.run("CREATE USER native@'%' IDENTIFIED BY 'pw'")?;
    let mut methods = vec!["native"];
    // MariaDB has the method as a plugin that must be loaded; Plateau has it.
    drop(client.query("INSTALL SONAME 'auth_ed25519'")?);
    let optional = [
        (
            "ed25519",
            "CREATE USER ed25519@'%' IDENTIFIED VIA ed25519 USING PASSWORD('pw')",
        ),
        (
            "sha2",
            "CREATE USER sha2@'%' IDENTIFIED WITH caching_sha2_password BY 'pw'",
        ),
    ];
    for (method, statement) in optional {
        match client.query(statement)? {
            Outcome::Error(error) => println!("no accounts of method {method}: {error}"),
            Outcome::Done(_) | Outcome::Rows(_) => methods.push(method),
        }
    }
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
    // A program that ends by itself before it says anything has failed too.
    ensure!(output.status.success() || text.contains("FAIL"), "{stderr}");
    ensure!(0 < passed, "no check ran");
    Ok(())
}

/// Whether a line of a suite tells of this check: `FAIL client check reason`.
fn is_check(line: &str, check: &str) -> bool {
    let rest = line.trim_start_matches("FAIL").trim_start();
    // The reason begins with the name of an error, so that no check is the beginning of another.
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

/// What a person types: statements, tables drawn, errors with number and state.
fn command_line(running: &Running) -> Result<()> {
    let statements = "CREATE TABLE IF NOT EXISTS typed (id INT PRIMARY KEY, v VARCHAR(20)); \
                      REPLACE INTO typed VALUES (1, 'one'), (2, NULL); \
                      SELECT * FROM typed ORDER BY id; SHOW TABLES LIKE 'typed'; DESCRIBE typed;";
    let output = run_program(mariadb(running.port(), "smoke").args(["-t", "-e", statements]))?;
    for line in [
        "|  1 | one  |",
        "|  2 | NULL |",
        "| typed ",
        "| id    | int(11)",
    ] {
        ensure!(output.contains(line), "no line {line} in\n{output}");
    }
    load_file(running)?;
    let error = run_program(mariadb(running.port(), "smoke").args(["-e", "SELECT * FROM missing"]))
        .err()
        .context("an unknown table is an error")?;
    ensure!(
        format!("{error:#}").contains("ERROR 1146 (42S02)"),
        "{error:#}"
    );
    for statement in [
        "STATUS",
        "SHOW DATABASES",
        "SHOW PROCESSLIST",
        "SHOW WARNINGS",
    ] {
        run_program(mariadb(running.port(), "smoke").args(["-e", statement]))
            .with_context(|| statement.to_owned())?;
    }
    Ok(())
}

/// A file of the client becomes rows, quotes, escapes, NULL and rows in the way included.
fn load_file(running: &Running) -> Result<()> {
    let folder = Folder::new("load")?;
    let path = folder.path().join("rows.csv");
    std::fs::write(
        &path,
        "head\n1,\"a,\"\"b\"\"\"\n2,\\N\n1,\"in the way\"\n3,c\\td",
    )?;
    let statements = format!(
        "DROP TABLE IF EXISTS loaded; \
         CREATE TABLE loaded (id INT PRIMARY KEY, v VARCHAR(20), twice INT); \
         LOAD DATA LOCAL INFILE '{}' INTO TABLE loaded FIELDS TERMINATED BY ',' ENCLOSED BY '\"' \
         IGNORE 1 LINES (id, v) SET twice = id * 2; \
         SELECT 'rows', ROW_COUNT(); SELECT id, HEX(v), twice FROM loaded ORDER BY id;",
        path.display()
    );
    let mut command = mariadb(running.port(), "smoke");
    let output = run_program(command.args(["--local-infile=1", "-N", "-e", &statements]))?;
    for line in ["rows\t3", "1\t612C226222\t2", "2\tNULL\t4", "3\t630964\t6"] {
        ensure!(output.contains(line), "no line {line} in\n{output}");
    }
    Ok(())
}

/// sysbench's tables go from the server under test to MariaDB by dump, and back under another name.
fn dumps(running: &Running) -> Result<()> {
    let other = Running::of(reference().start()?);
    let folder = Folder::new("dump")?;
    for statement in ["DROP DATABASE IF EXISTS sbtest", "CREATE DATABASE sbtest"] {
        running.connect()?.run(statement)?;
    }
    let load = Load {
        script: "oltp_read_write".to_owned(),
        port: running.port(),
        tables: 2,
        rows: 2000,
        clients: 4,
        seconds: 1,
        is_prepared: true,
    };
    load.prepare()?;
    let original = sums(running, "sbtest")?;
    copy(running, "sbtest", &other, "copied", &folder)?;
    ensure!(
        sums(&other, "copied")? == original,
        "MariaDB has other sums than the dumped server"
    );
    copy(&other, "copied", running, "returned", &folder)?;
    ensure!(
        sums(running, "returned")? == original,
        "the sums changed on the way back"
    );
    running.connect()?.run("DROP DATABASE returned")?;
    Ok(())
}

fn copy(from: &Running, name: &str, to: &Running, new_name: &str, folder: &Folder) -> Result<()> {
    let path = folder.path().join(format!("{new_name}.sql"));
    run_program(
        Command::new("mariadb-dump")
            .args([
                "--no-defaults",
                "-h127.0.0.1",
                "-uroot",
                "--skip-ssl",
                "--single-transaction",
            ])
            .args(["--routines", "--triggers", "--events"])
            .arg(format!("-P{}", from.port()))
            .arg(format!("--result-file={}", path.display()))
            .arg(name),
    )?;
    to.connect()?.run(&format!("CREATE DATABASE {new_name}"))?;
    let status = mariadb(to.port(), new_name)
        .stdin(File::open(&path)?)
        .status()?;
    ensure!(status.success(), "loading the dump of {name} failed");
    Ok(())
}

fn sums(running: &Running, database: &str) -> Result<Vec<Vec<Option<Vec<u8>>>>> {
    let mut client = running.connect()?;
    let mut all = Vec::new();
    for table in 1..=2 {
        all.extend(client.rows(&format!(
            "SELECT COUNT(*), SUM(id), SUM(k), SUM(CRC32(c)), SUM(CRC32(pad)) \
             FROM {database}.sbtest{table}"
        ))?);
    }
    Ok(all)
}
