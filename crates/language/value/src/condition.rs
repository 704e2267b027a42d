//! A MySQL condition as this crate knows it: the number, and the text that a client reads.

use std::fmt::{self, Display};

use errcode::{ClientError, ErrorCode, Origin, Retry, Wording};

/// What went wrong with a value. The caller decides whether it is an error or a warning: the same
/// condition refuses a row under strict `sql_mode` and is a warning without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlCondition {
    /// For instance `ER_WARN_DATA_OUT_OF_RANGE`.
    pub code: ErrorCode,
    /// The text that a client reads.
    pub message: String,
    /// Who caused it.
    pub origin: Origin,
    /// Whether the statement may be tried again.
    pub retry: Retry,
}

impl SqlCondition {
    /// The condition `code`, with `arguments` in the places of the table's format.
    pub fn new(code: ErrorCode, arguments: &[&dyn Display]) -> Self {
        Self::with_format_of(code, code, arguments)
    }

    /// The condition `code` with the text of another: some numbers have two texts.
    pub fn with_format_of(
        code: ErrorCode,
        format_code: ErrorCode,
        arguments: &[&dyn Display],
    ) -> Self {
        Self::with_message(code, format_code.message(arguments))
    }

    /// The condition of a number that has this text beside the table's.
    pub fn worded(wording: Wording, arguments: &[&dyn Display]) -> Self {
        Self {
            origin: wording.origin,
            retry: wording.retry,
            ..Self::with_message(wording.code, wording.message(arguments))
        }
    }

    /// The condition `code` with a text that was made already.
    pub fn with_message(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            origin: code.origin(),
            retry: code.retry(),
        }
    }
}

impl From<ClientError> for SqlCondition {
    fn from(error: ClientError) -> Self {
        Self {
            code: error.code,
            message: error.message,
            origin: error.origin,
            retry: error.retry,
        }
    }
}

impl From<SqlCondition> for ClientError {
    fn from(condition: SqlCondition) -> Self {
        ClientError {
            origin: condition.origin,
            retry: condition.retry,
            ..ClientError::with_message(condition.code, condition.message)
        }
    }
}

impl Display for SqlCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SqlCondition {}

#[cfg(test)]
mod tests {
    use errcode::{ER_LOCK_DEADLOCK, Sqlstate, WORDS_LONG_DATA};

    use super::*;

    #[test]
    fn origin_and_retry_survive_both_ways() {
        let state = Sqlstate::from_text("45000");
        for error in [
            ClientError::new(ER_LOCK_DEADLOCK, &[]),
            ClientError::worded(WORDS_LONG_DATA, &[]),
            ClientError::signalled(ER_LOCK_DEADLOCK, state, "no"),
            ClientError::of_server(ER_LOCK_DEADLOCK, state, "again"),
        ] {
            let (origin, retry) = (error.origin, error.retry);
            let condition = SqlCondition::from(error);
            assert_eq!((condition.origin, condition.retry), (origin, retry));
            let error = ClientError::from(condition);
            assert_eq!((error.origin, error.retry), (origin, retry));
        }
        let worded = ClientError::from(SqlCondition::worded(WORDS_LONG_DATA, &[]));
        assert_eq!(worded, ClientError::worded(WORDS_LONG_DATA, &[]));
    }
}
