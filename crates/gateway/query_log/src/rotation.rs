//! When a file of the log is full, and which names move then. No I/O.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Whether a file of this length is full, so that bytes to be added belong into the next. One that
/// is empty never is.
pub(crate) fn is_due(length: u64, added: u64, bytes_max: u64) -> bool {
    0 < length && bytes_max < length.saturating_add(added)
}

/// The file that takes the place of a full one is opened by this name.
pub(crate) fn next_name(path: &Path) -> PathBuf {
    with_end(path, "new")
}

/// The names that move, in this order: each from, and to. So many full files are kept, the newest
/// as `.1`; the last one is replaced.
pub(crate) fn moves(path: &Path, kept: u32) -> Vec<(PathBuf, PathBuf)> {
    let name = |number: u32| match number {
        0 => path.to_owned(),
        _ => with_end(path, &number.to_string()),
    };
    let older = (1..=kept).rev().map(|to| (name(to - 1), name(to)));
    older.chain([(next_name(path), path.to_owned())]).collect()
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".");
    name.push(end);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_full_when_what_is_added_exceeds_its_size() {
        for (length, added, expected) in [
            (90, 9, false),
            (90, 10, false),
            (90, 11, true),
            (0, 1000, false),
            (1, 100, true),
            (u64::MAX, u64::MAX, true),
        ] {
            assert_eq!(is_due(length, added, 100), expected, "{length} {added}");
        }
    }

    #[test]
    fn full_files_get_higher_numbers() {
        let shown = |kept| {
            let moves = moves(Path::new("/log/q.json"), kept).into_iter();
            let shown = moves.map(|(from, to)| format!("{} {}", from.display(), to.display()));
            shown.collect::<Vec<_>>()
        };
        assert_eq!(shown(0), ["/log/q.json.new /log/q.json"]);
        assert_eq!(
            shown(2),
            [
                "/log/q.json.1 /log/q.json.2",
                "/log/q.json /log/q.json.1",
                "/log/q.json.new /log/q.json"
            ]
        );
    }
}
