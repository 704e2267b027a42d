//! A compiled stored program: a list of instructions, and what they name by number.
//!
//! Targets of jumps are indexes into the list. While the program runs, only the plans that
//! fragments keep change. So any number of sessions of a worker can run one program, and it can
//! call itself.

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

use syntax::ast::{
    ConditionValue, Direction, ExprKind, GetDiagnostics, IntoTarget, ObjectName, QueryBody,
    SelectItem, SignalItem, StatementKind, SystemVariable,
};
use value::ColumnType;

use crate::worker::held_plans::Ticket;
use crate::worker::parsed::Parsed;

/// A compiled program.
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
    /// It can send results to the client.
    pub(crate) has_results: bool,
}

/// A variable of a program.
#[derive(Debug)]
pub(crate) struct Variable {
    /// Its name, for messages.
    pub(crate) name: String,
    /// Its type; `None` if it takes the type of its value.
    pub(crate) column_type: Option<ColumnType>,
    /// The declared type; `column_type` of a TIMESTAMP is DATETIME.
    pub(crate) declared: Option<ColumnType>,
    /// It takes NULL; the counter of a FOR loop does not.
    pub(crate) is_nullable: bool,
    /// The direction in which a parameter passes its value.
    pub(crate) direction: Direction,
}

/// A statement or expression of a program. An expression is `SELECT expression`.
#[derive(Debug)]
pub(crate) struct Fragment {
    /// Its tree, and the text of the whole program.
    pub(crate) parsed: Parsed,
    /// For each of its parameters the variable, and the position of its name.
    pub(crate) locals: Vec<(usize, syntax::Span)>,
    /// Set if the whole fragment is this variable.
    pub(crate) only: Option<usize>,
    /// The plan that it ran last, if it is still kept.
    pub(crate) held: Cell<Option<Ticket>>,
}

impl Fragment {
    /// The word that the fragment consists of, if that is no variable: `ON` of `SET x = ON`.
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
    /// EXIT: its block is left when it is done.
    pub(crate) is_exit: bool,
    /// Handlers of one block have the same number.
    pub(crate) block: usize,
    /// Where its own instructions begin.
    pub(crate) entry: usize,
    /// The end of its block, where its handlers are no longer active.
    pub(crate) exit: usize,
}

/// One step of a program.
#[derive(Debug)]
pub(crate) enum Instruction {
    /// A statement; its rows go to the client.
    Statement(Box<Fragment>),
    /// `CALL`.
    Call(Box<Call>),
    /// Sets a variable to NULL.
    Clear(usize),
    /// Assigns a value to a variable.
    SetLocal { slot: usize, value: Rc<Fragment> },
    /// Assigns a value to `@name`.
    SetUser { name: String, value: Box<Fragment> },
    /// Assigns a value, or its default, to a system variable.
    SetSystem {
        variable: SystemVariable,
        value: Option<Box<Fragment>>,
    },
    /// Continues elsewhere.
    Jump(usize),
    /// Continues elsewhere unless the condition holds. A CONTINUE handler of an error within the
    /// condition continues at `resume`.
    JumpUnless {
        condition: Box<Fragment>,
        target: usize,
        resume: usize,
    },
    /// Activates these handlers.
    EnterHandlers { first: usize, count: usize },
    /// Deactivates this many handlers.
    LeaveHandlers(usize),
    /// Ends the running handler.
    EndHandler,
    /// Closes those of these cursors that are open.
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
    /// Continues elsewhere if a FOR loop over integers has passed its limit.
    RangeTest { range: CounterRange, target: usize },
    /// Takes the next integer of a FOR loop and continues at its start.
    RangeNext { range: CounterRange, start: usize },
    /// Takes the next row of a FOR loop, or continues elsewhere.
    NextRow { row: Box<RowOf>, target: usize },
    /// `RETURN`: assigns the function's result.
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
pub(crate) struct CounterRange {
    /// The counter.
    pub(crate) index: usize,
    /// The limit.
    pub(crate) limit: usize,
    /// It counts downwards.
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
    /// The variable that the argument is, to which an OUT value is assigned.
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
