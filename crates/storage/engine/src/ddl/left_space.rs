//! Tablespaces whose files exist although no row of the dictionary names them.
//!
//! A schema change makes a tablespace before the row that names it. It also commits a new row
//! before it removes the tablespace that the old row named. In between it may fail, or be dropped.
//! Then the tablespace is *left*: it stands in the worker's list, and the next reader of the list
//! removes it, the background at the latest. A crash loses the list; the next start finds the
//! files.
//!
//! (S1) A tablespace is in the list, or has one `UnnamedSpace`, or is named by a committed row.

use std::cell::Cell;
use std::rc::Rc;

use format::SpaceId;
use store::StoreError;
use sync::Notify;

use crate::worker::{LeftSpaces, Worker};

/// A tablespace that no committed row names. If it is dropped in this state, it is left.
#[derive(Debug)]
pub(crate) struct UnnamedSpace {
    /// The tablespace. Constant.
    pub(crate) id: SpaceId,
    /// The list that it joins if it is left. Constant.
    left: LeftSpaces,
    /// Wakes the background then.
    due: Rc<Notify>,
    /// Whether a committed row names it, or it is removed.
    is_settled: Cell<bool>,
}

impl UnnamedSpace {
    /// Takes charge of a tablespace for `worker`.
    pub(crate) fn new(worker: &Worker, id: SpaceId) -> Self {
        let left = Rc::clone(&worker.left_spaces);
        let due = Rc::clone(&worker.orphans_due);
        let is_settled = Cell::new(false);
        Self {
            id,
            left,
            due,
            is_settled,
        }
    }

    /// Notes that a committed row names it now, or that it is removed.
    pub(crate) fn settle(&self) {
        let was_settled = self.is_settled.replace(true);
        assert!(!was_settled, "a row names it, or it is removed: once (S1)");
    }
}

impl Drop for UnnamedSpace {
    fn drop(&mut self) {
        if !self.is_settled.get() {
            let mut left = self.left.borrow_mut();
            assert!(!left.contains(&self.id), "it is in the list once (S1)");
            left.push(self.id);
            self.due.notify_own();
        }
    }
}

impl Worker {
    /// Removes the left tablespaces. What cannot be removed stays in the list.
    pub(crate) async fn remove_left_spaces(&self) -> Result<(), StoreError> {
        loop {
            let last = self.left_spaces.borrow_mut().pop();
            let Some(id) = last else {
                return Ok(());
            };
            let space = UnnamedSpace::new(self, id);
            self.remove_space(space.id).await?;
            space.settle();
        }
    }
}
