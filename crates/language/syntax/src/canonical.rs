//! One fast pass that replaces the literals of a statement: the key of the plan cache.
//!
//! The key is the statement's own text with `?` for each replaced literal, then a zero byte and a
//! letter for the kind of each parameter. The text before the zero byte is ordinary SQL, which is
//! parsed and planned on a miss. So a text statement costs as much as a prepared one. Statements
//! that may mean different things never share a key:
//!
//! * (I1) A literal stays if the grammar, a column's name or a type needs it. That is so in select
//!   lists (and queries nested in them), `GROUP BY`, `HAVING`, `ORDER BY`, `RETURNING`, `INTO`,
//!   `FOR ..`, casts, precisions, `ROUND(x, 2)`, `COLLATE '..'`, `ESCAPE '..'`.
//! * (I2) Only SELECT, INSERT, REPLACE, UPDATE, DELETE and WITH have a canonical form, only one
//!   statement at a time, and only without executable comments.
//! * (I3) The rest is copied byte by byte, except comments outside of select lists and blanks at
//!   both ends.
//! * (I4) Parameters are in the order of their `?`; original `?` are counted, too.
//!
//! The key depends only on the text. `sql_mode`, the character set of the connection and the
//! default database must be added to the cache's key. If the canonical text does not parse, parse
//! the original for the message.

use std::borrow::Cow;

use settings::SqlMode;

use crate::ast::Literal;
use crate::token::{Kind, Lexer, Span, Token, string_value};

/// How deep parentheses may be nested in a canonical form.
const FRAMES_MAX: usize = 64;
/// Longer texts have no canonical form: they are not worth caching, since bulk inserts are rarely
/// sent twice.
pub const TEXT_BYTES_MAX: usize = 64 << 10;

/// The canonical form of a statement, in buffers that are reused.
#[derive(Debug, Clone, Default)]
pub struct Canonical {
    /// Text, zero, kinds.
    key: Vec<u8>,
    /// The position of the zero byte.
    text_bytes: usize,
    parameters: Vec<Parameter>,
}

/// A parameter of a canonical form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// What it was.
    pub kind: ParameterKind,
    /// Its position in the original text.
    pub span: Span,
}

/// What a parameter was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ParameterKind {
    /// A `?` of the original text.
    Placeholder = b'?',
    /// Digits up to 9223372036854775807.
    Integer = b'i',
    /// More digits, up to 18446744073709551615.
    Unsigned = b'u',
    /// Digits with a point, or too many digits.
    Decimal = b'd',
    /// A number with an exponent.
    Float = b'f',
    /// A string, or several adjacent ones.
    String = b's',
}

impl Canonical {
    /// An empty form, to be filled repeatedly.
    #[must_use]
    pub fn new() -> Canonical {
        Canonical::default()
    }

    /// The key of the plan cache.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The statement with `?` for its literals.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        self.key.get(..self.text_bytes).unwrap_or_default()
    }

    /// The parameters in the order of their `?`.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Fills the form from `source`. Returns false if the statement has none; then the contents are
    /// meaningless.
    pub fn fill(&mut self, source: &[u8], mode: SqlMode) -> bool {
        self.key.clear();
        self.parameters.clear();
        if TEXT_BYTES_MAX < source.len() {
            return false;
        }
        let is_whole = Scan::new(self, source, mode).run();
        self.text_bytes = self.key.len();
        if is_whole {
            self.key.push(0);
            self.key
                .extend(self.parameters.iter().map(|parameter| parameter.kind as u8));
        }
        is_whole
    }
}

impl Parameter {
    /// The value of an integer; `None` for other kinds.
    #[must_use]
    pub fn integer(&self, source: &[u8]) -> Option<u64> {
        match self.kind {
            ParameterKind::Integer | ParameterKind::Unsigned => {
                std::str::from_utf8(self.span.of(source)).ok()?.parse().ok()
            }
            _ => None,
        }
    }

    /// The bytes of a string, with resolved escapes; borrowed if there are none.
    #[must_use]
    pub fn string<'a>(&self, source: &'a [u8], mode: SqlMode) -> Cow<'a, [u8]> {
        let text = source.get(self.span.start as usize..self.span.end as usize);
        let text = text.unwrap_or_default();
        let mut lexer = Lexer::new(text, mode);
        let first = lexer.next_token().span;
        let mut value = string_value(text.get(..first.end as usize).unwrap_or_default(), mode);
        loop {
            let token = lexer.next_token();
            if token.kind != Kind::String {
                return value;
            }
            value
                .to_mut()
                .extend_from_slice(&string_value(token.span.of(text), mode));
        }
    }

    /// The original literal; `None` for a placeholder.
    #[must_use]
    pub fn literal(&self, source: &[u8], mode: SqlMode) -> Option<Literal> {
        let text = || String::from_utf8_lossy(self.span.of(source)).into_owned();
        Some(match self.kind {
            ParameterKind::Placeholder => return None,
            ParameterKind::Integer | ParameterKind::Unsigned => {
                Literal::Integer(self.integer(source)?)
            }
            ParameterKind::Decimal => Literal::Decimal(text()),
            ParameterKind::Float => Literal::Float(text()),
            ParameterKind::String => Literal::String {
                value: self.string(source, mode).into_owned(),
                charset: None,
            },
        })
    }
}

/// What applies within a pair of parentheses: the sum of these constants.
type FrameFlags = u8;
/// Words like WHERE begin its own clauses.
const QUERY: FrameFlags = 1;
/// Literals are replaced at the current place.
const LIFT: FrameFlags = 2;
/// Only integers are replaced.
const LIMIT: FrameFlags = 4;
/// Nothing in parentheses is replaced, queries included.
const PIN: FrameFlags = 8;
/// Nothing is replaced until the end.
const PINNED: FrameFlags = 16;
/// It is the statement's own frame, whose VALUES and SET have values.
const WRITE: FrameFlags = 32;

/// The pass over a statement.
struct Scan<'a> {
    form: &'a mut Canonical,
    source: &'a [u8],
    lexer: Lexer<'a>,
    /// The frame of the innermost parentheses; the outer ones are in `outer`.
    frame: FrameFlags,
    outer: [FrameFlags; FRAMES_MAX],
    depth: usize,
    /// Everything before has been copied or skipped.
    copied: usize,
    last: Token,
    /// `last` is a string that was replaced.
    is_last_lifted: bool,
}

impl<'a> Scan<'a> {
    fn new(form: &'a mut Canonical, source: &'a [u8], mode: SqlMode) -> Scan<'a> {
        Scan {
            form,
            source,
            lexer: Lexer::new(source, mode),
            frame: QUERY,
            outer: [0; FRAMES_MAX],
            depth: 0,
            copied: 0,
            last: Token {
                kind: Kind::End,
                keyword: None,
                span: Span::default(),
            },
            is_last_lifted: false,
        }
    }

    /// Whether the statement has a canonical form; if so, it has been written.
    fn run(mut self) -> bool {
        if !self.first() {
            return false;
        }
        loop {
            let token = self.lexer.next_token();
            if !self.gap(token) {
                return false;
            }
            let mut is_lifted = false;
            match token.kind {
                Kind::Word => self.word(token),
                Kind::LeftParen if self.open() => {}
                Kind::RightParen if self.close() => {}
                Kind::Integer | Kind::Decimal | Kind::Float if self.frame & LIFT != 0 => {
                    self.number(token);
                }
                Kind::String if self.frame & LIFT != 0 => is_lifted = self.string(token),
                Kind::Parameter => self.lift(ParameterKind::Placeholder, token.span),
                // Two minus signs around a dropped comment would begin a new one.
                Kind::Semicolon | Kind::End if self.last.kind == Kind::Minus => return false,
                Kind::Semicolon => return self.last_semicolon(token),
                Kind::End => {
                    self.copy_to(self.last.span.end as usize);
                    return self.depth == 0;
                }
                Kind::LeftParen | Kind::RightParen | Kind::LeftBrace | Kind::Invalid => {
                    return false;
                }
                _ => {}
            }
            self.last = token;
            self.is_last_lifted = is_lifted;
        }
    }

    /// The first word, or the parenthesis before it.
    fn first(&mut self) -> bool {
        let token = self.lexer.next_token();
        self.copied = token.span.start as usize;
        if self
            .source
            .get(..self.copied)
            .is_some_and(has_executable_comment)
        {
            return false;
        }
        self.last = token;
        if token.kind == Kind::LeftParen {
            return self.open();
        }
        let word = token.span.of(self.source);
        let is_any = |words: &[&[u8]]| words.iter().any(|known| word.eq_ignore_ascii_case(known));
        if token.kind != Kind::Word {
            return false;
        }
        match word.len() {
            4 if is_any(&[b"WITH"]) => true,
            6 if is_any(&[b"SELECT"]) => {
                self.frame |= PIN;
                true
            }
            6 if is_any(&[b"INSERT", b"UPDATE", b"DELETE"]) => {
                self.frame |= WRITE;
                true
            }
            7 if is_any(&[b"REPLACE"]) => {
                self.frame |= WRITE;
                true
            }
            _ => false,
        }
    }

    /// Handles the gap before a token: blanks are kept, comments are dropped except in select
    /// lists. Returns false if a comment is executable.
    #[inline]
    fn gap(&mut self, next: Token) -> bool {
        let (start, end) = (self.last.span.end as usize, next.span.start as usize);
        let gap = self.source.get(start..end).unwrap_or_default();
        if gap.iter().all(|&byte| byte <= b' ') {
            return true;
        }
        self.comment_gap(start, end, next.kind)
    }

    #[cold]
    fn comment_gap(&mut self, start: usize, end: usize, next: Kind) -> bool {
        let gap = self.source.get(start..end).unwrap_or_default();
        // A minus before a kept blank could begin a comment together with one before it.
        if has_executable_comment(gap) || self.last.kind == Kind::Minus {
            return false;
        }
        let is_last = matches!(next, Kind::End | Kind::Semicolon);
        if self.frame & (PIN | PINNED) == 0 && !is_last {
            self.copy_to(start);
            self.form.key.push(b' ');
            self.copied = end;
        }
        true
    }

    fn copy_to(&mut self, end: usize) {
        self.form
            .key
            .extend_from_slice(self.source.get(self.copied..end).unwrap_or_default());
        self.copied = end;
    }

    #[inline]
    fn lift(&mut self, kind: ParameterKind, span: Span) {
        self.copy_to(span.start as usize);
        self.form.key.push(b'?');
        self.copied = span.end as usize;
        self.form.parameters.push(Parameter { kind, span });
    }

    fn number(&mut self, token: Token) {
        let kind = match token.kind {
            Kind::Integer if token.span.end - token.span.start < 19 => ParameterKind::Integer,
            Kind::Integer => long_integer(token.span.of(self.source)),
            _ if self.frame & LIMIT != 0 => return,
            Kind::Decimal => ParameterKind::Decimal,
            _ => ParameterKind::Float,
        };
        self.lift(kind, token.span);
    }

    /// Replaces a string, unless the preceding word needs it.
    fn string(&mut self, token: Token) -> bool {
        if self.frame & LIMIT != 0 {
            return false;
        }
        if self.is_last_lifted {
            // Adjacent strings are one.
            if let Some(parameter) = self.form.parameters.last_mut() {
                parameter.span.end = token.span.end;
            }
            self.copied = token.span.end as usize;
            return true;
        }
        let is_pinned = match self.last.kind {
            Kind::Word => pins_string(self.last.span.of(self.source)),
            Kind::String | Kind::NationalString => true,
            _ => false,
        };
        if !is_pinned {
            self.lift(ParameterKind::String, token.span);
        }
        !is_pinned
    }

    fn open(&mut self) -> bool {
        let Some(slot) = self.outer.get_mut(self.depth) else {
            return false;
        };
        *slot = self.frame;
        self.depth += 1;
        let is_call = self.last.kind == Kind::Word;
        let is_pinned = self.frame & (PIN | PINNED) != 0
            || (is_call && pins_arguments(self.last.span.of(self.source)));
        self.frame = if is_pinned { PINNED } else { self.frame & LIFT };
        true
    }

    fn close(&mut self) -> bool {
        let Some(depth) = self.depth.checked_sub(1) else {
            return false;
        };
        self.depth = depth;
        self.frame = self.outer.get(depth).copied().unwrap_or(PINNED);
        true
    }

    fn last_semicolon(&mut self, token: Token) -> bool {
        self.copy_to(self.last.span.end as usize);
        let next = self.lexer.next_token();
        let gap = self
            .source
            .get(token.span.end as usize..next.span.start as usize);
        let is_plain = !gap.is_some_and(has_executable_comment);
        next.kind == Kind::End && self.depth == 0 && is_plain
    }

    /// A word may start a clause.
    #[inline]
    fn word(&mut self, token: Token) {
        if self.frame & PINNED != 0 {
            return;
        }
        let Some(clause) = clause(token.span.of(self.source)) else {
            return;
        };
        if clause == Clause::Select {
            self.frame = (self.frame & WRITE) | QUERY | PIN;
            return;
        }
        if self.frame & QUERY == 0 {
            // `CAST(a AS CHAR(3))`: a type follows. `(WITH .. SELECT`: a query follows.
            match clause {
                Clause::As => self.frame = PINNED,
                Clause::With if self.last.kind == Kind::LeftParen => self.frame = QUERY,
                _ => {}
            }
            return;
        }
        let kept = self.frame & (QUERY | WRITE);
        self.frame = match clause {
            Clause::Condition => kept | LIFT,
            Clause::Limit => kept | LIFT | LIMIT,
            Clause::Named => kept | PIN,
            Clause::Tables => kept,
            Clause::Values if self.frame & WRITE != 0 => kept | LIFT,
            Clause::Values | Clause::Set => {
                if self.frame & WRITE != 0 {
                    kept | LIFT
                } else {
                    self.frame
                }
            }
            Clause::As | Clause::With | Clause::Select => self.frame,
        };
    }
}

/// What a word starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clause {
    Select,
    /// WHERE, ON.
    Condition,
    Limit,
    /// GROUP BY and others whose literals are names or positions.
    Named,
    /// FROM and others, with queries in parentheses.
    Tables,
    Values,
    Set,
    As,
    With,
}

/// The clause that a word starts. `| 0x20` makes ASCII letters lower case.
#[inline]
fn clause(word: &[u8]) -> Option<Clause> {
    let first = word.first().copied().unwrap_or(0) | 0x20;
    let (name, clause): (&[u8], Clause) = match (word.len(), first) {
        (2, b'o') => (b"on", Clause::Condition),
        (2, b'a') => (b"as", Clause::As),
        (3, b'f') => (b"for", Clause::Named),
        (3, b's') => (b"set", Clause::Set),
        (4, b'f') => (b"from", Clause::Tables),
        (4, b'i') => (b"into", Clause::Tables),
        (4, b'w') => (b"with", Clause::With),
        (4, b'j') => (b"join", Clause::Tables),
        (4, b'l') => (b"lock", Clause::Named),
        (5, b'w') => (b"where", Clause::Condition),
        (5, b'l') => (b"limit", Clause::Limit),
        (5, b'g') => (b"group", Clause::Named),
        (5, b'o') => (b"order", Clause::Named),
        (5, b'u') => (b"union", Clause::Tables),
        (5, b'f') => (b"fetch", Clause::Named),
        (5, b'v') => (b"value", Clause::Values),
        (6, b's') => (b"select", Clause::Select),
        (6, b'h') => (b"having", Clause::Named),
        (6, b'v') => (b"values", Clause::Values),
        (6, b'e') => (b"except", Clause::Tables),
        (6, b'w') => (b"window", Clause::Named),
        (7, b'o') => (b"outfile", Clause::Named),
        (8, b'd') => (b"dumpfile", Clause::Named),
        (9, b'r') => (b"returning", Clause::Named),
        (9, b'p') => (b"procedure", Clause::Named),
        (9, b'i') => (b"intersect", Clause::Tables),
        _ => return None,
    };
    word.eq_ignore_ascii_case(name).then_some(clause)
}

/// Whether a string after this word belongs to it: `DATE '..'`, `_utf8'..'`, `COLLATE '..'`.
fn pins_string(word: &[u8]) -> bool {
    let is_any = |words: &[&[u8]]| words.iter().any(|known| word.eq_ignore_ascii_case(known));
    word.first() == Some(&b'_')
        || match word.len() {
            2 => is_any(&[b"AS"]),
            3 => is_any(&[b"SET"]),
            4 => is_any(&[b"DATE", b"TIME"]),
            5 => is_any(&[b"USING"]),
            6 => is_any(&[b"ESCAPE"]),
            7 => is_any(&[b"COLLATE", b"CHARSET"]),
            9 => is_any(&[b"TIMESTAMP", b"SEPARATOR"]),
            _ => false,
        }
}

/// Whether the literals after this word and `(` stay: they determine a function's type, or are
/// names of partitions.
fn pins_arguments(word: &[u8]) -> bool {
    builtin::find(word).is_some_and(|found| found.builtin.pins_literals)
        || word.eq_ignore_ascii_case(b"PARTITION")
}

fn long_integer(digits: &[u8]) -> ParameterKind {
    let value = std::str::from_utf8(digits)
        .ok()
        .and_then(|text| text.parse::<u64>().ok());
    match value {
        Some(value) if i64::try_from(value).is_ok() => ParameterKind::Integer,
        Some(_) => ParameterKind::Unsigned,
        None => ParameterKind::Decimal,
    }
}

/// Whether the gap before a token has a comment whose text is executed.
fn has_executable_comment(gap: &[u8]) -> bool {
    gap.windows(3)
        .any(|window| window == b"/*!" || window == b"/*M")
}
