//! Runs Debian's sysbench against a server and parses its report.

use std::process::Command;

use anyhow::{Context, Result};
use testkit::process::run;
use testkit::{Client, Login};

/// One run's shape.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) script: String,
    pub(crate) port: u16,
    pub(crate) tables: u32,
    pub(crate) rows: u32,
    pub(crate) clients: u32,
    pub(crate) seconds: u32,
    /// Statements prepared once and executed by id, or sent as text.
    pub(crate) is_prepared: bool,
}

/// What sysbench counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) others: u64,
    pub(crate) transactions: u64,
    /// Statements that ended with one of the allowed errors.
    pub(crate) ignored_errors: u64,
    pub(crate) seconds: f64,
    pub(crate) p95_ms: f64,
}

/// Deadlock and lock wait timeout: errors that a correct server may return under load.
const ALLOWED_ERRORS: &str = "1213,1205";

/// Creates the tables of a script, so many with so many rows, on a server without them.
pub(crate) fn fill(port: u16, script: &str, (tables, rows): (u32, u32)) -> Result<()> {
    let mut client = Client::connect(&Login::root(port))?;
    client.run("create database if not exists sbtest")?;
    let load = Load {
        script: script.to_owned(),
        port,
        tables,
        rows,
        clients: 1,
        seconds: 1,
        is_prepared: false,
    };
    load.prepare()
}

impl Load {
    pub(crate) fn prepare(&self) -> Result<()> {
        self.sysbench("prepare").map(drop)
    }

    pub(crate) fn cleanup(&self) -> Result<()> {
        self.sysbench("cleanup").map(drop)
    }

    pub(crate) fn run(&self) -> Result<Counts> {
        let report = self.sysbench("run")?;
        parse(&report).with_context(|| format!("not a report of sysbench:\n{report}"))
    }

    fn sysbench(&self, step: &str) -> Result<String> {
        // Few clients create the tables: that is not measured.
        let threads = if step == "run" {
            self.clients
        } else {
            self.tables.min(4)
        };
        run(Command::new("sysbench")
            .arg(&self.script)
            .arg("--mysql-host=127.0.0.1")
            .arg(format!("--mysql-port={}", self.port))
            .arg("--mysql-user=root")
            .arg("--mysql-db=sbtest")
            .arg(format!("--mysql-ignore-errors={ALLOWED_ERRORS}"))
            .arg(format!("--tables={}", self.tables))
            .arg(format!("--table-size={}", self.rows))
            .arg(format!("--threads={threads}"))
            .arg(format!("--time={}", self.seconds))
            .arg("--percentile=95")
            .arg(format!(
                "--db-ps-mode={}",
                if self.is_prepared { "auto" } else { "disable" }
            ))
            .arg(step))
    }
}

impl Counts {
    pub(crate) fn statements(&self) -> u64 {
        self.reads + self.writes + self.others
    }

    pub(crate) fn statements_per_second(&self) -> f64 {
        per(self.statements(), self.seconds)
    }
}

/// A rate; counts of a run are far below the 53 bits that a double holds exactly.
fn per(count: u64, seconds: f64) -> f64 {
    let count = u32::try_from(count).map_or(f64::INFINITY, f64::from);
    if seconds > 0.0 { count / seconds } else { 0.0 }
}

fn parse(report: &str) -> Option<Counts> {
    let field = |name: &str| -> Option<&str> {
        let line = report
            .lines()
            .map(str::trim)
            .find(|line| line.starts_with(name))?;
        line.get(name.len()..)?.split_whitespace().next()
    };
    let seconds = field("total time:")?.strip_suffix('s')?;
    Some(Counts {
        reads: field("read:")?.parse().ok()?,
        writes: field("write:")?.parse().ok()?,
        others: field("other:")?.parse().ok()?,
        transactions: field("transactions:")?.parse().ok()?,
        ignored_errors: field("ignored errors:")?.parse().ok()?,
        seconds: seconds.parse().ok()?,
        p95_ms: field("95th percentile:")?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_is_read() {
        let report = "SQL statistics:\n    queries performed:\n        read: 14\n        write: 4\n\
             \x20       other: 2\n        total: 20\n    transactions: 1  (0.5 per sec.)\n\
             \x20   queries: 20 (10.00 per sec.)\n    ignored errors: 3 (0.00 per sec.)\n\
             General statistics:\n    total time:  2.0001s\nLatency (ms):\n  min: 1.0\n\
             \x20        95th percentile:    7.56\n";
        let counts = parse(report).unwrap();
        assert_eq!((counts.reads, counts.writes, counts.others), (14, 4, 2));
        assert_eq!((counts.transactions, counts.ignored_errors), (1, 3));
        assert!((counts.p95_ms - 7.56).abs() < 1e-9);
        assert!((counts.statements_per_second() - 20.0 / 2.0001).abs() < 1e-9);
        assert_eq!(parse("FATAL: no"), None);
    }
}
