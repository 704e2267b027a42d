//! [`Keys`]: keys of rows that a part of a statement keeps. They are numbered in the order of first
//! insertion, and their memory is counted among what the statement keeps.

use expression::{Class, Share, append_class_key, append_group_key};
use stdx::KeyTable;
use value::{ColumnType, ValueRef};

use crate::Outcome;
use crate::context::Context;

/// The inserted keys, and the one that is being built.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    table: KeyTable,
    share: Share,
    key: Vec<u8>,
}

/// Capacity of the key buffer that is kept from one key to the next.
const KEY_BYTES_KEPT: usize = 64 << 10;

impl Keys {
    /// Drops all keys.
    pub(crate) fn clear(&mut self) {
        self.table.clear();
        self.share.clear();
        self.begin();
    }

    /// How many keys were inserted.
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

    /// Appends a value to the key: equal values of this type make equal keys.
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

    /// Appends a value to the key: equal values of this class make equal keys.
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

    /// Sets the whole key.
    pub(crate) fn set(&mut self, key: &[u8]) {
        self.begin();
        self.key.extend_from_slice(key);
    }

    /// The number of the built key, if it was inserted before.
    pub(crate) fn find(&self) -> Option<usize> {
        self.table.find(&self.key)
    }

    /// Inserts the built key. Returns its number, and whether it is new.
    pub(crate) fn insert(&mut self, cx: &Context<'_>) -> Outcome<(usize, bool)> {
        let (number, is_new) = self.table.insert(&self.key);
        if is_new {
            cx.keep(&mut self.share, self.table.memory_bytes())?;
        }
        Ok((number, is_new))
    }
}
