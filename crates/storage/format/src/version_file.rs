//! The file that holds the format version of a data directory.
//!
//! Layout: `docs/formats/data_directory.md`. It is text, so that people can read it; written once
//! when the directory is made.

use thiserror::Error;

/// The version of the data directory that this program reads and writes.
pub const DATA_FORMAT_VERSION: u32 = 2;

/// The file's name in the data directory.
pub const VERSION_FILE_NAME: &str = "PLATEAU_FORMAT";

const PREFIX: &str = "plateau data directory, format ";

/// Why a data directory is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum VersionError {
    /// Made by something else, or damaged.
    #[error("{VERSION_FILE_NAME} is not a version file of a plateau data directory")]
    Foreign,
    /// Made by a later program.
    #[error("data format {found} is newer than {DATA_FORMAT_VERSION}, the newest known here")]
    Newer {
        /// The version in the file.
        found: u32,
    },
    /// Made by a program whose format is no longer read.
    #[error("data format {found} is older than {DATA_FORMAT_VERSION}, the only one known here")]
    Older {
        /// The version in the file.
        found: u32,
    },
}

/// The contents of the file.
pub fn encode() -> String {
    format!("{PREFIX}{DATA_FORMAT_VERSION}\n")
}

/// Checks the contents of the file.
pub fn check(contents: &[u8]) -> Result<(), VersionError> {
    let text = std::str::from_utf8(contents).map_err(|_| VersionError::Foreign)?;
    // The file may have been written by direct I/O, which pads with zeroes.
    let text = text.trim_end_matches('\0');
    let number = text
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.strip_suffix('\n'));
    let number = number.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let found: u32 = number
        .and_then(|n| n.parse().ok())
        .ok_or(VersionError::Foreign)?;
    match found.cmp(&DATA_FORMAT_VERSION) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(VersionError::Newer { found }),
        std::cmp::Ordering::Less => Err(VersionError::Older { found }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_is_pinned() {
        assert_eq!(encode(), "plateau data directory, format 2\n");
        assert_eq!(check(encode().as_bytes()), Ok(()));
    }

    #[test]
    fn others_are_refused() {
        let contents = |text: &str| check(text.as_bytes());
        let newer = "plateau data directory, format 3\n";
        assert_eq!(contents(newer), Err(VersionError::Newer { found: 3 }));
        let older = "plateau data directory, format 1\n";
        assert_eq!(contents(older), Err(VersionError::Older { found: 1 }));
        for foreign in ["", "10.11", "plateau data directory, format +1\n", "\u{0}"] {
            assert_eq!(contents(foreign), Err(VersionError::Foreign));
        }
        assert_eq!(check(&[0xFF, 0xFE]), Err(VersionError::Foreign));
    }
}
