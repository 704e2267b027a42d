//! The tables and databases.
//!
//! The source of truth is a tree in the system tablespace, with one row for each table and
//! database, changed by ordinary transactions. So a schema change happens wholly or not at all,
//! also across crashes. All workers share an immutable snapshot of it, replaced after each
//! committed change.

mod codec;

use std::collections::BTreeMap;
use std::sync::Arc;

use format::{IndexId, PageNo, SpaceId, TableId};
use store::TableDefinition;
use value::CollationId;

use btree::Tree;

use crate::schema::statistics::IndexStatistics;
use crate::schema::table_shape::TableShape;

pub(crate) use codec::{decode, encode};

/// The tablespace of the dictionary and of the engine's counters.
pub(crate) const SYSTEM_SPACE: SpaceId = SpaceId(0);
/// The root of the dictionary.
pub(crate) const DICTIONARY_ROOT: PageNo = PageNo(3);
/// The dictionary as a table, in undo records.
pub(crate) const DICTIONARY_TABLE: TableId = TableId(1);
/// Its tree.
pub(crate) const DICTIONARY_INDEX: IndexId = IndexId(1);

/// The tree of the dictionary.
pub(crate) fn tree() -> Tree {
    Tree {
        space: SYSTEM_SPACE,
        root: DICTIONARY_ROOT,
        index: DICTIONARY_INDEX,
    }
}

/// A row of the dictionary.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Entry {
    /// A table.
    Table(TableEntry),
    /// What is known of a table's indexes.
    Statistics(StatisticsEntry),
    /// A database.
    Database {
        /// Its name.
        name: String,
        /// The default collation of its tables.
        collation: CollationId,
    },
}

impl Entry {
    /// The key of the entry's row.
    pub(crate) fn key(&self) -> Vec<u8> {
        match self {
            Self::Table(table) => table_key(table.definition.id),
            Self::Statistics(statistics) => statistics_key(statistics.table),
            Self::Database { name, .. } => database_key(name),
        }
    }
}

/// The bytes of a dictionary entry as this program writes them; `None` if they are no entry. For
/// tests of the format on disk.
pub fn reencode_dictionary_entry(bytes: &[u8]) -> Option<Vec<u8>> {
    decode(bytes).ok().map(|entry| encode(&entry))
}

/// The key of a table's row.
pub(crate) fn table_key(id: TableId) -> Vec<u8> {
    [b"t".as_slice(), &id.0.to_be_bytes()].concat()
}

/// The key of the row of a table's statistics.
pub(crate) fn statistics_key(id: TableId) -> Vec<u8> {
    [b"s".as_slice(), &id.0.to_be_bytes()].concat()
}

/// The key of a database's row.
pub(crate) fn database_key(name: &str) -> Vec<u8> {
    [b"d".as_slice(), name.as_bytes()].concat()
}

/// A table in the dictionary.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TableEntry {
    /// The definition that SQL sees.
    pub(crate) definition: Arc<TableDefinition>,
    /// Its tablespace.
    pub(crate) space: SpaceId,
    /// The tree of the rows first, then those of the other indexes in the definition's order.
    pub(crate) trees: Vec<TreePlace>,
}

/// The statistics of a table in the dictionary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StatisticsEntry {
    /// Which table.
    pub(crate) table: TableId,
    /// Its rows when they were made.
    pub(crate) rows: u64,
    /// The tree of the rows first.
    pub(crate) indexes: Vec<IndexStatistics>,
}

/// Where a tree is in its table's space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TreePlace {
    /// Its id.
    pub(crate) index: IndexId,
    /// Its root page.
    pub(crate) root: PageNo,
}

/// A snapshot of the dictionary.
#[derive(Debug, Default)]
pub(crate) struct Dictionary {
    /// Grows with each snapshot.
    pub(crate) version: u64,
    /// All tables.
    pub(crate) tables: BTreeMap<TableId, Arc<TableShape>>,
    /// All databases with their collation.
    pub(crate) databases: BTreeMap<String, CollationId>,
    /// The definitions of `tables`, for the catalogue.
    pub(crate) definitions: Arc<[Arc<TableDefinition>]>,
    /// `databases` in the form that the catalogue needs.
    pub(crate) database_list: Arc<[(String, CollationId)]>,
}

impl Dictionary {
    /// Creates a snapshot of these tables and databases.
    pub(crate) fn new(
        version: u64,
        tables: BTreeMap<TableId, Arc<TableShape>>,
        databases: BTreeMap<String, CollationId>,
    ) -> Self {
        let definition = |table: &Arc<TableShape>| Arc::clone(&table.entry.definition);
        let definitions = tables.values().map(definition).collect();
        let database_list = databases
            .iter()
            .map(|(name, &collation)| (name.clone(), collation))
            .collect();
        Self {
            version,
            tables,
            databases,
            definitions,
            database_list,
        }
    }
}
