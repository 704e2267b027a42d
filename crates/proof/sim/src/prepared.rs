//! Commits in two phases: what a store has promised of prepared transactions, and whether it keeps
//! that over crashes.

use std::collections::{BTreeMap, BTreeSet};

use env::Random;
use store::{Durability, LeftPrepared, Prepared, StoreError, Transaction, Xid};

use crate::rows::{Session, until_done};
use crate::world::World;

/// How a prepared transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    Commit,
    RollBack,
}

impl Decision {
    pub(crate) fn draw(random: &mut Random) -> Self {
        match random.below(3) {
            0 => Self::RollBack,
            _ => Self::Commit,
        }
    }
}

/// What was told of prepared transactions, by number.
#[derive(Debug, Default)]
pub(crate) struct Promises {
    /// They are prepared, and nobody has decided.
    kept: BTreeSet<i64>,
    /// A decision was made, and is not acknowledged.
    begun: BTreeMap<i64, Decision>,
    /// Their rollback was acknowledged.
    rolled_back: BTreeSet<i64>,
}

impl Promises {
    /// A transaction is prepared.
    pub(crate) fn keep(&mut self, number: i64) {
        self.kept.insert(number);
    }

    /// Somebody decides.
    pub(crate) fn begin(&mut self, number: i64, decision: Decision) {
        self.kept.remove(&number);
        self.begun.insert(number, decision);
    }

    /// The decision is acknowledged.
    pub(crate) fn done(&mut self, number: i64, decision: Decision) {
        self.begun.remove(&number);
        if decision == Decision::RollBack {
            self.rolled_back.insert(number);
        }
    }

    /// Whether somebody has decided about each.
    pub(crate) fn is_settled(&self) -> bool {
        self.kept.is_empty()
    }

    /// Compares with what a start has found prepared, and with what is committed.
    pub(crate) fn check(&self, found: &BTreeSet<i64>, seen: &BTreeSet<i64>) -> Result<(), String> {
        if let Some(lost) = self.kept.difference(found).next() {
            return Err(format!("transaction {lost} was prepared and is lost"));
        }
        if let Some(number) = found.intersection(seen).next() {
            return Err(format!("transaction {number} is prepared and committed"));
        }
        let mut gone = self.rolled_back.iter();
        match gone.find(|number| found.contains(number) || seen.contains(number)) {
            Some(number) => Err(format!("transaction {number} was rolled back and is there")),
            None => Ok(()),
        }
    }
}

fn xid_of(number: i64) -> Xid {
    Xid::new(1, &number.to_le_bytes(), b"").expect("it is short")
}

fn number_of(xid: &Xid) -> i64 {
    let bytes = xid.global().try_into().expect("it was made of a number");
    i64::from_le_bytes(bytes)
}

/// The numbers of what a start has found.
pub(crate) fn numbers_of(left: &[LeftPrepared]) -> BTreeSet<i64> {
    left.iter().map(|it| number_of(&it.xid)).collect()
}

/// The first phase.
pub(crate) async fn prepare(session: &mut Session, number: i64) -> Result<(), StoreError> {
    let xid = xid_of(number);
    let prepared = until_done(|| session.txn.prepare_as(&xid, Durability::Durable)).await?;
    assert_eq!(prepared, Prepared::Ready, "it has changed the ledger");
    Ok(())
}

/// The second phase.
pub(crate) async fn end(txn: &mut dyn Transaction, decision: Decision) -> Result<(), StoreError> {
    match decision {
        Decision::Commit => until_done(|| txn.commit(Durability::Durable)).await,
        Decision::RollBack => until_done(|| txn.rollback()).await,
    }
}

/// What becomes of the transactions that nobody decides about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// There are none: the store goes on, and their rows would stay locked.
    None,
    /// The next start finds them.
    Left,
}

/// Decides about what a start has found. Returns the numbers of those that are committed.
pub(crate) fn decide(
    world: &World,
    left: Vec<LeftPrepared>,
    promises: &mut Promises,
    rest: Rest,
    random: &mut Random,
) -> Result<Vec<i64>, String> {
    let mut committed = Vec::new();
    for mut one in left {
        let number = number_of(&one.xid);
        if rest == Rest::Left && random.below(4) == 0 {
            promises.keep(number);
            continue;
        }
        let decision = Decision::draw(random);
        promises.begin(number, decision);
        let ended = world.run(async move { end(&mut *one.transaction, decision).await });
        ended.map_err(|error| format!("the end of prepared transaction {number}: {error}"))?;
        promises.done(number, decision);
        if decision == Decision::Commit {
            committed.push(number);
        }
    }
    Ok(committed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(numbers: &[i64]) -> BTreeSet<i64> {
        numbers.iter().copied().collect()
    }

    #[test]
    fn what_breaks_a_promise_is_found() {
        let mut promises = Promises::default();
        promises.keep(1);
        promises.keep(2);
        promises.begin(2, Decision::Commit);
        promises.keep(3);
        promises.begin(3, Decision::RollBack);
        promises.done(3, Decision::RollBack);
        // A decision that was not acknowledged may have happened or not.
        assert_eq!(promises.check(&set(&[1, 2]), &set(&[])), Ok(()));
        assert_eq!(promises.check(&set(&[1]), &set(&[2])), Ok(()));
        let lost = promises.check(&set(&[2]), &set(&[]));
        assert_eq!(lost, Err("transaction 1 was prepared and is lost".into()));
        let lost = promises.check(&set(&[2]), &set(&[1]));
        assert!(lost.is_err(), "committed without a decision");
        assert!(promises.check(&set(&[1, 2]), &set(&[2])).is_err());
        assert!(promises.check(&set(&[1, 3]), &set(&[])).is_err());
        assert!(promises.check(&set(&[1]), &set(&[3])).is_err());
    }
}
