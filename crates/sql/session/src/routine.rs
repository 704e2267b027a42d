//! Stored programs: procedures, compound statements, and the statements that create and drop them.
//!
//! ```text
//! mysql.proc --load--> server.routines --parse, compile (once a worker)--> Compiled
//!                                                                            |
//! CALL --arguments--> Frame (variables, handlers, cursors) --run, one instruction after another
//! a statement that stops at a call of a function --likewise--> its value, and goes on
//! ```
//!
//! `system::routines` keeps routines in their table. `definition` answers CREATE, ALTER, DROP and
//! SHOW CREATE. `compile` turns a tree into `worker::program::Compiled`. `run` is the loop over
//! instructions. `evaluate` has what they share: a fragment of the text, planned once, whose
//! parameters are the routine's variables. `function` runs functions. `call` passes arguments and
//! switches to the routine's privileges. `condition` finds handlers; `signal` raises and reads
//! conditions.

mod call;
mod compile;
mod condition;
mod definition;
mod evaluate;
mod for_loop;
mod function;
mod run;
mod signal;

/// How deep routines may call each other. Each level costs stack: in builds without optimisation
/// some 20 KiB, of 2 MiB.
pub(crate) const NESTED_COUNT_MAX: usize = if cfg!(debug_assertions) { 24 } else { 128 };
