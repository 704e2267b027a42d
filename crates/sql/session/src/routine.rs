//! Stored programs: procedures, compound statements, and the statements that create and drop them.
//!
//! ```text
//! mysql.proc --load--> server.routines --parse, compile (once a worker)--> Compiled
//!                                                                            |
//! CALL --arguments--> Frame (variables, handlers, cursors) --run, one instruction after another
//! a statement that stops at a call of a function --likewise--> its value, and goes on
//! ```
//!
//! `store` keeps routines in their table. `definition` answers CREATE, ALTER, DROP and SHOW CREATE.
//! `compile` turns a tree into `program::Compiled`. `run` is the loop over instructions. `evaluate`
//! has what they share: a fragment of the text, planned once, whose parameters are the routine's
//! variables. `function` runs functions. `call` passes arguments and switches to the routine's
//! rights. `condition` finds handlers; `signal` raises and reads conditions.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use ::store::TableId;
use catalog::{Routine, RoutineKey};
use errcode::ClientError;
use expression::Diagnostics;
use foldhash::fast::FixedState;
use syntax::parse::RoutineError;

pub mod store;

mod call;
mod compile;
mod condition;
mod definition;
mod evaluate;
mod for_loop;
mod frame;
mod function;
mod held;
mod program;
mod run;
mod signal;

pub(crate) use call::{Output, parameters_of};
pub(crate) use held::HeldPlans;

use frame::Frame;
use program::Compiled;

/// Compiled routines that a worker keeps. At the limit all are dropped.
const COMPILED_COUNT_MAX: usize = 256;

/// How deep routines may call each other. Each level costs stack: in builds without optimisation
/// some 20 KiB, of 2 MiB.
pub(crate) const NESTED_COUNT_MAX: usize = if cfg!(debug_assertions) { 24 } else { 128 };

/// The programs that a session is running, the innermost last.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    frames: Vec<Frame>,
    /// The outermost program's deadline; the outer `None`: no program is running.
    deadline: Option<Option<u64>>,
    /// The last condition that SIGNAL raised, with the items that the list of warnings cannot hold.
    signalled: Option<Box<signal::Signalled>>,
    /// The call trace of the current error, the innermost first.
    trace: Vec<ClientError>,
    /// Stored functions that are running, nested in each other.
    function_count: usize,
    /// The tables of the statements that call them.
    used_tables: Vec<TableId>,
    /// Rows that the statements of the outermost program have changed.
    affected_rows: u64,
    /// The rows that are being sent are OUT parameters.
    is_telling_outputs: bool,
    /// The list of warnings is an earlier instruction's.
    has_kept_warnings: bool,
    /// A list of warnings that is not in use.
    spare: Rc<Diagnostics>,
}

impl Programs {
    /// Takes the call trace of the current error.
    pub(crate) fn take_trace(&mut self) -> Vec<ClientError> {
        std::mem::take(&mut self.trace)
    }

    /// True within a program that can send results to the client.
    pub(crate) fn is_running(&self) -> bool {
        !self.frames.is_empty() || self.is_telling_outputs
    }

    /// True while the OUT parameters of a prepared CALL are sent.
    pub(crate) fn is_telling_outputs(&self) -> bool {
        self.is_telling_outputs
    }

    /// The outermost program's deadline, if there is such a program.
    pub(crate) fn deadline(&self) -> Option<Option<u64>> {
        self.deadline
    }
}

/// Compiled routines of one worker. An entry is valid for the routine it was compiled from; a
/// replacement is another `Arc`.
#[derive(Debug, Default)]
pub(crate) struct CompiledRoutines {
    by_key: HashMap<RoutineKey, (Arc<Routine>, Rc<Compiled>), FixedState>,
}

impl CompiledRoutines {
    pub(crate) fn find(&self, key: &RoutineKey, routine: &Arc<Routine>) -> Option<Rc<Compiled>> {
        let (of, compiled) = self.by_key.get(key)?;
        Arc::ptr_eq(of, routine).then(|| Rc::clone(compiled))
    }

    pub(crate) fn put(&mut self, key: RoutineKey, of: Arc<Routine>, compiled: Rc<Compiled>) {
        if COMPILED_COUNT_MAX <= self.by_key.len() {
            self.by_key.clear();
        }
        self.by_key.insert(key, (of, compiled));
    }
}

/// The error for a stored program that contradicts itself. `name` is the name in question.
pub(crate) fn routine_error(kind: RoutineError, name: &str) -> ClientError {
    let code = kind.code();
    match kind {
        RoutineError::LeaveLabel => ClientError::new(code, &[&"LEAVE", &name]),
        RoutineError::IterateLabel => ClientError::new(code, &[&"ITERATE", &name]),
        RoutineError::Statement(what)
        | RoutineError::StatementInFunction(what)
        | RoutineError::Create(what)
        | RoutineError::Change(what)
        | RoutineError::Unsupported(what) => ClientError::new(code, &[&what]),
        RoutineError::LabelAgain
        | RoutineError::EndLabel
        | RoutineError::UndeclaredCondition
        | RoutineError::NoReturn
        | RoutineError::UndeclaredCursor
        | RoutineError::UndeclaredVariable
        | RoutineError::ParameterAgain
        | RoutineError::VariableAgain
        | RoutineError::ConditionAgain
        | RoutineError::CursorAgain
        | RoutineError::CursorParameterCount
        | RoutineError::BadState => ClientError::new(code, &[&name]),
        RoutineError::SignalItemAgain => ClientError::new(code, &[&name.to_uppercase()]),
        RoutineError::ResultSet => ClientError::new(code, &[&"function"]),
        RoutineError::Return
        | RoutineError::CursorInto
        | RoutineError::VariableLate
        | RoutineError::CursorLate
        | RoutineError::HandlerAgain
        | RoutineError::SignalCondition
        | RoutineError::Commit
        | RoutineError::Autocommit => ClientError::new(code, &[]),
    }
}
