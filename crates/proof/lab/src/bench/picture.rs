//! A run as a picture: throughput and 99th percentile by the number of clients, Plateau compared
//! with both thread models of MariaDB.
//!
//! Each workload has a row of two panels. Clients and times have logarithmic axes; rates begin at
//! 0. Colours show the server, dashes and hollow marks its configuration.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use testkit::folder::repository_root;

use super::contestant::Program;
use super::history::{self, Line};
use super::svg::{Anchor, Mark, Place, Svg};

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
    let rows = stdx::u64_to_f64(stdx::to_u64(workloads.len()));
    let size = Place {
        x: 2.0 * PANEL.x,
        y: HEAD + rows * PANEL.y + FOOT,
    };
    let description = format!(
        "Throughput and 99th percentile against the number of clients, Plateau and MariaDB: {}",
        workloads.join(", ")
    );
    let mut svg = Svg::new(size, STYLE, &description);
    legend(&mut svg);
    for (row, workload) in (0_u32..).zip(workloads) {
        let own: Vec<&Line> = of_record
            .iter()
            .copied()
            .filter(|it| it.workload == *workload)
            .collect();
        ensure!(!own.is_empty(), "the run {record} has no {workload}");
        let top = HEAD + f64::from(row) * PANEL.y;
        Panel::new(Quantity::Throughput, Place { x: 0.0, y: top }, &own)
            .draw(&mut svg, workload, &own);
        Panel::new(Quantity::P99, Place { x: PANEL.x, y: top }, &own)
            .draw(&mut svg, workload, &own);
    }
    let foot = Place {
        x: size.x - MARGIN_RIGHT,
        y: size.y - 8.0,
    };
    let told = format!("docs/bench/{record}.md: one machine, durable commits, load included");
    svg.text("soft", Anchor::End, foot, &told);
    Ok(svg.finish())
}

/// The size of a panel with its labels, and its margins.
const PANEL: Place = Place { x: 470.0, y: 270.0 };
const MARGIN_LEFT: f64 = 58.0;
const MARGIN_RIGHT: f64 = 26.0;
const MARGIN_TOP: f64 = 34.0;
const MARGIN_BOTTOM: f64 = 46.0;

/// Above and below all panels.
const HEAD: f64 = 40.0;
const FOOT: f64 = 24.0;

/// A curve's look: its class, the class of its marks, and their shape.
fn look(program: Program) -> (&'static str, &'static str, Mark) {
    match program {
        Program::PlateauEpoll | Program::BaseEpoll | Program::NullEpoll => {
            ("own second", "own hollow", Mark::Circle)
        }
        Program::MariadbThreads => ("other", "other full", Mark::Square),
        Program::MariadbPool => ("other second", "other hollow", Mark::Square),
        Program::PlateauUring | Program::BaseUring | Program::NullUring => {
            ("own", "own full", Mark::Circle)
        }
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

/// Ours come first; curves are drawn in reverse, so that ours are on top.
const CURVES: [Program; 4] = [
    Program::PlateauUring,
    Program::PlateauEpoll,
    Program::MariadbThreads,
    Program::MariadbPool,
];

fn legend(svg: &mut Svg) {
    const ENTRY: f64 = 215.0;
    for (index, program) in (0_u32..).zip(CURVES) {
        let (line, mark_class, mark) = look(program);
        let left = MARGIN_LEFT + f64::from(index) * ENTRY;
        let at = |x: f64| Place { x, y: 24.0 };
        svg.line(&format!("curve {line}"), &[at(left), at(left + 34.0)]);
        svg.mark(mark_class, mark, at(left + 17.0));
        let text = Place {
            x: left + 42.0,
            y: 28.0,
        };
        svg.text("ink", Anchor::Start, text, label(program));
    }
}

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

    fn title(self) -> &'static str {
        match self {
            Quantity::Throughput => "statements a second",
            Quantity::P99 => "99th percentile of a transaction",
        }
    }
}

/// The field of a panel and its scales.
struct Panel {
    quantity: Quantity,
    /// Upper left and lower right corner of the field.
    from: Place,
    to: Place,
    /// Numbers of clients, as logarithms.
    clients: (f64, f64),
    /// The least and the greatest tick.
    values: (f64, f64),
    ticks: Vec<f64>,
}

impl Panel {
    fn new(quantity: Quantity, corner: Place, lines: &[&Line]) -> Panel {
        let clients = lines.iter().map(|it| f64::from(it.clients.max(1)).ln());
        let values = lines.iter().map(|it| quantity.of(it));
        let most = values.clone().fold(f64::MIN_POSITIVE, f64::max);
        let least = values.fold(f64::MAX, f64::min);
        let ticks = match quantity {
            Quantity::Throughput => even_ticks(most),
            Quantity::P99 => power_ticks(least, most),
        };
        Panel {
            quantity,
            from: Place {
                x: corner.x + MARGIN_LEFT,
                y: corner.y + MARGIN_TOP,
            },
            to: Place {
                x: corner.x + PANEL.x - MARGIN_RIGHT,
                y: corner.y + PANEL.y - MARGIN_BOTTOM,
            },
            clients: (
                clients.clone().fold(f64::MAX, f64::min),
                clients.fold(f64::MIN, f64::max),
            ),
            values: (
                ticks.first().copied().unwrap_or(0.0),
                ticks.last().copied().unwrap_or(1.0),
            ),
            ticks,
        }
    }

    fn x(&self, clients: u32) -> f64 {
        let (least, most) = self.clients;
        // A single number of clients is placed in the middle.
        if most <= least {
            return (self.from.x + self.to.x) / 2.0;
        }
        let part = (f64::from(clients.max(1)).ln() - least) / (most - least);
        self.from.x + part * (self.to.x - self.from.x)
    }

    fn y(&self, value: f64) -> f64 {
        let (least, most) = self.values;
        let part = match self.quantity {
            Quantity::Throughput => (value - least) / (most - least),
            Quantity::P99 => (value / least).ln() / (most / least).ln(),
        };
        self.to.y - part * (self.to.y - self.from.y)
    }

    fn draw(&self, svg: &mut Svg, workload: &str, lines: &[&Line]) {
        let title = Place {
            x: self.from.x,
            y: self.from.y - 14.0,
        };
        let text = format!("{workload}: {}", self.quantity.title());
        svg.text("title", Anchor::Start, title, &text);
        self.axes(svg, lines);
        for program in CURVES.iter().rev() {
            let mut own: Vec<&&Line> = lines
                .iter()
                .filter(|it| it.server == program.name())
                .collect();
            own.sort_by_key(|it| it.clients);
            let place = |it: &&&Line| Place {
                x: self.x(it.clients),
                y: self.y(self.quantity.of(it)),
            };
            let places: Vec<Place> = own.iter().map(place).collect();
            let (line, mark_class, mark) = look(*program);
            svg.line(&format!("curve {line}"), &places);
            for place in places {
                svg.mark(mark_class, mark, place);
            }
        }
    }

    fn axes(&self, svg: &mut Svg, lines: &[&Line]) {
        let at = |x: f64, y: f64| Place { x, y };
        for &tick in &self.ticks {
            let y = self.y(tick);
            svg.line("grid", &[at(self.from.x, y), at(self.to.x, y)]);
            let text = match self.quantity {
                Quantity::Throughput => thousands(tick),
                Quantity::P99 => time(tick),
            };
            svg.text("soft", Anchor::End, at(self.from.x - 8.0, y + 4.0), &text);
        }
        let mut clients: Vec<u32> = lines.iter().map(|it| it.clients).collect();
        clients.sort_unstable();
        clients.dedup();
        for clients in clients {
            let x = self.x(clients);
            svg.line("axis", &[at(x, self.to.y), at(x, self.to.y + 5.0)]);
            svg.text(
                "soft",
                Anchor::Middle,
                at(x, self.to.y + 19.0),
                &grouped(clients),
            );
        }
        svg.line(
            "axis",
            &[at(self.from.x, self.to.y), at(self.to.x, self.to.y)],
        );
        let middle = (self.from.x + self.to.x) / 2.0;
        svg.text(
            "soft",
            Anchor::Middle,
            at(middle, self.to.y + 36.0),
            "clients",
        );
    }
}

/// From 0 to above `most`, in steps of 1, 2 or 5 times a power of ten: at most seven ticks.
fn even_ticks(most: f64) -> Vec<f64> {
    const TICKS_MAX: f64 = 6.0;
    let power = 10_f64.powf((most / TICKS_MAX).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|it| it * power);
    let step = steps.into_iter().find(|step| most <= step * TICKS_MAX);
    let step = step.unwrap_or(most);
    let mut ticks = vec![0.0];
    while ticks.last().is_some_and(|last| *last < most) {
        let count = stdx::u64_to_f64(stdx::to_u64(ticks.len()));
        ticks.push(count * step);
    }
    ticks
}

/// The powers of ten from below `least` to above `most`.
fn power_ticks(least: f64, most: f64) -> Vec<f64> {
    let mut power = least.log10().floor();
    let mut ticks = vec![10_f64.powf(power)];
    while ticks.len() < 2 || ticks.last().is_some_and(|last| *last < most) {
        power += 1.0;
        // 10 to an integral power is rounded, so that labels are round.
        ticks.push((10_f64.powf(power) * 1e6).round() / 1e6);
    }
    ticks
}

/// 150000 as `150k`.
fn thousands(value: f64) -> String {
    if value < 1000.0 {
        return format!("{value:.0}");
    }
    format!("{}k", value / 1000.0)
}

/// Milliseconds, from 1000 on as seconds.
fn time(ms: f64) -> String {
    if ms < 1000.0 {
        return format!("{ms} ms");
    }
    format!("{} s", ms / 1000.0)
}

/// 10000 as `10,000`.
fn grouped(value: u32) -> String {
    if value < 1000 {
        return value.to_string();
    }
    format!("{},{:03}", value / 1000, value % 1000)
}

/// The background is drawn, so that texts are legible on any page; colours follow the reader's
/// scheme.
const STYLE: &str = "\
text { font: 12px system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif }
.ground { fill: #ffffff }
.title { fill: #1f2328; font-weight: 600; font-size: 13px }
.ink { fill: #1f2328 }
.soft { fill: #59636e; font-size: 11px }
.grid { fill: none; stroke: #dfe3e8; stroke-width: 1 }
.axis { fill: none; stroke: #818b98; stroke-width: 1 }
.curve { fill: none; stroke-width: 2; stroke-linejoin: round }
.second { stroke-dasharray: 5 4 }
.own { stroke: #0a5fd0 }
.other { stroke: #c2540a }
.hollow { fill: #ffffff; stroke-width: 1.5 }
.own.full { fill: #0a5fd0 }
.other.full { fill: #c2540a }
@media (prefers-color-scheme: dark) {
.ground { fill: #0d1117 }
.title { fill: #e6edf3 }
.ink { fill: #e6edf3 }
.soft { fill: #9198a1 }
.grid { stroke: #262c36 }
.axis { stroke: #656c76 }
.own { stroke: #58a6ff }
.other { stroke: #f0883e }
.hollow { fill: #0d1117 }
.own.full { fill: #58a6ff }
.other.full { fill: #f0883e }
}
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_reach_around_all() {
        assert_eq!(even_ticks(142_019.0), [0.0, 5e4, 1e5, 1.5e5]);
        assert_eq!(even_ticks(6.0), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(
            power_ticks(0.095, 590.0),
            [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]
        );
        assert_eq!(power_ticks(1.0, 1.0), [1.0, 10.0]);
        assert_eq!(
            [0.0, 500.0, 2500.0, 150_000.0].map(thousands),
            ["0", "500", "2.5k", "150k"]
        );
        assert_eq!(
            [0.1, 100.0, 10_000.0].map(time),
            ["0.1 ms", "100 ms", "10 s"]
        );
        assert_eq!(
            [1, 512, 4096, 10_000].map(grouped),
            ["1", "512", "4,096", "10,000"]
        );
    }

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
