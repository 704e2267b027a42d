//! How many transactions may be inside an engine at a time, and who comes next.
//!
//! Beyond some number of transactions an engine does less with each more: they wait for each
//! other's locks, and what they hold makes others wait. So transactions are admitted: not
//! connections, which may be idle, and not statements, whose transactions may hold what others wait
//! for.
//!
//! ```text
//! session --enter--> gate (one a worker) --report, each period--> shared --sample--> controller
//!                      ^                                           |                   |
//!                      '------------------- quota -----------------'<------ limit -----'
//! ```
//!
//! Reading order: [`gate`] (who is inside and who waits), [`shared`] (what the workers share),
//! [`controller`] (which limit), `climb` (how it is found).
//!
//! The controller is a pure structure: no clock, no I/O, no atomics. A gateway may set the limit of
//! a pool of connections by it. Gates know no engine and no runtime: the caller passes the time and
//! calls [`gate::Gate::tick`].

#![forbid(unsafe_code)]

pub mod gate;
mod numbers;
pub mod shared;
mod show;

pub mod controller;

mod climb;
mod memory;
pub mod sample;
mod window;

pub use controller::{Controller, Decision};
pub use gate::{Entry, Gate, Pass, Queued, Visitor};
pub use sample::{Debt, Sample};
pub use shared::{Admission, Limit};

/// Between these a limit stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The lowest limit; at least 1.
    pub min: u32,
    /// The highest.
    pub max: u32,
}

impl Bounds {
    pub(crate) fn clamp(self, limit: f64) -> f64 {
        limit.clamp(f64::from(self.min), f64::from(self.max))
    }
}
