//! A server whose undo is damaged after kill -9, while its log is whole. It refuses to start. If
//! the operator accepts the loss, only the transactions of the lost segment are concerned.

#![allow(
    clippy::unwrap_used,
    reason = "the helpers of these tests fail as the tests do"
)]

use std::fs;
use std::path::{Path, PathBuf};

use testkit::Folder;
use testkit::client::Client;
use testkit::server::{Launch, Server};

use super::remove_copies;

const PAGE: usize = 16 << 10;
/// Transactions of each kind. The sessions are on both workers.
const OPEN_COUNT: u64 = 8;
const PREPARED_COUNT: u64 = 8;
/// Rows that each open transaction has changed.
const CHANGE_COUNT: u64 = 100;

/// A data directory of a server that was killed, with open and with prepared transactions.
fn killed(folder: &Folder) -> PathBuf {
    let data = folder.path().join("data");
    let mut server = launch(&data).start().unwrap();
    let mut client = server.connect().unwrap();
    client.run("create database d").unwrap();
    for table in ["open", "prepared"] {
        let create = format!("create table d.{table} (id int primary key, v int)");
        client.run(&create).unwrap();
    }
    drop(client);
    // Up to here everything is in the files.
    server.stop().unwrap();
    server.start_again().unwrap();
    let connect = |_| server.connect().unwrap();
    let mut sessions: Vec<Client> = (0..OPEN_COUNT + PREPARED_COUNT).map(connect).collect();
    let (open, prepared) = sessions.split_at_mut(usize::try_from(OPEN_COUNT).unwrap());
    for (number, session) in (0..OPEN_COUNT).zip(open) {
        session.run("begin").unwrap();
        for id in 0..CHANGE_COUNT {
            let id = number * CHANGE_COUNT + id;
            let insert = format!("insert into d.open values ({id}, 1)");
            session.run(&insert).unwrap();
        }
    }
    for (number, session) in prepared.iter_mut().enumerate() {
        for statement in [
            format!("xa start 'p{number}'"),
            format!("insert into d.prepared values ({number}, 1)"),
            format!("xa end 'p{number}'"),
            format!("xa prepare 'p{number}'"),
        ] {
            session.run(&statement).unwrap();
        }
    }
    // Makes all of it durable.
    let mut other = server.connect().unwrap();
    other.run("create database other").unwrap();
    server.kill().unwrap();
    drop(sessions);
    data
}

fn launch(data: &Path) -> Launch {
    let place = format!("data={}", data.display());
    let program = env!("CARGO_BIN_EXE_plateau");
    Launch::plateau(program).with_settings([place, "workers=2".to_owned()])
}

fn copy(from: &Path, to: &Path) {
    let mut command = std::process::Command::new("cp");
    command.arg("-a").arg(from).arg(to);
    testkit::process::run(&mut command).unwrap();
}

fn count(client: &mut Client, table: &str) -> u64 {
    let read = client.value(&format!("select count(*) from d.{table}"));
    read.unwrap().unwrap().parse().unwrap()
}

/// A server that refuses to start, and starts with the operator's word.
fn accept(data: &Path, told: &str) -> Server {
    let refused = format!("{:#}", launch(data).start().unwrap_err());
    assert!(refused.contains(told), "{refused}");
    assert!(refused.contains("see --accept-log-loss"), "{refused}");
    launch(data).with("--accept-log-loss").start().unwrap()
}

/// Each worker can change something, also after the next start.
fn use_and_start_again(mut server: Server) {
    for round in 0..2 {
        for number in 0..4 {
            let mut client = server.connect().unwrap();
            let id = 1_000_000 + round * 10 + number;
            let insert = format!("insert into d.open values ({id}, 2)");
            client.run(&insert).unwrap();
        }
        server.stop().unwrap();
        server.start_again().unwrap();
    }
    server.stop().unwrap();
}

#[test]
fn a_lost_segment_takes_its_own_transactions_alone() {
    let folder = Folder::new("lost-segment").unwrap();
    let data = killed(&folder);
    let (mut open, mut prepared) = (0, 0);
    for segment in ["space_1.pdb", "space_2.pdb"] {
        let harmed = folder.path().join(segment);
        copy(&data, &harmed);
        fs::remove_file(harmed.join(segment)).unwrap();
        let server = accept(&harmed, "is missing");
        let told = server.log();
        assert!(told.contains("an undo segment is lost"), "{told}");
        assert!(told.lines().count() < 10, "one file is missing: {told}");
        let mut client = server.connect().unwrap();
        let left = count(&mut client, "open");
        assert!(0 < left, "the segment had some");
        open += left;
        let still = client.rows("xa recover").unwrap();
        let seen = count(&mut client, "prepared");
        assert_eq!(u64::try_from(still.len()).unwrap() + seen, PREPARED_COUNT);
        for row in still {
            let id = String::from_utf8(row[3].clone().unwrap()).unwrap();
            client.run(&format!("xa rollback '{id}'")).unwrap();
        }
        assert_eq!(count(&mut client, "prepared"), seen);
        prepared += seen;
        drop(client);
        use_and_start_again(server);
    }
    // Each transaction has stayed where its own segment was lost, and nowhere else.
    assert_eq!(open, OPEN_COUNT * CHANGE_COUNT);
    assert_eq!(prepared, PREPARED_COUNT);
}

/// The header and the map of an undo file. No change could be made without them.
#[test]
fn a_lost_map_of_undo_takes_nothing() {
    let folder = Folder::new("lost-map").unwrap();
    let data = killed(&folder);
    for page in [0, 1] {
        let harmed = folder.path().join(format!("page-{page}"));
        copy(&data, &harmed);
        remove_copies(&harmed);
        // The log makes the pages again that it has changes for, as long as there is some.
        let mut server = launch(&harmed).start().unwrap();
        server.stop().unwrap();
        remove_copies(&harmed);
        let path = harmed.join("space_1.pdb");
        let mut bytes = fs::read(&path).unwrap();
        bytes[page * PAGE + 100..page * PAGE + 200].fill(0xEE);
        fs::write(&path, bytes).unwrap();
        let server = accept(&harmed, &format!("space_1.pdb page {page}"));
        let told = server.log();
        assert!(told.contains("is made again"), "{told}");
        let mut client = server.connect().unwrap();
        assert_eq!(count(&mut client, "open"), 0);
        let still = client.rows("xa recover").unwrap().len();
        assert_eq!(u64::try_from(still).unwrap(), PREPARED_COUNT);
        for number in 0..PREPARED_COUNT {
            client.run(&format!("xa commit 'p{number}'")).unwrap();
        }
        assert_eq!(count(&mut client, "prepared"), PREPARED_COUNT);
        drop(client);
        use_and_start_again(server);
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_plateau"));
        let output = command.arg("check").arg(&harmed).output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{told}");
    }
}
