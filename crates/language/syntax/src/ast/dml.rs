//! Statements that change rows.

use super::{
    Expr, Ident, IntoTarget, Limit, ObjectName, OrderItem, Query, SelectItem, TableRef, ValueRows,
};

/// `INSERT` and `REPLACE`.
#[derive(Debug, Clone, PartialEq)]
pub struct Insert {
    /// `REPLACE`.
    pub is_replace: bool,
    /// `IGNORE`.
    pub ignore: bool,
    /// `LOW_PRIORITY`, `DELAYED`, `HIGH_PRIORITY`.
    pub priority: Option<Priority>,
    /// The target table.
    pub table: ObjectName,
    /// `PARTITION (..)`.
    pub partitions: Vec<Ident>,
    /// The columns; all when empty and `has_columns` is not set.
    pub columns: Vec<Ident>,
    /// The column list was written, even if it is `()`.
    pub has_columns: bool,
    /// The source of the rows.
    pub source: InsertSource,
    /// `ON DUPLICATE KEY UPDATE`.
    pub on_duplicate: Vec<Assignment>,
    /// `RETURNING`.
    pub returning: Vec<SelectItem>,
}

/// What an `INSERT` inserts.
#[derive(Debug, Clone, PartialEq)]
pub enum InsertSource {
    /// `VALUES (..), ..`.
    Values(ValueRows),
    /// `SELECT ..`. (`SET a = 1, ..` is a row of values, too.)
    Query(Box<Query>),
}

/// Words about priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Priority {
    /// `LOW_PRIORITY`.
    Low,
    /// `DELAYED`.
    Delayed,
    /// `HIGH_PRIORITY`.
    High,
}

/// `a = e`.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    /// The column.
    pub column: super::ColumnName,
    /// Its new value; `DEFAULT` is [`super::ExprKind::Default`] with `None`.
    pub value: Expr,
}

/// `UPDATE`.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// `LOW_PRIORITY`.
    pub low_priority: bool,
    /// `IGNORE`.
    pub ignore: bool,
    /// The tables; one plain table makes the single-table form.
    pub tables: Vec<TableRef>,
    /// `FOR PORTION OF p FROM a TO b`.
    pub portion: Option<super::Refused>,
    /// `SET`; at least one.
    pub assignments: Vec<Assignment>,
    /// `WHERE`.
    pub condition: Option<Expr>,
    /// `ORDER BY`.
    pub order_by: Vec<OrderItem>,
    /// `LIMIT`, without offset in the single-table form.
    pub limit: Option<Limit>,
}

/// `DELETE`.
#[derive(Debug, Clone, PartialEq)]
pub struct Delete {
    /// `LOW_PRIORITY`.
    pub low_priority: bool,
    /// `QUICK`.
    pub quick: bool,
    /// `IGNORE`.
    pub ignore: bool,
    /// The multi-table form: the tables of `from` that lose rows, by name or alias. Empty: one
    /// table.
    pub targets: Vec<ObjectName>,
    /// The tables that are read; exactly one plain table in the single-table form.
    pub from: Vec<TableRef>,
    /// `HISTORY` or `FOR PORTION OF`, skipped.
    pub period: Option<super::Refused>,
    /// `WHERE`.
    pub condition: Option<Expr>,
    /// `ORDER BY`, single-table form.
    pub order_by: Vec<OrderItem>,
    /// `LIMIT`, single-table form.
    pub limit: Option<Limit>,
    /// `RETURNING`, single-table form.
    pub returning: Vec<SelectItem>,
}

/// `LOAD DATA`.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadData {
    /// `LOCAL`: the client has the file.
    pub local: bool,
    /// `LOW_PRIORITY`; `CONCURRENT` has no effect.
    pub priority: Option<Priority>,
    /// The file.
    pub path: Vec<u8>,
    /// What happens to duplicate rows.
    pub duplicates: Option<LoadDuplicates>,
    /// The target table.
    pub table: ObjectName,
    /// `PARTITION (..)`.
    pub partitions: Vec<Ident>,
    /// `CHARACTER SET ..`.
    pub charset: Option<Ident>,
    /// The separators of fields and lines.
    pub format: FileFormat,
    /// `IGNORE n LINES`.
    pub ignore_lines: u64,
    /// `(a, @b)`.
    pub columns: Vec<IntoTarget>,
    /// `SET a = e, ..`.
    pub assignments: Vec<Assignment>,
}

/// What `LOAD DATA` does with duplicate rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LoadDuplicates {
    /// `REPLACE`.
    Replace,
    /// `IGNORE`.
    Ignore,
}

/// `FIELDS ..` and `LINES ..`; absent parts have MariaDB's defaults.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileFormat {
    /// `FIELDS TERMINATED BY`; a tab.
    pub field_end: Option<Vec<u8>>,
    /// `ENCLOSED BY`; nothing.
    pub field_quote: Option<Vec<u8>>,
    /// `OPTIONALLY ENCLOSED BY`.
    pub quote_optional: bool,
    /// `ESCAPED BY`; a backslash.
    pub escape: Option<Vec<u8>>,
    /// `LINES STARTING BY`; nothing.
    pub line_start: Option<Vec<u8>>,
    /// `LINES TERMINATED BY`; a line feed.
    pub line_end: Option<Vec<u8>>,
}
