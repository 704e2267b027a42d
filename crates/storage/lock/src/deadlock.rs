//! The search for cycles of waits.
//!
//! **When.** A cycle closes with its last edge, and edges appear in two ways only. A transaction
//! begins to wait, or a lock is entered for a transaction that did not ask for it
//! ([`LockTable::convert_implicit`], an inherited gap). The thread that adds such an edge calls
//! [`break_cycles`] afterwards for the transaction at its end. So the thread that closes a cycle
//! finds it at once, and no background pass is needed. If two threads each add an edge of one
//! cycle, the second to finish sees both edges. An edge is in its queue, and the wait in the map of
//! waits, before the search starts. Both threads may see both edges, and choose the same victim.
//!
//! **Complete.** A wait can close several cycles: an exclusive request waits for all that share the
//! lock. One victim breaks one of them. So the search is repeated until it finds none, or until the
//! wait has ended. It visits whatever can be reached, without a limit at which it gives up.
//!
//! **Real.** The graph is read edge by edge, one shard mutex at a time, so what is found may never
//! have existed at one moment. Therefore a cycle is checked twice. Suppose each member still waits
//! by the same request and is still blocked by the next. Then all those waits lasted from the end
//! of the first check to the begin of the second. None of the members could release anything in
//! between, so the cycle is real. If the second check fails, the search is repeated: a member has
//! moved on, but there may be another way around the cycle.
//!
//! **Cost.** A request that waits exclusively for a row waits for all requests before it in the
//! queue. It also waits for all that these wait for in that queue. So the other waiters in the
//! queue lead nowhere that its holders do not lead to, and the search goes on from the holders
//! alone (`Queue::ways`). A thousand waiters of one row cost as much as one. Two cases are lost by
//! that and are checked separately. The start may stand in a queue that the search comes to. Or a
//! waiter before the start in its queue is blocked by a weaker lock of the start. The holders
//! of one row are visited once, however many waiters of that row the search meets.

use std::collections::HashSet;
use std::sync::Arc;

use foldhash::fast::FixedState;
use format::TxnId;
use store::Witness;

use crate::LockName;
use crate::report::{Deadlock, DeadlockMember, OwnedLock, Remembered};
use crate::shards::Shards;
use crate::waiter::{Verdict, Waiter};

/// Transactions that wait for each other, each for the next and the last for the first.
#[derive(Debug)]
pub(crate) struct Cycle {
    /// Never empty.
    members: Vec<Arc<Waiter>>,
}

/// The result of a search.
#[derive(Debug, Default)]
pub(crate) struct Searched {
    /// Cycles that were broken.
    pub(crate) broken_count: u64,
    /// Waits and holders that were visited.
    pub(crate) step_count: u64,
}

/// The choice of the member that is rolled back.
#[derive(Debug)]
pub(crate) struct Victim {
    /// All members with their weights.
    weighed: Vec<(Arc<Waiter>, u64)>,
    /// Its position.
    position: usize,
}

impl Victim {
    pub(crate) fn waiter(&self) -> &Arc<Waiter> {
        assert!(self.position < self.weighed.len(), "it is a member");
        &self.weighed[self.position].0
    }
}

/// Where broken cycles are noted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Watch<'a> {
    /// Knows the statements.
    pub(crate) witness: Option<&'a dyn Witness>,
    /// Keeps the report.
    pub(crate) remembered: &'a Remembered,
}

/// Locks that others have entered for a member, and that are looked at for its weight. There are
/// that many only if as many transactions have waited for it.
const CONVERTED_COUNTED_MAX: usize = 64;

/// What a rollback of the owner would undo: changes, locked tables, and lock objects as InnoDB
/// counts them. What others have entered for the owner counts, too.
fn weight(shards: &Shards, waiter: &Waiter) -> u64 {
    let converted = shards.converted_locks(waiter.owner, CONVERTED_COUNTED_MAX);
    if converted.is_empty() {
        return waiter.work + waiter.footprint.object_count();
    }
    let mut footprint = waiter.footprint.clone();
    for (name, kind) in &converted {
        footprint.add(name, *kind);
    }
    waiter.work + footprint.object_count()
}

impl Cycle {
    /// The member with the least weight. Among equals it is the one that has begun to wait last,
    /// which has closed the cycle, else the first after it along the waits. So MariaDB 10.11
    /// chooses. The choice is the same wherever the search began: two threads that find one cycle
    /// at the same time choose one victim.
    pub(crate) fn victim(&self, shards: &Shards) -> Victim {
        let weigh = |waiter: &Arc<Waiter>| (Arc::clone(waiter), weight(shards, waiter));
        let weighed: Vec<_> = self.members.iter().map(weigh).collect();
        let count = weighed.len();
        let last = (0..count).max_by_key(|&at| weighed[at].0.sequence);
        let last = last.expect("a cycle has members");
        let from_last = (last..last + count).map(|at| at % count);
        let lightest = from_last.min_by_key(|&at| weighed[at].1);
        let position = lightest.expect("a cycle has members");
        Victim { weighed, position }
    }

    /// The second check.
    fn is_real(&self, shards: &Shards) -> bool {
        let followers = self.members.iter().cycle().skip(1);
        self.members.iter().zip(followers).all(|(waiter, next)| {
            waiter.verdict().is_none() && shards.blockers(waiter).contains(&next.owner)
        })
    }
}

/// Breaks every cycle through `start`: each loses its cheapest member, and is noted.
pub(crate) fn break_cycles(shards: &Shards, watch: Watch<'_>, start: &Arc<Waiter>) -> Searched {
    let mut searched = Searched::default();
    while start.verdict().is_none() {
        let Some(cycle) = find_cycle(shards, start, &mut searched.step_count) else {
            break;
        };
        // A cycle that is not real any more was opened by a member that has moved on. The next
        // search starts from the state at that time.
        if !cycle.is_real(shards) {
            continue;
        }
        let victim = cycle.victim(shards);
        let noted = note(shards, watch.witness, &victim.weighed, victim.position);
        if shards.dismiss(victim.waiter(), Verdict::Deadlock) {
            watch.remembered.keep(noted);
            searched.broken_count += 1;
        }
    }
    searched
}

/// Members of a cycle that are noted. Longer cycles are rare, and nobody reads so much.
const MEMBERS_MAX: usize = 32;

/// Notes a cycle whose `victim` is about to be dismissed (see `report`).
fn note(
    shards: &Shards,
    witness: Option<&dyn Witness>,
    members: &[(Arc<Waiter>, u64)],
    victim: usize,
) -> Deadlock {
    assert!(victim < members.len(), "the victim is a member");
    assert!(2 <= members.len(), "nobody waits for itself");
    // The victim is always noted.
    let noted_count = members.len().min(MEMBERS_MAX.max(victim + 1));
    let followers = members.iter().cycle().skip(1);
    let noted = members.iter().zip(followers).take(noted_count);
    let members_noted = noted.map(|((waiter, weight), (next, _))| DeadlockMember {
        client: waiter.client,
        statement: witness.and_then(|witness| witness.statement(waiter.client)),
        wanted: OwnedLock::wanted_by(waiter),
        since_ns: waiter.since_ns,
        blocker: shards
            .blocking_locks(waiter, usize::MAX)
            .locks
            .into_iter()
            .find(|lock| lock.owner == next.owner),
        weight: *weight,
    });
    let last = members.iter().map(|(waiter, _)| waiter.since_ns).max();
    Deadlock {
        number: 0,
        at_ns: last.unwrap_or(0),
        members: members_noted.collect(),
        left_out_count: members.len() - noted_count,
        victim,
    }
}

/// Looks for a cycle through `start`, once.
pub(crate) fn find_cycle(
    shards: &Shards,
    start: &Arc<Waiter>,
    step_count: &mut u64,
) -> Option<Cycle> {
    *step_count += 1;
    let members = match shards.mutual_waiter(start) {
        Some(other) => Some(vec![Arc::clone(start), other]),
        None => walk(shards, start, step_count),
    };
    let members = members?;
    assert!(2 <= members.len(), "nobody waits for itself");
    Some(Cycle { members })
}

/// Visits every owner for whom `start` waits, directly or not, until one waits for `start`.
fn walk(shards: &Shards, start: &Arc<Waiter>, step_count: &mut u64) -> Option<Vec<Arc<Waiter>>> {
    let mut visited: HashSet<TxnId, FixedState> = HashSet::default();
    let mut explored: HashSet<LockName, FixedState> = HashSet::default();
    let mut path = vec![Branch {
        unexplored: shards.ways(start),
        waiter: Arc::clone(start),
    }];
    while let Some(branch) = path.last_mut() {
        let Some(blocker) = branch.unexplored.pop() else {
            path.pop();
            continue;
        };
        if blocker == start.owner {
            return Some(members(path));
        }
        if !visited.insert(blocker) {
            continue;
        }
        *step_count += 1;
        // A wait with a verdict leads nowhere, even if its owner has not fetched it yet.
        let Some(waiter) = shards
            .wait_of(blocker)
            .filter(|wait| wait.verdict().is_none())
        else {
            continue;
        };
        assert_eq!(waiter.owner, blocker, "the map of waits is by owner");
        let is_closed = waiter.stands_behind(start);
        let unexplored = unexplored_ways(shards, &waiter, &mut explored);
        path.push(Branch { waiter, unexplored });
        if is_closed {
            return Some(members(path));
        }
    }
    None
}

/// The ways on from a waiter that is not the start. If two wait for one row exclusively, the second
/// has the same ways as the first, except the first one's owner, who has been visited.
fn unexplored_ways(
    shards: &Shards,
    waiter: &Arc<Waiter>,
    explored: &mut HashSet<LockName, FixedState>,
) -> Vec<TxnId> {
    if !waiter.kind.is_exclusive_record() {
        return shards.ways(waiter);
    }
    if explored.contains(&waiter.name) {
        return Vec::new();
    }
    let ways = shards.ways(waiter);
    if MANY_WAYS <= ways.len() {
        explored.insert(waiter.name.clone());
    }
    ways
}

/// From this many holders of a lock on it pays to remember that they were visited. Fewer are found
/// among the visited faster than a name is copied.
const MANY_WAYS: usize = 16;

fn members(path: Vec<Branch>) -> Vec<Arc<Waiter>> {
    path.into_iter().map(|branch| branch.waiter).collect()
}

/// A transaction on the path from the start, with the edges not followed yet.
struct Branch {
    waiter: Arc<Waiter>,
    unexplored: Vec<TxnId>,
}
