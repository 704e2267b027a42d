//! What the store of a remote table does in place of the nodes above its scan.

use std::rc::Rc;

use store::{Condition, Grouping, IndexDefinition};

use super::Limit;
use crate::keys::KeyPlan;

/// What the store of a table has taken of the work above its scan.
#[derive(Debug, Default)]
pub struct PushedWork {
    /// Conditions that it tests.
    pub conditions: Vec<Condition<ColumnTest>>,
    /// The most rows that are wanted. The node of the limit stays: it also skips rows.
    pub limit: Option<Rc<Limit>>,
    /// The groups that come in place of rows. The scan's slot then has their values.
    pub grouping: Option<Rc<Grouping>>,
}

/// What a pushed condition says of a column. Its values are known before the scan starts.
#[derive(Debug)]
pub struct ColumnTest {
    /// An index on the whole column, whose ranges are computed.
    pub index: IndexDefinition,
    /// What it says of that index.
    pub plan: KeyPlan,
}
