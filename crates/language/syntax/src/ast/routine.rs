//! Stored programs: their definitions, and the language of their bodies.
//!
//! Names of a routine's variables are resolved during parsing, as in MariaDB. If an expression
//! names a visible variable, the tree has [`super::ExprKind::Parameter`]. The statement or
//! expression that contains it lists the variable of each of its parameters ([`LocalUse`]). So a
//! statement of a body is planned and run like any prepared statement, and a variable hides a
//! column of the same name.
//!
//! Each variable, also a parameter, has its own number in the routine, its *slot*. Two variables of
//! the same name in two blocks have two slots. Cursors and conditions are numbered likewise.

use std::ops::Range;
use std::rc::Rc;

use super::{DataType, Expr, Ident, IntoTarget, ObjectName, Statement, SystemVariable, UserName};
use crate::token::Span;

/// The kind of a stored program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RoutineKind {
    /// `PROCEDURE`.
    Procedure,
    /// `FUNCTION`.
    Function,
}

impl RoutineKind {
    /// The word in SQL.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            RoutineKind::Procedure => "PROCEDURE",
            RoutineKind::Function => "FUNCTION",
        }
    }
}

/// `CREATE PROCEDURE` and `CREATE FUNCTION`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateRoutine {
    /// The kind.
    pub kind: RoutineKind,
    /// `OR REPLACE`.
    pub or_replace: bool,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// `DEFINER = ..`; the creator when absent.
    pub definer: Option<UserName>,
    /// Its name.
    pub name: ObjectName,
    /// The text of the parameters, without the parentheses.
    pub parameters_span: Span,
    /// `RETURNS t`: present for a function, absent for a procedure.
    pub returns: Option<DataType>,
    /// The text of that type.
    pub returns_span: Span,
    /// `COMMENT`, `DETERMINISTIC` and the like.
    pub characteristics: Characteristics,
    /// The text of the body.
    pub body_span: Span,
    /// What it does.
    pub program: Program,
}

/// The characteristics of a routine's definition; `None` for those not written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Characteristics {
    /// `COMMENT '..'`.
    pub comment: Option<Vec<u8>>,
    /// `DETERMINISTIC` (true), `NOT DETERMINISTIC` (false).
    pub deterministic: Option<bool>,
    /// `CONTAINS SQL` and its like.
    pub data_access: Option<DataAccess>,
    /// `SQL SECURITY INVOKER` (true), `SQL SECURITY DEFINER` (false).
    pub invoker: Option<bool>,
}

/// The declared data access of a routine; it is not checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DataAccess {
    /// `CONTAINS SQL`.
    #[default]
    ContainsSql,
    /// `NO SQL`.
    NoSql,
    /// `READS SQL DATA`.
    ReadsSqlData,
    /// `MODIFIES SQL DATA`.
    ModifiesSqlData,
}

/// `DROP PROCEDURE` and `DROP FUNCTION`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropRoutine {
    /// The kind.
    pub kind: RoutineKind,
    /// `IF EXISTS`.
    pub if_exists: bool,
    /// Its name.
    pub name: ObjectName,
}

/// `ALTER PROCEDURE` and `ALTER FUNCTION`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlterRoutine {
    /// The kind.
    pub kind: RoutineKind,
    /// Its name.
    pub name: ObjectName,
    /// What changes.
    pub characteristics: Characteristics,
}

/// A body with what it declares.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// The variables by slot, the parameters first.
    pub variables: Vec<ProgramVariable>,
    /// How many of them are parameters.
    pub parameter_count: u32,
    /// The queries of its cursors by number.
    pub cursors: Vec<ProgramStatement>,
    /// What it does.
    pub body: Step,
}

/// A variable or parameter of a routine.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramVariable {
    /// Its name.
    pub name: Ident,
    /// Its type; `None` for the operand of `CASE`, which has the type of its value. Variables of
    /// one DECLARE share it.
    pub data_type: Option<Rc<DataType>>,
    /// The direction of a parameter; variables have `In`.
    pub direction: Direction,
}

/// The direction of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Direction {
    /// `IN`.
    #[default]
    In,
    /// `OUT`.
    Out,
    /// `INOUT`.
    InOut,
}

/// The use of a variable: the meaning of the parameter with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalUse {
    /// The variable.
    pub slot: u32,
    /// The position of its name in the text.
    pub span: Span,
}

/// A statement of a body.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramStatement {
    /// The statement.
    pub statement: Statement,
    /// The variables of its parameters.
    pub locals: Vec<LocalUse>,
}

/// An expression of a body.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramExpr {
    /// The expression.
    pub expr: Expr,
    /// The variables of its parameters.
    pub locals: Vec<LocalUse>,
}

/// One statement of the stored-program language.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What it does.
    pub kind: StepKind,
    /// Its text.
    pub span: Span,
}

/// What a step of a body does.
#[derive(Debug, Clone, PartialEq)]
pub enum StepKind {
    /// A statement that could also stand alone.
    Statement(Box<ProgramStatement>),
    /// `BEGIN .. END`.
    Block(Box<Block>),
    /// `SET x = e` of a routine's variable.
    SetLocal {
        /// The variable.
        slot: u32,
        /// Its value.
        value: Box<ProgramExpr>,
    },
    /// `SET @x = e`.
    SetUser {
        /// The variable.
        name: String,
        /// Its value.
        value: Box<ProgramExpr>,
    },
    /// `SET x = e` of a system variable.
    SetSystem {
        /// The variable.
        variable: SystemVariable,
        /// Its value; `None` is `DEFAULT`.
        value: Option<Box<ProgramExpr>>,
    },
    /// `SET a = 1, b = 2`: run one after the other.
    Sequence(Vec<Step>),
    /// `CALL p(..)`.
    Call(Box<Call>),
    /// `IF c THEN .. ELSEIF c THEN .. ELSE .. END IF`.
    If {
        /// The conditions, each with the steps to run if it is the first true one.
        branches: Vec<(ProgramExpr, Vec<Step>)>,
        /// `ELSE ..`.
        otherwise: Option<Vec<Step>>,
    },
    /// `CASE .. END CASE`.
    Case(Box<CaseStep>),
    /// `LOOP .. END LOOP`, `WHILE`, `REPEAT`.
    Loop(Box<LoopStep>),
    /// `LEAVE l`: the label's number.
    Leave(u32),
    /// `ITERATE l`: the label's number.
    Iterate(u32),
    /// `OPEN c(..)`.
    Open(OpenCursor),
    /// `FETCH c INTO ..`.
    Fetch {
        /// The cursor.
        cursor: u32,
        /// The variables for the columns.
        into: Vec<IntoTarget>,
    },
    /// `CLOSE c`.
    Close(u32),
    /// `RETURN e`.
    Return(Box<ProgramExpr>),
    /// `SIGNAL ..`.
    Signal(Box<Signal>),
    /// `RESIGNAL ..`.
    Resignal(Box<Signal>),
    /// `GET DIAGNOSTICS ..`.
    GetDiagnostics(Box<GetDiagnostics>),
}

/// `CALL p(..)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The procedure.
    pub name: ObjectName,
    /// Its arguments.
    pub arguments: Vec<ProgramExpr>,
}

/// `[l:] BEGIN .. END`.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// The number of its label, for LEAVE.
    pub label: Option<u32>,
    /// Its `DECLARE` of variables, in order.
    pub variables: Vec<Declaration>,
    /// The cursors declared here, as a range of numbers; they close with the block.
    pub cursors: Range<u32>,
    /// Its handlers.
    pub handlers: Vec<Handler>,
    /// What it does.
    pub body: Vec<Step>,
}

/// `DECLARE a, b t DEFAULT e`.
#[derive(Debug, Clone, PartialEq)]
pub struct Declaration {
    /// The variables, which have consecutive numbers.
    pub slots: Range<u32>,
    /// Their initial value.
    pub value: Option<ProgramExpr>,
}

/// `CASE [e] WHEN .. THEN .. ELSE .. END CASE`.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseStep {
    /// Branches: the condition (`e = value` if `CASE` has an expression), and the steps.
    pub branches: Vec<(ProgramExpr, Vec<Step>)>,
    /// `ELSE ..`; without it, error 1339 if no branch is taken.
    pub otherwise: Option<Vec<Step>>,
    /// `CASE e`: evaluated once, into this slot.
    pub operand: Option<(u32, ProgramExpr)>,
}

/// A loop.
#[derive(Debug, Clone, PartialEq)]
pub struct LoopStep {
    /// The number of its label, for LEAVE and ITERATE.
    pub label: Option<u32>,
    /// How it ends.
    pub kind: LoopKind,
    /// The loop's body.
    pub body: Vec<Step>,
}

/// `OPEN c(a, b)`.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenCursor {
    /// The cursor.
    pub cursor: u32,
    /// Its parameters, each with its value.
    pub arguments: Vec<(u32, ProgramExpr)>,
}

/// `i IN [REVERSE] a..b`.
#[derive(Debug, Clone, PartialEq)]
pub struct IntegerRange {
    /// The counter variable.
    pub index: u32,
    /// Its first value.
    pub first: ProgramExpr,
    /// The variable that keeps the last value.
    pub limit: u32,
    /// Its last value.
    pub last: ProgramExpr,
    /// `REVERSE`: downwards.
    pub is_reverse: bool,
}

/// `r IN c` and `r IN (SELECT ..)`.
#[derive(Debug, Clone, PartialEq)]
pub struct CursorRange {
    /// The cursor, opened before the loop and closed after it.
    pub open: OpenCursor,
    /// The query is written in the loop: leaving the loop closes the cursor.
    pub is_own: bool,
    /// The used columns of a row, each with its variable: `r.a`.
    pub row: RowVariable,
}

/// The used fields of a cursor's row.
#[derive(Debug, Clone, PartialEq)]
pub struct RowVariable {
    /// Its name.
    pub name: Ident,
    /// The fields, spelled as at their first use, each with its variable.
    pub fields: Vec<(Ident, u32)>,
}

/// Kinds of loops.
#[derive(Debug, Clone, PartialEq)]
pub enum LoopKind {
    /// `LOOP`: ends only by LEAVE.
    Endless,
    /// `WHILE e DO`.
    While(ProgramExpr),
    /// `REPEAT .. UNTIL e`.
    Until(ProgramExpr),
    /// `FOR i IN a..b DO`.
    Range(Box<IntegerRange>),
    /// `FOR r IN c DO`.
    Rows(Box<CursorRange>),
}

/// `DECLARE .. HANDLER FOR ..`.
#[derive(Debug, Clone, PartialEq)]
pub struct Handler {
    /// `EXIT` (true), `CONTINUE` (false).
    pub is_exit: bool,
    /// What it handles.
    pub conditions: Vec<ConditionValue>,
    /// What it does.
    pub body: Step,
}

/// A condition of a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConditionValue {
    /// An error number of the server.
    Code(u16),
    /// `SQLSTATE '..'`.
    State([u8; 5]),
    /// `SQLWARNING`: class `01`.
    Warning,
    /// `NOT FOUND`: class `02`.
    NotFound,
    /// `SQLEXCEPTION`: all other classes but `00`.
    Exception,
}

/// `SIGNAL` and `RESIGNAL`.
#[derive(Debug, Clone, PartialEq)]
pub struct Signal {
    /// The condition; RESIGNAL may have none.
    pub condition: Option<ConditionValue>,
    /// `SET item = value, ..`.
    pub items: Vec<(SignalItem, ProgramExpr)>,
}

/// The items of a condition besides its SQLSTATE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SignalItem {
    ClassOrigin,
    SubclassOrigin,
    ConstraintCatalog,
    ConstraintSchema,
    ConstraintName,
    CatalogName,
    SchemaName,
    TableName,
    ColumnName,
    CursorName,
    MessageText,
    MysqlErrno,
}

/// `GET [CURRENT] DIAGNOSTICS ..`.
#[derive(Debug, Clone, PartialEq)]
pub enum GetDiagnostics {
    /// `target = NUMBER | ROW_COUNT, ..`.
    Statement(Vec<(IntoTarget, StatementItem)>),
    /// `CONDITION n target = item, ..`.
    Condition {
        /// The number of the condition, from 1.
        number: ProgramExpr,
        /// The requested items.
        items: Vec<(IntoTarget, ConditionItem)>,
    },
}

/// A statement item of `GET DIAGNOSTICS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StatementItem {
    /// `NUMBER`: how many conditions there are.
    Number,
    /// `ROW_COUNT`.
    RowCount,
}

/// A condition item of `GET DIAGNOSTICS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConditionItem {
    /// `RETURNED_SQLSTATE`.
    ReturnedSqlstate,
    /// An item that `SIGNAL` can set.
    Signal(SignalItem),
}
