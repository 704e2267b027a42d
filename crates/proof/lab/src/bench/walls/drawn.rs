//! The walls as a table, as lines of a CSV file, and as a picture.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result};

use super::{Point, Wall};
use crate::curves::{Chart, Curve, Look, Mark, Panel, Scale};

/// Where the curves are kept.
const FILE: &str = "docs/bench/walls.csv";
const PICTURE: &str = "docs/bench/walls.svg";

/// A wall's numbers, for people.
pub(super) fn table(wall: Wall, points: &[Point]) -> String {
    let mut text = format!(
        "{}\n{:>8} {:>12} {:>12} {:>6} {:>22} {:>24} {:>10}\n",
        wall.name(),
        "clients",
        "with/s",
        "without/s",
        "left",
        "contended, of 1000",
        "switches, of 1000",
        "bytes"
    );
    for point in points {
        let (with, without) = (&point.with, &point.without);
        let switches = |it: &super::Measured| it.per_thousand(it.switches);
        // Writing to a text does not fail.
        let _ = writeln!(
            text,
            "{:>8} {:>12.0} {:>12.0} {:>6.2} {:>22.2} {:>11.2} ({:>9.2}) {:>11.0}",
            point.clients,
            with.rate(),
            without.rate(),
            point.left(),
            with.per_thousand(with.contended),
            switches(with),
            switches(without),
            with.copied / with.operations.max(1.0),
        );
    }
    text
}

/// Keeps the curves and draws them.
pub(super) fn record(points: &[Point]) -> Result<()> {
    let mut lines = String::from(
        "wall,clients,with_per_s,without_per_s,contended_per_1000,switches_per_1000_with,\
         switches_per_1000_without,copied_bytes\n",
    );
    for point in points {
        let (with, without) = (&point.with, &point.without);
        // Writing to a text does not fail.
        let _ = writeln!(
            lines,
            "{},{},{:.0},{:.0},{:.3},{:.3},{:.3},{:.0}",
            point.wall.name(),
            point.clients,
            with.rate(),
            without.rate(),
            with.per_thousand(with.contended),
            with.per_thousand(with.switches),
            without.per_thousand(without.switches),
            with.copied / with.operations.max(1.0),
        );
    }
    fs::write(FILE, lines).with_context(|| format!("{FILE} is written"))?;
    fs::write(PICTURE, draw(points)).with_context(|| format!("{PICTURE} is written"))
}

const WITHOUT: Look = Look {
    line: "own",
    mark_class: "own full",
    mark: Mark::Circle,
};
const WITH: Look = Look {
    line: "other",
    mark_class: "other full",
    mark: Mark::Square,
};

fn draw(points: &[Point]) -> String {
    let panel = |wall: Wall| {
        let own: Vec<_> = points.iter().filter(|point| point.wall == wall).collect();
        let curve = |look: Look, of: fn(&Point) -> f64| Curve {
            look,
            points: own.iter().map(|it| (it.clients, of(it))).collect(),
        };
        Panel {
            title: format!("{}: operations a second", wall.name()),
            scale: Scale::Numbers,
            curves: vec![
                curve(WITHOUT, |it| it.without.rate()),
                curve(WITH, |it| it.with.rate()),
            ],
        }
    };
    let mut rows = Vec::new();
    for pair in Wall::ALL.chunks(2) {
        if let [left, right] = pair {
            rows.push([panel(*left), panel(*right)]);
        }
    }
    let chart = Chart {
        description:
            "Operations a second against the number of clients, with each of six walls of \
                      older engines and without it"
                .to_owned(),
        more_style: "",
        legend: vec![("without the wall", WITHOUT), ("with it", WITH)],
        rows,
        foot: format!("{FILE}: one machine, a thread for each processor"),
    };
    chart.draw()
}
