//! Which texts are JSON by MariaDB's `JSON_VALID`: RFC 8259 with deviations.
//!
//! The deviations were found by asking MariaDB. A number may end after its sign, its point or its
//! exponent if something follows it (`[-]`, `[1e]`; at the end of the text only after the point).
//! An exponent may have several signs. Any character except control characters may follow a
//! backslash. A key may begin with control characters that are blanks. More than 31 levels are
//! invalid.

use std::fmt;

use errcode::{
    ER_JSON_BAD_CHR, ER_JSON_DEPTH, ER_JSON_EOS, ER_JSON_ESCAPING, ER_JSON_NOT_JSON_CHR,
    ER_JSON_SYNTAX,
};

use crate::collation::BYTES_PER_SPEND;
use crate::{Charset, SqlCondition};

/// At this many nested arrays and objects a text is refused.
const DEPTH_MAX: usize = 32;

/// Why a text is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonFault {
    /// The kind of error.
    pub kind: JsonFaultKind,
    /// Its position in messages: bytes from the text's beginning.
    pub position: usize,
}

/// The errors of a text that is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonFaultKind {
    /// Bytes that are not a character, or half of a surrogate pair.
    Broken,
    /// A control character.
    Disallowed,
    /// The text ends too early.
    End,
    /// An unexpected character.
    Syntax,
    /// A control character after a backslash.
    Escape,
    /// Too many levels.
    Depth,
}

impl JsonFault {
    /// The note that a function adds about its argument, counted from 1.
    pub fn note(self, argument: usize, function: &str) -> SqlCondition {
        let at = self.position;
        let code = match self.kind {
            JsonFaultKind::Broken => ER_JSON_BAD_CHR,
            JsonFaultKind::Disallowed => ER_JSON_NOT_JSON_CHR,
            JsonFaultKind::End => {
                return SqlCondition::new(ER_JSON_EOS, &[&argument, &function]);
            }
            JsonFaultKind::Syntax => ER_JSON_SYNTAX,
            JsonFaultKind::Escape => ER_JSON_ESCAPING,
            JsonFaultKind::Depth => {
                let arguments: [&dyn fmt::Display; 4] = [&DEPTH_MAX, &argument, &function, &at];
                return SqlCondition::new(ER_JSON_DEPTH, &arguments);
            }
        };
        SqlCondition::new(code, &[&argument, &function, &at])
    }
}

impl fmt::Display for JsonFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at byte {}", self.kind, self.position)
    }
}

/// Why the check of a text ends early.
enum Stop<E> {
    /// It is not JSON.
    Fault(JsonFault),
    /// The statement has to end.
    Spent(E),
}

/// Checks a whole text. `spend` is called with the work about every [`BYTES_PER_SPEND`].
///
/// # Errors
/// Those of `spend`.
pub fn fault_of<E>(
    text: &[u8],
    charset: Charset,
    spend: &dyn Fn(usize) -> Result<(), E>,
) -> Result<Option<JsonFault>, E> {
    let mut scanner = Scanner {
        text,
        charset,
        at: 0,
        spent: 0,
        spend,
    };
    match scanner.document() {
        Ok(()) => Ok(None),
        Err(Stop::Fault(fault)) => Ok(Some(fault)),
        Err(Stop::Spent(error)) => Err(error),
    }
}

type Scanned<T, E> = Result<T, Stop<E>>;

/// The kind of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Container {
    Array,
    Object,
}

/// What may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// A value.
    Value,
    /// A value, or the end of an array.
    First,
    /// A key, or the end of an object if there was none.
    Key { is_first: bool },
    /// A comma or the end of the level.
    Comma,
}

/// The state of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    Minus,
    Zero,
    Whole,
    Fraction,
    Exponent,
    ExponentDigits,
}

struct Scanner<'a, E> {
    text: &'a [u8],
    charset: Charset,
    /// The next byte to read.
    at: usize,
    /// Bytes that were reported to `spend`.
    spent: usize,
    spend: &'a dyn Fn(usize) -> Result<(), E>,
}

/// A character: its byte if it is ASCII, and its length in bytes.
#[derive(Clone, Copy)]
struct Char {
    byte: u8,
    bytes: usize,
}

/// Stands for every character that is not ASCII; no ASCII character has this value.
const OTHER: u8 = 0xff;

impl<E> Scanner<'_, E> {
    fn document(&mut self) -> Scanned<(), E> {
        let mut levels: Vec<Container> = Vec::new();
        let mut next = Next::Value;
        loop {
            self.told()?;
            next = match next {
                Next::Value | Next::First => self.value(&mut levels, next == Next::First)?,
                Next::Key { is_first } => self.key(&mut levels, is_first)?,
                Next::Comma => match levels.last().copied() {
                    None => return self.end(),
                    Some(level) => self.comma(&mut levels, level)?,
                },
            };
        }
    }

    /// Reports the work, so that a long text can be interrupted.
    fn told(&mut self) -> Scanned<(), E> {
        if BYTES_PER_SPEND <= self.at - self.spent {
            (self.spend)(self.at - self.spent).map_err(Stop::Spent)?;
            self.spent = self.at;
        }
        Ok(())
    }

    /// The next character, not consumed; `None` at the end.
    fn peek(&self) -> Scanned<Option<Char>, E> {
        let Some(&byte) = self.text.get(self.at) else {
            return Ok(None);
        };
        if byte.is_ascii() {
            return Ok(Some(Char { byte, bytes: 1 }));
        }
        if self.charset == Charset::Binary {
            return Ok(Some(Char {
                byte: OTHER,
                bytes: 1,
            }));
        }
        let rest = self.text.get(self.at..).unwrap_or_default();
        match self.charset.decode(rest) {
            Some((_, bytes)) => Ok(Some(Char { byte: OTHER, bytes })),
            None => Err(self.fault(JsonFaultKind::Broken)),
        }
    }

    /// The next character, not consumed; the end is an error.
    fn here(&self) -> Scanned<Char, E> {
        self.peek()?.ok_or_else(|| self.fault(JsonFaultKind::End))
    }

    fn pass(&mut self, of: Char) {
        self.at += of.bytes;
    }

    fn skip_blanks(&mut self) -> Scanned<(), E> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.text.get(self.at) {
            self.at += 1;
            self.told()?;
        }
        Ok(())
    }

    /// An error at the position before the next character.
    fn fault(&self, kind: JsonFaultKind) -> Stop<E> {
        Stop::Fault(JsonFault {
            kind,
            position: self.at,
        })
    }

    /// An error in the next character, reported at the position after it.
    fn wrong(&mut self, of: Char) -> Stop<E> {
        self.pass(of);
        self.fault(if of.byte < b' ' {
            JsonFaultKind::Disallowed
        } else {
            JsonFaultKind::Syntax
        })
    }

    /// Only blanks may follow.
    fn end(&mut self) -> Scanned<(), E> {
        self.skip_blanks()?;
        match self.peek()? {
            None => Ok(()),
            Some(other) => Err(self.wrong(other)),
        }
    }

    fn value(&mut self, levels: &mut Vec<Container>, is_first: bool) -> Scanned<Next, E> {
        self.skip_blanks()?;
        let first = self.here()?;
        match first.byte {
            b'[' | b'{' => {
                self.pass(first);
                if levels.len() + 1 == DEPTH_MAX {
                    return Err(self.fault(JsonFaultKind::Depth));
                }
                let is_array = first.byte == b'[';
                levels.push(if is_array {
                    Container::Array
                } else {
                    Container::Object
                });
                return Ok(if is_array {
                    Next::First
                } else {
                    Next::Key { is_first: true }
                });
            }
            b']' if is_first => {
                self.pass(first);
                levels.pop();
            }
            b'"' => {
                self.pass(first);
                self.string()?;
            }
            b'-' | b'0'..=b'9' => {
                self.pass(first);
                self.number(match first.byte {
                    b'-' => Number::Minus,
                    b'0' => Number::Zero,
                    _ => Number::Whole,
                })?;
            }
            b't' => self.word(b"true")?,
            b'f' => self.word(b"false")?,
            b'n' => self.word(b"null")?,
            _ => return Err(self.wrong(first)),
        }
        Ok(Next::Comma)
    }

    fn comma(&mut self, levels: &mut Vec<Container>, level: Container) -> Scanned<Next, E> {
        self.skip_blanks()?;
        let found = self.here()?;
        match (found.byte, level) {
            (b',', Container::Array) => {
                self.pass(found);
                Ok(Next::Value)
            }
            (b',', Container::Object) => {
                self.pass(found);
                Ok(Next::Key { is_first: false })
            }
            (b']', Container::Array) | (b'}', Container::Object) => {
                self.pass(found);
                levels.pop();
                Ok(Next::Comma)
            }
            _ => Err(self.wrong(found)),
        }
    }

    /// A key and its colon.
    fn key(&mut self, levels: &mut Vec<Container>, is_first: bool) -> Scanned<Next, E> {
        self.skip_blanks()?;
        let found = self.here()?;
        if found.byte == b'}' && is_first {
            self.pass(found);
            levels.pop();
            return Ok(Next::Comma);
        }
        if found.byte != b'"' {
            if is_first {
                return Err(self.wrong(found));
            }
            self.pass(found);
            return Err(self.fault(JsonFaultKind::Syntax));
        }
        self.pass(found);
        self.skip_blanks()?;
        let begins = self.here()?;
        if begins.byte < b' ' {
            return Err(self.wrong(begins));
        }
        loop {
            let of = self.here()?;
            match of.byte {
                b'"' => break self.pass(of),
                b'\\' => self.escape(of)?,
                ..b' ' => return Err(self.fault(JsonFaultKind::Syntax)),
                _ => self.pass(of),
            }
            self.told()?;
        }
        self.skip_blanks()?;
        // A wrong character after an empty key is reported at the position after it.
        let colon = self.here()?;
        if colon.byte != b':' && begins.byte == b'"' {
            return Err(self.wrong(colon));
        }
        self.expect(b':')?;
        Ok(Next::Value)
    }

    /// The rest of a string.
    fn string(&mut self) -> Scanned<(), E> {
        loop {
            let of = self.here()?;
            match of.byte {
                b'"' => {
                    self.pass(of);
                    return Ok(());
                }
                b'\\' => self.escape(of)?,
                ..b' ' => return Err(self.wrong(of)),
                _ => self.pass(of),
            }
            self.told()?;
        }
    }

    /// A backslash and the character after it.
    fn escape(&mut self, backslash: Char) -> Scanned<(), E> {
        self.pass(backslash);
        let of = self.here()?;
        if of.byte < b' ' {
            return Err(self.fault(JsonFaultKind::Escape));
        }
        self.pass(of);
        if of.byte != b'u' {
            return Ok(());
        }
        match self.unit()? {
            0xd800..0xdc00 => {
                self.expect(b'\\')?;
                self.expect(b'u')?;
                match self.unit()? {
                    0xdc00..0xe000 => Ok(()),
                    _ => Err(self.fault(JsonFaultKind::Broken)),
                }
            }
            0xdc00..0xe000 => Err(self.fault(JsonFaultKind::Broken)),
            _ => Ok(()),
        }
    }

    /// Four hexadecimal digits.
    fn unit(&mut self) -> Scanned<u32, E> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.here()?;
            let value = char::from(digit.byte).to_digit(16);
            unit = unit * 16 + value.ok_or_else(|| self.fault(JsonFaultKind::Syntax))?;
            self.pass(digit);
        }
        Ok(unit)
    }

    /// This character and no other.
    fn expect(&mut self, byte: u8) -> Scanned<(), E> {
        let found = self.here()?;
        if found.byte != byte {
            return Err(self.fault(JsonFaultKind::Syntax));
        }
        self.pass(found);
        Ok(())
    }

    fn word(&mut self, word: &[u8]) -> Scanned<(), E> {
        word.iter().try_for_each(|&byte| self.expect(byte))
    }

    /// The rest of a number.
    fn number(&mut self, mut state: Number) -> Scanned<(), E> {
        loop {
            let Some(of) = self.peek()? else {
                return match state {
                    Number::Minus | Number::Exponent => Err(self.fault(JsonFaultKind::Syntax)),
                    _ => Ok(()),
                };
            };
            if of.byte == OTHER {
                return Err(self.fault(JsonFaultKind::Broken));
            }
            if matches!(of.byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b']' | b'}') {
                return Ok(());
            }
            state = match (state, of.byte) {
                (Number::Minus, b'0') => Number::Zero,
                (Number::Minus | Number::Whole, b'0'..=b'9') => Number::Whole,
                (Number::Zero | Number::Whole, b'.') | (Number::Fraction, b'0'..=b'9') => {
                    Number::Fraction
                }
                (Number::Zero | Number::Whole | Number::Fraction, b'e' | b'E')
                | (Number::Exponent, b'+' | b'-') => Number::Exponent,
                (Number::Exponent | Number::ExponentDigits, b'0'..=b'9') => Number::ExponentDigits,
                _ => return Err(self.wrong(of)),
            };
            self.pass(of);
            self.told()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &[u8], charset: Charset) -> String {
        let fault = fault_of(text, charset, &|_| Ok::<_, ()>(())).unwrap();
        fault.map_or_else(|| "valid".to_owned(), |fault| fault.to_string())
    }

    #[test]
    fn texts_are_json_or_say_where_they_are_not() {
        let nested = |count: usize| "[".repeat(count) + &"]".repeat(count);
        let cases: &[(&str, &str)] = &[
            ("", "End at byte 0"),
            (
                " {\"a\": [1, -0.5e+3, \"b\\u0041\\q\"], \"\t\": null} ",
                "valid",
            ),
            ("[-]", "valid"),
            ("-", "Syntax at byte 1"),
            ("[1e]", "valid"),
            ("1e", "Syntax at byte 2"),
            ("1.", "valid"),
            ("1e--5", "valid"),
            ("01", "Syntax at byte 2"),
            ("1\u{20ac}", "Broken at byte 1"),
            ("[1,]", "Syntax at byte 4"),
            ("{\"a\"}", "Syntax at byte 4"),
            ("{\"\"}", "Syntax at byte 4"),
            ("{\"a\u{1}\":1}", "Syntax at byte 3"),
            ("{\"\u{1}\":1}", "Disallowed at byte 3"),
            ("\"a\nb\"", "Disallowed at byte 3"),
            ("\"\\\n\"", "Escape at byte 2"),
            ("\"\\ud800\\udc00\"", "valid"),
            ("\"\\ud800\"", "Syntax at byte 7"),
            ("\"\\udc00\"", "Broken at byte 7"),
            ("nulL", "Syntax at byte 3"),
            ("tru", "End at byte 3"),
            ("\u{e9}", "Syntax at byte 2"),
            (&nested(31), "valid"),
            (&nested(32), "Depth at byte 32"),
        ];
        for (text, expected) in cases {
            assert_eq!(said(text.as_bytes(), Charset::Utf8mb4), *expected, "{text}");
        }
    }

    #[test]
    fn bytes_are_characters_of_the_text_s_set() {
        assert_eq!(said(b"\"\xff\"", Charset::Latin1), "valid");
        assert_eq!(said(b"\"\xff\"", Charset::Binary), "valid");
        assert_eq!(said(b"\"\xff\"", Charset::Utf8mb4), "Broken at byte 1");
        assert_eq!(said(b"\"\xff\"", Charset::Ascii), "Broken at byte 1");
    }

    #[test]
    fn a_long_text_can_be_stopped() {
        let text = format!("\"{}\"", "a".repeat(3 * BYTES_PER_SPEND));
        let stop = |_| Err(SqlCondition::new(errcode::ER_QUERY_INTERRUPTED, &[]));
        assert!(fault_of(text.as_bytes(), Charset::Utf8mb4, &stop).is_err());
    }
}
