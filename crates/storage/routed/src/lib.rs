//! [`RoutedStore`]: several stores behind one, for the server's own tables beside remote or virtual
//! ones.
//!
//! Reading order: this file (which store has a table), `schema` (changes of tables), `transaction`
//! (one that spans several stores), `marks` (places in its undo).
//!
//! (I1) A table belongs to the store that lists its definition. Ids are unique in the process, as
//! [`Store::definitions`] asks.
//! (I2) A database belongs to the first store that has it. New tables of the database go there.
//! (I3) A server with one store does not use this crate, so it pays nothing for it.

#![forbid(unsafe_code)]

mod marks;
mod schema;
mod transaction;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use store::{
    Activity, Debt, LeftPrepared, Outcome, SchemaStore, ShownDeadlock, ShownWait, Store,
    StoreError, StoreId, Table, TableDefinition, TableId, Transaction, TransactionOptions, Xid,
};
use value::CollationId;

use transaction::RoutedTransaction;

/// One of the stores.
#[derive(Clone)]
pub struct Member {
    /// Its tables. It is no routed store itself.
    pub store: Rc<dyn Store>,
    /// What changes them; `None` if SQL may not.
    pub schema: Option<Rc<dyn SchemaStore>>,
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Member").field(&self.store.id()).finish()
    }
}

/// One worker's handle on several stores.
#[derive(Debug)]
pub struct RoutedStore {
    id: StoreId,
    /// The first is the server's own: databases are made there. Constant.
    members: Rc<[Member]>,
    /// What they have, at the last seen schema version. This worker.
    known: RefCell<Known>,
}

/// What the members have at one schema version.
#[derive(Debug, Default)]
struct Known {
    /// `None` before the first look.
    version: Option<u64>,
    definitions: Arc<[Arc<TableDefinition>]>,
    databases: Arc<[(String, CollationId)]>,
    /// The member of each table, by its place.
    of_table: HashMap<TableId, usize>,
    /// The member of each database.
    of_database: HashMap<String, usize>,
}

impl RoutedStore {
    /// These stores behind one.
    ///
    /// # Panics
    /// If there is none.
    pub fn new(members: Vec<Member>) -> Self {
        assert!(!members.is_empty(), "databases are made in the first store");
        Self {
            id: StoreId::unique(),
            members: members.into(),
            known: RefCell::default(),
        }
    }

    /// Calls `look` with what the members have now.
    fn with_known<T>(&self, look: impl FnOnce(&Known) -> T) -> T {
        let version = self.schema_version();
        if self.known.borrow().version != Some(version) {
            let known = Known::of(&self.members, version);
            *self.known.borrow_mut() = known;
        }
        look(&self.known.borrow())
    }

    /// The place of the member that has the table.
    fn place_of(&self, id: TableId) -> Result<usize, StoreError> {
        let place = self.with_known(|known| known.of_table.get(&id).copied());
        place.ok_or(StoreError::NoSuchTable)
    }
}

impl Known {
    fn of(members: &[Member], version: u64) -> Self {
        let mut known = Self {
            version: Some(version),
            ..Self::default()
        };
        let (mut definitions, mut databases) = (Vec::new(), Vec::new());
        for (place, member) in members.iter().enumerate() {
            for definition in &*member.store.definitions() {
                let other = known.of_table.insert(definition.id, place);
                assert!(other.is_none(), "an id names one table of the process");
                definitions.push(Arc::clone(definition));
            }
            for (name, collation) in &*member.store.databases() {
                if !known.of_database.contains_key(name) {
                    known.of_database.insert(name.clone(), place);
                    databases.push((name.clone(), *collation));
                }
            }
        }
        known.definitions = definitions.into();
        known.databases = databases.into();
        known
    }
}

impl Store for RoutedStore {
    fn id(&self) -> StoreId {
        self.id
    }

    fn begin(&self, options: TransactionOptions) -> Box<dyn Transaction> {
        Box::new(RoutedTransaction::new(Rc::clone(&self.members), options))
    }

    fn schema_version(&self) -> u64 {
        // No version ever goes back, so the sum grows with each change.
        self.members
            .iter()
            .map(|it| it.store.schema_version())
            .sum()
    }

    fn definitions(&self) -> Arc<[Arc<TableDefinition>]> {
        self.with_known(|known| Arc::clone(&known.definitions))
    }

    fn databases(&self) -> Arc<[(String, CollationId)]> {
        self.with_known(|known| Arc::clone(&known.databases))
    }

    fn table(&self, id: TableId) -> Outcome<Rc<dyn Table>> {
        let place = self.place_of(id)?;
        self.members[place].store.table(id)
    }

    fn take_left_prepared(&self) -> Vec<LeftPrepared> {
        let mut left: BTreeMap<Xid, (Vec<TableId>, RoutedTransaction)> = BTreeMap::new();
        for member in &*self.members {
            for part in member.store.take_left_prepared() {
                let new = || {
                    (
                        Vec::new(),
                        RoutedTransaction::left(Rc::clone(&self.members)),
                    )
                };
                let (tables, transaction) = left.entry(part.xid).or_insert_with(new);
                tables.extend(part.tables);
                transaction.adopt(member.store.id(), part.transaction);
            }
        }
        let whole = left
            .into_iter()
            .map(|(xid, (tables, transaction))| LeftPrepared {
                xid,
                tables,
                transaction: Box::new(transaction),
            });
        whole.collect()
    }

    fn seen_is_durable(&self) -> Outcome<()> {
        self.members
            .iter()
            .try_for_each(|it| it.store.seen_is_durable())
    }

    fn debt(&self) -> Debt {
        let debts = self.members.iter().map(|it| it.store.debt());
        debts.fold(Debt::default(), |worst, it| Debt {
            log_percent: worst.log_percent.max(it.log_percent),
            dirty_percent: worst.dirty_percent.max(it.dirty_percent),
        })
    }

    fn activity(&self) -> Activity {
        let mut all = Activity::default();
        for member in &*self.members {
            let Activity {
                transactions,
                locks,
                waits,
            } = member.store.activity();
            // Positions of a member's locks begin behind those of the members before it.
            let before = all.locks.len();
            all.transactions.extend(transactions);
            all.locks.extend(locks);
            all.waits.extend(waits.into_iter().map(|wait| ShownWait {
                wanted: before + wait.wanted,
                blocker: before + wait.blocker,
                ..wait
            }));
        }
        all
    }

    /// Those of the server's own store: the others' numbers are their own.
    fn deadlocks(&self, after: u64) -> Vec<ShownDeadlock> {
        self.members[0].store.deadlocks(after)
    }

    fn statistics_version(&self) -> u64 {
        let versions = self.members.iter().map(|it| it.store.statistics_version());
        versions.fold(0, u64::wrapping_add)
    }
}
