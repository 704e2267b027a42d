//! Files that are full, rotated, moved away and cut, on the real file system.

use std::fs;

use env::linux::BlockingDisk;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::SIGXFSZ;
use signal_hook::iterator::Signals;

use super::*;
use crate::log::Log;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("plateau-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn files(&self, bytes_max: u64, kept: u32) -> Files {
        Files {
            path: self.0.join("q"),
            bytes_max,
            kept,
        }
    }

    fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.0.join(name)).ok()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // If this fails, the system cleans its temporary directory.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn open(files: &Files) -> Log {
    let log = Log::default();
    let opened = Opened::open(&BlockingDisk, files).unwrap();
    let _ = log.use_file(Some(opened));
    log
}

fn write(log: &Log, lines: &str) {
    let chunk = Chunk {
        bytes: lines.as_bytes().to_vec(),
        count: stdx::to_u64(lines.matches('\n').count()),
    };
    let _ = log.push(chunk);
    log.write(&BlockingDisk);
}

fn told(log: &Log) -> (u64, u64) {
    let numbers = log.numbers();
    (numbers.written, numbers.dropped)
}

#[test]
fn full_files_are_kept_under_other_names() {
    let folder = Folder::new("rotated");
    let files = folder.files(8, 2);
    let log = open(&files);
    write(&log, "1\n2\n3\n");
    write(&log, "4\n");
    assert_eq!(folder.text("q").as_deref(), Some("1\n2\n3\n4\n"));
    for line in ["5\n6\n7\n8\n", "9\n", "a\nb\nc\nd\ne\nf\n", "g\n"] {
        write(&log, line);
    }
    let all = ["q", "q.1", "q.2", "q.3", "q.new"].map(|name| folder.text(name));
    let expected = [
        Some("g\n"),
        Some("a\nb\nc\nd\ne\nf\n"),
        Some("9\n"),
        None,
        None,
    ];
    assert_eq!(all.each_ref().map(Option::as_deref), expected);
    assert_eq!(told(&log), (16, 0));
    // Another start goes on where this has ended.
    let log = open(&folder.files(8, 0));
    write(&log, "h\n");
    assert_eq!(folder.text("q").as_deref(), Some("g\nh\n"));
    write(&log, "i\nj\nk\n");
    assert_eq!(folder.text("q").as_deref(), Some("i\nj\nk\n"));
}

#[test]
fn a_file_that_was_moved_or_cut_is_followed() {
    let folder = Folder::new("moved");
    let files = folder.files(1000, 2);
    let log = open(&files);
    write(&log, "1\n");
    fs::rename(folder.0.join("q"), folder.0.join("old")).unwrap();
    write(&log, "2\n");
    let _ = log.use_file(Some(Opened::open(&BlockingDisk, &files).unwrap()));
    write(&log, "3\n");
    assert_eq!(folder.text("old").as_deref(), Some("1\n2\n"));
    assert_eq!(folder.text("q").as_deref(), Some("3\n"));
    fs::write(folder.0.join("q"), "").unwrap();
    write(&log, "4\n");
    assert_eq!(folder.text("q").as_deref(), Some("4\n"));
    let _ = log.use_file(None);
    write(&log, "5\n");
    assert_eq!(folder.text("q").as_deref(), Some("4\n"));
    assert_eq!(told(&log), (4, 1));
    let missing = Files {
        path: folder.0.join("no/q"),
        ..files
    };
    let error = Opened::open(&BlockingDisk, &missing).unwrap_err();
    assert_eq!(error.kind, DiskErrorKind::NotFound);
}

#[test]
fn a_full_file_that_cannot_be_replaced_is_written_on() {
    let folder = Folder::new("stuck");
    let log = open(&folder.files(4, 1));
    // No file can be renamed over a folder that has something in it.
    fs::create_dir_all(folder.0.join("q.1/full")).unwrap();
    write(&log, "1\n2\n");
    write(&log, "3\n");
    write(&log, "4\n");
    assert_eq!(folder.text("q").as_deref(), Some("1\n2\n3\n4\n"));
    assert_eq!(told(&log), (4, 0));
    fs::remove_dir_all(folder.0.join("q.1")).unwrap();
    write(&log, "5\n");
    assert_eq!(folder.text("q").as_deref(), Some("5\n"));
    assert_eq!(folder.text("q.1").as_deref(), Some("1\n2\n3\n4\n"));
}

/// As after a rotation whose last step has failed.
#[test]
fn older_files_stay_where_they_are_if_no_full_one_has_its_name() {
    let folder = Folder::new("again");
    let log = open(&folder.files(4, 2));
    for line in ["1\n2\n", "3\n4\n", "5\n6\n"] {
        write(&log, line);
    }
    for line in ["7\n8\n", "9\n0\n"] {
        fs::rename(folder.0.join("q"), folder.0.join("aside")).unwrap();
        write(&log, line);
    }
    let all = ["q", "q.1", "q.2", "aside"].map(|name| folder.text(name));
    let expected = ["9\n0\n", "3\n4\n", "1\n2\n", "7\n8\n"].map(Some);
    assert_eq!(all.each_ref().map(Option::as_deref), expected);
}

#[test]
fn a_full_disk_costs_lines_and_leaves_whole_ones() {
    // The limit of a process, which makes half of a chunk fit. Others of this program write less.
    let folder = Folder::new("full");
    let log = open(&folder.files(1 << 30, 1));
    let line = "x".repeat(99_999) + "\n";
    write(&log, &line.repeat(8));
    let before = getrlimit(Resource::Fsize);
    // It would end the process.
    let _caught = Signals::new([SIGXFSZ]).unwrap();
    let limit = Rlimit {
        current: Some(1_000_000),
        ..before
    };
    setrlimit(Resource::Fsize, limit).unwrap();
    write(&log, &line.repeat(4));
    write(&log, &line);
    setrlimit(Resource::Fsize, before).unwrap();
    assert_eq!(told(&log), (9, 4));
    write(&log, "end\n");
    assert_eq!(folder.text("q").unwrap(), line.repeat(9) + "end\n");
}
