//! A folder that is removed when it is dropped, unless the test panics: then it stays for
//! inspection.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Owned by one test. It is below the build's target directory, so that it is on a real disk.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// A new, empty folder whose name begins with `name`.
    pub fn new(name: &str) -> Result<Folder> {
        let parent = target_directory().join("testkit");
        fs::create_dir_all(&parent)?;
        let process = std::process::id();
        for number in 0..10_000_u32 {
            let path = parent.join(format!("{name}-{process}-{number}"));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Folder { path }),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).with_context(|| path.display().to_string()),
            }
        }
        anyhow::bail!("no free folder name below {}", parent.display())
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !std::thread::panicking() && std::env::var_os("TESTKIT_KEEP").is_none() {
            // What cannot be removed is below `target` and is removed with it.
            drop(fs::remove_dir_all(&self.path));
        }
    }
}

/// The repository's root.
pub fn repository_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors()
        .nth(3)
        .expect("testkit stands three floors below the root")
        .to_path_buf()
}

/// Where cargo builds: `CARGO_TARGET_DIR`, or `target` in the root.
pub fn target_directory() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(path) => repository_root().join(path),
        None => repository_root().join("target"),
    }
}

/// Copies a tree of files and folders. Sockets and the like are left out.
pub fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let target = to.join(entry.file_name());
        if kind.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_apart_and_vanish() {
        let one = Folder::new("folder").unwrap();
        let two = Folder::new("folder").unwrap();
        assert_ne!(one.path(), two.path());
        fs::create_dir(one.path().join("sub")).unwrap();
        fs::write(one.path().join("sub/file"), b"x").unwrap();
        copy_tree(one.path(), &two.path().join("copy")).unwrap();
        assert_eq!(fs::read(two.path().join("copy/sub/file")).unwrap(), b"x");
        let path = one.path().to_path_buf();
        drop(one);
        assert!(!path.exists());
    }
}
