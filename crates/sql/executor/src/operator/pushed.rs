//! What a store does in place of the nodes above a scan, with the values of this execution.

use std::rc::Rc;

use planner::{ColumnTest, PushedWork, key_ranges};
use store::{Pushed, TableDefinition};

use super::LimitCounts;
use crate::Outcome;
use crate::context::Context;

/// The pushed work over the current frame; `None` if there is none.
pub(super) fn values(
    work: &PushedWork,
    definition: &TableDefinition,
    cx: &Context<'_>,
) -> Outcome<Option<Rc<Pushed>>> {
    if work.conditions.is_empty() && work.limit.is_none() && work.grouping.is_none() {
        return Ok(None);
    }
    let mut ranges = |test: &ColumnTest| key_ranges(&test.plan, definition, &test.index, cx);
    let conditions = work.conditions.iter().map(|it| it.try_map(&mut ranges));
    let conditions = conditions.collect::<Outcome<_>>()?;
    let limit = work.limit.as_ref().map(|limit| LimitCounts::of(limit, cx));
    Ok(Some(Rc::new(Pushed {
        conditions,
        limit: limit.transpose()?.map(LimitCounts::total),
        grouping: work.grouping.clone(),
    })))
}
