//! [`reads_in_its_own_way`]: whether a session has asked for an isolation in which a kept result
//! would be wrong.

use connection_state::CommandList;
use settings::SqlMode;
use syntax::class::set::{Assignment, Target};
use wire::CommandByte;

use crate::command::{has_word, sets_only};

/// Whether one of these commands may have set another isolation than READ COMMITTED or REPEATABLE
/// READ. What is not one of the plain forms counts as such.
pub fn reads_in_its_own_way(commands: &CommandList, mode: SqlMode) -> bool {
    let is_own = |(byte, text): (u8, &[u8])| {
        byte == CommandByte::QUERY && names_isolation(text) && !sets_only(text, mode, is_usual)
    };
    commands.iter().any(is_own)
}

fn names_isolation(text: &[u8]) -> bool {
    has_word(text, "isolation")
}

/// Whether an assignment sets no isolation, or one of the two.
fn is_usual(assignment: &Assignment<'_>) -> bool {
    let value = assignment.value.text;
    let is_any = |known: [&str; 2], text: &[u8]| {
        let mut known = known.iter();
        known.any(|it| text.eq_ignore_ascii_case(it.as_bytes()))
    };
    match assignment.target {
        Target::Transaction => value.split(|it| *it == b',').all(|part| {
            let words = part.split(u8::is_ascii_whitespace);
            let words: Vec<_> = words.filter(|it| !it.is_empty()).collect();
            let known = [
                "ISOLATION LEVEL READ COMMITTED",
                "ISOLATION LEVEL REPEATABLE READ",
            ];
            let text = words.join(&b' ');
            !names_isolation(&text) || is_any(known, &text)
        }),
        Target::System(name) if names_isolation(name) => {
            let inner = match value {
                [b'\'', inner @ .., b'\''] | [b'"', inner @ .., b'"'] => inner,
                whole => whole,
            };
            is_any(["READ-COMMITTED", "REPEATABLE-READ"], inner)
        }
        Target::User(name) => !names_isolation(name) && !names_isolation(value),
        _ => !names_isolation(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_forms_of_two_levels_are_usual() {
        let is_own = |text: &str| {
            let commands = [(CommandByte::QUERY, text.as_bytes())];
            let commands = CommandList::of(commands.into_iter());
            reads_in_its_own_way(&commands, SqlMode::default())
        };
        for text in [
            "SET NAMES utf8mb4",
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
            "set session transaction  isolation level\nrepeatable read, READ WRITE",
            "SET SESSION TRANSACTION READ ONLY",
            "SET tx_isolation = 'READ-COMMITTED', @a = 1",
            "SET @@session.transaction_isolation = \"repeatable-read\"",
        ] {
            assert!(!is_own(text), "{text}");
        }
        for text in [
            "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
            "SET SESSION TRANSACTION READ ONLY, ISOLATION LEVEL SERIALIZABLE",
            "SET SESSION TRANSACTION ISOLATION /* */ LEVEL READ COMMITTED",
            "SET tx_isolation = 3",
            "SET tx_isolation = 3 /* repeatable */",
            "SET tx_isolation = 0, @x = 'repeatable-read'",
            "SET @x = 'committed', tx_isolation = 3",
            "SET tx_isolation = 'READ-COMMITTED', tx_isolation = @a",
            "SET `tx_isolation` = 'SERIALIZABLE'",
            "SET SESSION tx_isolation = CONCAT('READ-UN', 'COMMITTED')",
            "PREPARE p FROM 'SET tx_isolation = 3'",
            "SET @isolation = 3",
        ] {
            assert!(is_own(text), "{text}");
        }
        let commands = CommandList::of([(CommandByte::INIT_DB, &b"isolation"[..])].into_iter());
        assert!(!reads_in_its_own_way(&commands, SqlMode::default()));
    }
}
