//! The memory that a client's statements keep has a limit of its own (`max_session_mem_used`, error
//! 1290) and one for all clients together (`statement_memory_size`, error 1041), of which sessions
//! may keep half between statements. Below both,
//! nothing is refused. Above one, that statement fails and everything else goes on.

#![forbid(unsafe_code)]

use testkit::client::Client;
use testkit::{Launch, Server};

fn start() -> (Server, Client) {
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau"))
        .with_settings(["statement_memory_size=32M", "max_session_mem_used=8M"]);
    let server = launch.start().expect("the server starts");
    let client = server.connect().expect("it serves");
    (server, client)
}

/// The number of the error, 0 for none.
fn error_number(client: &mut Client, statement: &str) -> u16 {
    client.error_number(statement).expect("an answer")
}

/// A table of this many numbers.
fn numbers(client: &mut Client, count: u32) {
    client.run("create database d").expect("a database");
    client
        .run("create table d.n (i int primary key)")
        .expect("a table");
    let rows: Vec<String> = (0..count).map(|row| format!("({row})")).collect();
    let insert = format!("insert into d.n values {}", rows.join(","));
    client.run(&insert).expect("rows");
}

/// A statement that keeps a hundred rows of this many bytes each.
struct Keeper {
    /// What keeps them.
    name: &'static str,
    /// `BYTES` stands for a number of bytes.
    text: &'static str,
    /// With this many bytes it succeeds.
    below: u32,
    /// With this many bytes it is refused.
    above: u32,
}

const KEEPERS: &[Keeper] = &[
    Keeper {
        name: "sort",
        text: "select repeat(i, BYTES / 2) as t from d.n order by t desc limit 1",
        below: 30_000,
        above: 200_000,
    },
    Keeper {
        name: "distinct",
        text: "select distinct length(concat(i, repeat('b', BYTES))), i, \
               concat(i, repeat('b', BYTES)) from d.n limit 1000000",
        below: 60_000,
        above: 90_000,
    },
    Keeper {
        name: "join with rows of a subquery",
        text: "select count(b.t) from d.n a join \
               (select i, concat(i, repeat('c', BYTES)) as t from d.n) b on a.i = b.i + 0",
        below: 60_000,
        above: 90_000,
    },
    Keeper {
        // A key also keeps the sort weights of its text, which are longer than the text.
        name: "groups",
        text: "select min(repeat('d', BYTES)), concat(i, repeat('e', BYTES)) k \
               from d.n group by k limit 1",
        below: 10_000,
        above: 90_000,
    },
    Keeper {
        name: "values of groups",
        text: "select length(min(repeat('d', BYTES))) from d.n group by i + 0 limit 1",
        below: 60_000,
        above: 90_000,
    },
    Keeper {
        name: "concatenated groups",
        text: "select length(group_concat(repeat('f', BYTES))) from d.n group by i % 2",
        below: 60_000,
        above: 90_000,
    },
    Keeper {
        name: "values to look in",
        text: "select 1 where repeat('g', BYTES) in \
               (select concat(i, repeat('g', BYTES)) from d.n)",
        below: 60_000,
        above: 90_000,
    },
    Keeper {
        name: "union",
        text: "select concat(i, repeat('h', BYTES)) from d.n union \
               select concat(i, repeat('i', 10)) from d.n",
        below: 60_000,
        above: 90_000,
    },
];

#[test]
fn what_a_statement_keeps_is_bounded() {
    let (server, mut client) = start();
    numbers(&mut client, 100);
    for keeper in KEEPERS {
        for (bytes, expected) in [
            (keeper.below, 0),
            (keeper.above, 1290),
            (1_000_000, 1290),
            (keeper.below, 0),
        ] {
            let statement = keeper.text.replace("BYTES", &bytes.to_string());
            let number = error_number(&mut client, &statement);
            assert_eq!(number, expected, "{}: {statement}", keeper.name);
        }
    }
    // Groups that an index brings one after the other are kept one at a time.
    let ordered = "select max(length(s)) from \
                   (select min(repeat('d', 1000000)) as s from d.n group by i) as t";
    assert_eq!(error_number(&mut client, ordered), 0);
    // Also within one row.
    let row = |count: usize| format!("select {}", vec!["repeat('a', 1000000)"; count].join(","));
    assert_eq!(error_number(&mut client, &row(3)), 0);
    assert_eq!(error_number(&mut client, &row(20)), 1290);
    // A failed statement has released what it kept.
    let mut other = server.connect().expect("it serves");
    let large = "set @a = repeat('a', 7000000)";
    assert_eq!(error_number(&mut client, large), 0);
    assert_eq!(error_number(&mut other, large), 0);
}

#[test]
fn what_sessions_keep_is_bounded_for_each_and_for_all() {
    let (server, mut first) = start();
    let large = "set @a = repeat('a', 7000000)";
    assert_eq!(error_number(&mut first, large), 0);
    assert_eq!(
        error_number(&mut first, "set @b = repeat('a', 2000000)"),
        1290
    );
    assert_eq!(error_number(&mut first, "set @b = 'short'"), 0);
    assert_eq!(
        error_number(&mut first, large),
        0,
        "in place of the old one"
    );
    let mut second = server.connect().expect("it serves");
    assert_eq!(error_number(&mut second, large), 0);
    let mut third = server.connect().expect("it serves");
    assert_eq!(error_number(&mut third, large), 1041);
    assert_eq!(error_number(&mut third, "set @a = 'short'"), 0);
    // Released memory is free for others.
    assert_eq!(error_number(&mut first, "set @a = null"), 0);
    assert_eq!(error_number(&mut third, large), 0);
}

#[test]
fn rows_that_wait_to_be_fetched_are_bounded() {
    let (_server, mut client) = start();
    numbers(&mut client, 100);
    let query = "select concat(i, repeat('x', 90000)) from d.n";
    let open = format!("begin not atomic declare c cursor for {query}; open c; end");
    assert_eq!(error_number(&mut client, &open), 1290);
    let first_and_second = format!("{query} into @a");
    assert_eq!(error_number(&mut client, &first_and_second), 1172);
    // Fetched rows are no longer kept.
    let query = format!("{query} where i < 60");
    let both = format!(
        "begin not atomic declare t longtext; declare done int default 0; \
         declare a cursor for {query}; declare b cursor for {query}; \
         declare continue handler for not found set done = 1; \
         open a; while done = 0 do fetch a into t; end while; open b; close b; close a; end"
    );
    assert_eq!(error_number(&mut client, &both), 0);
}

#[test]
fn savepoints_and_prepared_statements_count() {
    let (_server, mut client) = start();
    client
        .run("set max_session_mem_used = 200000")
        .expect("a session's limit");
    client.run("begin").expect("a transaction");
    let mut made = 0;
    let refused = loop {
        let number = error_number(&mut client, &format!("savepoint s{made}"));
        if number != 0 {
            break number;
        }
        made += 1;
    };
    assert_eq!(refused, 1290);
    assert!(100 < made, "{made}");
    let back = format!("rollback to s{}", made - 1);
    assert_eq!(error_number(&mut client, &back), 0);
    client.run("commit").expect("its end");
    client.run("begin").expect("a transaction");
    assert_eq!(error_number(&mut client, "savepoint again"), 0);
    client.run("commit").expect("its end");
    let prepare = |number: u32| {
        let text = "1 + ".repeat(200);
        format!("prepare p{number} from 'select {text} 1'")
    };
    let mut number = 0;
    let refused = loop {
        match error_number(&mut client, &prepare(number)) {
            0 => number += 1,
            error => break error,
        }
    };
    assert_eq!(refused, 1290);
    assert!(2 < number, "{number}");
    assert_eq!(error_number(&mut client, "deallocate prepare p0"), 0);
    assert_eq!(error_number(&mut client, &prepare(number)), 0);
}

#[test]
fn variables_of_programs_and_named_locks_count() {
    let (_server, mut client) = start();
    let names: Vec<_> = (0..20).map(|number| format!("v{number}")).collect();
    let sets = |count: usize| {
        let sets = names.iter().take(count);
        let sets = sets.map(|name| format!("set {name} = repeat('a', 1000000);"));
        let sets: String = sets.collect();
        let names = names.join(",");
        format!("begin not atomic declare {names} longtext; {sets} end")
    };
    assert_eq!(error_number(&mut client, &sets(5)), 0);
    assert_eq!(error_number(&mut client, &sets(20)), 1290);
    assert_eq!(error_number(&mut client, &sets(5)), 0, "all is given back");
    // Values of SET wait for each other.
    let items = |count: usize| vec!["@a = repeat('a', 1000000)"; count].join(",");
    assert_eq!(error_number(&mut client, &format!("set {}", items(5))), 0);
    let many = format!("set {}", items(20));
    assert_eq!(error_number(&mut client, &many), 1290);
    assert_eq!(error_number(&mut client, "set @a = null"), 0);
    numbers(&mut client, 200);
    client
        .run("set max_session_mem_used = 50000")
        .expect("a session's limit");
    let lock = "select sum(get_lock(concat('lock', i), 0)) from d.n";
    assert_eq!(error_number(&mut client, lock), 1290);
    let released = "select release_all_locks() < 100";
    assert_eq!(client.value(released).expect("locks").as_deref(), Some("1"));
    let few = format!("{lock} where i < 50");
    assert_eq!(error_number(&mut client, &few), 0);
}

#[test]
fn a_result_has_at_most_65535_columns() {
    // A tree and a plan take some hundred bytes a column each.
    let server = Launch::plateau(env!("CARGO_BIN_EXE_plateau"))
        .start()
        .expect("the server starts");
    let mut client = server.connect().expect("it serves");
    let row = |count: usize| format!("select {}", vec!["1"; count].join(","));
    assert_eq!(error_number(&mut client, &row(65_534)), 0);
    assert_eq!(error_number(&mut client, &row(65_535)), 0);
    assert_eq!(error_number(&mut client, &row(65_536)), 1117);
    assert_eq!(error_number(&mut client, &row(100_000)), 1117);
}

/// Three sessions keep user variables until they get no more, and stay idle. Large statements of
/// others run all the same.
#[test]
fn idle_sessions_leave_memory_to_the_statements_of_others() {
    let (server, mut client) = start();
    numbers(&mut client, 100);
    let mut keepers = Vec::new();
    let mut refused = Vec::new();
    for _ in 0..3 {
        let mut keeper = server.connect().expect("it serves");
        let set = |number| format!("set @kept_{number} = repeat('k', 1000000)");
        let numbers = (0..20).map(|number| error_number(&mut keeper, &set(number)));
        refused.push(numbers.filter(|&number| number != 0).collect::<Vec<_>>());
        keepers.push(keeper);
    }
    let all: Vec<u16> = refused.concat();
    // Some 16 MB of 60 are kept, half of the pool.
    assert!(40 < all.len() && all.contains(&1041), "{all:?}");
    let sort = "select repeat(i, 30000) as t from d.n order by t desc limit 1";
    assert_eq!(error_number(&mut client, sort), 0);
    let list = vec!["1"; 20_000].join(",");
    let long = format!("select count(*) from d.n where i in ({list})");
    assert_eq!(error_number(&mut client, &long), 0);
    drop(keepers);
    drop(server);
}
