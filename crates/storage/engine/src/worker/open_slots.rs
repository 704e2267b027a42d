//! The open transactions of all workers, as others see them.
//!
//! Each worker has slots, and a transaction takes one when a statement first uses it. It keeps
//! the slot until it has ended, also as an orphan that is rolled back in the background. Only its
//! worker writes a slot, by plain stores. So a transaction takes no lock for it, and writes no
//! other worker's memory. The list of a worker's slots grows under its mutex, once for each slot
//! that is added.
//!
//! (S1) A slot's generation is odd while it is taken. A reader reads it before and after the
//! fields, so it never mixes two transactions. Numbers of one transaction may be of different
//! moments.
//!
//! Refused: to ask each worker by a message. A worker that computes for long would not answer, and
//! its transactions are those that an operator looks for.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use format::TxnId;
use store::{ClientId, Isolation, OpenTransaction, TransactionOptions};
use sync::atomic::{AtomicU64, Ordering, fence};
use sync::{CachePadded, Mutex};

/// The slots of one worker, for readers on any worker.
#[derive(Debug, Default)]
pub(crate) struct SlotList {
    /// Only grows. As many as there were ever open at once.
    slots: Mutex<Vec<Arc<CachePadded<Slot>>>>,
}

/// What others see of one transaction. Written by its worker.
#[derive(Debug, Default)]
struct Slot {
    /// Odd while a transaction has the slot (S1).
    generation: AtomicU64,
    /// In microseconds since 1970.
    began_us: AtomicU64,
    client: AtomicU64,
    id: AtomicU64,
    /// See [`flags`].
    flags: AtomicU64,
    change_count: AtomicU64,
    lock_count: AtomicU64,
    lock_object_count: AtomicU64,
    table_count: AtomicU64,
    lock_bytes: AtomicU64,
}

/// The numbers of a transaction's locks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LockNumbers {
    /// Locks that it keeps.
    pub(crate) count: u64,
    /// Lock objects that InnoDB would have for them, those of tables included.
    pub(crate) object_count: u64,
    /// Tables.
    pub(crate) table_count: u64,
    /// Their memory.
    pub(crate) bytes: u64,
}

const READ_ONLY: u64 = 1 << 2;
const ROLLING_BACK: u64 = 1 << 3;
const ISOLATION_MASK: u64 = 3;

/// Isolation level and access mode in one word.
fn flags(options: &TransactionOptions) -> u64 {
    let isolation = match options.isolation {
        Isolation::ReadUncommitted => 0,
        Isolation::ReadCommitted => 1,
        Isolation::RepeatableRead => 2,
        Isolation::Serializable => 3,
    };
    isolation | if options.read_only { READ_ONLY } else { 0 }
}

fn isolation(flags: u64) -> Isolation {
    match flags & ISOLATION_MASK {
        0 => Isolation::ReadUncommitted,
        1 => Isolation::ReadCommitted,
        2 => Isolation::RepeatableRead,
        _ => Isolation::Serializable,
    }
}

/// The slots that a worker has free.
#[derive(Debug, Default)]
pub(crate) struct FreeSlots {
    free: RefCell<Vec<Arc<CachePadded<Slot>>>>,
}

/// A slot that belongs to a transaction. Dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct OpenSlot {
    owner: Rc<FreeSlots>,
    /// `Some` until it is dropped.
    slot: Option<Arc<CachePadded<Slot>>>,
}

impl OpenSlot {
    /// Takes a slot of a worker for a transaction that begins at `began_us`.
    pub(crate) fn take(
        owner: &Rc<FreeSlots>,
        list: &SlotList,
        options: &TransactionOptions,
        began_us: u64,
    ) -> Self {
        let slot = owner.free.borrow_mut().pop().unwrap_or_else(|| {
            let slot = Arc::<CachePadded<Slot>>::default();
            list.slots.lock().push(Arc::clone(&slot));
            slot
        });
        let generation = slot.generation.load(Ordering::Relaxed);
        assert!(generation.is_multiple_of(2), "a slot has one transaction");
        // Relaxed, all: the generation publishes them.
        slot.began_us.store(began_us, Ordering::Relaxed);
        slot.client.store(options.client.0, Ordering::Relaxed);
        slot.id.store(0, Ordering::Relaxed);
        slot.flags.store(flags(options), Ordering::Relaxed);
        let numbers = [
            &slot.change_count,
            &slot.lock_count,
            &slot.lock_object_count,
            &slot.table_count,
            &slot.lock_bytes,
        ];
        for number in numbers {
            number.store(0, Ordering::Relaxed);
        }
        // Release: pairs with the first load in `read`.
        slot.generation.store(generation + 1, Ordering::Release);
        Self {
            owner: Rc::clone(owner),
            slot: Some(slot),
        }
    }

    fn slot(&self) -> &Slot {
        self.slot
            .as_ref()
            .expect("it has its slot until it is dropped")
    }

    /// The transaction has its number.
    pub(crate) fn show_id(&self, id: TxnId) {
        let slot = self.slot();
        let before = slot.id.load(Ordering::Relaxed);
        assert_eq!(before, 0, "a transaction has one number");
        slot.id.store(id.get(), Ordering::Relaxed);
    }

    /// It has so many changes.
    pub(crate) fn show_changes(&self, count: u64) {
        self.slot().change_count.store(count, Ordering::Relaxed);
    }

    /// It has these locks.
    pub(crate) fn show_locks(&self, locks: LockNumbers) {
        let slot = self.slot();
        assert!(
            locks.table_count <= locks.object_count,
            "each table has its own lock object"
        );
        slot.lock_count.store(locks.count, Ordering::Relaxed);
        slot.lock_object_count
            .store(locks.object_count, Ordering::Relaxed);
        slot.table_count.store(locks.table_count, Ordering::Relaxed);
        slot.lock_bytes.store(locks.bytes, Ordering::Relaxed);
    }

    /// It is undone from now on.
    pub(crate) fn show_rollback(&self) {
        let flags = self.slot().flags.load(Ordering::Relaxed);
        self.slot()
            .flags
            .store(flags | ROLLING_BACK, Ordering::Relaxed);
    }
}

impl Drop for OpenSlot {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            let generation = slot.generation.load(Ordering::Relaxed);
            assert!(!generation.is_multiple_of(2), "a slot is freed once");
            slot.generation.store(generation + 1, Ordering::Relaxed);
            // Release: pairs with the fence in `read`. What the next transaction stores is seen
            // only by readers that also see this generation.
            fence(Ordering::Release);
            self.owner.free.borrow_mut().push(slot);
        }
    }
}

impl SlotList {
    /// Appends the worker's open transactions.
    pub(crate) fn append_open(&self, out: &mut Vec<OpenTransaction>) {
        let slots = self.slots.lock().clone();
        out.extend(slots.iter().filter_map(|slot| slot.read()));
    }
}

impl Slot {
    /// The transaction that has the slot, or `None` if none has it or it changes hands.
    fn read(&self) -> Option<OpenTransaction> {
        // Acquire: pairs with the store in `take`.
        let before = self.generation.load(Ordering::Acquire);
        if before.is_multiple_of(2) {
            return None;
        }
        let number = |field: &AtomicU64| field.load(Ordering::Relaxed);
        let flags = number(&self.flags);
        let seen = OpenTransaction {
            id: number(&self.id),
            client: ClientId(number(&self.client)),
            began_us: number(&self.began_us),
            isolation: isolation(flags),
            is_read_only: flags & READ_ONLY != 0,
            is_rolling_back: flags & ROLLING_BACK != 0,
            change_count: number(&self.change_count),
            lock_count: number(&self.lock_count),
            lock_object_count: number(&self.lock_object_count),
            table_count: number(&self.table_count),
            lock_bytes: number(&self.lock_bytes),
        };
        // Acquire: pairs with the fence in `drop`.
        fence(Ordering::Acquire);
        (self.generation.load(Ordering::Relaxed) == before).then_some(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: TransactionOptions = TransactionOptions {
        isolation: Isolation::Serializable,
        read_only: true,
        lock_wait_timeout_s: 1,
        client: ClientId(7),
    };

    fn open(list: &SlotList) -> Vec<OpenTransaction> {
        let mut open = Vec::new();
        list.append_open(&mut open);
        open
    }

    #[test]
    fn a_slot_shows_its_transaction_and_nothing_of_the_last_one() {
        let (list, free) = (SlotList::default(), Rc::<FreeSlots>::default());
        let first = OpenSlot::take(&free, &list, &OPTIONS, 5);
        first.show_id(TxnId::new(9).unwrap());
        first.show_changes(3);
        first.show_rollback();
        first.show_locks(LockNumbers {
            count: 1,
            object_count: 2,
            table_count: 1,
            bytes: 300,
        });
        let seen = open(&list);
        assert_eq!(seen.len(), 1);
        assert_eq!(
            (seen[0].id, seen[0].client, seen[0].began_us),
            (9, ClientId(7), 5)
        );
        assert!(seen[0].is_read_only && seen[0].is_rolling_back);
        assert_eq!(seen[0].isolation, Isolation::Serializable);
        assert_eq!((seen[0].lock_object_count, seen[0].lock_bytes), (2, 300));
        drop(first);
        assert!(open(&list).is_empty());
        let _second = OpenSlot::take(&free, &list, &OPTIONS, 6);
        let seen = open(&list);
        assert_eq!((seen[0].id, seen[0].change_count), (0, 0));
        assert!(!seen[0].is_rolling_back && seen[0].lock_count == 0);
        assert_eq!(list.slots.lock().len(), 1, "the slot is used again");
    }
}
