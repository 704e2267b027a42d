//! A cursor over the tokens of a statement that sees one token ahead.

use settings::SqlMode;

use crate::keyword::Keyword as K;
use crate::token::{Kind, Lexer, Token};

/// The cursor. Cheap to copy, so that a look ahead is a copy.
#[derive(Debug, Clone)]
pub(super) struct Words<'a> {
    pub(super) source: &'a [u8],
    lexer: Lexer<'a>,
    /// The current token.
    pub(super) token: Token,
    /// The end of the token before it.
    pub(super) last_end: usize,
}

impl<'a> Words<'a> {
    pub(super) fn new(source: &'a [u8], mode: SqlMode) -> Words<'a> {
        let mut lexer = Lexer::new(source, mode);
        let token = lexer.next_keyword();
        Words {
            source,
            lexer,
            token,
            last_end: 0,
        }
    }

    pub(super) fn bump(&mut self) {
        self.last_end = self.end();
        self.token = self.lexer.next_keyword();
    }

    /// The token after the current one.
    pub(super) fn ahead(&self) -> Token {
        self.lexer.clone().next_keyword()
    }

    pub(super) fn keyword(&self) -> Option<K> {
        self.token.keyword
    }

    pub(super) fn is(&self, keyword: K) -> bool {
        self.token.keyword == Some(keyword)
    }

    /// Steps over a keyword; false if it is another token.
    pub(super) fn take(&mut self, keyword: K) -> bool {
        let is_it = self.is(keyword);
        if is_it {
            self.bump();
        }
        is_it
    }

    /// Steps over a sign; false if it is another token.
    pub(super) fn take_sign(&mut self, kind: Kind) -> bool {
        let is_it = self.token.kind == kind;
        if is_it {
            self.bump();
        }
        is_it
    }

    /// The text of the current token.
    pub(super) fn text(&self) -> &'a [u8] {
        self.token.span.of(self.source)
    }

    /// Where the current token begins.
    pub(super) fn start(&self) -> usize {
        self.token.span.start as usize
    }

    /// Where the current token ends.
    pub(super) fn end(&self) -> usize {
        self.token.span.end as usize
    }

    /// The source between two offsets.
    pub(super) fn between(&self, start: usize, end: usize) -> &'a [u8] {
        self.source.get(start..end).unwrap_or_default()
    }

    /// Between the last token and the current one: blanks and comments.
    pub(super) fn gap(&self) -> &'a [u8] {
        self.between(self.last_end, self.start())
    }

    /// The end of the text, or of the statement.
    pub(super) fn is_at_end(&self) -> bool {
        matches!(self.token.kind, Kind::End | Kind::Semicolon)
    }

    /// A name or a word that can be one. The cursor steps over it.
    pub(super) fn name(&mut self) -> &'a [u8] {
        let text = match self.token.kind {
            Kind::Word | Kind::Name | Kind::Quoted => self.text(),
            _ => return &[],
        };
        self.bump();
        text
    }
}
