//! Plans of a worker's sessions, by the canonical text of the statement and what else they depend
//! on. So a statement that was seen before is neither parsed nor planned.
//!
//! The key is what [`Canonical`] made of the text, the fractional digits of its decimals, then the
//! session's part ([`PlanKeyContext`]). A prepared statement's key is its text and the types of its
//! parameters, then the session's part. It is looked up once, and the statement keeps the plan. So
//! thousands of sessions that have prepared one statement share one plan. There are only as many
//! executions as run at once.
//! (I1) All plans are of one schema version: when the store's version changes, the cache is
//!      emptied.
//! (I2) An execution is taken out of its plan while it runs. So two sessions may run one plan, each
//! with an execution of its own; a few idle ones stay with the plan. The one that ran last runs
//! next: its memory is warm.
//! (I3) At most [`PLAN_COUNT_MAX`] plans are kept. A full cache evicts by the clock algorithm: the
//! first plan not used since the hand last passed. Their memory is bounded, too. It is counted from
//! the insertion of a plan until the cache is emptied, also for plans evicted meanwhile.
//! (I4) A plan serves sessions whose user variables have the types that it has read
//!      (`State::has_types_of`). A session with other types plans again and replaces the plan.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use catalog::SessionPrivileges;
use executor::Execution;
use expression::{Memory, MemoryPool, Share};
use foldhash::fast::FixedState;
use planner::{Plan, StatementLimits, StringRules};
use settings::SqlMode;
use syntax::canonical::Canonical;
use value::{CollationId, ColumnType, DateTime, Value};

use crate::metrics::CountedStatement;
use crate::worker::clock_hand::ClockHand;

/// Plans that a worker keeps: more than a large application has statements, and with the longest
/// keys still 8 MiB.
pub const PLAN_COUNT_MAX: usize = 1024;

/// A longer key is not cached: such statements are inserts of many rows, rarely sent twice.
pub const KEY_BYTES_MAX: usize = 8 << 10;

/// A larger plan is not kept.
const PLAN_BYTES_MAX: usize = 1 << 20;

/// The memory of all plans of a worker; when one more would exceed it, the cache is emptied. A
/// thousand usual plans take a fifth of it.
const ALL_PLANS_BYTES_MAX: usize = 64 << 20;

/// Idle executions of one plan: as many as may wait for pages or locks at once without being built
/// again each time.
const IDLE_COUNT_MAX: usize = 32;

/// What the idle executions of one plan keep together, in bytes of rows.
const IDLE_BYTES_MAX: usize = 256 << 10;

/// What a plan depends on of the session, in addition to the types of its parameters.
#[derive(Debug, Clone, Copy)]
pub struct PlanKeyContext<'s> {
    /// The current database.
    pub database: Option<&'s str>,
    /// How the text is read: the mode in which it was prepared.
    pub text_mode: SqlMode,
    /// How values are treated.
    pub sql_mode: SqlMode,
    /// How strings of the text are read.
    pub strings: StringRules,
    /// `collation_connection`.
    pub collation: CollationId,
    /// `div_precision_increment`.
    pub division_increment: u8,
    /// Limits against statements that do too much.
    pub limits: StatementLimits,
    /// Now, in the session's time zone; only the date counts.
    pub now: DateTime,
}

impl PlanKeyContext<'_> {
    fn append_to(&self, key: &mut Vec<u8>) {
        let date = self.now.date();
        key.extend_from_slice(&[0, self.division_increment]);
        // Its other words stand in the session's mode.
        let text_mode = self.text_mode.and(syntax::token::TEXT_MODE);
        key.extend_from_slice(&text_mode.bits().to_le_bytes());
        key.extend_from_slice(&self.sql_mode.bits().to_le_bytes());
        key.extend_from_slice(&self.collation.id().to_le_bytes());
        key.extend_from_slice(&self.strings.collation.id().to_le_bytes());
        let client = self.strings.client.default_collation();
        key.extend_from_slice(&client.id().to_le_bytes());
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

/// A plan that sessions share.
#[derive(Debug)]
pub struct SharedPlan {
    plan: Rc<Plan>,
    /// The plan's memory until a cache takes it over; the cache counts it itself.
    memory: RefCell<Share>,
    /// How the statement is counted.
    pub kind: CountedStatement,
    /// The account that was last found to have the privileges, as of then.
    allowed: RefCell<Option<SessionPrivileges>>,
    /// The last is the warmest.
    #[allow(
        clippy::vec_box,
        reason = "they are handed about, and each is larger than half a kilobyte"
    )]
    idle: RefCell<Vec<Box<Execution>>>,
    /// What the idle ones keep.
    idle_bytes: Cell<usize>,
    /// A run has shown that it was made for other values.
    is_off: Cell<bool>,
}

impl SharedPlan {
    /// A plan that has not run yet.
    pub fn new(mut plan: Plan, kind: CountedStatement) -> Rc<SharedPlan> {
        let memory = RefCell::new(std::mem::take(&mut plan.memory));
        Rc::new(SharedPlan {
            plan: Rc::new(plan),
            memory,
            kind,
            allowed: RefCell::default(),
            idle: RefCell::default(),
            idle_bytes: Cell::default(),
            is_off: Cell::default(),
        })
    }

    /// The plan itself.
    pub fn plan(&self) -> &Rc<Plan> {
        &self.plan
    }

    /// Takes an execution; it has to be given back.
    pub fn take(&self) -> Box<Execution> {
        let idle = self.idle.borrow_mut().pop();
        if let Some(execution) = &idle {
            let left = self.idle_bytes.get() - execution.memory_bytes();
            self.idle_bytes.set(left);
        }
        idle.unwrap_or_else(|| Box::new(Execution::new(Rc::clone(&self.plan))))
    }

    /// True once a run has shown that the plan was made for other values: it is made again.
    pub fn is_off(&self) -> bool {
        self.is_off.get()
    }

    /// Gives back an execution that ended without an error.
    pub fn give_back(&self, execution: Box<Execution>) {
        if execution.is_off() {
            self.is_off.set(true);
            return;
        }
        let mut idle = self.idle.borrow_mut();
        let bytes = self.idle_bytes.get() + execution.memory_bytes();
        if idle.len() < IDLE_COUNT_MAX && bytes <= IDLE_BYTES_MAX {
            self.idle_bytes.set(bytes);
            idle.push(execution);
        }
    }

    /// Whether these privileges are known to suffice.
    pub fn is_allowed(&self, privileges: &SessionPrivileges) -> bool {
        let allowed = self.allowed.borrow();
        allowed.as_ref().is_some_and(|it| it.are_same(privileges))
    }

    /// Notes privileges that suffice.
    pub fn allow(&self, privileges: SessionPrivileges) {
        *self.allowed.borrow_mut() = Some(privileges);
    }
}

#[derive(Debug)]
struct Entry {
    key: Rc<[u8]>,
    shared: Rc<SharedPlan>,
    is_used: bool,
}

/// The plans of one worker.
#[derive(Debug, Default)]
pub struct PlanCache {
    places: HashMap<Rc<[u8]>, usize, FixedState>,
    entries: Vec<Entry>,
    /// The clock's hand: the entry that is looked at next for eviction.
    hand: ClockHand,
    schema_version: u64,
    /// What all plans take.
    share: Share,
    memory: Rc<Memory>,
    /// Where that memory comes from, if it is counted.
    pool: Option<Arc<MemoryPool>>,
}

impl PlanCache {
    /// A cache whose plans take their memory from a pool.
    pub fn of_pool(pool: Arc<MemoryPool>) -> Self {
        Self {
            pool: Some(pool),
            ..Self::default()
        }
    }

    /// Counts one more plan. Returns false if it is too large or there is no memory for it. If the
    /// sum would be too large, the cache is emptied.
    fn has_room(&mut self, shared: &SharedPlan) -> bool {
        let bytes = shared.memory.borrow().bytes();
        if PLAN_BYTES_MAX < bytes {
            return false;
        }
        if ALL_PLANS_BYTES_MAX < self.share.bytes() + bytes {
            self.clear(self.schema_version);
        }
        let all = self.share.bytes() + bytes;
        let Some(pool) = &self.pool else {
            return true;
        };
        let taken = self
            .share
            .set(all, &self.memory, usize::MAX, || Arc::clone(pool));
        if taken.is_ok() {
            shared.memory.borrow_mut().clear();
        }
        taken.is_ok()
    }

    /// Builds the key of a statement with these literals.
    pub fn write_key(
        key: &mut Vec<u8>,
        canonical: &Canonical,
        literals: &[Value],
        context: &PlanKeyContext<'_>,
    ) {
        key.clear();
        key.extend_from_slice(canonical.key());
        key.extend(literals.iter().filter_map(scale_of));
        context.append_to(key);
    }

    /// Builds the key of a prepared statement with parameters of these types. No statement's text
    /// begins with its first byte.
    pub fn write_prepared_key(
        key: &mut Vec<u8>,
        text: &[u8],
        types: &[ColumnType],
        context: &PlanKeyContext<'_>,
    ) {
        key.clear();
        key.push(u8::MAX);
        key.extend_from_slice(text);
        key.push(0);
        for column_type in types {
            key.extend_from_slice(&[
                column_type.kind as u8,
                u8::from(column_type.unsigned),
                column_type.decimals,
            ]);
            key.extend_from_slice(&column_type.length.to_le_bytes());
            key.extend_from_slice(&column_type.collation.id().to_le_bytes());
        }
        context.append_to(key);
    }

    /// The plan under a key.
    pub fn find(&mut self, key: &[u8], schema_version: u64) -> Option<Rc<SharedPlan>> {
        if self.schema_version != schema_version {
            self.clear(schema_version);
        }
        let index = *self.places.get(key)?;
        let entry = &mut self.entries[index];
        if entry.shared.is_off() {
            return None;
        }
        entry.is_used = true;
        Some(Rc::clone(&entry.shared))
    }

    /// Caches a plan that was made at `schema_version`. Returns true if another was evicted for it.
    pub fn put(&mut self, key: &[u8], shared: &Rc<SharedPlan>, schema_version: u64) -> bool {
        if schema_version != self.schema_version || KEY_BYTES_MAX < key.len() {
            return false;
        }
        if !self.has_room(shared) {
            return false;
        }
        let entry = Entry {
            key: Rc::from(key),
            shared: Rc::clone(shared),
            is_used: true,
        };
        if let Some(&index) = self.places.get(key) {
            self.entries[index] = entry;
            return false;
        }
        let is_full = PLAN_COUNT_MAX <= self.entries.len();
        let index = if is_full {
            self.hand.victim(&mut self.entries, |it| &mut it.is_used)
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

    /// How many plans there are.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    fn clear(&mut self, schema_version: u64) {
        self.places.clear();
        self.entries.clear();
        self.share.clear();
        self.hand = ClockHand::default();
        self.schema_version = schema_version;
    }
}

/// The fractional digits of a decimal; `None` for other values.
pub(crate) fn scale_of(value: &Value) -> Option<u8> {
    match value {
        Value::Decimal(number) => Some(number.scale()),
        _ => None,
    }
}

/// Whether a plan serves other executions. An execution keeps its tables open; virtual ones hold
/// rows of the moment.
pub(crate) fn is_cacheable(plan: &Plan) -> bool {
    let mut tables = plan.tables.iter().map(|table| table.definition.id);
    let are_real = tables.all(|id| !catalog::is_virtual(id));
    are_real && !plan.is_for_values
}

#[cfg(test)]
mod tests {
    use value::{Charset, TypeKind};

    use super::*;

    fn shared() -> Rc<SharedPlan> {
        let statement = syntax::parse::parse(b"SELECT 1", SqlMode::default()).unwrap();
        let names = planner::FixedNames::default();
        let settings = planner::Settings::default();
        let plan = planner::plan(&statement, b"SELECT 1", &names, &settings).unwrap();
        SharedPlan::new(plan, CountedStatement::Select)
    }

    #[test]
    fn plans_are_found_by_key_and_go_with_the_schema() {
        let mut cache = PlanCache::default();
        assert!(cache.find(b"a", 7).is_none());
        assert!(!cache.put(b"a", &shared(), 7));
        let found = cache.find(b"a", 7).unwrap();
        let (first, second) = (found.take(), found.take());
        assert!(Rc::ptr_eq(first.plan(), second.plan()));
        let place: *const Execution = &*first;
        found.give_back(second);
        found.give_back(first);
        assert!(std::ptr::eq(place, &*found.take()), "the warmest first");
        assert!(cache.find(b"b", 7).is_none());
        assert!(cache.find(b"a", 8).is_none(), "another schema");
        assert_eq!(cache.count(), 0);
        assert!(!cache.put(b"a", &shared(), 7));
        assert!(cache.find(b"a", 8).is_none(), "planned for an older schema");
    }

    fn key_context() -> PlanKeyContext<'static> {
        PlanKeyContext {
            database: Some("d"),
            text_mode: SqlMode::default(),
            sql_mode: SqlMode::DEFAULT,
            strings: StringRules::default(),
            collation: CollationId::UTF8MB4_GENERAL_CI,
            division_increment: 4,
            limits: StatementLimits::default(),
            now: DateTime::default(),
        }
    }

    #[test]
    fn prepared_statements_are_told_apart_by_types() {
        let context = key_context();
        let key_of = |types: &[ColumnType]| {
            let mut key = Vec::new();
            PlanCache::write_prepared_key(&mut key, b"SELECT ?", types, &context);
            key
        };
        let types = [
            ColumnType::new(TypeKind::BigInt),
            ColumnType::unsigned(TypeKind::BigInt),
            ColumnType::decimal(65, 30),
            ColumnType::decimal(65, 10),
            ColumnType::varchar(10, CollationId::BINARY),
            ColumnType::varchar(11, CollationId::BINARY),
            ColumnType::varchar(11, CollationId::UTF8MB4_GENERAL_CI),
        ];
        let mut keys: Vec<_> = types
            .iter()
            .map(|it| key_of(std::slice::from_ref(it)))
            .collect();
        keys.push(key_of(&[]));
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), types.len() + 1);
    }

    #[test]
    fn a_full_cache_gives_up_what_was_not_used() {
        let mut cache = PlanCache::default();
        assert!(cache.find(b"", 1).is_none());
        for number in 0..PLAN_COUNT_MAX {
            cache.put(&number.to_le_bytes(), &shared(), 1);
        }
        // The first round clears all marks; the first entry is evicted.
        assert!(cache.put(b"x", &shared(), 1));
        assert!(cache.find(&1_usize.to_le_bytes(), 1).is_some());
        assert!(cache.put(b"y", &shared(), 1));
        assert!(cache.find(&0_usize.to_le_bytes(), 1).is_none());
        assert!(cache.find(&1_usize.to_le_bytes(), 1).is_some(), "was used");
        assert!(cache.find(&2_usize.to_le_bytes(), 1).is_none());
        assert_eq!(cache.count(), PLAN_COUNT_MAX);
    }

    #[test]
    fn the_session_is_part_of_the_key() {
        let mut canonical = Canonical::new();
        assert!(canonical.fill(b"SELECT a FROM t WHERE b = 5", SqlMode::default()));
        let plain = key_context();
        let key_of = |context: &PlanKeyContext<'_>| {
            let mut key = Vec::new();
            PlanCache::write_key(&mut key, &canonical, &[], context);
            key
        };
        let others = [
            PlanKeyContext {
                database: None,
                ..plain
            },
            PlanKeyContext {
                text_mode: SqlMode::ANSI_QUOTES,
                ..plain
            },
            PlanKeyContext {
                text_mode: SqlMode::HIGH_NOT_PRECEDENCE,
                ..plain
            },
            PlanKeyContext {
                sql_mode: SqlMode::default(),
                ..plain
            },
            PlanKeyContext {
                collation: CollationId::BINARY,
                ..plain
            },
            PlanKeyContext {
                division_increment: 5,
                ..plain
            },
            PlanKeyContext {
                strings: StringRules {
                    client: Charset::Latin1,
                    ..plain.strings
                },
                ..plain
            },
            PlanKeyContext {
                strings: StringRules {
                    collation: CollationId::BINARY,
                    ..plain.strings
                },
                ..plain
            },
        ];
        assert_eq!(key_of(&plain), key_of(&plain));
        for other in others {
            assert_ne!(key_of(&plain), key_of(&other), "{other:?}");
        }
    }
}
