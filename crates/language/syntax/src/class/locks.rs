//! [`lock_names`]: the user locks that a text asks for.

use builtin::Reach;
use settings::SqlMode;

use crate::token::{Kind, Lexer};

/// The names of the locks that a text takes by `GET_LOCK`, as written. `None` if one of them is
/// not written in single quotes, or not of ASCII letters and signs alone: with a backslash, or in
/// another mode or character set, it could be another name later.
#[must_use]
pub fn lock_names(text: &[u8], mode: SqlMode) -> Option<Vec<&[u8]>> {
    let mut names = Vec::new();
    let mut lexer = Lexer::new(text, mode);
    loop {
        let token = lexer.next_token();
        match token.kind {
            Kind::End => return Some(names),
            Kind::Invalid => return None,
            Kind::Word => {}
            _ => continue,
        }
        if builtin::reach(token.span.of(text)) != Some(Reach::TakesLock) {
            continue;
        }
        let mut call = lexer.clone();
        if call.next_token().kind != Kind::LeftParen {
            continue;
        }
        let name = call.next_token();
        let bytes = name.span.of(text);
        let is_quoted = name.kind == Kind::String && bytes.starts_with(b"'");
        let is_plain = bytes.iter().all(|it| it.is_ascii() && *it != b'\\');
        if !is_quoted || !is_plain || call.next_token().kind != Kind::Comma {
            return None;
        }
        names.push(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Option<Vec<&str>> {
        let names = lock_names(text.as_bytes(), SqlMode::default())?;
        let names = names.into_iter();
        Some(names.map(|it| str::from_utf8(it).unwrap()).collect())
    }

    #[test]
    fn strings_are_names() {
        assert_eq!(names("SELECT 1"), Some(vec![]));
        assert_eq!(names("SELECT get_lock('a', 1)"), Some(vec!["'a'"]));
        assert_eq!(
            names("DO GET_LOCK ( 'it''s' , ? ); SELECT GET_LOCK('b', 0), get_lock FROM t"),
            Some(vec!["'it''s'", "'b'"])
        );
        assert_eq!(
            names("SELECT 'GET_LOCK(a, 1)' -- GET_LOCK(@a, 1)"),
            Some(vec![])
        );
        assert_eq!(
            names("SELECT /*!50000 GET_LOCK('a', 1) */"),
            Some(vec!["'a'"])
        );
    }

    #[test]
    fn other_names_are_not_known() {
        for name in [
            "@a",
            "?",
            "'a' 'b'",
            "CONCAT('a', 'b')",
            "_utf8'a'",
            "'\\a'",
            "'\u{e4}'",
            "a",
            "\"a\"",
        ] {
            assert_eq!(
                names(&format!("SELECT GET_LOCK({name}, 1)")),
                None,
                "{name}"
            );
        }
        assert_eq!(names("SELECT GET_LOCK('a'"), None);
        assert_eq!(names("SELECT GET_LOCK('a"), None);
    }
}
