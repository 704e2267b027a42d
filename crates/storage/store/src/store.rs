//! A store: where tables and transactions come from.

use std::rc::Rc;
use std::sync::Arc;

use crate::{
    Activity, Outcome, ShownDeadlock, StoreId, Table, TableDefinition, TableId, Transaction,
    TransactionOptions, Xid,
};

/// Work that a store has put off, in percent of the room that there is for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Debt {
    /// Log that no checkpoint has freed.
    pub log_percent: u64,
    /// Changed pages in memory.
    pub dirty_percent: u64,
}

/// A prepared transaction that a former life of the server has left.
#[derive(Debug)]
pub struct LeftPrepared {
    /// Its name.
    pub xid: Xid,
    /// The tables that it has changed, in order. Their definitions must stay until its end.
    pub tables: Vec<TableId>,
    /// The transaction: to be committed or rolled back. Dropped, it stays prepared in the log, and
    /// the next life of the server finds it again.
    pub transaction: Box<dyn Transaction>,
}

/// One worker's handle on a store: its tables and transactions. What changes the tables themselves
/// is a [`SchemaStore`](crate::SchemaStore).
pub trait Store {
    /// Names this handle.
    fn id(&self) -> StoreId;

    /// Begins a transaction; it costs nothing until its first statement.
    fn begin(&self, options: TransactionOptions) -> Box<dyn Transaction>;

    /// Grows with each schema change anywhere in the store; caches of definitions compare it.
    fn schema_version(&self) -> u64;

    /// All definitions at the present schema version. No other store of the process has a table of
    /// the same id.
    fn definitions(&self) -> Arc<[Arc<TableDefinition>]>;

    /// All databases, with their default collation's id, at the present schema version.
    fn databases(&self) -> Arc<[(String, value::CollationId)]>;

    /// A handle on the table as now defined; `NoSuchTable` after a drop.
    fn table(&self, id: TableId) -> Outcome<Rc<dyn Table>>;

    /// Takes the prepared transactions that a former life of the server has left on this worker.
    /// Later calls return none.
    fn take_left_prepared(&self) -> Vec<LeftPrepared> {
        Vec::new()
    }

    /// Suspends until all is durable that a read could have seen by now; the caller then calls
    /// again. A store that is not asked about crashes of its own has nothing to wait for.
    fn seen_is_durable(&self) -> Outcome<()> {
        Ok(())
    }

    /// Work that it has put off.
    fn debt(&self) -> Debt {
        Debt::default()
    }

    /// Its open transactions, on all workers, and who waits for whom. A store that shows none, such
    /// as one without locks, has nothing to list.
    fn activity(&self) -> Activity {
        Activity::default()
    }

    /// The deadlocks with a higher number than `after`, in their order, as far as it remembers
    /// them.
    fn deadlocks(&self, _after: u64) -> Vec<ShownDeadlock> {
        Vec::new()
    }

    /// Another one whenever statistics have become others than plans were made by; who keeps plans
    /// compares it. A store without statistics has one version.
    fn statistics_version(&self) -> u64 {
        0
    }
}
