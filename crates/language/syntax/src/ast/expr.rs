//! Expressions.

pub use builtin::{AggregateFunction, IntervalUnit};
pub use settings::VariableScope;

use std::fmt;

use super::{ExprList, Ident, Limit, ObjectName, OrderItem, Query};
use crate::token::Span;

/// An expression. Parentheses show only in the shape of the tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Its text; an enclosing pair of parentheses is not part of it.
    pub span: Span,
}

/// What an expression is.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    /// A constant.
    Literal(Literal),
    /// `?`, or a literal that was replaced by one; its number from 0.
    Parameter(u32),
    /// `a`, `t.a`, `db.t.a`.
    Column(ColumnName),
    /// `@a`.
    UserVariable(String),
    /// `@a := e`.
    Assign {
        /// The variable's name.
        variable: String,
        /// Its new value, which is also the value of the expression.
        value: Box<Expr>,
    },
    /// `@@a`, `@@global.a`.
    SystemVariable(SystemVariable),
    /// `-e`, `NOT e`, ...
    Unary {
        /// The operator.
        operator: UnaryOperator,
        /// The operand.
        operand: Box<Expr>,
    },
    /// `a + b`, `a AND b`, `a = b`, ...
    Binary {
        /// The operator.
        operator: BinaryOperator,
        /// The left side.
        left: Box<Expr>,
        /// The right side.
        right: Box<Expr>,
    },
    /// `a AND b AND ..`, `a OR b OR ..`: a long chain ([`ExprKind::Binary`] otherwise).
    Chain {
        /// [`BinaryOperator::And`] or [`BinaryOperator::Or`].
        operator: BinaryOperator,
        /// At least two.
        operands: Vec<Expr>,
    },
    /// `a [NOT] LIKE b [ESCAPE c]`.
    Like {
        /// `NOT`.
        negated: bool,
        /// The matched value.
        value: Box<Expr>,
        /// The pattern.
        pattern: Box<Expr>,
        /// The escape character; a backslash when absent.
        escape: Option<Box<Expr>>,
    },
    /// `a [NOT] BETWEEN b AND c`.
    Between {
        /// `NOT`.
        negated: bool,
        /// The compared value.
        value: Box<Expr>,
        /// The lower bound.
        low: Box<Expr>,
        /// The upper bound.
        high: Box<Expr>,
    },
    /// `a [NOT] IN (b, ..)`.
    InList {
        /// `NOT`.
        negated: bool,
        /// The value that is searched.
        value: Box<Expr>,
        /// The list; at least one member.
        list: ExprList,
    },
    /// `a [NOT] IN (SELECT ..)`.
    InQuery {
        /// `NOT`.
        negated: bool,
        /// The value that is searched.
        value: Box<Expr>,
        /// The query that returns the list.
        query: Box<Query>,
    },
    /// `a IS [NOT] NULL`.
    IsNull {
        /// `NOT`.
        negated: bool,
        /// The tested value.
        value: Box<Expr>,
    },
    /// `a IS [NOT] TRUE`, `FALSE`, `UNKNOWN`.
    IsTruth {
        /// `NOT`.
        negated: bool,
        /// The tested value.
        value: Box<Expr>,
        /// True, false, or `None` for unknown.
        truth: Option<bool>,
    },
    /// `a > ALL (SELECT ..)`, `a = ANY (SELECT ..)`.
    Quantified {
        /// The comparison.
        operator: BinaryOperator,
        /// Whether it must hold for all rows, or for any.
        for_all: bool,
        /// The left side.
        value: Box<Expr>,
        /// The rows.
        query: Box<Query>,
    },
    /// `EXISTS (SELECT ..)`.
    Exists(Box<Query>),
    /// `(SELECT ..)` as a value or a row.
    Subquery(Box<Query>),
    /// `(a, b)` or `ROW(a, b)`; at least two.
    Row(Vec<Expr>),
    /// `CASE ..`.
    Case {
        /// The value that the branches are compared with; when absent, they are conditions.
        operand: Option<Box<Expr>>,
        /// `WHEN .. THEN ..`; at least one.
        branches: Vec<(Expr, Expr)>,
        /// `ELSE ..`.
        otherwise: Option<Box<Expr>>,
    },
    /// `CAST(e AS t)`, `CONVERT(e, t)`; `BINARY e` is a cast to `BINARY`.
    Cast {
        /// The value.
        value: Box<Expr>,
        /// The target type.
        to: CastType,
    },
    /// `CONVERT(e USING charset)`; `None` is `USING DEFAULT`.
    ConvertUsing {
        /// The value.
        value: Box<Expr>,
        /// The character set.
        charset: Option<Ident>,
    },
    /// `e COLLATE c`.
    Collate {
        /// The compared value.
        value: Box<Expr>,
        /// The collation.
        collation: Ident,
    },
    /// A call of a function that is not an aggregate. Special syntax becomes plain arguments:
    /// `SUBSTRING(a FROM 2 FOR 3)` is `SUBSTRING(a, 2, 3)`, `POSITION(a IN b)` is `LOCATE(a, b)`,
    /// `CURRENT_DATE` is `CURRENT_DATE()`, `a SOUNDS LIKE b` is `SOUNDEX(a) = SOUNDEX(b)`.
    Function(Box<Function>),
    /// `COUNT(*)`, `SUM(DISTINCT a)`, `GROUP_CONCAT(..)`, ...
    Aggregate(Box<Aggregate>),
    /// `e + INTERVAL n unit` and `e - INTERVAL n unit`, `DATE_ADD` and `DATE_SUB` too.
    DateAdd {
        /// Whether the interval is subtracted.
        subtract: bool,
        /// The base time.
        value: Box<Expr>,
        /// The number of units.
        interval: Box<Expr>,
        /// The unit.
        unit: IntervalUnit,
    },
    /// `EXTRACT(unit FROM e)`.
    Extract {
        /// The part.
        unit: IntervalUnit,
        /// The value.
        value: Box<Expr>,
    },
    /// `TIMESTAMPADD(unit, n, e)`.
    TimestampAdd {
        /// The unit.
        unit: IntervalUnit,
        /// The number of units.
        interval: Box<Expr>,
        /// The base time.
        value: Box<Expr>,
    },
    /// `TIMESTAMPDIFF(unit, a, b)`: b - a.
    TimestampDiff {
        /// The unit.
        unit: IntervalUnit,
        /// The earlier time.
        from: Box<Expr>,
        /// The later time.
        to: Box<Expr>,
    },
    /// `TRIM([LEADING | TRAILING | BOTH] [what] FROM e)`, `TRIM(e)`.
    Trim {
        /// The side.
        side: TrimSide,
        /// The text to remove; blanks when absent.
        removed: Option<Box<Expr>>,
        /// The text to trim.
        value: Box<Expr>,
    },
    /// `CHAR(a, b USING charset)`.
    Char {
        /// The codes.
        codes: Vec<Expr>,
        /// The character set; binary when absent.
        charset: Option<Ident>,
    },
    /// `WEIGHT_STRING(e [AS CHAR(n) | AS BINARY(n)])`.
    WeightString {
        /// The string.
        value: Box<Expr>,
        /// Characters (true: bytes) to which it is truncated or padded.
        length: Option<(bool, u32)>,
    },
    /// `MATCH (a, b) AGAINST (e mode)`.
    Match {
        /// The columns.
        columns: Vec<ColumnName>,
        /// The searched text.
        against: Box<Expr>,
        /// The mode.
        mode: MatchMode,
    },
    /// `DEFAULT(a)`; the bare word `DEFAULT` as a value is `None`.
    Default(Option<ColumnName>),
    /// `VALUES(a)` or `VALUE(a)` in `ON DUPLICATE KEY UPDATE`.
    InsertedValue(ColumnName),
    /// `NEXT VALUE FOR s`, `NEXTVAL(s)`.
    NextValue(ObjectName),
    /// `PREVIOUS VALUE FOR s`, `LASTVAL(s)`.
    PreviousValue(ObjectName),
    /// `GET_FORMAT(DATE, e)`. (The function `INTERVAL(a, b, ..)` is a [`Function`].)
    GetFormat {
        /// `DATE`, `TIME` or `DATETIME` in capitals.
        of: String,
        /// The name of the format.
        value: Box<Expr>,
    },
}

/// A column by name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ColumnName {
    /// Its database, if written.
    pub schema: Option<Ident>,
    /// Its table or alias, if written.
    pub table: Option<Ident>,
    /// The column.
    pub column: Ident,
}

/// As messages name it: the words without quotes.
impl fmt::Display for ColumnName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in [&self.schema, &self.table].into_iter().flatten() {
            write!(f, "{}.", part.text)?;
        }
        f.write_str(&self.column.text)
    }
}

/// A constant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Literal {
    /// `NULL` or `\N`.
    Null,
    /// `TRUE` and `FALSE`.
    Bool(bool),
    /// Digits that fit; more digits make a [`Literal::Decimal`].
    Integer(u64),
    /// Digits with a point, as written.
    Decimal(String),
    /// A number with an exponent, as written.
    Float(String),
    /// A string with resolved escapes; adjacent strings are joined.
    String {
        /// The bytes, in the connection's character set or the introducer's.
        value: Vec<u8>,
        /// The character set of `_charset'..'` and of `N'..'` (`utf8`), without the underscore.
        charset: Option<String>,
    },
    /// `x'4D'` and `0x4D`.
    Hex {
        /// The bytes; an odd digit count has a zero digit before it.
        value: Vec<u8>,
        /// `0x4D`: a number where a number is needed; `x'4D'` is always a string.
        is_number: bool,
        /// The introducer's character set.
        charset: Option<String>,
    },
    /// `b'01'` and `0b01`: bytes, padded with zero bits on the left.
    Bit {
        /// The bytes.
        value: Vec<u8>,
        /// The introducer's character set.
        charset: Option<String>,
    },
    /// `DATE '..'`, `TIME '..'`, `TIMESTAMP '..'`, `{d '..'}`; the text is not yet checked.
    Temporal {
        /// The kind.
        kind: TemporalKind,
        /// The text between the quotes.
        text: String,
    },
}

/// The kinds of temporal literals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TemporalKind {
    /// `DATE '..'`.
    Date,
    /// `TIME '..'`.
    Time,
    /// `TIMESTAMP '..'`: a DATETIME.
    Timestamp,
}

/// `@@scope.name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemVariable {
    /// The scope, if written.
    pub scope: Option<VariableScope>,
    /// `hot` of `@@hot.key_buffer_size`.
    pub instance: Option<Ident>,
    /// The variable.
    pub name: Ident,
}

/// Operators with one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnaryOperator {
    /// `-`.
    Negate,
    /// `+`, which does nothing.
    Plus,
    /// `NOT` and `!`.
    Not,
    /// `~`.
    BitNot,
}

/// Operators with two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinaryOperator {
    /// `OR`, and `||` without `PIPES_AS_CONCAT`.
    Or,
    /// `XOR`.
    Xor,
    /// `AND`, `&&`.
    And,
    /// `=`.
    Equal,
    /// `<=>`.
    NullSafeEqual,
    /// `<>`, `!=`.
    NotEqual,
    /// `<`.
    Less,
    /// `<=`.
    LessEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterEqual,
    /// `REGEXP`, `RLIKE`; `NOT` is a [`UnaryOperator::Not`] around it.
    Regexp,
    /// `|`.
    BitOr,
    /// `&`.
    BitAnd,
    /// `<<`.
    ShiftLeft,
    /// `>>`.
    ShiftRight,
    /// `||` with `PIPES_AS_CONCAT`.
    Concat,
    /// `+`.
    Add,
    /// `-`.
    Subtract,
    /// `*`.
    Multiply,
    /// `/`.
    Divide,
    /// `DIV`.
    IntegerDivide,
    /// `%`, `MOD`, `MOD(a, b)`.
    Modulo,
    /// `^`.
    BitXor,
}

/// The target of a cast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CastType {
    /// `BINARY[(n)]`.
    Binary(Option<u32>),
    /// `CHAR[(n)] [CHARACTER SET c]`; `NCHAR` has the set `utf8`.
    Char {
        /// Characters.
        length: Option<u32>,
        /// The character set; the connection's when absent.
        charset: Option<Ident>,
        /// The collation of `CHAR(n) .. COLLATE c`.
        collation: Option<Ident>,
    },
    /// `DATE`.
    Date,
    /// `TIME[(n)]`.
    Time(Option<u32>),
    /// `DATETIME[(n)]`.
    Datetime(Option<u32>),
    /// `SIGNED [INTEGER]`, `INTEGER`.
    Signed,
    /// `UNSIGNED [INTEGER]`.
    Unsigned,
    /// `DECIMAL[(m[,d])]`: precision and scale.
    Decimal(Option<(u32, u32)>),
    /// `FLOAT`.
    Float,
    /// `DOUBLE[(m,d)]`.
    Double(Option<(u32, u32)>),
    /// `INET6`, `UUID` and other plug-in types.
    Other(Ident),
}

/// A call.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// The database of a stored function, if written.
    pub schema: Option<Ident>,
    /// The function, as written.
    pub name: Ident,
    /// Its arguments.
    pub arguments: Vec<Expr>,
    /// `COUNT (1)`: a blank before the parenthesis of a name that is built in only without one.
    /// MariaDB then looks for a stored function (error 1630 if there is none).
    pub is_detached: bool,
    /// The window of `f() OVER ..`.
    pub over: Option<Over>,
}

/// An aggregate.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    /// The function.
    pub function: AggregateFunction,
    /// `DISTINCT`.
    pub distinct: bool,
    /// Its arguments; empty for `COUNT(*)`.
    pub arguments: Vec<Expr>,
    /// `ORDER BY` of `GROUP_CONCAT` and `JSON_ARRAYAGG`, `WITHIN GROUP` of percentiles.
    pub order_by: Vec<OrderItem>,
    /// `SEPARATOR`; a comma when absent.
    pub separator: Option<Vec<u8>>,
    /// `LIMIT` of `GROUP_CONCAT` and `JSON_ARRAYAGG`.
    pub limit: Option<Limit>,
    /// The window.
    pub over: Option<Over>,
}

/// `OVER ..`.
#[derive(Debug, Clone, PartialEq)]
pub enum Over {
    /// `OVER w`.
    Named(Ident),
    /// `OVER (..)`.
    Window(Window),
}

/// A window.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Window {
    /// The window that it extends.
    pub base: Option<Ident>,
    /// `PARTITION BY`.
    pub partition_by: Vec<Expr>,
    /// `ORDER BY`.
    pub order_by: Vec<OrderItem>,
    /// `ROWS ..` or `RANGE ..`.
    pub frame: Option<Frame>,
}

/// The frame of a window.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// `ROWS` (else `RANGE`).
    pub is_rows: bool,
    /// The first row.
    pub start: FrameBound,
    /// The last row; the current one when absent.
    pub end: Option<FrameBound>,
    /// `EXCLUDE ..`, in capitals.
    pub exclude: Option<String>,
}

/// An end of a frame.
#[derive(Debug, Clone, PartialEq)]
pub enum FrameBound {
    /// `CURRENT ROW`.
    CurrentRow,
    /// `UNBOUNDED PRECEDING` if `None`, else `n PRECEDING`.
    Preceding(Option<Box<Expr>>),
    /// `UNBOUNDED FOLLOWING` if `None`, else `n FOLLOWING`.
    Following(Option<Box<Expr>>),
}

/// The side that `TRIM` trims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TrimSide {
    /// Both ends.
    Both,
    /// The start.
    Leading,
    /// The end.
    Trailing,
}

/// The mode of `MATCH`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatchMode {
    /// `IN NATURAL LANGUAGE MODE`, the default.
    Natural,
    /// `.. WITH QUERY EXPANSION`.
    NaturalExpanded,
    /// `IN BOOLEAN MODE`.
    Boolean,
}
