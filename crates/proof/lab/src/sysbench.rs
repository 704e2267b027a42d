//! Acceptance by sysbench: all `oltp_*` scripts, text and prepared, end without errors other than
//! 1213 and 1205. If a script's updates can be summed, the sum equals what was acknowledged.

use anyhow::{Context, Result, ensure};

use crate::load::Load;
use crate::target::{Running, Target};

#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    target: Target,
    /// Only scripts whose name contains this.
    #[arg(long, default_value = "")]
    script: String,
    #[arg(long, default_value_t = 4)]
    tables: u32,
    #[arg(long, default_value_t = 50_000)]
    rows: u32,
    #[arg(long, default_value_t = 64)]
    clients: u32,
    /// Length of each run.
    #[arg(long, default_value_t = 20)]
    seconds: u32,
}

/// Debian's sysbench 1.0.20 has these.
const SCRIPTS: &[&str] = &[
    "oltp_point_select",
    "oltp_read_only",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_insert",
    "oltp_delete",
    "oltp_write_only",
    "oltp_read_write",
    "select_random_points",
    "select_random_ranges",
];

/// Runs every script in both protocols; fails if one of them does.
pub fn run(arguments: &Arguments) -> Result<()> {
    let running = arguments.target.start()?;
    let mut failed = Vec::new();
    for script in SCRIPTS
        .iter()
        .filter(|name| name.contains(&arguments.script))
    {
        for is_prepared in [false, true] {
            let load = Load {
                script: (*script).to_owned(),
                port: running.port(),
                // These two read one table.
                tables: if script.starts_with("select_random") {
                    1
                } else {
                    arguments.tables
                },
                rows: arguments.rows,
                clients: arguments.clients,
                seconds: arguments.seconds,
                is_prepared,
            };
            let protocol = if is_prepared { "prepared" } else { "text" };
            match run_script(&running, &load) {
                Ok(line) => println!("ok    {script:<24} {protocol:<9} {line}"),
                Err(error) => {
                    println!("FAIL  {script:<24} {protocol:<9} {error:#}");
                    failed.push(format!("{script} {protocol}"));
                }
            }
        }
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

fn run_script(running: &Running, load: &Load) -> Result<String> {
    running.connect()?.run("DROP DATABASE IF EXISTS sbtest")?;
    running.connect()?.run("CREATE DATABASE sbtest")?;
    load.prepare().context("prepare")?;
    let before = sum_of_keys(running, load)?;
    let counts = load.run().context("run")?;
    let after = sum_of_keys(running, load)?;
    ensure!(
        counts.transactions > 0,
        "no transaction in {} s",
        counts.seconds
    );
    if load.script == "oltp_update_index" {
        // Each acknowledged statement adds 1 to the key of one row.
        ensure!(
            after - before == i128::from(counts.writes),
            "keys grew by {}, acknowledged were {}",
            after - before,
            counts.writes
        );
    }
    load.cleanup().context("cleanup")?;
    Ok(format!(
        "{:>9.0} statements/s  p95 {:>8.2} ms  {} allowed errors",
        counts.statements_per_second(),
        counts.p95_ms,
        counts.ignored_errors
    ))
}

fn sum_of_keys(running: &Running, load: &Load) -> Result<i128> {
    let mut client = running.connect()?;
    let mut sum = 0;
    for table in 1..=load.tables {
        let text = client.value(&format!("SELECT SUM(k) FROM sbtest.sbtest{table}"))?;
        sum += text.context("the table has rows")?.parse::<i128>()?;
    }
    Ok(sum)
}
