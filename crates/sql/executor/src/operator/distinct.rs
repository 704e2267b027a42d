//! Gives each row once.
//!
//! Rows are computed into the slot; a set of their keys (equal values have equal keys) says which
//! were there before.

use std::rc::Rc;

use expression::{Share, append_group_key};
use foldhash::{HashSet, HashSetExt};
use planner::Computed;

use crate::context::{Context, Dependents};
use crate::keep;
use crate::{Operator, Outcome, Rewind};

#[derive(Debug)]
pub(crate) struct DistinctOperator {
    input: Box<dyn Operator>,
    plan: Rc<Computed>,
    dependents: Dependents,
    seen: Seen,
    holds_row: bool,
}

/// What a key takes beside its bytes: its place in a table that is half full, and an allocation's
/// overhead.
pub(crate) const KEY_BYTES: usize = 2 * size_of::<Box<[u8]>>() + 16;

/// Keys that were there before.
#[derive(Debug)]
pub(crate) struct Seen {
    keys: HashSet<Box<[u8]>>,
    bytes: usize,
    share: Share,
    /// The key being made; reused.
    pub(crate) key: Vec<u8>,
}

impl Seen {
    pub(crate) fn new() -> Self {
        Self {
            keys: HashSet::new(),
            bytes: 0,
            share: Share::default(),
            key: Vec::new(),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.bytes = 0;
        self.share.clear();
    }

    /// Adds the key that was made; false if it was there before.
    pub(crate) fn insert(&mut self) -> bool {
        if self.keys.contains(self.key.as_slice()) {
            return false;
        }
        self.bytes += self.key.len() + KEY_BYTES;
        self.keys.insert(self.key.as_slice().into())
    }

    /// Says how much is kept.
    pub(crate) fn keep(&mut self, cx: &Context<'_>) -> Outcome<()> {
        cx.keep(&mut self.share, self.bytes)
    }
}

impl DistinctOperator {
    pub(crate) fn new(input: Box<dyn Operator>, plan: Rc<Computed>) -> Self {
        let dependents = Dependents::new(&plan.dependent);
        Self {
            input,
            plan,
            dependents,
            seen: Seen::new(),
            holds_row: false,
        }
    }
}

impl Operator for DistinctOperator {
    fn rewind(&mut self, how: Rewind) {
        self.input.rewind(how);
        self.dependents.rewind();
        self.seen.clear();
        self.holds_row = false;
    }

    fn next(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
        loop {
            if !self.holds_row {
                if !self.input.next(cx)? {
                    return Ok(false);
                }
                self.holds_row = true;
            }
            self.dependents.run(cx)?;
            self.holds_row = false;
            cx.frame.rows_mut(self.plan.slot).clear();
            keep::push_row(cx, self.plan.slot, &self.plan.kept)?;
            self.seen.key.clear();
            let rows = cx.frame.rows(self.plan.slot);
            for (column, kept) in self.plan.kept.iter().take(self.plan.key_count).enumerate() {
                let value = rows.get(0, column);
                cx.spend_on(value)?;
                append_group_key(value, &kept.column_type, &mut self.seen.key);
            }
            if self.seen.insert() {
                self.seen.keep(cx)?;
                cx.frame.slots[self.plan.slot].row = Some(0);
                return Ok(true);
            }
        }
    }
}
