//! Trees that a crash has left half made or half dropped: the next start finds them and gives them
//! back.
//!
//! Building an index and dropping one take many mini-transactions and no undo. So the header of the
//! table's space marks while one is under way ([`Worker::mark_building`]). A start that finds the
//! mark checks every page in use: a page of a tree that the dictionary does not know has no owner.
//! Pages of large values are skipped: undo knows them.

use std::collections::BTreeSet;

use btree::space::{self, Release};
use format::page::PageHeader;
use format::page_bytes::PageBytes;
use format::slotted::TreePage;
use format::{PageId, PageNo, PageType, SpaceId};
use store::{Outcome, StoreError};
use tracing::{info, warn};

use crate::schema::table_shape::TableShape;
use crate::undo_log::{TABLE_SPACES_START, put};
use crate::worker::Worker;

/// In the header of a table's space, after the AUTO_INCREMENT counter.
const BUILDING_AT: usize = space::OWNER_AT + 8;

impl Worker {
    /// Notes that trees of a space are being made or dropped, or that this is over.
    pub(crate) fn mark_building(&self, space: SpaceId, is_building: bool) -> Outcome<()> {
        assert!(
            TABLE_SPACES_START <= space.0,
            "a table's tablespace has the mark"
        );
        let mut change = self.pages.change()?;
        let header = change.latch(PageId::new(space, PageNo(0)))?;
        put(&mut change, header, BUILDING_AT, &[u8::from(is_building)])?;
        change.commit();
        Ok(())
    }

    /// Whether the mark is set. If no change is under way, a failed one has left trees.
    pub(crate) fn is_building(&self, space: SpaceId) -> Outcome<bool> {
        let header = self.pages.shared(PageId::new(space, PageNo(0)))?;
        Ok(header.bytes().u8_at(BUILDING_AT) == Some(1))
    }

    /// Gives back the pages of trees that the table does not have, if a crash may have left some.
    pub(crate) async fn reclaim_trees(&self, table: &TableShape) -> Result<(), StoreError> {
        let space = table.space();
        if !self.until_done(|| self.is_building(space)).await? {
            return Ok(());
        }
        let known: BTreeSet<u64> = table.entry.trees.iter().map(|tree| tree.index.0).collect();
        let used = self
            .until_done(|| space::used_pages(&self.pages, space))
            .await?;
        let mut count = 0_u64;
        for page in used {
            let id = PageId::new(space, page);
            match self.until_done(|| self.reclaim_page(id, &known)).await {
                // Nothing tells whose it is. It stays in use.
                Err(failure) if failure.is_unreadable() => {
                    warn!(%id, %failure, "a page that may be of a half made index is left");
                }
                given => count += u64::from(given?),
            }
        }
        self.until_done(|| self.mark_building(space, false)).await?;
        let table = &table.entry.definition.name;
        info!(%table, count, "pages of a half made index were given back");
        Ok(())
    }

    /// Gives a page back if its tree is unknown. Returns whether it did.
    fn reclaim_page(&self, id: PageId, known: &BTreeSet<u64>) -> Outcome<bool> {
        let mut change = self.pages.change()?;
        let page = change.latch(id)?;
        let bytes = change.bytes(page);
        let is_tree = PageHeader::decode(bytes).is_ok_and(|header| {
            matches!(header.page_type, PageType::BtreeLeaf | PageType::BtreeInner)
        });
        let index = TreePage::new(bytes).and_then(|tree| tree.index_id());
        if !is_tree || index.is_none_or(|index| known.contains(&index)) {
            return Ok(false);
        }
        let release = Release::make(&mut change, page)?;
        release.give_back(&mut change)?;
        change.commit();
        Ok(true)
    }
}
