//! [`Programs`]: the stored programs that a session is running.

use std::collections::BTreeMap;
use std::rc::Rc;

use errcode::ClientError;
use expression::Diagnostics;
use store::TableId;
use syntax::ast::SignalItem;
use value::{ColumnType, Value};

use crate::connection::frame::Frame;

/// The programs that a session is running, the innermost last.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    pub(crate) frames: Vec<Frame>,
    /// The outermost program's deadline; the outer `None`: no program is running.
    pub(crate) deadline: Option<Option<u64>>,
    /// The last condition that SIGNAL raised, with the items that the list of warnings cannot hold.
    pub(crate) signalled: Option<Box<Signalled>>,
    /// The call trace of the current error, the innermost first.
    pub(crate) trace: Vec<ClientError>,
    /// Stored functions that are running, nested in each other.
    pub(crate) function_count: usize,
    /// The tables of the statements that call them.
    pub(crate) used_tables: Vec<TableId>,
    /// Rows that the statements of the outermost program have changed.
    pub(crate) affected_rows: u64,
    /// The rows that are being sent are OUT parameters.
    pub(crate) is_telling_outputs: bool,
    /// The list of warnings is an earlier instruction's.
    pub(crate) has_kept_warnings: bool,
    /// A list of warnings that is not in use.
    pub(crate) spare: Rc<Diagnostics>,
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

/// A condition that SIGNAL raised.
#[derive(Debug)]
pub(crate) struct Signalled {
    pub(crate) error: ClientError,
    pub(crate) items: BTreeMap<SignalItem, String>,
}

impl Signalled {
    /// Adds the SQLSTATE to an error of the list of warnings, if it is this one.
    pub(crate) fn complete(&self, error: &mut ClientError) {
        if self.error.code == error.code && self.error.message == error.message {
            error.sqlstate = self.error.sqlstate;
        }
    }

    /// The text of an item, or none.
    pub(crate) fn item(&self, item: SignalItem) -> &str {
        self.items.get(&item).map_or("", String::as_str)
    }
}

/// The value of an OUT parameter after a prepared CALL.
#[derive(Debug)]
pub(crate) struct Output {
    /// The number of its `?`.
    pub(crate) number: usize,
    pub(crate) name: String,
    pub(crate) column_type: ColumnType,
    pub(crate) value: Value,
}
