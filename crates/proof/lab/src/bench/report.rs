//! The report of a run: limits with their verdicts, then a table for each workload, and the lines
//! of the history.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::contestant::{EPOLL, URING};
use super::record::Heading;
use super::{IdleCost, Point};
use crate::sample::Sample;

/// At how many clients processor time and throughput are compared with MariaDB.
const COMPARED_CLIENTS: u32 = 64;

/// At how many clients the plateau has to hold.
const MANY_CLIENTS: u32 = 4096;

/// Processor time per statement, as a share of the better MariaDB's, at most.
const CPU_SHARE_POINT_SELECT: f64 = 0.55;
const CPU_SHARE: f64 = 0.75;

/// Throughput at many clients, as a share of our own best, at least.
const PLATEAU_SHARE: f64 = 0.9;

/// Throughput over epoll, as a share of that over io_uring: within 25%.
const EPOLL_SHARE: f64 = 0.8;

/// For ten thousand idle clients.
const IDLE_BYTES: u64 = 80_000_000;

/// A run's results.
#[derive(Debug)]
pub(super) struct Report {
    heading: Heading,
    points: Vec<Point>,
    pub(super) idle: Vec<(&'static str, IdleCost)>,
}

/// A limit and what was measured.
struct Verdict {
    what: String,
    measured: String,
    limit: String,
    passes: bool,
}

impl Report {
    pub(super) fn new(heading: Heading) -> Report {
        Report {
            heading,
            points: Vec::new(),
            idle: Vec::new(),
        }
    }

    /// Takes in what a generation measured at a point.
    pub(super) fn add(&mut self, point: Point) {
        let same = |it: &&mut Point| {
            (&it.workload, it.clients, it.server) == (&point.workload, point.clients, point.server)
        };
        match self.points.iter_mut().find(same) {
            None => self.points.push(point),
            Some(known) => {
                known.least = known.least.min(point.least);
                known.most = known.most.max(point.most);
                known.generations.extend(point.generations);
            }
        }
    }

    /// Writes `DATE-COMMIT.md`.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let Heading { date, commit, .. } = &self.heading;
        let path = folder.join(format!("{date}-{commit}.md"));
        fs::write(&path, self.text()).with_context(|| path.display().to_string())
    }

    /// Appends a line for each point to `history.csv`.
    pub(super) fn append_history(&self, folder: &Path) -> Result<()> {
        let path = folder.join("history.csv");
        let mut text = fs::read_to_string(&path).unwrap_or_else(|_| HISTORY_HEAD.to_owned());
        let Heading { date, commit, .. } = &self.heading;
        for point in &self.points {
            let Point {
                workload,
                clients,
                server,
                ..
            } = point;
            let value = |of: fn(&Sample) -> f64| point.median(of);
            writeln!(
                text,
                "{date},{commit},{workload},{clients},{server},{:.0},{:.3},{:.3},{:.3},{:.2},\
                 {:.2},{},{},{}",
                value(|it| it.per_second),
                value(|it| it.p50_ms),
                value(|it| it.p95_ms),
                value(|it| it.p99_ms),
                value(|it| it.cpu_us),
                value(|it| it.load_cpu_us),
                point.least,
                point.most,
                point.restarts()
            )?;
        }
        fs::write(&path, text).with_context(|| path.display().to_string())
    }

    fn text(&self) -> String {
        let Heading {
            date,
            commit,
            machine,
            reference,
            method,
        } = &self.heading;
        let mut text = format!(
            "# Bench of {date}, commit {commit}\n\n{machine}. Against {reference}.\n\n{method}.\n\n"
        );
        text.push_str("## Limits\n\n");
        text.push_str(&self.verdicts());
        let mut workloads: Vec<&str> = Vec::new();
        for point in &self.points {
            if !workloads.contains(&point.workload.as_str()) {
                workloads.push(&point.workload);
            }
        }
        for workload in workloads {
            text.push_str(&self.table(workload));
        }
        text.push_str(COLUMNS_TEXT);
        text
    }

    /// The limits that were not held, a line for each.
    pub(super) fn missed(&self) -> Vec<String> {
        let verdicts = self.judge().into_iter().filter(|verdict| !verdict.passes);
        verdicts
            .map(|it| format!("{}: {}, wanted {}", it.what, it.measured, it.limit))
            .collect()
    }

    /// Each limit for which there are points.
    fn judge(&self) -> Vec<Verdict> {
        let mut verdicts = self.idle_verdicts();
        for server in [URING, EPOLL] {
            self.against_mariadb(server, &mut verdicts);
            self.plateau(server, &mut verdicts);
        }
        self.epoll_against_uring(&mut verdicts);
        verdicts
    }

    /// The limits as a table.
    pub(super) fn verdicts(&self) -> String {
        let mut text = String::from("| limit | measured | wanted | |\n|---|---|---|---|\n");
        for verdict in &self.judge() {
            let Verdict {
                what,
                measured,
                limit,
                passes,
            } = verdict;
            let sign = if *passes { "pass" } else { "**FAIL**" };
            text.push_str(&format!("| {what} | {measured} | {limit} | {sign} |\n"));
        }
        text
    }

    fn idle_verdicts(&self) -> Vec<Verdict> {
        let of_plateau = self.idle.iter().filter(|(name, _)| is_plateau(name));
        let mut verdicts: Vec<Verdict> = of_plateau
            .map(|(name, cost)| Verdict {
                what: format!("memory of {} idle clients, {name}", cost.clients),
                measured: format!("{:.1} MB", stdx::u64_to_f64(cost.bytes) / 1e6),
                limit: "< 80 MB".to_owned(),
                passes: cost.bytes < IDLE_BYTES,
            })
            .collect();
        if let Some(verdict) = verdicts.first_mut() {
            let others = self.idle.iter().filter(|(name, _)| !is_plateau(name));
            for (name, cost) in others {
                let megabytes = stdx::u64_to_f64(cost.bytes) / 1e6;
                verdict
                    .measured
                    .push_str(&format!("; {name}: {megabytes:.1} MB"));
            }
        }
        verdicts
    }

    /// Processor time and throughput at 64 clients.
    fn against_mariadb(&self, server: &str, verdicts: &mut Vec<Verdict>) {
        let own = self.points.iter().filter(|point| point.server == server);
        for point in own.filter(|point| point.clients == COMPARED_CLIENTS) {
            let (Some(cpu_us), Some(per_second)) = (
                self.reference_cpu_us(point),
                self.reference_per_second(point),
            ) else {
                continue;
            };
            let workload = &point.workload;
            let limit = match workload.as_str() {
                "point_select" => CPU_SHARE_POINT_SELECT,
                _ => CPU_SHARE,
            };
            let share = point.cpu_us() / cpu_us;
            verdicts.push(Verdict {
                what: format!("{workload}, {COMPARED_CLIENTS} clients, CPU, {server}"),
                measured: format!("{share:.2} of MariaDB's"),
                limit: format!("<= {limit}"),
                passes: share <= limit,
            });
            let share = point.per_second() / per_second;
            verdicts.push(Verdict {
                what: format!("{workload}, {COMPARED_CLIENTS} clients, throughput, {server}"),
                measured: format!("{share:.2} of MariaDB's"),
                limit: "> 1".to_owned(),
                passes: share > 1.0,
            });
        }
    }

    /// Throughput at 4,096 clients.
    fn plateau(&self, server: &str, verdicts: &mut Vec<Verdict>) {
        let own = self.points.iter().filter(|point| point.server == server);
        for point in own.filter(|point| point.clients == MANY_CLIENTS) {
            let best = self.own_best(point);
            let share = point.share_of(best);
            verdicts.push(Verdict {
                what: format!("{}, {MANY_CLIENTS} clients, {server}", point.workload),
                measured: format!("{share:.2} of its best, with {}", best.clients),
                limit: format!(">= {PLATEAU_SHARE}"),
                passes: share >= PLATEAU_SHARE,
            });
        }
    }

    fn epoll_against_uring(&self, verdicts: &mut Vec<Verdict>) {
        let compared = |point: &&Point| point.clients == COMPARED_CLIENTS && point.server == EPOLL;
        for point in self.points.iter().filter(compared) {
            let twin = self.peers(point).find(|peer| peer.server == URING);
            let Some(twin) = twin else { continue };
            let share = point.per_second() / twin.per_second();
            verdicts.push(Verdict {
                what: format!("{}, {COMPARED_CLIENTS} clients, epoll", point.workload),
                measured: format!("{share:.2} of io_uring's throughput"),
                limit: format!(">= {EPOLL_SHARE}"),
                passes: share >= EPOLL_SHARE,
            });
        }
    }

    fn table(&self, workload: &str) -> String {
        let mut text = format!("\n## {workload}\n\n{TABLE_HEAD}");
        for point in self.points.iter().filter(|it| it.workload == workload) {
            let ratio = |own: f64, other: Option<f64>| {
                other.map_or("-".to_owned(), |other| format!("{:.2}", own / other))
            };
            let per_second = point.per_second();
            text.push_str(&format!(
                "| {} | {} | {per_second:.0} | {} | {:.2} | {} | {} | {} | {} to {} | {:.1} | {} \
                 | {:.1} | {} |\n",
                point.clients,
                point.server,
                ratio(per_second, self.reference_per_second(point)),
                point.share_of(self.own_best(point)),
                milliseconds(point.median(|it| it.p50_ms)),
                milliseconds(point.median(|it| it.p95_ms)),
                milliseconds(point.median(|it| it.p99_ms)),
                point.least,
                point.most,
                point.cpu_us(),
                ratio(point.cpu_us(), self.reference_cpu_us(point)),
                point.median(|it| it.load_cpu_us),
                point.restarts()
            ));
        }
        text
    }

    /// The same point of all servers.
    fn peers<'r>(&'r self, point: &'r Point) -> impl Iterator<Item = &'r Point> {
        self.points
            .iter()
            .filter(|it| it.workload == point.workload && it.clients == point.clients)
    }

    /// The better MariaDB's processor time at a point.
    fn reference_cpu_us(&self, point: &Point) -> Option<f64> {
        let references = self.peers(point).filter(|peer| !is_plateau(peer.server));
        references.map(Point::cpu_us).min_by(f64::total_cmp)
    }

    /// The better MariaDB's throughput at a point.
    fn reference_per_second(&self, point: &Point) -> Option<f64> {
        let references = self.peers(point).filter(|peer| !is_plateau(peer.server));
        references.map(Point::per_second).max_by(f64::total_cmp)
    }

    /// The same server at whatever number of clients gave most.
    fn own_best<'r>(&'r self, point: &'r Point) -> &'r Point {
        let own = self
            .points
            .iter()
            .filter(|it| it.workload == point.workload && it.server == point.server);
        own.max_by(|left, right| left.per_second().total_cmp(&right.per_second()))
            .unwrap_or(point)
    }
}

impl Point {
    /// The median of the generations' medians.
    fn median(&self, of: fn(&Sample) -> f64) -> f64 {
        let of_generation = |samples: &Vec<Sample>| median(samples.iter().map(of));
        median(self.generations.iter().map(of_generation))
    }

    fn per_second(&self) -> f64 {
        self.median(|it| it.per_second)
    }

    /// Throughput as a share of another point's: of what the two had within seconds of each other
    /// the generation's median, and of these the median. Shared machines have good and bad minutes,
    /// which differ by more than points do.
    fn share_of(&self, other: &Point) -> f64 {
        let of_generation = |(own, other): (&Vec<Sample>, &Vec<Sample>)| {
            let pairs = own.iter().zip(other);
            median(pairs.map(|(own, other)| own.per_second / other.per_second))
        };
        median(
            self.generations
                .iter()
                .zip(&other.generations)
                .map(of_generation),
        )
    }

    fn cpu_us(&self) -> f64 {
        self.median(|it| it.cpu_us)
    }

    fn restarts(&self) -> u64 {
        self.generations
            .iter()
            .flatten()
            .map(|it| it.restarts)
            .sum()
    }
}

/// One line for the terminal.
pub(super) fn line(point: &Point) -> String {
    format!(
        "{:<16} {:>5} clients  {:<15} {:>8.0} statements/s  p95 {:>8} ms  {:>6.1} us",
        point.workload,
        point.clients,
        point.server,
        point.per_second(),
        milliseconds(point.median(|it| it.p95_ms)),
        point.cpu_us()
    )
}

fn is_plateau(server: &str) -> bool {
    [URING, EPOLL].contains(&server)
}

/// Three digits that say something.
fn milliseconds(value: f64) -> String {
    match value {
        small if small < 1.0 => format!("{small:.3}"),
        medium if medium < 100.0 => format!("{medium:.1}"),
        large => format!("{large:.0}"),
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

const HISTORY_HEAD: &str = "date,commit,workload,clients,server,statements_per_second,p50_ms,\
    p95_ms,p99_ms,cpu_us_per_statement,load_cpu_us_per_statement,client_least,client_most,\
    restarts\n";

const TABLE_HEAD: &str = "\
| clients | server | statements/s | of MariaDB's | of own best | p50 ms | p95 ms | p99 ms | \
transactions a client | CPU us | of MariaDB's | load CPU us | restarts |\n\
|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n";

const COLUMNS_TEXT: &str = "
`of MariaDB's` compares with whichever of the two MariaDB set-ups did better at that point; \
`of own best` with the number of clients that gave most, round by round. \
Latency is that of a transaction, restarts included, on a clock that stands still between turns. \
`transactions a client`: the fewest and the most that one client finished in all rounds of a \
generation. \
`CPU us`: processor time of the server per statement; `load CPU us`: of the load. \
`restarts`: transactions begun again after error 1213 or 1205; any other error ends the run.
";

#[cfg(test)]
mod tests {
    use super::*;

    fn point(workload: &str, clients: u32, server: &'static str, per_second: f64) -> Point {
        let sample = |factor: f64| Sample {
            per_second: per_second * factor,
            p50_ms: 0.5,
            p95_ms: 12.34,
            p99_ms: 1234.5,
            cpu_us: 1e6 / per_second,
            load_cpu_us: 5.0,
            restarts: 1,
        };
        Point {
            workload: workload.to_owned(),
            clients,
            server,
            generations: vec![vec![sample(0.5), sample(1.0), sample(2.0)]],
            least: 3,
            most: 9,
        }
    }

    fn report() -> Report {
        let text = |it: &str| it.to_owned();
        let mut report = Report::new(Heading {
            date: text("2026-01-31"),
            commit: text("abc"),
            machine: text("machine"),
            reference: text("mariadbd"),
            method: text("method"),
        });
        report.points = vec![
            point("point_select", 64, "mariadb threads", 50_000.0),
            point("point_select", 64, "mariadb pool", 40_000.0),
            point("point_select", 64, URING, 100_000.0),
            point("point_select", 64, EPOLL, 60_000.0),
            point("point_select", 4096, URING, 80_000.0),
        ];
        report
    }

    #[test]
    fn medians_are_of_the_middle() {
        assert!((median([3.0, 1.0, 2.0].into_iter()) - 2.0).abs() < 1e-9);
        assert!(median([].into_iter()).is_nan());
    }

    #[test]
    fn generations_of_a_point_count_alike() {
        let mut report = report();
        let before = report.points.len();
        let mut lucky = point("point_select", 64, URING, 300_000.0);
        (lucky.least, lucky.most) = (1, 20);
        report.add(lucky);
        let mut unlucky = point("point_select", 64, URING, 50_000.0);
        unlucky.generations[0].truncate(1);
        report.add(unlucky);
        assert_eq!(report.points.len(), before);
        let all = report.points.iter().find(|it| it.server == URING);
        let all = all.expect("it was there before");
        assert!((all.per_second() - 100_000.0).abs() < 1.0, "{all:?}");
        assert_eq!((all.least, all.most, all.restarts()), (1, 20, 7));
        report.add(point("point_select", 512, URING, 1.0));
        assert_eq!(report.points.len(), before + 1);
    }

    #[test]
    fn limits_are_judged() {
        let verdicts = report().verdicts();
        let line = |start: &str| {
            let found = verdicts.lines().find(|line| line.starts_with(start));
            found.unwrap_or_else(|| panic!("{start} in {verdicts}"))
        };
        let cpu = line("| point_select, 64 clients, CPU, plateau uring |");
        assert!(
            cpu.ends_with("| 0.50 of MariaDB's | <= 0.55 | pass |"),
            "{cpu}"
        );
        let cpu = line("| point_select, 64 clients, CPU, plateau epoll |");
        assert!(
            cpu.ends_with("| 0.83 of MariaDB's | <= 0.55 | **FAIL** |"),
            "{cpu}"
        );
        let many = line("| point_select, 4096 clients, plateau uring |");
        assert!(
            many.ends_with("| 0.80 of its best, with 64 | >= 0.9 | **FAIL** |"),
            "{many}"
        );
        let epoll = line("| point_select, 64 clients, epoll |");
        assert!(
            epoll.ends_with("| 0.60 of io_uring's throughput | >= 0.8 | **FAIL** |"),
            "{epoll}"
        );
    }

    /// Medians by themselves would say 0.5.
    #[test]
    fn shares_are_of_samples_of_one_round() {
        let mut own = point("point_select", 4096, URING, 100.0);
        let mut best = point("point_select", 64, URING, 100.0);
        let rates = |point: &mut Point, rates: [f64; 3]| {
            for (sample, rate) in point.generations[0].iter_mut().zip(rates) {
                sample.per_second = rate;
            }
        };
        rates(&mut own, [50.0, 50.0, 110.0]);
        rates(&mut best, [50.0, 100.0, 100.0]);
        assert!((own.share_of(&best) - 1.0).abs() < 1e-9);
        assert!((own.per_second() / best.per_second() - 0.5).abs() < 1e-9);
    }

    #[test]
    fn missed_limits_are_named() {
        let missed = report().missed();
        let many = "point_select, 4096 clients, plateau uring: 0.80 of its best, with 64, wanted \
                    >= 0.9";
        assert!(missed.iter().any(|line| line == many), "{missed:?}");
        let cpu = "point_select, 64 clients, CPU, plateau uring";
        assert!(!missed.iter().any(|line| line.starts_with(cpu)));
    }

    #[test]
    fn report_has_a_table_for_each_workload() {
        let text = report().text();
        let row = "| 64 | plateau uring | 100000 | 2.00 | 1.00 | 0.500 | 12.3 | 1234 | 3 to 9 | \
                   10.0 | 0.50 | 5.0 | 3 |";
        assert!(text.contains(row), "{text}");
    }
}
