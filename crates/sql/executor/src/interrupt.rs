//! Why a running plan stops early: it has to wait, or it failed with an error for the client.

use errcode::{
    ClientError, EE_WRITE, ER_AUTOINC_READ_FAILED, ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION,
    ER_CANT_OPEN_FILE, ER_DUP_KEY, ER_ERROR_ON_READ, ER_LOCK_DEADLOCK, ER_LOCK_TABLE_FULL,
    ER_LOCK_WAIT_TIMEOUT, ER_TABLE_DEF_CHANGED, ER_TABLE_EXISTS_ERROR, ER_TOO_BIG_ROWSIZE,
    ER_TOO_LONG_KEY, ER_XA_RBROLLBACK, WORDS_DAMAGED, WORDS_DISK_FULL, WORDS_INCONSISTENT,
    WORDS_LOG_FAILED, WORDS_TABLE_CHANGED, WORDS_WRITE_SET_TOO_LARGE,
};
use expression::{Failure, StoredFunction};
use std::rc::Rc;
use store::{StoreError, Suspend};
use value::{ColumnType, Value};

/// The result of every operation in this crate.
pub type Outcome<T> = Result<T, Interrupt>;

/// Why an operation has not completed.
#[derive(Debug)]
pub enum Interrupt {
    /// Await it, then call the same operation again.
    Suspend(Suspend),
    /// Run a stored function, hand its result to the execution, then call the same operation again.
    Call(Box<FunctionCall>),
    /// The statement failed.
    Error(Box<ExecutionError>),
}

/// A stored function that has to run.
#[derive(Debug)]
pub struct FunctionCall {
    /// The function.
    pub function: Rc<StoredFunction>,
    /// The values of its arguments.
    pub arguments: Vec<Value>,
    /// Their types.
    pub types: Vec<ColumnType>,
}

/// A failed statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionError {
    /// The error for the client.
    pub error: ClientError,
    /// What the session must do.
    pub effect: Effect,
}

/// What a failure means for the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Roll back to the statement's mark.
    Statement,
    /// The store has rolled the whole transaction back already.
    Transaction,
    /// A table differs from the one that the plan was made for: plan again and start over. If it
    /// comes from an execution's start, nothing was changed.
    StalePlan,
    /// The log failed: nothing may be acknowledged from now on.
    Fatal,
}

impl From<Suspend> for Interrupt {
    fn from(suspend: Suspend) -> Self {
        Self::Suspend(suspend)
    }
}

impl From<Failure> for Interrupt {
    fn from(failure: Failure) -> Self {
        Self::from(*failure)
    }
}

impl From<ClientError> for Interrupt {
    fn from(error: ClientError) -> Self {
        Self::Error(Box::new(ExecutionError {
            error,
            effect: Effect::Statement,
        }))
    }
}

impl From<StoreError> for Interrupt {
    fn from(error: StoreError) -> Self {
        let effect = effect_of(&error);
        let error = client_error(&error);
        Self::Error(Box::new(ExecutionError { error, effect }))
    }
}

impl From<store::Interrupt> for Interrupt {
    fn from(interrupt: store::Interrupt) -> Self {
        match interrupt {
            store::Interrupt::Suspend(suspend) => Self::Suspend(suspend),
            store::Interrupt::Error(error) => Self::from(error),
        }
    }
}

impl From<format::row::RowError> for Interrupt {
    fn from(error: format::row::RowError) -> Self {
        Self::from(*expression::damaged_row(&error))
    }
}

/// What a store error means for the transaction.
pub fn effect_of(error: &StoreError) -> Effect {
    match error {
        _ if error.ends_transaction() => Effect::Transaction,
        StoreError::DefinitionChanged | StoreError::NoSuchTable => Effect::StalePlan,
        StoreError::LogFailed => Effect::Fatal,
        _ => Effect::Statement,
    }
}

/// The client's error for a store error that no code nearer to it has translated.
pub fn client_error(error: &StoreError) -> ClientError {
    match error {
        StoreError::DuplicateKey { index } => {
            ClientError::new(ER_DUP_KEY, &[&format!("index {index}")])
        }
        StoreError::LockWaitTimeout | StoreError::LockNotAvailable => {
            ClientError::new(ER_LOCK_WAIT_TIMEOUT, &[])
        }
        StoreError::Deadlock => ClientError::new(ER_LOCK_DEADLOCK, &[]),
        StoreError::LockTableFull => ClientError::new(ER_LOCK_TABLE_FULL, &[]),
        StoreError::RolledBack => ClientError::new(ER_XA_RBROLLBACK, &[]),
        StoreError::NoSuchTable | StoreError::DefinitionChanged => {
            ClientError::worded(WORDS_TABLE_CHANGED, &[])
        }
        StoreError::SnapshotTooOld => ClientError::new(ER_TABLE_DEF_CHANGED, &[]),
        StoreError::TableExists => ClientError::new(ER_TABLE_EXISTS_ERROR, &[&""]),
        StoreError::RowTooLarge { limit, .. } => ClientError::new(ER_TOO_BIG_ROWSIZE, &[limit]),
        StoreError::KeyTooLarge { limit, .. } => ClientError::new(ER_TOO_LONG_KEY, &[limit]),
        StoreError::AutoIncrementExhausted => ClientError::new(ER_AUTOINC_READ_FAILED, &[]),
        StoreError::ReadOnly => ClientError::new(ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION, &[]),
        StoreError::DiskFull => ClientError::worded(WORDS_DISK_FULL, &[]),
        StoreError::NoDescriptor { file, os_error } => {
            ClientError::new(ER_CANT_OPEN_FILE, &[file, os_error])
        }
        StoreError::Disk {
            file,
            is_read: true,
            os_error,
        } => ClientError::new(ER_ERROR_ON_READ, &[file, os_error]),
        StoreError::Disk { file, os_error, .. } => ClientError::new(EE_WRITE, &[file, os_error]),
        StoreError::Damaged { what, .. } => ClientError::worded(WORDS_DAMAGED, &[what]),
        StoreError::LogFailed => ClientError::worded(WORDS_LOG_FAILED, &[]),
        StoreError::Remote {
            code, state, text, ..
        } => ClientError::of_server(*code, *state, &**text),
        StoreError::WriteSetTooLarge => ClientError::worded(WORDS_WRITE_SET_TOO_LARGE, &[]),
        StoreError::Inconsistent { table } => ClientError::worded(WORDS_INCONSISTENT, &[table]),
        StoreError::NotSupported { what } => ClientError::not_supported(what),
    }
}
