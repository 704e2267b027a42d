//! [`FieldReader`]: splits the bytes of a file into rows of fields, for LOAD DATA.
//!
//! The bytes come in pieces of any size. A row is returned when it is complete, so less than a row
//! and a piece is kept; a row longer than the limit is an error. An incomplete row is parsed again
//! only when its bytes have doubled, so the cost stays linear.
//!
//! The rules of LOAD DATA's manual. A field that begins with the quote ends at a quote before an
//! end of field or line; a doubled quote within it is one quote. The escape gives `0`, `b`, `n`,
//! `r`, `t` and `Z` their meaning, and takes the meaning of every other character. `\N` alone is
//! NULL. So is a bare `NULL` if fields have quotes or nothing escapes.

use planner::StringRules;
use syntax::ast::FileFormat;

/// How many bytes must be there before the first attempt to parse a row.
const TRIED_BYTES_MIN: usize = 1;

/// Reads rows of fields.
#[derive(Debug)]
pub(crate) struct FieldReader {
    marks: Marks,
    /// What has arrived and is not returned yet, from `start` on.
    bytes: Vec<u8>,
    start: usize,
    /// No row is parsed before this many bytes are there.
    tried_bytes: usize,
    /// Lines that are still to be skipped.
    ignored_lines: u64,
    /// All bytes have arrived.
    is_complete: bool,
    row_bytes_max: usize,
}

/// Limits of what is kept of a row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowLimits {
    /// Bytes; more are an error.
    pub(crate) bytes: usize,
    /// Fields; more are read and dropped.
    pub(crate) fields: usize,
}

/// The separators of fields and lines.
#[derive(Debug)]
struct Marks {
    field_end: Vec<u8>,
    quote: Option<u8>,
    escape: Option<u8>,
    line_start: Vec<u8>,
    line_end: Vec<u8>,
    /// At most this many fields of a row are returned.
    field_count_max: usize,
}

/// A field of a row; `None` is NULL.
pub(crate) type Field = Option<Vec<u8>>;

/// What the bytes so far amount to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// The fields of a row.
    Row(Vec<Field>),
    /// More bytes are needed.
    More,
    /// There are no more rows.
    End,
    /// The row is longer than the limit.
    TooLong,
}

/// Why a format cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BadFormat {
    /// A quote or escape of several characters.
    Separator,
    /// Fields of fixed width.
    FixedWidth,
}

impl FieldReader {
    /// A reader that skips the first `ignored` lines.
    pub(crate) fn new(
        format: &FileFormat,
        strings: StringRules,
        ignored_lines: u64,
        limits: RowLimits,
    ) -> Result<Self, BadFormat> {
        let or = |given: &Option<Vec<u8>>, usual: &[u8]| match given {
            Some(text) => strings.value(text).into_owned(),
            None => usual.to_vec(),
        };
        let single = |text: Vec<u8>| match text.as_slice() {
            [] => Ok(None),
            &[byte] => Ok(Some(byte)),
            _ => Err(BadFormat::Separator),
        };
        let marks = Marks {
            field_end: or(&format.field_end, b"\t"),
            quote: single(or(&format.field_quote, b""))?,
            escape: single(or(&format.escape, b"\\"))?,
            line_start: or(&format.line_start, b""),
            line_end: or(&format.line_end, b"\n"),
            field_count_max: limits.fields,
        };
        if marks.field_end.is_empty() && marks.quote.is_none() {
            return Err(BadFormat::FixedWidth);
        }
        Ok(Self {
            marks,
            bytes: Vec::new(),
            start: 0,
            tried_bytes: TRIED_BYTES_MIN,
            ignored_lines,
            is_complete: false,
            row_bytes_max: limits.bytes,
        })
    }

    /// Takes a piece of the file.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.bytes.drain(..self.start);
        self.start = 0;
        self.bytes.extend_from_slice(piece);
    }

    /// Says that no piece follows.
    pub(crate) fn complete(&mut self) {
        self.is_complete = true;
    }

    /// Returns the next row.
    pub(crate) fn read(&mut self) -> Read {
        let rest = self.bytes.get(self.start..).unwrap_or_default();
        if rest.len() < self.tried_bytes && !self.is_complete {
            return Read::More;
        }
        while 0 < self.ignored_lines {
            match self
                .marks
                .line(self.bytes.get(self.start..).unwrap_or_default())
            {
                Some(length) => {
                    self.start += length;
                    self.ignored_lines -= 1;
                }
                None if self.is_complete => return Read::End,
                None => return self.wait(),
            }
        }
        let rest = self.bytes.get(self.start..).unwrap_or_default();
        let row = self.marks.row(rest, self.is_complete);
        match row {
            Some((fields, length)) => {
                self.start += length;
                self.tried_bytes = TRIED_BYTES_MIN;
                Read::Row(fields)
            }
            None if self.is_complete => Read::End,
            None => self.wait(),
        }
    }

    fn wait(&mut self) -> Read {
        let there = self.bytes.len() - self.start;
        if self.row_bytes_max < there {
            return Read::TooLong;
        }
        self.tried_bytes = there.saturating_mul(2).max(TRIED_BYTES_MIN);
        // The limit is checked before the bytes have doubled past it.
        self.tried_bytes = self.tried_bytes.min(self.row_bytes_max.saturating_add(1));
        Read::More
    }
}

/// How a field ended.
enum Ended {
    /// Before another field.
    Field,
    /// With its line.
    Line,
    /// With the file.
    File,
}

impl Marks {
    /// The length of the first line, its end included.
    fn line(&self, bytes: &[u8]) -> Option<usize> {
        find(bytes, &self.line_end).map(|place| place + self.line_end.len())
    }

    /// The fields of the first row and its length; `None` if it is not all there.
    fn row(&self, bytes: &[u8], is_complete: bool) -> Option<(Vec<Field>, usize)> {
        let mut at = 0;
        if !self.line_start.is_empty() {
            at = find(bytes, &self.line_start)? + self.line_start.len();
        }
        if at == bytes.len() {
            return None;
        }
        let mut fields = Vec::new();
        loop {
            let (field, length, ended) = self.field(bytes.get(at..)?, is_complete)?;
            // An end of field after the last wanted field begins no other field.
            let is_bare = match ended {
                Ended::Field => false,
                Ended::Line => length == self.line_end.len(),
                Ended::File => length == 0,
            };
            let is_one_more = fields.len() + 1 == self.field_count_max;
            if fields.len() < self.field_count_max && !(is_one_more && is_bare) {
                fields.push(field);
            }
            at += length;
            match ended {
                Ended::Field => {}
                Ended::Line | Ended::File => return Some((fields, at)),
            }
        }
    }

    /// The first field, its length and how it ended.
    fn field(&self, bytes: &[u8], is_complete: bool) -> Option<(Field, usize, Ended)> {
        let quote = self.quote.filter(|quote| bytes.first() == Some(quote));
        let mut at = usize::from(quote.is_some());
        let mut value = Vec::new();
        let mut is_escaped_null = false;
        loop {
            let rest = bytes.get(at..)?;
            let Some(&byte) = rest.first() else {
                return is_complete.then(|| {
                    let field = self.finished(value, quote.is_some(), is_escaped_null);
                    (field, at, Ended::File)
                });
            };
            if self.escape == Some(byte) && (self.quote != Some(byte) || self.is_double(rest)) {
                let Some(&escaped) = rest.get(1) else {
                    is_complete.then_some(())?;
                    value.push(byte);
                    at += 1;
                    continue;
                };
                is_escaped_null = value.is_empty() && escaped == b'N' && quote.is_none();
                value.push(meaning(escaped));
                at += 2;
                continue;
            }
            let own = match quote {
                Some(quote) if byte != quote => None,
                Some(_) => {
                    // What follows the quote decides whether it ends the field.
                    if let Some((length, ended)) = self.end(rest.get(1..)?, is_complete)? {
                        let field = self.finished(value, true, false);
                        return Some((field, at + 1 + length, ended));
                    }
                    if self.is_double(rest) {
                        at += 1;
                    }
                    None
                }
                None => self.end(rest, is_complete)?,
            };
            if let Some((length, ended)) = own {
                let is_null = is_escaped_null && value == b"N";
                return Some((self.finished(value, false, is_null), at + length, ended));
            }
            value.push(byte);
            at += 1;
        }
    }

    /// The end of field or line that the bytes begin with. The outer `None`: more bytes are needed.
    fn end(&self, bytes: &[u8], is_complete: bool) -> Option<Option<(usize, Ended)>> {
        let begins = |mark: &[u8]| !mark.is_empty() && bytes.starts_with(mark);
        let may_begin = |mark: &[u8]| bytes.len() < mark.len() && mark.starts_with(bytes);
        // A line's end may begin with a field's, or be the same, which then ends fields alone.
        let has_lines = self.line_end != self.field_end;
        if has_lines && begins(&self.line_end) {
            return Some(Some((self.line_end.len(), Ended::Line)));
        }
        if has_lines && !is_complete && may_begin(&self.line_end) {
            return None;
        }
        if begins(&self.field_end) {
            return Some(Some((self.field_end.len(), Ended::Field)));
        }
        if is_complete {
            return Some(bytes.is_empty().then_some((0, Ended::File)));
        }
        (!may_begin(&self.field_end)).then_some(None)
    }

    /// The bytes begin with the quote twice.
    fn is_double(&self, bytes: &[u8]) -> bool {
        self.quote.is_some() && bytes.first() == bytes.get(1) && bytes.get(1).copied() == self.quote
    }

    fn finished(&self, value: Vec<u8>, is_quoted: bool, is_escaped_null: bool) -> Field {
        let is_escaped_null = is_escaped_null && value == b"N";
        let has_word = self.quote.is_some() || self.escape.is_none();
        let is_word = has_word && !is_quoted && value == b"NULL";
        (!is_escaped_null && !is_word).then_some(value)
    }
}

/// The meaning of an escaped byte.
fn meaning(byte: u8) -> u8 {
    match byte {
        b'0' => 0,
        b'b' => 8,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'Z' => 26,
        other => other,
    }
}

/// The first position of `mark`; `None` for an empty one.
fn find(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    if mark.is_empty() {
        return None;
    }
    bytes.windows(mark.len()).position(|window| window == mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(field_end: &str, quote: &str, line_end: &str) -> FileFormat {
        FileFormat {
            field_end: Some(field_end.into()),
            field_quote: Some(quote.into()),
            line_end: Some(line_end.into()),
            ..FileFormat::default()
        }
    }

    fn limits(bytes: usize) -> RowLimits {
        RowLimits { bytes, fields: 100 }
    }

    /// The rows of a text, read in pieces of `piece` bytes; fields by `|`, NULL as `~`.
    fn rows(format: &FileFormat, ignored: u64, text: &str, piece: usize) -> Vec<String> {
        let mut reader =
            FieldReader::new(format, StringRules::default(), ignored, limits(1000)).unwrap();
        let mut pieces = text.as_bytes().chunks(piece);
        let mut rows = Vec::new();
        loop {
            match reader.read() {
                Read::Row(fields) => {
                    let shown = |field: &Field| match field {
                        Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                        None => "~".to_owned(),
                    };
                    rows.push(fields.iter().map(shown).collect::<Vec<_>>().join("|"));
                }
                Read::More => match pieces.next() {
                    Some(piece) => reader.push(piece),
                    None => reader.complete(),
                },
                Read::End => return rows,
                Read::TooLong => panic!("no row is that long"),
            }
        }
    }

    /// Pieces of any size give the same rows.
    fn check(format: &FileFormat, ignored: u64, text: &str, expected: &[&str]) {
        for piece in [1, 2, 3, 7, 1000] {
            assert_eq!(rows(format, ignored, text, piece), expected, "by {piece}");
        }
    }

    #[test]
    fn the_usual_format_has_tabs_and_backslashes() {
        let usual = FileFormat::default();
        check(&usual, 0, "1\ta\n2\t\\N\n", &["1|a", "2|~"]);
        check(&usual, 0, "1\ta\\tb\\\\\n\n3", &["1|a\tb\\", "", "3"]);
        check(&usual, 1, "head\n1\tNULL\n", &["1|NULL"]);
        check(&usual, 5, "head\n1\ta\n", &[]);
        check(&usual, 0, "", &[]);
        check(&usual, 0, "\\Nx\ty\\N\n", &["Nx|yN"]);
    }

    /// As MariaDB, which checks whether anything stands between the last field's end and the
    /// line's.
    #[test]
    fn the_end_of_the_last_field_begins_no_other() {
        let read = |text: &str| {
            let format = format(",", "\"", "\n");
            let limits = RowLimits {
                bytes: 1000,
                fields: 3,
            };
            let strings = StringRules::default();
            let mut reader = FieldReader::new(&format, strings, 0, limits).expect("a format");
            reader.push(text.as_bytes());
            reader.complete();
            match reader.read() {
                Read::Row(fields) => fields.len(),
                other => panic!("{other:?}"),
            }
        };
        for (text, count) in [
            ("1,2\n", 2),
            ("1,2,\n", 2),
            ("1,2,", 2),
            ("1,2,\\N\n", 3),
            ("1,2,\"\"\n", 3),
            ("1,2, \n", 3),
            ("1,2,,\n", 3),
            ("1,\n", 2),
        ] {
            assert_eq!(read(text), count, "{text:?}");
        }
    }

    #[test]
    fn quotes_keep_separators_and_double() {
        let csv = format(",", "\"", "\r\n");
        check(&csv, 0, "\"a,b\",NULL\r\n", &["a,b|~"]);
        check(&csv, 0, "\"a\"\"b\",\"NULL\"\r\n", &["a\"b|NULL"]);
        check(&csv, 0, "a\"b,\"x\"y\"\r\n\"\"", &["a\"b|x\"y", ""]);
        check(&csv, 0, "a\rb,c\nd\r\n", &["a\rb|c\nd"]);
        let mut doubled = format(",", "\"", "\n");
        doubled.escape = Some(b"\"".to_vec());
        check(&doubled, 0, "\"a\"\"b\",c\n", &["a\"b|c"]);
    }

    /// As MariaDB: at each place it looks for the line's end first.
    #[test]
    fn the_end_of_a_line_may_begin_with_that_of_a_field() {
        check(&format("|", "", "|;"), 0, "1|a|;2|b|;", &["1|a", "2|b"]);
        check(
            &format(",", "\"", ",\n"),
            0,
            "\"1\",a,\n2,\"b\",\n",
            &["1|a", "2|b"],
        );
        check(&format("||", "", "||\r\n"), 0, "1||a||\r\n2", &["1|a", "2"]);
        check(
            &format("END", "", "ENDX"),
            0,
            "1ENDaENDX2ENDb",
            &["1|a", "2|b"],
        );
        check(&format("||", "", "|"), 0, "1|2||3", &["1", "2", "", "3"]);
        check(&format("|", "", "|\n"), 1, "head|\n1|a|\n", &["1|a"]);
        check(&format("|", "", "|"), 0, "1|a", &["1|a"]);
    }

    #[test]
    fn lines_begin_where_they_are_told_to() {
        let marked = FileFormat {
            line_start: Some(b">>".to_vec()),
            ..FileFormat::default()
        };
        check(&marked, 0, "x>>1\ta\nno\n>>2\tb\nno\n", &["1|a", "2|b"]);
    }

    #[test]
    fn formats_that_are_not_read_are_refused() {
        let wide = format(",", "''", "\n");
        let strings = StringRules::default();
        let refused =
            |format: &FileFormat| FieldReader::new(format, strings, 0, limits(10)).unwrap_err();
        assert_eq!(refused(&wide), BadFormat::Separator);
        assert_eq!(refused(&format("", "", "\n")), BadFormat::FixedWidth);
    }

    #[test]
    fn a_row_without_end_is_refused() {
        let mut reader = FieldReader::new(
            &FileFormat::default(),
            StringRules::default(),
            0,
            limits(10),
        )
        .unwrap();
        for _ in 0..10 {
            reader.push(b"x");
            assert_eq!(reader.read(), Read::More);
        }
        reader.push(b"x");
        assert_eq!(reader.read(), Read::TooLong);
    }
}
