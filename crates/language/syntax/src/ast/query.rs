//! Queries: everything that returns rows.

use super::{
    ColumnName, Expr, ExprKind, Ident, Literal, ObjectName, Refused, UnaryOperator, Window,
};
use crate::token::Span;

/// A query with the clauses around its body.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// `WITH ..`.
    pub with: Option<With>,
    /// `SELECT`, `VALUES`, or a set operation of such.
    pub body: QueryBody,
    /// `ORDER BY` of the whole.
    pub order_by: Vec<OrderItem>,
    /// `LIMIT` of the whole.
    pub limit: Option<Limit>,
    /// `INTO ..`, before `FROM` or at the end.
    pub into: Option<SelectInto>,
    /// `FOR UPDATE` and `LOCK IN SHARE MODE`.
    pub lock: Option<RowLock>,
    /// Its text without enclosing parentheses.
    pub span: Span,
}

/// `WITH [RECURSIVE] ..`.
#[derive(Debug, Clone, PartialEq)]
pub struct With {
    /// `RECURSIVE`.
    pub recursive: bool,
    /// The named queries, each visible to the later ones.
    pub tables: Vec<CommonTable>,
}

/// A named query of `WITH`.
#[derive(Debug, Clone, PartialEq)]
pub struct CommonTable {
    /// Its name.
    pub name: Ident,
    /// The names of its columns, if written.
    pub columns: Vec<Ident>,
    /// Its query.
    pub query: Query,
    /// `CYCLE a, b RESTRICT`.
    pub cycle: Vec<Ident>,
}

/// The body of a query.
#[derive(Debug, Clone, PartialEq)]
pub enum QueryBody {
    /// `SELECT ..`.
    Select(Box<Select>),
    /// `VALUES (..), ..`.
    Values(Vec<Vec<Expr>>),
    /// `(..)`: a query with its own order and limit as an operand.
    Nested(Box<Query>),
    /// `a UNION b UNION c` and so on, from left to right; `INTERSECT` binds tighter than the
    /// others. A chain of one operator is one body, so that a long one is not deep.
    Set {
        /// The operator.
        operator: SetOperator,
        /// The first operand; not of the same operator.
        first: Box<QueryBody>,
        /// The others; at least one.
        rest: Vec<SetMember>,
    },
}

/// An operand of a set operation but the first.
#[derive(Debug, Clone, PartialEq)]
pub struct SetMember {
    /// `ALL`: duplicates are kept.
    pub all: bool,
    /// The operand.
    pub body: QueryBody,
}

/// Set operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SetOperator {
    /// `UNION`.
    Union,
    /// `EXCEPT`.
    Except,
    /// `INTERSECT`.
    Intersect,
}

/// `SELECT ..` up to `HAVING`.
#[derive(Debug, Clone, PartialEq)]
pub struct Select {
    /// `DISTINCT`, `SQL_CALC_FOUND_ROWS`, ...
    pub options: SelectOptions,
    /// What is selected; at least one.
    pub items: Vec<SelectItem>,
    /// The tables, separated by commas; empty without `FROM` and for `FROM DUAL`.
    pub from: Vec<TableRef>,
    /// `WHERE`.
    pub condition: Option<Expr>,
    /// `GROUP BY`; MariaDB accepts directions there.
    pub group_by: Vec<OrderItem>,
    /// `WITH ROLLUP`.
    pub with_rollup: bool,
    /// `HAVING`.
    pub having: Option<Expr>,
    /// `WINDOW w AS (..), ..`.
    pub windows: Vec<(Ident, Window)>,
    /// `PROCEDURE ANALYSE(..)`.
    pub procedure: Option<Refused>,
    /// Its text.
    pub span: Span,
}

/// The words after `SELECT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SelectOptions {
    /// `DISTINCT`, `DISTINCTROW`.
    pub distinct: bool,
    /// `SQL_CALC_FOUND_ROWS`.
    pub calc_found_rows: bool,
    /// `STRAIGHT_JOIN`: join in the order of the text.
    pub straight_join: bool,
    /// `HIGH_PRIORITY`.
    pub high_priority: bool,
    /// `SQL_SMALL_RESULT`.
    pub small_result: bool,
    /// `SQL_BIG_RESULT`.
    pub big_result: bool,
    /// `SQL_BUFFER_RESULT`.
    pub buffer_result: bool,
    /// `SQL_CACHE` (true), `SQL_NO_CACHE` (false).
    pub query_cache: Option<bool>,
}

/// One select item.
#[derive(Debug, Clone, PartialEq)]
pub enum SelectItem {
    /// `*`, `t.*`, `db.t.*`.
    Wildcard {
        /// The database.
        schema: Option<Ident>,
        /// The table; all tables when absent.
        table: Option<Ident>,
        /// Its text.
        span: Span,
    },
    /// `e [AS alias]`.
    Expr {
        /// The expression.
        expr: Expr,
        /// Its name; when absent it is the column's name, the value of a plain string literal, or
        /// the text of `span` (see [`SelectItem::name`]).
        alias: Option<Ident>,
        /// The text of the expression, with parentheses, without the alias.
        span: Span,
    },
}

impl SelectItem {
    /// The name of the result column, from the statement's text, as in MariaDB. `None` for a
    /// wildcard.
    #[must_use]
    pub fn name(&self, source: &[u8]) -> Option<String> {
        let SelectItem::Expr { expr, alias, span } = self else {
            return None;
        };
        if let Some(alias) = alias {
            return Some(alias.text.clone());
        }
        let text = own_name(expr, source).unwrap_or_else(|| span.of(source));
        Some(String::from_utf8_lossy(text).into_owned())
    }
}

fn is_name_const(function: &Ident) -> bool {
    builtin::find(function.text.as_bytes())
        .is_some_and(|found| found.builtin.meaning == builtin::Meaning::NameConst)
}

/// The name that a column or literal has by itself, whatever surrounds it.
fn own_name<'a>(expr: &'a Expr, source: &'a [u8]) -> Option<&'a [u8]> {
    Some(match &expr.kind {
        ExprKind::Column(ColumnName { column, .. }) => column.text.as_bytes(),
        ExprKind::Literal(Literal::String { value, .. }) => value.trim_ascii_start(),
        ExprKind::Literal(Literal::Null) => b"NULL",
        ExprKind::Literal(Literal::Bool(true)) => b"TRUE",
        ExprKind::Literal(Literal::Bool(false)) => b"FALSE",
        ExprKind::Literal(_) => expr.span.of(source),
        ExprKind::Function(call) => match call.arguments.as_slice() {
            [name, _] if is_name_const(&call.name) => {
                return own_name(name, source);
            }
            _ => return None,
        },
        // A unary plus changes nothing, not even the name.
        ExprKind::Unary {
            operator: UnaryOperator::Plus,
            operand,
        } => {
            return own_name(operand, source);
        }
        _ => return None,
    })
}

/// A table, or something used as one.
#[derive(Debug, Clone, PartialEq)]
pub enum TableRef {
    /// A table or view by name.
    Table(Box<NamedTable>),
    /// `(SELECT ..) AS a`.
    Derived {
        /// `LATERAL`, which MariaDB 10.11 lacks and the parser refuses.
        lateral: bool,
        /// The rows.
        query: Box<Query>,
        /// Its name.
        alias: Ident,
        /// The names of its columns, if written.
        columns: Vec<Ident>,
    },
    /// `a JOIN b`.
    Join {
        /// The kind of join.
        kind: JoinKind,
        /// `NATURAL`.
        natural: bool,
        /// The left side.
        left: Box<TableRef>,
        /// The right side.
        right: Box<TableRef>,
        /// `ON ..`.
        on: Option<Expr>,
        /// `USING (..)`.
        using: Vec<Ident>,
    },
    /// `(a, b)`: a list in parentheses, joined without a condition; at least two.
    List(Vec<TableRef>),
    /// `JSON_TABLE(..) AS a`, skipped.
    JsonTable {
        /// The call.
        call: Refused,
        /// Its name.
        alias: Ident,
    },
}

/// A table by name.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedTable {
    /// The table.
    pub name: ObjectName,
    /// Its name in the statement.
    pub alias: Option<Ident>,
    /// `PARTITION (..)`.
    pub partitions: Vec<Ident>,
    /// `FOR SYSTEM_TIME ..`.
    pub system_time: Option<Refused>,
    /// `USE INDEX (..)` and so on.
    pub hints: Vec<IndexHint>,
}

/// Kinds of joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JoinKind {
    /// `JOIN`, `INNER JOIN`.
    Inner,
    /// `CROSS JOIN`: in MariaDB the same as inner.
    Cross,
    /// `LEFT [OUTER] JOIN`.
    Left,
    /// `RIGHT [OUTER] JOIN`.
    Right,
    /// `STRAIGHT_JOIN`: inner, the left side read first.
    Straight,
}

/// `USE INDEX FOR JOIN (a, b)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexHint {
    /// What to do with the indexes.
    pub kind: IndexHintKind,
    /// The purpose; all when absent.
    pub scope: Option<IndexHintScope>,
    /// Their names; `PRIMARY` is the primary key.
    pub indexes: Vec<Ident>,
}

/// The kind of an index hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IndexHintKind {
    /// `USE`.
    Use,
    /// `FORCE`.
    Force,
    /// `IGNORE`.
    Ignore,
}

/// The purpose of an index hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IndexHintScope {
    /// `FOR JOIN`.
    Join,
    /// `FOR ORDER BY`.
    OrderBy,
    /// `FOR GROUP BY`.
    GroupBy,
}

/// `e [ASC | DESC]`.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderItem {
    /// The key; an integer literal is the number of a select item, from 1.
    pub expr: Expr,
    /// `DESC`.
    pub descending: bool,
}

/// `LIMIT ..`, `OFFSET .. FETCH ..`.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// How many rows; a literal, a parameter or a routine's variable. All when absent.
    pub count: Option<Expr>,
    /// How many rows to skip first.
    pub offset: Option<Expr>,
    /// `WITH TIES`.
    pub with_ties: bool,
    /// `ROWS EXAMINED n`.
    pub rows_examined: Option<Expr>,
}

/// `FOR UPDATE`, `LOCK IN SHARE MODE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowLock {
    /// `FOR UPDATE` (else shared).
    pub exclusive: bool,
    /// What to do with rows that another transaction has locked.
    pub wait: LockWait,
}

/// What to do at a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockWait {
    /// As the session's setting says.
    Default,
    /// `NOWAIT`.
    No,
    /// `WAIT n`, in seconds.
    Seconds(u64),
    /// `SKIP LOCKED`.
    Skip,
}

/// `INTO ..`.
#[derive(Debug, Clone, PartialEq)]
pub enum SelectInto {
    /// `INTO @a, b`.
    Variables(Vec<IntoTarget>),
    /// `INTO OUTFILE '..' ..`.
    Outfile {
        /// The file.
        path: Vec<u8>,
        /// `CHARACTER SET ..`.
        charset: Option<Ident>,
        /// The separators of fields and lines.
        format: super::FileFormat,
    },
    /// `INTO DUMPFILE '..'`.
    Dumpfile(Vec<u8>),
}

/// A variable to which a value is assigned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntoTarget {
    /// `@a`.
    User(String),
    /// A name that is no visible variable.
    Local(Ident),
    /// A routine's variable, by its slot.
    Slot(u32),
}
