//! Runs a plan over a store: restartable operators, row by row.
//!
//! Start reading at [`Execution`] (what the session drives), then `operator` (producers of rows)
//! and `write` (what changes tables). The current rows stand in the frame of crate `expression`; an
//! operator moves slots of the frame, expressions read them.
//!
//! Nothing here is async. An operation that must wait returns [`Interrupt::Suspend`] and keeps its
//! place in the operators' own fields. The session awaits and calls [`Execution::step`] again. A
//! long statement yields by itself: it looks at the clock every [`ROWS_PER_TURN`] rows.

#![forbid(unsafe_code)]

mod context;
mod execution;
mod handler_counts;
mod interrupt;
mod kept_slots;
mod keys;
mod operator;
mod progress;
mod sink;
mod write;

pub use context::ROWS_PER_TURN;
pub(crate) use context::operator::{Operator, Rewind};
pub use execution::{Execution, ExecutionContext};
pub use handler_counts::{HandlerCall, HandlerCounts};
pub use interrupt::{
    Effect, ExecutionError, FunctionCall, Interrupt, Outcome, client_error, effect_of,
};
pub use progress::{Progress, Summary};
pub use sink::{Flow, KeptRows, RowSink};
