//! The last recorded run as a picture: throughput, and processor time of the proxy, by the number
//! of clients.
//!
//! Each protocol has a row of two panels. Circles are the gateway's, squares are others.

use std::fs;

use anyhow::{Context, Result, ensure};
use testkit::folder::repository_root;

use super::contender::Kind;
use super::record::{self, Line, Protocol};
use crate::curves::{Chart, Curve, Look, Mark, Panel, Scale};

/// The picture, from the repository's root.
const PICTURE: &str = "docs/bench/gateway.svg";

/// Draws the run of `docs/bench/gateway.csv`.
pub fn redraw() -> Result<()> {
    let root = repository_root();
    let (source, output) = (root.join(record::FILE), root.join(PICTURE));
    let text = fs::read_to_string(&source).with_context(|| source.display().to_string())?;
    let picture = draw(&record::read(&text)?)?;
    fs::write(&output, picture).with_context(|| output.display().to_string())?;
    println!("{} drawn to {}", record::FILE, output.display());
    Ok(())
}

/// Ours come first, and are drawn on top.
const CURVES: [Kind; 5] = [
    Kind::Uring,
    Kind::Private,
    Kind::Split,
    Kind::HaProxy,
    Kind::Direct,
];

fn draw(lines: &[Line]) -> Result<String> {
    let mut rows = Vec::new();
    for protocol in Protocol::ALL {
        let mut own: Vec<&Line> = lines.iter().filter(|it| it.protocol == protocol).collect();
        own.sort_by_key(|it| it.clients);
        for kind in CURVES {
            ensure!(
                own.iter().any(|it| it.kind == kind),
                "{} has no {kind} with {protocol} statements",
                record::FILE
            );
        }
        rows.push([Quantity::Throughput, Quantity::Cost].map(|it| it.panel(protocol, &own)));
    }
    let chart = Chart {
        description: "Statements a second, and processor time of the proxy for each, against the \
                      number of clients: the gateway, HAProxy, and no proxy"
            .to_owned(),
        more_style: MORE_STYLE,
        legend: CURVES.map(|kind| (label(kind), look(kind))).to_vec(),
        rows,
        foot: format!(
            "{}: point queries, one machine, with load and server",
            record::FILE
        ),
    };
    Ok(chart.draw())
}

/// The name of a curve.
fn label(kind: Kind) -> &'static str {
    match kind {
        Kind::Uring => "read-connection",
        Kind::Private => "read-connection, not shared",
        Kind::Split => "read-write-split",
        Kind::HaProxy => "HAProxy",
        _ => kind.name(),
    }
}

fn look(kind: Kind) -> Look {
    let (line, mark_class, mark) = match kind {
        Kind::Uring => ("own", "own full", Mark::Circle),
        Kind::Private => ("own second", "own hollow", Mark::Circle),
        Kind::Split => ("split", "split full", Mark::Circle),
        Kind::HaProxy => ("other", "other full", Mark::Square),
        _ => ("none second", "none hollow", Mark::Square),
    };
    Look {
        line,
        mark_class,
        mark,
    }
}

/// A colour for the other router, and one for no proxy.
const MORE_STYLE: &str = "\
.split { stroke: #7a3fc0 }
.split.full { fill: #7a3fc0 }
.none { stroke: #6a737d }
@media (prefers-color-scheme: dark) {
.split { stroke: #b78af0 }
.split.full { fill: #b78af0 }
.none { stroke: #8b949e }
}
";

/// What a panel shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantity {
    Throughput,
    Cost,
}

impl Quantity {
    /// Lines of one protocol, by the number of clients.
    fn panel(self, protocol: Protocol, lines: &[&Line]) -> Panel {
        let title = match self {
            Quantity::Throughput => "statements a second",
            Quantity::Cost => "proxy's processor time, us a statement",
        };
        let curve = |kind: Kind| Curve {
            look: look(kind),
            points: lines
                .iter()
                .filter(|it| it.kind == kind)
                .map(|it| (it.clients, self.of(it)))
                .collect(),
        };
        Panel {
            title: format!("{protocol}: {title}"),
            scale: Scale::Numbers,
            curves: CURVES
                .into_iter()
                .filter(|kind| self.is_of(*kind))
                .map(curve)
                .collect(),
        }
    }

    fn of(self, line: &Line) -> f64 {
        match self {
            Quantity::Throughput => line.per_second,
            Quantity::Cost => line.proxy_us,
        }
    }

    /// No proxy costs nothing.
    fn is_of(self, kind: Kind) -> bool {
        self == Quantity::Throughput || kind != Kind::Direct
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> Vec<Line> {
        let mut lines = Vec::new();
        for protocol in Protocol::ALL {
            for kind in CURVES.into_iter().chain([Kind::Epoll]) {
                for clients in [64, 1] {
                    lines.push(Line {
                        protocol,
                        clients,
                        kind,
                        per_second: 1000.0 * f64::from(clients),
                        proxy_us: 20.0,
                        server_us: 30.0,
                        load_us: 7.0,
                    });
                }
            }
        }
        lines
    }

    #[test]
    fn each_protocol_has_throughput_and_cost() {
        let picture = draw(&lines()).unwrap();
        // The legend, and in each row five curves of throughput and four of cost.
        assert_eq!(picture.matches("class=\"curve").count(), 5 + 2 * (5 + 4));
        assert_eq!(picture.matches("class=\"curve none").count(), 1 + 2);
        for text in [
            "text: statements a second",
            "prepared: proxy's processor time, us a statement",
            "read-connection, not shared",
            "direct",
            "80k",
            "20",
        ] {
            assert!(
                picture.contains(&format!(">{text}<")),
                "{text} in {picture}"
            );
        }
        // Lines go from left to right, in whatever order the file has them.
        let mut sorted = lines();
        sorted.sort_by_key(|it| it.clients);
        assert_eq!(draw(&sorted).unwrap(), picture);
    }

    #[test]
    fn a_missing_curve_is_named() {
        let mut part = lines();
        part.retain(|it| it.kind != Kind::Private || it.protocol != Protocol::Prepared);
        assert_eq!(
            draw(&part).unwrap_err().to_string(),
            "docs/bench/gateway.csv has no private uring with prepared statements"
        );
    }

    /// `cargo xtask draw` draws it.
    #[test]
    fn the_page_of_the_gateway_shows_the_recorded_run() {
        let read = |path: &str| fs::read_to_string(repository_root().join(path)).unwrap();
        let picture = draw(&record::read(&read(record::FILE)).unwrap()).unwrap();
        assert!(picture == read(PICTURE), "run `cargo xtask draw`");
        let page = read("docs/gateway.md");
        assert!(page.contains("](bench/gateway.svg)"));
    }
}
