//! The plan: what the executor runs, immutable and free of any execution's state.
//!
//! A plan is made once for a canonical statement and the types of its parameters, and run many
//! times. All rows that are in flight while it runs stand in one frame of numbered *slots*
//! ([`SlotShape`]); a node of the tree says into which slot it puts its row, and expressions name
//! columns as (slot, column). So a join moves no bytes: it only moves the current row of its slots.
//!
//! (I1) Each slot is written by exactly one node of the plan (subqueries included: slots are
//! numbered through the whole statement, so that an inner query can read an outer row).
//! (I2) A node reads only slots written below it, by a node to its left under the same join, or
//! by an outer query.
//! (I3) Tables are named by their place in [`Plan::tables`].

use std::rc::Rc;
use std::sync::Arc;

use expression::{
    AggregateCall, Class, Constants, Expression, Lookup, Share, StoredCall, StoredFunction,
};
use store::{Direction, LockWait, RowLock, TableDefinition};
use value::ColumnType;

use crate::keys::KeyPlan;

/// A statement, ready to run.
#[derive(Debug)]
pub struct Plan {
    /// What to do.
    pub action: Action,
    /// Every table that is read or written, at the version that was planned for.
    pub tables: Vec<TableUse>,
    /// What the account needs on each table; that of an explained statement for EXPLAIN.
    pub rights: Vec<TableRight>,
    /// Rows are locked as if to be changed, which a transaction that only reads may not.
    pub reads_for_update: bool,
    /// The rows in flight; an expression's column names one of them.
    pub slots: Vec<SlotShape>,
    /// Queries inside expressions, by the number that the expressions use; none where the number is
    /// that of a call of a stored function.
    pub subqueries: Vec<Option<Rc<Subquery>>>,
    /// The stored functions that are called.
    pub functions: Vec<Rc<StoredFunction>>,
    /// Long lists of `IN` that an execution may make tables of.
    pub list_count: usize,
    /// How many values must be given to an execution.
    pub parameter_count: usize,
    /// What comes out, for the client; empty for statements without a result set.
    pub columns: Rc<[OutputColumn]>,
    /// `INTO @a, b`: the variables that take the only row.
    pub into_variables: Vec<IntoVariable>,
    /// Warnings found while planning (1003 notes of EXPLAIN EXTENDED are not among them).
    pub warnings: Vec<errcode::ClientError>,
    /// What is to be asked of the values of parameters before an execution begins.
    pub text_checks: Vec<TextCheck>,
    /// The user variables that are read, by their names in lower case, with the types that they
    /// had: the plan holds for these.
    pub user_variables: Box<[(Box<str>, ColumnType)]>,
    /// What the plan takes, as whoever has it made counts it; nothing where nobody does.
    pub memory: Share,
}

/// A parameter whose text must be one of a character set: that of the column that it is compared
/// with.
#[derive(Debug, Clone)]
pub struct TextCheck {
    /// Which parameter.
    pub parameter: usize,
    /// The character set of its text.
    pub from: value::Charset,
    /// The character set of the comparison.
    pub to: value::Charset,
    /// Error 1267 and its kin, where it is not.
    pub refusal: Box<errcode::ClientError>,
}

/// A variable that takes a value of the only row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntoVariable {
    /// A user variable, by its name in lower case.
    User(String),
    /// A variable of the routine around the statement, by its slot.
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

    /// True if the statement says `IGNORE`: strict mode is off for what it writes.
    pub fn is_ignore(&self) -> bool {
        match &self.action {
            Action::Insert(insert) => insert.is_ignore,
            Action::Update(update) => update.is_ignore,
            Action::Select(_) | Action::Do(_) | Action::Rows(_) | Action::Delete(_) => false,
        }
    }

    /// The tables whose rows are changed: places in `tables`.
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
    /// `DO`: a query whose rows are thrown away.
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
    /// As it was when planned; an execution over another version is refused with
    /// `DefinitionChanged`.
    pub definition: Arc<TableDefinition>,
    /// What the statement calls it, for EXPLAIN.
    pub alias: String,
    /// Its rows are locked exclusively as they are read.
    pub is_for_update: bool,
}

/// What a statement does to a table, for the check of privileges.
#[derive(Debug, Clone)]
pub struct TableRight {
    /// The table.
    pub definition: Arc<TableDefinition>,
    /// Rows are added.
    pub inserts: bool,
    /// Rows are changed.
    pub updates: bool,
    /// Rows are removed.
    pub deletes: bool,
    /// Its rows are what the statement reads.
    pub selects: bool,
    /// A column that a changing statement reads, in a condition or to compute another.
    pub reads: Option<usize>,
}

/// What a slot holds.
#[derive(Debug, Clone)]
pub enum SlotShape {
    /// Rows of `Plan::tables[_]`, as the store encodes them.
    Table(usize),
    /// Rows computed by a node, with columns of these types.
    Computed(Vec<ColumnType>),
}

/// A column of the result, as the client is told.
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
    /// It comes out of a derived table: its origin is a table's column that it is not itself.
    pub is_derived: bool,
    /// It holds JSON texts, which some clients take apart.
    pub is_json: bool,
}

/// What the client is told about a column's place in the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyFlag {
    /// In none, or not a column.
    #[default]
    None,
    /// Behind the first in a key.
    Part,
    /// Part of the primary key.
    Primary,
    /// Alone a unique key.
    Unique,
    /// First of a key that is not unique, or first of many.
    Multiple,
}

/// Rows out of a tree of nodes.
#[derive(Debug)]
pub struct Query {
    /// Where rows come from.
    pub root: Node,
    /// What of each row comes out.
    pub output: Vec<Expression>,
    /// Subqueries that must be run anew for each row before `output` is computed.
    pub dependent: Vec<Dependent>,
}

/// A query inside an expression.
#[derive(Debug)]
pub struct Subquery {
    /// Its rows.
    pub query: Rc<Query>,
    /// How the expression uses it.
    pub kind: SubqueryKind,
    /// It reads rows of an outer query, so its result holds for one outer row only.
    pub is_correlated: bool,
    /// The slot in which `IN`, `ANY` and `ALL` find the rows.
    pub slot: usize,
    /// What is kept of the rows of a [`SubqueryKind::Set`] that holds for the whole execution;
    /// where there is none, each left side is compared with each row.
    pub lookup: Option<Lookup>,
}

/// How an expression uses a subquery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubqueryKind {
    /// A single row: its value, or NULL where there is none; 1242 where there are two.
    Scalar,
    /// Whether there is a row.
    Exists,
    /// All rows, kept: `IN`, `ANY`, `ALL`.
    Set,
}

/// What must be run before expressions are evaluated: its result then stands in the frame.
#[derive(Debug, Clone)]
pub enum Dependent {
    /// A subquery, by number.
    Subquery(usize),
    /// A call of a stored function.
    Call(Rc<GuardedCall>),
}

impl Dependent {
    /// Its number among the subqueries and calls.
    pub fn number(&self) -> usize {
        match self {
            Self::Subquery(number) => *number,
            Self::Call(guarded) => guarded.call.number,
        }
    }
}

/// A call of a stored function, and when it happens.
#[derive(Debug)]
pub struct GuardedCall {
    /// The call.
    pub call: StoredCall,
    /// Conditions, for calls in one place together.
    pub guards: Rc<[Guard]>,
    /// The innermost around this call.
    pub innermost: Option<usize>,
}

/// A condition around calls (of CASE, AND and the like): they happen where it is true, and those
/// around it are.
#[derive(Debug)]
pub struct Guard {
    /// The condition.
    pub condition: Expression,
    /// The next one around it.
    pub outer: Option<usize>,
}

/// A producer of rows.
#[derive(Debug)]
pub enum Node {
    /// No row: a condition that is false whatever the data.
    Nothing,
    /// One row without columns: a SELECT without tables.
    One,
    /// Rows of a table.
    Scan(Rc<Scan>),
    /// Those rows of `input` for which the predicate is true.
    Filter(Box<Node>, Rc<Filter>),
    /// For each row of the left side, the rows of the right side, which is started anew each time.
    NestedLoop(Box<Node>, Box<Node>, Rc<Join>),
    /// The right side is read once into a table by its keys; then each row of the left looks up.
    HashJoin(Box<Node>, Box<Node>, Rc<HashJoin>),
    /// Rows of a query, computed into a slot as they come: a derived table.
    Derived(Rc<Query>, Rc<Derived>),
    /// Groups.
    Aggregate(Box<Node>, Rc<Aggregate>),
    /// Sorted rows, computed into a slot.
    Sort(Box<Node>, Rc<Sort>),
    /// Rows computed into a slot, each only once.
    Distinct(Box<Node>, Rc<Computed>),
    /// At most so many rows, behind the first so many.
    Limit(Box<Node>, Rc<Limit>),
    /// The rows of several queries, computed into one slot.
    Union(Vec<Rc<Query>>, Rc<Union>),
    /// `WITH RECURSIVE`: rows of the first queries, then what the others make of the latest rows,
    /// until they make none.
    Recursive(Vec<Rc<Query>>, Rc<Recursive>),
    /// The latest rows, within a query of `Recursive`.
    Latest(Rc<Latest>),
}

/// Reads a table.
#[derive(Debug)]
pub struct Scan {
    /// Where the row goes.
    pub slot: usize,
    /// Place in `Plan::tables`.
    pub table: usize,
    /// Place in the definition's indexes; `None`: the store's own order.
    pub index: Option<usize>,
    /// Which part of the index.
    pub access: Access,
    /// Which way.
    pub direction: Direction,
    /// How rows are locked.
    pub lock: RowLock,
    /// What a locked row does to us.
    pub wait: LockWait,
    /// Columns that the statement reads; `None`: all.
    pub columns: Option<Rc<[usize]>>,
    /// At most this many rows are wanted at a time (a LIMIT that nothing above can undo).
    pub fetch_rows_max: usize,
    /// Subqueries that the access's values come from.
    pub dependent: Vec<Dependent>,
    /// Rows that are expected; for EXPLAIN.
    pub rows_estimate: u64,
    /// The index holds every column that is read; for EXPLAIN.
    pub is_covering: bool,
    /// The indexes that the conditions could narrow; for EXPLAIN.
    pub possible_indexes: Box<[usize]>,
}

/// Which part of an index a scan reads. The expressions read only slots that stand before the
/// scan; their values are converted to the columns' types when the scan starts.
#[derive(Debug)]
pub enum Access {
    /// All of it.
    All,
    /// One row at most: an expression for each part of a unique index.
    Unique(Vec<Expression>),
    /// Keys of one range.
    Range(RangePlan),
    /// Keys of ranges that are made of alternatives, lists and rows: disjoint and in the index's
    /// order, so no row comes twice.
    Keys(Box<KeyPlan>),
}

/// One range of an index.
#[derive(Debug, Clone)]
pub struct RangePlan {
    /// The first parts equal these.
    pub equal: Vec<KeyEqual>,
    /// The part behind them is at least (or above) this.
    pub lower: Option<Box<(Expression, Edge)>>,
    /// The part behind them is at most (or below) this.
    pub upper: Option<Box<(Expression, Edge)>>,
}

/// How a key part is bound to one value.
#[derive(Debug, Clone)]
pub struct KeyEqual {
    /// The value.
    pub value: Expression,
    /// `<=>` or `IS NULL`: NULL finds NULL. Otherwise NULL finds nothing.
    pub null_safe: bool,
}

/// Whether the end of a range belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// It does.
    Inclusive,
    /// It does not.
    Exclusive,
    /// Not a value but a LIKE pattern: all strings that begin as it does up to its first wildcard.
    Prefix,
    /// Whatever the value: all but NULL. Only below.
    NotNull,
}

/// Drops rows.
#[derive(Debug)]
pub struct Filter {
    /// Rows for which this is true stay.
    pub predicate: Expression,
    /// Subqueries to run anew for each row before.
    pub dependent: Vec<Dependent>,
}

/// What rows a join keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    /// Pairs.
    Inner,
    /// Pairs, and left rows without one beside NULLs.
    Left,
}

/// A nested-loop join.
#[derive(Debug)]
pub struct Join {
    /// Inner or left.
    pub kind: JoinKind,
    /// The ON condition, as far as the right side's own scan and filter do not hold it.
    pub on: Option<Expression>,
    /// Subqueries to run anew for each pair before `on`.
    pub dependent: Vec<Dependent>,
    /// Slots of the right side, which become rows of NULLs.
    pub right_slots: Vec<usize>,
}

/// A hash join.
#[derive(Debug)]
pub struct HashJoin {
    /// Inner or left.
    pub kind: JoinKind,
    /// The equalities by which rows are looked up.
    pub keys: Vec<HashKey>,
    /// The rest of the ON condition.
    pub residual: Option<Expression>,
    /// Subqueries to run anew for each pair before `residual`.
    pub dependent: Vec<Dependent>,
    /// Slots of the right side: kept while the table is built, NULLs for a left row alone.
    pub right_slots: Vec<usize>,
    /// How long the table holds that is made of the right side.
    pub holds: TableHolds,
}

/// How long the rows of a hash join's right side are those that it would read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableHolds {
    /// Until a row around the join's query changes.
    Query,
    /// To the end of the execution: the right side reads no row from around its query.
    Execution,
}

/// An equality between the sides of a hash join.
#[derive(Debug)]
pub struct HashKey {
    /// What a row of the left side has.
    pub left: Expression,
    /// What a row of the right side has.
    pub right: Expression,
    /// The class that both are brought into before they are compared.
    pub class: Class,
    /// `<=>`: NULL finds NULL. Otherwise NULL finds nothing.
    pub null_safe: bool,
}

/// A derived table.
#[derive(Debug)]
pub struct Derived {
    /// Where the row goes.
    pub slot: usize,
    /// It may be read more than once: keep the rows.
    pub is_kept: bool,
}

/// Grouping.
#[derive(Debug)]
pub struct Aggregate {
    /// Where the groups' rows go: first the keys, then the results of the calls.
    pub slot: usize,
    /// What makes a group; empty: one group, there even without rows.
    pub keys: Vec<Expression>,
    /// What is computed of each group.
    pub calls: Vec<AggregateCall>,
    /// Rows come with equal keys side by side, so one group is open at a time.
    pub is_ordered: bool,
    /// `WITH ROLLUP`.
    pub with_rollup: bool,
    /// Subqueries to run anew for each row.
    pub dependent: Vec<Dependent>,
}

/// Sorting.
#[derive(Debug)]
pub struct Sort {
    /// Where the sorted rows go.
    pub slot: usize,
    /// What is kept of each row; the keys are among them.
    pub kept: Vec<Expression>,
    /// Slots of table rows that are kept too, with the rows' keys: those that an UPDATE or DELETE
    /// goes on to change.
    pub kept_slots: Vec<usize>,
    /// The order: a place in `kept`, and the direction.
    pub keys: Vec<SortKey>,
    /// Only the first so many rows are wanted.
    pub limit: Option<Limit>,
    /// Subqueries to run anew for each row.
    pub dependent: Vec<Dependent>,
}

/// One key of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SortKey {
    /// Place among the kept expressions.
    pub kept: usize,
    /// `DESC`.
    pub descending: bool,
}

/// Rows computed into a slot.
#[derive(Debug)]
pub struct Computed {
    /// Where they go.
    pub slot: usize,
    /// What is computed.
    pub kept: Vec<Expression>,
    /// Only the first so many of `kept` make rows equal.
    pub key_count: usize,
    /// Subqueries to run anew for each row.
    pub dependent: Vec<Dependent>,
}

/// `LIMIT` and `OFFSET`; expressions without columns.
#[derive(Debug, Clone)]
pub struct Limit {
    /// How many rows.
    pub count: Option<Expression>,
    /// How many to leave out before.
    pub offset: Option<Expression>,
    /// `SQL_CALC_FOUND_ROWS`: go on to the input's end and count.
    pub counts_all: bool,
}

/// What becomes of the rows of several queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetOperation {
    /// `UNION`: one after the other.
    Union,
    /// `EXCEPT`: those of the first of two queries that the second does not give.
    Except {
        /// `ALL`: each row of the second takes one away.
        all: bool,
    },
    /// `INTERSECT`: those of the first of two queries that the second gives too.
    Intersect {
        /// `ALL`: each row of the second lets one through.
        all: bool,
    },
}

/// `UNION`, `EXCEPT` and `INTERSECT`.
#[derive(Debug)]
pub struct Union {
    /// Which.
    pub operation: SetOperation,
    /// Where the rows go.
    pub slot: usize,
    /// Of `UNION`, for each query whether rows that were seen before it or in it are left out.
    pub distinct: Vec<bool>,
    /// The types that all queries' values are converted to.
    pub types: Vec<ColumnType>,
}

/// Rows made of rows.
#[derive(Debug)]
pub struct Recursive {
    /// The name of the table, for messages.
    pub name: String,
    /// Where the rows go.
    pub slot: usize,
    /// Where the rows of the latest step are kept for the next one.
    pub latest_slot: usize,
    /// So many of the queries make the first rows; the others read the latest.
    pub anchor_count: usize,
    /// Rows that were there before are left out.
    pub is_distinct: bool,
    /// The columns, by name, to which all queries' values are converted: those of the first rows.
    pub columns: Vec<(String, ColumnType)>,
}

/// Reads the latest rows.
#[derive(Debug)]
pub struct Latest {
    /// Where the row goes.
    pub slot: usize,
    /// Where the rows are kept.
    pub latest_slot: usize,
}

/// `INSERT` and `REPLACE`.
#[derive(Debug)]
pub struct Insert {
    /// Place in `Plan::tables`.
    pub table: usize,
    /// The slot of the row being made: columns already assigned can be read there, and
    /// `VALUES(c)` reads it.
    pub new_slot: usize,
    /// The slot of the row that is in the way, for `ON DUPLICATE KEY UPDATE`.
    pub old_slot: usize,
    /// The table's columns that the source gives, in the source's order.
    pub columns: Vec<usize>,
    /// Where rows come from.
    pub source: InsertSource,
    /// What happens to a row whose key is taken.
    pub duplicate: OnDuplicate,
    /// `IGNORE`: conversions that strict mode refuses become warnings.
    pub is_ignore: bool,
    /// `LOAD DATA`: the one row of values is of parameters, and runs once for each row of the file.
    pub is_load: bool,
    /// What each column not among `columns` gets.
    pub defaults: Vec<Option<Expression>>,
    /// `RETURNING`: what comes out of each written row, which then stands in the new slot.
    pub returning: Vec<Expression>,
}

/// Where inserted rows come from.
#[derive(Debug)]
pub enum InsertSource {
    /// `VALUES` and `SET`.
    Values {
        /// The rows.
        rows: ValueRows,
        /// Subqueries and calls to run before each of the rows; empty if there are none at all.
        dependent: Vec<Vec<Dependent>>,
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

    /// True if there is none.
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

/// What happens to a row whose key is taken.
#[derive(Debug)]
pub enum OnDuplicate {
    /// Error 1062.
    Error,
    /// The row is left out, with a warning.
    Ignore,
    /// `REPLACE`: the rows in the way are deleted.
    Replace,
    /// `ON DUPLICATE KEY UPDATE`.
    Update(Vec<Assignment>),
}

/// `column = value`.
#[derive(Debug)]
pub struct Assignment {
    /// Position in the table's columns.
    pub column: usize,
    /// The value; `None` is `DEFAULT`.
    pub value: Option<Expression>,
    /// The value reads a column of the row that an assignment before this one has changed.
    pub reads_assigned: bool,
}

impl Assignment {
    /// An assignment that reads none before it.
    pub(crate) fn new(column: usize, value: Option<Expression>) -> Self {
        Self {
            column,
            value,
            reads_assigned: false,
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
    /// Rows are found first and changed then: an assignment changes what the scan goes by, or
    /// there is more than one table.
    pub is_kept: bool,
    /// Nothing is written before all is computed: several tables are changed, or one that is also
    /// read under another name or by a subquery.
    pub is_late: bool,
    /// `ORDER BY`.
    pub is_ordered: bool,
    /// A column of the target that `ORDER BY` reads.
    pub order_column: Option<usize>,
    /// `IGNORE`.
    pub is_ignore: bool,
    /// Where rows are found first: the (table, slot) pairs whose rows are looked up again before
    /// they are changed, the targets among them.
    pub kept: Vec<(usize, usize)>,
    /// Subqueries to run anew for each row.
    pub dependent: Vec<Dependent>,
}

/// A table that an `UPDATE` changes.
#[derive(Debug)]
pub struct UpdateTarget {
    /// Place in `Plan::tables`.
    pub table: usize,
    /// The slot that has the row.
    pub slot: usize,
    /// In the statement's order; each sees the ones before it.
    pub assignments: Vec<Assignment>,
    /// `DEFAULT` of each column, where it is an expression.
    pub defaults: Vec<Option<Expression>>,
}

/// `DELETE`.
#[derive(Debug)]
pub struct Delete {
    /// The rows to remove, locked.
    pub input: Node,
    /// The (table, slot) pairs whose rows are removed.
    pub targets: Vec<(usize, usize)>,
    /// Rows are found first and removed then: there is more than one table, or a subquery.
    pub is_kept: bool,
    /// A column of the target that `ORDER BY` reads.
    pub order_column: Option<usize>,
    /// `RETURNING`: what comes out of each removed row.
    pub returning: Vec<Expression>,
}
