//! Geometries: MySQL's stored form, the well-known binary form and the well-known text.
//!
//! Stored form: the spatial reference id (four bytes, little-endian), then the well-known binary
//! form in little-endian order: a byte 1, the type (four bytes), and by type
//!
//! ```text
//! point               x, y (IEEE double)
//! line                count, points
//! polygon             count, rings; a ring is a line that ends where it began
//! any other           count, geometries each with a byte 1 and its type
//! ```
//!
//! Accepts and refuses the same as MariaDB: text after the end is ignored, a line may have one
//! point, a collection written as text contains no collection. The forms are documented in OpenGIS
//! Simple Features, Part 1 (06-103r4), clauses 7 and 8.

/// The subtypes; the numbers are those of the binary form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum GeometryKind {
    /// For a column: any of them. No value has it.
    Any = 0,
    /// `POINT`
    Point = 1,
    /// `LINESTRING`
    Line = 2,
    /// `POLYGON`
    Polygon = 3,
    /// `MULTIPOINT`
    MultiPoint = 4,
    /// `MULTILINESTRING`
    MultiLine = 5,
    /// `MULTIPOLYGON`
    MultiPolygon = 6,
    /// `GEOMETRYCOLLECTION`
    Collection = 7,
}

use GeometryKind as Kind;

impl GeometryKind {
    const ALL: [Self; 8] = [
        Self::Any,
        Self::Point,
        Self::Line,
        Self::Polygon,
        Self::MultiPoint,
        Self::MultiLine,
        Self::MultiPolygon,
        Self::Collection,
    ];

    /// The number in the binary form.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The kind with that number.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// The kind with that SQL name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        let is_named = |kind: &&Self| kind.name().eq_ignore_ascii_case(name);
        Self::ALL.iter().find(is_named).copied()
    }

    /// The name in SQL, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Any => "geometry",
            Self::Point => "point",
            Self::Line => "linestring",
            Self::Polygon => "polygon",
            Self::MultiPoint => "multipoint",
            Self::MultiLine => "multilinestring",
            Self::MultiPolygon => "multipolygon",
            Self::Collection => "geometrycollection",
        }
    }

    /// The kind of the parts of a geometry.
    const fn part(self) -> Self {
        match self {
            Self::MultiPoint => Self::Point,
            Self::MultiLine => Self::Line,
            Self::MultiPolygon => Self::Polygon,
            _ => Self::Any,
        }
    }
}

/// The maximum depth of nested collections, so that none overflows the stack.
const DEPTH_MAX: usize = 32;
const SRID_BYTES: usize = 4;
/// Byte order and type.
const HEADER_BYTES: usize = 5;

/// The stored form of a point.
pub fn point(x: f64, y: f64) -> Vec<u8> {
    let mut out = start(0);
    append_header(Kind::Point, &mut out);
    append_point((x, y), &mut out);
    out
}

/// The stored form of a well-known text, or `None` if it is invalid.
pub fn from_text(text: &[u8], srid: u32) -> Option<Vec<u8>> {
    let mut out = start(srid);
    Text { rest: text }.geometry(Kind::Any, &mut out)?;
    Some(out)
}

/// The stored form of a well-known binary form in either byte order, or `None` if it is invalid.
pub fn from_wkb(wkb: &[u8], srid: u32) -> Option<Vec<u8>> {
    let mut out = start(srid);
    let mut reader = Binary {
        rest: wkb,
        is_big: false,
    };
    reader.geometry(Kind::Any, DEPTH_MAX, &mut Stored(&mut out))?;
    Some(out)
}

/// The binary form of a stored geometry, and its kind, or `None` if the bytes are invalid.
pub fn wkb(stored: &[u8]) -> Option<(Kind, &[u8])> {
    let wkb = stored.get(SRID_BYTES..)?;
    let (kind, is_big) = Binary {
        rest: wkb,
        is_big: false,
    }
    .header()?;
    (!is_big).then_some((kind, wkb))
}

/// The kind of a complete stored geometry, or `None` if the bytes are invalid.
pub fn kind(stored: &[u8]) -> Option<Kind> {
    let (kind, wkb) = wkb(stored)?;
    let mut reader = Binary {
        rest: wkb,
        is_big: false,
    };
    reader.geometry(Kind::Any, DEPTH_MAX, &mut Nowhere)?;
    Some(kind)
}

/// The spatial reference id of a stored geometry.
pub fn srid(stored: &[u8]) -> Option<u32> {
    wkb(stored)?;
    let bytes = stored.first_chunk::<SRID_BYTES>()?;
    Some(u32::from_le_bytes(*bytes))
}

/// X and y of a stored point; `None` for other geometries.
pub fn coordinates(stored: &[u8]) -> Option<(f64, f64)> {
    let (kind, wkb) = wkb(stored)?;
    let mut reader = Binary {
        rest: wkb.get(HEADER_BYTES..)?,
        is_big: false,
    };
    if kind == Kind::Point {
        reader.point()
    } else {
        None
    }
}

/// The well-known text of a stored geometry, or `None` if the bytes are invalid.
pub fn to_text(stored: &[u8]) -> Option<Vec<u8>> {
    let (_, wkb) = wkb(stored)?;
    let mut out = Vec::new();
    let mut reader = Binary {
        rest: wkb,
        is_big: false,
    };
    reader.geometry(Kind::Any, DEPTH_MAX, &mut Words(&mut out))?;
    Some(out)
}

fn start(srid: u32) -> Vec<u8> {
    srid.to_le_bytes().to_vec()
}

fn append_header(kind: Kind, out: &mut Vec<u8>) {
    out.push(1);
    append_count(u32::from(kind.number()), out);
}

fn append_count(count: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&count.to_le_bytes());
}

fn append_point((x, y): (f64, f64), out: &mut Vec<u8>) {
    out.extend_from_slice(&x.to_le_bytes());
    out.extend_from_slice(&y.to_le_bytes());
}

/// Receives the parts of a binary form that is being read.
trait Sink {
    /// A geometry begins; `is_part` if its kind follows from the whole.
    fn header(&mut self, kind: Kind, is_part: bool);
    /// A list of this many parts begins.
    fn open(&mut self, kind: Kind, count: u32);
    /// A further part of the list follows.
    fn comma(&mut self);
    /// A point of a line, a ring, or alone.
    fn point(&mut self, point: (f64, f64));
    /// The list has ended.
    fn close(&mut self, kind: Kind, count: u32);
}

/// The stored form.
struct Stored<'a>(&'a mut Vec<u8>);

impl Sink for Stored<'_> {
    fn header(&mut self, kind: Kind, _: bool) {
        append_header(kind, self.0);
    }
    fn open(&mut self, kind: Kind, count: u32) {
        if kind != Kind::Point {
            append_count(count, self.0);
        }
    }
    fn comma(&mut self) {}
    fn point(&mut self, point: (f64, f64)) {
        append_point(point, self.0);
    }
    fn close(&mut self, _: Kind, _: u32) {}
}

/// The well-known text.
struct Words<'a>(&'a mut Vec<u8>);

impl Sink for Words<'_> {
    fn header(&mut self, kind: Kind, is_part: bool) {
        if !is_part {
            self.0
                .extend(kind.name().bytes().map(|byte| byte.to_ascii_uppercase()));
        }
    }
    fn open(&mut self, kind: Kind, count: u32) {
        if kind == Kind::Collection && count == 0 {
            self.0.extend_from_slice(b" EMPTY");
        } else {
            self.0.push(b'(');
        }
    }
    fn comma(&mut self) {
        self.0.push(b',');
    }
    fn point(&mut self, (x, y): (f64, f64)) {
        crate::digits::append_f64(x, self.0);
        self.0.push(b' ');
        crate::digits::append_f64(y, self.0);
    }
    fn close(&mut self, kind: Kind, count: u32) {
        if kind != Kind::Collection || count > 0 {
            self.0.push(b')');
        }
    }
}

/// Only checks that everything is there.
struct Nowhere;

impl Sink for Nowhere {
    fn header(&mut self, _: Kind, _: bool) {}
    fn open(&mut self, _: Kind, _: u32) {}
    fn comma(&mut self) {}
    fn point(&mut self, _: (f64, f64)) {}
    fn close(&mut self, _: Kind, _: u32) {}
}

/// A reader of the binary form.
struct Binary<'a> {
    rest: &'a [u8],
    is_big: bool,
}

impl Binary<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*bytes)
    }

    fn count(&mut self) -> Option<u32> {
        let bytes = self.take()?;
        Some(if self.is_big {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        })
    }

    fn number(&mut self) -> Option<f64> {
        let bytes = self.take()?;
        Some(if self.is_big {
            f64::from_be_bytes(bytes)
        } else {
            f64::from_le_bytes(bytes)
        })
    }

    fn point(&mut self) -> Option<(f64, f64)> {
        Some((self.number()?, self.number()?))
    }

    /// The kind, and whether numbers are big-endian from here on.
    fn header(&mut self) -> Option<(Kind, bool)> {
        let [order] = self.take()?;
        self.is_big = match order {
            0 => true,
            1 => false,
            _ => return None,
        };
        let kind = Kind::from_number(self.count()?)?;
        (kind != Kind::Any).then_some((kind, self.is_big))
    }

    /// A geometry of the wanted kind; `depth` is how much deeper collections may be nested.
    fn geometry(&mut self, wanted: Kind, depth: usize, sink: &mut dyn Sink) -> Option<()> {
        let (kind, _) = self.header()?;
        if wanted != Kind::Any && wanted != kind {
            return None;
        }
        sink.header(kind, wanted != Kind::Any);
        match kind {
            Kind::Point => {
                // In a MULTIPOINT, points have no parentheses of their own.
                let is_alone = wanted == Kind::Any;
                if is_alone {
                    sink.open(kind, 1);
                }
                sink.point(self.point()?);
                if is_alone {
                    sink.close(kind, 1);
                }
                Some(())
            }
            Kind::Line => self.line(kind, sink).map(drop),
            Kind::Polygon => self.polygon(sink),
            _ => self.parts(kind, depth.checked_sub(1)?, sink),
        }
    }

    fn parts(&mut self, kind: Kind, depth: usize, sink: &mut dyn Sink) -> Option<()> {
        let count = self.count()?;
        if count == 0 && kind == Kind::MultiLine {
            return None;
        }
        sink.open(kind, count);
        for index in 0..count {
            if index > 0 {
                sink.comma();
            }
            self.geometry(kind.part(), depth, sink)?;
        }
        sink.close(kind, count);
        Some(())
    }

    /// A line of at least one point. Returns its ends.
    fn line(&mut self, kind: Kind, sink: &mut dyn Sink) -> Option<[(f64, f64); 2]> {
        let count = self.count()?;
        sink.open(kind, count);
        let mut ends: Option<[(f64, f64); 2]> = None;
        for index in 0..count {
            if index > 0 {
                sink.comma();
            }
            let point = self.point()?;
            sink.point(point);
            ends = Some(ends.map_or([point, point], |[first, _]| [first, point]));
        }
        sink.close(kind, count);
        ends
    }

    fn polygon(&mut self, sink: &mut dyn Sink) -> Option<()> {
        let count = self.count().filter(|count| *count > 0)?;
        sink.open(Kind::Polygon, count);
        for index in 0..count {
            if index > 0 {
                sink.comma();
            }
            let [first, last] = self.line(Kind::Line, sink)?;
            if first != last {
                return None;
            }
        }
        sink.close(Kind::Polygon, count);
        Some(())
    }
}

/// Reads the well-known text and writes the stored form.
struct Text<'a> {
    rest: &'a [u8],
}

impl Text<'_> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    fn eat(&mut self, symbol: u8) -> bool {
        self.skip_blanks();
        match self.rest.split_first() {
            Some((first, rest)) if *first == symbol => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn expect(&mut self, symbol: u8) -> Option<()> {
        self.eat(symbol).then_some(())
    }

    fn word(&mut self) -> Option<&str> {
        self.skip_blanks();
        let is_letter = |byte: &&u8| byte.is_ascii_alphabetic();
        let length = self.rest.iter().take_while(is_letter).count();
        let (word, rest) = self.rest.split_at(length);
        self.rest = rest;
        str::from_utf8(word).ok()
    }

    /// A number that begins with a digit or a minus and is finite.
    fn number(&mut self) -> Option<f64> {
        self.skip_blanks();
        let first = self.rest.first()?;
        if !first.is_ascii_digit() && *first != b'-' {
            return None;
        }
        let length = number_bytes(self.rest);
        let (digits, rest) = self.rest.split_at(length);
        self.rest = rest;
        let number: f64 = str::from_utf8(digits).ok()?.parse().ok()?;
        number.is_finite().then_some(number)
    }

    fn point(&mut self, out: &mut Vec<u8>) -> Option<(f64, f64)> {
        let point = (self.number()?, self.number()?);
        append_point(point, out);
        Some(point)
    }

    /// A geometry within a collection, which contains no collection, or (`Any`) alone. Its
    /// outermost parentheses may be omitted, but only both.
    fn geometry(&mut self, within: Kind, out: &mut Vec<u8>) -> Option<()> {
        let kind = Kind::from_name(self.word()?).filter(|kind| *kind != Kind::Any)?;
        if kind == within {
            return None;
        }
        append_header(kind, out);
        if kind == Kind::Collection {
            return self.collection(out);
        }
        let is_enclosed = self.eat(b'(');
        self.body(kind, out)?;
        if is_enclosed {
            self.expect(b')')?;
        }
        Some(())
    }

    fn collection(&mut self, out: &mut Vec<u8>) -> Option<()> {
        if !self.eat(b'(') {
            append_count(0, out);
            return self.word()?.eq_ignore_ascii_case("EMPTY").then_some(());
        }
        if self.eat(b')') {
            append_count(0, out);
            return Some(());
        }
        self.list(out, |text, out| text.geometry(Kind::Collection, out))?;
        self.expect(b')')
    }

    fn body(&mut self, kind: Kind, out: &mut Vec<u8>) -> Option<()> {
        match kind {
            Kind::Point => self.point(out).map(drop),
            Kind::Line => self.list(out, |text, out| text.point(out).map(drop)),
            Kind::Polygon => self.list(out, Self::ring),
            _ => self.list(out, |text, out| text.part(kind.part(), out)),
        }
    }

    fn part(&mut self, kind: Kind, out: &mut Vec<u8>) -> Option<()> {
        append_header(kind, out);
        if kind == Kind::Point {
            return self.point(out).map(drop);
        }
        self.expect(b'(')?;
        self.body(kind, out)?;
        self.expect(b')')
    }

    fn ring(&mut self, out: &mut Vec<u8>) -> Option<()> {
        self.expect(b'(')?;
        let mut ends: Option<[(f64, f64); 2]> = None;
        self.list(out, |text, out| {
            let point = text.point(out)?;
            ends = Some(ends.map_or([point, point], |[first, _]| [first, point]));
            Some(())
        })?;
        self.expect(b')')?;
        ends.filter(|[first, last]| first == last).map(drop)
    }

    /// Items between commas, written after their count.
    fn list(
        &mut self,
        out: &mut Vec<u8>,
        mut item: impl FnMut(&mut Self, &mut Vec<u8>) -> Option<()>,
    ) -> Option<()> {
        let place = out.len();
        append_count(0, out);
        let mut count = 0u32;
        loop {
            item(self, out)?;
            count += 1;
            if !self.eat(b',') {
                break;
            }
        }
        out[place..place + 4].copy_from_slice(&count.to_le_bytes());
        Some(())
    }
}

/// The length of the number at the start: digits, a fraction, an exponent if it has digits.
fn number_bytes(text: &[u8]) -> usize {
    let digits = |from: usize| {
        let rest = text.get(from..).unwrap_or(&[]);
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let mut end = usize::from(text.first() == Some(&b'-'));
    end += digits(end);
    if text.get(end) == Some(&b'.') {
        end += 1;
        end += digits(end);
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(text: &str) -> Option<String> {
        let stored = from_text(text.as_bytes(), 7)?;
        assert_eq!(srid(&stored), Some(7));
        assert!(kind(&stored).is_some());
        let (_, binary) = wkb(&stored).unwrap();
        assert_eq!(from_wkb(binary, 7).as_ref(), Some(&stored));
        for cut in 0..stored.len() {
            assert_eq!(kind(&stored[..cut]), None, "{cut} bytes of {text}");
        }
        to_text(&stored).map(|text| String::from_utf8(text).unwrap())
    }

    #[test]
    fn texts_come_back() {
        for text in [
            "POINT(1 2.5)",
            "LINESTRING(0 0,1 1)",
            "POLYGON((0 0,1 0,1 1,0 0),(2 2,2 2))",
            "MULTIPOINT(1 2,3 4)",
            "MULTILINESTRING((0 0,1 0),(1 1))",
            "MULTIPOLYGON(((0 0,1 0,1 1,0 0)),((0 0,0 0)))",
            "GEOMETRYCOLLECTION(POINT(1 1),MULTIPOINT(1 1,2 2),POLYGON((0 0,0 0)))",
            "GEOMETRYCOLLECTION EMPTY",
        ] {
            assert_eq!(round_trip(text).as_deref(), Some(text));
        }
        assert_eq!(
            round_trip(" point ( 1 -.5E1 ) x").as_deref(),
            Some("POINT(1 -5)")
        );
        assert_eq!(round_trip("POINT 1. 2").as_deref(), Some("POINT(1 2)"));
    }

    #[test]
    fn what_is_no_geometry_is_none() {
        for text in [
            "",
            "POINT",
            "POINT()",
            "POINT(1)",
            "POINT(1,2)",
            "POINT(+1 2)",
            "POINT(.5 2)",
            "POINT(1 2 3)",
            "POINT(1 2",
            "POINT(1e 5)",
            "POINT(1 1e400)",
            "GEOMETRY(1 2)",
            "LINESTRING()",
            "POLYGON((0 0,1 0,1 1))",
            "MULTIPOINT((1 2),(3 4))",
            "GEOMETRYCOLLECTION(GEOMETRYCOLLECTION(POINT(1 1)))",
            "GEOMETRYCOLLECTION(POINT(1 1),)",
            "GEOMETRYCOLLECTION EMPT",
        ] {
            assert_eq!(from_text(text.as_bytes(), 0), None, "{text}");
        }
    }

    #[test]
    fn binary_forms_of_either_order_are_read() {
        let big = b"\0\0\0\0\x01\x3F\xF0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0";
        assert_eq!(from_wkb(big, 0), Some(point(1.0, 2.0)));
        assert_eq!(coordinates(&point(1.0, 2.0)), Some((1.0, 2.0)));
        // A count that exceeds what is there, and collections without end.
        assert_eq!(from_wkb(b"\x01\x04\0\0\0\xFF\xFF\xFF\xFF", 0), None);
        let nested = b"\x01\x07\0\0\0\x01\0\0\0".repeat(100_000);
        assert_eq!(from_wkb(&nested, 0), None);
    }
}
