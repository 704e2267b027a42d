//! The assignments of a SET, one by one, without a tree.
//!
//! [`assignments`] serves both stages, and a gateway that must give a variable to another
//! connection: it says which variable is set, for whom, and whether to a constant.
//!
//! `SET GLOBAL a = 1, b = 2` sets both globally: the word holds until the next one. It does not
//! hold for `@@c = 3`, which is the session's, nor for what has no scope. `@@tx_read_only = 1` is
//! of the next transaction alone, `tx_read_only = 1` of the session.

use settings::SqlMode;

use super::words::Words;
use crate::keyword::Keyword as K;
use crate::token::{Kind, Token};

/// One assignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assignment<'a> {
    /// Whose variable it is.
    pub scope: Scope,
    /// What is set.
    pub target: Target<'a>,
    /// To what.
    pub value: Value<'a>,
}

/// Whose variable is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The session's, by its name alone, by `SESSION` or by `@@session.`; `LOCAL` is the same.
    Session,
    /// The session's, by `@@name`: for the characteristics of transactions, the next one's.
    Bare,
    /// The server's: `GLOBAL`, and MySQL's `PERSIST`.
    Global,
}

/// What is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'a> {
    /// `@name`, the sign and quotes included.
    User(&'a [u8]),
    /// A system variable, as written; of `a.b` the last part.
    System(&'a [u8]),
    /// `NAMES`; the value holds the character set and perhaps its collation.
    Names,
    /// `CHARACTER SET`.
    CharacterSet,
    /// `TRANSACTION`; the value holds the characteristics.
    Transaction,
    /// `PASSWORD`.
    Password,
    /// `ROLE`.
    Role,
    /// `DEFAULT ROLE`.
    DefaultRole,
    /// Nothing that is known.
    Unknown,
}

/// The value of an assignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Value<'a> {
    /// What it is.
    pub kind: ValueKind,
    /// As written.
    pub text: &'a [u8],
}

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ValueKind {
    /// `DEFAULT`: the server's value.
    Default,
    /// A number, a string, NULL or TRUE.
    Literal,
    /// A word: `ON`, `utf8mb4`.
    Word,
    /// Anything else.
    Expression,
}

impl Value<'_> {
    /// True if it means the same on each connection.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        matches!(self.kind, ValueKind::Literal | ValueKind::Word)
    }

    /// Whether it is this word, quoted or not.
    pub(super) fn is(&self, word: &str) -> bool {
        let inner = match self.text {
            [b'\'', inner @ .., b'\''] | [b'"', inner @ .., b'"'] => inner,
            whole => whole,
        };
        inner.eq_ignore_ascii_case(word.as_bytes())
    }
}

impl Target<'_> {
    /// Whether it is the system variable of that name.
    #[must_use]
    pub fn is_system(&self, name: &str) -> bool {
        let Target::System(text) = self else {
            return false;
        };
        let inner = match text {
            [b'`', inner @ .., b'`'] | [b'"', inner @ .., b'"'] => inner,
            whole => whole,
        };
        inner.eq_ignore_ascii_case(name.as_bytes())
    }
}

/// The assignments of a text that begins with `SET` or `SET STATEMENT`, up to its first `;`. There
/// are none in any other text.
#[must_use]
pub fn assignments(text: &[u8], mode: SqlMode) -> Assignments<'_> {
    let mut words = Words::new(text, mode);
    if words.take(K::Set) {
        Assignments::after_set(words)
    } else {
        Assignments::ended(words)
    }
}

/// The iterator of [`assignments`].
#[derive(Debug, Clone)]
pub struct Assignments<'a> {
    words: Words<'a>,
    /// The last scope that was written as a word.
    scope: Scope,
    /// `SET STATEMENT`: `FOR` ends it.
    is_of_statement: bool,
    is_ended: bool,
}

impl<'a> Assignments<'a> {
    /// `words` is behind `SET`.
    pub(super) fn after_set(mut words: Words<'a>) -> Assignments<'a> {
        let is_of_statement =
            words.is(K::Statement) && !matches!(words.ahead().kind, Kind::Equal | Kind::Assign);
        if is_of_statement {
            words.bump();
        }
        Assignments {
            words,
            scope: Scope::Session,
            is_of_statement,
            is_ended: false,
        }
    }

    fn ended(words: Words<'a>) -> Assignments<'a> {
        Assignments {
            words,
            scope: Scope::Session,
            is_of_statement: false,
            is_ended: true,
        }
    }

    /// True of `SET STATEMENT`.
    pub(super) fn is_of_statement(&self) -> bool {
        self.is_of_statement
    }

    /// The cursor, which stands behind the last assignment read.
    pub(super) fn into_words(self) -> Words<'a> {
        self.words
    }

    /// The scope and the target. The cursor stands at the value afterwards.
    fn target(&mut self) -> (Scope, Target<'a>) {
        let words = &mut self.words;
        match words.token.kind {
            Kind::UserVariable => {
                let name = words.text();
                words.bump();
                return (Scope::Session, Target::User(name));
            }
            Kind::AtAt => {
                words.bump();
                let is_scoped = words.ahead().kind == Kind::Dot;
                let scope = word_scope(words).filter(|_| is_scoped);
                if scope.is_some() {
                    words.bump();
                    words.bump();
                }
                return (scope.unwrap_or(Scope::Bare), self.system());
            }
            _ => {}
        }
        let is_name = matches!(words.ahead().kind, Kind::Equal | Kind::Assign);
        let written = word_scope(words).filter(|_| !is_name);
        if let Some(scope) = written {
            self.scope = scope;
            words.bump();
        }
        let is_transaction =
            words.is(K::Transaction) && !matches!(words.ahead().kind, Kind::Equal | Kind::Assign);
        if is_transaction {
            words.bump();
            return (written.unwrap_or(Scope::Bare), Target::Transaction);
        }
        if let Some(target) = self.phrase() {
            return (Scope::Session, target);
        }
        (self.scope, self.system())
    }

    /// `NAMES`, `CHARACTER SET` and the like.
    fn phrase(&mut self) -> Option<Target<'a>> {
        let words = &mut self.words;
        let ahead = words.ahead();
        let is_name = matches!(ahead.kind, Kind::Equal | Kind::Assign);
        let (target, length) = match words.keyword()? {
            K::Password => (Target::Password, 1),
            _ if is_name => return None,
            K::Names => (Target::Names, 1),
            K::Charset => (Target::CharacterSet, 1),
            K::Character | K::Char if ahead.keyword == Some(K::Set) => (Target::CharacterSet, 2),
            K::Role => (Target::Role, 1),
            K::Default if ahead.keyword == Some(K::Role) => (Target::DefaultRole, 2),
            _ => return None,
        };
        for _ in 0..length {
            words.bump();
        }
        Some(target)
    }

    /// A system variable, or a part of a structured one.
    fn system(&mut self) -> Target<'a> {
        let mut name = self.words.name();
        while self.words.take_sign(Kind::Dot) {
            name = self.words.name();
        }
        if name.is_empty() {
            Target::Unknown
        } else {
            Target::System(name)
        }
    }

    fn value(&mut self, target: Target<'_>) -> Value<'a> {
        let words = &mut self.words;
        if !words.take_sign(Kind::Equal) {
            words.take_sign(Kind::Assign);
        }
        let (start, first) = (words.start(), words.token);
        let mut second = None;
        let (mut end, mut depth, mut count) = (start, 0_usize, 0_usize);
        while !words.is_at_end() {
            match words.token.kind {
                Kind::LeftParen => depth += 1,
                Kind::RightParen => depth = depth.saturating_sub(1),
                Kind::Comma if depth == 0 && target != Target::Transaction => break,
                Kind::Word if depth == 0 && self.is_of_statement && words.is(K::For) => break,
                _ => {}
            }
            count += 1;
            if count == 2 {
                second = Some(words.token);
            }
            end = words.end();
            words.bump();
        }
        Value {
            kind: value_kind(first, second, count),
            text: words.between(start, end),
        }
    }
}

impl<'a> Iterator for Assignments<'a> {
    type Item = Assignment<'a>;

    fn next(&mut self) -> Option<Assignment<'a>> {
        let is_at_for = self.is_of_statement && self.words.is(K::For);
        if self.is_ended || self.words.is_at_end() || is_at_for {
            self.is_ended = true;
            return None;
        }
        let (scope, target) = self.target();
        let value = self.value(target);
        self.is_ended = !self.words.take_sign(Kind::Comma);
        Some(Assignment {
            scope,
            target,
            value,
        })
    }
}

/// The scope that the current word names.
fn word_scope(words: &Words<'_>) -> Option<Scope> {
    match words.keyword() {
        Some(K::Global) => Some(Scope::Global),
        Some(K::Session | K::Local) => Some(Scope::Session),
        Some(_) => None,
        None => {
            let text = words.text();
            let is_kept =
                text.eq_ignore_ascii_case(b"PERSIST") || text.eq_ignore_ascii_case(b"PERSIST_ONLY");
            is_kept.then_some(Scope::Global)
        }
    }
}

fn value_kind(first: Token, second: Option<Token>, count: usize) -> ValueKind {
    let is_number =
        |token: Token| matches!(token.kind, Kind::Integer | Kind::Decimal | Kind::Float);
    match (count, first.kind) {
        (1, Kind::Word) => match first.keyword {
            Some(K::Default) => ValueKind::Default,
            Some(K::Null | K::True | K::False) => ValueKind::Literal,
            // `CURRENT_TIMESTAMP` is a call without parentheses.
            Some(keyword) if keyword.class() == crate::keyword::Class::Reserved => match keyword {
                K::On | K::Binary | K::All => ValueKind::Word,
                _ => ValueKind::Expression,
            },
            _ => ValueKind::Word,
        },
        (1, Kind::Name | Kind::Quoted) => ValueKind::Word,
        (1, Kind::String | Kind::NationalString | Kind::HexString | Kind::BitString) => {
            ValueKind::Literal
        }
        (1, Kind::HexNumber | Kind::BitNumber) => ValueKind::Literal,
        (1, _) if is_number(first) => ValueKind::Literal,
        (2, Kind::Minus | Kind::Plus) if second.is_some_and(is_number) => ValueKind::Literal,
        _ => ValueKind::Expression,
    }
}

#[cfg(test)]
mod tests;
