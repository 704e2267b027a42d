//! A running program: its variables, its open cursors, and its active handlers.
//!
//! Active handlers are a stack, the innermost last. While one runs, it and those of its block and
//! of inner blocks are off the stack. So a condition in a handler goes to the handlers around its
//! block.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use catalog::{Routine, RoutineKey};
use errcode::{ClientError, ER_SP_STACK_TRACE};
use expression::Share;
use value::{ColumnType, TypeKind, Value};

use crate::connection::condition::Condition;
use crate::connection::kept_rows::CursorRows;
use crate::connection::state::State;
use crate::worker::program::Compiled;

/// A program that is running.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) program: Rc<Compiled>,
    /// The routine's key; `None` for a compound statement.
    pub(crate) key: Option<RoutineKey>,
    /// Its definition.
    routine: Option<Arc<Routine>>,
    /// The variables' values; changed by [`Frame::set`].
    pub(crate) values: Vec<Value>,
    /// The memory share of the texts among them, and their bytes.
    kept: (Share, usize),
    /// Their types.
    pub(crate) types: Vec<ColumnType>,
    /// Open cursors.
    pub(crate) cursors: Vec<Option<CursorState>>,
    /// Variables that are fields of rows and that the current row lacks, with the error of their
    /// use.
    pub(crate) absent: BTreeMap<usize, ClientError>,
    /// RETURN was reached.
    pub(crate) has_returned: bool,
    /// The active handlers.
    pub(crate) handlers: Vec<HeldHandler>,
    /// Handlers that are running.
    pub(crate) running: Vec<RunningHandler>,
}

/// What a value takes in addition to its slot.
fn text_bytes(value: &Value) -> usize {
    match value {
        Value::Bytes(text) => text.len(),
        _ => 0,
    }
}

/// A cursor that is open.
#[derive(Debug)]
pub(crate) struct CursorState {
    pub(crate) rows: CursorRows,
    /// The columns of the fields of a FOR loop's row, once they are known.
    pub(crate) places: Option<Rc<[Option<usize>]>>,
}

/// An active handler.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeldHandler {
    /// Its number.
    pub(crate) number: usize,
    /// How many handlers were running when its block began. Those that began later run within the
    /// block, and an EXIT handler leaves them with it.
    pub(crate) running_count: usize,
}

/// A handler that is running.
#[derive(Debug)]
pub(crate) struct RunningHandler {
    /// The handlers that become active again when it is done; none for an EXIT handler.
    pub(crate) saved: Vec<HeldHandler>,
    /// Where the program continues then.
    pub(crate) resume: usize,
    /// What it handles.
    pub(crate) condition: Condition,
}

impl Frame {
    /// A program that begins, with all variables NULL.
    pub(crate) fn new(program: Rc<Compiled>) -> Self {
        let of = |variable: &crate::worker::program::Variable| {
            let null = || ColumnType::new(TypeKind::Null);
            variable.column_type.clone().unwrap_or_else(null)
        };
        Self {
            values: vec![Value::Null; program.variables.len()],
            kept: (Share::default(), 0),
            types: program.variables.iter().map(of).collect(),
            cursors: program.cursors.iter().map(|_| None).collect(),
            absent: BTreeMap::new(),
            has_returned: false,
            handlers: Vec::new(),
            running: Vec::new(),
            program,
            key: None,
            routine: None,
        }
    }

    /// A program that begins with these values in its variables.
    pub(crate) fn with_values(
        program: Rc<Compiled>,
        (values, types): (Vec<Value>, Vec<ColumnType>),
        state: &State,
    ) -> Result<Self, ClientError> {
        let mut frame = Self {
            types,
            ..Self::new(program)
        };
        for (slot, value) in values.into_iter().enumerate() {
            frame.set(slot, value, state)?;
        }
        Ok(frame)
    }

    /// Assigns a value to a variable; error 1290 or 1041 if there is no memory for its text.
    pub(crate) fn set(
        &mut self,
        slot: usize,
        value: Value,
        state: &State,
    ) -> Result<(), ClientError> {
        let (share, bytes) = &mut self.kept;
        let (old, new) = (text_bytes(&self.values[slot]), text_bytes(&value));
        if old != new {
            state.count(share, *bytes - old + new)?;
            *bytes = *bytes - old + new;
        }
        self.values[slot] = value;
        Ok(())
    }

    /// A routine that begins.
    pub(crate) fn of(routine: &Arc<Routine>, key: RoutineKey, program: Rc<Compiled>) -> Self {
        Self {
            key: Some(key),
            routine: Some(Arc::clone(routine)),
            ..Self::new(program)
        }
    }

    /// The trace entry of an error that no handler took.
    pub(crate) fn trace(&self, instruction: usize) -> Option<ClientError> {
        let line = self.program.lines.get(instruction)?;
        let name = match &self.routine {
            Some(routine) => format!("{}.{}", routine.database, routine.name),
            None if self.program.is_block => String::from("anonymous block"),
            None => return None,
        };
        Some(ClientError::new(ER_SP_STACK_TRACE, &[line, &name]))
    }
}
