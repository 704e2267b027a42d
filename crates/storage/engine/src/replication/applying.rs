//! Write sets that have their place: another node's, or one's own that was displaced.

use std::rc::Rc;
use std::sync::Arc;

use format::row::RowLayout;
use lock::LockMode;
use store::replication::RowChange;
use store::{
    AutoIncrement, ClientId, Inserted, Isolation, Mutation, Outcome, StoreError, Transaction,
    TransactionOptions,
};
use value::ValueRef;

use crate::row::table::EngineTable;
use crate::schema::table_shape::TableShape;
use crate::transaction::EngineTransaction;
use crate::transaction::group::{Replication, Stage};
use crate::worker::Worker;

/// How long an applied change waits for a row lock: whoever has it was ordered to abort.
const APPLIER_WAIT_S: u64 = u32::MAX as u64;

/// Appliers read committed rows, as Galera's do: they lock no gaps that they pass.
const APPLIER: TransactionOptions = TransactionOptions {
    isolation: Isolation::ReadCommitted,
    read_only: false,
    lock_wait_timeout_s: APPLIER_WAIT_S,
    client: ClientId::NONE,
};

/// Begins the transaction that applies a write set; its commit does all of it.
pub(crate) fn begin_applying(
    worker: &Rc<Worker>,
    replication: Replication,
) -> Box<dyn Transaction> {
    assert!(
        matches!(replication.stage, Stage::Applying(_)),
        "its place is known"
    );
    let registry = Rc::clone(&replication.registry);
    registry.begin(|| {
        let mut txn = EngineTransaction::new(Rc::clone(worker), APPLIER);
        txn.replication = Some(Box::new(replication));
        txn
    })
}

impl EngineTransaction {
    /// How it locks now. A write set that has its place is applied in one way. Its own session may
    /// have no patience, and lock gaps.
    pub(crate) fn locking_options(&self) -> &TransactionOptions {
        match self.applied_seqno() {
            Some(_) => &APPLIER,
            None => &self.options,
        }
    }

    /// The seqno of the write set that it applies.
    pub(crate) fn applied_seqno(&self) -> Option<u64> {
        match self.replication.as_ref()?.stage {
            Stage::Applying(position) => Some(position.seqno),
            _ => None,
        }
    }

    /// Makes the changes of its write set that are not made.
    pub(crate) fn apply_rest(&mut self) -> Outcome<()> {
        loop {
            let replication = self.replication.as_ref().expect("it applies a write set");
            let (writes, number) = (Arc::clone(&replication.writes), replication.applied);
            assert!(
                number <= writes.changes.len(),
                "each change is applied once"
            );
            let Some(change) = writes.changes.get(number) else {
                return Ok(());
            };
            self.apply_change(change)?;
            let replication = self.replication.as_mut().expect("it applies a write set");
            replication.applied += 1;
        }
    }

    /// Begins again with the first change, after all were undone.
    pub(crate) fn apply_again(&mut self) {
        assert_eq!(self.undo_count, 0, "what was applied is undone");
        if let Some(replication) = &mut self.replication {
            replication.applied = 0;
        }
    }

    fn apply_change(&mut self, change: &RowChange) -> Outcome<()> {
        let worker = Rc::clone(&self.worker);
        let registry = &self
            .replication
            .as_ref()
            .expect("it applies a write set")
            .registry;
        let name = &change.table.name;
        let dictionary = worker.dictionary();
        let of_id = dictionary.tables.get(&change.table.id);
        let shape = of_id
            .filter(|shape| shape.entry.definition.name == *name)
            .or_else(|| {
                let mut tables = dictionary.tables.values();
                tables.find(|shape| shape.entry.definition.name == *name)
            });
        let shape = Arc::clone(shape.ok_or(StoreError::NoSuchTable)?);
        let key = match &change.before {
            Some(row) => shape.row_key_of(row)?,
            None => None,
        };
        let table = EngineTable::new(Rc::clone(&worker), Rc::clone(registry), Arc::clone(&shape));
        let is_done = match (key, &change.after) {
            (None, Some(after)) => {
                let row = values(&shape.layout, after)?;
                worker.pass_numbers(&table, &shape, &row)?;
                table.insert_by(self, &row, LockMode::Exclusive)? == Inserted::Done
            }
            (Some(key), Some(after)) => {
                let row = values(&shape.layout, after)?;
                table.update_by(self, &key, &row, LockMode::Exclusive)? == Mutation::Done
            }
            (Some(key), None) => table.delete_by(self, &key)? == Mutation::Done,
            (None, None) => false,
        };
        if is_done {
            return Ok(());
        }
        let table = name.to_string().into();
        Err(StoreError::Inconsistent { table }.into())
    }
}

impl Worker {
    /// Lets the counter of a table pass the number that an applied row has.
    fn pass_numbers(
        &self,
        table: &EngineTable,
        shape: &TableShape,
        row: &[ValueRef<'_>],
    ) -> Outcome<()> {
        use store::Table;
        let column = shape.entry.definition.auto_increment_column();
        let number = column.and_then(|column| match row[column] {
            ValueRef::Int(number) => u64::try_from(number).ok(),
            ValueRef::UInt(number) => Some(number),
            _ => None,
        });
        if let Some(number) = number {
            table.take_auto_increment(AutoIncrement::Pass(number))?;
        }
        Ok(())
    }
}

/// The values of an encoded row.
fn values<'a>(layout: &RowLayout, row: &'a [u8]) -> Result<Vec<ValueRef<'a>>, StoreError> {
    let column = |column| {
        layout
            .column(row, column)
            .map_err(|error| StoreError::damaged(format!("a row of a write set: {error}")))
    };
    (0..layout.column_count()).map(column).collect()
}
