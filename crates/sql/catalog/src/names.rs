//! Databases and tables by name, at one schema version.

use std::collections::BTreeMap;
use std::sync::Arc;

use store::{Store, TableDefinition};
use value::CollationId;

use crate::stored_table::SYSTEM_DATABASE;
use crate::system_tables;

/// All names at one schema version. Immutable; a worker replaces its own when the store's version
/// has changed.
#[derive(Debug, Default)]
pub struct NameSpace {
    /// The store's schema version when it was read.
    version: u64,
    /// Databases by name, with their tables.
    databases: BTreeMap<String, Database>,
}

/// One database.
#[derive(Debug)]
pub struct Database {
    /// The default collation of its tables.
    pub collation: CollationId,
    /// Tables by name.
    pub tables: BTreeMap<String, Arc<TableDefinition>>,
}

impl NameSpace {
    /// Reads all names from the store.
    pub fn read(store: &dyn Store) -> Self {
        let version = store.schema_version();
        let mut databases: BTreeMap<String, Database> = store
            .databases()
            .iter()
            .map(|(name, collation)| {
                (
                    name.clone(),
                    Database {
                        collation: *collation,
                        tables: BTreeMap::new(),
                    },
                )
            })
            .collect();
        for definition in store.definitions().iter() {
            if let Some(database) = databases.get_mut(&definition.name.database) {
                database
                    .tables
                    .insert(definition.name.table.clone(), Arc::clone(definition));
            }
        }
        if let Some(database) = databases.get_mut(SYSTEM_DATABASE) {
            let made = system_tables::definitions().iter();
            let made = made.map(|it| (it.name.table.clone(), Arc::clone(it)));
            // The stored table of accounts is not seen: one of these has its name.
            database.tables.extend(made);
        }
        Self { version, databases }
    }

    /// The store's schema version when it was read. If the store's version is higher, the caller
    /// reads the names again.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The database of this name.
    pub fn database(&self, name: &str) -> Option<&Database> {
        self.databases.get(name)
    }

    /// The table of this name.
    pub fn table(&self, database: &str, table: &str) -> Option<&Arc<TableDefinition>> {
        self.databases.get(database)?.tables.get(table)
    }

    /// All databases, by name.
    pub fn databases(&self) -> impl Iterator<Item = (&str, &Database)> {
        self.databases
            .iter()
            .map(|(name, database)| (name.as_str(), database))
    }
}
