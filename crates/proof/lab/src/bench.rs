//! Comparison with Debian's `mariadbd` in one interleaved run: throughput, p95, and processor time
//! of the server per statement.
//!
//! All servers stand side by side with the same durability and the same cache; each point is
//! measured in turn on each of them, so that a slow minute of the machine hits all, and repeated;
//! the table gives medians. sysbench shares the machine with the server under test, so throughput
//! says what the pair can do; processor time per statement is the server's own.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use testkit::folder::target_directory;
use testkit::process::run as run_program;
use testkit::{Launch, Server, ServerKind};

use crate::load::Load;
use crate::target::reference;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Numbers of clients.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 64, 512, 4096])]
    clients: Vec<u32>,
    /// sysbench scripts without `oltp_`.
    #[arg(long, value_delimiter = ',', default_values_t = WORKLOADS.map(String::from))]
    workloads: Vec<String>,
    /// Length of each measurement.
    #[arg(long, default_value_t = 10)]
    seconds: u32,
    /// Measurements of each point; the median counts.
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    #[arg(long, default_value_t = 4)]
    tables: u32,
    #[arg(long, default_value_t = 50_000)]
    rows: u32,
    /// Statements sent as text instead of prepared.
    #[arg(long)]
    text: bool,
    /// When the log is flushed: 1 at each commit, 2 and 0 each second.
    #[arg(long, default_value_t = 1)]
    flush: u32,
    /// Leaves Plateau out, to test the bench itself.
    #[arg(long)]
    references_only: bool,
    /// Settings for Plateau as `name=value`.
    #[arg(long = "set")]
    settings: Vec<String>,
    /// Where the table goes; measurements are appended to `history.csv` beside it.
    #[arg(long)]
    out: Option<PathBuf>,
}

const WORKLOADS: [&str; 5] = [
    "point_select",
    "read_only",
    "update_non_index",
    "write_only",
    "read_write",
];

const CACHE: &str = "512M";

/// A server under measurement.
#[derive(Debug)]
struct Contestant {
    name: &'static str,
    server: Server,
}

/// One measurement.
#[derive(Clone, Debug)]
struct Sample {
    per_second: f64,
    p95_ms: f64,
    cpu_us: f64,
}

/// Measures all points and writes the table.
pub fn run(arguments: &Arguments) -> Result<()> {
    let mut contestants = start_all(arguments)?;
    for contestant in &contestants {
        contestant.server.connect()?.run("CREATE DATABASE sbtest")?;
        load(arguments, contestant, "oltp_read_write", 1).prepare()?;
    }
    let folder = arguments
        .out
        .clone()
        .unwrap_or_else(|| target_directory().join("bench"));
    fs::create_dir_all(&folder)?;
    let mut table = head(arguments)?;
    let mut history = String::new();
    for workload in &arguments.workloads {
        for &clients in &arguments.clients {
            let samples = measure(arguments, &mut contestants, workload, clients)?;
            for (contestant, samples) in contestants.iter().zip(&samples) {
                for sample in samples {
                    let Sample {
                        per_second,
                        p95_ms,
                        cpu_us,
                    } = sample;
                    let name = contestant.name;
                    writeln!(
                        history,
                        "{workload},{clients},{name},{per_second:.0},{p95_ms},{cpu_us:.2}"
                    )?;
                }
            }
            let lines = table_lines(workload, clients, &contestants, &samples);
            print!("{lines}");
            table.push_str(&lines);
            // Written after each point, so that a run cut short leaves what it has.
            fs::write(folder.join("table.md"), &table)?;
        }
    }
    append(&folder.join("history.csv"), &history)?;
    println!("written to {}", folder.join("table.md").display());
    Ok(())
}

fn start_all(arguments: &Arguments) -> Result<Vec<Contestant>> {
    let mariadb = |threads: &str| {
        reference()
            .with(format!("--thread-handling={threads}"))
            .with(format!("--innodb-buffer-pool-size={CACHE}"))
            .with("--innodb-log-file-size=512M")
            .with(format!(
                "--innodb-flush-log-at-trx-commit={}",
                arguments.flush
            ))
            .with("--skip-log-bin")
            .with("--max-connections=10000")
            .with("--max-prepared-stmt-count=1000000")
            .with("--open-files-limit=65535")
            .start()
    };
    let mut contestants = vec![
        Contestant {
            name: "mariadb threads",
            server: mariadb("one-thread-per-connection")?,
        },
        Contestant {
            name: "mariadb pool",
            server: mariadb("pool-of-threads")?,
        },
    ];
    if !arguments.references_only {
        let launch = Launch::new(ServerKind::Plateau)
            .with("--set")
            .with(format!("buffer_pool_size={CACHE}"))
            .with("--set=log_size=512M")
            .with("--set=max_connections=10000")
            .with("--set=max_prepared_stmt_count=1000000")
            .with(format!("--set=flush_log_at_trx_commit={}", arguments.flush));
        let launch = arguments.settings.iter().fold(launch, |launch, setting| {
            launch.with(format!("--set={setting}"))
        });
        contestants.push(Contestant {
            name: "plateau",
            server: launch.start()?,
        });
    }
    Ok(contestants)
}

fn load(arguments: &Arguments, contestant: &Contestant, script: &str, clients: u32) -> Load {
    Load {
        script: script.to_owned(),
        port: contestant.server.port(),
        tables: arguments.tables,
        rows: arguments.rows,
        clients,
        seconds: arguments.seconds,
        is_prepared: !arguments.text,
    }
}

/// The samples of each contestant, taken in turn.
fn measure(
    arguments: &Arguments,
    contestants: &mut [Contestant],
    workload: &str,
    clients: u32,
) -> Result<Vec<Vec<Sample>>> {
    let mut samples = vec![Vec::new(); contestants.len()];
    for _ in 0..arguments.rounds.max(1) {
        for (contestant, samples) in contestants.iter_mut().zip(&mut samples) {
            let load = load(arguments, contestant, &format!("oltp_{workload}"), clients);
            let before = contestant.server.process().cpu_us()?;
            let counts = load
                .run()
                .with_context(|| format!("{workload}, {clients} clients, {}", contestant.name))?;
            let used = contestant.server.process().cpu_us()? - before;
            let statements = counts.statements();
            ensure!(0 < statements, "{workload}: no statement was answered");
            samples.push(Sample {
                per_second: counts.statements_per_second(),
                p95_ms: counts.p95_ms,
                cpu_us: as_double(used) / as_double(statements),
            });
        }
    }
    Ok(samples)
}

/// Counts of one run fit 32 bits; the ratio needs no more than a double has.
fn as_double(count: u64) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}

fn head(arguments: &Arguments) -> Result<String> {
    let cpu = fs::read_to_string("/proc/cpuinfo")?;
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .unwrap_or("?");
    let processors = cpu
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count();
    let commit = run_program(Command::new("git").args(["rev-parse", "--short", "HEAD"]))?;
    let protocol = if arguments.text { "text" } else { "prepared" };
    Ok(format!(
        "Commit {}, {processors} processors ({}), {} tables of {} rows, {protocol} statements, \
         flush at commit {}, {} runs of {} s each, medians. sysbench runs on the same machine.\n\n\
         | workload | clients | server | statements/s | p95 ms | server CPU us/statement | \
         CPU against best MariaDB |\n|---|---|---|---|---|---|---|\n",
        commit.trim(),
        model.trim_start_matches([' ', '\t', ':']),
        arguments.tables,
        arguments.rows,
        arguments.flush,
        arguments.rounds,
        arguments.seconds
    ))
}

fn table_lines(
    workload: &str,
    clients: u32,
    contestants: &[Contestant],
    samples: &[Vec<Sample>],
) -> String {
    let names: Vec<_> = contestants
        .iter()
        .map(|contestant| contestant.name)
        .collect();
    let cpu = |samples: &Vec<Sample>| median(samples.iter().map(|sample| sample.cpu_us));
    let references = names
        .iter()
        .zip(samples)
        .filter(|(name, _)| name.starts_with("mariadb"));
    let best = references
        .map(|(_, samples)| cpu(samples))
        .fold(f64::INFINITY, f64::min);
    let mut lines = String::new();
    for (name, samples) in names.iter().zip(samples) {
        let per_second = median(samples.iter().map(|sample| sample.per_second));
        let p95 = median(samples.iter().map(|sample| sample.p95_ms));
        let cpu = cpu(samples);
        lines.push_str(&format!(
            "| {workload} | {clients} | {name} | {per_second:.0} | {p95:.2} | {cpu:.1} | {:.2} |\n",
            cpu / best
        ));
    }
    lines
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn append(path: &PathBuf, lines: &str) -> Result<()> {
    let mut text = fs::read_to_string(path).unwrap_or_else(|_| {
        "workload,clients,server,statements_per_second,p95_ms,cpu_us_per_statement\n".to_owned()
    });
    text.push_str(lines);
    fs::write(path, text).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_of_the_middle() {
        assert!((median([3.0, 1.0, 2.0].into_iter()) - 2.0).abs() < 1e-9);
        assert!(median([].into_iter()).is_nan());
    }
}
