//! [`KillStatement`]: KILL with a number, from its tokens. Who passes statements on translates the
//! number, and needs no tree for that.

use settings::SqlMode;

use crate::keyword::Keyword as K;
use crate::token::{Kind, Lexer, Span};

/// `KILL [HARD | SOFT] [CONNECTION | QUERY] number`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KillStatement {
    /// What ends.
    pub target: KillTarget,
    /// The connection's number.
    pub number: u64,
    /// Where the number stands in the text.
    pub number_span: Span,
}

/// What a KILL ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KillTarget {
    /// The connection.
    Connection,
    /// Its running statement.
    Query,
}

impl KillStatement {
    /// The statement, if the text is nothing but a KILL with a literal number. Not so `KILL USER`,
    /// `KILL QUERY ID`, and a number that has to be computed.
    #[must_use]
    pub fn find(text: &[u8], mode: SqlMode) -> Option<KillStatement> {
        let mut lexer = Lexer::new(text, mode);
        if lexer.next_keyword().keyword != Some(K::Kill) {
            return None;
        }
        let mut token = lexer.next_keyword();
        if let Some(K::Hard | K::Soft) = token.keyword {
            token = lexer.next_keyword();
        }
        let target = match token.keyword {
            Some(K::Query) => KillTarget::Query,
            _ => KillTarget::Connection,
        };
        if let Some(K::Query | K::Connection) = token.keyword {
            token = lexer.next_keyword();
        }
        if token.kind != Kind::Integer {
            return None;
        }
        let digits = std::str::from_utf8(token.span.of(text)).ok()?;
        let number = digits.parse().ok()?;
        let mut behind = lexer.next_token();
        while behind.kind == Kind::Semicolon {
            behind = lexer.next_token();
        }
        (behind.kind == Kind::End).then_some(KillStatement {
            target,
            number,
            number_span: token.span,
        })
    }

    /// The text with another number.
    #[must_use]
    pub fn with_number(&self, text: &[u8], number: u64) -> Vec<u8> {
        let place = |offset: u32| usize::try_from(offset).unwrap_or(usize::MAX);
        let before = text.get(..place(self.number_span.start)).unwrap_or(text);
        let behind = text.get(place(self.number_span.end)..).unwrap_or_default();
        [before, number.to_string().as_bytes(), behind].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<(KillTarget, u64)> {
        let found = KillStatement::find(text.as_bytes(), SqlMode::default());
        found.map(|it| (it.target, it.number))
    }

    #[test]
    fn numbers_are_found_in_each_form() {
        use KillTarget::{Connection, Query};
        for (text, expected) in [
            ("KILL 7", Some((Connection, 7))),
            ("kill hard 7;", Some((Connection, 7))),
            ("/* x */ KILL SOFT CONNECTION 7", Some((Connection, 7))),
            ("KILL QUERY 18446744073709551615", Some((Query, u64::MAX))),
            ("KILL /*!50000 QUERY */ 7 -- all", Some((Query, 7))),
            ("KILL QUERY ID 7", None),
            ("KILL USER app", None),
            ("KILL 3 + 4", None),
            ("KILL @a", None),
            ("KILL 18446744073709551616", None),
            ("KILL 7; SELECT 1", None),
            ("KILL", None),
            ("SELECT 1", None),
            ("", None),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
    }

    #[test]
    fn another_number_takes_its_place() {
        for (text, expected) in [
            ("KILL QUERY 7;", "KILL QUERY 4711;"),
            ("/*a*/kill 18 -- b", "/*a*/kill 4711 -- b"),
        ] {
            let found = KillStatement::find(text.as_bytes(), SqlMode::default()).unwrap();
            let changed = found.with_number(text.as_bytes(), 4711);
            assert_eq!(changed, expected.as_bytes(), "{text}");
        }
    }
}
