//! A session's XA transaction: its name and state.

use errcode::{
    ClientError, ER_LOCK_DEADLOCK, ER_LOCK_WAIT_TIMEOUT, ER_XA_RBDEADLOCK, ER_XA_RBROLLBACK,
    ER_XA_RBTIMEOUT, ER_XAER_RMFAIL, ErrorCode,
};

use crate::xa::XaName;

/// See the module's head.
#[derive(Debug)]
pub(crate) struct XaBranch {
    pub(crate) name: XaName,
    pub(crate) state: XaState,
}

/// What may be done with it. See the head of [`crate::xa`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum XaState {
    /// Statements belong to it.
    Active,
    /// No more statements belong to it.
    Idle,
    /// It survives a crash. Without changes there is nothing to survive.
    Prepared,
    /// It was rolled back, for the reason of this error.
    RollbackOnly(ErrorCode),
}

impl XaState {
    /// As error 1399 names it.
    fn name(self) -> &'static str {
        match self {
            Self::Active => "ACTIVE",
            Self::Idle => "IDLE",
            Self::Prepared => "PREPARED",
            Self::RollbackOnly(_) => "ROLLBACK ONLY",
        }
    }

    /// The state behind an error that has rolled the transaction back.
    pub(crate) fn lost(error: ErrorCode) -> Self {
        Self::RollbackOnly(match error {
            ER_LOCK_DEADLOCK => ER_XA_RBDEADLOCK,
            ER_LOCK_WAIT_TIMEOUT => ER_XA_RBTIMEOUT,
            _ => ER_XA_RBROLLBACK,
        })
    }
}

/// Error 1399: the state of the session's XA transaction forbids the statement.
pub(crate) fn wrong_state(state: Option<XaState>) -> ClientError {
    let name = state.map_or("NON-EXISTING", XaState::name);
    ClientError::new(ER_XAER_RMFAIL, &[&name])
}
