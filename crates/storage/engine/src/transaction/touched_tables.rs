//! The tables that a transaction has locked rows in, or changed.
//!
//! InnoDB locks each such table in an intention mode (IS, IX). These locks never conflict with each
//! other, so there are none here. They count for the choice of a deadlock's victim and for
//! `INNODB_TRX`.

use lock::LockMode;
use smallvec::SmallVec;
use store::TableId;

/// More tables than these are not noted. So the search for a table stays short.
const NOTED_MAX: usize = 64;

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct TouchedTables {
    /// In the order of their first use; a table twice if it was first read and then written.
    noted: SmallVec<[(TableId, LockMode); 4]>,
    /// Tables among them. Counted here, since it is shown after each lock.
    table_count: u64,
}

impl TouchedTables {
    /// Rows of a table are locked in this mode. Returns whether that is new.
    pub(crate) fn note(&mut self, table: TableId, mode: LockMode) -> bool {
        let mut is_known = false;
        for (_, its) in self.noted.iter().rev().filter(|it| it.0 == table) {
            if mode <= *its {
                return false;
            }
            is_known = true;
        }
        let is_new = self.noted.len() < NOTED_MAX;
        if is_new {
            self.noted.push((table, mode));
            self.table_count += u64::from(!is_known);
            assert!(self.noted.len() <= NOTED_MAX, "the search stays short");
        }
        is_new
    }

    /// Table locks that InnoDB would have.
    pub(crate) fn object_count(&self) -> u64 {
        stdx::to_u64(self.noted.len())
    }

    /// Tables.
    pub(crate) fn table_count(&self) -> u64 {
        assert!(
            self.table_count <= self.object_count(),
            "each is noted once or twice"
        );
        self.table_count
    }

    /// The transaction has ended.
    pub(crate) fn clear(&mut self) {
        self.noted.clear();
        self.table_count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As MariaDB 10.11 counts: IX includes IS, and IX after IS is a second lock.
    #[test]
    fn a_stronger_mode_includes_a_weaker_one() {
        let mut tables = TouchedTables::default();
        assert!(tables.note(TableId(1), LockMode::Exclusive));
        assert!(!tables.note(TableId(1), LockMode::Shared));
        assert!(tables.note(TableId(2), LockMode::Shared));
        assert!(tables.note(TableId(2), LockMode::Exclusive));
        assert_eq!((tables.object_count(), tables.table_count()), (3, 2));
        tables.clear();
        assert_eq!((tables.object_count(), tables.table_count()), (0, 0));
    }

    #[test]
    fn tables_beyond_the_limit_are_left_out() {
        let mut tables = TouchedTables::default();
        for table in 0..100 {
            tables.note(TableId(table), LockMode::Shared);
        }
        assert_eq!(tables.table_count(), 64);
    }
}
