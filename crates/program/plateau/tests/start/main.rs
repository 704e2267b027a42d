//! Starts and checks of a data directory, whole or damaged.

#![forbid(unsafe_code)]

mod check;
mod check_killed;
mod descriptors;
mod listeners;
mod log_lines;
mod lost_log;
mod lost_undo;
mod start_errors;
mod time_zone;

use std::fs;
use std::path::Path;

/// Removes the doublewrite files, of each worker. They have copies of the last written pages, from
/// which a start would repair what a test has damaged.
fn remove_copies(data: &Path) {
    let listed = fs::read_dir(data).expect("the data directory is there");
    let paths = listed.map(|entry| entry.expect("it can be listed").path());
    let mut count = 0;
    for path in paths.filter(|path| path.extension().is_some_and(|it| it == "pdw")) {
        fs::remove_file(path).expect("it can be removed");
        count += 1;
    }
    assert_ne!(count, 0, "the first worker has one");
}
