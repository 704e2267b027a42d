//! SQL's operators and scalar functions, with MySQL's result types, NULL logic and errors.
//!
//! A call is bound once ([`bind`]): the number of arguments is checked (error 1582), and the type
//! of the result is inferred from theirs. A bound call is evaluated for each row
//! ([`Bound::eval`]) over borrowed values. The functions and their names are those of
//! `builtin::TABLE`. Operators are among them.
//!
//! The executor does the rest: aggregates, user variables, and everything that must wait or read
//! tables (`SLEEP`, `BENCHMARK`, `GET_LOCK`, subqueries).

#![forbid(unsafe_code)]

mod bind;
mod binder;
mod context;
mod matcher;
mod null;
mod random_state;

mod infer;

mod cast;
mod comparison;
mod control;
mod geometry;
mod info;
mod json;
mod logic;
mod network;
mod number;
mod text;
mod time;

pub use bind::{Arg, BindEnv, Bound};
pub use binder::{bind, bind_cast, bind_collate, bind_convert, type_of_union};
pub use context::{Context, DivisionByZero, SessionFacts};
pub use geometry::{refuse_geometry, refuse_geometry_with};
pub use matcher::{Meter, Patterns};
pub use random_state::{RandomState, Seeds};
