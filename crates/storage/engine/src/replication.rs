//! A transaction's part in a group of nodes; see [`store::replication`].
//!
//! ```text
//!   Open --certify--> Sent --> Placed --------------------> ordered
//!                       `-------`--order--> Displaced --> Applying --> ordered
//!   a write set of another node ----------------------------^
//! ```
//!
//! * *Open*: each change is noted when it is made, and taken out again when it is undone.
//! * *Sent*: the provider has the write set. The changes stand, and their locks are held.
//! * *Placed*: its place is known, and it waits for those before it.
//! * *Displaced*: one that was ordered before it needs its locks. Its changes are undone. If its
//!   write set gets a place, it is applied there like another node's.
//! * *Applying*: the changes of a write set that has its place are made. They need no
//!   certification. Whoever is in the way is ordered to abort, unless its place comes first.
//!
//! An order to abort reaches a transaction on its worker, between two operations of its session.
//! There the worker undoes it at once, whatever the session does: it may be idle for hours. The
//! session finds the error with its next operation.
//!
//! (R1) A write set that was sent is not forgotten. If the session goes away, the worker waits for
//! its place and applies it. A worker that ends leaves it to the group, as a crash does: the next
//! start has not passed its place.
//! (R2) Of two that have places, the later one gives way.
//! (R3) A commit without a provider, or of no rows, passes by all of this.

pub(crate) mod applying;
pub(crate) mod left;
pub(crate) mod orders;

use std::sync::Arc;

use store::replication::{CertificationKey, Certified, Position, RowChange, Ticket};
use store::{Interrupt, Outcome, StoreError};

use crate::schema::table_shape::TableShape;
use crate::transaction::EngineTransaction;
use crate::transaction::group::Stage;

impl EngineTransaction {
    /// Whether its changes are noted for a write set.
    pub(crate) fn is_captured(&self) -> bool {
        let replication = self.replication.as_ref();
        replication.is_some_and(|it| it.stage == Stage::Open)
    }

    /// Refuses a change that no other node could repeat.
    pub(crate) fn check_captured(&self, shape: &TableShape) -> Outcome<()> {
        if self.is_captured() && shape.row_key().is_none() {
            let what = "changes of a table without a key on a node of a group";
            return Err(StoreError::NotSupported { what }.into());
        }
        Ok(())
    }

    /// Notes a change of a row for the write set. Call it if changes are noted. This is the one
    /// place for it: whatever changes a row of a table passes here when it has.
    pub(crate) fn capture(
        &mut self,
        shape: &TableShape,
        before: Option<Vec<u8>>,
        after: Option<Vec<u8>>,
    ) -> Outcome<()> {
        assert!(self.is_captured(), "the caller has made copies of the rows");
        assert!(before.is_some() || after.is_some(), "something has changed");
        let mut keys = Vec::new();
        for row in [&before, &after].into_iter().flatten() {
            append_keys(shape, row, &mut keys)?;
        }
        let change = RowChange {
            table: Arc::clone(&shape.entry.definition),
            before: before.map(Vec::into_boxed_slice),
            after: after.map(Vec::into_boxed_slice),
        };
        let undo_count = self.undo_count;
        let replication = self.replication.as_mut().expect("changes are noted");
        replication.note(change, keys, undo_count);
        if replication.provider.write_set_bytes_max() < replication.bytes {
            return Err(StoreError::WriteSetTooLarge.into());
        }
        Ok(())
    }

    /// Brings a commit to its place in the order, and returns it. Returns `None` without a
    /// provider, and if there is nothing that others would have to repeat. If its write set is
    /// refused, it is rolled back first and fails as a deadlock's victim does.
    pub(crate) fn take_place(&mut self) -> Outcome<Option<Position>> {
        loop {
            let Some(replication) = &mut self.replication else {
                return Ok(None);
            };
            match replication.stage {
                Stage::Open if replication.writes.changes.is_empty() => return Ok(None),
                Stage::Open => {
                    let id = self.id.expect("who changes something has an id");
                    replication.stage = Stage::Sent(Ticket(id.get()));
                }
                Stage::Sent(ticket) => {
                    assert!(0 < self.undo_count, "what is sent has changed something");
                    let asked = replication.provider.certify(ticket, &replication.writes);
                    match asked {
                        Ok(Certified::At(position)) => {
                            replication.stage = Stage::Placed(position);
                        }
                        Ok(Certified::Refused) => {
                            replication.reset();
                            return self.fail(StoreError::Deadlock);
                        }
                        Err(Interrupt::Error(error)) => {
                            replication.stage = Stage::Open;
                            return Err(error.into());
                        }
                        Err(wait) => return Err(wait),
                    }
                }
                Stage::Displaced(ticket) => {
                    self.undo_displaced()?;
                    let replication = self.replication.as_mut().expect("it has its stage");
                    match replication.provider.certify(ticket, &replication.writes)? {
                        Certified::At(position) => {
                            replication.applied = 0;
                            replication.stage = Stage::Applying(position);
                            self.worker.counters().orders.replayed.increment();
                        }
                        Certified::Refused => {
                            replication.reset();
                            return Err(StoreError::Deadlock.into());
                        }
                    }
                }
                Stage::Placed(position) => return Ok(Some(position)),
                Stage::Applying(position) => {
                    if self.doom.is_some() {
                        self.roll_back()?;
                        self.apply_again();
                    }
                    match self.apply_rest() {
                        Ok(()) => return Ok(Some(position)),
                        Err(Interrupt::Error(StoreError::Deadlock)) => self.apply_again(),
                        Err(Interrupt::Error(failure)) => {
                            let replication = self.replication.as_mut();
                            replication.expect("it has its stage").reset();
                            return Err(failure.into());
                        }
                        Err(wait) => return Err(wait),
                    }
                }
            }
        }
    }
}

/// Appends the keys of a row that are not there: its primary key, and those of unique indexes that
/// have no NULL.
fn append_keys(shape: &TableShape, row: &[u8], out: &mut Vec<CertificationKey>) -> Outcome<()> {
    let mut push = |index: usize, key: &[u8]| {
        let is_there = |it: &CertificationKey| it.index == index && *it.key == *key;
        if !out.iter().any(is_there) {
            out.push(CertificationKey {
                table: Arc::clone(&shape.entry.definition),
                index,
                key: key.into(),
            });
        }
    };
    let primary = shape.row_key_of(row)?;
    let primary = primary.expect("changes of tables without a key are refused");
    push(0, &primary);
    for index in shape.secondary.iter().filter(|index| index.is_unique) {
        let entry = shape.entry_of(index, row, &primary)?;
        if !entry.has_null {
            push(index.position, entry.own());
        }
    }
    Ok(())
}
