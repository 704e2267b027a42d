//! [`ClientError`]: an error ready to be sent to a client.

use std::fmt::{self, Display};

use crate::code::{ErrorCode, Sqlstate};
use crate::origin::{Origin, Retry};
use crate::table::{
    ER_ACCESS_DENIED_ERROR, ER_ACCESS_DENIED_NO_PASSWORD_ERROR, ER_DUP_ENTRY,
    ER_DUP_ENTRY_WITH_KEY_NAME, ER_NOT_SUPPORTED_YET, ER_PARSE_ERROR, ER_SYNTAX_ERROR,
};
use crate::wording::{WORDS_TOO_DEEP, Wording};

/// Longer messages are cut: clients of the C library keep 512 bytes with the final zero.
pub const MESSAGE_BYTES_MAX: usize = 511;

/// One error as a client sees it. It carries nothing that the client may not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientError {
    /// The number.
    pub code: ErrorCode,
    /// The SQLSTATE; usually the table's, users choose their own with `SIGNAL`.
    pub sqlstate: Sqlstate,
    /// The text, at most [`MESSAGE_BYTES_MAX`] bytes.
    pub message: String,
    /// Who caused it. The client does not see it.
    pub origin: Origin,
    /// Whether the same statement may be tried again. The client does not see it.
    pub retry: Retry,
}

impl ClientError {
    /// The error `code` with `arguments` filled into the table's message format, in the order of
    /// its places.
    ///
    /// ```
    /// use errcode::{ClientError, ER_BAD_FIELD_ERROR};
    /// let error = ClientError::new(ER_BAD_FIELD_ERROR, &[&"x", &"field list"]);
    /// assert_eq!(error.to_string(), "ERROR 1054 (42S22): Unknown column 'x' in 'field list'");
    /// ```
    pub fn new(code: ErrorCode, arguments: &[&dyn Display]) -> ClientError {
        ClientError::with_format_of(code, code, arguments)
    }

    /// The error of a number that has this text beside the table's.
    pub fn worded(wording: Wording, arguments: &[&dyn Display]) -> ClientError {
        let message = wording.message(arguments);
        ClientError {
            origin: wording.origin,
            retry: wording.retry,
            ..ClientError::with_message(wording.code, message)
        }
    }

    /// The error `code` with the text that a condition has already.
    pub fn with_message(code: ErrorCode, message: impl Into<String>) -> ClientError {
        let mut message = message.into();
        message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX));
        ClientError {
            code,
            sqlstate: code.sqlstate(),
            message,
            origin: code.origin(),
            retry: code.retry(),
        }
    }

    /// The error that a statement raises (`SIGNAL`): the client chooses all its parts.
    pub fn signalled(
        code: ErrorCode,
        sqlstate: Sqlstate,
        message: impl Into<String>,
    ) -> ClientError {
        ClientError {
            sqlstate,
            origin: Origin::Client,
            retry: Retry::Never,
            ..ClientError::with_message(code, message)
        }
    }

    /// The error that a server answered with.
    pub fn of_server(
        code: ErrorCode,
        sqlstate: Sqlstate,
        message: impl Into<String>,
    ) -> ClientError {
        ClientError {
            sqlstate,
            origin: Origin::Server,
            ..ClientError::with_message(code, message)
        }
    }

    /// A statement that does not parse: `near` is the text from the place of the error on.
    pub fn syntax(near: &str, line: usize) -> ClientError {
        let intro = ER_SYNTAX_ERROR.format();
        ClientError::new(ER_PARSE_ERROR, &[&intro, &near, &line])
    }

    /// A row that breaks a unique key. Clients look for 1062; the text names the key, as the
    /// format of 1586 does.
    pub fn duplicate_entry(value: &dyn Display, key: &dyn Display) -> ClientError {
        ClientError::with_format_of(ER_DUP_ENTRY, ER_DUP_ENTRY_WITH_KEY_NAME, &[value, key])
    }

    /// Valid SQL that is not built: `what` names it as COMPAT.md does.
    pub fn not_supported(what: &dyn Display) -> ClientError {
        ClientError::new(ER_NOT_SUPPORTED_YET, &[what])
    }

    /// Nesting deeper than the stack allows: `used` of `all` bytes, by what `what` names. The text
    /// of 1436 would name a setting that does not exist.
    pub fn too_deep(used: usize, all: usize, what: &str) -> ClientError {
        ClientError::worded(WORDS_TOO_DEEP, &[&used, &all, &what])
    }

    /// A login that failed; the same text whether the account exists or not.
    pub fn access_denied(user: &str, host: &str, with_password: bool) -> ClientError {
        let answer = if with_password { "YES" } else { "NO" };
        ClientError::new(ER_ACCESS_DENIED_ERROR, &[&user, &host, &answer])
    }

    /// A login that failed and did not need a password.
    pub fn access_denied_no_password(user: &str, host: &str) -> ClientError {
        ClientError::new(ER_ACCESS_DENIED_NO_PASSWORD_ERROR, &[&user, &host])
    }

    fn with_format_of(
        code: ErrorCode,
        format_code: ErrorCode,
        arguments: &[&dyn Display],
    ) -> ClientError {
        ClientError::with_message(code, format_code.message(arguments))
    }
}

impl Display for ClientError {
    /// In the form that the command-line client prints.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ERROR {} ({}): {}",
            self.code.number(),
            self.sqlstate,
            self.message
        )
    }
}

impl std::error::Error for ClientError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ER_CONNECTION_KILLED, ER_LOCK_DEADLOCK, ER_NO_DB_ERROR, ER_UNKNOWN_ERROR, WORDS_LONG_DATA,
    };

    #[test]
    fn messages_read_as_the_reference_writes_them() {
        let error = ClientError::duplicate_entry(&"7", &"PRIMARY");
        assert_eq!(
            error.to_string(),
            "ERROR 1062 (23000): Duplicate entry '7' for key 'PRIMARY'"
        );
        assert_eq!(
            ClientError::new(ER_NO_DB_ERROR, &[]).to_string(),
            "ERROR 1046 (3D000): No database selected"
        );
        assert_eq!(
            ClientError::not_supported(&"EXCHANGE PARTITION").to_string(),
            "ERROR 1235 (42000): This version of MariaDB doesn't yet support 'EXCHANGE PARTITION'"
        );
        assert_eq!(
            ClientError::access_denied("a", "localhost", true).message,
            "Access denied for user 'a'@'localhost' (using password: YES)"
        );
    }

    #[test]
    fn syntax_error_shows_eighty_bytes_from_the_place() {
        let near = "x".repeat(100);
        let message = ClientError::syntax(&near, 3).message;
        assert!(message.starts_with("You have an error in your SQL syntax; check the manual"));
        assert!(message.ends_with(&format!("near '{}...' at line 3", "x".repeat(77))));
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        let error = ClientError::with_message(ER_UNKNOWN_ERROR, "\u{20ac}".repeat(400));
        assert_eq!(error.message.len(), 510);
    }

    #[test]
    fn origin_and_retry_come_from_the_table_the_wording_or_the_sender() {
        let facts = |error: ClientError| (error.origin, error.retry);
        let deadlock = ClientError::new(ER_LOCK_DEADLOCK, &[]);
        assert_eq!(facts(deadlock), (Origin::Client, Retry::Now));
        let worded = ClientError::worded(WORDS_LONG_DATA, &[]);
        assert_eq!(facts(worded), (Origin::Client, Retry::Never));
        let state = Sqlstate::from_text("45000");
        let raised = ClientError::signalled(ER_LOCK_DEADLOCK, state, "no");
        assert_eq!(facts(raised.clone()), (Origin::Client, Retry::Never));
        assert_eq!(raised.to_string(), "ERROR 1213 (45000): no");
        let killed = ClientError::of_server(ER_CONNECTION_KILLED, state, "away");
        assert_eq!(facts(killed), (Origin::Server, Retry::Never));
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "arguments of ER_NO_DB_ERROR")]
    fn wrong_number_of_arguments_is_a_bug() {
        let _ = ClientError::new(ER_NO_DB_ERROR, &[&1]);
    }
}
