//! Errors of a store, with the facts that a client's message needs.
//!
//! The session turns each into MySQL's error number and text. Only the error of a remote server has
//! a number and a text already.

use errcode::{ER_CONNECTION_KILLED, ER_LOCK_TABLE_FULL, ErrorCode, Sqlstate};
use format::PageId;
use thiserror::Error;

/// A failed operation of a store. Each variant says what is rolled back. *Statement*: the session
/// rolls back to the statement's mark. *Transaction*: the store has rolled back the whole
/// transaction already.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StoreError {
    /// Another row has the key (1062). Statement.
    #[error("duplicate key in index {index}")]
    DuplicateKey {
        /// Position of the index in the table's definition.
        index: usize,
    },
    /// The row lock did not come within `innodb_lock_wait_timeout` (1205). Statement.
    #[error("lock wait timeout")]
    LockWaitTimeout,
    /// The transaction was chosen as a deadlock's victim (1213). Transaction.
    #[error("deadlock victim")]
    Deadlock,
    /// The store has no memory for another row lock (1206). Transaction.
    #[error("no memory for another row lock")]
    LockTableFull,
    /// A rollback of the prepared transaction had begun and failed. So its commit has rolled it
    /// back, too (1402). Transaction.
    #[error("the transaction was rolled back, not committed")]
    RolledBack,
    /// A lock is busy and the statement said NOWAIT (1205, as MariaDB). Statement.
    #[error("lock not available")]
    LockNotAvailable,
    /// No table of this name or id (1146). Statement.
    #[error("no such table")]
    NoSuchTable,
    /// The name is taken (1050). Statement.
    #[error("table exists")]
    TableExists,
    /// The definition the caller holds is older than the table (retried with a fresh catalogue).
    #[error("table definition changed")]
    DefinitionChanged,
    /// The transaction's snapshot is older than the table's present rows or indexes: these were
    /// rebuilt since, without older versions (1412). Statement.
    #[error("the table was recreated after the snapshot")]
    SnapshotTooOld,
    /// An encoded row exceeds the store's limit (1118). Statement.
    #[error("row of {bytes} bytes is over the limit of {limit}")]
    RowTooLarge {
        /// Size of the row.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// An encoded key exceeds the store's limit (1071). Statement.
    #[error("key of {bytes} bytes is over the limit of {limit}")]
    KeyTooLarge {
        /// Size of the key.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// No number is left for the AUTO_INCREMENT column (1467). Statement.
    #[error("auto-increment exhausted")]
    AutoIncrementExhausted,
    /// The transaction was started READ ONLY (1792). Statement.
    #[error("read-only transaction")]
    ReadOnly,
    /// No space on the device (1021). Statement; nothing is lost.
    #[error("disk full")]
    DiskFull,
    /// The process has no descriptor for a file that must be opened (1016). Statement; nothing is
    /// lost.
    #[error("no file descriptor is left to open {file}: errno {os_error}")]
    NoDescriptor {
        /// The file.
        file: String,
        /// The kernel's error number: a limit of the process, or of the system.
        os_error: i32,
    },
    /// A file cannot be read (1024) or written (3). Statement.
    #[error("cannot {} {file}: errno {os_error}", verb(.is_read))]
    Disk {
        /// The file, and the page if it is one.
        file: String,
        /// Reading has failed, not writing.
        is_read: bool,
        /// The kernel's error number.
        os_error: i32,
    },
    /// A page or record fails its check (1712). Statement.
    #[error("damaged: {what}")]
    Damaged {
        /// Which file and page, and what is wrong with it.
        what: String,
        /// The page, if it is one, for the server's log.
        page: Option<PageId>,
    },
    /// A write or sync of the log failed; the process stops and no commit is acknowledged.
    #[error("the log failed")]
    LogFailed,
    /// A server that has the rows answered with this error, or the store reports in its place that
    /// there was no answer. Transaction if [`ends_transaction`](Self::ends_transaction) says so,
    /// else statement.
    #[error("server {server} reports error {} ({state}): {text}", code.number())]
    Remote {
        /// The server's name, for the log.
        server: Box<str>,
        /// Its number.
        code: ErrorCode,
        /// Its SQLSTATE.
        state: Sqlstate,
        /// Its text.
        text: Box<str>,
    },
    /// The write set of a transaction exceeds the limit (1180). Statement.
    #[error("the transaction's write set is too large")]
    WriteSetTooLarge,
    /// A row is not as a write set of the group found it on its node. The node has other data than
    /// the group.
    #[error("a row of {table} is not as the group has it")]
    Inconsistent {
        /// The table.
        table: Box<str>,
    },
    /// The store does not offer this (1235). Statement.
    #[error("not supported: {what}")]
    NotSupported {
        /// Its name, as the user wrote it where possible.
        what: &'static str,
    },
}

impl StoreError {
    /// Damage that is of no single page.
    pub fn damaged(what: impl Into<String>) -> Self {
        let what = what.into();
        Self::Damaged { what, page: None }
    }

    /// A page that is damaged, or that contradicts itself or another.
    pub fn damaged_page(page: PageId, what: impl Into<String>) -> Self {
        let (what, page) = (what.into(), Some(page));
        Self::Damaged { what, page }
    }

    /// True if something cannot be read: it is damaged, or the disk fails. Others may be readable.
    pub fn is_unreadable(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::Disk { .. })
    }

    /// True if the store rolls the whole transaction back before it returns this error.
    pub fn ends_transaction(&self) -> bool {
        match self {
            Self::Deadlock | Self::LockTableFull | Self::RolledBack => true,
            Self::Remote { code, state, .. } => is_remote_end(*code, *state),
            _ => false,
        }
    }
}

/// Classes of SQLSTATEs after which a server has rolled the transaction back: the transaction was
/// chosen for it, or the connection is gone.
const REMOTE_END_CLASSES: [&[u8]; 2] = [b"40", b"08"];

/// True if a server that reports this error has rolled the whole transaction back.
fn is_remote_end(code: ErrorCode, state: Sqlstate) -> bool {
    let is_of = |class: &[u8]| state.0.starts_with(class);
    REMOTE_END_CLASSES.into_iter().any(is_of)
        || matches!(code, ER_LOCK_TABLE_FULL | ER_CONNECTION_KILLED)
}

// An error is a part of each result that the hot path passes up.
const _: () = assert!(size_of::<StoreError>() <= 40);

fn verb(is_read: &bool) -> &'static str {
    if *is_read { "read" } else { "write" }
}

#[cfg(test)]
mod tests {
    use errcode::{ER_DUP_ENTRY, ER_LOCK_DEADLOCK, ER_NET_READ_ERROR};

    use super::*;

    #[test]
    fn a_remote_error_ends_the_transaction_if_the_server_has_ended_its_own() {
        let ends = |code: ErrorCode| {
            let (server, text) = ("s1".into(), "no".into());
            let state = code.sqlstate();
            let error = StoreError::Remote {
                server,
                code,
                state,
                text,
            };
            error.ends_transaction()
        };
        for code in [
            ER_LOCK_DEADLOCK,
            ER_NET_READ_ERROR,
            ER_LOCK_TABLE_FULL,
            ER_CONNECTION_KILLED,
        ] {
            assert!(ends(code), "{code:?}");
        }
        assert!(!ends(ER_DUP_ENTRY));
    }

    #[test]
    fn the_log_names_the_server() {
        let error = StoreError::Remote {
            server: "shard-3".into(),
            code: ER_DUP_ENTRY,
            state: ER_DUP_ENTRY.sqlstate(),
            text: "Duplicate entry".into(),
        };
        let text = "server shard-3 reports error 1062 (23000): Duplicate entry";
        assert_eq!(error.to_string(), text);
    }
}
