//! A real server on a file system that fills up. Statements fail with their number, reads go on,
//! and nothing acknowledged is lost. No restart is needed once there is space.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    reason = "the helpers of these tests fail as the tests do"
)]

use std::fs;
use std::path::Path;
use std::process::Command;

use testkit::client::{Client, Outcome};
use testkit::server::{Launch, Server};
use testkit::{Folder, process, wait_until};

/// More than the small disks of these tests can hold.
const INSERT_COUNT_MAX: i64 = 100_000;

fn launch(data: &Path) -> Launch {
    let place = format!("data={}", data.display());
    Launch::plateau(env!("CARGO_BIN_EXE_plateau")).with_settings([
        place.as_str(),
        "buffer_pool_size=16M",
        "log_size=32M",
    ])
}

/// A small file system of its own, unmounted when dropped.
struct SmallDisk {
    folder: Folder,
}

impl SmallDisk {
    /// `None` without the permission to mount.
    fn mount(megabytes: u32) -> Option<SmallDisk> {
        let folder = Folder::new("disk").unwrap();
        let size = format!("size={megabytes}m");
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &size, "tmpfs"]);
        process::run(command.arg(folder.path())).ok()?;
        Some(SmallDisk { folder })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The server that used it may still be running for a moment.
        let mut command = Command::new("umount");
        drop(command.arg("-l").arg(self.folder.path()).output());
    }
}

fn number(client: &mut Client, statement: &str) -> i64 {
    let rows = client.rows(statement).unwrap();
    let text = rows[0][0].clone().expect("a count is not NULL");
    String::from_utf8(text).unwrap().parse().unwrap()
}

/// The error number of a statement; 0 if it succeeds.
fn outcome(client: &mut Client, statement: &str) -> u16 {
    match client.query(statement).unwrap() {
        Outcome::Error(error) => error.number,
        _ => 0,
    }
}

fn make_table(server: &Server) -> Client {
    let mut client = server.connect().unwrap();
    client.run("create database d").unwrap();
    client
        .run("create table d.t (id bigint primary key, b longblob, key (b(20)))")
        .unwrap();
    client
}

/// Inserts until the disk is full. Returns how many rows were acknowledged, ids from 0.
fn fill(client: &mut Client) -> i64 {
    for id in 0..INSERT_COUNT_MAX {
        let statement =
            format!("insert into d.t values ({id}, repeat(char(65 + {id} % 26), 9000))");
        match outcome(client, &statement) {
            0 => {}
            1021 => return id,
            other => panic!("error {other} on a full disk"),
        }
    }
    panic!("the disk does not run full");
}

/// What must hold while the disk is full: reads, rollback, and reuse of the space of deleted rows.
/// Returns how many rows there are then, ids from 0.
fn work_on_full_disk(client: &mut Client, count: i64) -> i64 {
    assert_eq!(number(client, "select count(*) from d.t"), count);
    client.run("begin").unwrap();
    client
        .run("update d.t set b = concat('x', substr(b, 2)) where id < 20")
        .ok();
    client.run("rollback").unwrap();
    assert_eq!(
        number(client, "select count(*) from d.t where b like 'x%'"),
        0
    );
    assert_eq!(number(client, "select count(*) from d.t"), count);
    let (kept, again) = (count - 60, count - 40);
    let delete = format!("delete from d.t where {kept} <= id");
    client.run(&delete).unwrap();
    for id in kept..again {
        let insert = format!("insert into d.t values ({id}, repeat('r', 9000))");
        // The space is free once no snapshot can read the deleted rows and they are purged.
        wait_until(&insert, || match outcome(client, &insert) {
            0 => true,
            1021 => false,
            other => panic!("error {other} on a full disk"),
        });
    }
    assert_eq!(number(client, "select count(*) from d.t"), again);
    again
}

fn check(data: &Path) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plateau"));
    process::run(command.arg("check").arg(data)).unwrap();
}

/// The table's file may not grow: a limit of the process, which needs no permission, and is lifted
/// later.
#[test]
fn a_file_that_cannot_grow_fails_statements_until_it_can() {
    let folder = Folder::new("limit").unwrap();
    let data = folder.path().join("data");
    let mut server = launch(&data).start().unwrap();
    let mut client = make_table(&server);
    let id = server.process().id();
    let limit = |bytes: &str| {
        let mut command = Command::new("prlimit");
        command.arg(format!("--pid={id}"));
        process::run(command.arg(format!("--fsize={bytes}:"))).unwrap();
    };
    limit("16777216");
    let count = fill(&mut client);
    assert!(100 < count, "{count}");
    let told = client.query("insert into d.t values (-1, repeat('y', 90000))");
    let Outcome::Error(told) = told.unwrap() else {
        panic!("there is no room");
    };
    let text = told.message;
    assert!(text.contains("the statement was not carried out"), "{text}");
    let line = "the disk is full: ";
    wait_until(line, || server.log().contains(line));
    let count = work_on_full_disk(&mut client, count);
    limit("unlimited");
    client
        .run("insert into d.t values (-1, repeat('y', 90000))")
        .unwrap();
    // Each shortage that the log names has its end there, as soon as a file has grown.
    let (end, mut more) = ("the disk has room again", 1);
    wait_until(end, || {
        more += 1;
        client
            .run(&format!(
                "insert into d.t values (-{more}, repeat('y', 90000))"
            ))
            .unwrap();
        let log = server.log();
        log.matches(line).count() == log.matches(end).count()
    });
    server.kill().unwrap();
    server.start_again().unwrap();
    let mut client = server.connect().unwrap();
    assert_eq!(
        number(&mut client, "select count(*) from d.t"),
        count + more
    );
    server.stop().unwrap();
    check(&data);
}

/// Everything is full: data, undo and log share one small file system.
#[test]
fn a_full_file_system_is_survived() {
    let Some(disk) = SmallDisk::mount(72) else {
        eprintln!("not run: a small file system cannot be mounted here (that takes root)");
        return;
    };
    let data = disk.path().join("data");
    let mut server = launch(&data).start().unwrap();
    let mut client = make_table(&server);
    let ballast = disk.path().join("ballast");
    fs::write(&ballast, vec![1; 8 << 20]).unwrap();
    let count = fill(&mut client);
    assert!(100 < count, "{count}");
    let count = work_on_full_disk(&mut client, count);
    // Down to the last page: a table grows by more than one.
    let rest = disk.path().join("rest");
    assert!(fs::write(&rest, vec![1; 8 << 20]).is_err());
    assert_eq!(
        outcome(&mut client, "create table d.u (a int primary key)"),
        1021
    );
    // Deleting needs no free space, and frees some.
    client.run("delete from d.t where id < 50").unwrap();
    let mut kept = count - 50;
    // It starts on a full disk, too.
    server.kill().unwrap();
    server.start_again().unwrap();
    let mut client = server.connect().unwrap();
    assert_eq!(number(&mut client, "select count(*) from d.t"), kept);
    fs::remove_file(&rest).unwrap();
    fs::remove_file(&ballast).unwrap();
    for id in 0..200 {
        let statement = format!("insert into d.t values (-1 - {id}, repeat('n', 9000))");
        client.run(&statement).unwrap();
    }
    kept += 200;
    client.run("create table d.u (a int primary key)").unwrap();
    assert_eq!(number(&mut client, "select count(*) from d.t"), kept);
    server.stop().unwrap();
    check(&data);
}
