//! [`Settings`]: what a plan depends on in addition to names.

use std::borrow::Cow;

use settings::SqlMode;
use value::{Charset, CollationId, ColumnType, Date};

/// The session settings that a plan depends on. Sessions with equal settings share plans.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The default database; `None` before `USE`.
    pub database: Option<String>,
    /// `sql_mode`.
    pub sql_mode: SqlMode,
    /// How strings of the text are read.
    pub strings: StringRules,
    /// `collation_connection`.
    pub collation: CollationId,
    /// `div_precision_increment`.
    pub division_increment: u8,
    /// The current date; a TIME gets it when it is compared with a DATETIME.
    pub today: Date,
    /// The types of the parameters, in order. A missing one is not known yet (a statement that is
    /// only prepared).
    pub parameter_types: Vec<ColumnType>,
    /// The client's limits against statements that do too much.
    pub limits: StatementLimits,
}

/// The client's limits against statements that do too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StatementLimits {
    /// `sql_select_limit`: rows of a SELECT without LIMIT.
    pub select_rows: Option<u64>,
    /// `max_join_size`: rows that a SELECT may be expected to read.
    pub join_rows: Option<u64>,
    /// `sql_safe_updates`: UPDATE and DELETE need a key or a LIMIT.
    pub safe_updates: bool,
}

/// The meaning of a statement's strings, by the session's settings when the text was read.
///
/// A string is a text in the character set of the connection's collation, converted from the
/// client's. A string after an introducer is the bytes that the client sent. A statement's text is
/// already UTF-8 when it is parsed: see `Charset::read_statement`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StringRules {
    /// `character_set_client`.
    pub client: Charset,
    /// `collation_connection`.
    pub collation: CollationId,
}

impl Default for StringRules {
    fn default() -> Self {
        Self {
            client: Charset::Utf8mb4,
            collation: CollationId::UTF8MB4_GENERAL_CI,
        }
    }
}

impl StringRules {
    /// True if the bytes of the text are the value.
    pub fn is_as_written(self) -> bool {
        !self.client.is_converted() && self.is_as_sent()
    }

    /// True if the bytes that the client sent are the value.
    fn is_as_sent(self) -> bool {
        let charset = self.collation.charset();
        charset == self.client || charset == Charset::Binary || self.client == Charset::Binary
    }

    /// The value of a string in the text. A character that the connection's character set lacks
    /// becomes `?`.
    pub fn value(self, text: &[u8]) -> Cow<'_, [u8]> {
        if text.is_ascii() || self.is_as_written() {
            return text.into();
        }
        let connection = self.collation.charset();
        match self.client {
            // Each byte is a character, so nothing is lost on the way through UTF-8.
            Charset::Latin1 if !self.is_as_sent() => converted(text, Charset::Utf8mb4, connection),
            client if client.is_converted() => {
                let sent = self.sent(text);
                if self.is_as_sent() {
                    return sent;
                }
                converted(&sent, client, connection).into_owned().into()
            }
            client => converted(text, client, connection),
        }
    }

    /// The bytes that the client sent for a string in the text.
    pub fn sent(self, text: &[u8]) -> Cow<'_, [u8]> {
        self.client.sent_for(text)
    }

    /// The value of a text that came in addition to the statement, as a parameter.
    pub fn received(self, bytes: &[u8]) -> Cow<'_, [u8]> {
        if self.is_as_sent() {
            return bytes.into();
        }
        converted(bytes, self.client, self.collation.charset())
    }
}

/// A text in another character set.
fn converted(text: &[u8], from: Charset, to: Charset) -> Cow<'_, [u8]> {
    if from == to || text.is_ascii() {
        return text.into();
    }
    let mut converted = Vec::with_capacity(text.len());
    to.append_converted(from, text, &mut converted);
    converted.into()
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            database: None,
            sql_mode: SqlMode::DEFAULT,
            strings: StringRules::default(),
            collation: CollationId::UTF8MB4_GENERAL_CI,
            division_increment: 4,
            today: Date::ZERO,
            parameter_types: Vec::new(),
            limits: StatementLimits::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(client: Charset, connection: Charset) -> StringRules {
        StringRules {
            client,
            collation: connection.default_collation(),
        }
    }

    #[test]
    fn a_string_is_a_text_of_the_connection() {
        use Charset::{Ascii, Binary, Latin1, Utf8mb3, Utf8mb4};
        let utf8 = "\u{e9}\u{416}".as_bytes();
        for (client, connection, text, expected) in [
            (Utf8mb4, Utf8mb4, utf8, utf8),
            (Utf8mb4, Latin1, utf8, b"\xe9?"),
            (Utf8mb4, Ascii, utf8, b"??"),
            (Utf8mb4, Binary, utf8, utf8),
            (Utf8mb3, Utf8mb4, "\u{1F600}".as_bytes(), b"????"),
            // Malformed text is left alone if nothing is converted.
            (Utf8mb4, Utf8mb4, b"\xff", b"\xff"),
            (Ascii, Ascii, b"a\xe9", b"a\xe9"),
            (Ascii, Utf8mb4, b"a\xe9", b"a?"),
            (Binary, Utf8mb4, b"\xff", b"\xff"),
            (Latin1, Latin1, "\u{e9}".as_bytes(), b"\xe9"),
            (Latin1, Utf8mb4, "\u{e9}".as_bytes(), "\u{e9}".as_bytes()),
            (Latin1, Ascii, "\u{e9}".as_bytes(), b"?"),
            (Latin1, Binary, "\u{e9}".as_bytes(), b"\xe9"),
        ] {
            let rules = rules(client, connection);
            let names = (client.name(), connection.name());
            assert_eq!(&*rules.value(text), expected, "{names:?}");
        }
    }

    #[test]
    fn an_introducer_takes_what_was_sent() {
        let latin1 = rules(Charset::Latin1, Charset::Utf8mb4);
        // Each byte comes back as it was sent, whether it is a character or not.
        let all: Vec<u8> = (0..=255).collect();
        let mut text = Vec::new();
        Charset::Utf8mb4.append_converted(Charset::Latin1, &all, &mut text);
        assert_eq!(*latin1.sent(&text), *all);
        let utf8 = rules(Charset::Utf8mb4, Charset::Latin1);
        assert_eq!(&*utf8.sent(b"\xc3\xa9"), b"\xc3\xa9");
    }

    #[test]
    fn a_parameter_is_in_the_clients_character_set() {
        let received =
            |client, connection, bytes| rules(client, connection).received(bytes).into_owned();
        use Charset::{Binary, Latin1, Utf8mb4};
        assert_eq!(received(Latin1, Utf8mb4, b"\xe9"), b"\xc3\xa9");
        assert_eq!(received(Latin1, Latin1, b"\xe9"), b"\xe9");
        assert_eq!(received(Utf8mb4, Latin1, b"\xc3\xa9"), b"\xe9");
        assert_eq!(received(Latin1, Binary, b"\xe9"), b"\xe9");
        assert_eq!(received(Binary, Utf8mb4, b"\xe9"), b"\xe9");
    }
}
