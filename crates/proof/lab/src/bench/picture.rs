//! A run as a picture: throughput and 99th percentile by the number of clients, Plateau compared
//! with both thread models of MariaDB.
//!
//! Each workload has a row of two panels. Colours show the server, dashes and hollow marks its
//! configuration.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use testkit::folder::repository_root;

use super::contestant::Program;
use super::history::{self, Line};
use crate::curves::{Chart, Curve, Look, Mark, Panel, Scale};

/// Draws a recorded run again.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The run, as its page in `docs/bench` is named; without it, the last that has all curves.
    #[arg(long)]
    record: Option<String>,
    /// sysbench scripts without `oltp_`.
    #[arg(long, value_delimiter = ',', default_values_t = README_WORKLOADS.map(String::from))]
    workloads: Vec<String>,
    /// The file that the picture is written to.
    #[arg(long)]
    output: Option<PathBuf>,
}

impl Arguments {
    /// Whether the README's picture is drawn, of the last run.
    pub fn is_for_readme(&self) -> bool {
        self.record.is_none() && self.output.is_none()
    }
}

/// The README's picture shows the smallest transaction and the largest.
const README_WORKLOADS: [&str; 2] = ["point_select", "read_write"];

/// The README's picture, from the repository's root.
const README_PICTURE: &str = "docs/bench/picture.svg";

/// Draws the README's picture, of the last run that has all of its curves.
pub(super) fn redraw() -> Result<()> {
    run(&Arguments {
        record: None,
        workloads: README_WORKLOADS.map(String::from).to_vec(),
        output: None,
    })
}

/// Draws the picture, by default the README's.
pub fn run(arguments: &Arguments) -> Result<()> {
    let path = repository_root().join("docs/bench/history.csv");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let lines = history::read(&text)?;
    let record = match &arguments.record {
        Some(record) => record,
        None => last_record(&lines, &arguments.workloads)?,
    };
    let picture = draw(record, &lines, &arguments.workloads)?;
    let output = match &arguments.output {
        Some(path) => path.clone(),
        None => repository_root().join(README_PICTURE),
    };
    fs::write(&output, picture).with_context(|| output.display().to_string())?;
    println!("{record} drawn to {}", output.display());
    Ok(())
}

/// The last run that has all curves of these workloads.
fn last_record<'a>(lines: &'a [Line], workloads: &[String]) -> Result<&'a str> {
    let is_whole = |record: &str| {
        workloads.iter().all(|workload| {
            Program::ALL.iter().all(|program| {
                lines.iter().any(|it| {
                    it.record == record && it.workload == *workload && it.server == program.name()
                })
            })
        })
    };
    let mut last_first = lines.iter().rev().map(|it| it.record.as_str());
    let found = last_first.find(|record| is_whole(record));
    found.context("no run of docs/bench/history.csv has all four servers in these workloads")
}

/// A picture of `record` with a row for each workload.
pub(super) fn draw(record: &str, lines: &[Line], workloads: &[String]) -> Result<String> {
    let of_record: Vec<&Line> = lines.iter().filter(|it| it.record == record).collect();
    ensure!(
        !of_record.is_empty(),
        "docs/bench/history.csv has no run {record}"
    );
    let mut rows = Vec::new();
    for workload in workloads {
        let mut own = of_record.clone();
        own.retain(|it| it.workload == *workload);
        ensure!(!own.is_empty(), "the run {record} has no {workload}");
        own.sort_by_key(|it| it.clients);
        rows.push([Quantity::Throughput, Quantity::P99].map(|it| it.panel(workload, &own)));
    }
    let chart = Chart {
        description: format!(
            "Throughput and 99th percentile against the number of clients, Plateau and MariaDB: {}",
            workloads.join(", ")
        ),
        more_style: "",
        legend: CURVES.map(|it| (label(it), look(it))).to_vec(),
        rows,
        foot: format!("docs/bench/{record}.md: one machine, durable commits, load included"),
    };
    Ok(chart.draw())
}

fn look(program: Program) -> Look {
    let (line, mark_class, mark) = match program {
        Program::PlateauEpoll | Program::BaseEpoll | Program::NullEpoll => {
            ("own second", "own hollow", Mark::Circle)
        }
        Program::MariadbThreads => ("other", "other full", Mark::Square),
        Program::MariadbPool => ("other second", "other hollow", Mark::Square),
        Program::PlateauUring | Program::BaseUring | Program::NullUring => {
            ("own", "own full", Mark::Circle)
        }
    };
    Look {
        line,
        mark_class,
        mark,
    }
}

/// The name of a curve.
fn label(program: Program) -> &'static str {
    match program {
        Program::MariadbThreads => "MariaDB, thread a client",
        Program::MariadbPool => "MariaDB, thread pool",
        Program::PlateauUring | Program::BaseUring | Program::NullUring => "Plateau, io_uring",
        Program::PlateauEpoll | Program::BaseEpoll | Program::NullEpoll => "Plateau, epoll",
    }
}

/// Ours come first, and are drawn on top.
const CURVES: [Program; 4] = [
    Program::PlateauUring,
    Program::PlateauEpoll,
    Program::MariadbThreads,
    Program::MariadbPool,
];

/// What a panel shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantity {
    Throughput,
    P99,
}

impl Quantity {
    fn of(self, line: &Line) -> f64 {
        match self {
            Quantity::Throughput => line.per_second,
            // A logarithm needs more than 0.
            Quantity::P99 => line.p99_ms.max(0.001),
        }
    }

    /// Lines of one workload, by the number of clients.
    fn panel(self, workload: &str, lines: &[&Line]) -> Panel {
        let (title, scale) = match self {
            Quantity::Throughput => ("statements a second", Scale::Numbers),
            Quantity::P99 => ("99th percentile of a transaction", Scale::Times),
        };
        let curve = |program: Program| {
            let own = lines.iter().filter(|it| it.server == program.name());
            Curve {
                look: look(program),
                points: own.map(|it| (it.clients, self.of(it))).collect(),
            }
        };
        Panel {
            title: format!("{workload}: {title}"),
            scale,
            curves: CURVES.map(curve).to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(server: &str, clients: u32) -> Line {
        Line {
            record: "2026-01-31-abc".to_owned(),
            workload: "point_select".to_owned(),
            clients,
            server: server.to_owned(),
            per_second: 1000.0 * f64::from(clients),
            p99_ms: f64::from(clients),
        }
    }

    fn lines() -> Vec<Line> {
        let of = |program: &Program| [1, 64].map(|clients| line(program.name(), clients));
        Program::ALL.iter().flat_map(of).collect()
    }

    #[test]
    fn a_run_is_drawn_alike_each_time() {
        let workloads = ["point_select".to_owned()];
        let draw = || draw("2026-01-31-abc", &lines(), &workloads).unwrap();
        let picture = draw();
        assert_eq!(picture, draw());
        // Four curves in each of two panels, and in the legend.
        assert_eq!(picture.matches("class=\"curve").count(), 12);
        for text in [
            "clients",
            "64",
            "1 ms",
            "100 ms",
            "80k",
            "Plateau, io_uring",
        ] {
            assert!(
                picture.contains(&format!(">{text}<")),
                "{text} in {picture}"
            );
        }
    }

    #[test]
    fn what_is_not_there_is_named() {
        let workloads = ["read_only".to_owned()];
        let error = |record| draw(record, &lines(), &workloads).unwrap_err().to_string();
        assert_eq!(
            error("2026-01-31-abc"),
            "the run 2026-01-31-abc has no read_only"
        );
        assert!(error("x").contains("no run x"));
        assert!(last_record(&lines(), &workloads).is_err());
    }

    #[test]
    fn the_last_whole_run_is_drawn() {
        let workloads = ["point_select".to_owned()];
        let mut lines = lines();
        let mut later = line("plateau uring", 1);
        later.record = "2026-02-01-part".to_owned();
        lines.push(later);
        assert_eq!(last_record(&lines, &workloads).unwrap(), "2026-01-31-abc");
    }

    /// `cargo xtask draw` draws it.
    #[test]
    fn the_readme_shows_the_last_run() {
        let read = |path: &str| fs::read_to_string(repository_root().join(path)).unwrap();
        let lines = history::read(&read("docs/bench/history.csv")).unwrap();
        let workloads = README_WORKLOADS.map(String::from);
        let record = last_record(&lines, &workloads).unwrap();
        let picture = draw(record, &lines, &workloads).unwrap();
        assert!(picture == read(README_PICTURE), "run `cargo xtask draw`");
        assert!(read("README.md").contains(README_PICTURE));
    }
}
