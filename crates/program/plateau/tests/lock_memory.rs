//! Row locks have a memory limit for all clients together (`lock_table_size`, error 1206). The
//! transaction that requests one too many is rolled back, and all others go on.

#![forbid(unsafe_code)]

use testkit::client::Client;
use testkit::{Launch, Server};

/// Room for some 4,600 locks of short keys.
fn start() -> Server {
    Launch::plateau(env!("CARGO_BIN_EXE_plateau"))
        .with_settings(["lock_table_size=1M"])
        .start()
        .expect("the server starts")
}

/// The number of the error, 0 for none.
fn error_number(client: &mut Client, statement: &str) -> u16 {
    client.error_number(statement).expect("an answer")
}

/// Runs all statements; none may fail.
fn run(client: &mut Client, statements: &[&str]) {
    for statement in statements {
        client.run(statement).expect(statement);
    }
}

/// A table of 10,000 numbers.
fn numbers(client: &mut Client) {
    let definition = "create table d.n (i int primary key, v int)";
    run(client, &["create database d", definition, &insert(0)]);
}

/// Inserts 10,000 numbers, beginning with this one.
fn insert(first: u32) -> String {
    let rows: Vec<String> = (first..first + 10_000)
        .map(|row| format!("({row}, 1)"))
        .collect();
    format!("insert into d.n values {}", rows.join(","))
}

fn single(client: &mut Client, statement: &str) -> String {
    client
        .value(statement)
        .expect("an answer")
        .expect("a value")
}

#[test]
fn one_lock_too_many_ends_its_transaction_alone() {
    let server = start();
    let (mut greedy, mut modest) = (server.connect().unwrap(), server.connect().unwrap());
    numbers(&mut greedy);
    run(&mut greedy, &["begin", "insert into d.n values (20000, 1)"]);
    run(
        &mut modest,
        &[
            "begin",
            "select i from d.n where i between 8000 and 8999 for update",
        ],
    );
    let all = "select count(*) from d.n where i < 8000 for update";
    assert_eq!(error_number(&mut greedy, all), 1206);
    assert_eq!(single(&mut greedy, "select @@in_transaction"), "0");
    assert_eq!(
        single(&mut greedy, "select count(*) from d.n where i = 20000"),
        "0"
    );
    // Its locks are free, the other's are not.
    run(
        &mut modest,
        &[
            "select i from d.n where i < 1000 for update",
            "update d.n set v = 1 where i = 8000",
        ],
    );
    run(&mut greedy, &["set row_lock_wait_timeout = 0"]);
    assert_eq!(
        error_number(&mut greedy, "update d.n set v = 2 where i = 8000"),
        1205
    );
    run(&mut modest, &["commit"]);
    run(&mut greedy, &["update d.n set v = 2 where i = 8000"]);
}

/// The transaction with the most locks is refused; one that locks a few rows goes on.
#[test]
fn a_full_lock_table_fails_the_transaction_that_fills_it() {
    let server = start();
    let (mut greedy, mut modest) = (server.connect().unwrap(), server.connect().unwrap());
    numbers(&mut greedy);
    run(&mut greedy, &["begin"]);
    let locked = |client: &mut Client, first: u32| {
        let last = first + 99;
        let rows = format!("select i from d.n where i between {first} and {last} for update");
        error_number(client, &rows)
    };
    // Below the limit, in steps of 100 rows, then at it.
    let mut count = 0;
    while locked(&mut greedy, count) == 0 {
        count += 100;
        assert!(count < 10_000, "the memory has a limit");
        if count == 2000 {
            run(
                &mut modest,
                &["begin", "update d.n set v = 2 where i = 9000"],
            );
        }
    }
    assert!(2000 < count);
    run(&mut greedy, &["begin"]);
    for first in (0..count).step_by(100) {
        assert_eq!(locked(&mut greedy, first), 0, "its memory was given back");
    }
    // The transaction with the most locks cannot lock 100 rows more; another can.
    assert_eq!(locked(&mut modest, 9900), 0);
    assert_eq!(locked(&mut greedy, count), 1206);
    run(&mut modest, &["commit"]);
    assert_eq!(single(&mut modest, "select v from d.n where i = 9000"), "2");
}

/// Locking a row again takes no more memory, and the end of the transaction frees its locks.
#[test]
fn the_same_rows_can_be_locked_without_end() {
    let server = start();
    let mut client = server.connect().unwrap();
    numbers(&mut client);
    for _ in 0..3 {
        run(&mut client, &["begin"]);
        for _ in 0..5 {
            run(
                &mut client,
                &["select count(*) from d.n where i < 2500 for update"],
            );
        }
        run(&mut client, &["rollback"]);
    }
}

/// Rows that a transaction inserts are locked without an entry, however many there are. That also
/// holds for transactions that scan over them.
#[test]
fn new_rows_need_no_memory_for_locks() {
    let server = start();
    let (mut writer, mut reader) = (server.connect().unwrap(), server.connect().unwrap());
    numbers(&mut writer);
    run(&mut writer, &["begin", &insert(20_000)]);
    let free = "select count(*) from d.n where 20000 <= i for update";
    assert_eq!(single(&mut reader, &format!("{free} skip locked")), "0");
    assert_eq!(error_number(&mut reader, &format!("{free} nowait")), 1205);
    run(&mut reader, &["set row_lock_wait_timeout = 0"]);
    assert_eq!(error_number(&mut reader, free), 1205);
    let few = "select count(*) from d.n where i < 2500 for update";
    run(&mut reader, &[few]);
    run(&mut writer, &["commit"]);
    assert_eq!(single(&mut reader, "select sum(v) from d.n"), "20000");
    assert_eq!(error_number(&mut reader, free), 1206);
}

/// In a secondary unique index each new key has a lock, and there may be too many.
#[test]
fn new_keys_of_unique_indexes_are_locks() {
    let server = start();
    let mut client = server.connect().unwrap();
    numbers(&mut client);
    let copy = |condition: &str| format!("insert into d.u select i, i from d.n where {condition}");
    let definition = "create table d.u (i int primary key, v int unique)";
    run(&mut client, &[definition, &copy("i < 1000")]);
    assert_eq!(error_number(&mut client, &copy("1000 <= i")), 1206);
    assert_eq!(single(&mut client, "select count(*) from d.u"), "1000");
    run(&mut client, &[&copy("i between 1000 and 1999")]);
}

/// A transaction with many locks keeps the older ones in a few bytes each, and others wait for them
/// as for any.
#[test]
fn many_locks_of_a_transaction_take_little_memory() {
    const OBJECT_BYTES: u64 = 224;
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau"));
    let server = launch.start().expect("the server starts");
    let (mut owner, mut other) = (server.connect().unwrap(), server.connect().unwrap());
    numbers(&mut owner);
    run(&mut owner, &[&insert(10_000), &insert(20_000), "begin"]);
    let all = "select count(*) from d.n for update";
    assert_eq!(single(&mut owner, all), "30000");
    let mut number = |what: &str| -> u64 {
        let table = "information_schema.innodb_trx where trx_rows_locked <> 0";
        let text = single(&mut other, &format!("select {what} from {table}"));
        text.parse().expect("a number")
    };
    assert!(30_000 <= number("trx_rows_locked"));
    let bytes = number("trx_lock_memory_bytes");
    assert!(bytes < 30_000 * OBJECT_BYTES / 4, "{bytes}");
    assert_eq!(single(&mut owner, all), "30000");
    assert_eq!(
        number("trx_lock_memory_bytes"),
        bytes,
        "it has them already"
    );
    run(&mut other, &["set row_lock_wait_timeout = 0"]);
    for statement in [
        "update d.n set v = 2 where i = 7",
        "insert into d.n values (-1, 1)",
        "select i from d.n where i = 29999 lock in share mode",
    ] {
        assert_eq!(error_number(&mut other, statement), 1205, "{statement}");
    }
    run(&mut owner, &["insert into d.n values (-2, 1)", "commit"]);
    run(&mut other, &["insert into d.n values (-1, 1)"]);
    assert_eq!(other.status("Row_lock_bytes").expect("a number"), 0);
}
