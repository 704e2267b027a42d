//! The plan: what the executor runs, immutable and free of any execution's state.
//!
//! A plan is made once for a canonical statement and the types of its parameters, and run many
//! times. All current rows of a run stand in one frame of numbered *slots* ([`SlotShape`]). A node
//! of the tree names the slot for its row, and expressions name columns as (slot, column). So a
//! join moves no bytes: it only changes the current row of its slots.
//!
//! (I1) Each slot is written by exactly one node of the plan, or by the inputs of one
//! [`Node::Append`], which run one after the other. Subqueries are included: slots are numbered
//! through the whole statement, so that an inner query can read an outer row.
//! (I2) A node reads only slots written below it, by a node to its left under the same join, or
//! by an outer query.
//! (I3) Tables are named by their position in [`Plan::tables`].

mod finding;
mod joins;
mod pushed;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use expression::{AggregateCall, Constants, Expression, Lookup, Share, StoredCall, StoredFunction};
use store::{Direction, Grouping, LockWait, RowLock, TableDefinition};
use value::ColumnType;

use crate::keys::{KeyPlan, RangePlan};

pub use self::finding::Finding;
pub use self::joins::{HashJoin, HashKey, Join, JoinKind, TableHolds};
pub use self::pushed::{ColumnTest, PushedWork};

/// A statement, ready to run.
#[derive(Debug)]
pub struct Plan {
    /// What to do.
    pub action: Action,
    /// Every table that is read or written, in the version that was planned.
    pub tables: Vec<TableUse>,
    /// What the account needs on each table; for EXPLAIN, that of the explained statement.
    pub privileges: Vec<TablePrivileges>,
    /// Rows are locked as for an update, which a read-only transaction may not do.
    pub reads_for_update: bool,
    /// Rows are locked when they are read, shared or as for an update.
    pub locks_rows: bool,
    /// The current rows; an expression's column names one of them.
    pub slots: Vec<SlotShape>,
    /// Queries inside expressions, by their numbers; `None` if the number belongs to a call of a
    /// stored function.
    pub subqueries: Vec<Option<Rc<Subquery>>>,
    /// The stored functions that are called.
    pub functions: Vec<Rc<StoredFunction>>,
    /// Long lists of `IN` for which an execution may build hash tables.
    pub list_count: usize,
    /// How many parameter values an execution needs.
    pub parameter_count: usize,
    /// The result's columns for the client; empty for statements without a result set.
    pub columns: Rc<[OutputColumn]>,
    /// `INTO @a, b`: the variables to which the only row is assigned.
    pub into_variables: Vec<IntoVariable>,
    /// Warnings found while planning (1003 notes of EXPLAIN EXTENDED are not among them).
    pub warnings: Vec<errcode::ClientError>,
    /// Checks of parameter values before an execution begins.
    pub text_checks: Vec<TextCheck>,
    /// The user variables that are read, by their names in lower case, with their types at planning
    /// time: the plan is valid for these.
    pub user_variables: Box<[(Box<str>, ColumnType)]>,
    /// For other values of its parameters another plan may be much better: it is not kept.
    pub is_for_values: bool,
    /// The memory of the plan, if it is counted.
    pub memory: Share,
}

/// A parameter whose text must fit into a character set: that of the column that it is compared
/// with.
#[derive(Debug, Clone)]
pub struct TextCheck {
    /// The number of the parameter.
    pub parameter: usize,
    /// The character set of its text.
    pub from: value::Charset,
    /// The character set of the comparison.
    pub to: value::Charset,
    /// The error if it does not fit: 1267 or similar.
    pub refusal: Box<errcode::ClientError>,
}

/// A variable to which a value of the only row is assigned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntoVariable {
    /// A user variable, by its name in lower case.
    User(String),
    /// A variable of the enclosing routine, by its slot.
    Slot(usize),
}

impl Plan {
    /// True if the plan changes rows.
    pub fn is_write(&self) -> bool {
        !matches!(
            self.action,
            Action::Select(_) | Action::Do(_) | Action::Rows(_)
        )
    }

    /// True if the statement has `IGNORE`: strict mode is off for what it writes.
    pub fn is_ignore(&self) -> bool {
        match &self.action {
            Action::Insert(insert) => insert.is_ignore,
            Action::Update(update) => update.is_ignore,
            Action::Select(_) | Action::Do(_) | Action::Rows(_) | Action::Delete(_) => false,
        }
    }

    /// The tables whose rows are changed: positions in `tables`.
    pub fn written_tables(&self) -> Vec<usize> {
        match &self.action {
            Action::Select(_) | Action::Do(_) | Action::Rows(_) => Vec::new(),
            Action::Insert(insert) => vec![insert.table],
            Action::Update(update) => update.targets.iter().map(|it| it.table).collect(),
            Action::Delete(delete) => delete.targets.iter().map(|(table, _)| *table).collect(),
        }
    }
}

/// What a statement does.
#[derive(Debug)]
pub enum Action {
    /// A query whose rows go to the sink.
    Select(Rc<Query>),
    /// `DO`: a query whose rows are dropped.
    Do(Rc<Query>),
    /// Rows known at plan time: `EXPLAIN`.
    Rows(Vec<Vec<value::Value>>),
    /// `INSERT` and `REPLACE`.
    Insert(Rc<Insert>),
    /// `UPDATE`.
    Update(Rc<Update>),
    /// `DELETE`.
    Delete(Rc<Delete>),
}

/// A table of the plan.
#[derive(Debug, Clone)]
pub struct TableUse {
    /// Its definition at planning time; an execution over another version fails with
    /// `DefinitionChanged`.
    pub definition: Arc<TableDefinition>,
    /// Its name in the statement, for EXPLAIN.
    pub alias: String,
    /// Its rows are locked exclusively when they are read.
    pub is_for_update: bool,
}

/// What a statement does to a table, for the check of privileges.
#[derive(Debug, Clone)]
pub struct TablePrivileges {
    /// The table.
    pub definition: Arc<TableDefinition>,
    /// Rows are added.
    pub inserts: bool,
    /// Rows are changed.
    pub updates: bool,
    /// Rows are removed.
    pub deletes: bool,
    /// The statement reads its rows.
    pub selects: bool,
    /// A column that a changing statement reads, in a condition or to compute a value.
    pub reads: Option<usize>,
}

/// What a slot holds.
#[derive(Debug, Clone)]
pub enum SlotShape {
    /// Rows of `Plan::tables[_]`, as the store encodes them.
    Table(usize),
    /// Rows computed by a node, with columns of these types.
    Computed(Vec<ColumnType>),
    /// Groups of a store's rows, as the store encodes them.
    Groups(Rc<Grouping>),
}

/// A column of the result, as described to the client.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputColumn {
    /// The alias, the column's name, or the expression's source text.
    pub name: String,
    /// The column's own name in its table; empty for an expression.
    pub original_name: String,
    /// The table's alias in the statement; empty for an expression.
    pub table: String,
    /// The table's own name.
    pub original_table: String,
    /// Its database.
    pub database: String,
    /// Type, length, decimals, collation.
    pub column_type: ColumnType,
    /// False sets the NOT_NULL flag.
    pub nullable: bool,
    /// The key flags.
    pub key: KeyFlag,
    /// The AUTO_INCREMENT flag.
    pub auto_increment: bool,
    /// The column has no default (NO_DEFAULT_VALUE flag).
    pub no_default: bool,
    /// `ON UPDATE CURRENT_TIMESTAMP`.
    pub on_update_now: bool,
    /// It belongs to a derived table: its origin is a column of a table, but another one.
    pub is_derived: bool,
    /// It holds JSON texts, which some clients parse.
    pub is_json: bool,
}

/// The column's place in the keys, for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyFlag {
    /// In none, or not a column.
    #[default]
    None,
    /// In a key, but not its first column.
    Part,
    /// Part of the primary key, or of the unique key that takes its place.
    Primary,
    /// Alone it is a unique key.
    Unique,
    /// The first column of a key that is not unique, or has more columns.
    Multiple,
}

/// Rows out of a tree of nodes.
#[derive(Debug)]
pub struct Query {
    /// The producer of the rows.
    pub root: Node,
    /// What is returned of each row.
    pub output: Vec<Expression>,
    /// Subqueries and calls to run for each row before `output` is computed.
    pub dependent: Vec<Dependent>,
}

/// A query inside an expression.
#[derive(Debug)]
pub struct Subquery {
    /// Its rows.
    pub query: Rc<Query>,
    /// How the expression uses it.
    pub kind: SubqueryKind,
    /// It reads rows of an outer query, so its result is valid for one outer row.
    pub is_correlated: bool,
    /// Two runs over the same rows may differ, as with RAND() or a variable that the statement
    /// assigns, or a run acts. So it runs each time that it is needed.
    pub varies: bool,
    /// The slot that holds the rows for `IN`, `ANY` and `ALL`.
    pub slot: usize,
    /// What is kept of the rows of a [`SubqueryKind::Set`] that is valid for the whole execution.
    /// If `None`, each left side is compared with each row.
    pub lookup: Option<Lookup>,
}

/// How an expression uses a subquery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubqueryKind {
    /// A single row: its value, or NULL if there is none; error 1242 for two.
    Scalar,
    /// Whether there is a row.
    Exists,
    /// All rows, kept: `IN`, `ANY`, `ALL`.
    Set,
}

/// What must run before expressions are evaluated; its result is put into the frame.
#[derive(Debug, Clone)]
pub struct Dependent {
    /// What runs.
    pub step: Step,
    /// The conditions around all that was found in one place.
    pub guards: Rc<[Guard]>,
    /// The innermost condition around this one.
    pub innermost: Option<usize>,
}

/// What runs before an expression.
#[derive(Debug, Clone)]
pub enum Step {
    /// A subquery, by number.
    Subquery(usize),
    /// A call of a stored function.
    Call(Rc<StoredCall>),
}

impl Dependent {
    /// Its number among the subqueries and calls.
    pub fn number(&self) -> usize {
        match &self.step {
            Step::Subquery(number) => *number,
            Step::Call(call) => call.number,
        }
    }

    /// The conditions around it, the innermost first.
    pub fn conditions(&self) -> impl Iterator<Item = &Expression> {
        let guard = |place: Option<usize>| place.and_then(|place| self.guards.get(place));
        let around = std::iter::successors(guard(self.innermost), move |it| guard(it.outer));
        around.map(|guard| &guard.condition)
    }
}

/// A condition around subqueries and calls (of CASE, AND and the like): they run only if it and its
/// outer ones are true.
#[derive(Debug)]
pub struct Guard {
    /// The condition.
    pub condition: Expression,
    /// The next outer one.
    pub outer: Option<usize>,
}

/// A producer of rows.
#[derive(Debug)]
pub enum Node {
    /// No rows: a condition that is always false.
    Nothing,
    /// One row without columns: a SELECT without tables.
    One,
    /// Rows of a table.
    Scan(Rc<Scan>),
    /// Those rows of `input` for which the predicate is true.
    Filter(Box<Node>, Rc<Filter>),
    /// For each row of the left side, the rows of the right side, which starts again each time.
    NestedLoop(Box<Node>, Box<Node>, Rc<Join>),
    /// Reads the right side once into a table by its keys, then looks up each row of the left.
    HashJoin(Box<Node>, Box<Node>, Rc<HashJoin>),
    /// Rows of a query, computed into a slot as they come: a derived table.
    Derived(Rc<Query>, Rc<Derived>),
    /// Groups.
    Aggregate(Box<Node>, Rc<Aggregate>),
    /// Sorted rows, computed into a slot.
    Sort(Box<Node>, Rc<Sort>),
    /// Rows computed into a slot, each only once.
    Distinct(Box<Node>, Rc<Computed>),
    /// At most this many rows, after skipping the first ones.
    Limit(Box<Node>, Rc<Limit>),
    /// The rows of one input after those of another, all of the same slots.
    Append(Vec<Node>),
    /// The rows of several queries, computed into one slot.
    Union(Vec<Rc<Query>>, Rc<Union>),
    /// `WITH RECURSIVE`: rows of the first queries, then those that the others compute from the
    /// latest rows, until there are none.
    Recursive(Vec<Rc<Query>>, Rc<Recursive>),
    /// The latest rows, within a query of `Recursive`.
    Latest(Rc<Latest>),
}

/// Reads a table.
#[derive(Debug)]
pub struct Scan {
    /// The slot for the row.
    pub slot: usize,
    /// Position in `Plan::tables`.
    pub table: usize,
    /// Position in the definition's indexes; `None`: the store's own order.
    pub index: Option<usize>,
    /// The part of the index to read.
    pub access: Access,
    /// The direction.
    pub direction: Direction,
    /// How rows are locked.
    pub lock: RowLock,
    /// What happens at a locked row.
    pub wait: LockWait,
    /// Columns that the statement reads; `None`: all.
    pub columns: Option<Rc<[usize]>>,
    /// At most this many rows are fetched at a time (a LIMIT that no node above can undo).
    pub fetch_rows_max: usize,
    /// Subqueries and calls that the access's values need.
    pub dependent: Vec<Dependent>,
    /// The expected rows; for EXPLAIN.
    pub rows_estimate: u64,
    /// A start that reads more rows shows that the plan was made for other values of the
    /// parameters; `None` if these do not matter.
    pub rows_read_max: Option<u64>,
    /// The index holds every column that is read; for EXPLAIN.
    pub is_covering: bool,
    /// The indexes that the conditions could use; for EXPLAIN.
    pub possible_indexes: Box<[usize]>,
    /// What the store does in place of the nodes above; `None` where it takes nothing.
    pub pushed: Option<Box<PushedWork>>,
}

/// The part of an index that a scan reads. The expressions read only slots filled before the scan.
/// Their values are converted to the columns' types when the scan starts.
#[derive(Debug)]
pub enum Access {
    /// All of it.
    All,
    /// One row at most: an expression for each part of a unique index.
    Unique(Vec<Expression>),
    /// Keys of one range.
    Range(RangePlan),
    /// Ranges from alternatives, lists and rows: disjoint and in the index's order, so no row comes
    /// twice.
    Keys(Box<KeyPlan>),
}

/// Drops rows.
#[derive(Debug)]
pub struct Filter {
    /// Rows for which this is true are kept.
    pub predicate: Expression,
    /// Subqueries and calls to run for each row before the test.
    pub dependent: Vec<Dependent>,
}

/// A derived table.
#[derive(Debug)]
pub struct Derived {
    /// The slot for the row.
    pub slot: usize,
    /// When the query runs.
    pub run: DerivedRun,
    /// Where the query stands in the statement; for EXPLAIN.
    pub origin: DerivedOrigin,
}

/// When the query of a derived table runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DerivedRun {
    /// Once, as its rows are read.
    Once,
    /// Once. Its rows are kept, as they may be read again.
    Kept,
    /// For each row of the left side of a join, which it reads.
    EachRow,
}

/// Where the query of a derived table stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DerivedOrigin {
    /// In FROM.
    Table,
    /// Behind `IN`: its rows are distinct, and are read first.
    Set,
}

/// Grouping.
#[derive(Debug)]
pub struct Aggregate {
    /// The slot for the groups' rows: first the keys, then the results of the calls.
    pub slot: usize,
    /// The grouping keys; empty: one group, which exists even without rows.
    pub keys: Vec<Expression>,
    /// What is computed for each group.
    pub calls: Vec<AggregateCall>,
    /// Rows come with equal keys side by side, so one group is open at a time.
    pub is_ordered: bool,
    /// `WITH ROLLUP`.
    pub with_rollup: bool,
    /// Slots below the groups that subqueries above them read: the first row of each group is kept,
    /// and becomes current with the group. With any, `is_ordered` is false.
    pub kept_slots: Vec<usize>,
    /// Subqueries and calls to run for each row.
    pub dependent: Vec<Dependent>,
}

/// Sorting.
#[derive(Debug)]
pub struct Sort {
    /// The slot for the sorted rows.
    pub slot: usize,
    /// What is kept of each row; the keys are among them.
    pub kept: Vec<Expression>,
    /// Slots of table rows that are kept too, with the rows' keys: those that an UPDATE or DELETE
    /// will change.
    pub kept_slots: Vec<usize>,
    /// The order: a position in `kept`, and the direction.
    pub keys: Vec<SortKey>,
    /// Only the first rows up to this limit are wanted.
    pub limit: Option<Limit>,
    /// Subqueries and calls to run for each row.
    pub dependent: Vec<Dependent>,
}

/// One key of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SortKey {
    /// Position among the kept expressions.
    pub kept: usize,
    /// `DESC`.
    pub descending: bool,
}

/// Rows computed into a slot.
#[derive(Debug)]
pub struct Computed {
    /// The slot for them.
    pub slot: usize,
    /// What is computed.
    pub kept: Vec<Expression>,
    /// How many of the first `kept` decide whether rows are equal.
    pub key_count: usize,
    /// Subqueries and calls to run for each row.
    pub dependent: Vec<Dependent>,
}

/// `LIMIT` and `OFFSET`; expressions without columns.
#[derive(Debug, Clone)]
pub struct Limit {
    /// How many rows.
    pub count: Option<Expression>,
    /// How many rows to skip first.
    pub offset: Option<Expression>,
    /// `SQL_CALC_FOUND_ROWS`: read to the input's end and count.
    pub counts_all: bool,
}

/// How the rows of several queries are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetOperation {
    /// `UNION`: one after the other.
    Union,
    /// `EXCEPT`: rows of the first of two queries that the second does not return.
    Except {
        /// `ALL`: each row of the second removes one.
        all: bool,
    },
    /// `INTERSECT`: rows of the first of two queries that the second returns too.
    Intersect {
        /// `ALL`: each row of the second admits one.
        all: bool,
    },
}

/// `UNION`, `EXCEPT` and `INTERSECT`.
#[derive(Debug)]
pub struct Union {
    /// Which of them.
    pub operation: SetOperation,
    /// The slot for the rows.
    pub slot: usize,
    /// For each query of `UNION`: whether duplicates of rows up to its end are dropped.
    pub distinct: Vec<bool>,
    /// The types that all queries' values are converted to.
    pub types: Vec<ColumnType>,
}

/// A recursive table.
#[derive(Debug)]
pub struct Recursive {
    /// The name of the table, for messages.
    pub name: String,
    /// The slot for the rows.
    pub slot: usize,
    /// The slot that keeps the rows of the latest step for the next one.
    pub latest_slot: usize,
    /// How many of the queries return the first rows; the others read the latest.
    pub anchor_count: usize,
    /// Duplicates are dropped.
    pub is_distinct: bool,
    /// The columns, by name, to which all queries' values are converted: those of the first rows.
    pub columns: Vec<(String, ColumnType)>,
}

/// Reads the latest rows.
#[derive(Debug)]
pub struct Latest {
    /// The slot for the row.
    pub slot: usize,
    /// The slot that keeps the rows.
    pub latest_slot: usize,
}

/// `INSERT` and `REPLACE`.
#[derive(Debug)]
pub struct Insert {
    /// Position in `Plan::tables`.
    pub table: usize,
    /// The slot of the new row: values can read columns already assigned, and `VALUES(c)` reads it.
    pub new_slot: usize,
    /// The slot of the conflicting row, for `ON DUPLICATE KEY UPDATE`.
    pub old_slot: usize,
    /// The table's columns with values from the source, in the source's order.
    pub columns: Vec<usize>,
    /// The source of the rows.
    pub source: InsertSource,
    /// What happens to a row with a duplicate key.
    pub duplicate: OnDuplicate,
    /// `IGNORE`: conversions that strict mode refuses become warnings.
    pub is_ignore: bool,
    /// `LOAD DATA`: the one row of values consists of parameters, and runs for each row of the
    /// file.
    pub is_load: bool,
    /// The value of each column not among `columns`.
    pub defaults: Vec<Option<Expression>>,
    /// `RETURNING`: what is returned of each written row, which then stands in the new slot.
    pub returning: Vec<Expression>,
}

/// The source of inserted rows.
#[derive(Debug)]
pub enum InsertSource {
    /// `VALUES` and `SET`.
    Values {
        /// The rows.
        rows: ValueRows,
        /// Subqueries and calls to run before a value, by its row and its place there.
        dependent: BTreeMap<(usize, usize), Vec<Dependent>>,
    },
    /// `SELECT`; kept before the first insert if it reads the table.
    Query {
        /// Its rows.
        query: Rc<Query>,
        /// The query reads the table that is written.
        is_kept: bool,
    },
}

/// Rows of `VALUES`.
#[derive(Debug)]
pub enum ValueRows {
    /// Rows of expressions; `None` is `DEFAULT`.
    Expressions(Vec<Vec<Option<Expression>>>),
    /// Many constants, row after row.
    Constants {
        /// The values.
        values: Constants,
        /// Values of a row; at least one.
        width: usize,
    },
}

impl ValueRows {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Expressions(rows) => rows.len(),
            Self::Constants { values, width } => values.len() / width,
        }
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows that are expressions.
    pub fn expressions(&self) -> &[Vec<Option<Expression>>] {
        match self {
            Self::Expressions(rows) => rows,
            Self::Constants { .. } => &[],
        }
    }
}

/// What happens to a row with a duplicate key.
#[derive(Debug)]
pub enum OnDuplicate {
    /// Error 1062.
    Error,
    /// The row is skipped, with a warning.
    Ignore,
    /// `REPLACE`: the conflicting rows are deleted.
    Replace,
    /// `ON DUPLICATE KEY UPDATE`.
    Update(Vec<Assignment>),
}

/// `column = value`.
#[derive(Debug)]
pub struct Assignment {
    /// Index in the table's columns.
    pub column: usize,
    /// The value; `None` is `DEFAULT`.
    pub value: Option<Expression>,
    /// The value reads a column of the row that an earlier assignment has changed.
    pub reads_assigned: bool,
    /// What runs before the value, and reads what was assigned before; of an UPDATE.
    pub dependent: Vec<Dependent>,
}

impl Assignment {
    /// An assignment that reads no earlier one.
    pub(crate) fn new(column: usize, value: Option<Expression>) -> Self {
        Self {
            column,
            value,
            reads_assigned: false,
            dependent: Vec::new(),
        }
    }
}

/// `UPDATE`.
#[derive(Debug)]
pub struct Update {
    /// The rows to change, locked.
    pub input: Node,
    /// What is changed, table by table.
    pub targets: Vec<UpdateTarget>,
    /// How the rows come that it changes.
    pub finding: Finding,
    /// All values are computed before the first write: several tables are changed, or one that is
    /// also read under another name or by a subquery.
    pub is_late: bool,
    /// `ORDER BY`.
    pub is_ordered: bool,
    /// A column of the target that `ORDER BY` reads.
    pub order_column: Option<usize>,
    /// `IGNORE`.
    pub is_ignore: bool,
    /// If rows are found first: the (table, slot) pairs whose rows are looked up again before they
    /// are changed, including the targets.
    pub kept: Vec<(usize, usize)>,
}

/// A table that an `UPDATE` changes.
#[derive(Debug)]
pub struct UpdateTarget {
    /// Position in `Plan::tables`.
    pub table: usize,
    /// The slot of the row.
    pub slot: usize,
    /// In the statement's order; each sees the results of those before it.
    pub assignments: Vec<Assignment>,
    /// `DEFAULT` of each column that has an expression for it.
    pub defaults: Vec<Option<Expression>>,
}

/// `DELETE`.
#[derive(Debug)]
pub struct Delete {
    /// The rows to remove, locked.
    pub input: Node,
    /// The (table, slot) pairs whose rows are removed.
    pub targets: Vec<(usize, usize)>,
    /// How the rows come that it removes.
    pub finding: Finding,
    /// A column of the target that `ORDER BY` reads.
    pub order_column: Option<usize>,
    /// `RETURNING`: what is returned of each removed row.
    pub returning: Vec<Expression>,
}
