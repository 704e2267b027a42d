//! Plans of a worker's sessions, by the canonical text of the statement and what else they depend
//! on; so a statement that was seen before is neither parsed nor planned.
//!
//! The key is what [`Canonical`] made of the text, then the session's part ([`Surroundings`]).
//! (I1) All plans are of one schema version: when the store's moves, the cache is emptied.
//! (I2) An execution is out of the cache while it runs. So two sessions may run one plan, each
//! with an execution of its own; a few idle ones are kept with the plan.
//! (I3) At most [`PLAN_COUNT_MAX`] plans are kept. A full cache gives up the first plan that was
//! not used since the hand of its clock came by last.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use catalog::Account;
use executor::Execution;
use expression::SqlMode;
use foldhash::fast::FixedState;
use planner::{Plan, StatementLimits};
use syntax::canonical::Canonical;
use value::{CollationId, DateTime};

use crate::server::StatementKind;

/// Plans that a worker keeps: more than the statements of a large program, and with keys at their
/// longest still 8 MiB.
pub const PLAN_COUNT_MAX: usize = 1024;

/// A longer key is not kept: such statements are inserts of many rows, rarely sent twice.
pub const KEY_BYTES_MAX: usize = 8 << 10;

/// Executions that wait for the next run of one plan.
const IDLE_COUNT_MAX: usize = 8;

/// What of the session a plan depends on, beside the types of its parameters.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'s> {
    /// The current database.
    pub database: Option<&'s str>,
    /// How the text is read.
    pub mode: syntax::Mode,
    /// How values are treated.
    pub sql_mode: SqlMode,
    /// Of literals.
    pub collation: CollationId,
    /// `div_precision_increment`.
    pub division_increment: u8,
    /// Against statements that do too much.
    pub limits: StatementLimits,
    /// Now, in the session's zone; the date counts.
    pub now: DateTime,
}

impl Surroundings<'_> {
    fn append_to(&self, key: &mut Vec<u8>) {
        let flags = [
            self.mode.ansi_quotes,
            self.mode.no_backslash_escapes,
            self.mode.pipes_as_concat,
            self.mode.high_not_precedence,
            self.mode.ignore_space,
            self.mode.real_as_float,
        ];
        let mode = flags
            .iter()
            .fold(0_u8, |mode, &flag| mode << 1 | u8::from(flag));
        let date = self.now.date();
        key.extend_from_slice(&[0, mode, self.division_increment]);
        key.extend_from_slice(&self.sql_mode.0.to_le_bytes());
        key.extend_from_slice(&self.collation.id().to_le_bytes());
        key.extend_from_slice(&date.year().to_le_bytes());
        key.extend_from_slice(&[date.month(), date.day()]);
        if self.limits != StatementLimits::default() {
            let rows = |limit: Option<u64>| limit.unwrap_or(u64::MAX).to_le_bytes();
            key.push(u8::from(self.limits.safe_updates));
            key.extend_from_slice(&rows(self.limits.select_rows));
            key.extend_from_slice(&rows(self.limits.join_rows));
        }
        if let Some(database) = self.database {
            key.push(b'.');
            key.extend_from_slice(database.as_bytes());
        }
    }
}

/// A plan that was found.
#[derive(Debug)]
pub struct Found {
    /// An execution, to be given back.
    pub execution: Execution,
    /// How the statement is counted.
    pub kind: StatementKind,
    /// The account that was last found to have the privileges, as it then was.
    pub allowed: Option<Arc<Account>>,
    /// Where it goes back to.
    pub place: Place,
}

/// A plan's place in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    index: usize,
    /// Of the plan: places are used again.
    number: u64,
}

#[derive(Debug)]
struct Entry {
    key: Rc<[u8]>,
    number: u64,
    plan: Rc<Plan>,
    kind: StatementKind,
    idle: Vec<Execution>,
    allowed: Option<Arc<Account>>,
    is_used: bool,
}

/// The plans of one worker.
#[derive(Debug, Default)]
pub struct PlanCache {
    places: HashMap<Rc<[u8]>, usize, FixedState>,
    entries: Vec<Entry>,
    /// The clock's hand: which entry is looked at next when one must go.
    hand: usize,
    /// Plans ever put in.
    put_count: u64,
    schema_version: u64,
}

impl PlanCache {
    /// Makes the key of a statement.
    pub fn write_key(key: &mut Vec<u8>, canonical: &Canonical, surroundings: &Surroundings<'_>) {
        key.clear();
        key.extend_from_slice(canonical.key());
        surroundings.append_to(key);
    }

    /// The plan under a key, with an execution to run.
    pub fn take(&mut self, key: &[u8], schema_version: u64) -> Option<Found> {
        if self.schema_version != schema_version {
            self.clear(schema_version);
        }
        let index = *self.places.get(key)?;
        let entry = &mut self.entries[index];
        entry.is_used = true;
        let execution = entry.idle.pop();
        Some(Found {
            execution: execution.unwrap_or_else(|| Execution::new(Rc::clone(&entry.plan))),
            kind: entry.kind,
            allowed: entry.allowed.clone(),
            place: Place {
                index,
                number: entry.number,
            },
        })
    }

    /// Gives an execution back that ended well, and who was allowed to run it. One whose plan has
    /// gone goes too.
    pub fn give_back(&mut self, place: Place, execution: Execution, allowed: Option<Arc<Account>>) {
        let entry = self.entries.get_mut(place.index);
        let Some(entry) = entry.filter(|entry| entry.number == place.number) else {
            return;
        };
        entry.allowed = allowed;
        if entry.idle.len() < IDLE_COUNT_MAX {
            entry.idle.push(execution);
        }
    }

    /// Keeps a plan that was made at `schema_version`; true if another had to go for it.
    pub fn put(
        &mut self,
        key: &[u8],
        execution: Execution,
        kind: StatementKind,
        schema_version: u64,
    ) -> bool {
        if schema_version != self.schema_version || KEY_BYTES_MAX < key.len() {
            return false;
        }
        self.put_count += 1;
        let entry = Entry {
            key: Rc::from(key),
            number: self.put_count,
            plan: Rc::clone(execution.plan()),
            kind,
            idle: vec![execution],
            allowed: None,
            is_used: true,
        };
        if let Some(&index) = self.places.get(key) {
            self.entries[index] = entry;
            return false;
        }
        let is_full = PLAN_COUNT_MAX <= self.entries.len();
        let index = if is_full {
            self.victim()
        } else {
            self.entries.len()
        };
        self.places.insert(Rc::clone(&entry.key), index);
        if is_full {
            let gone = std::mem::replace(&mut self.entries[index], entry);
            let removed = self.places.remove(&gone.key);
            assert_eq!(removed, Some(index), "each entry is found by its key");
        } else {
            self.entries.push(entry);
        }
        assert_eq!(self.places.len(), self.entries.len());
        is_full
    }

    /// The entry that goes: the first that was not used for a round.
    fn victim(&mut self) -> usize {
        loop {
            let index = self.hand;
            self.hand = (index + 1) % self.entries.len();
            if !std::mem::take(&mut self.entries[index].is_used) {
                return index;
            }
        }
    }

    /// How many plans there are.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    fn clear(&mut self, schema_version: u64) {
        self.places.clear();
        self.entries.clear();
        self.hand = 0;
        self.schema_version = schema_version;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn execution() -> Execution {
        let statement = syntax::parse::parse(b"SELECT 1", syntax::Mode::default()).unwrap();
        let names = planner::FixedNames::default();
        let settings = planner::Settings::default();
        let plan = planner::plan(&statement, b"SELECT 1", &names, &settings).unwrap();
        Execution::new(Rc::new(plan))
    }

    #[test]
    fn plans_are_found_by_key_and_go_with_the_schema() {
        let mut cache = PlanCache::default();
        assert!(cache.take(b"a", 7).is_none());
        assert!(!cache.put(b"a", execution(), StatementKind::Select, 7));
        let first = cache.take(b"a", 7).unwrap();
        let second = cache.take(b"a", 7).unwrap();
        assert!(Rc::ptr_eq(first.execution.plan(), second.execution.plan()));
        cache.give_back(first.place, first.execution, None);
        assert!(cache.take(b"b", 7).is_none());
        assert!(cache.take(b"a", 8).is_none(), "another schema");
        cache.give_back(second.place, second.execution, None);
        assert_eq!(cache.count(), 0);
        assert!(!cache.put(b"a", execution(), StatementKind::Select, 7));
        assert!(cache.take(b"a", 8).is_none(), "planned for an older schema");
    }

    #[test]
    fn a_full_cache_gives_up_what_was_not_used() {
        let mut cache = PlanCache::default();
        assert!(cache.take(b"", 1).is_none());
        for number in 0..PLAN_COUNT_MAX {
            cache.put(&number.to_le_bytes(), execution(), StatementKind::Select, 1);
        }
        // The first round takes the mark from all; the first entry goes.
        assert!(cache.put(b"x", execution(), StatementKind::Select, 1));
        assert!(cache.take(&1_usize.to_le_bytes(), 1).is_some());
        assert!(cache.put(b"y", execution(), StatementKind::Select, 1));
        assert!(cache.take(&0_usize.to_le_bytes(), 1).is_none());
        assert!(cache.take(&1_usize.to_le_bytes(), 1).is_some(), "was used");
        assert!(cache.take(&2_usize.to_le_bytes(), 1).is_none());
        assert_eq!(cache.count(), PLAN_COUNT_MAX);
    }

    #[test]
    fn the_session_is_part_of_the_key() {
        let mut canonical = Canonical::new();
        assert!(canonical.fill(b"SELECT a FROM t WHERE b = 5", syntax::Mode::default()));
        let plain = Surroundings {
            database: Some("d"),
            mode: syntax::Mode::default(),
            sql_mode: SqlMode::DEFAULT,
            collation: CollationId::UTF8MB4_GENERAL_CI,
            division_increment: 4,
            limits: StatementLimits::default(),
            now: DateTime::default(),
        };
        let key_of = |surroundings: &Surroundings<'_>| {
            let mut key = Vec::new();
            PlanCache::write_key(&mut key, &canonical, surroundings);
            key
        };
        let others = [
            Surroundings {
                database: None,
                ..plain
            },
            Surroundings {
                sql_mode: SqlMode(0),
                ..plain
            },
            Surroundings {
                collation: CollationId::BINARY,
                ..plain
            },
            Surroundings {
                division_increment: 5,
                ..plain
            },
        ];
        assert_eq!(key_of(&plain), key_of(&plain));
        for other in others {
            assert_ne!(key_of(&plain), key_of(&other), "{other:?}");
        }
    }
}
