//! Whether the pages that a tablespace marks as used are those with an owner.

use btree::space;
use format::PageNo;
use store::StoreError;

use super::checker::Checker;
use super::on_the_whole;
use super::page_set::PageSet;
use super::report::Audit;

impl Checker<'_> {
    /// Compares the pages with owners with those marked as used.
    pub(super) async fn check_space(&self, audit: &mut Audit) -> Result<(), StoreError> {
        let header = PageNo(0);
        audit.own(header);
        let high = self.until_done(|| space::high(self.pages, audit.space));
        let high = match on_the_whole(high.await)? {
            Ok(high) => high,
            Err(error) => {
                audit.damage(header, &error);
                return Ok(());
            }
        };
        // A crash may leave a file shorter than its header says. The missing part was never in use,
        // because a map that is in use was written.
        let room = self.pages.pool().room_pages(audit.space).unwrap_or(0);
        let maps = || {
            let maps = space::maps(high, self.pages.page_bytes());
            maps.take_while(|(_, map)| map.0 < room)
        };
        for (_, map) in maps() {
            audit.own(map);
        }
        let behind: Vec<PageNo> = audit.used.range(high..=u32::MAX).collect();
        for page in behind {
            let id = audit.id(page);
            audit.fault(format!(
                "page {id} is used, but behind the tablespace's end"
            ));
        }
        for (first, map) in maps() {
            self.check_stretch((first, map), high, audit).await?;
        }
        Ok(())
    }

    /// The same for the pages of one map.
    async fn check_stretch(
        &self,
        (first, map): (PageNo, PageNo),
        high: u32,
        audit: &mut Audit,
    ) -> Result<(), StoreError> {
        let marked =
            self.until_done(|| space::used_in_stretch(self.pages, audit.space, (first, high)));
        let marked = match on_the_whole(marked.await)? {
            Ok(marked) => marked,
            Err(error) => {
                audit.damage(map, &error);
                return Ok(());
            }
        };
        let mut owned_count = 0;
        for &page in &marked {
            if audit.used.contains(page) {
                owned_count += 1;
            } else if !audit.is_partial {
                let id = audit.id(page);
                audit.fault(format!(
                    "page {id} is marked as used but belongs to nothing"
                ));
            }
        }
        let last = space::stretch_end(first, high, self.pages.page_bytes()).saturating_sub(1);
        if audit.used.range(first.0..=last).count() == owned_count {
            return Ok(());
        }
        let mut marks = PageSet::default();
        for page in marked {
            marks.insert(page);
        }
        let used = audit.used.range(first.0..=last);
        let unmarked: Vec<PageNo> = used.filter(|&page| !marks.contains(page)).collect();
        for page in unmarked {
            let id = audit.id(page);
            audit.fault(format!("page {id} is used but marked as free"));
        }
        Ok(())
    }
}
