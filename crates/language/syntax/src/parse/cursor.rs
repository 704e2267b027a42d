//! The parser's position in the text, and the small steps of which every rule consists.

use std::borrow::Cow;

use settings::SqlMode;

use super::error::{Fail, SyntaxErrorKind};
use super::scope::Scope;
use crate::ast::{Ident, LockWait, ObjectName, Refused};
use crate::keyword::{Class, Keyword};
use crate::token::{self, Kind, Lexer, Span, Token};

/// How deep rules may be nested: parentheses, subqueries, prefix operators. Programs that write SQL
/// stay below 30. A level costs at most 8 KiB of stack, 32 KiB in builds without optimisation, so
/// the usual 2 MiB of a thread suffice.
pub const DEPTH_MAX: u32 = if cfg!(debug_assertions) { 48 } else { 128 };
/// How high a tree may grow by chains like `a + b + c`, joins and unions.
pub const HEIGHT_MAX: u32 = 512;

pub(super) type Parsed<T> = Result<T, Fail>;

/// A position in the tokens of a text.
pub(super) struct Cursor<'a> {
    source: &'a [u8],
    lexer: Lexer<'a>,
    /// The last consumed token, the lookahead, and some tokens before them; the parser never goes
    /// back.
    tokens: Vec<Token>,
    /// The index of the current token in `tokens`.
    at: usize,
    /// Tokens lexed so far.
    lexed_count: usize,
    /// The current depth of nested rules.
    depth: u32,
    /// The height of the highest expression parsed since it was last reset.
    pub(super) height: u32,
    /// How many queries enclose this place: nested queries have no `INTO`.
    pub(super) subquery_depth: u32,
    /// `?` seen so far.
    pub(super) parameter_count: u32,
    /// `WAIT n` and `NOWAIT` of the current statement.
    pub(super) definition_wait: LockWait,
    /// Set within the body of a stored program.
    pub(super) scope: Option<Box<Scope>>,
    pub(super) mode: SqlMode,
    /// Called every [`TOKENS_PER_LOOK`] tokens.
    may_go_on: &'a dyn Fn() -> bool,
    /// It must stop: the text ends at that place.
    is_stopped: bool,
    /// Long lists of constants stay in the text ([`crate::ast::Constants`]).
    pub(super) leaves_constants: bool,
}

/// After this many tokens the parser asks whether it may continue: some 100 us of work.
pub const TOKENS_PER_LOOK: usize = 512;

/// This many consumed tokens are dropped at a time.
const TOKENS_DROPPED: usize = 512;

/// The most items of a list: arguments, columns, branches of CASE, names. Rows of VALUES, constants
/// of IN, and chains of AND, OR and UNION may be more.
pub const LIST_LEN_MAX: usize = 65_535;

impl<'a> Cursor<'a> {
    pub(super) fn new(source: &'a [u8], mode: SqlMode) -> Cursor<'a> {
        Cursor::while_allowed(source, mode, &|| true)
    }

    pub(super) fn while_allowed(
        source: &'a [u8],
        mode: SqlMode,
        may_go_on: &'a dyn Fn() -> bool,
    ) -> Cursor<'a> {
        Cursor::at_lexer(Lexer::new(source, mode), source, mode, may_go_on)
    }

    /// A cursor in the middle of a text, outside of comments.
    pub(super) fn starting_at(source: &'a [u8], at: usize, mode: SqlMode) -> Cursor<'a> {
        Cursor::at_lexer(Lexer::starting_at(source, at, mode), source, mode, &|| true)
    }

    fn at_lexer(
        lexer: Lexer<'a>,
        source: &'a [u8],
        mode: SqlMode,
        may_go_on: &'a dyn Fn() -> bool,
    ) -> Cursor<'a> {
        let tokens = Vec::with_capacity(32);
        Cursor {
            source,
            lexer,
            tokens,
            at: 0,
            lexed_count: 0,
            depth: 0,
            height: 0,
            subquery_depth: 0,
            parameter_count: 0,
            definition_wait: LockWait::Default,
            scope: None,
            mode,
            may_go_on,
            is_stopped: false,
            leaves_constants: false,
        }
    }

    /// Whether the caller has stopped the parser.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// The parsed result, unless the parser was stopped: then the end that it saw was no end.
    pub(super) fn unless_stopped<T>(&mut self, parsed: Parsed<T>) -> Parsed<T> {
        if self.is_stopped {
            return Err(self.fail_as(SyntaxErrorKind::Stopped));
        }
        parsed
    }

    /// Reads one more token.
    fn lex(&mut self) {
        let mut token = self.lexer.next_keyword();
        self.lexed_count += 1;
        if self.lexed_count.is_multiple_of(TOKENS_PER_LOOK) {
            self.look();
        }
        if TOKENS_DROPPED < self.at {
            // The token before the current one is kept: it is the end of a tree.
            self.tokens.drain(..self.at - 1);
            self.at = 1;
        }
        if self.is_stopped {
            token.kind = Kind::End;
            token.keyword = None;
        }
        self.tokens.push(token);
    }

    /// True if the current token is the last that was lexed, and is outside of executable comments:
    /// a cursor that starts there reads the same.
    pub(super) fn can_start_here(&mut self) -> bool {
        self.peek();
        self.tokens.len() == self.at + 1 && !self.lexer.is_in_comment()
    }

    pub(super) fn peek_at(&mut self, ahead: usize) -> Token {
        while self.tokens.len() <= self.at + ahead {
            self.lex();
        }
        match self.tokens.get(self.at + ahead) {
            Some(token) => *token,
            None => self.lexer.next_keyword(),
        }
    }

    pub(super) fn peek(&mut self) -> Token {
        self.peek_at(0)
    }

    pub(super) fn kind(&mut self) -> Kind {
        self.peek().kind
    }

    pub(super) fn keyword(&mut self) -> Option<Keyword> {
        self.peek().keyword
    }

    pub(super) fn keyword_at(&mut self, ahead: usize) -> Option<Keyword> {
        self.peek_at(ahead).keyword
    }

    pub(super) fn kind_at(&mut self, ahead: usize) -> Kind {
        self.peek_at(ahead).kind
    }

    /// Consumes the current token; the end is never consumed.
    pub(super) fn bump(&mut self) -> Token {
        let token = self.peek();
        if token.kind != Kind::End {
            self.at += 1;
        }
        token
    }

    pub(super) fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.bump();
        }
    }

    /// The whole text.
    pub(super) fn source(&self) -> &'a [u8] {
        self.source
    }

    pub(super) fn text(&self, span: Span) -> &'a [u8] {
        self.source
            .get(span.start as usize..span.end as usize)
            .unwrap_or_default()
    }

    /// The text of a word in capitals.
    pub(super) fn upper(&self, span: Span) -> String {
        String::from_utf8_lossy(self.text(span)).to_ascii_uppercase()
    }

    /// Where the next token starts.
    pub(super) fn start(&mut self) -> Span {
        self.peek().span
    }

    /// From `start` to the end of the last consumed token.
    pub(super) fn span_from(&self, start: Span) -> Span {
        let last = self
            .at
            .checked_sub(1)
            .and_then(|last| self.tokens.get(last));
        let end = last.map_or(start.end, |token| token.span.end);
        Span {
            start: start.start,
            end: end.max(start.start),
        }
    }

    pub(super) fn fail(&mut self) -> Fail {
        self.fail_as(SyntaxErrorKind::Unexpected)
    }

    pub(super) fn fail_as(&mut self, kind: SyntaxErrorKind) -> Fail {
        let offset = self.peek().span.start as usize;
        Fail { kind, offset }
    }

    /// Runs a rule one level deeper.
    pub(super) fn deeper<T>(&mut self, rule: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == DEPTH_MAX {
            return Err(self.fail_as(SyntaxErrorKind::TooDeep));
        }
        self.depth += 1;
        let result = rule(self);
        self.depth -= 1;
        result
    }

    /// Fails if a tree of this height is too high.
    pub(super) fn check_height(&mut self, height: u32) -> Parsed<()> {
        self.height = self.height.max(height);
        if HEIGHT_MAX < height {
            Err(self.fail_as(SyntaxErrorKind::TooDeep))
        } else {
            Ok(())
        }
    }

    pub(super) fn is(&mut self, keyword: Keyword) -> bool {
        self.keyword() == Some(keyword)
    }

    pub(super) fn is_any(&mut self, keywords: &[Keyword]) -> bool {
        self.keyword()
            .is_some_and(|keyword| keywords.contains(&keyword))
    }

    /// Whether these words come next.
    pub(super) fn are(&mut self, keywords: &[Keyword]) -> bool {
        keywords
            .iter()
            .enumerate()
            .all(|(ahead, &keyword)| self.keyword_at(ahead) == Some(keyword))
    }

    pub(super) fn eat(&mut self, keyword: Keyword) -> bool {
        let found = self.is(keyword);
        if found {
            self.at += 1;
        }
        found
    }

    pub(super) fn eat_all(&mut self, keywords: &[Keyword]) -> bool {
        let found = self.are(keywords);
        if found {
            self.at += keywords.len();
        }
        found
    }

    pub(super) fn eat_any(&mut self, keywords: &[Keyword]) -> Option<Keyword> {
        let keyword = self
            .keyword()
            .filter(|keyword| keywords.contains(keyword))?;
        self.at += 1;
        Some(keyword)
    }

    /// Whether a word comes that is no keyword.
    pub(super) fn is_word(&mut self, word: &str) -> bool {
        let token = self.peek();
        token.kind == Kind::Word && self.text(token.span).eq_ignore_ascii_case(word.as_bytes())
    }

    /// Consumes a word that is no keyword of MariaDB, in any case.
    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.at += 1;
        }
        found
    }

    pub(super) fn eat_kind(&mut self, kind: Kind) -> bool {
        let found = kind != Kind::End && self.kind() == kind;
        if found {
            self.at += 1;
        }
        found
    }

    pub(super) fn expect(&mut self, keyword: Keyword) -> Parsed<()> {
        if self.eat(keyword) {
            Ok(())
        } else {
            Err(self.fail())
        }
    }

    pub(super) fn expect_all(&mut self, keywords: &[Keyword]) -> Parsed<()> {
        keywords
            .iter()
            .try_for_each(|&keyword| self.expect(keyword))
    }

    pub(super) fn expect_kind(&mut self, kind: Kind) -> Parsed<()> {
        if self.eat_kind(kind) {
            Ok(())
        } else {
            Err(self.fail())
        }
    }

    /// Whether a statement can end here.
    pub(super) fn is_end(&mut self) -> bool {
        matches!(self.kind(), Kind::End | Kind::Semicolon)
    }

    /// `IF EXISTS`.
    pub(super) fn if_exists(&mut self) -> Parsed<bool> {
        if !self.eat(Keyword::If) {
            return Ok(false);
        }
        self.expect(Keyword::Exists)?;
        Ok(true)
    }

    /// `IF NOT EXISTS`.
    pub(super) fn if_not_exists(&mut self) -> Parsed<bool> {
        if !self.eat(Keyword::If) {
            return Ok(false);
        }
        self.expect_all(&[Keyword::Not, Keyword::Exists])?;
        Ok(true)
    }

    /// `rule, rule, ..`.
    pub(super) fn list<T>(&mut self, rule: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        self.list_within(SyntaxErrorKind::TooLong, rule)
    }

    /// The same with an error of its own for more than [`LIST_LEN_MAX`] items.
    pub(super) fn list_within<T>(
        &mut self,
        too_long: SyntaxErrorKind,
        mut rule: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut list = vec![rule(self)?];
        while self.eat_kind(Kind::Comma) {
            if LIST_LEN_MAX <= list.len() {
                return Err(self.fail_as(too_long));
            }
            list.push(rule(self)?);
        }
        Ok(list)
    }

    /// Lets the caller decide whether the parser goes on. It stops at the next token.
    pub(super) fn look(&mut self) {
        self.is_stopped |= !(self.may_go_on)();
    }

    /// Fails if a list of this length may have no further item.
    pub(super) fn check_length(&mut self, length: usize) -> Parsed<()> {
        if length < LIST_LEN_MAX {
            return Ok(());
        }
        Err(self.fail_as(SyntaxErrorKind::TooLong))
    }

    /// `(rule, rule, ..)`.
    pub(super) fn paren_list<T>(
        &mut self,
        rule: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        self.expect_kind(Kind::LeftParen)?;
        let list = self.list(rule)?;
        self.expect_kind(Kind::RightParen)?;
        Ok(list)
    }

    /// Whether the token can be a name.
    pub(super) fn is_name(token: Token) -> bool {
        match token.kind {
            Kind::Quoted | Kind::Name => true,
            Kind::Word => token
                .keyword
                .is_none_or(|word| word.class() != Class::Reserved),
            _ => false,
        }
    }

    /// A name.
    pub(super) fn ident(&mut self) -> Parsed<Ident> {
        let token = self.peek();
        if !Self::is_name(token) {
            return Err(self.fail());
        }
        self.at += 1;
        self.ident_of(token)
    }

    /// The name in a token, reserved or not.
    pub(super) fn ident_of(&self, token: Token) -> Parsed<Ident> {
        let raw = self.text(token.span);
        let value = match token.kind {
            Kind::Quoted => token::name_value(raw),
            Kind::String => token::string_value(raw, self.mode),
            _ => Cow::Borrowed(raw),
        };
        let not_utf8 = Fail {
            kind: SyntaxErrorKind::NotUtf8,
            offset: token.span.start as usize,
        };
        let text = String::from_utf8(value.into_owned()).map_err(|_| not_utf8)?;
        Ok(Ident {
            text,
            span: token.span,
        })
    }

    /// A name, or a string used as one.
    pub(super) fn ident_or_string(&mut self) -> Parsed<Ident> {
        let token = self.peek();
        if token.kind == Kind::String {
            self.at += 1;
            return self.ident_of(token);
        }
        self.ident()
    }

    /// `name` or `schema.name`.
    pub(super) fn object_name(&mut self) -> Parsed<ObjectName> {
        if self.kind() == Kind::Dot {
            self.at += 1;
            return Ok(ObjectName {
                schema: None,
                name: self.ident()?,
            });
        }
        let first = self.ident()?;
        if self.kind() == Kind::Dot {
            self.at += 1;
            return Ok(ObjectName {
                schema: Some(first),
                name: self.ident()?,
            });
        }
        Ok(ObjectName {
            schema: None,
            name: first,
        })
    }

    /// `(a, b)`.
    pub(super) fn ident_list(&mut self) -> Parsed<Vec<Ident>> {
        self.paren_list(Self::ident)
    }

    /// One plain string.
    pub(super) fn string(&mut self) -> Parsed<Vec<u8>> {
        let token = self.peek();
        if token.kind != Kind::String {
            return Err(self.fail());
        }
        self.at += 1;
        Ok(token::string_value(self.text(token.span), self.mode).into_owned())
    }

    /// Digits.
    pub(super) fn unsigned(&mut self) -> Parsed<u64> {
        let token = self.peek();
        let text = std::str::from_utf8(self.text(token.span)).ok();
        let value = text.and_then(|text| text.parse().ok());
        let (Kind::Integer, Some(value)) = (token.kind, value) else {
            return Err(self.fail());
        };
        self.at += 1;
        Ok(value)
    }

    /// Digits of a length.
    pub(super) fn length(&mut self) -> Parsed<u32> {
        let fail = self.fail();
        u32::try_from(self.unsigned()?).map_err(|_| fail)
    }

    /// Skips everything to the end of the statement.
    pub(super) fn refuse_rest(&mut self, name: &str, start: Span) -> Refused {
        while !self.is_end() {
            self.bump();
        }
        Refused {
            name: name.to_owned(),
            span: self.span_from(start),
        }
    }

    /// Skips everything to the end of the text: a body may contain `;`.
    pub(super) fn refuse_all(&mut self, name: &str, start: Span) -> Refused {
        while self.kind() != Kind::End {
            self.bump();
        }
        Refused {
            name: name.to_owned(),
            span: self.span_from(start),
        }
    }

    /// Skips `( .. )`, whatever it contains.
    pub(super) fn skip_parens(&mut self) -> Parsed<()> {
        self.expect_kind(Kind::LeftParen)?;
        let mut open = 1_usize;
        while 0 < open {
            match self.kind() {
                Kind::LeftParen => open += 1,
                Kind::RightParen => open -= 1,
                Kind::End | Kind::Semicolon => return Err(self.fail()),
                _ => {}
            }
            self.at += 1;
        }
        Ok(())
    }

    /// The lookahead distance of the token after the group whose `(` is `from` tokens ahead.
    pub(super) fn behind_parens(&mut self, from: usize) -> usize {
        let mut ahead = from;
        let mut open = 0_usize;
        loop {
            match self.kind_at(ahead) {
                Kind::LeftParen => open += 1,
                Kind::RightParen => open = open.saturating_sub(1),
                Kind::End => return ahead,
                _ => {}
            }
            ahead += 1;
            if open == 0 {
                return ahead;
            }
        }
    }
}
