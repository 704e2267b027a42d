//! Undo segments: their chains of pages, and the records in them.

use btree::damaged;
use format::page::PageHeader;
use format::undo::{PurgeItem, UNDO_RECORDS_START, UndoRecord, copy_record, next_page, used};
use format::{PageId, PageNo, PageType, TxnId, UndoPointer};
use store::{Outcome, StoreError};

use super::checker::Checker;
use super::report::Audit;
use super::{give_way, on_the_whole};
use crate::undo_log::{self, DIRECTORY};

/// A page of the chain.
struct Page {
    /// For each record its writer, and the record of the same transaction before it.
    records: Vec<(TxnId, UndoPointer)>,
    next: Option<PageNo>,
}

impl Checker<'_> {
    /// Checks the pages of a segment and their records. Purge has run before, so a segment is short
    /// except for what purge could not pass.
    pub(super) async fn check_segment(
        &self,
        segment: u8,
        audit: &mut Audit,
    ) -> Result<(), StoreError> {
        audit.own(DIRECTORY);
        let ends = self.until_done(|| undo_log::ends(self.pages, segment));
        match on_the_whole(ends.await)? {
            Ok((tail, last)) => self.check_chain(segment, (tail, last), audit).await?,
            Err(error) => audit.damage(DIRECTORY, &error),
        }
        self.check_space(audit).await
    }

    async fn check_chain(
        &self,
        segment: u8,
        (tail, last): (PageNo, PageNo),
        audit: &mut Audit,
    ) -> Result<(), StoreError> {
        let mut no = tail;
        loop {
            if !audit.own(no) {
                // A circle, or one of the segment's own pages.
                audit.is_partial = true;
                return Ok(());
            }
            let page = self.until_done(|| self.read_undo(audit.id(no)));
            let page = match on_the_whole(page.await)? {
                Ok(page) => page,
                Err(error) => {
                    audit.damage(no, &error);
                    return Ok(());
                }
            };
            for (txn, previous) in page.records {
                audit.record_count += 1;
                self.check_previous(segment, (txn, previous), audit).await?;
            }
            give_way(audit).await;
            match page.next {
                Some(next) => no = next,
                None => break,
            }
        }
        if no != last {
            let (end, last) = (audit.id(no), audit.id(last));
            audit.fault(format!("undo ends with page {end}, not with {last}"));
        }
        Ok(())
    }

    fn read_undo(&self, id: PageId) -> Outcome<Page> {
        let page = self.pages.shared(id)?;
        let bytes = page.bytes();
        let is_undo =
            PageHeader::decode(bytes).is_ok_and(|header| header.page_type == PageType::Undo);
        let end = used(bytes).filter(|_| is_undo);
        let end = end.ok_or_else(|| damaged(id, "no undo page"))?;
        let (mut records, mut copy, mut at) = (Vec::new(), Vec::new(), UNDO_RECORDS_START);
        while at < end {
            let record = copy_record(bytes, at, &mut copy).and_then(|()| {
                let record = UndoRecord::decode(&copy)?;
                has_whole_purge_list(&record).then_some((record.txn, record.previous))
            });
            records.push(record.ok_or_else(|| damaged(id, "no undo record"))?);
            at += copy.len();
        }
        if at != end {
            return Err(damaged(id, "an undo record goes beyond the end"));
        }
        let next = next_page(bytes).map(PageNo);
        Ok(Page { records, next })
    }

    /// Checks that the record before one of a transaction is its own, if its page is still in the
    /// chain.
    async fn check_previous(
        &self,
        segment: u8,
        (txn, previous): (TxnId, UndoPointer),
        audit: &mut Audit,
    ) -> Result<(), StoreError> {
        let is_seen = previous.segment() == segment && audit.used.contains(previous.page());
        if previous.is_null() || !is_seen {
            return Ok(());
        }
        let mut bytes = Vec::new();
        let read = self.until_done(|| undo_log::read_record(self.pages, previous, &mut bytes));
        let is_its_own = on_the_whole(read.await)?.is_ok()
            && UndoRecord::decode(&bytes).is_some_and(|record| record.txn == txn);
        if !is_its_own {
            let page = audit.id(previous.page());
            let at = previous.offset();
            let what = format!("transaction {txn} has no undo record at {at} of page {page}");
            audit.fault(what);
        }
        Ok(())
    }
}

/// Whether the record's last part is a complete list.
fn has_whole_purge_list(record: &UndoRecord<'_>) -> bool {
    let mut again = Vec::new();
    PurgeItem::list(record.purge_list).for_each(|item| item.encode(&mut again));
    again == record.purge_list
}
