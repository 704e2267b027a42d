//! Finds anomalies of isolation, and lost commits, in histories of transactions.
//!
//! After Kingsbury and Alvaro, "Elle: Inferring Isolation Anomalies from Experimental
//! Observations", VLDB 2020. Each written element is unique, and what is read tells the order in
//! which elements were written. So the dependencies between transactions are known, and a cycle of
//! them is an anomaly.
//!
//! InnoDB's levels are not those of the textbook: under REPEATABLE READ a plain SELECT reads a
//! snapshot, and a change or a locking read what is committed. So each read says how it was made
//! ([`Mode`]). From the mode follows which of two moments was first: that of a read and that of a
//! commit. A cycle of such moments is forbidden at each level, also where levels meet. Textbook
//! cycles are looked for, too, and held against the table of what a level allows
//! ([`Level::allows`]).
//!
//! * `model`: what a history is made of;
//! * `anomaly`: names of what can be wrong, and the table of levels;
//! * `versions`: who wrote which version of a key, and what is wrong without any cycle;
//! * `graph`: a graph, its components and its short cycles;
//! * `moments`: which moment was before which, and cycles among them;
//! * `survey`: the textbook's cycles.
#![forbid(unsafe_code)]

mod anomaly;
mod graph;
mod model;
mod moments;
mod survey;
#[cfg(test)]
mod tests;
mod versions;

use std::collections::BTreeMap;

pub use anomaly::{Anomaly, Finding, Level};
pub use model::{
    Act, Element, Ending, History, Key, Mode, Moment, Seen, Span, Statement, Transaction,
};

/// What a history shows.
#[derive(Debug, Default)]
pub struct Verdict {
    /// What must not be, at most [`FINDINGS_MAX`] of them.
    pub findings: Vec<Finding>,
    /// How many there are in all.
    pub finding_count: u64,
    /// How often each anomaly was met among those looked at, allowed or not.
    pub met: BTreeMap<Anomaly, u64>,
    /// Transactions that are known to be committed.
    pub committed_count: u64,
    /// Of these, how many were not acknowledged.
    pub inferred_count: u64,
    /// Transactions without changes that were acknowledged and had read what a kill then took away:
    /// allowed while reads do not wait for the log.
    pub lost_read_count: u64,
}

/// Findings with a text in one verdict. One fault of a server shows in thousands of places.
pub const FINDINGS_MAX: usize = 20;

/// Looks for all anomalies of a history. `level`: that of all transactions, if they have one.
pub fn check(history: &History, level: Option<Level>) -> Verdict {
    let mut verdict = Verdict::default();
    let versions = versions::Versions::of(history, &mut verdict);
    let dependencies = moments::check(history, &versions, &mut verdict);
    survey::check(history, &dependencies, level, &mut verdict);
    verdict
}

impl Verdict {
    fn add(&mut self, anomaly: Anomaly, text: impl FnOnce() -> String) {
        self.finding_count += 1;
        if self.findings.len() < FINDINGS_MAX {
            let text = text();
            self.findings.push(Finding { anomaly, text });
        }
    }
}
