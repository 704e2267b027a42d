//! [`Tables`]: when each table was changed last, for all workers, and what its definition says.
//!
//! A statement that changes tables is bracketed: the change begins before it is sent, and ends once
//! it was answered. A query takes the moment before it is sent, and its reply is good as
//! long as no table of its names was changed later ([`sync::ChangeClock`] has the argument).
//!
//! (T1) A reply is kept only if no change of its tables was under way when its query was sent, and
//! none began before it was kept.
//! (T2) A reply is void once a change of its tables was sent, so before anybody can know of it.
//! (T3) A change whose end is not known (its server or its client was lost) counts as under way for
//! [`LOST_TIME`] more: it may end later. One of all tables stands for very many of them.
//! (T4) While definitions are in doubt, a change of one table is a change of any, and no reply is
//! kept or used. What may change definitions makes them doubtful at its begin and at its end.

use std::sync::Arc;
use std::time::Duration;

use env::Instant;
use sync::atomic::{AtomicU32, AtomicU64, Ordering};
use sync::{ChangeClock, ChangeTime, Mutex};

use crate::names::{Changes, SLOT_COUNT, TableSlot};

/// A change whose end is not known counts for so long.
pub const LOST_TIME: Duration = Duration::from_secs(60);

/// Most of them that are kept one by one. If there are more, one change of all tables stands for
/// them.
const LOST_MAX: usize = 1024;

/// The slot of changes of any table, behind those of names.
const ANY: usize = SLOT_COUNT;

/// See the module's head.
#[derive(Debug)]
pub struct Tables {
    clock: ChangeClock,
    /// [`Trait`]s of the tables of each slot.
    traits: Box<[AtomicU32]>,
    /// How often definitions have become doubtful.
    doubts: AtomicU64,
    /// What `doubts` was when the definitions were read, and one; 0 if they never were.
    learned: AtomicU64,
    lost: Mutex<Vec<Lost>>,
    /// How many those are.
    lost_count: AtomicU32,
    /// The second of the clock in which they were looked through.
    lost_looked: AtomicU64,
}

/// A change whose end is not known.
#[derive(Debug)]
struct Lost {
    /// When it was seen first.
    since: Option<Instant>,
    changes: Changes,
}

/// What the definitions say of the tables of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Trait {
    /// A reply that was read from it is not kept: it is a view, a sequence, or stored elsewhere. Or
    /// it is the name of a column that is not kept.
    Unkept = 1,
    /// Its changes may change others: it has triggers, or rows of others hang on its rows.
    Wide = 2,
}

/// Why the reply to a query is not kept now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hindrance {
    /// A change of its tables is under way, or one whose end is not known was lost.
    Changing,
    /// Definitions of tables are in doubt (T4).
    Doubt,
    /// One of its names is that of a table whose replies are not kept, or of a TIME column.
    Unkept,
}

impl Default for Tables {
    fn default() -> Tables {
        Tables {
            clock: ChangeClock::new(SLOT_COUNT + 1),
            traits: (0..SLOT_COUNT).map(|_| AtomicU32::new(0)).collect(),
            doubts: AtomicU64::new(0),
            learned: AtomicU64::new(0),
            lost: Mutex::default(),
            lost_count: AtomicU32::new(0),
            lost_looked: AtomicU64::new(u64::MAX),
        }
    }
}

impl Tables {
    /// The present moment.
    pub fn now(&self) -> ChangeTime {
        self.clock.now()
    }

    /// Whether replies that were read from tables of these names at a moment are still good.
    pub fn are_unchanged(&self, names: &[TableSlot], since: ChangeTime) -> bool {
        let is_unchanged = |slot| self.clock.is_unchanged(slot, since);
        is_unchanged(ANY) && names.iter().all(|it| is_unchanged(it.index()))
    }

    /// Whether replies to queries with these names may be kept, by the definitions.
    pub fn may_keep(&self, names: &[TableSlot]) -> bool {
        !self.is_in_doubt() && !self.has_any(names, Trait::Unkept)
    }

    /// Whether a reply that was read from tables of this name is not kept.
    pub fn is_unkept(&self, name: TableSlot) -> bool {
        self.has_any(&[name], Trait::Unkept)
    }

    /// The moment before a query with these names is sent.
    ///
    /// # Errors
    /// Its reply must not be kept.
    pub fn begin_query(&self, names: &[TableSlot], now: Instant) -> Result<ChangeTime, Hindrance> {
        self.end_lost(now);
        let moment = self.clock.now();
        let mut slots = names.iter().map(|it| it.index()).chain([ANY]);
        match () {
            () if slots.any(|it| self.clock.is_changing(it)) => Err(Hindrance::Changing),
            () if self.is_in_doubt() => Err(Hindrance::Doubt),
            () if self.has_any(names, Trait::Unkept) => Err(Hindrance::Unkept),
            () => Ok(moment),
        }
    }

    /// What a change comes to by what definitions say.
    pub fn widened(&self, changes: Changes) -> Changes {
        match changes {
            Changes::Tables(tables)
                if self.is_in_doubt() || self.has_any(tables.slots(), Trait::Wide) =>
            {
                Changes::AnyTable
            }
            changes => changes,
        }
    }

    /// A change begins, before its statement is sent.
    pub fn begin_change(self: &Arc<Self>, changes: Changes) -> Changing {
        // Before definitions are asked, so that one that changes meanwhile is seen at the end.
        let mut doubts = self.doubts();
        let changes = self.widened(changes);
        if changes == Changes::Anything {
            self.doubt();
            doubts += 1;
        }
        with_slots(changes, |slots| self.clock.begin(slots));
        Changing {
            tables: Arc::clone(self),
            changes,
            doubts,
        }
    }

    /// Tables have changed.
    pub fn note_change(&self, changes: Changes) {
        with_slots(changes, |slots| self.clock.note(slots));
    }

    fn end(&self, changes: Changes) {
        with_slots(changes, |slots| self.clock.end(slots));
        if changes == Changes::Anything {
            self.doubt();
        }
    }

    fn has_any(&self, slots: &[TableSlot], wanted: Trait) -> bool {
        let bit = wanted as u32;
        let traits = |it: &TableSlot| self.traits[it.index()].load(Ordering::SeqCst);
        slots.iter().any(|it| traits(it) & bit != 0)
    }

    /// Ends the changes that were lost long ago (T3). It looks for them once a second.
    fn end_lost(&self, now: Instant) {
        if self.lost_count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let second = now.since(Instant::default()).as_secs();
        // Relaxed: it decides only who looks. What is looked through is behind the mutex.
        if self.lost_looked.swap(second, Ordering::Relaxed) == second {
            return;
        }
        let mut lost = self.lost.lock();
        lost.retain_mut(|it| {
            let is_over = LOST_TIME <= now.since(*it.since.get_or_insert(now));
            if is_over {
                self.end(it.changes);
            }
            !is_over
        });
        self.lost_count
            .store(stdx::to_u32(lost.len()), Ordering::SeqCst);
    }

    /// The end of a change will not be known (T3).
    fn lose(&self, changes: Changes) {
        let mut lost = self.lost.lock();
        let mut changes = changes;
        if lost.len() == LOST_MAX {
            let is_anything = |it: &Changes| *it == Changes::Anything;
            let all = match lost.iter().any(|it| is_anything(&it.changes)) || is_anything(&changes)
            {
                true => Changes::Anything,
                false => Changes::AnyTable,
            };
            // It begins before those that it stands for end.
            with_slots(all, |slots| self.clock.begin(slots));
            let replaced = lost.drain(..).map(|it| it.changes).chain([changes]);
            replaced.for_each(|it| with_slots(it, |slots| self.clock.end(slots)));
            changes = all;
        }
        lost.push(Lost {
            since: None,
            changes,
        });
        self.lost_count
            .store(stdx::to_u32(lost.len()), Ordering::SeqCst);
    }

    /// How often definitions have become doubtful. Who reads them asks before, and tells it to
    /// [`Tables::learn`].
    pub fn doubts(&self) -> u64 {
        self.doubts.load(Ordering::SeqCst)
    }

    /// Definitions may have changed.
    pub fn doubt(&self) {
        self.doubts.fetch_add(1, Ordering::SeqCst);
    }

    /// Definitions may have changed, and tables unseen. From now on nothing is kept, and no kept
    /// reply is used.
    pub fn forget(&self) {
        // A query that begins between both has a moment that is not good any more.
        self.doubt();
        self.note_change(Changes::AnyTable);
    }

    /// Whether definitions have to be read.
    pub fn is_in_doubt(&self) -> bool {
        self.learned.load(Ordering::SeqCst) != self.doubts() + 1
    }

    /// Takes what the definitions say, as they were read when [`Tables::doubts`] was `doubts`. One
    /// caller at a time.
    pub fn learn(&self, doubts: u64, said: &[(TableSlot, Trait)]) {
        let mut all = vec![0_u32; SLOT_COUNT];
        for (slot, said) in said {
            all[slot.index()] |= *said as u32;
        }
        let mut has_changed = false;
        for (traits, new) in self.traits.iter().zip(all) {
            has_changed |= traits.swap(new, Ordering::SeqCst) != new;
        }
        if has_changed {
            // A view may have taken the place of a table.
            self.note_change(Changes::AnyTable);
        }
        self.learned.store(doubts + 1, Ordering::SeqCst);
    }
}

/// Calls with the places of what is changed, if that is anything.
fn with_slots(changes: Changes, call: impl FnOnce(SlotList<'_>)) {
    match &changes {
        Changes::Nothing => {}
        Changes::Tables(tables) => call(SlotList::Of(tables.slots().iter())),
        Changes::AnyTable | Changes::Anything => call(SlotList::Any(Some(()))),
    }
}

#[derive(Debug, Clone)]
enum SlotList<'a> {
    Of(std::slice::Iter<'a, TableSlot>),
    Any(Option<()>),
}

impl Iterator for SlotList<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        match self {
            SlotList::Of(slots) => slots.next().map(|it| it.index()),
            SlotList::Any(left) => left.take().map(|()| ANY),
        }
    }
}

/// A change under way. If it is dropped, its end is not known (T3).
#[derive(Debug)]
#[must_use = "what is dropped counts as lost"]
pub struct Changing {
    tables: Arc<Tables>,
    changes: Changes,
    /// When it began.
    doubts: u64,
}

impl Changing {
    /// The change is over, by what its server has told.
    pub fn end(mut self) {
        let changes = std::mem::take(&mut self.changes);
        if changes != Changes::Nothing && self.tables.doubts() != self.doubts {
            // It may have waited for a statement that has made its table a wide one.
            self.tables.note_change(Changes::AnyTable);
        }
        self.tables.end(changes);
    }
}

impl Drop for Changing {
    fn drop(&mut self) {
        if self.changes == Changes::Nothing {
            return;
        }
        self.tables.lose(self.changes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(name: &str) -> TableSlot {
        TableSlot::of(name.as_bytes()).unwrap()
    }

    fn of(name: &str) -> Changes {
        Changes::of_tables([name.as_bytes()])
    }

    fn at(seconds: u64) -> Instant {
        Instant::default() + Duration::from_secs(seconds)
    }

    fn learned(said: &[(TableSlot, Trait)]) -> Arc<Tables> {
        let tables = Arc::new(Tables::default());
        tables.learn(tables.doubts(), said);
        tables
    }

    #[test]
    fn nothing_is_kept_before_definitions_are_known() {
        let tables = Arc::new(Tables::default());
        assert_eq!(
            tables.begin_query(&[slot("a")], at(0)),
            Err(Hindrance::Doubt)
        );
        tables.learn(tables.doubts(), &[(slot("v"), Trait::Unkept)]);
        let moment = tables.begin_query(&[slot("a")], at(0)).unwrap();
        assert!(tables.are_unchanged(&[slot("a")], moment));
        assert_eq!(
            tables.begin_query(&[slot("a"), slot("v")], at(0)),
            Err(Hindrance::Unkept)
        );
        assert!(tables.is_unkept(slot("v")) && !tables.is_unkept(slot("a")));
    }

    #[test]
    fn what_is_read_during_a_change_is_not_kept() {
        let tables = learned(&[]);
        let before = tables.begin_query(&[slot("a")], at(0)).unwrap();
        let changing = tables.begin_change(of("a"));
        assert!(!tables.are_unchanged(&[slot("a")], before));
        assert_eq!(
            tables.begin_query(&[slot("b"), slot("a")], at(0)),
            Err(Hindrance::Changing)
        );
        assert!(tables.begin_query(&[slot("b")], at(0)).is_ok());
        changing.end();
        let after = tables.begin_query(&[slot("a")], at(0)).unwrap();
        assert!(tables.are_unchanged(&[slot("a")], after));
        assert!(tables.are_unchanged(&[slot("b")], before));
    }

    #[test]
    fn a_wide_table_changes_all() {
        let tables = learned(&[(slot("parent"), Trait::Wide)]);
        let before = tables.now();
        tables.begin_change(of("child")).end();
        assert!(tables.are_unchanged(&[slot("other")], before));
        assert_eq!(tables.widened(of("child")), of("child"));
        assert_eq!(tables.widened(of("parent")), Changes::AnyTable);
        tables.begin_change(of("parent")).end();
        assert!(!tables.are_unchanged(&[slot("other")], before));
        assert!(!tables.are_unchanged(&[], before));
    }

    #[test]
    fn a_change_of_definitions_has_them_read_again() {
        let tables = learned(&[]);
        let changing = tables.begin_change(Changes::Anything);
        assert!(tables.is_in_doubt());
        let early = tables.doubts();
        changing.end();
        tables.learn(early, &[]);
        assert!(tables.is_in_doubt(), "they were read before the end");
        let before = tables.now();
        tables.begin_change(of("a")).end();
        assert!(!tables.are_unchanged(&[slot("b")], before));
        tables.learn(tables.doubts(), &[]);
        assert!(!tables.is_in_doubt());
    }

    #[test]
    fn a_lost_change_counts_for_a_while() {
        let tables = learned(&[]);
        drop(tables.begin_change(of("a")));
        let last = LOST_TIME.as_secs() + 5;
        for second in [5, last - 1] {
            let begun = tables.begin_query(&[slot("a")], at(second));
            assert_eq!(begun, Err(Hindrance::Changing));
        }
        let before = tables.now();
        assert!(tables.begin_query(&[slot("a")], at(last)).is_ok());
        assert!(!tables.are_unchanged(&[slot("a")], before));
        assert!(tables.lost.lock().is_empty());
    }

    #[test]
    fn too_many_lost_changes_are_one_of_all_tables() {
        for (last, others_change) in [(LOST_MAX, false), (LOST_MAX + 1, true)] {
            let tables = learned(&[]);
            for _ in 0..last {
                drop(tables.begin_change(of("a")));
            }
            assert_eq!(
                tables.lost.lock().len(),
                if others_change { 1 } else { LOST_MAX }
            );
            let of_other = tables.begin_query(&[slot("b")], at(1));
            assert_eq!(of_other == Err(Hindrance::Changing), others_change);
            let of_same = tables.begin_query(&[slot("a")], at(1));
            assert_eq!(of_same, Err(Hindrance::Changing));
            let end = at(1 + LOST_TIME.as_secs());
            for name in ["a", "b"] {
                assert!(tables.begin_query(&[slot(name)], end).is_ok());
            }
        }
        // What changes definitions has them read again at its end.
        let tables = learned(&[]);
        drop(tables.begin_change(Changes::Anything));
        (0..LOST_MAX).for_each(|_| drop(tables.begin_change(of("a"))));
        tables.learn(tables.doubts(), &[]);
        let begun = tables.begin_query(&[slot("b")], at(1));
        assert_eq!(begun, Err(Hindrance::Changing));
        let begun = tables.begin_query(&[slot("b")], at(1 + LOST_TIME.as_secs()));
        assert_eq!(begun, Err(Hindrance::Doubt));
    }

    #[test]
    fn no_change_is_none() {
        let tables = learned(&[]);
        let before = tables.now();
        drop(tables.begin_change(Changes::Nothing));
        assert_eq!(tables.now(), before);
        assert!(tables.lost.lock().is_empty());
    }
}
