//! How long a client among thousands waits, and whether that is fair: a closed loop with 512 to
//! 10,000 clients and an open one, compared with both thread models of MariaDB in the same run.
//!
//! If a server answers X transactions a second and serves its N clients in turn, each waits N/X.
//! Limits are multiples of that rotation. X is the server's own throughput in the same measurement,
//! so a slow minute of the machine changes both.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::contestant::{
    Program, Setup, base_of, is_null, is_plateau, is_reference, null_of, start_all,
};
use super::open;
use super::pair::{Order, Processor, Timing, measure};
use super::point::{Point, line, milliseconds};
use super::record::{Heading, folder};
use super::report::Report;
use super::verdict::{Outcome, Verdict};
use crate::generator::{JUDGED_MEAN, SHARE_LEAST, SHARE_MOST};
use crate::sample::{LoadArguments, Sample};
use crate::target::MeasuredBuild;

/// About three quarters of an hour with what stands here as defaults.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Numbers of clients. Those below 512 are for the best throughput.
    #[arg(long, value_delimiter = ',', default_values_t = [64, 512, 4096, 10_000])]
    clients: Vec<u32>,
    /// sysbench scripts without `oltp_`.
    #[arg(long, value_delimiter = ',', default_values_t = WORKLOADS.map(String::from))]
    workloads: Vec<String>,
    /// Servers to compare.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Program::WITH_NULL)]
    servers: Vec<Program>,
    /// Length of each measurement. At 10,000 clients ten seconds are 50 transactions a client, from
    /// which the shares of clients are judged.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Measurements of each point.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Generations of server processes.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    generations: u32,
    /// Rates of the open loop, as parts of the best throughput.
    #[arg(long, value_delimiter = ',', default_values_t = ["0.3", "0.6", "0.8"].map(String::from))]
    open: Vec<String>,
    /// Clients of the open loop.
    #[arg(long, default_value_t = 4096)]
    open_clients: u32,
    #[command(flatten)]
    load: LoadArguments,
    #[command(flatten)]
    build: MeasuredBuild,
    /// An earlier build of Plateau, which read_only is compared with.
    #[arg(long)]
    base: Option<PathBuf>,
    /// Keeps the result in `docs/bench`; without it, it goes to the build directory.
    #[arg(long)]
    record: bool,
}

const POINT_SELECT: &str = "point_select";
const UPDATE: &str = "update_non_index";
const READ_ONLY: &str = "read_only";
const WORKLOADS: [&str; 3] = [POINT_SELECT, UPDATE, READ_ONLY];

/// From this many clients on latency is judged; fewer are served within a turn of the worker's
/// loop.
const MANY_CLIENTS: u32 = 512;

/// Rotations that the 95th percentile of a point select may take. A stay of k statements makes it k
/// rotations; two leave room for stays above one and for bad moments of a shared machine.
const ROTATIONS_P95: f64 = 2.0;

/// Rotations that the slowest thousandth, and the longest wait of all, may take.
const ROTATIONS_TAIL: f64 = 4.0;

/// Rotations that the longest wait of an update may take: it waits for the disk, too.
const ROTATIONS_UPDATE: f64 = 5.0;

/// The least share of the best throughput over all numbers of clients that must be kept. Fairness
/// may cost a tenth of it, and an eighth for updates, whose group commits it makes smaller.
const KEPT_POINT_SELECT: f64 = 0.90;
const KEPT_UPDATE: f64 = 0.87;

/// How much a build that is equally good may differ from an earlier one: the median of three
/// measurements of ten seconds differs by 2 % between identical builds.
const TWIN_MARGIN: f64 = 0.03;

/// Not counted before each measurement: caches that others have cooled are warm again.
const SETTLE: Duration = Duration::from_secs(1);

/// Measures all points, writes the report, and fails if a limit is missed.
pub fn run(arguments: &Arguments) -> Result<()> {
    let percents = arguments.open.iter().map(|it| open::percent(it));
    let percents = percents.collect::<Result<Vec<_>>>()?;
    let setup = arguments.setup()?;
    let timing = arguments.timing();
    let folder = folder(arguments.record)?;
    let mut report = Report::new(Heading::new(&setup, &arguments.method())?);
    report.become_latency(judge);
    let mut kinds = arguments.servers.clone();
    if setup.base.is_some() {
        kinds.extend(arguments.servers.iter().filter_map(|it| it.base()));
    }
    for _ in 0..arguments.generations {
        let mut all = start_all(&kinds, &arguments.clients, &setup)?;
        for contestant in &mut all {
            contestant.fill(&setup)?;
        }
        // Read_only has only limits of our own; updates and point selects have none of an earlier
        // build. A server without tables and log says nothing of updates.
        let (mut others, mut own): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|it| !is_plateau(it.name));
        for workload in &arguments.workloads {
            let is_wanted = |name: &str| match workload.as_str() {
                READ_ONLY => !is_reference(name) && !is_null(name),
                POINT_SELECT => is_reference(name) || is_null(name),
                _ => is_reference(name),
            };
            let mut part: Vec<_> = others.iter_mut().filter(|it| is_wanted(it.name)).collect();
            part.extend(own.iter_mut());
            let points = measure(&setup, &timing, &mut part, workload)?;
            let mut all = points.clone();
            if workload != READ_ONLY && !percents.is_empty() {
                let mut part: Vec<_> = own.iter_mut().collect();
                part.extend(others.iter_mut().filter(|it| is_null(it.name)));
                let rates = (arguments.open_clients, &percents[..]);
                all.extend(open::measure((&setup, &timing), &mut part, &points, rates)?);
            }
            for point in all {
                println!("{}", line(&point));
                report.add(point);
            }
            report.write(&folder)?;
        }
    }
    print!("{}", report.verdicts());
    println!("written to {}", folder.display());
    let missed = report.missed();
    ensure!(
        missed.is_empty(),
        "{} limits are missed:\n{}",
        missed.len(),
        missed.join("\n")
    );
    Ok(())
}

impl Arguments {
    fn setup(&self) -> Result<Setup> {
        Ok(Setup {
            load: self.load.clone(),
            workloads: self.workloads.clone(),
            flush: 1,
            settings: self.build.settings.clone(),
            program: self.build.program()?,
            base: self.base.clone(),
        })
    }

    fn timing(&self) -> Timing {
        Timing {
            rounds: self.rounds,
            turns: 1,
            turn: Duration::from_secs(self.seconds),
            settle: SETTLE,
            ramp: SETTLE,
            processor: Processor::Ticks,
            order: Order::Same,
        }
    }

    fn method(&self) -> String {
        format!(
            "{} generations of processes, in each {} rounds of {} s behind {} s uncounted; medians \
             of medians, and the longest wait of all rounds",
            self.generations,
            self.rounds,
            self.seconds,
            SETTLE.as_secs()
        )
    }
}

/// Each limit for which there are points.
fn judge(report: &Report) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    let is_many = |it: &&Point| MANY_CLIENTS <= it.clients && is_plateau(it.server);
    for point in report.points().iter().filter(is_many) {
        match point.workload.as_str() {
            POINT_SELECT => point_select(report, point, &mut verdicts),
            UPDATE => update(report, point, &mut verdicts),
            _ => against_base(report, point, &mut verdicts),
        }
        shares(point, &mut verdicts);
    }
    let is_floor = |it: &&Point| MANY_CLIENTS <= it.clients && is_null(it.server);
    for point in report.points().iter().filter(is_floor) {
        verdicts.extend(point_select_limits(report, point).map(floor));
    }
    verdicts.extend(open::judge(report.open_points()));
    verdicts
}

/// Of the server that knows nothing: what this machine allows.
fn floor(verdict: Verdict) -> Verdict {
    Verdict {
        limit: format!("no limit; {} of Plateau", verdict.limit),
        outcome: Outcome::Shown,
        ..verdict
    }
}

fn point_select(report: &Report, point: &Point, verdicts: &mut Vec<Verdict>) {
    verdicts.extend(point_select_limits(report, point));
    let null = report
        .peers(point)
        .find(|it| Some(it.server) == null_of(point.server));
    verdicts.extend(null.map(|null| within_reach(report, point, null)));
}

fn point_select_limits(report: &Report, point: &Point) -> [Verdict; 4] {
    [
        rotations(point, "p95", ROTATIONS_P95, |it| it.p95_ms),
        rotations(point, "p99.9", ROTATIONS_TAIL, |it| it.p999_ms),
        longest(point, ROTATIONS_TAIL),
        kept(report, point, KEPT_POINT_SELECT),
    ]
}

/// The share of its best throughput that a server would keep whose own work costs as much at this
/// number of clients as at the best one: it takes longer by what the null server takes longer.
fn within_reach(report: &Report, point: &Point, null: &Point) -> Verdict {
    let time = |point: &Point| 1.0 / point.per_second();
    let best = time(report.own_best(point));
    let more = time(null) - time(report.own_best(null));
    Verdict {
        what: named(point, "throughput within reach"),
        measured: format!("{:.2} of its best", best / (best + more)),
        limit: "no limit: the null server's extra time alone".to_owned(),
        outcome: Outcome::Shown,
    }
}

/// Returns a value of a measurement.
type Value = fn(&Sample) -> f64;

fn update(report: &Report, point: &Point, verdicts: &mut Vec<Verdict>) {
    let parts: [(&str, Value); 3] = [
        ("p95", |it| it.p95_ms),
        ("p99", |it| it.p99_ms),
        ("p99.9", |it| it.p999_ms),
    ];
    for (name, of) in parts {
        let references = report.peers(point).filter(|it| is_reference(it.server));
        let best_ms = references.map(|it| it.median(of)).min_by(f64::total_cmp);
        let own_ms = point.median(of);
        verdicts.push(Verdict {
            what: named(point, name),
            measured: format!("{} ms", milliseconds(own_ms)),
            limit: match best_ms {
                None => "as MariaDB's better, which this run has not measured".to_owned(),
                Some(best_ms) => format!("<= {} ms, MariaDB's better", milliseconds(best_ms)),
            },
            outcome: best_ms.map_or(Outcome::Shown, |best_ms| Outcome::of(own_ms <= best_ms)),
        });
    }
    verdicts.push(longest(point, ROTATIONS_UPDATE));
    verdicts.push(kept(report, point, KEPT_UPDATE));
}

fn named(point: &Point, what: &str) -> String {
    let Point {
        workload,
        clients,
        server,
        ..
    } = point;
    format!("{workload}, {clients} clients, {what}, {server}")
}

/// A time in rotations: one rotation serves each client once.
fn in_rotations(point: &Point, sample: &Sample, time_ms: f64) -> f64 {
    let rotation_ms = f64::from(point.clients) * point.step_count / sample.per_second * 1e3;
    time_ms / rotation_ms
}

fn rotations(point: &Point, name: &str, limit: f64, of: Value) -> Verdict {
    let rotations = point.median(|it| in_rotations(point, it, of(it)));
    let time = milliseconds(point.median(of));
    Verdict {
        what: named(point, name),
        measured: format!("{rotations:.2} N/X ({time} ms)"),
        limit: format!("<= {limit} N/X"),
        outcome: Outcome::of(rotations <= limit),
    }
}

/// The longest wait of all samples; a median would hide it.
fn longest(point: &Point, limit: f64) -> Verdict {
    let samples = point.generations.iter().flatten();
    let each = samples.map(|it| in_rotations(point, it, it.longest_ms));
    let rotations = each.fold(0.0, f64::max);
    let time = milliseconds(point.longest_ms());
    Verdict {
        what: named(point, "longest wait"),
        measured: format!("{rotations:.2} N/X ({time} ms)"),
        limit: format!("<= {limit} N/X"),
        outcome: Outcome::of(rotations <= limit),
    }
}

/// Throughput relative to the best over all numbers of clients.
fn kept(report: &Report, point: &Point, limit: f64) -> Verdict {
    let best = report.own_best(point);
    let share = point.share_of(best);
    let is_other = |it: &&Point| {
        (it.server, &it.workload) == (point.server, &point.workload) && it.clients != point.clients
    };
    let is_alone = !report.points().iter().any(|it| is_other(&it));
    Verdict {
        what: named(point, "throughput"),
        measured: format!("{share:.2} of its best, with {}", best.clients),
        limit: match is_alone {
            true => format!(">= {limit}, beside other numbers of clients"),
            false => format!(">= {limit}"),
        },
        outcome: match is_alone {
            true => Outcome::Shown,
            false => Outcome::of(limit <= share),
        },
    }
}

/// The 95th percentile and the throughput relative to those of an earlier build.
fn against_base(report: &Report, point: &Point, verdicts: &mut Vec<Verdict>) {
    let base_name = base_of(point.server);
    let base = report.peers(point).find(|it| Some(it.server) == base_name);
    let own_ms = milliseconds(point.median(|it| it.p95_ms));
    let own = point.per_second();
    let (time, throughput) = (named(point, "p95"), named(point, "throughput"));
    let mut add = |what: String, measured: String, limit: String, outcome| {
        verdicts.push(Verdict {
            what,
            measured,
            limit,
            outcome,
        });
    };
    let Some(base) = base else {
        let why = || "as an earlier build has, given by --base".to_owned();
        add(time, format!("{own_ms} ms"), why(), Outcome::Shown);
        add(
            throughput,
            format!("{own:.0} statements/s"),
            why(),
            Outcome::Shown,
        );
        return;
    };
    let ratio = point.ratio_to(base, |it| it.p95_ms);
    let most = 1.0 + TWIN_MARGIN;
    add(
        time,
        format!("{own_ms} ms, {ratio:.2} of the base's"),
        format!("<= {most}"),
        Outcome::of(ratio <= most),
    );
    let ratio = point.share_of(base);
    let least = 1.0 - TWIN_MARGIN;
    add(
        throughput,
        format!("{own:.0} statements/s, {ratio:.2} of the base's"),
        format!(">= {least}"),
        Outcome::of(least <= ratio),
    );
}

fn shares(point: &Point, verdicts: &mut Vec<Verdict>) {
    let shares = point.worst_shares();
    verdicts.push(Verdict {
        what: named(point, "each client's share"),
        measured: shares.to_string(),
        limit: match shares.is_fair() {
            None => format!("{JUDGED_MEAN} transactions a client to judge it: a longer run"),
            Some(_) => format!("{SHARE_LEAST} to {SHARE_MOST}"),
        },
        outcome: shares.is_fair().map_or(Outcome::Shown, Outcome::of),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::contestant::{BASE_URING, EPOLL, URING};
    use crate::generator::Shares;
    use crate::sample::Count;

    /// 512 clients of a server that answers 51,200 a second: a rotation takes 10 ms.
    fn point(workload: &str, server: &'static str, times_ms: [f64; 4]) -> Point {
        let mut sample = Count::default().sample(0.0);
        sample.per_second = 51_200.0;
        let [p95_ms, p99_ms, p999_ms, longest_ms] = times_ms;
        (sample.p95_ms, sample.p99_ms) = (p95_ms, p99_ms);
        (sample.p999_ms, sample.longest_ms) = (p999_ms, longest_ms);
        Point {
            workload: workload.to_owned(),
            clients: 512,
            server,
            percent: None,
            step_count: 1.0,
            generations: vec![vec![sample]],
            shares: vec![Shares::of([80, 120].into_iter())],
        }
    }

    fn outcomes(points: Vec<Point>, of: &str) -> Vec<Outcome> {
        let mut report = Report::new(Heading::default());
        points.into_iter().for_each(|it| report.add(it));
        let verdicts = judge(&report);
        let wanted = verdicts.iter().filter(|it| it.what.contains(of));
        wanted.map(|it| it.outcome).collect()
    }

    use Outcome::{Fail, Pass, Shown};

    #[test]
    fn point_selects_are_judged_in_rotations() {
        let at = point(POINT_SELECT, URING, [20.0, 99.0, 40.0, 40.0]);
        // With one number of clients there is no better one to compare with.
        assert_eq!(outcomes(vec![at], URING), [Pass, Pass, Pass, Shown, Pass]);
        let above = point(POINT_SELECT, EPOLL, [20.1, 99.0, 40.1, 40.1]);
        let wanted = [Fail, Fail, Fail, Shown, Pass];
        assert_eq!(outcomes(vec![above], EPOLL), wanted);
    }

    #[test]
    fn one_long_wait_is_not_hidden_by_others() {
        let mut point = point(POINT_SELECT, URING, [20.0, 20.0, 20.0, 30.0]);
        let mut bad = point.generations[0][0].clone();
        bad.longest_ms = 41.0;
        let good = point.generations[0][0].clone();
        point.generations[0].extend([bad, good]);
        assert_eq!(outcomes(vec![point], "longest"), [Fail]);
    }

    #[test]
    fn updates_are_held_against_the_better_mariadb() {
        let own = || point(UPDATE, URING, [10.0, 20.0, 30.0, 50.0]);
        let other = |name, times| point(UPDATE, name, times);
        let threads = other("mariadb threads", [10.0, 99.0, 99.0, 99.0]);
        let pool = other("mariadb pool", [99.0, 20.0, 29.0, 99.0]);
        let points = vec![own(), threads, pool];
        let wanted = [Pass, Pass, Fail, Pass, Shown, Pass];
        assert_eq!(outcomes(points, URING), wanted);
        // Without MariaDB there is nothing to compare with.
        let wanted = [Shown, Shown, Shown, Pass, Shown, Pass];
        assert_eq!(outcomes(vec![own()], URING), wanted);
    }

    #[test]
    fn throughput_is_held_against_the_best() {
        let mut best = point(UPDATE, URING, [1.0; 4]);
        best.clients = 64;
        best.generations[0][0].per_second = 51_200.0 / 0.88;
        let points = |workload: &str| {
            let mut best = best.clone();
            best.workload = workload.to_owned();
            vec![point(workload, URING, [1.0; 4]), best]
        };
        assert_eq!(outcomes(points(UPDATE), "throughput"), [Pass]);
        assert_eq!(outcomes(points(POINT_SELECT), "throughput"), [Fail]);
    }

    #[test]
    fn read_only_is_held_against_an_earlier_build() {
        let own = || point(READ_ONLY, URING, [100.0; 4]);
        assert_eq!(outcomes(vec![own()], URING), [Shown, Shown, Pass]);
        let base = |p95_ms| point(READ_ONLY, BASE_URING, [p95_ms; 4]);
        let of = |p95_ms| outcomes(vec![own(), base(p95_ms)], "p95");
        assert_eq!((of(98.0), of(95.0)), (vec![Pass], vec![Fail]));
    }

    #[test]
    fn shares_are_judged_where_a_run_is_long() {
        let of = |counts: [u64; 2]| {
            let mut point = point(POINT_SELECT, URING, [1.0; 4]);
            point.shares = vec![Shares::of(counts.into_iter())];
            outcomes(vec![point], "share")
        };
        assert_eq!(of([40, 120]), [Fail]);
        assert_eq!(of([1, 3]), [Shown]);
    }
}
