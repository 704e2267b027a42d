//! The text of a statement, and how its strings are read.

use std::ops::Deref;
use std::rc::Rc;

use planner::StringRules;
use value::Charset;

/// The text of a statement. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// In UTF-8.
    text: Rc<[u8]>,
    /// How its strings are read.
    pub(crate) strings: StringRules,
}

impl Source {
    /// A text whose strings are read by these rules.
    pub(crate) fn new(text: impl Into<Rc<[u8]>>, strings: StringRules) -> Self {
        Self {
            text: text.into(),
            strings,
        }
    }
}

impl Deref for Source {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.text
    }
}

/// Converts the rest of a text again: it was converted to UTF-8 from one character set, and the
/// client uses another since.
pub(crate) fn read_anew(text: &[u8], from: Charset, to: Charset) -> Vec<u8> {
    to.read_statement(&from.sent_for(text)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latin1_is_brought_to_utf8_and_the_rest_is_not_copied() {
        assert_eq!(
            &*Charset::Latin1.read_statement(b"\xe4"),
            "\u{e4}".as_bytes()
        );
        let same = Charset::Utf8mb4.read_statement(b"SELECT 1");
        assert!(matches!(same, std::borrow::Cow::Borrowed(_)));
    }

    #[test]
    fn a_rest_is_read_anew_from_the_bytes_that_were_sent() {
        use Charset::{Latin1, Utf8mb4};
        assert_eq!(read_anew(b"\xe9", Utf8mb4, Latin1), "\u{e9}".as_bytes());
        let read = Latin1.read_statement("\u{e9}".as_bytes()).into_owned();
        assert_eq!(read_anew(&read, Latin1, Utf8mb4), "\u{e9}".as_bytes());
    }
}
