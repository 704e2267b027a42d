//! A MySQL error or warning as this crate knows it: the number and the text a client reads.

use std::fmt;

/// What went wrong with a value. Whether it is an error or a warning is the caller's to say: the
/// same trouble refuses a row under strict `sql_mode` and is a warning without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// MySQL error number, for instance 1264.
    pub code: u16,
    /// The text that a client reads.
    pub message: String,
}

impl Trouble {
    /// A trouble of that number and text.
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
