//! [`Control`]: what statements order of the program that the server is a part of.
//!
//! A gateway gives its orders to servers and ends its clients by it. A database has none: SET
//! SERVER, RELOAD CONFIGURATION and EXPLAIN ROUTE are not supported there, and KILL ends its own
//! sessions alone.
//! Sessions check privileges before they order anything.

use clients::KillOrder;
use errcode::{ClientError, WORDS_NO_SUCH_ORDER};
use store::LocalFuture;
use syntax::ast::ExplainRoute;

/// What EXPLAIN ROUTE tells: properties, and what they are.
pub type Properties = Vec<(&'static str, Option<String>)>;

/// See the module's head.
pub trait Control: Send + Sync {
    /// Orders what a server is to be used for. Ready once that is so.
    fn set_server(
        &self,
        name: &str,
        wanted: Wanted,
    ) -> LocalFuture<'static, Result<(), ClientError>>;

    /// Counts from nothing again what a table of this name shows. Ready once that is so.
    ///
    /// # Errors
    /// The table shows nothing that is counted so.
    fn empty_table(&self, name: &str) -> LocalFuture<'static, Result<(), ClientError>>;

    /// Reads the settings file again. Returns what has come of it, in words.
    ///
    /// # Errors
    /// The file has mistakes, and nothing was changed.
    fn reload(&self) -> LocalFuture<'static, Result<String, ClientError>>;

    /// Makes kept results void: those that were read from tables of these names, or all if there
    /// are none.
    fn flush_results(&self, tables: &[String]);

    /// Tells where a gateway would send the first statement of a session, and why.
    ///
    /// # Errors
    /// There is no such service, or it is not clear which is meant.
    fn explain_route(&self, asked: &ExplainRoute) -> Result<Properties, ClientError>;

    /// Tells where a gateway has sent the statement of a client, and why.
    ///
    /// # Errors
    /// There is no client of this number.
    fn explain_connection(&self, number: u64) -> Result<Properties, ClientError>;

    /// Ends a client that is no session of this server, or the statement that it has running.
    ///
    /// # Errors
    /// There is no client of this number.
    fn kill(&self, number: u64, order: KillOrder) -> Result<(), ClientError>;
}

/// What a server is to be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// For what it can be used.
    Up,
    /// For what is open there, and for nothing new.
    Drain,
    /// For nothing.
    Maintenance,
}

impl Wanted {
    /// What a word of SET SERVER means.
    pub(crate) fn of_word(word: &[u8]) -> Result<Wanted, ClientError> {
        const WORDS: [(&str, Wanted); 3] = [
            ("up", Wanted::Up),
            ("drain", Wanted::Drain),
            ("maintenance", Wanted::Maintenance),
        ];
        let is_it = |(known, _): &&(&str, Wanted)| known.as_bytes().eq_ignore_ascii_case(word);
        let found = WORDS.iter().find(is_it).map(|(_, wanted)| *wanted);
        found.ok_or_else(|| {
            let word = String::from_utf8_lossy(word);
            ClientError::worded(WORDS_NO_SUCH_ORDER, &[&word])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_known_in_any_case() {
        assert_eq!(Wanted::of_word(b"UP"), Ok(Wanted::Up));
        assert_eq!(Wanted::of_word(b"drain"), Ok(Wanted::Drain));
        assert_eq!(Wanted::of_word(b"Maintenance"), Ok(Wanted::Maintenance));
        let refused = Wanted::of_word(b"down").unwrap_err();
        assert_eq!(refused.code.number(), 1231);
        assert!(refused.message.contains("'down'"), "{refused}");
    }
}
