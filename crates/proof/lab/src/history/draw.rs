//! Draws transactions.

use history::{Element, Key, Level};
use sync::atomic::{AtomicU64, Ordering};

use super::tables::{Form, GROUP_KEYS, Range};
use crate::random::Random;

/// Groups that are used at a time: few enough that sessions meet, and enough that not all of them
/// wait.
const SLOTS: usize = 16;

/// A group is replaced when it was drawn for so many writes. About as many go to it again behind a
/// step of the same key, so its lists then have some fifty elements.
const GROUP_WRITES_MAX: u64 = 12 * 30;

/// The groups that are in use, shared by all sessions.
#[derive(Debug)]
pub(super) struct Groups {
    kinds: Vec<Kind>,
    slots: Vec<Slot>,
    /// The next group that nobody has used.
    next: AtomicU64,
    /// The next element.
    element: AtomicU64,
}

/// The kinds of keys that are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Kind {
    Lists,
    Registers,
    Sets,
}

/// All of them.
pub(super) const KINDS: [Kind; 3] = [Kind::Lists, Kind::Registers, Kind::Sets];

#[derive(Debug)]
struct Slot {
    group: AtomicU64,
    writes: AtomicU64,
}

/// One step of a transaction.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Write(Key, Element, Form),
    Read(Range, Lock),
    Savepoint,
    /// To the savepoint before it.
    RollBack,
}

/// The locking clause of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lock {
    None,
    Shared,
    Exclusive,
}

/// How a transaction begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// It is its only statement.
    Never,
    Plain,
    /// WITH CONSISTENT SNAPSHOT.
    Snapshot,
}

/// A transaction to be played.
#[derive(Debug)]
pub(super) struct Drawn {
    pub(super) begin: Begin,
    pub(super) steps: Vec<Step>,
    /// Its end, if no error comes before.
    pub(super) end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Commit,
    RollBack,
}

// Relaxed: the counters only give out numbers, and no other memory depends on them.
const ORDERING: Ordering = Ordering::Relaxed;

impl Groups {
    /// Groups from this one on, with keys of these kinds.
    pub(super) fn new(first: u64, kinds: &[Kind]) -> Self {
        assert!(!kinds.is_empty());
        let slots = (first..).take(SLOTS).map(|group| Slot {
            group: AtomicU64::new(group),
            writes: AtomicU64::new(0),
        });
        Self {
            kinds: kinds.to_vec(),
            slots: slots.collect(),
            next: AtomicU64::new(first + stdx::to_u64(SLOTS)),
            element: AtomicU64::new(1),
        }
    }

    /// The first group that was not used.
    pub(super) fn end(&self) -> u64 {
        self.next.load(ORDERING)
    }

    fn draw_group(&self, random: &mut Random) -> &Slot {
        // The lower of two: some groups are hotter than others.
        let place = random.place(SLOTS).min(random.place(SLOTS));
        &self.slots[place]
    }

    /// The number of a key that is written, and an element for it. Often it is the transaction's
    /// last number again: what was read is written, and the other way round.
    fn draw_write(&self, last: &mut Option<u64>, random: &mut Random) -> (u64, Element) {
        let element = Element(self.element.fetch_add(1, ORDERING));
        if let Some(number) = last.filter(|_| random.below(2) == 0) {
            return (number, element);
        }
        let slot = self.draw_group(random);
        let group = slot.group.load(ORDERING);
        if slot.writes.fetch_add(1, ORDERING) + 1 == GROUP_WRITES_MAX {
            slot.group.store(self.next.fetch_add(1, ORDERING), ORDERING);
            slot.writes.store(0, ORDERING);
        }
        let number = group * GROUP_KEYS + random.below(GROUP_KEYS);
        *last = Some(number);
        (number, element)
    }

    fn draw_step(&self, last: &mut Option<u64>, random: &mut Random) -> Step {
        if random.below(2) == 0 {
            let (number, element) = self.draw_write(last, random);
            let (key, forms): (_, &[Form]) = match random.of(&self.kinds) {
                Kind::Lists => (Key::List(number), &[Form::Insert, Form::Update]),
                Kind::Registers => (
                    Key::Register(number),
                    &[Form::Insert, Form::Update, Form::Second],
                ),
                Kind::Sets => (Key::Set(number), &[Form::Insert]),
            };
            return Step::Write(key, element, random.of(forms));
        }
        let group = self.draw_group(random).group.load(ORDERING);
        let drawn = group * GROUP_KEYS + random.below(GROUP_KEYS);
        let number = last.filter(|_| random.below(2) == 0).unwrap_or(drawn);
        let group = number / GROUP_KEYS;
        *last = Some(number);
        let range = match (random.of(&self.kinds), random.below(3)) {
            (Kind::Lists, 0) => Range::Lists(group),
            (Kind::Lists, _) => Range::One(Key::List(number)),
            (Kind::Registers, 0) => Range::Registers(group),
            (Kind::Registers, 1) => Range::Second(number),
            (Kind::Registers, _) => Range::One(Key::Register(number)),
            (Kind::Sets, 0) => Range::Sets(group),
            (Kind::Sets, _) => Range::One(Key::Set(number)),
        };
        let lock = match random.below(8) {
            0 => Lock::Shared,
            1 => Lock::Exclusive,
            _ => Lock::None,
        };
        Step::Read(range, lock)
    }

    pub(super) fn draw(&self, level: Level, random: &mut Random) -> Drawn {
        let count = 1 + random.below(5);
        let begin = match (random.below(6), level) {
            (0, _) if count == 1 => Begin::Never,
            (1, Level::RepeatableRead) => Begin::Snapshot,
            _ => Begin::Plain,
        };
        let mut last = None;
        let steps = (0..count).map(|_| self.draw_step(&mut last, random));
        let mut steps: Vec<Step> = steps.collect();
        if begin != Begin::Never && random.below(8) == 0 {
            let saved = random.place(steps.len());
            let back = saved + 1 + random.place(steps.len() - saved);
            steps.insert(back, Step::RollBack);
            steps.insert(saved, Step::Savepoint);
        }
        let end = match random.below(10) {
            0 if begin != Begin::Never => End::RollBack,
            _ => End::Commit,
        };
        Drawn { begin, steps, end }
    }
}

impl Lock {
    pub(super) fn clause(self) -> &'static str {
        match self {
            Lock::None => "",
            Lock::Shared => " LOCK IN SHARE MODE",
            Lock::Exclusive => " FOR UPDATE",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_ends_after_its_writes_and_elements_are_unique() {
        let groups = Groups::new(7, &KINDS);
        let mut random = Random::new(1);
        let mut elements = std::collections::HashSet::new();
        let mut savepoints = 0;
        for _ in 0..20_000 {
            let drawn = groups.draw(Level::RepeatableRead, &mut random);
            let mut depth = 0;
            for step in &drawn.steps {
                match step {
                    Step::Write(_, element, _) => assert!(elements.insert(*element)),
                    Step::Read(..) => {}
                    Step::Savepoint => depth += 1,
                    Step::RollBack => {
                        savepoints += 1;
                        depth -= 1;
                    }
                }
                assert!(
                    (0..=1).contains(&depth),
                    "one savepoint, and then the way back"
                );
            }
        }
        assert!(0 < savepoints);
        let used = groups.end() - 7;
        let least = stdx::to_u64(elements.len()) / (3 * GROUP_WRITES_MAX);
        assert!(least <= used, "{used} groups for {} writes", elements.len());
    }
}
