//! Joins of tables: their results, and the rows that are read for them.

use store::{Suspend, WaitReason};
use testkit::naive_store::RoundTrip;
use value::Value;

use super::bench::{Bench, shown};

/// Runs a statement once. Returns the number of its rows, and of the table rows that it read.
fn counts(bench: &mut Bench, sql: &str) -> (usize, u64) {
    let mut execution = bench.execution(sql).expect("a plan");
    let before = bench.store.rows_read();
    let (rows, _) = bench.execute(&mut execution, &[]).expect("rows");
    (rows.len(), bench.store.rows_read() - before)
}

/// A bench with 200 rows in `sbtest1`: `k` is the last digit of `id`.
fn filled() -> Bench {
    let mut bench = Bench::new();
    let rows: Vec<String> = (1..=200).map(|id| format!("({id}, {})", id % 10)).collect();
    bench.ok(&format!(
        "INSERT INTO sbtest1 (id, k) VALUES {}",
        rows.join(", ")
    ));
    bench
}

#[test]
fn an_equality_of_expressions_is_hashed_beside_a_range() {
    let mut bench = filled();
    for join in ["JOIN", "LEFT JOIN"] {
        let sql = format!(
            "SELECT a.id FROM sbtest1 a {join} sbtest1 b ON a.id + 0 = b.id + 0 AND b.id < 51"
        );
        let rows = if join == "JOIN" { 50 } else { 200 };
        assert_eq!(counts(&mut bench, &sql), (rows, 250), "{sql}");
    }
    let right = "SELECT a.id FROM sbtest1 b RIGHT JOIN sbtest1 a ON a.id + 0 = b.id + 0 \
                 AND b.k = 4";
    assert_eq!(counts(&mut bench, right), (200, 220), "{right}");
    let several = "SELECT COUNT(*) FROM sbtest1 a LEFT JOIN sbtest1 b ON a.id + 0 = b.id + 0 \
                   AND a.k = b.k + 0 AND b.id < 51 LEFT JOIN sbtest1 c ON c.id + 0 = b.id + 0 \
                   AND c.id > 190";
    assert_eq!(counts(&mut bench, several), (1, 260), "{several}");
    let around = "SELECT (SELECT COUNT(*) FROM sbtest1 a JOIN sbtest1 b \
                  ON a.id + c.id = b.id + 0 AND b.id < 11) FROM cities c";
    assert_eq!(counts(&mut bench, around), (3, 3 + 3 * 210), "{around}");
    bench.end();
}

#[test]
fn a_range_of_the_left_row_is_weighed() {
    let mut bench = filled();
    let many = "SELECT a.id FROM sbtest1 a LEFT JOIN sbtest1 b ON a.id + 0 = b.id + 0 \
                AND b.id <= a.id";
    assert_eq!(counts(&mut bench, many), (200, 400), "{many}");
    // One row of the left: its own range is read, and no more.
    let single = format!("{many} WHERE a.id = 7");
    assert_eq!(counts(&mut bench, &single), (1, 8), "{single}");
    bench.end();
}

#[test]
fn rows_are_looked_up_by_a_key() {
    let mut bench = filled();
    let unique = "SELECT a.id FROM sbtest1 a LEFT JOIN sbtest1 b ON a.k = b.id AND b.id < 5 \
                  AND a.k + 0 = b.id + 0 WHERE a.id < 21";
    assert_eq!(counts(&mut bench, unique), (20, 38), "{unique}");
    let group = "SELECT a.id FROM cities a LEFT JOIN (sbtest1 b JOIN sbtest1 c ON b.id = c.id) \
                 ON a.id = b.id WHERE a.id = 2";
    assert_eq!(counts(&mut bench, group), (1, 3), "{group}");
    bench.end();
}

#[test]
fn null_finds_null_only_where_it_is_asked_to() {
    let mut bench = Bench::new();
    let safe = "SELECT a.id, b.id FROM people a LEFT JOIN people b ON a.age + 0 <=> b.age + 0 \
                AND b.id > 1 ORDER BY a.id";
    bench.check(safe, &["1 NULL", "2 2", "3 3", "4 4", "5 5"]);
    let both = "SELECT a.id, b.id FROM people a JOIN people b ON a.age + 0 <=> b.age + 0 \
                AND a.city + 0 = b.city + 0 AND b.id > 1 ORDER BY a.id";
    bench.check(both, &["2 2", "3 3", "5 5"]);
    bench.end();
}

#[test]
fn a_pair_is_judged_by_a_subquery() {
    let mut bench = filled();
    let sql = "SELECT COUNT(*), COUNT(b.id) FROM sbtest1 a LEFT JOIN sbtest1 b \
               ON a.id + 0 = b.id + 0 AND b.id < 51 \
               AND b.k + a.k < (SELECT MAX(id) * 3 FROM cities c WHERE c.id < a.id)";
    bench.check(sql, &["200 22"]);
    bench.end();
}

/// Runs a statement once in a store where each call is a round trip. Returns its rows, and the
/// number of calls.
fn remote_calls(bench: &mut Bench, sql: &str) -> (Vec<Vec<Value>>, u64) {
    let round_trip = || Suspend::new(WaitReason::Remote, std::future::ready(()));
    bench.store.be_remote(RoundTrip(Box::new(round_trip)));
    let mut execution = bench.execution(sql).expect("a plan");
    let before = bench.store.calls();
    let (rows, _) = bench.execute(&mut execution, &[]).expect("rows");
    (rows, bench.store.calls() - before)
}

/// A bench with rows in `sbtest1`; `k` is the number of another row, or of none.
fn linked(row_count: u32) -> Bench {
    let mut bench = Bench::new();
    let rows: Vec<String> = (1..=row_count)
        .map(|id| format!("({id}, {})", id * 7 % (row_count + 100)))
        .collect();
    bench.ok(&format!(
        "INSERT INTO sbtest1 (id, k) VALUES {}",
        rows.join(", ")
    ));
    bench
}

#[test]
fn a_join_by_key_of_a_remote_table_looks_up_many_rows_at_a_call() {
    let by_key = [
        "SELECT a.id, b.id, b.k FROM sbtest1 a JOIN sbtest1 b ON b.id = a.k",
        "SELECT a.id, b.id, b.k FROM sbtest1 a LEFT JOIN sbtest1 b ON b.id = a.k",
        "SELECT a.id, b.id FROM sbtest1 a LEFT JOIN sbtest1 b ON b.id = a.k AND b.k > a.id",
        "SELECT a.id, b.id FROM sbtest1 a JOIN sbtest1 b ON b.k = a.id ORDER BY a.id",
        "SELECT a.id, b.id FROM sbtest1 a STRAIGHT_JOIN sbtest1 b ON b.id BETWEEN a.k AND a.k + 2",
        "SELECT a.id, b.id, c.id FROM sbtest1 a JOIN sbtest1 b ON b.id = a.k \
         JOIN sbtest1 c ON c.id = b.k",
        "SELECT a.id, (SELECT COUNT(*) FROM people p JOIN cities c ON c.id = p.city \
         WHERE p.id <= a.id) FROM cities a",
    ];
    for sql in by_key {
        let mut bench = linked(150);
        let (local, _) = bench.run(sql).expect("rows");
        let (remote, _) = remote_calls(&mut bench, sql);
        assert_eq!(remote, local, "{sql}");
        bench.end();
        let mut bench = linked(1000);
        let (_, calls) = remote_calls(&mut bench, sql);
        assert!(calls <= 20, "{calls} calls: {sql}");
        bench.end();
    }
}

/// The inner join begins again for each row of the outer one, when its own rows are looked up.
#[test]
fn a_join_of_remote_tables_within_another_begins_again() {
    let sql = "SELECT a.id, b.id, c.id FROM people a LEFT JOIN (sbtest1 b JOIN sbtest1 c \
               ON c.id = b.k) ON b.id < 40 + a.id AND c.k > a.id * 2";
    let mut bench = linked(150);
    let (local, _) = bench.run(sql).expect("rows");
    assert!(100 < local.len(), "{}", local.len());
    let (remote, _) = remote_calls(&mut bench, sql);
    assert_eq!(remote, local);
    bench.end();
}

#[test]
fn a_join_that_stops_early_has_looked_up_few_remote_rows() {
    let mut bench = linked(1000);
    let sql = "SELECT a.id, b.id FROM sbtest1 a JOIN sbtest1 b ON b.id = a.k LIMIT 3";
    let before = bench.store.rows_read();
    let (rows, calls) = remote_calls(&mut bench, sql);
    assert_eq!(shown(&rows), "1 7\n2 14\n3 21");
    let read = bench.store.rows_read() - before;
    assert!(calls <= 2 && read <= 64 + 16, "{calls} calls, {read} rows");
    bench.end();
}

#[test]
fn a_changing_statement_ends_in_the_store_once() {
    let mut bench = Bench::new();
    let wait = || Suspend::new(WaitReason::Remote, std::future::ready(()));
    bench.store.be_remote(RoundTrip(Box::new(wait)));
    let before = bench.store.statements_ended();
    let ended = |bench: &Bench| bench.store.statements_ended() - before;
    let insert = "INSERT INTO sbtest1 (id, k) VALUES (1, 1), (2, 2), (3, 3)";
    assert_eq!(bench.ok(insert).affected_rows, 3);
    assert_eq!(ended(&bench), 1);
    assert_eq!(bench.ok("UPDATE sbtest1 SET k = k + 1").affected_rows, 3);
    assert_eq!(
        bench.ok("DELETE FROM sbtest1 WHERE id = 3").affected_rows,
        1
    );
    assert_eq!(ended(&bench), 3);
    bench.check("SELECT id, k FROM sbtest1", &["1 2", "2 3"]);
    assert_eq!(ended(&bench), 3);
    bench.store.fail_next_end();
    assert!(bench.run("DELETE FROM sbtest1").is_err());
    bench.check("SELECT id, k FROM sbtest1", &["1 2", "2 3"]);
    bench.end();
}
