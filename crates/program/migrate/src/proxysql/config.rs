//! The parser of ProxySQL's file, which is one of libconfig.
//!
//! A file has settings, `name = value`. A value is a number, a word, a text, a group `{ .. }` of
//! settings, or a list `( .. )` or array `[ .. ]` of values.

use std::collections::HashSet;

use crate::error::{ParseError, What};
use crate::{BYTE_ORDER_MARK, Source};

/// Most brackets in each other. ProxySQL's tables are groups in a list.
pub(crate) const DEPTH_MAX: usize = 16;

/// Most settings and values. A dump with thousands of rules has less.
pub(crate) const ENTRIES_MAX: usize = 200_000;

/// A setting of a group or of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) name: String,
    /// Its line, from 1.
    pub(crate) line: usize,
    pub(crate) value: Value,
}

/// What a setting has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// A text without its quotes, a number or a word.
    Scalar(String),
    Group(Vec<Setting>),
    /// A list or an array; each value with its line.
    Many(Vec<(usize, Value)>),
}

/// Reads a file.
pub(crate) fn parse(source: &Source) -> Result<Vec<Setting>, ParseError> {
    let mut parser = Parser {
        rest: source.text.trim_start_matches(BYTE_ORDER_MARK),
        line: 1,
        entry_count: 0,
    };
    parser.settings(None, 0).map_err(|what| ParseError {
        file: source.name.clone(),
        line: parser.line,
        what,
    })
}

#[derive(Debug)]
struct Parser<'a> {
    rest: &'a str,
    line: usize,
    entry_count: usize,
}

impl Parser<'_> {
    /// The settings up to a bracket, or to the end of the file.
    fn settings(&mut self, close: Option<char>, depth: usize) -> Result<Vec<Setting>, What> {
        let mut settings = Vec::new();
        let mut names = HashSet::new();
        loop {
            self.skip(&[';', ','])?;
            match self.rest.chars().next() {
                None if close.is_none() => return Ok(settings),
                None => return Err(What::Bracket),
                Some(c) if Some(c) == close => {
                    self.advance(c);
                    return Ok(settings);
                }
                Some(_) => {}
            }
            let line = self.line;
            let name = self.name()?;
            self.skip(&[])?;
            let sign = self
                .rest
                .chars()
                .next()
                .filter(|it| matches!(it, '=' | ':'));
            self.advance(sign.ok_or(What::Assignment)?);
            self.count()?;
            if !names.insert(name.clone()) {
                return Err(What::Twice);
            }
            let value = self.value(depth)?;
            settings.push(Setting { name, line, value });
        }
    }

    fn name(&mut self) -> Result<String, What> {
        if self.rest.starts_with("@include") {
            return Err(What::Include);
        }
        let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*' | '.');
        let end = self.rest.find(|c: char| !is_letter(c));
        let (name, rest) = self.split(end).ok_or(What::Name)?;
        if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '*') {
            return Err(What::Name);
        }
        let name = name.to_owned();
        self.rest = rest;
        Ok(name)
    }

    fn value(&mut self, depth: usize) -> Result<Value, What> {
        self.skip(&[])?;
        let first = self.rest.chars().next().ok_or(What::Value)?;
        if matches!(first, '{' | '(' | '[') {
            if DEPTH_MAX <= depth {
                return Err(What::Depth(DEPTH_MAX));
            }
            self.advance(first);
        }
        match first {
            '{' => Ok(Value::Group(self.settings(Some('}'), depth + 1)?)),
            '(' => Ok(Value::Many(self.values(')', depth + 1)?)),
            '[' => Ok(Value::Many(self.values(']', depth + 1)?)),
            '"' => Ok(Value::Scalar(self.text()?)),
            _ => self.word().map(Value::Scalar),
        }
    }

    fn values(&mut self, close: char, depth: usize) -> Result<Vec<(usize, Value)>, What> {
        let mut values = Vec::new();
        loop {
            self.skip(&[','])?;
            let next = self.rest.chars().next().ok_or(What::Bracket)?;
            if next == close {
                self.advance(next);
                return Ok(values);
            }
            self.count()?;
            let line = self.line;
            values.push((line, self.value(depth)?));
        }
    }

    /// A number, `true` or `false`.
    fn word(&mut self) -> Result<String, What> {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let end = self.rest.find(|c: char| !is_letter(c));
        let (word, rest) = self.split(end).ok_or(What::Value)?;
        let is_number = word.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
        let is_boolean = ["true", "false"]
            .iter()
            .any(|it| word.eq_ignore_ascii_case(it));
        if !is_number && !is_boolean {
            return Err(What::Value);
        }
        // Long numbers end with a letter.
        let word = word.trim_end_matches(['L', 'l']).to_owned();
        self.rest = rest;
        Ok(word)
    }

    /// Texts that follow each other are one.
    fn text(&mut self) -> Result<String, What> {
        let mut text = String::new();
        while self.rest.starts_with('"') {
            self.advance('"');
            self.text_part(&mut text)?;
            self.skip(&[])?;
        }
        Ok(text)
    }

    /// Up to the quote at the end. A backslash in front of another letter than these stays, so that
    /// patterns can be written as they are.
    fn text_part(&mut self, text: &mut String) -> Result<(), What> {
        loop {
            let c = self.rest.chars().next().ok_or(What::Text)?;
            self.advance(c);
            if c == '"' {
                return Ok(());
            }
            if c != '\\' {
                text.push(c);
                continue;
            }
            let escaped = self.rest.chars().next().ok_or(What::Text)?;
            let made = match escaped {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'f' => '\u{c}',
                '"' | '\\' => escaped,
                'x' => {
                    let digits = self.rest.get(1..3);
                    let code = digits.and_then(|it| u8::from_str_radix(it, 16).ok());
                    let Some(code) = code.filter(u8::is_ascii) else {
                        text.push('\\');
                        continue;
                    };
                    self.advance('x');
                    self.rest = self.rest.get(2..).unwrap_or_default();
                    text.push(char::from(code));
                    continue;
                }
                _ => {
                    text.push('\\');
                    continue;
                }
            };
            self.advance(escaped);
            text.push(made);
        }
    }

    /// Passes over blanks, comments and these signs.
    fn skip(&mut self, signs: &[char]) -> Result<(), What> {
        while let Some(c) = self.rest.chars().next() {
            if c.is_whitespace() || signs.contains(&c) {
                self.advance(c);
            } else if c == '#' || self.rest.starts_with("//") {
                let end = self.rest.find('\n').unwrap_or(self.rest.len());
                self.rest = self.rest.get(end..).unwrap_or_default();
            } else if self.rest.starts_with("/*") {
                let inside = self.rest.get(2..).unwrap_or_default();
                let end = inside.find("*/").ok_or(What::Comment)?;
                let (comment, rest) = self.split(Some(end + 4)).ok_or(What::Comment)?;
                self.line += comment.matches('\n').count();
                self.rest = rest;
            } else {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Passes over the next sign, which is this one.
    fn advance(&mut self, c: char) {
        if c == '\n' {
            self.line += 1;
        }
        self.rest = self.rest.get(c.len_utf8()..).unwrap_or_default();
    }

    /// The rest of the file up to a place or its end, and what follows.
    fn split<'a>(&self, end: Option<usize>) -> Option<(&'a str, &'a str)>
    where
        Self: 'a,
    {
        self.rest.split_at_checked(end.unwrap_or(self.rest.len()))
    }

    fn count(&mut self) -> Result<(), What> {
        self.entry_count += 1;
        match self.entry_count <= ENTRIES_MAX {
            true => Ok(()),
            false => Err(What::Entries(ENTRIES_MAX)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Setting>, (usize, What)> {
        let source = Source {
            name: "f".to_owned(),
            text: text.to_owned(),
        };
        parse(&source).map_err(|it| (it.line, it.what))
    }

    fn scalar(text: &str) -> String {
        let settings = read(&format!("a = {text}")).unwrap();
        match &settings[0].value {
            Value::Scalar(text) => text.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn groups_lists_and_comments_are_read() {
        let text = "# x\n// y\n/* z\n*/ a = { b=1; c: \"t\", d = true }\nlist = ( {e=1},\n\
                    {e=2} 3,)\n\
                    array:[1,2];";
        let settings = read(text).unwrap();
        let [a, list, array] = settings.as_slice() else {
            panic!("{settings:?}")
        };
        assert_eq!((a.name.as_str(), a.line), ("a", 4));
        let Value::Group(group) = &a.value else {
            panic!("{a:?}")
        };
        let names: Vec<_> = group.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["b", "c", "d"]);
        let Value::Many(rows) = &list.value else {
            panic!("{list:?}")
        };
        let lines: Vec<_> = rows.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [5, 6, 6]);
        assert!(matches!(&array.value, Value::Many(it) if it.len() == 2));
    }

    #[test]
    fn texts_have_escapes_and_are_joined() {
        assert_eq!(scalar(r#""a\"b\\c\n" /* x */ "d""#), "a\"b\\c\nd");
        assert_eq!(scalar(r#""^DELETE FROM \S+\b$""#), r"^DELETE FROM \S+\b$");
        assert_eq!(scalar(r#""\x41\xzz\xe9""#), r"A\xzz\xe9");
        assert_eq!(scalar("-12L"), "-12");
        assert_eq!(scalar("0x1F"), "0x1F");
    }

    #[test]
    fn mistakes_have_their_line() {
        for (text, line, what) in [
            ("\n= 1", 2, What::Name),
            ("a 1", 1, What::Assignment),
            ("a =", 1, What::Value),
            ("a = maybe", 1, What::Value),
            ("a = (\n1", 2, What::Bracket),
            ("a = {\nb=1", 2, What::Bracket),
            ("a = \"x\n", 2, What::Text),
            ("a = \"x\\", 1, What::Text),
            ("/* a", 1, What::Comment),
            ("a=1\na=2", 2, What::Twice),
            ("@include \"x\"", 1, What::Include),
        ] {
            assert_eq!(read(text), Err((line, what)), "{text}");
        }
    }

    #[test]
    fn brackets_in_each_other_have_a_limit() {
        let of_depth = |depth: usize| {
            let (open, close) = ("(".repeat(depth), ")".repeat(depth));
            read(&format!("a = {open}1{close}"))
        };
        assert!(of_depth(DEPTH_MAX - 1).is_ok() && of_depth(DEPTH_MAX).is_ok());
        assert_eq!(of_depth(DEPTH_MAX + 1), Err((1, What::Depth(DEPTH_MAX))));
    }

    #[test]
    fn settings_have_a_limit() {
        // The list is one itself.
        let of_count = |count: usize| read(&format!("a = ({})", "1,".repeat(count - 1)));
        assert!(of_count(ENTRIES_MAX - 1).is_ok() && of_count(ENTRIES_MAX).is_ok());
        let expected = Err((1, What::Entries(ENTRIES_MAX)));
        assert_eq!(of_count(ENTRIES_MAX + 1), expected);
    }
}
