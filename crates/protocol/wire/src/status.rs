//! [`StatusFlags`]: the session's state, sent in every OK and EOF packet.

use std::ops::{BitOr, BitOrAssign};

/// A set of status flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct StatusFlags(pub u16);

impl StatusFlags {
    /// A transaction is open.
    pub const IN_TRANSACTION: StatusFlags = StatusFlags(1);
    /// Each statement is its own transaction.
    pub const AUTOCOMMIT: StatusFlags = StatusFlags(1 << 1);
    /// Another result follows this one.
    pub const MORE_RESULTS: StatusFlags = StatusFlags(1 << 3);
    /// The rows are the OUT parameters of a prepared CALL.
    pub const PS_OUT_PARAMS: StatusFlags = StatusFlags(1 << 12);
    /// The statement found no good index.
    pub const NO_GOOD_INDEX_USED: StatusFlags = StatusFlags(1 << 4);
    /// The statement used no index.
    pub const NO_INDEX_USED: StatusFlags = StatusFlags(1 << 5);
    /// The rows wait in a cursor and come by COM_STMT_FETCH.
    pub const CURSOR_EXISTS: StatusFlags = StatusFlags(1 << 6);
    /// The cursor has no further row.
    pub const LAST_ROW_SENT: StatusFlags = StatusFlags(1 << 7);
    /// A database was dropped.
    pub const DATABASE_DROPPED: StatusFlags = StatusFlags(1 << 8);
    /// `sql_mode` has NO_BACKSLASH_ESCAPES.
    pub const NO_BACKSLASH_ESCAPES: StatusFlags = StatusFlags(1 << 9);
    /// The column definitions of a prepared statement changed since it was prepared.
    pub const METADATA_CHANGED: StatusFlags = StatusFlags(1 << 10);
    /// The statement took longer than `long_query_time`.
    pub const QUERY_WAS_SLOW: StatusFlags = StatusFlags(1 << 11);
    /// The result is the OUT parameters of a procedure.
    pub const OUT_PARAMETERS: StatusFlags = StatusFlags(1 << 12);
    /// The open transaction is READ ONLY.
    pub const IN_READ_ONLY_TRANSACTION: StatusFlags = StatusFlags(1 << 13);
    /// The OK packet reports changes of the session's state.
    pub const SESSION_STATE_CHANGED: StatusFlags = StatusFlags(1 << 14);
    /// MariaDB: `sql_mode` has ANSI_QUOTES.
    pub const ANSI_QUOTES: StatusFlags = StatusFlags(1 << 15);

    /// Whether all of `other` are in this set.
    #[inline]
    pub fn contains(self, other: StatusFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns this set with `other` set or cleared.
    #[inline]
    #[must_use]
    pub fn with(self, other: StatusFlags, is_set: bool) -> StatusFlags {
        if is_set {
            StatusFlags(self.0 | other.0)
        } else {
            StatusFlags(self.0 & !other.0)
        }
    }
}

impl BitOr for StatusFlags {
    type Output = StatusFlags;
    fn bitor(self, other: StatusFlags) -> StatusFlags {
        StatusFlags(self.0 | other.0)
    }
}

impl BitOrAssign for StatusFlags {
    fn bitor_assign(&mut self, other: StatusFlags) {
        self.0 |= other.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_set_and_cleared() {
        let flags = StatusFlags::AUTOCOMMIT.with(StatusFlags::IN_TRANSACTION, true);
        assert!(flags.contains(StatusFlags::IN_TRANSACTION));
        assert_eq!(
            flags.with(StatusFlags::IN_TRANSACTION, false),
            StatusFlags::AUTOCOMMIT
        );
    }
}
