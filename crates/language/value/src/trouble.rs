//! A MySQL error or warning in this crate: the number and the text for the client.

use std::fmt;

/// A problem with a value. The caller decides whether it is an error or a warning: in strict
/// `sql_mode` it refuses a row, otherwise it is a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// MySQL error number, for instance 1264.
    pub code: u16,
    /// The text for the client.
    pub message: String,
}

impl Trouble {
    /// A problem with that number and text.
    pub fn new(code: u16, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Trouble {}
