//! A server whose log is damaged after kill -9. It refuses to start, and names file and position.
//! It starts without the lost part only if the operator accepts the loss.

#![allow(
    clippy::unwrap_used,
    reason = "the helpers of these tests fail as the tests do"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use testkit::Folder;
use testkit::client::Client;
use testkit::server::{Launch, Server};

const COMMIT_COUNT: i64 = 300;
const BLOCK: usize = 4096;

/// A data directory with commits that were acknowledged before the process was killed.
fn killed() -> (Folder, PathBuf) {
    let folder = Folder::new("lost-log").unwrap();
    let data = folder.path().join("data");
    let mut server = launch(&data).start().unwrap();
    let mut client = server.connect().unwrap();
    client.run("create database d").unwrap();
    client.run("create table d.t (id int primary key)").unwrap();
    drop(client);
    // Up to here everything is in the files.
    server.stop().unwrap();
    server.start_again().unwrap();
    let mut client = server.connect().unwrap();
    for id in 0..COMMIT_COUNT {
        let insert = format!("insert into d.t values ({id})");
        client.run(&insert).unwrap();
    }
    server.kill().unwrap();
    drop(server);
    (folder, data)
}

fn launch(data: &Path) -> Launch {
    let place = format!("data={}", data.display());
    Launch::plateau(env!("CARGO_BIN_EXE_plateau")).with_settings([place])
}

fn copy(from: &Path, to: &Path) {
    let mut command = Command::new("cp");
    command.arg("-a").arg(from).arg(to);
    testkit::process::run(&mut command).unwrap();
}

fn plateau(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plateau"));
    command.args(arguments).output().unwrap()
}

fn count(client: &mut Client) -> i64 {
    let rows = client.value("select count(*) from d.t").unwrap();
    rows.unwrap().parse().unwrap()
}

/// The segments, in order.
fn segments(data: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(data.join("log")).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn cut(path: &Path, length: u64) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(length).unwrap();
}

fn rot(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

type Harm = fn(&Path);

const HARMS: [(&str, Harm); 6] = [
    ("the file is missing", |data| {
        fs::remove_file(&segments(data)[0]).unwrap();
    }),
    ("the file has 0 bytes", |data| cut(&segments(data)[0], 0)),
    ("and a segment has", |data| {
        let path = &segments(data)[0];
        cut(path, fs::metadata(path).unwrap().len() / 2);
    }),
    ("the file is missing", |data| {
        fs::remove_dir_all(data.join("log")).unwrap();
        fs::create_dir(data.join("log")).unwrap();
    }),
    ("the file is missing", |data| {
        fs::remove_dir_all(data.join("log")).unwrap();
    }),
    ("which was durable when the one at byte", |data| {
        rot(&segments(data)[0], 200 * BLOCK + 40);
    }),
];

#[test]
fn lost_log_is_named_and_refused() {
    let (folder, data) = killed();
    for (number, (what, harm)) in HARMS.iter().enumerate() {
        let harmed = folder.path().join(format!("harmed-{number}"));
        copy(&data, &harmed);
        harm(&harmed);
        let place = format!("data={}", harmed.display());
        let output = plateau(&["--set", "listen=127.0.0.1:0", "--set", &place]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{what}: {told}");
        for part in [
            what,
            "log_0000000000000000.pdl is damaged at byte ",
            "--accept-log-loss",
        ] {
            assert!(told.contains(part), "{told}");
        }
        assert_eq!(told.trim_end().lines().count(), 1, "{told}");
        let output = plateau(&["check", &harmed.display().to_string()]);
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains("log_0000000000000000.pdl"), "{told}");
        let accepting = launch(&harmed).with("--accept-log-loss");
        let mut server = accepting.start().unwrap();
        assert!(server.log().contains("log is lost"), "{}", server.log());
        let mut client = server.connect().unwrap();
        assert!(client.query("select 1").is_ok());
        client.run("create database after").unwrap();
        drop(client);
        server.kill().unwrap();
        drop(server);
        // An accepted loss is not reported again.
        let mut server = launch(&harmed).start().unwrap();
        let mut client = server.connect().unwrap();
        client.run("use after").unwrap();
        drop(client);
        server.stop().unwrap();
    }
    // The original is undamaged, so the option is not needed.
    let mut server = launch(&data).with("--accept-log-loss").start().unwrap();
    assert!(server.log().contains("loses no log"), "{}", server.log());
    assert_eq!(count(&mut server.connect().unwrap()), COMMIT_COUNT);
    server.stop().unwrap();
    // After a clean shutdown no log is needed.
    fs::remove_dir_all(data.join("log")).unwrap();
    let mut server = launch(&data).start().unwrap();
    assert_eq!(count(&mut server.connect().unwrap()), COMMIT_COUNT);
    server.stop().unwrap();
}

/// Everything before the damage is kept.
#[test]
fn what_was_logged_before_the_damage_is_kept() {
    let (_folder, data) = killed();
    // The last block that is known to be durable, and some before it.
    let path = segments(&data).remove(0);
    let bytes = fs::read(&path).unwrap();
    let used = bytes
        .chunks_exact(BLOCK)
        .take_while(|it| it[31] | it[30] != 0);
    let last = used.count();
    rot(&path, (last - 20) * BLOCK + 40);
    let mut server = launch(&data).with("--accept-log-loss").start().unwrap();
    let kept = count(&mut server.connect().unwrap());
    assert!((COMMIT_COUNT - 40..COMMIT_COUNT).contains(&kept), "{kept}");
    server.stop().unwrap();
    let output = plateau(&["check", &data.display().to_string()]);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{told}");
}

/// A transaction that was open at the kill, with undo on several pages, some of them newer than the
/// log that is left.
#[test]
fn an_open_transaction_is_rolled_back_as_far_as_can_be() {
    let folder = Folder::new("lost-undo").unwrap();
    let data = folder.path().join("data");
    let small = ["buffer_pool_size=5M".to_owned(), "log_size=32M".to_owned()];
    let launch = || launch(&data).with_settings(small.clone());
    let mut server = launch().start().unwrap();
    let mut client = server.connect().unwrap();
    client.run("create database d").unwrap();
    client
        .run("create table d.t (id int primary key, v int, b longblob)")
        .unwrap();
    let insert = |client: &mut Client, range: std::ops::Range<i64>, v: i64| {
        for id in range {
            let insert = format!("insert into d.t values ({id}, {v}, repeat('z', 20000))");
            client.run(&insert).unwrap();
        }
    };
    insert(&mut client, 0..100, 0);
    insert(&mut client, 500..501, 0);
    drop(client);
    // Up to here everything is in the files.
    server.stop().unwrap();
    server.start_again().unwrap();
    let mut client = server.connect().unwrap();
    client.run("use d").unwrap();
    client.run("begin").unwrap();
    client
        .run("update d.t set v = v + 1 where id < 100")
        .unwrap();
    // The checkpoint of this moment, behind which all log will be lost.
    let checkpoint = fs::read(data.join("control.pdc")).unwrap();
    let mut other = server.connect().unwrap();
    insert(&mut other, 1000..1400, 1);
    server.kill().unwrap();
    drop(server);
    fs::write(data.join("control.pdc"), checkpoint).unwrap();
    for segment in segments(&data) {
        fs::remove_file(segment).unwrap();
    }
    assert!(launch().start().is_err(), "a loss of log is refused");
    let mut server = launch().with("--accept-log-loss").start().unwrap();
    let told = server.log();
    assert!(told.contains("pages are newer than the log"), "{told}");
    let mut client = server.connect().unwrap();
    // What had not committed is rolled back.
    client.run("use d").unwrap();
    let read = client.value("select count(*) from t where id < 100");
    assert_eq!(read.unwrap().as_deref(), Some("100"), "{told}");
    let read = client.value("select sum(v) from t where id < 100");
    assert_eq!(read.unwrap().as_deref(), Some("0"), "{told}");
    // A new transaction is younger than all that have written rows: it sees its own and theirs.
    client
        .run("create table after (id int primary key)")
        .unwrap();
    client.run("insert into after values (1)").unwrap();
    server.kill().unwrap();
    drop(server);
    let mut server = launch().start().unwrap();
    assert!(!server.log().contains("log is lost"), "{}", server.log());
    let mut client = server.connect().unwrap();
    let read = client.value("select id from d.after");
    assert_eq!(read.unwrap().as_deref(), Some("1"));
    drop(client);
    server.stop().unwrap();
}

/// The numbers of the pages of the dictionary's file that have this text.
fn pages_with(data: &Path, text: &str) -> Vec<usize> {
    let bytes = fs::read(data.join("space_0.pdb")).unwrap();
    let has = |page: &[u8]| page.windows(text.len()).any(|it| it == text.as_bytes());
    let pages = bytes.chunks(16 << 10).enumerate();
    pages
        .filter(|(_, page)| has(page))
        .map(|(no, _)| no)
        .collect()
}

/// Overwrites a page of the dictionary's file; returns what was there.
fn put_page(data: &Path, page: usize, new: &[u8]) -> Vec<u8> {
    let path = data.join("space_0.pdb");
    let mut bytes = fs::read(&path).unwrap();
    let place = page * (16 << 10)..(page + 1) * (16 << 10);
    let old = bytes[place.clone()].to_vec();
    bytes[place].copy_from_slice(new);
    fs::write(path, bytes).unwrap();
    old
}

const TABLE_COUNT: usize = 60;

/// A server that was killed, with many tables in the dictionary, pages that are newer than the log,
/// and a log that is lost.
fn lost_behind_many_tables(launch: &dyn Fn() -> Launch, data: &Path) {
    let mut server = launch().start().unwrap();
    let mut client = server.connect().unwrap();
    client.run("create database d").unwrap();
    let columns: Vec<String> = (0..40).map(|no| format!("a_column_{no} int")).collect();
    let columns = columns.join(", ");
    for number in 0..TABLE_COUNT {
        let create = format!("create table d.many_{number:02} (id int primary key, {columns})");
        client.run(&create).unwrap();
    }
    client
        .run("create table d.t (id int primary key, b longblob)")
        .unwrap();
    drop(client);
    // Up to here everything is in the files.
    server.stop().unwrap();
    server.start_again().unwrap();
    let checkpoint = fs::read(data.join("control.pdc")).unwrap();
    let mut client = server.connect().unwrap();
    for id in 0..400 {
        let insert = format!("insert into d.t values ({id}, repeat('z', 20000))");
        client.run(&insert).unwrap();
    }
    server.kill().unwrap();
    drop(server);
    fs::write(data.join("control.pdc"), checkpoint).unwrap();
    for segment in segments(data) {
        fs::remove_file(segment).unwrap();
    }
    super::remove_copies(data);
}

/// A leaf of the dictionary that was never written takes the tables that it named. The root takes
/// all; then no start succeeds, and none advises what has not helped.
#[test]
fn a_lost_page_of_the_dictionary_takes_its_own_tables_alone() {
    let folder = Folder::new("lost-dictionary").unwrap();
    let data = folder.path().join("data");
    let small = ["buffer_pool_size=5M".to_owned(), "log_size=32M".to_owned()];
    let launch = || launch(&data).with_settings(small.clone());
    lost_behind_many_tables(&launch, &data);
    let zeroes = vec![0; 16 << 10];
    let leaf = pages_with(&data, "many_30").pop().unwrap();
    put_page(&data, leaf, &zeroes);
    let root = put_page(&data, 3, &zeroes);
    let failure = launch().with("--accept-log-loss").start().unwrap_err();
    let failure = format!("{failure:#}");
    assert!(failure.contains("space_0.pdb page 3"), "{failure}");
    assert!(failure.contains("from a backup"), "{failure}");
    assert!(!failure.contains("see --accept-log-loss"), "{failure}");
    put_page(&data, 3, &root);
    // The start before this one has accepted the loss, and said so in the control file.
    let mut server = launch().start().unwrap();
    let told = server.log();
    assert!(told.contains("did not come to its end"), "{told}");
    assert!(
        told.contains("a page of the dictionary is made again"),
        "{told}"
    );
    for _ in 0..2 {
        let mut client = server.connect().unwrap();
        let read = client.rows("show tables from d").unwrap();
        assert!((20..TABLE_COUNT).contains(&read.len()), "{}", read.len());
        client.run("use d").unwrap();
        assert_eq!(client.error_number("select * from many_30").unwrap(), 1146);
        assert!(client.query("select * from many_00").is_ok());
        let create = format!("create table after_{} (id int)", read.len());
        client.run(&create).unwrap();
        drop(client);
        server.stop().unwrap();
        server.start_again().unwrap();
    }
    server.stop().unwrap();
}

/// The file of the table that was made last.
fn newest_table_file(data: &Path) -> PathBuf {
    let entries = fs::read_dir(data).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let number = |path: &PathBuf| -> Option<u32> {
        let name = path.file_name()?.to_str()?;
        name.strip_prefix("space_")?
            .strip_suffix(".pdb")?
            .parse()
            .ok()
    };
    paths.max_by_key(|path| number(path)).unwrap()
}

/// A transaction that is prepared on one table, and one that is open on the other, both durable.
fn leave_transactions(server: &Server) -> [Client; 2] {
    let mut prepared = server.connect().unwrap();
    for statement in [
        "xa start 'p'",
        "insert into d.kept (v) values (4)",
        "xa end 'p'",
        "xa prepare 'p'",
    ] {
        prepared.run(statement).unwrap();
    }
    let mut open = server.connect().unwrap();
    open.run("begin").unwrap();
    open.run("insert into d.t (v) values (4)").unwrap();
    let mut other = server.connect().unwrap();
    other.run("create database other").unwrap();
    [prepared, open]
}

/// A missing file takes its own table alone, and is refused if the log has changes for it.
#[test]
fn a_missing_file_loses_its_own_table_alone() {
    let folder = Folder::new("lost-file").unwrap();
    let data = folder.path().join("data");
    let mut server = launch(&data).start().unwrap();
    let mut client = server.connect().unwrap();
    client.run("create database d").unwrap();
    client.run("use d").unwrap();
    let columns = "(id int auto_increment primary key, v int)";
    client.run(&format!("create table kept {columns}")).unwrap();
    client.run(&format!("create table t {columns}")).unwrap();
    client.run("insert into kept (v) values (1), (2)").unwrap();
    client.run("insert into t (v) values (1), (2)").unwrap();
    drop(client);
    server.stop().unwrap();
    let (file, aside) = (newest_table_file(&data), folder.path().join("aside"));
    fs::rename(&file, &aside).unwrap();
    let mut server = launch(&data).start().unwrap();
    assert!(server.log().contains("d.t"), "{}", server.log());
    let mut client = server.connect().unwrap();
    client.run("use d").unwrap();
    client.run("insert into kept (v) values (3)").unwrap();
    for statement in [
        "select * from t",
        "insert into t (v) values (3)",
        "insert into t values (9, 9)",
    ] {
        let failure = format!("{:#}", client.run(statement).unwrap_err());
        assert!(failure.contains("is missing"), "{failure}");
    }
    drop(client);
    server.stop().unwrap();
    // The file is put back, and nothing is lost.
    fs::rename(&aside, &file).unwrap();
    let mut server = launch(&data).start().unwrap();
    let mut client = server.connect().unwrap();
    client.run("use d").unwrap();
    client.run("insert into t (v) values (3)").unwrap();
    let read = client.value("select group_concat(id) from t").unwrap();
    assert_eq!(read.as_deref(), Some("1,2,3"));
    // The log has changes for it: it is refused, until the operator accepts the loss. A transaction
    // that is prepared on another table is kept, and one that has changed the lost one ends.
    let _open = leave_transactions(&server);
    server.kill().unwrap();
    drop(server);
    fs::rename(&file, &aside).unwrap();
    let failure = launch(&data).start().unwrap_err();
    assert!(format!("{failure:#}").contains("is missing"), "{failure:#}");
    let mut server = launch(&data).with("--accept-log-loss").start().unwrap();
    server.kill().unwrap();
    drop(server);
    // An accepted loss is not met again.
    let mut server = launch(&data).start().unwrap();
    let mut client = server.connect().unwrap();
    client.run("use d").unwrap();
    assert!(client.run("select * from t").is_err());
    client.run("xa commit 'p'").unwrap();
    let read = client.value("select count(*) from kept").unwrap();
    assert_eq!(read.as_deref(), Some("4"));
    client.run("drop table t").unwrap();
    client.run(&format!("create table t {columns}")).unwrap();
    client.run("insert into t (v) values (1)").unwrap();
    drop(client);
    server.stop().unwrap();
    server.start_again().unwrap();
    let read = server.connect().unwrap().value("select count(*) from d.t");
    assert_eq!(read.unwrap().as_deref(), Some("1"));
    server.stop().unwrap();
}
