//! [`may_speak_oracle`]: whether a session has asked for the dialect of Oracle.
//!
//! In sql_mode ORACLE words are calls that are columns elsewhere: `SYSDATE`, `SQL%ROWCOUNT`. So
//! nothing is known of what a query reads. Other modes change no more than the session's scope and
//! its status flags tell.

use connection_state::CommandList;
use settings::SqlMode;
use syntax::class::set::{Assignment, Target};
use syntax::token::{Kind, Lexer};
use wire::CommandByte;

use crate::command::{has_word, sets_only};

/// Whether one of these commands may have set sql_mode to a value with ORACLE. What is not one of
/// the plain forms counts as such.
pub fn may_speak_oracle(commands: &CommandList, mode: SqlMode) -> bool {
    let may_set = |(byte, text): (u8, &[u8])| {
        byte == CommandByte::QUERY
            && has_word(text, VARIABLE)
            && !sets_only(text, mode, |it| is_usual(it, mode))
    };
    commands.iter().any(may_set)
}

const VARIABLE: &str = "sql_mode";

const WORD: &str = "oracle";

/// Whether an assignment sets another variable, or the mode to a value without ORACLE.
fn is_usual(assignment: &Assignment<'_>, mode: SqlMode) -> bool {
    match assignment.target {
        Target::System(name) if has_word(name, VARIABLE) => {
            is_other_mode(assignment.value.text, mode)
        }
        Target::Unknown => false,
        _ => true,
    }
}

/// Whether a value of sql_mode is none with ORACLE: a number without its bit, or what is made of
/// strings, words and system variables without the word. An escape might hide the word.
fn is_other_mode(value: &[u8], mode: SqlMode) -> bool {
    let number = str::from_utf8(value).ok().and_then(|it| it.parse().ok());
    if let Some(bits) = number {
        return !SqlMode::of_bits(bits).has(SqlMode::ORACLE);
    }
    let mut lexer = Lexer::new(value, mode);
    loop {
        match lexer.next_token().kind {
            Kind::End => break,
            Kind::Word | Kind::Name | Kind::Quoted | Kind::String | Kind::NationalString => {}
            Kind::AtAt | Kind::Dot | Kind::Comma | Kind::LeftParen | Kind::RightParen => {}
            _ => return false,
        }
    }
    !has_word(value, WORD) && !value.contains(&b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_bring_oracle_is_known() {
        let may_speak = |text: &str| {
            let commands = [(CommandByte::QUERY, text.as_bytes())];
            let commands = CommandList::of(commands.into_iter());
            may_speak_oracle(&commands, SqlMode::default())
        };
        for text in [
            "SET NAMES utf8mb4",
            "SET @oracle = 'oracle'",
            "SET sql_mode = 'ANSI,TRADITIONAL', @a = 'ORACLE'",
            "SET sql_mode = DEFAULT",
            "SET SESSION sql_mode = ansi",
            "SET @@sql_mode = 4",
            "SET @old = @@sql_mode, sql_mode = ''",
            "SET sql_mode = CONCAT(@@session.sql_mode, ',ANSI_QUOTES')",
            "SET sql_mode = (SELECT REPLACE(@@sql_mode, 'ONLY_FULL_GROUP_BY', ''))",
        ] {
            assert!(!may_speak(text), "{text}");
        }
        for text in [
            "SET sql_mode = 'ORACLE'",
            "set session SQL_MODE = \"ansi,oracle\"",
            "SET @@sql_mode = oracle",
            "SET `sql_mode` = 'ORACLE'",
            "SET autocommit = 1, sql_mode = 'ORACLE'",
            "SET sql_mode = 512",
            "SET sql_mode = 0x200",
            "SET sql_mode = x'6f7261636c65'",
            "SET sql_mode = 'ora\\cle'",
            "SET sql_mode = @@sql_mode | 512",
            "SET sql_mode = @mode",
            "SET sql_mode = CONCAT(@@sql_mode, ',oracle')",
            "PREPARE p FROM 'SET sql_mode = 512'",
        ] {
            assert!(may_speak(text), "{text}");
        }
        let database = [(CommandByte::INIT_DB, &b"sql_mode"[..])];
        let commands = CommandList::of(database.into_iter());
        assert!(!may_speak_oracle(&commands, SqlMode::default()));
    }
}
