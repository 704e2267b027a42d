//! The last recorded run of `gateway-cache`, as CSV and as a picture: throughput, and processor
//! time of the proxy, by the number of clients. The upper row has caches with room for all results,
//! the lower one caches with room for half of them.

use std::fs;

use anyhow::{Context, Result, ensure};
use testkit::folder::repository_root;

use super::{KINDS, Kind, Line, Room};
use crate::curves::{self, Chart, Curve, Look, Mark, Panel, Row, Scale};

/// From the repository's root.
const FILE: &str = "docs/bench/cache.csv";
const PICTURE: &str = "docs/bench/cache.svg";

const HEAD: &str = "results_kept,clients,contender,statements_per_second,proxy_us\n";

/// Replaces the file.
pub(super) fn write(lines: &[Line]) -> Result<()> {
    let path = repository_root().join(FILE);
    fs::write(&path, text(lines)).with_context(|| path.display().to_string())
}

fn text(lines: &[Line]) -> String {
    let line = |it: &Line| {
        let (room, kind) = (it.room.name(), it.kind.name());
        format!(
            "{room},{},{kind},{:.0},{:.2}\n",
            it.clients, it.per_second, it.proxy_us
        )
    };
    HEAD.to_owned() + &lines.iter().map(line).collect::<String>()
}

fn read(text: &str) -> Result<Vec<Line>> {
    curves::read("cache.csv", text, |row: &Row<'_>| {
        let (room, kind) = (row.value("results_kept")?, row.value("contender")?);
        let room_of = |name: &str| Room::ALL.into_iter().find(|it| it.name() == name);
        let kind_of = |name: &str| KINDS.into_iter().find(|it| it.name() == name);
        Ok(Line {
            room: room_of(room).with_context(|| format!("no room is {room}"))?,
            clients: row.parse("clients")?,
            kind: kind_of(kind).with_context(|| format!("no contender is {kind}"))?,
            per_second: row.measured("statements_per_second")?,
            proxy_us: row.measured("proxy_us")?,
        })
    })
}

/// Draws the recorded run.
pub fn redraw() -> Result<()> {
    let root = repository_root();
    let (source, output) = (root.join(FILE), root.join(PICTURE));
    let text = fs::read_to_string(&source).with_context(|| source.display().to_string())?;
    let picture = draw(&read(&text)?)?;
    fs::write(&output, picture).with_context(|| output.display().to_string())?;
    println!("{FILE} drawn to {}", output.display());
    Ok(())
}

/// Ours come first, and are drawn on top.
const CURVES: [Kind; 6] = [
    Kind::Vouched,
    Kind::Verified,
    Kind::Split,
    Kind::Connection,
    Kind::HaProxy,
    Kind::Direct,
];

fn look(kind: Kind) -> Look {
    let (line, mark_class, mark) = match kind {
        Kind::Vouched => ("own", "own full", Mark::Circle),
        Kind::Verified => ("own second", "own hollow", Mark::Circle),
        Kind::Split => ("split", "split full", Mark::Circle),
        Kind::Connection => ("split second", "split hollow", Mark::Circle),
        Kind::HaProxy => ("other", "other full", Mark::Square),
        _ => ("none second", "none hollow", Mark::Square),
    };
    Look {
        line,
        mark_class,
        mark,
    }
}

/// A colour for gateways without a cache, and one for no proxy.
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

fn draw(lines: &[Line]) -> Result<String> {
    let mut rows = Vec::new();
    for room in Room::ALL {
        let mut own: Vec<&Line> = lines.iter().filter(|it| it.room == room).collect();
        own.sort_by_key(|it| it.clients);
        for kind in CURVES {
            let (room, kind_name) = (room.name(), kind.name());
            ensure!(
                own.iter().any(|it| it.kind == kind),
                "{FILE} has no {kind_name} where {room} of the results are kept"
            );
        }
        let name = match room {
            Room::All => "all results kept",
            Room::Half => "half of them kept",
        };
        let panel = |title: &str, kinds: &[Kind], of: fn(&Line) -> f64| Panel {
            title: format!("{name}: {title}"),
            scale: Scale::Numbers,
            curves: kinds.iter().map(|kind| curve(*kind, &own, of)).collect(),
        };
        // No proxy costs nothing.
        let [proxies @ .., _] = &CURVES;
        rows.push([
            panel("statements a second", &CURVES, |it| it.per_second),
            panel("proxy's processor time, us a statement", proxies, |it| {
                it.proxy_us
            }),
        ]);
    }
    let chart = Chart {
        description: "Statements a second, and processor time of the proxy for each, against the \
                      number of clients: the gateway with and without a cache of results, HAProxy, \
                      and no proxy"
            .to_owned(),
        more_style: MORE_STYLE,
        legend: CURVES.map(|kind| (kind.name(), look(kind))).to_vec(),
        rows,
        foot: format!("{FILE}: point queries, a primary and three replicas, one machine"),
    };
    Ok(chart.draw())
}

fn curve(kind: Kind, lines: &[&Line], of: fn(&Line) -> f64) -> Curve {
    let own = lines.iter().filter(|it| it.kind == kind);
    Curve {
        look: look(kind),
        points: own.map(|it| (it.clients, of(it))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> Vec<Line> {
        let mut lines = Vec::new();
        for room in Room::ALL {
            for kind in KINDS {
                for clients in [64, 1] {
                    lines.push(Line {
                        room,
                        clients,
                        kind,
                        per_second: 1000.0 * f64::from(clients),
                        proxy_us: 20.25,
                    });
                }
            }
        }
        lines
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(read(&text(&lines())).unwrap(), lines());
        let damaged = format!("{HEAD}all,1,nginx,1,1\n");
        let error = format!("{:#}", read(&damaged).unwrap_err());
        assert_eq!(error, "line 2 of cache.csv: no contender is nginx");
    }

    #[test]
    fn each_room_has_throughput_and_cost() {
        let picture = draw(&lines()).unwrap();
        // The legend, and in each row six curves of throughput and five of cost.
        assert_eq!(picture.matches("class=\"curve").count(), 6 + 2 * (6 + 5));
        for text in [
            "all results kept: statements a second",
            "vouched cache",
            "direct",
        ] {
            assert!(
                picture.contains(&format!(">{text}<")),
                "{text} in {picture}"
            );
        }
        let mut part = lines();
        part.retain(|it| it.kind != Kind::Verified || it.room != Room::Half);
        assert_eq!(
            draw(&part).unwrap_err().to_string(),
            "docs/bench/cache.csv has no verified cache where half of the results are kept"
        );
    }

    /// `cargo xtask draw` draws it.
    #[test]
    fn the_page_of_the_gateway_shows_the_recorded_run() {
        let read_file = |path: &str| fs::read_to_string(repository_root().join(path)).unwrap();
        let picture = draw(&read(&read_file(FILE)).unwrap()).unwrap();
        assert!(picture == read_file(PICTURE), "run `cargo xtask draw`");
        assert!(read_file("docs/gateway.md").contains("](bench/cache.svg)"));
    }
}
