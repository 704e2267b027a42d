//! [`telling_calls`]: the calls by which an answer depends on more than tables, for people who ask.

use settings::SqlMode;

use super::facts::Facts;
use super::verdict::verdict;
use super::words::Words;
use crate::keyword::Keyword as K;
use crate::token::Kind;

/// The functions in a text that tell more than their arguments do, or of which nothing is known,
/// each once and as it is written. A name is judged as a query that calls it alone, so this agrees
/// with the verdict on the whole.
#[must_use]
pub fn telling_calls(text: &[u8], mode: SqlMode) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut words = Words::new(text, mode);
    // What stands before the current token: a qualifier with its dot, and a keyword.
    let mut qualifier: Option<&[u8]> = None;
    let mut before = None;
    while words.token.kind != Kind::End {
        let word = words.text();
        let is_name = matches!(words.token.kind, Kind::Word | Kind::Name | Kind::Quoted);
        let ahead = words.ahead().kind;
        // `WITH t (a) AS ..`, `.. AS t (a)`.
        let is_table = matches!(before, Some(K::As | K::With | K::Recursive | K::Into));
        let is_bare = || qualifier.is_none() && builtin::is_called_bare(word);
        if is_name && !is_table && (ahead == Kind::LeftParen || is_bare()) {
            let name = match qualifier {
                Some(qualifier) => [qualifier, b".", word].concat(),
                None => word.to_vec(),
            };
            let call = [b"SELECT ", &*name, b"()"].concat();
            let telling = Facts::NOT_DETERMINISTIC.with(Facts::CALLS_UNKNOWN);
            let shown = format!("{}()", String::from_utf8_lossy(&name));
            if verdict(&call, mode).facts.has_any(telling) && !found.contains(&shown) {
                found.push(shown);
            }
        }
        if ahead == Kind::Dot && is_name {
            qualifier = Some(word);
        } else if words.token.kind != Kind::Dot {
            qualifier = None;
            before = words.keyword();
        }
        words.bump();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_functions_are_those_that_tell_more_than_their_arguments() {
        for (text, expected) in [
            ("SELECT NOW(), a, now() FROM t", "NOW() now()"),
            ("SELECT UPPER(RAND()), COUNT(*) FROM t", "RAND()"),
            ("SELECT CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP()"),
            ("SELECT SYSDATE, t.sysdate", "SYSDATE()"),
            (
                "SELECT DEFAULT(a), MAKETIME(1, 2, 3)",
                "DEFAULT() MAKETIME()",
            ),
            ("SELECT f(1), d.g(2), `h`(3)", "f() d.g() `h`()"),
            ("WITH w (a) AS (SELECT 1) SELECT a IN (1) FROM w AS x", ""),
            (
                "SELECT LAST_INSERT_ID(), GET_LOCK('a', 1)",
                "LAST_INSERT_ID() GET_LOCK()",
            ),
            ("SELECT a FROM t WHERE b = 'NOW()'", ""),
            ("", ""),
        ] {
            let found = telling_calls(text.as_bytes(), SqlMode::default());
            assert_eq!(found.join(" "), expected, "{text}");
        }
    }
}
