//! [`HandlerCounts`]: how often statements have read rows of a table, or written some.
//!
//! `SHOW STATUS` shows the counts as `Handler_%`, with MariaDB's meaning: one call for each row
//! that is requested, and one more for the request that finds no further row. Rows that a cursor
//! has read ahead and that were not requested do not count.
//!
//! An execution counts in plain numbers of its own; the session takes them after each step.

/// A call to a table, or to a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum HandlerCall {
    /// A transaction, or a statement within one, was committed.
    Commit,
    /// A row to delete.
    Delete,
    /// The first row of an index.
    ReadFirst,
    /// The first row at or after a key.
    ReadKey,
    /// The last row of an index.
    ReadLast,
    /// The next row in the order of an index.
    ReadNext,
    /// The previous row in the order of an index.
    ReadPrevious,
    /// A row by its place: a row that was found before is read again.
    ReadPlace,
    /// The next row of a full table scan.
    ReadPlaceNext,
    /// A transaction was rolled back.
    Rollback,
    /// A savepoint was set.
    Savepoint,
    /// A transaction was rolled back to a savepoint.
    SavepointRollback,
    /// A row to change.
    Update,
    /// A row to insert.
    Write,
}

impl HandlerCall {
    /// Number of kinds.
    pub const COUNT: usize = 14;

    /// All kinds, in the order of their numbers, with the names of their status variables.
    pub const ALL: [(Self, &'static str); Self::COUNT] = [
        (Self::Commit, "Handler_commit"),
        (Self::Delete, "Handler_delete"),
        (Self::ReadFirst, "Handler_read_first"),
        (Self::ReadKey, "Handler_read_key"),
        (Self::ReadLast, "Handler_read_last"),
        (Self::ReadNext, "Handler_read_next"),
        (Self::ReadPrevious, "Handler_read_prev"),
        (Self::ReadPlace, "Handler_read_rnd"),
        (Self::ReadPlaceNext, "Handler_read_rnd_next"),
        (Self::Rollback, "Handler_rollback"),
        (Self::Savepoint, "Handler_savepoint"),
        (Self::SavepointRollback, "Handler_savepoint_rollback"),
        (Self::Update, "Handler_update"),
        (Self::Write, "Handler_write"),
    ];
}

/// A count for each kind of call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HandlerCounts([u64; HandlerCall::COUNT]);

impl HandlerCounts {
    /// Counts one call.
    #[inline]
    pub fn count(&mut self, call: HandlerCall) {
        self.0[call as usize] += 1;
    }

    /// The number of calls of a kind.
    pub fn of(&self, call: HandlerCall) -> u64 {
        self.0[call as usize]
    }

    /// Adds other counts.
    pub fn add(&mut self, other: &Self) {
        for (own, others) in self.0.iter_mut().zip(&other.0) {
            *own += others;
        }
    }

    /// The kinds with calls, as numbers, and their counts.
    pub fn called(&self) -> impl Iterator<Item = (usize, u64)> {
        let counts = self.0.iter().copied().enumerate();
        counts.filter(|(_, count)| *count != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_stands_at_its_number() {
        for (place, (call, name)) in HandlerCall::ALL.into_iter().enumerate() {
            assert_eq!(call as usize, place, "{name}");
        }
    }

    #[test]
    fn counts_are_added_kind_by_kind() {
        let mut sum = HandlerCounts::default();
        sum.count(HandlerCall::ReadKey);
        let mut other = HandlerCounts::default();
        other.count(HandlerCall::ReadKey);
        other.count(HandlerCall::Write);
        sum.add(&other);
        let called: Vec<_> = sum.called().collect();
        let number = |call: HandlerCall| call as usize;
        assert_eq!(
            called,
            [
                (number(HandlerCall::ReadKey), 2),
                (number(HandlerCall::Write), 1)
            ]
        );
        assert_eq!(sum.of(HandlerCall::ReadNext), 0);
    }
}
