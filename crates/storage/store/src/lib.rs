//! What SQL may ask of a table, wherever its rows are stored.
//!
//! Reading order: [`interrupt`] (how an operation says "come back later"), [`definition`] (what a
//! table is), [`range`] and [`batch`] (input and output of a scan). Then the traits: a [`Store`]
//! returns [`Transaction`]s and [`Table`]s, a table returns [`Cursor`]s, and a [`SchemaStore`]
//! changes the tables. Then [`pushed`] (what a scan may do for its caller), [`registry`] (how a
//! table finds its own store's transaction) and [`activity`] (what operators see of transactions
//! and locks).
//!
//! Nothing here does I/O or knows SQL text. An embedded engine implements these traits, and so does
//! a store whose rows are on other servers.
//!
//! Rules for implementors and callers:
//!
//! (I1) An operation that returns [`Interrupt::Suspend`] has changed nothing that a second call
//!      with the same arguments would do twice, and holds no latch. The caller awaits the
//!      suspension and calls again.
//! (I2) A store handle, its transactions, tables and cursors belong to one worker; none is `Send`.
//! (I3) Batches are owned by the caller and reused: a scan allocates nothing per row.

#![forbid(unsafe_code)]

pub mod activity;
pub mod batch;
pub mod definition;
pub mod error;
pub mod interrupt;
pub mod pushed;
pub mod range;
pub mod replication;

mod ids;
pub mod registry;
mod schema_store;
mod store;
mod table;
mod transaction;
mod xa;

pub use activity::{
    Activity, OpenTransaction, ShownDeadlock, ShownExtent, ShownLock, ShownMember, ShownWait,
    Witness,
};
pub use batch::{Hold, RowBatch, RowKey};
pub use definition::{
    COPY_NAME_PREFIX, ColumnDefault, ColumnDefinition, IndexDefinition, IndexPart, TableDefinition,
    TableId, TableName, Uniqueness, kept_indexes,
};
pub use error::StoreError;
pub use ids::{ClientId, StoreId, TransactionKey};
pub use interrupt::{Interrupt, Outcome, Suspend, WaitReason, until_done};
pub use pushed::{Aggregate, ColumnRanges, Condition, Grouping, Offer, Pushed, Taken};
pub use range::{Direction, KeyBound, KeyRange};
pub use registry::Transactions;
pub use schema_store::{LocalFuture, SchemaStore};
pub use store::{Debt, LeftPrepared, Store};
pub use table::{
    AutoIncrement, CallCost, Cursor, FETCH_BYTES_MAX, Fetched, Inserted, LockWait, Mutation,
    RowLock, ScanOptions, Table, TableStatistics,
};
pub use transaction::{Durability, Isolation, Prepared, Transaction, TransactionOptions, UndoMark};
pub use xa::{XID_PART_BYTES_MAX, Xid};
