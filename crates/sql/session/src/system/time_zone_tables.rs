//! The tables of time zones, which exist in every data directory.

use catalog::time_zone_tables::time_zone_tables;
use store::{SchemaStore, Store, StoreError};

use crate::system::rows;

/// Creates those that are missing. The system database exists.
pub async fn bootstrap(store: &(impl Store + SchemaStore)) -> Result<(), StoreError> {
    for table in time_zone_tables() {
        if rows::find(store, &table.name.table).await?.is_none() {
            store.create_table(table).await?;
        }
    }
    Ok(())
}
