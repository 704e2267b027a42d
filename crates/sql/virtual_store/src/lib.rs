//! [`VirtualStore`]: a read-only store whose rows are made when they are read.
//!
//! Each table has a name, columns, and a function that asks for its rows. The answer may take its
//! time: the first `fetch` of a scan suspends until it has come. Each mention of a table in a
//! statement asks once, so all scans by that mention see the same rows.
//!
//! Nothing is kept here, so transactions have nothing to do. Each change of rows or of tables fails
//! with `NotSupported`. The handle belongs to one worker, like any other store.

#![forbid(unsafe_code)]

mod schema;
mod transaction;

use std::cell::{Cell, OnceCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use catalog::{RowSource, VirtualTable};
use store::{
    ColumnDefinition, LocalFuture, Outcome, Store, StoreError, StoreId, Suspend, Table,
    TableDefinition, TableId, TableName, Transaction, TransactionOptions, Transactions, WaitReason,
};
use value::{CollationId, Value};

use transaction::Nothing;

/// One value for each column, of the column's type.
pub type Row = Vec<Value>;

/// Asks for all rows of a table, as they are now.
pub type Ask = Rc<dyn Fn() -> LocalFuture<'static, Vec<Row>>>;

/// What a table is.
#[derive(Clone)]
pub struct Declaration {
    /// Its name within the database.
    pub name: &'static str,
    /// For people.
    pub comment: &'static str,
    /// Its columns.
    pub columns: Vec<ColumnDefinition>,
    /// Where its rows come from.
    pub ask: Ask,
}

impl fmt::Debug for Declaration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Declaration")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// See the module's head.
pub struct VirtualStore {
    /// Its one database, with the default collation. Constant.
    databases: Arc<[(String, CollationId)]>,
    /// Constant.
    definitions: Arc<[Arc<TableDefinition>]>,
    /// In the order of the definitions. Constant.
    asks: Vec<Ask>,
    transactions: Rc<Transactions<Nothing>>,
}

/// Ids of the tables: no other store gives out numbers so high, and `catalog` has those below.
const TABLE_ID_MIN: u64 = catalog::VIRTUAL_TABLE_ID_MIN | 3 << 61;

/// The collation of names and of other texts.
pub const COLLATION: CollationId = CollationId::UTF8MB4_GENERAL_CI;

impl VirtualStore {
    /// A store with one database that has these tables.
    pub fn new(database: &str, tables: Vec<Declaration>) -> VirtualStore {
        let (mut definitions, mut asks) = (Vec::new(), Vec::new());
        for (id, table) in (TABLE_ID_MIN..).zip(tables) {
            definitions.push(Arc::new(TableDefinition {
                id: TableId(id),
                version: 1,
                name: TableName {
                    database: database.to_owned(),
                    table: table.name.to_owned(),
                },
                columns: table.columns,
                indexes: Vec::new(),
                collation: COLLATION,
                auto_increment_start: 1,
                comment: table.comment.to_owned(),
                options: Vec::new(),
                created_us: 0,
                view: None,
            }));
            asks.push(table.ask);
        }
        VirtualStore {
            databases: Arc::from([(database.to_owned(), COLLATION)]),
            definitions: definitions.into(),
            asks,
            transactions: Rc::default(),
        }
    }
}

impl fmt::Debug for VirtualStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualStore")
            .field("databases", &self.databases)
            .finish_non_exhaustive()
    }
}

impl Store for VirtualStore {
    fn id(&self) -> StoreId {
        self.transactions.store()
    }

    fn begin(&self, _: TransactionOptions) -> Box<dyn Transaction> {
        self.transactions.begin(Nothing::default)
    }

    fn schema_version(&self) -> u64 {
        1
    }

    fn definitions(&self) -> Arc<[Arc<TableDefinition>]> {
        Arc::clone(&self.definitions)
    }

    fn databases(&self) -> Arc<[(String, CollationId)]> {
        Arc::clone(&self.databases)
    }

    fn table(&self, id: TableId) -> Outcome<Rc<dyn Table>> {
        let mut tables = self.definitions.iter().zip(&self.asks);
        let found = tables.find(|(definition, _)| definition.id == id);
        let (definition, ask) = found.ok_or(StoreError::NoSuchTable)?;
        let source = Answer {
            ask: Rc::clone(ask),
            answer: Rc::default(),
        };
        let table = VirtualTable::new(Arc::clone(definition), Box::new(source));
        Ok(Rc::new(table))
    }
}

/// The rows of a table that a statement has opened.
struct Answer {
    ask: Ask,
    answer: Rc<OnceCell<Cell<Vec<Row>>>>,
}

impl RowSource for Answer {
    fn tables(&self) -> Vec<Arc<TableDefinition>> {
        Vec::new()
    }

    fn ready(&self) -> Outcome<()> {
        if self.answer.get().is_some() {
            return Ok(());
        }
        let (asked, answer) = ((self.ask)(), Rc::clone(&self.answer));
        let wait = async move {
            let rows = asked.await;
            // Another scan of the table may have asked meanwhile; the first answer counts.
            answer.get_or_init(|| Cell::new(rows));
        };
        Err(Suspend::new(WaitReason::Remote, wait).into())
    }

    /// The table without an index keeps what it has read, so this is called once.
    fn rows(&self, _: Option<&[Arc<TableDefinition>]>) -> Vec<Row> {
        self.answer.get().map(Cell::take).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
