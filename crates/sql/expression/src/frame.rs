//! [`Frame`]: all rows in flight in one execution, and the values given to it.
//!
//! Operators move the slots, expressions read them. A value read out of the frame borrows it, so
//! the compiler refuses to move a slot, or to reset the arena, while a value is still in use.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use bumpalo::Bump;
use foldhash::fast::RandomState;
use format::row::RowError;
use store::RowBatch;
use value::{Value, ValueRef};

use crate::{Members, Rows};

/// The rows in flight.
#[derive(Debug, Default)]
pub struct Frame {
    /// By the plan's slot numbers.
    pub slots: Vec<Slot>,
    /// The values of `?` and lifted literals.
    pub parameters: Vec<Value>,
    /// What subqueries found, by the plan's numbers.
    pub subqueries: Vec<SubqueryResult>,
    /// Tables of the members of long lists, by the plan's numbers.
    pub(crate) lists: Vec<ListTable>,
    /// For keys that are made to look something up; reused.
    key: RefCell<Vec<u8>>,
    /// Where expressions put strings that they compute.
    arena: Bump,
    /// The most that the arena had taken when it was given back.
    arena_bytes_max: usize,
}

/// One current row.
#[derive(Debug)]
pub struct Slot {
    /// Where the row stands.
    pub content: SlotContent,
    /// Which row of the content is current; `None` is a row of NULLs (an outer join's).
    pub row: Option<usize>,
}

/// Where a slot's rows stand.
#[derive(Debug)]
pub enum SlotContent {
    /// As the store encoded them.
    Batch(RowBatch),
    /// As an operator computed them.
    Rows(Rows),
}

/// What a subquery found for the current outer row.
#[derive(Debug, Default, Clone)]
pub enum SubqueryResult {
    /// Nothing yet.
    #[default]
    Pending,
    /// A scalar subquery's value.
    Scalar(Value),
    /// Whether there is a row.
    Exists(bool),
    /// The rows stand in the subquery's slot.
    Set {
        /// The slot.
        slot: usize,
        /// What answers the comparison in place of the rows, where something does.
        members: Option<Rc<Members>>,
    },
}

/// A long list of an `IN`. Its members are the same for all rows of a run, so one that is searched
/// for many rows is searched by hash.
#[derive(Debug, Default)]
pub(crate) struct ListTable {
    /// Searches of this run, up to the one that made the table.
    pub(crate) searches: Cell<u32>,
    pub(crate) members: OnceCell<ListPlaces>,
}

/// Where the members of a list stand in a table of open addresses: six bytes a member.
#[derive(Debug)]
pub(crate) struct ListPlaces {
    /// The number of a member and 1, or 0; at most two in three of them are taken.
    pub(crate) places: Box<[u32]>,
    pub(crate) hasher: RandomState,
    /// A member is NULL.
    pub(crate) has_null: bool,
    /// Of a list of rows: the numbers of those that have a NULL.
    pub(crate) partial: Vec<u32>,
}

/// What was found where a value is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The value.
    Taken,
    /// Nothing: the value would stand there.
    Free(usize),
}

impl ListPlaces {
    /// Room for so many members.
    pub(crate) fn new(count: usize) -> Self {
        let place_count = count + count / 2 + 2;
        assert!(count < place_count, "a search ends at a free place");
        Self {
            places: vec![0; place_count].into(),
            hasher: RandomState::default(),
            has_null: false,
            partial: Vec::new(),
        }
    }

    /// Where the search for a hash begins.
    pub(crate) fn place_of(&self, hash: u64) -> usize {
        let count = u128::from(stdx::to_u64(self.places.len()));
        let scaled = (u128::from(hash) * count) >> 64;
        stdx::to_usize(u64::try_from(scaled).expect("it is below the count"))
    }

    /// Where it goes on.
    pub(crate) fn behind(&self, place: usize) -> usize {
        match place + 1 == self.places.len() {
            true => 0,
            false => place + 1,
        }
    }
}

/// Strings beyond this make the arena start over at the next row.
const ARENA_BYTES_MAX: usize = 64 * 1024;
/// An arena that was larger is given back: a reset one keeps half of it or more.
const ARENA_BYTES_KEPT: usize = 1 << 20;

/// A larger buffer for keys is given back.
const KEY_BYTES_KEPT: usize = 4 << 10;

impl Frame {
    /// A frame with these slots, and room for so many subqueries and lists.
    pub fn new(slots: Vec<Slot>, subquery_count: usize, list_count: usize) -> Self {
        let subqueries = vec![SubqueryResult::Pending; subquery_count];
        Self {
            slots,
            parameters: Vec::new(),
            subqueries,
            lists: std::iter::repeat_with(ListTable::default)
                .take(list_count)
                .collect(),
            key: RefCell::default(),
            arena: Bump::new(),
            arena_bytes_max: 0,
        }
    }

    /// What `look` finds by a key that `make` appends to an empty buffer.
    pub(crate) fn by_key<T>(
        &self,
        make: impl FnOnce(&mut Vec<u8>),
        look: impl FnOnce(&[u8]) -> T,
    ) -> T {
        let mut key = self.key.take();
        key.clear();
        make(&mut key);
        let found = look(&key);
        if key.capacity() <= KEY_BYTES_KEPT {
            self.key.replace(key);
        }
        found
    }

    /// A column of a slot's current row.
    #[inline]
    pub fn column(&self, slot: usize, column: usize) -> Result<ValueRef<'_>, RowError> {
        let slot = &self.slots[slot];
        let Some(row) = slot.row else {
            return Ok(ValueRef::Null);
        };
        match &slot.content {
            SlotContent::Batch(batch) => batch.column(row, column),
            SlotContent::Rows(rows) => Ok(rows.get(row, column)),
        }
    }

    /// Where expressions put strings that they compute.
    #[inline]
    pub fn arena(&self) -> &Bump {
        &self.arena
    }

    /// Forgets computed strings once they take much room; called between rows.
    #[inline]
    pub fn recycle(&mut self) {
        let bytes = self.arena.allocated_bytes();
        if ARENA_BYTES_KEPT < bytes {
            self.arena = Bump::new();
            self.arena_bytes_max = self.arena_bytes_max.max(bytes);
        } else if ARENA_BYTES_MAX < bytes {
            self.arena.reset();
        }
    }

    /// Forgets what was made of the parameters: another run begins.
    pub fn forget_lists(&mut self) {
        self.lists.fill_with(ListTable::default);
    }

    /// Forgets the values and what is large; called when a statement is over.
    pub fn shrink(&mut self) {
        if ARENA_BYTES_MAX < self.arena.allocated_bytes() {
            self.arena = Bump::new();
        }
        for slot in &mut self.slots {
            match &mut slot.content {
                SlotContent::Batch(batch) => batch.shrink(),
                SlotContent::Rows(rows) => rows.shrink(),
            }
            slot.row = None;
        }
        self.subqueries.fill(SubqueryResult::Pending);
        clear_values(&mut self.parameters);
        self.forget_lists();
        self.arena_bytes_max = 0;
    }

    /// Bytes that are allocated, or were since the last `shrink` for computed strings.
    pub fn memory_bytes(&self) -> usize {
        let slots = self.slots.iter().map(|slot| match &slot.content {
            SlotContent::Batch(batch) => batch.memory_bytes(),
            SlotContent::Rows(rows) => rows.memory_bytes(),
        });
        let values = self.parameters.iter().map(|value| match value {
            Value::Bytes(bytes) => size_of::<Value>() + bytes.capacity(),
            _ => size_of::<Value>(),
        });
        let arena = self.arena_bytes_max.max(self.arena.allocated_bytes());
        slots.sum::<usize>() + values.sum::<usize>() + arena
    }

    /// The batch of a slot of table rows.
    ///
    /// # Panics
    /// If the slot holds computed rows.
    #[inline]
    pub fn batch_mut(&mut self, slot: usize) -> &mut RowBatch {
        match &mut self.slots[slot].content {
            SlotContent::Batch(batch) => batch,
            SlotContent::Rows(_) => panic!("slot {slot} holds table rows"),
        }
    }

    /// The batch of a slot of table rows, to read.
    ///
    /// # Panics
    /// If the slot holds computed rows.
    #[inline]
    pub fn batch(&self, slot: usize) -> &RowBatch {
        match &self.slots[slot].content {
            SlotContent::Batch(batch) => batch,
            SlotContent::Rows(_) => panic!("slot {slot} holds table rows"),
        }
    }

    /// The computed rows of a slot.
    ///
    /// # Panics
    /// If the slot holds table rows.
    #[inline]
    pub fn rows_mut(&mut self, slot: usize) -> &mut Rows {
        match &mut self.slots[slot].content {
            SlotContent::Rows(rows) => rows,
            SlotContent::Batch(_) => panic!("slot {slot} holds computed rows"),
        }
    }

    /// The computed rows of a slot, to read.
    ///
    /// # Panics
    /// If the slot holds table rows.
    #[inline]
    pub fn rows(&self, slot: usize) -> &Rows {
        match &self.slots[slot].content {
            SlotContent::Rows(rows) => rows,
            SlotContent::Batch(_) => panic!("slot {slot} holds computed rows"),
        }
    }
}

/// Drops values, and the room for them where they were many.
pub fn clear_values(values: &mut Vec<Value>) {
    if VALUE_COUNT_KEPT < values.capacity() {
        *values = Vec::new();
    }
    values.clear();
}

/// More parameters than this are not made room for before they come.
const VALUE_COUNT_KEPT: usize = 512;

impl Slot {
    /// A slot for rows of a table.
    pub fn of_table(batch: RowBatch) -> Self {
        Self {
            content: SlotContent::Batch(batch),
            row: None,
        }
    }

    /// A slot for computed rows of `width` columns.
    pub fn computed(width: usize) -> Self {
        Self {
            content: SlotContent::Rows(Rows::new(width)),
            row: None,
        }
    }
}
