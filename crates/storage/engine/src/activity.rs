//! What operators see: open transactions, waits for locks, and the last deadlocks.
//!
//! Locks have the names of indexes by id and of keys by their bytes. Here they get the names of
//! tables and the values of keys, when somebody asks, and never before.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use format::IndexId;
use lock::{Deadlock, LockExtent, LockMode, LockName, OwnedLock, Wait};
use store::{Activity, ShownDeadlock, ShownExtent, ShownLock, ShownMember, ShownWait, TableName};

use crate::schema::dictionary::Dictionary;
use crate::schema::table_shape::{KeyShape, TableShape};
use crate::worker::Worker;

/// The most edges that are shown, each from a wait to a lock that blocks it. 180 waiters of one row
/// have so many. MariaDB's limit is 16 MB.
const EDGES_SHOWN_MAX: usize = 16_384;

impl Worker {
    /// The open transactions of all workers, and who waits for whom.
    pub(crate) fn activity(&self) -> Activity {
        let mut activity = Activity::default();
        for list in &self.shared.open_slots {
            list.append_open(&mut activity.transactions);
        }
        let dictionary = self.dictionary();
        let names = IndexNames::of(&dictionary);
        let clocks = Clocks::now(self);
        let mut places = HashMap::new();
        // Texts are made once for each lock, and not for each of its edges.
        let mut place =
            |lock: OwnedLock, locks: &mut Vec<ShownLock>| match places.entry(shown_as(lock)) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => {
                    locks.push(names.shown(new.key()));
                    *new.insert(locks.len() - 1)
                }
            };
        for Wait {
            wanted,
            since_ns,
            blockers,
        } in self.shared.locks.waits(EDGES_SHOWN_MAX)
        {
            let wanted = place(wanted, &mut activity.locks);
            assert!(!blockers.is_empty(), "a wait is blocked");
            for blocker in blockers {
                let blocker = place(blocker, &mut activity.locks);
                activity.waits.push(ShownWait {
                    wanted,
                    blocker,
                    since_us: clocks.wall_us(since_ns),
                });
            }
        }
        activity
    }

    /// The deadlocks with a higher number than `after`.
    pub(crate) fn deadlocks(&self, after: u64) -> Vec<ShownDeadlock> {
        let noted = self.shared.locks.deadlocks(after);
        if noted.is_empty() {
            return Vec::new();
        }
        let dictionary = self.dictionary();
        let names = IndexNames::of(&dictionary);
        let clocks = Clocks::now(self);
        let shown = noted
            .iter()
            .map(|deadlock| shown_deadlock(deadlock, &names, &clocks));
        shown.collect()
    }
}

fn shown_deadlock(deadlock: &Deadlock, names: &IndexNames<'_>, clocks: &Clocks) -> ShownDeadlock {
    assert!(
        deadlock.victim < deadlock.members.len(),
        "the victim is one of those that are noted"
    );
    let members = deadlock.members.iter().map(|member| ShownMember {
        client: member.client,
        statement: member.statement.clone(),
        wanted: names.shown(&member.wanted),
        waited_us: deadlock.at_ns.saturating_sub(member.since_ns) / 1000,
        blocker: member.blocker.as_ref().map(|lock| names.shown(lock)),
        weight: member.weight,
    });
    ShownDeadlock {
        number: deadlock.number,
        at_us: clocks.wall_us(deadlock.at_ns),
        members: members.collect(),
        left_out_count: deadlock.left_out_count,
        victim: deadlock.victim,
    }
}

/// Both clocks at one moment.
struct Clocks {
    steady_ns: u64,
    wall_us: u64,
}

impl Clocks {
    fn now(worker: &Worker) -> Self {
        Self {
            steady_ns: worker.now_ns(),
            wall_us: worker.options.clock.wall_micros(),
        }
    }

    /// A moment of the past, in microseconds since 1970.
    fn wall_us(&self, steady_ns: u64) -> u64 {
        let ago_us = self.steady_ns.saturating_sub(steady_ns) / 1000;
        self.wall_us.saturating_sub(ago_us)
    }
}

/// Tables by the ids of their indexes.
struct IndexNames<'d> {
    /// The table, and the position of the index; `None` is the tree of the rows.
    by_id: HashMap<IndexId, (&'d TableShape, Option<usize>)>,
}

impl<'d> IndexNames<'d> {
    fn of(dictionary: &'d Dictionary) -> Self {
        let mut by_id = HashMap::new();
        for table in dictionary.tables.values() {
            by_id.insert(table.clustered.index, (&**table, None));
            for (position, index) in table.secondary.iter().enumerate() {
                let before = by_id.insert(index.tree.index, (&**table, Some(position)));
                assert!(before.is_none(), "an index is of one table");
            }
        }
        Self { by_id }
    }

    fn shown(&self, lock: &OwnedLock) -> ShownLock {
        let found = self.by_id.get(&lock.name.index());
        let key = lock.name.encoded_key();
        ShownLock {
            id: lock_id(lock),
            transaction: lock.owner.get(),
            index: found.map(|&(table, index)| named(table, index)),
            is_shared: lock.kind.mode == LockMode::Shared,
            extent: shown_extent(lock.kind.extent),
            key: key.map(|key| match found {
                Some(&(table, index)) => key_text(table, index, key),
                None => hex(key),
            }),
            is_held: lock.is_held,
        }
    }
}

/// As InnoDB's, it has the transaction and the place of the entry, and not the mode.
fn lock_id(lock: &OwnedLock) -> String {
    let name: &LockName = &lock.name;
    let (owner, index) = (lock.owner.get(), name.index().0);
    match name.encoded_key() {
        Some(_) => format!("{owner}:{index}:{:016x}", name.hash_code()),
        None => format!("{owner}:{index}:supremum"),
    }
}

/// A lock as it is listed: a bare record looks like any other.
fn shown_as(mut lock: OwnedLock) -> OwnedLock {
    if lock.kind.extent == LockExtent::BareRecord {
        lock.kind.extent = LockExtent::Record;
    }
    lock
}

fn shown_extent(extent: LockExtent) -> ShownExtent {
    match extent {
        LockExtent::Record | LockExtent::BareRecord => ShownExtent::Record,
        LockExtent::Gap => ShownExtent::Gap,
        LockExtent::NextKey => ShownExtent::NextKey,
        LockExtent::InsertIntention => ShownExtent::InsertIntention,
    }
}

/// The names of a table and of one of its indexes, as InnoDB names them.
fn named(table: &TableShape, index: Option<usize>) -> (TableName, String) {
    let definition = &table.entry.definition;
    let named = match index {
        Some(position) => definition.indexes.get(table.secondary[position].position),
        None => definition.clustered_key(),
    };
    let name = named.map_or("GEN_CLUST_INDEX", |index| &index.name);
    (definition.name.clone(), name.to_owned())
}

/// The values of a key, separated by commas. The key of an entry ends with that of its row.
fn key_text(table: &TableShape, index: Option<usize>, key: &[u8]) -> String {
    assert!(
        index.is_none_or(|position| position < table.secondary.len()),
        "the index is the table's"
    );
    let mut rest = key;
    let mut values = Vec::new();
    let own = index.map(|position| &table.secondary[position].key);
    let shapes: [Option<&KeyShape>; 2] = [own, table.row_key()];
    for shape in shapes.into_iter().flatten() {
        shape.append_texts(&mut rest, &mut values);
    }
    if !rest.is_empty() {
        // A hidden row id.
        values.push(hex(rest));
    }
    values.join(", ")
}

/// Bytes that are no value.
fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
    format!("0x{}", digits.collect::<String>())
}

impl KeyShape {
    /// Removes this key from the beginning of `key`, and appends a text for each part: its value,
    /// or the bytes of a key that does not lead back to one.
    fn append_texts(&self, key: &mut &[u8], out: &mut Vec<String>) {
        for part in self.parts() {
            let Some(length) = part.length_in(key) else {
                return;
            };
            let (mut own, rest) = key.split_at(length);
            *key = rest;
            let bytes = own;
            out.push(match part.take(&mut own) {
                Some(value) if value.is_null() => "NULL".to_owned(),
                Some(value) => {
                    let mut text = Vec::new();
                    value.append_text(&part.column, &mut text);
                    let text = String::from_utf8_lossy(&text).into_owned();
                    match part.column.kind.is_temporal() {
                        true => format!("'{text}'"),
                        false => text,
                    }
                }
                None => hex(bytes),
            });
        }
    }
}
