//! [`Keys`]: keys of rows that a part of a statement keeps, numbered in the order in which they
//! first come, and counted as what the statement keeps.

use expression::{Class, Share, append_class_key, append_group_key};
use stdx::KeyTable;
use value::{ColumnType, ValueRef};

use crate::Outcome;
use crate::context::Context;

/// Keys that came, and the one being made.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    table: KeyTable,
    share: Share,
    key: Vec<u8>,
}

/// Room for keys that is kept from one to the next.
const KEY_BYTES_KEPT: usize = 64 << 10;

impl Keys {
    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.table.clear();
        self.share.clear();
        self.begin();
    }

    /// How many came.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Begins a key.
    pub(crate) fn begin(&mut self) {
        if KEY_BYTES_KEPT < self.key.capacity() {
            self.key = Vec::new();
        }
        self.key.clear();
    }

    /// Adds a value to the key: equal values of this type make equal keys.
    pub(crate) fn push(
        &mut self,
        value: ValueRef<'_>,
        column_type: &ColumnType,
        cx: &Context<'_>,
    ) -> Outcome<()> {
        cx.spend_on(value)?;
        append_group_key(value, column_type, &mut self.key);
        Ok(())
    }

    /// Adds a value to the key: equal values of this class make equal keys.
    pub(crate) fn push_class(
        &mut self,
        value: ValueRef<'_>,
        class: Class,
        cx: &Context<'_>,
    ) -> Outcome<()> {
        cx.spend_on(value)?;
        append_class_key(value, class, &mut self.key);
        Ok(())
    }

    /// Makes this the key.
    pub(crate) fn set(&mut self, key: &[u8]) {
        self.begin();
        self.key.extend_from_slice(key);
    }

    /// The number of the key that was made, if it came before.
    pub(crate) fn find(&self) -> Option<usize> {
        self.table.find(&self.key)
    }

    /// The number of the key that was made, and whether it came for the first time.
    pub(crate) fn insert(&mut self, cx: &Context<'_>) -> Outcome<(usize, bool)> {
        let (number, is_new) = self.table.insert(&self.key);
        if is_new {
            cx.keep(&mut self.share, self.table.memory_bytes())?;
        }
        Ok((number, is_new))
    }
}
