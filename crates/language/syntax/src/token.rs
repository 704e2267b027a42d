//! Bytes to tokens: MariaDB's lexical rules, with spans and without copying.
//!
//! Comments are dropped here. An executable comment (`/*! .. */`, `/*!50100 .. */`, `/*M!101100 ..
//! */`) whose version this server supports is lexed as if its delimiters were blanks; any other is
//! dropped as a whole. MariaDB's rule: `/*!` with a number from 50700 to 99999 is meant for MySQL
//! only and skipped.
//!
//! (I1) Tokens are in the order of the text and never overlap.
//! (I2) Every call of [`Lexer::next_token`] except the last advances, so lexing is linear.
//!
//! Source of the rules: MariaDB manual, "Comment Syntax", "Identifier Names", "String Literals".

use std::borrow::Cow;

use settings::SqlMode;

use crate::keyword::Keyword;

/// The version that executable comments are compared with: MariaDB 10.11.
pub const VERSION: u32 = 101_199;
/// `/*!` numbers from here on ...
const MYSQL_ONLY_FIRST: u32 = 50_700;
/// ... up to here are for MySQL only.
const MYSQL_ONLY_LAST: u32 = 99_999;

/// The words of `sql_mode` that change how a text is read.
pub const MODE_WORDS: [SqlMode; 6] = [
    SqlMode::ANSI_QUOTES,
    SqlMode::NO_BACKSLASH_ESCAPES,
    SqlMode::PIPES_AS_CONCAT,
    SqlMode::HIGH_NOT_PRECEDENCE,
    SqlMode::IGNORE_SPACE,
    SqlMode::REAL_AS_FLOAT,
];

/// All of [`MODE_WORDS`].
pub const TEXT_MODE: SqlMode = {
    let mut all = MODE_WORDS[0];
    let mut index = 1;
    while index < MODE_WORDS.len() {
        all = all.with(MODE_WORDS[index]);
        index += 1;
    }
    all
};

/// A range of the source text, in bytes, the end excluded.
///
/// Spans are not part of a tree's meaning: any two are equal, so that trees compare by meaning.
#[derive(Debug, Clone, Copy, Default)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl PartialEq for Span {
    fn eq(&self, _: &Span) -> bool {
        true
    }
}

impl Eq for Span {}

impl std::hash::Hash for Span {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

impl Span {
    /// The range from `start` to `end`; no text of a statement exceeds 4 GiB.
    #[must_use]
    pub fn new(start: usize, end: usize) -> Span {
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Span {
            start: offset(start),
            end: offset(end),
        }
    }

    /// The bytes of `source` that it covers; empty if it lies outside.
    #[must_use]
    pub fn of(self, source: &[u8]) -> &[u8] {
        source
            .get(self.start as usize..self.end as usize)
            .unwrap_or_default()
    }

    /// From the start of this one to the end of the other.
    #[must_use]
    pub fn to(self, other: Span) -> Span {
        Span {
            start: self.start,
            end: other.end,
        }
    }
}

/// The kind of a token. Its text is the source under its span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The end of the text.
    End,
    /// An unquoted word: a keyword or a name.
    Word,
    /// An unquoted word that can only be a name: it follows `x.` directly, or `.x` follows.
    Name,
    /// A quoted name, quotes included.
    Quoted,
    /// `'..'`, or `".."` without `ANSI_QUOTES`; quotes included.
    String,
    /// `N'..'`.
    NationalString,
    /// `x'..'`.
    HexString,
    /// `b'..'`.
    BitString,
    /// `0x..`.
    HexNumber,
    /// `0b..`.
    BitNumber,
    /// Digits.
    Integer,
    /// Digits with a point.
    Decimal,
    /// A number with an exponent.
    Float,
    /// `?`.
    Parameter,
    /// `@name`, `@'name'` and so on, the sign included.
    UserVariable,
    /// `@` alone.
    At,
    /// `@@`.
    AtAt,
    /// `(`.
    LeftParen,
    /// `)`.
    RightParen,
    /// `{`.
    LeftBrace,
    /// `}`.
    RightBrace,
    /// `,`.
    Comma,
    /// `.`.
    Dot,
    /// `..`.
    DotDot,
    /// `;`.
    Semicolon,
    /// `:`.
    Colon,
    /// `:=`.
    Assign,
    /// `=`.
    Equal,
    /// `<=>`.
    NullSafeEqual,
    /// `<>` or `!=`.
    NotEqual,
    /// `<`.
    Less,
    /// `<=`.
    LessEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterEqual,
    /// `<<`.
    ShiftLeft,
    /// `>>`.
    ShiftRight,
    /// `+`.
    Plus,
    /// `-`.
    Minus,
    /// `*`.
    Star,
    /// `/`.
    Slash,
    /// `%`.
    Percent,
    /// `^`.
    Caret,
    /// `~`.
    Tilde,
    /// `!`.
    Exclamation,
    /// `&`.
    Ampersand,
    /// `&&`.
    AndAnd,
    /// `|`.
    Pipe,
    /// `||`.
    PipePipe,
    /// Anything else: a stray byte, an unterminated string or comment.
    Invalid,
}

/// One token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// The keyword of a [`Kind::Word`], or `None`.
    pub keyword: Option<Keyword>,
    /// Its position.
    pub span: Span,
}

/// A cursor over the tokens of a text.
#[derive(Debug, Clone)]
pub struct Lexer<'a> {
    source: &'a [u8],
    at: usize,
    /// `ANSI_QUOTES`.
    has_quoted_names: bool,
    /// No `NO_BACKSLASH_ESCAPES`.
    has_escapes: bool,
    /// Inside an executable comment, whose `*/` is a blank.
    is_in_comment: bool,
    /// The byte at `at` follows `word.`, so a word there is a name.
    is_name_next: bool,
    /// The last token was `@@`, after which `global.` is a keyword.
    is_variable_next: bool,
}

impl<'a> Lexer<'a> {
    /// A cursor at the start of `source`.
    #[must_use]
    pub fn new(source: &'a [u8], mode: SqlMode) -> Lexer<'a> {
        Lexer::starting_at(source, 0, mode)
    }

    /// A cursor in the middle of a text, outside of comments.
    #[must_use]
    pub fn starting_at(source: &'a [u8], at: usize, mode: SqlMode) -> Lexer<'a> {
        Lexer {
            source,
            at,
            has_quoted_names: mode.has(SqlMode::ANSI_QUOTES),
            has_escapes: !mode.has(SqlMode::NO_BACKSLASH_ESCAPES),
            is_in_comment: false,
            is_name_next: false,
            is_variable_next: false,
        }
    }

    /// True within an executable comment.
    #[must_use]
    pub fn is_in_comment(&self) -> bool {
        self.is_in_comment
    }

    /// The offset of the next unread byte.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.at
    }

    /// The next token with its keyword looked up; at the end always [`Kind::End`].
    pub fn next_keyword(&mut self) -> Token {
        let mut token = self.next_token();
        if token.kind == Kind::Word {
            let word = token.span.of(self.source);
            // `\N` is another way to write NULL.
            token.keyword = if word == b"\\N" {
                Some(Keyword::Null)
            } else {
                Keyword::of(word)
            };
        }
        token
    }

    /// The next token, without keyword lookup; at the end always [`Kind::End`].
    pub fn next_token(&mut self) -> Token {
        let is_name = std::mem::take(&mut self.is_name_next);
        if !is_name && let Err(start) = self.skip_blanks() {
            self.at = self.source.len();
            return self.token(Kind::Invalid, start);
        }
        let start = self.at;
        let Some(first) = self.peek(0) else {
            return self.token(Kind::End, start);
        };
        let kind = match first {
            _ if is_name && is_word_byte(first) => {
                self.word_rest();
                Kind::Name
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | 0x80.. => self.word_or_prefixed(first),
            b'0'..=b'9' => self.number(),
            b'\'' => self.quoted(b'\'', Kind::String),
            b'"' if self.has_quoted_names => self.quoted_name(b'"'),
            b'"' => self.quoted(b'"', Kind::String),
            b'`' => self.quoted_name(b'`'),
            b'@' => self.at_sign(),
            b'.' => self.point(),
            _ => self.operator(first),
        };
        debug_assert!(start < self.at);
        self.token(kind, start)
    }

    fn token(&self, kind: Kind, start: usize) -> Token {
        Token {
            kind,
            keyword: None,
            span: Span::new(start, self.at),
        }
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.source.get(self.at + ahead).copied()
    }

    /// Skips blanks and comments. The error is the start of an unterminated comment.
    fn skip_blanks(&mut self) -> Result<(), usize> {
        while let Some(byte) = self.peek(0) {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => self.at += 1,
                b'#' => self.skip_line(),
                b'-' if self.peek(1) == Some(b'-') && self.is_dash_comment() => self.skip_line(),
                b'/' if self.peek(1) == Some(b'*') => self.comment()?,
                b'*' if self.is_in_comment && self.peek(1) == Some(b'/') => {
                    self.is_in_comment = false;
                    self.at += 2;
                }
                _ => return Ok(()),
            }
        }
        if self.is_in_comment {
            self.is_in_comment = false;
            return Err(self.at);
        }
        Ok(())
    }

    /// `--` starts a comment only before a blank, a control byte or the end.
    fn is_dash_comment(&self) -> bool {
        self.peek(2).is_none_or(|byte| byte <= b' ' || byte == 0x7f)
    }

    fn skip_line(&mut self) {
        let rest = self.source.get(self.at..).unwrap_or_default();
        let line = rest.iter().position(|&byte| byte == b'\n');
        self.at += line.unwrap_or(rest.len());
    }

    fn comment(&mut self) -> Result<(), usize> {
        let start = self.at;
        let is_maria = self.peek(2) == Some(b'M') && self.peek(3) == Some(b'!');
        if is_maria || self.peek(2) == Some(b'!') {
            self.at += if is_maria { 4 } else { 3 };
            if self.comment_is_claimed(is_maria) {
                self.is_in_comment = true;
                return Ok(());
            }
            return self.skip_comment(start, 1);
        }
        self.at += 2;
        self.skip_comment(start, 0)
    }

    /// Reads the version, five or six digits. Returns whether this server supports it.
    fn comment_is_claimed(&mut self, is_maria: bool) -> bool {
        let mut version = 0_u32;
        let mut digits = 0;
        while digits < 6
            && let Some(byte @ b'0'..=b'9') = self.peek(digits)
        {
            version = version * 10 + u32::from(byte - b'0');
            digits += 1;
        }
        if digits < 5 {
            return true;
        }
        self.at += digits;
        let is_mysql_only = (MYSQL_ONLY_FIRST..=MYSQL_ONLY_LAST).contains(&version);
        version <= VERSION && (is_maria || !is_mysql_only)
    }

    /// Skips to after the `*/`; a skipped executable comment may contain `nesting` plain ones.
    fn skip_comment(&mut self, start: usize, nesting: u32) -> Result<(), usize> {
        let mut depth = 0;
        while let Some(byte) = self.peek(0) {
            if byte == b'*' && self.peek(1) == Some(b'/') {
                self.at += 2;
                if depth == 0 {
                    return Ok(());
                }
                depth -= 1;
            } else if byte == b'/' && self.peek(1) == Some(b'*') && depth < nesting {
                self.at += 2;
                depth += 1;
            } else {
                self.at += 1;
            }
        }
        Err(start)
    }

    fn word_rest(&mut self) {
        let rest = self.source.get(self.at..).unwrap_or_default();
        let end = rest.iter().position(|&byte| !is_word_byte(byte));
        self.at += end.unwrap_or(rest.len());
        self.name_follows();
    }

    /// A word after `word.` is a name, even if it looks like a keyword or digits.
    fn name_follows(&mut self) {
        self.is_name_next = false;
        if self.peek(0) == Some(b'.') && self.peek(1).is_some_and(is_word_byte) {
            self.is_name_next = true;
        }
    }

    fn word_or_prefixed(&mut self, first: u8) -> Kind {
        if self.peek(1) == Some(b'\'') {
            match first {
                b'x' | b'X' => return self.digits_string(Kind::HexString),
                b'b' | b'B' => return self.digits_string(Kind::BitString),
                b'n' | b'N' => {
                    self.at += 1;
                    return self.quoted(b'\'', Kind::NationalString);
                }
                _ => {}
            }
        }
        let is_variable = std::mem::take(&mut self.is_variable_next);
        self.word_rest();
        // `word.name` is never a keyword, so that `select.a` is a column.
        if self.is_name_next && !is_variable {
            Kind::Name
        } else {
            Kind::Word
        }
    }

    /// `x'..'` and `b'..'`: only their digits, and for `x` only whole bytes.
    fn digits_string(&mut self, kind: Kind) -> Kind {
        let start = self.at + 2;
        let rest = self.source.get(start..).unwrap_or_default();
        let Some(length) = rest.iter().position(|&byte| byte == b'\'') else {
            self.at = self.source.len();
            return Kind::Invalid;
        };
        let digits = rest.get(..length).unwrap_or_default();
        self.at = start + length + 1;
        let is_good = if kind == Kind::HexString {
            length % 2 == 0 && digits.iter().all(u8::is_ascii_hexdigit)
        } else {
            digits.iter().all(|byte| matches!(byte, b'0' | b'1'))
        };
        if is_good { kind } else { Kind::Invalid }
    }

    fn count_while(&self, from: usize, keep: impl Fn(u8) -> bool) -> usize {
        let rest = self.source.get(self.at + from..).unwrap_or_default();
        rest.iter()
            .position(|&byte| !keep(byte))
            .unwrap_or(rest.len())
    }

    fn number(&mut self) -> Kind {
        if let Some(kind) = self.prefixed_number() {
            return kind;
        }
        let digits = self.count_while(0, |byte| byte.is_ascii_digit());
        match self.peek(digits) {
            // `1..3` is a range of integers.
            Some(b'.') if self.peek(digits + 1) != Some(b'.') => {
                self.at += digits + 1;
                self.fraction()
            }
            Some(b'e' | b'E') if self.exponent(digits).is_some() => {
                self.at += self.exponent(digits).unwrap_or(digits);
                Kind::Float
            }
            Some(byte) if is_word_byte(byte) => {
                self.word_rest();
                Kind::Word
            }
            _ => {
                self.at += digits;
                Kind::Integer
            }
        }
    }

    /// `0x..` and `0b..`, if only their digits follow.
    fn prefixed_number(&mut self) -> Option<Kind> {
        if self.peek(0) != Some(b'0') {
            return None;
        }
        let (digits, kind) = match self.peek(1) {
            Some(b'x') => (
                self.count_while(2, |byte| byte.is_ascii_hexdigit()),
                Kind::HexNumber,
            ),
            Some(b'b') => (
                self.count_while(2, |byte| matches!(byte, b'0' | b'1')),
                Kind::BitNumber,
            ),
            _ => return None,
        };
        if digits == 0 || self.peek(2 + digits).is_some_and(is_word_byte) {
            return None;
        }
        self.at += 2 + digits;
        Some(kind)
    }

    /// The end of the exponent that starts at `from`, if it is one.
    fn exponent(&self, from: usize) -> Option<usize> {
        let sign = usize::from(matches!(self.peek(from + 1), Some(b'+' | b'-')));
        let digits = self.count_while(from + 1 + sign, |byte| byte.is_ascii_digit());
        (0 < digits).then_some(from + 1 + sign + digits)
    }

    /// The digits after the point of a number.
    fn fraction(&mut self) -> Kind {
        self.at += self.count_while(0, |byte| byte.is_ascii_digit());
        if matches!(self.peek(0), Some(b'e' | b'E'))
            && let Some(end) = self.exponent(0)
        {
            self.at += end;
            return Kind::Float;
        }
        Kind::Decimal
    }

    fn point(&mut self) -> Kind {
        let follows_word = self
            .at
            .checked_sub(1)
            .and_then(|before| self.source.get(before));
        let follows_word = follows_word.is_some_and(|&byte| is_word_byte(byte) || byte == b'`');
        if self.peek(1).is_some_and(|byte| byte.is_ascii_digit()) && !follows_word {
            self.at += 1;
            return self.fraction();
        }
        self.at += 1;
        if self.peek(0) == Some(b'.') {
            self.at += 1;
            return Kind::DotDot;
        }
        self.is_name_next = follows_word && self.peek(0).is_some_and(is_word_byte);
        Kind::Dot
    }

    fn quoted(&mut self, quote: u8, kind: Kind) -> Kind {
        self.at += 1;
        while let Some(byte) = self.peek(0) {
            if byte == quote {
                self.at += 1;
                if self.peek(0) != Some(quote) {
                    return kind;
                }
            } else if byte == b'\\' && self.has_escapes {
                self.at += 1;
            }
            self.at += 1;
        }
        self.at = self.source.len();
        Kind::Invalid
    }

    fn quoted_name(&mut self, quote: u8) -> Kind {
        self.at += 1;
        while let Some(byte) = self.peek(0) {
            self.at += 1;
            if byte == quote {
                if self.peek(0) != Some(quote) {
                    self.name_follows();
                    return Kind::Quoted;
                }
                self.at += 1;
            }
        }
        Kind::Invalid
    }

    fn at_sign(&mut self) -> Kind {
        self.at += 1;
        match self.peek(0) {
            Some(b'@') => {
                self.at += 1;
                self.is_variable_next = true;
                Kind::AtAt
            }
            Some(b'`') => match self.quoted_name(b'`') {
                Kind::Quoted => Kind::UserVariable,
                other => other,
            },
            Some(quote @ (b'\'' | b'"')) => self.quoted(quote, Kind::UserVariable),
            Some(byte) if is_word_byte(byte) || byte == b'.' => {
                self.at += self.count_while(0, |byte| is_word_byte(byte) || byte == b'.');
                Kind::UserVariable
            }
            _ => Kind::At,
        }
    }

    fn operator(&mut self, first: u8) -> Kind {
        let second = self.peek(1);
        let (kind, length) = match (first, second) {
            (b'(', _) => (Kind::LeftParen, 1),
            (b')', _) => (Kind::RightParen, 1),
            (b'{', _) => (Kind::LeftBrace, 1),
            (b'}', _) => (Kind::RightBrace, 1),
            (b',', _) => (Kind::Comma, 1),
            (b';', _) => (Kind::Semicolon, 1),
            (b'?', _) => (Kind::Parameter, 1),
            (b':', Some(b'=')) => (Kind::Assign, 2),
            (b':', _) => (Kind::Colon, 1),
            (b'=', _) => (Kind::Equal, 1),
            (b'<', Some(b'=')) if self.peek(2) == Some(b'>') => (Kind::NullSafeEqual, 3),
            (b'<', Some(b'=')) => (Kind::LessEqual, 2),
            (b'<', Some(b'>')) => (Kind::NotEqual, 2),
            (b'<', Some(b'<')) => (Kind::ShiftLeft, 2),
            (b'<', _) => (Kind::Less, 1),
            (b'>', Some(b'=')) => (Kind::GreaterEqual, 2),
            (b'>', Some(b'>')) => (Kind::ShiftRight, 2),
            (b'>', _) => (Kind::Greater, 1),
            (b'!', Some(b'=')) => (Kind::NotEqual, 2),
            (b'!', _) => (Kind::Exclamation, 1),
            (b'+', _) => (Kind::Plus, 1),
            (b'-', _) => (Kind::Minus, 1),
            (b'*', _) => (Kind::Star, 1),
            (b'/', _) => (Kind::Slash, 1),
            (b'%', _) => (Kind::Percent, 1),
            (b'^', _) => (Kind::Caret, 1),
            (b'~', _) => (Kind::Tilde, 1),
            (b'\\', Some(b'N')) => (Kind::Word, 2),
            (b'&', Some(b'&')) => (Kind::AndAnd, 2),
            (b'&', _) => (Kind::Ampersand, 1),
            (b'|', Some(b'|')) => (Kind::PipePipe, 2),
            (b'|', _) => (Kind::Pipe, 1),
            _ => (Kind::Invalid, 1),
        };
        self.at += length;
        kind
    }
}

/// Whether a byte may stand in an unquoted name.
#[must_use]
pub const fn is_word_byte(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'$' | 0x80..)
}

/// The value of a string token: without quotes, escapes and doubled quotes resolved.
///
/// Borrowed if nothing had to be resolved. `\%` and `\_` keep their backslash, since patterns need
/// it (MariaDB manual, "String Literals").
#[must_use]
pub fn string_value(quoted: &[u8], mode: SqlMode) -> Cow<'_, [u8]> {
    let quote = quoted.first().copied().unwrap_or(b'\'');
    let inner = quoted
        .get(1..quoted.len().saturating_sub(1))
        .unwrap_or_default();
    let has_escapes = !mode.has(SqlMode::NO_BACKSLASH_ESCAPES);
    let is_special = |&byte: &u8| byte == quote || (has_escapes && byte == b'\\');
    if !inner.iter().any(is_special) {
        return Cow::Borrowed(inner);
    }
    let mut value = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte == b'\\' && has_escapes {
            match bytes.next() {
                Some(b'0') => value.push(0),
                Some(b'b') => value.push(8),
                Some(b'n') => value.push(b'\n'),
                Some(b'r') => value.push(b'\r'),
                Some(b't') => value.push(b'\t'),
                Some(b'Z') => value.push(0x1a),
                Some(kept @ (b'%' | b'_')) => value.extend([b'\\', kept]),
                Some(other) => value.push(other),
                None => value.push(b'\\'),
            }
        } else {
            value.push(byte);
            if byte == quote {
                bytes.next();
            }
        }
    }
    Cow::Owned(value)
}

/// The value of a quoted name: without quotes, doubled quotes resolved.
#[must_use]
pub fn name_value(quoted: &[u8]) -> Cow<'_, [u8]> {
    string_value(quoted, SqlMode::NO_BACKSLASH_ESCAPES)
}
