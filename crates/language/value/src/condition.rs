//! A MySQL condition as this crate knows it: the number, and the text that a client reads.

use std::fmt::{self, Display};

use errcode::{ClientError, ErrorCode, Wording};

/// What went wrong with a value. The caller decides whether it is an error or a warning: the same
/// condition refuses a row under strict `sql_mode` and is a warning without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlCondition {
    /// For instance `ER_WARN_DATA_OUT_OF_RANGE`.
    pub code: ErrorCode,
    /// The text that a client reads.
    pub message: String,
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
        Self::with_message(wording.code, wording.message(arguments))
    }

    /// The condition `code` with a text that was made already.
    pub fn with_message(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

impl From<ClientError> for SqlCondition {
    fn from(error: ClientError) -> Self {
        Self::with_message(error.code, error.message)
    }
}

impl From<SqlCondition> for ClientError {
    fn from(condition: SqlCondition) -> Self {
        ClientError::with_message(condition.code, condition.message)
    }
}

impl Display for SqlCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SqlCondition {}
