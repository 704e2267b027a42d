//! [`HeldPlan`]: the plan that a prepared statement ran last, as long as it is valid.

use std::rc::Rc;

use value::{ColumnType, Date};

use crate::connection::session::Session;
use crate::variables::system::Active;
use crate::worker::plan_cache::SharedPlan;

/// A plan made for certain parameter types, under certain variables, on a certain day. It is shared
/// with other sessions of the worker.
#[derive(Debug)]
pub(crate) struct HeldPlan {
    /// Of the parameters.
    types: Vec<ColumnType>,
    /// The date that a TIME value gets when it meets a date.
    today: Date,
    /// See [`store::Store::statistics_version`].
    statistics_version: u64,
    /// The session's variables; they are replaced when one changes.
    active: Rc<Active>,
    /// The plan.
    pub(crate) shared: Rc<SharedPlan>,
}

impl HeldPlan {
    /// Of the parameters.
    pub(crate) fn types(&self) -> &[ColumnType] {
        &self.types
    }
}

impl Session {
    /// A plan that serves executions with these types as long as all else stays.
    pub(crate) fn hold(&self, types: &[ColumnType], shared: Rc<SharedPlan>) -> HeldPlan {
        HeldPlan {
            types: types.to_vec(),
            today: self.state.wall_now().date(),
            statistics_version: self.state.worker.store.statistics_version(),
            active: Rc::clone(self.state.variables.borrow().active()),
            shared,
        }
    }

    /// True if a plan serves an execution with these types now.
    pub(crate) fn serves(&self, held: &HeldPlan, types: &[ColumnType]) -> bool {
        held.types == types
            && held.today == self.state.wall_now().date()
            && held.statistics_version == self.state.worker.store.statistics_version()
            && Rc::ptr_eq(&held.active, self.state.variables.borrow().active())
            && self.state.has_types_of(held.shared.plan())
    }
}
