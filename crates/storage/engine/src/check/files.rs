//! The pages in the files of all tablespaces, one behind the other, whoever owns them.
//!
//! Free pages and those behind a damaged one are seen here alone. Where a page was never written,
//! the tablespace's map says whether it should have been. A start with more workers may have been
//! cut off while it made their undo segments: of what it has left nothing need have been written.

use std::ops::Range;
use std::path::Path;

use btree::space;
use buffer::{Seen, list_spaces, lost_log, page_damage, verify_space};
use env::Disk;
use format::{Lsn, PageId, PageNo, PageSize, PageType, SpaceId};
use store::StoreError;

use super::report::CheckReport;

/// Says the highest LSN that a page may have that was written in a life of the server.
pub(crate) type NewestLsn<'a> = &'a dyn Fn(u32) -> Lsn;

/// Looks at every page of every file, where nobody writes one. No page may be newer than `newest`.
/// `unmade`: tablespaces that nothing is in yet.
pub async fn check_files(
    disk: &dyn Disk,
    (directory, size): (&Path, PageSize),
    (newest, unmade): (Option<&dyn Fn(u32) -> Lsn>, Range<SpaceId>),
    report: &mut CheckReport,
    progress: &mut dyn FnMut(&CheckReport),
) -> Result<(), StoreError> {
    let spaces = list_spaces(disk, directory).map_err(|error| StoreError::Damaged {
        what: error.to_string(),
    })?;
    for id in spaces {
        let mut map = None;
        let mut see = |page: PageId, seen: Seen<'_>| {
            report.file_page_count += 1;
            progress(report);
            let fault = fault_of(page, &seen, (size, newest), map.as_ref());
            let is_unmade = matches!(seen, Seen::Unwritten) && unmade.contains(&page.space);
            if let Some(what) = fault.filter(|_| !is_unmade) {
                report.damage(page, &page_damage(directory, page, &what));
            }
            if let Seen::Whole(header, bytes) = seen
                && header.page_type == PageType::AllocationMap
                && space::map_page(page.page, size.bytes()) == page.page
            {
                map = Some((page.page, bytes.to_vec()));
            }
        };
        match verify_space(disk, directory, id, size, &mut see).await {
            Ok(()) => report.file_count += 1,
            Err(error) => report.fault(error.to_string()),
        }
    }
    Ok(())
}

/// What is wrong with a page, if something is; `map` is the last map before it.
fn fault_of(
    id: PageId,
    seen: &Seen<'_>,
    (size, newest): (PageSize, Option<NewestLsn<'_>>),
    map: Option<&(PageNo, Vec<u8>)>,
) -> Option<String> {
    match seen {
        Seen::Whole(header, _) => {
            let log_end = newest?(header.epoch);
            (log_end < header.lsn).then(|| lost_log(header, log_end))
        }
        Seen::Unwritten => {
            let first_map = space::map_page(PageNo(0), size.bytes());
            let own_map = space::map_page(id.page, size.bytes());
            let map = map.filter(|(page, _)| *page == own_map);
            let is_used = id.page <= first_map
                || map.is_some_and(|(_, bytes)| space::is_marked(bytes, id.page));
            is_used.then(|| "it is empty, but in use".to_owned())
        }
        Seen::Damaged(error) => Some(error.to_string()),
        Seen::Unreadable(error) => Some(error.to_string()),
    }
}
