//! Stored programs as rows of their table.

use std::sync::Arc;

use ::store::{RowBatch, SchemaStore, Store, StoreError};
use catalog::routine::{ROUTINE_TABLE, routine_table};
use catalog::{Routine, Routines};
use value::Value;

use crate::system::rows::{self, RowChange};

/// A change of the table of routines.
#[derive(Debug, Clone)]
pub enum RoutineChange {
    /// Creates a routine, or replaces the one of the same name.
    Put(Box<Routine>),
    /// Removes a routine.
    Remove(Arc<Routine>),
}

/// Creates the table of routines if it is missing. The system database exists.
pub async fn bootstrap(store: &(impl Store + SchemaStore)) -> Result<(), StoreError> {
    if rows::find(store, ROUTINE_TABLE).await?.is_none() {
        store.create_table(routine_table()).await?;
    }
    Ok(())
}

/// Reads all routines. A damaged one is left out and logged.
pub async fn load(store: &dyn Store) -> Result<Routines, StoreError> {
    let Some(table) = rows::find(store, ROUTINE_TABLE).await? else {
        return Ok(Routines::default());
    };
    let routines = rows::read_all(store, &*table, |batch, row| {
        let routine = read_row(batch, row);
        if routine.is_none() {
            tracing::error!("a stored program cannot be read and is as if it were not there");
        }
        routine
    });
    Ok(Routines::new(
        routines.await?.into_iter().flatten().collect(),
    ))
}

fn read_row(batch: &RowBatch, row: usize) -> Option<Routine> {
    let columns = 0..routine_table().columns.len();
    let values: Option<Vec<Value>> = columns
        .map(|column| Some(batch.column(row, column).ok()?.to_value()))
        .collect();
    Routine::from_row(&values?)
}

/// The routines after changes.
pub fn after(routines: &Routines, changes: &[RoutineChange]) -> Routines {
    routines.after(changes.iter().map(|change| match change {
        RoutineChange::Put(routine) => (routine.key(), Some(Routine::clone(routine))),
        RoutineChange::Remove(routine) => (routine.key(), None),
    }))
}

/// The changes as changes of rows.
pub(crate) fn row_changes(changes: &[RoutineChange]) -> Vec<RowChange> {
    let row_change = |change: &RoutineChange| {
        let (routine, is_there) = match change {
            RoutineChange::Put(routine) => (&**routine, true),
            RoutineChange::Remove(routine) => (&**routine, false),
        };
        let key = [&*routine.database, &*routine.name, routine.kind.text()];
        RowChange {
            key: key.map(|text| Value::bytes(text.as_bytes())).to_vec(),
            row: is_there.then(|| routine.to_row()),
        }
    };
    changes.iter().map(row_change).collect()
}
