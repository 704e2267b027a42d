//! The search for a cycle of waits.
//!
//! The graph is read edge by edge, one shard mutex at a time, so what is found may never have
//! existed at one moment. Therefore a cycle is looked at twice: if each member still waits by the
//! same request and is still blocked by the next, then all those waits lasted from the end of the
//! first look to the begin of the second, none of the members could release anything in between,
//! and the cycle is real.

use std::collections::HashSet;
use std::sync::Arc;

use foldhash::fast::FixedState;
use format::TxnId;

use crate::table::LockTable;
use crate::waiter::Waiter;

/// How many transactions one search may visit. A longer search is given up: the wait then ends by
/// its time-out, or a search from another member finds the cycle by a shorter way.
const VISITED_COUNT_MAX: usize = 4096;

/// Transactions that wait for each other, each for the next and the last for the first.
#[derive(Debug)]
pub(crate) struct Cycle {
    /// Never empty.
    members: Vec<Arc<Waiter>>,
}

impl Cycle {
    /// Whose rollback costs least; among equals, who began to wait last.
    pub(crate) fn victim(&self) -> &Arc<Waiter> {
        self.members
            .iter()
            .min_by_key(|waiter| (waiter.weight, u64::MAX - waiter.sequence))
            .expect("a cycle has members")
    }

    /// The second look.
    fn is_real(&self, table: &LockTable) -> bool {
        let followers = self.members.iter().cycle().skip(1);
        self.members.iter().zip(followers).all(|(waiter, next)| {
            waiter.verdict().is_none() && table.blockers(waiter).contains(&next.owner)
        })
    }
}

/// A cycle through `start`, if there is one.
pub(crate) fn find_cycle(table: &LockTable, start: &Arc<Waiter>) -> Option<Cycle> {
    let mut visited: HashSet<TxnId, FixedState> = HashSet::default();
    let mut path = vec![Branch::new(table, Arc::clone(start))];
    while let Some(branch) = path.last_mut() {
        let Some(blocker) = branch.unexplored.pop() else {
            path.pop();
            continue;
        };
        if blocker == start.owner {
            let members = path
                .iter()
                .map(|branch| Arc::clone(&branch.waiter))
                .collect();
            let cycle = Cycle { members };
            return cycle.is_real(table).then_some(cycle);
        }
        if VISITED_COUNT_MAX <= visited.len() || !visited.insert(blocker) {
            continue;
        }
        if let Some(waiter) = table.wait_of(blocker) {
            path.push(Branch::new(table, waiter));
        }
    }
    None
}

/// A transaction on the path from the start, with the edges not followed yet.
struct Branch {
    waiter: Arc<Waiter>,
    unexplored: Vec<TxnId>,
}

impl Branch {
    fn new(table: &LockTable, waiter: Arc<Waiter>) -> Self {
        let unexplored = table.blockers(&waiter);
        Self { waiter, unexplored }
    }
}
