//! Replies that their clients do not read, and rows that are too long for a buffer. They count as
//! memory of their sessions (`max_session_mem_used`, error 1290) and of all
//! (`statement_memory_size`, `server_memory_limit`, error 1041), and other clients are served while
//! they are made and sent. Whoever reads gets each byte.

#![forbid(unsafe_code)]

use std::time::Duration;

use testkit::client::Client;
use testkit::{Launch, Outcome, Server, on_each_driver, wait_until};

const MIB: u64 = 1 << 20;

/// What the process takes in addition to what the limits count: socket buffers, stacks, and memory
/// that the allocator has not returned yet.
const UNCOUNTED_BYTES: u64 = 128 * MIB;

/// A reply that is late for this long never comes.
const HANG: Duration = Duration::from_secs(60);

fn start(settings: &[&str]) -> Server {
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau"))
        .with_settings(["buffer_pool_size=16M"].iter().chain(settings));
    launch.start().expect("the server starts")
}

fn text_of(outcome: &Outcome) -> &[u8] {
    match outcome {
        Outcome::Rows(result) => result.rows[0][0].as_deref().expect("a text"),
        other => panic!("a row, not {other:?}"),
    }
}

/// Clients that send a statement and do not read its reply. Afterwards each gets the whole value,
/// or the error that there is no memory. Returns how many got the value.
fn leave_unread(server: &mut Server, statement: &str, limit: u64) -> usize {
    let mut clients: Vec<Client> = (0..40)
        .map(|_| server.connect().expect("it serves"))
        .collect();
    for client in &mut clients {
        client.send_query(statement.as_bytes()).expect("it reads");
    }
    for client in &mut clients {
        assert!(client.has_answer(HANG).expect("it is there"));
    }
    let most = server.process().resident_bytes_max().expect("it runs");
    assert!(
        most <= limit,
        "{statement}: {} MiB of {} MiB",
        most / MIB,
        limit / MIB
    );
    let mut whole = 0;
    for client in &mut clients {
        let outcomes = client.read_outcomes().expect("an answer");
        match &outcomes[0] {
            Outcome::Error(error) => assert_eq!(error.number, 1041, "{statement}"),
            outcome => {
                let text = text_of(outcome);
                assert!(text.len() == 15_000_000 && text.iter().all(|byte| *byte == b'x'));
                whole += 1;
            }
        }
        assert_eq!(client.error_number("select 1").expect("it goes on"), 0);
    }
    whole
}

#[test]
fn replies_that_are_not_read_are_bounded() {
    let mut server = start(&["workers=2", "statement_memory_size=64M"]);
    let before = server.process().resident_bytes().expect("it runs");
    let limit = before + 64 * MIB + UNCOUNTED_BYTES;
    let mut client = server.connect().expect("it serves");
    client.run("create database d").expect("a database");
    client
        .run("create table d.t (i int auto_increment primary key, t longtext)")
        .expect("a table");
    client
        .run("insert into d.t (t) values (repeat('x', 15000000))")
        .expect("a row");
    for statement in [
        "select repeat('x', 15000000)",
        "select t from d.t where i = 1",
        "insert into d.t (t) values ('') returning repeat('x', 15000000)",
    ] {
        let whole = leave_unread(&mut server, statement, limit);
        assert!((1..40).contains(&whole), "{statement}: {whole}");
    }
}

#[test]
fn replies_stay_below_the_limit_of_the_process() {
    let mut server = start(&["workers=2", "server_memory_limit=160M"]);
    let limit = 160 * MIB + UNCOUNTED_BYTES;
    let whole = leave_unread(&mut server, "select repeat('x', 15000000)", limit);
    assert!((1..40).contains(&whole), "{whole}");
}

/// `max_session_mem_used` holds a row of this many bytes, and not a longer one.
#[test]
fn a_reply_has_the_limit_of_its_session() {
    let server = start(&["max_session_mem_used=8M"]);
    let mut client = server.connect().expect("it serves");
    // The variable also counts.
    for (bytes, number) in [
        (70_000, 0),
        (3_900_000, 0),
        (4_300_000, 1290),
        (7_900_000, 1290),
        (3_900_000, 0),
    ] {
        client
            .run(&format!("set @a = repeat('x', {bytes})"))
            .expect("a variable");
        assert_eq!(
            client.error_number("select @a").expect("an answer"),
            number,
            "{bytes}"
        );
    }
    // SHOW, too: the definition is longer than what is left.
    client.run("create database d").expect("a database");
    let comment = "c".repeat(2_000_000);
    client
        .run(&format!("create procedure d.p() select '{comment}'"))
        .expect("a procedure");
    let show = "show create procedure d.p";
    client
        .run("set @a = repeat('x', 3900000)")
        .expect("a variable");
    assert_eq!(client.error_number(show).expect("an answer"), 0);
    client
        .run("set @a = repeat('x', 7900000)")
        .expect("a variable");
    assert_eq!(client.error_number(show).expect("an answer"), 1290);
}

/// What was read, and what a killed client has not read, is free for others.
#[test]
fn memory_of_a_reply_comes_back() {
    // Two texts take 45 MB while they are computed, and 30 MB of reply. What fits into the sockets
    // does not count.
    let server = start(&["workers=1", "statement_memory_size=80M"]);
    let query = "select repeat('x', 15000000), repeat('y', 15000000)";
    let unread = |server: &Server| {
        let mut client = server.connect().expect("it serves");
        client.send_query(query.as_bytes()).expect("it reads");
        assert!(client.has_answer(HANG).expect("it is there"));
        client
    };
    let mut other = server.connect().expect("it serves");
    let mut is_free = || other.error_number(query).expect("an answer") == 0;
    assert!(is_free());
    let mut reader = unread(&server);
    assert!(!is_free());
    let outcomes = reader.read_outcomes().expect("all of it");
    assert_eq!(text_of(&outcomes[0]).len(), 15_000_000);
    assert!(is_free());
    let sleeper = unread(&server);
    assert!(!is_free());
    let mut killer = server.connect().expect("it serves");
    killer
        .run(&format!("kill {}", sleeper.connection_id))
        .expect("an order");
    wait_until("the killed client's memory", &mut is_free);
    drop(unread(&server));
    wait_until("the gone client's memory", &mut is_free);
}

/// Other clients are served between the pieces of a row of many texts. The texts are read once, so
/// that nearly all time goes into the reply.
#[test]
fn a_long_row_hurts_nobody() {
    on_each_driver(|io| {
        let server = start(&["workers=1", &format!("io={io}")]);
        let mut bystander = server.connect().expect("it serves");
        bystander.run("create database d").expect("a database");
        bystander
            .run("create table d.t (t longtext)")
            .expect("a table");
        bystander
            .run("insert into d.t values (repeat('x', 4000000))")
            .expect("a row");
        let mut client = server.connect().expect("it serves");
        let query = format!("select {}, 'end' from d.t", vec!["t"; 100].join(","));
        client.send_query(query.as_bytes()).expect("it reads");
        let mut served = 0;
        let patience = Duration::from_micros(1);
        while !client.has_answer(patience).expect("it is there") {
            let one = bystander.value("select 1").expect("others are served");
            assert_eq!(one.as_deref(), Some("1"));
            served += 1;
        }
        // In one go it would be one or two.
        assert!(5 < served, "{served}");
        let outcomes = client.read_outcomes().expect("a row");
        let Some(Outcome::Rows(result)) = outcomes.first() else {
            panic!("a row");
        };
        let row = &result.rows[0];
        let text = vec![b'x'; 4_000_000];
        assert!(row[..100].iter().all(|it| it.as_deref() == Some(&text)));
        assert_eq!(row[100].as_deref(), Some(&b"end"[..]));
    });
}

/// A variable that is read many times in a row takes memory each time.
#[test]
fn a_row_of_variables_has_a_limit() {
    let server = start(&["workers=1", "max_session_mem_used=64M"]);
    let mut client = server.connect().expect("it serves");
    client
        .run("set @a = repeat('x', 10000000)")
        .expect("a variable");
    let mut number = |count: usize| {
        let row = format!("select {}", vec!["length(@a)"; count].join(","));
        client.error_number(&row).expect("an answer")
    };
    assert_eq!(number(3), 0);
    assert_eq!(number(8), 1290);
    assert_eq!(number(1000), 1290);
    assert_eq!(number(3), 0);
}

/// Short and long rows in turn, of sizes around those of buffers, pieces and frames.
#[test]
fn a_slow_reader_gets_all_bytes() {
    let server = start(&["workers=1"]);
    let mut client = server.connect().expect("it serves");
    client.run("set names utf8mb4").expect("set");
    let sizes = [
        1_u32, 65_535, 65_536, 65_537, 524_283, 524_284, 524_285, 1_048_577, 10, 16_000_000,
    ];
    let row = |size: &u32| {
        format!("select {size} n, concat(repeat('\u{e9}', {size} / 2), 'end') t, null z, 0.5 d")
    };
    let rows: Vec<String> = sizes.iter().map(row).collect();
    client
        .send_query(rows.join(" union all ").as_bytes())
        .expect("it reads");
    assert!(client.has_answer(HANG).expect("it is there"));
    let outcomes = client.read_outcomes().expect("rows");
    let Some(Outcome::Rows(result)) = outcomes.first() else {
        panic!("rows, not {outcomes:?}");
    };
    assert_eq!(result.rows.len(), sizes.len());
    for (row, size) in result.rows.iter().zip(sizes) {
        let half = usize::try_from(size.div_ceil(2)).expect("small");
        assert_eq!(row[0].as_deref(), Some(size.to_string().as_bytes()));
        let text = row[1].as_deref().expect("a text");
        assert_eq!(text.len(), 2 * half + 3, "{size}");
        assert!(
            text[..2 * half]
                .chunks(2)
                .all(|it| it == "\u{e9}".as_bytes())
        );
        assert_eq!(&text[2 * half..], b"end");
        assert_eq!(row[2], None);
        assert_eq!(row[3].as_deref(), Some(&b"0.5"[..]));
    }
}

/// The head of a result with many columns of long names waits as rows do.
#[test]
fn many_columns_count() {
    let server = start(&["workers=1", "max_session_mem_used=64M"]);
    let mut client = server.connect().expect("it serves");
    let columns: Vec<String> = (0..20_000)
        .map(|number| format!("1 as `{number:060}`"))
        .collect();
    let query = format!("select {}", columns.join(","));
    match client.query(&query).expect("an answer") {
        Outcome::Rows(result) => assert_eq!(result.rows[0].len(), 20_000),
        other => panic!("a row, not {other:?}"),
    }
    for (name, bytes) in [
        ("a", 16_000_000),
        ("b", 16_000_000),
        ("c", 16_000_000),
        ("d", 16_000_000),
    ] {
        let set = format!("set @{name} = repeat('x', {bytes})");
        client.run(&set).expect("a variable");
    }
    assert_eq!(client.error_number(&query).expect("an answer"), 1290);
    assert_eq!(client.error_number("select 1").expect("it goes on"), 0);
}
