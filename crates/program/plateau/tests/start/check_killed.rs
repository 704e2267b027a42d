//! `plateau check` on the directory of a server that was killed while it wrote large values. What
//! the next start undoes or gives back is no fault; a page that is lost is one.

#![allow(
    clippy::unwrap_used,
    reason = "the helpers of these tests fail as the tests do"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use format::PAGE_HEADER_BYTES;
use format::page::seal;
use sync::atomic::{AtomicU64, Ordering};
use testkit::Folder;
use testkit::client::{Client, Outcome};
use testkit::server::Launch;

const PAGE: usize = 16 << 10;
/// More than the workers, so that each worker writes.
const WRITERS: u64 = 6;
/// Values that all of them have written before the kill.
const WRITTEN_MIN: u64 = 40;
/// Statements that make the table's file longer than the writers will need, and leave it empty.
const GROW: [&str; 4] = [
    "create table d.t (id int primary key, v longblob)",
    "insert into d.t values (1, repeat('x', 12000000))",
    "insert into d.t values (2, repeat('x', 12000000))",
    "delete from d.t",
];

/// A data directory whose server was killed in the middle of writes of large values. A snapshot has
/// kept all older values, so each worker has left some for purge.
fn killed(folder: &Folder) -> PathBuf {
    let data = folder.path().join("data");
    let settings = ["workers=3".to_owned(), format!("data={}", data.display())];
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau")).with_settings(settings);
    let mut server = launch.start().unwrap();
    let mut client = server.connect().unwrap();
    client.run("create database d").unwrap();
    for statement in GROW {
        client.run(statement).unwrap();
    }
    drop(client);
    server.stop().unwrap();
    // Gives back all pages of the deleted values.
    assert_eq!(check(&data), Told::whole());
    server.start_again().unwrap();
    let mut reader = server.connect().unwrap();
    reader
        .run("start transaction with consistent snapshot")
        .unwrap();
    let written = AtomicU64::new(0);
    let clients: Vec<Client> = (0..WRITERS).map(|_| server.connect().unwrap()).collect();
    thread::scope(|scope| {
        for (id, client) in (0..WRITERS).zip(clients) {
            let written = &written;
            scope.spawn(move || write(client, id, written));
        }
        testkit::wait_until("the writers write", || {
            WRITTEN_MIN <= written.load(Ordering::Relaxed)
        });
        server.kill().unwrap();
    });
    data
}

/// Writes one value after the other until the server is gone.
fn write(mut client: Client, id: u64, written: &AtomicU64) {
    for length in (90_000..).step_by(100) {
        let replace = format!("replace into d.t values ({id}, repeat('y', {length}))");
        match client.query(&replace) {
            Ok(Outcome::Done(_)) => written.fetch_add(1, Ordering::Relaxed),
            Ok(other) => panic!("{other:?}"),
            Err(_) => return,
        };
    }
}

/// Exit code and faults of a check.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    code: Option<i32>,
    faults: Vec<String>,
}

impl Told {
    fn whole() -> Self {
        Self {
            code: Some(0),
            faults: Vec::new(),
        }
    }
}

/// The same of a copy, because a check recovers the directory.
fn check_copy(data: &Path, workers: u8) -> Told {
    let folder = Folder::new("killed-copy").unwrap();
    let copy = folder.path().join("data");
    let mut command = Command::new("cp");
    testkit::process::run(command.arg("-a").arg(data).arg(&copy)).unwrap();
    check_with(&copy, workers)
}

fn check(data: &Path) -> Told {
    check_with(data, 2)
}

fn check_with(data: &Path, workers: u8) -> Told {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plateau"));
    command.arg("check").arg(data);
    let output = command
        .args(["--workers", &workers.to_string()])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut faults: Vec<String> = text.lines().map(str::to_owned).collect();
    faults.pop();
    Told {
        code: output.status.code(),
        faults,
    }
}

/// Marks the last page of the longest tablespace as used, which no writer has come to. Returns its
/// name.
fn lose_page(data: &Path) -> String {
    let entries = fs::read_dir(data).unwrap().map(|entry| entry.unwrap());
    let spaces = entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "pdb"));
    let longest = spaces.max_by_key(|entry| entry.metadata().unwrap().len());
    let path = longest.unwrap().path();
    let mut bytes = fs::read(&path).unwrap();
    let high = &bytes[PAGE_HEADER_BYTES + 4..][..4];
    let last = u32::from_le_bytes(high.try_into().unwrap()) - 1;
    let place = usize::try_from(last).unwrap();
    let map = &mut bytes[PAGE..][..PAGE];
    let (byte, mask) = (PAGE_HEADER_BYTES + place / 8, 1 << (place % 8));
    assert_eq!(map[byte] & mask, 0, "the last page is free");
    map[byte] |= mask;
    seal(map);
    fs::write(&path, bytes).unwrap();
    let name = path.file_stem().unwrap().to_str().unwrap();
    format!("{}:{last}", name.strip_prefix("space_").unwrap())
}

#[test]
fn only_lost_pages_are_faults_after_a_kill() {
    let folder = Folder::new("killed-check").unwrap();
    let data = killed(&folder);
    for workers in [1, 2, 3, 4] {
        assert_eq!(check_copy(&data, workers), Told::whole());
    }
    let page = lose_page(&data);
    let told = check_copy(&data, 2);
    let fault = format!("page {page} is marked as used but belongs to nothing");
    assert_eq!(told.code, Some(1));
    assert!(told.faults.contains(&fault), "{:?}", told.faults);
    // The other one says that the page was never written.
    assert!(told.faults.len() <= 2, "{:?}", told.faults);
}
