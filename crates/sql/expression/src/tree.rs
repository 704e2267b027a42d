//! [`Expression`]: an expression with resolved names and types.
//!
//! The planner creates it, the executor evaluates it. Columns are places in the frame, and
//! operators know the class in which they work. So evaluation looks nothing up.

use builtin::SessionFunction;
use settings::VariableScope;
use value::{CollationId, ColumnType, TypeKind, Value};

mod call;
mod list;
mod stored;

pub use call::Call;
pub use list::ListMembers;
pub use stored::{StoredCall, StoredFunction};

/// An expression and the type of its values.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    /// What it is.
    pub kind: ExpressionKind,
    /// The type of its values.
    pub column_type: ColumnType,
    /// It can be NULL.
    pub nullable: bool,
}

/// A column of a slot of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ColumnPlace {
    /// The slot.
    pub slot: usize,
    /// The index of the column in the slot's rows.
    pub column: usize,
}

/// What an expression is.
#[derive(Debug, Clone, PartialEq)]
pub enum ExpressionKind {
    /// A value known at plan time.
    Constant(Value),
    /// A parameter of the execution.
    Parameter(usize),
    /// A column of a current row.
    Column(ColumnPlace),
    /// The result of an aggregate call of the current query. The planner replaces it by a column
    /// before the plan is finished.
    Aggregate(usize),
    /// A scalar subquery's value.
    Subquery(usize),
    /// `EXISTS (..)`.
    Exists(usize),
    /// `left op ANY (..)` or `ALL`; `IN` is `= ANY`, `NOT IN` is `<> ALL`.
    Quantified(Box<Quantified>),
    /// `NOT`.
    Not(Box<Expression>),
    /// `AND` of two or more.
    And(Vec<Expression>),
    /// `OR` of two or more.
    Or(Vec<Expression>),
    /// `XOR`.
    Xor(Box<[Expression; 2]>),
    /// `IS [NOT] NULL | TRUE | FALSE | UNKNOWN`; never NULL.
    Is {
        /// The tested value.
        operand: Box<Expression>,
        /// The test.
        test: Test,
        /// `IS NOT`.
        negated: bool,
    },
    /// A comparison.
    Compare(Box<Compare>),
    /// `operand [NOT] IN (list)`.
    In(Box<InList>),
    /// `(a, b) [NOT] IN ((1, 2), (3, 4))`.
    InRows(Box<InRows>),
    /// `[NOT] LIKE`.
    Like(Box<Like>),
    /// `+ - * / DIV %`.
    Arithmetic(Box<Arithmetic>),
    /// Unary minus.
    Negate(Box<Expression>),
    /// `& | ^ << >>`, all in unsigned 64 bits.
    BitOperation(Box<BitOperation>),
    /// `~`.
    Complement(Box<Expression>),
    /// `CASE WHEN .. THEN ..`, `IF`: the first branch whose condition is true, else the last.
    Case(Box<Case>),
    /// `COALESCE`, `IFNULL`: the first that is not NULL.
    Coalesce(Vec<Expression>),
    /// `NULLIF`: NULL if the comparison is true, else its left side.
    NullIf(Box<Compare>),
    /// A conversion to this expression's type: `CAST`, `CONVERT`, or an implicit one.
    Cast(Box<Expression>),
    /// The start of the statement, as local time of the session: `CURRENT_TIMESTAMP` as a default.
    Now,
    /// A stored TIMESTAMP (UTC) as local time of the session.
    Local(Box<Expression>),
    /// A value that is compared with a YEAR of so many digits: 20 means 2020 beside four, and 2020
    /// means 20 beside two, if it means a year at all.
    AsYear(Box<Expression>, u32),
    /// A function of the library.
    Function(Box<Call>),
    /// `@name`.
    UserVariable(Box<UserVariable>),
    /// `@name := value`.
    AssignUserVariable(Box<(Box<str>, Expression)>),
    /// `@@name`.
    SystemVariable(Box<SystemVariable>),
    /// A function that the session answers.
    Session(Box<SessionCall>),
    /// A function that is written in SQL.
    Stored(Box<StoredCall>),
}

/// A call of a function that the session answers: it waits, or needs other sessions.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionCall {
    /// The function.
    pub function: SessionFunction,
    /// The arguments that it takes.
    pub arguments: Vec<Expression>,
    /// Which call of the statement it is.
    pub occurrence: usize,
}

/// A test that is never NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// Is NULL, or UNKNOWN.
    Null,
    /// Is true.
    True,
    /// Is false.
    False,
}

/// How two values compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompareOperator {
    /// `=`.
    Equal,
    /// `<=>`: NULL equals NULL.
    NullSafeEqual,
    /// `<>`.
    NotEqual,
    /// `<`.
    Less,
    /// `<=`.
    LessOrEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterOrEqual,
}

/// The class of type in which an operator works; both sides are converted to it first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// 64-bit integers of either sign.
    Integer,
    /// Exact numbers.
    Decimal,
    /// Double precision.
    Double,
    /// Strings in that collation.
    Text(CollationId),
    /// Date with time.
    DateTime,
    /// Durations.
    Time,
}

/// `left op right`.
#[derive(Debug, Clone, PartialEq)]
pub struct Compare {
    /// The operator.
    pub operator: CompareOperator,
    /// The class of the comparison.
    pub class: Class,
    /// Left side.
    pub left: Expression,
    /// Right side.
    pub right: Expression,
}

/// `operand [NOT] IN (list)`.
#[derive(Debug, Clone)]
pub struct InList {
    /// The value that is searched.
    pub operand: Expression,
    /// The list.
    pub list: ListMembers,
    /// The class of the comparison.
    pub class: Class,
    /// `NOT IN`.
    pub negated: bool,
    /// The number of the hash table that an execution may build for a long list whose members are
    /// known before it reads a row. It is not part of the list's meaning: lists that differ only in
    /// it are equal.
    pub table: Option<usize>,
}

impl PartialEq for InList {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            operand,
            list,
            class,
            negated,
            table: _,
        } = other;
        self.operand == *operand
            && self.list == *list
            && self.class == *class
            && self.negated == *negated
    }
}

/// `(a, b) [NOT] IN ((1, 2), (3, 4))`.
#[derive(Debug, Clone)]
pub struct InRows {
    /// The values that are searched, by column.
    pub operands: Vec<Expression>,
    /// The list: the rows' values, row after row.
    pub rows: Vec<Expression>,
    /// The class in which each column is compared.
    pub classes: Box<[Class]>,
    /// `NOT IN`.
    pub negated: bool,
    /// As [`InList::table`].
    pub table: Option<usize>,
}

impl PartialEq for InRows {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            operands,
            rows,
            classes,
            negated,
            table: _,
        } = other;
        self.operands == *operands
            && self.rows == *rows
            && self.classes == *classes
            && self.negated == *negated
    }
}

/// `left op ANY|ALL (subquery)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantified {
    /// The operator.
    pub operator: CompareOperator,
    /// `ALL`; otherwise `ANY`.
    pub is_all: bool,
    /// One expression for each column of the subquery.
    pub left: Vec<Expression>,
    /// The class in which each column is compared.
    pub classes: Vec<Class>,
    /// The types of the subquery's columns.
    pub types: Vec<ColumnType>,
    /// The number of the subquery.
    pub subquery: usize,
}

/// `[NOT] LIKE`.
#[derive(Debug, Clone, PartialEq)]
pub struct Like {
    /// The text that is matched.
    pub operand: Expression,
    /// The pattern.
    pub pattern: Expression,
    /// The escape character, or `None`.
    pub escape: Option<u32>,
    /// The collation for the comparison of characters.
    pub collation: CollationId,
    /// `NOT LIKE`.
    pub negated: bool,
}

/// Which arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArithmeticOperator {
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
    /// `%`, `MOD`.
    Modulo,
}

/// `left op right`.
#[derive(Debug, Clone, PartialEq)]
pub struct Arithmetic {
    /// The operator.
    pub operator: ArithmeticOperator,
    /// The class: integer, decimal or double.
    pub class: Class,
    /// Left side.
    pub left: Expression,
    /// Right side.
    pub right: Expression,
    /// The source text, for messages.
    pub text: Box<str>,
}

/// Which bit operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BitOperator {
    /// `&`.
    And,
    /// `|`.
    Or,
    /// `^`.
    Xor,
    /// `<<`.
    ShiftLeft,
    /// `>>`.
    ShiftRight,
}

/// `left op right`.
#[derive(Debug, Clone, PartialEq)]
pub struct BitOperation {
    /// The operator.
    pub operator: BitOperator,
    /// Left side.
    pub left: Expression,
    /// Right side.
    pub right: Expression,
}

/// `CASE`.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// (condition, value) in order.
    pub branches: Vec<(Expression, Expression)>,
    /// The value if no condition is true; NULL if absent.
    pub otherwise: Option<Expression>,
}

/// `@name`, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserVariable {
    /// In lower case.
    pub name: Box<str>,
    /// The statement assigns it, so its value may differ from row to row.
    pub is_assigned: bool,
    /// Which place of the statement reads it, if the statement assigns it; otherwise 0.
    pub occurrence: usize,
}

/// `@@scope.name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemVariable {
    /// The scope, if one was named.
    pub scope: Option<VariableScope>,
    /// In lower case.
    pub name: Box<str>,
}

/// An aggregate over a group's rows.
#[derive(Debug, Clone, PartialEq)]
pub struct AggregateCall {
    /// The function.
    pub function: AggregateKind,
    /// Its arguments; none for `COUNT(*)`.
    pub arguments: Vec<Expression>,
    /// `DISTINCT`.
    pub is_distinct: bool,
    /// `GROUP_CONCAT`: its order, as (expression, descending).
    pub order: Vec<(Expression, bool)>,
    /// `GROUP_CONCAT`: the separator.
    pub separator: Box<[u8]>,
    /// `GROUP_CONCAT`: (count, offset) of its LIMIT.
    pub limit: Option<(u64, u64)>,
    /// The type of the result.
    pub column_type: ColumnType,
}

/// Which aggregate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AggregateKind {
    /// `COUNT(*)`, `COUNT(x)`, `COUNT(DISTINCT x, y)`.
    Count,
    /// `SUM`.
    Sum,
    /// `AVG`.
    Avg,
    /// `MIN`.
    Min,
    /// `MAX`.
    Max,
    /// `BIT_AND`.
    BitAnd,
    /// `BIT_OR`.
    BitOr,
    /// `BIT_XOR`.
    BitXor,
    /// `STD`, `STDDEV`, `STDDEV_POP`.
    StddevPop,
    /// `STDDEV_SAMP`.
    StddevSamp,
    /// `VARIANCE`, `VAR_POP`.
    VarPop,
    /// `VAR_SAMP`.
    VarSamp,
    /// `GROUP_CONCAT`.
    GroupConcat,
    /// The value of the group's first row: a column that is not grouped by.
    First,
}

impl Expression {
    /// An expression that can be NULL.
    pub fn new(kind: ExpressionKind, column_type: ColumnType) -> Self {
        Self {
            kind,
            column_type,
            nullable: true,
        }
    }

    /// A value.
    pub fn constant(value: Value, column_type: ColumnType) -> Self {
        let nullable = value.is_null();
        Self {
            kind: ExpressionKind::Constant(value),
            column_type,
            nullable,
        }
    }

    /// NULL.
    pub fn null() -> Self {
        Self::constant(Value::Null, ColumnType::new(TypeKind::Null))
    }

    /// 1 or 0.
    pub fn boolean(truth: bool) -> Self {
        Self::constant(Value::Int(i64::from(truth)), Self::boolean_type())
    }

    /// The type of conditions.
    pub fn boolean_type() -> ColumnType {
        let mut column_type = ColumnType::new(TypeKind::Int);
        column_type.length = 1;
        column_type
    }

    /// A condition of that kind.
    pub fn condition(kind: ExpressionKind, nullable: bool) -> Self {
        Self {
            kind,
            column_type: Self::boolean_type(),
            nullable,
        }
    }

    /// A column of the frame.
    pub fn column(place: ColumnPlace, column_type: ColumnType, nullable: bool) -> Self {
        Self {
            kind: ExpressionKind::Column(place),
            column_type,
            nullable,
        }
    }

    /// The place, if this is a column and nothing else. (A TIMESTAMP in the session's zone counts
    /// as its column.)
    pub fn as_column(&self) -> Option<ColumnPlace> {
        match &self.kind {
            ExpressionKind::Column(place) => Some(*place),
            ExpressionKind::Local(operand) => operand.as_column(),
            _ => None,
        }
    }

    /// The place, if this only reads a column.
    fn read_place(&self) -> Option<ColumnPlace> {
        match self.kind {
            ExpressionKind::Column(place) => Some(place),
            _ => None,
        }
    }

    /// `AND` of conditions; `None` if there are none.
    pub fn all(mut conditions: Vec<Self>) -> Option<Self> {
        match conditions.len() {
            0 | 1 => conditions.pop(),
            _ => {
                let nullable = conditions.iter().any(|condition| condition.nullable);
                Some(Self::condition(ExpressionKind::And(conditions), nullable))
            }
        }
    }

    /// Calls `visit` with this expression and all below it. If it returns false, those below are
    /// skipped.
    pub fn walk(&self, visit: &mut dyn FnMut(&Self) -> bool) {
        if visit(self) {
            self.for_each_child(&mut |child| child.walk(visit));
        }
    }

    /// True if any expression below (or this one) satisfies `test`.
    pub fn contains(&self, test: &dyn Fn(&Self) -> bool) -> bool {
        let mut found = false;
        self.walk(&mut |expression| {
            found = found || test(expression);
            !found
        });
        found
    }

    /// Makes calls equal that differ only in their place in the statement: two of RAND().
    pub fn forget_occurrences(&mut self) {
        match &mut self.kind {
            ExpressionKind::Function(call) => call.occurrence = 0,
            ExpressionKind::Session(call) => call.occurrence = 0,
            ExpressionKind::UserVariable(variable) => variable.occurrence = 0,
            _ => {}
        }
        self.for_each_child_mut(&mut Self::forget_occurrences);
    }

    /// True if two evaluations over the same rows may differ: it may not bound an index.
    pub fn is_volatile(&self) -> bool {
        self.contains(&|expression| match &expression.kind {
            ExpressionKind::AssignUserVariable(_) => true,
            ExpressionKind::UserVariable(variable) => variable.is_assigned,
            ExpressionKind::Function(call) => call.is_volatile(),
            ExpressionKind::Stored(call) => !call.function.is_deterministic,
            _ => false,
        })
    }

    /// True if its evaluation may change something beside its value: a function of the session, or
    /// a stored one.
    pub fn acts(&self) -> bool {
        self.contains(&|expression| {
            matches!(
                expression.kind,
                ExpressionKind::Session(_) | ExpressionKind::Stored(_)
            )
        })
    }

    /// True if the value is known before a row is read and costs nothing: a constant, a parameter,
    /// or the year that one of them means.
    pub fn is_given(&self) -> bool {
        match &self.kind {
            ExpressionKind::Constant(_) | ExpressionKind::Parameter(_) => true,
            ExpressionKind::AsYear(operand, _) => operand.is_given(),
            _ => false,
        }
    }

    /// The slots whose columns are read.
    pub fn slots(&self) -> Vec<usize> {
        let mut slots = Vec::new();
        self.walk(&mut |expression| {
            if let Some(place) = expression.read_place()
                && !slots.contains(&place.slot)
            {
                slots.push(place.slot);
            }
            true
        });
        slots
    }

    /// The subqueries and calls of stored functions that it uses.
    pub fn subqueries(&self) -> Vec<usize> {
        let mut numbers = Vec::new();
        self.walk(&mut |expression| {
            let number = match &expression.kind {
                ExpressionKind::Subquery(number) | ExpressionKind::Exists(number) => *number,
                ExpressionKind::Quantified(quantified) => quantified.subquery,
                ExpressionKind::Stored(call) => call.number,
                _ => return true,
            };
            if !numbers.contains(&number) {
                numbers.push(number);
            }
            true
        });
        numbers
    }

    /// Calls `visit` with each direct part.
    pub fn for_each_child(&self, visit: &mut dyn FnMut(&Self)) {
        use ExpressionKind as Kind;
        match &self.kind {
            Kind::Constant(_)
            | Kind::Parameter(_)
            | Kind::Column(_)
            | Kind::Aggregate(_)
            | Kind::Subquery(_)
            | Kind::Exists(_)
            | Kind::Now
            | Kind::UserVariable(_)
            | Kind::SystemVariable(_) => {}
            Kind::Quantified(quantified) => quantified.left.iter().for_each(visit),
            Kind::Not(operand)
            | Kind::Negate(operand)
            | Kind::Complement(operand)
            | Kind::Cast(operand)
            | Kind::Local(operand)
            | Kind::AsYear(operand, _)
            | Kind::Is { operand, .. } => visit(operand),
            Kind::And(list) | Kind::Or(list) | Kind::Coalesce(list) => list.iter().for_each(visit),
            Kind::Xor(pair) => pair.iter().for_each(visit),
            Kind::Compare(compare) | Kind::NullIf(compare) => {
                visit(&compare.left);
                visit(&compare.right);
            }
            Kind::In(list) => {
                visit(&list.operand);
                list.list.expressions().iter().for_each(visit);
            }
            Kind::InRows(list) => list.operands.iter().chain(&list.rows).for_each(visit),
            Kind::Like(like) => {
                visit(&like.operand);
                visit(&like.pattern);
            }
            Kind::Arithmetic(arithmetic) => {
                visit(&arithmetic.left);
                visit(&arithmetic.right);
            }
            Kind::BitOperation(bits) => {
                visit(&bits.left);
                visit(&bits.right);
            }
            Kind::Case(case) => {
                for (condition, value) in &case.branches {
                    visit(condition);
                    visit(value);
                }
                case.otherwise.iter().for_each(visit);
            }
            Kind::Function(call) => call.arguments.iter().for_each(visit),
            Kind::Session(call) => call.arguments.iter().for_each(visit),
            Kind::Stored(call) => call.arguments.iter().for_each(visit),
            Kind::AssignUserVariable(assignment) => visit(&assignment.1),
        }
    }

    /// Calls `change` with each direct part.
    pub fn for_each_child_mut(&mut self, change: &mut dyn FnMut(&mut Self)) {
        use ExpressionKind as Kind;
        match &mut self.kind {
            Kind::Constant(_)
            | Kind::Parameter(_)
            | Kind::Column(_)
            | Kind::Aggregate(_)
            | Kind::Subquery(_)
            | Kind::Exists(_)
            | Kind::Now
            | Kind::UserVariable(_)
            | Kind::SystemVariable(_) => {}
            Kind::Quantified(quantified) => quantified.left.iter_mut().for_each(change),
            Kind::Not(operand)
            | Kind::Negate(operand)
            | Kind::Complement(operand)
            | Kind::Cast(operand)
            | Kind::Local(operand)
            | Kind::AsYear(operand, _)
            | Kind::Is { operand, .. } => change(operand),
            Kind::And(list) | Kind::Or(list) | Kind::Coalesce(list) => {
                list.iter_mut().for_each(change);
            }
            Kind::Xor(pair) => pair.iter_mut().for_each(change),
            Kind::Compare(compare) | Kind::NullIf(compare) => {
                change(&mut compare.left);
                change(&mut compare.right);
            }
            Kind::In(list) => {
                change(&mut list.operand);
                if let ListMembers::Expressions(list) = &mut list.list {
                    list.iter_mut().for_each(change);
                }
            }
            Kind::InRows(list) => {
                list.operands.iter_mut().for_each(&mut *change);
                list.rows.iter_mut().for_each(change);
            }
            Kind::Like(like) => {
                change(&mut like.operand);
                change(&mut like.pattern);
            }
            Kind::Arithmetic(arithmetic) => {
                change(&mut arithmetic.left);
                change(&mut arithmetic.right);
            }
            Kind::BitOperation(bits) => {
                change(&mut bits.left);
                change(&mut bits.right);
            }
            Kind::Case(case) => {
                for (condition, value) in &mut case.branches {
                    change(condition);
                    change(value);
                }
                case.otherwise.iter_mut().for_each(change);
            }
            Kind::Function(call) => call.arguments.iter_mut().for_each(change),
            Kind::Session(call) => call.arguments.iter_mut().for_each(change),
            Kind::Stored(call) => call.arguments.iter_mut().for_each(change),
            Kind::AssignUserVariable(assignment) => change(&mut assignment.1),
        }
    }
}

impl CompareOperator {
    /// The operator with its sides exchanged.
    pub fn mirrored(self) -> Self {
        match self {
            Self::Equal | Self::NullSafeEqual | Self::NotEqual => self,
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
        }
    }

    /// The operator that is false if this one is true, true if it is false, and NULL if it is NULL.
    /// `None` for `<=>`.
    pub fn opposite(self) -> Option<Self> {
        Some(match self {
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::Less => Self::GreaterOrEqual,
            Self::LessOrEqual => Self::Greater,
            Self::Greater => Self::LessOrEqual,
            Self::GreaterOrEqual => Self::Less,
            Self::NullSafeEqual => return None,
        })
    }

    /// Whether an order of two values satisfies it.
    #[inline]
    pub fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Self::Equal | Self::NullSafeEqual => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}
