//! [`TableSlot`] and [`Changes`]: which tables a statement reads or changes, cheap to keep and to
//! compare.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;

/// Most tables that a statement changes by name. One with more counts as one that changes any.
pub const CHANGED_TABLES_MAX: usize = 4;

/// Bits of a slot's number.
const SLOT_BITS: u32 = 16;

/// How many slots there are.
pub const SLOT_COUNT: usize = 1 << SLOT_BITS;

/// The place of a name among [`SLOT_COUNT`]. Names of several tables may share one: then a change
/// of one counts as a change of both. Databases do not matter, and upper and lower case are
/// alike, since servers may be set to that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TableSlot(u16);

impl TableSlot {
    /// Of a name without quotes. `None` if it is not ASCII: servers have other rules for upper and
    /// lower case there.
    #[must_use]
    pub fn of(name: &[u8]) -> Option<TableSlot> {
        if !name.is_ascii() {
            return None;
        }
        // The hash is the same in each run and worker.
        let mut hasher = FixedState::default().build_hasher();
        for byte in name {
            hasher.write_u8(byte.to_ascii_lowercase());
        }
        let hash = hasher.finish() >> (u64::BITS - SLOT_BITS);
        u16::try_from(hash).ok().map(TableSlot)
    }

    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// What a statement may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Changes {
    /// No table.
    #[default]
    Nothing,
    /// These tables, and those that the catalogue says change with them.
    Tables(ChangedTables),
    /// Any table, but no definition.
    AnyTable,
    /// Any table and any definition.
    Anything,
}

/// At most [`CHANGED_TABLES_MAX`] tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChangedTables {
    slots: [TableSlot; CHANGED_TABLES_MAX],
    count: u8,
}

impl ChangedTables {
    pub(crate) fn slots(&self) -> &[TableSlot] {
        let count = usize::from(self.count);
        self.slots.get(..count).unwrap_or_default()
    }

    /// Adds one. Returns `false` if there is no room.
    fn add(&mut self, slot: TableSlot) -> bool {
        if self.slots().contains(&slot) {
            return true;
        }
        let Some(free) = self.slots.get_mut(usize::from(self.count)) else {
            return false;
        };
        *free = slot;
        self.count += 1;
        true
    }
}

impl Changes {
    /// The change of the tables of these names. Of more than [`CHANGED_TABLES_MAX`], or with a name
    /// that has no slot, it is one of any table.
    pub fn of_tables<'a>(names: impl IntoIterator<Item = &'a [u8]>) -> Changes {
        let mut tables = ChangedTables::default();
        for name in names {
            let added = TableSlot::of(name).is_some_and(|slot| tables.add(slot));
            if !added {
                return Changes::AnyTable;
            }
        }
        match tables.count {
            0 => Changes::AnyTable,
            _ => Changes::Tables(tables),
        }
    }

    /// What both change.
    #[must_use]
    pub fn and(self, other: Changes) -> Changes {
        match (self, other) {
            (Changes::Nothing, one) | (one, Changes::Nothing) => one,
            (Changes::Anything, _) | (_, Changes::Anything) => Changes::Anything,
            (Changes::AnyTable, _) | (_, Changes::AnyTable) => Changes::AnyTable,
            (Changes::Tables(mut all), Changes::Tables(more)) => {
                let fits = more.slots().iter().all(|slot| all.add(*slot));
                match fits {
                    true => Changes::Tables(all),
                    false => Changes::AnyTable,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&'static str]) -> Changes {
        Changes::of_tables(names.iter().map(|name| name.as_bytes()))
    }

    #[test]
    fn case_does_not_matter_and_other_letters_have_no_slot() {
        assert_eq!(TableSlot::of(b"Orders"), TableSlot::of(b"oRDERS"));
        assert_ne!(TableSlot::of(b"orders"), TableSlot::of(b"order"));
        assert!(TableSlot::of(b"orders").is_some());
        assert_eq!(TableSlot::of("\u{e4}".as_bytes()), None);
    }

    #[test]
    fn as_many_tables_are_told_apart_as_there_is_room_for() {
        for (names, is_known) in [
            (&["a", "b", "c"][..], true),
            (&["a", "b", "c", "d"], true),
            (&["a", "b", "c", "d", "A"], true),
            (&["a", "b", "c", "d", "e"], false),
            (&["a", "\u{e4}"], false),
            (&[], false),
        ] {
            let is_tables = matches!(of(names), Changes::Tables(_));
            assert_eq!(is_tables, is_known, "{names:?}");
        }
    }

    #[test]
    fn changes_add_up() {
        let nothing = Changes::Nothing;
        assert_eq!(nothing.and(of(&["a"])), of(&["a"]));
        assert_eq!(of(&["a"]).and(nothing), of(&["a"]));
        assert_eq!(of(&["a"]).and(of(&["b", "a"])), of(&["a", "b"]));
        assert_eq!(of(&["a", "b", "c"]).and(of(&["d", "e"])), Changes::AnyTable);
        assert_eq!(of(&["a"]).and(Changes::AnyTable), Changes::AnyTable);
        assert_eq!(Changes::AnyTable.and(Changes::Anything), Changes::Anything);
    }
}
