//! The report of a run: limits with their verdicts, then a table for each workload, and the lines
//! of the history.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::contestant::{EPOLL, URING, is_plateau, is_reference};
use super::history::Line;
use super::point::{Point, milliseconds};
use super::record::Heading;
use super::verdict::{self, Outcome, Verdict};
use super::{IdleCost, open, picture};
use crate::generator::{SHARE_LEAST, SHARE_MOST};
use crate::sample::Sample;

/// The number of clients at which processor time and throughput are compared with MariaDB.
const COMPARED_CLIENTS: u32 = 64;

/// The number of clients at which throughput must still be high.
const MANY_CLIENTS: u32 = 4096;

/// The most processor time per statement over io_uring, as a share of the better MariaDB's.
const CPU_SHARES: [(&str, f64); 5] = [
    ("point_select", 0.33),
    ("read_only", 0.45),
    ("update_non_index", 0.38),
    ("write_only", 0.36),
    ("read_write", 0.42),
];

/// The same over epoll, which costs a system call for each packet, and of other workloads.
const CPU_SHARE_POINT_SELECT: f64 = 0.55;
const CPU_SHARE: f64 = 0.75;

/// The least throughput, as a multiple of the better MariaDB's.
const THROUGHPUT_URING: f64 = 2.0;
const THROUGHPUT: f64 = 1.0;

/// The least throughput at many clients, as a share of our own best.
const PLATEAU_SHARE: f64 = 0.9;

/// Throughput over epoll as a share of that over io_uring: within 25 %.
const EPOLL_SHARE: f64 = 0.8;

/// For ten thousand idle clients.
const IDLE_BYTES: u64 = 80_000_000;

/// The most processor time per statement, as a share of the better MariaDB's.
fn cpu_share_limit(server: &str, workload: &str) -> f64 {
    let known = CPU_SHARES.iter().find(|(name, _)| *name == workload);
    match known {
        Some((_, share)) if server == URING => *share,
        _ if workload == "point_select" => CPU_SHARE_POINT_SELECT,
        _ => CPU_SHARE,
    }
}

/// A run's results.
#[derive(Debug)]
pub(super) struct Report {
    heading: Heading,
    /// Of the closed loop.
    points: Vec<Point>,
    /// Of the open loop.
    open: Vec<Point>,
    pub(super) idle: Vec<(&'static str, IdleCost)>,
    /// Judges the limits.
    judge: fn(&Report) -> Vec<Verdict>,
    /// The suffix after date and commit in the page's name.
    suffix: &'static str,
}

impl Report {
    pub(super) fn new(heading: Heading) -> Report {
        Report {
            heading,
            points: Vec::new(),
            open: Vec::new(),
            idle: Vec::new(),
            judge: Report::judge,
            suffix: "",
        }
    }

    /// Makes it the page of a run of `latency`, which has limits of its own.
    pub(super) fn become_latency(&mut self, judge: fn(&Report) -> Vec<Verdict>) {
        self.judge = judge;
        self.suffix = "-latency";
    }

    /// The points of the closed loop.
    pub(super) fn points(&self) -> &[Point] {
        &self.points
    }

    /// The points of the open loop.
    pub(super) fn open_points(&self) -> &[Point] {
        &self.open
    }

    /// Adds the measurements of a generation at a point.
    pub(super) fn add(&mut self, point: Point) {
        let points = match point.percent {
            None => &mut self.points,
            Some(_) => &mut self.open,
        };
        match points.iter_mut().find(|it| it.is_same(&point)) {
            None => points.push(point),
            Some(known) => {
                known.shares.extend(point.shares);
                known.generations.extend(point.generations);
            }
        }
    }

    /// The name of the page, `DATE-COMMIT`.
    fn name(&self) -> String {
        let Heading { date, commit, .. } = &self.heading;
        format!("{date}-{commit}{}", self.suffix)
    }

    /// Writes the page and its picture.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let lines: Vec<Line> = self.points.iter().map(|it| self.line(it)).collect();
        let picture = picture::draw(&self.name(), &lines, &self.workloads())?;
        for (ending, text) in [("md", self.text()), ("svg", picture)] {
            let path = folder.join(format!("{}.{ending}", self.name()));
            fs::write(&path, text).with_context(|| path.display().to_string())?;
        }
        Ok(())
    }

    /// The data of a point for the picture.
    fn line(&self, point: &Point) -> Line {
        Line {
            record: self.name(),
            workload: point.workload.clone(),
            clients: point.clients,
            server: point.server.to_owned(),
            per_second: point.per_second(),
            p99_ms: point.median(|it| it.p99_ms),
        }
    }

    /// In the order of their measurement.
    fn workloads(&self) -> Vec<String> {
        let mut workloads: Vec<String> = Vec::new();
        for point in &self.points {
            if !workloads.contains(&point.workload) {
                workloads.push(point.workload.clone());
            }
        }
        workloads
    }

    /// Appends a line for each point to `history.csv`.
    pub(super) fn append_history(&self, folder: &Path) -> Result<()> {
        let path = folder.join("history.csv");
        let mut text = with_head(&fs::read_to_string(&path).unwrap_or_default());
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
                 {:.2},{},{},{},{:.3},{:.3}",
                value(|it| it.per_second),
                value(|it| it.p50_ms),
                value(|it| it.p95_ms),
                value(|it| it.p99_ms),
                value(|it| it.cpu_us),
                value(|it| it.load_cpu_us),
                point.least(),
                point.most(),
                point.restarts(),
                value(|it| it.p999_ms),
                point.longest_ms()
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
        let name = self.name();
        text.push_str(&format!(
            "![Throughput and 99th percentile against the number of clients]({name}.svg)\n\n"
        ));
        text.push_str("## Limits\n\n");
        text.push_str(&self.verdicts());
        for workload in &self.workloads() {
            text.push_str(&self.table(workload));
            text.push_str(&open::table(&self.open, workload));
        }
        text.push_str(COLUMNS_TEXT);
        text
    }

    /// The missed limits, a line for each.
    pub(super) fn missed(&self) -> Vec<String> {
        verdict::missed(&(self.judge)(self))
    }

    /// Each limit for which there are points.
    fn judge(&self) -> Vec<Verdict> {
        let mut verdicts = self.idle_verdicts();
        for server in [URING, EPOLL] {
            self.against_mariadb(server, &mut verdicts);
            self.plateau(server, &mut verdicts);
            self.fairness(server, &mut verdicts);
        }
        self.epoll_against_uring(&mut verdicts);
        verdicts.extend(open::judge(&self.open));
        verdicts
    }

    /// The limits as a table.
    pub(super) fn verdicts(&self) -> String {
        verdict::table(&(self.judge)(self))
    }

    fn idle_verdicts(&self) -> Vec<Verdict> {
        let of_plateau = self.idle.iter().filter(|(name, _)| is_plateau(name));
        let mut verdicts: Vec<Verdict> = of_plateau
            .map(|(name, cost)| Verdict {
                what: format!("memory of {} idle clients, {name}", cost.clients),
                measured: format!("{:.1} MB", stdx::u64_to_f64(cost.bytes) / 1e6),
                limit: "< 80 MB".to_owned(),
                outcome: Outcome::of(cost.bytes < IDLE_BYTES),
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
            let limit = cpu_share_limit(server, workload);
            let share = point.cpu_us() / cpu_us;
            verdicts.push(Verdict {
                what: format!("{workload}, {COMPARED_CLIENTS} clients, CPU, {server}"),
                measured: format!("{share:.2} of MariaDB's"),
                limit: format!("<= {limit}"),
                outcome: Outcome::of(share <= limit),
            });
            let share = point.per_second() / per_second;
            let least = match server == URING {
                true => THROUGHPUT_URING,
                false => THROUGHPUT,
            };
            verdicts.push(Verdict {
                what: format!("{workload}, {COMPARED_CLIENTS} clients, throughput, {server}"),
                measured: format!("{share:.2} of MariaDB's"),
                limit: format!(">= {least}"),
                outcome: Outcome::of(share >= least),
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
                outcome: Outcome::of(share >= PLATEAU_SHARE),
            });
        }
    }

    /// The shares of clients, in runs that are long enough.
    fn fairness(&self, server: &str, verdicts: &mut Vec<Verdict>) {
        let own = self.points.iter().filter(|point| point.server == server);
        for point in own {
            let shares = point.worst_shares();
            let Some(is_fair) = shares.is_fair() else {
                continue;
            };
            let Point {
                workload, clients, ..
            } = point;
            verdicts.push(Verdict {
                what: format!("{workload}, {clients} clients, each one's share, {server}"),
                measured: format!("{shares}"),
                limit: format!("{SHARE_LEAST} to {SHARE_MOST}"),
                outcome: Outcome::of(is_fair),
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
                outcome: Outcome::of(share >= EPOLL_SHARE),
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
                "| {} | {} | {per_second:.0} | {} | {:.2} | {} | {} | {} | {} | {} | {} | {:.1} | \
                 {} | {:.1} | {} |\n",
                point.clients,
                point.server,
                ratio(per_second, self.reference_per_second(point)),
                point.share_of(self.own_best(point)),
                milliseconds(point.median(|it| it.p50_ms)),
                milliseconds(point.median(|it| it.p95_ms)),
                milliseconds(point.median(|it| it.p99_ms)),
                milliseconds(point.median(|it| it.p999_ms)),
                milliseconds(point.longest_ms()),
                point.worst_shares(),
                point.cpu_us(),
                ratio(point.cpu_us(), self.reference_cpu_us(point)),
                point.median(|it| it.load_cpu_us),
                point.restarts()
            ));
        }
        text
    }

    /// The same point of all servers.
    pub(super) fn peers<'r>(&'r self, point: &'r Point) -> impl Iterator<Item = &'r Point> {
        self.points
            .iter()
            .filter(|it| it.workload == point.workload && it.clients == point.clients)
    }

    /// The better MariaDB's processor time at a point.
    fn reference_cpu_us(&self, point: &Point) -> Option<f64> {
        let references = self.peers(point).filter(|peer| is_reference(peer.server));
        references.map(Point::cpu_us).min_by(f64::total_cmp)
    }

    /// The better MariaDB's throughput at a point.
    fn reference_per_second(&self, point: &Point) -> Option<f64> {
        let references = self.peers(point).filter(|peer| is_reference(peer.server));
        references.map(Point::per_second).max_by(f64::total_cmp)
    }

    /// The same server at the number of clients with the best throughput.
    pub(super) fn own_best<'r>(&'r self, point: &'r Point) -> &'r Point {
        let own = self
            .points
            .iter()
            .filter(|it| it.workload == point.workload && it.server == point.server);
        own.max_by(|left, right| left.per_second().total_cmp(&right.per_second()))
            .unwrap_or(point)
    }
}

/// A history with today's column names. Columns are only added at the end, so older lines stay
/// unchanged.
fn with_head(history: &str) -> String {
    let lines = history.split_once('\n').map_or("", |(_, lines)| lines);
    format!("{HISTORY_HEAD}{lines}")
}

const HISTORY_HEAD: &str = "date,commit,workload,clients,server,statements_per_second,p50_ms,\
    p95_ms,p99_ms,cpu_us_per_statement,load_cpu_us_per_statement,client_least,client_most,\
    restarts,p999_ms,longest_ms\n";

const TABLE_HEAD: &str = "\
| clients | server | statements/s | of MariaDB's | of own best | p50 ms | p95 ms | p99 ms | \
p99.9 ms | longest ms | transactions a client | CPU us | of MariaDB's | load CPU us | restarts |\n\
|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n";

const COLUMNS_TEXT: &str = "
`of MariaDB's` compares with whichever of the two MariaDB set-ups did better at that point; \
`of own best` with the number of clients that gave most, round by round. \
Latency is that of a transaction, restarts included, on a clock that stands still between turns. \
`longest ms`: the longest wait of all rounds, also of what was not answered when one ended. \
`transactions a client`: the fewest and the most that one client finished while it was connected, \
as parts of the mean; of several generations the one that was spread most. \
`CPU us`: processor time of the server per statement; `load CPU us`: of the load. \
`restarts`: transactions begun again after error 1213 or 1205; any other error ends the run.
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::Shares;

    fn shares(counts: [u64; 2]) -> Shares {
        Shares::of(counts.into_iter())
    }

    fn point(workload: &str, clients: u32, server: &'static str, per_second: f64) -> Point {
        let sample = |factor: f64| Sample {
            per_second: per_second * factor,
            p50_ms: 0.5,
            p95_ms: 12.34,
            p99_ms: 1234.5,
            p999_ms: 2000.0,
            longest_ms: 2500.0 * factor,
            lateness: None,
            cpu_us: 1e6 / per_second,
            load_cpu_us: 5.0,
            restarts: 1,
            failures: 0,
        };
        Point {
            workload: workload.to_owned(),
            clients,
            server,
            percent: None,
            step_count: 1.0,
            generations: vec![vec![sample(0.5), sample(1.0), sample(2.0)]],
            shares: vec![shares([3, 9])],
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
    fn generations_of_a_point_count_alike() {
        let mut report = report();
        let before = report.points.len();
        let mut lucky = point("point_select", 64, URING, 300_000.0);
        lucky.shares = vec![shares([1, 20])];
        report.add(lucky);
        let mut unlucky = point("point_select", 64, URING, 50_000.0);
        unlucky.generations[0].truncate(1);
        report.add(unlucky);
        assert_eq!(report.points.len(), before);
        let all = report.points.iter().find(|it| it.server == URING);
        let all = all.expect("it was there before");
        assert!((all.per_second() - 100_000.0).abs() < 1.0, "{all:?}");
        assert_eq!((all.least(), all.most(), all.restarts()), (1, 20, 7));
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
            cpu.ends_with("| 0.50 of MariaDB's | <= 0.33 | **FAIL** |"),
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

    /// Separate medians would give 0.5.
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
    fn shares_are_judged_where_a_run_is_long() {
        let mut report = report();
        let line = |report: &Report| {
            let verdicts = report.verdicts();
            let mut lines = verdicts.lines();
            lines.find(|line| line.contains("share")).map(str::to_owned)
        };
        assert_eq!(line(&report), None);
        report.points[2].shares.push(shares([40, 120]));
        let wanted = "| point_select, 64 clients, each one's share, plateau uring | 0.50 to 1.50 \
                      of the mean of 80 | 0.7 to 1.3 | **FAIL** |";
        assert_eq!(line(&report).as_deref(), Some(wanted));
    }

    #[test]
    fn old_lines_stand_under_new_columns() {
        assert_eq!(with_head(""), HISTORY_HEAD);
        assert_eq!(with_head("date,old\n1,2\n"), format!("{HISTORY_HEAD}1,2\n"));
    }

    #[test]
    fn missed_limits_are_named() {
        let missed = report().missed();
        let many = "point_select, 4096 clients, plateau uring: 0.80 of its best, with 64, wanted \
                    >= 0.9";
        assert!(missed.iter().any(|line| line == many), "{missed:?}");
        let throughput = "point_select, 64 clients, throughput, plateau uring";
        assert!(!missed.iter().any(|line| line.starts_with(throughput)));
    }

    #[test]
    fn report_has_a_table_for_each_workload() {
        let text = report().text();
        let row = "| 64 | plateau uring | 100000 | 2.00 | 1.00 | 0.500 | 12.3 | 1234 | 2000 | \
                   5000 | 0.50 to 1.50 of the mean of 6 | 10.0 | 0.50 | 5.0 | 3 |";
        assert!(text.contains(row), "{text}");
    }
}
