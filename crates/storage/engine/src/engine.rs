//! One worker's handle on the engine: the store that SQL sees.

use std::rc::Rc;
use std::sync::Arc;

use format::TableId;
use store::replication::{Position, WriteSet};
use store::{
    Activity, Debt, Durability, LeftPrepared, LocalFuture, Outcome, SchemaStore, ShownDeadlock,
    Store, StoreError, StoreId, Table, TableDefinition, TableName, Transaction, TransactionOptions,
    Transactions, until_done,
};
use sync::atomic::Ordering;
use value::CollationId;

use crate::replication::applying::begin_applying;
use crate::row::table::EngineTable;
use crate::transaction::EngineTransaction;
use crate::transaction::group::Replication;
use crate::worker::{LeftUndo, Shared, Worker};

/// One worker's handle on the engine. Cheap to clone; stays on its worker.
#[derive(Debug, Clone)]
pub struct Engine {
    /// The worker's part.
    pub(crate) worker: Rc<Worker>,
    /// The transactions that sessions hold.
    pub(crate) transactions: Rc<Transactions<EngineTransaction>>,
}

impl Engine {
    /// The shared state, with which other workers call [`Engine::join`].
    pub fn shared(&self) -> &Arc<Shared> {
        &self.worker.shared
    }

    /// Applies a write set at its place, and returns when it is as durable as asked. Several may be
    /// applied at once; each waits for those before it at its end.
    ///
    /// # Errors
    /// `Inconsistent` if a row that it changes is not there, or its key is taken by another; and
    /// errors of the disk. The place is not passed then: the node cannot follow the group any more.
    /// Other values of the row that it replaces are not looked at.
    pub async fn apply(
        &self,
        position: Position,
        writes: Arc<WriteSet>,
        durability: Durability,
    ) -> Result<(), StoreError> {
        let replication = self.group_part().expect("a provider gave the place");
        let replication = replication.applying(position, writes);
        let mut txn = begin_applying(&self.worker, replication);
        until_done(|| txn.commit(durability)).await
    }

    /// What a new transaction has to do with the group; `None` without a provider.
    fn group_part(&self) -> Option<Replication> {
        let provider = self.worker.shared.provider()?;
        let registry = Rc::clone(&self.transactions);
        Some(Replication::new(Arc::clone(provider), registry))
    }

    /// Passes a place that changes nothing here: a write set that was refused, or an event of the
    /// group.
    pub async fn pass(&self, position: Position) -> Result<(), StoreError> {
        let passing = || self.worker.pass_place(position);
        self.worker.until_done(passing).await?;
        Ok(())
    }

    /// The place up to which this node's log has the group's order; `None` if it never had a part
    /// in one.
    pub fn position(&self) -> Option<Position> {
        self.worker.shared.position()
    }

    /// The pages of this worker.
    pub fn pages(&self) -> &btree::Pages {
        &self.worker.pages
    }
}

impl Store for Engine {
    fn id(&self) -> StoreId {
        self.transactions.store()
    }

    fn begin(&self, options: TransactionOptions) -> Box<dyn Transaction> {
        self.transactions.begin(|| {
            let mut txn = EngineTransaction::new(Rc::clone(&self.worker), options);
            txn.replication = self.group_part().map(Box::new);
            txn
        })
    }

    fn schema_version(&self) -> u64 {
        self.worker.dictionary().version
    }

    fn definitions(&self) -> Arc<[Arc<TableDefinition>]> {
        Arc::clone(&self.worker.dictionary().definitions)
    }

    fn databases(&self) -> Arc<[(String, CollationId)]> {
        Arc::clone(&self.worker.dictionary().database_list)
    }

    fn table(&self, id: TableId) -> Outcome<Rc<dyn Table>> {
        let shape = self.worker.table_shape(id).ok_or(StoreError::NoSuchTable)?;
        Ok(Rc::new(EngineTable::new(
            Rc::clone(&self.worker),
            Rc::clone(&self.transactions),
            shape,
        )))
    }

    fn take_left_prepared(&self) -> Vec<LeftPrepared> {
        let (worker, index) = (&self.worker, usize::from(self.worker.options.index));
        let mut left = worker.shared.left_prepared.lock();
        let is_own = |it: &mut LeftUndo| worker.shared.worker_of(it.last_undo.segment()) == index;
        let own = left.extract_if(.., is_own).map(|undo| LeftPrepared {
            tables: undo.tables.iter().copied().collect(),
            transaction: self
                .transactions
                .begin(|| EngineTransaction::left(Rc::clone(worker), &undo)),
            xid: undo.xid,
        });
        own.collect()
    }

    fn seen_is_durable(&self) -> Outcome<()> {
        self.worker.seen_is_durable()
    }

    fn debt(&self) -> Debt {
        let pool = self.worker.pages.pool();
        let frames = u64::from(pool.options().frame_count).max(1);
        Debt {
            log_percent: pool.wal().age_percent(),
            dirty_percent: (stdx::to_u64(pool.dirty_pages()) * 100 / frames).min(100),
        }
    }

    fn activity(&self) -> Activity {
        self.worker.activity()
    }

    fn deadlocks(&self, after: u64) -> Vec<ShownDeadlock> {
        self.worker.deadlocks(after)
    }

    fn statistics_version(&self) -> u64 {
        // Relaxed: who plans by the statistics of a moment ago plans well.
        self.worker
            .shared
            .statistics_version
            .load(Ordering::Relaxed)
    }
}

impl SchemaStore for Engine {
    fn create_database(
        &self,
        name: &str,
        collation: CollationId,
    ) -> LocalFuture<'_, Result<(), StoreError>> {
        let name = name.to_owned();
        Box::pin(async move { self.worker.create_database(&name, collation).await })
    }

    fn drop_database(&self, name: &str) -> LocalFuture<'_, Result<(), StoreError>> {
        let name = name.to_owned();
        Box::pin(async move { self.worker.drop_database(&name).await })
    }

    fn create_table(
        &self,
        definition: TableDefinition,
    ) -> LocalFuture<'_, Result<TableId, StoreError>> {
        Box::pin(async move { self.worker.create_table(definition).await })
    }

    fn drop_table(&self, id: TableId) -> LocalFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.worker.drop_table(id).await })
    }

    fn rename_tables(
        &self,
        renames: Vec<(TableId, TableName)>,
    ) -> LocalFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.worker.rename_tables(renames).await })
    }

    fn truncate_table(&self, id: TableId) -> LocalFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.worker.truncate_table(id).await })
    }

    fn alter_table(
        &self,
        definition: TableDefinition,
        next_number: Option<u64>,
    ) -> LocalFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.worker.alter_table(definition, next_number).await })
    }

    fn replace_table(
        &self,
        old: TableId,
        copy: TableId,
        name: TableName,
    ) -> LocalFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.worker.replace_table(old, copy, name).await })
    }

    fn renew_statistics(&self, id: TableId) -> LocalFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.worker.renew_statistics(id).await })
    }
}
