//! What the records of undo say about the transactions of earlier lives.

use std::collections::{BTreeMap, BTreeSet};

use btree::Pages;
use format::undo::{self, PreparedMark, UndoKind, UndoRecord};
use format::{PageId, PageNo, TableId, TxnId, UndoPointer};
use stdx::CircleCheck;
use stdx::planted::{Mistake, is_planted};
use store::{Outcome, StoreError, Xid, until_done};

use crate::undo_log::{self, space_of};
use crate::worker::LeftUndo;

/// The transactions that have unsettled records and no end.
pub(super) struct Unended {
    /// Those to be rolled back, each with its last such record.
    pub(super) losers: LastRecords,
    /// The records of those, at most.
    pub(super) loser_changes: u64,
    /// Those that wait for a decision.
    pub(super) prepared: Vec<LeftUndo>,
}

/// What the records of undo say about their transactions. A settled record is undone, or purge has
/// handled it. Then its transaction has ended. The end may have been given back before a page that
/// is kept for an older transaction.
#[derive(Debug, Default)]
pub(super) struct FoundRecords {
    /// The unsettled records of each transaction.
    unsettled: BTreeMap<TxnId, Unsettled>,
    /// The transactions whose end was found.
    pub(super) ended: BTreeSet<TxnId>,
    /// The youngest transaction of all.
    pub(super) youngest: TxnId,
}

/// Unsettled records of a transaction.
#[derive(Debug)]
struct Unsettled {
    /// The last one.
    pointer: UndoPointer,
    /// Its kind.
    kind: UndoKind,
    count: u64,
}

/// The last record of each of some transactions.
pub(super) type LastRecords = BTreeMap<TxnId, UndoPointer>;

impl FoundRecords {
    pub(super) fn note(&mut self, record: FoundRecord) {
        self.youngest = self.youngest.max(record.txn);
        if record.kind.is_end() {
            self.ended.insert(record.txn);
        } else if !record.is_settled {
            let before = self.unsettled.get(&record.txn).map_or(0, |it| it.count);
            let unsettled = Unsettled {
                pointer: record.pointer,
                kind: record.kind,
                count: before + 1,
            };
            self.unsettled.insert(record.txn, unsettled);
        }
    }

    /// Adds what another segment's records say.
    pub(super) fn join(&mut self, other: Self) {
        self.unsettled.extend(other.unsettled);
        self.ended.extend(other.ended);
        self.youngest = self.youngest.max(other.youngest);
    }

    /// The unsettled records of these transactions.
    fn change_count(&self, of: &LastRecords) -> u64 {
        let unsettled = of.keys().filter_map(|id| self.unsettled.get(id));
        unsettled.map(|it| it.count).sum()
    }

    /// The transactions that have unsettled records and no end: first those to be rolled back, then
    /// those that are prepared.
    pub(super) fn unended(&self) -> (LastRecords, LastRecords) {
        let is_prepared =
            |kind: UndoKind| kind == UndoKind::Prepared && !is_planted(Mistake::RollsBackPrepared);
        let (mut losers, mut prepared) = (BTreeMap::new(), BTreeMap::new());
        for (&id, it) in &self.unsettled {
            if self.ended.contains(&id) {
                continue;
            }
            let kept = if is_prepared(it.kind) {
                &mut prepared
            } else {
                &mut losers
            };
            kept.insert(id, it.pointer);
        }
        assert!(
            losers.keys().all(|id| !prepared.contains_key(id)),
            "a prepared transaction is not rolled back"
        );
        (losers, prepared)
    }
}

/// Finds the transactions that have unsettled records and no end.
pub(super) async fn find_unended(pages: &Pages, segments: u32) -> Result<Unended, StoreError> {
    let mut found = FoundRecords::default();
    for_each_record(pages, segments, |record| found.note(record)).await?;
    let (losers, marks) = found.unended();
    let mut prepared = BTreeMap::new();
    for (id, pointer) in marks {
        prepared.insert(id, read_prepared(pages, id, pointer).await?);
    }
    if !prepared.is_empty() {
        let note = |record: FoundRecord| {
            if let Some(left) = prepared.get_mut(&record.txn)
                && record.table != TableId(0)
            {
                left.tables.insert(record.table);
            }
        };
        for_each_record(pages, segments, note).await?;
    }
    Ok(Unended {
        loser_changes: found.change_count(&losers),
        losers,
        prepared: prepared.into_values().collect(),
    })
}

/// Reads the record that a transaction is prepared.
async fn read_prepared(
    pages: &Pages,
    id: TxnId,
    pointer: UndoPointer,
) -> Result<LeftUndo, StoreError> {
    let mut bytes = Vec::new();
    until_done(|| undo_log::read_record(pages, pointer, &mut bytes)).await?;
    let mark = UndoRecord::decode(&bytes).and_then(|record| PreparedMark::decode(record.key));
    let left = mark.and_then(|mark| {
        Some(LeftUndo {
            id,
            xid: Xid::new(mark.format_id, mark.global, mark.branch)?,
            last_undo: pointer,
            undo_count: mark.undo_count.checked_add(1)?,
            tables: BTreeSet::new(),
        })
    });
    left.ok_or_else(|| {
        let page = undo_log::page_of(pointer);
        let what = format!("page {page}: the record of prepared transaction {id}");
        StoreError::damaged_page(page, what)
    })
}

/// Calls `each` for all records of all segments, in the order of writing in each.
async fn for_each_record(
    pages: &Pages,
    segments: u32,
    mut each: impl FnMut(FoundRecord),
) -> Result<(), StoreError> {
    for segment in 0..segments {
        for_each_record_of(pages, segment, &mut each).await?;
    }
    Ok(())
}

/// The same for one segment. Returns the pages of its chain, in order.
async fn for_each_record_of(
    pages: &Pages,
    segment: u32,
    mut each: impl FnMut(FoundRecord),
) -> Result<Vec<PageNo>, StoreError> {
    let segment = u8::try_from(segment).expect("there are at most 255 workers");
    let (mut page, _) = until_done(|| undo_log::ends(pages, segment)).await?;
    let mut circle = CircleCheck::new();
    let mut chain = Vec::new();
    loop {
        if circle.comes_back(page) {
            let id = PageId::new(space_of(segment), page);
            let what = format!("page {id}: the undo pages run in a circle");
            return Err(StoreError::damaged_page(id, what));
        }
        let records = until_done(|| read_page(pages, segment, page)).await?;
        records.found.into_iter().for_each(&mut each);
        chain.push(page);
        match records.next {
            Some(next) => page = next,
            None => return Ok(chain),
        }
    }
}

/// Notes the records of a segment. Returns the pages of its chain, which must end where the segment
/// says.
pub(super) async fn read_segment(
    pages: &Pages,
    segment: u32,
    found: &mut FoundRecords,
) -> Result<Vec<PageNo>, StoreError> {
    let chain = for_each_record_of(pages, segment, |record| found.note(record)).await?;
    let number = u8::try_from(segment).expect("there are at most 255 workers");
    let (_, last) = until_done(|| undo_log::ends(pages, number)).await?;
    let end = chain.last().copied().unwrap_or_default();
    if end != last {
        let id = PageId::new(space_of(number), last);
        let what = format!("page {id}: the undo ends with page {end} already");
        return Err(StoreError::damaged_page(id, what));
    }
    Ok(chain)
}

/// What recovery needs to know of an undo record.
pub(super) struct FoundRecord {
    pointer: UndoPointer,
    kind: UndoKind,
    txn: TxnId,
    table: TableId,
    is_settled: bool,
}

/// The records of an undo page.
struct PageRecords {
    found: Vec<FoundRecord>,
    next: Option<PageNo>,
}

fn read_page(pages: &Pages, segment: u8, no: PageNo) -> Outcome<PageRecords> {
    let id = PageId::new(space_of(segment), no);
    let page = pages.shared(id)?;
    let bytes = page.bytes();
    undo::used(bytes).ok_or_else(|| btree::damaged(id, "no undo page"))?;
    let mut found = Vec::new();
    undo::for_each_record(bytes, |at, record| {
        let offset = u16::try_from(at).expect("an offset in a page");
        let record = UndoRecord::decode(record)?;
        found.push(FoundRecord {
            pointer: UndoPointer::new(segment, no, offset),
            kind: record.kind,
            txn: record.txn,
            table: record.table,
            is_settled: record.is_settled,
        });
        Some(())
    })
    .ok_or_else(|| btree::damaged(id, "no undo record"))?;
    let next = undo::next_page(bytes).map(PageNo);
    Ok(PageRecords { found, next })
}
