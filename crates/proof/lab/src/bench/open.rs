//! The open loop compared with a closed one: transactions arrive at fractions of the best
//! throughput.

use anyhow::{Context, Result};

use super::contestant::{Contestant, Setup, is_plateau};
use super::pair::{Rates, Timing, measure_open};
use super::point::{Point, milliseconds};
use super::verdict::{Outcome, Verdict};
use crate::sample::{LATE_SHARE_MAX, Lateness};

/// With this few clients the queue of clients does not matter. Many clients are compared with them
/// at the same rate.
pub(super) const FEW_CLIENTS: u32 = 64;

/// At this percentage of the best throughput the tail is judged: a server that is well used and not
/// overloaded.
const JUDGED_PERCENT: u32 = 60;

/// The 99th percentile of many clients may be at most this multiple of that of [`FEW_CLIENTS`]:
/// only the number of connections differs, not the rate.
const P99_OF_FEW: f64 = 4.0;

/// Parses a fraction of the best throughput, such as 0.6, as a percentage.
pub(super) fn percent(text: &str) -> Result<u32> {
    let share: f64 = text
        .parse()
        .context("a part of the best throughput, as 0.6")?;
    let percent = (share * 100.0).round();
    anyhow::ensure!(
        (1.0..=200.0).contains(&percent),
        "a part of the best throughput is from 0.01 to 2"
    );
    u32::try_from(stdx::f64_to_u64(percent)).context("at most 200")
}

/// Measures the contestants with `many` or [`FEW_CLIENTS`] clients, at fractions of the best
/// throughput in `closed` of each server.
pub(super) fn measure(
    (setup, timing): (&Setup, &Timing),
    contestants: &mut [&mut Contestant],
    closed: &[Point],
    (many, percents): (u32, &[u32]),
) -> Result<Vec<Point>> {
    let Some(first) = closed.first() else {
        return Ok(Vec::new());
    };
    let mut best: Vec<(&'static str, f64)> = Vec::new();
    for point in closed {
        let rate = point.transactions_per_second();
        match best.iter_mut().find(|(server, _)| *server == point.server) {
            None => best.push((point.server, rate)),
            Some((_, known)) => *known = known.max(rate),
        }
    }
    let rates = Rates {
        percents: percents.to_vec(),
        best,
    };
    let mut taking_part: Vec<&mut Contestant> = contestants
        .iter_mut()
        .filter(|it| [many, FEW_CLIENTS].contains(&it.clients))
        .filter(|it| rates.best.iter().any(|(server, _)| *server == it.name))
        .map(|it| &mut **it)
        .collect();
    measure_open(setup, timing, &mut taking_part, (&first.workload, &rates))
}

/// The limits of the open loop.
pub(super) fn judge(points: &[Point]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for point in points {
        let Point {
            workload,
            clients,
            server,
            percent,
            ..
        } = point;
        let percent = percent.unwrap_or_default();
        let what = format!("{workload}, {clients} clients, open loop at {percent}%");
        let late = median_lateness(point);
        if late.is_too_late() {
            verdicts.push(Verdict {
                what: format!("{what}, LATENESS OF THE LOAD ITSELF, {server}"),
                measured: format!("{:.0}% of the latency", late.share * 100.0),
                limit: format!("<= {:.0}%", LATE_SHARE_MAX * 100.0),
                outcome: Outcome::Fail,
            });
        }
        let few = points.iter().find(|it| {
            (it.clients, it.server, it.percent) == (FEW_CLIENTS, *server, Some(percent))
                && it.workload == *workload
        });
        let Some(few) = few.filter(|_| *clients != FEW_CLIENTS) else {
            continue;
        };
        let ratio = point.ratio_to(few, |it| it.p99_ms);
        let is_judged = percent == JUDGED_PERCENT && is_plateau(server);
        verdicts.push(Verdict {
            what: format!("{what}, p99, {server}"),
            measured: format!("{ratio:.1} times that of {FEW_CLIENTS} clients"),
            limit: match is_judged {
                true => format!("<= {P99_OF_FEW}"),
                false => format!("no limit but at {JUDGED_PERCENT}% and of Plateau"),
            },
            outcome: match is_judged {
                true => Outcome::of(ratio <= P99_OF_FEW),
                false => Outcome::Shown,
            },
        });
    }
    verdicts
}

fn median_lateness(point: &Point) -> Lateness {
    let of = |part: fn(&Lateness) -> f64| point.median(|it| it.lateness.as_ref().map_or(0.0, part));
    Lateness {
        p50_ms: of(|it| it.p50_ms),
        p99_ms: of(|it| it.p99_ms),
        share: of(|it| it.share),
    }
}

/// The points of a workload as a table; nothing if there are none.
pub(super) fn table(points: &[Point], workload: &str) -> String {
    let mut points: Vec<&Point> = points.iter().filter(|it| it.workload == workload).collect();
    points.sort_by_key(|it| (it.server, it.percent, it.clients));
    if points.is_empty() {
        return String::new();
    }
    let mut text = format!("\n### {workload}, open loop\n\n{TABLE_HEAD}");
    for point in points {
        let late = median_lateness(point);
        text.push_str(&format!(
            "| {} | {} | {}% | {:.0} | {} | {} | {} | {} | {} | {} | {:.1}% |\n",
            point.clients,
            point.server,
            point.percent.unwrap_or_default(),
            point.per_second(),
            milliseconds(point.median(|it| it.p50_ms)),
            milliseconds(point.median(|it| it.p95_ms)),
            milliseconds(point.median(|it| it.p99_ms)),
            milliseconds(point.median(|it| it.p999_ms)),
            milliseconds(point.longest_ms()),
            milliseconds(late.p99_ms),
            late.share * 100.0
        ));
    }
    text.push_str(COLUMNS_TEXT);
    text
}

const TABLE_HEAD: &str = "\
| clients | server | of best | statements/s | p50 ms | p95 ms | p99 ms | p99.9 ms | longest ms | \
load late p99 ms | of latency |\n|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n";

const COLUMNS_TEXT: &str = "
Transactions arrive as a Poisson process at that part of the server's best throughput, each for \
any client, which queues them while it is busy. Latency is counted from the arrival; what was not \
answered by the end counts by its age. `of latency`: how much of it is the load's own lateness.
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Count;

    fn point(clients: u32, percent: u32, p99_ms: f64, late_share: f64) -> Point {
        let mut sample = Count::default().sample(0.0);
        sample.p99_ms = p99_ms;
        sample.lateness = Some(Lateness {
            share: late_share,
            ..Lateness::default()
        });
        Point {
            workload: "point_select".to_owned(),
            clients,
            server: "plateau uring",
            percent: Some(percent),
            step_count: 1.0,
            generations: vec![vec![sample]],
            shares: Vec::new(),
        }
    }

    #[test]
    fn parts_are_read_in_hundredths() {
        assert_eq!(percent("0.6").unwrap(), 60);
        assert_eq!((percent("0.01").unwrap(), percent("2").unwrap()), (1, 200));
        assert!(percent("0").is_err() && percent("2.01").is_err() && percent("x").is_err());
    }

    #[test]
    fn many_clients_are_held_against_few() {
        let outcomes = |many_ms| {
            let mut points = vec![point(64, 60, 1.0, 0.0), point(64, 80, 1.0, 0.0)];
            points.extend([point(4096, 60, many_ms, 0.0), point(4096, 80, 9.0, 0.0)]);
            let verdicts = judge(&points);
            verdicts.iter().map(|it| it.outcome).collect::<Vec<_>>()
        };
        assert_eq!(outcomes(4.0), [Outcome::Pass, Outcome::Shown]);
        assert_eq!(outcomes(4.1), [Outcome::Fail, Outcome::Shown]);
    }

    #[test]
    fn a_late_load_fails_the_run() {
        let verdicts = judge(&[point(64, 60, 1.0, 0.2)]);
        assert_eq!(verdicts.len(), 1);
        assert_eq!(verdicts[0].outcome, Outcome::Fail);
        assert!(verdicts[0].what.contains("LATENESS"), "{verdicts:?}");
        assert!(judge(&[point(64, 60, 1.0, 0.1)]).is_empty());
    }
}
