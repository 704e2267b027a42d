//! [`ErrorCode`]: an error number. Its SQLSTATE, and a line of the table about it.

use std::fmt;

use crate::origin::{Origin, Retry};

/// Five characters by which standard SQL classifies an error, for example `23000`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sqlstate(pub [u8; 5]);

impl Sqlstate {
    /// The state of errors that have no better one.
    pub const GENERAL: Sqlstate = Sqlstate(*b"HY000");

    /// The five characters, or `HY000` if they are not ASCII letters and digits.
    pub fn from_text(text: &str) -> Sqlstate {
        match <[u8; 5]>::try_from(text.as_bytes()) {
            Ok(bytes) if bytes.iter().all(u8::is_ascii_alphanumeric) => Sqlstate(bytes),
            Ok(_) | Err(_) => Sqlstate::GENERAL,
        }
    }

    /// The state as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("HY000")
    }
}

impl fmt::Debug for Sqlstate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Sqlstate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error number as sent in an ERR packet.
///
/// The numbers with a constant are the ones that Plateau itself sends. Any other is legal, too:
/// users choose their own with `SIGNAL`, and remote servers send theirs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorCode(pub u16);

/// One line of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) code: ErrorCode,
    pub(crate) sqlstate: Sqlstate,
    pub(crate) symbol: &'static str,
    pub(crate) origin: Origin,
    pub(crate) retry: Retry,
    pub(crate) format: &'static str,
}

impl ErrorCode {
    /// The number.
    pub fn number(self) -> u16 {
        self.0
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlstate_of_bad_text_is_general() {
        assert_eq!(Sqlstate::from_text("45000").as_str(), "45000");
        assert_eq!(Sqlstate::from_text("4500").as_str(), "HY000");
        assert_eq!(Sqlstate::from_text("45 00").as_str(), "HY000");
    }
}
