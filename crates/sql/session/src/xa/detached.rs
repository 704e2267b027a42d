//! Prepared transactions whose sessions have ended (X2).

use store::Transaction;

use crate::lock::metadata::SharedHold;

/// A prepared transaction that no session has.
#[derive(Debug)]
pub(crate) struct Detached {
    /// `None` if it had no changes: then it was rolled back with its session.
    pub(crate) open: Option<Box<dyn Transaction>>,
    /// The locks of its tables, until its end.
    _holds: Vec<SharedHold>,
}

impl Detached {
    pub(crate) fn new(open: Option<Box<dyn Transaction>>, holds: Vec<SharedHold>) -> Self {
        Self {
            open,
            _holds: holds,
        }
    }
}
