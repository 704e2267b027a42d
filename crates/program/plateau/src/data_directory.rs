//! The data directory as a whole: made where it is missing, held by one process at a time.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use env::linux::BlockingDisk;
use env::{Disk, DiskErrorKind, File, FileAccess, OpenOptions};

/// Held for as long as the process uses the directory; the kernel lets go when the process ends,
/// however it ends.
const LOCK_FILE: &str = "plateau.lock";

/// A data directory that belongs to this process.
#[derive(Debug)]
pub(crate) struct DataDirectory {
    /// Whether it was empty or missing before.
    pub(crate) is_new: bool,
    _lock: File,
}

impl DataDirectory {
    /// Takes the directory for this process and makes it if need be.
    pub(crate) fn open(path: &Path) -> Result<DataDirectory> {
        let name = path.display();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .with_context(|| format!("cannot make the data directory {name}"))?;
        let mut entries =
            fs::read_dir(path).with_context(|| format!("cannot read the data directory {name}"))?;
        let is_new = entries.next().is_none();
        let options = OpenOptions {
            write: true,
            create: true,
            exclusive: false,
            access: FileAccess::Buffered,
        };
        let file = BlockingDisk
            .open(&path.join(LOCK_FILE), options)
            .with_context(|| format!("cannot write in the data directory {name}"))?;
        if let Err(error) = BlockingDisk.lock(&file) {
            if error.kind == DiskErrorKind::Busy {
                bail!("the data directory {name} is in use by another process");
            }
            return Err(error).with_context(|| format!("cannot lock the data directory {name}"));
        }
        Ok(DataDirectory {
            is_new,
            _lock: file,
        })
    }
}

/// `plateau check`.
pub(crate) fn check(path: &Path) -> Result<()> {
    anyhow::ensure!(path.is_dir(), "{} is not a directory", path.display());
    let _held = DataDirectory::open(path)?;
    bail!("checking is not built yet: the storage engine does not stand behind the server")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_at_a_time() {
        let folder = testkit::Folder::new("data").unwrap();
        let path = folder.path().join("a/b");
        let first = DataDirectory::open(&path).unwrap();
        assert!(first.is_new);
        let error = DataDirectory::open(&path).unwrap_err();
        assert!(
            error.to_string().ends_with("is in use by another process"),
            "{error:#}"
        );
        drop(first);
        assert!(!DataDirectory::open(&path).unwrap().is_new);
    }

    #[test]
    fn a_file_in_its_place_is_named() {
        let folder = testkit::Folder::new("data").unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "").unwrap();
        let error = DataDirectory::open(&path).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("cannot make the data directory"),
            "{error:#}"
        );
    }
}
