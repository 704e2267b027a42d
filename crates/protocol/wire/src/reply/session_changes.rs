//! [`SessionChanges`]: the changes of the session's state that an OK packet reports.
//!
//! Each change is a byte for its kind and its data after a length:
//!
//! | kind | data, each part after its length |
//! |---|---|
//! | 0 system variable | name, value |
//! | 1 schema | name |
//! | 2 some state changed | `1` |
//! | 3 GTIDs, of MySQL | a byte for their form, then the set |
//! | 5 transaction state | eight characters, see [`TransactionState`] |

use crate::cursor::Cursor;
use crate::packet_writer::len_u64;

const KIND_VARIABLE: u8 = 0;
const KIND_SCHEMA: u8 = 1;
const KIND_STATE: u8 = 2;
const KIND_GTIDS: u8 = 3;
const KIND_TRANSACTION_STATE: u8 = 5;

/// Changes that wait for the next OK packet. Reused from statement to statement.
#[derive(Debug, Default)]
pub struct SessionChanges {
    /// The changes as they are sent, without the length of the whole.
    encoded: Vec<u8>,
}

/// A reported change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionChange<'a> {
    /// A tracked system variable has a new value.
    Variable {
        /// Name of the variable.
        name: &'a [u8],
        /// Its new value.
        value: &'a [u8],
    },
    /// The default database has changed.
    Schema(&'a [u8]),
    /// Something changed that would have to be set again on another connection.
    State,
    /// The GTIDs of the transactions that were committed (MySQL's `session_track_gtids`).
    Gtids(&'a [u8]),
    /// The transaction's state has changed, see [`TransactionState`].
    TransactionState(&'a [u8]),
    /// A kind that is not known here.
    Other(u8),
}

/// What happened in the open transaction, one character each or `_`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransactionState {
    /// `T` explicit, `I` implicit (autocommit is off).
    pub kind: Option<TransactionKind>,
    /// `r`: tables without transactions were read.
    pub has_unsafe_reads: bool,
    /// `R`: tables with transactions were read.
    pub has_reads: bool,
    /// `w`: tables without transactions were written.
    pub has_unsafe_writes: bool,
    /// `W`: tables with transactions were written.
    pub has_writes: bool,
    /// `s`: a statement was not deterministic.
    pub has_unsafe_statements: bool,
    /// `S`: a result set was sent.
    pub has_results: bool,
    /// `L`: tables are locked.
    pub has_locked_tables: bool,
}

/// How the open transaction began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionKind {
    /// By BEGIN or START TRANSACTION.
    Explicit,
    /// By a statement while autocommit is off.
    Implicit,
}

impl TransactionState {
    fn text(self) -> [u8; 8] {
        let letter = |is_set: bool, letter: u8| if is_set { letter } else { b'_' };
        let kind = match self.kind {
            Some(TransactionKind::Explicit) => b'T',
            Some(TransactionKind::Implicit) => b'I',
            None => b'_',
        };
        [
            kind,
            letter(self.has_unsafe_reads, b'r'),
            letter(self.has_reads, b'R'),
            letter(self.has_unsafe_writes, b'w'),
            letter(self.has_writes, b'W'),
            letter(self.has_unsafe_statements, b's'),
            letter(self.has_results, b'S'),
            letter(self.has_locked_tables, b'L'),
        ]
    }
}

impl SessionChanges {
    /// No changes.
    pub fn new() -> SessionChanges {
        SessionChanges::default()
    }

    /// Whether there is no change to report.
    pub fn is_empty(&self) -> bool {
        self.encoded.is_empty()
    }

    /// Drops all changes after they were reported.
    pub fn clear(&mut self) {
        self.encoded.clear();
    }

    /// The changes as they are sent in [`OkPacket::session_changes`](crate::OkPacket).
    pub fn as_bytes(&self) -> &[u8] {
        &self.encoded
    }

    /// A tracked system variable has a new value.
    pub fn variable(&mut self, name: &str, value: &[u8]) {
        let data_bytes = text_bytes(name.as_bytes()) + text_bytes(value);
        self.change(KIND_VARIABLE, data_bytes);
        self.text(name.as_bytes());
        self.text(value);
    }

    /// The default database has changed.
    pub fn schema(&mut self, name: &[u8]) {
        self.change(KIND_SCHEMA, text_bytes(name));
        self.text(name);
    }

    /// Something changed that would have to be set again on another connection.
    pub fn state(&mut self) {
        self.change(KIND_STATE, text_bytes(b"1"));
        self.text(b"1");
    }

    /// The transaction's state has changed.
    pub fn transaction_state(&mut self, state: TransactionState) {
        let text = state.text();
        self.change(KIND_TRANSACTION_STATE, text_bytes(&text));
        self.text(&text);
    }

    fn change(&mut self, kind: u8, data_bytes: usize) {
        self.encoded.push(kind);
        self.length(data_bytes);
    }

    fn text(&mut self, text: &[u8]) {
        self.length(text.len());
        self.encoded.extend_from_slice(text);
    }

    fn length(&mut self, length: usize) {
        let (array, count) = crate::packet_writer::lenenc_array(len_u64(length));
        self.encoded
            .extend_from_slice(array.get(..count).unwrap_or_default());
    }

    /// The changes in an OK packet, up to the first that is malformed.
    pub fn decode(encoded: &[u8]) -> impl Iterator<Item = SessionChange<'_>> {
        let mut cursor = Cursor::new(encoded);
        std::iter::from_fn(move || {
            let kind = cursor.u8("change").ok()?;
            let mut data = Cursor::new(cursor.lenenc_bytes("change").ok()?);
            if kind == KIND_GTIDS {
                data.u8("form of the GTIDs").ok()?;
            }
            let mut text = || data.lenenc_bytes("change").ok();
            Some(match kind {
                KIND_VARIABLE => SessionChange::Variable {
                    name: text()?,
                    value: text()?,
                },
                KIND_SCHEMA => SessionChange::Schema(text()?),
                KIND_STATE => SessionChange::State,
                KIND_GTIDS => SessionChange::Gtids(text()?),
                KIND_TRANSACTION_STATE => SessionChange::TransactionState(text()?),
                other => SessionChange::Other(other),
            })
        })
    }
}

/// How many bytes a text takes with its length.
fn text_bytes(text: &[u8]) -> usize {
    crate::packet_writer::lenenc_array(len_u64(text.len())).1 + text.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn changes_are_told_in_order() {
        let mut changes = SessionChanges::new();
        assert!(changes.is_empty());
        changes.schema(b"db");
        changes.variable("sql_mode", &[b'x'; 300]);
        changes.state();
        changes.transaction_state(TransactionState {
            kind: Some(TransactionKind::Explicit),
            has_writes: true,
            ..TransactionState::default()
        });
        let told: Vec<_> = SessionChanges::decode(changes.as_bytes()).collect();
        assert_eq!(
            told,
            [
                SessionChange::Schema(b"db"),
                SessionChange::Variable {
                    name: b"sql_mode",
                    value: &[b'x'; 300]
                },
                SessionChange::State,
                SessionChange::TransactionState(b"T___W___"),
            ]
        );
        let gtids = b"\x03\x05\x00\x03u:1";
        let told: Vec<_> = SessionChanges::decode(gtids).collect();
        assert_eq!(told, [SessionChange::Gtids(b"u:1")]);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            SessionChanges::decode(&bytes).count();
        }
    }
}
