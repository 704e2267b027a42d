//! A stored program as it is run: a list of instructions, and what they name by number.
//!
//! Targets of jumps are places in the list. Nothing here changes while the program runs but the
//! plans that fragments keep, so one program is run by any number of sessions of a worker, and
//! by itself.

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

use syntax::ast::{
    ConditionValue, Direction, ExprKind, GetDiagnostics, IntoTarget, ObjectName, QueryBody,
    SelectItem, SignalItem, StatementKind, SystemVariable,
};
use value::ColumnType;

use super::held::Ticket;
use crate::statement::dispatch::Parsed;

/// A program, ready to run.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// The variables, the parameters first.
    pub(crate) variables: Vec<Variable>,
    /// How many of them are parameters.
    pub(crate) parameter_count: usize,
    /// What it does.
    pub(crate) code: Vec<Instruction>,
    /// The line of each instruction, from 1.
    pub(crate) lines: Vec<u32>,
    /// It is `BEGIN .. END`.
    pub(crate) is_block: bool,
    /// Queries of its cursors, by number.
    pub(crate) cursors: Vec<Fragment>,
    /// Its handlers, by number.
    pub(crate) handlers: Vec<Handler>,
    /// Of a function: the variable that takes what it returns.
    pub(crate) result: Option<usize>,
    /// It can give results to the client.
    pub(crate) has_results: bool,
}

/// A variable of a program.
#[derive(Debug)]
pub(crate) struct Variable {
    /// Its name, for messages.
    pub(crate) name: String,
    /// Its type; none of what takes the type of its value.
    pub(crate) column_type: Option<ColumnType>,
    /// The type that it was declared with: of a TIMESTAMP the other is DATETIME.
    pub(crate) declared: Option<ColumnType>,
    /// It takes NULL; what a FOR loop counts with does not.
    pub(crate) is_nullable: bool,
    /// Which way a parameter passes its value.
    pub(crate) direction: Direction,
}

/// A statement or expression of a program. An expression is `SELECT expression`.
#[derive(Debug)]
pub(crate) struct Fragment {
    /// Its tree, and the text of the whole program.
    pub(crate) parsed: Parsed,
    /// For each of its parameters the variable, and where its name stands.
    pub(crate) locals: Vec<(usize, syntax::Span)>,
    /// The whole of it is this variable.
    pub(crate) only: Option<usize>,
    /// The plan that it ran last, if that is kept still.
    pub(crate) held: Cell<Option<Ticket>>,
}

impl Fragment {
    /// The word that it is, where that is no variable: `ON` of `SET x = ON`.
    pub(crate) fn word(&self) -> Option<&str> {
        let StatementKind::Query(query) = &self.parsed.statement.kind else {
            return None;
        };
        let QueryBody::Select(select) = &query.body else {
            return None;
        };
        match select.items.first() {
            Some(SelectItem::Expr { expr, .. }) => match &expr.kind {
                ExprKind::Column(name) if name.table.is_none() => Some(&name.column.text),
                _ => None,
            },
            _ => None,
        }
    }
}

/// A handler.
#[derive(Debug)]
pub(crate) struct Handler {
    /// What it handles.
    pub(crate) conditions: Vec<ConditionValue>,
    /// Its block is left when it is done.
    pub(crate) is_exit: bool,
    /// Handlers of one block have the same number.
    pub(crate) block: usize,
    /// Where its own instructions begin.
    pub(crate) entry: usize,
    /// Behind its block, whose handlers are gone by then.
    pub(crate) exit: usize,
}

/// One step of a program.
#[derive(Debug)]
pub(crate) enum Instruction {
    /// A statement; its rows go to the client.
    Statement(Box<Fragment>),
    /// `CALL`.
    Call(Box<Call>),
    /// A variable becomes NULL.
    Clear(usize),
    /// A variable becomes a value.
    SetLocal { slot: usize, value: Rc<Fragment> },
    /// `@name` becomes a value.
    SetUser { name: String, value: Box<Fragment> },
    /// A system variable becomes a value, or its default.
    SetSystem {
        variable: SystemVariable,
        value: Option<Box<Fragment>>,
    },
    /// Goes on elsewhere.
    Jump(usize),
    /// Goes on elsewhere unless the condition holds. A CONTINUE handler of an error within the
    /// condition goes on at `resume`.
    JumpUnless {
        condition: Box<Fragment>,
        target: usize,
        resume: usize,
    },
    /// These handlers hold from now on.
    EnterHandlers { first: usize, count: usize },
    /// So many handlers hold no longer.
    LeaveHandlers(usize),
    /// The handler at hand is done.
    EndHandler,
    /// The cursors of these numbers are closed, if they are open.
    CloseAll(Range<usize>),
    /// `OPEN`.
    Open(usize),
    /// `FETCH`.
    Fetch {
        cursor: usize,
        into: Vec<IntoTarget>,
    },
    /// `CLOSE`.
    Close(usize),
    /// A FOR loop over integers goes on elsewhere when it is behind its limit.
    RangeTest { range: IntegerRange, target: usize },
    /// A FOR loop over integers begins anew, there, with the next.
    RangeNext { range: IntegerRange, start: usize },
    /// A FOR loop over rows takes the next one, or goes on elsewhere.
    NextRow { row: Box<RowOf>, target: usize },
    /// `RETURN`: a value into the function's result.
    Return(Box<Fragment>),
    /// No branch of CASE: error 1339.
    CaseNotFound,
    /// `SIGNAL` and `RESIGNAL`.
    Signal(Box<Signal>),
    /// `GET DIAGNOSTICS`; with the expression of a condition's number.
    GetDiagnostics(Box<(GetDiagnostics, Option<Fragment>)>),
}

/// The variables of a FOR loop over integers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IntegerRange {
    /// What runs.
    pub(crate) index: usize,
    /// How far it runs.
    pub(crate) limit: usize,
    /// It runs downwards.
    pub(crate) is_reverse: bool,
}

/// The row of a FOR loop over rows.
#[derive(Debug)]
pub(crate) struct RowOf {
    pub(crate) cursor: usize,
    /// The row's name, for messages.
    pub(crate) name: String,
    /// The columns that are used, each with its variable.
    pub(crate) fields: Vec<(String, usize)>,
}

/// `CALL`, with its arguments.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) name: ObjectName,
    pub(crate) arguments: Vec<Argument>,
}

/// An argument of CALL.
#[derive(Debug)]
pub(crate) struct Argument {
    /// Its value.
    pub(crate) value: Fragment,
    /// The variable that it is, which can take a value back.
    pub(crate) target: Option<IntoTarget>,
}

/// `SIGNAL` and `RESIGNAL`.
#[derive(Debug)]
pub(crate) struct Signal {
    /// `RESIGNAL`.
    pub(crate) is_again: bool,
    pub(crate) condition: Option<ConditionValue>,
    pub(crate) items: Vec<(SignalItem, Fragment)>,
}
