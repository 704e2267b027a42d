//! [`Frame`]: all current rows of one execution, and its parameters.
//!
//! Operators move the slots, expressions read them. A value that is read from the frame borrows it.
//! So the compiler refuses to move a slot, or to reset the arena, while a value is in use.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use bumpalo::Bump;
use foldhash::fast::RandomState;
use format::row::RowError;
use store::RowBatch;
use value::{Value, ValueRef};

use crate::{Failure, Members, Memory, Rows, Share, Statement};

/// The current rows.
#[derive(Debug, Default)]
pub struct Frame {
    /// By the plan's slot numbers.
    pub slots: Vec<Slot>,
    /// The values of `?` and of extracted literals.
    pub parameters: Vec<Value>,
    /// Results of subqueries, by the plan's numbers.
    pub subqueries: Vec<SubqueryResult>,
    /// Hash tables of the members of long lists, by the plan's numbers.
    pub(crate) lists: Vec<ListTable>,
    /// The buffer for lookup keys; reused.
    key: RefCell<Vec<u8>>,
    /// The memory of strings that expressions compute.
    arena: Bump,
    /// The largest size that the arena had when it was freed.
    arena_bytes_max: usize,
    /// As much of the arena is counted; nothing of a small one.
    arena_bytes_counted: Cell<usize>,
    /// The memory share of the arena.
    arena_share: RefCell<Share>,
    /// The account of the execution.
    memory: Rc<Memory>,
}

/// One current row.
#[derive(Debug)]
pub struct Slot {
    /// The rows.
    pub content: SlotContent,
    /// The current row of the content; `None` is a row of NULLs (an outer join's).
    pub row: Option<usize>,
}

/// The rows of a slot.
#[derive(Debug)]
pub enum SlotContent {
    /// As the store encoded them.
    Batch(RowBatch),
    /// As an operator computed them.
    Rows(Rows),
}

/// The result of a subquery for the current outer row.
#[derive(Debug, Default, Clone)]
pub enum SubqueryResult {
    /// Nothing yet.
    #[default]
    Pending,
    /// A scalar subquery's value.
    Scalar(Value),
    /// Whether there is a row.
    Exists(bool),
    /// The rows are in the subquery's slot.
    Set {
        /// The slot.
        slot: usize,
        /// What is compared in place of the rows, if anything.
        members: Option<Rc<Members>>,
    },
}

/// A long list of an `IN`. Its members are the same for all rows of a run, so a list that is
/// searched for many rows is searched by hash.
#[derive(Debug, Default)]
pub(crate) struct ListTable {
    /// Searches of this run, until the table was built.
    pub(crate) searches: Cell<u32>,
    pub(crate) members: OnceCell<ListPlaces>,
}

/// The members of a list in a hash table with open addressing: six bytes a member.
#[derive(Debug)]
pub(crate) struct ListPlaces {
    /// The number of a member plus 1, or 0; at most two thirds are in use.
    pub(crate) places: Box<[u32]>,
    pub(crate) hasher: RandomState,
    /// A member is NULL.
    pub(crate) has_null: bool,
    /// For a list of rows: the numbers of those with a NULL.
    pub(crate) partial: Vec<u32>,
}

/// The result of a search for a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The value.
    Taken,
    /// The value is missing; this is its free place.
    Free(usize),
}

impl ListPlaces {
    /// A table for this many members.
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

    /// The first place of the search for a hash.
    pub(crate) fn place_of(&self, hash: u64) -> usize {
        let count = u128::from(stdx::to_u64(self.places.len()));
        let scaled = (u128::from(hash) * count) >> 64;
        stdx::to_usize(u64::try_from(scaled).expect("it is below the count"))
    }

    /// The next place.
    pub(crate) fn behind(&self, place: usize) -> usize {
        match place + 1 == self.places.len() {
            true => 0,
            false => place + 1,
        }
    }
}

/// With more bytes of strings, the arena starts over at the next row.
const ARENA_BYTES_MAX: usize = 64 * 1024;
/// A larger arena is freed: a reset keeps half of it or more.
const ARENA_BYTES_KEPT: usize = 1 << 20;

/// A larger key buffer is freed.
const KEY_BYTES_KEPT: usize = 4 << 10;

impl Frame {
    /// A frame with these slots, and this many subqueries and lists.
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
            arena_bytes_counted: Cell::new(ARENA_BYTES_MAX),
            arena_share: RefCell::default(),
            memory: Rc::default(),
        }
    }

    /// The account of the execution.
    pub fn memory(&self) -> &Rc<Memory> {
        &self.memory
    }

    /// Calls `look` with the key that `make` appends to an empty buffer.
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

    /// The memory of strings that expressions compute.
    #[inline]
    pub fn arena(&self) -> &Bump {
        &self.arena
    }

    /// Counts the memory of strings that expressions compute, before `more` bytes are added. A
    /// small arena is not counted.
    ///
    /// # Errors
    /// 1290 or 1041 if that is too much.
    #[inline]
    pub fn count_arena(&self, more: usize, statement: &Statement<'_>) -> Result<(), Failure> {
        let bytes = self.arena.allocated_bytes().saturating_add(more);
        if bytes <= self.arena_bytes_counted.get() {
            return Ok(());
        }
        self.count_large_arena(bytes, statement)
    }

    #[cold]
    fn count_large_arena(&self, bytes: usize, statement: &Statement<'_>) -> Result<(), Failure> {
        let limit = statement.options.kept_bytes_max;
        let pool = || statement.session.memory_pool();
        let mut share = self.arena_share.borrow_mut();
        share.set(bytes, &self.memory, limit, pool)?;
        self.arena_bytes_counted.set(bytes);
        Ok(())
    }

    fn free_arena(&mut self) {
        self.arena = Bump::new();
        self.arena_share.get_mut().clear();
        self.arena_bytes_counted.set(ARENA_BYTES_MAX);
    }

    /// Drops computed strings once they take much memory; called between rows.
    #[inline]
    pub fn recycle(&mut self) {
        let bytes = self.arena.allocated_bytes();
        if ARENA_BYTES_KEPT < bytes {
            self.free_arena();
            self.arena_bytes_max = self.arena_bytes_max.max(bytes);
        } else if ARENA_BYTES_MAX < bytes {
            self.arena.reset();
        }
    }

    /// Drops what was derived from the parameters: another run begins.
    pub fn forget_lists(&mut self) {
        self.lists.fill_with(ListTable::default);
    }

    /// Drops the values and frees large buffers; called when a statement ends.
    pub fn shrink(&mut self) {
        if ARENA_BYTES_MAX < self.arena.allocated_bytes() {
            self.free_arena();
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

    /// Bytes that are allocated; of computed strings, the most since the last `shrink`.
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

    /// The batch of a slot of table rows, read-only.
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

    /// The computed rows of a slot, read-only.
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

/// Drops values, and their buffer if it is large.
pub fn clear_values(values: &mut Vec<Value>) {
    if VALUE_COUNT_KEPT < values.capacity() {
        *values = Vec::new();
    }
    values.clear();
}

/// A buffer for more parameters than this is not kept.
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
