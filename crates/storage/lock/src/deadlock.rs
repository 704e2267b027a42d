//! The search for a cycle of waits.
//!
//! The graph is read edge by edge, one shard mutex at a time, so what is found may never have
//! existed at one moment. Therefore a cycle is looked at twice: if each member still waits by the
//! same request and is still blocked by the next, then all those waits lasted from the end of the
//! first look to the begin of the second, none of the members could release anything in between,
//! and the cycle is real.
//!
//! **Cost.** Who waits exclusively for a row waits for everyone who stands before him, and
//! whomever one of those waits for in that queue he waits for himself. So nobody in the queue leads
//! anywhere that its holders do not lead to, and the search goes on from these alone
//! (`Queue::ways`): a thousand waiters of one row cost it as much as one. Two things are lost by
//! that, and looked at by themselves: that the start stands in the queue that the search comes to,
//! and that somebody who stands before the start waits for a weaker lock that the start has.

use std::collections::HashSet;
use std::sync::Arc;

use foldhash::fast::FixedState;
use format::TxnId;

use crate::table::LockTable;
use crate::waiter::Waiter;

/// How many transactions one search may visit: holders of shared locks, and who holds what they
/// wait for. A longer search is given up; the wait then ends by its time-out.
const VISITED_COUNT_MAX: usize = 4096;

/// Transactions that wait for each other, each for the next and the last for the first.
#[derive(Debug)]
pub(crate) struct Cycle {
    /// Never empty.
    members: Vec<Arc<Waiter>>,
}

/// What a search has come to.
#[derive(Debug)]
pub(crate) struct Search {
    /// A cycle through the start, if there is one.
    pub(crate) cycle: Option<Cycle>,
    /// Waits and holders that were looked at.
    pub(crate) step_count: u64,
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

/// Looks for a cycle through `start`.
pub(crate) fn find_cycle(table: &LockTable, start: &Arc<Waiter>) -> Search {
    let mut step_count = 1;
    let members = match table.mutual_waiter(start) {
        Some(other) => Some(vec![Arc::clone(start), other]),
        None => walk(table, start, &mut step_count),
    };
    let cycle = members
        .map(|members| Cycle { members })
        .filter(|cycle| cycle.is_real(table));
    Search { cycle, step_count }
}

/// Goes through everyone whom `start` waits for, until somebody waits for it.
fn walk(table: &LockTable, start: &Arc<Waiter>, step_count: &mut u64) -> Option<Vec<Arc<Waiter>>> {
    let mut visited: HashSet<TxnId, FixedState> = HashSet::default();
    let mut path = vec![Branch::new(table, Arc::clone(start))];
    while let Some(branch) = path.last_mut() {
        let Some(blocker) = branch.unexplored.pop() else {
            path.pop();
            continue;
        };
        if blocker == start.owner {
            return Some(members(path));
        }
        if VISITED_COUNT_MAX <= visited.len() || !visited.insert(blocker) {
            continue;
        }
        *step_count += 1;
        let Some(waiter) = table.wait_of(blocker) else {
            continue;
        };
        let is_closed = waiter.stands_behind(start);
        path.push(Branch::new(table, waiter));
        if is_closed {
            return Some(members(path));
        }
    }
    None
}

fn members(path: Vec<Branch>) -> Vec<Arc<Waiter>> {
    path.into_iter().map(|branch| branch.waiter).collect()
}

/// A transaction on the path from the start, with the edges not followed yet.
struct Branch {
    waiter: Arc<Waiter>,
    unexplored: Vec<TxnId>,
}

impl Branch {
    fn new(table: &LockTable, waiter: Arc<Waiter>) -> Self {
        let unexplored = table.ways(&waiter);
        Self { waiter, unexplored }
    }
}
