//! Tablespaces: a file of pages each, and which pages are in memory.
//!
//! Files are made, opened, grown and removed here. The tablespace's own header and allocation pages
//! say which pages are in use; they belong to the layer above this crate.

pub(crate) mod doublewrite;
pub(crate) mod growth;
pub(crate) mod verify;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use env::{Disk, DiskError, DiskErrorKind, File, FileAccess, OpenOptions};
use format::{Lsn, PageHeader, PageId, PageNo, PageSize, SpaceId};
use store::StoreError;
use sync::Mutex;
use sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::frames::page_table::PageTable;
use crate::space::growth::Growth;

/// An open tablespace. Shared by all workers.
#[derive(Debug)]
pub(crate) struct Space {
    pub(crate) id: SpaceId,
    pub(crate) file: File,
    pub(crate) path: PathBuf,
    pub(crate) table: PageTable,
    /// Whether it is being removed: its pages must not be loaded any more.
    pub(crate) is_dropped: AtomicBool,
    pub(crate) growth: Arc<Growth>,
}

impl Space {
    pub(crate) fn is_dropped(&self) -> bool {
        self.is_dropped.load(Ordering::SeqCst)
    }

    /// Makes room for `least` pages, or for `most` if the disk has room, or waits for another
    /// growth. The caller then checks again.
    pub(crate) async fn grow(
        &self,
        disk: &dyn Disk,
        size: PageSize,
        (least, most): (u32, u32),
    ) -> Result<(), DiskError> {
        assert!(least <= most, "a file grows by as much as is needed");
        let Some(turn) = self.growth.turn(least).await? else {
            return Ok(());
        };
        if least <= self.growth.room_pages() {
            return Ok(());
        }
        let file = self.file.clone();
        let make_room = move |disk: &dyn Disk| {
            let allocate = |pages| {
                let allocated = disk.allocate(&file, page_offset(PageNo(pages), size));
                allocated.map(|()| pages)
            };
            let is_full = |error: &DiskError| error.kind == DiskErrorKind::Full;
            let mut grown = allocate(most);
            if least < most && grown.as_ref().is_err_and(is_full) {
                grown = allocate(least);
            }
            match grown {
                Ok(pages) => {
                    turn.succeed(pages);
                    Ok(())
                }
                Err(error) => Err(turn.fail(least, error)),
            }
        };
        disk.later(Box::new(make_room)).await
    }
}

/// Offset of a page in its file.
pub(crate) fn page_offset(page: PageNo, size: PageSize) -> u64 {
    u64::from(page.0) * stdx::to_u64(size.bytes())
}

/// A tablespace's file in the data directory.
pub(crate) fn path(directory: &Path, id: SpaceId) -> PathBuf {
    directory.join(format!("space_{id}.pdb"))
}

/// The tablespace that a file name belongs to, if any.
pub(crate) fn id_of(path: &Path) -> Option<SpaceId> {
    let name = path.file_name()?.to_str()?;
    let digits = name.strip_prefix("space_")?.strip_suffix(".pdb")?;
    let is_plain = digits == "0" || !digits.starts_with(['0', '+']);
    if is_plain {
        digits.parse().ok().map(SpaceId)
    } else {
        None
    }
}

/// The tablespaces that have a file in the data directory, in order.
pub fn list_spaces(disk: &dyn Disk, directory: &Path) -> Result<Vec<SpaceId>, DiskError> {
    let names = disk.list(directory)?;
    let mut ids: Vec<SpaceId> = names.iter().filter_map(|name| id_of(name)).collect();
    ids.sort_unstable();
    Ok(ids)
}

/// Opens or makes the file of a tablespace.
pub(crate) fn open_file(disk: &dyn Disk, path: &Path, create: bool) -> Result<File, DiskError> {
    let access = FileAccess::Direct;
    disk.open(
        path,
        OpenOptions {
            write: true,
            create,
            exclusive: create,
            access,
        },
    )
}

/// A file's name without its directory: clients read it, and must not see the machine's paths.
fn name_of(path: &Path) -> String {
    let name = path.file_name();
    name.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// An error that names file, page and what is wrong.
pub(crate) fn damaged(path: &Path, id: PageId, what: &dyn std::fmt::Display) -> StoreError {
    StoreError::damaged_page(id, format!("{} page {}: {what}", name_of(path), id.page))
}

/// What is wrong with a page whose log is lost. `log_end` is the end of the log of the life that
/// wrote the page.
pub fn lost_log(header: &PageHeader, log_end: Lsn) -> String {
    let lsn = header.lsn;
    format!("it has LSN {lsn}, but the log of its time ends at {log_end}: log is lost")
}

/// As `damaged`, for callers that read files by themselves.
pub fn page_damage(directory: &Path, id: PageId, what: &dyn std::fmt::Display) -> StoreError {
    damaged(&path(directory, id.space), id, what)
}

/// Maps an error of the disk to the store's.
pub(crate) fn disk_error(error: &DiskError) -> StoreError {
    let path = error.path.as_deref();
    let file = path.map_or_else(String::new, name_of);
    match error.kind {
        DiskErrorKind::Full => StoreError::DiskFull,
        DiskErrorKind::NoDescriptor => StoreError::NoDescriptor {
            file,
            os_error: error.os_error,
        },
        _ => StoreError::Disk {
            file,
            is_read: error.operation == "read",
            os_error: error.os_error,
        },
    }
}

/// As [`disk_error`], for the read of a page, which is named.
pub(crate) fn read_error(error: &DiskError, path: &Path, id: PageId) -> StoreError {
    StoreError::Disk {
        file: format!("{} page {}", name_of(path), id.page),
        is_read: true,
        os_error: error.os_error,
    }
}

/// All open tablespaces.
#[derive(Debug, Default)]
pub(crate) struct Spaces {
    open: Mutex<HashMap<SpaceId, Arc<Space>>>,
    /// Tablespaces whose removal has begun and not ended.
    going: Mutex<HashMap<SpaceId, Arc<Space>>>,
    /// Counts removals, so that workers see when their copies are outdated.
    removals: AtomicU64,
}

impl Spaces {
    pub(crate) fn get(&self, id: SpaceId) -> Option<Arc<Space>> {
        self.open.lock().get(&id).cloned()
    }

    pub(crate) fn add(&self, space: Arc<Space>) {
        let before = self.open.lock().insert(space.id, space);
        assert!(before.is_none(), "a tablespace is opened once");
    }

    /// Closes a tablespace to be removed. Also finds one whose removal has begun.
    pub(crate) fn begin_removal(&self, id: SpaceId) -> Option<Arc<Space>> {
        let removed = self.open.lock().remove(&id);
        self.removals.fetch_add(1, Ordering::SeqCst);
        let mut going = self.going.lock();
        if let Some(space) = removed {
            let before = going.insert(id, space);
            assert!(before.is_none(), "ids of tablespaces are never used again");
        }
        going.get(&id).cloned()
    }

    /// Ends the removal of a tablespace, of which nothing is left.
    pub(crate) fn end_removal(&self, id: SpaceId) {
        self.going.lock().remove(&id);
    }

    pub(crate) fn removals(&self) -> u64 {
        // A worker that sees an old count uses a dropped space a moment longer, as it might have
        // just before. Relaxed keeps the look-up free.
        self.removals.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_read_back() {
        let directory = Path::new("data");
        for id in [0, 7, u32::MAX] {
            assert_eq!(id_of(&path(directory, SpaceId(id))), Some(SpaceId(id)));
        }
        for other in [
            "space_.pdb",
            "space_01.pdb",
            "space_+1.pdb",
            "space_1.pdw",
            "control.pdc",
        ] {
            assert_eq!(id_of(Path::new(other)), None);
        }
    }
}
