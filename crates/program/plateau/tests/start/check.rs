//! `plateau check` on damaged data directories: the faults that it names, and its exit code.

#![allow(
    clippy::unwrap_used,
    reason = "the helpers of these tests fail as the tests do"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use format::page::{PageHeader, seal};
use format::row_header::LobReference;
use format::undo::{UNDO_RECORDS_START, UndoRecord, copy_record, used};
use format::{PAGE_HEADER_BYTES, PageNo, PageSize, PageType, UndoPointer};
use testkit::Server;
use testkit::client::Outcome;
use testkit::server::Launch;

use crate::remove_copies;

const PAGE: usize = 16 << 10;
/// Of the only undo segment, and of the first table.
const UNDO_FILE: &str = "space_1.pdb";
/// Page 0 is the header, page 1 the map, page 2 the directory, page 3 the first of the chain.
const UNDO_PAGE: usize = 3;

/// The output of a check.
struct Told {
    code: Option<i32>,
    faults: Vec<String>,
    summary: String,
    errors: String,
}

impl Told {
    /// Whether one of the faults contains this text.
    fn names(&self, start: &str) -> bool {
        self.faults.iter().any(|fault| fault.contains(start))
    }
}

/// The output of a check, with three workers and with one.
fn check(data: &Path) -> Told {
    let files = spaces(data);
    let told = check_with(data, 3);
    let alone = check_with(data, 1);
    assert_eq!(told.faults, alone.faults);
    assert_eq!(told.summary, alone.summary);
    assert_eq!(
        spaces(data),
        files,
        "workers that check need no undo segment"
    );
    told
}

fn check_with(data: &Path, workers: u8) -> Told {
    remove_copies(data);
    let mut command = Command::new(env!("CARGO_BIN_EXE_plateau"));
    command.arg("check").arg(data);
    command.args(["--workers", &workers.to_string()]);
    let output = command.output().unwrap();
    let mut lines: Vec<String> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    let summary = lines.pop().unwrap_or_default();
    Told {
        code: output.status.code(),
        faults: lines,
        summary,
        errors: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A check that finds nothing.
fn check_whole(data: &Path) {
    let told = check(data);
    let Told { faults, errors, .. } = &told;
    assert_eq!(told.code, Some(0), "{faults:?} {errors}");
    assert_eq!(faults, &Vec::<String>::new());
}

/// A server with one worker that has run these statements and was stopped.
fn stopped(statements: &[&str]) -> Server {
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau")).with_settings(["workers=1"]);
    let mut server = launch.start().unwrap();
    let mut client = server.connect().unwrap();
    for statement in statements {
        client.run(statement).unwrap();
    }
    drop(client);
    server.stop().unwrap();
    server
}

/// Starts a server that was stopped, runs these statements, and stops it.
fn went_on(server: &mut Server, statements: &[&str]) {
    server.start_again().unwrap();
    let mut client = server.connect().unwrap();
    for statement in statements {
        client.run(statement).unwrap();
    }
    drop(client);
    server.stop().unwrap();
}

/// Two tables: one with inner pages and large values in its rows and an index, and a small one.
fn two_tables() -> Server {
    let digits = "(select 0 d union all select 1 union all select 2 union all select 3 union all \
                  select 4 union all select 5 union all select 6 union all select 7 union all \
                  select 8 union all select 9)";
    let fill = format!(
        "insert into t.large select a.d * 100 + b.d * 10 + c.d, \
         concat(a.d * 100 + b.d * 10 + c.d, repeat('k', 60)), repeat('n', 80) \
         from {digits} a, {digits} b, {digits} c"
    );
    stopped(&[
        "create database t",
        "create table t.large (id int primary key, k varchar(100) unique, note longtext)",
        &fill,
        "update t.large set note = repeat('x', 30000) where id in (3, 800)",
        "create table t.small (id int primary key, u int unique)",
        "insert into t.small values (1, 1), (2, 2), (3, null), (4, null)",
    ])
}

/// Files of tablespaces in a data directory.
fn spaces(data: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(data).unwrap().map(|entry| entry.unwrap());
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "pdb"));
    paths.sort();
    paths
}

/// The pages of a file that were written, with their types.
fn pages(path: &Path) -> Vec<(usize, PageType)> {
    let bytes = fs::read(path).unwrap();
    let typed = bytes.chunks(PAGE).enumerate().filter_map(|(number, page)| {
        let header = PageHeader::decode(page).ok()?;
        Some((number, header.page_type))
    });
    typed.collect()
}

/// The file of a table that has this text in one of its pages.
fn file_with(data: &Path, text: &str) -> PathBuf {
    let has = |path: &PathBuf| {
        let bytes = fs::read(path).unwrap();
        bytes
            .windows(text.len())
            .any(|window| window == text.as_bytes())
    };
    spaces(data).into_iter().skip(2).find(has).unwrap()
}

/// Changes a page, and corrects its checksum if it has to look whole.
fn change(path: &Path, page: usize, is_sealed: bool, act: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut bytes = fs::read(path).unwrap();
    let whole = bytes[page * PAGE..][..PAGE].to_vec();
    let place = &mut bytes[page * PAGE..][..PAGE];
    act(place);
    if is_sealed {
        seal(place);
    }
    fs::write(path, bytes).unwrap();
    whole
}

fn damage(path: &Path, page: usize) -> Vec<u8> {
    change(path, page, false, |bytes| bytes[100..200].fill(0xEE))
}

fn restore(path: &Path, page: usize, whole: &[u8]) {
    change(path, page, false, |bytes| bytes.copy_from_slice(whole));
}

fn named(path: &Path, page: usize) -> String {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    format!("{name} page {page}: ")
}

#[test]
fn each_damaged_page_is_named() {
    let server = two_tables();
    let data = server.data();
    check_whole(&data);
    let mut types = Vec::new();
    for path in spaces(&data) {
        for (page, page_type) in pages(&path) {
            // There are many leaves, all alike.
            if types
                .iter()
                .filter(|&&(known, _)| known == page_type)
                .count()
                > 5
                && page_type == PageType::BtreeLeaf
            {
                continue;
            }
            types.push((page_type, page));
            let whole = damage(&path, page);
            let told = check(&data);
            let Told { faults, errors, .. } = &told;
            let place = named(&path, page);
            assert_eq!(told.code, Some(1), "{place} {faults:?} {errors}");
            assert!(told.names(&place), "{place} {faults:?}");
            // Consequences of the fault are not reported as faults of their own.
            let open_error = usize::from(faults.iter().any(|it| it.contains("cannot open")));
            assert_eq!(faults.len(), 1 + open_error, "{place} {faults:?}");
            assert!(errors.contains("faults found in"), "{errors}");
            restore(&path, page, &whole);
        }
    }
    for page_type in PageType::ALL {
        assert!(
            types.iter().any(|&(known, _)| known == page_type),
            "{page_type:?}"
        );
    }
    check_whole(&data);
}

#[test]
fn all_damaged_pages_are_named_at_once() {
    let server = two_tables();
    let data = server.data();
    let large = file_with(&data, &"n".repeat(80));
    let mut places = Vec::new();
    for (page, _) in pages(&large) {
        if page % 3 == 0 {
            damage(&large, page);
            places.push(named(&large, page));
        }
    }
    // A lost page: its place is empty.
    let (lost, _) = pages(&large)
        .into_iter()
        .find(|(page, _)| page % 3 == 1 && 3 < *page)
        .unwrap();
    change(&large, lost, false, |bytes| bytes.fill(0));
    places.push(named(&large, lost));
    // A directory that opens: the other table is checked.
    let told = check(&data);
    let faults = &told.faults;
    assert_eq!(told.code, Some(1));
    for place in &places {
        assert!(told.names(place), "{place} {faults:?}");
    }
    assert_eq!(faults.len(), places.len(), "{faults:?}");
    assert!(faults[0].ends_with("(of table t.large)"), "{faults:?}");
    let rows: u64 = told
        .summary
        .split(" rows")
        .next()
        .unwrap()
        .rsplit(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert!((4..1004).contains(&rows), "{}", told.summary);
    // A directory that does not open: every page is read nevertheless.
    let system = data.join("space_0.pdb");
    damage(&system, 3);
    places.push(named(&system, 3));
    let told = check(&data);
    let faults = &told.faults;
    assert_eq!(told.code, Some(1));
    assert!(
        faults[0].contains("cannot open the data directory"),
        "{faults:?}"
    );
    for place in &places {
        assert!(told.names(place), "{place} {faults:?}");
    }
    assert!(
        told.summary
            .ends_with("tables, rows and undo records were not checked")
    );
}

#[test]
fn a_file_that_is_short_or_missing_is_named() {
    let server = two_tables();
    let data = server.data();
    let large = file_with(&data, &"n".repeat(80));
    let whole = fs::read(&large).unwrap();
    let (last, _) = *pages(&large).last().unwrap();
    fs::write(&large, &whole[..last * PAGE + 5000]).unwrap();
    let told = check(&data);
    assert_eq!(told.code, Some(1));
    assert!(told.names(&named(&large, last)), "{:?}", told.faults);
    fs::remove_file(&large).unwrap();
    let told = check(&data);
    assert_eq!(told.code, Some(1));
    assert!(
        told.names("is missing (of table t.large)"),
        "{:?}",
        told.faults
    );
}

#[test]
fn doubles_in_a_unique_index_are_named() {
    let server = stopped(&[
        "create database t",
        "create table t.d (id int primary key, a int, b varchar(20) not null, key by_both (a, b))",
        "insert into t.d values (1, 7, 'x'), (2, 7, 'X'), (3, 7, 'x'), (4, 8, 'x')",
        "insert into t.d values (5, null, 'y'), (6, null, 'y'), (7, 9, 'y'), (8, 9, 'z')",
        "insert into t.d values (9, 9, 'q'), (10, 10, 'q')",
        "update t.d set a = 9 where id = 10",
        "update t.d set a = 11 where id = 10",
    ]);
    let data = server.data();
    check_whole(&data);
    // The dictionary has the name of each index, followed by: 3 = not unique, 2 = unique.
    let system = data.join("space_0.pdb");
    let bytes = fs::read(&system).unwrap();
    let name = b"by_both\x03";
    let mut places = bytes
        .windows(name.len())
        .enumerate()
        .filter(|(_, window)| window == name);
    let at = places.next().unwrap().0 + name.len() - 1;
    assert_eq!(places.next(), None);
    change(&system, at / PAGE, true, |page| page[at % PAGE] = 2);
    let told = check(&data);
    assert_eq!(told.code, Some(1));
    let fault = "unique index by_both of t.d has two rows with the same key";
    assert_eq!(told.faults, [fault]);
}

/// The position of a text that occurs once.
fn place_of(bytes: &[u8], text: &str) -> usize {
    let mut windows = bytes.windows(text.len()).enumerate();
    let mut places = windows.by_ref().filter(|(_, it)| *it == text.as_bytes());
    let (place, _) = places.next().unwrap();
    assert_eq!(places.next(), None, "{text}");
    place
}

/// The faults that a check names while these bytes are in a page that looks whole.
fn faults_with(data: &Path, path: &Path, at: usize, new: &[u8]) -> Vec<String> {
    let whole = change(path, at / PAGE, true, |page| {
        page[at % PAGE..][..new.len()].copy_from_slice(new);
    });
    let told = check(data);
    restore(path, at / PAGE, &whole);
    assert_eq!(told.code, Some(1), "{:?}", told.faults);
    told.faults
}

/// Pages that are each valid and contradict each other.
#[test]
fn contradictions_are_named() {
    let mut server = stopped(&[
        "create database t",
        "create table t.words (w varchar(20) primary key, k varchar(20), note longtext, \
         key by_k (k))",
        "insert into t.words values ('aardvark', 'kangaroo', null), ('zebra', 'gnu', null)",
    ]);
    let data = server.data();
    check_whole(&data);
    // Keys are weights, so these letters occur only in rows.
    let words = file_with(&data, "aardvark");
    let name = words.file_stem().unwrap().to_string_lossy();
    let space = name.trim_start_matches("space_").to_owned();
    let before = fs::read(&words).unwrap();
    let row = place_of(&before, "aardvarkkangaroo");
    let faults = faults_with(&data, &words, row, b"X");
    assert_eq!(faults, ["a row of t.words stands under the key of another"]);
    let faults = faults_with(&data, &words, row + 8, b"X");
    assert_eq!(faults, [NO_ENTRY]);
    // The bits of the map, and the number of pages.
    let faults = faults_with(&data, &words, PAGE + 32, &[0x07]);
    assert_eq!(
        faults,
        [format!("page {space}:3 is used but marked as free")]
    );
    let faults = faults_with(&data, &words, 36, &3_u32.to_le_bytes());
    let fault = format!("page {space}:3 is used, but behind the tablespace's end");
    assert_eq!(faults, [fault]);
    // An index in its state before two rows were inserted.
    let added = "insert into t.words values ('owl', 'emu', repeat('x', 20000)), \
                 ('yak', 'emu', repeat('y', 20000))";
    went_on(&mut server, &[added]);
    let root = pages(&words)
        .into_iter()
        .find(|&(page, page_type)| page_type == PageType::BtreeLeaf && page != row / PAGE)
        .map(|(page, _)| page * PAGE)
        .unwrap();
    let faults = faults_with(&data, &words, root, &before[root..][..PAGE]);
    let count = "index by_k of t.words has 2 entries for 4 rows";
    assert_eq!(faults, [NO_ENTRY, NO_ENTRY, count]);
    // A large value that two rows refer to.
    let after = fs::read(&words).unwrap();
    let leaf = row / PAGE * PAGE;
    let references = after[leaf..][..PAGE]
        .windows(8)
        .enumerate()
        .filter_map(|(at, it)| {
            let it = LobReference::decode(it).ok()?;
            let is_large = (20_000..20_100).contains(&it.length) && it.first_page < 100;
            is_large.then_some((leaf + at, it))
        });
    let references: Vec<(usize, LobReference)> = references.collect();
    // Later rows come before earlier ones.
    let [(_, yak), (owl_at, _)] = references[..] else {
        panic!("{references:?}");
    };
    let faults = faults_with(&data, &words, owl_at, &yak.encode());
    let twice = format!("page {space}:{} is used twice", yak.first_page);
    assert_eq!(
        faults,
        ["a row of t.words stands under the key of another", &twice]
    );
    check_whole(&data);
}

/// Workers split the rows of a table, and the pages of its file.
#[test]
fn a_large_table_is_looked_at_in_parts() {
    let digits = "(select 0 d union all select 1 union all select 2 union all select 3 union all \
                  select 4 union all select 5 union all select 6 union all select 7 union all \
                  select 8 union all select 9)";
    let fill = format!(
        "insert into t.wide select a.d * 1000 + b.d * 100 + c.d * 10 + e.d, \
         a.d * 1000 + e.d, repeat('p', 2000) from {digits} a, {digits} b, {digits} c, {digits} e"
    );
    let server = stopped(&[
        "create database t",
        "create table t.wide (id int primary key, k int, pad varchar(2000) charset latin1, \
         key by_k (k))",
        &fill,
        "update t.wide set pad = 'kangaroo', k = 77 where id = 7777",
    ]);
    let data = server.data();
    let told = check(&data);
    assert_eq!(told.faults, Vec::<String>::new());
    // One more row belongs to the server's own tables.
    assert!(told.summary.contains(" 10001 rows, "), "{}", told.summary);
    let wide = file_with(&data, "kangaroo");
    let bytes = fs::read(&wide).unwrap();
    assert!(1024 * PAGE < bytes.len(), "it is worth parting");
    // The first column, after the row header of 23 bytes; its value is in no index.
    let at = place_of(&bytes, "kangaroo");
    let k = bytes[..at]
        .windows(4)
        .rposition(|it| it == 77_u32.to_le_bytes());
    let k = k.unwrap();
    let faults = faults_with(&data, &wide, k, &78_u32.to_le_bytes());
    assert_eq!(faults, ["a row of t.wide has no entry in index by_k"]);
    // One leaf in each eighth of the file.
    let leaves = pages(&wide);
    let mut places = Vec::new();
    for eighth in 1..8 {
        let (page, _) = leaves[leaves.len() * eighth / 8];
        damage(&wide, page);
        places.push(named(&wide, page));
    }
    let told = check(&data);
    assert_eq!(told.faults.len(), places.len(), "{:?}", told.faults);
    assert!(
        places.iter().all(|place| told.names(place)),
        "{:?}",
        told.faults
    );
}

/// A stopped server whose table `t.words` has two rows and the index `by_k`. Returns the table's
/// file and the page of the index, too.
fn stopped_with_index() -> (Server, PathBuf, usize) {
    let server = stopped(&[
        "create database t",
        "create table t.words (w varchar(20) primary key, k varchar(20), key by_k (k))",
        "insert into t.words values ('aardvark', 'kangaroo'), ('zebra', 'gnu')",
    ]);
    let words = file_with(&server.data(), "aardvark");
    let row_page = place_of(&fs::read(&words).unwrap(), "aardvarkkangaroo") / PAGE;
    let (page, _) = pages(&words)
        .into_iter()
        .find(|&(page, page_type)| page_type == PageType::BtreeLeaf && page != row_page)
        .unwrap();
    (server, words, page)
}

/// The start of the line in the server's log about a page of `t.words`.
fn logged(words: &Path, page: usize) -> String {
    let file = words.file_name().unwrap().to_string_lossy();
    format!("a page cannot be used file={file} page={page} owner=table t.words")
}

/// CHECK TABLE reads all indexes; a query may need none of them.
#[test]
fn check_table_tells_of_an_index_that_cannot_be_read() {
    let (mut server, words, page) = stopped_with_index();
    let whole = damage(&words, page);
    remove_copies(&server.data());
    server.start_again().unwrap();
    let mut client = server.connect().unwrap();
    // A query that does not use the index reads the rows.
    let last = client.value("select max(k) from t.words use index ()");
    assert_eq!(last.unwrap().as_deref(), Some("kangaroo"));
    let Outcome::Rows(answer) = client.query("check table t.words").unwrap() else {
        panic!("rows are answered");
    };
    let told = answer.rows[0].iter().flatten();
    let told: Vec<_> = told.map(|it| String::from_utf8_lossy(it)).collect();
    assert_eq!(told[..3], ["t.words", "check", "Error"]);
    assert!(told[3].contains(&named(&words, page)), "{told:?}");
    assert!(!told[3].contains('/'), "no path of the server: {told:?}");
    // The server's log names it, too, with file, page and table, and only once.
    let line = logged(&words, page);
    testkit::wait_until(&line, || server.log().contains(&line));
    client.query("check table t.words").unwrap();
    assert_eq!(server.log().matches(&line).count(), 1);
    drop(client);
    server.stop().unwrap();
    restore(&words, page, &whole);
    went_on(&mut server, &["check table t.words"]);
}

/// A page that is whole, and no page of its tree: the statement fails, and the server's log names
/// file, page and table.
#[test]
fn a_page_that_contradicts_itself_is_logged() {
    let (mut server, words, page) = stopped_with_index();
    // The first byte behind the page's header says that it is a page of a tree.
    let whole = change(&words, page, true, |bytes| bytes[PAGE_HEADER_BYTES] ^= 1);
    server.start_again().unwrap();
    let mut client = server.connect().unwrap();
    let query = "select w from t.words force index (by_k) where k = 'gnu'";
    for _ in 0..2 {
        let Outcome::Error(error) = client.query(query).unwrap() else {
            panic!("the index has a page that is none");
        };
        assert_eq!(error.number, 1712, "{}", error.message);
    }
    let line = logged(&words, page);
    testkit::wait_until(&line, || server.log().contains(&line));
    assert_eq!(server.log().matches(&line).count(), 1);
    drop(client);
    server.stop().unwrap();
    restore(&words, page, &whole);
    went_on(&mut server, &["check table t.words"]);
}

const NO_ENTRY: &str = "a row of t.words has no entry in index by_k";

/// Undo pages that are whole and have wrong contents.
#[test]
fn undo_is_looked_at() {
    let server = two_tables();
    let data = server.data();
    // A check purges, which frees pages: what the server had no time for before its end.
    check_whole(&data);
    let undo = data.join(UNDO_FILE);
    let (_, first_type) = pages(&undo)[UNDO_PAGE];
    assert_eq!(first_type, PageType::Undo);
    let u32_of = |page: &[u8], at: usize| u32::from_le_bytes(page[at..at + 4].try_into().unwrap());
    let tail = usize::try_from(u32_of(&fs::read(&undo).unwrap()[2 * PAGE..], 32)).unwrap();
    // A page that is marked as used and belongs to nothing.
    let whole = change(&undo, 1, true, |map| map[32] |= 0x80);
    let told = check(&data);
    assert_eq!(told.code, Some(1));
    let fault = "page 1:7 is marked as used but belongs to nothing";
    assert!(told.names(fault), "{:?}", told.faults);
    restore(&undo, 1, &whole);
    // A chain that does not end where the directory says.
    let whole = change(&undo, 2, true, |directory| {
        directory[36..40].copy_from_slice(&7_u32.to_le_bytes());
    });
    let told = check(&data);
    assert!(told.names("undo ends with page 1:"), "{:?}", told.faults);
    assert!(told.names(", not with 1:7"), "{:?}", told.faults);
    restore(&undo, 2, &whole);
    // A record that refers back into the middle of another.
    let bytes = fs::read(&undo).unwrap();
    let page = &bytes[tail * PAGE..][..PAGE];
    let (mut at, mut copy) = (UNDO_RECORDS_START, Vec::new());
    loop {
        assert!(at < used(page).unwrap(), "a record that has one before it");
        copy_record(page, at, &mut copy).unwrap();
        if !UndoRecord::decode(&copy).unwrap().previous.is_null() {
            break;
        }
        at += copy.len();
    }
    let wrong = UndoPointer::new(0, PageNo(u32::try_from(tail).unwrap()), 41);
    let whole = change(&undo, tail, true, |page| {
        // After length, kind and transaction.
        page[at + 9..][..7].copy_from_slice(&wrong.to_bytes());
    });
    let told = check(&data);
    assert_eq!(told.code, Some(1));
    let fault = format!("has no undo record at 41 of page 1:{tail}");
    assert!(told.names(&fault), "{:?}", told.faults);
    restore(&undo, tail, &whole);
    // A page without valid records: it is unknown which transactions were open.
    let whole = change(&undo, tail, true, |page| {
        page[32..34].copy_from_slice(&200_u16.to_le_bytes());
        page[40..200].fill(0);
    });
    let told = check(&data);
    assert_eq!(told.code, Some(1));
    let (faults, place) = (&told.faults, format!("page 1:{tail}: no undo record"));
    assert!(told.names(&place), "{faults:?}");
    assert!(
        told.summary
            .ends_with("tables, rows and undo records were not checked")
    );
    restore(&undo, tail, &whole);
    check_whole(&data);
}

const _: () = assert!(PageSize::KiB16.bytes() == PAGE);

/// A page that recovery restores is no fault, and the check says what it has done.
#[test]
fn a_page_that_was_restored_is_told() {
    let mut server = stopped(&["create database d", "create table d.t (a varchar(90))"]);
    went_on(
        &mut server,
        &["insert into d.t values ('a row that is looked for')"],
    );
    let data = server.data();
    let path = file_with(&data, "a row that is looked for");
    let (leaf, _) = *pages(&path)
        .iter()
        .find(|(_, page_type)| *page_type == PageType::BtreeLeaf)
        .unwrap();
    damage(&path, leaf);
    let mut command = Command::new(env!("CARGO_BIN_EXE_plateau"));
    let output = command.arg("check").arg(&data).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    let file = path.file_name().unwrap().to_string_lossy();
    let expected = format!(
        "a torn page was restored from the doublewrite file file={file} page={leaf} table=\"d.t\""
    );
    assert!(errors.contains(&expected), "{errors}");
}
