//! [`folded`]: a text as rules see it, whatever blanks its program puts between words.

use settings::SqlMode;
use syntax::token::{Kind, Lexer};

/// What becomes of literals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Literals {
    /// They are seen.
    Stay,
    /// `?` stands for each. So it does for what cannot be read, to the end of the text.
    Hide,
}

impl Literals {
    fn hides(self, kind: Kind) -> bool {
        self == Literals::Hide
            && matches!(
                kind,
                Kind::String
                    | Kind::NationalString
                    | Kind::HexString
                    | Kind::BitString
                    | Kind::HexNumber
                    | Kind::BitNumber
                    | Kind::Integer
                    | Kind::Decimal
                    | Kind::Float
                    | Kind::Invalid
            )
    }
}

/// A text without blanks at its ends, and with one in the place of all blanks and comments between
/// two words or signs. Between two minus signs there is always one. What is in quotes stays, and so
/// does what cannot be read.
pub(crate) fn folded(text: &[u8], mode: SqlMode, literals: Literals) -> Vec<u8> {
    let mut folded = Vec::with_capacity(text.len());
    let mut lexer = Lexer::new(text, mode);
    let mut last_end = 0;
    let mut is_behind_minus = false;
    loop {
        let token = lexer.next_token();
        if token.kind == Kind::End {
            return folded;
        }
        let is_read = token.kind != Kind::Invalid;
        let bytes = match is_read {
            _ if literals.hides(token.kind) => b"?",
            true => token.span.of(text),
            false => {
                let start = usize::try_from(token.span.start).expect("a text fits into memory");
                text.get(start..).unwrap_or_default()
            }
        };
        let is_behind_gap = last_end < token.span.start && !folded.is_empty();
        // Two minus signs in front of a gap would begin a comment.
        let is_second_minus = is_behind_minus && token.kind == Kind::Minus;
        if (is_behind_gap || is_second_minus) && !bytes.is_empty() {
            folded.push(b' ');
        }
        is_behind_minus = token.kind == Kind::Minus;
        folded.extend_from_slice(bytes);
        if !is_read {
            return folded;
        }
        last_end = token.span.end;
    }
}

/// The same with `?` for each literal. A canonical text has those of select lists, and of whatever
/// else a plan may depend on.
pub fn without_literals(text: &[u8], mode: SqlMode) -> Vec<u8> {
    folded(text, mode, Literals::Hide)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_literal_is_left() {
        let hidden = |text: &str, mode| without_literals(text.as_bytes(), mode);
        let usual = SqlMode::default();
        for (text, expected) in [
            (
                "SELECT 'a', N'b', x'1f', 0b1, 1, 1.5, 2e3",
                "SELECT ?, ?, ?, ?, ?, ?, ?",
            ),
            ("SELECT \"a\",`b` /* 7 */ FROM t1", "SELECT ?,`b` FROM t1"),
            ("SELECT 'open  ", "SELECT ?"),
        ] {
            assert_eq!(hidden(text, usual), expected.as_bytes(), "{text}");
        }
        let text = r"SELECT 'a\', b, 'c'";
        let mode = usual.with(SqlMode::NO_BACKSLASH_ESCAPES);
        assert_eq!(hidden(text, mode), b"SELECT ?, b, ?");
        let mode = usual.with(SqlMode::ANSI_QUOTES);
        assert_eq!(hidden("SELECT \"a\", 'b'", mode), b"SELECT \"a\", ?");
    }

    fn fold(text: &str) -> String {
        let bytes = folded(text.as_bytes(), SqlMode::default(), Literals::Stay);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn gaps_are_one_blank() {
        for (text, expected) in [
            ("", ""),
            (" \n ", ""),
            ("SELECT 1", "SELECT 1"),
            (
                "  delete \t\r\n from/**/t -- all\n where\n\na=1 ",
                "delete from t where a=1",
            ),
            (
                "SELECT '  a  ' , \"b /* */\",`c  d`",
                "SELECT '  a  ' , \"b /* */\",`c  d`",
            ),
            ("a -  -1", "a - -1"),
            ("a --/**/1---/**/", "a - - 1- - -"),
            ("/*!50000 DROP */  TABLE t", "DROP TABLE t"),
            ("SELECT  'open  ", "SELECT 'open  "),
        ] {
            assert_eq!(fold(text), expected, "{text:?}");
            assert_eq!(fold(expected), expected);
        }
    }
}
