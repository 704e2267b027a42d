//! Writes an SVG picture: lines, marks and texts with classes. The same drawing always gives the
//! same file.

use std::fmt::Write as _;

/// A point in the picture, in its units from the upper left corner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// The side of its point on which a text is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// The shape of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Circle,
    Square,
}

/// Half the width of a mark.
const MARK: f64 = 3.5;

/// A picture that is being drawn.
#[derive(Debug)]
pub(super) struct Svg {
    text: String,
}

impl Svg {
    /// An empty picture with that size, style sheet, and a description for screen readers.
    pub(super) fn new(size: Place, style: &str, description: &str) -> Svg {
        let Place { x, y } = size;
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {x:.0} {y:.0}\" \
             width=\"{x:.0}\" height=\"{y:.0}\" role=\"img\">\n"
        );
        text.push_str(&format!("<title>{}</title>\n", escaped(description)));
        text.push_str(&format!("<style>\n{style}</style>\n"));
        text.push_str("<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n");
        Svg { text }
    }

    /// A line through all points.
    pub(super) fn line(&mut self, class: &str, places: &[Place]) {
        let mut points = String::new();
        for Place { x, y } in places {
            let blank = if points.is_empty() { "" } else { " " };
            write!(points, "{blank}{x:.1},{y:.1}").expect("a String takes all");
        }
        self.push(&format!(
            "<polyline class=\"{class}\" points=\"{points}\"/>"
        ));
    }

    pub(super) fn mark(&mut self, class: &str, mark: Mark, Place { x, y }: Place) {
        let (left, top, side) = (x - MARK, y - MARK, 2.0 * MARK);
        let shape = match mark {
            Mark::Circle => {
                format!("<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{MARK}\"/>")
            }
            Mark::Square => format!(
                "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{side}\" \
                 height=\"{side}\"/>"
            ),
        };
        self.push(&shape);
    }

    pub(super) fn text(&mut self, class: &str, anchor: Anchor, Place { x, y }: Place, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escaped(text);
        self.push(&format!(
            "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}\
             </text>"
        ));
    }

    /// The whole file.
    pub(super) fn finish(mut self) -> String {
        self.push("</svg>");
        self.text
    }

    fn push(&mut self, element: &str) {
        self.text.push_str(element);
        self.text.push('\n');
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_text_that_does_not_change() {
        let at = |x, y| Place { x, y };
        let draw = || {
            let mut svg = Svg::new(at(20.0, 10.0), ".a { fill: red }\n", "a & b");
            svg.line("a", &[at(1.0, 2.0), at(3.25, 4.0)]);
            svg.mark("a", Mark::Circle, at(5.0, 5.0));
            svg.mark("a", Mark::Square, at(5.0, 5.0));
            svg.text("a", Anchor::End, at(1.0, 1.0), "p < 1");
            svg.finish()
        };
        let wanted = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 20 10\" width=\"20\" \
            height=\"10\" role=\"img\">\n<title>a &amp; b</title>\n<style>\n.a { fill: red }\n\
            </style>\n<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n\
            <polyline class=\"a\" points=\"1.0,2.0 3.2,4.0\"/>\n\
            <circle class=\"a\" cx=\"5.0\" cy=\"5.0\" r=\"3.5\"/>\n\
            <rect class=\"a\" x=\"1.5\" y=\"1.5\" width=\"7\" height=\"7\"/>\n\
            <text class=\"a\" text-anchor=\"end\" x=\"1.0\" y=\"1.0\">p &lt; 1</text>\n</svg>\n";
        assert_eq!(draw(), wanted);
    }
}
