//! The pages in the files of all tablespaces, in order, whoever owns them.
//!
//! Free pages and those after a damaged one are seen only here. If a page was never written, the
//! tablespace's map says whether it should have been. A start with more workers may have been
//! interrupted while it made their undo segments; nothing of these need have been written. Files
//! are read in parts, in any order.

use std::ops::Range;
use std::path::Path;

use btree::space;
use buffer::{Seen, list_spaces, lost_log, page_damage, space_pages, verify_pages};
use env::{Disk, DiskError};
use format::{Lsn, PageId, PageNo, PageSize, PageType, SpaceId};
use store::StoreError;

use super::plan::CheckProgress;
use super::report::{Audit, CheckReport};

/// Pages of a part at most: 64 MiB of 16 KiB.
const PART_PAGES: u32 = 4096;

/// Returns the highest LSN that a page of a given life may have.
type NewestLsn<'a> = &'a dyn Fn(u32) -> Lsn;

/// What is known about the files.
pub(crate) struct Known<'a> {
    /// No page may be newer.
    pub(crate) newest: Option<NewestLsn<'a>>,
    /// Tablespaces that hold nothing yet.
    pub(crate) unmade: Range<SpaceId>,
}

/// A part of a tablespace's file.
#[derive(Debug, Clone)]
pub(crate) struct FilePart {
    space: SpaceId,
    pages: Range<u32>,
}

impl FilePart {
    pub(crate) fn is_first(&self) -> bool {
        self.pages.start == 0
    }

    pub(crate) fn page_count(&self) -> u64 {
        u64::from(self.pages.end - self.pages.start)
    }
}

/// The parts of all files. A file that cannot be opened has one part.
pub(crate) fn file_parts(
    disk: &dyn Disk,
    directory: &Path,
    size: PageSize,
) -> Result<Vec<FilePart>, StoreError> {
    let spaces =
        list_spaces(disk, directory).map_err(|error| StoreError::damaged(error.to_string()))?;
    let mut parts = Vec::new();
    for space in spaces {
        let count = space_pages(disk, directory, space, size).unwrap_or(0);
        for start in (0..count.max(1)).step_by(stdx::to_usize(PART_PAGES)) {
            let pages = start..start.saturating_add(PART_PAGES).min(count);
            parts.push(FilePart { space, pages });
        }
    }
    Ok(parts)
}

/// Checks every page of every file of a directory that cannot be opened.
pub async fn check_files(
    disk: &dyn Disk,
    (directory, size): (&Path, PageSize),
    progress: &mut dyn FnMut(&CheckProgress),
) -> Result<CheckReport, StoreError> {
    let parts = file_parts(disk, directory, size)?;
    let total = parts.iter().map(FilePart::page_count).sum();
    let at = CheckProgress::of(total, 0);
    // Tablespaces that were being made when the directory was last in use are unknown.
    let known = Known {
        newest: None,
        unmade: SpaceId(0)..SpaceId(0),
    };
    let mut report = CheckReport::default();
    for part in parts {
        report.take(check_part(disk, (directory, size), &known, &part, &at).await);
        progress(&at);
    }
    Ok(report)
}

/// Checks the pages of a part, while nothing writes them.
pub(crate) async fn check_part(
    disk: &dyn Disk,
    (directory, size): (&Path, PageSize),
    known: &Known<'_>,
    part: &FilePart,
    progress: &CheckProgress,
) -> Audit {
    let mut audit = Audit::new(part.space, String::new());
    let place = (directory, part.space, size);
    // Without its map a part cannot tell which pages may be empty; the map's own part reports why.
    let mut map = map_before(disk, place, part).await.unwrap_or(None);
    let mut see = |page: PageId, seen: Seen<'_>| {
        audit.file_page_count += 1;
        progress.add_pages(1);
        let fault = fault_of(page, &seen, (size, known.newest), map.as_ref());
        let is_unmade = matches!(seen, Seen::Unwritten) && known.unmade.contains(&page.space);
        if let Some(what) = fault.filter(|_| !is_unmade) {
            audit.damage_of_file(page.page, page_damage(directory, page, &what).to_string());
        }
        note_map(page, &seen, size, &mut map);
    };
    let pages = (part.space, part.pages.clone());
    let verified = verify_pages(disk, directory, pages, size, &mut see).await;
    match verified {
        _ if !part.is_first() => {}
        Ok(()) => audit.file_count += 1,
        Err(error) => audit.fault(error.to_string()),
    }
    audit
}

type Map = Option<(PageNo, Vec<u8>)>;

/// The map of a part's first pages, if it is in an earlier part.
async fn map_before(
    disk: &dyn Disk,
    (directory, space, size): (&Path, SpaceId, PageSize),
    part: &FilePart,
) -> Result<Map, DiskError> {
    let no = space::map_page(PageNo(part.pages.start), size.bytes());
    let mut map = None;
    if no.0 < part.pages.start {
        let mut see = |page: PageId, seen: Seen<'_>| note_map(page, &seen, size, &mut map);
        let pages = (space, no.0..no.0 + 1);
        verify_pages(disk, directory, pages, size, &mut see).await?;
    }
    Ok(map)
}

fn note_map(page: PageId, seen: &Seen<'_>, size: PageSize, map: &mut Map) {
    if let Seen::Whole(header, bytes) = seen
        && header.page_type == PageType::AllocationMap
        && space::map_page(page.page, size.bytes()) == page.page
    {
        *map = Some((page.page, bytes.to_vec()));
    }
}

/// Returns what is wrong with a page, if anything. `map` is the last map before it.
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
