//! Stored programs: their definitions, and the language that their bodies are written in.
//!
//! Names of a routine's variables are resolved while the text is read, as MariaDB does: wherever an
//! expression names a variable in sight, the tree has [`super::ExprKind::Parameter`], and the
//! statement or expression around it says which variable each of its parameters is
//! ([`LocalUse`]). So a statement of a body is planned and run like any prepared statement, and
//! a variable hides a column of its name.
//!
//! Each variable, a parameter included, has a place of its own in the routine, its *slot*: two
//! variables of one name in two blocks have two. Cursors and conditions are numbered likewise.

use std::ops::Range;
use std::rc::Rc;

use super::{DataType, Expr, Ident, IntoTarget, ObjectName, Statement, SystemVariable, UserName};
use crate::token::Span;

/// What kind of stored program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RoutineKind {
    /// `PROCEDURE`.
    Procedure,
    /// `FUNCTION`.
    Function,
}

impl RoutineKind {
    /// As it is written.
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
    /// Which of the two.
    pub kind: RoutineKind,
    /// `OR REPLACE`.
    pub or_replace: bool,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// `DEFINER = ..`; who creates it when absent.
    pub definer: Option<UserName>,
    /// Its name.
    pub name: ObjectName,
    /// The text of the parameters, without the parentheses.
    pub parameters_span: Span,
    /// `RETURNS t`: a function has it, a procedure has not.
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

/// What a definition says of a routine beside its body; what it does not say is none.
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

/// What a routine says it does to data; nobody checks it.
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
    /// Which of the two.
    pub kind: RoutineKind,
    /// `IF EXISTS`.
    pub if_exists: bool,
    /// Its name.
    pub name: ObjectName,
}

/// `ALTER PROCEDURE` and `ALTER FUNCTION`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlterRoutine {
    /// Which of the two.
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
    /// Its type; none for what `CASE` keeps: that of the value. Those of one DECLARE share it.
    pub data_type: Option<Rc<DataType>>,
    /// Which way a parameter passes its value; variables have `In`.
    pub direction: Direction,
}

/// Which way a parameter passes its value.
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

/// A variable where it is used: what the parameter of the same number stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalUse {
    /// The variable.
    pub slot: u32,
    /// The place of its name in the text.
    pub span: Span,
}

/// A statement of a body.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramStatement {
    /// The statement.
    pub statement: Statement,
    /// The variables that its parameters are.
    pub locals: Vec<LocalUse>,
}

/// An expression of a body.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramExpr {
    /// The expression.
    pub expr: Expr,
    /// The variables that its parameters are.
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
        /// Its value; none is `DEFAULT`.
        value: Option<Box<ProgramExpr>>,
    },
    /// `SET a = 1, b = 2`: one after the other.
    Sequence(Vec<Step>),
    /// `CALL p(..)`.
    Call(Box<Call>),
    /// `IF c THEN .. ELSEIF c THEN .. ELSE .. END IF`.
    If {
        /// Conditions with what is done when they are the first that holds.
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
        /// Where the columns go.
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
    /// The number of its label, by which it can be left.
    pub label: Option<u32>,
    /// Its `DECLARE` of variables, in order.
    pub variables: Vec<Declaration>,
    /// Cursors declared here, which close with it: the numbers from one to before another.
    pub cursors: Range<u32>,
    /// Handlers that hold within it.
    pub handlers: Vec<Handler>,
    /// What it does.
    pub body: Vec<Step>,
}

/// `DECLARE a, b t DEFAULT e`.
#[derive(Debug, Clone, PartialEq)]
pub struct Declaration {
    /// The variables, which have numbers in a row.
    pub slots: Range<u32>,
    /// What each begins as.
    pub value: Option<ProgramExpr>,
}

/// `CASE [e] WHEN .. THEN .. ELSE .. END CASE`.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseStep {
    /// Branches: the condition (`e = value` where `CASE` has an expression), and what is done.
    pub branches: Vec<(ProgramExpr, Vec<Step>)>,
    /// `ELSE ..`; without it, no branch is error 1339.
    pub otherwise: Option<Vec<Step>>,
    /// `CASE e`: evaluated once, into this slot.
    pub operand: Option<(u32, ProgramExpr)>,
}

/// A loop.
#[derive(Debug, Clone, PartialEq)]
pub struct LoopStep {
    /// The number of its label, by which it can be left and begun anew.
    pub label: Option<u32>,
    /// How it ends.
    pub kind: LoopKind,
    /// What is repeated.
    pub body: Vec<Step>,
}

/// `OPEN c(a, b)`.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenCursor {
    /// The cursor.
    pub cursor: u32,
    /// Its parameters, each with the value that it takes.
    pub arguments: Vec<(u32, ProgramExpr)>,
}

/// `i IN [REVERSE] a..b`.
#[derive(Debug, Clone, PartialEq)]
pub struct IntegerRange {
    /// The variable that runs.
    pub index: u32,
    /// What it begins as.
    pub first: ProgramExpr,
    /// What keeps how far it runs.
    pub limit: u32,
    /// How far it runs.
    pub last: ProgramExpr,
    /// `REVERSE`: downwards.
    pub is_reverse: bool,
}

/// `r IN c` and `r IN (SELECT ..)`.
#[derive(Debug, Clone, PartialEq)]
pub struct CursorRange {
    /// The cursor, opened before the loop and closed behind it.
    pub open: OpenCursor,
    /// The query stands in the loop: whoever leaves it closes the cursor.
    pub is_own: bool,
    /// The columns of a row that are used, each with the variable that it is: `r.a`.
    pub row: RowVariable,
}

/// A row of a cursor, as far as it is used.
#[derive(Debug, Clone, PartialEq)]
pub struct RowVariable {
    /// Its name.
    pub name: Ident,
    /// The fields, as they are written where they are first used, each with its variable.
    pub fields: Vec<(Ident, u32)>,
}

/// Kinds of loops.
#[derive(Debug, Clone, PartialEq)]
pub enum LoopKind {
    /// `LOOP`: only by being left.
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

/// What a handler handles.
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
    /// Which condition; RESIGNAL may have none.
    pub condition: Option<ConditionValue>,
    /// `SET item = value, ..`.
    pub items: Vec<(SignalItem, ProgramExpr)>,
}

/// What a condition tells beside its SQLSTATE.
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
        /// Which, from 1.
        number: ProgramExpr,
        /// What is asked.
        items: Vec<(IntoTarget, ConditionItem)>,
    },
}

/// What `GET DIAGNOSTICS` tells of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StatementItem {
    /// `NUMBER`: how many conditions there are.
    Number,
    /// `ROW_COUNT`.
    RowCount,
}

/// What `GET DIAGNOSTICS` tells of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConditionItem {
    /// `RETURNED_SQLSTATE`.
    ReturnedSqlstate,
    /// What `SIGNAL` can set.
    Signal(SignalItem),
}
