//! What the table knows about an error number.

use std::fmt;

use crate::code::{Entry, ErrorCode, Sqlstate};
use crate::format;
use crate::origin::{Origin, Retry};
use crate::table::TABLE;

impl ErrorCode {
    /// Every code of the table, in order of their numbers.
    pub fn all() -> impl Iterator<Item = ErrorCode> {
        TABLE.iter().map(|entry| entry.code)
    }

    /// The SQLSTATE; `HY000` for a number that the table does not hold.
    pub fn sqlstate(self) -> Sqlstate {
        self.entry()
            .map_or(Sqlstate::GENERAL, |entry| entry.sqlstate)
    }

    /// The name, for example `ER_DUP_ENTRY`, if the table holds the number.
    pub fn symbol(self) -> Option<&'static str> {
        self.entry().map(|entry| entry.symbol)
    }

    /// Who causes this error; the client for a number that the table does not hold.
    pub fn origin(self) -> Origin {
        self.entry().map_or(Origin::Client, |entry| entry.origin)
    }

    /// Whether a statement that met this error may be tried again; never for a number that the
    /// table does not hold.
    pub fn retry(self) -> Retry {
        self.entry().map_or(Retry::Never, |entry| entry.retry)
    }

    /// The message with places for arguments, in the manner of `printf`; empty for a number that
    /// the table does not hold.
    pub fn format(self) -> &'static str {
        self.entry().map_or("", |entry| entry.format)
    }

    /// The text of this error, with `arguments` in the places of its format, in their order.
    ///
    /// # Panics
    /// In debug builds if the format has another number of places: a bug of the caller.
    pub fn message(self, arguments: &[&dyn fmt::Display]) -> String {
        let text = self.format();
        debug_assert_eq!(
            format::places(text),
            arguments.len(),
            "arguments of {self:?}"
        );
        format::fill(text, arguments)
    }

    fn entry(self) -> Option<&'static Entry> {
        let index = TABLE.binary_search_by_key(&self, |entry| entry.code).ok()?;
        TABLE.get(index)
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.symbol() {
            Some(symbol) => write!(f, "{symbol}({})", self.0),
            None => write!(f, "ErrorCode({})", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ER_CONNECTION_KILLED, ER_DUP_ENTRY, ER_LOCK_DEADLOCK, ER_LOCK_WAIT_TIMEOUT,
        ER_NO_SUCH_TABLE, ER_SERVER_SHUTDOWN,
    };

    #[test]
    fn table_is_sorted_so_that_it_can_be_searched() {
        assert!(TABLE.is_sorted_by(|a, b| a.code < b.code));
        assert!(TABLE.len() > 500);
    }

    #[test]
    fn known_code_has_everything() {
        assert_eq!(ER_DUP_ENTRY.number(), 1062);
        assert_eq!(ER_DUP_ENTRY.sqlstate().as_str(), "23000");
        assert_eq!(ER_NO_SUCH_TABLE.symbol(), Some("ER_NO_SUCH_TABLE"));
        assert_eq!(ER_DUP_ENTRY.origin(), Origin::Client);
        assert_eq!(ER_DUP_ENTRY.retry(), Retry::Never);
        assert_eq!(ER_SERVER_SHUTDOWN.origin(), Origin::Ourselves);
        // What other clients do is no failure of the server.
        for code in [ER_LOCK_WAIT_TIMEOUT, ER_LOCK_DEADLOCK, ER_CONNECTION_KILLED] {
            assert_eq!(code.origin(), Origin::Client, "{code:?}");
        }
        assert_eq!(ER_LOCK_DEADLOCK.retry(), Retry::Now);
        assert_eq!(ER_SERVER_SHUTDOWN.retry(), Retry::IfRead);
        assert_eq!(format!("{ER_DUP_ENTRY:?}"), "ER_DUP_ENTRY(1062)");
    }

    #[test]
    fn unknown_code_is_general() {
        let code = ErrorCode(31_337);
        assert_eq!(code.sqlstate(), Sqlstate::GENERAL);
        assert_eq!(code.symbol(), None);
        assert_eq!(code.format(), "");
        assert_eq!(code.origin(), Origin::Client);
        assert_eq!(code.retry(), Retry::Never);
    }
}
