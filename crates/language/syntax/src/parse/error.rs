//! What is wrong with a text, in MariaDB's words.

use thiserror::Error;

/// Why a text is no statement.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}", self.message())]
pub struct SyntaxError {
    /// What kind of wrong.
    pub kind: SyntaxErrorKind,
    /// The text from the token that cannot stand there, at most 80 characters of it.
    pub near: String,
    /// The line of that token, from 1.
    pub line: u32,
    /// The offset of that token.
    pub offset: usize,
}

/// Kinds of [`SyntaxError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyntaxErrorKind {
    /// A token that cannot stand where it stands: error 1064.
    Unexpected,
    /// Nothing but blanks: error 1065.
    Empty,
    /// Nested deeper than the limits allow: error 1436.
    TooDeep,
    /// A name that is not UTF-8: error 1300.
    NotUtf8,
}

/// Where and why the parser stopped.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fail {
    pub(super) kind: SyntaxErrorKind,
    pub(super) offset: usize,
}

/// How much of the text a message quotes, in characters: MariaDB's `%-.80s`.
const NEAR_CHARS_MAX: usize = 80;

impl SyntaxError {
    pub(super) fn new(text: &[u8], fail: Fail) -> SyntaxError {
        let offset = fail.offset.min(text.len());
        let (before, rest) = text.split_at(offset);
        let near = rest
            .get(..rest.len().min(4 * NEAR_CHARS_MAX))
            .unwrap_or_default();
        let near = String::from_utf8_lossy(near)
            .chars()
            .take(NEAR_CHARS_MAX)
            .collect();
        let lines = before.iter().filter(|&&byte| byte == b'\n').count();
        let line = u32::try_from(lines).unwrap_or(u32::MAX - 1) + 1;
        SyntaxError {
            kind: fail.kind,
            near,
            line,
            offset,
        }
    }

    /// MariaDB's number of the error.
    #[must_use]
    pub fn code(&self) -> u16 {
        match self.kind {
            SyntaxErrorKind::Unexpected => 1064,
            SyntaxErrorKind::Empty => 1065,
            SyntaxErrorKind::TooDeep => 1436,
            SyntaxErrorKind::NotUtf8 => 1300,
        }
    }

    /// The message that clients see.
    #[must_use]
    pub fn message(&self) -> String {
        match self.kind {
            SyntaxErrorKind::Unexpected => format!(
                "You have an error in your SQL syntax; check the manual that corresponds to your \
                 MariaDB server version for the right syntax to use near '{}' at line {}",
                self.near, self.line
            ),
            SyntaxErrorKind::Empty => "Query was empty".to_owned(),
            SyntaxErrorKind::TooDeep => format!(
                "Statement is nested too deeply near '{}' at line {}",
                self.near, self.line
            ),
            SyntaxErrorKind::NotUtf8 => {
                format!("Invalid utf8mb4 character string: '{}'", self.near)
            }
        }
    }
}
