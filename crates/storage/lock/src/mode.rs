//! What a lock forbids to other owners: InnoDB's modes and extents, and which of them conflict.
//!
//! | asked, held -> | record | gap | next-key | insert intention |
//! |---|---|---|---|---|
//! | record | mode | - | mode | - |
//! | gap | - | - | - | - |
//! | next-key | mode | - | mode | - |
//! | insert intention | - | wait | wait | - |
//!
//! "mode": they conflict unless both are shared. A bare record is as a record, until its entry is
//! removed: a record lock then goes to the gap where the entry was, and a bare one does not.

/// Shared or exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockMode {
    /// Others may read and share.
    Shared,
    /// No other owner may lock.
    Exclusive,
}

/// Which part of the index at a key is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LockExtent {
    /// The entry with the key.
    Record,
    /// The entry alone, as READ COMMITTED locks it: no gap is locked once the entry is removed.
    BareRecord,
    /// The open interval between the key and the one before it: no other owner may insert there.
    Gap,
    /// Both.
    NextKey,
    /// The wish to insert into the gap: waits for gap locks and blocks no request.
    InsertIntention,
}

/// Mode and extent together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LockKind {
    /// Shared or exclusive.
    pub mode: LockMode,
    /// Entry, gap or both.
    pub extent: LockExtent,
}

impl LockKind {
    /// The lock that an implicit one becomes, and that most writers ask for.
    pub const EXCLUSIVE_RECORD: Self = Self {
        mode: LockMode::Exclusive,
        extent: LockExtent::Record,
    };

    /// What an insert asks of the gap before its key's successor.
    pub const INSERT_INTENTION: Self = Self {
        mode: LockMode::Exclusive,
        extent: LockExtent::InsertIntention,
    };

    /// True if a request for `self` must wait while another owner has `held`.
    pub fn conflicts_with(self, held: Self) -> bool {
        let modes_conflict = self.mode == LockMode::Exclusive || held.mode == LockMode::Exclusive;
        modes_conflict && self.meets(held)
    }

    /// True if what is asked for overlaps what is held, as the table in the head says.
    fn meets(self, held: Self) -> bool {
        match self.extent {
            LockExtent::Gap => false,
            LockExtent::InsertIntention => held.covers_gap(),
            LockExtent::Record | LockExtent::BareRecord | LockExtent::NextKey => {
                held.covers_record()
            }
        }
    }

    /// True if holding `self` makes a request for `wanted` by the same owner superfluous.
    pub fn includes(self, wanted: Self) -> bool {
        let mode_suffices = wanted.mode <= self.mode;
        let extent_suffices = match wanted.extent {
            LockExtent::Record | LockExtent::BareRecord => self.covers_record(),
            LockExtent::Gap => self.covers_gap(),
            LockExtent::NextKey => self.extent == LockExtent::NextKey,
            LockExtent::InsertIntention => false,
        };
        mode_suffices && extent_suffices
    }

    /// True if no other owner may lock the entry.
    pub(crate) fn is_exclusive_record(self) -> bool {
        self.covers_record() && self.mode == LockMode::Exclusive
    }

    /// True if the entry itself is locked.
    pub fn covers_record(self) -> bool {
        matches!(
            self.extent,
            LockExtent::Record | LockExtent::BareRecord | LockExtent::NextKey
        )
    }

    /// True if the gap where the entry was stays locked once the entry is removed.
    pub(crate) fn outlives_record(self) -> bool {
        self.extent != LockExtent::BareRecord
    }

    /// True if inserts before the key must wait.
    pub fn covers_gap(self) -> bool {
        matches!(self.extent, LockExtent::Gap | LockExtent::NextKey)
    }
}
