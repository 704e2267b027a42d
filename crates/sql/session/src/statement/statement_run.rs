//! [`StatementRun`]: how one statement runs, from its beginning to its reply.
//!
//! One is made for each statement and passed down. What it says ends with the statement; what a
//! session remembers longer is in [`State`]. It is what expressions see of the session, too: their
//! waits are the statement's.

use std::cell::{RefCell, RefMut};
use std::rc::Rc;
use std::sync::Arc;

use builtin::SessionFunction;
use expression::{Failure, MemoryPool, SessionContext};
use function::SessionFacts;
use planner::OutputColumn;
use settings::VariableScope;
use store::TableId;
use value::{ColumnType, Value};

use crate::connection::row_encoder::RowProtocol;
use crate::connection::state::State;
use crate::statement::wait::Waits;

/// How one statement runs.
#[derive(Debug)]
pub(crate) struct StatementRun {
    /// The session that runs it. Constant.
    pub(crate) state: Rc<State>,
    /// How its rows are written. Constant.
    pub(crate) protocol: RowProtocol,
    /// There while it is only asked what its rows look like.
    pub(crate) described: Option<Rc<[OutputColumn]>>,
    /// It failed when it had begun to send rows.
    pub(crate) has_partial_rows: bool,
    /// Whether it is a part of another statement.
    pub(crate) part: Part,
    /// What it has to wait for.
    pub(super) waits: RefCell<Waits>,
}

/// Whether a statement is a part of another, and of which.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Part {
    /// It is a whole statement.
    #[default]
    Whole,
    /// It is a part: the warnings that there are stay.
    Of,
    /// It fills the table of CREATE TABLE .. SELECT, which this session alone sees and has locked.
    Filling(TableId),
}

impl StatementRun {
    /// A statement that begins.
    pub(crate) fn new(state: &Rc<State>, protocol: RowProtocol) -> Self {
        Self {
            state: Rc::clone(state),
            protocol,
            described: None,
            has_partial_rows: false,
            part: Part::default(),
            waits: RefCell::default(),
        }
    }

    /// A part of another statement.
    pub(crate) fn part(state: &Rc<State>, part: Part) -> Self {
        Self {
            part,
            ..Self::new(state, RowProtocol::Text)
        }
    }

    /// True of the table that the statement fills.
    pub(crate) fn is_filling(&self, table: TableId) -> bool {
        self.part == Part::Filling(table)
    }
}

impl SessionContext for StatementRun {
    fn user_variable(&self, name: &str, as_type: &ColumnType) -> Value {
        self.state.user_variable(name, as_type)
    }

    fn set_user_variable(
        &self,
        name: &str,
        value: Value,
        column_type: &ColumnType,
    ) -> Result<(), Failure> {
        self.state.set_user_variable(name, value, column_type)
    }

    fn system_variable(&self, scope: Option<VariableScope>, name: &str) -> Result<Value, Failure> {
        self.state.system_variable(scope, name)
    }

    fn facts(&self) -> RefMut<'_, SessionFacts> {
        self.state.facts()
    }

    fn random(&self) -> u64 {
        self.state.random()
    }

    fn clock_us(&self) -> i64 {
        let owed_us = i64::try_from(self.owed_sleep_us()).unwrap_or(i64::MAX);
        self.state.worker.wall_us().saturating_add(owed_us)
    }

    fn call(&self, function: SessionFunction, arguments: &[Value]) -> Result<Value, Failure> {
        self.session_function(function, arguments)
    }

    fn is_killed(&self) -> bool {
        self.state.is_killed()
    }

    fn memory_pool(&self) -> Arc<MemoryPool> {
        self.state.memory_pool()
    }

    fn is_slice_over(&self) -> bool {
        runtime::is_slice_over()
    }

    fn give_way(&self) -> Result<(), Failure> {
        self.state.give_way()
    }

    fn begin_draft(&self) {
        self.state.begin_draft();
    }

    fn end_draft(&self) {
        drop(self.state.end_draft());
    }
}
