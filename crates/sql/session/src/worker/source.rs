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

/// Converts a statement from the client's character set to UTF-8.
pub(crate) fn in_utf8(charset: Charset, text: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    match charset {
        Charset::Latin1 => {
            let mut converted = Vec::with_capacity(text.len());
            Charset::Utf8mb4.append_converted(charset, text, &mut converted);
            converted.into()
        }
        Charset::Ascii | Charset::Binary | Charset::Utf8mb3 | Charset::Utf8mb4 => text.into(),
    }
}

/// Converts the rest of a text again: it was converted to UTF-8 from one character set, and the
/// client uses another since.
pub(crate) fn read_anew(text: &[u8], from: Charset, to: Charset) -> Vec<u8> {
    let then = StringRules {
        client: from,
        ..StringRules::default()
    };
    in_utf8(to, &then.sent(text)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latin1_is_brought_to_utf8_and_the_rest_is_not_copied() {
        assert_eq!(&*in_utf8(Charset::Latin1, b"\xe4"), "\u{e4}".as_bytes());
        let same = in_utf8(Charset::Utf8mb4, b"SELECT 1");
        assert!(matches!(same, std::borrow::Cow::Borrowed(_)));
    }

    #[test]
    fn a_rest_is_read_anew_from_the_bytes_that_were_sent() {
        use Charset::{Latin1, Utf8mb4};
        assert_eq!(read_anew(b"\xe9", Utf8mb4, Latin1), "\u{e9}".as_bytes());
        let read = in_utf8(Latin1, "\u{e9}".as_bytes()).into_owned();
        assert_eq!(read_anew(&read, Latin1, Utf8mb4), "\u{e9}".as_bytes());
    }
}
