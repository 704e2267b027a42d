//! The records by which a transaction passes from one stage to the next.
//!
//! ```text
//!   open --write_prepared--> prepared --write_end--> ordered --wait_durable--> logged
//!     `------------------------------write_end---------^
//! ```
//!
//! * *Open*: it reads, locks and changes.
//! * *Prepared*: it changes nothing more, survives a crash, and waits for a decision.
//! * *Ordered*: its outcome has its place in the log, and all others see it. Its locks go. If a
//!   group of nodes has an order, it waits for those before it first (`replication`).
//! * *Logged*: the log up to there is as durable as was asked. The client hears of it.
//!
//! (S1) Room for the record is taken before the ordered step: a place in the undo, and with it the
//! place in the log. If there is none, the transaction stays where it was.
//! (S2) Nothing suspends in the ordered step, and nothing fails. With a group, the turn is asked
//! for when all pages are latched. If it has not come, they are released, and taken again later.
//! (S3) All records of a transaction are in one segment, because purge handles each segment by
//! itself. If it took the end from one segment before the records from another, the next start
//! would find a loser again.

use btree::{Change, Latched};
use format::page_op::PageOp;
use format::undo::{PreparedMark, UndoKind, UndoRecord};
use format::{Lsn, TxnId, UndoPointer};
use store::replication::Position;
use store::{Outcome, Xid};

use crate::schema::new_counter::NewCounter;
use crate::undo_log::{UndoLog, UndoPlace, apply};
use crate::worker::Worker;
use crate::worker::place::PlaceToPass;

/// How a transaction ends.
#[derive(Debug)]
pub(crate) struct Ending<'a> {
    pub(crate) id: TxnId,
    /// The segment of its records (S3).
    pub(crate) segment: u8,
    /// Its last undo record that is not undone; null if all are.
    pub(crate) last_undo: UndoPointer,
    pub(crate) outcome: TxnOutcome<'a>,
    /// Its place in a group's order, for a commit that has one.
    pub(crate) position: Option<Position>,
}

/// What the record of an end says.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TxnOutcome<'a> {
    /// It commits, and sets the counter of a table.
    Committed(Option<&'a NewCounter>),
    /// All of it is undone.
    RolledBack,
}

impl TxnOutcome<'_> {
    fn kind(self) -> UndoKind {
        match self {
            Self::Committed(_) => UndoKind::Commit,
            Self::RolledBack => UndoKind::RolledBack,
        }
    }
}

/// The pages that an end changes beside the undo: a table's counter, and the group's place.
type EndPages<'a> = (Option<(&'a NewCounter, Latched)>, Option<PlaceToPass>);

impl Worker {
    /// Writes the record that ends a transaction, and publishes the outcome. Returns the record's
    /// end, which is the commit number. As undoing does, it may take the last room of a full disk.
    pub(crate) fn write_end(&self, ending: &Ending<'_>) -> Outcome<Lsn> {
        let _undoing = self.pages.undoing();
        self.await_room(self.append_end(ending))
    }

    /// Writes that nothing of a transaction is left to undo, whose records are in `segment`.
    pub(crate) fn write_rolled_back(&self, id: TxnId, segment: u8) -> Outcome<()> {
        self.write_end(&Ending {
            id,
            segment,
            last_undo: UndoPointer::NULL,
            outcome: TxnOutcome::RolledBack,
            position: None,
        })?;
        Ok(())
    }

    fn append_end(&self, ending: &Ending<'_>) -> Outcome<Lsn> {
        let (id, txns) = (ending.id, &self.shared.txns);
        assert!(txns.is_active(id), "a transaction ends once");
        let mut record = Vec::new();
        UndoRecord::end(ending.outcome.kind(), id, ending.last_undo).encode(&mut record);
        let counter = match ending.outcome {
            TxnOutcome::Committed(counter) => counter,
            TxnOutcome::RolledBack => None,
        };
        let latch = |change: &mut Change<'_>| {
            let latched = counter.map(|counter| counter.latch(change));
            let page = latched.transpose()?;
            let place = ending.position.map(|place| self.latch_place(change, place));
            Ok((counter.zip(page), place.transpose()?))
        };
        // The last step that may suspend (S2).
        let enter = || ending.position.map_or(Ok(()), |place| self.enter(place));
        let order = |change: Change<'_>, _: UndoPlace, (counter, place): EndPages<'_>| {
            if let TxnOutcome::RolledBack = ending.outcome {
                let lsn = change.commit();
                txns.finish_undone(id, lsn);
                return lsn;
            }
            let commit = |change: Change<'_>| {
                txns.commit(id, || {
                    let lsn = match counter {
                        Some((counter, page)) => counter.commit(change, page),
                        None => change.commit(),
                    };
                    self.note_commit(lsn);
                    lsn
                })
            };
            match place {
                Some(place) => self.pass(change, place, commit),
                None => commit(change),
            }
        };
        let lsn = self.append_stage(ending.segment, &record, (latch, enter), order)?;
        self.note_end_written(id);
        Ok(lsn)
    }

    /// Writes the record that a transaction is prepared, whose last record and number of records
    /// are given. Returns the record's pointer, and its end in the log.
    pub(crate) fn write_prepared(
        &self,
        id: TxnId,
        (last_undo, undo_count): (UndoPointer, u64),
        xid: &Xid,
    ) -> Outcome<(UndoPointer, Lsn)> {
        assert!(self.shared.txns.is_active(id), "it has not ended");
        assert!(
            !last_undo.is_null() && undo_count != 0,
            "without changes there is nothing to keep"
        );
        let (mut mark, mut record) = (Vec::new(), Vec::new());
        PreparedMark {
            undo_count,
            format_id: xid.format_id(),
            global: xid.global(),
            branch: xid.branch(),
        }
        .encode(&mut mark);
        UndoRecord::prepared(id, last_undo, &mark).encode(&mut record);
        let keep = |change: Change<'_>, place: UndoPlace, ()| (place.pointer, change.commit());
        let nothing = (|_: &mut Change<'_>| Ok(()), || Ok(()));
        self.append_stage(last_undo.segment(), &record, nothing, keep)
    }

    /// Appends a record to a segment. `latch` takes what else belongs to the change. `enter` is
    /// asked when all is at hand, and `commit` commits all of it.
    fn append_stage<T, L>(
        &self,
        segment: u8,
        record: &[u8],
        (latch, enter): (
            impl Fn(&mut Change<'_>) -> Outcome<L>,
            impl Fn() -> Outcome<()>,
        ),
        commit: impl FnOnce(Change<'_>, UndoPlace, L) -> T,
    ) -> Outcome<T> {
        let of_other;
        let log = if segment == self.options.index {
            &self.undo
        } else {
            // Of a former worker, or in recovery: nobody else writes to it now.
            of_other = UndoLog::open(&self.pages, segment)?;
            &of_other
        };
        loop {
            let mut change = self.pages.change()?;
            let latched = latch(&mut change)?;
            let Some(place) = log.place(&mut change, record.len())? else {
                drop(change);
                log.make_room(&self.pages)?;
                self.counters().undo_pages_taken.increment();
                continue;
            };
            enter()?;
            // If the page cannot take the record, the transaction stays unchanged (S1).
            apply(&mut change, place.page, &PageOp::UndoAppend { record })?;
            return Ok(commit(change, place, latched));
        }
    }
}
