//! A picture of curves: panels in rows, each with a curve for each contender, by the number of
//! clients.
//!
//! What the caller has measured, and of whom, is not known here. Clients have a logarithmic axis,
//! and what was measured has a [`Scale`]. Places are in the units of the picture, from its upper
//! left corner.

use std::collections::BTreeSet;

use super::svg::{Anchor, Mark, Place, Svg};

/// A picture.
#[derive(Clone, Debug)]
pub(crate) struct Chart<'a> {
    /// For screen readers.
    pub(crate) description: String,
    /// Rules beside those for the classes of [`Look`].
    pub(crate) more_style: &'a str,
    /// The names of all curves, and how they look.
    pub(crate) legend: Vec<(&'a str, Look)>,
    /// From above; each row has two.
    pub(crate) rows: Vec<[Panel; 2]>,
    /// The line below all panels.
    pub(crate) foot: String,
}

/// A field with axes, and what is drawn in it.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) scale: Scale,
    /// The first is on top of the others.
    pub(crate) curves: Vec<Curve>,
}

/// Numbers of clients, and what was measured with each.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    pub(crate) look: Look,
    /// In the order in which the line goes through them.
    pub(crate) points: Vec<(u32, f64)>,
}

/// A curve's look: its class, the class of its marks, and their shape.
///
/// Of classes there are the colours `own` and `other`, `second` for dashes, and for marks `full`
/// and `hollow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) line: &'static str,
    pub(crate) mark_class: &'static str,
    pub(crate) mark: Mark,
}

/// The axis of what was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Numbers from 0 on.
    Numbers,
    /// Milliseconds above 0, as logarithms.
    Times,
}

/// The size of a panel with its labels, and its margins.
const PANEL: Place = Place { x: 470.0, y: 270.0 };
const MARGIN_LEFT: f64 = 58.0;
const MARGIN_RIGHT: f64 = 26.0;
const MARGIN_TOP: f64 = 34.0;
const MARGIN_BOTTOM: f64 = 46.0;

/// Above all panels, with one line of the legend, and below them.
const HEAD: f64 = 40.0;
const FOOT: f64 = 24.0;

/// The height of a line of the legend, and how many entries it has at most.
const LEGEND_LINE: f64 = 20.0;
const LEGEND_COLUMNS_MAX: usize = 4;

impl Chart<'_> {
    /// The text of the SVG file.
    pub(crate) fn draw(&self) -> String {
        let head = HEAD + float(self.legend_lines().saturating_sub(1)) * LEGEND_LINE;
        let size = Place {
            x: 2.0 * PANEL.x,
            y: head + float(self.rows.len()) * PANEL.y + FOOT,
        };
        let style = format!("{STYLE}{}", self.more_style);
        let mut svg = Svg::new(size, &style, &self.description);
        self.draw_legend(&mut svg);
        for (row, panels) in (0_u32..).zip(&self.rows) {
            let y = head + f64::from(row) * PANEL.y;
            for (panel, x) in panels.iter().zip([0.0, PANEL.x]) {
                Field::new(panel, Place { x, y }).draw(&mut svg);
            }
        }
        let foot = Place {
            x: size.x - MARGIN_RIGHT,
            y: size.y - 8.0,
        };
        svg.text("soft", Anchor::End, foot, &self.foot);
        svg.finish()
    }

    fn legend_lines(&self) -> usize {
        self.legend.len().div_ceil(LEGEND_COLUMNS_MAX)
    }

    fn draw_legend(&self, svg: &mut Svg) {
        const WIDTH: f64 = 860.0;
        // Lines are about equally long.
        let columns = self.legend.len().div_ceil(self.legend_lines().max(1));
        let entry = WIDTH / float(columns);
        for (index, (name, look)) in self.legend.iter().enumerate() {
            let left = MARGIN_LEFT + float(index % columns) * entry;
            let middle = 24.0 + float(index / columns) * LEGEND_LINE;
            let at = |x: f64| Place { x, y: middle };
            svg.line(
                &format!("curve {}", look.line),
                &[at(left), at(left + 34.0)],
            );
            svg.mark(look.mark_class, look.mark, at(left + 17.0));
            let text = Place {
                x: left + 42.0,
                y: middle + 4.0,
            };
            svg.text("ink", Anchor::Start, text, name);
        }
    }
}

fn float(count: usize) -> f64 {
    stdx::u64_to_f64(stdx::to_u64(count))
}

/// A panel with its place and its scales.
struct Field<'a> {
    panel: &'a Panel,
    /// Upper left and lower right corner of the field.
    from: Place,
    to: Place,
    clients: BTreeSet<u32>,
    /// The least and the greatest tick.
    values: (f64, f64),
    ticks: Vec<f64>,
}

impl Field<'_> {
    fn new(panel: &Panel, corner: Place) -> Field<'_> {
        let points = || panel.curves.iter().flat_map(|it| &it.points);
        let values = points().map(|(_, value)| *value);
        let most = values.clone().fold(f64::MIN_POSITIVE, f64::max);
        let least = values.fold(f64::MAX, f64::min);
        let ticks = match panel.scale {
            Scale::Numbers => even_ticks(most),
            Scale::Times => power_ticks(least, most),
        };
        Field {
            panel,
            from: Place {
                x: corner.x + MARGIN_LEFT,
                y: corner.y + MARGIN_TOP,
            },
            to: Place {
                x: corner.x + PANEL.x - MARGIN_RIGHT,
                y: corner.y + PANEL.y - MARGIN_BOTTOM,
            },
            clients: points().map(|(clients, _)| *clients).collect(),
            values: (
                ticks.first().copied().unwrap_or(0.0),
                ticks.last().copied().unwrap_or(1.0),
            ),
            ticks,
        }
    }

    fn x(&self, clients: u32) -> f64 {
        let logarithm = |clients: Option<&u32>| f64::from(clients.map_or(1, |it| *it).max(1)).ln();
        let least = logarithm(self.clients.first());
        let most = logarithm(self.clients.last());
        // A single number of clients is placed in the middle.
        if most <= least {
            return (self.from.x + self.to.x) / 2.0;
        }
        let part = (logarithm(Some(&clients)) - least) / (most - least);
        self.from.x + part * (self.to.x - self.from.x)
    }

    fn y(&self, value: f64) -> f64 {
        let (least, most) = self.values;
        let part = match self.panel.scale {
            Scale::Numbers => (value - least) / (most - least),
            Scale::Times => (value / least).ln() / (most / least).ln(),
        };
        self.to.y - part * (self.to.y - self.from.y)
    }

    fn draw(&self, svg: &mut Svg) {
        let title = Place {
            x: self.from.x,
            y: self.from.y - 14.0,
        };
        svg.text("title", Anchor::Start, title, &self.panel.title);
        self.draw_axes(svg);
        for Curve { look, points } in self.panel.curves.iter().rev() {
            let place = |&(clients, value): &(u32, f64)| Place {
                x: self.x(clients),
                y: self.y(value),
            };
            let places: Vec<Place> = points.iter().map(place).collect();
            svg.line(&format!("curve {}", look.line), &places);
            for place in places {
                svg.mark(look.mark_class, look.mark, place);
            }
        }
    }

    fn draw_axes(&self, svg: &mut Svg) {
        let at = |x: f64, y: f64| Place { x, y };
        for &tick in &self.ticks {
            let y = self.y(tick);
            svg.line("grid", &[at(self.from.x, y), at(self.to.x, y)]);
            let text = match self.panel.scale {
                Scale::Numbers => thousands(tick),
                Scale::Times => time(tick),
            };
            svg.text("soft", Anchor::End, at(self.from.x - 8.0, y + 4.0), &text);
        }
        for &clients in &self.clients {
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
        ticks.push(rounded(count * step));
    }
    ticks
}

/// The powers of ten from below `least` to above `most`.
fn power_ticks(least: f64, most: f64) -> Vec<f64> {
    let mut power = least.log10().floor();
    let mut ticks = vec![10_f64.powf(power)];
    while ticks.len() < 2 || ticks.last().is_some_and(|last| *last < most) {
        power += 1.0;
        ticks.push(rounded(10_f64.powf(power)));
    }
    ticks
}

/// Without the error of a product or a power, so that labels are round.
fn rounded(tick: f64) -> f64 {
    (tick * 1e6).round() / 1e6
}

/// 150000 as `150k`.
fn thousands(value: f64) -> String {
    if value < 1000.0 {
        return value.to_string();
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
        assert_eq!(even_ticks(1.7), [0.0, 0.5, 1.0, 1.5, 2.0]);
        assert_eq!(even_ticks(0.3), [0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3]);
        assert_eq!(
            power_ticks(0.095, 590.0),
            [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]
        );
        assert_eq!(power_ticks(1.0, 1.0), [1.0, 10.0]);
        assert_eq!(
            [0.0, 0.5, 500.0, 2500.0, 150_000.0].map(thousands),
            ["0", "0.5", "500", "2.5k", "150k"]
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

    const OWN: Look = Look {
        line: "own",
        mark_class: "own full",
        mark: Mark::Circle,
    };
    const OTHER: Look = Look {
        line: "other",
        mark_class: "other hollow",
        mark: Mark::Square,
    };

    fn panel(scale: Scale, points: &[(u32, f64)]) -> Panel {
        let curve = |look: Look, times: f64| Curve {
            look,
            points: points.iter().map(|(at, it)| (*at, times * it)).collect(),
        };
        Panel {
            title: "what it is".to_owned(),
            scale,
            curves: vec![curve(OWN, 2.0), curve(OTHER, 1.0)],
        }
    }

    fn chart(entries: usize, panels: [Panel; 2]) -> Chart<'static> {
        Chart {
            description: "curves".to_owned(),
            more_style: ".third { stroke: red }\n",
            legend: vec![("ours", OWN); entries],
            rows: vec![panels],
            foot: "as measured".to_owned(),
        }
    }

    /// Where the points of a panel are: the corners of the field hold the least and the most.
    fn places(panel: &Panel) -> Vec<(f64, f64)> {
        let field = Field::new(panel, Place { x: 0.0, y: 0.0 });
        let points = panel.curves.iter().flat_map(|it| &it.points);
        points
            .map(|(clients, value)| (field.x(*clients).round(), field.y(*value).round()))
            .collect()
    }

    #[test]
    fn points_stand_where_the_axes_say() {
        let numbers = panel(Scale::Numbers, &[(1, 0.0), (8, 25.0), (64, 50.0)]);
        let (left, middle, right) = (58.0, 251.0, 444.0);
        let (top, quarter, half, bottom) = (34.0, 177.0, 129.0, 224.0);
        assert_eq!(
            places(&numbers),
            [
                (left, bottom),
                (middle, half),
                (right, top),
                (left, bottom),
                (middle, quarter),
                (right, half)
            ]
        );
        // 1 to 100 ms, twice as long ones up to 1 s.
        let times = panel(Scale::Times, &[(1, 1.0), (8, 10.0), (64, 500.0)]);
        let (third, two_thirds) = (161.0, 97.0);
        let all = places(&times);
        assert_eq!(all[2], (right, top));
        assert_eq!(all[3..5], [(left, bottom), (middle, third)]);
        assert!(two_thirds < all[1].1 && all[1].1 < third, "{all:?}");
    }

    #[test]
    fn a_single_number_of_clients_is_in_the_middle() {
        let places = places(&panel(Scale::Numbers, &[(0, 5.0)]));
        assert_eq!(places, [(251.0, 34.0), (251.0, 129.0)]);
    }

    #[test]
    fn a_long_legend_has_lines_and_moves_what_is_below() {
        let panels = || [(); 2].map(|()| panel(Scale::Numbers, &[(1, 1.0), (1024, 2.0)]));
        let heights = [1, 4, 5, 8, 9].map(|entries| {
            let picture = chart(entries, panels()).draw();
            // A line and a mark for each entry, and a curve for each of two in each panel.
            assert_eq!(picture.matches("class=\"curve").count(), entries + 4);
            let height = picture.split("height=\"").nth(1).unwrap();
            height.split('"').next().unwrap().to_owned()
        });
        assert_eq!(heights, ["334", "334", "354", "354", "374"]);
        let five = chart(5, panels()).draw();
        let lefts = |y: &str| five.matches(&format!("y=\"{y}\">ours<")).count();
        assert_eq!((lefts("28.0"), lefts("48.0")), (3, 2));
    }

    #[test]
    fn texts_and_more_style_are_in_the_picture() {
        let panels = [(); 2].map(|()| panel(Scale::Numbers, &[(1, 1.0), (1024, 2.0)]));
        let picture = chart(1, panels).draw();
        for text in ["what it is", "ours", "as measured", "clients", "1,024"] {
            assert!(picture.contains(&format!(">{text}<")), "{text}: {picture}");
        }
        assert!(picture.contains("}\n.third { stroke: red }\n</style>"));
    }
}
